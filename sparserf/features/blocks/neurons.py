"""Neurons sigma(w'x + b). Whatever depends on sigma is asked of its `ActivationFunction`."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..._base.checks import is_sparse
from ..._base.expressions import expanded, parameter, reduce_inputs, seen
from ..activations import ACTIVATIONS, CONVEX, COSINE, EPS, RISING, Derivative, cosine_line
from .bounds import Group, Relaxation
from .constrained import may_meet, without_forbidden
from .derivatives import Derivatives
from .pieces import ROUNDING, nodes
from .terms import Term
from .weighted import DENSE_BELOW, WeightedBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._base.expressions import Expression
    from ..._base.types import Array
    from ...columns.constraints import InputConstraints
    from ...columns.encoder import ColumnEncoder
    from ..activations import ActivationFunction
    from .base import Evaluator, FeatureBlock, Put
    from .derivatives import RowEncodings
    from .pieces import Pieces
    from .stored import StoredBlock
    from .terms import GroupEntry


class Neurons(WeightedBlock):
    """Functions scale * sigma(w'x + offset): neurons, and linear functions, whose sigma is the
    identity.

    sigma : ActivationFunction
    """

    @property
    @abstractmethod
    def sigma(self) -> ActivationFunction:
        """The activation."""

    @property
    def is_linear(self) -> bool:
        return self.sigma.is_linear

    def largest_value(self) -> np.ndarray:
        return np.full(
            len(self), abs(self.scale) * self.sigma.largest if self.is_bounded else np.inf
        )

    def rounding_in_single(self, total: float, sizes: np.ndarray) -> np.ndarray:
        # The number of roundings in the value of an activation, beside those of its argument.
        of_value = 8

        if self.sigma.has_steps or not self.is_bounded:
            return super().rounding_in_single(total, sizes)
        single = np.finfo(np.float32)
        # Numbers below the smallest normal one are rounded to a multiple of eps times it, not of
        # their own.
        size, least = np.abs(self.weights), 2.0 * float(single.tiny)
        argument = ((size + least) * (sizes + least * total)[self.own_inputs]).sum(axis=1)
        argument += np.abs(self.offset) * total
        roundings = (self.order + of_value) * argument + of_value * total
        largest = np.maximum(size.max(axis=1, initial=0.0), np.abs(self.offset))
        is_held = (largest <= single.max) & np.isfinite(roundings)
        bound = abs(self.scale) * float(single.eps) * roundings  # |sigma'| is at most 1
        return np.where(is_held, bound, np.inf)

    def evaluator(self, xp: Any, put: Put, dtype: np.dtype, widen: Evaluator) -> Evaluator:
        weights, inputs = self.weights, None
        if self.inputs is not None:
            used, place = self.used_inputs
            weights, inputs = self.dense_weights(place, len(used)), put(used.astype(np.int64))
        weights, offset = put(weights.T), put(self.offset)

        def values(X):
            has_all = inputs is None or inputs.shape[0] == X.shape[1]
            z = (X if has_all else xp.take(X, inputs, axis=1)) @ weights + offset[None, :]
            return self.sigma.value(z, xp) * float(self.scale)

        return values

    def term(self, k: int, position: int, column: np.ndarray) -> Neuron:
        if self.inputs is None:
            encodings, weights = np.arange(self.order), self.weights[k]
        else:
            encodings, place = np.unique(self.inputs[k], return_inverse=True)
            weights = np.bincount(place, self.weights[k])
        encodings, weights = encodings[weights != 0], weights[weights != 0]
        own = self.sigma, float(self.offset[k])
        return Neuron.of_columns(column, position, self.scale, encodings, weights, *own)

    def derivatives(self, *about: Any) -> NeuronDerivatives:
        return NeuronDerivatives(self, *about)

    @property
    def expression(self) -> Expression:
        return _expression(self.sigma, self.weights, self.inputs, self.offset)

    def written(self, inputs: np.ndarray, n_inputs: int) -> Self:
        """Return the features as functions of some inputs alone; if these are few, with dense
        weights."""
        block = super().written(inputs, n_inputs)
        is_dense = block.inputs is None or len(inputs) > DENSE_BELOW * self.order
        return block if is_dense else block.dense(len(inputs))

    # ---------------------------------------------------------------- constraints

    def keeps(self, constraints: InputConstraints) -> np.ndarray:
        at, sigma, direction = self.own_inputs, self.sigma, np.sign(self.scale)
        keeps = ~(self.is_used & constraints.is_barred[at]).any(axis=1)
        if not sigma.is_linear:  # a linear function is a sum of functions of one input
            keeps &= may_meet(self.is_used, constraints, at)
        sign, curvature = constraints.sign[at], constraints.curvature[at]
        rises = self.nonnegative & sigma.rises & (direction * np.sign(self.weights) == sign)
        bends = sigma.is_linear | (self.nonnegative & sigma.is_convex & (curvature == direction))
        for has_shape, wanted in ((rises, sign), (bends, curvature)):
            keeps &= (has_shape | ~self.is_used | (wanted == 0)).all(axis=1)
        return keeps

    def constrained(
        self, constraints: InputConstraints, through: np.ndarray, rng: np.random.Generator
    ) -> list[tuple[FeatureBlock, np.ndarray]]:
        """Return features like these draws that keep constraints: (block, places).

        Of neurons that rise with no input, cosines and sines, half lose their weights at inputs
        that are bound, and the other half get the activation `RISING`. Neurons that rise with w'x
        get the right signs.

        through : each neuron that is made anew has w'x + b = 0 between a random two of these rows
        """
        at, is_bound, sigma, n = self.own_inputs, constraints.is_bound, self.sigma, len(self)
        weights = without_forbidden(self.weights, constraints, rng, self.inputs)
        if is_bound.any() and not (sigma.rises or is_bound.all()):
            is_free = np.arange(n) % 2 == 0
            weights = np.where(is_free[:, None] & is_bound[at], 0.0, weights)
        if sigma.rises and not sigma.is_convex and (constraints.curvature != 0).any():
            is_flat = np.arange(n) % 2 == 0
            weights = np.where(is_flat[:, None] & (constraints.curvature[at] != 0), 0.0, weights)
        sees_bound = ((weights != 0) & is_bound[at]).any(axis=1)
        free, bound = np.flatnonzero(~sees_bound), np.flatnonzero(sees_bound)
        parts = []
        if len(free):
            parts.append((replace(self.take(free), weights=weights[free]), free))
        if len(bound):
            shaped = self._shaped(weights[bound], bound, constraints, through, rng)
            parts += [(part, bound[places]) for part, places in shaped]
        return parts

    def _shaped(self, weights, bound, constraints, through, rng):
        """Return neurons of the right shape for the weights of some features: (block, places)."""
        sigma, scale = self.sigma, abs(self.scale)
        shapes = [Shape(self.activation if sigma.rises else RISING, scale)]
        if sigma.is_convex:
            shapes.append(Shape(self.activation, -scale))
        inputs = None if self.inputs is None else self.inputs[bound]

        def values(w, rows):  # of (n, ., n_inputs) rows, some for each w
            if inputs is not None:
                rows = np.take_along_axis(rows, inputs[:, None], axis=2)
            return (w[:, None] * rows).sum(axis=2)

        def offsets(w):
            share = rng.random(len(w))
            pairs = values(w, through[rng.integers(0, len(through), (len(w), 2))])
            return -(share * pairs[:, 0] + (1 - share) * pairs[:, 1])

        def spreads(w):
            at_rows = (
                w @ through.T if inputs is None else np.einsum("ij,kij->ik", w, through[:, inputs])
            )
            return at_rows.std(axis=1)

        shape = rng.integers(0, len(shapes), len(bound))
        spreads = None if sigma.rises else spreads
        return shaped_neurons(weights, shape, shapes, constraints, offsets, spreads, inputs)


@dataclass(frozen=True, eq=False)
class NeuronBlock(Neurons):
    """Neurons, phi_j(x) = scale * activation(w_j'x + offset_j): weights w are all dense, or, given
    `inputs`, all sparse.

    nonnegative : whether coefficients must be at least 0, as of neurons that rise with an input in
        which the model must rise
    """

    activation: str
    scale: float
    weights: np.ndarray
    offset: np.ndarray
    inputs: np.ndarray | None = None
    nonnegative: bool = False

    names: ClassVar[tuple[str, ...]] = tuple(ACTIVATIONS)

    @property
    def sigma(self) -> ActivationFunction:
        return ACTIVATIONS[self.activation]

    @property
    def is_bounded(self) -> bool:
        return self.sigma.is_bounded

    @property
    def is_periodic(self) -> bool:
        return self.sigma.is_periodic

    def turned(self, angle: float | np.ndarray) -> Self:
        return replace(self, offset=self.offset + angle) if self.is_periodic else self

    def with_inputs(self, stays: np.ndarray, mean: np.ndarray) -> Self:
        if self.is_linear:  # what is left out is a constant
            return super().with_inputs(stays, mean)
        hidden = np.where(stays, 0.0, self.weights)
        moved = (hidden * mean[self.own_inputs]).sum(axis=1)
        offset = (self.offset + moved).astype(self.offset.dtype)
        return replace(super().with_inputs(stays, mean), offset=offset)

    @classmethod
    def from_stored(cls, stored: StoredBlock) -> NeuronBlock:
        offset = stored.offset()
        inputs = stored.inputs(len(offset))
        weights = stored.by_input("weights", len(offset), inputs)
        about = stored.meta["activation"], stored.meta["scale"]
        return cls(*about, weights, offset, inputs, stored.is_nonnegative)


def _expression(sigma, weights, inputs, offset):
    """Return the expression of neurons, or of one."""
    return sigma.expression(
        reduce_inputs("add", parameter("weights", weights) * seen(inputs))
        + parameter("offset", offset)
    )


# ---------------------------------------------------------------- neurons of given shapes


class Shape(NamedTuple):
    """A kind of neurons that rise with w'x: scale activation(t) with t = w'x + b, or for a negative
    scale t = b - w'x."""

    activation: str
    scale: float


def shaped_neurons(
    weights: np.ndarray,
    shape: np.ndarray,
    shapes: Sequence[Shape],
    constraints: InputConstraints,
    offsets: Callable[[np.ndarray], np.ndarray],
    spreads: Callable[[np.ndarray], np.ndarray] | None,
    inputs: np.ndarray | None = None,
) -> list[tuple[NeuronBlock, np.ndarray]]:
    """Return neurons that keep the constraints, of weights that come from `without_forbidden`:
    (block, places).

    Weights get the signs that their inputs must have. A w that sees an input in which f must be
    convex or concave gets the activation `CONVEX`.

    shape : the number among `shapes` that each w is to have
    offsets : returns the offset of each w of the right signs
    spreads : returns the standard deviation of w'x of each w, by which the w of an activation
        without a bound are divided, so that their penalty does not depend on their size; None: they
        stay as they are
    """
    at = np.arange(weights.shape[1])[None] if inputs is None else inputs
    weights = np.where(constraints.sign[at] != 0, constraints.sign[at] * np.abs(weights), weights)
    curvature = np.where(weights != 0, constraints.curvature[at], 0)
    bent, found = np.sign(curvature.sum(axis=1)), []
    kinds = [(each, (bent == 0) & (shape == k)) for k, each in enumerate(shapes)]
    size = abs(shapes[0].scale)
    kinds += [(Shape(CONVEX, sign * size), bent == sign) for sign in (1, -1)]
    is_large = np.any(
        [is_it for each, is_it in kinds if not ACTIVATIONS[each.activation].is_bounded], axis=0
    )
    if spreads is not None and is_large.any():
        spread = spreads(weights)
        weights = np.divide(
            weights, spread[:, None], out=weights, where=(is_large & (spread > 0))[:, None]
        )
    offset = offsets(weights)
    for (activation, scale), is_it in kinds:
        places = np.flatnonzero(is_it)
        if len(places):
            sign = np.sign(scale)
            own = sign * weights[places], sign * offset[places]
            of_places = None if inputs is None else inputs[places]
            block = NeuronBlock(activation, scale, *own, of_places, nonnegative=True)
            found.append((block, places))
    return found


# ---------------------------------------------------------------- one by one


@dataclass(frozen=True, eq=False)
class Neuron(Term):
    """gain sigma(sum_v w_v u_v + offset).

    It is a product over columns where sigma is a wave: cos(w'u + b) = Re(e^ib prod_v e^(i w_v
    u_v)). Its parts are the sums of w_v u_v over the encodings v of each column, or of a wave e^i
    these.
    """

    sigma: ActivationFunction
    offset: float

    @property
    def activation(self) -> str:
        return self.sigma.name

    @property
    def is_linear(self) -> bool:
        return self.sigma.is_linear

    @property
    def is_bounded(self) -> bool:
        return self.sigma.is_bounded

    @property
    def is_product(self) -> bool:
        return self.sigma.is_periodic

    @cached_property
    def expression(self) -> Expression:
        return expanded(_expression(self.sigma, self.weights, self.encodings, self.offset))

    def title(self, names: Sequence[str], most: int, encoder: ColumnEncoder | None = None) -> str:
        if self.is_linear and len(self.columns) == 1:
            return names[self.columns[0]]
        return super().title(names, most, encoder)

    def summands(self, column: np.ndarray) -> list[Neuron]:
        """Return linear terms of one encoding each, without an offset, whose sum is this linear
        one."""
        return [
            Neuron.of_columns(
                column,
                self.position,
                self.gain,
                self.encodings[k : k + 1],
                self.weights[k : k + 1],
                self.sigma,
                0.0,
            )
            for k in range(len(self.encodings))
        ]

    @property
    def constant(self) -> complex:
        return self.gain * np.exp(1j * (self.offset + self.sigma.phase))

    def parts(self, U: np.ndarray) -> np.ndarray:
        sums = self.by_column(np.add, self.weights[:, None] * U.T[self.encodings])
        if not self.is_product:
            return sums
        is_finite = np.isfinite(sums)  # as the kernels have it, a wave is 0 where its phase is not
        return np.where(is_finite, np.exp(1j * np.where(is_finite, sums, 0.0)), 0.0)

    def worth(self, known: np.ndarray, rest: np.ndarray) -> np.ndarray:
        if self.is_product:
            return super().worth(known, rest)
        return self.gain * self.sigma.mean(known, rest + self.offset)

    # ---------------------------------------------------------------- means over boxes

    @property
    def phase_size(self) -> float:
        return abs(self.offset)

    def mean_factor(self, pieces: Pieces, finer: int) -> tuple[complex, float]:
        """Return (the mean of exp(i w'u) over pieces, the size of the phases)."""
        pieces, is_here = pieces.seen_by(self.encodings)
        weights = self.weights[is_here]
        middle, half = pieces.middle @ weights, pieces.half @ weights
        mean = pieces.weight @ (np.exp(1j * middle) * np.sinc(half / np.pi))
        return mean, np.abs(middle).max() + np.abs(half).max()

    def mean(self, columns: Sequence[Pieces], finer: int) -> tuple[float, float] | None:
        """Return the mean over a box as `Term.mean` does.

        Where an activation has antiderivatives in closed form, the mean over a line of each column
        is a sum of antiderivatives at the corners. Where it has none, or digits are lost to
        cancellation, Gauss-Legendre nodes take the place of the line.
        """
        if self.is_product:
            return super().mean(columns, finer)
        # Most corners and nodes, and the share of the term's size that corners may lose to
        # rounding; lines that are shorter than a share of the longest line count as points.
        most_points, most_lost, shortest = 2**21, 1e-11, 1e-9
        lines = []
        for pieces in columns:
            here, is_here = pieces.seen_by(self.encodings)
            weights = self.weights[is_here]
            lines.append((here.weight, here.middle @ weights, np.abs(here.half @ weights)))
        if self.is_linear:
            return self._linear_mean(lines)
        most_closed = int(min(self.sigma.folds, max(1, len(lines))))
        fewest_closed = min(1, most_closed)
        halves = [half.max(initial=0.0) for _, _, half in lines]
        widest = np.argsort(halves, kind="stable")[::-1]
        least = shortest * max(halves, default=0.0)
        # The closed form is tried in as many columns as sigma has one for, then in fewer: nodes
        # lose less to rounding.
        for n_closed in range(most_closed, fewest_closed - 1, -1):
            closed = widest[:n_closed]
            atoms = [
                _corners(*line, least) if j in closed else _points(*line, finer)
                for j, line in enumerate(lines)
            ]
            n_points = [sum(len(z) for z, _ in groups) for groups in atoms]
            if np.prod(n_points, dtype=float) > most_points:
                continue
            value, lost = _sum_of_atoms(self.sigma, self.offset, atoms)
            if lost <= most_lost * max(1.0, abs(value)) or n_closed == fewest_closed:
                return self.gain * value, abs(self.gain) * lost
        return None

    def _linear_mean(self, lines):
        middle = [float(weight @ middle) for weight, middle, _ in lines]
        size = abs(self.offset) + sum(float(weight @ np.abs(middle)) for weight, middle, _ in lines)
        return self.gain * (self.offset + sum(middle)), ROUNDING * abs(self.gain) * 4 * size

    # ---------------------------------------------------------------- bounds

    def group_entry(self, c: float, w: np.ndarray, inputs: np.ndarray) -> GroupEntry:
        """Return the entry of the term, written with a positive coefficient: -cos(t) = cos(t + pi),
        -tanh(t) = tanh(-t); other activations get a sign."""
        sigma, b = self.sigma, self.offset
        if sigma.is_periodic:
            sigma, b = COSINE, b + sigma.phase
        sign = 1
        if c < 0:
            c = -c
            if sigma.is_periodic:
                b = b + np.pi
            elif sigma.is_odd:
                w, b = -w, -b
            else:
                sign = -1
        return NeuronGroup, (sigma, sign), (c, w, b)


def _corners(weight, middle, half, least):
    """Return the atoms (arguments, factors) of a column: its points, and the ends of its lines, for
    the antiderivative.

    least : half the length of lines that count as points
    """
    wide = half > least
    points = middle[~wide], weight[~wide]
    middle, half, factor = middle[wide], half[wide], weight[wide] / (2 * half[wide])
    return points, (
        np.concatenate([middle + half, middle - half]),
        np.concatenate([factor, -factor]),
    )


def _points(weight, middle, half, finer):
    """Return the atoms (arguments, factors) of a column: its points, and nodes on its lines; no
    antiderivative is asked for."""
    z, factor = [np.zeros(0)], [np.zeros(0)]
    for w, m, h in zip(weight, middle, half, strict=True):
        place, share = nodes(m - h, m + h, 2 * h, finer) if h > 0 else (np.array([m]), np.ones(1))
        z.append(place)
        factor.append(w * share)
    return (np.concatenate(z), np.concatenate(factor)), (np.zeros(0), np.zeros(0))


def _sum_of_atoms(sigma, offset, atoms):
    """Return (a sum, a bound of its rounding): over all choices of one atom of each column, the
    product of their factors times an antiderivative at the sum of their arguments.

    The antiderivative is repeated once for each atom that is the end of a line.
    """
    total = lost = 0.0
    for choice in product((0, 1), repeat=len(atoms)):
        z, factor = np.array([offset]), np.ones(1)
        for k, groups in zip(choice, atoms, strict=True):
            arguments, factors = groups[k]
            z = np.add.outer(z, arguments).ravel()
            factor = np.multiply.outer(factor, factors).ravel()
        if len(z):
            values = factor * sigma.antiderivative(z, sum(choice))
            total += float(values.sum())
            lost += 8 * ROUNDING * float(np.abs(values).sum())
    return total, lost


# ---------------------------------------------------------------- derivatives


class NeuronDerivatives(Derivatives):
    """The derivatives of c sigma(w'u + b): c w_v sigma'(w'u + b), and c w_v w_w sigma''(w'u +
    b)."""

    @cached_property
    def _weights(self):
        block = self._block
        if block.inputs is None:
            return block.weights[:, self._seen]
        if self._n_inputs <= block.dense_below * block.order:
            return block.dense_weights(block.inputs, self._n_inputs)[:, self._seen]
        from scipy.sparse import csr_array

        row = np.repeat(np.arange(len(block)), block.order)
        shape = len(block), self._n_inputs
        sparse = csr_array((block.weights.ravel(), (row, block.inputs.ravel())), shape=shape)
        return sparse[:, self._seen]

    @cached_property
    def _by_first(self):
        return self._times_coef(self._weights)

    @cached_property
    def _by_second(self):
        left, right = (self._weights[:, place] for place in self._pairs)
        return self._times_coef(left.multiply(right) if is_sparse(left) else left * right)

    def _times_coef(self, weights):
        """Return the matrix (n_features, n_outputs n_weights) of coef_kj weights_jv, sparse if the
        weights are."""
        if is_sparse(weights):
            from scipy.sparse import csr_array, hstack

            return hstack([csr_array(weights * c[:, None]) for c in self._coef], format="csr")
        return (weights[:, None, :] * self._coef.T[:, :, None]).reshape(len(weights), -1)

    @cached_property
    def _slopes(self):
        return self._features_of(self._block.sigma.slope)

    @cached_property
    def _bends(self):
        return self._features_of(self._block.sigma.bend)

    def _features_of(self, derivative):
        """Return the features from whose values a derivative of sigma is computed; None where it is
        constant."""
        if not isinstance(derivative, Derivative):
            return None
        offset = self._block.offset + derivative.shift
        return replace(self._block, scale=1.0, activation=derivative.activation, offset=offset)

    def first(self, rows: RowEncodings) -> Array:
        slope = self._block.sigma.slope
        if not slope:
            return rows.put(np.zeros((1, len(self._coef), len(self._seen))))
        return self._sums(self._values(slope, self._slopes, rows), self._by_first, rows)

    def second(self, rows: RowEncodings) -> Array:
        bend = self._block.sigma.bend
        if not bend:
            return rows.put(np.zeros((1, len(self._coef), len(self._pairs[0]))))
        return self._sums(self._values(bend, self._bends, rows), self._by_second, rows)

    def _values(self, derivative, features, rows):
        """Return a derivative of sigma at w'u + b, (n_rows, n_features); 1 row if it is
        constant."""
        if features is None:
            return rows.put(np.full((1, len(self._block)), derivative))
        return derivative.function(rows.values(features))


# ---------------------------------------------------------------- bounds


class NeuronGroup(Group):
    """Terms sum_k sign c_k sigma(w_k'u + b_k) of one activation sigma, c_k > 0 and the sign 1 or
    -1; waves are cosines.

    On a box, t = w'u + b lies in an interval [l, h]. There sigma(t) <= d + a (t - m) with m the
    middle, a the slope of the chord from l to h, and d the largest value of sigma(t) - a (t - m):
    at an end, or where sigma' = a. The gap is of second order in the width h - l, whether sigma is
    convex, concave or neither (H. Zhang et al., Efficient Neural Network Robustness Certification
    with General Activation Functions, 2018). The lines are the activation's.

    Signs are bounded with both values, -1 and 1, where t may be 0; their derivative is infinite
    there.
    """

    def __init__(
        self,
        sigma: ActivationFunction,
        sign: int,
        coef: np.ndarray,
        weights: np.ndarray,
        offset: np.ndarray,
        largest: np.ndarray,
    ):
        """Take the terms; `largest`, the largest |u_v| of each input, bounds the rounding of t."""
        self._sigma, self._sign = sigma, sign
        self._coef, self._weights, self._offset = coef, weights, offset
        self.work, self.has_steps = len(coef), sigma.has_steps
        self._absolute = np.abs(weights)
        self._up = coef[:, None] * np.maximum(weights, 0)
        self._down = coef[:, None] * np.minimum(weights, 0)
        # A bound of |t|, whose offset may hold a multiple of pi.
        size = self._absolute @ largest + np.abs(offset) + 4
        self._rounding = EPS * (weights.shape[1] + 8) * size
        if sigma.is_periodic:
            self._waves = _sines_and_cosines(weights, offset)
            self._radii = _sines_and_cosines(self._absolute, self._rounding)

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
        blame = rad * (gap @ self._absolute)
        return Relaxation(line.top @ self._coef, slope @ self._weights, low, high, blame)

    def _line_over(self, mid, rad):
        """Return lines above the activations on boxes, and the radii of their intervals, (n,
        n_terms)."""
        r = rad @ self._absolute.T + self._rounding
        if not self._sigma.is_periodic:
            line = self._sigma.line if self._sign > 0 else self._sigma.line_of_negative
            return line(mid @ self._weights.T + self._offset, r), r
        at_middle = (wave.values(mid) for wave in self._waves)
        at_radius = (wave.values(rad) for wave in self._radii)
        return cosine_line(*at_middle, *at_radius, r), r

    def values(self, U: np.ndarray) -> np.ndarray:
        if self._sigma.is_periodic:
            return self._waves[1].values(U) @ self._coef
        return (self._sign * self._sigma.value(self._arguments(U))) @ self._coef

    def gradients(self, U: np.ndarray) -> np.ndarray:
        if self._sigma.is_periodic:
            return (-self._waves[0].values(U) * self._coef) @ self._weights
        return (self._sign * self._sigma.first(self._arguments(U)) * self._coef) @ self._weights

    def _arguments(self, U):
        """Return w'u + b of each term at points, (n, n_terms)."""
        return U @ self._weights.T + self._offset

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
    """Return the features sin(weights'u + offset) and cos(weights'u + offset), which the kernels
    compute fast."""
    return [NeuronBlock(name, 1.0, weights.copy(), offset.copy()) for name in ("sin", "cos")]
