"""Table: reads data frames, and arrays with categories, as numbers: alike from every library, and
at prediction."""

import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import sparserf as srf
from sparserf.columns import plain
from sparserf.columns import table as table_module
from sparserf.columns.frames import is_frame
from sparserf.columns.table import ARRAYS, Table

NAN = np.nan
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "pyarrow": pa.table,
}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)

CATEGORICAL = {
    "pandas": lambda values: pd.DataFrame({"a": pd.Categorical(values)}),
    "polars": lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)}),
    "pyarrow": lambda values: pa.table({"a": pa.array(values).dictionary_encode()}),
}
ORDER = ["low", "middle", "high", "never"]
ORDERED = {
    "pandas": lambda values: pd.DataFrame({"a": pd.Categorical(values, ORDER, ordered=True)}),
    "polars": lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(ORDER))}),
    "pyarrow": lambda values: pa.table(
        {
            "a": pa.DictionaryArray.from_arrays(
                pa.array([None if v is None else ORDER.index(v) for v in values], pa.int8()),
                ORDER,
                ordered=True,
            )
        }
    ),
}


def by_library(makers):
    """Run a test for the maker of each library."""
    return pytest.mark.parametrize("make", makers.values(), ids=makers)


def check(X, numbers, levels, categorical=None, dtype=np.float64):
    """Check the numbers and levels that are learnt from X, and that reading X again gives the same;
    return the table."""
    values, table = Table.learn(X, categorical)
    assert values.dtype == dtype and values.flags.c_contiguous
    np.testing.assert_array_equal(values, np.array(numbers, float))
    assert table.levels == levels
    kinds = [{type(level) for level in each or ()} for each in table.levels]
    assert kinds == [{type(level) for level in each or ()} for each in levels]
    np.testing.assert_array_equal(table.read(X), values)
    return table


def frame_of(values, frame=pd.DataFrame):
    """Return a data frame of one column."""
    return frame({"a": values})


# What a column may hold


@each_frame
def test_numbers_booleans_and_strings(frame):
    X = frame(
        {"x": [1.5, -2.0, 0.0], "k": [3, -1, 2], "b": [True, False, True], "s": ["b", "a", "b"]}
    )
    table = check(X, [[1.5, 3, 1, 1], [-2, -1, 0, 0], [0, 2, 1, 1]], (None, None, None, ("a", "b")))
    assert table.names == ("x", "k", "b", "s")


@each_frame
def test_missing_cells_are_nan(frame):
    X = frame(
        {
            "x": [None, 1.5],
            "k": [3, None],
            "b": [None, True],
            "s": ["b", None],
            "d": [Decimal("0.5"), None],
        }
    )
    check(X, [[NAN, 3, NAN, 0, 0.5], [1.5, NAN, 1, NAN, NAN]], (None, None, None, ("b",), None))


@each_frame
@pytest.mark.parametrize(
    "integers", [[2**63 - 1, -(2**63)], [2**64 - 1, 2**53 + 1], [2**60 + 1, 3]]
)
def test_integers_that_float64_cannot_tell_apart_are_numbers(integers, frame):
    dtype = "uint64" if integers[0] == 2**64 - 1 else "int64"
    X = frame_of(pa.array(integers, dtype) if frame is pa.table else integers, frame)
    with pytest.warns(
        UserWarning,
        match=r"^X\['a'\] holds integers beyond 2\*\*53, such as .* are these identifiers\?",
    ):
        check(X, [[NAN if k is None else float(k)] for k in integers], (None,))


@each_frame
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.float32, np.float64])
def test_numbers_of_any_size(dtype, frame):
    X = frame_of(np.array([1, 0, 2], dtype), frame)
    check(X, [[1], [0], [2]], (None,), dtype=np.float32 if dtype == np.float32 else np.float64)


@each_frame
def test_float32_if_all_numbers_are(frame):
    single = np.array([0.5, 1.5], np.float32)
    check(
        frame({"a": single, "b": -single, "s": ["u", "t"]}),
        [[0.5, -0.5, 1], [1.5, -1.5, 0]],
        (None, None, ("t", "u")),
        dtype=np.float32,
    )
    for other in (np.array([1.0, 2.0]), np.array([1, 2], np.int8), np.array([1, 2]) > 1):
        assert Table.learn(frame({"a": single, "b": other}))[0].dtype == np.float64
    assert Table.learn(frame({"s": ["u", "t"]}))[0].dtype == np.float64


def test_float32_is_left_where_it_cannot_count_the_levels(monkeypatch):
    X = pd.DataFrame({"a": np.zeros(3, np.float32), "s": list("abc")})
    assert Table.learn(X)[0].dtype == np.float32
    monkeypatch.setattr(table_module, "EXACT", 2)
    assert Table.learn(X)[0].dtype == np.float64


@by_library(CATEGORICAL)
def test_categoricals(make):
    check(make(["y", None, "x", "y"]), [[1], [NAN], [0], [1]], (("x", "y"),))
    # a slice that does not hold all of its categories
    check(make([None, "b"])[1:], [[0]], (("b",),))


@by_library(ORDERED)
def test_categories_with_an_order_keep_it(make):
    table = check(
        make(["high", None, "low", "middle"]), [[2], [NAN], [0], [1]], (("low", "middle", "high"),)
    )
    np.testing.assert_array_equal(table.read(make(["never", "low"])), [[-1], [0]])
    # levels are the categories that occur
    check(make(["high", "low"]), [[1], [0]], (("low", "high"),))


def test_categories_of_decimals_are_floats():
    values = [Decimal("0.3"), Decimal("0.1"), None]
    for ordered, numbers, levels in (
        (False, [[1], [0], [NAN]], (0.1, 0.3)),
        (True, [[0], [1], [NAN]], (0.3, 0.1)),
    ):
        check(frame_of(pd.Categorical(values, values[:2], ordered=ordered)), numbers, (levels,))


@pytest.mark.parametrize(
    "values", [[3, 1, None], [2**60 + 1, 2**60, None], [0.5, -1.5, None], [True, False, None]]
)
@pytest.mark.parametrize("ordered", [False, True])
def test_categoricals_of_numbers(values, ordered):
    order = [values[0], values[1]] if ordered else None
    levels = (values[0], values[1]) if ordered else (values[1], values[0])
    numbers = [[0.0], [1.0], [NAN]] if ordered else [[1.0], [0.0], [NAN]]
    check(frame_of(pd.Categorical(values, order, ordered=ordered)), numbers, (levels,))
    if not ordered:
        check(pa.table({"a": pa.array(values).dictionary_encode()}), numbers, (levels,))


def test_chunks_of_arrow_with_dictionaries_of_their_own():
    chunks = [
        pa.array(values, pa.string()).dictionary_encode()
        for values in (["y", None], ["x", "y"], [None])
    ]
    check(pa.table({"a": pa.chunked_array(chunks)}), [[1], [NAN], [0], [1], [NAN]], (("x", "y"),))
    ordered = [
        pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), ORDER[:n], ordered=True)
        for n in (2, 3)
    ]
    ordered += [pa.DictionaryArray.from_arrays(pa.array([2], pa.int8()), ORDER[:3], ordered=True)]
    check(
        pa.table({"a": pa.chunked_array(ordered)}),
        [[1], [0], [1], [0], [2]],
        (("low", "middle", "high"),),
    )


NULLABLE = {
    "Int64": (pd.array([1, None, 3], "Int64"), [1, NAN, 3], None),
    "UInt8": (pd.array([1, None, 3], "UInt8"), [1, NAN, 3], None),
    "Float64": (pd.array([1.5, None, 3], "Float64"), [1.5, NAN, 3], None),
    "boolean": (pd.array([True, None, False], "boolean"), [1, NAN, 0], None),
    "string": (pd.array(["b", None, "a"], "string"), [1, NAN, 0], ("a", "b")),
    "Arrow strings": (pd.array(["b", None, "a"], "string[pyarrow]"), [1, NAN, 0], ("a", "b")),
    "Arrow integers": (pd.array([2**60, None, 3], "int64[pyarrow]"), [float(2**60), NAN, 3], None),
    "Arrow booleans": (pd.array([True, None, False], "bool[pyarrow]"), [1, NAN, 0], None),
    "Arrow decimals": (
        pd.array([Decimal("0.5"), None], pd.ArrowDtype(pa.decimal128(5, 2))),
        [0.5, NAN],
        None,
    ),
    "Arrow dictionary": (
        pd.array(["b", None, "a"], pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        [1, NAN, 0],
        ("a", "b"),
    ),
    "sparse": (pd.arrays.SparseArray([0, 1.5, 0]), [0, 1.5, 0], None),
    "sparse integers": (pd.arrays.SparseArray([0, 2, 0]), [0, 2, 0], None),
}


OBJECTS = {
    "strings": (["b", None, "a", pd.NA, NAN], [1, NAN, 0, NAN, NAN], ("a", "b")),
    "numbers": (
        [1, None, 2.5, pd.NA, True, np.float32(0.5), Fraction(1, 4)],
        [1, NAN, 2.5, NAN, 1, 0.5, 0.25],
        None,
    ),
    "booleans": ([True, None, np.False_], [1, NAN, 0], None),
    "decimals": ([Decimal("0.5"), None, Decimal("NaN")], [0.5, NAN, NAN], None),
    "large integers": ([2**100, pd.NaT, 1], [2.0**100, NAN, 1], None),
    "numbers after a hundred missing": ([None] * 150 + [2], [NAN] * 150 + [2], None),
    "strings of NumPy": ([np.str_("b"), "a"], [1, 0], ("a", "b")),
}


OTHER_KINDS = {
    "polars Int128": (
        lambda: pl.DataFrame({"a": pl.Series([2**100, None], dtype=pl.Int128)}),
        [2.0**100, NAN],
        None,
    ),
    "polars Object": (
        lambda: pl.DataFrame({"a": pl.Series([1.5, None], dtype=pl.Object)}),
        [1.5, NAN],
        None,
    ),
    "polars NaN": (lambda: pl.DataFrame({"a": [NAN, None, 1.0]}), [NAN, NAN, 1], None),
    "arrow float16": (
        lambda: pa.table({"a": pa.array([np.float16(1), None], pa.float16())}),
        [1, NAN],
        None,
    ),
    "arrow decimal256": (
        lambda: pa.table({"a": pa.array([Decimal("0.5"), None], pa.decimal256(40, 2))}),
        [0.5, NAN],
        None,
    ),
    "arrow large strings": (
        lambda: pa.table({"a": pa.array(["a", None], pa.large_string())}),
        [0, NAN],
        ("a",),
    ),
    "arrow string views": (
        lambda: pa.table({"a": pa.array(["a", None], pa.string_view())}),
        [0, NAN],
        ("a",),
    ),
}


OF_PANDAS = {
    name: (lambda column=column: frame_of(column), *known)
    for name, (column, *known) in NULLABLE.items()
}
OF_OBJECTS = {
    name: (lambda cells=cells: frame_of(pd.Series(cells, dtype=object)), *known)
    for name, (cells, *known) in OBJECTS.items()
}
ALL_KINDS = OF_PANDAS | OF_OBJECTS | OTHER_KINDS


@pytest.mark.every_case
@pytest.mark.parametrize(("make", "numbers", "levels"), ALL_KINDS.values(), ids=ALL_KINDS)
def test_cells_of_every_kind(make, numbers, levels):
    check(make(), np.reshape(numbers, (-1, 1)), (levels,))


@each_frame
def test_a_column_without_anything_is_a_category_without_levels(frame):
    table = check(frame({"x": [1.0, 2.0], "a": [None, None]}), [[1, NAN], [2, NAN]], (None, ()))
    np.testing.assert_array_equal(table.read(frame({"x": [1.0], "a": ["new"]})), [[1, -1]])
    np.testing.assert_array_equal(table.read(frame({"x": [1.0], "a": [3.5]})), [[1, -1]])
    check(frame_of(np.array([NAN, NAN]), frame), [[NAN], [NAN]], (None,))


def test_similar_strings_are_different_levels():
    values = ["nan", "NaN", "None", "", " ", "a\0", "a", "ä", "\U0001f600", "1", "1.0", "True"]
    numbers = [[sorted(values).index(v)] for v in [*values, "a"]]
    for frame in FRAMES.values():
        check(frame_of([*values, "a"], frame), numbers, (tuple(sorted(values)),))


@each_frame
def test_words_that_differ_in_every_row_are_warned_of(frame):
    words = [f"number {day:02}" for day in range(1, 12)]
    with pytest.warns(UserWarning, match=r"^X\['a'\] holds words that are others in each row"):
        Table.learn(frame({"a": words}))
    Table.learn(frame({"a": words}), ["a"])  # the user says that it is a category
    Table.learn(frame({"a": words[:10]}))
    Table.learn(frame({"a": [*words, words[0]]}))


# What a column may not hold

STRANGE = {
    "list": (lambda: pd.DataFrame({"a": ["x", [1], (2,)]}), "list"),
    "dict": (lambda: pd.DataFrame({"a": [None, {"b": 1}]}), "dict"),
    "bytes": (lambda: pd.DataFrame({"a": [b"x"]}), "bytes"),
    "object": (lambda: pl.DataFrame({"a": pl.Series([object()], dtype=pl.Object)}), "object"),
    "complex object": (lambda: pd.DataFrame({"a": pd.Series([1.0, 2j], dtype=object)}), "complex"),
    "complex": (lambda: pd.DataFrame({"a": [1j]}), "complex"),
    "interval": (lambda: pd.DataFrame({"a": pd.interval_range(0, 3)}), "Interval"),
    "array": (lambda: pd.DataFrame({"a": [np.zeros(2), np.ones(2)]}), "ndarray"),
    "polars list": (lambda: pl.DataFrame({"a": [[1], None]}), "List"),
    "polars array": (
        lambda: pl.DataFrame({"a": pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2))}),
        "Array",
    ),
    "polars struct": (lambda: pl.DataFrame({"a": [{"b": 1}]}), "Struct"),
    "polars binary": (lambda: pl.DataFrame({"a": [b"x"]}), "Binary"),
    "arrow list": (lambda: pa.table({"a": [[1], None]}), "List"),
    "arrow struct": (lambda: pa.table({"a": [{"b": 1}]}), "Struct"),
    "arrow binary": (lambda: pa.table({"a": [b"x"]}), "Binary"),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("make", "kind"), STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("categorical", [None, [0]])
def test_other_kinds_are_named(make, kind, categorical):
    with pytest.raises(
        TypeError, match=rf"^X\['a'\] holds {kind}: leave it out, or make it numbers or strings$"
    ):
        Table.learn(make(), categorical)


@pytest.mark.every_case
@pytest.mark.parametrize("values", [["x", 1], [None, "x", NAN, 1], [pd.NA, 1, "x"]])
@pytest.mark.parametrize("categorical", [None, ["a"]])
def test_strings_and_numbers_in_one_column(values, categorical):
    with pytest.raises(
        TypeError,
        match=r"^X\['a'\] holds strings and int: leave it out, or make it numbers or strings$",
    ):
        Table.learn(frame_of(pd.Series(values, dtype=object)), categorical)


@pytest.mark.every_case
@each_frame
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_cells(bad, frame):
    with pytest.raises(
        ValueError, match=rf"^X\['a'\] must be finite or missing, got {bad} in row 2$"
    ):
        Table.learn(frame({"b": [1.0, 2.0, 3.0], "a": [1.0, NAN, bad]}))
    with pytest.raises(ValueError, match=r"X\['a'\] must be finite or missing"):
        Table.learn(frame_of([1.0, bad], frame), ["a"])
    for categorical in (None, ["a"]):
        table = Table.learn(frame_of([1.0, 2.0], frame), categorical)[1]
        with pytest.raises(ValueError, match=r"X\['a'\] must be finite or missing"):
            table.read(frame_of([bad], frame))


def test_integers_too_large_for_a_float():
    with pytest.raises(ValueError, match=r"^X\['a'\] must hold finite numbers: int too large"):
        Table.learn(frame_of(pd.Series([10**400, 1], dtype=object)))


@each_frame
def test_no_rows_or_no_columns(frame):
    for X in (frame({}), frame_of(np.zeros(0), frame)):
        with pytest.raises(
            ValueError,
            match=r"^X must have at least one row and one column, got shape \(0, [01]\)$",
        ):
            Table.learn(X)
    with pytest.raises(ValueError, match=r"got shape \(3, 0\)$"):
        Table.learn(pd.DataFrame(index=range(3)))
    with pytest.raises(ValueError, match=r"got shape \(0, 2\)$"):
        Table.learn(np.empty((0, 2), object), [0])


# Names of columns


def test_names_become_strings():
    assert Table.learn(pd.DataFrame([[1, 2]]))[1].names == ("0", "1")
    assert Table.learn(pd.DataFrame([[1]], columns=[None]))[1].names[0] in ("None", "nan")
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")])
    assert Table.learn(pd.DataFrame([[1, 2]], columns=columns))[1].names == (
        "('a', 'x')",
        "('b', 'y')",
    )


REPEATED = {
    "pandas": lambda: pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]),
    "pandas integers": lambda: pd.DataFrame([[1, 2, 3]], columns=["1", 1, 0]).rename(
        columns={"1": "a", 1: "a"}
    ),
    "pyarrow": lambda: pa.Table.from_arrays([pa.array([1])] * 3, names=["a", "b", "a"]),
}


@by_library(REPEATED)
def test_names_that_repeat(make):
    with pytest.raises(
        ValueError, match=r"^X must have columns of different names, got more than one 'a'$"
    ):
        Table.learn(make())


def test_names_that_repeat_as_strings():
    with pytest.raises(ValueError, match=r"got more than one '1'$"):
        Table.learn(pd.DataFrame([[1, 2]], columns=[1, "1"]))


@pytest.mark.parametrize("name", ["columns", "column_names", "shape", "dtypes"])
@each_frame
def test_a_column_may_be_called_like_an_attribute(name, frame):
    assert check(frame({name: ["a", "b"]}), [[0], [1]], (("a", "b"),)).names == (name,)


# Columns that the user declares categorical


@each_frame
@pytest.mark.parametrize(
    "categorical",
    [
        ["k", "s"],
        ("s", "k"),
        {"k", "s"},
        [1, 2],
        [1, "s"],
        np.array([1, 2]),
        np.array(["k", "s"]),
        pd.Index(["k", "s"]),
        [False, True, True],
        np.array([False, True, True]),
        pl.Series([False, True, True]),
    ],
    ids=lambda of: repr(sorted(of) if isinstance(of, set) else of),
)
def test_columns_may_be_chosen(categorical, frame):
    X = frame({"x": [1.5, 2.5, 3.5], "k": [7, 3, 7], "s": ["b", "a", None]})
    check(X, [[1.5, 1, 1], [2.5, 0, 0], [3.5, 1, NAN]], (None, (3, 7), ("a", "b")), categorical)


@each_frame
def test_strings_are_categories_where_others_are_chosen(frame):
    check(frame({"k": [7, 3], "s": ["a", "b"]}), [[1, 0], [0, 1]], ((3, 7), ("a", "b")), ["k"])


@each_frame
@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([2**60 + 1, 2**60, None], (2**60, 2**60 + 1)),
        ([True, False, None], (False, True)),
        ([0.5, -0.25, None], (-0.25, 0.5)),
        ([Decimal("0.1"), Decimal("-0.3"), None], (-0.3, 0.1)),
    ],
)
def test_chosen_numbers_are_levels_of_their_kind(values, levels, frame):
    values = pd.Series(values, dtype=object) if frame is pd.DataFrame else values
    check(frame_of(values, frame), [[1], [0], [NAN]], (levels,), ["a"])


def test_chosen_numbers_of_pandas():
    check(
        frame_of(pd.array([2**60 + 1, None, 2**60], "Int64")),
        [[1], [NAN], [0]],
        ((2**60, 2**60 + 1),),
        ["a"],
    )
    check(frame_of(pd.array([True, None], "boolean")), [[0], [NAN]], ((True,),), ["a"])
    check(frame_of(pd.Series([1, 2.5, True], dtype=object)), [[0], [1], [0]], ((1.0, 2.5),), ["a"])
    check(
        frame_of(pd.Series([2, True, np.int8(5)], dtype=object)),
        [[1], [0], [2]],
        ((1, 2, 5),),
        ["a"],
    )
    check(frame_of([0.0, -0.0, 1.0]), [[0], [0], [1]], ((0.0, 1.0),), ["a"])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("categorical", "error", "message"),
    [
        (
            ["a", "c", "d"],
            ValueError,
            r"^categorical must name columns of X, which lacks them: 'c', 'd'$",
        ),
        (
            [0, 2, -1],
            ValueError,
            r"^categorical must have indices of columns in \[0, 2\), got 2, -1$",
        ),
        (
            [True],
            ValueError,
            r"^categorical must have an entry for each of the 2 columns of X, got 1$",
        ),
        (
            "a",
            TypeError,
            r"^categorical must be a sequence of names or indices of columns, or a mask, got 'a'$",
        ),
        (3, TypeError, r"^categorical must be a sequence .*, got 3$"),
        ([1.0], TypeError, r"^categorical must name columns of X or give their indices, got 1.0$"),
        (
            [0, True],
            TypeError,
            r"^categorical must name columns of X or give their indices, got True$",
        ),
    ],
)
@each_frame
def test_wrong_choices(categorical, error, message, frame):
    with pytest.raises(error, match=message):
        Table.learn(frame({"a": [1], "b": [2]}), categorical)


def test_an_array_has_no_names():
    with pytest.raises(
        ValueError,
        match=r"^categorical must name columns of X, an array, whose columns have no names: 'a'$",
    ):
        Table.learn(np.zeros((2, 2)), ["a"])


def test_long_lists_are_cut_short():
    with pytest.raises(ValueError, match=r"'c0', .*'c9' and 15 more$"):
        Table.learn(pd.DataFrame({"a": [1]}), [f"c{k}" for k in range(25)])


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_objects(order):
    X = np.array(
        [["b", 1, True], [None, 2.5, False], ["a", None, None], [NAN, NAN, True]],
        object,
        order=order,
    )
    numbers = [[1, 1, 1], [NAN, 2.5, 0], [0, NAN, NAN], [NAN, NAN, 1]]
    check(X, numbers, (("a", "b"), None, (False, True)), [0, 2])
    check(X, numbers, (("a", "b"), None, None), [True, False, False])


@pytest.mark.parametrize(
    "dtype", [np.int64, np.int8, np.float64, np.float32, bool, ">f8", np.longdouble, np.float16]
)
def test_arrays_of_numbers(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]], dtype)[::-1]
    number = {"b": bool, "i": int, "f": float}[np.dtype(dtype).kind]
    check(
        X,
        X.astype(float),
        (None, (number(0), number(1))),
        [1],
        dtype=np.float32 if dtype == np.float32 else np.float64,
    )


@pytest.mark.parametrize("dtype", ["U3", np.dtypes.StringDType()])
def test_arrays_of_strings(dtype):
    check(np.array([["b", "x"], ["a", "x"]], dtype), [[1, 0], [0, 0]], (("a", "b"), ("x",)), [0, 1])


def test_arrays_that_are_refused():
    X = np.array([["b", 1], ["a", 2]], object)
    with pytest.raises(
        TypeError, match=r"^X\[:, 0\] holds strings: list it in categorical, or make it numbers$"
    ):
        Table.learn(X, [1])
    for bad, kind in (
        (np.zeros((2, 1), "M8[s]"), "categories that are dates"),
        (np.zeros((2, 1), "m8[s]"), "categories"),
        (np.zeros((2, 1), complex), "complex128"),
        (np.zeros((2, 1), "S3"), "bytes24"),
    ):
        with pytest.raises(TypeError, match=rf"^X\[:, 0\] holds {kind}"):
            Table.learn(bad, [0])
    with pytest.raises(ValueError, match=r"^X must be two-dimensional, got shape \(2,\)$"):
        Table.learn(np.zeros(2), [0])
    with pytest.raises(ValueError, match=r"^X must not have masked entries, got 1$"):
        Table.learn(np.ma.array([[1.0, 2.0]], mask=[[True, False]]), [0])
    with pytest.raises(ValueError, match=r"^X\[:, 0\] must be finite or missing, got inf in row 0"):
        Table.learn(np.full((1, 2), np.longdouble("1e4000")), [1])


@pytest.mark.every_case
@pytest.mark.parametrize(
    "X",
    [sp.csr_array(np.eye(2)), [["a"], ["b"]], pl.LazyFrame({"a": ["b"]}), pd.Series([1.0])],
    ids=lambda X: type(X).__name__,
)
def test_other_types_of_X_are_refused(X):
    hint = "; of one row, give a frame with one row" if isinstance(X, pd.Series) else ""
    what = (
        rf"^X must be a data frame or a dense NumPy array where columns .*, got "
        rf"{type(X).__name__}{hint}$"
    )
    with pytest.raises(TypeError, match=what):
        Table.learn(X, [0])
    with pytest.raises(TypeError, match=what):
        Table.learn(pd.DataFrame({"a": ["b"]}))[1].read(X)


# Reading at prediction


@each_frame
@pytest.mark.parametrize("then", FRAMES.values(), ids=FRAMES)
def test_columns_are_found_by_name_in_frames_of_any_library(then, frame):
    table = Table.learn(frame({"x": [1.5, 2.5], "s": ["b", "a"], "k": [3, 4]}), ["k"])[1]
    X = then({"k": [4, 5, None], "x": [0.5, None, 1.0], "s": ["c", "a", None]})
    np.testing.assert_array_equal(table.read(X), [[0.5, -1, 1], [NAN, 0, -1], [1, NAN, NAN]])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["c"], "X lacks the columns 'a', 'b'"),
        (["b", "d"], "X lacks the columns 'a', 'c'"),
    ],
)
@each_frame
def test_missing_columns_are_named(columns, message, frame):
    table = Table.learn(frame({name: ["x", "y"] for name in "abc"}))[1]
    with pytest.raises(ValueError, match=f"^{message}$"):
        table.read(frame({name: ["x"] for name in columns}))


@each_frame
@pytest.mark.parametrize(
    "more", [[0.5], ["w"], [None], [[1, 2]]], ids=["number", "word", "missing", "list"]
)
def test_other_columns_are_not_read(more, frame):
    table = Table.learn(frame({"x": [1.5, 2.5], "s": ["b", "a"]}))[1]
    X = frame({"first": more, "s": ["a"], "between": more, "x": [0.5], "last": more})
    np.testing.assert_array_equal(table.read(X), [[0.5, 0]])


@each_frame
def test_another_kind_than_in_training(frame):
    of_numbers = Table.learn(frame_of([1.0, 2.0], frame))[1]
    of_strings = Table.learn(frame_of(["1", "2"], frame))[1]
    of_levels = Table.learn(frame_of([1, 2], frame), ["a"])[1]
    for table in (of_numbers, of_levels):
        with pytest.raises(
            TypeError, match=r"^X\['a'\] holds strings, and held numbers when the model was fitted$"
        ):
            table.read(frame_of(["1", None], frame))
    for values in ([1], [None, 1.5], [True]):
        with pytest.raises(
            TypeError, match=r"^X\['a'\] holds numbers, and held strings when the model was fitted$"
        ):
            of_strings.read(frame_of(values, frame))
    for table in (of_numbers, of_levels, of_strings):  # a column of missing cells is of no kind
        for nothing in ([None], [NAN], np.array([NAN, NAN])):
            assert np.isnan(table.read(frame_of(nothing, frame))).all()


@by_library(CATEGORICAL)
@each_frame
def test_strings_and_categoricals_are_read_alike(frame, make):
    for before, after in ((frame, lambda X: make(X["a"])), (lambda X: make(X["a"]), frame)):
        table = Table.learn(before({"a": ["y", "x", None]}))[1]
        np.testing.assert_array_equal(
            table.read(after({"a": [None, "z", "y", "x"]})), [[NAN], [-1], [1], [0]]
        )


@each_frame
def test_levels_are_found_whatever_kind_of_number_they_come_as(frame):
    integers = Table.learn(frame_of([3, 1, 2], frame), ["a"])[1]
    np.testing.assert_array_equal(
        integers.read(frame_of([1.0, None, 3.0, 2.5], frame)), [[0], [NAN], [2], [-1]]
    )
    np.testing.assert_array_equal(integers.read(frame_of([True], frame)), [[0]])
    booleans = Table.learn(frame_of([True, False], frame), ["a"])[1]
    for values in ([True, False, None], [1, 0, None], [1.0, 0.0, None]):
        np.testing.assert_array_equal(booleans.read(frame_of(values, frame)), [[1], [0], [NAN]])
    np.testing.assert_array_equal(booleans.read(frame_of([2], frame)), [[-1]])
    floats = Table.learn(frame_of([2.0, 0.5], frame), ["a"])[1]
    np.testing.assert_array_equal(floats.read(frame_of([2, 3], frame)), [[1], [-1]])


@each_frame
def test_a_number_is_read_of_another_kind_of_number(frame):
    table = Table.learn(frame_of([1.5, 2.0], frame))[1]
    for values in ([1, 0], [True, False], [Decimal(1), Decimal(0)], np.array([1, 0], np.uint8)):
        np.testing.assert_array_equal(table.read(frame_of(values, frame)), [[1], [0]])
    assert table.read(frame_of(np.array([1, 0], np.float32), frame)).dtype == np.float32


@each_frame
def test_no_rows_to_predict(frame):
    X = frame({"x": [1.5], "s": ["a"]})
    table = Table.learn(X)[1]
    assert table.read(X[:0]).shape == (0, 2)
    assert table.read(frame({"s": [], "x": []})).shape == (0, 2)


def test_the_index_of_pandas_is_not_read():
    X = pd.DataFrame({"x": [1.5, 2.5], "s": ["a", "b"]}, index=[7, 7])
    check(X, [[1.5, 0], [2.5, 1]], (None, ("a", "b")))


@each_frame
def test_frames_by_place_where_training_rows_had_no_names(frame):
    table = Table.learn(np.array([["b", 1.0], ["a", 2.0]], object), [0])[1]
    np.testing.assert_array_equal(
        table.read(frame({"u": ["a", "c"], "v": [0.5, 1.5]})), [[0, 0.5], [-1, 1.5]]
    )
    with pytest.raises(ValueError, match=r"^X must have 2 columns, got 1$"):
        table.read(frame({"u": ["a"]}))
    with pytest.raises(TypeError, match=r"^X\['v'\] holds strings"):
        table.read(frame({"u": ["a"], "v": ["a"]}))


@each_frame
def test_arrays_by_place_where_training_rows_had_names(frame):
    table = Table.learn(frame({"x": [1.5, 2.5], "k": [3, 4]}))[1]
    for dtype in (np.float32, np.float64):
        values = table.read(np.array([[0.5, 2], [NAN, 1]], dtype))
        np.testing.assert_array_equal(values, [[0.5, 2], [NAN, 1]])
        assert values.dtype == dtype
    with pytest.raises(ValueError, match=r"^X must have 2 columns, got 3$"):
        table.read(np.zeros((1, 3)))
    with pytest.raises(
        ValueError, match=r"^X\[:, 1\] must be finite or missing, got inf in row 0$"
    ):
        table.read(np.array([[0.0, np.inf]]))


@each_frame
def test_arrays_that_hold_the_levels(frame):
    table = Table.learn(frame({"x": [1.5, 2.5], "s": ["b", "a"]}))[1]
    np.testing.assert_array_equal(
        table.read(np.array([[1.0, "a"], [None, "c"]], object)), [[1, 0], [NAN, -1]]
    )
    with pytest.raises(
        TypeError, match=r"^X\[:, 1\] holds numbers, and held strings when the model was fitted$"
    ):
        table.read(np.zeros((1, 2)))
    with pytest.raises(
        TypeError, match=r"^X\[:, 0\] holds strings, and held numbers when the model was fitted$"
    ):
        table.read(np.array([["1", "a"]]))
    of_numbers = Table.learn(frame({"x": [1.5, 2.5], "k": [4, 3]}), ["k"])[1]
    np.testing.assert_array_equal(
        of_numbers.read(np.array([[0.5, 4], [1, 9], [2, NAN]])), [[0.5, 1], [1, -1], [2, NAN]]
    )


# What is a data frame


def test_frames_and_others():
    import dask.dataframe as dd
    import narwhals as nw

    frame = pd.DataFrame({"a": [1.0]})
    for X in (
        frame,
        pl.DataFrame(frame),
        pa.table({"a": [1]}),
        nw.from_native(frame),
        pd.DataFrame(),
    ):
        assert is_frame(X)
    for X in (
        np.zeros((1, 1)),
        [[1.0]],
        sp.csr_array((1, 1)),
        frame["a"],
        pl.Series([1]),
        pl.LazyFrame(frame),
        None,
        np.zeros(1, [("a", float)]).view(np.recarray),
        dd.from_pandas(frame, npartitions=1),
    ):
        assert not is_frame(X)


def test_a_frame_of_narwhals_is_read():
    import narwhals as nw

    check(nw.from_native(pl.DataFrame({"a": ["x", "y"]})), [[0], [1]], (("x", "y"),))


@pytest.mark.slow
def test_no_library_of_data_frames_is_imported_without_one(tmp_path):
    """Importing the package, and reading arrays, imports no library of data frames, nor
    scikit-learn."""
    code = """if True:
        import sys, numpy as np, scipy.sparse, sparserf
        from sparserf.columns.frames import is_frame
        from sparserf.columns.table import Table
        assert not any(map(is_frame, (np.eye(2), [[1]], scipy.sparse.eye_array(2), None, "x")))
        X = np.array([["b", 1.0]], object)
        assert Table.learn(X, [0])[1].read(X).tolist() == [[0.0, 1.0]]
        print({"narwhals", "pandas", "polars", "pyarrow", "sklearn"} & set(sys.modules))"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "set()"


# Files, equality and copies

TEXT = st.text(max_size=5)
KINDS = [TEXT, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)]
LEVELS = st.one_of([st.lists(kind, unique=True, max_size=5).map(tuple) for kind in KINDS])


@st.composite
def tables(draw):
    """Draw a table with any names and levels."""
    levels = draw(st.lists(st.none() | LEVELS, min_size=1, max_size=4))
    names = draw(
        st.none()
        | st.lists(TEXT, min_size=len(levels), max_size=len(levels), unique=True).map(tuple)
    )
    return Table(names, tuple(levels))


@given(tables())
@pytest.mark.slow
def test_tables_are_restored_from_arrays(table):
    written = table.to_arrays()
    assert set(written) == set(ARRAYS) and all(
        array.dtype in (np.int64, np.uint8) for array in written.values()
    )
    back = Table.from_arrays(written)
    assert back == table
    assert repr(back) == repr(table)  # the kinds of levels, too
    assert Table.from_arrays({"other": np.zeros(1)}) is None


def test_strings_that_are_no_unicode_are_kept():
    table = Table(("\ud800",), (("\udfff", "\ud83d\ude00", "\0"),))
    assert Table.from_arrays(table.to_arrays()) == table


def file_of(names, *columns):
    """Return the arrays of a file of these columns, each (kind, its levels as text)."""
    cells = [
        cell.encode() if isinstance(cell, str) else cell
        for cell in [*names, *(c for _, of in columns for c in of)]
    ]
    kind, size = (
        np.array(each, np.int64)
        for each in ([kind for kind, _ in columns], [len(of) for _, of in columns])
    )
    end = np.cumsum([len(cell) for cell in cells]).astype(np.int64)
    return dict(
        zip(ARRAYS, (kind, size, np.frombuffer(b"".join(cells), np.uint8), end), strict=True)
    )


GOOD = file_of(["a", "b"], (-1, []), (0, ["x", "yz"]))
BROKEN = {
    "no columns": file_of([]),
    "the same level": file_of(["a", "b"], (-1, []), (0, ["x", "x"])),
    "the same level but for its sign": file_of([], (3, ["0.0", "-0.0"])),
    "the same name": file_of(["a", "a"], (-1, []), (0, ["x"])),
    "a name for one": file_of(["a"], (-1, []), (0, ["x"])),
    "levels of numbers": file_of([], (-1, ["x"])),
    "unknown kinds": file_of([], (4, ["x"])),
    "kinds below": file_of([], (-6, [])),
    "words as booleans": file_of([], (1, ["true"])),
    "words as integers": file_of([], (2, ["x"])),
    "integers that none would write": file_of([], (2, ["0_1"])),
    "integers with a sign": file_of([], (2, ["+1"])),
    "integers of very many digits": file_of([], (2, ["9" * 5000])),
    "floats as integers": file_of([], (2, ["1.0"])),
    "integers as floats": file_of([], (3, ["1"])),
    "an infinite float": file_of([], (3, ["inf"])),
    "no float": file_of([], (3, ["nan"])),
    "half a character": file_of([], (0, ["a\N{EURO SIGN}".encode()[:-1]])),
    "cut characters": GOOD
    | {"table_text": np.frombuffer("xé".encode(), np.uint8)[[0, 1, 2, 1, 2]]},
    "ends that descend": GOOD | {"table_end": np.array([1, 3, 2, 5])},
    "ends before the start": GOOD | {"table_end": np.array([-1, 2, 3, 5])},
    "ends beyond the text": GOOD | {"table_end": np.array([1, 2, 3, 2**40])},
    "text beyond the ends": GOOD | {"table_text": np.zeros(9, np.uint8)},
    "an end too many": GOOD | {"table_end": np.array([1, 2, 3, 4, 5])},
    "no ends": GOOD | {"table_end": np.zeros(0, np.int64)},
    "sizes below": GOOD | {"table_size": np.array([-1, 3])},
    "sizes beyond": GOOD | {"table_size": np.array([0, 2**62])},
    "a size for one": GOOD | {"table_size": np.array([2])},
} | {
    f"{name} {how}": GOOD | {name: change(GOOD[name])}
    for name in ARRAYS
    for how, change in {
        "deep": lambda a: a[None],
        "of floats": lambda a: a * 1.0,
        "a number": lambda a: np.array(1),
    }.items()
}


@pytest.mark.every_case
@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused(arrays):
    with pytest.raises((ValueError, KeyError)):
        Table.from_arrays(arrays)


@pytest.mark.every_case
@pytest.mark.parametrize("name", ARRAYS)
def test_half_a_file_is_refused(name):
    with pytest.raises(KeyError, match=name):
        Table.from_arrays({key: array for key, array in GOOD.items() if key != name})
    assert Table.from_arrays(GOOD).levels == (None, ("x", "yz")) and Table.from_arrays(
        GOOD
    ).names == ("a", "b")


def test_levels_that_some_rows_lack():
    X, table = Table.learn(
        pd.DataFrame({"a": ["x", "y", None, "z"], "b": [1, 2, 3, 4], "c": ["u", "v", "u", "v"]})
    )
    before = X.copy()
    some, fewer = table.for_rows(X[[3, 2, 1]])
    np.testing.assert_array_equal(some, [[1, 4, 1], [np.nan, 3, 0], [0, 2, 1]])
    assert fewer.levels == (("y", "z"), None, ("u", "v")) and fewer.names == table.names
    same, every = table.for_rows(X)
    assert same is X and every == table
    none, without = table.for_rows(X[[2]])
    np.testing.assert_array_equal(none, [[np.nan, 3, 0]])
    assert without.levels == ((), None, ("u",))
    np.testing.assert_array_equal(X, before)


def test_tables_that_read_the_same():
    X = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    table, again = Table.learn(X)[1], Table.learn(X)[1]
    assert table == again
    assert table != Table.learn(X[["b", "a"]])[1]
    assert table != Table.learn(X, ["b"])[1]
    assert table != Table.learn(X[:1])[1]
    assert table != Table.learn(X.to_numpy(object), [0])[1]


def test_a_table_is_pickled_without_what_it_can_make_again():
    X = pd.DataFrame({"a": ["x", "y", None]})
    values, table = Table.learn(X)
    before = pickle.dumps(table)
    np.testing.assert_array_equal(table.read(X), values)
    assert pickle.dumps(table) == before
    np.testing.assert_array_equal(pickle.loads(before).read(X), values)
    with pytest.raises(AttributeError):
        table.names = ()


def test_a_model_of_numbers_read_as_words_says_so_to_its_user():
    cells = pd.Series(np.arange(60.0).astype(str)).replace("7.0", "?")
    with pytest.warns(UserWarning, match=r"all but '\?' are numbers") as caught:
        srf.mfga(
            pd.DataFrame({"a": [*cells, *cells], "b": np.arange(120.0)}),
            np.arange(120.0),
            n_nonzero_coefs=2,
            alpha=1e-3,
            rng=0,
        )
    assert [warning.filename for warning in caught] == [__file__]


# Columns of plain numbers are read together

PLAIN = {
    "pandas": {
        "float64": "float64",
        "float32": "float32",
        "int8": "int8",
        "int64": "int64",
        "uint64": "uint64",
        "bool": "bool",
        "Float64": "Float64",
        "Float32": "Float32",
        "Int64": "Int64",
        "boolean": "boolean",
        "arrow": "double[pyarrow]",
        "arrow32": "float[pyarrow]",
        "arrow int": "int64[pyarrow]",
        "arrow bool": "bool[pyarrow]",
    },
    "polars": {
        name: getattr(pl, name)
        for name in ("Float64", "Float32", "Int8", "Int64", "UInt64", "Boolean")
    },
    "pyarrow": {name: name for name in ("float64", "float32", "int8", "int64", "uint64", "bool")},
}
BY_DTYPE = [
    (library, name)
    for library, dtypes in PLAIN.items()
    for name in (*dtypes, "all", "with words", "shuffled")
]


def plain_frame(library, kind, n_columns=40, n_rows=3):
    """Return a frame of columns of one dtype, or of all in turn; cells are missing where the dtype
    has missing cells."""
    dtypes, cells = (
        PLAIN[library],
        np.random.default_rng(0).integers(0, 2, (n_columns, n_rows)).tolist(),
    )
    names = [kind] if kind in dtypes else list(dtypes)
    columns = {}
    for j, of_column in enumerate(cells):
        name = names[j % len(names)]
        values = [bool(cell) if "bool" in name.lower() else cell for cell in of_column]
        if library == "polars":
            columns[f"c{j}"] = pl.Series([None, *values[1:]], dtype=dtypes[name])
        elif library == "pyarrow":
            columns[f"c{j}"] = pa.array([None, *values[1:]], dtypes[name])
        else:
            has_missing = name[0].isupper() or "arrow" in name
            columns[f"c{j}"] = pd.Series(
                [None, *values[1:]] if has_missing else values, dtype=dtypes[name]
            )
        if kind == "with words" and j % 3 == 0:
            columns[f"c{j}"] = ["u", "v", "u"][:n_rows]
    if kind == "shuffled":
        columns = dict(sorted(columns.items()))
    return FRAMES[library](columns)


@pytest.mark.parametrize(("library", "kind"), BY_DTYPE, ids=map(" ".join, BY_DTYPE))
def test_columns_are_read_together_as_one_by_one(library, kind, monkeypatch):
    X = plain_frame(library, kind)
    together, table = Table.learn(X)
    read = table.read(X)
    one_by_one = []
    monkeypatch.setattr(plain, "FEW_ROWS", 0)
    monkeypatch.setattr(
        table_module,
        "cells_of",
        lambda *args, of=table_module.cells_of: one_by_one.append(1) or of(*args),
    )
    alone, same = Table.learn(X)
    assert len(one_by_one) == 40 and table == same and together.dtype == alone.dtype
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(read, alone)


@each_frame
def test_a_row_of_thousands_of_numbers_takes_no_call_for_each_column(frame, monkeypatch):
    X = frame({f"c{j}": np.array([j % 7], "float32" if j % 3 else "int64") for j in range(2000)})
    turned = frame(
        {f"c{j}": np.array([j % 7], "float32" if j % 3 else "int64") for j in reversed(range(2000))}
    )
    table = Table(tuple(f"c{j}" for j in range(2000)), (None,) * 2000)
    monkeypatch.setattr(table_module, "cells_of", None)  # what reads a column alone
    for each in (X, turned):
        np.testing.assert_array_equal(table.read(each), [np.arange(2000) % 7])


@each_frame
def test_an_infinite_cell_among_thousands_of_columns_is_named(frame):
    X = frame({f"c{j}": [np.inf if j == 1234 else 1.0] for j in range(2000)})
    with pytest.raises(
        ValueError, match=r"^X\['c1234'\] must be finite or missing, got inf in row 0$"
    ):
        Table.learn(X)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_plain_numbers_are_never_asked_one_by_one(library, monkeypatch):
    """Where there are 100,000, asking each takes seconds; flags are found among them."""
    narwhals = pytest.importorskip("narwhals")
    pytest.importorskip(library)
    values = {"a": [1.5, 2.5, 0.5], "b": [True, False, True], "c": [1, 2, 4]}
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(values)
    elif library == "polars":
        frame = pytest.importorskip("polars").DataFrame(values)
    else:
        frame = pytest.importorskip("pyarrow").table(values)

    def refuse(*args, **keywords):
        raise AssertionError("a column was asked")

    for name in ("iter_columns", "__getitem__", "get_column", "schema"):
        monkeypatch.setattr(narwhals.DataFrame, name, refuse)
    X, table = Table.learn(frame)
    assert np.array_equal(X, [[1.5, 1, 1], [2.5, 0, 2], [0.5, 1, 4]]) and table.flags == {1}
    assert np.array_equal(table.read(frame), X)
