"""Which cases of a test run: a few that differ from test to test, or each value of each
parameter."""

from types import SimpleNamespace

import pytest

from ..conftest import covering, some


@pytest.mark.parametrize("n", [1, 2, 3, 4, 50])
def test_by_default_the_ends_and_one_between_which_differs_from_test_to_test(n):
    found = [some(f"test_{k}", n, False) for k in range(300)]
    assert all(chosen >= {0, n - 1} and len(chosen) == min(n, 3) for chosen in found)
    assert set().union(*found) == set(range(n))
    assert set().union(*(some(f"test_{k}", n, True) for k in range(300))) == set(range(n))
    assert all(len(some(f"test_{k}", n, True)) == 1 for k in range(9))


def case(indices, **params):
    return SimpleNamespace(indices=indices, params=params or indices)


def test_of_the_whole_each_value_of_each_parameter_and_few_cases():
    cases = [
        case({"loss": i, "kind": j, "dtype": k})
        for i in range(5)
        for j in range(8)
        for k in range(2)
    ]
    chosen = covering(cases, {0, 17, len(cases) - 1})
    assert len({value for k in chosen for value in cases[k].indices.items()}) == 5 + 8 + 2
    assert {0, 17, len(cases) - 1} <= chosen and len(chosen) < 12
    few = [case({"loss": i}) for i in range(5)]
    assert covering(few, {0}) == set(range(5))


def test_parameters_given_together_count_each_by_itself():
    pairs = [(fit, loss) for fit in "abcdefgh" for loss in ("squared", "logistic")]
    cases = [case({"fit": k, "loss": k}, fit=fit, loss=loss) for k, (fit, loss) in enumerate(pairs)]
    chosen = covering(cases, {0})
    assert {pairs[k][0] for k in chosen} == set("abcdefgh") and len(chosen) == 8
    assert {pairs[k][1] for k in chosen} == {"squared", "logistic"}
    lists = [case({"rows": k}, rows=[1.0]) for k in range(4)]  # not told apart by their values
    assert covering(lists, {0}) == set(range(4))
