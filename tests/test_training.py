"""The training pages: a trainee's files hold no answer, an interviewer's hold all of them, and both print."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from pdkit import casebook, report
from pdkit.cases import casebook as book_of
from pdkit.cli import main
from pdkit.errors import PdkitError
from pdkit.formats import training as formats
from pdkit.tables.training import CHOICES, training, training_index
from tests import inprocess

REPOSITORY = Path(__file__).parents[1]
EVIL = "<script>alert(1)</script> ``` **bold** <img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def book() -> casebook.Casebook:
    return book_of()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, report.Report]:
    folder = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        return {
            audience: report.build(
                "training", out=folder, saved_as=f"training-{audience}", parameters={"audience": audience},
                engine=inprocess.NAME,
            )
            for audience in casebook.AUDIENCES
        }  # fmt: skip


def answers(case: casebook.Case) -> list[str]:
    """Every text that a trainee must not see, sentence by sentence."""
    found = case.answers
    assert found is not None
    texts = [
        found.short, *(says for says, _ in found.steps), *(truth.because for truth in found.truths),
        *(t for one in found.follow_ups for t in (one.question, one.must_say)), *(title for _, title in found.rules),
        *(t for one in found.wrong for t in (one.claim, one.why)), *found.read_next,
    ]  # fmt: skip
    pieces = [piece.strip(" .`") for text in texts for piece in re.split(r"(?<=[.?!;:])\s", text)]
    return [piece for piece in pieces if len(piece) > 3 and piece not in CHOICES]


def readable(file: Path) -> str:
    """All that a file says, with and without its escapes, on one line."""
    raw = file.read_text("utf-8")
    decoded = json.dumps(json.loads(raw), ensure_ascii=False) if file.suffix != ".html" else html.unescape(raw)
    plain = decoded.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    told = [raw, plain, html.unescape(plain), re.sub(r"</?code>", "`", html.unescape(plain))]
    return " ".join(" ".join(text.split()) for text in told)


def files(one: report.Report) -> tuple[Path, Path, Path]:
    return one.html, one.json, one.notebook


def without_marks(text: str) -> str:
    return text.replace("`", "")


# --- answers --------------------------------------------------------------------------------------------------------


def test_a_trainee_s_files_hold_no_answer(book, built):
    sought = [piece for case in book.cases for piece in answers(case)]
    assert len(sought) > 300
    for file in files(built["trainee"]):
        text = without_marks(readable(file))
        assert [piece for piece in sought if without_marks(piece) in text] == [], file.name


def test_a_trainee_s_files_name_no_rule_and_no_true_verdict(built):
    for file in files(built["trainee"]):
        text = file.read_text("utf-8")
        assert not re.search(r"\bPD\d{3}\b", text), file.name
        for mark in ("data-verdict", "data-because", "data-lines", "short_answer", '"answers"', "must_say", "because"):
            markup = text.partition("<script>")[0]  # the page's own script asks for marks that are not there
            assert mark not in markup, (file.name, mark)


@pytest.mark.parametrize("audience", ["self-study", "interviewer"])
def test_the_other_files_hold_every_answer(book, built, audience):
    """The search that finds nothing above finds everything here."""
    sought = [piece for case in book.cases for piece in answers(case)]
    for file in (built[audience].html, built[audience].notebook):
        text = without_marks(readable(file))
        assert [piece for piece in sought if without_marks(piece) not in text] == [], file.name
    said = json.loads(built[audience].json.read_text("utf-8"))
    assert all(case["answers"]["short"] for case in said["cases"])


def test_answers_are_closed_for_self_study_and_open_for_an_interviewer(book, built):
    closed, opened = (built[name].html.read_text("utf-8") for name in ("self-study", "interviewer"))
    assert closed.count("<details") == opened.count("<details") > 6 * len(book.cases)
    assert closed.count("<details open") == len(re.findall(r"<details[^>]* open", closed)) == 0
    assert len(re.findall(r"<details[^>]* open", opened)) == opened.count("<details")
    assert "<details" not in built["trainee"].html.read_text("utf-8").partition("<script>")[0]


def test_only_an_interviewer_has_scoring_sheets(book, built):
    for audience, sheets in (("self-study", 0), ("trainee", 0), ("interviewer", len(book.cases))):
        text = built[audience].html.read_text("utf-8")
        assert text.count('class="score"') == sheets
        assert text.count("<textarea") == (0 if sheets else len(book.cases))


# --- the page -------------------------------------------------------------------------------------------------------


def test_a_page_has_its_cases_in_the_order_of_levels_and_an_index_of_them(book, built):
    text = built["self-study"].html.read_text("utf-8")
    levels = [case.level for case in book.cases]
    assert levels == sorted(levels)
    headings = re.findall(r'<h2 id="case-([\w-]+)">', text)
    assert headings == [case.id for case in book.cases]
    index = text.partition('class="section section-training-index"')[2].partition("</table>")[0]
    assert re.findall(r'href="#case-([\w-]+)"', index) == headings
    assert len(set(re.findall(r' id="([^"]+)"', text))) == len(re.findall(r' id="([^"]+)"', text))


def test_one_case_needs_no_index(tmp_path, in_repository):
    parameters = {"cases": ["overload"], "level": "L2", "audience": "trainee"}
    with pytest.raises(PdkitError, match="level L2: no case is for it"):
        report.build("training", out=tmp_path, parameters=parameters, engine=inprocess.NAME)
    parameters |= {"level": "L3"}
    made = report.build("training", out=tmp_path, parameters=parameters, engine=inprocess.NAME)
    text = made.html.read_text("utf-8")
    assert text.count("<article ") == 1
    assert "<th" not in text.partition("<script>")[0]
    assert made.verdicts == ["1 case for trainee"]


def test_every_synthetic_case_says_so_on_its_page(book, built):
    for one in built.values():
        assert one.html.read_text("utf-8").count("SYNTHETIC LOGS") == len(book.cases)
        assert one.notebook.read_text("utf-8").count("SYNTHETIC LOGS") >= len(book.cases)


def test_the_page_fetches_nothing_and_has_no_charts_to_draw(built):
    for one in built.values():
        text = one.html.read_text("utf-8")
        assert not re.search(r"<(?:script|img|link|iframe)[^>]* (?:src|href)=", text)
        assert "vegaEmbed=" not in text
        assert "action=" not in text
        assert len(text) < 400_000


def test_the_quiz_knows_the_truth_in_self_study_alone(book, built):
    forms = re.findall(r"<form [^>]*>", built["self-study"].html.read_text("utf-8"))
    runs = [run for case in book.cases for run in case.runs]
    assert len(forms) == len(runs) >= 10
    assert all("data-verdict=" in form and "data-lines=" in form for form in forms)
    told = {re.search(r'data-verdict="([^"]*)"', form)[1] for form in forms}
    assert told == set(CHOICES)


def test_the_notebook_takes_no_logs(tmp_path, in_repository):
    with pytest.raises(PdkitError, match="training: takes no logs, and 1 were given"):
        report.build("training", ["data/real-client"], out=tmp_path, engine=inprocess.NAME)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".."])
def test_a_report_s_other_name_is_a_name(tmp_path, name, in_repository):
    with pytest.raises(PdkitError, match="is no name for a report"):
        report.build("training", out=tmp_path, saved_as=name or "/", engine=inprocess.NAME)


def test_the_files_take_the_name_that_is_asked_for(built):
    assert [path.name for path in files(built["trainee"])] == [
        "training-trainee.html", "training-trainee.json", "training-trainee.ipynb",
    ]  # fmt: skip
    nbformat.validate(nbformat.read(built["trainee"].notebook, as_version=4))


def test_what_a_log_or_a_case_says_is_never_markup(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "bench.log").write_text(f"bash: {EVIL}: No such file or directory\n", "utf-8")
    case = tmp_path / "mine" / "case.toml"
    case.parent.mkdir()
    top = "\n".join(f"{name} = '''{EVIL}'''" for name in ("title", "setup", "question", "short_answer"))
    case.write_text(
        f"{top}\nroles = ['''{EVIL}''']\nlevel = 'L2'\nsynthetic = false\nrules = ['PD401']\n"
        f"read_next = ['''{EVIL}''']\n"
        "[[run]]\nname = 'a'\nlogs = '../logs'\nverdict = 'no measured result'\nlines = ['x']\n"
        f"because = '''{EVIL}'''\n[[evidence]]\nname = 'x'\nfile = 'a/bench.log'\nline = 1\nholds = 'bash'\n"
        f"[[step]]\nsays = '''{EVIL}'''\nline = 'x'\n[[follow_up]]\nlevel = 'L2'\nquestion = '''{EVIL}'''\n"
        f"must_say = '''{EVIL}'''\n[[wrong]]\nclaim = '''{EVIL}'''\nwhy = '''{EVIL}'''\n".replace("alert(1)", "alert()")
        .replace("alert(2)", "alert()"),
        "utf-8",
    )  # fmt: skip
    evil = book_of([str(case.parent)], audience="self-study")
    for part in (training(evil), training_index(evil)):
        page = part._repr_html_()
        assert "<script" not in page
        assert "<img" not in page
    text = formats.markdown(evil.cases[0], audience="self-study")
    assert "````text\n> " in text  # the fence is longer than what the log holds


# --- the other formats ----------------------------------------------------------------------------------------------


def printed(*call: str) -> str:
    done = CliRunner().invoke(main, ["case", *call])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_case_as_markdown(in_repository):
    text = printed("overload")
    assert text.startswith("# Faster under more load\n\nL3 senior; ")
    assert "**SYNTHETIC LOGS: made by a program, not recorded**" in text
    assert re.search(r"^>    17 Successful requests: +480$", text, re.MULTILINE)
    assert text.count("<details><summary>") == text.count("</details>") == 6
    assert "- **rush**: no measured result. Of 800 requests that were sent, 480 completed" in text


def test_a_trainee_s_markdown_and_notebook_hold_no_answer(book, in_repository):
    (case,) = (one for one in book.cases if one.id == "overload")
    for form in ("markdown", "ipynb"):
        text = without_marks(" ".join(printed("overload", "--audience", "trainee", "--format", form).split()))
        assert [piece for piece in answers(case) if without_marks(piece) in text] == []
        assert "Your answer" in text


def test_a_case_as_a_notebook(in_repository):
    content = nbformat.reads(printed("overload", "--format", "ipynb", "--audience", "interviewer"), as_version=4)
    nbformat.validate(content)
    assert content.metadata.title == "Faster under more load"
    assert not any("<details>" in cell.source for cell in content.cells)
    assert any(cell.source.startswith("## Full answer, line by line") for cell in content.cells)


def test_a_wrong_call_is_one_sentence(in_repository):
    done = CliRunner().invoke(main, ["case", "overlod"])
    assert done.exit_code == 2
    assert "did you mean overload?" in done.output
    assert "Traceback" not in done.output


def test_make_training_writes_the_three_pages():
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    rule = makefile.partition("\ntraining:")[2].partition("\n\n")[0]
    assert re.findall(r"--as (\S+)", rule) == [f"training-{audience}" for audience in casebook.AUDIENCES]
    assert "reports/training-self-study.html" in rule


def test_a_report_of_its_own_kernel(tmp_path):
    """As `make training` makes it, once."""
    call = ["report", "training", "--out", str(tmp_path), "--as", "one", "-p", 'cases=["background-log"]']
    done = subprocess.run(
        [sys.executable, "-m", "pdkit", *call], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"1 case for self-study\n{tmp_path}/one.html\n"), done.stderr
