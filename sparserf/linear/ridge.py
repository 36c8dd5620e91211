"""Ridge regression on few inputs at many penalties, from their second moments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .fit import LinearFit


class RidgeSolutions:
    """The optima of a fit with a quadratic loss, at any penalty, in no pass over the rows.

    With the second moments Z'SZ / n = V diag(l) V' of the centred inputs, and their products c with
    the target, w = V (V'c / (l + alpha)).

    fit : a fit at zero coefficients
    """

    def __init__(self, fit: LinearFit):
        fit.set_penalty(1.0, np.inf)
        here, problem = fit.certificate.evaluation, fit.problem
        H, _ = fit.inputs.weighted_gram(problem.vectors.output(here.h, 0), problem.fit_intercept)
        self._fit, (self._values, self._directions) = fit, np.linalg.eigh(H)
        self._along = -here.z_v @ self._directions

    def set_alpha(self, alpha: float) -> None:
        """Move the fit to the optimum at a penalty; its intercepts are the best, and its margins
        are unknown from now on."""
        self._fit.alpha = alpha
        penalty = self._fit.penalty_on_inputs(alpha)
        share = self._along / np.maximum(self._values + penalty, np.finfo(np.float64).tiny)
        self._fit.iterate.w = share @ self._directions.T
