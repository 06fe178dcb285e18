"""Six questions to a win that looks too good, each answered from what the rules and the arithmetic found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isfinite

import polars as pl

from pdkit.capacity import Capacity, Seen, Side
from pdkit.causes import OUTPUT_RULES
from pdkit.chain import DIED, FAILED
from pdkit.compare import Call, Pair, Setting
from pdkit.facts import places
from pdkit.findings import Place
from pdkit.postmortem.case import PostMortem
from pdkit.postmortem.told import ERRORS, at_levels, came_back, of_rules, outcomes, placed
from pdkit.postmortem.verdict import compared
from pdkit.results import CLAIMED, DOUBTS, MEASURED, NO_RESULT, NOTHING_TO_JUDGE, UNVERIFIED, Verdict
from pdkit.stats import LEAST_REPEATS
from pdkit.tables.capacity import with_throughput
from pdkit.tables.findings import sentence
from pdkit.tables.layout import Answer, Section, Words
from pdkit.units import listed, plural, show

_TOLD = 3  # sentences of an answer
_LIMITS = ("PD801", "PD802", "PD803", "PD804", "PD806", "PD807")
_HELD_BACK = ("PD606", "PD605", "PD805", "PD615", "PD808")
_WITNESS = "PD609"  # the servers' own count
_NO_LOG = "the servers: not evaluated, needs the prefill and decode logs"


def questions(case: PostMortem) -> Section:
    """Each question as a heading, its answer in a word, a sentence or two, and the lines that these rest on."""
    quoted = Words(f"What is quoted of a load point without a measured result was {CLAIMED}.")
    notes = [quoted] if case.worst == NO_RESULT else []
    return Section("questions", (*(answer(case) for answer in QUESTIONS), *notes))


def _answer(question: str, word: str, sentences: Iterable[str], *, tone: Verdict, lines: Sequence[str] = ()) -> Answer:
    told = tuple(f"{sentence(one).rstrip('.')}." for one in sentences if one)
    return Answer(question, word, tone, told[:_TOLD], placed(lines))


@dataclass(frozen=True)
class _Told:
    """What rules say: a sentence each, and all their lines."""

    rules: tuple[str, ...]
    sentences: tuple[str, ...]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, case: PostMortem, *rules: str, notes: bool = False) -> "_Told":
        """Of these rules on the suspect; with those that only note something, if asked."""
        severities = ("refuse", "suspect", "note") if notes else ("refuse", "suspect")
        found = tuple(of_rules(case, *rules, severities=severities))
        lines = chain.from_iterable(lines for _, _, lines in found)
        return cls(tuple(rule for rule, _, _ in found), tuple(said for _, said, _ in found), tuple(lines))

    def said(self, *rules: str) -> tuple[str, ...]:
        """The sentences of these alone."""
        return tuple(said for rule, said in zip(self.rules, self.sentences, strict=True) if rule in rules)


# --- did it even happen? --------------------------------------------------------------------------------------------


def _happened(case: PostMortem) -> Answer:
    """Whether text came back: the counts, the first tokens, and the servers' own count."""
    question, runs = "Did it even happen?", case.runs
    if runs.is_empty():
        return _answer(question, "Nothing shows it", ["no run was found in the suspect's files"], tone=NO_RESULT)
    told = _Told.of(case, *OUTPUT_RULES, _WITNESS)
    lost = runs.filter(pl.col("verdict") == NO_RESULT)
    without = lost.filter(pl.col("refused_by").list.eval(pl.element().is_in(OUTPUT_RULES)).list.any())
    if without.height:
        word = "No" if without.height == runs.height else f"Not {at_levels(without['level'].to_list())}"
        said = [came_back(case), *told.said("PD201", _WITNESS)]
        return _answer(question, word, said, tone=NO_RESULT, lines=told.lines)
    if lost.height:
        said = [f"there is no result {at_levels(lost['level'].to_list())}: {_first_refusal(case)}"]
        return _answer(question, "Not shown", said, tone=NO_RESULT, lines=told.lines)
    if (runs["verdict"] == UNVERIFIED).any():
        lack = "needs the retokenized count, a record with --output-details, or the decode log"
        return _answer(question, "Not evaluated", [f"nothing shows that text came back: {lack}"], tone=UNVERIFIED)
    lines = _lines(case, "received_tok", "retokenized_tok_sum")
    tone = DOUBTS if told.sentences else MEASURED
    return _answer(question, "Yes", [*_all_there(case), *told.sentences], tone=tone, lines=[*lines, *told.lines])


def _first_refusal(case: PostMortem) -> str:
    grave = case.findings.filter(pl.col("severity") == "refuse")
    return f"{grave['sentence'][0]} ({grave['rule'][0]})" if grave.height else NOTHING_TO_JUDGE


def _all_there(case: PostMortem) -> Iterator[str]:
    known = case.facts.drop_nulls(["received_tok", "output_tok_sum"])
    received, claimed = known["received_tok"].sum(), known["output_tok_sum"].sum()
    levels = at_levels(known["level"].to_list())
    yield f"{received:,.0f} of {claimed:,.0f} tokens came back as text, {levels}"
    if outcomes(case, "PD201") == {"pass"}:
        yield "every run's first tokens took time"
    if "pass" in outcomes(case, _WITNESS):
        yield "the servers' own count agrees with the client's"


# --- did it error? --------------------------------------------------------------------------------------------------


def _errored(case: PostMortem) -> Answer:
    """Failures on either side; the client's word alone is none."""
    question, told = "Did it error?", _Told.of(case, *ERRORS)
    if told.sentences:
        said = [*told.sentences[: _TOLD - 1], *_of_client(case)]
        return _answer(question, "Yes", said, tone=_tone(case), lines=told.lines)
    hard = [link for one in case.suspect_chains for link in one.links if link.seen and link.name in (DIED, FAILED)]
    if hard:
        lines = [place for link in hard for place in link.places]
        said = [*(link.what for link in hard), "no run of a client is joined to it" if case.runs.is_empty() else ""]
        return _answer(question, "The servers did", said, tone=DOUBTS, lines=lines)
    joined = case.of(case.judgement.windows, case.suspect)
    client = "" if case.runs.is_empty() else "the client reports no failed request"
    if joined.is_empty():
        said = [client, _NO_LOG]
        return _answer(question, "Not evaluated", said, tone=UNVERIFIED, lines=_lines(case, "completed"))
    logs = plural(joined["instance"].n_unique(), "server log")
    said = [client, f"{logs} tell of no failed transfer, no lost session and no crash"]
    return _answer(question, "No", said, tone=MEASURED, lines=_lines(case, "completed"))


def _tone(case: PostMortem) -> Verdict:
    """Of what a rule found: grave where the suspect was refused, a doubt where not."""
    return NO_RESULT if case.worst == NO_RESULT else DOUBTS


def _of_client(case: PostMortem) -> Iterator[str]:
    """How many requests the client counts as successful all the same."""
    refused = case.facts.filter(pl.col("verdict") == NO_RESULT).drop_nulls(["completed", "sent"])
    done, sent = refused["completed"].sum(), refused["sent"].sum()
    if refused.height and done and outcomes(case, "PD601") & {"fail"}:
        yield f"the client counts {done:,.0f} of {sent:,.0f} requests as successful all the same"


# --- did it break a limit? ------------------------------------------------------------------------------------------


def _broke(case: PostMortem) -> Answer:
    """The rules on physical limits, and the claim against what the decode side can give."""
    question, told, beyond = "Did it break a limit?", _Told.of(case, *_LIMITS), tuple(_beyond(case))
    if told.sentences or beyond:
        lines = [*_of_capacity(case), *told.lines]
        return _answer(question, "Yes", [*beyond, *told.sentences][:2], tone=_tone(case), lines=lines)
    held = [rule for rule in _LIMITS if "pass" in outcomes(case, rule)]
    within = tuple(_within(case))
    if within or held:
        rules = f"{listed(held)} looked, and none was broken" if held else ""
        return _answer(question, "No", [*within, rules], tone=MEASURED, lines=_of_capacity(case))
    unknown = [why for one in case.suspect_capacities for why in (*one.unknown, *_unknown(one.sides))]
    lacks = "; ".join(dict.fromkeys(unknown)) or "GPU and model are not known"
    return _answer(question, "Not evaluated", [lacks], tone=UNVERIFIED)


def _unknown(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        yield from side.unknown


def _decode(one: Capacity) -> Side | None:
    return next((side for side in one.sides if side.role != "prefill"), None)


def _against(case: PostMortem) -> Iterator[tuple[Seen, Side, float]]:
    """Each run that claims a throughput, with the side that decodes, and the claim as a multiple of its ceiling."""
    for one in case.suspect_capacities:
        for seen in one.seen:
            if (side := _decode(one)) and seen.ceilings and side.ceiling_tok_per_s and side.fit:
                yield seen, side, seen.ceilings


def _beyond(case: PostMortem) -> Iterator[str]:
    """The claim that is furthest above its ceiling, and above that of as many requests as ever fit."""
    found = max(_against(case), key=lambda row: row[2], default=None)
    if found is None:
        return
    seen, side, times = found
    claimed, most = seen.claimed_tok_per_s or 0, side.ceiling_high_tok_per_s or side.ceiling_tok_per_s or 0
    if claimed <= most:
        return
    label = "" if seen.run_id in with_throughput(case.judgement) else f" ({CLAIMED})"
    fits = plural(side.fit.typical, "request") if side.fit else "what fits"
    yield (
        f"{show(seen.claimed_tok_per_s, 'tok/s')}{label} at {seen.level} is {times:,.1f} times the "
        f"{side.ceiling_tok_per_s or 0:,.0f} tok/s that {side.role} gives at most with the {fits} that its pool holds"
    )


def _within(case: PostMortem) -> Iterator[str]:
    """The fastest measured run against its ceiling."""
    held = with_throughput(case.judgement)
    found = max((row for row in _against(case) if row[0].run_id in held), key=lambda row: row[2], default=None)
    if found:
        seen, side, times = found
        ceiling = f"{show(side.ceiling_tok_per_s, 'tok/s')} that {side.role} gives at most"
        yield f"{show(seen.claimed_tok_per_s, 'tok/s')} at {seen.level} is {times:.0%} of the {ceiling}"


def _of_capacity(case: PostMortem) -> list[str]:
    """Where pool and machine stand."""
    sides = (side for one in case.suspect_capacities if (side := _decode(one)))
    steps = (step for side in sides for step in side.steps if step.title.startswith(("KV pool", "Most it can give")))
    return [place for step in steps for place in step.places[:1]]


# --- why not double? ------------------------------------------------------------------------------------------------


def _not_double(case: PostMortem) -> Answer:
    """What limited it: memory of the smaller side, a queue, or the load itself."""
    question, told = "Why not double?", _Told.of(case, *_HELD_BACK, notes=True)
    lines = [*_of_capacity(case), *told.lines]
    limits = [(one, limit) for one in case.suspect_capacities if (limit := one.limit)]
    short = next(((one, limit) for one, limit in limits if _is_short(one, limit)), None)
    if short:
        one, limit = short
        word = f"The memory of the {limit.role} side" if len(one.sides) > 1 else "The memory of the server"
        said = [*_limit(one, limit), *told.said("PD606", "PD605")]
        return _answer(question, word, said, tone=DOUBTS, lines=lines)
    if told.sentences:
        return _answer(question, "It was held back", told.sentences, tone=DOUBTS, lines=lines)
    if not limits:
        needs = "needs the servers' start-up lines (max_total_num_tokens) and their batch lines"
        return _answer(question, "Not evaluated", [needs], tone=UNVERIFIED)
    said = [said for one, limit in limits for said in _room(one, limit)]
    if case.worst == NO_RESULT:
        return _answer(question, "The text was lost first", said, tone=UNVERIFIED, lines=lines)
    return _answer(question, "Nothing on the servers held it back", said, tone=MEASURED, lines=lines)


def _asked(one: Capacity) -> float | None:
    """The most that any run had in flight."""
    known = [seen.asked for seen in one.seen if seen.asked is not None and isfinite(seen.asked)]
    return max(known, default=None)


def _is_short(one: Capacity, limit: Side) -> bool:
    asked = _asked(one)
    return bool(limit.fit and asked is not None and asked > limit.fit.high)


def _limit(one: Capacity, limit: Side) -> Iterator[str]:
    """What the smaller side holds, what was asked of it, and what it was seen to do."""
    what = "prompts" if limit.role == "prefill" else "requests"
    small = ", the smaller of the two," if len(one.sides) > 1 else ""
    pool = f"the {limit.role} pool of {show(limit.pool_tok, 'tok')}{small} holds few {what}: {limit.fit}"
    yield f"{pool}; {_asked(one):,.0f} were in flight"
    ran, waited = limit.running_max, limit.waiting_max
    if ran is not None and waited:
        yield f"its log shows {ran:,.0f} running at most while up to {waited:,.0f} waited"
    elif waited:
        yield f"its log shows up to {waited:,.0f} waiting"


def _room(one: Capacity, limit: Side) -> Iterator[str]:
    """How much of the smaller side the load took."""
    asked, what = _asked(one), "prompts" if limit.role == "prefill" else "requests"
    ran = max((seen.running_max for seen in one.seen if seen.running_max is not None), default=None)
    seen = f", and {ran:,.0f} ran" if ran is not None else ""
    in_flight = f"{asked:,.3g} were in flight{seen}" if asked is not None else "the load is not stated"
    small = ", the smaller one," if len(one.sides) > 1 else ""
    yield f"{in_flight}; the {limit.role} side{small} has room for more: {what} that fit: {limit.fit}"


# --- does it reproduce? ---------------------------------------------------------------------------------------------


def _reproduces(case: PostMortem) -> Answer:
    """Levels that were measured more than once, and how far apart their runs lie."""
    question, told = "Does it reproduce?", _Told.of(case, "PD405", notes=True)
    good = case.runs.filter(pl.col("verdict").is_in([MEASURED, DOUBTS]))
    counts = good.group_by("experiment", "level", maintain_order=True).len()
    enough = counts.filter(pl.col("len") >= LEAST_REPEATS)
    if called := _called(case):
        return _answer(question, "Within its spread", called, tone=MEASURED, lines=told.lines)
    if enough.height:
        many = "; ".join(f"{level}: {count} measured runs" for _, level, count in enough.iter_rows())
        return _answer(question, "In part", [f"{many} of the suspect", *told.sentences], tone=DOUBTS, lines=told.lines)
    needs = f"needs {LEAST_REPEATS} or more measured runs a side at one level"
    have = (
        f"one measured run {'a level' if counts.height > 1 else 'at one level'}" if good.height else "no measured run"
    )
    return _answer(
        question, "Not evaluated", [f"{needs}; the suspect has {have}", *told.sentences], tone=UNVERIFIED,
        lines=told.lines,
    )  # fmt: skip


def _called(case: PostMortem) -> list[str]:
    """The spread of each side's repeats, where both have enough."""
    pairs = case.comparison.pairs if case.comparison else ()
    return [_spread(pair.candidate.level, pair.call) for pair in pairs if pair.call]


def _spread(level: str, call: Call) -> str:
    (theirs, mine), sides = call.cv, ("the suspect's", "the baseline's")
    said = [f"{name} vary by {cv:.1%}" for name, cv in zip(sides, (mine, theirs), strict=True) if cv is not None]
    return f"{call.runs[1]} runs against {call.runs[0]} at {level}: {listed(said)}"


# --- does it matter? ------------------------------------------------------------------------------------------------


def _matters(case: PostMortem) -> Answer:
    """Whether the two sides may be compared, and who is ahead; nobody is where one side has no measured result."""
    question, pairs = "Does it matter?", case.comparison.pairs if case.comparison else ()
    if not case.baseline:
        return _answer(question, "Not evaluated", ["needs the baseline's logs"], tone=UNVERIFIED)
    said = [compared(case) or "needs a run on both sides", *_differ(pairs)]
    if not pairs:
        return _answer(question, "Not evaluated", said, tone=UNVERIFIED)
    lines = [str(place) for pair in pairs for setting in pair.differing for place in _first_places(setting)]
    words = {pair.call.word for pair in pairs if pair.call}
    if ahead := sorted(words & {"faster", "slower"}):
        return _answer(question, f"The suspect is {listed(list(ahead))}", said, tone=MEASURED, lines=lines)
    if "same" in words:
        return _answer(question, "No difference", said, tone=MEASURED, lines=lines)
    refused = any(run.is_refused for pair in pairs for side in pair.sides for run in side.used)
    return _answer(question, "Nobody can tell", said, tone=NO_RESULT if refused else UNVERIFIED, lines=lines)


def _differ(pairs: Sequence[Pair]) -> Iterator[str]:
    """What differs between the sides beside the result."""
    settings = {setting.name: setting for pair in pairs for setting in pair.differing}
    if settings:
        each = [f"{name} ({one.candidate} against {one.baseline})" for name, one in settings.items()]
        yield f"the two sides differ in {listed(each)}"


def _first_places(setting: Setting) -> tuple[Place, ...]:
    return (*setting.candidate_places[:1], *setting.baseline_places[:1])


def _lines(case: PostMortem, *facts: str) -> list[str]:
    """Where these facts of the suspect stand."""
    stated = places(case.judgement.evidence, case.judgement.facts).filter(pl.col("fact").is_in(facts))
    mine = case.of(stated, case.suspect).select(pl.format("{}:{}", "source_file", "source_line"))
    return mine.to_series().unique(maintain_order=True).to_list()


QUESTIONS: tuple[Callable[[PostMortem], Answer], ...] = (
    _happened, _errored, _broke, _not_double, _reproduces, _matters,
)  # fmt: skip
