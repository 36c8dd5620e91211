"""How much each input matters to a model: its share of the mean size of all Shapley values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from .._base import html as html
from .._base.checks import check_integer, check_rng
from .._base.floats import as_ieee
from .._base.screen import percent, short_name
from ..expansion.outputs import of_output
from ..expansion.terms import column_names
from .evaluate import encode, read_numbers
from .shapley import background_of, shapley_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..expansion import Expansion

# The default number of rows.
ROWS = 1_000
# The most inputs that are listed.
MOST_LISTED = 20
# The default number of random permutations of the inputs of a term of many inputs.
ORDERS = 32


class InputRow(NamedTuple):
    """One input in a table of importances.

    column : int
        The index of the input in X.
    name : str
    share : float
        Its share of all importances.
    value : float
        The mean size of its Shapley values, in the unit of f.
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
        The share of each input, and the mean size of its Shapley values.
    order : ndarray of shape (n_features_in,)
        The permutation of the inputs that puts the largest share first.
    rows : tuple of InputRow
        The same as a table, the largest share first.
    names : tuple of str
        The names of the inputs.
    """

    names: tuple[str, ...]
    share: np.ndarray
    value: np.ndarray
    order: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", np.argsort(-self.share, kind="stable"))

    @property
    def rows(self) -> tuple[InputRow, ...]:
        """The importances as the rows of a table, the largest share first."""
        return tuple(
            InputRow(j, self.names[j], float(self.share[j]), float(self.value[j]))
            for j in self.order.tolist()
        )

    def __str__(self) -> str:
        return table([row for row in self.rows if row.value != 0])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html.page(html_table([row for row in self.rows if row.value != 0]))


def table(rows: Sequence[InputRow]) -> str:
    """Return a table of inputs as text."""
    shown = [row._replace(name=short_name(row.name)) for row in rows[:MOST_LISTED]]
    width = max([12, *(len(row.name) for row in shown)])
    lines = [f"{'':{width}} {'share':>7}  {'|Shapley|':>10}"]
    lines += [f"{row.name:{width}} {percent(row.share):>7}  {row.value:10.4g}" for row in shown]
    return "\n".join(lines + _more(rows))


def html_table(rows: Sequence[InputRow]) -> str:
    """Return a table of inputs as HTML, with a bar for each share."""
    largest = max((row.share for row in rows), default=0.0) or 1.0
    cells = (
        [html.text(row.name), html.bar(row.share / largest), percent(row.share), f"{row.value:.4g}"]
        for row in rows[:MOST_LISTED]
    )
    whole = html.table(["input", "", "share", "|Shapley|"], cells, n_left=2)
    return whole + "".join(map(html.note, _more(rows)))


def _more(rows):
    """Return a line on the inputs that are not listed; none where all are."""
    rest = rows[MOST_LISTED:]
    share = percent(sum(row.share for row in rest))
    return [f"and {len(rest)} more, together {share}"] if rest else []


@dataclass(frozen=True, eq=False)
class ImportanceSample:
    """The rows from which importances are computed: some rows of X, as numbers, and a background.

    numbers, background : the rows of X and the background rows, as numbers
    rng : the generator that drew them, from which random permutations are drawn next
    """

    numbers: DenseOrCSR
    background: DenseOrCSR
    rng: np.random.Generator

    @classmethod
    @as_ieee
    def from_rows(
        cls,
        model: Expansion,
        X: MatrixLike,
        background: MatrixLike | None = None,
        n_rows: int = ROWS,
        rng: Seed = 0,
    ) -> Self:
        """Draw at most n_rows rows of X, and the background where that is None."""
        n_rows, rng = check_integer("n_rows", n_rows, 2), check_rng(rng)
        X = read_numbers(model, X, n_rows, rng)
        if X.shape[0] == 0:
            raise ValueError("X must have at least one row, got none")
        return cls(X, background_of(model, X, background, rng), rng)

    @as_ieee
    def importances(self, model: Expansion, n_permutations: int = ORDERS) -> Importances:
        """Compute the importances of a model over these rows: of several outputs, the sums over
        them."""
        names, B = column_names(model), encode(model, self.background)
        phi = np.atleast_3d(shapley_values(model, self.numbers, B, n_permutations, self.rng))
        value = np.abs(phi).mean(axis=0).sum(axis=1)
        whole = value.sum()
        share = value / whole if whole > 0 else np.zeros_like(value)
        return Importances(tuple(names[j] for j in range(len(names))), share, value)


def importances(
    model: Expansion,
    X: MatrixLike,
    background: MatrixLike | None,
    n_rows: int,
    n_permutations: int,
    rng: Seed,
    output: object = None,
) -> Importances:
    """Measure how much each input matters: see `SparseModel.importances`."""
    model = model if output is None else of_output(model, output)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    return ImportanceSample.from_rows(model, X, background, n_rows, rng).importances(
        model, n_permutations
    )
