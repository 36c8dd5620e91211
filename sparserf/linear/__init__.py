"""Newton's method for linear models, whose features are the inputs themselves; each step comes with a bound on what is left.

`LinearFit` is where a fit stands, `Certificate` how near that is to the optimum, `descent` the way there, `steps` and `dual`
how a step is made, `Inputs` what is asked of the rows, and `LinearProblem` what is computed on row vectors.
"""
