"""Goodput that empty answers can't raise: requests that were answered within the SLOs, of all that were sent."""

from collections.abc import Iterable, Mapping

import polars as pl

from pdkit.errors import PdkitError, one_of
from pdkit.evidence import Evidence
from pdkit.facts import one_listing
from pdkit.metrics import DETAILS
from pdkit.results import NO_RESULT

SLO_METRICS = ("ttft_ms", "tpot_ms", "e2e_ms")
SCHEMA = pl.Schema(
    {
        "run_id": pl.String(),
        "sent": pl.Int64(),
        "answered": pl.Int64(),
        "good": pl.Int64(),
        "attainment_ratio": pl.Float64(),
        "goodput_per_s": pl.Float64(),
        "client_attainment_ratio": pl.Float64(),
        "client_goodput_per_s": pl.Float64(),
        "why_not": pl.String(),
    }
)


def read_slos(given: Iterable[str]) -> dict[str, float]:
    """`ttft_ms=500` and the like, as bounds by metric.

    Raises:
        PdkitError: a metric that has no SLO, or a bound that is no positive number.
    """
    slos: dict[str, float] = {}
    for text in given:
        name, mark, bound = text.partition("=")
        if name not in SLO_METRICS:
            raise one_of(f"--slo {text}: metric", name, list(SLO_METRICS))
        try:
            slos[name] = float(bound)
        except ValueError:
            raise PdkitError(f"--slo {text}: {bound or 'nothing'} is no number; write {name}=500") from None
        if not mark or not 0 < slos[name] < float("inf"):
            raise PdkitError(f"--slo {text}: an SLO is a positive number of milliseconds")
    return slos


def goodput(evidence: Evidence, facts: pl.DataFrame, verdicts: pl.DataFrame, slos: Mapping[str, float]) -> pl.DataFrame:
    """One row a run: how many requests met all SLOs, of all that were sent; SCHEMA names the columns.

    A request counts if it was answered with text. Where a run has no measured result, or its requests are not
    listed, the numbers are null and `why_not` says so. A request of one token has no TPOT and meets any.
    """
    if not slos:
        return pl.DataFrame(schema=SCHEMA)
    answered = pl.col("ok") & (pl.col("text_chars") > 0)
    met = pl.all_horizontal(_within(name, bound) for name, bound in slos.items())
    counted = one_listing(evidence).group_by("run_id").agg(
        pl.col("text_chars").is_not_null().any().alias("listed"),
        pl.len().cast(pl.Int64).alias("listed_sent"),
        answered.sum().cast(pl.Int64).alias("answered"),
        (answered & met).sum().cast(pl.Int64).alias("good"),
    ).collect()  # fmt: skip
    client = {"client_attainment_ratio": "slo_attainment_ratio", "client_goodput_per_s": "request_goodput_per_s"}
    said = facts.select("run_id", "duration_s", *(pl.col(fact).alias(name) for name, fact in client.items()))
    runs = verdicts.select("run_id", "verdict").join(said, on="run_id")
    known = runs.join(counted, on="run_id", how="left", maintain_order="left").with_columns(_why_not().alias("why_not"))
    measured = {
        "sent": pl.col("listed_sent"),
        "answered": pl.col("answered"),
        "good": pl.col("good"),
        "attainment_ratio": pl.col("good") / pl.col("listed_sent"),
        "goodput_per_s": pl.col("good") / pl.col("duration_s"),
    }
    shown = [pl.when(pl.col("why_not").is_null()).then(value).alias(name) for name, value in measured.items()]
    return known.with_columns(shown).select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def _within(name: str, bound: float) -> pl.Expr:
    value = pl.col(name)
    if name == "tpot_ms":
        return (value <= bound) | (value.is_null() & (pl.col("output_tok") == 1))
    return (value <= bound).fill_null(False)


def _why_not() -> pl.Expr:
    return (
        pl.when(pl.col("verdict") == NO_RESULT).then(pl.lit(NO_RESULT))
        .when(~pl.col("listed").fill_null(False)).then(pl.lit(f"not evaluated: needs {DETAILS}"))
    )  # fmt: skip


def worded(slos: Mapping[str, float]) -> str:
    """`TTFT ≤ 500 ms, TPOT ≤ 30 ms`."""
    return ", ".join(f"{name.removesuffix('_ms').upper()} ≤ {bound:g} ms" for name, bound in slos.items())
