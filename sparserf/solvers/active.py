"""The features that a model may use at the moment, Phi, and the products with them that solvers
need, each in one pass over the rows.

`ActiveFeatures` computes Phi' v, Phi c and Phi' diag(h) Phi. The Gram matrix is kept from one call
to the next: only the entries of new features are computed, and only the rows whose weight h has
changed are added, where these are few. Its subclasses are the working set of the l1 problem (l1.py)
and the support of a hard-thresholded model (`Support`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..features import FeatureSet, Linear
from ..rows import correlation
from .budget import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._base.types import RowVector
    from ..rows import Rows
    from .budget import Budget
    from .problem import Problem
    from .ridge import LocalModel, RidgeProblem


class ActiveFeatures:
    """Features and their indices in the dictionary, with the Gram matrix Phi' diag(h) Phi of the
    last row weights h.

    features : FeatureSet
    index : ndarray of shape (len(self),)
        The index of each feature in the dictionary, in the order in which they came.
    budget : Budget
        Counts the Gram matrices.
    is_rough : bool
        Whether the Gram matrix is of products in single precision.
    """

    budget: Budget
    is_rough: bool

    def __init__(self, rows: Rows, budget: Budget = UNBOUNDED):
        self._rows, self.budget = rows, budget
        # Phi' diag(h) Phi and Phi' h of the first features
        self._gram, self._sums = np.zeros((0, 0)), np.zeros(0)
        self._h, self.is_rough = None, False
        # of the first features, where they are kept
        self._values = np.zeros((rows.n_rows, 0), rows.dtype)
        self.features: FeatureSet = FeatureSet((), rows.n_features_in)
        self.index: np.ndarray = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.index)

    def _rows_and_features(self):
        """Return (rows, features) that give the same results as the active features on the rows.

        Where values are kept, the kept values are the rows, and the features are their columns.
        """
        # The values of features of at least this many inputs take longer to compute than to read.
        # They are kept, as long as they are at most twice as many numbers as X holds.
        fewest_inputs, most_values = 64, 2

        order = max((block.order for block in self.features.blocks), default=0)
        n_kept, n = self._values.shape[1], len(self)
        is_too_wide = n > most_values * self._rows.row_size
        if not self._rows.in_memory or order < fewest_inputs or is_too_wide:
            self._values = self._values[:, :0]
            return self._rows, self.features
        if n > n_kept:
            new = self._rows.transform(self.features.take(np.arange(n_kept, n)))
            self._values = np.hstack([self._values, new])
        return self._rows.on_same_threads(self._values), Linear().draw(None, n)

    def correlate(self, v: RowVector) -> np.ndarray:
        """Return Phi' v."""
        rows, features = self._rows_and_features()
        return rows.correlate(features, v)

    def apply(self, c: np.ndarray) -> RowVector:
        """Return Phi c for coefficients c of shape (len(self),) or (n_outputs, len(self))."""
        rows, features = self._rows_and_features()
        if rows is self._rows:
            used = np.flatnonzero(np.atleast_2d(c).any(axis=0))
            features, c = features.take(used), c[..., used]
        return rows.apply(features, c)

    def evaluate_step(
        self,
        problem: Problem,
        c: np.ndarray,
        f: RowVector,
        b: float,
        questions: Sequence[Callable[..., np.ndarray]],
    ) -> tuple[RowVector, float, np.ndarray, list[np.ndarray]]:
        """Return (f + Phi c, the mean loss there with intercept b, Phi' v, the answers to questions
        at v), v the dual point.

        One pass over the rows; two where the values of these features are kept and there are
        questions.
        """
        rows, features = self._rows_and_features()
        own = partial(correlation, features)
        used = np.flatnonzero(np.atleast_2d(c).any(axis=0))
        questions_here = [own, *questions] if rows is self._rows else [own]
        f, loss, (g, *answers) = problem.evaluate_step(
            rows, features.take(used), c[..., used], f, b, questions_here
        )
        if questions and rows is not self._rows:
            answers = self._rows.ask(problem.dual_point(problem.margins(f, b)), questions)
        return f, loss, g, answers

    def ask(
        self, v: RowVector, questions: Sequence[Callable[..., np.ndarray]]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return (Phi' v, the answers to questions at v), in one pass where the values of these
        features are not kept."""
        rows, features = self._rows_and_features()
        own = partial(correlation, features)
        if rows is self._rows:
            g, *answers = rows.ask(v, [own, *questions])
            return g, answers
        return rows.ask(v, [own])[0], self._rows.ask(v, questions) if questions else []

    def weighted_gram(self, h: RowVector, is_rough: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return (Phi' diag(h) Phi, Phi' h) for row weights h >= 0; entries that are known from the
        last call are not computed again.

        is_rough: whether products in single precision will do.
        """
        is_rough = is_rough or self._rows.dtype == np.float32
        if self.is_rough and not is_rough:
            self._forget()
        self.is_rough = is_rough
        self._reweigh(h)
        k, p = len(self._sums), len(self)
        if 0 < k == p:
            return self._gram, self._sums
        rows, features = self._rows_and_features()
        self.budget.add(self._rows.vectors.count(h) * (p * p - k * k) / 2)
        dtype = np.float32 if is_rough else None  # None is the precision of the rows
        if k == 0:
            self._gram, self._sums = rows.moments(features, features, h, dtype)
        else:
            new = np.arange(k, p)
            columns, sums = rows.moments(features, new, h, dtype)
            self._gram = bordered(self._gram, columns)
            self._sums = np.concatenate([self._sums, sums])
        return self._gram, self._sums

    def _reweigh(self, h):
        """Bring the Gram matrix to other row weights by the rows whose weight has changed; forget
        it where these are many.

        A callback may end the fit in the middle of a product: the matrix is replaced only once the
        new one is complete.
        """
        # If the weights of at most this share of the rows change, the change is added to the Gram
        # matrix; else the matrix is computed anew.
        most_changed = 0.3

        k, vectors = len(self._sums), self._rows.vectors
        if k and h is not self._h:
            change = vectors.along(h, -1.0, self._h)
            n_changed = vectors.count(change)
            if n_changed > most_changed * vectors.count(h):
                self._forget()
            elif n_changed:
                rows, features = self._rows_and_features()
                self.budget.add(n_changed * k * k / 2)
                dtype = np.float32 if self.is_rough else None
                gram, sums = rows.signed_moments(features.take(np.arange(k)), change, dtype)
                self._gram, self._sums = self._gram + gram, self._sums + sums
        self._h = h

    def set_precision(self, rows: Rows) -> None:
        """Go on with the same rows in another precision; the Gram matrix stays until
        `weighted_gram` is asked for a more precise one."""
        self._rows, self._values = rows, np.zeros((rows.n_rows, 0), rows.dtype)

    def _forget(self):
        """Forget the Gram matrix."""
        self._gram, self._sums = np.zeros((0, 0)), np.zeros(0)

    def append(self, features: FeatureSet, index: np.ndarray) -> None:
        """Add features at the end."""
        self.features = self.features.concat(features)
        self.index = np.concatenate([self.index, index])

    def keep(self, positions: np.ndarray) -> None:
        """Keep only the features at these positions, which ascend."""
        if len(positions) == len(self):
            return
        known = positions[positions < len(self._sums)]
        # One axis after the other, which takes a fraction of the time of both at once.
        self._gram, self._sums = self._gram[known].take(known, axis=1), self._sums[known]
        self._values = self._values[:, positions[positions < self._values.shape[1]]]
        self.features, self.index = self.features.take(positions), self.index[positions]

    def local_model(
        self,
        problem: RidgeProblem,
        change: np.ndarray | None,
        f: RowVector,
        b: float | np.ndarray,
        curved: bool = False,
        everything: FeatureSet | None = None,
    ) -> LocalModel:
        """Return `RidgeProblem.local_model` at f + Phi change and intercept b, with the slopes in
        these features.

        One pass over the rows; with a Hessian of a piecewise quadratic loss, of which little
        changes, by `weighted_gram`.

        curved: whether to compute the Hessian
        everything: the features in which to compute slopes instead
        """
        rows, features = self._rows_and_features()
        if everything is not None and rows is not self._rows:
            f = f if change is None else self._rows.vectors.along(f, 1, self.apply(change))
            change = None
            rows = self._rows
        at_once = curved and not problem.loss.is_piecewise_quadratic
        model = problem.local_model(
            rows, features, change, f, b, features if everything is None else everything, at_once
        )
        if at_once:
            self._h, (self._gram, self._sums, _) = problem.row_curvature(model.f, b), model.hessian
        elif curved:
            h = problem.row_curvature(model.f, b)
            model = replace(
                model, hessian=(*self.weighted_gram(h), float(self._rows.vectors.total(h)))
            )
        return model


class Support(ActiveFeatures):
    """Active features of a dictionary that is drawn whole, each with a norm r_j, with their kernel
    matrix.

    What does not change with the support is not computed again.
    """

    def __init__(self, rows: Rows, everything: FeatureSet, r: np.ndarray):
        super().__init__(rows)
        self._everything, self._r = everything, r
        self._kernel, self._kernel_of = None, self.index  # Phi diag(1 / r^2) Phi' of these indices

    def replace(self, index: np.ndarray) -> None:
        """Replace the features by those of these indices: first the kept ones, in their order, then
        new ones, ascending."""
        wanted = np.zeros(len(self._everything), bool)
        wanted[index] = True
        self.keep(np.flatnonzero(wanted[self.index]))
        wanted[self.index] = False
        new = np.flatnonzero(wanted)
        self.append(self._everything.take(new), new)

    def kernel(self) -> np.ndarray:
        """Return Phi diag(1 / r^2) Phi', of shape (n_rows, n_rows)."""
        # If at most this share of the features enter or leave, their parts are added to the kernel
        # matrix and subtracted; else the matrix is computed anew.
        most_replaced = 0.4

        new = np.setdiff1d(self.index, self._kernel_of)
        old = np.setdiff1d(self._kernel_of, self.index)
        if self._kernel is None or len(new) + len(old) > most_replaced * len(self):
            self._kernel = self._kernel_over(self.index)
        else:
            self._kernel = self._kernel + self._kernel_over(new) - self._kernel_over(old)
        self._kernel_of = self.index
        return self._kernel

    def _kernel_over(self, index):
        """Return the part of the kernel matrix that the features of these indices make."""
        return self._rows.kernel(self._everything.take(index), 1 / self._r[index] ** 2)


def bordered(inner: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix whose first part is `inner` and whose last columns are
    `columns`."""
    k, n = len(inner), len(columns)
    whole = np.empty((n, n))
    whole[:k, :k], whole[:, k:], whole[k:, :k] = inner, columns, columns[:k].T
    return whole
