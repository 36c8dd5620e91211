"""How the steps of a fit are made: from second moments of few inputs, or by conjugate gradients,
preconditioned by a basis of the range of the rows or by a sketch of the dual where they are slow.

Each is there for what fits take without it. Of 80 fits to 21 sets (dense and CSR, of few columns
and of many, of low and of full rank; squared and logistic loss; alpha from 1e-5 to 0.1), the CPU
seconds after X was read, over those with all three:

- without second moments, of 34 fits with few inputs: 1.7 in the median, 28 at most, and 6 had not
  ended after three times the seconds;
- without the basis, of 46 fits with more: 1.0 in the median, 2.4 to 12 at a rank of 20 to 80. It
  costs where all rows are directions that count alike: 0.2 to 0.6 for 500 x 20,000 normal numbers;
- without the sketch, of the same fits: 1.0 in the median, 1.8 at most, with the squared loss and
  2,000 rows whose spectrum falls slowly.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from .multinomial import MultinomialLinearFit
from .range_basis import RangeBasis, RangeSteps
from .sketch import Sketch, SketchSteps
from .steps import SLOW_STEPS, InputSteps, NewtonSteps, PreconditionedSteps, plain_step

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from ..features.projections import ProjectionName
    from ..rows import Rows
    from .fit import LinearFit
    from .problem import Step


def has_few_inputs(rows: Rows, n_projections: int | None) -> bool:
    """Return whether the second moments of the inputs take the place of a sketch: of few, or of
    more where X is dense."""
    few_inputs, most_few_inputs = 256, 2048
    least_density = 0.25

    d = rows.n_features_in
    few = max(few_inputs, min(most_few_inputs, rows.row_size / least_density))
    return d <= min(rows.n_rows, few, n_projections or d)


def choose_steps(
    fit: LinearFit,
    n_projections: int | None,
    projection: ProjectionName,
    rng: np.random.Generator,
) -> list[NewtonSteps]:
    """Return the `NewtonSteps` of a fit, of several classes together those of each.

    n_projections : the columns of a sketch; None: what takes the fewest passes over the rows
    """
    # Second moments that take longer than this number of passes over the rows wait until conjugate
    # gradients take as many steps.
    few_passes = 10

    inputs, m, fit_intercept = fit.inputs, n_projections, fit.problem.fit_intercept
    n_fits = len(fit.w) if isinstance(fit, MultinomialLinearFit) else 1
    if has_few_inputs(inputs.rows, m):
        steps = [InputSteps(inputs, rng) for _ in range(n_fits)]
        if m or steps[0].n_passes <= few_passes:
            return steps
        return [AdaptiveSteps(lambda own=own: own, slow=own.n_passes) for own in steps]
    # all share one
    sketch = cache(lambda: Sketch(inputs, m, projection, fit_intercept, rng))
    if m:
        return [SketchSteps(sketch()) for _ in range(n_fits)]
    basis = RangeBasis(inputs, fit_intercept, rng)
    return [
        AdaptiveSteps(lambda: SketchSteps(sketch()), first=RangeSteps(basis)) for _ in range(n_fits)
    ]


class AdaptiveSteps(NewtonSteps):
    """`NewtonSteps` by a basis of the range where that is quickest; else plain until one is slow,
    then preconditioned.

    Parameters
    ----------
    make : callable
        Makes the `PreconditionedSteps` that take over, where they are quicker than plain ones;
        called once, if ever.
    slow : int, default SLOW_STEPS
        The number of steps of conjugate gradients at which a plain step is slow, and ends
        unfinished.
    first : PreconditionedSteps or None, default None
        Steps that are asked before any other is made, such as `RangeSteps`.
    """

    def __init__(
        self,
        make: Callable[[], PreconditionedSteps],
        slow: int = SLOW_STEPS,
        first: PreconditionedSteps | None = None,
    ):
        self._make, self._preconditioned, self._slow, self._first = make, None, slow, first

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Step, int]:
        """Return a step and the steps of conjugate gradients it took; see `NewtonSteps`."""
        if self.is_quick_at_once(fit):
            return self._first(fit, shares)
        if self._preconditioned is None:
            step, n_steps = plain_step(fit, shares, self._slow)
            if n_steps == self._slow:
                self._preconditioned = self._make()
            return step, n_steps
        quicker = self._preconditioned if self._preconditioned.is_quicker(fit) else plain_step
        return quicker(fit, shares)

    def is_quick_at_once(self, fit: LinearFit) -> bool:
        """Return whether the first steps are quicker at the fit's penalty, so that no larger one
        needs to lead to it."""
        return self._first is not None and self._first.is_quicker(fit)
