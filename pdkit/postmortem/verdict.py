"""What a reader takes away in ten seconds: was it measured, why not, and what would have to change."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pdkit.chain import END, Chain
from pdkit.postmortem.case import PostMortem
from pdkit.postmortem.next_steps import tasks
from pdkit.postmortem.told import ERRORS, at_levels, came_back
from pdkit.results import DOUBTS, FEW, MEASURED, NO_RESULT, NOTHING_TO_JUDGE, UNVERIFIED
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Banner, Part, Section, Stage, Stages, Words
from pdkit.tables.verdicts import banner
from pdkit.units import listed, plural

_TASKS = 3  # to begin with; all of them have a section of their own


def verdict(case: PostMortem) -> Section:
    """One sentence on the suspect, the verdicts of both sides, why, and what would have to change."""
    titles = dict(case.judgement.conclusions.select("experiment", "title").iter_rows())
    (found,) = (part for part in banner(case.judgement).parts if isinstance(part, Banner))
    mine = set(case.runs["experiment"].replace_strict(titles, default=None))
    ordered = tuple(sorted(found.experiments, key=lambda one: one.title not in mine))
    head = replace(found, headline=headline(case), verdict=case.worst or NO_RESULT, experiments=ordered)
    parts: list[Part] = [head]
    parts.extend(_why(case))
    if case.comparison:
        parts.append(Words(f"{compared(case)}.", "Against the baseline"))
    todo = [task.text for task in tasks(case)][:_TASKS]
    if todo and case.worst in (NO_RESULT, UNVERIFIED):
        numbered = " ".join(f"{number}. {text}" for number, text in enumerate(todo, 1)) if len(todo) > 1 else todo[0]
        parts.append(Words(numbered, "To change"))
    return Section("verdict", tuple(parts))


def headline(case: PostMortem) -> str:
    """The most important thing in one sentence."""
    runs = case.runs
    if runs.is_empty():
        return "No measured result: the suspect's files hold no run that pdkit can read."
    if runs["experiment"].n_unique() > 1:
        return _of_several(case)
    of = {word: runs.filter(pl.col("verdict") == word)["level"].to_list() for word in (NO_RESULT, UNVERIFIED)}
    good = runs.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))["level"].to_list()
    if len(of[NO_RESULT]) == runs.height:
        return f"No measured result: {came_back(case) or _refusal(case)}."
    if of[NO_RESULT]:
        measured = f"measured {at_levels(good)}" if good else "nothing is measured"
        return f"No measured result {at_levels(of[NO_RESULT])}; {measured}."
    if of[UNVERIFIED]:
        return f"Unverified {at_levels(of[UNVERIFIED])}: nothing shows that text came back."
    doubts = ", with doubts" if (runs["verdict"] == DOUBTS).any() else ""
    return f"Measured {at_levels(good)}{doubts}: the text came back."


def _of_several(case: PostMortem) -> str:
    """The same where the suspect is several experiments, whose levels would be mixed up."""
    runs, counts = case.runs, dict(case.runs["verdict"].cast(pl.String).value_counts().iter_rows())
    where = f"{plural(runs.height, 'load point')} in {plural(runs['experiment'].n_unique(), 'experiment')}"
    if lost := counts.get(NO_RESULT, 0):
        return f"No measured result at {'any' if lost == runs.height else f'{lost:,}'} of {where}."
    if unknown := counts.get(UNVERIFIED, 0):
        return f"Unverified at {unknown:,} of {where}: nothing shows that text came back."
    return f"Measured at {where}{', with doubts' if counts.get(DOUBTS) else ''}: the text came back."


def _refusal(case: PostMortem) -> str:
    """What the first rule says that refused it."""
    grave = case.findings.filter(pl.col("severity") == "refuse")
    return grave["sentence"][0] if grave.height else NOTHING_TO_JUDGE


def _found(case: PostMortem) -> Iterator[Words]:
    """Of a suspect that was measured: that nothing was found wrong with it, and what is in doubt."""
    taken = case.of(case.judgement.published, case.suspect).explode("voided_by").drop_nulls("voided_by")
    doubted = case.findings.filter(pl.col("severity") == "suspect")["rule"].unique().sort().to_list()
    rules, failed = sorted(set(taken["voided_by"]) - {FEW}), [rule for rule in doubted if rule in ERRORS]
    if rules or failed:
        yield Words(f"The text came back, but {listed([*dict.fromkeys([*rules, *failed])])} failed.", "Found")
    else:
        yield Words("Nothing wrong: no text is missing, and no rule took a number away.", "Found")
    if doubted:
        yield Words(f"{listed(doubted)} say how far the numbers carry; see Doubts.", "In doubt")


def _why(case: PostMortem) -> Iterator[Part]:
    """The chain in one row, and why there is no text; of a healthy suspect, which doubts there are."""
    told = {chain.title: stages for chain in case.suspect_chains if (stages := tuple(_stages(chain)))}
    for title, stages in told.items():
        names = " → ".join(stage.title for stage in stages)
        yield Words(names, title) if len(told) > 1 else Stages("What led to what", stages, is_brief=True)
    found = case.of(case.judgement.causes, case.suspect)
    for _, rows in found.group_by("cause", maintain_order=True):
        more = f"; likewise at {plural(rows.height - 1, 'more level')}" if rows.height > 1 else ""
        yield Words(f"{sentence(rows['sentence'][0])}{more}.", "Why")
    if case.worst in (MEASURED, DOUBTS):
        yield from _found(case)


def _stages(chain: Chain) -> Iterator[Stage]:
    """The links that were seen or inferred and came before their effect, without the end of the logs."""
    links = [link for link in chain.links if link.is_cause and link.name != END]
    if len(links) < 2:
        return
    before = links[0].when
    for link in links:  # a run is dated by its start, which may lie before what went wrong in it
        late = link.when is not None and (before is None or link.when >= before)
        yield Stage(f"{link.when:%H:%M:%S}" if late else "", link.name, link.what, link.how)
        before = link.when if late else before


def compared(case: PostMortem) -> str:
    """What the comparison comes to, in the words of this page."""
    if not case.comparison:
        return ""
    said = case.comparison.conclusion.replace("CANDIDATE", "the suspect").replace("BASELINE", "the baseline")
    return sentence(said)
