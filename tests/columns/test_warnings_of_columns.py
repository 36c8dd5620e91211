"""Warnings of columns that may not be what they seem: numbers that are written as text, and
integers beyond 2**53."""

import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import sparserf as srf

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "pyarrow": pa.table,
}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
N = 60
PLAIN = [str(k % 30) for k in range(N)]


def fitted(X, **how):
    """Return a small model of X."""
    return srf.mfga(
        X, np.arange(len(X)), features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3, **how
    )


# Columns of words that are numbers, with what the warning says of them.
AS_TEXT = {
    "a question mark": (["?", *PLAIN[1:]], "all but '\\?' are"),
    "several others": (["?", "N/A", "", *PLAIN[3:]], "all but '', '\\?', 'N/A' are"),
    "few numbers and a question mark": (
        ["?", *[str(k % 5) for k in range(N - 1)]],
        "all but '\\?' are",
    ),
    "missing cells": ([None, "?", *PLAIN[2:]], "all but '\\?' are"),
    "separators": ([f"{1000 + 37 * k:,}" for k in range(N)], "all are numbers, such as '1,"),
    "decimal commas": ([f"{k % 30},5" for k in range(N)], "all are"),
    "currency": ([f"${k % 30 + 1}.50" for k in range(N)], "all are"),
    "percent": ([f"{k % 30}%" for k in range(N)], "all are numbers, such as '0%'"),
    "spaces": ([f" {k % 30} " for k in range(N)], "all are"),
    "all numbers": ([f"{k / 7:.3f}" for k in range(N)], "all are"),
}
# Columns that are words or codes.
WORDS = {
    "words": ["u", "v", "w"] * 20,
    "postcodes": [f"{k % 30:05d}" for k in range(N)],
    "postcodes, some unknown": ["?", *[f"{k % 30:05d}" for k in range(N - 1)]],
    "codes of one length": [str(10001 + k % 30) for k in range(N)],
    "few codes": [str(k % 5) for k in range(N)],
    "half numbers": [*PLAIN[:30], *["u", "v"] * 15],
    "all missing": [None] * N,
}


@each_frame
@pytest.mark.parametrize(("cells", "what"), AS_TEXT.values(), ids=AS_TEXT)
def test_numbers_that_are_text_are_warned_of(cells, what, frame):
    with pytest.warns(
        UserWarning, match=rf"^X\['a'\] holds words, and {what}.*Make it numbers"
    ) as caught:
        fitted(frame({"a": cells}))
    assert len(caught) == 1
    # it is what the user wants: no warning, which would be an error here
    fitted(frame({"a": cells}), categorical=["a"])


@each_frame
@pytest.mark.parametrize("cells", WORDS.values(), ids=WORDS)
def test_words_and_codes_are_not_warned_of(cells, frame):
    fitted(frame({"a": cells}))


@pytest.mark.parametrize(
    "word",
    [
        "1",
        "-2.5",
        "+3",
        "1,200",
        "1.200,50",
        "1'200",
        "1 200",
        "1\u00a0200,5",
        "$1,200",
        "1200 $",
        "€5",
        "-$5",
        "$-5",
        "12%",
        "5 %",
        "(1,200)",
        "1.5E-3",
        ".5",
        ",5",
        "12.",
        "−4",
        "USD 5",
        "12,34,567",
        " 7 ",
    ],
)
def test_ways_to_write_a_number(word):
    with pytest.warns(UserWarning, match=r"^X\['a'\] holds words, and all are numbers"):
        fitted(pd.DataFrame({"a": [word, *PLAIN[1:]]}))


@pytest.mark.parametrize(
    "word",
    [
        "?",
        "N/A",
        "",
        "-",
        "abc",
        "1a",
        "2020-01-01",
        "12:30",
        "1/2",
        "1.2.3",
        "A1",
        "nan",
        "10-20",
        "1 2",
        "192.168.0.1",
        "0x1F",
        "()",
        "%",
        "$",
        "5kg",
    ],
)
def test_what_is_no_number(word):
    with pytest.warns(
        UserWarning, match=rf"^X\['a'\] holds words, and all but '{re.escape(word)}' are"
    ):
        fitted(pd.DataFrame({"a": [word, *PLAIN[1:]]}))


LARGE = 2**53
INTEGERS = {
    "int64": np.array([LARGE + 1, 1, 2], np.int64),
    "negative": np.array([-LARGE - 1, 1, 2], np.int64),
    "uint64": np.array([2**64 - 1, 1, 2], np.uint64),
    "Python": [LARGE + 1, 1, 2],
    "Python, one missing": [LARGE + 1, None, 2],
    "Decimal": [Decimal(LARGE + 1), Decimal(1), None],
}
OF_LIBRARIES = {
    **{
        f"pandas {name}": pd.DataFrame(
            {"a": pd.Series(v, dtype=object if isinstance(v, list) else v.dtype)}
        )
        for name, v in INTEGERS.items()
    },
    "pandas Int64": pd.DataFrame({"a": pd.array([LARGE + 1, None, 2], "Int64")}),
    "pandas Arrow": pd.DataFrame({"a": pd.array([LARGE + 1, None, 2], "int64[pyarrow]")}),
    **{f"polars {name}": pl.DataFrame({"a": v}) for name, v in INTEGERS.items()},
    "polars Int128": pl.DataFrame({"a": pl.Series([2**100 + 1, 1, 2], dtype=pl.Int128)}),
    **{f"arrow {name}": pa.table({"a": v}) for name, v in INTEGERS.items()},
}
LOST = (
    r" holds integers beyond 2\*\*53, such as -?\d+, which numbers of 64 bits do not tell "
    r"apart: are these identifiers\?"
)


@pytest.mark.parametrize("X", OF_LIBRARIES.values(), ids=OF_LIBRARIES)
def test_large_integers_of_frames_are_warned_of(X):
    with pytest.warns(UserWarning, match=r"^X\['a'\]" + LOST):
        model = fitted(X)
    with pytest.warns(UserWarning, match=r"^X\['a'\]" + LOST):
        model.predict(X)


@pytest.mark.parametrize("X", OF_LIBRARIES.values(), ids=OF_LIBRARIES)
def test_large_integers_that_are_categories_are_told_apart(X):
    values = [cell for cell in pl.DataFrame(X)["a"].to_list() if cell is not None]
    if not all(isinstance(value, Decimal) for value in values):
        assert fitted(X, categorical=["a"]).features.encoder.table.levels == (
            tuple(sorted(map(int, values))),
        )


ARRAYS = {
    name: np.array(v) for name, v in INTEGERS.items() if "missing" not in name and name != "Decimal"
}
ARRAYS["Decimal"] = np.array([Decimal(LARGE + 1), Decimal(1), Decimal(2)], object)


@pytest.mark.parametrize("values", ARRAYS.values(), ids=ARRAYS)
def test_large_integers_of_arrays_are_warned_of(values):
    x = np.arange(3.0)[:, None]
    for name, arguments in {"X": (values[:, None], x[:, 0]), "y": (x, values)}.items():
        with pytest.warns(UserWarning, match=f"^{name}{LOST}"):
            srf.mfga(*arguments, n_nonzero_coefs=1, alpha=1e-3, rng=0)
    with pytest.warns(UserWarning, match=f"^sample_weight{LOST}"):
        srf.mfga(x, x[:, 0], n_nonzero_coefs=1, alpha=1e-3, sample_weight=abs(values), rng=0)


def test_large_integers_of_sparse_rows_are_warned_of():
    with pytest.warns(UserWarning, match=f"^X{LOST}"):
        srf.mfga(
            sp.csr_array(INTEGERS["int64"][:, None]),
            np.arange(3.0),
            n_nonzero_coefs=1,
            alpha=1e-3,
            rng=0,
        )


@each_frame
@pytest.mark.parametrize(
    "values", [[LARGE, -LARGE, 1], [2**60, 10**18, 3], [1e150, 2.5, -1e17 - 1]]
)
def test_large_numbers_that_lose_nothing_are_not_warned_of(values, frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(frame({"a": values}))


@pytest.mark.parametrize(
    "form", ["2020-03-{:02}", "2020-03-{:02} 12:30", "2020-03-{:02}T01:00:00Z"]
)
def test_dates_as_words_are_spoken_of(form):
    words = [form.format(day) for day in range(1, 13)] * 2
    with pytest.warns(UserWarning, match=r"^X\['a'\] holds words that are dates, such as '2020-03"):
        fitted(pd.DataFrame({"a": words}))


@pytest.mark.parametrize("other", ["2020-02-30", "2020-01", "x 2020-03-03", "2020-03-03 or so"])
def test_words_of_which_one_is_no_date_are_not(other):
    words = [f"2020-03-{day:02}" for day in range(1, 13)]
    fitted(pd.DataFrame({"a": [*words, *words, other]}))
    fitted(pd.DataFrame({"a": pd.to_datetime(words)}))
