"""Beyond the training rows: models that are constant in each column there."""

import pickle
import sqlite3

import numpy as np
import pytest

import sparserf as srf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * RNG.normal(size=300)
FAR = RNG.normal(size=(200, 3)) * 20
HELD = np.clip(FAR, X.min(axis=0), X.max(axis=0))
FITS = {
    "default": {},
    "auto": {"alpha": 0.01, "extrapolate": "constant"},
    "cosines": {
        "alpha": 0.01,
        "features": srf.Fourier(gamma=0.3),
        "n_components": 500,
        "extrapolate": "constant",
    },
    "linear": {"alpha": 0.01, "features": srf.Linear(), "extrapolate": "constant"},
}


def fit(rows=X, y=Y, **arguments):
    return srf.sparse_rf(rows, y, rng=0, verbose=False, **arguments)


@pytest.fixture(scope="module", params=FITS)
def model(request):
    return fit(**FITS[request.param])


def test_rows_count_as_their_nearest_within_the_ranges(model, tmp_path):
    expected = model.predict(HELD)
    np.testing.assert_allclose(model.predict(FAR), expected, rtol=0, atol=1e-12)
    model.save(tmp_path / "m.npz")
    for again in (srf.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(FAR), expected)
    single = model.predict(FAR.astype(np.float32))
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-3)


def test_within_the_ranges_nothing_changes(model, request):
    given = FITS[request.node.callspec.params["model"]]
    other = fit(**{**given, "extrapolate": "linear"})
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=0, atol=1e-11)
    assert np.abs(model.predict(FAR) - other.predict(FAR)).max() > 1e-3


def test_python_and_sql(model):
    expected, space = model.predict(HELD), {}
    exec(model.formula("python"), space)
    name = next(name for name in space if name in ("predict", "f"))
    np.testing.assert_allclose(space[name](FAR), expected, rtol=0, atol=1e-9)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE data (x0 REAL, x1 REAL, x2 REAL)")
    base.executemany("INSERT INTO data VALUES (?, ?, ?)", FAR.tolist())
    got = [row[-1] for row in base.execute(model.formula("sql"))]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)


def test_derivatives_are_0_beyond(model):
    beyond = (FAR < X.min(axis=0)) | (FAR > X.max(axis=0))
    gradient = model.gradient(FAR)
    assert not gradient[beyond].any() and gradient[~beyond].any()


def test_bounds_over_all_numbers_are_finite():
    model = fit(**FITS["linear"])
    box = {j: (-1e9, 1e9) for j in range(3)}
    bounds = model.bounds(box)
    assert np.abs([bounds.least, bounds.largest]).max() < 100


def test_the_text_says_it_once(model):
    text = str(model.formula())
    assert text.count("count as the end") == 1 and " s(x" not in text and "rank" not in text


def test_convex_columns_stay_lines_and_monotone_ones_rise():
    model = fit(convex={0: 1}, monotone={1: 1})
    places = np.zeros((3, 3))
    places[:, 0] = [100, 200, 300]
    a, b, c = model.predict(places)
    assert abs(c - b) > 1e-3 and c - b >= b - a - 1e-9
    places = np.zeros((500, 3))
    places[:, 1] = np.linspace(-50, 50, 500)
    assert (np.diff(model.predict(places)) >= -1e-12).all()


def test_rows_of_weight_0_do_not_count():
    rows, y = np.vstack([X, [[99.0, 99.0, 99.0]]]), np.append(Y, 0.0)
    model = fit(rows, y, sample_weight=np.append(np.ones(300), 0.0), **FITS["auto"])
    np.testing.assert_allclose(model.predict(FAR), model.predict(HELD), rtol=0, atol=1e-12)


def test_constant_columns_missing_cells_and_categories():
    pd = pytest.importorskip("pandas")
    x = X[:, 0].copy()
    x[::7] = np.nan
    frame = pd.DataFrame({"x": x, "one": 1.0, "word": np.where(X[:, 1] > 0, "a", "b")})
    model, other = (fit(frame, extrapolate=how) for how in ("constant", "linear"))
    far = frame.assign(x=x * 50, one=7.0)
    near = far.assign(x=far.x.clip(frame.x.min(), frame.x.max()))
    np.testing.assert_allclose(model.predict(far), model.predict(near), rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.predict(frame), other.predict(frame), rtol=0, atol=1e-11)


def test_a_fit_that_starts_from_a_model_has_the_ranges_of_its_own_rows():
    first = fit(X[np.abs(X[:, 0]) < 0.5], Y[np.abs(X[:, 0]) < 0.5])
    model = fit(start=first)
    np.testing.assert_allclose(model.predict(FAR), model.predict(HELD), rtol=0, atol=1e-12)
    assert np.ptp(model.predict(np.linspace(0.6, 2, 9)[:, None] * [1.0, 0.0, 0.0])) > 0.1


def test_given_alpha_stays_linear_and_bad_words_are_refused():
    plain, linear = fit(alpha=0.01), fit(alpha=0.01, extrapolate="linear")
    np.testing.assert_array_equal(plain.predict(FAR), linear.predict(FAR))
    with pytest.raises(ValueError, match="extrapolate"):
        fit(extrapolate="flat")
