"""Shapley values of a model, term by term: a term sees few columns, and what the others are does not matter to it.

The game of a row x: a set S of columns is worth v(S) = mean over the background rows b of f(x_S, b_rest). Values add up over
terms, and the game of a term is played by its own columns alone, a function of what it makes of x_S and of b_rest:

- a product Re(K prod_j z_j), as cosines are, with z_j = exp(i w_j u_j): Re(K prod_S z_j(x) m), m the mean of the rest's product
- activation(sum_j a_j + t): the mean over sums of the rest; of a step by counting, of "relu" by adding up, those in order
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer, check_rng
from .terms import column_of, numbers, terms_of, thinned, views

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..model import SparseModel
    from .terms import Term

# Columns of a term up to which all their sets are gone through; and numbers that are made at once.
MOST_EXACT, AT_ONCE = 10, 2**21
# Background rows, where the user leaves the choice.
BACKGROUND = 200


def shapley(model: SparseModel, X: MatrixLike, background: MatrixLike | None, n_permutations: int, rng: Seed) -> np.ndarray:
    """`SparseModel.shapley`."""
    n_permutations, rng = check_integer("n_permutations", n_permutations, 2), check_rng(rng)
    X = numbers(model, X)
    return values(model, X, views(model, background_of(model, X, background, rng)), n_permutations, rng)


def background_of(model: SparseModel, X: DenseOrCSR, background: MatrixLike | None, rng: np.random.Generator) -> DenseOrCSR:
    """Rows of numbers: of the background, or, where it is None, of some of X."""
    if background is None and X.shape[0] == 1:
        raise ValueError("background must be given for a single row: what is usual is in other rows, as those of the fit")
    B = thinned(X, BACKGROUND, rng) if background is None else numbers(model, background)
    if B.shape[0] == 0:
        raise ValueError("background must have at least one row, got none")
    return B


def values(model: SparseModel, X: DenseOrCSR, B: np.ndarray, n_permutations: int, rng: np.random.Generator) -> np.ndarray:
    """(n, n_columns), or (n, n_columns, n_outputs), of rows of numbers, against the background of views B."""
    coef, n, terms = np.atleast_2d(model.coef), X.shape[0], list(terms_of(model.features))
    groups = grouped([term for term in terms if term.activation != "identity"], n_permutations, rng)
    column, weights = column_of(model.features), _linear(terms, coef, B.shape[1])
    out = np.zeros((n, model.n_features_in, len(coef)))
    width = max(1, len(B[0]), *(_width(terms[0][0]) for terms in groups))
    step = max(1, AT_ONCE // width)
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        U = views(model, X[part])
        np.add.at(out[part].transpose(1, 2, 0), column, weights[:, :, None] * (U - B.mean(axis=0)).T[:, None])
        for terms in groups:
            columns = terms[0][0].columns
            out[part][:, columns] += _of_group(terms, coef, U, B).transpose(2, 1, 0)
    return out if model.coef.ndim > 1 else out[:, :, 0]


def _linear(terms, coef, n_views):
    """(n_views, n_outputs), what the linear terms add up to."""
    weights = np.zeros((n_views, len(coef)))
    for term in terms:
        if term.activation == "identity":
            weights[term.views] += np.multiply.outer(term.gain * term.weights, coef[:, term.position])
    return weights


def grouped(terms: Sequence[Term], n_permutations: int, rng: np.random.Generator) -> list[list[tuple[Term, np.ndarray | None]]]:
    """Lists of (term, how its columns come in): together those that see the same few columns."""
    groups = {}
    for term in terms:
        if len(term.columns):
            key = term.position if len(term.columns) > MOST_EXACT else tuple(term.columns.tolist())
            groups.setdefault(key, []).append((term, _orders(term, n_permutations, rng)))
    return list(groups.values())


def _orders(term, n_permutations, rng):
    """None where all sets are gone through; else orders of its columns, by chance, each followed by its reverse."""
    q = len(term.columns)
    if q <= MOST_EXACT:
        return None
    each = [rng.permutation(q) for _ in range(-(-n_permutations // 2))]
    return [order for one in each for order in (one, one[::-1])]


def _width(term):
    return 2 ** len(term.columns) if len(term.columns) <= MOST_EXACT else 4 * len(term.columns)


def _of_group(terms, coef, U, B):
    """(n_outputs, n_columns, n_rows) of the terms of a group together."""
    (first, orders), c = terms[0], coef[:, [term.position for term, _ in terms]]
    if orders is None:
        worth = sum(np.multiply.outer(c[:, k], exactly(term, U, B)) for k, (term, _) in enumerate(terms))
        return shares(len(first.columns)) @ worth
    return np.tensordot(c, np.stack([sampled(term, orders, U, B) for term, orders in terms]), 1)


@cache
def shares(q: int) -> np.ndarray:
    """(q, 2^q), how much each set is worth to each of its members, and, less than 0, to those outside: |S|! (q - 1 - |S|)! / q!
    for the set S of the others."""
    sets = np.arange(2**q)[:, None] >> np.arange(q) & 1
    size, others = sets.sum(axis=1), np.arange(q)
    ratio = (others[:-1] + 1) / (q - 1 - others[:-1])
    factor = np.concatenate([[1.0], np.cumprod(ratio)]) / q  # of s others, 1 / (q C(q - 1, s))
    joined, left = np.append(0.0, factor), np.append(factor, 0.0)
    return np.where(sets.T == 1, joined[size], -left[size])


def exactly(term: Term, U: np.ndarray, B: np.ndarray) -> np.ndarray:
    """v of all sets of the term's columns, (2^q, n_rows): of that whose members are the bits of its number."""
    return played(term, _of_sets(term, term.parts(U)), _of_sets(term, term.parts(B))[::-1])


def _of_sets(term, parts):
    combine = np.multiply if term.is_product else np.add
    made = np.full((1, parts.shape[1]), combine.identity, parts.dtype)
    for part in parts:
        made = np.concatenate([made, combine(made, part)])
    return made


def played(term: Term, of_x: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
    """v of some sets: of what their columns make of the rows, (n_sets, n_rows), and the others of the background's."""
    if term.is_product:
        return (term.constant * of_rest.mean(axis=1)[:, None] * of_x).real
    mean = MEANS[term.activation]
    return term.gain * np.stack([mean(s, t + term.offset) for s, t in zip(of_x, of_rest, strict=True)])


def _mean_sign(s, t):
    """Of sign(s + t) over t, for each s."""
    return 1 - 2 * np.searchsorted(np.sort(t), -s) / len(t)


def _mean_relu(s, t):
    t = np.sort(t)
    first, above = np.searchsorted(t, -s), np.append(np.cumsum(t[::-1])[::-1], 0.0)
    return (above[first] + (len(t) - first) * s) / len(t)


def _mean_tanh(s, t):
    total = np.zeros(len(s))
    for some in np.array_split(t, -(-len(t) * len(s) // AT_ONCE)):
        total += np.tanh(s + some[:, None]).sum(axis=0)
    return total / len(t)


MEANS: dict[str, Callable[..., np.ndarray]] = {"sign": _mean_sign, "relu": _mean_relu, "tanh": _mean_tanh}


def sampled(term: Term, orders: np.ndarray, U: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(q, n_rows) of a term of many columns: what each adds to those before it, in the mean over the orders.

    Of a product only what its inputs' dependence makes is sampled: were they independent, its values would be known.
    """
    of_x, of_b = term.parts(U), term.parts(B)
    total, mean = np.zeros(of_x.shape), of_b.mean(axis=1, keepdims=True)
    for order in orders:
        along, rest = _along(term, of_x[order]), _along(term, of_b[order[::-1]])[::-1]
        if term.is_product:
            rest = rest.mean(axis=1, keepdims=True) - _along(term, mean[order[::-1]])[::-1]
        worth = played(term, along, rest)
        total[order] += np.diff(worth, axis=0) / len(orders)
    return total + independent(term, of_x, mean[:, 0]) if term.is_product else total


def _along(term, parts):
    """Of none of them, of the first, of the first two, and so on."""
    combine = np.multiply if term.is_product else np.add
    none = np.full((1, parts.shape[1]), combine.identity, parts.dtype)
    return np.concatenate([none, combine.accumulate(parts, axis=0)])


def independent(term: Term, z: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The values of a product of independent inputs, (q, n_rows), of its factors z and their means.

    The integral over t in [0, 1] of Re(K (z_j - mean_j) prod_{k != j} (t z_k + (1 - t) mean_k)): a polynomial, exact by Gauss.
    """
    node, weight = np.polynomial.legendre.leggauss(-(-len(z) // 2))
    total, mean = np.zeros(z.shape, z.dtype), mean[:, None]
    for t, w in zip((node + 1) / 2, weight / 2, strict=True):
        along = _along(term, t * z + (1 - t) * mean)
        back = _along(term, (t * z + (1 - t) * mean)[::-1])[::-1]
        total += w * along[:-1] * back[1:]
    return (term.constant * (z - mean) * total).real
