"""Losses as functions: value, derivatives and conjugate against formulas, and the properties that
solvers rely on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from sparserf.losses import (
    LOSSES,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Ordinal,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    Tweedie,
    check,
    check_loss,
)
from sparserf.losses.base import is_parameter

from ..conftest import as_within_a_call, n_examples
from .own_losses import WRONG, LogCosh

Z = np.linspace(-6, 6, 2401)
points = st.floats(-8, 8)
counts = st.sampled_from([0.0, 0.3, 1.0, 7.0, 2000.0])


def smoothed_pinball(z, y):
    """Average the pinball loss of level 0.8 over shifts of z in [-0.3, 0.3]."""
    z = z + 0.3 * (2 * (np.arange(4000) + 0.5) / 4000 - 1)
    return np.maximum(0.8 * (y - z), 0.2 * (z - y)).mean()


THRESHOLDS = (-2.0, 0.5, 0.5001, 4.0)


def between_thresholds(z, y):
    """Return minus the log probability of a class between two thresholds."""
    ends = np.array([-np.inf, *THRESHOLDS, np.inf])[[int(y), int(y) + 1]]
    return -np.log(np.diff(1 / (1 + np.exp(np.asarray(z)[..., None] - ends)))[..., 0])


# Each loss with targets, and the formula of its value.
CASES = {
    "squared": (Squared(), [-1.5, 0.0, 2.0], lambda z, y: (z - y) ** 2 / 2),
    "huber": (
        Huber(0.7),
        [-1.5, 0.0, 2.0],
        lambda z, y: np.where(abs(z - y) < 0.7, (z - y) ** 2, 1.4 * abs(z - y) - 0.49) / 2,
    ),
    "quantile": (Quantile(0.8, 0.3), [-1.5, 0.0, 2.0], smoothed_pinball),
    "poisson": (
        Poisson(),
        [0.0, 0.3, 4.0],
        lambda z, y: np.exp(z) - y * z + (y * np.log(y) - y if y else 0.0),
    ),
    "tweedie": (
        Tweedie(1.3),
        [0.0, 0.3, 4.0],
        lambda z, y: np.exp(0.7 * z) / 0.7 + y * np.exp(-0.3 * z) / 0.3 - y**0.7 / 0.21,
    ),
    "gamma": (Gamma(), [0.3, 1.0, 4.0], lambda z, y: y * np.exp(-z) + z - np.log(y) - 1),
    "squared_hinge": (SquaredHinge(), [-1.0, 1.0], lambda z, y: np.maximum(0, 1 - y * z) ** 2),
    "smoothed_hinge": (
        SmoothedHinge(),
        [-1.0, 1.0],
        lambda z, y: np.where(
            y * z <= 0, 0.5 - y * z, np.where(y * z < 1, (1 - y * z) ** 2 / 2, 0.0)
        ),
    ),
    "logistic": (Logistic(), [-1.0, 1.0], lambda z, y: np.log(1 + np.exp(-y * z))),
    "ordinal": (Ordinal(THRESHOLDS), [0.0, 2.0, 3.0, 4.0], between_thresholds),
}
CLASSIFIERS = "squared_hinge", "smoothed_hinge", "logistic", "ordinal"
each = pytest.mark.parametrize("name", CASES)
each_regression = pytest.mark.parametrize(
    "name", [name for name in CASES if name not in CLASSIFIERS]
)


def targets(name):
    """Return the loss and an array of the shape of Z for each target."""
    loss, ys, _ = CASES[name]
    return [(loss, np.full_like(Z, y)) for y in ys]


def target_of(name, y):
    """Return y as a target in the range of the loss."""
    if name == "ordinal":
        return min(float(np.floor(y)), 4.0)
    if name in CLASSIFIERS:
        return 1.0 if y > 0.5 else -1.0
    return y + 0.1 if name == "gamma" else y


@each
@settings(max_examples=n_examples(100))
@given(z=points, y=counts)
def test_values_are_those_of_the_formula(name, z, y):
    (loss, _, plain), y = CASES[name], target_of(name, y)
    rtol = 1e-6 if name == "quantile" else 1e-9  # whose formula is a mean over 4000 corners
    assert np.isclose(
        loss.value(np.array([z]), np.array([y]))[0],
        plain(z, y),
        rtol=rtol,
        atol=1e-9 * (1 + abs(y)),
    )


@each
@settings(max_examples=n_examples(100))
@given(z=points, y=counts)
def test_derivative_and_curvature_are_those_of_the_value(name, z, y):
    loss, y = CASES[name][0], np.full(3, target_of(name, y))
    near = z + 1e-5 * np.array([-1.0, 0, 1])
    values, slopes = loss.value(near, y), loss.derivative(near, y)
    size = 1 + np.abs(slopes).max() + loss.curvature(near, y).max()
    assert np.isclose((values[2] - values[0]) / 2e-5, slopes[1], rtol=1e-5, atol=1e-5 * size)
    if not loss.is_piecewise_quadratic or len(set(loss.curvature(near, y))) == 1:
        assert np.isclose(
            (slopes[2] - slopes[0]) / 2e-5, loss.curvature(near, y)[1], rtol=1e-4, atol=1e-5 * size
        )


@each
@settings(max_examples=n_examples(40))
@given(z=points, y=counts, share=st.floats(0, 1))
def test_conjugates_are_the_largest_difference(name, z, y, share):
    """L*(u) = max over z of u z - L(z, y) at shares u of a slope, as duality gaps ask for; the
    search for it agrees."""
    loss, y = CASES[name][0], target_of(name, y)
    u = share * loss.derivative(np.array([z]), np.array([y]))
    found = loss.conjugate(u, np.array([y]))[0]
    center = np.log(max(y, 1e-3)) if loss.link == "log" else y
    reach = 40.0 if loss.link == "log" else 40 + 2 * abs(u[0])
    best = minimize_scalar(
        lambda z: float(loss.value(np.array([z]), np.array([y]))[0] - u[0] * z),
        bounds=(center - reach, center + reach),
        method="bounded",
        options={"xatol": 1e-10},
    )
    size = 1 + abs(y)
    assert found >= -best.fun - 1e-6 * (size + abs(found))
    assert np.isclose(found, -best.fun, rtol=1e-5, atol=1e-5 * size)
    assert np.isclose(Loss.conjugate(loss, u, np.array([y]))[0], found, rtol=1e-6, atol=1e-6 * size)


@each
@settings(max_examples=n_examples(100))
@given(z=points, y=counts, at=points, share=st.floats(0, 1))
def test_fenchel_and_young(name, z, y, at, share):
    """L(z, y) + L*(u) >= u z, with equality at the slope u of L in z."""
    loss, y = CASES[name][0], np.array([target_of(name, y)])
    z, size = np.array([z]), abs(y) * np.log1p(abs(y))
    u, own = share * loss.derivative(np.array([at]), y), loss.derivative(z, y)
    rounding = 1e-10 * (1 + abs(loss.value(z, y)) + abs(loss.conjugate(u, y)) + abs(u * z) + size)
    assert loss.value(z, y) + loss.conjugate(u, y) >= u * z - rounding
    rounding = 1e-10 * (
        1 + abs(loss.value(z, y)) + abs(loss.conjugate(own, y)) + abs(own * z) + size
    )
    assert abs(loss.value(z, y) + loss.conjugate(own, y) - own * z) <= rounding


@each_regression
@pytest.mark.parametrize("z", [-1e300, -1e3, 0.0, 1e3, 1e300])
def test_nothing_overflows_but_squares(name, z):
    loss, y = CASES[name][0], np.array([1e-30, 1.0, 1e6])
    with np.errstate(over="ignore"):
        answers = [
            method(np.full(3, z), y) for method in (loss.value, loss.derivative, loss.curvature)
        ]
    assert not np.isnan(answers).any()
    if CASES[name][0].link == "log":
        assert np.isfinite(answers).all()


@each
def test_bounds_are_bounds_that_are_reached(name):
    """`smoothness` is the largest curvature; `slopes` are the least and largest derivative, as
    `bounded_slope` has it."""
    loss = CASES[name][0]
    curvature = np.max([loss.curvature(Z, y) for _, y in targets(name)])
    if np.isfinite(loss.smoothness):
        assert loss.smoothness == pytest.approx(curvature)
    far = np.array([-300.0, 300.0])
    low, high = loss.slopes
    for y in CASES[name][1]:
        slopes = loss.bounded_slope(loss.derivative(far, np.full(2, y)), np.full(2, y))
        if np.isfinite(low):
            assert slopes.min() == pytest.approx(low)
        if np.isfinite(high):
            assert slopes.max() == pytest.approx(high, abs=1e-12)


@each
def test_flags_of_the_curvature_hold(name):
    rise_then_fall = []
    for loss, y in targets(name):
        h = loss.curvature(Z, y)
        assert (loss.value(Z, y) >= 0).all()
        assert (h >= 0).all()
        levels = len(np.unique(h.round(9)))
        assert loss.is_quadratic == (levels == 1)
        assert loss.is_piecewise_quadratic == (levels <= 2)
        turns = np.sign(np.diff(h.round(12)))
        rise_then_fall.append((np.diff(turns[turns != 0]) <= 0).all())
        if loss.is_self_concordant:
            assert (abs(np.gradient(h, Z, edge_order=2)) <= h * (1 + 1e-4) + 1e-9).all()
    assert loss.is_unimodal == all(rise_then_fall)
    assert loss.is_classifier == (name in CLASSIFIERS)
    assert loss.is_smoothed == (name == "quantile")
    means = ("poisson", "tweedie", "gamma")
    assert loss.is_self_concordant == (name in ("logistic", "ordinal", *means))
    assert not loss.is_joint and loss.is_ordered == (name == "ordinal")
    assert loss.link == (
        "log" if name in means else "cumulative" if loss.is_ordered else "identity"
    )


@each
def test_dual_growth_is_the_least_bound(name):
    """The dual growth c is the least with L*(a) - L*(u) - z (a - u) <= c (a - u)^2 / 2 L''(z) at u
    = L'(z)."""
    loss = CASES[name][0]
    if np.isinf(loss.dual_growth):
        return
    largest = 0.0
    for _, y in targets(name):
        z = Z[::40]
        u, h, y = loss.derivative(z, y[::40]), loss.curvature(z, y[::40]), y[::40]
        # The ends of the domain of L*.
        ends = (0 * u, -y) if name in CLASSIFIERS else (np.clip(-u, *loss.slopes),)
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
    for loss, y in targets(name):
        if loss.degree == 0:
            assert loss.scaled(c) is loss
            continue
        scaled = c**loss.degree * loss.scaled(c).value(Z, y)
        np.testing.assert_allclose(loss.value(c * Z, c * y), scaled, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["squared", "poisson", "tweedie", "gamma"])
@pytest.mark.parametrize("b", [-2.0, 0.1, 3.0])
def test_one_step_finds_the_best_intercept(name, b):
    loss, y = CASES[name][0], np.array([0.5, 1.0, 7.0])
    slope, curvature = (np.mean(of(np.full(3, b), y)) for of in (loss.derivative, loss.curvature))
    at = b + loss.intercept_step(slope, curvature)
    assert abs(np.mean(loss.derivative(np.full(3, at), y))) < 1e-12
    assert at == pytest.approx(np.mean(y) if name == "squared" else np.log(np.mean(y)))


@as_within_a_call
def test_a_step_without_curvature_is_finite_or_downward():
    assert Squared().intercept_step(1.0, 0.0) == pytest.approx(-1e300)
    # without any count the best intercept is -inf
    assert Poisson().intercept_step(2.0, 1.0) == -np.inf
    # the curvature of zeros is (2 - power) times their slope
    assert Tweedie().intercept_step(1.0, 0.5) == -np.inf
    assert Gamma().intercept_step(0.0, 0.0) == pytest.approx(np.log(1e-300))


@pytest.mark.parametrize("power", [1.001, 1.05, 1.5, 1.95, 1.999])
def test_tweedie_losses_are_half_the_deviance(power):
    """scikit-learn has the same deviance. Near the powers 1 and 2 it is that of `Poisson` and of
    `Gamma`."""
    deviance = pytest.importorskip("sklearn.metrics").mean_tweedie_deviance
    z, y = np.meshgrid(np.linspace(-5, 5, 41), [1e-4, 0.5, 3.0, 1e4])
    loss = Tweedie(power)
    for each_z, each_y in zip(z.ravel(), y.ravel(), strict=True):
        theirs = deviance([each_y], [np.exp(each_z)], power=power) / 2
        assert np.isclose(
            loss.value(np.array([each_z]), np.array([each_y]))[0],
            theirs,
            rtol=1e-7,
            atol=1e-6 * each_y,
        )
    for limit, at in ((Poisson(), 1 + 1e-9), (Gamma(), 2 - 1e-9)):
        for name in ("value", "derivative", "curvature"):
            near, there = getattr(Tweedie(at), name)(z, y), getattr(limit, name)(z, y)
            assert (np.abs(near - there) <= 1e-6 * (1 + y + np.abs(there))).all()


@pytest.mark.parametrize("power", [1.001, 1.05, 1.5, 1.95, 1.999])
def test_the_conjugate_of_tweedie_losses_is_exact_for_all_powers(power):
    """At the slope u of L in z it is u z - L(z, y), also for slopes of which the mean is far from
    y."""
    loss, (z, y) = (
        Tweedie(power),
        np.meshgrid(np.linspace(-12, 12, 97), [0.0, 1e-6, 0.3, 1.0, 50.0, 1e6]),
    )
    u, value = loss.derivative(z, y), loss.value(z, y)
    size = np.abs(u * z) + value + np.abs(u * np.log(np.where(y > 0, y, 1))) + y ** (2 - power)
    assert (np.abs(loss.conjugate(u, y) - (u * z - value)) <= 1e-12 * size).all()


def test_margins_of_all_classes_that_are_larger_by_one_number_change_nothing(rng):
    loss, z = LOSSES["multinomial"], rng.normal(size=(4, 30))
    y = np.where(np.arange(4)[:, None] == np.arange(30) % 4, 1.0, -1.0)
    for far in (-1e4, 1e4):
        np.testing.assert_allclose(loss.value(z + far, y), loss.value(z, y), atol=1e-11)
        np.testing.assert_allclose(loss.derivative(z + far, y), loss.derivative(z, y), atol=1e-11)


@pytest.mark.every_case
@each
def test_losses_are_found_by_name(name):
    loss = CASES[name][0]
    assert loss.name == name
    assert type(LOSSES[name]) is type(loss)
    assert type(check_loss(name, (name,))) is type(loss)
    assert check_loss(loss, (name,)) is loss
    with pytest.raises(ValueError, match="loss must be one of"):
        check_loss(loss, ("none of these",))


def test_the_unit_of_the_residual_is_a_robust_spread():
    """Weights count as copies; of a normal sample the spread is its deviation, and of a constant it
    is 1."""
    rng = np.random.default_rng(0)

    def spread(y, weight=None):
        weight = np.ones(len(y)) if weight is None else weight
        return Huber().of_target(y, weight).delta / Huber().of_target(np.ones(9), np.ones(9)).delta

    y, k = rng.standard_normal(501), rng.integers(1, 5, 501)
    assert spread(y, k / k.mean()) == pytest.approx(spread(np.repeat(y, k)), rel=1e-14)
    assert abs(spread(rng.standard_normal(10**5)) - 1) < 0.01
    assert spread(np.r_[np.zeros(90), np.ones(10)]) == pytest.approx(0.3)


@pytest.mark.every_case
@pytest.mark.parametrize("what", WRONG)
def test_check_says_what_is_wrong_with_a_loss(what):
    loss, error, message = WRONG[what]
    with pytest.raises(error, match=f"(loss 'broken': )?{message}"):
        check(loss, np.linspace(-2.0, 3.0, 40))


@each
@pytest.mark.parametrize("unit", [1e-20, 1e-3, 1.0, 1e6, 1e20])
def test_check_finds_nothing_wrong_with_losses_that_are_right(name, unit):
    loss = CASES[name][0]
    y = np.exp(2 * np.random.default_rng(0).standard_normal(200))
    if name == "ordinal":
        y = np.digitize(y, [0.3, 0.6, 1, 2])
    elif name in CLASSIFIERS:
        y = np.where(y > 1, "b", "a")
    elif name in ("poisson", "tweedie"):
        y = unit * np.where(y > 0.5, y, 0.0)
    elif name == "gamma":
        y = unit * y
    else:
        y, loss = unit * (y - 1), type(loss)() if name in ("huber", "quantile") else loss
    assert check(loss, y) is None


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("centre", [0.0, 1e4])
def test_check_takes_a_loss_curved_on_another_scale_than_that_of_y(unit, centre):
    check(LogCosh(), unit * (np.random.default_rng(0).standard_normal(100) + centre))


def test_check_of_other_things():
    with pytest.raises(TypeError, match=r"derived from sparserf.losses.Loss, got 'squared'"):
        check("squared", [1.0, 2.0])
    with pytest.raises(ValueError, match="two labels"):
        check(Logistic(), [1, 2, 3])
    with pytest.raises(ValueError, match="finite"):
        check(LogCosh(), [1.0, np.nan])
    with pytest.raises(NotImplementedError, match="must have curvature"):
        check(
            type("Half", (Loss,), {"value": LogCosh.value, "derivative": LogCosh.derivative})(),
            [1.0, 2.0],
        )
    for y in ([3.0], [0.0], [0.0, 0.0], [1, 2, 3]):
        check(LogCosh(), y)


# The pseudo-row whose label is unknown, beside rows that were held out


def test_an_unknown_row_has_the_mean_loss_of_both_labels_and_its_slope():
    loss, h = Logistic(), 1e-5
    of_row = lambda z: loss.of_unknown_row(z, 0.3)  # noqa: E731
    np.testing.assert_allclose(of_row(Z), (loss.value(Z, -1.0) + loss.value(Z, 1.0)) / 2)
    slope = (of_row(Z + h) - of_row(Z - h)) / (2 * h)
    np.testing.assert_allclose(loss.slope_of_unknown_row(Z, 0.3), slope, atol=1e-9)


def test_an_unknown_row_has_the_mean_loss_of_all_classes_and_its_slope(rng):
    loss, z, h = LOSSES["multinomial"], rng.standard_normal((3, 50)), 1e-5
    of_rows = lambda z: loss.of_unknown_row(z, 0.3).sum(axis=0)  # noqa: E731
    each_class = [loss.value(z, np.where(np.arange(3) == k, 1.0, -1.0)[:, None]) for k in range(3)]
    np.testing.assert_allclose(of_rows(z), np.mean(each_class, axis=0).sum(axis=0))
    steps = h * np.eye(3)[:, :, None]
    slope = [(of_rows(z + step) - of_rows(z - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(loss.slope_of_unknown_row(z, 0.3), slope, atol=1e-9)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_an_unknown_row_counts_as_one(name):
    """Beside n rows of equal weight, or of such weights that they count as n."""
    y, doubt = np.ones(9), LOSSES[name].doubt
    assert doubt(y, np.full(9, 0.3)) == pytest.approx(1 / 10)
    assert doubt(y, np.array([1.0] * 4 + [0.0] * 5)) == pytest.approx(1 / 5)
    assert doubt(y, np.array([1e9] + [1e-9] * 8)) == pytest.approx(1 / 2)


@pytest.mark.parametrize("value", [None, True, 2, 0.5, "median", (), (1, 2), (1.0, 2), ("a", "b")])
def test_parameters_of_a_loss_are_numbers_words_and_tuples_of_one_of_them(value):
    assert is_parameter(value)
    for other in ((value, "a", 1), [1.0], {}, np.ones(2), (None,)):
        assert not is_parameter(other)
