"""The pair at each level: its title, what differs, what the rules about pairs say of it, then its numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pdkit.compare.call import PICKED
from pdkit.compare.comparison import Pair, Runs, Setting, Side
from pdkit.compare.levels import Level, Picked
from pdkit.compare.numbers import counted, with_numbers
from pdkit.compare.settings import SETTINGS, Settings
from pdkit.compare.sides import unsided
from pdkit.findings import Findings, Result, Run
from pdkit.results import Judgement
from pdkit.rules import CHECKS
from pdkit.units import listed

_OF_CALLS = {"PD903", "PD904", PICKED}  # where there is no call, PD902 says so, and not that these could not look


def compared(judgement: Judgement, levels: Sequence[Level], metric: str) -> list[Pair]:
    """The pairs with their numbers and calls, in the order of levels."""
    runs = {run.run_id: run for run in Findings(judgement).runs}
    titles = {name: unsided(title) for name, title in judgement.conclusions.select("experiment", "title").iter_rows()}
    settings = Settings(judgement, {run for level in levels for run in (level.lead, level.candidate.used[0])})
    pairs = []
    for level in levels:
        sides = _runs("baseline", level.baseline, runs), _runs("candidate", level.candidate, runs)
        pair = _pair(
            *sides, titles=titles, settings=list(settings.differing(level.lead, level.candidate.used[0])), metric=metric
        )
        pairs.append(with_numbers(pair, judgement) if pair.is_comparable else pair)
    return counted(pairs)


def _runs(side: Side, picked: Picked, runs: Mapping[str, Run]) -> Runs:
    every, repeats = (tuple(runs[name] for name in names) for names in (picked.every, picked.repeats))
    return Runs(side, every, repeats, picked.copies, picked.unlike)


def _pair(
    baseline: Runs, candidate: Runs, *, titles: Mapping[str, str], settings: Sequence[Setting], metric: str
) -> Pair:
    """The pair without its numbers."""
    differing = [s for s in settings if s.baseline is not None and s.candidate is not None]
    per_gpu = any(setting.name == SETTINGS["gpu_count"] for setting in differing)
    levels = " against ".join(dict.fromkeys([candidate.used[0].level, baseline.used[0].level]))
    title = f"{_title(candidate, titles)} against {_title(baseline, titles)}, at {levels}"
    names = [setting.name for setting in differing]
    blind = {r.rule for run in candidate.used for r in run.results if r.outcome == "not_evaluated"}
    return Pair(
        title=title + (", per GPU" if per_gpu else "") + (f"; they differ in {listed(names)}" if names else ""),
        baseline_runs=baseline,
        candidate_runs=candidate,
        per_gpu=per_gpu,
        differing=tuple(differing),
        stated_once=tuple(setting for setting in settings if setting not in differing),
        results=tuple(_about_pair(baseline, candidate)),
        not_evaluated=tuple(rule for rule in sorted(blind - _OF_CALLS) if _is_of_pairs(rule)),
        declared=metric,
    )


def _title(side: Runs, titles: Mapping[str, str]) -> str:
    """`before`, `before and 2 more`: the experiments of a side."""
    names = list(dict.fromkeys(titles[run.experiment] for run in side.used))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _is_of_pairs(rule: str) -> bool:
    return CHECKS[rule].family in ("comparability", "enough_data") and CHECKS[rule].voids == ("comparison",)


def _about_pair(baseline: Runs, candidate: Runs) -> Iterator[Result]:
    """What failed of the pair, and what speaks against comparing either side; once, with the lines of all runs."""
    found: dict[tuple[str, str], Result] = {}
    for runs in (baseline, candidate):
        for result in (one for run in runs.used for one in run.failed("refuse", "suspect", "note")):
            about = CHECKS[result.rule].voids == ("comparison",) and result.severity != "note"
            if (about or _is_of_pairs(result.rule)) and (sentence := _whose(runs.side, result)):
                known = found.get((result.rule, sentence), replace(result, sentence=sentence, places=()))
                where = tuple(dict.fromkeys([*known.places, *result.places]))
                found[result.rule, sentence] = replace(known, places=where)
    yield from found.values()


def _whose(side: Side, result: Result) -> str:
    """Its sentence, told of the runs that it is about; "" where the candidate's runs say it of both sides."""
    if result.rule == "PD905":
        return f"{side.upper()}: {result.sentence}"
    if side == "candidate" or not _is_of_pairs(result.rule):
        return result.sentence
    # a repeat of the baseline was held against the first one; what counts repeats says nothing new there
    is_new = CHECKS[result.rule].family == "comparability"
    return f"of the baseline's own repeats: {result.sentence}" if is_new else ""
