"""Sentences that several sections share."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from pdkit.causes import OUTPUT_RULES
from pdkit.findings import Place
from pdkit.postmortem.case import PostMortem
from pdkit.results import NO_LEVEL
from pdkit.units import listed, plural

_LEVELS_SHOWN = 4  # of a sentence; a longer sweep is counted
_PLACES_SHOWN = 6
LACKING = "refuse", "suspect"
ERRORS = ("PD601", "PD602", "PD607", "PD603", "PD402", "PD403", "PD406", "PD407", "PD401", "PD107")


def at_levels(levels: Sequence[str]) -> str:
    """`at 2 and 4 users`, `at 8 requests/s`; of many, how many they are."""
    named = _folded([level for level in levels if level != NO_LEVEL])
    if len(named) > _LEVELS_SHOWN:
        return f"at {plural(len(named), 'level')}"
    unknown = ["a level that is not stated"] if NO_LEVEL in levels else []
    return f"at {' and at '.join([*([listed(named)] if named else []), *unknown])}" if levels else "at no level"


def _folded(levels: Sequence[str]) -> list[str]:
    """A unit that all share is said once."""
    unique = list(dict.fromkeys(levels))
    words = [level.rpartition(" ") for level in unique]
    units = {unit.removesuffix("s") for _, _, unit in words}
    if len(unique) > 1 and len(units) == 1 and all(number.replace(".", "").isdigit() for number, _, _ in words):
        return [*(number for number, _, _ in words[:-1]), unique[-1]]
    return unique


def came_back(case: PostMortem) -> str:
    """What came back of the tokens claimed, where a rule on output refused that; "" where none did."""
    rows = case.facts.filter(pl.col("refused_by").list.eval(pl.element().is_in(OUTPUT_RULES)).list.any())
    known = rows.drop_nulls(["received_tok", "output_tok_sum"])
    if known.is_empty():
        return ""
    parts = [_of_claimed(row) for row in known.head(_LEVELS_SHOWN).iter_rows(named=True)]
    more = f"; and {plural(known.height - _LEVELS_SHOWN, 'more level')}" if known.height > _LEVELS_SHOWN else ""
    return f"{'; '.join(parts)}{more}"


def _of_claimed(row: dict[str, Any]) -> str:
    received, claimed = row["received_tok"], row["output_tok_sum"]
    some = f"{received:,.0f}" if received else "none"
    return f"{some} of the {claimed:,.0f} tokens claimed at {row['level']} came back as text"


def of_rules(
    case: PostMortem, *rules: str, severities: Sequence[str] = LACKING
) -> Iterator[tuple[str, str, list[str]]]:
    """Each rule that failed, with its sentence and lines at the first level, and how many more levels there are."""
    found = case.findings.filter(pl.col("rule").is_in(rules), pl.col("severity").is_in(severities))
    for (rule,), rows in found.group_by("rule", maintain_order=True):
        first = rows.row(0, named=True)
        more = f", and at {plural(rows.height - 1, 'more level')}" if rows.height > 1 else ""
        level = f"{at_levels([first['level']])}: " if case.runs.height > 1 else ""
        yield str(rule), f"{level}{first['sentence']}{more} ({rule})", first["lines"]


def outcomes(case: PostMortem, *rules: str) -> set[str]:
    """What became of these rules on the suspect's runs."""
    return set(case.results.filter(pl.col("rule").is_in(rules))["outcome"].cast(pl.String))


def placed(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines by file, `bench.log:13, 21`; as many as can be looked at."""
    files: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        place = Place.of(line)
        files.setdefault(place.file, []).append(place.number)
    return tuple(f"{file}:{', '.join(numbers[:3])}" for file, numbers in list(files.items())[:_PLACES_SHOWN])
