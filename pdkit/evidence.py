"""What the logs say: polars tables with declared columns; every row cites its file and line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import polars as pl

Cell = str | int | float | bool | None
Row = Mapping[str, object]


class Column(NamedTuple):
    """One declared column: its type, its unit ("" where it has none) and its meaning."""

    dtype: pl.DataType
    unit: str
    meaning: str


_TEXT, _COUNT, _NUMBER, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_CLOCK = pl.Datetime("us")

PLACE = {
    "source_file": Column(_TEXT, "", "the file, as it was given"),
    "source_line": Column(_COUNT, "", "its line, from 1"),
    "source_item": Column(_COUNT, "", "entry of an array on that line, from 0"),
}
TABLES: dict[str, dict[str, Column]] = {
    # one sighting of a load point in one file; `run_id` is given by load.same_runs
    "runs": {
        "run_id": Column(_TEXT, "", "the run; sightings of one run share it"),
        "seen_id": Column(_TEXT, "", "this sighting"),
        "experiment": Column(_TEXT, "", "the folder, or what sweep.toml names"),
        "reader": Column(_TEXT, "", "who read it"),
        "tool": Column(_TEXT, "", "the load client"),
        "client_definition": Column(_TEXT, "", "which implementation, hence which metric definitions"),
        "tool_version": Column(_TEXT, "", "its version, where the log says it"),
        "server_version": Column(_TEXT, "", "version of the serving engine, where the log says it"),
        "model": Column(_TEXT, "", "the model served"),
        "precision": Column(_TEXT, "", "quantisation of the weights, where the log says it"),
        "reasoning_parser": Column(_TEXT, "", "parser that takes reasoning out of the text, where the log says it"),
        "tool_call_parser": Column(_TEXT, "", "parser that takes tool calls out of the text, where the log says it"),
        "topology": Column(_TEXT, "", "prefill and decode servers as `1p1d`, where the log says it"),
        "dataset": Column(_TEXT, "", "the data set that prompts come from"),
        "backend": Column(_TEXT, "", "the client's way to the server"),
        "ignore_eos": Column(_YES, "", "whether the end token was ignored"),
        "streaming": Column(_YES, "", "whether answers were streamed"),
        "retokenizes": Column(_YES, "", "false where the client was told not to count tokens again"),
        "seed": Column(_COUNT, "", "seed of the workload"),
        "complete": Column(_YES, "", "whether the result is whole; null where a filter took its frame"),
        "ending": Column(_TEXT, "", "the line that tells how a run without a whole result ended"),
        "crashed_after": Column(_YES, "", "whether the client crashed after its result"),
        "end_marker": Column(_TEXT, "", "the line that a sweep script prints last, where it was seen"),
    },
    # one number that a tool printed or was asked for
    "claims": {
        "run_id": Column(_TEXT, "", "the run"),
        "seen_id": Column(_TEXT, "", "the sighting that states it"),
        "fact": Column(_TEXT, "", "name of the metric (docs/metrics in METRICS)"),
        "value": Column(_NUMBER, "the metric's", "null where what was printed is no number"),
        "resolution": Column(
            _NUMBER, "the metric's", "half a unit of the last printed digit, or what the clock resolves"
        ),
        "printed": Column(_TEXT, "", "as printed, where that is no finite number (`nan`, `inf`)"),
    },
    "requests": {
        "run_id": Column(_TEXT, "", "the run"),
        "seen_id": Column(_TEXT, "", "the sighting that lists it"),
        "request_index": Column(_COUNT, "", "order of submission, from 0"),
        "ok": Column(_YES, "", "whether the client counts it as successful"),
        "error": Column(_TEXT, "", "what the client says went wrong (200 characters)"),
        "finish_reason": Column(
            _TEXT, "", "how the answer ended, where the client keeps it (`stop`, `length`, `abort`)"
        ),
        "prompt_hash": Column(pl.UInt64(), "", "hash of the prompt, where the client keeps it"),
        "input_tok": Column(_COUNT, "tok", "prompt tokens"),
        "output_tok": Column(_COUNT, "tok", "output tokens claimed; null for a failed request"),
        "retokenized_tok": Column(
            _COUNT, "tok", "tokens counted again in its text, where the client keeps that a request"
        ),
        "text_chars": Column(_COUNT, "", "length of the text that came back; null for a failed request"),
        "text_hash": Column(pl.UInt64(), "", "hash of that text: the text itself is not kept"),
        "sent_s": Column(_NUMBER, "s", "when it was sent, from the start of the run, where the client keeps it"),
        "ttft_ms": Column(_NUMBER, "ms", "time to the first token; null for a failed request"),
        "tpot_ms": Column(_NUMBER, "ms", "mean time per output token after the first"),
        "e2e_ms": Column(_NUMBER, "ms", "time to the last token: TTFT and all gaps"),
        "itl_count": Column(_COUNT, "", "gaps between tokens or chunks"),
        "itl_mean_ms": Column(_NUMBER, "ms", "their mean"),
        "itl_p50_ms": Column(_NUMBER, "ms", "their median"),
        "itl_p99_ms": Column(_NUMBER, "ms", "their 99th percentile"),
        "itl_max_ms": Column(_NUMBER, "ms", "the longest"),
        "itl_zero_count": Column(_COUNT, "", "gaps of exactly zero"),
        "nonfinite_count": Column(_COUNT, "", "times of this request that are NaN, infinite or negative"),
    },
    "gaps": {
        "run_id": Column(_TEXT, "", "the run"),
        "seen_id": Column(_TEXT, "", "the sighting"),
        "low_ms": Column(_NUMBER, "ms", "lower edge of the bin"),
        "high_ms": Column(_NUMBER, "ms", "upper edge of the bin"),
        "count": Column(_COUNT, "", "gaps in it"),
    },
    # one load point that someone meant to run
    "plan": {
        "experiment": Column(_TEXT, "", "the experiment"),
        "concurrency": Column(_NUMBER, "users", "cap; infinity says none"),
        "request_rate_per_s": Column(_NUMBER, "req/s", "rate; infinity says all at once"),
        "prompts_asked": Column(_NUMBER, "requests", "requests to send"),
        "started_at": Column(pl.Datetime("us", "UTC"), "", "when the client started"),
        "ended_at": Column(pl.Datetime("us", "UTC"), "", "when it ended"),
    },
    # what a person or the sweep runner knows of an experiment
    "experiments": {
        "experiment": Column(_TEXT, "", "the experiment"),
        "label": Column(_TEXT, "", "what a page calls it"),
        "synthetic": Column(_YES, "", "whether its logs were made, not recorded"),
        "model": Column(_TEXT, "", "the model served"),
        "topology": Column(_TEXT, "", "`colocated`, or prefill and decode servers as `1p1d`"),
        "gpu": Column(_TEXT, "", "the accelerator"),
        "gpu_count": Column(_NUMBER, "GPUs", "how many in all"),
        "repeats": Column(_COUNT, "", "how often each level was meant to run"),
        "end_marker": Column(_TEXT, "", "the line that the sweep script prints last"),
    },
    "files": {
        "experiment": Column(_TEXT, "", "the experiment"),
        "path": Column(_TEXT, "", "a file that sweep.toml names, beside it"),
        "role": Column(_TEXT, "", "client, prefill, decode, router or colocated"),
    },
    # one gauge of one server in one second
    "samples": {
        "experiment": Column(_TEXT, "", "where it belongs"),
        "instance": Column(_TEXT, "", "the server process: its log, and its label where one file holds several"),
        "role": Column(_TEXT, "", "prefill, decode, colocated or router; null where nothing tells"),
        "rank": Column(_TEXT, "", '`DP1` of a server that is several; "" of one that is whole'),
        "clock": Column(_CLOCK, "", "the second, on the server's own clock: its zone is not known"),
        "metric": Column(_TEXT, "", "name of the gauge (pdkit.signals.GAUGES)"),
        "value_min": Column(_NUMBER, "the gauge's", "least in this second"),
        "value_mean": Column(_NUMBER, "the gauge's", "mean"),
        "value_max": Column(_NUMBER, "the gauge's", "most"),
        "n": Column(_COUNT, "", "readings in this second"),
    },
    # one thing that happened on a server
    "events": {
        "experiment": Column(_TEXT, "", "where it belongs"),
        "instance": Column(_TEXT, "", "the server process"),
        "role": Column(_TEXT, "", "its role; null where nothing tells"),
        "clock": Column(_CLOCK, "", "when, on the server's own clock; null where the line has none"),
        "kind": Column(_TEXT, "", "what happened (pdkit.signals.EVENTS)"),
        "count": Column(_NUMBER, "", "how much of it"),
        "subject": Column(_TEXT, "", "to whom: a bootstrap room, a session, an HTTP status"),
        "text": Column(_TEXT, "", "the line (200 characters, keys masked); null for counted lines"),
    },
    # one thing that a server says it runs by
    "settings": {
        "experiment": Column(_TEXT, "", "where it belongs"),
        "instance": Column(_TEXT, "", "the server process"),
        "role": Column(_TEXT, "", "its role; null where nothing tells"),
        "clock": Column(_CLOCK, "", "when it said so"),
        "name": Column(_TEXT, "", "name of the setting (pdkit.signals.SETTINGS)"),
        "value": Column(_NUMBER, "the setting's", "where it is a number"),
        "text": Column(_TEXT, "", "where it is none"),
    },
    "sources": {
        "path": Column(_TEXT, "", "the file"),
        "experiment": Column(_TEXT, "", "where it belongs"),
        "reader": Column(_TEXT, "", "who read it; null where nobody knew it"),
        "reason": Column(_TEXT, "", "why it was not read, or what was wrong with it"),
        "bytes": Column(_COUNT, "", "its size"),
        "sha256": Column(_TEXT, "", "its hash"),
        "rows": Column(_COUNT, "", "rows of evidence that it gave"),
    },
    # one line that a reader should have understood
    "unread": {
        "reason": Column(_TEXT, "", "what is wrong with it"),
        "text": Column(_TEXT, "", "how it begins (200 characters)"),
    },
}
UNPLACED = ("sources",)  # a row of these is a file, not a line
SCHEMAS: dict[str, pl.Schema] = {
    table: pl.Schema({name: column.dtype for name, column in (columns | ({} if table in UNPLACED else PLACE)).items()})
    for table, columns in TABLES.items()
}


def table(name: str, rows: Sequence[Row] | pl.DataFrame = ()) -> pl.DataFrame:
    """The rows under the declared schema of a table: absent columns are null.

    Raises:
        pl.exceptions.PolarsError: a column that is not declared, or a value of another type.
    """
    schema = SCHEMAS[name]
    if not isinstance(rows, pl.DataFrame):
        if not rows:  # most tables of most files: made once, since a frame of many columns takes its time
            return _EMPTY[name].clone()
        return pl.DataFrame([dict(row) for row in rows], schema=schema, strict=True)
    if undeclared := set(rows.columns) - set(schema):
        raise pl.exceptions.ColumnNotFoundError(f"{name}: undeclared columns {sorted(undeclared)}")
    absent = [pl.lit(None, dtype).alias(column) for column, dtype in schema.items() if column not in rows.columns]
    return rows.with_columns(absent).select(pl.col(column).cast(dtype) for column, dtype in schema.items())


_EMPTY = {name: pl.DataFrame(schema=schema) for name, schema in SCHEMAS.items()}


@dataclass(frozen=True, repr=False)
class Evidence:
    """The tables, one frame each; see TABLES for their columns."""

    runs: pl.DataFrame
    claims: pl.DataFrame
    requests: pl.DataFrame
    gaps: pl.DataFrame
    plan: pl.DataFrame
    experiments: pl.DataFrame
    files: pl.DataFrame
    samples: pl.DataFrame
    events: pl.DataFrame
    settings: pl.DataFrame
    sources: pl.DataFrame
    unread: pl.DataFrame

    @classmethod
    def of(cls, **rows: Sequence[Row] | pl.DataFrame) -> "Evidence":
        """Evidence of the given rows; tables that are not named are empty."""
        return cls(**{name: table(name, rows.get(name, ())) for name in TABLES})

    @classmethod
    def joined(cls, parts: Iterable["Evidence"]) -> "Evidence":
        """All parts as one; no parts make empty tables."""
        kept = [cls.of(), *parts]
        return cls(*(pl.concat([getattr(part, f.name) for part in kept]) for f in fields(cls)))

    def __repr__(self) -> str:
        """How many rows each table has."""
        heights = {f.name: getattr(self, f.name).height for f in fields(self)}
        return f"Evidence({', '.join(f'{name}: {height:,}' for name, height in heights.items() if height)})"

    def rows(self) -> int:
        """Rows in all tables."""
        return sum(getattr(self, f.name).height for f in fields(self))
