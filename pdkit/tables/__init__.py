"""The sections of a page, made from a judgement: as HTML in which every text is escaped, and as plain text.

Numbers are taken from `judgement.for_results`; only sections of evidence may show a claimed figure, and they say so.
"""

from pdkit.tables.capacity import capacity_table
from pdkit.tables.chain import chain_table
from pdkit.tables.frames import results_frame, to_pandas
from pdkit.tables.layout import Section
from pdkit.tables.origins import glossary, sources, versions
from pdkit.tables.rules import doubts, not_checked, rule_table
from pdkit.tables.training import training, training_index
from pdkit.tables.verdicts import banner, heading, measured, no_measured_result
from pdkit.tables.watch import watch
from pdkit.tables.windows import windows

__all__ = [
    "Section",
    "banner",
    "capacity_table",
    "chain_table",
    "doubts",
    "glossary",
    "heading",
    "measured",
    "no_measured_result",
    "not_checked",
    "results_frame",
    "rule_table",
    "sources",
    "to_pandas",
    "training",
    "training_index",
    "versions",
    "watch",
    "windows",
]
