"""Which cases of a test run: a few that differ from test to test, or each value of each
parameter."""

from types import SimpleNamespace

import pytest

from ..conftest import covering, some


@pytest.mark.parametrize("n", [1, 2, 3, 4, 50])
def test_the_ends_and_one_between_or_fewer_which_differ_from_test_to_test(n):
    found = {most: [some(f"test_{k}", n, most) for k in range(300)] for most in (1, 2, 3)}
    for most, every in found.items():
        assert all(len(chosen) == min(n, most) for chosen in every)
        assert set().union(*every) == set(range(n))
    assert all(chosen >= {0, n - 1} for chosen in found[3])


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
