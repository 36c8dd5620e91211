"""Categoricals of any categories: their levels, in the order of the categories, in the model, its
file and at predict."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sparserf as srf

N = 60
X = np.random.default_rng(0).normal(size=N)
K = np.arange(N) % 3
INTERVALS = [pd.Interval(2, 3), pd.Interval(10, 20), pd.Interval(0, 1)]
PERIODS = list(pd.period_range("2020", "2022", freq="Y"))
DATES = [dt.date(2021, 1, 2), dt.date(2020, 1, 2), dt.date(2022, 1, 2)]


def fitted(frame):
    """Return a small model of a frame."""
    return srf.mfga(
        frame, np.arange(len(frame)), features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3
    )


def levels_of(model):
    """Return the levels of each column."""
    return model.features.encoder.table.levels


def of_pandas(categories, ordered=False):
    """Return a pandas categorical in which the categories take turns."""
    return pd.DataFrame(
        {
            "c": pd.Categorical([categories[k] for k in K], categories=categories, ordered=ordered),
            "x": X,
        }
    )


def of_arrow(categories):
    """Return an Arrow dictionary in which the categories take turns."""
    return pa.table({"c": pa.array([categories[k] for k in K]).dictionary_encode(), "x": X})


def of_polars(dtype):
    """Return a categorical of polars."""
    return pl.DataFrame({"c": pl.Series([["b", "a", "z"][k] for k in K], dtype=dtype), "x": X})


# Frames, and the levels of their category.
KINDS = {
    "cut": (
        pd.DataFrame({"c": pd.cut(np.arange(N), [-1, 9, 19, 100]), "x": X}),
        ("(-1, 9]", "(9, 19]", "(19, 100]"),
    ),
    "cut, outside": (
        pd.DataFrame({"c": pd.cut(np.arange(N), [5, 9, 50]), "x": X}),
        ("(5, 9]", "(9, 50]"),
    ),
    "intervals": (of_pandas(INTERVALS), ("(0, 1]", "(2, 3]", "(10, 20]")),
    "ordered intervals": (of_pandas(INTERVALS, True), ("(2, 3]", "(10, 20]", "(0, 1]")),
    "periods": (of_pandas(PERIODS), ("2020", "2021", "2022")),
    "periods backwards": (of_pandas(PERIODS[::-1], True), ("2022", "2021", "2020")),
    "times": (
        of_pandas(list(pd.date_range("2020", periods=3))),
        tuple(f"2020-01-0{k} 00:00:00" for k in (1, 2, 3)),
    ),
    "zones": (
        of_pandas(list(pd.date_range("2020", periods=3, tz="UTC"))),
        tuple(f"2020-01-0{k} 00:00:00+00:00" for k in (1, 2, 3)),
    ),
    "durations": (
        of_pandas(list(pd.to_timedelta([10, 2, 3], "D"))),
        tuple(f"{k} days 00:00:00" for k in (2, 3, 10)),
    ),
    "dates": (of_pandas(DATES), ("2020-01-02", "2021-01-02", "2022-01-02")),
    "tuples": (of_pandas([(10, 1), (2, 1), (3, 1)]), ("(2, 1)", "(3, 1)", "(10, 1)")),
    "tuples without order": (
        of_pandas([(1, 2), (3, 4), ("a", 5)]),
        ("('a', 5)", "(1, 2)", "(3, 4)"),
    ),
    "integers": (of_pandas([3, 1, 2]), (1, 2, 3)),
    "ordered integers": (of_pandas([3, 1, 2], True), (3, 1, 2)),
    "floats": (of_pandas([0.3, 0.1, 0.2]), (0.1, 0.2, 0.3)),
    "booleans": (pd.DataFrame({"c": pd.Categorical(X > 0), "x": X}), (False, True)),
    "decimals": (of_pandas([Decimal("0.5"), Decimal(2), Decimal(3)]), (0.5, 2.0, 3.0)),
    "words and numbers": (of_pandas(["a", 1, 2.5]), ("1", "2.5", "a")),
    "a word that is a number": (of_pandas(["1", 1, 2], True), ("1", "2")),
    "polars categorical": (of_polars(pl.Categorical), ("a", "b", "z")),
    "polars enum": (of_polars(pl.Enum(["z", "b", "a"])), ("z", "b", "a")),
    "arrow dates": (of_arrow(DATES), ("2020-01-02", "2021-01-02", "2022-01-02")),
    "arrow integers": (of_arrow([3, 1, 2]), (1, 2, 3)),
    "arrow floats": (of_arrow([0.3, 0.1, 0.2]), (0.1, 0.2, 0.3)),
    "arrow durations": (
        of_arrow([dt.timedelta(k) for k in (3, 1, 2)]),
        ("1 day, 0:00:00", "2 days, 0:00:00", "3 days, 0:00:00"),
    ),
}


@pytest.mark.parametrize(("frame", "levels"), KINDS.values(), ids=KINDS)
def test_the_categories_are_the_levels(frame, levels, tmp_path):
    model = srf.drp(frame, X**2, alpha=1e-3)
    assert levels_of(model) == (levels, None)
    there = model.predict(frame)
    assert np.unique(there - model.predict(frame)).tolist() == [0]
    model.save(tmp_path / "model.npz")
    assert np.array_equal(srf.load(tmp_path / "model.npz").predict(frame), there)
    for row in range(4):  # whatever categories a row has
        one = frame.iloc[[row]] if isinstance(frame, pd.DataFrame) else frame.slice(row, 1)
        np.testing.assert_allclose(model.predict(one), there[[row]])


def test_bins_of_other_rows_are_unknown_or_missing():
    model = fitted(pd.DataFrame({"c": pd.cut([1.0, 5.0, 7.0], [0, 4, 6, 8])}))
    assert levels_of(model) == (("(0, 4]", "(4, 6]", "(6, 8]"),)
    codes = model.features.encoder.table.read(
        pd.DataFrame({"c": pd.cut([5.0, 9.0, 100.0], [4, 6, 10])})
    )
    np.testing.assert_array_equal(codes, [[1], [-1], [np.nan]])


def test_bins_may_be_monotone():
    frame = pd.DataFrame({"c": pd.cut(X, [-5, -1, 0, 1, 5])})
    model = srf.sparse_rf(
        frame, X, features="gaussian", alpha=1e-3, monotone={"c": 1}, n_components=100, rng=0
    )
    assert (
        np.diff(model.predict(pd.DataFrame({"c": frame["c"].cat.categories}).astype(frame.dtypes)))
        >= 0
    ).all()


def test_other_categories_of_another_kind_are_an_error():
    model = fitted(pd.DataFrame({"c": pd.Categorical(["a", "b"])}))
    with pytest.raises(
        TypeError, match=r"^X\['c'\] holds numbers, and held strings when the model was fitted$"
    ):
        model.predict(pd.DataFrame({"c": pd.Categorical([1, 2])}))


def test_categories_without_a_full_order_are_the_same_in_any_order_of_the_rows():
    sets = [frozenset([k]) for k in range(3)]
    levels = [
        levels_of(fitted(pd.DataFrame({"c": pd.Categorical(order)})))
        for order in (sets, sets[::-1])
    ]
    assert levels[0] == levels[1]
