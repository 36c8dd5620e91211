"""A model in functions of one and two inputs: all of it, where its terms see no more, or its projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..rows import as_rows, staged
from .projection import frequent, projected, told
from .terms import decision, dense, levels_of, terms_of, views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import DenseOrCSR
    from ..model import SparseModel
    from .importances import Importances

    Part = tuple[int, ...]

LARGEST = 1e100  # beyond which pictures overflow
# Levels of a category that are shown: the most frequent.
MOST_SHOWN = 12


@dataclass(frozen=True, eq=False)
class Effects:
    """values : of each part, inputs (j,) or (j, k), on the grids of its inputs
    grids : of each input; of a category the numbers of the levels that are shown
    at_rows : the parts in the rows; f : the model there
    is_whole : whether the parts add up to f
    """

    values: dict[Part, np.ndarray]
    grids: dict[int, np.ndarray]
    at_rows: dict[Part, np.ndarray]
    f: np.ndarray
    is_whole: bool

    @classmethod
    def of(cls, model: SparseModel, X: DenseOrCSR, worth: np.ndarray, n_points: int, n_pairs: int) -> Self:
        """Of a model of one output, in rows of numbers; worth : of each column, where not all can have a function."""
        levels, groups = levels_of(model), groups_of(model)
        seen = sorted(set().union(*(term.columns.tolist() for term in terms_of(model.features))))
        whole = {j: grid_of(column_of(X, j), n_points, levels[j]) for j in seen}
        grids = {j: grid if levels[j] is None else frequent(column_of(X, j), levels[j], MOST_SHOWN)
                 for j, grid in whole.items()}  # fmt: skip
        f = decision(model, X)[0]
        if groups is None:
            projection = projected(model, dense(X), worth, n_pairs)
            values = {part: projection.at(part, points(grids, part)).reshape([len(grids[j]) for j in part])
                      for part in projection.values}  # fmt: skip
            return cls(values, grids, projection.at_rows, f, False)
        places = {j: slice(None) if levels[j] is None else grid.astype(np.intp) for j, grid in grids.items()}
        values = {part: all_of[places[part[0]]] if len(part) == 1 else all_of[places[part[0]]][:, places[part[1]]]
                  for part, all_of in parts_of(model, groups, whole).items()}  # fmt: skip
        return cls(values, grids, parts_at_rows(model, X, groups, whole), f, True)

    def chosen(self, worth: Importances, n_parts: int, least: float) -> list[Part]:
        """The parts to show, curves first: an input counts by its share; a pair by what it adds to the Shapley values of both,
        half its own size each, and for no more than its inputs do, so that it comes after them."""
        total = worth.value.sum() or 1.0
        rank = {(j,): float(worth.share[j]) for j in worth.order.tolist() if (j,) in self.values}
        for pair in (part for part in self.values if len(part) == 2):
            size = np.abs(self.at_rows[pair] - self.at_rows[pair].mean()).mean()
            rank[pair] = min(size / 2 / total, *(worth.share[j] for j in pair))
        best = sorted(rank, key=lambda part: -rank[part])[:n_parts]
        return sorted([part for part in best if rank[part] >= least] or best[:1], key=len)

    def told(self, some: Sequence[Part]) -> float:
        """How much of the variance of f these parts together account for."""
        return told([self.at_rows[part] - self.at_rows[part].mean() for part in some], self.f)


def groups_of(model: SparseModel) -> dict[Part, list[int]] | None:
    """The terms by the inputs that they see, linear ones with each of theirs: {(j,) or (j, k): positions}; None where one sees
    more than two."""
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
    """{inputs: values on their grid}: the curves, and the surfaces without the curves that are in them."""
    parts = {(j,): np.zeros(len(grid)) for j, grid in grids.items()}
    every = {term.position: term for term in terms_of(model.features)}
    for inputs, positions in groups.items():
        at = _at(model.n_features_in, inputs, points(grids, inputs))
        values = _values(model, [every[k] for k in positions], at, inputs)
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
    """The parts at the rows of X: those of two inputs without the curves that are in them, which lie between their points."""
    every, parts = {term.position: term for term in terms_of(model.features)}, {(j,): np.zeros(X.shape[0]) for j in grids}
    for inputs, positions in groups.items():
        terms = [every[k] for k in positions]
        parts[inputs] = parts.get(inputs, 0.0) + _values(model, terms, X, inputs)
        if len(inputs) == 2:
            surface = _values(model, terms, _at(model.n_features_in, inputs, points(grids, inputs)), inputs)
            for k, j in enumerate(inputs):
                curve = surface.reshape([len(grids[i]) for i in inputs]).mean(axis=1 - k)
                between = np.interp(np.nan_to_num(column_of(X, j)), grids[j], curve)
                parts[(j,)], parts[inputs] = parts[(j,)] + between, parts[inputs] - between
    return parts


def _values(model, terms, X, inputs):
    """What terms add up to at rows of numbers; of linear ones the part of their inputs."""
    linear = [term for term in terms if term.activation == "identity" and len(inputs) == 1]
    others = [term.position for term in terms if term not in linear]
    rows = staged(as_rows(X, may_miss=True), model.features.stage)
    total = rows.apply(model.features.take(others), model.coef[others])
    U = views(model, X) if linear else None
    for term in linear:
        total = total + model.coef[term.position] * term.gain * term.parts(U)[term.columns.tolist().index(inputs[0])]
    return total


def points(grids: dict[int, np.ndarray], part: Part) -> np.ndarray:
    """Those of the grids of the inputs of a part, (n, 1 or 2), the last input's fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*(grids[j] for j in part), indexing="ij")], axis=1)


@np.errstate(over="ignore", invalid="ignore")
def grid_of(values: np.ndarray, n_points: int, levels: Sequence[Any] | None = None) -> np.ndarray:
    """Points from the 1st percentile to the 99th of the numbers that are there; or the levels of a category."""
    if len(values) == 0:
        raise ValueError("X must have at least one row, got none")
    if levels is not None:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    values = values[~np.isnan(values)] if np.isnan(values).any() and not np.isnan(values).all() else np.nan_to_num(values)
    grid = np.linspace(*np.percentile(values.astype(np.float64), [1, 99]), n_points)
    if not np.abs(grid).max() < LARGEST:
        raise ValueError(f"X must be below {LARGEST:g} to be drawn, got a column that is not: scale it")
    return grid


def column_of(X: DenseOrCSR, j: int) -> np.ndarray:
    """Column j of rows of numbers."""
    return X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].toarray().ravel()


def _at(width, inputs, values):
    """CSR rows that are zero but for these inputs, which ascend."""
    from scipy.sparse import csr_array

    n, k = values.shape
    return csr_array((values.ravel(), np.tile(inputs, n), np.arange(n + 1) * k), shape=(n, width))
