"""Prediction intervals of guaranteed coverage, by split or cross-conformal prediction.

The half width of an interval is a quantile of the residuals |y - f(x)| / s(x) of rows that the
model f was not fitted to. The scale s(x) is 1, or a model of the size of residuals, where that
makes intervals better by the interval score. A model of several quantiles has intervals already,
from the lowest to the highest: what is added to both ends is a quantile of how far y lies beyond
them, less than 0 within (conformalized quantile regression).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._base import html
from .._base.calls import checks_call
from .._base.checks import check_choice, check_flag, check_integer, check_real, check_rng
from .._base.floats import methods_as_ieee
from .._base.progress import parts, reporting, tell_model
from ..algorithms.sparse_rf import sparse_rf
from ..columns.targets import check_target
from ..losses.links import AscendingLink
from ..model import SparseModel
from .folds import Dataset, draw_seeds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from .._base.types import MatrixLike, Seed

# The fewest rows from which a scale is learned.
FEWEST_FOR_SCALE = 100
# The fewest groups from which a scale is learned: one decides, one is held out by the search, and
# one is fitted.
FEWEST_GROUPS_FOR_SCALE = 3


@methods_as_ieee
@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals, made by `intervals`; `predict(X)` returns their ends.

    They are immutable, and can be pickled.

    Attributes
    ----------
    coverage : float
        The share of new rows that the intervals are to hold, as asked for.
    guarantee : float
        The guaranteed share: the mean share of new rows held, over repeated draws of all rows, is
        at least this, whatever the model and the distribution, if all rows are drawn alike
        (exchangeable) and have equal weights. With groups: of the rows of new groups, if all groups
        are drawn alike and have equal weights.
    experts : tuple of Expert
        The calibrated models: one for a split; for CV+ one a fold, whose `model` was fitted without
        the fold.
    limits : pair of float
        The least and the largest target that there may be, at which intervals are cut: those of the
        predictions of the models (0 and infinity with the log link, or `lower` and `upper`) where
        the rows given keep to them, infinite where not.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).uniform(-1, 1, 500)
    >>> bands = srf.intervals(
    ...     srf.drp(X[:200], y[:200], alpha=1e-3, rng=0), X[200:], y[200:], coverage=0.9, rng=0
    ... )
    >>> lower, upper = bands.predict(X[:3])
    >>> bool((upper - lower < 2.2).all()), bands.coverage
    (True, 0.9)
    """

    experts: tuple[Expert, ...]
    coverage: float
    guarantee: float
    limits: tuple[float, float] = (-np.inf, np.inf)

    def __repr__(self) -> str:
        adaptive = sum(expert.scale is not None for expert in self.experts)
        how = f"{len(self.experts)} model{'s' * (len(self.experts) > 1)}, {adaptive} with a scale"
        return f"Intervals(coverage={self.coverage:g}, guarantee={self.guarantee:.3f}, {how})"

    def _repr_html_(self) -> str:
        widths = [self._half_widths(expert) for expert in self.experts]
        largest = max(most for _, most in widths) or 1.0
        rows = []
        for k, (expert, (least, most)) in enumerate(zip(self.experts, widths, strict=True), 1):
            said = f"{most:.4g}" if expert.scale is None else f"{least:.4g} to {most:.4g}"
            said = f"{said} beyond its quantiles" if expert.has_ends else f"&plusmn; {said}"
            rows.append(
                [
                    f"model {k}",
                    html.bar(max(0.0, most / largest), max(0.0, least / largest)),
                    said,
                    str(len(expert.model.features)),
                    str(len(expert.scores)),
                ]
            )
        head = ["", "", "half the width", "terms", "rows that it is measured on"]
        guaranteed = (
            f"{self.guarantee:.4g} guaranteed if no model was fitted to the rows that it "
            "is measured on"
        )
        return html.page(
            html.title("Intervals", f"coverage {self.coverage:.4g} asked for, {guaranteed}"),
            html.table(head, rows, n_left=2),
        )

    def _half_widths(self, expert):
        """Return the least and the largest half width of intervals, equal without a scale."""
        rank = weight_within(self.coverage, [one.weights for one in self.experts])
        share = rank / sum(one.cumulative_weights[-1] for one in self.experts)
        cumulative = expert.cumulative_weights
        score = expert.scores[np.searchsorted(cumulative, share * cumulative[-1]) - 1]
        return (
            (score, score)
            if expert.scale is None
            else tuple(score * np.exp([expert.scale.low, expert.scale.high]))
        )

    def predict(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of the intervals, float64 arrays (n_samples,).

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            Rows, as the model takes them.
        workers : int, default 1
            Threads; -1 for all cores.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, as in the `predict` of a model.
        """
        predictions = [expert.ends_and_scale(X, workers, offset) for expert in self.experts]
        weight = weight_within(self.coverage, [expert.weights for expert in self.experts])
        lower, upper = ((sign * self._end(weight, sign, predictions)) for sign in (-1.0, 1.0))
        # the ends of CV+ may cross where few rows lie between, and narrower quantiles
        ends = np.minimum(lower, upper), np.maximum(lower, upper)
        return np.clip(ends[0], *self.limits), np.clip(ends[1], *self.limits)

    @checks_call
    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
        time_limit: float | None = 2.0,
    ) -> str:
        """Write the model as one page for a browser, with the interval of each prediction.

        Parameters and result are those of `SparseModel.to_html`. With y the page says what share of
        the rows of X the intervals hold.

        Raises
        ------
        ValueError, TypeError
            The intervals are of several models, as those of CV+ are, or of several quantiles; or as
            `SparseModel.to_html`.
        """
        from ..page.content import Band
        from ..page.page import to_html

        if len(self.experts) > 1:
            raise ValueError(
                "to_html needs intervals of one model, as method='split' makes them, got "
                f"{len(self.experts)} models"
            )
        (expert,) = self.experts
        if expert.has_ends:
            raise ValueError(
                "to_html needs intervals about one prediction, got those of a model of several "
                "quantiles: see its own to_html"
            )
        weight = weight_within(self.coverage, [expert.weights])
        half = expert.scores[np.searchsorted(expert.cumulative_weights, weight) - 1]
        words = f"the interval for {100 * self.coverage:.4g} % of new rows"
        if X is not None and y is not None:
            lower, upper = self.predict(X)
            target = check_target(y, len(lower))
            held = np.mean((lower <= target) & (target <= upper))
            words += f"; it holds {100 * held:.1f} % of the rows given"
        scale = expert.scale
        of_scale = () if scale is None else (scale.model, scale.low, scale.high)
        band = Band(float(half), self.limits, words, *of_scale)
        return to_html(expert.model, path, X, y, title, time_limit, band)

    def _end(self, weight, sign, predictions):
        """Return each row's lower end, times -1, for the sign -1, or its upper end for the sign 1.

        The result is the least v such that calibration rows of this weight have sign * end + scale
        * score <= v.
        """
        predictions = [(ends[int(sign > 0)], scale) for ends, scale in predictions]
        if len(self.experts) == 1:
            (expert,), ((end, scale),) = self.experts, predictions
            return (
                sign * end
                + scale * expert.scores[np.searchsorted(expert.cumulative_weights, weight) - 1]
            )
        ends = [
            (sign * end + scale * expert.scores[0], sign * end + scale * expert.scores[-1])
            for expert, (end, scale) in zip(self.experts, predictions, strict=True)
        ]
        low = np.min([least for least, _ in ends], axis=0)
        high = np.max([most for _, most in ends], axis=0)
        for _ in range(64):  # then the two ends are neighbouring floats
            middle = low + (high - low) / 2
            below = sum(
                expert.cumulative_weights[
                    np.searchsorted(expert.scores, (middle - sign * end) / scale, side="right")
                ]
                for expert, (end, scale) in zip(self.experts, predictions, strict=True)
            )
            low = np.where(below >= weight, low, middle)
            high = np.where(below >= weight, middle, high)
        return high


def weight_within(coverage: float, weights: Sequence[np.ndarray]) -> float:
    """Return the weight of the calibration rows whose scores an interval holds.

    The new row counts as one more, of the mean weight, so that n equal rows give coverage * (n +
    1). With groups, a whole new group does.

    weights : for each expert the weights of its rows or groups
    """
    w = np.concatenate(weights)
    total, one = w.sum(), (w @ w) / w.sum()
    weight = coverage * (total + one) - 1e-9 * one
    if weight > total:
        most = f"{total / (total + one):.3g}"
        raise ValueError(
            f"coverage must be at most n / (n + 1) for n rows, or groups, that calibrate, {most}, "
            f"got {coverage}"
        )
    return weight


@dataclass(frozen=True, eq=False)
class Expert:
    """A model, the scale of its residuals, and the scores |y - f(x)| / s(x) that calibrate it.

    Of a model of several quantiles, from l(x) to u(x), the scores are max(l(x) - y, y - u(x)).

    Attributes
    ----------
    model : SparseModel
        The model f.
    scale : Scale or None
        The scale s; None for 1.
    scores : ndarray of shape (n,)
        In ascending order.
    cumulative_weights : ndarray of shape (n + 1,)
        The weight of the first 0, 1, ..., n scores.
    group_weights : ndarray of shape (n_groups,) or None
        The weight of each group of these rows; None where each row is on its own.
    """

    model: SparseModel
    scale: Scale | None
    scores: np.ndarray
    cumulative_weights: np.ndarray
    group_weights: np.ndarray | None = None

    @classmethod
    def from_held_out(
        cls, model: SparseModel, scale: Scale | None, data: Dataset, rows: np.ndarray
    ) -> Self:
        """Calibrate a model on rows, by indices or a mask, that neither it nor its scale saw."""
        X, y, weight = data.take(rows)
        (low, high), spread = _ends_and_scale(model, scale, X, 1, **data.offset_of(rows))
        scores = np.maximum(low - y, y - high) / spread
        order = np.argsort(scores, kind="stable")
        weight = np.ones(len(y)) if weight is None else weight
        of_groups = None if data.together is None else data.weights_of_groups(rows)
        return cls(
            model,
            scale,
            scores[order],
            np.concatenate([[0.0], np.cumsum(weight[order])]),
            of_groups,
        )

    @property
    def weights(self) -> np.ndarray:
        """The weight of each score, or of each group of rows."""
        return (
            np.diff(self.cumulative_weights) if self.group_weights is None else self.group_weights
        )

    @property
    def has_ends(self) -> bool:
        """Whether the model predicts several quantiles, of which the outer ones are ends."""
        return _has_ends(self.model)

    def ends_and_scale(
        self, X: MatrixLike, workers: int, offset: ArrayLike | None = None
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Return the lowest and the highest prediction, which may be one, and s(x) of each row."""
        return _ends_and_scale(self.model, self.scale, X, workers, offset)


def _has_ends(model):
    """Return whether a model predicts several quantiles."""
    return np.ndim(model.intercept) > 0


def _ends_and_scale(model, scale, X, workers, offset=None):
    """Return the lowest and the highest prediction and s(x) of each row of X; s is 1 where there is
    no scale."""
    predicted = np.asarray(
        model.predict(X, workers, **({} if offset is None else {"offset": offset})), np.float64
    )
    ends = (predicted[:, 0], predicted[:, -1]) if _has_ends(model) else (predicted, predicted)
    return ends, np.ones(len(predicted)) if scale is None else scale.predict(X, workers)


@checks_call
def intervals(
    function_or_model: Callable[..., Any] | SparseModel,
    X: MatrixLike,
    y: ArrayLike,
    *,
    coverage: float = 0.9,
    method: Literal["split", "cv+"] = "split",
    cv: int = 5,
    calibration: float = 0.3,
    adaptive: bool = True,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: Seed = None,
    verbose: bool | None = None,
) -> Intervals:
    """Make prediction intervals that hold a given share of new rows: conformal prediction.

    Parameters
    ----------
    function_or_model : function or SparseModel
        A function that fits, (X, y, rng=...) -> model of one real target, such as `sparse_rf` or a
        `functools.partial` of it, or of several quantiles of one. Or a fitted model; then X, y must
        be rows that it has not seen, whose residuals give the widths (split conformal).
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Rows in memory.
    y : array of shape (n_samples,)
        The target.
    coverage : float, default 0.9
        Share of new rows that the intervals are to hold, in (0, 1).
    method : {"split", "cv+"}, default "split"
        For a function. "split" fits one model and calibrates it on rows that were held out. "cv+"
        fits a model without each of the folds, so that all rows calibrate, and all but a fold fit;
        it is for few rows. Its interval at x reaches from where few of f_k(x) - R_i s_k(x) lie
        below to where few of f_k(x) + R_i s_k(x) lie above, over all rows i, with k the fold of row
        i and R_i its score.
    cv : int, default 5
        Number of folds of "cv+", at least 2. With n_samples folds it is the jackknife+.
    calibration : float, default 0.3
        Share of the rows that "split" holds out, in (0, 1).
    adaptive : bool, default True
        Whether intervals may be wider where residuals are larger. The scale of residuals is a
        `sparse_rf` model of ``log(|residual| + half their median)``, with one search; it is used if
        it lowers the interval score on other rows than it learned from. Rows that the scale learns
        from do not calibrate: for a fitted model these are half of the rows. Several quantiles have
        widths of their own, and no scale.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights. A row of weight k counts as k rows in fits and in the coverage; the
        guarantee holds for equal weights.
    offset : array of shape (n_samples,) or None, default None
        What is added to f in each row, for the fits and the residuals; the scale of residuals does
        not depend on it.
    groups : array of shape (n_samples,) or None, default None
        The group of each row: numbers, strings or other labels. Then the intervals hold the share
        `coverage` of the rows of new groups, where groups, not rows, are drawn alike. Rows of a
        group are fitted, or calibrate, together, and a function that has an argument `groups`, such
        as `sparse_rf`, is given those of its rows.
    rng : None, int or numpy.random.Generator, default None
        Seed of the folds and fits.
    verbose : bool or None, default None
        Whether to show progress after each fit, as in `sparse_rf`.

    Returns
    -------
    Intervals
        Its `predict(X)` returns the lower and upper ends.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or of another type; for a model of classes or of several
        targets; for so few rows that no finite interval holds the share: n rows, or groups, that
        calibrate allow at most n / (n + 1).

    Warns
    -----
    CopiedRowsWarning
        More than a tenth of the rows are copies of others, with which they stay in one part.
    ConvergenceWarning
        As the function.

    See Also
    --------
    calibrated : Probabilities of classes.

    Notes
    -----
    Intervals are cut where no target can be: below 0 with the log link of counts and amounts, and
    beyond `lower` and `upper` of the model; not at a limit that a row of X, y is beyond.

    Of a model of several quantiles the intervals go from the lowest to the highest, with one number
    added at both ends, which may be negative (Romano, Patterson, Candès). The levels should be
    those of the coverage, (1 - coverage) / 2 and (1 + coverage) / 2.

    The rows given and new rows must be drawn alike (exchangeable). Then a split holds at least the
    share `coverage` of new rows, in the mean over draws of the calibration rows, and at most 1 / (n
    + 1) more if no scores tie. CV+ of K folds and n rows holds at least

    .. math:: 1 - 2 \\alpha
        - \\min\\left(\\frac{2 (1 - 1/K)}{n/K + 1}, \\frac{1 - K/n}{K + 1}\\right),
        \\quad \\alpha = 1 - coverage,

    and in practice `coverage` and more. Where the models of the folds differ by as much as they
    miss y, as where there is little noise, it holds too many rows. Both shares are of all rows
    together, not at each x. A scale changes neither, as it is learned from rows that do not
    calibrate.

    With groups of equal size, and n their number, a split holds at least `coverage` of the rows of
    new groups, for the same reason: all groups are exchangeable (Lee, Barber, Willett). Of CV+ only
    the first of the two terms is subtracted, since its proof alone carries over: a mean of p-values
    is at most twice too small (Vovk, Wang).

    Time: that of the fit, or of K fits for CV+, and as many fits of a scale; a row of `predict`
    takes the predictions of the models and O(K log n). Memory: the models and n numbers.

    References
    ----------
    R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, Predictive inference with the
    jackknife+, Annals of Statistics 49, 2021, Theorem 4. J. Lei, M. G'Sell, A. Rinaldo, R. J.
    Tibshirani, L. Wasserman, Distribution-free predictive inference for regression, JASA 113, 2018,
    for splits and scales. T. Gneiting, A. E. Raftery, Strictly proper scoring rules, JASA 102,
    2007, for the interval score. Y. Lee, R. F. Barber, R. Willett, Distribution-free inference with
    hierarchical data, 2023, and V. Vovk, R. Wang, Combining p-values via averaging, Biometrika 107,
    2020, for groups. Y. Romano, E. Patterson, E. J. Candès, Conformalized quantile regression,
    NeurIPS 2019, for quantiles.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * (1 + X[:, 0] ** 2) * rng.standard_normal(1200)
    >>> fit = partial(srf.sparse_rf, features="gaussian", n_components=300)
    >>> bands = srf.intervals(fit, X[:800], y[:800], coverage=0.9, method="cv+", rng=0)
    >>> lower, upper = bands.predict(X[800:])
    >>> bool(0.85 < np.mean((lower <= y[800:]) & (y[800:] <= upper)) < 0.95)
    True
    >>> ends = bands.predict(np.array([[0.0], [2.0]]))
    >>> bool(np.diff(ends[1] - ends[0])[0] > 0.5)  # wider where there is more noise
    True
    """
    data = Dataset.from_arguments(X, y, sample_weight, offset, groups)
    data = replace(data, y=check_target(data.y, len(data)))
    coverage = _check_share("coverage", coverage)
    calibration = _check_share("calibration", calibration)
    check_choice("method", method, ("split", "cv+"))
    rng, cv, adaptive = check_rng(rng), check_integer("cv", cv, 2), check_flag("adaptive", adaptive)
    rows, guarantee = np.flatnonzero(data.used), coverage
    with reporting("intervals", None, verbose) as report:
        if not callable(function_or_model):
            model, scale = _check_model(function_or_model), None
            if (
                adaptive
                and not _has_ends(model)
                and len(rows) >= 2 * FEWEST_FOR_SCALE
                and half_calibrates(data, rows, coverage)
            ):
                of_scale, rows = data.draw(rows, len(rows) // 2, rng)
                scale = learn_scale(model, data, of_scale, coverage, *draw_seeds(rng, 1))
            experts = [Expert.from_held_out(model, scale, data, rows)]
        elif method == "split":
            held, fitted = data.draw(rows, round(calibration * len(rows)), rng)
            experts = [
                _fit_expert(
                    function_or_model, data, fitted, held, coverage, adaptive, draw_seeds(rng, 2)
                )
            ]
        else:
            weight_within(coverage, [data.weights_of_groups(rows)])  # checks the coverage
            splits, experts = data.splits(cv, rng), []
            cv = len(splits)
            seeds = draw_seeds(rng, 2 * cv)
            for k, (fitted, held) in parts(list(enumerate(splits))):
                fitted, held = np.flatnonzero(fitted), np.flatnonzero(held)
                two_seeds = seeds[2 * k : 2 * k + 2]
                experts.append(
                    _fit_expert(
                        function_or_model, data, fitted, held, coverage, adaptive, two_seeds
                    )
                )
                tell_model(experts[-1].model.info)
            guarantee = guarantee_of_cv(
                coverage, cv, len(data.weights_of_groups(rows)), data.together is not None
            )
        if report is not None:
            report.finish(experts[-1].model.info)
    weight_within(coverage, [expert.weights for expert in experts])  # checks the coverage
    return Intervals(
        tuple(experts), coverage, guarantee, limits_of_targets(experts, data.y[data.used])
    )


def limits_of_targets(experts: Sequence[Expert], y: np.ndarray) -> tuple[float, float]:
    """Return the limits of all models' predictions, infinite if the targets y exceed them."""
    limits = [
        getattr(expert.model, "limits_of_predictions", (-np.inf, np.inf)) for expert in experts
    ]
    lower, upper = min(least for least, _ in limits), max(most for _, most in limits)
    return lower if y.min() >= lower else -np.inf, upper if y.max() <= upper else np.inf


def _check_model(model):
    """Check that a model has one real target, or several quantiles of one, and return it."""
    if not hasattr(model, "predict") or not hasattr(model, "classes"):
        raise TypeError(
            "function_or_model must be a function that fits a model, or a model, got "
            f"{type(model).__name__}"
        )
    is_of_one = np.ndim(model.intercept) == 0 or model.link == AscendingLink.name
    if model.classes is not None or not is_of_one:
        raise ValueError(f"function_or_model must be of one real target, got {model!r}")
    return model


def _check_share(name, value):
    """Check that the value is in (0, 1), and return it as a float."""
    value = check_real(name, value, 0, strict=True)
    if value >= 1:
        raise ValueError(f"{name} must be below 1, got {value}")
    return value


def _fit_expert(function, data, fitted, held, coverage, adaptive, two_seeds):
    """Fit a model, and its scale if wanted, to some rows, and calibrate it on held-out ones."""
    if not len(held) or not len(fitted):
        raise ValueError(
            f"X must have rows to fit and rows to hold out, got {len(fitted)} and {len(held)}"
        )
    model = _check_model(data.fit(function, fitted, two_seeds[0]))
    has_scale = adaptive and not _has_ends(model)
    scale = learn_scale(model, data, fitted, coverage, two_seeds[1]) if has_scale else None
    return Expert.from_held_out(model, scale, data, held)


def guarantee_of_cv(coverage: float, n_folds: int, n: int, of_groups: bool = False) -> float:
    """Return the coverage that CV+ guarantees of n rows or groups: see `intervals`."""
    less = 2 * (1 - 1 / n_folds) / (n / n_folds + 1)
    less = less if of_groups else min(less, (1 - n_folds / n) / (n_folds + 1))
    return max(0.0, 1 - 2 * (1 - coverage) - less)


def half_calibrates(data: Dataset, rows: np.ndarray, coverage: float) -> bool:
    """Return whether half of the groups, if any, suffice for a finite interval."""
    n = len(data.weights_of_groups(rows)) // 2
    return data.together is None or coverage <= n / (n + 1)


# -------------------------------------------------------------------------------------------------
# scale of residuals


@dataclass(frozen=True, eq=False)
class Scale:
    """The size of residuals, up to a factor: exp of a model of log(|y - f(x)| + floor).

    low, high : the range of that model on the rows it was fitted to, at which its predictions are
        clipped
    """

    model: SparseModel
    low: float
    high: float

    def predict(self, X: MatrixLike, workers: int = 1) -> np.ndarray:
        """Return s(x) of each row."""
        return np.exp(
            np.clip(np.asarray(self.model.predict(X, workers), np.float64), self.low, self.high)
        )


def learn_scale(
    model: SparseModel, data: Dataset, rows: np.ndarray, coverage: float, seed: int
) -> Scale | None:
    """Learn the scale of a model's residuals from rows, which the model may have seen.

    Rows, or groups, apart from those that it is learned from decide whether it is used, by the
    interval score of intervals that hold the share `coverage` of them. Return None where intervals
    of one width score better, or where rows or groups are too few to learn from.
    """
    if len(rows) < FEWEST_FOR_SCALE or len(data.weights_of_groups(rows)) < FEWEST_GROUPS_FOR_SCALE:
        return None
    deciding, learning = data.draw(rows, int(0.3 * len(rows)), np.random.default_rng(seed))
    residual = np.zeros(len(data))
    residual[rows] = np.abs(
        data.y[rows]
        - np.asarray(model.predict(data.take(rows)[0], **data.offset_of(rows)), np.float64)
    )
    floor = 0.5 * np.median(residual[learning])
    if not floor > 0:
        return None
    data = replace(data, y=np.log(residual + floor), offset=None)
    of_log = data.fit(sparse_rf, learning, seed)
    seen = of_log.predict(data.take(learning)[0])
    scale = Scale(of_log, float(seen.min()), float(seen.max()))
    X, _, weight = data.take(deciding)
    with_scale = interval_score(residual[deciding], scale.predict(X), weight, coverage)
    without = interval_score(residual[deciding], np.ones(len(deciding)), weight, coverage)
    return scale if with_scale < without else None


def interval_score(
    residual: np.ndarray, width: np.ndarray, weight: np.ndarray | None, coverage: float
) -> float:
    """Return the mean interval score, 2 h + 2 max(|residual| - h, 0) / (1 - coverage), over rows.

    The half widths h are the multiple of `width` that holds the share `coverage` of these rows. A
    lower score is better.
    """
    weight, score = np.ones(len(width)) if weight is None else weight, residual / width
    order = np.argsort(score)
    cumulative = np.cumsum(weight[order])
    h = (
        width
        * score[order][
            min(np.searchsorted(cumulative, coverage * cumulative[-1]), len(cumulative) - 1)
        ]
    )
    return np.average(2 * h + 2 * np.maximum(residual - h, 0) / (1 - coverage), weights=weight)
