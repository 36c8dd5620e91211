"""The folds of a search of sparse_rf without a penalty, and the sample of the rows that it looks
at."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import TimeSeriesSplit

from sparserf.algorithms.folds import sampling_probabilities, thinned

from ..conftest import examples
from . import tasks
from .tasks import MANY, folds

GROUPS = np.arange(240) // 6


def task_of(n, y=None, layout=np.asarray, **rows):
    """Return the task of n rows whose one column is their number."""
    y = np.arange(n, dtype=float) if y is None else y
    return tasks.task_of(layout(np.arange(n, dtype=float)[:, None]), y, **rows)


def share_of(found, k):
    """Return the share of the rows that a fold fits."""
    return found.splits[k][0].mean()


# How many


@pytest.mark.parametrize(
    ("n", "n_folds", "share"),
    [(2, 2, 0.5), (4, 4, 0.75), (50_000, 5, 0.8), (50_001, 3, 2 / 3), (200_001, 1, 0.8)],
)
def test_the_more_rows_the_fewer_folds(n, n_folds, share):
    found = folds(task_of(n))
    assert len(found) == n_folds
    for k, (fitted, held) in enumerate(found.splits):
        assert not (fitted & held).any() and (fitted | held).all()
        assert share_of(found, k) == pytest.approx(share, abs=0.01)
    times = np.bincount(found.row, minlength=n)
    assert (times <= 1).all() and (n_folds == 1 or (times == 1).all())


@pytest.mark.parametrize(
    ("share", "n_folds"), [(0.9, 2), (0.5, 2), (0.34, 3), (0.25, 4), (0.2, 5), (0.01, 5)]
)
@pytest.mark.parametrize("n", [60, 60_000])
def test_a_share_says_how_many_folds(share, n_folds, n):
    found = folds(task_of(n), share)
    assert len(found) == n_folds
    assert np.array_equal(np.sort(found.row), np.arange(n))


def test_the_seed_alone_decides():
    task = task_of(100)
    one, again, other = (folds(task, seed=seed).row.tolist() for seed in (0, 0, 1))
    assert one == again != other


# Which rows


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_each_fold_has_its_share_of_each_class(loss):
    y = np.repeat([0, 1, 2], [100, 50, 15])[np.random.default_rng(0).permutation(165)]
    for _, held in folds(task_of(165, y, loss=loss)).splits:
        assert np.bincount(y[held], minlength=3).tolist() == [20, 10, 3]


def test_each_fold_has_its_share_of_the_rows_with_an_event():
    y = np.repeat([0.0, 3.0], [100, 10])
    for _, held in folds(task_of(110, y, loss="poisson")).splits:
        assert np.count_nonzero(y[held]) == 2 and np.count_nonzero(held) == 22


@pytest.mark.parametrize("n_groups", [2, 3, 40])
@pytest.mark.parametrize("validation", [None, 0.25])
def test_groups_are_whole(n_groups, validation, rng):
    groups = rng.permutation(np.arange(600) % n_groups)
    found = folds(task_of(600, groups=groups), validation)
    assert len(found) == min(n_groups, 5 if validation is None else 4)
    for fitted, held in found.splits:
        assert held.any() and not np.intersect1d(groups[fitted], groups[held]).size
    assert np.array_equal(np.sort(found.row), np.arange(600))


def test_groups_are_whole_in_folds_of_a_sample(rng):
    groups = np.arange(2_000) // 4
    found = folds(task_of(2_000, groups=groups), most_rows=300)
    assert found.task.raw.n_rows == pytest.approx(300, abs=2)
    of_row = groups[found.task.index]
    for fitted, held in found.splits:
        assert not np.intersect1d(of_row[fitted], of_row[held]).size


def test_the_pairs_of_a_user_are_the_folds():
    """A row may be in neither part, or held out twice."""
    pairs = list(TimeSeriesSplit(3).split(np.zeros((100, 1))))
    splits = [tuple(np.isin(np.arange(100), part) for part in pair) for pair in pairs]
    found = folds(task_of(100), splits)
    assert np.array_equal(np.array(found.splits), np.array(splits))
    assert share_of(found, 0) == pytest.approx(len(pairs[0][0]) / 100)
    twice = folds(task_of(100), [splits[0], splits[0]])
    assert len(twice.row) == 2 * len(pairs[0][1]) and twice.weight.sum() == pytest.approx(1)


def test_pairs_are_of_the_rows_that_were_given():
    """Rows of weight zero are dropped, and a sample has few rows; the others stay in their part."""
    weight, number = np.arange(400) % 3.0, np.arange(400)
    task = task_of(400, sample_weight=weight)
    fitted, held = number < 250, number >= 300
    for most_rows in (MANY, 100):
        found = folds(task, [(fitted, held)], most_rows)
        assert found.task.raw.n_rows == pytest.approx(min(267, most_rows), abs=3)
        rows = found.task.raw.array()[:, 0].astype(int)
        assert (weight[rows] > 0).all() and np.array_equal(rows, found.task.index)
        ((in_fit, in_held),) = found.splits
        assert np.array_equal(in_fit, fitted[rows]) and np.array_equal(in_held, held[rows])
        assert in_fit.any() and in_held.any()


@pytest.mark.parametrize("validation", [0.2, [(GROUPS < 25, GROUPS >= 30)]], ids=["share", "pair"])
@pytest.mark.parametrize("most_rows", [80, 240])
def test_a_sample_has_the_offsets_and_groups_of_its_rows(validation, most_rows):
    offset, weight = np.linspace(-1, 1, 240), np.arange(240) % 3.0
    task = task_of(240, loss="poisson", groups=GROUPS, offset=offset, sample_weight=weight)
    found = folds(task, validation, most_rows)
    index = found.task.index
    assert (weight[index] > 0).all()
    for given, of_task in ((offset, found.task.offset), (GROUPS, found.task.groups)):
        assert np.array_equal(of_task, given[index])
    for fitted, held in found.splits:
        assert held.any() and not set(GROUPS[index[held]]) & set(GROUPS[index[fitted]])


@pytest.mark.parametrize(
    ("weight", "what"), [([0.0, 1.0], "hold out"), ([1.0, 0.0], "fit")], ids=["held", "fitted"]
)
def test_a_part_without_a_row_of_positive_weight_is_refused(weight, what):
    task = task_of(60, sample_weight=np.repeat(weight, 30))
    held = np.arange(60) < 30
    with pytest.raises(ValueError, match=f"positive weight to {what} in each pair"):
        folds(task, [(~held, held)])


# What they compute


def test_each_fold_predicts_the_rows_that_it_holds_out(rng):
    found, margins = folds(task_of(20)), rng.standard_normal((5, 2, 20))
    predictions = found.predictions(list(margins))
    for k, (_, held) in enumerate(found.splits):
        assert np.array_equal(predictions[:, held[found.row]], margins[k][:, held])


def test_rows_of_a_fold_count_by_their_weight_and_folds_alike(rng):
    weight = rng.random(100) + 0.1
    found = folds(task_of(100, sample_weight=weight))
    assert found.weight.sum() == pytest.approx(1)
    for _, held in found.splits:
        of_fold = found.weight[held[found.row]]
        assert of_fold.sum() == pytest.approx(1 / 5)
        np.testing.assert_allclose(of_fold / of_fold[0], weight[held] / weight[held][0])


@pytest.mark.slow
def test_the_same_share_of_the_weight_of_each_row_is_held_out(rng):
    """Each row is held out by one fold, whole; over many draws by the first as often as any."""
    task, n, first = task_of(60, sample_weight=rng.integers(1, 9, 60).astype(float)), 2000, []
    for seed in range(n):
        held = np.array([held for _, held in folds(task, seed=seed).splits])
        assert (held.sum(axis=0) == 1).all() and (held.sum(axis=1) == 12).all()
        first.append(held[0])
    np.testing.assert_allclose(np.mean(first, axis=0), 0.2, atol=4.5 * np.sqrt(0.2 * 0.8 / n))


# A sample


@pytest.mark.filterwarnings("ignore::sparserf.CopiedRowsWarning")
@pytest.mark.parametrize("kind", ["rows", "groups", "copies", "pairs"])
def test_a_search_has_a_sample_of_the_rows_that_folds_fit(rng, kind):
    """What is held out with a row, its group or its copies, is fitted by no fold that holds it
    out."""
    n, together, validation = 900, np.arange(900), None
    y = rng.normal(size=n)
    if kind == "pairs":
        fold = rng.integers(0, 3, n)
        validation = [(fold != k, fold == k) for k in range(3)]
    elif kind != "rows":
        together = rng.permutation(n) // 3
    X = (rng.normal(size=n)[together] if kind == "copies" else rng.normal(size=n))[:, None]
    y = y[together] if kind == "copies" else y
    task = tasks.task_of(X, y, **({"groups": together} if kind == "groups" else {}))
    found = folds(task, validation, 300, most_many=MANY)
    many = found.many
    assert len(many.task.weight) == n and len(many.place) == len(found.task.weight)
    assert 280 <= len(many.place) <= 320
    assert np.array_equal(X[many.place], found.task.raw.array())
    for (fitted, held), of_all in zip(found.splits, many.fitted, strict=True):
        assert np.array_equal(of_all[many.place], fitted) and held.any()
        assert not np.isin(together[many.place[held]], together[of_all]).any()
        assert of_all.sum() > 1.5 * fitted.sum()


def test_few_rows_are_all_searched():
    found = folds(task_of(300), None, 300, most_many=MANY)
    for mine, other in zip(found.many, found.searched, strict=True):
        assert mine is other or np.array_equal(mine, other)
    assert len(folds(task_of(900), None, 300).task.weight) == 300


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 99, 100, 101])
def test_probabilities_of_rows(rng, n):
    for weight in (
        np.ones(100),
        rng.random(100),
        10 ** rng.uniform(-300, 2, 100),
        np.r_[1e6, np.ones(99)],
    ):
        p = sampling_probabilities(weight, n)
        assert (p >= 0).all() and (p <= 1).all() and p.sum() == pytest.approx(min(n, 100))
        free = p < 1
        np.testing.assert_allclose(
            p[free] * weight[free].sum(), weight[free] * p[free].sum(), rtol=1e-9, atol=1e-290
        )
        assert free.all() or not free.any() or weight[~free].min() >= weight[free].max()


@pytest.mark.slow
def test_a_thinned_sum_is_right_in_the_mean(rng):
    """The mean over many samples is the whole sum, where some weights are taken for certain,
    too."""
    weight, strata, f = rng.random(200) ** 3, np.arange(200) % 2, rng.standard_normal(200)
    weight[7] = 30.0
    sums = [thinned(strata, weight, 40, rng) @ f for _ in range(2000)]
    assert abs(np.mean(sums) - weight @ f) < 4 * np.std(sums) / np.sqrt(2000)
    assert all(thinned(strata, weight, 40, rng)[7] == 30.0 for _ in range(20))


def test_a_sample_has_its_share_of_each_stratum_and_two_rows_of_a_rare_one(rng):
    y, weight = np.repeat([0, 1, 2, 3], [40_000, 10_000, 100, 3]), rng.uniform(0.5, 1.5, 50_103)
    weight[:20_000] = 0
    task = task_of(50_103, y, loss="multinomial", sample_weight=weight)
    found = folds(task, most_rows=2_000)
    rows = found.task.index
    assert len(np.unique(rows)) == len(rows) and (weight[rows] > 0).all()
    sizes = np.bincount(y[rows])
    assert sizes.sum() == pytest.approx(2_000, abs=5) and sizes[3] == 2
    shares = np.bincount(y, weight) / weight.sum()
    np.testing.assert_allclose(sizes[:2], 2_000 * shares[:2], rtol=0.02)
    assert found.task.weight.mean() == pytest.approx(1)
    in_all = np.bincount(y[rows], found.task.weight) / found.task.weight.sum()
    np.testing.assert_allclose(in_all, shares, rtol=0.05)


@pytest.mark.parametrize("layout", [np.asarray, csr_array])
def test_a_sample_that_is_no_larger_than_it_may_be_is_all_rows(layout):
    task = task_of(100, layout=layout)
    assert folds(task, most_rows=100).task is task
    some = folds(replace(task, weight=np.ones(100)), most_rows=50).task
    assert some.raw.n_rows == 50


@pytest.mark.slow
def test_folds_of_any_rows_cover_each_once():
    from hypothesis import given
    from hypothesis import strategies as st

    @examples(60)
    @given(st.integers(2, 80), st.integers(1, 30), st.one_of(st.none(), st.floats(0.01, 0.99)))
    def check(n, n_groups, validation):
        groups = np.arange(n) % n_groups if n_groups > 1 else None
        found = folds(task_of(n, groups=groups), validation)
        assert 2 <= len(found) <= 5 and np.array_equal(np.sort(found.row), np.arange(n))
        assert all(fitted.any() and held.any() for fitted, held in found.splits)

    check()
