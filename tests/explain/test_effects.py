"""Effects of one and two inputs: sums that come near a model, and pictures of them."""

import numpy as np
import pytest

import sparserf as srf
from sparserf import plot
from sparserf.explain import effects
from sparserf.explain.additive import approximate
from sparserf.explain.evaluate import read_numbers

from ..fitted_models import X, Y, bumps


def test_a_projection_finds_the_sum_that_is_there():
    """For f = sin 3a + b c fitted by features of all four inputs, the curve, the surface and their
    shares are found."""
    Z = np.random.default_rng(0).uniform(-1, 1, (3000, 4))
    y = np.sin(3 * Z[:, 0]) + 2 * Z[:, 1] * Z[:, 2]
    model = srf.sparse_rf(Z, y, features="gaussian", alpha=1e-3, n_components=2000, rng=0)
    parts = approximate(model, read_numbers(model, Z), model.importances(Z).share, 3)
    assert parts.pairs[0] == (1, 2)
    x = np.linspace(-0.9, 0.9, 20)
    assert np.abs(parts.at((0,), x[:, None]) - np.sin(3 * x)).max() < 0.15
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    error = np.abs(parts.at((1, 2), points) - 2 * points.prod(axis=1))
    assert error.mean() < 0.1 and error.max() < 0.6
    for part, known in {(0,): np.sin(3 * Z[:, 0]), (1, 2): 2 * Z[:, 1] * Z[:, 2]}.items():
        assert np.abs(parts.at_rows[part] - known).mean() < 0.1
    assert 0.93 < parts.r2 < 1.01


@pytest.mark.slow
def test_a_projection_is_not_taken_in_by_its_own_freedom():
    """For a function of all inputs together and few rows, the sum explains little of it, and its r2
    says so."""
    Z = np.random.default_rng(0).choice([-1.0, 1.0], (150, 6)) * np.random.default_rng(1).uniform(
        0.5, 1, (150, 6)
    )
    y = Z.prod(axis=1)
    model = srf.sparse_rf(
        Z, y / y.std(), features="gaussian", gamma=3.0, alpha=1e-4, n_components=4000, rng=0
    )
    assert model.predict(Z).std() > 0.3
    assert approximate(model, Z, np.ones(6), 5).r2 < 0.3


@pytest.mark.slow
def test_effects_of_any_model(of_frame, models):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model, data = of_frame
    figure = plot.effects(model, data, n_panels=5)
    axes = [ax for ax in figure.axes if ax.get_xlabel()]
    assert len(axes) <= 5 and "projection" in figure.get_suptitle()
    assert {ax.get_xlabel().split(",")[0] for ax in axes} <= set(data.columns)
    levels = next(ax for ax in axes if ax.get_xlabel() == "c o")
    assert {label.get_text() for label in levels.get_xticklabels()} == {
        "a",
        "b'",
        '{c}"',
        "missing",
    }
    for name in ("auto", "steps", "cubes", "bumps", "linear", "two classes", "no term"):
        figure = plot.effects(models[name], X, n_panels=3, n_points=8)
        assert ("Parts" in figure.get_suptitle()) == (name in ("linear", "no term")), name
    plt.close("all")


def test_a_model_of_order_two_is_shown_whole():
    """Where terms have two inputs or are linear, the parts and a constant add up to the model, with
    scaled columns, too."""
    features = srf.RandomNeurons("sin", 2).draw(40, 4, 0).concat(srf.Linear().draw(None, 4))
    features = features.concat(srf.FeatureSet(bumps(4).blocks[1:], 4))  # the bumps of two inputs
    for model in (
        srf.mfga(X, Y, features=features, n_nonzero_coefs=20, rng=0),
        srf.drp(X, Y, alpha=0.01, rng=0),
    ):
        grids = {j: np.linspace(-0.9, 0.9, 7) for j in range(4)}
        parts = effects.parts_of(model, effects.groups_of(model), grids)
        points = np.random.default_rng(0).integers(0, 7, (50, 4))
        f = model.predict(np.stack([grids[j][points[:, j]] for j in range(4)], axis=1))
        assert (
            np.ptp(
                f
                - sum(
                    values[tuple(points[:, j] for j in inputs)] for inputs, values in parts.items()
                )
            )
            < 1e-10
        )
        whole = effects.Effects.from_model(model, X, np.ones(4), 7, 12)
        assert whole.is_whole and abs(whole.r2(list(whole.values)) - 1) < 1e-12
