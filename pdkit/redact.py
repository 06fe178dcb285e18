"""Evidence fit to leave the house: hosts, addresses and paths give way to names that tell nothing."""

import re
from dataclasses import fields, replace
from pathlib import PurePosixPath

import polars as pl

from pdkit.evidence import Evidence
from pdkit.policy import Waiver

_FREE_TEXT = {
    "runs": ("ending", "model"),
    "requests": ("error",),
    "unread": ("text",),
    "sources": ("reason",),
    "experiments": ("model", "label", "end_marker", "gpu"),
    "events": ("subject", "text"),
    "settings": ("text",),
}
# what these may say as it stands; anything else may name a machine or a customer
_PLAIN = {"topology": (r"colocated|\d+p\d+d", "[topology]"), "dataset": (r"[\w.-]+", "[path]")}
_PATHS = {"runs": ("source_file",), "files": ("path", "source_file"), "sources": ("path",)}
_KEPT_SUFFIXES = {f".{s}" for s in ("log", "txt", "out", "err", "json", "jsonl", "toml", "gz", "zst", "md", "py", "sh")}
_DOMAINS = "com|net|org|io|ai|dev|cn|de|eu|local|lan|internal|corp|cluster|svc|example"
_HEX = "[0-9a-f]{1,4}"
_HIDDEN = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)]+", re.IGNORECASE), "[address]"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "[address]"),
    (re.compile(rf"(?<![\w:])(?:{_HEX}:){{3,7}}{_HEX}\b", re.IGNORECASE), "[address]"),
    (re.compile(rf"(?<![\w:])(?:{_HEX}(?::{_HEX})*)?::(?:{_HEX}(?::{_HEX})*)?(?![\w:])", re.IGNORECASE), "[address]"),
    (re.compile(r"[\w.+-]+@[A-Za-z][\w.-]*"), "[address]"),
    (re.compile(r"\bpods?/[\w.-]+"), "[host]"),
    (re.compile(r"(?<!\w)~[\w.-]*/[^\s'\"<>)]*"), "[path]"),
    (re.compile(r"(?<![\w./])/(?:[\w.+@-]+/)+[\w.+@-]*"), "[path]"),
    (re.compile(r"(?<![\w/.])[\w.+@-]+(?:/[\w.+@-]+){2,}/?"), "[path]"),  # Qwen/Qwen3-8B is none
    (re.compile(r"\b[A-Za-z]:\\[^\s'\"]+"), "[path]"),
    (re.compile(rf"\b[\w-]+(?:\.[\w-]+)*\.(?:{_DOMAINS})\b(?::\d+)?", re.IGNORECASE), "[host]"),
    (re.compile(r"\b(?=[\w.-]*[A-Za-z])[\w-]+(?:\.[\w-]+)*:\d{4,5}\b"), "[host]"),
    (re.compile(r"(?<=\bhost[ =:'])[\w.-]+|(?<=@)[\w-]+(?=[:~ ])", re.IGNORECASE), "[host]"),
)  # fmt: skip


def redacted(evidence: Evidence) -> Evidence:
    """The same evidence with files and folders numbered, and hosts, addresses and paths in free text masked.

    What a finding cites is still found by whoever has the logs: `sources` keeps each file's sha256.
    """
    paths = sorted({*evidence.sources["path"], *evidence.runs["source_file"], *evidence.files["path"]} - {None})
    file_names = {path: f"file-{number:02d}{_suffix(path)}" for number, path in enumerate(paths, 1)}
    homes = sorted({*evidence.sources["experiment"], *evidence.runs["experiment"]} - {None})
    home_names = {home: f"experiment-{number}" for number, home in enumerate(homes, 1)}
    tables = {}
    for field in fields(evidence):
        frame: pl.DataFrame = getattr(evidence, field.name)
        places = [name for name in ("source_file", "path") if name in frame.columns]
        free = [name for name in _FREE_TEXT.get(field.name, ()) if name in frame.columns]
        tables[field.name] = frame.with_columns(
            *(pl.col(name).replace(file_names) for name in places),
            *(pl.col(name).replace(home_names) for name in ("experiment",) if name in frame.columns),
            *(pl.Series(name, [masked(text) for text in frame[name]], dtype=pl.String) for name in free),
            *(
                pl.when(pl.col(name).is_null() | pl.col(name).str.contains(f"^(?:{plain})$"))
                .then(name)
                .otherwise(pl.lit(shown))
                .alias(name)
                for name, (plain, shown) in _PLAIN.items()
                if name in frame.columns
            ),
            *(_numbered(frame, name, file_names) for name in ("seen_id", "instance") if name in frame.columns),
        )
    return replace(evidence, **tables)


def redacted_waivers(waivers: tuple[Waiver, ...]) -> tuple[Waiver, ...]:
    """The same waivers with hosts, addresses and paths masked in what people wrote."""
    return tuple(
        replace(waiver, owner=masked(waiver.owner) or "", reason=masked(waiver.reason) or "") for waiver in waivers
    )


def _suffix(path: str) -> str:
    """What a file is, but not what someone added to its name."""
    suffix = PurePosixPath(path).suffix
    return suffix if suffix in _KEPT_SUFFIXES else ""


def masked(text: str | None) -> str | None:
    """A text without hosts, addresses and paths; a model's own name stays."""
    if text is None:
        return None
    if re.fullmatch(r"/\S+", text):
        return PurePosixPath(text).name or "[path]"
    for pattern, shown in _HIDDEN:
        text = pattern.sub(shown, text)
    return text


def _numbered(frame: pl.DataFrame, column: str, names: dict[str, str]) -> pl.Expr:
    """`seen_id` and `instance` begin with the file's name."""
    parts = ((whole, *whole.partition("#")) for whole in frame[column].drop_nulls().unique().sort())
    return pl.col(column).replace({whole: f"{names.get(path, path)}{mark}{rest}" for whole, path, mark, rest in parts})
