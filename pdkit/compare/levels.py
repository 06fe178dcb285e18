"""The levels that both sides have, and which of a side's runs there are its repeats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pdkit.compare.comparison import Unpaired
from pdkit.compare.settings import Settings
from pdkit.compare.sides import SIDES, unsided
from pdkit.errors import PdkitError
from pdkit.results import DOUBTS, MEASURED, NO_LEVEL, Judgement

# alike in copies of one run alone: repeats of one length may well take as long to 10 ms, but not to the same latencies
_PRINTED = ("completed", "duration_s", "output_throughput_tok_per_s", "e2e_ms_mean", "ttft_ms_mean")


@dataclass(frozen=True)
class Picked:
    """One side's runs at a level, by id: as `Runs`."""

    every: tuple[str, ...]
    repeats: tuple[str, ...]
    copies: int
    unlike: str

    @property
    def used(self) -> tuple[str, ...]:
        """Its repeats; where it has none, all its runs, which say why."""
        return self.repeats or self.every


@dataclass(frozen=True)
class Level:
    """What both sides have at a level."""

    baseline: Picked
    candidate: Picked

    @property
    def lead(self) -> str:
        """The run that all others are held against."""
        return self.baseline.used[0]

    @property
    def held(self) -> tuple[str, ...]:
        """The candidate's runs, and the baseline's other repeats: these are to be of one kind."""
        return *self.candidate.used, *self.baseline.repeats[1:]

    @property
    def repeats(self) -> tuple[str, ...]:
        """The repeats of both sides."""
        return *self.baseline.repeats, *self.candidate.repeats


def levels_of(judgement: Judgement) -> tuple[list[Level], tuple[Unpaired, ...]]:
    """The levels that both sides have, from the lowest; then those at which nothing is compared."""
    printed = judgement.facts.select("run_id", *_PRINTED)
    rows = judgement.verdicts.join(printed, on="run_id", maintain_order="left").sort(
        "concurrency", "request_rate_per_s", nulls_last=True, maintain_order=True
    )
    sides = [[row for row in rows.iter_rows(named=True) if row["run_id"].startswith(f"{side}/")] for side in SIDES]
    settings = Settings(judgement)
    if all(len(side) == 1 for side in sides):
        return [Level(*(_picked(side, settings) for side in sides))], ()
    names = dict.fromkeys(row["level_asked"] for row in rows.iter_rows(named=True))
    at = {name: [[row for row in side if row["level_asked"] == name] for side in sides] for name in names}
    shared = {name for name, (theirs, mine) in at.items() if theirs and mine and name != NO_LEVEL}
    unpaired = (Unpaired(name, *map(len, at[name])) for name in names if name not in shared)
    return [Level(*(_picked(s, settings) for s in at[name])) for name in names if name in shared], tuple(unpaired)


def refuse_copies(judgement: Judgement, levels: Sequence[Level]) -> None:
    """Raise where repeats of one side are copies of the other's: a call would rest on a run held against itself.

    Of one run a side nothing is called, and two may print alike.
    """
    rows = {row["run_id"]: row for row in judgement.facts.select("run_id", "experiment", *_PRINTED).to_dicts()}
    for level in levels:
        theirs, mine = ([rows[run] for run in side.repeats] for side in (level.baseline, level.candidate))
        known = {_printed(row): row for row in theirs}
        copy = next((row for row in mine if _printed(row) in known), None)
        if copy and max(len(theirs), len(mine)) > 1:
            name, other = (unsided(row["experiment"]) for row in (copy, known[_printed(copy)]))
            raise PdkitError(f"{name}: a run prints the same as one of the baseline's {other}; name another run's logs")


def _picked(rows: Sequence[dict[str, Any]], settings: Settings) -> Picked:
    """Of one side's runs at a level, those that are its repeats."""
    measured = [row for row in rows if row["verdict"] in (MEASURED, DOUBTS)]
    apart = {_printed(row): row["run_id"] for row in reversed(measured)}  # of copies, the first is kept
    repeats = tuple(row["run_id"] for row in measured if row["run_id"] in apart.values())
    every = tuple(row["run_id"] for row in rows)
    return Picked(every, repeats, len(measured) - len(repeats), settings.unlike(repeats))


def _printed(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What two runs share only if one is a copy of the other, as a client prints it; its id where that is unknown."""
    values = [row[name] for name in _PRINTED]
    return (row["run_id"],) if None in values else tuple(f"{value:.2f}" for value in values)
