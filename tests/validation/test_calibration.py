"""Calibrated probabilities of classifiers of every loss."""

from functools import partial

import numpy as np
import pytest

import sparserf as srf
from sparserf.validation.calibration import bounded

from .data import FEW, FIT, KINDS, LABELS, REST, RNG, X, Y


def sigmoid(f, is_class, weight=None):
    """Return (a, b) of the probability 1 / (1 + exp(-(a f + b))) of a class, as a model is
    calibrated whose decision values are f."""
    info = srf.FitInfo(1, True, (0.0,), 0.0, 1, 1, 0.1)
    line, two = srf.Linear().draw(None, 1), np.array([False, True])
    model = srf.SparseModel(np.ones(1), 0.0, np.arange(1), line, "squared_hinge", two, info)
    fitted = srf.calibrated(model, f[:, None], is_class, sample_weight=weight)
    b, sum_of_both = fitted.decision_function(np.array([[0.0], [1.0]]))
    return sum_of_both - b, b


def log_loss(model, rows, labels):
    """Return the mean of minus the log of the probability of each label."""
    p = model.predict_proba(rows)
    assert np.allclose(p.sum(axis=1), 1) and (p >= 0).all()
    return -np.mean(np.log(p[np.arange(len(labels)), np.searchsorted(model.classes, labels)]))


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge", "logistic"])
@pytest.mark.parametrize(
    "labels",
    [LABELS, KINDS, np.array(["no", "yes"])[LABELS.astype(int)]],
    ids=["two", "three", "words"],
)
def test_probabilities_of_any_loss(loss, labels, tmp_path):
    if loss == "smoothed_hinge":
        fit = partial(srf.drp, alpha=1e-2, loss=loss)
        rows = X * X[:, :1]  # products with an input, so that a linear model can tell
    else:
        fit, rows = partial(FIT, loss=loss), X
    model = srf.calibrated(fit, rows[FEW], labels[FEW], rng=0)
    known = np.unique(labels)
    constant = -sum(np.mean(labels[REST] == k) * np.log(np.mean(labels[FEW] == k)) for k in known)
    assert log_loss(model, rows[REST], labels[REST]) < 0.85 * constant
    for k, label in enumerate(known):
        assert (
            abs(model.predict_proba(rows[REST])[:, k].mean() - np.mean(labels[REST] == label))
            < 0.06
        )
    assert set(np.unique(model.predict(rows[REST]))) <= set(known)
    model.save(tmp_path / "m.npz")
    assert np.array_equal(
        srf.load(tmp_path / "m.npz").predict_proba(rows), model.predict_proba(rows)
    )


def test_a_fitted_model_is_calibrated_by_rows_that_it_has_not_seen():
    fitted = partial(FIT, loss="squared_hinge", alpha=1e-4)(X[:300], LABELS[:300], rng=0)
    model = srf.calibrated(fitted, X[300:600], LABELS[300:600])
    f = fitted.decision_function(X)
    a, b = sigmoid(f[300:600], LABELS[300:600])
    assert np.allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-(a * f + b))))
    with pytest.raises(ValueError, match="predict_proba needs"):
        fitted.predict_proba(X)


def test_the_sigmoid_minimises_the_logistic_loss():
    f = RNG.standard_normal(400) * 1e3 + 5e3
    is_class = RNG.random(400) < 1 / (1 + np.exp(-(f - 5e3) / 400))
    weight = RNG.uniform(0.5, 2, 400)
    a, b = sigmoid(f, is_class, weight)
    n_1, n_0 = (weight[some].sum() / weight.mean() for some in (is_class, ~is_class))
    t = np.where(is_class, (n_1 + 1) / (n_1 + 2), 1 / (n_0 + 2))
    miss = weight * (1 / (1 + np.exp(-(a * f + b))) - t)
    assert abs(miss.sum()) < 1e-6 and abs(miss @ (f - 5e3)) < 1e-3 and a > 0


UNEVEN = {
    "one row of 1000": lambda n, rng: np.where(np.arange(n) == 0, 1000.0, 1.0),
    "a hundredth at 100": lambda n, rng: np.where(rng.permutation(n) < n // 100, 100.0, 1.0),
    "lognormal": lambda n, rng: np.exp(2 * rng.normal(size=n)),
}


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", UNEVEN)
def test_uneven_weights_leave_sure_probabilities_sure(kind, n_classes, unit):
    """Where decision values tell each class without a doubt, its probability is that of as many
    rows."""
    rng = np.random.default_rng(0)
    labels = np.arange(1000) % n_classes
    rows = np.eye(n_classes)[labels] + 0.01 * rng.normal(size=(1000, n_classes))
    weight = unit * UNEVEN[kind](1000, rng)
    model = srf.calibrated(
        partial(srf.drp, alpha=1e-5, loss="logistic"), rows, labels, sample_weight=weight, rng=0
    )
    assert np.diag(model.predict_proba(np.eye(n_classes))).min() > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("labels", [LABELS, LABELS * 1, np.where(LABELS, "p", "n"), KINDS])
@pytest.mark.parametrize("given", [srf.harfe, partial(srf.mfga, n_nonzero_coefs=5, alpha=1e-3)])
def test_labels_without_a_loss_are_taken(given, labels):
    said, unsaid = (
        srf.calibrated(f, X[FEW], labels[FEW], rng=0)
        for f in (partial(given, loss="logistic"), given)
    )
    assert np.array_equal(said.coef, unsaid.coef)
    keyword = partial(srf.drp, alpha=0.1)
    assert srf.calibrated(keyword, X[FEW], labels[FEW], rng=0).classes is not None


def test_a_regression_says_which_call_to_make():
    def fit(rows, labels, rng):
        return srf.drp(rows, labels + 0.5 * rows[:, 0], alpha=0.1, rng=rng)

    for given in (fit, fit(X, LABELS, rng=0), partial(fit)):
        with pytest.raises(ValueError, match=r"of a classifier, got a regression.*loss='logistic'"):
            srf.calibrated(given, X[FEW], LABELS[FEW], rng=0)


def test_sigmoids_at_their_ends():
    """Separable classes, constant values and values that say the opposite have finite, sensible
    sigmoids."""
    sure = np.repeat([-1.0, 1.0], 50)
    a, b = sigmoid(sure, sure > 0)
    assert np.isclose(1 / (1 + np.exp(-(a + b))), 51 / 52)
    a, b = sigmoid(np.ones(100), sure > 0)
    assert np.isclose(a + b, 0, atol=1e-9)
    a, b = sigmoid(-sure, sure > 0)
    assert a == 0 and np.isclose(b, 0)


@pytest.mark.slow
def test_weights_of_probabilities():
    twice = np.where(LABELS[FEW], 2.0, 1.0)
    light, heavy = (
        srf.calibrated(
            partial(FIT, loss="squared_hinge"), X[FEW], LABELS[FEW], sample_weight=w, rng=0
        )
        for w in (None, twice)
    )
    assert (
        heavy.predict_proba(X[REST])[:, 1].mean() > light.predict_proba(X[REST])[:, 1].mean() + 0.05
    )


@pytest.mark.slow
def test_groups_are_in_one_fold():
    groups, seen = np.array([f"patient {k}" for k in np.arange(500) % 40]), []

    def fit(X, y, rng, groups):
        seen.append(set(groups))
        return FIT(X, y, loss="squared_hinge", rng=rng)

    model = srf.calibrated(fit, X[FEW], LABELS[FEW], groups=groups, cv=4, rng=0)
    assert [len(each) for each in seen] == [40, 30, 30, 30, 30]
    plain = srf.calibrated(partial(FIT, loss="squared_hinge"), X[FEW], LABELS[FEW], cv=4, rng=0)
    assert np.abs(model.predict_proba(X[REST]) - plain.predict_proba(X[REST])).mean() < 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
def test_copies_do_not_make_probabilities_sure():
    """Labels are noise, and each row comes five times: no row is predicted from its copies."""
    rng = np.random.default_rng(0)
    rows, labels, groups = (
        rng.uniform(-2, 2, (60, 3)),
        rng.random(60) < 0.5,
        np.repeat(np.arange(60), 5),
    )
    fit = partial(srf.harfe, n_components=400, n_nonzero_coefs=50, alpha=1e-4, loss="squared_hinge")
    unsure = (
        srf.calibrated(fit, rows[groups], labels[groups], groups=each, rng=0)
        for each in (None, groups)
    )
    assert all(np.abs(m.predict_proba(rows)[:, 1] - 0.5).mean() < 0.3 for m in unsure)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"cv": 1}, ValueError, "cv"),
        (
            {"cv": 5, "groups": np.arange(500) % 3},
            ValueError,
            "cv must be at most the number of groups, 3",
        ),
        ({"groups": [1, 2]}, ValueError, "groups must have an entry for each of the 500 rows"),
        ({"y": Y[FEW]}, ValueError, "y has 500 classes"),
        ({"function_or_model": FIT, "y": Y[FEW]}, ValueError, "y has 500 classes"),
        (
            {"function_or_model": partial(FIT, loss="squared"), "y": Y[FEW]},
            ValueError,
            "of a classifier",
        ),
        ({"function_or_model": 3}, TypeError, "function_or_model"),
        (
            {"y": np.append(LABELS[:499].astype(int), 7)},
            ValueError,
            "y must have rows of each class",
        ),
        (
            {"function_or_model": FIT(X, LABELS, loss="logistic", rng=0), "y": KINDS[FEW]},
            ValueError,
            "that the model knows",
        ),
    ],
)
def test_bad_arguments_are_named(how, error, says):
    how = {
        "function_or_model": partial(FIT, loss="squared_hinge"),
        "X": X[FEW],
        "y": LABELS[FEW],
        **how,
    }
    with pytest.raises(error, match=says):
        srf.calibrated(how.pop("function_or_model"), how.pop("X"), how.pop("y"), rng=0, **how)


def frequencies(f, is_class, weight):
    """Return (the place of each row among five parts by f, the weighted share of the class there),
    for each weight given."""
    part = np.argsort(np.argsort(f)) * 5 // len(f)
    shares = [
        np.bincount(part, each * is_class) / np.bincount(part, each)
        for each in (np.ones(len(f)), weight)
    ]
    return part, np.array(shares)


@pytest.mark.every_case
@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("n_heavy", [1, 3])
@pytest.mark.parametrize("size", [1e2, 1e3, 1e6, 1e300])
def test_a_heavy_row_moves_no_probability_away_from_both_frequencies(n, n_heavy, size):
    """Nor further, up to chance, than without weights: before, by .6 to .9."""
    beyond = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        f = rng.uniform(0.5, 4) * rng.normal(size=n)
        is_class = rng.random(n) < 1 / (1 + np.exp(-f - rng.normal()))
        weight = np.ones(n)
        weight[rng.integers(n, size=n_heavy)] = size
        part, shares = frequencies(f, is_class, weight)
        a, b = sigmoid(f, is_class, weight)
        p = np.bincount(part, 1 / (1 + np.exp(-(a * f + b)))) / np.bincount(part)
        beyond.append(max((shares.min(axis=0) - p).max(), (p - shares.max(axis=0)).max()))
    assert np.mean(beyond) < 0.13 and np.max(beyond) < 0.4


def test_a_heavy_row_leaves_a_sure_classifier_sure():
    rng = np.random.default_rng(0)
    f = 4 * rng.normal(size=1000)
    is_class, weight = f + 0.3 * rng.normal(size=1000) > 0, np.ones(1000)
    for row in (np.argmax(f), np.argmin(f), np.argmin(np.abs(f))):
        for label in (True, False):
            is_class[row], weight[:] = label, 1.0
            weight[row] = 1000.0
            a, b = sigmoid(f, is_class, weight)
            assert 1 / (1 + np.exp(-(8 * a + b))) > 0.9 and 1 / (1 + np.exp(8 * a - b)) < 0.1


def test_weights_of_classes_and_of_copies_stay():
    rng = np.random.default_rng(0)
    f = rng.normal(size=1000)
    rare = rng.random(1000) < 0.02 + 0.02 * (f > 1)
    balanced = np.where(rare, 1 / rare.sum(), 1 / (~rare).sum())
    a, b = sigmoid(f, rare, balanced)
    p = 1 / (1 + np.exp(-(a * f + b)))
    assert abs(np.average(p, weights=balanced) - 0.5) < 0.01
    count, is_class = rng.integers(1, 6, 1000), f + rng.normal(size=1000) > 0
    again = np.repeat(np.arange(1000), count)
    weighted, copied = sigmoid(f, is_class, count), sigmoid(f[again], is_class[again])
    assert len(again) > 2000 and np.allclose(weighted, copied, atol=0.01)


def test_bounded_weights():
    for n, heavy in ((1, 5.0), (2, 1.0), (100, 1e9), (100, 3.0), (101, np.exp(5))):
        weight = np.ones(n)
        weight[0] = heavy
        cut = bounded(weight)
        assert (cut <= weight).all() and (cut[1:] == 1).all()
        assert cut.max() <= np.sqrt(n) * cut.mean() * (1 + 1e-12)
        assert cut[0] == heavy or np.isclose(cut[0], np.sqrt(n) * cut.mean())


def test_a_label_of_weight_zero_does_not_matter():
    """Neither in the fit nor where a model is calibrated, though the model does not know it."""
    rows, labels, fit = X[FEW], LABELS[FEW].astype(int), partial(FIT, loss="logistic")
    weight = np.ones(len(rows))
    weight[:5] = 0
    other = np.where(weight == 0, 7, labels)
    for given in (fit, fit(rows, labels)):
        one, two = (
            srf.calibrated(given, rows, y, sample_weight=weight, rng=0) for y in (labels, other)
        )
        assert two.classes.tolist() == [0, 1]
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
