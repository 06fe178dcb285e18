"""What a reader takes away in ten seconds: was it measured, why not, and what would have to change."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pdkit.chain import END, Chain
from pdkit.postmortem.case import PostMortem
from pdkit.postmortem.next_steps import tasks
from pdkit.postmortem.told import at_levels, came_back
from pdkit.results import DOUBTS, MEASURED, NO_RESULT, NOTHING_TO_JUDGE, UNVERIFIED
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Banner, Part, Section, Stage, Stages, Words
from pdkit.tables.verdicts import banner
from pdkit.units import listed

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
    if case.comparison and case.worst != MEASURED:
        parts.append(Words(f"{compared(case)}.", "Against the baseline"))
    todo = [task.text for task in tasks(case)][:_TASKS]
    if todo and case.worst in (NO_RESULT, UNVERIFIED):
        parts.append(Words(" ".join(todo), "To change"))
    return Section("verdict", tuple(parts))


def headline(case: PostMortem) -> str:
    """The most important thing in one sentence."""
    runs = case.runs
    if runs.is_empty():
        return "No measured result: the suspect's files hold no run that pdkit can read."
    of = {word: runs.filter(pl.col("verdict") == word)["level"].to_list() for word in (NO_RESULT, UNVERIFIED)}
    good = runs.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))["level"].to_list()
    if len(of[NO_RESULT]) == runs.height:
        return f"No measured result: {came_back(case) or _refusal(case)}."
    if of[NO_RESULT]:
        measured = f"measured {at_levels(good)}" if good else "nothing measured"
        return f"No measured result {at_levels(of[NO_RESULT])}; {measured}."
    if of[UNVERIFIED]:
        return f"Unverified {at_levels(of[UNVERIFIED])}: nothing shows that text came back."
    doubts = ", with doubts" if (runs["verdict"] == DOUBTS).any() else ""
    return f"Measured {at_levels(good)}{doubts}: the text came back."


def _refusal(case: PostMortem) -> str:
    """What the first rule says that refused it."""
    grave = case.findings.filter(pl.col("severity") == "refuse")
    return grave["sentence"][0] if grave.height else NOTHING_TO_JUDGE


def _why(case: PostMortem) -> Iterator[Part]:
    """The chain in one row, and why there is no text; of a healthy suspect, which doubts there are."""
    for chain in case.suspect_chains:
        if brief := tuple(_stages(chain)):
            yield Stages("What led to what", brief, is_brief=True)
    causes = case.of(case.judgement.causes, case.suspect)["sentence"].unique(maintain_order=True).to_list()
    if causes:
        yield Words(f"{sentence('; '.join(causes))}.", "Why")
    doubted = case.findings.filter(pl.col("severity") == "suspect")["rule"].unique().sort().to_list()
    if case.worst == DOUBTS and doubted:
        yield Words(f"{listed(doubted)}; each stands under Doubts, and none takes the text away.", "Doubts")


def _stages(chain: Chain) -> Iterator[Stage]:
    """The links that were seen or inferred and came before their effect, without the end of the logs."""
    links = [link for link in chain.links if link.is_cause and link.name != END]
    if len(links) < 2:
        return
    for link in links:
        yield Stage(f"{link.when:%H:%M:%S}" if link.when else "", link.name, link.what, link.how)


def compared(case: PostMortem) -> str:
    """What the comparison comes to, in the words of this page."""
    if not case.comparison:
        return ""
    said = case.comparison.conclusion.replace("CANDIDATE", "the suspect").replace("BASELINE", "the baseline")
    return sentence(said)
