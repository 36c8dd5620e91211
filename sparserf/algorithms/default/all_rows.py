"""The weights of a model that was found on a sample of the rows, fitted to all rows in few passes.

The objective is that of `fit_of_terms.py`, where the weights begin at those of the sample, and
lambda is the number of rows of the sample over that of the others: with few others the weights
stay, with ever more they become those of all rows. A square needs one pass.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..._base.progress import check_not_ended
from .fit_of_terms import FitOfTerms, minimised

if TYPE_CHECKING:
    from ...model import SparseModel
    from ..task import Task

# The most passes where the loss is no square.
PASSES = 3
# A fall of the objective by less than this share of it ends them.
FALLS = 1e-4


def fitted_to_all_rows(
    model: SparseModel, n_sample: int, task: Task, fit_intercept: bool
) -> SparseModel:
    """Return the model of a sample of so many rows with weights for all rows of the task."""
    rows = task.raw.encoded(model.features.encoder)
    features = model.features.encoded(None)
    fit = FitOfTerms(rows, features, task, features.nonnegative.astype(int), fit_intercept)
    w, b = fit.in_units(model)
    strength = n_sample / (rows.n_rows - n_sample)
    if fit.is_square:
        check_not_ended()
        _, sums = fit.sums_at(w, b)
        w, b = fit.newton(w, b, strength * fit.diagonal(sums), sums)
    else:
        w, b = minimised(fit, w, b, strength, PASSES, FALLS).solution
    coef, intercept = fit.in_units_of_y(w, b)
    is_one = np.ndim(model.intercept) == 0
    return replace(
        model,
        coef=np.reshape(coef, np.shape(model.coef)),
        intercept=float(intercept[0]) if is_one else intercept,
    )
