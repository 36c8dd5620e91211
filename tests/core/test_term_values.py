"""The values of terms as numbers and as bits, against formulas in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sparserf as srf
from sparserf.algorithms.default import term_values
from sparserf.algorithms.default.term_values import Bits, Numbers, as_bits
from sparserf.features.rules import BinnedRows, RuleInputs, make_rule_dictionary
from sparserf.rows import read_rows

N, FITTED = 333, 250


def rules_of(rng, n=N, n_fitted=FITTED):
    """Return a dictionary of rules, the bins of n rows, some rules, and their values at the rows,
    (n_rules, n)."""
    X = np.round(rng.normal(size=(n, 4)), 1)
    rows, weight = read_rows(X, None), np.ones(n)
    seen = RuleInputs.from_rows(31, rows, weight, rng)
    how = {"has_intercept": True, "n_components": 100, "batch_size": 60, "rng": rng}
    dictionary = make_rule_dictionary(srf.Rules(), seen, weight[:n_fitted], **how)
    bins = dictionary.binned(rows)
    v = rng.normal(size=n_fitted) / n_fitted
    h = np.full(n_fitted, 1 / n_fitted)
    _, rules, _ = dictionary.grower(0).batch(60, BinnedRows(bins[:, :n_fitted]), v, h)
    return dictionary, bins, rules, rules.transform(X).T


@pytest.fixture
def bits(rng):
    """Return rules as bits, and their values."""
    dictionary, bins, rules, phi = rules_of(rng)
    values = Bits(dictionary, bins, FITTED)
    values.enter(rules.take(np.arange(20)))
    values.enter(rules.take(np.arange(20, len(rules))))
    return values, phi


def test_boxes_of_bins_are_those_of_thresholds(rng):
    dictionary, bins, rules, phi = rules_of(rng)
    boxes, height = dictionary.boxes_of(rules)
    column, low, high = np.moveaxis(boxes[..., :3], 2, 0)
    own = bins[column]
    is_in = ((own >= low[..., None]) & (own <= high[..., None])) | (column < 0)[..., None]
    assert np.array_equal(is_in.all(axis=1) * height[:, None], phi)


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_bits_are_summed_as_numbers_are(bits, rng, n_targets):
    values, phi = bits
    shape = () if n_targets is None else (n_targets,)
    v, w = rng.normal(size=(*shape, FITTED)), rng.normal(size=(*shape, len(phi)))
    assert_allclose(values.correlate(v), v @ phi[:, :FITTED].T, atol=1e-10)
    assert_allclose(values.apply(w), w @ phi, atol=1e-10)


def test_terms_are_kept(bits, rng):
    values, phi = bits
    kept = np.arange(len(phi) - 3)
    kept[[0, 3]] = len(phi) - 1, len(phi) - 3
    values.keep(kept)
    v = rng.normal(size=FITTED)
    assert len(values) == len(kept)
    assert_allclose(values.correlate(v), phi[kept][:, :FITTED] @ v, atol=1e-10)


@pytest.mark.parametrize("is_once", [True, False])
def test_the_gram_matrix_of_bits_is_that_of_the_curvature_of_the_model(bits, rng, is_once):
    values, phi = bits
    phi = phi[:, :FITTED]
    for h in (np.full(FITTED, 0.3), rng.random(FITTED) + 0.01):
        model = values.of_model(h, is_once)
        G, A = (phi * model.h) @ phi.T, np.arange(0, len(phi), 3)
        assert_allclose(values.gram_rows(model, 7, 50), G[7:50, :50], rtol=1e-5, atol=1e-6)
        assert_allclose(values.gram(model, A), G[np.ix_(A, A)], rtol=1e-5, atol=1e-6)
        assert np.abs(model.h - h).max() <= h.max() / (2**12 - 1 if is_once else 7)


def test_the_curvature_of_a_model_is_right_in_the_mean(rng, monkeypatch):
    """Also where it has a part of the rows: of 40 parts, within 4.5 standard errors."""
    dictionary, bins, _, _ = rules_of(rng, 3_000, 3_000)
    monkeypatch.setattr(term_values, "MODEL_ROWS", 640)
    h = rng.random(3_000) ** 3
    means = []
    for k in range(40):
        values = Bits(dictionary, bins, 3_000)
        draws = np.random.default_rng(k)
        values.__dict__["_sampled_words"] = np.sort(draws.permutation(47)[:10])
        values._random = draws.random(3_000)
        means.append(values.of_model(h, False).h.mean())
    error = np.std(means) / np.sqrt(40)
    assert abs(np.mean(means) - h.mean()) <= 4.5 * error


def test_numbers_turn_to_double_where_features_have_no_bound(rng):
    X = rng.normal(size=(50, 3))
    values = Numbers(np.empty((0, 50), np.float32), 40, read_rows(X, None))
    values.enter(srf.Fourier(gamma=1.0).draw(5, 3, rng))
    assert values.dtype == np.float32
    values.enter(srf.Linear().draw(3, 3, rng))
    assert values.dtype == np.float64 and len(values) == 8


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_masks_as_bits(rng, n):
    mask = rng.random(n) < 0.5
    bits = as_bits(mask)
    assert bits.shape == (-(-n // 64),)
    assert [int(bits[i // 64]) >> i % 64 & 1 for i in range(n)] == mask.tolist()
