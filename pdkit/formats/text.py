"""A judgement as plain text: verdicts, numbers that may be believed, findings with their lines."""

from collections.abc import Iterator

from pdkit.findings import SHOWN, Experiment, Findings, Run, heading_of, one_line
from pdkit.results import DOUBTS, FAILURES, MEASURED, NO_RESULT, UNVERIFIED, Judgement
from pdkit.units import listed, plural

_WORDS = {"refuse": "refused", "suspect": "doubted"}
_COLOURS: dict[str, int] = {MEASURED: 32, DOUBTS: 33, UNVERIFIED: 35, NO_RESULT: 31}  # beside the word, never alone


def text(judgement: Judgement, *, colour: bool = False) -> str:
    """Verdicts by experiment, then findings, then what was not read."""
    found = Findings(judgement, only_failures=True)
    if not found.runs:
        return "no run found\n" + "".join(_not_read(found))
    parts: list[str] = []
    for experiment in found.experiments:
        parts += [f"{one_line(experiment.heading)}\n", f"  {experiment.conclusion}\n", "\n"]
        parts += _table(experiment, colour=colour)
        parts += ["\n", *_findings(experiment), *(f"  {said}\n" for said in found.goodput(experiment)), "\n"]
    return "".join([*parts, *(f"{one_line(said)}\n" for said in found.decided), *_unread(found), *_not_read(found)])


def _table(experiment: Experiment, *, colour: bool) -> Iterator[str]:
    head = ["level", "verdict", *map(heading_of, SHOWN), "rules"]
    rows = [[run.level, run.verdict, *map(run.number, SHOWN), run.why] for run in experiment.runs]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in [head, *rows]:
        cells = [
            cell.rjust(width) if 2 <= i < len(head) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        if colour and row is not head:
            cells[1] = f"\x1b[{_COLOURS[row[1]]}m{row[1]}\x1b[0m{cells[1][len(row[1]) :]}"
        yield f"  {'  '.join(cells)}".rstrip() + "\n"


def _findings(experiment: Experiment) -> Iterator[str]:
    """Failures by run, each with its lines."""
    for run in experiment.runs:
        for result in run.told:
            said = f"{_WORDS[str(result.severity)]} by {result.rule}: {one_line(result.sentence)}"
            yield f"  {run.level}: {said}\n"
            yield f"      {one_line('  '.join(experiment.places(result.places)))}\n"
            if result.waiver:
                yield f"      {one_line(str(result.waiver))}\n"
        if run.failures_waiver:
            yield f"  {run.level}: failures unknown ({FAILURES}), {one_line(str(run.failures_waiver))}\n"
        if run.is_refused:
            yield from _of_refused(run, experiment)


def _of_refused(run: Run, experiment: Experiment) -> Iterator[str]:
    if run.suspected_by:
        yield f"  {run.level}: doubted as well by {listed(run.suspected_by)}\n"
    if run.cause:
        yield f"  {run.level}: {one_line(str(run.cause))}\n"
        yield from (f"      {one_line(place)}\n" for place in experiment.places(run.cause.places))
    if run.claim:
        yield f"  {run.level}: {run.claim} ({one_line(experiment.places([run.claim.place])[0])})\n"


def _unread(found: Findings) -> Iterator[str]:
    if lines := found.unread_lines:
        yield f"{plural(len(lines), 'line')} not understood:\n"
    yield from (f"  {one_line(line.place)}: {one_line(line.reason)}\n" for line in lines)


def _not_read(found: Findings) -> Iterator[str]:
    """Files that nobody read, and files that were read only in part."""
    if files := found.files_not_read:
        yield f"{plural(len(files), 'file')} not read:\n"
    yield from (f"  {one_line(file.file)}: {one_line(file.reason)}\n" for file in files)
    yield from (f"{one_line(file.file)}: {one_line(file.reason)}\n" for file in found.files_read_in_part)
