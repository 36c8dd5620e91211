"""What columns and terms do over some rows, in numbers to draw: curves, maps of pairs, and worth.

The effect of a column is its partial dependence, the mean of f over the rows with the column set to
each of some values, less the mean of f. A row's own curve differs from it where the column acts
together with others: the band holds the shapes of the rows between two quantiles.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..expansion.terms import encoder_of, term_sizes, terms_of
from ..explain.evaluate import encoded_rows, subsample, to_dense
from ..explain.shapley import ShapleyValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expansion import Expansion
    from ..features import Term
    from .columns import PageColumn

# The rows over which effects are means, and random orders for terms of many columns.
BACKGROUND = 100
ORDERS = 8
# The most numbers of rows that are made at a time.
AT_ONCE = 2_000_000
# The most columns that have a curve, of each output, and the points of a curve.
MOST_CURVES = 40
POINTS = 40
# The most levels of a curve, those of the largest shares.
MOST_LEVELS = 16
# The quantiles of the band.
BAND = (0.1, 0.9)
# The most maps of each output, the points of a side, and the rows over which they are means.
MOST_MAPS = 6
SIDE = 12
ROWS_OF_MAPS = 20
# A pair whose terms see more columns than this has no map: there are many such pairs.
MOST_TOGETHER = 8
# A map whose mean size is at most this share of the largest is left out.
LEAST = 0.02


class EffectRows:
    """The effects of a model over some rows of numbers, dense, of which few are drawn.

    f is before limits, in units of the decision function.

    n_rows : the number of rows over which curves are means, of the rows given
    """

    def __init__(self, model: Expansion, rows: np.ndarray):
        self.n_rows = min(max(10, min(BACKGROUND, AT_ONCE // (POINTS * rows.shape[1]))), len(rows))
        self._model, self._rows = model, subsample(rows, self.n_rows, np.random.default_rng(0))
        self._terms = list(terms_of(model.features))
        self._coef = np.atleast_2d(model.coef)

    def worth_of_columns(self) -> np.ndarray:
        """Return the mean size of the Shapley values, (n_columns, n_outputs)."""
        rows, rng = self._rows, np.random.default_rng(0)
        shapley_values = ShapleyValues(self._model, rows, len(rows), ORDERS, rng)
        total = np.zeros((self._model.n_features_in, len(self._coef)))
        for _, values in shapley_values.by_slices(rows):
            total[shapley_values.columns] += np.abs(values).sum(axis=2).T
        return total / len(rows)

    def of_terms(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by how much each term moves f, on average over the rows, (n_outputs, n_terms); and
        the share of the rows in which it is not 0, (n_terms,)."""
        features = self._model.features
        encodings = to_dense(encoder_of(features).transform(rows.astype(np.float64)))
        phi = features.encoded(None).transform(encodings)
        away = np.abs(phi - phi.mean(axis=0)).mean(axis=0)
        return np.abs(self._coef) * away, (phi != 0).mean(axis=0)

    def curve(self, column: PageColumn) -> dict[str, Any]:
        """Return the curve of a column: its points, for each output the values and the band, and
        the value of a missing cell, where rows have some."""
        points, j = points_of(column), column.place
        cells = np.append(points, np.nan) if column.share_missing > 0 else points
        rows = np.tile(self._rows, (len(cells), 1))
        rows[:, j] = np.repeat(cells, len(self._rows))
        terms = [term for term in self._terms if j in term.columns]
        f = self._sum_of(terms, rows).reshape(len(self._coef), len(cells), -1)
        f -= self._sum_of(terms, self._rows).mean(axis=1)[:, None, None]
        mean, of_missing = np.split(f.mean(axis=2), [len(points)], axis=1)
        f = f[:, : len(points)]
        shape = f - f.mean(axis=1, keepdims=True) + mean.mean(axis=1)[:, None, None]
        low, high = np.quantile(shape, BAND, axis=2)
        band = {"mean": mean, "low": low, "high": high}
        return {"points": points.tolist(), **band, "missing": of_missing[:, :1].ravel()}

    def map(self, one: PageColumn, two: PageColumn) -> dict[str, Any]:
        """Return what two columns do together beyond their curves: the points of both, and a matrix
        for each output whose means along both sides are 0."""
        sides = [points_of(column, SIDE, SIDE) for column in (one, two)]
        terms = [
            term for term in self._terms if {one.place, two.place} <= set(term.columns.tolist())
        ]
        terms = [term for term in terms if not term.is_linear]
        background = self._rows[:ROWS_OF_MAPS]
        rows = np.tile(background, (len(sides[0]) * len(sides[1]), 1))
        at = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
        rows[:, [one.place, two.place]] = np.repeat(at, len(background), axis=0)
        f = self._sum_of(terms, rows).reshape(len(self._coef), *map(len, sides), -1).mean(axis=3)
        f = f - f.mean(axis=1, keepdims=True)
        return {
            "points": [side.tolist() for side in sides],
            "value": f - f.mean(axis=2, keepdims=True),
        }

    def pairs(self, columns: Sequence[PageColumn]) -> list[tuple[int, int]]:
        """Return the pairs of places in `columns` that terms see together, the largest terms
        first."""
        place = {column.place: k for k, column in enumerate(columns)}
        size = term_sizes(self._model.features, self._model.coef).max(axis=0, initial=0.0)
        total: dict[tuple[int, int], float] = {}
        for term in self._terms:
            if term.is_linear or len(term.columns) > MOST_TOGETHER:
                continue
            seen = sorted(place[j] for j in term.columns.tolist() if j in place)
            for pair in combinations(seen, 2):
                more = size[term.position] / len(term.columns)
                total[pair] = total.get(pair, 0.0) + more
        return sorted(total, key=lambda pair: -total[pair])

    def _sum_of(self, terms: Sequence[Term], rows: np.ndarray) -> np.ndarray:
        """Return the sum of some terms in rows, (n_outputs, n_rows)."""
        if not terms:
            return np.zeros((len(self._coef), len(rows)))
        at = [term.position for term in terms]
        features = self._model.features.take(at)
        return encoded_rows(self._model, rows).apply(features, self._coef[:, at])


def points_of(column: PageColumn, most: int = POINTS, most_levels: int = MOST_LEVELS) -> np.ndarray:
    """Return the points at which a column is drawn: numbers between its ends, or its values where
    these are few; the levels of the largest shares, in their order."""
    if column.levels is not None:
        if not len(column.levels):
            return np.array([-1.0])
        return np.sort(np.argsort(-column.shares, kind="stable")[:most_levels]).astype(np.float64)
    if column.values is not None and len(column.values) <= most:
        return column.values.astype(np.float64)
    low, high = column.drawn_ends
    return np.linspace(low, high, most) if high > low else np.array([low])
