"""Solvers of the small dense problems of a fit, on the features that a model may use; they see X
through `Rows`.

problem       the mean loss as a function of margins, best intercepts, iterates, backtracking
active        the features that a model may use, with their cached Gram matrix
l1            the l1 problem on a working set: prox-Newton; l1_quadratic solves its quadratic models
nonnegative   least squares in which some coefficients must be at least 0
ridge         the ridge problem on a support: Newton's method in the primal or the dual
greedy        the coefficients of greedy selection, from the rows or from a table of inner products
multinomial   block coordinate descent over the classes of a multinomial model
krylov        conjugate gradients; cholesky: Cholesky factors; budget: the work that a fit may take
"""
