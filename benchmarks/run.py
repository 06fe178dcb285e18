"""Measure pdkit against its yardsticks, each in fresh processes of one run, and print ratios."""

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
from false_alarms import simulate
from inputs import LINES_A_SECOND, records, server_pair, sweep
from nights import REQUESTS_A_RUN, nights
from weeks import simulate_weeks

ROOT = Path(__file__).parents[1]
_REPEATS = 3  # the least of three: what the machine can do when nothing else runs

# ru_maxrss would count the parent's memory as well, which made the inputs
_MEASURED = """
import time
{setup}
start, busy = time.perf_counter(), time.process_time()
{work}
seconds, busy = time.perf_counter() - start, time.process_time() - busy
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(peak.split()[1]) / 1024, busy)
"""


class Cost(NamedTuple):
    """What a piece of work takes; processor seconds are those of all its threads, and say something on a busy machine."""

    seconds: float
    megabytes: float
    processor_seconds: float


def measured(setup: str, work: str, *, repeats: int = _REPEATS) -> Cost:
    """The least of each, imports not counted."""
    code = _MEASURED.format(setup=setup, work=work)
    said = [
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT).stdout
        for _ in range(repeats)
    ]
    return Cost(*(min(column) for column in zip(*(map(float, line.split()[-3:]) for line in said), strict=True)))


def shell(*command: str, repeats: int = _REPEATS) -> float:
    """Least seconds of a command, from start to end."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=False, capture_output=True, cwd=ROOT)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


_LOADS = "import json"
_PER_LINE = "import sys\nsys.path.insert(0, 'benchmarks')\nfrom per_line import read"
_PDKIT = "from pdkit.load import load\nfrom pdkit.judge import judge\nload('data/first-pd-benchmark/filtered')"


def reading(folder: Path, scale: float) -> None:
    """All records of a file, gap statistics included."""
    path = records(folder, scale=scale)
    size = path.stat().st_size / 1e6
    theirs = measured(
        _LOADS, f"for line in open({str(path)!r}): json.loads(line)", repeats=1 if scale > 0.2 else _REPEATS
    )
    ours = measured(_PDKIT, f"load({str(path)!r})", repeats=1 if scale > 0.2 else _REPEATS)
    _ratio(f"reading {size:,.0f} MB of records", ours, theirs, "json.loads, one record at a time")
    kept = (
        measured(_LOADS, f"kept = [json.loads(line) for line in open({str(path)!r})]", repeats=1)
        if scale <= 0.2
        else None
    )
    if kept:
        _ratio("the same, all records kept", ours, kept, "json.loads")


def sweep_(folder: Path, scale: float) -> None:
    """Captured output and records of one sweep."""
    home = sweep(folder, scale=scale)
    size = sum(file.stat().st_size for file in home.iterdir()) / 1e6
    theirs = measured(_LOADS, f"for line in open({str(home / 'result.jsonl')!r}): json.loads(line)")
    ours = measured(_PDKIT, f"load({str(home)!r})")
    _ratio(f"a sweep of {size:,.0f} MB", ours, theirs, "json.loads of its records alone")


def judging(_folder: Path, scale: float) -> None:
    """All rules over many runs."""
    runs = round(10_000 * scale)
    setup = f"{_PDKIT}\nimport sys\nsys.path.insert(0, 'benchmarks')\nfrom many import many\nevidence = many({runs})"
    cost = measured(setup, "judgement = judge(evidence)")
    print(f"judging {runs:,} runs: {cost.seconds:.2f} s, {cost.megabytes:,.0f} MB")
    with_findings = measured(setup, "judgement = judge(evidence); judgement.findings")
    print(f"  with all findings as sentences: {with_findings.seconds:.2f} s")


def servers(folder: Path, scale: float) -> None:
    """The logs of a decode and a prefill server: all gauges, events and settings, against a loop over lines."""
    home = server_pair(folder / "all", scale=scale)
    logs = sorted(map(str, home.iterdir()))
    size = sum(Path(log).stat().st_size for log in logs) / 1e6
    ours = measured(_PDKIT, f"load({str(home)!r})")
    theirs = measured(_PER_LINE, f"kept = [read(log) for log in {logs!r}]", repeats=1 if scale > 0.2 else _REPEATS)
    _ratio(f"servers' logs of {size:,.0f} MB", ours, theirs, "a loop over lines with re")
    ratio = ours.processor_seconds / theirs.processor_seconds
    print(
        f"  {theirs.seconds / ours.seconds:.1f} times as fast; {ratio:.2f} of its processor time, all threads counted"
    )
    search = "rg" if shutil.which("rg") else "grep"
    floor = shell(search, "-c", "Decode batch", *logs)
    print(f"  {ours.seconds / floor:.0f} times as long as {search} -c 'Decode batch' ({floor:.2f} s)")
    for what, other in (
        ("half the lines a second", server_pair(folder / "sparse", scale=scale, lines_a_second=LINES_A_SECOND // 2)),
        ("half the hours", server_pair(folder / "short", scale=scale / 2)),
    ):
        cost = measured(_PDKIT, f"load({str(other)!r})", repeats=1)
        print(f"  peak {ours.megabytes:,.0f} MB; with {what}: {cost.megabytes:,.0f} MB")


def report(folder: Path, _scale: float) -> None:
    """A whole report against running and exporting an empty notebook."""
    binaries = Path(sys.executable).parent
    empty = folder / "empty.ipynb"
    empty.write_text(_EMPTY)
    ran = shell(str(binaries / "papermill"), str(empty), str(folder / "ran.ipynb"), "-k", "python3")
    exported = shell(str(binaries / "jupyter-nbconvert"), "--to", "html", str(folder / "ran.ipynb"))
    ours = shell(
        str(binaries / "pdkit"), "report", "sweep_review", "data/split-l4-qwen3-8b", "--out", str(folder / "out")
    )
    print(
        f"report: {ours:.2f} s, {ours / (ran + exported):.2f} of papermill ({ran:.2f} s) and nbconvert ({exported:.2f} s) on an empty notebook"
    )


def check(_folder: Path, _scale: float) -> None:
    """The command from the shell, imports included."""
    binaries = Path(sys.executable).parent
    nothing = shell(sys.executable, "-c", "pass")
    for name, words in (
        ("--help", ["--help"]),
        ("check, one small log", ["check", "data/first-pd-benchmark/filtered"]),
        ("check, ten files", ["check", "data/real-client", "data/first-pd-benchmark"]),
    ):
        print(
            f"pdkit {name}: {shell(str(binaries / 'pdkit'), *words, repeats=5):.2f} s (an empty Python: {nothing:.2f} s)"
        )


def store(folder: Path, scale: float) -> None:
    """A store built of 5,000 runs with 2,000,000 requests, and its series read; and those of a tenth of it."""
    seconds = {}
    for runs in (max(10, round(500 * scale)), max(10, round(5000 * scale))):
        home, where = folder / str(runs), folder / f"store-{runs}"
        home.mkdir()
        logs = nights(home, runs=runs)
        took, megabytes = of_all_processes("ingest", str(logs), "--store", str(where))
        again, _ = of_all_processes("ingest", str(logs), "--store", str(where))
        size = sum(file.stat().st_size for file in where.rglob("*") if file.is_file()) / 1e6
        setup = f"import pdkit, pdkit.store, pdkit.series\nwhere = {str(where)!r}"
        opened = measured(setup, "pdkit.store.open(where).runs()")
        points = measured(setup, "pdkit.store.open(where).points('received_throughput_tok_per_s')")
        seconds[runs] = points.seconds
        print(
            f"store of {runs:,} runs with {runs * REQUESTS_A_RUN:,} requests: built in {took:.1f} s within {megabytes:,.0f} MB "
            f"(all processes), {size:,.0f} MB on disk; the same again {again:.1f} s"
        )
        print(f"  runs() {opened.seconds:.2f} s, points() {points.seconds:.2f} s, {points.megabytes:,.0f} MB")
    few, many = seconds.values()
    print(f"points of ten times the runs: {many / few:.1f} times the time")


def of_all_processes(*words: str) -> tuple[float, float]:
    """Seconds of a pdkit command, and the most megabytes that it and its processes held together."""
    start, most = time.perf_counter(), 0.0
    command = [str(Path(sys.executable).parent / "pdkit"), *words]
    with psutil.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT) as running:
        while running.poll() is None:
            with contextlib.suppress(psutil.Error):
                family = [running, *running.children(recursive=True)]
                most = max(most, sum(one.memory_full_info().pss for one in family))
            time.sleep(0.1)
    return time.perf_counter() - start, most / 1e6


def statistics(_folder: Path, scale: float) -> None:
    """How often equal sides are called different: no speed, and seeded."""
    simulate(scale)


def weekly(folder: Path, scale: float) -> None:
    """How often the weekly review is wrong and what it finds; then its page of 500 and of 5,000 runs."""
    simulate_weeks(scale)
    pdkit, took = str(Path(sys.executable).parent / "pdkit"), []
    for runs in (round(500 * scale), round(5_000 * scale)):
        home, kept = folder / str(runs), folder / f"store-{runs}"
        shell(pdkit, "ingest", str(nights(home, runs=runs)), "--store", str(kept), repeats=1)
        took.append(shell(pdkit, "report", "weekly_review", "--store", str(kept), "--out", str(home)))
        page = home / "weekly_review.html"
        print(f"weekly review of {runs:,} runs: {took[-1]:.2f} s, a page of {page.stat().st_size / 1e6:.2f} MB")
    print(f"  {took[1] / took[0]:.2f} times as long for ten times the runs")


_EMPTY = """{"cells": [], "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}"""
_ALL: dict[str, Callable[[Path, float], None]] = {
    "reading": reading,
    "sweep": sweep_,
    "judging": judging,
    "servers": servers,
    "report": report,
    "check": check,
    "store": store,
    "statistics": statistics,
    "weekly": weekly,
}


def _ratio(what: str, ours: tuple[float, float], theirs: tuple[float, float], yardstick: str) -> None:
    print(
        f"{what}: {ours[0]:.2f} s, {ours[1]:,.0f} MB; {ours[0] / theirs[0]:.2f} of the time and {ours[1] / theirs[1]:.2f} of the memory "
        f"of {yardstick} ({theirs[0]:.2f} s, {theirs[1]:,.0f} MB)"
    )


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *_ALL], default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full input")
    given = parser.parse_args()
    for name in given.names or _ALL:
        with tempfile.TemporaryDirectory() as folder:
            _ALL[name](Path(folder), given.scale)


if __name__ == "__main__":
    main()
