"""One file as readers see it: whatever its compression, encoding or prefixes, as numbered lines of text."""

import codecs
import hashlib
import mmap
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import zstandard

_HEAD_BYTES = 1 << 16
_PACKED_BYTES = 1 << 12  # of compressed data at a time: this much is lost where a file is damaged, and no more
_PIECE_BYTES = 1 << 20  # of a plain file at a time, where nothing of it is kept
_BLANK_LOOK_BYTES = 64  # a line that starts with more white space than this is data all the same
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF8_MARK = codecs.BOM_UTF8
_ESCAPE = b"\x1b"  # begins a colour
Question = Callable[[pl.LazyFrame], pl.LazyFrame]
KEPT_CHARS = 200  # of a line that is quoted: enough to recognise it

ANSI = r"\x1b\[[0-9;?]*[A-Za-z]"
_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
# What stands before a line once a container, a service manager or a CI has written it down.
_PREFIXES = (
    # kubectl and docker --timestamps, CRI files, GitHub, GitLab, Jenkins
    rf"\[?{_CLOCK}\]?\s+(?:std(?:out|err) [FP] |\d\d[OE][ +])?",
    r"\[pod/[^\]]+\]\s+",  # kubectl logs --prefix
    r"\[[A-Za-z][\w.-]*\] ",  # a branch of a Jenkins pipeline
    r"[a-z0-9.]+-[a-z0-9.-]+ [a-z0-9][a-z0-9-]* ",  # stern: pod, container
    r"[A-Za-z0-9][\w.-]*\s+[|│] ?",  # docker compose
    r"[^\t\r\n]+\t[^\t\r\n]+\t",  # gh run view --log: job, step
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [\w.-]+ [\w.@/-]+(?:\[\d+\])?:)? ",  # journald, moreutils ts
    r"[\w.-]+ [\w.@/-]+\[\d+\]: ",  # journald -o short-iso, behind its clock
    r"\[?\d\d:\d\d:\d\d\]?\s+",
    r"\[?\d{10,19}(?:[.,]\d+)?\]?\s+",  # ts %.s, date +%s%N: seconds since 1970, or parts of them
    r" *\d+: ",  # srun --label: the task
)
# What a tool puts before every line of a file, if it puts it before any: on a single line it is part of the text.
_NUMBERED = r"\d+[:-]|[ \t]*\d+\t"  # grep -n; cat -n, nl
_FILE = r"[^\s:]*[./][^\s:]*:"  # grep -H: a name is told from a word by its dot or its folder
_NAME = re.compile(r"([^\s:]+):")
_MOST_NAMES = 20  # of files that are spelt out; the others are told by their colon alone
_BETWEEN_GROUPS = "--"  # by grep -C
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b")
_LOOKED_AT_BYTES = 4096
_FEW_CONTROL_RATIO = 0.01  # of a text's bytes; of a picture's or a program's it is a tenth or more
PREFIX = rf"(?:\ufeff|\x00+|{'|'.join(_PREFIXES)})*"
_PREFIX = re.compile(PREFIX)
_ANSI = re.compile(ANSI)
# A value behind one of these names, and tokens that are secret by their own look.
_SECRET = re.compile(
    r"""(?ix)
    ((?:api[-_]?key|authorization|(?:auth|access|hf|hub)[-_]?token|secret[\w-]*|passw(?:or)?d)
      ["']?\s*(?:[:=]\s*|\s+)["']?(?:(?:bearer|basic|token)\s+)?) [^\s"',)&]+
    | \b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|nvapi-|xox[abps]-)[\w-]{8,}
    | (bearer\s+)[\w.~+/-]{8,}
    | (://[^/\s:@]+:)[^/\s@]+(?=@)
    """
)

# What people asked a model, or it answered them, behind the name that a log or a record gives it.
_TEXT_OF = re.compile(
    r"""(?ix)
    (?<![a-z_-]) ["']?
    (?:(?:input|output|generated|prompt|response|completion|reasoning|user|system)_?(?:texts?|content|prompts?)
      | texts? | prompts?
      | messages | content | completion | (?:prompt_|output_)?token_ids | (?:input|output)_ids
      | input_value)  # by which pydantic repeats what a client sent
    ["']? (?:\s*=\s*|\s*:\s+|:(?=["'\[{(])) (?=[^\s\d,;:)\]}-]) (?!(?:none|null|true|false|nan)\b)
    """
)

# Words of which one stands in every text that these two would change.
RISKY = (
    r"(?i)api[-_]?key|authorization|token|secret|passw|hf_|sk-|gh[pousr]_|github_pat|glpat|nvapi|xox|bearer|://|"
    r"text|prompt|content|messages|completion|(?:input|output)_ids|input_value"
)


def _collected(lines: list[str]) -> str:
    """A pattern for what grep, cat or nl put before each of these lines; it matches nothing where they did not."""
    lines = [text for text in lines if text.strip() and text != _BETWEEN_GROUPS]
    if not lines:
        return ""
    if all(re.match(_NUMBERED, text) for text in lines):
        return _NUMBERED
    names = {found[1] for text in lines if (found := _NAME.match(text))}
    names = {name for name in names if re.search("[./]", name) or _is_shared(name, lines)}
    spelt = "|".join(re.sub(r"\d+", "[0-9]+", re.escape(name)) for name in sorted(names)[:_MOST_NAMES])
    prefix = rf"(?:{_FILE}|(?:{spelt})[:-])(?:\d+[:-])?"  # grep -C has a hyphen for a colon in lines around
    return prefix if names and all(re.match(prefix, text) for text in lines) else ""


def _is_shared(word: str, lines: list[str]) -> bool:
    """Whether every line begins with it, as with a name: behind the colon of a label there is a space."""
    behind = [text[len(word) + 1 :] for text in lines if text.startswith(f"{word}:")]
    return len(behind) == len(lines) and any(rest and not rest[0].isspace() for rest in behind)


def masked(text: str) -> str:
    """Without keys and tokens: they are not evidence, and a report may leave the house."""
    return _SECRET.sub(lambda found: f"{found[1] or found[2] or found[3] or ''}***", text)


def without_texts(text: str) -> str:
    """Up to where it gives a prompt or an answer: those can be confidential, and no report shows them."""
    found = _TEXT_OF.search(text)
    left_out = len(text) - found.end() if found else 0
    return f"{text[: found.end()]}[{left_out:,} characters withheld]" if found else text


def quoted(text: str) -> str:
    """The beginning of a line, fit to be kept: masked, no prompt, no answer, no colours, at most 200 characters."""
    return masked(without_texts(_ANSI.sub("", text).strip()))[:KEPT_CHARS]


def stripped(text: str) -> str:
    """A line without colours and without what a container or CI put before it."""
    plain = _ANSI.sub("", text)
    return plain[_PREFIX.match(plain).end() :].rstrip()  # type: ignore[union-attr] # it matches ""


class Source:
    """One file. `name` is what evidence cites: the path as it was given."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path = path
        self.name = name or path.as_posix()
        self._damage: str | None = None

    @cached_property
    def size(self) -> int:
        """Its size on disk."""
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        """Hash of the file on disk."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @property
    def damage(self) -> str | None:
        """What was wrong with it, once it has been read: what is readable is read all the same."""
        return self._damage

    @cached_property
    def head(self) -> bytes:
        """Its first 64 KB as UTF-8, decompressed."""
        with self.open() as file:
            return file.read(_HEAD_BYTES)

    @cached_property
    def is_empty(self) -> bool:
        """Whether it holds nothing but white space."""
        return len(self.head) < _HEAD_BYTES and not self.head.strip()

    @cached_property
    def is_binary(self) -> bool:
        """Whether it is no text. NULs alone do not make it so: a log that was truncated under its writer has holes."""
        if b"\0" not in self.head:
            return False
        rest = self.head.replace(b"\0", b"")
        control = sum(byte in _CONTROL for byte in rest[:_LOOKED_AT_BYTES])
        return not rest.strip() or control > _FEW_CONTROL_RATIO * min(len(rest), _LOOKED_AT_BYTES)

    def open(self) -> BinaryIO:
        """Its content as UTF-8 bytes, decompressed; it ends where the damage begins."""
        if self._magic.startswith((_GZIP, _ZSTD)):
            return self._recoded(BytesIO(b"".join(self._decompressed())))
        return self._recoded(self.path.open("rb"))

    def buffers(self) -> Iterator[tuple[int, memoryview]]:
        """Each line that is not blank, numbered from 1, as bytes that may be changed in place.

        A plain file is mapped, not read: a record of 130 MB then costs 130 MB, its copy nothing, and a line that was
        passed nothing any more. Changes stay in memory. A buffer is good until the next one is asked for.
        """
        if self._is_packed or not self.size:
            with self.open() as file:
                yield from (
                    (number, memoryview(bytearray(line))) for number, line in enumerate(file, 1) if line.strip()
                )
            return
        with self.path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        view, start, number = memoryview(mapped), 0, 0
        while start < len(mapped):
            end, number = mapped.find(b"\n", start), number + 1
            end = len(mapped) if end < 0 else end
            if bytes(view[start : min(end, start + _BLANK_LOOK_BYTES)]).strip():
                yield number, view[start:end]
                _forgotten(mapped, start, end)
            start = end + 1

    def whole(self) -> Iterator[tuple[int, memoryview]]:
        """All of it as one buffer that starts on line 1."""
        with self.open() as file:
            yield 1, memoryview(bytearray(file.read()))

    def contains(self, text: bytes) -> bool:
        """Whether some bytes stand anywhere in it."""
        return any(re.search(re.escape(text), line) for _, line in self.buffers())

    def matching(self, pattern: str, *, behind: str = "") -> pl.DataFrame:
        """The lines that hold a pattern at the start of a line, or behind a carriage return: (line, text).

        `pattern` is tried behind any known prefix, and behind the one that `behind` describes. A progress bar leaves
        several texts in one line of the file: each comes as a row of its own.
        """
        prefix = rf"(?:{behind})?{self._prefix}"
        found = self._filtered(_says(pattern, prefix))
        # only as much of a prefix goes as leaves the pattern: `ts` and syslog differ by a host that may be a label
        start_of = re.compile(rf"{prefix}(?=(?:{pattern}))")
        rows = [
            (number, part[start.end() :].rstrip())
            for number, text in found.iter_rows()
            for part in text.split("\r")
            if (start := start_of.match(part))
        ]
        return pl.DataFrame(rows, schema={"line": pl.Int64, "text": pl.String}, orient="row")

    def ahead_of(self, pattern: str) -> set[str]:
        """What stands before a pattern, on the lines where something does."""
        found = self._filtered(pl.col("text").str.contains(pattern))
        parts = [part for (text,) in found.select("text").iter_rows() for part in text.split("\r")]
        return {part[: at.start()] for part in parts if (at := re.search(pattern, part)) and part[: at.start()].strip()}

    def asked(self, ask: Question) -> pl.DataFrame:
        """The answer to a question about its lines (line, text), streamed; read leniently only where that fails.

        `text` is the whole line without colours, prefix and all.
        """
        if not self._magic.startswith((*_UTF16, _ZSTD)) and self._damage is None and _is_text(self.path):
            try:
                return ask(_lines(self.path, coloured=self._is_coloured)).collect(engine="streaming")
            except (pl.exceptions.ComputeError, OSError):  # invalid UTF-8, or a compressed file that is cut off
                pass
        # polars reads a cut-off zstd file without a word, so that goes this way too
        with self.open() as file:
            text = file.read().decode("utf-8", errors="replace")
        return ask(_lines(text.encode(), coloured=True)).collect()

    def holds(self, patterns: dict[str, str], *, words: Sequence[str] = ()) -> dict[str, int]:
        """How many lines hold each of the patterns, under the same names; one look at the whole file.

        A line that holds none of the `words` (expressions, cheap to look for) is passed without a closer look.
        """
        if not patterns:
            return {}
        counts = [_says(pattern, self._prefix).sum().alias(name) for name, pattern in patterns.items()]
        # most lines of a large file hold none: one look says so
        some = _says("|".join(patterns.values()), self._prefix)
        worded = pl.col("text").filter(_holds_any(words)) if words else pl.col("text")
        found = self.asked(lambda lines: lines.select(worded).filter(some).select(counts))
        return {name: int(count or 0) for name, count in found.row(0, named=True).items()}

    def begins_with(self, pattern: str) -> bool:
        """Whether a line of its first 64 KB holds a pattern: where it does, the rest need not be looked at."""
        lines = pl.DataFrame({"text": _ANSI.sub("", self.head.decode("utf-8", errors="replace")).split("\n")})
        return bool(lines.select(_says(pattern, self._prefix).any()).item())

    def shared(self, pairs: dict[str, tuple[str, str]]) -> str | None:
        """The name of a pair of patterns that one line holds both of, if there is such a line."""
        if not pairs:
            return None
        both = [
            pl.all_horizontal(_says(one, self._prefix) for one in pair).any().alias(name)
            for name, pair in pairs.items()
        ]
        row = self.asked(lambda lines: lines.select(both)).row(0, named=True)
        return next((name for name, found in row.items() if found), None)

    def last_line(self) -> tuple[int, str]:
        """Number and text of the last line that is not blank; (0, "") where there is none."""
        last = self.asked(lambda lines: lines.filter(pl.col("text").str.strip_chars() != "").last())
        return (int(last["line"][0]), stripped(last["text"][0].rpartition("\r")[2])) if last.height else (0, "")

    def line_count(self) -> int:
        """How many lines it has."""
        return int(self.asked(lambda lines: lines.select(pl.len())).item())

    @cached_property
    def _prefix(self) -> str:
        """A pattern for what may stand before a line of this file."""
        lines = _ANSI.sub("", self.head.decode("utf-8", errors="replace")).split("\n")
        whole = lines[:-1] if len(self.head) == _HEAD_BYTES else lines
        collected = _collected([text.rstrip("\r") for text in whole])
        return rf"(?:\ufeff?(?:{collected}))?{PREFIX}" if collected else PREFIX

    # --- how it is read ---------------------------------------------------------------------------------------------

    def _filtered(self, keep: pl.Expr) -> pl.DataFrame:
        return self.asked(lambda lines: lines.filter(keep))

    @cached_property
    def _is_coloured(self) -> bool:
        """Whether it may hold colours: to look for the byte once costs less than to take them out at each question."""
        if self._is_packed:
            return True
        with self.path.open("rb") as file:
            return any(_ESCAPE in piece for piece in iter(partial(file.read, _PIECE_BYTES), b""))

    @property
    def _is_packed(self) -> bool:
        return self._magic.startswith((*_UTF16, _UTF8_MARK, _GZIP, _ZSTD))

    @cached_property
    def _magic(self) -> bytes:
        with self.path.open("rb") as file:
            return file.read(4)

    def _decompressed(self) -> Iterator[bytes]:
        """Pieces up to the end of the file, or to where it is damaged."""
        try:
            yield from self._members()
        except (EOFError, zlib.error, zstandard.ZstdError) as problem:
            self._damage = f"compressed data ends early or is damaged ({problem}); what came before it was read"

    def _members(self) -> Iterator[bytes]:
        """Members of gzip or frames of zstd, one after the other."""
        member = self._unpacker()
        with self.path.open("rb") as raw:
            while piece := raw.read(_PACKED_BYTES):
                while piece:
                    if member.eof:
                        piece, member = piece.lstrip(b"\0"), self._unpacker()  # tape blocks are filled up with NULs
                    yield member.decompress(piece)
                    piece = member.unused_data
        if not member.eof:
            raise EOFError("its last part has no end")

    def _unpacker(self) -> Any:
        """Of one member: both kinds have `decompress`, `eof` and `unused_data`."""
        if self._magic.startswith(_GZIP):
            return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with gzip's header and checksum
        return zstandard.ZstdDecompressor().decompressobj()

    def _recoded(self, file: BinaryIO) -> BinaryIO:
        """UTF-16 becomes UTF-8, a mark at the start goes; all else passes."""
        start = file.read(len(_UTF8_MARK))
        file.seek(len(start) if start == _UTF8_MARK else 0)
        if encoding := _UTF16.get(start[:2]):
            with file:
                return BytesIO(file.read()[2:].decode(encoding, errors="replace").encode())
        return file


def _is_text(path: Path) -> bool:
    """Whether polars can take the name: on disk it is bytes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _says(pattern: str, prefix: str) -> pl.Expr:
    """Whether a line holds a pattern at its start or behind a carriage return, each behind a prefix."""
    return pl.col("text").str.contains(rf"(?:^|\r){prefix}(?:{pattern})")


def _holds_any(words: Sequence[str]) -> pl.Expr:
    """Whether a line holds one of the words: all in one expression, but for those that stand at its start."""
    at_start = [word for word in words if word.startswith("^")]
    anywhere = "|".join(word for word in words if word not in at_start)
    return pl.any_horizontal(pl.col("text").str.contains(word) for word in (anywhere, *at_start) if word)


def _forgotten(mapped: mmap.mmap, start: int, end: int) -> None:
    """Give back the pages that lie whole within a line."""
    first, last = -(-start // mmap.PAGESIZE), end // mmap.PAGESIZE
    if hasattr(mmap, "MADV_DONTNEED") and last > first:
        mapped.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)


def _lines(content: Path | bytes, *, coloured: bool) -> pl.LazyFrame:
    """The one place that uses polars' unstable scan_lines: (line, text), numbered from 1, without colours."""
    lines = pl.scan_lines(content, name="text", row_index_name="line", row_index_offset=1, glob=False)
    return lines.with_columns(pl.col("text").str.replace_all(ANSI, "")) if coloured else lines
