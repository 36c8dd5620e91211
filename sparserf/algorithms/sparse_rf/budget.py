"""The work that a call without a penalty may take: rows, terms, models, rounds and multiplications,
in terms of `effort`.

All is counted from shapes, so that a search ends at the same place on any machine; a clock counts
only under a `time_limit` (`Budget.in_time`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ..._base.checks import check_integer, check_real
from ..._base.deadline import NEVER, share_of_time
from ...solvers.effort import FEW_FIT_ROWS, FIT_WORK_A_ROW, Effort, work_of_pass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..._base.types import T
    from ...rows import Rows

# The number of rows, about, that a search looks at with effort 1, where there are more.
MOST_SEARCH_ROWS = 16_000
# The number of terms at which a path of penalties ends with effort 1.
MOST_TERMS = 2_000
# The number of models whose mean is taken, where the user does not say.
MODELS = 4
# The least number of rounds of searches: one more for up to FEW_SEARCH_ROWS rows, where few
# held-out rows hardly show which kind of model is the best.
FEW_SEARCH_ROWS, ROUNDS_ON_FEW_ROWS, ROUNDS_ON_MANY_ROWS = 5_000, 3, 2
# With an effort below 1 a search looks at this number of rows at least; and below LEAST_TO_DECIDE
# there is no further round where it is undecided which kind of model is the best.
FEWEST_OF_LITTLE, LEAST_TO_DECIDE = 100, 0.5
# All searches of a call together may take SEARCHES multiplications, SEARCH_WORK_A_ROW more for each
# row that a search looks at, and the time of PASSES passes over the draws for one penalty.
SEARCHES, SEARCH_WORK_A_ROW, PASSES = 3e11, 2.5e7, 250
# The fits to all rows may take this share of the work of the searches, beside the work for each
# row.
FITTING = 0.2
# Under a `time_limit`, a search looks at as many rows as the call could pass over PASSES_A_CALL
# times, with the draws for one penalty, but at FEWEST_SEARCH_ROWS at least. A first round took 300
# to 2,000 passes on 3,000 to 10,000 rows.
PASSES_A_CALL, FEWEST_SEARCH_ROWS = 400, 400
# The searches may take the share SEARCHING of a `time_limit`, or SEARCHING_ALL where they look at
# all rows; the fits to all rows the share OF_FITS of the rest, and pruning OF_PRUNING of the rest
# after that. Time that one does not use goes on to the next.
SEARCHING, SEARCHING_ALL, OF_FITS, OF_PRUNING = 0.65, 0.8, 0.5, 0.6


@dataclass(frozen=True)
class Budget:
    """The numbers of rows, terms, models and rounds that an `effort` allows.

    rows : rows that a search looks at
    terms : terms of a model
    pruned : terms of the mean of models out of which pruning selects, the largest
    n_models : models whose mean is taken, unless the user sets `rounds`
    fewest_rounds : the least number of rounds of searches
    rounds : the argument `n_models` of `sparse_rf`, the number of rounds that the user asks for, or
        None
    effort : the argument of `sparse_rf`
    candidates : the share of the candidates of the dictionary that learns that are tried

    The time of a call grows about as the effort. A search takes time in proportion to rows and
    terms: these grow first, and the number of models with the rest. Below 1 there are fewer rows,
    even of few, fewer candidates of the dictionary that learns, and fewer rounds.
    """

    rows: int
    terms: int
    pruned: int
    n_models: float
    fewest_rounds: float
    rounds: int | None
    effort: float
    candidates: float = 1.0

    @classmethod
    def from_effort(cls, effort: float, n_rows: int, rounds: int | None) -> Self:
        """Check the arguments `effort` and `n_models` (rounds) of `sparse_rf`; return what they
        allow for n_rows rows."""
        effort = check_real("effort", effort, 0, strict=True)
        rounds = None if rounds is None else check_integer("n_models", rounds, 1)
        rows, terms = (
            round(MOST_SEARCH_ROWS * effort**0.5),
            max(1, round(MOST_TERMS * effort**0.25)),
        )
        if effort < 1:  # a share of the rows there are, and of the rounds
            rows, left = (
                max(FEWEST_OF_LITTLE, round(min(n_rows, MOST_SEARCH_ROWS) * effort**0.3)),
                effort,
            )
        else:
            left = effort**0.75 * min(n_rows, MOST_SEARCH_ROWS) / min(n_rows, rows)
        candidates = min(1.0, effort**0.6)
        fewest = ROUNDS_ON_FEW_ROWS if n_rows <= FEW_SEARCH_ROWS else ROUNDS_ON_MANY_ROWS
        return cls(
            rows,
            terms,
            5 * terms // 4,
            MODELS * left,
            fewest * min(1.0, left),
            rounds,
            effort,
            candidates,
        )

    def with_terms(self, max_terms: int) -> Self:
        """Return the budget of a call that may return so many terms: paths go on to as many, where
        that is more."""
        return replace(
            self, terms=max(self.terms, max_terms), pruned=max(self.pruned, 5 * max_terms // 4)
        )

    def some_of(self, candidates: Sequence[T]) -> list[T]:
        """Return the candidates of the last kind that are tried: all, or their share of the first
        ones and the last."""
        n = max(1, round(len(candidates) * self.candidates))
        return [*candidates[: n - 1], candidates[-1]] if n > 1 else [candidates[0]]

    def in_time(self, seconds_a_row: float, seconds: float) -> Self:
        """Return the budget of a call that may take this long: of fewer rows and candidates, where
        time is short.

        seconds_a_row : the seconds that a pass over the draws for one penalty takes, for each row
        """
        rows = int(seconds / (PASSES_A_CALL * max(seconds_a_row, 1e-12)))
        candidates = min(self.candidates, rows / min(self.rows, FEWEST_SEARCH_ROWS))
        return replace(
            self, rows=min(self.rows, max(FEWEST_SEARCH_ROWS, rows)), candidates=candidates
        )

    def n_rounds(self, in_question: Mapping[int, Sequence[tuple[int, int]]]) -> int:
        """Return how many rounds of searches to make; with enough effort one more while several
        kinds of model are in question.

        in_question : {kind of model: the names of the candidates in its mean}
        """
        if self.rounds is not None:
            return self.rounds
        n_candidates = max(len(candidates) for candidates in in_question.values())
        rounds = max(1, round(max(self.fewest_rounds, self.n_models / n_candidates)))
        return rounds + (len(in_question) > 1 and self.effort >= LEAST_TO_DECIDE)


def effort_of_searches(
    budget: Budget, rows: Rows, n_features: int, is_bounded: bool, deadline: float = NEVER
) -> Effort:
    """Return the `Effort` of all searches, which is a part of that of the call; the call makes the
    fits to all rows, too.

    n_features : the number of features that are drawn for one penalty
    is_bounded : whether the work of either has a bound
    deadline : when the call is to end; the searches end before that
    """
    for_searches = share_of_time(
        deadline, SEARCHING if budget.rows < rows.n_rows else SEARCHING_ALL
    )
    if not is_bounded:
        return Effort(np.inf, Effort(np.inf, deadline=deadline), for_searches)
    n = min(rows.n_rows, budget.rows)
    once = (
        SEARCHES + SEARCH_WORK_A_ROW * n + PASSES * work_of_pass(rows, n_features) * n / rows.n_rows
    )
    searches = (
        once
        * budget.effort
        * (1.0 if budget.rounds is None else max(1.0, budget.rounds / ROUNDS_ON_FEW_ROWS))
    )
    fits = FITTING * searches + FIT_WORK_A_ROW * max(0, rows.n_rows - FEW_FIT_ROWS)
    return Effort(searches, Effort(searches + fits, deadline=deadline), for_searches)
