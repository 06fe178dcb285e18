"""The sections of the page: the week in a minute, coverage, calls, what nobody can tell, noise, waivers, what to do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime

import polars as pl

from pdkit import __version__
from pdkit.compare import percent
from pdkit.metrics import METRICS
from pdkit.results import CLAIMED, DOUBTS, MEASURED, NO_RESULT, UNVERIFIED, Verdict
from pdkit.rules import CHECKS
from pdkit.tables.findings import sentence
from pdkit.tables.layout import (
    Banner,
    Cell,
    Column,
    Fold,
    Group,
    Part,
    Row,
    Section,
    Table,
    Task,
    Tasks,
    Words,
)
from pdkit.trend import LEAST_WEEKS
from pdkit.units import listed, plural, show
from pdkit.weekly.review import Change, Review, Series

_TOP = 3
_NAMED = 4  # series in one sentence; of more, how many
_SOON_DAYS = 14  # before a waiver ends
_FINDINGS_SHOWN, _FINDINGS_FOLDED = 12, 60  # of more the page would be of findings


# --- the week in a minute -------------------------------------------------------------------------------------------


def in_a_minute(review: Review) -> Section:
    """What got faster, what slower, what was not measured, what nobody can tell; then where to look first."""
    verdict = _worst(review)
    made = "SYNTHETIC DATA: the logs of these weeks were made by a program, not recorded." if review.synthetic else ""
    banner = Banner(headline(review), verdict, tuple(_counts(review).items()), (), made)
    first = [task.text.partition(" Next: ")[0] for task in list(tasks(review))[:_TOP]]
    parts = [Words(text, label) for label, text in lines(review)]
    if first:
        said = " ".join(f"{number}. {sentence(text)}" for number, text in enumerate(first, 1))
        parts.append(Words(f"{said} Next steps: see Top three.", "Look first"))
    return Section("verdict", (banner, *parts))


def headline(review: Review) -> str:
    """One sentence on the week."""
    slower, faster = len(review.of("slower")), len(review.of("faster"))
    moved = [
        f"{plural(n, 'series').replace('seriess', 'series')} {word}"
        for n, word in ((slower, "slower"), (faster, "faster"))
        if n
    ]
    lost = len(review.unmeasured)
    said = listed(moved) if moved else "Nothing is called faster or slower"
    more = f"; {lost} not measured" if lost else ""
    return f"{review.week}: {said}{more}."


def lines(review: Review) -> Iterator[tuple[str, str]]:
    """The week in a few lines, each with its label; the same on the page and in a message."""
    yield "Coverage", _coverage_said(review)
    for word, label in (("slower", "Slower"), ("faster", "Faster")):
        found = review.of(word)
        yield label, _named(found, _moved) if found else "none"
    yield "Not measured", "; ".join(_lost_said(review)) or "none: every series of these weeks has a value"
    yield "Can't tell", "; ".join(_unknown_said(review)) or "none"
    same = len(review.of("same"))
    yield "Same", f"{same} of {len(review.series)} series" if same else "none is surely the same"


def _lost_said(review: Review) -> Iterator[str]:
    """What was meant to run and has no value, by name; of older series that nobody ran how many there are."""
    if review.unmeasured:
        yield _named(review.unmeasured, _why_lost)
    if gone := len(review.absent):
        yield f"{gone} series of earlier weeks had no run in this one"


def _unknown_said(review: Review) -> Iterator[str]:
    """Those with weeks enough by name; of the others how many there are."""
    found = review.of("can't tell")
    known = [one for one in found if one.call and one.call.interval]
    if known:
        yield _named(known, lambda one: one.call.why if one.call else "")
    young = len(found) - len(known)
    if young:
        more = f"{young} more" if known else f"{young}"
        yield f"{more} with fewer than {LEAST_WEEKS} measured weeks as they are now"


def _worst(review: Review) -> Verdict:
    if review.of("slower") or review.unmeasured:
        return NO_RESULT
    return DOUBTS if review.of("can't tell") or review.absent else MEASURED


def _counts(review: Review) -> dict[Verdict, int]:
    every = [one.covered for one in review.series]
    return {
        MEASURED: sum(one.measured for one in every),
        DOUBTS: sum(one.doubts for one in every),
        UNVERIFIED: sum(one.unverified for one in every),
        NO_RESULT: sum(one.refused + one.missing for one in every),
    }


def _coverage_said(review: Review) -> str:
    every = [one.covered for one in review.series]
    planned, counts = sum(one.planned for one in every), sum(one.counts for one in every)
    missing = sum(one.missing for one in every)
    whole = sum(one.is_whole for one in every)
    more = f"; {missing} missing" if missing else ""
    return f"{counts} of {plural(planned, 'run')} measured, {whole} of {len(every)} series whole{more}"


def _named(found: Sequence[Series], said: Callable[[Series], str]) -> str:
    shown = "; ".join(f"{one.label}: {text}" if (text := said(one)) else one.label for one in found[:_NAMED])
    left = len(found) - _NAMED
    return f"{shown}; and {left} more" if left > 0 else shown


def _moved(one: Series) -> str:
    call = one.call
    if call is None or call.interval is None:
        return ""
    with_ = [change.text for change in one.changes if change.week == call.since]
    came = f", the week of {listed(with_)}" if with_ else ""
    return f"{call.interval.ratio:.3f} times since {call.since}{came}"


def _why_lost(one: Series) -> str:
    covered = one.covered
    if not covered.planned:
        return f"no run meant or seen since {covered.last_week}"
    parts = [
        (covered.refused, "refused"),
        (covered.missing, "missing"),
        (covered.unverified, "unverified"),
        (covered.counts, "measured, and none publishes this number"),
    ]
    rules = f" ({', '.join(covered.refused_by)})" if covered.refused_by else ""
    return f"{listed([f'{n} {what}' for n, what in parts if n])}{rules}"


# --- coverage -------------------------------------------------------------------------------------------------------

_COVERAGE = (
    Column("Series"),
    Column("Planned", number=True),
    Column("Measured", number=True),
    Column("With doubts", number=True),
    Column("Unverified", number=True),
    Column("No measured result", number=True),
    Column("Missing", number=True),
    Column("Rules"),
    Column("Before", number=True),
)


def coverage(review: Review) -> Section:
    """One row a series: what was meant to run in this week, and what came of it; what is not whole comes first."""
    groups = (
        Group("Not all measured", tuple(map(_covered_row, (o for o in review.series if not o.covered.is_whole)))),
        Group("All measured", tuple(map(_covered_row, (o for o in review.series if o.covered.is_whole)))),
    )
    found = [group for group in groups if group.rows]
    parts: list[Part] = [Words(f"{_coverage_said(review)}.", review.week)]
    if review.common:
        parts.append(Words(f"{'; '.join(review.common)}.", "All series"))
    parts.append(Table("Coverage", _COVERAGE, tuple(found), wide=True))
    parts.extend(_kin(review))
    return Section("coverage", tuple(parts))


def no_measured_result(review: Review) -> Section:
    """Why runs of this week have no measured result, with rules and lines; or that all have one."""
    lost = sum(one.covered.refused + one.covered.missing for one in review.series)
    if not lost:
        return Section("no_measured_result", (Words("No run of this week was refused, and none is missing."),))
    planned = sum(one.covered.planned for one in review.series)
    said = f"{lost} of {plural(planned, 'run')}. Nothing that was printed for them enters a series."
    return Section("no_measured_result", (Words(said), *_refusals(review)))


def _covered_row(one: Series) -> Row:
    covered = one.covered
    numbers = (covered.planned, covered.measured, covered.doubts, covered.unverified, covered.refused, covered.missing)
    shown = (Cell(str(n) if n else "–", "number") for n in numbers)
    return (
        Cell(one.label),
        *shown,
        Cell(", ".join(covered.refused_by) or "–", "short"),
        Cell(covered.last_week or "new", "short"),
    )


def _refusals(review: Review) -> Iterator[Part]:
    """What the rules say, each sentence once with the first line behind it."""
    labels = {one.key: one.label for one in review.series}
    told: dict[tuple[str, str, str], list[str]] = {}
    for rule, said, places, key in review.findings.select("rule", "sentence", "lines", "series_key").iter_rows():
        told.setdefault((rule, labels.get(key, key), said), []).extend(places or [])
    rows = tuple(
        (Cell(rule, "head"), Cell(label), Cell(sentence(said)), Cell(places[0] if places else "–", "code"))
        for (rule, label, said), places in sorted(told.items())
    )
    if not rows:
        return
    columns = (
        Column("Rule"),
        Column("Series"),
        Column("What is wrong", f"figures as printed: {CLAIMED}"),
        Column("First line"),
    )
    yield Table("Why there is no measured result", columns, (Group("", rows[:_FINDINGS_SHOWN]),))
    if more := rows[_FINDINGS_SHOWN : _FINDINGS_SHOWN + _FINDINGS_FOLDED]:
        yield Fold(plural(len(more), "more finding"), (Table("More findings", columns, (Group("", more),)),))
    if left := len(rows[_FINDINGS_SHOWN + _FINDINGS_FOLDED :]):
        yield Words(f"{left:,} more findings are left out here; `pdkit store show EXPERIMENT` prints them.")


def _kin(review: Review) -> Iterator[Words]:
    """Series that began lately beside older ones, and in what they differ."""
    for one in review.series:
        if one.kin:
            began = f"{one.label} began in {one.points[0].week} and is held against no earlier series"
            yield Words(f"{began}; from the one beside it, it differs in {one.kin}.", "Another series")


# --- calls ----------------------------------------------------------------------------------------------------------

_CALLS = (
    Column("Series"),
    Column("Call"),
    Column("Ratio", number=True),
    Column("95 % interval"),
    Column("Delta", number=True),
    Column("This week", number=True),
    Column("Runs", number=True),
    Column("Held against"),
    Column("Confirmed by"),
    Column("p among all", number=True),
)


def calls(review: Review) -> Section:
    """What is faster, slower or the same, with what that rests on."""
    moved = [*review.of("slower"), *review.of("faster")]
    same = review.of("same")
    groups = [
        Group(title, tuple(_call_row(one) for one in found))
        for title, found in (("Changed", moved), ("Same within delta", same))
        if found
    ]
    metric = METRICS[review.metric]
    how = (
        f"{metric.title}: means of a week's runs against the last {review.baseline_weeks} measured weeks before. A "
        "call takes two measured weeks in a row outside the limits on one side, and an interval of the ratio beyond "
        "1 ± delta (3 %, or twice the CV of weeks); p is Holm's, among all series of this page."
    )
    if not groups:
        return Section("calls", (Words("No series is called faster, slower or the same."), Words(how, "How")))
    columns = tuple(_with_unit(column, metric.unit) if column.title == "This week" else column for column in _CALLS)
    return Section("calls", (Table("Calls", columns, tuple(groups), wide=True), Words(how, "How")))


def _with_unit(column: Column, unit: str) -> Column:
    return Column(column.title, unit, column.number)


def _call_row(one: Series) -> Row:
    call = one.call
    if call is None or call.interval is None:
        return ()
    found, now = call.interval, call.weeks[-1]
    doubts = (
        (f"{plural(len(rests), 'week')} with doubts",) if (rests := [w for w in call.recent if w.has_doubts]) else ()
    )
    with_ = tuple(f"{change.week}: {change.text}" for change in one.changes if change.week == call.since)
    confirmed = f"{len(call.recent)} weeks in a row since {call.since}" if call.since else "–"
    return (
        Cell(one.label),
        Cell(call.verdict, "short", (*with_, *doubts)),
        Cell(f"{found.ratio:.3f}", "number"),
        Cell(f"{found.low:.3f} to {found.high:.3f}", "short"),
        Cell(percent(call.delta), "number"),
        Cell(show(now.mean), "number"),
        Cell(str(len(now.values)), "number"),
        Cell(plural(len(call.baseline), "week"), "short"),
        Cell(confirmed, "text", (f"dated to {call.dated}",) if call.dated else ()),
        Cell(f"{call.holm_p:.2g}" if call.holm_p is not None else "–", "number"),
    )


_UNKNOWN = (
    Column("Series"),
    Column("Ratio", number=True),
    Column("95 % interval"),
    Column("Why"),
    Column("What would tell"),
)


def cant_tell(review: Review) -> Section:
    """The series of which nobody can tell, those outside their limits first, with the runs or weeks that would."""
    found = review.of("can't tell")
    if not found:
        return Section("cant_tell", (Words("Of every series that has a value this week somebody can tell."),))
    rows = tuple(_unknown_row(one) for one in found)
    return Section("cant_tell", (Table("Can't tell", _UNKNOWN, (Group("", rows),), wide=True),))


def _unknown_row(one: Series) -> Row:
    call = one.call
    if call is None:
        return ()
    found = call.interval
    return (
        Cell(one.label),
        Cell(f"{found.ratio:.3f}" if found else "–", "number"),
        Cell(f"{found.low:.3f} to {found.high:.3f}" if found else "–", "short"),
        Cell(sentence(call.why)),
        Cell(sentence(call.would_tell)),
    )


# --- what changed under the numbers ---------------------------------------------------------------------------------


def changes(review: Review) -> Section:
    """Every mark of the charts in words, the newest first: versions, flags, notes, targets."""
    letters = {(mark.week, mark.text): mark.letter for one in review.drawn.series for mark in one.marks}
    told: dict[tuple[str, str, bool], list[tuple[Series, Change]]] = {}
    for one in review.series:
        for change in one.changes:
            told.setdefault((change.week, change.text, change.is_restart), []).append((one, change))
    rows = tuple(
        (
            Cell(letters.get((week, text), "–"), "head"),
            Cell(week, "short"),
            Cell(text),
            Cell(_which(review, [one for one, _ in mine])),
            Cell(
                _what_it_did(mine)
                if is_restart
                else "an engine leaves a series what it is: what moved with it is a call"
            ),
        )
        for (week, text, is_restart), mine in sorted(told.items(), reverse=True)
    )
    columns = (Column("Mark"), Column("Week"), Column("What changed"), Column("Series"), Column("What that means"))
    parts: list[Part] = [Table("What changed", columns, (Group("", rows),), wide=True)] if rows else []
    parts.extend(
        Words(f"{note.text}{f' ({listed(list(note.series))})' if note.series else ''}", f"{number} · {note.day}")
        for number, note in enumerate(review.plan.notes, 1)
    )
    parts.extend(_targets(review))
    return Section("changes", tuple(parts or [Words("No version and no flag changed in these weeks.")]))


def _which(review: Review, mine: Sequence[Series]) -> str:
    return "all" if len(mine) == len(review.series) > 1 else _named(mine, lambda _: "")


def _what_it_did(mine: Iterable[tuple[Series, Change]]) -> str:
    """A change of configuration is no speed-up: what came before is not held against what comes after."""
    ratios = [f"{one.label}: {change.ratio:.2f} times" for one, change in mine if change.ratio is not None]
    moved = f" ({'; '.join(ratios[:_NAMED])})" if ratios else ""
    return f"another configuration: no call leads across it, up or down{moved}"


def _targets(review: Review) -> Iterator[Words]:
    unit = METRICS[review.metric].unit
    for target in review.plan.targets:
        if target.metric != review.metric:
            continue
        meant = [one for one in review.series if all(word in one.key for word in target.series)]
        reached = [f"{one.label}: {_reached(one, target.value)}" for one in meant]
        why = f" ({target.reason})" if target.reason else ""
        said = "; ".join(reached[:_NAMED]) or "no series has these words"
        yield Words(f"{show(target.value, unit)}{why}: {said}.", "Target")


def _reached(one: Series, value: float) -> str:
    if one.now is None or one.now.value is None:
        return "not measured this week"
    return f"{one.now.value / value:.0%} of it this week"


# --- noise ----------------------------------------------------------------------------------------------------------

_NOISE = (
    Column("Series"),
    Column("Weeks", number=True),
    Column("Runs a week", number=True),
    Column("CV of weeks", number=True),
    Column("CV of runs in a week", number=True),
    Column("Delta", number=True),
    Column("Shows in 4 of 5 tries", "change of", number=True),
)


def noise(review: Review) -> Section:
    """How still each series is, the noisiest first: where repeats are worth most."""
    known = [one for one in review.series if one.call and one.call.spread is not None and one.call.walk.is_enough]
    if not known:
        return Section("noise", (Words(f"No series has {LEAST_WEEKS} measured weeks yet, so nobody knows its noise."),))
    rows = tuple(
        _noise_row(one) for one in sorted(known, key=lambda one: -(one.call.spread or 0.0) if one.call else 0.0)
    )
    said = (
        "The last column is the change, in both of two weeks, that is called in four of five tries with so many runs a "
        "week; a smaller one is found sometimes, or not at all. Twice the repeats take it down by up to a third."
    )
    return Section("noise", (Table("Noise", _NOISE, (Group("", rows),), wide=True), Words(said)))


def _noise_row(one: Series) -> Row:
    call = one.call
    if call is None or call.spread is None or call.smallest is None:
        return ()
    counts = sorted(len(week.values) for week in call.weeks)
    within = percent(call.within) if call.within is not None else "one run a week"
    return (
        Cell(one.label),
        Cell(str(len(call.baseline)), "number"),
        Cell(str(counts[(len(counts) - 1) // 2]), "number"),
        Cell(percent(call.spread), "number"),
        Cell(within, "number"),
        Cell(percent(call.delta), "number"),
        Cell(percent(call.smallest), "number"),
    )


# --- waivers, and what to do ----------------------------------------------------------------------------------------


def waivers(review: Review, *, today: date | None = None) -> Section:
    """Findings that somebody accepts, with owner and last day, the next to end first."""
    if not review.waivers:
        return Section("waivers", (Words("No finding is waived."),))
    day, labels = today or datetime.now(UTC).date(), {one.key: one.label for one in review.series}
    rows = tuple(
        (
            Cell(waiver.rule, "head"),
            Cell(labels.get(waiver.series_key or "", waiver.series_key or f"run {waiver.run_id}")),
            Cell(waiver.reason),
            Cell(waiver.owner, "short"),
            Cell(f"{waiver.expiry}", "short", (plural((waiver.expiry - day).days, "day") + " left",)),
        )
        for waiver in sorted(review.waivers, key=lambda waiver: waiver.expiry)
    )
    columns = (Column("Rule"), Column("Accepted for"), Column("Reason"), Column("Owner"), Column("Until"))
    return Section("waivers", (Table("Waivers", columns, (Group("", rows),)),))


def top_three(review: Review, *, today: date | None = None) -> Section:
    """What is most worth a look, each with its next step."""
    todo = tuple(tasks(review, today=today))[:_TOP]
    return Section("top_three", (Tasks(todo) if todo else Words("Nothing needs a look this week."),))


def tasks(review: Review, *, today: date | None = None) -> Iterator[Task]:
    """In order: what is slower, what was lost, what lies outside its limits, what is noisy, waivers that end."""
    yield from map(_slower_task, review.of("slower"))
    yield from _lost_tasks(review)
    for one in review.of("can't tell"):
        if one.call and (one.call.outside or one.call.walk.is_alarm):
            yield Task(f"{one.label}: {one.call.why}. Next: {one.call.would_tell}.", "One week proves nothing, two do.")
    for one in review.of("faster"):
        yield Task(
            f"{one.label}: faster, {_moved(one)}. Next: find what did it before it is counted on.",
            "A gain that nobody meant may be work that is no longer done.",
        )
    yield from _waiver_tasks(review, today)
    noisy = [one for one in review.of("can't tell") if one.call and one.call.interval and not one.call.outside]
    for one in sorted(noisy, key=lambda one: -(one.call.spread or 0.0) if one.call else 0.0)[:1]:
        if one.call:
            yield Task(f"{one.label}: {one.call.why}. Next: {one.call.would_tell}.", "Repeats are worth most there.")
    if review.absent:
        yield Task(
            f"{len(review.absent)} series of earlier weeks had no run in this one. Next: run them again, or say in a "
            "note that they ended.",
            "A series that stops without a word looks like one that is fine.",
        )


def _slower_task(one: Series) -> Task:
    call = one.call
    changed = [change.text for change in one.changes if call and change.week == call.since]
    sides = f"with and without {listed(changed)}" if changed else "as it was and as it is"
    none = "" if changed else " No version and no flag that is known changed that week."
    return Task(
        f"{one.label}: slower, {_moved(one)}. Next: run it {sides}, in turn, five runs a side with one seed, and let "
        "`pdkit compare` say whether that is it.",
        f"{plural(len(call.recent) if call else 0, 'week')} in a row outside the limits.{none}",
    )


def _lost_tasks(review: Review) -> Iterator[Task]:
    """Series without a value by the rules that took them, the most series first; then those that nobody has seen."""
    by_rules: dict[tuple[str, ...], list[Series]] = {}
    for one in review.unmeasured:
        by_rules.setdefault(one.covered.refused_by, []).append(one)
    for rules, found in sorted(by_rules.items(), key=lambda item: -len(item[1])):
        next_ = next((CHECKS[rule].sections.get("Next", "") for rule in rules if rule in CHECKS), "")
        step = f" Next: {next_}" if next_ else ""
        yield Task(f"{_named(found, _why_lost)}.{step}", "Without a value this week, nobody knows whether it moved.")


def _waiver_tasks(review: Review, today: date | None) -> Iterator[Task]:
    day = today or datetime.now(UTC).date()
    soon = [waiver for waiver in review.waivers if (waiver.expiry - day).days <= _SOON_DAYS]
    if soon:
        said = listed([f"{waiver.rule} ({waiver.owner}, {waiver.expiry})" for waiver in soon])
        yield Task(f"Waivers that end within two weeks: {said}. Next: look at the finding again, then renew or remove.")


# --- where it comes from --------------------------------------------------------------------------------------------


def versions(review: Review, **parameters: object) -> Section:
    """What the page was made with and how it was asked for."""
    hidden = ("store", "targets", "waivers") if parameters.get("redact") else ()
    asked = tuple(
        (Cell(name, "head"), Cell("[redacted]" if value and name in hidden else _parameter(value), "code"))
        for name, value in parameters.items()
    )
    made = (("pdkit", __version__), ("polars", pl.__version__), ("Rules", ", ".join(review.rules)))
    table = Table(
        "Parameters and versions",
        (Column("Name"), Column("Value")),
        (Group("Parameters", asked), Group("Versions", tuple((Cell(n, "head"), Cell(v, "code")) for n, v in made))),
    )
    return Section("versions", (table,))


def _parameter(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)
