"""Fits end: on hostile data, by a callback, by an interrupt, and by the bound on their work; their
warnings say why.

Limits of time are far above what the fits take: only a hang fails.
"""

import inspect
import time

import numpy as np
import pytest

import sparserf as srf

from ..conftest import HAS_TIMERS, after, each_loss, ignore_convergence

N, D = 150, 20
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
SMOOTH = np.sin(2 * X[:, 0] * X[:, 1]) + X[:, 3]
DATA = {
    "noise": (X, RNG.standard_normal(N)),
    "separable": (X, X[:, 0]),
    "collinear": (np.hstack([X[:, :10], X[:, :10] * (1 + 1e-9)]), SMOOTH),
    "noiseless": (X, SMOOTH),
}
needs_timers = pytest.mark.skipif(not HAS_TIMERS, reason="no timers here")


def harfe(X, y, **options):
    return srf.harfe(X, y, n_components=1000, rng=0, **options)


def mfga(X, y, **options):
    """Fit 60 gaussian features, 5 in each round, unless other options are given."""
    options = {
        "features": "gaussian",
        "n_components": 300,
        "n_nonzero_coefs": 60,
        "n_select": 5,
        "rng": 0,
        **options,
    }
    return srf.mfga(X, y, **options)


def sparse_rf(X, y, **options):
    return srf.sparse_rf(X, y, rng=0, **options)


def path(X, y, alpha, **options):
    """Return the last model of a path of four penalties."""
    alphas = alpha * 10.0 ** np.arange(4)
    return srf.sparse_rf_path(
        X, y, alphas=alphas, features="gaussian", n_components=300, rng=0, **options
    )[-1]


SETTINGS = [
    (sparse_rf, {"n_components": 400, "batch_size": 100}),
    (sparse_rf, {"features": "gaussian", "n_components": 400}),
    (path, {}),
    (sparse_rf, {"features": "gaussian", "gamma": 1e-6, "n_components": 400, "exact": True}),
    (harfe, {}),
    (harfe, {"selection": "positive", "step_size": 1e3}),
    (harfe, {"backtracking": False, "step_size": 1e3}),
    (harfe, {"n_nonzero_coefs": 200, "max_iter": 10}),
    (mfga, {}),
    (mfga, {"features": None, "n_nonzero_coefs": 251}),
    (mfga, {"best_phase": True}),
]


@needs_timers
@pytest.mark.parametrize("data", DATA)
@each_loss
@pytest.mark.parametrize(
    ("solver", "options"), SETTINGS, ids=lambda of: getattr(of, "__name__", str(of))
)
@ignore_convergence
def test_hostile_fits_end(data, loss, solver, options, monkeypatch):
    # without it l1 fits that cannot converge take 120 times as long
    monkeypatch.setattr("sparserf.solvers.budget.FIT_WORK", 3e8)
    Z, y = DATA[data]
    y = y if loss == "squared" else y > 0
    for alpha in (0.0 if solver is mfga else 1e-8, 1e-3, 1.0):
        with after(60, TimeoutError):
            model = solver(Z, y, loss=loss, alpha=alpha, **options)
        assert np.isfinite(model.coef).all()


@each_loss
@pytest.mark.parametrize(
    "options", [{"n_components": 20_000}, {"features": "gaussian", "exact": True}], ids=str
)
@ignore_convergence
def test_a_callback_ends_a_long_iteration(loss, options, monkeypatch):
    """A callback is called within a long first iteration, too, and the model is what was found by
    then."""
    monkeypatch.setattr("sparserf._base.progress.SECONDS_BETWEEN_CALLS", 0.1)
    y = np.tile(SMOOTH, 20) + np.random.default_rng(2).standard_normal(20 * N)
    told = []

    def callback(info):
        told.append((time.process_time(), info))
        return len(told) == 2

    Z = np.tile(X, (20, 1)) + 1e-3 * np.random.default_rng(3).standard_normal((20 * N, D))
    with after(60, TimeoutError):
        model = srf.sparse_rf(
            Z,
            y if loss == "squared" else y > 0,
            alpha=1e-8,
            loss=loss,
            callback=callback,
            rng=0,
            **options,
        )
    assert len(told) == 2 and np.isfinite([model.info.objective[-1], model.info.dual_gap]).all()
    assert time.process_time() - told[-1][0] < 5


@pytest.mark.parametrize("features", ["auto", "gaussian"])
def test_work_is_bounded_the_same_for_any_workers(features, monkeypatch):
    """A warning tells the gap that is left; max_iter lifts the bound."""
    monkeypatch.setattr("sparserf.solvers.budget.FIT_WORK", 5e6)
    monkeypatch.setattr("sparserf.solvers.budget.PASSES", 0)
    options = {"alpha": 1e-4, "features": features, "n_components": 1000, "rng": 0}
    with pytest.warns(srf.ConvergenceWarning, match="with a duality gap of"):
        model, again = (srf.sparse_rf(X, SMOOTH, workers=workers, **options) for workers in (1, 2))
    assert model.coef.tobytes() == again.coef.tobytes() and not model.info.converged
    assert srf.sparse_rf(X, SMOOTH, max_iter=10_000, **options).info.converged


@needs_timers
@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
@pytest.mark.parametrize(
    "solver", [srf.sparse_rf, srf.harfe, srf.harfe_path, srf.mfga, srf.mfga_path]
)
def test_an_interrupt_ends_the_fit(solver):
    options = {srf.mfga: {"n_nonzero_coefs": 2000, "features": "gaussian"}}
    options[srf.mfga_path] = options[srf.mfga]
    with pytest.raises(KeyboardInterrupt), after(60, TimeoutError), after(0.3, KeyboardInterrupt):
        solver(np.tile(X, (100, 1)), np.tile(SMOOTH, 100), rng=0, **options.get(solver, {}))


@pytest.mark.parametrize(
    ("solver", "y", "options", "says"),
    [
        *(
            (
                solver,
                SMOOTH,
                {"max_iter": 1, "start": "zero", "tol": 0, "n_components": 300},
                r"max_iter=1 .* with a duality gap of \d.* above tol=0",
            )
            for solver in (srf.harfe, srf.harfe_path)
        ),
        *(
            (
                solver,
                SMOOTH > 0,
                {"n_nonzero_coefs": 5, "loss": "logistic"},
                r"predicted to lower the objective by \d",
            )
            for solver in (srf.mfga, srf.mfga_path)
        ),
    ],
)
def test_a_warning_says_what_was_not_reached_and_points_at_the_caller(
    solver, y, options, says, monkeypatch
):
    # of mfga's Newton steps for each round
    monkeypatch.setattr("sparserf.solvers.greedy.MAX_STEPS", 1)
    with pytest.warns(srf.ConvergenceWarning, match=says) as caught:
        line, _ = inspect.currentframe().f_lineno, solver(X, y, rng=0, **options)
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, line)}


SMALL = np.random.default_rng(1).uniform(-1, 1, (60, 3))
FITS = {
    "harfe": lambda X, y, **k: srf.harfe(
        X, y, n_components=80, n_nonzero_coefs=70, max_iter=3, rng=0, **k
    ),
    "harfe plain": lambda X, y, **k: srf.harfe(
        X,
        y,
        features=srf.Linear(),
        normalize=False,
        backtracking=False,
        start="zero",
        n_nonzero_coefs=2,
        selection="positive",
        **k,
    ),
    "mfga": lambda X, y, **k: srf.mfga(X, y, n_nonzero_coefs=6, **k),
    "mfga, linear": lambda X, y, **k: srf.mfga(X, y, n_nonzero_coefs=3, features=srf.Linear(), **k),
    "mfga, several": lambda X, y, **k: srf.mfga(
        X, y, n_nonzero_coefs=6, n_select=3, normalize=True, **k
    ),
}


@pytest.mark.parametrize("alpha", [1e-3, 1e-300])
@pytest.mark.parametrize("size", [1e-320, 1e-308, 1e-154, 1e100, 1e154, 1.7e308])
@pytest.mark.parametrize("where", ["X", "column", "y"])
@pytest.mark.parametrize("solver", FITS)
@ignore_convergence
@pytest.mark.filterwarnings("ignore:.*columns of very different spread")
def test_no_other_warning_at_the_ends_of_float(alpha, size, where, solver):
    """A fit gives finite numbers, or an error that says what is not of moderate size."""
    Z, y = SMALL.copy(), np.sin(3 * SMALL[:, 0]) + SMALL[:, 1]
    if where == "y":
        y = y / np.abs(y).max() * size
    else:
        Z[:, slice(None) if where == "X" else 0] *= size
    try:
        model = FITS[solver](Z, y, alpha=alpha)
    except ValueError as error:
        assert "must be of moderate size" in str(error) and size > 1  # noqa: PT017
    else:
        assert np.isfinite(
            [*np.ravel(model.coef), *model.info.objective, model.info.dual_gap]
        ).all()
