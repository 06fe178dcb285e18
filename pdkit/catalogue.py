"""What there is, in words: rule pages, listings, and the generated pages of docs/ (`python -m pdkit.catalogue`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from pdkit import casebook
from pdkit.errors import PdkitError, one_of
from pdkit.evidence import PLACE, TABLES, UNPLACED
from pdkit.metrics import METRICS
from pdkit.parts import charts, readers, register_checks
from pdkit.rules import CHECKS, Check

_PACKAGE = Path(__file__).parent
DOCS = _PACKAGE.parent / "docs"
_MADE = "<!-- Made by `make docs` from the code: change it there. -->"
_SECTIONS = ("Why", "Next", "Source", "Exceptions")


def rule_page(rule_id: str) -> str:
    """The page of one rule, from its docstring and its bounds.

    Raises:
        PdkitError: no such rule.
    """
    register_checks()
    known = rule_id.upper()
    if known not in CHECKS:
        raise one_of("pdkit explain", rule_id, list(CHECKS))
    check = CHECKS[known]
    lines = [
        f"{check.id}  {check.title}",
        "",
        f"  {check.name}, of {check.family}; voids {' and '.join(check.voids)}",
        "",
    ]
    lines += [f"  {line}" for line in _bounds(check)]
    for section in _SECTIONS:
        if said := check.section(section):
            lines += ["", f"  {section}: {_sentence(said)}"]
    return "\n".join(lines) + "\n"


def listing(what: str) -> list[str]:
    """The parts of one kind, one a line: name and what it is."""
    register_checks()
    kinds: dict[str, Callable[[], list[tuple[str, str]]]] = {
        "readers": lambda: [(name, reader.title) for name, reader in readers().items()],
        "checks": lambda: [(rule, CHECKS[rule].title) for rule in sorted(CHECKS)],
        "charts": lambda: [(name, chart.question) for name, chart in charts().items()],
        "reports": lambda: [(path.stem, f"pdkit report {path.stem}{_takes(path)}") for path in notebooks()],
        "cases": lambda: [(name, _case(path)) for name, path in casebook.known().items()],
    }
    rows = kinds[what]()
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name.ljust(width)}  {said}" for name, said in rows]


def notebooks() -> list[Path]:
    """The notebooks that make reports: in the wheel inside the package, in the repository beside it."""
    folder = next((f for f in (_PACKAGE / "notebooks", _PACKAGE.parent / "notebooks") if f.is_dir()), None)
    if folder is None:
        raise PdkitError(f"{_PACKAGE}: no notebooks folder; install pdkit again")
    return sorted(folder.glob("*.ipynb"))


def _takes(notebook: Path) -> str:
    """Its logs, unless it declares no `paths`."""
    return " PATH…" if '"paths: ' in notebook.read_text("utf-8") else ""


def _case(path: Path) -> str:
    case = casebook.read(path)
    return f"{case.level}  {case.title}"


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:]


def _bounds(check: Check) -> Iterator[str]:
    """What each view looks at and where it fails."""
    for view in check.views:
        facts = ", ".join(dict.fromkeys(view.observed.meta.root_names()))
        bounds = "; ".join(f"{severity} unless {bound}" for severity, bound in view.bounds.items())
        of = f"share of requests, by {facts}" if view.grain == "request" else f"from {facts}"
        taken = f"; voids {' and '.join(view.voids)}" if view.voids else ""
        yield f"{bounds} ({of}{taken})"


# --- docs/ ----------------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """The generated pages by file name."""
    made = {"rules.md": _rules(), "formats.md": _formats(), "charts.md": _charts(), "tables.md": _tables()}
    return {name: "\n".join([_MADE, "", *lines]) + "\n" for name, lines in made.items()}


def _rules() -> list[str]:
    register_checks()
    lines = [
        "# Rules",
        "",
        "`pdkit explain PD101` prints one of these. A rule that could not look is *not evaluated*, never passed.",
        "",
    ]
    for rule_id in sorted(CHECKS):
        check = CHECKS[rule_id]
        lines += [f"## {check.id} {check.title}", "", f"`{check.name}` voids {' and '.join(check.voids)}.", ""]
        lines += [f"- {line}" for line in _bounds(check)] + [""]
        lines += [
            line
            for section in _SECTIONS
            if (said := check.section(section))
            for line in (f"**{section}.** {_sentence(said)}", "")
        ]
    return lines[:-1]


def _formats() -> list[str]:
    lines = ["# Formats", "", "A format is recognised by what a file holds, not by its name.", ""]
    for name, reader in readers().items():
        lines += [f"## {reader.title}", "", f"`{name}`", "", reader.doc, ""]
    return lines[:-1]


def _charts() -> list[str]:
    lines = [
        "# Charts",
        "",
        "Evidence charts may show claimed figures, and label them so; no other chart can reach one.",
        "",
    ]
    for name, chart in charts().items():
        lines += [
            f"## {chart.question}",
            "",
            f"`{name}`{', an evidence chart' if chart.evidence else ''}",
            "",
            chart.doc,
            "",
        ]
    return lines[:-1]


def _tables() -> list[str]:
    lines = ["# Tables and metrics", "", "Evidence is these tables; missing is null.", ""]
    for table, columns in TABLES.items():
        placed = columns | ({} if table in UNPLACED else PLACE)
        lines += [f"## {table}", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        lines += [
            f"| {name} | {column.dtype} | {column.unit} | {column.meaning} |" for name, column in placed.items()
        ] + [""]
    lines += ["## Metrics", "", "| name | unit | taken by a refusal that voids | meaning |", "|---|---|---|---|"]
    return lines + [f"| {m.name} | {m.unit} | {m.scope} | {m.title}: {m.meaning} |" for m in METRICS.values()]


def write(folder: Path = DOCS) -> None:
    """Write the generated pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages().items():
        (folder / name).write_text(content, "utf-8")


if __name__ == "__main__":
    write()
