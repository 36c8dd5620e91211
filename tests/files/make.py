"""Write a tiny file of each kind of model in the present format, and what the models predict: run
when the format changes.

    python tests/files/make.py

Files of formats that were released stay as they are: tests/model/test_file.py loads all of them.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import sparserf as srf
from sparserf.features import NeuronBlock

HERE = Path(__file__).parent
N, D = 60, 3
X = np.round(np.random.default_rng(0).uniform(-2, 2, (N, D)), 2)
Y = np.sin(2 * X[:, 0]) * X[:, 1]
FRAME = pd.DataFrame(
    {
        "a": X[:, 0],
        "b": np.where(X[:, 1] > 1, np.nan, X[:, 1]),
        "city": np.where(X[:, 2] > 0, "Rom", "Oslo"),
    }
)

DAYS = pd.to_timedelta(
    np.where(X[:, 1] > 1.5, np.nan, np.round(300 * (X[:, 0] + X[:, 1]), 1)), unit="D"
)
TIMES = pd.DataFrame(
    {"at": pd.Timestamp("2020-01-01", tz="Europe/Rome") + DAYS, "took": DAYS, "a": X[:, 2]}
)


def models():
    few = {"n_components": 40, "rng": 0}
    yield (
        "mixed",
        X,
        srf.sparse_rf(
            X, Y, features=(srf.Fourier(), srf.RandomNeurons("relu", order=2)), alpha=0.03, **few
        ),
    )
    yield (
        "three",
        X,
        srf.sparse_rf(
            X, np.digitize(Y, [-0.3, 0.3]), features="laplacian", alpha=0.03, loss="logistic", **few
        ),
    )
    yield (
        "strings",
        X,
        srf.mfga(
            X,
            np.where(Y > 0, "ja", "nein"),
            loss="squared_hinge",
            n_nonzero_coefs=4,
            alpha=1e-3,
            rng=0,
        ),
    )
    yield "chosen", X, srf.sparse_rf(X, Y, n_components=40, max_terms=6, rng=0)
    yield "frame", FRAME, srf.sparse_rf(FRAME, Y, alpha=0.03, **few)
    yield "bumps", X, srf.sparse_rf(X, Y, features=srf.Bumps(), alpha=0.01, rng=0)
    yield (
        "limited",
        X,
        srf.harfe(
            X, np.exp(Y), loss="gamma", n_nonzero_coefs=5, alpha=1e-4, lower=0.5, upper=2.0, **few
        ),
    )
    yield (
        "nonnegative",
        X,
        srf.harfe(
            X, Y, features=nonnegative(), selection="positive", n_nonzero_coefs=5, alpha=1e-4, rng=0
        ),
    )
    yield "times", TIMES, srf.sparse_rf(TIMES, Y, alpha=0.03, **few)
    yield "drp", X, srf.drp(X, Y, alpha=0.01, rng=0)
    yield "zeros", X, srf.mfga(X, Y, features=mostly_zero(), n_nonzero_coefs=20, alpha=1e-3, rng=0)


def mostly_zero():
    """Return cosines of one input each, with dense weights: they are in the file without their
    zeros."""
    weights = np.eye(D)[np.arange(30) % D] * np.linspace(0.5, 3, 30)[:, None]
    return srf.FeatureSet([NeuronBlock("cos", 1.0, weights, np.linspace(0, 3, 30))], D)


def nonnegative():
    """Return steps and linear functions whose coefficients must be at least 0."""
    drawn = srf.RandomNeurons("tanh", order=2).draw(30, D, rng=0).concat(srf.Linear().draw(None, D))
    return srf.FeatureSet([replace(block, nonnegative=True) for block in drawn.blocks], D)


def main():
    answers = {}
    for name, rows, model in models():
        number = json.loads(model.to_json())["format"]
        model.save(HERE / f"format_{number}_{name}.npz")
        answers[name] = model.decision_function(rows)[:5].tolist()
    (HERE / f"format_{number}.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
