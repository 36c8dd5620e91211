"""features="auto" of `harfe` and `mfga`: they choose among the terms that a default fit of
`sparse_rf` finds."""

import numpy as np
import pytest

import sparserf as srf

METHODS = [srf.harfe, srf.mfga]


def data(n, rng):
    """Return n rows and a target with an interaction of two of the six inputs."""
    X = rng.uniform(-2, 2, (n, 6))
    return X, np.sin(3 * X[:, 0]) * np.abs(X[:, 1]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def split():
    """(X, y) of 300 rows to fit, and of 400 to predict."""
    X, y = data(700, np.random.default_rng(0))
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_the_terms_are_some_of_those_of_the_default_fit(method, split):
    X, y, X_test, _ = split
    found = srf.sparse_rf(X, y, rng=3).features
    model, same = (method(X, y, n_nonzero_coefs=20, features=f, rng=3) for f in ("auto", found))
    np.testing.assert_array_equal(model.support, same.support)
    np.testing.assert_array_equal(model.predict(X_test), same.predict(X_test))
    assert len(model.features) == 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_the_terms_that_were_found_predict_better_than_random_ones(method, split):
    X, y, X_test, y_test = split
    auto, random = (
        np.mean((method(X, y, n_nonzero_coefs=25, features=f, rng=0).predict(X_test) - y_test) ** 2)
        for f in ("auto", srf.RandomNeurons("cos"))
    )
    assert auto < 0.5 * random


@pytest.mark.slow
def test_where_fewer_terms_are_found_than_asked_for_all_are_taken(split):
    X, *_ = split
    line = X @ [1.0, -2, 0, 0, 3, 0]  # of which one linear function is the whole answer
    greedy = srf.mfga(X, line, n_nonzero_coefs=50, features="auto", rng=0)
    models = srf.harfe_path(X, line, n_nonzero_coefs=[1, 40], features="auto", rng=0)
    sizes = [len(model.features) for model in models]
    assert sizes == sorted(set(sizes)) and sizes[0] == 1 and sizes[-1] == len(greedy.features) < 50
    for model in (greedy, models[-1]):
        assert np.mean((model.predict(X) - line) ** 2) < 1e-4 * line.var()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_classes_weights_categories_and_missing_values_go_through(method, split):
    pd = pytest.importorskip("pandas")
    X, y, *_ = split
    level = np.array(["a", "b", "c"])[np.digitize(X[:, 2], [-0.5, 0.5])]
    frame = pd.DataFrame(X[:, :2], columns=["u", "v"]).assign(level=pd.Categorical(level))
    frame.loc[::17, "v"] = np.nan
    label = np.where((y > 0) ^ (level == "b"), "yes", "no")
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    how = {"n_nonzero_coefs": 15, "loss": "logistic", "sample_weight": weight, "rng": 0}
    model = method(frame, label, features="auto", **how)
    assert list(model.feature_names_in_) == ["u", "v", "level"]
    assert np.mean(model.predict(frame) == label) > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_an_error_says_that_no_term_was_found(method):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="features='auto' has found no term"):
        method(rng.standard_normal((300, 2)), np.ones(300), n_nonzero_coefs=5, features="auto")
