"""Beyond the training rows: models that are constant in each column there."""

import pickle
import sqlite3

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.sklearn import SparseRFClassifier, SparseRFRegressor

from ..export.test_export import asked, compiled, needs_compiler, of_rows
from ..export.test_formula import numbers_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * RNG.normal(size=300)
LOW, HIGH = X.min(axis=0), X.max(axis=0)
FAR = RNG.normal(size=(200, 3)) * 20
HELD = np.clip(FAR, LOW, HIGH)
GIVEN = {"alpha": 0.01, "extrapolate": "constant"}
FITS = {
    "default": {"effort": 0.1},
    "auto": GIVEN,
    "cosines": {**GIVEN, "features": srf.Fourier(gamma=0.3), "n_components": 500},
    "raw": {**GIVEN, "features": srf.Fourier(gamma=0.3), "n_components": 300, "scale": None},
    "linear": {**GIVEN, "features": srf.Linear()},
    "steps": {**GIVEN, "features": "perceptron", "n_components": 500},
    "relu": {**GIVEN, "features": srf.RandomNeurons("relu", order=2), "n_components": 500},
    "products": {**GIVEN, "features": srf.Taylor(2, gamma=0.1)},
}
LANGUAGES = "python", "sql", "jax", "sympy", "onnx", "c"


def fit(rows=X, y=Y, **arguments):
    return srf.sparse_rf(rows, y, rng=0, verbose=False, **arguments)


@pytest.fixture(scope="module", params=FITS)
def model(request):
    return fit(**FITS[request.param])


def of_sql(model, rows):
    """Return the predictions of the SQL code of a model."""
    base = sqlite3.connect(":memory:")
    columns = [f"x{j}" for j in range(rows.shape[1])]
    base.execute(f"CREATE TABLE data ({', '.join(f'{name} REAL' for name in columns)})")
    base.executemany(f"INSERT INTO data VALUES ({', '.join('?' * len(columns))})", rows.tolist())
    return np.array([row[-1] for row in base.execute(model.formula("sql"))])


def answer_of(language, model, rows, folder):
    """Return the predictions that a language computes."""
    if language == "python":
        names = {}
        exec(model.formula("python"), names)
        return names["predict"](rows)
    if language == "sql":
        return of_sql(model, rows)
    if language == "onnx":
        return asked(model, {"X": rows}, dtype="float64")["variable"].ravel()
    if language == "c":
        return of_rows(compiled(model, folder), rows, 1).ravel()
    module = pytest.importorskip(language)
    if language == "jax":
        module.config.update("jax_enable_x64", True)
    return numbers_of(model, rows, language)


# ------------------------------------------------------------------- what a model predicts


def test_rows_count_as_their_nearest_within_the_ranges(model, tmp_path):
    expected = model.predict(HELD)
    np.testing.assert_array_equal(model.predict(FAR), expected)
    model.save(tmp_path / "m.npz")
    again = (
        srf.load(tmp_path / "m.npz"),
        pickle.loads(pickle.dumps(model)),
        srf.SparseModel.from_json(model.to_json()),
    )
    for each in again:
        np.testing.assert_array_equal(each.predict(FAR), expected)
    single = model.predict(FAR.astype(np.float32))
    assert np.median(np.abs(single - expected)) < 1e-5


@pytest.mark.parametrize("name", [name for name in FITS if name != "default"])
def test_within_the_ranges_no_bit_changes(name):
    model, other = fit(**FITS[name]), fit(**{**FITS[name], "extrapolate": "linear"})
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert np.abs(model.predict(FAR) - other.predict(FAR)).max() > 1e-3


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["default", "linear", "raw", "products"])
def test_exports(name, language, tmp_path):
    model, expected = fit(**FITS[name]), None
    rows = np.concatenate([FAR, X[:50], [LOW, HIGH]])
    if language == "sympy":
        model = srf.prune(model, X, max_terms=20)
    if language == "c" and needs_compiler.args[0]:
        pytest.skip(needs_compiler.kwargs["reason"])
    expected = model.predict(rows)
    got = answer_of(language, model, rows, tmp_path)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_array_equal(model.predict(FAR), model.predict(HELD))


def test_onnx_in_single_precision(model):
    rows = FAR.astype(np.float32)
    answer = asked(model, {"X": rows})["variable"].ravel()
    close = np.abs(answer - model.predict(rows.astype(np.float64))) < 1e-4
    assert close.mean() > (0.95 if "sign" in str(model.features.blocks) else 0.999)


@pytest.mark.parametrize("home", ["jax", "strict"])
def test_arrays_of_other_namespaces(model, home):
    if home == "jax":
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        there = jax.numpy.asarray(FAR)
    else:
        there = pytest.importorskip("array_api_strict").asarray(FAR)
    np.testing.assert_allclose(np.asarray(model.predict(there)), model.predict(HELD), atol=1e-10)


def test_the_text_says_it_once():
    for name in ("linear", "auto"):
        for language in ("text", "latex"):
            text = str(fit(**FITS[name]).formula(language))
            assert text.count("count as the end") == 1 and "rank" not in text
            assert f"{LOW[0]:.4g}" in text and f"{HIGH[1]:.4g}" in text
            assert " s(x" not in text and "clip" not in text


# ----------------------------------------------------- what is proved, derived and explained


def test_derivatives_are_0_beyond(model):
    beyond = (FAR < LOW) | (FAR > HIGH)
    gradient, curvature = model.gradient(FAR), model.hessian_diag(FAR)
    assert not gradient[beyond].any() and not curvature[beyond].any()
    h = 1e-6 * np.eye(3)
    slopes = [(model.decision_function(X + e) - model.decision_function(X - e)) / 2e-6 for e in h]
    assert np.median(np.abs(np.stack(slopes, axis=1) - model.gradient(X))) < 1e-5


@pytest.mark.parametrize("name", ["default", "linear", "raw"])
def test_bounds_of_the_ranges_hold_everywhere(name):
    model = fit(**FITS[name])
    everywhere = model.bounds({j: (-1e9, 1e9) for j in range(3)}, time_limit=2)
    within = model.bounds(time_limit=2)
    f = model.decision_function(FAR)
    assert within.least.lower <= f.min() and f.max() <= within.largest.upper
    assert everywhere.least.lower <= f.min() and f.max() <= everywhere.largest.upper
    width = within.largest.upper - within.least.lower
    assert everywhere.largest.lower <= within.largest.upper + 1e-9 * width
    assert everywhere.largest.upper - everywhere.least.lower < 3 * width
    assert np.ptp(f) > 0.3 * width


@pytest.mark.parametrize("name", ["default", "linear", "raw"])
def test_means(name):
    """The mean over a box is that of f at a fine grid."""
    model = fit(**FITS[name])
    grid = np.zeros((20_000, 3))
    grid[:, 0] = np.linspace(-10, 30, len(grid) * 2 + 1)[1::2]
    value, _ = model.mean({0: (-10, 30), 1: 0.0, 2: 0.0})
    assert abs(value - model.decision_function(grid).mean()) < 1e-3 * np.ptp(Y)


def test_shapley_values(model):
    values, held = (model.shapley(rows[:20], X[:30], rng=0) for rows in (FAR, HELD))
    np.testing.assert_allclose(values, held, rtol=0, atol=1e-9)
    f, mean = model.decision_function(FAR[:20]), model.decision_function(X[:30]).mean()
    np.testing.assert_allclose(values.sum(axis=1), f - mean, rtol=0, atol=1e-9)


# ---------------------------------------------------------------------------- constraints


@pytest.mark.slow
@pytest.mark.parametrize("how", [FITS["default"], GIVEN])
def test_convex_columns_stay_lines_and_monotone_ones_rise(how):
    model = fit(convex={0: 1}, monotone={1: 1}, **how)
    places = np.zeros((3, 3))
    places[:, 0] = [100, 200, 300]
    a, b, c = model.predict(places)
    assert abs(c - b) > 1e-3 and c - b >= b - a - 1e-9
    places = np.zeros((500, 3))
    places[:, 1] = np.linspace(-50, 50, 500)
    assert (np.diff(model.predict(places)) >= -1e-12).all()
    assert np.ptp(model.predict(places[np.abs(places[:, 1]) > 5][:200])) == 0
    assert model.is_monotone(1, {j: (-100, 100) for j in range(3)}, sign=1, time_limit=2)


@pytest.mark.slow
def test_limits_hold():
    model = fit(lower=-1.0, upper=1.5)
    f = model.predict(FAR)
    np.testing.assert_array_equal(f, model.predict(HELD))
    assert f.min() >= -1 and f.max() <= 1.5


# --------------------------------------------------------------------------- kinds of rows


def test_rows_of_weight_0_do_not_count():
    rows, y = np.vstack([X, [[99.0, 99.0, 99.0]]]), np.append(Y, 0.0)
    model = fit(rows, y, sample_weight=np.append(np.ones(300), 0.0), **GIVEN)
    np.testing.assert_array_equal(model.predict(FAR), model.predict(HELD))


@pytest.mark.parametrize("how", [FITS["default"], GIVEN])
def test_constant_columns_missing_cells_and_categories(how):
    x = X[:, 0].copy()
    x[::7] = np.nan
    frame = pd.DataFrame({"x": x, "one": 1.0, "word": np.where(X[:, 1] > 0, "a", "b")})
    model = fit(frame, **how)
    far = frame.assign(x=x * 50, one=7.0)
    near = far.assign(x=far.x.clip(frame.x.min(), frame.x.max()), one=1.0)
    np.testing.assert_array_equal(model.predict(far), model.predict(near))
    assert np.ptp(model.predict(far.assign(word="new"))) > 0
    names = {}
    exec(model.formula("python"), names)
    np.testing.assert_allclose(names["predict"](far), model.predict(far), rtol=0, atol=1e-9)


def test_a_constant_column_of_raw_features():
    rows = np.column_stack([X, np.ones(len(X))])
    features = srf.Fourier(gamma=0.3).draw(300, 4, rng=0)
    model = fit(rows, features=features, **GIVEN)
    far = np.column_stack([FAR, np.linspace(-5, 5, len(FAR))])
    expected = model.predict(np.column_stack([HELD, np.ones(len(FAR))]))
    np.testing.assert_array_equal(model.predict(far), expected)
    for language in ("python", "sql", "onnx"):
        got = answer_of(language, model, far, None)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_times_are_held_and_the_angles_of_a_year_go_on():
    days = np.sort(RNG.integers(0, 60, 300))
    frame = pd.DataFrame(
        {"at": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, "D"), "z": X[:, 1]}
    )
    y = days / 10 + X[:, 1]
    for how in ({"effort": 0.1}, GIVEN):
        model = fit(frame, y, **how)
        far = frame.assign(at=frame["at"] + pd.Timedelta(weeks=52))
        end = frame.assign(at=frame["at"].max())
        if not model.features.encoder.turn[model.features.inputs_seen].any():
            np.testing.assert_array_equal(model.predict(far), model.predict(end))
        other = fit(frame, y, **{**how, "extrapolate": "linear"})
        assert np.abs(other.predict(far) - model.predict(far)).max() > 0.1


@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
@pytest.mark.parametrize("how", [{}, GIVEN, {**GIVEN, "features": srf.Linear()}])
def test_entries_of_csr_rows_are_held_and_zeros_stay_zeros(how):
    counts = np.maximum(RNG.poisson(1.0, (400, 5)), RNG.poisson(1.0, (400, 5)) - 2).astype(float)
    counts[:, 4] += 3  # no zeros
    y = np.minimum(counts[:, 0], 2) + counts[:, 1] + 0.2 * counts[:, 4]
    model = fit(csr_array(counts), y, **how)
    low, high = np.minimum(counts.min(axis=0), 0), counts.max(axis=0)
    far = np.abs(RNG.normal(size=(100, 5))) * 30 * (RNG.random((100, 5)) < 0.6)
    far[:, 2] *= -1 if how else 1  # "is not 0" is a column of the default
    expected = model.predict(csr_array(np.clip(far, low, high)))
    np.testing.assert_array_equal(model.predict(csr_array(far)), expected)
    np.testing.assert_allclose(model.predict(far), expected, rtol=0, atol=1e-12)
    assert model.features.encoder is None or model.features.encoder.keeps_zeros
    other = fit(csr_array(counts), y, alpha=0.01, features=srf.Linear())
    assert np.abs(other.predict(far) - expected).max() > 1


@pytest.mark.slow
@pytest.mark.parametrize("home", ["chunks", "dask"])
@pytest.mark.parametrize("name", ["default", "auto", "cosines", "linear"])
def test_chunks_and_dask(name, home):
    rows = (
        srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=70)
        if home == "chunks"
        else da.from_array(X, chunks=(80, 3))
    )
    model, expected = fit(rows, **FITS[name]), fit(**FITS[name])
    np.testing.assert_array_equal(model.ranges[0], expected.ranges[0])
    np.testing.assert_array_equal(model.predict(FAR), model.predict(HELD))
    if name in ("cosines", "linear"):  # draws that follow the fit follow its rounding
        np.testing.assert_allclose(model.predict(FAR), expected.predict(FAR), rtol=0, atol=1e-6)


def test_numbers_so_far_apart_that_their_distance_overflows():
    rows = X.copy()
    rows[0, 2], rows[1, 2] = -1.7e308, 1.7e308
    model = fit(rows, **GIVEN)
    assert np.isfinite(model.predict(rows)).all()


# ----------------------------------------------------------------- classes, outputs, starts


@pytest.mark.slow
@pytest.mark.parametrize("how", [FITS["default"], GIVEN])
def test_classes_and_outputs(how):
    for k in (2, 3):
        model = fit(y=np.digitize(Y, [0.0, 1.0][: k - 1]), loss="multinomial", **how)
        np.testing.assert_array_equal(model.predict_proba(FAR), model.predict_proba(HELD))
    model = fit(y=np.column_stack([Y, -(X[:, 0] ** 2)]), **how)
    np.testing.assert_array_equal(model.predict(FAR), model.predict(HELD))


@pytest.mark.slow
def test_estimators_take_it():
    for kind, y in ((SparseRFRegressor, Y), (SparseRFClassifier, Y > 0)):
        held, line = (
            kind(alpha=0.01, extrapolate=how, random_state=0).fit(X, y)
            for how in ("constant", "linear")
        )
        np.testing.assert_array_equal(held.predict(FAR), held.predict(HELD))
        f = line.model_.decision_function(FAR) - line.model_.decision_function(HELD)
        assert np.abs(f).max() > 1e-3 and held.get_params()["extrapolate"] == "constant"


@pytest.mark.slow
@pytest.mark.parametrize("how", [FITS["default"], GIVEN])
def test_a_fit_that_starts_from_a_model_has_the_ranges_of_its_own_rows(how):
    some = np.abs(X[:, 0]) < 0.5
    first = fit(X[some], Y[some])
    model = fit(start=first, **how)
    np.testing.assert_array_equal(model.predict(FAR), model.predict(HELD))
    assert np.ptp(model.predict(np.linspace(0.6, 2, 9)[:, None] * [1.0, 0.0, 0.0])) > 0.1


def test_features_of_a_model_stay_as_they_are():
    """A fit of them sees columns as that model did: constant beyond its rows."""
    first = fit(X[:40], Y[:40], **GIVEN)
    model = fit(features=first.features, alpha=1e-3, extrapolate="constant")
    ends = X[:40].min(axis=0), X[:40].max(axis=0)
    np.testing.assert_array_equal(model.predict(FAR), model.predict(np.clip(FAR, *ends)))
    free = fit(features=first.features, alpha=1e-3)
    np.testing.assert_array_equal(model.predict(X), free.predict(X))


def test_what_is_made_of_a_model_keeps_it():
    model = fit(**FITS["auto"])
    made = srf.prune(model, X, max_terms=5)
    np.testing.assert_array_equal(made.predict(FAR), made.predict(HELD))


def test_given_alpha_stays_linear_and_bad_words_are_refused():
    plain, linear = fit(alpha=0.01), fit(alpha=0.01, extrapolate="linear")
    np.testing.assert_array_equal(plain.predict(FAR), linear.predict(FAR))
    with pytest.raises(ValueError, match="extrapolate"):
        fit(extrapolate="flat")


# ---------------------------------------------------------------------------------- folds


@pytest.mark.parametrize("features", ["auto", srf.Linear()])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_folds_say_what_a_constant_model_is_worth_beyond_its_rows(kind, features):
    """A trend goes on in the rows held out: the loss of a fit that is constant there is large."""
    x = np.sort(RNG.uniform(0, 1, 400))
    pair = [(np.arange(250), np.arange(250, 400))]
    rows, options = kind(x[:, None]), {"features": features, "validation": pair, "effort": 0.1}
    losses = [
        fit(rows, 3 * x, extrapolate=how, **options).info.validation_loss
        for how in ("constant", "linear")
    ]
    of_constant = np.var(3 * x[250:]) / 2
    assert 0.8 * of_constant < losses[0] < 1.1 * of_constant and losses[1] < 0.3 * losses[0]
