"""A judgement as workflow commands: GitHub shows each as an annotation on the line of the log.

GitHub shows ten of a kind and step, so there is one a run and kind, with all its rules: an error where the run has no
measured result or is unverified, a warning where it has doubts, a notice for what is merely noted and for what an
experiment says as a whole. Every line is a command: a plain line could hold one that a log made up.
"""

from collections.abc import Iterable, Iterator, Sequence

from pdkit.findings import FIGURES, NOTHING_SHOWS, Experiment, Findings, Place, Result, Run, one_line
from pdkit.results import UNVERIFIED, Judgement
from pdkit.units import listed

_KINDS = ("error", "warning", "notice")


def text(judgement: Judgement) -> str:
    """One command a line, the errors first."""
    found = Findings(judgement, only_failures=True)
    commands = [_command("notice", one.heading, [one.conclusion, *found.goodput(one)], ()) for one in found.experiments]
    commands += [command for experiment in found.experiments for command in _commands(experiment)]
    commands += [_command("notice", "decided", [said], ()) for said in found.decided]
    commands += [
        _command("warning", "line not understood", [line.reason], [Place(line.file, line.line or 1)])
        for line in found.unread_lines
    ]
    return "".join(sorted(commands, key=lambda said: _KINDS.index(said.strip(":").partition(" ")[0])))


def _commands(experiment: Experiment) -> Iterator[str]:
    for run in experiment.runs:
        name, told, notes = f"{experiment.name}, {run.name}", run.told, run.failed("note")
        if run.is_refused:
            kind = "warning" if run.accepted else "error"  # where all that refuses it is waived
            lines = [*(_lines(experiment, told) if told else [run.why]), *_rest(experiment, run)]
            yield _command(kind, f"{name}: {run.verdict}", lines, _places(told) or run.seen)
            continue
        if run.verdict == UNVERIFIED:
            yield _command("error", f"{name}: {run.verdict}", [run.why or NOTHING_SHOWS], run.seen)
        if told:
            yield _command("warning", f"{name}: doubts", _lines(experiment, told), _places(told))
        if notes:
            yield _command("notice", f"{name}: noted", _lines(experiment, notes), _places(notes))


def _lines(experiment: Experiment, results: Sequence[Result]) -> Iterator[str]:
    for one in results:
        yield f"{one.rule}: {one.plain} ({'  '.join(experiment.places(one.places))})"
    if any(one.has_claims for one in results):
        yield FIGURES


def _rest(experiment: Experiment, run: Run) -> Iterator[str]:
    for sentence, places in run.also:
        yield "  ".join([sentence, *experiment.places(places)])
    if notes := run.failed("note"):
        yield f"noted by {listed([one.rule for one in notes])}"
    if run.claim:
        yield str(run.claim)


def _places(results: Sequence[Result]) -> list[Place]:
    return [place for result in results for place in result.places]


def _command(kind: str, title: str, lines: Iterable[str], places: Sequence[Place]) -> str:
    """A command; its message is shown with its lines, its title and its file are one line each."""
    where = f"file={_property(places[0].file)},line={places[0].line}," if places else ""
    message = "\n".join(map(one_line, lines)).replace("%", "%25").replace("\n", "%0A")
    return f"::{kind} {where}title={_property(one_line(title))}::{message}\n"


def _property(text: str) -> str:
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        text = text.replace(char, code)
    return text
