"""The values of columns that take few whole numbers, found block by block, against all at once."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sparserf.rows.few_values import FIRST_ROWS, MOST, FewValues

from .homes import HOMES

RNG = np.random.default_rng(0)
N = 2 * FIRST_ROWS + 5
X = np.column_stack(
    [
        RNG.normal(size=N),
        RNG.integers(0, 2, N),
        RNG.integers(-3, 4, N) * 1e6,
        RNG.integers(0, MOST, N),
        np.arange(N) % (MOST + 1),
        np.where(RNG.random(N) < 0.4, np.nan, RNG.integers(0, 3, N)),
        np.append(np.zeros(N - 1), 0.5),
        np.full(N, np.nan),
        np.append(-0.0, np.zeros(N - 1)),
    ]
)


def expected(rows):
    """Return {column: its values} by sorting whole columns."""
    found = {}
    for j, x in enumerate(rows.T.astype(float)):
        values = np.unique(x[~np.isnan(x)] + 0.0)
        if 0 < len(values) <= MOST and (values == np.rint(values)).all():
            found[j] = values.tolist()
    return found


def by_column(few):
    every = few.by_column(np.ones(len(few.is_few), bool), MOST)
    return {j: values.tolist() for j, values in every.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_of_dense_and_sparse_rows_and_of_parts(dtype):
    rows = X.astype(dtype)
    assert sorted(expected(rows)) == [1, 2, 3, 5, 8]
    mostly_zero = np.where(RNG.random(X.shape) < 0.7, 0, rows).astype(dtype)
    for some in (rows, mostly_zero):
        assert by_column(FewValues.of_rows(some)) == expected(some)
        assert by_column(FewValues.of_rows(sp.csr_array(some))) == expected(some)
        parts = [FewValues.of_rows(part) for part in np.array_split(some, 7)]
        joined = parts[0]
        for part in parts[1:]:
            joined = part.join(joined)
        assert by_column(joined) == expected(some)
    assert np.signbit(FewValues.of_rows(rows).by_column(np.ones(9, bool), 1)[8]).tolist() == [False]


@pytest.mark.parametrize("home", ["chunks", "dask"])
def test_in_other_homes(home):
    from sparserf.rows import as_rows

    rows = np.tile(np.where(np.isnan(X), 0.0, X), (1200 // N + 1, 1))[:1200]
    assert by_column(as_rows(HOMES[home](rows)).few_values) == expected(rows)


def test_columns_of_fractions_are_left_before_they_are_sorted():
    rows = RNG.normal(size=(FIRST_ROWS, 3000))
    tracemalloc.start()
    few = FewValues.of_rows(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not few.is_few.any() and len(few.value) == 0
    # a copy of the rows, and the whole numbers beside them; with their columns sorted it was 10
    assert peak < 3.5 * rows.nbytes
