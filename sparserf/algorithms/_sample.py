"""The rows that a search looks at, of which some are held out."""

from dataclasses import dataclass, replace

import numpy as np

from .task import Task

# Rows that a search looks at, about, where there are more.
MOST_ROWS = 16_000


@dataclass(frozen=True)
class Sample:
    """A task, in whose weights those of the rows held out are 0; their weights, 0 for the others; share: of all, how many
    rows are fitted."""

    task: Task
    held: np.ndarray | None = None
    share: float = 1.0

    @classmethod
    def of(cls, task, groups, validation, rng):
        """The rows that have a weight, or about MOST_ROWS of them; of each group that share of `validation` held out."""
        rows, targets, weight = task.rows, task.targets, task.weight
        n = effective(weight)
        if np.count_nonzero(weight) > MOST_ROWS:
            weight = thinned(groups, weight, MOST_ROWS, rng)
        some = np.flatnonzero(weight)
        if len(some) < rows.n_rows or not rows.in_memory:
            rows, targets, weight, groups = rows.take(some), [y[some] for y in targets], weight[some], groups[some]
        fitted, held = hold_out(groups, weight, validation, rng)
        sampled = replace(task, rows=rows, targets=targets, weight=fitted)
        return cls(sampled, held, min(1.0, effective(fitted) / n))


def effective(weight):
    """The number of rows of equal weight whose mean varies as much as the mean of these."""
    return weight.sum() ** 2 / (weight @ weight)


def each_group(groups, weight, rng):
    """The rows of each group that have a weight, shuffled."""
    for group in np.unique(groups):
        yield rng.permutation(np.flatnonzero((weight > 0) & (groups == group)))


def thinned(groups, weight, n, rng):
    """Weights of about n of the rows, 0 for the others; the same sums to expect. Of each group its share, at least two.

    A row is taken with a probability p in proportion to its weight, at most 1; its weight is then divided by p.
    """
    thin, total = np.zeros(len(weight)), weight.sum()
    for members in each_group(groups, weight, rng):
        of_these = weight[members]
        p = probabilities(of_these, max(2, round(n * float(of_these.sum() / total))))
        taken = np.diff(np.floor(np.cumsum(np.concatenate([[rng.random()], p])))) > 0
        thin[members[taken]] = of_these[taken] / p[taken]
    return thin


def probabilities(weight, n):
    """In proportion to the weights, at most 1, of sum n; all 1 where there are no more than n."""
    if len(weight) <= n:
        return np.ones(len(weight))
    p, certain = n * (weight / weight.sum()), np.zeros(len(weight), bool)
    while p.max() > 1:
        certain |= p > 1
        p = np.where(certain, 1.0, (n - np.count_nonzero(certain)) * (weight / weight[~certain].sum()))
    return p


def hold_out(groups, weight, share, rng):
    """(weights of the rows to fit, of those held out), 0 for the others; each of mean 1. The same share of each group.

    A row of weight k is held out whole or not at all, though k copies of it would be parted: those held out would be
    predicted from their twins. In the mean over many splits, the same weight is held out.
    """
    held = np.zeros(len(weight), bool)
    for members in each_group(groups, weight, rng):
        n = min(max(1, round(share * len(members))), len(members) - 1)
        held[members[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(f"X must have rows to hold out, two of a class, got {len(weight)}; give alpha")
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))
