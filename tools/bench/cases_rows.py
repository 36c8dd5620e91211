"""The cases of where rows live: the same fit from disk, from another namespace and in dask partitions, beside memory."""

import atexit
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from case import CASES, WORKERS, Case

import sparserf as srf


def additive(X):
    return np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + np.cos(X[:, 3] + X[:, 4])


def on_disk(n, d):
    """(path of a float32 matrix, y); the file goes with the process."""
    path = Path(tempfile.mkdtemp()) / "X.npy"
    atexit.register(lambda: (path.unlink(), path.parent.rmdir()))
    X, y, rng = np.lib.format.open_memmap(path, "w+", np.float32, (n, d)), np.empty(n), np.random.default_rng(0)
    for start in range(0, n, 50_000):
        some = slice(start, min(start + 50_000, n))
        X[some] = rng.standard_normal((some.stop - start, d), np.float32)
        y[some] = additive(X[some]) + 0.5 * rng.standard_normal(some.stop - start)
    X.flush()
    return path, y


def fit(X, y):
    """2,000 sines of two inputs each."""
    how = {"features": srf.RandomNeurons("sin", order=2), "alpha": 0.002, "n_components": 2000, "batch_size": 2000, "rng": 0}
    return srf.sparse_rf(X, y, workers=WORKERS, **how)


def from_disk(data):
    path, y = data
    return fit(srf.Chunks(np.load(path, mmap_mode="r")), y)


def from_memory(data):
    path, y = data
    return fit(np.load(path), y)


def describe(data, model):
    return {"terms": len(model.features), "objective": model.info.objective[-1]}


for gigabytes, n in ((2, 2_000_000), (20, 20_000_000)):
    contenders = {"Chunks of np.memmap": from_disk}
    if gigabytes < 10:
        contenders["ndarray, its reading counted"] = from_memory
    CASES[f"rows-disk-{gigabytes}"] = Case(
        f"{n:,} × 250 in float32 on disk ({gigabytes} GB), 2,000 sines of two inputs each, Algorithm 1. Peak memory includes "
        f"vectors of 8 bytes a row, {8 * n / 1e6:.0f} MB each.",
        partial(on_disk, n, 250), contenders, describe, repeat=1, longest=1200,
    )  # fmt: skip


def wide(n, d):
    X = np.random.default_rng(0).standard_normal((n, d), np.float32)
    return X, additive(X)


def fit_gaussian(X, y):
    how = {"features": "gaussian", "gamma": 0.01, "alpha": 0.02, "n_components": 2000, "batch_size": 2000, "rng": 0}
    return srf.sparse_rf(X, y, workers=WORKERS, **how)


def on_cluster(data):
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    X, y = data
    how = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**how) as cluster, Client(cluster):
        there = da.from_array(X, chunks=(len(X) // 8, X.shape[1])).persist()
        wait(there)
        start = time.perf_counter()
        return fit_gaussian(there, y), time.perf_counter() - start


def describe_on_cluster(data, result):
    model, alone = result if isinstance(result, tuple) else (result, None)
    return describe(data, model) | ({"seconds of the fit alone": alone} if alone else {})


CASES["rows-dask"] = Case(
    "2,000,000 × 50 in float32, 2,000 Gaussian features, Algorithm 1: on two worker processes of a thread, their start and the "
    "sending of X counted, and on two threads in memory.",
    partial(wide, 2_000_000, 50),
    {"dask, 2 workers": on_cluster, "ndarray, workers=2": lambda data: fit_gaussian(*data)},
    describe_on_cluster, repeat=1,
)  # fmt: skip


def as_jax(data):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax.numpy as jnp

    X, y = data
    return fit_gaussian(jnp.asarray(X), y)


CASES["rows-array-api"] = Case(
    "200,000 × 50 in float32, 2,000 Gaussian features, Algorithm 1: of an array of JAX in host memory, its making counted, and "
    "of NumPy's.",
    partial(wide, 200_000, 50),
    {"jax array": as_jax, "ndarray": lambda data: fit_gaussian(*data)},
    describe,
)
