"""How many requests fit into the memory of each side, against the users that were asked for."""

from collections.abc import Iterator

import altair as alt
import polars as pl

from pdkit.capacity import Capacity, Seen, Side
from pdkit.capacity import capacity as arithmetic
from pdkit.charts.levels import greatest, named, provenance, refused, with_taken
from pdkit.charts.theme import (
    AXIS,
    CLAIMED_FILL,
    INK,
    REFUSED,
    REFUSED_FILL,
    ROLE_COLOURS,
    Picture,
    heading,
    in_words,
    layered,
    picture,
)
from pdkit.machines import Machines
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, Judgement
from pdkit.units import listed, plural, show

_TITLE = "How many requests fit, against the users asked, level by level?"
_PRINTED = METRICS["output_throughput_tok_per_s"]
_BARS_PX, _ROW_PX, _NAME_PX, _HEAD_PX, _LINE_PX = 272, 34, 100, 8, 15
_EXPERIMENTS, _LEVELS = 12, 40  # a longer figure is a table; what is left out is counted
_HALF = 0.5  # of a request is less than one that waits
_ROOM = 1.05  # of the axis beyond the greatest number
_TOLD = [
    alt.Tooltip("level:N", title="Level"),
    alt.Tooltip("verdict:N", title="Verdict"),
    alt.Tooltip("asked:Q", title="Requests in flight that were asked for", format=",.1f"),
    alt.Tooltip("median:Q", title="Ran on decode, median", format=",.1f"),
    alt.Tooltip("most:Q", title="Ran on decode, most", format=",.1f"),
]


@chart(question=_TITLE, evidence=True)
def capacity(judgement: Judgement, *, machines: Machines | None = None) -> Picture:
    """Each row is a level: the pale bar is what was asked for, a line in the colour of a side is what fits into it.

    The band around a line is what fits for other draws of prompts. What of a bar lies beyond the line of decode waits
    for memory; beyond that of prefill it waits for prompts to leave, which they do once their KV cache has moved. The
    dot is what ran on the side that decodes while the run lasted, its whisker the most that ever did. The speed is the
    most that the memory of the GPU allows for so many requests, with the precision of the weights in brackets.
    """
    runs = _runs(judgement)
    known = [one for one in arithmetic(judgement, machines=machines) if any(side.fit for side in one.sides)]
    if not known:
        lack = "No log states how many tokens the KV pool of a server holds, or no prompt lengths are known."
        return in_words(lack, title=_TITLE, notes=[provenance(runs)])
    shown = known[:_EXPERIMENTS]
    panels = [panel for one in shown for panel in _panels(one, runs, last=one is shown[-1])]
    left_out = judgement.verdicts["experiment"].n_unique() - len(shown)
    key = "Pale: users asked, or requests in flight on average. Lines: what fits on each side. Dot: what ran."
    more = f"{plural(left_out, 'experiment')} without a pool that is known, or more than fit here." if left_out else ""
    said = " ".join(_described(one) for one in shown)
    return picture(
        panels, title=_TITLE, notes=[provenance(runs), key, more], description=f"{said} {refused(runs)}."
    )  # fmt: skip


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run: title of its experiment, rank of its level, and whether what it printed is a mere claim."""
    return with_taken(named(judgement.verdicts), judgement, _PRINTED.name)


def _rows(one: Capacity, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a run of an experiment, in the order of levels, with its words."""
    schema = {"run_id": pl.String(), "asked": pl.Float64(), "median": pl.Float64(), "most": pl.Float64()}
    seen = {run.run_id: run for run in one.seen}
    numbers = [(run.run_id, run.asked, run.running_median, run.running_max) for run in one.seen]
    placed = runs.join(pl.DataFrame(numbers, schema=schema, orient="row"), on="run_id", maintain_order="left")
    again = pl.format("{}, run {}", "level", pl.int_range(pl.len()).over("level") + 1)
    row = pl.when(pl.len().over("level") > 1).then(again).otherwise("level")
    words = [_beside(seen[run_id], one, taken=taken) for run_id, taken in placed.select("run_id", "taken").iter_rows()]
    chosen = placed.with_columns(row.alias("row"), pl.Series("words", words, pl.String)).head(_LEVELS)
    return chosen.select("row", "level", "verdict", "asked", "median", "most", "words", "taken")


def _beside(seen: Seen, one: Capacity, *, taken: bool) -> str:
    """What stands beside a bar: how much of it fits, and what the tool printed against what can be given."""
    limit = one.limit or next((side for side in one.sides if side.fit), None)
    if seen.asked is None or limit is None or limit.fit is None:
        first = "not known how many were asked for"
    else:
        more = seen.asked - limit.fit.typical
        fits = f"{more:,.0f} more than fit on {limit.role}" if more >= _HALF else f"all fit on {limit.role}"
        first = f"{seen.asked:,.0f} {'asked' if seen.is_cap else 'in flight'}, {fits}"
    if seen.claimed_tok_per_s is None:
        return f"{first}\nno throughput printed"
    mark = f", {CLAIMED}" if taken else ""
    return f"{first}\nprinted: {seen.claimed_tok_per_s:,.2f} tok/s{mark}"


def _panels(one: Capacity, runs: pl.DataFrame, *, last: bool) -> Iterator[alt.LayerChart]:
    """The names of the lines, then the levels."""
    rows = _rows(one, runs)
    sides = _sides(one)
    most = greatest(rows["asked"], rows["most"], sides["high"]) * _ROOM or 1.0
    scale = alt.Scale(domain=[0, most], nice=False)
    yield _named(sides, one)
    yield _levels(rows, sides, scale, last=last)


def _sides(one: Capacity) -> pl.DataFrame:
    known = [(side, side.fit) for side in one.sides if side.fit]
    made = [
        (side.role, float(fit.low), float(fit.typical), float(fit.high), _says(side)) for side, fit in known
    ]  # fmt: skip
    schema = {
        "role": pl.String(), "low": pl.Float64(), "typical": pl.Float64(), "high": pl.Float64(), "says": pl.String()
    }  # fmt: skip
    return pl.DataFrame(made, schema=schema, orient="row")


def _says(side: Side) -> str:
    """`decode holds 2 requests (1 to 3) in 2,925 tok: at most 71 tok/s (fp8, assumed)`."""
    fit = side.fit
    assert fit is not None
    what = "prompt" if side.role == "prefill" else "request"
    between = f" ({fit.low:,} to {fit.high:,})" if fit.low != fit.high else ""
    held = f"{side.role} holds {plural(fit.typical, what)}{between} in {show(side.pool_tok, 'tok')}"
    if side.role == "prefill" or side.ceiling_tok_per_s is None:
        return held
    return f"{held}: at most {side.ceiling_tok_per_s:,.0f} tok/s ({side.weights})"


def _colour() -> alt.Color:
    scale = alt.Scale(domain=list(ROLE_COLOURS), range=list(ROLE_COLOURS.values()))
    return alt.Color("role:N", scale=scale, legend=None)


def _named(sides: pl.DataFrame, one: Capacity) -> alt.LayerChart:
    """What each line is, in its colour, under the name of the experiment."""
    base = alt.Chart(sides.select("role", "says")).encode(y=alt.Y("says:N", sort=None, axis=None))
    lines = base.mark_tick(thickness=2.5, height=11, orient="vertical", opacity=1).encode(
        x=alt.value(4), color=_colour()
    )
    words = base.mark_text(align="left", fontSize=12).encode(x=alt.value(14), text="says:N", color=_colour())
    head = layered(lines, words, width=_BARS_PX, height=_LINE_PX * sides.height + _HEAD_PX)
    head.title = heading(one.title)
    return head


def _levels(rows: pl.DataFrame, sides: pl.DataFrame, scale: alt.Scale, *, last: bool) -> alt.LayerChart:
    side = {"minExtent": _NAME_PX, "maxExtent": _NAME_PX, "labelLimit": _NAME_PX - 8, "labelPadding": 7}
    two_lines = "split(replace(datum.label, ' (', '\\n('), '\\n')"
    names = alt.Axis(title=None, labelExpr=two_lines, ticks=False, domain=False, **side)  # type: ignore[arg-type]
    base = alt.Chart(rows).encode(y=alt.Y("row:N", sort=rows["row"].to_list(), axis=names), tooltip=_TOLD)
    across = alt.Axis(title="Requests at once" if last else None, tickCount=5, grid=False, format=",~f")
    edge = alt.condition("datum.taken", alt.value(REFUSED), alt.value(AXIS))
    pale = alt.condition("datum.taken", alt.value(REFUSED_FILL), alt.value(CLAIMED_FILL))
    asked = base.mark_bar(strokeWidth=0.8, height=20).encode(
        x=alt.X("asked:Q", scale=scale, axis=across), fill=pale, stroke=edge
    )
    height = _ROW_PX * rows.height
    lines = alt.Chart(sides)
    bands = lines.mark_rect(opacity=0.18).encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q", y=alt.value(0), y2=alt.value(height), color=_colour()
    )
    rules = lines.mark_rule(strokeWidth=2.2).encode(x=alt.X("typical:Q", scale=scale), color=_colour())
    ran = base.transform_filter("isValid(datum.most)")
    whisker = ran.mark_rule(color=INK, strokeWidth=1.4).encode(x=alt.X("median:Q", scale=scale), x2="most:Q")
    dot = ran.mark_point(filled=True, size=46, color=INK, opacity=1).encode(x=alt.X("median:Q", scale=scale))
    ink = alt.condition("datum.taken", alt.value(REFUSED), alt.value(INK))
    said = base.mark_text(align="left", lineBreak="\n", lineHeight=13, dy=-6, baseline="middle")
    words = said.encode(x=alt.value(_BARS_PX + 14), text="words:N", color=ink)
    return layered(asked, bands, rules, whisker, dot, words, width=_BARS_PX, height=height)


def _described(one: Capacity) -> str:
    """The lines in words, the limit, and the levels beyond it."""
    parts = [f"{one.title}: {'; '.join(_says(side) for side in one.sides if side.fit)}."]
    if (limit := one.limit) and len(one.sides) > 1:
        parts.append(f"The {limit.role} side fills first.")
    limit = one.limit or next((side for side in one.sides if side.fit), None)
    fits = limit.fit.typical if limit and limit.fit else 0
    beyond = list(dict.fromkeys(seen.level for seen in one.seen if seen.asked is not None and seen.asked > fits))
    if beyond:
        more = f" and {len(beyond) - 6} more levels" if len(beyond) > 6 else ""
        parts.append(f"More than fit were asked for at {listed(beyond[:6])}{more}.")
    return " ".join(parts)
