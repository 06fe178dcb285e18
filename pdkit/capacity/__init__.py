"""How many requests of a workload fit into the memory of each side, and the speed there, as arithmetic to check."""

import polars as pl

from pdkit.capacity.arithmetic import ROLES, Capacity, Seen, ServerRole, Side, Step
from pdkit.capacity.known import Known, known_of
from pdkit.capacity.pool import Pool, pool_of
from pdkit.capacity.requests import does_set_aside, fit_step, request_step, reserves
from pdkit.capacity.seen import observed_of, seen_runs
from pdkit.capacity.speed import decode_speed, prefill_speed
from pdkit.fitting import Fit, fitting
from pdkit.machines import ASSUMED, Machines, known
from pdkit.results import Judgement
from pdkit.signals import PD_RESERVED_TOK

__all__ = ["Capacity", "Seen", "Side", "Step", "capacity"]


def capacity(judgement: Judgement, *, machines: Machines | None = None) -> tuple[Capacity, ...]:
    """The arithmetic of each experiment: what each side holds, how fast it can be there, and what was seen.

    `machines` replaces the table of GPUs and models. It shows claims beside the arithmetic: it is evidence, no result.
    """
    experiments = judgement.verdicts["experiment"].unique(maintain_order=True).to_list()
    return tuple(_of_experiment(judgement, name, machines or known()) for name in experiments if name is not None)


def _of_experiment(judgement: Judgement, experiment: str, machines: Machines) -> Capacity:
    runs = judgement.facts.filter(pl.col("experiment") == experiment)
    label = judgement.verdicts.filter(pl.col("experiment") == experiment)["label"].drop_nulls()
    title = str(label[0]) if len(label) else experiment
    here = known_of(judgement, experiment, runs, machines)
    roles = [role for role in ROLES if role in set(here.settings["role"]) | set(here.samples["role"])]
    if not roles:
        return Capacity(experiment, title, unknown=("no server log: its start-up lines would tell the pool",))
    sides = [_side(role, here, split=len(roles) > 1 or roles[0] != "colocated") for role in roles]
    sides += [_absent(role) for role in ("prefill", "decode") if "colocated" not in roles and role not in roles]
    ordered = tuple(sorted(sides, key=lambda side: ROLES.index(side.role)))
    return Capacity(experiment, title, ordered, tuple(seen_runs(judgement, runs, ordered)), here.unknown)


def _absent(role: ServerRole) -> Side:
    return Side(role, unknown=(f"no {role} log: its start-up lines would tell the pool",))


def _side(role: ServerRole, here: Known, *, split: bool) -> Side:
    """What one side holds and how fast it can be there; `split` where prefill and decode are two servers."""
    pool, observed = pool_of(role, here), observed_of(role, here)
    if pool is None:
        why = f"pool of the {role} side not stated; its start-up lines (max_total_num_tokens) would tell"
        return Side(role, unknown=(why,), **observed._asdict())
    fit, fits, unknown = _fits(role, here, pool, ran=(observed.running_max or 0) / pool.replicas, split=split)
    speed = decode_speed(role, here, fit) if role != "prefill" else prefill_speed(here)
    ceiling = next((step for step in speed if step.unit.endswith("tok/s")), None)
    return Side(
        role,
        (*pool.steps, *fits, *speed),
        pool_tok=pool.tok * pool.replicas,
        pool_low_tok=pool.low_tok * pool.replicas,
        pool_high_tok=pool.high_tok * pool.replicas,
        fit=fit,
        ceiling_tok_per_s=ceiling.value if ceiling else None,
        ceiling_high_tok_per_s=ceiling.high if ceiling else None,
        weights=(here.precision or f"{ASSUMED}, assumed") if ceiling else "",
        requests_per_s=next((step.value for step in speed if step.unit == "requests/s"), None),
        unknown=unknown,
        **observed._asdict(),
    )


def _fits(
    role: ServerRole, here: Known, pool: Pool, *, ran: float, split: bool
) -> tuple[Fit | None, list[Step], tuple[str, ...]]:
    """How many requests fit, the steps that say so, and what is not known; `ran` is the most at once in one pool."""
    if here.lengths is None:
        return None, [], ("prompt lengths not known; a record with `--output-details` would tell",)
    may_set_aside = split and role == "decode"
    sets_aside = may_set_aside and does_set_aside(here, pool, ran)
    beside, request = request_step(role, here, sets_aside=sets_aside)
    fit = fitting(here.lengths, pool_tok=pool.tok, beside_tok=beside).times(pool.replicas)
    less = f"{ran:,.0f} ran at once: less is set aside than SGLang's {PD_RESERVED_TOK} tok a request"
    unknown = (less,) if may_set_aside and reserves(here) and not sets_aside else ()
    return fit, [request, fit_step(role, here.lengths, pool, beside, fit)], unknown
