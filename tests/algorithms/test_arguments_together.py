"""Weights of rows and classes, offsets, groups and a time limit in one call: all of them reach each
fit, row by row."""

from functools import partial

import numpy as np
import pytest

import sparserf as srf
from sparserf import losses
from sparserf import sklearn as srfs

from ..conftest import bits, ignore_convergence

N = 240
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 2))
OFFSET = RNG.normal(0, 1, N)
GROUPS = np.arange(N) // 6
COUNTS = RNG.poisson(np.exp(np.sin(2 * X[:, 0]) + OFFSET)).astype(float)
LABELS = np.array(["no", "yes"])[
    (np.sin(2 * X[:, 0]) + OFFSET + 0.5 * RNG.standard_normal(N) > 0.8).astype(int)
]
SOME = RNG.integers(0, 3, N).astype(float)
QUICK = {"features": "gaussian", "n_components": 100, "rng": 0}
COUNT_LOSSES = {"poisson": "poisson", "tweedie": losses.Tweedie(1.4)}
CASES = {name: {"y": COUNTS, "loss": loss} for name, loss in COUNT_LOSSES.items()}
CASES |= {
    "logistic": {"y": LABELS, "loss": "logistic", "class_weight": "balanced"},
    "huber": {"y": COUNTS, "loss": "huber"},
}
ALL = {"sample_weight": SOME, "offset": OFFSET, "groups": GROUPS}
AUTO = {
    "harfe": partial(srf.harfe, n_nonzero_coefs=2, alpha=1e-4),
    "mfga": partial(srf.mfga, n_nonzero_coefs=2, alpha=1e-3),
}
OF_ESTIMATORS = {
    "SparseRF": (srf.sparse_rf, {"alpha": 0.01, "features": "gaussian", "n_components": 100}),
    "HARFE": (srf.harfe, {"n_nonzero_coefs": 5, "n_components": 100}),
    "MFGA": (srf.mfga, {"n_nonzero_coefs": 5, "features": "gaussian", "n_components": 100}),
    "DRP": (srf.drp, {"alpha": 0.01}),
}


@ignore_convergence
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("alpha", [None, 0.01], ids=["chosen", "given"])
def test_rows_without_weight_are_left_out_of_all_arguments(case, alpha):
    how = {"features": "gaussian", "n_components": 100, "alpha": alpha, "rng": 0}
    used, y = SOME > 0, case["y"]
    fit = partial(
        srf.sparse_rf, **{name: value for name, value in case.items() if name != "y"}, **how
    )
    one = fit(X, y, **ALL)
    other = fit(X[used], y[used], **{name: values[used] for name, values in ALL.items()})
    assert bits(one) == bits(other)


@ignore_convergence
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_time_that_is_never_over_changes_nothing(case):
    one, other = (
        srf.sparse_rf(X, **case, **ALL, **QUICK, time_limit=limit) for limit in (None, 1e6)
    )
    assert bits(one) == bits(other) and not other.info.cut


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_short_time_gives_a_model(case):
    with pytest.warns(srf.TimeLimitWarning):
        model = srf.sparse_rf(X, **case, **ALL, time_limit=1e-6, rng=0)
    assert np.isfinite(model.decision_function(X, offset=OFFSET)).all()


@pytest.mark.slow
@ignore_convergence
@pytest.mark.parametrize("fit", AUTO.values(), ids=AUTO)
@pytest.mark.parametrize("case", [CASES["poisson"], CASES["logistic"]], ids=["poisson", "logistic"])
def test_features_that_are_chosen_are_those_of_sparse_rf(fit, case):
    rng = np.random.default_rng(0)
    found = srf.sparse_rf(X, **case, **ALL, rng=rng)
    by_hand = fit(X, features=found.features, **case, **ALL, rng=rng)
    model = fit(X, features="auto", **case, **ALL, rng=0)
    # of two rules that hold the same rows either may come first
    f, by_hand = (each.decision_function(X, offset=OFFSET) for each in (model, by_hand))
    np.testing.assert_allclose(f, by_hand, rtol=1e-9)


@ignore_convergence
@pytest.mark.parametrize("name", OF_ESTIMATORS)
@pytest.mark.parametrize(
    ("kind", "case"), [("Regressor", CASES["poisson"]), ("Classifier", CASES["logistic"])]
)
def test_estimators_pass_on_what_fit_is_given(name, kind, case):
    function, options = OF_ESTIMATORS[name]
    y, how = (
        case["y"],
        options | {argument: value for argument, value in case.items() if argument != "y"},
    )
    estimator = getattr(srfs, name + kind)(**how, random_state=0).fit(X, y, **ALL)
    assert bits(estimator.model_) == bits(function(X, y, **how, **ALL, rng=0))


@ignore_convergence
def test_folds_are_given_the_offsets_and_groups_of_their_rows():
    given = []

    def fit(X, y, *, offset, groups, sample_weight, time_limit, n_components, rng):
        given.append((X, y, offset, groups, sample_weight, time_limit))
        how = {
            "features": "gaussian",
            "alpha": 0.05,
            "loss": "poisson",
            "n_components": n_components,
            "rng": rng,
        }
        return srf.sparse_rf(X, y, offset=offset, groups=groups, sample_weight=sample_weight, **how)

    grid = {"n_components": [50, 100]}
    found = srf.cross_validate(fit, X, COUNTS, grid, cv=3, **ALL, time_limit=1000.0, rng=0)
    place = {row.tobytes(): k for k, row in enumerate(X)}
    assert len(given) == 2 * 3 + 1
    for rows, y, offset, groups, weight, limit in given:
        index = [place[row.tobytes()] for row in rows]
        assert np.array_equal(y, COUNTS[index]) and np.array_equal(offset, OFFSET[index])
        assert np.array_equal(groups, GROUPS[index]) and np.array_equal(
            weight, SOME[index] / SOME.max()
        )
        assert 0 < limit < 1000
    assert all(len(set(found.fold[(GROUPS == k) & (SOME > 0)])) <= 1 for k in set(GROUPS))


@ignore_convergence
def test_a_fit_with_offsets_goes_on_from_its_model():
    how = {
        "features": "gaussian",
        "n_components": 100,
        "batch_size": 10,
        "alpha": 0.01,
        "loss": "poisson",
        "rng": 0,
        **ALL,
    }
    model = srf.sparse_rf(X, COUNTS, **how)
    again = srf.sparse_rf(X, COUNTS, **how, start=model)
    assert (
        again.info.objective[0] < 1.001 * model.info.objective[-1] < 0.99 * model.info.objective[0]
    )


@pytest.mark.slow
def test_intervals_of_new_groups_with_offsets():
    y, more = (
        np.sin(2 * X[:, 0]) + OFFSET + 0.1 * RNG.standard_normal(N),
        {"offset": OFFSET, "groups": GROUPS},
    )
    bands = srf.intervals(partial(srf.sparse_rf, effort=0.3), X, y, **more, coverage=0.8, rng=0)
    lower, upper = bands.predict(X, offset=OFFSET)
    assert np.mean((lower <= y) & (y <= upper)) > 0.7 and np.mean(upper - lower) < 1.5
