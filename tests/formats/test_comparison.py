"""What `pdkit compare` prints of repeats; after a wanted change, `pytest --renew-golden` renews the files."""

import json
from pathlib import Path

import pytest
from logs import RECORD, details, record, write

from pdkit.compare import Comparison, compare
from pdkit.formats import comparison as formats
from pdkit.load import load

LEFT_OUT = "left out here"  # what could not be looked at: else each new rule would change every file


def run(folder: str, speed: float, minute: int, **changes: object) -> None:
    """A record at 8 users on a server that is so many times as fast, and when it began."""
    slower = {key: RECORD[key] / speed for key in RECORD if key.endswith("_ms") or key == "duration"}
    faster = {key: RECORD[key] * speed for key in RECORD if key.endswith("_throughput")}
    write(Path(folder) / "result.jsonl", record(**(slower | faster | changes)) + "\n")
    began = f"started_at = 2026-09-01T10:{minute:02d}:00Z"
    write(Path(folder) / "sweep.toml", ["[[level]]", "concurrency = 8", "prompts = 32", began])


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Three runs against four that took turns; one of the four brought no text, and one kept its requests."""
    monkeypatch.chdir(tmp_path)
    for i, speed in enumerate((0.99, 1.01)):
        run(f"before/{i + 1}", speed, 4 * i)
    for i, speed in enumerate((1.09, 1.1, 1.11)):
        run(f"after/{i + 1}", speed, 4 * i + 2)
    run("after/4", 1.2, 14, total_output_tokens_retokenized=0)
    run("before/3", 1, 8, **details())
    return compare(load("before"), load("after"))


def test_repeats_print_as_they_did(compared: Comparison, golden) -> None:
    # nine digits: the last ones are the machine's
    document = json.loads(formats.json(compared), parse_float=lambda text: round(float(text), 9)) | {"pdkit": LEFT_OUT}
    for pair in document["pairs"]:
        pair["not_evaluated"] = LEFT_OUT
    said, whole = formats.text(compared), json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    assert said == golden("repeats.txt", said)
    assert whole == golden("repeats.json", whole)


def test_no_refused_number_is_printed_as_a_result(compared: Comparison) -> None:
    """The run without text claims 63.99877 x 1.2 = 76.80 tok/s."""
    lines = [line for line in formats.text(compared).splitlines() if "76.8" in line]
    assert len(lines) == 1
    assert "claimed, not measured" in lines[0]
