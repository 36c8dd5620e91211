"""The work that a fit may take, counted from shapes alone, so that a fit ends at the same place on
any machine.

With a `time_limit` an effort has a deadline, too, and then the place depends on the machine. Parts
of an effort share the time that is left as they share the work.

One unit is a multiplication of a matrix product. A slower operation counts as the number of
multiplications that take as long.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Self

from .._base import deadline as _deadline
from .._base.progress import check_not_ended, ends_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.types import T
    from ..rows import Rows

# The most work of an l1 fit of up to FEW_FIT_ROWS rows, beside its passes over the dictionary.
EFFORT = 1.2e11
FEW_FIT_ROWS = 5_000
# The work that an l1 fit may take for each row beyond FEW_FIT_ROWS, in addition.
FIT_WORK_A_ROW = 4e7
# Passes over the dictionary that an l1 fit may take beside that.
PASSES = 5
# The time of a feature value (a cosine, say), beside one multiplication for each input.
VALUE = 20
# The time, for each row, of a step's values of a loss with a logarithm. It is counted in the effort
# of the whole call, and not in that of a single fit.
LOSS = 10_000
# The time, for each row, of turning from one class of a multinomial model to the next.
TURN = 3_000


class Effort:
    """The multiplications so far, and the most that there may be.

    within : Effort or None
        The work of which this is a part: what is added here is added there as well.
    cuts : Counter
        What was ended early because the work was spent, in the plural, and how many times.
    cuts_in_time : Counter
        What was ended early, or left out, because the time was over.
    n_finished : int
        The number of searches that have come to their own end.
    """

    within: Effort | None
    cuts: Counter[str]
    cuts_in_time: Counter[str]
    n_finished: int = 0

    def __init__(
        self, most: float, within: Effort | None = None, deadline: float = _deadline.NEVER
    ):
        self._most, self._spent, self.within, self._deadline = most, 0.0, within, deadline
        self.cuts, self.cuts_in_time = Counter(), Counter()

    @classmethod
    def for_l1_fit(cls, rows: Rows, n_features: int, share: float = 1.0) -> Self:
        """Return the work that an l1 fit to these rows may take, with n_features in its dictionary.

        share: the share of that work, beside the passes over the dictionary, that the fit may take
        """
        most = EFFORT + FIT_WORK_A_ROW * max(0, rows.n_rows - FEW_FIT_ROWS)
        return cls(share * most + PASSES * work_of_pass(rows, n_features))

    def part(self, share: float, of_time: float | None = None) -> Effort:
        """Return an effort of at most that share of what is left, which is a part of this one.

        of_time : the share of the time that is left; None: as of the work
        """
        return Effort(
            share * self.left,
            self,
            _deadline.share_of_time(self.deadline, share if of_time is None else of_time),
        )

    def make_part_of(self, whole: Effort) -> None:
        """Count this work as a part of another from now on, which bounds it, too."""
        self.within = whole

    def add(self, multiplications: float) -> None:
        """Add this number of multiplications."""
        self._spent += multiplications
        if self.within is not None:
            self.within.add(multiplications)

    def add_to_whole(self, multiplications: float) -> None:
        """Add this number of multiplications to the work of which this is a part, and not here."""
        if self.within is not None:
            self.within.add(multiplications)

    def note_cut(self, what: str, n: int = 1, lacks_time: bool = False) -> None:
        """Note what was ended early, in the plural, and how many; here and in the work of which
        this is a part.

        lacks_time : whether that is for want of time, though it is not over yet
        """
        lacks_time = lacks_time or self.is_late
        (self.cuts_in_time if lacks_time else self.cuts)[what] += n
        if self.within is not None:
            self.within.note_cut(what, n, lacks_time)

    def done_in_time(self, what: str, do: Callable[[], T], otherwise: T) -> T:
        """Return do(); or `otherwise` where the time is over before that is done, which is noted by
        its name in the plural."""
        with ends_at(self.deadline):
            check_not_ended()
            return do()
        self.note_cut(what)
        return otherwise

    def note_finished(self) -> None:
        """Note that a search has come to its own end; here and in the work of which this is a
        part."""
        self.n_finished += 1
        if self.within is not None:
            self.within.note_finished()

    def add_factor(self, p: int) -> None:
        """Count a Cholesky factor of a p by p matrix: p^3 / 6 multiplications, at half the speed of
        a matrix product."""
        self.add(p**3 / 3)

    def forget(self) -> None:
        """Begin to count anew."""
        self._spent = 0.0

    @property
    def spent(self) -> float:
        """The multiplications so far."""
        return self._spent

    @property
    def left(self) -> float:
        """The multiplications that are left."""
        return max(0.0, self._most - self._spent)

    @property
    def deadline(self) -> float:
        """When the time is over, here or in the work of which this is a part; infinite without a
        limit."""
        return self._deadline if self.within is None else min(self._deadline, self.within.deadline)

    @property
    def time_left(self) -> float:
        """The seconds that are left, infinite without a limit."""
        return _deadline.time_left(self.deadline)

    def has_time(self, seconds: float) -> bool:
        """Return whether this many seconds are left, or any without a limit."""
        return self.deadline == _deadline.NEVER or self.time_left > seconds

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        deadline = self.deadline
        return deadline < _deadline.NEVER and _deadline.now() >= deadline

    @property
    def is_spent(self) -> bool:
        """Whether no work or time is left, here or in the work of which this is a part."""
        return (
            self._spent >= self._most
            or (self.within is not None and self.within.is_spent)
            or self.is_late
        )


def work_of_pass(rows: Rows, n_features: int) -> int:
    """Return the multiplications that take as long as the correlations of n_features features with
    a row vector."""
    return rows.n_rows * n_features * (VALUE + rows.row_size)


UNBOUNDED = Effort(float("inf"))
