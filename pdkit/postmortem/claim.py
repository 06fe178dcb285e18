"""What was claimed, as it was said, beside what the logs print and what was measured."""

from collections.abc import Iterator, Sequence

import polars as pl

from pdkit.postmortem.case import PostMortem
from pdkit.results import CLAIMED, DOUBTS, MEASURED, NO_RESULT, UNVERIFIED
from pdkit.tables.layout import Cell, Column, Group, Part, Quote, Row, Section, Table, Words
from pdkit.units import show

_SIDES = 12  # rows of a side: a longer sweep stands in the tables below
_AS_CLOSE = 0.005  # a claim is rounded: half of its second decimal
_COLUMNS = (Column("Side"), Column("Claimed"), Column("Measured"), Column("Log lines"))


def claim(case: PostMortem) -> Section:
    """The claim in its own words, and each side of it as what it is."""
    said = case.claim
    head = _said(case)
    groups = [Group("Suspect", tuple(_rows(case, case.suspect, said.tok_per_s)))]
    if case.baseline:
        groups.append(Group("Baseline", tuple(_rows(case, case.baseline, said.baseline_tok_per_s))))
    filled = tuple(group for group in groups if group.rows)
    parts: list[Part] = [head, Table("The claim and its two sides", _COLUMNS, filled, rows_shown=2 * _SIDES)]
    if not case.baseline:
        parts.append(Words("No baseline was given, so nothing is held against the suspect."))
    parts.extend(_not_printed(case))
    return Section("claim", tuple(parts))


def _said(case: PostMortem) -> Part:
    """The claim as text, else as its numbers."""
    said, held = case.claim, _is_measured(case)
    if said.text:
        return Quote(said.text, "the claim; its numbers were measured" if held else CLAIMED)
    numbers = [show(value, "tok/s") for value in (said.tok_per_s, said.baseline_tok_per_s) if value is not None]
    if not numbers:
        return Words("No claim was given: these are the figures of the logs.")
    return Words(f"{' against '.join(numbers)}{'' if held else f', {CLAIMED}'}.", "The claim")


def _is_measured(case: PostMortem) -> bool:
    """Whether each number of the claim is one that its side measured; a claim without numbers was not measured."""
    sides = ((case.claim.tok_per_s, case.suspect), (case.claim.baseline_tok_per_s, case.baseline))
    given = [(value, runs) for value, runs in sides if value is not None]
    return bool(given) and all(_measured_at(case, runs, value) for value, runs in given)


def _measured_at(case: PostMortem, runs: Sequence[str], value: float) -> bool:
    received = case.of(_published(case), runs)["received"].drop_nulls()
    return any(abs(one - value) <= _AS_CLOSE for one in received)


def _published(case: PostMortem) -> pl.DataFrame:
    titles = case.judgement.conclusions.select("experiment", "title")
    wide = case.judgement.for_results.wide("received_throughput_tok_per_s").join(
        titles, on="experiment", how="left", maintain_order="left"
    )
    name = pl.col("received_throughput_tok_per_s")
    held = pl.when(pl.col("verdict").is_in([MEASURED, DOUBTS])).then(name).alias("received")
    return wide.select("run_id", "experiment", "title", "level", "verdict", "refused_by", held)


def _rows(case: PostMortem, runs: Sequence[str], value: float | None) -> Iterator[Row]:
    """The runs of one side: what was claimed of each, else what its client prints, beside what was measured."""
    printed = _printed(case).rows_by_key("run_id", named=True, unique=True)
    told = case.of(_published(case), runs)
    for row in told.head(_SIDES).iter_rows(named=True):
        line = printed.get(row["run_id"])
        shown = line["value"] if line else None
        is_meant = value is not None and told.height == 1
        yield (
            Cell(row["title"], more=(row["level"],)),
            _claimed(value if is_meant else shown, held=row["received"]),
            Cell(_measured(row)),
            Cell(f"{line['source_file']}:{line['source_line']}" if line else "", "code"),
        )


def _printed(case: PostMortem) -> pl.DataFrame:
    return case.judgement.claimed.filter(pl.col("fact") == "output_throughput_tok_per_s")


def _claimed(value: float | None, *, held: float | None) -> Cell:
    """A number with its label, unless it is what was measured."""
    if value is None:
        return Cell("–")
    is_result = held is not None and abs(held - value) <= _AS_CLOSE
    return Cell(show(value, "tok/s"), "text", () if is_result else (CLAIMED,))


def _measured(row: dict[str, object]) -> str:
    """What the side measured; in its place, what stands there."""
    if row["received"] is not None:
        doubts = ", with doubts" if row["verdict"] == DOUBTS else ""
        return f"{show(float(str(row['received'])), 'tok/s')} received{doubts}"
    rules = ", ".join(map(str, row["refused_by"])) if isinstance(row["refused_by"], list) else ""
    if row["verdict"] == NO_RESULT:
        return f"{NO_RESULT} ({rules})" if rules else NO_RESULT
    return (
        "unverified: nothing shows that text came back"
        if row["verdict"] == UNVERIFIED
        else f"throughput refused ({rules})"
    )


def _not_printed(case: PostMortem) -> Iterator[Words]:
    """Numbers of the claim that no log of their side prints."""
    sides = (
        ("suspect", case.claim.tok_per_s, case.suspect),
        ("baseline", case.claim.baseline_tok_per_s, case.baseline),
    )
    for side, value, runs in sides:
        values = case.of(_printed(case), runs)["value"].drop_nulls()
        if value is not None and runs and not any(abs(one - value) <= _AS_CLOSE for one in values):
            yield Words(f"No log of the {side} prints {show(value, 'tok/s')} ({CLAIMED}).")
