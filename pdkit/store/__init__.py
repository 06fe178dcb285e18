"""The run store: evidence and judgement as Parquet, by week and experiment, in a folder or an object store."""

from collections.abc import Mapping
from pathlib import Path

from pdkit.store.cleaning import remove, vacuum
from pdkit.store.engines import Engine
from pdkit.store.ingesting import ingest
from pdkit.store.manifests import contents
from pdkit.store.place import Place, place
from pdkit.store.reading import Store
from pdkit.store.rejudging import rejudge
from pdkit.store.rows import Ruling

__all__ = ["Engine", "Ruling", "Store", "ingest", "open", "opened", "place", "rejudge", "remove", "vacuum"]


def open(path: str | Path, options: Mapping[str, str] | None = None) -> Store:  # noqa: A001 # pdkit.store.open(…)
    """The store in a folder or an object store; `options` are those that polars takes (`aws_endpoint_url`, …).

    Raises:
        PdkitError: there is no store, or one of a newer format.
    """
    return opened(place(path, options))


def opened(where: Place) -> Store:
    """The store in a place."""
    return Store(where, contents(where))
