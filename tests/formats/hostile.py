"""A sweep whose texts try to become something else: markup, commands, links, mentions, colours, formulas."""

from pathlib import Path

from logs import log, write

from pdkit.judge import judge
from pdkit.load import load
from pdkit.results import Judgement

TEXT = (
    "`a` | b <script>alert(1)</script> @octocat #12 GH-7 [x](https://evil.example) ![i](https://evil.example/i.png) "
    "**bold** $x$ :tada: ::error::pwn ##[error]pwn %0A::warning::pwn www.evil.example ]]> &amp; {0} \u202edlrow \ufffe"
)
FOLDER = "=x, %0A:1 @octocat `b` <b>#3"


def hostile(folder: Path) -> Judgement:
    """A run whose log breaks off, one that holds, a line and a file that nobody understands, a level that never ran."""
    sweep = folder / FOLDER
    write(sweep / "broken.log", [*log()[:7], TEXT])
    write(sweep / "damaged.log", log(values={"Mean TTFT (ms)": "2,300"}))
    write(sweep / "[x](https:" / "evil.example) ::error::.bin", TEXT)
    write(sweep / "sweep.toml", f"label = '''{TEXT}\n{TEXT}'''\n[[level]]\nconcurrency = 64\n")
    return judge(load(folder))


def refused(folder: Path) -> Judgement:
    """One run of 64.00 tok/s claimed, and nothing that came back."""
    write(folder / "bench.log", log(values={"Total generated tokens (retokenized)": "0"}))
    return judge(load(folder))


def many(folder: Path, runs: int) -> Judgement:
    """One experiment of that many runs, each refused."""
    for users in range(1, runs + 1):
        values = {"Max request concurrency": f"{users}", "Benchmark duration (s)": f"{64 + users}.00"}
        values["Total generated tokens (retokenized)"] = "0"
        write(folder / f"{users}.log", log(values=values, arguments={"max_concurrency": users}))
    return judge(load(folder))
