"""prune: the model is that of plain orthogonal least squares, by one `lstsq` for each candidate of
each step; and what pruning never changes."""

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import prune
from sparserf.algorithms.prune import (
    LeastSquares,
    orthogonal_least_squares,
)
from sparserf.features import FeatureSet, NeuronBlock

from ..conftest import phi_oracle
from ..fitted_models import bumps

N, D = 120, 3
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, D)) < 0.3, 0.0, RNG.uniform(-2, 2, (N, D)))
WEIGHT = RNG.integers(0, 4, N).astype(float)
INFO = srf.FitInfo(7, True, (3.0, 2.0), 0.1, 500, 1, 0.25, validation_loss=1.5)


def model_of(features, coef, intercept=0.3, info=INFO):
    """Return a model with these features, whose support is every third place of a dictionary."""
    coef = np.asarray(coef, float)
    loss, classes, b = "squared", None, intercept
    if coef.ndim == 2:
        b = np.linspace(-1.0, 1.0, len(coef))
    support = 3 * np.arange(len(features)) + (1 << 40)
    return srf.SparseModel(
        coef, b, support, features, loss, classes, replace(info, n_nonzero=len(features))
    )


def some_model(n_terms=14, n_outputs=None, seed=0):
    """Return a model of random cosines."""
    rng = np.random.default_rng(seed)
    features = srf.Fourier(gamma=0.4).draw(n_terms, D, rng=seed)
    return model_of(features, rng.standard_normal((n_outputs, n_terms) if n_outputs else n_terms))


def oracle(phi, f, weight, most, allowed):
    """Return (S, coef, intercept) of orthogonal least squares of f (n, n_outputs), fitted again for
    each candidate of each step."""
    h = np.sqrt(weight / weight.sum())[:, None]
    S, best = [], None

    def refit(chosen):
        A = h * np.column_stack([np.ones(len(f)), phi[:, chosen]])
        c = np.linalg.lstsq(A, h * f, rcond=None)[0]
        return ((A @ c - h * f) ** 2).sum(), c

    left, best = refit(S)
    while len(S) < most and left > allowed:
        rest = [j for j in range(phi.shape[1]) if j not in S]
        errors = [refit([*S, j])[0] for j in rest]
        S.append(rest[int(np.argmin(errors))])
        left, best = refit(S)
    order = np.argsort(S)
    return np.array(S, int)[order], best[1:][order].T, best[0]


def change(model, small, X, weight):
    """Return (mean square of the change, variance) of the predictions, both summed over the
    outputs."""
    f, g = (
        np.asarray(m.decision_function(X), float).reshape(X.shape[0], -1) for m in (model, small)
    )
    share = weight / weight.sum()
    return share @ ((g - f) ** 2).sum(axis=1), share @ ((f - share @ f) ** 2).sum(axis=1)


each_layout = pytest.mark.parametrize(
    "layout",
    [np.asarray, csr_array, lambda X: X.astype(np.float32)],
    ids=["dense", "csr", "float32"],
)
each_weight = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["even", "weighted"])


@each_layout
@each_weight
@pytest.mark.parametrize("n_outputs", [None, 1, 3])
@pytest.mark.parametrize(
    "stop", [{"max_terms": 1, "tol": 0}, {"max_terms": 4, "tol": 0}, {"tol": 0.3}, {"tol": 0.02}]
)
def test_it_is_orthogonal_least_squares(layout, weight, n_outputs, stop):
    for seed in range(3):
        model = some_model(12, n_outputs, seed)
        plain = np.ones(N) if weight is None else weight
        Z = layout(X)
        exactly = Z.toarray() if isinstance(Z, csr_array) else Z.astype(float)
        phi = phi_oracle(model.features, exactly)
        f = (phi @ np.atleast_2d(model.coef).T + model.intercept).reshape(N, -1)
        variance = change(model, model, X, plain)[1]
        allowed = stop["tol"] * variance
        S, coef, b = oracle(phi, f, plain, stop.get("max_terms", 12), allowed)
        small = prune(model, Z, sample_weight=weight, polish=False, **stop)
        np.testing.assert_array_equal(small.support, model.support[S])
        assert small.coef.shape == (*model.coef.shape[:-1], len(S)) and np.shape(
            small.intercept
        ) == np.shape(model.intercept)
        accuracy = 1e-8 if Z.dtype == np.float64 else 1e-3  # of features in this precision
        np.testing.assert_allclose(
            np.atleast_2d(small.coef), coef, atol=accuracy * np.abs(coef).max()
        )
        np.testing.assert_allclose(
            small.intercept, b if n_outputs else b[0], atol=accuracy * np.abs(coef).max()
        )


@pytest.mark.parametrize(("ahead", "cached"), [(1, 1), (2, 3), (8, 32), (100, 7)])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_lines_made_ahead_change_no_term(rng, monkeypatch, ahead, cached, n_outputs):
    """However many lines are made at once: terms in the order of plain least squares, with their
    coefficients, also of features that are there more than once."""
    module = importlib.import_module("sparserf.algorithms.prune")
    monkeypatch.setattr(module, "AHEAD", ahead)
    monkeypatch.setattr(module, "CACHED", cached)
    phi = rng.standard_normal((80, 30)) @ rng.standard_normal((30, 30))
    phi = phi[:, np.repeat(np.arange(30), 3)]  # each three times: as good as each other
    phi -= phi.mean(axis=0)
    f = phi @ rng.standard_normal((90, n_outputs))
    G, c = phi.T @ phi / 80, f.T @ phi / 80
    problem = LeastSquares(
        G, c, float((f**2).mean(axis=0).sum()), 1e-9 * G.diagonal(), np.zeros(90, bool)
    )
    S, w = orthogonal_least_squares(problem, 12, 0.0)
    chosen, coef, _ = oracle(phi[:, ::3], f, np.ones(80), 12, 0.0)
    order = np.argsort(S)
    np.testing.assert_array_equal(S[order] // 3, chosen)
    np.testing.assert_allclose(w[:, order], coef, rtol=1e-7, atol=1e-7 * abs(coef).max())


@each_layout
@each_weight
@pytest.mark.parametrize("n_outputs", [None, 2])
@pytest.mark.parametrize("tol", [1e-6, 1e-3, 0.01, 0.2, 1.0, 5.0])
def test_the_change_is_at_most_tol(layout, weight, n_outputs, tol):
    model, Z, plain = some_model(30, n_outputs), layout(X), np.ones(N) if weight is None else weight
    small = prune(model, Z, tol=tol, sample_weight=weight)
    moved, variance = change(model, small, Z, plain)
    allowed = max(tol, 100 * np.finfo(Z.dtype).eps)  # float32 allows no less than this
    assert moved <= allowed * variance * (1 + 1e-3) + 1e-10 * variance
    assert len(small.coef.T) == 0 if tol >= 1 else len(small.coef.T) > 0
    if 0 < len(small.coef.T) < 30:  # one term less would exceed tol
        less = (
            prune(model, Z, max_terms=len(small.coef.T) - 1, sample_weight=weight, polish=False)
            if len(small.coef.T) > 1
            else None
        )
        assert less is None or change(model, less, Z, plain)[0] > tol * variance


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_max_terms(n_outputs):
    model, errors = some_model(12, n_outputs), []
    for k in range(1, 12):
        small = prune(model, X, max_terms=k, polish=False)
        assert small.coef.shape[-1] == len(small.features) == len(small.support) == k
        errors.append(change(model, small, X, np.ones(N))[0])
    assert np.all(np.diff(errors) <= 1e-12) and errors[-1] > 0
    # whichever of tol and max_terms is met first ends it
    assert prune(model, X, max_terms=5, tol=1e-9).coef.shape[-1] == 5
    for k in (12, 13, 10**9, None):
        assert prune(model, X, max_terms=k, tol=0) is model
        assert prune(model, X, max_terms=k, tol=0.5).coef.shape[-1] < 12


@each_layout
def test_as_many_terms_as_asked_for_where_they_help(layout):
    """Without tol, all of max_terms are kept, also where far fewer would do for tol=0.01, the
    default without max_terms."""
    model, Z = some_model(30), layout(X)
    few, many = prune(model, Z), prune(model, Z, max_terms=22)
    assert len(few.coef) < 20 and len(many.coef) == 22
    np.testing.assert_array_equal(few.coef, prune(model, Z, tol=0.01).coef)
    assert change(model, many, Z, np.ones(N))[0] < change(model, few, Z, np.ones(N))[0]


def test_what_is_kept():
    """Support, features, loss, classes and all of info but n_nonzero stay, bit for bit; the model
    given is not written to."""
    rng = np.random.default_rng(1)
    y = np.array(["a", "b", "c"])[
        np.argmax(np.sin(2 * X) + 0.1 * rng.standard_normal(X.shape), axis=1)
    ]
    model = srf.sparse_rf(
        X, y, features="gaussian", alpha=0.003, loss="logistic", n_components=300, rng=0
    )
    before = model.coef.copy(), np.copy(model.intercept), model.support.copy(), X.copy()
    small = prune(model, X, tol=0.05)
    n = len(small.support)
    assert 3 < n < len(model.support) and np.all(np.diff(small.support) > 0)
    place = np.searchsorted(model.support, small.support)
    np.testing.assert_array_equal(model.support[place], small.support)
    np.testing.assert_array_equal(
        model.features.take(place).transform(X), small.features.transform(X)
    )
    assert small.info == replace(model.info, n_nonzero=n)
    assert (small.loss, small.n_features_in) == (model.loss, D) and small.classes is model.classes
    assert np.mean(small.predict(X) == model.predict(X)) > 0.8  # .88 to .95 with other seeds
    np.testing.assert_allclose(small.predict_proba(X).sum(axis=1), 1)
    for now, then in zip((model.coef, model.intercept, model.support, X), before, strict=True):
        np.testing.assert_array_equal(now, then)
    # nothing more is dropped
    assert prune(small, X, tol=1e-12).support.tolist() == small.support.tolist()


@pytest.mark.parametrize("kind", ["q-sparse", "linear", "taylor", "mixed"])
def test_terms_of_every_kind(kind):
    maps = {
        "q-sparse": srf.RandomNeurons("tanh", order=2).draw(15, D, rng=0),
        "linear": srf.Linear().draw(None, D),
        "taylor": srf.Taylor(2, 0.2).draw(None, D),
    }
    maps["mixed"] = maps["q-sparse"].concat(maps["linear"]).concat(maps["taylor"])
    features = maps[kind].take(np.random.default_rng(0).permutation(len(maps[kind])))
    model = model_of(features, np.random.default_rng(2).standard_normal(len(features)))
    S, coef, b = oracle(phi_oracle(features, X), model.predict(X)[:, None], np.ones(N), 2, 0.0)
    small = prune(model, X, max_terms=2, tol=0)
    np.testing.assert_array_equal(small.support, model.support[S])
    np.testing.assert_allclose(small.coef, coef[0], rtol=1e-8)
    np.testing.assert_allclose(small.intercept, b[0], atol=1e-8)


# Terms that depend on others


@pytest.mark.parametrize("tol", [0.0, 1e-12, 1e-6])
def test_dependent_terms_are_not_taken(tol):
    """Of three copies of a term, one of them half a turn on in phase, one is kept, with the
    coefficients of all three."""
    features = srf.Fourier(gamma=0.4).draw(6, D, rng=0)
    thrice = features.concat(features).concat(features.turned(np.full(6, np.pi)))
    coef = np.random.default_rng(3).standard_normal(18)
    small = prune(model_of(thrice, coef), X, tol=tol, max_terms=17)
    which = np.searchsorted(3 * np.arange(18) + (1 << 40), small.support)
    assert sorted(which % 6) == list(range(6))
    np.testing.assert_allclose(small.predict(X), model_of(thrice, coef).predict(X), atol=1e-7)
    assert np.abs(small.coef).max() <= 3 * np.abs(coef).max() + 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "gamma"), [(2, 0.05), (4, 0.1), (8, 0.05)])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_fitted_to_rounding(dtype, d, gamma, seed):
    """Coefficients stay small where rounding would let others of any size give the same predictions
    on these rows.

    With 8 inputs, 300 rows leave that much open in exact arithmetic, too.
    """
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((2, 300, d)).astype(dtype)
    model = model_of(
        srf.Fourier("gaussian", gamma).draw(340, d, rng=1), rng.standard_normal(340) / 340
    )
    small = prune(model, X, max_terms=299, tol=0)
    assert np.var(small.predict(new) - model.predict(new)) < 0.05 * np.var(model.predict(new))


def test_terms_that_cancel():
    features = srf.Fourier(gamma=0.4).draw(4, D, rng=0)
    model = model_of(features.concat(features), [1e8, 1e8, -1e8, 1.0, -1e8, -1e8, 1e8, 1.0])
    small = prune(model, X, tol=1e-6)
    assert len(small.coef) == 1 and small.coef[0] == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(
    "Z",
    [X[:1], np.repeat(X[:1], 50, axis=0), np.full((40, D), 1e5)],
    ids=["row", "rows", "columns"],
)
@pytest.mark.parametrize("n_outputs", [None, 2])
def test_constant_predictions_need_no_term(Z, n_outputs):
    model = some_model(20, n_outputs)
    for options in ({}, {"tol": 1e-12}, {"tol": 0, "max_terms": 5}):
        small = prune(model, Z, **options)
        assert small.coef.shape[-1] == 0
        np.testing.assert_allclose(small.predict(Z), model.predict(Z), atol=1e-12)
    assert prune(model, Z, tol=0) is model


@pytest.mark.parametrize("n_outputs", [None, 3])
def test_no_term_and_one_term(n_outputs):
    nothing = some_model(0, n_outputs)
    for options in ({}, {"tol": 0}, {"max_terms": 1}):
        small = prune(nothing, X, **options)
        assert small.coef.shape == nothing.coef.shape and small.support.shape == (0,)
        np.testing.assert_array_equal(small.predict(X), nothing.predict(X))
    one = some_model(1, n_outputs)
    for options in ({}, {"tol": 0}, {"max_terms": 1}):
        np.testing.assert_allclose(prune(one, X, **options).predict(X), one.predict(X), atol=1e-12)
    assert prune(one, X, tol=2.0).coef.shape == (*one.coef.shape[:-1], 0)


# Of many terms


@each_weight
@pytest.mark.parametrize("n_outputs", [None, 3])
def test_of_many_terms_the_largest_are_looked_at(n_outputs, weight, monkeypatch):
    """Terms of the largest variance are kept as candidates; those that stay make up for the others
    as far as they can."""
    features = srf.Fourier(gamma=0.4).draw(30, D, rng=0).concat(srf.Linear().draw(None, D))
    model = model_of(
        features, np.random.default_rng(4).standard_normal((n_outputs, 33) if n_outputs else 33)
    )
    monkeypatch.setattr(importlib.import_module("sparserf.algorithms.prune"), "MOST_LOOKED_AT", 20)
    phi, s = phi_oracle(features, X), np.ones(N) if weight is None else weight
    away = phi - np.average(phi, axis=0, weights=s)
    size = (np.atleast_2d(model.coef) ** 2).sum(axis=0) * np.average(away**2, axis=0, weights=s)
    largest = np.sort(np.argsort(-size)[:20])
    f = model.decision_function(X).reshape(N, -1)
    S, coef, b = oracle(phi[:, largest], f, s, 6, 0.0)
    small = prune(model, X, max_terms=6, polish=False, sample_weight=weight)
    np.testing.assert_array_equal(small.support, model.support[largest[S]])
    np.testing.assert_allclose(np.atleast_2d(small.coef), coef, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(small.intercept, b if n_outputs else b[0], atol=1e-8)
    assert prune(model, X, tol=1e-12).coef.shape[-1] == 20
    assert prune(model, X, tol=0) is model


# Sizes and weights


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200])
@pytest.mark.parametrize("n_outputs", [None, 2])
@pytest.mark.parametrize("options", [{}, {"tol": 0, "max_terms": 5}, {"tol": 0.1, "max_terms": 3}])
def test_the_size_of_the_coefficients_does_not_matter(size, n_outputs, options):
    model = some_model(20, n_outputs)
    scaled = replace(model, coef=model.coef * size, intercept=model.intercept * size)
    small, plain = prune(scaled, X, **options), prune(model, X, **options)
    np.testing.assert_array_equal(small.support, plain.support)
    assert len(small.support) > 0
    np.testing.assert_allclose(small.coef / size, plain.coef, rtol=1e-6)
    np.testing.assert_allclose(small.intercept / size, plain.intercept, rtol=1e-6)


@pytest.mark.parametrize(
    "kind", [srf.Linear(), srf.RandomNeurons("relu"), srf.Taylor(2, 0.2)], ids=str
)
@pytest.mark.parametrize("n_outputs", [None, 2])
def test_the_size_of_the_features_does_not_matter(kind, n_outputs):
    """Features and coefficients of any size give nearly the same finite model, or X is refused as
    too large."""
    features = kind.draw(14, D, 0)
    coef = np.random.default_rng(0).uniform(
        -1, 1, (n_outputs, len(features)) if n_outputs else len(features)
    )
    plain = prune(model_of(features, coef), X, max_terms=2)
    sizes = [
        (1e-150, 1.0),
        (1e-100, 1e100),
        (1e100, 1e-100),
        (1e140, 1e-310),
        (1e140, 1e300),
        (1.0, 1e300),
        (1e300, 1.0),
    ]
    for x, size in sizes:
        Z = X * x
        try:
            small = prune(model_of(features, coef * size), Z, max_terms=2)
        except ValueError as error:
            assert str(error).startswith("X must be of moderate size") and x >= 1e140  # noqa: PT017
            continue
        assert np.isfinite(small.coef).all() and np.isfinite(small.intercept).all()
        if kind == srf.Linear() or x == 1.0:  # the features of other maps do not scale with X
            np.testing.assert_array_equal(small.support, plain.support)
            np.testing.assert_allclose(small.coef / size, plain.coef, rtol=1e-6)


def test_coefficients_of_very_different_sizes():
    model, sizes = some_model(20), np.repeat([1e200, 1e-200], 10)
    small = prune(replace(model, coef=model.coef * sizes), X, tol=1e-6)
    # the small terms are lost beside these
    plain = prune(replace(model, coef=model.coef * (sizes > 1)), X, tol=1e-6)
    np.testing.assert_array_equal(small.support, plain.support)
    np.testing.assert_allclose(small.coef / 1e200, plain.coef, rtol=1e-6, atol=1e-12)


def test_of_many_rows_some_are_looked_at():
    """The change over all rows is near that over the sampled rows; rows that are not sampled do not
    matter."""
    Z, model = np.random.default_rng(5).uniform(-2, 2, (30_000, D)), some_model(25)
    small = prune(model, Z, tol=0.02)
    moved, variance = change(model, small, Z, np.ones(len(Z)))
    assert moved <= 0.022 * variance
    between = Z.copy()
    between[1::3] = 100.0
    np.testing.assert_array_equal(prune(model, between, tol=0.02).coef, small.coef)


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@pytest.mark.parametrize("n_outputs", [None, 3])
def test_the_same_bits_for_any_number_of_workers(layout, n_outputs):
    Z, model = (
        layout(np.random.default_rng(5).uniform(-2, 2, (6000, D))),
        some_model(200, n_outputs),
    )
    one, *others = (prune(model, Z, tol=0.005, workers=workers) for workers in (1, 2, 3))
    assert 5 < len(one.support) < 200
    for other in others:
        assert (one.coef.tobytes(), one.support.tobytes()) == (
            other.coef.tobytes(),
            other.support.tobytes(),
        )
        assert np.array_equal(one.intercept, other.intercept)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("model", {"model": None}),
        ("model", {"model": "model"}),
        ("model", {"model": X}),
        ("X", {"X": X[:, :2]}),
        ("X", {"X": np.where(X > 1, np.nan, X)}),
        ("X", {"X": "X"}),
        ("X", {"X": X[0]}),
        *(("max_terms", {"max_terms": bad}) for bad in (0, -1, 2.0, True, "3", [3])),
        *(("tol", {"tol": bad}) for bad in (-1e-9, np.nan, np.inf, "0.1", True, [0.1], 1j)),
        *(
            ("sample_weight", {"sample_weight": bad})
            for bad in (np.ones(N - 1), -np.ones(N), np.zeros(N), X[:, 0] * np.nan, "abc")
        ),
        *(("workers", {"workers": bad}) for bad in (0, -2, 1.5, None)),
    ],
)
def test_bad_arguments_are_named(name, bad):
    given = {"model": some_model(5), "X": X, **bad}
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        prune(given.pop("model"), given.pop("X"), **given)


def test_the_loss_of_the_model_before_is_not_told_of_the_one_after(rng):
    X = rng.standard_normal((50, 3))
    model = model_of(srf.Linear().draw(3, 3, rng=0), np.array([1.0, 2.0, 3.0]))
    assert (
        model.info.validation_loss == 1.5 == srf.prune(model, X, max_terms=3).info.validation_loss
    )
    assert srf.prune(model, X, max_terms=2).info.validation_loss is None


def columns_seen(model):
    """Return how many columns of X the terms see, without linear functions."""
    features, seen = model.features, []
    for block in features.blocks:
        for k in range(len(block)) if block.activation != "identity" else ():
            inputs = block.inputs_seen(k, features.n_inputs)
            seen.append(
                len(
                    np.unique(
                        inputs if features.encoder is None else features.encoder.column[inputs]
                    )
                )
            )
    return seen


def n_weights(model):
    """Return how many weights of a model are not zero."""
    return sum(int(np.count_nonzero(block.weights)) for block in model.features.blocks)


def table(rng, n=600):
    """Return a data frame with words and missing cells, and a target."""
    x = rng.standard_normal((n, 4))
    word = rng.choice(["a", "b", "c"], n)
    x[rng.random(n) < 0.1, 3] = np.nan
    frame = pd.DataFrame(dict(zip("pqrs", x.T, strict=True)) | {"word": word})
    return frame, np.sin(2 * x[:, 0]) + x[:, 1] * (word == "a") + 0.3 * x[:, 2]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("max_order", [1, 2])
def test_terms_of_few_columns(rng, loss, max_order):
    """Terms of a data frame with words and missing cells, of which a column has several views, see
    few columns."""
    X, y = table(rng)
    y = y if loss == "squared" else np.digitize(y, [0] if loss == "logistic" else [-0.5, 0.5])
    model = srf.sparse_rf(X, y, loss=loss, effort=0.3, rng=0)
    small = srf.prune(model, X, max_terms=12, max_order=max_order)
    assert (
        max(columns_seen(model)) > 2
        and max(columns_seen(small)) == max_order
        and len(small.support) <= 12
    )
    f, g = (np.atleast_2d(each.decision_function(X).T) for each in (model, small))
    change = np.var(g - f, axis=1).sum() / np.var(f, axis=1).sum()
    assert 0 < change < (0.5 if max_order == 1 else 0.25)


@pytest.mark.parametrize("name", ["sparse", "float32", "steps", "taylor", "sine", "bumps"])
def test_kinds_of_terms_made_readable(rng, name):
    X = rng.standard_normal((500, 5)).astype(np.float32 if name == "float32" else np.float64)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
    X = csr_array(np.where(np.abs(X) > 0.5, X, 0)) if name == "sparse" else X
    how = {
        "steps": "perceptron",
        "taylor": srf.Taylor(),
        "sine": srf.RandomNeurons("sin", order=4),
        "bumps": bumps(5),
    }
    n = None if name in ("taylor", "bumps") else 800
    model = srf.sparse_rf(
        X, y, features=how.get(name, "gaussian"), alpha=1e-3, n_components=n, rng=0
    )
    before = model.decision_function(X)
    for options in (
        {"max_order": 2},
        {"readable": True},
        {"max_order": 2, "readable": True, "max_terms": 20},
    ):
        small = srf.prune(model, X, **options)
        if "max_order" in options and name != "taylor":
            assert max(columns_seen(small)) <= 2
        assert n_weights(small) < n_weights(model) + (name == "taylor")
        assert len(small.support) == len(set(small.support.tolist()))
        assert (
            np.isfinite(small.predict(X)).all()
            and np.var(small.predict(X) - before) < 0.6 * before.var()
        )
        assert small.features.transform(X).dtype == X.dtype
    np.testing.assert_array_equal(before, model.decision_function(X))


def test_a_part_of_a_cosine_is_its_mean_over_the_other_inputs(rng):
    """For independent inputs, the best coefficient of cos(u + m) for cos(u + v) is E cos(v - m)."""
    X = rng.normal([0.0, 3.0], 1.0, (200_000, 2))
    features = FeatureSet([NeuronBlock("cos", 1.0, np.array([[1.3, 0.8]]), np.array([0.4]))], 2)
    small = srf.prune(model_of(features, np.ones(1)), X, max_terms=1, max_order=1)
    (block,) = small.features.blocks
    np.testing.assert_allclose(block.weights, [[1.3, 0.0]])
    np.testing.assert_allclose(block.offset, 0.4 + 0.8 * 3, atol=0.02)
    np.testing.assert_allclose(small.coef, np.exp(-(0.8**2) / 2), atol=0.02)


def test_readable_zeroes_what_costs_little(rng):
    X = rng.standard_normal((400, 6))
    W = np.where(np.arange(6) < 2, 1.0, 0.03) * rng.standard_normal((8, 6))
    features = FeatureSet([NeuronBlock("cos", 1.0, W, rng.uniform(0, 6, 8))], 6)
    model = model_of(features, rng.standard_normal(8))
    small = srf.prune(model, X, readable=True)
    assert (
        n_weights(small) <= 16
        and np.var(small.predict(X) - model.predict(X)) <= 0.01 * model.predict(X).var()
    )
    assert n_weights(srf.prune(model, X, readable=True, tol=0.0)) > 16  # tol=0 lets nothing be lost


def test_no_part_of_a_product_of_more_columns(rng):
    X = rng.standard_normal((100, 3))
    features = srf.Taylor(degree=2, gamma=0.1).draw(None, 3)
    products = features.take(
        [k for k, name in enumerate(features.names()) if name.count("*x") == 2]
    )
    with pytest.raises(ValueError, match="max_order must leave some part of a term, got 1"):
        srf.prune(model_of(products, rng.standard_normal(len(products))), X, max_order=1)
    for bad in (0, 1.5, True):
        with pytest.raises((ValueError, TypeError), match="max_order"):
            srf.prune(model_of(products, np.ones(len(products))), X, max_order=bad)
    with pytest.raises(TypeError, match="readable must be True or False"):
        srf.prune(model_of(products, np.ones(len(products))), X, readable=1)


def test_monomials_of_few_factors_stay_whole(rng):
    X = rng.uniform(-2, 2, (300, 3))
    y, features = X[:, 0] * X[:, 1] + X[:, 2] ** 2, srf.Taylor(2, 0.1)
    model = srf.mfga(X, y, features=features, n_nonzero_coefs=8, alpha=1e-3, rng=0)
    with pytest.raises(ValueError, match="max_order must leave some part"):
        srf.prune(model, X, max_order=1)
    small = srf.prune(model, X, max_order=2, max_terms=4)
    assert len(small.coef) == 4
