"""Sparse Random Feature Expansion (Hashemi et al. 2021), which HARFE compares with: basis pursuit
denoising by the Lasso."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_integer, check_real
from .._base.threads import single_threaded_blas
from ..algorithms.arguments import RowSetting
from ..algorithms.harfe import draw_dictionary
from ..algorithms.harfe_fit import HarfeOptions
from ..algorithms.sparse_rf.descent import L1Fit, exact_descent
from ..algorithms.sparse_rf.options import SparseRFOptions
from ..algorithms.task import Task, model_of, with_ranges
from ..features import make_dictionary
from ..model import warn_unconverged

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, Seed
    from ..features.dictionary import Features
    from ..features.neurons import Activation
    from ..model import SparseModel


@checks_call
def srfe(
    X: MatrixLike,
    y: ArrayLike,
    *,
    eta: float = 1e-2,
    n_components: int = 10_000,
    order: int | None = None,
    activation: Activation | None = None,
    features: Features | None = None,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 40,
    rng: Seed = None,
    workers: int = 1,
) -> SparseModel:
    r"""Fit a Sparse Random Feature Expansion: basis pursuit denoising on random features.

    .. math:: \min \|c\|_1 \quad\text{subject to}\quad
              \sqrt{\tfrac1n \sum_i s_i (f(x_i) - y_i)^2} \le \eta\, \sigma_y

    with sigma_y the standard deviation of y. The solutions are those of the Lasso, `sparse_rf` with
    exact=True over a dictionary that is drawn once; the penalty whose residual is eta sigma_y is
    found along its path.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    eta : float, default 1e-2
        The root mean square of the residual, over the standard deviation of y, to reach; > 0.
    n_components : int, default 10_000
        The number of features to draw.
    order, activation, features
        The dictionary, as in `harfe` with scale=None; where features are left out, sines.
    fit_intercept, sample_weight, rng, workers
        As in `harfe`.
    tol : float, default 1e-6
        Relative duality gap at which each Lasso stops.
    max_iter : int, default 40
        Penalties to try at most.

    Returns
    -------
    SparseModel
        `info.alpha` is the penalty of the Lasso; the residual is at most what was asked, and where
        tol allows within 1 % of it.

    Raises
    ------
    ValueError, TypeError
        As `harfe`.

    Warns
    -----
    ConvergenceWarning
        No penalty of those that were tried reached the residual.

    References
    ----------
    A. Hashemi, H. Schaeffer, R. Shi, U. Topcu, G. Tran, R. Ward, Generalization Bounds for Sparse
    Random Feature Expansions, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import srfe
    >>> X = np.linspace(-3, 3, 300)[:, None]
    >>> y = np.sin(2 * X.ravel())
    >>> model = srfe(X, y, eta=0.05, n_components=300, rng=0)
    >>> bool(np.std(model.predict(X) - y) <= 0.0506 * np.std(y))
    True
    """
    if features is None and activation is None:
        activation = "sin"
    given = HarfeOptions(
        features=features,
        n_components=n_components,
        order=order,
        activation=activation,
        rows=RowSetting(sample_weight=sample_weight, workers=workers),
        rng=rng,
    )
    options = SparseRFOptions(fit_intercept=fit_intercept, tol=tol)
    task = Task.from_options(X, y, given).centered(options.fit_intercept)
    rows = task.rows
    eta, max_iter = check_real("eta", eta, 0, strict=True), check_integer("max_iter", max_iter, 1)
    everything = draw_dictionary(task, given)
    dictionary = make_dictionary(
        everything, rows, n_components=None, batch_size=None, gamma=None, rng=None
    )
    fit = L1Fit(task, task.targets[0], dictionary, options)
    with single_threaded_blas(), rows:
        _to_residual(fit, eta, max_iter)
    return with_ranges(model_of([fit], task), task)


def _to_residual(fit, eta, max_iter):
    """Fit at the penalty whose residual is eta sigma_y, within 1 %.

    The residual rises with the penalty, which is halved until the residual is low enough, and then
    bisected. The search ends early where the residual has fallen, five times in a row, by so
    little of what is missing that it will not get there.
    """
    # The search ends after `patience` halvings of the penalty in a row that each lower the residual
    # by less than the share `least_fall` of what is still missing.
    least_fall = 0.01
    patience = 5
    # A residual between this share of what was asked and all of it is near enough.
    near_enough = 0.99

    def residual_at(alpha):
        fit.restart(alpha)
        exact_descent(fit)
        return fit.residual()

    wanted = eta * fit.residual()  # of the constant
    high = fit.largest_gradient() or 1.0
    low, residual = high / 2, residual_at(high / 2)
    waited = 0
    for _ in range(max_iter):
        if residual > wanted:
            before, high, low = residual, low, low / 2
            residual = residual_at(low)
            waited = waited + 1 if before - residual < least_fall * (residual - wanted) else 0
            if waited == patience:
                break
        elif residual < near_enough * wanted and high > 1.001 * low:
            middle = np.sqrt(low) * np.sqrt(high)  # the product may underflow
            above = residual_at(middle)
            low, high, residual = (
                (low, middle, residual) if above > wanted else (middle, high, above)
            )
        else:
            break
    residual_at(low)
    if fit.residual() > wanted:
        warn_unconverged(
            f"eta={eta:.3g}: the residual is {fit.residual() / wanted:.3g} times what was asked at "
            f"alpha={low:.3g}; raise eta, n_components or max_iter",
        )
