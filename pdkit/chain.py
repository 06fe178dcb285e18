"""What led to what on the servers: the evidence of one experiment in time, and which links of the chain were seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from posixpath import basename
from typing import Any, Literal

import polars as pl

from pdkit.causes import OUTPUT_RULES
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Judgement
from pdkit.signals import FAILURES
from pdkit.units import listed, plural

How = Literal["seen", "inferred", "not seen", "not evaluated"]
Order = Literal["in order", "out of order", "not evaluated"]

MEMORY, PREFILL_MEMORY, QUEUE = "memory short on decode", "memory short on prefill", "transfer queue filling"
REJECTED, DIED, FAILED = "first rejection", "session or server died", "first failed transfer"
NO_TEXT, END = "no text came back", "end of the logs"

FULL_RATIO = 0.9  # of a pool: what is left holds no further prompt of ordinary length
_NEAR = timedelta(seconds=60)  # readings further apart are no stretch: the server idled between them
_LEAST_QUEUE = 2.0  # one request on its way is how a healthy pair looks
_PLACES = 3  # lines that a link quotes: enough to look at, not a listing
_NOT_ALIVE = "is not alive"  # what Mooncake says of every transfer to a session that died before
_GAUGES = (
    "running_requests",
    "queued_requests",
    "prealloc_requests",
    "transferring_requests",
    "bootstrap_requests",
    "kv_used_ratio",
    "transfer_failed_total",
    "bootstrap_failed_total",
)
_COUNTERS = ("transfer_failed_total", "bootstrap_failed_total")
_SERIES = ("instance", "rank")  # within one of these readings follow each other
_DEATHS = ("session_failed", "connection_lost", "crashed")
_DECODE, _PREFILL = ("decode", "colocated"), ("prefill",)


@dataclass(frozen=True)
class Link:
    """One step between a cause and its effect: what happened, when it was first seen, and how that is known.

    `when` is on the server's own clock; the step began between `since` and `until`, where the log can tell. `order` is
    "out of order" where it surely began after what it would have caused, and "not evaluated" where nothing tells.
    `brief` is the clause that a sentence on the whole chain is made of.
    """

    name: str
    what: str
    how: How
    when: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    instance: str | None = None
    role: str | None = None
    places: tuple[str, ...] = ()
    order: Order = "not evaluated"
    needs: str = ""
    brief: str = ""

    @property
    def seen(self) -> bool:
        """Whether a line of a log shows it."""
        return self.how == "seen"

    @property
    def is_cause(self) -> bool:
        """Whether it was seen or inferred, and came before what it would have caused."""
        return self.how in ("seen", "inferred") and self.order == "in order"

    @property
    def said(self) -> str:
        """What is known of it: `not evaluated: needs the decode log`, `out of order: …`."""
        if self.how == "not evaluated":
            return f"not evaluated: needs {self.needs}"
        late = "out of order, so no cause: " if self.order == "out of order" else ""
        return f"{late}{'inferred: ' if self.how == 'inferred' else ''}{self.what}"


@dataclass(frozen=True)
class Chain:
    """The links of one experiment from cause to effect, and one sentence made of those that were seen.

    No links where nothing was rejected, nothing failed and no text is missing: the sentence then says what was looked
    at. `logs` is the number of server processes that left evidence.
    """

    experiment: str | None
    title: str
    links: tuple[Link, ...]
    sentence: str
    logs: int

    @property
    def frame(self) -> pl.DataFrame:
        """One row a link, in the order of causes."""
        rows = [
            {"link": link.name, "when": link.when, "server": link.instance, "role": link.role, "what": link.said,
             "how": link.how, "order": link.order, "lines": list(link.places)}
            for link in self.links
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_FRAME)


_FRAME = pl.Schema({
    "link": pl.String(), "when": pl.Datetime("us"), "server": pl.String(), "role": pl.String(), "what": pl.String(),
    "how": pl.String(), "order": pl.String(), "lines": pl.List(pl.String()),
})  # fmt: skip


def chain(judgement: Judgement) -> tuple[Chain, ...]:
    """What led to what, one chain an experiment: from the first want of memory to the run whose text did not come back.

    Nothing is invented: a link that no log could show says which log would, and one that began after its supposed
    effect is called no cause. Clocks of two servers are compared only where both were joined to a run on one clock.
    """
    return tuple(_told(case) for case in _cases(judgement))


# --- the evidence of one experiment ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    """One experiment: `readings` has a row an instance, rank and second; `runs` are in the order of time."""

    experiment: str | None
    title: str
    readings: pl.DataFrame
    events: pl.DataFrame
    windows: pl.DataFrame
    runs: pl.DataFrame
    lines: Mapping[str, list[str]]
    servers: frozenset[tuple[str | None, str | None]]

    def has(self, roles: Sequence[str]) -> bool:
        """Whether a server of one of these roles left evidence."""
        return any(role in roles for _, role in self.servers)

    @property
    def is_split(self) -> bool:
        """Whether KV cache moves between servers; a colocated server has no transfers that could fail."""
        roles = {role for _, role in self.servers} - {"router"}
        return roles != {"colocated"} if roles else not (self.runs["topology"] == "colocated").any()

    def log_of(self, role: str) -> str:
        """What to ask for where this role left no evidence."""
        return f"the {role} log" if self.is_split else "the server log"

    def of(self, *kinds: str) -> pl.DataFrame:
        """Events of these kinds, the earliest first; those without a clock come last."""
        return self.events.filter(pl.col("kind").is_in(kinds)).sort("clock", "source_line", nulls_last=True)

    def same_clock(self, one: str | None, other: str | None) -> bool:
        """Whether two servers tell the same time, as far as the runs show that both were joined to."""
        if one == other:
            return True
        mine, yours = (self.windows.filter(pl.col("instance") == name) for name in (one, other))
        both = mine.join(yours, on="run_id", suffix="_other")
        by_hand = pl.col("way") == "manifest"
        overlap = (pl.col("started_at") <= pl.col("ended_at_other")) & (
            pl.col("started_at_other") <= pl.col("ended_at")
        )
        same = (pl.col("shift_h") == pl.col("shift_h_other")) & (by_hand | overlap)
        return not both.is_empty() and bool(both.select(same.fill_null(False).all()).item())


def _cases(judgement: Judgement) -> Iterator[_Case]:
    evidence = judgement.evidence
    readings, events = _Parts(_readings(evidence.samples)), _Parts(_placed(evidence.events))
    settings, windows = _Parts(evidence.settings), _Parts(judgement.windows)
    runs = _Parts(_runs(judgement))
    titles = {name: title for name, title, _ in judgement.conclusions.iter_rows()}
    lines = _lines(judgement)
    for name in dict.fromkeys([*titles, *readings, *events]):
        own, happened, asked = readings[name], events[name], settings[name]
        servers = {pair for frame in (own, happened, asked) for pair in _servers(frame)}
        title = titles.get(name) or name or "experiment not named"
        mine = _in_time(runs[name], windows[name])
        yield _Case(name, title, own, happened, windows[name], mine, lines, frozenset(servers))


class _Parts(dict[str | None, pl.DataFrame]):
    """The rows by experiment; none where an experiment has none."""

    def __init__(self, frame: pl.DataFrame) -> None:
        parts = frame.partition_by("experiment", as_dict=True, maintain_order=True) if frame.height else {}
        super().__init__({name: part for (name,), part in parts.items()})
        self._none = frame.clear()

    def __missing__(self, _: str | None) -> pl.DataFrame:
        return self._none


def _servers(frame: pl.DataFrame) -> Iterator[tuple[str | None, str | None]]:
    """The server processes that left these rows, each with its role."""
    yield from frame.select("instance", "role").unique().iter_rows()


def _readings(samples: pl.DataFrame) -> pl.DataFrame:
    """One row an instance, rank and second, the gauges as columns, with `place`, and `before`: the reading before."""
    gauges = [pl.col("value_max").filter(pl.col("metric") == name).max().alias(name) for name in _GAUGES]
    wanted = samples.filter(pl.col("metric").is_in(_GAUGES), pl.col("clock").is_not_null())
    rows = wanted.group_by("experiment", "instance", "role", "rank", "clock").agg(
        *gauges, pl.col("source_file", "source_line").sort_by("source_line").first()
    )
    ordered = _placed(rows).sort("instance", "rank", "clock", nulls_last=True)
    return ordered.with_columns(pl.col("clock").shift(1).over("experiment", *_SERIES).alias("before"))


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.format("{}:{}", "source_file", "source_line").alias("place"))


def _runs(judgement: Judgement) -> pl.DataFrame:
    tokens = judgement.facts.select("run_id", "output_tok_sum", "received_tok")
    wanted = [
        "run_id", "experiment", "level", "verdict", "refused_by", "concurrency", "request_rate_per_s", "topology",
    ]  # fmt: skip
    refusal = pl.col("refused_by").list.set_intersection(list(OUTPUT_RULES)).list.sort()
    runs = judgement.verdicts.select(wanted).join(tokens, on="run_id", how="left", maintain_order="left")
    return runs.with_columns(pl.col("verdict").cast(pl.String), refusal.alias("output_rules"))


def _in_time(runs: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The runs in the order of time as one server saw them; in that of their levels where none saw all."""
    most = windows.group_by("instance").agg(pl.len()).sort("len", "instance", descending=[True, False]).head(1)
    own = windows.join(most, on="instance").select("run_id", "started_at").unique("run_id", keep="first")
    timed = runs.join(own, on="run_id", how="left", maintain_order="left")
    if timed["started_at"].has_nulls():
        return timed.sort("concurrency", "request_rate_per_s", "run_id", nulls_last=True)
    return timed.sort("started_at", "run_id")


def _lines(judgement: Judgement) -> dict[str, list[str]]:
    """The lines that say of each run that its text is missing."""
    missing = judgement.findings.filter(pl.col("rule").is_in(OUTPUT_RULES))
    rows = missing.select("run_id", "lines").explode("lines").drop_nulls().unique(maintain_order=True)
    return {str(run): part["lines"].to_list() for (run,), part in rows.partition_by("run_id", as_dict=True).items()}


# --- the links ------------------------------------------------------------------------------------------------------


def _told(case: _Case) -> Chain:
    links = _ordered(list(_links(case)), case)
    hard = any(link.how in ("seen", "inferred") for link in links if link.name in (REJECTED, DIED, FAILED, NO_TEXT))
    if hard:
        return _chain(case, links, _sentence(case, links))
    mild = tuple(link for link in links if link.seen and link.name in (MEMORY, PREFILL_MEMORY))
    return _chain(case, mild, _quiet(case, mild))


def _chain(case: _Case, links: Sequence[Link], sentence: str) -> Chain:
    return Chain(case.experiment, case.title, tuple(links), sentence, len(case.servers))


def _links(case: _Case) -> Iterator[Link]:
    """The links from cause to effect; those about transfers only where something is transferred."""
    failure = _first_failure(case)
    yield _memory_short(case, MEMORY, _DECODE, failure)
    on_prefill = _memory_short(case, PREFILL_MEMORY, _PREFILL, failure)
    if on_prefill.seen:
        yield on_prefill
    if case.is_split:
        yield _queue_filling(case, failure)
        yield _rejected(case)
    yield _died(case)
    if case.is_split:
        yield _failed(case)
    yield _no_text(case, failure)
    if case.servers:
        yield _end(case)


def _unknown(name: str, needs: str) -> Link:
    return Link(name, "", "not evaluated", needs=needs)


def _first_failure(case: _Case) -> dict[str, Any] | None:
    """The first event that took text away, or was about to."""
    found = case.of("queue_full", *_DEATHS, *FAILURES).drop_nulls("clock")
    return found.row(0, named=True) if found.height else None


def _memory_short(case: _Case, name: str, roles: Sequence[str], failure: Mapping[str, Any] | None) -> Link:
    """The first reading in which requests waited for memory and went on doing so, or the pool was nearly full."""
    if not case.has(roles):
        return _unknown(name, case.log_of(roles[0]))
    mine = case.readings.filter(pl.col("role").is_in(roles))
    retracted = case.of("retracted").filter(pl.col("role").is_in(roles)).drop_nulls("clock")
    silent = mine.select(pl.col("prealloc_requests", "kv_used_ratio").is_null().all()).row(0) == (True, True)
    if silent and retracted.is_empty():
        return _unknown(name, f"a {roles[0]} log that tells of its memory")
    signs = mine.filter(_starved())
    if retracted.height and (signs.is_empty() or retracted["clock"][0] < signs["clock"].min()):
        first = retracted.row(0, named=True)
        many = float(retracted["count"].sum())
        what = f"{plural(many, 'request')} put back for want of memory, first at {_at(first['clock'])}"
        return _event(name, what, first, brief=f"{first['role']} put requests back for want of memory from {{}}")
    if signs.is_empty():
        return Link(name, f"no request waited for memory and no pool was {FULL_RATIO:.0%} full", "not seen")
    return _starving(case, name, signs, failure)


def _starved() -> pl.Expr:
    """A reading that shows want of memory: one alone may be a request caught between two steps."""
    waiting, running = pl.col("prealloc_requests"), pl.col("running_requests").fill_null(0)
    near = (pl.col("clock").shift(-1).over(_SERIES) - pl.col("clock")) <= _NEAR
    goes_on = (waiting.shift(-1).over(_SERIES) > 0) & near
    crowded = waiting > pl.max_horizontal(running, pl.lit(1))
    waits = (waiting > 0) & (goes_on.fill_null(False) | crowded)
    return waits.fill_null(False) | (pl.col("kv_used_ratio") >= FULL_RATIO).fill_null(False)


def _starving(case: _Case, name: str, signs: pl.DataFrame, failure: Mapping[str, Any] | None) -> Link:
    first = signs.sort("clock", "instance").row(0, named=True)
    before = signs
    if failure and first["clock"] <= failure["clock"] and case.same_clock(first["instance"], failure["instance"]):
        before = signs.filter(pl.col("clock") <= failure["clock"])
    want = ("prealloc_requests", "queued_requests", "kv_used_ratio")
    worst = before.sort(*want, "clock", descending=[True, True, True, False], nulls_last=True).row(0, named=True)
    what = f"{_reading(first)} at {_at(first['clock'])}"
    if worst["place"] != first["place"]:
        what += f"; at the worst{'' if before is signs else ' before the first failure'} {_reading(worst)}"
        what += _later(worst, first)
    brief = f"{first['role']} ran short of memory at {{}} ({_reading(worst)}{_later(worst, first)})"
    return _reading_link(name, what, first, worst, brief=brief)


def _reading_link(name: str, what: str, first: Mapping[str, Any], most: Mapping[str, Any], *, brief: str) -> Link:
    """A gauge is read now and then: what it shows began after the reading before."""
    clock, before = first["clock"], first["before"]
    return Link(
        name, what, "seen", clock, before, clock, first["instance"], first["role"], _places(first, most), brief=brief
    )


def _later(row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    return f" at {_at(row['clock'], first['clock'])}" if row["clock"] != first["clock"] else ""


def _reading(row: Mapping[str, Any]) -> str:
    """`2 running, 19 waiting for memory, pool 41 % used`; what was not told is left out."""
    waiting = row["prealloc_requests"]
    queued = row["queued_requests"] if waiting is None else None
    used = row["kv_used_ratio"]
    idle = row["role"] == "prefill" and not row["running_requests"]  # its batch is over when its line is printed
    parts = (
        ("{:,.0f} running", None if idle else row["running_requests"]),
        ("{:,.0f} waiting for memory", waiting),
        ("{:,.0f} queued", queued),
        ("pool {:.0f} % used", None if used is None else 100 * used),
    )
    rank = f" ({row['rank']})" if row["rank"] else ""
    return ", ".join(text.format(value) for text, value in parts if value is not None) + rank


def _queue_filling(case: _Case, failure: Mapping[str, Any] | None) -> Link:
    """The stretch of readings that leads to the longest transfer queue before the first failure."""
    queue = pl.max_horizontal("transferring_requests", "bootstrap_requests").alias("queue")
    told = case.readings.with_columns(queue).drop_nulls("queue")
    if told.is_empty():
        missing = [role for role in ("prefill", "decode") if not case.has((role,))]
        return _unknown(QUEUE, f"the {listed(missing)} log" if missing else "a log that tells of its transfers")
    before = told.filter(pl.col("clock") <= failure["clock"]) if failure else told
    peaks = (frame.sort("queue", "clock", descending=[True, False]) for frame in (before, told))
    peak = next((peak.row(0, named=True) for peak in peaks if peak.height and peak["queue"][0] >= _LEAST_QUEUE), None)
    if peak is None:
        return Link(QUEUE, "never more than one request on its way", "not seen")
    first = _stretch(told, peak)
    what = f"{_in_transfer(first)} at {_at(first['clock'])}"
    if peak["clock"] != first["clock"]:
        what += f", {peak['queue']:,.0f} at {_at(peak['clock'], first['clock'])}"
    brief = f"the transfer queue of {first['role'] or 'a server'} filled from {{}} (to {peak['queue']:,.0f} requests)"
    return _reading_link(QUEUE, what, first, peak, brief=brief)


def _stretch(told: pl.DataFrame, peak: Mapping[str, Any]) -> dict[str, Any]:
    """The first reading of the stretch without a zero or a pause that ends in the peak."""
    same = [pl.col(name).eq_missing(pl.lit(peak[name])) for name in _SERIES]
    mine = told.filter(*same, pl.col("clock") <= peak["clock"]).sort("clock")
    paused = (pl.col("clock") - pl.col("before")) > _NEAR
    began = mine.with_columns(((pl.col("queue") == 0) | paused.fill_null(True)).cum_sum().alias("stretch"))
    last = began.filter(pl.col("stretch") == began["stretch"].max(), pl.col("queue") > 0)
    return last.row(0, named=True)


def _in_transfer(row: Mapping[str, Any]) -> str:
    kinds = ((row["transferring_requests"], "in transfer"), (row["bootstrap_requests"], "waiting for a decode server"))
    return " and ".join(f"{value:,.0f} {words}" for value, words in kinds if value)


def _rejected(case: _Case) -> Link:
    """The first rejection: its counter is told at powers of two, and only grows while its process lives."""
    full = case.of("queue_full")
    if full.is_empty():
        away = case.of("request_rejected")
        if away.height:
            first = away.row(0, named=True)
            what = f"{plural(float(away['count'].sum()), 'request')} turned away, first at {_at(first['clock'])}"
            return _event(REJECTED, what, first, brief="requests were turned away from {}")
        if not case.has(_PREFILL):
            return _unknown(REJECTED, "the prefill log")
        return Link(REJECTED, "no rejection was logged", "not seen")
    first = full.row(0, named=True)
    by_server = full.group_by("instance").agg(pl.col("count").max())
    least = max(by_server["count"].sum(), 1)
    restarted = case.of("ready").filter(
        pl.col("instance").is_in(full["instance"].implode()),
        pl.col("clock") > pl.lit(first["clock"], pl.Datetime("us")),
    )
    bounds = f"at least {least:,.0f}" + (f", below {2 * least:,.0f}" if restarted.is_empty() else "")
    most = full.sort("count", descending=True, nulls_last=True).row(0, named=True)
    what = f"transfers turned away from {_at(first['clock'])} on, {bounds} in all since the process started"
    return _event(REJECTED, what, first, most, brief=f"transfers were turned away from {{}} ({bounds})")


def _died(case: _Case) -> Link:
    """The first session that died, peer that was lost or server that crashed, and whether it came back."""
    found = case.of(*_DEATHS)
    if found.is_empty():
        return _not_alive(case)
    first = found.row(0, named=True)
    at = _at(first["clock"])
    if first["kind"] != "session_failed":
        verb = "crashed" if first["kind"] == "crashed" else "lost its peer"
        subject = f" ({first['subject']})" if first["subject"] else ""
        what = f"the {first['role'] or 'server'} {'server ' if first['role'] else ''}{verb} at {at}{subject}"
        return _event(DIED, what, first, brief=f"{first['role'] or 'a server'} {verb} at {{}}")
    sessions = _sessions(case)
    dead = sessions.filter("dead")
    many = f"; {sessions.height:,} sessions died in all" if sessions.height > 1 else ""
    back = sessions["recovered"].min()
    after = f"; it recovered at {_at(back, first['clock'])}" if isinstance(back, datetime) else ""
    still = f"; {plural(dead.height, 'session')} did not recover before the log ends" if dead.height else ""
    name = f"session {first['subject']}" if first["subject"] else "a transfer session"
    fate = " and did not recover" if dead.height else " and recovered"
    rows = [first, *case.of("session_recovered").head(1).iter_rows(named=True)]
    return _event(DIED, f"{name} died at {at}{many}{after}{still}", *rows, brief=f"{name} died at {{}}{fate}")


def _sessions(case: _Case) -> pl.DataFrame:
    """One row a session that died: when it recovered first after a death, and whether it is dead at the end."""
    deaths = case.of("session_failed").group_by("instance", "subject").agg(pl.col("clock").max().alias("died"))
    lives = case.of("session_recovered").select("instance", "subject", pl.col("clock").alias("recovered"))
    both = deaths.join(lives, on=["instance", "subject"], how="left", nulls_equal=True)
    after = pl.col("recovered").filter(pl.col("recovered") >= pl.col("died")).min()
    return both.group_by("instance", "subject").agg(after.is_null().alias("dead"), pl.col("recovered").min())


def _not_alive(case: _Case) -> Link:
    """A death that only later transfers tell of."""
    told = case.of(*FAILURES).filter(pl.col("text").str.contains(_NOT_ALIVE, literal=True))
    if told.height:
        first = told.row(0, named=True)
        what = f"transfers from {_at(first['clock'])} on fail: the session is not alive; no log tells of its death"
        link = _event(DIED, what, first, brief="a session was dead by {}")
        return replace(link, how="inferred", since=None)
    roles = _PREFILL if case.is_split else _DECODE
    if not case.has(roles):
        return _unknown(DIED, case.log_of(roles[0]))
    return Link(DIED, "no session died and no server crashed", "not seen")


def _failed(case: _Case) -> Link:
    """The first request whose transfer failed, and how many did: one a bootstrap room, whichever side tells of it."""
    failed = case.of(*FAILURES)
    if failed.is_empty():
        return _counted(case)
    rooms = failed.drop_nulls("subject")["subject"].unique()
    unnamed = failed.filter(pl.col("subject").is_null()).group_by("instance").agg(pl.col("count").sum())["count"].max()
    many = rooms.len() + (float(unnamed) if isinstance(unnamed, int | float) else 0)
    first = failed.row(0, named=True)
    room = f" (room {first['subject']})" if first["subject"] else ""
    aside = _aborted(case, rooms)
    what = f"first at {_at(first['clock'])}{room}; {plural(many, 'request')} in all{_within(case, failed)}{aside}"
    brief = f"{plural(many, 'request')} failed in transfer from {{}} on"
    return _event(FAILED, what, first, failed.row(-1, named=True), brief=brief)


def _aborted(case: _Case, rooms: pl.Series) -> str:
    left = case.of("transfer_aborted").filter(~pl.col("subject").is_in(rooms.implode()).fill_null(False))
    many = left.select(pl.col("subject").drop_nulls().n_unique() + pl.col("subject").is_null().sum()).item()
    return f"; {plural(many, 'aborted transfer')} set aside: a symptom" if many else ""


def _within(case: _Case, failed: pl.DataFrame) -> str:
    """How many of them failed while a run went on."""
    spans = case.windows.select("instance", "started_at", "ended_at")
    if spans.is_empty():
        return ""
    inside = failed.join_where(
        spans.rename({"instance": "joined"}),
        pl.col("instance") == pl.col("joined"),
        pl.col("clock") >= pl.col("started_at"),
        pl.col("clock") <= pl.col("ended_at") + timedelta(seconds=1),  # logs print whole seconds
    )
    many = inside["subject"].drop_nulls().n_unique()
    return f", {many:,} of them during the runs" if many else ", none of them during the runs"


def _counted(case: _Case) -> Link:
    """Failures that only a counter tells of."""
    for name in _COUNTERS:
        told = case.readings.drop_nulls(name).with_columns(pl.col(name).diff().over(_SERIES).alias("more"))
        rose = told.filter(pl.col("more") > 0).sort("clock")
        if rose.height:
            first = rose.row(0, named=True)
            most = max(rose.group_by("instance", "rank").agg(pl.col("more").sum())["more"].to_list())
            what = f"a counter of failed transfers rose by {most:,.0f}, first by {_at(first['clock'])}"
            link = _event(FAILED, what, first, brief="failed transfers were counted from {} on")
            return replace(link, since=first["before"])
    if not case.has(("prefill", "decode")):
        return _unknown(FAILED, "the prefill or the decode log")
    return Link(FAILED, f"no transfer failed{_aborted(case, pl.Series([], dtype=pl.String))}", "not seen")


def _no_text(case: _Case, failure: Mapping[str, Any] | None) -> Link:
    """The first run in time that a rule on output refused, and what the later ones gave."""
    short = case.runs.filter(pl.col("output_rules").list.len() > 0)
    if case.runs.is_empty():
        return _unknown(NO_TEXT, "the output of the client")
    if short.is_empty():
        if (case.runs["verdict"] == UNVERIFIED).any():
            return _unknown(NO_TEXT, "the answers, or a count of their tokens")
        other = _refused_otherwise(case)
        return Link(NO_TEXT, f"no run was refused for missing text{f'; {other}' if other else ''}", "not seen")
    first = short.row(0, named=True)
    window = _window(case, first["run_id"], failure["instance"] if failure else None)
    later = case.runs.filter(pl.int_range(pl.len()) > case.runs["run_id"].index_of(first["run_id"]))
    again = later.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))["level"].to_list()
    parts = [_came_back(row) for row in short.iter_rows(named=True)]
    back = f"; text came back again at {listed(again)}" if again else ""
    exact = window is not None and window["way"] != "bursts"  # of bursts nobody knows that they are these runs
    span = f" (from {_at(window['started_at'])} to {_at(window['ended_at'], window['started_at'])})" if window else ""
    what = f"{parts[0]}{span}{''.join(f'; {part}' for part in parts[1:])}{back}"
    places = tuple(case.lines.get(first["run_id"], [])[:_PLACES])
    since = f" (its window starts at {_at(window['started_at'])})" if window else ""
    brief = f"{parts[0]}{since}{_later_levels(short)}{back.replace('; ', ', and ')}"
    if not window:
        return Link(NO_TEXT, what, "seen", places=places, brief=brief)
    return Link(
        NO_TEXT, what, "seen", window["started_at"], window["started_at"], window["ended_at"] if exact else None,
        window["instance"], window["role"], places, brief=brief,
    )  # fmt: skip


def _refused_otherwise(case: _Case) -> str:
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


def _window(case: _Case, run_id: str, instance: str | None) -> dict[str, Any] | None:
    """When the run went on, on the clock of the server that failed first where that was joined."""
    mine = case.windows.filter(pl.col("run_id") == run_id).drop_nulls("started_at")
    rows = mine.sort(pl.col("instance") != pl.lit(instance), "instance", nulls_last=True)
    return rows.row(0, named=True) if rows.height else None


def _end(case: _Case) -> Link:
    """What each log says last."""
    last = pl.concat(
        frame.select("instance", "role", "clock", "place").drop_nulls("clock") for frame in (case.readings, case.events)
    ).sort("clock")
    if last.is_empty():
        return _unknown(END, "server logs that carry a clock")
    each = [
        _ending(case, row) for row in last.unique("instance", keep="last", maintain_order=True).iter_rows(named=True)
    ]
    dead = _sessions(case).filter("dead")["subject"].drop_nulls().to_list()
    still = f"; still dead: {listed(dead[:_PLACES])}" if dead else ""
    row = last.row(-1, named=True)
    return Link(
        END, "; ".join(each[:_PLACES]) + still, "seen", row["clock"], row["clock"], row["clock"], row["instance"],
        row["role"], (row["place"],), order="in order",
    )  # fmt: skip


def _ending(case: _Case, row: Mapping[str, Any]) -> str:
    of = case.readings.filter(pl.col("instance") == row["instance"]).sort("clock")
    reading = of.row(-1, named=True) if of.height else None
    parts = [part for part in (_reading(reading), _in_transfer(reading)) if part] if reading else []
    said = f", its last reading {', '.join(parts)}" if parts else ""
    alone = [role for _, role in case.servers].count(row["role"]) == 1 and row["role"]
    return (
        f"the {row['role'] if alone else basename(row['instance'] or 'server')} log ends at {_at(row['clock'])}{said}"
    )


def _event(name: str, what: str, first: Mapping[str, Any], *more: Mapping[str, Any], brief: str) -> Link:
    clock = first["clock"]
    return Link(
        name, what, "seen", clock, clock, clock, first["instance"], first["role"], _places(first, *more), brief=brief
    )


def _places(*rows: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row["place"] for row in rows if row["place"]))[:_PLACES]


def _at(clock: datetime | None, day_of: datetime | None = None) -> str:
    """`09:03:20`, with its day where that is not the day of what was named before."""
    if clock is None:
        return "an unknown time"
    other_day = day_of is not None and clock.date() != day_of.date()
    return f"{clock:%Y-%m-%d %H:%M:%S}" if other_day else f"{clock:%H:%M:%S}"


# --- their order, and the sentence ----------------------------------------------------------------------------------


def _ordered(links: Sequence[Link], case: _Case) -> list[Link]:
    """The links with their `order`: each is held against what it would have caused, or, the last, what caused it."""
    timed = [link for link in links if link.when and link.how in ("seen", "inferred") and link.name != END]
    orders = {link.name: _order(link, timed[at + 1 :] or timed[:at], case) for at, link in enumerate(timed)}
    return [replace(link, order=orders.get(link.name, link.order)) for link in links]


def _order(link: Link, others: Sequence[Link], case: _Case) -> Order:
    """Logs print whole seconds, and a gauge is read now and then: only what surely came later is out of order."""
    if not others:
        return "in order"
    held = [other for other in others if case.same_clock(link.instance, other.instance)]
    if not held:
        return "not evaluated"
    if _is_last(link, others):
        return "in order"
    ends = [_second(other.until) for other in held if other.until]
    if not ends:
        return "not evaluated"
    if link.since and any(_second(link.since) > end for end in ends):
        return "out of order"
    seen_later = link.when is not None and any(_second(link.when) > end for end in ends)
    return "not evaluated" if seen_later else "in order"


def _is_last(link: Link, others: Sequence[Link]) -> bool:
    order = (MEMORY, PREFILL_MEMORY, QUEUE, REJECTED, DIED, FAILED, NO_TEXT)
    return all(order.index(other.name) < order.index(link.name) for other in others)


def _second(clock: datetime) -> datetime:
    return clock.replace(microsecond=0)


def _sentence(case: _Case, links: Sequence[Link]) -> str:
    """The chain in one sentence, of seen links alone, each with the time at which it was first seen."""
    told = [link for link in links if link.seen and link.brief and link.order != "out of order"]
    day: datetime | None = None
    parts = []
    for link in told:
        first = day is None and link.when is not None
        time = "" if link.when is None else f"{link.when:%Y-%m-%d %H:%M:%S}" if first else _at(link.when, day)
        day = link.when or day
        parts.append(link.brief.format(time or "an unknown time"))
    if not any(link.name == NO_TEXT for link in told) and _all_served(case):
        parts.append("all text came back")
    elif other := _refused_otherwise(case):
        parts.append(other)
    parts += [
        f"whether text came back is {link.said}"
        for link in links
        if link.name == NO_TEXT and link.how == "not evaluated"
    ]
    late = [link.name for link in links if link.order == "out of order"]
    if late:
        parts.append(f"{listed(late)} came later and {'is' if len(late) == 1 else 'are'} no cause")
    clocks = list(dict.fromkeys(link.instance for link in told if link.when))
    if any(not case.same_clock(clocks[0], other) for other in clocks[1:]):
        parts.append("the servers are not known to share a clock, so what came first between them is not evaluated")
    return _whole(parts)


def _whole(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _all_served(case: _Case) -> bool:
    return case.runs.height > 0 and bool(case.runs["verdict"].is_in([MEASURED, DOUBTS]).all())


def _quiet(case: _Case, mild: Sequence[Link]) -> str:
    """What there is to say where nothing was rejected, nothing failed and no text is missing."""
    if not case.servers:
        return "No server log was read: there is nothing to put in order."
    served = (
        "all text came back" if _all_served(case)
        else "no output of a client was read" if case.runs.is_empty()
        else "no run was refused for missing text"
    )  # fmt: skip
    aside = _aborted(case, pl.Series([], dtype=pl.String))
    if not mild:
        logs = plural(len(case.servers), "server log")
        return f"No sign of starvation, rejection or failure in {logs}; {served}{aside}."
    times = [link.brief.format(f"{link.when:%Y-%m-%d %H:%M:%S}") for link in mild]
    nothing = "no transfer was rejected or failed" if case.is_split else "nothing failed"
    return _whole([*times, f"{nothing}, and {served}{aside}"])
