"""A comparison as plain text and as JSON; the fields of the JSON are documented in docs/compare-json.md."""

import json as json_
from collections.abc import Iterator, Sequence
from typing import Any

import pdkit
from pdkit.compare import Call, Comparison, FirstTokens, Number, Pair, Percentile, Runs, Setting, percent
from pdkit.findings import Result, Run, below, common_folder, heading_of, one_line
from pdkit.metrics import METRICS
from pdkit.results import CLAIMED
from pdkit.units import listed, show

_SIDES = ("BASELINE", "CANDIDATE")
_WORDS = {"refuse": "refused", "suspect": "doubted", "note": "noted"}
_RECEIVED = "received_throughput_tok_per_s"
_WITHIN, _OVER = "within this run only", "geometric means of the runs"
_SHOWN_PERCENTILES = (50.0, 90.0, 99.0)


def text(comparison: Comparison) -> str:
    """Each pair: who, the sentence, the runs, what differs, why, numbers; then the levels without a pair."""
    folder = common_folder(comparison.judgement.evidence.sources["path"].to_list())
    parts = [f"{comparison.conclusion}\n\n"] if len(comparison.pairs) != 1 else []
    for pair in comparison.pairs:
        parts += [f"{one_line(pair.title)}\n", f"  {one_line(pair.sentence)}\n\n", *_pair(pair, folder), "\n"]
    parts += [f"{one_line(level.sentence)}\n" for level in comparison.unpaired]
    return "".join([*parts, *([f"files are named below {one_line(folder)}\n"] if folder and comparison.pairs else [])])


def _pair(pair: Pair, folder: str) -> Iterator[str]:
    yield from _aligned([_side(side, run, folder) for side in pair.sides for run in side.every])
    words, numbers = (_differing(pair, folder), _first_tokens(pair)), (_calls(pair), _numbers(pair))
    for table in (words[0], *numbers, words[1]):
        if table:
            yield from ("\n", *_aligned(table, numbers=table in numbers))
    if why := list(_why(pair, folder)):
        yield from ("\n", *why)


def _differing(pair: Pair, folder: str) -> list[list[str]]:
    return [["differs", *_SIDES], *(_setting(setting, folder) for setting in pair.differing)] if pair.differing else []


def _calls(pair: Pair) -> list[list[str]]:
    """The declared metric's word stands by itself, those of the others in brackets."""
    head = [_OVER, *_SIDES, "ratio", "95 % interval", "call"]
    return [head, *map(_call, pair.calls)] if pair.calls else []


def _call(call: Call) -> list[str]:
    found = call.interval
    return [
        heading_of(call.fact),
        *(f"{show(mean)} (CV {_share(cv)})" for mean, cv in zip(call.means, call.cv, strict=True)),
        f"{found.ratio:.3f}",
        f"{found.low:.3f} to {found.high:.3f}",
        call.verdict if call.is_declared else f"({call.verdict})",
    ]


def _share(ratio: float | None) -> str:
    return "–" if ratio is None else percent(ratio)


def _numbers(pair: Pair) -> list[list[str]]:
    """What is published and not called."""
    called = {call.fact for call in pair.calls}
    rows = [_number(number) for number in pair.numbers if number.fact not in called]
    return [[_reach(pair), *_SIDES, "ratio"], *rows] if rows else []


def _reach(pair: Pair) -> str:
    """How far its numbers hold."""
    return _WITHIN if all(len(side.repeats) == 1 for side in pair.sides) else _OVER


def _first_tokens(pair: Pair) -> list[list[str]]:
    """A row a run: each percentile with its interval and its bound, or what it would need."""
    names = [f"p{percentile:g} (95 %) ≤ 99 % sure" for percentile in _SHOWN_PERCENTILES]
    head = ["TTFT (ms), each run by itself", "", "requests", *names]
    rows = [
        [
            found.side.upper(),
            one_line(found.experiment),
            f"{found.requests:,}",
            *(_percentile(p) for p in found.percentiles if p.percentile in _SHOWN_PERCENTILES),
        ]
        for found in pair.first_tokens
    ]
    return [head, *rows] if rows else []


def _percentile(found: Percentile) -> str:
    if found.value is None:
        return f"needs n ≥ {found.needs}"
    between = f" ({_ms(found.interval[0])} to {_ms(found.interval[1])})" if found.interval else ""
    return f"{_ms(found.value)}{between} ≤ {_ms(found.at_most)}"


def _ms(value: float | None) -> str:
    """Milliseconds of a percentile: its interval is wider than a tenth."""
    return "–" if value is None else f"{value:,.1f}"


def _why(pair: Pair, folder: str) -> Iterator[str]:
    """What the rules about pairs say, and what they could not see."""
    told = {f"{word} by": pair.failed(severity) for severity, word in _WORDS.items()}
    for word, results in {"no call by": pair.without_call, **told}.items():
        for result in results:
            yield f"  {word} {result.rule}: {one_line(result.sentence)}\n"
            if result.places:
                yield f"      {one_line('  '.join(below(folder, result.places)))}\n"
    if pair.stated_once:
        yield f"  stated on one side only: {listed([setting.name for setting in pair.stated_once])}\n"
    if pair.not_evaluated:
        yield f"  not evaluated: {listed(list(pair.not_evaluated))}\n"


def _side(side: Runs, run: Run, folder: str) -> list[str]:
    verdict = f"{run.verdict} ({run.why})" if run.why else run.verdict
    if (received := run.published.get(_RECEIVED)) is not None:
        shown = f"{show(received, 'tok/s')} received"
    elif run.claim:
        shown = f"{run.claim} ({below(folder, [run.claim.place])[0]})"
    else:
        shown = ""
    return [side.side.upper(), one_line(run.experiment), verdict, one_line(shown)]


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
        "metric": comparison.declared,
        "pairs": [_pair_of(pair) for pair in comparison.pairs],
        "unpaired": [vars(level) | {"why": level.sentence} for level in comparison.unpaired],
    }
    return json_.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _pair_of(pair: Pair) -> dict[str, Any]:
    return {
        "title": pair.title,
        "comparable": pair.is_comparable,
        "sentence": pair.sentence,
        "call": pair.call and pair.call.word,
        "per_gpu": pair.per_gpu,
        "baseline": _run_of(pair.baseline),
        "candidate": _run_of(pair.candidate),
        "runs": [_run_of(run) | _repeat_of(side, run) for side in pair.sides for run in side.every],
        "left_out": pair.left_out,
        "differs": [_setting_of(setting) for setting in pair.differing],
        "stated_once": [_setting_of(setting) for setting in pair.stated_once],
        "refused_by": [_result_of(result) for result in pair.failed("refuse")],
        "no_call_by": [_result_of(result) for result in pair.without_call],
        "doubted_by": [_result_of(result) for result in pair.failed("suspect")],
        "noted_by": [_result_of(result) for result in pair.failed("note")],
        "not_evaluated": list(pair.not_evaluated),
        "numbers_hold": _reach(pair),
        "numbers": [_number_of(number) for number in pair.numbers],
        "calls": [_call_of(call) for call in pair.calls],
        "ttft_ms": [_first_tokens_of(found) for found in pair.first_tokens],
    }


def _repeat_of(side: Runs, run: Run) -> dict[str, Any]:
    return {"side": side.side, "is_repeat": any(run.run_id == repeat.run_id for repeat in side.repeats)}


def _call_of(call: Call) -> dict[str, Any]:
    sides = ("baseline", "candidate")
    return {
        "fact": call.fact,
        "unit": METRICS[call.fact].unit,
        "declared": call.is_declared,
        "call": call.word,
        **{f"{side}_runs": runs for side, runs in zip(sides, call.runs, strict=True)},
        **dict(zip(sides, call.means, strict=True)),
        **{f"{side}_cv_ratio": cv for side, cv in zip(sides, call.cv, strict=True)},
        "ratio": call.interval.ratio,
        "ratio_low": call.interval.low,
        "ratio_high": call.interval.high,
        "p": call.interval.p,
        "p_among_levels": call.holm_p,
        "p_exact": call.permutation_p,
        "delta_ratio": call.delta,
        "smallest_effect_ratio": call.smallest_effect,
        "repeats_to_tell": call.enough if call.word == "can't tell" and not call.is_picked else None,
    }


def _first_tokens_of(found: FirstTokens) -> dict[str, Any]:
    return {
        "side": found.side,
        "run_id": found.run_id,
        "experiment": found.experiment,
        "requests": found.requests,
        "percentiles": [
            {
                "percentile": one.percentile,
                "needs": one.needs,
                "value": one.value,
                "low": one.interval and one.interval[0],
                "high": one.interval and one.interval[1],
                "at_most": one.at_most,
            }
            for one in found.percentiles
        ],
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
