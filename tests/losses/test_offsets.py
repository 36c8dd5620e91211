"""Offsets: a number for each row that is added to f in the loss, and to f where a model
predicts."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit, xlogy

import sparserf as srf
from sparserf.losses import LOSSES
from sparserf.losses.offset import OffsetLoss

from .. import kinds_of_input
from ..conftest import bits, convergence_ignored, ignore_convergence
from ..rows.homes import HOMES, OtherDevice
from .own_losses import LogCosh

N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
EXPOSURE = np.exp(RNG.normal(0, 1, N))
OFFSET = np.log(EXPOSURE)
COUNTS = RNG.poisson(3 * EXPOSURE * np.exp(F)).astype(float)
REAL = F + OFFSET + 0.3 * RNG.standard_normal(N)
LABELS = np.where(RNG.random(N) < expit(2 * F + OFFSET), "yes", "no")
TARGETS = {
    "squared": REAL,
    "huber": REAL,
    "quantile": REAL,
    "poisson": COUNTS,
    "gamma": EXPOSURE * np.exp(F) * RNG.gamma(3, 1 / 3, N),
    "squared_hinge": LABELS,
    "logistic": LABELS,
    "multinomial": LABELS,
}
DRAWN = srf.sparse_rf(
    X, F, features="gaussian", gamma=0.3, alpha=0.01, n_components=300, rng=0
).features


def last(path, *given, **options):
    """Return the last model of a path."""
    return path(*given, **options)[-1]


FITS = {
    "sparse_rf": partial(srf.sparse_rf, features=DRAWN, alpha=0.02, exact=True, tol=1e-7),
    "sparse_rf, chosen": partial(srf.sparse_rf, n_components=50, rng=0),
    "sparse_rf_path": partial(
        last, srf.sparse_rf_path, features=DRAWN, alphas=[0.1, 0.02], exact=True, tol=1e-7
    ),
    "harfe": partial(srf.harfe, features=DRAWN, n_nonzero_coefs=12, alpha=1e-4),
    "harfe_path": partial(last, srf.harfe_path, features=DRAWN, n_nonzero_coefs=[4, 12]),
    "mfga": partial(srf.mfga, n_nonzero_coefs=6, alpha=1e-3, rng=0),
    "mfga_path": partial(last, srf.mfga_path, n_nonzero_coefs=6, n_select=2, rng=0),
    "drp": partial(srf.drp, alpha=0.01, scale=None, rng=0),
    "drp, a sketch": partial(srf.drp, alpha=0.01, n_projections=3, rng=0),
    "drp_path": partial(last, srf.drp_path, alphas=[0.1, 0.01], scale=None, rng=0),
}
EVERY = [(name, loss) for name in FITS for loss in TARGETS]
each_fit = pytest.mark.parametrize(("name", "loss"), EVERY, ids=lambda value: value)
# What chooses features by a search that ends early differs by more than rounding from the same
# problem written otherwise.
SAME_OPTIMUM = ("sparse_rf", "sparse_rf_path", "drp", "drp_path")


# The problem that is solved


@ignore_convergence
@each_fit
def test_zeros_are_as_no_offset_to_the_bit(name, loss):
    fit, y = partial(FITS[name], loss=loss), TARGETS[loss]
    model, plain = fit(X, y, offset=np.zeros(N)), fit(X, y)
    assert bits(model) == bits(plain) and model.info.objective == plain.info.objective
    assert np.array_equal(model.predict(X, offset=np.zeros(N)), plain.predict(X))


@ignore_convergence
@each_fit
def test_the_intercept_takes_a_constant_offset(name, loss):
    fit, y = partial(FITS[name], loss=loss), TARGETS[loss]
    model, plain = fit(X, y, offset=np.full(N, 0.75)), fit(X, y)
    # the default has features in single precision, and decides by them
    atol = 0.02 if "chosen" in name else 1e-6
    np.testing.assert_allclose(
        model.decision_function(X) + 0.75, plain.decision_function(X), atol=atol
    )
    np.testing.assert_allclose(
        model.decision_function(X, offset=np.full(N, 0.75)), plain.decision_function(X), atol=atol
    )
    np.testing.assert_allclose(model.info.objective[-1], plain.info.objective[-1], rtol=atol)


@ignore_convergence
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
@pytest.mark.parametrize("name", FITS)
def test_losses_of_the_residual_take_it_from_the_target(name, loss):
    """The same bits, whatever the loss chooses from the target, too."""
    model, less = (
        FITS[name](X, REAL, loss=loss, offset=OFFSET),
        FITS[name](X, REAL - OFFSET, loss=loss),
    )
    assert bits(model) == bits(less) and model.loss_parameters == less.loss_parameters
    np.testing.assert_allclose(
        model.predict(X, offset=OFFSET), less.predict(X) + OFFSET, rtol=1e-15, atol=1e-15
    )


@pytest.mark.parametrize("name", SAME_OPTIMUM)
def test_counts_with_exposures_are_rates_with_weights(name):
    """(1/n) sum e L(f, y / e) is the same objective, for weights of mean 1 divided by the mean of
    e; ridge penalties know."""
    mean, options, is_ridge = EXPOSURE.mean(), FITS[name].keywords, name.startswith("drp")
    scaled = {
        key: np.divide(options[key], 1 if is_ridge else mean).tolist()
        for key in ("alpha", "alphas")
        if key in options
    }
    model = FITS[name](X, COUNTS, loss="poisson", offset=OFFSET)
    of_rates = FITS[name](X, COUNTS / EXPOSURE, loss="poisson", sample_weight=EXPOSURE, **scaled)
    np.testing.assert_allclose(model.decision_function(X), of_rates.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(
        model.info.objective[-1], mean * of_rates.info.objective[-1], rtol=1e-6
    )
    np.testing.assert_allclose(
        model.predict(X, offset=OFFSET), EXPOSURE * model.predict(X), rtol=1e-12
    )


@pytest.mark.parametrize("name", SAME_OPTIMUM)
def test_gamma_loss_is_that_of_the_amount_per_exposure(name):
    y = TARGETS["gamma"]
    model, per_unit = (
        FITS[name](X, y, loss="gamma", offset=OFFSET),
        FITS[name](X, y / EXPOSURE, loss="gamma"),
    )
    np.testing.assert_allclose(model.decision_function(X), per_unit.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("size", [1.0, 1e3])
@pytest.mark.parametrize("name", SAME_OPTIMUM)
def test_a_loss_of_your_own(name, size):
    """Here y and the offset are far from each other and from 0, and what is fitted is their
    difference."""
    model = FITS[name](X, REAL - size, loss=LogCosh(), offset=np.full(N, -size) + OFFSET)
    np.testing.assert_allclose(
        model.decision_function(X),
        FITS[name](X, REAL - OFFSET, loss=LogCosh()).decision_function(X),
        atol=2e-3,
    )


MEANS = {
    "poisson": lambda z, y: (np.exp(z) - y + xlogy(y, y) - y * z, np.exp(z) - y),
    "gamma": lambda z, y: (y * np.exp(-z) - 1 - np.log(y) + z, 1 - y * np.exp(-z)),
    "logistic": lambda z, y: (np.logaddexp(0, -y * z), -y * expit(-y * z)),
    "squared_hinge": lambda z, y: (
        np.maximum(0, 1 - y * z) ** 2,
        -2 * y * np.maximum(0, 1 - y * z),
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", MEANS)
def test_drp_minimises_what_it_says(loss, weighted):
    y = np.where(LABELS == "yes", 1.0, -1.0) if TARGETS[loss] is LABELS else TARGETS[loss]
    weight = RNG.integers(0, 3, N) * 1.0 if weighted else np.ones(N)
    s = weight / weight.sum()
    alpha = 0.01 * (s @ y if loss == "poisson" else 1.0)  # in units of the mean count

    def objective(x):
        value, slope = MEANS[loss](X @ x[:3] + x[3] + OFFSET, y)
        return s @ value + alpha / 2 * x[:3] @ x[:3], np.append(
            X.T @ (s * slope) + alpha * x[:3], s @ slope
        )

    found = minimize(objective, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-10})
    how = {"loss": loss, "offset": OFFSET, "sample_weight": weight, "scale": None}
    model = srf.drp(X, TARGETS[loss], alpha=0.01, rng=0, **how)
    np.testing.assert_allclose(np.append(model.coef, model.intercept), found.x, atol=1e-6)
    np.testing.assert_allclose(model.info.objective[-1], found.fun, rtol=1e-9)
    assert np.linalg.norm(model.coef - found.x[:3]) <= (
        model.info.error_bound + 1e-6
    ) * np.linalg.norm(found.x[:3])


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("loss", MEANS)
def test_the_gap_bounds_the_distance_to_the_optimum(loss, exact):
    """Of a fit that ends early, over the same features."""
    how = {"features": DRAWN, "alpha": 0.02, "loss": loss, "offset": OFFSET}
    with convergence_ignored():
        early = srf.sparse_rf(X, TARGETS[loss], exact=exact, max_iter=2, tol=1e-9, **how).info
        best = srf.sparse_rf(X, TARGETS[loss], exact=True, tol=1e-8, **how).info
    assert best.dual_gap <= 1e-8 * best.objective[-1]
    assert (
        0
        <= early.objective[-1] - best.objective[-1] + best.dual_gap
        <= early.dual_gap + 2 * best.dual_gap
    )


@ignore_convergence
@pytest.mark.parametrize("size", [1e3, 1e8, 1e10])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
def test_the_bound_of_drp_counts_the_rounding_of_offsets(loss, size):
    """The intercept takes the constant of large offsets, but margins are rounded with it."""
    model = srf.drp(X, LABELS, alpha=0.01, loss=loss, offset=OFFSET + size, rng=0)
    exact = srf.drp(X, LABELS, alpha=0.01, loss=loss, offset=OFFSET, rng=0, tol=1e-10)
    distance = np.linalg.norm(model.coef - exact.coef) / np.linalg.norm(exact.coef)
    assert distance <= model.info.error_bound + exact.info.error_bound


@pytest.mark.parametrize("loss", ["poisson", "gamma", "logistic", "squared_hinge"])
def test_the_parts_of_an_offset_loss_belong_together(loss):
    """Derivatives are differences of values, and value and conjugate meet at the slope."""
    base, y = (
        LOSSES[loss],
        np.where(LABELS == "yes", 1.0, -1.0) if TARGETS[loss] is LABELS else TARGETS[loss],
    )
    loss = OffsetLoss(base)
    both, z, h = OffsetLoss.targets(y, OFFSET), F + 0.1, 1e-6
    slope = loss.derivative(z, both)
    np.testing.assert_allclose(
        slope, (loss.value(z + h, both) - loss.value(z - h, both)) / (2 * h), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        loss.value(z, both) + loss.conjugate(slope, both), z * slope, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(loss.value(z, both), base.value(z + OFFSET, y))
    np.testing.assert_array_equal(loss.shift_size(both), abs(OFFSET))


@ignore_convergence
@pytest.mark.parametrize(
    ("name", "loss"), [(name, loss) for name, loss in EVERY if name != "sparse_rf, chosen"]
)
def test_rows_in_another_order(name, loss):
    order = np.random.default_rng(1).permutation(N)
    y, fit = TARGETS[loss], partial(FITS[name], loss=loss)
    model, other = fit(X, y, offset=OFFSET), fit(X[order], y[order], offset=OFFSET[order])
    np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-4)


@ignore_convergence
@each_fit
def test_rows_of_weight_zero_do_not_matter(name, loss):
    weight, y = np.r_[np.zeros(40), np.ones(N - 40)], TARGETS[loss]
    model = FITS[name](
        X, y, loss=loss, sample_weight=weight, offset=np.where(weight > 0, OFFSET, 60.0)
    )
    assert bits(model) == bits(FITS[name](X[40:], y[40:], loss=loss, offset=OFFSET[40:]))


@pytest.mark.slow
def test_several_real_targets_have_offsets_of_their_own(rng):
    Y, offsets = np.column_stack([REAL, -F]), np.column_stack([OFFSET, 2 * OFFSET])
    for name in ("sparse_rf", "sparse_rf, chosen", "harfe", "mfga", "drp"):
        model = FITS[name](X, Y, offset=offsets)
        assert bits(model) == bits(FITS[name](X, Y - offsets))
        assert bits(FITS[name](X, Y, offset=OFFSET)) == bits(FITS[name](X, Y - OFFSET[:, None]))
        np.testing.assert_allclose(
            model.predict(X, offset=offsets), model.predict(X) + offsets, rtol=1e-14, atol=1e-14
        )
        np.testing.assert_allclose(
            model.predict(X, offset=OFFSET),
            model.predict(X) + OFFSET[:, None],
            rtol=1e-14,
            atol=1e-14,
        )
    two = np.column_stack([COUNTS, COUNTS[::-1]])
    model = srf.drp(
        X, two, alpha=0.01, loss="poisson", offset=np.column_stack([OFFSET, 0 * OFFSET]), rng=0
    )
    least = two.mean(axis=0).min()  # all outputs have the penalty of the smallest
    alone = partial(srf.drp, X, loss="poisson", rng=0)
    one = [
        alone(y, alpha=0.01 * least / y.mean(), offset=o).coef
        for y, o in ((COUNTS, OFFSET), (two[:, 1], None))
    ]
    np.testing.assert_allclose(model.coef, one, atol=1e-6)


# The default, and what comes after a fit


def deviance(model, rows, offset):
    """Return half the mean Poisson deviance of counts."""
    m = model.predict(X[rows], offset=offset)
    return np.mean(xlogy(COUNTS[rows], COUNTS[rows] / m) - COUNTS[rows] + m)


@pytest.mark.slow
def test_the_default_knows_exposures():
    """Beside one that does not, and about as well as rates with weights; in the mean over its rows
    it predicts the counts."""
    fitted, new = np.arange(200), np.arange(200, N)
    how = {"loss": "poisson", "n_components": 300, "rng": 0}
    model = srf.sparse_rf(X[fitted], COUNTS[fitted], offset=OFFSET[fitted], **how)
    without = srf.sparse_rf(X[fitted], COUNTS[fitted], **how)
    of_rates = srf.sparse_rf(
        X[fitted], COUNTS[fitted] / EXPOSURE[fitted], sample_weight=EXPOSURE[fitted], **how
    )
    assert deviance(model, new, OFFSET[new]) < 0.3 * deviance(without, new, None)
    assert deviance(model, new, OFFSET[new]) < 1.3 * deviance(of_rates, new, OFFSET[new])
    np.testing.assert_allclose(
        model.predict(X[fitted], offset=OFFSET[fitted]).sum(), COUNTS[fitted].sum(), rtol=1e-9
    )


@pytest.mark.slow
def test_the_default_of_labels_knows_offsets(rng):
    Z = rng.uniform(-2, 2, (600, 2))
    offset = rng.normal(0, 2, 600)
    label = rng.random(600) < expit(2 * Z[:, 0] + offset)
    fitted, new = np.arange(300), np.arange(300, 600)
    model = srf.sparse_rf(
        Z[fitted], label[fitted], loss="logistic", offset=offset[fitted], effort=0.3, rng=0
    )
    without = srf.sparse_rf(Z[fitted], label[fitted], loss="logistic", effort=0.3, rng=0)
    right = [
        np.mean(model.predict(Z[new], offset=offset[new]) == label[new]),
        np.mean(without.predict(Z[new]) == label[new]),
    ]
    assert right[0] > right[1] + 0.05
    p = model.predict_proba(Z[new], offset=offset[new])
    np.testing.assert_allclose(
        p[:, 1], expit(model.decision_function(Z[new]) + offset[new]), rtol=1e-12
    )


@pytest.mark.slow
def test_exposures_alone_are_a_constant(rng):
    """Counts that exposures explain have no terms, with the offsets."""
    counts = rng.poisson(5 * EXPOSURE)
    model = srf.sparse_rf(X, counts, loss="poisson", offset=OFFSET, n_components=300, rng=0)
    assert len(model.features) == 0
    np.testing.assert_allclose(np.exp(model.intercept), counts.sum() / EXPOSURE.sum(), rtol=1e-9)


@pytest.mark.slow
def test_categories_are_encoded_by_rates(rng):
    """Of 40 levels with one rate each, and exposures that differ between levels, the encodings are
    the rates, shrunken."""
    level = rng.integers(0, 40, 2000)
    rate = np.exp(rng.normal(0, 0.5, 40))
    exposure = np.exp(np.linspace(-2, 2, 40))[level] * rng.uniform(0.5, 2, 2000)
    counts = rng.poisson(20 * exposure * rate[level])
    table = pd.DataFrame({"level": pd.Categorical([f"l{k}" for k in level])})
    how = {"loss": "poisson", "n_components": 200, "rng": 0}
    model = srf.sparse_rf(table, counts, offset=np.log(exposure), **how)
    predicted = model.predict(table)
    first = [int(np.flatnonzero(level == k)[0]) for k in range(40)]
    assert np.corrcoef(np.log(predicted[first]), np.log(rate))[0, 1] > 0.98


def test_prune_keeps_the_mean_count_with_exposures_as_weights():
    model = srf.sparse_rf(
        X, COUNTS, loss="poisson", alpha=0.01, features=DRAWN, offset=OFFSET, exact=True
    )
    small = srf.prune(model, X, max_terms=4, sample_weight=EXPOSURE)
    np.testing.assert_allclose(
        small.predict(X, offset=OFFSET).sum(), model.predict(X, offset=OFFSET).sum(), rtol=1e-9
    )


def test_a_model_does_not_know_that_it_had_offsets(tmp_path):
    model = FITS["mfga"](X, COUNTS, loss="poisson", offset=OFFSET)
    model.save(tmp_path / "model")
    again = srf.load(tmp_path / "model.npz")
    assert np.array_equal(again.predict(X, offset=OFFSET), model.predict(X, offset=OFFSET))
    assert np.array_equal(model.predict(X), model.predict(X, offset=np.zeros(N)))


# Where rows are


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("sparse_rf, chosen", "poisson"),
        *(
            (name, loss)
            for name in ("sparse_rf", "harfe", "mfga", "drp")
            for loss in ("squared", "poisson", "logistic")
        ),
    ],
)
@pytest.mark.parametrize("home", HOMES)
def test_offsets_go_where_the_rows_are(home, name, loss, monkeypatch):
    OtherDevice.patch(monkeypatch)
    rng = np.random.default_rng(5)
    Z, offset = rng.uniform(-2, 2, (1200, 3)), rng.normal(0, 1, 1200)
    z = np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 1] + offset
    y = {
        "squared": z,
        "poisson": rng.poisson(3 * np.exp(z)),
        "logistic": rng.random(1200) < expit(2 * z),
    }[loss]
    there, fit = HOMES[home](Z), partial(FITS[name], loss=loss)
    with convergence_ignored():
        model, plain = fit(there, y, offset=offset), fit(Z, y, offset=offset)
    f = model.decision_function(there, offset=offset)
    f = (
        f.compute()
        if hasattr(f, "compute")
        else np.from_dlpack(f)
        if hasattr(f, "__dlpack__")
        else f
    )
    np.testing.assert_allclose(f, plain.decision_function(Z) + offset, atol=1e-4)


def test_offsets_may_be_of_any_kind():
    plain = FITS["drp"](X, COUNTS, loss="poisson", offset=OFFSET)
    for offset in (OFFSET.tolist(), pd.Series(OFFSET), da.from_array(OFFSET), OFFSET[::-1][::-1]):
        assert bits(FITS["drp"](X, COUNTS, loss="poisson", offset=offset)) == bits(plain)
        assert np.array_equal(plain.predict(X, offset=offset), plain.predict(X, offset=OFFSET))
    single = plain.predict(X.astype(np.float32), offset=OFFSET)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, plain.predict(X, offset=OFFSET), rtol=1e-4)
    np.testing.assert_allclose(
        plain.predict(sp.csr_array(X), offset=OFFSET), plain.predict(X, offset=OFFSET), rtol=1e-12
    )


def test_offsets_are_never_modified():
    given = OFFSET.copy()
    given.flags.writeable = False
    for name in ("squared", "poisson"):
        FITS["drp"](X, TARGETS[name], loss=name, offset=given).predict(X, offset=given)
    assert np.array_equal(given, OFFSET)


# What is wrong


@pytest.mark.every_case
@pytest.mark.parametrize("kind", kinds_of_input.BAD_OFFSETS)
def test_bad_offsets_of_rows_to_predict(kind):
    bad, Z = kinds_of_input.BAD_OFFSETS[kind], np.resize(X, (kinds_of_input.N, 3))
    models = [FITS["drp"](X, TARGETS[loss], loss=loss) for loss in ("squared", "logistic")]
    for method in (
        models[0].predict,
        models[1].predict,
        models[1].decision_function,
        models[1].predict_proba,
    ):
        with pytest.raises((ValueError, TypeError), match="offset"):
            method(Z, offset=bad)


def test_offsets_that_cannot_be():
    three = np.arange(N) % 3
    for loss in ("logistic", "squared_hinge", "multinomial"):
        with pytest.raises(
            ValueError, match="offset must be None for more than two classes, got one for 3"
        ):
            srf.drp(X, three, alpha=0.1, loss=loss, offset=OFFSET)
        with pytest.raises(
            ValueError, match="offset must be None for more than two classes, got one for 3"
        ):
            srf.drp(X, three, alpha=0.1, loss=loss).predict(X, offset=OFFSET)
    with pytest.raises(
        ValueError, match="offset must be between -69 and 69 for loss='poisson', got 70"
    ):
        srf.drp(X, COUNTS, alpha=0.1, loss="poisson", offset=np.full(N, 70.0))
    with pytest.raises(
        ValueError, match="offset must be between -69 and 69 for loss='poisson', got -70"
    ):
        srf.drp(
            X,
            np.column_stack([COUNTS, COUNTS]),
            alpha=0.1,
            loss="poisson",
            offset=np.full((N, 2), -70.0),
        )
    with pytest.raises(ValueError, match="offset must be of moderate size"):
        srf.drp(X, np.linspace(0, 1.7e308, N), alpha=0.1, offset=np.full(N, -1e308))
    with pytest.raises(ValueError, match=r"offset must have shape \(300,\) or \(300, 2\)"):
        srf.drp(X, np.column_stack([REAL, F]), alpha=0.1, offset=np.zeros((N, 3)))
    with pytest.raises(ValueError, match="offset must have its rows in the order of X"):
        srf.drp(
            pd.DataFrame(X),
            COUNTS,
            alpha=0.1,
            loss="poisson",
            offset=pd.Series(OFFSET, index=np.arange(N)[::-1]),
        )
    with pytest.raises(TypeError, match="here it is 'offset'"):
        srf.drp(X, COUNTS, alpha=0.1, loss="poisson", base_margin=OFFSET)
    sums = srf.Sums.of(X, REAL, srf.Linear().draw(None, 3))
    with pytest.raises(ValueError, match="offset must not be given"):
        sums.fit(srf.drp, alpha=0.1, offset=OFFSET)


def test_offsets_are_checked_before_any_work():
    passes = []
    rows = srf.Chunks(lambda start, stop: passes.append(start) or X[start:stop], X.shape)
    with pytest.raises(ValueError, match="offset"):
        srf.sparse_rf(rows, COUNTS, loss="poisson", offset=OFFSET[1:])
    assert passes in ([0], [0, 0])  # the first block alone, which says what the rows are


# Estimators, cross-validation, intervals


def test_estimators_take_offsets():
    from sklearn.base import clone

    from sparserf import sklearn

    counts = sklearn.MFGARegressor(n_nonzero_coefs=6, alpha=1e-3, loss="poisson", random_state=0)
    model = clone(counts).fit(X, COUNTS, offset=OFFSET)
    assert bits(model.model_) == bits(FITS["mfga"](X, COUNTS, loss="poisson", offset=OFFSET))
    assert np.array_equal(model.predict(X, offset=OFFSET), model.model_.predict(X, offset=OFFSET))
    assert model.score(X, COUNTS, offset=OFFSET) > 2 * model.score(X, COUNTS)
    fitted = model.model_.to_estimator()
    assert fitted.score(X, COUNTS, offset=OFFSET) == model.score(X, COUNTS, offset=OFFSET)

    labels = sklearn.DRPClassifier(alpha=0.01, random_state=0).fit(X, LABELS, offset=OFFSET)
    p = labels.predict_proba(X, offset=OFFSET)
    assert np.array_equal(p, labels.model_.predict_proba(X, offset=OFFSET))
    assert np.array_equal(labels.predict_log_proba(X, offset=OFFSET), np.log(p))
    assert np.array_equal(
        labels.decision_function(X, offset=OFFSET),
        labels.model_.decision_function(X, offset=OFFSET),
    )
    assert labels.score(X, LABELS, offset=OFFSET) == np.mean(
        labels.classes_[(p[:, 1] > 0.5) * 1] == LABELS
    )
    with pytest.raises(ValueError, match="offset"):
        labels.predict(X, offset=OFFSET[1:])


@pytest.mark.slow
def test_offsets_are_routed():
    import sklearn
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from sparserf.sklearn import MFGARegressor

    with sklearn.config_context(enable_metadata_routing=True):
        model = MFGARegressor(n_nonzero_coefs=6, alpha=1e-3, loss="poisson", random_state=0)
        model = (
            model.set_fit_request(offset=True)
            .set_predict_request(offset=True)
            .set_score_request(offset=True)
        )
        pipeline = make_pipeline(StandardScaler(), model).fit(X, COUNTS, offset=OFFSET)
        Z = StandardScaler().fit_transform(X)
        expected = FITS["mfga"](Z, COUNTS, loss="poisson", offset=OFFSET).predict(Z, offset=OFFSET)
        assert np.array_equal(pipeline.predict(X, offset=OFFSET), expected)
        search = GridSearchCV(model, {"n_nonzero_coefs": [2, 6]}, cv=3).fit(
            X, COUNTS, offset=OFFSET
        )
        without = GridSearchCV(clone(model), {"n_nonzero_coefs": [2, 6]}, cv=3).fit(X, COUNTS)
        assert search.best_score_ > without.best_score_ + 0.1


@pytest.mark.slow
def test_cross_validation_gives_each_fold_its_offsets():
    seen = []

    def fit(Z, y, *, offset, rng, alpha):
        assert len(offset) == len(y)
        return srf.drp(Z, y, loss="poisson", alpha=alpha, offset=offset, rng=rng)

    def measure(model, Z, y, *, offset):
        seen.append(Z[:, 0] + offset)
        return np.abs(y - model.predict(Z, offset=offset))

    srf.cross_validate(
        fit, X, COUNTS, {"alpha": [0.1]}, offset=OFFSET, measure=measure, cv=3, rng=0
    )
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.sort(X[:, 0] + OFFSET))

    drp = partial(srf.drp, loss="poisson")
    for name in ("auto", "absolute_error", "squared_error"):
        found = srf.cross_validate(
            drp, X, COUNTS, {"alpha": [0.1, 0.01]}, offset=OFFSET, measure=name, rng=0
        )
        without = srf.cross_validate(drp, X, COUNTS, {"alpha": [0.1, 0.01]}, measure=name, rng=0)
        assert min(found.table["mean"]) < 0.8 * min(without.table["mean"])
        whole = srf.drp_path(X, COUNTS, alphas=[0.1, 0.01], loss="poisson", offset=OFFSET, rng=0)[
            -1
        ]
        assert found.best["alpha"] != 0.01 or np.allclose(found.model.coef, whole.coef, atol=1e-6)
    logistic = partial(srf.drp, loss="logistic")
    for name in ("log_loss", "error"):
        compare = partial(
            srf.cross_validate, logistic, X, LABELS, {"alpha": [0.01]}, measure=name, rng=0
        )
        assert compare(offset=OFFSET).table["mean"] < compare().table["mean"]
    with pytest.raises(ValueError, match="offset"):
        srf.cross_validate(drp, X, COUNTS, {"alpha": [0.1]}, offset=OFFSET[1:])


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_intervals_with_offsets(method, adaptive, rng):
    """They hold their share of rows; for a loss of the residual they are those of y - offset,
    shifted."""
    Z, offset = rng.uniform(-2, 2, (900, 3)), rng.normal(0, 3, 900)
    y = Z[:, 0] + offset + rng.standard_normal(900)
    new, old = slice(0, 400), slice(400, None)
    how = {"method": method, "adaptive": adaptive, "rng": 0}
    fit = partial(srf.drp, alpha=0.01)
    bands = srf.intervals(fit, Z[old], y[old], offset=offset[old], **how)
    lower, upper = bands.predict(Z[new], offset=offset[new])
    assert 0.84 < np.mean((lower <= y[new]) & (y[new] <= upper)) < 0.96
    if not adaptive:  # a scale is a model of rounded residuals
        less = srf.intervals(fit, Z[old], y[old] - offset[old], **how)
        np.testing.assert_allclose(
            [lower, upper], np.add(less.predict(Z[new]), offset[new]), atol=1e-9
        )
    model = fit(Z[new], y[new], offset=offset[new], rng=0)
    lower, upper = srf.intervals(model, Z[old], y[old], offset=offset[old], rng=0).predict(
        Z[new], offset=offset[new]
    )
    assert np.all(upper - lower < 6)
