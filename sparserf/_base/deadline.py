"""Deadlines: when the work of a call with a `time_limit` is to end.

A deadline is a time of the clock `now`, infinite where there is no limit. A public function that
has `time_limit` sets the deadline of its call with `limits_time`; `shows_progress` does so for a
fit. What may take time in proportion to its rows, such as the units of columns, looks at fewer of
them where little time is left (`fewer_in_time`); what goes in steps ends at the deadline (`Budget`,
`progress.ends_at`). Without a limit nothing here changes a result.

The deadline of the current call is kept for each thread.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .checks import check_real

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The clock of all deadlines.
now: Callable[[], float] = time.monotonic
NEVER = float("inf")


class _Thread(threading.local):
    """The deadline of the call that runs in a thread."""

    deadline: float = NEVER


_here = _Thread()


def check_time_limit(time_limit: float | None) -> float:
    """Return the deadline of a call that may take `time_limit` seconds from now; None: any."""
    if time_limit is None:
        return NEVER
    return now() + check_real("time_limit", time_limit, 0, strict=True)


@contextmanager
def limits_time(deadline: float) -> Iterator[None]:
    """Make this the deadline of the current call within this block."""
    outer, _here.deadline = _here.deadline, deadline
    try:
        yield
    finally:
        _here.deadline = outer


def deadline_of_call() -> float:
    """Return the deadline of the current call."""
    return _here.deadline


def time_left(deadline: float | None = None) -> float:
    """Return the seconds until a deadline, at least 0; None: until that of the current call."""
    return max(0.0, (_here.deadline if deadline is None else deadline) - now())


def share_of_time(deadline: float, share: float) -> float:
    """Return the deadline at which this share of the time that is left now will have gone."""
    return deadline if deadline == NEVER else now() + share * time_left(deadline)


def limit_of_next(deadline: float, n: float) -> dict[str, float]:
    """Return the keyword arguments of the next of n calls that share the time until a deadline:
    its `time_limit`, where there is a deadline."""
    return {} if deadline == NEVER else {"time_limit": max(1e-3, time_left(deadline) / n)}


def fewer_in_time(n: int, fewest: int, seconds: float, power: int = 1) -> int:
    """Return how many of n items to look at in 5 % of the time that the current call has left: all
    n where that is enough time, and at least `fewest`.

    seconds : about the time that all n take
    power : the power of n in which the time grows
    """
    allowed = 0.05 * time_left()
    if allowed >= seconds:
        return n
    return min(n, max(fewest, int(n * (allowed / seconds) ** (1 / power))))
