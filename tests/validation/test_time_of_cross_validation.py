"""`cross_validate` and `calibrated` within a time limit: shares for the fits, and always a model;
the clock is not real."""

import warnings
from functools import partial

import numpy as np
import pytest

import sparserf as srf

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (90, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1]
GRID = {"max_terms": [3, 6]}


class Searches:
    """A function with a time limit, each call of which takes some seconds; it notes the limits that
    it is given."""

    def __init__(self, time, seconds):
        self.time, self.seconds, self.limits = time, seconds, []

    def __call__(self, X, y, *, max_terms, rng, time_limit=None):
        self.limits.append(time_limit)
        self.time[0] += self.seconds
        return srf.mfga(X, y, n_nonzero_coefs=max_terms, alpha=1e-3, rng=rng)


@pytest.fixture
def time(set_clock):
    """Return the time that deadlines read, in a list."""
    time = [0.0]
    set_clock(lambda: time[0])
    return time


def test_each_fit_has_a_share_of_what_is_left_and_the_last_one_twice_as_much(time):
    function = Searches(time, 0.0)
    found = srf.cross_validate(function, X, Y, GRID, cv=3, time_limit=8.0, rng=0)
    assert np.allclose(function.limits, [8 / 8, 8 / 7, 8 / 6, 8 / 5, 8 / 4, 8 / 3, 8.0])
    assert found.model.info.cut == {} and np.isfinite(found.losses).all()
    function = Searches(time, 1.0)
    srf.cross_validate(function, X, Y, GRID, cv=3, time_limit=8.0, rng=0)
    assert np.allclose(function.limits, [1, 1, 1, 1, 1, 1, 2])


def test_settings_without_time_are_left_out_and_the_last_fit_keeps_its_share(time):
    function = Searches(time, 1.7)
    found = srf.cross_validate(function, X, Y, GRID, cv=3, time_limit=8.0, rng=0)
    assert len(function.limits) == 5 and function.limits[-1] == pytest.approx(8 - 4 * 1.7)
    assert (
        np.isfinite(found.losses[0]).all()
        and np.isnan(found.losses[1, 1:]).all()
        and found.best == {"max_terms": 3}
    )
    assert found.model.info.cut == {"settings": 1} and len(found.model.support) == 3
    assert srf.SparseModel.from_json(found.model.to_json()).info == found.model.info


def test_where_no_setting_is_tried_the_first_is_taken_with_a_warning(time):
    function = Searches(time, 7.0)
    with pytest.warns(srf.TimeLimitWarning, match="not one setting was tried"):
        found = srf.cross_validate(function, X, Y, GRID, cv=3, time_limit=8.0, rng=0)
    assert found.best == {"max_terms": 3} and found.model.info.cut == {"settings": 2}
    assert "best" in repr(found) and found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("n_readings", [1, 10, 300, 3000])
def test_searches_of_sparse_rf_within_the_limit(n_readings, set_clock):
    count = [0]

    def now():
        count[0] += 1
        return 0.0 if count[0] <= n_readings else 1e9

    set_clock(now)
    fit = partial(srf.sparse_rf, n_components=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", srf.TimeLimitWarning)
        found = srf.cross_validate(fit, X, Y, GRID, cv=2, time_limit=1.0, rng=0)
    assert np.isfinite(found.model.predict(X)).all() and (
        found.model.info.cut or n_readings == 3000
    )


def test_values_of_a_path_are_fitted_one_by_one(time):
    fit = partial(srf.sparse_rf, features="gaussian", n_components=50)
    found = srf.cross_validate(fit, X, Y, {"alpha": [0.1, 0.01]}, cv=2, time_limit=1.0, rng=0)
    assert np.isfinite(found.losses).all() and found.model.info.alpha == found.best["alpha"]


def test_what_has_no_limit_is_refused():
    with pytest.raises(ValueError, match="time_limit must be None for a function that has none"):
        srf.cross_validate(srf.drp, X, Y, {"alpha": [1.0]}, time_limit=1.0)
    with pytest.raises(ValueError, match="time_limit must be None where the grid has"):
        srf.cross_validate(srf.sparse_rf, X, Y, {"time_limit": [1.0]}, time_limit=1.0)
    with pytest.raises(ValueError, match="time_limit must be finite and > 0"):
        srf.cross_validate(srf.sparse_rf, None, None, {}, time_limit=-1.0)


SHARES = {0.0: [2, 8 / 3, 4, 8], 1.0: [2, 7 / 3, 3, 5], 5.0: [2, 1, 1e-3, 1e-3]}


@pytest.mark.parametrize(("seconds", "limits"), SHARES.items())
def test_each_fit_of_a_calibration_has_a_share_of_what_is_left(time, seconds, limits):
    function = Searches(time, seconds)

    def fit(X, y, *, rng, time_limit=None):
        function(X, X[:, 0], max_terms=2, rng=rng, time_limit=time_limit)
        return srf.mfga(X, y, n_nonzero_coefs=2, alpha=1e-3, loss="logistic", rng=rng)

    with warnings.catch_warnings(action="ignore", category=srf.ConvergenceWarning):
        model = srf.calibrated(fit, X, Y > 0, cv=3, time_limit=8.0, rng=0)
    assert np.allclose(function.limits, limits)
    assert np.isfinite(model.predict_proba(X)).all()


def test_what_a_calibration_cannot_limit():
    fit = partial(srf.drp, alpha=0.1, loss="logistic")
    with pytest.raises(ValueError, match="time_limit must be None for a function that has none"):
        srf.calibrated(fit, X, Y > 0, time_limit=1.0)
    for given in (fit, srf.drp(X, Y > 0, alpha=0.1, loss="logistic")):
        with pytest.raises(ValueError, match="time_limit must be finite and > 0"):
            srf.calibrated(given, X, Y > 0, time_limit=-1.0)
