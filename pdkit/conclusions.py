"""What the runs of an experiment say together, in a sentence."""

from math import isfinite
from typing import Any

import polars as pl

from pdkit import results as r
from pdkit.units import listed

_LEVELS_NAMED = 8  # in one sentence; beyond that only their range


def conclusions(verdicts: pl.DataFrame) -> pl.DataFrame:
    """One sentence an experiment, folded from its runs: (experiment, title, sentence)."""
    named = ["experiment", "label", "verdict", "level", "level_void", "concurrency", "request_rate_per_s"]
    by_experiment: dict[str, list[dict[str, Any]]] = {}  # a frame an experiment would cost more than all rules
    for run in verdicts.select(named).iter_rows(named=True):
        by_experiment.setdefault(run["experiment"], []).append(run)
    rows = [
        {"experiment": name, "title": next((run["label"] for run in runs if run["label"] is not None), None) or name,
         "sentence": concluded(runs)}
        for name, runs in by_experiment.items()
    ]  # fmt: skip
    return pl.DataFrame(rows, schema={"experiment": pl.String, "title": pl.String, "sentence": pl.String})


def concluded(runs: list[dict[str, Any]]) -> str:
    """What the runs of one experiment say together, from the best verdict to the worst."""
    believed = [run for run in runs if run["verdict"] in (r.MEASURED, r.DOUBTS)]
    parts = []
    if believed:
        doubts = [run["verdict"] for run in believed].count(r.DOUBTS)
        how = (
            ""
            if doubts == 0
            else ", with doubts"
            if doubts == len(believed)
            else f" ({doubts} of {len(believed)} with doubts)"
        )
        parts.append(f"measured {_to(believed, runs) or _at(believed)}{how}")
    for verdict, words in ((r.UNVERIFIED, "unverified"), (r.NO_RESULT, r.NO_RESULT)):
        some = [run for run in runs if run["verdict"] == verdict]
        if some:
            parts.append(f"{words} {_at(some)}")
    return "; ".join(parts)


def _is_cap(run: dict[str, Any]) -> bool:
    """Whether its level is a number of users alone, and was held."""
    cap, rate = run["concurrency"], run["request_rate_per_s"]
    alone = cap is not None and isfinite(cap) and not (rate is not None and isfinite(rate))
    return alone and not run["level_void"]


def _caps(runs: list[dict[str, Any]]) -> list[float]:
    return sorted({run["concurrency"] for run in runs if _is_cap(run)})


def _to(believed: list[dict[str, Any]], every: list[dict[str, Any]]) -> str:
    """`to 8 users`, where all levels up to there are believed, and nothing else is."""
    caps, all_caps = _caps(believed), _caps(every)
    only_users = len({run["level"] for run in believed}) == len(caps)
    return f"to {caps[-1]:g} users" if only_users and len(caps) > 1 and caps == all_caps[: len(caps)] else ""


def _at(some: list[dict[str, Any]]) -> str:
    """`at 16 and 32 users`, `at 8 requests/s and at a level that is not stated`."""
    caps = _caps(some)
    named = listed([f"{cap:g}" for cap in caps])
    if len(caps) > _LEVELS_NAMED:
        named = f"{len(caps)} levels from {caps[0]:g} to {caps[-1]:g}"
    users = [f"at {named} {'user' if caps == [1] else 'users'}"] if caps else []
    levels = list(dict.fromkeys(run["level"] for run in some if not _is_cap(run)))
    words = [f"at {'a level that is not stated' if level == r.NO_LEVEL else level}" for level in levels]
    if len(words) > _LEVELS_NAMED:
        words = [f"at {len(levels)} {'other ' if users else ''}levels"]
    return listed(users + words)
