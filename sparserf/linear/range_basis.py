"""Steps of Newton's method by conjugate gradients in w, which a basis of the range of the rows
preconditions.

Where the rows of Z are nearly combinations of few directions V, an orthonormal matrix of shape
(n_features, r), the Hessian alpha I + Z' diag(h) Z is nearly that of the rows Z V V', whose inverse
is

    P = V (V'Z' diag(h) Z V + alpha I)^-1 V' + (I - V V') / alpha.

Random combinations of the rows span V (N. Halko, P.-G. Martinsson, J. A. Tropp, Finding Structure
with Randomness, SIAM Review 53, 2011), and P is the randomised Nystroem preconditioner of Z'Z (Z.
Frangella, J. A. Tropp, M. Udell, SIAM J. Matrix Anal. Appl. 44, 2023). The eigenvalues of P H are
about 1 to 1 + h t / alpha, t the largest eigenvalue of Z'Z beyond V. New row weights h
change P without a pass over X.

A sketch (`sketch.py`) is right up to a factor at any spectrum, and its columns are cheap. A
direction costs two products with X, but where the spectrum falls, few directions make the systems
trivial. `PassCosts` estimates what either way would cost.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .._base.arrays import as_like
from ..features.projections import Matrix
from ..solvers.krylov import LEAST, DampedInverse
from .inputs import HostInputs
from .problem import LinearIterate, Step
from .projected import solve_as_iteration
from .sketch import MOST_PROJECTIONS, PROJECTIONS_A_DIMENSION, most_projections
from .steps import (
    PRODUCTS_A_PASS,
    SPARSE_PRODUCTS_A_PASS,
    Direction,
    InputSteps,
    PreconditionedSteps,
    gradient_step,
)

if TYPE_CHECKING:
    from .._base.types import RowVector
    from .fit import LinearFit
    from .inputs import Inputs


class RangeBasis:
    """Orthonormal directions V that random combinations of the rows of Z span, and the rows Z V
    along them.

    They are drawn block by block, in one pass over X each. Memory: n_features + 2 n_rows numbers a
    direction.

    Parameters
    ----------
    inputs : Inputs
    fit_intercept : bool
    rng : numpy.random.Generator

    Attributes
    ----------
    V : ndarray of shape (n_features, r)
        Directions that are rounding are left out: r is at most n_drawn.
    n_drawn : list of int
        The number of combinations before the first block, 0, and after each.
    tails : list of float
        The sum of squares of the rows beyond V at these numbers, |Z - Z V V'|^2, estimated.
    rows : HostInputs
        Z V, once `project_rows` has computed it.
    """

    V: np.ndarray
    n_drawn: list[int]
    tails: list[float]
    rows: HostInputs

    def __init__(self, inputs: Inputs, fit_intercept: bool, rng: np.random.Generator):
        self._inputs, self._fit_intercept, self._rng = inputs, fit_intercept, rng
        self.V, self.n_drawn, self.tails = np.empty((inputs.n_features, 0)), [0], []
        self._hat = np.empty((inputs.n_rows, 0), inputs.rows.dtype)
        self._G, self._of_G = [], []  # V = sum_k Z' G_k' C_k of the combinations G_k of each block

    def grow(self, n_more: int) -> None:
        """Draw n_more combinations."""
        n_before = self.V.shape[1]
        G = self._inputs.rows.vectors.put(self._rng.standard_normal((n_more, self._inputs.n_rows)))
        R, of_G, along = self._inputs.correlate(G), np.eye(n_more), np.zeros((n_more, n_before))
        # the second time takes out the rounding of the first
        for is_first in (True, False):
            R, along = self._less_its_part_along_V(R, along)
            S = R @ R.T
            if is_first:
                self.n_drawn.append(self.n_drawn[-1] + n_more)
                self._note_tails(S)
            size, Q = np.linalg.eigh(S)
            is_real = size > LEAST * self.tails[0]
            T = (Q[:, is_real] / np.sqrt(size[is_real])).T
            R, of_G, along = T @ R, T @ of_G, T @ along
        self._of_G = [np.vstack([C, -along @ C]) for C in self._of_G]
        self._of_G.append(np.vstack([np.zeros((n_before, n_more)), of_G]))
        self._G.append(G)
        self.V = np.hstack([self.V, R.T])

    def _less_its_part_along_V(self, R, along):
        """Return R (I - V V'), and `along` plus R V."""
        part = R @ self.V
        return R - part @ self.V.T, along + part

    def _note_tails(self, S):
        """Note the tail after a block, and before the first, from the inner products S of the parts
        of its combinations beyond V.

        In the mean, the tail is the square of a standard normal combination of the rows beyond V.
        The part of one combination beyond all others of the block has the square 1 / (S^-1)_jj; so
        has, in the mean, the part of another combination beyond the block.
        """
        if not self.tails:
            self.tails.append(max(float(np.trace(S)) / len(S), np.finfo(np.float64).tiny))
        inverse = DampedInverse(S, LEAST * self.tails[0], is_exact=True).inverse
        is_whole = self.n_drawn[-1] >= min(self._inputs.n_rows, self._inputs.n_features)
        self.tails.append(
            0.0 if is_whole else min(self.tails[-1], float(np.mean(1 / inverse.diagonal())))
        )

    def project_rows(self) -> None:
        """Compute the rows Z V along directions that are new, in one pass."""
        n_known = self._hat.shape[1]
        if n_known < self.V.shape[1]:
            V = self.V[:, n_known:]
            self._hat = np.hstack([self._hat, self._inputs.project(Matrix(*V.shape, V))])
            self.rows = HostInputs(self._inputs.rows, self._hat)

    def weighted_gram(self, h: RowVector) -> np.ndarray:
        """Return V'Z' diag(h) Z V of one output, around the mean that h weights where there is an
        intercept."""
        return self.rows.inputs.weighted_gram(self.rows.bring(h), self._fit_intercept)[0]

    def direction(self, c: np.ndarray) -> Direction:
        """Return w = V c with its u, for c of shape (n_outputs, r)."""
        of_blocks = [c @ C for C in self._of_G]

        def combine(*G):
            return sum(as_like(part, g) @ g for part, g in zip(of_blocks, G, strict=True))

        return Direction(c @ self.V.T, self._inputs.rows.vectors.map(combine, *self._G))

    # ---------------------------------------------------------------- the eigenvalues of Z'Z, by
    # the tails

    @property
    def mean_eigenvalues(self) -> np.ndarray:
        """The mean of the eigenvalues that each block has taken out of Z'Z."""
        return -np.diff(self.tails) / np.diff(self.n_drawn)

    def largest_left(self, n_doublings: int = 0) -> float:
        """Return the largest eigenvalue of Z'Z beyond V, also after more doublings if the tails go
        on to fall as they do.

        It is at most the sum of all that are left, and about the mean of those that the last block
        has taken. The share of the tail that a block leaves falls from block to block, by as much
        as it did last time.
        """
        after = self.tails[-1]
        shares = [next_ / last if last else 0.0 for last, next_ in pairwise(self.tails[-3:])]
        falls = min(1.0, shares[-1] / shares[0]) if shares[0] else 1.0
        later = np.prod(shares[-1] * falls ** np.arange(1, n_doublings + 1))
        return float(min(after * later, self.mean_eigenvalues[-1] * later / 2**n_doublings))

    def effective_dimension(self, level: float) -> float:
        """Return tr Z'Z (Z'Z + level I)^-1."""
        taken = self.mean_eigenvalues
        return float(
            (np.diff(self.n_drawn) * taken / (taken + level)).sum()
            + self.tails[-1] / (self.largest_left() + level)
        )


class PassCosts:
    """What Newton's method would cost in each way, in passes over X, estimated from the eigenvalues
    of Z'Z.

    The Hessian is taken for alpha I + h Z'Z, h the mean of the row weights: eigenvalues count where
    they are above the level alpha / h. Arithmetic beside X counts by the numbers that it reads, or
    by the multiplications of its matrix products.

    Attributes
    ----------
    level : float
    most_directions : int
        The most that a basis may have: all there are, in no more memory than X, or twice that where
        X is dense.
    """

    # The number of Newton steps where the loss is not quadratic, and to which share of its residual
    # each solves its system. With a sketch, larger penalties lead to that of the fit: WAY times as
    # many steps.
    NEWTON_STEPS, SHARE, WAY = 5, 0.1, 2
    # Passes that a sketch takes to make, and the largest eigenvalue of what it preconditions, in
    # levels.
    MAKING_A_SKETCH, RATIO_OF_SKETCH = 8, 32.0
    # Newton steps within the range of V, for each step beyond it.
    ALONG_V = 3
    # Random directions leave parts of large eigenvectors: the largest eigenvalue left is this
    # multiple of the estimate.
    LEFT_OF_LARGER = 4.0

    level: float
    most_directions: int

    def __init__(self, fit: LinearFit):
        inputs, is_quadratic = fit.inputs, fit.problem.loss.is_quadratic
        self._is_quadratic = is_quadratic
        self._n, self._d, self._row_size = inputs.n_rows, inputs.n_features, inputs.rows.row_size
        self._numbers = self._n * self._row_size
        h = float(fit.problem.vectors.total(fit.certificate.evaluation.h).max()) / self._n
        self.level = fit.problem.alpha / max(h, np.finfo(np.float64).tiny)
        memory = self._numbers * (1 if inputs.rows.is_sparse else 2)
        self.most_directions = min(
            self._n, self._d, MOST_PROJECTIONS, memory // (2 * self._n + self._d)
        )
        self._is_whole = self.most_directions == min(self._n, self._d)
        self._products_a_pass = SPARSE_PRODUCTS_A_PASS if inputs.rows.is_sparse else PRODUCTS_A_PASS
        self._n_systems = 1 if is_quadratic else self.NEWTON_STEPS
        self._digits = np.log(2 / min(1.0, fit.tol if is_quadratic else self.SHARE))

    def plain(self, eigenvalue: float) -> float:
        """Return the cost of plain conjugate gradients where this is the largest eigenvalue."""
        condition = 1 + eigenvalue / self.level
        return self._n_systems * 0.5 * np.sqrt(condition) * (self._digits + 0.5 * np.log(condition))

    def drawing(self, r: int) -> float:
        """Return the cost of drawing r combinations, or of projecting the rows on as many
        directions."""
        return 1 + r / self._products_a_pass

    def growing(self, r: int, larger: int) -> float:
        """Return the cost of making a basis larger: of drawing, and of making directions
        orthonormal."""
        return self.drawing(larger - r) + 2 * self._d * (larger**2 - r**2) / (
            PRODUCTS_A_PASS * self._numbers
        )

    def basis(self, r: int, largest_left: float) -> float:
        """Return the cost with a basis of r directions beyond which this is the largest
        eigenvalue."""
        a_step = 1 + (2 * self._d + self._n) * r / self._numbers
        inverses = self._making_inverses(r) * (1 if self._is_quadratic else self.ALONG_V)
        return self.drawing(r) + inverses + self.plain(self.LEFT_OF_LARGER * largest_left) * a_step

    def larger_bases(self, basis: RangeBasis) -> list[float]:
        """Return the costs if the basis grows to twice its size, to four times, and so on, and to
        all directions there are."""
        r, most = basis.n_drawn[-1], self.most_directions
        sizes = [(r * 2**k, basis.largest_left(k)) for k in range(1, 1 + int(np.log2(most / r)))]
        sizes += [(most, 0.0)] if self._is_whole and most > r else []
        return [
            self.basis(size, left) + self.growing(r, size) + np.log2(size / r) - 1
            for size, left in sizes
        ]

    def sketch(self, effective_dimension: float) -> float:
        """Return the cost with a sketch, where it may have enough projections; else infinity."""
        m = PROJECTIONS_A_DIMENSION * effective_dimension
        most = most_projections(self._d, self._row_size)
        if m > most * PROJECTIONS_A_DIMENSION and 2 * most < self._n:
            return np.inf
        m = min(m, most)
        a_step = 2 + 2 * self._n * m / self._numbers
        newton = self._making_inverses(m) + self.plain(self.RATIO_OF_SKETCH * self.level) * a_step
        return self.MAKING_A_SKETCH + newton * (1 if self._is_quadratic else self.WAY)

    def _making_inverses(self, m):
        """Return the cost of the Gram matrices of m columns for all systems."""
        return self._n_systems * self._n * m**2 / (PRODUCTS_A_PASS * self._numbers)


class RangeSteps(PreconditionedSteps):
    """Steps by conjugate gradients in w, preconditioned by a basis of the range of
    the rows."""

    def __init__(self, basis: RangeBasis):
        self._basis, self._has_begun = basis, set()
        # by the penalty and the size of the basis
        self._is_quicker: dict[tuple[float, int], bool] = {}

    def __call__(self, fit: LinearFit, shares: np.ndarray) -> tuple[Step, int]:
        """Return a step and the steps of conjugate gradients it took; see `NewtonSteps`. Notes r in
        fit.n_projections.

        In the preconditioner nu stands for alpha: it is larger only where alpha is rounding beside
        Z'Z.
        """
        basis, problem, alpha = self._basis, fit.problem, fit.problem.alpha
        fit.n_projections = basis.V.shape[1]
        if not problem.loss.is_quadratic and alpha not in self._has_begun:
            self._has_begun.add(alpha)
            return self._step_along_V(fit), 0
        n_weights = 1 if problem.loss.is_quadratic else problem.n_outputs
        of_outputs = [
            problem.vectors.output(fit.certificate.evaluation.h, k) for k in range(n_weights)
        ]
        parts = [DampedInverse(basis.weighted_gram(h), alpha, is_exact=True) for h in of_outputs]
        inverses = np.array([part.inverse for part in parts])
        nu = np.broadcast_to([part.nu for part in parts], problem.n_outputs)

        def precondition(r):
            """Return P r = V ((V'Z' diag(h) Z V + nu I)^-1 - I / nu) V'r + r / nu."""
            c = r.w @ basis.V
            along_V = basis.direction((inverses @ c[:, :, None])[:, :, 0] - c / nu[:, None])
            return Direction(
                along_V.w + r.w / nu[:, None], problem.vectors.along(along_V.u, 1 / nu, r.u)
            )

        return gradient_step(fit, shares, precondition)

    def _step_along_V(self, fit):
        """Return the step to the optimum among all w + V c, which Newton's method finds in the
        memory of this process."""
        # The relative error of the optimum along V, times the tolerance of the fit.
        tol_along_v = 0.1

        basis, here = self._basis, fit.iterate
        hat, bring = basis.rows.inputs, basis.rows.bring
        start = LinearIterate.from_w(here.w @ basis.V, bring(here.f), here.b.copy(), None)
        problem, tol = basis.rows.bring_problem(fit.problem), tol_along_v * fit.tol
        small = solve_as_iteration(fit, hat, problem, start, InputSteps(hat), tol)
        to = basis.direction(small.w - start.w)
        return Step.from_w(to.w, fit.inputs.apply(to.w), small.iterate.b - here.b, to.u)

    def is_quicker(self, fit: LinearFit) -> bool:
        """Return whether the basis is the quickest way at the fit's penalty; it grows for that
        where this pays."""
        alpha, basis = fit.problem.alpha, self._basis
        if (alpha, basis.n_drawn[-1]) not in self._is_quicker:
            is_quicker = self._grow_while_it_pays(fit)
            self._is_quicker[alpha, basis.n_drawn[-1]] = is_quicker
            if is_quicker:
                basis.project_rows()
        return self._is_quicker[alpha, basis.n_drawn[-1]]

    def _grow_while_it_pays(self, fit):
        """Draw blocks while a larger basis is expected to be the quickest way; return whether the
        basis is that in the end."""
        # Directions that are drawn at first; after them as many as there are, again and again.
        first_directions = 32
        # A block of at most this share of the cost of a fit is drawn even where it is not expected
        # to pay: spectra may end suddenly.
        worth_a_look = 0.05

        basis, costs = self._basis, PassCosts(fit)
        if not basis.tails:
            trace = fit.inputs.n_rows * float(fit.inputs.sizes @ fit.inputs.sizes)
            at_best = costs.drawing(first_directions) + costs.basis(first_directions, 0.0)
            if costs.most_directions < first_directions or costs.plain(trace) < at_best:
                return False
            basis.grow(first_directions)
        while True:
            r = basis.n_drawn[-1]
            others = min(
                costs.plain(basis.mean_eigenvalues[0]),
                costs.sketch(basis.effective_dimension(costs.level)),
            )
            here, larger = costs.basis(r, basis.largest_left()), costs.larger_bases(basis)
            may_look = costs.growing(r, 2 * r) <= worth_a_look * min(here, others)
            if not larger or (min(larger) >= min(here, others) and not may_look):
                return here < others
            basis.grow(min(r, costs.most_directions - r))
