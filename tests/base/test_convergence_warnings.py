"""A ConvergenceWarning points at the line that called the public function."""

import dataclasses
import warnings

import pytest

import sparserf as srf
from sparserf.algorithms import model_of_fits

from ..kinds_of_input import LABELS, NAMED, SMALL, X, Y

TINY = {"alpha": 1e-9, **NAMED, "max_iter": 1}
LATE = {"loss": "logistic", "alpha": 1e-12, "rng": 0, "tol": 1e-15}
PAPER = {"n_projections": 3, "accelerate": False, "n_iter": 1, "rng": 0}
START = {"start": "zero", "max_iter": 1, "tol": 0, **SMALL}
UNFINISHED = {  # each on a line of its own, at which the warning must point
    "sparse_rf": lambda: srf.sparse_rf(X, Y, **TINY),
    "sparse_rf_path": lambda: srf.sparse_rf_path(X, Y, alphas=[1e-9], **NAMED, max_iter=1),
    "harfe": lambda: srf.harfe(X, Y, n_nonzero_coefs=8, alpha=1e-4, **START),
    "harfe_path": lambda: srf.harfe_path(X, Y, n_nonzero_coefs=[8], **START),
    "mfga": lambda: srf.mfga(X, Y, n_nonzero_coefs=9, alpha=1e-3, rng=0),
    "mfga_path": lambda: srf.mfga_path(X, Y, n_nonzero_coefs=9, rng=0),
    "drp": lambda: srf.drp(X, LABELS, **LATE),
    "drp_path": lambda: srf.drp_path(X, LABELS, alphas=[1e-12], loss="logistic", rng=0, tol=1e-15),
    "drp squared": lambda: srf.drp(X, Y, alpha=1e-3, n_iter=1, tol=1e-14, rng=0),
    "drp_path squared": lambda: srf.drp_path(X, Y, alphas=[1e-3], tol=1e-15, rng=0),
    "drp of the paper": lambda: srf.drp(X, Y, alpha=1e-3, **PAPER),
    "drp_path of the paper": lambda: srf.drp_path(X, Y, alphas=[1e-3], **PAPER),
}


@pytest.fixture
def unfinished(monkeypatch):
    """Make models say that they have not converged: those of mfga, with so few terms, always do."""

    of_fits = model_of_fits.model_of

    def model_of(*given, **how):
        model = of_fits(*given, **how)
        return dataclasses.replace(model, info=dataclasses.replace(model.info, converged=False))

    monkeypatch.setattr(model_of_fits, "model_of", model_of)


@pytest.mark.parametrize("name", UNFINISHED)
@pytest.mark.usefixtures("unfinished")
def test_a_warning_points_at_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        UNFINISHED[name]()
    assert caught
    for warning in caught:
        assert warning.category is srf.ConvergenceWarning
        assert (warning.filename, warning.lineno) == (
            __file__,
            UNFINISHED[name].__code__.co_firstlineno,
        )
