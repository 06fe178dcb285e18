"""The page of a week in other forms: Markdown for a message, JSON for machines."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pdkit import __version__
from pdkit.weekly.review import Review, Series
from pdkit.weekly.sections import headline, lines, tasks

_TOP = 3
_SYNTHETIC = "SYNTHETIC DATA: the logs of these weeks were made by a program, not recorded."


def markdown(review: Review) -> str:
    """The week in a message: headline, a line each, the top three."""
    return "\n".join(_markdown(review)) + "\n"


def _markdown(review: Review) -> Iterator[str]:
    yield f"**{_plain(headline(review))}**"
    yield ""
    if review.synthetic:
        yield from (_SYNTHETIC, "")
    yield from (f"- **{label}**: {_plain(text)}" for label, text in lines(review))
    todo = list(tasks(review))[:_TOP]
    if todo:
        yield ""
    yield from (f"{number}. {_plain(task.text)}" for number, task in enumerate(todo, 1))


def _plain(text: str) -> str:
    """Without power in Markdown: what a log brought stays text."""
    return re.sub(r"([\\`*_\[\]<>|#@~])", r"\\\1", text)


def json_text(review: Review) -> str:
    """The same for machines."""
    said = {
        "pdkit": __version__,
        "kind": "weekly_review",
        "week": review.week,
        "weeks": list(review.weeks),
        "baseline_weeks": review.baseline_weeks,
        "metric": review.metric,
        "synthetic": review.synthetic,
        "rules": list(review.rules),
        "conclusions": [headline(review), *(f"{label}: {text}" for label, text in lines(review))],
        "markdown": markdown(review),
        "series": [_series(one) for one in review.series],
        "look_at": [{"task": task.text, "why": task.why} for task in list(tasks(review))[:_TOP]],
        "notes": [{"date": str(n.day), "text": n.text, "series": list(n.series)} for n in review.plan.notes],
    }
    return json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _series(one: Series) -> dict[str, Any]:
    return {
        "series_key": one.key,
        "label": one.label,
        "word": one.word,
        "target": one.target,
        "coverage": vars(one.covered) | {"refused_by": list(one.covered.refused_by)},
        "call": _call(one),
        "points": [vars(point) | {"refused_by": list(point.refused_by)} for point in one.points],
        "changes": [vars(change) | {"ratio": change.ratio} for change in one.changes],
    }


def _call(one: Series) -> dict[str, Any] | None:
    call = one.call
    if call is None:
        return None
    return {
        "word": call.word,
        "interval": vars(call.interval) if call.interval else None,
        "limits": vars(call.walk.limits) if call.walk.limits else None,
        "delta": call.delta,
        "holm_p": call.holm_p,
        "since": call.since,
        "dated": call.dated,
        "spread": call.spread,
        "spread_within_week": call.within,
        "smallest": call.smallest,
        "why": call.why,
        "would_tell": call.would_tell,
        "baseline": [week.week for week in call.baseline],
        "recent": [week.week for week in call.recent],
    }
