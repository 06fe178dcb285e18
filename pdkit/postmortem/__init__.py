"""A suspect win: what was claimed, whether it was measured, six questions, and what would have to change."""

from pdkit.postmortem.case import Claim, PostMortem, postmortem
from pdkit.postmortem.claim import claim
from pdkit.postmortem.next_steps import next_steps
from pdkit.postmortem.questions import QUESTIONS, questions
from pdkit.postmortem.verdict import verdict

__all__ = ["QUESTIONS", "Claim", "PostMortem", "claim", "next_steps", "postmortem", "questions", "verdict"]
