"""How much faster the kernels are than what users have otherwise: python tests/speed_ratios.py

Each ratio must hold in 3 of 5 runs, on one thread. A run takes the least time of some calls of ours
and of theirs in turns. These are no tests of pytest, which must pass on every machine: beside other
work that keeps the memory busy, a ratio may fail.
"""

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

import sparserf as srf
from sparserf._core.descent import descend
from sparserf.rows import as_rows

RNG = np.random.default_rng(0)


def cosines():
    """Return ours and theirs: values of 512 cosines of one input."""
    X = RNG.uniform(-10, 10, (4096, 1))
    features = srf.Fourier("gaussian", gamma=0.5).draw(512, 1, rng=0)
    z = features.transform(X)
    return lambda: features.transform(X), lambda: np.cos(z)


def epochs(p=300, n_epochs=200):
    """Return ours and theirs: epochs of coordinate descent on a Gram matrix of columns with much in
    common, too few to reach the optimum."""
    A = RNG.standard_normal((2000, p)) + RNG.standard_normal((2000, 1))
    H, y = np.ascontiguousarray(A.T @ A / len(A)), A @ RNG.standard_normal(p)
    theirs = Lasso(
        1e-4, fit_intercept=False, precompute=len(A) * H, max_iter=n_epochs, tol=0.0, copy_X=False
    )
    A, g = np.asfortranarray(A), -A.T @ y / len(A)
    return lambda: descend(H, np.zeros(p), g.copy(), 1e-4, n_epochs), lambda: theirs.fit(A, y)


def sparse_features(d=100, q=10):
    """Return ours and theirs: correlations of neurons of q inputs, and of the same with their
    weights made dense."""
    X, v = RNG.standard_normal((4096, d)), RNG.standard_normal(4096)
    features = srf.RandomNeurons("cos", order=q).draw(512, d, rng=0)
    [block], W = features.blocks, np.zeros((512, d))
    np.put_along_axis(W, block.inputs, block.weights, axis=1)
    return lambda: as_rows(X).correlate(features, v), lambda: v @ np.cos(X @ W.T + block.offset)


def sparse_rows(d=1000, q=20):
    """Return ours and theirs: correlations of cosines with rows of about q entries out of d, and
    with the same rows made dense."""
    X = sp.random_array((4096, d), density=q / d, rng=RNG, format="csr")
    features, v = (
        srf.Fourier("gaussian", gamma=1 / d).draw(512, d, rng=0),
        RNG.standard_normal(4096),
    )
    [block] = features.blocks
    return lambda: as_rows(X).correlate(
        features, v
    ), lambda: v @ np.cos(X.toarray() @ block.weights.T + block.offset)


RATIOS = {
    "values of np.cos": (cosines, 3),
    "epochs of Lasso": (epochs, 1 / 1.3),
    "dense weights, of which 10 of 100 are not zero,": (sparse_features, 5),
    "rows made dense, of which 20 of 1,000 entries are not zero,": (sparse_rows, 5),
}


def seconds_of(do):
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


def ratio(ours, theirs, calls=5):
    """Return their least seconds divided by ours."""
    seconds = np.array([(seconds_of(ours), seconds_of(theirs)) for _ in range(calls)]).min(axis=0)
    return seconds[1] / seconds[0]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    good = 0
    with threadpool_limits(1):
        for name, (pair, bound) in RATIOS.items():
            ratios = sorted(ratio(*pair()) for _ in range(5))
            good += ratios[2] >= bound
            times = ", ".join(f"{each:.1f}" for each in ratios)
            print(
                f"figures of speed: {name} take {times} times our seconds, at least {bound:.2f} in "
                "3 of 5 runs"
            )
    print(f"{good} passed")
    sys.exit(int(good < len(RATIOS)))
