"""A `time_limit` ends a fit with the best so far, at whichever reading of the clock it is over; no
test waits for a clock.

The clock that deadlines read is replaced by one that stands still for some readings, and then is
past every deadline.
"""

import warnings
from itertools import count

import numpy as np
import pytest

import sparserf as srf
from sparserf._base import deadline
from sparserf._base.progress import FitCallback, check_not_ended, ends_at, parts
from sparserf.algorithms.default.members import LinearMember
from sparserf.solvers.budget import Budget

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (100, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(100)
TARGETS = {
    "squared": Y,
    "quantile": Y,
    "poisson": np.floor(np.exp(Y)),
    "logistic": Y > 0,
    "squared_hinge": Y > 0,
    "multinomial": np.digitize(Y, [-0.4, 0.4]),
    "one-vs-rest": np.digitize(Y, [-0.4, 0.4]),
    "two outputs": np.c_[Y, X[:, 2]],
    "eight classes": np.digitize(Y, np.quantile(Y, np.arange(1, 8) / 8)),
}
LOSSES = {"one-vs-rest": "logistic", "two outputs": "squared", "eight classes": "multinomial"}
SHARES = (0.0, 0.2, 0.5, 0.8, 0.99)


class Clock:
    """A clock that shows 0 for some readings, and then a time after all deadlines."""

    def __init__(self, n_readings=np.inf):
        self.n_readings, self.n = n_readings, 0

    def __call__(self):
        self.n += 1
        return 0.0 if self.n <= self.n_readings else 1e9


@pytest.fixture
def clock_of(set_clock):
    """Return a function that sets a clock of so many readings, and returns it."""

    def clock_of(n_readings=np.inf):
        clock = Clock(n_readings)
        set_clock(clock)
        return clock

    return clock_of


def fit(target="squared", **options):
    """Fit a small model, and return it with the categories of the warnings."""
    options = {
        "n_components": 40,
        "max_terms": 10,
        "rng": 0,
        "time_limit": 1.0,
    } | options
    options = {"loss": LOSSES.get(target, target)} | options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = srf.sparse_rf(X, TARGETS[target], **options)
    return model, [each.category for each in caught]


def check_usable(model):
    assert np.isfinite(np.asarray(model.predict(X), float)).all() and np.isfinite(model.coef).all()
    assert np.isfinite([*model.info.objective, model.info.validation_loss]).all()
    assert model.info.dual_gap is None and model.info.alpha is None
    assert len(model.support) <= 10
    again = type(model).from_json(model.to_json())
    assert again.info == model.info


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_best_so_far_is_usable_wherever_the_time_is_over(target, clock_of):
    clock = clock_of()
    whole, warned = fit(target)
    n = clock.n
    assert whole.info.cut == {} and not warned
    has_finished = []
    for n_readings in sorted({max(1, round(share * n)) for share in SHARES}):
        clock_of(n_readings)
        model, warned = fit(target)
        check_usable(model)
        assert model.info.cut
        assert warned in ([], [srf.TimeLimitWarning])
        assert not (warned and has_finished)  # a longer time finishes no less
        has_finished += [n_readings] * (not warned)
        assert not model.info.converged
    assert has_finished and min(has_finished) > 1


@pytest.mark.slow
def test_every_reading_may_be_the_last(clock_of):
    clock = clock_of()
    fit("multinomial")
    for n_readings in range(1, clock.n, max(1, clock.n // 16)):
        clock_of(n_readings)
        check_usable(fit("multinomial")[0])


@pytest.mark.parametrize(
    "options",
    [{"features": "gaussian"}, {"features": "gaussian", "exact": True}, {"max_iter": 1000}, {}],
)
@pytest.mark.parametrize("target", ["squared", "multinomial"])
def test_with_a_penalty_a_cut_fit_warns_that_it_is_above_the_tolerance(target, options, clock_of):
    options = {"alpha": 1e-3, "max_terms": None} | options
    clock = clock_of()
    whole, warned = fit(target, **options)
    n = clock.n
    for share in (0.0, 0.1, 0.4, 0.8):
        clock_of(max(1, round(share * n)))
        model, warned = fit(target, **options)
        assert np.isfinite(np.asarray(model.predict(X), float)).all()
        is_cut = "fits" in model.info.cut
        assert is_cut or share == 0.8  # then the fit may be done before
        assert warned == [srf.ConvergenceWarning] * is_cut and model.info.converged is not is_cut
    clock_of()
    assert np.array_equal(whole.coef, fit(target, **options)[0].coef)


def test_a_path_leaves_out_the_penalties_that_there_is_no_time_for(clock_of):
    k = {"features": "gaussian", "n_alphas": 8, "n_components": 300, "rng": 0}
    clock = clock_of()
    whole = srf.sparse_rf_path(X, Y, time_limit=1.0, **k)
    assert len(whole) == 8 and not any(model.info.cut for model in whole)
    clock_of(clock.n // 2)
    with warnings.catch_warnings(action="ignore", category=srf.ConvergenceWarning):
        some = srf.sparse_rf_path(X, Y, time_limit=1.0, **k)
    assert 0 < len(some) < 8 and some[-1].info.cut["penalties"] == 8 - len(some)
    for model, same in zip(some[:-1], whole, strict=False):
        assert np.array_equal(model.coef, same.coef)


FEW = {"n_components": 200}
OF_FEW_TERMS = {
    "harfe": (srf.harfe, {"n_nonzero_coefs": 8, "alpha": 1e-4, **FEW}),
    "harfe chosen": (srf.harfe, FEW),
    "harfe_path": (srf.harfe_path, {"n_nonzero_coefs": [2, 4, 8], **FEW}),
    "mfga": (srf.mfga, {"n_nonzero_coefs": 8, "alpha": 1e-3, "features": "gaussian", **FEW}),
    "mfga chosen": (srf.mfga, {"features": "gaussian", **FEW}),
    "mfga_path": (srf.mfga_path, {"n_nonzero_coefs": 5, "features": "gaussian", **FEW}),
    "several a round": (
        srf.mfga,
        {"n_nonzero_coefs": 9, "alpha": 1e-3, "n_select": 3, "normalize": True},
    ),
    "by a search": (srf.harfe, {"features": "auto", "n_nonzero_coefs": 4, "alpha": 1e-4}),
    "rounds by a search": (srf.mfga, {"features": "auto", "n_nonzero_coefs": 4, "alpha": 1e-3}),
}
# By a search of one target alone, which takes most of the time.
CASES_OF_FEW = [
    (name, target)
    for name, (_, options) in OF_FEW_TERMS.items()
    for target in ("squared", "logistic", "multinomial", "one-vs-rest")
    if options.get("features") != "auto" or target == "squared"
]


def fit_few_terms(name, target, **options):
    """Return the models of a call, and the categories of its warnings."""
    function, own = OF_FEW_TERMS[name]
    options = {"loss": LOSSES.get(target, target), "rng": 0, "time_limit": 1.0} | own | options
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = function(X, TARGETS[target], **options)
    return models if isinstance(models, list) else [models], {each.category for each in caught}


@pytest.mark.parametrize(("name", "target"), CASES_OF_FEW)
def test_a_fit_of_few_terms_ends_with_the_best_so_far(name, target, clock_of):
    clock = clock_of()
    whole, warned = fit_few_terms(name, target)
    n = clock.n
    assert not any(model.info.cut for model in whole) and srf.TimeLimitWarning not in warned
    unlimited, _ = fit_few_terms(name, target, time_limit=None)
    assert [model.to_json() for model in unlimited] == [model.to_json() for model in whole]
    for n_readings in sorted({max(1, round(share * n)) for share in (0.0, 0.6)}):
        clock_of(n_readings)
        models, warned = fit_few_terms(name, target)
        last = models[-1]
        assert 0 < len(models) <= len(whole)
        # the last tenth of the readings may come when all is done
        assert last.info.cut or (
            n_readings > 0.8 * n and last.info.objective == whole[-1].info.objective
        )
        assert not any(model.info.cut for model in models[:-1])
        for model, same in zip(models[:-1], whole, strict=False):
            assert np.array_equal(model.coef, same.coef)
        is_cut = bool({"fits", "rounds"} & set(last.info.cut))
        if is_cut:
            assert not last.info.converged and srf.ConvergenceWarning in warned
        assert np.isfinite(last.coef).all() and len(last.support) <= len(TARGETS[target])
        assert last.coef.any(axis=0).all() if last.coef.ndim == 2 else last.coef.all()
        assert np.isfinite(np.asarray(last.predict(X), float)).all()
        assert type(last).from_json(last.to_json()).info == last.info


@pytest.mark.parametrize("name", ["harfe", "mfga"])
def test_a_longer_time_gives_a_lower_objective(name, clock_of):
    clock = clock_of()
    fit_few_terms(name, "squared")
    losses = []
    for share in (0.0, 0.5, 0.7, 1.0):
        clock_of(max(1, round(share * clock.n)))
        (model,), _ = fit_few_terms(name, "squared")
        losses.append(np.mean((model.predict(X) - Y) ** 2))
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == pytest.approx(Y.var()) and losses[-1] < losses[1] < losses[0]


@pytest.mark.parametrize("function", [srf.harfe, srf.mfga, srf.harfe_path, srf.mfga_path])
def test_a_search_that_had_no_time_leaves_a_constant(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = function(X, Y, features="auto", time_limit=1e-6, rng=0)
    assert srf.TimeLimitWarning in {each.category for each in caught}
    (model,) = models if isinstance(models, list) else [models]
    assert len(model.features) == 0 and "members" in model.info.cut
    assert np.ptp(model.predict(X)) == 0 and model.predict(X)[0] == pytest.approx(Y.mean())


def test_the_search_for_features_has_its_share_of_the_time(monkeypatch, set_clock):
    given = []
    set_clock(lambda: 0.0)
    monkeypatch.setattr(
        "sparserf.algorithms.auto_features.sparse_rf",
        lambda *a, **k: given.append(k["time_limit"]) or whole,
    )
    whole = srf.sparse_rf(X, Y, features="gaussian", alpha=0.05, n_components=100, rng=0)
    srf.mfga(X, Y, features="auto", n_nonzero_coefs=2, alpha=1e-3, time_limit=10.0)
    assert given == [pytest.approx(8.0)]


@pytest.mark.slow
def test_a_limit_that_is_not_reached_changes_little_and_none_changes_nothing(clock_of):
    unlimited, _ = fit(time_limit=None)
    clock_of()
    # the rows are few: units are those of all rows
    assert np.array_equal(fit()[0].coef, unlimited.coef)


def test_the_warning_says_what_was_cut_and_what_to_change(clock_of):
    clock_of(1)
    with pytest.warns(
        srf.TimeLimitWarning, match="not one path of penalties was finished.*raise time_limit"
    ):
        srf.sparse_rf(X, Y, time_limit=0.5, rng=0)


@pytest.mark.slow
def test_a_callback_and_a_limit_together(clock_of):
    clock = clock_of()
    told = []
    fit(callback=told.append)
    assert told and told[-1].progress == 1.0
    n = clock.n
    clock_of(n // 2)
    model, _ = fit(callback=told.append)
    assert model.info.cut and told[-1].progress == 1.0
    clock_of()
    stopped, warned = fit(callback=lambda info: True)
    assert stopped.info.cut == {} and not warned
    check_usable(stopped)


def test_an_interrupt_is_not_the_end_of_the_time(clock_of):
    clock_of()

    def interrupt(info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(callback=interrupt)
    assert deadline.time_left() == np.inf  # the limit of that call is gone


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (0, ValueError),
        (-1.0, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("1", TypeError),
        (True, TypeError),
        ([1.0], TypeError),
    ],
)
def test_what_is_no_time_is_refused_before_any_work(limit, error):
    with pytest.raises(error, match="time_limit must be"):
        srf.sparse_rf(None, None, time_limit=limit)


def test_parts_share_the_time_and_tell_the_whole_what_was_cut(set_clock):
    time = [0.0]
    set_clock(lambda: time[0])
    whole = Budget(deadline=10.0)
    part = whole.part(0.5)
    assert part.deadline == 5.0 and part.part(1.0).deadline == 5.0
    inner = part.part(0.5)
    time[0] = 2.6
    assert inner.is_late and not part.is_late
    inner.note_cut("paths", 2)
    assert inner.done_in_time("fits", lambda: 1, 2) == 2 and part.done_in_time("fits", int, 2) == 0
    assert whole.cuts == {"paths": 2, "fits": 1}
    time[0] = 4.0
    assert whole.part(0.5).deadline == 7.0 and not whole.is_spent
    assert not Budget(1.0).is_late and Budget().part(0.1).deadline == deadline.NEVER


def test_a_block_is_left_at_the_first_poll_after_its_deadline(set_clock):
    time, done = [0.0], []
    set_clock(lambda: time[0])
    with ends_at(1.0):
        for time[0] in (0.5, 0.9, 1.0, 2.0):
            check_not_ended()
            done.append(time[0])
    assert done == [0.5, 0.9]
    check_not_ended()  # outside of a block nothing is raised
    with ends_at(deadline.NEVER):
        check_not_ended()
        done.append("whole")
    fit_callback = FitCallback(None)
    with ends_at(1.0):
        with fit_callback.asked_within(lambda: None):
            assert Budget().is_spent
            check_not_ended()
            done.append("late")
        done.append("left")
        for _ in parts("ab"):
            done.append("late")
    assert done[2:] == ["whole", "left"] and not fit_callback.ended_by_callback
    assert not Budget().is_spent


def test_a_round_begins_with_the_cuts_before_it_and_adds_none_to_them(set_clock):
    set_clock(lambda: 0.0)
    whole = Budget(deadline=10.0)
    whole.note_cut("fits")
    own = whole.for_round(0.3)
    own.note_cut("rounds", 2)
    assert own.deadline == 3.0 and own.cuts == {"fits": 1, "rounds": 2}
    assert whole.cuts == {"fits": 1}
    assert own.lets(lambda k: whole.note_cut("fits", k), 0) and whole.cuts == {"fits": 1}
    assert [(item, part.deadline) for item, part in own.parts("ab")] == [("a", 1.5), ("b", 3.0)]


@pytest.mark.filterwarnings("ignore")
def test_folds_may_be_left_in_the_midst_of_a_round(set_clock):
    """A fold of mfga may then have features without coefficients, which no penalty can be tried
    on."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    y = np.sin(A[:, 0]) + 0.1 * rng.normal(size=60)
    for limit in (35, 65, 100, 140):
        polls = count()
        set_clock(lambda polls=polls: float(next(polls)))
        model = srf.mfga(A, y, n_components=50, rng=0, time_limit=limit)
        assert np.isfinite(model.predict(A)).all() and model.info.cut


def test_fewer_are_looked_at_where_time_is_short(set_clock):
    set_clock(lambda: 0.0)
    assert deadline.fewer_in_time(1000, 10, 1e9) == 1000  # without a limit
    with deadline.limits_time(1.0):
        assert deadline.fewer_in_time(1000, 10, 0.05) == 1000
        assert deadline.fewer_in_time(1000, 10, 0.5) == 100
        assert deadline.fewer_in_time(1000, 10, 5.0, power=2) == 100
        assert deadline.fewer_in_time(1000, 10, 1e9) == 10
        assert deadline.fewer_in_time(5, 10, 1e9) == 5


CUT_AT_ONCE = [
    *(
        (srf.sparse_rf, {"alpha": 0.01, "n_components": 40} | more)
        for more in ({}, {"features": "gaussian"}, {"features": "gaussian", "exact": True})
    ),
    (srf.sparse_rf, {"n_components": 40}),
    (srf.sparse_rf_path, {"features": "gaussian", "n_components": 40}),
    (srf.harfe, FEW),
    (srf.harfe_path, FEW),
    (srf.mfga, {}),
    (srf.mfga_path, {}),
    (srf.harfe, {"features": "auto"}),
    (srf.mfga, {"features": "auto"}),
]


@pytest.mark.parametrize("target", ["squared", "logistic", "multinomial", "one-vs-rest"])
@pytest.mark.parametrize(
    ("function", "options"), CUT_AT_ONCE, ids=lambda of: getattr(of, "__name__", str(of))
)
@pytest.mark.parametrize("n_readings", [1, 3])
def test_the_warnings_of_a_fit_that_is_cut_name_the_time_and_no_figure_that_is_not_known(
    function, options, target, n_readings, clock_of
):
    """Nor do the model, its summary, its file and what a callback is told."""
    clock_of(n_readings)
    told = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = function(
            X,
            TARGETS[target],
            loss=LOSSES.get(target, target),
            time_limit=1.0,
            callback=lambda info: told.append(info),
            rng=0,
            **options,
        )
    model = models[-1] if isinstance(models, list) else models
    assert model.info.cut and caught
    says = [str(each.message) for each in caught]
    assert all("time_limit" in message for message in says)
    for text in (*says, str(model.summary()), repr(model), repr(told), model.to_json()):
        assert not any(word in text for word in ("e+308", "inf ", "inf,", "nan", "coefs=0"))
    assert model.info.dual_gap is None or model.info.dual_gap < 1e3


@pytest.mark.parametrize("target", ["squared", "multinomial"])
def test_once_the_time_is_over_columns_and_rows_are_looked_at_no_more_than_a_model_needs(
    target, clock_of, monkeypatch
):
    """Reading X cannot be cut. After it there are one way to see the columns and one fold, and no
    look for groups."""

    def refuse(*args, **keywords):
        raise AssertionError("there is no time for this")

    monkeypatch.setattr("sparserf.algorithms.task.fit_rank_encoder", refuse)
    monkeypatch.setattr("sparserf.algorithms.task.fit_interval_encoder", refuse)
    monkeypatch.setattr("sparserf.algorithms.dependent_rows.detect_dependence", refuse)
    folds = []
    fold_fit = LinearMember.fold_fit
    monkeypatch.setattr(LinearMember, "fold_fit", lambda *a: folds.append(a[2]) or fold_fit(*a))
    clock_of(1)
    model, warned = fit(target)
    check_usable(model)
    assert folds == [0] and warned == [srf.TimeLimitWarning]
    assert model.info.cut == {"paths of penalties": 1, "members": 2}
    clock_of()
    with pytest.raises(AssertionError, match="no time for this"):
        fit(target)
