"""Sample weights: a row of weight zero is as good as absent, one of weight k counts as k rows,
wherever rows are counted."""

from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import sparserf as srf
from sparserf import sparse_rf

from ..conftest import LOSSES, each_loss, friedman, ignore_convergence, signs
from ..features.sets import each_layout, random_cosines, resolved

N, D = 100, 4


def pruned(X, y, sample_weight, loss, of_model="squared"):
    """Fit a model to other rows, and prune it on these."""
    Z = np.random.default_rng(1).standard_normal((N, D))
    f = np.sin(Z[:, 0])
    targets = {"squared": f, "poisson": np.exp(f), "logistic": f > 0}
    how = {"features": "gaussian", "alpha": 1e-3, "n_components": 200, "rng": 0}
    model = sparse_rf(Z, targets[of_model], loss=of_model, **how)
    return srf.prune(model, X, sample_weight=sample_weight)


def path(fit, *args, **options):
    """Return the last model of a path."""
    return fit(*args, **options)[-1]


EVERY_LOSS = {
    "auto": partial(sparse_rf, rng=0, n_components=100),
    "auto, alpha given": partial(sparse_rf, rng=0, n_components=400, batch_size=200, alpha=0.05),
    "gaussian": partial(sparse_rf, rng=0, n_components=200, features="gaussian"),
    "laplacian, knn": partial(
        sparse_rf, rng=0, n_components=200, alpha=0.01, features="laplacian", gamma="knn"
    ),
    "perceptron, exact": partial(
        sparse_rf, rng=0, n_components=200, alpha=0.01, features="perceptron", exact=True
    ),
    "path": partial(
        path, srf.sparse_rf_path, rng=0, n_components=200, n_alphas=4, features="matern32"
    ),
    "harfe": partial(srf.harfe, rng=0, n_components=100),
    "harfe, more terms than rows": partial(
        srf.harfe, rng=0, n_components=200, n_nonzero_coefs=120, alpha=1e-4, max_iter=3
    ),
    "harfe_path": partial(path, srf.harfe_path, rng=0, n_components=100),
    "mfga": partial(srf.mfga, rng=0, n_nonzero_coefs=8, alpha=1e-3),
    "mfga, normalized": partial(
        srf.mfga, rng=0, n_nonzero_coefs=8, alpha=1e-3, normalize=True, n_select=2
    ),
    "drp": partial(srf.drp, rng=0, alpha=0.01),
    "drp, a sketch": partial(srf.drp, rng=0, alpha=1.0, n_projections=60, accelerate=False),
    "drp_path": partial(path, srf.drp_path, rng=0, alphas=[1.0, 0.1]),
}
ONE_LOSS = {
    "prune": (pruned, "squared"),
    "rules": (
        partial(sparse_rf, rng=0, n_components=200, alpha=0.05, features=srf.Rules()),
        "squared",
    ),
}
FITS = {f"{name}-{loss}": (fit, loss) for name, fit in EVERY_LOSS.items() for loss in LOSSES}
FITS |= ONE_LOSS


def bits(model):
    """Return all fields of a model."""
    fields = dict(vars(model))
    fields |= {
        f"features {k}, {name}": value
        for k, block in enumerate(fields.pop("features").blocks)
        for name, value in vars(block).items()
        if not name.startswith("_")
    }
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    return {name: repr(value) for name, value in fields.items() if name not in arrays} | {
        name: value.tolist() for name, value in arrays.items()
    }


@ignore_convergence
@each_layout
@pytest.mark.parametrize("name", FITS)
def test_rows_of_weight_zero_do_not_matter(name, layout):
    """Not a bit changes, however many such rows there are, of whatever scale, target or class."""
    fit, loss = FITS[name]
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((N, D)), rng.integers(1, 4, N).astype(float)
    real = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N)
    y, strangers = (
        (real, [1e300, -1e8])
        if loss == "squared"
        else (np.array(["a", "b"])[(real > 0) * 1], ["b", "c"])
    )
    without = fit(layout(X), y, sample_weight=weight, loss=loss)
    for size, stranger, n_more in ((1e300, strangers[0], 7), (1e4, strangers[1], 150)):
        there = np.sort(rng.choice(N + n_more, N, replace=False))
        Z, zero, z = (
            size * rng.standard_normal((N + n_more, D)),
            np.zeros(N + n_more),
            np.full(N + n_more, stranger),
        )
        Z[there], zero[there], z[there] = X, weight, y
        assert bits(fit(layout(Z), z, sample_weight=zero, loss=loss)) == bits(without)


@ignore_convergence
@pytest.mark.parametrize(
    ("fit", "loss"),
    [
        *(
            (partial(sparse_rf, features="gaussian"), loss)
            for loss in ("squared_hinge", "logistic")
        ),
        *((srf.drp, loss) for loss in ("squared_hinge", "smoothed_hinge", "logistic")),
    ],
)
def test_classes_are_those_of_the_rows_that_count(rng, fit, loss):
    X, y = rng.uniform(-2, 2, (60, 3)), np.arange(60) % 3
    with np.errstate(all="raise", under="ignore"):
        model = fit(X, y, alpha=0.01, loss=loss, sample_weight=(y < 2) * 1.0, rng=0)
    assert (
        model.classes.tolist() == [0, 1]
        and np.isfinite([*np.ravel(model.coef), model.intercept]).all()
    )
    answers = [
        model.decision_function(X),
        *([model.predict_proba(X)] if loss == "logistic" else []),
    ]
    assert [answer.shape for answer in answers] == [(60,), (60, 2)][: len(answers)]
    assert all(np.isfinite(answer).all() for answer in answers) and not np.any(
        model.predict(X) == 2
    )
    assert np.isfinite([*model.info.objective, model.info.dual_gap]).all()


def test_labels_need_two_classes_where_the_weight_is(rng):
    X, y = rng.standard_normal((60, 2)), np.arange(60) % 3
    with pytest.raises(
        ValueError, match="y must have at least two classes in rows of positive weight"
    ):
        sparse_rf(X, y, loss="logistic", sample_weight=(y < 1) * 1.0)


def test_prune_needs_a_row(rng):
    X = rng.standard_normal((30, 2))
    model = sparse_rf(X, X[:, 0], features="gaussian", alpha=1e-3, rng=0)
    with pytest.raises(ValueError, match="X must have at least one row"):
        srf.prune(model, X[:0])


# Fits whose features do not depend on the rows: weights are copies.
FIXED = srf.Fourier(gamma=0.3).draw(150, D, rng=0)
OF_FIXED = {
    "sparse_rf": partial(sparse_rf, features=FIXED, alpha=0.01, exact=True, tol=1e-9),
    "sparse_rf, no intercept": partial(
        sparse_rf, features=FIXED, alpha=0.01, exact=True, tol=1e-9, fit_intercept=False
    ),
    "harfe": partial(srf.harfe, features=FIXED, alpha=1e-3, n_nonzero_coefs=15, max_iter=5),
    "harfe, more terms than rows": partial(
        srf.harfe, features=FIXED, alpha=1e-2, n_nonzero_coefs=120, max_iter=5
    ),
    "mfga": partial(srf.mfga, features=FIXED, n_nonzero_coefs=12, alpha=1e-3),
    "drp": partial(srf.drp, alpha=0.01, tol=1e-9, rng=0),
}
OTHERS = {
    "prune": (pruned, "squared"),
    "prune, counts": (partial(pruned, of_model="poisson"), "squared"),
    "prune, labels": (partial(pruned, of_model="logistic"), "squared"),
}
COUNTED = {(name, loss): fit for name, fit in OF_FIXED.items() for loss in LOSSES}
COUNTED |= {(name, "multinomial"): OF_FIXED[name] for name in ("sparse_rf", "harfe", "mfga", "drp")}
COUNTED |= {
    ("sparse_rf", loss): OF_FIXED["sparse_rf"]
    for loss in ("huber", "quantile", "poisson", "gamma", "tweedie")
}
COUNTED |= {(name, loss): fit for name, (fit, loss) in OTHERS.items()}


@ignore_convergence
@pytest.mark.parametrize(("name", "loss"), COUNTED)
def test_a_weight_counts_as_copies_in_any_order(name, loss):
    rng, fit = np.random.default_rng(0), COUNTED[name, loss]
    X, k = rng.standard_normal((N, D)), rng.integers(0, 4, N)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(N)
    if loss in ("poisson", "gamma", "tweedie"):
        y = np.exp(y)
    elif loss in ("multinomial", *LOSSES[1:]):
        y = np.digitize(y, [-0.5, 0.5] if loss == "multinomial" else [0.0])
    how = {"loss": loss}
    copies = np.repeat(np.arange(N), k)[rng.permutation(k.sum())]
    one, again, other = (
        fit(X, y, sample_weight=k, **how),
        fit(X, y, sample_weight=k * 2.0**900, **how),
        fit(X[copies], y[copies], sample_weight=None, **how),
    )
    assert one.coef.tobytes() == again.coef.tobytes()
    told = [getattr(model, "loss_parameters", None) for model in (one, other)]
    assert told[0] == pytest.approx(told[1])
    f = other.decision_function(X)
    np.testing.assert_allclose(one.decision_function(X), f, atol=1e-4 * np.std(f))


# What is measured on X


@pytest.fixture
def counted(rng):
    """Return X, weights of mean 1 in whole ratios that follow the size of the rows, and X with as
    many copies of each row."""
    X = np.where(
        rng.random((120, 5)) < 0.3,
        0.0,
        rng.standard_normal((120, 5)) * [1, 10, 1e-3, 4, 2] + [0, 20, 0, 0, 0],
    )
    k = 1 + (np.abs(X[:, 0]) > 0.5) * 2 + (np.arange(120) % 3 == 0) * 5
    return X, k / k.mean(), np.repeat(X, k, axis=0)


@each_layout
def test_units_count_rows_by_their_weights(counted, layout):
    X, weight, copies = counted
    of_copies, of_weights, alike = (
        random_cosines(layout(Z), np.random.default_rng(seed), s).units
        for seed, (Z, s) in enumerate(((copies, None), (X, weight), (X, None)))
    )
    np.testing.assert_allclose(of_weights, of_copies, rtol=1e-9)
    by_deviation = of_weights[0] * copies.std(axis=0)
    np.testing.assert_allclose(by_deviation, by_deviation[0], rtol=1e-9)
    assert np.abs(alike / of_copies - 1).max() > 0.05


@each_layout
@pytest.mark.parametrize(
    "features", [srf.Fourier(), srf.Fourier("laplacian"), srf.Taylor(2), srf.Perceptron()]
)
def test_bandwidths_count_rows_by_their_weights(counted, features, layout):
    X, weight, copies = counted
    of_weights = resolved(features, layout(X), 0, weight)
    of_copies, alike = (resolved(features, layout(Z), 1) for Z in (copies, X))
    name = "radius" if isinstance(features, srf.Perceptron) else "gamma"
    assert getattr(of_weights, name) == pytest.approx(getattr(of_copies, name), rel=1e-9)
    assert getattr(alike, name) != pytest.approx(getattr(of_copies, name), rel=1e-3)
    if name == "radius":
        np.testing.assert_allclose(of_weights.center, copies.mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("n_neighbours", [1, 7, 30, 1000])
def test_neighbours_count_by_their_weights(rng, monkeypatch, n_neighbours):
    """The neighbours counted are those whose weights sum to NEIGHBOURS: twice as many copies where
    the mean weight is 2."""
    X, k = rng.standard_normal((90, 3)), np.arange(90) % 3 + 1
    knn, neighbours = srf.Fourier(gamma="knn"), "sparserf.features.bandwidth.NEIGHBOURS"
    monkeypatch.setattr(neighbours, n_neighbours)
    of_weights = resolved(knn, X, 0, k / 2)
    monkeypatch.setattr(neighbours, 2 * n_neighbours)
    of_copies = resolved(knn, np.repeat(X, k, axis=0))
    assert of_weights.gamma == pytest.approx(of_copies.gamma, rel=1e-12)


@pytest.mark.slow
def test_the_bandwidth_of_many_rows_is_of_draws_by_their_weights(rng):
    """Of two clusters, the tight one holds nearly all pairs by weight and hardly any by number of
    rows."""
    X = rng.standard_normal((6000, 3)) * np.where(np.arange(6000) < 1000, 0.1, 1.0)[:, None]
    weight = np.where(np.arange(6000) < 1000, 30.0, 1.0)
    weight /= weight.mean()
    widths = [resolved(srf.Fourier(), X, seed, weight).gamma for seed in range(5)]
    k = np.where(np.arange(6000) < 1000, 30, 1)[::3]
    # pairs of copies are 0 apart
    distances = pdist(np.repeat(X[::3], k, axis=0)[::10])
    exact = 1 / np.median(distances[distances > 0]) ** 2
    np.testing.assert_allclose(np.array(widths) / widths[0], 1, rtol=0.2)
    assert 0.4 * exact < widths[0] < 0.6 * exact
    assert resolved(srf.Fourier(), X, 0).gamma < widths[0] / 9


# The fit


@each_loss
def test_weights_are_copies_where_draws_and_penalty_are_the_same(rng, loss, monkeypatch):
    """The models agree up to rounding, once the draws are the same: how many random numbers come
    before them depends on the number of rows."""
    monkeypatch.setattr(
        "sparserf.features.learning.draw_seed", lambda rng: np.random.SeedSequence(5)
    )
    X, y = friedman(rng, 150, 6)
    y, k = signs(y, loss), 1 + (X[:, 0] > 0.6) * 3 + np.arange(150) % 2
    # tight: within tol any solution will do
    how = {"alpha": 0.03, "n_components": 1000, "loss": loss, "tol": 1e-8, "rng": 0}
    weighted, copies = (
        sparse_rf(X, y, sample_weight=k, **how),
        sparse_rf(np.repeat(X, k, axis=0), np.repeat(y, k), **how),
    )
    alike = sparse_rf(X, y, **how)
    size = np.std(copies.decision_function(X))
    assert len(copies.coef) > 10
    np.testing.assert_allclose(
        weighted.decision_function(X), copies.decision_function(X), atol=1e-5 * size
    )
    assert np.abs(alike.decision_function(X) - copies.decision_function(X)).max() > 0.05 * size


@pytest.mark.nightly
def test_weights_and_copies_predict_alike_where_the_penalty_is_the_same():
    """Over other draws the mean errors agree within three standard errors of the difference, which
    are at most a tenth of the error."""
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = friedman(rng, 1200, 6)
        k, (Z, z) = rng.integers(1, 4, 200), (X[200:], y[200:])
        X, y = X[:200], y[:200]
        how = {"alpha": 0.1, "n_components": 1000}
        models = (
            sparse_rf(X, y, sample_weight=k, rng=seed, **how),
            sparse_rf(np.repeat(X, k, axis=0), np.repeat(y, k), rng=seed + 100, **how),
        )
        errors.append([np.mean((model.predict(Z) - z) ** 2) for model in models])
    difference, mean = np.diff(errors, axis=1), np.mean(errors)
    error = difference.std(ddof=1) / np.sqrt(20)
    assert error < 0.033 * mean
    assert abs(difference.mean()) < 3 * error


def test_rows_of_hardly_any_weight_hardly_matter(rng):
    """Rows of another scale and of hardly any weight hardly change deviations, distances or the
    model."""
    X, y = friedman(rng, 1500, 5)
    far, weight = X[:500].copy(), np.ones(500)
    far[:100] *= 1000
    weight[:100] = 1e-9
    how = {"alpha": 0.1, "n_components": 2000, "rng": 0}
    without = sparse_rf(X[100:500], y[100:500], **how)
    model = sparse_rf(far, y[:500], sample_weight=weight, **how)
    errors = [np.mean((one.predict(X[500:]) - y[500:]) ** 2) for one in (model, without)]
    assert errors[0] < 1.3 * errors[1]


@each_loss
@pytest.mark.parametrize(
    "options", [{}, {"features": srf.Fourier(gamma=0.5), "alpha": 0.01}], ids=str
)
def test_weights_that_are_all_alike_are_none(rng, loss, options):
    X, y = friedman(rng, 60, 6)
    how = {"loss": loss, "n_components": 50, "rng": 0, **options}
    assert bits(sparse_rf(X, signs(y, loss), sample_weight=np.full(60, 3), **how)) == bits(
        sparse_rf(X, signs(y, loss), **how)
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_row_may_have_almost_all_the_weight(loss):
    """Coefficients of terms that only other rows need are then tiny; draws follow them all the
    same."""
    rng = np.random.default_rng(0)
    X, weight = rng.uniform(-2, 2, (220, 3)), np.ones(220)
    weight[3] = 1e300
    y = np.sin(3 * X[:, 0]) * np.sign(X[:, 1])
    model = sparse_rf(X, y if loss == "squared" else y > 0, loss=loss, sample_weight=weight, rng=0)
    assert np.isfinite(
        model.decision_function(X) if model.classes is not None else model.predict(X)
    ).all()
