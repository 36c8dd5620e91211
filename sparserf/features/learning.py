"""A dictionary that learns: draws that follow the features which a fit has accepted.

The draws come in batches. The first batch is drawn from a base distribution, `RandomCosines` of any
bandwidth and number of inputs. A part of each further batch is drawn from it again. The rest are
proposals: weights w of accepted features, picked with probability in proportion to |coefficient|
and changed by one of five moves (`MOVES`). Moves whose proposals have stayed in the fit get a
larger share of the next batch. docs/learning.md has the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from .._base.checks import check_integer, is_sparse
from .._base.random import draw_seed, sample_rows
from .bandwidth import SAMPLE, SMALLEST, distance_scale
from .blocks import NeuronBlock, Shape, shaped_neurons, without_forbidden
from .feature_set import FeatureSet
from .following import Follower, FollowingDictionary
from .shapes import in_places

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..columns.constraints import InputConstraints
    from ..columns.encoder import ColumnEncoder
    from ..rows import Rows

# Most inputs that features may depend on, the inputs of the largest variance; weights are dense
# over them.
MOST_INPUTS = 1024
# The factor of cosines, at which the mean square of each is about 1.
SCALE = float(np.sqrt(2))
# The narrowest and the widest bandwidth of random cosines, in multiples of the median distance
# between rows.
NARROWEST = 0.25
WIDEST = 4.0
# About the number of sampled rows whose distances are compared.
FEW_DISTANCES = 250
# Of the draws from the base distribution, at least this share see bound inputs: those in which the
# model must rise, fall, or be convex or concave.
BOUND = 0.5
# The kinds of neurons that see bound inputs, each as often as the others: so half are tanh, which
# helped most on the tables that were measured.
SHAPES = (Shape("tanh", 1.0), Shape("tanh", 1.0), Shape("relu", 1.0), Shape("relu", -1.0))
# Of the neurons that see bound inputs and are proposed from an accepted neuron, this share keep its
# shape, and about keep the point where w'x + b = 0.
INHERITED = 0.7
# The standard deviation by which that point moves, as a share of that of w'x.
MOVED = 0.2
# The default number of draws in a batch: small batches let proposals follow the accepted features
# early.
BATCH = 500
# The share of each batch that comes from the base distribution, for whose draws the convergence
# rate of the paper holds (docs/learning.md). Before any feature is accepted the whole batch does.
BASE = 0.25
# `jitter` multiplies each entry by 1 + JITTER e, with e standard normal.
JITTER = 0.3
# `rescale` multiplies w by e^(RESCALE e), with e standard normal.
RESCALE = 0.4
# The moves share the rest of a batch in proportion to (survivors + SURVIVORS) / (tries + TRIES).
SURVIVORS = 1.0
TRIES = 20.0
# The counts of survivors and tries are multiplied by FADE before each batch.
FADE = 0.8


# ---------------------------------------------------------------- the base distribution


class Origins(NamedTuple):
    """The properties of accepted features that neurons which are proposed from them may keep.

    shape : the place of each feature's shape in SHAPES, -1 for another feature
    middle : of the points where its w'x + b is 0, the nearest to the origin, (n, len(inputs))
    """

    shape: np.ndarray
    middle: np.ndarray

    def take(self, places: np.ndarray) -> Origins:
        """Return the origins at these places, with none where a place is negative."""
        return Origins(np.where(places < 0, -1, self.shape[places]), self.middle[places])


@dataclass(frozen=True, eq=False)
class RandomCosines:
    """Cosines sqrt(2) cos(w'x + b) of random bandwidth and number of inputs, for some rows: the
    first draws of a dictionary.

    The order q of w, the number of its nonzeros, is log-uniform from 1 to the number of inputs, and
    the bandwidth c from NARROWEST to WIDEST.

    w_j = u_j / s_j, where s are, with equal probability, the standard deviations of the inputs or
    their half ranges, with which an input that is nearly always the same counts little. The u_j are
    normal, of the deviation with which u'(x / s) is spread as for draws of the Gaussian kernel
    whose width is c times the median distance between the rows x / s.

    Draws that see a bound input are neurons of the SHAPES, each as often as the others.

    inputs : the indices of the inputs that are not constant, at most MOST_INPUTS; w has an entry
        for each
    units : 1 / s for both choices of s, scaled so that the median distance is 1: (2, len(inputs))
    sample : some rows, (n, len(inputs))
    max_order : the most inputs that a feature may have, the number of nonzeros of w; None: all
    constraints : what features may see of these inputs, or None
    """

    inputs: np.ndarray = field(repr=False)
    units: np.ndarray = field(repr=False)
    sample: np.ndarray = field(repr=False)
    max_order: int | None = field(default=None, kw_only=True)
    constraints: InputConstraints | None = field(default=None, kw_only=True, repr=False)

    @classmethod
    def from_rows(
        cls,
        rows: Rows,
        weight: np.ndarray,
        rng: np.random.Generator,
        encoder: ColumnEncoder | None = None,
        max_order: int | None = None,
        constraints: InputConstraints | None = None,
    ) -> Self:
        """Make the distribution in units that are computed from the rows.

        weight : the weight of each row, positive and of mean 1
        encoder : the column encoder that encoded the rows
        constraints : what features may see of the inputs; None: anything
        """
        inputs, scale = inputs_that_vary(rows, weight, encoder)
        if not len(inputs):
            return cls(
                np.zeros(1, np.intp), np.zeros((2, 1)), np.zeros((1, 1)), max_order=max_order
            )
        X, weight = _sample(rows, inputs, weight, rng)
        units = 1 / scale
        few = slice(None, None, max(1, len(X) // FEW_DISTANCES))
        widths = [
            distance_scale((X[few] * unit).__getitem__, weight[few], None, "euclidean", rng)
            for unit in units
        ]
        units = np.stack([unit / width for unit, width in zip(units, widths, strict=True)])
        constraints = None if constraints is None else constraints.take(inputs)
        return cls(inputs, units, X[few], max_order=max_order, constraints=constraints)

    def weights(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n weights w over the inputs: (n, len(inputs))."""

        def orders(most):
            return np.minimum(np.exp(rng.uniform(0.0, np.log(most + 1), n)).astype(np.intp), most)

        used, order = self.inputs_used(n, orders, rng)
        return (
            rng.standard_normal(used.shape)
            * used
            * self.sizes(order, rng)[:, None]
            * self.units[rng.integers(0, 2, n)]
        )

    def entries(self, j: np.ndarray, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw an entry w_j for each of the inputs j, where `order` is the number of nonzeros of
        its w."""
        unit = self.units[rng.integers(0, 2, len(j)), j]
        return rng.standard_normal(len(j)) * self.sizes(order, rng) * unit

    def sizes(self, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw a bandwidth for each w, of `order` nonzeros, and return the standard deviation of
        its u_j."""
        width = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), len(order)))
        return width * np.sqrt(len(self.inputs) / np.maximum(order, 1))

    def spreads(self, weights: np.ndarray) -> np.ndarray:
        """Return the standard deviation of w'x over the sample of each w."""
        return (weights @ self.sample.T).std(axis=1)

    def middles(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw an offset b for each w, so that w'x + b = 0 at a sampled row: neurons of the SHAPES
        bend or rise there."""
        return -(weights * self.sample[rng.integers(0, len(self.sample), len(weights))]).sum(axis=1)

    @property
    def most_inputs(self) -> int:
        """The most inputs that a feature may have."""
        return len(self.inputs) if self.max_order is None else min(self.max_order, len(self.inputs))

    def limited(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return weights with random entries set to 0, so that no w has more than `most_inputs`, or
        inputs that may not stand in one feature."""
        if self.constraints is not None:
            weights = without_forbidden(weights, self.constraints, rng)
        if self.most_inputs == len(self.inputs):
            return weights
        lot = np.where(weights != 0, rng.random(weights.shape), 0.0)
        return np.where(
            lot.argsort(axis=1).argsort(axis=1) >= weights.shape[1] - self.most_inputs, weights, 0.0
        )

    def features(
        self,
        weights: np.ndarray,
        n_features: int,
        rng: np.random.Generator,
        origins: Origins | None = None,
    ) -> FeatureSet:
        """Return the features of these weights over the inputs, with random offsets, or offsets
        like those of their origins."""
        if self.constraints is None:
            return FeatureSet([self._block(weights, n_features, rng)], n_features)
        is_bound = ((weights != 0) & self.constraints.is_bound).any(axis=1)
        free, bound = np.flatnonzero(~is_bound), np.flatnonzero(is_bound)
        shape = rng.integers(0, len(SHAPES), len(bound))
        offsets = partial(self.middles, rng=rng)
        if origins is not None:
            previous = origins.take(bound)
            keeps = (rng.random(len(bound)) < INHERITED) & (previous.shape >= 0)
            shape = np.where(keeps, previous.shape, shape)
            offsets = partial(self._offsets_like, previous.middle, keeps, rng)
        shaped = shaped_neurons(
            weights[bound], shape, SHAPES, self.constraints, offsets, self.spreads
        )
        blocks = [
            self._block(weights[free], n_features, rng),
            *(self._over_all(block, n_features) for block, _ in shaped),
        ]
        return in_places(blocks, [free, *(bound[places] for _, places in shaped)], n_features)

    def _offsets_like(self, middle, keeps, rng, weights):
        """Return offsets with which w'x + b is 0 near the given points, or at random where they are
        not to be kept."""
        moved = MOVED * self.spreads(weights) * rng.standard_normal(len(weights))
        return np.where(keeps, moved - (weights * middle).sum(axis=1), self.middles(weights, rng))

    def origins(self, features: FeatureSet, weights: np.ndarray) -> Origins | None:
        """Return the `Origins` of features that `followed` finds; None where there are no
        constraints, and nothing is kept.

        weights : their weights, by `weights_of`
        """
        if self.constraints is None:
            return None
        number = {(each.activation, np.sign(each.scale)): k for k, each in enumerate(SHAPES)}
        shape, offset = [np.zeros(0, int)], [np.zeros(0)]
        for block in features.blocks:
            sign = np.sign(block.scale)
            shape.append(np.full(len(block), number.get((block.activation, sign), -1)))
            offset.append(sign * block.offset)
        offset = np.concatenate(offset)[features.places]
        size = np.maximum((weights * weights).sum(axis=1), np.finfo(np.float64).tiny)
        return Origins(np.concatenate(shape)[features.places], -(offset / size)[:, None] * weights)

    def _block(self, weights, n_features, rng):
        """Return the cosines of these weights, at random phases, as a block."""
        offsets = rng.uniform(0.0, 2 * np.pi, len(weights))
        return self._over_all(NeuronBlock("cos", SCALE, weights, offsets), n_features)

    def _over_all(self, block, n_features):
        """Return a block of features of the `inputs` as one of features of all inputs."""
        if len(self.inputs) == n_features:
            return block
        if n_features <= MOST_INPUTS:
            everywhere = np.zeros((len(block), n_features))  # 0 for the inputs that are constant
            everywhere[:, self.inputs] = block.weights
            return replace(block, weights=everywhere)
        return replace(block, inputs=np.tile(self.inputs.astype(np.int32), (len(block), 1)))

    def followed(self, features: FeatureSet) -> np.ndarray:
        """Return the positions of the features that proposals may follow: cosines and, where there
        are constraints, neurons of the SHAPES.

        A fit that starts from a model may have terms of other kinds.
        """
        shapes = () if self.constraints is None else SHAPES
        followed = {"cos", *(each.activation for each in shapes)}
        return np.flatnonzero(features.mask(lambda block: block.activation in followed))

    def weights_of(self, features: FeatureSet) -> np.ndarray:
        """Return the weights over `inputs` of features that `followed` finds, with the sign with
        which the features rise."""
        weights = [np.zeros((0, len(self.inputs)))]
        for block in features.blocks:
            if block.inputs is None:
                weights.append(np.sign(block.scale) * block.weights[:, self.inputs])
                continue
            place = np.minimum(np.searchsorted(self.inputs, block.inputs), len(self.inputs) - 1)
            there = self.inputs[place] == block.inputs
            weights.append(np.zeros((len(block), len(self.inputs))))
            own = np.where(there, np.sign(block.scale) * block.weights, 0.0)
            np.add.at(weights[-1], (np.arange(len(block))[:, None], place), own)
        return np.vstack(weights)[features.places]

    def inputs_used(
        self, n: int, orders: Callable[[int | np.ndarray], np.ndarray], rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw the inputs of n features; return (their mask (n, len(inputs)), their numbers).

        Where there are constraints, some features see at least one bound input, and the others
        none. The first are the share of the bound inputs among all, but at least BOUND.

        orders : a function that draws the number of inputs of each feature, given the most
        """
        k = len(self.inputs)
        if self.constraints is None:
            order = orders(self.most_inputs)
            return rng.random((n, k)).argsort(axis=1) < order[:, None], order
        seen = without_forbidden(np.ones((n, k)), self.constraints, rng)
        is_bound = (seen != 0) & self.constraints.is_bound
        share = max(BOUND, self.constraints.is_bound.mean())
        is_free = (rng.random(n) >= share) & (is_bound.sum(axis=1) < seen.sum(axis=1))
        seen[is_free[:, None] & is_bound] = 0.0
        order = orders(np.minimum(self.most_inputs, (seen > 0).sum(axis=1)))
        bound = np.where(is_bound & (seen != 0), rng.random((n, k)), 0.0)
        # each feature that may see bound inputs sees the one of the largest random number
        seen += (bound > 0) & (bound == bound.max(axis=1, keepdims=True))
        return (rng.random((n, k)) - seen).argsort(axis=1).argsort(axis=1) < order[:, None], order


def inputs_that_vary(rows, weight, encoder):
    """Return (at most MOST_INPUTS inputs that are not constant, their scales (2, n_inputs)).

    A feature may measure its inputs in either row of the scales: standard deviations, or half the
    ranges.
    """
    in_units = encoder is not None and not encoder.is_raw
    scale = np.stack(
        [encoder.half_range > 0, encoder.half_range] if in_units else rows.spreads(weight)
    )
    deviation = encoder.unit if in_units else scale[0]
    inputs = np.sort(np.argsort(-deviation, kind="stable")[:MOST_INPUTS])
    inputs = inputs[scale[0, inputs] > SMALLEST[rows.dtype.name]]
    if in_units:
        inputs = inputs[~encoder.is_for_intervals[inputs]]
    return inputs, scale[:, inputs]


def _sample(rows, inputs, weight, rng):
    """Return the given inputs of a sample of the rows, float64 (n, len(inputs)), and the weights of
    the sampled rows."""
    sample, weight = sample_rows(weight, SAMPLE, rng)
    X = rows.array(sample)[:, inputs]
    return (X.toarray() if is_sparse(X) else X).astype(np.float64), weight


# ---------------------------------------------------------------- moves


class Parents(NamedTuple):
    """The accepted weights from which a move makes new ones, as many.

    w : the weights to change, one a line
    draw_others : draws as many other accepted weights, with probability in proportion to
        |coefficient|
    base, rng : the base distribution, and the source of random numbers
    """

    w: np.ndarray
    draw_others: Callable[[], np.ndarray]
    base: RandomCosines
    rng: np.random.Generator


def jitter(parents: Parents) -> np.ndarray:
    """Return the weights with each entry multiplied by 1 + JITTER e, e standard normal."""
    return parents.w * (1 + JITTER * parents.rng.standard_normal(parents.w.shape))


def add(parents: Parents) -> np.ndarray:
    """Return sums or differences with other weights: the frequencies of the product of their
    cosines."""
    sign = parents.rng.choice([-1.0, 1.0], (len(parents.w), 1))
    return parents.w + sign * parents.draw_others()


def swap(parents: Parents) -> np.ndarray:
    """Return the weights with the entry of one input drawn anew, whether it was 0 or not."""
    w, _, base, rng = parents
    w, row, j = w.copy(), np.arange(len(w)), rng.integers(0, w.shape[1], len(w))
    w[row, j] = base.entries(j, np.count_nonzero(w, axis=1), rng)
    return w


def mix(parents: Parents) -> np.ndarray:
    """Return weights each of whose entries comes from one of two accepted weights, at random."""
    others = parents.draw_others()
    return np.where(parents.rng.random(parents.w.shape) < 0.5, parents.w, others)


def rescale(parents: Parents) -> np.ndarray:
    """Return the weights multiplied by a random factor each: cosines of another bandwidth."""
    return parents.w * np.exp(RESCALE * parents.rng.standard_normal((len(parents.w), 1)))


MOVES = jitter, add, swap, mix, rescale


# ---------------------------------------------------------------- batches


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningDictionary(FollowingDictionary):
    """A dictionary whose batches are drawn once it is known which features of the batches before
    were accepted.

    base : the distribution of the first batch, and of a share of the others
    """

    base: RandomCosines

    kind = "learned"

    def proposer(self, target: int) -> Proposer:
        """Return the object that draws the batches of one target of a fit."""
        return Proposer(self, target)


def make_learning_dictionary(
    base: RandomCosines,
    n_features_in: int,
    *,
    n_components: int | None,
    batch_size: int | None,
    rng: np.random.Generator,
) -> LearningDictionary:
    """Make the dictionary of features="auto", which starts from the distribution `base`."""
    n_components = check_integer("n_components", n_components, 1)
    batch_size = BATCH if batch_size is None else check_integer("batch_size", batch_size, 1)
    return LearningDictionary(
        base=base,
        n_components=n_components,
        batch_size=batch_size,
        n_features_in=n_features_in,
        seed=draw_seed(rng),
    )


class Proposer(Follower):
    """The sampler of the batches of one target of a fit, which adapts the frequencies of moves to
    the accepted features."""

    def __init__(self, dictionary: LearningDictionary, target: int):
        super().__init__(dictionary, target)
        self._base, self._d = dictionary.base, dictionary.n_features_in
        # The move of each draw of the last batch, 0 for the base distribution.
        self._last = np.zeros(0, np.intp)
        self._survivors, self._tries = np.zeros(len(MOVES) + 1), np.zeros(len(MOVES) + 1)

    def batch(
        self, n: int, features: FeatureSet, coef: np.ndarray, index: np.ndarray
    ) -> tuple[int, FeatureSet]:
        """Draw n features that follow accepted ones; return the index of the first, and the
        features.

        features, coef, index : the accepted features, their coefficients and their indices as
            draws.
        """
        self._learn(index)
        followed = self._base.followed(features)
        if len(followed) < len(features):
            features, coef = features.take(followed), coef[followed]
        W, rng = self._base.weights_of(features), self._rng
        counts, size = self._counts(n, np.any(coef)), np.abs(coef).cumsum()
        weights, followed = [self._base.weights(counts[0], rng)], [np.full(counts[0], -1)]
        for move, k in zip(MOVES, counts[1:], strict=True):
            if k:
                pick = partial(_pick, size / size[-1], k, rng)
                followed.append(pick())
                parents = Parents(W[followed[-1]], lambda pick=pick: W[pick()], self._base, rng)
                weights.append(self._base.limited(move(parents), rng))
        self._last = np.repeat(np.arange(len(counts)), counts)
        start = self._numbered(n)
        origins = self._base.origins(features, W) if len(W) else None
        origins = None if origins is None else origins.take(np.concatenate(followed))
        return start, self._base.features(np.vstack(weights), self._d, rng, origins)

    def _learn(self, index):
        """Count, for each move, its draws of the last batch and its accepted draws."""
        first, n = self._next - len(self._last), len(MOVES) + 1
        alive = index[(index >= first) & (index < self._next)] - first
        self._tries = FADE * self._tries + np.bincount(self._last, minlength=n)
        self._survivors = FADE * self._survivors + np.bincount(self._last[alive], minlength=n)

    def _counts(self, n, has_accepted):
        """Return how many of n draws come from the base distribution, and how many by each move."""
        if not has_accepted:
            return np.array([n] + [0] * len(MOVES))
        gain = (self._survivors + SURVIVORS)[1:] / (self._tries + TRIES)[1:]
        moves = ((1 - BASE) * n * gain / gain.sum()).astype(np.intp)
        return np.concatenate([[n - moves.sum()], moves])


def _pick(cumulative, n, rng):
    """Draw n places with probabilities whose cumulative sums are given: `rng.choice` would compute
    these at each call."""
    return cumulative.searchsorted(rng.random(n), side="right")
