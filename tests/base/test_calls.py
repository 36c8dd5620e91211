"""Calls of public functions: errors of unknown keywords suggest the right ones, and signatures stay readable."""

import inspect
import pickle

import numpy as np
import pytest

import sparserf as srf


def test_keywords_of_scikit_learn_are_translated_in_errors():
    X, y = np.eye(3), np.arange(3.0)
    functions = [srf.sparse_rf, srf.sparse_rf_path, srf.harfe, srf.harfe_path, srf.mfga, srf.mfga_path, srf.drp, srf.drp_path]
    for function in [*functions, srf.baselines.rks, srf.baselines.random_projection]:
        for word, here in {"random_state": "rng", "seed": "rng", "n_jobs": "workers", "weights": "sample_weight"}.items():
            with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got .* '{word}'; here it is '{here}'$"):
                function(X, y, **{word: 1})
    for function in (srf.cross_validate, srf.intervals, srf.calibrated):
        with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) .* 'random_state'; here it is 'rng'"):
            function(srf.drp, X, y, random_state=0)
    with pytest.raises(TypeError, match=r"prune\(\) got an unexpected .* 'n_jobs'; here it is 'workers'"):
        srf.prune(srf.mfga(X, y, rng=0), X, n_jobs=2)
    with pytest.raises(TypeError, match=r"drp\(\) got an unexpected .* 'C'; here it is alpha=1 / \(n_samples \* C\)"):
        srf.drp(X, y, C=1.0)
    with pytest.raises(TypeError, match=r"drp\(\) got an unexpected .* 'max_iter'; here it is 'n_iter'"):
        srf.drp(X, y, max_iter=1)
    with pytest.raises(TypeError, match=r"mfga\(\) got an unexpected .* 'n_nonzero_coef'; did you mean 'n_nonzero_coefs'\?"):
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
            assert function.__name__ == name and function.__doc__ and pickle.loads(pickle.dumps(function)) is function
