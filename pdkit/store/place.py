"""Where a store lies: a folder, or a place in an object store. Objects are put once, under names of their own."""

import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from pdkit.errors import PdkitError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_AT_ONCE = 16  # small objects that are fetched side by side: each waits for the network, not for us
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}  # an address where nobody answers is said soon
_PROVIDERS = ("aws_", "azure_", "google_")
_OF_CLIENT = re.compile("(?:aws_|azure_|google_)?(allow_http|allow_invalid_certificates|timeout|connect_timeout)")


@dataclass(frozen=True)
class Item:
    """One object: its name below the store, its size, and when it was written."""

    name: str
    bytes: int
    written: datetime


class Place(Protocol):
    """What a store needs of where it lies; every name is relative to it."""

    @property
    def name(self) -> str:
        """What a sentence calls it."""

    def items(self, under: str = "") -> Iterator[Item]:
        """The objects whose names begin with a folder; none where there is no such place."""

    def read(self, name: str) -> bytes:
        """The bytes of an object.

        Raises:
            FileNotFoundError: there is none.
        """

    def put(self, name: str, content: bytes) -> None:
        """Write an object, whole or not at all."""

    def write(self, name: str, frame: pl.DataFrame) -> int:
        """Write a table as Parquet, and say how many bytes it takes."""

    def scan(self, names: list[str], schema: pl.Schema) -> pl.LazyFrame:
        """The rows of tables under one schema: a column that a file lacks is null, one too many is left out."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; one that is gone already is no matter."""

    def holds(self, file: Path) -> bool:
        """Whether a file on disk is one of its objects."""


def place(where: str | Path, options: Mapping[str, str] | None = None) -> Place:
    """The folder or the place in an object store that a path or an address names.

    Raises:
        PdkitError: an object store, and what speaks with it is not installed.
    """
    said = str(where)
    if "://" not in said:
        return Folder(Path(where))
    try:
        import obstore  # noqa: F401
    except ModuleNotFoundError as problem:
        raise PdkitError(f"{said}: an object store needs the extra; pip install 'pdkit[s3]'") from problem
    return Bucket(said.rstrip("/"), tuple(sorted((options or {}).items())))


@dataclass(frozen=True)
class Folder:
    """A folder on disk, or on a share."""

    path: Path

    @property
    def name(self) -> str:
        """Its path."""
        return str(self.path)

    def items(self, under: str = "") -> Iterator[Item]:
        """The files below a folder of it."""
        for file in sorted((self.path / under).rglob("*")):
            try:
                if file.is_file():
                    known = file.stat()
                    when = datetime.fromtimestamp(known.st_mtime, UTC)
                    yield Item(file.relative_to(self.path).as_posix(), known.st_size, when)
            except FileNotFoundError:  # removed by somebody else since it was listed
                continue

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def put(self, name: str, content: bytes) -> None:
        """Written under another name first: a reader sees all of it or nothing."""
        file = self.path / name
        unfinished = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
        with self._writing():
            file.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as written:
                written.write(content)
                written.flush()
                os.fsync(written.fileno())
            unfinished.replace(file)

    def write(self, name: str, frame: pl.DataFrame) -> int:
        """Written in place: nobody looks for it before a manifest names it."""
        file = self.path / name
        with self._writing():
            file.parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(file)
            return file.stat().st_size

    def scan(self, names: list[str], schema: pl.Schema) -> pl.LazyFrame:
        """Streamed from disk."""
        return _scanned([str(self.path / name) for name in names], schema, None)

    def delete(self, names: Iterable[str]) -> None:
        """And the folders that are empty then."""
        for name in names:
            file = self.path / name
            file.unlink(missing_ok=True)
            for folder in list(file.parents)[: len(Path(name).parts) - 1]:
                try:
                    folder.rmdir()
                except OSError:  # not empty, or somebody writes there
                    break

    def holds(self, file: Path) -> bool:
        """Whether it lies below the folder."""
        return self.path.resolve() in file.resolve().parents

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            why = problem.strerror or problem
            raise PdkitError(f"{self.name}: cannot be written ({why}); name a folder that can") from problem


@dataclass(frozen=True)
class Bucket:
    """A place in an object store, as `s3://bucket/runs`; options are those that polars takes."""

    url: str
    options: tuple[tuple[str, str], ...] = ()
    _made: "list[ObjectStore]" = field(default_factory=list, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Its address."""
        return self.url

    def items(self, under: str = "") -> Iterator[Item]:
        """The objects below a prefix."""
        import obstore

        with self._asking():
            for page in obstore.list(self._store, prefix=under or None):
                for found in page:
                    yield Item(str(found["path"]), int(found["size"]), found["last_modified"])

    def read(self, name: str) -> bytes:
        """The bytes of an object."""
        import obstore

        with self._asking():
            return bytes(obstore.get(self._store, name).bytes())

    def put(self, name: str, content: bytes) -> None:
        """An object store writes all of it or nothing."""
        import obstore

        with self._asking():
            obstore.put(self._store, name, content)

    def write(self, name: str, frame: pl.DataFrame) -> int:
        """Written by polars; its size is asked for after."""
        import obstore

        with self._asking():
            frame.write_parquet(f"{self.url}/{name}", storage_options=dict(self.options) or None)
            return int(obstore.head(self._store, name)["size"])

    def scan(self, names: list[str], schema: pl.Schema) -> pl.LazyFrame:
        """Streamed by polars."""
        return _scanned([f"{self.url}/{name}" for name in names], schema, dict(self.options))

    def delete(self, names: Iterable[str]) -> None:
        """One after the other; one that is gone is no matter."""
        import obstore

        with self._asking():
            for name in names:
                obstore.delete(self._store, name)

    def holds(self, file: Path) -> bool:  # noqa: ARG002 # as a folder may
        """Nothing on disk is."""
        return False

    @property
    def _store(self) -> "ObjectStore":
        """What speaks with it; the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, …) says what options do not."""
        from obstore.store import from_url

        if not self._made:
            config = {key: value for key, value in self.options if not _OF_CLIENT.fullmatch(key)}
            said = {found[1]: value for key, value in self.options if (found := _OF_CLIENT.fullmatch(key))}
            allow = os.environ.get("AWS_ALLOW_HTTP")
            client: Any = ({"allow_http": allow} if allow else {}) | said
            made: Any = from_url
            self._made.append(made(self.url, config=config, client_options=client, retry_config=_RETRIES))
        return self._made[0]

    def __getstate__(self) -> dict[str, object]:
        return {"url": self.url, "options": self.options, "_made": []}

    @contextmanager
    def _asking(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError, pl.exceptions.ComputeError) as problem:
            raise PdkitError(f"{self.url}: no answer that helps ({_short(problem)}); see docs/store.md") from problem


def read_all(where: Place, names: list[str]) -> list[bytes]:
    """Small objects, fetched side by side, in order.

    Raises:
        FileNotFoundError: one of them is gone.
    """
    if isinstance(where, Folder) or len(names) < 2:
        return [where.read(name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(where.read, names))


def collected(rows: pl.LazyFrame, where: Place) -> pl.DataFrame:
    """The rows of a scan.

    Raises:
        PdkitError: a file is gone, or is no Parquet.
    """
    try:
        return rows.collect()
    except FileNotFoundError as problem:
        raise PdkitError(f"{where.name}: a file went while it was read ({_short(problem)}); try again") from problem
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise PdkitError(f"{where.name}: a table is no readable Parquet ({_short(problem)})") from problem


def _scanned(paths: list[str], schema: pl.Schema, options: dict[str, str] | None) -> pl.LazyFrame:
    if not paths:
        return pl.LazyFrame(schema=schema)
    return pl.scan_parquet(
        paths, schema=schema, missing_columns="insert", extra_columns="ignore", glob=False, hive_partitioning=False,
        storage_options=options or None,
    )  # fmt: skip


def _short(problem: BaseException) -> str:
    """The first line of what went wrong, at most 160 characters."""
    return str(problem).partition("\n")[0][:160]
