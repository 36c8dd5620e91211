"""The work that a fit may take, counted from shapes alone, so that a fit ends at the same place on
any machine.

With a `time_limit` a budget has a deadline, too, and then the place depends on the machine. The
budget of a call knows its time and what that has cut (`FitOptions.budget`); its `parts` share the
time, and with it the progress that is shown.

One unit is a multiplication of a matrix product. A slower operation counts as the number of
multiplications that take as long.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base import deadline as _deadline
from .._base.progress import check_not_ended, ends_at, is_time_over, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .._base.types import T
    from ..rows import Rows

# All in multiplications of a matrix product. An l1 fit may take FIT_WORK with up to FEW_FIT_ROWS
# rows, and FIT_WORK_A_ROW for each further row, beside the work of PASSES passes over the
# dictionary.
FIT_WORK = 1.2e11
FEW_FIT_ROWS = 5_000
FIT_WORK_A_ROW = 4e7
PASSES = 5
# The work of a feature value (a cosine, say), beside one multiplication for each input.
VALUE = 20
# The work, for each row, of turning from one class of a multinomial model to the next.
TURN = 3_000


class Budget:
    """Counts the multiplications of a fit, up to the most that it may make.

    deadline : float
        When the time is over; infinite without a limit.
    cuts : Counter
        {what ended early, or was left out, because the time was over, in the plural: how often}
    """

    deadline: float
    cuts: Counter[str]

    def __init__(
        self, most: float = np.inf, deadline: float = _deadline.NEVER, within: Budget | None = None
    ):
        self._most, self._spent, self.deadline, self._within = most, 0.0, deadline, within
        self.cuts = Counter()

    @classmethod
    def for_l1_fit(cls, rows: Rows, n_features: int, share: float = 1.0) -> Self:
        """Return the work that an l1 fit to these rows may take, with n_features in its dictionary.

        share: the share of that work, beside the passes over the dictionary, that the fit may take
        """
        most = FIT_WORK + FIT_WORK_A_ROW * max(0, rows.n_rows - FEW_FIT_ROWS)
        return cls(share * most + PASSES * work_of_pass(rows, n_features))

    def part(self, share: float) -> Budget:
        """Return a budget that has this share of the time that is left, as a part of this one."""
        return Budget(np.inf, _deadline.share_of_time(self.deadline, share), self)

    def parts(self, items: Sequence[T], is_open: bool = False) -> Iterator[tuple[T, Budget]]:
        """Yield items, each with the budget of its part of the time, and of the current work as in
        `progress.parts`; the parts are equal."""
        for k, item in parts(list(enumerate(items)), is_open=is_open):
            yield item, self.part(1 / (len(items) - k))

    def for_round(self, share: float) -> Budget:
        """Return a budget that has this share of the time that is left, and begins with the cuts of
        this one, to which it adds none."""
        own = Budget(deadline=_deadline.share_of_time(self.deadline, share))
        own.cuts.update(self.cuts)
        return own

    def add(self, multiplications: float) -> None:
        """Add this number of multiplications."""
        self._spent += multiplications

    def note_cut(self, what: str, n: int = 1) -> None:
        """Note what ended early for want of time, by its name in the plural; here and in the budget
        of which this is a part."""
        self.cuts += Counter({what: n})  # which has no zeros
        if self._within is not None:
            self._within.note_cut(what, n)

    def lets(self, do: Callable[..., object], *arguments: Any) -> bool:
        """Do this until the time is over; return whether it is done."""
        with ends_at(self.deadline):
            do(*arguments)
            return True
        return False

    def done_in_time(self, what: str, do: Callable[[], T], otherwise: T) -> T:
        """Return do(); or `otherwise` where the time is over before that is done, which is noted by
        its name in the plural."""
        with ends_at(self.deadline):
            check_not_ended()
            return do()
        self.note_cut(what)
        return otherwise

    def add_factor(self, p: int) -> None:
        """Count a Cholesky factor of a p by p matrix: p^3 / 6 multiplications, at half the speed of
        a matrix product."""
        self.add(p**3 / 3)

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.deadline < _deadline.NEVER and _deadline.now() >= self.deadline

    @property
    def is_spent(self) -> bool:
        """Whether no work is left, or the time of the present block of `ends_at` is over."""
        return self._spent >= self._most or is_time_over()


def work_of_pass(rows: Rows, n_features: int) -> int:
    """Return the multiplications that take as long as the correlations of n_features features with
    a row vector."""
    return rows.n_rows * n_features * (VALUE + rows.row_size)


UNBOUNDED = Budget()
