"""What a model is, on a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._checks import check_integer
from .importances import Importances
from .outputs import function_names, kind_of, unit_of
from .pieces import sizes
from .terms import names_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._types import MatrixLike, Seed
    from ..model import FitInfo, SparseModel

# Columns of a term that are named.
MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class Summary:
    """What a model is; prints as a page. Made by `SparseModel.summary`.

    Attributes
    ----------
    kind, loss : str
        Regression, or of which classes.
    n_terms, n_inputs : int
    kinds : dict
        How many terms there are of each activation.
    inputs : tuple of int
        Those that terms see, the one of most worth first.
    intercept : ndarray of shape (n_outputs,)
    outputs : tuple of str
        What these are called: f, or f[class].
    unit : str
        What f is measured in.
    info : FitInfo
    worth : ndarray of shape (n_features_in,)
        Of each input: its share of the variance of the model over X, `Importances.share`; without X the sizes of the terms that
        see it, of those of all: a term counts for each of its inputs, so these add up to more than 1.
    importances : Importances or None
        Of X.
    terms : tuple of (str, ndarray, float)
        Of the largest terms what each is, its coefficients, and its size ``|coef| sup|phi|``.
    """

    kind: str
    loss: str
    n_terms: int
    n_inputs: int
    kinds: dict[str, int]
    inputs: tuple[int, ...]
    intercept: np.ndarray
    outputs: tuple[str, ...]
    unit: str
    info: FitInfo
    names: Sequence[str]
    worth: np.ndarray
    importances: Importances | None
    terms: tuple[tuple[str, np.ndarray, float], ...]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in self.kinds.items())
        of = [f" of {name}" if name != "f" else "" for name in self.outputs]
        named = [f"{b:.4g}{name}" for b, name in zip(self.intercept, of, strict=True)]
        lines = [f"SparseModel: {self.kind}, loss {self.loss!r}",
                 f"{self.n_terms} terms ({kinds or 'none'}) of {len(self.inputs)} of {self.n_inputs} inputs, "
                 f"intercept {', '.join(named)}",
                 "fit: " + self._fit()]  # fmt: skip
        if self.importances is not None:
            several = ", all outputs together" if len(self.outputs) > 1 else ""
            lines += ["", str(self.importances), *(line.format(unit=self.unit + several) for line in HEADS)]
        elif self.inputs:
            width = max(len(self.names[j]) for j in self.inputs[:12])
            lines += ["", *SEEN, *(f"  {self.names[j]:{width}} {self.worth[j]:6.3f}" for j in self.inputs[:12])]
            lines += [f"  and {len(self.inputs) - 12} more"] if len(self.inputs) > 12 else []
        if self.terms:
            has_no_bound = not {"relu", "identity"}.isdisjoint(self.kinds)
            lines += ["", LARGEST + (", at inputs of one unit" if has_no_bound else "")]
            lines += [f"  {size:9.4g}  {name}" for name, _, size in self.terms]
        return "\n".join(lines)

    __repr__ = __str__

    def _fit(self):
        info, held_out = self.info, self.info.validation_loss
        said = ["converged to its tolerance" if info.converged else "not converged to its tolerance"]
        said += [f"penalty alpha {info.alpha:.4g}"]
        if held_out is not None and np.isfinite(held_out):
            is_squared = self.loss == "squared" and len(self.outputs) == 1  # half the square
            said += [f"root mean squared error of held-out rows {np.sqrt(2 * held_out):.4g} (units of y)" if is_squared else
                     f"loss of held-out rows {held_out:.4g}"]  # fmt: skip
        said += [f"coefficients known to {info.error_bound:.1g} of their length"] if info.error_bound is not None else []
        return ", ".join(said)


HEADS = (
    "share: of the variance of f, by Shapley values, which adds up to 1; below 0: varies mostly against f",
    "main, total: of that variance, if inputs were independent: by this one alone; with all it does with others",
    "|Shapley|: by how much it moves f in a row, on average, in {unit}",
)
SEEN = (
    "sizes of the terms that see an input, of those of all terms: these overlap, and say not",
    "how much it matters; summary(X) does",
)
LARGEST = "largest terms, with the inputs of most weight, by |coef| sup|phi|: how far each can move f"


def summary(model: SparseModel, X: MatrixLike | None, n_terms: int, rng: Seed) -> Summary:
    """`SparseModel.summary`."""
    n_terms, size = check_integer("n_terms", n_terms, 0), sizes(model).max(axis=0, initial=0.0)
    largest = np.argsort(-size, kind="stable")[:n_terms]
    titles = [_title(term, names_of(model)) for term in terms_of(model.features.take(largest))]
    coef = np.atleast_2d(model.coef)
    terms = tuple((name, coef[:, k], float(size[k])) for name, k in zip(titles, largest.tolist(), strict=True))
    importances = None if X is None else model.importances(X, rng=rng)
    worth, seen = _worth(model, size)
    worth = worth if importances is None else importances.share
    inputs = tuple(j for j in np.argsort(-worth, kind="stable").tolist() if seen[j])
    kinds = Counter(block.activation for block in model.features.blocks for _ in range(len(block)))
    b = np.atleast_1d(model.intercept)
    return Summary(
        kind_of(model), model.loss, len(size), model.n_features_in, dict(kinds), inputs, b, tuple(function_names(model)),
        unit_of(model), model.info, names_of(model), worth, importances, terms,
    )  # fmt: skip


def _title(term, names):
    """A term in words: its columns by weight, at most three of them."""
    weight = np.zeros(len(term.columns))
    np.add.at(weight, term.place, np.abs(term.weights))
    if term.activation == "product":
        powers = zip(term.columns.tolist(), weight, strict=True)
        factors = [names[j] + (f"^{power:g}" if power > 1 else "") for j, power in powers if power > 0]
        return "*".join(["gaussian", *factors])
    some = [names[term.columns[k]] for k in np.argsort(-weight, kind="stable")[:MOST_NAMED]]
    if term.activation == "identity" and len(term.columns) == 1:
        return some[0]
    more = f" + {len(term.columns) - MOST_NAMED} more" if len(term.columns) > MOST_NAMED else ""
    return f"{term.activation}({', '.join(some)}{more})"


def _worth(model, size):
    """(of each input the share of sizes of terms that see it, which are seen)."""
    worth = np.zeros(model.n_features_in)
    seen = np.zeros(model.n_features_in, bool)
    for term in terms_of(model.features):
        worth[term.columns] += size[term.position]
        seen[term.columns] = True
    return worth / (size.sum() or 1.0), seen
