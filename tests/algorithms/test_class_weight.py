"""Class weights: they multiply sample weights, in every function that fits labels; what they may
be."""

from functools import partial

import numpy as np
import pytest

import sparserf as srf

from ..conftest import bits, ignore_convergence
from .test_sample_weight import EVERY_LOSS

N, D = 120, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
LABELS = np.array(["few", "many", "some"])[
    np.digitize(X[:, 0] + 0.3 * RNG.standard_normal(N), [-1.0, 0.8])
]
SOME = RNG.integers(0, 4, N).astype(float)
FITS = EVERY_LOSS | {
    "harfe, auto": partial(srf.harfe, rng=0, features="auto", n_nonzero_coefs=5, alpha=1e-4),
}
FEW = {"features": "gaussian", "alpha": 0.01, "n_components": 100, "rng": 0}


@ignore_convergence
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("weight", [None, SOME], ids=["all alike", "sample_weight"])
def test_a_class_weight_is_a_sample_weight(fit, weight):
    """Not a bit differs from the fit whose sample weights are multiplied by hand."""
    shares = {"few": 3.0, "some": 0.3}
    by_hand = (1.0 if weight is None else weight) * np.array(
        [shares.get(label, 1.0) for label in LABELS]
    )
    one = fit(X, LABELS, loss="logistic", sample_weight=weight, class_weight=shares)
    other = fit(X, LABELS, loss="logistic", sample_weight=by_hand)
    assert bits(one) == bits(other)


@pytest.mark.slow
@ignore_convergence
@pytest.mark.parametrize(
    "fit",
    [
        partial(srf.sparse_rf, **FEW),
        partial(srf.harfe, n_nonzero_coefs=5, alpha=1e-4, n_components=100, rng=0),
        partial(srf.mfga, n_nonzero_coefs=5, alpha=1e-3, rng=0),
        partial(srf.drp, alpha=0.1, rng=0),
    ],
    ids=["sparse_rf", "harfe", "mfga", "drp"],
)
def test_of_all_classes_together(fit):
    by_hand = np.where(LABELS == "few", 4.0, 1.0)
    one, other = (
        fit(X, LABELS, loss="multinomial", class_weight={"few": 4.0}),
        fit(X, LABELS, loss="multinomial", sample_weight=by_hand),
    )
    assert bits(one) == bits(other)


@pytest.mark.parametrize(
    "weight", [None, SOME, 1e300 * SOME, 1e-300 * SOME], ids=["all alike", "few", "huge", "tiny"]
)
@pytest.mark.parametrize(
    "class_weight",
    ["balanced", {"few": 2.0, "many": 0.5, "some": 1.0}],
    ids=["balanced", "mapping"],
)
def test_weights_are_scikit_learns(weight, class_weight):
    compute = pytest.importorskip("sklearn.utils.class_weight").compute_class_weight
    classes, label = np.unique(LABELS, return_inverse=True)
    counted = np.ones(N) if weight is None else weight / weight.max()
    try:
        theirs = compute(class_weight, classes=classes, y=LABELS, sample_weight=counted)
    except TypeError:  # scikit-learn 1.5
        theirs = compute(
            class_weight, classes=np.arange(3), y=np.repeat(label, (6 * counted).astype(int))
        )
    how = {"alpha": 0.1, "loss": "logistic"}
    ours = srf.drp(X, LABELS, sample_weight=weight, class_weight=class_weight, **how)
    by_hand = srf.drp(X, LABELS, sample_weight=counted * theirs[label], **how)
    np.testing.assert_allclose(ours.coef, by_hand.coef, rtol=1e-7)
    np.testing.assert_allclose(ours.intercept, by_hand.intercept, rtol=1e-7)


def test_balanced_classes_count_alike():
    """Without any term the probabilities of balanced classes are equal, by the multinomial loss and
    by one against the rest."""
    for loss in ("multinomial", "logistic"):
        model = srf.sparse_rf(
            X,
            LABELS,
            loss=loss,
            class_weight="balanced",
            **{**FEW, "alpha": 1e3},
            sample_weight=SOME,
        )
        np.testing.assert_allclose(model.predict_proba(X[:1]), 1 / 3, rtol=1e-6)


def test_a_class_of_weight_zero_is_as_if_it_was_not_there():
    model = srf.sparse_rf(X, LABELS, loss="logistic", class_weight={"few": 0}, **FEW)
    there = LABELS != "few"
    assert bits(model) == bits(
        srf.sparse_rf(X, LABELS, loss="logistic", sample_weight=there * 1.0, **FEW)
    )
    assert model.classes.tolist() == ["many", "some"]
    with pytest.raises(
        ValueError, match="at least two classes in rows of positive weight, got only 'some'"
    ):
        srf.sparse_rf(X, LABELS, loss="logistic", class_weight={"few": 0, "many": 0.0}, **FEW)


@pytest.mark.parametrize(
    "labels",
    [np.arange(N) % 3, (np.arange(N) % 3) / 2, np.arange(N) % 2 == 0],
    ids=["int", "float", "bool"],
)
def test_labels_of_any_kind(labels):
    first = labels[0].item()
    one = srf.drp(X, labels, loss="logistic", alpha=0.1, class_weight={first: 3})
    assert bits(one) == bits(
        srf.drp(
            X, labels, loss="logistic", alpha=0.1, sample_weight=np.where(labels == first, 3.0, 1.0)
        )
    )


def test_a_mapping_may_name_classes_that_some_rows_lack():
    """A fold may lack a rare class, as for scikit-learn, where the mapping names all others."""
    there = LABELS != "few"
    shares = {"few": 9.0, "many": 2.0, "some": 1.0}
    one = srf.drp(X[there], LABELS[there], loss="logistic", alpha=0.1, class_weight=shares)
    assert bits(one) == bits(
        srf.drp(X[there], LABELS[there], loss="logistic", alpha=0.1, class_weight={"many": 2.0})
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("class_weight", "error", "message"),
    [
        (
            "balance",
            ValueError,
            "class_weight must be 'balanced', a mapping of labels to weights, or None, got "
            "'balance'",
        ),
        ([1, 2, 3], TypeError, r"class_weight must be 'balanced', a mapping .* got \[1, 2, 3\]"),
        (
            {"none": 2.0},
            ValueError,
            "class_weight must name labels of y, got 'none': y has 'few', 'many', 'some'",
        ),
        ({"few": -1.0}, ValueError, r"class_weight\['few'\] must be finite and >= 0, got -1.0"),
        ({"few": np.nan}, ValueError, r"class_weight\['few'\] must be finite and >= 0, got nan"),
        ({"few": np.inf}, ValueError, r"class_weight\['few'\] must be finite and >= 0, got inf"),
        ({"few": "2"}, TypeError, r"class_weight\['few'\]"),
        (
            {"few": 0, "many": 0, "some": 0},
            ValueError,
            "class_weight must be positive for some class",
        ),
    ],
)
@pytest.mark.parametrize("fit", [srf.sparse_rf, partial(srf.drp, alpha=0.1), srf.mfga, srf.harfe])
def test_what_is_wrong_is_said(fit, class_weight, error, message):
    with pytest.raises(error, match=message):
        fit(X, LABELS, loss="logistic", class_weight=class_weight)


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_regression_has_no_classes(loss):
    with pytest.raises(
        ValueError,
        match=f"class_weight must be None for loss='{loss}', which has no classes, got 'balanced'",
    ):
        srf.sparse_rf(X, np.abs(X[:, 0]), loss=loss, class_weight="balanced")
