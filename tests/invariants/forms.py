"""The same rows, weights and features in other forms, each of which gives the same model but for
rounding."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserf import FeatureSet


@dataclass
class Rows:
    """Rows of whole weights, with a target and drawn features, all numbers of float32.

    order : the place of each feature among those of the first form
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    features: FeatureSet
    order: np.ndarray

    def coef(self, model):
        """Return the coefficients of a model over all features, in their first order."""
        w = np.zeros(len(self.order))
        w[self.order[model.support]] = model.coef
        return w


def random_rows(seed, loss, draw, n=40, d=4):
    """Return rows of weights 1 to 3, a third of whose numbers are zero, with a target that is not
    linear.

    draw : function of d and the seed that returns a FeatureSet
    """
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 1 / 3, 0.0, rng.uniform(-2, 2, (n, d)))
    X = X.astype(np.float32).astype(np.float64)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    y = y if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    features = draw(d, seed)
    return Rows(X, y, rng.integers(1, 4, n).astype(float), features, np.arange(len(features)))


def permuted(n):
    """Return another order of n things."""
    return np.random.default_rng(n).permutation(n)


def csr(rows):
    return replace(rows, X=csr_array(rows.X))


def csr_of_float32(rows):
    return csr(float32(rows))


def float32(rows):
    return replace(rows, X=rows.X.astype(np.float32))


def permuted_rows(rows):
    p = permuted(len(rows.y))
    return replace(rows, X=rows.X[p], y=rows.y[p], weight=rows.weight[p])


def permuted_columns(rows):
    """The column p[k] becomes the k-th, for the features, too."""
    p = permuted(rows.X.shape[1])
    place = np.argsort(p)

    def moved(block):
        if block.activation == "product":  # of factors of which the first is 1
            return replace(block, inputs=np.append(0, 1 + place)[block.inputs].astype(np.int32))
        if block.inputs is not None:
            return replace(block, inputs=place[block.inputs].astype(np.int32))
        return replace(block, weights=block.weights[:, p])

    blocks = [moved(block) for block in rows.features.blocks]
    features = FeatureSet(blocks, len(p), rows.features.order)
    return replace(rows, X=rows.X[:, p], features=features)


def permuted_features(rows):
    q = permuted(len(rows.order))
    return replace(rows, features=rows.features.take(q), order=rows.order[q])


def copies(rows):
    """A row of weight k is there k times."""
    k = rows.weight.astype(int)
    return replace(rows, X=np.repeat(rows.X, k, axis=0), y=np.repeat(rows.y, k), weight=None)


FORMS = (csr, float32, csr_of_float32, permuted_rows, permuted_columns, permuted_features, copies)
SINGLE = (float32, csr_of_float32)  # which round more
each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
