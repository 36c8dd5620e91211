"""Monomials under a Gaussian envelope: products of entries of u = exp(-gamma |x|^2 / degree)
(1, sqrt(2 gamma) x)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._base.arrays import namespace
from ..._base.checks import is_sparse
from ..._base.expressions import encoding, envelope, made, parameter, raised, reduce_inputs, seen
from ..._base.npz import require
from ..._core.moments import enveloped
from ..activations import NEAR
from .base import count_entries
from .bounds import Group, Relaxation
from .derivatives import Derivatives, pair_finder, places_in
from .pieces import nodes
from .terms import Term
from .weighted import WeightedBlock, zero_offset

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..._base.expressions import Expression
    from ..._base.types import Array, DenseOrCSR
    from ...columns.constraints import InputConstraints
    from ...columns.encoder import ColumnEncoder
    from .base import Evaluator, FeatureBlock, Put
    from .derivatives import RowEncodings
    from .pieces import Pieces
    from .stored import StoredBlock
    from .terms import GroupEntry

# The number of numbers of X that are copied at a time, where X is not contiguous, to make the
# inputs.
COPIED_NUMBERS = 2**19


@dataclass(frozen=True, eq=False)
class MonomialBlock(WeightedBlock):
    """phi_j(x) = scale * product over l of w_j u[inputs_jl], where the degree, the number of
    factors, is the attribute `order`.

    Each factor has its share of the envelope and of the coefficient, so that none overflows; the 1
    in u makes monomials of any lower degree.

    gamma : the inverse width of the envelope
    """

    scale: float
    weights: np.ndarray
    inputs: np.ndarray
    gamma: float

    activation = "product"
    names: ClassVar[tuple[str, ...]] = (activation,)
    is_bounded = True
    has_parts = False
    dense_below = 0

    @cached_property
    def offset(self) -> np.ndarray:
        return zero_offset(self)

    # ---------------------------------------------------------------- what they see

    def count_inputs(self, n_columns: int, column: np.ndarray | None = None) -> np.ndarray:
        """Return how many features have each column as a factor; that the envelope falls with every
        input does not count."""
        factors = self.inputs - 1 if column is None else np.append(column, -1)[self.inputs - 1]
        return count_entries(np.where(self.is_used, factors, -1), n_columns)

    def sees_input(self, n_inputs: int) -> np.ndarray:
        """Return all inputs, on which the envelope depends."""
        return np.full(n_inputs, bool(self.weights.any()))

    def inputs_seen(self, k: int, n_inputs: int) -> np.ndarray:
        """Return all inputs, on which the envelope depends."""
        return np.arange(n_inputs if self.weights[k, 0] != 0 else 0)

    def name(self, k: int, inputs: Sequence[str]) -> str:
        powers = np.bincount(self.inputs[k], minlength=1)
        return _name(powers[1:], inputs)

    # ---------------------------------------------------------------- values

    # prod_i |t_i|^v_i exp(-t_i^2 / 2) is at most prod_i (v_i / e)^(v_i / 2)
    def largest_value(self) -> np.ndarray:
        inputs = np.sort(self.inputs, axis=1)
        peak = sum(
            (entry > 0) * _rise(run) for entry, run in zip(inputs.T, runs(inputs), strict=True)
        )
        factor = np.abs(self.weights[:, 0]) * np.exp(peak / self.order)
        return abs(self.scale) * factor**self.order

    @property
    def inputs_key(self) -> tuple[Any, ...]:
        return self.gamma, self.order

    def made_inputs(self, X: DenseOrCSR) -> DenseOrCSR:
        """Return u of each row, (n_rows, 1 + n_inputs)."""
        if not is_sparse(X):
            U = np.empty((X.shape[0], X.shape[1] + 1), X.dtype)
            whole = isinstance(X, np.ndarray) and X.flags.c_contiguous
            size = max(1, X.shape[0] if whole else COPIED_NUMBERS // X.shape[1])
            for start in range(0, X.shape[0], size):
                rows = slice(start, start + size)
                enveloped(np.ascontiguousarray(X[rows]), self.gamma, self.order, U[rows])
            return U
        # where each row begins
        row, first = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indptr[:-1]
        data = X.data.astype(np.float64)
        share = np.exp(np.bincount(row, data * self.gamma * data, X.shape[0]) / -self.order)
        data = (data * (np.sqrt(2 * self.gamma) * share)[row]).astype(X.dtype)
        data = np.insert(data, first, share)
        indices = np.insert(X.indices + 1, first, 0)
        return type(X)(
            (data, indices, X.indptr + np.arange(X.shape[0] + 1)),
            shape=(X.shape[0], X.shape[1] + 1),
        )

    def evaluator(self, xp: Any, put: Put, dtype: np.dtype, widen: Evaluator) -> Evaluator:
        weights = put(self.weights[:, 0])
        factors = [put(column.astype(np.int64)) for column in self.inputs.T]

        def values(X):
            wide = widen(X)
            share = xp.exp(xp.sum(wide**2, axis=1) * (-self.gamma / self.order))[:, None]
            u = xp.concat([xp.ones_like(share), wide * float(np.sqrt(2 * self.gamma))], axis=1)
            u, phi = xp.astype(u * share, X.dtype), 1.0
            for factor in factors:
                phi = phi * (xp.take(u, factor, axis=1) * weights[None, :])
            return phi * float(self.scale)

        return values

    @property
    def moment_degree(self) -> int:
        return self.order if self.order <= 2 else 0

    @cached_property
    def _coefficients(self):
        """The factor of the product of inputs of u, of each feature."""
        return self.scale * self.weights[:, 0] ** self.order

    def correlations_from_moments(self, total: np.ndarray, squared: bool) -> np.ndarray:
        c, place = self._coefficients, self.inputs[:, 0].astype(np.intp)
        if self.order == 2:
            place = place * round(total.shape[1] ** 0.5) + self.inputs[:, 1]
        return (c * c if squared else c) * total[:, place]

    def coef_on_inputs(self, coef: np.ndarray, n_inputs: int) -> np.ndarray:
        return self.sum_at_inputs(coef * self._coefficients, n_inputs)

    # ---------------------------------------------------------------- in models

    def term(self, k: int, position: int, column: np.ndarray) -> Monomial:
        n = len(column)
        powers = np.bincount(self.inputs[k], minlength=n + 1)[1:].astype(np.float64)
        gain = self.scale * (
            float(self.weights[k, 0]) ** self.order * (2 * self.gamma) ** (powers.sum() / 2)
        )
        return Monomial.of_columns(column, position, gain, np.arange(n), powers, self.gamma)

    def derivatives(self, *about: Any) -> MonomialDerivatives:
        return MonomialDerivatives(self, *about)

    @property
    def expression(self) -> Expression:
        factors = seen(self.inputs, enveloped=(self.gamma, self.order))
        return reduce_inputs("multiply", parameter("weights", self.weights) * factors)

    def written(self, inputs: np.ndarray, n_inputs: int) -> MonomialBlock:
        """Return the features as they are: they are functions of all inputs."""
        return self

    # ---------------------------------------------------------------- constraints and files

    def keeps(self, constraints: InputConstraints) -> np.ndarray:
        """Return whether no input is bound: the envelope sees all."""
        is_bound = (constraints.is_bound | constraints.is_barred).any()
        return np.full(len(self), not is_bound and constraints.groups is None)

    def constrained(
        self, constraints: InputConstraints, through: np.ndarray, rng: np.random.Generator
    ) -> list[tuple[FeatureBlock, np.ndarray]]:
        if not self.keeps(constraints).all():
            raise ValueError(
                "features must not be Taylor with monotone, convex or interactions: its "
                "envelope sees all columns"
            )
        return [(self, np.arange(len(self)))]

    @property
    def meta(self) -> dict[str, Any]:
        return super().meta | {"gamma": self.gamma}

    @classmethod
    def from_stored(cls, stored: StoredBlock) -> MonomialBlock:
        n, gamma = len(stored.offset(is_zero=True)), stored.meta["gamma"]
        require(type(gamma) is float and 0 < gamma <= 1e300, "gamma")
        # index 0 is the constant 1 in u
        inputs, weights = stored.inputs(n, stored.n_inputs + 1), stored.floats("weights")
        require(inputs is not None, "inputs")
        require(weights.shape == (n, 1), "weights")
        return cls(stored.meta["scale"], weights, inputs, gamma)


def runs(inputs: np.ndarray) -> Iterator[np.ndarray]:
    """Yield, for each column of ascending tuples, how often the entry of each tuple has occurred in
    the tuple so far; 1 where the entry is 0."""
    run = np.ones(len(inputs))
    yield run
    for previous, entry in zip(inputs.T[:-1], inputs.T[1:], strict=True):
        run = np.where((entry == previous) & (entry > 0), run + 1, 1.0)
        yield run


def _rise(v):
    """Return the logarithm of (v / e)^(v / 2), minus the same logarithm at v - 1."""
    less = v - 1
    return (v * np.log(v) - less * np.log(np.maximum(less, 1)) - 1) / 2


def _name(powers, names):
    """Return a monomial in words, with the power of each name."""
    factors = [
        names[i] + (f"^{powers[i]:g}" if powers[i] > 1 else "") for i in np.flatnonzero(powers)
    ]
    return "*".join(["gaussian", *factors])


# ---------------------------------------------------------------- one by one


@dataclass(frozen=True, eq=False)
class Monomial(Term):
    """gain exp(-gamma sum_v u_v^2) prod_v u_v^p_v, whose `weights` are the powers p of all
    encodings."""

    gamma: float

    activation = "product"

    @cached_property
    def expression(self) -> Expression:
        powers = zip(self.encodings.tolist(), self.weights.tolist(), strict=True)
        factors = (raised(encoding(v), int(p)) for v, p in powers if p)
        return made("multiply", envelope(self.gamma, self.encodings), *factors)

    def title(self, names: Sequence[str], most: int, encoder: ColumnEncoder | None = None) -> str:
        powers = np.zeros(len(self.columns))
        np.add.at(powers, self.place, self.weights)
        return _name(powers, [names[j] for j in self.columns.tolist()])

    @np.errstate(over="ignore", under="ignore")
    def parts(self, U: np.ndarray) -> np.ndarray:
        u, p, gamma = U.T[self.encodings], self.weights[:, None], self.gamma
        # (u exp(-gamma u^2 / p))^p does not overflow
        factors = np.where(p > 0, u * np.exp(-gamma * u / np.maximum(p, 1) * u), 1.0) ** p
        return self.by_column(np.multiply, np.where(p > 0, factors, np.exp(-gamma * u * u)))

    @property
    def speeds(self) -> np.ndarray:
        return np.full(len(self.encodings), self.gamma**0.5)

    def mean_factor(self, pieces: Pieces, finer: int) -> tuple[complex, float]:
        """Return (the mean of exp(-gamma sum_v u_v^2) prod_v u_v^p_v over pieces, by nodes on each
        line, 0)."""
        pieces, is_here = pieces.seen_by(self.encodings)
        total, gamma, powers = 0.0, self.gamma, self.weights[is_here]
        for weight, middle, half in zip(pieces.weight, pieces.middle, pieces.half, strict=True):
            place, share = (
                nodes(-1.0, 1.0, 2 * np.abs(half).sum() * gamma**0.5, finer)
                if half.any()
                else (np.zeros(1), np.ones(1))
            )
            u = middle + place[:, None] * half
            values = np.exp(-gamma * (u * u).sum(axis=1)) * np.prod(u**powers, axis=1)
            total += weight * (share @ values)
        return total, 0.0

    def group_entry(self, c: float, w: np.ndarray, inputs: np.ndarray) -> GroupEntry:
        return MonomialGroup, (), (c, w, self.gamma)


# ---------------------------------------------------------------- derivatives


class MonomialDerivatives(Derivatives):
    """The derivatives of c exp(-gamma |u|^2) prod_l w (2 gamma)^1/2 u_l, one factor, or pair of
    factors, left out at a time."""

    @cached_property
    def _places(self):
        """The place in `seen` of each factor of each feature, -1 for the factor 1: (order,
        n_features)."""
        place = np.append(-1, places_in(self._seen, self._n_inputs))
        return place[self._block.inputs].T

    @cached_property
    def _factor(self):
        return self._block.weights[:, 0] ** self._block.order

    def _products(self, U, left_out, rows, xp):
        """Return the products of the factors that are not left out, each with its share of the
        envelope."""
        gamma, order = self._block.gamma, self._block.order
        share = xp.exp(-gamma / order * xp.sum(U * U, axis=1))[:, None]
        factors = xp.concat([xp.ones_like(share), float(np.sqrt(2 * gamma)) * U], axis=1) * share
        values = rows.put(np.ones((1, len(self._block)))) * share ** len(left_out)
        for position, inputs in enumerate(self._block.inputs.T):
            if position not in left_out:
                values = values * xp.take(factors, rows.put(inputs.astype(np.int64)), axis=1)
        return values

    @cached_property
    def _whole(self):
        """The step, as in `_first_steps`, that is the sum of the features themselves."""
        everything = np.arange(len(self._block))
        return [((), self._select(everything, np.zeros_like(everything), self._factor, 1))]

    @cached_property
    def _first_steps(self):
        """The (factor that is left out, matrix) of which the first derivatives of the products are
        the sum."""
        steps, root = [], np.sqrt(2 * self._block.gamma)
        for i, place in enumerate(self._places):
            has = np.flatnonzero(place >= 0)
            if len(has):
                values = root * self._factor[has]
                steps.append(((i,), self._select(has, place[has], values, len(self._seen))))
        return steps

    @cached_property
    def _second_steps(self):
        """The (pair of factors that are left out, matrix) of which the second derivatives of the
        products are the sum."""
        steps, find = [], pair_finder(self._pairs)
        for i, j in permutations(range(self._block.order), 2):
            pair = find(self._places[i], self._places[j])
            has = np.flatnonzero(pair >= 0)
            if len(has):
                values = 2 * self._block.gamma * self._factor[has]
                steps.append(((i, j), self._select(has, pair[has], values, len(self._pairs[0]))))
        return steps

    def _sum(self, steps, width, U, rows, xp):
        """Return the sum of products without some factors, times a matrix."""
        total = rows.put(np.zeros((U.shape[0], len(self._coef), width)))
        for left_out, matrix in steps:
            total = total + self._sums(self._products(U, left_out, rows, xp), matrix, rows)
        return total

    def first(self, rows: RowEncodings) -> Array:
        U, u, xp = self._at(rows)
        alone = self._sum(self._first_steps, len(self._seen), U, rows, xp)
        return alone - 2 * self._block.gamma * u * self._sum(self._whole, 1, U, rows, xp)

    def second(self, rows: RowEncodings) -> Array:
        U, u, xp = self._at(rows)
        gamma, (one, other), put = self._block.gamma, self._pairs, rows.put
        alone = self._sum(self._first_steps, len(self._seen), U, rows, xp)
        left, right = (xp.take(u, put(place), axis=2) for place in self._pairs)
        mixed = left * xp.take(alone, put(other), axis=2) + right * xp.take(alone, put(one), axis=2)
        curve = 4 * gamma**2 * left * right - put(np.where(one == other, 2 * gamma, 0.0))
        answer = self._sum(self._second_steps, len(one), U, rows, xp) - 2 * gamma * mixed
        return answer + curve * self._sum(self._whole, 1, U, rows, xp)

    def _at(self, rows):
        """Return (the encodings, those of them that are `seen`, (n_rows, 1, n_seen), the
        namespace), in float64."""
        U = rows.put(rows.dense())
        xp = namespace(U)
        U = xp.astype(U, rows.put(np.zeros(1)).dtype, copy=False)
        return U, xp.take(U, rows.put(self._seen), axis=1)[:, None, :], xp


# ---------------------------------------------------------------- bounds


class MonomialGroup(Group):
    """Terms sum_k c_k prod_v u_v^p_kv exp(-gamma_k u_v^2): products of factors, bounded by the
    products of their intervals."""

    def __init__(
        self, coef: np.ndarray, powers: np.ndarray, gamma: np.ndarray, largest: np.ndarray
    ):
        self._coef, self._powers, self._gamma = coef, powers, gamma
        self.work = 2 * powers.size

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
            low = np.where(is_inside, np.minimum(low, at), low)
            high = np.where(is_inside, np.maximum(high, at), high)
        return low, high

    def _factor(self, v, u):
        """Return u^p exp(-gamma u^2) of each term, without overflow."""
        p = self._powers[:, v]
        share = np.maximum(p, 1)
        return (np.where(p > 0, u, 1.0) * np.exp(-self._gamma * u / share * u)) ** share

    def values(self, U: np.ndarray) -> np.ndarray:
        factors = [self._factor(v, U[:, v, None]) for v in range(U.shape[1])]
        return np.prod(factors, axis=0) @ self._coef

    def gradients(self, U: np.ndarray) -> np.ndarray:
        factors = [self._factor(v, U[:, v, None]) for v in range(U.shape[1])]
        out = np.zeros_like(U)
        for v in range(U.shape[1]):
            u, p = U[:, v, None], self._powers[:, v]
            power = np.where(p > 0, p * u ** np.maximum(p - 1, 0), 0.0)
            power = power * np.exp(-self._gamma * u * u)
            others = np.prod([*factors[:v], *factors[v + 1 :], np.ones_like(factors[v])], axis=0)
            out[:, v] = (others * (power - 2 * self._gamma * u * factors[v])) @ self._coef
        return out

    def size(self, largest: np.ndarray) -> float:
        half = self._powers / 2
        peaks = (np.maximum(self._powers, 1) / (2 * np.e * self._gamma[:, None])) ** half
        # gamma u^2 times a factor is at most some (p + 2) times its peak.
        factor = peaks.prod(axis=1) * (1 + 2 * (self._powers + 2).sum(axis=1))
        return float(np.abs(self._coef) @ factor)

    def steepness(self) -> np.ndarray:  # derivatives are not bounded
        return np.zeros(self._powers.shape[1])

    def rises(self, inputs: np.ndarray) -> bool:  # the envelope falls with every input
        return False

    def coupling(self, inputs: np.ndarray) -> np.ndarray:
        return np.full(self._powers.shape[1], np.abs(self._coef).sum())
