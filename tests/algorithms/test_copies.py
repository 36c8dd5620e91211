"""Copies of rows are not learned by heart: no row is judged by a fit that has seen its copy."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._base.splits import stratified_folds
from sparserf.columns.encodings import target_encode
from sparserf.columns.table import Table

from .tasks import folds, task_of

N = 300
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")


def sample(seed, copied=True, n=N):
    """Return (x, y = x + noise), with rows drawn again where copied."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    y = x[:, 0] + rng.normal(size=n)
    rows = rng.integers(0, n, n) if copied else np.arange(n)
    return x[rows], y[rows]


def excess(model):
    """Return the squared error beyond the noise."""
    Z = np.linspace(-2, 2, 200)[:, None]
    return np.mean((model.predict(Z) - Z[:, 0]) ** 2)


@pytest.mark.nightly
@pytest.mark.parametrize("copied", [True, False])
def test_a_bootstrap_sample_is_fitted_as_one_without_copies(copied):
    """Before, 96 to 183 terms, an excess of .14 to .37, and a loss told of .42 to .79 of 1."""
    models = [srf.sparse_rf(*sample(seed, copied), rng=0, effort=0.3) for seed in range(5)]
    assert np.mean([len(model.features) for model in models]) < 20
    assert np.mean([excess(model) for model in models]) < 0.06
    told = [2 * model.info.validation_loss for model in models]
    assert 0.8 < np.mean(told) < 1.3


@pytest.mark.nightly
def test_a_rare_class_that_was_copied():
    """Before, some 1,000 terms, and a loss told of .03."""
    terms, told = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3))
        y = rng.random(300) < 1 / (1 + np.exp(2 - X[:, 0]))
        rare = np.flatnonzero(y)
        rows = np.concatenate([np.arange(300), rng.choice(rare, 300 - 2 * len(rare))])
        model = srf.sparse_rf(X[rows], y[rows], loss="logistic", rng=0, effort=0.2)
        terms.append(len(model.features))
        told.append(model.info.validation_loss)
    assert np.mean(terms) < 60 and np.mean(told) > 0.5


def homes(X):
    frame = pd.DataFrame(X, columns=list("abc")[: X.shape[1]])
    return {
        "array": X,
        "float32": X.astype(np.float32),
        "CSR": sp.csr_array(X),
        "frame": frame,
        "chunks": srf.Chunks(X, block_rows=70),
    }


@pytest.mark.parametrize("home", list(homes(np.zeros((1, 1)))))
@pytest.mark.parametrize("validation", [None, 0.3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_no_fold_divides_copies_wherever_the_rows_are(home, validation, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    y = X[:, 0] + rng.normal(size=N)
    rows = rng.integers(0, N, N)
    y = y if loss == "squared" else y > 0
    found = folds(task_of(homes(X[rows])[home], y[rows], loss), validation)
    assert found.copies is not None and found.are_of_rows
    for fitted, held in found.splits:
        assert not np.intersect1d(rows[fitted], rows[held]).size
        assert 0.8 * N / len(found) < held.sum() < 1.2 * N / len(found)


def test_groups_alone_decide_where_they_are_given():
    X, y = sample(0)
    group = np.arange(N) // 3
    found = folds(task_of(X, y, groups=group))
    assert found.copies is None
    for fitted, held in found.splits:
        assert not np.intersect1d(group[fitted], group[held]).size


def test_folds_keep_strata_even_beside_copies():
    rng = np.random.default_rng(0)
    size = rng.integers(1, 6, 400)
    unit = np.repeat(np.arange(400), size)
    stratum = (rng.random(400) < 0.2)[unit]
    fold = stratified_folds(stratum, 5, rng, unit)
    counts = np.stack([np.bincount(fold[stratum == s], minlength=5) for s in (0, 1)])
    assert (counts.max(axis=1) - counts.min(axis=1) <= 5).all()
    assert all(len(np.unique(fold[unit == k])) == 1 for k in range(400))


def test_a_class_of_one_row_and_its_copies_is_not_held_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.zeros(60)
    X[50:], y[50:] = X[50], 1
    for fitted, held in folds(task_of(X, y, "logistic")).splits:
        assert fitted[50:].all() and held.any()


@pytest.mark.slow
def test_designs_of_few_rows_are_held_out_row_by_row():
    """Of 36 kinds of rows each is in all folds: with whole kinds held out nothing is learned."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 2)).astype(float)
    y = rng.normal(size=(6, 6))[tuple(X.astype(int).T)] + 0.3 * rng.normal(size=600)
    assert folds(task_of(X, y)).copies is None
    model = srf.sparse_rf(X, y, rng=0, effort=0.3)
    assert np.mean((model.predict(X) - y) ** 2) < 0.2


def test_means_of_a_category_know_no_copy():
    """Each level has one row, and copies of it: other rows say nothing of it."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 100, 200)
    X, table = Table.learn(np.array([f"w{k}" for k in rows], object)[:, None], [0])
    y = rng.normal(size=100)[rows]
    together = rows.astype(np.intp)
    encoded, _ = target_encode(X, table, [y], np.ones(200), rng, together)
    assert len(np.unique(encoded - X)) == 1
    frame = pd.DataFrame({"w": [f"w{k}" for k in rows], "x": rng.normal(size=100)[rows]})
    model = srf.sparse_rf(frame, y, features="gaussian", alpha=0.3, n_components=200, rng=0)
    assert len(model.features) == 0


def test_more_than_a_tenth_is_said_once():
    X, y = sample(0)
    with pytest.warns(srf.CopiedRowsWarning, match=r"\d+ of 300 rows are equal") as warned:
        srf.sparse_rf(X, y, rng=0, effort=0.1)
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.slow
def test_copies_are_told_once_for_all_outputs():
    X, y = sample(0)
    with pytest.warns(srf.CopiedRowsWarning) as warned:
        srf.sparse_rf(X, np.c_[y, y**2, X], effort=0.1, rng=0, verbose=False)
    assert sum(each.category is srf.CopiedRowsWarning for each in warned) == 1
