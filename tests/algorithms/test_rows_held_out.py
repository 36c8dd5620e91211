"""sparse_rf with alpha=None holds out the rows that the user says: pairs, splitters, and whole
groups; two planted leaks, one of copies and one of time, are what the default falls for and these
do not."""

import dataclasses

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, TimeSeriesSplit

import sparserf as srf
from sparserf import sparse_rf
from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.sparse_rf import budget as _budget
from sparserf.algorithms.sparse_rf import held_out as _held_out
from sparserf.algorithms.sparse_rf.held_out import (
    HeldOutLosses,
    Sample,
    errors_to_beat_constant,
    gain,
)
from sparserf.algorithms.task import Task

from ..conftest import bits, friedman

FIXED = {"features": "gaussian", "n_components": 300, "n_models": 2, "rng": 0}


@pytest.fixture
def samples(monkeypatch):
    """Return the list of the samples that searches draw."""
    seen, draw = [], _held_out.Sample.draw
    monkeypatch.setattr(
        _held_out.Sample, "draw", lambda *args, **how: seen.append(draw(*args, **how)) or seen[-1]
    )
    return seen


# Two leaks


def copies(rng, n=60, k=8):
    """Return rows of k near copies each of n originals with the group of each, and new rows; all
    copies have the same noise."""
    originals, new = rng.uniform(-2, 2, (n, 3)), rng.uniform(-2, 2, (4000, 3))
    groups = np.repeat(np.arange(n), k)
    X = originals[groups] + 0.01 * rng.standard_normal((n * k, 3))
    y = (originals[:, 0] + rng.standard_normal(n))[groups]
    return X, y, groups, new, new[:, 0] + rng.standard_normal(4000)


@pytest.mark.parametrize("seed", range(3))
def test_copies_in_both_parts_mislead_the_default_and_not_groups(seed):
    """The default predicts held-out copies from their twins: it takes some hundred terms, and says
    that nothing is left."""
    X, y, groups, new, y_new = copies(np.random.default_rng(seed))
    with pytest.warns(srf.GroupedRowsWarning):
        leaking = sparse_rf(X, y, n_models=1, rng=seed)
    honest = sparse_rf(X, y, groups=groups, n_models=4, rng=seed)
    loss = [np.mean((model.predict(new) - y_new) ** 2) / 2 for model in (leaking, honest)]
    assert len(leaking.features) > 50 and len(honest.features) < len(leaking.features) / 3
    assert (
        leaking.info.validation_loss < 0.05 * loss[0]
        and honest.info.validation_loss > 0.35 * loss[1]
    )
    assert loss[1] < loss[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_drift_in_time_misleads_the_default_and_not_pairs_in_time_order(seed):
    """The default follows a random walk between the rows, which says nothing of later rows."""
    rng = np.random.default_rng(seed)
    drift = np.cumsum(rng.normal(0, 0.4, 400))
    X = np.column_stack([np.arange(400.0), rng.uniform(-2, 2, (400, 2))])
    y = X[:, 1] + drift + 0.3 * rng.standard_normal(400)
    with pytest.warns(srf.GroupedRowsWarning):
        leaking = sparse_rf(X, y, n_models=1, rng=seed)
    honest = sparse_rf(X, y, validation=TimeSeriesSplit(4), n_models=4, rng=seed)
    assert honest.info.validation_loss > 5 * leaking.info.validation_loss


# What is held out


def test_a_mask_its_indices_and_one_pair_are_the_same(rng):
    X, y = friedman(rng, 200, 5)
    held = np.arange(200) >= 150
    of_mask = sparse_rf(X, y, validation=held, **FIXED)
    for same in (
        np.flatnonzero(held),
        np.flatnonzero(held)[::-1].tolist(),
        pd.Series(held),
        [(~held, held)],
    ):
        model = sparse_rf(X, y, validation=same, **FIXED)
        assert bits(model) == bits(of_mask) and model.info == of_mask.info
    assert bits(sparse_rf(X, y, **FIXED)) != bits(of_mask)


@pytest.mark.parametrize(
    "splitter", [KFold(3), GroupKFold(3), TimeSeriesSplit(3), LeaveOneGroupOut()], ids=str
)
def test_a_splitter_is_the_list_of_its_pairs(rng, splitter):
    X, y = friedman(rng, 200, 5)
    groups = (
        np.array(["north", "east", "south", "west"])[np.arange(200) % 4]
        if "Group" in str(splitter)
        else None
    )
    model = sparse_rf(X, y, validation=splitter, groups=groups, **FIXED)
    pairs = [(a.tolist(), b) for a, b in splitter.split(X, y, groups)]
    assert bits(model) == bits(sparse_rf(X, y, validation=pairs, groups=groups, **FIXED))
    assert bits(model) == bits(sparse_rf(X, y, validation=iter(pairs), groups=groups, **FIXED))


def test_rounds_take_pairs_from_the_last_and_begin_anew(rng, samples):
    """Rows in neither part are not there, those held out have weight zero, and the share that is
    fitted counts all rows."""
    X, y = friedman(rng, 100, 5)
    pairs = list(TimeSeriesSplit(3).split(X))
    model = sparse_rf(X, y, validation=pairs, n_components=100, n_models=5, rng=0)
    assert len(samples) == 5 and model.info.converged
    for k, sample in enumerate(samples):
        fitted, held = pairs[2 - k % 3]
        assert sample.index[sample.held > 0].tolist() == held.tolist()
        assert sample.index[sample.task.weight > 0].tolist() == fitted.tolist()
        assert len(sample.index) == len(fitted) + len(held) == sample.task.rows.n_rows
        assert sample.share == pytest.approx(len(fitted) / 100)


def test_one_dictionary_is_searched_once_for_each_pair(rng, samples):
    X, y = friedman(rng, 100, 5)
    sparse_rf(X, y, validation=KFold(2), features="gaussian", n_components=100, rng=0)
    assert len(samples) == 2
    sparse_rf(X, y, validation=KFold(2), features="gaussian", n_components=100, n_models=1, rng=0)
    assert len(samples) == 3


def test_alpha_is_corrected_by_the_share_that_was_fitted(rng, monkeypatch):
    """A path over a quarter of the rows: the penalty of the fit to all rows is half of one of its
    penalties."""
    X, y = friedman(rng, 400, 5)
    shares, adapt = [], _held_out.PathPoint.from_fits.__func__

    def from_fits(cls, fits, alpha, sample):
        shares.append((alpha, sample.share))
        return adapt(cls, fits, alpha, sample)

    monkeypatch.setattr(_held_out.PathPoint, "from_fits", classmethod(from_fits))
    model = sparse_rf(
        X, y, validation=[(np.arange(100), np.arange(300, 400))], **FIXED | {"n_models": 1}
    )
    assert {share for _, share in shares} == {0.25}
    assert min(abs(model.info.alpha / alpha - 0.5) for alpha, _ in shares) < 1e-12


def test_indices_are_of_the_rows_that_were_given(rng, samples):
    """Rows of weight zero are dropped before the fit, and the indices of the others stay what they
    were."""
    X, y = friedman(rng, 120, 5)
    weight = np.where(np.arange(120) % 3 == 0, 0.0, 1.0)
    groups = np.arange(120) // 6
    sparse_rf(X, y, validation=np.arange(90, 120), groups=groups, sample_weight=weight, **FIXED)
    sample = samples[0]
    rows = np.flatnonzero(weight)[sample.index]
    assert rows[sample.held > 0].tolist() == [i for i in range(90, 120) if i % 3]
    np.testing.assert_array_equal(sample.task.groups, groups[rows])
    kept = weight > 0
    alone = sparse_rf(X[kept], y[kept], validation=np.arange(60, 80), groups=groups[kept], **FIXED)
    assert bits(alone) == bits(
        sparse_rf(X, y, validation=np.arange(90, 120), groups=groups, sample_weight=weight, **FIXED)
    )


@pytest.mark.parametrize("is_classifier", [False, True])
def test_whole_groups_are_held_out(rng, samples, is_classifier):
    X, y = friedman(rng, 600, 5)
    groups = rng.integers(0, 60, 600)
    y, loss = (y > np.quantile(y, 0.8), "logistic") if is_classifier else (y, "squared")
    sparse_rf(
        X,
        y,
        groups=[f"patient {k}" for k in groups],
        loss=loss,
        n_components=100,
        n_models=3,
        rng=0,
    )
    assert len(samples) == 3 and len({tuple(sample.held) for sample in samples}) == 3
    for sample in samples:
        held, of_row = sample.held > 0, groups[sample.index]
        assert not np.intersect1d(of_row[held], of_row[~held]).size
        assert held.mean() == pytest.approx(0.1, abs=0.03)
        if is_classifier:
            assert y[sample.index][held].mean() == pytest.approx(0.2, abs=0.08)


@pytest.mark.parametrize(
    "home",
    [np.asarray, srf.Chunks, lambda X: da.from_array(X, chunks=(170, 5))],
    ids=["memory", "chunks", "dask"],
)
def test_rows_of_any_home_that_are_more_than_a_search_looks_at(rng, samples, monkeypatch, home):
    """The pair is restricted to the sample, which has rows of either part; groups stay whole in
    it."""
    monkeypatch.setattr(_budget, "MOST_SEARCH_ROWS", 200)
    X, y = friedman(rng, 1000, 5)
    X[:, 4] = np.arange(1000)  # so that rows can be told
    groups = np.arange(1000) // 10
    held = (groups % 20 == 0) & (groups > 0)
    pair = (~held & (groups < 90), held)
    model = sparse_rf(home(X), y, validation=[pair], groups=groups, **FIXED)
    for sample in samples:
        rows = sample.task.raw.array()[:, 4].astype(int)
        np.testing.assert_array_equal(rows, sample.index)
        assert set(groups[rows[sample.held > 0]]) <= set(groups[held]) and (groups[rows] < 90).all()
        assert np.count_nonzero(sample.held) == pytest.approx(200 * 40 / 900, abs=2) and len(
            rows
        ) == pytest.approx(200, abs=2)
    sparse_rf(home(X), y, groups=groups, **FIXED)
    for sample in samples[2:]:
        of_row = groups[sample.index]
        assert (
            not np.intersect1d(of_row[sample.held > 0], of_row[sample.held == 0]).size
            and len(of_row) == 200
        )
    assert model.info.converged


def test_a_sample_of_a_rare_part_has_rows_of_it(rng):
    """Of 3 rows held out among 5,000 a sample of 100 still has two, one class among them or not."""
    held = np.isin(np.arange(5000), [7, 70, 700])
    task = Task.from_arrays(
        rng.standard_normal((5000, 2)), np.arange(5000) % 2, RowSetting("logistic")
    )
    strata = _held_out.strata_of(task)
    sample = Sample.draw(task, strata, (~held, held), 100, rng)
    assert 2 <= np.count_nonzero(sample.held) <= 3 and set(
        strata[sample.index[sample.held == 0]]
    ) == {0, 1}


# Groups in what is computed from the rows held out


def test_a_group_counts_as_one_in_the_error_of_a_gain():
    """Ten copies of each row in groups have the error that the rows themselves have."""
    rng = np.random.default_rng(0)
    losses, worse = rng.random(20), rng.random(20) + 0.1
    alone = [HeldOutLosses(each, np.ones(20), np.arange(20)) for each in (losses, worse)]
    of_copies = [
        HeldOutLosses(
            np.repeat(each, 10), np.ones(200), np.arange(200), groups=np.repeat(np.arange(20), 10)
        )
        for each in (losses, worse)
    ]
    np.testing.assert_allclose(gain(of_copies[:1], of_copies[1:]), gain(alone[:1], alone[1:]))
    one_group = [dataclasses.replace(each, groups=np.zeros(200)) for each in of_copies]
    assert gain(one_group[:1], one_group[1:])[1] < 0.5 * gain(alone[:1], alone[1:])[1]


def test_groups_count_as_informative_rows(rng):
    """Many small groups count as so many rows; few large ones ask for one standard error; single
    rows change nothing."""
    X, y = rng.standard_normal((600, 2)), rng.standard_normal(600)
    errors = {
        n: errors_to_beat_constant(
            Task.from_arrays(X, y, RowSetting(groups=np.arange(600) % n)), np.zeros(600)
        )
        for n in (2, 60, 600)
    }
    assert errors == {2: 1.0, 60: pytest.approx(0.5), 600: pytest.approx(0.05)}


def test_means_of_categories_come_from_other_groups(rng):
    """A level that only one group has tells nothing of it; without groups, rows of the group tell
    each other's target."""
    n_groups, k = 100, 6
    group = np.repeat(np.arange(n_groups), k)
    frame = pd.DataFrame(
        {"x": rng.standard_normal(n_groups * k), "street": [f"street {g}" for g in group]}
    )
    y = rng.standard_normal(n_groups)[group] + 0.1 * rng.standard_normal(n_groups * k)
    fit = {"alpha": 0.05, "features": srf.Linear(), "rng": 0}
    leaking, honest = sparse_rf(frame, y, **fit), sparse_rf(frame, y, groups=group, **fit)
    assert np.mean((leaking.predict(frame) - y) ** 2) < 0.2 * y.var()
    assert len(honest.features) == 0 or np.mean((honest.predict(frame) - y) ** 2) > 0.8 * y.var()


# Errors


@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ({"validation": 1.0}, ValueError, "validation must be below 1, got 1.0"),
        ({"validation": 0}, ValueError, "validation must be finite and > 0"),
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
            "groups must be at least two, of which one can be held out",
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
def test_bad_arguments_are_named(how, error, says, monkeypatch):
    """They are refused before a search begins."""
    monkeypatch.setattr(_held_out.PathPoint, "from_fits", None)
    y = (
        np.arange(60) >= 30
        if how.get("loss") == "logistic"
        else 1.0 * np.maximum(0, np.arange(60) - 30)
    )
    with pytest.raises(error, match=says):
        sparse_rf(np.random.default_rng(0).standard_normal((60, 2)), y, **how)


@pytest.mark.parametrize("function", [srf.harfe, srf.mfga, srf.drp, srf.sparse_rf_path])
def test_every_function_takes_groups(function, rng):
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    need = {srf.drp: {"alpha": 0.1}, srf.mfga: {"n_nonzero_coefs": 2}}.get(
        function, {"n_components": 50}
    )
    function(X, y, groups=np.arange(60) // 6, rng=0, **need)
    with pytest.raises(ValueError, match="groups must have an entry for each of the 60 rows"):
        function(X, y, groups=np.arange(5), rng=0, **need)
