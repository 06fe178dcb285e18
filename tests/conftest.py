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
    """Hold a text against the file of that name; `--renew-golden` writes the file."""

    def hold(name: str, found: str) -> None:
        file = request.path.parent / "golden" / name
        if request.config.getoption("--renew-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(found, "utf-8")
        assert found == file.read_text("utf-8"), f"{file} differs; if it should, renew it: pytest --renew-golden"

    return hold
