"""Which rows are fitted and which are held out: whatever users give is read as the masks that it
says, or refused by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    TimeSeriesSplit,
)

import sparserf as srf
from sparserf._base.splits import check_groups, draw_groups, read_splits, stratified_folds

from ..conftest import examples

N = 30
X, Y = np.arange(2.0 * N).reshape(N, 2), np.arange(N) % 3
LAST = np.arange(N) >= 20
GROUPS = np.repeat(np.array(["a", "b", "c", "d", "e", "f"]), 5)


def read(given, groups=None, X=X):
    """Return the splits as pairs of lists of indices."""
    return [
        tuple(np.flatnonzero(part).tolist() for part in pair)
        for pair in read_splits("validation", given, X, Y, groups)
    ]


# What users give


@pytest.mark.parametrize(
    "given",
    [
        LAST,
        LAST.tolist(),
        pd.Series(LAST),
        pd.array(LAST, "boolean"),
        np.arange(20, N),
        list(range(20, N)),
        range(20, N),
        np.arange(20, N)[::-1].astype(np.uint8),
        pd.Index(range(20, N)),
        [(np.arange(20), np.arange(20, N))],
        ((~LAST, range(20, N)),),
        iter([[list(range(20)), LAST]]),
    ],
    ids=[
        "mask",
        "list of bools",
        "Series",
        "nullable",
        "indices",
        "list",
        "range",
        "descending uint8",
        "Index",
        "pairs",
        "tuple of pairs",
        "iterator",
    ],
)
def test_rows_to_hold_out_may_be_given_in_many_ways(given):
    assert read(given) == [(list(range(20)), list(range(20, N)))]


@pytest.mark.parametrize(
    "splitter",
    [
        KFold(4),
        StratifiedKFold(3, shuffle=True, random_state=0),
        TimeSeriesSplit(4, gap=2),
        GroupKFold(3),
        LeaveOneGroupOut(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_splitter_is_what_it_yields(splitter):
    groups = GROUPS if "Group" in type(splitter).__name__ else None
    pairs = list(splitter.split(X, Y, groups))
    assert (
        read(splitter, groups)
        == read(pairs)
        == read(pair for pair in pairs)
        == [(a.tolist(), b.tolist()) for a, b in pairs]
    )


@pytest.mark.parametrize(
    ("rows", "is_given"),
    [
        (X, True),
        (pd.DataFrame(X), True),
        (sp.csr_array(X), True),
        (X.tolist(), True),
        (srf.Chunks(X), False),
    ],
    ids=["array", "frame", "csr", "list", "chunks"],
)
def test_a_splitter_is_given_rows_in_memory_targets_and_groups(rows, is_given):
    seen = []

    class Splitter:
        def split(self, X, y, groups):
            seen.extend([X, y, groups])
            yield from KFold(3).split(X)

    assert len(read(Splitter(), X=rows)) == 3
    assert (
        (seen[0] is rows) == is_given
        and seen[1] is Y
        and seen[2] is None
        and (is_given or seen[0].shape == (N, 0))
    )


WRONG = [
    (np.ones(N, bool), ValueError, "must hold out some of the 30 rows and leave some, got 30"),
    (np.zeros(N, bool), ValueError, "must hold out some of the 30 rows and leave some, got 0"),
    (np.arange(N), ValueError, "must hold out some of the 30 rows and leave some, got 30"),
    (
        np.ones(N - 1, bool),
        ValueError,
        "must have 30 entries in a mask of rows to hold out, one a row of X, got 29",
    ),
    ([0, N], ValueError, r"must lie in \[0, 30\) in the rows to hold out, got 0 to 30"),
    ([-1, 3], ValueError, r"must lie in \[0, 30\) in the rows to hold out, got -1 to 3"),
    (
        [4, 5, 4, 4],
        ValueError,
        "must have each row once in the rows to hold out, got row 4 3 times",
    ),
    (
        [0.5, 1.0],
        TypeError,
        "must hold bools or integers in the rows to hold out, got dtype float64",
    ),
    (
        np.zeros((N, 2), bool),
        ValueError,
        r"must have one dimension in the rows to hold out, got shape \(30, 2\)",
    ),
    ("last", TypeError, "must be a number, the rows to hold out .*, got 'last'"),
    (None, TypeError, "must be a number, the rows to hold out .*, got None"),
    (
        [],
        ValueError,
        r"must have at least one pair of rows to fit and rows to hold out, got none of \[\]",
    ),
    (iter([]), ValueError, "must have at least one pair"),
    ([([0, 1], [2], [3])], TypeError, "must be a number, the rows to hold out"),
    ([np.arange(5), np.arange(5, 10)], TypeError, "must be a number, the rows to hold out"),
    (
        [([0, 1], [2, 3]), ([0, 1], [1, 5])],
        ValueError,
        "must have no row in both parts of a pair, got row 1 in both of pair 1",
    ),
    ([([0, 1], [])], ValueError, "must have rows to hold out in each pair, got none in pair 0"),
    ([([], [4])], ValueError, "must have rows to fit in each pair, got none in pair 0"),
    (
        [([0, 99], [4])],
        ValueError,
        r"must lie in \[0, 30\) in the rows to fit of pair 0, got 0 to 99",
    ),
    ([([0, 1], 4)], ValueError, "must have one dimension in the rows to hold out of pair 0"),
]


@pytest.mark.every_case
@pytest.mark.parametrize(("given", "error", "says"), WRONG, ids=[says for *_, says in WRONG])
def test_bad_rows_are_refused_by_name(given, error, says):
    with pytest.raises(error, match="^validation " + says):
        read(given)


def test_a_splitter_that_yields_nothing_is_refused():
    class Nothing:
        def split(self, X, y, groups):
            return iter([])

    with pytest.raises(
        ValueError,
        match=r"validation must have at least one pair of rows to fit .* got none of .*Nothing",
    ):
        read(Nothing())


def test_pairs_do_not_divide_a_group():
    assert read(GroupKFold(3), GROUPS) == read(list(GroupKFold(3).split(X, Y, GROUPS)))
    with pytest.raises(
        ValueError,
        match="rows of a group in one part of each pair, got rows 10 and 14 of one group",
    ):
        read(np.arange(14, N), GROUPS)
    # without scikit-learn's warning that groups are ignored
    assert read(KFold(3), GROUPS) == read(KFold(3))
    with pytest.raises(
        ValueError, match="rows of a group in one part of each pair, got rows 5 and 8 of one group"
    ):
        read(TimeSeriesSplit(2, test_size=11), GROUPS)


# Groups


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 1, 3, 2]),
        ["b", "a", "b", "ab"],
        np.array(["y", "x", "y", "xx"], object),
        pd.Series(["b", "a", "b", "a2"]),
        pd.Series(["b", "a", "b", "ab"], dtype="category"),
        np.array([0.5, -1.0, 0.5, 0.0]),
        [3, 1, 3, 2],
        np.array(["2021-01-03", "2020-01-01", "2021-01-03", "2020-05-01"], "M8[D]"),
        pd.array([3, 1, 3, 2], "Int64"),
    ],
    ids=str,
)
def test_groups_are_counted_in_the_order_of_their_labels(labels):
    assert check_groups(labels, 4).tolist() == [2, 0, 2, 1]


def test_groups_of_several_kinds_are_counted_as_they_come():
    assert check_groups(["a", 1, "1", "a"], 4).tolist() == [0, 1, 2, 0]
    assert check_groups(None, 4) is None


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("labels", "error", "says"),
    [
        (
            [1, 2, 3],
            ValueError,
            r"must have an entry for each of the 4 rows of X, got shape \(3,\)",
        ),
        (
            np.ones((4, 1)),
            ValueError,
            r"must have an entry for each of the 4 rows of X, got shape \(4, 1\)",
        ),
        ("abcd", ValueError, r"must have an entry for each of the 4 rows of X, got shape \(\)"),
        ([1.0, np.nan, 2.0, 1.0], ValueError, r"must not have missing labels, got nan at \[1\]"),
        (
            np.array([1.0, np.nan, 2.0, 1.0]),
            ValueError,
            r"must not have missing labels, got nan at \[1\]",
        ),
        (["a", "b", None, "a"], ValueError, r"must not have missing labels, got None at \[2\]"),
        (["a", np.nan, "b", "a"], ValueError, r"must not have missing labels, got nan at \[1\]"),
        (
            pd.array([1, 2, None, 1], "Int64"),
            ValueError,
            r"must not have missing labels, got nan at \[2\]",
        ),
        (
            np.array(["2021-01-03", "NaT"] * 2, "M8[D]"),
            ValueError,
            r"must not have missing labels, got NaT at \[1\]",
        ),
        ([{1}, {1}, {2}, {2}], TypeError, "must hold labels, such as numbers or strings"),
    ],
)
def test_bad_groups_are_refused_by_name(labels, error, says):
    with pytest.raises(error, match="^groups " + says):
        check_groups(labels, 4)


# Folds and draws of whole groups


@examples(60)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=60),
    n_strata=st.integers(1, 3),
    share=st.floats(0.02, 0.5),
    seed=st.integers(0, 2**32),
)
def test_whole_groups_of_about_the_share_are_drawn(sizes, n_strata, share, seed):
    """Some rows of each stratum are left; the share of the rows is missed by no more than half of
    the largest group."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    strata = rng.integers(0, n_strata, len(groups))
    rest = [len(np.unique(strata[groups != k])) for k in range(len(sizes))]
    if max(rest) < len(np.unique(strata)):
        with pytest.raises(ValueError, match="groups must leave rows of each class"):
            draw_groups(groups, strata, share, rng)
        return
    drawn = draw_groups(groups, strata, share, rng)
    assert not np.intersect1d(groups[drawn], groups[~drawn]).size and drawn.any()
    assert set(strata[~drawn]) == set(strata)
    if n_strata == 1:
        assert abs(drawn.mean() - share) <= max(sizes) / len(groups)


def test_strata_have_their_shares_in_whole_groups(rng):
    """Of 400 groups, each mostly of one class, a tenth of each class is held out, and each group
    about equally often."""
    groups = np.repeat(np.arange(400), 5)
    strata = np.where(rng.random(2000) < 0.9, groups % 4 > 0, groups % 4 == 0).astype(int)
    drawn = np.array([draw_groups(groups, strata, 0.1, rng) for _ in range(100)])
    assert np.allclose(drawn.mean(axis=1), 0.1, atol=0.01)
    for k in range(2):
        assert np.allclose(drawn[:, strata == k].mean(axis=1), 0.1, atol=0.05)
    often = drawn[:, ::5].mean(axis=0)
    assert abs(often.std() - np.sqrt(0.09 / 100)) < 0.01 and often.min() > 0


def test_groups_larger_than_the_share_are_drawn_one_at_a_time(rng):
    groups = np.repeat(np.arange(4), [60, 20, 10, 10])
    drawn = [draw_groups(groups, np.zeros(100), 0.02, rng) for _ in range(60)]
    assert {tuple(np.unique(groups[each]).tolist()) for each in drawn} == {(1,), (2,), (3,)}


@pytest.mark.parametrize(
    ("groups", "strata", "says"),
    [
        (np.zeros(6), np.zeros(6), "must be at least two"),
        ([0, 0, 1, 1], [0, 0, 1, 1], "must leave rows of each class to fit"),
    ],
)
def test_groups_of_which_none_can_be_held_out_are_refused(rng, groups, strata, says):
    with pytest.raises(ValueError, match="^groups " + says):
        draw_groups(np.array(groups), np.array(strata), 0.1, rng)


def test_folds_of_single_rows_in_groups_are_even(rng):
    """Groups of one row each make folds that are as even as folds of rows, though of other rows."""
    fold = stratified_folds(Y, 5, rng, np.arange(N))
    assert np.bincount(fold).tolist() == [6] * 5 and all(
        np.bincount(fold[k == Y]).tolist() == [2] * 5 for k in range(3)
    )


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_a_rare_stratum_are_drawn_and_left(seed):
    """Else a search would be judged by rows of frequent classes alone."""
    groups, stratum = np.arange(3000) // 10, np.zeros(3000, int)
    stratum[[7, 1234, 2005]] = 1
    drawn = draw_groups(groups, stratum, 0.1, np.random.default_rng(seed))
    assert 0 < stratum[drawn].sum() < 3 and 0.09 < drawn.mean() < 0.12
