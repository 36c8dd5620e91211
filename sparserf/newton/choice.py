"""Which steps of Newton's method are the cheapest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dual import SketchSteps
from .sketch import Sketch
from .steps import AdaptiveSteps, InputSteps

if TYPE_CHECKING:
    import numpy as np

    from .._types import NewtonSteps, ProjectionName
    from .inputs import Inputs

# Inputs up to which their own second moments take the place of a sketch: in any rows, and in dense ones.
FEW, FEW_DENSE, DENSE = 256, 2048, 0.25
# Second moments that take longer than so many passes over the rows are made where conjugate gradients take as many steps.
FEW_PASSES = 10


def steps_of(inputs: Inputs, fit_intercept: bool, m: int | None, kind: ProjectionName, rng: np.random.Generator) -> NewtonSteps:
    """How Newton's steps are made: from few inputs' second moments, on a sketch of m columns, or plainly while quick."""
    d, n = inputs.n_features, inputs.n_rows
    if d <= min(n, max(FEW, min(FEW_DENSE, inputs.rows.row_size / DENSE)), d if m is None else m):
        steps = InputSteps(inputs, rng)
        return steps if m or steps.n_passes <= FEW_PASSES else AdaptiveSteps(lambda: steps, steps.n_passes)

    def sketched():
        return SketchSteps(Sketch(inputs, m, kind, fit_intercept, rng))

    return sketched() if m else AdaptiveSteps(sketched)
