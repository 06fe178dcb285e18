"""Evidence made for the charts: sweeps that can be worked out by hand, and what nobody would wish for."""

from collections.abc import Mapping, Sequence

from pdkit.evidence import Evidence, Row
from pdkit.judge import judge
from pdkit.results import Judgement

INFINITY = float("inf")
PLACE = {"source_file": "made.log", "source_line": 1}
TTFT_MS, GAP_MS, TOKENS = 50.0, 10.0, 100
SECONDS_IN_A_CHUNK = 70.0  # long enough for the rule on short runs


def run(
    level: float | None,
    *,
    experiment: str = "made",
    received: float | None = 1.0,
    requests: int = 40,
    rate: float | None = INFINITY,
) -> tuple[Row, list[Row], list[Row]]:
    """One run at a cap: its row, claims and requests; `received` is the share of claimed tokens that came back."""
    seen = f"{experiment}-{level}-{rate}"
    about = {"run_id": seen, "seen_id": seen, **PLACE}
    users = level if level and level < INFINITY else 8.0
    ttft = TTFT_MS * users
    e2e = ttft + GAP_MS * (TOKENS - 1)
    facts = {
        "completed": requests,
        "duration_s": SECONDS_IN_A_CHUNK,
        "output_tok_sum": requests * TOKENS,
        "input_tok_sum": requests * TOKENS,
        "concurrency": level,
        "request_rate_per_s": rate,
        "prompts_asked": requests,
        "output_throughput_tok_per_s": requests * TOKENS / SECONDS_IN_A_CHUNK,
        "input_throughput_tok_per_s": requests * TOKENS / SECONDS_IN_A_CHUNK,
        "request_throughput_per_s": requests / SECONDS_IN_A_CHUNK,
        "ttft_ms_mean": ttft + (requests - 1) / 2,  # of the requests below, 1 ms apart
        "ttft_ms_median": ttft + (requests - 1) / 2,
        "tpot_ms_mean": GAP_MS,
        "tpot_ms_median": GAP_MS,
        "itl_ms_mean": GAP_MS,
        "itl_ms_median": GAP_MS,
        "e2e_ms_mean": e2e,
        "e2e_ms_median": e2e,
    }
    if received is not None:
        facts["retokenized_tok_sum"] = requests * TOKENS * received
    claims = [
        about | {"fact": fact, "value": float(value), "resolution": 0.0}
        for fact, value in facts.items()
        if value is not None
    ]
    back = round(requests * (1.0 if received is None else received))
    rows = [
        about
        | {
            "request_index": index,
            "ok": True,
            "output_tok": TOKENS,
            "input_tok": TOKENS,
            "text_chars": 4 * TOKENS * (index < back),
            "ttft_ms": ttft + index if index < back else 0.0,
            "e2e_ms": e2e + index,
        }
        for index in range(requests)
    ]
    row = about | {"experiment": experiment, "tool": "sglang", "backend": "sglang", "complete": True, "streaming": True}
    return row, claims, rows


def evidence(
    *runs: tuple[Row, list[Row], list[Row]], listed: bool = True, experiments: Sequence[Mapping[str, object]] = ()
) -> Evidence:
    """All of them as one; `listed` says whether their requests are."""
    return Evidence.of(
        runs=[row for row, _, _ in runs],
        claims=[claim for _, claims, _ in runs for claim in claims],
        requests=[request for _, _, requests in runs for request in requests] if listed else [],
        experiments=list(experiments),
    )


def sweep(
    levels: Sequence[float], *, experiment: str = "made", received: Mapping[float, float] | None = None
) -> Evidence:
    """One run a level; `received` says of which only a share came back."""
    return evidence(*(run(level, experiment=experiment, received=(received or {}).get(level, 1.0)) for level in levels))


def _request(**changed: object) -> Row:
    about = {"run_id": "one", "seen_id": "one", "request_index": 0, "ok": True, "output_tok": 1, **PLACE}
    return about | {"ttft_ms": 50.0, "e2e_ms": 100.0, "nonfinite_count": 0} | changed


def _alone(*requests: Row, **about: object) -> Evidence:
    return Evidence.of(
        runs=[{"run_id": "one", "seen_id": "one", "experiment": "one", **PLACE, **about}], requests=list(requests)
    )


def hostile() -> dict[str, Evidence]:
    """Evidence that nobody would wish for, by what is wrong with it."""
    nulls = dict.fromkeys(("ttft_ms", "e2e_ms", "ok", "output_tok", "nonfinite_count"))
    twice = run(4)
    return {
        "empty": Evidence.of(),
        "a run of which nothing is known": _alone(),
        "an experiment without a name": Evidence.of(runs=[{"run_id": "one", "seen_id": "one", **PLACE}]),
        "one request": _alone(_request()),
        "all failed": _alone(*(_request(ok=False, ttft_ms=None, e2e_ms=None, error="timeout") for _ in range(3))),
        "nulls everywhere": _alone(_request(**nulls)),
        "every kind of impossible TTFT": _alone(
            _request(ttft_ms=0.0),
            _request(ttft_ms=-1.0),
            _request(ttft_ms=None, nonfinite_count=1),
            _request(ttft_ms=200.0),
            _request(ttft_ms=None),
            _request(ok=False, ttft_ms=None),
            _request(ttft_ms=INFINITY),
            _request(ttft_ms=float("nan")),
            _request(),
        ),
        "one token each": evidence(run(1, requests=1)),
        "offline burst": evidence(run(INFINITY)),
        "open loop": evidence(run(INFINITY, rate=8.0)),
        "level unknown": evidence(run(None, rate=None)),
        "no text counted": evidence(run(1, received=None), run(8, received=None), listed=False),
        "a summary only": evidence(run(1), run(8), listed=False),
        "one run twice at a level": evidence(twice, ({**twice[0], "run_id": "again", "seen_id": "again"}, [], [])),
        "infinite numbers": _infinite(),
        "a name that is markup": sweep([1], experiment="<script>alert('x')</script>"),
        "two experiments of one label": evidence(
            run(1, experiment="a"),
            run(1, experiment="b"),
            experiments=[{"experiment": name, "label": "the same", "synthetic": True, **PLACE} for name in "ab"],
        ),
        "ten levels": sweep([2.0**k for k in range(10)]),
        "thirty experiments": evidence(*(run(1, experiment=f"e{k}") for k in range(30))),
        "many repeats": evidence(*(run(float(k), requests=1) for k in range(1, 300))),
    }


def _infinite() -> Evidence:
    row, claims, _ = run(8)
    return evidence((row, [{**claim, "value": INFINITY} for claim in claims], []))


def judged(name: str) -> Judgement:
    """The hostile evidence of that name, judged."""
    return judge(hostile()[name])
