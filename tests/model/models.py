"""Small models of every kind, each fitted once, and what two copies of one model must have in
common."""

import functools

import numpy as np
import pandas as pd
import scipy.sparse as sp

import sparserf as srf
from sparserf.features import BumpBlock

N, D = 80, 4
X = np.random.default_rng(0).uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(1).standard_normal(N)
TWO = Y > 0
THREE = np.digitize(Y, [-0.5, 0.5])


def fit(X=X, y=Y, alpha=0.01, n_components=100, rng=0, **k):
    """Fit by the algorithm that the options belong to: mfga, drp, or else sparse_rf."""
    if "n_nonzero_coefs" in k:
        return srf.mfga(X, y, alpha=alpha, n_components=n_components, rng=rng, **k)
    if "n_projections" in k:
        return srf.drp(X, y, alpha=alpha, rng=rng, **k)
    return srf.sparse_rf(
        X, y, alpha=alpha, n_components=n_components, rng=rng, **{"features": "gaussian", **k}
    )


MIXED = (srf.Fourier(), srf.Linear(), srf.RandomNeurons("relu"), srf.RandomNeurons("tanh", order=3))
PRODUCTS = {
    "features": (srf.Taylor(2, 0.1), srf.Linear(), srf.Fourier()),
    "scale": None,
    "nu": (20, 1, 1),
    "n_nonzero_coefs": 20,
}
INTERLEAVED = srf.Taylor(3, 0.1).draw(None, D).scaled(4).concat(srf.Linear().draw(None, D))
INTERLEAVED = INTERLEAVED.concat(srf.Fourier(gamma=0.3).draw(40, D, 0))
INTERLEAVED = INTERLEAVED.take(np.random.default_rng(0).permutation(len(INTERLEAVED)))
BUMP_CENTERS = np.random.default_rng(3).uniform(-2, 2, (20, 2))
BUMP_INPUTS = np.tile(np.array([[1, 0], [1, 3]], np.int32), (10, 1))
BUMPS = srf.FeatureSet(
    [BumpBlock(2.0, np.full((20, 2), 1.5), BUMP_CENTERS, BUMP_INPUTS)], D
).concat(srf.Bumps(X[:20], 0.3).draw(None, D))
KINDS = {
    "fourier": {},
    "mixed": {"features": MIXED, "scale": None, "alpha": 0.003},
    "q-sparse": {"features": srf.RandomNeurons(order=2), "scale": None},
    "perceptron": {"features": "perceptron"},
    "linear": {"features": srf.Linear(), "scale": None},
    "rules": {"features": srf.Rules()},
    "fixed": {"features": srf.Fourier(gamma=1.0).draw(50, D, rng=0)},
    "no intercept": {"fit_intercept": False},
    "logistic": {"y": TWO, "loss": "logistic"},
    "strings": {"y": np.where(TWO, "ja", "nein \U0001f600"), "loss": "squared_hinge"},
    "three": {"y": THREE, "loss": "logistic"},
    "three mixed": {"y": THREE, "loss": "squared_hinge", "features": MIXED},
    "zero terms": {"alpha": 10.0, "scale": None},
    "zero terms of two": {"y": TWO, "alpha": 10.0, "loss": "logistic"},
    "zero terms of three": {"y": THREE, "alpha": 10.0, "loss": "logistic"},
    "csr": {"X": sp.csr_array(X)},
    "float32": {"X": X.astype(np.float32)},
    "one input": {"X": X[:, :1]},
    "drp": {"n_projections": 3},
    "drp of three": {"y": THREE, "loss": "smoothed_hinge", "n_projections": None},
    "products": PRODUCTS,
    "interleaved": {"features": INTERLEAVED, "n_nonzero_coefs": 30},
    "three interleaved": {
        "y": THREE,
        "loss": "logistic",
        "features": INTERLEAVED,
        "n_nonzero_coefs": 12,
    },
    "products alone": {
        "features": srf.Taylor(5, include_squares=False),
        "scale": None,
        "alpha": 1e-3,
    },
    "mixed, in robust units": {"features": MIXED, "alpha": 0.003},
    "bumps": {"features": BUMPS, "alpha": 0.003},
    "bumps of csr": {"X": sp.csr_array(X.astype(np.float32)), "features": BUMPS, "alpha": 0.003},
    "products of csr": {"X": sp.csr_array(X.astype(np.float32)), **PRODUCTS},
}

HOLES = np.where(np.random.default_rng(2).random((N, 2)) < 0.2, np.nan, X[:, :2])
FRAME = pd.DataFrame(
    {"größe": HOLES[:, 0], "b": HOLES[:, 1], "city": THREE, "is_open": TWO}
).astype({"city": str})
# Models that take data frames alone.
OF_FRAMES = {
    "frame": {"X": FRAME, "features": MIXED, "alpha": 0.003},
    "codes": {"X": FRAME[["b", "city", "is_open"]], "categorical": ["is_open"]},
}
# Models that are not their terms alone.
OTHERS = {
    "limited": {"lower": -0.5, "upper": 0.25},
    "limited counts": {"y": np.exp(Y), "loss": "poisson", "lower": 0.5, "upper": 2.0},
    "multinomial": {"y": np.array(["a", "b", "c"])[THREE], "loss": "multinomial"},
    "outputs": {"y": np.column_stack([Y, X[:, 0]]), "n_nonzero_coefs": 12},
}


@functools.cache
def model(kind):
    """Return the model of a kind, fitted once."""
    return fit(**(KINDS | OF_FRAMES | OTHERS)[kind])


def rows(kind):
    """Return the rows that a model of a kind was fitted to."""
    return KINDS[kind].get("X", X)


def arrays(model):
    """Return all arrays of a model and of its features."""
    every = [model.coef, model.intercept, model.support, model.classes]
    every += [array for block in model.features.blocks for array in block.arrays.values()]
    every += [model.features.order]
    return [array for array in every if isinstance(array, np.ndarray)]


def check_same(a, b, X):
    """Check that two models have the same bits, the same information, and the same answers."""
    assert [(x.dtype, x.shape, x.tobytes()) for x in arrays(a)] == [
        (x.dtype, x.shape, x.tobytes()) for x in arrays(b)
    ]
    assert [block.kind for block in a.features.blocks] == [
        block.kind for block in b.features.blocks
    ]
    assert (a.loss, a.info, a.n_features_in, repr(a)) == (b.loss, b.info, b.n_features_in, repr(b))
    assert (a.lower, a.upper, a.ranges) == (b.lower, b.upper, b.ranges)
    assert type(a.intercept) is type(b.intercept)
    for Z in (X, X.astype(np.float32)):
        assert a.decision_function(Z).tobytes() == b.decision_function(Z).tobytes()
        assert np.array_equal(a.predict(Z), b.predict(Z))


def through_file(m, path):
    """Save a model, and load it."""
    m.save(path)
    return srf.load(path)
