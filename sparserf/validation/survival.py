"""Measures of models of times until events, as functions, and of the rows that are held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._base.calls import checks_call
from .._base.checks import as_real, check_finite, check_sample_weight, real_rows
from ..columns.times import SurvivalTimes, read_times
from ..losses import loss_from_parameters
from ..losses.measures import brier_scores, censoring, mean_over_times, pairs_of_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..model import SparseModel
    from .folds import HeldRows

# The Brier score of held-out rows is taken at so many quantiles, in this range, of the times of the
# events of the rows that were fitted: near both ends few rows tell.
N_TIMES, MIDDLE = 100, (0.1, 0.9)


@checks_call
def concordance(y: ArrayLike, f: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Compute Harrell's concordance: the share of the pairs of rows, of which one is known to have
    its event first, where that one has the larger f.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_samples, 2)
        Times and events, as in `losses.Cox`. Strata are no matter: pairs are of all rows.
    f : array of shape (n_samples,)
        Predictions, larger for rows with earlier events, such as a model's log hazard ratios.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights. A pair counts as the product of those of its rows.

    Returns
    -------
    float
        In [0, 1]; of equal f 0.5. A pair of equal f counts half. Of two events at one time neither
        is first; a row censored at that time has its event later.

    Raises
    ------
    ValueError, TypeError
        y or f are not as above, or there is no pair.

    Notes
    -----
    Time O(n log(n)^2), memory O(n).

    References
    ----------
    F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee, R. A. Rosati, Evaluating the Yield of
    Medical Tests, JAMA 247, 1982.

    Examples
    --------
    >>> import sparserf as srf
    >>> y = [(1.0, 1), (2.0, 0), (3.0, 1), (4.0, 0)]  # times, and whether the event was seen
    >>> srf.concordance(y, [3.0, 1.0, 0.0, 2.0])
    0.75
    """
    times = read_times(y)
    f = real_rows("f", f, len(times.time))
    weight = check_sample_weight(sample_weight, len(f))
    return 1.0 - float(np.average(_discordance(times, f, weight), weights=weight))


@checks_call
def integrated_brier_score(
    y: ArrayLike,
    survival: ArrayLike,
    times: ArrayLike,
    *,
    y_train: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the Brier score of predicted survival, its mean over an interval of times.

    At a time t it is the mean of (1{no event until t} - S(t))^2 over the rows of which that is
    known, weighted by 1 / the probability not to be censored before it is.

    Parameters
    ----------
    y : structured array, data frame, or array of shape (n_samples, 2)
        Times and events, as in `losses.Cox`.
    survival : array of shape (n_samples, n_times)
        The predicted probabilities of no event until each time, as `SparseModel.survival` returns
        them.
    times : array of shape (n_times,)
        The times, ascending. Between them the score is taken as linear.
    y_train : as y, or None, default None
        The rows of which the probabilities of censoring are estimated, by Kaplan and Meier's
        estimator, such as those that were fitted. None: those of y.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights of the mean.

    Returns
    -------
    float
        At least 0; of S = 1/2 everywhere about 0.25.

    Raises
    ------
    ValueError, TypeError
        An argument is not as above; or at some time all rows of y_train have been censored.

    References
    ----------
    E. Graf, C. Schmoor, W. Sauerbrei, M. Schumacher, Assessment and comparison of prognostic
    classification schemes for survival data, Stat. Med. 18, 1999.

    Examples
    --------
    >>> import sparserf as srf
    >>> y = [(1.0, 1), (2.0, 1), (3.0, 1), (4.0, 1)]
    >>> srf.integrated_brier_score(y, [[0.0], [0.5], [1.0], [1.0]], [2.0])
    0.0625
    """
    rows = read_times(y)
    times = _check_times(times)
    survival = as_real("survival", survival)
    if survival.shape != (len(rows.time), len(times)):
        raise ValueError(
            f"survival must have shape ({len(rows.time)}, {len(times)}), got {survival.shape}"
        )
    check_finite("survival", survival)
    train = rows if y_train is None else read_times(y_train)
    weight = check_sample_weight(sample_weight, len(rows.time))
    return float(np.average(_integrated(rows, survival, times, train), weights=weight))


def _check_times(times):
    """Return times as finite float64, checked to ascend."""
    times = as_real("times", times).astype(np.float64)
    if times.ndim != 1 or not len(times) or not (np.diff(times) > 0).all():
        raise ValueError(f"times must be numbers in ascending order, got {times}")
    check_finite("times", times)
    return times


def _discordance(times: SurvivalTimes, f: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return losses of rows of which the weighted mean is 1 - concordance."""
    later, smaller = pairs_of_rows(times.time, times.event, f, weight)
    total = float(weight @ later)
    if total == 0:
        raise ValueError("y must have a pair of rows of which one is known to have its event first")
    return weight.sum() / total * (later - smaller)


def _integrated(rows, survival, times, train):
    """Return the integrated Brier score of each row."""
    censored = censoring(train.time, train.event)
    scores = brier_scores(rows.time, rows.event, survival, times, censored)
    if not np.isfinite(scores).all():
        raise ValueError(
            "times must be those up to which some row of y_train is not censored, got "
            f"{times[~np.isfinite(scores).all(axis=0)][0]:g}"
        )
    return mean_over_times(scores, times)


# ------------------------------------------------------------
# losses of held-out rows


def discordance_of_rows(model: SparseModel, held: HeldRows) -> np.ndarray:
    """Return the losses of rows of which the weighted mean is 1 - concordance."""
    f = held.ask(model.decision_function)
    return _discordance(read_times(held.y), f, check_sample_weight(held.weight, len(f)))


def brier_of_rows(model: SparseModel, held: HeldRows) -> np.ndarray:
    """Return the integrated Brier score of each row, over the middle of the times of events."""
    rows, train = read_times(held.y), read_times(held.fitted_y)
    loss = loss_from_parameters(model.loss, model.loss_parameters)
    if not loss.has_times:
        raise ValueError(f"measure must not be 'brier' for a model of loss={model.loss!r}")
    f = held.ask(model.decision_function)
    times = np.unique(np.quantile(train.time[train.event], np.linspace(*MIDDLE, N_TIMES)))
    return _integrated(rows, loss.survival(f, times, rows.stratum), times, train)
