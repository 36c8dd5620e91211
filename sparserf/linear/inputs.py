"""The inputs as Newton's method sees them: centred, in units in which the rows are of moderate
length, and never stored.

Z = (X - 1 c') / unit, where c are the means of the columns if there is an intercept, else 0, and
the unit is a power of two. A sum over the rows of Z is computed with X, and corrected by a term of
rank one; so X stays sparse, and a shift of a column changes rounding only. In these units the
penalty alpha |w|^2 of X is alpha / unit^2 |w|^2.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like, to_host
from .._base.checks import is_sparse
from ..features import FeatureSet, Linear, NeuronBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .._base.types import DenseOrCSR, RowVector
    from ..features import Projection
    from ..rows import Rows
    from .problem import LinearProblem

EPS = np.finfo(np.float64).eps


class Inputs:
    """Z, and the sums over the rows that Newton's method needs of it.

    Row vectors v and h have a line for each output, (n_outputs, n_rows), as coefficients w have,
    (n_outputs, n_features).

    Parameters
    ----------
    rows : Rows
        X.
    centre : ndarray of shape (n_features,) or None, default None
        The number that is subtracted from each column of X; None for nothing.
    unit : float, default 1.0
        A power of two.
    mean_squares : ndarray of shape (n_features,) or None, default None
        Mean squares of the columns of X where they are known; None: they are computed once they are
        asked for.
    """

    rows: Rows
    unit: float
    n_rows: int
    n_features: int

    def __init__(
        self,
        rows: Rows,
        centre: np.ndarray | None = None,
        unit: float = 1.0,
        mean_squares: np.ndarray | None = None,
    ):
        self.rows = rows
        self.unit = unit
        self.n_rows = rows.n_rows
        self.n_features = rows.n_features_in
        self.features: FeatureSet = Linear().draw(None, self.n_features)
        self.centre: np.ndarray = np.zeros(self.n_features) if centre is None else centre
        self.is_around_means: bool = centre is not None
        self._c, self._known_squares = self.centre / unit, mean_squares

    @classmethod
    def from_rows(
        cls, rows: Rows, weight: np.ndarray, fit_intercept: bool, alphas: Sequence[float]
    ) -> Inputs:
        """Return the inputs of a fit with these sample weights, of mean 1, and penalties; one pass
        over the rows.

        They are centred where there is an intercept. The unit is the power of two below the root
        mean square length of a row.
        """
        # Most powers of two between the unit and sqrt(alpha): neither alpha / unit^2 nor its
        # inverse overflows.
        most_powers = 400

        features, n = Linear().draw(None, rows.n_features_in), rows.n_rows

        def answer(block, s):
            squares = block.correlate_squares(features, s / n)
            return (squares, block.correlate(features, s / n)) if fit_intercept else (squares,)

        squares, *mean = map(check_no_overflow, rows.sum(answer, weight))
        mean = mean[0] if fit_intercept else None
        centre = np.zeros(rows.n_features_in) if mean is None else mean
        total = float(_variances(squares, centre, n).sum())
        exponent = np.frexp(np.sqrt(total))[1] if total else 0
        farthest = np.frexp(np.sqrt([max(alphas), min(alphas)]))[1] + (-most_powers, most_powers)
        return cls(rows, mean, float(np.ldexp(1.0, int(np.clip(exponent, *farthest)))), squares)

    def correlate(self, v: RowVector) -> np.ndarray:
        """Return Z'v."""
        return self.correlate_each(v)[0]

    def correlate_each(self, *vectors: RowVector) -> list[np.ndarray]:
        """Return Z'v of each row vector v, all in one pass."""
        features, unit = self.features, self.unit

        def answer(block, *vectors):
            xp = namespace(vectors[0])
            v = xp.concat(vectors, axis=0) if len(vectors) > 1 else vectors[0]
            return block.correlate(features, v / unit), xp.sum(v, axis=-1)

        sums, totals = self.rows.sum(answer, *vectors)
        return np.split(check_no_overflow(sums) - totals[:, None] * self._c, len(vectors))

    def apply(self, w: np.ndarray) -> RowVector:
        """Return Z w."""
        return self.rows.map(self._answer_to_apply(w))

    def apply_and_weigh(self, w: np.ndarray, h: RowVector) -> tuple[RowVector, np.ndarray]:
        """Return Z w, and h'Z w of each output, in one pass."""
        apply = self._answer_to_apply(w)

        def answer(block, h):
            f = apply(block)
            return f, to_host(namespace(f).vecdot(h, f))

        return self.rows.map_and_sum(answer, h)

    def _answer_to_apply(self, w):
        """Return the function that computes Z w of a block of rows."""
        features, unit, shift = self.features, self.unit, w @ self._c

        def answer(block):
            f = check_no_overflow(block.apply(features, w / unit))
            return f - outputs_like(shift, f)

        return answer

    def normal(self, h: RowVector, w: np.ndarray) -> tuple[RowVector, np.ndarray, np.ndarray]:
        """Return Z w, Z' diag(h) Z w, and h'Z w of each output, in one pass."""
        features, unit, shift = self.features, self.unit, w @ self._c

        def answer(block, h):
            f, total = block.normal(features, h / unit, w / unit, shift)
            return f, np.column_stack([total, to_host(namespace(f).vecdot(h, f))])

        f, total = self.rows.map_and_sum(answer, h)
        weighed = total[:, -1]
        return f, check_no_overflow(total[:, :-1]) - weighed[:, None] * self._c, weighed

    def weighted_gram(self, h: RowVector, fit_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return Z' Pi diag(h) Pi Z and the diagonal of Z' diag(h) Z, in one pass, for row weights
        h of one output.

        Pi takes away the mean that h weights where there is an intercept. Here Z is made, some rows
        at a time: X' diag(h) X may be so large that the difference to the correction of rank one is
        lost to rounding.
        """
        features, values, unit = self.features, self._values, self.unit

        def answer(block, h):
            H = block.gram(values, values, h / unit**2)
            return (
                (H, block.correlate(features, h / unit), namespace(h).sum(h))
                if fit_intercept
                else (H,)
            )

        H, *of_mean = self.rows.sum(answer, h)
        squares = check_no_overflow(H).diagonal().copy()
        if fit_intercept and of_mean[1] > 0:
            mean = check_no_overflow(of_mean[0]) - of_mean[1] * self._c
            H -= np.outer(mean, mean / of_mean[1])
        return H, squares

    def kernel(self) -> np.ndarray:
        """Return Z Z'."""
        return self.rows.kernel(self._values, np.full(self.n_features, self.unit**-2.0))

    def project(self, projection: Projection) -> np.ndarray:
        """Return Z R / sqrt(m) of a projection R as an ndarray in the dtype of X; centred where Z
        is."""
        hat = self.rows.vectors.fetch(self.rows.project(ScaledProjection(projection, self.unit)))
        return hat - hat.mean(axis=0, dtype=np.float64).astype(hat.dtype) if self._c.any() else hat

    @cached_property
    def _values(self):
        """The features x_j - c_j, which make Z unit of a block of rows."""
        if not self.centre.any():
            return self.features
        (block,) = self.features.blocks
        return FeatureSet(
            [NeuronBlock("identity", 1.0, block.weights, -self.centre, block.inputs)],
            self.n_features,
        )

    @cached_property
    def _squares(self):
        """Mean squares of the columns of X."""
        if self._known_squares is not None:
            return self._known_squares
        return self.rows.correlate_squares(
            self.features, self.rows.vectors.put(np.full(self.n_rows, 1 / self.n_rows))
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """Root mean squares of the columns of Z, or a little more."""
        return np.sqrt(_variances(self._squares, self.centre, self.n_rows)) / self.unit

    @cached_property
    def sizes_in_sums(self) -> np.ndarray:
        """Root mean squares of the columns of X plus |c|, in the unit: the sizes of what sums over
        the rows are made of."""
        return (np.sqrt(self._squares) + np.abs(self.centre)) / self.unit


class HostInputs:
    """The `Inputs` of a matrix in the memory of this process with a row for each row of X, wherever
    X lives.

    Its methods copy row vectors from where X lives (this process, a device or a cluster) to this
    process and back.
    """

    def __init__(self, rows: Rows, matrix: np.ndarray):
        self.inputs: Inputs = Inputs(rows.on_same_threads(matrix))
        self._home, self._here = rows.vectors, self.inputs.rows.vectors

    def bring(self, vector: RowVector) -> RowVector:
        """Copy a row vector from where X lives to this process."""
        return self._here.put(self._home.fetch(vector))

    def bring_problem(self, problem: LinearProblem) -> LinearProblem:
        """Copy the row vectors of a problem to this process."""
        y, weight = self.bring(problem.y), self.bring(problem.weight)
        return replace(problem, vectors=self._here, y=y, weight=weight)

    def send_back(self, vector: RowVector) -> RowVector:
        """Copy a row vector of this process to where X lives."""
        return self._home.put(self._here.fetch(vector))


class ScaledProjection:
    """The projection of X / unit, made so that no product over- or underflows in the dtype of X;
    see `Projection`."""

    n_projections: int
    cost: Callable[[DenseOrCSR], int]

    def __init__(self, projection: Projection, unit: float):
        self._projection = projection
        self.n_projections = projection.n_projections
        self.cost = projection.cost
        self._exponent = 1 - np.frexp(unit)[1]

    def parts(
        self, dtype: np.dtype
    ) -> Iterator[tuple[slice, Callable[[DenseOrCSR, np.ndarray], None]]]:
        """Yield the parts of the projection, each with a function that scales its rows first."""
        for columns, project in self._projection.parts(dtype):
            yield columns, partial(self._project, project)

    def _project(self, project, X, out):
        """Write the projection of the rows X / unit to out; 1 / unit itself may be no number of the
        dtype."""
        # Rows whose unit has at most this exponent are projected as they are, and scaled after
        # that.
        moderate = 20

        if abs(self._exponent) <= moderate:
            project(X, out)
            np.ldexp(out, self._exponent, out=out)
        elif not is_sparse(X):
            project(np.ldexp(X, self._exponent), out)
        else:
            project(
                type(X)((np.ldexp(X.data, self._exponent), X.indices, X.indptr), shape=X.shape), out
            )


def _variances(squares, centre, n):
    """Return a bound of the mean squares of columns of n numbers around a centre, from rounded mean
    squares around 0."""
    return np.maximum(squares - centre**2, 0.0) + 4 * n**0.5 * EPS * squares
