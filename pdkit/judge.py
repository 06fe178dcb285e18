"""All rules over all runs at once, folded into one verdict a run; no loop over runs or requests."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product

import polars as pl

from pdkit import results as r
from pdkit.causes import causes
from pdkit.conclusions import conclusions
from pdkit.evidence import Evidence
from pdkit.facts import DERIVED, RES, base_names, best_claims, derived, facts, joined, one_listing
from pdkit.goodput import goodput
from pdkit.machines import Machines
from pdkit.metrics import METRICS
from pdkit.parts import register_checks
from pdkit.policy import Waiver
from pdkit.results import Judgement, Severity
from pdkit.rules import CHECKS, NEIGHBOURS, Bound, Check, Pairs
from pdkit.sentences import told
from pdkit.verdicts import verdicts_of
from pdkit.views import View, finite

Thresholds = Mapping[str, Mapping[Severity, Bound]]

_MOVED_ROWS = 200_000  # of the frame in which facts are moved: about 150 MB
_BLIND_SHARE = 0.01  # of the requests: the share of bad ones that a rule over requests lets pass
_OFFENDERS_KEPT = 3  # requests that a finding quotes: enough to look at, not a listing


def judge(
    evidence: Evidence,
    *,
    thresholds: Thresholds | None = None,
    pairs: Pairs | None = None,
    waivers: Sequence[Waiver] = (),
    slos: Mapping[str, float] | None = None,
    machines: Machines | None = None,
) -> Judgement:
    """What every rule says of every run, and what may be published of it.

    `thresholds` maps a rule id to bounds by severity, `{"PD110": {"refuse": below(0.9)}}`; a severity that a rule does
    not have is not added. `pairs` names the run that each is compared with: without it, rules about pairs do not apply.
    `slos` maps a latency of a request to its bound in ms, `{"ttft_ms": 500}`: goodput is counted against all of them.
    `machines` are GPUs and models in place of the table that pdkit ships.
    `waivers` are marked where their findings are shown; they change no verdict and no number.
    """
    register_checks()
    checks = [check.tightened(dict((thresholds or {}).get(check.id, {}))) for _, check in sorted(CHECKS.items())]
    views = [View(check, number, rule) for check in checks for number, rule in enumerate(check.views)]
    wide = facts(evidence, pairs=pairs, machines=machines)
    over_runs, over_requests = ([view for view in views if view.rule.grain == grain] for grain in ("run", "request"))
    over_pairs = [] if pairs and pairs.base_of else [view for view in over_runs if view.about_pair]
    over_runs = [view for view in over_runs if view not in over_pairs]
    seen = [
        _seen_in_runs(wide, over_runs), _seen_in_requests(evidence, wide, over_requests), _unpaired(wide, over_pairs)
    ]  # fmt: skip
    each = _judged(pl.concat(seen, how="diagonal"), views)
    results = _worst_view(each)
    verdicts = verdicts_of(wide, results)
    published = _published(wide, each, views, verdicts)
    waived, idle = _waived(waivers, verdicts, results)
    return Judgement(
        evidence=evidence, facts=wide, views=each, results=results, verdicts=verdicts, published=published,
        claimed=_claimed(evidence), conclusions=conclusions(verdicts),
        tell=lambda failed: told(evidence, wide, views, failed), explain=lambda: causes(evidence, wide, verdicts),
        waived=waived, idle_waivers=idle, changed=_changed(checks),
        slos=dict(slos or {}), goodput=goodput(evidence, wide, verdicts, slos or {}),
        **joined(evidence, wide)._asdict(),
    )  # fmt: skip


# --- results --------------------------------------------------------------------------------------------------------


def _seen_in_runs(wide: pl.DataFrame, views: list[View]) -> pl.DataFrame:
    """What each view over runs observed: (run_id, key, applies, observed, slack)."""
    frame = wide.select(
        "run_id",
        *(view.rule.applies.cast(pl.Boolean).alias(f"applies {view.key}") for view in views),
        *(finite(view.rule.observed).alias(f"observed {view.key}") for view in views),
    ).join(_slack(wide, views), on="run_id", how="left")
    return _long(frame, views, "applies", "observed", "slack")


def _unpaired(wide: pl.DataFrame, views: list[View]) -> pl.DataFrame:
    """Views over pairs where there are none: none applies, and nothing is computed for them."""
    keys = pl.DataFrame({"key": [view.key for view in views]}, schema={"key": pl.String})
    nothing = pl.lit(False).alias("applies"), pl.lit(None, pl.Float64).alias("observed")
    return wide.select("run_id").join(keys, how="cross").with_columns(*nothing)


def _seen_in_requests(evidence: Evidence, wide: pl.DataFrame, views: list[View]) -> pl.DataFrame:
    """What each view over requests observed: the share of bad ones among those that could be judged."""
    columns = set(evidence.requests.columns)
    settings = sorted({name for view in views for name in view.rule.names} - columns)
    requests = one_listing(evidence).join(wide.lazy().select("run_id", *settings), on="run_id")
    counted = requests.group_by("run_id").agg(expr for view in views for expr in _counts(view)).collect()
    every_run = wide.select("run_id").join(counted, on="run_id", how="left")
    total, bad = pl.col("total").cast(pl.Int64), pl.col("bad").cast(pl.Int64)
    unknown = total.is_null() | ((total == 0) & (pl.col("blind") > 0))  # no requests, or none that could be judged
    return _long(every_run, views, "total", "bad", "blind", "first").select(
        "run_id",
        "key",
        bad,
        total,
        "first",
        pl.when(~unknown).then(total > 0).alias("applies"),
        finite(bad / total).alias("observed"),
        pl.lit(0.0).alias("slack"),
        (pl.col("blind") > _BLIND_SHARE * (total + pl.col("blind"))).alias("half_blind"),
    )


def _counts(view: View) -> list[pl.Expr]:
    applies, bad = view.rule.applies, view.rule.observed
    judged = applies & bad.is_not_null()
    return [
        judged.sum().alias(f"total {view.key}"),
        (applies & bad).sum().alias(f"bad {view.key}"),
        (applies.is_null() | (applies & bad.is_null())).sum().alias(f"blind {view.key}"),
        pl.col("row").filter(applies & bad).bottom_k(_OFFENDERS_KEPT).sort().alias(f"first {view.key}"),
    ]


def _long(frame: pl.DataFrame, views: list[View], *values: str) -> pl.DataFrame:
    """`<value> <view>` columns as one row a run and view, with a column a value."""
    parts = [
        frame.unpivot([f"{value} {view.key}" for view in views], index="run_id", variable_name="key", value_name=value)
        .with_columns(pl.col("key").str.strip_prefix(f"{value} "))
        for value in values
    ]  # fmt: skip
    return reduce(lambda one, other: one.join(other, on=["run_id", "key"]), parts)


def _judged(seen: pl.DataFrame, views: list[View]) -> pl.DataFrame:
    """The one place where an outcome is decided. Unknown is never a pass; false outweighs what could not be seen."""
    bounded = seen.join(_bounds(views), on="key")
    severities = [severity for severity in SEVERITIES if f"{severity} low" in bounded.columns]
    beyond = {severity: _beyond(severity) for severity in severities}
    severity = pl.coalesce(pl.when(hit).then(pl.lit(name)) for name, hit in beyond.items())
    outcome = (
        pl.when(pl.col("applies").is_null()).then(pl.lit("not_evaluated"))
        .when(~pl.col("applies")).then(pl.lit("not_applicable"))
        .when(pl.col("observed").is_null()).then(pl.lit("not_evaluated"))
        .when(severity.is_not_null()).then(pl.lit("fail"))
        .when(pl.col("half_blind")).then(pl.lit("not_evaluated"))
        .otherwise(pl.lit("pass"))
    )  # fmt: skip
    decided = bounded.with_columns(
        outcome.alias("outcome"), pl.when(outcome == "fail").then(severity).alias("severity")
    )
    return decided.select(
        *(pl.col(name) for name in r.VIEWS_SCHEMA if not name.startswith("threshold")),
        *(_broken(side).alias(f"threshold_{side}") for side in _SIDES),
    ).select(pl.col(name).cast(dtype) for name, dtype in r.VIEWS_SCHEMA.items())


_SIDES = ("low", "high")
SEVERITIES: tuple[Severity, ...] = ("refuse", "suspect", "note")


def _bounds(views: list[View]) -> pl.DataFrame:
    """The bounds of each view, a row a view; a side that a bound does not have is null, and so never broken."""
    rows = [
        {
            "key": view.key,
            "rule": view.check.id,
            "view": view.number,
            "voids": list(view.rule.voids or view.check.voids),
        }
        | {
            f"{severity} {side}": getattr(bound, side)
            for severity, bound in view.rule.bounds.items()
            for side in _SIDES
        }
        for view in views
    ]
    sides = {f"{severity} {side}": pl.Float64 for severity in SEVERITIES for side in _SIDES}
    return pl.DataFrame(
        rows, schema={"key": pl.String, "rule": pl.String, "view": pl.Int32, "voids": pl.List(pl.String), **sides}
    )


def _beyond(severity: Severity) -> pl.Expr:
    """Surely beyond the bound: also if the printed digits err by all they can."""
    observed, slack = pl.col("observed"), pl.col("slack").fill_null(0)
    under = observed + slack < pl.col(f"{severity} low")
    over = observed - slack > pl.col(f"{severity} high")
    return under.fill_null(False) | over.fill_null(False)


def _broken(side: str) -> pl.Expr:
    """That side of the bound that was broken, or of the most severe one where none was."""
    named = [pl.when(pl.col("severity") == name).then(f"{name} {side}") for name in SEVERITIES]
    has = {name: pl.col(f"{name} low").is_not_null() | pl.col(f"{name} high").is_not_null() for name in SEVERITIES}
    first = (
        pl.when(has["refuse"])
        .then(f"refuse {side}")
        .when(has["suspect"])
        .then(f"suspect {side}")
        .otherwise(f"note {side}")
    )
    return pl.when(pl.col("severity").is_null()).then(first).otherwise(pl.coalesce(named))


def _slack(wide: pl.DataFrame, views: list[View]) -> pl.DataFrame:
    """How far each observed value can be off because its numbers were printed with few digits.

    Every rounded number is moved by half of its last digit, up and down, in turn, in all runs alike; the larger
    changes add up. A long frame holds many moves, so that there are few queries whatever the number of facts.
    """
    keys = [view.key for view in views]
    observed = [finite(view.rule.observed).alias(view.key) for view in views]
    rounded = _rounded(wide, views)
    none = wide.select("run_id", *(pl.lit(0.0).alias(key) for key in keys))
    still = wide.select("run_id", *observed)
    at_once = max(1, _MOVED_ROWS // max(1, 2 * wide.height))
    changes, paired = [none], wide["base__run_id"].is_not_null().any()
    for names in (rounded[at : at + at_once] for at in range(0, len(rounded), at_once)):
        moved = derived(_moved(wide, names, views).lazy(), paired=paired).select("run_id", "fact", *observed).collect()
        change = moved.join(still, on="run_id", suffix=" still").select(
            "run_id", "fact", *((pl.col(key) - pl.col(f"{key} still")).abs().fill_null(0).alias(key) for key in keys)
        )
        changes.append(change.group_by("run_id", "fact").agg(pl.col(*keys).max()).drop("fact"))
    return pl.concat(changes).group_by("run_id").agg(pl.col(key).sum().alias(f"slack {key}") for key in keys)


def _rounded(wide: pl.DataFrame, views: list[View]) -> list[str]:
    """The facts that some view rests on and some run states with few digits."""
    roots = {root for view in views for root in view.rule.observed.meta.root_names()}
    named = {base.rpartition("__")[2] for root in roots for base in base_names(root)}
    with_digits = [name for name in METRICS if name in named and f"{name}{RES}" in wide.columns]
    coarse = wide.select((pl.col(f"{name}{RES}") > 0).any().alias(name) for name in with_digits).row(0, named=True)
    return [name for name, is_coarse in coarse.items() if is_coarse]


def _moved(wide: pl.DataFrame, names: list[str], views: list[View]) -> pl.DataFrame:
    """All runs with one fact moved up, then down, one after the other; neighbours' facts are left to be found again."""
    roots = {root for view in views for root in view.rule.observed.meta.root_names()}
    based = {base.rpartition("__")[2] for root in (*roots, *DERIVED) for base in base_names(root)}
    ids = [f"{prefix}__run_id" for prefix in NEIGHBOURS]
    own = wide.select("run_id", *ids, *sorted(based & set(wide.columns)), *(f"{name}{RES}" for name in names))
    moves = pl.DataFrame([{"fact": name, "moved": sign} for name, sign in product(names, (1, -1))])
    step = {name: pl.col("moved") * pl.col(f"{name}{RES}").fill_null(0) for name in names}
    return own.join(moves, how="cross").with_columns(
        pl.when(pl.col("fact") == name).then(pl.col(name) + step[name]).otherwise(name).alias(name) for name in names
    )


def _worst_view(each: pl.DataFrame) -> pl.DataFrame:
    """One row a run and rule: a failure outweighs a pass, a pass outweighs what could not be seen."""
    takes_less = ~pl.col("voids").list.contains("run")
    order = ["run_id", "rule", pl.col("outcome").to_physical(), pl.col("severity").to_physical(), takes_less, "view"]
    return each.sort(order, nulls_last=True).unique(["run_id", "rule"], keep="first", maintain_order=True)


# --- what a user decided --------------------------------------------------------------------------------------------


def _waived(
    waivers: Sequence[Waiver], verdicts: pl.DataFrame, results: pl.DataFrame
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The findings that a waiver is about, one row each, and the waivers that are about none, in words."""
    rows = [{"number": number, **vars(waiver)} for number, waiver in enumerate(waivers)]
    keys = {"number": pl.Int64(), "series_key": pl.String()}
    said = pl.DataFrame(rows, schema={**keys, **r.WAIVED_SCHEMA}, strict=True)
    failed = results.filter(pl.col("outcome") == "fail").select("run_id", "rule")
    silent = verdicts.filter("sent_unknown").select("run_id", pl.lit(r.FAILURES).alias("rule"))
    found = pl.concat([failed, silent]).join(verdicts.select("run_id", "series_key"), on="run_id")
    of_run = said.drop_nulls("run_id").drop("series_key").join(found.drop("series_key"), on=["run_id", "rule"])
    of_series = said.drop_nulls("series_key").drop("run_id").join(found, on=["series_key", "rule"])
    matched = pl.concat([of_run, of_series.select(of_run.columns)])
    idle = (waiver for number, waiver in enumerate(waivers) if number not in set(matched["number"]))
    # a run's own waiver says more than its series'
    frame = matched.unique(["run_id", "rule"], keep="first", maintain_order=True).sort("run_id", "rule")
    return frame.select(r.WAIVED_SCHEMA.names()), tuple(f"{w.rule} of {w.run_id or w.series_key}" for w in idle)


def _changed(checks: list[Check]) -> pl.DataFrame:
    """The bounds that a user's thresholds changed, with the default; `looser` lets something pass that failed."""
    rows = [
        {
            "rule": check.id,
            "severity": severity,
            "default": str(own),
            "used": str(used),
            "looser": used.looser_than(own),
        }
        for check in checks
        for view, default in zip(check.views, CHECKS[check.id].views, strict=True)
        for severity, own in default.bounds.items()
        if (used := view.bounds[severity]) != own
    ]
    return pl.DataFrame(rows, schema=r.CHANGED_SCHEMA).unique(maintain_order=True)


# --- numbers --------------------------------------------------------------------------------------------------------


def _published(wide: pl.DataFrame, each: pl.DataFrame, views: list[View], verdicts: pl.DataFrame) -> pl.DataFrame:
    """Every result that was stated or follows, null where a rule took it away, with the rules that did.

    A run that no rule could look at has no measured result, though none took it.
    """
    names = [name for name, metric in METRICS.items() if metric.kind == "result"]
    values = (
        wide.lazy()
        .select("run_id", *names)
        .unpivot(names, index="run_id", variable_name="fact", value_name="value")
        .filter(pl.col("value").is_finite())  # 1000 / 0 ms is no speed
    )
    taken = _taken(each, views).group_by("run_id", "fact").agg(pl.col("rule").unique().sort().alias("voided_by"))
    nothing = pl.lit([], pl.List(pl.String))
    no_result = pl.col("run_id").is_in(verdicts.filter(pl.col("verdict") == r.NO_RESULT)["run_id"].implode())
    return (
        values.join(taken, on=["run_id", "fact"], how="left")
        .with_columns(pl.col("voided_by").fill_null(nothing))
        .with_columns(pl.when(pl.col("voided_by").list.len() == 0, ~no_result).then("value"))
        .sort("run_id", "fact")
        .collect()
    )


def _taken(each: pl.DataFrame, views: list[View]) -> pl.LazyFrame:
    """Which facts of which runs a failure takes off the page: by scope where it refuses, by name where it says so."""
    scopes = pl.LazyFrame({"fact": list(METRICS), "scope": [_taken_by(name) for name in METRICS]}).explode("scope")
    failed = each.lazy().filter(pl.col("outcome") == "fail")
    refused = (
        failed.filter(pl.col("severity") == "refuse")
        .select("run_id", "rule", pl.col("voids").alias("scope"))
        .explode("scope")
    )
    named = [
        {"rule": view.check.id, "view": view.number, "fact": list(view.rule.takes)} for view in views if view.rule.takes
    ]
    takes = pl.LazyFrame(named, schema={"rule": pl.String, "view": pl.Int32, "fact": pl.List(pl.String)}).explode(
        "fact"
    )
    return pl.concat([
        refused.join(scopes, on="scope").select("run_id", "fact", "rule"),
        failed.join(takes, on=["rule", "view"]).select("run_id", "fact", "rule"),
    ])  # fmt: skip


def _taken_by(name: str) -> list[str]:
    scope = METRICS[name].scope
    return ["run", scope, *(["latency"] if scope == "tail" else [])]


def _claimed(evidence: Evidence) -> pl.DataFrame:
    """What the tools print, and where: only evidence may show it."""
    names = [name for name, metric in METRICS.items() if metric.kind == "result"]
    return (
        best_claims(evidence)
        .filter(pl.col("fact").is_in(names))
        .select("run_id", "fact", "value", "source_file", "source_line")
        .sort("run_id", "fact")
        .collect()
    )
