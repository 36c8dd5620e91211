"""A model on a page: its task, its fit, its inputs by importance, and its largest terms."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._base import html as html
from .._base.checks import check_integer
from .._base.screen import DOTS, folded, one_line, percent, short_name
from ..expansion.outputs import (
    describe_limits,
    describe_task,
    function_names,
    held_out_error,
    unit_of,
)
from ..expansion.terms import column_names, term_sizes, terms_of
from ..rows import as_rows
from .evaluate import encoded_rows, read_numbers
from .importances import (
    MOST_LISTED,
    Importances,
    ImportanceSample,
    InputRow,
    html_table,
    text_table,
)

if TYPE_CHECKING:
    from .._base.types import MatrixLike, Seed
    from ..expansion import Expansion, FitInfo

# The most columns of a term that are named.
MOST_NAMED = 3
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
    n_terms, size, n_inputs : int
        The number of terms, of all numbers that predictions are computed from
        (`SparseModel.size`), and of columns of X.
    inputs : tuple of InputRow
        The inputs on which terms depend, each with its `column`, `name`, `share` and `value`. With
        rows X the largest share is first: `value` is the mean size of its Shapley values, and
        `share` that divided by the sum over all inputs, as in `SparseModel.importances`. Without X
        they are in the order of the columns, and both are NaN.
    terms : tuple of (str, ndarray, float)
        The largest terms: what each is in words, its coefficients, and its size ``|coef|
        sup|phi|``. Of a rule the words say what it adds, and with rows X for how many it holds.
    rest : str
        How many terms are not among these, and in words what they are worth: with rows X their
        share of the variance of f over at most 1,000 of these, else of the sum of all sizes.
    importances : Importances or None
        The importances over X.
    info : FitInfo
        How the fit went.
    held_out : (str, float) or None
        The error of held-out rows as the fit tells it: what it is, and how large.
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
    size: int
    n_inputs: int
    kinds: dict[str, int]
    inputs: tuple[InputRow, ...]
    intercept: np.ndarray
    outputs: tuple[str, ...]
    unit: str
    info: FitInfo
    held_out: tuple[str, float] | None
    importances: Importances | None
    terms: tuple[tuple[str, np.ndarray, float], ...]
    rest: str = ""
    limits: str = ""
    has_unbounded: bool = False

    def __str__(self) -> str:
        lines = [folded(line, 4) for line in (f"SparseModel: {self._what()}", *self._about())]
        if self.importances is not None:
            lines += ["", text_table(self.inputs), folded(self._meaning(), 4, 0)]
        elif self.inputs:
            lines += ["", SEEN, folded(f"  {self._seen()}", MOST_LISTED, 2)]
        if self.terms:
            terms = [f"  {size:9.4g}  {one_line(name)}" for name, _, size in self.terms]
            rest = [f"  {DOTS:>9}  {self.rest}"] if self.rest else []
            lines += ["", folded(self._above_terms(), 4, 0)]
            lines += [folded(line, 4, 13) for line in terms + rest]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [html.title("SparseModel", self._what()), *map(html.line, self._about())]
        if self.importances is not None:
            parts += [html_table(self.inputs), html.note(self._meaning())]
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
            parts += [html.note(self.rest)] if self.rest else []
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
            f"{self.n_terms} terms ({kinds or 'none'}), {self.size:,} numbers, of {seen}, "
            f"{self._intercept()}",
            f"fit: {self._fit()}",
            *([f"edited: {'; '.join(self.info.edits)}"] if self.info.edits else []),
        ]
        return [*lines, self.limits] if self.limits else lines

    def _meaning(self):
        """Return the line below the table of inputs."""
        all_outputs = ", all outputs together" if len(self.outputs) > 1 else ""
        return f"{MEANING.format(unit=self.unit + all_outputs)}; {self.importances.of_what()}"

    def _seen(self):
        """Return the line of names of the inputs, for a summary without importances."""
        shown, more = self.inputs[:MOST_LISTED], self.inputs[MOST_LISTED:]
        names = ", ".join(short_name(row.name) for row in shown)
        return names + (f", and {len(more)} more" if more else "")

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
        named = [f"{self.intercept[k]:.4g} of {short_name(self.outputs[k])}" for k in shown]
        if len(self.outputs) <= MOST_INTERCEPTS:
            return f"intercept {', '.join(named)}"
        return f"intercept from {' to '.join(named)}"

    def _fit(self):
        """Return the line on how the fit went."""
        info = self.info
        if self.n_terms == 0 and info.validation_loss is not None and not info.cut:
            parts = ["no term predicts held-out rows better than a constant does"]
        elif info.alpha is None:  # all of the model was chosen: there is no tolerance
            parts = ["chosen on held-out rows"]
        else:
            parts = [f"{'' if info.converged else 'not '}converged to its tolerance"]
        if info.cut:
            cut = ", ".join(f"{n} {what}" for what, n in info.cut.items())
            parts += [f"ended early or left out: {cut}"]
        parts += [f"penalty alpha {info.alpha:.4g}"] if info.alpha is not None else []
        if self.held_out:
            parts.append("{} of held-out rows {:.4g}".format(*self.held_out))
        if info.error_bound is not None:
            parts.append(f"coefficients known to {info.error_bound:.1g} of their length")
        return ", ".join(parts)


# The lines below the table of inputs, above inputs without importances, and above the largest
# terms.
MEANING = (
    "|Shapley|: by how much it moves f in a row, on average, in {unit}; share: of the sum of these "
    "over all inputs"
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
    sample = None if X is None else ImportanceSample.from_rows(model, X, rng=rng)
    importances = None if sample is None else sample.importances(model)
    titles, coef = _titles(model, largest, names, X), np.atleast_2d(model.coef)
    terms = tuple((titles[i], coef[:, k], float(size[k])) for i, k in enumerate(largest.tolist()))
    seen = {j for term in terms_of(model.features) for j in term.columns.tolist()}
    if importances is None:
        inputs = tuple(InputRow(j, names[j], np.nan, np.nan) for j in sorted(seen))
    else:
        inputs = tuple(row for row in importances.rows if row.column in seen)
    kinds = Counter()
    for block in model.features.blocks:
        kinds[block.activation] += len(block)
    b = np.atleast_1d(model.intercept)
    return Summary(
        describe_task(model),
        model.loss,
        len(size),
        model.size,
        model.n_features_in,
        dict(kinds),
        inputs,
        b,
        tuple(function_names(model)),
        unit_of(model),
        model.info,
        held_out_error(model),
        importances,
        terms,
        _rest(model, sample, largest, size),
        describe_limits(model),
        not all(block.is_bounded for block in model.features.blocks),
    )


def _rest(model, sample, largest, size):
    """Return in words how many terms are not among the largest, and what they are worth."""
    n_smaller = len(size) - len(largest)
    if not n_smaller:
        return ""
    words, worth = f"{n_smaller} smaller term{'s'[: n_smaller != 1]}", "what all can add"
    if sample is None:
        part, whole = size.sum() - size[largest].sum(), size.sum()
    else:
        rows, coef = encoded_rows(model, sample.numbers), np.atleast_2d(model.coef)
        f = rows.apply(model.features, coef)
        of_rest = f - rows.apply(model.features.take(largest), coef[:, largest])
        unit = max(np.abs(f).max(), np.abs(of_rest).max()) or 1.0  # no square overflows
        part, whole = (np.var(each / unit, axis=1).sum() for each in (of_rest, f))
        worth = "the variation of f over these rows"
    return f"{words}, {percent(part / whole)} of {worth}" if 0 < whole < np.inf else words


def _titles(model, which, names, X):
    """Return some terms in words; of rules also what they add, and the share of rows X, if these
    are given, for which they hold."""
    features, coef = model.features.take(which), np.atleast_2d(model.coef)[:, which]
    titles, rules = [""] * len(which), {}
    for term in terms_of(features):  # in the order of blocks
        condition = term.condition(names, features.encoder)
        titles[term.position] = term.title(names, MOST_NAMED, features.encoder)
        if condition:
            rules[term.position] = term
            added = f": {coef[0, term.position] * term.gain:+.4g}" if len(coef) == 1 else ""
            titles[term.position] = f"if {condition}{added}"
    if X is not None and rules:
        counted = read_numbers(model, X, MOST_COUNTED, np.random.default_rng(0))
        rows, places = as_rows(counted, may_miss=True), np.array(list(rules))
        own, weight = features.take(places).encoded(None), np.full(rows.n_rows, 1 / rows.n_rows)
        sums = rows.encoded(features.encoder).correlate(own, weight)
        for k, total in zip(rules, sums.tolist(), strict=True):
            titles[k] += f" ({percent(total / rules[k].gain)} of rows)"
    return titles
