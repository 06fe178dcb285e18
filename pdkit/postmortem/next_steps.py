"""What to do next, in order: what the chain asks for, what the rules say, what would make it a result."""

from collections.abc import Iterator
from math import isfinite

import polars as pl

from pdkit.capacity import Side
from pdkit.causes import OUTPUT_RULES
from pdkit.chain import DIED, MEMORY, PREFILL_MEMORY, Link
from pdkit.postmortem.case import PostMortem
from pdkit.postmortem.told import at_levels
from pdkit.results import DOUBTS, MEASURED, UNVERIFIED
from pdkit.rules import CHECKS
from pdkit.stats import LEAST_REPEATS
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Cell, Column, Fold, Group, Part, Section, Table, Task, Tasks, Words
from pdkit.units import listed, plural


def next_steps(case: PostMortem) -> Section:
    """The tasks in order; below them what each rule that failed says to look at, the gravest first."""
    todo, rows = tuple(tasks(case)), tuple(_of_rules(case))
    parts: list[Part] = [Tasks(todo)] if todo else [Words("Nothing has to change for these numbers to be used.")]
    if rows:
        columns = (Column("Rules"), Column("Look at next"))
        table = Table("What the rules say to look at next", columns, (Group("", rows),))
        summary = f"Where to look next, by the {plural(len(rows), 'rule')} that failed"
        parts.append(Fold(summary, (table,)) if todo else table)
    return Section("next_steps", tuple(parts))


def tasks(case: PostMortem) -> Iterator[Task]:
    """What has to change before the next run, in the order of causes; then what would make it a result."""
    yield from _of_chain(case)
    refused = {rule for rules in case.runs["refused_by"] for rule in rules}
    if refused & set(OUTPUT_RULES):
        yield Task(
            "Keep a check that output exists in whatever starts the runs: pdkit check fails a run whose tokens did not "
            "come back as text.",
            "Success counts, HTTP 200 and the printed throughput all stand though nothing came back.",
        )
    yield from _of_results(case)


def _of_chain(case: PostMortem) -> Iterator[Task]:
    """What the links that were seen ask for, once."""
    links = [link for chain in case.suspect_chains for link in chain.links if link.seen]
    told = {task.text: task for link in links for task in _of_link(case, link)}
    yield from told.values()


def _of_link(case: PostMortem, link: Link) -> Iterator[Task]:
    if link.name in (MEMORY, PREFILL_MEMORY):
        yield _memory(case, link)
    if link.name == DIED:
        inherits = "Every transfer to a dead session fails, so each later run inherits it."
        again = f"{sentence(link.what)}. {inherits}" if "did not recover" in link.what else f"{sentence(link.what)}."
        yield Task(
            "Start both servers of the pair again before the next run, and find out what brought it down.", again
        )


def _memory(case: PostMortem, link: Link) -> Task:
    """More memory for the side that ran short, with what the level needs beside what there is."""
    decode = link.name == MEMORY
    role = "decode" if decode else "prefill"
    sides = [side for one in case.suspect_capacities for side in one.sides if (side.role == "prefill") != decode]
    split = any(side.role == "decode" for side in sides)
    lower = ", or a lower --num-reserved-decode-tokens" if split and decode else ""
    name = "server's" if sides and sides[0].role == "colocated" else f"{role} side's"
    text = (
        f"Enlarge the {name} KV pool (a card of its own, a higher --mem-fraction-static, an FP8 KV cache){lower}; "
        "or ask for no more than fits."
    )
    return Task(text, " ".join(_needed(case, sides[0])) if sides else "")


def _needed(case: PostMortem, side: Side) -> Iterator[str]:
    """What the pool holds, beside what the highest load takes."""
    each = next((step for step in side.steps if step.title == "A request takes"), None)
    seen = (run for one in case.suspect_capacities if side in one.sides for run in one.seen)
    most = max((run.asked for run in seen if run.asked is not None and isfinite(run.asked)), default=0)
    if side.fit and side.pool_tok:
        what = "prompts" if side.role == "prefill" else "requests"
        yield f"Its pool of {side.pool_tok:,.0f} tokens: {what} that fit: {side.fit}."
    if each and side.pool_tok and most * each.value > side.pool_tok:
        yield f"{most:,.0f} in flight at {each.value:,.0f} tokens each need about {most * each.value:,.0f}."


def _of_results(case: PostMortem) -> Iterator[Task]:
    """What would make it a result that can be held against another."""
    if case.runs.is_empty():
        yield Task(
            "Name the client's output: its log, or the record that it writes.", "Without it nothing is measured."
        )
    if (case.runs["verdict"] == UNVERIFIED).any():
        yield Task(
            "Keep what shows that text came back: the client's whole output, or its record with --output-details.",
            "Where a filter or a flag drops the retokenized count, nothing does.",
        )
    lost = case.runs.filter(~pl.col("verdict").is_in([MEASURED, DOUBTS]))["level"].to_list()
    if lost:
        again = "Run both sides again in turn" if case.baseline else "Run it again"
        how = f"{LEAST_REPEATS} or more runs a side with one seed; read throughput only where the text came back."
        yield Task(f"{again}, {how}", f"Nothing is known {at_levels(lost)}.")


def _of_rules(case: PostMortem) -> Iterator[tuple[Cell, Cell]]:
    """The Next of each rule that refused or doubted, once, the gravest first."""
    grave = case.findings.filter(pl.col("severity").is_in(["refuse", "suspect"]))
    told: dict[str, list[str]] = {}
    for rule in grave["rule"].unique(maintain_order=True):
        if words := CHECKS[rule].sections.get("Next"):
            told.setdefault(words, []).append(rule)
    for words, rules in told.items():
        yield (Cell(listed(rules), "head"), Cell(words))
