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

from ..expansion.terms import column_levels, terms_of
from .evaluate import decision_values, subsample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..expansion import Expansion

# The number of knots of a function of one input; functions of two inputs have one knot in EVERY of
# these.
KNOTS, EVERY = 16, 3
# The number of levels of a category that have values of their own, in functions of one input and of
# two: the most frequent ones. All other levels share one value.
LEVELS, LEVELS_OF_TWO = 24, 12
# The most inputs that have a function, the most important inputs among which pairs are sought, and
# the most values of all functions together.
MOST_INPUTS, MOST_PAIRED, MOST_VALUES = 64, 14, 2_000
# The ridge penalty of functions of one and of two inputs, in rows: a value is fitted as if RIDGE
# more rows had the partial dependence as their value, or 0 in functions of two. SMOOTH is the
# penalty of second differences, for each row.
RIDGE, SMOOTH = {1: 3.0, 2: 3.0}, 1e-5
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
            codes, of_two = (
                frequent_levels(x, levels, LEVELS),
                frequent_levels(x, levels, LEVELS_OF_TWO),
            )
            knots = np.append(-1.0, codes)
            return cls(knots, True, np.flatnonzero(np.isin(knots, np.append(-1.0, of_two))))
        there = x[~np.isnan(x)]
        if not len(there):
            return cls(np.zeros(1), False, np.zeros(1, int))
        knots = np.unique(np.quantile(there, np.linspace(0, 1, KNOTS), method="nearest"))
        return cls(
            knots, False, np.unique(np.append(np.arange(0, len(knots), EVERY), len(knots) - 1))
        )

    def hats(self, x: np.ndarray, some: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the basis functions at x, (n, n_knots + 1): hats at some of the knots, and last
        whether x is missing."""
        knots, is_missing = self.knots[some], np.isnan(x)
        if self.is_category:
            x = np.where(np.isin(np.floor(x), knots), np.floor(x), -1.0)
        at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, max(len(knots) - 2, 0))
        span = knots[np.minimum(at + 1, len(knots) - 1)] - knots[at]
        share = np.clip(
            np.divide(x - knots[at], span, out=np.zeros(len(x)), where=span > 0), 0.0, 1.0
        )
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
        X: np.ndarray,
        f: np.ndarray,
        axes: dict[int, Axis],
        prior: dict[int, np.ndarray],
        candidates: Sequence[tuple[int, int]],
        n_pairs: int,
    ):
        """Fit the functions of one input of all axes, and the functions of the best n_pairs of some
        candidates.

        prior : {column: values at its knots, and where it is missing, towards which the penalty
            draws its function}
        """
        self._X, self.axes, f, ones = X, axes, f - f.mean(), [(j,) for j in axes]
        self._prior = {
            (j,): values - self._at_rows((j,), values).mean() for j, values in prior.items()
        }
        solution = self._fit(ones, f, np.arange(len(X)))
        rest = f - sum(self._at_rows(part, values) for part, values in solution.items())
        self.pairs: list[tuple[int, ...]] = self._best_pairs(candidates, rest, n_pairs)
        parts = ones + self.pairs
        self.values: dict[tuple[int, ...], np.ndarray] = self._purify(
            self._fit(parts, f, np.arange(len(X)))
        )
        self.at_rows: dict[tuple[int, ...], np.ndarray] = self._cross_fit(parts, f)
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

    def _at_rows(self, part, values, rows=slice(None)):
        """Return a part in some rows, from its values at knots."""
        return self._basis(part, self._X[rows][:, list(part)]) @ values

    def _fit(self, parts, f, rows):
        """Fit some parts to f over some rows, by penalised least squares around the prior: return
        {part: values at knots}."""
        basis = [self._basis(part, self._X[rows][:, list(part)]) for part in parts]
        H, ends = np.hstack(basis), np.cumsum([0, *(b.shape[1] for b in basis)])
        prior = np.concatenate(
            [
                self._prior.get(part, np.zeros(b.shape[1]))
                for part, b in zip(parts, basis, strict=True)
            ]
        )
        G = H.T @ H
        for part, start, end in zip(parts, ends, ends[1:], strict=False):
            R = self.axes[part[0]].roughness() if len(part) == 1 else np.zeros((0, end - start))
            G[start:end, start:end] += RIDGE[len(part)] * np.eye(end - start) + SMOOTH * len(
                rows
            ) * (R.T @ R)
        values = prior + np.linalg.solve(G, H.T @ (f[rows] - H @ prior))
        return {part: values[a:b] for part, a, b in zip(parts, ends, ends[1:], strict=False)}

    def _best_pairs(self, candidates, rest, n):
        """Return at most n pairs, best first, whose functions, each alone, would explain most of
        the residual `rest`."""
        gains = {}
        for pair in candidates:
            H = self._basis(pair, self._X[:, list(pair)])
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
            H = self._basis(pair, self._X[:, list(pair)])
            shape = [len(self.axes[j].coarse) + 1 for j in pair]
            F, mass = values[pair].reshape(shape), H.sum(axis=0).reshape(shape)
            for _ in range(20):
                for k, j in enumerate(pair):
                    total = mass.sum(axis=1 - k)
                    mean = np.divide(
                        (mass * F).sum(axis=1 - k), total, out=np.zeros(len(total)), where=total > 0
                    )
                    F = F - (mean[:, None] if k == 0 else mean)
                    values[(j,)] = values[(j,)] + self._at_all_knots(j, mean)
            values[pair] = F.ravel()
        return {
            part: v - self._at_rows(part, v).mean() if len(part) == 1 else v
            for part, v in values.items()
        }

    def _at_all_knots(self, j, coarse):
        """Return a function of input j at all its knots, from its values at the coarse knots."""
        axis = self.axes[j]
        at = np.append(axis.knots, np.nan)
        return axis.hats(at, axis.coarse) @ coarse

    def _cross_fit(self, parts, f):
        """Fit the parts to each half of the rows, and return their values in the other half, where
        each has mean zero."""
        values = {part: np.zeros(len(f)) for part in parts}
        order = np.random.default_rng(0).permutation(len(f))
        for there in np.array_split(order, 2):
            here = np.setdiff1d(order, there)
            if len(here) and len(there):
                for part, fitted in self._purify(self._fit(parts, f, here)).items():
                    at_rows = self._at_rows(part, fitted, there)
                    values[part][there] = at_rows - at_rows.mean()
        return values


def r_squared(parts: Iterable[np.ndarray], f: np.ndarray) -> float:
    """Return the share of the variance of f that the sum of some parts accounts for, at least 0."""
    rest = sum(parts, -f)
    return max(0.0, 1.0 - float(rest.var() / (f.var() or 1.0))) if f.var() > 0 else 0.0


def approximate(
    model: Expansion, X: np.ndarray, importance: np.ndarray, n_pairs: int
) -> AdditiveApproximation:
    """Approximate a model of one output over rows of numbers X.

    importance : the importance of each column. The most important columns have functions of one
        input; functions of two are sought among pairs of the most important columns on which some
        term depends together.
    """
    levels, terms = column_levels(model), list(terms_of(model.features))
    seen = sorted({j for term in terms for j in term.columns.tolist()})
    columns = sorted(seen, key=lambda j: -importance[j])[:MOST_INPUTS]
    paired = set(columns[:MOST_PAIRED])
    together = [
        sorted(paired.intersection(term.columns.tolist())) for term in terms if not term.is_linear
    ]
    pairs = {pair for some in together for pair in combinations(some, 2)}
    axes = {j: Axis.from_column(X[:, j], levels[j]) for j in sorted(columns)}
    rows = subsample(X, BACKGROUND, np.random.default_rng(0))
    prior = {
        j: _partial_dependence(model, rows, j, np.append(axis.knots, np.nan), X[:, j])
        for j, axis in axes.items()
    }
    return AdditiveApproximation(
        X, decision_values(model, X)[0], axes, prior, sorted(pairs), n_pairs
    )


def _partial_dependence(model, rows, j, values, x):
    """Return the mean of f over some rows with column j set to each of some values.

    The last value is NaN, a missing cell; its mean is 0 if no cell of x, column j of X, is missing.
    """
    may_miss = np.isnan(x).any()
    values = values if may_miss else values[:-1]
    changed = np.tile(rows, (len(values), 1))
    changed[:, j] = np.repeat(values, len(rows))
    means = decision_values(model, changed)[0].reshape(len(values), -1).mean(axis=1)
    return means if may_miss else np.append(means, 0.0)
