"""The columns that a user means by names, integers and other keys, in whatever argument."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sparserf as srf
from sparserf.columns.places import find_columns

NAMES = [
    # names of a frame, key, its place, whether another column has the key as its index
    ([1, 2, 3], 1, 0, True),
    ([1, 2, 3], np.int64(3), 2, False),
    ([1, 2, 3], 2.0, 1, False),
    ([1, 2, 3], "2", 1, False),
    ([0, 1, 2], 1, 1, False),
    ([-1, 0, 1], -1, 0, False),
    ([2019, 2020, 2021], 2020, 1, False),
    ([1.0, 2.0, 3.0], 2, 1, True),
    (["1", "2", "3"], 1, 0, True),
    (["01", "1", "2"], 1, 1, False),
    (["a", 2, 1], 1, 2, True),
    (["a", 2, 1], 0, 0, False),
    (["a", "b", "c"], 1, 1, False),
    ([True, False, "c"], False, 1, False),
    ([("a", 1), ("a", 2), ("b", 1)], ("a", 2), 1, False),
    (list(pd.date_range("2020", periods=3)), pd.Timestamp("2020-01-02"), 1, False),
]


@pytest.mark.parametrize(("names", "key", "place", "is_index"), NAMES)
def test_a_key_is_a_name_before_it_is_an_index(names, key, place, is_index):
    names = [str(name) for name in names]
    if is_index:
        with pytest.warns(UserWarning, match=r"^columns has .*, which is the name of one column"):
            assert find_columns("columns", [key], names, 3) == [place]
        assert find_columns("columns", [names[place]], names, 3) == [place]
    else:
        assert find_columns("columns", [key], names, 3) == [place]


@pytest.mark.parametrize(
    ("names", "key", "error", "message"),
    [
        ([1, 2, 3], 0, ValueError, "whose names are numbers, and it lacks 0"),
        ([5, 6, 7], -1, ValueError, "whose names are numbers, and it lacks -1"),
        (["a", "b", "c"], 3, ValueError, r"indices of columns in \[0, 3\), got 3"),
        (["a", "b", "c"], -1, ValueError, r"indices of columns in \[0, 3\), got -1"),
        (["a", "b", "c"], "z", ValueError, "which lacks them: 'z'"),
        (["a", "b", "c"], True, TypeError, "or give their indices, got True"),
        ([1, 2, 3], True, TypeError, "or give their indices, got True"),
        (["a", "b", "c"], 1.0, TypeError, "or give their indices, got 1.0"),
        (None, "a", ValueError, "an array, whose columns have no names: 'a'"),
    ],
)
def test_a_key_of_no_column(names, key, error, message):
    names = None if names is None else [str(name) for name in names]
    with pytest.raises(error, match=f"^columns must .*{message}"):
        find_columns("columns", [key], names, 3)


def frame_of_integers(make):
    """Return a frame with columns 3, 2, 1, of which 2, in the middle, decides y alone."""
    X = np.random.default_rng(0).integers(0, 4, (60, 3)).astype(float)
    frame = pd.DataFrame(X, columns=[3, 2, 1])
    return (frame if make is pd.DataFrame else pl.DataFrame(frame.rename(columns=str))), X[:, 1] / 2


FITS = {
    "monotone": {"monotone": {3: 1}},
    "convex": {"convex": {3: 1}},
    "interactions": {"interactions": [[3]]},
    "categorical": {"categorical": [3]},
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("argument", FITS)
def test_an_integer_is_a_name_in_all_arguments_of_fits(argument, make):
    """3 is the name of the first column, and no index."""
    X, y = frame_of_integers(make)
    by_name = {"monotone": {"3": 1}, "convex": {"3": 1}, "interactions": [["3"]]}
    by_name["categorical"] = ["3"]
    fits = [
        srf.drp(X, y, alpha=0.1, **given)
        if argument == "categorical"
        else srf.sparse_rf(X, y, alpha=0.1, n_components=50, rng=0, **given)
        for given in (FITS[argument], {argument: by_name[argument]})
    ]
    assert np.array_equal(fits[0].predict(X), fits[1].predict(X))


def test_a_constraint_holds_in_the_column_of_that_name():
    X, y = frame_of_integers(pd.DataFrame)
    with pytest.warns(UserWarning, match="^monotone has 2, which is the name of one column"):
        model = srf.sparse_rf(X, -y, monotone={2: 1}, alpha=0.01, n_components=100, rng=0)
    f = [model.predict(pd.DataFrame({3: X[3], 2: v, 1: X[1]})) for v in (0.0, 1.0, 2.0, 3.0)]
    assert (np.diff(f, axis=0) >= -1e-12).all()


def test_an_integer_is_a_name_in_boxes_of_a_model():
    X, y = frame_of_integers(pd.DataFrame)
    model = srf.sparse_rf(X, y, alpha=0.01, n_components=100, rng=0)
    for ask in (model.bounds, model.mean, model.integral):
        with pytest.warns(UserWarning, match="^box has 2, which is the name of one column"):
            by_integer = ask({2: (0.0, 1.0)})
        assert repr(by_integer) == repr(ask({"2": (0.0, 1.0)}))
        assert repr(by_integer) != repr(ask({"3": (0.0, 1.0)}))
    with pytest.warns(UserWarning, match="^column has 2, which is the name of one column"):
        assert model.is_monotone(2, sign=1).column == "2"


def test_an_integer_is_a_name_in_the_levels_of_chunks():
    X, y = frame_of_integers(pd.DataFrame)
    chunks = srf.Chunks.of_batches([X[:30], X[30:]], levels={3: [3.0, 2.0, 1.0, 0.0]})
    model = srf.drp(chunks, y, alpha=0.1)
    assert model.features.encoder.table.levels == ((3.0, 2.0, 1.0, 0.0), None, None)
    with pytest.raises(ValueError, match="levels must name a column once"):
        srf.drp(srf.Chunks.of_batches([X], levels={3: [1.0], "3": [1.0]}), y, alpha=0.1)
