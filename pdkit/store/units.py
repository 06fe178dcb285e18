"""Which files have to be read together: each unit holds whole experiments, and as few as can be told cheaply."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os.path import commonpath
from pathlib import Path

from pdkit.errors import PdkitError
from pdkit.evidence import TABLES
from pdkit.load import MANIFEST_NAME, File, load_files
from pdkit.source import Source

_SEEN = [name for name in TABLES if name not in ("sources", "unread", "experiments", "files")]  # of a client or server


@dataclass(frozen=True)
class Unit:
    """Files that are read together, by name the folder that holds them."""

    name: str
    files: tuple[File, ...]

    @property
    def sources(self) -> dict[str, Source]:
        """Those that are opened, by the name that evidence cites."""
        return {file.source.name: file.source for file in self.files if not file.barred}

    def fingerprint(self, week: str | None) -> str:
        """A hash of what its files are called and hold, and of the week that they were given."""
        said = sorted((name, source.sha256) for name, source in self.sources.items())
        return hashlib.sha256(repr((said, week)).encode()).hexdigest()


def units(files: Iterable[File]) -> list[Unit]:
    """The files by the topmost folder that binds what lies below it: one with a manifest, or with a log of its own.

    A folder without folders always does. A manifest or a log may speak of all that lies below, so it is read with that.
    Logs in one folder and records in another are two units here: what they share shows when both were read.
    """
    every = [_absolute(file) for file in files]
    with_folders = {above for file in every for above in list(_folders(file))[1:]}
    binding = {file.source.path.parent for file in every if file.source.path.parent not in with_folders or _binds(file)}
    groups: dict[Path, list[File]] = defaultdict(list)
    for file in every:
        bound = [folder for folder in _folders(file) if folder in binding]
        groups[bound[-1] if bound else file.source.path.parent].append(file)
    return [joined(groups[folder]) for folder in sorted(groups)]


def joined(files: Iterable[File]) -> Unit:
    """The files as one unit."""
    ordered = tuple(sorted(files, key=lambda file: file.source.name))
    folders = {str(Path(file.source.name).parent) for file in ordered}
    alike = len({Path(folder).is_absolute() for folder in folders}) == 1
    return Unit(commonpath(folders) or "." if alike else min(folders), ordered)


def _absolute(file: File) -> File:
    """With paths that hold in a process that stands elsewhere; what evidence cites stays."""
    return replace(file, source=Source(file.source.path.absolute(), file.source.name), root=file.root.absolute())


def _folders(file: File) -> Iterable[Path]:
    """Its folders up to the root that was given, nearest first."""
    return (folder for folder in file.source.path.parents if folder == file.root or file.root in folder.parents)


def _binds(file: File) -> bool:
    """Whether it says something of what lies below its folder: it is a manifest, or some reader knows it."""
    if file.source.path.name == MANIFEST_NAME or file.named:
        return True
    try:
        evidence = load_files([file])
    except PdkitError:
        return True
    return any(getattr(evidence, name).height for name in _SEEN)
