"""Why a run has no text: the likely cause, and never one without its line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from pdkit.evidence import Evidence
from pdkit.facts import base_names, places
from pdkit.rules import c

OUTPUT_RULES = ("PD101", "PD103", "PD110", "PD201")  # a refusal by one of these says that text is missing
UNKNOWN = "not shown by these logs; the prefill and decode logs would show failed transfers and aborts"
NOT_IN_SERVER_LOGS = "not shown by these logs, those of the servers included"
_NEAR_THE_LIMIT = 0.95  # a chat template adds tokens that the client's count of the prompt leaves out


_SCHEMA = pl.Schema({"run_id": pl.String(), "cause": pl.String(), "sentence": pl.String(), "lines": pl.List(pl.String)})


@dataclass(frozen=True, eq=False)  # == of two expressions is a third expression
class Cause:
    """One reason for missing text: when it is likely, and the sentence that says on what evidence."""

    name: str
    when: pl.Expr
    says: str
    facts: tuple[str, ...]


# The order in which they are believed: what was seen to fail comes before what could explain it.
CAUSES = (
    Cause(
        "transfer session died",
        (c.sessions_failed > 0) & (c.failed_transfers > 0),
        "a transfer session was dead, and the KV transfers of {failed_transfers:,.0f} requests failed: each came back "
        "as a success without text",
        ("sessions_failed", "failed_transfers"),
    ),
    Cause(
        "transfers failed on the servers",
        c.failed_transfers > 0,
        "the KV transfers of {failed_transfers:,.0f} requests failed on the servers",
        ("failed_transfers",),
    ),
    Cause(
        "a server crashed",
        (c.crashes > 0) | (c.restarts > 0),
        "a server crashed or started again in the run",
        ("crashes", "restarts"),
    ),
    Cause(
        "transfer failed",
        c.transfer_errors > 0,
        "{transfer_errors:,.0f} requests carry an error of the KV transfer",
        ("transfer_errors",),
    ),
    Cause(
        "aborted",
        c.requests_aborted > 0,
        "{requests_aborted:,.0f} answers that count as successful ended in an abort",
        ("requests_aborted",),
    ),
    Cause(
        "the client does not read this text",
        c.backend.str.contains("chat") & (c.reasoning_parser.is_not_null() | c.tool_call_parser.is_not_null()),
        "the server takes reasoning or tool calls out of the text (parser {reasoning_parser}, {tool_call_parser}), "
        "and this client's chat backend counts only what is left",
        ("reasoning_parser", "tool_call_parser", "backend"),
    ),
    Cause(
        "the client was told not to count",
        ~c.retokenizes,
        "the client was told not to count tokens again",
        ("retokenizes",),
    ),
    Cause(
        "embeddings",
        c.embedding,
        "the backend {backend} makes embeddings, which have no text",
        ("backend",),
    ),
    Cause(
        "several turns",
        (c.input_tok_sum == 0) & (c.completed > 0),
        "the client counts no input tokens, as it does where a conversation has several turns",
        ("input_tok_sum", "completed"),
    ),
    Cause(
        "prompts too long",
        c.input_tok_per_request >= _NEAR_THE_LIMIT * c.input_limit_tok,
        "prompts of {input_tok_per_request:,.0f} tokens meet a server that takes {input_limit_tok:,.0f}: it answers "
        "with an error inside a successful stream",
        ("input_tok_per_request", "input_limit_tok"),
    ),
)


def causes(evidence: Evidence, facts: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """The likely cause of each run that an output rule refused: (run_id, cause, sentence, lines).

    `cause` is null and `lines` are empty where these logs show none; the sentence then names what would.
    """
    refused = verdicts.filter(pl.col("refused_by").list.eval(pl.element().is_in(OUTPUT_RULES)).list.any())
    mine = facts.filter(pl.col("run_id").is_in(refused["run_id"].implode()))
    if mine.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    likely = mine.with_columns(pl.coalesce(_likely()).alias("cause"))
    stated = places(evidence, facts)  # of all runs: which work on a server is whose follows from them together
    return pl.DataFrame([_row(row, stated) for row in likely.iter_rows(named=True)], schema=_SCHEMA)


def _likely() -> Iterator[pl.Expr]:
    for cause in CAUSES:
        yield pl.when(cause.when.fill_null(False)).then(pl.lit(cause.name))


def _row(row: dict[str, Any], stated: pl.DataFrame) -> dict[str, Any]:
    cause = next((cause for cause in CAUSES if cause.name == row["cause"]), None)
    lines = _lines(cause, row["run_id"], stated) if cause else []
    if not cause or not lines:
        unknown = UNKNOWN if row["server_instances"] is None else NOT_IN_SERVER_LOGS
        return {"run_id": row["run_id"], "cause": None, "sentence": unknown, "lines": []}
    shown = {name: "none" if row[name] is None else row[name] for name in row}
    return {"run_id": row["run_id"], "cause": cause.name, "sentence": cause.says.format_map(shown), "lines": lines}


def _lines(cause: Cause, run_id: str, stated: pl.DataFrame) -> list[str]:
    named = sorted({base for fact in cause.facts for base in base_names(fact)})
    mine = stated.filter(pl.col("run_id") == run_id, pl.col("fact").is_in(named))
    found = mine.select(pl.format("{}:{}", "source_file", "source_line")).to_series().unique().sort()
    return found.to_list()
