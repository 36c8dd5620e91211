"""An effort below 1: less work in proportion, and a model all the same."""

import numpy as np
import pytest

import sparserf as srf
from sparserf.algorithms.sparse_rf import search as _search
from sparserf.algorithms.sparse_rf.budget import Budget

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(400, 6))
Y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + RNG.standard_normal(400)


def test_the_rows_candidates_and_rounds_fall_with_the_effort():
    budgets = [Budget.from_effort(effort, 2_000, None) for effort in (1.0, 0.5, 0.1, 0.01)]
    assert [budget.rows for budget in budgets] == [16_000, 1625, 1002, 502]
    assert [len(budget.some_of("abcd")) for budget in budgets] == [4, 3, 1, 1]
    assert budgets[1].some_of("abcd") == ["a", "b", "d"] and budgets[2].some_of("abcd") == ["a"]
    kept = {0: (0,), 3: (0,)}  # two kinds, undecided
    assert [budget.n_rounds(kept) for budget in budgets] == [5, 3, 1, 1]
    assert Budget.from_effort(0.01, 50, None).rows == 100  # more than there are


def test_where_time_is_short_rows_are_fewer_and_then_candidates():
    budget = Budget.from_effort(1.0, 30_000, None)
    assert budget.in_time(1e-6, 10.0) == budget
    less = budget.in_time(1e-6, 0.8)
    assert (less.rows, less.candidates) == (2_000, 1.0)
    least = budget.in_time(1e-6, 0.08)
    assert (least.rows, least.candidates) == (400, 0.5) and least.some_of("abcd") == ["a", "d"]


@pytest.mark.slow
def test_the_work_falls_with_the_effort(monkeypatch):
    """In multiplications, which are counted the same on any machine; what each call does besides is
    not in them."""
    real, efforts = _search.effort_of_searches, []
    monkeypatch.setattr(
        _search, "effort_of_searches", lambda *args: efforts.append(real(*args)) or efforts[-1]
    )
    for effort in (1.0, 0.1, 0.01):
        assert np.isfinite(srf.sparse_rf(X, Y, effort=effort, rng=0).predict(X)).all()
    whole, tenth, least = (each.within.spent for each in efforts)
    assert 0.02 < tenth / whole < 0.15 and least < tenth
