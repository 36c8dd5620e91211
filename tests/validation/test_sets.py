"""Sets of classes hold the share of labels that was asked for; they are those of the formula,
written plainly."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.validation.experts import mass_above

from .data import FEW, FIT, KINDS, LABELS, REST, RNG, N, X

NAMES = np.array(["low", "middle", "high"])[KINDS]
OF_TWO, OF_KINDS = partial(FIT, loss="logistic"), partial(FIT, loss="multinomial")
QUICK = partial(srf.drp, loss="multinomial", alpha=1e-3)


def held(sets, rows, y):
    """Return the share of labels that are in the sets, of which none is empty."""
    inside = sets.predict_set(rows)
    assert inside.shape == (len(y), len(sets.classes)) and inside.dtype == bool
    assert inside.any(axis=1).all()
    return inside[np.arange(len(y)), np.searchsorted(sets.classes, y)].mean()


@pytest.mark.every_case
@pytest.mark.parametrize("coverage", [0.7, 0.9])
@pytest.mark.parametrize(("fit", "y"), [(OF_TWO, LABELS), (OF_KINDS, NAMES)], ids=["two", "three"])
def test_a_split_holds_what_was_asked_in_the_mean_over_draws(fit, y, coverage):
    """At least the coverage, less two standard errors of the mean; and not much more where the most
    probable class alone is not right so often."""
    model, n, shares = fit(X[:300], y[:300], rng=0), 150, []
    for seed in range(40):
        known, new = np.split(300 + np.random.default_rng(seed).permutation(600), [n])
        sets = srf.intervals(model, X[known], y[known], coverage=coverage)
        shares.append(held(sets, X[new], y[new]))
    error = 2 * np.std(shares) / np.sqrt(len(shares))
    of_best = np.mean(model.predict(X[300:]) == y[300:])
    assert np.mean(shares) >= coverage - error
    assert np.mean(shares) <= max(coverage, of_best) + 1 / (n + 1) + error


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_functions_hold_it_too(method):
    shares = []
    for seed in range(8):
        known, new = np.split(np.random.default_rng(seed).permutation(N), [400])
        sets = srf.intervals(QUICK, X[known], NAMES[known], method=method, rng=seed)
        shares.append(held(sets, X[new], NAMES[new]))
    assert len(sets.experts) == (5 if method == "cv+" else 1)
    assert np.mean(shares) >= 0.9 - 2 * np.std(shares) / np.sqrt(len(shares))
    assert sets.guarantee == (0.9 if method == "split" else pytest.approx(0.8 - 1.6 / 81))


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_sets_are_nested_in_the_coverage(method):
    smaller = np.zeros((400, 3), bool)
    for coverage in (0.1, 0.5, 0.8, 0.9, 0.98):
        sets = srf.intervals(
            QUICK, X[FEW], KINDS[FEW], coverage=coverage, method=method, rng=0
        ).predict_set(X[REST])
        assert (sets >= smaller).all() and sets.any(axis=1).all()
        smaller = sets
    assert smaller.mean() > 0.5


def plain_scores(p):
    """Return the score of each class of a row of probabilities."""
    return [sum(q for q in p if q > own) for own in p]


def test_sets_of_a_split_are_the_formula():
    model, n = QUICK(X[:300], NAMES[:300], rng=0), 99
    known = slice(300, 300 + n)
    sets = srf.intervals(model, X[known], NAMES[known], coverage=0.8)
    own = [
        plain_scores(p)[list(model.classes).index(label)]
        for p, label in zip(model.predict_proba(X[known]).tolist(), NAMES[known], strict=True)
    ]
    threshold = sorted(own)[int(np.ceil(0.8 * (n + 1))) - 1]
    for p, inside in zip(
        model.predict_proba(X[REST]).tolist(), sets.predict_set(X[REST]).tolist(), strict=True
    ):
        assert inside == [score <= threshold + 1e-12 for score in plain_scores(p)]


def test_sets_of_cv_plus_are_the_formula():
    """A class is in where fewer than coverage (n + 1) rows have a lower score than it has by the
    model of their fold."""
    n, coverage = 200, 0.9
    sets = srf.intervals(QUICK, X[:n], KINDS[:n], coverage=coverage, method="cv+", rng=0)
    below = np.zeros((400, 3))
    for expert in sets.experts:
        scores = np.array([plain_scores(p) for p in expert.model.predict_proba(X[REST])])
        below += (expert.scores < scores[..., None] - 1e-12).sum(axis=2)
    expected = below < coverage * (n + 1) - 1e-9
    assert expected.any(axis=1).all() and expected.mean() < 0.95
    assert np.array_equal(sets.predict_set(X[REST]), expected)


def test_classes_that_are_equally_probable_have_the_same_score():
    p = np.array([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75], [0.375, 0.25, 0.375]])
    expected = [plain_scores(row) for row in p.tolist()]
    assert np.array_equal(mass_above(p), expected)
    assert np.array_equal(mass_above(np.full((1, 4), 0.25)), np.zeros((1, 4)))


def test_a_model_that_is_right_more_often_than_asked_for_gives_single_classes():
    y = X[:, 0] > 0
    model = srf.drp(X[:300], y[:300], loss="logistic", alpha=1e-6, rng=0)
    sets = srf.intervals(model, X[300:600], y[300:600], coverage=0.8)
    assert np.mean(model.predict(X[600:]) == y[600:]) > 0.9
    assert (sets.predict_set(X[600:]).sum(axis=1) == 1).all()


def test_sets_are_larger_where_the_model_is_less_sure():
    model = OF_KINDS(X[:400], KINDS[:400], rng=0)
    sets = srf.intervals(model, X[400:600], KINDS[400:600]).predict_set(X[600:])
    sure = model.predict_proba(X[600:]).max(axis=1)
    size = sets.sum(axis=1)
    assert size[sure < np.median(sure)].mean() > size[sure > np.median(sure)].mean() + 0.3


SPARSE = np.where(np.abs(X) > 1, X, 0)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city=np.where(X[:, 2] > 0, "Rom", "Oslo"))


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (FRAME, pd.Series(NAMES, dtype="category")),
        (X.astype(np.float32), NAMES.astype(object)),
        (sp.csr_array(SPARSE), KINDS.astype(float)),
        (X, LABELS),
    ],
    ids=["frame", "float32", "csr", "bool"],
)
def test_kinds_of_rows_and_labels(rows, y):
    part = (lambda some: rows.iloc[some]) if rows is FRAME else lambda some: rows[some]
    loss = "logistic" if y is LABELS else "multinomial"
    sets = srf.intervals(partial(QUICK, loss=loss), part(FEW), y[FEW], coverage=0.8, rng=0)
    assert held(sets, part(REST), np.asarray(y[REST])) > 0.7
    labels = np.unique(np.asarray(y).tolist())
    assert np.array_equal(sets.classes, labels) and sets.classes.dtype.kind == labels.dtype.kind
    copied = pickle.loads(pickle.dumps(sets))
    assert np.array_equal(copied.predict_set(part(REST)), sets.predict_set(part(REST)))


def test_weights_count_rows():
    model, weight = QUICK(X[:300], KINDS[:300], rng=0), np.repeat([0.0, 1.0], [100, 200])
    y = KINDS[300:600].copy()
    y[:100] = 0
    sets = srf.intervals(model, X[300:600], y, sample_weight=weight)
    plain = srf.intervals(model, X[400:600], KINDS[400:600])
    assert np.array_equal(sets.predict_set(X[600:]), plain.predict_set(X[600:]))


@pytest.mark.slow
def test_losses_without_probabilities_are_calibrated_first():
    hinge = partial(FIT, loss="squared_hinge")
    fit = partial(srf.calibrated, hinge, cv=2)
    sets = srf.intervals(fit, X[FEW], LABELS[FEW], coverage=0.8, rng=0)
    assert held(sets, X[REST], LABELS[REST]) > 0.7


def test_offsets_of_two_classes():
    offset = 2 * X[:, 1]
    y = RNG.random(N) < 1 / (1 + np.exp(-X[:, 0] - offset))
    model = srf.drp(X[:300], y[:300], loss="logistic", alpha=1e-3, offset=offset[:300], rng=0)
    sets = srf.intervals(model, X[300:600], y[300:600], offset=offset[300:600])
    inside = sets.predict_set(X[600:], offset=offset[600:])
    p = model.predict_proba(X[600:], offset=offset[600:])
    assert inside[np.arange(300), p.argmax(axis=1)].all() and 0.5 < inside.mean() < 0.9


def test_a_class_that_the_fitted_rows_lack_is_held_by_no_set():
    """Its few rows count as missed; where they are too many, that is an error."""
    rare = KINDS.copy()
    rare[:3] = 7

    def fit(X, y, rng):
        return QUICK(X[y < 7], y[y < 7], rng=rng)

    sets = srf.intervals(fit, X, rare, coverage=0.8, rng=0)
    assert sets.classes.tolist() == [0, 1, 2, 7]
    assert not sets.predict_set(X)[:, 3].any() and held(sets, X[3:], rare[3:]) > 0.7
    rare[:300] = 7
    with pytest.raises(ValueError, match="y must have labels that the models of the other rows"):
        srf.intervals(fit, X, rare, coverage=0.8, rng=0)


@pytest.mark.parametrize("label", ["lowest", 3])
def test_a_label_that_a_fitted_model_does_not_know_is_named(label):
    model = QUICK(X[:300], NAMES[:300] if label == "lowest" else KINDS[:300], rng=0)
    y = (NAMES if label == "lowest" else KINDS)[300:500].astype(object)
    y[5] = label
    with pytest.raises(ValueError, match=f"y must hold labels that the model knows, got .*{label}"):
        srf.intervals(model, X[300:500], y)


def test_what_sets_and_intervals_are_not_asked_for():
    model = QUICK(X[:300], KINDS[:300], rng=0)
    sets = srf.intervals(model, X[300:], KINDS[300:])
    with pytest.raises(ValueError, match=r"predict needs .* sets of 3 classes: predict_set"):
        sets.predict(X)
    with pytest.raises(ValueError, match=r"to_html needs intervals of one number.*sets of 3"):
        sets.to_html()
    of_numbers = srf.intervals(FIT(X[:300], X[:300, 0], rng=0), X, X[:, 0], adaptive=False)
    with pytest.raises(ValueError, match="predict_set needs intervals of a classifier"):
        of_numbers.predict_set(X)
    with pytest.raises(TypeError, match="y must hold real numbers"):
        srf.intervals(of_numbers.experts[0].model, X, NAMES)
    assert "sets of 3 classes" in repr(sets) and "largest score in a set" in sets._repr_html_()
