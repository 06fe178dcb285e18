"""In no format does a refused number stand without the words that say what it is."""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest
from hostile import refused

from pdkit.formats import github, junit, markdown, sarif, text
from pdkit.results import CLAIMED

# what the log of `refused` claims: 64 s, 4096 tokens, 64, 128 and 192 tok/s, latencies from 99 ms to 15.3 s
FIGURE = re.compile(r"64\.00|4,?096|\b128\.|\b192\.|2,?3[01]0|15,?[0-3][0-9]0|100\.[01]0|\b7\.50?\b|8,?192")


def sarif_messages(said: str) -> Iterator[str]:
    (run,) = json.loads(said)["runs"]
    yield json.dumps(run["properties"])
    yield from (result["message"]["text"] for result in run["results"])


def junit_texts(said: str) -> Iterator[str]:
    for element in ET.fromstring(said).iter():
        yield from (element.get("message", ""), element.text or "")


PIECES = {
    sarif: sarif_messages,
    junit: junit_texts,
    github: str.splitlines,
    markdown: lambda said: said.split("\n- "),
    text: lambda said: [line for line in said.splitlines() if "by PD" not in line],
}


@pytest.mark.parametrize("form", PIECES, ids=lambda form: form.__name__)
def test_a_refused_number_is_a_claim(tmp_path, form):
    pieces = [piece for piece in PIECES[form](form.text(refused(tmp_path))) if FIGURE.search(piece)]
    assert pieces
    assert [piece for piece in pieces if CLAIMED not in piece] == []
