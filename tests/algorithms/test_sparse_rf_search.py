"""sparse_rf with alpha=None: the penalty is chosen by held-out rows, a linear model is taken where
it does as well, and several models are averaged and pruned."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

import sparserf as srf
from sparserf import sparse_rf, sparse_rf_path
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.sparse_rf import budget as _budget
from sparserf.algorithms.sparse_rf import descent as _descent
from sparserf.algorithms.sparse_rf import held_out as _held_out
from sparserf.algorithms.sparse_rf import search as _search
from sparserf.algorithms.sparse_rf.descent import L1Fit
from sparserf.algorithms.sparse_rf.fits import fits_of
from sparserf.algorithms.sparse_rf.held_out import HeldOutLosses, gain, in_question
from sparserf.algorithms.sparse_rf.options import SparseRFOptions
from sparserf.algorithms.task import Task, model_of
from sparserf.columns.encodings import fit_sparse_stage
from sparserf.features import FIRST_DRAW, LinearFunctions, linear_functions
from sparserf.model import FitInfo
from sparserf.rows import as_rows, core_block

from ..conftest import VALUE, bits, each_loss, friedman, ignore_convergence, phi_oracle, signs

# The penalty


@pytest.mark.parametrize(
    ("features", "loss"),
    [*(("auto", loss) for loss in VALUE), ("gaussian", "squared"), ("perceptron", "logistic")],
)
@pytest.mark.slow
def test_alpha_is_chosen_about_as_well_as_by_the_test_rows(rng, features, loss, monkeypatch):
    # whose ridge is another penalty
    monkeypatch.setattr(_search, "may_have_bumps", lambda *about: False)
    X, y = friedman(rng, 1000, 5)
    X_test, y_test = friedman(rng, 2000, 5)
    y_test = y_test if loss == "squared" else np.sign(y_test - np.median(y))
    y = signs(y, loss)
    how = {"features": features, "loss": loss, "n_components": 1000, "rng": 0}

    def error(model):
        return VALUE[loss](model.decision_function(X_test), y_test).mean()

    model = sparse_rf(X, y, **how)
    assert (
        model.info.converged
        and model.info.dual_gap <= _descent.BatchRules().search_tol * model.info.objective[-1]
    )
    best = min(
        error(m)
        for m in sparse_rf_path(X, y, alphas=model.info.alpha * 2.0 ** np.arange(4, -5, -1), **how)
    )
    assert error(model) < 1.2 * best


class Following:
    """A stand-in for a fit of four rows whose target is 0: its margins are those of a list, one
    entry for each penalty."""

    dictionary, ended_by_callback = None, False

    def __init__(self, margins):
        self.all, self.n, self.A = margins, -1, self
        self.index = np.zeros(0, np.int64)

    def spend(self, effort):
        pass

    def restart(self, alpha, forgets_work):
        pass

    def margins(self):
        self.n += 1
        return self.all[self.n]

    def target(self):
        return np.zeros(4)

    def largest_gradient(self):
        return 1.0

    def count_drawn(self):
        return 0

    def state(self):
        return self.n

    def info(self, certified):
        return None


@pytest.mark.parametrize(
    ("worse", "last"),
    [
        (np.array([0.1, 0.1, 0.1, 0.11]), 2),  # worse by many standard errors
        (np.array([0.9, -0.3, -0.4, 0.5]), 3),  # worse by half a standard error
    ],
)
def test_a_path_ends_where_a_penalty_is_decidedly_worse_than_the_best_or_two_are_no_better(
    worse, last
):
    losses = [np.full(4, 2.0), np.ones(4)] + [np.ones(4) + worse] * 40
    fit = Following([np.sqrt(2 * each) for each in losses])
    task = Task.from_arrays(np.zeros((4, 1)), np.zeros(4))
    task = dataclasses.replace(task, weight=np.ones(40))  # the number of terms does not end it
    sample = _held_out.Sample(task, np.ones(4), 1.0, [1.0], 1.0, np.arange(4))
    best, *_ = _search.best_point_of_path([fit], lambda fit: None, sample, 2000)
    assert best.states == [1] and fit.n == last


@each_loss
def test_a_path_over_a_kernel_takes_a_round_a_batch(rng, loss, monkeypatch):
    """A path takes one round for each batch; with exact=True it takes more, to the tolerance."""
    X, y = friedman(rng, 300, 5)
    how = {
        "features": "gaussian",
        "n_components": 600,
        "batch_size": 150,
        "n_models": 1,
        "loss": loss,
        "rng": 0,
        "tol": 1e-2,
    }
    rounds = []
    improve = L1Fit.improve_over
    monkeypatch.setattr(L1Fit, "improve_over", lambda *args: rounds.append(1) or improve(*args))
    for exact in (False, True):
        rounds.clear()
        model = sparse_rf(X, signs(y, loss), exact=exact, **how)
        n_batches = model.info.n_drawn // how["batch_size"]
        assert n_batches % 4 == 0 and n_batches > 20
        assert len(rounds) > n_batches if exact else len(rounds) == n_batches


def test_the_chosen_terms_are_fitted_to_all_rows(rng, monkeypatch):
    """The model is the solution over its own terms for all rows and weights: that of a fixed
    dictionary of these terms."""
    X, y = friedman(rng, 500)
    weight = rng.random(500)
    monkeypatch.setattr(_search, "pruned", lambda rows, model, *args, **options: model)
    kinds_of = _search.kinds_of
    # instead of the mean of several views
    monkeypatch.setattr(_search, "kinds_of", lambda *args: [kinds_of(*args)[-1][:1]])
    monkeypatch.setattr(_search, "may_have_bumps", lambda *args: False)
    model = sparse_rf(X, y, features="auto", sample_weight=weight, n_models=1, rng=0)
    again = sparse_rf(
        X, y, alpha=model.info.alpha, features=model.features, sample_weight=weight, tol=1e-8
    )
    above = model.info.objective[-1] - again.info.objective[-1]
    assert (
        -1e-8
        <= above
        <= model.info.dual_gap
        <= _descent.BatchRules().search_tol * model.info.objective[-1]
    )


@pytest.mark.parametrize("n_models", [1, 2])
@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.slow
def test_no_more_terms_than_asked_for(rng, features, n_models):
    """The model has max_terms terms where more would be better; several classes count together."""
    how = {"features": features, "n_models": n_models, "n_components": 200, "rng": 0}
    X, y = friedman(rng, 300, 6)
    classes = np.argmax(np.sin(2 * X[:, 2:5] * [6, 1, 1] + [0, 1, 0.6]), axis=1)
    for target, loss in ((y, "squared"), (classes, "logistic")):
        free = len(sparse_rf(X, target, loss=loss, **how).support)
        assert free > 10
        for max_terms in (1, 10, free) if n_models == 1 else (10,):
            model = sparse_rf(X, target, loss=loss, max_terms=max_terms, **how)
            assert (
                len(model.support)
                == model.coef.shape[-1]
                == len(model.features)
                == min(max_terms, free)
            )
            assert model.info.n_nonzero == len(model.support)


def test_hold_out_takes_its_share_of_each_class(rng):
    groups = np.repeat([0, 1, 2], [100, 30, 3])
    weight = rng.random(133) + 0.1
    weight[:50] = 0
    fitted, held = _held_out.hold_out(groups, weight, 0.2, rng)
    assert not (fitted * held).any() and ((fitted + held > 0) == (weight > 0)).all()
    assert [np.count_nonzero(held[groups == k]) for k in range(3)] == [10, 6, 1]
    for part in (fitted, held):
        assert part.mean() == pytest.approx(1.0)
        inside = part > 0
        np.testing.assert_allclose(
            part[inside] / weight[inside], part[inside][0] / weight[inside][0]
        )


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_each_class_is_held_out_in_its_share(rng, n_classes, monkeypatch):
    seen, hold_out = [], _held_out.hold_out
    monkeypatch.setattr(
        _held_out, "hold_out", lambda groups, *args: seen.append(groups) or hold_out(groups, *args)
    )
    y = np.arange(90) % n_classes
    sparse_rf(rng.standard_normal((90, 2)), y, features="auto", loss="logistic", rng=0)
    assert (seen[0][:, None] == seen[0]).tolist() == (y[:, None] == y).tolist()


def test_a_constant_has_no_terms(rng):
    X = rng.standard_normal((200, 4))
    constant = sparse_rf(X, np.full(200, 3.0), features="auto", rng=0)
    assert len(constant.coef) == 0 and constant.predict(X).tolist() == [3.0] * 200


@pytest.mark.slow
def test_little_is_learned_of_noise():
    """Noise of variance 1 gives a few tens of terms at most: held-out noise happens to look like
    what one of several views finds."""
    n_terms, learned = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        model = sparse_rf(
            rng.standard_normal((200, 4)), rng.standard_normal(200), features="auto", rng=seed
        )
        n_terms.append(len(model.coef))
        learned.append(np.mean(model.predict(rng.standard_normal((2000, 4))) ** 2))
    # the mean model has the terms of each view
    assert np.median(n_terms) < 50 and max(learned) < 0.2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"validation": 0}, "validation"),
        ({"validation": 1.0}, "validation"),
        ({"validation": np.nan}, "validation"),
        ({"max_terms": 0}, "max_terms"),
        ({"max_terms": 5, "alpha": 0.1}, "max_terms needs alpha=None"),
        ({"n_models": 0}, "n_models"),
        ({"n_models": 2, "alpha": 0.1}, "n_models needs alpha=None"),
        ({"exact": True}, "exact must be False where features is 'auto'"),
        ({"exact": True, "alpha": 0.1}, "exact must be False where features is 'auto'"),
        ({"gamma": 1.0}, "gamma must be None where features is 'auto'"),
        ({"gamma": "knn", "alpha": 0.1}, "gamma must be None where features is 'auto'"),
        ({"n_components": 0}, "n_components"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_arguments_are_named(rng, options, name):
    X, y = friedman(rng, 50)
    with pytest.raises(ValueError, match=name):
        sparse_rf(X, y, features="auto", **options)
    with pytest.raises(ValueError, match=name):  # alpha=None is the default
        sparse_rf(X, y, **options)


def test_one_row_cannot_be_held_out():
    with pytest.raises(ValueError, match="hold out"):
        sparse_rf(np.ones((1, 2)), [1.0], features="auto")


@pytest.mark.parametrize("name", ["n_models", "max_terms"])
@pytest.mark.parametrize("bad", [1.0, True, "3", [2]])
def test_counts_are_integers(rng, name, bad):
    X, y = friedman(rng, 50)
    with pytest.raises(TypeError, match=name):
        sparse_rf(X, y, **{name: bad})


# Linear models


@pytest.mark.parametrize(("n", "d"), [(200, 40), (300, 600)])
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_a_linear_target_gets_a_linear_model(rng, n, d, layout):
    """The terms are columns of X alone, and the model predicts nearly as well as their least
    squares."""
    X, beta = rng.standard_normal((n + 1000, d)), np.zeros(d)
    beta[:6] = [3, -2, 1, 1, -1, 2]
    f = X @ beta + 5
    y = f + 0.5 * rng.standard_normal(len(f))
    model = sparse_rf(layout(X[:n]), y[:n], rng=0, n_components=300)
    assert 6 <= len(model.coef) < 80 and (model.support < d).all()
    assert np.isin(np.arange(6), model.support).all()
    np.testing.assert_array_equal(model.input_usage() > 0, np.isin(np.arange(d), model.support))
    assert np.mean((model.predict(X[n:]) - f[n:]) ** 2) < 0.08
    np.testing.assert_allclose(
        model.predict(X), phi_oracle(model.features, X) @ model.coef + model.intercept, atol=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_words_that_each_tell_little_mostly_get_one_linear_function(n_classes):
    """Each class gets one linear function of all inputs, better than a model of a few inputs. The
    two searches of a fit may miss it."""
    assert sum(one_function_of_words_is_found(n_classes, seed) for seed in range(3)) >= 2


def one_function_of_words_is_found(n_classes, seed):
    """Return whether one linear function is found; where it is, check that it is the better
    model."""
    rng = np.random.default_rng(seed)
    X, n = (rng.random((2000, 1200)) < 0.05).astype(float), 1000
    y = (
        X @ rng.standard_normal((1200, n_classes)) + 0.5 * rng.standard_normal((2000, n_classes))
    ).argmax(axis=1)
    words, how = csr_array(X), {"loss": "logistic", "n_models": 2, "rng": seed}
    model = sparse_rf(words[:n], y[:n], n_components=100, **how)
    n_terms = 1 if n_classes == 2 else n_classes
    if model.support.tolist() != list(range(1200, 1200 + n_terms)):
        return False
    inputs = sparse_rf(words[:n], y[:n], features=srf.Linear(), **how)
    assert model.info.n_nonzero == n_terms and len(inputs.support) > 30

    def loss(m):
        return -np.log(m.predict_proba(words[n:])[np.arange(2000 - n), y[n:]]).mean()

    return loss(model) < 0.97 * loss(inputs)


@each_loss
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_the_penalty_over_linear_functions_is_the_length_of_their_sum(rng, loss, layout):
    """The solution is that of ridge regression with penalty alpha / |w|: alpha w / |w| is minus the
    gradient of the mean loss."""
    X = rng.standard_normal((200, 8)) * (rng.random((200, 8)) < 0.6)
    y = signs(X @ rng.standard_normal(8) + rng.standard_normal(200), loss)
    units, alpha = rng.uniform(0.5, 2, 8), 0.05
    task = Task.from_arrays(layout(X), y, RowSetting(loss))
    with task.rows:
        (fit,) = fits_of(
            task, LinearFunctions(units), SparseRFOptions(fit_intercept=True, tol=1e-9)
        )
        middle = fit.solution()[3]  # the intercept alone
        np.testing.assert_allclose(
            fit.largest_gradient(), np.linalg.norm(units * gradient(X, y, loss, middle)), rtol=1e-9
        )
        fit.restart(alpha)
        fit.improve_over(fit.draw(0))
        fit.polish(1e-9, 200)
        assert fit.info().converged
        model = _search.merge_linear_functions(model_of([fit], task))
    w = model.coef[0] * model.features.blocks[0].weights[0] / units
    g = units * gradient(X, y, loss, X @ (units * w) + model.intercept)
    np.testing.assert_allclose(g, -alpha * w / np.linalg.norm(w), atol=1e-4 * alpha)
    if loss == "squared":
        ridge = Ridge(alpha=200 * alpha / np.linalg.norm(w)).fit(X * units, y)
        np.testing.assert_allclose(w, ridge.coef_, rtol=1e-3, atol=1e-4)


def gradient(X, y, loss, z):
    """Return the gradient of the mean loss in w, at margins z."""
    slope = {
        "squared": z - y,
        "squared_hinge": -2 * y * np.maximum(0, 1 - y * z),
        "logistic": -y / (1 + np.exp(y * z)),
    }[loss]
    return X.T @ slope / len(y)


def kinds_of(*losses):
    """Return kinds of models, each with its losses on rows in one search after another; all rows
    are held out, other rows in each search."""

    return {
        k: [
            HeldOutLosses(np.array(each), np.ones(len(each)), 4 * j + np.arange(len(each)))
            for j, each in enumerate(kind)
        ]
        for k, kind in enumerate(losses)
    }


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        # no search of the second kind has found more than a constant so far
        (([[1, 1, 1, 1]], [[1, 1, 1, 1]]), [0, 1]),
        (([[1, 1, 1, 1]], [[2, 2, 2, 2]]), [0]),
        (([[0, 1, 1, 1]], [[9, 9, 9, 9]], [[2, 0, 2, 0]], [[2, 1, 2, 1]]), [0, 2]),
        (([[2, 2, 2, 2]], [[1, 1, 1, 1]]), [1]),
        # better by a quarter, with a standard error of a half
        (([[2, 0, 2, 0]], [[0, 1, 1, 1]]), [0, 1]),
        (([[2, 2, 2, 3]], [[9, 9, 9, 9]], [[1, 1, 1, 1]]), [2]),
        (([[9, 9, 9, 9]], [[2, 0, 2, 0]], [[0, 1, 1, 1]]), [1, 2]),
        (([[2, 0, 2, 0]], [[0, 1, 1, 1]], [[5, 5, 5, 5]]), [0, 1]),
        # better by 9/4 in all, with a standard error of 3/2
        (([[2, 0, 2, 0]] * 9, [[0, 1, 1, 1]] * 9), [1]),
        (([[2, 0, 2, 0]] * 2, [[0, 1, 1, 1]]), [0, 1]),  # the second search ended early
    ],
)
def test_which_kinds_stay_in_question(losses, kept):
    assert in_question(kinds_of(*losses), 1.0) == kept


def test_a_constant_stays_in_question_for_as_many_errors_as_chance_may_make():
    # the second is better by 1.14 standard errors
    kinds = kinds_of([[2, 0, 2, 0]] * 9, [[0, 1, 1, 1]] * 9)
    assert in_question(kinds, 1.1) == [1] and in_question(kinds, 1.2) == [0, 1]
    # for kinds other than a constant one standard error is enough
    others = {1: kinds[0], 2: kinds[1]}
    assert in_question(others, 1.2) == [2]


def test_a_row_that_several_searches_hold_out_counts_once():
    better = [HeldOutLosses(np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4), np.arange(4))]
    worse = [HeldOutLosses(np.array([2.0, 0.0, 2.0, 0.0]), np.ones(4), np.arange(4))]
    assert gain(better, worse) == pytest.approx(gain(better * 9, worse * 9))
    expected = np.array([2.0, -1.0, 1.0, -1.0])
    assert gain(better, worse) == pytest.approx((expected.mean(), expected.std(ddof=1) / 2))


@pytest.mark.parametrize("held", [[0, 0, 3, 0], [1e-20, 0, 3, 0]])
def test_one_row_tells_nothing_of_how_much_a_gain_varies(held):
    better, worse = (
        HeldOutLosses(np.full(4, loss), np.array(held), np.arange(4)) for loss in (0.0, 1.0)
    )
    mean, error = gain([better], [worse])
    assert mean == pytest.approx(1) and error == np.inf


@pytest.mark.parametrize("shape", [(), (3,)])
def test_linear_functions_add_up_to_one(rng, shape):
    X, weights = rng.standard_normal((30, 5)), rng.standard_normal((7, 5))
    classes = np.arange(3) if shape else np.arange(2)
    coef, intercept = (
        1e200 * rng.standard_normal((*shape, 7)),
        rng.standard_normal(shape) if shape else 0.5,
    )
    model = part(range(7), coef, intercept, linear_functions(weights), 0.1, classes)
    one = _search.merge_linear_functions(model)
    assert one.coef.shape == (*shape, 3 if shape else 1) and one.support.tolist() == list(
        range(5, 8 if shape else 6)
    )
    np.testing.assert_allclose(one.decision_function(X), model.decision_function(X), rtol=1e-9)
    other = part(
        [0, 2],
        rng.standard_normal((*shape, 2)),
        intercept,
        srf.Linear().draw(None, 5),
        0.1,
        classes,
    )
    assert _search.merge_linear_functions(other) is other


@pytest.mark.slow
def test_a_linear_boundary_gets_a_linear_model_at_times(rng):
    """Another kind can be better by luck, by a standard error of 50 rows: 2 of 5 seeds gave a
    linear model."""
    X = rng.standard_normal((500, 20))
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(500) > 0.2, "yes", "no")
    models = [
        sparse_rf(X, y, loss="logistic", n_models=1, n_components=300, rng=seed)
        for seed in range(5)
    ]
    assert any((model.support < 20).all() for model in models)
    assert all((model.predict(X) == y).mean() > 0.87 for model in models)


@pytest.mark.parametrize("seed", range(3))
def test_another_target_gets_no_linear_model(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(600)
    model = sparse_rf(X, y, n_models=2, n_components=500, rng=seed)
    assert (model.support >= 1 << 40).all()
    assert np.mean((model.predict(X) - y) ** 2) < 0.05 * y.var()


# The mean of several models


def part(support, coef, intercept, pool, alpha, classes=None):
    """Return a model of these features of the pool."""
    info = FitInfo(4, alpha < 1, (5.0, alpha), alpha / 16, 100, len(support), alpha)
    loss = "squared" if classes is None else "logistic"
    support = np.array(support, np.int64)
    return srf.SparseModel(
        np.array(coef, float), intercept, support, pool.take(support), loss, classes, info
    )


@pytest.mark.parametrize("n_classes", [None, 2, 3])
def test_mean_of_models(rng, n_classes):
    """The mean model predicts the mean of the predictions, with each term once; its info is the
    worst or the mean of theirs."""
    pool, X = srf.Fourier(gamma=0.5).draw(30, 3, rng=0), rng.standard_normal((50, 3))
    # two blocks, interleaved
    pool = pool.concat(srf.Linear().draw(None, 3)).take(rng.permutation(33))
    shape = (n_classes,) if n_classes == 3 else ()
    classes = None if n_classes is None else np.arange(n_classes)
    models = [
        part(
            support,
            rng.standard_normal((*shape, len(support))),
            np.full(shape, alpha) if shape else alpha,
            pool,
            alpha,
            classes,
        )
        for support, alpha in (
            ([1, 5, 9, 30], 0.5),
            ([5, 30, 31], 0.25),
            ([], 0.125),
            ([0, 1, 5, 32], 2.0),
        )
    ]
    mean = _search.mean_of(models)
    assert mean.support.tolist() == [0, 1, 5, 9, 30, 31, 32] and mean.coef.shape == (*shape, 7)
    expected = np.mean([model.decision_function(X) for model in models], axis=0)
    np.testing.assert_allclose(mean.decision_function(X), expected, atol=1e-12)
    np.testing.assert_array_equal(mean.features.transform(X), pool.take(mean.support).transform(X))
    assert (mean.loss, mean.classes is models[0].classes) == (models[0].loss, True)
    info = FitInfo(
        4,
        False,
        (np.mean([0.5, 0.25, 0.125, 2]),),
        np.mean([0.5, 0.25, 0.125, 2]) / 16,
        100,
        7,
        2.0**-1.25,
    )
    assert replace(mean.info, alpha=0) == replace(
        info, alpha=0
    ) and mean.info.alpha == pytest.approx(info.alpha)
    assert _search.mean_of(models[:1]) is models[0]
    assert type(mean.intercept) is (np.ndarray if shape else float)


def test_mixed_rows_have_cells_of_two_rows(rng):
    """Each made row has the cells of one row in some columns and of another in the rest, and as
    much weight in all."""
    X, weight = np.arange(40.0)[:, None] + np.array([0.0, 100, 200, 300]), rng.random(40)
    rows, weights = _search.with_mixed_rows(as_rows(X), weight, rng)
    n = _search.MIXED_A_ROW * len(X)
    made = rows.array()[len(X) :] - np.array([0.0, 100, 200, 300])  # the row that each cell is from
    assert rows.n_rows == len(weights) == len(X) + n and np.array_equal(rows.array()[: len(X)], X)
    assert max(len(np.unique(row)) for row in made) == 2 and np.isin(made, np.arange(40)).all()
    assert weights[: len(X)].sum() == pytest.approx(weights[len(X) :].sum())
    from_other = np.mean(made != np.tile(np.arange(40), n // 40)[:, None])
    assert from_other == pytest.approx(_search.MIXED, abs=0.1)


def test_dropping_terms_of_few_rows_keeps_the_model_between_them(rng, monkeypatch):
    """With made rows the pruned model is nearer to what it was on new rows, for more terms."""
    X, y = friedman(rng, 300, 8)
    X_new, _ = friedman(rng, 1000, 8)
    whole, drop_terms, changes = [], _search.drop_terms, {}
    monkeypatch.setattr(
        _search, "drop_terms", lambda model, *args: whole.append(model) or drop_terms(model, *args)
    )
    for few in (5000, 0):
        monkeypatch.setattr(_search, "FEW_SEARCH_ROWS", few)
        model = sparse_rf(X, y, n_models=2, rng=0)
        changes[few] = np.mean((model.predict(X_new) - whole[-1].predict(X_new)) ** 2)
    assert whole[0].coef.tobytes() == whole[1].coef.tobytes() and changes[5000] < 0.9 * changes[0]


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_linear_functions_are_added_up_beside_other_terms(rng, n_outputs):
    """Of inputs, linear functions of all inputs and cosines, the functions become one for each
    output."""
    X, d = rng.standard_normal((50, 4)), 4
    inputs = srf.Linear().draw(None, d).take([1, 3])
    functions, cosines = (
        linear_functions(rng.standard_normal((3, d))),
        srf.Fourier(gamma=0.5).draw(2, d, rng=0),
    )
    features = inputs.concat(functions).concat(cosines)
    support = np.array([1, 3, d, d + 1, d + 2, FIRST_DRAW, FIRST_DRAW + 7])
    shape = () if n_outputs == 1 else (n_outputs,)
    model = srf.SparseModel(
        rng.standard_normal((*shape, 7)),
        np.zeros(shape) if shape else 0.0,
        support,
        features,
        "squared",
        None,
        FitInfo(4, True, (5.0,), 0.1, 100, 7, 0.5),
    )
    merged = _search.merge_linear_functions(model)
    assert merged.support.tolist() == [1, 3, *range(d, d + n_outputs), FIRST_DRAW, FIRST_DRAW + 7]
    assert merged.info.n_nonzero == len(merged.features) == 4 + n_outputs
    np.testing.assert_allclose(merged.predict(X), model.predict(X), atol=1e-12)
    without = replace(model, coef=model.coef[..., :2], support=support[:2], features=inputs)
    assert _search.merge_linear_functions(without) is without


def test_inputs_of_two_encodings_stay_different_terms(rng):
    """In the mean of models of the entries of CSR rows, as they are and clipped, each input counts
    as it was encoded."""
    X = np.exp(2 * rng.standard_normal((300, 6))) * (rng.random((300, 6)) < 0.7)
    X = csr_array(X)
    stage, (plain, clipped, *_) = fit_sparse_stage(as_rows(X), np.ones(300), rng)
    models, encodings = [], np.concatenate([plain, clipped])
    for of_model in (plain, clipped):
        d = len(of_model)
        support = np.array([0, 2, d, FIRST_DRAW])
        features = (
            srf.Linear()
            .draw(None, d)
            .take([0, 2])
            .concat(linear_functions(rng.standard_normal((1, d))))
        )
        features = features.concat(srf.Fourier(gamma=0.5).draw(1, d, rng=0)).staged(
            stage.take(of_model)
        )
        info = FitInfo(4, True, (5.0,), 0.1, 100, 4, 0.5)
        model = srf.SparseModel(
            rng.standard_normal(4), 0.0, support, features, "squared", None, info
        )
        models.append((model, _search.widen_encodings(model, of_model, encodings, stage)))
    for model, wide in models:
        np.testing.assert_allclose(wide.predict(X), model.predict(X))
        assert (np.diff(wide.support) > 0).all()
    assert models[0][1].support.tolist() == [0, 2, 12, FIRST_DRAW] and models[1][
        1
    ].support.tolist() == [6, 8, 12, FIRST_DRAW]


@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.parametrize("n_models", [1, 2, 3])
@pytest.mark.slow
def test_several_searches(rng, features, n_models, monkeypatch):
    """The model is the mean of so many models, each with other rows held out; "auto" has other
    draws for each, and one, two or three views. The seed alone decides."""
    X, y = friedman(rng, 300, 6)
    hold_out, model_of = _held_out.hold_out, _search.model_of
    rows, models = [], []
    monkeypatch.setattr(
        _held_out, "hold_out", lambda *args: rows.append(hold_out(*args)) or rows[-1]
    )
    monkeypatch.setattr(
        _search, "model_of", lambda *args: models.append(model_of(*args)) or models[-1]
    )
    how = {"features": features, "n_components": 500, "n_models": n_models, "max_terms": 500}
    model = sparse_rf(X, y, rng=0, **how)
    assert (
        len(rows) == n_models
        and len(models) in (n_models * np.arange(1, 4 if features == "auto" else 2)).tolist()
    )
    held = np.array([held > 0 for _, held in rows])
    assert held.sum(axis=1).tolist() == [30] * n_models and len(np.unique(held, axis=0)) == n_models
    seen = [set((one.support >> 40).tolist()) for one in models]
    assert all(map(len, seen)) and len(set.union(*seen)) == (
        len(models) if features == "auto" else 1
    )
    mean = np.mean([one.predict(X) for one in models], axis=0)
    assert np.mean(
        (model.predict(X) - mean) ** 2
    ) <= 2 * _search.PRUNED * model.info.validation_loss * (1 + 1e-6)
    assert np.isin(model.support, np.concatenate([one.support for one in models])).all()
    again, other = sparse_rf(X, y, rng=0, **how), sparse_rf(X, y, rng=1, **how)
    assert bits(again) == bits(model) and again.info == model.info
    assert other.coef.tobytes() != model.coef.tobytes()


@pytest.mark.slow
def test_how_many_searches_there_are(rng, monkeypatch):
    """There are as many searches as the mean needs models, of one member each here, and one more
    where the best kind is in question."""
    X, y = friedman(rng, 100, 5)
    calls, hold_out = [], _held_out.hold_out
    monkeypatch.setattr(_held_out, "hold_out", lambda *args: calls.append(1) or hold_out(*args))
    for few, n_models, open_before, n in (
        (5000, None, 1, 4),
        (99, None, 1, 4),
        (99, None, 4, 4),
        (99, None, 5, 5),
        (99, None, 9, 5),
        (99, 2, 9, 2),
    ):
        calls.clear()
        monkeypatch.setattr(_budget, "FEW_SEARCH_ROWS", few)
        # After this many searches one kind is left.
        monkeypatch.setattr(
            _search,
            "in_question",
            lambda choices, errors, n=open_before: [1, 2] if len(calls) < n else [1],
        )
        model = sparse_rf(X, y, n_components=100, n_models=n_models, rng=0)
        assert len(calls) == n and (model.support < 5).all()


# Many rows


@pytest.fixture
def samples(monkeypatch):
    """Let searches sample about 300 rows each, and return the list of the samples."""
    seen, draw = [], _held_out.Sample.draw
    monkeypatch.setattr(_budget, "MOST_SEARCH_ROWS", 300)
    monkeypatch.setattr(
        _held_out.Sample, "draw", lambda *args, **how: seen.append(draw(*args, **how)) or seen[-1]
    )
    return seen


@pytest.mark.parametrize(("features", "layout"), [("auto", csr_array), ("gaussian", np.asarray)])
@each_loss
@pytest.mark.slow
def test_each_search_looks_at_some_rows_and_all_are_fitted(rng, samples, features, layout, loss):
    """The model is nearly that of searches over all rows, and better than that of as few rows as
    one search looks at."""
    X, y = friedman(rng, 3000, 5)
    X[X < -1] = 0
    y, how = signs(y, loss), {"features": features, "loss": loss, "n_components": 500, "rng": 0}

    def error(n, m):
        model = sparse_rf(layout(X[:n]), y[:n], n_models=m, **how)
        return VALUE[loss](model.decision_function(layout(X[2000:])), y[2000:]).mean()

    some = error(2000, 3)
    assert (
        len(samples) == 3 and len({sample.task.rows.array()[:50].sum() for sample in samples}) == 3
    )
    for sample in samples:
        assert sample.task.rows.n_rows == pytest.approx(
            300, abs=2
        ) and sample.share == pytest.approx(0.135, rel=0.02)
        assert np.count_nonzero(sample.held) == pytest.approx(30, abs=1)
        assert (
            sample.task.targets[0].shape
            == sample.task.weight.shape
            == sample.held.shape
            == (sample.task.rows.n_rows,)
        )
    few = error(300, 3)
    _budget.MOST_SEARCH_ROWS = 2000
    # with room: other processors round otherwise
    assert some < 0.97 * few and some < 1.4 * error(2000, 3)


def test_a_sample_of_rows_in_groups_and_of_weights(rng):
    """Each group has its share by weight, and two rows at least; rows of weight zero are left out;
    weights sum up as before."""
    groups, weight = (
        np.repeat([0, 1, 2, 3], [40_000, 10_000, 100, 3]),
        rng.uniform(0.5, 1.5, 50_103),
    )
    weight[:20_000] = 0
    X = np.column_stack([groups, np.arange(50_103)])
    targets = [groups.astype(float), weight]
    task = dataclasses.replace(Task.from_arrays(X, groups), targets=targets, weight=weight)
    sample = _held_out.Sample.draw(task, groups, 0.1, _budget.MOST_SEARCH_ROWS, rng)
    group, row = sample.task.rows.array().T.astype(int)
    assert len(np.unique(row)) == len(row)  # no row twice
    np.testing.assert_array_equal(sample.task.targets, [group, weight[row]])
    sizes = [np.count_nonzero(group == k) for k in range(4)]
    assert sum(sizes) == pytest.approx(_budget.MOST_SEARCH_ROWS, abs=4) and sizes[3] == 2
    shares = [weight[groups == k].sum() / weight.sum() for k in range(3)]
    np.testing.assert_allclose(sizes[:3], _budget.MOST_SEARCH_ROWS * np.array(shares), rtol=0.02)
    assert [np.count_nonzero(group[sample.held > 0] == k) for k in range(4)] == [
        round(0.1 * n) for n in sizes[:3]
    ] + [1]
    assert (weight[row] > 0).all() and not (sample.held * sample.task.weight).any()
    both = (
        sample.held / sample.held.sum() * 0.1 + sample.task.weight / sample.task.weight.sum() * 0.9
    )
    for k in range(4):
        assert both[group == k].sum() == pytest.approx(
            weight[groups == k].sum() / weight.sum(), rel=0.05
        )
    in_group = sample.task.weight[(sample.task.weight > 0) & (group == 0)]
    # rows drawn in proportion to their weights then count alike
    np.testing.assert_allclose(in_group, in_group[0])
    assert sample.share == pytest.approx(
        0.9 * _budget.MOST_SEARCH_ROWS / _held_out.effective(weight), rel=0.03
    )


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_a_sample_leaves_out_rows_of_weight_zero(rng, layout):
    X, weight = rng.standard_normal((100, 2)), np.arange(100) % 3.0
    task = Task.from_arrays(layout(X), X[:, 0])
    sample = _held_out.Sample.draw(
        dataclasses.replace(task, weight=weight), np.zeros(100), 0.1, 1000, rng
    )
    np.testing.assert_array_equal(
        sample.task.rows.transform(srf.Linear().draw(None, 2)), X[weight > 0]
    )
    assert _held_out.Sample.draw(task, np.zeros(100), 0.1, 1000, rng).task.rows is task.rows


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 99, 100, 101])
def test_probabilities_of_rows(rng, n):
    for weight in (
        np.ones(100),
        rng.random(100),
        10 ** rng.uniform(-300, 2, 100),
        np.r_[1e6, np.ones(99)],
    ):
        p = _held_out.sampling_probabilities(weight, n)
        assert (p >= 0).all() and (p <= 1).all() and p.sum() == pytest.approx(min(n, 100))
        free = p < 1
        np.testing.assert_allclose(
            p[free] * weight[free].sum(), weight[free] * p[free].sum(), rtol=1e-9, atol=1e-290
        )
        assert free.all() or not free.any() or weight[~free].min() >= weight[free].max()


def test_a_thinned_sum_is_right_in_the_mean(rng):
    """The mean over many samples is the whole sum, where some weights are taken for certain,
    too."""
    weight, groups, f = rng.random(200) ** 3, np.arange(200) % 2, rng.standard_normal(200)
    weight[7] = 30.0
    sums = [_held_out.thinned(groups, weight, 40, rng) @ f for _ in range(2000)]
    assert abs(np.mean(sums) - weight @ f) < 4 * np.std(sums) / np.sqrt(2000)
    assert all(_held_out.thinned(groups, weight, 40, rng)[7] == 30.0 for _ in range(20))


@pytest.mark.slow
def test_the_chosen_terms_get_coefficients_of_all_rows(rng, samples, monkeypatch):
    """At least one step lowers the objective over all rows, however near the coefficients of the
    sample are."""
    X, y = friedman(rng, 1000, 5)
    monkeypatch.setattr(_search, "pruned", lambda rows, model, *args, **options: model)
    rules_of = _descent.rules_of
    lax = lambda *args: dataclasses.replace(rules_of(*args), search_tol=10.0)  # noqa: E731
    # the coefficients of the sample pass as they are
    monkeypatch.setattr(_descent, "rules_of", lax)
    how = {"n_components": 200, "n_models": 1, "rng": 0}
    for n in (300, 1000):
        model = sparse_rf(X[:n], y[:n], **how)
        monkeypatch.setattr(_search, "CHOSEN_ROUNDS", 0)
        start = sparse_rf(X[:n], y[:n], **how)
        monkeypatch.setattr(_search, "CHOSEN_ROUNDS", 50)
        assert set(model.support) <= set(start.support) and model.info.alpha == start.info.alpha
        assert model.info.objective[-1] < 0.999 * start.info.objective[-1]


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
@pytest.mark.slow
def test_the_same_bits_of_many_rows_for_any_number_of_workers(rng, samples, monkeypatch, layout):
    monkeypatch.setattr(core_block, "SLICE_ELEMENTS", 2**12)
    X, y = friedman(rng, 2000, 5)
    classes = np.digitize(y, np.quantile(y, [0.2, 0.5]))
    for target, loss in ((y, "squared"), (classes, "logistic")):
        how = {"loss": loss, "n_components": 200, "n_models": 2, "rng": 0}
        one, two = (sparse_rf(layout(X), target, workers=workers, **how) for workers in (1, 2))
        assert bits(one) == bits(two) and one.info == two.info and len(one.support) > 10


@pytest.mark.parametrize("stop", [1, 5, 20, 60])
def test_a_callback_ends_everything_of_many_rows(rng, samples, stop):
    X, y = friedman(rng, 1000, 5)
    infos = []
    model = sparse_rf(
        X,
        y,
        n_components=200,
        rng=0,
        callback=lambda info: infos.append(info) or len(infos) == stop,
    )
    assert len(infos) == stop and np.isfinite(model.predict(X)).all()


def test_a_race_on_few_rows_comes_before_a_round_on_all(rng, monkeypatch):
    """Each round races on about the rows that it may fit, holds out others than these, and goes on
    where the race ended."""
    seen, draw, paths, path = [], _held_out.Sample.draw, [], _search.best_point_of_path
    monkeypatch.setattr(
        _held_out.Sample, "draw", lambda *args, **how: seen.append(draw(*args, **how)) or seen[-1]
    )
    monkeypatch.setattr(
        _search, "best_point_of_path", lambda *args: paths.append((args[2], args[5])) or path(*args)
    )
    monkeypatch.setattr(_search, "WORTH_A_RACE", 500)
    monkeypatch.setattr(_search, "RACE_ROWS", 300)
    X, y = friedman(rng, 1000, 5)
    model = sparse_rf(X, y, n_components=200, n_models=2, rng=0)
    races, rounds = seen[::2], seen[1::2]
    assert len(races) == len(rounds) >= 2
    for race, of_all in zip(races, rounds, strict=True):
        fitted = race.index[race.task.weight > 0]
        assert (
            len(fitted) == pytest.approx(300, abs=2)
            and np.count_nonzero(race.held) == np.count_nonzero(of_all.held) == 100
        )
        assert np.count_nonzero(of_all.task.weight) == 900
        assert not np.intersect1d(fitted, of_all.index[of_all.held > 0]).size
        starts = [start for sample, start in paths if sample is of_all]
        assert all(start.index is race.index for start in starts) and any(
            start.n_terms for start in starts
        )
    assert np.mean((model.predict(X) - y) ** 2) < 0.2 * y.var()


@pytest.mark.parametrize("stop", [1, 20, 60])
def test_a_callback_that_ends_a_race_is_not_asked_again(rng, monkeypatch, stop):
    monkeypatch.setattr(_search, "WORTH_A_RACE", 500)
    monkeypatch.setattr(_search, "RACE_ROWS", 300)
    X, y = friedman(rng, 1000, 5)
    infos = []
    model = sparse_rf(
        X,
        y,
        n_components=200,
        rng=0,
        callback=lambda info: infos.append(info) or len(infos) == stop,
    )
    assert len(infos) == stop and np.isfinite(model.predict(X)).all()


def test_what_a_race_fits_is_held_out_only_where_groups_say_so(rng, monkeypatch):
    """With groups, or pairs, the race chooses who goes on, and the paths begin without terms."""
    starts, path = [], _search.best_point_of_path
    monkeypatch.setattr(
        _search, "best_point_of_path", lambda *args: starts.append(args[5]) or path(*args)
    )
    monkeypatch.setattr(_search, "WORTH_A_RACE", 500)
    monkeypatch.setattr(_search, "RACE_ROWS", 300)
    X, y = friedman(rng, 800, 5)
    for how in ({"groups": np.arange(800) // 4}, {"validation": np.arange(800) > 700}):
        model = sparse_rf(X, y, n_components=200, n_models=2, rng=0, **how)
        assert np.mean((model.predict(X) - y) ** 2) < 0.2 * y.var() and starts == [None] * len(
            starts
        )


def test_terms_are_relaxed_where_there_is_no_noise(rng):
    """The penalty of the model is below the one that its path has chosen; its held-out loss is
    lower."""
    X = rng.uniform(-2, 2, (300, 2))
    y = np.sin(2 * X[:, 0]) + np.cos(3 * X[:, 1])
    losses = []
    for most in (0, _search.MOST_RELAXED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_search, "MOST_RELAXED", most)
            losses.append(sparse_rf(X, y, rng=0).info.validation_loss)
    assert losses[1] < 0.95 * losses[0]


@ignore_convergence
@pytest.mark.slow
def test_a_target_of_another_size_in_a_row_that_no_search_sees(rng, samples, monkeypatch):
    """The fit to all rows starts where the search ended, in the units of y."""
    X, y = friedman(rng, 1000, 5)
    monkeypatch.setattr(_search, "CHOSEN_ROUNDS", 0)
    how = {
        "sample_weight": np.r_[1e-290, np.ones(999)],
        "n_components": 200,
        "n_models": 1,
        "rng": 0,
    }
    model = sparse_rf(X, y, **how)
    again = sparse_rf(X, np.r_[1000 * y.max(), y[1:]], **how)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)


@pytest.mark.slow
def test_a_linear_function_of_many_rows(rng, samples, monkeypatch):
    """Ridge regression of all rows goes on from that of the sample, with more functions; no index
    is given twice."""
    seen, fit_again = [], _search.fit_again
    monkeypatch.setattr(_descent, "LINEAR", dataclasses.replace(_descent.LINEAR, search_tol=1e-3))
    monkeypatch.setattr(
        _search,
        "fit_again",
        lambda fits, task, choice, *args: (
            seen.append((choice, fit_again(fits, task, choice, *args))) or seen[-1][1]
        ),
    )
    X = (rng.random((3000, 400)) < 0.1).astype(float)
    beta = rng.standard_normal(400)
    y = X @ beta + 3 * rng.standard_normal(3000)
    model = sparse_rf(csr_array(X[:2000]), y[:2000], n_components=100, rng=0)
    assert model.support.tolist() == [400] and len(seen) >= 3
    for choice, (again, _) in seen:
        ((_, index, *_),) = choice.states
        assert (
            len(np.unique(again.support)) == len(again.support)
            and np.setdiff1d(again.support, index).size > 0
        )
    few = sparse_rf(csr_array(X[:300]), y[:300], n_components=100, rng=0)
    error, of_few = (
        np.mean((m.predict(csr_array(X[2000:])) - X[2000:] @ beta) ** 2) for m in (model, few)
    )
    assert error < 0.5 * of_few


@pytest.mark.parametrize(
    ("features", "loss"), [*(("auto", loss) for loss in VALUE), ("gaussian", "logistic")]
)
@pytest.mark.slow
def test_validation_loss_is_near_that_of_other_rows(features, loss):
    """The validation loss is mostly somewhat lower, as the least on a path. With few rows it
    varies: the median of three counts."""
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = friedman(rng, 1400, 5)
        y = signs(y, loss)
        model = sparse_rf(
            X[:400], y[:400], features=features, loss=loss, n_components=300, rng=seed
        )
        ratios.append(
            model.info.validation_loss
            / VALUE[loss](model.decision_function(X[400:]), y[400:]).mean()
        )
    assert 0.5 < np.median(ratios) < 1.5


@each_loss
def test_validation_loss_is_saved(rng, loss, tmp_path):
    """It is a number, of the models before pruning, or None where alpha was given."""
    X, y = friedman(rng, 100, 5)
    y, how = signs(y, loss), {"loss": loss, "n_components": 50, "rng": 0}
    model = sparse_rf(X, y, n_models=1, **how)
    assert type(model.info.validation_loss) is float and np.isfinite(model.info.validation_loss)
    model.save(tmp_path / "m.npz")
    assert srf.load(tmp_path / "m.npz").info == model.info
    assert sparse_rf(X, y, alpha=0.1, **how).info.validation_loss is None


@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.parametrize("stop", [1, 2, 7, 30, 45, 70])
def test_a_callback_ends_everything(rng, features, stop):
    """A callback ends the linear path, the other path, the fit to all rows and the searches to
    come; the model is of what was found."""
    X, y = friedman(rng, 300, 6)
    infos = []
    how = {"features": features, "n_components": 500, "batch_size": 250, "n_models": 3, "rng": 0}
    model = sparse_rf(X, y, callback=lambda info: infos.append(info) or len(infos) == stop, **how)
    assert (
        len(infos) == stop
        and np.isfinite(model.predict(X)).all()
        and np.isfinite(model.info.validation_loss)
    )


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_a_line_parts_do_not_make_a_model_sure_of_itself(loss, n_classes):
    """All held-out rows are predicted right at any margin. A path still ends, by that or by its
    number of terms, before 1 - p is far below a share of 1 / 60."""
    label = np.repeat(np.arange(n_classes), 60 // n_classes)
    X = np.random.default_rng(1).normal(size=(60, 2)) + 100 * label[:, None]
    model = sparse_rf(X, label, loss=loss, rng=0)
    p = model.predict_proba(X)
    assert (p.argmax(axis=1) == label).all()
    assert 1 / 610 < 1 - p.max(axis=1).mean() < 0.25
    assert model.info.validation_loss > 1 / 61


def test_the_loss_of_an_unknown_row_is_the_mean_over_the_labels(rng):
    z = rng.standard_normal((3, 7))
    labels = np.where(np.eye(3)[:, :, None] > 0, 1.0, -1.0) * np.ones(7)
    expected = np.mean(
        [srf.losses.Multinomial().value(z, y).sum(axis=0) for y in labels.swapaxes(0, 1)], axis=0
    )
    np.testing.assert_allclose(
        srf.losses.Multinomial().of_unknown_row(z, 0.0).sum(axis=0), expected, rtol=1e-14
    )
    for loss in (srf.losses.Logistic(), srf.losses.Multinomial()):
        expected = np.mean([loss.value(z[:1], y) for y in (-1.0, 1.0)], axis=0)
        np.testing.assert_allclose(loss.of_unknown_row(z[:1], 0.0), expected)


@pytest.mark.parametrize(("max_terms", "terms"), [(50, 2000), (4000, 4000), (8000, 8000)])
def test_paths_go_on_to_max_terms(max_terms, terms):
    budget = _budget.Budget.from_effort(1.0, 20_000, None).with_terms(max_terms)
    assert budget.terms == terms and budget.pruned >= 1.25 * terms
