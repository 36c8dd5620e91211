"""refit: the objective is least at the edited model, by plain NumPy; what stays, what is flat,
which signs there are; and what the model tells of its edits."""

import datetime as dt
import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import lsq_linear
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.algorithms.refit import RIDGE
from sparserf.expansion.terms import terms_of
from sparserf.features import BoxBlock

from ..conftest import phi_oracle

N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
F = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
Y = F + 0.2 * RNG.standard_normal(N)
FAR = RNG.uniform(-9, 9, (200, 3))
COSINES = {"features": "gaussian", "alpha": 0.02, "n_components": 300, "rng": 0}
RULES = {"features": srf.Rules(), "alpha": 0.1, "rng": 0}
THREE = np.digitize(Y, [-0.5, 0.5])


class LogCosh(srf.losses.Loss):
    """A loss of the user's own."""

    smoothness = 1.0

    def value(self, z, y):
        return np.logaddexp(z - y, y - z) - np.log(2)

    def derivative(self, z, y):
        return np.tanh(z - y)

    def curvature(self, z, y):
        return 1 - np.tanh(z - y) ** 2


@pytest.fixture(scope="module")
def cosines():
    return srf.sparse_rf(X, Y, **COSINES)


@pytest.fixture(scope="module")
def rules():
    return srf.sparse_rf(pd.DataFrame(X, columns=["a", "b", "c"]), Y, **RULES)


def frame(X):
    return pd.DataFrame(X, columns=["a", "b", "c"])


def mean_loss(model, X, y):
    return 0.5 * float(np.mean((model.predict(X) - y) ** 2))


def least_squares(model, kept, y, trust, weight=None):
    """Return (coef, intercept) of the objective for some terms of a model, by plain least
    squares."""
    weight = np.ones(len(y)) if weight is None else weight / weight.mean()
    phi = model.features.transform(X)[:, kept]
    target = (1 - trust) * y + trust * model.predict(X)
    h = (weight[:, None] * phi**2).mean(axis=0)
    root = np.sqrt(weight / len(y))
    A = np.vstack(
        [
            np.column_stack([root[:, None] * phi, root]),
            np.column_stack([np.diag(np.sqrt(RIDGE * h)), np.zeros(len(kept))]),
        ]
    )
    c = np.linalg.lstsq(
        A, np.concatenate([root * target, np.sqrt(RIDGE * h) * model.coef[kept]]), rcond=None
    )[0]
    return c[:-1], c[-1]


# ------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("trust", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("drop", [[], [0, 3, 4]])
def test_the_coefficients_are_those_of_least_squares(cosines, drop, trust):
    edited = srf.refit(cosines, X, Y, drop=drop, trust=trust)
    kept = np.setdiff1d(np.arange(len(cosines.coef)), drop)
    coef, intercept = least_squares(cosines, kept, Y, trust)
    np.testing.assert_allclose(edited.coef, coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(edited.intercept, intercept, rtol=1e-6)
    np.testing.assert_array_equal(edited.support, cosines.support[kept])
    np.testing.assert_allclose(
        phi_oracle(edited.features, X), cosines.features.transform(X)[:, kept], atol=1e-12
    )


@pytest.mark.parametrize("trust", [0.0, 0.5, 1.0])
def test_without_an_edit_the_loss_does_not_rise(cosines, trust):
    edited = srf.refit(cosines, X, Y, trust=trust)
    assert mean_loss(edited, X, Y) <= mean_loss(cosines, X, Y) * (1 + 1e-9)
    if trust == 1:  # the model is the optimum
        np.testing.assert_allclose(edited.predict(X), cosines.predict(X), atol=1e-9)


def test_weights_are_as_many_rows(cosines):
    weight = np.random.default_rng(1).integers(0, 4, N).astype(float)
    many = np.repeat(np.arange(N), weight.astype(int))
    one = srf.refit(cosines, X, Y, drop=1, sample_weight=weight)
    other = srf.refit(cosines, X[many], Y[many], drop=1)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-7, atol=1e-9)


LOSSES = {
    "huber": (Y, "huber"),
    "two quantiles": (Y, srf.losses.Quantile([0.2, 0.7])),
    "poisson": (np.floor(np.exp(Y)), "poisson"),
    "gamma": (np.exp(Y), "gamma"),
    "tweedie": (np.floor(np.exp(Y)), "tweedie"),
    "logistic": (Y > 0, "logistic"),
    "one-vs-rest": (THREE, "logistic"),
    "squared hinge": (Y > 0, "squared_hinge"),
    "multinomial": (THREE, "multinomial"),
    "own": (Y, LogCosh()),
    "outputs": (np.c_[Y, 100 * X[:, 2]], "squared"),
}


def objective(model, before, y, trust, coef, intercept, h):
    """Return the objective of `refit` at coefficients and intercepts, (n_outputs, n_terms), of the
    terms of `model`, but for a constant; h None: also the h of its penalty."""
    known = srf.losses.__dict__["LOSSES"].get(model.loss)
    loss = LogCosh() if known is None else type(known)(**model.loss_parameters)
    f = coef @ model.features.transform(X).T + intercept[:, None]
    g = np.atleast_2d(before.decision_function(X).T)
    if model.loss == "multinomial":
        p, q = (np.exp(z - np.logaddexp.reduce(z, axis=0)) for z in (f, g))
        own = (y == model.classes[:, None]).astype(float)
        value, slope = -(own * np.log(p)).sum(axis=0), q - own
        total = value.sum() - trust * (slope * f).sum()
    else:
        total = 0.0
        for k in range(len(f)):
            y_k = y if np.ndim(y) == 1 else y[:, k]
            if model.classes is not None:
                y_k = np.where(y == model.classes[1 if len(f) == 1 else k], 1.0, -1.0)
            own = loss.of_output(k)
            total += (own.value(f[k], y_k) - trust * own.derivative(g[k], y_k) * f[k]).sum()
    return total / len(X)


@pytest.mark.parametrize("name", LOSSES)
def test_no_other_coefficients_have_a_lower_objective(name):
    y, loss = LOSSES[name]
    how = {**COSINES, "loss": loss, "n_components": 60, "alpha": 0.03}
    model = srf.sparse_rf(X, y, **how)
    own = {"loss": loss} if name == "own" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edited = srf.refit(model, X, y, drop=[0, 1], trust=0.25, **own)
    coef, b = np.atleast_2d(edited.coef), np.atleast_1d(edited.intercept)
    v = np.atleast_2d(model.coef[..., 2:])
    # The slopes of the objective without its penalty are those of a penalty h (w - v), h > 0.
    step, at = 1e-5, []
    for k, j in [(k, j) for k in range(len(coef)) for j in (0, len(coef[0]) // 2)]:
        ends = []
        for way in (1, -1):
            moved = coef.copy()
            moved[k, j] += way * step
            ends.append(objective(edited, model, y, 0.25, moved, b, None))
        at.append(((ends[0] - ends[1]) / (2 * step), coef[k, j] - v[k, j]))
    size = max(abs(slope) for slope, _ in at)
    assert all(slope * moved <= 1e-6 * (1 + size) for slope, moved in at)
    for k in range(len(b)):
        moved = [b.copy(), b.copy()]
        moved[0][k] += step
        moved[1][k] -= step
        high, low = (objective(edited, model, y, 0.25, coef, each, None) for each in moved)
        assert abs(high - low) / (2 * step) < 1e-5 * max(1.0, abs(high))


def test_offsets_are_added_to_f():
    o = 0.3 * X[:, 1]
    y = np.floor(np.exp(Y))
    model = srf.sparse_rf(X, y, **COSINES, loss="poisson", offset=o)
    edited = srf.refit(model, X, y, drop=0, offset=o)
    mean = edited.predict(X, offset=o)
    before = model.predict(X, offset=o)  # the intercept is free: means are those of the target
    assert np.isclose(mean.mean(), (0.25 * y + 0.75 * before).mean(), rtol=1e-6)


# ------------------------------------------------------------------- edits


@pytest.mark.parametrize("y", [Y, np.c_[Y, X[:, 2]]], ids=["one", "outputs"])
def test_frozen_terms_stay_bit_for_bit_and_are_an_offset(y):
    model = srf.sparse_rf(X, y, **COSINES)
    edited = srf.refit(model, X, y, freeze=[1, 5], drop=0, trust=0)
    assert edited.coef[..., [0, 4]].tobytes() == model.coef[..., [1, 5]].tobytes()
    free = srf.refit(model, X, y, drop=0, trust=0)
    assert not np.array_equal(edited.coef, free.coef)
    if y.ndim == 1:
        phi = model.features.transform(X)
        others = replace(
            model,
            coef=np.delete(model.coef, [1, 5]),
            features=model.features.take(np.delete(np.arange(len(phi[0])), [1, 5])),
            support=np.delete(model.support, [1, 5]),
        )
        rest = srf.refit(others, X, y - phi[:, [1, 5]] @ model.coef[[1, 5]], drop=0, trust=0)
        np.testing.assert_allclose(np.delete(edited.coef, [0, 4]), rest.coef, rtol=1e-7, atol=1e-9)


def test_all_terms_frozen_the_intercept_is_fitted(cosines):
    edited = srf.refit(cosines, X, Y + 2, freeze=range(len(cosines.coef)), trust=0)
    np.testing.assert_array_equal(edited.coef, cosines.coef)
    assert np.isclose(edited.predict(X).mean(), Y.mean() + 2)


def test_coefficients_have_the_signs_that_are_asked_for(cosines):
    small = srf.prune(cosines, X, max_terms=10, polish=False)
    sign = {0: 1, 1: 1, 2: -1, 3: -1, 4: -1}
    edited = srf.refit(small, X, Y, sign=sign, trust=0)
    phi, v = small.features.transform(X), small.coef
    h = (phi**2).mean(axis=0)
    A = np.vstack(
        [
            np.column_stack([phi, np.ones(N)]) / np.sqrt(N),
            np.column_stack([np.diag(np.sqrt(RIDGE * h)), np.zeros(10)]),
        ]
    )
    low, high = np.full(11, -np.inf), np.full(11, np.inf)
    start = v.copy()
    for k, way in sign.items():
        (low if way > 0 else high)[k] = 0.0
        start[k] = max(v[k], 0) if way > 0 else min(v[k], 0)
    target = np.concatenate([Y / np.sqrt(N), np.sqrt(RIDGE * h) * start])
    c = lsq_linear(A, target, (low, high), method="bvls", tol=1e-14).x
    kept = np.flatnonzero(np.abs(c[:-1]) > 1e-9)
    assert len(kept) < 10  # of the wrong sign before
    np.testing.assert_array_equal(edited.support, small.support[kept])
    np.testing.assert_allclose(edited.coef, c[kept], rtol=1e-6, atol=1e-9)


def test_signs_are_those_of_what_rules_add_and_hold_for_classes():
    table = frame(X)
    model = srf.sparse_rf(table, THREE, loss="multinomial", **RULES)
    edited = srf.refit(model, table, THREE, sign=dict.fromkeys(range(len(model.features)), -1))
    gain = np.array(
        [term.gain for term in sorted(terms_of(edited.features), key=lambda t: t.position)]
    )
    assert (edited.coef * gain <= 0).all() and (edited.coef != 0).any()


LOW = np.array([[-0.8, -np.inf], [0.2, -1.0], [-1.5, 0.3]])
BOXES = BoxBlock(
    1.0, np.array([[0, 2], [0, 1], [2, 1]], np.int32), LOW, np.full((3, 2), 1.2), np.ones(3)
)
MIXED = srf.Fourier(gamma=0.3).draw(30, 3, rng=0).concat(srf.FeatureSet([BOXES], 3))
FLAT = {
    "cosines": {**COSINES},
    "as they are": {**COSINES, "scale": None},
    "default": {"effort": 0.1, "rng": 0},
    "held already": {**COSINES, "extrapolate": "constant"},
    "linear": {"features": srf.Linear(), "alpha": 0.01, "rng": 0},
    "rules": {"features": srf.Rules(), "alpha": 0.05, "rng": 0},
    "relu": {**COSINES, "features": srf.RandomNeurons("relu", order=2)},
    "products": {"features": srf.Taylor(2), "alpha": 0.01, "rng": 0},
    "mixed": {"features": MIXED, "alpha": 0.01, "rng": 0},
}


@pytest.mark.parametrize("name", FLAT)
def test_the_model_is_constant_beyond_ends(name, tmp_path):
    model = srf.sparse_rf(X, Y, verbose=False, **FLAT[name])
    ends = {0: (-0.7, 1.1), "x2": (None, 0.9)}
    edited = srf.refit(model, X, Y, flatten=ends)
    inside = FAR.copy()
    inside[:, 0] = inside[:, 0].clip(-0.7, 1.1)
    inside[:, 2] = inside[:, 2].clip(X[:, 2].min(), 0.9)
    expected = edited.predict(inside)
    np.testing.assert_allclose(edited.predict(FAR), expected, rtol=1e-12, atol=1e-12)
    assert mean_loss(edited, inside, expected) < 1e-20
    edited.save(tmp_path / "model")
    np.testing.assert_array_equal(srf.load(tmp_path / "model").predict(FAR), edited.predict(FAR))
    names = {}
    exec(edited.formula("python"), names)
    np.testing.assert_allclose(names["predict"](FAR), expected, rtol=1e-9, atol=1e-9)


def test_csr_rows_may_be_flattened():
    rows = X * (np.random.default_rng(1).random(X.shape) < 0.4)
    model = srf.sparse_rf(csr_array(rows), Y, **COSINES)
    edited = srf.refit(model, csr_array(rows), Y, flatten={1: (-1, 1)})
    far, near = np.zeros((2, 3)), np.zeros((2, 3))
    far[:, 1], near[:, 1] = [-5, 5], [-1, 1]
    np.testing.assert_allclose(edited.predict(csr_array(far)), edited.predict(csr_array(near)))


def test_rules_get_other_thresholds_and_those_that_are_constant_go(rules):
    edited = srf.refit(rules, frame(X), Y, flatten={"a": (-0.5, 0.5), "b": (0, 0)})
    text = edited.formula()
    assert "b" not in text.split("=", 1)[1].replace("by", "")
    assert (
        len(edited.features) < len(rules.features) and edited.features.encoder.ends.max() == np.inf
    )
    assert any("constant" in each and each.startswith("left out") for each in edited.info.edits)
    rows = frame(FAR)
    inside = rows.assign(a=rows["a"].clip(-0.5, 0.5), b=0.0)
    np.testing.assert_array_equal(edited.predict(rows), edited.predict(inside))


def test_missing_cells_stay_on_their_side_of_a_threshold():
    cells = X.copy()
    cells[np.random.default_rng(1).random(N) < 0.3, 0] = np.nan
    y = np.where(np.isnan(cells[:, 0]), 3.0, cells[:, 0] > 0.5) + 0.1 * X[:, 1]
    model = srf.sparse_rf(frame(cells), y, features=srf.Rules(), alpha=0.02, rng=0)
    edited = srf.refit(model, frame(cells), y, flatten={"a": (-0.3, 0.8)}, trust=0)
    held = cells.copy()
    held[:, 0] = held[:, 0].clip(-0.3, 0.8)
    np.testing.assert_array_equal(edited.predict(frame(cells)), edited.predict(frame(held)))
    is_missing = np.isnan(cells[:, 0])
    assert edited.predict(frame(cells))[is_missing].mean() > 2.5
    again = srf.SparseModel.from_json(edited.to_json())
    np.testing.assert_array_equal(again.predict(frame(cells)), edited.predict(frame(cells)))


def test_columns_of_times_have_times_as_ends():
    rng = np.random.default_rng(1)
    took = pd.to_timedelta(rng.integers(0, 700, N), "D")
    table = pd.DataFrame({"took": took, "b": X[:, 1]})
    y = table["took"].dt.days / 100 + X[:, 1]
    model = srf.sparse_rf(table, y, **RULES)
    last = dt.timedelta(days=450)
    edited = srf.refit(model, table, y, flatten={"took": (pd.Timedelta("30D"), last)})
    far, near = (table.assign(took=each) for each in (pd.Timedelta("900D"), pd.Timedelta(last)))
    np.testing.assert_array_equal(edited.predict(far), edited.predict(near))
    assert edited.info.edits[0] == (
        "made constant in took beyond [30 days, 0:00:00, 450 days, 0:00:00]"
    )
    table["when"] = pd.Timestamp("2024-01-01") + took
    season = np.cos(2 * np.pi * table["when"].dt.day_of_year / 365)
    model = srf.sparse_rf(table, season, **COSINES)
    with pytest.raises(ValueError, match="flatten must have columns that terms see as numbers"):
        srf.refit(model, table, y, flatten={"when": (None, None)})


def test_terms_are_named_by_place_column_and_rule(rules):
    words = [None] * len(rules.features)
    for term in terms_of(rules.features):
        words[term.position] = term.condition(["a", "b", "c"], rules.features.encoder)
    table = frame(X)
    one = srf.refit(rules, table, Y, drop=2)
    other = srf.refit(rules, table, Y, drop=[words[2]])
    assert one.to_json() == other.to_json() and words[2] not in one.formula(n_terms=None)
    sees = [k for k, each in enumerate(words) if "c " in each]
    without = srf.refit(rules, table, Y, drop="c")
    assert len(without.features) == len(words) - len(sees)
    assert not without.features.columns_seen[2] and 2 not in without.ranges


def test_without_a_term_the_model_is_a_constant(cosines):
    edited = srf.refit(cosines, X, Y, drop=range(len(cosines.coef)), trust=0)
    assert len(edited.features) == 0 and np.isclose(edited.intercept, Y.mean())
    model = srf.sparse_rf(X, THREE, loss="multinomial", **COSINES)
    edited = srf.refit(model, X, THREE, drop=range(len(model.features)), trust=0)
    share = np.bincount(THREE) / N
    np.testing.assert_allclose(edited.predict_proba(X[:1])[0], share, rtol=1e-6)


def test_a_monotone_model_stays_monotone():
    model = srf.sparse_rf(X, Y, monotone={2: 1}, **COSINES)
    edited = srf.refit(model, X, -Y, drop=0, flatten={2: (-1, 1)}, trust=0)
    assert (edited.coef[edited.features.nonnegative] >= 0).all() and edited.is_monotone(2)


def test_limits_and_ranges_stay():
    model = srf.sparse_rf(X, Y, lower=-1, upper=1.5, **COSINES)
    edited = srf.refit(model, X, Y, drop=0)
    assert (edited.lower, edited.upper) == (-1, 1.5) and edited.ranges == model.ranges


# ------------------------------------------------------------------- rows


HOMES = {
    "chunks": lambda X: srf.Chunks(X, block_rows=90),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(100, 3)),
    "device": lambda X: pytest.importorskip("array_api_strict").asarray(X),
}


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("name", ["squared", "multinomial", "two quantiles"])
def test_the_result_is_the_same_wherever_rows_are(home, name):
    y, loss = LOSSES.get(name, (Y, "squared"))
    model = srf.sparse_rf(X, y, **COSINES, loss=loss)
    edits = {"drop": 0, "freeze": 2, "sign": {3: 1}, "flatten": {0: (-1, 1)}}
    one = srf.refit(model, X, y, **edits)
    if home == "device" and name != "multinomial":
        y = HOMES[home](y[:, None])[:, 0]
    other = srf.refit(model, HOMES[home](X), y, **edits)
    np.testing.assert_allclose(other.coef, one.coef, rtol=1e-5, atol=1e-8)


def test_float32_rows_give_nearly_the_same(cosines):
    one = srf.refit(cosines, X, Y, drop=0)
    other = srf.refit(cosines, X.astype(np.float32), Y, drop=0)
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=1e-3)
    assert other.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("name", ["squared", "multinomial", "two quantiles"])
def test_the_bits_are_those_of_any_number_of_workers(name):
    y, loss = LOSSES.get(name, (Y, "squared"))
    model = srf.sparse_rf(X, y, **COSINES, loss=loss)
    one, other = (srf.refit(model, X, y, drop=[1], workers=n) for n in (1, 3))
    assert one.to_json() == other.to_json()


# ------------------------------------------------------------------- what the model tells


def test_the_model_tells_its_edits(cosines, tmp_path):
    edited = srf.refit(cosines, X, Y, drop=[0, 1], freeze=[2], flatten={0: (-1, None)})
    told = edited.info.edits
    assert told[:2] == ("dropped 2 terms", "kept 1 term as it was")
    after = mean_loss(edited, X, Y)
    assert f"mean loss {after:.4g} (before: {mean_loss(cosines, X, Y):.4g})" in told[-1]
    again = srf.refit(edited, X, Y, drop=0)
    assert again.info.edits[: len(told)] == told and again.info.edits[len(told)] == "dropped 1 term"
    edited.save(tmp_path / "model")
    for other in (srf.load(tmp_path / "model"), srf.SparseModel.from_json(edited.to_json())):
        assert other.info == edited.info
        assert "edited: dropped 2 terms" in str(other.summary())
    assert "edited" not in str(cosines.summary())
    assert "dropped 2 terms; kept 1 term as it was" in edited.to_html(tmp_path / "page.html") or (
        "dropped 2 terms; kept 1 term as it was" in (tmp_path / "page.html").read_text()
    )
    assert "dropped 2 terms" in edited.summary()._repr_html_()


def test_of_many_columns_some_are_told_one_by_one():
    rows = np.random.default_rng(1).standard_normal((60, 12))
    model = srf.drp(rows, rows.sum(axis=1), alpha=0.01, rng=0)
    edited = srf.refit(model, rows, rows.sum(axis=1), flatten={j: (-1, 1) for j in range(12)})
    assert edited.info.edits[7:9] == (
        "made constant in x7 beyond [-1, 1]",
        "made constant in 4 more columns",
    )


def test_older_files_have_no_edits_and_others_are_checked(cosines):
    content = json.loads(srf.refit(cosines, X, Y).to_json())
    for wrong in ("dropped", [1], {"a": "b"}, ["x" * 1001]):
        content["info"]["edits"] = wrong
        with pytest.raises(ValueError, match="not a whole model"):
            srf.SparseModel.from_json(json.dumps(content))
    del content["info"]["edits"]
    assert srf.SparseModel.from_json(json.dumps(content)).info.edits == ()


def test_what_was_known_of_the_fit_is_not_told_of_another_model():
    model = srf.drp(X, Y, alpha=0.01, rng=0)
    edited = srf.refit(model, X, Y)
    assert edited.info.dual_gap is edited.info.error_bound is edited.info.validation_loss is None
    assert edited.info.n_nonzero == len(edited.features)


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("how", "error", "match"),
    [
        ({"drop": 999}, ValueError, r"drop must have places of terms in \[0, "),
        ({"drop": -1}, ValueError, r"drop must have places of terms in \[0, "),
        ({"freeze": "age"}, ValueError, "freeze must name columns that terms see, or rules"),
        ({"drop": 1.0}, TypeError, "drop must be places of terms"),
        ({"drop": [True]}, TypeError, "drop must be places of terms"),
        ({"drop": [1], "freeze": [1]}, ValueError, "drop and freeze must have no term in common"),
        ({"drop": "x0", "sign": {0: 1}}, ValueError, "drop and sign must have no term in common"),
        ({"sign": {0: 1}, "freeze": [0]}, ValueError, "freeze and sign must have no term"),
        ({"sign": {0: 2}}, ValueError, "sign must be 1 or -1 for 0, got 2"),
        ({"sign": {0: True}}, ValueError, "sign must be 1 or -1 for 0, got True"),
        ({"sign": {0: 1, "x0": -1}}, ValueError, "sign must not be -1 for term 0"),
        ({"sign": [0]}, TypeError, "sign must be a mapping of terms to 1 or -1"),
        ({"flatten": {"age": (0, 1)}}, ValueError, "flatten must name columns of X"),
        ({"flatten": {7: (0, 1)}}, ValueError, "flatten must have indices of columns"),
        ({"flatten": {0: (1, 0)}}, ValueError, r"flatten\['x0'\] must have low <= high"),
        ({"flatten": {0: 1}}, TypeError, r"flatten\['x0'\] must be a pair"),
        ({"flatten": {0: (0, np.inf)}}, ValueError, r"flatten\['x0'\] must be finite"),
        ({"flatten": {0: ("a", 1)}}, TypeError, r"flatten\['x0'\] must be a real number"),
        ({"flatten": {0: (0, 1), "x0": (0, 1)}}, ValueError, "flatten must have each column once"),
        ({"flatten": (0, 1)}, TypeError, "flatten must be a mapping"),
        ({"trust": 1.5}, ValueError, r"trust must be in \[0, 1\], got 1.5"),
        ({"trust": -1}, ValueError, "trust must be finite and >= 0"),
        ({"loss": "huber"}, ValueError, "loss must be None for a model of 'squared'"),
        ({"X": X[:, :2]}, ValueError, "X must have 3 columns, got 2"),
        ({"y": Y[:5]}, ValueError, "y must have"),
        ({"y": np.c_[Y, Y]}, ValueError, "y must have 1 outputs"),
        ({"y": np.where(Y > 0, "a", "b")}, TypeError, "y must hold real numbers"),
        ({"sample_weight": -np.ones(N)}, ValueError, "sample_weight"),
        ({"model": srf.Linear()}, TypeError, "model must be a SparseModel"),
    ],
)
def test_bad_arguments_are_named(cosines, how, error, match):
    call = {"model": cosines, "X": X, "y": Y, **how}
    with pytest.raises(error, match=match):
        srf.refit(**call)


def test_other_models_have_errors_of_their_own(rules):
    model = srf.sparse_rf(X, THREE, loss="multinomial", **COSINES)
    with pytest.raises(ValueError, match="y must hold the labels of the model"):
        srf.refit(model, X, np.where(THREE == 2, 1, THREE))
    own = srf.sparse_rf(X, Y, **COSINES, loss=LogCosh())
    with pytest.raises(ValueError, match="loss must be the loss 'logcosh' of the model"):
        srf.refit(own, X, Y)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "k": np.where(X[:, 2] > 0, "u", "v")})
    model = srf.sparse_rf(table, Y, **COSINES)
    with pytest.raises(ValueError, match="flatten must have columns of numbers, got 'k', a categ"):
        srf.refit(model, table, Y, flatten={"k": (0, 1)})
    with pytest.raises(ValueError, match="flatten must have columns of numbers, got 'c', which no"):
        srf.refit(srf.refit(rules, frame(X), Y, drop="c"), frame(X), Y, flatten={"c": (0, 1)})
    monotone = srf.sparse_rf(X, Y, monotone={2: 1}, **COSINES)
    k = int(np.flatnonzero(monotone.features.nonnegative)[0])
    gain = next(term.gain for term in terms_of(monotone.features) if term.position == k)
    with pytest.raises(ValueError, match=f"sign must not be -?1 for term {k}, .* of a monotone"):
        srf.refit(monotone, X, Y, sign={k: -int(np.sign(gain))})
