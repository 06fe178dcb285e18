"""A comparison as plain text and as JSON; the fields of the JSON are documented in docs/compare-json.md."""

import json as json_
from collections.abc import Iterator, Sequence
from typing import Any

import pdkit
from pdkit.compare import Comparison, Number, Pair, Setting
from pdkit.findings import Result, Run, below, common_folder, heading_of, one_line
from pdkit.metrics import METRICS
from pdkit.results import CLAIMED
from pdkit.units import listed, show

_SIDES = ("BASELINE", "CANDIDATE")
_WORDS = {"refuse": "refused", "suspect": "doubted", "note": "noted"}
_RECEIVED = "received_throughput_tok_per_s"
_WITHIN = "within this run only"


def text(comparison: Comparison) -> str:
    """Each pair: who, the sentence, the sides, what differs, why, numbers; then the levels without a pair."""
    folder = common_folder(comparison.judgement.evidence.sources["path"].to_list())
    parts = [f"{comparison.conclusion}\n\n"] if len(comparison.pairs) != 1 else []
    for pair in comparison.pairs:
        parts += [f"{one_line(pair.title)}\n", f"  {pair.sentence}\n\n", *_pair(pair, folder), "\n"]
    parts += [f"{one_line(level.sentence)}\n" for level in comparison.unpaired]
    return "".join([*parts, *([f"files are named below {one_line(folder)}\n"] if folder and comparison.pairs else [])])


def _pair(pair: Pair, folder: str) -> Iterator[str]:
    runs = (pair.baseline, pair.candidate)
    yield from _aligned([_side(name, run, folder) for name, run in zip(_SIDES, runs, strict=True)])
    if pair.differing:
        yield "\n"
        yield from _aligned([["differs", *_SIDES], *(_setting(setting, folder) for setting in pair.differing)])
    if pair.numbers:
        yield "\n"
        yield from _aligned([[_WITHIN, *_SIDES, "ratio"], *map(_number, pair.numbers)], numbers=True)
    if why := list(_why(pair, folder)):
        yield from ("\n", *why)


def _why(pair: Pair, folder: str) -> Iterator[str]:
    """What the rules about pairs say, and what they could not see."""
    for severity, word in _WORDS.items():
        for result in pair.failed(severity):
            yield f"  {word} by {result.rule}: {one_line(result.sentence)}\n"
            if result.places:
                yield f"      {one_line('  '.join(below(folder, result.places)))}\n"
    if pair.stated_once:
        yield f"  stated on one side only: {listed([setting.name for setting in pair.stated_once])}\n"
    if pair.not_evaluated:
        yield f"  not evaluated: {listed(list(pair.not_evaluated))}\n"


def _side(name: str, run: Run, folder: str) -> list[str]:
    verdict = f"{run.verdict} ({run.why})" if run.why else run.verdict
    if (received := run.published.get(_RECEIVED)) is not None:
        shown = f"{show(received, 'tok/s')} received"
    elif run.claim:
        shown = f"{run.claim} ({below(folder, [run.claim.place])[0]})"
    else:
        shown = ""
    return [name, one_line(run.experiment), verdict, one_line(shown)]


def _setting(setting: Setting, folder: str) -> list[str]:
    sides = (setting.baseline, setting.baseline_places), (setting.candidate, setting.candidate_places)
    return [
        setting.name,
        *(one_line(f"{value} ({below(folder, places[:1])[0]})" if places else f"{value}") for value, places in sides),
    ]


def _number(number: Number) -> list[str]:
    sides = (number.baseline, number.baseline_voided_by), (number.candidate, number.candidate_voided_by)
    ratio = "–" if number.ratio is None else f"{number.ratio:.3f}"
    return [
        heading_of(number.fact),
        *(_value(value, voided) for value, voided in sides),
        f"{ratio} ({number.no_ratio})" if number.no_ratio else ratio,
    ]


def _value(value: float | None, voided: Sequence[str]) -> str:
    return show(value) if value is not None else f"– ({listed(list(voided))})" if voided else "–"


def _aligned(rows: list[list[str]], *, numbers: bool = False) -> Iterator[str]:
    """The rows with columns of one width; numbers stand at the right of theirs."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if numbers and 0 < i < len(row) - 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip() + "\n"


# --- JSON -----------------------------------------------------------------------------------------------------------


def json(comparison: Comparison) -> str:
    """The document, indented, with a final newline."""
    document = {
        "pdkit": pdkit.__version__,
        "comparable": comparison.is_comparable,
        "conclusion": comparison.conclusion,
        "pairs": [_pair_of(pair) for pair in comparison.pairs],
        "unpaired": [vars(level) | {"why": level.sentence} for level in comparison.unpaired],
    }
    return json_.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _pair_of(pair: Pair) -> dict[str, Any]:
    return {
        "title": pair.title,
        "comparable": pair.is_comparable,
        "sentence": pair.sentence,
        "per_gpu": pair.per_gpu,
        "baseline": _run_of(pair.baseline),
        "candidate": _run_of(pair.candidate),
        "differs": [_setting_of(setting) for setting in pair.differing],
        "stated_once": [_setting_of(setting) for setting in pair.stated_once],
        "refused_by": [_result_of(result) for result in pair.failed("refuse")],
        "doubted_by": [_result_of(result) for result in pair.failed("suspect")],
        "noted_by": [_result_of(result) for result in pair.failed("note")],
        "not_evaluated": list(pair.not_evaluated),
        "numbers_hold": _WITHIN,
        "numbers": [_number_of(number) for number in pair.numbers],
    }


def _run_of(run: Run) -> dict[str, Any]:
    claim = run.claim if run.published.get(_RECEIVED) is None else None
    return {
        "run_id": run.run_id,
        "experiment": run.experiment,
        "level": run.level,
        "verdict": run.verdict,
        "refused_by": run.refused_by,
        "suspected_by": run.suspected_by,
        _RECEIVED: run.published.get(_RECEIVED),
        "claimed": claim and {"value": claim.value, "unit": "tok/s", "line": str(claim.place), "is": CLAIMED},
    }


def _setting_of(setting: Setting) -> dict[str, Any]:
    return {
        "setting": setting.name,
        "baseline": setting.baseline,
        "candidate": setting.candidate,
        "baseline_lines": [str(place) for place in setting.baseline_places],
        "candidate_lines": [str(place) for place in setting.candidate_places],
    }


def _result_of(result: Result) -> dict[str, Any]:
    return {"rule": result.rule, "says": result.sentence, "lines": [str(place) for place in result.places]}


def _number_of(number: Number) -> dict[str, Any]:
    return {
        "fact": number.fact,
        "unit": METRICS[number.fact].unit,
        "baseline": number.baseline,
        "candidate": number.candidate,
        "baseline_voided_by": list(number.baseline_voided_by),
        "candidate_voided_by": list(number.candidate_voided_by),
        "ratio": number.ratio,
        "no_ratio": number.no_ratio or None,
    }
