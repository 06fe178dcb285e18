"""What to watch in production: SGLang's counters and gauges by the names that the versions seen give them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from pdkit.results import Judgement
from pdkit.tables.layout import Cell, Column, Group, Part, Row, Section, Table, Words
from pdkit.units import listed

Version = tuple[int, ...]


@dataclass(frozen=True)
class Watched:
    """One metric of a server: its name in versions from `since` to before `until`, and what it tells."""

    name: str
    kind: str
    side: str
    tells: str
    since: Version = ()
    until: Version = (9999,)

    def is_of(self, version: Version) -> bool:
        """Whether a server of this version has it under this name."""
        return self.since <= version < self.until

    @property
    def versions(self) -> str:
        """`from 0.5.12`, `before 0.5.12`; "" where all have it."""
        first, end = (".".join(map(str, version)) for version in (self.since, self.until))
        said = [f"from {first}" if self.since else "", f"before {end}" if self.until < (9999,) else ""]
        return ", ".join(filter(None, said))


# Names and versions as the source of SGLang 0.4.6 to 0.5.23 has them. What a transfer took is a gauge in 0.5.9 and a
# histogram in 0.5.11; 0.5.10 was not read.
WATCHED = (
    Watched("num_transfer_failed_reqs_total", "counter", "both", "any growth: a request ended without text"),
    Watched("num_bootstrap_failed_reqs_total", "counter", "both", "any growth: the two sides did not meet"),
    Watched("num_decode_prealloc_queue_reqs", "gauge", "decode", "above 0 for longer than a moment: requests wait for memory"),
    Watched("num_decode_transfer_queue_reqs", "gauge", "decode", "growing: KV caches arrive slower than they are sent for"),
    Watched("num_prefill_prealloc_queue_reqs", "gauge", "prefill", "growing: requests wait for their decode side", until=(0, 5, 12)),
    Watched("num_prefill_bootstrap_queue_reqs", "gauge", "prefill", "growing: requests wait for their decode side", since=(0, 5, 12)),
    Watched("num_prefill_infight_queue_reqs", "gauge", "prefill", "growing: prefilled, and not taken by decode", until=(0, 5, 3)),
    Watched("num_prefill_inflight_queue_reqs", "gauge", "prefill", "growing: prefilled, and not taken by decode", since=(0, 5, 3)),
    Watched("kv_transfer_speed_gb_s", "gauge", "prefill", "falling under load: the link is busy, or lost", since=(0, 5, 3), until=(0, 5, 11)),
    Watched("kv_transfer_speed_gb_s", "histogram (_sum / _count)", "prefill", "falling under load: the link is busy, or lost", since=(0, 5, 11)),
    Watched("kv_transfer_latency_ms", "gauge", "prefill", "growing, or no new values while requests arrive", since=(0, 5, 3), until=(0, 5, 11)),
    Watched("kv_transfer_latency_ms", "histogram (_sum / _count)", "prefill", "growing, or no new values while requests arrive", since=(0, 5, 11)),
    Watched("token_usage", "gauge", "decode", "near 1, or low while requests wait: the rest is set aside"),
    Watched("generation_tokens_total", "counter", "both", "its growth against the tokens that clients claim: the independent count"),
)  # fmt: skip
_PREFIX = "sglang:"
_COLUMNS = (Column("Metric"), Column("Kind"), Column("Side"), Column("What would be a sign"))


def watch(judgement: Judgement) -> Section:
    """Counters and gauges with their names in the versions seen; both names where the version is not known."""
    versions = sorted(_versions(judgement))
    seen = [watched for watched in WATCHED if not versions or any(watched.is_of(one) for one in versions)]
    told = len(versions) == 1
    parts: list[Part] = [
        Words(f"{_names(versions)} They are served at /metrics where a server was started with --enable-metrics."),
        Table("What to watch", _COLUMNS, (Group("", tuple(_rows(seen, told=told))),)),
        Words(
            "Each tensor-parallel rank counts a failure, and both sides do: take the largest over ranks, not the sum. "
            "Counters start again at 0 with their server. No counter of a router sees a transfer that failed inside a "
            "stream: it answered 200. Beside the counters keep one check in whatever sends the load: tokens that came "
            "back as text against tokens claimed."
        ),
    ]
    return Section("watch", tuple(parts))


def _names(versions: Sequence[Version]) -> str:
    """Whose names these are."""
    if not versions:
        return "No log tells the servers' version: the names of all versions of SGLang are listed."
    known = listed([".".join(map(str, version)) for version in versions])
    return f"Names as SGLang {known} {'has' if len(versions) == 1 else 'have'} them."


def _rows(seen: list[Watched], *, told: bool) -> Iterator[Row]:
    for watched in seen:
        versions = (watched.versions,) if watched.versions and not told else ()
        yield (
            Cell(f"{_PREFIX}{watched.name}", "code"),
            Cell(watched.kind, more=versions),
            Cell(watched.side),
            Cell(watched.tells),
        )


def _versions(judgement: Judgement) -> set[Version]:
    """The versions that servers or clients' records state."""
    stated = judgement.evidence.settings.filter(pl.col("name") == "engine_version")["text"].drop_nulls().to_list()
    stated += judgement.facts["server_version"].drop_nulls().to_list()
    return {tuple(map(int, found[0].split("."))) for text in stated if (found := re.search(r"\d+\.\d+\.\d+", text))}
