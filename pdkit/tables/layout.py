"""What a section is made of: tables, words, cards and folds, as HTML in which every text is escaped, and as text."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Verdict
from pdkit.units import plural

TEMPLATES = Path(__file__).parents[1] / "report_template" / "sections"
_ROWS_SHOWN = 20  # of a table; whole groups, the rest is folded
_EXPERIMENTS_SHOWN = 10  # of a banner
# shape and colour of a verdict, as in the charts (pdkit/charts/theme.py): never colour alone
SYMBOLS: Mapping[Verdict, str] = {MEASURED: "●", DOUBTS: "◆", UNVERIFIED: "■", NO_RESULT: "✕"}
CLASSES: Mapping[str, str] = {MEASURED: "measured", DOUBTS: "doubts", UNVERIFIED: "unverified", NO_RESULT: "none"}
Kind = Literal["text", "number", "withheld", "needs", "code", "dim", "short", "head", "level"]


@dataclass(frozen=True)
class Cell:
    """One cell of a table; `more` stands below it, and what does not fit there is folded."""

    text: str
    kind: Kind = "text"
    more: tuple[str, ...] = ()
    folded: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        """All of it on one line."""
        return ", ".join(filter(None, (self.text, *self.more, *self.folded)))


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """The head of a column, with its unit."""

    title: str
    unit: str = ""
    number: bool = False


@dataclass(frozen=True)
class Group:
    """Rows that belong together, under a heading that may be absent."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows in groups; what is beyond the first rows is folded away, whole groups at a time."""

    label: str
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    wide: bool = False
    rows_shown: int = _ROWS_SHOWN
    template: str = "table"

    @property
    def shown(self) -> tuple[Group, ...]:
        """The groups that are not folded: the first always is one of them."""
        kept, rows = 0, 0
        for group in self.groups:
            rows += len(group.rows)
            if kept and rows > self.rows_shown:
                break
            kept += 1
        return self.groups[:kept]

    @property
    def folded(self) -> tuple[Group, ...]:
        """The others."""
        return self.groups[len(self.shown) :]

    @property
    def folded_rows(self) -> str:
        """How many rows they have, in words."""
        return plural(sum(len(group.rows) for group in self.folded), "more row")

    def lines(self) -> Iterator[str]:
        """As text, columns aligned."""
        head = [f"{column.title} ({column.unit})" if column.unit else column.title for column in self.columns]
        rows = [[cell.plain for cell in row] for group in self.groups for row in group.rows]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        yield "  ".join(text.ljust(width) for text, width in zip(head, widths, strict=True)).rstrip()
        for group in self.groups:
            if group.title:
                yield f"{group.title}{f' ({group.note})' if group.note else ''}"
            for row in group.rows:
                yield "  ".join(
                    cell.plain.rjust(w) if cell.kind == "number" else cell.plain.ljust(w)
                    for cell, w in zip(row, widths, strict=True)
                ).rstrip()


@dataclass(frozen=True)
class Words:
    """One paragraph; `label` stands out at its beginning, `place` is the log line that it quotes."""

    text: str
    label: str = ""
    place: str = ""
    template: str = "words"

    def lines(self) -> Iterator[str]:
        """As text."""
        yield " ".join(
            filter(None, (f"{self.label}:" if self.label else "", self.text, f"({self.place})" if self.place else ""))
        )


@dataclass(frozen=True)
class Card:
    """One thing that stands for itself, under a heading with its verdict."""

    title: str
    aside: str
    verdict: Verdict
    parts: tuple["Part", ...]
    template: str = "card"

    def lines(self) -> Iterator[str]:
        """As text."""
        yield f"{SYMBOLS[self.verdict]} {self.title} ({self.aside}): {self.verdict}"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True)
class Fold:
    """Parts that a reader opens."""

    summary: str
    parts: tuple["Part", ...]
    open: bool = False
    template: str = "fold"

    def lines(self) -> Iterator[str]:
        """As text, never folded."""
        yield f"{self.summary}:"
        for part in self.parts:
            yield from (f"  {line}" for line in part.lines())


@dataclass(frozen=True)
class Step:
    """One level of an experiment in the banner."""

    level: str
    verdict: Verdict


@dataclass(frozen=True)
class Concluded:
    """What the runs of one experiment say together."""

    title: str
    sentence: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Banner:
    """The verdicts at a glance."""

    headline: str
    verdict: Verdict
    counts: tuple[tuple[Verdict, int], ...]
    experiments: tuple[Concluded, ...]
    synthetic: str = ""
    template: str = "banner"

    @property
    def shown(self) -> tuple[Concluded, ...]:
        """The experiments that are not folded."""
        return self.experiments[:_EXPERIMENTS_SHOWN]

    @property
    def folded(self) -> tuple[Concluded, ...]:
        """The others."""
        return self.experiments[_EXPERIMENTS_SHOWN:]

    def lines(self) -> Iterator[str]:
        """As text."""
        yield from [self.synthetic] if self.synthetic else []
        yield self.headline
        yield ", ".join(f"{SYMBOLS[verdict]} {count} {verdict}" for verdict, count in self.counts)
        for experiment in self.experiments:
            yield f"{experiment.title}: {experiment.sentence}"


@dataclass(frozen=True)
class Quote:
    """What somebody said, word for word, and what it is."""

    text: str
    aside: str
    template: str = "quote"

    def lines(self) -> Iterator[str]:
        """As text."""
        yield f'"{self.text}" ({self.aside})'


@dataclass(frozen=True)
class Stage:
    """One stage of a course of events: when, what, how that is known, and the lines that show it."""

    when: str
    title: str
    text: str
    how: str
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stages:
    """What led to what, one stage below the other; `is_brief` shows times and titles alone, in one row."""

    label: str
    stages: tuple[Stage, ...]
    is_brief: bool = False
    template: str = "stages"

    def lines(self) -> Iterator[str]:
        """As text."""
        if self.is_brief:
            yield f"{self.label}: {' → '.join(stage.title for stage in self.stages)}"
            return
        for number, stage in enumerate(self.stages, 1):
            where = f" ({', '.join(stage.places)})" if stage.places else ""
            yield f"{number}. {stage.when or '–'} {stage.title} [{stage.how}]: {stage.text}{where}"


@dataclass(frozen=True)
class Answer:
    """A question as a heading, its answer in a word, and what that rests on."""

    question: str
    word: str
    verdict: Verdict
    sentences: tuple[str, ...]
    places: tuple[str, ...] = ()
    template: str = "answer"

    def lines(self) -> Iterator[str]:
        """As text."""
        where = f" ({', '.join(self.places)})" if self.places else ""
        yield f"{self.question} {self.word}. {' '.join(self.sentences)}{where}"


@dataclass(frozen=True)
class Task:
    """One thing to do: what, and why."""

    text: str
    why: str = ""


@dataclass(frozen=True)
class Tasks:
    """What to do, in this order."""

    tasks: tuple[Task, ...]
    template: str = "tasks"

    def lines(self) -> Iterator[str]:
        """As text."""
        for number, task in enumerate(self.tasks, 1):
            yield f"{number}. {task.text}{f' ({task.why})' if task.why else ''}"


Part = Table | Words | Card | Fold | Banner | Quote | Stages | Answer | Tasks


@dataclass(frozen=True, repr=False)
class Section:
    """A part of the page that shows itself in a notebook, on a page and in a terminal."""

    name: str
    parts: tuple[Part, ...] = ()

    def _repr_html_(self) -> str:
        return str(template().render(section=self, symbols=SYMBOLS, classes=CLASSES))

    def __str__(self) -> str:
        return "\n".join(line for part in self.parts for line in part.lines())

    __repr__ = __str__


@cache
def template(name: str = "section.html.j2") -> Any:
    """A template of sections; autoescape is what keeps a log line from becoming markup."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
