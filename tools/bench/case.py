"""What a case is: data, contenders (ours first) and what to say of a result beside its seconds and memory."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import sparserf as srf
from sparserf.features import NeuronBlock

WORKERS = 2


@dataclass
class Case:
    about: str
    load: callable
    contenders: dict
    describe: callable = lambda data, result: {}
    repeat: int = 3
    longest: int = 400  # seconds of a contender, its data and all its runs included


CASES = {}


def sampler(d, n_components, gamma, seed=0):
    """scikit-learn's features, and the same ones as a FeatureSet."""
    from sklearn.kernel_approximation import RBFSampler

    theirs = RBFSampler(gamma=gamma, n_components=n_components, random_state=seed).fit(np.zeros((1, d)))
    block = NeuronBlock("cos", float(np.sqrt(2)), theirs.random_weights_.T.copy(), theirs.random_offset_.copy())
    return theirs, srf.FeatureSet([block], d)


def data_set(name):
    folder = os.environ.get("SPARSERF_DATA")
    path = Path(folder or "", f"{name}.npz")
    if not folder or not path.exists():
        raise SystemExit(f"needs {name}.npz: give its folder by --data or SPARSERF_DATA")
    z = np.load(path)
    if "X" in z.files:
        return z["X"].astype(np.float64), z["y"], int(z["test_start"])
    X = csr_matrix((z["data"].astype(np.float64), z["indices"], z["indptr"].astype(np.int32)), shape=tuple(z["shape"]))
    return X, z["y"], int(z["test_start"])
