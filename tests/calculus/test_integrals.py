"""Means and integrals of models over boxes: against quadrature and Sobol' points, and by their own
laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

import sparserf as srf
from sparserf.features import NeuronBlock

from ..conftest import n_examples
from ..fitted_models import FITS


def by_sobol(model, box):
    """Return the mean of f over a box, of eight draws of Sobol' points, and its standard error."""
    low, high = np.transpose([np.broadcast_to(box[j], 2) for j in range(len(box))]).astype(float)
    draws = (qmc.Sobol(len(box), seed=seed).random_base2(11) for seed in range(8))
    means = [model.decision_function(low + u * (high - low)).mean(axis=0) for u in draws]
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(8)


BOX = {0: (-1.0, 2.0), 1: (-12.0, 0.3), 2: 0.2, 3: (-2, 2)}


@pytest.mark.parametrize("name", FITS)
def test_against_sobol_points_and_a_fine_grid(models, name):
    model = models[name]
    value, error = model.mean(BOX)
    sampled, deviation = by_sobol(model, BOX)
    assert (np.abs(value - sampled) <= error + 4 * deviation + 1e-9).all()
    assert np.all(error <= 1e-5 * (1 + np.abs(model.coef).sum(axis=-1)))
    line = {0: (-6.0, 7.0), 1: 0.3, 2: 0.2, 3: -0.5}
    edges = np.linspace(-6, 7, 400_001)
    rows = np.tile([0.0, 0.3, 0.2, -0.5], (400_000, 1))
    rows[:, 0] = (edges[1:] + edges[:-1]) / 2
    value, error = model.mean(line)
    f = model.decision_function(rows)
    jumps = 1e-5 * (name in ("steps", "auto", "rules")) * np.abs(f).max()  # of steps and rules
    assert np.all(np.abs(value - f.mean(axis=0)) <= error + 1e-9 + jumps)
    integral, _ = model.integral(line)
    np.testing.assert_allclose(integral, 13 * np.asarray(value), rtol=1e-14)


@pytest.mark.parametrize("name", ["gaussian", "products"])
def test_against_quadrature_in_two_inputs(models, name):
    model = models[name]
    nodes, weights = np.polynomial.legendre.leggauss(40)
    x, y = np.meshgrid(0.1 + 0.6 * nodes, 0.15 + 0.45 * nodes, indexing="ij")
    rows = np.stack([x, np.full_like(x, 0.4), np.full_like(x, 0.2), y], axis=-1).reshape(-1, 4)
    expected = 0.6 * 0.45 * (np.outer(weights, weights).ravel() @ model.decision_function(rows))
    value, error = model.integral({0: (-0.5, 0.7), 1: 0.4, 2: 0.2, 3: (-0.3, 0.6)})
    assert abs(value - expected) <= error + 1e-12


@pytest.mark.parametrize("activation", ["relu", "sign", "tanh"])
@pytest.mark.parametrize("n_inputs", [1, 2, 3, 5])
def test_functions_of_several_inputs(models, activation, n_inputs, rng):
    """Corners, nodes and Sobol' points agree, within the errors that they say."""
    block = NeuronBlock(activation, 1.0, rng.standard_normal((3, n_inputs)), rng.standard_normal(3))
    features = srf.FeatureSet([block], n_inputs)
    model = replace(
        models["linear"], features=features, coef=np.ones(3), intercept=0.0, support=np.arange(3)
    )
    box = {j: (-1.0, 1.5) for j in range(n_inputs)}
    value, error = model.mean(box)
    sampled, deviation = by_sobol(model, box)
    assert abs(value - sampled) <= error + 4 * deviation + 1e-9 and error < 0.01
    if n_inputs <= 2:
        assert error < 1e-9


@pytest.mark.slow
@settings(max_examples=n_examples(10), deadline=None)
@given(
    st.floats(-3, 3),
    st.floats(0.01, 4),
    st.floats(0.05, 0.95),
    st.sampled_from(["auto", "gaussian", "bumps", "relu", "steps"]),
)
def test_integrals_of_the_parts_of_a_box_add_up(models, low, width, share, name):
    model, middle, high = models[name], low + share * width, low + width
    rest = {1: (-0.5, 0.5), 2: 0.1, 3: 0.3}
    parts = [
        model.integral({0: part, **rest}) for part in ((low, high), (low, middle), (middle, high))
    ]
    (whole, e), (left, e_left), (right, e_right) = parts
    assert abs(whole - left - right) <= e + e_left + e_right + 1e-12 * (1 + abs(whole))


@pytest.mark.slow
def test_levels_count_equally(of_frame):
    model, data = of_frame
    names = list(data.columns)
    numbers = {names[k]: 1.0 for k in range(3)}
    box = {**numbers, "c o": ["a", "b'"], "many": [3, 50], "flag": 1}
    value, error = model.mean(box)
    each = [
        model.mean({**box, "c o": level, "many": many})[0]
        for level in ("a", "b'")
        for many in (3, 50)
    ]
    assert abs(value - np.mean(each)) <= 1e-12 and error < 1e-10
    row = data.iloc[:1].assign(**{"c o": "a", "many": 3, "flag": True}, **numbers)
    assert abs(each[0] - model.decision_function(row)[0]) < 1e-12


@pytest.mark.slow
def test_a_point_and_limits(models):
    model = models["auto"]
    point = dict(enumerate([0.3, -0.2, 0.1, 0.5]))
    f = model.decision_function(np.array([list(point.values())]))[0]
    assert abs(model.mean(point)[0] - f) < 1e-13 and abs(model.integral(point)[0] - f) < 1e-13
    cut = replace(model, upper=float(f) - 0.1)
    value, error = cut.mean(BOX)
    assert value < model.mean(BOX)[0] and 0 < error < 0.01
    assert cut.mean(BOX) == (value, error)


def test_wrong_boxes(models):
    model = models["auto"]
    for box in ({4: (0, 1)}, {"no": (0, 1)}, {0: (1, 0)}, {0: (0, np.inf)}):
        with pytest.raises(ValueError, match="box"):
            model.mean({**BOX, **box})
    with pytest.raises(TypeError, match="box"):
        model.integral([(0, 1)])
    with pytest.raises(ValueError, match="output"):
        model.mean(BOX, output=3)


def test_the_volume_has_all_columns_of_the_box(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 2, 200)])
    model = srf.mfga(X, X[:, 0], features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0)
    assert np.flatnonzero(model.features.columns_seen).tolist() == [0] == list(model.ranges)
    widths, start = np.ptp(X[:, :3], axis=0), {0: (1.0, 2.0)}
    mean = model.mean(start)[0]
    for box, volume in (
        (start, widths[1] * widths[2]),
        ({**start, 1: (0, 7)}, 7 * widths[2]),
        ({**start, 1: (0, 7), 2: 0.5}, 7.0),
        ({**start, 1: 3, 2: None}, 1.0),
    ):
        assert model.integral(box)[0] == pytest.approx(volume * mean, rel=1e-12)
    assert model.integral()[0] == pytest.approx(
        widths.prod() * model.mean()[0], rel=1e-12, abs=1e-12
    )
    few = srf.prune(srf.drp(X, X[:, 0], alpha=1e-3, rng=0), X, max_terms=1)
    assert few.integral(start)[0] == pytest.approx(widths[1:].prod() * few.mean(start)[0])
    model.save(tmp_path / "m.npz")
    other = srf.load(tmp_path / "m.npz")  # says nothing of columns that no term uses
    with pytest.raises(
        ValueError, match=r"box must have an interval for columns .* 'x1', 'x2', 'x3'"
    ):
        other.integral(start)
    box = {**start, 1: (0, 7), 2: 1, 3: 0}
    assert other.integral(box) == model.integral(box) and other.mean(start) == model.mean(start)
    with pytest.raises(ValueError, match="volume that does not overflow"):
        model.integral({1: (-1e300, 1e300), 2: (-1e300, 1e300)})
