"""Some features of the dictionary, and the three questions asked of them: the working set of the l1 problem, and the support
of a hard-thresholded model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..features import FeatureSet, Linear
from ..rows.home import correlation
from .effort import LOSS, UNBOUNDED, of_a_pass
from .lasso import ModelWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..rows.home import Question, Rows
    from .effort import Effort
    from .lasso import L1Problem
    from .problem import Problem
    from .ridge import RidgeProblem, View

# Inputs that features see from which on their values are kept, being longer to make than to read; as long as these are not
# more numbers than so many times those in X.
LONG, KEPT = 64, 2
# Of the rows that have a weight, the share whose weight may change before all is made again.
MOST_CHANGED = 0.3
# Of the columns of a kernel matrix, the share that may change before all of it is made again.
MOST_REPLACED = 0.4


class Columns:
    """Features with their index in the dictionary; their Gram matrix is kept from one set of row weights to the next."""

    effort: Effort

    def __init__(self, rows: Rows, effort: Effort = UNBOUNDED):
        """effort: counts the Gram matrices."""
        self._rows, self.effort = rows, effort
        self._forget()
        self._h, self._is_rough = None, False
        self._values = np.zeros((rows.n_rows, 0), rows.dtype)  # of the first features, where they are kept
        self.features: FeatureSet = FeatureSet((), rows.n_features_in)
        self.index: np.ndarray = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.index)

    def _asked(self):
        """(rows, features) that answer for these: where their values are kept, those are the rows, and their columns."""
        longest = max((block.order for block in self.features.blocks), default=0)
        n_kept, n = self._values.shape[1], len(self)
        if not self._rows.in_memory or longest < LONG or n > KEPT * self._rows.row_size:
            self._values = self._values[:, :0]
            return self._rows, self.features
        if n > n_kept:
            new = self._rows.transform(self.features.take(np.arange(n_kept, n)))
            self._values = np.hstack([self._values, new])
        return self._rows.beside(self._values), Linear().draw(None, n)

    def correlate(self, v: RowVector) -> np.ndarray:
        rows, features = self._asked()
        return rows.correlate(features, v)

    def apply(self, c: np.ndarray) -> RowVector:
        """Phi c for coefficients (len(self),) or (n_outputs, len(self))."""
        rows, features = self._asked()
        if rows is self._rows:
            used = np.flatnonzero(np.atleast_2d(c).any(axis=0))
            features, c = features.take(used), c[..., used]
        return rows.apply(features, c)

    def look(
        self, problem: Problem, c: np.ndarray, f: RowVector, b: float, questions: Sequence[Callable[..., np.ndarray]]
    ) -> tuple[RowVector, float, np.ndarray, list[np.ndarray]]:
        """(f + Phi c, the mean loss there with intercept b, Phi' v for the dual point v there, the questions' answers at v).

        In one pass over the rows; in two where the values of these features are kept.
        """
        rows, features = self._asked()
        own = partial(correlation, features)
        used = np.flatnonzero(np.atleast_2d(c).any(axis=0))
        questions_here = [own, *questions] if rows is self._rows else [own]
        f, loss, (g, *answers) = problem.look(rows, features.take(used), c[..., used], f, b, questions_here)
        if questions and rows is not self._rows:
            answers = self._rows.ask(problem.dual_point(problem.margins(f, b)), questions)
        return f, loss, g, answers

    def ask(self, v: RowVector, questions: Sequence[Callable[..., np.ndarray]]) -> tuple[np.ndarray, list[np.ndarray]]:
        """(Phi' v, the answers of the questions), in one pass where one will do."""
        rows, features = self._asked()
        own = partial(correlation, features)
        if rows is self._rows:
            g, *answers = rows.ask(v, [own, *questions])
            return g, answers
        return rows.ask(v, [own])[0], self._rows.ask(v, questions) if questions else []

    def curvature(self, h: RowVector, is_rough: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """(Phi' diag(h) Phi, Phi' h) for row weights h >= 0: only what is new or has changed since the last is made.

        is_rough: products in single precision will do.
        """
        if self._is_rough and not is_rough:
            self._forget()
        self._is_rough = is_rough
        self._reweigh(h)
        k, p = len(self._sums), len(self)
        if 0 < k == p:
            return self._gram, self._sums
        rows, features = self._asked()
        self.effort.add(self._rows.vectors.count(h) * (p * p - k * k) / 2)
        if k == 0:
            self._gram, self._sums = rows.moments(features, features, h, self._dtype)
        else:
            new = np.arange(k, p)
            columns, sums = rows.moments(features, new, h, self._dtype)
            self._gram = bordered(self._gram, columns)
            self._sums = np.concatenate([self._sums, sums])
        return self._gram, self._sums

    def _reweigh(self, h):
        """Bring what is kept to other row weights: by the rows whose weight has changed, where these are few.

        A callback may end the work in the middle of a product: nothing is kept before all is there.
        """
        k, vectors = len(self._sums), self._rows.vectors
        if k and h is not self._h:
            change = vectors.along(h, -1.0, self._h)
            n_changed = vectors.count(change)
            if n_changed > MOST_CHANGED * vectors.count(h):
                self._forget()
            elif n_changed:
                self._change(change, n_changed)
        self._h = h

    def _change(self, change, n_changed):
        """Add what a change of the weights of so many rows means."""
        k = len(self._sums)
        rows, features = self._asked()
        self.effort.add(n_changed * k * k / 2)
        gram, sums = rows.signed_moments(features.take(np.arange(k)), change, self._dtype)
        self._gram, self._sums = self._gram + gram, self._sums + sums

    @property
    def _dtype(self):
        """Of products in a Gram matrix; None: of the rows."""
        return np.float32 if self._is_rough else None

    def _forget(self):
        """What is kept of the Gram matrix."""
        self._gram, self._sums = np.zeros((0, 0)), np.zeros(0)

    def append(self, features: FeatureSet, index: np.ndarray) -> None:
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])

    def keep(self, kept: np.ndarray) -> None:
        """Only the features at these positions, ascending."""
        if len(kept) == len(self):
            return
        known = kept[kept < len(self._sums)]
        self._gram, self._sums = self._gram[np.ix_(known, known)], self._sums[known]
        self._values = self._values[:, kept[kept < self._values.shape[1]]]
        self.features, self.index = self.features.take(kept), self.index[kept]

    def view(
        self, problem: RidgeProblem, change: np.ndarray | None, f: RowVector, b: float | np.ndarray, curved: bool = False,
        everything: FeatureSet | None = None,
    ) -> View:  # fmt: skip
        """The `View` of f + Phi change and intercept b: its slopes in these features, or in everything.

        One pass over the rows, but for a Hessian of which little changes: that of a piecewise quadratic loss.
        """
        rows, features = self._asked()
        if everything is not None and rows is not self._rows:
            f, change = f if change is None else self._rows.vectors.along(f, 1, self.apply(change)), None
            rows = self._rows
        at_once = curved and not problem.loss.is_piecewise_quadratic
        view = problem.view(rows, features, change, f, b, features if everything is None else everything, at_once)
        if at_once:
            self._h, (self._gram, self._sums, _) = problem.row_curvature(view.f, b), view.hessian
        elif curved:
            h = problem.row_curvature(view.f, b)
            view = replace(view, hessian=(*self.curvature(h), float(self._rows.vectors.total(h))))
        return view


class WorkingSet(Columns):
    """Features A with coefficients w and gradients g, intercept b, and row vectors: f = Phi_A w, margins z, dual point v."""

    w: np.ndarray
    g: np.ndarray
    b: float
    f: RowVector
    z: RowVector
    v: RowVector

    def __init__(self, rows: Rows, problem: L1Problem, effort: Effort):
        super().__init__(rows, effort)
        self.weights: ModelWeights = ModelWeights(problem)
        self.w, self.g = np.zeros(0), np.zeros(0)
        f = rows.vectors.zeros()
        self.move(problem, self.w, problem.best_intercept(f, 0.0), f)

    def move(self, problem: L1Problem, w: np.ndarray, b: float, f: RowVector, loss: float | None = None) -> None:
        """To other coefficients, where g is not known yet; loss: the mean loss there, if it is known."""
        self.w, self.b, self.f, self._loss = w, b, f, loss
        self.z = problem.margins(f, b)
        self.v = problem.dual_point(self.z)

    def objective(self, problem: L1Problem) -> float:
        """Where it stands."""
        if self._loss is None:
            self._loss = problem.mean_loss(self.z)
        return self._loss + problem.penalty(self.w)

    def settle(self, g: np.ndarray, questions: Sequence[Question], answers: Sequence[np.ndarray]) -> None:
        """g, and answers that came with it, are those at v."""
        self.g = g
        for (_, take), answer in zip(questions, answers, strict=True):
            take(self.v, answer)

    def learn(self, questions: Sequence[Question]) -> None:
        """Ask for g, and the questions with it."""
        g, answers = self.ask(self.v, [ask for ask, _ in questions])
        self.settle(g, questions, answers)

    def work_of_a_step(self, is_exact: bool) -> float:
        """Of what asks the rows: the step's margins, its gradient, and where the loss is not quadratic, its values."""
        return 2 * of_a_pass(self._rows, len(self)) + (0 if is_exact else self._rows.n_rows * LOSS)

    @property
    def largest_gradient(self) -> float:
        return np.abs(self.g).max(initial=0.0)

    def add(self, features: FeatureSet, index: np.ndarray, g: np.ndarray) -> None:
        """Put features with coefficient zero and gradient g at the end."""
        self.append(features, index)
        self.w, self.g = np.concatenate([self.w, np.zeros(len(index))]), np.concatenate([self.g, g])

    def prune(self, but: np.ndarray | bool = False) -> None:
        """Drop the features whose coefficient is exactly zero, but those where `but` holds."""
        kept = np.flatnonzero((self.w != 0) | but)
        self.keep(kept)
        self.w, self.g = self.w[kept], self.g[kept]


class Support(Columns):
    """Features of a dictionary that is drawn whole, each with a scale r; what a step does not change is not made again."""

    def __init__(self, rows: Rows, everything: FeatureSet, r: np.ndarray):
        super().__init__(rows)
        self._everything, self._r = everything, r
        self._kernel, self._kernel_of = None, self.index  # Phi diag(1 / r^2) Phi' of these indices

    def replace(self, index: np.ndarray) -> None:
        """Become the features of these indices: first those that stay, in their order, then the new ones, ascending."""
        wanted = np.zeros(len(self._everything), bool)
        wanted[index] = True
        self.keep(np.flatnonzero(wanted[self.index]))
        wanted[self.index] = False
        new = np.flatnonzero(wanted)
        self.append(self._everything.take(new), new)

    def kernel(self) -> np.ndarray:
        """Phi diag(1 / r^2) Phi', rows x rows."""
        new = np.setdiff1d(self.index, self._kernel_of)
        old = np.setdiff1d(self._kernel_of, self.index)
        if self._kernel is None or len(new) + len(old) > MOST_REPLACED * len(self):
            self._kernel = self._kernel_over(self.index)
        else:
            self._kernel = self._kernel + self._kernel_over(new) - self._kernel_over(old)
        self._kernel_of = self.index
        return self._kernel

    def _kernel_over(self, index):
        return self._rows.kernel(self._everything.take(index), 1 / self._r[index] ** 2)


def bordered(inner: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The symmetric matrix of which `inner` is the first part and `columns` are the last."""
    k, n = len(inner), len(columns)
    whole = np.empty((n, n))
    whole[:k, :k], whole[:, k:], whole[k:, :k] = inner, columns, columns[:k].T
    return whole
