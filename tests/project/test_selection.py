"""Which cases of a test run with --whole: each value of each parameter."""

from types import SimpleNamespace

from ..conftest import covering


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
