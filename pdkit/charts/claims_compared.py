"""The two sides of a claim, as what they measured: a bar where something was, a slot with words where nothing was."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import altair as alt
import polars as pl

from pdkit.charts.levels import greatest, named, provenance, refused, with_taken
from pdkit.charts.lines import finite
from pdkit.charts.theme import (
    CLAIMED_FILL,
    INK,
    PLOT_PX,
    QUIET,
    RECEIVED,
    REFUSED,
    REFUSED_FILL,
    Panel,
    Picture,
    heading,
    in_words,
    layered,
    picture,
)
from pdkit.errors import PdkitError
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, UNVERIFIED, Judgement
from pdkit.units import listed, plural, show

_TITLE = "What do the two sides of the claim measure?"
_CLAIM, _CAME = METRICS["output_throughput_tok_per_s"], METRICS["received_throughput_tok_per_s"]
_NAME_PX, _ROW_PX, _BAR_PX, _SLOT_PX = 108, 58, 22, 40
_BARS_PX = PLOT_PX - _NAME_PX + 40
_RULES = 5  # of a refusal, in a slot; the section "No measured result" lists every one
_HEADROOM = 1.02  # above the greatest bar
_SIDES, _LEVELS = 12, 24  # a longer figure is a table; what is left out is counted
_SUSPECT, _BASELINE = "Suspect", "Baseline"
_TOLD: Final = {
    "side": "Side", "level": "Level", "verdict": "Verdict", "words": "Measured", "claim": "Claimed",
}  # fmt: skip


@chart(question=_TITLE, evidence=True)
def claims_compared(judgement: Judgement, *, suspect: Sequence[str] = (), baseline: Sequence[str] = ()) -> Picture:
    """Each row is a level of one side: a bar is what came back as text a second, and was measured.

    A side without a measured result has no bar: its slot says so, with the rules, and what it printed stands there as
    "claimed, not measured". Two bars are no comparison yet: repeats, load and cards decide that. `suspect` and
    `baseline` name runs or experiments (a folder stands for all below it); without them each experiment is a side.
    """
    every = _runs(judgement)
    sides = _sides(every, suspect=suspect, baseline=baseline)
    notes = [provenance(sides)]
    if sides.is_empty():
        return in_words("There are no runs on either side.", title=_TITLE, notes=notes)
    shown = _few(sides)
    hidden = sides.height - shown.height
    top = greatest(shown["received"]) * _HEADROOM
    names = shown["side"].unique(maintain_order=True).to_list()
    with_bars = shown.filter(pl.col("received").is_not_null())["side"]
    lowest = with_bars[-1] if with_bars.len() else None  # the axis stands below the last panel that has bars
    panels = [_panel(shown.filter(pl.col("side") == name), name, top=top, axis=name == lowest) for name in names]
    said = _concluded(shown, by_name=bool(suspect or baseline))
    more = f"{plural(hidden, 'run')} more than fit here." if hidden else ""
    return picture(
        panels, title=_TITLE, notes=[*notes, said, f"{refused(shown)}.", more],
        description=f"{' '.join(_described(shown))} {said}",
    )  # fmt: skip


# --- the sides ------------------------------------------------------------------------------------------------------


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run: what it claims, and what may be published as received; null where a rule took it."""
    claimed = judgement.facts.select("run_id", finite(_CLAIM.name).alias("claimed"))
    may = judgement.for_results.wide(_CAME.name).select("run_id", finite(_CAME.name).alias("received"))
    voided = judgement.published.filter(pl.col("fact") == _CAME.name).select("run_id", "voided_by")
    runs = named(judgement.verdicts)
    for part in (claimed, may, voided):
        runs = runs.join(part, on="run_id", how="left", maintain_order="left")
    lost = pl.col("verdict") == NO_RESULT
    rules = pl.when(lost).then("refused_by").otherwise(pl.col("voided_by").fill_null([])).alias("rules")
    return with_taken(runs, judgement, _CLAIM.name, _CAME.name).with_columns(
        pl.when(~lost & ~pl.col("taken")).then("received").alias("received"), rules
    )


def _sides(runs: pl.DataFrame, *, suspect: Sequence[str], baseline: Sequence[str]) -> pl.DataFrame:
    """The runs of each side with `side`, its name; each experiment is one where nobody said which are."""
    if not suspect and not baseline:
        return runs.with_columns(_basis(pl.col("title")).alias("side"))
    parts = ((_SUSPECT, suspect), (_BASELINE, baseline))
    return pl.concat([
        _chosen(runs, names).with_columns(pl.format("{}: {}", pl.lit(side), _basis(pl.col("title"))).alias("side"))
        for side, names in parts
    ])  # fmt: skip


def _basis(title: pl.Expr) -> pl.Expr:
    """The name of an experiment with its cards: a side with more of them is no equal."""
    count = pl.col("gpu_count").cast(pl.Int64, strict=False)
    cards = pl.format(", {} × {}", count, pl.col("gpu").fill_null("GPU"))
    return pl.concat_str(title, cards.fill_null(""))


def _chosen(runs: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The runs of these names: a run, an experiment, or all experiments below a folder."""
    for name in names:
        if runs.filter(_is(name)).is_empty():
            known = listed(runs["experiment"].drop_nulls().unique(maintain_order=True).to_list()[:5])
            raise PdkitError(f"claims_compared: {name!r} is no run or experiment; a run_id or one of {known} would be")
    return runs.filter(pl.any_horizontal(False, *(_is(name) for name in names)))


def _is(name: str) -> pl.Expr:
    folder = f"{name.rstrip('/')}/"
    experiment = pl.col("experiment").fill_null("")
    return (pl.col("run_id") == name) | (experiment == name) | experiment.str.starts_with(folder)


def _few(sides: pl.DataFrame) -> pl.DataFrame:
    """As many sides and levels as a figure holds."""
    names = sides["side"].unique(maintain_order=True).to_list()[:_SIDES]
    each = _LEVELS if len(names) <= 2 else max(1, 2 * _LEVELS // len(names))
    kept = sides.filter(pl.col("side").is_in(names))
    return kept.filter(pl.int_range(pl.len()).over("side") < each)


# --- how ------------------------------------------------------------------------------------------------------------


def _panel(runs: pl.DataFrame, name: str, *, top: float, axis: bool) -> Panel:
    again = pl.format("{}, run {}", "level", pl.int_range(pl.len()).over("level") + 1)
    row = pl.when(pl.len().over("level") > 1).then(again).otherwise("level").alias("row")
    words = pl.Series("words", [_measured(*values) for values in runs.select(_OF_A_RUN).iter_rows()], pl.String)
    claim = pl.Series(
        "claim", [_claimed(*values) for values in runs.select("claimed", "taken", "received").iter_rows()], pl.String
    )
    kept = ("row", "level", "verdict", "side", "received", "words", "claim", "refused")
    rows = runs.with_columns(row, words, claim, (pl.col("verdict") == NO_RESULT).alias("refused")).select(kept)
    return _drawn(rows, name, top=top, axis=axis)


_OF_A_RUN = ("verdict", "received", "rules")


def _measured(verdict: str, received: float | None, rules: list[str]) -> str:
    """What stands on a row in place of, or beside, its bar."""
    some = ", ".join(rules[:_RULES]) + ("…" if len(rules) > _RULES else "")
    why = f" ({some})" if some else ""
    if verdict == NO_RESULT:
        return f"{NO_RESULT}{why}"
    if received is None:
        return f"throughput refused{why}" if rules else f"{verdict}: nothing shows that text came back"
    return f"{show(received, 'tok/s')} {'received' if verdict == UNVERIFIED else verdict}"


def _claimed(claimed: float | None, taken: bool, received: float | None) -> str:
    if claimed is None:
        return "no throughput printed"
    said = show(claimed, "tok/s")
    return f"{said} {CLAIMED}" if taken or received is None else f"{said} printed"


def _drawn(rows: pl.DataFrame, name: str, *, top: float, axis: bool) -> alt.LayerChart:
    side = {"minExtent": _NAME_PX, "maxExtent": _NAME_PX, "labelLimit": _NAME_PX - 8, "labelPadding": 7}
    two_lines = "split(replace(datum.label, ' (', '\\n('), '\\n')"
    names = alt.Axis(title=None, labelExpr=two_lines, ticks=False, domain=False, **side)  # type: ignore[arg-type]
    told = [alt.Tooltip(f"{field}:N", title=title) for field, title in _TOLD.items()]
    base = alt.Chart(rows).encode(y=alt.Y("row:N", sort=rows["row"].to_list(), axis=names), tooltip=told)
    bare = alt.Chart(rows).encode(y=alt.Y("row:N", sort=rows["row"].to_list(), axis=names))
    layers = [*_slots(base, bare), *_bars(base, bare, rows, top=top, axis=axis)]
    panel = layered(*layers, width=_BARS_PX, height=_ROW_PX * rows.height)
    panel.title = heading(textwrap.shorten(name, 92, placeholder="…"))
    return panel


def _slots(base: alt.Chart, bare: alt.Chart) -> Iterator[alt.Chart]:
    """What has no measured throughput: an empty slot over the whole width, which is no length, and words."""
    empty = "!isValid(datum.received)"
    fill = alt.condition("datum.refused", alt.value(REFUSED_FILL), alt.value(CLAIMED_FILL))
    ink = alt.condition("datum.refused", alt.value(REFUSED), alt.value(QUIET))
    slot = base.transform_filter(empty).mark_rect(
        height=_SLOT_PX, fillOpacity=0.35, strokeWidth=1.2, strokeDash=[5, 4], cornerRadius=3
    )
    yield slot.encode(x=alt.value(0), x2=alt.value(_BARS_PX), fill=fill, stroke=ink)
    text = bare.transform_filter(empty).encode(x=alt.value(12), color=ink)
    yield text.mark_text(align="left", fontSize=12, fontWeight=600, dy=-8).encode(text="words:N")
    yield text.mark_text(align="left", fontSize=11, dy=9).encode(text="claim:N")


def _bars(base: alt.Chart, bare: alt.Chart, rows: pl.DataFrame, *, top: float, axis: bool) -> Iterator[alt.Chart]:
    """What was measured, as a length from zero."""
    if rows["received"].is_null().all():
        return
    below = alt.Axis(title=_CAME.axis, tickCount=5, grid=False) if axis else None
    x = alt.X("received:Q", scale=alt.Scale(domain=[0, top or 1.0], nice=False), axis=below)
    full = "isValid(datum.received)"
    hollow = alt.condition(f"datum.verdict === '{UNVERIFIED}'", alt.value("white"), alt.value(RECEIVED))
    yield (
        base.transform_filter(full)
        .mark_bar(height=_BAR_PX, yOffset=8, strokeWidth=1.4, stroke=RECEIVED)
        .encode(x=x, fill=hollow)
    )
    text = bare.transform_filter(full).encode(x=alt.value(0))
    yield text.mark_text(align="left", fontSize=12, fontWeight=600, dy=-14, color=INK).encode(text="words:N")
    yield text.mark_text(align="right", fontSize=11, dy=-14, color=QUIET).encode(x=alt.value(_BARS_PX), text="claim:N")


# --- in words -------------------------------------------------------------------------------------------------------


def _concluded(runs: pl.DataFrame, *, by_name: bool) -> str:
    """Whether there is anything to compare; no winner is ever named here."""
    measured = runs.group_by("side", maintain_order=True).agg(pl.col("received").is_not_null().any().alias("any"))
    without = measured.filter(~pl.col("any"))["side"].to_list()
    if measured.height == 1:
        return "One side only: there is nothing to compare."
    if len(without) == measured.height:
        return "No side has a measured throughput: there is nothing to compare."
    if without:
        who = f"the {without[0].partition(':')[0].lower()}" if by_name else plural(len(without), "experiment")
        return f"No winner: {who} {'has' if len(without) == 1 else 'have'} no measured throughput."
    return "Single bars name no winner: repeats under equal load would."


def _described(runs: pl.DataFrame) -> Iterator[str]:
    for (side,), part in runs.group_by("side", maintain_order=True):
        said = [
            f"{level}: {_measured(verdict, received, rules)}, {_claimed(claimed, taken, received)}"
            for level, verdict, received, rules, claimed, taken in part.select(
                "level", "verdict", "received", "rules", "claimed", "taken"
            ).head(6).iter_rows()
        ]  # fmt: skip
        more = f"; and {part.height - 6} more" if part.height > 6 else ""
        yield f"{side}. {'; '.join(said)}{more}."
