"""Each activation: its value, derivatives, antiderivatives, means and lines are those of one
function."""

from typing import get_args

import numpy as np
import pytest

from sparserf._core import features as kernels
from sparserf.features import FeatureSet, NeuronBlock
from sparserf.features.activations import ACTIVATIONS, Activation

Z = np.random.default_rng(0).normal(0, 2, 200)
each = pytest.mark.parametrize("sigma", ACTIVATIONS.values(), ids=ACTIVATIONS)


def test_the_lists_of_names_agree():
    assert (
        set(ACTIVATIONS)
        == set(kernels.ACTIVATIONS) - {"product", "bump"}
        == {*get_args(Activation), "identity"}
    )


@each
def test_values_are_those_of_the_kernels(sigma):
    z = np.concatenate([Z, [0.0, -0.0]])
    block = NeuronBlock(sigma.name, 1.0, np.ones((1, 1)), np.zeros(1))
    np.testing.assert_allclose(
        sigma.value(z), FeatureSet([block], 1).transform(z[:, None])[:, 0], rtol=0, atol=1e-15
    )


@each
def test_properties(sigma):
    z, value = np.sort(Z), sigma.value(np.sort(Z))
    assert sigma.is_bounded == np.isfinite(sigma.largest) and np.abs(value).max() <= sigma.largest
    assert sigma.is_odd == np.allclose(sigma.value(-z), -value, atol=1e-15)
    assert sigma.rises == (np.diff(value) >= 0).all()
    slopes = np.diff(value) / np.diff(z)
    assert sigma.is_convex == (np.diff(slopes) >= -1e-9).all()
    assert sigma.is_linear == np.allclose(slopes, 1)
    assert sigma.has_steps or np.abs(slopes).max() <= 1 + 1e-9
    assert not sigma.is_periodic or np.allclose(value, np.cos(z + sigma.phase), atol=1e-14)


@each
def test_first_derivative(sigma):
    h = 1e-6
    z = Z[np.abs(Z) > 0.01]
    np.testing.assert_allclose(
        sigma.first(z), (sigma.value(z + h) - sigma.value(z - h)) / (2 * h), atol=1e-8
    )


@each
def test_antiderivatives(sigma):
    """Each fold is the antiderivative of the one before, but for a constant, away from the kink."""
    h = 1e-5
    for folds in range(1, int(min(sigma.folds, 3)) + 1):
        slope = (sigma.antiderivative(Z + h, folds) - sigma.antiderivative(Z - h, folds)) / (2 * h)
        expected = sigma.antiderivative(Z, folds - 1)
        some = np.abs(Z) > 0.01
        np.testing.assert_allclose(slope[some], expected[some], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(sigma.antiderivative(Z, 0), sigma.value(Z), atol=1e-15)


@each
def test_means(sigma):
    s, t = Z[:20].reshape(2, 10), Z[20:40].reshape(2, 10)
    np.testing.assert_allclose(
        sigma.mean(s, t), sigma.value(s[:, :, None] + t[:, None]).mean(axis=2), atol=1e-14
    )
