"""Linear functions above sums of terms, over boxes of their inputs: what branch and bound is made
of.

Over the box of all u with |u_v - mid_v| <= rad_v, a group of terms with value g(u) has a
`Relaxation`

    g(u) <= top + sum_v slope_v (u_v - mid_v),  low_v <= dg / du_v <= high_v.

Of a neuron c sigma(w'u + b), t = w'u + b lies in an interval [l, h]. There sigma(t) <= d + a (t -
m) with m the middle, a the slope of the chord from l to h, and d the largest value of sigma(t) - a
(t - m): at an end, or where sigma' = a. The gap is of second order in the width h - l, whether
sigma is convex, concave or neither (H. Zhang et al., Efficient Neural Network Robustness
Certification with General Activation Functions, 2018). All functions work on many boxes at once,
and all terms are written with positive coefficients: -cos(t) = cos(t + pi), -tanh(t) = tanh(-t);
-relu(t) has lines of its own. The lines are the activation's, in `features/activations.py`.

Signs are bounded with both values, -1 and 1, where t may be 0; their derivative is infinite there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..features import BumpBlock, FeatureBlock, FeatureSet, MonomialBlock, NeuronBlock
from ..features.activations import COSINE, EPS, NEAR, ActivationFunction, cosine_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expansion.terms import Term

# The number of pairs of a box and a term that are computed at a time: arrays of so many numbers
# stay in cache.
IN_CACHE = 8_192
# The number of values of terms that are made at a time.
IN_MEMORY = 2**20


class Relaxation(NamedTuple):
    """A linear function above a sum of terms on each of n boxes, and bounds of its derivatives.

    top : (n,)
    slope, low, high : (n, n_inputs), as in the formulas of the module
    blame : (n, n_inputs)
        The gap between terms and their lines, at the middle of the box, shared out to the inputs
        that it comes from.
    """

    top: np.ndarray
    slope: np.ndarray
    low: np.ndarray
    high: np.ndarray
    blame: np.ndarray


class Group(ABC):
    """Terms of one kind, as functions of n_inputs inputs u.

    work : about the time of a box, in that of a neuron
    has_steps : whether the terms jump somewhere
    """

    work: int
    has_steps: bool = False

    @staticmethod
    @abstractmethod
    def entry(
        term: Term, c: float, w: np.ndarray, inputs: np.ndarray
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return (what the terms of a group share, what a term has of its own), as the class takes
        them.

        c, w : the coefficient, and the weights of all inputs
        inputs : the input of each of the term's encodings
        """

    @abstractmethod
    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        """Return the relaxation of the sum of the terms on boxes (n, n_inputs)."""

    @abstractmethod
    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the sum of the terms at points (n, n_inputs)."""

    @abstractmethod
    def gradients(self, U: np.ndarray) -> np.ndarray:
        """Return the derivatives of the sum at points, (n, n_inputs); at steps and kinks that of
        one side."""

    @abstractmethod
    def size(self, largest: np.ndarray) -> float:
        """Return a bound of all sizes that rounding is relative to: sum |c| (sup|phi| + sup of |t|
        in its parts).

        largest : the largest |u_v| of each input
        """

    @abstractmethod
    def steepness(self) -> np.ndarray:
        """Return a bound of the sum of the sizes of all terms' derivatives, for each input; 0 where
        none is needed."""

    @abstractmethod
    def rises(self, inputs: np.ndarray) -> bool:
        """Return whether every term rises with some inputs wherever the others are, by its weights
        alone."""

    @abstractmethod
    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        """Return how much each input can change the derivatives by some inputs, (n_inputs,): an
        estimate."""


class Neurons(Group):
    """Terms sum_k sign c_k sigma(w_k'u + b_k) of one activation sigma, c_k > 0 and the sign 1 or
    -1; waves are cosines."""

    def __init__(
        self,
        sigma: ActivationFunction,
        sign: int,
        coef: np.ndarray,
        weights: np.ndarray,
        offset: np.ndarray,
        largest: np.ndarray,
    ):
        """Take the terms; largest : the largest |u_v| of each input, from which the rounding of t
        is bounded."""
        self._sigma, self._sign, self._coef, self._weights, self._offset = (
            sigma,
            sign,
            coef,
            weights,
            offset,
        )
        self.work, self.has_steps = len(coef), sigma.has_steps
        self._absolute = np.abs(weights)
        self._up, self._down = (
            coef[:, None] * np.maximum(weights, 0),
            coef[:, None] * np.minimum(weights, 0),
        )
        # Of t, which has a multiple of pi in its offset.
        self._rounding = (
            EPS * (weights.shape[1] + 8) * (self._absolute @ largest + np.abs(offset) + 4)
        )
        if sigma.is_periodic:
            self._waves, self._radii = (
                _sines_and_cosines(weights, offset),
                _sines_and_cosines(self._absolute, self._rounding),
            )

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        line, r = self._line_over(mid, rad)
        slope = line.slope * self._coef
        gap = (line.top - line.value) * self._coef / np.maximum(r, 1e-300)
        high = line.high @ self._up + line.low @ self._down
        low = line.low @ self._up + line.high @ self._down
        if line.jumps is not None:
            jumps = line.jumps.astype(np.float64)
            high[jumps @ (self._up > 0) > 0] = np.inf
            low[jumps @ (self._down < 0) > 0] = -np.inf
        return Relaxation(
            line.top @ self._coef, slope @ self._weights, low, high, rad * (gap @ self._absolute)
        )

    @staticmethod
    def entry(
        term: Term, c: float, w: np.ndarray, inputs: np.ndarray
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        sigma, b = term.sigma, term.offset
        if sigma.is_periodic:
            sigma, b = COSINE, b + sigma.phase
        if c >= 0:
            return (sigma, 1), (c, w, b)
        if sigma.is_periodic:
            return (sigma, 1), (-c, w, b + np.pi)
        return ((sigma, 1), (-c, -w, -b)) if sigma.is_odd else ((sigma, -1), (-c, w, b))

    def _line_over(self, mid, rad):
        """Return lines above the activations on boxes, and the radii of their intervals, (n,
        n_terms)."""
        r = rad @ self._absolute.T + self._rounding
        if not self._sigma.is_periodic:
            line = self._sigma.line if self._sign > 0 else self._sigma.line_of_negative
            return line(mid @ self._weights.T + self._offset, r), r
        return cosine_line(
            *(
                each.transform(x)
                for x, pair in ((mid, self._waves), (rad, self._radii))
                for each in pair
            ),
            r,
        ), r

    def values(self, U: np.ndarray) -> np.ndarray:
        return self._transform(U) @ self._coef

    def gradients(self, U: np.ndarray) -> np.ndarray:
        if self._sigma.is_periodic:
            return (-self._waves[0].transform(U) * self._coef) @ self._weights
        return (
            self._sign * self._sigma.first(U @ self._weights.T + self._offset) * self._coef
        ) @ self._weights

    def _transform(self, U):
        """Return the terms without their coefficients at points, (n, n_terms)."""
        if self._sigma.is_periodic:
            return self._waves[1].transform(U)
        return self._sign * self._sigma.value(U @ self._weights.T + self._offset)

    def size(self, largest: np.ndarray) -> float:
        return float(self._coef @ (1 + self._absolute @ largest + np.abs(self._offset)))

    def steepness(self) -> np.ndarray:
        return self._coef @ self._absolute

    def rises(self, inputs: np.ndarray) -> bool:
        weights = self._sign * self._weights[:, inputs]
        return bool((weights >= 0).all()) if self._sigma.rises else not weights.any()

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        return (self._coef * self._absolute[:, inputs].sum(axis=1)) @ self._absolute


def _sines_and_cosines(weights, offset):
    """Return the features sin(weights'u + offset), and cos: the kernels compute them fast."""
    return [
        FeatureSet([NeuronBlock(kind, 1.0, weights.copy(), offset.copy())], weights.shape[1])
        for kind in ("sin", "cos")
    ]


class Bumps(Group):
    """Terms sum_k c_k exp(-q_k), q_k = sum_v w_kv |u_v - c_kv|, with coefficients of either sign.

    exp(-q) lies below its chord over the range of q, and above its tangent; |u - c| lies below its
    chord, and above the line of the same slope through its kink.
    """

    def __init__(
        self, coef: np.ndarray, weights: np.ndarray, centers: np.ndarray, largest: np.ndarray
    ):
        self._coef, self._weights, self._centers = coef, weights, centers
        self.work = 2 * weights.size

    @staticmethod
    def entry(
        term: Term, c: float, w: np.ndarray, inputs: np.ndarray
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        centers = np.zeros(len(w))
        centers[inputs] = term.centers
        return (), (c, w, centers)

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        n, n_inputs, c = *mid.shape, self._coef
        q_low, q_high = np.zeros((n, len(c))), np.zeros((n, len(c)))
        above, below, parts = np.zeros((n, len(c))), np.zeros((n, len(c))), []
        for v in range(n_inputs):  # below + secant (u - mid) <= |u - c| <= above + secant (u - mid)
            w, x, r = self._weights[:, v], mid[:, v, None] - self._centers[:, v], rad[:, v, None]
            left, right = np.abs(x - r), np.abs(x + r)
            secant = np.clip((right - left) / np.maximum(2 * r, 1e-300), -1.0, 1.0)
            has_kink = np.abs(x) <= r
            lowest = np.minimum(left + secant * r, right - secant * r)
            q_low += w * np.where(has_kink, 0.0, np.minimum(left, right))
            q_high += w * np.maximum(left, right)
            above += w * np.maximum(left + secant * r, right - secant * r)
            below += w * np.where(has_kink, np.minimum(lowest, secant * x), lowest)
            parts.append((w * secant, has_kink, x > 0))
        most, least = np.exp(-q_low), np.exp(-q_high)
        steepness = np.where(
            q_high > q_low, (most - least) / np.maximum(q_high - q_low, 1e-300), most
        )
        steepness = np.minimum(steepness, most)
        q_mid = (q_low + q_high) / 2
        e_mid = np.exp(-q_mid)
        swing = sum(np.abs(secant) * rad[:, v, None] for v, (secant, _, _) in enumerate(parts))
        over, under = most + steepness * (q_low - below), e_mid * (1 + q_mid - above)
        flat = np.where(c > 0, over + steepness * swing >= most, under - e_mid * swing <= least)
        factor = np.where(flat, 0.0, np.where(c > 0, steepness, e_mid))
        top = np.where(flat, np.where(c > 0, most, least), np.where(c > 0, over, under))
        answers = Relaxation(top @ c, *(np.zeros((n, n_inputs)) for _ in range(4)))
        for v, (secant, has_kink, is_right) in enumerate(parts):
            cw = c * self._weights[:, v]
            answers.slope[:, v] = -(factor * secant) @ c
            signed = np.where(is_right, -cw, cw)
            ends = signed * most, signed * least
            answers.high[:, v] = np.where(has_kink, np.abs(cw) * most, np.maximum(*ends)).sum(
                axis=1
            )
            answers.low[:, v] = np.where(has_kink, -np.abs(cw) * most, np.minimum(*ends)).sum(
                axis=1
            )
            answers.blame[:, v] = rad[:, v] * ((most - least) @ np.abs(cw))
        return answers

    def values(self, U: np.ndarray) -> np.ndarray:
        return np.exp(-self._distances(U)) @ self._coef

    def gradients(self, U: np.ndarray) -> np.ndarray:
        e = np.exp(-self._distances(U)) * self._coef
        return np.stack(
            [
                -(e * np.sign(U[:, v, None] - self._centers[:, v])) @ self._weights[:, v]
                for v in range(U.shape[1])
            ],
            axis=1,
        )

    def _distances(self, U):
        """Return q of each term at points, (n, n_terms)."""
        return sum(
            self._weights[:, v] * np.abs(U[:, v, None] - self._centers[:, v])
            for v in range(U.shape[1])
        )

    def size(self, largest: np.ndarray) -> float:
        return float(
            np.abs(self._coef)
            @ (1 + (self._weights * (largest + np.abs(self._centers))).sum(axis=1))
        )

    def steepness(self) -> np.ndarray:
        return np.abs(self._coef) @ self._weights

    def rises(self, inputs: np.ndarray) -> bool:
        return not self._weights[:, inputs].any()

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        return (np.abs(self._coef) * self._weights[:, inputs].sum(axis=1)) @ self._weights


class Products(Group):
    """Terms sum_k c_k prod_v u_v^p_kv exp(-gamma_k u_v^2): products of factors, bounded by the
    products of their intervals."""

    def __init__(
        self, coef: np.ndarray, powers: np.ndarray, gamma: np.ndarray, largest: np.ndarray
    ):
        self._coef, self._powers, self._gamma = coef, powers, gamma
        self.work = 2 * powers.size

    @staticmethod
    def entry(
        term: Term, c: float, w: np.ndarray, inputs: np.ndarray
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return (), (c, w, term.gamma)

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        n, n_inputs = mid.shape
        low, high = np.ones((n, len(self._coef))), np.ones((n, len(self._coef)))
        for v in range(n_inputs):
            ends = np.stack(self._factor_range(v, mid[:, v, None], rad[:, v, None]))
            products = np.stack([low * ends[0], low * ends[1], high * ends[0], high * ends[1]])
            low, high = products.min(axis=0), products.max(axis=0)
        top = np.maximum(low * self._coef, high * self._coef).sum(axis=1)
        unknown = np.full((n, n_inputs), np.inf)
        blame = rad * ((high - low) @ np.abs(self._coef))[:, None]
        return Relaxation(top, np.zeros((n, n_inputs)), -unknown, unknown, blame)

    def _factor_range(self, v, mid, rad):
        """Return the least and the largest u^p exp(-gamma u^2) of each term, (n, n_terms): at an
        end, at 0 or at a peak."""
        p, peak = self._powers[:, v], np.sqrt(self._powers[:, v] / (2 * self._gamma))
        left, right = self._factor(v, mid - rad), self._factor(v, mid + rad)
        low, high = np.minimum(left, right), np.maximum(left, right)
        for place in (-peak, peak, np.zeros_like(peak)):
            at = self._factor(v, place[None])
            is_inside = (np.abs(place - mid) <= rad * (1 + NEAR)) & ((place != 0) | (p != 1))
            low, high = (
                np.where(is_inside, np.minimum(low, at), low),
                np.where(is_inside, np.maximum(high, at), high),
            )
        return low, high

    def _factor(self, v, u):
        """Return u^p exp(-gamma u^2) of each term, without overflow."""
        p = self._powers[:, v]
        share = np.maximum(p, 1)
        return (np.where(p > 0, u, 1.0) * np.exp(-self._gamma * u / share * u)) ** share

    def values(self, U: np.ndarray) -> np.ndarray:
        return (
            np.prod([self._factor(v, U[:, v, None]) for v in range(U.shape[1])], axis=0)
            @ self._coef
        )

    def gradients(self, U: np.ndarray) -> np.ndarray:
        factors = [self._factor(v, U[:, v, None]) for v in range(U.shape[1])]
        out = np.zeros_like(U)
        for v in range(U.shape[1]):
            u, p = U[:, v, None], self._powers[:, v]
            power = np.where(p > 0, p * u ** np.maximum(p - 1, 0), 0.0) * np.exp(
                -self._gamma * u * u
            )
            others = np.prod([*factors[:v], *factors[v + 1 :], np.ones_like(factors[v])], axis=0)
            out[:, v] = (others * (power - 2 * self._gamma * u * factors[v])) @ self._coef
        return out

    def size(self, largest: np.ndarray) -> float:
        peaks = (np.maximum(self._powers, 1) / (2 * np.e * self._gamma[:, None])) ** (
            self._powers / 2
        )
        # gamma u^2 times a factor is at most some (p + 2) times its peak.
        return float(
            np.abs(self._coef) @ (peaks.prod(axis=1) * (1 + 2 * (self._powers + 2).sum(axis=1)))
        )

    def steepness(self) -> np.ndarray:  # derivatives are not bounded
        return np.zeros(self._powers.shape[1])

    def rises(self, inputs: np.ndarray) -> bool:  # the envelope falls with every input
        return False

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        return np.full(self._powers.shape[1], np.abs(self._coef).sum())


# {kind of features: the class of the groups of their terms}; linear functions are summed without.
GROUPS: dict[type[FeatureBlock], type[Group]] = {
    NeuronBlock: Neurons,
    BumpBlock: Bumps,
    MonomialBlock: Products,
}


class TermSum:
    """A sum of terms, linear'u + groups, which is what is bounded. Linear terms have no offset."""

    def __init__(self, terms: Sequence[tuple[Term, float]], place: np.ndarray, largest: np.ndarray):
        """Take pairs (term, coefficient).

        place : the input of each encoding
        largest : the largest |u| of each input
        """
        n = len(largest)
        self.linear, self.n_terms = np.zeros(n), len(terms)
        by_kind: dict[tuple, list[tuple]] = {}
        for term, coef in terms:
            c, w, inputs = coef * term.gain, np.zeros(n), place[term.encodings]
            w[inputs] = term.weights
            if term.is_linear:
                self.linear += c * w
            else:
                group = GROUPS[term.kind]
                shared, own = group.entry(term, c, w, inputs)
                by_kind.setdefault((group, *shared), []).append(own)
        self.groups: list[Group] = []
        for (group, *shared), of_group in by_kind.items():
            arrays = [np.array(each, np.float64) for each in zip(*of_group, strict=True)]
            self.groups.append(group(*shared, *arrays, largest))
        size = np.abs(self.linear) @ largest + sum(group.size(largest) for group in self.groups)
        self.work: int = n + sum(group.work for group in self.groups)
        self.has_steps: bool = any(group.has_steps for group in self.groups)
        # A bound of the rounding of values and of tops, sums of n_terms + n numbers of functions
        # that are right to a few ulps.
        self.rounding: float = 4 * EPS * (self.n_terms + n + 32) * size
        steepness = np.abs(self.linear) + sum(
            (group.steepness() for group in self.groups), np.zeros(n)
        )
        self.slope_rounding: np.ndarray = 4 * EPS * (self.n_terms + 32) * steepness

    def relax(self, mid: np.ndarray, rad: np.ndarray) -> Relaxation:
        """Return the relaxation of the sum on boxes."""
        shape = mid.shape
        slope, low, high = (np.broadcast_to(self.linear, shape).copy() for _ in range(3))
        sums = Relaxation(mid @ self.linear, slope, low, high, np.zeros(shape))
        for some in self._slices(len(mid), IN_CACHE):
            for group in self.groups:
                for total, part in zip(sums, group.relax(mid[some], rad[some]), strict=True):
                    total[some] += part
        return sums

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the sum at points."""
        f = U @ self.linear
        for some in self._slices(len(U), IN_MEMORY):
            f[some] += sum(group.values(U[some]) for group in self.groups)
        return f

    def _slices(self, n, most):
        """Cut n rows into slices of at most so many pairs of a row and a term."""
        step = max(1, most // max(self.n_terms, 1))
        return (slice(start, start + step) for start in range(0, n, step))

    def rises(self, inputs: np.ndarray) -> bool:
        """Return whether every term rises with some inputs, by its weights alone."""
        return bool((self.linear[inputs] >= 0).all()) and all(
            group.rises(inputs) for group in self.groups
        )

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        """Return how much each input can change the derivatives by some inputs: an estimate."""
        return sum((group.coupling(inputs) for group in self.groups), np.zeros(len(self.linear)))

    def gradients(self, U: np.ndarray) -> np.ndarray:
        """Return the derivatives of the sum at points."""
        return self.linear + sum((group.gradients(U) for group in self.groups), np.zeros_like(U))
