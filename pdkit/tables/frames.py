"""The same numbers as pandas frames, for the cells of a notebook."""

from typing import TYPE_CHECKING, Any

import polars as pl

from pdkit.metrics import RESULTS
from pdkit.results import Judgement

if TYPE_CHECKING:
    import pandas as pd


def to_pandas(frame: pl.DataFrame) -> "pd.DataFrame":
    """The same table for pandas, column by column: without pyarrow, and with missing values kept as missing."""
    import pandas as pd

    return pd.DataFrame({name: _series(frame[name]) for name in frame.columns})


def _series(column: pl.Series) -> "pd.Series[Any]":
    import pandas as pd

    values = column.to_list()
    if column.dtype.is_integer():
        return pd.Series(values, dtype="Int64" if column.dtype.is_signed_integer() else "UInt64")
    if column.dtype == pl.Boolean:
        return pd.Series(values, dtype="boolean")
    return pd.Series(
        values, dtype="float64" if column.dtype.is_float() else None if column.dtype.is_temporal() else "object"
    )


def results_frame(judgement: Judgement) -> "pd.DataFrame":
    """One row a run with its verdict and every number that may be published, for notebooks."""
    return to_pandas(judgement.for_results.wide(*RESULTS))
