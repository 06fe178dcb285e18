"""What pdkit needs and ships is said in pyproject.toml; environment.yml, requirements.lock and the wheel agree."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pdkit import casebook

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")

RUNTIME = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
JUPYTER = [Requirement(line) for line in PYPROJECT["project"]["optional-dependencies"]["jupyter"]]
DEV = [Requirement(line) for line in PYPROJECT["dependency-groups"]["dev"]]


def locked_versions(name: str) -> list[str]:
    """The versions that the lock has of a package; more than one where Pythons differ."""
    return re.findall(rf"^{re.escape(name)}==(\S+)", LOCK, flags=re.MULTILINE)


def test_conda_users_get_the_same_dependencies():
    wanted = {r.name: r.specifier for r in RUNTIME + JUPYTER}
    wanted["python"] = SpecifierSet(PYPROJECT["project"]["requires-python"])

    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *packages, pip, from_pip = environment["dependencies"]
    named = {r.name: r.specifier for r in map(Requirement, packages)}

    assert named == wanted
    assert (pip, from_pip) == ("pip", {"pip": ["-e ."]})  # the project itself; pip finds the rest already there
    assert environment["channels"] == ["conda-forge", "nodefaults"]


@pytest.mark.parametrize("requirement", RUNTIME + JUPYTER + DEV, ids=lambda r: r.name)
def test_the_lock_has_every_dependency_in_its_range(requirement):
    versions = locked_versions(requirement.name)
    assert versions, f"requirements.lock: no {requirement.name}; run `make lock`"
    assert all(version in requirement.specifier for version in versions), versions


def test_the_lock_names_no_address_and_no_folder():
    pin = r"[a-z0-9-]+==[^\s/]+( ; [A-Za-z0-9_.=<>!'()* -]+)? \\"
    expected = rf"({pin}|    --hash=sha256:[0-9a-f]{{64}}( \\)?|\s*#.*)"
    assert [line for line in LOCK.splitlines() if not re.fullmatch(expected, line)] == []
    assert not re.search(r"://|[#\s]/|--(extra-)?index|--find-links", LOCK)


def test_jupyterlab_is_an_extra_and_nothing_that_a_report_needs():
    """Beside it jsonschema, so altair, papermill and nbconvert too, import 1.1 s later in every process."""
    assert not {"jupyter", "jupyterlab", "notebook"} & {r.name for r in RUNTIME + DEV}


def test_the_wheel_ships_the_package_the_notebooks_and_the_cases(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    package = [p for p in (ROOT / "pdkit").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    notebooks = (ROOT / "notebooks").glob("*.ipynb")
    wanted = {p.relative_to(ROOT).as_posix() for p in package} | {f"pdkit/notebooks/{p.name}" for p in notebooks}
    logs = [run.logs for path in casebook.known().values() for run in casebook.read(path).runs]
    folders = [ROOT / "data" / "cases", *logs]
    cases = {p.resolve() for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert shipped == wanted | {f"pdkit/{p.relative_to(ROOT).as_posix()}" for p in cases}
