"""Labels, groups and categories that are strings of other types: none is cut off, none are
merged."""

import enum
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sparserf as srf
from sparserf._base.splits import check_groups
from sparserf.columns.targets import as_labels


class Colour(str, enum.Enum):  # noqa: UP042 - the str of a StrEnum is its value
    RED = "r"
    GREEN = "g"
    BLUE = "blue"


Size = enum.IntEnum("Size", [("S", 1), ("M", 2), ("L", 3)])
Short = enum.StrEnum("Short", [("A", "alpha"), ("B", "alphabet"), ("C", "b")])


class Name(str):
    """A string that prints as another."""

    def __str__(self):
        return "name"


LABELS = {
    "(str, Enum)": (list(Colour), ["r", "g", "blue"]),
    "StrEnum": (list(Short), ["alpha", "alphabet", "b"]),
    "IntEnum": (list(Size), [1, 2, 3]),
    "subclass of str": (list(map(Name, ["a", "abc", "b"])), ["a", "abc", "b"]),
    "numpy.str_": ([np.str_("a"), "ab", np.str_("abc")], ["a", "ab", "abc"]),
    "bytes": ([b"a", b"ab", b"abc"], [b"a", b"ab", b"abc"]),
    "large integers": ([2**60, 2**60 + 1, 0], [2**60, 2**60 + 1, 0]),
    "inner null": (["a", "a\0b", "a\0c"], ["a", "a\0b", "a\0c"]),
}
MAKE = {
    "list": list,
    "tuple": tuple,
    "objects": lambda labels: np.fromiter(labels, object, len(labels)),
    "pandas": lambda labels: pd.Series(labels, dtype=object),
    "polars": lambda labels: pl.Series(labels, dtype=pl.Object),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize(("labels", "plain"), LABELS.values(), ids=LABELS)
def test_labels_are_their_values(labels, plain, make):
    given = make([labels[i % 3] for i in range(9)])
    expected = [plain[i % 3] for i in range(9)]
    assert as_labels(given).tolist() == expected
    assert check_groups(given, 9).tolist() == [sorted(plain).index(each) for each in expected]


LOST = {
    "null at the end": ["a", "a\0"],
    "null at the end of bytes": [b"a", b"a\0"],
    "decimals": [Decimal("1.1"), Decimal("1.10000000000000000001")],
    "integers beyond int64": [2**70, 2**70 + 1],
    "integers beside a float": [2**53, 2**53 + 1, 0.5],
    "integers of both signs": [-1, 2**63 + 1, 2**63 + 2],
    "strings and bytes": ["a", b"a"],
    "paths": [Path("a"), Path("b")],
    "tuples": [("a", 1), ("b", 2)],
}


@pytest.mark.parametrize("make", ["list", "objects", "pandas"])
@pytest.mark.parametrize("labels", LOST.values(), ids=LOST)
def test_labels_that_would_become_one_are_an_error_and_groups_are_not(labels, make):
    given = MAKE[make](labels * 3)
    with pytest.raises((ValueError, TypeError), match=r"^y must hold labels "):
        as_labels(given)
    groups = check_groups(given, len(given))
    assert len(set(groups.tolist())) == len(labels)
    assert groups.tolist() == groups[: len(labels)].tolist() * 3


def table(make):
    """Return rows whose first column has members of Colour, and y, the place of each."""
    y = np.arange(60) % 3
    cells = [list(Colour)[k] for k in y]
    return make(cells, np.arange(60.0)), y + 0.5


TABLES = {
    "objects": lambda k, x: np.array([*zip(map(lambda c: c, k), x, strict=True)], object),
    "pandas": lambda k, x: pd.DataFrame({"k": pd.Series(k, dtype=object), "x": x}),
    "pandas with missing cells": lambda k, x: pd.DataFrame(
        {"k": pd.Series([np.nan, *k[1:]], dtype=object), "x": x}
    ),
    "a categorical": lambda k, x: pd.DataFrame(
        {"k": pd.Categorical(k, categories=list(Colour)), "x": x}
    ),
    "polars": lambda k, x: pl.DataFrame({"k": k, "x": x}),
    "chunks": lambda k, x: srf.Chunks.of_batches(
        [pd.DataFrame({"k": k[:30], "x": x[:30]}), pd.DataFrame({"k": k[30:], "x": x[30:]})],
        levels={"k": list(Colour)},
    ),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_categories_are_their_values(make):
    X, y = table(make)
    model = srf.drp(X, y, alpha=1e-6, categorical=[0])
    assert set(model.features.encoder.table.levels[0]) == {"r", "g", "blue"}
    assert np.abs(model.predict(X) - y)[1:].max() < 0.01


def test_classes_and_their_score_in_estimators():
    from sparserf.sklearn import DRPClassifier

    y = [list(Colour)[i % 3] for i in range(60)]
    X = np.eye(3)[np.arange(60) % 3]
    for given in (y, np.array(y, object), pd.Series(y, dtype=object)):
        estimator = DRPClassifier(loss="multinomial", alpha=1e-3).fit(X, given)
        assert estimator.classes_.tolist() == ["blue", "g", "r"]
        assert estimator.score(X, given) == 1 == estimator.model_.to_estimator().score(X, given)
