"""Prediction intervals and sets of classes of guaranteed coverage, by split or cross-conformal
prediction.

A threshold is a quantile of the scores of rows that the model was not fitted to (`experts.py`).
Intervals hold the numbers, and sets the classes, whose scores are not above it. Rows may have the
threshold of their level of a column (`levels.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._base import html
from .._base.calls import checks_call
from .._base.checks import check_choice, check_flag, check_integer, check_real, check_rng
from .._base.floats import methods_as_ieee
from .._base.progress import parts, reporting, tell_model
from ..columns.targets import check_target, label_indices, places_of
from ..losses import PROBABILISTIC
from ..losses.links import HazardLink
from ..model import SparseModel
from .experts import Expert, HeldOut, class_scores, ends_and_scale, has_ends, weight_within
from .folds import Dataset, draw_seeds
from .levels import Levels, Within
from .scale import FEWEST_FOR_SCALE, learn_scale

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from .._base.types import MatrixLike, Seed


@methods_as_ieee
@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals of numbers, or sets of classes, made by `intervals`.

    `predict(X)` returns the ends of the intervals; of a classifier, `predict_set(X)` the sets. They
    are immutable, and can be pickled.

    Attributes
    ----------
    coverage : float
        The share of new rows that the intervals, or sets, are to hold, as asked for.
    guarantee : float
        The guaranteed share: the mean share of new rows held, over repeated draws of all rows, is
        at least this, whatever the model and the distribution, if all rows are drawn alike
        (exchangeable) and have equal weights. With groups: of the rows of new groups, if all groups
        are drawn alike and have equal weights. Of several outputs: for each output, not for all at
        once. With `within`: the least of `guarantees` but for the zeros.
    experts : tuple of Expert
        The calibrated models: one for a split; for CV+ one a fold, whose `model` was fitted without
        the fold.
    limits : pair of float
        The least and the largest target that there may be, at which intervals are cut: those of the
        predictions of the models (0 and infinity with the log link, or `lower` and `upper`) where
        the rows given keep to them, infinite where not.
    classes : ndarray of shape (n_classes,) or None
        The labels that sets are made of; None for intervals of numbers.
    within : Within or None
        The levels of the column `within`, each with the experts that its rows calibrate.

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
    >>> labels = np.where(y > 0, "yes", "no")
    >>> model = srf.drp(X[:200], labels[:200], loss="logistic", alpha=1e-3, rng=0)
    >>> sets = srf.intervals(model, X[200:], labels[200:], coverage=0.9)
    >>> sets.classes, sets.predict_set([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    (array(['no', 'yes'], dtype='<U3'), array([[ True, False],
           [ True,  True]]))
    """

    experts: tuple[Expert, ...]
    coverage: float
    guarantee: float
    limits: tuple[float, float] = (-np.inf, np.inf)
    classes: np.ndarray | None = None
    within: Within | None = None

    @property
    def guarantees(self) -> dict[Any, float]:
        """The guaranteed share in each level of the column `within`, None for missing cells.

        0 where a level has too few rows that calibrate: its threshold, as that of levels that were
        not seen, is that of all rows, which guarantees nothing there. Empty without `within`.
        """
        return {} if self.within is None else dict(self.within.guarantees)

    def __repr__(self) -> str:
        words = [f"{len(self.experts)} model{'s' * (len(self.experts) > 1)}"]
        if self.classes is not None:
            words += [f"sets of {len(self.classes)} classes"]
        else:
            n_outputs, adaptive = self.experts[0].n_outputs, [e.scale for e in self.experts]
            words += [f"{n_outputs} outputs"] if n_outputs > 1 else []
            words += [f"{sum(scale is not None for scale in adaptive)} with a scale"]
        if self.within is not None:
            own, of = len(self.within.experts), len(self.guarantees)
            words += [f"within {self.within.levels.name!r}: {own} of {of} levels"]
        asked = f"coverage={self.coverage:g}, guarantee={self.guarantee:.3f}"
        return f"Intervals({asked}, {', '.join(words)})"

    def _repr_html_(self) -> str:
        n_outputs, is_of_classes = self.experts[0].n_outputs, self.classes is not None
        ends = [
            (f"model {j}" + f", output {k}" * (n_outputs > 1), expert, self._thresholds(expert, k))
            for j, expert in enumerate(self.experts, 1)
            for k in range(n_outputs)
        ]
        largest = max(most for *_, (_, most) in ends) or 1.0
        rows = []
        for name, expert, (least, most) in ends:
            width = f"{most:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            if not is_of_classes:
                beyond = f"{width} beyond its quantiles"
                width = beyond if has_ends(expert.model) else f"&plusmn; {width}"
            bar = html.bar(max(0.0, most / largest), max(0.0, least / largest))
            counts = str(len(expert.model.features)), str(len(expert.scores))
            rows.append([name, bar, width, *counts])
        what = "largest score in a set" if is_of_classes else "half the width"
        guaranteed = (
            f"{self.guarantee:.4g} guaranteed if no model was fitted to the rows that it "
            "is measured on"
        )
        return html.page(
            html.title("Intervals", f"coverage {self.coverage:.4g} asked for, {guaranteed}"),
            html.table(["", "", what, "terms", "rows that it is measured on"], rows, n_left=2),
            *([] if self.within is None else [self._table_of_levels()]),
        )

    def _table_of_levels(self):
        """Return a table of the guaranteed share of each level of the column `within`."""
        rows = [
            [html.text("missing" if label is None else label), html.bar(share), f"{share:.4g}"]
            for label, share in self.guarantees.items()
        ]
        return html.table([html.text(self.within.levels.name), "", "guaranteed"], rows, n_left=2)

    def _thresholds(self, expert, k):
        """Return the least and the largest half width of output k, equal without a scale; of
        classes the threshold of the scores, twice."""
        rank = weight_within(self.coverage, [one.weights for one in self.experts])
        share, scale = rank / sum(one.weights.sum() for one in self.experts), expert.scale
        score = expert.of_output(k).score_at(share * expert.weights.sum())
        if scale is None:
            return score, score
        return tuple(score * np.exp([np.ravel(scale.low)[k], np.ravel(scale.high)[k]]))

    def predict(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of the intervals, float64 arrays (n_samples,), or
        (n_samples, n_outputs) of several outputs.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            Rows, as the model takes them.
        workers : int, default 1
            Threads; -1 for all cores.
        offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
            What is added to f, as in the `predict` of a model.

        Raises
        ------
        ValueError, TypeError
            The intervals are sets of classes; or as the `predict` of a model.
        """
        if self.classes is not None:
            raise ValueError(
                f"predict needs intervals of numbers, got sets of {len(self.classes)} classes: "
                "predict_set returns them"
            )
        predictions = [
            ends_and_scale(each.model, each.scale, X, workers, offset) for each in self.experts
        ]
        shape = predictions[0][1].shape
        ends = np.empty((2, *shape))
        for experts, rows in self._experts_of_rows(X, shape[0]):
            weight = weight_within(self.coverage, [expert.weights for expert in experts])
            for k in np.ndindex(shape[1:]):
                some = rows, *k
                pair = []
                for side, sign in enumerate((-1.0, 1.0)):
                    of_side = [
                        (expert.of_output(*k), both[side][some], scale[some])
                        for expert, (both, scale) in zip(experts, predictions, strict=True)
                    ]
                    pair.append(sign * _end(weight, sign, of_side))
                # the ends of CV+ may cross where few rows lie between, and narrower quantiles
                ends[0, *some], ends[1, *some] = np.minimum(*pair), np.maximum(*pair)
        lower, upper = np.clip(ends, *self.limits)
        return lower, upper

    def predict_set(
        self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None
    ) -> np.ndarray:
        """Return which classes are in the set of each row, a bool array (n_samples, n_classes).

        The classes are in the order of `classes`. The most probable class, if it is so in all
        models, is in the set; no set is empty. A larger coverage, all else equal, gives sets that
        hold those of a smaller one. The set of a row is always the same: no random number decides.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            Rows, as the model takes them.
        workers : int, default 1
            Threads; -1 for all cores.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, as in the `predict_proba` of a model.

        Raises
        ------
        ValueError, TypeError
            The intervals are of numbers; or as the `predict_proba` of a model.
        """
        if self.classes is None:
            raise ValueError(
                "predict_set needs intervals of a classifier, got those of numbers: predict "
                "returns their ends"
            )
        scores = [
            class_scores(each.model, self.classes, X, workers, offset) for each in self.experts
        ]
        inside = np.empty(scores[0].shape, bool)
        for experts, rows in self._experts_of_rows(X, len(inside)):
            weight = weight_within(self.coverage, [expert.weights for expert in experts])
            below = sum(
                expert.weight_below(score[rows])
                for expert, score in zip(experts, scores, strict=True)
            )
            inside[rows] = (below < weight) | (below == below.min(axis=1, keepdims=True))
        return inside

    def _experts_of_rows(self, X, n_rows):
        """Yield experts, and the indices of the n_rows rows of X that they are calibrated for."""
        if self.within is None:
            yield self.experts, np.arange(n_rows)
        else:
            yield from self.within.experts_of_rows(X, self.experts)

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
            The intervals are of several models, as those of CV+ are, of classes, of several
            outputs, of several quantiles, or of the levels of a column; or as
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
        if self.classes is not None or expert.n_outputs > 1 or self.within is not None:
            raise ValueError(
                f"to_html needs intervals of one number, without within, got {self!r}: the page of "
                "their model is that of experts[0].model.to_html"
            )
        if has_ends(expert.model):
            raise ValueError(
                "to_html needs intervals about one prediction, got those of a model of several "
                "quantiles: see its own to_html"
            )
        half = expert.score_at(weight_within(self.coverage, [expert.weights]))
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


def _end(weight, sign, predictions):
    """Return each row's lower end, times -1, for the sign -1, or its upper end for the sign 1.

    The result is the least v such that calibration rows of this weight have sign * end + scale *
    score <= v.

    predictions : for each expert, calibrated on one output, itself, the predicted end and the scale
    """
    predictions = [each for each in predictions if len(each[0].scores)]  # no row may be of a level
    if len(predictions) == 1:
        ((expert, end, scale),) = predictions
        return sign * end + scale * expert.score_at(weight)
    ends = [
        (sign * end + scale * expert.scores[0], sign * end + scale * expert.scores[-1])
        for expert, end, scale in predictions
    ]
    low = np.min([least for least, _ in ends], axis=0)
    high = np.max([most for _, most in ends], axis=0)
    for _ in range(64):  # then the two ends are neighbouring floats
        middle = low + (high - low) / 2
        below = sum(
            expert.weight_up_to((middle - sign * end) / scale) for expert, end, scale in predictions
        )
        low = np.where(below >= weight, low, middle)
        high = np.where(below >= weight, middle, high)
    return high


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
    within: str | int | None = None,
    rng: Seed = None,
    verbose: bool | None = None,
) -> Intervals:
    """Make prediction intervals, or sets of classes, that hold a given share of new rows: conformal
    prediction.

    Parameters
    ----------
    function_or_model : function or SparseModel
        A function that fits, (X, y, rng=...) -> model of real targets, such as `sparse_rf` or a
        `functools.partial` of it, of several quantiles of one target, or of classes with
        probabilities, such as ``partial(sparse_rf, loss="logistic")`` or a partial of `calibrated`.
        Or a fitted model; then X, y must be rows that it has not seen, whose scores give the widths
        (split conformal).
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Rows in memory.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        The targets, or labels. Of several targets, the intervals of each hold the share
        `coverage`; all at once hold less.
    coverage : float, default 0.9
        Share of new rows that the intervals, or sets, are to hold, in (0, 1).
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
        from do not calibrate: for a fitted model these are half of the rows. Sets of classes have
        no scale: they are larger where the model is less sure. Nor have several quantiles, which
        have widths of their own.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights. A row of weight k counts as k rows in fits and in the coverage; the
        guarantee holds for equal weights.
    offset : array of shape (n_samples,) or (n_samples, n_outputs), or None, default None
        What is added to f in each row, for the fits and the scores; the scale of residuals does not
        depend on it.
    groups : array of shape (n_samples,) or None, default None
        The group of each row: numbers, strings or other labels. Then the intervals hold the share
        `coverage` of the rows of new groups, where groups, not rows, are drawn alike. Rows of a
        group are fitted, or calibrate, together, and a function that has an argument `groups`, such
        as `sparse_rf`, is given those of its rows.
    within : str, int or None, default None
        A column of X, by its name or index: categories, booleans, or numbers of few values. Then
        the intervals, or sets, hold the share `coverage` in each of its levels, missing cells being
        one: the rows of a level alone calibrate it (Mondrian conformal prediction). A level needs
        coverage / (1 - coverage) rows that calibrate, or groups: 9 for 0.9. Where it has fewer, and
        for a level that is new, the threshold is that of all rows, nothing is guaranteed there, and
        `guarantees` says so.
    rng : None, int or numpy.random.Generator, default None
        Seed of the folds and fits.
    verbose : bool or None, default None
        Whether to show progress after each fit, as in `sparse_rf`.

    Returns
    -------
    Intervals
        Its `predict(X)` returns the lower and upper ends; of classes, its `predict_set(X)` returns
        which classes are in each set.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or of another type; for classes without probabilities
        (`calibrated` gives them); for so few rows that no finite interval holds the share: n rows,
        or groups, that calibrate allow at most n / (n + 1); for a column `within` where most rows
        are in levels with too few.

    Warns
    -----
    UserWarning
        Some level of `within` has too few rows that calibrate.
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
    calibrate. With `within` a split holds `coverage` in each level, and CV+ as much less as with
    groups, n being the rows of the level.

    A set holds the most probable classes, until these have more probability together than the
    threshold (adaptive prediction sets): the score of a class is the probability of all classes
    that are more probable. The most probable class has the score 0, and is in. Sets are not
    randomised: a row has always the same set, and none is empty, but they hold more than asked
    where the most probable classes alone do. A row of a class that the model was not fitted to
    counts as one that no set holds.

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
    2020, for groups. Y. Romano, M. Sesia, E. J. Candès, Classification with valid and adaptive
    coverage, NeurIPS 2020, for sets. V. Vovk, A. Gammerman, G. Shafer, Algorithmic learning in a
    random world, 2005, section 4.5, for levels. Y. Romano, E. Patterson, E. J. Candès,
    Conformalized quantile regression, NeurIPS 2019, for quantiles.

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
    >>> X, kinds = np.hstack([X, X > 0]), np.where(y > 1, "high", np.where(y < 0, "low", "middle"))
    >>> of_kinds = partial(srf.drp, loss="multinomial", alpha=1e-3)
    >>> sets = srf.intervals(of_kinds, X[:800], kinds[:800], within=1, rng=0)
    >>> inside = sets.predict_set(X[800:])  # a column for each of sets.classes
    >>> held = inside[np.arange(400), np.searchsorted(sets.classes, kinds[800:])]
    >>> [bool(0.8 < held[X[800:, 1] == k].mean()) for k in (0, 1)], sets.guarantees
    ([True, True], {0.0: 0.9, 1.0: 0.9})
    """
    data = Dataset.from_arguments(X, y, sample_weight, offset, groups, several_outputs=True)
    coverage = _check_share("coverage", coverage)
    calibration = _check_share("calibration", calibration)
    check_choice("method", method, ("split", "cv+"))
    rng, cv, adaptive = check_rng(rng), check_integer("cv", cv, 2), check_flag("adaptive", adaptive)
    rows = np.flatnonzero(data.used)
    number, levels = (None, None) if within is None else Levels.learn(data, within)

    def n_by_level(calibrating):
        """Check that rows are enough to calibrate; return how many, or groups, each level has."""
        weight_within(coverage, [data.weights_of_groups(calibrating)])
        if levels is None:
            return {}
        return levels.with_enough_rows(number, data, calibrating, coverage)

    with reporting("intervals", None, verbose) as report:
        if callable(function_or_model):
            splits = _splits(data, rows, method, calibration, cv, rng)
            n_of_levels, held = n_by_level(np.concatenate([held for _, held in splits])), []
            seeds = np.reshape(draw_seeds(rng, 2 * len(splits)), (-1, 2)).tolist()
            for split, of_fit in parts(list(zip(splits, seeds, strict=True))):
                held.append(_fit(function_or_model, data, *split, coverage, adaptive, *of_fit))
                tell_model(held[-1].model.info)
        else:
            model, of_data = _check_model(function_or_model, data)
            if model.classes is not None:
                label_indices(model.classes, data.y[data.used])  # checks that it knows them
            scale, has_scale = None, adaptive and _may_have_scale(model)
            has_scale = has_scale and half_calibrates(data, rows, coverage)
            if has_scale:
                of_scale, rows = data.draw(rows, len(rows) // 2, rng)
            n_of_levels = n_by_level(rows)
            if has_scale:
                scale = learn_scale(model, of_data, of_scale, coverage, *draw_seeds(rng, 1))
            held = [_hold_out(model, scale, of_data, rows)]
        if report is not None:
            report.finish(held[-1].model.info)

    def guarantee(n, of_part):
        """Return the share guaranteed by n rows or groups, of all or of a part such as a level."""
        if len(held) == 1:
            return coverage
        return guarantee_of_cv(coverage, len(held), n, of_part or data.together is not None)

    of_levels = {k: guarantee(n, True) for k, n in n_of_levels.items()}
    of_all = guarantee(len(data.weights_of_groups(rows)), False)
    experts = tuple(each.expert() for each in held)
    of_experts = None
    if levels is not None:
        of_experts = Within.calibrated(levels, number, held, of_levels)
    classes = held[0].classes
    for some in (experts, *(() if of_experts is None else of_experts.experts.values())):
        _check_known(coverage, some)
    limits = (-np.inf, np.inf)
    if classes is None:
        limits = limits_of_targets(experts, data.y[data.used])
    least = min(of_levels.values(), default=of_all)
    return Intervals(experts, coverage, least, limits, classes, of_experts)


def _splits(data, rows, method, calibration, cv, rng):
    """Return the pairs of rows to fit and rows that calibrate, by their indices."""
    if method == "split":
        held, fitted = data.draw(rows, round(calibration * len(rows)), rng)
        if not len(held) or not len(fitted):
            raise ValueError(
                f"X must have rows to fit and rows to hold out, got {len(fitted)} and {len(held)}"
            )
        return [(fitted, held)]
    return [tuple(map(np.flatnonzero, split)) for split in data.splits(cv, rng)]


def _fit(function, data, fitted, held, coverage, adaptive, seed, seed_of_scale):
    """Fit a model, and its scale if wanted, to some rows, and score those held out."""
    model, data = _check_model(data.fit(function, fitted, seed), data)
    scale = None
    if adaptive and _may_have_scale(model):
        scale = learn_scale(model, data, fitted, coverage, seed_of_scale)
    return _hold_out(model, scale, data, held)


def _may_have_scale(model):
    """Return whether intervals are of one width without a scale: not sets, nor quantiles."""
    return model.classes is None and not has_ends(model)


def _hold_out(model, scale, data, rows):
    """Score rows that a model and its scale have not seen."""
    if model.classes is None:
        return HeldOut.of_numbers(model, scale, data, rows)
    classes = np.union1d(model.classes, data.y[data.used])
    if len(classes) == len(model.classes):
        classes = model.classes
    elif data.levels is not None:
        classes = classes[np.argsort(places_of(data.levels, classes), kind="stable")]
    return HeldOut.of_classes(model, classes, data, rows)


def limits_of_targets(experts: Sequence[Expert], y: np.ndarray) -> tuple[float, float]:
    """Return the limits of all models' predictions, infinite if the targets y exceed them."""
    limits = [
        getattr(expert.model, "limits_of_predictions", (-np.inf, np.inf)) for expert in experts
    ]
    lower, upper = min(least for least, _ in limits), max(most for _, most in limits)
    return lower if y.min() >= lower else -np.inf, upper if y.max() <= upper else np.inf


def _check_model(model, data):
    """Check that a model predicts numbers for each column of y, or probabilities; return it and the
    data with the targets that it is compared with."""
    if not hasattr(model, "predict") or not hasattr(model, "classes"):
        raise TypeError(
            "function_or_model must be a function that fits a model, or a model, got "
            f"{type(model).__name__}"
        )
    if model.classes is not None:
        if model.loss not in PROBABILISTIC:
            raise ValueError(
                f"function_or_model must have probabilities of classes, got {model!r}: "
                "sparserf.calibrated gives them to a model, or to the models of a function"
            )
        return model, data
    if model.link == HazardLink.name:
        raise ValueError(
            "function_or_model must predict targets that are all seen, got a model of times of "
            f"which some are censored, {model!r}: see its survival"
        )
    y = check_target(data.y, len(data), several_outputs=True).T
    if (() if has_ends(model) else np.shape(model.intercept)) != y.shape[1:]:
        n = y.shape[1] if y.ndim == 2 else 1
        raise ValueError(
            f"function_or_model must have a real target for each column of y, {n}, got {model!r}"
        )
    return model, replace(data, y=y)


def _check_known(coverage, experts):
    """Check that not so many rows are of classes which the models do not know that no sets can hold
    the share."""
    weight = weight_within(coverage, [expert.weights for expert in experts])
    largest = np.finfo(np.float64).max
    if sum(expert.of_output(0).weight_up_to(largest) for expert in experts) < weight:
        raise ValueError(
            "y must have labels that the models of the other rows know, in enough rows for "
            f"coverage={coverage:g}: too many rows have a label that is rare"
        )


def _check_share(name, value):
    """Check that the value is in (0, 1), and return it as a float."""
    value = check_real(name, value, 0, strict=True)
    if value >= 1:
        raise ValueError(f"{name} must be below 1, got {value}")
    return value


def guarantee_of_cv(coverage: float, n_folds: int, n: int, of_groups: bool = False) -> float:
    """Return the coverage that CV+ guarantees of n rows or groups: see `intervals`."""
    less = 2 * (1 - 1 / n_folds) / (n / n_folds + 1)
    less = less if of_groups else min(less, (1 - n_folds / n) / (n_folds + 1))
    return max(0.0, 1 - 2 * (1 - coverage) - less)


def half_calibrates(data: Dataset, rows: np.ndarray, coverage: float) -> bool:
    """Return whether a scale can be learned from half of the rows, and the rest calibrate: half of
    the groups, if any, must be enough for a finite interval."""
    n = len(data.weights_of_groups(rows)) // 2
    enough = data.together is None or coverage <= n / (n + 1)
    return len(rows) >= 2 * FEWEST_FOR_SCALE and enough
