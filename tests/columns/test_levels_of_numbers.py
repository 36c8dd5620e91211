"""Levels that are numbers are found whether rows come in float32 or float64, by the model and by
all that it is written as."""

import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sparserf as srf
from sparserf.columns.table import UNKNOWN, LevelNumbers, in_float32, numbers_rounded_to

LEVELS = {
    "tenths": [0.1, 0.2, 0.3, 0.7],
    "thirds and whole": [1 / 3, 2 / 3, 1.0, 5.0],
    "negative and large": [-0.1, 1e5 + 0.3, 1e-3, -7.0],
    "many": [k / 7 for k in range(40)],
}
HOMES = {
    "array": lambda c, x: np.column_stack([c, x.astype(c.dtype)]),
    "pandas": lambda c, x: pd.DataFrame({"c": c, "x": x.astype(c.dtype)}),
    "categorical": lambda c, x: pd.DataFrame({"c": pd.Categorical(c), "x": x.astype(c.dtype)}),
    "polars": lambda c, x: pl.DataFrame({"c": c, "x": x}),
    "pyarrow": lambda c, x: pa.table({"c": c, "x": x}),
}
BOTH = ("float64", "float32")


def data(levels):
    """Return (the cells of a category of these levels, another column, y)."""
    rng = np.random.default_rng(0)
    k, x = rng.integers(0, len(levels), 200), rng.normal(size=200)
    return np.array(levels)[k], x, (7 * k) % 5 + 0.1 * x


def fitted(home, cells, x, y):
    """Return a small model with the category in column 0."""
    chosen = None if home == "categorical" else [0]
    return srf.sparse_rf(
        HOMES[home](cells, x),
        y,
        features="gaussian",
        alpha=1e-3,
        n_components=200,
        categorical=chosen,
        rng=0,
    )


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("trained", BOTH)
@pytest.mark.parametrize("predicted", BOTH)
def test_rows_of_either_precision_predict_the_same(trained, predicted, home, levels):
    cells, x, y = data(levels)
    model = fitted(home, cells.astype(trained), x, y)
    same = model.predict(HOMES[home](cells.astype(trained), x))
    np.testing.assert_allclose(
        model.predict(HOMES[home](cells.astype(predicted), x)), same, atol=1e-4
    )


@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
@pytest.mark.parametrize("trained", BOTH)
@pytest.mark.parametrize("predicted", BOTH)
@pytest.mark.parametrize("written", ["python", "sql", "onnx"])
def test_what_a_model_is_written_as_finds_levels_of_either_precision(
    written, trained, predicted, levels
):
    cells, x, y = data(levels)
    model = fitted("pandas", cells.astype(trained), x, y)
    same, rows = (
        model.predict(HOMES["pandas"](cells.astype(trained), x)),
        HOMES["pandas"](cells.astype(predicted), x),
    )
    if written == "python":
        module = {}
        exec(str(model.formula("python")), module)
        got = module["predict"](rows)
    elif written == "sql":
        connection = sqlite3.connect(":memory:")
        rows.astype("float64").to_sql("data", connection, index=False)
        got = np.array(connection.execute(str(model.formula("sql"))).fetchall())[:, 0]
    else:
        runtime = pytest.importorskip("onnxruntime")
        graph = runtime.InferenceSession(model.to_onnx(dtype="float64").SerializeToString())
        got = graph.run(None, {name: rows[[name]].to_numpy("float64") for name in rows})[0].ravel()
    np.testing.assert_allclose(got, same, atol=1e-4)


def test_levels_that_float32_cannot_tell_apart_are_told_apart_where_rows_can():
    levels = (0.5, 0.5 + 1e-12, 0.1, 16777217.0)
    number = LevelNumbers(levels)
    assert list(in_float32(levels)) == [0.1]
    assert [number[level] for level in levels] == [0, 1, 2, 3]
    assert [number[cell] for cell in (0.5 + 2e-12, 0.1 + 1e-6, 16777216.0, 16777218, "0.1")] == [
        UNKNOWN
    ] * 5
    assert number[float(np.float32(0.1))] == 2
    # Where all cells are known to come in float32, large whole numbers are rounded, too.
    assert LevelNumbers(levels, np.dtype("float32"))[16777216.0] == 3
    assert LevelNumbers((1.0, 2.5, 0.1), np.dtype("float16"))[float(np.float16(0.1))] == 2


def test_unknown_levels_stay_unknown():
    number = LevelNumbers((1e-300, 2.0, 0.25, 10**400))
    assert [number[cell] for cell in (0.0, 1e-50, 2.1, 0.2501, 3, 1e300)] == [UNKNOWN] * 6
    assert number[None] != number[None]  # a missing cell is NaN


@pytest.mark.parametrize(
    "number", [0.1, -0.1, 1.5, 1e-30, 123456.78, float(np.float32(1) + np.finfo(np.float32).eps)]
)
def test_the_numbers_that_round_to_one_of_float32(number):
    single = float(np.float32(number))
    low, high = numbers_rounded_to(single)
    assert low < single < high
    assert np.float32(low) == np.float32(high) == single
    assert (
        np.float32(np.nextafter(low, -np.inf)) != single != np.float32(np.nextafter(high, np.inf))
    )


def test_a_box_takes_a_level_of_either_precision():
    cells, x, y = data(LEVELS["tenths"])
    model = fitted("pandas", cells.astype("float32"), x, y)
    assert (
        model.bounds({"c": 0.1, "x": 0.0}).least
        == model.bounds({"c": float(np.float32(0.1)), "x": 0.0}).least
    )
