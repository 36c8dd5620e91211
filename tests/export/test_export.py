"""Models outside of Python: an ONNX graph and a file of C give for a row what `predict` gives."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._base.expressions import raised
from sparserf.columns.encoder import ColumnEncoder
from sparserf.columns.kinds import LEVEL, MISSING, NUMBER
from sparserf.columns.table import Table
from sparserf.features import Activation, FeatureSet, NeuronBlock
from sparserf.losses import PROBABILISTIC
from sparserf.losses.links import LINKS, IdentityLink

from ..fitted_models import bumps

RNG = np.random.default_rng(0)
N, D = 600, 5
X = RNG.standard_normal((N, D)) * [1, 10, 100, 1e-3, 1] + [0, 1e6, 5, 0, 0]
SEEN = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (
    np.sin(2 * SEEN[:, 0]) * SEEN[:, 1]
    + SEEN[:, 2]
    + (SEEN[:, 3] > 0)
    + 0.05 * RNG.standard_normal(N)
)
CLASSES = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
NAMES = np.array(["u", 'say "*/"', "ü??/"])
WORDS = sp.csr_array(
    np.where(RNG.random((N, 40)) < 0.1, RNG.integers(1, 4, (N, 40)), 0).astype(float)
)
OF_WORDS = WORDS[:, :5].sum(axis=1) - np.asarray(WORDS[:, [7]].toarray()).ravel()

FRAME = pd.DataFrame(
    {
        "size": np.where(RNG.random(N) < 0.1, np.nan, X[:, 1]),
        "kind": RNG.choice(["a", 'b "*/" \\', "ü", "", "rare"], N, p=[0.4, 0.3, 0.2, 0.095, 0.005]),
        "place": RNG.choice([f"place {k}" for k in range(60)], N),
        "label": SEEN[:, 0],
        "floor": RNG.choice([1, 2, 3], N),
    }
)
OF_FRAME = (
    np.sin(2 * SEEN[:, 0]) * np.where(FRAME["size"].isna(), 3, SEEN[:, 1])
    + (FRAME["kind"] == "a") * SEEN[:, 0]
    + FRAME["place"].str[6:].astype(int) / 20
    + (FRAME["floor"] == 2)
)
FRAME.loc[::23, "place"] = None


def expansion(map_, features=None, **how):
    """Fit all of some draws, each with a coefficient."""
    features = map_.draw(60, D, rng=0) if features is None else features
    return srf.harfe(
        SEEN, Y, features=features, n_nonzero_coefs=min(40, len(features)), alpha=1e-4, rng=0, **how
    )


NEURONS = {
    f"{activation} {order or 'dense'} {scale}": lambda a=activation, q=order, s=scale: expansion(
        srf.RandomNeurons(a, order=q), scale=s
    )
    for activation in get_args(Activation)
    for order, scale in ((None, None), (2, "robust"))
}
EXPANSIONS = NEURONS | {
    "gaussian": lambda: expansion(srf.Fourier(gamma=0.1)),
    "perceptron": lambda: expansion(srf.Perceptron(radius=3.0)),
    "linear": lambda: expansion(srf.Linear()),
    "taylor 1": lambda: expansion(srf.Taylor(1, gamma=0.1)),
    "taylor 2": lambda: expansion(srf.Taylor(2, gamma=0.1), scale="robust"),
    "taylor 4": lambda: expansion(srf.Taylor(4, gamma=0.1)),
    "bumps": lambda: expansion(None, bumps(D), scale=None),
    "bumps in units": lambda: expansion(None, bumps(D), scale="robust"),
    "all at once": lambda: expansion(
        None,
        srf.Linear()
        .draw(None, D)
        .concat(srf.Fourier(gamma=0.1).draw(40, D, rng=1))
        .concat(srf.Taylor(2, gamma=0.1).draw(None, D))
        .concat(srf.RandomNeurons("tanh", order=1).draw(40, D, rng=1)),
    ),
}
REGRESSIONS = EXPANSIONS | {
    "sparse_rf": lambda: srf.sparse_rf(X, Y, rng=0, n_components=500),
    "harfe": lambda: srf.harfe(
        X, Y, n_components=300, n_nonzero_coefs=30, alpha=1e-4, order=2, rng=0
    ),
    "mfga": lambda: srf.mfga(X, Y, n_nonzero_coefs=15, alpha=1e-3, rng=0),
    "drp": lambda: srf.drp(X, Y, alpha=1e-3, rng=0),
    "outputs": lambda: srf.mfga(
        X, np.stack([Y, -(Y**2), 3 + X[:, 0]], axis=1), n_nonzero_coefs=15, alpha=1e-3, rng=0
    ),
    "quantiles": lambda: srf.mfga(
        X, Y, loss=srf.losses.Quantile([0.45, 0.5, 0.55]), n_nonzero_coefs=15, alpha=1e-3, rng=0
    ),
    "rules": lambda: srf.sparse_rf(X, Y, features=srf.Rules(), alpha=0.02, n_components=300, rng=0),
    "no terms": lambda: srf.sparse_rf(X, Y, features="gaussian", alpha=1e6, n_components=50, rng=0),
    "no terms, raw": lambda: srf.sparse_rf(X, Y, features=srf.Linear(), alpha=1e6, scale=None),
    "constant": lambda: srf.mfga(
        np.ones((9, 2)), np.arange(9.0), n_nonzero_coefs=1, alpha=1e-3, rng=0
    ),
    "thousands": lambda: srf.harfe(
        X, Y, n_components=4000, n_nonzero_coefs=3000, alpha=1e-4, rng=0, max_iter=1
    ),
    "cox": lambda: srf.mfga(
        X, np.column_stack([np.exp(-Y), Y < 1]), loss="cox", n_nonzero_coefs=15, alpha=1e-3, rng=0
    ),
    "poisson": lambda: srf.sparse_rf(
        X, np.exp(Y), loss="poisson", features="gaussian", alpha=1e-2, n_components=200, rng=0
    ),
    "tweedie": lambda: srf.mfga(
        X, np.maximum(Y, 0), loss=srf.losses.Tweedie(1.3), n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "limited": lambda: srf.harfe(
        X, Y, n_components=300, n_nonzero_coefs=30, alpha=1e-4, lower=-0.1, upper=0.7, rng=0
    ),
    "limited above": lambda: srf.sparse_rf(
        X,
        np.stack([Y, -Y], axis=1),
        features="gaussian",
        alpha=1e-3,
        n_components=300,
        upper=0.1,
        rng=0,
    ),
    "limited counts": lambda: srf.sparse_rf(
        X,
        np.exp(Y),
        loss="poisson",
        features="gaussian",
        alpha=1e-2,
        n_components=200,
        lower=0.7,
        upper=1.3,
        rng=0,
    ),
    "one input": lambda: srf.sparse_rf(
        X[:, :1], Y, features="gaussian", alpha=1e-3, n_components=500, rng=0
    ),
}
LIMITS = {"limited": (-0.1, 0.7), "limited above": (-np.inf, 0.1), "limited counts": (0.7, 1.3)}
OF_CSR = {
    "words": lambda: srf.sparse_rf(WORDS, OF_WORDS, rng=0, n_components=300),
    "words, drp": lambda: srf.drp(WORDS, OF_WORDS, alpha=1e-3, rng=0),
    "words, gaussian": lambda: srf.sparse_rf(
        WORDS, OF_WORDS, features="gaussian", alpha=1e-3, n_components=300, rng=0
    ),
    "words, sparse": lambda: srf.harfe(
        WORDS,
        OF_WORDS,
        features=srf.RandomNeurons("sin", order=1),
        n_components=200,
        n_nonzero_coefs=20,
        alpha=1e-4,
        rng=0,
    ),
    "words, bumps": lambda: srf.harfe(
        WORDS, OF_WORDS, features=bumps(40), n_nonzero_coefs=60, alpha=1e-4, rng=0
    ),
}
CLASSIFIERS = {
    "logistic": lambda: srf.sparse_rf(X, Y > 0, loss="logistic", rng=0, n_components=300),
    "multinomial": lambda: srf.mfga(
        X, NAMES[CLASSES], loss="multinomial", n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "multinomial of two": lambda: srf.mfga(
        X, Y > 0, loss="multinomial", n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "ordinal": lambda: srf.mfga(
        X,
        pd.Categorical(NAMES[CLASSES], [NAMES[k] for k in (1, 0, 2)], ordered=True),
        loss="ordinal",
        n_nonzero_coefs=10,
        alpha=1e-3,
        rng=0,
    ),
    "logistic, names": lambda: srf.mfga(
        X, NAMES[CLASSES], loss="logistic", n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "hinge": lambda: srf.sparse_rf(
        X,
        2 * (Y > 0) - 1,
        loss="squared_hinge",
        features="gaussian",
        alpha=1e-3,
        n_components=300,
        rng=0,
    ),
    "hinge, floats": lambda: srf.harfe(
        X,
        CLASSES + 0.5,
        loss="squared_hinge",
        n_components=200,
        n_nonzero_coefs=20,
        alpha=1e-4,
        rng=0,
    ),
    "drp, bytes": lambda: srf.drp(
        X, np.array([b"no", b"yes"])[(Y > 0).astype(int)], loss="logistic", alpha=1e-2, rng=0
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
FITTED = {}


def fitted(name, make):
    """Return the model of a name, fitted once."""
    if name not in FITTED:
        FITTED[name] = make()
    return FITTED[name]


def rows_for(name):
    """Return rows to predict: the training rows, and some far away from them."""
    if name.startswith("words"):
        return np.ascontiguousarray(WORDS.toarray())
    if name == "constant":
        return np.array([[1.0, 1.0], [2.0, -3.0]])
    rows = SEEN if name in EXPANSIONS else X
    far = np.concatenate([rows, rows[:20] + 30 * rows.std(axis=0), rows[20:40] * [1, 1, -50, 1, 1]])
    return np.ascontiguousarray(far[:, :1] if name == "one input" else far)


def regressions(test):
    """Mark a test as one for each model of a real target."""
    both = REGRESSIONS | OF_CSR
    return pytest.mark.parametrize(("name", "make"), both.items(), ids=both)(test)


def classifiers(test):
    """Mark a test as one for each classifier."""
    return pytest.mark.parametrize(("name", "make"), CLASSIFIERS.items(), ids=CLASSIFIERS)(test)


def size(model, X):
    """Return the largest sum of sizes of the terms of a prediction, which rounding errors are in
    proportion to."""
    terms = np.abs(model.features.transform(X)) @ np.abs(np.atleast_2d(model.coef)).T
    of_f = (terms + np.abs(model.intercept)).max()
    return of_f * (model.predict(X).max() if model.link == "log" else 1.0)


# ONNX


def asked(model, feed, **how):
    """Return the outputs of onnxruntime, by name."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    exported = model.to_onnx(**how).SerializeToString()
    session = runtime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    return dict(
        zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True)
    )


def error_of(answer, model, X):
    """Return the largest difference between an answer and `predict`, relative to the largest
    prediction."""
    expected = model.predict(X)
    return np.abs(answer.reshape(expected.shape) - expected).max() / np.abs(expected).max()


@regressions
def test_onnx_of_float32(name, make):
    model, rows = fitted(name, make), rows_for(name).astype(np.float32)
    answer = asked(model, {"X": rows})
    assert list(answer) == ["variable"] and answer["variable"].dtype == np.float32
    assert answer["variable"].shape == (len(rows), np.size(model.intercept))
    assert error_of(answer["variable"], model, rows.astype(np.float64)) < 1e-5


@regressions
def test_onnx_of_float64(name, make):
    model, rows = fitted(name, make), rows_for(name)
    answer = asked(model, {"X": rows}, dtype="float64")["variable"]
    assert answer.dtype == np.float64
    expected = model.predict(rows)
    assert np.abs(answer.reshape(expected.shape) - expected).max() <= 1e-13 * size(model, rows)


def test_onnx_of_a_link_with_a_power(monkeypatch):
    class Cube(IdentityLink):
        def expression(self, f):
            return raised(f, 3)

    name, make = next(iter(REGRESSIONS.items()))
    model, rows = fitted(name, make), rows_for(name)
    f = np.ravel(asked(model, {"X": rows}, dtype="float64")["variable"])
    monkeypatch.setitem(LINKS, "identity", Cube())
    cubes = np.ravel(asked(model, {"X": rows}, dtype="float64")["variable"])
    np.testing.assert_allclose(cubes, f**3, rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_stays_within_the_limits(dtype):
    """They are neither met from beyond by rounding, nor by a missing number."""
    for name, (low, high) in LIMITS.items():
        model, rows = fitted(name, REGRESSIONS[name]), rows_for(name).astype(dtype)
        answer = asked(model, {"X": rows}, dtype=dtype)["variable"].astype(np.float64)
        assert low <= answer.min() and answer.max() <= high and (answer.max() - high) > -1e-6
        if not model.features.encoder.may_miss:
            continue
        gaps = np.full((2, D), np.nan, dtype)
        np.testing.assert_allclose(
            asked(model, {"X": gaps}, dtype=dtype)["variable"].squeeze(),
            model.predict(gaps),
            rtol=1e-5,
        )


@classifiers
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.slow
def test_onnx_of_classes(name, make, dtype):
    model, rows = fitted(name, make), rows_for(name).astype(dtype)
    answer = asked(model, {"X": rows}, dtype=dtype)
    rows, bound = rows.astype(np.float64), 1e-5 if dtype == "float32" else 1e-13
    label, f = answer["label"], model.decision_function(rows)
    expected = model.predict(rows)
    expected = np.char.decode(expected) if expected.dtype.kind == "S" else expected
    margin = np.abs(f) if f.ndim == 1 else np.diff(np.sort(f, axis=1)[:, -2:], axis=1).ravel()
    sure = margin > bound * np.abs(f).max()
    assert sure.mean() > 0.9 and np.array_equal(label[sure], expected[sure])
    assert label.dtype == (
        object
        if expected.dtype.kind == "U"
        else np.int64
        if expected.dtype.kind == "i"
        else expected.dtype
    )
    if model.loss in PROBABILISTIC:
        assert list(answer) == ["label", "probabilities"]
        assert np.abs(answer["probabilities"] - model.predict_proba(rows)).max() < bound
    else:
        assert list(answer) == ["label", "scores"]
        assert np.abs(answer["scores"].reshape(f.shape) - f).max() < bound * np.abs(f).max()


def test_onnx_has_standard_operators_alone():
    model = fitted("all at once", REGRESSIONS["all at once"]).to_onnx()
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 19)]


def test_onnx_of_large_columns():
    """At 1e7 a float32 has a resolution of one, and the graph does not round it again."""
    large = np.round(1e7 + 100 * RNG.standard_normal((N, 2)))
    model = srf.sparse_rf(
        large,
        np.sin((large[:, 0] - 1e7) / 50),
        features="gaussian",
        alpha=1e-3,
        n_components=300,
        rng=0,
    )
    single = large.astype(np.float32)
    assert np.array_equal(single, large)
    assert error_of(asked(model, {"X": single})["variable"], model, large) < 1e-5


def feed_of(frame, dtype):
    """Return an input for each column: numbers, or strings in which missing cells are empty."""
    strings = {name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])}
    return {
        name: frame[[name]].fillna("").to_numpy(object)
        if name in strings
        else frame[[name]].to_numpy(dtype)
        for name in frame
    }


def of_frame():
    """Fit a model whose columns are numbers, levels, and flags of missing cells."""
    model = srf.sparse_rf(FRAME, OF_FRAME, categorical=["floor"], rng=1, n_components=600)
    encoder = model.features.encoder
    assert {NUMBER, LEVEL, MISSING} <= set(encoder.kind.tolist())
    assert (np.diff(encoder.first_knot) > 0).any()
    return model


def changed_frame():
    """Return the frame with new levels, and with other cells missing."""
    frame = FRAME.copy()
    frame.loc[::7, "kind"] = "new"
    frame.loc[::11, "place"] = "nowhere"
    frame["floor"] = frame["floor"].astype(float)
    frame.loc[::13, "floor"] = np.nan
    frame.loc[::17, "floor"] = 9
    frame.loc[::19, ["size", "label"]] = np.nan
    return frame


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.slow
def test_onnx_of_a_frame(dtype):
    model, frame = fitted("frame", of_frame), changed_frame()
    frame[["size", "label", "floor"]] = (
        frame[["size", "label", "floor"]].astype(dtype).astype(float)
    )
    answer = asked(model, feed_of(frame, dtype), dtype=dtype)["variable"]
    assert error_of(answer, model, frame) < (1e-5 if dtype == "float32" else 1e-12)


def beyond_single():
    """Yield (name, column, further arguments) of columns that float32 does not hold."""
    rng = np.random.default_rng(0)
    i = rng.integers(0, 10, 400)
    for base in (2**24, 2**30, -(2**50)):
        yield f"from {base}", base + i, {}
    yield "fractions", 1e6 + i / 100, {}
    yield "two clusters", np.where(i > 1, 1e9, 0) + i / 100, {"features": srf.Rules()}
    yield "rounding", 1 + 1e-9 * i, {"features": srf.Rules()}
    yield "levels", 2**24 + 7 * i, {"categorical": ["a"]}


@pytest.mark.parametrize("how", ["default", "rules", "gaussian"])
@pytest.mark.parametrize(("name", "column", "options"), list(beyond_single()))
def test_onnx_of_columns_that_float32_does_not_hold(name, column, options, how):
    """They are inputs in float64, as times are; in one matrix of all columns there is a warning."""
    rng = np.random.default_rng(1)
    order = np.unique(column, return_inverse=True)[1]
    frame = pd.DataFrame({"a": column, "b": rng.normal(size=400)})
    y = 3.0 * (order > 3) + 0.1 * rng.normal(size=400)
    options = {
        "default": {"effort": 0.1, "verbose": False},
        "rules": {"features": srf.Rules(), "alpha": 0.01},
        "gaussian": {"features": "gaussian", "alpha": 0.01, "n_components": 100},
    }[how] | options
    model = srf.sparse_rf(frame, y, rng=0, **options)
    inputs = {each.name: each.type.tensor_type.elem_type for each in model.to_onnx().graph.input}
    if not model.features.columns_seen[0]:
        pytest.skip("no term sees the column")
    assert inputs == {"a": 11, "b": 1}  # double and float
    feed = {"a": frame[["a"]].to_numpy(np.float64), "b": frame[["b"]].to_numpy(np.float32)}
    rows = frame.assign(b=frame["b"].astype(np.float32))
    assert error_of(asked(model, feed)["variable"], model, rows) < 1e-5
    if "categorical" not in options:
        model = srf.sparse_rf(frame.to_numpy(np.float64), y, rng=0, **options)
        with pytest.warns(UserWarning, match=r"float32 does not tell all numbers apart, 0: rows"):
            model.to_onnx()
        model.to_onnx(dtype="float64")


@pytest.mark.parametrize("how", ["default", "rules"])
def test_onnx_of_columns_that_float32_holds_is_float32(how):
    """Without a warning; training rows lie on the same sides of thresholds."""
    rng = np.random.default_rng(0)
    i = rng.integers(0, 40, (400, 3))
    X = np.c_[i[:, 0] / 10, 2**24 - 100 + i[:, 1], 1e9 * rng.normal(size=400), i[:, 2] - 0.5]
    y = 3.0 * (i[:, 0] > 3) - 2.0 * (i[:, 1] > 7) + (i[:, 2] > 20) + 0.1 * rng.normal(size=400)
    options = {"effort": 0.1, "verbose": False}
    options = {"features": srf.Rules(), "alpha": 0.01} if how == "rules" else options
    model = srf.sparse_rf(X, y, rng=0, **options)
    f = asked(model, {"X": X.astype(np.float32)})["variable"].ravel()
    assert np.abs(f - model.predict(X)).max() < 1e-4


def test_onnx_of_columns_that_have_the_names_of_outputs():
    model = srf.mfga(
        FRAME[["label"]], CLASSES, loss="logistic", n_nonzero_coefs=2, alpha=1e-3, rng=0
    )
    answer = asked(model, feed_of(FRAME[["label"]], np.float32))
    assert list(answer) == ["label_", "probabilities"]


@pytest.mark.slow
def test_onnx_where_an_empty_string_is_missing():
    frame = FRAME[["place", "label"]]
    model = srf.sparse_rf(frame, OF_FRAME, rng=0, n_components=300)
    assert "missing" in " ".join(model.features.encoder.names(["place", "label"]))
    answer = asked(model, feed_of(frame, np.float64), dtype="float64")["variable"].ravel()
    assert np.allclose(answer, model.predict(frame), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("strings", [True, False])
def test_onnx_of_an_array_with_categories(strings):
    cells = np.array([SEEN[:, 0], FRAME["kind" if strings else "floor"]], object).T
    model = srf.sparse_rf(cells, OF_FRAME, categorical=[1], rng=0, n_components=300)
    feed = (
        {"x0": cells[:, :1].astype(float), "x1": cells[:, 1:]}
        if strings
        else {"X": cells.astype(float)}
    )
    assert np.allclose(
        asked(model, feed, dtype="float64")["variable"].ravel(), model.predict(cells), rtol=1e-12
    )


def test_onnx_refuses_by_the_name_of_the_column():
    levels = np.c_[np.arange(N) % 4 + 2**24, SEEN[:, 0]]
    model = srf.mfga(levels, Y, categorical=[0], n_nonzero_coefs=3, alpha=1e-3, rng=0)
    pytest.importorskip("onnx")
    with (
        pytest.warns(UserWarning, match="float32 does not tell all numbers apart, 0: "),
        pytest.raises(ValueError, match=r"X\[:, 0\] has levels that float32 does not tell apart"),
    ):
        model.to_onnx()
    assert np.allclose(
        asked(model, {"X": levels}, dtype="float64")["variable"].ravel(), model.predict(levels)
    )
    with pytest.raises(ValueError, match=r"got X\[''\]"):
        srf.mfga(pd.DataFrame({"": SEEN[:, 0]}), Y, n_nonzero_coefs=1, alpha=1e-3, rng=0).to_onnx()
    broken = np.array([["a"], ["\ud800"]], object)[CLASSES % 2]
    with pytest.raises(ValueError, match=r"X\[:, 0\] has a level that is no text in UTF-8"):
        srf.mfga(broken, Y, categorical=[0], n_nonzero_coefs=1, alpha=1e-3, rng=0).to_onnx()
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64', got 'half'"):
        model.to_onnx(dtype="half")


def test_onnx_is_written(tmp_path):
    onnx, model = pytest.importorskip("onnx"), fitted("mfga", REGRESSIONS["mfga"])
    exported = model.to_onnx(tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == exported


@pytest.mark.slow
def test_onnx_says_what_to_install():
    code = """
import sys
sys.modules["onnx"] = None
import numpy as np, sparserf as srf
model = srf.mfga(np.eye(3), [1.0, 2, 3], n_nonzero_coefs=1, rng=0)
try:
    model.to_onnx()
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'sparserf[onnx]'" in done.stdout


# C.


COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or os.name == "nt", reason="no compiler of C is there"
)
STRICT = "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wmissing-prototypes"


def compiled(model, folder, *options):
    """Compile what to_c writes, and return the library."""
    number = len(list(folder.glob("*.c")))
    source, library = folder / f"model{number}.c", folder / f"model{number}.so"
    model.to_c(source)
    subprocess.run(
        [
            COMPILER,
            *STRICT,
            *(options or ("-O1",)),
            "-fPIC",
            "-shared",
            source,
            "-o",
            library,
            "-lm",
        ],
        check=True,
    )
    return ctypes.CDLL(str(library))


def pointer(array):
    """Return a pointer to the memory of an array."""
    return array.ctypes.data_as(ctypes.c_void_p)


def of_rows(library, X, n_outputs, dtype=np.float64):
    """Return the predictions of the C library for all rows in one call."""
    X = np.ascontiguousarray(X, np.float64)
    out = np.empty((len(X), n_outputs), dtype)
    library.predict_rows(pointer(X), ctypes.c_size_t(len(X)), pointer(out))
    return out


def one_by_one(function, X, n_outputs):
    """Return what a function of the C library gives for each row, called once a row."""
    out, X = np.empty((len(X), n_outputs)), np.ascontiguousarray(X, np.float64)
    for x, f in zip(X, out, strict=True):
        function(pointer(x), pointer(f))
    return out


@needs_compiler
@regressions
def test_c_of_real_targets(name, make, tmp_path):
    model, rows = fitted(name, make), rows_for(name)
    library, n_outputs, expected = (
        compiled(model, tmp_path),
        np.size(model.intercept),
        model.predict(rows),
    )
    f = of_rows(library, rows, n_outputs)
    low, high = LIMITS.get(name, (-np.inf, np.inf))
    assert low <= f.min() and f.max() <= high
    assert np.abs(f.reshape(expected.shape) - expected).max() <= 1e-13 * size(model, rows)
    assert error_of(f, model, rows) < 1e-12
    library.predict.restype = ctypes.c_double if n_outputs == 1 else None
    if n_outputs == 1:
        assert library.predict(pointer(rows[1].copy())) == f[1, 0]
    else:
        assert np.array_equal(one_by_one(library.predict, rows[:9], n_outputs), f[:9])


@needs_compiler
@pytest.mark.parametrize("several", [False, True])
def test_rates_that_overflow_are_the_largest_number_in_all_languages(several, tmp_path):
    """As `predict` has it: e to the largest exponent."""
    model = fitted("poisson", REGRESSIONS["poisson"])
    model = replace(model, coef=1e5 * model.coef)
    if several:
        model = replace(model, coef=np.stack([model.coef, -model.coef]), intercept=np.zeros(2))
    names, n_outputs, is_large = {}, np.size(model.intercept), model.decision_function(X) > 1000
    exec(model.formula("python"), names)
    answers = (
        names["predict"](X),
        of_rows(compiled(model, tmp_path), X, n_outputs).reshape(is_large.shape),
    )
    for answer in (
        *answers,
        asked(model, {"X": X}, dtype="float64")["variable"].reshape(is_large.shape),
    ):
        np.testing.assert_allclose(answer[is_large], model.predict(X)[is_large], rtol=1e-12)
        assert is_large.any() and np.isfinite(answer).all()
    single = asked(model, {"X": X.astype(np.float32)})["variable"].reshape(is_large.shape)
    np.testing.assert_allclose(
        single[is_large], model.predict(X.astype(np.float32))[is_large], rtol=1e-5
    )
    assert np.isfinite(single).all()


@needs_compiler
@classifiers
def test_c_of_classes(name, make, tmp_path):
    model, rows = fitted(name, make), rows_for(name)
    library, n_outputs, f = (
        compiled(model, tmp_path),
        np.size(model.intercept),
        model.decision_function(rows),
    )
    place = of_rows(library, rows, 1, np.int32)[:, 0]
    assert np.array_equal(model.classes[place], model.predict(rows))
    assert library.predict(pointer(rows[3].copy())) == place[3]
    assert (
        np.abs(one_by_one(library.predict_decision, rows, n_outputs).reshape(f.shape) - f).max()
        < 1e-12 * np.abs(f).max()
    )
    if model.loss in PROBABILISTIC:
        assert (
            np.abs(
                one_by_one(library.predict_proba, rows, len(model.classes))
                - model.predict_proba(rows)
            ).max()
            < 1e-12
        )
    labels = (class_type(model.classes) * len(model.classes)).in_dll(library, "predict_classes")
    encoded = [
        label.encode() if isinstance(label, str) else label for label in model.classes.tolist()
    ]
    assert list(labels) == encoded


def class_type(classes):
    """Return the C type of labels."""
    return {"U": ctypes.c_char_p, "S": ctypes.c_char_p, "f": ctypes.c_double}.get(
        classes.dtype.kind, ctypes.c_longlong
    )


@pytest.mark.slow
@needs_compiler
def test_c_of_a_frame(tmp_path):
    """Categories are the numbers of their levels, as the comment in the file lists them; a missing
    cell is NAN."""
    model, frame = fitted("frame", of_frame), changed_frame()
    codes = model.features.encoder.table.read(frame)
    assert np.isnan(codes).any() and (codes == -1).any()
    assert error_of(of_rows(compiled(model, tmp_path), codes, 1), model, frame) < 1e-12
    text = re.sub(r"\s*\n \*\s*", " ", model.to_c())
    assert (
        'x[1] "kind", the number of its level; -1 for any other, NAN where missing: 0 "", 1 "a"'
        in text
    )
    assert '"b \\x22*\\/\\x22 \\x5c"' in text and '"ü"' in text and '59 "place 9"' in text


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    "options",
    [("-O0",), ("-O3", "-march=native"), ("-O2", "-std=gnu99", "-march=native")],
    ids=" ".join,
)
def test_c_with_any_option(options, tmp_path):
    for name in ("sparse_rf", "all at once", "thousands"):
        model, rows = fitted(name, REGRESSIONS[name]), rows_for(name)
        f = of_rows(compiled(model, tmp_path, *options), rows, 1)[:, 0]
        assert np.abs(f - model.predict(rows)).max() <= 1e-13 * size(model, rows)


@needs_compiler
def test_c_refuses_fast_math(tmp_path):
    fitted("mfga", REGRESSIONS["mfga"]).to_c(tmp_path / "model.c")
    done = subprocess.run(
        [COMPILER, "-ffast-math", "-c", "model.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "without -ffast-math" in done.stderr


@needs_compiler
@pytest.mark.parametrize("activation", ["cos", "sin", "tanh"])
def test_phases_of_any_size(activation, tmp_path):
    """Phases up to 1e6 go through a polynomial, larger ones through the C library; one that
    overflows counts as the mean, 0."""
    features = srf.RandomNeurons(activation).draw(40, 1, rng=0)
    model = srf.mfga(
        SEEN[:, :1], Y, features=features, n_nonzero_coefs=20, alpha=1e-3, rng=0, scale=None
    )
    library = compiled(model, tmp_path, "-O2")
    for power in (-9, -1, 0, 0.5, 1, 2, 4, 5, 5.9, 6.1, 8, 15):
        rows = 10.0**power * RNG.standard_normal((200, 1))
        phase = np.abs(rows * features.blocks[0].weights.T).max()
        error = np.abs(of_rows(library, rows, 1)[:, 0] - model.predict(rows)).max()
        assert error <= (1e-15 + 3e-16 * phase * (phase > 1e6)) * 10 * size(model, rows)
    huge = np.array([[1.7e308], [-1.7e308]])
    assert np.isfinite(of_rows(library, huge, 1)).all()


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("options", [("-O2",), ("-O3", "-march=native")], ids=" ".join)
def test_activations_are_those_of_many_digits(options, tmp_path):
    mpmath.mp.prec = 200
    plain = srf.mfga(
        SEEN[:, :1], Y, features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3, rng=0, scale=None
    )
    x = RNG.choice([-1, 1], 3200) * 10 ** RNG.uniform(-12, 6, 3200)
    x[:100] = np.pi / 2 * RNG.integers(-600_000, 600_000, 100)
    for name in ("cos", "sin", "tanh"):
        features = FeatureSet([NeuronBlock(name, 1.0, np.ones((1, 1)), np.zeros(1))], 1)
        one = replace(plain, features=features, coef=np.ones(1), intercept=0.0)
        z = of_rows(compiled(one, tmp_path, *options), x[:, None], 1)[:, 0]
        truth = [getattr(mpmath, name)(each) for each in x]
        error = max(
            abs(float(a - b)) / max(abs(float(a)), 1e-6) for a, b in zip(truth, z, strict=True)
        )
        assert error < 1e-15


@pytest.mark.slow
@needs_compiler
def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    page, names = Path(__file__).parents[2] / "docs" / "export.md", {}
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, page.name, "exec"), names)


def test_only_what_is_seen_is_read():
    features = srf.RandomNeurons("sin", order=2).draw(3, 100, rng=0)
    wide = RNG.standard_normal((200, 100))
    model = srf.mfga(wide, wide[:, 0], features=features, n_nonzero_coefs=2, alpha=1e-3, rng=0)
    seen = [f"x{j}" for j in np.flatnonzero(model.input_usage())]
    assert len(seen) <= 4 and set(re.findall(r"\bx\d+\b", model.to_sql())) == set(seen)


def test_views_of_every_kind(tmp_path):
    """There are views of each kind with knots and without, far out, with a unit of 0, and beyond
    all knots."""
    kind = [NUMBER] * 4 + [LEVEL, MISSING] + [NUMBER] * 4
    column, n = [0, 0, 1, 1, 4, 0, 2, 3, 3, 2], len(kind)
    sizes = [0, 0, 3, 2, 0, 0, 0, 1, 0, 0]
    knots, scores = np.array([-1.0, 0, 2, -1, 1, 0]), np.array([0.0, 5, 1, -2, 2, 7])
    encoder = ColumnEncoder(
        5,
        np.array(column),
        np.array(kind),
        np.array([0, 0, 0, 0, 1.0, 0, 0, 0, 0, 0]),
        center=np.array([1e3, 0.5, 0, 1, 0.5, 0, 0.1, 1, 0, 0]),
        unit=np.array([2.0, 0.1, 1, 3, 0.5, 1, 1, 2, 0, 1e-300]),
        reach=np.array([3.0, 2, np.inf, 1, np.inf, np.inf, 2, np.inf, 1, 5]),
        half_range=np.ones(n),
        fill=np.arange(n) / 10,
        first_knot=np.append(0, np.cumsum(sizes)),
        knots=knots,
        scores=scores,
        table=Table(None, (None,) * 4 + ((5.0, 6.0, 7.0),)),
    )
    some, y = RNG.standard_normal((50, n)), RNG.standard_normal(50)
    model = srf.mfga(
        some, y, features=srf.Linear(), n_nonzero_coefs=n, alpha=1e-3, rng=0, scale=None
    )
    model = replace(model, features=model.features.encoded(encoder))
    rows = np.stack(
        [
            RNG.normal(0, 1e3, 300),
            RNG.normal(0, 2, 300),
            RNG.integers(-1, 3, 300) * 1.0,
            RNG.normal(0, 1, 300),
            RNG.choice([5.0, 6.0, 7.0, 9.0], 300),
        ],
        axis=1,
    )
    rows[RNG.random(rows.shape) < 0.1] = np.nan
    expected = model.predict(rows)
    assert np.allclose(
        asked(model, {"X": rows}, dtype="float64")["variable"].ravel(), expected, rtol=1e-12
    )
    if COMPILER:
        assert np.allclose(
            of_rows(compiled(model, tmp_path), encoder.table.read(rows), 1)[:, 0],
            expected,
            rtol=1e-12,
        )
