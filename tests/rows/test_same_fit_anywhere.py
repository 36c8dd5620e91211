"""Fits, predictions and errors are the same wherever the rows are: in chunks, dask, other
namespaces or on a device."""

import ast
import warnings
from functools import cached_property, partial
from pathlib import Path

import array_api_strict as strict
import cloudpickle
import dask.array as da
import numpy as np
import pytest
from dask import delayed

import sparserf as srf
from sparserf import rows as rows_of
from sparserf._base import arrays as _arrays
from sparserf.losses import LOSSES
from sparserf.rows import HostVectors, as_rows, correlation
from sparserf.rows.dask import tree_sum
from sparserf.rows.memory import MemoryRows
from sparserf.solvers.problem import Problem

from .homes import HOMES, LABELS, NAMED, SHORT, SPARSE, WEIGHT, D, N, OtherDevice, X, Y

TIMES = np.column_stack([np.exp(-Y), np.arange(N) % 3 > 0])
LEVELS = srf.losses.Quantile([0.2, 0.5, 0.9])
FITS = {
    "sparse_rf auto, chosen": lambda X: srf.sparse_rf(X, Y, n_components=2000, rng=0),
    "sparse_rf auto": lambda X: srf.sparse_rf(X, Y, alpha=0.02, **SHORT),
    "sparse_rf weighted": lambda X: srf.sparse_rf(
        X, LABELS, alpha=0.01, loss="logistic", sample_weight=WEIGHT, **NAMED
    ),
    "sparse_rf exact": lambda X: srf.sparse_rf(X, Y, alpha=0.005, exact=True, **NAMED),
    "sparse_rf bumps": lambda X: srf.sparse_rf(X, Y, alpha=0.02, features=srf.Bumps(60), rng=0),
    "sparse_rf perceptron": lambda X: srf.sparse_rf(
        X, Y, alpha=0.02, features="perceptron", **SHORT
    ),
    "sparse_rf quantiles": lambda X: srf.sparse_rf(X, Y, alpha=0.02, loss=LEVELS, **NAMED),
    "mfga quantiles": lambda X: srf.mfga(
        X, Y, n_nonzero_coefs=6, n_select=2, alpha=1e-2, loss=LEVELS, rng=0
    ),
    "drp quantiles": lambda X: srf.drp(X, Y, alpha=0.01, loss=LEVELS, rng=0),
    "sparse_rf_path": lambda X: srf.sparse_rf_path(
        X, Y > 0, n_alphas=4, alpha_min_ratio=0.05, loss="squared_hinge", **NAMED
    ),
    "harfe": lambda X: srf.harfe(X, Y, n_components=500, n_nonzero_coefs=20, alpha=1e-4, rng=0),
    "harfe order 2": lambda X: srf.harfe(
        X, Y > 0, n_components=500, n_nonzero_coefs=12, alpha=1e-4, order=2, loss="logistic", rng=0
    ),
    "harfe_path": lambda X: srf.harfe_path(X, Y, n_components=300, n_nonzero_coefs=[4, 9], rng=0),
    "mfga": lambda X: srf.mfga(X, Y, n_nonzero_coefs=10, alpha=1e-3, rng=0),
    "mfga_path": lambda X: srf.mfga_path(
        X, LABELS, n_nonzero_coefs=6, n_select=2, loss="logistic", rng=0
    ),
    "mfga best phase": lambda X: srf.mfga(
        X,
        Y,
        n_nonzero_coefs=5,
        alpha=1e-3,
        features="gaussian",
        n_components=200,
        best_phase=True,
        rng=0,
    ),
    "drp": lambda X: srf.drp(X, Y, alpha=0.01, rng=0),
    "drp weighted": lambda X: srf.drp(
        X, LABELS, alpha=0.01, loss="logistic", sample_weight=WEIGHT, rng=0
    ),
    "drp sketched": lambda X: srf.drp(X, Y, alpha=0.01, n_projections=4, rng=0),
    "drp of the paper": lambda X: srf.drp(
        X, Y, alpha=0.5, n_projections=60, accelerate=False, rng=0
    ),
    "drp_path": lambda X: srf.drp_path(X, Y > 0, alphas=[0.1, 0.01], loss="squared_hinge", rng=0),
    "multinomial sparse_rf": lambda X: srf.sparse_rf(
        X, LABELS, alpha=0.01, loss="multinomial", sample_weight=WEIGHT, exact=True, **NAMED
    ),
    "multinomial harfe": lambda X: srf.harfe(
        X, LABELS, n_components=300, n_nonzero_coefs=4, alpha=1e-4, loss="multinomial", rng=0
    ),
    "multinomial mfga_path": lambda X: srf.mfga_path(
        X, LABELS, n_nonzero_coefs=6, n_select=3, loss="multinomial", rng=0
    ),
    "multinomial drp": lambda X: srf.drp(
        X, LABELS, alpha=0.01, loss="multinomial", n_projections=4, rng=0
    ),
    "sparse_rf cox": lambda X: srf.sparse_rf(X, TIMES, alpha=0.02, loss="cox", **NAMED),
    "harfe cox": lambda X: srf.harfe(
        X, TIMES, n_components=300, n_nonzero_coefs=6, alpha=1e-3, loss="cox", rng=0
    ),
    "drp cox": lambda X: srf.drp(X, TIMES, alpha=0.01, loss="cox", rng=0),
    "ordinal sparse_rf": lambda X: srf.sparse_rf(
        X, LABELS, alpha=0.01, loss="ordinal", sample_weight=WEIGHT, **NAMED
    ),
    "ordinal mfga": lambda X: srf.mfga(
        X, LABELS, n_nonzero_coefs=6, alpha=1e-2, loss="ordinal", rng=0
    ),
    "ordinal drp": lambda X: srf.drp(X, LABELS, alpha=0.01, loss="ordinal", rng=0),
}
SOURCES = {"dense": X, "float32": X.astype(np.float32), "csr": SPARSE}
# Relative tolerances of coefficients, for fits that end within a tolerance of their optimum.
TOLERANCES = dict.fromkeys(
    (
        "sparse_rf_path",
        "drp",
        "drp weighted",
        "drp sketched",
        "drp of the paper",
        "drp_path",
        "drp cox",
    ),
    1e-6,
)
TOLERANCES |= {name: 1e-5 for name in FITS if name.startswith(("multinomial", "ordinal"))}


def each(models):
    """Return a list of one model, or the models of a path."""
    return models if isinstance(models, list) else [models]


class Sealed:
    """A row vector on which nothing can be computed."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values

    def __reduce__(self):
        raise TypeError("a row vector travels with an answer")


def travelled(answer):
    """Return a function as another process would receive it."""
    return cloudpickle.loads(cloudpickle.dumps(answer))


def opened(vectors):
    """Return the arrays inside sealed row vectors."""
    return [vector.values if isinstance(vector, Sealed) else vector for vector in vectors]


def sealed(answer):
    """Seal a row vector, or each of several."""
    return tuple(map(Sealed, answer)) if isinstance(answer, tuple) else Sealed(answer)


class SealedVectors(HostVectors):
    def put(self, values):
        return Sealed(values)

    def fetch(self, vector):
        return opened([vector])[0]

    def map(self, answer, *vectors):
        return sealed(travelled(answer)(*opened(vectors)))

    def sum(self, answer, *vectors, add=None):
        return travelled(answer)(*opened(vectors))

    def count(self, x):
        return int(np.count_nonzero(x.values))


class SealedRows(MemoryRows):
    """Rows in memory whose row vectors are sealed."""

    @cached_property
    def vectors(self):
        return SealedVectors(self.n_rows)

    def sum(self, answer, *vectors, add=None):
        return super().sum(travelled(answer), *opened(vectors))

    def map(self, answer, *vectors, axis=-1):
        part = super().map(travelled(answer), *opened(vectors))
        return part if axis == 0 else sealed(part)

    def map_and_sum(self, answer, *vectors):
        part, total = super().map_and_sum(travelled(answer), *opened(vectors))
        return sealed(part), total


@pytest.mark.parametrize("name", FITS)
@pytest.mark.slow
def test_only_losses_and_problems_compute_on_row_vectors(name, monkeypatch):
    """Algorithms pass row vectors along only: a fit whose vectors are sealed has the same bits."""
    expected = each(FITS[name](X))
    monkeypatch.setattr(rows_of, "MemoryRows", SealedRows)
    for model, of_memory in zip(each(FITS[name](X)), expected, strict=True):
        np.testing.assert_array_equal(model.coef, of_memory.coef)
        np.testing.assert_array_equal(model.intercept, of_memory.intercept)
        assert model.info == of_memory.info


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("name", FITS)
def test_the_same_fit_in_every_home(name, home, source, monkeypatch):
    """Sums by blocks round otherwise than sums of all rows, which in float32, and where draws
    follow the terms accepted before, may lead to other terms; they predict as well."""
    X = SOURCES[source]
    if source == "csr" and home not in ("chunks", "dask"):
        pytest.skip("these arrays are dense")
    expected = each(FITS[name](X))
    OtherDevice.patch(monkeypatch)
    for model, of_memory in zip(each(FITS[name](HOMES[home](X))), expected, strict=True):
        if source == "float32" or "auto" in name:
            f, of_these = of_memory.decision_function(X), model.decision_function(X)
            if "auto" in name:
                assert np.mean((of_these - Y) ** 2) < 1.5 * np.mean((f - Y) ** 2)
            else:
                assert np.mean((of_these - f) ** 2) <= 0.01 * np.var(f)
            continue
        tol, scale = TOLERANCES.get(name, 1e-8), np.abs(of_memory.coef).max(initial=0.0)
        np.testing.assert_array_equal(model.support, of_memory.support)
        np.testing.assert_allclose(model.coef, of_memory.coef, atol=tol * scale)
        np.testing.assert_allclose(model.intercept, of_memory.intercept, atol=tol * max(scale, 1))


@pytest.mark.slow
def test_nothing_outside_of_rows_looks_at_x():
    """No attribute X is read outside of rows/: algorithms see answers alone."""
    package = Path(srf.__file__).parent
    for path in package.rglob("*.py"):
        # folds are cut from what the user gives, before any fit
        if path.parent.name in ("rows", "validation"):
            continue
        nodes = ast.walk(ast.parse(path.read_text()))
        found = [
            node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr == "X"
        ]
        assert not found, f"{path.name}: {found}"


# Arrays of other namespaces and devices


@pytest.mark.parametrize("home", ["array API", "device", "dask"])
def test_answers_come_back_in_the_callers_namespace(home, monkeypatch):
    OtherDevice.patch(monkeypatch)
    there = HOMES[home](X)
    regression = srf.sparse_rf(X, Y, alpha=0.05, **NAMED)
    classifier = srf.sparse_rf(X, LABELS, alpha=0.02, loss="logistic", **NAMED)
    named = srf.sparse_rf(
        X, np.array(["low", "middle", "high"])[LABELS], alpha=0.02, loss="logistic", **NAMED
    )
    for ask in (
        regression.predict,
        regression.decision_function,
        classifier.predict,
        classifier.decision_function,
        classifier.predict_proba,
        regression.features.transform,
    ):
        answer, expected = ask(there), ask(X)
        assert type(answer) is type(there)
        if home != "dask":
            assert answer.device == there.device
            answer = np.from_dlpack(answer)
        np.testing.assert_allclose(np.asarray(answer), expected, atol=1e-12)
    assert isinstance(named.predict(there), np.ndarray) or home == "dask"


@pytest.mark.parametrize("features", ["gaussian", "perceptron"])
@pytest.mark.slow
def test_a_device_of_no_wider_numbers_than_float32(features, monkeypatch):
    """JAX has float32 alone unless it is told otherwise, and warns where it is asked for
    float64."""
    jnp = pytest.importorskip("jax.numpy")
    if jnp.asarray(Y).dtype != jnp.float32:
        pytest.skip("JAX has been told to use float64")
    for module in (_arrays, rows_of):
        monkeypatch.setattr(module, "is_on_host", lambda X: False)
    there, y = jnp.asarray(X[:300].astype(np.float32)), Y[:300] > 0
    options = {
        "features": features,
        "alpha": 0.1,
        "loss": "squared_hinge",
        "n_components": 40,
        "gamma": 0.1,
        "rng": 0,
    }
    if features == "perceptron":
        options.pop("gamma")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = srf.sparse_rf(there, y, **options)
    f = srf.sparse_rf(X[:300], y, **options).decision_function(X)
    assert np.abs(model.decision_function(X) - f).max() <= 1e-3 * np.abs(f).max()


def test_an_array_in_this_memory_is_shared(monkeypatch):
    there = strict.asarray(X)
    assert np.shares_memory(as_rows(there).array(), np.from_dlpack(there))


def test_mixed_devices_are_named(monkeypatch):
    kinds = {OtherDevice.device: (2, 0)}
    monkeypatch.setattr(
        type(strict.asarray(X)), "__dlpack_device__", lambda self: kinds.get(self.device, (1, 0))
    )
    here, there = strict.asarray(Y), strict.asarray(Y, device=OtherDevice.device)
    for bad_y, bad_weight, of_x in (
        (here, None, OtherDevice()(X)),
        (there, None, X),
        (there, None, strict.asarray(X)),
    ):
        with pytest.raises(ValueError, match=r"y must be on the device of X, .*, got one on"):
            srf.sparse_rf(of_x, bad_y, alpha=0.1, sample_weight=bad_weight)
    with pytest.raises(ValueError, match=r"sample_weight must be on the device of X, .*device1"):
        srf.mfga(X, Y, n_nonzero_coefs=2, alpha=1e-3, sample_weight=there)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda xp: xp.asarray([[1.0, float("nan")]]), ValueError, "finite"),
        (lambda xp: xp.asarray([[1.0, float("inf")]]), ValueError, "finite"),
        (lambda xp: xp.asarray([1.0, 2.0]), ValueError, "two-dimensional"),
        (lambda xp: xp.zeros((0, 3)), ValueError, "at least one row"),
        (lambda xp: xp.zeros((3, 2), dtype=xp.complex64), TypeError, "real"),
    ],
)
@pytest.mark.parametrize("device", [None, OtherDevice.device])
def test_bad_arrays_of_other_namespaces(make, error, words, device, monkeypatch):
    OtherDevice.patch(monkeypatch)
    values = make(strict)
    values = values if device is None else strict.asarray(np.from_dlpack(values), device=device)
    with pytest.raises(error, match=words):
        srf.sparse_rf(values, np.zeros(values.shape[0]), alpha=0.1, missing="raise")


def test_labels_that_the_namespace_does_not_have():
    y = np.where(Y > 0, 2**40, 2**40 + 1)
    model = srf.sparse_rf(X, y, alpha=0.05, loss="logistic", **NAMED)
    labels = model.predict(strict.asarray(X))
    np.testing.assert_array_equal(np.asarray(labels), model.predict(X))
    half = srf.sparse_rf(X, (Y > 0).astype(np.float16), alpha=0.05, loss="logistic", **NAMED)
    np.testing.assert_array_equal(np.asarray(half.predict(strict.asarray(X))), half.predict(X))


def test_labels_that_dlpack_does_not_have():
    import pyarrow as pa

    names = np.array(["low", "middle", "high"])[LABELS]
    expected = srf.sparse_rf(X, names, alpha=0.05, loss="logistic", **NAMED)
    model = srf.sparse_rf(X, pa.array(names.tolist()), alpha=0.05, loss="logistic", **NAMED)
    np.testing.assert_array_equal(model.coef, expected.coef)
    np.testing.assert_array_equal(model.classes, expected.classes)


class Unreadable:
    """An array that refuses to be read, as a tensor that is part of a graph."""

    shape, ndim = (N,), 1

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        raise BufferError("requires grad")

    def __array__(self, *how, **more):
        raise RuntimeError("detach it first")


def test_arrays_that_cannot_be_read():
    with pytest.raises(TypeError, match="could not be read: requires grad"):
        srf.sparse_rf(X, Unreadable(), alpha=0.1)


# Partitions of dask


@pytest.mark.slow
def test_dataframes_and_targets_of_dask():
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3)
    target = dd.from_pandas(pd.Series(Y), npartitions=3)
    model = srf.sparse_rf(frame, target, alpha=0.02, **NAMED)
    np.testing.assert_array_equal(model.support, srf.sparse_rf(X, Y, alpha=0.02, **NAMED).support)
    assert model.predict(frame).chunks == ((400, 400, 400),)


def test_bad_partitions_are_named():
    holed = X.copy()
    holed[777, 2] = np.inf
    with pytest.raises(
        srf.BlockError, match=r"X\[600:1200\]: partition 1: X must be finite, got inf"
    ):
        srf.sparse_rf(da.from_array(holed, chunks=(600, D)), Y, alpha=0.1)
    with pytest.raises(ValueError, match="two-dimensional"):
        srf.sparse_rf(da.from_array(Y, chunks=100), Y, alpha=0.1)
    with pytest.raises(ValueError, match="at least one row"):
        srf.sparse_rf(da.from_array(X[:0], chunks=(1, D)), Y[:0], alpha=0.1)


@pytest.mark.nightly
def test_a_worker_that_dies_changes_nothing():
    """One of the two processes of a cluster is killed in the middle of a fit."""
    import os
    import signal

    from distributed import Client, LocalCluster

    there, killed = da.from_array(X, chunks=(200, D)), []

    def kill(info):
        if info.n_iter == 1 and not killed:
            killed.append(client.submit(os.getpid, pure=False).result())
            os.kill(killed[0], signal.SIGKILL)
        return False

    expected = srf.sparse_rf(there, Y, alpha=0.01, **NAMED)
    how = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster) as client:
        model = srf.sparse_rf(there, Y, alpha=0.01, callback=kill, **NAMED)
    assert killed
    np.testing.assert_array_equal(model.coef, expected.coef)
    np.testing.assert_array_equal(model.support, expected.support)


@pytest.mark.nightly
def test_row_vectors_travel_once():
    """No graph of a fit but those of y and the weights has the size of a row vector: distributed
    would warn of it.

    Graphs that ask for a sample of rows hold their indices, at most 2¹⁴ (131 kB) however many rows
    there are."""
    import dask
    from distributed import Client, LocalCluster

    big, y = np.tile(X, (60, 1)), np.tile(Y, 60)
    how = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster), warnings.catch_warnings():
        warnings.filterwarnings("error", "Sending large graph")
        there = da.from_array(big, chunks=(18_000, D)).persist()
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "144 kB"}):
            srf.drp(there, y, alpha=0.01, rng=0)
            srf.mfga(there, y, n_nonzero_coefs=2, alpha=1e-3, n_components=50, rng=0)


def test_partitions_that_cannot_be_made():
    def broken():
        raise OSError("no such bucket")

    parts = [
        da.from_array(X[:600], chunks=(600, D)),
        da.from_delayed(delayed(broken)(), (600, D), float),
    ]
    with pytest.raises(srf.BlockError, match="could not be made: OSError: no such bucket"):
        srf.sparse_rf(da.concatenate(parts), Y, alpha=0.1)
    bad = da.concatenate(
        [
            da.from_array(X[:700], chunks=(700, D)),
            da.from_array(np.full((500, D), np.nan), chunks=(500, D)),
        ]
    )
    with pytest.raises(srf.BlockError, match=r"X\[700:1200\]: partition 1: X must be finite"):
        srf.sparse_rf(bad, Y, alpha=0.1, missing="raise")


def test_sums_of_partitions_are_added_in_pairs():
    """Each round adds neighbours, and keeps the last where their number is odd."""
    values = np.random.default_rng(0).standard_normal(45)
    for n in (1, 2, 7, 8, 9, 17, 45):
        pairs = list(values[:n])
        while len(pairs) > 1:
            pairs = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=False)] + pairs[
                len(pairs) // 2 * 2 :
            ]
        assert tree_sum([delayed(value) for value in values[:n]], np.add).compute() == pairs[0]


# Row vectors and problems on them


@pytest.mark.parametrize("home", HOMES)
def test_row_vectors_of_every_home(home, monkeypatch):
    """Operations on row vectors where they are give what NumPy gives."""
    OtherDevice.patch(monkeypatch)
    rng = np.random.default_rng(0)
    vectors = as_rows(HOMES[home](X)).vectors
    a, b = rng.standard_normal((2, 2, N))
    h, uniform = rng.random(N) * (rng.random(N) < 0.5), rng.random(N)
    A, B, H = map(vectors.put, (a, b, h))
    t = np.array([0.5, -2.0])
    p = np.minimum(1, 200 * h / h.sum())
    for answer, expected in (
        (vectors.along(A, t, B), a + t[:, None] * b),
        (vectors.along(A, 0.3, B), a + 0.3 * b),
        (vectors.between(A, 0.25, B), a + 0.25 * (b - a)),
        (vectors.minus(A, t), a - t[:, None]),
        (vectors.scaled(A, t), t[:, None] * a),
        (vectors.times(H, A), h * a),
        (vectors.larger(A, B), np.maximum(a, b)),
        (
            vectors.sampled(H, 200, vectors.put(uniform)),
            np.where(uniform < p, h / np.where(p > 0, p, 1), 0),
        ),
        (vectors.zeros(2), np.zeros((2, N))),
    ):
        np.testing.assert_allclose(vectors.fetch(answer), expected, rtol=1e-12)
    for answer, expected in (
        (vectors.total(A), a.sum(axis=1)),
        (vectors.dots(A, B), (a * b).sum(axis=1)),
        (vectors.distance(A, B), np.abs(a - b).sum()),
        (vectors.largest(A, H), (np.abs(a).max(), h.max())),
        (vectors.count(H), np.count_nonzero(h)),
    ):
        np.testing.assert_allclose(answer, expected, rtol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "smoothed_hinge", "logistic"])
@pytest.mark.parametrize("home", HOMES)
def test_problems_of_every_home(home, loss, monkeypatch):
    """Losses, dual points, curvatures, intercepts and steps are computed where the row vectors are,
    as in memory."""
    OtherDevice.patch(monkeypatch)
    y = Y if loss == "squared" else np.where(Y > 0, 1.0, -1.0)
    weight = WEIGHT / WEIGHT.mean()
    rows, here = as_rows(HOMES[home](X)), as_rows(X)
    there, plain = (
        Problem.from_arrays(each.vectors, LOSSES[loss], y, weight, 0.1, True)
        for each in (rows, here)
    )
    features, rng = srf.Fourier(gamma=0.3).draw(20, D, rng=0), np.random.default_rng(1)
    f, c = rng.standard_normal(N), rng.standard_normal(20)
    F = rows.vectors.put(f)
    for ask in (
        lambda problem, z: problem.mean_loss(z),
        lambda problem, z: problem.mean_loss_and_conjugate(z, 0.7),
        lambda problem, z: problem.mean_conjugate(problem.derivative(z), 0.7),
        lambda problem, z: problem.vectors.fetch(problem.dual_point(z)),
        lambda problem, z: problem.vectors.fetch(problem.curvature(z)),
        lambda problem, z: problem.best_intercept(z, 0.0),
        lambda problem, z: problem.intercept_response(
            float(problem.vectors.total(problem.curvature(z))), 3.0
        ),
    ):
        np.testing.assert_allclose(
            ask(there, there.margins(F, 0.3)), ask(plain, f + 0.3), rtol=1e-9, atol=1e-12
        )
    z, mean_loss, (g,) = there.evaluate_step(
        rows, features, c, F, 0.2, [partial(correlation, features)]
    )
    expected = f + here.apply(features, c)
    np.testing.assert_allclose(rows.vectors.fetch(z), expected, atol=1e-12)
    assert mean_loss == pytest.approx(plain.mean_loss(expected + 0.2))
    np.testing.assert_allclose(
        g, here.correlate(features, plain.dual_point(expected + 0.2)), atol=1e-12
    )
    assert rows.n_passes == 1
