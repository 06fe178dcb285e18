"""Markdown for a comment: it fits, says what did not fit, and log text has no power in it."""

import re

import mistune
import pytest
from hostile import hostile, many, refused

from pdkit.formats import markdown

ROOM = 65_536  # characters of a comment on GitHub


def rendered(text: str) -> str:
    plugins = ["table", "strikethrough", "url", "task_lists", "footnotes", "math"]
    return str(mistune.create_markdown(escape=False, plugins=plugins)(text))


def test_a_claim_is_called_so_and_stands_in_no_table(tmp_path):
    text = markdown.text(refused(tmp_path))
    (row,) = [line for line in text.splitlines() if line.startswith("| 8 users")]
    assert row == "| 8 users | no measured result | – | – | – | – | PD101 PD110 |"
    (head,) = [line for line in text.splitlines() if line.startswith("- **8 users**")]
    assert head.endswith(
        "no measured result; figures as printed: claimed, not measured; 64.00 tok/s claimed, not measured"
    )


def test_log_text_makes_no_markup(tmp_path):
    html = rendered(markdown.text(hostile(tmp_path)))
    tags = set(re.findall(r"</?([a-z0-9]+)", html))
    assert tags <= {"h3", "ul", "li", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td",
                    "details", "summary"}  # fmt: skip
    assert "<strong>bold" not in html
    assert "alert(1)" in html
    outside = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"@octocat|#12|GH-7|evil\.example", outside)  # GitHub looks for these where no code is


@pytest.mark.parametrize(
    "said",
    ["www.evil.example", "https://evil.example", "a@b.example", ":tada:", "<b>", "a|b", "`", "~~x~~", "$x$", "[^1]"],
)
def test_what_github_would_read_is_not_there_to_read(said):
    source = markdown.escaped(said)
    assert said not in source
    assert not re.search(r"<(?!/?(?:code|p)>)", rendered(source))


def test_a_long_text_is_clipped_with_a_mark():
    said = markdown.escaped("x" * 10_000)
    assert said == "x" * 300 + "…"


def test_a_long_sweep_fits_and_what_is_left_out_is_counted(tmp_path):
    text = markdown.text(many(tmp_path, 300))
    assert len(text) < ROOM
    assert text.count("| no measured result |") == 300
    told = text.count(": no measured result; figures")
    assert 0 < told < 300
    assert f"**{300 - told} more rows did not fit here**: `pdkit check` prints them all." in text
    assert text.count("<details>") == text.count("</details>")
