"""What a user decides, from TOML files: thresholds of their own, and findings that they accept for a while."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pdkit.errors import PdkitError, one_of
from pdkit.parts import register_checks
from pdkit.results import Severity
from pdkit.rules import CHECKS, Bound, Check
from pdkit.toml import read_toml, tables_of

_SIDES = {"below": "low", "above": "high"}  # `below = 0.9` fails what is less
_INSTEAD = "instead_of"
_RUN_ID = re.compile("[0-9a-f]{12}")


@dataclass(frozen=True)
class Waiver:
    """One rule whose finding someone accepts, for one run or for every run of a series, until a day."""

    rule: str
    reason: str
    owner: str
    expiry: date
    run_id: str | None = None
    series_key: str | None = None


# --- thresholds -----------------------------------------------------------------------------------------------------


def read_thresholds(path: str | Path) -> dict[str, dict[Severity, Bound]]:
    """Bounds by rule and severity, as `judge` takes them.

    The file has a table a rule and a line a severity: `[PD110]` / `refuse = { below = 0.9 }`. Where views of a rule
    have several bounds on one side, `instead_of` names the one that is meant.

    Raises:
        PdkitError: no such file, not TOML, or a rule, severity or bound that is not known.
    """
    file = Path(path)
    said = read_toml(file, what="thresholds file", form="a rule is a table, `[PD110]`")
    register_checks()
    return {rule: _bounds(file, rule, severities) for rule, severities in said.items()}


def _bounds(file: Path, rule: str, severities: Any) -> dict[Severity, Bound]:
    if rule not in CHECKS:
        raise one_of(f"{file}: rule", rule, list(CHECKS))
    if not isinstance(severities, dict):
        raise PdkitError(
            f"{file}: {rule} is {severities!r}; it takes a table, `[{rule}]` with `refuse = {{ below = 0.9 }}`"
        )
    own = _own_bounds(CHECKS[rule])
    made: dict[Severity, Bound] = {}
    for name, said in severities.items():
        severity = next((known for known in own if known == name), None)
        if severity is None:
            raise one_of(f"{file}: {rule}", name, list(own))
        made[severity] = _checked(f"{file}: {rule}.{name}", _bound(f"{file}: {rule}.{name}", said), own[severity])
    return made


def _own_bounds(check: Check) -> dict[Severity, list[Bound]]:
    """The different bounds that its views have, by severity."""
    own: dict[Severity, list[Bound]] = {}
    for view in check.views:
        for severity, bound in view.bounds.items():
            if bound not in own.setdefault(severity, []):
                own[severity].append(bound)
    return own


def _checked(where: str, given: Bound, own: list[Bound]) -> Bound:
    """A bound that changes what it seems to change, and that something can hold."""
    for name, side in _SIDES.items():
        if getattr(given, side) is None:
            continue
        defaults = sorted({value for bound in own if (value := getattr(bound, side)) is not None})
        listed = ", ".join(f"{value:g}" for value in defaults)
        if not defaults:
            other = next(other for other in _SIDES if other != name)
            raise PdkitError(f"{where}: {name!r} is no bound of this rule; it takes {other}")
        if given.instead_of is None and len(defaults) > 1:
            raise PdkitError(f"{where}: {name} is {listed} there; add `{_INSTEAD} = {defaults[0]:g}` to say which")
        if given.instead_of is not None and given.instead_of not in defaults:
            raise PdkitError(f"{where}.{_INSTEAD}: {given.instead_of:g} is no default of {name}; it is {listed}")
    for made in map(given.over, own):
        if made.low is not None and made.high is not None and made.low > made.high:
            raise PdkitError(f"{where}: below {made.low:g} and above {made.high:g} leave nothing that holds; swap them")
    return given


def _bound(where: str, said: Any) -> Bound:
    if not isinstance(said, dict) or not said.keys() - {_INSTEAD}:
        raise PdkitError(f"{where}: {said!r} is no bound; write {{ below = 0.9 }}, {{ above = 0.1 }}, or both")
    sides: dict[str, float] = {}
    for name, value in said.items():
        if name not in (*_SIDES, _INSTEAD):
            raise one_of(where, name, [*_SIDES, _INSTEAD])
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PdkitError(f"{where}.{name}: {value!r} is no number")
        sides[_SIDES.get(name, _INSTEAD)] = float(value)
    return Bound(**sides)


# --- waivers --------------------------------------------------------------------------------------------------------


def read_waivers(path: str | Path, *, today: date | None = None) -> tuple[Waiver, ...]:
    """The findings that someone accepts: a table `[[waiver]]` each, all of it said, none of it past its day.

    Raises:
        PdkitError: no such file, not TOML, an unknown rule or key, or a waiver that is not whole or has expired.
    """
    file = Path(path)
    said = read_toml(file, what="waivers file", form="a waiver is a table, `[[waiver]]`")
    register_checks()
    if unknown := next((name for name in said if name != "waiver"), None):
        raise one_of(str(file), unknown, ["waiver"])
    tables = tables_of(file, said, "waiver")
    day = today or datetime.now(UTC).date()
    waivers = tuple(_waiver(f"{file}: waiver {number}", table, day) for number, table in enumerate(tables, 1))
    for first, second in _twice(waivers):
        raise PdkitError(f"{file}: waiver {second} is about what waiver {first} is about; keep one of them")
    return waivers


def _waiver(where: str, said: dict[str, Any], today: date) -> Waiver:
    known = [field.name for field in fields(Waiver)]
    if unknown := next((name for name in said if name not in known), None):
        raise one_of(where, unknown, known)
    if missing := next((name for name in ("rule", "reason", "owner", "expiry") if name not in said), None):
        raise PdkitError(f"{where}: no {missing}; a waiver has rule, run_id or series_key, reason, owner and expiry")
    words = {name: _words(f"{where}: {name}", said[name]) for name in known if name in said and name != "expiry"}
    if words["rule"] not in CHECKS:
        raise one_of(f"{where}: rule", words["rule"], list(CHECKS))
    if ("run_id" in said) == ("series_key" in said):
        which = "both run_id and series_key" if "run_id" in said else "neither run_id nor series_key"
        raise PdkitError(f"{where}: it names {which}; it takes one of them")
    if "run_id" in said and not _RUN_ID.fullmatch(words["run_id"]):
        raise PdkitError(f"{where}: run_id {words['run_id']!r} is none; `pdkit check --format json` shows each run's")
    return Waiver(expiry=_day(where, said["expiry"], today), **words)


def _words(where: str, said: Any) -> str:
    if not isinstance(said, str) or not said.strip():
        raise PdkitError(f"{where} is {said!r}; it takes words in quotes")
    return " ".join(said.split())


def _day(where: str, said: Any, today: date) -> date:
    """The last day on which the waiver holds."""
    if not isinstance(said, date) or isinstance(said, datetime):
        raise PdkitError(f"{where}: expiry is {said!r}; it takes a date without quotes, 2027-01-31")
    if said < today:
        raise PdkitError(f"{where}: expired on {said}; look at its finding again, then renew it or remove it")
    return said


def _twice(waivers: tuple[Waiver, ...]) -> Iterator[tuple[int, int]]:
    seen: dict[tuple[str, str | None], int] = {}
    for number, waiver in enumerate(waivers, 1):
        first = seen.setdefault((waiver.rule, waiver.run_id or waiver.series_key), number)
        if first != number:
            yield first, number
