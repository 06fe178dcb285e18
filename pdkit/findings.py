"""A judgement as one table of plain values, run by run: what every format of `pdkit check` prints."""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

import polars as pl

from pdkit.goodput import worded
from pdkit.metrics import METRICS
from pdkit.results import (
    CLAIMED,
    FAILURES,
    NO_RESULT,
    NOTHING_TO_JUDGE,
    UNVERIFIED,
    Judgement,
    Severity,
    Verdict,
    Waived,
)
from pdkit.rules import CHECKS
from pdkit.units import listed, plural, show

SHOWN = ("received_throughput_tok_per_s", "ttft_ms_median", "tpot_ms_median", "e2e_ms_median")
FIGURES = f"figures as printed: {CLAIMED}"
NOTHING_SHOWS = "nothing shows that text came back"
_HEADLINE = "output_throughput_tok_per_s"  # the claim that a refused run was run for
_TIME = pl.int_range(1, pl.len() + 1).over("experiment", "level").alias("time")  # which run of its level
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # categories that steer a terminal or an editor, or show nothing
_Cut = dict[str, list[dict[str, Any]]]  # rows of one frame, by run


@dataclass(frozen=True)
class Place:
    """A line of a log; `item` is the request's index in a record."""

    file: str
    line: int
    item: int | None = None

    @classmethod
    def of(cls, said: str) -> "Place":
        """From `file:line` or `file:line[item]`; a file's name may hold colons and brackets too."""
        found = re.fullmatch(r"(?s:(.*)):(\d+)(?:\[(\d+)\])?", said)
        if found is None:
            raise ValueError(f"{said!r} is no file:line")
        return cls(found[1], int(found[2]), None if found[3] is None else int(found[3]))

    @property
    def uri(self) -> str:
        """Where the file is, percent-encoded: as it was given, or an address where that is from the disk's root."""
        path = quote(self.file)
        return f"file://{path}" if path.startswith("/") else path

    @property
    def number(self) -> str:
        """`13`, or `1[4]` for a request of a record."""
        return f"{self.line}" if self.item is None else f"{self.line}[{self.item}]"

    def __str__(self) -> str:
        return f"{self.file}:{self.number}"


@dataclass(frozen=True)
class Claim:
    """A number that the tool printed: evidence, not a result."""

    value: float
    place: Place

    def __str__(self) -> str:
        return f"{show(self.value, 'tok/s')} {CLAIMED}"


@dataclass(frozen=True)
class Result:
    """What one rule says of one run: a row of the table."""

    rule: str
    outcome: str
    severity: Severity | None
    observed: float | None
    low: float | None
    high: float | None
    sentence: str
    places: tuple[Place, ...]
    waiver: Waived | None = None
    of_claims: bool = False  # what it speaks of was refused, and may be shown as a claim alone

    @property
    def plain(self) -> str:
        """Its sentence on one line, and who waives it."""
        return one_line(f"{self.sentence}; {self.waiver}" if self.waiver else self.sentence)

    @property
    def has_claims(self) -> bool:
        """Whether its sentence holds figures that are no results."""
        return self.of_claims and re.search(r"\d", self.sentence) is not None

    @property
    def said(self) -> str:
        """The same, with figures that are no results called so."""
        return f"{self.plain} ({FIGURES})" if self.has_claims else self.plain


@dataclass(frozen=True)
class Cause:
    """Why a refused run has no text: the likely cause with its lines, or what would show one."""

    name: str | None
    sentence: str
    places: tuple[Place, ...]

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {"cause": self.name, "says": self.sentence, "lines": [str(place) for place in self.places]}

    def __str__(self) -> str:
        return f"{'likely cause' if self.name else 'cause'}: {self.sentence}"


@dataclass(frozen=True)
class Run:
    """One run with its verdict, what each rule says of it, what may be published, and what was merely claimed."""

    run_id: str
    series_key: str
    experiment: str
    synthetic: bool | None
    level: str
    time: int
    concurrency: float | None
    request_rate_per_s: float | None
    evidence_level: str
    verdict: Verdict
    accepted: bool
    refused_by: list[str]
    suspected_by: list[str]
    not_evaluated: list[str]
    sent_unknown: bool
    failures_waiver: Waived | None
    without_block: bool
    seen: tuple[Place, ...]
    results: tuple[Result, ...]
    published: Mapping[str, float | None]
    claimed: Mapping[str, Claim]
    voided: Mapping[str, list[str]]
    cause: Cause | None = None
    goodput: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Its level, told from other runs of the experiment at that level."""
        return self.level if self.time == 1 else f"{self.level}, again ({self.time})"

    @property
    def is_refused(self) -> bool:
        """Whether it has no measured result."""
        return self.verdict == NO_RESULT

    @property
    def is_missing(self) -> bool:
        """Whether it was planned or begun, and left no result block."""
        return self.is_refused and self.without_block

    @property
    def claim(self) -> Claim | None:
        """The output throughput that it claims."""
        return self.claimed.get(_HEADLINE)

    @property
    def goodput_said(self) -> str:
        """How many requests met all SLOs, of all sent, beside what the client says."""
        if not self.goodput:
            return ""
        if self.goodput["why_not"]:
            return str(self.goodput["why_not"])
        client = self.goodput["client_attainment_ratio"]
        beside = "" if client is None else f"; the client says {show(client, 'ratio')}"
        share = show(self.goodput["attainment_ratio"], "ratio")
        counted = f"{self.goodput['good']:,} of {plural(self.goodput['sent'], 'request')} sent ({share})"
        return f"{counted}, {show(self.goodput['goodput_per_s'], 'req/s')}{beside}"

    @property
    def passed(self) -> list[str]:
        """Rules that looked, and found nothing."""
        return [result.rule for result in self.results if result.outcome == "pass"]

    @property
    def told(self) -> list[Result]:
        """Refusals and doubts, the graver first; of a refused run only what refused it: its doubts are merely named."""
        failures = self.failed("refuse", "suspect")
        return [result for result in failures if not self.is_refused or result.rule in self.refused_by]

    @property
    def also(self) -> list[tuple[str, tuple[Place, ...]]]:
        """Of a refused run: its likely cause with its lines, and the rules that doubt it as well."""
        said = [(str(self.cause), self.cause.places)] if self.cause else []
        doubts = self.suspected_by if self.is_refused else []
        return said + ([(f"doubted as well by {listed(doubts)}", ())] if doubts else [])

    def failed(self, *severities: Severity) -> list[Result]:
        """The rules that failed, with one of the severities or with any, the most severe first."""
        order = ("refuse", "suspect", "note")
        failures = [one for one in self.results if one.outcome == "fail" and one.severity in (severities or order)]
        return sorted(failures, key=lambda result: order.index(str(result.severity)))

    @property
    def why(self) -> str:
        """The rules behind its verdict, or what is missing."""
        if self.verdict == NO_RESULT:
            return " ".join(self.refused_by) or NOTHING_TO_JUDGE
        if self.verdict == UNVERIFIED:
            return "" if self.without_block else NOTHING_SHOWS
        return " ".join([*self.suspected_by, *([f"{FAILURES} (failures unknown)"] if self.sent_unknown else [])])

    def number(self, fact: str) -> str:
        """A published number, or a dash where there is none."""
        value = self.published.get(fact)
        return "–" if value is None else show(value)


@dataclass(frozen=True)
class Experiment:
    """The runs of one experiment, and what they say together."""

    name: str
    title: str
    conclusion: str
    runs: tuple[Run, ...]
    folder: str

    @property
    def heading(self) -> str:
        """Its name, and what its manifest calls it."""
        return self.name if self.title == self.name else f"{self.name}: {self.title}"

    def places(self, places: Iterable[Place]) -> list[str]:
        """`bench.log:13,21`: the lines by file, below the experiment's folder."""
        return below(self.folder, places)


@dataclass(frozen=True)
class Unread:
    """A line or a file that was not understood, with the reason."""

    file: str
    line: int | None
    reason: str
    text: str = ""

    @property
    def place(self) -> str:
        """`file` or `file:line`."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Findings:
    """The table: experiments with their runs, then what was not read."""

    def __init__(self, judgement: Judgement, *, only_failures: bool = False) -> None:
        self._judgement = judgement
        self._outcomes = ["fail"] if only_failures else ["fail", "pass", "not_evaluated", "not_applicable"]

    @cached_property
    def experiments(self) -> list[Experiment]:
        """In the order of the paths that were given."""
        runs: dict[str, list[Run]] = {}
        for run in self.runs:
            runs.setdefault(run.experiment, []).append(run)
        sources = self._judgement.evidence.sources
        paths = {str(key[0]): group["path"].to_list() for key, group in sources.group_by("experiment")}
        return [
            Experiment(name, title, sentence, tuple(runs[name]), common_folder(paths.get(name, [])))
            for name, title, sentence in self._judgement.conclusions.iter_rows()
        ]

    @cached_property
    def runs(self) -> list[Run]:
        """In the order of experiment and level."""
        judgement = self._judgement
        told = judgement.findings.select("run_id", "rule", "sentence", "lines")
        chosen = judgement.results.filter(pl.col("outcome").is_in(self._outcomes))
        cut = {
            "results": _by_run(chosen.join(told, on=["run_id", "rule"], how="left", maintain_order="left")),
            "seen": _by_run(judgement.evidence.runs.sort("source_file", "source_line")),
            "published": _by_run(judgement.published),
            "claimed": _by_run(judgement.claimed),
            "voided": _by_run(judgement.views.filter(pl.col("severity") == "refuse")),
            "causes": _by_run(judgement.causes),
            "goodput": _by_run(judgement.goodput),
        }
        return [
            _run(row, cut, judgement.waivers)
            for row in judgement.verdicts.with_columns(judgement.accepted(), _TIME).iter_rows(named=True)
        ]

    @property
    def decided(self) -> list[str]:
        """What the user's own files changed, a sentence each: bounds, and waivers that no finding matches."""
        bounds = [
            f"{row['rule']}: {row['severity']} unless {row['used']}, "
            f"{'looser than' if row['looser'] else 'instead of'} {row['default']}"
            for row in self._judgement.changed.iter_rows(named=True)
        ]
        return [*bounds, *(f"the waiver for {waiver} matches no finding" for waiver in self._judgement.idle_waivers)]

    def goodput(self, experiment: Experiment) -> list[str]:
        """A line a run, below one that names the SLOs; none where none was given."""
        if not self._judgement.slos:
            return []
        head = f"within {worded(self._judgement.slos)}, of all sent:"
        return [head, *(f"  {run.name}: {run.goodput_said}" for run in experiment.runs)]

    @property
    def unread_lines(self) -> list[Unread]:
        """Lines that a reader should have understood."""
        rows = self._judgement.evidence.unread.iter_rows(named=True)
        return [Unread(row["source_file"], row["source_line"], row["reason"], row["text"]) for row in rows]

    @property
    def files_not_read(self) -> list[Unread]:
        """Files that nobody read."""
        return self._files(pl.col("reader").is_null())

    @property
    def files_read_in_part(self) -> list[Unread]:
        """Files that a reader took, and in which something was wrong."""
        return self._files(pl.col("reader").is_not_null() & pl.col("reason").is_not_null())

    def _files(self, which: pl.Expr) -> list[Unread]:
        files = self._judgement.evidence.sources.filter(which).sort("path")
        return [Unread(path, None, reason) for path, reason in files.select("path", "reason").iter_rows()]


def heading_of(fact: str) -> str:
    """The head of a column that shows it."""
    return METRICS[fact].axis.replace(" output throughput", "").replace(" latency", "")


def below(folder: str, places: Iterable[Place]) -> list[str]:
    """`bench.log:13,21`: the lines by file, each file as it is called below the folder."""
    by_file: dict[str, list[str]] = {}
    for place in places:
        file = posixpath.relpath(place.file, folder) if folder else place.file
        by_file.setdefault(file, []).append(place.number)
    return [f"{file}:{','.join(numbers)}" for file, numbers in by_file.items()]


def one_line(text: str) -> str:
    """A text as one line in which nothing is hidden: control and direction characters are spelt out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char.encode("unicode_escape").decode() if _is_hidden(char) else char for char in text)


def _is_hidden(char: str) -> bool:
    no_character = ord(char) & 0xFFFE == 0xFFFE  # U+FFFE, U+FFFF and their like: XML forbids them
    return no_character or unicodedata.category(char) in _HIDDEN


def _by_run(frame: pl.DataFrame) -> _Cut:
    """The rows by run; as plain values at once, since a frame a run costs more than what is in it."""
    return frame.rows_by_key("run_id", named=True)


def _run(
    row: dict[str, Any],
    cut: Mapping[str, _Cut],
    waivers: Mapping[tuple[str, str], Waived],
) -> Run:
    own = {name: rows.get(row["run_id"], []) for name, rows in cut.items()}
    refused, claims = row["verdict"] == NO_RESULT, bool(own["claimed"])
    plain = ("run_id", "series_key", "experiment", "synthetic", "level", "concurrency", "request_rate_per_s",
             "evidence_level", "verdict", "time", "refused_by", "suspected_by", "not_evaluated", "sent_unknown",
             "without_block", "accepted")  # fmt: skip
    return Run(
        **{name: row[name] for name in plain},
        seen=tuple(Place(seen["source_file"], seen["source_line"]) for seen in own["seen"]),
        failures_waiver=waivers.get((row["run_id"], FAILURES)) if row["sent_unknown"] else None,
        results=tuple(
            _result(
                one,
                waiver=waivers.get((row["run_id"], one["rule"])),
                of_claims=claims and (refused or one["severity"] == "refuse"),
            )
            for one in own["results"]
        ),
        published={seen["fact"]: seen["value"] for seen in own["published"]},
        claimed=dict(_claims(own["claimed"])),
        voided=_voided(own["voided"]),
        cause=next(_causes(own["causes"]), None),
        goodput=next(iter(own["goodput"]), None),
    )


def _causes(found: list[dict[str, Any]]) -> Iterator[Cause]:
    for row in found:
        yield Cause(row["cause"], row["sentence"], tuple(map(Place.of, row["lines"])))


def _result(row: dict[str, Any], *, waiver: Waived | None, of_claims: bool) -> Result:
    failed = row["outcome"] == "fail"
    return Result(
        rule=row["rule"],
        outcome=row["outcome"],
        severity=row["severity"],
        observed=row["observed"],
        low=row["threshold_low"],
        high=row["threshold_high"],
        sentence=row["sentence"] or CHECKS[row["rule"]].title,
        places=tuple(map(Place.of, row["lines"] or [])),
        waiver=waiver if failed else None,
        of_claims=of_claims and failed,
    )


def _claims(claimed: list[dict[str, Any]]) -> Iterator[tuple[str, Claim]]:
    for row in claimed:
        yield row["fact"], Claim(row["value"], Place(row["source_file"], row["source_line"]))


def _voided(refused: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Which rules took which scope."""
    took: dict[str, list[str]] = {}
    for scope, rule in sorted({(scope, row["rule"]) for row in refused for scope in row["voids"]}):
        took.setdefault(scope, []).append(rule)
    return took


def common_folder(paths: list[str]) -> str:
    """The folder that all lie in; "" where there is none, or some are given from the root and some are not."""
    one_kind = len({posixpath.isabs(path) for path in paths}) == 1
    return posixpath.commonpath([posixpath.dirname(path) for path in paths]) if one_kind else ""
