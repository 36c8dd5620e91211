"""Weights that are fitted to all rows, where a search has seen a sample of them."""

import numpy as np
import pytest

import sparserf as srf

N = 700
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
F = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
Y = F + 0.2 * RNG.standard_normal(N)
TARGETS = {
    "squared": {"y": Y},
    "logistic": {"y": Y > 0, "loss": "logistic"},
    "multinomial": {"y": np.digitize(Y, [-0.5, 0.5]), "loss": "multinomial"},
    "poisson": {"y": np.floor(np.exp(Y)), "loss": "poisson", "offset": 0.1 * X[:, 1]},
    "two outputs": {"y": np.c_[Y, X[:, 2]]},
    "monotone": {"y": Y, "monotone": {2: 1}},
}


def dask_rows(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(300, 3))


def device_rows(X):
    return pytest.importorskip("array_api_strict").asarray(X)


HOMES = {
    "chunks": lambda X: srf.Chunks(X, block_rows=200),
    "dask": dask_rows,
    "device": device_rows,
}


@pytest.fixture(autouse=True)
def few_rows_are_searched(search_rows):
    search_rows(300)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_they_are_the_same_wherever_rows_are(name):
    k = TARGETS[name] | {"n_components": 60, "rng": 0}
    k = {key: k[key] for key in k if key != "y"}
    model = srf.sparse_rf(X, TARGETS[name]["y"], **k)
    other = srf.sparse_rf(HOMES["chunks"](X), TARGETS[name]["y"], **k)
    assert len(model.features) > 1 and not model.info.cut
    np.testing.assert_allclose(other.coef, model.coef, rtol=1e-6, atol=1e-7)
    if name == "monotone":
        assert model.is_monotone(2)


@pytest.mark.slow
@pytest.mark.parametrize("home", ["dask", "device"])
@pytest.mark.parametrize("name", ["squared", "multinomial"])
def test_on_a_device_or_in_dask(home, name):
    k = {key: value for key, value in TARGETS[name].items() if key != "y"}
    y = TARGETS[name]["y"]
    model = srf.sparse_rf(X, y, n_components=60, rng=0, **k)
    rows = HOMES[home](X)
    y = HOMES[home](y[:, None])[:, 0] if home == "device" and name == "squared" else y
    other = srf.sparse_rf(rows, y, n_components=60, rng=0, **k)
    np.testing.assert_allclose(other.coef, model.coef, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("home", ["memory", "chunks"])
def test_with_less_effort_fewer_rows_are_read_at_the_end(home, monkeypatch):
    """So less effort is less work with any number of rows; effort 1 and more reads all."""
    read = []

    def note(model, n_sample, task, fit_intercept):
        read.append(len(task.weight))
        return model

    monkeypatch.setattr("sparserf.algorithms.default.search.fitted_to_all_rows", note)
    rows = HOMES.get(home, lambda X: X)(X)
    for effort in (0.5, 0.8, 1.0, 2.0):
        srf.sparse_rf(rows, Y, effort=effort, features="gaussian", n_components=40, rng=0)
    assert read[-2:] == [N, N] and len(read) == 4
    assert np.allclose(read[:2], np.sqrt([0.5, 0.8]) * N, atol=2)
