"""Boosting of perceptrons with an l1 penalty, which Yen et al. (2014, Section 3.3) compare Sparse
Random Features with.

It is coordinate descent over all perceptrons, greedy as far as it can be: the perceptron that
descends most cannot be found exactly, and a convex surrogate, logistic regression, finds one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_choice, check_integer, check_real
from .._base.threads import single_threaded_blas
from ..algorithms.arguments import RowSetting
from ..algorithms.harfe_fit import root_mean_squares
from ..algorithms.sparse_rf.descent import L1Fit
from ..algorithms.sparse_rf.options import SparseRFOptions
from ..algorithms.task import Task, model_of, with_ranges
from ..features import FeatureSet, Linear, NeuronBlock
from ..losses import LOSSES
from ..solvers import ridge
from ..solvers.active import Support

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, RowVector
    from ..columns.targets import ClassWeight
    from ..features.dictionary import Kind
    from ..model import Callback, SparseModel
    from ..rows import Rows

# Penalty of the weak learner on inputs of mean square 1: it is enough for labels that a hyperplane
# separates.
RIDGE = 1e-4


def greedy_descent(fit: L1Fit, learner: WeakLearner, n_terms: int) -> None:
    """Add n_terms features to a fit that has begun at a penalty; see Section 3.3 of the paper."""
    for _ in range(n_terms):
        # h = argmin over perceptrons of (1/n) sum L'_i h(x_i), approximately (24)
        found = add_learner(fit, learner)
        fit.minimise_over(fit.draw(0))  #    minimise (8) over all that were added
        if fit.record() or not found:
            break


@checks_call
def boosting(
    X: MatrixLike,
    y: ArrayLike,
    *,
    alpha: float,
    n_terms: int,
    loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
    offset: Literal["surrogate", "exact"] = "surrogate",
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    tol: float = 1e-3,
    workers: int = 1,
    callback: Callback = None,
) -> SparseModel:
    r"""Fit boosting of perceptrons with an l1 penalty, which Sparse Random Features are compared
    with.

    Minimises over the features phi(x) = sign(t'x - c), all of them, and their coefficients

    .. math:: \frac1n \sum_i s_i L(b + \sum_j w_j \phi_j(x_i), y_i) + \alpha \|w\|_1

    by adding one feature at a time and minimising over all that were added. The feature that
    descends most cannot be found exactly; as in the paper, a convex surrogate finds one: logistic
    regression of the signs of the negative derivatives -L'_i on x, with weights ``s_i |L'_i|`` and
    a small ridge.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        The target; with a classification loss the labels, any two, or more for one-vs-rest.
    alpha : float
        Penalty, > 0, as in `sparse_rf`.
    n_terms : int
        Features to add at most, for each class.
    loss : {"squared", "squared_hinge", "logistic"}, default "squared_hinge"
    offset : {"surrogate", "exact"}, default "surrogate"
        "surrogate" takes c of the logistic regression; "exact" takes, along its t, the c that
        descends most.
    fit_intercept, sample_weight, class_weight, workers
        As in `sparse_rf`.
    tol : float, default 1e-3
        Largest duality gap of the problem over the features that were added, relative to its
        objective, at which to stop.
    callback : callable or None, default None
        Called after each feature with the `FitInfo` so far; returning True ends the fit, of
        one-vs-rest that of the class.

    Returns
    -------
    SparseModel
        `support` counts the features in the order in which they were added, from 0, or from k
        n_terms for class k of more than two; those that ended at zero are left out. `info.dual_gap`
        is that over the features that were added, not over all perceptrons.

    Raises
    ------
    ValueError, TypeError
        As `sparse_rf`.

    See Also
    --------
    sparse_rf : With features="perceptron", the randomised descent on the same objective.

    Notes
    -----
    The fit ends early where the surrogate's feature would not lower the objective by more than the
    tolerance allows. Nothing is random. Time for term t: O(n d m) a step of the surrogate, m the
    lesser of n and d, O(n log n) for the exact offset, and O(n t (d + a)) for the problem over t
    features, a of them in play. Memory, beyond X: O(n + t d + a^2 + m^2).

    References
    ----------
    I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon, Sparse Random Features
    Algorithm as Coordinate Descent in Hilbert Space, NIPS 2014. Section 3.3, (24).
    S. Rosset, J. Zhu, T. Hastie, Boosting as a Regularized Path to a Maximum Margin Classifier,
    JMLR 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from sparserf.baselines import boosting
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] + X[:, 1] > 0.5
    >>> model = boosting(X, y, alpha=0.01, n_terms=20, offset="exact")
    >>> bool(np.mean(model.predict(X) == y) > 0.9)
    True
    """
    rows = RowSetting(loss, sample_weight, class_weight, workers=workers)
    task = Task.from_arrays(X, y, rows, losses=("squared", "squared_hinge", "logistic"))
    alpha = check_real("alpha", alpha, 0, strict=True)
    n_terms = check_integer("n_terms", n_terms, 1)
    is_exact = check_choice("offset", offset, ("surrogate", "exact")) == "exact"
    options = SparseRFOptions(fit_intercept=fit_intercept, tol=tol, callback=callback)
    task = task.centered(options.fit_intercept)
    with single_threaded_blas(), task.rows:
        learner = WeakLearner(task.rows, is_exact)
        nothing = FeatureSet((), task.rows.n_features_in)
        fits = [
            L1Fit(task, y_k, Added(k * n_terms, nothing), options)
            for k, y_k in enumerate(task.targets)
        ]
        for fit in fits:
            fit.restart(alpha)
            greedy_descent(fit, learner, n_terms)
        return with_ranges(model_of(fits, task), task)


@dataclass
class Added:
    """The dictionary of one fit: one batch that grows; in the model the support counts from
    `first`."""

    first: int
    features: FeatureSet
    n_batches = 1
    is_random = False
    kind: ClassVar[Kind] = "random"
    follows: ClassVar[bool] = False

    @property
    def starts(self) -> np.ndarray:
        """The index of the first feature, and the end of the indices."""
        return np.array([self.first, self.first + len(self.features)])

    def batch(self, k: int) -> FeatureSet:
        """Return all features."""
        return self.features


def add_learner(fit: L1Fit, learner: WeakLearner) -> bool:
    """Add the weak learner's feature, unless it violates no more than penalty and tolerance allow;
    return whether it does."""
    feature = learner.fit(fit.A.v)
    found = fit.violates(feature)
    if found:
        fit.dictionary.features = fit.dictionary.features.concat(feature)
    return found


class WeakLearner:
    """The search for a feature phi = sign(t'x - c) for which |phi'v| is large, v the dual point, by
    logistic regression.

    is_exact: whether c is the best along t.
    """

    def __init__(self, rows: Rows, is_exact: bool):
        self._rows, self._is_exact = rows, is_exact
        self._inputs = Linear().draw(None, rows.n_features_in)

    def fit(self, v: RowVector) -> FeatureSet:
        """Return the feature found at the dual point v."""
        v = self._rows.vectors.fetch(v)
        t, f, b = self._hyperplane(v)
        c = best_threshold(f, v) if self._is_exact else -b
        return FeatureSet([NeuronBlock("sign", 1.0, t[None], np.array([-c]))], len(t))

    def _hyperplane(self, v):
        """Return (t, Xt, b) of the logistic regression, with t of length 1; v and Xt are
        ndarrays."""
        u, d, vectors = np.abs(v), len(self._inputs), self._rows.vectors
        u = u / (u.mean() or 1.0)
        r = root_mean_squares(self._rows.correlate_squares(self._inputs, u / len(v)))
        phi = Support(self._rows, self._inputs, r)
        phi.replace(np.arange(d))
        problem = ridge.RidgeProblem.from_arrays(
            vectors, LOSSES["logistic"], np.where(v > 0, -1.0, 1.0), u, RIDGE, True
        )
        f = vectors.zeros()
        found = ridge.solve(
            problem, phi, RIDGE * r * r, np.zeros(d), problem.best_intercept(f, 0.0), f
        )
        length = float(np.linalg.norm(found.w)) or 1.0
        return found.w / length, vectors.fetch(found.f) / length, found.b / length


def best_threshold(f: np.ndarray, v: np.ndarray) -> float:
    """Return the c that maximises |sum_i v_i sign(f_i - c)|: half way between two f_i that count,
    or below all."""
    f, v = f[v != 0], v[v != 0]
    if len(f) == 0:
        return 0.0
    order = np.argsort(f, kind="stable")
    f, below = f[order], np.cumsum(v[order])
    # with the first 0, 1, 2, ... rows at -1
    gain = np.abs(below[-1] - 2 * np.concatenate([[0.0], below[:-1]]))
    gain[1:][f[1:] == f[:-1]] = -1.0
    k = int(np.argmax(gain))
    if k == 0:
        return f[0] - 1 - abs(f[0])
    middle = f[k - 1] + (f[k] - f[k - 1]) / 2
    return middle if middle > f[k - 1] else f[k]
