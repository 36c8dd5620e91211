"""Rows and targets, and the homes that rows may have: memory, chunks, dask, and arrays of other
namespaces and devices."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

import sparserf as srf
from sparserf import rows as rows_of
from sparserf._base import arrays as _arrays

N, D = 1200, 6
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.1 * RNG.standard_normal(N)
LABELS = np.digitize(Y, [-0.6, 0.6])
WEIGHT = np.where(RNG.random(N) < 0.2, 0.0, RNG.random(N) + 0.5)
SPARSE = sp.csr_array(np.where(RNG.random((N, D)) < 0.4, 0.0, X))
NAMED = {"features": "gaussian", "gamma": 0.1, "n_components": 600, "batch_size": 200, "rng": 0}
SHORT = {"n_components": 300, "batch_size": 100, "rng": 0}


def in_chunks(X, block_rows=250):
    """Return the rows as Chunks that a function reads, block_rows at a time."""
    return srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=block_rows)


def in_partitions(X):
    """Return the rows as a dask array of unequal partitions; of a dense array one is empty."""
    if sp.issparse(X):
        parts = [
            da.from_delayed(delayed(X[a:b]), (b - a, X.shape[1]), X.dtype, meta=X[:0])
            for a, b in ((0, 400), (400, 1200))
        ]
        return da.concatenate(parts)
    return da.from_array(X, chunks=((500, 0, 300, 399, 1), X.shape[1]))


class OtherDevice:
    """Make arrays on a device other than the host: operations with host arrays, and np.asarray of
    them, are errors."""

    device = strict.Device("device1")

    def __call__(self, X):
        return strict.asarray(X, device=self.device)

    @staticmethod
    def patch(monkeypatch):
        """Tell the package which arrays are elsewhere: DLPack cannot tell the devices of
        array_api_strict apart."""
        for module in (_arrays, rows_of):
            monkeypatch.setattr(
                module, "is_on_host", lambda X: getattr(X, "device", None) != OtherDevice.device
            )
        monkeypatch.setattr(_arrays, "_from_accelerator", lambda X: np.from_dlpack(X))


HOMES = {
    "dask": in_partitions,
    "chunks": in_chunks,
    "device": OtherDevice(),
    "array API": strict.asarray,
}
