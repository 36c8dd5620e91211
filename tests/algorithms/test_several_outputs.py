"""Several real targets in the default: each is found as if it were alone, and is one model with the
others."""

import numpy as np
import pytest

import sparserf as srf

N = 300
FEATURES = {
    "default": {},
    "gaussian": {"features": "gaussian", "n_components": 300},
    "rules": {"features": srf.Rules()},
    "max_terms": {"max_terms": 12},
}


def table(seed, n):
    """Return rows, a target with a signal, another, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    t = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=n)
    return X, t, np.sin(2 * X[:, 2]), rng.normal(size=n)


def fit(X, y, **how):
    return srf.sparse_rf(X, y, rng=0, effort=0.1, **how)


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["noise", "noise, three times as large", "a signal"])
@pytest.mark.parametrize("features", ["default", "gaussian", "rules"])
def test_a_target_is_predicted_as_well_beside_others_as_alone(features, beside):
    ratios = []
    for seed in range(3):
        X, t, other, noise = table(seed, N + 1_000)
        more = {"noise": noise, "noise, three times as large": 3 * noise}.get(beside, other)
        both = fit(X[:N], np.c_[t, more][:N], **FEATURES[features])
        alone = fit(X[:N], t[:N], **FEATURES[features])
        errors = [np.mean((m - t)[N:] ** 2) for m in (both.predict(X)[:, 0], alone.predict(X))]
        ratios.append(errors[0] / errors[1])
        if beside != "a signal":
            assert np.std(both.predict(X)[:, 1]) < 0.5 * np.std(more)
    assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.25


@pytest.mark.parametrize("features", FEATURES)
def test_one_model_of_several_targets_is_whole(features, tmp_path):
    X, t, other, noise = table(0, N)
    y = np.c_[t, 100 * other, noise]
    model = fit(X, y, **FEATURES[features])
    assert model.coef.shape == (3, len(model.support)) and (np.diff(model.support) > 0).all()
    error = np.mean((model.predict(X) - y) ** 2, axis=0) / y.var(axis=0)
    assert (error[:2] < 0.5).all()
    assert model.info.n_nonzero == len(model.support) <= FEATURES[features].get("max_terms", N * 3)
    path = tmp_path / "model.npz"
    model.save(path)
    np.testing.assert_array_equal(srf.load(path).predict(X), model.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{"monotone": {0: 1}}, {"convex": {2: 1}}, {"interactions": [[0, 1], [2]]}]
)
def test_constraints_hold_for_each_target(how):
    X, t, other, _ = table(1, N)
    model = fit(X, np.c_[t, t + 0.1 * other], **how)
    assert np.std(model.predict(X), axis=0).min() > 0.3
    if "monotone" in how:
        rows = np.tile(X[:20], (30, 1))
        rows[:, 0] = np.repeat(np.linspace(-2, 2, 30), 20)
        assert (np.diff(model.predict(rows).reshape(30, 20, 2), axis=0) >= -1e-9).all()


@pytest.mark.slow
def test_words_and_gaps_of_several_targets():
    pd = pytest.importorskip("pandas")
    X, t, other, _ = table(2, N)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(
        k=np.array(["u", "v", "w"])[np.arange(N) % 3]
    )
    y = np.c_[t + 2 * (frame["k"] == "v"), other + (frame["k"] == "u")]
    model = fit(frame, y)
    assert (np.mean((model.predict(frame) - y) ** 2, axis=0) < 0.5 * y.var(axis=0)).all()


@pytest.mark.slow
def test_rows_in_chunks_and_more_than_are_searched(search_rows):
    search_rows(200)
    X, t, other, _ = table(3, 2 * N)
    model = srf.sparse_rf(srf.Chunks(X, block_rows=100), np.c_[t, other], rng=0, effort=0.2)
    assert (np.mean((model.predict(X) - np.c_[t, other]) ** 2, axis=0) < [0.5 * t.var(), 0.5]).all()


@pytest.mark.slow
def test_the_loss_that_is_told_is_the_sum_in_units_of_deviations():
    X, t, _, noise = table(4, N)
    model = fit(X, np.c_[t, 1e3 * noise])
    alone = fit(X, t).info.validation_loss / t.var()
    assert model.info.validation_loss == pytest.approx(0.5 + alone, abs=0.1)
    assert model.info.cut == {}
