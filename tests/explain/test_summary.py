"""Summaries of models."""

from dataclasses import replace

import numpy as np
import pytest

import sparserf as srf


def test_summary(models, of_frame):
    model, data = of_frame
    page = model.summary(data, n_terms=2, rng=0)
    assert page.n_terms == len(model.features) and page.info is model.info and len(page.terms) == 2
    assert page.terms[0][2] >= page.terms[1][2] and "held-out" in str(page) and "c o" in str(page)
    assert [row.share for row in page.inputs] == sorted(
        (row.share for row in page.inputs), reverse=True
    )
    printed = str(page).splitlines()[5 : 5 + len(page.inputs)]
    assert [row.name for row in page.inputs] == [line.split("  ")[0] for line in printed]
    for model in models.values():
        page = model.summary()
        assert page.importances is None and sum(page.kinds.values()) == page.n_terms
        assert ("inputs that terms see" in str(page)) == bool(page.inputs)
        assert all(np.isnan(row.share) for row in page.inputs)
        assert " inputs)" not in str(page) and all(
            name.count(",") <= 2 for name, _, _ in page.terms
        )
    assert "2 classes (a, b'; f > 0 means b')" in str(models["two classes"].summary())
    assert "of f[1]" in str(models["three classes"].summary()) and "of f[" not in str(
        models["two classes"].summary()
    )
    with pytest.raises(ValueError, match="n_terms"):
        model.summary(n_terms=-1)


def test_the_largest_terms_of_several_kinds_have_their_own_names(rng):
    """Terms are named as in the formula, in whatever order their blocks are."""
    X = rng.standard_normal((300, 6))
    y = np.sign(X[:, 0]) + np.cos(3 * X[:, 1]) + 2 * np.sign(X[:, 2]) + np.cos(2 * X[:, 3] + 1)
    some = [srf.RandomNeurons("cos", order=1), srf.RandomNeurons("sign", order=1)]
    model = srf.mfga(X, y, features=some, n_components=300, n_nonzero_coefs=12, alpha=1e-3, rng=0)
    assert len(model.features.blocks) == 2
    one = [model.features.take([k]) for k in range(12)]
    said = [f"{each.blocks[0].activation}(x{each.input_usage().argmax()})" for each in one]
    for n_terms in (3, 7, 12):
        page = model.summary(n_terms=n_terms)
        # every feature is at most 1
        largest = np.argsort(-np.abs(model.coef), kind="stable")[:n_terms]
        assert [name for name, _, _ in page.terms] == [said[k] for k in largest]
        np.testing.assert_array_equal([coef[0] for _, coef, _ in page.terms], model.coef[largest])


def test_a_summary_says_that_a_model_is_a_constant(rng):
    X = rng.standard_normal((40, 3))
    model = srf.sparse_rf(X, np.full(40, 2.0), rng=0)
    assert len(model.coef) == 0 and "no term predicts held-out rows better than a constant" in str(
        model.summary(X)
    )


def test_a_summary_of_many_outputs_and_inputs_is_short():
    """For 19 classes and 30 inputs it says where intercepts lie, names classes as far as a line
    goes, and inputs that matter."""
    Z = np.random.default_rng(0).standard_normal((400, 30))
    labels = np.array([f"a class of number {k}" for k in range(19)])[
        np.digitize(Z.sum(axis=1), np.linspace(-9, 9, 18))
    ]
    model = srf.drp(Z, labels, loss="logistic", alpha=0.1, rng=0)
    page = model.summary(Z, n_terms=0)
    lines = str(page).splitlines()
    low, high = np.argsort(model.intercept)[[0, -1]]
    said = [f"{model.intercept[k]:.4g} of f[{model.classes[k]}]" for k in (low, high)]
    assert f", intercept from {said[0]} to {said[1]}\n" in str(page).replace("\n    ", " ")
    assert (
        lines[0].startswith("SparseModel: 19 classes (a class of number 0, ")
        and max(map(len, lines)) <= 100
    )
    more = sum(row.share for row in page.inputs[20:])
    assert f"and 10 more, together {100 * more:.1f} %" in lines and len(page.inputs) == 30
    few = srf.drp(Z, np.stack([Z[:, 0], Z[:, 1] + 1], axis=1), alpha=0.1, rng=0)
    assert "intercept {:.4g} of f_0, {:.4g} of f_1\n".format(*few.intercept) in str(few.summary())


def test_the_error_of_held_out_rows_is_in_units_of_y(models):
    """This holds for the squared loss; other losses show their mean; a loss that is not known is
    not shown."""
    model = models["auto"]
    assert f"held-out rows {np.sqrt(2 * model.info.validation_loss):.4g}" in str(model.summary())
    other = replace(model, loss="huber")
    assert f"loss of held-out rows {model.info.validation_loss:.4g}" in str(other.summary())
    for unknown in (None, np.nan):
        page = str(replace(model, info=replace(model.info, validation_loss=unknown)).summary())
        assert "of held-out" not in page and "nan" not in page and "None" not in page


def test_the_line_on_the_fit_says_what_is_true_of_it(models):
    """A chosen model has no tolerance to converge to; what was cut is named, and a search that was
    cut does not say that nothing predicts better than a constant."""
    chosen = models["auto"]
    page = str(chosen.summary())
    assert "fit: chosen on held-out rows, " in page and "tolerance" not in page
    given = replace(chosen, info=replace(chosen.info, alpha=0.1, dual_gap=0.2))
    assert "fit: converged to its tolerance, penalty alpha 0.1" in str(given.summary())
    stopped = replace(given, info=replace(given.info, converged=False, cut={"fits": 1}))
    assert "not converged to its tolerance" in str(stopped.summary())
    assert "ended early or left out: 1 fits" in str(stopped.summary())
    with pytest.warns(srf.TimeLimitWarning):
        constant = srf.sparse_rf(np.eye(50)[:, :2], np.arange(50.0), time_limit=1e-6, rng=0)
    assert len(constant.features) == 0 and "no term predicts" not in str(constant.summary())
