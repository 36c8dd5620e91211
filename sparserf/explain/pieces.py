"""What a model is made of, as formulas write it down: columns, their views, terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.moments import KINDS
from ..columns.table import UNKNOWN
from .terms import Term, names_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..columns.stage import ColumnStage
    from ..model import SparseModel


@dataclass(frozen=True, eq=False)
class View:
    """Of a column x: r = x or, where there are knots, what is between them; u = (r - center) / unit; where |u| > reach, and it
    is not None, sign(u) reach (2 - reach / |u|); u / (1 + (u / 3)^2)^1/2 where squeezed; fill, and it is not None, where x is
    missing. Or, where `is_it` is not None, high if x is that level, missing, or not 0, else low.

    table : of a category of many levels, u of each level, and of others
    known : None, or of a level, where the others that are known are low: (these, u of those that are not), and fill as above
    """

    column: int
    knots: tuple[np.ndarray, np.ndarray] | None = None
    center: float = 0.0
    unit: float = 1.0
    reach: float | None = None
    squeezed: bool = False
    fill: float | None = None
    is_it: tuple[str, Any] | None = None
    high: float = 1.0
    low: float = 0.0
    table: tuple[Any, ...] | None = None
    known: tuple[Sequence[Any], float] | None = None


@dataclass(frozen=True, eq=False)
class Pieces:
    """A model of the terms that are written: coef (n_outputs, n_terms) times the gain of each; size: theirs in each output;
    views: those that these see, by number, None where the columns are the inputs; left_out: how many other terms there are."""

    model: SparseModel
    names: Sequence[str]
    terms: list[Term]
    coef: np.ndarray
    size: np.ndarray
    intercept: np.ndarray
    views: dict[int, View] | None
    left_out: int

    @classmethod
    def of(cls, model: SparseModel, n_terms: int | None) -> Self:
        stage, coef = model.features.stage, np.atleast_2d(model.coef)
        every = {term.position: term for term in terms_of(model.features)}
        size = sizes(model)
        largest = np.argsort(-size.max(axis=0, initial=0.0), kind="stable")[:n_terms]
        some = [every[k] for k in largest.tolist()]
        coef = np.array([coef[:, term.position] * term.gain for term in some]).reshape(len(some), len(coef)).T
        seen = sorted({int(v) for term in some for v in term.views})
        views = None if stage is None or stage.is_identity else {v: view_of(stage, v) for v in seen}
        b, left_out = np.atleast_1d(model.intercept), size.shape[1] - len(some)
        return cls(model, names_of(model), some, coef, size[:, largest], b, views, left_out)

    def is_category(self, j: int) -> bool:
        table = None if self.model.features.stage is None else self.model.features.stage.table
        return table is not None and table.levels[j] is not None

    @property
    def columns(self) -> list[int]:
        """The columns that are seen, at least one."""
        seen = {view.column for view in self.views.values()} if self.views is not None else {
            int(v) for term in self.terms for v in term.views}  # fmt: skip
        return sorted(seen) or [0]

    @property
    def gammas(self) -> dict[float, np.ndarray]:
        """The envelopes that there are: {gamma: the views under it}."""
        return {term.gamma: term.views for term in self.terms if term.gamma is not None}


def sizes(model: SparseModel) -> np.ndarray:
    """|coef| sup|phi|, (n_outputs, n_terms); of a term without bound, with all views it sees at 1."""
    largest = np.array(model.features.largest_value)
    if np.isinf(largest).any():
        for term in terms_of(model.features):
            if np.isinf(largest[term.position]):
                largest[term.position] = abs(term.gain) * np.abs(term.weights).sum()
    return np.abs(np.atleast_2d(model.coef)) * largest


def view_of(stage: ColumnStage, v: int) -> View:
    kind, j = KINDS[stage.kind[v]], int(stage.column[v])
    if kind == "level":
        return _view_of_level(stage, v, j)
    if kind in ("missing", "present"):
        high, low = _shown(stage, v, {"missing": (np.nan, 0.0), "present": (1.0, 0.0)}[kind])
        return View(j, is_it=(kind, None), high=high, low=low)
    some = slice(stage.first_knot[v], stage.first_knot[v + 1])
    knots = (stage.knots[some], stage.scores[some]) if some.stop > some.start else None
    fill = float(stage.fill[v]) if stage.may_miss else None
    of_column = None if stage.table is None else stage.table.levels[j]
    table = None
    if of_column is not None:
        *of_levels, other = _shown(stage, v, [*range(len(of_column)), UNKNOWN])
        table = (dict(zip(of_column, of_levels, strict=True)), other)
    unit, reach = float(stage.unit[v]), float(stage.reach[v])
    bounded = knots is not None and unit > 0 and np.abs(knots[1] - stage.center[v]).max() <= reach * unit
    reach = None if np.isinf(reach) or unit == 0 or bounded else reach
    return View(j, knots, float(stage.center[v]), unit, reach, kind == "clipped", fill, table=table)


def _view_of_level(stage, v, j):
    of_column, k = stage.table.levels[j], int(stage.level[v])
    high, other, missing = _shown(stage, v, [k, UNKNOWN, np.nan])
    others = [level for level in of_column if level != of_column[k]]
    low = _shown(stage, v, [float(k == 0)])[0] if others else other
    is_plain = low == other == missing
    return View(j, is_it=("level", of_column[k]), high=high, low=low, fill=missing, known=None if is_plain else (others, other))


def _shown(stage, v, cells):
    """This view of some cells of its column."""
    X = np.zeros((len(cells), stage.n_columns))
    X[:, stage.column[v]] = cells
    return stage.take(np.array([v])).transform(X)[:, 0].tolist()


def joined(parts: Sequence[str]) -> str:
    """A sum of "+ a" and "- b"."""
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+ ") else "-" + text.removeprefix("- ") if text else "0.0"


def signed(value: float, text: str) -> str:
    return ("- " if value < 0 or (value == 0 and np.signbit(value)) else "+ ") + text


def powers(term: Term) -> list[tuple[int, int]]:
    """(view, power) of the factors of a product."""
    return [(v, int(p)) for v, p in zip(term.views.tolist(), term.weights, strict=True) if p]
