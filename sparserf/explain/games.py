"""The game of one term: what sets of its columns are worth, and the Shapley values of its columns.

A set S of columns is worth v(S) = mean over the background rows b of phi(x_S, b_rest). That is a
function of the parts of the columns in S, taken from x, and of the parts of all others, taken from
b (`Term.parts`):

- a product Re(K prod_j z_j), as cosines are with z_j = exp(i w_j u_j): v(S) = Re(K prod_{j in S}
  z_j(x) m), m the mean over b of the product of the other factors
- a sum sigma(sum_j a_j + offset): v(S) is a mean over the sums of the other summands

A game is played in the cheapest of three ways, of which the first two are exact. Each has a method
`values`, which returns the Shapley values of the columns, (n_columns, n_rows), from their parts in
the rows, of the same shape:

- `AllSets` asks for the worth of every set, where the columns are few.
- `Diagonal` integrates over t the product of the factors t z_j(x) + (1 - t) z_j(b), where the pairs
  of a row x and a background row b are few.
- `Orders` adds columns in random orders (Strumbelj and Kononenko, 2014).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..features import Term

# The most columns of a product, and of a sum, for which all sets of columns are asked.
MOST_OF_PRODUCT, MOST_OF_SUM = 8, 5
# The most pairs of a row and a background row for which products are integrated, and for which all
# orders of a sum see all of the background.
MOST_PAIRS = 1_000
# The most numbers that are computed at once along orders, few enough for the cache.
AT_ONCE = 2**15
# The most products at nodes that are kept at once; and the fewest rows or pairs at once, for which
# a step to the next column takes longer than what it computes.
MOST_AT_NODES, FEWEST = 2**19, 32
# By how much quadrature may miss an integral, relative to the size of the product.
TOLERANCE = 1e-14
# The parameters rho of the Bernstein ellipses by which the error of quadrature is bounded.
ELLIPSES = np.array([1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])


def game_of(
    term: Term, of_b: np.ndarray, n_rows: int, n_permutations: int, rng: np.random.Generator
) -> AllSets | Diagonal | Orders:
    """Return the game of a term for n_rows rows in all, in the cheapest way.

    of_b : the parts of its columns in the background rows, (n_columns, n_background)
    """
    q, n_background = of_b.shape
    if q <= (MOST_OF_PRODUCT if term.is_product else MOST_OF_SUM):
        return AllSets(term, of_b)
    has_few = n_rows * n_background <= MOST_PAIRS
    if term.is_product and has_few:
        return Diagonal(term, of_b)
    return Orders(term, of_b, n_permutations, rng, deal=not has_few)


def worth_alone(term: Term, of_x: np.ndarray, of_b: np.ndarray) -> np.ndarray:
    """Return the worth of each column alone, (n_columns, n_rows): the mean of the term over the
    background with that column known."""
    before, after = _along(term, of_b)[:-1], _along(term, of_b[::-1])[::-1][1:]
    return term.worth(of_x, term.combine(before, after))


class AllSets:
    """The game in which the worth of every set of columns is computed."""

    def __init__(self, term: Term, of_b: np.ndarray):
        self._term, self._rest = term, _kept(term, _of_sets(term, of_b)[::-1])

    def values(self, of_x: np.ndarray) -> np.ndarray:
        return shapley_matrix(len(of_x)) @ self._term.worth(_of_sets(self._term, of_x), self._rest)


class Diagonal:
    """The game of a product in which all pairs of a row and a background row are played by
    themselves."""

    def __init__(self, term: Term, of_b: np.ndarray):
        self._term, self._of_b = term, of_b

    def values(self, of_x: np.ndarray) -> np.ndarray:
        rows = [integrated(z[:, None], self._of_b).mean(axis=1) for z in of_x.T]
        return (self._term.constant * np.stack(rows, axis=1)).real


class Orders:
    """The game in which columns become known one by one, in random orders, each followed by its
    reverse.

    Of a product only what comes from dependence among its factors is sampled: the values of
    independent factors are integrated. Of a sum, whose worth takes all pairs of a row and a
    background row, each order and its reverse have their own part of the background where the rows
    are many.
    """

    def __init__(
        self,
        term: Term,
        of_b: np.ndarray,
        n_permutations: int,
        rng: np.random.Generator,
        deal: bool,
    ):
        """Draw the orders; deal : whether they have parts of the background."""
        n_drawn, q = -(-n_permutations // 2), len(of_b)
        drawn = np.stack([rng.permutation(q) for _ in range(n_drawn)])
        orders = np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(-1, q)
        self._term, self._mean = term, of_b.mean(axis=1, keepdims=True)
        parts = [of_b]
        if deal and not term.is_product:
            parts = np.array_split(of_b, min(n_drawn, of_b.shape[1]), axis=1)
        self._plays = []
        for part, own in zip(parts, np.array_split(orders, len(parts)), strict=True):
            share = part.shape[1] / of_b.shape[1] / len(own)
            rest = np.stack([self._rest(part[order]) for order in own], axis=1)
            self._plays.append((own, rest, share))

    def _rest(self, of_b):
        """Return what worth needs of the columns that are not known yet, (q + 1, ...), from their
        parts in an order."""
        rest = _kept(self._term, _along(self._term, of_b[::-1])[::-1])
        if self._term.is_product:
            mean = of_b.mean(axis=1, keepdims=True)
            rest = rest - _along(self._term, mean[::-1])[::-1]
        return rest

    def values(self, of_x: np.ndarray) -> np.ndarray:
        total = np.zeros(of_x.shape)
        for orders, rest, share in self._plays:
            step = max(FEWEST, AT_ONCE // orders.size)
            for start in range(0, of_x.shape[1], step):
                part = slice(start, start + step)
                worth = self._term.worth(_along(self._term, of_x[:, part][orders.T]), rest)
                for order, added in zip(orders, np.diff(worth, axis=0).swapaxes(0, 1), strict=True):
                    total[order, part] += share * added
        if self._term.is_product:
            total += (self._term.constant * integrated(of_x, self._mean)).real
        return total


def integrated(z: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return the Shapley values of the product of factors z against the factors `base`, of shape
    (n_factors, n_pairs).

    The value of factor j is the integral over t in [0, 1] of (z_j - base_j) prod_{k != j} (t z_k +
    (1 - t) base_k), a polynomial (Owen, 1972), by Gauss-Legendre quadrature.

    z, base : of shape (n_factors, n_pairs), or (n_factors, 1) for the same in all pairs
    """
    moved = z - base
    node, weight = _rule(z, base, moved)
    node, weight, values = node[:, None], weight.astype(moved.dtype), np.empty_like(moved)
    step = max(FEWEST, MOST_AT_NODES // (len(z) * len(node)))
    for start in range(0, moved.shape[1], step):
        part = slice(start, start + step)
        first, away = base[:, part] if base.shape[1] > 1 else base, moved[:, part]
        before = np.empty((len(z), len(node), away.shape[1]), moved.dtype)
        product = np.ones_like(before[0])
        for k in range(len(z)):
            before[k] = product
            product *= first[k] + node * away[k]
        product = np.ones_like(product)
        for k in reversed(range(len(z))):
            values[k, part] = weight @ (before[k] * product)
            product *= first[k] + node * away[k]
    return moved * values


def _rule(z, base, moved):
    """Return the nodes in [0, 1] and the weights of a rule whose error is below the tolerance.

    On a Bernstein ellipse around [0, 1], of half axes that sum to rho / 2, no factor of size 1
    exceeds 1 + (rho - 1 / rho) / 4 |moved|; a rule of g nodes errs by rho^(-2 g) times the product
    of these. For q factors ceil(q / 2) nodes are exact.
    """
    size = np.maximum(np.abs(z).max(axis=1), np.abs(base).max(axis=1))
    far = (np.abs(moved) / np.where(size > 0, size, 1.0)[:, None]).sum(axis=0).max()
    far = np.nan_to_num(far, nan=np.inf)  # of factors that are not finite
    growth = (ELLIPSES - 1 / ELLIPSES) / 4 * far - np.log(TOLERANCE)
    least = np.ceil((growth / (2 * np.log(ELLIPSES))).min())
    node, weight = _gauss_legendre(int(min(least, -(-len(z) // 2))))
    return (node + 1) / 2, weight / 2


_gauss_legendre = cache(np.polynomial.legendre.leggauss)


@cache
def shapley_matrix(q: int) -> np.ndarray:
    """Return the matrix (q, 2^q) that maps the worth of all sets of q columns to their Shapley
    values.

    The worth of a set counts for each of its members with s! (q - 1 - s)! / q!, where s is the
    number of other members; and for each column outside with minus that, where s is the size of the
    set.
    """
    sets = np.arange(2**q)[:, None] >> np.arange(q) & 1
    size, others = sets.sum(axis=1), np.arange(q)
    ratio = (others[:-1] + 1) / (q - 1 - others[:-1])
    factor = np.concatenate([[1.0], np.cumprod(ratio)]) / q  # for s others: 1 / (q C(q - 1, s))
    joined, left = np.append(0.0, factor), np.append(factor, 0.0)
    return np.where(sets.T == 1, joined[size], -left[size])


def _kept(term, rest):
    """Return what the worth of sets needs of the background: of a product, the mean over it."""
    return rest.mean(axis=-1, keepdims=True) if term.is_product else rest


def _of_sets(term, parts):
    """Return the parts of the columns in each set, combined, (2^q, n_rows); the bits of the index
    of a set say which columns it has."""
    made = np.full((2 ** len(parts), *parts.shape[1:]), term.combine.identity, parts.dtype)
    for k, part in enumerate(parts):
        term.combine(made[: 2**k], part, out=made[2**k : 2 ** (k + 1)])
    return made


def _along(term, parts):
    """Return the parts of no column, of the first, of the first two, and so on, combined: what
    `ufunc.accumulate` returns, in a fifth of its time."""
    made = np.empty((len(parts) + 1, *parts.shape[1:]), parts.dtype)
    made[0] = term.combine.identity
    for k, part in enumerate(parts):
        term.combine(made[k], part, out=made[k + 1])
    return made
