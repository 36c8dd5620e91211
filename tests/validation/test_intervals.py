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
from sparserf.validation import scale as of_scale
from sparserf.validation.experts import ends_and_scale

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
        (centre, _), width = ends_and_scale(expert.model, expert.scale, X[REST])
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
    monkeypatch.setattr(of_scale, "interval_score", lambda residual, width, *_: np.ptp(width))
    assert conformal.learn_scale(model, data, every, 0.9, 0) is None


def test_interval_score_is_the_formula():
    residual, width = RNG.exponential(size=50), RNG.uniform(1, 2, 50)
    h = np.sort(residual / width)[44] * width
    plain = np.mean(2 * h + 2 / 0.1 * np.where(residual > h, residual - h, 0))
    assert np.isclose(of_scale.interval_score(residual, width, None, 0.9), plain)
    assert np.isclose(of_scale.interval_score(residual, width, np.full(50, 3.0), 0.9), plain)


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


@pytest.mark.nightly
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
        ({"y": np.zeros((499, 2))}, ValueError, r"y must have shape \(500,\)"),
        ({"y": np.zeros((500, 0))}, ValueError, r"y must have shape \(500,\)"),
        ({"X": X[0]}, ValueError, "X must be two-dimensional"),
        (
            {"X": srf.Chunks(X[FEW])},
            TypeError,
            "X must be a data frame, a NumPy array or a sparse matrix in memory",
        ),
        ({"function_or_model": "sparse_rf"}, TypeError, "function_or_model"),
        ({"function_or_model": lambda X, y, rng: None}, TypeError, "function_or_model"),
        (
            {"function_or_model": partial(FIT, loss="squared_hinge"), "y": np.sign(Y[FEW])},
            ValueError,
            "must have probabilities of classes.*sparserf.calibrated gives them",
        ),
        (
            {"function_or_model": partial(FIT, loss="logistic"), "y": np.ones(500)},
            ValueError,
            "y must have at least two classes",
        ),
        (
            {"function_or_model": FIT(X[REST], Y[REST], rng=0), "y": np.zeros((500, 2))},
            ValueError,
            "must have a real target for each column of y, 2",
        ),
        (
            {"function_or_model": FIT(X[REST], np.tile(Y[REST], (2, 1)).T, rng=0)},
            ValueError,
            "must have a real target for each column of y, 1",
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


@pytest.mark.slow
def test_intervals_of_an_older_pickle_are_not_cut():
    bands = srf.intervals(FIT, X[FEW], Y[FEW], rng=0)
    state = {name: value for name, value in vars(bands).items() if name != "limits"}
    old = object.__new__(type(bands))
    old.__dict__.update(state)
    assert np.array_equal(old.predict(X[REST]), bands.predict(X[REST]))


# Several outputs

BOTH = np.column_stack([Y, 10 + X[:, 1] + 0.2 * np.random.default_rng(7).standard_normal(N)])


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_each_of_several_outputs_has_the_ends_of_its_own_scores(method):
    """Without a scale they are those of each output alone, by the models of both."""
    bands = srf.intervals(FIT, X[FEW], BOTH[FEW], method=method, adaptive=False, rng=0)
    ends = bands.predict(X[REST])
    assert "2 outputs" in repr(bands) and "output 1" in bands._repr_html_()
    for k in range(2):
        models = iter([expert.model for expert in bands.experts])

        def fit(X, y, rng, k=k, models=models):
            model = next(models)
            return replace(model, coef=model.coef[k], intercept=float(model.intercept[k]))

        alone = srf.intervals(fit, X[FEW], BOTH[FEW, k], method=method, adaptive=False, rng=0)
        assert np.allclose(alone.predict(X[REST]), [end[:, k] for end in ends], rtol=0, atol=1e-12)


def test_each_of_several_outputs_is_held_in_the_mean_over_draws():
    model, shares = FIT(X[:300], BOTH[:300], rng=0), []
    for seed in range(30):
        old, new = np.split(300 + np.random.default_rng(seed).permutation(600), [150])
        bands = srf.intervals(model, X[old], BOTH[old], coverage=0.8, adaptive=False)
        lower, upper = bands.predict(X[new])
        shares.append(((lower <= BOTH[new]) & (BOTH[new] <= upper)).mean(axis=0))
    error = 3 * np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (np.abs(np.mean(shares, axis=0) - 0.8 - 0.5 / 151) < 0.5 / 151 + error).all()


@pytest.mark.slow
def test_each_of_several_outputs_has_a_scale_of_its_own():
    """The noise of the first depends on a column, that of the second does not."""
    noise = np.random.default_rng(5).standard_normal((N, 2))
    both = X[:, 1:2] + np.column_stack([NOISE, np.full(N, 0.2)]) * noise
    bands = srf.intervals(partial(srf.drp, alpha=1e-4), X[:700], both[:700], rng=0)
    width, loud = np.subtract(*bands.predict(X[700:])[::-1]), X[700:, 0] > 0
    assert width[loud, 0].mean() > 1.5 * width[~loud, 0].mean()
    assert width[loud, 1].mean() < 1.2 * width[~loud, 1].mean()
    again = pickle.loads(pickle.dumps(bands)).predict(X[700:])
    assert np.array_equal(np.subtract(*again[::-1]), width)


@pytest.mark.slow
def test_outputs_whose_scale_does_not_help_keep_one_width(monkeypatch):
    monkeypatch.setattr(
        of_scale,
        "interval_score",
        lambda residual, width, *_: np.where(np.ptp(width, axis=0) > 0, [0.0, 2.0], 1.0),
    )
    bands = srf.intervals(FIT, X[FEW], BOTH[FEW], rng=0)
    width = np.subtract(*bands.predict(X[REST])[::-1])
    assert np.ptp(width[:, 0]) > 0.1 and np.ptp(width[:, 1]) < 1e-12


def test_offsets_of_several_outputs():
    """An offset moves the ends of its output; one for all moves all."""
    offset, model = np.column_stack([X[:, 2], -X[:, 2]]), FIT(X[REST], BOTH[REST], rng=0)
    plain = srf.intervals(model, X[FEW], BOTH[FEW], adaptive=False)
    for moved in (offset, X[:, 2]):
        by = moved if moved.ndim == 2 else moved[:, None]
        bands = srf.intervals(model, X[FEW], BOTH[FEW] + by[FEW], offset=moved[FEW], adaptive=False)
        ends = bands.predict(X[REST], offset=moved[REST])
        assert np.allclose(ends, np.add(plain.predict(X[REST]), by[REST]), rtol=0, atol=1e-9)


def test_pages_are_of_one_number():
    bands = srf.intervals(FIT, X[FEW], BOTH[FEW], adaptive=False, rng=0)
    with pytest.raises(ValueError, match=r"to_html needs intervals of one number.*2 outputs"):
        bands.to_html()
