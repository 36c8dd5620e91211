"""A model as a sum of functions of one and of two inputs, as `plot.effects` draws it.

If every term is linear or depends on at most two inputs, the model is such a sum, and its functions are those of the functional
analysis of variance over a grid. For any other model they are its additive approximation (`additive.py`). A *part* is the tuple
of the inputs of one function: (j,) is drawn as a curve, (j, k) as a surface.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..model.terms import column_levels, terms_of
from .additive import approximate, frequent_levels, r_squared
from .evaluate import column_of, decision_values, encode, encoded_rows, to_dense

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import DenseOrCSR
    from ..model import SparseModel
    from .importances import Importances

    Part = tuple[int, ...]

# The largest number that can be drawn without overflow.
LARGEST = 1e100
# The number of levels of a category that are shown, the most frequent ones.
MOST_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Effects:
    """The functions of one and two inputs of a model, on grids and in rows.

    values : {part: its values on the grids of its inputs}
    grids : {input: its grid}; the grid of a category holds the codes of the levels that are shown
    at_rows : {part: its values in the rows}
    f : the decision values of the model in the rows
    is_whole : whether the parts add up to f
    """

    values: dict[Part, np.ndarray]
    grids: dict[int, np.ndarray]
    at_rows: dict[Part, np.ndarray]
    f: np.ndarray
    is_whole: bool

    @classmethod
    def from_model(cls, model: SparseModel, X: DenseOrCSR, importance: np.ndarray, n_points: int, n_pairs: int) -> Self:
        """Compute the parts of a model of one output, in rows of numbers X.

        importance : the importance of each column, by which an approximation chooses the columns that have functions
        """
        levels, groups = column_levels(model), groups_of(model)
        seen = sorted(set().union(*(term.columns.tolist() for term in terms_of(model.features))))
        whole = {j: grid_of(column_of(X, j), n_points, levels[j]) for j in seen}
        grids = {j: grid if levels[j] is None else frequent_levels(column_of(X, j), levels[j], MOST_SHOWN)
                 for j, grid in whole.items()}  # fmt: skip
        f = decision_values(model, X)[0]
        if groups is None:
            additive = approximate(model, to_dense(X), importance, n_pairs)
            values = {part: additive.at(part, points(grids, part)).reshape([len(grids[j]) for j in part])
                      for part in additive.values}  # fmt: skip
            return cls(values, grids, additive.at_rows, f, False)
        places = {j: slice(None) if levels[j] is None else grid.astype(np.intp) for j, grid in grids.items()}
        values = {part: all_of[places[part[0]]] if len(part) == 1 else all_of[places[part[0]]][:, places[part[1]]]
                  for part, all_of in parts_of(model, groups, whole).items()}  # fmt: skip
        return cls(values, grids, parts_at_rows(model, X, groups, whole), f, True)

    def choose(self, importances: Importances, n_parts: int, least: float) -> list[Part]:
        """Choose at most n_parts parts to show, the ones of the largest shares, at least `least`, or one; curves come first.

        The share of a curve is the importance of its input. The share of a surface is half of its mean size, which it adds to
        the Shapley values of both its inputs, but no more than the share of either input: it is chosen after them.
        """
        total = importances.value.sum() or 1.0
        rank = {(j,): float(importances.share[j]) for j in importances.order.tolist() if (j,) in self.values}
        for pair in (part for part in self.values if len(part) == 2):
            size = np.abs(self.at_rows[pair] - self.at_rows[pair].mean()).mean()
            rank[pair] = min(size / 2 / total, *(importances.share[j] for j in pair))
        best = sorted(rank, key=lambda part: -rank[part])[:n_parts]
        return sorted([part for part in best if rank[part] >= least] or best[:1], key=len)

    def r2(self, parts: Sequence[Part]) -> float:
        """Return the share of the variance of f that some parts together account for."""
        return r_squared([self.at_rows[part] - self.at_rows[part].mean() for part in parts], self.f)


def groups_of(model: SparseModel) -> dict[Part, list[int]] | None:
    """Group the terms by the inputs on which they depend: return {part: positions of terms}; None if a term has no group.

    A linear term is in the groups of all its inputs. Any other term of more than two inputs has no group.
    """
    groups = {}
    for term in terms_of(model.features):
        inputs = term.columns.tolist()
        if term.activation == "identity":
            for j in inputs:
                groups.setdefault((j,), []).append(term.position)
        elif len(inputs) > 2:
            return None
        elif inputs:
            groups.setdefault(tuple(inputs), []).append(term.position)
    return groups


def parts_of(model: SparseModel, groups: dict[Part, list[int]], grids: dict[int, np.ndarray]) -> dict[Part, np.ndarray]:
    """Return {part: values on its grid}; the means of surfaces along either side are moved into the functions of one input."""
    parts = {(j,): np.zeros(len(grid)) for j, grid in grids.items()}
    every = {term.position: term for term in terms_of(model.features)}
    for inputs, positions in groups.items():
        at = _at(model.n_features_in, inputs, points(grids, inputs))
        values = _sum_of_terms(model, [every[k] for k in positions], at, inputs)
        if len(inputs) == 1:
            parts[inputs] += values
            continue
        surface = values.reshape([len(grids[j]) for j in inputs])
        curves = surface.mean(axis=1), surface.mean(axis=0)
        for j, curve in zip(inputs, curves, strict=True):
            parts[(j,)] += curve
        parts[inputs] = surface - curves[0][:, None] - curves[1] + surface.mean()
    return {inputs: values - values.mean() for inputs, values in parts.items()}


def parts_at_rows(
    model: SparseModel, X: DenseOrCSR, groups: dict[Part, list[int]], grids: dict[int, np.ndarray]
) -> dict[Part, np.ndarray]:
    """Return {part: values in the rows of X}, where means of surfaces, interpolated on grids, are moved as in `parts_of`."""
    every, parts = {term.position: term for term in terms_of(model.features)}, {(j,): np.zeros(X.shape[0]) for j in grids}
    for inputs, positions in groups.items():
        terms = [every[k] for k in positions]
        parts[inputs] = parts.get(inputs, 0.0) + _sum_of_terms(model, terms, X, inputs)
        if len(inputs) == 2:
            surface = _sum_of_terms(model, terms, _at(model.n_features_in, inputs, points(grids, inputs)), inputs)
            for k, j in enumerate(inputs):
                curve = surface.reshape([len(grids[i]) for i in inputs]).mean(axis=1 - k)
                between = np.interp(np.nan_to_num(column_of(X, j)), grids[j], curve)
                parts[(j,)], parts[inputs] = parts[(j,)] + between, parts[inputs] - between
    return parts


def _sum_of_terms(model, terms, X, inputs):
    """Return the sum of some terms in rows of numbers; a linear term counts with its summand of the one input of the part."""
    linear = [term for term in terms if term.activation == "identity" and len(inputs) == 1]
    others = [term.position for term in terms if term not in linear]
    total = encoded_rows(model, X).apply(model.features.take(others), model.coef[others])
    U = encode(model, X) if linear else None
    for term in linear:
        total = total + model.coef[term.position] * term.gain * term.parts(U)[term.columns.tolist().index(inputs[0])]
    return total


def points(grids: dict[int, np.ndarray], part: Part) -> np.ndarray:
    """Return all points of the grid of a part, (n, 1 or 2), in the order in which its values are raveled."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*(grids[j] for j in part), indexing="ij")], axis=1)


@np.errstate(over="ignore", invalid="ignore")
def grid_of(values: np.ndarray, n_points: int, levels: Sequence[Any] | None = None) -> np.ndarray:
    """Return n_points from the 1st to the 99th percentile of the values, or for a category the codes of all levels."""
    if len(values) == 0:
        raise ValueError("X must have at least one row, got none")
    if levels is not None:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    values = values[~np.isnan(values)] if np.isnan(values).any() and not np.isnan(values).all() else np.nan_to_num(values)
    grid = np.linspace(*np.percentile(values.astype(np.float64), [1, 99]), n_points)
    if not np.abs(grid).max() < LARGEST:
        raise ValueError(f"X must be below {LARGEST:g} to be drawn, got a column that is not: scale it")
    return grid


def _at(width, inputs, values):
    """Return CSR rows of some width that are zero but for the values of some inputs, in ascending order."""
    from scipy.sparse import csr_array

    n, k = values.shape
    return csr_array((values.ravel(), np.tile(inputs, n), np.arange(n + 1) * k), shape=(n, width))
