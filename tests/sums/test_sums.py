"""Sums: fits and losses from one pass over the rows are those of the functions that read the rows
themselves."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import Sums
from sparserf.rows import as_rows, core_block, read_rows
from sparserf.sums import moments as _moments

from ..conftest import phi_oracle
from ..rows.homes import HOMES, OtherDevice, in_chunks

N, D = 900, 6
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 3 + 0.1 * RNG.standard_normal(N)
TWO = np.column_stack([Y, X[:, 3] ** 2 + X[:, 0]])
WEIGHT = np.where(RNG.random(N) < 0.2, 0.0, 7 * RNG.random(N) + 0.5)
FOLD = RNG.integers(0, 5, N)
INPUTS = srf.Linear().draw(None, D)
# Features in several blocks, bounded and unbounded, some with a mean far from 0.
FEATURES = (
    srf.RandomNeurons("relu")
    .draw(20, D, rng=1)
    .concat(srf.Fourier(gamma=0.3).draw(60, D, rng=0))
    .concat(INPUTS)
)
FEATURES = FEATURES.concat(srf.Taylor(2, 0.1).draw(None, D)).take(RNG.permutation(100))

FITS = {
    "sparse_rf": (srf.sparse_rf, {"alpha": 0.02, "tol": 1e-12}),
    "sparse_rf exact": (
        srf.sparse_rf,
        {"alpha": 0.01, "tol": 1e-12, "exact": True, "batch_size": 30},
    ),
    "sparse_rf one round a batch": (srf.sparse_rf, {"alpha": 0.01, "batch_size": 30, "tol": 1e-3}),
    "sparse_rf_path": (srf.sparse_rf_path, {"n_alphas": 5, "tol": 1e-12}),
    "harfe": (srf.harfe, {"n_nonzero_coefs": 15, "alpha": 1e-4}),
    "harfe positive": (
        srf.harfe,
        {"n_nonzero_coefs": 15, "alpha": 1e-4, "selection": "positive"},
    ),
    "harfe as printed": (
        srf.harfe,
        {
            "n_nonzero_coefs": 9,
            "alpha": 1e-4,
            "backtracking": False,
            "start": "zero",
            "normalize": False,
        },
    ),
    "harfe_path": (srf.harfe_path, {"n_nonzero_coefs": [3, 10, 20], "alpha": 0.01}),
    "mfga": (srf.mfga, {"n_nonzero_coefs": 15, "alpha": 1e-3}),
    "mfga some a round": (srf.mfga, {"n_nonzero_coefs": 12, "n_select": 4, "alpha": 0.1}),
    "mfga matching pursuit": (srf.mfga, {"n_nonzero_coefs": 10, "normalize": True, "alpha": 0.0}),
    "mfga_path": (srf.mfga_path, {"n_nonzero_coefs": 6, "tol": 0.01}),
}


def each(models):
    """Return a list of models, of one or several."""
    return models if isinstance(models, list) else [models]


def assert_same(models, others, tol=1e-9):
    """Check that models have the same terms, and coefficients that agree to the tolerance."""
    models, others = each(models), each(others)
    assert len(models) == len(others)
    for one, other in zip(models, others, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
        scale = np.abs(other.coef).max(initial=1e-3)
        np.testing.assert_allclose(one.coef, other.coef, atol=tol * scale, rtol=0)
        np.testing.assert_allclose(one.intercept, other.intercept, atol=tol * max(scale, 1), rtol=0)
        np.testing.assert_allclose(one.info.objective, other.info.objective, rtol=tol, atol=1e-14)
        assert one.info.converged == other.info.converged


def plain_loss(model, X, y, weight=None):
    """Return half the mean squared error of a model, in plain NumPy."""
    f = model.intercept + phi_oracle(model.features, X) @ model.coef.T
    return np.average(((f - y) ** 2).reshape(len(X), -1).sum(axis=1) / 2, weights=weight)


def plain_moments(features, X, y, weight=None):
    """Return the weight, mean and covariance of features and targets, in plain NumPy."""
    columns = np.column_stack([phi_oracle(features, X), y])
    weight = np.ones(len(X)) if weight is None else weight
    mean = weight @ columns / weight.sum()
    return weight.sum(), mean, (columns - mean).T * weight @ (columns - mean) / weight.sum()


def assert_moments(sums, expected, tol=1e-12):
    """Check sums against plain moments."""
    for actual, plain in zip((sums.weight, sums.mean, sums.covariance), expected, strict=True):
        np.testing.assert_allclose(actual, plain, rtol=tol, atol=tol * np.abs(plain).max())


# What one pass gives


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("y", [Y, TWO], ids=["one", "two"])
def test_sums_are_the_moments(weight, y):
    assert_moments(
        Sums.of(X, y, FEATURES, sample_weight=weight), plain_moments(FEATURES, X, y, weight)
    )
    folds = Sums.of_folds(X, y, FEATURES, FOLD, sample_weight=weight)
    for k, fold in enumerate(folds):
        its = None if weight is None else weight[FOLD == k]
        assert_moments(fold, plain_moments(FEATURES, X[FOLD == k], y[FOLD == k], its))


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["", "through zero"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("name", FITS)
def test_the_same_fit_as_from_the_rows(name, weight, fit_intercept):
    method, options = FITS[name]
    options = {"fit_intercept": fit_intercept, **options}
    expected = each(method(X, Y, features=FEATURES, sample_weight=weight, **options))
    sums = Sums.of(X, Y, FEATURES, sample_weight=weight)
    models = each(sums.fit(method, **options))
    assert_same(models, expected)
    for model, of_rows in zip(models, expected, strict=True):
        np.testing.assert_allclose(model.predict(X), of_rows.predict(X), atol=1e-8)
        for either in (model, of_rows):
            np.testing.assert_allclose(
                sums.mean_loss(either), plain_loss(either, X, Y, weight), rtol=1e-10
            )


def test_batches_are_those_of_the_inputs(monkeypatch):
    # one batch; by 100 inputs it would be 64
    monkeypatch.setattr("sparserf.features.dictionary.BATCH_WEIGHTS", 100 * D)
    assert_same(
        SUMS.fit(srf.sparse_rf, alpha=0.01), srf.sparse_rf(X, Y, features=FEATURES, alpha=0.01)
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_outputs(fit_intercept):
    sums, options = (
        Sums.of(X, TWO, FEATURES),
        {"n_nonzero_coefs": 10, "alpha": 1e-3, "fit_intercept": fit_intercept},
    )
    model = sums.fit(srf.mfga, **options)
    assert_same(model, srf.mfga(X, TWO, features=FEATURES, **options))
    np.testing.assert_allclose(sums.mean_loss(model), plain_loss(model, X, TWO), rtol=1e-10)
    with pytest.warns(UserWarning, match="y has shape .*, one column"):
        as_column = Sums.of(X, Y[:, None], FEATURES)
    assert_same(as_column.fit(srf.mfga, **options), srf.mfga(X, Y, features=FEATURES, **options))


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.01}, {"alpha": 0.01, "n_projections": 20, "rng": 0}],
    ids=["", "sketched"],
)
def test_drp_takes_all_features(options):
    Phi = FEATURES.transform(X)
    model, expected = (
        Sums.of(X, TWO, FEATURES).fit(srf.drp, **options, tol=1e-10),
        srf.drp(Phi, TWO, tol=1e-10, scale=None, **options),
    )
    np.testing.assert_allclose(model.coef, expected.coef, atol=1e-9 * np.abs(expected.coef).max())
    np.testing.assert_allclose(model.predict(X), expected.predict(Phi), atol=1e-8)
    models = Sums.of(X, Y, FEATURES).fit(srf.drp_path, alphas=[0.1, 0.01])
    assert [model.info.alpha for model in models] == [0.1, 0.01]
    sums = Sums.of(X, Y, FEATURES)
    np.testing.assert_allclose(
        sums.mean_loss(sums.fit(srf.drp, alpha=0.01)), plain_loss(models[1], X, Y), rtol=1e-6
    )


# Sums add up


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("seed", range(5))
def test_any_cut_of_the_rows_adds_up(weight, seed):
    rng = np.random.default_rng(seed)
    part = rng.permutation(
        np.concatenate([np.arange(4), rng.integers(0, rng.integers(4, 40), N - 4)])
    )
    parts = [part == k for k in rng.permutation(part.max() + 1) if (part == k).any()]
    parts = [some for some in parts if weight is None or weight[some].any()]
    sums = sum(
        Sums.of(X[some], Y[some], FEATURES, sample_weight=None if weight is None else weight[some])
        for some in parts
    )
    whole = Sums.of(X, Y, FEATURES, sample_weight=weight)
    assert_moments(sums, (whole.weight, whole.mean, whole.covariance))
    assert_same(
        sums.fit(srf.harfe, n_nonzero_coefs=12, alpha=1e-4),
        whole.fit(srf.harfe, n_nonzero_coefs=12, alpha=1e-4),
    )


def test_a_weight_counts_as_so_many_rows_beside_those_of_other_sums():
    few, copies = (
        Sums.of(X[:100], Y[:100], FEATURES, sample_weight=np.full(100, 3.0)),
        np.repeat(np.arange(100), 3),
    )
    more = Sums.of(X[100:], Y[100:], FEATURES)
    index = np.concatenate([copies, np.arange(100, N)])
    assert_moments(few + more, plain_moments(FEATURES, X[index], Y[index]))


@pytest.mark.parametrize("k", range(5))
def test_what_is_left_without_a_fold(k):
    folds = Sums.of_folds(X, Y, FEATURES, FOLD, sample_weight=WEIGHT)
    left, there = sum(folds) - folds[k], FOLD != k
    assert_moments(left, plain_moments(FEATURES, X[there], Y[there], WEIGHT[there]))
    back = left + folds[k]
    assert_moments(back, plain_moments(FEATURES, X, Y, WEIGHT))


@pytest.mark.parametrize("name", ["sparse_rf_path", "harfe_path", "mfga_path"])
def test_validation_says_what_fitting_again_would(name):
    method, options = FITS[name]
    options = {**options, "alphas": [0.1, 0.03, 0.01]} if name == "sparse_rf_path" else options
    folds = Sums.of_folds(X, Y, FEATURES, FOLD)
    for k, fold in enumerate(folds):
        models = (sum(folds) - fold).fit(method, **options)
        again = method(X[FOLD != k], Y[FOLD != k], features=FEATURES, **options)
        losses = [plain_loss(model, X[FOLD == k], Y[FOLD == k]) for model in again]
        np.testing.assert_allclose([fold.mean_loss(model) for model in models], losses, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(5))
def test_features_that_do_not_vary_in_what_is_left(k):
    """Where a fold held all that varied in a column, the rounding left after subtracting it is not
    taken for a feature."""
    some, rng = FOLD == k, np.random.default_rng(k)
    Z = 100 * rng.standard_normal((N, D))
    Z[~some, 3], Z[~some, 2] = 0, 0.25
    y = 0.01 * (Z[:, 0] + Z[:, 3]) + 1e-3 * rng.standard_normal(N)
    folds = Sums.of_folds(Z, y, INPUTS, FOLD)
    left = sum(folds) - folds[k]
    assert (
        not left.fit(srf.mfga, n_nonzero_coefs=6, normalize=True, alpha=0.0)
        .features.input_usage()[2:4]
        .any()
    )
    for method, options in FITS.values():
        options = {**options, "n_nonzero_coefs": 4} if options.get("n_nonzero_coefs") else options
        options = {**options, "n_nonzero_coefs": [2, 4]} if method is srf.harfe_path else options
        for fit_intercept in (True, False):
            model = each(left.fit(method, fit_intercept=fit_intercept, **options))[-1]
            expected = each(
                method(Z[~some], y[~some], features=INPUTS, fit_intercept=fit_intercept, **options)
            )[-1]
            assert not np.isin(3, model.support)
            np.testing.assert_allclose(
                model.predict(Z[~some]), expected.predict(Z[~some]), atol=1e-8
            )


# Rows anywhere, once


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_rows_of_any_home(home, weight, monkeypatch):
    OtherDevice.patch(monkeypatch)
    n = {"dask": 1200}.get(home, N)  # the partitions add up to 1200 rows
    index = np.arange(n) % N
    some = None if weight is None else weight[index]
    there, expected = HOMES[home](X[index]), plain_moments(FEATURES, X[index], Y[index], some)
    assert_moments(Sums.of(there, Y[index], FEATURES, sample_weight=some), expected)
    # blocks lack some folds
    folds = Sums.of_folds(there, Y[index], FEATURES, np.arange(n) // 450, sample_weight=some)
    assert_moments(sum(folds), expected)


def test_sparse_rows_and_single_precision():
    Z = np.where(RNG.random((N, D)) < 0.5, 0.0, X)
    assert_moments(Sums.of(csr_array(Z), Y, FEATURES), plain_moments(FEATURES, Z, Y))
    single = X.astype(np.float32)
    sums = Sums.of(single, Y, FEATURES)
    columns = np.column_stack([FEATURES.transform(single), Y])  # of float32 values
    expected = np.cov(columns.T, bias=True)
    np.testing.assert_allclose(sums.covariance[:-1, :-1], expected[:-1, :-1], atol=1e-12)
    # monomials times y are float32
    np.testing.assert_allclose(sums.covariance, expected, atol=2e-7)
    bounded = srf.Fourier(gamma=0.3).draw(60, D, rng=0)
    columns = np.column_stack([bounded.transform(single), Y])
    np.testing.assert_allclose(
        Sums.of(single, Y, bounded).covariance, np.cov(columns.T, bias=True), atol=1e-12
    )
    np.testing.assert_allclose(
        sums.fit(srf.harfe, n_nonzero_coefs=10, alpha=1e-4).predict(X),
        srf.harfe(X, Y, features=FEATURES, n_nonzero_coefs=10, alpha=1e-4).predict(X),
        atol=1e-4,
    )


def test_one_pass_and_no_more(monkeypatch):
    asked, seen = [], []

    def read(start, stop):
        """Return some rows, and note where they begin."""
        asked.append(start)
        return X[start:stop]

    monkeypatch.setattr(
        _moments, "read_rows", lambda *args, **how: seen.append(read_rows(*args, **how)) or seen[-1]
    )
    folds = Sums.of_folds(srf.Chunks(read, X.shape, block_rows=200), Y, FEATURES, FOLD)
    assert seen[0].n_passes == 1
    # The first block is also read to see whether it is a data frame, and for its dtype and layout.
    assert sorted(asked) == [0, 0, 0, 200, 400, 600, 800]
    whole = sum(folds)
    for method, options in FITS.values():
        folds[0].mean_loss(each((whole - folds[0]).fit(method, **options))[0])
    assert len(asked) == 7


def test_the_same_bits_for_any_number_of_workers():
    n = 5000  # several slices
    Z, y = np.tile(X, (6, 1))[:n], np.tile(Y, 6)[:n]
    one, three = (Sums.of(Z, y, FEATURES, workers=workers) for workers in (1, 3))
    assert (
        one.covariance.tobytes() == three.covariance.tobytes()
        and one.mean.tobytes() == three.mean.tobytes()
    )
    assert (
        one.fit(srf.harfe, n_nonzero_coefs=9, alpha=1e-4).coef.tobytes()
        == three.fit(srf.harfe, n_nonzero_coefs=9, alpha=1e-4).coef.tobytes()
    )


def test_no_matrix_of_all_features_is_held():
    # their matrix would take 96 MB
    n, features = 40_000, srf.Fourier(gamma=0.3).draw(300, D, rng=0)
    Z, y = RNG.uniform(-2, 2, (n, D)), RNG.standard_normal(n)
    tracemalloc.start()
    Sums.of(Z, y, features)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < n * len(features) * 8 / 3


@pytest.mark.parametrize("layout", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("panel", [1024, 32], ids=["slices", "panels"])
def test_gram_around_a_center(layout, dtype, panel, monkeypatch):
    monkeypatch.setattr(core_block, "GRAM_PANEL", panel)
    center, h = np.random.default_rng(0).standard_normal(len(FEATURES)), WEIGHT / 7
    Z = layout(np.where(X < 0, 0, X).astype(dtype))
    gram = as_rows(Z).sum(lambda block, h: block.gram(FEATURES, FEATURES, h, None, center), h)
    around = phi_oracle(FEATURES, Z) - center
    size = (np.abs(around) + 1).T * h @ (np.abs(around) + 1)
    assert (np.abs(gram - around.T * h @ around) <= 50 * np.finfo(dtype).eps * size).all()


# Numerics


@pytest.mark.parametrize("name", [name for name in FITS if name != "sparse_rf one round a batch"])
def test_large_means_do_not_cancel(name):
    """Rows a million away, shifted exactly as multiples of 2**-20, give the same moments."""
    Z, y = np.round(X * 2**20) / 2**20, np.round(Y * 2**20) / 2**20
    near = plain_moments(INPUTS, Z, y)[2]
    far = sum(Sums.of_folds(Z + 1e6, y - 1e6, INPUTS, FOLD))
    np.testing.assert_allclose(far.covariance, near, atol=1e-9)
    method, options = FITS[name]
    sizes = {srf.harfe: 3, srf.mfga: 3, srf.mfga_path: 3, srf.harfe_path: [1, 3]}
    options = {**options, "n_nonzero_coefs": sizes[method]} if method in sizes else options
    if method in (srf.harfe, srf.harfe_path):
        options = {**options, "normalize": False}  # far away the features have other norms
    expected = each(method(Z, y, features=INPUTS, **options))
    for model, of_near in zip(each(far.fit(method, **options)), expected, strict=True):
        np.testing.assert_array_equal(model.support, of_near.support)
        np.testing.assert_allclose(model.coef, of_near.coef, atol=1e-8)
        np.testing.assert_allclose(model.predict(Z + 1e6) + 1e6, of_near.predict(Z), atol=1e-7)
        np.testing.assert_allclose(far.mean_loss(model), plain_loss(of_near, Z, y), atol=1e-8)


HARD = {
    "constant, zero and the same features": (
        np.column_stack([X[:, 0], np.full(N, 3.7), X[:, 0], 0 * Y, X[:, 4:]]),
        INPUTS,
    ),
    "more features than rows": (X[:60], FEATURES),
    "one row": (X[:1], FEATURES),
    "two rows": (X[:2], FEATURES),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "y", [Y, np.full(N, 2.5), np.zeros(N), 1e-100 * Y], ids=["", "constant", "zero", "small"]
)
@pytest.mark.parametrize("name", HARD)
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_degenerate_rows(name, y, fit_intercept):
    Z, features = HARD[name]
    y = y[: len(Z)]
    sums = Sums.of(Z, y, features)
    for method, options in FITS.values():
        if "n_nonzero_coefs" in options:
            options = {**options, "n_nonzero_coefs": [2, 3] if method is srf.harfe_path else 3}
        if "alpha" in options and method is srf.sparse_rf:
            options = {**options, "alpha": options["alpha"] * np.abs(y).max() or 0.1}
        expected = method(Z, y, features=features, fit_intercept=fit_intercept, **options)
        for model, of_rows in zip(
            each(sums.fit(method, fit_intercept=fit_intercept, **options)),
            each(expected),
            strict=True,
        ):
            scale = np.abs(y).max() or 1.0
            np.testing.assert_allclose(model.predict(Z), of_rows.predict(Z), atol=1e-6 * scale)


def test_rounding_of_a_large_mean_is_no_feature():
    for value in 1e6 + np.random.default_rng(0).random(20):
        Z = np.column_stack([X[:, :2], np.full(N, value)])
        sums = sum(Sums.of_folds(Z, Y, srf.Linear().draw(None, 3), FOLD))
        assert sums.fit(
            srf.mfga, n_nonzero_coefs=3, normalize=True, alpha=0.0
        ).support.tolist() == [0, 1]


def test_no_loss_is_negative():
    for seed in range(20):
        y = X @ np.random.default_rng(seed).standard_normal(D)
        sums = Sums.of(X, y, INPUTS)
        assert 0 <= sums.mean_loss(sums.fit(srf.mfga, n_nonzero_coefs=D, alpha=0.0)) < 1e-13


def test_a_residual_that_squares_still_know():
    """The loss is right down to a residual of 1e-7 of the target, as the class promises."""
    noise = RNG.standard_normal(N)
    for size in (1e-3, 1e-5, 1e-6):
        y = X @ np.arange(1.0, D + 1) + size * noise
        sums = Sums.of(X, y, INPUTS)
        model = sums.fit(srf.drp, alpha=1e-14, tol=1e-4)
        assert sums.mean_loss(model) == pytest.approx(
            plain_loss(model, X, y), rel=1e-13 / size**2 + 1e-9
        )


# What is refused, and what travels


def test_a_warning_points_at_the_caller():
    with pytest.warns(srf.ConvergenceWarning) as caught:
        SUMS.fit(srf.harfe, n_nonzero_coefs=20, alpha=1e-4, max_iter=1, tol=0.0, start="zero")
    assert caught[0].filename == __file__


def test_a_callback_ends_the_fit():
    assert (
        SUMS.fit(
            srf.mfga, n_nonzero_coefs=20, alpha=1e-3, callback=lambda info: info.n_nonzero == 7
        ).support.size
        == 7
    )


def test_sums_can_be_pickled():
    sums = Sums.of(X, Y, FEATURES)
    sums.fit(srf.mfga, n_nonzero_coefs=2, alpha=1e-3)
    again = pickle.loads(pickle.dumps(sums))
    assert len(pickle.dumps(sums)) < 3 * sums.covariance.nbytes / 2
    both = again + sums
    np.testing.assert_allclose(both.covariance, sums.covariance)
    assert both.weight == 2 * N
    assert repr(both) == "Sums(100 features, 1 target, weight=1800)"


SUMS = Sums.of(X, Y, FEATURES)
REFUSED = {
    "a map": (TypeError, "features must be a FeatureSet", lambda: Sums.of(X, Y, srf.Linear())),
    "no feature": (ValueError, "at least one feature", lambda: Sums.of(X, Y, FEATURES.take([]))),
    "other inputs": (
        ValueError,
        "6 inputs of X, got 3",
        lambda: Sums.of(X, Y, srf.Linear().draw(None, 3)),
    ),
    "no row": (ValueError, "at least one row", lambda: Sums.of(X[:0], Y[:0], FEATURES)),
    "y": (ValueError, "y must have shape", lambda: Sums.of(X, Y[:-1], FEATURES)),
    "NaN": (
        ValueError,
        "y must be finite",
        lambda: Sums.of(X, np.where(X[:, 0] > 1, np.nan, Y), FEATURES),
    ),
    "weight": (
        ValueError,
        "sample_weight must not be negative",
        lambda: Sums.of(X, Y, FEATURES, sample_weight=-WEIGHT),
    ),
    "overflow": (ValueError, "moderate size", lambda: Sums.of(X, 1e200 * Y, FEATURES)),
    "overflow of X": (ValueError, "moderate size", lambda: Sums.of(1e200 * X, Y, INPUTS)),
    "overflow of weights": (
        ValueError,
        "moderate size",
        lambda: Sums.of(X, Y, INPUTS, sample_weight=np.full(N, 1e308)),
    ),
    "folds": (
        ValueError,
        r"folds must have shape \(900,\)",
        lambda: Sums.of_folds(X, Y, FEATURES, FOLD[:3]),
    ),
    "fold numbers": (
        TypeError,
        "folds must be a one-dim",
        lambda: Sums.of_folds(X, Y, FEATURES, FOLD + 0.5),
    ),
    "empty fold": (
        ValueError,
        "got none in fold 1",
        lambda: Sums.of_folds(X, Y, FEATURES, np.minimum(FOLD, 1) * 2),
    ),
    "other features": (
        ValueError,
        "the same features",
        lambda: SUMS + Sums.of(X, Y, FEATURES.take(np.arange(100)[::-1])),
    ),
    "other targets": (
        ValueError,
        "as many targets, got 1 and 2",
        lambda: SUMS + Sums.of(X, TWO, FEATURES),
    ),
    "a number": (TypeError, "unsupported operand", lambda: SUMS + 1),
    "minus a number": (TypeError, "unsupported operand", lambda: SUMS - 1),
    "nothing left": (ValueError, "no row is left", lambda: SUMS - SUMS),
    "rows that were not there": (
        ValueError,
        "some of the same rows",
        lambda: SUMS - Sums.of(9 * X[:300], Y[:300], FEATURES),
    ),
    "prune": (ValueError, "method must be one of sparse_rf, ", lambda: SUMS.fit(srf.prune)),
    "a loss": (
        ValueError,
        "loss must be 'squared'",
        lambda: SUMS.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3, loss="logistic"),
    ),
    "alpha": (ValueError, "alpha must be given to sparse_rf", lambda: SUMS.fit(srf.sparse_rf)),
    "terms": (ValueError, "n_nonzero_coefs must be given to harfe", lambda: SUMS.fit(srf.harfe)),
    "weights": (
        ValueError,
        "sample_weight must not",
        lambda: SUMS.fit(srf.drp, alpha=1.0, sample_weight=WEIGHT),
    ),
    "drawing": (
        ValueError,
        "rng must not be given",
        lambda: SUMS.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3, rng=0),
    ),
    "turning": (
        ValueError,
        "best_phase must not",
        lambda: SUMS.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3, best_phase=True),
    ),
    "an option": (
        ValueError,
        "alpha must be finite",
        lambda: SUMS.fit(srf.mfga, n_nonzero_coefs=3, alpha=-1),
    ),
    "a flag": (
        TypeError,
        "fit_intercept must be True",
        lambda: SUMS.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3, fit_intercept="no"),
    ),
    "no model": (TypeError, "model must be a SparseModel", lambda: SUMS.mean_loss(3)),
    "a classifier": (
        ValueError,
        "outputs: 1, got",
        lambda: SUMS.mean_loss(
            srf.mfga(X, Y > 3, features=FEATURES, n_nonzero_coefs=3, alpha=1e-3, loss="logistic")
        ),
    ),
    "outputs": (
        ValueError,
        "outputs: 1, got",
        lambda: SUMS.mean_loss(srf.mfga(X, TWO, features=FEATURES, n_nonzero_coefs=3, alpha=1e-3)),
    ),
    "a model of others": (
        ValueError,
        "the features of these sums",
        lambda: SUMS.mean_loss(
            srf.mfga(
                X, Y, features=FEATURES.take(np.arange(100)[::-1]), n_nonzero_coefs=3, alpha=1e-3
            )
        ),
    ),
    "a model of more": (
        ValueError,
        "the features of these sums",
        lambda: SUMS.mean_loss(
            srf.mfga(
                X, Y, features=INPUTS.scaled(2).concat(FEATURES), n_nonzero_coefs=3, alpha=1e-3
            )
        ),
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused(name):
    error, message, use = REFUSED[name]
    with pytest.raises(error, match=message):
        use()


def test_rows_of_weight_zero_do_not_count():
    Z = X.copy()
    Z[WEIGHT == 0] = 1e200
    sums = Sums.of(Z, Y, FEATURES, sample_weight=WEIGHT)
    assert_moments(sums, plain_moments(FEATURES, X, Y, WEIGHT))
    folds = Sums.of_folds(in_chunks(Z), Y, FEATURES, FOLD, sample_weight=WEIGHT)
    assert_moments(sum(folds), plain_moments(FEATURES, X, Y, WEIGHT))
