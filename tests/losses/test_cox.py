"""Cox's proportional hazards: fits are at the optimum of the partial likelihood, survival is
Breslow's, measures are their plain loops, and y that is none is refused by name."""

import pickle
import re
import warnings
from functools import partial

import array_api_strict as strict
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize

import sparserf as srf
from sparserf import sklearn as estimators
from sparserf.losses import Cox, check_loss

FEW = {"n_components": 200, "rng": 0}
FITS = {
    "sparse_rf": partial(srf.sparse_rf, alpha=0.02, **FEW),
    "default": partial(srf.sparse_rf, effort=0.1, features="gaussian", rng=0),
    "harfe": partial(srf.harfe, n_nonzero_coefs=8, alpha=1e-2, **FEW),
    "mfga": partial(srf.mfga, n_nonzero_coefs=8, alpha=1e-2, rng=0),
    "drp": partial(srf.drp, alpha=0.01, rng=0),
    "drp, chosen": partial(srf.drp, rng=0),
}
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
LINEAR = {"loss": "cox", "scale": None, "tol": 1e-6, "rng": 0}
STRATA = np.array(["b", "a", "c"])


def structured(time, event, stratum=None):
    """Return y as a structured array."""
    columns = {"event": event, "time": time} | ({} if stratum is None else {"stratum": stratum})
    y = np.empty(len(time), [(name, np.asarray(each).dtype) for name, each in columns.items()])
    for name, each in columns.items():
        y[name] = each
    return y


def rows(n=120, seed=0, digits=1):
    """Return (X, time, event); times are rounded, so that there are ties."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    time = rng.exponential(np.exp(0.5 * X[:, 1] - X[:, 0]))
    censored = rng.exponential(2.0, n)
    return X, np.round(np.minimum(time, censored), digits), time <= censored


X, TIME, EVENT = rows()
Y = structured(TIME, EVENT)
STRATUM = np.arange(len(X)) % 3


def minus_log_partial_likelihood(f, time, event, weight, stratum):
    """Return (its value with Breslow's ties, its derivative in f), in plain loops."""
    value, slope = 0.0, np.zeros(len(f))
    for i in np.flatnonzero(event):
        at_risk = (time >= time[i]) & (stratum == stratum[i])
        shares = np.where(at_risk, weight * np.exp(f), 0.0)
        value += weight[i] * (np.log(shares.sum()) - f[i])
        slope += weight[i] * shares / shares.sum()
        slope[i] -= weight[i]
    return value, slope


def best_coefficients(X, time, event, alpha, weight=None, stratum=None, offset=0.0):
    """Return the minimiser of -log partial likelihood / events + alpha / 2 |w|^2."""
    weight = np.ones(len(X)) if weight is None else weight
    stratum = np.zeros(len(X)) if stratum is None else stratum
    n_events = weight @ event

    def objective(w):
        value, slope = minus_log_partial_likelihood(X @ w + offset, time, event, weight, stratum)
        return value / n_events + alpha / 2 * w @ w, X.T @ slope / n_events + alpha * w

    return minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", tol=1e-9).x


# -- the optimum


@pytest.mark.parametrize("alpha", [1e-9, 0.3])
@pytest.mark.parametrize("has_strata", [False, True], ids=["one stratum", "strata"])
def test_a_linear_fit_is_at_the_optimum_of_the_partial_likelihood(alpha, has_strata):
    stratum = STRATUM if has_strata else None
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    offset = 0.3 * X[:, 2] ** 2
    how = {"sample_weight": weight, "offset": offset, "alpha": alpha, **LINEAR}
    model = srf.drp(X, structured(TIME, EVENT, stratum), **how)
    best = best_coefficients(X, TIME, EVENT, alpha, weight, stratum, offset)
    np.testing.assert_allclose(model.coef, best, atol=5e-6)
    assert weight @ model.predict(X) == pytest.approx(0.0, abs=1e-9)


def test_a_fit_by_l1_is_at_the_optimum_for_its_penalty():
    """Of the mean partial likelihood over rows: at the optimum its slope in each coefficient is
    alpha, or less where the coefficient is 0."""
    model = srf.sparse_rf(
        X, Y, loss="cox", features=srf.Linear(), alpha=0.06, exact=True, tol=1e-9, scale=None, rng=0
    )
    assert 0 < len(model.support) < 3
    ones = np.ones(len(X))
    _, slope = minus_log_partial_likelihood(model.predict(X), TIME, EVENT, ones, ones)
    gradient = model.features.transform(X).T @ slope / len(X)
    np.testing.assert_allclose(gradient, -0.06 * np.sign(model.coef), rtol=0.02)


def test_the_partial_likelihood_falls_from_round_to_round():
    values, ones = [], np.ones(len(X))
    loss = Cox(**srf.drp(X, Y, **LINEAR | {"alpha": 1e9}).loss_parameters)  # those of a constant
    for _ in range(5):
        f = srf.drp(X, Y, **LINEAR | {"alpha": 1e-9, "loss": loss}).predict(X)
        values.append(minus_log_partial_likelihood(f, TIME, EVENT, ones, ones)[0])
        loss = loss.fitted_to(f, loss.codes(TIME, EVENT, None), ones)
    assert (np.diff(values) < 0).all()
    best = X @ best_coefficients(X, TIME, EVENT, 0.0)
    least = minus_log_partial_likelihood(best, TIME, EVENT, ones, ones)[0]
    assert least < values[-1] < least + 1e-3 * (values[0] - least)


@pytest.mark.slow
def test_weights_are_duplicates_and_rows_of_weight_0_are_none():
    weight = np.random.default_rng(2).integers(0, 3, len(X))
    often = np.repeat(np.arange(len(X)), weight)
    weighted = srf.drp(X, Y, sample_weight=weight, alpha=0.01, **LINEAR)
    repeated = srf.drp(X[often], Y[often], alpha=0.01, **LINEAR)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-5)
    times = [0.0, 0.1, 1.0, 3.0]
    np.testing.assert_allclose(weighted.survival(X, times), repeated.survival(X, times), rtol=1e-5)


@pytest.mark.slow
def test_the_order_and_the_unit_of_rows_are_no_matter():
    order = np.random.default_rng(3).permutation(len(X))
    model = srf.drp(X, Y, alpha=0.01, **LINEAR)
    permuted = srf.drp(X[order], Y[order], alpha=0.01, **LINEAR)
    in_days = srf.drp(X, structured(365.25 * TIME, EVENT), alpha=0.01, **LINEAR)
    np.testing.assert_allclose(permuted.coef, model.coef, rtol=1e-6)
    np.testing.assert_array_equal(in_days.coef, model.coef)
    np.testing.assert_array_equal(in_days.survival(X, [365.25]), model.survival(X, [1.0]))


@each_fit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_function_fits_hazards(fit, dtype):
    model = fit(X.astype(dtype), Y, loss="cox")
    f = model.predict(X.astype(dtype))
    assert f.dtype == dtype and len(model.support) > 0
    assert srf.concordance(Y, f) > 0.7
    assert abs(f.mean()) < 1e-4
    S = model.survival(X.astype(dtype), np.linspace(0, 4, 9))
    assert S.dtype == dtype and S.shape == (len(X), 9)
    assert (S >= 0).all() and (S <= 1).all() and (np.diff(S) <= 0).all()


def test_the_loss_is_that_of_a_poisson_count_wherever_it_is_computed(rng):
    loss = Cox(times=(1.0, 2.0, 5.0), hazards=(0.1, 0.7, 2.0))
    y = rng.integers(-3, 4, 200) * 1.0
    z, log_hazard = (
        2 * rng.standard_normal(200),
        np.log([1.0, 0.1, 0.7, 2.0])[np.abs(y).astype(int)],
    )
    poisson, events, has_loss = srf.losses.Poisson(), (y > 0) * 1.0, y != 0
    for method in ("value", "derivative", "curvature"):
        expected = getattr(poisson, method)(z + log_hazard, events) * has_loss
        found = getattr(loss, method)(z, y)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        there = getattr(loss, method)(strict.asarray(z), strict.asarray(y))
        np.testing.assert_array_equal(np.from_dlpack(there), found)
    u = loss.derivative(z, y)
    np.testing.assert_allclose(loss.conjugate(u, y), u * z - loss.value(z, y), atol=1e-12)
    there = loss.conjugate(strict.asarray(u), strict.asarray(y))
    np.testing.assert_allclose(np.from_dlpack(there), loss.conjugate(u, y), atol=1e-15)


# -- survival


def plain_survival(model, time, event, stratum, at, label):
    """Return the survival of Breslow's baseline hazard for a model's f, in plain loops."""
    f, hazard = model.predict(X), np.zeros(len(at))
    ratio = np.exp(f)
    for i in np.flatnonzero(event & (stratum == label)):
        step = 1 / ratio[(time >= time[i]) & (stratum == label)].sum()
        hazard += step * (time[i] <= at)
    return np.exp(-hazard * ratio[:, None])


def test_survival_is_that_of_breslow_and_constant_beyond_the_last_event():
    at = np.array([-1.0, 0.0, 0.1, 0.5, 2.0, TIME.max(), 1e9])
    for stratum, labels in ((None, [None]), (STRATA[STRATUM], ["a", "b", "c"])):
        model = srf.drp(X, structured(TIME, EVENT, stratum), alpha=0.01, loss="cox", rng=0)
        for label in labels:
            there = np.full(len(X), label) if stratum is None else stratum
            expected = plain_survival(model, TIME, EVENT, there, at, label)
            S = model.survival(X, at, stratum=label)
            np.testing.assert_allclose(S, expected, rtol=1e-10)
            np.testing.assert_array_equal(S[:, -1], S[:, -2])
            np.testing.assert_array_equal(model.survival(X, at[::-1], stratum=label), S[:, ::-1])
    assert (S[:, 0] == 1).all()


def test_an_offset_multiplies_the_hazard():
    model = srf.drp(X, Y, alpha=0.01, loss="cox", rng=0)
    S = model.survival(X, [1.0], offset=np.full(len(X), np.log(2.0)))
    np.testing.assert_allclose(S, model.survival(X, [1.0]) ** 2, rtol=1e-12)


def test_a_baseline_may_be_given():
    model = srf.drp(X, Y, alpha=0.01, **LINEAR)
    given = Cox(**model.loss_parameters)
    again = srf.drp(X, Y, alpha=0.01, **LINEAR | {"loss": given})
    np.testing.assert_allclose(again.coef, model.coef, rtol=1e-4)
    assert again.loss_parameters == model.loss_parameters
    assert "times of events" in repr(given) and len(repr(given)) < 50


@pytest.mark.slow
def test_extreme_hazard_ratios_are_finite():
    far = structured(np.arange(1.0, 41.0), np.ones(40, bool))
    x = np.linspace(40, -40, 40)[:, None]  # which orders all events
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = srf.drp(x, far, alpha=1e-8, scale=None, loss="cox", rng=0)
        S = model.survival(1e3 * x, [0.0, 1.0, 50.0])
    assert np.isfinite(model.coef).all() and np.isfinite(S).all() and (S[:, 0] == 1).all()


# -- y


def frames():
    """Return the same y in all its forms."""
    event, time = EVENT, TIME
    return {
        "event first": structured(time, event),
        "time first": np.rec.fromarrays([time, event], names=["t", "died"]),
        "numbers": np.column_stack([time, event]),
        "pairs": list(zip(time.tolist(), event.tolist(), strict=True)),
        "pandas": pd.DataFrame({"time": time, "event": event.astype(int)}),
        "pandas by kind": pd.DataFrame({"died": event, "weeks": time.astype(np.float32) * 1.0}),
        "pandas, nullable": pd.DataFrame(
            {"time": pd.array(time, "Float64"), "event": pd.array(event, "boolean")}
        ),
        "polars": pl.DataFrame({"event": event, "time": time}),
        "one stratum": structured(time, event, np.zeros(len(time))),
    }


@pytest.mark.parametrize("form", [form for form in frames() if form != "event first"])
def test_every_form_of_y_is_the_same(form):
    y = frames()[form]
    model, same = (srf.drp(X, each, alpha=1.0, loss="cox", rng=0) for each in (y, Y))
    np.testing.assert_array_equal(model.coef, same.coef)
    assert srf.concordance(y, X[:, 0]) == srf.concordance(Y, X[:, 0])


@pytest.mark.slow
def test_strata_of_numbers_strings_and_columns_are_the_same():
    models = [
        srf.drp(X, y, alpha=0.01, loss="cox", rng=0)
        for y in (
            structured(TIME, EVENT, STRATUM),
            structured(TIME, EVENT, STRATA[STRATUM]),
            np.column_stack([TIME, EVENT, STRATUM]),
            pd.DataFrame({"time": TIME, "event": EVENT, "stratum": STRATA[STRATUM]}),
            pl.DataFrame({"stratum": STRATUM, "time": TIME, "event": EVENT}),
        )
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.coef, models[0].coef, rtol=1e-9)
    S = models[0].survival(X, [1.0], stratum=0)
    np.testing.assert_allclose(models[1].survival(X, [1.0], stratum="b"), S, rtol=1e-9)


def changed(column, value):
    """Return y of numbers with one of them changed."""
    y = np.column_stack([TIME, EVENT]).astype(object if isinstance(value, str) else float)
    y[3, column] = value
    return y


NONE = np.zeros(len(X), bool)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (TIME, ValueError, "y must be a structured array or a data frame of a time and a boolean"),
        (np.zeros((len(X), 4)), ValueError, r"got shape \(120, 4\)"),
        ("time", TypeError, "y must be .*, got 'time'"),
        (Y[:-1], ValueError, r"y must have shape \(120,\)"),
        (changed(0, -0.5), ValueError, "y must have times of at least 0, got -0.5"),
        (changed(0, np.nan), ValueError, "y must be finite, got nan"),
        (changed(0, np.inf), ValueError, "y must be finite, got inf"),
        (changed(0, "soon"), TypeError, "y must hold real numbers, got 'soon'"),
        (changed(1, 2), ValueError, "y must have events of booleans, or 0 and 1, got 2.0 in row 3"),
        (changed(1, np.nan), ValueError, "y must be finite, got nan"),
        (changed(1, "yes"), TypeError, "y must have events of booleans, or 0 and 1, got 'yes'"),
        (structured(TIME, NONE), ValueError, "y must have an event, got 120 censored times"),
        (
            structured(np.arange(len(X)), np.arange(len(X)) == len(X) - 1),
            ValueError,
            "y must have an event at whose time other rows are at risk, got none",
        ),
        (structured(TIME, EVENT, np.arange(len(X))), ValueError, "other rows are at risk"),
        (
            pd.DataFrame({"a": TIME, "b": TIME}),
            ValueError,
            "got the columns 'a' of float64, 'b' of float64",
        ),
        (pd.DataFrame({"a": EVENT, "b": EVENT}), ValueError, "got the columns 'a' of bool"),
        (
            pd.DataFrame({"time": TIME, "event": EVENT, "entry": TIME}),
            ValueError,
            "got the columns 'time' of float64, 'event' of bool, 'entry' of float64",
        ),
        (
            pd.DataFrame({"time": TIME, "event": np.where(EVENT, "yes", "no")}),
            TypeError,
            "y must have events of booleans, or 0 and 1, got '(yes|no)'",
        ),
    ],
)
def test_y_that_is_none_is_refused(y, error, message):
    with pytest.raises(error, match=message) as raised:
        srf.drp(X, y, alpha=0.1, loss="cox")
    assert str(raised.value).startswith("y must")


def test_what_hazards_do_not_have_is_refused():
    model = srf.drp(X, Y, alpha=0.1, loss="cox", rng=0)
    stratified = srf.drp(X, structured(TIME, EVENT, STRATUM), alpha=0.1, loss="cox", rng=0)
    for message, call in (
        ("function_or_model must predict targets", lambda: srf.intervals(model, X, Y)),
        ("stratum must be one that had events, such as 0.0, 1.0, 2.0, got None",
         lambda: stratified.survival(X, [1.0])),
        ("stratum must be one that had events", lambda: stratified.survival(X, [1.0], stratum=9)),
        ("stratum must be None", lambda: model.survival(X, [1.0], stratum=9)),
        ("times must be finite, got nan", lambda: model.survival(X, [np.nan])),
        ("times must be one-dimensional", lambda: model.survival(X, 1.0)),
        ("survival needs a model fitted with loss='cox', this one has loss='squared'",
         lambda: srf.drp(X, TIME, alpha=0.1).survival(X, [1.0])),
        ("loss must be one of", lambda: srf.distill(model.predict, X, loss="cox")),
        ("class_weight must be None for loss='cox'",
         lambda: srf.drp(X, Y, alpha=0.1, loss="cox", class_weight="balanced")),
        ("times must be None|hazards must be None without times", lambda: Cox(hazards=(1.0,))),
        ("hazards must have 2 entries", lambda: Cox(times=(1.0, 2.0), hazards=(1.0,))),
        ("strata must ascend, and times in each of them", lambda: Cox(times=(2.0, 1.0))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


# -- measures


def plain_concordance(time, event, f, weight):
    """Return Harrell's concordance, in plain loops."""
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                pairs += weight[i] * weight[j]
                right += weight[i] * weight[j] * ((f[j] < f[i]) + 0.5 * (f[j] == f[i]))
    return right / pairs


@pytest.mark.parametrize("n", [2, 3, 17, 64, 100])
def test_concordance_is_that_of_all_pairs(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        time, event = rng.integers(0, 12, n).astype(float), rng.random(n) < 0.7
        event[time.argmin()] = True
        time[0], event[0] = 12.0, False  # so that there is a pair
        f, weight = rng.integers(0, 7, n) / 7, rng.uniform(0.1, 1, n)
        y = structured(time, event)
        assert srf.concordance(y, f, sample_weight=weight) == pytest.approx(
            plain_concordance(time, event, f, weight)
        )
        assert srf.concordance(y, f) + srf.concordance(y, -f) == pytest.approx(1.0)


def test_concordance_of_permuted_times_is_that_of_chance():
    X, time, event = rows(2000, digits=6)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(X))
    assert abs(srf.concordance(structured(time[order], event[order]), X[:, 0]) - 0.5) < 0.03
    model = srf.sparse_rf(X[:300], Y[order[:300] % len(Y)], loss="cox", effort=0.1, rng=0)
    assert len(model.support) == 0
    with pytest.raises(ValueError, match="y must have a pair of rows"):
        srf.concordance([(1.0, 0), (2.0, 1)], [0.0, 1.0])


def plain_brier(y, S, at, train):
    """Return the integrated Brier score, in plain loops."""

    def not_censored(until, including):
        left = 1.0
        for t in np.unique(train["time"]):
            if t < until or (including and t == until):
                n_censored = np.sum((train["time"] == t) & ~train["event"])
                n = np.sum(train["time"] > t) + n_censored
                left *= 1 - n_censored / max(n, 1)
        return left

    scores = np.zeros(len(at))
    for k, t in enumerate(at):
        for i, row in enumerate(y):
            if row["time"] > t:
                scores[k] += (1 - S[i, k]) ** 2 / not_censored(t, True)
            elif row["event"]:
                scores[k] += S[i, k] ** 2 / not_censored(row["time"], False)
    return np.trapezoid(scores / len(y), at) / (at[-1] - at[0])


def test_the_brier_score_is_that_of_plain_loops():
    model = srf.drp(X[:80], Y[:80], alpha=0.01, loss="cox", rng=0)
    at = np.array([0.1, 0.35, 0.9, 1.3])
    S = model.survival(X[80:], at)
    score = srf.integrated_brier_score(Y[80:], S, at, y_train=Y[:80])
    assert score == pytest.approx(plain_brier(Y[80:], S, at, Y[:80]))
    half = srf.integrated_brier_score(Y[80:], np.full_like(S, 0.5), at)
    assert score < half == pytest.approx(0.25, abs=0.03)
    with pytest.raises(ValueError, match="times must be those up to which some row"):
        srf.integrated_brier_score([(1.0, 0), (3.0, 1)], [[1.0], [1.0]], [2.0], y_train=[(1.0, 0)])


@pytest.mark.parametrize("measure", ["auto", "concordance", "brier"])
def test_cross_validation_measures_hazards(measure):
    fit = partial(srf.drp, loss="cox", rng=0)
    weight = np.random.default_rng(0).uniform(0.5, 1, len(X))
    y = pd.DataFrame({"time": TIME, "event": EVENT, "stratum": STRATUM})
    grid = {"alpha": [100.0, 0.01]}
    how = {"cv": 3, "measure": measure, "rng": 0, "sample_weight": weight}
    found = srf.cross_validate(fit, X, y, grid, **how)
    if measure != "concordance":  # in which the size of f is no matter
        assert found.best == {"alpha": 0.01}
    else:
        held = found.fold == 0
        share = srf.concordance(
            y[held], found.models[0].predict(X[held]), sample_weight=weight[held]
        )
        assert found.losses[found.best_index, 0] == pytest.approx(1 - share)
    assert found.measure == {"auto": "loss"}.get(measure, measure)


# -- models


@pytest.mark.parametrize(
    "stratum", [None, STRATUM, STRATA[STRATUM]], ids=["one", "numbers", "text"]
)
def test_files_hold_the_baseline(tmp_path, stratum):
    model = srf.sparse_rf(X, structured(TIME, EVENT, stratum), loss="cox", alpha=0.05, **FEW)
    model.save(tmp_path / "model")
    label = None if stratum is None else stratum[0].item()
    for again in (
        srf.load(tmp_path / "model"),
        srf.SparseModel.from_json(model.to_json()),
        pickle.loads(pickle.dumps(model)),
    ):
        assert again.loss_parameters == model.loss_parameters
        np.testing.assert_array_equal(
            again.survival(X, [0.5, 1.0], stratum=label),
            model.survival(X, [0.5, 1.0], stratum=label),
        )
    text = re.sub(r'"hazards": \[', '"hazards": [-1.0, ', model.to_json())
    with pytest.raises(ValueError, match="hazards must have"):
        srf.SparseModel.from_json(text)


@pytest.mark.slow
def test_models_of_hazards_are_explained_proved_pruned_and_constrained():
    model = srf.sparse_rf(X, Y, loss="cox", alpha=0.03, monotone={0: 1}, **FEW)
    assert "the log of the hazard ratio" in model.formula() and model.is_monotone(0)
    assert "regression of hazards" in str(model.summary(X))
    box = {0: (-1.0, 1.0), 1: (0.0, 0.5), 2: (0.0, 0.5)}
    bounds = model.bounds(box)
    within = np.clip(X, [-1, 0, 0], [1, 0.5, 0.5])
    assert bounds.least.lower <= model.predict(within).min() <= bounds.largest.upper
    pruned = srf.prune(model, X, max_terms=5)
    assert srf.concordance(Y, pruned.predict(X)) > 0.7 and pruned.survival(X, [1.0]).max() < 1


def test_estimators_take_structured_y():
    model = estimators.DRPRegressor(loss="cox", alpha=0.01, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(
        model.predict(X), srf.drp(X, Y, loss="cox", alpha=0.01, rng=0).predict(X)
    )
    assert model.score(X, Y) == pytest.approx(srf.concordance(Y, model.predict(X)))
    with pytest.raises(ValueError, match="y must be a structured array"):
        estimators.DRPRegressor(loss="cox", alpha=0.01).fit(X, TIME)


@pytest.mark.slow
def test_categories_of_many_levels_are_encoded_by_their_rates():
    gained, there = 0.0, 0.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        level = rng.integers(0, 40, 800)
        rate = np.exp(rng.standard_normal(40))[level]
        time, censored = rng.exponential(1 / rate), rng.exponential(1.0, 800)
        data = pd.DataFrame(
            {"level": np.char.add("place ", level.astype(str)), "noise": rng.standard_normal(800)}
        )
        y = pd.DataFrame({"event": time <= censored, "time": np.minimum(time, censored)})
        model = srf.sparse_rf(data[:500], y[:500], loss="cox", effort=0.1, rng=0)
        gained += srf.concordance(y[500:], model.predict(data[500:])) - 0.5
        there += srf.concordance(y[500:], rate[500:]) - 0.5
    assert gained > 0.66 * there  # as much as one draw was asked for; .73 measured


def test_the_name_is_the_loss():
    assert check_loss("cox", ["cox"]) == Cox() and repr(Cox()) == "Cox()"
