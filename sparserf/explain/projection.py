"""Any function of the inputs as a sum of functions of one and two of them, as near to it as such a sum comes over some rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .terms import decision, levels_of, terms_of, thinned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model import SparseModel

# Knots of the function of one input, and of each of two: every third of those.
KNOTS, EVERY = 16, 3
# Levels of a category that have a value of their own in functions of one input, and of two: the most frequent; all others share
# one.
LEVELS, LEVELS_OF_TWO = 24, 12
# Inputs that get a function, those of most worth; those among which pairs are looked for; and values in all functions.
MOST_INPUTS, MOST_PAIRED, MOST_VALUES = 64, 14, 2_000
# A value at a knot is fitted as if so many rows more had said there what the mean of the model is (of functions of two: 0);
# second differences are penalised by SMOOTH a row; and pairs tell at least LEAST of what the functions of one input leave.
FEW, SMOOTH, LEAST = {1: 3.0, 2: 3.0}, 1e-5, 0.003
# Rows over which the model's mean is taken.
BACKGROUND = 100


@dataclass(frozen=True, eq=False)
class Axis:
    """How functions of one input are written: by their values at knots, linear between them, or at levels of a category, the
    first for those that are not known or have no value of their own; and by one where the input is missing.

    coarse : which of the knots there are in a function of two
    """

    knots: np.ndarray
    is_category: bool
    coarse: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, levels: Sequence[Any] | None) -> Self:
        if levels is not None:
            codes, of_two = frequent(x, levels, LEVELS), frequent(x, levels, LEVELS_OF_TWO)
            knots = np.append(-1.0, codes)
            return cls(knots, True, np.flatnonzero(np.isin(knots, np.append(-1.0, of_two))))
        there = x[~np.isnan(x)]
        if not len(there):
            return cls(np.zeros(1), False, np.zeros(1, int))
        knots = np.unique(np.quantile(there, np.linspace(0, 1, KNOTS), method="nearest"))
        return cls(knots, False, np.unique(np.append(np.arange(0, len(knots), EVERY), len(knots) - 1)))

    def hats(self, x: np.ndarray, some: slice | np.ndarray = slice(None)) -> np.ndarray:
        """(n, n_knots + 1): how much of the value at each of some knots is in that at x; last, where it is missing."""
        knots, is_missing = self.knots[some], np.isnan(x)
        if self.is_category:
            x = np.where(np.isin(np.floor(x), knots), np.floor(x), -1.0)
        at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, max(len(knots) - 2, 0))
        span = knots[np.minimum(at + 1, len(knots) - 1)] - knots[at]
        share = np.clip(np.divide(x - knots[at], span, out=np.zeros(len(x)), where=span > 0), 0.0, 1.0)
        out, row = np.zeros((len(x), len(knots) + 1)), np.arange(len(x))
        out[row, np.minimum(at + 1, len(knots) - 1)] = share
        out[row, at] += 1 - share
        out[is_missing] = 0.0
        out[is_missing, -1] = 1.0
        return out

    def roughness(self) -> np.ndarray:
        """Second differences of the values at knots, (n_knots - 2, n_knots + 1), at the knots' own distances."""
        m = len(self.knots)
        if self.is_category or m < 3:
            return np.zeros((0, m + 1))
        h, out = np.diff(self.knots) / np.ptp(self.knots), np.zeros((m - 2, m + 1))
        k = np.arange(m - 2)
        out[k, k], out[k, k + 1], out[k, k + 2] = 1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]
        return out * (1 / m)


def frequent(codes: np.ndarray, levels: Sequence[Any], most: int) -> np.ndarray:
    """The numbers of the levels of a category, ascending: of all, or of so many that most rows have."""
    if len(levels) <= most:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    there = codes[codes >= 0].astype(np.intp)  # neither missing nor unknown
    count = np.bincount(there, minlength=len(levels))
    return np.sort(np.argsort(-count, kind="stable")[:most]).astype(np.float64)


class Projection:
    """f ~ mean + sum_j f_j(x_j) + sum_jk f_jk(x_j, x_k), of least squares over the rows X, (n_rows, n_columns) of numbers.

    Where inputs depend on one another many sums come as near: of these the one is taken whose functions of one input are
    nearest to given ones, those by which the model itself depends on each.

    axes : {column: its Axis}; given : {column: values at its knots, and where missing}
    pairs : those that have a function; values : of each part, at its knots, and where missing
    at_rows : of each part its values in the rows, of a fit to other rows
    told : by how much all parts together, in these, leave less of the variance of f
    """

    def __init__(
        self, X: np.ndarray, f: np.ndarray, axes: dict[int, Axis], given: dict[int, np.ndarray],
        candidates: Sequence[tuple[int, int]], n_pairs: int,
    ):  # fmt: skip
        self._X, self.axes, f, ones = X, axes, f - f.mean(), [(j,) for j in axes]
        self._given = {(j,): values - self._at_rows((j,), values).mean() for j, values in given.items()}
        solution = self._fitted(ones, f, np.arange(len(X)))
        rest = f - sum(self._at_rows(part, values) for part, values in solution.items())
        self.pairs: list[tuple[int, ...]] = self._best(candidates, rest, n_pairs)
        parts = ones + self.pairs
        self.values: dict[tuple[int, ...], np.ndarray] = self._pure(self._fitted(parts, f, np.arange(len(X))))
        self.at_rows: dict[tuple[int, ...], np.ndarray] = self._elsewhere(parts, f)
        self.told: float = told(self.at_rows.values(), f)

    def at(self, part: tuple[int, ...], points: np.ndarray) -> np.ndarray:
        """The values of a part at points, (n, 1 or 2)."""
        return self._basis(part, points) @ self.values[part]

    def _basis(self, part, points):
        if len(part) == 1:
            return self.axes[part[0]].hats(points[:, 0])
        one, two = (self.axes[j].hats(points[:, k], self.axes[j].coarse) for k, j in enumerate(part))
        return (one[:, :, None] * two[:, None]).reshape(len(points), -1)

    def _at_rows(self, part, values, rows=slice(None)):
        return self._basis(part, self._X[rows][:, list(part)]) @ values

    def _fitted(self, parts, f, rows):
        """{part: values at knots} of least squares over these rows, which tell by how much they differ from the given ones."""
        basis = [self._basis(part, self._X[rows][:, list(part)]) for part in parts]
        H, ends = np.hstack(basis), np.cumsum([0, *(b.shape[1] for b in basis)])
        given = np.concatenate([self._given.get(part, np.zeros(b.shape[1])) for part, b in zip(parts, basis, strict=True)])
        G = H.T @ H
        for part, start, end in zip(parts, ends, ends[1:], strict=False):
            R = self.axes[part[0]].roughness() if len(part) == 1 else np.zeros((0, end - start))
            G[start:end, start:end] += FEW[len(part)] * np.eye(end - start) + SMOOTH * len(rows) * (R.T @ R)
        values = given + np.linalg.solve(G, H.T @ (f[rows] - H @ given))
        return {part: values[a:b] for part, a, b in zip(parts, ends, ends[1:], strict=False)}

    def _best(self, candidates, rest, n):
        """The pairs whose functions alone would tell most of the rest, most first."""
        gains = {}
        for pair in candidates:
            H = self._basis(pair, self._X[:, list(pair)])
            c, mass = H.T @ rest, H.sum(axis=0)
            gains[pair] = float(c @ (c / (mass + FEW[2])))  # as if each row were in one cell
        least = LEAST * float(rest @ rest)
        best = [pair for pair in sorted(gains, key=lambda pair: -gains[pair])[:n] if gains[pair] > least]
        sizes = [np.prod([len(self.axes[j].coarse) + 1 for j in pair]) for pair in best]
        room = MOST_VALUES - sum(len(axis.knots) + 1 for axis in self.axes.values())
        return best[: int(np.searchsorted(np.cumsum(sizes), room, side="right"))]

    def _pure(self, values):
        """The same sum, where a function of two has mean zero over the rows at each value of one input, one of one over all."""
        for pair in self.pairs:
            H = self._basis(pair, self._X[:, list(pair)])
            shape = [len(self.axes[j].coarse) + 1 for j in pair]
            F, mass = values[pair].reshape(shape), H.sum(axis=0).reshape(shape)
            for _ in range(20):
                for k, j in enumerate(pair):
                    total = mass.sum(axis=1 - k)
                    mean = np.divide((mass * F).sum(axis=1 - k), total, out=np.zeros(len(total)), where=total > 0)
                    F = F - (mean[:, None] if k == 0 else mean)
                    values[(j,)] = values[(j,)] + self._finer(j, mean)
            values[pair] = F.ravel()
        return {part: v - self._at_rows(part, v).mean() if len(part) == 1 else v for part, v in values.items()}

    def _finer(self, j, coarse):
        """A function of one input at all its knots, of its values at those in functions of two."""
        axis = self.axes[j]
        at = np.append(axis.knots, np.nan)
        return axis.hats(at, axis.coarse) @ coarse

    def _elsewhere(self, parts, f):
        """Fitted to each half of the rows, and looked at in the other, where each part has mean zero."""
        values = {part: np.zeros(len(f)) for part in parts}
        order = np.random.default_rng(0).permutation(len(f))
        for there in np.array_split(order, 2):
            here = np.setdiff1d(order, there)
            if len(here) and len(there):
                for part, fitted in self._pure(self._fitted(parts, f, here)).items():
                    at_rows = self._at_rows(part, fitted, there)
                    values[part][there] = at_rows - at_rows.mean()
        return values


def told(parts: Iterable[np.ndarray], f: np.ndarray) -> float:
    """What of the variance of f the sum of parts accounts for, at most 1: R^2."""
    rest = sum(parts, -f)
    return max(0.0, 1.0 - float(rest.var() / (f.var() or 1.0))) if f.var() > 0 else 0.0


def projected(model: SparseModel, X: np.ndarray, worth: np.ndarray, n_pairs: int) -> Projection:
    """The `Projection` of a model of one output, of rows of numbers; worth : of each column, by which some are chosen."""
    levels, terms = levels_of(model), list(terms_of(model.features))
    seen = sorted({j for term in terms for j in term.columns.tolist()})
    columns = sorted(seen, key=lambda j: -worth[j])[:MOST_INPUTS]
    paired = set(columns[:MOST_PAIRED])
    together = [sorted(paired.intersection(term.columns.tolist())) for term in terms if term.activation != "identity"]
    pairs = {pair for some in together for pair in combinations(some, 2)}
    axes = {j: Axis.of(X[:, j], levels[j]) for j in sorted(columns)}
    rows = thinned(X, BACKGROUND, np.random.default_rng(0))
    given = {j: _means(model, rows, j, np.append(axis.knots, np.nan), X[:, j]) for j, axis in axes.items()}
    return Projection(X, decision(model, X)[0], axes, given, sorted(pairs), n_pairs)


def _means(model, rows, j, values, x):
    """The mean of f over some rows whose column j has each of these values; 0 where it is missing, if it never is in x."""
    may_miss = np.isnan(x).any()
    values = values if may_miss else values[:-1]
    changed = np.tile(rows, (len(values), 1))
    changed[:, j] = np.repeat(values, len(rows))
    means = decision(model, changed)[0].reshape(len(values), -1).mean(axis=1)
    return means if may_miss else np.append(means, 0.0)
