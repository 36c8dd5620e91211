"""How a fit went, and the warning of a fit that stopped early."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeAlias

from .._base.screen import folded, glued
from .._base.warnings import warn

if TYPE_CHECKING:
    from collections.abc import Callable


class ConvergenceWarning(UserWarning):
    """The warning of a fit that stopped before it reached its tolerance; it names the gap, the
    tolerance and what to change.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", srf.ConvergenceWarning)
    ...     model = srf.harfe(
    ...         X, np.sin(2 * X.ravel()), n_nonzero_coefs=5, rng=0
    ...     )  # an error where it does not converge
    """


def warn_unconverged(message: str) -> None:
    """Issue a `ConvergenceWarning` that points at the line of the user's call."""
    warn(message, ConvergenceWarning)


def gap_in_words(info: FitInfo) -> str:
    """Return words on the duality gap of a fit, and on its share of the objective; none where there
    is no gap."""
    gap, objective = info.dual_gap, info.objective[-1]
    if gap is None:
        return ""
    share = f", {gap / objective:.2g} of the objective" if objective > 0 else ""
    return f" with a duality gap of {gap:.3g}{share}"


@dataclass(frozen=True)
class FitInfo:
    """How a fit went: whether it converged, how far from the optimum it ended, and what it cost.

    Attributes
    ----------
    converged : bool
        Whether the tolerance was reached.
    dual_gap : float, or None where alpha was chosen by `sparse_rf`, or no bound was computed
        A bound on the distance of the objective to the optimum of the problem that was solved last.
        One-vs-rest: the sum. A fit that `time_limit` has cut may have none.
    objective : tuple of float
        The objective after each iteration, never rising. One-vs-rest: the sum over the classes.
        Where alpha was chosen by `sparse_rf`: the least mean loss of held-out rows so far, after
        each penalty of each member.
    n_iter : int
        The number of iterations of the algorithm (of `sparse_rf`: batches and, where exact, sweeps
        over all draws after them; penalties, where it chose alpha).
    n_drawn : int
        The number of features that the fit searched.
    n_nonzero : int
        The number of features in the model.
    alpha : float, or None where `sparse_rf` chose several
        The penalty.
    validation_loss : float, or None where the fit has chosen nothing
        The mean loss of the rows of each fold, where what is chosen is chosen by the other folds
        (logistic, multinomial: with one row more, of any class). Of `sparse_rf`, whose model is a
        mean of those of the folds, less four fifths of half the curvature times the squared
        distance between what the fold that has not seen a row says of it and the mean of all folds:
        so much, about, is the mean better than each. With groups, pairs of your own or one part
        held out, nothing is taken off. While alpha is searched, the least loss of held-out rows so
        far.
    n_projections, n_conjugate, n_passes : int, or None but for `drp`
        The number of projections of the sketch or directions of the basis, of steps of conjugate
        gradients in all, and of passes over X (of a path: up to this penalty).
    error_bound : float, or None but for `drp`, or where there is no bound
        A bound on ``||w - w*|| / ||w*||``, the largest over the outputs.
    chosen : str, or None where nothing was left open
        What the fit has chosen, and how: "n_nonzero_coefs=47, alpha=0.01, by the loss on 5 folds".
    fidelity : float, or None but for `distill`
        The share of the variance of the teacher's values that the model gives, on rows that it has
        not seen.
    progress : float
        The share of the work that is done, an estimate which never falls; 1 at the end.
    cut : dict of str to int
        What the fit ended early or left out for want of time or work, in the plural, and how many:
        {"searches": 3}, say. Empty where nothing was cut.
    edits : tuple of str
        What `refit` has changed in the model since, in words, one after the other.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> info = srf.sparse_rf(
    ...     X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0
    ... ).info
    >>> info.converged, info.n_drawn, info.alpha, bool(info.dual_gap <= 1e-4 * info.objective[-1])
    (True, 500, 0.01, True)
    """

    n_iter: int
    converged: bool
    objective: tuple[float, ...]
    dual_gap: float | None
    n_drawn: int
    n_nonzero: int
    alpha: float | None
    validation_loss: float | None = None
    n_projections: int | None = None
    n_conjugate: int | None = None
    n_passes: int | None = None
    error_bound: float | None = None
    progress: float = 1.0
    cut: dict[str, int] = field(default_factory=dict, hash=False)
    fidelity: float | None = None
    chosen: str | None = None
    edits: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return all fields; of a long objective, its first and last value."""
        shown = {each.name: repr(getattr(self, each.name)) for each in fields(self)}
        if len(self.objective) > 2:
            n = len(self.objective) - 2
            shown["objective"] = f"({self.objective[0]!r}, ... {n} more, {self.objective[-1]!r})"
        words = ", ".join(f"{name}={glued(value)}" for name, value in shown.items())
        return folded(f"FitInfo({words})", hanging=len("FitInfo("))


# What a user may give as callback: a function that is called with the `FitInfo` of a fit so far,
# and ends the fit by returning something true.
Callback: TypeAlias = "Callable[[FitInfo], object] | None"
