"""How a fit of Sparse Random Features goes through its dictionary, and down a path of penalties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import parts
from ..._base.threads import single_threaded_blas
from ...columns.fallback import with_fallbacks
from ...model import FitInfo, SparseModel, warn_unconverged
from ..task import model_of, partial_fits_on_error
from .classes import fits_of
from .fit import N_COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._base.types import Dictionary, L1FitLike
    from .sources import Setting


def algorithm_1(fit: L1FitLike, dictionary: Dictionary) -> None:
    """Algorithm 1 of the paper: R = batch_size, T = n_batches, A = fit.A, w = fit.A.w."""
    for t in parts(range(dictionary.n_batches)):  # repeat
        h = fit.draw(t)  #                     1. sample h_1, ..., h_R from p(h)
        fit.minimise_over(h)  #                2. add them to A; 3. obtain w by solving (9)
        fit.A.prune()  #                       4. A <- A \ {h : w(h) = 0}
        if fit.record():  #                    5. t <- t + 1
            break  #                         until t = T


def exact_descent(fit: L1FitLike, dictionary: Dictionary) -> None:
    """The optimum over all draws, made again when needed, not stored.

    A round a batch comes near to it for the price of one look at the dictionary; then each round looks at all of it.
    """
    for t in parts(range(dictionary.n_batches), rest=dictionary.n_batches):
        fit.improve_over(fit.draw(t))
        if fit.record():
            return
    everything = fit.draw(*range(dictionary.n_batches))
    done = False
    while not done:
        done = fit.descend_over(everything)
        done |= fit.record()


def models_on_path(
    setting: Setting, alphas_of: Callable[[Callable[[], float]], Sequence[float] | np.ndarray]
) -> list[SparseModel]:
    """The models of the penalties alphas_of(largest), largest() the least that leaves no term."""
    task, dictionary = setting.task, setting.dictionary(N_COMPONENTS)
    with single_threaded_blas(), task.rows:
        fits = fits_of(task, dictionary, setting.options)
        alphas = alphas_of(lambda: max(fit.largest_gradient() for fit in fits) or 1.0)
        with partial_fits_on_error(fits, task):
            models = [_fit_all(fits, task, dictionary, alpha, setting.exact) for alpha in parts(alphas, 1 / np.cbrt(alphas))]
    for model, asked in models:
        if not asked:
            warn(model.info, setting.options["tol"])
    return [model for model, _ in models]


def _fit_all(fits, task, dictionary, alpha, exact):
    """(model of all targets, whether a callback ended its fit)."""
    for fit in parts(fits):
        fit.restart(alpha)
        (exact_descent if exact else algorithm_1)(fit, dictionary)
    return with_fallbacks(model_of(fits, task), task), any(fit.ended_by_callback for fit in fits)


def warn(info: FitInfo, tol: float) -> None:
    """If the tolerance was not reached."""
    if info.converged:
        return
    share = info.dual_gap / info.objective[-1] if info.objective[-1] > 0 else np.inf
    warn_unconverged(
        f"alpha={info.alpha:.3g}: stopped after {info.n_iter} iterations with a duality gap of {info.dual_gap:.3g}, "
        f"{share:.2g} of the objective, above tol={tol:.2g}; "
        f"raise max_iter (or tol, or alpha)"
    )
