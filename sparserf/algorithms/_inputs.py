"""Z = (X - 1 c') / unit: all inputs around their means, in units in which the rows are of moderate length; never made."""

from functools import cached_property, partial

import numpy as np

from .._checks import is_sparse
from ..features import FeatureSet, Linear, NeuronBlock

EPS = np.finfo(np.float64).eps
# Powers of two between the unit and sqrt(alpha) at most, so that neither alpha / unit^2 nor its inverse overflows.
FARTHEST = 400


class Inputs:
    """The questions that dual random projection asks of the rows: asked of X, and the answer made that of Z by a correction of
    rank one. The penalty alpha |w|^2 of X becomes alpha / unit^2 |w|^2."""

    def __init__(self, rows, centre=None, unit=1.0):
        self.rows, self.unit, self.n_rows, self.n_features = rows, unit, rows.n_rows, rows.n_features_in
        self.features = Linear().draw(None, self.n_features)
        self.centre = np.zeros(self.n_features) if centre is None else centre  # of X
        self._c, self._balanced = self.centre / unit, None

    @classmethod
    def of(cls, rows, weight, fit_intercept, alphas):
        """Around their means where there is an intercept; the unit is the power of two below the root mean square row."""
        plain, h = cls(rows), weight / rows.n_rows
        mean = plain.correlate(h) if fit_intercept else None
        squares = rows.correlate_squares(plain.features, h)
        total = float(_of_differences(squares, plain.centre if mean is None else mean, rows.n_rows).sum())
        exponent = np.frexp(np.sqrt(total))[1] if total else 0
        farthest = np.frexp(np.sqrt([max(alphas), min(alphas)]))[1] + (-FARTHEST, FARTHEST)
        inputs = cls(rows, mean, float(np.ldexp(1.0, int(np.clip(exponent, *farthest)))))
        inputs._squares, inputs._balanced = squares, h if fit_intercept else None
        return inputs

    def correlate(self, v):
        """Z'v, of each row of v."""
        return self.rows.correlate(self.features, v / self.unit) - v.sum(axis=-1, keepdims=True) * self._c

    def are_around(self, h):
        """Whether Z'h = 0 for weights h of the rows: those that the inputs are around their means of."""
        return self._balanced is not None and bool((h == self._balanced).all())

    def apply(self, w):
        """Z w, of each row of w."""
        return self.rows.apply(self.features, w / self.unit) - (w @ self._c)[..., None]

    def normal(self, h, w):
        """(Z w, Z' diag(h) Z w), in one pass over the rows."""
        f, total = self.rows.normal(self.features, h / self.unit, w / self.unit, w @ self._c)
        return f, total - np.vecdot(h, f)[:, None] * self._c

    def gram(self, h):
        """Z' diag(h) Z. Z is made some rows at a time here: X'diag(h)X may be so large that the difference is lost."""
        return self.rows.gram(self._values, self._values, h / self.unit**2)

    def kernel(self):
        """Z Z'."""
        return self.rows.kernel(self._values, np.full(self.n_features, self.unit**-2.0))

    def project(self, projection):
        """Z R / sqrt(m) in the dtype of X, around its own mean where the inputs are around theirs."""
        hat = self.rows.project(InUnits(projection, self.unit))
        if self._c.any():
            hat -= hat.mean(axis=0, dtype=np.float64).astype(hat.dtype)
        return hat

    @cached_property
    def _values(self):
        if not self.centre.any():
            return self.features
        (block,) = self.features.blocks
        return FeatureSet([NeuronBlock("identity", 1.0, block.weights, -self.centre, block.inputs)], self.n_features)

    @cached_property
    def _squares(self):
        return self.rows.correlate_squares(self.features, np.full(self.n_rows, 1 / self.n_rows))

    @cached_property
    def sizes(self):
        """Root mean squares of the columns of Z, or a little more."""
        return np.sqrt(_of_differences(self._squares, self.centre, self.n_rows)) / self.unit

    @cached_property
    def sizes_in_sums(self):
        """Of the columns of X and of c together, which all sums are made of."""
        return (np.sqrt(self._squares) + np.abs(self.centre)) / self.unit


class InUnits:
    """The projection of X / unit, whose sums neither over- nor underflow in the dtype of X."""

    def __init__(self, projection, unit):
        self._projection, self.n_projections, self.cost = projection, projection.n_projections, projection.cost
        self._exponent = 1 - np.frexp(unit)[1]

    def parts(self, dtype):
        for columns, project in self._projection.parts(dtype):
            yield columns, partial(self._project, project)

    def _project(self, project, X, out):
        if not is_sparse(X):
            project(np.ldexp(X, self._exponent), out)  # 1 / unit itself may be no number of the dtype
        else:
            project(type(X)((np.ldexp(X.data, self._exponent), X.indices, X.indptr), shape=X.shape), out)


def _of_differences(squares, centre, n):
    """Mean squares of n numbers around their mean, from those around 0, which are rounded."""
    return np.maximum(squares - centre**2, 0.0) + 4 * n**0.5 * EPS * squares
