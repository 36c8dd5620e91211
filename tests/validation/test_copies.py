"""Copies of a row stay in one part, in `cross_validate`, `calibrated` and `intervals`."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.validation.folds import Dataset

N = 200
RNG = np.random.default_rng(0)
ROWS = RNG.integers(0, N, N)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=N)
X, Y = X[ROWS], Y[ROWS]
FIT = partial(srf.sparse_rf, features="gaussian", n_components=50, alpha=0.1)
HOMES = {
    "array": X,
    "float32": X.astype(np.float32),
    "CSR": sp.csr_array(X),
    "objects": X.astype(object),
    "words": np.column_stack([X.astype(object), [f"w{k % 7}" for k in ROWS]]),
    "frame": pd.DataFrame(X, columns=["a", "b"]),
    "frame with words and dates": pd.DataFrame(
        {"a": X[:, 0], "w": [f"w{k % 7}" for k in ROWS], "t": pd.to_datetime(ROWS, unit="D")}
    ),
    "missing cells": np.where(ROWS[:, None] % 5 == [0, 1], np.nan, X),
}
copied = pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")


def are_whole(fold):
    """Return whether copies have one fold."""
    return all(len(np.unique(fold[ROWS == k])) == 1 for k in np.unique(ROWS))


def mean_model(X, y, rng=None, sample_weight=None):
    return srf.drp(np.zeros((len(y), 1)), y, alpha=1.0, sample_weight=sample_weight)


@copied
@pytest.mark.every_case
@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("of_labels", [True, False])
def test_folds_and_parts_keep_copies_together(home, of_labels):
    y = Y > 0 if of_labels else Y
    data = Dataset.from_arguments(HOMES[home], y, None)
    fold = data.assign_folds(5, np.random.default_rng(0))
    assert are_whole(fold) and np.bincount(fold).min() > 0.8 * N / 5
    drawn, rest = data.draw(np.arange(N), 60, np.random.default_rng(0))
    assert not np.intersect1d(ROWS[drawn], ROWS[rest]).size and 50 <= len(drawn) <= 70
    assert np.array_equal(np.sort(np.concatenate([drawn, rest])), np.arange(N))


@copied
def test_rows_of_weight_zero_are_no_copies():
    weight = (np.arange(N) % 3 > 0) * 1.0
    data = Dataset.from_arguments(X, Y, weight)
    fold = data.assign_folds(5, np.random.default_rng(0))
    assert ((fold >= 0) == (weight > 0)).all() and are_whole(np.where(fold < 0, 9, fold)) is False
    there = weight > 0
    assert all(len(np.unique(fold[there & (ROWS == k)])) < 2 for k in range(N))


@pytest.mark.slow
@copied
def test_cross_validation_keeps_copies_together_and_says_the_loss_of_new_rows():
    losses = {}
    memory = partial(srf.sparse_rf, features="gaussian", gamma=30.0, alpha=1e-3, n_components=400)
    found = srf.cross_validate(memory, X, Y, {}, cv=5, rng=0)
    assert are_whole(found.fold)
    apart = srf.cross_validate(memory, X, Y, {}, cv=5, groups=np.arange(N), rng=0)
    assert not are_whole(apart.fold)
    losses = [found.table["mean"][0], apart.table["mean"][0]]
    assert losses[0] > 1.5 * losses[1]


@pytest.mark.slow
@copied
def test_no_more_folds_than_different_rows():
    some = np.tile(np.arange(12), 5)
    Z, t = RNG.normal(size=(12, 3))[some], RNG.normal(size=12)[some]
    found = srf.cross_validate(FIT, Z, t, {}, cv=20, rng=0)
    assert found.losses.shape == (1, 12)
    assert len(srf.intervals(FIT, Z, t, method="cv+", cv=20, coverage=0.5, rng=0).experts) == 12
    model = srf.calibrated(partial(FIT, loss="logistic"), Z, t > np.median(t), cv=20, rng=0)
    assert len(model.classes) == 2
    with pytest.raises(ValueError, match="cv must be at most the number of rows, 60, got 61"):
        srf.cross_validate(FIT, Z, t, {}, cv=61, rng=0)


@copied
def test_folds_of_few_kinds_of_rows_are_of_rows():
    Z = RNG.integers(0, 2, (N, 2)).astype(float)
    fold = srf.cross_validate(FIT, Z, Y, {}, cv=5, rng=0).fold
    assert (np.bincount(fold) == N // 5).all()


@pytest.mark.slow
@copied
def test_intervals_of_copies_hold_new_rows():
    """Copies in both parts gave residuals of rows that were learned by heart."""
    held = []
    memory = partial(srf.sparse_rf, features="gaussian", gamma=30.0, alpha=1e-3, n_components=400)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        Z, rows = rng.normal(size=(N, 1)), rng.integers(0, N, N)
        t = Z[:, 0] + rng.normal(size=N)
        bands = srf.intervals(memory, Z[rows], t[rows], coverage=0.8, rng=0)
        new = rng.normal(size=(500, 1))
        low, high = bands.predict(new)
        of_new = new[:, 0] + rng.normal(size=500)
        held.append(np.mean((low <= of_new) & (of_new <= high)))
    assert np.mean(held) > 0.77


@pytest.mark.slow
def test_many_copies_are_said_once_where_rows_are_divided():
    for call in (
        lambda: srf.cross_validate(srf.sparse_rf, X, Y, {"effort": [0.02]}, cv=2, rng=0),
        lambda: srf.calibrated(partial(FIT, loss="logistic"), X, Y > 0, rng=0),
        lambda: srf.intervals(FIT, X, Y, rng=0, adaptive=False),
    ):
        with pytest.warns(srf.CopiedRowsWarning, match="of 200 rows are equal") as warned:
            call()
        assert len(warned) == 1
    with warnings.catch_warnings(action="error"):
        srf.intervals(FIT(X, Y, rng=0), X, Y, adaptive=False)
        srf.calibrated(FIT(X, Y > 0, loss="logistic", rng=0), X, Y > 0)
        srf.cross_validate(FIT, X, Y, {}, groups=ROWS, rng=0)


@copied
def test_what_a_table_cannot_hold_is_left_to_the_function():
    Z = np.empty((N, 1), object)
    Z[:, 0] = [[k] for k in range(N)]
    found = srf.cross_validate(
        lambda X, y, rng: mean_model(X, y), Z, Y, {}, rng=0,
        measure=lambda model, X, y: (y - model.intercept) ** 2,
    )  # fmt: skip
    assert found.losses.shape == (1, 5)
