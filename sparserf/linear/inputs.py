"""Z = (X - 1 c') / unit: all inputs around their means, in units in which the rows are of moderate length; never made."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like, to_host
from .._base.checks import is_sparse
from ..features import FeatureSet, Linear, NeuronBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .._base.types import DenseOrCSR, RowVector
    from ..features import Projection
    from ..rows import Rows

EPS = np.finfo(np.float64).eps
# Powers of two between the unit and sqrt(alpha) at most, so that neither alpha / unit^2 nor its inverse overflows.
FARTHEST = 400


class Inputs:
    """The questions that Newton's method asks of the rows: they are asked of X, and the answers are made those of Z by
    corrections of rank one. The penalty alpha |w|^2 of X becomes alpha / unit^2 |w|^2.

    Row vectors v and h have a line for each output, (n_outputs, n_rows), as w does, (n_outputs, n_features).
    """

    rows: Rows
    unit: float
    n_rows: int
    n_features: int

    def __init__(self, rows: Rows, centre: np.ndarray | None = None, unit: float = 1.0):
        self.rows, self.unit, self.n_rows, self.n_features = rows, unit, rows.n_rows, rows.n_features_in
        self.features: FeatureSet = Linear().draw(None, self.n_features)
        self.centre: np.ndarray = np.zeros(self.n_features) if centre is None else centre  # of X
        self.is_around_means: bool = centre is not None
        self._c = self.centre / unit

    @classmethod
    def of(cls, rows: Rows, weight: np.ndarray, fit_intercept: bool, alphas: Sequence[float]) -> Inputs:
        """Around their means where there is an intercept; the unit is the power of two below the root mean square row."""
        squares, mean = _first_moments(rows, weight, fit_intercept)
        centre = np.zeros(rows.n_features_in) if mean is None else mean
        total = float(_of_differences(squares, centre, rows.n_rows).sum())
        exponent = np.frexp(np.sqrt(total))[1] if total else 0
        farthest = np.frexp(np.sqrt([max(alphas), min(alphas)]))[1] + (-FARTHEST, FARTHEST)
        inputs = cls(rows, mean, float(np.ldexp(1.0, int(np.clip(exponent, *farthest)))))
        inputs._squares = squares
        return inputs

    def correlate(self, v: RowVector) -> np.ndarray:
        """Z'v."""
        return self.correlate_each(v)[0]

    def correlate_each(self, *vectors: RowVector) -> list[np.ndarray]:
        """Z'v of each row vector v, all in one pass."""
        features, unit = self.features, self.unit

        def answer(block, *vectors):
            xp = namespace(vectors[0])
            v = xp.concat(vectors, axis=0) if len(vectors) > 1 else vectors[0]
            return block.correlate(features, v / unit), xp.sum(v, axis=-1)

        sums, totals = self.rows.sum(answer, *vectors)
        return np.split(check_no_overflow(sums) - totals[:, None] * self._c, len(vectors))

    def apply(self, w: np.ndarray) -> RowVector:
        """Z w."""
        return self.rows.map(self._applied(w))

    def apply_and_weigh(self, w: np.ndarray, h: RowVector) -> tuple[RowVector, np.ndarray]:
        """(Z w, and h'Z w of each output), in one pass."""
        applied = self._applied(w)

        def answer(block, h):
            f = applied(block)
            return f, to_host(namespace(f).vecdot(h, f))

        return self.rows.map_and_sum(answer, h)

    def _applied(self, w):
        """What a block answers to be asked for Z w."""
        features, unit, shift = self.features, self.unit, w @ self._c

        def answer(block):
            f = check_no_overflow(block.apply(features, w / unit))
            return f - outputs_like(shift, f)

        return answer

    def normal(self, h: RowVector, w: np.ndarray) -> tuple[RowVector, np.ndarray, np.ndarray]:
        """(Z w, Z' diag(h) Z w, and h'Z w of each output), in one pass."""
        features, unit, shift = self.features, self.unit, w @ self._c

        def answer(block, h):
            f, total = block.normal(features, h / unit, w / unit, shift)
            return f, np.column_stack([total, to_host(namespace(f).vecdot(h, f))])

        f, total = self.rows.map_and_sum(answer, h)
        weighed = total[:, -1]
        return f, check_no_overflow(total[:, :-1]) - weighed[:, None] * self._c, weighed

    def curvature(self, h: RowVector, fit_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """(Z' Pi diag(h) Pi Z, the diagonal of Z' diag(h) Z), in one pass, for row weights h of one output.

        Pi takes away the mean that h weights, where there is an intercept. Z is made some rows at a time here: X'diag(h)X
        may be so large that the difference is lost.
        """
        features, values, unit = self.features, self._values, self.unit

        def answer(block, h):
            H = block.gram(values, values, h / unit**2)
            return (H, block.correlate(features, h / unit), namespace(h).sum(h)) if fit_intercept else (H,)

        H, *of_mean = self.rows.sum(answer, h)
        squares = check_no_overflow(H).diagonal().copy()
        if fit_intercept and of_mean[1] > 0:
            mean = check_no_overflow(of_mean[0]) - of_mean[1] * self._c
            H -= np.outer(mean, mean / of_mean[1])
        return H, squares

    def kernel(self) -> np.ndarray:
        """Z Z'."""
        return self.rows.kernel(self._values, np.full(self.n_features, self.unit**-2.0))

    def project(self, projection: Projection | InUnits) -> np.ndarray:
        """Z R / sqrt(m) in the dtype of X, around its own mean where the inputs are around theirs: an ndarray."""
        hat = self.rows.vectors.fetch(self.rows.project(InUnits(projection, self.unit)))
        return hat - hat.mean(axis=0, dtype=np.float64).astype(hat.dtype) if self._c.any() else hat

    @cached_property
    def _values(self):
        if not self.centre.any():
            return self.features
        (block,) = self.features.blocks
        return FeatureSet([NeuronBlock("identity", 1.0, block.weights, -self.centre, block.inputs)], self.n_features)

    @cached_property
    def _squares(self):
        """Mean squares of the columns of X."""
        return self.rows.correlate_squares(self.features, self.rows.vectors.put(np.full(self.n_rows, 1 / self.n_rows)))

    @cached_property
    def sizes(self) -> np.ndarray:
        """Root mean squares of the columns of Z, or a little more."""
        return np.sqrt(_of_differences(self._squares, self.centre, self.n_rows)) / self.unit

    @cached_property
    def sizes_in_sums(self) -> np.ndarray:
        """Root mean squares of the columns of X and the centre together, which all sums are made of, in the unit."""
        return (np.sqrt(self._squares) + np.abs(self.centre)) / self.unit


class Beside:
    """The `Inputs` of another matrix with the same rows, which is in the memory of this process whatever the home of X is;
    and the one place where row vectors go from one home to the other."""

    def __init__(self, rows: Rows, matrix: np.ndarray):
        self.inputs: Inputs = Inputs(rows.on_same_threads(matrix))
        self._home, self._here = rows.vectors, self.inputs.rows.vectors

    def bring(self, vector: RowVector) -> RowVector:
        """A row vector of the home of X, here."""
        return self._here.put(self._home.fetch(vector))

    def give_back(self, vector: RowVector) -> RowVector:
        """A row vector of here, in the home of X."""
        return self._home.put(self._here.fetch(vector))


class InUnits:
    """The projection of X / unit, whose sums neither over- nor underflow in the dtype of X."""

    n_projections: int
    cost: Callable[[DenseOrCSR], int]

    def __init__(self, projection: Any, unit: float):
        self._projection, self.n_projections, self.cost = projection, projection.n_projections, projection.cost
        self._exponent = 1 - np.frexp(unit)[1]

    def parts(self, dtype: np.dtype) -> Iterator[tuple[slice, Callable[[DenseOrCSR, np.ndarray], None]]]:
        for columns, project in self._projection.parts(dtype):
            yield columns, partial(self._project, project)

    def _project(self, project, X, out):
        if not is_sparse(X):
            project(np.ldexp(X, self._exponent), out)  # 1 / unit itself may be no number of the dtype
        else:
            project(type(X)((np.ldexp(X.data, self._exponent), X.indices, X.indptr), shape=X.shape), out)


def _first_moments(rows, weight, has_mean):
    """(the mean squares of the columns of X, their means or None), in one pass, of rows that count by weights of mean 1."""
    features, n = Linear().draw(None, rows.n_features_in), rows.n_rows

    def answer(block, s):
        squares = block.correlate_squares(features, s / n)
        return (squares, block.correlate(features, s / n)) if has_mean else (squares,)

    squares, *mean = map(check_no_overflow, rows.sum(answer, weight))
    return squares, mean[0] if has_mean else None


def _of_differences(squares, centre, n):
    """Mean squares of n numbers around their mean, from those around 0, which are rounded."""
    return np.maximum(squares - centre**2, 0.0) + 4 * n**0.5 * EPS * squares
