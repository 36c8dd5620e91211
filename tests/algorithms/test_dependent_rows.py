"""Rows that look grouped or ordered in time and were not said to be: a warning says so, and none
comes of independent rows.

A fit is cut short by a callback: the warning comes before the search.
"""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.algorithms.dependent_rows import (
    MOST_ROWS,
    detect_dependence,
    evenly_spaced_runs,
)


def fit_briefly(X, y, **options):
    return srf.sparse_rf(X, y, effort=0.02, rng=0, **options)


def persons(rng, n=60, visits=6):
    """Return numbers of persons, X with their numbers and another column, and y with a level for
    each, in random order."""
    person = rng.permutation(np.repeat(np.arange(n), visits))
    X = np.column_stack([person, rng.normal(size=(len(person), 2))])
    y = rng.normal(size=n)[person] + X[:, 1] + 0.3 * rng.normal(size=len(person))
    return person, X, y


def days(rng, n=500):
    """Return X with columns that change slowly from day to day, and y with a drift of its own."""
    walk = np.cumsum(rng.normal(size=(n, 2)), axis=0)
    X = np.column_stack([walk, rng.normal(size=n)])
    drift = np.zeros(n)
    for i in range(1, n):
        drift[i] = 0.9 * drift[i - 1] + rng.normal()
    return X, X[:, 2] + drift + 0.3 * rng.normal(size=n)


def independent(rng, n=400):
    X = np.column_stack(
        [
            rng.normal(size=(n, 3)),
            rng.integers(0, 60, n),
            np.round(rng.uniform(-2, 2, n), 1),
            rng.integers(0, 2, n),
        ]
    )
    y = np.sin(3 * X[:, 4]) + X[:, 0] * X[:, 5] + 0.02 * X[:, 3] + 0.2 * rng.normal(size=n)
    return X, y


@pytest.mark.slow
def test_groups_are_seen_and_said():
    person, X, y = persons(np.random.default_rng(0))
    with pytest.warns(srf.GroupedRowsWarning, match=r"column 0 \(60 levels of 6.*groups=X\[:, 0\]"):
        fit_briefly(X, y)
    table = pd.DataFrame(X[:, 1:], columns=["a", "b"]).assign(id=[f"u{i}" for i in person])
    with pytest.warns(srf.GroupedRowsWarning, match=r"column 'id' \(60 .*groups=X\['id'\]"):
        fit_briefly(table, y)
    with pytest.warns(srf.GroupedRowsWarning, match="column 0"):
        fit_briefly(X, y > 0, loss="logistic")


def test_order_is_seen_and_said():
    X, y = days(np.random.default_rng(1))
    with pytest.warns(srf.GroupedRowsWarning, match="ordered.*validation=TimeSeriesSplit"):
        fit_briefly(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_seasons_of_dates_are_no_order(seed):
    rng = np.random.default_rng(seed)
    X, y = days(rng, 1500)
    day = np.arange(1500.0)
    dated = np.column_stack([X, day])
    assert detect_dependence(dated, y[None], dates=[3]) is not None
    y = np.sin(2 * np.pi * day / 365.2425) + (day % 7 < 2) + 0.3 * rng.normal(size=len(day))
    assert detect_dependence(dated, y[None], dates=[3]) is None
    assert detect_dependence(day[:, None], y[None], dates=[0]) is None
    table = pd.DataFrame({"at": pd.to_datetime(day, unit="D")})
    fit_briefly(table, y)


@pytest.mark.slow
@pytest.mark.parametrize("said", ["groups", "pairs", "mask", "share"])
def test_what_was_said_is_not_said_again(said):
    rng = np.random.default_rng(3)
    person, X, y = persons(rng)
    half = np.isin(person, np.arange(30))
    how = {
        "groups": {"groups": person},
        "pairs": {"validation": [(np.flatnonzero(half), np.flatnonzero(~half))]},
        "mask": {"validation": ~half},
        "share": {"validation": 0.2},
    }
    fit_briefly(X, y, **how[said])
    X, y = days(rng)
    later = np.arange(len(y)) >= 400
    how = {
        "groups": {"groups": np.arange(len(y)) // 50},
        "pairs": {"validation": [(np.flatnonzero(~later), np.flatnonzero(later))]},
        "mask": {"validation": later},
        "share": {"validation": 0.2},
    }
    fit_briefly(X, y, **how[said])


@pytest.mark.slow
def test_a_penalty_and_a_filter_are_silent():
    _, X, y = persons(np.random.default_rng(4))
    srf.sparse_rf(X, y, alpha=0.1, n_components=500, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", srf.GroupedRowsWarning)
        fit_briefly(X, y)


@pytest.mark.parametrize("seed", range(20))
def test_independent_rows_are_silent(seed):
    X, y = independent(np.random.default_rng(seed))
    assert detect_dependence(X, y[None]) is None
    assert detect_dependence(X, np.where(y > 0, 1.0, -1.0)[None], has_labels=True) is None
    order = np.argsort(X[:, 3], kind="stable")  # sorted by a column
    assert detect_dependence(X[order], y[None, order]) is None
    order = np.argsort(y)  # or by y
    assert detect_dependence(X[order], y[None, order]) is None
    twice = np.repeat(np.arange(len(y)), 2)  # or each row twice
    assert detect_dependence(X[twice], y[None, twice]) is None


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_an_order_in_random_order_are_silent(seed):
    rng = np.random.default_rng(seed)
    X, y = days(rng)
    assert detect_dependence(X, y[None]) is not None
    some = rng.permutation(len(y))
    assert detect_dependence(X[some], y[None, some]) is None


def test_a_curve_on_a_grid_is_silent():
    x = np.linspace(-3, 3, 300)
    assert detect_dependence(x[:, None], np.sin(2 * x)[None]) is None
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 30), np.linspace(-2, 2, 30)), axis=-1)
    grid = grid.reshape(-1, 2)
    assert detect_dependence(grid, (np.sin(3 * grid[:, 0]) * grid[:, 1])[None]) is None


@pytest.mark.slow
def test_the_same_rows_get_the_same_answer_quickly():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(MOST_ROWS, 100)), rng.normal(size=MOST_ROWS)
    X[:, 0] = rng.integers(0, 2000, len(y))
    y += rng.normal(size=2000)[X[:, 0].astype(int)]
    began = time.perf_counter()
    seen = detect_dependence(X, y[None])
    assert time.perf_counter() - began < 10
    assert seen.column == 0
    assert all(detect_dependence(X, y[None]) == seen for _ in range(3))
    assert len(evenly_spaced_runs(10**6)) == MOST_ROWS
    assert np.array_equal(evenly_spaced_runs(10**6), evenly_spaced_runs(10**6))


@pytest.mark.slow
def test_what_cells_may_be():
    person, X, y = persons(np.random.default_rng(6))
    X = np.column_stack([X, np.full(len(y), np.nan), np.ones(len(y)), np.full(len(y), 1e300)])
    X[::7, 1] = np.nan
    assert detect_dependence(X, y[None]).column == 0
    assert detect_dependence(X[:, 3:], y[None]) is None
    assert detect_dependence(X, np.zeros((1, len(y)))) is None
    with pytest.warns(srf.GroupedRowsWarning, match="column 0"):
        fit_briefly(X[:, :3], y, sample_weight=(person > 3).astype(float))
    fit_briefly(sp.csr_matrix(np.nan_to_num(X[:, :3])), y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["fractions", "halves", "float32", "shifted", "missing", "frame", "whole", "holes", "dates"],
)
def test_measured_numbers_are_not_named_as_groups(kind):
    """As the vacuum of a power plant, whose values return on some days: they name no group."""
    person, X, y = persons(np.random.default_rng(0))
    value = {
        "halves": person / 2,
        "shifted": person + 0.25,
        "whole": person * 1.0,
        "holes": np.where(person == 0, np.nan, np.where(person > 29, person + 1.0, person)),
        "missing": np.where(person == 0, np.nan, person + 0.5),
    }.get(kind, np.round(person * np.pi, 2))
    X[:, 0] = value
    table = pd.DataFrame(X, columns=["vacuum", "a", "b"])
    if kind == "dates":
        table["vacuum"] = pd.to_datetime(person * 6, unit="h")
    X = {"float32": X.astype(np.float32), "frame": table, "dates": table}.get(kind, X)
    if kind in ("whole", "holes", "dates"):
        with pytest.warns(srf.GroupedRowsWarning, match=r"groups=X\["):
            fit_briefly(X, y)
        return
    with pytest.warns(srf.GroupedRowsWarning, match="one value of the measured column") as warned:
        fit_briefly(X, y)
    assert "groups=X" not in str(warned[0].message)


def test_a_column_of_groups_is_named_before_a_measured_one():
    person, X, y = persons(np.random.default_rng(0))
    measured = np.random.default_rng(1).normal(size=60)[person]
    seen = detect_dependence(np.column_stack([measured, X]), y[None])
    assert (seen.column, seen.is_measured) == (1, False)
    seen = detect_dependence(np.column_stack([measured, X[:, 1:]]), y[None])
    assert (seen.column, seen.is_measured) == (0, True)


@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
def test_copies_are_no_groups():
    """Rows that are held out together as copies are not said to go together."""
    rng = np.random.default_rng(0)
    X, own = rng.normal(size=(150, 3)), rng.normal(size=150)
    rows = rng.permutation(np.repeat(np.arange(150), 3))
    fit_briefly(X[rows], own[rows] + 0.1 * rng.normal(size=450))
    fit_briefly(X[rows], own[rows])
    _, X, y = persons(rng)
    again = rng.integers(0, len(y), len(y))
    with pytest.warns(srf.GroupedRowsWarning, match="grouped by column 0"):
        fit_briefly(X[again], y[again])
