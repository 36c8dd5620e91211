"""Made rows: every cell is one of its column, in a row that is one of two near ones."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sparserf.columns.made_rows import N_NEAR, draw_sources, take_cells, with_made_rows

NUMBERS = np.zeros(4, bool)


def some_rows(n=300, d=4, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def draw(X, n_made=500, is_category=None, weight=None, seed=0):
    is_category = np.zeros(X.shape[1], bool) if is_category is None else is_category
    weight = np.ones(len(X)) if weight is None else weight
    return draw_sources(X, is_category, weight, n_made, np.random.default_rng(seed))


def test_each_made_row_is_of_a_row_and_one_of_its_nearest():
    X = some_rows()
    Z = X / X.std(axis=0)
    # 0: the row itself
    ranks = np.argsort(np.argsort(((Z[:, None] - Z) ** 2).sum(axis=2), axis=1), axis=1)
    sources = draw(X)
    for row in sources:
        pair = np.unique(row)
        assert len(pair) <= 2
        if len(pair) == 2:  # of units that are not quite deviations, the ranks may differ a little
            assert min(ranks[pair[0], pair[1]], ranks[pair[1], pair[0]]) <= 2 * N_NEAR
    assert {len(np.unique(row)) for row in sources} == {1, 2}


def test_rows_of_far_groups_are_never_mixed():
    X = np.concatenate([some_rows(60), 100 + some_rows(60, seed=1)])
    made = take_cells(X, draw(X))
    assert ((made > 50).all(axis=1) | (made < 50).all(axis=1)).all()


def test_cells_are_those_of_their_columns():
    X = some_rows()
    X[:, 1] = np.round(3 * X[:, 1])
    X[::5, 2] = np.nan
    made = take_cells(X, draw(X))
    for j in range(4):
        assert np.isin(made[:, j], X[:, j]).all() or j == 2
    assert 0.1 < np.isnan(made[:, 2]).mean() < 0.3


def test_categories_count_in_distances():
    X = np.column_stack(
        [np.zeros(100), np.arange(100) % 2, np.arange(100) % 2, np.arange(100) % 50]
    )
    made = take_cells(X, draw(X, is_category=np.array([False, True, True, True])))
    # of 48 rows that differ in one column alone, thirty are nearest
    assert (made[:, 1] == made[:, 2]).all()


def test_a_missing_cell_is_far_from_a_number():
    X = some_rows(200)
    X[:100, 0] = np.nan
    sources = draw(X)
    assert np.mean((sources < 100).any(axis=1) & (sources >= 100).any(axis=1)) < 0.1


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(n):
    X = some_rows(n)
    assert np.isin(take_cells(X, draw(X)), X).all()


def test_equal_rows():
    X = np.ones((30, 4))
    np.testing.assert_array_equal(take_cells(X, draw(X)), np.ones((500, 4)))


def test_more_rows_than_partners(monkeypatch):
    monkeypatch.setattr("sparserf.columns.made_rows.MOST_PARTNERS", 50)
    X = some_rows()
    assert len(np.unique(draw(X))) > 50  # first rows are drawn among all


def test_same_seed_same_rows():
    X = some_rows()
    np.testing.assert_array_equal(draw(X), draw(X))
    assert (draw(X) != draw(X, seed=1)).any()


def test_frames_keep_their_types():
    X = some_rows(20)
    words = pd.Categorical(list("uv") * 10, ["v", "w", "u"], ordered=True)
    F = pd.DataFrame(
        {"a": X[:, 0], "b": np.arange(20), "c": words, "d": list("xy") * 10},
        index=np.arange(20) % 7,
    )
    sources = draw(X)
    made = take_cells(F, sources)
    assert (made.dtypes == F.dtypes).all()
    assert made.index.equals(pd.RangeIndex(500))
    for j, name in enumerate(F):
        assert made[name].tolist() == F[name].to_numpy()[sources[:, j]].tolist()
    assert take_cells(F, np.array([3, 1]))["b"].tolist() == [3, 1]


def test_encodings_of_a_column_are_made_from_one_cell():
    """Made rows stand below the rows, and weigh as much as was asked for."""
    X, weight = some_rows(60), np.random.default_rng(1).uniform(0.5, 2.0, 60)
    encoder = SimpleNamespace(column=np.array([0, 0, 1, 1]))
    made, h = with_made_rows(X, weight, encoder, 120, 0.3)
    assert np.array_equal(made[:60], X) and np.array_equal(h[:60], weight)
    assert h[60:].sum() == pytest.approx(0.3 * weight.sum()) and len(made) == 180
    pairs = {tuple(row) for row in X[:, :2]} | {tuple(row) for row in X[:, 2:]}
    assert {tuple(row) for part in (made[:, :2], made[:, 2:]) for row in part} <= pairs
    assert len(np.unique(made, axis=0)) > 120
