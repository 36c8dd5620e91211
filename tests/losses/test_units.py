"""The same model in all units: of y by every loss and function, of the weights, and of X where
columns are in robust units."""

from functools import partial

import numpy as np
import pytest

import sparserf as srf
from sparserf.losses import Huber, Quantile, Tweedie

from ..conftest import ignore_convergence
from .own_losses import OwnQuantile

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
F = X[:, 0] + np.sin(2 * X[:, 1])
COUNTS, NOISE, WEIGHT = RNG.poisson(np.exp(F)), RNG.normal(size=N), RNG.integers(1, 4, N) * 1.0
REAL, POSITIVE = F + 0.3 * NOISE + 5, np.exp(F) * RNG.gamma(3, 1 / 3, N)
AMOUNTS = COUNTS * POSITIVE

# Each loss as a function of the unit of y, and its target.
LOSSES = {
    "squared": (lambda unit: "squared", REAL),
    "huber": (lambda unit: "huber", REAL),
    "huber of a delta": (lambda unit: Huber(0.5 * unit), REAL),
    "quantile": (lambda unit: "quantile", REAL),
    "quantile of a level": (lambda unit: Quantile(0.9), REAL),
    "quantile, smoothed": (lambda unit: Quantile(0.2, unit), REAL),
    "a quantile of your own": (OwnQuantile, REAL),
    "poisson": (lambda unit: "poisson", COUNTS),
    "tweedie": (lambda unit: "tweedie", AMOUNTS),
    "tweedie, 1.2": (lambda unit: Tweedie(1.2), AMOUNTS),
    "gamma": (lambda unit: "gamma", POSITIVE),
}
# Functions with the penalty that they have by default or that is the same in all units.
FITS = {
    "mfga": partial(srf.mfga, n_nonzero_coefs=10, alpha=1e-3, rng=0),
    "harfe": partial(srf.harfe, n_components=200, n_nonzero_coefs=20, alpha=1e-3, rng=0),
    "harfe, the paper's": partial(
        srf.harfe,
        activation="sin",
        scale=None,
        n_components=100,
        n_nonzero_coefs=10,
        alpha=1e-4,
        backtracking=False,
        start="zero",
        rng=0,
    ),
    "drp": partial(srf.drp, alpha=1e-3, rng=0),
    "drp, a large penalty": partial(srf.drp, alpha=1.0, rng=0),
    "drp, a sketch": partial(srf.drp, alpha=1e-3, n_projections=3, rng=0),
}
UNITS = [1e-300, 1e-20, 1e-3, 1e3, 1e5, 1e25, 1e300]


def distance(one, other):
    """Return the root mean square of the difference of predictions, relative to the deviation of
    the first."""
    scale = max(np.abs(one).max(), np.abs(other).max())
    return np.sqrt(np.mean((one / scale - other / scale) ** 2) / np.var(one / scale))


def possible(unit, y):
    """Skip a unit in which counts and amounts are refused."""
    if not 1e-289 < unit < 1e29 and y is not REAL:
        pytest.skip("counts and amounts of this size are refused")


@ignore_convergence
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_model_in_all_units_of_y(loss, fit, unit):
    of_unit, y = LOSSES[loss]
    possible(unit, y)
    plain, scaled = (FITS[fit](X, u * y, loss=of_unit(u)) for u in (1.0, unit))
    assert distance(plain.predict(X), scaled.predict(X) / unit) < 1e-5
    assert np.corrcoef(plain.decision_function(X), F)[0, 1] > 0.6  # there is a model
    assert len(plain.features) == len(scaled.features)


@ignore_convergence
@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-20, 1e5])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_default_is_the_same_in_all_units_of_y(loss, unit):
    of_unit, y = LOSSES[loss]
    fit = partial(srf.sparse_rf, X, effort=0.1, rng=0)
    plain, scaled = (fit(u * y, loss=of_unit(u)) for u in (1.0, unit))
    if "quantile" not in loss:
        # features are in single precision: rounding decides between the few draws that tell alike
        most = 0.5 if plain.link == "log" else 0.1
        assert distance(plain.predict(X), scaled.predict(X) / unit) < most
    else:
        # rounding decides which rows are at a corner, and so which features are drawn, as changes
        # of 1e-15 of y do
        measure = Quantile({"quantile": 0.5, "quantile, smoothed": 0.2}.get(loss, 0.9), 0.1)
        losses = [
            np.mean(measure.value(f, y)) for f in (plain.predict(X), scaled.predict(X) / unit)
        ]
        constant = np.mean(measure.value(np.full(N, np.quantile(y, measure.level)), y))
        assert max(losses) < 0.5 * constant


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_what_the_default_says_of_itself_is_in_units_of_y(loss):
    fit = partial(srf.sparse_rf, X, effort=0.1, rng=0, loss=loss)
    plain, scaled = fit(REAL), fit(1000 * REAL)
    power = 1 if loss == "quantile" else 2
    assert distance(plain.predict(X), scaled.predict(X) / 1000) < 0.1
    assert scaled.info.validation_loss == pytest.approx(
        1000**power * plain.info.validation_loss, rel=0.2
    )
    for name, value in plain.loss_parameters.items():
        by = 1000 if name in ("delta", "smoothing") else 1
        assert scaled.loss_parameters[name] == pytest.approx(by * value)


@ignore_convergence
@pytest.mark.parametrize("unit", [1e-20, 1e3, 1e25])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_l1_penalty_is_multiplied_by_a_power_of_the_unit(loss, unit):
    """The power that docs/losses.md lists, and no power for the penalties of a path that begins by
    itself."""
    of_unit, y = LOSSES[loss]
    power = {
        "squared": 1,
        "huber": 1,
        "poisson": 1,
        "tweedie": 0.5,
        "tweedie, 1.2": 0.8,
        "huber of a delta": 1,
    }.get(loss, 0)
    how = {"features": "gaussian", "n_components": 100, "rng": 0}
    plain, scaled = (
        srf.sparse_rf(X, u * y, loss=of_unit(u), alpha=0.02 * u**power, **how) for u in (1.0, unit)
    )
    assert distance(plain.predict(X), scaled.predict(X) / unit) < 1e-2
    plain, scaled = (
        srf.sparse_rf_path(X, u * y, loss=of_unit(u), n_alphas=4, **how)[-1] for u in (1.0, unit)
    )
    assert distance(plain.predict(X), scaled.predict(X) / unit) < 1e-2


@pytest.mark.slow
@ignore_convergence
@pytest.mark.parametrize("unit", [1e-20, 1e3, 1e25])
# of which `prune` knows the name alone
@pytest.mark.parametrize("loss", [name for name in LOSSES if "your own" not in name])
def test_what_is_done_with_models_is_the_same_in_all_units_of_y(loss, unit):
    """`prune`, `intervals` and `cross_validate`."""
    of_unit, y = LOSSES[loss]
    found = []
    for u in (1.0, unit):
        fit = partial(srf.mfga, n_nonzero_coefs=8, alpha=1e-3, rng=0, loss=of_unit(u))
        pruned = srf.prune(fit(X, u * y), X, max_terms=4)
        low, high = srf.intervals(fit, X, u * y, adaptive=False, rng=0).predict(X)
        best = srf.cross_validate(fit, X, u * y, {"alpha": [1e-3, 1.0, 1e3]}, cv=2, rng=0).best
        found.append((pruned.predict(X) / u, low / u, high / u, best))
    for one, other in zip(*(each[:3] for each in found), strict=True):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-5)
    assert found[0][3] == found[1][3]


@ignore_convergence
@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("fit", ["mfga", "harfe"])
@pytest.mark.parametrize("loss", LOSSES)
def test_units_of_columns_do_not_matter_where_they_are_robust(loss, fit, unit):
    of_unit, y = LOSSES[loss]
    plain, scaled = (FITS[fit](u * X, y, loss=of_unit(1.0)).predict(u * X) for u in (1.0, unit))
    assert distance(plain, scaled) < 1e-6


@ignore_convergence
@pytest.mark.parametrize("y", [1e-310, 1e-320, 5e-324, 1e300])
@pytest.mark.parametrize("fit", [*FITS, "sparse_rf", "default"])
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_targets_of_the_smallest_and_largest_numbers(loss, fit, y):
    """Predictions are finite and of the size of y."""
    fits = {
        "sparse_rf": partial(
            srf.sparse_rf, features="gaussian", n_components=50, alpha=0.01, rng=0
        ),
        "default": partial(srf.sparse_rf, effort=0.02, rng=0),
        **FITS,
    }
    if fit == "default" and y == 5e-324:
        # the default fits two values without an error, and the l1 solver then divides by it
        y = 1e-320
    target = np.where(F > 0, y, -2 * y) if y < 1 else y * REAL
    model = fits[fit](X, target, loss=loss)
    assert np.abs(model.predict(X)).max() / 10 <= np.abs(target).max()
    assert np.isfinite([model.intercept, *model.info.objective]).all()
    assert model.info.dual_gap is None if fit == "default" else np.isfinite(model.info.dual_gap)


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_counts_of_the_smallest_numbers_are_refused(loss):
    with pytest.raises(
        ValueError, match=r"y must have an entry of at least 1e-290.* divide it by a unit"
    ):
        srf.drp(X, 1e-310 * COUNTS, alpha=1e-3, loss=loss)


@ignore_convergence
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit", [*FITS, "relu", "taylor"])
@pytest.mark.parametrize("loss", ["poisson", "tweedie", "gamma"])
def test_no_prediction_is_infinite_far_out(loss, fit, dtype):
    fits = {
        "relu": partial(srf.harfe, activation="relu", scale=None, n_components=100, rng=0),
        "taylor": partial(srf.mfga, features=srf.Linear(), n_nonzero_coefs=3, alpha=1e-3, rng=0),
        **FITS,
    }
    model = fits[fit](X, LOSSES[loss][1], loss=loss)
    with np.errstate(over="raise", invalid="raise"):
        for far in (1e2, 1e4, 1e10, 1e30):
            for rows in (far * X, -far * X):
                predicted = model.predict(rows.astype(dtype))
                assert np.isfinite(predicted).all() and predicted.dtype == dtype


@pytest.mark.parametrize("loss", ["poisson", "tweedie", "gamma"])
def test_noise_is_the_constant_in_all_units_of_y(loss):
    rng = np.random.default_rng(3)
    y = rng.poisson(3.0, N) if loss == "poisson" else rng.gamma(3, 1 / 3, N)
    for unit in (1e-20, 1.0, 1e20):
        model = srf.sparse_rf(X, unit * y, loss=loss, effort=0.1, rng=0)
        assert len(model.features) == 0
        np.testing.assert_allclose(model.predict(X[:1]), unit * y.mean(), rtol=1e-6)
