"""What a model is, on a page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._checks import check_integer
from .importances import Importances
from .pieces import sizes
from .terms import names_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._types import MatrixLike, Seed
    from ..model import FitInfo, SparseModel


@dataclass(frozen=True, eq=False)
class Summary:
    """What a model is; prints as a page. Made by `SparseModel.summary`.

    Attributes
    ----------
    kind, loss : str
    n_terms, n_inputs : int
    kinds : dict
        How many terms there are of each activation.
    inputs : tuple of int
        Those that terms see, the one of most worth first.
    intercept : ndarray of shape (n_outputs,)
    info : FitInfo
    worth : ndarray of shape (n_features_in,)
        Of each input: its share of the variance of the model over X, `Importances.share`; without X the share of the sizes of
        terms that see it.
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
    info: FitInfo
    names: Sequence[str]
    worth: np.ndarray
    importances: Importances | None
    terms: tuple[tuple[str, np.ndarray, float], ...]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in self.kinds.items())
        b = ", ".join(f"{b:.4g}" for b in self.intercept)
        lines = [f"SparseModel: {self.kind}, loss {self.loss!r}",
                 f"{self.n_terms} terms ({kinds or 'none'}) of {len(self.inputs)} of {self.n_inputs} inputs, intercept {b}",
                 "fit: " + _fit(self.info)]  # fmt: skip
        if self.importances is not None:
            lines += ["", str(self.importances)]
        elif self.inputs:
            width = max(len(self.names[j]) for j in self.inputs[:12])
            lines += ["", "share of the terms' sizes by input that they see"]
            lines += [f"  {self.names[j]:{width}} {self.worth[j]:6.3f}" for j in self.inputs[:12]]
            lines += [f"  and {len(self.inputs) - 12} more"] if len(self.inputs) > 12 else []
        if self.terms:
            lines += ["", "largest terms, by |coef| sup|phi|"]
            lines += [f"  {size:9.4g}  {name}" for name, _, size in self.terms]
        return "\n".join(lines)

    __repr__ = __str__


def _fit(info):
    said = ["converged" if info.converged else "not converged", f"penalty {info.alpha:.4g}"]
    said += [f"loss of held-out rows {info.validation_loss:.4g}"] if info.validation_loss is not None else []
    said += [f"coefficients known to {info.error_bound:.1g} of their length"] if info.error_bound is not None else []
    return ", ".join(said)


def summary(model: SparseModel, X: MatrixLike | None, n_terms: int, rng: Seed) -> Summary:
    """`SparseModel.summary`."""
    n_terms, size = check_integer("n_terms", n_terms, 0), sizes(model)
    largest = np.argsort(-size, kind="stable")[:n_terms]
    titles = model.features.take(largest).names()
    coef = np.atleast_2d(model.coef)
    terms = tuple((name, coef[:, k], float(size[k])) for name, k in zip(titles, largest.tolist(), strict=True))
    importances = None if X is None else model.importances(X, rng=rng)
    worth, seen = _worth(model, size)
    worth = worth if importances is None else importances.share
    inputs = tuple(j for j in np.argsort(-worth, kind="stable").tolist() if seen[j])
    kinds = Counter(block.activation for block in model.features.blocks for _ in range(len(block)))
    kind = "regression" if model.classes is None else f"{len(model.classes)} classes"
    b = np.atleast_1d(model.intercept)
    return Summary(kind, model.loss, len(size), model.n_features_in, dict(kinds), inputs, b, model.info, names_of(model), worth,
                   importances, terms)  # fmt: skip


def _worth(model, size):
    """(of each input the share of sizes of terms that see it, which are seen)."""
    worth = np.zeros(model.n_features_in)
    seen = np.zeros(model.n_features_in, bool)
    for term in terms_of(model.features):
        worth[term.columns] += size[term.position]
        seen[term.columns] = True
    return worth / (size.sum() or 1.0), seen
