"""What a user sees of sparse_rf without a penalty: how good it is, what it is held to, and which
rows it holds out."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_moons,
    make_sparse_uncorrelated,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

import sparserf as srf
from sparserf import sparse_rf, sparse_rf_path
from sparserf.algorithms.default import path_draws as _path_draws

from ..conftest import VALUE, bits, each_loss, friedman, signs

KERNEL = {"features": "gaussian", "n_components": 200, "rng": 0}


@pytest.fixture
def few_rows(search_rows):
    """Let searches look at about 200 rows."""
    search_rows(200)


def told(model, X, y):
    """Return the share of the variance of y that the model does not give."""
    return np.mean((model.predict(X) - y) ** 2) / y.var()


def three_classes(X):
    return np.argmax(np.sin(2 * X[:, :3] * [6, 1, 1] + [0, 1, 0.6]), axis=1)


# How good it is


@pytest.mark.nightly
@each_loss
def test_the_penalty_is_chosen_about_as_well_as_by_the_test_rows(loss):
    """In the mean over three tables."""
    excess = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        (X, y), (X_test, y_test) = friedman(rng, 400, 5), friedman(rng, 2000, 5)
        y_test = y_test if loss == "squared" else np.sign(y_test - np.median(y))
        y, how = signs(y, loss), KERNEL | {"loss": loss}
        path = sparse_rf_path(X, y, n_alphas=10, tol=1e-2, **how)
        error, *of_path = (
            VALUE[loss](model.decision_function(X_test), y_test).mean()
            for model in (sparse_rf(X, y, **how), *path)
        )
        excess.append(error / min(of_path))
    assert np.mean(excess) < 1.1


@pytest.mark.slow
@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_a_linear_target_is_predicted_as_by_least_squares(rng, layout):
    X, beta = rng.standard_normal((1200, 40)), np.zeros(40)
    beta[:6] = [3, -2, 1, 1, -1, 2]
    f = X @ beta + 5
    y = f + 0.5 * rng.standard_normal(1200)
    model = sparse_rf(layout(X[:200]), y[:200], extrapolate="linear", rng=0)
    line = LinearRegression().fit(X[:200], y[:200])
    error, of_line = (
        np.mean((predicted - f[200:]) ** 2)
        for predicted in (model.predict(layout(X[200:])), line.predict(X[200:]))
    )
    assert error < 1.2 * of_line


@pytest.mark.nightly
@pytest.mark.parametrize("n_classes", [2, 3])
def test_words_that_each_tell_little_are_predicted_by_all_of_them(n_classes):
    """Better than by a model of a few of the inputs."""
    rng, n = np.random.default_rng(0), 400
    X = (rng.random((1400, 400)) < 0.05).astype(float)
    noise = 0.5 * rng.standard_normal((1400, n_classes))
    y = (X @ rng.standard_normal((400, n_classes)) + noise).argmax(axis=1)
    words, how = csr_array(X), {"loss": "logistic", "rng": 0}
    alone = {"features": srf.Linear()}
    every, some = (sparse_rf(words[:n], y[:n], **how, **more) for more in ({}, alone))

    def loss(model):
        return -np.log(model.predict_proba(words[n:])[np.arange(1400 - n), y[n:]]).mean()

    assert loss(every) < 0.97 * loss(some)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_that_jump_are_learned(rng, dtype):
    X = rng.uniform(-1, 1, (1800, 6)).astype(dtype)
    f = (X[:, 0] > 0.3) + 2.0 * ((X[:, 1] > 0) & (X[:, 2] > -0.2))
    model = sparse_rf(X[:800], f[:800] + 0.1 * rng.standard_normal(800), rng=0)
    assert told(model, X[800:], f[800:]) < 0.03


@pytest.mark.slow
def test_conjunctions_of_binary_inputs_are_learned(rng):
    X = rng.integers(0, 2, (1400, 9)).astype(float)
    of_three, of_two = X[:, 0] * X[:, 1] * (1 - X[:, 2]), np.maximum(X[:, 3], 1 - X[:, 4])
    y = of_three + 0.5 * of_two
    assert told(sparse_rf(X[:400], y[:400], rng=0), X[400:], y[400:]) < 0.01


@pytest.mark.slow
def test_targets_without_noise_are_followed_far(rng):
    X = rng.uniform(-2, 2, (1300, 2))
    y = np.sin(2 * X[:, 0]) + np.cos(3 * X[:, 1])
    assert told(sparse_rf(X[:300], y[:300], rng=0), X[300:], y[300:]) < 3e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_neither_a_line_nor_a_constant_is_taken_for_a_wave(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1000, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    model = sparse_rf(X[:300], f[:300] + 0.1 * rng.standard_normal(300), rng=seed)
    assert told(model, X[300:], f[300:]) < 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_digits_are_told_apart_better_than_by_lines(loss):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    model = sparse_rf(X[:400], y[:400], loss=loss, rng=0)
    lines = LogisticRegression(C=1.0, max_iter=1000).fit(X[:400], y[:400])
    of_model, of_lines = (
        -np.log(each.predict_proba(X[400:])[np.arange(len(y) - 400), y[400:]]).mean()
        for each in (model, lines)
    )
    assert of_model < of_lines
    assert np.mean(model.predict(X[400:]) != y[400:]) < np.mean(lines.predict(X[400:]) != y[400:])


@pytest.mark.parametrize("value", [3.0, 1 / 3])
def test_a_constant_has_no_terms(rng, value):
    X = rng.standard_normal((100, 4))
    constant = sparse_rf(X, np.full(100, value), rng=0)
    assert len(constant.coef) == 0
    np.testing.assert_allclose(constant.predict(X), value, rtol=1e-12)


@pytest.mark.slow
def test_little_is_learned_of_noise():
    """Rows that are held out happen to look like what is found, at times."""
    n_terms, learned = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = sparse_rf(rng.standard_normal((200, 4)), rng.standard_normal(200), rng=seed)
        n_terms.append(len(model.coef))
        learned.append(np.mean(model.predict(rng.standard_normal((2000, 4))) ** 2))
    assert np.median(n_terms) < 10 and max(learned) < 0.2 and np.mean(learned) < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_levels_of_few_rows_tell_nothing_of_noise(seed):
    """A row's own y is not in its code: the model neither follows its level's mean nor falls with
    it. No level is in 1 % of the rows, which alone would have an indicator."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.array([f"u{i // 4}" for i in range(800)]))
    frame, y = pd.DataFrame({"id": ids}), rng.standard_normal(800)
    predicted = sparse_rf(frame, y, rng=0).predict(frame)
    level = pd.Series(y).groupby(ids).transform("mean").to_numpy()
    assert np.polyfit(level, predicted, 1)[0] > -0.02
    new = rng.standard_normal(800)
    assert np.mean((predicted - new) ** 2) < 1.1 * np.mean((new - y.mean()) ** 2)


@pytest.mark.parametrize("seed", range(6))
def test_frames_of_few_rows_with_gaps_and_words(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 60))
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    frame["word"] = rng.choice(["x", "y", "z", None], n)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    y = np.where(rng.random(n) < 0.5, frame["a"].fillna(0), rng.standard_normal(n))
    for target, loss in ((y, "squared"), (y > 0, "logistic")):
        model = sparse_rf(frame, target, loss=loss, effort=0.1, rng=seed)
        assert np.isfinite(model.decision_function(frame)).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_a_line_parts_do_not_make_a_model_sure_of_itself(loss, n_classes):
    """All held-out rows are predicted right at any margin; yet 1 - p is not far below a share of
    1 / 60."""
    label = np.repeat(np.arange(n_classes), 60 // n_classes)
    X = np.random.default_rng(1).normal(size=(60, 2)) + 100 * label[:, None]
    model = sparse_rf(X, label, loss=loss, rng=0)
    p = model.predict_proba(X)
    assert (p.argmax(axis=1) == label).all()
    assert 1 / 610 < 1 - p.max(axis=1).mean() < 0.25
    assert model.info.validation_loss > 1 / 61


# What it is held to


@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.parametrize("max_terms", [1, 5])
def test_no_more_terms_than_asked_for(rng, features, max_terms):
    """The model has max_terms terms where more would be better; several classes count together."""
    X, y = friedman(rng, 200, 6)
    for target, loss in ((y, "squared"), (three_classes(X), "logistic")):
        how = {"features": features, "loss": loss, "n_components": 100, "rng": 0}
        model = sparse_rf(X, target, max_terms=max_terms, **how)
        assert len(model.support) == model.coef.shape[-1] == len(model.features) == max_terms
        assert model.info.n_nonzero == max_terms


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("is_sample", [False, True])
def test_the_seed_alone_decides_for_any_number_of_workers(
    rng, cut_rows, search_rows, loss, is_sample
):
    cut_rows(2**10)
    if is_sample:
        search_rows(200)
    X, y = friedman(rng, 400, 5)
    y = y if loss == "squared" else np.digitize(y, np.quantile(y, [0.3, 0.6]))
    fit = partial(sparse_rf, X, y, loss=loss, n_components=60, effort=0.3)
    one, two, other = fit(rng=0), fit(rng=0, workers=2), fit(rng=1)
    assert bits(one) == bits(two) != bits(other) and one.info == two.info
    assert len(one.support) > 5


@pytest.mark.parametrize("features", ["auto", "gaussian"])
@pytest.mark.parametrize("stop", [1, 2, 7, 30])
def test_a_callback_ends_everything(rng, features, stop):
    """It ends the path at hand and the members to come; the model is of what was found."""
    X, y = friedman(rng, 300, 6)
    infos = []
    callback = lambda info: infos.append(info) or len(infos) == stop  # noqa: E731
    model = sparse_rf(X, y, features=features, n_components=100, rng=0, callback=callback)
    assert len(infos) == stop and np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.info.validation_loss)


@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.parametrize("stop", [1, 12])
def test_a_callback_ends_everything_of_many_rows(rng, few_rows, loss, stop):
    X, y = friedman(rng, 500, 5)
    y = y if loss == "squared" else np.digitize(y, np.quantile(y, [0.3, 0.6]))
    infos = []
    callback = lambda info: infos.append(info) or len(infos) == stop  # noqa: E731
    model = sparse_rf(X, y, loss=loss, n_components=100, rng=0, callback=callback)
    assert len(infos) == stop and np.isfinite(model.decision_function(X)).all()


@pytest.mark.slow
def test_rows_that_no_search_looks_at_are_fitted(rng, search_rows):
    """The model is better than that of as few rows as a search looks at, and nearly that of a
    search of all rows."""
    X, y = friedman(rng, 3000, 5)

    def error(n):
        return told(sparse_rf(X[:n], y[:n], effort=0.4, rng=0), X[1000:], y[1000:])

    whole = error(800)
    search_rows(200)
    some = error(800)
    assert some < 0.97 * error(200) and some < 1.4 * whole


@pytest.mark.slow
def test_a_target_of_another_size_in_a_row_of_no_weight_to_speak_of(rng, few_rows):
    X, y = friedman(rng, 400, 5)
    how = {"sample_weight": np.r_[1e-290, np.ones(399)], "n_components": 100, "rng": 0}
    model, again = sparse_rf(X, y, **how), sparse_rf(X, np.r_[1000 * y.max(), y[1:]], **how)
    assert told(again, X[1:], y[1:]) < 1.2 * told(model, X[1:], y[1:]) + 0.01


@pytest.mark.slow
def test_draws_are_in_proportion_to_the_effort(rng, monkeypatch):
    X, y = friedman(rng, 400, 6)
    drawn, draw = [], _path_draws.CosineDraws.draw

    def counted(draws, *args):
        found = draw(draws, *args)
        drawn.append(len(found[0]))
        return found

    monkeypatch.setattr(_path_draws.CosineDraws, "draw", counted)
    first = []
    for effort in (0.5, 0.1):
        drawn.clear()
        assert np.isfinite(sparse_rf(X, y, effort=effort, rng=0).predict(X)).all()
        first.append(drawn[0])
    assert first[1] == pytest.approx(0.2 * first[0], abs=1)


@pytest.mark.parametrize("how", [{"time_limit": 0.05}, {"effort": 1e-3}], ids=str)
@pytest.mark.parametrize("loss", ["squared", "multinomial"])
@pytest.mark.filterwarnings("ignore::sparserf.TimeLimitWarning")
def test_little_time_or_effort_gives_a_model(rng, how, loss):
    X, y = friedman(rng, 300, 5)
    y = y if loss == "squared" else np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = sparse_rf(X, y, loss=loss, rng=0, **how)
    assert np.isfinite(model.decision_function(X)).all()


# What it says of itself


@pytest.mark.slow
@each_loss
def test_validation_loss_is_near_that_of_other_rows(loss):
    """With few rows it varies: the median of three counts."""
    ratios = []
    for seed in range(3):
        X, y = friedman(np.random.default_rng(seed), 1300, 5)
        y = signs(y, loss)
        model = sparse_rf(X[:300], y[:300], loss=loss, n_components=100, effort=0.4, rng=seed)
        error = VALUE[loss](model.decision_function(X[300:]), y[300:]).mean()
        ratios.append(model.info.validation_loss / error)
    assert 0.75 < np.median(ratios) < 1.35


TABLES = [
    lambda seed: load_diabetes(return_X_y=True),
    lambda seed: load_breast_cancer(return_X_y=True),
    lambda seed: make_friedman1(2000, 10, noise=2.0, random_state=seed),
    lambda seed: make_friedman2(2000, noise=200.0, random_state=seed),
    lambda seed: make_friedman3(2000, noise=0.2, random_state=seed),
    lambda seed: make_sparse_uncorrelated(2000, 10, random_state=seed),
    lambda seed: make_moons(2000, noise=0.3, random_state=seed),
    lambda seed: make_classification(2000, 10, random_state=seed),
]


@pytest.mark.nightly
@pytest.mark.parametrize("n", [80, 250])
def test_validation_loss_is_that_of_other_rows_in_the_mean(n):
    """Neither too good, as choices are made on few rows, nor too bad, as a mean of models is better
    than each."""
    ratios = []
    for make, seed in product(TABLES, range(3)):
        X, y = make(seed)
        p = np.random.default_rng(seed).permutation(len(y))
        fitted, others = p[:n], p[n:]
        loss = "logistic" if len(np.unique(y)) == 2 else "squared"
        y = 2.0 * y - 1 if loss == "logistic" else y
        model = sparse_rf(X[fitted], y[fitted], loss=loss, rng=seed)
        error = VALUE[loss](model.decision_function(X[others]), y[others]).mean()
        ratios.append(model.info.validation_loss / error)
    assert 0.9 < np.exp(np.mean(np.log(ratios))) < 1.1


@each_loss
def test_what_is_told_of_the_search_is_saved(rng, loss, tmp_path):
    """Neither a penalty nor a gap, which are those of a fit with a penalty; and what it has no
    validation loss."""
    X, y = friedman(rng, 100, 5)
    y, how = signs(y, loss), {"loss": loss, "n_components": 50, "rng": 0}
    info = (model := sparse_rf(X, y, **how)).info
    assert info.alpha is None and info.dual_gap is None and info.converged
    assert type(info.validation_loss) is float and np.isfinite(info.validation_loss)
    assert len(info.objective) == info.n_iter and np.diff(info.objective).max() <= 0
    model.save(tmp_path / "m.npz")
    assert srf.load(tmp_path / "m.npz").info == srf.SparseModel.from_json(model.to_json()).info
    assert srf.load(tmp_path / "m.npz").info == info
    given = sparse_rf(X, y, alpha=0.1, **how).info
    assert given.validation_loss is None and given.alpha == 0.1 and given.dual_gap >= 0


# Which rows are held out


def copies(rng, n=50, k=6):
    """Return rows of k near copies each of n originals with the group of each, and new rows; all
    copies have the same noise."""
    originals, new = rng.uniform(-2, 2, (n, 3)), rng.uniform(-2, 2, (4000, 3))
    groups = np.repeat(np.arange(n), k)
    X = originals[groups] + 0.01 * rng.standard_normal((n * k, 3))
    y = (originals[:, 0] + rng.standard_normal(n))[groups]
    return X, y, groups, new, new[:, 0] + rng.standard_normal(4000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_copies_in_both_parts_mislead_the_default_and_not_groups(seed):
    """Without groups, held-out copies are predicted from their twins, and nothing seems left."""
    X, y, groups, new, y_new = copies(np.random.default_rng(seed))
    with pytest.warns(srf.GroupedRowsWarning):
        leaking = sparse_rf(X, y, effort=0.3, rng=seed)
    honest = sparse_rf(X, y, groups=groups, effort=0.3, rng=seed)
    loss = [np.mean((model.predict(new) - y_new) ** 2) / 2 for model in (leaking, honest)]
    assert len(honest.features) < len(leaking.features) / 3 and loss[1] < loss[0]
    assert leaking.info.validation_loss < 0.1 * loss[0]
    assert 0.5 * loss[1] < honest.info.validation_loss < 2 * loss[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_drift_in_time_misleads_the_default_and_not_pairs_in_time_order(seed):
    """A random walk between the rows, which says nothing of later rows, is followed."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.4, 400))
    X = np.column_stack([np.arange(400.0), rng.uniform(-2, 2, (400, 2))])
    y = X[:, 1] + drift + 0.3 * rng.standard_normal(400)
    with pytest.warns(srf.GroupedRowsWarning):
        leaking = sparse_rf(X, y, effort=0.3, rng=seed)
    honest = sparse_rf(X, y, validation=TimeSeriesSplit(4), effort=0.3, rng=seed)
    assert honest.info.validation_loss > 5 * leaking.info.validation_loss


@pytest.mark.slow
def test_a_mask_its_indices_and_one_pair_are_the_same(rng):
    X, y = friedman(rng, 200, 5)
    held = np.arange(200) >= 150
    of_mask = sparse_rf(X, y, validation=held, **KERNEL)
    for same in (
        np.flatnonzero(held),
        np.flatnonzero(held)[::-1].tolist(),
        pd.Series(held),
        [(~held, held)],
    ):
        model = sparse_rf(X, y, validation=same, **KERNEL)
        assert bits(model) == bits(of_mask) and model.info == of_mask.info
    assert bits(sparse_rf(X, y, **KERNEL)) != bits(of_mask)


@pytest.mark.parametrize(
    "splitter", [KFold(3), GroupKFold(3), TimeSeriesSplit(3), LeaveOneGroupOut()], ids=str
)
def test_a_splitter_is_the_list_of_its_pairs(rng, splitter):
    X, y = friedman(rng, 200, 5)
    regions, is_by_group = np.array(["north", "east", "south", "west"]), "Group" in str(splitter)
    groups = regions[np.arange(200) % 4] if is_by_group else None
    model = sparse_rf(X, y, validation=splitter, groups=groups, **KERNEL)
    pairs = [(a.tolist(), b) for a, b in splitter.split(X, y, groups)]
    for same in (pairs, iter(pairs)):
        assert bits(model) == bits(sparse_rf(X, y, validation=same, groups=groups, **KERNEL))


@pytest.mark.slow
@pytest.mark.parametrize("features", ["gaussian", "auto"])
def test_rows_in_neither_part_of_any_pair_are_fitted_at_last_alone(rng, features):
    """No search sees their targets, which may be of any size; the intercept does."""
    X, y = friedman(rng, 200, 5)
    pair = (np.arange(100), np.arange(100, 150))
    models = []
    for factor in (1.0, 1.0, 50.0):
        z = np.where(np.arange(200) < 150, y, factor * y)
        models.append(sparse_rf(X, z, validation=[pair], **KERNEL | {"features": features}))
    one, same, other = models
    assert bits(one) == bits(same) != bits(other)
    # the losses of rows held out, up to rounding in other units of y
    np.testing.assert_allclose(one.info.objective[:3], other.info.objective[:3], rtol=0.05)


def test_indices_are_of_the_rows_that_were_given(rng):
    """Rows of weight zero are dropped before the fit, and the indices of the others stay what they
    were."""
    X, y = friedman(rng, 120, 5)
    weight, groups = np.where(np.arange(120) % 3 == 0, 0.0, 1.0), np.arange(120) // 6
    how = KERNEL | {"sample_weight": weight}
    every = sparse_rf(X, y, validation=np.arange(90, 120), groups=groups, **how)
    kept = weight > 0
    alone = sparse_rf(X[kept], y[kept], validation=np.arange(60, 80), groups=groups[kept], **KERNEL)
    assert bits(alone) == bits(every)


@pytest.mark.parametrize("features", ["gaussian", "auto"])
def test_few_rows_of_a_pair_are_in_the_sample_of_a_search(rng, few_rows, features):
    """Of 3 rows held out among 2,000 a search of 200 still has some, and of 3 fitted."""
    X, y = friedman(rng, 2000, 5)
    some = np.isin(np.arange(2000), [7, 70, 700])
    for pair in ((~some, some), (some, ~some)):
        model = sparse_rf(X, y, validation=[pair], **KERNEL | {"features": features})
        assert np.isfinite(model.predict(X)).all() and np.isfinite(model.info.validation_loss)


def test_means_of_categories_come_from_other_groups(rng):
    """A level that only one group has tells nothing of it; without groups, rows of the group tell
    each other's target."""
    n_groups, k = 100, 6
    group = np.repeat(np.arange(n_groups), k)
    streets = [f"street {g}" for g in group]
    frame = pd.DataFrame({"x": rng.standard_normal(n_groups * k), "street": streets})
    y = rng.standard_normal(n_groups)[group] + 0.1 * rng.standard_normal(n_groups * k)
    fit = {"alpha": 0.05, "features": srf.Linear(), "rng": 0}
    leaking, honest = sparse_rf(frame, y, **fit), sparse_rf(frame, y, groups=group, **fit)
    assert told(leaking, frame, y) < 0.2
    assert len(honest.features) == 0 or told(honest, frame, y) > 0.8


@pytest.mark.every_case
@pytest.mark.parametrize("function", [srf.harfe, srf.mfga, srf.drp, srf.sparse_rf_path])
def test_every_function_takes_groups(function, rng):
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    need = {srf.drp: {"alpha": 0.1}, srf.mfga: {"n_nonzero_coefs": 2}}.get(
        function, {"n_components": 50}
    )
    function(X, y, groups=np.arange(60) // 6, rng=0, **need)
    with pytest.raises(ValueError, match="groups must have an entry for each of the 60 rows"):
        function(X, y, groups=np.arange(5), rng=0, **need)


# Errors


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_terms": 0}, "max_terms"),
        ({"max_terms": 5, "alpha": 0.1}, "max_terms needs alpha=None"),
        ({"effort": 0}, "effort"),
        ({"effort": 2.0, "alpha": 0.1}, "effort needs alpha=None"),
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
    for more in ({}, {"features": "auto"}):
        with pytest.raises(ValueError, match=name):
            sparse_rf(X, y, **options, **more)


@pytest.mark.every_case
@pytest.mark.parametrize("bad", [1.0, True, "3", [2]])
def test_counts_are_integers(rng, bad):
    X, y = friedman(rng, 50)
    with pytest.raises(TypeError, match="max_terms"):
        sparse_rf(X, y, max_terms=bad)


@pytest.mark.parametrize("features", ["auto", "gaussian"])
def test_one_row_cannot_be_held_out(features):
    with pytest.raises(ValueError, match="at least two rows, of which one can be held out, got 1"):
        sparse_rf(np.ones((1, 2)), [1.0], features=features)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"validation": 1.0}, ValueError, "validation must be below 1, got 1.0"),
        ({"validation": 0}, ValueError, "validation must be finite and > 0"),
        ({"validation": np.nan}, ValueError, "validation must be finite and > 0"),
        ({"validation": True}, TypeError, "validation must be a real number, got True"),
        ({"validation": "last"}, TypeError, "validation must be a number, the rows to hold out"),
        (
            {"validation": np.ones(59, bool)},
            ValueError,
            "validation must have 60 entries in a mask",
        ),
        (
            {"validation": np.arange(30), "alpha": 0.1},
            ValueError,
            "validation needs alpha=None, got array",
        ),
        (
            {"validation": 0.2, "alpha": 0.1},
            ValueError,
            "validation needs alpha=None, got 0.2 with alpha=0.1",
        ),
        (
            {"validation": [(np.arange(40), np.arange(30, 60))]},
            ValueError,
            "validation must have no row in both parts",
        ),
        ({"validation": GroupKFold(3)}, ValueError, "'groups' parameter should not be None"),
        (
            {"validation": np.arange(40, 60), "groups": np.arange(60) // 7},
            ValueError,
            "validation must have the rows of a group in one part of each pair, got rows 35 and 40",
        ),
        (
            {"groups": np.zeros(60)},
            ValueError,
            "groups must have at least two groups, of which one can be held out",
        ),
        ({"groups": np.zeros(59)}, ValueError, "groups must have an entry for each of the 60 rows"),
        (
            {"groups": [None] * 60},
            ValueError,
            r"groups must not have missing labels, got None at \[0\]",
        ),
        (
            {"groups": np.arange(60) // 30, "loss": "logistic"},
            ValueError,
            "groups must leave rows of each class to fit",
        ),
        (
            {"validation": [(np.arange(20), np.arange(20, 60))], "loss": "logistic"},
            ValueError,
            r"validation must have rows of each class to fit in each pair, got none of True in "
            r"pair 0",
        ),
        (
            {"validation": [(np.arange(20), np.arange(20, 60))], "loss": "poisson"},
            ValueError,
            "validation must have rows to fit with y above 0 in each pair, got none in pair 0",
        ),
        (
            {"validation": np.arange(30), "sample_weight": np.repeat([0.0, 1.0], 30)},
            ValueError,
            "validation must have rows of positive weight to hold out in each pair, got none in "
            "pair 0",
        ),
        (
            {"validation": np.arange(30), "sample_weight": np.repeat([1.0, 0.0], 30)},
            ValueError,
            "validation must have rows of positive weight to fit in each pair, got none in pair 0",
        ),
    ],
)
def test_rows_that_cannot_be_held_out_are_named(how, error, says):
    """They are refused before a search begins."""
    told = []
    y = np.arange(60) >= 30
    y = y if how.get("loss") == "logistic" else 1.0 * np.maximum(0, np.arange(60) - 30)
    with pytest.raises(error, match=says):
        sparse_rf(np.random.default_rng(0).standard_normal((60, 2)), y, callback=told.append, **how)
    assert not told


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squared", "logistic", "multinomial"])
def test_without_an_intercept_there_is_none(kind):
    """Neither of linear functions around the means of columns, nor of terms that are dropped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 2
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    y = {"squared": f + 3, "logistic": f > 3, "multinomial": np.digitize(f, [1, 3])}[kind]
    model = sparse_rf(X, y, loss=kind, fit_intercept=False, effort=0.2, rng=0)
    assert len(model.features) > 0 and not np.any(model.intercept)
    whole = sparse_rf(X, y, loss=kind, effort=0.2, rng=0)
    assert model.info.validation_loss < 2 * whole.info.validation_loss + 0.02
