"""Encodings of columns: numbers, ranks, whether cells are missing, and levels."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.columns.encodings import target_encode
from sparserf.columns.table import Table

from ..conftest import phi_oracle
from .encoders import encoder_of, ranks_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 3))
HOLES = np.where(RNG.random(X.shape) < [0.0, 0.3, 0.0], np.nan, X)


def test_encodings_of_numbers():
    """A number has one encoding, and where cells are missing another that says so."""
    Z = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] > 0, HOLES[:, 1]])
    encoder = encoder_of(Z)
    assert encoder.names(list("abc")) == ["a", "b", "c", "c is missing"]
    assert encoder.column.tolist() == [0, 1, 2, 2]
    shown, is_missing = encoder.transform(Z), np.isnan(Z[:, 2])
    assert np.isfinite(shown).all() and (shown[is_missing, 2] == 0).all()
    assert len(np.unique(shown[is_missing, 3])) == len(np.unique(shown[~is_missing, 3])) == 1
    assert (np.diff(shown[np.argsort(Z[:, 0]), 0]) >= 0).all()


def test_ranks_of_numbers():
    """Ranks rise with the number and are normal scores; columns of two values have none."""
    Z = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] > 0, HOLES[:, 1]])
    encoder, numbers = ranks_of(Z)
    assert numbers.tolist() == [0, 2] and encoder.column.tolist() == [0, 2]
    ranks = encoder.transform(Z)
    assert np.corrcoef(ranks[:, 0], X[:, 0])[0, 1] > 0.99
    assert (np.diff(ranks[np.argsort(Z[:, 0]), 0]) >= 0).all()
    assert (ranks[np.isnan(Z[:, 2]), 1] == 0).all() and np.isfinite(ranks).all()


def test_equal_numbers_have_one_rank():
    Z = np.where(RNG.random((5000, 1)) < 0.6, 0.0, RNG.random((5000, 1)))
    ranks = ranks_of(Z)[0].transform(Z)[:, 0]
    at_zero = ranks[Z[:, 0] == 0]
    assert np.unique(at_zero).size == 1 and at_zero[0] < ranks[Z[:, 0] > 0].min() + 0.1


@pytest.mark.parametrize("namespace", ["numpy", "strict"])
def test_features_of_encodings(namespace):
    """Features may see some encodings of an encoder, in any order."""
    Z = np.column_stack([np.exp(0.5 * X[:, 0]), X[:, 1], X[:, 2] > 0, X[:, 2]])
    encoder, seen = encoder_of(Z), np.array([3, 0, 2])
    every = srf.Fourier(gamma=0.2).draw(30, len(seen), rng=0)
    features = every.seeing(seen, len(encoder)).encoded(encoder)
    assert features.n_features_in == features.n_inputs == len(encoder) == 4
    expected = every.transform(encoder.take(seen).transform(Z))
    there = strict.asarray(Z) if namespace == "strict" else Z
    assert np.allclose(np.asarray(features.transform(there)), expected) and np.allclose(
        phi_oracle(features, Z), expected
    )
    assert np.array_equal(features.input_usage(), [1, 0, 1, 1])


@np.errstate(all="raise")
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_encodings_of_huge_cells_do_not_overflow(size):
    """One huge cell or five are encoded as finite numbers."""
    for n_wild in (1, 5):
        wild = HOLES[:60].copy()
        wild[:n_wild] = size
        encoder = encoder_of(wild)
        shown = encoder.transform(wild)
        assert np.isfinite(shown).all()
        assert np.allclose(np.asarray(encoder.transform(strict.asarray(wild))), shown)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("zeros", ["none", "of one column"])
def test_csr_columns_without_zeros(seed, zeros):
    """CSR rows of which some columns, or all, have no zero are fitted as well as dense rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (400, 3))
    if zeros == "of one column":
        X[rng.random(400) < 0.3, 1] = 0.0
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    model = srf.sparse_rf(sp.csr_array(X[:300]), y[:300], effort=0.3, rng=0)
    assert np.isfinite(model.coef).all()
    assert np.mean((model.predict(sp.csr_array(X[300:])) - y[300:]) ** 2) < 0.1 * y.var()


# Levels


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e-3])
def test_levels_of_one_row_each_have_equal_means(rng, offset):
    """No other row has such a level, so that all are encoded by the mean of y, with no difference
    by rounding."""
    y = offset + rng.standard_normal(60) * abs(offset or 1)
    X, table = Table.learn(np.array([[f"level {k}"] for k in range(60)], object), [0])
    _, means = target_encode(X, table, [y], np.ones(60), rng)
    assert np.ptp(means[0][1]) == 0
    assert means[0][1][0] == pytest.approx(y.mean())


@pytest.mark.parametrize("n_groups", [1, 2, 3, 40])
def test_a_mean_of_a_level_comes_from_other_groups(rng, n_groups):
    """Rows of a level that only their own group has are encoded by the mean of y; those of common
    levels are not."""
    groups = np.repeat(np.arange(n_groups), 240 // n_groups)
    is_own = np.arange(len(groups)) % 2 > 0
    levels = [
        f"own {g} {k % 40}" if own else f"common {k % 30}"
        for k, (g, own) in enumerate(zip(groups, is_own, strict=True))
    ]
    y = rng.standard_normal(len(groups))
    X, table = Table.learn(np.array(levels, object)[:, None], [0])
    encoded, means = target_encode(X, table, [y], np.ones(len(y)), rng, groups)
    decoded = np.interp(encoded[:, 0], *means[0])
    assert decoded[is_own] == pytest.approx(y.mean())
    assert n_groups == 1 or np.ptp(decoded[~is_own]) > 0
