"""Vectors of any home and any kind of number: missing labels are an error everywhere, and Decimal
is a number everywhere."""

from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sparserf as srf
from sparserf.sklearn import DRPClassifier, DRPRegressor

N = 40
X = np.random.default_rng(0).normal(size=(N, 2))
FIT = partial(srf.drp, alpha=0.1, loss="logistic")
QUIET = {"cv": 2, "rng": 0, "verbose": False}
MISSING = {"None": None, "nan": np.nan, "numpy nan": np.float64("nan"), "NA": pd.NA, "NaT": pd.NaT}


def words(missing):
    """Return labels that are strings, one of them missing."""
    labels = ["p" if x > 0 else "n" for x in X[:, 0]]
    labels[5] = missing
    return labels


# Where labels may be: functions of a list.
HOMES = {
    "list": list,
    "tuple": tuple,
    "array": lambda y: np.array([*y, 0], object)[:-1],
    "series": lambda y: pd.Series(y, dtype=object),
    "categorical": lambda y: pd.Series(y, dtype="category"),
}
TYPED = {
    "pandas str": lambda: pd.Series(words(None), dtype="string"),
    "polars": lambda: pl.Series(words(None)),
    "polars categorical": lambda: pl.Series(words(None), dtype=pl.Categorical),
    "arrow": lambda: pa.array(words(None)),
    "arrow chunks": lambda: pa.chunked_array([words(None)]),
    "arrow dictionary": lambda: pa.array(words(None)).dictionary_encode(),
    "boolean": lambda: pd.Series([None, *(X[1:, 0] > 0).tolist()], dtype="boolean"),
    "polars boolean": lambda: pl.Series([None, *(X[1:, 0] > 0).tolist()]),
    "integers": lambda: [None, *(X[1:, 0] > 0).astype(int).tolist()],
    "StringDType": lambda: np.array(words(np.nan), np.dtypes.StringDType(na_object=np.nan)),
}
USES_OF_LABELS = {
    "fit": lambda y: FIT(X, y),
    "multinomial": lambda y: srf.drp(X, y, alpha=0.1, loss="multinomial"),
    "balanced": lambda y: FIT(X, y, class_weight="balanced"),
    "cross_validate": lambda y: srf.cross_validate(
        srf.drp, X, y, {"alpha": [0.1], "loss": ["logistic"]}, **QUIET
    ),
    "calibrated": lambda y: srf.calibrated(FIT, X, y, cv=2, rng=0, verbose=False),
    "estimator": lambda y: DRPClassifier(alpha=0.1).fit(X, y),
}
each_use = pytest.mark.parametrize("use", USES_OF_LABELS.values(), ids=USES_OF_LABELS)


@each_use
@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES)
@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)
def test_missing_labels_are_an_error(missing, home, use):
    with pytest.raises(
        ValueError, match=r"^y must not have missing labels, got .* at \[5\]: leave such rows out$"
    ):
        use(home(words(missing)))


@pytest.mark.every_case
@each_use
@pytest.mark.parametrize("y", TYPED.values(), ids=TYPED)
def test_missing_labels_of_typed_arrays_are_an_error(y, use):
    with pytest.raises(
        ValueError,
        match=r"^y must not have missing labels, got .* at \[[05]\]: leave such rows out$",
    ):
        use(y())


@pytest.mark.every_case
@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)
def test_missing_classes_of_a_teacher_are_an_error(missing):
    with pytest.raises(ValueError, match=r"^classes must not have missing labels"):
        srf.distill(
            lambda Z: np.full((len(Z), 2), 0.5), X, classes=["p", missing], effort=0.05, rng=0
        )


def test_the_row_of_a_missing_number_is_that_of_y():
    with pytest.raises(ValueError, match=r"^y must be finite, got nan at \[5\]"):
        srf.cross_validate(
            srf.drp, X, [0.5 if i != 5 else np.nan for i in range(N)], {"alpha": [0.1]}, **QUIET
        )


DECIMALS = [Decimal(f"{abs(x) + 0.1:.3f}") for x in X[:, 1]]
DECIMAL = pa.decimal128(10, 3)
NUMBERS = {
    "list": DECIMALS,
    "array": np.array(DECIMALS, object),
    "series": pd.Series(DECIMALS),
    "series of arrow": pd.Series(DECIMALS, dtype=pd.ArrowDtype(DECIMAL)),
    "arrow": pa.array(DECIMALS, DECIMAL),
    "arrow chunks": pa.chunked_array([pa.array(DECIMALS, DECIMAL)]),
    "polars": pl.Series(DECIMALS, dtype=pl.Decimal(10, 3)),
    "fractions": [Fraction(x) for x in DECIMALS],
}
OF_FIT = ("y", "sample_weight", "offset")
ALPHAS = {"alpha": [0.1]}
USES_OF_NUMBERS = {
    **{
        name: partial(
            lambda name, v: srf.drp(**{"X": X, "y": X[:, 0], "alpha": 0.1, name: v}), name
        )
        for name in OF_FIT
    },
    "offset of predict": lambda v: srf.drp(X, X[:, 0], alpha=0.1).predict(X, offset=v),
    "mfga": lambda v: srf.mfga(X, v, n_nonzero_coefs=2, alpha=1e-3, rng=0),
    "cross_validate": lambda v: srf.cross_validate(srf.drp, X, v, ALPHAS, **QUIET).model,
    "weights of cross_validate": lambda v: (
        srf.cross_validate(srf.drp, X, X[:, 0], ALPHAS, sample_weight=v, **QUIET).model
    ),
    "groups": lambda v: srf.cross_validate(srf.drp, X, X[:, 0], ALPHAS, groups=v, **QUIET).model,
    "estimator": lambda v: DRPRegressor(alpha=0.1).fit(X, v),
    "intervals": lambda v: srf.intervals(partial(srf.drp, alpha=0.1), X, v, rng=0),
}


def predicted(result):
    """Return predictions for X of what a use gives."""
    return result if isinstance(result, np.ndarray) else result.predict(X)


@pytest.mark.parametrize("use", USES_OF_NUMBERS.values(), ids=USES_OF_NUMBERS)
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_decimals_are_numbers_in_every_vector(numbers, use):
    same = predicted(use(np.array([float(x) for x in DECIMALS])))
    np.testing.assert_array_equal(predicted(use(numbers)), same)


@pytest.mark.parametrize(
    "make", [list, lambda y: np.array(y, object), pd.Series, pa.array, pl.Series]
)
def test_decimals_may_be_labels(make):
    y = make([Decimal(int(x > 0)) / 4 for x in X[:, 0]])
    assert FIT(X, y).classes.tolist() == [0, 0.25]
    assert srf.calibrated(FIT, X, y, cv=2, rng=0, verbose=False).classes.tolist() == [0, 0.25]


def test_decimals_of_several_outputs():
    y = np.column_stack([np.array(DECIMALS, object)] * 2)
    np.testing.assert_array_equal(
        srf.mfga(X, y, n_nonzero_coefs=2, alpha=1e-3, rng=0).coef,
        srf.mfga(X, y.astype(float), n_nonzero_coefs=2, alpha=1e-3, rng=0).coef,
    )
