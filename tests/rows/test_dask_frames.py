"""Dask dataframes with words, categories and dates: the fit is that of one frame of all rows."""

import numpy as np
import pandas as pd
import pytest

import sparserf as srf

dd = pytest.importorskip("dask.dataframe")


def table(n=90):
    """Return a frame of pandas with words, a category, dates, missing cells, and a target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "word": rng.choice(["u", "v", "w"], n),
            "grade": pd.Categorical(rng.choice(["low", "high"], n), ["low", "high"], ordered=True),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "code": rng.integers(0, 3, n),
            "flag": rng.random(n) < 0.5,
        }
    )
    X.loc[3, "x"] = np.nan
    y = X["x"].fillna(0) + (X["word"] == "u") + 2 * (X["grade"] == "low") + X["code"] % 2
    return X, y.to_numpy(np.float64)


@pytest.mark.parametrize("categorical", [None, ["code"]])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_fit_is_that_of_a_frame_in_memory(parts, categorical):
    X, y = table()
    frame = dd.from_pandas(X, npartitions=parts)
    given = {"alpha": 1e-3, "n_components": 100, "rng": 0, "categorical": categorical}
    in_memory, by_parts = (srf.sparse_rf(each, y, **given) for each in (X, frame))
    own, other = (model.features.encoder.table for model in (by_parts, in_memory))
    assert own == other and own.levels[1] == ("u", "v", "w")
    assert np.allclose(by_parts.predict(frame), in_memory.predict(X), rtol=1e-4, atol=1e-4)
    assert np.array_equal(in_memory.predict(frame), in_memory.predict(X))
    assert np.array_equal(by_parts.predict(frame[X.columns[::-1]]), by_parts.predict(X))


def test_empty_partitions_are_left_out():
    X, y = table()
    frame = dd.from_pandas(X, npartitions=3)
    frame = dd.concat([frame.partitions[:1], frame[frame["x"] > 99], frame.partitions[1:]])
    model = srf.drp(frame, y, alpha=0.1)
    assert np.allclose(model.predict(X), srf.drp(X, y, alpha=0.1).predict(X))


def test_numbers_alone_stay_where_they_are():
    from sparserf.rows import as_readable

    X, y = table()
    frame = dd.from_pandas(X[["x", "code"]].fillna(0.0), npartitions=2)
    assert as_readable(frame, has_table=False) is frame
    prediction = srf.drp(frame, y, alpha=0.1).predict(frame)
    assert type(prediction).__module__.startswith("dask")
