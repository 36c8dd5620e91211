"""Models: shapes, dtypes and labels of their answers, frozen arrays, and copies that give back
every bit."""

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.features import LinearBlock, NeuronBlock
from sparserf.features.blocks.boxes import BoxBlock

from .models import KINDS, D, N, X, Y, arrays, check_same, fit, model, rows, through_file

# Answers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("n", [0, 1, 2, N])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_shapes_and_dtypes(kind, dtype, n, layout):
    m, d = model(kind), rows(kind).shape[1]
    Z = layout(X[:n, :d].astype(dtype))
    outputs = () if m.classes is None or len(m.classes) == 2 else (len(m.classes),)
    real = np.float32 if dtype == np.float32 else np.float64
    f = m.decision_function(Z)
    assert (f.shape, f.dtype) == ((n, *outputs), real)
    y = m.predict(Z)
    assert (y.shape, y.dtype) == ((n,), real if m.classes is None else m.classes.dtype)
    if m.loss == "logistic":
        p = m.predict_proba(Z)
        assert (p.shape, p.dtype) == ((n, len(m.classes)), real)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)
        assert np.all((p >= 0) & (p <= 1))


NORMAL = np.random.default_rng(3).standard_normal((300, D))
WILD = np.where(np.random.default_rng(4).random(NORMAL.shape) < 0.1, np.nan, NORMAL**5)
F = np.sin(2 * NORMAL[:, 0]) + NORMAL[:, 1] * np.tanh(NORMAL[:, 2])
NINE = np.digitize(F, np.quantile(F, np.arange(1, 9) / 9))
DEFAULT = {"y": F, "features": "auto", "alpha": None, "n_components": 300}
# Features of the default see encodings: numbers in robust units, and whether a cell is missing.
OF_VIEWS = {
    "default": DEFAULT,
    "default of two": {**DEFAULT, "y": F > 0, "loss": "logistic"},
    "default of nine": {**DEFAULT, "y": NINE, "loss": "logistic"},
    "default of numbers": {**DEFAULT, "X": NORMAL},
    "default of a frame": {**DEFAULT, "X": pd.DataFrame(WILD, columns=list("abcd"))},
}


@pytest.mark.parametrize("kind", [*KINDS, *OF_VIEWS, "harfe"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_of_a_row_do_not_depend_on_the_others(kind, dtype):
    if kind in OF_VIEWS:
        how = {"X": WILD, **OF_VIEWS[kind]}
        m, Z = fit(**how), np.asarray(how["X"])
        assert m.features.encoder is not None
    else:
        m = (
            srf.harfe(X, Y, n_components=200, n_nonzero_coefs=20, alpha=1e-4, rng=0)
            if kind == "harfe"
            else model(kind)
        )
        Z = X if kind == "harfe" else rows(kind)
    Z = Z.astype(dtype)
    for ask in (
        m.predict,
        m.decision_function,
        *([m.predict_proba] if m.loss == "logistic" else []),
    ):
        whole = ask(Z)
        for n in (1, 3):
            some = np.concatenate([ask(Z[i : i + n]) for i in range(0, 60, n)])
            assert some.dtype == whole.dtype and some.tobytes() == whole[:60].tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_answer_is_the_formula(kind):
    m, Z = model(kind), rows(kind)
    phi = m.features.transform(Z).astype(np.float64)
    f = phi @ m.coef.T + m.intercept
    np.testing.assert_allclose(m.decision_function(Z), f, rtol=1e-4, atol=1e-5)
    if m.classes is None:
        assert np.array_equal(m.predict(Z), m.decision_function(Z))
    else:
        best = (
            (m.decision_function(Z) > 0) * 1
            if f.ndim == 1
            else m.decision_function(Z).argmax(axis=1)
        )
        assert np.array_equal(m.predict(Z), m.classes[best])


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        [-1, 1],
        [7, 3],
        [0.5, -2.5],
        [True, False],
        ["b", "a"],
        ["", "a" * 100],
        [b"x", b"y"],
        ["é", "\U0001f600"],
        [2**63 - 1, -(2**63)],
        [2**64 - 1, 0],
        [3, 1, 2],
        ["c", "a", "b"],
        [1.5, 0.5, -0.5, 9.0],
        np.array([1, 0], "?"),
        np.array([3, 1, 2], "u1"),
        np.array([3, 1], ">i4"),
        np.array([1, 2], "f2"),
        np.array(["x", "y"], object),
        np.array([1, 2], object),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_labels_of_any_kind(labels, loss, tmp_path):
    labels = np.asarray(labels)
    y = labels[np.arange(N) % len(labels)]
    m = fit(X=np.arange(N)[:, None] % len(labels), y=y, loss=loss, gamma=1.0, alpha=1e-3)
    assert np.array_equal(m.classes, np.unique(labels))
    assert np.array_equal(m.predict(np.arange(N)[:, None] % len(labels)), y)
    assert coef_and_labels(
        fit(X=np.arange(N)[:, None] % len(labels), y=y.tolist(), loss=loss, gamma=1.0, alpha=1e-3)
    ) == coef_and_labels(m)
    m.save(tmp_path / "m")
    check_same(m, srf.load(tmp_path / "m"), np.zeros((2, 1)))


def coef_and_labels(m):
    """Return the bytes of the coefficients, and the labels."""
    return m.coef.tobytes(), m.classes.tolist()


@pytest.mark.slow
def test_many_classes():
    y = np.repeat(np.arange(40), 2)
    m = fit(y=y, loss="logistic", alpha=0.005)
    assert m.predict_proba(X).shape == (N, 40)
    assert m.coef.shape == (40, len(m.features))
    np.testing.assert_allclose(m.predict_proba(X).sum(axis=1), 1)


@pytest.mark.every_case
@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].get("loss") != "logistic"])
def test_no_probabilities_from_other_losses(kind):
    with pytest.raises(ValueError, match="logistic"):
        model(kind).predict_proba(rows(kind))


def test_probabilities_far_out():
    """Margins that overflow exp still give probabilities that sum to 1."""
    base = model("zero terms of three")
    for intercept in ([-1e5] * 3, [1e5, 1e5, -1e5], [-800.0, -801.0, -1e300], [0.0] * 3):
        m = dataclasses.replace(base, intercept=np.array(intercept))
        for Z in (X, X.astype(np.float32)):
            p = (
                m.predict_proba(Z)
                if max(np.abs(intercept)) < 1e30 or Z.dtype == np.float64
                else np.full((1, 3), 1 / 3)
            )
            np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("ask", ["predict", "decision_function", "predict_proba"])
def test_workers(ask):
    m = model("three")
    for workers in (2, 3, -1):
        assert np.array_equal(getattr(m, ask)(X, workers=workers), getattr(m, ask)(X))
    for workers in (0, -2, 1.5, True, None, "2"):
        with pytest.raises((ValueError, TypeError), match="workers"):
            getattr(m, ask)(X, workers=workers)


@pytest.mark.parametrize("kind", KINDS)
def test_input_usage(kind):
    usage = model(kind).input_usage()
    assert usage.shape == (rows(kind).shape[1],)
    assert np.all((usage >= 0) & (usage <= 1))


@pytest.mark.parametrize("kind", KINDS)
def test_support_ascends_in_the_dictionary(kind):
    m = model(kind)
    assert m.support.dtype == np.int64
    assert np.all(np.diff(m.support) > 0)
    assert m.info.n_nonzero == len(m.support) == len(m.features) == m.coef.shape[-1]
    assert np.all(np.any(np.atleast_2d(m.coef) != 0, axis=0))


# Frozen, and copies


def check_frozen(m):
    """Check that no field, array or attribute of a model can be changed."""
    for field in dataclasses.fields(m):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(m, field.name, None)
    for array in arrays(m):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = array
    with pytest.raises((AttributeError, TypeError)):
        m.n_features_in = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.info.alpha = 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", ["itself", "pickle", "deepcopy", "copy", "file"])
def test_frozen(kind, copied, tmp_path):
    check_frozen(COPIES[copied](model(kind), tmp_path / "m.npz"))


COPIES = {
    "itself": lambda m, path: m,
    "pickle": lambda m, path: pickle.loads(pickle.dumps(m)),
    "old pickle": lambda m, path: pickle.loads(pickle.dumps(m, protocol=2)),
    "used pickle": lambda m, path: [
        m.predict(np.zeros((1, m.n_features_in))),
        pickle.loads(pickle.dumps(m)),
    ][1],
    "deepcopy": lambda m, path: copy.deepcopy(m),
    "copy": lambda m, path: copy.copy(m),
    "file": through_file,
    "file of a file": lambda m, path: through_file(through_file(m, path), path),
}


@pytest.mark.parametrize("kind", [*KINDS, "multinomial", "outputs"])
@pytest.mark.parametrize("copied", COPIES)
def test_copies_are_equal_to_the_bit(kind, copied, tmp_path):
    check_same(
        model(kind),
        COPIES[copied](model(kind), tmp_path / "m.npz"),
        X[:, : model(kind).n_features_in],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_used_model_pickles_small(kind):
    m = model(kind)
    before = len(pickle.dumps(copy.deepcopy(m)))
    m.predict(rows(kind))
    m.predict(X[:, : m.n_features_in].astype(np.float32))
    assert len(pickle.dumps(m)) <= before


@pytest.mark.parametrize("kind", KINDS)
def test_few_blocks(kind):
    """Features of one map are one block: each block is padded to a panel of 32 features."""
    several = {
        "mixed": 4,
        "mixed, in robust units": 4,
        "three mixed": 4,
        "products": 3,
        "products of csr": 3,
        "interleaved": 3,
        "three interleaved": 3,
        "bumps": 2,
        "bumps of csr": 2,
    }
    assert len(model(kind).features.blocks) <= several.get(kind, 1)
    assert "interleaved" not in kind or model(kind).features.order is not None


@pytest.mark.parametrize("kind", KINDS)
def test_repr(kind):
    text = repr(model(kind))
    assert len(text) < 100
    assert f"{len(model(kind).features)} terms" in text
    assert "regression" in text or "classes" in text
    assert repr(model(kind).features)


# How large they are


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_is_in_the_file(kind, tmp_path):
    """The numbers that are counted are in the file, the coefficients that are not 0 among them; no
    copy has more, and a part of the terms no more."""
    m = model(kind)
    n_coefs = np.count_nonzero(m.coef) + np.size(m.intercept)
    again = through_file(m, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        in_file = sum(file[name].size for name in file.files if name not in ("meta", "support"))
    assert n_coefs + len(m.features) <= m.size <= in_file
    assert again.size == m.size == pickle.loads(pickle.dumps(m)).size
    assert f"{m.size} numbers" in repr(m) and f"{m.size:,} numbers" in str(m.summary())
    assert f"{m.size:,} numbers" in m._repr_html_()
    if len(m.features):
        first = np.arange(len(m.features) // 2)
        half = dataclasses.replace(
            m,
            coef=m.coef[..., first],
            support=m.support[first],
            features=m.features.take(first),
        )
        assert half.size < m.size


def of_features(*blocks, encoder=None):
    """Return a model of blocks of features of four columns, with coefficients of 2, 3, ..."""
    features = srf.FeatureSet(list(blocks), D, None, encoder)
    n, info = len(features), srf.FitInfo(1, True, (0.0,), 0.0, 1, 1, 0.1)
    return srf.SparseModel(
        np.arange(2.0, n + 2), 0.5, np.arange(n), features, "squared", None, info
    )


def test_what_the_size_counts():
    """A rule is the columns and thresholds of its conditions, a number where it holds, and its
    coefficient; a linear function a number for each column that it sees."""
    inf, two = np.inf, np.array([[0, 3], [1, 0]], np.int32)
    low, high = np.array([[0.0, -inf], [1.5, -inf]]), np.array([[2.0, 7.0], [inf, inf]])
    rules = BoxBlock(1.0, two, low, high, np.array([1.0, 2.5]))
    # coefficients, intercept; columns 0, 3 and 1; thresholds 0, 2, 7 and 1.5; one height
    assert of_features(rules).size == 2 + 1 + 3 + 4 + 1
    columns = LinearBlock(1.0, np.ones((3, 1)), np.array([[0], [1], [3]], np.int32))
    assert of_features(columns).size == 3 + 1 + 3
    dense = LinearBlock(1.0, np.array([[0.5, 0.0, 2.0, -3.0]]))
    assert of_features(dense).size == 1 + 1 + 3
    cosine = NeuronBlock("cos", 1.0, np.array([[0.5, 0.0, 2.0, -3.0]]), np.array([0.7]))
    assert of_features(cosine).size == 1 + 1 + 3 + 1
    encoder = srf.drp(X, Y, alpha=0.1, scale="robust", rng=0).features.encoder
    of_encodings = of_features(dense, encoder=encoder).size - of_features(dense).size
    # of each of three columns: its index, center, unit and reach
    assert of_encodings == 3 * 4 and np.isfinite(encoder.reach).all()
    limited = dataclasses.replace(of_features(dense), lower=-1.0)
    assert limited.size == of_features(dense).size + 1
