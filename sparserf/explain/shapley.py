"""Shapley values of a model, term by term: a term depends on few columns, and its values for the
others are 0.

The game of a row x: a set S of columns is worth v(S) = mean over the background rows b of f(x_S,
b_rest) (Lundberg and Lee, 2017). Shapley values are additive, so each term has its own game, played
by its own columns alone. Its v is a function of the contributions of the columns in S, taken from
x, and of the other columns, taken from b (`Term.parts`):

- a product Re(K prod_j z_j), as cosines are with z_j = exp(i w_j u_j): v(S) = Re(K prod_{j in S}
  z_j(x) m), m the mean over b of the product of the other factors
- activation(sum_j a_j + offset): v(S) is a mean over the sums of the other summands, for "sign" by
  counting, for "relu" by adding up, sums in order

All sets are enumerated where a term has at most MOST_EXACT columns; otherwise random permutations
of its columns are sampled, each with its reverse (Strumbelj and Kononenko, 2014).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .._base.checks import check_integer, check_rng
from ..expansion.terms import columns_of_encodings, terms_of
from ..features.activations import AT_ONCE
from .evaluate import encode, read_numbers, subsample

if TYPE_CHECKING:
    from .._base.types import DenseOrCSR, MatrixLike, Seed
    from ..expansion import Expansion
    from ..features import Term

# The most columns of a term for which all sets of columns are enumerated.
MOST_EXACT = 10
# The number of background rows that are drawn if the user gives none.
BACKGROUND = 200


def shapley(
    model: Expansion, X: MatrixLike, background: MatrixLike | None, n_permutations: int, rng: Seed
) -> np.ndarray:
    """Compute Shapley values: see `SparseModel.shapley`."""
    n_permutations, rng = check_integer("n_permutations", n_permutations, 2), check_rng(rng)
    X = read_numbers(model, X)
    B = encode(model, background_of(model, X, background, rng))
    return shapley_values(model, X, B, n_permutations, rng)


def background_of(
    model: Expansion, X: DenseOrCSR, background: MatrixLike | None, rng: np.random.Generator
) -> DenseOrCSR:
    """Return the background as rows of numbers; if it is None, some rows of X."""
    if background is None and X.shape[0] == 1:
        raise ValueError(
            "background must be given for a single row: what is usual is in other rows, as those "
            "of the fit"
        )
    B = subsample(X, BACKGROUND, rng) if background is None else read_numbers(model, background)
    if B.shape[0] == 0:
        raise ValueError("background must have at least one row, got none")
    return B


def shapley_values(
    model: Expansion, X: DenseOrCSR, B: np.ndarray, n_permutations: int, rng: np.random.Generator
) -> np.ndarray:
    """Compute the Shapley values of rows of numbers X against a background B, the encodings of its
    rows.

    Returns an array of shape (n_rows, n_columns), or (n_rows, n_columns, n_outputs) for several
    outputs.
    """
    coef, n, terms = np.atleast_2d(model.coef), X.shape[0], list(terms_of(model.features))
    groups = _grouped([term for term in terms if not term.is_linear], n_permutations, rng)
    # (n_encodings, n_outputs), the sum of all linear terms
    linear = np.zeros((B.shape[1], len(coef)))
    for term in terms:
        if term.is_linear:
            linear[term.encodings] += np.multiply.outer(
                term.gain * term.weights, coef[:, term.position]
            )
    column, out = (
        columns_of_encodings(model.features),
        np.zeros((n, model.n_features_in, len(coef))),
    )
    step = max(1, AT_ONCE // max(1, len(B[0]), *(_numbers_a_row(group[0][0]) for group in groups)))
    for start in range(0, n, step):
        part = slice(start, min(start + step, n))
        U = encode(model, X[part])
        np.add.at(
            out[part].transpose(1, 2, 0),
            column,
            linear[:, :, None] * (U - B.mean(axis=0)).T[:, None],
        )
        for group in groups:
            columns = group[0][0].columns
            out[part][:, columns] += _of_group(group, coef, U, B).transpose(2, 1, 0)
    return out if model.coef.ndim > 1 else out[:, :, 0]


def _grouped(terms, n_permutations, rng):
    """Group the terms that depend on the same few columns: return lists of pairs of a term and
    `_orders` of its columns."""
    groups = {}
    for term in terms:
        if len(term.columns):
            key = term.position if len(term.columns) > MOST_EXACT else tuple(term.columns.tolist())
            groups.setdefault(key, []).append((term, _orders(term, n_permutations, rng)))
    return list(groups.values())


def _orders(term, n_permutations, rng):
    """Draw permutations of the columns of a term, each followed by its reverse; return None if all
    sets are enumerated."""
    q = len(term.columns)
    if q <= MOST_EXACT:
        return None
    drawn = [rng.permutation(q) for _ in range(-(-n_permutations // 2))]
    return [order for one in drawn for order in (one, one[::-1])]


def _numbers_a_row(term):
    """Return how many numbers the Shapley values of a term take for each row."""
    return 2 ** len(term.columns) if len(term.columns) <= MOST_EXACT else 4 * len(term.columns)


def _of_group(group, coef, U, B):
    """Return the sum of the Shapley values of the terms of a group, (n_outputs, n_columns,
    n_rows)."""
    (first, orders), c = group[0], coef[:, [term.position for term, _ in group]]
    if orders is None:
        of_sets = sum(
            np.multiply.outer(c[:, k], exact_worth(term, U, B)) for k, (term, _) in enumerate(group)
        )
        return shares(len(first.columns)) @ of_sets
    return np.tensordot(
        c, np.stack([sampled_values(term, orders, U, B) for term, orders in group]), 1
    )


@cache
def shares(q: int) -> np.ndarray:
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


def exact_worth(term: Term, U: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return v of all sets of the term's columns, (2^q, n_rows); the bits of the index of a set say
    which columns it has."""
    return term.worth(_of_sets(term, term.parts(U)), _of_sets(term, term.parts(B))[::-1])


def _of_sets(term, parts):
    """Return the sum or product, as the term has it, of the parts of the columns in each set, (2^q,
    n_rows)."""
    combine = np.multiply if term.is_product else np.add
    made = np.full((1, parts.shape[1]), combine.identity, parts.dtype)
    for part in parts:
        made = np.concatenate([made, combine(made, part)])
    return made


def sampled_values(term: Term, orders: np.ndarray, U: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the Shapley values of a term, (q, n_rows): the mean contribution of each column over
    permutations.

    For a product only the part that comes from dependence among its inputs is sampled; the rest is
    computed exactly.
    """
    of_x, of_b = term.parts(U), term.parts(B)
    total, mean = np.zeros(of_x.shape), of_b.mean(axis=1, keepdims=True)
    for order in orders:
        along, rest = _along(term, of_x[order]), _along(term, of_b[order[::-1]])[::-1]
        if term.is_product:
            rest = rest.mean(axis=1, keepdims=True) - _along(term, mean[order[::-1]])[::-1]
        total[order] += np.diff(term.worth(along, rest), axis=0) / len(orders)
    return total + independent_values(term, of_x, mean[:, 0]) if term.is_product else total


def _along(term, parts):
    """Return the sum or product, as the term has it, of the parts of no column, of the first, of
    the first two, and so on."""
    combine = np.multiply if term.is_product else np.add
    none = np.full((1, parts.shape[1]), combine.identity, parts.dtype)
    return np.concatenate([none, combine.accumulate(parts, axis=0)])


def independent_values(term: Term, z: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return the Shapley values of a product of independent inputs, (q, n_rows), from its factors z
    and their means.

    The value of column j is the integral over t in [0, 1] of Re(K (z_j - mean_j) prod_{k != j} (t
    z_k + (1 - t) mean_k)), a polynomial, for which Gauss-Legendre quadrature is exact.
    """
    node, weight = np.polynomial.legendre.leggauss(-(-len(z) // 2))
    total, mean = np.zeros(z.shape, z.dtype), mean[:, None]
    for t, w in zip((node + 1) / 2, weight / 2, strict=True):
        along = _along(term, t * z + (1 - t) * mean)
        back = _along(term, (t * z + (1 - t) * mean)[::-1])[::-1]
        total += w * along[:-1] * back[1:]
    return (term.constant * (z - mean) * total).real
