"""Workflow commands: one annotation a run and kind, and no log text that is a command."""

import re

from hostile import hostile, refused

from pdkit.formats import github

COMMAND = re.compile(r"::(error|warning|notice) (?:file=([^,]*),line=(\d+),)?title=([^,:]*)::(.*)")


def commands(text: str) -> list[tuple[str, ...]]:
    found = [COMMAND.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [match.groups() for match in found if match]


def unescaped(text: str) -> str:
    for code, char in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_a_refused_run_is_one_error_on_its_first_line(tmp_path):
    found = commands(github.text(refused(tmp_path)))
    (error,) = [one for one in found if one[0] == "error"]
    assert error[1].endswith("bench.log")
    assert int(error[2]) > 0
    title, message = unescaped(error[3]), unescaped(error[4])
    assert title.endswith("8 users: no measured result")
    first, *_, last = message.splitlines()
    assert first.startswith("PD101: 0 of 4,096 claimed tokens came back as text (0.0%) (bench.log:")
    assert last == "64.00 tok/s claimed, not measured"


def test_every_line_is_a_command_whatever_a_log_says(tmp_path):
    text = github.text(hostile(tmp_path))
    found = commands(text)
    kinds = [one[0] for one in found]
    assert kinds == sorted(kinds, key=["error", "warning", "notice"].index)
    (broken,) = [one for one in found if "PD401" in one[4]]
    assert "%0A:1" in unescaped(broken[3])  # the folder's own name, not a line's end
    assert "%250A::warning::pwn" in broken[4]
    (line,) = [one for one in found if one[3] == "line not understood"]
    assert line[0] == "warning"
