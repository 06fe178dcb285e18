"""Old evidence under today's rules: whose verdict is another one, and by which rules."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from pdkit.store.dating import DATES
from pdkit.store.engines import Engine, Failed, mapped
from pdkit.store.ingesting import batched, judged_of
from pdkit.store.manifests import Judged, Stored, commit, contents
from pdkit.store.place import Place, collected
from pdkit.store.reading import evidence_of
from pdkit.store.rows import RUNS, Ruling, kept

_AT_ONCE = 64  # experiments a manifest


@dataclass(frozen=True)
class Changed:
    """A run whose verdict is another one; `now` are rules that speak against it since, `no_more` those that did."""

    experiment: str
    week: str
    run_id: str
    level: str
    old: str
    new: str
    now: tuple[str, ...]
    no_more: tuple[str, ...]

    def __str__(self) -> str:
        """`results/a, 8 users: measured → no measured result (PD110)`."""
        why = [*self.now, *(f"no more {rule}" for rule in self.no_more)]
        return f"{self.experiment}, {self.level}: {self.old} → {self.new} ({', '.join(why) or 'no rule by name'})"


@dataclass(frozen=True)
class Anew:
    """What judging again came to: experiments that were, those that today's rules had judged already, and changes."""

    rules: str
    judged: int
    current: int
    changed: tuple[Changed, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True)
class _Task:
    place: Place
    entry: Stored
    ruling: Ruling
    rules: str


def rejudge(place: Place, *, ruling: Ruling | None = None, engine: Engine | None = None, every: bool = False) -> Anew:
    """Judge all experiments that other rules or thresholds have judged, or `every` one; the evidence stays as it is."""
    used = ruling or Ruling()
    rules = used.version
    live = contents(place).live
    tasks = [_Task(place, entry, used, rules) for entry in live if every or entry.judged.rules != rules]
    changed: list[Changed] = []
    failed: list[str] = []
    done = 0
    for some in batched(mapped(engine or Engine(), _judged, tasks), _AT_ONCE):
        good = [(task.entry.id, *answer) for task, answer in some if not isinstance(answer, Failed)]
        failed += [f"{task.entry.experiment}: {answer.why}" for task, answer in some if isinstance(answer, Failed)]
        changed += [one for _, _, mine in good for one in mine]
        done += len(good)
        if good:
            commit(place, judged={key: said for key, said, _ in good})
    ordered = sorted(changed, key=lambda one: (one.week, one.experiment, one.level, one.run_id))
    return Anew(rules, done, len(live) - len(tasks), tuple(ordered), tuple(failed))


def _judged(task: _Task) -> tuple[Judged, list[Changed]]:
    """What today's rules say of one experiment, written, and where that differs."""
    entry = task.entry
    before = _runs(task.place, entry.judged)
    judgement = task.ruling.judged(evidence_of(task.place, entry))
    ids = {entry.experiment: entry.id}
    tables = kept(judgement, before.select(DATES.names()), ids=ids, rules=task.rules)
    token = f"{entry.id}-{secrets.token_hex(4)}"
    said = judged_of(task.place, tables, week=entry.weeks[0], token=token, rules=task.rules)
    return said, list(_changes(before, tables["runs"]))


def _runs(place: Place, judged: Judged) -> pl.DataFrame:
    return collected(place.scan([file.name for file in judged.files if file.table == "runs"], RUNS), place)


def _changes(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Changed]:
    both = after.join(before, on="run_id", suffix="_old").filter(pl.col("verdict") != pl.col("verdict_old"))
    for row in both.iter_rows(named=True):
        new = {*row["refused_by"], *row["suspected_by"]}
        old = {*row["refused_by_old"], *row["suspected_by_old"]}
        yield Changed(
            row["experiment"], row["week"], row["run_id"], row["level"], row["verdict_old"], row["verdict"],
            tuple(sorted(new - old)), tuple(sorted(old - new)),
        )  # fmt: skip
