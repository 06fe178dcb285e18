"""What the servers say of themselves over time: gauges by role, failures as marks, the client's runs shaded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import altair as alt
import polars as pl

from pdkit.charts.levels import greatest, named, provenance, with_taken
from pdkit.charts.lines import finite
from pdkit.charts.theme import (
    AXIS_PX,
    CLAIMED_FILL,
    CROSS,
    FAINT,
    INK,
    PAGE_PX,
    PLOT_PX,
    QUIET,
    REFUSED,
    REFUSED_FILL,
    ROLE_COLOURS,
    Panel,
    Picture,
    in_words,
    layered,
    picture,
    rimmed,
)
from pdkit.metrics import METRICS
from pdkit.parts import chart
from pdkit.results import CLAIMED, NO_RESULT, Judgement
from pdkit.signals import FAILURES, GAUGES
from pdkit.units import listed, plural, show

_TITLE = "What did the servers do while the clients ran?"
_CLAIM = METRICS["output_throughput_tok_per_s"]
_GAUGES = ("running_requests", "prealloc_requests", "transferring_requests", "kv_used_ratio")
_POINTS, _BINS = 2_000, 300  # of the whole figure, and of one line: more than pixels are wide tells no more
_EXPERIMENTS = 4  # a longer figure is a table; what is left out is counted
_TICKS, _WINDOWS, _LANES = 90, 60, 3
_GAUGE_PX, _MARK_PX, _LANE_PX, _CHAR_PX = 62, 25, 15, 6.1
_QUIET_FOR = timedelta(seconds=15)  # and five times the usual pause: a line that went on would claim readings
_PAUSES = 5
_HEADROOM = 1.06  # above the highest reading
_FEW = 4  # requests: so few are counted one by one at the axis, and none in halves
_MARGIN = 0.15  # of what is looked at, to its left and right
_ROUND_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_MOST_TIMES = 7  # named at the axis
_LONG = 6  # logs that are so many times longer than what is looked at are cut to that
_OF_NONE = "role not known"
# what a mark is called; failures of the transfer are one kind, whichever side and step they are of
_MARKS: Final = {
    "retracted": "requests put back for want of memory",
    "queue_full": "transfers turned away",
    "request_rejected": "requests turned away",
    "session_failed": "transfer session died",
    "connection_lost": "peer lost",
    "crashed": "server crashed",
    "transfer_failed": "failed transfers",
    "session_recovered": "session recovered",
}
_MILD = ("session_recovered",)
_OF_A_RUN: Final = {"level": "Level", "verdict": "Verdict", "said": "Printed", "from": "From", "to": "To"}


@dataclass(frozen=True)
class _Scene:
    """What is drawn of one experiment, all on one clock between `start` and `end`."""

    title: str
    readings: pl.DataFrame
    marks: pl.DataFrame
    windows: pl.DataFrame
    start: datetime
    end: datetime
    servers: int
    cut: bool

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start).total_seconds()


@chart(question=_TITLE, evidence=True)
def server_timeline(judgement: Judgement) -> Picture:
    """Each panel is one gauge over time, a line a role; shaded is when a client ran, and vermillion marks are failures.

    Where requests wait for memory on decode while few run, its pool is too small. Where several servers have one role,
    or readings are closer than can be drawn, the line is the greatest of them. It breaks where a server says nothing.
    """
    runs = _runs(judgement)
    scenes = list(_scenes(judgement, runs))
    notes = [provenance(runs)]
    if not scenes:
        return in_words("No log tells what a server did, second by second.", title=_TITLE, notes=notes)
    shown = scenes[:_EXPERIMENTS]
    lines = sum(scene.readings.select("metric", "role").n_unique() for scene in shown)
    bins = max(2, min(_BINS, _POINTS // max(1, lines)))
    roles = _roles(shown)
    panels = [panel for scene in shown for panel in _panels(scene, bins=bins, roles=roles)]
    said = [*notes, *_notes(shown, left_out=len(scenes) - len(shown))]
    return picture(panels, title=_TITLE, notes=said, description=" ".join(_described(scene) for scene in shown))


# --- what is drawn --------------------------------------------------------------------------------------------------


def _runs(judgement: Judgement) -> pl.DataFrame:
    """One row a run, with `said`: the throughput that its client printed, and whether that is a mere claim."""
    printed = judgement.facts.select("run_id", finite(_CLAIM.name).alias("printed"))
    runs = named(judgement.verdicts).join(printed, on="run_id", how="left", maintain_order="left")
    taken = with_taken(runs, judgement, _CLAIM.name)
    words = [
        "nothing" if value is None else f"{show(value, 'tok/s')}{f', {CLAIMED}' if refused else ''}"
        for value, refused in taken.select("printed", "taken").iter_rows()
    ]
    return taken.with_columns(pl.Series("said", words, pl.String))


def _scenes(judgement: Judgement, runs: pl.DataFrame) -> Iterator[_Scene]:
    samples = _whole(judgement.evidence.samples).filter(pl.col("metric").is_in(_GAUGES)).drop_nulls("value_max")
    over = (pl.col("metric") == "running_requests") & (pl.col("role") == "prefill")  # its batch ends with its line
    samples = samples.filter(~over, pl.col("value_max").is_finite())
    kind = pl.when(pl.col("kind").is_in(FAILURES)).then(pl.lit("transfer_failed")).otherwise("kind")
    events = _whole(judgement.evidence.events).with_columns(kind.alias("kind")).filter(pl.col("kind").is_in(_MARKS))
    titles = dict(runs.select("experiment", "title").iter_rows())
    parts = [_parts(frame) for frame in (samples, events, judgement.windows)]
    for name in dict.fromkeys([*titles, *parts[0], *parts[1]]):
        readings, marks, windows = (
            part.get(name, frame.clear())
            for part, frame in zip(parts, (samples, events, judgement.windows), strict=True)
        )
        if readings.height or marks.height:
            yield _scene(titles.get(name) or name or "experiment not named", readings, marks, windows, runs)


def _whole(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that have a place on the axis; a role that nobody knows has a name."""
    return rows.drop_nulls("clock").with_columns(pl.col("role").fill_null(_OF_NONE), pl.col("instance").fill_null(""))


def _parts(frame: pl.DataFrame) -> dict[str | None, pl.DataFrame]:
    by_name = frame.partition_by("experiment", as_dict=True, maintain_order=True) if frame.height else {}
    return {name: part for (name,), part in by_name.items()}


def _scene(
    title: str, readings: pl.DataFrame, marks: pl.DataFrame, windows: pl.DataFrame, runs: pl.DataFrame
) -> _Scene:
    hours = _offsets(windows)
    readings, marks = _aligned(readings, hours, "clock"), _aligned(marks, hours, "clock")
    ran = _ran(_aligned(windows, hours, "started_at", "ended_at"), runs)
    start, end, cut = _span(readings, marks, ran)
    inside = pl.col("clock").is_between(start, end)
    servers = pl.concat([frame.select("instance") for frame in (readings, marks)]).n_unique()
    return _Scene(title, readings.filter(inside), marks.filter(inside), ran, start, end, servers, cut)


def _offsets(windows: pl.DataFrame) -> pl.DataFrame:
    """By how many whole hours the clock of each server is ahead of that of the server that most runs were joined to."""
    most = windows.group_by("instance").len().sort("len", "instance", descending=[True, False]).head(1)
    reference = windows.join(most, on="instance").select("run_id", pl.col("started_at").alias("reference"))
    ahead = (pl.col("started_at") - pl.col("reference")).dt.total_seconds() / 3600
    by_server = windows.join(reference, on="run_id").group_by("instance").agg(ahead.median().round().alias("hours"))
    return by_server.select("instance", pl.duration(hours=pl.col("hours").fill_null(0)).alias("ahead"))


def _aligned(rows: pl.DataFrame, offsets: pl.DataFrame, *clocks: str) -> pl.DataFrame:
    joined = rows.join(offsets, on="instance", how="left", maintain_order="left")
    return joined.with_columns(pl.col(clock) - pl.col("ahead").fill_null(timedelta()) for clock in clocks)


def _ran(windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """When each run went on, once, with what a pointer shows of it."""
    timed = windows.drop_nulls(["started_at", "ended_at"])
    once = timed.group_by("run_id").agg(pl.col("started_at").min(), pl.col("ended_at").max())
    about = runs.select("run_id", "level", "verdict", "taken", "said")
    return once.join(about, on="run_id").sort("started_at", "run_id").head(_WINDOWS)


def _span(readings: pl.DataFrame, marks: pl.DataFrame, windows: pl.DataFrame) -> tuple[datetime, datetime, bool]:
    """From when to when is drawn: all that the logs hold, or, where they are far longer, what happened in them."""
    asked = [*windows["started_at"], *windows["ended_at"], *marks.group_by("kind").agg(pl.col("clock").min())["clock"]]
    every = [*asked, readings["clock"].min(), readings["clock"].max(), marks["clock"].min(), marks["clock"].max()]
    known = [clock for clock in every if isinstance(clock, datetime)]
    first, last = min(known), max(known)
    if asked and (max(asked) - min(asked)) * _LONG < last - first and max(asked) > min(asked):
        margin = (max(asked) - min(asked)) * _MARGIN
        return max(first, min(asked) - margin), min(last, max(asked) + margin), True
    return first - timedelta(seconds=1), last + timedelta(seconds=1), False


def _binned(readings: pl.DataFrame, scene: _Scene, *, bins: int) -> pl.DataFrame:
    """One row a role and bin, the greatest reading at its own second, with `segment`: a line is drawn within one."""
    each = pl.col("clock").diff()
    width = timedelta(seconds=scene.seconds / bins)
    usual = each.median().fill_null(timedelta()) * _PAUSES
    ordered = readings.group_by("role", "clock").agg(pl.col("value_max").max().alias("value")).sort("role", "clock")
    pause = each > pl.max_horizontal(usual, pl.lit(_QUIET_FOR), pl.lit(2 * width))
    broken = ordered.with_columns(pause.fill_null(False).cum_sum().over("role").alias("segment"))
    place = ((pl.col("clock") - scene.start).dt.total_milliseconds() / (1000 * scene.seconds) * bins).floor()
    kept = broken.with_columns(place.alias("bin")).group_by("role", "segment", "bin").agg(
        pl.col("value", "clock").sort_by("value", "clock", descending=[True, False]).first()
    )  # fmt: skip
    alone = (pl.len().over("role", "segment") == 1).alias("alone")
    rows = kept.sort("role", "clock").with_columns(alone)
    return rows.select("role", "segment", "alone", pl.col("value").round(4), *_moment())


def _moment() -> tuple[pl.Expr, pl.Expr]:
    """A clock as an axis takes it, whatever the reader's zone, and as it is read out."""
    return pl.col("clock").dt.epoch("ms").alias("ms"), pl.col("clock").dt.strftime("%H:%M:%S").alias("at")


# --- how ------------------------------------------------------------------------------------------------------------


def _panels(scene: _Scene, *, bins: int, roles: Sequence[str]) -> Iterator[Panel]:
    """The panels of one experiment, whose name stands above the first."""
    told = [name for name in _GAUGES if scene.readings["metric"].is_in([name]).any()]
    every: list[tuple[str, alt.LayerChart]] = []
    if scene.windows.height:
        every.append(("Client runs", _client(scene)))
    if scene.marks.height:
        every.append(("Failures", _failures(scene)))
    every += [(_named(name), _gauge(scene, name, bins=bins, roles=roles, axis=name == told[-1])) for name in told]
    days = f"{scene.start:%Y-%m-%d}" if scene.start.date() == scene.end.date() else f"from {scene.start:%Y-%m-%d}"
    for index, (name, panel) in enumerate(every):
        panel.title = _heading(f"{scene.title}, {days}", name) if index == 0 else _small(name)
        yield panel


def _small(text: str) -> alt.TitleParams:
    return alt.TitleParams(text=text, fontSize=11, fontWeight="normal", offset=3, frame="group")


def _heading(title: str, text: str) -> alt.TitleParams:
    """The name of an experiment, and below it that of its first panel."""
    return alt.TitleParams(
        text=title, fontSize=12, color=QUIET, limit=PAGE_PX - AXIS_PX - 20, offset=3, frame="group", dy=-4,
        subtitle=text, subtitleFontSize=11, subtitleColor=INK, subtitlePadding=8,
    )  # fmt: skip


def _x(scene: _Scene, *, axis: bool = False, field: str = "ms") -> alt.X:
    form = "%H:%M:%S" if scene.seconds < 600 else "%H:%M" if scene.seconds < 86_400 else "%d %H:%M"
    domain = [int(clock.timestamp() * 1000) for clock in (_utc(scene.start), _utc(scene.end))]
    shown = alt.Axis(
        title=None, values=_times(domain[0], domain[1]), labelExpr=f"utcFormat(datum.value, '{form}')", grid=False,
        labels=axis, ticks=axis, labelOverlap=True,
    )  # fmt: skip
    # a scale of times with a domain and spans fills the browser's console with warnings of Vega-Lite's
    return alt.X(f"{field}:Q", scale=alt.Scale(domain=domain, nice=False, zero=False), axis=shown)


def _times(start_ms: int, end_ms: int) -> list[int]:
    """Round times for an axis, as many as have room."""
    steps = (1000 * seconds for seconds in (*_ROUND_S, *(86_400 * days for days in range(1, 400))))
    step = next((step for step in steps if (end_ms - start_ms) / step <= _MOST_TIMES), end_ms - start_ms)
    first = -(-start_ms // step) * step
    return list(range(first, end_ms + 1, step))


def _utc(clock: datetime) -> datetime:
    """The same figures as UTC: an axis in the reader's zone would show another hour."""
    return clock.replace(tzinfo=UTC)


def _gauge(scene: _Scene, name: str, *, bins: int, roles: Sequence[str], axis: bool) -> alt.LayerChart:
    gauge = GAUGES[name]
    mine = _binned(scene.readings.filter(pl.col("metric") == name), scene, bins=bins)
    ratio = gauge.unit == "ratio"
    most = max(greatest(mine["value"]), 1.0)
    scale = alt.Scale(domain=[0, most * _HEADROOM], nice=False)
    steps = [0, 0.5, 1] if ratio else list(range(int(most) + 1)) if most <= _FEW else alt.Undefined
    form = "%" if ratio else "~s"
    side = alt.Axis(title=None, tickCount=3, values=steps, format=form, minExtent=AXIS_PX, maxExtent=AXIS_PX)
    told = [alt.Tooltip("role:N", title="Role"), alt.Tooltip("at:N", title="At"),
            alt.Tooltip("value:Q", title=gauge.title, format=".0%" if ratio else ",.0f")]  # fmt: skip
    x = _x(scene, axis=axis)
    base = alt.Chart(mine).encode(x=x, y=alt.Y("value:Q", scale=scale, axis=side), color=_colour(roles), tooltip=told)
    line = base.mark_line(strokeWidth=1.5).encode(detail="segment:N")
    dots = base.transform_filter("datum.alone").mark_point(filled=True, size=14, opacity=1)
    return layered(*_behind(scene, x), line, dots, width=PLOT_PX, height=_GAUGE_PX)


def _named(name: str) -> str:
    gauge = GAUGES[name]
    bare = gauge.unit == "ratio" or gauge.title.endswith(gauge.unit)
    return gauge.title if bare else f"{gauge.title} ({gauge.unit})"


def _roles(scenes: Sequence[_Scene]) -> list[str]:
    """The roles that have readings, in one order whatever the experiment."""
    seen = {role for scene in scenes for role in scene.readings["role"].unique()}
    return [*(role for role in ROLE_COLOURS if role in seen), *sorted(seen - set(ROLE_COLOURS))]


def _colour(roles: Sequence[str]) -> alt.Color:
    colours = [ROLE_COLOURS.get(role, ROLE_COLOURS[_OF_NONE]) for role in roles]
    legend = alt.Legend(title=None, symbolType="stroke", symbolStrokeWidth=2.5)
    return alt.Color("role:N", scale=alt.Scale(domain=list(roles), range=colours), legend=legend)


def _behind(scene: _Scene, x: alt.X) -> Iterator[alt.Chart]:
    """The client's windows as shades, and the first failure of each kind as a line."""
    if scene.windows.height:
        yield _shade(scene, x)
    first = _first(scene.marks).filter(~pl.col("kind").is_in(_MILD)).select("ms").unique().sort("ms")
    if first.height:
        rules = alt.Chart(first).mark_rule(color=REFUSED, strokeWidth=1, strokeDash=[3, 3], opacity=0.7)
        yield rules.encode(x=x)


def _spans(scene: _Scene) -> pl.DataFrame:
    within = pl.col("started_at").clip(scene.start, scene.end), pl.col("ended_at").clip(scene.start, scene.end)
    ms = (clock.dt.epoch("ms").alias(name) for clock, name in zip(within, ("ms", "ms_end"), strict=True))
    return scene.windows.select("taken", *ms)


def _shade(scene: _Scene, x: alt.X) -> alt.Chart:
    fill = alt.condition("datum.taken", alt.value(REFUSED_FILL), alt.value(CLAIMED_FILL))
    base = alt.Chart(_spans(scene)).mark_rect(opacity=0.75)
    shade: alt.Chart = base.encode(x=x, x2="ms_end:Q", color=fill)
    return shade


def _client(scene: _Scene) -> alt.LayerChart:
    """When each run went on, with its level where there is room for it."""
    x = _x(scene)
    rows = _in_lanes(scene)
    lanes = int(greatest(rows["lane"])) + 1
    height = _LANE_PX * lanes
    told = [alt.Tooltip(f"{field}:N", title=title) for field, title in _OF_A_RUN.items()]
    fill = alt.condition("datum.taken", alt.value(REFUSED_FILL), alt.value(CLAIMED_FILL))
    ink = alt.condition("datum.taken", alt.value(REFUSED), alt.value(QUIET))
    base = alt.Chart(rows)
    shade = base.mark_rect(strokeWidth=0.8).encode(
        x=x, x2="ms_end:Q", y=alt.value(0), y2=alt.value(height), color=fill, stroke=ink, tooltip=told
    )
    text = base.transform_filter("datum.lane !== null").encode(
        x=_x(scene, field="text_ms"), y=alt.Y("y:Q", scale=_pixels(height), axis=None), text="text:N"
    )
    rim = text.mark_text(align="left", dx=3, fontSize=11, stroke="white", strokeWidth=3, strokeJoin="round")
    words = text.mark_text(align="left", dx=3, fontSize=11).encode(color=ink)
    return layered(shade, rim, words, width=PLOT_PX, height=height)


def _pixels(height: float) -> alt.Scale:
    return alt.Scale(domain=[0, height], reverse=True, nice=False)


def _in_lanes(scene: _Scene) -> pl.DataFrame:
    """The runs with their words, each in the first of three lanes in which they cover no others."""
    spans = pl.concat([scene.windows.drop("taken"), _spans(scene)], how="horizontal")
    text = pl.col("level").alias("text")
    clock = (
        pl.col(f"{side}_at").dt.strftime("%H:%M:%S").alias(name)
        for side, name in (("started", "from"), ("ended", "to"))
    )
    rows = spans.with_columns(text, *clock)
    ends = [0.0] * _LANES
    lanes: list[int | None] = []
    starts: list[float] = []
    for ms, end, words in rows.select("ms", "ms_end", "text").iter_rows():
        middle = _px(scene, (ms + end) / 2) - len(words) * _CHAR_PX / 2
        left = _clamped(middle, words)
        lane = next((lane for lane, end in enumerate(ends) if left >= end), None)
        if lane is not None:
            ends[lane] = left + len(words) * _CHAR_PX + 3
        lanes.append(lane)
        starts.append(left)
    placed = rows.with_columns(pl.Series("lane", lanes, pl.Int64), pl.Series("left", starts, pl.Float64))
    place = (_ms(scene, pl.col("left")).alias("text_ms"), ((pl.col("lane") + 0.5) * _LANE_PX).alias("y"))
    kept = ("level", "verdict", "said", "taken", "text", "from", "to", "ms", "ms_end", "lane")
    return placed.select(*kept, *place)


def _px(scene: _Scene, ms: float) -> float:
    """How many pixels from the left a moment lies."""
    return (ms - _utc(scene.start).timestamp() * 1000) / (1000 * scene.seconds) * PLOT_PX


def _clamped(left: float, words: str) -> float:
    """Where words begin that would begin at so many pixels, and must end within the panel."""
    return max(0.0, min(left, PLOT_PX - len(words) * _CHAR_PX))


def _ms(scene: _Scene, left: pl.Expr) -> pl.Expr:
    start = _utc(scene.start).timestamp() * 1000
    return (pl.lit(start) + left / PLOT_PX * 1000 * scene.seconds).round(0).cast(pl.Int64)


def _failures(scene: _Scene) -> alt.LayerChart:
    """A row a kind of failure: a cross where it was first seen, a tick where again, its name above."""
    x = _x(scene)
    first = _first(scene.marks)
    height = _MARK_PX * first.height
    row = alt.Y("kind:N", sort=first["kind"].to_list(), axis=None)
    placed = first.with_columns(
        (pl.col("ms") > _utc(scene.start).timestamp() * 1000 + 500 * scene.seconds).alias("late")
    )
    ink = alt.condition(f"indexof({list(_MILD)}, datum.kind) < 0", alt.value(REFUSED), alt.value(QUIET))
    told = [alt.Tooltip("words:N", title="What"), alt.Tooltip("at:N", title="First at")]
    again = alt.Chart(_again(scene)).mark_tick(orient="vertical", thickness=1.5, size=8, yOffset=6, opacity=0.5)
    cross = alt.Chart(placed).mark_point(shape=CROSS, filled=True, size=60, opacity=1, yOffset=6)
    text = alt.Chart(placed).encode(x=x, y=row, text="words:N")
    words = [part for late in (False, True) for part in _words_of_marks(text, ink, late=late)]
    panel = layered(
        *_behind(scene, x),
        again.encode(x=x, y=row, color=ink),
        cross.encode(x=x, y=row, color=ink, tooltip=told),
        *words,
        width=PLOT_PX,
        height=height,
    )
    panel.view = alt.ViewBackground(stroke=FAINT)
    return panel


def _words_of_marks(text: alt.Chart, ink: Any, *, late: bool) -> tuple[alt.Chart, alt.Chart]:
    """The words of marks in one half of the panel: they run towards the other one."""
    half = text.transform_filter("datum.late" if late else "!datum.late")
    rim, words = rimmed(half, color=REFUSED, align="right" if late else "left", dx=6 if late else -6, dy=-6)
    return rim, words.encode(color=ink)


def _first(marks: pl.DataFrame) -> pl.DataFrame:
    """One row a kind, the earliest first: when it was first seen, and in `words` what it is and how much of it."""
    by_kind = marks.sort("clock").group_by("kind", maintain_order=True).agg(
        pl.col("clock").first(),
        pl.col("role").unique(maintain_order=True),
        pl.len().alias("times"),
        pl.col("count").sum(),
        (pl.col("subject").n_unique() - pl.col("subject").is_null().any().cast(pl.Int64)).alias("subjects"),
        pl.col("count").max().alias("most"),
    )  # fmt: skip
    order = pl.col("kind").replace_strict({kind: at for at, kind in enumerate(_MARKS)}, return_dtype=pl.Int64)
    by_kind = by_kind.sort(pl.col("clock").dt.truncate("1s"), order)  # most logs print whole seconds
    words = [_words(row) for row in by_kind.iter_rows(named=True)]
    return by_kind.select("kind", *_moment()).with_columns(pl.Series("words", words, pl.String))


def _words(row: dict[str, Any]) -> str:
    kind, roles = row["kind"], [role for role in row["role"] if role != _OF_NONE]
    many = {
        "queue_full": f", at least {row['most'] or 1:,.0f}",
        "transfer_failed": f", {plural(max(row['subjects'], 1), 'request')}",
        "retracted": f", {row['count'] or row['times']:,.0f} in all",
        "request_rejected": f", {row['count'] or row['times']:,.0f} in all",
    }.get(kind, f", {row['times']} times" if row["times"] > 1 else "")
    where = f" ({listed(roles)})" if roles else ""
    return f"{row['clock']:%H:%M:%S} {_MARKS[kind]}{many}{where}"


def _again(scene: _Scene) -> pl.DataFrame:
    """Where each kind was seen, once a bin."""
    place = ((pl.col("clock") - scene.start).dt.total_milliseconds() / (1000 * scene.seconds) * _TICKS).floor()
    binned = scene.marks.with_columns(place.alias("bin")).group_by("kind", "bin").agg(pl.col("clock").min())
    return binned.sort("kind", "clock").select("kind", *_moment())


# --- in words -------------------------------------------------------------------------------------------------------


def _notes(scenes: Sequence[_Scene], *, left_out: int) -> Iterator[str]:
    yield f"Shaded: when a client ran, vermillion where it has {NO_RESULT}. Clocks are the servers' own."
    if any(scene.windows.is_empty() for scene in scenes):
        apart = [scene.title for scene in scenes if scene.windows.is_empty()]
        yield f"No run could be joined to the logs of {listed(apart)}."
    several = [role for scene in scenes for role in _shared(scene.readings)]
    if several:
        yield f"Of several servers or ranks of one role ({listed(sorted(set(several)))}) the greatest reading is drawn."
    if any(scene.cut for scene in scenes):
        yield "Logs that are far longer than what happened in them are cut to that."
    missing = [
        _named(name) for name in _GAUGES if not any(scene.readings["metric"].is_in([name]).any() for scene in scenes)
    ]
    if missing:
        yield f"Not told by these logs: {listed(missing)}."
    if left_out:
        yield f"{plural(left_out, 'experiment')} more than fit here."


def _shared(readings: pl.DataFrame) -> list[str]:
    """The roles that several servers have, or several ranks of one."""
    each = readings.select("role", "instance", "rank").unique().group_by("role").len()
    return each.filter(pl.col("len") > 1)["role"].to_list()


def _described(scene: _Scene) -> str:
    """One experiment for those who cannot see it: how long, what rose how far, what failed first."""
    when = f"from {scene.start:%H:%M:%S} to {scene.end:%H:%M:%S}"
    peaks = [_peak(scene, name) for name in _GAUGES]
    most = [peak for peak in peaks if peak]
    gauges = f" At the most: {'; '.join(most)}." if most else " No gauge was read."
    failed = _first(scene.marks).filter(~pl.col("kind").is_in(_MILD))["words"].to_list()
    failures = f" First failures: {'; '.join(failed)}." if failed else " No failure was logged."
    ran = [f"{level} ({verdict})" for level, verdict in scene.windows.select("level", "verdict").head(6).iter_rows()]
    runs = f" Client runs: {listed(ran)}." if ran else " No run could be joined to it."
    return f"{scene.title}: {plural(scene.servers, 'server')} {when}.{gauges}{failures}{runs}"


def _peak(scene: _Scene, name: str) -> str:
    mine = scene.readings.filter(pl.col("metric") == name).sort("value_max", "clock", descending=[True, False])
    if mine.is_empty():
        return ""
    row = mine.row(0, named=True)
    gauge = GAUGES[name]
    most = f"{row['value_max']:.0%}" if gauge.unit == "ratio" else f"{row['value_max']:,.0f}"
    return f"{gauge.title.lower()} {most} on {row['role']} at {row['clock']:%H:%M:%S}"
