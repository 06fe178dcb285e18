"""Training cases for machines, as Markdown, and as a notebook: for people who teach from those."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pdkit.casebook import LEVELS, Answers, Audience, Case, Casebook
from pdkit.tables.training import CHOICES, SYNTHETIC, lines_of
from pdkit.units import plural

_NOTEBOOK = {"kernelspec": {"name": "python3", "display_name": "Python 3"}, "language_info": {"name": "python"}}


def json_text(book: Casebook) -> str:
    """The cases of a page; a trainee's have no answers here either."""
    said = {
        "conclusions": [f"{plural(len(book.cases), 'case')} for {book.audience}"],
        "audience": book.audience,
        "level": book.level or None,
        "cases": [_case(case) for case in book.cases],
        "left_out": list(book.left_out),
    }
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def markdown(case: Case, *, audience: Audience) -> str:
    """One case; for self-study each answer is closed until opened, where Markdown is shown as HTML."""
    return "\n\n".join(_blocks(case, audience)) + "\n"


def ipynb(case: Case, *, audience: Audience) -> str:
    """One case as a notebook: a cell a part, one of them empty for the answer."""
    blocks = list(_blocks(case, audience))
    cells = [
        {"cell_type": "markdown", "id": f"part-{number}", "metadata": {}, "source": block.splitlines(keepends=True)}
        for number, block in enumerate(blocks)
    ]
    notebook = {"cells": cells, "metadata": _NOTEBOOK | {"title": case.title}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _case(case: Case) -> dict[str, Any]:
    said = {
        "id": case.id,
        "title": case.title,
        "roles": list(case.roles),
        "level": case.level,
        "synthetic": case.synthetic,
        "setup": case.setup,
        "question": case.question,
        "runs": [asdict(run) for run in case.runs],
        "evidence": [{"place": line.place, "text": line.text} for line in case.evidence],
    }
    return said | ({"answers": _answers(case, case.answers)} if case.answers else {})


def _answers(case: Case, answers: Answers) -> dict[str, Any]:
    return {
        "short": answers.short,
        "steps": [{"says": says, "line": line.place} for says, line in answers.steps],
        "rules": [rule for rule, _ in answers.rules],
        "follow_ups": [asdict(one) for one in answers.follow_ups],
        "wrong": [asdict(one) for one in answers.wrong],
        "truths": [asdict(truth) | {"lines": _places(case, truth.lines)} for truth in answers.truths],
        "read_next": list(answers.read_next),
    }


def _places(case: Case, names: tuple[str, ...]) -> list[str]:
    return [case.cited(name).place for name in names]


# --- Markdown -------------------------------------------------------------------------------------------------------


def _blocks(case: Case, audience: Audience) -> Iterator[str]:
    head = [f"# {case.title}", f"{case.level} {LEVELS[case.level]}; {', '.join(case.roles)}"]
    yield "\n\n".join([*head, *([f"**{SYNTHETIC}**"] if case.synthetic else []), case.setup, f"**{case.question}**"])
    for excerpt in case.excerpts:
        lines = "\n".join(f"{'>' if line.evidence else ' '}{line.number:6} {line.text}" for line in excerpt.lines)
        yield f"`{excerpt.file}`\n\n{_fenced(lines)}"
    if audience != "interviewer":
        yield "## Your answer\n\n…"
    yield "\n\n".join(["## What is each run worth, and by which line?", *_questions(case)])
    if case.answers:
        for title, text in _parts(case, case.answers):
            yield _closed(title, text) if audience == "self-study" else f"## {title}\n\n{text}"


def _questions(case: Case) -> Iterator[str]:
    for run in case.runs:
        choices = "\n".join(f"- [ ] {verdict}" for verdict in CHOICES)
        yield f"The run **{run.name}**, at {run.level} (lines: {', '.join(lines_of(case, run.name))}):\n\n{choices}"


def _parts(case: Case, answers: Answers) -> Iterator[tuple[str, str]]:
    worth = (
        f"- **{truth.run}**: {truth.verdict}. {truth.because} ({', '.join(_places(case, truth.lines))})"
        for truth in answers.truths
    )
    steps = (f"{n}. {says} (`{line.place}`)" for n, (says, line) in enumerate(answers.steps, 1))
    rules = (f"- {rule}: {title}" for rule, title in answers.rules)
    yield "What each run is worth", "\n".join(worth)
    yield "Short answer", answers.short
    yield "Full answer, line by line", "\n".join([*steps, "", *rules])
    if answers.follow_ups:
        asked = (f"- {one.level}: {one.question}\n  Must say: {one.must_say}" for one in answers.follow_ups)
        yield "Follow-up questions", "\n".join(asked)
    yield "Wrong answers, and why", "\n".join(f"- “{wrong.claim}” {wrong.why}" for wrong in answers.wrong)
    yield "What to read next", "\n".join(f"- {text}" for text in answers.read_next)


def _closed(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str) -> str:
    """A block of code that its own text cannot end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
