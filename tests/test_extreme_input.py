"""sparse_rf, drp and the maps on odd, degenerate and extreme input: the same bits, and finite
answers."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf

from .conftest import KERNELS, bits, convergence_ignored, friedman, ignore_convergence
from .kinds_of_input import check_finite, put, unaligned

pytestmark = pytest.mark.usefixtures("watchdog")
N, D = 60, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(N)
LABELS = np.where(Y > 0, "up", "down")
CSR = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
CLASSIFIERS = ("squared_hinge", "logistic")


def fit(**changes):
    """Fit 200 gaussian features, or with solver=srf.drp the inputs."""
    k = {"X": X, "y": Y, "alpha": 0.01, "rng": 0, **changes}
    solver = k.pop("solver", srf.sparse_rf)
    k = {"features": "gaussian", "n_components": 200, **k} if solver is srf.sparse_rf else k
    return solver(k.pop("X"), k.pop("y"), **k)


def path(**changes):
    """Fit a path of three penalties."""
    k = {"features": "gaussian", "n_alphas": 3, "n_components": 100, "rng": 0, **changes}
    return srf.sparse_rf_path(X, k.pop("y", Y), **k)


# A broken matrix


CRASH = """
import numpy as np, scipy.sparse as sp, sparserf as srf
X = {make}(np.random.default_rng(0).uniform(1, 2, (60, 3)))
{change}
try:
    y, fixed = np.arange(60.0), dict(features="gaussian", alpha=0.1, gamma=1.0, n_components=50)
    srf.sparse_rf(X, y, **fixed, rng=0)
except (ValueError, TypeError) as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "change"),
    [
        ("sp.coo_matrix", "X.row[0] = 10**8"),
        ("sp.coo_array", "X.coords[0][0] = -10**8"),
        ("sp.coo_array", "X.coords[1][0] = 3"),
        ("sp.csc_array", "X.indices[0] = 10**8"),
        ("sp.csc_array", "X.indptr[1] = 10**8"),
        ("sp.bsr_array", "X.indices[0] = 10**8"),
        ("sp.bsr_array", "X.indptr[1] = 10**8"),
    ],
)
def test_broken_matrix_of_another_format_does_not_crash(make, change):
    """scipy converts such a matrix without a check, and writes out of bounds: so a process of its
    own looks."""
    code = CRASH.format(make=make, change=change)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0
    assert "X " in done.stdout


# Odd but legal


def test_mapped_file(tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert bits(fit(X=np.load(tmp_path / "X.npy", mmap_mode="r"))) == bits(fit())


@pytest.mark.parametrize("dtype", ["i8", "?", "f2", ">f8", "f4", "O", "u1"])
@pytest.mark.filterwarnings("ignore:y is 0")
def test_kind_of_target_and_weight(dtype):
    y, weight = np.abs(np.round(Y)).astype(dtype), (1 + np.arange(N) % 2).astype(dtype)
    plain = fit(y=y.astype(float), sample_weight=weight.astype(float))
    assert bits(fit(y=y, sample_weight=weight)) == bits(plain)
    assert bits(fit(y=y.tolist(), sample_weight=weight.tolist())) == bits(plain)
    assert bits(fit(y=y[::-1].copy()[::-1], sample_weight=np.repeat(weight, 3)[::3])) == bits(plain)


def test_unaligned_target_and_weight():
    assert bits(fit(y=unaligned(Y), sample_weight=unaligned(np.ones(N)))) == bits(fit())


@pytest.mark.parametrize("order", [None, 2])
@pytest.mark.parametrize("kernel", ["perceptron", "neurons", "laplacian"])
def test_empty_rows_and_columns_of_csr(order, kernel):
    features = kernel if kernel != "neurons" else srf.RandomNeurons(order=order)
    dense = np.where(np.arange(N)[:, None] % 3 == 0, 0.0, X) * [1, 0, 1]
    model = check_finite(fit(X=sp.csr_array(dense), features=features), sp.csr_array(dense))
    np.testing.assert_allclose(model.predict(dense), model.predict(sp.csr_array(dense)), atol=1e-9)
    check_finite(fit(X=sp.csr_array((N, D)), features=features), sp.csr_array((N, D)))


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("features", ["gaussian", "perceptron"])
def test_input_is_never_modified(name, loss, features):
    given = {
        "X": X.copy(),
        "y": Y.copy() if loss == "squared" else LABELS.copy(),
        "sample_weight": np.abs(Y) + 1,
    }
    before = given[name].tobytes()
    model = fit(**given, loss=loss, features=features, exact=True)
    model.predict(given["X"])
    assert given[name].tobytes() == before
    assert given[name].flags.writeable


@pytest.mark.parametrize("scalar", [np.float32, np.float64, np.longdouble, Fraction])
def test_scalars_of_any_kind(scalar):
    assert bits(
        fit(alpha=scalar(1) / scalar(64), tol=scalar(1) / scalar(1024), gamma=scalar(1))
    ) == bits(fit(alpha=1 / 64, tol=1 / 1024, gamma=1))


@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.int64])
def test_integers_of_any_kind(integer):
    given = {"n_components": 100, "batch_size": 50, "max_iter": 100, "workers": 2}
    assert bits(fit(**{name: integer(value) for name, value in given.items()})) == bits(
        fit(**given)
    )


# Degenerate data


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -7.0, 1e-200, 1e100 / 3, 1e-310])
@pytest.mark.parametrize("n", [1, 2, 57, 60])
@pytest.mark.parametrize("exact", [False, True])
def test_constant_target(value, n, exact):
    model = check_finite(fit(X=X[:n], y=np.full(n, value), exact=exact), X)
    assert len(model.features) == len(model.coef) == len(model.support) == 0
    assert np.all(model.predict(X) == model.intercept)
    np.testing.assert_allclose(model.intercept, value, rtol=1e-14)


def test_constant_target_weighted_and_without_intercept():
    assert len(fit(y=np.full(N, 0.1), sample_weight=np.abs(Y)).features) == 0
    assert fit(y=np.zeros(N), fit_intercept=False).intercept == 0.0
    assert fit(y=np.full(N, 0.1), fit_intercept=False).intercept == 0.0


def test_path_of_a_constant_target():
    for model in path(y=np.full(N, 0.1), n_alphas=5):
        assert len(check_finite(model, X).features) == 0


@pytest.mark.parametrize(
    "features",
    ["gaussian", "laplacian", "perceptron", srf.Linear(), srf.RandomNeurons("relu"), srf.Taylor(2)],
)
@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (X[:1], slice(None)),
        (X[:2], slice(None)),
        (X, slice(0, 1)),
        (np.tile(X[:1], (N, 1)), slice(None)),
        (X * [1, 0, 0], slice(None)),
        (X * 0 + 5, slice(None)),
        (np.repeat(X[:5], 12, axis=0), slice(None)),
        (np.broadcast_to(X[:, :1], X.shape), slice(None)),
        (X[:2] * 0, slice(0, 1)),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_few_or_equal_rows_and_columns(features, rows, columns, kind):
    Z = kind(rows[:, columns])
    check_finite(fit(X=Z, y=Y[: len(rows)], features=features), Z)
    if len(rows) > 1:
        check_finite(
            fit(
                X=Z,
                y=LABELS[: len(rows)] if len(rows) > 2 else ["a", "b"],
                features=features,
                loss="logistic",
            ),
            Z,
        )


@pytest.mark.parametrize("loss", ["squared", *CLASSIFIERS])
def test_dictionary_of_repeats(loss):
    features = srf.Fourier(gamma=0.5).draw(50, D, rng=0)
    model = fit(
        y=Y if loss == "squared" else LABELS,
        loss=loss,
        features=features.take(np.tile(np.arange(50), 3)),
    )
    check_finite(model, X)
    assert model.info.converged


@pytest.mark.parametrize("spread", [1e-300, 1e300])
@pytest.mark.parametrize("loss", ["squared", *CLASSIFIERS])
def test_weights_of_any_size(spread, loss):
    y = Y if loss == "squared" else LABELS
    np.testing.assert_allclose(
        fit(y=y, loss=loss, sample_weight=np.full(N, spread)).coef, fit(y=y, loss=loss).coef
    )
    with convergence_ignored():
        check_finite(fit(y=y, loss=loss, sample_weight=put(np.ones(N), 0, spread)), X)


# Extreme numbers


@pytest.mark.parametrize("size", [1e-310, 1e155, 1e200, 1e307, 1.7e308])
def test_target_whose_square_is_not_a_float(size):
    y = Y / np.abs(Y).max() * size
    model = check_finite(fit(y=y, alpha=0.01 * size), X)
    assert 0.1 * size < np.abs(model.predict(X)).max() < size


@pytest.mark.parametrize("size", [1e-200, 1e-310])
def test_stopped_early_on_a_tiny_target(size):
    with pytest.warns(srf.ConvergenceWarning, match="above tol"):
        fit(y=Y * size, alpha=1e-3 * size, max_iter=1)


def test_large_target_beside_float32():
    model = fit(X=X.astype(np.float32), y=Y * 1e100, alpha=1e98)
    f = model.predict(X.astype(np.float32))
    assert f.dtype == np.float32
    assert not np.isnan(f).any()


MAPS = [
    *KERNELS,
    "perceptron",
    srf.RandomNeurons("tanh", order=1),
    srf.Taylor(2),
    srf.Taylor(3, "knn"),
]


@pytest.mark.parametrize("features", MAPS, ids=str)
@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-160, 1e160, 1e300, 8.9e307])
@pytest.mark.parametrize("columns", [[0], [0, 1, 2]])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_of_extreme_size(features, scale, columns, kind):
    Z = X.copy()
    Z[:, columns] *= scale
    with convergence_ignored():
        check_finite(fit(X=kind(Z), features=features, n_components=100, max_iter=30), kind(Z))


@pytest.mark.parametrize("features", MAPS, ids=str)
@pytest.mark.parametrize("scale", [1e-44, 1e-40, 1e-30, 1e30, 1.6e38])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_float32_of_extreme_size(features, scale, kind):
    Z = kind((X * scale).astype(np.float32))
    with convergence_ignored():
        model = check_finite(fit(X=Z, features=features, n_components=100, max_iter=30), Z)
    assert model.predict(Z).dtype == np.float32


@pytest.mark.parametrize("features", [srf.Linear(), srf.RandomNeurons("relu")], ids=str)
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 1e-300),
        (np.float64, 1e-200),
        (np.float64, 1e-160),
        (np.float64, 1e100),
        (np.float64, 1e150),
        (np.float64, 1e200),
        (np.float64, 8e307),
        (np.float32, 1e-40),
        (np.float32, 1e15),
        (np.float32, 1e25),
        (np.float32, 1.6e38),
    ],
)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_unbounded_features_of_extreme_size(features, dtype, scale, loss):
    """A fit gives a finite model, or an error that says what is wrong with X: nothing else."""
    Z = (X * scale).astype(dtype)
    try:
        with convergence_ignored():
            model = fit(
                X=Z,
                y=Y if loss == "squared" else LABELS,
                loss=loss,
                features=features,
                alpha=1e-3 * scale,
            )
    except ValueError as error:
        assert str(error).startswith("X must be of moderate size")  # noqa: PT017
        assert scale > 1e10
    else:
        check_finite(model, Z)


FAR = [
    srf.Linear(),
    srf.RandomNeurons("relu"),
    srf.Fourier(gamma=1.0),
    srf.Perceptron(radius=1.0),
    srf.Taylor(4),
]
FAR += [srf.Bumps(20)]


@pytest.mark.parametrize("features", FAR, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predict_far_away_is_not_nan(features, dtype):
    """The largest rows there are, with coefficients of both signs, are refused or predicted as
    infinite at worst, never as NaN."""
    model = fit(y=50 * X[:, 0] - 50 * X[:, 1] + np.abs(X[:, 2]), features=features)
    far = (np.sign(np.random.default_rng(0).standard_normal((20, D))) * np.finfo(dtype).max).astype(
        dtype
    )
    try:
        f = model.predict(far)
    except ValueError as error:
        assert str(error).startswith("X must be of moderate size")  # noqa: PT017
    else:
        assert not np.isnan(f).any()


@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cauchy", "matern12"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extreme_gamma(gamma, kernel, dtype):
    with convergence_ignored():
        check_finite(
            fit(X=X.astype(dtype), features=kernel, gamma=gamma, n_components=100, max_iter=30),
            X.astype(dtype),
        )


@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 1e-30, 1e30, 1e150, 1e300])
@pytest.mark.parametrize("degree", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_extreme_gamma_of_products(gamma, degree, dtype, kind, loss):
    Z = kind(X.astype(dtype))
    with convergence_ignored():
        model = fit(
            X=Z,
            y=Y if loss == "squared" else LABELS,
            loss=loss,
            features=srf.Taylor(degree, gamma),
            max_iter=30,
        )
    check_finite(model, Z)


@pytest.mark.parametrize(
    "features",
    [
        srf.RandomNeurons("tanh", scale=1e150),
        srf.RandomNeurons("sin", scale=1e150, weights="uniform"),
        srf.RandomNeurons("sign", scale=1e150, weights="cauchy"),
        srf.RandomNeurons("cos", scale=5e-324),
        srf.Perceptron(radius=1e150),
        srf.Perceptron(radius=5e-324),
        srf.Perceptron(radius=1.0, center=np.full(D, 1e150)),
        srf.Bumps(20, 5e-324),
        srf.Bumps(20, 1e300),
        srf.Bumps(np.full((3, D), 1e150)),
        srf.Bumps(np.full((3, D), 1e308), 1e300),
    ],
    ids=str,
)
def test_extreme_maps(features):
    with convergence_ignored():
        check_finite(fit(features=features, max_iter=30), X)


@pytest.mark.parametrize("loss", ["squared", *CLASSIFIERS])
@pytest.mark.parametrize("alpha", [1e-100, 1e-12, 1e-8, 1e-6, 1e3, 1e150, 1.7e308])
def test_extreme_alpha(loss, alpha, monkeypatch):
    """The fit ends, no worse than without terms, and its gap bounds the distance to the optimum."""
    # without it fits that cannot converge take 100 times as long
    monkeypatch.setattr("sparserf.solvers.budget.FIT_WORK", 1.5e9)
    with convergence_ignored():
        model = fit(y=Y if loss == "squared" else LABELS, loss=loss, alpha=alpha, exact=True)
    check_finite(model, X)
    assert model.info.alpha == alpha
    assert (len(model.features) == 0) == (alpha > 1)
    assert model.info.objective[-1] <= (np.log(2) if loss == "logistic" else 1)
    if alpha <= 1e-8 and loss != "squared_hinge":
        assert model.info.objective[-1] < 1e-3


@pytest.mark.parametrize("loss", ["squared", *CLASSIFIERS])
@pytest.mark.parametrize("tol", [1e-300, 1e-16, 1e-14, 1e-12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_beyond_floating_point(loss, tol, dtype):
    """The fit ends, and the gap that it tells is that of the model, not of an earlier round."""
    with convergence_ignored():
        model = fit(
            X=X.astype(dtype), y=Y if loss == "squared" else LABELS, loss=loss, tol=tol, exact=True
        )
    assert model.info.dual_gap <= 1e-6 * model.info.objective[-1]


@pytest.mark.parametrize("loss", ["squared", *CLASSIFIERS])
def test_max_iter_of_one_warns(loss):
    with pytest.warns(srf.ConvergenceWarning, match="max_iter"):
        model = fit(y=Y if loss == "squared" else LABELS, loss=loss, alpha=1e-4, max_iter=1)
    assert not check_finite(model, X).info.converged


@pytest.mark.parametrize("ratio", [1e-300, 5e-324, 1.0])
def test_extreme_paths(ratio):
    with convergence_ignored():
        models = path(alpha_min_ratio=ratio, n_components=20, max_iter=10)
    assert all(model.info.alpha > 0 for model in models)
    assert [check_finite(model, X).info.alpha for model in models] == sorted(
        (m.info.alpha for m in models), reverse=True
    )


# Searches, with alpha=None


def search(X, y, **options):
    """Fit with a search for alpha and few draws, and check that all numbers are finite."""
    model = check_finite(srf.sparse_rf(X, y, **{"n_components": 300, "rng": 0, **options}), X)
    assert np.isfinite(model.info.validation_loss)
    assert model.info.alpha is None or options.get("features", "auto") != "auto"
    assert model.info.dual_gap is None
    return model


SCALES = {
    "one": np.ones(6),
    "spread": np.array([1e-280, 1e-100, 1e-5, 1.0, 1e100, 1e200]),
    "tiny": np.full(6, 1e-280),
    "subnormal": np.full(6, 1e-310),
    "large": np.full(6, 1e200),
    "largest": np.full(6, 1e300),
}
SINGLE = {
    "one": 1,
    "spread": [1e-41, 1e-20, 1, 1e10, 1e30, 1e37],
    "tiny": 1e-34,
    "subnormal": 1e-42,
    "largest": 1e37,
}


@pytest.mark.parametrize(("layout", "loss"), [(np.asarray, "logistic"), (sp.csr_array, "squared")])
@pytest.mark.slow
def test_columns_of_any_scale(layout, loss):
    """The fit sees the shape of columns of any scale beside constant ones, unless no float can
    scale them up."""
    rng = np.random.default_rng(42)
    X = rng.standard_normal((200, 6))
    y = np.sin(2 * X[:, 3]) + 0.1 * rng.standard_normal(200)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)

    def quality(Z):
        Z = np.insert(np.insert(Z, 2, 0.0, axis=1), 5, np.abs(Z).max(), axis=1)
        f = search(layout(Z), y, loss=loss, effort=0.1).decision_function(layout(Z))
        return np.corrcoef(f, y)[0, 1] if np.ptp(f) > 0 else 0.0

    for scales, dtype in ((SCALES, np.float64), (SINGLE, np.float32)):
        for name, scale in scales.items():
            r = quality((X.astype(dtype) * np.array(scale, dtype)).astype(dtype))
            assert r > 0.65 or name == "subnormal", (name, dtype, r)


@pytest.mark.parametrize("value", [0.0, 1.0, 3.7, 1e5, 1e200])
@pytest.mark.parametrize("n", [2, 6, 50])
@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@ignore_convergence  # all gradients are rounding errors
def test_constant_inputs(value, n, features, loss):
    X, y = np.full((n, 3), value), Y[:n] if loss == "squared" else np.arange(n) % 2
    if n > 3 or loss == "squared":
        assert len(search(X, y, features=features, loss=loss).coef) == 0
        assert len(search(sp.csr_array(X), y, features=features, loss=loss).coef) == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-100, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("features", ["auto", "gaussian"])
def test_targets_of_any_size(size, features):
    rng = np.random.default_rng(42)
    X, y = friedman(rng, 200, 5)
    model, plain = search(X, y * size, features=features), search(X, y, features=features)
    assert np.corrcoef(model.predict(X) / size, plain.predict(X))[0, 1] > 0.95
    if 1e-150 < size < 1e150:  # squares of other sizes are no floats
        assert model.info.validation_loss / size / size == pytest.approx(
            plain.info.validation_loss, rel=0.5
        )


@pytest.mark.parametrize("heavy", [1e12, 1e100])
@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic", "squared_hinge", "quantile"])
@pytest.mark.filterwarnings("ignore:sample_weight")
def test_a_row_of_nearly_all_the_weight(loss, heavy):
    """The fold that lacks it has columns that are nearly constant, and a penalty of nearly nothing:
    what rounding makes of a gradient is not fitted."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (120, 3))
        f = np.sin(2 * X[:, 0]) + (X[:, 1] > 0)
        y = rng.poisson(np.exp(f)) if loss == "poisson" else f + 0.1 * rng.normal(size=120)
        y = np.where(y > 0.5, 1.0, -1.0) if loss in CLASSIFIERS else y
        weight = np.ones(120)
        weight[7] = heavy
        search(X, y, loss=loss, sample_weight=weight, effort=0.2, n_components=None)


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "most"), [(150, 100), pytest.param(1500, 1024, marks=pytest.mark.nightly)]
)
def test_more_columns_than_it_sees(d, most, monkeypatch):
    """The columns of large variance matter, dense and CSR. On fewer rows a linear model might
    predict as well."""
    monkeypatch.setattr("sparserf.features.learning.MOST_INPUTS", most)
    monkeypatch.setattr("sparserf.features.rules.MOST_COLUMNS", most)
    rng = np.random.default_rng(42)
    X = np.where(rng.random((1000, d)) < 0.02, rng.standard_normal((1000, d)), 0.0)
    large = slice(d // 2, d // 2 + 3)
    X[:, large] = 3 * rng.uniform(-1, 1, (1000, 3))
    y = X[:, d // 2] * X[:, d // 2 + 1] + 3 * np.cos(X[:, d // 2 + 2])
    for layout in (sp.csr_array, np.asarray):
        model = search(layout(X), y, effort=0.1)
        assert model.n_features_in == d and np.corrcoef(model.predict(layout(X)), y)[0, 1] > 0.9
        assert model.input_usage()[large].sum() > 0
