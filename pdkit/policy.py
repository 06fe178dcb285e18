"""A user's own thresholds, from a TOML file: only known rules, only severities that a rule has."""

import math
import tomllib
from pathlib import Path
from typing import Any

from pdkit.errors import PdkitError, one_of
from pdkit.parts import register_checks
from pdkit.results import Severity
from pdkit.rules import CHECKS, Bound, Check

_SIDES = {"below": "low", "above": "high"}  # `below = 0.9` fails what is less


def read_thresholds(path: str | Path) -> dict[str, dict[Severity, Bound]]:
    """Bounds by rule and severity, as `judge` takes them.

    The file has a table a rule and a line a severity: `[PD110]` / `refuse = { below = 0.9 }`.

    Raises:
        PdkitError: no such file, not TOML, or a rule, severity or bound that is not known.
    """
    file = Path(path)
    if not file.is_file():
        raise PdkitError(f"{file}: no such thresholds file")
    try:
        said = tomllib.loads(file.read_text("utf-8-sig"))  # Windows' editors put a mark before it
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise PdkitError(f"{file}: not valid TOML ({problem}); a rule is a table, `[PD110]`") from problem
    register_checks()
    return {rule: _bounds(file, rule, severities) for rule, severities in said.items()}


def _bounds(file: Path, rule: str, severities: Any) -> dict[Severity, Bound]:
    if rule not in CHECKS:
        raise one_of(f"{file}: rule", rule, list(CHECKS))
    if not isinstance(severities, dict):
        raise PdkitError(
            f"{file}: {rule} is {severities!r}; it takes a table, `[{rule}]` with `refuse = {{ below = 0.9 }}`"
        )
    known = _severities(CHECKS[rule])
    if unknown := next((name for name in severities if name not in known), None):
        raise one_of(f"{file}: {rule}", unknown, list(known))
    return {known[name]: _bound(f"{file}: {rule}.{name}", bound) for name, bound in severities.items()}


def _severities(check: Check) -> dict[str, Severity]:
    return {severity: severity for view in check.views for severity in view.bounds}


def _bound(where: str, said: Any) -> Bound:
    if not isinstance(said, dict) or not said:
        raise PdkitError(f"{where}: {said!r} is no bound; write {{ below = 0.9 }}, {{ above = 0.1 }}, or both")
    sides = {}
    for name, value in said.items():
        if name not in _SIDES:
            raise one_of(where, name, list(_SIDES))
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise PdkitError(f"{where}.{name}: {value!r} is no number")
        sides[_SIDES[name]] = float(value)
    made = Bound(**sides)
    if made.low is not None and made.high is not None and made.low > made.high:
        raise PdkitError(f"{where}: below {made.low:g} and above {made.high:g} leave nothing that holds; swap them")
    return made
