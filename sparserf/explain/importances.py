"""What each input is worth to a model: Shapley values, and shares of variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .._checks import check_integer, check_rng
from .outputs import of_output
from .shapley import background_of, played, values
from .terms import decision, dense, names_of, numbers, terms_of, thinned, views

if TYPE_CHECKING:
    from .._types import MatrixLike, Seed
    from ..model import SparseModel

# Rows of shuffled columns, about; fewer where they would be more than so many numbers, but not below FEWEST.
SHUFFLED, FEWEST, AT_ONCE = 4_000, 200, 2**24


@dataclass(frozen=True, eq=False)
class Importances:
    """What each input is worth, by `SparseModel.importances`, where the arrays are described.

    names : of the inputs; order : the inputs, of the largest share of variance first
    """

    names: tuple[str, ...]
    shapley: np.ndarray
    share: np.ndarray
    main: np.ndarray
    total: np.ndarray
    order: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", np.argsort(-self.share, kind="stable"))

    def __str__(self) -> str:
        shown = [j for j in self.order if self.shapley[j] > 0]
        width = max([12, *(len(self.names[j]) for j in shown)])
        lines = [f"{'':{width}} share   main  total  |Shapley|"]
        for j in shown:
            shares = " ".join(f"{round(float(of[j]), 3) + 0.0:6.3f}" for of in (self.share, self.main, self.total))  # no -0.000
            lines.append(f"{self.names[j]:{width}}{shares}  {self.shapley[j]:9.4g}")
        return "\n".join(lines)

    __repr__ = __str__


def importances(
    model: SparseModel, X: MatrixLike, background: MatrixLike | None, n_rows: int, n_permutations: int, rng: Seed,
    output: object = None,
) -> Importances:  # fmt: skip
    """`SparseModel.importances`."""
    model = model if output is None else of_output(model, output)
    n_rows, rng = check_integer("n_rows", n_rows, 2), check_rng(rng)
    n_permutations = check_integer("n_permutations", n_permutations, 2)
    X = numbers(model, X, n_rows, rng)
    if X.shape[0] == 0:
        raise ValueError("X must have at least one row, got none")
    B = background_of(model, X, background, rng)
    V = views(model, B)
    phi = np.atleast_3d(values(model, X, V, n_permutations, rng))
    size, share = np.abs(phi).mean(axis=0).sum(axis=1), _covariances(phi)
    main = _main(model, V, rng)
    total, variance = _total(model, dense(thinned(B, most_shuffled(B), rng)), np.flatnonzero(size > 0), rng)
    shares = _over(share, share.sum()), _over(main, variance), _over(total, variance)
    names = names_of(model)
    return Importances(tuple(names[j] for j in range(len(names))), size, *shares)


def _over(part, whole):
    return part / whole if whole > 0 else np.zeros_like(part)


def _covariances(phi):
    """Of the values of each input with f, added up over the outputs."""
    f = phi.sum(axis=1, keepdims=True)
    return ((phi - phi.mean(axis=0)) * (f - f.mean(axis=0))).mean(axis=0).sum(axis=1)


def _main(model, V, rng):
    """The variance of E[f | x_j] of each column, added up over the outputs, of independent inputs as in the rows of views V."""
    coef = np.atleast_2d(model.coef)
    effect = {}
    for term in terms_of(model.features):
        c = coef[:, term.position, None]
        for j, given in zip(term.columns.tolist(), _effects(term, term.parts(V), rng), strict=True):
            effect[j] = effect.get(j, 0.0) + c * given
    main = np.zeros(model.n_features_in)
    for j, given in effect.items():
        main[j] = given.var(axis=1).sum()
    return main


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


def most_shuffled(B: np.ndarray) -> int:
    return max(FEWEST, min(SHUFFLED, AT_ONCE // B.shape[1]))


def _total(model, B, columns, rng):
    """(half the mean square of what changes in f when one column is drawn anew, the variance of f), over rows of which each
    column has the entries of B's, in an order of its own; added up over the outputs."""
    X, other = (rng.permuted(np.tile(B, (-(-most_shuffled(B) // len(B)), 1)), axis=0) for _ in range(2))
    f, total = decision(model, X), np.zeros(model.n_features_in)
    for j in columns:
        kept = X[:, j].copy()
        X[:, j] = other[:, j]
        total[j] = ((decision(model, X) - f) ** 2).mean(axis=1).sum() / 2
        X[:, j] = kept
    return total, f.var(axis=1).sum()
