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


def test_of_the_whole_each_value_of_each_parameter_and_few_cases():
    cases = [
        SimpleNamespace(indices={"loss": i, "kind": j, "dtype": k})
        for i in range(5)
        for j in range(8)
        for k in range(2)
    ]
    chosen = covering(cases, {0, 17, len(cases) - 1})
    assert len({value for k in chosen for value in cases[k].indices.items()}) == 5 + 8 + 2
    assert {0, 17, len(cases) - 1} <= chosen and len(chosen) < 12
    few = [SimpleNamespace(indices={"loss": i}) for i in range(5)]
    assert covering(few, {0}) == set(range(5))
