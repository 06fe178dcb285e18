"""Two sides: levels are paired, unlike things are refused, no refused number is a result, and nobody wins."""

import json
import math
import sys
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from logs import details, record, write

sys.path.insert(0, str(Path(__file__).parent / "checks"))
from given import HEALTHY, evidence

from pdkit.cli import main
from pdkit.compare import Comparison, Pair, compare
from pdkit.errors import PdkitError
from pdkit.evidence import Evidence
from pdkit.formats import comparison as formats
from pdkit.load import load, same_runs
from pdkit.rules import below

_MADE = count()  # of runs
OPEN_LOOP = ("data/split-l4-qwen3-8b/open-loop/baseline", "data/split-l4-qwen3-8b/open-loop/split")


def pdkit(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def side(*runs: dict[str, Any], gpus: int | None = None) -> Evidence:
    """One run a dict of what differs from a healthy run, in one experiment."""
    said = {"settings": {"experiment": "e"}} | ({"gpu_count": gpus} if gpus else {})
    # latencies of their own: two levels with the same ones are one that was copied
    own = [{"seen": f"run.log#{i}", "duration_s": 200 + i / 100, "ttft_ms_mean": 120 + next(_MADE) / 1000}
           for i in range(len(runs))]  # fmt: skip
    made = [evidence(**(said | latency | run)) for latency, run in zip(own, runs, strict=True)]
    return same_runs(Evidence.joined(made))


def one(baseline: dict[str, Any], candidate: dict[str, Any]) -> Pair:
    """The only pair of two runs."""
    (pair,) = compare(side(baseline), side(candidate)).pairs
    return pair


def pairs_of(compared: Comparison) -> list[tuple[str, str]]:
    return [(pair.baseline.level, pair.candidate.level) for pair in compared.pairs]


# --- levels ---------------------------------------------------------------------------------------------------------


def test_runs_at_one_level_are_a_pair_and_others_are_named():
    compared = compare(side({"concurrency": 4}, {"concurrency": 8}), side({"concurrency": 8}, {"concurrency": 16}))
    assert pairs_of(compared) == [("8 users", "8 users")]
    assert [level.sentence for level in compared.unpaired] == [
        "4 users: BASELINE alone has it",
        "16 users: CANDIDATE alone has it",
    ]
    assert compared.is_comparable


def test_a_level_that_nobody_states_is_no_level():
    unknown = {"concurrency": None, "request_rate_per_s": None}
    compared = compare(side(unknown, {}), side(unknown, {}))
    assert pairs_of(compared) == [("4 users", "4 users")]
    assert [level.sentence for level in compared.unpaired] == [
        "level not stated: 1 run of BASELINE, 1 of CANDIDATE: none is picked; name the logs of one level"
    ]
    assert not compared.is_comparable


def test_the_only_runs_of_both_sides_are_a_pair_and_refused_at_different_levels():
    pair = one({"concurrency": 4}, {"concurrency": 8})
    assert pair.title == "e against e, at 8 users against 4 users; they differ in concurrency cap"
    assert pair.sentence == "no winner: not comparable (PD703)"
    assert pair.numbers == ()


def test_one_experiment_on_both_sides_is_two_sides():
    # the same folder name, and the same numbers to the last digit: still a run a side
    pair = one({}, {})
    assert pair.baseline.run_id == pair.candidate.run_id
    assert pair.is_comparable


# --- comparable -----------------------------------------------------------------------------------------------------


def test_one_run_a_side_has_numbers_and_no_winner():
    pair = one({}, {"retokenized_tok_sum": 40_000, "ttft_ms_median": 59})
    numbers = {number.fact: number for number in pair.numbers}
    received = numbers["received_throughput_tok_per_s"]
    assert (received.baseline, received.candidate) == (39_600 / 200, 200)
    assert received.ratio == pytest.approx(40_000 / 39_600)
    assert numbers["ttft_ms_median"].ratio == 59 / 120
    assert pair.sentence == "no winner: one run a side; 3 or more a side, in turn and with one seed, would tell"
    for word in ("faster", "slower", "wins", "better"):
        assert word not in formats.text(compare(side({}), side({})))


def test_a_mean_stands_where_no_median_is_printed():
    pair = one({"e2e_ms_median": None}, {})
    assert [number.fact for number in pair.numbers][-1] == "e2e_ms_mean"


def test_sides_of_other_sizes_are_compared_per_gpu():
    (pair,) = compare(side({}, gpus=1), side({}, gpus=2)).pairs
    assert pair.title == "e against e, at 4 users, per GPU; they differ in GPUs"
    numbers = {number.fact: number for number in pair.numbers}
    assert numbers["received_throughput_tok_per_s"].ratio is None
    assert numbers["received_throughput_tok_per_s_per_gpu"].ratio == 0.5
    assert numbers["received_throughput_tok_per_s_per_gpu"].candidate == 99


def test_a_gpu_count_of_one_side_gives_no_number_per_gpu():
    (pair,) = compare(side({}, gpus=1), side({})).pairs
    assert "received_throughput_tok_per_s_per_gpu" not in [number.fact for number in pair.numbers]
    assert [setting.name for setting in pair.stated_once] == ["GPUs"]


def test_clocks_of_two_clients_have_no_ratio():
    pair = one({}, {"settings": {"experiment": "e", "client_definition": "rust"}})
    ratios = {number.fact: number.ratio for number in pair.numbers}
    assert ratios["received_throughput_tok_per_s"] == 1
    assert [fact for fact, ratio in ratios.items() if ratio is None] == [
        "ttft_ms_median", "tpot_ms_median", "e2e_ms_median",
    ]  # fmt: skip


def test_a_number_that_a_rule_took_from_one_side_has_no_ratio():
    # 400 requests for 401 slots: less than one a slot refuses the throughput
    many = {"concurrency": 401}
    (pair,) = compare(side(many), side(many)).pairs
    received = pair.numbers[0]
    assert (received.baseline, received.ratio) == (None, None)
    assert received.baseline_voided_by == ("PD502",)
    assert "– (PD502)" in formats.text(compare(side(many), side(many)))


def test_a_setting_that_differs_is_named_with_both_lines():
    pair = one({"settings": {"experiment": "e", "seed": 1}}, {"settings": {"experiment": "e", "seed": 2}})
    (seed,) = pair.differing
    assert (seed.name, seed.baseline, seed.candidate) == ("seed", "1", "2")
    assert [str(place) for place in (*seed.baseline_places, *seed.candidate_places)] == ["run.log:99", "run.log:99"]
    assert [result.rule for result in pair.failed("note")] == ["PD702"]
    assert pair.is_comparable


# --- refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "candidate", "sentence"),
    [
        ({}, {"retokenized_tok_sum": 0}, "no winner: CANDIDATE has no measured result (PD101 and PD110)"),
        ({"retokenized_tok_sum": 0}, {}, "no winner: BASELINE has no measured result (PD101 and PD110)"),
        (
            {"retokenized_tok_sum": 0},
            {"duration_s": 0},
            "no winner: BASELINE has no measured result (PD101 and PD110) and CANDIDATE has no measured result (PD407)",
        ),
        (
            {},
            {"retokenized_tok_sum": None},
            "no winner: CANDIDATE is unverified: nothing shows that text came back",
        ),
        ({}, {"settings": {"experiment": "e", "dataset": "sharegpt"}}, "no winner: not comparable (PD702)"),
    ],
)  # fmt: skip
def test_why_there_is_no_comparison(baseline: dict[str, Any], candidate: dict[str, Any], sentence: str):
    pair = one(baseline, candidate)
    assert pair.sentence == sentence
    assert not pair.is_comparable
    assert pair.numbers == ()


def test_one_log_on_both_sides_is_a_wrong_call(tmp_path: Path):
    log = write(tmp_path / "r.jsonl", record() + "\n")
    copy = write(tmp_path / "copy" / "r.jsonl", record() + "\n")
    result = pdkit(log, copy)
    assert result.exit_code == 2
    assert "the same log as" in result.stderr
    sides = load(log), load(copy)
    with pytest.raises(PdkitError, match="the same log as"):
        compare(*sides)


@pytest.mark.parametrize(("baseline", "candidate"), [(3, 3), (1, 3), (3, 1)])
def test_repeats_of_one_side_that_are_copies_of_the_others_are_a_wrong_call(baseline: int, candidate: int):
    """A log that was saved anew is another file; a record beside the log of its run as well."""
    sides = side(*three(1)[:baseline]), side(*three(1)[:candidate])
    with pytest.raises(PdkitError, match=r"^e: a run prints the same as one of the baseline's e; name another run's"):
        compare(*sides)


# --- repeats --------------------------------------------------------------------------------------------------------


def at(speed: float, **changes: Any) -> dict[str, Any]:
    """What differs from the healthy run on a server that is so many times as fast."""
    clocks = {
        fact: value / speed for fact, value in HEALTHY.items() if value and ("_ms_" in fact or fact == "duration_s")
    }
    rates = {fact: value * speed for fact, value in HEALTHY.items() if value and fact.endswith("throughput_tok_per_s")}
    return clocks | rates | {"request_throughput_per_s": 2 * speed} | changes


def three(speed: float, spread: float = 0.01, **changes: Any) -> list[dict[str, Any]]:
    """Three runs whose throughputs have logarithms `spread` apart: their standard deviation."""
    return [at(speed * math.exp(shift), **changes) for shift in (-spread, 0, spread)]


def called(baseline: list[dict[str, Any]], candidate: list[dict[str, Any]], **given: Any) -> Pair:
    (pair,) = compare(side(*baseline), side(*candidate), **given).pairs
    return pair


# of three a side with equal spreads, four degrees of freedom are left: t = 2.776
REACH = 2.776445 * 0.01 * math.sqrt(2 / 3)


@pytest.mark.parametrize(
    ("speed", "word", "said"),
    [
        (1.1, "faster", "CANDIDATE is faster: 1.100 times BASELINE's received output throughput"),
        (1 / 1.1, "slower", "CANDIDATE is slower: 0.909 times BASELINE's received output throughput"),
        (1.002, "same", "same within 3 %: 1.002 times BASELINE's received output throughput"),
        (1.02, "can't tell", "can't tell: 1.020 times BASELINE's received output throughput"),
    ],
)
def test_three_repeats_a_side_are_called(speed: float, word: str, said: str):
    pair = called(three(1), three(speed))
    assert pair.call is not None
    found = pair.call.interval
    assert found.ratio == pytest.approx(speed)
    assert (found.low, found.high) == pytest.approx((speed * math.exp(-REACH), speed * math.exp(REACH)))
    assert pair.call.delta == 0.03
    assert pair.call.word == word
    assert pair.sentence.startswith(said)
    assert f"95 % interval {found.low:.3f} to {found.high:.3f}" in pair.sentence
    assert pair.sentence.count("3 runs against 3") == 1
    assert [result.rule for result in pair.failed("note")] == (["PD903"] if word == "can't tell" else [])


def test_where_repeats_cannot_tell_what_would_is_said():
    """log(1.03 / 1.02) is 0.0098; t x 0.01 x sqrt(2/k) is 0.0100 at 9, 0.0094 at 10; 3.1 % is the table's at CV 1 %."""
    assert 2.101 * 0.01 * math.sqrt(2 / 10) < math.log(1.03 / 1.02) < 2.120 * 0.01 * math.sqrt(2 / 9)
    pair = called(three(1), three(1.02))
    assert "so many runs show a difference of 3.1 % in four of five tries" in pair.sentence
    assert pair.sentence.endswith("10 a side would tell, if ratio and spread stay")


def test_the_line_is_twice_the_spread_of_noisy_repeats():
    pair = called(three(1, 0.04), three(1.3, 0.04))
    assert pair.call is not None
    assert pair.call.delta == pytest.approx(0.08, rel=0.001)
    assert pair.call.word == "faster"  # 1.3 x exp(-2.267 x 0.04) = 1.187
    noisy = called(three(1, 0.06), three(1.3, 0.06))
    assert [result.rule for result in noisy.failed("suspect")] == ["PD904"]


def test_of_a_latency_the_lower_one_is_faster():
    pair = called(three(1), three(1.1), metric="tpot_ms_mean")
    assert pair.call is not None
    assert pair.call.fact == "tpot_ms_mean"
    assert pair.call.interval.ratio == pytest.approx(1 / 1.1)
    assert pair.sentence.startswith("CANDIDATE is faster: 0.909 times BASELINE's mean TPOT")
    assert [(call.fact, call.word) for call in pair.calls if not call.is_declared] == [
        ("received_throughput_tok_per_s", "faster"), ("ttft_ms_median", "faster"), ("ttft_ms_p90", "faster"),
    ]  # fmt: skip


def test_turning_the_sides_round_turns_the_call():
    there, back = called(three(1), three(1.1)), called(three(1.1), three(1))
    assert there.call is not None
    assert back.call is not None
    assert (there.call.word, back.call.word) == ("faster", "slower")
    assert back.call.interval.ratio == pytest.approx(1 / there.call.interval.ratio)


def test_the_mean_over_runs_is_geometric():
    pair = called([at(1), at(1.21), at(1.1)], [at(1.1 * 1.01), at(1.1 * 1.02), at(1.1 / 1.01 / 1.02)])
    assert pair.numbers[0].baseline == pytest.approx(198 * 1.1)
    assert pair.numbers[0].ratio == pytest.approx(1)


@pytest.mark.parametrize(("runs", "have"), [((1, 3), "1 run of BASELINE, 3"), ((3, 2), "3 runs of BASELINE, 2")])
def test_fewer_than_three_a_side_are_not_called(runs: tuple[int, int], have: str):
    pair = called(three(1)[: runs[0]], three(2)[: runs[1]])
    assert pair.call is None
    assert pair.calls == ()
    assert pair.sentence == f"no winner: {have} of CANDIDATE; 3 or more a side, in turn and with one seed, would tell"
    assert [result.rule for result in pair.without_call] == ["PD902"]
    assert pair.is_comparable
    assert pair.numbers[0].ratio is not None


def test_five_a_side_have_an_exact_p():
    five = [0.98, 0.99, 1, 1.01, 1.02]
    pair = called([at(speed) for speed in five], [at(1.5 * speed) for speed in five])
    assert pair.call is not None
    assert pair.call.permutation_p == pytest.approx(2 / 252)
    assert called(three(1), three(1.5)).calls[0].permutation_p is None


def test_a_refused_run_is_no_repeat_and_is_counted():
    empty = [at(1.3, retokenized_tok_sum=0), at(1.31, retokenized_tok_sum=0)]
    pair = called(three(1), [*three(1.1), *empty])
    assert pair.call is not None
    assert pair.call.runs == (3, 3)
    assert pair.sentence.endswith("; 2 of 5 runs of CANDIDATE have no measured result (PD101 and PD110)")
    two = called(three(1), [*three(1.1)[:2], *empty])
    assert two.call is None
    assert "2 of 4 runs of CANDIDATE have no measured result" in two.sentence


def test_a_side_of_which_every_run_is_refused_says_so():
    pair = called(three(1), three(1.1, retokenized_tok_sum=0))
    assert pair.sentence == "no winner: none of 3 runs of CANDIDATE is measured (PD101 and PD110)"
    assert "PD709" in [result.rule for result in pair.failed("refuse")]
    assert (pair.numbers, pair.calls) == ((), ())


def test_an_unverified_run_is_no_repeat():
    pair = called(three(1), [*three(1.1), at(1.2, retokenized_tok_sum=None)])
    assert pair.sentence.endswith("; 1 of 4 runs of CANDIDATE is unverified")


def test_a_copy_of_a_run_is_no_repeat():
    copies = [evidence(**(at(1.1) | {"settings": {"experiment": f"copy-{i}"}, "seen": f"{i}.log#0"})) for i in range(3)]
    (pair,) = compare(side(*three(1)), same_runs(Evidence.joined(copies))).pairs
    assert pair.call is None
    assert pair.sentence.startswith("no winner: 3 runs of BASELINE, 1 of CANDIDATE")
    assert pair.sentence.endswith("2 of 3 runs of CANDIDATE are copies of others")


def test_runs_of_two_set_ups_are_no_repeats():
    newer = {"settings": {"experiment": "e", "server_version": "0.5.24"}}
    pair = called(three(1), [*three(1.1)[:2], at(1.12) | newer])
    assert pair.call is None
    assert (
        pair.sentence == "no winner: not repeats of one thing: CANDIDATE's differ in engine version (0.5.23 and 0.5.24)"
    )
    other = called([*three(1)[:2], at(1.02) | newer], three(1.1))
    assert "BASELINE's differ in engine version" in other.sentence
    assert "of the baseline's own repeats: engine 0.5.24 against 0.5.23" in formats.text(
        compare(side(*three(1)[:2], at(1.02) | newer), side(*three(1.1)))
    )


def test_repeats_may_have_seeds_of_their_own():
    seeded = [run | {"settings": {"experiment": "e", "seed": i}} for i, run in enumerate(three(1.1))]
    assert called(three(1), seeded).call is not None


def test_every_repeat_is_held_against_the_baseline():
    """The third of the candidate's runs had a warm cache, and the other two had not."""
    cold = [run | {"cached_tok_sum": 0} for run in (*three(1), *three(1.1)[:2])]
    warm = at(1.12, cached_tok_sum=20_000)
    pair = called(cold[:3], [*cold[3:], warm])
    assert pair.sentence == "no winner: not comparable (PD705)"
    assert pair.calls == ()


def test_sides_of_other_sizes_are_called_per_gpu():
    (pair,) = compare(side(*three(1), gpus=1), side(*three(1.5), gpus=2)).pairs
    assert ", per GPU;" in pair.title
    assert pair.call is not None
    assert pair.call.fact == "received_throughput_tok_per_s_per_gpu"
    assert pair.sentence.startswith("CANDIDATE is slower: 0.750 times BASELINE's received output throughput per GPU")


def test_a_metric_that_a_rule_took_is_not_called():
    # 400 requests for 401 slots: less than one a slot refuses the throughput
    pair = called(three(1, concurrency=401), three(1.1, concurrency=401))
    assert pair.call is None
    assert pair.sentence.startswith("no winner: not every run publishes a received output throughput")
    assert "received" not in " ".join(call.fact for call in pair.calls)


def test_clocks_of_two_clients_are_not_called():
    rust = {"settings": {"experiment": "e", "client_definition": "rust"}}
    pair = called(three(1), [run | rust for run in three(1.1)])
    assert [call.fact for call in pair.calls] == ["received_throughput_tok_per_s"]


def test_a_user_may_ask_for_more_repeats_and_never_for_fewer():
    more = called(three(1), three(1.1), thresholds={"PD902": {"refuse": below(5)}})
    assert more.sentence.endswith("5 or more a side, in turn and with one seed, would tell")
    fewer = called(three(1)[:1], three(1.1)[:1], thresholds={"PD902": {"refuse": below(0)}})
    assert fewer.sentence.startswith("no winner: one run a side; 3 or more")


def test_a_metric_that_nobody_is_called_by_is_a_wrong_call():
    with pytest.raises(PdkitError, match="metric: 'tpot_ms_men' is not known; did you mean tpot_ms_mean"):
        compare(side({}), side({}), metric="tpot_ms_men")


# --- several levels -------------------------------------------------------------------------------------------------


def student_p(t: float) -> float:
    """Two-sided p of Student's t with four degrees of freedom, in closed form."""
    x = t**2 / 4
    return 2 * (0.5 - 0.375 * (t / math.sqrt(1 + x)) * (1 - x / (3 * (1 + x))))


def swept(faster_at: int, by: float, *levels: int) -> list[list[dict[str, Any]]]:
    """Both sides at several levels, three runs each with a spread of 5 %, alike but for one level."""
    base = [run for users in levels for run in three(1 + users / 100, 0.05, concurrency=users)]
    mine = [
        run
        for users in levels
        for run in three((1 + users / 100) * (by if users == faster_at else 1.001), 0.05, concurrency=users)
    ]
    return [base, mine]


@pytest.mark.parametrize(("levels", "word"), [(range(4, 7), "faster"), (range(4, 12), "can't tell")])
def test_one_of_many_levels_may_differ_by_chance(levels: range, word: str):
    """At 4 users, logarithms lie 0.212 apart: t = 0.212 / (0.05 x sqrt(2/3)) = 5.19, p 0.0065, times eight 0.052."""
    base, mine = swept(4, math.exp(0.212), *levels)
    first, *_ = compare(side(*base), side(*mine)).pairs
    assert first.call is not None
    p = student_p(0.212 / (0.05 * math.sqrt(2 / 3)))
    assert first.call.interval.p == pytest.approx(p)
    assert first.call.holm_p == pytest.approx(len(levels) * p)
    assert first.call.word == word
    assert ("PD906" in [result.rule for result in first.failed("note")]) == (word == "can't tell")
    assert ("p 0.052 among them" in first.sentence) == (word == "can't tell")


def test_the_conclusion_gathers_levels_by_their_call():
    """At 5 and 6 users the interval reaches 2.267 x 5 % to both sides, and the line lies at 10 %."""
    base, mine = swept(4, 1.5, 4, 5, 6)
    compared = compare(side(*base), side(*mine, at(2, concurrency=7)))
    assert compared.conclusion == "CANDIDATE is faster at 4 users; can't tell at 5 users and 6 users"
    assert [level.sentence for level in compared.unpaired] == ["7 users: CANDIDATE alone has it"]


# --- times and requests ---------------------------------------------------------------------------------------------


def timed(side_of: Evidence, *starts: str) -> Evidence:
    """With a plan that says when each run at 4 users began."""
    plan = [
        {"experiment": "e", "concurrency": 4.0, "started_at": datetime.fromisoformat(f"2026-09-{at}:00+00:00"),
         "source_file": "sweep.toml", "source_line": line}
        for line, at in enumerate(starts, 1)
    ]  # fmt: skip
    return Evidence.joined([side_of, Evidence.of(plan=plan)])


@pytest.mark.parametrize(
    ("theirs", "mine", "said"),
    [
        (["01T10:00", "01T10:20", "01T10:40"], ["01T10:10", "01T10:30", "01T10:50"], []),
        (["01T10:00", "01T10:10", "01T10:20"], ["01T10:30", "01T10:40", "01T10:50"],
         ["all runs of one side came before all of the other: what drifted is in the ratio"]),
        (["01T10:00", "01T10:20", "02T11:00"], ["01T10:10", "01T10:30", "01T10:50"],
         ["a run is 24 hours from the nearest of the other side"]),
        (["01T10:00", "01T10:20"], ["01T10:30", "01T10:40", "01T10:50"], []),  # one time is not known
    ],
)  # fmt: skip
def test_the_order_of_the_runs_is_looked_at_where_times_are_known(theirs: list[str], mine: list[str], said: list[str]):
    compared = compare(timed(side(*three(1)), *theirs), timed(side(*three(1.1)), *mine))
    (pair,) = compared.pairs
    assert [result.sentence for result in pair.failed("note") if result.rule == "PD710"] == said
    assert ("PD710" in pair.not_evaluated) == (len(theirs) < 3)
    assert pair.call is not None


def answered(*ttfts: float) -> list[dict[str, Any]]:
    return [{"ttft_ms": ttft} for ttft in ttfts]


def at_most(k: int, n: int, chance: float) -> float:
    """That no more than k of n come out, each with its chance."""
    return sum(math.comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in range(k + 1))


def test_percentiles_of_first_tokens_have_bounds_or_say_what_they_need():
    """400 about 120 ms, a quarter of a ms apart: of so many, to be 99 % sure, 26 may lie beyond the p90, and not 27."""
    pair = one({"requests": answered(*(120 + (i - 200.5) / 4 for i in range(1, 401)))}, {})
    (found,) = pair.first_tokens
    assert (found.side, found.requests) == ("baseline", 400)
    median, p90, _, p99 = found.percentiles
    assert at_most(179, 400, 0.5) < 0.025 < at_most(180, 400, 0.5)
    assert (median.value, median.interval) == (120, (120 + (180 - 200.5) / 4, 120 + (221 - 200.5) / 4))
    assert at_most(26, 400, 0.1) < 0.01 < at_most(27, 400, 0.1)
    assert p90.at_most == 120 + (400 - 26 - 200.5) / 4
    assert (p99.value, p99.interval, p99.at_most, p99.needs) == (None, None, None, 662)
    shown = formats.text(compare(side({"requests": answered(*[120.0] * 400)}), side({})))
    assert "120.0 (120.0 to 120.0) ≤ 120.0" in shown
    assert "needs n ≥ 662" in shown


def test_first_tokens_of_two_kinds_are_noted():
    two = answered(*(50 + i / 10 for i in range(200)), *(190 - i / 10 for i in range(200)))
    same = answered(*(120 + (i - 199.5) / 10 for i in range(400)))
    pair = one({"requests": same}, {"requests": two})
    assert [result.sentence for result in pair.results if result.rule == "PD905"] == [
        "CANDIDATE: TTFT of its requests has 2 modes: a mean lies between them"
    ]


# --- the split server that "won" ------------------------------------------------------------------------------------


def test_the_posted_win_has_no_winner(in_repository: Path):
    result = pdkit(*OPEN_LOOP)
    assert result.exit_code == 1
    assert "no winner: CANDIDATE has no measured result (PD101" in result.stdout
    assert "at 8 requests/s, per GPU; they differ in GPUs and topology" in result.stdout
    (claim,) = [line for line in result.stdout.splitlines() if "751.85" in line]
    assert "751.85 tok/s claimed, not measured (split/result.jsonl:1)" in claim
    assert "728.61 tok/s received" in result.stdout
    assert "within this run only" not in result.stdout


def test_the_document_of_the_posted_win_holds_no_claim_as_a_result(in_repository: Path):
    said = json.loads(pdkit(*OPEN_LOOP, "--format", "json").stdout)
    (pair,) = said["pairs"]
    assert (said["comparable"], pair["comparable"], pair["numbers"]) == (False, False, [])
    assert pair["candidate"]["received_throughput_tok_per_s"] is None
    claimed = pair["candidate"].pop("claimed")
    assert (round(claimed["value"], 2), claimed["is"]) == (751.85, "claimed, not measured")
    assert [run.pop("claimed")["is"] for run in pair["runs"] if run["claimed"]] == ["claimed, not measured"]
    assert "751.8" not in json.dumps(pair)
    assert {setting["setting"] for setting in pair["differs"]} == {"GPUs", "topology"}
    assert all(setting["baseline_lines"] and setting["candidate_lines"] for setting in pair["differs"])
    assert [found["rule"] for found in pair["refused_by"]] == ["PD709", "PD713"]


def test_turning_the_pair_round_changes_no_conclusion(in_repository: Path):
    said = json.loads(pdkit(*reversed(OPEN_LOOP), "--format", "json").stdout)
    assert said["conclusion"].startswith("no winner: BASELINE has no measured result (PD101")


# --- the command ----------------------------------------------------------------------------------------------------


def two_sides(tmp_path: Path) -> list[Path]:
    names = ("acme-before", "acme-after")
    return [write(tmp_path / name / "r.jsonl", record(tag=name, **details()) + "\n").parent for name in names]


def test_two_healthy_sides_are_compared(tmp_path: Path):
    result = pdkit(*two_sides(tmp_path))
    assert result.exit_code == 0, result.output
    assert "within this run only" in result.stdout
    assert "no winner: one run a side" in result.stdout


def test_a_threshold_of_ones_own_refuses_the_pair(tmp_path: Path):
    mine = write(tmp_path / "mine.toml", "[PD713]\nrefuse = { below = 1.1, above = 2 }\n")
    result = pdkit(*two_sides(tmp_path), "--thresholds", mine)
    assert result.exit_code == 1
    assert "not comparable (PD713)" in result.stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_redaction_hides_both_folders(tmp_path: Path, form: str):
    plain, hidden = (pdkit(*two_sides(tmp_path), "--format", form, *flag).stdout for flag in ([], ["--redact"]))
    assert "acme" in plain
    assert "acme" not in hidden
    assert str(tmp_path) not in hidden


def test_a_side_that_nobody_can_read_is_a_wrong_call(tmp_path: Path):
    result = pdkit(two_sides(tmp_path)[0], write(tmp_path / "notes.txt", "nothing\n"))
    assert result.exit_code == 2
    assert "none that a reader knows" in result.stderr
