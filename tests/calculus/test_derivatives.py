"""Derivatives of models: against differences, in all homes of rows, at kinks, and of wrong
input."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.columns.encoder import ColumnEncoder
from sparserf.columns.kinds import DAY, MISSING, NUMBER, WEEK, Encoding
from sparserf.features import Activation, BumpBlock, MonomialBlock, NeuronBlock

from ..conftest import SIZES
from ..fitted_models import FITS, X
from ..rows.homes import HOMES

H = 1e-3
ACTIVATIONS = *get_args(Activation), "identity"


def differences(f, X, columns=None):
    """Return the central differences of fourth order of f by each column, on the last axis."""
    slopes = []
    for j in range(X.shape[1]) if columns is None else columns:
        step = np.zeros(X.shape[1])
        step[j] = H
        near, far = f(X + step) - f(X - step), f(X + 2 * step) - f(X - 2 * step)
        slopes.append((8 * near - far) / (12 * H))
    return np.stack(slopes, axis=-1)


def away_from_kinks(f, X, slope):
    """Return which rows have no kink or step near them: differences of two step sizes agree
    there."""
    halves = np.stack(
        [(f(X + H * e) - f(X - H * e)) / (2 * H) for e in np.eye(X.shape[1])], axis=-1
    )
    size = np.abs(slope).max() + 1e-300
    return (np.abs(halves - differences(f, X)) < 1e-3 * size).reshape(len(X), -1).all(axis=1)


def away_from_knots(encoder, X):
    """Return which rows have no knot of a rank near them, where a kink may be too small to see."""
    good = np.ones(len(X), bool)
    for v, j in enumerate(() if encoder is None else encoder.column):
        knots = encoder.knots[encoder.first_knot[v] : encoder.first_knot[v + 1]]
        good &= (np.abs(X[:, j, None] - knots) > 3 * H).all(axis=1)
    return good


@pytest.mark.parametrize("name", FITS)
def test_derivatives_are_limits_of_differences(models, name):
    model = models[name]
    rows = X[20:140] + 1e-3
    f = model.decision_function
    for derivative, function in ((model.gradient, f), (model.hessian_diag, model.gradient)):
        answer = derivative(rows)
        expected = differences(function, rows)
        if function is not f:
            expected = np.diagonal(expected, axis1=-2, axis2=-1)
        good = away_from_kinks(f, rows, model.gradient(rows)) & away_from_kinks(
            model.gradient, rows, answer
        )
        good &= away_from_knots(model.features.encoder, rows)
        assert answer.shape == expected.shape and good.sum() > 20
        assert np.abs(answer - expected)[good].max() <= 1e-8 * max(1e-3, np.abs(answer).max())


def stage_of_everything():
    """Return an encoder of three columns: numbers with knots and without, whether they are
    missing, and angles, several encodings of one column."""
    knots = np.array([-1.5, -0.5, 0.25, 1.0, 2.5]), np.array([-2.0, -0.4, 0.1, 0.5, 1.5])
    encodings = [
        Encoding(0, NUMBER),
        Encoding(0, NUMBER),
        Encoding(1, NUMBER, 0, knots),
        Encoding(2, NUMBER),
        Encoding(2, MISSING),
        Encoding(0, WEEK, 1.75),
        Encoding(1, DAY),
    ]
    encoder = ColumnEncoder.from_encodings(encodings, 3)
    center, unit = (
        np.array([0.1, -0.2, 0.05, 0.3, 0.1, 0.2, 0]),
        np.array([0.7, 1.3, 0.8, 0.4, 0.5, 0.7, 3.0]),
    )
    reach = np.array([1.5, 2.0, np.inf, 1.0, np.inf, np.inf, np.inf])
    return replace(encoder, center=center, unit=unit, reach=reach, fill=np.full(7, 0.3))


def drawn_blocks(rng, d, m):
    """Return a block of m features of each kind, with dense weights and with sparse ones."""
    inputs = rng.random((m, d)).argsort(axis=1)[:, :3].astype(np.int32)
    blocks = [
        MonomialBlock(
            0.7, np.ones((m, 1)), rng.integers(0, d + 1, (m, order)).astype(np.int32), 0.1
        )
        for order in (1, 3)
    ]
    for where in (None, inputs):
        shape = (m, d if where is None else 3)
        for activation in ACTIVATIONS:
            weights = rng.standard_normal(shape)
            blocks.append(NeuronBlock(activation, 1.3, weights, rng.standard_normal(m), where))
        blocks.append(BumpBlock(0.8, rng.standard_normal(shape), rng.standard_normal(shape), where))
    return blocks


@pytest.mark.parametrize("kind", range(4 + 2 * len(ACTIVATIONS)))
def test_every_kind_of_feature_by_every_kind_of_encoding(models, kind, rng):
    """Several encodings of a column have mixed derivatives, too."""
    encoder = stage_of_everything()
    block = drawn_blocks(rng, len(encoder), 7)[kind]
    features = srf.FeatureSet([block], len(encoder), encoder=encoder)
    coef = rng.standard_normal((2, 7))
    model = replace(
        models["linear"], features=features, coef=coef, intercept=np.zeros(2), support=np.arange(7)
    )
    rows = rng.uniform(-3, 3, (300, 3))
    gradient, curve = model.gradient(rows), model.hessian_diag(rows)
    good = away_from_kinks(model.decision_function, rows, gradient) & away_from_kinks(
        model.gradient, rows, curve
    )
    expected = differences(model.decision_function, rows)
    second = np.diagonal(differences(model.gradient, rows), axis1=-2, axis2=-1)
    assert good.sum() > 60 and gradient.shape == (300, 2, 3)
    # a kink may be nearer than two steps
    for answer, limit in ((gradient, expected), (curve, second)):
        off = np.abs(answer - limit)[good] / max(1, np.abs(answer).max())
        assert np.quantile(off, 0.97) < 1e-7 and off.max() < 1e-2
    one = model.gradient(rows, output=1)
    np.testing.assert_allclose(one, gradient[:, 1], rtol=0, atol=1e-13 * np.abs(gradient).max())


@pytest.mark.parametrize("home", [*HOMES, "csr", "fortran"])
@pytest.mark.parametrize("name", ["auto", "multinomial", "bumps", "cubes", "relu"])
def test_the_same_in_every_home(models, name, home):
    rows = X[30:]
    model, there = models[name], {**HOMES, "csr": sp.csr_array, "fortran": np.asfortranarray}[home]
    if home == "dask":
        from dask.array import from_array

        there = lambda rows: from_array(rows, chunks=(150, 4))  # noqa: E731
    if home == "device":
        pytest.skip("see test_on_a_device")
    for derivative in (model.gradient, model.hessian_diag):
        expected = derivative(rows)
        answer = np.asarray(derivative(there(rows), 2))
        assert (
            answer.shape == expected.shape
            and np.abs(answer - expected).max() <= 1e-12 * np.abs(expected).max()
        )


@pytest.mark.parametrize("name", ["auto", "multinomial", "bumps", "cubes"])
def test_on_a_device(models, name, monkeypatch):
    device, model = HOMES["device"], models[name]
    device.patch(monkeypatch)
    expected, answer = model.gradient(X[:70]), model.gradient(device(X[:70]))
    assert answer.device == device.device
    assert np.abs(np.from_dlpack(answer) - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("n", SIZES)
def test_sizes_and_dtypes(models, n, monkeypatch):
    """Parts of rows give what all rows give; float32 rows give float32, near what float64 rows
    do."""
    rows = 0.9 * X  # none at an end or a knot of the training rows, where derivatives jump
    for name in ("auto", "three classes"):
        whole = models[name].gradient(rows)
        monkeypatch.setattr("sparserf.calculus.derivatives.PART_NUMBERS", 1)
        answer, single = (
            models[name].gradient(rows[:n]),
            models[name].gradient(rows[:n].astype(np.float32)),
        )
        monkeypatch.undo()
        assert answer.shape == single.shape == (n, *whole.shape[1:]) and single.dtype == np.float32
        assert np.abs(answer - whole[:n]).max(initial=0) <= 1e-12 * np.abs(whole).max()
        assert np.abs(single - whole[:n]).max(initial=0) <= 1e-5 * np.abs(whole).max()


@pytest.mark.slow
def test_of_a_data_frame(of_frame):
    """Missing cells, categories and means of levels have derivative 0."""
    model, data = of_frame
    answer = model.gradient(data)
    table = model.features.encoder.table
    category = [j for j, levels in enumerate(table.levels) if levels is not None]
    assert category and not answer[:, category].any() and not answer[data.isna().to_numpy()].any()
    rows = np.nan_to_num(table.read(data), nan=0.5) + 1e-7
    numbers = [j for j in range(rows.shape[1]) if j not in category]
    full = data.copy()
    full[full.columns[numbers]] = rows[:, numbers]
    f, step = model.decision_function(full), 1e-6
    for j in numbers:
        moved = full.copy()
        moved[full.columns[j]] += step
        quotient = (model.decision_function(moved) - f) / step
        close = np.abs(quotient - model.gradient(full)[:, j]) < 1e-3 * (1 + np.abs(quotient).max())
        assert close.mean() > 0.95


def test_one_sided_at_kinks(models):
    """The right side at knots and centers, the rising side of a relu, 0 at steps and beyond
    limits."""
    knots = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0])
    encoder = ColumnEncoder.from_encodings([Encoding(0, NUMBER, 0, knots)], 1)

    def of(block, encoder=None, **k):
        features = srf.FeatureSet([block], 1, encoder=encoder)
        return replace(
            models["linear"],
            features=features,
            coef=np.ones(1),
            intercept=0.0,
            support=np.arange(1),
            **k,
        )

    one, zero = np.ones((1, 1)), np.zeros(1)
    rows = np.array([[-1.0], [0.0], [1.0], [2.0], [3.0], [np.nan]])
    ranked = of(NeuronBlock("identity", 1.0, one, zero), encoder)
    assert (
        ranked.gradient(rows).ravel().tolist() == [0, 2, 0.5, 0.5, 0, 0]
        and not ranked.hessian_diag(rows).any()
    )
    assert of(NeuronBlock("relu", 1.0, -one, zero)).gradient(one * 0).item() == -1
    assert of(BumpBlock(1.0, one, one)).gradient(one).item() == -1
    assert of(NeuronBlock("sign", 1.0, one, zero)).gradient(one * 0).item() == 0
    cut = of(NeuronBlock("identity", 1.0, one, zero), lower=-1.0, upper=2.0)
    assert cut.gradient(np.array([[-1.5], [-0.5], [1.5], [2.5]])).ravel().tolist() == [0, 1, 1, 0]


def test_wrong_input(models):
    model = models["multinomial"]
    with pytest.raises(ValueError, match="columns"):
        model.gradient(X[:, :3])
    with pytest.raises(ValueError, match="output"):
        model.hessian_diag(X, output=7)
    with pytest.raises(ValueError, match="workers"):
        model.gradient(X, 0)
