"""How much each input matters to a model: shares of Shapley values, and of variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from .._base import html as html
from .._base.checks import check_choice, check_integer, check_rng
from ..model.outputs import of_output
from ..model.terms import column_names, terms_of
from .evaluate import decision_values, encode, read_numbers, subsample, to_dense
from .shapley import background_of, shapley_values, worth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..model import SparseModel

ImportanceMeasure: TypeAlias = Literal["shapley", "variance", "main", "total"]

# The default numbers of rows, and of random permutations of the inputs of a term of many inputs.
ROWS, ORDERS = 1_000, 32
# The number of rows with shuffled columns is about SHUFFLED: fewer if they would have more than AT_ONCE numbers, but at least
# FEWEST.
SHUFFLED, FEWEST, AT_ONCE = 4_000, 200, 2**24
# The heads of the columns of share and value in a printed table: {measure: (share, value)}.
HEADS = {"shapley": ("share", "|Shapley|"), "variance": ("share", "covariance"), "main": ("main", "variance"),
         "total": ("total", "variance")}  # fmt: skip


class InputRow(NamedTuple):
    """One input in a table of importances.

    column : int
        The index of the input in X.
    name : str
    share : float
        Its share of all importances.
    value : float
        Its importance, in the unit of the measure.
    """

    column: int
    name: str
    share: float
    value: float


@dataclass(frozen=True, eq=False)
class Importances:
    """How much each input matters. Made by `SparseModel.importances`; prints as a table.

    Attributes
    ----------
    share, value : ndarray of shape (n_features_in,)
        The share and the importance of each input, as the measure defines them.
    order : ndarray of shape (n_features_in,)
        The permutation of the inputs that puts the largest share first.
    rows : tuple of InputRow
        The same as a table, the largest share first.
    measure : {"shapley", "variance", "main", "total"}
    names : tuple of str
        The names of the inputs.
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
        """The importances as the rows of a table, the largest share first."""
        return tuple(InputRow(j, self.names[j], float(self.share[j]), float(self.value[j])) for j in self.order.tolist())

    def __str__(self) -> str:
        return table([row for row in self.rows if row.value != 0], HEADS[self.measure])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.page(html_table([row for row in self.rows if row.value != 0], HEADS[self.measure]))


def percent(share: float) -> str:
    """Return a share as per cent, as tables and pictures show it."""
    return f"{round(100 * share, 1) + 0.0:.1f} %"  # no -0.0


def table(rows: Sequence[InputRow], heads: tuple[str, str]) -> str:
    """Return a table of inputs as text, with the heads of its two columns of numbers."""
    width = max([12, *(len(row.name) for row in rows)])
    lines = [f"{'':{width}} {heads[0]:>7}  {heads[1]:>10}"]
    return "\n".join(lines + [f"{row.name:{width}} {percent(row.share):>7}  {row.value:10.4g}" for row in rows])


def html_table(rows: Sequence[InputRow], heads: tuple[str, str]) -> str:
    """Return a table of inputs as HTML, with a bar for each share that is not negative."""
    largest = max((row.share for row in rows), default=0.0) or 1.0
    cells = (
        [html.text(row.name), html.bar(max(row.share / largest, 0.0)), percent(row.share), f"{row.value:.4g}"] for row in rows
    )
    return html.table(["input", "", *heads], cells, n_left=2)


@dataclass(frozen=True, eq=False)
class ImportanceSample:
    """The rows from which importances are computed: some rows of X, as numbers, and a background.

    numbers, background : the rows of X and the background rows, as numbers
    rng : the generator that drew them, from which random permutations and shuffled columns are drawn next
    """

    numbers: DenseOrCSR
    background: DenseOrCSR
    rng: np.random.Generator

    @classmethod
    def from_rows(
        cls, model: SparseModel, X: MatrixLike, background: MatrixLike | None = None, n_rows: int = ROWS, rng: Seed = 0
    ) -> Self:
        """Draw at most n_rows rows of X, and the background where that is None."""
        n_rows, rng = check_integer("n_rows", n_rows, 2), check_rng(rng)
        X = read_numbers(model, X, n_rows, rng)
        if X.shape[0] == 0:
            raise ValueError("X must have at least one row, got none")
        return cls(X, background_of(model, X, background, rng), rng)

    def importances(
        self, model: SparseModel, measure: ImportanceMeasure = "shapley", n_permutations: int = ORDERS
    ) -> Importances:
        """Compute the importances of a model over these rows."""
        check_choice("measure", measure, MEASURES)
        names = column_names(model)
        value, whole = MEASURES[measure](model, self.numbers, self.background, n_permutations, self.rng)
        share = value / whole if whole > 0 else np.zeros_like(value)
        return Importances(measure, tuple(names[j] for j in range(len(names))), share, value)


def importances(
    model: SparseModel, X: MatrixLike, background: MatrixLike | None, measure: ImportanceMeasure, n_rows: int,
    n_permutations: int, rng: Seed, output: object = None,
) -> Importances:  # fmt: skip
    """Measure how much each input matters: see `SparseModel.importances`."""
    model = model if output is None else of_output(model, output)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    return ImportanceSample.from_rows(model, X, background, n_rows, rng).importances(model, measure, n_permutations)


# -- The measures: functions of a model, rows of numbers X, background rows B, n_permutations and rng. They return the value of
#    each input, added up over the outputs, and the total by which a value is divided to give its share.


def _shapley(model, X, B, n_permutations, rng):
    """Return (the mean size of the Shapley values of each input, the sum over all inputs)."""
    phi = np.atleast_3d(shapley_values(model, X, encode(model, B), n_permutations, rng))
    size = np.abs(phi).mean(axis=0).sum(axis=1)
    return size, size.sum()


def _variance(model, X, B, n_permutations, rng):
    """Return (the covariance of the Shapley values of each input with f, the sum over all inputs: the variance of f)."""
    phi = np.atleast_3d(shapley_values(model, X, encode(model, B), n_permutations, rng))
    f = phi.sum(axis=1, keepdims=True)
    covariance = ((phi - phi.mean(axis=0)) * (f - f.mean(axis=0))).mean(axis=0).sum(axis=1)
    return covariance, covariance.sum()


def _main(model, _, B, n_permutations, rng):
    """Return (the variance of E[f | x_j], the variance of f), for independent inputs, each distributed as in the background."""
    coef, V, effect = np.atleast_2d(model.coef), encode(model, B), {}
    for term in terms_of(model.features):
        c = coef[:, term.position, None]
        for j, mean in zip(term.columns.tolist(), _conditional_means(term, term.parts(V), rng), strict=True):
            effect[j] = effect.get(j, 0.0) + c * mean
    main = np.zeros(model.n_features_in)
    for j, mean in effect.items():
        main[j] = mean.var(axis=1).sum()
    return main, decision_values(model, _shuffled(B, rng)).var(axis=1).sum()


def _conditional_means(term, parts, rng):
    """Return E[term | x_j], up to a constant, for each column j of a term in the background rows: (n_columns, n_rows)."""
    if term.is_linear:
        return term.gain * parts
    if term.is_product:
        mean = parts.mean(axis=1)
        others = [np.prod(np.delete(mean, k)) for k in range(len(mean))]
        return (term.constant * np.array(others)[:, None] * parts).real
    shuffled = rng.permuted(parts, axis=1)
    return np.concatenate([worth(term, part[None], shuffled.sum(axis=0)[None] - shuffled[k])
                           for k, part in enumerate(parts)])  # fmt: skip


def _shuffled(B, rng):
    """Return rows in which each column has the entries of that column of B in a random order of its own."""
    most = max(FEWEST, min(SHUFFLED, AT_ONCE // B.shape[1]))
    B = to_dense(subsample(B, most, rng))
    return rng.permuted(np.tile(B, (-(-most // len(B)), 1)), axis=0)


def _total(model, _, B, n_permutations, rng):
    """Return (the variance of f that is left when all inputs but x_j are known, the variance of f), for independent inputs.

    Jansen's estimator of the former is half the mean square of the change of f when x_j is drawn anew.
    """
    X, other = _shuffled(B, rng), _shuffled(B, rng)
    f, total = decision_values(model, X), np.zeros(model.n_features_in)
    for j in sorted({j for term in terms_of(model.features) for j in term.columns.tolist()}):
        kept = X[:, j].copy()
        X[:, j] = other[:, j]
        total[j] = ((decision_values(model, X) - f) ** 2).mean(axis=1).sum() / 2
        X[:, j] = kept
    return total, f.var(axis=1).sum()


MEASURES: dict[str, Callable[..., Any]] = {"shapley": _shapley, "variance": _variance, "main": _main, "total": _total}
