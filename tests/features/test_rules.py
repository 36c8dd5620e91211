"""Rules: boxes grown along the gradient of a fit, in all homes of rows and all that fits take."""

import pickle
import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import array_api_strict as strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sparserf as srf
from sparserf._base.threads import Workers
from sparserf.features import growth, rules
from sparserf.sklearn import SparseRFRegressor

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 4))
Y = 2.0 * ((X[:, 0] > 0.3) & (X[:, 1] <= 1)) - (X[:, 2] > 0) + 0.1 * RNG.normal(size=N)
RULES = srf.Rules()
ONE_BATCH = {"n_components": 200, "tol": 1e-10}


def fit(X=X, y=Y, **others):
    return srf.sparse_rf(X, y, **{"features": RULES, "alpha": 0.01, "rng": 0} | others)


MODEL = fit()


def test_a_step_is_found_in_few_rules():
    assert MODEL.info.converged
    assert len(MODEL.coef) < 60
    assert np.mean((MODEL.predict(X) - Y) ** 2) < 0.02 * Y.var()
    thresholds = np.concatenate([block.low[block.low > -np.inf] for block in MODEL.features.blocks])
    assert abs(thresholds - 0.3).min() < 0.02


def test_the_optimality_conditions_hold():
    residual = MODEL.predict(X) - Y
    g = MODEL.features.transform(X).T @ residual / N
    assert (np.abs(g + 0.01 * np.sign(MODEL.coef)) <= 1e-3 * 0.01 + 1e-9).all()
    phi = MODEL.features.transform(X)
    for column in phi.T:
        share = (column != 0).mean()
        height = np.abs(column).max()
        np.testing.assert_allclose(height, (share * (1 - share)) ** -0.25, rtol=1e-9)


def test_all_homes_of_rows_grow_the_same_rules():
    assert np.array_equal(fit(workers=2).coef, MODEL.coef)
    # of one batch, since later ones are grown along a gradient that is rounded otherwise
    model = fit(**ONE_BATCH)
    chunks = srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=150)
    np.testing.assert_allclose(fit(chunks, **ONE_BATCH).predict(X), model.predict(X), atol=1e-5)
    there = [strict.asarray(each, device=strict.Device("device1")) for each in (X, Y)]
    np.testing.assert_allclose(fit(*there, **ONE_BATCH).coef, model.coef, atol=1e-9)
    Z = np.where(RNG.random(X.shape) < 0.5, 0.0, X)
    one, other = fit(sp.csr_array(Z), **ONE_BATCH), fit(Z, **ONE_BATCH)
    np.testing.assert_allclose(one.predict(Z), other.predict(Z), atol=1e-9)


def test_rows_in_memory_are_binned_once_for_all_targets(monkeypatch):
    binned, transform = [], growth.Bins.transform

    def counted(bins, X, workers):
        binned.append(len(X))
        return transform(bins, X, workers)

    monkeypatch.setattr(growth.Bins, "transform", counted)
    fit(y=np.stack([Y, -Y, X[:, 3]], axis=1), n_components=400)
    assert binned == [N]
    fit(y=np.digitize(Y, [-0.5, 0.5]), loss="multinomial", n_components=400)
    assert binned == [N, N]


def test_trees_grow_on_the_threads_of_the_rows_with_the_same_bits(monkeypatch):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(30_000, 6))
    y = (Z[:, 0] > 0) * (Z[:, 1] < 0.5) + 0.1 * rng.normal(size=len(Z))
    one = fit(Z, y, **ONE_BATCH)
    threads = set()

    class NotedTree(growth.Tree):
        def grow(self, *rows):
            threads.add(threading.get_ident())
            super().grow(*rows)

    monkeypatch.setattr(growth, "Tree", NotedTree)
    other = fit(Z, y, workers=3, **ONE_BATCH)
    assert threads - {threading.get_ident()}
    assert other.coef.tobytes() == one.coef.tobytes()
    assert other.predict(Z).tobytes() == one.predict(Z).tobytes()


@pytest.mark.slow
def test_dask_rows_grow_the_same_rules():
    model = fit(da.from_array(X, chunks=(200, 4)), da.from_array(Y, chunks=200), **ONE_BATCH)
    np.testing.assert_allclose(model.predict(X), fit(**ONE_BATCH).predict(X), atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("huber", Y),
        ("quantile", Y),
        ("poisson", np.exp(Y)),
        ("tweedie", np.exp(Y)),
        ("gamma", np.exp(Y)),
        ("squared_hinge", Y > 0),
        ("logistic", np.digitize(Y, [-0.5, 0.5])),
        ("multinomial", np.digitize(Y, [-0.5, 0.5])),
        ("squared", np.stack([Y, -Y, X[:, 3]], axis=1)),
    ],
)
def test_every_loss_and_several_outputs(loss, y):
    model = fit(y=y, loss=loss, max_iter=1000)
    assert model.info.converged
    assert np.isfinite(model.decision_function(X)).all()
    constant = fit(y=y, loss=loss, alpha=1e6)
    if model.classes is not None:
        assert (model.predict(X) == y).mean() > (constant.predict(X) == y).mean() + 0.1
    else:
        assert np.abs(model.predict(X) - y).mean() < 0.7 * np.abs(constant.predict(X) - y).mean()


def test_monotone_columns_are_proved_monotone_and_interactions_are_kept():
    model = fit(monotone=[1, 0, -1, 0], interactions=[[0, 1], [2, 3]])
    assert model.is_monotone(0, sign=1)
    assert model.is_monotone(2, sign=-1)
    for block in model.features.blocks:
        for k in range(len(block)):
            seen = set(block.inputs_seen(k, 4).tolist())
            assert seen <= {0, 1} or seen <= {2, 3}
    phi = model.features.transform(X)
    assert (np.sign(phi.sum(axis=0)) * model.coef != 0).all()
    # columns in which the model must be convex take no part
    assert (fit(convex=[1, 0, 0, 0]).input_usage()[0]) == 0


def table(n=800):
    rng = np.random.default_rng(1)
    state = rng.choice(list("ABCDEFGH"), n)
    age = rng.integers(18, 80, n).astype(float)
    bmi = rng.normal(25, 4, n)
    y = 3.0 * (age > 40) + 2.0 * np.isin(state, ["A", "B"]) + 0.1 * rng.normal(size=n)
    is_missing = rng.random(n) < 0.2
    y[is_missing] -= 4.0
    frame = pd.DataFrame({"age": age, "bmi": np.where(is_missing, np.nan, bmi), "state": state})
    return frame, y, is_missing


def test_missing_cells_and_levels_are_told_apart_and_printed():
    frame, y, is_missing = table()
    model = fit(frame, y, alpha=0.02)
    residual = model.predict(frame) - y
    assert np.mean(residual[is_missing] ** 2) < 0.1 * y.var()
    assert np.mean(residual**2) < 0.1 * y.var()
    text = model.formula()
    assert "if" in text and "age > 40" in text and "bmi is missing" in text
    assert "where" not in text  # nothing is left to be defined
    new = frame.head(3).copy()
    new.loc[0, "state"] = "nowhere"
    new.loc[1, "age"] = np.nan
    assert np.isfinite(model.predict(new)).all()
    assert "age > 40" in str(model.summary())


def test_a_summary_says_what_rules_add_and_for_how_many_rows():
    frame, y, _ = table()
    model = fit(frame, y, alpha=0.02)
    phi = model.features.transform(frame)
    sizes = np.abs(model.coef) * np.abs(phi).max(axis=0)
    k = sizes.argmax()
    added, share = f"{model.coef[k] * phi[:, k].max():+.4g}", f"{100 * (phi[:, k] != 0).mean():.1f}"
    title = model.summary(frame).terms[0][0]
    assert re.fullmatch(rf"if .*: {re.escape(added)} \({share} % of rows\)", title)
    assert model.summary().terms[0][0] == title[: title.index(" (" + share)]
    assert title in str(model.summary(frame))
    assert title.replace(">", "&gt;").replace("<", "&lt;") in model.summary(frame)._repr_html_()
    several = fit(y=np.stack([Y, -Y], axis=1)).summary(X).terms[0][0]
    assert re.fullmatch(r"if [^:]* \([0-9.]+ % of rows\)", several)


@pytest.mark.nightly
def test_levels_that_say_nothing_are_not_learned():
    falls = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        ids = rng.permutation(np.array([f"u{i // 4}" for i in range(400)]))
        t = rng.normal(size=400)
        frame = pd.DataFrame({"id": ids})
        model = srf.sparse_rf(frame, t, features=RULES, rng=0, verbose=False)
        f = model.predict(frame)
        level = pd.Series(t).groupby(ids).transform("mean")
        falls.append(np.cov(f, level)[0, 1] < -1e-9)
        assert np.mean((t - f) ** 2) <= 1.02 * t.var()
    assert not any(falls)


@pytest.mark.slow
def test_a_path_a_search_a_start_and_pruning():
    models = srf.sparse_rf_path(X, Y, features=RULES, n_alphas=5, rng=0)
    sizes = [len(model.coef) for model in models]
    assert sizes[0] == 0 and sizes[-1] > 20
    assert [model.info.alpha for model in models] == sorted(
        (model.info.alpha for model in models), reverse=True
    )
    found = srf.sparse_rf(X, Y, features=RULES, rng=0, verbose=False)
    assert np.mean((found.predict(X) - Y) ** 2) < 0.03 * Y.var()
    again = fit(alpha=0.005, start=MODEL)
    assert again.info.objective[-1] <= MODEL.info.objective[-1]
    small = srf.prune(found, X, max_terms=5)
    assert 0 < len(small.coef) <= 5
    estimator = clone(SparseRFRegressor(features=RULES, alpha=0.01, random_state=0)).fit(X, Y)
    assert np.array_equal(estimator.predict(X), MODEL.predict(X))


@pytest.mark.parametrize(
    "y", [np.ones(N), np.r_[np.zeros(N - 1), 1.5]], ids=["one value", "one row"]
)
def test_strange_targets(y):
    assert np.isfinite(fit(y=y).predict(X)).all()


def test_a_huge_unit_changes_nothing():
    model = fit(y=2.0**900 * Y, alpha=2.0**900 * 0.01)
    np.testing.assert_allclose(model.coef / 2.0**900, MODEL.coef, rtol=1e-9)


@pytest.mark.parametrize(
    "Z",
    [X[:1], X[:3], np.ones((5, 2)), np.c_[X, np.full(N, np.nan)], 1e300 * X, X[:, :1]],
    ids=["one row", "few rows", "one value", "a column of NaN", "huge", "one column"],
)
def test_strange_rows(Z):
    assert np.isfinite(fit(Z, Y[: len(Z)]).predict(Z)).all()


@pytest.mark.parametrize(
    "Z",
    [X[:8], np.ones((50, 2)), np.full((50, 2), np.nan)],
    ids=["few rows", "one value", "only NaN"],
)
def test_a_search_where_there_are_no_rules_gives_a_constant(Z):
    y = Y[: len(Z)]
    model = fit(Z, y, alpha=None)
    assert len(model.coef) == 0
    assert y.min() <= model.predict(Z)[0] <= y.max()


@pytest.mark.parametrize("has_gaps", [False, True])
def test_missing_levels_are_named_where_rows_had_some(has_gaps):
    rng = np.random.default_rng(3)
    state = rng.choice(["a", "b", "c"], 400, p=[0.4, 0.3, 0.3]).astype(object)
    y = 3.0 * (state == "b") + 0.01 * rng.standard_normal(400)
    if has_gaps:
        state[::5], y[::5] = None, 3.0
    text = fit(pd.DataFrame({"state": state, "x": rng.random(400)}), y).formula()
    assert "state" in text
    assert ("missing" in text) == has_gaps


def test_large_numbers_are_not_missing_cells():
    Z = np.where(X[:, :1] > 0, 1e39, X[:, :1])
    text = fit(Z, 3.0 * (Z[:, 0] > 1) + 0.01 * X[:, 3]).formula()
    assert "5e+38" in text
    assert "missing" not in text
    # as the median of a column of a frame, which has no missing cells
    frame = pd.DataFrame({"a": np.where(X[:, 0] > -1, 1e39, 1.0), "b": X[:, 1]})
    text = fit(frame, 3.0 * (X[:, 0] > -1) + 0.01 * X[:, 3]).formula()
    assert "5e+38" in text
    assert "missing" not in text


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_conditions", 0, ValueError),
        ("max_conditions", 1.5, TypeError),
        ("n_bins", 1, ValueError),
        ("n_bins", 256, ValueError),
        ("min_samples", 0, ValueError),
        ("max_leaves", 1, ValueError),
        ("n_trees", "many", TypeError),
        ("max_samples", 0.0, ValueError),
        ("max_features", 1.5, ValueError),
    ],
)
def test_bad_numbers(name, value, error):
    with pytest.raises(error, match=name):
        srf.Rules(**{name: value})


def test_where_rules_cannot_be_grown():
    for method in (srf.harfe, srf.mfga):
        with pytest.raises(TypeError, match="features must not hold Rules"):
            method(X, Y, features=RULES)
    with pytest.raises(TypeError, match="features must not hold Rules"):
        fit(features=[RULES, srf.Linear()])
    with pytest.raises(ValueError, match="exact"):
        fit(exact=True)
    with pytest.raises(ValueError, match="gamma"):
        fit(gamma=1.0)


@pytest.mark.parametrize("how", [{"alpha": 0.01}, {"alpha": None, "verbose": False}])
@pytest.mark.parametrize("order", [1, 2])
def test_rules_of_few_columns(order, how):
    frame, y, _ = table(400)
    y = y + 2.0 * ((frame["age"] > 40) & (frame["bmi"] > 25) & (frame["state"] > "D"))
    model = fit(frame, y, max_order=order, **how)
    each = [model.features.take([k]) for k in range(len(model.features))]
    assert max(np.count_nonzero(one.columns_seen) for one in each) == order
    inputs = [np.count_nonzero(one.inputs_seen) for one in each]
    assert order > 1 or max(inputs) == 2  # a column with missing cells has two and counts once


def test_an_order_that_all_rules_have_changes_nothing():
    assert fit(max_order=4).coef.tobytes() == MODEL.coef.tobytes()
    assert fit(max_order=9).coef.tobytes() == MODEL.coef.tobytes()
    small = fit(max_order=1)
    assert fit(start=small, max_order=1).info.objective[-1] <= small.info.objective[-1]
    with pytest.raises(ValueError, match="at most max_order=1"):
        fit(start=MODEL, max_order=1)


def test_a_single_penalty_has_as_many_rules_as_a_fit_without_larger_ones_needs():
    assert MODEL.info.n_drawn == 4_000
    assert srf.sparse_rf_path(X, Y, features=RULES, n_alphas=2, rng=0)[1].info.n_drawn == 400
    assert MODEL.info.objective[-1] < 0.99 * fit(**ONE_BATCH).info.objective[-1]


def test_conditions_and_samples_are_as_asked():
    model = fit(features=srf.Rules(max_conditions=1, min_samples=50), alpha=0.001)
    for block in model.features.blocks:
        assert (block.is_used.sum(axis=1) == 1).all()
    assert len(fit(n_components=10, batch_size=5).coef) <= 10


def test_more_conditions_and_leaves_than_there_can_be_are_the_most_that_there_can_be():
    few, many = (
        fit(X[:60], Y[:60], features=srf.Rules(max_conditions=k, max_leaves=n))
        for k, n in ((4, 60), (10**9, 10**9))
    )
    np.testing.assert_array_equal(many.coef, few.coef)


def test_a_category_with_missing_cells_is_named_once_in_a_rule():
    rng = np.random.default_rng(3)
    state = rng.choice(["A", "B", "C", None], N).astype(object)
    y = np.select([state == "A", state == "B"], [3.0, 1.0], 2.0) + 0.1 * rng.normal(size=N)
    for line in fit(pd.DataFrame({"state": state}), y, alpha=0.001).formula().splitlines()[1:]:
        assert line.count("state") <= 1


@pytest.mark.slow
def test_a_person_reads_what_the_model_does():
    frame, y, _ = table(600)
    frame["state"] = frame["state"].map(lambda s: {"A": "a and b", "B": "mid, high"}.get(s, s))
    model = fit(frame, y, alpha=0.01)
    f = np.full(len(frame), model.intercept)
    unfolded = model.formula(n_terms=None).replace("\n      ", " ")
    for line in unfolded.splitlines():
        sign, number, _, condition = line.strip().split(" ", 3) if " if " in line else [None] * 4
        if number is None:
            continue
        holds = np.array([reads(condition, row) for _, row in frame.iterrows()])
        f += float(sign + number) * holds
    np.testing.assert_allclose(f, model.predict(frame), atol=1e-3 * (1 + len(model.coef)))


def reads(condition, row):
    """Return whether a condition holds of a row, read as its words say."""
    for part in re.split(r" and (?![^{]*\})", condition):
        options = part.strip("()").split(" or ") if part.startswith("(") else [part]
        if not any(_is_met(option, row) for option in options):
            return False
    return True


def _is_met(part, row):
    name = next(name for name in row.index if name in part)
    cell = row[name]
    if part == f"{name} is missing":
        return pd.isna(cell)
    if part == f"{name} is not missing":
        return not pd.isna(cell)
    if "{" in part:
        listed = part[part.index("{") + 1 : part.index("}")]
        levels = [each.strip("'") for each in re.findall(r"'[^']*'|[^,\s]+", listed)]
        return (cell in levels) != (" not in " in part)
    return not pd.isna(cell) and bool(eval(part, {name: cell}))


@pytest.mark.parametrize("dtype", [bool, "boolean"])
def test_booleans_are_named_as_they_are(dtype, tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"flag": rng.random(N) < 0.4, "a": X[:, 0]}).astype({"flag": dtype})
    flag = frame["flag"].to_numpy(bool)
    y = 3.0 * (flag & (X[:, 0] > 0.3)) + 2.0 * (~flag & (X[:, 0] < -0.2)) + 0.1 * X[:, 1]
    model = fit(frame, y)
    model.save(tmp_path / "m.npz")
    for each in (model, srf.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        text = each.formula()
        assert "if flag and a > " in text and "if not flag and a <= " in text
        assert "flag >" not in text and "flag <" not in text
    if dtype == "boolean":
        frame.loc[::7, "flag"] = pd.NA
        text = fit(frame, y + 2.0 * (np.arange(N) % 7 == 0), alpha=0.001).formula()
        assert "flag is missing" in text and "flag >" not in text
    chunks = srf.Chunks(lambda start, stop: frame[start:stop], frame.shape, block_rows=200)
    assert "flag >" not in fit(chunks, y, n_components=200).formula()
    # numbers are numbers, though they are 0 and 1
    assert "flag > 0.5" in fit(frame.astype({"flag": float}), y).formula()


def test_times_of_periods_are_said_as_a_person_says_them():
    rng = np.random.default_rng(6)
    when = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 10**6, 2000), unit="min")
    y = 2.0 * ((when.hour >= 8) & (when.hour < 17)) + 1.0 * ((when.month > 3) & (when.month < 9))
    text = fit(pd.DataFrame({"when": when}), y + 0.1 * rng.normal(size=2000), alpha=0.1).formula()
    assert re.search(r"when is from (07:[45]|08:0)\d to (16:[45]|17:0)\d", text)
    assert re.search(r"when is from (Mar 31|Apr \d) to (Aug|Sep) \d", text)
    assert "sine" not in text
    is_missing = rng.random(2000) < 0.2
    frame = pd.DataFrame({"when": when.where(~is_missing)})
    y = 2.0 * ((when.hour >= 8) & (when.hour < 17) | is_missing) + 0.1 * rng.normal(size=2000)
    model = fit(frame, y, alpha=0.1)
    lines = [line for line in model.formula().splitlines() if " if " in line]
    assert any("or when is missing)" in line for line in lines)
    assert np.mean((model.predict(frame) - y) ** 2) < 0.1 * y.var()
    # of missing cells a rule holds where it says so
    missing = model.features.transform(frame[is_missing].head(1))[0]
    for k, value in enumerate(missing):
        one = replace(
            model, features=model.features.take([k]), coef=model.coef[[k]], support=np.arange(1)
        )
        (words,) = [line for line in one.formula().splitlines() if " if " in line]
        assert (value != 0) == words.endswith(("when is missing", "when is missing)"))


def test_days_of_the_week_are_told_apart_in_other_years():
    rng = np.random.default_rng(7)
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 700, 1000), unit="D")
    y = 2.0 * (day.day_of_week < 2) + 0.1 * rng.normal(size=1000)
    model = fit(pd.DataFrame({"day": day}), y, alpha=0.05)
    later = pd.date_range("2040-01-01", "2060-01-01")
    f = model.predict(pd.DataFrame({"day": later}))
    assert np.abs(f - 2.0 * (later.day_of_week < 2)).max() < 0.2


def test_numbers_as_large_as_missing_cells_are_refused():
    Z = X.copy()
    Z[:5, 1], Z[5, 1] = np.nan, 1e38
    with pytest.raises(ValueError, match=r"1e\+37 in size in X\[:, 1\]"):
        fit(Z)


# -- boxes that hold the same rows


def sets_of(model, X):
    """Return the sets of rows that its rules hold, and how many rules it has."""
    return set(map(bytes, (model.features.transform(X) != 0).T.copy())), len(model.support)


def columns_of(kind, rng, n=300):
    """Return columns in which many boxes hold the same rows, or the rows outside of another."""
    if kind == "integers":
        return rng.integers(0, 6, (n, 2)).astype(float)
    if kind == "flags":
        return (rng.random((n, 5)) < 0.5).astype(float)
    Z = np.round(rng.normal(size=(n, 3)), 1)
    return np.where(rng.random(Z.shape) < 0.1, np.nan, Z) if kind == "missing" else Z


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson"])
@pytest.mark.parametrize("kind", ["integers", "flags", "tenths", "missing"])
@pytest.mark.parametrize("home", ["chunks", "dask", "device"])
def test_rules_hold_the_same_rows_in_every_home_and_none_twice(home, kind, loss):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = columns_of(kind, rng)
        f = (np.nan_to_num(Z[:, 0]) > np.nanmean(Z[:, 0])) + 0.5 * (np.nan_to_num(Z[:, -1]) > 0.5)
        y = f + 0.3 * rng.normal(size=len(Z))
        y = (y > 0.6).astype(float) if loss == "logistic" else y
        y = rng.poisson(np.exp(y)).astype(float) if loss == "poisson" else y
        there = {
            "chunks": lambda Z: srf.Chunks(Z, block_rows=70),
            "dask": lambda Z: da.from_array(Z, chunks=(110, Z.shape[1])),
            "device": lambda Z: strict.asarray(Z, device=strict.Device("device1")),
        }[home](Z)
        fits = {"loss": loss, "alpha": 0.005, "fit_intercept": seed == 0}
        of_y = y if home != "device" else strict.asarray(y, device=strict.Device("device1"))
        (here, n), (others, m) = (sets_of(fit(A, t, **fits), Z) for A, t in ((Z, y), (there, of_y)))
        assert n == m == len(here) > 2
        assert here == others


@pytest.mark.parametrize("home", [np.asarray, lambda Z: srf.Chunks(Z, block_rows=70)])
def test_rows_that_a_term_of_the_start_holds_are_not_held_again(home):
    Z = columns_of("integers", np.random.default_rng(0))
    y = (Z[:, 0] > 2) + 0.5 * (Z[:, 1] > 3) + 0.3 * np.random.default_rng(1).normal(size=len(Z))
    start = fit(Z, y, alpha=0.02)
    held, n = sets_of(fit(home(Z), y, alpha=0.005, start=start), Z)
    assert n == len(held) > len(start.coef)


def test_a_box_and_the_rows_outside_of_it_are_one_rule_beside_an_intercept():
    Z = columns_of("integers", np.random.default_rng(0))
    y = (Z[:, 0] > 2) + 0.3 * np.random.default_rng(1).normal(size=len(Z))
    phi = fit(Z, y, alpha=0.001).features.transform(Z) != 0
    both = np.unique(np.hstack([phi, ~phi]), axis=1)
    assert both.shape[1] == 2 * phi.shape[1]


@pytest.mark.parametrize("n", [60, 4096, 9000])
def test_gradients_of_several_targets_are_sums_over_the_rows_of_boxes(rng, n):
    Z, V = rng.normal(size=(n, 3)), rng.normal(size=(3, n))
    model = fit(Z, (Z[:, 0] > 0) * Z[:, 1], n_components=60, alpha=1e-3)
    block = model.features.blocks[0]
    edges = [
        np.unique(np.r_[block.low[block.inputs == j], block.high[block.inputs == j]])
        for j in range(3)
    ]
    bins = growth.Bins([each[np.isfinite(each)] for each in edges])
    column = np.where((block.low > -np.inf) | (block.high < np.inf), block.inputs, -1)
    boxes = bins.boxes(column, block.low, block.high)
    seen = SimpleNamespace(boxes_of=lambda features: (boxes, block.heights))
    rows = rules.BinnedRows(bins.transform(Z, Workers(1)))
    g = rules.RuleDictionary.correlate(seen, None, rows, V)
    np.testing.assert_allclose(g, V @ model.features.transform(Z)[:, : len(boxes)], atol=1e-9)


def test_keys_tell_sets_of_rows_apart():
    for n in (1, 7, 1000, 10**6):
        keys = rules.row_keys(n)
        assert keys.sum() < growth.EXACT and (keys == np.rint(keys)).all()
        assert n == 1 or len(np.unique(keys)) > 0.99 * n
