"""Every argument of a public function is read, and no internal list is long."""

import ast
from functools import partial
from inspect import isfunction, signature
from pathlib import Path

import numpy as np
import pytest

import sparserf as srf

from ..conftest import bits

MOST_PARAMETERS = 8
X = np.random.default_rng(0).standard_normal((40, 3))
Y = X[:, 0]
MODEL = srf.mfga(X, Y, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-3)


RULES = srf.sparse_rf(X, Y > 0, features=srf.Rules(), loss="logistic", alpha=0.05, rng=0)

# Each function, with what it needs beside X and y.
FUNCTIONS = {
    srf.harfe: (srf.harfe, {}),
    srf.harfe_path: (srf.harfe_path, {}),
    srf.mfga: (srf.mfga, {}),
    srf.mfga_path: (srf.mfga_path, {}),
    srf.sparse_rf: (srf.sparse_rf, {}),
    srf.sparse_rf_path: (srf.sparse_rf_path, {}),
    srf.drp: (srf.drp, {"alpha": 0.1}),
    srf.drp_path: (srf.drp_path, {"alphas": [0.1]}),
    srf.distill: (
        lambda X, y, **how: srf.distill(how.pop("teacher"), X, **how),
        {"teacher": lambda X: X[:, 0]},
    ),
    srf.prune: (lambda X, y, **how: srf.prune(how.pop("model"), X, **how), {"model": MODEL}),
    srf.points: (lambda X, y, **how: srf.points(how.pop("model"), X, **how), {"model": RULES}),
    srf.refit: (lambda X, y, **how: srf.refit(how.pop("model"), X, y, **how), {"model": MODEL}),
}


def test_no_function_is_left_out():
    public = [getattr(srf, name) for name in srf.__all__]
    fits = {
        thing
        for thing in public
        if isfunction(thing) and thing.__module__.startswith("sparserf.algorithms")
    }
    assert fits == set(FUNCTIONS)


@pytest.mark.every_case
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_argument_is_read(function):
    """One that is of no kind that could be meant is refused by its name."""
    fit, how = FUNCTIONS[function]
    for name in set(signature(function).parameters) - {"X", "y"}:
        with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
            fit(X, Y, **how | {name: object()})


def test_what_is_given_as_it_is_left_out_changes_nothing():
    """With a penalty, too, which leaves some arguments without a meaning."""
    defaults = {
        name: each.default
        for name, each in signature(srf.sparse_rf).parameters.items()
        if name not in ("X", "y")
    }
    how = {"alpha": 0.1, "features": "gaussian", "n_components": 20, "rng": 0}
    assert bits(srf.sparse_rf(X, Y, **defaults | how)) == bits(srf.sparse_rf(X, Y, **how))


@pytest.mark.slow
def test_internal_lists_of_parameters_are_short():
    for path in Path(srf.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name not in srf.__all__:
                names = [
                    each.arg
                    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                ]
                assert len(names) - (names[:1] in (["self"], ["cls"])) <= MOST_PARAMETERS, (
                    path.name,
                    node.name,
                )


def test_gamma_is_taken_by_all_functions_whose_features_are_named():
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.sin(X[:, 0])
    few = {"features": "gaussian", "n_components": 30, "rng": 0}
    fits = {
        "sparse_rf": partial(srf.sparse_rf, X, y, alpha=0.01, **few),
        "sparse_rf_path": lambda **more: srf.sparse_rf_path(X, y, alphas=[0.01], **few, **more)[0],
        "harfe": partial(srf.harfe, X, y, n_nonzero_coefs=5, alpha=1e-4, **few),
        "harfe_path": lambda **more: srf.harfe_path(X, y, n_nonzero_coefs=[5], **few, **more)[0],
        "mfga": partial(srf.mfga, X, y, n_nonzero_coefs=5, alpha=1e-3, **few),
        "mfga_path": lambda **more: srf.mfga_path(X, y, n_nonzero_coefs=5, **few, **more)[-1],
    }
    for name, fit in fits.items():
        narrow, wide = (fit(gamma=gamma).predict(X) for gamma in (5.0, 0.01))
        assert np.abs(narrow - wide).max() > 0.01, name
    with pytest.raises(ValueError, match=r"gamma must be None where features is, got 0.5"):
        srf.harfe(X, y, gamma=0.5)
    for function in (srf.harfe, srf.mfga, srf.sparse_rf):
        with pytest.raises(ValueError, match="gamma must be None where features is 'auto'"):
            function(X, y, features="auto", gamma=0.5)
