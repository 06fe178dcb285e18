"""A report is whole or not there, the same from the same logs, and asks nobody for anything."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

import pdkit
from pdkit import report
from pdkit.charts import theme
from pdkit.errors import PdkitError
from pdkit.formats import json as as_json
from pdkit.judge import judge
from pdkit.load import load
from tests import inprocess

HEALTHY = "data/real-client/healthy"
SPLIT = "data/split-l4-qwen3-8b"
NAME = "sweep_review"
REPOSITORY = Path(__file__).parents[1]
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}


def build(out: Path, *paths: str, name: str = NAME, **parameters: report.Value) -> report.Report:
    return report.build(name, paths or (HEALTHY,), out=out, parameters=parameters, engine=inprocess.NAME)


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        return build(tmp_path_factory.mktemp("split"), SPLIT, title="A split server")


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A notebook of the given cells, in a folder where reports are looked for."""

    def written(*sources: str, parameters: str = "paths: list[str] = []\ntitle: str = 'T'") -> str:
        cells = [nbformat.v4.new_code_cell(source) for source in (parameters, *sources)]
        cells[0].metadata.tags = ["parameters"]
        made = nbformat.v4.new_notebook(cells=cells)
        made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        made.metadata.language_info = {"name": "python"}
        folder = tmp_path / "notebooks"
        folder.mkdir()
        nbformat.write(made, folder / "mine.ipynb")
        monkeypatch.setattr(report, "_NOTEBOOKS", (folder,))
        return "mine"

    return written


class Page(HTMLParser):
    """What a browser would fetch, the headings, and the scripts by type."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.scripts = 0
        self._heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(v) for k, v in attrs if (tag, k) in FETCHED and not str(v).startswith(("data:", "#"))]
        self.ids += [str(v) for k, v in attrs if k == "id"]
        self.scripts += tag == "script" and "type" not in dict(attrs)
        self._heading = tag == "h2" or self._heading

    def handle_endtag(self, tag: str) -> None:
        self._heading = self._heading and tag != "h2"

    def handle_data(self, data: str) -> None:
        if self._heading and data != "¶":
            self.headings.append(data)


# --- what is written ------------------------------------------------------------------------------------------------


def test_a_report_is_a_page_a_document_and_the_notebook(split):
    assert [path.name for path in (split.html, split.json, split.notebook)] == [
        "sweep_review.html", "sweep_review.json", "sweep_review.ipynb",
    ]  # fmt: skip
    assert sorted(path.name for path in split.html.parent.iterdir()) == sorted(
        path.name for path in (split.html, split.json, split.notebook)
    )
    nbformat.validate(nbformat.read(split.notebook, as_version=4))


def test_the_document_is_that_of_check(split, in_repository):
    assert split.json.read_text("utf-8") == as_json.text(judge(load([SPLIT])))


def test_the_verdicts_for_a_console_are_the_conclusions(split):
    assert len(split.verdicts) == 4
    assert any("no measured result at 16 and 32 users" in line for line in split.verdicts)


def test_the_page_fetches_nothing_and_runs_its_own_two_scripts_only(split):
    text = split.html.read_text("utf-8")
    page = Page(text)
    assert page.fetched == []
    assert page.scripts == 2
    policy = re.search(r'content="(default-src [^"]*)" http-equiv="Content-Security-Policy"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("'sha256-") == 2
    assert "'unsafe-inline'" not in policy.split(";")[1]
    assert text.count('class="chart-spec"') == text.count('class="chart-still"') == 6


def test_the_page_has_its_sections_in_order(split):
    page = Page(split.html.read_text("utf-8"))
    assert page.headings == [
        "Verdict", "No measured result", "Measured", "Doubts", "Charts", "Rules", "What could not be checked",
        "Sources", "Parameters and versions", "Glossary",
    ]  # fmt: skip
    assert len(page.ids) == len(set(page.ids))
    assert "<title>A split server</title>" in split.html.read_text("utf-8")


def test_the_heading_no_measured_result_is_there_without_one(tmp_path, in_repository):
    text = build(tmp_path).html.read_text("utf-8")
    assert "No measured result" in Page(text).headings
    assert "No load point was refused, and none is missing." in text


def test_code_is_not_on_the_page(split):
    assert "tables.banner(" not in split.html.read_text("utf-8")


def test_the_same_logs_give_the_same_bytes(tmp_path, in_repository):
    one, other = build(tmp_path / "one"), build(tmp_path / "other")
    for kind in ("html", "json", "notebook"):
        assert getattr(one, kind).read_bytes() == getattr(other, kind).read_bytes()


def test_a_kernel_writes_what_the_tests_engine_writes(tmp_path, in_repository):
    real = report.build(NAME, [HEALTHY], out=tmp_path / "real")
    assert real.html.read_bytes() == build(tmp_path / "fast").html.read_bytes()
    text = real.notebook.read_text("utf-8")
    assert "start_time" not in text
    assert str(tmp_path) not in text


def test_a_redacted_report_names_no_path(tmp_path, in_repository):
    copy = tmp_path / "secret-host"
    copy.mkdir()
    for file in Path(HEALTHY).iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    made = build(tmp_path / "out", str(copy), redact=True)
    for file in (made.html, made.json, made.notebook):
        assert "secret-host" not in file.read_text("utf-8")


def test_a_log_line_that_is_markup_stays_text(tmp_path):
    log = tmp_path / "<b>evil" / "bench.log"
    log.parent.mkdir()
    log.write_text("bash: <script>alert(1)</script></script><!--<script>: No such file or directory\n", "utf-8")
    text = build(tmp_path / "out", str(log)).html.read_text("utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert Page(text).scripts == 2


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"titel": "x"}, "'titel' is not known; did you mean title?"),
        ({"title": 3}, "parameter title is 3; it takes str"),
        ({"redact": "yes"}, "parameter redact is 'yes'; it takes bool"),
        ({"thresholds": []}, r"parameter thresholds is \[\]; it takes str | None"),
        ({"paths": ["x"]}, "the logs are given twice"),
    ],
)
def test_a_wrong_parameter_is_an_error(tmp_path, in_repository, parameters, says):
    with pytest.raises(PdkitError, match=says):
        build(tmp_path, **parameters)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_report_names_the_nearest(tmp_path):
    with pytest.raises(PdkitError, match="did you mean sweep_review"):
        build(tmp_path, name="sweep_revue")


def test_a_path_that_is_not_there_is_said_before_anything_runs(tmp_path):
    with pytest.raises(PdkitError, match="nowhere: no such file or folder"):
        build(tmp_path, "nowhere")


def test_a_notebook_that_fails_leaves_no_report_not_even_an_older_one(tmp_path, notebook, in_repository):
    name = notebook("1 / 0")
    out = tmp_path / "out"
    out.mkdir()
    for suffix in (".html", ".json", ".ipynb"):
        (out / f"mine{suffix}").write_text("older")
    with pytest.raises(PdkitError) as caught:
        build(out, name=name)
    assert "cell 3 failed with ZeroDivisionError" in str(caught.value)
    assert "no report was written; the older mine.html was removed with it" in str(caught.value)
    assert list(out.iterdir()) == []


def test_a_wrong_call_inside_a_notebook_keeps_its_sentence(tmp_path, notebook, in_repository):
    name = notebook("import pdkit\npdkit.load('nowhere')")
    with pytest.raises(PdkitError, match=r"^nowhere: no such file or folder; no report was written$"):
        build(tmp_path / "out", name=name)


def test_a_notebook_without_a_judgement_is_no_report(tmp_path, notebook, in_repository):
    with pytest.raises(PdkitError, match="it hands over 0 judgements"):
        build(tmp_path / "out", name=notebook("1"))
    assert list((tmp_path / "out").iterdir()) == []


def test_thresholds_are_read_and_a_wrong_file_is_an_error(tmp_path, in_repository):
    file = tmp_path / "thresholds.toml"
    file.write_text("[PD508]\nsuspect = { below = 1e-9, instead_of = 60 }\n")
    assert build(tmp_path / "out", thresholds=str(file)).html.exists()
    with pytest.raises(PdkitError, match="no such thresholds file"):
        build(tmp_path / "out", thresholds="nowhere.toml")
    assert list((tmp_path / "out").iterdir()) == []


# --- parts of it ----------------------------------------------------------------------------------------------------


def test_parameters_are_read_without_running_the_notebook():
    declared = report.parameters_of(NAME)
    assert {name: (p.default, p.type) for name, p in declared.items()} == {
        "paths": ([SPLIT], "list[str]"),
        "title": ("Sweep review", "str"),
        "thresholds": (None, "str | None"),
        "waivers": (None, "str | None"),
        "slos": ([], "list[str]"),
        "machine": (None, "str | None"),
        "redact": (False, "bool"),
    }


def test_a_notebook_has_a_title():
    assert report.title(NAME) == "Sweep review"
    assert NAME in report.known()


def test_the_bundle_is_kept_and_made_again_where_it_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = report.vega_bundle()
    assert "vegaEmbed" in first
    assert "</script" not in first.lower()
    (kept,) = (tmp_path / "cache" / "pdkit").iterdir()
    assert kept.read_text("utf-8") == first
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert report.vega_bundle() == first


def test_the_page_and_its_charts_have_the_same_colours_for_verdicts():
    style = (report.TEMPLATE / "pdkit" / "static" / "page.css").read_text("utf-8")
    assert f"--measured: {theme.VERDICT_COLOURS['measured']}" in style
    assert report.VEGA == theme.MIME


# --- notebooks and the front door -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((REPOSITORY / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_committed_clean_and_without_logic(path):
    content = nbformat.read(path, as_version=4)
    nbformat.validate(content)
    assert content.metadata.kernelspec.name == "python3"
    assert content.metadata.language_info.name == "python"
    assert content.metadata.title
    assert len({cell.id for cell in content.cells}) == len(content.cells)
    for cell in content.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        if cell.cell_type == "code":
            assert not re.search(r"^\s*(def|class|for|while|if|try|with)\b", cell.source, re.MULTILINE), cell.source
    clean = subprocess.run(
        [sys.executable, "-m", "nbstripout", "--keep-id", "--verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert clean.returncode == 0, clean.stdout + clean.stderr


def test_importing_pdkit_loads_nothing_heavy():
    code = "import sys, pdkit, pdkit.report; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True)
    assert not {"polars", "papermill", "nbconvert", "altair", "pandas", "jinja2"} & set(json.loads(found.stdout))


def test_the_front_door_gives_functions_whatever_was_imported_first():
    code = (
        "import pdkit.judge, pdkit.load, pdkit; print(callable(pdkit.load), callable(pdkit.judge), pdkit.tables.banner)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("True True <function banner")


def test_the_front_door_says_what_it_has():
    assert {"load", "judge", "charts", "tables", "report"} <= set(dir(pdkit))
    with pytest.raises(AttributeError, match="it has __version__"):
        _ = pdkit.lode


@pytest.mark.parametrize("notebook_name", ["sweep_review", "postmortem"])
def test_every_parameter_of_a_report_is_shown_on_its_page(notebook_name):
    notebook = nbformat.read(Path(__file__).parents[1] / "notebooks" / f"{notebook_name}.ipynb", as_version=4)
    shown = next(cell.source for cell in notebook.cells if cell.id == "versions")
    for name in report.parameters_of(notebook_name):
        assert f"{name}={name}" in shown
