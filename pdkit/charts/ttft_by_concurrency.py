"""The distribution of TTFT, level by level, with what cannot be a TTFT beside the axis."""

import math
from collections.abc import Sequence

import altair as alt
import polars as pl

from pdkit.charts.levels import named, provenance, refused, titles
from pdkit.charts.theme import (
    CLAIMED_FILL,
    INK,
    LEVEL_SCHEME,
    PAGE_PX,
    QUIET,
    REFUSED,
    Panel,
    Picture,
    in_words,
    picture,
)
from pdkit.facts import one_listing
from pdkit.metrics import CLOCKS, METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.units import plural

_TITLE = "How long do users wait for the first token, level by level?"
_AXIS = f"{CLOCKS['ttft_ms'][0]} ({METRICS['ttft_ms_mean'].unit})"
_SUMMED = {
    "mean": None,
    "median": 0.5,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
}  # where on the curve each one lies; a mean lies on none
_SHAPES = {"mean": "triangle-up", "median": "circle", "p90": "diamond", "p95": "triangle-right", "p99": "square"}
# Shares at which a long curve is read off, exact order statistics: every percent, finer above the 99th percentile.
_SHARES = (*(k / 100 for k in range(99)), *(0.99 + k / 1000 for k in range(10)), 1.0)
_SMALL = 200  # requests; below this every one is drawn
_ROWS, _PANELS = 1_700, 12
_LEVEL_PX, _KIND_PX, _Y_PX = 132, 60, 66
# What cannot stand on a log axis of possible times, in the order in which a request is looked at.
_KINDS = ("failed", "not a number", "negative", "0 ms", "above E2E", "no TTFT")


@chart(question=_TITLE, evidence=True)
def ttft_by_concurrency(judgement: Judgement) -> Picture:
    """Each step curve is a level: the share of its requests whose first token had come by then. Time is on a log axis.

    A curve that ends below 100 % has requests without a possible TTFT: they are counted in the strip at the left, and
    never drawn on the axis. Dashed curves are claimed, not measured. Where only a summary exists, its statistics are
    marks; a mean lies on no curve and stands at the foot.
    """
    runs = named(judgement.verdicts)
    shown = titles(runs)[:_PANELS]
    requests = _requests(judgement, runs.filter(pl.col("title").is_in(shown)))
    summaries = _summaries(
        judgement, runs.join(requests.select("run_id").unique(), on="run_id", how="anti", maintain_order="left")
    )
    if requests.is_empty() and summaries.is_empty():
        return in_words("No run lists its requests or states a TTFT.", title=_TITLE, notes=[provenance(runs)])
    curves, strip = _curves(requests), _strip(requests, summaries, runs)
    kinds = [kind for kind in _KINDS if kind in strip["kind"]] or ["impossible"]
    domain = _domain(pl.concat([curves["ms"], summaries["ms"]]))
    panels = [
        _row(title, runs, curves=curves, strip=strip, summaries=summaries, kinds=kinds, domain=domain)
        for title in shown
    ]
    left_out = len(titles(runs)) - len(shown)
    words = "Summary only: statistics as printed, where no file lists the requests." if summaries.height else ""
    notes = [provenance(runs), words, f"{plural(left_out, 'experiment')} more than fit here." if left_out else ""]
    return picture(panels, title=_TITLE, notes=notes, description=_described(runs, requests))


# --- rows -----------------------------------------------------------------------------------------------------------


def _requests(judgement: Judgement, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a request: its `ms` where that is possible, and else of which `kind` it is."""
    ttft, e2e = pl.col("ttft_ms"), pl.col("e2e_ms")
    broken = (pl.col("nonfinite_count") > 0).fill_null(False)
    kind = (
        pl.when(pl.col("ok") == False).then(pl.lit("failed"))  # noqa: E712 - null is not a failure
        .when((ttft.is_null() & broken) | ttft.is_nan() | ttft.is_infinite()).then(pl.lit("not a number"))
        .when(ttft.is_null()).then(pl.lit("no TTFT"))
        .when(ttft < 0).then(pl.lit("negative"))
        .when(ttft == 0).then(pl.lit("0 ms"))
        .when(ttft > e2e).then(pl.lit("above E2E"))
    )  # fmt: skip
    listed = one_listing(judgement.evidence).select(
        "run_id", kind.alias("kind"), pl.when(kind.is_null()).then(ttft).alias("ms")
    )
    return runs.lazy().select("run_id", "title", "level", "rank", "verdict").join(listed, on="run_id").collect()


def _curves(requests: pl.DataFrame) -> pl.DataFrame:
    """Points of the curves: exact order statistics, each with the share of all requests that had come by then."""
    whole = requests.with_columns(pl.len().over("run_id").alias("n")).filter(pl.col("ms").is_not_null())
    ordered = whole.sort("run_id", "ms").with_columns(
        (pl.int_range(pl.len()).over("run_id") + 1).alias("place"), pl.len().over("run_id").alias("possible")
    )
    runs = ordered.select("run_id", "possible").unique()
    small = pl.col("possible") < _SMALL
    rows = int(runs.select(pl.when(small).then("possible").otherwise(len(_SHARES)).sum()).item() or 0)
    shares = _SHARES if rows <= _ROWS else _thinned(max(4, _ROWS // max(1, runs.height)))
    chosen = runs.join(pl.DataFrame({"share": shares}), how="cross").select(
        "run_id", (pl.col("share") * pl.col("possible")).ceil().clip(1, pl.col("possible")).cast(pl.Int64).alias("place"), pl.lit(True).alias("chosen")
    ).unique()  # fmt: skip
    every = small if rows <= _ROWS else pl.lit(False)
    kept = ordered.join(chosen, on=["run_id", "place"], how="left").filter(every | pl.col("chosen"))
    columns = ["run_id", "title", "level", "rank", "verdict", "ms", "n", "possible"]
    return kept.select(
        *columns, pl.col("ms").round_sig_figs(6).alias("at"), (pl.col("place") / pl.col("n")).alias("share")
    ).sort("run_id", "share")


def _thinned(count: int) -> tuple[float, ...]:
    return (*(k / count for k in range(count)), 1.0)


def _summaries(judgement: Judgement, runs: pl.DataFrame) -> pl.DataFrame:
    """Statistics of runs without requests: those that may be published, and of refused runs those claimed."""
    facts = {f"ttft_ms_{statistic}": statistic for statistic in _SUMMED}
    kept = pl.col("fact").is_in(list(facts)) & pl.col("value").is_finite() & (pl.col("value") > 0)
    number = ["run_id", "fact", "value"]
    believed = judgement.published.select(number).join(
        runs.filter(pl.col("verdict") != NO_RESULT).select("run_id"), on="run_id"
    )
    claimed = judgement.claimed.select(number).join(
        runs.filter(pl.col("verdict") == NO_RESULT).select("run_id"), on="run_id"
    )
    rows = pl.concat([believed, claimed]).filter(kept)
    statistic = pl.col("fact").replace_strict(facts, return_dtype=pl.String)
    place = statistic.replace_strict({name: share or 0.0 for name, share in _SUMMED.items()}, return_dtype=pl.Float64)
    stated = rows.select("run_id", statistic.alias("statistic"), pl.col("value").alias("ms"), place.alias("share"))
    return runs.select("run_id", "title", "level", "rank", "verdict", "completed").join(
        stated, on="run_id", maintain_order="left"
    )


def _strip(requests: pl.DataFrame, summaries: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """How many requests of each run are of each kind that has no place on the axis."""
    counted = requests.group_by("run_id").agg(pl.len().alias("n"))
    kinds = requests.filter(pl.col("kind").is_not_null()).group_by("run_id", "kind").agg(pl.len().alias("count"))
    n_summed = summaries.select("run_id").unique().with_columns(pl.lit(True).alias("summed"))
    every = (
        runs.select("run_id", "title", "level", "rank", "verdict")
        .join(counted, on="run_id", how="left")
        .join(n_summed, on="run_id", how="left")
    )
    return every.join(kinds, on="run_id", how="left").sort("title", "rank", "run_id", "kind")


def _domain(ms: pl.Series) -> tuple[float, float]:
    """The ends of the log axis; a decade where there is nothing or one value."""
    low, high = ms.min(), ms.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return 100.0, 1_000.0
    return (low / 1.15, high * 1.15) if high > low * 1.5 else (low / 3, high * 3)


# --- panels ---------------------------------------------------------------------------------------------------------


def _row(
    title: str,
    runs: pl.DataFrame,
    *,
    curves: pl.DataFrame,
    strip: pl.DataFrame,
    summaries: pl.DataFrame,
    kinds: Sequence[str],
    domain: tuple[float, float],
) -> Panel:
    mine = pl.col("title") == title
    own = strip.filter(mine).with_columns(_name().alias("name"))
    names = own["name"].unique(maintain_order=True).to_list()
    height = max(150, 34 * len(names))
    levels = sorted(runs["rank"].unique().to_list())
    colour = alt.Color(
        "rank:Q", scale=alt.Scale(domain=[levels[0], max(levels[-1], levels[0] + 1)], scheme=LEVEL_SCHEME), legend=None
    )
    width = PAGE_PX - _LEVEL_PX - _KIND_PX * len(kinds) - _Y_PX - 24
    left = _table(own, names=names, kinds=kinds, colour=colour, height=height)
    right = _plot(curves.filter(mine), summaries.filter(mine), colour=colour, domain=domain, width=width, height=height)
    heading = alt.TitleParams(text=title, fontSize=12, color=QUIET, limit=600, offset=6, frame="bounds")
    return alt.hconcat(left, right, spacing=4).properties(title=heading)


def _name() -> pl.Expr:
    """The level, how many requests it has, and how far it may be believed."""
    n = (
        pl.when(pl.col("n").is_not_null())
        .then(pl.format("{}, n = {}", "level", "n"))
        .when(pl.col("summed"))
        .then(pl.format("{}, summary", "level"))
    )
    plain = n.otherwise(pl.format("{}, no TTFT", "level"))
    shared = pl.col("run_id").n_unique().over("title", "level") > 1
    own = (
        pl.when(shared)
        .then(pl.format("{} #{}", plain, pl.col("run_id").rank("dense").over("title", "level")))
        .otherwise(plain)
    )
    said = (
        pl.when((pl.col("verdict") == NO_RESULT) & (pl.col("n").is_not_null() | pl.col("summed")))
        .then(pl.lit(f"\n{CLAIMED}"))
        .otherwise(pl.lit(""))
    )
    return pl.concat_str(own, said)


def _table(own: pl.DataFrame, *, names: list[str], kinds: Sequence[str], colour: alt.Color, height: int) -> Panel:
    axis = alt.Axis(
        title=None,
        labelExpr="split(datum.label, '\\n')",
        labelLimit=_LEVEL_PX - 6,
        ticks=False,
        domain=False,
        minExtent=_LEVEL_PX - 10,
        maxExtent=_LEVEL_PX - 10,
    )
    y = alt.Y("name:N", sort=names, scale=alt.Scale(domain=names), axis=axis)
    x_axis = alt.Axis(
        title=None,
        orient="top",
        labelAngle=0,
        labelFontSize=10,
        ticks=False,
        domain=False,
        labelLimit=_KIND_PX,
        labelPadding=2,
    )
    x = alt.X("kind:N", scale=alt.Scale(domain=list(kinds)), axis=x_axis)
    found = own.filter(pl.col("kind").is_not_null()).select("name", "kind", "count", "n")
    lit = alt.Chart(own.select("name", "rank", "verdict").unique(maintain_order=True))
    dash = alt.condition(f"datum.verdict === '{NO_RESULT}'", alt.value([3, 2]), alt.value([1, 0]))
    key = lit.mark_tick(orient="vertical", thickness=3, size=14).encode(
        y=y, x=alt.value(-5), color=colour, strokeDash=dash
    )
    cells = alt.Chart(found).mark_rect(fill=CLAIMED_FILL, stroke="white").encode(x=x, y=y)
    text = alt.Chart(found).mark_text(color=REFUSED, fontSize=11).encode(x=x, y=y, text=alt.Text("count:Q", format=","))
    quiet = own.filter(pl.col("n").is_not_null(), pl.col("kind").is_null()).select(
        "name", pl.lit(kinds[0]).alias("kind")
    )
    none = alt.Chart(quiet).mark_text(text="none", color=QUIET, fontSize=10).encode(x=x, y=y)
    return alt.layer(key, cells, text, none).properties(width=_KIND_PX * len(kinds), height=height)


def _plot(
    curves: pl.DataFrame,
    summaries: pl.DataFrame,
    *,
    colour: alt.Color,
    domain: tuple[float, float],
    width: int,
    height: int,
) -> Panel:
    axis = alt.Axis(title=_AXIS, values=_ticks(*domain), format=",~g", labelFlush=False)
    x = alt.X("at:Q", scale=alt.Scale(type="log", domain=list(domain), nice=False), axis=axis)
    share = alt.Axis(title="Requests answered by then", format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1.02], nice=False), axis=share)
    foot = curves.group_by("run_id", maintain_order=True).first().with_columns(pl.lit(0.0).alias("share"))
    columns = ["run_id", "level", "rank", "verdict", "at", "share", "n"]
    stepped = (
        pl.concat([foot.select(columns), curves.select(columns)])
        .sort("run_id", "share", "at")
        .with_columns((pl.col("verdict") == NO_RESULT).alias("refused"))
    )
    dash = alt.condition("datum.refused", alt.value([5, 3]), alt.value([1, 0]))
    lines = (
        alt.Chart(stepped)
        .mark_line(interpolate="step-after", strokeWidth=1.8)
        .encode(x=x, y=y, color=colour, detail="run_id:N", strokeDash=_dash())
    )
    small = curves.filter(pl.col("possible") < _SMALL).select(columns)
    points = (
        alt.Chart(small).mark_point(filled=True, size=14, opacity=0.9).encode(x=x, y=y, color=colour, tooltip=_TOLD)
    )
    del dash
    summed = summaries.select("level", "rank", "verdict", "statistic", "share", pl.col("ms").alias("at"))
    stated = [name for name in _SHAPES if name in summed["statistic"]]
    shape = alt.Shape(
        "statistic:N",
        scale=alt.Scale(domain=stated, range=[_SHAPES[name] for name in stated]),
        legend=alt.Legend(title="Summary only:"),
    )
    summary = [
        alt.Chart(summed)
        .mark_point(filled=True, size=80, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=[*_TOLD, "statistic:N"])
    ]
    nothing = [_nothing(width, height)] if curves.is_empty() and summaries.is_empty() else []
    return alt.layer(lines, points, *(summary if summed.height else []), *nothing).properties(
        width=width, height=height
    )


def _dash() -> alt.StrokeDash:
    """Dashed where refused: claimed, not measured."""
    return alt.StrokeDash("refused:N", scale=alt.Scale(domain=[False, True], range=[[1, 0], [5, 3]]), legend=None)


def _nothing(width: int, height: int) -> alt.Chart:
    words = alt.Chart(alt.Data(values=[{}])).mark_text(text="no possible TTFT to draw", color=INK)
    return words.encode(x=alt.value(width / 2), y=alt.value(height / 2))


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade; of a wide axis only its powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    return [tick for power in decades for step in steps if low <= (tick := float(f"{step}e{power}")) <= high]


_TOLD = [
    alt.Tooltip("level:N", title="Level"), alt.Tooltip("verdict:N", title="Verdict"), alt.Tooltip("at:Q", title=_AXIS, format=",.2f"),
    alt.Tooltip("share:Q", title="Requests by then", format=".1%"),
]  # fmt: skip


def _described(runs: pl.DataFrame, requests: pl.DataFrame) -> str:
    beside = requests.filter(pl.col("kind").is_not_null()).group_by("kind").len().sort("len", descending=True)
    off = ", ".join(f"{count:,} {kind}" for kind, count in beside.iter_rows())
    possible = requests["ms"].drop_nulls().len()
    counts = (
        f"{possible:,} of {requests.height:,} requests have a possible TTFT"
        if requests.height
        else "No file lists requests: only summaries are shown"
    )
    return f"{counts}{f'; beside the axis: {off}' if off else ''}. {refused(runs)}."
