"""Calls of public functions: their keywords and signatures. Calls of users' functions: what these
return, and raise."""

import inspect
import pickle
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
import sparserf.sklearn


def test_keywords_of_scikit_learn_are_translated_in_errors():
    X, y = np.eye(3), np.arange(3.0)
    functions = [
        srf.sparse_rf,
        srf.sparse_rf_path,
        srf.harfe,
        srf.harfe_path,
        srf.mfga,
        srf.mfga_path,
        srf.drp,
        srf.drp_path,
    ]
    for function in functions:
        for word, here in {
            "random_state": "rng",
            "seed": "rng",
            "n_jobs": "workers",
            "weights": "sample_weight",
        }.items():
            with pytest.raises(
                TypeError, match=rf"^{function.__name__}\(\) got .* '{word}'; here it is '{here}'$"
            ):
                function(X, y, **{word: 1})
    for function in (srf.cross_validate, srf.intervals, srf.calibrated):
        with pytest.raises(
            TypeError, match=rf"^{function.__name__}\(\) .* 'random_state'; here it is 'rng'"
        ):
            function(srf.drp, X, y, random_state=0)
    with pytest.raises(
        TypeError, match=r"prune\(\) got an unexpected .* 'n_jobs'; here it is 'workers'"
    ):
        srf.prune(srf.mfga(X, y, rng=0), X, n_jobs=2)
    with pytest.raises(
        TypeError,
        match=r"drp\(\) got an unexpected .* 'C'; here it is alpha=1 / \(n_samples \* C\)",
    ):
        srf.drp(X, y, C=1.0)
    with pytest.raises(
        TypeError, match=r"drp\(\) got an unexpected .* 'max_iter'; here it is 'n_iter'"
    ):
        srf.drp(X, y, max_iter=1)
    with pytest.raises(
        TypeError,
        match=r"mfga\(\) got an unexpected .* 'n_nonzero_coef'; did you mean 'n_nonzero_coefs'\?",
    ):
        srf.mfga(X, y, n_nonzero_coef=1)
    with pytest.raises(TypeError, match=r"^drp\(\) got an unexpected keyword argument 'no_such'$"):
        srf.drp(X, y, no_such=1)
    with pytest.raises(TypeError, match=r"harfe\(\) missing 1 required positional argument: 'y'"):
        srf.harfe(X)


def test_functions_keep_their_signatures():
    for name in srf.__all__:
        function = getattr(srf, name)
        if inspect.isfunction(function):
            assert "args" not in inspect.signature(function).parameters, name
            assert (
                function.__name__ == name
                and function.__doc__
                and pickle.loads(pickle.dumps(function)) is function
            )


# What the user's own functions return


N_ROWS = 90
ROWS = np.random.default_rng(0).normal(size=(N_ROWS, 3))
TARGET = ROWS[:, 0] + np.sin(2 * ROWS[:, 1])
RKS = partial(srf.sparse_rf, features="gaussian", n_components=50, alpha=0.05)


def raise_it(error):
    """Raise an error, where an expression is wanted."""
    raise error


def generates(*arguments):
    """Do nothing yet: a generator."""
    yield arguments


async def waits(*arguments):
    """Do nothing yet: a coroutine."""
    return arguments


def endless():
    """Yield pairs of rows without end."""
    while True:
        yield np.arange(50), np.arange(50, 60)


def split_by(given):
    """Return a splitter whose `split` returns, or is, what is given."""
    splitter = SimpleNamespace(split=given if callable(given) else lambda X, y, groups: given)
    return lambda: srf.cross_validate(RKS, ROWS, TARGET, {"alpha": [0.1]}, cv=splitter, rng=0)


def asked_by(name):
    """Return a function that gives a user's function to each public function that takes one of this
    name, and calls that."""
    calls = {
        "callback": [
            lambda own: srf.sparse_rf(ROWS, TARGET, effort=0.1, rng=0, callback=own),
            lambda own: srf.sparse_rf_path(
                ROWS, TARGET, features="gaussian", n_components=50, rng=0, callback=own
            ),
            lambda own: srf.harfe(
                ROWS, TARGET, n_components=50, n_nonzero_coefs=5, alpha=1e-4, rng=0, callback=own
            ),
            lambda own: srf.mfga(
                ROWS,
                TARGET > 0,
                loss="logistic",
                n_nonzero_coefs=3,
                alpha=1e-3,
                n_components=50,
                rng=0,
                callback=own,
            ),
            lambda own: srf.drp(
                srf.Chunks(ROWS, block_rows=40), TARGET, alpha=0.1, rng=0, callback=own
            ),
            lambda own: srf.distill(
                lambda X: X[:, 0], ROWS, n_made=50, effort=0.1, rng=0, callback=own
            ),
            lambda own: srf.sklearn.DRPRegressor(alpha=0.1, random_state=0, callback=own).fit(
                ROWS, TARGET
            ),
        ],
        "measure": [
            lambda own: srf.cross_validate(RKS, ROWS, TARGET, {"alpha": [0.1]}, measure=own, rng=0)
        ],
        "teacher": [lambda own: srf.distill(own, ROWS, n_made=50, effort=0.1, rng=0)],
        "function": [
            lambda own: srf.cross_validate(own, ROWS, TARGET, {"alpha": [0.1]}, rng=0),
            lambda own: srf.calibrated(own, ROWS, TARGET > 0, rng=0),
            lambda own: srf.intervals(own, ROWS, TARGET, rng=0),
        ],
        "cv": [lambda own: split_by(own)()],
        "validation": [
            lambda own: srf.sparse_rf(
                ROWS, TARGET, validation=SimpleNamespace(split=own), effort=0.1, rng=0
            )
        ],
    }
    return calls[name]


NO_ANSWER = {
    "array": lambda *_: np.ones(3),
    "no numbers": lambda *_: np.zeros(0),
    "one number": lambda *_: np.ones(1),
    "Series": lambda *_: pd.Series([True, False]),
    "frame": lambda *_: pd.DataFrame({"a": [1.0]}),
    "NA": lambda *_: pd.NA,
    "NaN": lambda *_: float("nan"),
    "generator": generates,
    "coroutine": waits,
    "function": lambda *_: len,
}
NO_NUMBERS = {
    "None": lambda *_: None,
    "text": lambda *_: ["a"] * N_ROWS,
    "one number": lambda *_: 1.0,
    "too few": lambda *_: np.ones(2),
    "complex": lambda *_: 1j * np.ones(N_ROWS),
    "ragged": lambda *_: [[1.0], [1.0, 2.0]],
    "generator": generates,
    "dict": lambda *_: {"loss": 1.0},
}
WRONG = {
    "callback": NO_ANSWER,
    "measure": NO_NUMBERS
    | {
        "NaN": lambda model, X, y: np.where(y == y.max(), np.nan, y),
        "infinite": lambda model, X, y: np.full(len(y), np.inf),
        "a column": lambda model, X, y: y[:, None],
    },
    "teacher": NO_NUMBERS
    | {
        "NaN": lambda X: np.where(X[:, 0] == X[0, 0], np.nan, 1.0),
        "infinite": lambda X: np.full(len(X), -np.inf),
        "a cube": lambda X: X[:, :, None],
        "other each time": lambda X: X if len(X) < 20 else X[:, 0],
    },
    "function": {
        "None": lambda X, y, rng, alpha=0: None,
        "a number": lambda X, y, rng, alpha=0: 1.0,
        "a path": lambda X, y, rng, alpha=0: [],
        "a class": lambda X, y, rng, alpha=0: srf.SparseModel,
    },
}
WRONG["cv"] = WRONG["validation"] = {
    "None": lambda *_: None,
    "a number": lambda *_: 3,
    "text": lambda *_: "ab",
    "nothing": lambda *_: [],
    "ends at once": lambda *_: iter(()),
    "never ends": lambda *_: endless(),
    "one part": lambda *_: [(np.arange(3),)],
    "NaN": lambda *_: [(np.array([np.nan, 1.0]), np.arange(3))],
    "fractions": lambda *_: [(np.array([0.5, 1.5]), np.arange(3))],
    "too large": lambda *_: [(np.arange(3), np.arange(N_ROWS, N_ROWS + 2))],
    "both": lambda *_: [(np.arange(3), np.arange(3))],
    "short masks": lambda *_: [(np.ones(3, bool), np.zeros(3, bool))],
    "a ragged pair": lambda *_: [([[1], [2, 3]], [1])],
    "None in a pair": lambda *_: [(None, [1])],
}
CASES = [(name, what) for name, of_name in WRONG.items() for what in of_name]


@pytest.mark.parametrize(("name", "what"), CASES)
def test_what_a_users_function_returns_is_checked(name, what):
    """The error names the argument, and does not come from inside."""
    before = threading.active_count()
    for call in asked_by(name):
        with pytest.raises((TypeError, ValueError), match=rf"^{name}") as caught:
            call(WRONG[name][what])
        assert "ambiguous" not in str(caught.value) and "has no attribute" not in str(caught.value)
    assert threading.active_count() == before


class Own(Exception):
    """An error of the user's."""


@pytest.mark.every_case
@pytest.mark.parametrize(
    "error", [Own, ValueError, TypeError, KeyError, StopIteration, KeyboardInterrupt]
)
@pytest.mark.parametrize("name", WRONG)
def test_what_a_users_function_raises_passes(name, error):
    """It is the same object, and no thread is left."""
    mine, before = error("mine"), threading.active_count()
    for call in asked_by(name):
        with pytest.raises(error) as caught:
            call(lambda *arguments, **keywords: raise_it(mine))
        assert caught.value is mine
    assert threading.active_count() == before


def test_a_generator_may_raise_and_may_use_its_arrays_again():
    """Pairs are read as they come."""

    def pairs(fails):
        mask = np.zeros(N_ROWS, bool)
        for k in range(3):
            mask[:] = np.arange(N_ROWS) % 3 == k
            yield np.flatnonzero(~mask), mask
            if fails and k:
                raise Own

    with pytest.raises(Own):
        split_by(pairs(True))()
    own, whole = split_by(pairs(False))(), np.arange(N_ROWS) % 3
    np.testing.assert_array_equal(own.fold, whole)


@pytest.mark.parametrize("answer", [True, 1, "stop", np.True_, np.array(True), [0]])
def test_a_callback_ends_a_fit_by_anything_true(answer):
    calls = []
    srf.mfga(
        ROWS,
        TARGET,
        n_nonzero_coefs=5,
        alpha=1e-3,
        n_components=50,
        rng=0,
        callback=lambda info: calls.append(info) or answer,
    )
    assert len(calls) == 1


@pytest.mark.slow
def test_a_teacher_may_use_the_memory_of_its_values_again(monkeypatch):
    """As a predictor does that writes into one buffer."""
    monkeypatch.setattr(sys.modules["sparserf.algorithms.distill"], "BATCH", 100)
    buffer = np.empty(100)

    def teacher(X):
        buffer[: len(X)] = X[:, 0] ** 2
        return buffer[: len(X)]

    models = [
        srf.distill(of, ROWS, n_made=300, effort=0.1, rng=0)
        for of in (teacher, lambda X: X[:, 0] ** 2)
    ]
    np.testing.assert_array_equal(*(model.predict(ROWS) for model in models))
