"""mfga and mfga_path: what their arguments do, beside scikit-learn, and input of any kind and size.
test_plain.py compares with Algorithm 1 as printed; the bounds are among the invariants."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, Ridge

import sparserf as srf
from sparserf import mfga, mfga_path
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.mfga import MfgaOptions, algorithm_1, greedy_fits, read_call
from sparserf.features import sines_of_few

from ..conftest import (
    each_intercept,
    each_loss,
    ignore_convergence,
    phi_oracle,
)

RNG = np.random.default_rng(0)
N, D = 120, 5
X = RNG.normal(size=(N, D))
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * np.sin(3 * X[:, 3]) + 0.1 * RNG.standard_normal(N)
SIGNS = np.where(Y > 0.1, 1, -1)
THREE = np.digitize(Y, [-0.6, 0.7])
MAPS = srf.Taylor(2, gamma=0.1), srf.Linear()
ATOMS = MAPS[0].draw(None, D).concat(MAPS[1].draw(None, D))


def target(loss):
    """Return the target Y, or signs for a classifier."""
    return Y if loss == "squared" else SIGNS


def fit(X=X, y=None, path=False, **options):
    """Fit 12 of the Taylor features and inputs in ATOMS, unless other options are given."""
    options = {"features": ATOMS, "n_nonzero_coefs": 12, "alpha": 1e-3, **options}
    return (mfga_path if path else mfga)(
        X, target(options.get("loss", "squared")) if y is None else y, **options
    )


def test_the_coefficients_are_those_of_scikit_learn_on_the_same_columns():
    phi = phi_oracle(ATOMS, X)
    model = fit(alpha=0.01)
    ridge = Ridge(alpha=N * 0.01, tol=1e-12).fit(phi[:, model.support], Y)
    np.testing.assert_allclose(model.coef, ridge.coef_, rtol=1e-9)
    model = fit(loss="logistic", alpha=0.01)
    logistic = LogisticRegression(C=1 / (N * 0.01), tol=1e-10, max_iter=10_000).fit(
        phi[:, model.support], SIGNS
    )
    np.testing.assert_allclose(model.coef, logistic.coef_[0], rtol=1e-4, atol=1e-5)
    assert model.intercept == pytest.approx(logistic.intercept_[0], abs=1e-4)


# What the arguments do


@each_loss
@pytest.mark.parametrize("n_select", [1, 4])
def test_the_path_holds_the_model_of_every_round(loss, n_select):
    models = fit(path=True, loss=loss, n_select=n_select)
    assert len(models) == -(-12 // n_select)
    for model in (models[0], models[-1]):
        alone = fit(loss=loss, n_select=n_select, n_nonzero_coefs=len(model.support))
        np.testing.assert_array_equal(model.coef, alone.coef)
        assert model.info == alone.info
    objective = np.array(models[-1].info.objective)
    assert len(objective) == len(models) and (np.diff(objective) <= 0).all()


@each_loss
@pytest.mark.parametrize(
    "features", [ATOMS, (*MAPS, srf.Fourier(gamma=0.3)), "laplacian", srf.Taylor(3), None], ids=str
)
def test_csr_and_float32_give_the_same_model(loss, features):
    sparse = np.where(RNG.random(X.shape) < 0.4, 0.0, X)
    options = {"loss": loss, "features": features, "scale": None, "n_components": 60, "rng": 0}
    dense = fit(sparse, **options)
    csr = fit(csr_array(sparse), **options)
    np.testing.assert_array_equal(dense.support, csr.support)
    np.testing.assert_allclose(
        dense.predict(sparse) * 1.0, csr.predict(csr_array(sparse)), rtol=1e-6, atol=1e-8
    )
    single = fit(sparse.astype(np.float32), **options)
    assert single.predict(sparse.astype(np.float32)).dtype == (
        np.float32 if loss == "squared" else dense.predict(X).dtype
    )
    assert single.info.objective[-1] == pytest.approx(dense.info.objective[-1], rel=1e-3)


@each_loss
def test_three_classes(loss):
    if loss == "squared":
        return
    model = fit(y=THREE, loss=loss)
    assert model.coef.shape == (3, len(model.support)) and np.mean(model.predict(X) == THREE) > 0.75
    for k in range(3):
        alone = fit(y=THREE == k, loss=loss)
        mine = model.coef[k] != 0
        np.testing.assert_array_equal(model.support[mine], alone.support)
        np.testing.assert_array_equal(model.coef[k][mine], alone.coef)
    models = fit(y=THREE, loss=loss, path=True, n_select=5)
    np.testing.assert_array_equal(
        models[-1].predict(X), fit(y=THREE, loss=loss, n_select=5).predict(X)
    )


@each_intercept
def test_several_outputs_share_a_support(fit_intercept):
    """The feature of the largest joint gradient enters; on the support each output is fitted on its
    own."""
    two = np.column_stack([Y, 0.5 * X[:, 3] * X[:, 4] - X[:, 1] + 2, np.zeros(N)])
    models = fit(y=two, path=True, n_nonzero_coefs=8, alpha=0.01, fit_intercept=fit_intercept)
    phi, support = phi_oracle(ATOMS, X), []
    residual = two - two.mean(axis=0) * fit_intercept
    for model in models:
        size = np.linalg.norm(phi.T @ residual, axis=1)
        size[support] = 0
        support.append(int(size.argmax()))
        ridge = Ridge(alpha=N * 0.01, fit_intercept=fit_intercept, tol=1e-12).fit(
            phi[:, np.sort(support)], two
        )
        residual = two - ridge.predict(phi[:, np.sort(support)])
        np.testing.assert_array_equal(model.support, np.sort(support))
        np.testing.assert_allclose(model.coef, ridge.coef_, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            model.predict(X), ridge.predict(phi[:, np.sort(support)]), rtol=1e-8, atol=1e-9
        )


def test_nu_weighs_the_kernels():
    """The features of map p are sqrt(nu_p) phi: the fit is that to columns scaled by hand."""
    model = fit(features=MAPS, nu=[3, 1], alpha=0.01, scale=None)
    scaled = np.sqrt(np.repeat([0.75, 0.25], [len(ATOMS) - D, D])) * phi_oracle(ATOMS, X)
    by_hand = mfga(scaled, Y, features=srf.Linear(), n_nonzero_coefs=12, alpha=0.01, scale=None)
    np.testing.assert_array_equal(model.support, by_hand.support)
    np.testing.assert_allclose(model.coef, by_hand.coef, rtol=1e-8)
    np.testing.assert_array_equal(fit(features=MAPS).coef, fit(features=MAPS, nu=[7, 7]).coef)
    heavy = fit(features=MAPS, nu=[1e-6, 1], scale=None)
    assert (heavy.support >= len(ATOMS) - D).sum() == D


def test_tol_ends_early():
    models = fit(path=True, n_nonzero_coefs=20)
    objective = models[-1].info.objective
    for tol in (1e300, 0.5, 0.05, 1e-3):
        ended = fit(n_nonzero_coefs=20, tol=tol).info.objective
        before = (0.5 * Y.var(), *objective)
        expected = next(
            (i + 1 for i in range(20) if before[i] - objective[i] < tol * objective[i]), 20
        )
        assert ended == objective[:expected]


def test_callback_sees_each_round_and_may_end_it():
    seen = []
    model = fit(callback=seen.append)
    assert [info.n_nonzero for info in seen] == list(range(1, 13)) and seen[-1] == model.info
    ended = fit(callback=lambda info: info.n_nonzero == 5)
    assert len(ended.support) == 5 and ended.info.converged


def test_dependent_features_are_skipped():
    """Copies, sums and constants among the columns never enter twice, and never end the fit."""
    base = RNG.normal(size=(N, 6))
    A = np.column_stack([base, base, base @ RNG.normal(size=(6, 4)), np.ones(N), np.zeros(N)])
    y = base @ np.arange(1, 7) + 0.01 * RNG.standard_normal(N)
    for normalize in (False, True):
        model = mfga(
            A,
            y,
            features=srf.Linear(),
            n_nonzero_coefs=16,
            alpha=0,
            normalize=normalize,
            n_select=2,
        )
        assert len(model.support) == 6 and np.isfinite(model.coef).all()
        best = np.linalg.lstsq(np.column_stack([base, np.ones(N)]), y)[0]
        np.testing.assert_allclose(
            model.predict(A), np.column_stack([base, np.ones(N)]) @ best, rtol=1e-8, atol=1e-8
        )


def test_an_exact_fit_ends_at_rest():
    y = phi_oracle(ATOMS, X)[:, [3, 9, 14]] @ [2.0, -1.0, 0.5]
    model = fit(y=y, alpha=0, normalize=True, n_nonzero_coefs=20, fit_intercept=False)
    assert 3 <= len(model.support) <= 6
    np.testing.assert_allclose(model.predict(X), y, atol=1e-10)
    constant = fit(y=np.full(N, 3.0))
    assert (
        len(constant.support) == 0
        and constant.intercept == 3.0
        and constant.predict(X[:2]).tolist() == [3.0, 3.0]
    )


@pytest.mark.parametrize("n_select", [1, 2])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e7])
def test_columns_far_from_zero(offset, n_select):
    """The features are told apart by centred inner products; two features a round lose them at an
    offset of 1e7."""
    A = RNG.normal(size=(300, 20))
    y = A[:, :6] @ [5, 4, 3, 2, 1, 0.5] + RNG.normal(size=300)
    options = {"features": srf.Linear(), "alpha": 1e-3, "scale": None, "n_select": n_select}
    model = mfga(A + offset, y, n_nonzero_coefs=8, **options)
    centred = mfga(A, y, n_nonzero_coefs=8, **options)
    if offset < 1e6 or n_select == 1:
        assert set(range(6)) <= set(model.support)
        assert model.info.objective[-1] == pytest.approx(centred.info.objective[-1], rel=1e-6)
    true = np.mean((model.predict(A + offset) - y) ** 2) / 2 + 5e-4 * model.coef @ model.coef
    assert model.info.objective[-1] == pytest.approx(true, rel=1e-5 if offset > 1e6 else 1e-8)


@pytest.mark.parametrize(("loss", "n_select"), [("squared", 1), ("squared", 2), ("logistic", 1)])
def test_float32_columns_far_from_zero(loss, n_select):
    A = RNG.normal(size=(2000, 5))
    y = A @ [1, 0.5, 0.4, 0.3, 0.2] + 0.1 * RNG.standard_normal(2000)
    y = y if loss == "squared" else y > 0
    A = (A + 3000).astype(np.float32)
    options = {"n_nonzero_coefs": 5, "features": srf.Linear(), "alpha": 1e-3, "scale": None}
    options |= {"loss": loss, "n_select": n_select}
    single, double = mfga(A, y, **options), mfga(A.astype(np.float64), y, **options)
    assert len(single.support) == len(double.support) == 5
    assert single.info.objective[-1] == pytest.approx(double.info.objective[-1], rel=1e-3)


@pytest.mark.parametrize("size", [1e3, 1e12, 1e150])
def test_a_constant_column_has_no_term(size):
    """A constant column has a term only where there is no intercept: for the squared loss, one
    feature a round."""
    A = RNG.normal(size=(200, 4))
    y = A @ [4, 3, 2, 1] + 0.1 * RNG.standard_normal(200) + 1
    A[:, 1] = size / 3
    options = {
        "n_nonzero_coefs": 4,
        "features": srf.Linear(),
        "alpha": 1e-3,
        "scale": None,
        "sample_weight": RNG.uniform(1, 2, 200),
    }
    assert list(mfga(A, y, **options).support) == [0, 2, 3]
    assert 1 in mfga(A, y, fit_intercept=False, **options).support


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_the_objective_is_right_where_the_fit_is_nearly_exact(noise):
    A = RNG.normal(size=(200, 20))
    y = A[:, :4] @ [4, 3, 2, 1] + noise * RNG.standard_normal(200) + 1e3
    models = mfga_path(A, y, n_nonzero_coefs=8, features=srf.Linear(), alpha=0, scale=None)
    for model in models:
        residual = y - (A[:, model.support] @ model.coef + model.intercept)
        assert model.info.objective[-1] == pytest.approx(
            np.mean(residual**2) / 2, rel=1e-7 if noise > 1e-8 else 1e-4
        )


def test_nearly_dependent_columns():
    A = RNG.normal(size=(200, 20))
    A[:, 10:] = A[:, :1] + 1e-5 * RNG.normal(size=(200, 10))
    y = (A[:, 10] - A[:, 11]) / 1e-5 + A[:, 1] + 0.1 * RNG.standard_normal(200)
    model = mfga(A, y, n_nonzero_coefs=20, features=srf.Linear(), alpha=0, scale=None)
    assert model.info.objective[-1] == pytest.approx(
        np.mean((model.predict(A) - y) ** 2) / 2, rel=1e-6
    )
    theirs = (
        np.column_stack([A, np.ones(200)])
        @ np.linalg.lstsq(np.column_stack([A, np.ones(200)]), y)[0]
    )
    assert model.info.objective[-1] == pytest.approx(np.mean((theirs - y) ** 2) / 2, rel=1e-3)


@pytest.mark.parametrize("n", [57, 60, 120, 131])
@pytest.mark.parametrize("value", [2.0, 0.1, 1 / 3, 1e6])
def test_a_constant_target_has_no_terms(n, value):
    for y in (np.full(n, value), np.full((n, 2), value)):
        model = mfga(X[:n, :4] if n <= N else RNG.normal(size=(n, 4)), y, n_nonzero_coefs=3)
        assert len(model.support) == 0 and np.ravel(model.intercept) == pytest.approx(
            value, rel=1e-12
        )


def test_normalize_tells_large_means_from_constants():
    A = RNG.normal(size=(300, 6))
    y = A @ [5, 4, 3, 2, 1, 0.5]
    model = mfga(A + 1e5, y, n_nonzero_coefs=6, features=srf.Linear(), normalize=True)
    assert len(model.support) == 6


def test_best_phase_is_the_best():
    draws = srf.Fourier(gamma=0.3).draw(50, D, rng=0)
    model = fit(features=draws, best_phase=True, n_nonzero_coefs=1, fit_intercept=False)
    block, drawn = model.features.blocks[0], draws.blocks[0]
    np.testing.assert_array_equal(block.weights[0], drawn.weights[model.support[0]])
    phases = np.linspace(0, 2 * np.pi, 721)
    t = X @ drawn.weights.T
    gradient = np.abs([Y @ np.cos(t + phase) for phase in phases])  # (phases, features)
    assert model.support[0] == gradient.max(axis=0).argmax()
    assert np.abs(Y @ np.cos(X @ block.weights[0] + block.offset[0])) >= gradient.max() * (1 - 1e-9)
    both = [
        fit(
            features=(srf.Fourier(gamma=0.3), MAPS[0]),
            best_phase=b,
            n_nonzero_coefs=15,
            n_components=300,
            rng=0,
        )
        for b in (True, False)
    ]
    assert both[0].info.objective[-1] < both[1].info.objective[-1]


def test_best_phase_of_several_outputs():
    draws = srf.Fourier(gamma=0.3).draw(20, D, rng=0)
    two = np.column_stack([Y, X[:, 1]])
    model = fit(y=two, features=draws, best_phase=True, n_nonzero_coefs=1, fit_intercept=False)
    t = X @ draws.blocks[0].weights.T
    gradient = np.array(
        [
            np.linalg.norm(two.T @ np.cos(t + phase), axis=0)
            for phase in np.linspace(0, 2 * np.pi, 721)
        ]
    )
    assert model.support[0] == gradient.max(axis=0).argmax()
    block = model.features.blocks[0]
    chosen = np.linalg.norm(two.T @ np.cos(X @ block.weights[0] + block.offset[0]))
    assert chosen >= gradient.max() * (1 - 1e-9)


def test_the_default_features():
    """They are monomials, the columns, and sines of one and of two; with gamma those of the
    paper."""
    options = {"n_nonzero_coefs": 5, "alpha": 1e-3, "scale": None, "rng": 0}
    model = mfga(X, Y, **options)
    maps = srf.Taylor(2), srf.Linear(), *sines_of_few(D)
    by_hand = mfga(X, Y, features=maps, n_components=2000, **options)
    np.testing.assert_array_equal(model.coef, by_hand.coef)
    assert model.info.n_drawn == 21 + 5 + 2000
    papers = mfga(X, Y, features=(srf.Taylor(2, "knn"), srf.Linear()), **options)
    np.testing.assert_array_equal(mfga(X, Y, gamma="knn", **options).coef, papers.coef)
    assert papers.info.n_drawn == 26
    wide = csr_array((np.ones(40), (np.arange(40), 70 * np.arange(40))), shape=(40, 3000))
    assert mfga(wide, np.arange(40.0), **options).info.n_drawn == 6001 + 2000


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"n_nonzero_coefs": 27}, "n_nonzero_coefs must be at most 26"),
        ({"nu": [1, 1]}, "nu must be None"),
        ({"features": MAPS, "nu": [1]}, "nu"),
        ({"features": MAPS, "nu": [1, 0]}, "nu"),
        ({"features": MAPS, "nu": [1, np.inf]}, "nu"),
        ({"features": MAPS, "gamma": 0.1}, "gamma"),
        ({"normalize": True, "best_phase": True}, "normalize"),
        ({"y": np.stack([SIGNS, SIGNS], axis=1), "loss": "logistic"}, "y"),
    ],
)
@pytest.mark.parametrize("path", [False, True])
def test_arguments_that_do_not_go_together_are_named(change, names, path):
    with pytest.raises(ValueError, match=names):
        fit(**change, path=path)


@pytest.mark.filterwarnings("ignore:.*columns of very different spread")
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@each_loss
def test_columns_of_extreme_size(kind, loss):
    """Finite numbers never give NaN: the fit returns a model, or an error that names X."""
    few = {"n_nonzero_coefs": 8, "alpha": 1e-3, "loss": loss}
    for scale in (1e-300, 1e-160, 1e-30, 1e30, 1e140):
        model = mfga(kind(X * np.array([scale, 1, 1, 1, 1])), target(loss), **few)
        assert np.isfinite(model.coef).all() and np.isfinite(model.info.objective).all()
        assert np.isfinite(model.decision_function(kind(X))).all()
    for scale in (1e160, 1e300):
        if kind is np.asarray:
            # has units of columns
            mfga(X * np.array([scale, 1, 1, 1, 1]), target(loss), **few)
        with pytest.raises(ValueError, match="X must be of moderate size"):
            mfga(kind(X * np.array([scale, 1, 1, 1, 1])), target(loss), scale=None, **few)


@ignore_convergence
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_separable_classes_without_a_penalty_end(loss):
    model = fit(y=X[:, 0] > 0, loss=loss, alpha=0, n_nonzero_coefs=5, features=srf.Linear())
    assert np.isfinite(model.coef).all() and np.mean(model.predict(X) == (X[:, 0] > 0)) == 1
    assert 0 <= model.info.dual_gap <= model.info.objective[-1] or model.info.objective[-1] < 1e-9


@pytest.mark.parametrize("alpha", [1e-9, 1e-14])
def test_the_best_is_found_where_it_is_a_billionth_of_the_start(alpha):
    """Of one input that tells the classes apart the coefficient w solves alpha w = expit(-w)."""
    x = np.repeat([-1.0, 1.0], 20)
    model = mfga(
        x[:, None],
        x,
        features=srf.Linear(),
        loss="logistic",
        alpha=alpha,
        n_nonzero_coefs=1,
        fit_intercept=False,
        scale=None,
    )
    w = brentq(lambda w: alpha * w - expit(-w), 0, 100)
    best = np.log1p(np.exp(-w)) + alpha * w**2 / 2
    assert model.info.objective[-1] == pytest.approx(best, rel=1e-8, abs=0)


@pytest.mark.parametrize("kind", ["squared", "two outputs", "logistic", "huber"])
def test_another_penalty_on_the_same_terms(kind):
    """Fits on folds try several penalties on each support: each gives what a fit with that penalty
    gives on these terms."""
    y = {"logistic": SIGNS, "two outputs": np.column_stack([Y, 3 * X[:, 0]])}.get(kind, Y)
    loss = "squared" if kind == "two outputs" else kind
    more = {"n_components": None, "nu": None, "gamma": None, "normalize": False}
    options = MfgaOptions(
        features=ATOMS, alpha=1e-2, n_select=2, best_phase=False, rows=RowSetting(loss=loss), **more
    )
    task, _ = read_call(X, y, options)
    (fit,) = greedy_fits(task, ATOMS, 8, options)
    for _ in algorithm_1([fit], 8, 2):
        pass
    before = fit.solution()
    for alpha in (1.0, 1e-4):
        _, features, w, b = fit.solution_with(alpha)
        alone = mfga(X, y, features=features, n_nonzero_coefs=8, alpha=alpha, loss=loss)
        intercept = np.reshape(b, -1) + np.reshape(task.centers[0], -1)
        np.testing.assert_allclose(alone.coef, w, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(np.reshape(alone.intercept, -1), intercept, rtol=1e-3, atol=1e-5)
    for old, new in zip(before, fit.solution(), strict=True):
        if not isinstance(old, srf.FeatureSet):
            np.testing.assert_array_equal(old, new)
