"""One page over all reports of a folder: what each is called and concludes, with a link; plain HTML, no scripts."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

from pdkit.errors import PdkitError
from pdkit.tables.layout import template

NAME = "index.html"
_LINES = 8  # of what a report concludes; the rest is in it
_HEAD = 200_000  # characters of a page in which its title stands: behind the styles, before the scripts


@dataclass(frozen=True)
class Listed:
    """One report."""

    file: str
    title: str
    written: str
    lines: tuple[str, ...]
    more: int


def write_index(folder: str | Path) -> Path:
    """Write `index.html` into a folder of reports, the newest first.

    Raises:
        PdkitError: no such folder, or none of pdkit's reports in it.
    """
    home = Path(folder)
    if not home.is_dir():
        raise PdkitError(f"{home}: no such folder; name the one that holds the reports")
    found = [one for page in sorted(home.glob("*.html")) if page.name != NAME and (one := _listed(page))]
    if not found:
        raise PdkitError(f"{home}: no report in it; `pdkit report NAME … --out {home}` writes some")
    page = home / NAME
    ordered = sorted(found, key=lambda one: (one.written, one.file), reverse=True)
    page.write_text(
        template("index.html.j2").render(reports=ordered, folder=home.resolve().name), "utf-8", newline="\n"
    )
    return page


def _listed(page: Path) -> Listed | None:
    """A report of pdkit has a page and a document of the same name; anything else is left out."""
    machines = page.with_suffix(".json")
    try:
        said = json.loads(machines.read_text("utf-8"))
        text = page.read_text("utf-8")[:_HEAD]
    except (OSError, ValueError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("conclusions"), list):
        return None
    title = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
    lines = [str(line) for line in said["conclusions"]]
    written = datetime.fromtimestamp(page.stat().st_mtime, UTC)
    return Listed(
        page.name,
        unescape(title[1]).strip() if title else page.stem,
        f"{written:%Y-%m-%d %H:%M} UTC",
        tuple(lines[:_LINES]),
        len(lines[_LINES:]),
    )
