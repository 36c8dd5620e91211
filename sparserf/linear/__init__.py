"""Newton's method for models linear in the inputs, certified: each iterate comes with a bound on
its distance to the optimum.

`problem.py` is the problem and its iterates, `fit.py` the fit; `inputs.py` computes on the rows;
`certificate.py` bounds the distance of an iterate to the optimum; `descent.py` is Newton's method;
`choice.py` chooses what makes its steps, among `steps.py`, `range_basis.py` and `sketch.py`;
`multinomial.py` is the fit of several classes together; `ridge.py` is ridge regression on few
inputs; and `projected.py` is the projected problem of dual random projection.
"""

from .choice import choose_steps as choose_steps
from .choice import has_few_inputs as has_few_inputs
from .descent import descend as descend
from .fit import LinearFit as LinearFit
from .inputs import Inputs as Inputs
from .multinomial import MultinomialLinearFit as MultinomialLinearFit
from .multinomial import MultinomialLinearProblem as MultinomialLinearProblem
from .problem import LinearProblem as LinearProblem
from .projected import ProjectedProblem as ProjectedProblem
from .ridge import RidgeSolutions as RidgeSolutions
