"""The work that a call without a penalty may take: rows, terms, models, rounds and multiplications, in terms of `effort`.

All is counted from shapes, never from a clock, so that a search ends at the same place on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from ..._base.checks import check_integer, check_real
from ...solvers.effort import FEW_FIT_ROWS, FIT_WORK_A_ROW, Effort, work_of_pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...rows import Rows

# The number of rows, about, that a search looks at with effort 1, where there are more.
MOST_SEARCH_ROWS = 16_000
# The number of terms at which a path of penalties ends with effort 1.
MOST_TERMS = 2_000
# The number of models whose mean is taken, and the least number of rounds of searches, for up to FEW_SEARCH_ROWS rows (OF_FEW)
# and for more (OF_MORE): few held-out rows hardly show which kind of model is the best.
FEW_SEARCH_ROWS, OF_FEW, OF_MORE = 5_000, (6, 4), (4, 2)
# All searches of a call together may take SEARCHES multiplications, SEARCH_WORK_A_ROW more for each row that a search looks at,
# and the time of PASSES passes over the draws for one penalty.
SEARCHES, SEARCH_WORK_A_ROW, PASSES = 3e11, 2.5e7, 250
# The fits to all rows may take this share of the work of the searches, beside the work for each row.
FITTING = 0.2


@dataclass(frozen=True)
class Budget:
    """The numbers of rows, terms, models and rounds that an `effort` allows.

    rows : rows that a search looks at
    terms : terms of a model
    pruned : terms of the mean of models out of which pruning selects, the largest
    n_models : models of which the mean is taken, where the user has not set the number of rounds (the argument `n_models`)
    fewest_rounds : the least number of rounds of searches
    rounds : the argument `n_models` of `sparse_rf`, the number of rounds that the user asks for, or None
    effort : the argument of `sparse_rf`

    A search takes a time in proportion to rows and terms. These grow first, and the number of models by what is left, so that
    the time of a call grows about as the effort.
    """

    rows: int
    terms: int
    pruned: int
    n_models: float
    fewest_rounds: float
    rounds: int | None
    effort: float

    @classmethod
    def from_effort(cls, effort: float, n_rows: int, rounds: int | None) -> Self:
        """Check the arguments `effort` and `n_models` (rounds) of `sparse_rf`; return what they allow for n_rows rows."""
        effort = check_real("effort", effort, 0, strict=True)
        rounds = None if rounds is None else check_integer("n_models", rounds, 1)
        rows, terms = round(MOST_SEARCH_ROWS * effort**0.5), max(1, round(MOST_TERMS * effort**0.25))
        left = effort**0.75 * min(n_rows, MOST_SEARCH_ROWS) / min(n_rows, rows)
        n_models, fewest = OF_FEW if n_rows <= FEW_SEARCH_ROWS else OF_MORE
        return cls(max(2, rows), terms, 3 * terms // 2, n_models * left, fewest * min(1.0, left), rounds, effort)

    def n_rounds(self, kept: Mapping[int, Sequence[int]]) -> int:
        """Return how many rounds of searches to make, one more while more than one kind of model is kept.

        kept : {kind of model: its candidates that are kept}
        """
        if self.rounds is not None:
            return self.rounds
        n_candidates = max(len(candidates) for candidates in kept.values())
        return max(1, round(max(self.fewest_rounds, self.n_models / n_candidates))) + (len(kept) > 1)


def effort_of_searches(budget: Budget, rows: Rows, n_features: int, is_bounded: bool) -> Effort:
    """Return the `Effort` of all searches, which is a part of that of the call; the call makes the fits to all rows, too.

    n_features : the number of features that are drawn for one penalty
    is_bounded : whether either has a bound
    """
    if not is_bounded:
        return Effort(np.inf, Effort(np.inf))
    n = min(rows.n_rows, budget.rows)
    once = SEARCHES + SEARCH_WORK_A_ROW * n + PASSES * work_of_pass(rows, n_features) * n / rows.n_rows
    searches = once * budget.effort * (1.0 if budget.rounds is None else max(1.0, budget.rounds / OF_FEW[1]))
    fits = FITTING * searches + FIT_WORK_A_ROW * max(0, rows.n_rows - FEW_FIT_ROWS)
    return Effort(searches, Effort(searches + fits))
