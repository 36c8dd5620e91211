"""A model on a page: its task, its fit, its inputs by importance, and its largest terms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base import html as html
from .._base.checks import check_integer
from ..expansion.outputs import describe_limits, describe_task, function_names, unit_of
from ..expansion.terms import column_names, term_sizes, terms_of
from ..rows import as_rows
from .evaluate import read_numbers
from .importances import Importances, ImportanceSample, InputRow, html_table, percent, table

if TYPE_CHECKING:
    from .._base.types import MatrixLike, Seed
    from ..expansion import Expansion, FitInfo

# The most columns of a term that are named.
MOST_NAMED = 3
# The most inputs that are listed.
MOST_LISTED = 20
# The most rows of which it is counted for how many a rule holds.
MOST_COUNTED = 10_000
# The most outputs whose intercepts are listed.
MOST_INTERCEPTS = 3


@dataclass(frozen=True, eq=False)
class Summary:
    """A model on a page. Made by `SparseModel.summary`; prints as text, and in notebooks as a
    table.

    Attributes
    ----------
    kind, loss : str
        The task, "regression" or which classes there are, and the name of the loss.
    n_terms, n_inputs : int
        The numbers of terms, and of columns of X.
    inputs : tuple of InputRow
        The inputs on which terms depend, each with its `column`, `name`, `share` and `value`. With
        rows X the largest share is first: `value` is the mean size of its Shapley values, and
        `share` that divided by the sum over all inputs, as in `SparseModel.importances`. Without X
        they are in the order of the columns, and both are NaN.
    terms : tuple of (str, ndarray, float)
        The largest terms: what each is in words, its coefficients, and its size ``|coef|
        sup|phi|``. Of a rule the words say what it adds, and with rows X for how many it holds.
    importances : Importances or None
        The importances over X.
    info : FitInfo
        How the fit went.
    kinds : dict
        The number of terms of each activation.
    intercept : ndarray of shape (n_outputs,)
    outputs : tuple of str
        The names of the outputs: f, or f[class].
    unit : str
        The unit of f.
    limits : str
        Within which limits the model predicts, in words; "" where there are none. All else is about
        f before them.
    has_unbounded : bool
        Whether some terms have no bound: their sizes are those at inputs of one unit.
    """

    kind: str
    loss: str
    n_terms: int
    n_inputs: int
    kinds: dict[str, int]
    inputs: tuple[InputRow, ...]
    intercept: np.ndarray
    outputs: tuple[str, ...]
    unit: str
    info: FitInfo
    importances: Importances | None
    terms: tuple[tuple[str, np.ndarray, float], ...]
    limits: str = ""
    has_unbounded: bool = False

    def __str__(self) -> str:
        lines = [f"SparseModel: {self._what()}", *self._about()]
        if self.importances is not None:
            lines += ["", table(self.inputs[:MOST_LISTED]), *self._below()]
        elif self.inputs:
            lines += ["", SEEN, f"  {self._seen()}"]
        if self.terms:
            lines += [
                "",
                self._above_terms(),
                *(f"  {size:9.4g}  {name}" for name, _, size in self.terms),
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [html.title("SparseModel", self._what()), *map(html.line, self._about())]
        if self.importances is not None:
            parts += [html_table(self.inputs[:MOST_LISTED]), *map(html.note, self._below())]
        elif self.inputs:
            parts += [html.gap(), html.note(SEEN), html.line(self._seen())]
        if self.terms:
            largest = self.terms[0][2] or 1.0
            rows = [
                [html.text(name), html.bar(size / largest), f"{size:.4g}"]
                for name, _, size in self.terms
            ]
            parts += [
                html.gap(),
                html.table(["largest terms", "", "|coef| sup|phi|"], rows, n_left=2),
            ]
            parts += [html.note(self._above_terms())]
        return html.page(*parts)

    def _what(self):
        """Return the task and the loss."""
        return f"{self.kind}, loss {self.loss!r}"

    def _about(self):
        """Return the lines at the top: on the terms of the model, on its fit, and on its limits, if
        it has some."""
        kinds = ", ".join(f"{count} {name}" for name, count in self.kinds.items())
        seen = f"{len(self.inputs)} of {self.n_inputs} inputs"
        lines = [
            f"{self.n_terms} terms ({kinds or 'none'}) of {seen}, {self._intercept()}",
            f"fit: {self._fit()}",
        ]
        return [*lines, self.limits] if self.limits else lines

    def _below(self):
        """Return the lines below the table of inputs."""
        more = self.inputs[MOST_LISTED:]
        lines = (
            [f"and {len(more)} more, together {percent(sum(row.share for row in more))}"]
            if more
            else []
        )
        return [
            *lines,
            MEANING.format(
                unit=self.unit + (", all outputs together" if len(self.outputs) > 1 else "")
            ),
        ]

    def _seen(self):
        """Return the line of names of the inputs, for a summary without importances."""
        shown, more = self.inputs[:MOST_LISTED], self.inputs[MOST_LISTED:]
        return ", ".join(row.name for row in shown) + (f", and {len(more)} more" if more else "")

    def _above_terms(self):
        """Return the line above the largest terms."""
        return LARGEST + (", at inputs of one unit" if self.has_unbounded else "")

    def _intercept(self):
        """Return the intercepts in words: all of them, or of many outputs the smallest and the
        largest."""
        if len(self.outputs) == 1:
            return f"intercept {self.intercept[0]:.4g}"
        low, high = int(np.argmin(self.intercept)), int(np.argmax(self.intercept))
        shown = range(len(self.outputs)) if len(self.outputs) <= MOST_INTERCEPTS else (low, high)
        named = [f"{self.intercept[k]:.4g} of {self.outputs[k]}" for k in shown]
        return "intercept " + (
            ", ".join(named)
            if len(self.outputs) <= MOST_INTERCEPTS
            else f"from {' to '.join(named)}"
        )

    def _fit(self):
        """Return the line on how the fit went."""
        info, held_out = self.info, self.info.validation_loss
        if self.n_terms == 0 and held_out is not None and not info.cut:
            parts = ["no term predicts held-out rows better than a constant does"]
        elif info.alpha is None:  # all of the model was chosen: there is no tolerance
            parts = ["chosen on held-out rows"]
        else:
            parts = [
                "converged to its tolerance" if info.converged else "not converged to its tolerance"
            ]
        if info.cut:
            cut = ", ".join(f"{n} {what}" for what, n in info.cut.items())
            parts += [f"ended early or left out: {cut}"]
        parts += [f"penalty alpha {info.alpha:.4g}"] if info.alpha is not None else []
        if held_out is not None and np.isfinite(held_out):
            # the loss is half the square
            is_squared = self.loss == "squared" and len(self.outputs) == 1
            parts += [
                f"root mean squared error of held-out rows {np.sqrt(2 * held_out):.4g} (units of y)"
                if is_squared
                else f"loss of held-out rows {held_out:.4g}"
            ]
        parts += (
            [f"coefficients known to {info.error_bound:.1g} of their length"]
            if info.error_bound is not None
            else []
        )
        return ", ".join(parts)


# The lines below the table of inputs, above inputs without importances, and above the largest
# terms.
MEANING = (
    "|Shapley|: by how much it moves f in a row, on average, in {unit}; share: of the sum "
    "of "
    "these over all inputs"
)
SEEN = "inputs that terms see; how much each matters depends on rows: summary(X)"
LARGEST = (
    "largest terms, with the inputs of most weight, by |coef| sup|phi|: how far each can move f"
)


def summary(model: Expansion, X: MatrixLike | None, n_terms: int, rng: Seed) -> Summary:
    """Summarize a model: see `SparseModel.summary`."""
    n_terms = check_integer("n_terms", n_terms, 0)
    size = term_sizes(model.features, model.coef).max(axis=0, initial=0.0)
    largest = np.argsort(-size, kind="stable")[:n_terms]
    names = column_names(model)
    importances = (
        None if X is None else ImportanceSample.from_rows(model, X, rng=rng).importances(model)
    )
    titles, coef = _titles(model, largest, names, X), np.atleast_2d(model.coef)
    terms = tuple((titles[i], coef[:, k], float(size[k])) for i, k in enumerate(largest.tolist()))
    seen = {j for term in terms_of(model.features) for j in term.columns.tolist()}
    rows = (
        (InputRow(j, names[j], np.nan, np.nan) for j in sorted(seen))
        if importances is None
        else importances.rows
    )
    inputs = tuple(row for row in rows if row.column in seen)
    kinds = Counter()
    for block in model.features.blocks:
        kinds[block.activation] += len(block)
    b = np.atleast_1d(model.intercept)
    return Summary(
        describe_task(model),
        model.loss,
        len(size),
        model.n_features_in,
        dict(kinds),
        inputs,
        b,
        tuple(function_names(model)),
        unit_of(model),
        model.info,
        importances,
        terms,
        describe_limits(model),
        not all(block.is_bounded for block in model.features.blocks),
    )


def _titles(model, which, names, X):
    """Return some terms in words; of rules also what they add, and the share of rows X, if these
    are given, for which they hold."""
    features, coef = model.features.take(which), np.atleast_2d(model.coef)[:, which]
    titles, rules = [""] * len(which), {}
    for term in terms_of(features):  # in the order of blocks
        condition = term.condition(names, features.stage)
        titles[term.position] = term.title(names, MOST_NAMED, features.stage)
        if condition:
            rules[term.position] = term
            added = f": {coef[0, term.position] * term.gain:+.4g}" if len(coef) == 1 else ""
            titles[term.position] = f"if {condition}{added}"
    if X is not None and rules:
        counted = read_numbers(model, X, MOST_COUNTED, np.random.default_rng(0))
        rows, places = as_rows(counted, may_miss=True), np.array(list(rules))
        sums = rows.staged(features.stage).correlate(
            features.take(places).staged(None), np.full(rows.n_rows, 1 / rows.n_rows)
        )
        for k, total in zip(rules, sums.tolist(), strict=True):
            titles[k] += f" ({percent(total / rules[k].gain)} of rows)"
    return titles
