"""The stack: how much each member counts, by what it predicts of rows that it has not seen.

With M_m the margins that member m predicts of the rows held out, and b those of the best constant,
the weights u_m >= 0 minimise the mean loss of b + sum_m u_m (M_m - b) on these rows: the stacked
regression of L. Breiman (Machine Learning 24, 1996). All weights 0 is the constant. There is no
further intercept: what is found of rows held out, of other groups or later, shifts no other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..held_out_loss import constant_margins, minimum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..held_out_loss import HeldOutLoss
    from .paths import MemberPath

# The share of the ambiguity that is taken off the loss that is told: the mean of the folds has seen
# the rows, and so is further from what one fold says of them than it would be elsewhere. Claimed
# over test loss, geometric means of some 20 tables at 80, 150, 300, 700, 1,500 rows: with 1 .93 to
# .98, with .8 .98 to 1.04, with .6 1.01 to 1.09, with 0 1.10 to 1.23.
TAKEN_OFF = 0.8


def stacked_weights(
    loss: HeldOutLoss,
    predictions: Sequence[np.ndarray],
    constant: np.ndarray,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Return the weight of each member.

    predictions : the margins (n_targets, n) of each member on the rows held out
    constant : those of the best constant, (n_targets, 1)
    start : weights to begin at
    """
    M = np.stack(predictions) - constant

    def value_and_slope(weights):
        margins = constant + np.tensordot(weights, M, 1)
        return loss.mean(margins), np.tensordot(M, loss.slopes(margins), 2)

    k, bounds = len(M), [(0, None)] * len(M)
    start = np.full(k, 1 / k) if start is None else start
    return minimum(value_and_slope, start, bounds)


def margins_of_stack(
    constant: np.ndarray, weights: np.ndarray, predictions: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the margins of the stack: b + sum_m u_m (M_m - b)."""
    return constant + np.tensordot(weights, np.stack(predictions) - constant, 1)


@dataclass(frozen=True, eq=False)
class Stack:
    """The weights of members, and what they predict together.

    loss : the loss of rows held out
    paths, weights : the paths of the members, and the weight of each; all 0 where they are not
        better than the constant
    constant_margins : its margins, (n_targets, 1)
    stacked, constant : the losses of the rows held out, at the stack and at the best constant
    fit_intercept : whether the best constant was fitted
    """

    loss: HeldOutLoss
    paths: Sequence[MemberPath]
    weights: np.ndarray
    constant_margins: np.ndarray
    stacked: np.ndarray
    constant: np.ndarray
    fit_intercept: bool = True

    @classmethod
    def of(cls, loss: HeldOutLoss, paths: Sequence[MemberPath], fit_intercept: bool) -> Stack:
        """Return the stack of members that have gone down their paths."""
        predictions = [path.predictions for path in paths]
        nothing = np.zeros_like(predictions[0])
        b = constant_margins(loss) if fit_intercept else nothing[:, :1]
        weights = stacked_weights(loss, predictions, b)
        stacked = loss.losses(margins_of_stack(b, weights, predictions))
        stack = cls(loss, paths, weights, b, stacked, loss.losses(nothing + b), fit_intercept)
        if stack.is_better_than_constant():
            return stack
        return replace(stack, weights=0 * weights)

    def with_fewest_columns(self, share: float) -> Stack:
        """Return the stack whose linear functions have the fewest columns at which its loss on the
        rows held out is higher by at most this share of its `worth`."""
        most, stack = self.loss_of_stack + share * self.worth, self
        for k, path in enumerate(self.paths):
            for sparser in path.sparser if self.weights[k] > 0 else ():
                fewer = stack._with_path(k, sparser)
                stack = fewer if fewer.loss_of_stack <= most else stack
        return stack

    def _with_path(self, k, path):
        """Return the stack with another path of member k, and the best weights."""
        paths = [*self.paths[:k], path, *self.paths[k + 1 :]]
        predictions, b = [each.predictions for each in paths], self.constant_margins
        weights = stacked_weights(self.loss, predictions, b, self.weights)
        stacked = self.loss.losses(margins_of_stack(b, weights, predictions))
        return replace(self, paths=paths, weights=weights, stacked=stacked)

    @property
    def used(self) -> list[tuple[MemberPath, float]]:
        """The members that count, with their weights."""
        return [(path, u) for path, u in zip(self.paths, self.weights, strict=True) if u > 0]

    @property
    def loss_of_stack(self) -> float:
        """The mean loss of the stack on the rows held out."""
        return float(self.loss.folds.weight @ self.stacked)

    @property
    def loss_of_constant(self) -> float:
        """The mean loss of the best constant on the rows held out."""
        return float(self.loss.folds.weight @ self.constant)

    @property
    def worth(self) -> float:
        """What the terms are worth: by how much the loss is below the constant's, or the loss
        itself, where that is less."""
        return min(self.loss_of_stack, self.loss_of_constant - self.loss_of_stack)

    def loss_of_other_rows(self) -> float:
        """Return the mean loss that is expected of other rows.

        It is that of the rows of each fold where penalties and weights are chosen on the other
        folds alone, less what the mean of the models of the folds gains on each of them. That is
        the ambiguity of A. Krogh and J. Vedelsby (NIPS 7, 1995): with m the margin of a row by the
        fold that has not seen it and c the mean of all folds, L''(c) (m - c)^2 / 2, of which
        TAKEN_OFF, and not more than down to the loss at c. Where rows come in groups, or folds are
        the user's, models that have seen the group are near it for a reason that other rows do not
        share, and nothing is taken off.
        """
        loss = self._loss_of_choices_without()
        if not (self.used and self.loss.folds.are_of_rows):
            return loss
        own, mean = (
            margins_of_stack(self.constant_margins, self.weights, margins)
            for margins in ([p.predictions for p in self.paths], [p.means for p in self.paths])
        )
        least = min(loss, self.loss.mean(mean))
        return max(loss - TAKEN_OFF * self.loss.spread(mean, own), least)

    def _loss_of_choices_without(self):
        """Return the mean loss of the rows of each fold by choices on the other folds alone."""
        n_folds = len(self.loss.folds)
        if n_folds == 1:
            return self.loss_of_stack if self.used else self.loss_of_constant
        b, weights = self.constant_margins, self.weights
        margins = np.empty_like(self.paths[0].predictions)
        for k in range(n_folds):
            others = self.loss.without(k)
            b = constant_margins(others, self.constant_margins) if self.fit_intercept else b
            predictions = [path.without[k] for path in self.paths]
            if self.used:
                weights = stacked_weights(others, predictions, b, self.weights)
            here = self.loss.folds.fold == k
            margins[:, here] = margins_of_stack(b, weights, [M[:, here] for M in predictions])
        return self.loss.mean(margins)

    def is_better_than_constant(self) -> bool:
        """Return whether the stack is better than the constant by more than chance."""
        return bool(self.weights.any()) and self.loss.is_gain(self.stacked, self.constant)
