"""Server evidence made for tests: readings, events and windows that can be worked out by hand."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from pdkit.evidence import Evidence, Row
from pdkit.judge import judge
from pdkit.results import Judgement
from tests.charts.made import evidence, run

DAY = datetime(2026, 8, 21, 9, 0, 0)
WINDOWS = pl.Schema({
    "run_id": pl.String(), "experiment": pl.String(), "instance": pl.String(), "role": pl.String(),
    "started_at": pl.Datetime("us"), "ended_at": pl.Datetime("us"), "shift_h": pl.Int64(), "way": pl.String(),
    "said": pl.String(),
})  # fmt: skip
ROLE_OF = {"decode.log": "decode", "decode-2.log": "decode", "prefill.log": "prefill", "server.log": "colocated"}


def at(second: float) -> datetime:
    """A second of the day on which all happens, from nine o'clock."""
    return DAY + timedelta(seconds=second)


def reading(instance: str, second: float, *, line: int = 1, rank: str = "", **gauges: float) -> list[Row]:
    """What one line of a server tells in one second."""
    about = {"experiment": "made", "instance": instance, "role": ROLE_OF[instance], "rank": rank, "clock": at(second)}
    place = {"source_file": instance, "source_line": line}
    return [
        about | place | {"metric": name, "value_min": value, "value_mean": value, "value_max": value, "n": 1}
        for name, value in gauges.items()
    ]


def event(
    instance: str, second: float | None, kind: str, *, line: int = 1, count: float = 1, subject: str | None = None,
    text: str | None = None,
) -> Row:  # fmt: skip
    """One thing that happened on a server."""
    return {
        "experiment": "made", "instance": instance, "role": ROLE_OF[instance], "kind": kind, "count": count,
        "clock": None if second is None else at(second), "subject": subject, "text": text, "source_file": instance,
        "source_line": line,
    }  # fmt: skip


def window(level: float, instance: str, start: float, end: float, *, shift: int = 0, way: str = "manifest") -> Row:
    """When the run of a level went on, as that server's clock tells it."""
    return {
        "run_id": f"made-{level}-inf", "experiment": "made", "instance": instance, "role": ROLE_OF[instance],
        "started_at": at(start), "ended_at": at(end), "shift_h": shift, "way": way, "said": "",
    }  # fmt: skip


def judged(
    *,
    readings: Sequence[list[Row]] = (),
    events: Sequence[Row] = (),
    windows: Sequence[Row] = (),
    received: Mapping[float, float | None] | None = None,
) -> Judgement:
    """One experiment, judged; `received` says by level which share of the claimed tokens came back."""
    runs = [run(level, received=share) for level, share in (received or {}).items()]
    servers = Evidence.of(samples=[row for rows in readings for row in rows], events=list(events))
    return joined(judge(Evidence.joined([evidence(*runs), servers])), windows)


def joined(judgement: Judgement, windows: Sequence[Row] = ()) -> Judgement:
    """With these windows, whatever the runs were joined to."""
    object.__setattr__(judgement, "windows", pl.DataFrame(list(windows), schema=WINDOWS))
    return judgement
