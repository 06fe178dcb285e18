"""A judgement as Markdown that fits a comment on a pull request; what a log says becomes no markup or link in it.

GitHub looks for mentions and references after entities, but not in code: a text that holds their signs is set as code.
"""

import re
from collections.abc import Iterator
from itertools import accumulate

from pdkit.findings import FIGURES, SHOWN, Experiment, Findings, Run, Unread, heading_of, one_line
from pdkit.results import DOUBTS, MEASURED, Judgement
from pdkit.units import plural

_ROOM = 65_000  # GitHub takes 65,536 characters; the rest is for saying what was left out
_LONGEST = 300  # characters of one text from a log
_MARKUP = re.compile(r"[&<>`*_~|\\\[\]#@$^{}!]|:(?=\S)|(?<=www)\.", re.IGNORECASE)
_SIGNS = re.compile(r"[@#$]|://|\bwww\.|\bGH-\d|\b[0-9a-f]{7,40}\b", re.IGNORECASE)
Block = tuple[str, list[str], str]  # head, rows, foot


def text(judgement: Judgement) -> str:
    """The comment; what does not fit is counted."""
    found = Findings(judgement, only_failures=True)
    concluded = [
        f"- {said}\n"
        for one in found.experiments
        for said in (f"**{escaped(one.heading)}**: {one.conclusion}", *map(escaped, found.goodput(one)))
    ] + [f"- {escaped(said)}\n" for said in found.decided]
    good = sum(run.verdict in (MEASURED, DOUBTS) for run in found.runs)
    blocks: list[Block] = [(f"### pdkit: {good} of {plural(len(found.runs), 'run')} measured\n\n", concluded, "\n")]
    folded = {
        f"Findings: {escaped(one.heading)}": ["".join(_run(one, run)) for run in one.runs if run.told]
        for one in found.experiments
    }
    folded["Not understood"] = [_unread(one) for one in (*found.unread_lines, *found.files_read_in_part)]
    folded["Not read"] = [_unread(one) for one in found.files_not_read]
    blocks += map(_table, found.experiments)
    blocks += [(f"<details><summary>{name}</summary>\n\n", rows, "\n</details>\n\n") for name, rows in folded.items()]
    return "".join(_fitted(blocks))


def _fitted(blocks: list[Block]) -> Iterator[str]:
    """As many rows as there is room for, from the first on."""
    room, left = _ROOM, 0
    for head, rows, foot in blocks:
        ends = accumulate(map(len, rows), initial=len(head) + len(foot))
        kept = sum(end <= room for end in ends) - 1
        left += len(rows) - max(kept, 0)
        if kept > 0:
            yield (said := "".join([head, *rows[:kept], foot]))
            room -= len(said)
    if left:
        yield f"**{plural(left, 'more row')} did not fit here**: `pdkit check` prints them all.\n"


def _table(experiment: Experiment) -> Block:
    rows = [["level", "verdict", *map(heading_of, SHOWN), "rules"], ["---", "---", *("--:" for _ in SHOWN), "---"]]
    rows += [[run.level, run.verdict, *map(run.number, SHOWN), run.why] for run in experiment.runs]
    head, rule, *lines = [f"| {' | '.join(cells)} |\n" for cells in rows]
    return f"**{escaped(experiment.heading)}**\n\n{head}{rule}", lines, "\n"


def _run(experiment: Experiment, run: Run) -> Iterator[str]:
    claims = [FIGURES, *([str(run.claim)] if run.claim else [])] if run.claimed and run.is_refused else []
    yield f"- **{run.level}**: {'; '.join([run.verdict, *claims])}\n"
    said = [(f"{one.rule}: {one.plain if claims else one.said}", one.places) for one in run.told]
    for sentence, places in (*said, *run.also):
        yield f"  - {escaped(sentence)} {escaped('  '.join(experiment.places(places)), code=True)}".rstrip() + "\n"


def _unread(one: Unread) -> str:
    return f"- {escaped(one.place, code=True)} {escaped(one.reason)}\n"


def escaped(said: str, *, code: bool = False) -> str:
    """A text that a log gave, clipped and without any power."""
    line = one_line(said) if len(said) <= _LONGEST else f"{one_line(said[:_LONGEST])}…"
    safe = _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", line)
    return f"<code>{safe}</code>" if (code and said) or _SIGNS.search(line) else safe
