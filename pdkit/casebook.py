"""Case files: what `case.toml` may hold, where cases lie, and what a case is once its figures are filled in.

Nothing here reads a log. `cases` does, and fills the texts; `tables.training` and `formats.training` show them.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pdkit.errors import PdkitError, one_of
from pdkit.results import VERDICTS, Verdict

CASE_FILE = "case.toml"
Audience = Literal["self-study", "trainee", "interviewer"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
LEVELS: Mapping[str, str] = {"L2": "engineer", "L3": "senior", "L4": "staff"}  # in order; a level includes those before
SHIPPED = (
    Path(__file__).parent / "data" / "cases",
    Path(__file__).parents[1] / "data" / "cases",
)  # of the wheel, of the repository

_TOP: Mapping[str, type] = {
    "title": str, "roles": list, "level": str, "synthetic": bool, "setup": str, "question": str, "short_answer": str,
    "rules": list, "read_next": list,
}  # fmt: skip
_TABLES: Mapping[str, Mapping[str, type]] = {
    "run": {"name": str, "logs": str, "level": str, "verdict": str, "lines": list, "because": str},
    "evidence": {"name": str, "file": str, "line": int, "holds": str},
    "figure": {"name": str, "value": str, "unit": str, "evidence": str, "after": str},
    "step": {"says": str, "line": str},
    "follow_up": {"level": str, "question": str, "must_say": str},
    "wrong": {"claim": str, "why": str},
}
_OPTIONAL = {("run", "level"), *(("figure", name) for name in ("value", "unit", "evidence", "after"))}
_MAY_BE_ABSENT = ("figure",)  # a whole table

# A figure starts a word; behind a letter, a dot, a hyphen or a slash it is part of a name: Qwen3-8B, FP8, PD101, p99.
_FIGURE = re.compile(r"(?<![\w./-])\d[\d.,]*\d(?:\.\d)*|(?<![\w./-])\d|[½⅓¼¾⅔²³]")
_NAMES = re.compile(r"\bHTTP \d{3}\b|\b\d+\.\d+\.\d+\b|\b20\d\d(?:-\d\d-\d\d)?\b")  # a status, a version, a year, a day
_LEVEL_OF_LOAD = re.compile(r"\b\d+ (?:users?|requests/s)\b")  # what names a run is no result of it
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True)
class RunFile:
    """One run that the case asks about: its logs, and what is true of it."""

    name: str
    logs: Path
    level: str
    verdict: Verdict
    lines: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class EvidenceFile:
    """One line of a log: `file` begins with the name of a run, `holds` is a piece that the line must hold."""

    name: str
    file: str
    line: int
    holds: str


@dataclass(frozen=True)
class FigureFile:
    """One number that is no fact of a run: read off a cited line, or made of two facts."""

    name: str
    unit: str
    value: str = ""
    evidence: str = ""
    after: str = ""


@dataclass(frozen=True)
class Step:
    """One step of the full answer, and the evidence that it rests on."""

    says: str
    line: str


@dataclass(frozen=True)
class FollowUp:
    """A further question to one level, and what its answer must say."""

    level: str
    question: str
    must_say: str


@dataclass(frozen=True)
class Wrong:
    """What is often answered, and why it is wrong."""

    claim: str
    why: str


@dataclass(frozen=True)
class CaseFile:
    """`case.toml` as it was written: figures are placeholders still, lines are places."""

    id: str
    path: Path
    title: str
    roles: tuple[str, ...]
    level: str
    synthetic: bool
    setup: str
    question: str
    short_answer: str
    rules: tuple[str, ...]
    read_next: tuple[str, ...]
    runs: tuple[RunFile, ...]
    evidence: tuple[EvidenceFile, ...]
    figures: tuple[FigureFile, ...]
    steps: tuple[Step, ...]
    follow_ups: tuple[FollowUp, ...]
    wrong: tuple[Wrong, ...]


# --- a case with its figures and its lines --------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One line of a log as a viewer shows it; `evidence` is what the case calls it, where the case cites it."""

    number: int
    text: str
    evidence: str = ""
    after_gap: bool = False


@dataclass(frozen=True)
class Excerpt:
    """The cited lines of one file with those around them."""

    file: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Cited:
    """One cited line: its name, its place, its text, and the piece of a long one that it is cited for."""

    name: str
    place: str
    text: str
    piece: str


@dataclass(frozen=True)
class Asked:
    """One run that is asked about."""

    name: str
    level: str


@dataclass(frozen=True)
class Truth:
    """What is true of one run, and the lines that show it, any of which will do."""

    run: str
    verdict: Verdict
    lines: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class Answers:
    """All that a trainee must not see."""

    short: str
    steps: tuple[tuple[str, Cited], ...]
    rules: tuple[tuple[str, str], ...]
    follow_ups: tuple[FollowUp, ...]
    wrong: tuple[Wrong, ...]
    truths: tuple[Truth, ...]
    read_next: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One case as it is shown; without `answers` it holds none, hidden ones neither."""

    id: str
    title: str
    roles: tuple[str, ...]
    level: str
    synthetic: bool
    setup: str
    question: str
    runs: tuple[Asked, ...]
    excerpts: tuple[Excerpt, ...]
    evidence: tuple[Cited, ...]
    answers: Answers | None

    def cited(self, name: str) -> Cited:
        """The line of that name."""
        return next(line for line in self.evidence if line.name == name)


@dataclass(frozen=True)
class Casebook:
    """Cases for one audience; `left_out` says which were asked for and are above its level."""

    audience: Audience
    level: str
    cases: tuple[Case, ...]
    left_out: tuple[str, ...] = ()


# --- reading one ----------------------------------------------------------------------------------------------------


def known() -> dict[str, Path]:
    """The cases that ship, by id."""
    return {path.parent.name: path for folder in reversed(SHIPPED) for path in sorted(folder.glob(f"*/{CASE_FILE}"))}


def find(name: str) -> Path:
    """The case file of an id, or of a folder that holds one.

    Raises:
        PdkitError: neither.
    """
    if name in known():
        return known()[name]
    path = Path(name) if Path(name).name == CASE_FILE else Path(name) / CASE_FILE
    if path.is_file():
        return path
    raise one_of("case", name, list(known()))


def read(path: Path) -> CaseFile:
    """A case file, held against its schema.

    Raises:
        PdkitError: not TOML, a key that is absent, unknown or of another type, or a name that leads nowhere.
    """
    try:
        text = path.read_text("utf-8")
        said = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise PdkitError(f"{path}: cannot be read as TOML ({problem}); docs/cases.md says what it may hold") from None
    case = _made(_Schema(path, text.splitlines()).checked(said), path)
    for place, fault in _unsound(case):
        raise PdkitError(f"{path}: {place}: {fault}")
    return case


@dataclass(frozen=True)
class _Schema:
    """Holds the entries of one file against what they may be; errors name the line."""

    path: Path
    lines: Sequence[str]

    def checked(self, said: dict[str, Any]) -> dict[str, Any]:
        """The same, known to have the right shape."""
        tables = {name: said.get(name, []) for name in _TABLES}
        self._entry(f"{self.path}", {key: value for key, value in said.items() if key not in _TABLES}, _TOP, "case")
        for name, entries in tables.items():
            if not isinstance(entries, list) or (not entries and name not in _MAY_BE_ABSENT):
                raise PdkitError(f"{self.path}: has no [[{name}]]; a case has at least one")
            for number, entry in enumerate(entries, 1):
                self._entry(f"{self._place(name, number)}: {name} {number}", entry, _TABLES[name], name)
        return {key: value for key, value in said.items() if key not in _TABLES} | tables

    def _entry(self, where: str, entry: object, keys: Mapping[str, type], table: str) -> None:
        if not isinstance(entry, dict):
            raise PdkitError(f"{where} is {entry!r}; it takes a table with {', '.join(keys)}")
        for key, value in entry.items():
            if key not in keys:
                raise one_of(f"{where}: key", key, [*keys, *(_TABLES if table == "case" else ())])
            if fault := _fault(value, keys[key]):
                raise PdkitError(f"{where}: {key} is {value!r}; it takes {fault}")
        for key in keys:
            if key not in entry and (table, key) not in _OPTIONAL:
                what = "a case" if table == "case" else f"[[{table}]]"
                raise PdkitError(f"{where}: no {key}; {what} has {', '.join(keys)}")

    def _place(self, table: str, number: int) -> str:
        """The file, with the line of the heading where headings can be told."""
        headings = [at for at, line in enumerate(self.lines, 1) if re.match(rf"\s*\[\[\s*{table}\s*\]\]", line)]
        return f"{self.path}:{headings[number - 1]}" if number <= len(headings) else f"{self.path}"


def _fault(value: object, kind: type) -> str:
    """What a value should be and is not; "" where it is right."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return {str: "a text", int: "a whole number", bool: "true or false", list: "a list of texts"}[kind]
    if isinstance(value, list) and not (value and all(isinstance(one, str) and one.strip() for one in value)):
        return "a list of texts, at least one"
    return "a text that is not empty" if isinstance(value, str) and not value.strip() else ""


def _made(said: Mapping[str, Any], path: Path) -> CaseFile:
    top: dict[str, Any] = {key: _plain(said[key]) for key in _TOP}
    return CaseFile(
        id=path.parent.name or path.resolve().parent.name,
        path=path,
        **top,
        runs=tuple(_run(entry, path) for entry in said["run"]),
        evidence=tuple(EvidenceFile(**entry) for entry in said["evidence"]),
        figures=tuple(FigureFile(**{"unit": "", **entry}) for entry in said["figure"]),
        steps=tuple(Step(**_plain(entry)) for entry in said["step"]),
        follow_ups=tuple(FollowUp(**_plain(entry)) for entry in said["follow_up"]),
        wrong=tuple(Wrong(**_plain(entry)) for entry in said["wrong"]),
    )


def _run(entry: Mapping[str, Any], path: Path) -> RunFile:
    return RunFile(
        entry["name"], path.parent / entry["logs"], entry.get("level", ""), entry["verdict"], tuple(entry["lines"]),
        _plain(entry["because"]),
    )  # fmt: skip


def _plain(said: Any) -> Any:
    """Texts on one line, lists as tuples: a case file breaks its lines where it likes."""
    if isinstance(said, str):
        return " ".join(said.split())
    if isinstance(said, list):
        return tuple(_plain(one) for one in said)
    return {key: _plain(value) for key, value in said.items()} if isinstance(said, dict) else said


# --- what is wrong with one -----------------------------------------------------------------------------------------


def _unsound(case: CaseFile) -> Iterator[tuple[str, str]]:
    """Names that lead nowhere or are there twice, then figures that were typed by hand."""
    lines, runs = [line.name for line in case.evidence], [run.name for run in case.runs]
    for kind, names in (("run", runs), ("evidence", lines), ("figure", [one.name for one in case.figures])):
        yield from ((f"{kind} {name}", "is there twice; names differ") for name in names if names.count(name) > 1)
    leading = [(f"run {run.name}: lines", name) for run in case.runs for name in run.lines]
    leading += [(f"step {number}: line", step.line) for number, step in enumerate(case.steps, 1)]
    leading += [(f"figure {one.name}: evidence", one.evidence) for one in case.figures if one.evidence]
    yield from ((place, str(one_of(name, name, lines))) for place, name in leading if name not in lines)
    for line in case.evidence:
        if line.file.partition("/")[0] not in runs:
            yield f"evidence {line.name}", f"file {line.file!r} begins with no run; it begins with {', '.join(runs)}"
    for one in case.figures:
        if bool(one.value) == bool(one.evidence and one.after):
            yield f"figure {one.name}", "takes either a value, or evidence and what its number stands after"
    yield from _unknown_words(case)
    for place, text in texts(case):
        for figure in typed_figures(text, names_loads=place.startswith(("title", "setup", "question", "follow_up"))):
            yield place, f"the figure {figure!r} is typed by hand; write a placeholder that the logs fill"


def _unknown_words(case: CaseFile) -> Iterator[tuple[str, str]]:
    levels = [("level", case.level), *((f"follow_up {n}", one.level) for n, one in enumerate(case.follow_ups, 1))]
    yield from ((place, str(one_of("level", said, list(LEVELS)))) for place, said in levels if said not in LEVELS)
    verdicts = VERDICTS.categories.to_list()
    for run in case.runs:
        if run.verdict not in verdicts:
            yield f"run {run.name}", str(one_of("verdict", run.verdict, verdicts))


def texts(case: CaseFile) -> Iterator[tuple[str, str]]:
    """All prose of a case, with where it stands."""
    for name in ("title", "setup", "question", "short_answer"):
        yield name, getattr(case, name)
    yield from ((f"run {run.name}: because", run.because) for run in case.runs)
    yield from ((f"step {number}", step.says) for number, step in enumerate(case.steps, 1))
    for number, one in enumerate(case.follow_ups, 1):
        yield f"follow_up {number}: question", one.question
        yield f"answer to follow_up {number}", one.must_say
    for number, wrong in enumerate(case.wrong, 1):
        yield f"wrong {number}: claim", wrong.claim
        yield f"wrong {number}: why", wrong.why
    yield from ((f"read_next {number}", text) for number, text in enumerate(case.read_next, 1))


def typed_figures(text: str, *, names_loads: bool = False) -> list[str]:
    """Figures in a text that no placeholder gives; statuses, versions and days are names.

    `names_loads`: so are the loads that runs are called by, as in "16 users".
    """
    rest = _NAMES.sub("", _PLACEHOLDER.sub("", text))
    return [found[0] for found in _FIGURE.finditer(_LEVEL_OF_LOAD.sub("", rest) if names_loads else rest)]
