"""A store as tables: what a page or a notebook asks of it; requests are read only where evidence is asked for."""

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from pdkit import series as of_series
from pdkit.errors import PdkitError, one_of
from pdkit.evidence import SCHEMAS, Evidence, table
from pdkit.metrics import RESULTS
from pdkit.results import VERDICTS
from pdkit.store.dating import SUREST, week_given
from pdkit.store.manifests import Contents, Stored
from pdkit.store.place import Place, collected
from pdkit.store.rows import CLAIMS, FINDINGS, PUBLISHED, RESULTS_KEPT, RUNS

LISTED = pl.Schema({
    "week": pl.String(), "experiment": pl.String(), "title": pl.String(), "experiment_id": pl.String(),
    "runs": pl.Int64(), **dict.fromkeys(reversed(VERDICTS.categories.to_list()), pl.Int64()), "bytes": pl.Int64(),
    "dated_by": pl.List(pl.String), "rules": pl.String(), "versions": pl.Int64(),
})  # fmt: skip


@dataclass(frozen=True, repr=False)
class Store:
    """What a store held when it was opened; `contents` are its manifests together."""

    place: Place
    contents: Contents

    def __repr__(self) -> str:
        """Where it is and how much it holds."""
        runs = sum(entry.runs for entry in self.contents.live)
        return f"Store({self.place.name}: {len(self.contents.live):,} experiments, {runs:,} runs)"

    @property
    def weeks(self) -> list[str]:
        """The weeks that have a run, in order."""
        return sorted({week for entry in self.contents.live for week in entry.weeks})

    def runs(self, weeks: Iterable[str] | None = None, series: str | Iterable[str] | None = None) -> pl.DataFrame:
        """One row a run, in time: what it is, its verdict, its marks, and what may be published of it.

        `weeks` and `series` take what is asked for alone: of a series, words that its key holds, all of them. A run
        that is in two experiments counts once. A level that was planned and never seen is given the one series that
        it can be of.

        Raises:
            PdkitError: a week that is none, or a table that cannot be read.
        """
        asked = _asked(weeks)
        rows = self._rows("runs", RUNS, asked)
        if asked is not None:
            rows = rows.filter(pl.col("week").is_in(sorted(asked)))
        whole = of_series.with_whole_keys(self._once(rows), self.contents.keys)
        return of_series.in_time(of_series.chosen(whole, series))

    def runs_of(self, entry: Stored) -> pl.DataFrame:
        """The runs of one experiment, also those that another one shows."""
        names = [kept.name for kept in entry.judged.files if kept.table == "runs"]
        return of_series.in_time(collected(self.place.scan(names, RUNS), self.place))

    def _once(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Every run once: of experiments that share it, by that which says most of it, knows best when, is newest.

        The log of a run in one experiment and its record in another are one run as well: the better reader shows it.
        """
        if rows.is_empty():
            return rows
        order = sorted(self.contents.live, key=lambda entry: (entry.seq, entry.id))
        age = {entry.id: number for number, entry in enumerate(order)}
        newest = -pl.col("experiment_id").replace_strict(age, return_dtype=pl.Int64)
        ranked = rows.sort(pl.col("not_evaluated").list.len(), pl.col("dated_by").cast(pl.Enum(SUREST)), newest)
        read = pl.col("readers").list.join("+")
        best = pl.col("figures").is_null() | (read == read.first().over("figures"))
        told = ranked.filter(best)
        is_first = pl.col("print").is_null() | pl.col("print").is_first_distinct()
        return told.filter(is_first)

    def coverage(self, week: str, series: str | Iterable[str] | None = None) -> pl.DataFrame:
        """What was meant to run in a week, and what came of it, one row a series; see docs/store.md."""
        return of_series.coverage(self.runs(series=series), week_given(week))

    def points(self, metric: str, series: str | Iterable[str] | None = None) -> pl.DataFrame:
        """One row a run of each series, in time, with a published metric and what changed since the run before.

        Raises:
            PdkitError: the metric is no result.
        """
        if metric not in RESULTS:
            raise one_of("metric", metric, list(RESULTS))
        return of_series.points(self.runs(series=series), metric)

    def series(self, series: str | Iterable[str] | None = None) -> pl.DataFrame:
        """One row a series: its weeks, its verdicts, the last received throughput, and its marks."""
        return of_series.listed(self.runs(series=series))

    def experiments(self, weeks: Iterable[str] | None = None) -> pl.DataFrame:
        """One row an experiment; read from manifests alone."""
        older = [entry.experiment for entry in self.contents.hidden]
        rows = [
            {"week": entry.weeks[0], "experiment": entry.experiment, "title": entry.title, "experiment_id": entry.id,
             "runs": entry.runs, **entry.judged.verdicts, "bytes": entry.bytes, "dated_by": entry.dated_by,
             "rules": entry.judged.rules, "versions": 1 + older.count(entry.experiment)}
            for entry in self.contents.of_weeks(_asked(weeks))
        ]  # fmt: skip
        counts = pl.col([name for name, dtype in LISTED.items() if dtype == pl.Int64])
        return pl.DataFrame(rows, schema=LISTED).with_columns(counts.fill_null(0))

    def findings(self, weeks: Iterable[str] | None = None) -> pl.DataFrame:
        """The failures of all rules as sentences with their lines."""
        return self._rows("findings", FINDINGS, weeks)

    def results(self, weeks: Iterable[str] | None = None) -> pl.DataFrame:
        """One row a run and rule."""
        return self._rows("results", RESULTS_KEPT, weeks)

    def published(self, weeks: Iterable[str] | None = None) -> pl.DataFrame:
        """One row a run and metric that was stated: its value, or the rules that took it."""
        return self._rows("published", PUBLISHED, weeks)

    def claimed(self, weeks: Iterable[str] | None = None) -> pl.DataFrame:
        """What the tools printed: evidence, never part of a series; `shown_as` are the words that go with it."""
        return self._rows("claimed", CLAIMS, weeks)

    def of_week(self, week: str) -> list[Stored]:
        """The versions that have a run in a week.

        Raises:
            PdkitError: a week that is none, or without any run.
        """
        found = self.contents.of_weeks([week_given(week)])
        if not found:
            raise PdkitError(f"{self.place.name}: no run in {week}; weeks: {', '.join(self.weeks) or 'none'}")
        return found

    def entry(self, experiment: str, week: str | None = None) -> Stored:
        """The version of an experiment that counts, by name or id.

        Raises:
            PdkitError: there is none, or more than one.
        """
        found = self.entries(experiment, week)
        if len(found) > 1:
            several = ", ".join(f"{entry.id} ({entry.weeks[0]})" for entry in found)
            raise PdkitError(f"{experiment}: {len(found)} experiments have this name; name one by its id: {several}")
        return found[0]

    def entries(self, experiment: str, week: str | None = None) -> list[Stored]:
        """Those of a name or an id, of one week where that is given.

        Raises:
            PdkitError: there is none.
        """
        within = self.contents.of_weeks(None if week is None else [week_given(week)])
        found = [entry for entry in within if experiment in (entry.id, entry.experiment)]
        if not found:
            names = sorted({entry.experiment for entry in within})
            raise one_of(f"{self.place.name}: experiment", experiment, names[:20])
        return found

    def evidence(self, experiment: str) -> Evidence:
        """The tables of an experiment, as `judge` takes them."""
        return evidence_of(self.place, self.entry(experiment))

    def _rows(self, name: str, schema: pl.Schema, weeks: Iterable[str] | None) -> pl.DataFrame:
        entries = self.contents.of_weeks(_asked(weeks))
        names = [kept.name for entry in entries for kept in entry.judged.files if kept.table == name]
        return collected(self.place.scan(names, schema), self.place)


def _asked(weeks: Iterable[str] | None) -> set[str] | None:
    return None if weeks is None else {week_given(week) for week in ([weeks] if isinstance(weeks, str) else weeks)}


def evidence_of(place: Place, entry: Stored) -> Evidence:
    """The evidence of one version of an experiment; columns that this pdkit does not know are left out."""
    frames = {
        kept.table: table(kept.table, collected(place.scan([kept.name], SCHEMAS[kept.table]), place))
        for kept in entry.files
        if kept.table in SCHEMAS
    }
    return Evidence.of(**frames)
