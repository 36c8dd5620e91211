"""What each input is worth to a model: the shares of Shapley values, and of variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .._base import html as html
from .._base.checks import check_choice, check_integer, check_rng
from .outputs import of_output
from .shapley import background_of, played, values
from .terms import decision, dense, names_of, numbers, terms_of, thinned, views

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..model import SparseModel

ImportanceMeasure: TypeAlias = Literal["shapley", "variance", "main", "total"]

# Rows that are looked at, where the user leaves the choice; and orders of the inputs of a long term.
ROWS, ORDERS = 1_000, 32
# Rows of shuffled columns, about; fewer where they would be more than so many numbers, but not below FEWEST.
SHUFFLED, FEWEST, AT_ONCE = 4_000, 200, 2**24
# The columns of a printed table, by measure: the share, and what it is a share of.
HEADS = {"shapley": ("share", "|Shapley|"), "variance": ("share", "covariance"), "main": ("main", "variance"),
         "total": ("total", "variance")}  # fmt: skip


class InputRow(NamedTuple):
    """One input in a table of importances.

    column : int, in X; name : str; share : float, of all; value : float, what that is a share of (`Importances`)
    """

    column: int
    name: str
    share: float
    value: float


@dataclass(frozen=True, eq=False)
class Importances:
    """What each input is worth, by `SparseModel.importances`, where the arrays are described.

    measure : which; names : of the inputs; order : the inputs, of the largest share first; rows : the same as a table, in this
    order
    """

    measure: ImportanceMeasure
    names: tuple[str, ...]
    share: np.ndarray
    value: np.ndarray
    order: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", np.argsort(-self.share, kind="stable"))

    @property
    def rows(self) -> tuple[InputRow, ...]:
        return tuple(InputRow(j, self.names[j], float(self.share[j]), float(self.value[j])) for j in self.order.tolist())

    def __str__(self) -> str:
        return table([row for row in self.rows if row.value != 0], HEADS[self.measure])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.page(html_table([row for row in self.rows if row.value != 0], HEADS[self.measure]))


def percent(share: float) -> str:
    """A share as it is shown, in tables and pictures alike."""
    return f"{round(100 * share, 1) + 0.0:.1f} %"  # no -0.0


def table(rows: Sequence[InputRow], heads: tuple[str, str]) -> str:
    """Rows with their heads, as text."""
    width = max([12, *(len(row.name) for row in rows)])
    lines = [f"{'':{width}} {heads[0]:>7}  {heads[1]:>10}"]
    return "\n".join(lines + [f"{row.name:{width}} {percent(row.share):>7}  {row.value:10.4g}" for row in rows])


def html_table(rows: Sequence[InputRow], heads: tuple[str, str]) -> str:
    """Rows with their heads, as HTML, with bars; below zero there is none."""
    largest = max((row.share for row in rows), default=0.0) or 1.0
    cells = (
        [html.text(row.name), html.bar(max(row.share / largest, 0.0)), percent(row.share), f"{row.value:.4g}"] for row in rows
    )
    return html.table(["input", "", *heads], cells, n_left=2)


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows of numbers that importances are of, those of the background, and where the seed of what follows stands."""

    numbers: DenseOrCSR
    background: DenseOrCSR
    rng: np.random.Generator

    @classmethod
    def of(
        cls, model: SparseModel, X: MatrixLike, background: MatrixLike | None = None, n_rows: int = ROWS, rng: Seed = 0
    ) -> Self:
        n_rows, rng = check_integer("n_rows", n_rows, 2), check_rng(rng)
        X = numbers(model, X, n_rows, rng)
        if X.shape[0] == 0:
            raise ValueError("X must have at least one row, got none")
        return cls(X, background_of(model, X, background, rng), rng)

    def importances(
        self, model: SparseModel, measure: ImportanceMeasure = "shapley", n_permutations: int = ORDERS
    ) -> Importances:
        """Those of these rows."""
        check_choice("measure", measure, MEASURES)
        names = names_of(model)
        value, whole = MEASURES[measure](model, self.numbers, self.background, n_permutations, self.rng)
        share = value / whole if whole > 0 else np.zeros_like(value)
        return Importances(measure, tuple(names[j] for j in range(len(names))), share, value)


def importances(
    model: SparseModel, X: MatrixLike, background: MatrixLike | None, measure: ImportanceMeasure, n_rows: int,
    n_permutations: int, rng: Seed, output: object = None,
) -> Importances:  # fmt: skip
    """`SparseModel.importances`."""
    model = model if output is None else of_output(model, output)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    return Sample.of(model, X, background, n_rows, rng).importances(model, measure, n_permutations)


def _shapley(model, X, B, n_permutations, rng):
    """(the mean size of the Shapley values of each input, added up over the outputs; their sum)."""
    size = np.abs(np.atleast_3d(values(model, X, views(model, B), n_permutations, rng))).mean(axis=0).sum(axis=1)
    return size, size.sum()


def _variance(model, X, B, n_permutations, rng):
    """(the covariances of the Shapley values of each input with f, added up over the outputs; their sum)."""
    phi = np.atleast_3d(values(model, X, views(model, B), n_permutations, rng))
    f = phi.sum(axis=1, keepdims=True)
    covariance = ((phi - phi.mean(axis=0)) * (f - f.mean(axis=0))).mean(axis=0).sum(axis=1)
    return covariance, covariance.sum()


def _main(model, _, B, n_permutations, rng):
    """(the variance of E[f | x_j] of each column, added up over the outputs, of independent inputs as in the background; that
    of f)."""
    coef, V, effect = np.atleast_2d(model.coef), views(model, B), {}
    for term in terms_of(model.features):
        c = coef[:, term.position, None]
        for j, given in zip(term.columns.tolist(), _effects(term, term.parts(V), rng), strict=True):
            effect[j] = effect.get(j, 0.0) + c * given
    main = np.zeros(model.n_features_in)
    for j, given in effect.items():
        main[j] = given.var(axis=1).sum()
    return main, decision(model, _shuffled(B, rng)).var(axis=1).sum()


def _effects(term, parts, rng):
    """Of a term the mean given each of its columns, but for a constant."""
    if term.activation == "identity":
        return term.gain * parts
    if term.is_product:
        mean = parts.mean(axis=1)
        others = [np.prod(np.delete(mean, k)) for k in range(len(mean))]
        return (term.constant * np.array(others)[:, None] * parts).real
    shuffled = rng.permuted(parts, axis=1)
    return np.concatenate([played(term, part[None], shuffled.sum(axis=0)[None] - shuffled[k])
                           for k, part in enumerate(parts)])  # fmt: skip


def _most_shuffled(n_columns: int) -> int:
    return max(FEWEST, min(SHUFFLED, AT_ONCE // n_columns))


def _shuffled(B, rng):
    """Rows of which each column has the entries of B's, in an order of its own."""
    most = _most_shuffled(B.shape[1])
    B = dense(thinned(B, most, rng))
    return rng.permuted(np.tile(B, (-(-most // len(B)), 1)), axis=0)


def _total(model, _, B, n_permutations, rng):
    """(half the mean square of what changes in f when one column is drawn anew, the variance of f), over rows of independent
    columns; added up over the outputs."""
    X, other = _shuffled(B, rng), _shuffled(B, rng)
    f, total = decision(model, X), np.zeros(model.n_features_in)
    for j in sorted({j for term in terms_of(model.features) for j in term.columns.tolist()}):
        kept = X[:, j].copy()
        X[:, j] = other[:, j]
        total[j] = ((decision(model, X) - f) ** 2).mean(axis=1).sum() / 2
        X[:, j] = kept
    return total, f.var(axis=1).sum()


MEASURES: dict[str, Callable[..., Any]] = {"shapley": _shapley, "variance": _variance, "main": _main, "total": _total}
