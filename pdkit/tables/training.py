"""Cases for training on a page: evidence and questions first, answers closed, open or not there at all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pdkit import __version__
from pdkit.casebook import LEVELS, Answers, Audience, Case, Casebook
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Verdict
from pdkit.tables.layout import CLASSES, SYMBOLS, template
from pdkit.units import listed, plural

CHOICES: tuple[Verdict, ...] = (MEASURED, DOUBTS, UNVERIFIED, NO_RESULT)  # of the quiz, in this order
HOW: Mapping[Audience, str] = {
    "self-study": (
        "Read the log lines, write your answer, check yourself, then open the answers below it. What you write stays "
        "in this browser."
    ),
    "trainee": (
        "Read the log lines, write your answer, and mark what each run is worth and by which line. What you write "
        "stays in this browser: print the page to hand it in. It holds no answers."
    ),
    "interviewer": (
        "Answers are open, and each case ends with a scoring sheet. Give candidates the trainee's file, not this one."
    ),
}
FIGURES = (
    "A figure in a question, like one in a log line, is what a log prints; whether it was measured is the question."
)
SYNTHETIC = "SYNTHETIC LOGS: made by a program, not recorded"


@dataclass(frozen=True, repr=False)
class Lessons:
    """A part of the page that shows itself in a notebook, on a page and in a terminal."""

    book: Casebook
    part: str

    def _repr_html_(self) -> str:
        words = {"how": HOW[self.book.audience], "figures": FIGURES, "synthetic": SYNTHETIC, "version": __version__}
        return str(
            template("training.html.j2").render(
                book=self.book,
                part=self.part,
                choices=CHOICES,
                symbols=SYMBOLS,
                classes=CLASSES,
                levels=LEVELS,
                listed=listed,
                plural=plural,
                **words,
            )
        )

    def __str__(self) -> str:
        return "\n".join(_index(self.book) if self.part == "index" else _cases(self.book))

    __repr__ = __str__


def training_index(book: Casebook) -> Lessons:
    """How to use the page, and the cases with their levels."""
    return Lessons(book, "index")


def training(book: Casebook) -> Lessons:
    """The cases, one after the other."""
    return Lessons(book, "cases")


# --- as text --------------------------------------------------------------------------------------------------------


def _index(book: Casebook) -> Iterator[str]:
    yield HOW[book.audience]
    yield FIGURES
    for number, case in enumerate(book.cases, 1):
        yield f"{number}. {case.title} ({case.level} {LEVELS[case.level]}; {', '.join(case.roles)})"
    for title in book.left_out:
        yield f"Above {book.level}, left out: {title}"


def _cases(book: Casebook) -> Iterator[str]:
    for case in book.cases:
        yield from (case.title, case.setup, f"Question: {case.question}")
        if case.synthetic:
            yield SYNTHETIC
        for excerpt in case.excerpts:
            yield excerpt.file
            yield from (f"{'>' if line.evidence else ' '}{line.number:6} {line.text}" for line in excerpt.lines)
        yield from _answers(case.answers) if case.answers else ()


def _answers(answers: Answers) -> Iterator[str]:
    yield f"Short answer: {answers.short}"
    yield from (f"{truth.run}: {truth.verdict}: {truth.because}" for truth in answers.truths)
    yield from (f"{n}. {says} ({line.place})" for n, (says, line) in enumerate(answers.steps, 1))
    yield f"Rules: {', '.join(rule for rule, _ in answers.rules)}"
    yield from (f"{one.level}: {one.question} {one.must_say}" for one in answers.follow_ups)
    yield from (f"Wrong: {wrong.claim} {wrong.why}" for wrong in answers.wrong)
    yield from (f"Next: {text}" for text in answers.read_next)


def lines_of(case: Case, run: str) -> tuple[str, ...]:
    """Where the cited lines of one run stand."""
    return tuple(line.place for line in case.evidence if line.place.startswith(f"{run}/"))
