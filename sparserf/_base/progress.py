"""How far long work has come: which share of it is done, told to callbacks, terminals, notebooks and logs.

A fit does not know how long it will take. It divides what is left of the work at hand into parts, which may divide theirs; the
share that is done is where the part at hand begins, or ends where its iteration has ended.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING

import numpy as np

from .checks import check_callable
from .door import door

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from ..model import FitInfo
    from .display import Line, Lines
    from .types import Callback, P, T

# Numbers read between two calls of a callback within an iteration.
NUMBERS_BETWEEN_CALLS = 2**27

_here = threading.local()


class Report:
    """The callback of a fit, which adds to what it is told the share that is done; and shows that share.

    share : in [0, 1], never falling
    span : (where the part at hand begins, where it ends, whether it is open: of iterations that nobody has counted)
    """

    share: float
    held_out: float | None
    span: tuple[float, float, bool]

    def __init__(self, callback: Callback, show: Line | Lines | None):
        self._callback, self._show = callback, show
        self.share, self.held_out, self._ended, self._told = 0.0, None, False, None
        self.begin(0.0, 1.0, True)

    def begin(self, start: float, end: float, is_open: bool) -> None:
        self.span, self._first = (start, end, is_open), None
        self.share = max(self.share, start)

    def iteration_ended(self, distance: float, target: float) -> None:
        start, end, is_open = self.span
        done = 1.0
        if is_open:
            self._first = distance if self._first is None else self._first
            done = nearness(self._first, distance, target)
        self.share = max(self.share, start + done * (end - start))
        self.show()

    def show(self, n_terms: int | None = None) -> None:
        if self._show is not None:
            self._show(self.share, self.held_out, n_terms)

    def __call__(self, info: FitInfo) -> bool:
        info = replace(info, progress=self.share)
        if self.held_out is not None:
            info = replace(info, validation_loss=self.held_out)
        self._told = self.share
        self.show(info.n_nonzero)
        self._ended = self._callback is not None and bool(self._callback(info))
        return self._ended

    def finish(self, info: FitInfo) -> None:
        """Tell that all is done, unless that was told or the callback has ended the fit."""
        if self._ended:
            return
        if self._told != 1.0:
            self.share, self.held_out = 1.0, info.validation_loss
            self(info)
        if self._show is not None:
            self._show.finish(info.validation_loss, info.n_nonzero)


def nearness(first: float, distance: float, target: float) -> float:
    """How much of the way from the first distance to the target is behind, in powers of ten."""
    if not (np.isfinite(distance) and first > target > 0):
        return 0.0
    return float(np.clip(np.log(first / max(distance, target)) / np.log(first / target), 0.0, 1.0)) if first < np.inf else 0.5


def _display(name, verbose, is_inner):
    """What shows the progress of a call, or None."""
    if not (verbose is None or isinstance(verbose, (bool, np.bool_))):
        raise TypeError(f"verbose must be True, False or None, got {verbose!r}")
    if (verbose is None and is_inner) or (verbose is not None and not verbose):
        return None
    from .display import display

    return display(name, verbose, is_inner)


@contextmanager
def reporting(name: str, callback: Callback, verbose: bool | None) -> Iterator[Report | None]:
    """The `Report` of what runs inside; None where nobody asks or looks. The outermost call alone has the screen."""
    check_callable("callback", callback)
    outer, is_inner = getattr(_here, "report", None), getattr(_here, "is_busy", False)
    show = _display(name, verbose, is_inner)
    report = None if callback is None and show is None else Report(callback, show)
    _here.report, _here.is_busy = report, True  # a callback may itself fit
    try:
        yield report
    finally:
        _here.report, _here.is_busy = outer, is_inner
        if show is not None:
            show.close()


def reported(algorithm: Callable[P, T]) -> Callable[P, T]:
    """A function of the user with verbose and callback, behind a `door`: the `Report` of a call is the callback of what runs.

    Where there is no callback, nothing is computed that only a callback would be told: what is shown is known anyway.
    """

    @wraps(algorithm)
    def told(*args: P.args, **how: P.kwargs) -> T:
        callback = how.get("callback")
        with reporting(algorithm.__name__, callback, how.pop("verbose", None)) as report:
            how["callback"] = None if callback is None else report
            fitted = algorithm(*args, **how)
            if report is not None:
                report.finish((fitted[-1] if isinstance(fitted, list) else fitted).info)
            return fitted

    return door(told)


@contextmanager
def part(share: float, is_open: bool = False) -> Iterator[None]:
    """Work that is this share of what is left of the work at hand; open: not done with the first iteration that ends."""
    report = getattr(_here, "report", None)
    if report is None:
        yield
        return
    start, end, outer_is_open = report.span
    middle = start + share * (end - start)
    report.begin(start, middle, is_open)
    try:
        yield
    finally:
        report.begin(middle, end, outer_is_open)


def parts(items: Sequence[T], weights: ArrayLike | None = None, rest: float = 0.0, is_open: bool = False) -> Iterator[T]:
    """Go through items, each of which is a part of the work at hand of a size in proportion to its weight.

    weights : None for equal ones; rest : the weight of what comes after them, which is open
    """
    weights = np.ones(len(items)) if weights is None else np.asarray(weights, float)
    left = np.cumsum(np.append(rest, weights[::-1]))[:0:-1]
    for item, share in zip(items, weights / left, strict=True):
        with part(share, is_open):
            yield item
    if rest and (report := getattr(_here, "report", None)) is not None:
        report.begin(*report.span[:2], True)


def iteration_ended(distance: float = np.inf, target: float = 0.0) -> None:
    """An iteration of a fit has ended, at this distance from where it ends for good at the target."""
    report = getattr(_here, "report", None)
    if report is not None:
        report.iteration_ended(distance, target)


def predicts_held_out(loss: float) -> None:
    """The mean loss of held-out rows of the best model so far."""
    report = getattr(_here, "report", None)
    if report is not None:
        report.held_out = loss


def goes_on() -> None:
    """Within an iteration: what is shown, is shown as it is by now."""
    report = getattr(_here, "report", None)
    if report is not None:
        report.show()


def tell(info: FitInfo) -> None:
    """What has been fitted, of work that is many fits: the part at hand is done."""
    report = getattr(_here, "report", None)
    if report is not None:
        report.iteration_ended(np.inf, 0.0)
        report(info)
