"""NumPy's error state of the caller changes nothing, and functions of the caller's are called in
it."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf

from ..conftest import bits, ignore_convergence
from ..kinds_of_input import FITS, LABELS, X, Y
from ..losses.own_losses import WRONG

pytestmark = ignore_convergence
RNG = np.random.default_rng(0)
N = 120
ROWS = RNG.standard_normal((N, 3))
F = ROWS[:, 0] + np.sin(2 * ROWS[:, 1])
TARGETS = {
    "squared": F,
    "huber": F,
    "quantile": F,
    "poisson": RNG.poisson(np.exp(F)).astype(float),
    "gamma": np.exp(F),
    "tweedie": np.exp(F),
    "logistic": np.where(F > 0, "p", "n"),
    "squared_hinge": np.where(F > 0, "p", "n"),
    "multinomial": np.digitize(F, [-0.7, 0.7]),
}
BY_LOSS = {
    "sparse_rf": lambda X, y, **how: srf.sparse_rf(X, y, effort=0.02, **how),
    "gaussian": lambda X, y, **how: srf.sparse_rf(
        X, y, features="gaussian", alpha=0.01, n_components=100, **how
    ),
    "harfe": lambda X, y, **how: srf.harfe(
        X, y, n_nonzero_coefs=5, alpha=1e-4, n_components=100, **how
    ),
    "mfga": lambda X, y, **how: srf.mfga(X, y, n_nonzero_coefs=4, alpha=1e-3, **how),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-3, **how),
}
HOMES = {
    "dense": ROWS,
    "float32": ROWS.astype(np.float32),
    "CSR": sp.csr_array(np.where(np.abs(ROWS) > 0.5, ROWS, 0.0)),
    "frame": pd.DataFrame(np.where(ROWS > 2, np.nan, ROWS), columns=list("abc")).assign(
        d=["u", "v", None] * (N // 3)
    ),
}
EXTREME = {
    "X 1e150": (1e150, 1.0),
    "X 1e-160": (1e-160, 1.0),
    "y 1e150": (1.0, 1e150),
    "y 1e-150": (1.0, 1e-150),
}


def same_bits(work):
    """Check that work() gives the same where NumPy is to raise as where it is to say what it says
    by default."""
    expected = work()
    with np.errstate(all="raise"):
        got = work()
    assert got == expected


@pytest.mark.parametrize("size", EXTREME)
@pytest.mark.parametrize("name", FITS)
def test_fits_of_extreme_numbers(name, size):
    of_X, of_y = EXTREME[size]
    rows, y = of_X * X, of_y * Y

    def work():
        try:
            return bits(FITS[name](rows, y))
        except ValueError as error:  # which says that numbers are too large
            return str(error)

    same_bits(work)


@pytest.mark.parametrize("name", FITS)
def test_fits_of_labels(name):
    same_bits(lambda: bits(FITS[name](X, LABELS, loss="logistic")))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("name", BY_LOSS)
def test_fits_of_every_loss(name, loss, workers):
    how = {
        "loss": loss,
        "rng": 0,
        "workers": workers,
        "sample_weight": np.geomspace(1e-200, 1.0, N),
    }
    same_bits(lambda: bits(BY_LOSS[name](ROWS, TARGETS[loss], **how)))


@pytest.mark.parametrize("home", HOMES)
def test_fits_wherever_rows_are(home):
    y = TARGETS["logistic"]
    same_bits(lambda: bits(BY_LOSS["sparse_rf"](HOMES[home], y, loss="logistic", rng=0, workers=2)))


ABOUT_MODELS = {
    "predict": lambda m, X: m.predict(X, 2),
    "decision_function": lambda m, X: m.decision_function(X),
    "predict_proba": lambda m, X: m.loss in ("logistic", "multinomial") and m.predict_proba(X),
    "transform": lambda m, X: m.features.transform(X),
    "gradient": lambda m, X: m.gradient(X),
    "hessian_diag": lambda m, X: m.hessian_diag(X),
    "shapley": lambda m, X: m.shapley(X[:5]),
    "summary": lambda m, X: repr(m.summary(X[:50])),
    "bounds": lambda m, X: m.bounds({}, tol=0.3, time_limit=1),
    "is_monotone": lambda m, X: m.is_monotone(0, {}, time_limit=1),
    "mean": lambda m, X: m.mean(X),
    "formula": lambda m, X: m.formula("latex"),
    "to_json": lambda m, X: m.to_json(),
    "to_c": lambda m, X: m.to_c(),
    "sql": lambda m, X: m.formula("sql"),
    "prune": lambda m, X: srf.prune(m, X, max_terms=2).to_json(),
    "limits": lambda m, X: m.limits_of_predictions,
}
MODELS = (
    "auto",
    "steps",
    "relu",
    "cubes",
    "bumps",
    "two classes",
    "multinomial",
    "counts",
    "no term",
)


@pytest.mark.parametrize("what", ABOUT_MODELS)
@pytest.mark.parametrize("name", MODELS)
def test_what_is_asked_of_models(models, name, what):
    """Of rows of usual sizes, and where features over- and underflow."""
    rows = np.random.default_rng(1).standard_normal((60, 4))
    is_timed = what in ("bounds", "is_monotone")  # which look at no rows
    asked = [rows] if is_timed else [rows, rows * [1e300, 1e-300, 1e20, 1.0]]

    def work():
        answers = []
        for some in asked:
            try:
                answers.append(repr(ABOUT_MODELS[what](models[name], some)))
            except (ValueError, TypeError) as error:  # such as a mean that is not there
                answers.append(str(error))
        return answers

    if is_timed:
        with np.errstate(all="raise"):
            work()
    else:
        same_bits(work)


@pytest.mark.parametrize("name", ["calibrated", "intervals", "cross_validate", "distill", "sums"])
def test_other_functions(name):
    y = TARGETS["squared"]
    fit = partial(srf.mfga, n_nonzero_coefs=3, alpha=1e-3)
    of_labels = partial(fit, loss="logistic")
    linear = srf.Linear().draw(3, 3, rng=0)
    work = {
        "calibrated": lambda: bits(srf.calibrated(of_labels, ROWS, TARGETS["logistic"], rng=0)),
        "intervals": lambda: repr(srf.intervals(fit, ROWS, y, coverage=0.8, rng=0).predict(ROWS)),
        "cross_validate": lambda: repr(srf.cross_validate(fit, ROWS, y, {}, rng=0).table),
        "distill": lambda: bits(
            srf.distill(lambda X: X[:, 0], ROWS, n_made=50, effort=0.02, rng=0)
        ),
        "sums": lambda: bits(
            srf.Sums.of(ROWS, y, linear).fit(srf.mfga, n_nonzero_coefs=2, alpha=1e-3)
        ),
    }[name]
    same_bits(work)


def test_sums_that_overflow():
    with np.errstate(all="raise"):
        one = srf.Sums.of(ROWS, F, srf.Linear().draw(None, 3), sample_weight=np.full(N, 1e306))
        with pytest.raises(ValueError, match="must be of moderate size"):
            one + one


def test_a_loss_that_overflows():
    loss, error, message = WRONG["infinite"]
    with np.errstate(all="raise"), pytest.raises(error, match=message):
        srf.losses.check(loss, F)


def test_estimators_that_are_asked_for_importances():
    from sparserf.sklearn import SparseRFRegressor

    rows, estimator = (
        ROWS * [1e150, 1e-300, 1.0],
        SparseRFRegressor(features="gaussian", alpha=0.03, random_state=0),
    )
    same_bits(lambda: estimator.fit(rows, F).feature_importances_.tobytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{"effort": 0.02}, {"features": "gaussian", "alpha": 0.01}], ids=["default", "gaussian"]
)
def test_rows_in_blocks(how):
    """They are read in a thread of their own, and squares of them overflow."""
    rows, y = ROWS * [1e200, 1.0, 1e-300], TARGETS["poisson"]
    read = lambda start, stop: rows[start:stop]  # noqa: E731
    how = {"loss": "poisson", "n_components": 50, "rng": 0, "workers": 2, **how}
    same_bits(lambda: bits(srf.sparse_rf(srf.Chunks(read, rows.shape, block_rows=50), y, **how)))


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_partitions_of_dask(scheduler):
    dask, arrays, rows = (
        pytest.importorskip("dask"),
        pytest.importorskip("dask.array"),
        ROWS * [1e200, 1.0, 1e-300],
    )
    linear = srf.Linear().draw(None, 3)

    def work():
        X = arrays.from_array(rows, (50, 3))
        with dask.config.set(scheduler=scheduler), pytest.raises(ValueError, match="moderate size"):
            srf.Sums.of(X, F, linear)
        with dask.config.set(scheduler=scheduler):
            return bits(
                srf.sparse_rf(X, F, features="gaussian", alpha=0.01, n_components=50, rng=0)
            )

    same_bits(work)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["ignore", "raise"])
def test_functions_of_the_caller_have_the_state_of_the_caller(state):
    seen = []

    def look(_):
        seen.append(np.geterr())

    def teacher(X):
        look(X)
        return X[:, 0]

    with np.errstate(all=state, under="warn"):
        outside = np.geterr()
        srf.mfga(ROWS, F, n_nonzero_coefs=2, alpha=1e-3, callback=look, rng=0)
        srf.distill(teacher, ROWS, n_made=20, effort=0.02, rng=0)
        assert np.geterr() == outside
    assert len(seen) > 2 and all(each == outside for each in seen)


def test_an_error_leaves_the_state_as_it_was():
    before = np.geterr()
    with pytest.raises(ValueError, match="n_nonzero_coefs"):
        srf.mfga(ROWS, F, n_nonzero_coefs=-1, alpha=1e-3)
    assert np.geterr() == before
