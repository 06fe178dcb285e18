"""The weekly performance review: what got faster, what slower, what was not measured, and what nobody can tell."""

from pdkit.weekly.plan import Note, Plan, Target, read_plan
from pdkit.weekly.review import Review, review
from pdkit.weekly.sections import (
    calls,
    cant_tell,
    changes,
    coverage,
    in_a_minute,
    no_measured_result,
    noise,
    top_three,
    versions,
    waivers,
)
from pdkit.weekly.told import json_text, markdown

__all__ = [
    "Note", "Plan", "Review", "Target", "calls", "cant_tell", "changes", "coverage", "in_a_minute", "json_text",
    "markdown", "no_measured_result", "noise", "read_plan", "review", "top_three", "versions", "waivers",
]  # fmt: skip
