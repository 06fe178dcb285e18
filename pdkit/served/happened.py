"""What went wrong or was answered on the servers of a run: counts of events, each thing once."""

import polars as pl

from pdkit.evidence import PLACE, Evidence
from pdkit.served.parts import GENERATING, growth_of, of_roles, side_by_side, within
from pdkit.served.whole import cut_off
from pdkit.signals import FAILURES
from pdkit.windows import CLOCKS, Joined

_ENTRIES = ("router", "decode", "colocated", "prefill")  # who sees each request once, best first
FAILED_TOTALS = ("transfer_failed_total", "bootstrap_failed_total")


def joining(joined: Joined, runs: pl.DataFrame) -> pl.DataFrame:
    """How many servers each run is joined to, by what shift, and how many have clocks that do not line up."""
    by_run = joined.windows.group_by("run_id").agg(
        pl.col("instance").n_unique().alias("server_instances"),
        pl.col("shift_h").get(pl.col("shift_h").abs().arg_max()).alias("clock_shift_h"),
    )
    off = joined.unjoined.group_by("experiment").agg((pl.col("why") == CLOCKS).sum().alias("unaligned_instances"))
    beside = runs.select("run_id", "experiment").join(off, on="experiment", how="left")
    told = beside.join(by_run, on="run_id", how="left").drop("experiment")
    some = pl.col("server_instances").is_not_null()
    return told.with_columns(pl.coalesce("unaligned_instances", pl.when(some).then(0)))


def went_wrong(evidence: Evidence, events: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Counts of what went wrong; 0 where a log that would tell of it was joined and says nothing."""
    kind, count = pl.col("kind"), pl.col("count")
    told = events.group_by("run_id").agg(
        _rooms(kind.is_in(FAILURES)).alias("failed"),
        (_rooms(kind.is_in([*FAILURES, "transfer_aborted"])) - _rooms(kind.is_in(FAILURES))).alias("aborted"),
        count.filter(kind == "retracted").sum().alias("retracted"),
        count.filter(kind == "crashed").sum().alias("crashed"),
        count.filter(kind == "corrupted").sum().alias("corrupted"),
        count.filter(kind == "request_rejected").sum().alias("rejected"),
    )
    logs = evidence.sources.filter(pl.col("reader").str.contains("server_log"))["path"]
    file = pl.col("instance").str.split("#").list.first()
    watched = windows.filter(file.is_in(logs.implode())).select("run_id").unique()
    seen = watched.join(told, on="run_id", how="left").join(_rejections(evidence, windows), on="run_id", how="left")
    logged = seen.select(
        "run_id",
        pl.col("failed").fill_null(0),
        pl.col("aborted").fill_null(0).alias("aborted_transfers"),
        pl.col("rejections").fill_null(0).alias("queue_full_rejections"),
        pl.col("retracted").fill_null(0).alias("retracted_requests"),
        pl.col("crashed").fill_null(0).alias("crashes"),
        pl.col("corrupted").fill_null(0),
        pl.col("rejected").fill_null(0).alias("turned_away"),
    )
    both = side_by_side([logged, _failed_by_counters(evidence, windows)])
    # the counters hold what was given up as well
    counted = (pl.col("by_counters") - pl.col("aborted_transfers").fill_null(0)).clip(lower_bound=0)
    return both.with_columns(pl.max_horizontal("failed", counted).alias("failed_transfers")).drop(
        "failed", "by_counters"
    )


def _rooms(chosen: pl.Expr) -> pl.Expr:
    """Requests among the chosen events: one a bootstrap room, and one a line that names none."""
    subject = pl.col("subject").filter(chosen)
    return subject.drop_nulls().n_unique() + subject.is_null().sum()


def _rejections(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Rejections of the transfer queue within each window, at least so many.

    The count is one of the process and is printed at powers of two: M before and N within say that it was below 2 M
    when the window began and N within it.
    """
    full = evidence.events.filter(pl.col("kind") == "queue_full").select("instance", "clock", "count")
    spans = windows.select("run_id", "instance", "started_at", "ended_at").join(full, on="instance")
    within, before = pl.col("clock").is_between("started_at", "ended_at"), pl.col("clock") < pl.col("started_at")
    by_instance = spans.group_by("run_id", "instance").agg(
        pl.col("count").filter(within).max().alias("most"), pl.col("count").filter(before).max().alias("earlier")
    )
    at_least = pl.col("most") - (2 * pl.col("earlier") - 1).fill_null(0)
    return by_instance.drop_nulls("most").group_by("run_id").agg(at_least.clip(1).sum().alias("rejections"))


def dead_sessions(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Sessions that died in or before each window and had not come back at its end, each with its line.

    A server that started again since has none of its old sessions.
    """
    about = pl.col("kind").is_in(["session_failed", "session_recovered"])
    told = evidence.events.filter(about).select("instance", "clock", "kind", "subject", *PLACE)
    ready = evidence.events.filter(pl.col("kind") == "ready").select("instance", pl.col("clock").alias("ready_at"))
    spans = windows.select("run_id", "instance", "ended_at").join(ready, on="instance", how="left")
    since = spans.group_by("run_id", "instance", "ended_at").agg(
        pl.col("ready_at").filter(pl.col("ready_at") <= pl.col("ended_at")).max()
    )
    lived = since.join(told, on="instance").filter(
        pl.col("clock") <= pl.col("ended_at"), pl.col("ready_at").is_null() | (pl.col("clock") >= pl.col("ready_at"))
    )
    last = lived.sort("clock", "source_line").unique(["run_id", "instance", "subject"], keep="last")
    return last.filter(pl.col("kind") == "session_failed")


def died(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """How many transfer sessions were dead at the end of each run; 0 where a log that would tell says nothing."""
    dead = dead_sessions(evidence, windows).group_by("run_id").agg(pl.len().alias("sessions_failed"))
    logged = of_roles(windows, ("prefill", "decode", "colocated")).select("run_id").unique()
    return logged.join(dead, on="run_id", how="left").with_columns(pl.col("sessions_failed").fill_null(0))


def restarted(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Times that a server became ready within a window, having been ready before."""
    again = ready_again(evidence)
    inside = within(again, windows).group_by("run_id").agg(pl.len().alias("restarts"))
    logged = of_roles(windows, ("prefill", "decode", "colocated")).select("run_id").unique()
    return logged.join(inside, on="run_id", how="left").with_columns(pl.col("restarts").fill_null(0))


def ready_again(evidence: Evidence) -> pl.DataFrame:
    """The lines in which a server that was ready before says so again."""
    ready = evidence.events.filter(pl.col("kind") == "ready").sort("instance", "clock", "source_line")
    return ready.filter(pl.int_range(pl.len()).over("instance") > 0)


def answered(evidence: Evidence, events: pl.DataFrame, windows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """HTTP answers where each request is seen once: at the router, else at the servers behind it."""
    http = _at_entry(events).join(cut_off(evidence, windows, runs), on=["run_id", "role"], how="left", coalesce=False)
    status, cut = pl.col("subject").cast(pl.Int64, strict=False), pl.col("run_id_right").is_not_null()
    generating = events.filter(pl.col("kind") == "http", pl.col("role").is_in(GENERATING), pl.col("subject") == "200")
    answered = generating.group_by("run_id").agg(pl.col("count").sum().alias("decode_served_requests"))
    told = http.group_by("run_id").agg(
        pl.when(~cut.any()).then(pl.col("count").filter(status == 200).sum()).alias("served_requests"),
        pl.col("count").filter(status >= 500).sum().alias("server_errors"),
        pl.col("count").filter(status.is_in([429, 503])).sum().alias("rejected_requests"),
    )
    return side_by_side([told, answered])


def _at_entry(events: pl.DataFrame) -> pl.DataFrame:
    http = events.filter(pl.col("kind") == "http", pl.col("role").is_in(_ENTRIES))
    place = pl.col("role").replace_strict({role: at for at, role in enumerate(_ENTRIES)}, return_dtype=pl.Int64)
    return http.with_columns(place.alias("place")).filter(pl.col("place") == pl.col("place").min().over("run_id"))


def _failed_by_counters(evidence: Evidence, windows: pl.DataFrame) -> pl.DataFrame:
    """Failed transfers and bootstraps by the servers' own counters, both sides counted once: (run_id, by_counters)."""
    growth = pl.concat([growth_of(evidence, windows, name) for name in FAILED_TOTALS])
    sure = growth.filter(pl.col("grown") >= 0).group_by("run_id", "role").agg(pl.col("grown").sum())
    return sure.group_by("run_id").agg(pl.col("grown").max().alias("by_counters"))
