"""Fits by every loss of real targets, and by losses of the user's own, against other solvers."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import sparserf as srf
from sparserf.losses import Gamma, Huber, Loss, Poisson, Quantile, Tweedie

from ..conftest import l1_oracle, phi_oracle
from .own_losses import WRONG, LogCosh, OwnPoisson

OBJECTS = {
    "squared": srf.losses.Squared(),
    "huber": Huber(0.7),
    "quantile": Quantile(0.8, 0.3),
    "poisson": Poisson(),
    "tweedie": Tweedie(),
    "gamma": Gamma(),
}
NEW = [name for name in OBJECTS if name != "squared"]
each = pytest.mark.parametrize("name", OBJECTS)
each_new = pytest.mark.parametrize("name", NEW)

N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
WEIGHT = RNG.integers(0, 4, N).astype(float)
Y = {
    "squared": F + 0.3 * RNG.standard_normal(N),
    "huber": F + 0.3 * RNG.standard_t(1.5, N),
    "quantile": F + 0.3 * RNG.standard_exponential(N),
    "poisson": RNG.poisson(3 * np.exp(F)).astype(float),
    "gamma": 50 * np.exp(F) * RNG.gamma(3, 1 / 3, N),
    "tweedie": 5
    * np.random.default_rng(9).standard_gamma(2 * np.random.default_rng(8).poisson(np.exp(F))),
}
FIXED = srf.sparse_rf(
    X, F, features="gaussian", gamma=0.3, alpha=0.01, n_components=300, rng=0
).features
EXACT = {"features": FIXED, "exact": True, "tol": 1e-9}
ALPHA = {
    "squared": 0.01,
    "huber": 0.01,
    "quantile": 0.01,
    "poisson": 0.05,
    "tweedie": 0.05,
    "gamma": 0.01,
}


def constant_of(loss, y):
    """Return a start for the intercept: near the best constant."""
    return np.log(y.mean()) if loss.link == "log" else np.median(y)


def objective(loss, phi, y, weight, alpha, w, b):
    """Compute the weighted mean of the loss plus alpha |w|_1."""
    z = phi @ w + b
    return float(weight @ loss.value(z, y) / weight.sum() + alpha * np.abs(w).sum())


@each
def test_l1_fits_are_the_optimum_of_an_oracle(name):
    """The duality gap bounds the distance to the optimum at any tolerance."""
    loss, y, alpha, phi = OBJECTS[name], Y[name], ALPHA[name], phi_oracle(FIXED, X)
    weight = WEIGHT + 0.0

    def value_and_slopes(z):
        return weight @ loss.value(z, y) / weight.sum(), weight * loss.derivative(
            z, y
        ) / weight.sum()

    least = l1_oracle(value_and_slopes, phi, alpha, constant_of(loss, y)).fun
    for tol in (1e-1, 1e-4, 1e-9):
        model = srf.sparse_rf(
            X, y, loss=loss, alpha=alpha, sample_weight=weight, **{**EXACT, "tol": tol}
        )
        w = np.zeros(len(FIXED))
        w[model.support] = model.coef
        reached = objective(loss, phi, y, weight, alpha, w, model.intercept)
        assert model.info.converged and np.isclose(model.info.objective[-1], reached, rtol=1e-10)
        assert reached - least <= model.info.dual_gap + 1e-7 * least
        assert model.info.dual_gap <= tol * reached
    g, size = (
        phi.T @ (v := weight * loss.derivative(phi @ w + model.intercept, y) / weight.sum()),
        np.abs(v).sum(),
    )
    assert abs(v.sum()) <= 1e-7 * size and np.abs(g).max() <= alpha + 1e-4 * size
    assert np.allclose(g[w != 0], -alpha * np.sign(w[w != 0]), atol=1e-4 * size)


@pytest.mark.parametrize("name", ["huber", "quantile"])
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e4, 1e100])
def test_losses_of_residuals_are_equivariant(name, unit):
    """Predictions scale with y, both by default parameters, which follow y, and by parameters
    scaled along."""
    degree = OBJECTS[name].degree
    own = {"huber": Huber(0.7 * unit), "quantile": Quantile(0.8, 0.3 * unit)}[name]
    for loss, scaled in ((name, name), (OBJECTS[name], own)):
        one = srf.sparse_rf(X, Y[name], loss=loss, alpha=0.01, **EXACT)
        other = srf.sparse_rf(
            X, unit * Y[name], loss=scaled, alpha=0.01 * unit ** (degree - 1), **EXACT
        )
        assert np.allclose(one.predict(X), other.predict(X) / unit, rtol=1e-3, atol=1e-4)
        assert np.isclose(
            one.info.objective[-1],
            other.info.objective[-1] / unit / unit ** (degree - 1),
            rtol=1e-8,
        )
    ridge = {"n_nonzero_coefs": 5, "features": FIXED, "rng": 0}
    for fit, alpha in ((srf.harfe, 1e-3), (srf.mfga, 1e-3)):
        one = fit(X, Y[name], loss=OBJECTS[name], alpha=alpha, **ridge)
        other = fit(X, unit * Y[name], loss=own, alpha=alpha, **ridge)
        assert np.allclose(one.predict(X), other.predict(X) / unit, rtol=1e-3, atol=1e-4)
        assert one.info.alpha == other.info.alpha == alpha
    one = srf.drp(X, Y[name], loss=OBJECTS[name], alpha=0.1, rng=0)
    other = srf.drp(X, unit * Y[name], loss=own, alpha=0.1, rng=0)
    assert np.allclose(one.predict(X), other.predict(X) / unit, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-25, 1e-4, 1e6, 1e25])
def test_log_links_absorb_the_unit_of_y(unit):
    for name, alpha in (("poisson", 0.05 * unit), ("tweedie", 0.05 * unit**0.5), ("gamma", 0.01)):
        one = srf.sparse_rf(X, Y[name], loss=name, alpha=ALPHA[name], **EXACT)
        other = srf.sparse_rf(X, unit * Y[name], loss=name, alpha=alpha, **{**EXACT, "tol": 1e-8})
        assert np.allclose(one.predict(X), other.predict(X) / unit, rtol=1e-3)
        assert other.info.converged


def test_the_constant_is_the_best_one():
    """Where the penalty leaves no term, fits predict the mean of y (by the log link) or the
    quantile."""
    few = {"features": FIXED, "alpha": 1e9}
    for name in ("poisson", "tweedie", "gamma"):
        for unit in (1e-9, 1.0, 1e6):
            model = srf.sparse_rf(X, unit * Y[name], loss=name, sample_weight=WEIGHT, **few)
            assert len(model.features) == 0
            assert np.allclose(
                model.predict(X), unit * np.average(Y[name], weights=WEIGHT), rtol=1e-12
            )
            assert np.allclose(model.decision_function(X), np.log(model.predict(X)))
    for level in (0.05, 0.5, 0.95):
        model = srf.sparse_rf(X, Y["quantile"], loss=Quantile(level, smoothing=1e-6), **few)
        assert np.isclose(model.intercept, np.quantile(Y["quantile"], level), atol=0.02)


def test_exposure_is_a_weight_of_a_rate():
    """Rates c / e with weights e have the optimum of counts c with log e added to f."""
    exposure = RNG.uniform(0.2, 4, N)
    c = RNG.poisson(exposure * np.exp(F)).astype(float)
    model = srf.sparse_rf(
        X, c / exposure, sample_weight=exposure, loss="poisson", alpha=0.02, **EXACT
    )
    phi, e = phi_oracle(FIXED, X), exposure

    def counted(w, b):
        """Compute the objective of the counts, divided by the mean exposure and up to a
        constant."""
        mu = e * np.exp(phi @ w + b)
        return np.mean(mu - c * np.log(mu)) / e.mean() + 0.02 * np.abs(w).sum()

    w = np.zeros(len(FIXED))
    w[model.support] = model.coef
    here = counted(w, model.intercept)
    for j in range(-1, len(w)):
        for step in (-1e-3, 1e-3):
            moved = w.copy()
            if j >= 0:
                moved[j] += step
            assert counted(moved, model.intercept + (step if j < 0 else 0)) >= here


@pytest.mark.parametrize(
    ("loss", "power"),
    [("poisson", 1), ("tweedie", 1.5), (Tweedie(1.1), 1.1), (Tweedie(1.9), 1.9), ("gamma", 2)],
)
def test_drp_is_scikit_learns_solution(loss, power):
    linear, name = pytest.importorskip("sklearn.linear_model"), getattr(loss, "name", loss)
    solver = linear.TweedieRegressor(power=power, link="log", alpha=0.1, tol=1e-10, max_iter=10000)
    theirs = solver.fit(X, Y[name], sample_weight=WEIGHT)
    alpha = 0.1 / np.average(Y[name], weights=WEIGHT) ** (2 - power)
    how = {"sample_weight": WEIGHT, "scale": None, "rng": 0}
    ours = srf.drp(X, Y[name], loss=loss, alpha=alpha, tol=1e-8, **how)
    assert ours.info.converged
    assert np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    assert np.allclose(ours.coef, theirs.coef_, rtol=1e-5)


def l2_oracle(loss, Z, y, weight, alpha):
    """Minimize the weighted mean loss of Z w + b plus alpha / 2 |w|^2, alpha in the loss's unit, by
    L-BFGS-B."""
    k, b, alpha = Z.shape[1], constant_of(loss, y), alpha * loss.penalty_unit(y, weight)

    def both(x):
        z = Z @ x[:k] + x[-1]
        v = weight * loss.derivative(z, y) / weight.sum()
        return weight @ loss.value(z, y) / weight.sum() + alpha / 2 * x[:k] @ x[:k], np.append(
            Z.T @ v + alpha * x[:k], v.sum()
        )

    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    return minimize(both, np.append(np.zeros(k), b), jac=True, method="L-BFGS-B", options=options)


@each_new
@pytest.mark.parametrize("alpha", [1.0, 0.01, 1e-5])
def test_drp_is_within_its_bound_of_the_oracle(name, alpha):
    loss, y = OBJECTS[name], Y[name]
    found = l2_oracle(loss, X, y, WEIGHT, alpha)
    how = {"sample_weight": WEIGHT, "scale": None, "rng": 0}
    for tol in (1e-8, 1e-2):
        model = srf.drp(X, y, loss=loss, alpha=alpha, tol=tol, **how)
        error = np.linalg.norm(model.coef - found.x[:3]) / np.linalg.norm(found.x[:3])
        assert model.info.converged and error <= model.info.error_bound + 1e-5
        assert model.info.objective[-1] - found.fun <= model.info.dual_gap + 1e-9 * found.fun


@each_new
def test_drp_of_several_outputs_is_one_after_the_other(name):
    both = np.column_stack([Y[name], 2 * Y[name][::-1]])
    model = srf.drp(X, both, loss=OBJECTS[name], alpha=0.1, rng=0)
    # all outputs have the least of these
    units = [OBJECTS[name].penalty_unit(y, np.ones(N)) for y in both.T]
    for k, y in enumerate(both.T):
        one = srf.drp(X, y, loss=OBJECTS[name], alpha=0.1 * min(units) / units[k], rng=0)
        assert np.allclose(model.predict(X)[:, k], one.predict(X), rtol=1e-4, atol=1e-5)


@each_new
def test_drp_with_a_sketch_finds_the_same(name):
    wide = np.hstack([X, np.random.default_rng(1).standard_normal((N, 500))])
    how = {"loss": OBJECTS[name], "alpha": 0.3, "tol": 1e-6, "rng": 0}
    plain, sketched = (srf.drp(wide, Y[name], n_projections=m, **how) for m in (None, 200))
    assert plain.info.converged and sketched.info.converged
    assert np.linalg.norm(plain.coef - sketched.coef) <= 3e-6 * np.linalg.norm(plain.coef)


@each_new
@pytest.mark.parametrize("fit", [srf.harfe, srf.mfga])
def test_harfe_and_mfga_minimise_over_their_terms(name, fit):
    loss, y, alpha = OBJECTS[name], Y[name], 1e-3
    options = {"normalize": False} if fit is srf.harfe else {}
    model = fit(
        X,
        y,
        loss=loss,
        alpha=alpha,
        features=FIXED,
        n_nonzero_coefs=8,
        sample_weight=WEIGHT,
        rng=0,
        **options,
    )
    found = l2_oracle(loss, phi_oracle(model.features, X), y, WEIGHT, alpha)
    assert len(model.support) == 8
    assert model.info.objective[-1] <= found.fun * (1 + 1e-6)
    assert model.info.dual_gap >= 0


@each_new
def test_harfe_of_fewer_rows_than_terms(name):
    loss, few, y = OBJECTS[name], X[:30], Y[name][:30]
    dictionary = srf.sparse_rf(
        X, F, features="gaussian", gamma=0.5, alpha=1e-5, n_components=300, rng=0
    ).features
    n = min(40, len(dictionary))
    assert n > 30
    model = srf.harfe(
        few,
        y,
        loss=loss,
        alpha=0.01,
        features=dictionary,
        n_nonzero_coefs=n,
        normalize=False,
        start="zero",
        max_iter=5,
        rng=0,
    )
    least = l2_oracle(loss, phi_oracle(model.features, few), y, np.ones(30), 0.01).fun
    assert model.info.objective[-1] <= least * (1 + 1e-5)


@each_new
@pytest.mark.slow
def test_the_default_learns(name):
    """The default search learns f, with the same bits for any workers; its held-out loss is in the
    units of y."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (800, 3))
    f = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1]
    y = {
        "huber": f + 0.2 * rng.standard_t(1.5, 800),
        "quantile": f + 0.3 * rng.standard_normal(800),
        "poisson": rng.poisson(20 * np.exp(f)).astype(float),
        "gamma": 9 * np.exp(f) * rng.gamma(9, 1 / 9, 800),
        "tweedie": rng.standard_gamma(3 * rng.poisson(9 * np.exp(f))),
    }[name]
    model = srf.sparse_rf(x, y, loss=name, rng=0, effort=0.4, n_components=300)
    assert np.corrcoef(model.decision_function(x), f)[0, 1] > 0.98
    loss = (
        OBJECTS[name] if not model.loss_parameters else type(OBJECTS[name])(**model.loss_parameters)
    )
    here = np.mean(loss.value(model.decision_function(x), y))
    assert 0.5 * here < model.info.validation_loss < 2 * here
    again = srf.sparse_rf(x, y, loss=name, rng=0, effort=0.4, n_components=300, workers=2)
    assert np.array_equal(model.coef, again.coef)


def test_quantiles_hold_their_share_out_of_sample():
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, (6000, 2))
    y = np.sin(2 * x[:, 0]) + (0.3 + 0.2 * x[:, 1] ** 2) * rng.standard_normal(6000)
    for level in (0.1, 0.9):
        how = {"features": "gaussian", "gamma": 0.3, "alpha": 0.002, "n_components": 500, "rng": 0}
        model = srf.sparse_rf(x[:3000], y[:3000], loss=Quantile(level=level), **how)
        assert abs(np.mean(y[3000:] < model.predict(x[3000:])) - level) < 0.03


@each_new
def test_sparse_rows_and_chunks_give_the_same_model(name):
    one = srf.sparse_rf(X, Y[name], loss=name, alpha=ALPHA[name], **EXACT)
    sparse = np.where(np.abs(X) < 0.7, 0, X)
    both = sparse, sp.csr_array(sparse)
    plain, csr = (
        srf.sparse_rf(each, Y[name], loss=name, alpha=ALPHA[name], **EXACT) for each in both
    )
    assert np.allclose(plain.predict(sparse), csr.predict(sp.csr_array(sparse)), rtol=1e-6)
    chunks = srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=100)
    away = srf.sparse_rf(chunks, Y[name], loss=name, alpha=ALPHA[name], **EXACT)
    assert np.allclose(one.predict(X), away.predict(X), rtol=1e-4)
    assert np.allclose(away.predict(chunks), away.predict(X), rtol=1e-12)


@each
def test_models_are_saved_and_loaded_with_their_loss(name, tmp_path):
    model = srf.sparse_rf(X, Y[name], loss=name, alpha=ALPHA[name], **EXACT)
    model.save(tmp_path / "model.npz")
    again = srf.load(tmp_path / "model.npz")
    assert (again.loss, again.loss_parameters, again.link) == (
        name,
        model.loss_parameters,
        model.link,
    )
    assert (again.predict(X) == model.predict(X)).all()
    if OBJECTS[name].link == "log":
        assert np.allclose(again.predict(X), np.exp(again.decision_function(X)))


@pytest.mark.parametrize("fit", ["sparse_rf", "default", "harfe", "mfga", "drp"])
def test_a_loss_of_your_own(fit, tmp_path):
    y = Y["huber"]
    fits = {
        "sparse_rf": lambda loss: srf.sparse_rf(X, y, loss=loss, alpha=0.01, **EXACT),
        "default": lambda loss: srf.sparse_rf(X, y, loss=loss, n_components=300, rng=0),
        "harfe": lambda loss: srf.harfe(
            X, y, loss=loss, n_nonzero_coefs=6, alpha=1e-4, features=FIXED, rng=0
        ),
        "mfga": lambda loss: srf.mfga(X, y, loss=loss, n_nonzero_coefs=6, alpha=1e-3, rng=0),
        "drp": lambda loss: srf.drp(X, y, loss=loss, alpha=0.1, rng=0),
    }
    model = fits[fit](LogCosh())
    assert model.loss == "logcosh" and model.info.converged
    model.save(tmp_path / "model.npz")
    assert (srf.load(tmp_path / "model.npz").predict(X) == model.predict(X)).all()


def test_a_conjugate_by_search_certifies_as_a_formula_does():
    own = srf.sparse_rf(X, Y["poisson"], loss=OwnPoisson(), alpha=0.05, **EXACT)
    house = srf.sparse_rf(X, Y["poisson"], loss="poisson", alpha=0.05, **EXACT)
    assert own.info.converged and np.allclose(own.predict(X), house.predict(X), rtol=1e-4)
    assert own.link == "log"


@pytest.mark.parametrize("fit", [srf.sparse_rf, srf.mfga])
def test_a_loss_of_your_own_has_a_name_of_its_own(fit):
    """Else a file would be read as a model of the other loss."""
    own = LogCosh()
    own.name = "huber"
    options = {"alpha": 0.1} if fit is srf.sparse_rf else {"n_nonzero_coefs": 2}
    with pytest.raises(ValueError, match="loss must have a name of its own, got 'huber'"):
        fit(X, Y["huber"], loss=own, **options)


def test_errors_name_what_is_wrong():
    few = {"features": FIXED, "alpha": 0.1}
    y = Y["poisson"].copy()
    y[3] = -2.0
    cases = [
        (
            ValueError,
            "y must be >= 0 for loss='poisson', got -2.0",
            lambda: srf.sparse_rf(X, y, loss="poisson", **few),
        ),
        (
            ValueError,
            "y must have a positive entry",
            lambda: srf.sparse_rf(X, 0 * y, loss="poisson", **few),
        ),
        (
            ValueError,
            "y must be >= 0 for loss='tweedie', got -2.0",
            lambda: srf.sparse_rf(X, y, loss=Tweedie(1.2), **few),
        ),
        (
            ValueError,
            "y must have a positive entry for loss='tweedie'",
            lambda: srf.drp(X, 0 * y, loss="tweedie", alpha=0.1),
        ),
        (
            ValueError,
            "y must be > 0 for loss='gamma', got -2.0",
            lambda: srf.sparse_rf(X, y, loss=Gamma(), **few),
        ),
        (
            ValueError,
            "y must be > 0 for loss='gamma', got 0.0",
            lambda: srf.sparse_rf(X, 0 * y, loss="gamma", **few),
        ),
        (
            ValueError,
            "y must be at most 1e.30 .* got 1e.40",
            lambda: srf.sparse_rf(X, y**2 * 0 + 1e40, loss="gamma", **few),
        ),
        (
            ValueError,
            "y must have one output for loss='huber', got 3",
            lambda: srf.mfga(X, X, n_nonzero_coefs=2, alpha=1e-3, loss="huber"),
        ),
        (ValueError, "delta must be finite and > 0, got 0", lambda: Huber(0)),
        (ValueError, "level must be below 1, got 1", lambda: Quantile(1)),
        (ValueError, "level must be finite and > 0", lambda: Quantile(-0.1)),
        (ValueError, "power must be finite and > 1, got 1", lambda: Tweedie(1)),
        (ValueError, "power must be below 2, got 2", lambda: Tweedie(2)),
        (ValueError, "smoothing must be finite and > 0", lambda: Quantile(0.5, 0)),
        (
            ValueError,
            "loss must be one of 'squared', .*'hubber'",
            lambda: srf.sparse_rf(X, y, loss="hubber", **few),
        ),
        (ValueError, "got 'smoothed_hinge'", lambda: srf.harfe(X, y > 1, loss="smoothed_hinge")),
        (TypeError, r"write Huber\(\)", lambda: srf.sparse_rf(X, y, loss=Huber, **few)),
        (
            TypeError,
            "loss must be a name or a sparserf.losses.Loss, got int",
            lambda: srf.sparse_rf(X, y, loss=3, **few),
        ),
        (
            ValueError,
            "loss must have a finite smoothness",
            lambda: srf.drp(X, Y["poisson"], loss=OwnPoisson(), alpha=0.1),
        ),
        (
            NotImplementedError,
            "Nothing must have",
            lambda: srf.sparse_rf(X, y, loss=type("Nothing", (Loss,), {})(), **few),
        ),
    ]
    for error, message, fit in cases:
        with pytest.raises(error, match=message):
            fit()
    y[3], weight = -2.0, np.ones(N)
    weight[3] = 0
    # a row of weight zero may hold any y
    srf.sparse_rf(X, y, loss="poisson", sample_weight=weight, **few)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [1e-30, 1e-6, 1.0, 1e6, 1e20])
def test_no_scale_of_y_makes_nan(largest):
    rng = np.random.default_rng(5)
    y = largest * np.exp(3 * rng.standard_normal(N))
    y /= y.max() / largest
    some = np.where(rng.random(N) < 0.5, 0.0, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", srf.ConvergenceWarning)
        cases = [(name, some) for name in ("poisson", "tweedie")]
        for name, target in [*cases, *((name, y) for name in NEW)]:
            mean = target.mean()
            unit = {"gamma": 1.0, "quantile": 1.0, "tweedie": mean**0.5}.get(name, mean)
            for alpha in (0.1, 1e-3, 1e-7):
                model = srf.sparse_rf(
                    X, target, loss=name, features=FIXED, alpha=alpha * unit, tol=1e-6
                )
                assert (
                    np.isfinite(model.predict(X)).all() and np.isfinite(model.info.objective).all()
                )
            unit = {"poisson": mean, "tweedie": mean**0.5, "quantile": 1.0 / mean}.get(name, 1.0)
            for fit in (srf.harfe, srf.mfga):
                model = fit(
                    X,
                    target,
                    loss=name,
                    features=FIXED,
                    n_nonzero_coefs=5,
                    alpha=1e-6 * unit,
                    rng=0,
                )
                assert np.isfinite(model.predict(X)).all() and np.isfinite(model.info.dual_gap)
            model = srf.drp(X, target, loss=name, alpha=1e-3 * unit, rng=0)
            assert np.isfinite(model.predict(X)).all() and model.info.error_bound < 1e-3


@pytest.mark.parametrize("fit", ["sparse_rf", "default", "sparse_rf_path", "harfe", "mfga", "drp"])
@pytest.mark.parametrize("what", WRONG)
def test_fits_say_what_is_wrong_with_a_loss(what, fit):
    loss, error, message = WRONG[what]
    how = {
        "sparse_rf": {"alpha": 0.01, "features": FIXED},
        "default": {"rng": 0},
        "drp": {"alpha": 0.1},
    }
    how = how.get(fit, {"features": FIXED})
    with pytest.raises(error, match=message):
        getattr(srf, "sparse_rf" if fit == "default" else fit)(X, F, loss=loss, **how)
