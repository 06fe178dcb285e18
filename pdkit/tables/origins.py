"""Where a page comes from: files, parameters, versions; and ten words that it uses."""

import platform
import tomllib
from collections.abc import Iterator

import polars as pl

from pdkit import __version__
from pdkit.results import Judgement
from pdkit.tables.layout import TEMPLATES, Cell, Column, Fold, Group, Part, Section, Table, Words
from pdkit.units import plural, show


def sources(judgement: Judgement) -> Section:
    """Every file with its reader, size and hash; what was not read, with the reason; lines that nobody understood."""
    read = judgement.evidence.sources.filter(pl.col("reader").is_not_null())
    others = judgement.evidence.sources.filter(pl.col("reader").is_null())
    unread = judgement.evidence.unread
    parts: list[Part] = (
        [Table("Files read", _FILE_COLUMNS, tuple(_files(read)))] if read.height else [Words("No file was read.")]
    )
    if others.height:
        parts.append(
            Fold(
                f"{plural(others.height, 'file')} not read",
                (Table("Files not read", _FILE_COLUMNS, tuple(_files(others))),),
            )
        )
    if unread.height:
        rows = tuple(
            (Cell(f"{row['source_file']}:{row['source_line']}", "code"), Cell(row["reason"]), Cell(row["text"], "code"))
            for row in unread.iter_rows(named=True)
        )
        parts.append(
            Fold(
                f"{plural(unread.height, 'line')} not understood",
                (
                    Table(
                        "Lines not understood",
                        (Column("Line"), Column("Why"), Column("How it begins")),
                        (Group("", rows),),
                    ),
                ),
            )
        )
    return Section("sources", tuple(parts))


_FILE_COLUMNS = (
    Column("File and sha256"),
    Column("Read as"),
    Column("Bytes", number=True),
    Column("Rows", number=True),
)


def _files(frame: pl.DataFrame) -> Iterator[Group]:
    for (experiment,), files in frame.group_by("experiment", maintain_order=True):
        rows = (
            (
                Cell(row["path"], "code", (row["sha256"] or "",)),
                Cell(
                    row["reader"] or f"not read: {row['reason']}",
                    "text",
                    (row["reason"],) if row["reader"] and row["reason"] else (),
                ),
                Cell(show(row["bytes"]), "number"),
                Cell(show(row["rows"]), "number"),
            )
            for row in files.iter_rows(named=True)
        )
        yield Group(str(experiment), tuple(rows))


# parameters that name files, or quote somebody
_OF_THE_HOUSE = ("paths", "baseline", "claim", "machine", "thresholds", "waivers")


def versions(judgement: Judgement, **parameters: object) -> Section:
    """What the page was made with and how it was asked for: the same logs and these give the same page."""
    hidden = _OF_THE_HOUSE if parameters.get("redact") else ()
    asked = tuple(
        (Cell(name, "head"), Cell("[redacted]" if value and name in hidden else _parameter(value), "code"))
        for name, value in parameters.items()
    )
    made = (
        ("pdkit", __version__),
        ("polars", pl.__version__),
        ("Python", platform.python_version()),
        ("Rules", str(judgement.results["rule"].n_unique())),
    )
    groups = (
        Group("Parameters", asked),
        Group("Versions", tuple((Cell(name, "head"), Cell(value, "code")) for name, value in made)),
    )
    return Section(
        "versions",
        (
            Table(
                "Parameters and versions",
                (Column("Name"), Column("Value")),
                tuple(group for group in groups if group.rows),
            ),
        ),
    )


def _parameter(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)


def glossary() -> Section:
    """Ten words for readers who do not serve models."""
    words = tomllib.loads((TEMPLATES / "glossary.toml").read_text("utf-8"))
    rows = tuple((Cell(word, "head"), Cell(meaning)) for word, meaning in words.items())
    return Section(
        "glossary",
        (
            Fold(
                "Ten words for readers who do not serve models",
                (Table("Glossary", (Column("Word"), Column("Meaning")), (Group("", rows),)),),
            ),
        ),
    )
