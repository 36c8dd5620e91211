"""Prediction intervals that hold as often as asked: split conformal, and cross-conformal (CV+)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._base import html as html
from .._base.calls import checks_call
from .._base.checks import check_choice, check_flag, check_integer, check_real, check_rng
from .._base.progress import parts, reporting, tell_model
from ..columns.targets import check_target
from ..model import SparseModel
from .folds import Data, seeds
from .residuals import FEWEST, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import MatrixLike, Seed

HALVINGS = 64  # of an interval of floats, after which its ends are neighbours


@dataclass(frozen=True, eq=False)
class Intervals:
    """Prediction intervals of a model, or of those of several folds. Made by `intervals`; immutable, picklable.

    Attributes
    ----------
    experts : tuple of Expert
        One for a split; one a fold, each with the `model` that was fitted without the fold.
    coverage : float
        What was asked for: the share of new rows that the intervals are to hold.
    guarantee : float
        The share of new rows, in the mean over the draws of all rows, below which it cannot be, whatever the model and the
        distribution, if all rows are drawn alike (exchangeable) and have equal weights.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = X[:, 0] + np.random.default_rng(1).uniform(-1, 1, 500)
    >>> bands = srf.intervals(srf.drp(X[:200], y[:200], alpha=1e-3, rng=0), X[200:], y[200:], coverage=0.9, rng=0)
    >>> lower, upper = bands.predict(X[:3])
    >>> bool((upper - lower < 2.2).all()), bands.coverage
    (True, 0.9)
    """

    experts: tuple[Expert, ...]
    coverage: float
    guarantee: float

    def __repr__(self) -> str:
        adaptive = sum(expert.scale is not None for expert in self.experts)
        how = f"{len(self.experts)} model{'s' * (len(self.experts) > 1)}, {adaptive} with a scale"
        return f"Intervals(coverage={self.coverage:g}, guarantee={self.guarantee:.3f}, {how})"

    def _repr_html_(self) -> str:
        widths = [self._half_width(expert) for expert in self.experts]
        largest = max(most for _, most in widths) or 1.0
        rows = []
        for k, (expert, (least, most)) in enumerate(zip(self.experts, widths, strict=True), 1):
            said = f"{most:.4g}" if expert.scale is None else f"{least:.4g} to {most:.4g}"
            rows.append([f"model {k}", html.bar(most / largest, least / largest), f"&plusmn; {said}",
                         str(len(expert.model.features)), str(len(expert.scores))])  # fmt: skip
        head = ["", "", "half the width", "terms", "rows that it is measured on"]
        guaranteed = f"{self.guarantee:.4g} guaranteed if no model was fitted to the rows that it is measured on"
        return html.page(html.title("Intervals", f"coverage {self.coverage:.4g} asked for, {guaranteed}"),
                         html.table(head, rows, n_left=2))  # fmt: skip

    def _half_width(self, expert):
        """The least and the most of an expert's intervals, which are the same where it has no scale."""
        share = rank_of(self.coverage, [one.weights for one in self.experts]) / sum(one.sums[-1] for one in self.experts)
        score = expert.scores[np.searchsorted(expert.sums, share * expert.sums[-1]) - 1]
        return (score, score) if expert.scale is None else tuple(score * np.exp([expert.scale.low, expert.scale.high]))

    def predict(self, X: MatrixLike, workers: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends, two float64 arrays of shape (n_samples,).

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            As the model takes it.
        workers : int, default 1
            Threads; -1 for all cores.
        """
        answers = [expert.answers(X, workers) for expert in self.experts]
        rank = rank_of(self.coverage, [expert.weights for expert in self.experts])
        lower, upper = ((sign * self._end(rank, sign, answers)) for sign in (-1.0, 1.0))
        return np.minimum(lower, upper), np.maximum(lower, upper)  # of CV+ they may cross, where there is hardly a row between

    def _end(self, rank, sign, answers):
        """Of each row the least v such that centre + width * score <= v for calibration rows of this weight."""
        if len(self.experts) == 1:
            (expert,), ((centre, width),) = self.experts, answers
            return sign * centre + width * expert.scores[np.searchsorted(expert.sums, rank) - 1]
        ends = [
            (sign * centre + width * expert.scores[0], sign * centre + width * expert.scores[-1])
            for expert, (centre, width) in zip(self.experts, answers, strict=True)
        ]
        low, high = np.min([least for least, _ in ends], axis=0), np.max([most for _, most in ends], axis=0)
        for _ in range(HALVINGS):
            middle = low + (high - low) / 2
            there = sum(
                expert.sums[np.searchsorted(expert.scores, (middle - sign * centre) / width, side="right")]
                for expert, (centre, width) in zip(self.experts, answers, strict=True)
            )
            low, high = np.where(there >= rank, low, middle), np.where(there >= rank, middle, high)
        return high


def rank_of(coverage: float, weights: Sequence[np.ndarray]) -> float:
    """The weight of the scores that an interval holds: the new row counts as one more. Equal ones: coverage * (n + 1)."""
    w = np.concatenate(weights)
    total, one = w.sum(), (w @ w) / w.sum()
    rank = coverage * (total + one) - 1e-9 * one
    if rank > total:
        raise ValueError(
            f"coverage must be at most n / (n + 1) for n rows that calibrate, {total / (total + one):.3g}, got {coverage}"
        )
    return rank


@dataclass(frozen=True, eq=False)
class Expert:
    """A model, its scale, and how rows that neither has seen lie: scores, ascending, |y - f(x)| / scale(x).

    sums : the weights of the first 0, 1, ..., n scores
    """

    model: SparseModel
    scale: Scale | None
    scores: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, model: SparseModel, scale: Scale | None, X: MatrixLike, y: np.ndarray, weight: np.ndarray | None) -> Self:
        centre, width = _centre_and_width(model, scale, X, 1)
        scores = np.abs(y - centre) / width
        order, weight = np.argsort(scores, kind="stable"), np.ones(len(y)) if weight is None else weight
        return cls(model, scale, scores[order], np.concatenate([[0.0], np.cumsum(weight[order])]))

    @property
    def weights(self) -> np.ndarray:
        return np.diff(self.sums)

    def answers(self, X: MatrixLike, workers: int) -> tuple[np.ndarray, np.ndarray]:
        return _centre_and_width(self.model, self.scale, X, workers)


def _centre_and_width(model, scale, X, workers):
    centre = np.asarray(model.predict(X, workers), np.float64)
    return centre, np.ones(len(centre)) if scale is None else scale.of(X, workers)


@checks_call
def intervals(
    function_or_model: Callable[..., Any] | SparseModel, X: MatrixLike, y: ArrayLike, *, coverage: float = 0.9,
    method: Literal["split", "cv+"] = "split", cv: int = 5, calibration: float = 0.3, adaptive: bool = True,
    sample_weight: ArrayLike | None = None, rng: Seed = None, verbose: bool | None = None,
) -> Intervals:  # fmt: skip
    """Prediction intervals that hold a share of new rows, whatever the distribution: conformal prediction.

    Parameters
    ----------
    function_or_model : function or SparseModel
        A function that fits, (X, y, rng=...) -> model of one real target, such as `sparse_rf` or a `functools.partial` of it.
        Or a fitted model, and X, y are rows that it has not seen: their residuals make its intervals (split conformal).
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        In memory.
    y : array of shape (n_samples,)
    coverage : float, default 0.9
        Share of new rows that the intervals are to hold, in (0, 1).
    method : {"split", "cv+"}, default "split"
        Of a function. "split": fitted once, and calibrated on rows that were held out. "cv+": fitted without each of the folds,
        so that all rows calibrate, and all but a fold fit; for few rows. The interval at x reaches down and up to where few
        f_k(x) - R_i s_k(x), and f_k(x) + R_i s_k(x), lie beyond, over all rows i, with k the fold of i.
    cv : int, default 5
        Folds of "cv+", at least 2; n_samples of them are the jackknife+.
    calibration : float, default 0.3
        Share of the rows that "split" holds out, in (0, 1).
    adaptive : bool, default True
        Whether intervals may be wider where residuals are larger: by a `sparse_rf` of ``log(|residual| + half their median)``,
        with one search, used if it lowers the interval score on other rows than it learned from. None of these calibrate: of a
        fitted model half of the rows do not.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative. Rows of a large weight count as so many in fits and in what is held; the guarantee is for equal ones.
    rng : None, int or numpy.random.Generator, default None
        Seed of folds and fits.
    verbose : bool or None, default None
        As in `sparse_rf`: after each fit.

    Returns
    -------
    Intervals
        `predict(X)` gives (lower, upper).

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind; a model of classes or of several targets; so few rows that no finite
        interval holds the share: n calibrate at most n / (n + 1).

    Warns
    -----
    ConvergenceWarning
        As the function.

    See Also
    --------
    calibrated : Probabilities of classes.

    Notes
    -----
    Rows and new rows are drawn alike (exchangeable). Then a split holds at least the share `coverage` of new rows, in the mean
    over draws of the calibration rows, and at most 1 / (n + 1) more where no scores tie. CV+ of K folds and n rows holds

    .. math:: 1 - 2 \\alpha - \\min\\left(\\frac{2 (1 - 1/K)}{n/K + 1}, \\frac{1 - K/n}{K + 1}\\right), \\quad
        \\alpha = 1 - coverage,

    and in practice `coverage` and more: where models of the folds differ by as much as they miss y, as where there is little
    noise, it holds too many rows. Both are of all rows together, not of each x; a scale changes neither, as it is learned from
    rows that do not calibrate.

    Time: that of the fit, of K of CV+, and as many small ones; a row of `predict` takes the models and O(K log n). Memory: the
    models and n numbers.

    References
    ----------
    R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, Predictive inference with the jackknife+, Annals of Statistics 49,
    2021, Theorem 4. J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, Distribution-free predictive inference for
    regression, JASA 113, 2018, for splits and scales. T. Gneiting, A. E. Raftery, Strictly proper scoring rules, JASA 102,
    2007, for the interval score.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * (1 + X[:, 0] ** 2) * rng.standard_normal(1200)
    >>> fit = partial(srf.sparse_rf, features="gaussian", n_components=300, n_models=1)
    >>> bands = srf.intervals(fit, X[:800], y[:800], coverage=0.9, method="cv+", rng=0)
    >>> lower, upper = bands.predict(X[800:])
    >>> bool(0.85 < np.mean((lower <= y[800:]) & (y[800:] <= upper)) < 0.95)
    True
    >>> ends = bands.predict(np.array([[0.0], [2.0]]))
    >>> bool(np.diff(ends[1] - ends[0])[0] > 0.5)  # wider where there is more noise
    True
    """
    data = Data(X, y, sample_weight)
    data = data.with_target(check_target(data.y, len(data)))
    coverage, calibration = (_share(name, v) for name, v in (("coverage", coverage), ("calibration", calibration)))
    check_choice("method", method, ("split", "cv+"))
    rng, cv, adaptive = check_rng(rng), check_integer("cv", cv, 2), check_flag("adaptive", adaptive)
    some, guarantee = np.flatnonzero(data.there), coverage
    with reporting("intervals", None, verbose) as report:
        if not callable(function_or_model):
            experts = [_of_model(_checked(function_or_model), data, rng.permutation(some), coverage, adaptive, rng)]
        elif method == "split":
            held, fitted = np.split(rng.permutation(some), [round(calibration * len(some))])
            experts = [_of_function(function_or_model, data, fitted, held, coverage, adaptive, seeds(rng, 2))]
        else:
            rank_of(coverage, [np.ones(len(some)) if data.weight is None else data.weight[some]])
            experts = _of_folds(function_or_model, data, cv, coverage, adaptive, rng)
            guarantee = guarantee_of_cv(coverage, cv, len(some))
        if report is not None:
            report.finish(experts[-1].model.info)
    rank_of(coverage, [expert.weights for expert in experts])
    return Intervals(tuple(experts), coverage, guarantee)


def _of_folds(
    function: Callable[..., Any], data: Data, cv: int, coverage: float, adaptive: bool, rng: np.random.Generator
) -> list[Expert]:
    """An expert without each of the folds."""
    fold, experts = data.folds(cv, rng), []
    for k, two in parts(list(enumerate(zip(*[iter(seeds(rng, 2 * cv))] * 2, strict=True)))):
        fitted, held = np.flatnonzero((fold != k) & data.there), np.flatnonzero(fold == k)
        experts.append(_of_function(function, data, fitted, held, coverage, adaptive, two))
        tell_model(experts[-1].model.info)
    return experts


def guarantee_of_cv(coverage: float, n_folds: int, n: int) -> float:
    less = min(2 * (1 - 1 / n_folds) / (n / n_folds + 1), (1 - n_folds / n) / (n_folds + 1))
    return max(0.0, 1 - 2 * (1 - coverage) - less)


def _of_function(function, data, fitted, held, coverage, adaptive, two_seeds):
    if not len(held) or not len(fitted):
        raise ValueError(f"X must have rows to fit and rows to hold out, got {len(fitted)} and {len(held)}")
    model = _checked(data.fit(function, fitted, two_seeds[0]))
    scale = Scale.learned(model, data, fitted, coverage, two_seeds[1]) if adaptive else None
    return Expert.of(model, scale, *data.take(held))


def _of_model(model, data, some, coverage, adaptive, rng):
    """Half of the rows teach the scale, where these are enough."""
    half = len(some) // 2 if adaptive and len(some) >= 2 * FEWEST else 0
    scale = Scale.learned(model, data, some[:half], coverage, *seeds(rng, 1)) if half else None
    return Expert.of(model, scale, *data.take(some[half:]))


def _checked(model):
    if not hasattr(model, "predict") or not hasattr(model, "classes"):
        raise TypeError(f"function_or_model must be a function that fits a model, or a model, got {type(model).__name__}")
    if model.classes is not None or np.ndim(model.intercept):
        raise ValueError(f"function_or_model must be of one real target, got {model!r}")
    return model


def _share(name, value):
    value = check_real(name, value, 0, strict=True)
    if value >= 1:
        raise ValueError(f"{name} must be below 1, got {value}")
    return value
