"""A file of tables that a user wrote, read once and refused in one sentence."""

import tomllib
from pathlib import Path
from typing import Any

from pdkit.errors import PdkitError


def read_toml(file: Path, *, what: str, form: str) -> dict[str, Any]:
    """What the file says; `what` it is and which `form` it takes are for the sentence that refuses it.

    Raises:
        PdkitError: no such file, or not TOML.
    """
    if not file.is_file():
        raise PdkitError(f"{file}: no such {what}")
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))  # Windows' editors put a mark before it
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise PdkitError(f"{file}: not valid TOML ({problem}); {form}") from problem


def tables_of(file: Path, said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of that name, in their order.

    Raises:
        PdkitError: something else stands there.
    """
    tables = said.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PdkitError(f"{file}: {name} is no list of tables; write `[[{name}]]` above each")
    return tables
