"""What all tests share: `pytest --renew-golden`, and the repository as a place to stand in."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write golden files anew instead of comparing them")


@pytest.fixture
def in_repository(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tests' paths are those that a reader of the README would type."""
    monkeypatch.chdir(REPOSITORY)
    return REPOSITORY


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """The text of the golden file of that name, to hold what was found against; `--renew-golden` writes it first."""

    def kept(name: str, found: str) -> str:
        file = request.path.parent / "golden" / name
        if request.config.getoption("--renew-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(found, "utf-8")
        return file.read_text("utf-8")

    return kept
