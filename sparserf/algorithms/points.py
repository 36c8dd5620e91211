"""Points: a classifier by a few rules with small whole numbers in place of coefficients.

With Z the matrix of which rules hold in which rows, the model's log odds are Z w + w_0. In place of
w come whole numbers p, the points, with an offset p_0 and a multiplier m: f = (Z p + p_0) / m. They
are to change the model's probabilities q little: of the logistic loss

    L(f) = sum_i s_i (q_i log(1 + exp(-f_i)) + (1 - q_i) log(1 + exp(f_i)))

the model has the least that there is, and L(f) - L(Z w + w_0) is the mean Kullback-Leibler
divergence.

For each of several multipliers v = m w is rounded one number after the other, up or down, each time
the one and in the direction for which

    A(p) = sum_i s_i (l_i sum_j z_ij (p_j - v_j) / m)^2

is least, over the numbers rounded so far; l_i^2 is the mean, over the classes by q_i, of the square
of the steepest slope between all roundings. A number that is rounded up at random, with probability
u_j = v_j - floor(v_j), adds sum_i s_i (l_i z_ij / m)^2 u_j (1 - u_j) to A in the mean, so the
better direction adds no more; and L changes by at most sqrt(A). So each multiplier has a bound on
what rounding costs. Then single points are moved by one, and pairs of them, while that lowers L.

J. Liu, C. Zhong, B. Li, M. Seltzer, C. Rudin, FasterRisk: Fast and Accurate Interpretable Risk
Scores, NeurIPS 2022: Algorithm 3 and Theorem 3.1. There q are labels and w is the optimum for them:
of ten rules of a table of hundreds of rows that is worse on new rows than the model, whose
coefficients are shrunk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_integer
from .._base.screen import WIDTH, folded, one_line, percent
from .._base.threads import single_threaded_blas
from ..expansion.terms import column_names, term_gains, terms_of
from ..losses import PROBABILISTIC
from ..losses.classification import sigmoid
from ..model import SparseModel, check_model
from .task import rows_of_positive_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..features import FeatureSet
    from ..rows import Rows

# The most rules that may have points: a table of more is no longer added up by hand.
MOST_RULES = 20
# The number of multipliers that are tried.
MULTIPLIERS = 20
# Steps to the best multiplier of given points; no step more than doubles it.
STEPS_OF_SCALE = 30
# No log odds are larger: where the points separate the classes, the best multiplier is 0.
MOST_LOG_ODDS = 30.0
# Coefficients below this have no points, whatever the multiplier.
LEAST_COEFFICIENT = 0.01
# A move of points has to lower the loss by so much.
LEAST_GAIN = 1e-9
# The most lines of sums of points that are listed.
MOST_LINES = 2
SUM = "sum "


@checks_call
def points(
    model: SparseModel,
    X: MatrixLike,
    *,
    max_points: int = 10,
    sample_weight: ArrayLike | None = None,
) -> Points:
    r"""Give the rules of a classifier whole points in place of coefficients, small enough to be
    added up by hand.

    The log odds of the second class become

    .. math:: f(x) = \frac{p_0 + \sum_j p_j z_j(x)}{m}, \quad
        z_j(x) = 1 \text{ where rule } j \text{ holds, else } 0

    with points p, an offset p_0 and a multiplier m that change the model's probabilities q little,
    by the mean Kullback-Leibler divergence over the rows of weights s

    .. math:: \frac{1}{\sum_i s_i} \sum_i s_i \left(q_i \log\frac{q_i}{g_i}
        + (1 - q_i) \log\frac{1 - q_i}{1 - g_i}\right), \quad g_i = \frac{1}{1 + e^{-f(x_i)}}.

    The labels are not needed.

    Parameters
    ----------
    model : SparseModel
        A classifier of two classes with probabilities, whose terms are at most 20 rules: of
        `sparse_rf` with ``loss="logistic", features=Rules(), max_terms=10``, say.
    X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        The rows of the fit, or others.
    max_points : int, default 10
        The most points of a rule, of either sign, at least 1. The offset may be larger.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights of the rows.

    Returns
    -------
    Points
        The rules that have points, what these change, and a model that predicts so, within no
        limits.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another type; the model has other terms than rules,
        more than 20, or none.

    See Also
    --------
    sparse_rf : Finds the rules.
    prune : Fewer terms, with real coefficients.

    Notes
    -----
    Each of 20 multipliers has a rounding by Algorithm 3 of [1]_ and a bound on what it costs
    (Theorem 3.1); the best is improved by moving one or two points by one. No exact search: other
    points may be better. Rules whose coefficients must be at least 0 get no points below 0. Time:
    one pass over the rows, and O(k^2 r) for k rules and r different sets of rules that hold in a
    row; memory O(k^2 r).

    References
    ----------
    .. [1] J. Liu, C. Zhong, B. Li, M. Seltzer, C. Rudin, FasterRisk: Fast and Accurate
       Interpretable Risk Scores, NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 3))
    >>> odds = np.exp(3.0 * (X[:, 0] > 0.4) - 2.0 * (X[:, 1] <= 0.7))
    >>> y = rng.random(2000) < odds / (1 + odds)
    >>> rules = {"features": srf.Rules(), "loss": "logistic", "max_terms": 5}
    >>> score = srf.points(srf.sparse_rf(X, y, **rules, rng=0), X, max_points=5)
    >>> max(map(abs, score.points)) <= 5, score.divergence <= score.bound < 0.1
    (True, True)
    """
    max_points = check_integer("max_points", max_points, 1)
    words = _rules_of(model)
    rows = model.features.rows_of(X)
    if rows.n_rows == 0:
        raise ValueError(f"X must have at least one row, got shape (0, {rows.n_features_in})")
    _, rows, weight = rows_of_positive_weight(rows, sample_weight)
    gain = term_gains(model.features)
    w = np.append(model.coef * gain, model.intercept)
    with single_threaded_blas(), rows:
        sets = RuleSets.of_rows(rows, model.features, gain, w, weight / weight.sum())
    sign = np.where(model.features.nonnegative, np.sign(gain), 0)  # that points must have
    return _points_of(model, words, gain, best_score(sets, w, max_points, sign))


def _rules_of(model):
    """Check that a model is a classifier of two classes by a few rules; return these in words."""
    check_model(model)
    if model.classes is None or len(model.classes) != 2 or model.loss not in PROBABILISTIC:
        raise ValueError(
            f"model must be a classifier of two classes with probabilities, got {model!r}: fit it "
            "with loss='logistic'"
        )
    names, encoder, words = column_names(model), model.features.encoder, {}
    for term in terms_of(model.features):
        words[term.position] = term.condition(names, encoder)
        if not words[term.position]:
            raise ValueError(
                f"model must have no terms but rules, got {term.title(names, 3, encoder)}: fit it "
                "with features=sparserf.Rules()"
            )
    if not 1 <= len(model.features) <= MOST_RULES:
        raise ValueError(
            f"model must have 1 to {MOST_RULES} rules, got {len(model.features)}: fit it with "
            "max_terms, or prune it"
        )
    return words


class RuleSets(NamedTuple):
    """The sets of rules that hold together in some row.

    holds : which rules hold in each set, and 1 for the offset, (n_sets, k + 1)
    s : the share of the rows of each set, (n_sets,)
    q : the model's probability there
    """

    holds: np.ndarray
    s: np.ndarray
    q: np.ndarray

    @classmethod
    def of_rows(
        cls, rows: Rows, features: FeatureSet, gain: np.ndarray, w: np.ndarray, weight: np.ndarray
    ) -> RuleSets:
        """Return the sets of these rows: each is a number whose bits are the rules."""
        bit = 2.0 ** np.arange(len(gain))
        number = np.rint(rows.apply(features, (bit / gain)[None])[0]).astype(np.int64)
        different, place = np.unique(number, return_inverse=True)
        holds = different[:, None] >> np.arange(len(gain)) & 1
        holds = np.hstack([holds, np.ones((len(different), 1))])
        return cls(holds, np.bincount(place, weight, len(different)), sigmoid(holds @ w))

    def loss(self, f: np.ndarray) -> np.ndarray:
        """Return the mean logistic loss of log odds f, (n_sets, ...)."""
        s, q = self.s, self.q
        return (s * q) @ np.logaddexp(0, -f) + (s * (1 - q)) @ np.logaddexp(0, f)


class Score(NamedTuple):
    """Points with the offset behind them, 1 / m, the loss above the model's, and a bound on it."""

    points: np.ndarray
    scale: float
    divergence: float
    bound: float


def best_score(sets: RuleSets, w: np.ndarray, most: int, sign: np.ndarray) -> Score:
    """Return the best points that are found for coefficients w, at most `most` for each rule.

    sign : 1 for points of at least 0, -1 for those of at most 0, 0 for any
    """
    largest = most / max(np.abs(w[:-1]).max(), LEAST_COEFFICIENT)
    tried = []
    for m in largest * np.arange(1, MULTIPLIERS + 1) / MULTIPLIERS:
        p, bound = rounded(sets, m * w, m)
        tried.append((float(sets.loss(sets.holds @ p / m)), p, 1 / m, bound))
    _, p, scale, _ = min(tried, key=lambda each: each[0])
    low = np.append(np.where(sign > 0, 0, -most), -np.inf)
    high = np.append(np.where(sign < 0, 0, most), np.inf)
    p, scale, loss = improved(sets, p, scale, low, high)
    least = float(sets.loss(sets.holds @ w))
    return Score(p.astype(int), scale, max(0.0, loss - least), min(each[3] for each in tried))


def rounded(sets: RuleSets, v: np.ndarray, m: float) -> tuple[np.ndarray, float]:
    """Round v = m w one by one (Algorithm 3); return the whole numbers, and the bound on what they
    cost (Theorem 3.1)."""
    down, up = np.floor(v), np.ceil(v)
    steepest = sigmoid(-(sets.holds @ down) / m), sigmoid(sets.holds @ up / m)  # of either class
    l_2 = sets.q * steepest[0] ** 2 + (1 - sets.q) * steepest[1] ** 2
    H = (sets.holds.T * (sets.s * l_2)) @ sets.holds / m**2
    p, slope, is_left = v.copy(), np.zeros(len(v)), np.ones(len(v), bool)
    moves = np.stack([down - v, up - v])
    for _ in range(len(v)):
        added = np.where(is_left, 2 * moves * slope + moves**2 * np.diag(H), np.inf)
        way, j = np.unravel_index(np.argmin(added), added.shape)
        p[j], is_left[j] = (down, up)[way][j], False
        slope += moves[way, j] * H[:, j]
    u = v - down
    return p, float(np.sqrt((np.diag(H) * u * (1 - u)).sum()))


def improved(
    sets: RuleSets, p: np.ndarray, scale: float, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Move one point by one, or where that does not help two, while it lowers the loss; return the
    points, 1 / m, and the loss."""
    ones = np.vstack([np.eye(len(p)), -np.eye(len(p))])
    pairs = (ones[:, None] + ones)[np.triu_indices(len(ones), 1)]
    (scale,), (loss,) = _best_scales(sets, p[None], scale)
    while True:
        for moves in (ones, pairs):
            tried = p + moves
            tried = tried[((tried >= low) & (tried <= high)).all(axis=1)]
            scales, losses = _best_scales(sets, tried, scale)
            k = int(np.argmin(losses))
            if losses[k] < loss - LEAST_GAIN:
                p, scale, loss = tried[k], scales[k], losses[k]
                break
        else:
            return p, float(scale), float(loss)


def _best_scales(sets, points, scale):
    """Return for each row of points the 1 / m of the least loss, by Newton steps from `scale`, and
    that loss."""
    sums, s, q = sets.holds @ points.T, sets.s[:, None], sets.q[:, None]
    most = MOST_LOG_ODDS / np.maximum(np.abs(sums).max(axis=0), 1)
    t = np.minimum(np.full(len(points), scale), most)
    for _ in range(STEPS_OF_SCALE):
        g = sigmoid(t * sums)
        slope = (s * sums * (g - q)).sum(axis=0)
        curvature = (s * sums**2 * g * (1 - g)).sum(axis=0)
        step = slope / np.maximum(curvature, np.finfo(float).tiny)
        t = np.minimum(np.clip(t - step, t / 2, 2 * t), most)
    return t, sets.loss(t * sums)


def _points_of(model, words, gain, score):
    """Return the `Points` of a score: the rules in words, and the model that they make."""
    p, offset = score.points[:-1], int(score.points[-1])
    kept = np.flatnonzero(p)
    small = replace(
        model,
        coef=(score.scale * p / gain)[kept],
        intercept=score.scale * offset,
        support=model.support[kept],
        features=model.features.take(kept),
        loss="logistic",
        link="identity",
        lower=None,
        upper=None,
        info=replace(model.info, n_nonzero=len(kept), validation_loss=None),
    )
    order = kept[np.argsort(-np.abs(p[kept]), kind="stable")].tolist()
    rules, own = tuple(words[j] for j in order), tuple(int(p[j]) for j in order)
    return Points(rules, own, offset, 1 / score.scale, small, score.divergence, score.bound)


@dataclass(frozen=True, eq=False)
class Points:
    """Points for the rules of a model, made by `points`; prints as a table.

    Attributes
    ----------
    rules : tuple of str
        The rules, those of the most points first.
    points : tuple of int
        The points of each rule; none is 0.
    offset : int
        What is added to their sum.
    multiplier : float
        The log odds of the second class are the sum and the offset, divided by this.
    model : SparseModel
        The same as a model: it predicts, is exported, explained and saved as any other.
    divergence : float
        The mean Kullback-Leibler divergence of its probabilities from those of the model whose
        rules have points, on the rows given: by so much the mean logistic loss is larger where
        labels are drawn with these.
    bound : float
        A bound on it.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> rules = {"features": srf.Rules(), "loss": "logistic", "max_terms": 2}
    >>> score = srf.points(srf.sparse_rf(X, X[:, 0] > 0.3, **rules, rng=0), X, max_points=3)
    >>> score.to_csv().startswith("points,rule"), score.probability(sum(score.points)) < 1
    (True, True)
    """

    rules: tuple[str, ...]
    points: tuple[int, ...]
    offset: int
    multiplier: float
    model: SparseModel
    divergence: float
    bound: float

    @cached_property
    def sums(self) -> tuple[tuple[int, float], ...]:
        """The sums that points may have, ascending, each with the probability of the second
        class."""
        sums = {0}
        for p in self.points:
            sums |= {p + q for q in sums}
        return tuple((q, self.probability(q)) for q in sorted(sums))

    def probability(self, total: int) -> float:
        """Return the probability of the second class for a sum of points."""
        return float(sigmoid(np.array([(total + self.offset) / self.multiplier]))[0])

    def __str__(self) -> str:
        width = max((len(f"{p:+d}") for p in self.points), default=2)
        lines = [
            folded(f"  {p:+{width}d}  {one_line(rule)}", 2, width + 4)
            for p, rule in zip(self.points, self.rules, strict=True)
        ]
        head = f"points for {one_line(self.model.classes[1])} where a rule holds"
        cost = f"rounding adds {self.divergence:.2g} to the loss, where the model is right"
        return "\n".join([head, *lines, "", *self._listed(), "", cost])

    __repr__ = __str__

    def to_csv(self) -> str:
        """Return the tables as comma-separated values: rules and their points, then sums and
        probabilities."""
        rules = [f'{p},"{_quoted(rule)}"' for p, rule in zip(self.points, self.rules, strict=True)]
        sums = [f"{total},{p:.6g}" for total, p in self.sums]
        return "\n".join(["points,rule", *rules, "", "sum,probability", *sums, ""])

    def _listed(self):
        """Return lines of sums with their probabilities; of many, some evenly spaced."""
        cells = [(f"{total:d}", percent(p)) for total, p in self.sums]
        width = 2 + max(len(cell) for pair in cells for cell in pair)
        on_line = (WIDTH - len(SUM)) // width
        n = min(len(cells), MOST_LINES * on_line)
        cells = [cells[k] for k in np.linspace(0, len(cells) - 1, n).round().astype(int).tolist()]
        lines = []
        for start in range(0, n, on_line):
            sums, shares = zip(*cells[start : start + on_line], strict=True)
            for begin, row in ((SUM, sums), (" " * len(SUM), shares)):
                lines.append(begin + "".join(f"{cell:>{width}}" for cell in row))
        return lines


def _quoted(text):
    """Return text as it stands between quotes in a cell."""
    return one_line(text).replace('"', '""')
