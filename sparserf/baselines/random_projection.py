"""The naive solution of a randomly projected problem, from which dual random projection recovers
the optimal one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_choice, check_integer, check_real
from .._base.threads import single_threaded_blas
from ..algorithms.drp_fit import DRPOptions, linear_fit, read_task
from ..algorithms.task import model_of, with_ranges
from ..features import PROJECTIONS, make_projection
from ..linear import ProjectedProblem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, Seed
    from ..columns.targets import ClassWeight
    from ..features.projections import ProjectionName
    from ..losses import LinearLossLike
    from ..model import SparseModel


@checks_call
def random_projection(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alpha: float,
    n_projections: int,
    projection: ProjectionName = "gaussian",
    loss: LinearLossLike = "squared",
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    rng: Seed = None,
    workers: int = 1,
) -> SparseModel:
    r"""Fit a linear model of m random projections of the inputs, and write it as one of the inputs:
    w = R z / sqrt(m).

    z solves the problem of `drp` for the projected rows R'x / sqrt(m). The model predicts nearly as
    the optimum does where X is of low rank and m is large, but w is far from the optimal w*,
    however large m is below the number of inputs d.

    Parameters
    ----------
    X, y, alpha, loss, fit_intercept, sample_weight, class_weight, rng, workers
        As in `drp`.
    n_projections : int
        The number m of projections, at least 1.
    projection : {"gaussian", "sparse_sign", "srht"}, default "gaussian"
        The kind of R, as in `drp`. The same seed gives the same R as there with
        ``accelerate=False``.

    Returns
    -------
    SparseModel
        `info.dual_gap` and `info.error_bound` are those of the problem in all inputs, as for `drp`.

    Raises
    ------
    ValueError, TypeError
        As `drp`.

    Notes
    -----
    Time O(n d m + n m^2 + m^3), less for the projections that are sparse or fast. Memory, beyond X:
    O(n m + m^2 + d).

    References
    ----------
    L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random
    Projection, COLT 2013: w^ of Section 3, and its Theorem 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import random_projection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 200))
    >>> model = random_projection(X, X[:, 0], alpha=0.01, n_projections=50, rng=0)
    >>> bool(np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.9)
    True
    """
    alpha = check_real("alpha", alpha, 0, strict=True)
    m = check_integer("n_projections", n_projections, 1)
    kind = check_choice("projection", projection, PROJECTIONS)
    options = DRPOptions.of_call(locals())
    with single_threaded_blas():
        fit, task = linear_fit(read_task(X, y, options), [alpha], options)
        if task.is_joint:
            raise ValueError(
                f"loss must not be {task.loss.name!r} for more than two classes: 'logistic' is "
                "one-vs-rest"
            )
        with fit.inputs.rows:
            projected = ProjectedProblem(
                fit, make_projection(kind, fit.inputs.n_features, m, options.rng)
            )
            fit.begin(alpha, np.inf)
            projected.expand(projected.solve())
    return with_ranges(model_of([fit], task), task)
