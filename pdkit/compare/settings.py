"""What is set on each side, or follows from what is set: where it differs, and which lines state it."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import polars as pl

from pdkit.checks.comparability import LENGTHS_OFF, card, weights
from pdkit.compare.comparison import Setting
from pdkit.facts import base_names, places
from pdkit.findings import Place
from pdkit.results import Judgement
from pdkit.rules import c
from pdkit.units import listed, show

# what is set, or follows from what is set, and what a page calls it
SETTINGS = {
    "model": "model", "precision": "precision", "server_version": "engine version", "gpu": "GPU", "gpu_count": "GPUs",
    "topology": "topology", "tool": "client", "client_definition": "client definition",
    "tool_version": "client version", "backend": "backend", "dataset": "data set",
    "input_tok_per_request": "prompt tokens a request", "output_tok_per_request": "output tokens a request",
    "prompts_asked": "prompts", "concurrency": "concurrency cap", "request_rate_per_s": "requests/s asked",
    "ignore_eos": "end token ignored", "streaming": "streamed", "accept_length": "accept length", "seed": "seed",
}  # fmt: skip
_MEASURED_SETTINGS = ("input_tok_per_request", "output_tok_per_request", "accept_length")  # alike, never the same
# repeats share their level, may have seeds of their own, and PD702 holds each one's lengths against the baseline's
_MAY_DIFFER = {"concurrency", "request_rate_per_s", "seed", *_MEASURED_SETTINGS}
_KEYS = {"model": weights(c.model), "gpu": card(c.gpu)}  # one thing under several names


class Settings:
    """The settings of all runs; of the `chosen` ones with the lines that state them."""

    def __init__(self, judgement: Judgement, chosen: Collection[str] = ()) -> None:
        keys = [key.alias(_key(name)) for name, key in _KEYS.items()]
        rows = judgement.facts.select("run_id", *SETTINGS, *keys)
        self._of_run = {row["run_id"]: row for row in rows.iter_rows(named=True)}
        self._places = _stated(judgement, chosen) if chosen else {}

    def unlike(self, runs: Sequence[str]) -> str:
        """Those in which repeats differ, with what they are; "" where the runs are alike."""
        rows, found = [self._of_run[run] for run in runs], []
        for fact, name in SETTINGS.items():
            values = {row[_key(fact)]: _shown(row[fact]) for row in rows if row[fact] is not None}
            if len(values) > 1 and fact not in _MAY_DIFFER:
                found.append(f"{name} ({listed(sorted(map(str, values.values())))})")
        return listed(found)

    def differing(self, there: str, here: str) -> Iterator[Setting]:
        """Those in which two runs differ, or that one of them alone states."""
        theirs, mine = self._of_run[there], self._of_run[here]
        for fact, name in SETTINGS.items():
            if not _alike(fact, theirs[_key(fact)], mine[_key(fact)]):
                yield Setting(
                    name,
                    baseline=_shown(theirs[fact]),
                    candidate=_shown(mine[fact]),
                    baseline_places=self._where(there, fact),
                    candidate_places=self._where(here, fact),
                )

    def _where(self, run: str, fact: str) -> tuple[Place, ...]:
        found = (place for base in sorted(base_names(fact)) for place in self._places.get((run, base), []))
        return tuple(dict.fromkeys(found))


def _stated(judgement: Judgement, chosen: Collection[str]) -> dict[tuple[str, str], list[Place]]:
    """The lines that state each fact of the chosen runs."""
    is_chosen = pl.col("run_id").is_in(list(chosen))
    stated = places(judgement.evidence, judgement.facts.filter(is_chosen)).filter(is_chosen)
    found: dict[tuple[str, str], list[Place]] = {}
    for run, fact, file, line in stated.select("run_id", "fact", "source_file", "source_line").iter_rows():
        found.setdefault((run, fact), []).append(Place(file, line))
    return found


def _key(fact: str) -> str:
    """The column by which two values of a setting are held to be the same."""
    return f"key {fact}" if fact in _KEYS else fact


def _alike(fact: str, one: Any, other: Any) -> bool:
    if fact in _MEASURED_SETTINGS and one and other:
        return bool(abs(other / one - 1) <= LENGTHS_OFF)
    return bool(one == other)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return show(value) if isinstance(value, float) else str(value)
