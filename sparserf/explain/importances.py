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
from .evaluate import read_numbers
from .shapley import BACKGROUND, ORDERS, ShapleyValues, background_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..expansion import Expansion

# The default number of rows.
ROWS = 300
# The most inputs that are listed.
MOST_LISTED = 20


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
    share_error : ndarray of shape (n_features_in,)
        The standard error of each share: by how much it varies with the rows that are drawn.
    n_rows, n_background : int
        The numbers of rows over which the sizes are means, and of background rows.
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
    share_error: np.ndarray
    n_rows: int
    n_background: int
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
        return f"{text_table([row for row in self.rows if row.value != 0])}\n{self.of_what()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [row for row in self.rows if row.value != 0]
        return html.page(html_table(rows), html.note(self.of_what()))

    def of_what(self) -> str:
        """Return the line below the table: of which rows it speaks."""
        return f"means over {self.n_rows} rows, against {self.n_background} background rows"


def text_table(rows: Sequence[InputRow]) -> str:
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
        n_background: int | None = BACKGROUND,
        rng: Seed = 0,
    ) -> Self:
        """Draw at most n_rows rows of X, and at most n_background of the background, or where that
        is None of these rows."""
        n_rows, rng = check_integer("n_rows", n_rows, 2), check_rng(rng)
        X = read_numbers(model, X, n_rows, rng)
        if X.shape[0] == 0:
            raise ValueError("X must have at least one row, got none")
        return cls(X, background_of(model, X, background, n_background, rng), rng)

    @as_ieee
    def importances(self, model: Expansion, n_permutations: int = ORDERS) -> Importances:
        """Compute the importances of a model over these rows: of several outputs, the sums over
        them."""
        names, n = column_names(model), self.numbers.shape[0]
        games = ShapleyValues(model, self.background, n, n_permutations, self.rng)
        sizes = [np.abs(phi).sum(axis=0) for _, phi in games.by_slices(self.numbers)]
        size = np.concatenate(sizes, axis=1)  # (n_columns_seen, n_rows)
        mean, of_row = size.mean(axis=1), size.sum(axis=0)
        whole = mean.sum()
        value, share, error = np.zeros((3, model.n_features_in))
        value[games.columns] = mean
        if whole > 0:
            share[games.columns] = mean / whole
            away = size - share[games.columns, None] * of_row  # of mean 0
            error[games.columns] = away.std(axis=1) / whole / max(n - 1, 1) ** 0.5
        listed = tuple(names[j] for j in range(len(names)))
        return Importances(listed, share, value, error, n, self.background.shape[0])


def importances(
    model: Expansion,
    X: MatrixLike,
    background: MatrixLike | None,
    n_rows: int,
    n_background: int | None,
    n_permutations: int,
    rng: Seed,
    output: object = None,
) -> Importances:
    """Measure how much each input matters: see `SparseModel.importances`."""
    model = model if output is None else of_output(model, output)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    sample = ImportanceSample.from_rows(model, X, background, n_rows, n_background, rng)
    return sample.importances(model, n_permutations)
