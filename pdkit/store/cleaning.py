"""Taking out: an experiment by a manifest that says so, and files that count for nobody once they are old enough."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pdkit.store.manifests import MANIFESTS, MARKER, Contents, Stored, commit, contents, counted
from pdkit.store.place import Item, Place

GRACE_H = 24.0  # hours: an ingest that still runs has written files that no manifest names yet


def remove(place: Place, entries: Iterable[Stored]) -> list[Stored]:
    """Take versions out, with those that they stand in place of; the files stay until a vacuum."""
    now = contents(place)
    gone = _with_older(now, {entry.id for entry in entries})
    commit(place, removed=gone)
    return [entry for entry in now.live if entry.id in gone]


def _with_older(now: Contents, gone: set[str]) -> set[str]:
    """Versions that would count once the given ones are out are out as well."""
    hidden = {entry.id for entry in now.hidden}
    while True:
        live, _ = counted(entry for entry in (*now.live, *now.hidden) if entry.id not in gone)
        again = {entry.id for entry in live} & hidden
        if not again:
            return gone
        gone = gone | again


@dataclass(frozen=True)
class Vacuumed:
    """What was removed, and how many files were too young to tell."""

    files: int
    bytes: int
    manifests: int
    young: int


def vacuum(place: Place, *, grace_h: float = GRACE_H, now: datetime | None = None) -> Vacuumed:
    """Remove files that count for nobody, and make one manifest of those that are older than the grace period.

    What is younger stays: an ingest that is under way names its files last, and a reader may still hold a listing.
    """
    until = (now or datetime.now(UTC)) - timedelta(hours=grace_h)
    known = contents(place)
    items = list(place.items())
    idle = [item for item in items if _is_data(item) and item.name not in known.named]
    old = [item for item in idle if item.written <= until]
    read = set(known.manifests)
    merged = [item for item in items if item.name in read and item.written <= until]
    if len(merged) > 1:
        commit(place, stored=known.live, keep_order=True)
        place.delete(item.name for item in merged)
    place.delete(item.name for item in old)
    return Vacuumed(
        len(old), sum(item.bytes for item in old), len(merged) if len(merged) > 1 else 0, len(idle) - len(old)
    )


def _is_data(item: Item) -> bool:
    is_manifest = item.name.startswith(f"{MANIFESTS}/") and item.name.endswith(".json")
    return item.name != MARKER and not is_manifest
