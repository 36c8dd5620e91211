"""Models of every kind of features, loss and input, fitted once for the tests that read them."""

import numpy as np
import pandas as pd

import sparserf as srf
from sparserf.features import BumpBlock

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4))
X[:, 3] += X[:, 0]
X[:5] *= 9  # outliers
Y = np.sin(2 * X[:, 0]) * X[:, 1] + (X[:, 2] > 0) * X[:, 3]
TIMES = np.column_stack([np.exp(-Y), np.arange(400) % 3 > 0])  # and whether an event was seen
FEW = {"n_components": 300, "rng": 0}


def bumps(n_inputs, n=60):
    """Return n bumps of all inputs, some of weight 0, and n bumps of two inputs."""
    rng = np.random.default_rng(1)
    weights = 2 / n_inputs * rng.standard_normal((n, n_inputs)) * (rng.random((n, n_inputs)) < 0.8)
    dense = BumpBlock(2.0, weights, rng.standard_normal((n, n_inputs)))
    inputs = rng.random((n, n_inputs)).argsort(axis=1)[:, :2].astype(np.int32)
    sparse = BumpBlock(0.5, 1 / rng.uniform(0.3, 3, (n, 2)), rng.standard_normal((n, 2)), inputs)
    return srf.FeatureSet([dense, sparse], n_inputs)


FITS = {
    "auto": lambda: srf.sparse_rf(X, Y, n_components=500, effort=0.1, rng=0),
    "auto of an alpha": lambda: srf.sparse_rf(X, Y, alpha=0.03, **FEW),
    "gaussian": lambda: srf.sparse_rf(X, Y, features="gaussian", alpha=0.03, **FEW),
    "steps": lambda: srf.sparse_rf(X, Y, features="perceptron", alpha=0.03, **FEW),
    "tanh": lambda: srf.mfga(
        X, Y, features=srf.RandomNeurons("tanh", 2), n_nonzero_coefs=10, alpha=1e-3, **FEW
    ),
    "relu": lambda: srf.mfga(
        X, Y, features=srf.RandomNeurons("relu", 3), n_nonzero_coefs=10, alpha=1e-3, **FEW
    ),
    "sin": lambda: srf.harfe(X, Y, activation="sin", n_nonzero_coefs=10, alpha=1e-4, **FEW),
    "products": lambda: srf.mfga(
        X, Y, features=(srf.Taylor(2), srf.Linear()), n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "cubes": lambda: srf.mfga(
        X, Y, features=srf.Taylor(3, 0.1), n_nonzero_coefs=10, alpha=1e-3, rng=0
    ),
    "bumps": lambda: srf.sparse_rf(X, Y, features=bumps(4), alpha=0.01, rng=0),
    "rules": lambda: srf.sparse_rf(X, Y, features=srf.Rules(), alpha=0.03, **FEW),
    "linear": lambda: srf.drp(X, Y, alpha=0.01, rng=0),
    "two classes": lambda: srf.sparse_rf(
        X, np.where(Y > 0, "a", "b'"), loss="logistic", alpha=0.03, **FEW
    ),
    "multinomial": lambda: srf.sparse_rf(
        X, np.digitize(Y, [-1, 1]), loss="multinomial", alpha=0.03, **FEW
    ),
    "ordered classes": lambda: srf.sparse_rf(
        X, np.digitize(Y, [-1, 0.5, 1]), loss="ordinal", alpha=0.03, **FEW
    ),
    "three classes": lambda: srf.sparse_rf(
        X, np.digitize(Y, [-1, 1]), loss="logistic", alpha=0.03, **FEW
    ),
    "quantiles": lambda: srf.sparse_rf(
        X, Y, loss=srf.losses.Quantile([0.45, 0.5, 0.55]), alpha=0.03, lower=-3, **FEW
    ),
    "counts": lambda: srf.sparse_rf(X, np.exp(Y), loss="poisson", alpha=0.03, **FEW),
    "hazards": lambda: srf.sparse_rf(X, TIMES, loss="cox", alpha=0.03, **FEW),
    "no term": lambda: srf.sparse_rf(X, Y, alpha=100.0, **FEW),
}


class Models(dict):
    """Models by name, each fitted when it is first asked for."""

    def __missing__(self, name):
        self[name] = FITS[name]()
        return self[name]


def frame(n=500, seed=0):
    """Return a data frame and a target: numbers with gaps and heavy tails, few levels and many,
    booleans, names to be quoted."""
    rng = np.random.default_rng(seed)
    numbers = np.exp(rng.standard_normal((n, 3)))
    numbers[rng.random((n, 3)) < 0.1] = np.nan
    data = pd.DataFrame(numbers, columns=["age", "he'ight", 'w"{u}%s'])
    data["c o"] = rng.choice(["a", "b'", '{c}"'], n)
    data.loc[3:9, "c o"] = None
    data["many"] = rng.integers(0, 60, n)
    data["flag"] = rng.random(n) > 0.5
    y = (
        3 * np.sin(2 * np.nan_to_num(np.log(numbers[:, 0]), nan=1.0))
        + (data["c o"] == "a")
        + 0.5 * (data["many"] > 30)
    )
    return data, y.to_numpy(float)


def model_of_frame():
    """Return a model that sees columns as they are, as levels, as means of levels, and whether
    cells are missing; and its frame."""
    data, y = frame()
    model = srf.sparse_rf(data, y, categorical=["many"], effort=0.1, rng=0)
    encoder = model.features.encoder
    assert len(np.unique(encoder.kind)) >= 3 and np.diff(encoder.first_knot).max() > 60
    return model, data
