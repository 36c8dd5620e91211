"""Prediction intervals hold the share of targets that was asked for; their ends are those of the
formula, written plainly."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.validation import conformal

from .data import FEW, FIT, HOLES, NOISE, REST, RNG, N, X, Y


def held(ends, y):
    """Return the share of targets between the ends of the intervals."""
    lower, upper = ends
    assert lower.shape == upper.shape == y.shape and lower.dtype == upper.dtype == np.float64
    assert (lower <= upper).all() and np.isfinite(lower).all() and np.isfinite(upper).all()
    return np.mean((lower <= y) & (y <= upper))


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.9])
@pytest.mark.parametrize("method", ["cv+", "split"])
def test_the_share_that_was_asked_for_is_held(method, coverage):
    bands = srf.intervals(FIT, X[FEW], Y[FEW], coverage=coverage, method=method, rng=0)
    assert abs(held(bands.predict(X[REST]), Y[REST]) - coverage) < 0.12  # three standard errors
    assert len(bands.experts) == (5 if method == "cv+" else 1)
    assert f"{coverage:g}" in repr(bands)


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_a_model_holds_the_share_that_was_asked_for(coverage):
    shares = []
    for seed in range(4):
        fitted, known, new = np.random.default_rng(seed).permutation(900).reshape(3, 300)
        bands = srf.intervals(
            FIT(X[fitted], Y[fitted], rng=0), X[known], Y[known], coverage=coverage, rng=1
        )
        shares.append(held(bands.predict(X[new]), Y[new]))
        assert len(bands.experts) == 1 and f"{coverage:g}" in repr(bands)
    # the standard error of one share is 0.04 where half are held
    assert abs(np.mean(shares) - coverage) < 0.07


def test_ends_are_the_formula_of_cv_plus():
    """The ends are order statistics of f_k(x) -+ R_i s_k(x) over all rows."""
    coverage, n = 0.9, 100
    fit = partial(srf.mfga, n_nonzero_coefs=8, alpha=1e-3)
    bands = srf.intervals(fit, X[:n], Y[:n], coverage=coverage, method="cv+", rng=0)
    lower, upper = bands.predict(X[REST])
    down, up = [], []
    for expert in bands.experts:
        (centre, _), width = expert.ends_and_scale(X[REST], 1)
        down.append(centre[:, None] - width[:, None] * expert.scores)
        up.append(centre[:, None] + width[:, None] * expert.scores)
    down, up = np.sort(np.hstack(down), axis=1), np.sort(np.hstack(up), axis=1)
    assert down.shape[1] == n
    assert np.allclose(
        lower, down[:, int(np.floor((1 - coverage) * (n + 1) + 1e-9)) - 1], rtol=0, atol=1e-13
    )
    assert np.allclose(
        upper, up[:, int(np.ceil(coverage * (n + 1) - 1e-9)) - 1], rtol=0, atol=1e-13
    )


def test_scores_are_those_of_rows_that_the_model_has_not_seen():
    seen = []

    def fit(X, y, rng):
        seen.append({row.tobytes() for row in X})
        return FIT(X, y, rng=rng)

    bands = srf.intervals(fit, X[FEW], Y[FEW], adaptive=False, method="cv+", cv=4, rng=0)
    assert len(seen) == 4 and sum(len(expert.scores) for expert in bands.experts) == 500
    every = {row.tobytes(): y for row, y in zip(X[FEW], Y[FEW], strict=True)}
    for of_fold, expert in zip(seen, bands.experts, strict=True):
        others = [row for row in every if row not in of_fold]
        f = expert.model.predict(np.array([np.frombuffer(row) for row in others]))
        assert np.allclose(np.sort(np.abs(f - [every[row] for row in others])), expert.scores)


def test_a_split_of_a_model_is_a_quantile():
    model = FIT(X[:300], Y[:300], rng=0)
    for n, coverage in ((9, 0.9), (99, 0.9), (100, 0.8)):
        bands = srf.intervals(
            model, X[300 : 300 + n], Y[300 : 300 + n], coverage=coverage, adaptive=False, rng=0
        )
        lower, upper = bands.predict(X[REST])
        residual = np.sort(np.abs(Y[300 : 300 + n] - model.predict(X[300 : 300 + n])))
        q = residual[int(np.ceil(coverage * (n + 1) - 1e-9)) - 1]
        assert np.allclose(upper - model.predict(X[REST]), q) and np.allclose(upper - lower, 2 * q)
        assert bands.guarantee == coverage


@pytest.mark.slow
def test_intervals_are_wider_where_there_is_more_noise():
    fit, y = partial(srf.drp, alpha=1e-4), X[:, 1] + NOISE * RNG.standard_normal(N)
    ends = {
        a: srf.intervals(fit, X[:700], y[:700], adaptive=a, rng=0).predict(X[700:])
        for a in (True, False)
    }
    loud, y = X[700:, 0] > 0, y[700:]
    width = ends[True][1] - ends[True][0]
    assert width[loud].mean() > 1.5 * width[~loud].mean()
    score = {
        a: np.mean(upper - lower + 20 * (np.maximum(lower - y, 0) + np.maximum(y - upper, 0)))
        for a, (lower, upper) in ends.items()
    }
    assert score[True] < 0.9 * score[False]


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_a_split_holds_what_was_asked_in_the_mean_over_splits(coverage):
    """The share lies between coverage and 1 / (n + 1) above, up to three standard errors of the
    mean."""
    model, n = FIT(X[:300], Y[:300], rng=0), 150
    shares = []
    for seed in range(30):
        calibrate, test = np.split(300 + np.random.default_rng(seed).permutation(600), [n])
        bands = srf.intervals(
            model, X[calibrate], Y[calibrate], coverage=coverage, adaptive=False, rng=0
        )
        shares.append(held(bands.predict(X[test]), Y[test]))
    error = 3 * np.std(shares) / np.sqrt(len(shares))
    assert coverage - error < np.mean(shares) < coverage + 1 / (n + 1) + error


@pytest.mark.slow
def test_a_scale_that_does_not_help_is_left_out(monkeypatch):
    """It is left out, too, where rows are few or most residuals are 0."""
    data, every = conformal.Dataset.from_arguments(X, Y, None), np.arange(N)
    model = FIT(X, Y, rng=0)
    assert conformal.learn_scale(model, data, every[:50], 0.9, 0) is None
    exact = replace(data, y=model.predict(X))
    assert conformal.learn_scale(model, exact, every, 0.9, 0) is None
    assert conformal.learn_scale(model, data, every, 0.9, 0) is not None
    monkeypatch.setattr(conformal, "interval_score", lambda residual, width, *_: np.ptp(width))
    assert conformal.learn_scale(model, data, every, 0.9, 0) is None


def test_interval_score_is_the_formula():
    residual, width = RNG.exponential(size=50), RNG.uniform(1, 2, 50)
    h = np.sort(residual / width)[44] * width
    plain = np.mean(2 * h + 2 / 0.1 * np.where(residual > h, residual - h, 0))
    assert np.isclose(conformal.interval_score(residual, width, None, 0.9), plain)
    assert np.isclose(conformal.interval_score(residual, width, np.full(50, 3.0), 0.9), plain)


def test_the_guarantee_is_that_of_the_theorem():
    assert conformal.guarantee_of_cv(0.9, 5, 500) == pytest.approx(
        0.8 - min(2 * 0.8 / 101, 0.99 / 6)
    )
    assert conformal.guarantee_of_cv(0.9, 50, 50) == pytest.approx(0.8)  # the jackknife+
    assert conformal.guarantee_of_cv(0.3, 5, 500) == 0.0


def test_weights_count_rows():
    """A row of weight zero is as good as absent; a residual of a large weight lies within the
    interval."""
    model = FIT(X[:300], Y[:300], rng=0)
    rows, y, weight = X[300:500], Y[300:500].copy(), np.ones(200)
    weight[:100], y[:100] = 0.0, 1e6
    ends = srf.intervals(model, rows, y, sample_weight=weight, adaptive=False, rng=0).predict(
        X[REST]
    )
    plain = srf.intervals(model, rows[100:], y[100:], adaptive=False, rng=0).predict(X[REST])
    assert np.allclose(ends, plain)
    y[100], weight[100] = 50.0, 20.0  # a sixth of the weight
    lower, upper = srf.intervals(
        model, rows, y, sample_weight=weight, adaptive=False, rng=0
    ).predict(X[REST])
    assert np.allclose((upper - lower) / 2, abs(50.0 - model.predict(rows[100:101])))


# Groups


def levels(rng, n_groups, size):
    """Return rows of groups that have a level each, their targets and their groups."""
    groups = np.repeat(np.arange(n_groups), size)
    rows = rng.uniform(-1, 1, (len(groups), 2))
    return (
        rows,
        rows[:, 0] + rng.standard_normal(n_groups)[groups] + 0.1 * rng.standard_normal(len(groups)),
        groups,
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "cv+", "model"])
def test_the_share_of_new_groups_is_held(method):
    """Of rows of new groups, over draws of 40 groups of 10 rows, up to three standard errors;
    without groups it is far less.

    A column names the group. Where rows of a group are in both parts, they are predicted from its
    level, as no new row is.
    """
    fit, shares = partial(srf.sparse_rf, alpha=0.01, features=srf.Linear()), {True: [], False: []}
    how = {
        "coverage": 0.8,
        "calibration": 0.5,
        "adaptive": False,
        "method": "cv+" if method == "cv+" else "split",
    }
    n = 15 if method == "cv+" else 40
    for seed in range(n):
        rng = np.random.default_rng(seed)
        (rows, y, groups), (new, y_new, _) = levels(rng, 40, 10), levels(rng, 200, 10)
        frame = pd.DataFrame(rows).assign(name=[f"group {k}" for k in groups]).rename(columns=str)
        new = pd.DataFrame(new).assign(name="another").rename(columns=str)
        for given in shares if method != "model" else [True]:
            some = groups < 20 if method == "model" else groups < 0
            model = fit(frame[some], y[some], rng=0) if some.any() else fit
            bands = srf.intervals(
                model,
                frame[~some],
                y[~some],
                groups=groups[~some] if given else None,
                rng=seed,
                **how,
            )
            shares[given].append(held(bands.predict(new), y_new))
    error = 3 * np.std(shares[True]) / np.sqrt(n)
    assert 0.8 - error < np.mean(shares[True]) < 0.88 + error
    assert method == "model" or np.mean(shares[False]) < 0.5


def test_a_new_group_counts_as_one_more():
    """Groups of ten equal scores each, weighed as one: the quantile is that of the groups'
    scores."""
    model, groups = FIT(X[:300], Y[:300], rng=0), np.repeat(np.arange(19), 10)
    rows = np.repeat(X[300:319], 10, axis=0)
    y = np.repeat(Y[300:319], 10)
    bands = srf.intervals(model, rows, y, groups=groups, coverage=0.9, adaptive=False, rng=0)
    plain = srf.intervals(model, X[300:319], Y[300:319], coverage=0.9, adaptive=False, rng=0)
    assert np.allclose(bands.predict(X[REST]), plain.predict(X[REST])) and bands.guarantee == 0.9
    with pytest.raises(
        ValueError, match=r"coverage must be at most n / \(n \+ 1\) for n rows, or groups, .*, 0.95"
    ):
        srf.intervals(model, rows, y, groups=groups, coverage=0.96, adaptive=False, rng=0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_groups_of_equal_size_stay_together(method):
    """Also the search of a scale is given groups, and so are functions that take them."""
    groups, seen = np.arange(500) % 50, []

    def fit(X, y, rng, groups):
        seen.append(set(groups))
        return FIT(X, y, rng=rng)

    bands = srf.intervals(fit, X[FEW], Y[FEW], groups=groups, method=method, cv=5, rng=0)
    assert len(seen) == len(bands.experts) == (5 if method == "cv+" else 1)
    sizes = [len(expert.group_weights) for expert in bands.experts]
    assert [len(of_fold) for of_fold in seen] == [50 - size for size in sizes]
    assert [len(expert.scores) for expert in bands.experts] == [10 * size for size in sizes]
    assert bands.guarantee == (0.9 if method == "split" else pytest.approx(0.8 - 8 / 55))


@pytest.mark.slow
def test_a_scale_is_learned_from_groups_apart_from_those_that_calibrate(monkeypatch):
    groups, seen, learn_scale = np.arange(400) // 8, [], conformal.learn_scale
    monkeypatch.setattr(
        conformal,
        "learn_scale",
        lambda model, data, rows, *how: seen.append(rows) or learn_scale(model, data, rows, *how),
    )
    model = FIT(X[500:], Y[500:], rng=0)
    bands = srf.intervals(model, X[:400], Y[:400], groups=groups, rng=0)
    of_scale = np.unique(groups[seen[0]])
    assert len(of_scale) == 25 and len(seen[0]) == 200 and len(bands.experts[0].group_weights) == 25
    # five groups are too few for 0.9
    few = srf.intervals(model, X[:400], Y[:400], groups=np.arange(400) // 40, rng=0)
    assert (
        len(seen) == 1 and few.experts[0].scale is None and len(few.experts[0].group_weights) == 10
    )


@pytest.mark.slow
def test_same_seed_same_bits_and_copies():
    one, two = (srf.intervals(FIT, X[FEW], Y[FEW], method="cv+", rng=3) for _ in range(2))
    copied = pickle.loads(pickle.dumps(one))
    ends = one.predict(X[REST])
    for other in (two.predict(X[REST]), copied.predict(X[REST]), one.predict(X[REST], workers=2)):
        assert all(np.array_equal(a, b) for a, b in zip(ends, other, strict=True))


@pytest.mark.slow
def test_a_row_does_not_depend_on_the_others():
    bands = srf.intervals(FIT, X[FEW], Y[FEW], method="cv+", rng=3)
    whole, one = bands.predict(X[REST]), bands.predict(X[REST][7:8])
    assert whole[0][7] == one[0][0] and whole[1][7] == one[1][0]


FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city=np.where(X[:, 2] > 0, "Rom", "Oslo"))
SPARSE = np.where(np.abs(X) > 1, X, 0)


@pytest.mark.one_case
@pytest.mark.parametrize(
    "rows",
    [FRAME, HOLES, sp.csr_array(SPARSE), sp.coo_matrix(SPARSE), X.astype(np.float32), X.tolist()],
    ids=["frame", "nan", "csr", "coo", "float32", "list"],
)
def test_kinds_of_rows(rows):
    some = slice(0, 400)
    first, last = (
        (rows.iloc[:400], rows.iloc[400:])
        if rows is FRAME
        else (rows[some], rows[400:])
        if not sp.issparse(rows)
        else (rows.tocsr()[some], rows.tocsr()[400:])
    )
    bands = srf.intervals(FIT, first, Y[some], rng=0)
    assert held(bands.predict(last), Y[400:]) > 0.8


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"coverage": 1.0}, ValueError, "coverage must be below 1"),
        ({"coverage": 0.0}, ValueError, "coverage"),
        ({"coverage": "a"}, TypeError, "coverage"),
        ({"coverage": 0.999}, ValueError, r"coverage must be at most n / \(n \+ 1\)"),
        ({"method": "jackknife"}, ValueError, "method"),
        ({"cv": 1}, ValueError, "cv"),
        ({"method": "cv+", "cv": 501}, ValueError, "cv must be at most the number of rows, 500"),
        ({"calibration": 1.5}, ValueError, "calibration"),
        ({"adaptive": 3}, TypeError, "adaptive"),
        ({"rng": "a"}, TypeError, "rng"),
        ({"sample_weight": -np.ones(500)}, ValueError, "sample_weight"),
        (
            {"groups": np.zeros(499)},
            ValueError,
            "groups must have an entry for each of the 500 rows",
        ),
        ({"groups": np.zeros(500)}, ValueError, "groups must be at least two"),
        (
            {"method": "cv+", "groups": np.arange(500) % 4, "coverage": 0.5},
            ValueError,
            "cv must be at most the number of groups, 4",
        ),
        ({"y": Y[:499]}, ValueError, r"y must have shape \(500,\)"),
        ({"y": np.full(500, np.nan)}, ValueError, "y must be finite"),
        ({"y": np.full(500, "a")}, TypeError, "y must hold real numbers"),
        ({"y": np.zeros((500, 2))}, ValueError, r"y must have shape \(500,\)"),
        ({"X": X[0]}, ValueError, "X must be two-dimensional"),
        (
            {"X": srf.Chunks(X[FEW])},
            TypeError,
            "X must be a data frame, a NumPy array or a sparse matrix in memory",
        ),
        ({"function_or_model": "sparse_rf"}, TypeError, "function_or_model"),
        ({"function_or_model": lambda X, y, rng: None}, TypeError, "function_or_model"),
        (
            {"function_or_model": partial(FIT, loss="logistic"), "y": np.sign(Y[FEW])},
            ValueError,
            "one real target",
        ),
    ],
)
def test_bad_arguments_are_named(wrong, error, says):
    how = {"function_or_model": FIT, "X": X[FEW], "y": Y[FEW], **wrong}
    with pytest.raises(error, match=says):
        srf.intervals(how.pop("function_or_model"), how.pop("X"), how.pop("y"), **how)


AMOUNTS = {
    "poisson": RNG.poisson(np.exp(X[:, 0])).astype(float),
    "tweedie": RNG.standard_gamma(RNG.poisson(np.exp(X[:, 0])) + 1e-300),
    "gamma": np.exp(X[:, 0]) * RNG.gamma(2, 0.5, N),
}


@pytest.mark.one_case
@pytest.mark.parametrize("method", ["split", "cv+", "model"])
@pytest.mark.parametrize("loss", AMOUNTS)
def test_intervals_of_counts_and_amounts_are_not_below_zero(loss, method):
    """They hold as many rows as without the cut, also with exposures."""
    y, fit, offset = AMOUNTS[loss], partial(srf.drp, alpha=1e-3, loss=loss), 0.1 * X[:, 1]
    if method == "model":
        given, how = fit(X[:200], y[:200], offset=offset[:200], rng=0), {}
    else:
        given, how = fit, {"method": method}
    bands = srf.intervals(
        given, X[FEW], y[FEW], offset=offset[FEW], coverage=0.95, adaptive=False, rng=0, **how
    )
    lower, upper = bands.predict(X[REST], offset=offset[REST])
    uncut = replace(bands, limits=(-np.inf, np.inf)).predict(X[REST], offset=offset[REST])
    assert uncut[0].min() < 0 == lower.min() and bands.limits == (0, np.inf)
    assert np.array_equal(upper, uncut[1]) and held((lower, upper), y[REST]) == held(uncut, y[REST])


@pytest.mark.slow
def test_intervals_keep_to_the_limits_of_a_model_that_targets_keep_to():
    y = np.clip(Y, -0.5, 0.5)
    fit = partial(
        srf.harfe, n_components=200, n_nonzero_coefs=20, alpha=1e-4, lower=-0.5, upper=0.5
    )
    for beyond, limits in ((0.0, (-0.5, 0.5)), (0.1, (-0.5, np.inf)), (-0.2, (-np.inf, 0.5))):
        y_there = y.copy()
        y_there[0] += np.sign(beyond) - y[0] if beyond else 0.0
        bands = srf.intervals(fit, X[FEW], y_there[FEW], coverage=0.9, rng=0)
        lower, upper = bands.predict(X[REST])
        assert bands.limits == limits and lower.min() >= limits[0] and upper.max() <= limits[1]


def test_intervals_of_an_older_pickle_are_not_cut():
    bands = srf.intervals(FIT, X[FEW], Y[FEW], rng=0)
    state = {name: value for name, value in vars(bands).items() if name != "limits"}
    old = object.__new__(type(bands))
    old.__dict__.update(state)
    assert np.array_equal(old.predict(X[REST]), bands.predict(X[REST]))
