"""Training cases held against their logs: every figure is the judgement's, every line the log's own.

A case whose text asks for a figure that its logs do not give, or whose verdict is not the judgement's, is an error.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from pdkit.casebook import (
    AUDIENCES,
    LEVELS,
    Answers,
    Asked,
    Audience,
    Case,
    Casebook,
    CaseFile,
    Cited,
    EvidenceFile,
    Excerpt,
    FigureFile,
    FollowUp,
    Line,
    RunFile,
    Truth,
    Wrong,
    find,
    known,
    read,
)
from pdkit.errors import PdkitError, one_of
from pdkit.judge import judge
from pdkit.load import load
from pdkit.metrics import METRICS
from pdkit.parts import register_checks
from pdkit.quotes import ends, quotes
from pdkit.results import CLAIMED, Judgement, Verdict
from pdkit.rules import CHECKS
from pdkit.source import Source
from pdkit.units import listed, show

_AROUND_CHARS = 240  # of a line that stands beside a cited one: enough to recognise it
_PIECE_CHARS = 110  # of a cited line, where an answer or the quiz names it
_RATES = ("throughput", "latency", "tail")  # what a refusal takes of these is a claim from there on, and is called so
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAMED = re.compile(r"(?:(?P<run>[\w-]+)\.)?(?P<name>\w+)(?::(?P<bare>n))?")
_TWO = re.compile(r"(?P<one>[\w.-]+) (?P<sign>[/*+-]) (?P<other>[\w.-]+)")
_NUMBER = re.compile(r"\s*(-?\d[\d,]*(?:\.\d+)?)")
# the unit of a fact that is no metric, by the end of its name
_UNITS = (
    ("_tok_per_s", "tok/s"), ("_per_s", "req/s"), ("_tok", "tok"), ("_ratio", "ratio"), ("_s", "s"), ("_ms", "ms"),
)  # fmt: skip


def casebook(names: Sequence[str] = (), *, audience: str = "self-study", level: str | None = None) -> Casebook:
    """The named cases, all that ship where none is named, filled in for one audience and up to one level.

    Raises:
        PdkitError: an unknown case, audience or level, no case at all, or one that its own logs contradict.
    """
    if audience not in AUDIENCES:
        raise one_of("audience", audience, list(AUDIENCES))
    if level is not None and level not in LEVELS:
        raise one_of("level", level, list(LEVELS))
    files = [read(find(name)) for name in names] or sorted(map(read, known().values()), key=lambda file: file.level)
    if not files:
        raise PdkitError("cases: none ships with this installation; name a folder that holds a case.toml")
    fit = [file for file in files if level is None or _rank(file.level) <= _rank(level)]
    if not fit:
        raise PdkitError(f"level {level}: no case is for it; the lowest is {min(file.level for file in files)}")
    meant = next(one for one in AUDIENCES if one == audience)
    left_out = tuple(file.title for file in files if file not in fit)
    return Casebook(meant, level or "", tuple(filled(file, audience=meant, level=level) for file in fit), left_out)


def filled(file: CaseFile, *, audience: Audience = "self-study", level: str | None = None) -> Case:
    """One case with its figures and lines; a trainee's has no answers.

    Raises:
        PdkitError: a figure without a value, a line that is not there, or a verdict that is not the judgement's.
    """
    seen = _Seen.of(file)
    excerpts, cited = _evidence(file)
    fill = _Filling(file, seen, cited)
    _agrees(file, seen)
    asked = fill.asking
    return Case(
        id=file.id,
        title=asked("title", file.title),
        roles=file.roles,
        level=file.level,
        synthetic=file.synthetic,
        setup=asked("setup", file.setup),
        question=asked("question", file.question),
        runs=tuple(Asked(run.name, seen.level(run)) for run in file.runs),
        excerpts=excerpts,
        evidence=tuple(cited.values()),
        answers=None if audience == "trainee" else _answers(file, fill, cited, level=level),
    )


def _rank(level: str) -> int:
    return list(LEVELS).index(level)


def _answers(file: CaseFile, fill: "_Filling", cited: Mapping[str, Cited], *, level: str | None) -> Answers:
    said = fill.answering
    register_checks()
    for rule in file.rules:
        if rule not in CHECKS:
            raise PdkitError(f"{file.path}: {one_of('rules', rule, list(CHECKS))}")
    follow_ups = [one for one in file.follow_ups if level is None or _rank(one.level) <= _rank(level)]
    return Answers(
        short=said("short_answer", file.short_answer),
        steps=tuple((said(f"step {n}", step.says), cited[step.line]) for n, step in enumerate(file.steps, 1)),
        rules=tuple((rule, CHECKS[rule].title) for rule in file.rules),
        follow_ups=tuple(
            FollowUp(one.level, said("follow_up", one.question), said("follow_up", one.must_say)) for one in follow_ups
        ),
        wrong=tuple(Wrong(said("wrong", one.claim), said("wrong", one.why)) for one in file.wrong),
        truths=tuple(
            Truth(run.name, run.verdict, run.lines, said(f"run {run.name}", run.because)) for run in file.runs
        ),
        read_next=tuple(said("read_next", text) for text in file.read_next),
    )


# --- what the logs say of the runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """The judgement of a case's logs, and which of its runs is which."""

    judgement: Judgement
    run_ids: Mapping[str, str]

    @classmethod
    def of(cls, file: CaseFile) -> "_Seen":
        """All logs of a case, judged together."""
        logs = {run.name: _normal(run.logs) for run in file.runs}
        for name, path in logs.items():
            if not path.exists():
                raise PdkitError(f"{file.path}: run {name}: no logs at {path}; a path is told from the case's folder")
        judgement = judge(load(list(dict.fromkeys(logs.values()))))
        return cls(judgement, {run.name: _found(file, run, logs[run.name], judgement) for run in file.runs})

    def facts(self, run: str) -> Mapping[str, Any]:
        """One wide row."""
        return self.judgement.facts.row(by_predicate=pl.col("run_id") == self.run_ids[run], named=True)

    def verdict(self, run: str) -> Verdict:
        """What the judgement says."""
        found: Verdict = self._verdicts(run)["verdict"]
        return found

    def level(self, run: RunFile) -> str:
        """Its load as it was asked for: that a level was not held is for the reader to find."""
        return str(self._verdicts(run.name)["level_asked"])

    def is_taken(self, run: str, fact: str) -> bool:
        """Whether a refusal took a number of the run."""
        mine = (pl.col("run_id") == self.run_ids[run]) & (pl.col("fact") == fact)
        return bool(self.judgement.published.filter(mine & pl.col("value").is_null()).height)

    def _verdicts(self, run: str) -> Mapping[str, Any]:
        return self.judgement.verdicts.row(by_predicate=pl.col("run_id") == self.run_ids[run], named=True)


def _found(file: CaseFile, run: RunFile, logs: Path, judgement: Judgement) -> str:
    """The one run in its logs, or the one at its level."""
    inside = pl.col("source_file").str.starts_with(f"{logs.as_posix()}/") | (pl.col("source_file") == logs.as_posix())
    ids = judgement.evidence.runs.filter(inside)["run_id"].unique()
    there = judgement.verdicts.filter(pl.col("run_id").is_in(ids.implode()))
    fit = there.filter(pl.col("level_asked") == run.level) if run.level else there
    if fit.height != 1:
        levels = there["level_asked"].to_list()
        raise PdkitError(
            f"{file.path}: run {run.name}: {fit.height} runs fit level {run.level!r}; its logs have {levels}"
        )
    return str(fit["run_id"][0])


def _normal(path: Path) -> Path:
    """Without the way up and down again: it is the beginning of the names of its files."""
    return Path(os.path.normpath(path))


def _agrees(file: CaseFile, seen: _Seen) -> None:
    """The case tells no other verdict than its logs, and calls synthetic what is."""
    for run in file.runs:
        if (found := seen.verdict(run.name)) != run.verdict:
            raise PdkitError(f"{file.path}: run {run.name}: verdict is {run.verdict!r}, its logs say {found!r}")
        if bool(seen.facts(run.name)["synthetic"]) != file.synthetic:
            raise PdkitError(
                f"{file.path}: synthetic is {str(file.synthetic).lower()}; the sweep.toml of run {run.name} "
                f"says otherwise, and both have to"
            )


# --- figures --------------------------------------------------------------------------------------------------------


class _Filling:
    """Puts figures for placeholders: `{fact}` of the first run, `{run.fact}`, `{figure}`; `:n` leaves the unit away."""

    def __init__(self, file: CaseFile, seen: _Seen, cited: Mapping[str, Cited]) -> None:
        self._file = file
        self._seen = seen
        self._cited = cited
        self._figures = {one.name: one for one in file.figures}

    def asking(self, place: str, text: str) -> str:
        """A text that is read before the answer: a figure is what a log prints, and nothing tells what became of it."""
        return self._with(place, text, tells=False)

    def answering(self, place: str, text: str) -> str:
        """A text of the answer: a number that a refusal took is called a claim."""
        return self._with(place, text, tells=True)

    def _with(self, place: str, text: str, *, tells: bool) -> str:
        return _PLACEHOLDER.sub(lambda found: self._one(place, found[1], tells=tells), text)

    def _one(self, place: str, said: str, *, tells: bool) -> str:
        named = _NAMED.fullmatch(said)
        if named is None:
            raise self._error(place, f"{{{said}}} is no placeholder; write {{fact}}, {{run.fact}} or {{figure}}")
        name, run = named["name"], named["run"] or self._file.runs[0].name
        if not named["run"] and name in self._figures:
            figure = self._figures[name]
            return _shown(self._value(place, figure), figure.unit, bare=bool(named["bare"]))
        value = self._fact(place, run, name)
        is_claim = tells and name in METRICS and METRICS[name].scope in _RATES and self._seen.is_taken(run, name)
        return _shown(value, _unit(name), bare=bool(named["bare"])) + (f" ({CLAIMED})" if is_claim else "")

    def _fact(self, place: str, run: str, name: str) -> Any:
        if run not in self._seen.run_ids:
            raise self._error(place, str(one_of("run", run, list(self._seen.run_ids))))
        facts = self._seen.facts(run)
        if name not in facts:
            raise self._error(place, str(one_of("fact", name, [*facts, *self._figures])))
        if facts[name] is None:
            raise self._error(place, f"{{{name}}} has no value in the logs of run {run}; write a fact that they give")
        return facts[name]

    def _value(self, place: str, figure: FigureFile) -> float:
        if figure.evidence:
            line = self._cited[figure.evidence]
            found = _NUMBER.match(line.text.partition(figure.after)[2])
            if found is None:
                raise self._error(f"figure {figure.name}", f"no number behind {figure.after!r} in {line.place}")
            return float(found[1].replace(",", ""))
        two = _TWO.fullmatch(figure.value)
        if two is None:
            raise self._error(
                f"figure {figure.name}", f"value is {figure.value!r}; it takes two facts, as in 'a.x / b.x'"
            )
        one, other = (self._operand(place, two[side]) for side in ("one", "other"))
        if two["sign"] == "/" and not other:
            raise self._error(f"figure {figure.name}", f"{two['other']} is 0, and nothing is divided by it")
        signs = {"/": lambda: one / other, "*": lambda: one * other, "+": lambda: one + other, "-": lambda: one - other}
        return signs[two["sign"]]()

    def _operand(self, place: str, said: str) -> float:
        run, dot, name = said.rpartition(".")
        if not dot and said in self._figures:
            return self._value(place, self._figures[said])
        return float(self._fact(place, run or self._file.runs[0].name, name))

    def _error(self, place: str, problem: str) -> PdkitError:
        return PdkitError(f"{self._file.path}: {place}: {problem}")


def _unit(fact: str) -> str:
    if fact in METRICS:
        return METRICS[fact].unit
    return next((unit for end, unit in _UNITS if fact.endswith(end) or f"{end}_" in fact), "")


def _shown(value: Any, unit: str, *, bare: bool) -> str:
    """As a person reads it; a text as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    known_unit: Any = unit if unit in _KNOWN_UNITS else ""
    said = show(float(value), known_unit)
    return said.removesuffix(f" {unit}") if bare else said + (unit if unit and not known_unit else "")


_KNOWN_UNITS = {unit for _, unit in _UNITS} | {metric.unit for metric in METRICS.values()}


# --- lines ----------------------------------------------------------------------------------------------------------


def _evidence(file: CaseFile) -> tuple[tuple[Excerpt, ...], dict[str, Cited]]:
    """An excerpt a file, in the order of the case; and every cited line by its name, in that order too."""
    by_file: dict[str, list[EvidenceFile]] = {}
    for line in file.evidence:
        by_file.setdefault(line.file, []).append(line)
    excerpts = {name: _excerpt(file, name, lines) for name, lines in by_file.items()}
    shown = {line.evidence: (name, line) for name, (one, _) in excerpts.items() for line in one.lines if line.evidence}
    return (
        tuple(one for one, _ in excerpts.values()),
        {line.name: _cited(line, excerpts[line.file][1][line.line]) for line in file.evidence if line.name in shown},
    )


def _cited(line: EvidenceFile, text: str) -> Cited:
    """With the piece of a long line around what it has to hold."""
    words = " ".join(text.split())
    at = max(0, words.find(" ".join(line.holds.split())) - _PIECE_CHARS // 3)
    at = 0 if len(words) <= _PIECE_CHARS else min(at, len(words) - _PIECE_CHARS)
    cut = words[at : at + _PIECE_CHARS]
    piece = f"{'… ' if at else ''}{cut.strip()}{' …' if at + _PIECE_CHARS < len(words) else ''}"
    return Cited(line.name, f"{line.file}:{line.line}", text, piece)


def _excerpt(file: CaseFile, name: str, cited: Sequence[EvidenceFile]) -> tuple[Excerpt, dict[int, str]]:
    source = Source(_path(file, name), name)
    names = {line.line: line.name for line in cited}
    found = {quote.line: _said(quote.text, quote.fields) for quote in quotes(source, {line: set() for line in names})}
    for line in cited:
        if line.holds not in found.get(line.line, ""):
            raise PdkitError(f"{file.path}: evidence {line.name}: {_elsewhere(source, line)}")
    numbers = sorted(found)
    gaps = {after for before, after in pairwise(numbers) if after != before + 1}
    lines = (
        Line(n, found[n] if n in names else ends(found[n], _AROUND_CHARS), names.get(n, ""), n in gaps) for n in numbers
    )
    return Excerpt(name, tuple(lines)), found


def _path(file: CaseFile, name: str) -> Path:
    """Where a file of the evidence lies: its name begins with that of a run."""
    run, _, below = name.partition("/")
    logs = next(one.logs for one in file.runs if one.name == run)
    path = _normal(logs / below) if below else _normal(logs)
    if not path.is_file():
        raise PdkitError(f"{file.path}: evidence: {name}: no file at {path}; write the run's name, then the path below")
    return path


def _said(text: str | None, fields: Mapping[str, Any] | None) -> str:
    """A line as a terminal leaves it standing; a record by its numbers."""
    if text is None:
        return ", ".join(f"{name}: {value}" for name, value in (fields or {}).items())
    return text.rpartition("\r")[2].rstrip()


def _elsewhere(source: Source, line: EvidenceFile) -> str:
    """Which line does hold what it should."""
    has = pl.col("text").str.contains(line.holds, literal=True)
    numbers = source.asked(lambda lines: lines.filter(has).select("line").head(3))["line"].to_list()
    verb = "line {} does" if len(numbers) == 1 else "lines {} do"
    there = verb.format(listed([str(number) for number in numbers])) if numbers else "no line does"
    return f"{line.file}:{line.line} does not hold {line.holds!r}; {there}"
