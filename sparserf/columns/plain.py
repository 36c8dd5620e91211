"""Columns of plain numbers of a data frame, read together by one call of the frame's library.

To read a column alone takes some tens of microseconds whatever its length, which is most of the
time where a frame has few rows and thousands of columns. The result is the same either way.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

# Frames of more rows are read column by column: there the cells take the time, and reading them
# together would copy them twice.
FEW_ROWS = 2**14
# The dtypes of plain numbers, as polars and Arrow write them.
IN_POLARS = {f"{kind}{bits}" for kind in ("Int", "UInt") for bits in (8, 16, 32, 64)} | {
    "Float32",
    "Float64",
    "Boolean",
}
IN_ARROW = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {
    "float",
    "double",
    "bool",
}
# The dtypes of booleans, and of float32, in lower case.
BOOLEANS = {"bool", "boolean", "bool[pyarrow]"}
SINGLE = {"float32", "float", "float[pyarrow]"}


def plain_numbers(X: Any) -> tuple[np.ndarray, np.ndarray, frozenset[int]]:
    """Return (places, numbers, flags) of the columns of plain numbers of a frame with few rows.

    places : ndarray of int, the places of the columns; empty for a frame with more rows
    numbers : ndarray of shape (n_rows, n_places), NaN where cells are missing; float32 if all
        columns are, else float64
    flags : the places of those that hold booleans
    """
    library = type(X).__module__.partition(".")[0]
    n_rows = X.num_rows if hasattr(X, "num_rows") else len(X)
    if not (library in READERS and 0 < n_rows <= FEW_ROWS):
        return np.arange(0), np.zeros((n_rows, 0)), frozenset()
    dtypes = X.schema.types if library == "pyarrow" else list(X.dtypes)
    is_plain, read = READERS[library]
    kinds = {dtype: is_plain(dtype) for dtype in set(dtypes)}
    places = [k for k, dtype in enumerate(dtypes) if kinds[dtype]]
    used = {dtype for dtype, plain in kinds.items() if plain}
    is_single = {str(dtype).lower() for dtype in used} <= SINGLE
    chosen = None if len(places) == len(dtypes) else places
    numbers = read(X, chosen, used) if places else np.zeros((n_rows, 0))
    are_flags = {dtype: str(dtype).lower() in BOOLEANS for dtype in used}
    flags = frozenset(k for k in places if are_flags[dtypes[k]])
    numbers = np.asarray(numbers, np.float32 if is_single else np.float64)
    return np.array(places, int), numbers, flags


def _is_plain_in_pandas(dtype):
    """Return whether a dtype of pandas is one of dense numbers of at most 64 bits."""
    return (
        getattr(dtype, "kind", "O") in "fiub"
        and not hasattr(dtype, "fill_value")
        and dtype.itemsize <= 8
    )


def _read_pandas(X, chosen, dtypes):
    """Return the chosen columns, or all, of pandas as an ndarray."""
    part = X if chosen is None else X.iloc[:, chosen]
    if all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return part.to_numpy() if len(dtypes) == 1 else part.to_numpy(np.float64)
    return part.to_numpy(np.float64, na_value=np.nan)


def _read_polars(X, chosen, dtypes):
    """Return the chosen columns, or all, of polars as an ndarray."""
    names, polars = X.columns, sys.modules["polars"]
    part = X if chosen is None else X.select([names[k] for k in chosen])
    part = part.cast({polars.Boolean: polars.UInt8}) if polars.Boolean in dtypes else part
    return part.to_numpy()


def _read_arrow(X, chosen, dtypes):
    """Return the chosen columns, or all, of Arrow as an ndarray."""
    (batch,) = (X if chosen is None else X.select(chosen)).combine_chunks().to_batches()
    if any(str(dtype) == "bool" for dtype in dtypes):
        arrays = [
            column.cast("uint8") if str(column.type) == "bool" else column
            for column in batch.columns
        ]
        batch = type(batch).from_arrays(arrays, [str(k) for k in range(len(arrays))])
    return batch.to_tensor(null_to_nan=True).to_numpy()


# {library: (whether a dtype is one of plain numbers, the reader of columns of such dtypes)}
READERS = {
    "pandas": (_is_plain_in_pandas, _read_pandas),
    "polars": (lambda dtype: str(dtype) in IN_POLARS, _read_polars),
    "pyarrow": (lambda dtype: str(dtype) in IN_ARROW, _read_arrow),
}
