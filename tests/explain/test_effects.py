"""Effects of one and two inputs: sums that come near a model, and pictures of them."""

import re

import matplotlib.pyplot
import numpy as np
import pytest

import sparserf as srf
from sparserf import plot

from ..fitted_models import X
from ..test_plot import drawn

matplotlib.use("Agg")


def explained(figure):
    """Return the R2 that the heading of a projection says."""
    return float(
        re.search(r"A projection of the model; all panels .*R².=.(\S+)", figure.get_suptitle())[1]
    )


@pytest.mark.slow
def test_a_projection_finds_the_sum_that_is_there():
    """For f = sin 3a + b c fitted by features of all four inputs, the curve and the surface are
    found."""
    Z = np.random.default_rng(0).uniform(-1, 1, (1500, 4))
    y = np.sin(3 * Z[:, 0]) + 2 * Z[:, 1] * Z[:, 2]
    model = srf.sparse_rf(Z, y, features="gaussian", alpha=1e-3, n_components=1000, rng=0)
    figure = plot.effects(model, Z, n_panels=5)
    parts, points = drawn(figure)
    assert list(parts) == [("x0",), ("x1",), ("x2",), ("x3",), ("x1", "x2")]
    x = points["x0"]
    assert np.abs(parts[("x0",)] - np.sin(3 * x)).max() < 0.15
    error = np.abs(parts["x1", "x2"] - 2 * np.outer(points["x1"], points["x2"]))[2:-2, 2:-2]
    assert error.mean() < 0.1 and error.max() < 0.6
    assert 0.93 < explained(figure) < 1.01


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
    assert explained(plot.effects(model, Z, n_panels=12)) < 0.3


@pytest.mark.slow
def test_effects_of_any_model(of_frame, models):
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
    matplotlib.pyplot.close("all")
