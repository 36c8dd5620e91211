"""Thresholds lie between the numbers of the rows, wherever and however these are held."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparserf as srf
from sparserf.features import between_rows, is_for_single
from sparserf.features.growth import column_edges
from sparserf.features.rules import RuleInputs
from sparserf.features.thresholds import moved_between, thresholds_between
from sparserf.rows import as_rows

AIRFOIL = Path(__file__).parents[2] / "tools" / "data" / "airfoil.csv"
RULES = {"features": srf.Rules(), "alpha": 0.01, "rng": 0, "n_components": 800}
RULES |= {"loss": srf.losses.Squared()}  # few whole numbers are no labels
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLES = st.floats(allow_nan=False, allow_infinity=False, width=32)


def threshold(low, high):
    return thresholds_between(np.array([low]), np.array([high]))[0]


def n_digits(x):
    return next(d for d in range(1, 18) if float(f"{x:.{d}g}") == x) if x else 0


def as_single(x):
    with np.errstate(over="ignore"):
        return float(np.float32(x))


# -- between two numbers


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.3, 0.4, 0.35),
        (-0.4, -0.3, -0.35),
        (3.0, 4.0, 3.5),
        (-1.0, 2.0, 0.0),
        (147.0, 153.0, 150.0),
        (0.0, 1e39, 5e38),
        (5e-324, 1e-323, 5e-324),
        (-1.7e308, 1.7e308, 0.0),
        (2.0**53, 2.0**53 + 2, 2.0**53 + 1 - 1),
        (1.0, np.nextafter(1, 2), 1.0),
        (16777216.0, 16777220.0, 16777218.0),
    ],
)
def test_thresholds_of_some_pairs(low, high, expected):
    if low == 2.0**53:  # neighbours, both integers of float64
        assert low <= threshold(low, high) < high
    else:
        assert threshold(low, high) == expected


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.tuples(FINITE, FINITE), st.tuples(SINGLES, SINGLES)))
def test_a_threshold_is_between_its_neighbours_in_either_precision(pair):
    low, high = sorted(pair)
    if low == high:
        return
    t = threshold(low, high)
    assert low <= t < high
    one, other = as_single(low), as_single(high)
    if np.isfinite([one, other]).all() and one < other:
        assert one <= t < other  # rows in float32, compared in float64
        if np.nextafter(np.float32(one), np.float32(np.inf)) < other:
            assert one <= as_single(t) < other  # and where t is float32 as well
        elif (low, high) == (one, other):  # any row is on the side of its float32
            assert as_single(t) == one and as_single(np.nextafter(t, np.inf)) == other


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.sampled_from([1e-9, 1e-2, 0.1, 1, 1e5])
)
def test_a_threshold_is_the_shortest_number_of_the_middle_half(start, steps, unit):
    low, high = start * unit, (start + steps) * unit
    t, quarter, slack = threshold(low, high), (high - low) / 4, 1e-12 * (high - low)
    assert low + quarter - slack <= t <= high - quarter + slack
    assert threshold(-high, -low) == -t  # and is the same from either side
    n = n_digits(t)
    if n > 1:  # no number of a digit less is there: the nearest to the middle is not
        shorter = float(f"{(low + high) / 2:.{n - 1}g}")
        assert not low + quarter + slack < shorter < high - quarter - slack
    assert is_for_single(t) or as_single(low) == as_single(high)


def test_thresholds_that_float32_has_no_room_for_are_known():
    x = 1 + np.arange(50) * 3e-9
    t = thresholds_between(x[:-1], x[1:])
    is_apart = np.diff(x.astype(np.float32)) > 0
    assert not is_apart.all()
    np.testing.assert_array_equal([is_for_single(each) for each in t[~is_apart]], False)
    x = np.random.default_rng(0).normal(size=1000).astype(np.float32).astype(np.float64)
    t = thresholds_between(*np.sort(x)[[np.arange(999), np.arange(1, 1000)]])
    assert all(map(is_for_single, t))


def test_edges_are_where_float32_tells_neighbours_apart_if_there_are_enough():
    rng = np.random.default_rng(0)
    x = 1e6 + 10 * rng.normal(size=20_000)  # of which float32 has some thousand numbers
    edges = column_edges(x, 127)
    assert len(edges) > 120 and all(map(is_for_single, edges))
    np.testing.assert_array_equal(
        edges < x[:, None], edges < x.astype(np.float32).astype(float)[:, None]
    )
    few = 1e6 + 0.001 * rng.integers(0, 50, 1000)
    assert len(column_edges(few, 127)) == 49 and not all(map(is_for_single, column_edges(few, 127)))


def test_thresholds_move_where_they_must_alone():
    t, low, high = np.array([0.3, 0.35, 0.3, 0.3]), np.array([0.3, 0.3, 0.1, -np.inf]), 0.4
    expected = [0.35, 0.35, 0.3, 0.3]
    np.testing.assert_array_equal(moved_between(t, low, np.full(4, high)), expected)


# -- of models


def frames():
    """Yield (name, frame, y) of columns with few digits."""
    rng = np.random.default_rng(0)
    i = rng.integers(0, 10, 500)
    yield "tenths", pd.DataFrame({"a": i / 10}), 3.0 * (i > 3) + 0.2 * rng.normal(size=500)
    i = rng.integers(-300, 300, (400, 3))
    frame = pd.DataFrame({"a": i[:, 0] / 10, "b": i[:, 1] / 100, "c": i[:, 2] / 100 + 20})
    yield "few digits", frame, (i[:, 0] > 3) + 2.0 * (i[:, 1] > -55) * (i[:, 2] < 70)
    i = rng.integers(0, 40, 400)
    far = pd.DataFrame({"a": 2**24 + 8 * i, "b": 1e-30 * i, "c": 1e30 * rng.normal(size=400)})
    yield "far", far, (i > 7) + 0.1 * rng.normal(size=400)


FRAMES = {name: rest for name, *rest in frames()}


@pytest.mark.parametrize("how", ["rules", "default"])
@pytest.mark.parametrize("name", FRAMES)
def test_no_row_moves_in_another_precision_or_where_it_is_computed_anew(name, how):
    frame, y = FRAMES[name]
    frame = frame.astype(np.float64)
    default = {"rng": 0, "effort": 0.1, "verbose": False, "loss": srf.losses.Squared()}
    options = RULES if how == "rules" else default
    single = frame.astype(np.float32)
    anew = frame / 3 * 3 * (1 + 4e-16)
    for fitted in (frame, single):
        model = srf.sparse_rf(fitted, y, **options)
        f, near = model.predict(fitted), 1e-4 * np.std(y)
        for rows in (frame, single, anew, single.astype(np.float64)):
            assert np.abs(model.predict(rows) - f).max() <= near
    if how == "rules":
        assert len(model.coef) > 0


def test_no_row_of_airfoil_moves():
    A = np.loadtxt(AIRFOIL, delimiter=",", skiprows=1)
    X, y = A[:, :-1], A[:, -1]
    for fitted, others in ((X, X.astype(np.float32)), (X.astype(np.float32), X)):
        model = srf.sparse_rf(fitted, y, **RULES)
        assert len(model.coef) > 50
        np.testing.assert_array_equal(
            model.features.transform(fitted) != 0, model.features.transform(others) != 0
        )


def test_what_is_printed_is_what_is_used():
    (frame, y) = FRAMES["few digits"]
    model = srf.sparse_rf(frame, y, **RULES | {"alpha": 0.002})
    used = np.concatenate([block.thresholds[1] for block in model.features.blocks])
    text, sql = model.formula(), model.formula("sql")
    assert len(used) > 3
    for t in np.unique(used):
        assert f"{t:.15g}" in text and f"{t:.15g}" in sql


@pytest.mark.slow
def test_powers_of_two_hold_the_same_training_rows():
    """Decimal thresholds lie elsewhere in the gaps, in which there is no training row."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 3)), 2)
    y = (X[:, 0] > 0.3) * (X[:, 1] < 0.5) + 0.1 * rng.normal(size=300)
    for options in (RULES, {"rng": 0, "effort": 0.1, "verbose": False}):
        model, moved = srf.sparse_rf(X, y, **options), 0
        for power in (-9, 3, 40):
            Z = np.ldexp(X, power)
            other = srf.sparse_rf(Z, y, **options)
            assert other.predict(Z).tobytes() == model.predict(X).tobytes()
            between = np.nextafter(X, np.inf) * 1.001
            moved += (other.predict(np.ldexp(between, power)) != model.predict(between)).mean()
        assert moved / 3 < 0.2


# -- of a sample of the rows


def test_edges_of_a_sample_are_between_all_rows(monkeypatch):
    monkeypatch.setattr("sparserf.features.rules.SAMPLE", 30)
    i = np.random.default_rng(0).integers(0, 100, (2000, 2))
    X = i / 10
    for rows in (X, srf.Chunks(X, block_rows=300)):
        seen = RuleInputs.from_rows(127, as_rows(rows), np.ones(len(X)), np.random.default_rng(1))
        for edges, x in zip(seen.bins.edges, X.T, strict=True):
            assert len(edges) > 15
            np.testing.assert_array_equal(edges < x[:, None], edges < (x[:, None] * 10) * 0.1)
            np.testing.assert_array_equal(edges < x[:, None], edges < x[:, None].astype(np.float32))


@pytest.mark.parametrize("name", ["rows", "chunks"])
def test_features_jump_between_numbers_of_all_rows(name):
    (frame, y) = FRAMES["tenths"]
    some = frame["a"].isin([0.1, 0.3, 0.5, 0.9]).to_numpy()
    model = srf.sparse_rf(frame[some], y[some], **RULES)
    X = frame.to_numpy()
    rows = as_rows(X if name == "rows" else srf.Chunks(X, block_rows=77))
    moved = between_rows(model.features, rows)
    np.testing.assert_array_equal(moved.transform(frame), model.features.transform(frame))
    ends = moved.blocks[0].thresholds[1]
    assert np.abs(ends[:, None] - X[:, 0]).min() > 0.04
    assert np.abs(model.features.blocks[0].thresholds[1][:, None] - X[:, 0]).min() < 0.01


@pytest.mark.slow
def test_a_search_of_some_rows_has_thresholds_between_all(search_rows):
    search_rows(300)
    rng = np.random.default_rng(0)
    i = rng.integers(0, 1000, (3000, 2))
    X, y = i / 100, 3.0 * (i[:, 0] > 333) + 2.0 * (i[:, 1] > 711) + 0.1 * rng.normal(size=3000)
    model = srf.sparse_rf(X, y, rng=0, effort=0.3, verbose=False)
    inputs, t = map(
        np.concatenate, zip(*(block.thresholds for block in model.features.blocks), strict=True)
    )
    assert len(t) > 3
    columns = model.features.encoder.column[inputs]
    distance = [np.abs(X[:, j] - each).min() for j, each in zip(columns, t, strict=True)]
    assert min(distance) >= 0.01 / 4
