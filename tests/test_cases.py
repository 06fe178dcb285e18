"""Training cases tell what their logs tell: verdicts and figures worked out by hand, and no figure typed."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pdkit import casebook
from pdkit.cases import casebook as book_of
from pdkit.cases import filled
from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.judge import judge
from pdkit.load import load

REPOSITORY = Path(__file__).parents[1]
CASES = REPOSITORY / "data" / "cases"
IDS = sorted(path.parent.name for path in CASES.glob("*/case.toml"))
MADE = sorted(path.parent for path in CASES.glob("*/make.py"))
SYNTHETIC_LABEL = "# synthetic: made up by make.py; not a recording\n"

# what is true of each run, and the rules that take something from it or doubt it; read off the logs by hand
TRUTHS = {
    "split-that-won": {"split": ("no measured result", "PD101"), "baseline": ("measured, with doubts", "PD508")},
    "background-log": {"night": ("unverified", "PD502")},
    "two-servers": {"first": ("measured, with doubts", "PD102"), "second": ("measured", "")},
    "first-token": {"chat": ("no measured result", "PD201")},
    "prefill-test": {"test": ("measured", "")},
    "second-try": {"first": ("measured", ""), "second": ("measured, with doubts", "PD612")},
    "sixty-four-users": {"plan": ("measured, with doubts", "PD501")},
    "overload": {"calm": ("measured", ""), "rush": ("no measured result", "PD403")},
    "tool-calls": {"agents": ("measured, with doubts", "PD101")},
}
# what the lesson rests on, by hand: 240 x 128 tokens asked; 32 / 16; 2.84 and 1.78 are published; 96 / 64; 320 / 800;
# 2,032 of 2,048 prompt tokens; 96 answers of which four tokens are seen; 720 answers of one token
FIGURES = {
    "split-that-won": ("0 of 30,720 claimed tokens", "2 requests were decoding and 19 waited", "2,925 tokens", "4,096"),
    "background-log": ("36.94 tok/s", "2 requests a slot"),
    "two-servers": ("2.84 times", "1.78 times"),
    "first-token": ("beside a mean of",),
    "prefill-test": ("720 of 720 tokens", "3 such requests", "Failed transfers: 0."),
    "second-try": ("99.2%", "2,032 tokens of each prompt"),
    "sixty-four-users": ("1.50 requests a slot", "of 64"),
    "overload": ("40.0% of the requests failed", "320 requests are missing", "480 completed"),
    "tool-calls": ("counts 384 when", "4 tokens. A dead"),
}


@pytest.fixture(scope="module")
def book() -> casebook.Casebook:
    return book_of()


def sentences(case: casebook.Case) -> list[str]:
    """All texts of a case, its answers among them."""
    answers = case.answers
    assert answers is not None
    return [
        case.title, case.setup, case.question, answers.short, *(says for says, _ in answers.steps), *answers.read_next,
        *(truth.because for truth in answers.truths), *(t for one in answers.wrong for t in (one.claim, one.why)),
        *(t for one in answers.follow_ups for t in (one.question, one.must_say)),
    ]  # fmt: skip


# --- what ships -----------------------------------------------------------------------------------------------------


def test_nine_cases_ship_and_refusing_is_not_always_right():
    assert set(IDS) == set(TRUTHS) == set(FIGURES)
    verdicts = {case: {verdict for verdict, _ in runs.values()} for case, runs in TRUTHS.items()}
    assert len([case for case, found in verdicts.items() if "no measured result" not in found]) >= 3


@pytest.mark.parametrize(("case", "run"), [(case, run) for case, runs in TRUTHS.items() for run in runs])
def test_the_verdict_of_a_run_is_that_of_its_logs(case, run):
    verdict, rule = TRUTHS[case][run]
    said = next(one for one in casebook.read(casebook.find(case)).runs if one.name == run)
    judgement = judge(load(said.logs))
    found = [row for row in judgement.verdicts.iter_rows(named=True) if said.level in ("", row["level_asked"])]
    assert [row["verdict"] for row in found] == [verdict] == [said.verdict]
    against = [*found[0]["refused_by"], *found[0]["suspected_by"]]
    assert rule in against if rule else not against


@pytest.mark.parametrize("case", IDS)
def test_a_case_says_the_figures_of_its_lesson(book, case):
    (found,) = (one for one in book.cases if one.id == case)
    text = "\n".join(sentences(found))
    assert [figure for figure in FIGURES[case] if figure not in text] == []


def test_no_placeholder_is_left_and_no_figure_is_unknown(book):
    for case in book.cases:
        for text in sentences(case):
            assert "{" not in text, text
            assert "unknown" not in text, text
            assert not re.search(r"\bnan\b", text), text


def test_a_case_is_about_its_own_rules_and_every_step_has_a_line(book):
    for case in book.cases:
        assert case.answers
        assert case.answers.rules
        assert all(cited in case.evidence for _, cited in case.answers.steps)
        assert len(case.answers.wrong) >= 3
        assert {one.level for one in case.answers.follow_ups} <= set(casebook.LEVELS)


def test_the_lessons_differ(book):
    first_rules = [case.answers.rules[0][0] for case in book.cases if case.answers]
    assert len({tuple(rule for rule, _ in case.answers.rules) for case in book.cases if case.answers}) == len(IDS)
    assert len(set(first_rules)) >= 5


def test_a_cited_line_is_shown_word_for_word(book):
    for case in book.cases:
        file = casebook.read(casebook.find(case.id))
        for line in file.evidence:
            run, _, below = line.file.partition("/")
            path = next(one.logs for one in file.runs if one.name == run) / below
            if path.suffix != ".gz" and len(case.cited(line.name).text) < 1000:
                raw = path.read_bytes().decode().split("\n")[line.line - 1]
                assert case.cited(line.name).text == raw.rpartition("\r")[2].rstrip()


def test_around_a_cited_line_stand_three_more(book):
    (case,) = (one for one in book.cases if one.id == "background-log")
    (excerpt,) = case.excerpts
    assert [line.number for line in excerpt.lines] == list(range(21, 36))
    assert [line.number for line in excerpt.lines if line.evidence] == [24, 25, 27, 32, 35]


def test_nobody_calls_a_refused_rate_a_result(book):
    (case,) = (one for one in book.cases if one.id == "split-that-won")
    told = [wrong.claim for wrong in case.answers.wrong] if case.answers else []
    assert "751.85 (claimed, not measured) is more than 728.61, so splitting won." in told
    assert "751.85 tok/s for the pair" in case.setup
    assert "not measured" not in case.setup  # it would tell the answer


def test_what_is_synthetic_says_so():
    for case in IDS:
        assert casebook.read(casebook.find(case)).synthetic
        assert "**Synthetic.**" in (CASES / case / "SOURCES.md").read_text("utf-8")
    logs = [path for folder in MADE for path in folder.rglob("*.log")]
    assert len(logs) >= 10
    assert all(path.read_text("utf-8").startswith(SYNTHETIC_LABEL) for path in logs)
    manifests = [path.read_text("utf-8") for folder in MADE for path in folder.rglob("sweep.toml")]
    assert all("\nsynthetic = true\n" in text and "(synthetic)" in text for text in manifests)


@pytest.mark.parametrize("folder", MADE, ids=lambda path: path.name)
def test_make_gives_the_files_on_disk(folder):
    done = subprocess.run([sys.executable, folder / "make.py", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    listed = dict(re.findall(r"(?m)^([0-9a-f]{64})  (\S+)$", (folder / "SOURCES.md").read_text("utf-8")))
    kept = [path for path in (folder / "logs").rglob("*") if path.is_file()]
    assert {hashlib.sha256(path.read_bytes()).hexdigest(): str(path.relative_to(folder)) for path in kept} == listed


# --- audiences and levels -------------------------------------------------------------------------------------------


def test_a_trainee_s_case_has_no_answers():
    assert all(case.answers is None for case in book_of(audience="trainee").cases)


def test_a_level_leaves_out_what_is_above_it():
    low = book_of(["overload", "tool-calls"], level="L3")
    assert [case.id for case in low.cases] == ["overload"]
    assert low.left_out == ("An answer of a few words",)
    assert {one.level for one in low.cases[0].answers.follow_ups} == {"L2", "L3"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"names": ["overlod"]}, "case: 'overlod' is not known; did you mean overload?"),
        ({"audience": "trainees"}, "audience: 'trainees' is not known; did you mean trainee?"),
        ({"level": "L9"}, "level: 'L9' is not known"),
        ({"names": ["tool-calls"], "level": "L2"}, "level L2: no case is for it; the lowest is L4"),
    ],
)
def test_a_wrong_call_is_one_sentence(call, said):
    with pytest.raises(PdkitError, match=re.escape(said)):
        book_of(**call)


def test_without_cases_it_says_what_to_name(monkeypatch, tmp_path):
    monkeypatch.setattr(casebook, "SHIPPED", (tmp_path,))
    with pytest.raises(PdkitError, match=r"none ships with this installation; name a folder that holds a case\.toml"):
        book_of()


# --- the schema -----------------------------------------------------------------------------------------------------

LOGS = REPOSITORY / "data" / "first-pd-benchmark" / "filtered"
SMALL = f"""
title = "A title"
roles = ["a role"]
level = "L2"
synthetic = true
setup = "At 16 users HTTP 200, p99, Qwen3-8B and version 0.5.23 of 2026 are names."
question = "Is {{output_throughput_tok_per_s}} right?"
short_answer = "Nobody knows."
rules = ["PD101"]
read_next = ["docs/decisions/0004-how-many-were-sent.md"]

[[run]]
name = "night"
logs = "{LOGS}"
level = "16 users"
verdict = "unverified"
lines = ["requests"]
because = "{{completed:n}} requests prove nothing, {{half}} of them neither."

[[evidence]]
name = "requests"
file = "night/pd_bench.log"
line = 25
holds = "Successful requests:"

[[figure]]
name = "half"
evidence = "requests"
after = "Successful requests: "

[[figure]]
name = "each"
value = "completed / concurrency"

[[step]]
says = "{{each}} a slot."
line = "requests"

[[follow_up]]
level = "L2"
question = "Why?"
must_say = "So."

[[wrong]]
claim = "A claim."
why = "A reason."
"""


@pytest.fixture
def written(tmp_path):
    def write(old: str = "", new: str = "") -> Path:
        assert old in SMALL
        path = tmp_path / "mine" / "case.toml"
        path.parent.mkdir()
        path.write_text(SMALL.replace(old, new, 1) if old else SMALL, "utf-8")
        return path

    return write


def test_a_case_may_lie_anywhere(written):
    (case,) = book_of([str(written().parent)]).cases
    assert (case.id, case.question) == ("mine", "Is 36.94 tok/s right?")
    assert case.answers
    assert case.answers.truths[0].because == "32 requests prove nothing, 32 of them neither."
    assert case.answers.steps[0][0] == "2 a slot."


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "A title"\n', "", "case.toml: no title; a case has title, roles"),
        ('title = "A title"', 'titel = "A title"', "key: 'titel' is not known; did you mean title?"),
        ('title = "A title"', "title = 3", "title is 3; it takes a text"),
        ('title = "A title"', 'title = " "', "title is ' '; it takes a text that is not empty"),
        ('title = "A title"', 'title = "A title', "cannot be read as TOML"),
        ('roles = ["a role"]', "roles = []", "roles is []; it takes a list of texts, at least one"),
        ("synthetic = true", "synthetic = 1", "synthetic is 1; it takes true or false"),
        ("synthetic = true", "synthetic = false", "synthetic is false; the sweep.toml of run night says otherwise"),
        ('level = "L2"\nsyn', 'level = "L7"\nsyn', "level: 'L7' is not known"),
        ("line = 25\n", "", ":20: evidence 1: no line; [[evidence]] has name"),
        ("line = 25", "line = 26", "bench.log:26 does not hold 'Successful requests:'; lines 3, 14 and 25 do"),
        ("line = 25", "line = 99", "night/pd_bench.log:99 does not hold"),
        ('file = "night/', 'file = "day/', "file 'day/pd_bench.log' begins with no run; it begins with night"),
        ('file = "night/pd_b', 'file = "night/b', "night/bench.log: no file at"),
        ("[[wrong]]", "[[wrongs]]", "wrongs"),
        ('[[step]]\nsays = "{each} a slot."\nline = "requests"\n', "", "has no [[step]]; a case has at least one"),
        ('line = "requests"', 'line = "reqests"', "step 1: line: reqests: 'reqests' is not known; did you mean"),
        ('verdict = "unverified"', 'verdict = "measured"', "verdict is 'measured', its logs say 'unverified'"),
        ('verdict = "unverified"', 'verdict = "fine"', "verdict: 'fine' is not known"),
        ('level = "16 users"', 'level = "17 users"', "0 runs fit level '17 users'; its logs have ['1 user', "),
        ('rules = ["PD101"]', 'rules = ["PD1010"]', "rules: 'PD1010' is not known; did you mean"),
        ("Nobody knows.", "It is 36.94.", "short_answer: the figure '36.94' is typed by hand"),
        ("Nobody knows.", "At 16 users.", "short_answer: the figure '16' is typed by hand"),
        ("Nobody knows.", "40% of them.", "short_answer: the figure '40' is typed by hand"),
        ("Nobody knows.", "{received_tok}.", "{received_tok} has no value in the logs of run night"),
        ("Nobody knows.", "{recieved_tok}.", "fact: 'recieved_tok' is not known; did you mean received_tok?"),
        ("Nobody knows.", "{day.completed}.", "run: 'day' is not known"),
        ("Nobody knows.", "{completed / 2}.", "is no placeholder"),
        ('after = "Successful requests: "', 'after = "requests of"', "no number behind 'requests of'"),
        ('value = "completed / concurrency"', 'value = "completed"', "it takes two facts, as in 'a.x / b.x'"),
        ('value = "completed / concurrency"', 'unit = "tok"', "takes either a value, or evidence and what its number"),
        ('name = "each"', 'name = "half"', "figure half: is there twice; names differ"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_with_its_file(written, old, new, said):
    path = written(old, new)
    with pytest.raises(PdkitError) as problem:
        filled(casebook.read(path))
    assert said in str(problem.value)
    assert "case.toml" in str(problem.value)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("{received_tok} of PD101, p99, FP8, Qwen3-8B, HTTP 200, 0.5.23, 2026 and 2026-08-11", []),
        ("docs/decisions/0004-how-many.md", []),
        ("751.85 and 1,206, 3x, 40%", ["751.85", "1,206", "3", "40"]),
        ("(2) and 7.", ["2", "7"]),
        ("16 users at 8 requests/s", ["16", "8"]),
    ],
)
def test_names_are_no_figures(text, typed):
    assert casebook.typed_figures(text) == typed


def test_a_load_is_a_name_where_a_question_is_asked():
    assert casebook.typed_figures("16 users, 8 requests/s, 1 user and 5 tok/s", names_loads=True) == ["5"]


# --- the command line -----------------------------------------------------------------------------------------------


def test_the_list_has_a_line_a_case(in_repository):
    said = CliRunner().invoke(main, ["list", "cases"])
    assert said.exit_code == 0
    assert [line.split()[0] for line in said.stdout.splitlines()] == IDS
    assert "overload          L3  Faster under more load" in said.stdout


def test_docs_name_every_key_of_the_schema():
    page = (REPOSITORY / "docs" / "cases.md").read_text("utf-8")
    for key in (*casebook._TOP, *(f"[[{name}]]" for name in casebook._TABLES)):
        assert f"`{key}`" in page, key
    for table in casebook._TABLES.values():
        assert all(f"`{key}`" in page for key in table), table
