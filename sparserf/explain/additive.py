"""The sum of functions of one and of two inputs that is nearest to a model over some rows: its
additive approximation.

    f(x) ~ mean + sum_j f_j(x_j) + sum_jk f_jk(x_j, x_k)

by least squares over the rows. The functions f_j are piecewise linear between quantiles, or have a
value for each level of a category; the f_jk are bilinear on a coarser grid, for the pairs that
explain most of the residual of the f_j. If inputs depend on one another, many such sums are as near
to the model. A ridge penalty then chooses functions that are near to the partial dependence, the
mean of the model for given values of one input.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..expansion.terms import column_levels
from .evaluate import SeenTerms, column_of, side_by_side, subsample
from .shapley import partial_dependence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._base.types import DenseOrCSR
    from ..expansion import Expansion

# The number of knots of a function of one input.
KNOTS = 16
# Functions of two inputs have one knot in EVERY of these.
EVERY = 3
# The number of levels of a category that have values of their own in functions of one input: the
# most frequent ones. All other levels share one value.
LEVELS = 24
# The same in functions of two inputs.
LEVELS_OF_TWO = 12
# The most inputs that have a function.
MOST_INPUTS = 32
# The most important inputs among which pairs are sought.
MOST_PAIRED = 14
# The most values of all functions together.
MOST_VALUES = 1_200
# The ridge penalty of functions of one and of two inputs, in rows: a value is fitted as if RIDGE
# more rows had the partial dependence as their value, or 0 in functions of two.
RIDGE = {1: 3.0, 2: 3.0}
# The penalty, for each row, of the squared changes of slope at knots.
SMOOTH = 1e-5
# The least share of the residual of the functions of one input that the function of a pair must
# explain.
LEAST = 0.003
# The number of rows over which a partial dependence is a mean.
BACKGROUND = 100


@dataclass(frozen=True, eq=False)
class Axis:
    """The basis of functions of one input: values at knots, linear between them, and one value
    where the input is missing.

    The knots of a category are the codes of its levels; the first of them, -1, is for unknown
    levels and levels without a value of their own.

    knots : ndarray, ascending
    is_category : bool
    coarse : ndarray of int
        The indices of the knots in functions of two inputs.
    """

    knots: np.ndarray
    is_category: bool
    coarse: np.ndarray

    @classmethod
    def from_column(cls, x: np.ndarray, levels: Sequence[Any] | None) -> Self:
        """Choose the knots for a column of X: quantiles, or the most frequent of its levels."""
        if levels is not None:
            knots = np.append(-1.0, frequent_levels(x, levels, LEVELS))
            of_two = np.append(-1.0, frequent_levels(x, levels, LEVELS_OF_TWO))
            return cls(knots, True, np.flatnonzero(np.isin(knots, of_two)))
        there = x[~np.isnan(x)]
        if not len(there):
            return cls(np.zeros(1), False, np.zeros(1, int))
        knots = np.unique(np.quantile(there, np.linspace(0, 1, KNOTS), method="nearest"))
        coarse = np.union1d(np.arange(0, len(knots), EVERY), len(knots) - 1)
        return cls(knots, False, coarse)

    def hats(self, x: np.ndarray, chosen: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the basis functions at x, (n, n_knots + 1): hats at some of the knots, and last
        whether x is missing."""
        knots, is_missing = self.knots[chosen], np.isnan(x)
        if self.is_category:
            x = np.where(np.isin(np.floor(x), knots), np.floor(x), -1.0)
        at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, max(len(knots) - 2, 0))
        span = knots[np.minimum(at + 1, len(knots) - 1)] - knots[at]
        share = np.divide(x - knots[at], span, out=np.zeros(len(x)), where=span > 0).clip(0.0, 1.0)
        out, row = np.zeros((len(x), len(knots) + 1)), np.arange(len(x))
        out[row, np.minimum(at + 1, len(knots) - 1)] = share
        out[row, at] += 1 - share
        out[is_missing] = 0.0
        out[is_missing, -1] = 1.0
        return out

    def roughness(self) -> np.ndarray:
        """Return the matrix (n_knots - 2, n_knots + 1) that maps values to changes of slope at
        inner knots, over n_knots."""
        m = len(self.knots)
        if self.is_category or m < 3:
            return np.zeros((0, m + 1))
        h, out = np.diff(self.knots) / np.ptp(self.knots), np.zeros((m - 2, m + 1))
        k = np.arange(m - 2)
        out[k, k], out[k, k + 1], out[k, k + 2] = 1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]
        return out * (1 / m)


def frequent_levels(codes: np.ndarray, levels: Sequence[Any], most: int) -> np.ndarray:
    """Return the codes of all levels of a category, or of the `most` levels that occur most often,
    in ascending order."""
    if len(levels) <= most:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    there = codes[codes >= 0].astype(np.intp)  # neither missing nor unknown
    count = np.bincount(there, minlength=len(levels))
    return np.sort(np.argsort(-count, kind="stable")[:most]).astype(np.float64)


class AdditiveApproximation:
    """The sum f ~ mean + sum_j f_j(x_j) + sum_jk f_jk(x_j, x_k), fitted by least squares over rows
    of numbers X.

    A *part* is the tuple of the inputs of one function, (j,) or (j, k).

    axes : {column: its `Axis`}
    pairs : list of the parts of two inputs
    values : {part: its values at knots, and where an input is missing}
    at_rows : {part: its values in the rows, by a fit to the other half of the rows}
    r2 : the share of the variance of f that the sum of `at_rows` accounts for
    """

    axes: dict[int, Axis]

    def __init__(
        self,
        columns: dict[int, np.ndarray],
        f: np.ndarray,
        axes: dict[int, Axis],
        prior: dict[int, np.ndarray],
        candidates: Sequence[tuple[int, int]],
        n_pairs: int,
    ):
        """Fit the functions of one input of all axes, and the functions of the best n_pairs of some
        candidates.

        columns : {column: its numbers in the rows}
        prior : {column: values at its knots, and where it is missing, towards which the penalty
            draws its function}
        """
        self._columns, self.axes, self._n, f = columns, axes, len(f), f - f.mean()
        self._in_rows: dict[tuple[int, ...], np.ndarray] = {}  # the bases in the rows
        ones: list[tuple[int, ...]] = [(j,) for j in axes]
        self._prior = {
            (j,): values - (self._basis_in_rows((j,)) @ values).mean()
            for j, values in prior.items()
        }
        solution = self._solve(ones, *self._equations(ones, f, np.arange(self._n)))
        rest = f - sum(self._basis_in_rows(part) @ values for part, values in solution.items())
        self.pairs: list[tuple[int, ...]] = self._best_pairs(candidates, rest, n_pairs)
        parts, order = ones + self.pairs, np.random.default_rng(0).permutation(self._n)
        halves = [half for half in np.array_split(order, 2) if len(half)]
        equations = [self._equations(parts, f, half) for half in halves]
        whole = (sum(each) for each in zip(*equations, strict=True))
        self.values: dict[tuple[int, ...], np.ndarray] = self._purify(self._solve(parts, *whole))
        self.at_rows: dict[tuple[int, ...], np.ndarray] = {
            part: np.zeros(self._n) for part in parts
        }
        if len(halves) == 2:  # in each half of the rows by the fit to the other half, of mean zero
            for of_half, there in zip(equations, halves[::-1], strict=True):
                for part, values in self._purify(self._solve(parts, *of_half)).items():
                    at_rows = self._basis_in_rows(part)[there] @ values
                    self.at_rows[part][there] = at_rows - at_rows.mean()
        self.r2: float = r_squared(self.at_rows.values(), f)

    def at(self, part: tuple[int, ...], points: np.ndarray) -> np.ndarray:
        """Return the values of a part at points, (n, 1 or 2)."""
        return self._basis(part, points) @ self.values[part]

    def _basis(self, part, points):
        """Return the basis functions of a part at points, (n, n_values)."""
        if len(part) == 1:
            return self.axes[part[0]].hats(points[:, 0])
        one, two = (
            self.axes[j].hats(points[:, k], self.axes[j].coarse) for k, j in enumerate(part)
        )
        return (one[:, :, None] * two[:, None]).reshape(len(points), -1)

    def _basis_in_rows(self, part):
        """Return the basis functions of a part in the rows, computed once."""
        if part not in self._in_rows:
            rows = np.stack([self._columns[j] for j in part], axis=1)
            self._in_rows[part] = self._basis(part, rows)
        return self._in_rows[part]

    def _equations(self, parts, f, rows):
        """Return what least squares need of some rows, which adds up over rows: (H'H, H'(f - H
        prior), their number), with H the basis functions of some parts."""
        H = np.hstack([self._basis_in_rows(part)[rows] for part in parts])
        return H.T @ H, H.T @ (f[rows] - H @ self._prior_of(parts)), len(rows)

    def _prior_of(self, parts):
        """Return the prior of all values of some parts."""
        nothing = {part: np.zeros(self._basis_in_rows(part).shape[1]) for part in parts}
        return np.concatenate([(nothing | self._prior)[part] for part in parts])

    def _solve(self, parts, G, slope, n):
        """Solve penalised least squares around the prior: return {part: values at knots}."""
        from scipy.linalg import solve

        ends = np.cumsum([0, *(self._basis_in_rows(part).shape[1] for part in parts)])
        G = G.copy()
        for part, start, end in zip(parts, ends, ends[1:], strict=False):
            R = self.axes[part[0]].roughness() if len(part) == 1 else np.zeros((0, end - start))
            penalty = RIDGE[len(part)] * np.eye(end - start) + SMOOTH * n * (R.T @ R)
            G[start:end, start:end] += penalty
        values = self._prior_of(parts) + solve(G, slope, assume_a="pos", overwrite_a=True)
        return {part: values[a:b] for part, a, b in zip(parts, ends, ends[1:], strict=False)}

    def _best_pairs(self, candidates, rest, n):
        """Return at most n pairs, best first, whose functions, each alone, would explain most of
        the residual `rest`."""
        gains = {}
        for pair in candidates:
            H = self._basis_in_rows(pair)
            c, mass = H.T @ rest, H.sum(axis=0)
            # as if each row had one basis function that is not 0
            gains[pair] = float(c @ (c / (mass + RIDGE[2])))
        least = LEAST * float(rest @ rest)
        best = [
            pair for pair in sorted(gains, key=lambda pair: -gains[pair])[:n] if gains[pair] > least
        ]
        sizes = [np.prod([len(self.axes[j].coarse) + 1 for j in pair]) for pair in best]
        room = MOST_VALUES - sum(len(axis.knots) + 1 for axis in self.axes.values())
        return best[: int(np.searchsorted(np.cumsum(sizes), room, side="right"))]

    def _purify(self, values):
        """Make functions of two inputs pure interactions: move their means over either input into
        the functions of one.

        The sum stays the same. Afterwards a function of two inputs has mean zero over the rows at
        each value of either input, and a function of one input has mean zero over all rows.
        """
        for pair in self.pairs:
            H = self._basis_in_rows(pair)
            shape = [len(self.axes[j].coarse) + 1 for j in pair]
            F, mass = values[pair].reshape(shape), H.sum(axis=0).reshape(shape)
            for _ in range(20):  # the means along one side change those along the other
                for k, j in enumerate(pair):
                    total = mass.sum(axis=1 - k)
                    mean = (mass * F).sum(axis=1 - k)
                    mean = np.divide(mean, total, out=np.zeros(len(total)), where=total > 0)
                    F = F - (mean[:, None] if k == 0 else mean)
                    values[(j,)] = values[(j,)] + self._at_all_knots(j, mean)
            values[pair] = F.ravel()
        return {
            part: v - (self._basis_in_rows(part) @ v).mean() if len(part) == 1 else v
            for part, v in values.items()
        }

    def _at_all_knots(self, j, coarse):
        """Return a function of input j at all its knots, from its values at the coarse knots."""
        axis = self.axes[j]
        at = np.append(axis.knots, np.nan)
        return axis.hats(at, axis.coarse) @ coarse


def r_squared(parts: Iterable[np.ndarray], f: np.ndarray) -> float:
    """Return the share of the variance of f that the sum of some parts accounts for, at least 0."""
    rest = sum(parts, -f)
    return max(0.0, 1.0 - float(rest.var() / (f.var() or 1.0))) if f.var() > 0 else 0.0


def approximate(
    model: Expansion, X: DenseOrCSR, f: np.ndarray, importance: np.ndarray, n_pairs: int
) -> AdditiveApproximation:
    """Approximate a model of one output over rows of numbers X, in which it is f.

    importance : the importance of each column. The most important columns have functions of one
        input; functions of two are sought among pairs of the most important columns on which some
        term depends together.
    """
    levels, terms = column_levels(model), SeenTerms(model).terms
    seen = sorted({j for term in terms for j in term.columns.tolist()})
    chosen = sorted(seen, key=lambda j: -importance[j])[:MOST_INPUTS]
    paired = set(chosen[:MOST_PAIRED])
    together = [
        sorted(paired.intersection(term.columns.tolist())) for term in terms if not term.is_linear
    ]
    pairs = {pair for inputs in together for pair in combinations(inputs, 2)}
    columns = {j: column_of(X, j).astype(np.float64) for j in sorted(chosen)}
    axes = {j: Axis.from_column(x, levels[j]) for j, x in columns.items()}
    # Beside the knots a missing cell, if there is one: its place in functions that have none is 0.
    points = {
        j: np.append(axis.knots, [np.nan] * int(np.isnan(columns[j]).any()))
        for j, axis in axes.items()
    }
    some = subsample(X, BACKGROUND, np.random.default_rng(0))
    means = partial_dependence(model, side_by_side(points, X.shape[1]), some)
    prior = {j: np.zeros(len(axis.knots) + 1) for j, axis in axes.items()}
    for j, at in points.items():
        prior[j][: len(at)] = means[j][: len(at)]
    return AdditiveApproximation(columns, f, axes, prior, sorted(pairs), n_pairs)
