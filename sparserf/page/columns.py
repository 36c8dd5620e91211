"""What a page says of the columns: their ranges, quantiles, levels, and a typical cell.

It comes from rows or, without rows, from what the model knows of its training rows: ranges, the
quantiles and centres of encodings, the shares of levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.checks import is_sparse
from ..columns.clocks import DATES
from ..columns.encoder import LARGEST_NUMBER
from ..columns.kinds import LEVEL, MISSING, NUMBER
from ..expansion.terms import column_clocks, column_levels, column_names, column_values
from ..explain.evaluate import column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import DenseOrCSR
    from ..columns.clocks import Clock
    from ..columns.encoder import ColumnEncoder
    from ..expansion import Expansion

# The quantiles that are marked on the axis of a column.
MARKS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
# The quantiles that are kept of a column of numbers; cells are drawn from them where there are no
# rows.
QUANTILES = np.linspace(0, 1, 65)


@dataclass(frozen=True, eq=False)
class PageColumn:
    """A column that terms use.

    place, name : its index in X, and its name
    levels : those of a category, else None; its numbers are their places
    clock : what the numbers of a column of times are, else None
    values : the numbers that it took, where these are few whole ones, else None
    quantiles : its numbers at `QUANTILES`, ascending; all the same where nothing is known
    shares : the share of the rows of each level, of sum 1; None of numbers
    share_missing : the share of the rows where it is missing
    may_miss : whether the model takes missing cells
    """

    place: int
    name: str
    levels: Sequence[Any] | None
    clock: Clock | None
    values: np.ndarray | None
    quantiles: np.ndarray
    shares: np.ndarray | None
    share_missing: float
    may_miss: bool = field(default=True)

    @property
    def typical(self) -> float:
        """The number of a typical cell: the median, rounded or the value near it, or the most
        frequent level."""
        if self.levels is not None:
            return float(np.argmax(self.shares)) if len(self.levels) else np.nan
        low, median, high = self.at((0.0, 0.5, 1.0)).tolist()
        if self.values is not None:
            return float(self.values[np.argmin(np.abs(self.values - median))])
        is_date = self.clock is not None and self.clock.kind == DATES
        rounded = float(round(median)) if is_date else float(f"{median:.4g}")
        return min(max(rounded, low), high)

    @property
    def marks(self) -> list[float]:
        """The numbers at `MARKS`, those that differ."""
        return np.unique(self.at(MARKS)).tolist()

    @property
    def drawn_ends(self) -> tuple[float, float]:
        """The ends between which numbers are drawn: without the farthest hundredths, unless all
        others are equal."""
        low, high = self.at((0.01, 0.99)).tolist()
        return (low, high) if high > low else tuple(self.at((0.0, 1.0)).tolist())

    def at(self, shares: Sequence[float]) -> np.ndarray:
        """Return the quantiles of some shares."""
        return np.interp(shares, QUANTILES, self.quantiles)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n cells as numbers."""
        if self.levels is not None:
            if not len(self.levels):
                return np.full(n, np.nan)
            return rng.choice(len(self.levels), n, p=self.shares).astype(np.float64)
        drawn = self.at(rng.random(n))
        if self.values is not None:
            drawn = self.values[np.abs(drawn[:, None] - self.values).argmin(axis=1)]
        if self.may_miss:
            drawn[rng.random(n) < self.share_missing] = np.nan
        return drawn


def columns_of(model: Expansion, X: DenseOrCSR | None) -> list[PageColumn]:
    """Return the columns that terms use, from rows of numbers or, where X is None, from what the
    model knows."""
    encoder, names = model.features.encoder, column_names(model)
    levels, clocks, values = column_levels(model), column_clocks(model), column_values(model)
    X = X.tocsc() if is_sparse(X) else X
    columns = []
    for j in np.flatnonzero(model.features.columns_seen).tolist():
        of_rows = _of_encoder(model, j) if X is None else _of_cells(column_of(X, j), levels[j])
        may_miss = encoder is not None and encoder.may_miss
        about = (str(names[j]), levels[j], clocks.get(j), values.get(j))
        columns.append(PageColumn(j, *about, *of_rows, may_miss))
    return columns


def made_rows(model: Expansion, columns: Sequence[PageColumn], n: int) -> np.ndarray:
    """Return n rows of numbers, each cell drawn by itself; columns that no term uses are 0."""
    rows, rng = np.zeros((n, model.n_features_in)), np.random.default_rng(0)
    for column in columns:
        rows[:, column.place] = column.draw(n, rng)
    return rows


def _of_cells(x, levels):
    """Return (quantiles, shares of levels, share of missing cells) of a column of rows."""
    there = x[~np.isnan(x)].astype(np.float64)
    missing = float(np.isnan(x).mean())
    if levels is not None:
        count = np.bincount(there[there >= 0].astype(np.intp), minlength=max(len(levels), 1)) + 1e-9
        return np.zeros(len(QUANTILES)), count / count.sum(), missing
    if not len(there):
        return np.zeros(len(QUANTILES)), None, missing
    return np.quantile(there, QUANTILES), None, missing


def _of_encoder(model, j):
    """Return (quantiles, shares of levels, share of missing cells) of a column as far as the model
    knows them."""
    encoder = model.features.encoder
    at = np.zeros(0, int) if encoder is None else np.flatnonzero(encoder.column == j)
    levels = column_levels(model)[j]
    missing = sum(float(encoder.center[v]) for v in at if encoder.kind[v] == MISSING)
    missing = min(max(missing, 0.0), 1.0)
    if levels is not None:
        return np.zeros(len(QUANTILES)), _shares_of_levels(encoder, at, len(levels)), missing
    return _quantiles(encoder, at, model.ranges.known(j)), None, missing


def _quantiles(encoder: ColumnEncoder | None, at: np.ndarray, ends: tuple[float, float] | None):
    """Return quantiles of a column of numbers: those of its ranks or, between the ends, those of a
    normal distribution of its centre and unit, or around its median."""
    middle, unit = [], []
    for v in at.tolist():
        each = encoder.encoding(v)
        if each.kind != NUMBER:
            continue
        if each.knots is not None and not each.is_held:
            knots, scores = each.knots
            of_knots = [NormalDist().cdf(score) for score in scores]
            quantiles = np.interp(QUANTILES, of_knots, knots)
            if ends is not None:
                quantiles[[0, -1]] = ends
            return np.maximum.accumulate(quantiles)
        if each.center or not np.isinf(each.reach):
            middle, unit = [each.center], [each.unit]
        elif not middle and each.fill and abs(each.fill) < LARGEST_NUMBER:
            middle = [each.fill]
    if ends is None:
        low = middle[0] if middle else 0.0
        ends = low - 3 * (unit or [1.0])[0], low + 3 * (unit or [1.0])[0]
    center = min(max(middle[0], ends[0]), ends[1]) if middle else (ends[0] + ends[1]) / 2
    if not unit or not unit[0] > 0:
        return np.interp(QUANTILES, [0, 0.5, 1], [ends[0], center, ends[1]])
    of_normal = [NormalDist(center, unit[0]).inv_cdf(share) for share in QUANTILES[1:-1]]
    return np.clip([ends[0], *of_normal, ends[1]], *ends)


def _shares_of_levels(encoder: ColumnEncoder, at: np.ndarray, n: int):
    """Return the shares of n levels: the centres of their indicators, where levels without share
    the rest alike; or shares that fall with the ranks of their frequency."""
    if n == 0:
        return np.ones(1)
    shares = np.full(n, np.nan)
    for v in at.tolist():
        each = encoder.encoding(v)
        if each.kind == LEVEL and 0 < each.center < 1:
            shares[int(each.level)] = each.center
        elif each.kind == NUMBER and each.knots is not None and np.isnan(shares).all():
            ranks = each.knots[1][1:]
            if sorted(ranks.tolist()) == list(range(n)):
                shares = 1 / (1 + ranks)
    is_open = np.isnan(shares)
    shares[is_open] = max(1 - shares[~is_open].sum(), 1e-3) / max(is_open.sum(), 1)
    return shares / shares.sum()
