"""Refit an edited model: some terms are dropped, some stay as they are, columns are flattened,
coefficients get a sign, and the others are fitted again with the model's own loss.

With f the new model, g the one before, w_kj and v_kj their coefficients of output k, the minimum is
sought, over the terms that are neither dropped nor frozen, of

    (1/n) sum_i s_i [(1 - t) L(f_i, y_i) + t D(f_i, g_i)] + (lambda / 2) sum_kj h_kj (w_kj - v_kj)^2

where t is `trust`, D the Bregman divergence of the loss of the row,

    D(f, g) = L(f, y) - L(g, y) - L'(g, y) (f - g),

and h_kj = (1/n) sum_i s_i L'' phi_j(x_i)^2 where the fit begins. For the squared loss the target is
(1 - t) y + t g; for losses of exponential families, such as the logistic one, it is the mean of y
and of what the model predicts. The sum in brackets is L(f, y) - t L'(g, y) f, but for a constant:
only one gradient, that of the mean loss at the model before, is needed of it.

Newton steps are those of `default/fit_of_terms.py`, of classes that are fitted together those of
`refit_multinomial.py`. Terms that are frozen are added to the margins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_real
from .._base.threads import single_threaded_blas
from ..expansion.fit_info import warn_unconverged
from ..losses import LOSSES, check_loss
from ..losses.base import Loss
from ..model import SparseModel, check_model
from .arguments import ColumnSetting, FitOptions, RowSetting
from .default.fit_of_terms import FitOfTerms, minimised
from .default.mean import with_best_intercept
from .edits import counted, flattened, read_edit
from .model_of_fits import with_ties
from .refit_multinomial import FitOfClasses
from .task import Task

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from .edits import Edit, Ends, TermKey, Terms

# The most passes over the rows; and the relative decrease of the objective in a pass below which it
# has come to rest.
PASSES, LEAST_DECREASE = 100, 1e-10
# The most numbers of the Hessians of all outputs: 0.8 GB, of which there are a few copies.
MOST_NUMBERS = 1e8
# lambda: beside the curvature of the mean loss, it counts so much what coefficients were before.
RIDGE = 0.01


@checks_call
def refit(
    model: SparseModel,
    X: MatrixLike,
    y: ArrayLike,
    *,
    drop: Terms = None,
    freeze: Terms = None,
    flatten: Mapping[str | int, Ends] | None = None,
    sign: Mapping[TermKey, int] | None = None,
    trust: float = 0.75,
    loss: Loss | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    workers: int = 1,
) -> SparseModel:
    r"""Edit a model that you have looked at, and fit the rest of it again with the same loss.

    Terms are dropped or stay as they are, columns are made constant beyond some ends, and
    coefficients get a sign. With f the new model and g the one before, the coefficients of all
    other terms, and the intercept, minimise

    .. math:: \frac{1}{n} \sum_i s_i \bigl[(1 - t) L(f(x_i), y_i) + t D(f(x_i), g(x_i))\bigr]
        + \frac{0.01}{2} \sum_j h_j (w_j - v_j)^2

    over rows of weights s of mean 1. D is the divergence of the loss,
    :math:`D(f, g) = L(f, y) - L(g, y) - L'(g, y) (f - g)`: with the squared loss the target is
    (1 - t) y + t g, with the logistic loss that mean of labels and probabilities. v are the
    coefficients before, and :math:`h_j = \frac{1}{n} \sum_i s_i L'' \phi_j(x_i)^2` where the fit
    begins. (A coefficient before of another sign than `sign` counts as 0.)

    Parameters
    ----------
    model : SparseModel
        The model, which is not changed.
    X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        The rows of the fit, or others. They may be chunks, on a device or in Dask.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        The target, of the same outputs or classes.
    drop : int, str, or sequence of these, optional
        The terms that go. An integer is the place of a term in `coef`; a string is the name of a
        column, for all terms that see it, or a rule in words, as `summary`, `formula` and the page
        write it. Columns of an array are called x0, x1, ... Without any term left the model is a
        constant.
    freeze : int, str, or sequence of these, optional
        The terms whose coefficients stay as they are, bit for bit.
    flatten : mapping, optional
        {name or index of a column: (low, high)}. Below low and above high the model is constant in
        the column. None stands for the end of the training rows (`SparseModel.ranges`). Of a column
        of times these may be times.
    sign : mapping, optional
        {term, as in `drop`: 1 or -1}. What stands before the term in the formula is at least 0, or
        at most 0, for all outputs; terms that become 0 are left out.
    trust : float, default 0.75
        How much the predictions of the model count beside y, in [0, 1]: t above. 0: y alone; 1: the
        predictions alone, as `prune` does.
    loss : Loss, optional
        The loss of the model, where it is your own; else None.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights of the rows.
    offset : array of shape (n_samples,) or (n_samples, n_outputs), optional
        What is added to f in the loss, as in `sparse_rf`.
    workers : int, default 1
        Threads; -1 for all cores. The result has the same bits for any number.

    Returns
    -------
    SparseModel
        `info` is that of `model`, and its `edits` tell what was changed, and the mean loss of these
        rows before and after; validation_loss, fidelity and the bounds are None. Limits stay.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another type; a term or a column is not there, or no
        term sees it; a term is named by two of `drop`, `freeze` and `sign`; y has other classes or
        outputs than the model; the Hessian of all terms has more than 1e8 numbers.

    Warns
    -----
    ConvergenceWarning
        The objective has not come to rest in 100 passes over the rows.

    See Also
    --------
    prune : Chooses the terms that stay.
    sparse_rf : The fit; with `monotone` for a model that is monotone in a column.

    Notes
    -----
    The best coefficients for the rows of a fit are not the best for new rows. Fitted again to their
    own rows with trust=0, without an edit, the default's models of two tables, as numbers and in
    two and three classes, had 1.01 to 2.4 times the error on new rows that they had before; with
    0.75 0.98 to 1.02 times. Give less for other rows than those of the fit.

    Coefficients that must be at least 0, as in a monotone model, stay so. A flat end keeps monotone
    functions monotone, and makes a convex one no longer convex. A column whose time of the day, the
    week or the year is seen cannot be flattened.

    Each Newton step takes a pass over the rows, O(n a^2) for n rows and a terms, and O(a^3); a
    square needs three, other losses some ten, quantiles up to a hundred. Memory: O(a^2) for each
    output, O(k^2 a^2) for k classes that are fitted together.

    References
    ----------
    L. M. Bregman, The relaxation method of finding the common point of convex sets and its
    application to the solution of problems in convex programming, USSR Computational Mathematics
    and Mathematical Physics 7, 1967.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = np.sign(X[:, 0]) + 0.5 * (X[:, 1] > 1) + 0.1 * rng.standard_normal(1000)
    >>> model = srf.sparse_rf(X, y, features=srf.Rules(), max_terms=5, rng=0, verbose=False)
    >>> edited = srf.refit(model, X, y, drop="x1", flatten={"x0": (-1, 1)})
    >>> edited.info.edits[1]
    'made constant in x0 beyond [-1, 1]'
    >>> bool(edited.predict([[5.0, 0.0]]) == edited.predict([[1.0, 2.0]]))
    True
    """
    check_model(model)
    if check_real("trust", trust, 0) > 1:
        raise ValueError(f"trust must be in [0, 1], got {trust}")
    edit = read_edit(model, drop, freeze, sign, flatten)
    options = FitOptions(
        features=model.features,
        columns=ColumnSetting(missing="learn"),
        rows=RowSetting(_loss_of(model, loss), sample_weight, None, offset, None, workers),
    )
    task = Task.from_options(X, y, options, losses=tuple(LOSSES), several_outputs="apart")
    _check_task(model, task, np.count_nonzero(~(edit.dropped | edit.frozen)))
    with single_threaded_blas(), task.raw:
        return refitted(model, task.centered(True), edit, trust)


def refitted(model: SparseModel, task: Task, edit: Edit, trust: float) -> SparseModel:
    """Return the edited model, its other terms fitted again to the rows of a task."""
    features, is_constant = flattened(model, edit.ends)
    kept = np.flatnonzero(~(edit.dropped | is_constant))
    features = features.take(kept)
    sign = np.where(features.nonnegative, 1, edit.sign_of_coef(model)[kept])
    coef = model.coef[..., kept]
    coef = np.where((sign != 0) & (np.sign(coef) == -sign), 0.0, coef)
    edited = replace(model, coef=coef, features=features, support=model.support[kept])
    again = fitted_again(model, edited, task, sign, edit.frozen[kept], trust)

    used = np.atleast_2d(again.coef).any(axis=0) | edit.frozen[kept]
    features = features.take(np.flatnonzero(used))
    sentences = edit.sentences(model)
    for mask, words in ((is_constant & ~edit.dropped, "then constant"), (~used, "that became 0")):
        if mask.any():
            sentences.append(f"left out {counted(np.count_nonzero(mask))} {words}")
    n_again = np.count_nonzero(used & ~edit.frozen[kept])
    sentences.append(
        f"fitted {counted(n_again)} again to {task.raw.n_rows:,} rows, mean loss "
        f"{again.loss:.4g} (before: {again.loss_before:.4g})"
    )
    info = replace(
        model.info,
        n_nonzero=len(features),
        edits=(*model.info.edits, *sentences),
        **dict.fromkeys(("validation_loss", "fidelity", "dual_gap", "error_bound")),
    )
    return with_ties(
        replace(
            edited,
            coef=again.coef[..., used],
            intercept=again.intercept,
            support=edited.support[used],
            features=features,
            ranges=model.ranges.seen_by(features.columns_seen),
            info=info,
        )
    )


class Refitted(NamedTuple):
    """The coefficients and intercepts of a model that is fitted again, and the mean loss of the
    rows with it and with the model before, in units of y."""

    coef: np.ndarray
    intercept: float | np.ndarray
    loss: float
    loss_before: float


def fitted_again(
    model: SparseModel,
    edited: SparseModel,
    task: Task,
    sign: np.ndarray,
    is_frozen: np.ndarray,
    trust: float,
) -> Refitted:
    """Fit the terms of the edited model that are not frozen to the rows of a task.

    model : the model before it was edited
    sign : that of the coefficient of each term; 0 for any
    """
    edited = with_best_intercept(edited, task)
    features, terms = edited.features, edited.features.encoded(None)
    free, frozen = np.flatnonzero(~is_frozen), np.flatnonzero(is_frozen)
    rows = task.raw.encoded(features.encoder, is_asked_often=True)
    Fit = FitOfClasses if task.is_joint else FitOfTerms
    fit = Fit(rows, terms.take(free), task, sign[free], dtype=None)
    (w, b), (w_before, b_before) = fit.in_units(edited), fit.in_units(model)
    f = task.raw.encoded(model.features.encoder).apply(model.features.encoded(None), w_before)
    losses_before, *slopes = fit.slopes_at(f, b_before)

    found = []
    for k in [None] if task.is_joint or fit.is_square else range(len(w)):
        own = slice(None) if k is None else slice(k, k + 1)
        fixed = (rows.apply(terms.take(frozen), w[own][:, frozen]),) if len(frozen) else ()
        tilt = trust * slopes[0][own], trust * slopes[1][own]
        one = replace(fit, fixed=fixed, tilt=tilt, output=k)
        found.append(minimised(one, w[own][:, free], b[own], RIDGE, PASSES, LEAST_DECREASE))
    solution = zip(*(each.solution for each in found), strict=True)
    w, b = fit.in_units_of_y(*map(np.concatenate, solution))
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    if not all(each.has_converged for each in found):
        warn_unconverged(
            f"refit ended after {PASSES} passes over the rows, before the objective came to rest"
        )
    coef = edited.coef.copy()
    coef[..., free] = w.reshape(*coef.shape[:-1], len(free))
    loss = fit.total(np.concatenate([each.losses for each in found]))
    is_one = np.ndim(model.intercept) == 0
    return Refitted(coef, float(b[0]) if is_one else b, loss, fit.total(losses_before))


def _loss_of(model, loss):
    """Return the loss of a model; `loss` is that of the user where it is the user's own."""
    if model.loss in LOSSES:
        if loss is not None:
            raise ValueError(f"loss must be None for a model of {model.loss!r}, got {loss!r}")
        return type(LOSSES[model.loss])(**model.loss_parameters)
    if not isinstance(loss, Loss) or loss.name != model.loss:
        raise ValueError(
            f"loss must be the loss {model.loss!r} of the model, which is your own, got {loss!r}"
        )
    return check_loss(loss, ())


def _check_task(model, task, n_terms):
    """Check that a task has the columns, and the classes or outputs, of a model, and that there are
    not too many terms to be fitted."""
    K, d = np.size(model.intercept), task.raw.n_features_in
    if d != model.n_features_in:
        raise ValueError(f"X must have {model.n_features_in} columns, got {d}")
    if model.classes is not None and not np.array_equal(task.classes, model.classes):
        raise ValueError(
            f"y must hold the labels of the model, {model.classes.tolist()}, and no others, got "
            f"{task.classes.tolist()}"
        )
    if len(task.targets) != K:
        raise ValueError(f"y must have {K} outputs, as the model has, got {len(task.targets)}")
    most = int((MOST_NUMBERS / (K**2 if task.is_joint else K)) ** 0.5)
    if n_terms > most:
        raise ValueError(
            f"model must have at most {most:,} terms to be fitted again, got {n_terms:,}: prune it"
        )
