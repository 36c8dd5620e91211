"""Sets of features and rows for the tests of this room, and checks that several files make."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserf import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons
from sparserf.features import RandomCosines, make_dictionary, make_learning_dictionary
from sparserf.rows import as_rows

each_layout = pytest.mark.parametrize("layout", [np.asarray, csr_array])
seeds = st.integers(0, 2**32 - 1)


def raises(error, message):
    """Expect an error whose message begins with `message`, taken literally."""
    return pytest.raises(error, match=r"^" + re.escape(message))


def same(a, b):
    """Return whether two FeatureSets hold the same features, bit for bit, in the same blocks."""
    if a.n_features_in != b.n_features_in or len(a.blocks) != len(b.blocks):
        return False
    return all(
        p.kind == q.kind
        and all(np.array_equal(array, q.arrays[name]) for name, array in p.arrays.items())
        for p, q in zip(a.blocks, b.blocks, strict=True)
    ) and np.array_equal(*([] if f.order is None else f.order for f in (a, b)))


def mixed(d=5):
    """Return a FeatureSet of 90 features (for 5 inputs) in blocks of several kinds; two parts are
    of one kind."""
    parts = [
        Fourier("gaussian", 0.3).draw(7, d, 1),
        RandomNeurons("relu", 2).draw(40, d, 2),
        Linear().draw(None, d),
        RandomNeurons("sin", 2).draw(3, d, 3),
        Perceptron(1.0).draw(33, d, 4),
        RandomNeurons("relu", 2).draw(2, d, 5),
    ]
    features = FeatureSet((), d)
    for part in parts:
        features = features.concat(part)
    return features


def check_read_only(features):
    """Check that neither arrays nor attributes of a set and its blocks can be changed."""
    for block in features.blocks:
        for array in (*block.arrays.values(), block.offset):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        for name in ("weights", "offset", "inputs", "scale", "activation"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(block, name, None)
    if features.order is not None:
        with pytest.raises(ValueError, match="read-only"):
            features.order[...] = 0
    for name in ("blocks", "order", "n_features_in"):
        with pytest.raises(AttributeError):
            setattr(features, name, None)


def resolved(map_, X, rng=0, weight=None):
    """Return a map with what it reads off the rows of X."""
    return map_.resolve(as_rows(X), np.random.default_rng(rng), weight)


def dictionary_of(features, X, n_components, batch_size, rng=0, gamma=None):
    """Make a dictionary of so many features for the rows of X."""
    how = {"n_components": n_components, "batch_size": batch_size, "gamma": gamma, "rng": rng}
    return make_dictionary(features, as_rows(X), **how)


def random_cosines(X, rng, weight=None):
    """Return the distribution from which features="auto" draws first, for the rows of X."""
    return RandomCosines.from_rows(
        as_rows(X), np.ones(X.shape[0]) if weight is None else weight, rng
    )


def learning(X, n_components, batch_size, seed):
    """Make a dictionary that learns, for rows X of weight 1."""
    rng = np.random.default_rng(seed)
    base = random_cosines(X, rng)
    return make_learning_dictionary(
        base, X.shape[1], n_components=n_components, batch_size=batch_size, rng=rng
    )


def gamma_of(kernel, rule, X, rng=0):
    """Return the gamma that a rule (None or 'knn') reads off the rows of X."""
    return resolved(Fourier(kernel, rule), X, rng).gamma


def sparse_rows(rng, n=90, d=6):
    """Draw a matrix half of whose entries are zero."""
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
