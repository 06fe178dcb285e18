"""The lines of a source that a report cites, as they may be shown: no key, no prompt, no answer.

A line of a log is quoted, with the lines around it. A line of a record is not: its numbers stand for it.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from pdkit.source import Source, masked, quoted, without_texts

CONTEXT = 3  # lines before and behind a cited one
KEPT_CHARS = 8192  # of a line: its beginning and its end; a key that is cut there reaches into nothing that is shown
_RECORDS = re.compile(rb"\s*(?:\[\s*)?\{")  # how a file of JSON begins; behind the bracket of a clock is no brace
_PRINTED = re.compile(rb"\s*\{\s*\n")  # one record over many lines: evidence cites its first
_KEY = r"[A-Za-z_][\w.-]{0,63}"  # anything else may be somebody's text
_NUMBER_LINE = re.compile(rf'\s*"{_KEY}"\s*:\s*(?:-?\d[\d.eE+-]*|-?Infinity|NaN|null|true|false)\s*,?\s*')
_WORDS = ("backend", "protocol", "dataset_name", "model", "model_path", "quantization", "version", "dtype")
_ERRORS = "errors"  # of the requests: the one text that evidence keeps
_NUMBER = re.compile(r"[+-]?(?:inf|infinity|nan)|trace|-?\d{1,20}(?:\.\d{1,20})?", re.IGNORECASE)  # as a text
_KEY_OF_SOMEBODY = "***"  # what `masked` makes of it
_LARGEST = 1e300  # sums of these are still numbers
_LONGEST_NUMBER = 40  # of digits: what is longer is no count of anything
_DEEPEST = 4  # objects within objects: a server's own account of itself has three
_MOST_FIELDS = 2000  # a server's account has some 400 numbers

Cited = Mapping[int, set[int]]
Cell = str | int | float | bool | None
Fields = dict[str, Cell]


@dataclass(frozen=True)
class Quote:
    """One line of a source: its text, or what stands for it.

    `chars`, `bytes` and `sha256` are those of the whole line, without its end.
    """

    line: int
    cited: bool
    text: str | None = None
    chars: int | None = None
    bytes: int | None = None
    sha256: str | None = None
    fields: Fields | None = None
    items: Mapping[str, Fields] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        """All in it that is a text, names of fields too."""
        parts = [
            part for fields in (self.fields or {}, *self.items.values()) for pair in fields.items() for part in pair
        ]
        return [part for part in (self.text, *parts) if isinstance(part, str)]

    def saying(self, instead: Mapping[str, str]) -> "Quote":
        """The same with other texts."""

        def changed(fields: Fields) -> Fields:
            return {
                instead[name]: instead[value] if isinstance(value, str) else value for name, value in fields.items()
            }

        return replace(
            self,
            text=None if self.text is None else instead[self.text],
            fields=None if self.fields is None else changed(self.fields),
            items={item: changed(fields) for item, fields in self.items.items()},
        )


def quotes(source: Source, cited: Cited) -> list[Quote]:
    """The cited lines, and those around them, in the file's order; of a record the cited entries of its arrays too.

    A cited line that is not there has nothing but its number.
    """
    found = [*(_of_records if _RECORDS.match(source.head) else _of_log)(source, cited)]
    absent = set(cited) - {quote.line for quote in found}
    return sorted([*found, *(Quote(line, cited=True) for line in absent)], key=lambda quote: quote.line)


def ends(text: str, chars: int) -> str:
    """A long text without its middle: a line of progress bars ends with what counts."""
    return text if len(text) <= chars else f"{text[: chars // 2]} […] {text[-chars // 2 :]}"


# --- a log ----------------------------------------------------------------------------------------------------------


def _of_log(source: Source, cited: Cited) -> Iterator[Quote]:
    around = sorted({near for line in cited for near in range(line - CONTEXT, line + CONTEXT + 1)})
    chosen = source.asked(lambda lines: lines.filter(pl.col("line").is_in(around)))
    for line, text in chosen.iter_rows():
        whole = text.rstrip("\r")
        yield Quote(line, line in cited, text=masked(ends(without_texts(whole), KEPT_CHARS)), chars=len(whole))


# --- a record -------------------------------------------------------------------------------------------------------


def _of_records(source: Source, cited: Cited) -> Iterator[Quote]:
    """Cited lines alone: around a record stand other records."""
    is_printed = _PRINTED.match(source.head) is not None
    for number, content in source.buffers():
        if number in cited and not (is_printed and number == 1):
            yield _of_record(number, bytes(content), cited[number])
        if number >= max(cited):
            break
    if is_printed and 1 in cited:
        (_, content), *_ = source.whole()
        yield _of_record(1, bytes(content), cited[1])


def _of_record(number: int, content: bytes, items: set[int]) -> Quote:
    line = content.rstrip(b"\r\n")
    quote = Quote(number, cited=True, bytes=len(line), sha256=hashlib.sha256(line).hexdigest())
    text = line.decode("utf-8", errors="replace")
    if _NUMBER_LINE.fullmatch(text):
        return replace(quote, text=text)
    record = _record(text)
    of_requests = {str(item): dict(_of_request(record, item)) for item in sorted(items)}
    fields = dict(list(_numbers(record))[:_MOST_FIELDS])
    return replace(quote, fields=fields, items={item: said for item, said in of_requests.items() if said})


def _record(text: str) -> dict[str, object]:
    """The record, empty where the line is no whole one; Python's bare `NaN` and `Infinity` are read too."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _numbers(record: dict[str, object], above: str = "", depth: int = 1) -> Iterator[tuple[str, Cell]]:
    """Every number by its name, also within objects; a few words that say what was run; how long its arrays are."""
    for key, value in record.items():
        name = f"{above}{key}"
        if not re.fullmatch(_KEY, key):
            continue
        if isinstance(value, list):
            yield f"{name}.length", len(value)
        elif not isinstance(value, dict):
            yield from _cell(name, value, is_word=key in _WORDS)
        inside = {"": value} if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
        for at, one in inside.items() if depth < _DEEPEST else ():
            if isinstance(one, dict):
                yield from _numbers(one, f"{name}.{at}." if at != "" else f"{name}.", depth + 1)


def _cell(name: str, value: object, *, is_word: bool) -> Iterator[tuple[str, Cell]]:
    if value is not None and masked(f"{name}={value}") == f"{name}={_KEY_OF_SOMEBODY}":
        yield name, _KEY_OF_SOMEBODY
    elif value is None or isinstance(value, int | float):
        yield name, _plain(value)
    elif isinstance(value, str) and (is_word or _NUMBER.fullmatch(value)):
        yield name, quoted(value)


def _of_request(record: dict[str, object], item: int) -> Iterator[tuple[str, Cell]]:
    """What its arrays hold of one request: numbers, of gaps their count, sum and longest, of texts their length."""
    arrays = ((key, value[item]) for key, value in record.items() if isinstance(value, list) and item < len(value))
    for key, value in arrays:
        if not re.fullmatch(_KEY, key):
            continue
        if isinstance(value, str | list):
            yield f"{key}.{'chars' if isinstance(value, str) else 'length'}", len(value)
        if isinstance(value, list):
            times = [one for one in value if _is_finite(one)]
            yield f"{key}.sum", math.fsum(times) if len(times) == len(value) else None
            yield f"{key}.longest", max(times, default=None)
        else:
            yield from _cell(key, value, is_word=key == _ERRORS)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _LARGEST


def _plain(value: float | None) -> Cell:
    """JSON has no infinity."""
    return value if value is None or _is_finite(value) else str(value)[:_LONGEST_NUMBER]
