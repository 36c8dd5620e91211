"""What a user does first, with what is installed: a fit, a prediction, a file."""

import sys
import tempfile
from importlib.metadata import version

import numpy as np

import sparserf as srf
from sparserf._core.rows import LEVEL, LEVELS

assert srf.__version__ == version("sparserf"), srf.__version__
rng = np.random.default_rng(0)
X = rng.random((1000, 4))
y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
model = srf.sparse_rf(X, y, features="gaussian", gamma=1.0, alpha=1e-3, n_components=500, rng=0)
assert np.mean((model.predict(X) - y) ** 2) < 0.05 * np.var(y)
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model.npz")
    assert np.array_equal(srf.load(f"{folder}/model.npz").predict(X), model.predict(X))
print(
    f"sparserf {srf.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}, "
    f"{LEVELS[LEVEL]}: {model}"
)
