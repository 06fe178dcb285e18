"""The effect: the first run whose text did not come back, and what the later ones gave."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from pdkit.chain.case import Case
from pdkit.chain.link import NO_TEXT, Link
from pdkit.chain.shown import MOST_PLACES, time_of, unknown
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED
from pdkit.units import listed


def no_text(case: Case, failure: Mapping[str, Any] | None) -> Link:
    """The first run in time that a rule on output refused, and what the later ones gave."""
    if case.runs.is_empty():
        return unknown(NO_TEXT, "the output of the client")
    short = case.runs.filter(pl.col("output_rules").list.len() > 0)
    if short.is_empty():
        return _none_missing(case)
    first = short.row(0, named=True)
    window = _window(case, first["run_id"], failure["instance"] if failure else None)
    later = case.runs.filter(pl.int_range(pl.len()) > case.runs["run_id"].index_of(first["run_id"]))
    again = later.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))["level"].to_list()
    back = [f"text came back again at {listed(again)}"] if again else []
    said, *more = (_came_back(row) for row in short.iter_rows(named=True))
    what = "; ".join([f"{said}{_span(window)}", *more, *back])
    since = f" (its window starts at {time_of(window['started_at'])})" if window else ""
    brief = ", and ".join([f"{said}{since}{_later_levels(short)}", *back])
    link = Link(NO_TEXT, what, "seen", places=tuple(case.lines.get(first["run_id"], [])[:MOST_PLACES]), brief=brief)
    return _timed(link, window) if window else link


def _none_missing(case: Case) -> Link:
    """What there is to say where no rule on output refused a run."""
    if (case.runs["verdict"] == UNVERIFIED).any():
        return unknown(NO_TEXT, "the answers, or a count of their tokens")
    other = refused_otherwise(case)
    return Link(NO_TEXT, f"no run was refused for missing text{f'; {other}' if other else ''}", "not seen")


def _span(window: Mapping[str, Any] | None) -> str:
    if window is None:
        return ""
    return f" (from {time_of(window['started_at'])} to {time_of(window['ended_at'], window['started_at'])})"


def _timed(link: Link, window: Mapping[str, Any]) -> Link:
    """The link as long as its run went on; of bursts nobody knows that they are these runs, so nor when it ended."""
    start, end = window["started_at"], None if window["way"] == "bursts" else window["ended_at"]
    return replace(link, when=start, since=start, until=end, instance=window["instance"], role=window["role"])


def refused_otherwise(case: Case) -> str:
    """The runs that other rules refused, where none was refused for missing text: a client may tell of its failures."""
    refused = case.runs.filter(pl.col("verdict") == NO_RESULT)
    if refused.is_empty() or (refused["output_rules"].list.len() > 0).any():
        return ""
    rules = refused["refused_by"].explode().drop_nulls().unique().sort().to_list()
    return f"{NO_RESULT} at {listed(refused['level'].to_list())}{f' ({listed(rules)})' if rules else ''}"


def _later_levels(short: pl.DataFrame) -> str:
    """What the later levels gave, where the first one still gave some text."""
    later = short.slice(1)
    none = later.filter(pl.col("received_tok") == 0)["level"].to_list()
    some = later.filter(pl.col("received_tok").ne_missing(0))["level"].to_list()
    said = [f"too little at {listed(some)}" if some else "", f"none at {listed(none)}" if none else ""]
    return "".join(f", {part}" for part in said if part)


def _came_back(row: Mapping[str, Any]) -> str:
    claimed, received = row["output_tok_sum"], row["received_tok"]
    rules = listed(row["output_rules"])
    if received is None:
        return f"at {row['level']} text is missing ({rules})"
    if claimed is not None and received >= claimed:  # a client that claims nothing for an answer without text
        return f"at {row['level']} some answers have no text ({rules})"
    of = "" if claimed is None else f" of {claimed:,.0f} claimed tokens"
    return (
        f"at {row['level']} {'none' if received == 0 else f'{received:,.0f}'}{of or ' of the tokens'} came back as text"
    )


def _window(case: Case, run_id: str, instance: str | None) -> dict[str, Any] | None:
    """When the run went on, on the clock of the server that failed first where that was joined."""
    mine = case.windows.filter(pl.col("run_id") == run_id).drop_nulls("started_at")
    rows = mine.sort(pl.col("instance") != pl.lit(instance), "instance", nulls_last=True)
    return rows.row(0, named=True) if rows.height else None
