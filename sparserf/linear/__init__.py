"""Newton's method for models linear in the inputs, certified: each iterate comes with a bound on
its distance to the optimum.

`problem.py` is the problem and its iterates, `fit.py` the fit; `inputs.py` computes on the rows;
`certificate.py` bounds the distance of an iterate to the optimum; `descent.py` is Newton's method;
`steps.py`, `range_basis.py` and `sketch.py` make its steps; `multinomial.py` is the fit of several
classes together; `ridge.py` is ridge regression on few inputs; and `projected.py` is the projected
problem of dual random projection.
"""

from .descent import descend as descend
from .fit import LinearFit as LinearFit
from .inputs import Inputs as Inputs
from .multinomial import MultinomialLinearFit as MultinomialLinearFit
from .multinomial import MultinomialLinearProblem as MultinomialLinearProblem
from .problem import LinearProblem as LinearProblem
from .projected import ProjectedProblem as ProjectedProblem
from .range_basis import RangeBasis as RangeBasis
from .range_basis import RangeSteps as RangeSteps
from .ridge import RidgeSolutions as RidgeSolutions
from .sketch import Sketch as Sketch
from .sketch import SketchSteps as SketchSteps
from .steps import AdaptiveSteps as AdaptiveSteps
from .steps import InputSteps as InputSteps
from .steps import NewtonSteps as NewtonSteps
