"""The rows that a search looks at, of which some are held out."""

from dataclasses import dataclass

import numpy as np

from ..rows.memory import Memory

# Rows that a search looks at, about, where there are more.
MOST_ROWS = 16_000


@dataclass(frozen=True)
class Sample:
    """Rows, the weights of those to fit and of those held out, 0 for the others; share: of all weight, what is fitted."""

    rows: Memory
    targets: list
    weight: np.ndarray
    held: np.ndarray | None = None
    share: float = 1.0

    @classmethod
    def of(cls, rows, targets, weight, groups, validation, rng):
        """All rows, or MOST_ROWS of them, the same share of each group; of both that share of `validation` held out."""
        total, n = weight.sum(), np.count_nonzero(weight)
        if n > MOST_ROWS:
            some = np.flatnonzero(drawn(groups, weight, lambda size: max(2, round(size * MOST_ROWS / n)), rng))
            rows, targets, weight, groups = rows.some(some), [y[some] for y in targets], weight[some], groups[some]
        fitted, held = hold_out(groups, weight, validation, rng)
        return cls(rows, targets, fitted, held, float(weight[fitted > 0].sum() / total))


def hold_out(groups, weight, share, rng):
    """(weights of the rows to fit, of those held out), 0 for the others; each of mean 1. The same share of each group."""
    held = drawn(groups, weight, lambda size: min(max(1, round(share * size)), size - 1), rng)
    if not held.any():
        raise ValueError(f"X must have rows to hold out, two of a class, got {len(weight)}; give alpha")
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))


def drawn(groups, weight, how_many, rng):
    """Which rows are drawn: of each group how_many(its size), of the rows that have a weight."""
    taken = np.zeros(len(weight), bool)
    for group in np.unique(groups):
        members = np.flatnonzero((weight > 0) & (groups == group))
        taken[rng.permutation(members)[: max(0, how_many(len(members)))]] = True
    return taken
