"""What rows of settings and facts say: one word, one number, and where they stand."""

import polars as pl


def named(settings: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows of one setting."""
    return settings.filter(pl.col("name") == name)


def text_of(settings: pl.DataFrame, name: str) -> str | None:
    """The word that a setting has first."""
    return first_of(named(settings, name), "text")


def number_of(settings: pl.DataFrame, name: str) -> float | None:
    """The greatest number that a setting has."""
    values = named(settings, name)["value"].drop_nulls()
    return as_float(values.max())


def first_of(frame: pl.DataFrame, column: str) -> str | None:
    """The first word in a column, where there is such a column."""
    if column not in frame.columns:
        return None
    values = frame[column].drop_nulls()
    return str(values[0]) if len(values) else None


def as_float(value: object) -> float | None:
    """What polars makes of a column, where that is a number."""
    return float(value) if isinstance(value, int | float) else None


def places_of(rows: pl.DataFrame) -> tuple[str, ...]:
    """Where rows stand, each once."""
    placed = rows.select("source_file", "source_line").drop_nulls().unique(maintain_order=True)
    return tuple(f"{file}:{line}" for file, line in placed.iter_rows())
