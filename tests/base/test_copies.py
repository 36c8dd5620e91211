"""Equal rows have one number, in any form of X; copies are told from new observations of the same
few values."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._base.copies import copies_of, joined, number_rows, warn_of_copies
from sparserf._base.csr import canonical_csr

RNG = np.random.default_rng(0)
N = 300
AGAIN = RNG.integers(0, N, N)
NUMBERS = RNG.normal(size=(N, 3))
HOLES = np.where(RNG.random((N, 3)) < 0.3, np.nan, NUMBERS)
WHOLE = RNG.integers(-5, 6, (N, 4)).astype(float)
NOISE = RNG.normal(size=N)


def same(number):
    """Return for each pair of rows whether they have one number."""
    return number[:, None] == number


@pytest.mark.parametrize("X", [NUMBERS, HOLES, WHOLE, WHOLE[:, :1]], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, "F"])
def test_equal_rows_have_one_number(X, dtype):
    X = np.asfortranarray(X) if dtype == "F" else X.astype(dtype)
    X = X[AGAIN]
    equal = ((X[:, None] == X) | (np.isnan(X[:, None]) & np.isnan(X))).all(axis=2)
    assert (same(number_rows(X)) == equal).all()
    assert equal.sum() > N


def test_zeros_and_missing_cells_of_any_kind_are_equal():
    payload = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    X = np.array([[0.0, np.nan], [-0.0, payload], [0.0, -np.nan], [0.0, 0.0], [1.0, np.nan]])
    assert number_rows(X)[0] == number_rows(X)[1] == number_rows(X)[2]
    assert len(np.unique(number_rows(X))) == 3


def test_rows_of_the_same_cells_in_other_columns_differ():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0], [0.0, 3.0], [1e300, 1.0], [1e300, 2.0]])
    assert len(np.unique(number_rows(X))) == len(X)
    assert len(np.unique(number_rows(sp.csr_array(X)))) == len(X)


@pytest.mark.parametrize("step", [2**18, 40])
def test_sparse_rows_are_numbered_as_dense_ones(monkeypatch, step):
    monkeypatch.setattr("sparserf._base.copies.HASHED", step)
    X = np.where(RNG.random((N, 6)) < 0.3, RNG.integers(1, 3, (N, 6)), 0).astype(float)
    X[:3] = 0  # rows without entries
    csr = sp.csr_array(X)
    stored = csr.copy()
    stored.data[::5] = 0  # zeros that are stored
    for each in (csr, stored):
        assert (same(number_rows(each)) == same(number_rows(each.toarray()))).all()
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)]
    )
    unsorted = sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=X.shape)
    assert (same(number_rows(canonical_csr(unsorted))) == same(number_rows(X))).all()
    assert (same(number_rows(unsorted)) == same(number_rows(X))).all()


def levels(rng, sizes, n=N):
    return np.column_stack([rng.integers(0, size, n) for size in sizes]).astype(float)


@pytest.mark.parametrize(
    ("X", "y", "rows"),
    [
        (NUMBERS, NOISE, AGAIN),
        (NUMBERS[:, :1], NOISE, AGAIN),
        (NUMBERS, NOISE > 0, AGAIN),
        (WHOLE, NOISE, AGAIN),
        (WHOLE, NOISE > 0, AGAIN),
        (HOLES, NOISE, AGAIN),
        (NUMBERS, NOISE, np.tile(np.arange(30), 10)),
        (WHOLE, NOISE > 0, np.repeat(np.arange(60), 5)),
        (levels(RNG, [2] * 30), NOISE > 0, np.repeat(np.arange(N), 2)),
        (NUMBERS, NOISE, np.append(np.arange(N), 0)),
    ],
    ids=[
        "bootstrap", "one column", "labels", "whole numbers", "their labels", "missing cells",
        "thirty rows ten times", "sixty rows five times", "flags twice", "one copy",
    ],
)  # fmt: skip
def test_copies_are_found_in_any_order(X, y, rows):
    rows = RNG.permutation(rows)
    for each in (X, sp.csr_array(X)):
        copies = copies_of(each[rows], y[rows])
        assert copies is not None and (same(copies) == same(number_rows(X[rows]))).all()


@pytest.mark.parametrize("sizes", [[2], [2, 2, 2], [6, 6], [5, 5, 5], [30], [60, 3]], ids=str)
@pytest.mark.parametrize("kind", ["noise", "labels", "none"])
def test_rows_of_few_values_are_new_observations(sizes, kind):
    """With y a function of X alone, too: where the columns can make no others, or few values."""
    X, n = levels(np.random.default_rng(1), sizes, 1000), 1000
    f = np.random.default_rng(2).normal(size=10**5)[(X @ [7, 63, 500][: len(sizes)]).astype(int)]
    noise = np.random.default_rng(3).normal(size=n)
    y = {"noise": f + noise, "labels": f + noise > 0, "none": f}[kind]
    if kind == "none" and sizes == [30]:
        pytest.skip("a number tells rows apart, each with one y")
    assert copies_of(X, y) is None


def test_a_level_of_its_own_is_no_copy():
    """Words come again, as numbers of measured things do not."""
    X = np.random.default_rng(4).integers(0, 200, (N, 1)).astype(float)
    assert copies_of(X, NOISE, np.array([True])) is None
    assert copies_of(X, NOISE, np.array([False])) is not None
    assert copies_of(X, X[:, 0], np.array([True])) is None


def test_a_row_of_zeros_is_a_level_where_its_y_differ():
    """As in sparse rows, of which some have no entry."""
    X = np.where(np.arange(N)[:, None] % 8 == 0, 0.0, NUMBERS)
    assert copies_of(X, NOISE) is None
    copies = copies_of(X[AGAIN], NOISE[AGAIN])
    assert (same(copies) >= same(AGAIN))[AGAIN % 8 > 0].all()
    assert copies_of(X, np.where(X[:, 0] == 0, 1.0, NOISE)) is not None


def test_rows_that_all_differ_or_all_agree_have_no_copies():
    assert copies_of(NUMBERS, NOISE) is None
    assert copies_of(np.zeros((N, 3)), NOISE) is None
    assert copies_of(NUMBERS[:1], NOISE[:1]) is None


def test_rows_are_joined_by_copies_and_by_groups():
    number = np.array([0, 1, 1, 2, 3])
    assert joined(number, None) is number
    together = joined(number, np.array([0, 0, 1, 1, 2]))
    assert len(np.unique(together[:4])) == 1 and together[4] != together[0]


def test_more_than_a_tenth_is_worth_a_word():
    with warnings.catch_warnings(action="error"):
        warn_of_copies(None)
        warn_of_copies(np.repeat(np.arange(90), [11, *[1] * 89]))
    with pytest.warns(srf.CopiedRowsWarning, match=r"11 of 100 rows.*sample_weight"):
        warn_of_copies(np.repeat(np.arange(89), [12, *[1] * 88]))
