"""Pictures of models: what is drawn, not how it looks."""

import matplotlib
import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import plot

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 5))
Y = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2]


@pytest.fixture(scope="module")
def model():
    return srf.harfe(X, Y, order=2, n_components=2000, n_nonzero_coefs=60, rng=0)


def test_input_usage(model):
    ax = plot.input_usage(model)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, model.input_usage())
    assert plot.input_usage(model, names=list("abcde"), ax=ax) is ax
    assert [label.get_text() for label in ax.get_xticklabels()] == list("abcde")


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_effects_show_what_is_there(model, kind):
    """The strongest parts are those of the target, in either kind of X."""
    fig = plot.effects(model, kind(X), names=list("abcde"), n_panels=2)
    axes = [ax for ax in fig.axes if ax.get_xlabel()]
    labels = {(ax.get_xlabel(), ax.get_ylabel()) for ax in axes}
    assert labels == {("a", ""), ("b", "c")}
    curve = next(ax for ax in axes if ax.get_xlabel() == "a").lines[0]
    x, y = curve.get_data()
    assert np.abs(y - np.sin(3 * x)).max() < 0.25


def test_parts_add_up_to_the_model(model):
    """f at any point is the parts' sum and a constant: nothing is lost in taking the curves out of the surfaces."""
    groups = plot._groups(model)
    grids = {j: np.linspace(-0.9, 0.9, 7) for j in range(5)}
    parts = plot._parts(model, groups, grids)
    points = RNG.integers(0, 7, (50, 5))
    f = model.predict(np.stack([grids[j][points[:, j]] for j in range(5)], axis=1))
    total = sum(values[tuple(points[:, j] for j in inputs)] for inputs, values in parts.items())
    assert np.ptp(f - total) < 1e-10


@pytest.mark.parametrize("order", ["as drawn", "interleaved"])
def test_effects_of_products_of_two_inputs(order):
    """Each sees both inputs, by its envelope: with features of one input they still add up to the model."""
    neurons = srf.RandomNeurons("sin", 1).draw(40, 2, 0)
    features = srf.Taylor(2, 0.5).draw(None, 2).concat(neurons).concat(srf.Linear().draw(None, 2))
    features = features if order == "as drawn" else features.take(np.random.default_rng(0).permutation(len(features)))
    Z = X[:, :2]
    model = srf.mfga(Z, Z[:, 0] * Z[:, 1] + np.sin(3 * Z[:, 0]), features=features, n_nonzero_coefs=20, rng=0)
    assert len(model.features.blocks) == 3 and model.features.order is not None
    groups = plot._groups(model)
    for inputs, terms in groups.items():
        activations = {model.features.take([k]).blocks[0].activation for k in terms}
        assert (inputs == (0, 1)) == (activations == {"product"})
    assert sorted(k for terms in groups.values() for k in terms) == list(range(20))
    grids = {j: np.linspace(-0.9, 0.9, 7) for j in range(2)}
    parts = plot._parts(model, groups, grids)
    points = RNG.integers(0, 7, (50, 2))
    f = model.predict(np.stack([grids[j][points[:, j]] for j in range(2)], axis=1))
    assert np.ptp(f - sum(values[tuple(points[:, j] for j in inputs)] for inputs, values in parts.items())) < 1e-10
    axes = [ax for ax in plot.effects(model, Z, names=["a", "b"]).axes if ax.get_xlabel()]
    assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in axes} == {("a", ""), ("b", ""), ("a", "b")}


def test_what_cannot_be_drawn(model):
    with pytest.raises(ValueError, match="names"):
        plot.input_usage(model, names=["a"])
    with pytest.raises(TypeError, match="model"):
        plot.input_usage(3)
    classes = srf.harfe(X, np.digitize(Y, [-1, 1]), loss="logistic", order=1, n_components=50, n_nonzero_coefs=3, rng=0)
    with pytest.raises(ValueError, match="one output"):
        plot.effects(classes, X)
