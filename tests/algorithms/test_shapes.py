"""monotone, convex and interactions: whatever is fitted keeps them for all rows, and a wrong sign
would be found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import sparserf as srf
from sparserf.columns.constraints import read_constraints
from sparserf.features import FeatureSet, keeps

from ..conftest import n_examples

SMALL = {"effort": 0.2, "n_components": 400}


def table(n, seed):
    """Return a frame of three numbers, one with missing cells, an ordered category and one that is
    not, and a target."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((n, 3)) * [1, 10, 0.1]
    numbers[rng.random(n) < 0.1, 1] = np.nan
    grade, city = rng.integers(0, 3, n), rng.integers(0, 4, n)
    X = pd.DataFrame(numbers, columns=["a", "b", "c"])
    X["grade"] = pd.Categorical.from_codes(grade, ["low", "mid", "high"], ordered=True)
    X["city"] = np.array(["w", "x", "y", "z"])[city]
    f = (
        np.sin(2 * numbers[:, 0])
        + np.abs(numbers[:, 2] * 10)
        + grade * (city == 1)
        - 0.05 * np.nan_to_num(numbers[:, 1]) ** 2
    )
    return X, f + 0.3 * rng.standard_normal(n)


def inputs_of(model, X, **arguments):
    """Return the constraints of the inputs of a model's features."""
    encoder, d = model.features.encoder, model.n_features_in
    names, levels = (
        (None, ())
        if encoder is None or encoder.table is None
        else (encoder.table.names, encoder.table.levels)
    )
    given = [arguments.get(name) for name in ("monotone", "convex", "interactions")]
    return read_constraints(*given, X, names, levels, d).of_inputs(encoder, d)


def is_kept(model, X, **arguments):
    """Return whether the terms of a model keep the constraints, with coefficients that may be no
    other."""
    is_positive = np.atleast_2d(model.coef)[:, model.features.nonnegative] >= 0
    return bool(keeps(model.features, inputs_of(model, X, **arguments)).all() and is_positive.all())


def largest_fall(model, X, column, sign, rng):
    """Return by how much f falls, where it must not, between pairs of rows that differ in one
    column, over the size of f."""
    low, high = X.copy(), X.copy()
    cells = X[column]
    if isinstance(cells.dtype, pd.CategoricalDtype):
        codes = np.sort(rng.integers(0, 3, (2, len(X))), axis=0)
        low[column], high[column] = (pd.Categorical.from_codes(c, dtype=cells.dtype) for c in codes)
    else:
        x = np.sort(rng.standard_cauchy((2, len(X))) * float(np.nanstd(cells)), axis=0)
        low[column], high[column] = x
    f = model.decision_function(high) - model.decision_function(low)
    return float(np.max(-sign * f, initial=0.0)) / (1 + np.abs(np.atleast_2d(model.coef)).sum())


LOSSES = ["squared", "logistic", "poisson", "quantile"]


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=n_examples(3), deadline=None)
@given(data=st.data())
def test_models_rise_where_they_must(loss, data):
    """f(x') >= f(x) for pairs of rows that differ in a bound column alone: all losses, categories,
    gaps, weights."""
    seed = data.draw(st.integers(0, 10**6))
    signs = data.draw(
        st.dictionaries(
            st.sampled_from(["a", "b", "c", "grade"]), st.sampled_from([1, -1]), min_size=1
        )
    )
    X, y = table(150, seed)
    y = {
        "squared": y,
        "quantile": y,
        "logistic": y > np.median(y),
        "poisson": np.floor(np.exp(np.clip(y, -3, 3))),
    }[loss]
    weight = (
        np.random.default_rng(seed).integers(0, 3, len(y)) * 1.0
        if data.draw(st.booleans())
        else None
    )
    how = data.draw(
        st.sampled_from(
            [SMALL, {"alpha": 0.1}, {"alpha": 0.1, "features": "gaussian", "n_components": 300}]
        )
    )
    model = srf.sparse_rf(X, y, loss=loss, monotone=signs, sample_weight=weight, rng=seed, **how)
    assert is_kept(model, X, monotone=signs)
    Z, rng = table(400, seed + 1)[0], np.random.default_rng(seed)
    for column, sign in signs.items():
        assert largest_fall(model, Z, column, sign, rng) <= 1e-12


@pytest.mark.slow
def test_the_test_finds_what_falls():
    """Without constraints the same test finds a fall, and the structural one a term that may not
    be."""
    X, y = table(300, 0)
    model = srf.sparse_rf(X, y, rng=0, **SMALL)
    rng = np.random.default_rng(0)
    assert largest_fall(model, table(400, 1)[0], "a", 1, rng) > 1e-3
    assert not is_kept(model, X, monotone={"a": 1})


def test_a_wrong_sign_is_found():
    """Of each term that sees the column, another sign of its weight or of its coefficient breaks
    the rule, and f falls."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    y = np.tanh(X[:, 0]) + np.sin(2 * X[:, 1]) * X[:, 2]
    model = srf.sparse_rf(X, y, monotone={0: 1}, alpha=0.02, rng=0)
    assert is_kept(model, X, monotone={0: 1})
    bound = np.flatnonzero(model.features.nonnegative)
    assert len(bound) > 2
    x = np.column_stack([np.linspace(-2, 2, 50), np.zeros((50, 2))])
    for k in bound:
        wrong = model.coef.copy()
        wrong[k] *= -1
        assert not is_kept(replace(model, coef=wrong), X, monotone={0: 1})
        block = model.features.take([k]).blocks[0]
        weights = block.weights.copy()
        weights[:, 0] *= -1
        alone = FeatureSet([replace(block, weights=weights)], 3, encoder=model.features.encoder)
        assert not keeps(alone, inputs_of(model, X, monotone={0: 1})).any()
        assert (np.diff(alone.transform(x)[:, 0]) <= 0).all()


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sign=st.sampled_from([1, -1]),
    also=st.sampled_from([{}, {"monotone": {"a": 1}}]),
)
def test_convex_models_lie_below_their_chords(seed, sign, also):
    X, y = table(150, seed)
    model = srf.sparse_rf(X, y, convex={"c": sign, "a": 1}, rng=seed, **also, **SMALL)
    assert is_kept(model, X, convex={"c": sign, "a": 1}, **also)
    Z, rng = table(300, seed + 1)[0], np.random.default_rng(seed)
    for column, curvature in (("c", sign), ("a", 1)):
        x, share = rng.standard_cauchy((2, 300)), rng.random(300)
        at = [
            model.predict(Z.assign(**{column: v})) for v in (*x, share * x[0] + (1 - share) * x[1])
        ]
        scale = 1 + np.max(np.abs(at), axis=0)
        assert (curvature * (share * at[0] + (1 - share) * at[1] - at[2]) >= -1e-12 * scale).all()


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    how=st.sampled_from([SMALL, {"alpha": 0.01}, {"features": "gaussian", "alpha": 0.01}]),
)
def test_columns_of_no_common_group_never_meet(seed, how):
    """Mixed second differences of such columns are zero, and no term sees two of them."""
    X, y = table(200, seed)
    groups = [["a", "city"], ["a", "grade"], ["b"]]
    model = srf.sparse_rf(X, y, interactions=groups, rng=seed, **how)
    allowed = [{0, 4}, {0, 3}, {1}, {2}]
    terms = [model.features.take([k]) for k in np.flatnonzero(~model.features.is_linear)]
    columns = [set(np.flatnonzero(term.columns_seen)) for term in terms]
    assert all(any(of_term <= group for group in allowed) for of_term in columns)
    Z, other = table(100, seed + 1)[0], table(100, seed + 2)[0]
    for one, two in (("a", "c"), ("b", "a"), ("grade", "city")):
        f = [
            model.predict(Z.assign(**{c: other[c] for c in some}))
            for some in ((), (one,), (two,), (one, two))
        ]
        assert np.allclose(f[3] - f[1] - f[2] + f[0], 0, atol=1e-10 * (1 + np.abs(f).max()))


@pytest.mark.parametrize("how", [SMALL, {"alpha": 1e-3}, {"features": "gaussian", "alpha": 1e-3}])
def test_csr(how):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < 0.5)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(300)
    arguments = {
        "monotone": [1, 0, 0, -1, 0, 0],
        "convex": {5: 1},
        "interactions": [[0, 1, 3, 5], [1, 2]],
    }
    model = srf.sparse_rf(sp.csr_matrix(X), y, rng=0, **arguments, **how)
    assert len(model.features) and is_kept(model, X, **arguments)
    for j, sign in ((0, 1), (3, -1)):
        Z = np.repeat(X[:100], 2, axis=0)
        Z[:, j] = np.sort(rng.standard_normal((100, 2)), axis=1).ravel()
        f = model.predict(sp.csr_matrix(Z))
        assert (sign * (f[1::2] - f[::2]) >= -1e-12).all()


@pytest.mark.parametrize(
    "features",
    [
        "gaussian",
        "laplacian",
        "matern32",
        "perceptron",
        srf.RandomNeurons("tanh"),
        srf.RandomNeurons("relu", order=2),
        srf.RandomNeurons("cos", order=2),
        srf.Linear(),
        [srf.Linear(), srf.Bumps(50, 0.5)],
        srf.Fourier(gamma=0.3),
    ],
)
def test_draws_of_maps(features):
    """Features of kernels and maps keep the constraints, in `sparse_rf` and in `harfe`, and see the
    columns that are bound."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 4))
    y = X[:, 0] - X[:, 3] + np.sin(2 * X[:, 1])
    arguments = {"monotone": {0: 1, 3: -1}, "convex": {2: 1}, "interactions": [[0, 1, 2], [3, 1]]}
    for model in (
        srf.sparse_rf(X, y, features=features, alpha=1e-3, n_components=400, rng=0, **arguments),
        srf.harfe(
            X,
            y,
            features=features,
            n_components=400,
            n_nonzero_coefs=4,
            alpha=1e-4,
            rng=0,
            **arguments,
        ),
    ):
        assert is_kept(model, X, **arguments)
        assert (model.features.input_usage()[[0, 3]] > 0).any()


@pytest.mark.slow
def test_harfe_with_its_own_features_and_with_auto():
    X, y = table(200, 0)
    for features in (None, "auto"):
        model = srf.harfe(
            X,
            y,
            features=features,
            n_components=500,
            n_nonzero_coefs=20,
            alpha=1e-4,
            monotone={"grade": 1, "a": 1},
            rng=0,
        )
        assert is_kept(model, X, monotone={"grade": 1, "a": 1})


@pytest.mark.slow
def test_several_outputs_and_two_classes():
    X, y = table(200, 0)
    both = srf.sparse_rf(
        X, np.column_stack([y, -y]), monotone={"a": 1, "grade": -1}, rng=0, **SMALL
    )
    assert both.coef.shape[0] == 2 and is_kept(both, X, monotone={"a": 1, "grade": -1})
    for loss in ("logistic", "multinomial", "squared_hinge"):
        model = srf.sparse_rf(
            X, np.where(y > 0, "good", "bad"), loss=loss, monotone={"a": 1}, rng=0, **SMALL
        )
        assert is_kept(model, X, monotone={"a": 1})
        Z = X.iloc[:50]
        assert (
            model.decision_function(Z.assign(a=Z["a"] + 1)) >= model.decision_function(Z) - 1e-12
        ).all()


def test_a_path_and_a_start():
    X, y = table(200, 0)
    models = srf.sparse_rf_path(
        X, y, n_alphas=4, features="gaussian", n_components=300, monotone={"a": 1}, rng=0
    )
    assert all(is_kept(model, X, monotone={"a": 1}) for model in models)
    again = srf.sparse_rf(X, y, start=models[-1], alpha=0.001, monotone={"a": 1}, rng=0)
    assert is_kept(again, X, monotone={"a": 1})
    with pytest.raises(ValueError, match="start must have features that keep"):
        srf.sparse_rf(X, y, start=models[-1], alpha=0.001, monotone={"a": -1}, rng=0)
    with pytest.raises(
        ValueError, match=r"features must have features that keep monotone.* got feature"
    ):
        srf.sparse_rf(X, y, features=models[-1].features, alpha=0.001, monotone={"c": 1}, rng=0)
    same = srf.sparse_rf(X, y, features=models[-1].features, alpha=0.001, monotone={"a": 1}, rng=0)
    assert is_kept(same, X, monotone={"a": 1})


@pytest.mark.slow
def test_every_home_of_rows_has_the_same_dictionary():
    """Chunks and single-precision rows keep them, too."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    y = X[:, 0] + np.sin(2 * X[:, 1])
    arguments = {"monotone": {0: 1}, "convex": {2: -1}, "interactions": [[0, 1]]}
    chunks = srf.Chunks(X, block_rows=100)
    for rows, target in ((chunks, y), (X.astype(np.float32), y)):
        for how in (
            SMALL,
            {"alpha": 0.01},
            {"alpha": 0.01, "features": "gaussian", "n_components": 300},
        ):
            model = srf.sparse_rf(rows, target, rng=0, **arguments, **how)
            assert len(model.features) and is_kept(model, X, **arguments)


@pytest.mark.slow
def test_an_estimator():
    from sklearn.base import clone

    from sparserf.sklearn import HARFEClassifier, SparseRFRegressor

    X, y = table(150, 0)
    for estimator, target in (
        (
            SparseRFRegressor(
                monotone={"a": 1}, interactions=[["a", "b"]], alpha=0.1, random_state=0
            ),
            y,
        ),
        (
            HARFEClassifier(
                monotone={"a": 1}, n_components=300, n_nonzero_coefs=10, random_state=0
            ),
            y > 0,
        ),
    ):
        model = clone(estimator).fit(X, target).model_
        assert is_kept(model, X, monotone={"a": 1})


@pytest.mark.slow
def test_an_order_that_the_user_lists():
    """The levels in the user's order, whatever their own is; levels that no training row has are in
    none."""
    X, y = table(300, 0)
    X["grade"] = X["grade"].astype(str)
    model = srf.sparse_rf(X, y, monotone={"grade": ["low", "mid", "high", "best"]}, rng=0, **SMALL)
    f = [model.predict(X.assign(grade=level)) for level in ("low", "mid", "high")]
    assert (np.diff(f, axis=0) >= -1e-12).all() and np.ptp(f, axis=0).max() > 0.1
    assert np.isfinite(model.predict(X.assign(grade="best"))).all()
    falls = srf.sparse_rf(X, y, monotone={"grade": ["high", "mid", "low"]}, rng=0, **SMALL)
    f = [falls.predict(X.assign(grade=level)) for level in ("low", "mid", "high")]
    assert (np.diff(f, axis=0) <= 1e-12).all()


@pytest.mark.slow
def test_two_class_labels_only():
    X, y = table(100, 0)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    for loss in ("logistic", "multinomial"):
        for argument in ("monotone", "convex"):
            with pytest.raises(
                ValueError, match=f"{argument} must be None for more than two classes"
            ):
                srf.sparse_rf(X, labels, loss=loss, **{argument: {"a": 1}})
    model = srf.sparse_rf(X, labels, loss="multinomial", interactions=[["a", "b"]], rng=0, **SMALL)
    assert is_kept(model, X, interactions=[["a", "b"]])


BAD = [
    ({"monotone": {"z": 1}}, ValueError, "monotone must name columns of X.*'z'"),
    ({"monotone": {7: 1}}, ValueError, r"monotone must have indices of columns in \[0, 5\), got 7"),
    (
        {"monotone": {0.5: 1}},
        TypeError,
        "monotone must name columns of X or give their indices, got 0.5",
    ),
    ({"monotone": {"a": 2}}, ValueError, r"monotone must be 1, -1 or 0 for X\['a'\], got 2"),
    ({"monotone": {"a": "up"}}, TypeError, r"monotone must be 1, -1 or 0 for X\['a'\], got 'up'"),
    ({"monotone": {"a": True}}, TypeError, "monotone must be"),
    ({"monotone": {"a": 1, 0: 1}}, ValueError, "monotone must name a column once"),
    (
        {"monotone": [1, 0]},
        ValueError,
        "monotone must have an entry for each of the 5 columns of X, got 2",
    ),
    ({"monotone": "a"}, TypeError, "monotone must be a mapping"),
    ({"monotone": {"city": 1}}, ValueError, r"monotone must list the levels of X\['city'\]"),
    (
        {"monotone": {"city": ["w", "x", "y"]}},
        ValueError,
        "monotone must list all levels of X.*lacks 'z'",
    ),
    (
        {"monotone": {"city": ["w", "x", "y", "z", "z"]}},
        ValueError,
        "each level of X.*'z' more often",
    ),
    (
        {"monotone": {"city": [["w"], "x"]}},
        TypeError,
        r"monotone must list the levels of X\['city'\], got \[\['w'\], 'x'\]",
    ),
    ({"monotone": {"a": [1, 2]}}, TypeError, "monotone must be 1, -1 or 0"),
    ({"convex": {"grade": 1}}, ValueError, "convex must be of columns of numbers"),
    ({"convex": {"a": -2}}, ValueError, "convex must be 1, -1 or 0"),
    ({"interactions": []}, ValueError, "interactions must have at least one group"),
    (
        {"interactions": [[]]},
        ValueError,
        r"interactions must have groups of different columns, got \[\], which is empty",
    ),
    ({"interactions": [["a", "a"]]}, ValueError, "which has a column twice"),
    (
        {"interactions": [["a", "b"], ["b", "a"]]},
        ValueError,
        "interactions must have different groups",
    ),
    ({"interactions": ["a", "b"]}, TypeError, "got the group 'a'"),
    ({"interactions": "a"}, TypeError, "interactions must be a sequence of groups"),
    ({"interactions": [["z"]]}, ValueError, "interactions must name columns of X"),
]


@pytest.mark.every_case
@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_bad_arguments_are_named(arguments, error, message):
    X, y = table(60, 0)
    for function in (srf.sparse_rf, srf.harfe):
        with pytest.raises(error, match=message):
            function(X, y, **arguments)


def test_maps_that_cannot_keep_them():
    X, y = table(60, 0)
    with pytest.raises(ValueError, match="features must not be Taylor"):
        srf.sparse_rf(
            X[["a", "c"]], y, features=srf.Taylor(2, gamma=1.0), alpha=0.1, monotone={"a": 1}
        )
    free = srf.RandomNeurons().draw(20, 2, rng=0)
    with pytest.raises(ValueError, match="features must have features that keep"):
        srf.harfe(
            X[["a", "c"]].to_numpy(),
            y,
            features=free,
            n_nonzero_coefs=2,
            alpha=1e-4,
            monotone={0: 1},
        )


@pytest.mark.slow
def test_nothing_asked_is_nothing_changed():
    X, y = table(100, 0)
    one, other = (
        srf.sparse_rf(X, y, alpha=0.05, rng=0, **how)
        for how in ({}, {"monotone": {"a": 0}, "convex": [0] * 5})
    )
    assert one.coef.tobytes() == other.coef.tobytes()
