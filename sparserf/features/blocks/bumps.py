"""Bumps exp(-sum_l |w_l (x_l - c_l)|): the Laplacian kernel around centers, with a width for each
input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..._base.arrays import namespace
from ..._base.expressions import absolute, exp, expanded, parameter, reduce_inputs, seen
from ..._base.npz import require
from .bounds import Group, Relaxation
from .derivatives import Derivatives, pair_finder, places_in
from .terms import Term
from .weighted import WeightedBlock, zero_offset

if TYPE_CHECKING:
    from ..._base.expressions import Expression
    from ..._base.types import Array
    from .base import Evaluator, Put
    from .derivatives import RowEncodings
    from .pieces import Pieces
    from .stored import StoredBlock
    from .terms import GroupEntry


@dataclass(frozen=True, eq=False)
class BumpBlock(WeightedBlock):
    """Bumps, phi_j(x) = scale * exp(-sum_l |w_jl (x_l - c_jl)|), with the peak `scale` at the
    center c_j.

    They are products of one factor for each input. An input of weight 0 does not matter. Weights
    and centers are all dense, or, given `inputs`, all sparse: inputs of one bump with other weights
    than 0 differ.

    centers : of the shape of the weights
    """

    scale: float
    weights: np.ndarray
    centers: np.ndarray
    inputs: np.ndarray | None = None

    activation = "bump"
    names: ClassVar[tuple[str, ...]] = (activation,)
    by_input: ClassVar[tuple[str, ...]] = ("weights", "centers")
    stored: ClassVar[tuple[str, ...]] = (*WeightedBlock.stored, "centers")
    is_bounded = True
    is_local = True
    needs_dense_rows = True
    # about half of DENSE_BELOW, as a distance takes twice the time of a product
    dense_below = 12

    @cached_property
    def offset(self) -> np.ndarray:
        return zero_offset(self)

    @cached_property
    def used_inputs(self) -> tuple[np.ndarray, np.ndarray | None]:
        if self.inputs is not None:
            return super().used_inputs
        return np.flatnonzero(self.weights.any(axis=0)), None

    def among_used(self) -> Self:
        if self.inputs is not None:
            return super().among_used()
        used = self.used_inputs[0]
        return replace(self, weights=self.weights[:, used], centers=self.centers[:, used])

    def dense(self, n_inputs: int) -> Self:
        feature, place = np.nonzero(self.weights)
        centers = np.zeros((len(self), n_inputs))
        centers[feature, self.inputs[feature, place]] = self.centers[feature, place]
        return replace(
            self, weights=self.dense_weights(self.inputs, n_inputs), centers=centers, inputs=None
        )

    def parameters(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray | None]:
        """Return (abs(weights), centers), with which no distance is 0 times infinity.

        Weights are finite in that dtype, and where one is 0 there, or subnormal, it and its center
        are 0.
        """
        weights, limits = np.abs(self.weights), np.finfo(dtype)
        weights = np.where(weights < limits.tiny, 0, np.minimum(weights, limits.max))
        return weights, np.where(weights == 0, 0, self.centers)

    def evaluator(self, xp: Any, put: Put, dtype: np.dtype, widen: Evaluator) -> Evaluator:
        """Return a function that adds up the distances of one input of each bump at a time."""
        inputs = self.used_inputs[0][:, None] if self.inputs is None else self.inputs.T
        inputs = [put(column.astype(np.int64)) for column in inputs]
        block = self.among_used() if self.inputs is None else self
        weights, centers = (put(array.T) for array in block.parameters(dtype))
        start = put(np.zeros((1, len(self))))

        def values(X):
            distance = xp.zeros_like(X[:, :1]) + start
            for k, column in enumerate(inputs):
                away = xp.abs(xp.take(X, column, axis=1) - centers[k, :][None, :])
                distance = distance + away * weights[k, :][None, :]
            return xp.exp(-distance) * float(self.scale)

        return values

    # ---------------------------------------------------------------- in models

    def term(self, k: int, position: int, column: np.ndarray) -> Bump:
        inputs = np.arange(self.order) if self.inputs is None else self.inputs[k]
        used = np.argsort(inputs, kind="stable")
        used = used[self.weights[k, used] != 0]
        weights, centers = np.abs(self.weights[k, used]), self.centers[k, used]
        return Bump.of_columns(column, position, self.scale, inputs[used], weights, centers)

    def derivatives(self, *about: Any) -> BumpDerivatives:
        return BumpDerivatives(self, *about)

    @property
    def expression(self) -> Expression:
        """The features as an expression, where weights are at least 0."""
        return _expression(self.weights, self.inputs, self.centers)

    def written(self, inputs: np.ndarray, n_inputs: int) -> Self:
        """Return the features with weights of at least 0; centers of inputs that do not matter are
        0."""
        centers = np.where(self.is_used, self.centers, 0.0)
        block = replace(self, weights=np.abs(self.weights), centers=centers)
        return super(BumpBlock, block).written(inputs, n_inputs)

    @classmethod
    def from_stored(cls, stored: StoredBlock) -> BumpBlock:
        n = len(stored.offset(is_zero=True))
        inputs = stored.inputs(n)
        weights, centers = (stored.by_input(name, n, inputs) for name in cls.by_input)
        require(inputs is None or _are_distinct(inputs, weights), "inputs")
        return cls(stored.meta["scale"], weights, centers, inputs)


def _expression(weights, inputs, centers):
    """Return the expression of bumps, or of one, whose weights are at least 0."""
    away = absolute(seen(inputs) - parameter("centers", centers))
    return exp(-reduce_inputs("add", parameter("weights", weights) * away))


def _are_distinct(inputs, weights):
    """Return whether the inputs of each feature whose weights are not zero differ."""
    inputs = np.sort(np.where(weights != 0, inputs, np.arange(-inputs.shape[1], 0)), axis=1)
    return bool((np.diff(inputs, axis=1) != 0).all())


# ---------------------------------------------------------------- one by one


@dataclass(frozen=True, eq=False)
class Bump(Term):
    """gain exp(-sum_v w_v |u_v - c_v|), with weights w of at least 0 and centers c."""

    centers: np.ndarray

    activation = "bump"

    @cached_property
    def expression(self) -> Expression:
        return expanded(_expression(self.weights, self.encodings, self.centers))

    @np.errstate(over="ignore", under="ignore")
    def parts(self, U: np.ndarray) -> np.ndarray:
        away = np.abs(U.T[self.encodings] - self.centers[:, None])
        return np.exp(-self.by_column(np.add, self.weights[:, None] * away))

    def mean_factor(self, pieces: Pieces, finer: int) -> tuple[complex, float]:
        """Return (the mean of exp(-sum_v w_v |u_v - c_v|) over pieces, 0): on a line the exponent
        is linear between the centers."""
        pieces, is_here = pieces.seen_by(self.encodings)
        weights, centers = self.weights[is_here], self.centers[is_here]
        middle, half = pieces.middle, pieces.half
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.where(half != 0, np.clip((centers - middle) / half, -1, 1), 1.0)
        ends = np.ones((len(place), 1))
        place = np.sort(np.concatenate([-ends, place, ends], axis=1), axis=1)
        away = np.abs(middle[:, None, :] + place[:, :, None] * half[:, None, :] - centers)
        exponent = -away @ weights
        low, high = np.sort(np.stack([exponent[:, :-1], exponent[:, 1:]]), axis=0)
        gap = high - low
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.exp(high) * np.where(gap > 0, -np.expm1(-gap) / gap, 1.0)
        return pieces.weight @ (np.diff(place, axis=1) / 2 * mean).sum(axis=1), 0.0

    def group_entry(self, c: float, w: np.ndarray, inputs: np.ndarray) -> GroupEntry:
        centers = np.zeros(len(w))
        centers[inputs] = self.centers
        return BumpGroup, (), (c, w, centers)


# ---------------------------------------------------------------- derivatives


class BumpDerivatives(Derivatives):
    """The derivatives of c exp(-sum_v w_v |u_v - c_v|): -c w_v s_v phi, and c w_v w_w s_v s_w phi;
    s_v = 1 at the center."""

    @cached_property
    def _by_input(self):
        """For each position of an input in a bump, (the place in `seen` or -1, the input, its
        weight, its center) of all bumps."""
        block, place = self._block, places_in(self._seen, self._n_inputs)
        inputs = np.broadcast_to(block.own_inputs, block.weights.shape)
        return [
            (place[i], i, np.abs(w), c)
            for i, w, c in zip(inputs.T, block.weights.T, block.centers.T, strict=True)
        ]

    @cached_property
    def _first_steps(self):
        """The (inputs, matrix, its place) of which first derivatives are the sum: see `_step`."""
        steps = []
        for i, (place, _, weights, _) in enumerate(self._by_input):
            steps += self._step((i,), place, -weights, len(self._seen))
        return steps

    @cached_property
    def _second_steps(self):
        """The (inputs, matrix, its place) of which second derivatives are the sum; no inputs where
        signs are equal."""
        steps, find, n_pairs = [], pair_finder(self._pairs), len(self._pairs[0])
        for i, (left, _, weights, _) in enumerate(self._by_input):
            for j, (right, _, other_weights, _) in enumerate(self._by_input):
                signs, place = () if i == j else (i, j), find(left, right)
                steps += self._step(signs, place, weights * other_weights, n_pairs)
        return steps

    def _step(self, positions, place, values, width):
        """Return [(positions, matrix, place)], or [] where no bump has a part.

        The bumps, times the signs of their inputs at some positions, times the matrix are summands
        of the derivatives: of all of them where place is None, and else, where the bumps have the
        same inputs, of that at this place.
        """
        has = np.flatnonzero((place >= 0) & (values != 0))
        if not len(has):
            return []
        if self._block.inputs is None:
            column, at, width = np.zeros_like(has), int(place[0]), 1
        else:
            column, at = place[has], None
        return [(positions, self._select(has, column, values[has], width), at)]

    def first(self, rows: RowEncodings) -> Array:
        return self._sum(self._first_steps, len(self._seen), rows)

    def second(self, rows: RowEncodings) -> Array:
        return self._sum(self._second_steps, len(self._pairs[0]), rows)

    @cached_property
    def _plain(self):
        return replace(self._block, scale=1.0)

    def _sum(self, steps, width, rows):
        """Return the sum of values times signs of some inputs times a matrix."""
        phi, U = rows.values(self._plain), rows.dense()
        total = rows.put(np.zeros((phi.shape[0], len(self._coef), width)))
        xp, minus, at_place = namespace(phi), -phi, {}
        for positions, matrix, place in steps:
            signed = phi
            for i in positions:
                turned = minus if signed is phi else -signed
                signed = xp.where(self._is_below(U, i, rows), turned, signed)
            sums = self._sums(signed, matrix, rows)
            if place is None:
                total = total + sums
            else:
                at_place[place] = at_place.get(place, 0.0) + sums
        if not at_place:
            return total
        nothing = total[:, :, :1]
        return xp.concat([at_place.get(place, nothing) for place in range(width)], axis=2)

    def _is_below(self, U, i, rows):
        """Return where the i-th input of a bump is below its center."""
        _, inputs, _, centers = self._by_input[i]
        xp = namespace(U)
        u = (
            U[:, int(inputs[0])][:, None]
            if self._block.inputs is None
            else xp.take(U, rows.put(inputs.astype(np.int64)), axis=1)
        )
        return u < xp.astype(rows.put(centers.copy()), U.dtype)[None, :]


# ---------------------------------------------------------------- bounds


class BumpGroup(Group):
    """Terms sum_k c_k exp(-q_k), q_k = sum_v w_kv |u_v - c_kv|, with coefficients of either sign.

    exp(-q) lies below its chord over the range of q, and above its tangent; |u - c| lies below its
    chord, and above the line of the same slope through its kink.
    """

    def __init__(
        self, coef: np.ndarray, weights: np.ndarray, centers: np.ndarray, largest: np.ndarray
    ):
        self._coef, self._weights, self._centers = coef, weights, centers
        self.work = 2 * weights.size

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
