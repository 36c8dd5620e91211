"""What losses promise beyond their values: bounds of the curvature, slopes, how they scale, which way the intercept is."""

import numpy as np
import pytest

from sparserf.losses import LOSSES, Gamma, Huber, Logistic, Poisson, Quantile, SmoothedHinge, Squared, SquaredHinge, check_loss
from sparserf.losses.base import clip_to_unit, positive_part, where, xlogx
from sparserf.losses.classification import OneClassMultinomial, log_sum_exp, softmax

Z = np.linspace(-6, 6, 2401)
# Each loss with targets, and its value, written plainly.
CASES = {
    "squared": (Squared(), [-1.5, 0.0, 2.0], lambda z, y: (z - y) ** 2 / 2),
    "huber": (Huber(0.7), [-1.5, 0.0, 2.0], lambda z, y: np.where(abs(z - y) < 0.7, (z - y) ** 2, 1.4 * abs(z - y) - 0.49) / 2),
    "quantile": (Quantile(0.8, 0.3), [-1.5, 0.0, 2.0], None),
    "poisson": (Poisson(), [0.0, 0.3, 4.0], lambda z, y: np.exp(z) - y * z + (y * np.log(y) - y if y else 0.0)),
    "gamma": (Gamma(), [0.3, 1.0, 4.0], lambda z, y: y * np.exp(-z) + z - np.log(y) - 1),
    "squared_hinge": (SquaredHinge(), [-1.0, 1.0], lambda z, y: np.maximum(0, 1 - y * z) ** 2),
    "smoothed_hinge": (
        SmoothedHinge(), [-1.0, 1.0],
        lambda z, y: np.where(y * z <= 0, 0.5 - y * z, np.where(y * z < 1, (1 - y * z) ** 2 / 2, 0.0)),
    ),
    "logistic": (Logistic(), [-1.0, 1.0], lambda z, y: np.log(1 + np.exp(-y * z))),
}  # fmt: skip
each = pytest.mark.parametrize("name", CASES)
CLASSIFIERS = "squared_hinge", "smoothed_hinge", "logistic"


def targets(name):
    """(the loss, its plain value, an array of Z's shape) for each target."""
    loss, ys, plain = CASES[name]
    return [(loss, plain, np.full_like(Z, y)) for y in ys]


@each
def test_value_derivative_and_curvature(name):
    for loss, plain, y in targets(name):
        if plain:
            np.testing.assert_allclose(loss.value(Z, y), plain(Z, y[0]), rtol=1e-9, atol=1e-9)
        step = Z[1] - Z[0]
        slope = np.diff(loss.value(Z, y)) / step
        middle = (Z[1:] + Z[:-1]) / 2
        np.testing.assert_allclose(loss.derivative(middle, y[1:]), slope, atol=0.02 * (1 + abs(slope)).max() * step)
        bent = np.diff(loss.derivative(Z, y)) / step
        curvature = loss.curvature(middle, y[1:])
        off = abs(curvature - bent) > 0.01 * (1 + abs(bent))
        assert off.sum() <= (2 if loss.is_piecewise_quadratic else 0)  # one point at each corner
        assert (loss.value(Z, y) >= 0).all()
        assert (curvature >= 0).all()


@each
def test_the_conjugate_is_the_largest_difference(name):
    """L*(u) = max over z of u z - L(z, y), here over a grid, at shares of all slopes of the grid."""
    for loss, _, y in targets(name):
        inner = loss.derivative(Z[400:-400:100], y[400:-400:100])
        u = np.concatenate([0.3 * inner, 0.9 * inner])
        best = (u[:, None] * Z - loss.value(Z, y)).max(axis=1)
        scale = 1 + abs(best).max()
        np.testing.assert_allclose(loss.conjugate(u, y[: len(u)]), best, atol=2e-4 * scale)


@each
def test_bounds_are_bounds_that_are_reached(name):
    """smoothness is the largest curvature, slopes the least and largest derivative, times y of a classifier."""
    loss = CASES[name][0]
    curvature = np.max([loss.curvature(Z, y) for _, _, y in targets(name)])
    if np.isfinite(loss.smoothness):
        assert loss.smoothness == pytest.approx(curvature)
    far = np.array([-300.0, 300.0])
    low, high = loss.slopes
    for y in CASES[name][1]:
        slopes = loss.derivative(far, np.full(2, y)) * (y if loss.is_classifier else 1)
        if np.isfinite(low):
            assert slopes.min() == pytest.approx(low)
        if np.isfinite(high):
            assert slopes.max() == pytest.approx(high, abs=1e-12)


@each
def test_what_is_said_of_the_curvature_holds(name):
    for loss, _, y in targets(name):
        h = loss.curvature(Z, y)
        levels = len(np.unique(h.round(9)))
        assert loss.is_quadratic == (levels == 1)
        assert loss.is_piecewise_quadratic == (levels <= 2)
        turns = np.sign(np.diff(h.round(12)))
        assert loss.is_unimodal == (np.diff(turns[turns != 0]) <= 0).all()  # it rises, then falls
        if loss.is_self_concordant:
            assert (abs(np.gradient(h, Z, edge_order=2)) <= h * (1 + 1e-4) + 1e-9).all()
    assert loss.is_classifier == (name in CLASSIFIERS)
    assert loss.is_smoothed == (name == "quantile")
    assert loss.is_self_concordant == (name in ("logistic", "poisson", "gamma"))
    assert not loss.is_joint
    assert loss.link == ("log" if name in ("poisson", "gamma") else "identity")


@each
def test_the_dual_grows_by_no_more_than_is_said(name):
    """L*(a) - L*(u) - z (a - u) <= c (a - u)^2 / 2 L''(z) at u = L'(z), and a smaller c is not enough."""
    loss = CASES[name][0]
    if np.isinf(loss.dual_growth):
        return
    largest = 0.0
    for _, _, y in targets(name):
        z = Z[::40]
        u, h, y = loss.derivative(z, y[::40]), loss.curvature(z, y[::40]), y[::40]
        ends = (0 * u, -y) if name in CLASSIFIERS else (np.clip(-u, *loss.slopes),)  # of the domain
        for a in ((1 - t) * u + t * end for end in ends for t in np.linspace(0, 1, 21)[1:]):
            left = loss.conjugate(a, y) - loss.conjugate(u, y) - z * (a - u)
            right = (a - u) ** 2 / 2
            ok = (h > 1e-6) & (right > 1e-9)
            largest = max(largest, (left * h / np.where(ok, right, 1))[ok].max(initial=0.0))
    assert largest <= loss.dual_growth * (1 + 1e-6)
    assert largest > 0.95 * loss.dual_growth


@each
@pytest.mark.parametrize("c", [0.25, 3.0])
def test_scaled_losses(name, c):
    """L(c z, c y) = c^degree scaled(c)(z, y)."""
    for loss, _, y in targets(name):
        if loss.degree == 0:
            assert loss.scaled(c) is loss
            continue
        scaled = c**loss.degree * loss.scaled(c).value(Z, y)
        np.testing.assert_allclose(loss.value(c * Z, c * y), scaled, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["squared", "poisson", "gamma"])
@pytest.mark.parametrize("b", [-2.0, 0.1, 3.0])
def test_one_step_of_the_intercept_is_all(name, b):
    loss, y = CASES[name][0], np.array([0.5, 1.0, 7.0])
    slope, curvature = (np.mean(of(np.full(3, b), y)) for of in (loss.derivative, loss.curvature))
    at = b + loss.intercept_step(slope, curvature)
    assert abs(np.mean(loss.derivative(np.full(3, at), y))) < 1e-12
    assert at == pytest.approx(np.mean(y) if name == "squared" else np.log(np.mean(y)))


def test_a_step_without_curvature_is_finite_or_downward():
    with np.errstate(over="ignore"):
        assert Squared().intercept_step(1.0, 0.0) == pytest.approx(-1e300)
        assert Poisson().intercept_step(2.0, 1.0) == -np.inf  # no count at all: as far down as there is
        assert Gamma().intercept_step(0.0, 0.0) == pytest.approx(np.log(1e-300))


def test_functions_of_entries():
    a = np.array([-2.0, 0.0, 0.25, 3.0], np.float32)
    np.testing.assert_array_equal(positive_part(a), [0, 0, 0.25, 3])
    np.testing.assert_array_equal(clip_to_unit(a), [0, 0, 0.25, 1])
    np.testing.assert_array_equal(where(a > 0, 2.0, a), [0, 0, 2, 2])
    assert where(a > 0, 2.0, a).dtype == np.float32
    np.testing.assert_allclose(xlogx(clip_to_unit(a)), [0, 0, 0.25 * np.log(0.25), 0], rtol=1e-6)
    assert xlogx(np.array([3.0]))[0] == pytest.approx(3 * np.log(3))


def test_softmax_and_the_log_of_sums_beside_plain_ones(rng):
    z = rng.normal(size=(4, 30))
    np.testing.assert_allclose(log_sum_exp(z), np.log(np.exp(z).sum(axis=0)), rtol=1e-13)
    np.testing.assert_allclose(softmax(z), np.exp(z) / np.exp(z).sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(log_sum_exp(z + 1e4), log_sum_exp(z) + 1e4, rtol=1e-13)
    np.testing.assert_allclose(softmax(z - 1e4), softmax(z), rtol=1e-11)


def test_the_loss_of_one_class_promises_less():
    """The curvature of log(e^z + e^c) in z is at most a quarter, but all classes move: half. Its dual has no bound."""
    loss = OneClassMultinomial()
    assert (loss.smoothness, loss.is_unimodal, loss.dual_growth) == (0.5, False, np.inf)


@each
def test_names(name):
    loss = CASES[name][0]
    assert loss.name == name
    assert type(LOSSES[name]) is type(loss)
    assert type(check_loss(name, (name,))) is type(loss)
    assert check_loss(loss, (name,)) is loss
    with pytest.raises(ValueError, match="loss must be one of"):
        check_loss(loss, ("none of these",))
