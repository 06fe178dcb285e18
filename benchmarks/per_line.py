"""What most scripts do with a server's log: one line after another through Python's `re`, as well as that goes."""

import re
from collections import Counter
from pathlib import Path

_HEAD = re.compile(r"\[(\S+ [^ \].,]+)[.,\d]*([^\]]*)\]")
_PAIR = re.compile(r"([^,:]+): ([^,\s]+)")
_ANSWER = re.compile(r'\[(\S+ [^ \].,]+)[^\]]*\].*"POST /(?:generate|v1/\S+) HTTP/[0-9.]+" ([0-9]{3})')
_ROOM = re.compile(r"(Prefill|Decode) transfer failed for request .*bootstrap_room=(\d+)")
_TRUTHS = {"True": 1.0, "False": 0.0}
Gauge = tuple[str, str, str]  # second, ranks, key


def read(path: str | Path) -> tuple[dict[Gauge, list[float]], Counter[tuple[str, str]], set[tuple[str, str]]]:
    """Least, sum, most and number of each gauge a second; answers by second and status; failures by room."""
    gauges: dict[Gauge, list[float]] = {}
    answers: Counter[tuple[str, str]] = Counter()
    failed = set()
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if " batch, " in line:
                _add(gauges, line)
            elif " HTTP/" in line:
                if found := _ANSWER.search(line):
                    answers[found[1], found[2]] += 1
            elif " failed for request " in line and (found := _ROOM.search(line)):
                failed.add((found[1], found[2]))
    return gauges, answers, failed


def _add(gauges: dict[Gauge, list[float]], line: str) -> None:
    if not (head := _HEAD.search(line)):
        return
    second, ranks = head.groups()
    for key, said in _PAIR.findall(line, line.index(" batch, ") + len(" batch, ")):
        try:
            value = _TRUTHS[said] if said in _TRUTHS else float(said)
        except ValueError:
            continue
        kept = gauges.get((second, ranks, key))
        if kept is None:
            gauges[second, ranks, key] = [value, value, value, 1]
        else:
            kept[1] += value
            kept[3] += 1
            if value < kept[0]:
                kept[0] = value
            elif value > kept[2]:
                kept[2] = value
