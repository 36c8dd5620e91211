"""Any function of the inputs as a sum of functions of one and two of them, as near to it as such a sum comes over some rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .pieces import sizes
from .terms import decision, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model import SparseModel

# Knots of the function of one input, and of each of two: every third of those.
KNOTS, EVERY = 16, 3
# Inputs that get a function, those that largest terms see; and those among which pairs are looked for.
MOST_INPUTS, MOST_PAIRED = 64, 14
# A value at a knot is fitted as if so many rows more had said 0 there, of functions of one input and of two; second differences
# are penalised by SMOOTH a row; and pairs tell at least LEAST of what the functions of one input leave.
FEW, SMOOTH, LEAST = {1: 0.1, 2: 3.0}, 1e-5, 0.003


@dataclass(frozen=True, eq=False)
class Axis:
    """How functions of one input are written: by their values at knots, linear between them, or at each level of a category;
    and by one where the input is missing."""

    knots: np.ndarray
    is_category: bool

    @classmethod
    def of(cls, x: np.ndarray, levels: Sequence[Any] | None) -> Self:
        if levels is not None:
            return cls(np.arange(-1.0, max(len(levels), 1)), True)  # -1: a level that is not known
        there = x[~np.isnan(x)]
        if not len(there):
            return cls(np.zeros(1), False)
        return cls(np.unique(np.quantile(there, np.linspace(0, 1, KNOTS), method="nearest")), False)

    @property
    def coarse(self) -> np.ndarray:
        """The knots in a function of two."""
        if self.is_category:
            return np.arange(len(self.knots))
        return np.unique(np.append(np.arange(0, len(self.knots), EVERY), len(self.knots) - 1))

    def hats(self, x: np.ndarray, some: slice | np.ndarray = slice(None)) -> np.ndarray:
        """(n, n_knots + 1): how much of the value at each of some knots is in that at x; last, where it is missing."""
        knots, is_missing = self.knots[some], np.isnan(x)
        x = np.floor(x) if self.is_category else x
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


class Projection:
    """f ~ mean + sum_j f_j(x_j) + sum_jk f_jk(x_j, x_k), of least squares over the rows X, (n_rows, n_columns) of numbers.

    axes : {column: its Axis}; pairs : those that have a function; values : of each part, at its knots, and where missing
    shares : of the variance of f what each part tells, by its covariance with f in rows that it was not fitted to; told : their
        sum
    """

    def __init__(
        self, X: np.ndarray, f: np.ndarray, columns: Sequence[int], levels: Sequence[Any],
        candidates: Sequence[tuple[int, int]], n_pairs: int,
    ):  # fmt: skip
        self.axes: dict[int, Axis] = {j: Axis.of(X[:, j], levels[j]) for j in columns}
        self._X, f = X, f - f.mean()
        ones = [(j,) for j in columns]
        solution = self._fitted(ones, f, np.arange(len(X)))
        rest = f - sum(self._at_rows(part, values) for part, values in solution.items())
        self.pairs: list[tuple[int, ...]] = self._best(candidates, rest, n_pairs)
        parts = ones + self.pairs
        self.values: dict[tuple[int, ...], np.ndarray] = self._pure(self._fitted(parts, f, np.arange(len(X))))
        self.shares: dict[tuple[int, ...], float] = self._shares(parts, f)
        self.told: float = sum(self.shares.values())

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
        """{part: values at knots} of least squares over these rows."""
        basis = [self._basis(part, self._X[rows][:, list(part)]) for part in parts]
        H, ends = np.hstack(basis), np.cumsum([0, *(b.shape[1] for b in basis)])
        G = H.T @ H
        for part, start, end in zip(parts, ends, ends[1:], strict=False):
            R = self.axes[part[0]].roughness() if len(part) == 1 else np.zeros((0, end - start))
            G[start:end, start:end] += FEW[len(part)] * np.eye(end - start) + SMOOTH * len(rows) * (R.T @ R)
        values = np.linalg.solve(G, H.T @ f[rows])
        return {part: values[a:b] for part, a, b in zip(parts, ends, ends[1:], strict=False)}

    def _best(self, candidates, rest, n):
        """The pairs whose functions alone would tell most of the rest, most first."""
        gains = {}
        for pair in candidates:
            H = self._basis(pair, self._X[:, list(pair)])
            c, mass = H.T @ rest, H.sum(axis=0)
            gains[pair] = float(c @ (c / (mass + FEW[2])))  # as if each row were in one cell
        least = LEAST * float(rest @ rest)
        return [pair for pair in sorted(gains, key=lambda pair: -gains[pair])[:n] if gains[pair] > least]

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

    def _shares(self, parts, f):
        """Fitted to each half of the rows, and looked at in the other."""
        shares, whole = dict.fromkeys(parts, 0.0), f @ f or 1.0
        order = np.random.default_rng(0).permutation(len(f))
        for there in np.array_split(order, 2):
            here = np.setdiff1d(order, there)
            if len(here) and len(there):
                for part, values in self._pure(self._fitted(parts, f, here)).items():
                    told = self._at_rows(part, values, there)
                    shares[part] += float((told - told.mean()) @ f[there]) / whole
        return shares


def projected(model: SparseModel, X: np.ndarray, n_pairs: int) -> Projection:
    """The `Projection` of a model of one output, of rows of numbers."""
    table = None if model.features.stage is None else model.features.stage.table
    levels = [None] * X.shape[1] if table is None else table.levels
    terms, size = list(terms_of(model.features)), sizes(model)
    worth = dict.fromkeys(sorted({j for term in terms for j in term.columns.tolist()}), 0.0)
    for term in terms:
        for j in term.columns.tolist():
            worth[j] += size[term.position] / len(term.columns)
    columns = sorted(worth, key=lambda j: -worth[j])[:MOST_INPUTS]
    paired = set(columns[:MOST_PAIRED])
    together = [sorted(paired.intersection(term.columns.tolist())) for term in terms if term.activation != "identity"]
    seen = {pair for some in together for pair in combinations(some, 2)}
    return Projection(X, decision(model, X)[0], sorted(columns), levels, sorted(seen), n_pairs)
