"""What the README says to put into CI parses, and the commands in it run."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
WORKFLOW, CONFIG = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
STEPS = WORKFLOW["jobs"]["believe"]["steps"]
LINES = [step["run"] for step in STEPS if step.get("run", "").startswith("pdkit ")]


def run(line: str, folder: Path, *, results: str) -> subprocess.CompletedProcess[str]:
    """The line in a shell, with this Python's pdkit and with results that ship."""
    (folder / "results").symlink_to(ROOT / results)
    pdkit = f"{shlex.quote(sys.executable)} -m pdkit"
    environment = {"PATH": "/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["/bin/sh", "-ec", line.replace("pdkit check", f"{pdkit} check", 1)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize(("results", "code"), [("data/real-client/healthy", 0), ("data/real-client/all-empty", 1)])
def test_a_step_of_the_workflow_runs(line, results, code, tmp_path):
    done = run(line, tmp_path, results=results)
    assert done.returncode == (0 if line.endswith("|| true") else code), done.stderr
    assert done.stderr == ""


def test_the_last_step_decides_and_the_others_leave_their_files(tmp_path):
    assert not LINES[-1].endswith("|| true")
    for number, line in enumerate(LINES):
        (tmp_path / "results").unlink(missing_ok=True)
        done = run(line, tmp_path, results="data/real-client/all-empty")
        assert bool(done.stdout) == (number == len(LINES) - 1)
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("### pdkit: 0 of ")
    (uploaded,) = [step["with"]["sarif_file"] for step in STEPS if "upload-sarif" in step.get("uses", "")]
    assert (tmp_path / uploaded).read_text("utf-8").startswith("{")


def test_the_hook_that_the_readme_names_is_there_and_runs(tmp_path):
    (repo,) = CONFIG["repos"]
    (wanted,) = repo["hooks"]
    assert wanted["id"] == HOOK["id"]
    assert {"id", "name", "entry", "language"} <= set(HOOK)
    line = shlex.join([*shlex.split(HOOK["entry"]), *wanted["args"]])
    assert run(line, tmp_path, results="data/real-client/healthy").returncode == 0


def test_what_the_hook_starts_is_a_script_of_the_package():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert shlex.split(HOOK["entry"])[0] in scripts
