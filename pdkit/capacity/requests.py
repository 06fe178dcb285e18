"""What a request takes of the pool, and how many fit."""

from math import floor

import polars as pl

from pdkit.capacity.arithmetic import ServerRole, Step
from pdkit.capacity.known import Known
from pdkit.capacity.pool import Pool
from pdkit.capacity.rows import as_float, named, places_of
from pdkit.fitting import Fit, Lengths
from pdkit.signals import PD_RESERVED_TOK


def request_step(role: ServerRole, here: Known, *, sets_aside: bool) -> tuple[float, Step]:
    """What a request takes beside its prompt, and the step that says so."""
    lengths = here.lengths
    assert lengths is not None
    prompt = f"{lengths.mean:,.0f} tok prompt ({lengths.said})"
    if role == "prefill":
        return 0.0, Step("A request takes", prompt, lengths.mean, "tok")
    if sets_aside:
        beside, stated = _set_aside(here)
        origin = "as stated" if stated.height else "SGLang's default: --num-reserved-decode-tokens"
        formula = f"{prompt} + {beside:,.0f} tok set aside ({origin})"
        return beside, Step("A request takes", formula, lengths.mean + beside, "tok", places=places_of(stated))
    output = here.output_tok or 0.0
    return output, Step("A request takes", f"{prompt} + {output:,.0f} tok output", lengths.mean + output, "tok")


def _set_aside(here: Known) -> tuple[float, pl.DataFrame]:
    """Tokens that a decode side sets aside for each request, and the rows that state it: none for the default."""
    own = here.settings.filter(pl.col("role") == "decode")
    stated = named(own, "reserved_tok").filter(pl.col("value") >= 0)
    most = as_float(stated["value"].max())
    return float(PD_RESERVED_TOK) if most is None else most, stated


def does_set_aside(here: Known, pool: Pool, ran: float) -> bool:
    """Whether the decode side sets tokens aside: no more ran at once than that lets in, unless its settings say so."""
    if here.lengths is None or not reserves(here):
        return False
    beside, stated = _set_aside(here)
    return stated.height > 0 or ran * (min(here.lengths.tok) + beside) <= pool.tok


def reserves(here: Known) -> bool:
    """Whether the decode side is one of SGLang, which sets tokens aside for each request."""
    names = set(here.settings["name"])
    return bool({"disaggregation_mode", "reserved_tok"} & names) or "prealloc_requests" in set(here.samples["metric"])


def fit_step(role: ServerRole, lengths: Lengths, pool: Pool, beside: float, fit: Fit) -> Step:
    """How many fit, with the prompts of least, mean and most tokens each alone."""
    what = "Prompts" if role == "prefill" else "Requests"
    each = [
        f"{tok:,} tok: {floor(pool.tok / (tok + beside)) * pool.replicas:,}"
        for tok in sorted({min(lengths.tok), round(lengths.mean), max(lengths.tok)})
        if tok + beside > 0
    ]
    many = f"{pool.replicas} pools x " if pool.replicas > 1 else ""
    more = f" + k x {beside:,.0f}" if beside else ""
    formula = f"{many}largest k with k prompts{more} <= {pool.tok:,.0f} tok: {fit} (prompts of {', '.join(each)})"
    ratio = f"; {pool.tok:,.0f} / {lengths.mean + beside:,.0f} = {pool.tok / (lengths.mean + beside):,.1f}"
    return Step(f"{what} that fit", formula + ratio, float(fit.typical), "requests", float(fit.low), float(fit.high))
