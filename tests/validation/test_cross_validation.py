"""Cross-validation: folds are even and share nothing, paths give the same as single fits, and rules
choose as they say."""

from dataclasses import replace
from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import sparserf as srf
from sparserf.validation import cross_validation as validation
from sparserf.validation.folds import HeldRows

from ..conftest import bits

N = 240
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * RNG.standard_normal(N)
LABELS = np.digitize(Y, [-0.8, 0.8])
FIT = partial(srf.sparse_rf, features="gaussian", n_components=120)


# Folds


QUICK = partial(srf.mfga, features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3, loss="logistic")


@pytest.mark.parametrize("n_folds", [2, 3, 7])
def test_folds_are_even_and_have_the_same_shares_of_classes(n_folds):
    weight = (np.arange(N) % 3 > 0) * 1.0
    for sample_weight in (None, weight):
        how = {"sample_weight": sample_weight, "rng": 0}
        fold = srf.cross_validate(QUICK, X, LABELS, {}, cv=n_folds, **how).fold
        assert sample_weight is None or np.array_equal(fold < 0, weight == 0)
        there = fold >= 0
        sizes = np.bincount(fold[there])
        assert len(sizes) == n_folds and np.ptp(sizes) <= 1
        for k in range(3):
            assert np.ptp(np.bincount(fold[there & (LABELS == k)], minlength=n_folds)) <= 1


def test_groups_stay_together_and_classes_are_spread():
    groups = RNG.integers(0, 40, N)
    fold = srf.cross_validate(QUICK, X, LABELS, {}, cv=5, groups=groups, rng=0).fold
    assert all(len(np.unique(fold[groups == g])) == 1 for g in np.unique(groups))
    assert np.ptp(np.bincount(fold)) < N / 10
    shares = [np.mean(LABELS[fold == k] == 1) for k in range(5)]
    assert np.ptp(shares) < 0.25


def test_no_fold_is_empty_where_groups_are_classes():
    kind = np.repeat([0, 1, 2, 3], 10)
    fold = srf.cross_validate(QUICK, X[:40], kind, {}, cv=4, groups=kind, rng=0).fold
    assert set(fold) == {0, 1, 2, 3}


# Pairs, splitters and groups

PATIENT = np.array([f"patient {k}" for k in np.random.default_rng(1).integers(0, 30, N)])
SPLITTERS = [
    KFold(3),
    StratifiedKFold(3, shuffle=True, random_state=0),
    TimeSeriesSplit(3),
    ShuffleSplit(3, random_state=0),
]


@pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda each: type(each).__name__)
def test_a_splitter_is_a_loop_over_its_pairs(splitter):
    y = LABELS > 1 if "Stratified" in type(splitter).__name__ else Y
    # nothing is drawn
    fit = partial(FIT, features=srf.Linear(), loss="squared" if y is Y else "logistic")
    measure = "squared_error" if y is Y else "log_loss"
    found = srf.cross_validate(fit, X, y, {"alpha": [0.03]}, cv=splitter, measure=measure, rng=0)
    pairs = list(splitter.split(X, y))
    for k, (fitted, held) in enumerate(pairs):
        (model,) = srf.sparse_rf_path(X[fitted], y[fitted], alphas=[0.03], **fit.keywords)
        if y is Y:
            losses = (model.predict(X[held]) - y[held]) ** 2
        else:
            losses = -np.log(model.predict_proba(X[held])[np.arange(len(held)), y[held] * 1])
        assert np.isclose(found.losses[0, k], losses.mean(), rtol=1e-12)
    shares = np.array([len(held) for _, held in pairs]) / sum(len(held) for _, held in pairs)
    assert np.isclose(found.table["mean"][0], found.losses[0] @ shares)
    first = [next((k for k, (_, held) in enumerate(pairs) if i in held), -1) for i in range(N)]
    assert found.fold.tolist() == first
    again = srf.cross_validate(
        fit, X, y, {"alpha": [0.03]}, cv=(pair for pair in pairs), measure=measure, rng=0
    )
    assert np.array_equal(again.losses, found.losses) and bits(again.model) == bits(found.model)


def test_a_single_pair_has_no_standard_error():
    found = srf.cross_validate(FIT, X, Y, {"alpha": [0.1, 0.01]}, cv=np.arange(N) >= 180, rng=0)
    assert (
        found.losses.shape == (2, 1)
        and np.isnan(found.table["standard_error"]).all()
        and found.best["alpha"] == 0.01
    )
    assert found._repr_html_() and found.fold.tolist() == [-1] * 180 + [0] * 60
    with pytest.raises(ValueError, match="rule must be 'min' where cv is a single fold"):
        srf.cross_validate(FIT, X, Y, {"alpha": [0.1, 0.01]}, cv=range(180, N), rule="1se", rng=0)


def test_a_splitter_is_given_the_groups():
    found = srf.cross_validate(FIT, X, Y, {"alpha": [0.1]}, cv=GroupKFold(3), groups=PATIENT, rng=0)
    assert all(len(np.unique(found.fold[PATIENT == name])) == 1 for name in PATIENT) and set(
        found.fold
    ) == {0, 1, 2}


def test_functions_are_given_the_groups_of_their_rows():
    """So the searches of `sparse_rf` hold out whole groups, too."""
    place, seen = {row.tobytes(): k for k, row in enumerate(X)}, []

    def fit(X, y, rng, groups):
        rows = [place[row.tobytes()] for row in X]
        seen.append(pd.DataFrame({"number": groups, "patient": PATIENT[rows]}).drop_duplicates())
        return FIT(X, y, alpha=0.1, rng=rng)

    srf.cross_validate(fit, X, Y, {}, cv=3, groups=PATIENT, rng=0)
    assert len(seen) == 4 and all(
        each["number"].is_unique and each["patient"].is_unique for each in seen
    )
    assert sum(len(each) for each in seen) == 3 * len(np.unique(PATIENT))
    without = srf.cross_validate(
        partial(FIT, alpha=0.1), X, Y, {}, cv=3, groups=PATIENT.tolist(), rng=0
    )
    assert without.losses.shape == (1, 3)


# The table


@pytest.mark.slow
def test_the_table_is_what_fits_to_the_other_folds_make_of_each():
    penalised = partial(FIT, alpha=0.01)
    found = srf.cross_validate(
        penalised, X, Y, {"gamma": [0.3, 2.0], "features": ["gaussian", "laplacian"]}, cv=3, rng=0
    )
    assert list(found.table) == ["gamma", "features", "mean", "standard_error", "n_terms"]
    seeds = []

    def fit(X, y, rng, **how):
        seeds.append(rng)
        return penalised(X, y, rng=rng, **how)

    assert srf.cross_validate(
        fit, X, Y, {"gamma": [0.3], "features": ["gaussian"]}, cv=3, rng=0
    ).losses.shape == (1, 3)
    for i, (gamma, features) in enumerate(
        zip(found.table["gamma"], found.table["features"], strict=True)
    ):
        for k in range(3):
            model = penalised(
                X[found.fold != k], Y[found.fold != k], gamma=gamma, features=features, rng=seeds[k]
            )
            held = np.mean((model.predict(X[found.fold == k]) - Y[found.fold == k]) ** 2)
            assert np.isclose(found.losses[i, k], held, rtol=1e-12)
    i = int(np.argmin(found.table["mean"]))
    assert found.best_index == i and found.best == {
        "gamma": found.table["gamma"][i],
        "features": found.table["features"][i],
    }
    assert np.allclose(found.losses.mean(axis=1), found.table["mean"])
    assert np.allclose(found.losses.std(axis=1, ddof=1) / np.sqrt(3), found.table["standard_error"])
    whole = penalised(X, Y, rng=seeds[3], **found.best)
    assert np.array_equal(found.model.predict(X), whole.predict(X))
    assert "<- best" in repr(found) and len(pd.DataFrame(found.table)) == 4


PATHS = {
    "sparse_rf": (partial(FIT, exact=True, tol=1e-7), {"alpha": [0.003, 0.1, 0.02]}, 4),
    "harfe": (
        partial(srf.harfe, n_components=200, alpha=1e-3),
        {"n_nonzero_coefs": [9, 3, 20]},
        4,
    ),
    # three folds for each alpha; all rows
    "mfga": (srf.mfga, {"n_nonzero_coefs": [2, 7], "alpha": [1e-3, 1e-2]}, 7),
    "mfga by two": (partial(srf.mfga, n_select=2, alpha=1e-3), {"n_nonzero_coefs": [2, 8]}, 4),
    "drp": (srf.drp, {"alpha": [1e-3, 10.0, 0.1]}, 4),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_is_one_call_a_fold_and_gives_the_models_of_its_values(name, monkeypatch):
    function, grid, n_calls = PATHS[name]
    base = getattr(srf, name.split()[0])
    path = validation.PATHS[base]
    calls = []

    @wraps(path.function)
    def counted(*args, **kwargs):
        calls.append(kwargs)
        return path.function(*args, **kwargs)

    monkeypatch.setitem(validation.PATHS, base, replace(path, function=counted))
    found = srf.cross_validate(function, X, Y, grid, cv=3, rng=0)
    assert len(calls) == n_calls
    parameter = path.parameter
    for i in range(len(found.table["mean"])):
        setting = {name: found.table[name][i] for name in grid}
        alone = srf.cross_validate(
            lambda X, y, rng, **how: function(X, y, rng=rng, **how),
            X,
            Y,
            {name: [value] for name, value in setting.items()},
            cv=3,
            rng=0,
        )
        assert np.allclose(
            alone.losses, found.losses[i], rtol=1.0 if base is srf.harfe else 1e-3
        ), setting
    assert (
        found.model.info.alpha == found.best["alpha"]
        if parameter == "alpha"
        else (len(found.model.features) <= found.best[parameter])
    )


def test_what_a_path_does_not_take_is_fitted_one_by_one():
    one = validation.runs_of_grid(srf.sparse_rf, {"alpha": [None, 0.1]})
    assert [run.path for run in one] == [None, None]
    with_effort = partial(srf.sparse_rf, effort=1.0)  # an argument that sparse_rf_path lacks
    assert [run.path for run in validation.runs_of_grid(with_effort, {"alpha": [1.0, 0.1]})] == [
        None,
        None,
    ]
    assert [
        run.path
        for run in validation.runs_of_grid(
            srf.mfga, {"n_nonzero_coefs": [3, 4], "n_select": [2], "alpha": [0.1]}
        )
    ] == [None, None]
    for function in (srf.harfe, srf.mfga):  # which choose alpha where it is not given
        grid = {"n_nonzero_coefs": [3, 6]}
        assert [run.path for run in validation.runs_of_grid(function, grid)] == [None, None]
        (run,) = validation.runs_of_grid(partial(function, alpha=0.1), grid)
        assert run.path.parameter == "n_nonzero_coefs"
    assert [
        run.path for run in validation.runs_of_grid(lambda X, y, rng: None, {"alpha": [1.0]})
    ] == [None]
    assert len(validation.runs_of_grid(srf.drp, {"alpha": [1.0, 0.1, 1.0]})) == 1
    assert validation.runs_of_grid(srf.drp, {"alpha": [0.1, 1.0]})[0].values == (1.0, 0.1)


@pytest.mark.slow
def test_the_rule_of_one_standard_error_takes_fewer_terms():
    grid = {"alpha": np.geomspace(0.3, 3e-4, 8).tolist()}
    least, one = (srf.cross_validate(FIT, X, Y, grid, rule=rule, rng=0) for rule in ("min", "1se"))
    assert np.array_equal(least.losses, one.losses)
    line = least.best_index
    near = (
        np.array(one.table["mean"]) <= one.table["mean"][line] + one.table["standard_error"][line]
    )
    assert one.table["n_terms"][one.best_index] == np.array(one.table["n_terms"])[near].min()
    assert one.table["n_terms"][one.best_index] <= least.table["n_terms"][line]


def test_rules_on_plain_numbers():
    settings = [{"alpha": 1.0}, {"alpha": 0.1}, {"alpha": 0.01}, {"alpha": 0.001}]
    means, errors = np.array([1.3, 1.05, 1.0, np.nan]), np.full(4, 0.1)
    assert validation.choose_setting("min", settings, means, errors, np.ones(4)) == 2
    assert validation.choose_setting("1se", settings, means, errors, np.ones(4)) == 1
    assert validation.choose_setting("1se", settings, means, errors, np.array([1, 5, 4, 1])) == 2
    means, errors = validation.mean_and_standard_error(
        np.array([[1.0, 3.0]]), np.array([0.25, 0.75])
    )
    assert means[0] == 2.5 and np.isclose(errors[0], np.sqrt(0.25 * 1.5**2 + 0.75 * 0.5**2))


# Honesty


def test_no_fit_sees_the_rows_that_it_is_measured_on():
    seen = []

    def fit(X, y, rng, power):
        seen.append({row.tobytes() for row in X})
        return FIT(X, y**power, alpha=0.1, rng=rng)

    measured = []

    def measure(model, X, y):
        measured.append({row.tobytes() for row in X})
        return np.ones(len(y))

    found = srf.cross_validate(fit, X, np.abs(Y), {"power": [1, 2]}, cv=4, measure=measure, rng=0)
    assert len(seen) == 9 and len(measured) == 8 and found.measure == "measure"
    assert (
        all(not a & b and len(a | b) == N for a, b in zip(seen, measured, strict=False))
        and len(seen[-1]) == N
    )


def test_a_target_that_is_noise_is_not_predicted():
    noise = RNG.standard_normal(N)
    found = srf.cross_validate(FIT, X, noise, {"alpha": [0.2, 0.01, 1e-3]}, rng=0)
    assert min(found.table["mean"]) > 0.9 * noise.var() and found.table["mean"][2] > noise.var()


@pytest.mark.slow
def test_same_seed_same_table():
    one, two, other = (
        srf.cross_validate(FIT, X, Y, {"alpha": [0.1, 0.01]}, rng=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.losses, two.losses) and not np.array_equal(one.losses, other.losses)
    assert np.array_equal(one.fold, two.fold) and np.array_equal(one.model.coef, two.model.coef)


def test_weights_count_rows():
    """A row of weight zero is as good as absent, and losses are averaged by weight."""
    weight = np.where(np.arange(N) < 200, 1.0, 0.0)
    y = np.where(weight > 0, Y, 1e3)
    found = srf.cross_validate(FIT, X, y, {"alpha": [0.05]}, sample_weight=weight, rng=0)
    plain = srf.cross_validate(FIT, X[:200], Y[:200], {"alpha": [0.05]}, rng=0)
    assert np.allclose(found.losses, plain.losses) and np.array_equal(found.fold[:200], plain.fold)
    weight = np.where(np.arange(N) < 200, 1.0, 3.0)
    found = srf.cross_validate(
        FIT,
        X,
        Y,
        {"alpha": [0.05]},
        sample_weight=weight,
        cv=2,
        measure=lambda model, X, y: y,
        rng=0,
    )
    assert np.isclose(
        found.losses[0, 1], np.average(Y[found.fold == 1], weights=weight[found.fold == 1])
    )
    assert np.isclose(found.table["mean"][0], np.average(Y, weights=weight))


# Rows and losses

FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city=np.where(X[:, 2] > 0, "Rom", "Oslo"))


@pytest.mark.parametrize(
    "rows",
    [FRAME, sp.csr_array(X), sp.csc_matrix(X), X.astype(np.float32), np.where(X > 1.8, np.nan, X)],
    ids=["frame", "csr", "csc", "float32", "nan"],
)
def test_kinds_of_rows(rows):
    found = srf.cross_validate(FIT, rows, Y, {"alpha": [0.5, 0.01]}, cv=3, rng=0)
    assert found.table["mean"][1] < found.table["mean"][0] < 1.2 * Y.var()
    assert found.model.predict(rows).shape == (N,)


@pytest.mark.parametrize(
    ("loss", "measure"), [("logistic", "log_loss"), ("squared_hinge", "error")]
)
@pytest.mark.parametrize(
    "labels", [LABELS, np.array(["a", "b", "c"])[LABELS], Y > 0], ids=["three", "words", "two"]
)
def test_classes(loss, measure, labels):
    found = srf.cross_validate(
        partial(FIT, loss=loss), X, labels, {"alpha": [0.3, 0.01]}, cv=3, rng=0
    )
    assert found.measure == measure and found.table["mean"][1] < found.table["mean"][0]
    held = found.fold == 1
    assert abs(np.mean(labels[held] == labels[0]) - np.mean(labels == labels[0])) < 0.02


def test_log_loss_is_the_formula_and_finite_where_a_label_is_new():
    model = partial(FIT, loss="logistic", alpha=0.05)(X, LABELS, rng=0)
    p = model.predict_proba(X)
    known = HeldRows(X, LABELS, None, LABELS, {})
    assert np.allclose(validation.log_loss(model, known), -np.log(p[np.arange(N), LABELS]))
    new = HeldRows(X[:2], np.array([7, -1]), None, LABELS, {})
    assert np.allclose(validation.log_loss(model, new), -np.log(1e-15))


@pytest.mark.parametrize("measure", ["absolute_error", "squared_error"])
def test_measures(measure):
    found = srf.cross_validate(FIT, X, Y, {"alpha": [0.01]}, cv=2, measure=measure, rng=0)
    assert found.measure == measure


def test_progress_is_shown(caplog):
    caplog.set_level("INFO", "sparserf")
    srf.cross_validate(FIT, X, Y, {"alpha": [0.1, 0.01]}, cv=3, rng=0, verbose=True)
    assert caplog.messages[-1].startswith("cross_validate: 100 % done")


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"grid": {}}, ValueError, "not raised"),
        ({"grid": []}, ValueError, "grid must have a dict"),
        ({"grid": {"alpha": 0.1}}, ValueError, "grid must hold a sequence of values"),
        ({"grid": {"alpha": []}}, ValueError, "grid must hold a sequence of values"),
        ({"grid": {"features": "gaussian"}}, ValueError, "grid must hold a sequence"),
        ({"cv": 1}, ValueError, "cv"),
        ({"cv": N + 1}, ValueError, "cv must be at most the number of rows"),
        ({"rule": "2se"}, ValueError, "rule"),
        ({"measure": "r2"}, ValueError, "measure must be one of"),
        (
            {"measure": lambda model, X, y: 1.0},
            ValueError,
            "measure must return a value for each row",
        ),
        ({"groups": np.zeros(N)}, ValueError, "cv must be at most the number of groups, 1"),
        ({"groups": np.zeros(3)}, ValueError, "groups must have an entry"),
        ({"groups": [None] * N}, ValueError, "groups must not have missing labels"),
        ({"cv": "five"}, TypeError, "cv must be a number, the rows to hold out"),
        ({"cv": 3.0}, TypeError, "cv must be an integer"),
        ({"cv": np.ones(3, bool)}, ValueError, "cv must have 240 entries in a mask"),
        (
            {"cv": [(np.arange(9), np.arange(8, 20))]},
            ValueError,
            "cv must have no row in both parts of a pair, got row 8",
        ),
        (
            {"cv": [(np.arange(9), np.arange(9, 20))], "sample_weight": np.arange(N) > 8.0},
            ValueError,
            "cv must have rows of positive weight in both parts of each pair, not so in pair 0",
        ),
        (
            {"cv": [(np.arange(9), np.arange(9, 20))], "groups": np.arange(N) // 2},
            ValueError,
            "cv must have the rows of a group in one part of each pair, got rows 8 and 9",
        ),
        (
            {"grid": {"loss": ["logistic", "squared_hinge"]}, "y": LABELS},
            ValueError,
            "measure must be given",
        ),
        ({"X": iter([])}, ValueError, "X must be two-dimensional"),
    ],
)
def test_bad_arguments_are_named(wrong, error, says):
    how = {"X": X, "y": Y, "grid": {"alpha": [0.1]}, **wrong}
    if says == "not raised":  # no grid: the one setting is that of the function
        assert (
            len(srf.cross_validate(partial(FIT, alpha=0.1), X, Y, {}, cv=2, rng=0).table["mean"])
            == 1
        )
        return
    with pytest.raises(error, match=says):
        srf.cross_validate(
            partial(FIT, alpha=0.1), how.pop("X"), how.pop("y"), how.pop("grid"), **how
        )


@pytest.mark.parametrize("rule", ["min", "1se"])
@pytest.mark.parametrize(
    "grid",
    [
        {"alpha": [0.5, 0.05, 0.005]},
        {"alpha": [0.1], "features": ["gaussian"], "gamma": [0.1, 1.0]},
        {},
    ],
    ids=str,
)
def test_models_of_the_folds_are_those_of_the_best_setting(grid, rule):
    """Each was fitted without its fold: its losses there are those of the table."""
    fit = partial(srf.sparse_rf, n_components=50) if grid else partial(srf.drp, alpha=0.01)
    found = srf.cross_validate(fit, X, Y, grid, cv=3, rule=rule, rng=0)
    loss = [
        np.mean((model.predict(X[found.fold == k]) - Y[found.fold == k]) ** 2)
        for k, model in enumerate(found.models)
    ]
    np.testing.assert_allclose(loss, found.losses[found.best_index], rtol=1e-12)
