"""The distribution of TTFT, level by level, with what cannot be a TTFT beside the axis."""

import math
from dataclasses import dataclass, replace

import altair as alt
import polars as pl

from pdkit.charts.levels import named, provenance, refused, titles, with_taken
from pdkit.charts.theme import (
    LEVEL_SCHEME,
    PAGE_PX,
    QUIET,
    REFUSED,
    REFUSED_FILL,
    Picture,
    heading,
    in_words,
    layered,
    picture,
)
from pdkit.facts import one_listing
from pdkit.metrics import CLOCKS, METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, Judgement
from pdkit.units import plural

_TITLE = "How long do users wait for the first token, level by level?"
_AXIS = f"{CLOCKS['ttft_ms'][0]} ({METRICS['ttft_ms_mean'].unit})"
# Where a statistic lies on the curve of its run. A mean lies on none and stands at the foot.
_SHARE_OF = {"mean": 0.0, "median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_SHAPE_OF = {"mean": "triangle-up", "median": "circle", "p90": "diamond", "p95": "triangle-right", "p99": "square"}
# Shares at which a long curve is read off, exact order statistics: every percent, finer above the 99th percentile.
_SHARES = (*(k / 100 for k in range(99)), *((990 + k) / 1000 for k in range(11)))
_SMALL = 200  # requests; below this every one is drawn
_ROWS, _EXPERIMENTS, _LEVELS = 1_500, 12, 25  # points of all curves, panels, and curves of one; the rest is counted
_NAME_PX, _Y_PX = 150, 58
_KIND_PX, _STRIP_PX = 62, 252  # of one kind, and of all together at most
# What cannot stand on a log axis of possible times.
_KINDS = ("0 ms", "negative", "not a number", "above E2E", "failed", "no TTFT")
_TOLD = [
    alt.Tooltip("level:N", title="Level"),
    alt.Tooltip("verdict:N", title="Verdict"),
    alt.Tooltip("ms:Q", title=_AXIS, format=",.2f"),
    alt.Tooltip("share:Q", title="Share of requests", format=".1%"),
]


@chart(question=_TITLE, evidence=True)
def ttft_by_concurrency(judgement: Judgement) -> Picture:
    """Each step curve is a level: the share of its requests that had a first token by then. Time is on a log axis.

    A curve that ends below 100 % has requests without a possible TTFT: they are counted in the strip beside the axis
    and never drawn on it. Dashed curves are claimed, not measured. Where only a summary exists, its statistics are
    marks; a mean lies on no curve and stands at the foot.
    """
    runs = with_taken(named(judgement.verdicts), judgement, "ttft_ms_mean")
    shown = titles(runs)[:_EXPERIMENTS]
    fits = pl.col("title").is_in(shown) & (pl.int_range(pl.len()).over("title") < _LEVELS)
    drawn = _drawn(judgement, runs.filter(fits))
    if drawn.requests.is_empty() and drawn.summaries.is_empty():
        return in_words("No run lists its requests or states a TTFT.", title=_TITLE, notes=[provenance(runs)])
    panels = [_panel(drawn.of(title), title, last=title == shown[-1]) for title in shown]
    left_out = runs.height - drawn.runs.height
    words = "Summary only: statistics as printed, where no file lists the requests."
    notes = [
        provenance(runs),
        words if drawn.summaries.height else "",
        f"{plural(left_out, 'run')} more than fit here." if left_out else "",
    ]
    return picture(panels, title=_TITLE, notes=notes, description=_described(runs, drawn.requests))


# --- what is drawn --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Drawn:
    """Rows of the chart, and what all of its panels share."""

    runs: pl.DataFrame
    requests: pl.DataFrame
    curves: pl.DataFrame
    summaries: pl.DataFrame
    strip: pl.DataFrame
    kinds: list[str]
    domain: tuple[float, float]
    ranks: tuple[int, int]

    @property
    def width(self) -> float:
        """Of the plot: what names and strip leave."""
        return PAGE_PX - _NAME_PX - self.kind_width * len(self.kinds) - _Y_PX - 36

    @property
    def kind_width(self) -> float:
        """Of one column of the strip."""
        return min(_KIND_PX, _STRIP_PX / len(self.kinds))

    def of(self, title: str) -> "_Drawn":
        """The rows of one experiment."""
        mine = pl.col("title") == title
        return replace(
            self,
            runs=self.runs.filter(mine),
            requests=self.requests.filter(mine),
            curves=self.curves.filter(mine),
            summaries=self.summaries.filter(mine),
            strip=self.strip.filter(mine),
        )


def _drawn(judgement: Judgement, runs: pl.DataFrame) -> _Drawn:
    requests = _requests(judgement, runs)
    curves = _curves(requests)
    summaries = _summaries(judgement, runs.join(requests, on="run_id", how="anti", maintain_order="left"))
    strip = _strip(requests, summaries, runs)
    kinds = [kind for kind in _KINDS if kind in strip["kind"]] or [""]
    ranks = (int(runs["rank"].min() or 0), int(runs["rank"].max() or 0)) if runs.height else (0, 0)  # type: ignore[arg-type]
    return _Drawn(runs, requests, curves, summaries, strip, kinds, _domain(curves["ms"], summaries["ms"]), ranks)


def _requests(judgement: Judgement, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a request: its `ms` where that is possible, and else of which `kind` it is."""
    ttft, e2e = pl.col("ttft_ms"), pl.col("e2e_ms")
    broken = ttft.is_null() & (pl.col("nonfinite_count") > 0).fill_null(False)
    kind = (
        pl.when(~pl.col("ok")).then(pl.lit("failed"))
        .when(broken | ~ttft.is_finite()).then(pl.lit("not a number"))
        .when(ttft.is_null()).then(pl.lit("no TTFT"))
        .when(ttft < 0).then(pl.lit("negative"))
        .when(ttft == 0).then(pl.lit("0 ms"))
        .when(ttft > e2e).then(pl.lit("above E2E"))
    )  # fmt: skip
    listed = one_listing(judgement.evidence).select("run_id", "ttft_ms", kind.alias("kind"))
    possible = listed.with_columns(pl.when(pl.col("kind").is_null()).then("ttft_ms").alias("ms")).drop("ttft_ms")
    return (
        runs.lazy().select("run_id", "title", "level", "rank", "verdict", "taken").join(possible, on="run_id").collect()
    )


def _curves(requests: pl.DataFrame) -> pl.DataFrame:
    """Points of the curves: exact order statistics, each with the share of all requests that had come by then."""
    whole = requests.with_columns(pl.len().over("run_id").alias("n")).filter(pl.col("ms").is_not_null())
    place = pl.int_range(1, pl.len() + 1).over("run_id").alias("place")
    ordered = whole.sort("run_id", "ms").with_columns(place, pl.len().over("run_id").alias("possible"))
    runs = ordered.select("run_id", pl.col("possible").cast(pl.Int64)).unique()
    small = pl.col("possible") < _SMALL
    rows = int(runs.select(pl.when(small).then("possible").otherwise(len(_SHARES)).sum()).item() or 0)
    count = max(4, _ROWS // max(1, runs.height))
    shares = _SHARES if rows <= _ROWS else (*(k / count for k in range(count)), 1.0)
    rank = (pl.col("share") * pl.col("possible")).ceil().cast(pl.Int64).clip(lower_bound=1).alias("place")
    read_off = runs.join(pl.DataFrame({"share": shares}), how="cross").select("run_id", rank).unique()
    chosen = pl.struct("run_id", "place").is_in(read_off.select(pl.struct("run_id", "place")).to_series().implode())
    kept = ordered.filter(chosen | (small & pl.lit(rows <= _ROWS)))
    share = (pl.col("place") / pl.col("n")).round(6).alias("share")
    about = pl.col("run_id", "title", "level", "rank", "verdict", "taken", "possible")
    return kept.select(about, pl.col("ms").round_sig_figs(6), share).sort("rank", "run_id", "share")


def _summaries(judgement: Judgement, runs: pl.DataFrame) -> pl.DataFrame:
    """Statistics of runs without requests: those that may be published, and of refused runs those claimed."""
    facts = {f"ttft_ms_{statistic}": statistic for statistic in _SHARE_OF}
    sides = ((judgement.published, ~pl.col("taken")), (judgement.claimed, pl.col("taken")))
    number = ["run_id", "fact", "value"]
    rows = pl.concat(side.select(number).join(runs.filter(kept).select("run_id"), on="run_id") for side, kept in sides)
    stated = rows.filter(pl.col("fact").is_in(list(facts)), pl.col("value").is_finite(), pl.col("value") > 0).select(
        "run_id",
        pl.col("fact").replace_strict(facts, return_dtype=pl.String).alias("statistic"),
        pl.col("value").round_sig_figs(6).alias("ms"),
    )
    share = pl.col("statistic").replace_strict(_SHARE_OF, return_dtype=pl.Float64).alias("share")
    about = runs.select("run_id", "title", "level", "rank", "verdict")
    return about.join(stated, on="run_id", maintain_order="left").with_columns(share)


def _strip(requests: pl.DataFrame, summaries: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """One row a run and kind: its `name`, and how many of its requests have no place on the axis."""
    seen = requests.group_by("run_id").agg(pl.len().alias("n"))
    summed = summaries.select("run_id", pl.lit(True).alias("summed")).unique()
    kinds = requests.filter(pl.col("kind").is_not_null()).group_by("run_id", "kind").agg(pl.len().alias("count"))
    every = runs.select("run_id", "title", "level", "rank", "taken").join(seen, on="run_id", how="left")
    every = every.join(summed, on="run_id", how="left").sort("rank", "run_id").with_columns(_name())
    return every.join(kinds, on="run_id", how="left").sort("rank", "run_id", "kind")


def _name() -> pl.Expr:
    """The level, how many requests it has, and that they are only claimed where they are."""
    counted, summed = pl.col("n").is_not_null(), pl.col("summed").is_not_null()
    what = pl.when(counted).then(pl.format("n = {}", "n")).when(summed).then(pl.lit("summary"))
    number = pl.format("{} #{}", "level", pl.int_range(1, pl.len() + 1).over("title", "level"))
    level = pl.when(pl.len().over("title", "level") > 1).then(number).otherwise("level")
    held, below = level.str.replace(r" \(.*\)$", ""), level.str.extract(r" (\(.*\))$")
    below = pl.format("\n{}", below).fill_null("")
    claimed = pl.col("taken") & (counted | summed)
    mark = below + pl.when(claimed).then(pl.lit(f"\n{CLAIMED}")).otherwise(pl.lit(""))
    return pl.concat_str(held, pl.lit(", "), what.otherwise(pl.lit("no TTFT")), mark).alias("name")


def _domain(*numbers: pl.Series) -> tuple[float, float]:
    """The ends of the log axis: about a decade where there is nothing, or a single value."""
    every = pl.concat([series.cast(pl.Float64) for series in numbers])
    low, high = every.min(), every.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return 100.0, 1_000.0
    return (low / 1.15, high * 1.15) if high > low * 1.5 else (low / 3, high * 3)


# --- panels ---------------------------------------------------------------------------------------------------------


def _panel(drawn: _Drawn, title: str, *, last: bool) -> alt.HConcatChart:
    names = drawn.strip["name"].unique(maintain_order=True).to_list()
    height = max(140, 34 * len(names))
    low, high = drawn.ranks
    scale = alt.Scale(domain=[low, max(high, low + 1)], scheme=LEVEL_SCHEME)
    colour = alt.Color("rank:Q", scale=scale, legend=None)
    sides = [_table(drawn, names, colour=colour, height=height), _plot(drawn, colour=colour, height=height, last=last)]
    return alt.HConcatChart(hconcat=sides, spacing=10, title=heading(title))


def _table(drawn: _Drawn, names: list[str], *, colour: alt.Color, height: float) -> alt.LayerChart:
    """The levels with their colours, and beside each how many requests are of each impossible kind."""
    side = {"minExtent": _NAME_PX - 8, "maxExtent": _NAME_PX - 8, "labelLimit": _NAME_PX - 18, "labelPadding": 16}
    axis = alt.Axis(title=None, labelExpr="split(datum.label, '\\n')", ticks=False, domain=False, **side)  # type: ignore[arg-type]
    y = alt.Y("name:N", sort=names, scale=alt.Scale(domain=names), axis=axis)
    found = alt.Chart(drawn.strip.filter(pl.col("kind").is_not_null()).select("name", "kind", "count"))
    x = alt.X("kind:N", scale=alt.Scale(domain=drawn.kinds), axis=_kinds_axis(drawn))
    cells = found.mark_rect(fill=REFUSED_FILL, height=24, width=drawn.kind_width - 6).encode(x=x, y=y)
    counts = found.mark_text(color=REFUSED, fontSize=11).encode(x=x, y=y, text=alt.Text("count:Q", format=","))
    clean = pl.col("n").is_not_null() & pl.col("kind").is_null()
    none = alt.Chart(drawn.strip.filter(clean).select("name", pl.lit(drawn.kinds[0]).alias("kind")))
    key = alt.Chart(drawn.strip.select("name", "rank").unique(maintain_order=True))
    swatch = key.mark_point(shape="square", filled=True, size=80, opacity=1).encode(x=alt.value(-7), y=y, color=colour)
    quiet = none.mark_text(text="none", color=QUIET, fontSize=10).encode(x=x, y=y)
    return layered(swatch, cells, counts, quiet, width=drawn.kind_width * len(drawn.kinds), height=height)


def _kinds_axis(drawn: _Drawn) -> alt.Axis:
    look = {
        "orient": "top",
        "labelAngle": 0,
        "labelFontSize": 10,
        "labelPadding": 2,
        "labelExpr": "split(datum.label, ' ')",
    }
    bare = {"ticks": False, "domain": False, "grid": False, "titlePadding": 3, "titleFontSize": 11}
    title = None if drawn.requests.is_empty() else "not on the axis"
    return alt.Axis(title=title, titleColor=REFUSED, **look, **bare)  # type: ignore[arg-type]


def _plot(drawn: _Drawn, *, colour: alt.Color, height: float, last: bool) -> alt.LayerChart:
    ticks = alt.Axis(title=_AXIS if last else None, values=_ticks(*drawn.domain), format=",~g")
    x = alt.X("ms:Q", scale=alt.Scale(type="log", domain=list(drawn.domain), nice=False), axis=ticks)
    shares = alt.Axis(title="Share of requests", format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1.02], nice=False), axis=shares)
    rows = drawn.curves.select("run_id", "level", "rank", "verdict", "taken", "ms", "share")
    foot = rows.group_by("run_id", maintain_order=True).first().with_columns(pl.lit(0.0).alias("share"))
    stepped = pl.concat([foot.select(rows.columns), rows]).sort("rank", "run_id", "share", "ms")
    dash = alt.Scale(domain=[False, True], range=[[1, 0], [5, 3]])
    curve = alt.Chart(stepped).encode(
        x=x, y=y, color=colour, detail="run_id:N", strokeDash=alt.StrokeDash("taken:N", scale=dash, legend=None)
    )
    small = alt.Chart(drawn.curves.filter(pl.col("possible") < _SMALL).select(rows.columns))
    points = small.mark_point(filled=True, size=14, opacity=0.9).encode(x=x, y=y, color=colour, tooltip=_TOLD)
    layers = [curve.mark_line(interpolate="step-after", strokeWidth=1.8), points]
    layers += _summary_marks(drawn.summaries, x=x, y=y, colour=colour)
    if drawn.curves.is_empty() and drawn.summaries.is_empty():
        layers.append(_nothing(drawn.width, height))
    return layered(*layers, width=drawn.width, height=height)


def _summary_marks(summaries: pl.DataFrame, *, x: alt.X, y: alt.Y, colour: alt.Color) -> list[alt.Chart]:
    stated = [name for name in _SHAPE_OF if name in summaries["statistic"]]
    if not stated:
        return []
    scale = alt.Scale(domain=list(_SHAPE_OF), range=list(_SHAPE_OF.values()))
    legend = alt.Legend(title="Summary only:", values=stated, symbolFillColor=QUIET, symbolStrokeColor=QUIET)
    shape = alt.Shape("statistic:N", scale=scale, legend=legend)
    told = [*_TOLD[:3], alt.Tooltip("statistic:N", title="Statistic")]
    point = alt.Chart(summaries.select("level", "rank", "verdict", "statistic", "ms", "share"))
    return [point.mark_point(filled=True, size=80, opacity=1).encode(x=x, y=y, color=colour, shape=shape, tooltip=told)]


def _nothing(width: float, height: float) -> alt.Chart:
    placed: alt.Chart = alt.Chart(alt.InlineData(values=[{}])).encode(x=alt.value(width / 2), y=alt.value(height / 2))
    marked: alt.Chart = placed.mark_text(text="no possible TTFT", color=QUIET)
    return marked


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade; of a wide axis only its powers of ten."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 3 else (1,)
    return [tick for power in decades for step in steps if low <= (tick := float(f"{step}e{power}")) <= high]


def _described(runs: pl.DataFrame, requests: pl.DataFrame) -> str:
    beside = requests.filter(pl.col("kind").is_not_null()).group_by("kind").len().sort("len", "kind", descending=True)
    off = ", ".join(f"{count:,} {kind}" for kind, count in beside.iter_rows())
    possible = requests["ms"].drop_nulls().len()
    counted = f"{possible:,} of {plural(requests.height, 'request')} with a possible TTFT"
    what = counted if requests.height else "No file lists requests, so that only summaries are shown"
    return f"TTFT by level. {what}{f'; beside the axis: {off}' if off else ''}. {refused(runs)}."
