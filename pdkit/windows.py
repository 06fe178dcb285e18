"""When each run was on each server: what joins a client's numbers to the logs of servers that know nothing of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations, pairwise
from typing import NamedTuple

import polars as pl

from pdkit.evidence import Evidence
from pdkit.units import plural

WINDOWS_SCHEMA = pl.Schema({
    "run_id": pl.String(), "experiment": pl.String(), "instance": pl.String(), "role": pl.String(),
    "started_at": pl.Datetime("us"), "ended_at": pl.Datetime("us"), "shift_h": pl.Int64(), "way": pl.String(),
    "said": pl.String(),
})  # fmt: skip
UNJOINED_SCHEMA = pl.Schema(
    {"experiment": pl.String(), "instance": pl.String(), "why": pl.String(), "said": pl.String()}
)
BY_MANIFEST = "manifest"
NO_RUN, CLOCKS, UNCLEAR = "no run", "clocks", "unclear"  # why an instance belongs to no run

_ACTIVE_GAUGES = ("running_requests", "new_requests", "gen_throughput_tok_per_s")
_ACTIVE_EVENTS = ("http", "transfer_failed", "bootstrap_failed", "transfer_aborted", "retracted")
_SHIFTS_H = sorted(range(-14, 15), key=abs)  # zones lie within 14 hours of UTC; none is tried first
_NEAR_H = 12  # hours between a server's work and a run that it did nothing for: the same session of tests
_NEARLY = 0.9  # of the best overlap: then no shift is the simpler answer
_WARMUP_S = 15.0  # a client sends a request, loads and waits before its clock starts
_SPAN_OFF = 0.1  # of a run's duration
_SHORTEST = 0.5  # of a run's duration is what its burst lasts at least: prefill ends before the answers do
_COUNT_OFF = 0.1  # of the requests: warm-ups, health checks, retries
_MOST_WORKERS = 32  # that share the requests of one router
_ODD_BURSTS = 3  # beyond one a run: the server's own warm-up, somebody's trial
_MOST_BURSTS = 20  # with more, which is whose is a guess
_TIMES_WOULD_TELL = "started_at and ended_at in sweep.toml would tell which work was whose"


Burst = tuple[datetime, datetime]


class Joined(NamedTuple):
    """`windows`: one row a run and instance that belong together; `unjoined`: why an instance belongs to no run."""

    windows: pl.DataFrame
    unjoined: pl.DataFrame


@dataclass(frozen=True)
class _Run:
    """What is known of a run's time: what the manifest says, and how long the client says that it took."""

    run_id: str
    starts: datetime | None
    ends: datetime | None
    duration_s: float | None
    sent: float | None


@dataclass(frozen=True)
class _Server:
    """One instance and the seconds in which it worked; `answers` are its answers a second, where it logs them."""

    instance: str
    role: str | None
    seconds: tuple[datetime, ...]
    answers: dict[datetime, float]


@dataclass(frozen=True)
class _Found:
    """The window of a run on one server."""

    run: _Run
    starts: datetime
    ends: datetime
    shift_h: int
    way: str
    said: str


@dataclass(frozen=True)
class _Apart:
    """Why a server is joined to no run."""

    why: str
    said: str


def windows(evidence: Evidence, wide: pl.DataFrame) -> Joined:
    """When each run was on each server of its experiment, on that server's own clock.

    By the manifest's times, tried with shifts of whole hours; or as the only run beside the log; or, where work on the
    server falls into as many bursts as there are runs, in the order of levels, and only where their lengths and counts
    fit. `wide` has a row a run: run_id, experiment, planned_start, planned_end, duration_s, sent, planned_only.
    """
    servers = _servers(evidence)
    order = _order(evidence)
    joined: list[dict[str, object]] = []
    unjoined: list[dict[str, object]] = []
    for experiment, mine in servers.items():
        runs = _runs(wide.filter(pl.col("experiment") == experiment), order)
        each = [_joined(server, runs) for server in mine]
        shift = _common_shift(mine, each, runs)
        for server, alone in zip(mine, each, strict=True):
            found = _beside(server, alone, runs, shift)
            if isinstance(found, _Apart):
                unjoined.append({"experiment": experiment, "instance": server.instance, **vars(found)})
                continue
            joined += [
                {"run_id": it.run.run_id, "experiment": experiment, "instance": server.instance, "role": server.role,
                 "started_at": it.starts, "ended_at": it.ends, "shift_h": it.shift_h, "way": it.way, "said": it.said}
                for it in found
            ]  # fmt: skip
    return Joined(
        pl.DataFrame(joined, schema=WINDOWS_SCHEMA).sort("experiment", "instance", "started_at"),
        pl.DataFrame(unjoined, schema=UNJOINED_SCHEMA),
    )


# --- what is known --------------------------------------------------------------------------------------------------


def _servers(evidence: Evidence) -> dict[str, list[_Server]]:
    """The instances of each experiment that show any work, in order of their names."""
    works = pl.col("metric").is_in(_ACTIVE_GAUGES) & (pl.col("value_max") > 0)
    about = ["experiment", "instance", "role", "clock"]
    seconds = pl.concat([
        evidence.samples.lazy().filter(works).select(about),
        evidence.events.lazy().filter(pl.col("kind").is_in(_ACTIVE_EVENTS)).select(about),
    ]).drop_nulls("clock")  # fmt: skip
    by_instance = (
        seconds.group_by("experiment", "instance")
        .agg(pl.col("role").drop_nulls().first(), pl.col("clock").dt.truncate("1s").unique().sort())
        .sort("experiment", "instance")
        .collect()
    )
    http = evidence.events.filter(pl.col("kind") == "http", pl.col("clock").is_not_null())
    answers: dict[str, dict[datetime, float]] = {}
    for instance, clock, count in http.group_by("instance", "clock").agg(pl.col("count").sum()).iter_rows():
        answers.setdefault(instance, {})[clock] = count
    found: dict[str, list[_Server]] = {}
    for experiment, instance, role, clocks in by_instance.iter_rows():
        found.setdefault(experiment, []).append(_Server(instance, role, tuple(clocks), answers.get(instance, {})))
    return found


def _order(evidence: Evidence) -> dict[str, int]:
    """The place of each run in a file that lists all of its experiment: clients append as they go. Else levels rule."""
    runs = evidence.runs.select("run_id", "experiment", "source_file", "source_line")
    together = runs.with_columns(pl.col("run_id").n_unique().over("experiment").alias("all")).filter(
        pl.col("run_id").n_unique().over("experiment", "source_file") == pl.col("all"), pl.col("all") > 1
    )
    ordered = together.sort("experiment", "source_file", "source_line")["run_id"]
    return {run: place for place, run in enumerate(dict.fromkeys(ordered))}


def _runs(wide: pl.DataFrame, order: dict[str, int]) -> list[_Run]:
    """The runs of one experiment, in the order in which they ran as far as that is known."""
    ran = wide.filter(~pl.col("planned_only")).sort("concurrency", "request_rate_per_s", "run_id", nulls_last=True)
    rows = ran.select("run_id", "planned_start", "planned_end", "duration_s", "sent").iter_rows()
    return [_Run(*row) for row in sorted(rows, key=lambda row: order.get(row[0], len(order)))]


# --- how they are joined --------------------------------------------------------------------------------------------


def _joined(server: _Server, runs: list[_Run]) -> list[_Found] | _Apart:
    """The windows of the runs on one server, or why there are none."""
    if not runs:
        return _Apart(NO_RUN, "no run of a client lies beside this log")
    if timed := _timed(runs):
        return _by_manifest(server, timed)
    if len(runs) == 1 and not _shows_more(server, runs[0]):
        last = server.seconds[-1] + timedelta(seconds=1)
        return [_Found(runs[0], server.seconds[0], last, 0, "only run", "the only run beside this log")]
    return _by_bursts(server, runs)


def _by_manifest(server: _Server, runs: list[_Run]) -> list[_Found] | _Apart:
    overlap = {shift: _overlap(server, runs, shift) for shift in _SHIFTS_H}
    most = max(overlap.values())
    if not most:
        return _Apart(CLOCKS, "no shift by whole hours brings its clock to the times in sweep.toml")
    shift = next(shift for shift in _SHIFTS_H if overlap[shift] >= _NEARLY * most)
    zone = f"; the server's clock is {shift:+d} h from UTC" if shift else ""
    off_s = _seconds_off(server, runs, shift)
    off = f"; its work lies {off_s:+d} s from them, and so do the windows" if off_s else ""
    by = timedelta(seconds=off_s)
    return [
        _Found(run, starts + by, ends + by, shift, BY_MANIFEST, f"the times in sweep.toml{zone}{off}")
        for run in runs
        for starts, ends in [_shifted(run, shift)]
    ]  # fmt: skip


def _seconds_off(server: _Server, runs: list[_Run], hours: int) -> int:
    """By how many seconds the clocks differ: where the work of each run that shows any stands off by about the same.

    Work that begins late may be a client that took its time, work that ends early a server that failed, and work that
    goes on somebody else's: only what begins late and ends late by as much, or both early, has moved.
    """
    offs = []
    for run in runs:
        starts, ends = _shifted(run, hours)
        least = max(_WARMUP_S, _SPAN_OFF * (ends - starts).total_seconds())
        bursts = [burst for burst in _apart(server.seconds) if burst[0] <= ends and burst[1] >= starts]
        if not bursts:
            continue
        late, behind = ((at - edge).total_seconds() for at, edge in ((bursts[0][0], starts), (bursts[-1][1], ends)))
        if abs(late - behind) > least or min(abs(late), abs(behind)) < least:
            return 0
        offs.append(min(late, behind, key=abs))
    alike = bool(offs) and max(offs) - min(offs) <= _WARMUP_S
    return round(sum(offs) / len(offs)) if alike else 0


def _apart(seconds: Sequence[datetime]) -> list[Burst]:
    """The seconds parted where nothing was done for as long as a client takes to warm up."""
    edges = [at for at in range(1, len(seconds)) if (seconds[at] - seconds[at - 1]).total_seconds() > _WARMUP_S]
    return [(seconds[start], seconds[end - 1]) for start, end in pairwise([0, *edges, len(seconds)])]


def _common_shift(servers: list[_Server], each: list[list[_Found] | _Apart], runs: list[_Run]) -> int | None:
    """The shift that most work of prefill and decode servers fits; they keep local time, a router may keep UTC."""
    fits: dict[int, int] = {}
    for server, found in zip(servers, each, strict=True):
        if isinstance(found, list) and server.role != "router" and found[0].way == BY_MANIFEST:
            shift = found[0].shift_h
            fits[shift] = fits.get(shift, 0) + _overlap(server, _timed(runs), shift)
    return max(fits, key=lambda shift: (fits[shift], -abs(shift)), default=None)


def _beside(
    server: _Server, found: list[_Found] | _Apart, runs: list[_Run], shift: int | None
) -> list[_Found] | _Apart:
    """What was found of a server alone, held against the clock of the servers beside it.

    A decode server whose peer is dead is idle: that nothing happened on it is the finding. One whose work fits another
    hour alone may be idle as well, or in another zone: only several runs, all of which it fits, tell.
    """
    timed = _timed(runs)
    if server.role == "router" or shift is None or not timed:
        return found
    if isinstance(found, list):
        own = found[0].shift_h
        if own == shift or (len(timed) > 1 and all(_overlap(server, [run], own) for run in timed)):
            return found
        return _Apart(CLOCKS, f"its work fits the times in sweep.toml at {own:+d} h, that beside it at {shift:+d} h")
    first, last = _shifted(timed[0], shift)[0], _shifted(timed[-1], shift)[1]
    near = timedelta(hours=_NEAR_H)
    if found.why != CLOCKS or server.seconds[-1] < first - near or server.seconds[0] > last + near:
        return found
    said = "the times in sweep.toml, on the clock of the server beside it: this one did nothing then"
    return [_Found(run, *_shifted(run, shift), shift, BY_MANIFEST, said) for run in timed]


def _timed(runs: list[_Run]) -> list[_Run]:
    return [run for run in runs if run.starts and run.ends]


def _shifted(run: _Run, hours: int) -> tuple[datetime, datetime]:
    if run.starts is None or run.ends is None:
        raise ValueError(f"{run.run_id}: its times are not known")
    by = timedelta(hours=hours)
    return run.starts + by, run.ends + by


def _overlap(server: _Server, runs: list[_Run], hours: int) -> int:
    """Seconds of work within the runs' times."""
    times = [_shifted(run, hours) for run in runs]
    return sum(any(starts <= second <= ends for starts, ends in times) for second in server.seconds)


def _shows_more(server: _Server, run: _Run) -> bool:
    """Whether the log shows more work than one run took."""
    span = (server.seconds[-1] - server.seconds[0]).total_seconds()
    return run.duration_s is not None and span > (1 + _SPAN_OFF) * run.duration_s + _WARMUP_S


def _by_bursts(server: _Server, runs: list[_Run]) -> list[_Found] | _Apart:
    """Bursts of work in the order of the runs, where exactly one way to give them out fits."""
    if any(run.duration_s is None for run in runs):
        return _Apart(UNCLEAR, f"a run beside it does not say how long it took; {_TIMES_WOULD_TELL}")
    for odd in range((_ODD_BURSTS if len(runs) > 1 else _MOST_BURSTS) + 1):
        bursts = _bursts(server.seconds, len(runs) + odd)
        fits = [chosen for chosen in _choices(bursts, len(runs)) if _fit(server, chosen, runs)]
        if len(fits) == 1:
            return list(_of_bursts(fits[0], runs, total=len(bursts)))
        if fits:
            break
    many = plural(len(runs), "run")
    return _Apart(UNCLEAR, f"its work does not fall into one burst for each of {many} beside it; {_TIMES_WOULD_TELL}")


def _bursts(seconds: Sequence[datetime], count: int) -> list[Burst]:
    """The seconds parted at their longest gaps."""
    gaps = sorted(range(1, len(seconds)), key=lambda at: seconds[at - 1] - seconds[at])[: count - 1]
    edges = [0, *sorted(gaps), len(seconds)]
    return [(seconds[start], seconds[end - 1]) for start, end in pairwise(edges)]


def _choices(bursts: list[Burst], count: int) -> Iterator[list[Burst]]:
    if len(bursts) <= _MOST_BURSTS:
        yield from (list(chosen) for chosen in combinations(bursts, count))


def _fit(server: _Server, bursts: list[Burst], runs: list[_Run]) -> bool:
    return all(_fits(server, burst, run) for burst, run in zip(bursts, runs, strict=True))


def _fits(server: _Server, burst: Burst, run: _Run) -> bool:
    """Whether a burst lasts as long as a run and, where the server logs its answers, has as many."""
    lasted, took = (burst[1] - burst[0]).total_seconds(), run.duration_s or 0.0
    if not _SHORTEST * took - _WARMUP_S <= lasted <= (1 + _SPAN_OFF) * took + _WARMUP_S:
        return False
    if not server.answers or run.sent is None:
        return True
    counted = sum(count for second, count in server.answers.items() if burst[0] <= second <= burst[1])
    off = max(2.0, _COUNT_OFF * run.sent)
    fewest = run.sent if server.role == "router" else run.sent / _MOST_WORKERS
    return fewest - off <= counted <= run.sent + off


def _of_bursts(bursts: list[Burst], runs: list[_Run], *, total: int) -> Iterator[_Found]:
    for number, ((starts, ends), run) in enumerate(zip(bursts, runs, strict=True), 1):
        said = f"burst {number} of {total} on this server, in the order of the runs: inferred"
        yield _Found(run, starts, ends + timedelta(seconds=1), 0, "bursts", said)
