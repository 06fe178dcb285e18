"""Generated pages are fresh, links lead somewhere, and what the README says to run, runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pdkit.catalogue import pages
from pdkit.rules import CHECKS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_fresh(name: str):
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run `make docs`"


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_links_lead_to_files(page: Path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def commands() -> list[str]:
    """The `pdkit` calls of the README's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(".venv/bin/pdkit")]


@pytest.mark.parametrize("command", commands())
def test_what_the_readme_says_to_run_runs(command: str, tmp_path: Path):
    words = shlex.split(command.replace("--out reports", f"--out {shlex.quote(str(tmp_path))}"))
    done = subprocess.run(
        [sys.executable, "-m", "pdkit", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if "check" in words else 0), done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr


def test_the_readme_opens_with_the_two_commands():
    first = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make report", "make test"]


def test_the_notebook_example_runs():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no measured result" in done.stdout


def test_the_changelog_counts_the_rules_right():
    assert f"{len(CHECKS)} rules" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_no_page_names_an_address_to_fetch_from():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        assert "http://" not in page.read_text("utf-8"), page
