"""What `sglang.bench_serving` prints, 0.4.0 to 0.5.23, Python and Rust client."""

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pdkit.evidence import Evidence, Row
from pdkit.metrics import CLOCKS, STATISTICS
from pdkit.parts import reader
from pdkit.source import Source, quoted
from pdkit.units import PERCENT_PER_RATIO

_CLOCK_LABELS = {"e2e_ms": "E2E Latency", "ttft_ms": "TTFT", "tpot_ms": "TPOT", "itl_ms": "ITL"}
_LABELS = {
    "Traffic request rate": "request_rate_per_s",
    "Max reqeuest concurrency": "concurrency",  # as 0.4.0 to 0.4.5 spell it
    "Max request concurrency": "concurrency",
    "Successful requests": "completed",
    "Benchmark duration (s)": "duration_s",
    "Total input tokens": "input_tok_sum",
    "Total generated tokens": "output_tok_sum",
    "Total generated tokens (retokenized)": "retokenized_tok_sum",
    "Total cached tokens": "cached_tok_sum",
    "Request throughput (req/s)": "request_throughput_per_s",
    "Input token throughput (tok/s)": "input_throughput_tok_per_s",
    "Output token throughput (tok/s)": "output_throughput_tok_per_s",
    "Peak output token throughput (tok/s)": "peak_output_throughput_tok_per_s",
    "Peak concurrent requests": "peak_running_requests",
    "Total token throughput (tok/s)": "total_throughput_tok_per_s",
    "Concurrency": "concurrency_mean",
    "Accept length": "accept_length",
    "Request goodput (req/s)": "request_goodput_per_s",
    "SLO attainment (%)": "slo_attainment_ratio",
    "#Input tokens": "input_tok_asked",
    "#Output tokens": "output_tok_asked",
} | {f"{s.capitalize()} {_CLOCK_LABELS[clock]} (ms)": f"{clock}_{s}" for clock in CLOCKS for s in STATISTICS}
_BEFORE_BLOCK = ("input_tok_asked", "output_tok_asked")
_MANDATORY = ("completed", "duration_s")
_UNLIMITED = ("request_rate_per_s", "concurrency")  # where `inf`, `None` and `not set` say that there is no limit
_WORDS = ("trace",)  # stands for a rate where a trace sets the times

_ERROR = r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning)"
_SHELL = r"\S*sh: .*(?:No such file or directory|command not found|[Pp]ermission denied)"
# What a line can be. Patterns are held against the start of a line by Source.matching (Rust) and again here (Python).
_KINDS = {
    "title": r"\s*=+ Serving Benchmark Result =+",
    "rule": r"\s*={50}\s*$",  # as every version closes its block; a script's own ruler closes none
    "heading": r"\s*(?:={2,}|-{2,}|#{2,}|\*{2,}|>{2,})[^={\"]*?"
    r"(?:(?i:concurrency|users|conc|\bc)\s*[=: ]\s*[0-9]+|[0-9]+ (?i:concurrent )?(?i:users|clients)\b).*",
    "dump": r"[^{\"\r\n]{0,60}?[Nn]amespace\(\w+=.*",
    "label": rf"\s*(?:Backend|Protocol|{'|'.join(map(re.escape, _LABELS))}):(?:\s.*|$)",
    "rust_start": r"Running \d+ requests on \d+ worker threads",
    "rust_failed": r"\d+ of \d+ requests failed\.",
    "untokenized": r"Running without a tokenizer",
    "bar": r"\s*\d+%\|[^|]*\|\s*\d+/\d+ \[",
    "frame": r"\s+File \"(?:[^\"]*/)?(?:bench_serving|benchmark/serving)\.py\"",
    "ignored": r"Exception ignored in",
    "traceback": r"(?:.*[^\w'\"])?Traceback \(most recent call last\):",
    "all_failed": r".*UserWarning: All requests failed",
    "death": rf"(?:{_ERROR}(?::.*)?$|(?:Killed|Terminated|Aborted|Segmentation fault)\b|"
    r"Server (?:at \S+ is not ready|did not become ready).*)",
    "shell": _SHELL,
}  # fmt: skip
_NEVER_FIRST = ("bar", "rule", "frame", "ignored", "rust_failed")  # said by a run, never its beginning
_FIRST_OF_A_RUN = ("heading", "dump", "title", "label", "rust_start")
_KIND = {kind: re.compile(pattern) for kind, pattern in _KINDS.items()}
_LABEL = re.compile(r"\s*([A-Z#][^:]{3,45}):(?:\s+(.*?))?\s*$")
_SIGNS = "|".join((
    r"\s*Total generated tokens \(retokenized\):",
    r"\s*(?:Mean|Median) E2E Latency \(ms\):",
    r"#(?:Input|Output) tokens: \d",
    r"[^{\"\r\n]{0,60}?[Nn]amespace\(backend='",
    r"\s*={3,} [^={\"]*concurrency=\d+[^{\"]*={3,}",
    r"\s+File \"[^\"]*sglang/(?:bench_serving|benchmark/serving)\.py\"",
    r"\S*sglang/(?:bench_serving|benchmark/serving)\.py:\d+: ",
    _KINDS["rust_start"],
    _SHELL,
))  # fmt: skip
_SIGN_WORDS = (
    "Total generated", "E2E Latency", "put tokens: ", r"amespace\(backend=", "===", "sglang/bench", "worker threads",
    "sh: ",
)  # fmt: skip
_A_SHELL_LOG_LINES = 20  # a log that holds a shell's complaint and little else was meant to hold a run
_OTHER_CLIENTS = ("percentile_metrics=", "burstiness=")  # in the Namespace line of vLLM's client
_CLIENT_DUMP = re.compile(r"\bnum_prompts=|\bbackend=.*\b(?:dataset_name|base_url)=")  # a server's has none of these
_FRAME = r"={10,} Serving Benchmark Result ={10,}"  # wherever on a line: what stands before it is a prefix
_LONGEST_PREFIX_CHARS = 120  # twice as long as any that a collector of logs was seen to write
_MOST_PREFIXES = 20  # shapes of prefixes in one file; more are no prefixes


class Claim(NamedTuple):
    """A number as it stands on a line."""

    value: float | None
    resolution: float
    printed: str | None
    line: int


@dataclass
class _Run:
    """One invocation while its lines go by."""

    line: int
    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)  # by fact and by who states it
    settings: dict[str, Any] = field(default_factory=dict)
    dumps: int = 0
    raw_dump: bool = False  # the first of two dumps: arguments as given
    heading: str | None = None  # the first of them, as it stands
    weak: bool = False  # its heading may as well close the run before: it makes no run of its own
    titled: bool = False
    closed: bool = False
    mixed: bool = False  # lines of another block stand between its own
    printed: bool = False  # a line of the result block was seen
    backend: str | None = None
    rust: bool = False
    untokenized: bool = False
    in_client: bool = False  # inside a traceback of the client itself
    client_failed: bool = False  # such a traceback was seen
    ignored: bool = False
    crashed_after: bool = False
    all_failed: bool = False
    ending: str | None = None
    ending_line: int | None = None
    last: tuple[int, str] = (0, "")
    damaged: list[tuple[int, str]] = field(default_factory=list)  # lines of the block whose number is none

    def claim(self, fact: str, text: str, line: int, *, origin: str = "block") -> bool:
        """Keep a stated number, whatever it is, and tell whether it is one; words say nothing."""
        made = _claim(fact, text, line)
        if made:
            self.claims[fact, origin] = made
        return made is not None

    @property
    def level(self) -> float | None:
        """Its concurrency: as the script calls it, or else as the client states it; the other way round if in doubt."""
        origins = ("block", "arguments", "heading") if self.weak else ("heading", "block", "arguments")
        return next((made.value for origin in origins if (made := self.claims.get(("concurrency", origin)))), None)

    @property
    def misheaded(self) -> bool:
        """Whether its heading turned out to be another run's."""
        said = self.claims.get(("concurrency", "heading"))
        return self.weak and said is not None and said.value != self.level

    @property
    def statements(self) -> list[tuple[str, Claim]]:
        """What is claimed of it, by fact, in the order of its lines."""
        return [(fact, made) for (fact, by), made in self.claims.items() if by != "heading" or not self.misheaded]

    @property
    def lacking(self) -> list[str]:
        """What a whole block gives a number for and this one does not."""
        known = {fact for fact in _MANDATORY if (made := self.claims.get((fact, "block"))) and made.value is not None}
        return [label for label, fact in _LABELS.items() if fact in _MANDATORY and fact not in known]

    def states(self, fact: str) -> bool:
        """Whether the block (or what a filter left of it) has given this fact."""
        return (fact, "block") in self.claims

    @property
    def complete(self) -> bool | None:
        """Null where a filter left the numbers but took the frame around them."""
        if not self.printed:
            return False
        if not self.titled:
            return None
        return self.closed and not self.mixed and not self.lacking

    @property
    def bare(self) -> bool:
        """Whether nothing was seen but a program that died: which one, the log does not say."""
        headed = self.heading and not self.weak
        stated = {fact for fact, origin in self.claims if headed or origin != "heading"} - set(_UNLIMITED)
        return not (
            self.titled or headed or self.settings or stated or self.rust or self.all_failed or self.client_failed
        )

    @property
    def only_heading(self) -> bool:
        """Whether nothing followed its heading yet."""
        return bool(self.heading) and not self.settings and {origin for _, origin in self.claims} <= {"heading"}

    @property
    def of_this_client(self) -> bool:
        """A framed block without a backend and without a retokenized count is another client's."""
        known = self.backend or self.settings or self.rust or self.states("retokenized_tok_sum")
        return bool(known) or not self.titled


@reader(title="SGLang `bench_serving`: captured output", signs=_SIGNS, words=_SIGN_WORDS)
def read(source: Source) -> Evidence:
    """The captured output of `sglang.bench_serving` (`sglang.benchmark.serving`, or its Rust client).

    Whole or filtered by grep, one run or a sweep in a file, standard output alone or with standard error and its
    progress bars. Each invocation becomes one run; a level heading or a Namespace line without a result block is a run
    without a result.

    Left out by the tool: the fate of a single request; how many were sent, unless the Namespace line, the progress
    bar or the Rust client's start line is there; whether text came back, but for the retokenized total.
    """
    lines = _said(source)
    runs = [run for run in _runs(lines) if _is_a_run(run, source)]
    runs += _unheard(lines, {run.level for run in runs})
    if runs and runs[-1].complete is False and not runs[-1].ending:
        runs[-1].last = source.last_line()
    ours = [run for run in runs if run.of_this_client]
    foreign = [run for run in runs if not run.of_this_client]
    seen = [f"{source.name}#{index}" for index in range(len(ours))]
    return Evidence.of(
        runs=[_run_row(run, source.name, sid) for run, sid in zip(ours, seen, strict=True)],
        claims=[
            {
                "seen_id": sid,
                "fact": fact,
                "value": claim.value,
                "resolution": claim.resolution,
                "printed": claim.printed,
            }
            | _place(source.name, claim.line)
            for run, sid in zip(ours, seen, strict=True)
            for fact, claim in run.statements
        ],
        unread=[
            {
                "reason": "a result block of another client: it names no backend and no retokenized count",
                "text": "Serving Benchmark Result",
            }
            | _place(source.name, run.line)
            for run in foreign
        ]
        + [
            {"reason": "a line of the result block without its number", "text": text} | _place(source.name, line)
            for run in ours
            for line, text in run.damaged
        ],
    )


def _said(source: Source) -> list[tuple[int, str]]:
    """The client's lines. What stands before the title of a block is a prefix, though it be one that nobody knows."""
    pattern = "|".join(_KINDS.values())
    lines = [*source.matching(pattern).iter_rows()]
    if any(_KIND["title"].match(text) for _, text in lines):
        return lines
    before = {text for text in source.ahead_of(_FRAME) if not re.search(r"[{\"'`]", text)}  # quoted is not printed
    shapes = {_shape(text) for text in before if len(text) <= _LONGEST_PREFIX_CHARS}
    if not shapes or len(shapes) > _MOST_PREFIXES:
        return lines
    return [*source.matching(pattern, behind="|".join(sorted(shapes))).iter_rows()]


def _shape(prefix: str) -> str:
    """A pattern for this prefix on other lines: its numbers and its padding may differ."""
    pieces = re.split(r"([0-9]+|\s+)", prefix)
    return "".join("[0-9]+" if piece.isdigit() else r"\s*" if piece.isspace() else re.escape(piece) for piece in pieces)


def _is_a_run(run: _Run, source: Source) -> bool:
    """A shell's complaint is a run that never started only where the log holds little else."""
    if not run.bare:
        return True
    return bool(_KIND["shell"].match(run.ending or "")) and source.line_count() <= _A_SHELL_LOG_LINES


def _place(name: str, line: int) -> dict[str, Any]:
    return {"source_file": name, "source_line": line}


def _run_row(run: _Run, name: str, seen_id: str) -> Row:
    settings = run.settings
    complete = run.complete
    ending = run.ending
    if complete is False and not ending:
        ending = f"its last line is: {quoted(run.last[1])}"
        if run.closed:
            ending = f"its block has no number for {' and '.join(run.lacking)}"
    return {
        "seen_id": seen_id,
        "tool": "sglang"
        if run.titled or settings or run.rust or run.client_failed or run.states("e2e_ms_mean")
        else None,
        "client_definition": "rust" if run.rust else "python" if settings else None,
        "model": _text(settings.get("served_model_name") or settings.get("model")),
        "dataset": _text(settings.get("dataset_name")),
        "backend": run.backend or _text(settings.get("backend")),
        "ignore_eos": _ignores_eos(settings),
        "streaming": _opposite(settings.get("disable_stream")),
        "retokenizes": False if run.untokenized else None,
        "seed": settings.get("seed") if isinstance(settings.get("seed"), int) else None,
        "complete": complete,
        "ending": f"All requests failed; {ending}" if run.all_failed and ending else ending,
        "crashed_after": run.crashed_after if run.printed else None,
    } | _place(name, (run.ending_line or run.last[0] or run.line) if complete is False else run.line)


# --- from lines to runs ---------------------------------------------------------------------------------------------


def _runs(lines: list[tuple[int, str]]) -> Iterator[_Run]:
    run: _Run | None = None
    for number, text, kind, part in _of_the_client(lines):
        if part == "end" or (part == "result" and run and run.dumps and run.complete is False):
            if run and part == "end" and _ends(run, number, text):
                yield run
                run = None
            continue
        if _starts_another(run, kind, text, is_result=part == "result"):
            weak = part == "result" or (kind == "heading" and run is not None and _may_end(run, text))
            if run:
                yield run
            run = _Run(number, weak=weak)
        if run:
            _TAKE.get(kind, _take_nothing)(run, number, text)
            run.last = (number, text)
    if run:
        yield run


def _unheard(lines: list[tuple[int, str]], levels: set[float | None]) -> Iterator[_Run]:
    """Levels of which no run is there, though their heading is made like that of one: a word in it may mislead."""
    headings = [(number, text) for number, text in lines if _KIND["heading"].match(text) and _level(text) is not None]
    like = {_NUMBERS.sub("0", text) for _, text in headings if _level(text) in levels}
    missing = {_level(text): (number, text) for number, text in reversed(headings)
               if _level(text) not in levels and _NUMBERS.sub("0", text) in like}  # fmt: skip
    for number, text in missing.values():
        run = _Run(number, last=(number, text))
        _take_heading(run, number, text)
        yield run


def _of_the_client(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str, str, str | None]]:
    """Number, text, kind and what a heading is there for; without remarks and what others print of that kind."""
    for number, text in lines:
        kind = next(kind for kind, pattern in _KIND.items() if pattern.match(text))
        part = _part(text) if kind == "heading" else None
        if part != "remark" and (kind != "dump" or _is_clients(text)):
            yield number, text, kind, part


def _starts_another(run: _Run | None, kind: str, text: str, *, is_result: bool = False) -> bool:
    """Whether this line belongs to the next invocation."""
    if kind in _NEVER_FIRST or _is_backend(kind, text):
        return False
    if run is None or (run.bare and kind in _FIRST_OF_A_RUN and (not run.weak or bool(run.ending))):
        return True
    waits = not run.weak and (run.only_heading or (is_result and not run.printed))
    begins = {
        "heading": not (waits and run.level == _level(text)),
        "dump": run.printed or (run.dumps > 0 and not (run.dumps == 1 and run.raw_dump)),
        "label": run.printed and _begins_block(run, text),
        "title": run.printed,
        "rust_start": run.printed,
    }
    return begins.get(kind, False)


def _ends(run: _Run, number: int, text: str) -> bool:
    """Whether a heading such as `concurrency=8 done` is about this run; where nothing else names its level, it does."""
    if run.printed and run.level is None:
        _take_heading(run, number, text)
    return run.bare or run.complete is True or run.level in (None, _level(text))


def _may_end(run: _Run, text: str) -> bool:
    """Whether a heading without such a word stands behind its run: the level is that of the block right before it.

    Not where it is the heading of the run with other numbers (a rate, a repetition), or says again that one starts.
    """
    if not run.complete or run.level != _level(text):
        return False
    first = "" if run.misheaded else run.heading or ""
    if first.strip() == text.strip():
        return not _STARTS.search(text)
    return _NUMBERS.sub("0", first) != _NUMBERS.sub("0", text)


def _begins_block(run: _Run, text: str) -> bool:
    """In a filtered log nothing but a label that comes round again tells where the next run begins."""
    label = _LABEL.match(text)
    fact = _LABELS.get(label[1]) if label else None
    if fact in _BEFORE_BLOCK:
        return True
    return fact is not None and run.states(fact) and (run.closed or not run.titled)


def _is_backend(kind: str, text: str) -> bool:
    return kind == "label" and text.lstrip().startswith(("Backend:", "Protocol:"))


def _is_clients(dump: str) -> bool:
    """Servers, routers and other clients print their arguments too."""
    return bool(_CLIENT_DUMP.search(dump)) and not any(sign in dump for sign in _OTHER_CLIENTS)


# --- what a heading is there for ------------------------------------------------------------------------------------

_LEVEL = re.compile(
    r"(?i)(?:concurrency|users|conc|\bc)\s*[=: ]\s*([0-9]+)|([0-9]+) (?:concurrent )?(?:users|clients)\b"
)
_NUMBERS = re.compile(r"[0-9]+")


def _words(pattern: str) -> re.Pattern[str]:
    """These words, but not as a part of a longer one, of `end-to-end` or of a file's name."""
    return re.compile(rf"(?i)(?<![-\w/.])(?:{pattern})(?![-\w/]|\.\w)")


_STARTS = _words("start|starting|begin|beginning|run|running|launching")
_OVER = "done|finished|ended|completed?|failed|stopped"
_OVER_BEFORE = re.compile(rf"{_words(_OVER).pattern}|^\W*end\b(?!-)")
_OVER_AFTER = _words(f"{_OVER}|end|ends|exit|exited|succeeded|took|elapsed|rc|ok")
# what is over before a level begins
_PREPARED = re.compile(
    rf"(?i)\b(?:warm-?up|server|set-?up|start-?up|load\w*|init\w*|model|router|previous|flush\w*)[\w ]*? (?:{_OVER})\b"
)
_ABOUT_ALL = _words("summary|overview|recap|notes?")
_ABOUT_ONE = _words("best|peak|optimal|recommended|winner|expected|up to|max(?:imum)?(?: of)?(?= [0-9])|at most")
_RESULT = _words("results?(?!=)")
_SEVERAL = re.compile(r"(?i)\s*(?:(?:-|\.\.+|to|and)\s*[0-9]+\s*\W*$|(?:[\s,]+[0-9]+){2,}\s*\W*$)")


def _part(heading: str) -> str:
    """Whether it is the `start` or the `end` of a level, names a `result`, or is a `remark` on levels."""
    level = _LEVEL.search(heading)
    if not level:
        return "remark"
    before, after = heading[: level.start()], heading[level.end() :]
    if _OVER_BEFORE.search(_PREPARED.sub("", before)) or _OVER_AFTER.search(after):
        return "end"
    # with the level's own first word: `max 64 users` is a limit, `max concurrency: 64` a level
    said, next_said = re.split(r"[,;]|\. ", heading[: level.end()])[-1].rstrip(), re.split(r"[,;(\[]", after)[0]
    about = _ABOUT_ALL.search(before) or _ABOUT_ONE.search(said) or _ABOUT_ONE.search(next_said)
    if about or _ABOUT_ALL.search(next_said) or _SEVERAL.match(after):
        return "remark"
    if _RESULT.search(said):
        return "result"
    return "remark" if _RESULT.search(next_said) else "start"


def _level(heading: str) -> float | None:
    level = _LEVEL.search(heading)
    return float(level[1] or level[2]) if level else None


# --- what each kind of line says ------------------------------------------------------------------------------------

_PROMPTS = re.compile(r"(?i)(?:\bn|prompts|requests)\s*[=: ]\s*([0-9]+)")
_RATE = re.compile(r"(?i)\b(?:rate|rps|qps)\s*[=: ]\s*([0-9]+(?:\.[0-9]+)?)")
_TWO_COUNTS = re.compile(r"(\d+) of (\d+)")
_BAR_TOTAL = re.compile(r"\d+/(\d+) \[")
_FIRST_COUNT = re.compile(r"\d+")


def _take_nothing(_run: _Run, _number: int, _text: str) -> None:
    """Lines that only mark a place."""


def _take_title(run: _Run, number: int, _text: str) -> None:
    run.titled, run.line = True, number


def _take_rule(run: _Run, _number: int, _text: str) -> None:
    run.closed = run.closed or (run.titled and run.printed)


def _take_heading(run: _Run, number: int, text: str) -> None:
    run.heading = run.heading or text
    for fact, pattern in (("concurrency", _LEVEL), ("prompts_asked", _PROMPTS), ("request_rate_per_s", _RATE)):
        if found := pattern.search(text):
            run.claim(fact, found[found.lastindex or 1], number, origin="heading")


def _take_dump(run: _Run, number: int, text: str) -> None:
    """The second dump counts: there the client has filled in what was left open."""
    run.dumps += 1
    run.raw_dump = "benchmark_args=" in text
    run.settings = _literals(text) or run.settings
    for fact, stated in _asked(run.settings).items():
        run.claim(fact, str(stated), number, origin="arguments")


def _take_label(run: _Run, number: int, text: str) -> None:
    label = _LABEL.match(text)
    if not label:
        return
    if label[1] in ("Backend", "Protocol"):
        if run.titled:  # elsewhere a launch script says it
            run.printed = True
            run.backend = label[2] or None if label[1] == "Backend" else run.backend
            run.rust = run.rust or label[1] == "Protocol"
        return
    fact = _LABELS[label[1]]
    if fact == "input_tok_sum" and not run.states("completed"):
        return  # a prefix data set prints this label before the block, with another meaning
    if run.titled and run.states(fact):
        run.mixed = True
        run.ending, run.ending_line = f"a second {label[1]!r} before the block's end: two results are mixed", number
        return
    run.printed = (
        run.printed or run.titled or fact not in (*_BEFORE_BLOCK, *_UNLIMITED)
    )  # other clients print a limit before all
    if not run.claim(fact, label[2] or "", number) and label[2] not in _WORDS:
        run.damaged.append((number, quoted(text)))


def _take_rust_start(run: _Run, number: int, text: str) -> None:
    run.rust = True
    run.claim("requests_dispatched", _FIRST_COUNT.findall(text)[0], number)


def _take_rust_failed(run: _Run, number: int, text: str) -> None:
    if counts := _TWO_COUNTS.match(text):
        run.claim("requests_failed_said", counts[1], number)


def _take_bar(run: _Run, number: int, text: str) -> None:
    if (total := _BAR_TOTAL.search(text)) and not run.printed:
        run.claim("requests_dispatched", total[1], number, origin="bar")


def _take_untokenized(run: _Run, _number: int, _text: str) -> None:
    run.untokenized = True


def _take_ignored(run: _Run, _number: int, _text: str) -> None:
    run.ignored = True


def _take_traceback(run: _Run, number: int, text: str) -> None:
    run.in_client = False
    if not run.printed:
        run.ending, run.ending_line = quoted(text), number


def _take_frame(run: _Run, _number: int, _text: str) -> None:
    run.in_client = not run.ignored
    run.client_failed = run.client_failed or run.in_client


def _take_all_failed(run: _Run, _number: int, _text: str) -> None:
    run.all_failed = True


def _take_death(run: _Run, number: int, text: str) -> None:
    if not run.printed:
        run.ending, run.ending_line = quoted(text), number
    elif run.in_client:
        run.crashed_after = True
        run.ending, run.ending_line = quoted(text), number
    run.in_client = run.ignored = False


_TAKE = {
    "title": _take_title, "rule": _take_rule, "heading": _take_heading, "dump": _take_dump, "label": _take_label,
    "rust_start": _take_rust_start, "rust_failed": _take_rust_failed, "untokenized": _take_untokenized,
    "bar": _take_bar, "frame": _take_frame, "ignored": _take_ignored, "traceback": _take_traceback,
    "all_failed": _take_all_failed, "death": _take_death, "shell": _take_death,
}  # fmt: skip


# --- numbers and settings -------------------------------------------------------------------------------------------


# as the clients print one; Python's own float() takes `1_000` and the digits of any script too
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|nan|NaN|-?inf")


def _claim(fact: str, text: str, line: int) -> Claim | None:
    if fact in _UNLIMITED and text in ("not set", "None", "inf"):
        return Claim(float("inf"), 0.0, None, line)
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    scale = PERCENT_PER_RATIO if fact.endswith("_ratio") else 1.0
    decimals = len(text.partition(".")[2])
    if not math.isfinite(value):
        return Claim(None, 0.0, text, line)
    return Claim(value / scale, 0.5 * 10.0**-decimals / scale if decimals else 0.0, None, line)


def _literals(text: str) -> dict[str, Any]:
    """The keyword arguments of a dump that are literals, or `inf`; nothing is evaluated."""
    arguments = text[text.index("amespace(") + len("amespace(") :].rstrip().removesuffix(")")
    try:
        call = ast.parse(f"f({arguments})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a damaged dump says nothing
        return {}
    return {k.arg: _literal(k.value) for k in getattr(call, "keywords", []) if k.arg}


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return float("inf") if getattr(node, "id", "") == "inf" else None


def _asked(settings: dict[str, Any]) -> dict[str, Any]:
    """What the arguments ask for, by fact."""
    asked = {
        "prompts_asked": settings.get("num_prompts"),
        "concurrency": settings.get("max_concurrency", "unknown"),
        "request_rate_per_s": settings.get("request_rate", "unknown"),
        "output_tok_asked_each": _asked_each(settings),
    }
    if settings.get("dataset_name") == "generated-shared-prefix":  # which ignores num_prompts
        groups, each = settings.get("gsp_num_groups"), settings.get("gsp_prompts_per_group")
        asked["prompts_asked"] = groups * each if isinstance(groups, int) and isinstance(each, int) else "unknown"
    return asked


def _asked_each(settings: dict[str, Any]) -> Any:
    """One output length for all requests, where the data set has one."""
    random = str(settings.get("dataset_name")).startswith("random")
    if random and settings.get("random_range_ratio") == 1.0:
        return settings.get("random_output_len")
    return settings.get("sharegpt_output_len") if settings.get("dataset_name") == "sharegpt" else "unknown"


def _ignores_eos(settings: dict[str, Any]) -> bool | None:
    """Null where the request body was changed by hand: it may say otherwise."""
    extra = str(settings.get("extra_request_body") or "")
    return None if "ignore_eos" in extra else _opposite(settings.get("disable_ignore_eos"))


def _opposite(said: object) -> bool | None:
    return not said if isinstance(said, bool) else None


def _text(said: object) -> str | None:
    return quoted(said) if isinstance(said, str) and said else None
