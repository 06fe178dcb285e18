"""Imports point down; rooms on one floor have no door between them; third parties have rooms too."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pdkit"

FLOORS = [
    ("errors",),
    ("units", "source", "toml"),
    ("metrics", "evidence", "machines", "fitting", "signals"),
    ("results", "windows", "limits"),
    ("rules", "parts", "server_lines", "served", "casebook", "copies"),
    ("facts", "stats", "policy", "capacity", "views", "trend"),
    ("readers", "checks", "charts", "levels"),
    ("causes", "goodput", "verdicts", "conclusions", "sentences"),
    ("judge", "load", "redact", "findings", "quotes", "chain", "series"),
    ("compare", "bundle", "tables", "store"),
    ("postmortem", "weekly", "report", "index", "formats", "export", "catalogue", "calibrate", "cases", "sweep", "lab"),
    ("__init__",),
    ("cli",),
    ("__main__",),
]
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# `import pdkit` for its version is allowed from above the floor that it would stand on: it loads nothing
VERSION_ONLY = {"formats", "tables", "report", "calibrate", "cli", "bundle", "store", "weekly"}
ROOMS_OF_THIRD_PARTIES = {
    "altair": ("charts",),
    "papermill": ("report",),
    "nbconvert": ("report",),
    "pandas": ("tables",),
}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "report_template" not in path.parts]


def room(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imports(path: Path) -> list[str]:
    """Full names of the modules that a file imports, inside functions too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [
                f"{node.module}.{alias.name}" if node.module == "pdkit" else str(node.module) for alias in node.names
            ]
    return found


def test_every_module_has_a_floor():
    assert {room(path) for path in modules()} <= set(FLOOR_OF)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path):
    here = room(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "pdkit" or here == "__init__":
            continue
        there = parts[1] if len(parts) > 1 and parts[1] in FLOOR_OF else "__init__"
        if there == "__init__":
            assert here in VERSION_ONLY, f"{here} imports the front door"
            continue
        same_room = there == here
        assert same_room or FLOOR_OF[there] < FLOOR_OF[here], f"{here} imports {there}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_third_parties_stay_in_their_rooms(path: Path):
    for name in imports(path):
        rooms = ROOMS_OF_THIRD_PARTIES.get(name.split(".")[0])
        assert rooms is None or room(path) in rooms, f"{room(path)} imports {name}"


def test_no_exception_is_caught_unnamed():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                names = ast.unparse(node.type) if node.type else ""
                assert names not in ("", "Exception", "BaseException"), f"{path.name}:{node.lineno}"


def test_importing_pdkit_loads_nothing_heavy():
    heavy = ("polars", "papermill", "nbconvert", "altair", "pandas", "numpy")
    code = f"import sys, pdkit; print([m for m in {heavy!r} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_help_loads_nothing_heavy():
    heavy = ("polars", "papermill", "nbconvert", "altair", "pandas", "numpy")
    code = f"import sys\nimport pdkit.cli\nprint([m for m in {heavy!r} if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_the_page_on_architecture_names_every_module_on_its_floor():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| ([^|]+) \|", page, re.MULTILINE))
    shown = {name.strip("`/ "): int(floor) for floor, names in rows.items() for name in names.split(",")}
    assert shown == {room(path): FLOOR_OF[room(path)] for path in modules()}
