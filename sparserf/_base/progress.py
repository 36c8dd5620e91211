"""Progress of long work: shown on a screen, and passed to a callback, which may end the work.

The parts of this file and of `display.py`:

- Each call of a public function with a callback or a display has a `ProgressReport`, made by
  `shows_progress` or `reporting`, which knows the share of the call's work that is done. A fit does
  not know how long it will take. It divides the work into parts (`part`, `parts`), each a share of
  the remaining work, and a part into parts of its own. The share grows as parts begin and end, and
  as iterations of a fit end within their part (`FitCallback.end_iteration`).
- Each fit has a `FitCallback`, which calls the user's callback after each iteration (`ask`). Within
  long iterations (`asked_within`) the work itself lets the callback be called, by `check_not_ended`
  every now and then; `parts` does so before each item. There, too, a block of `ends_at` is left
  where its time is over.
- `display.py` draws lines on a screen or writes them to a log. It is imported when there is
  something to show.

The current report and callback are kept for each thread, so that fits on several threads do not
mix.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import deadline as _deadline
from .calls import check_call, is_true
from .checks import check_callable
from .deadline import NEVER, check_time_limit, limits_time
from .floats import as_ieee, state_of_caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from .display import LogLines, ScreenLine
    from .types import P, T

# Within an iteration the callback is called after SECONDS_BETWEEN_CALLS; or, in a fit that counts
# the numbers that it reads, after NUMBERS_BETWEEN_CALLS, which take some tenths of a second.
SECONDS_BETWEEN_CALLS = 0.3
NUMBERS_BETWEEN_CALLS = 2**27


class _Thread(threading.local):
    """The state of progress in a thread, which has values of its own.

    report : the ProgressReport of the call that runs, or None
    is_busy : whether a call runs
    asking : None, or (the FitCallback that `check_not_ended` calls, its info())
    end : when the present block of `ends_at` is to end
    """

    report: ProgressReport | None = None
    is_busy: bool = False
    asking: tuple[FitCallback, Callable[[], Any]] | None = None
    end: float = NEVER


_here = _Thread()


class Ended(Exception):
    """Raised in an iteration if the callback ends a fit (`asked_within`), or its time is over."""


class FitCallback:
    """The user's callback of one fit, called after each iteration and within long ones.

    callback : callable(info) or None
        The user's callback, which ends the fit by returning something true.
    ended_by_callback : bool
        Whether it has ended the fit.
    """

    callback: Callable[[Any], object] | None
    ended_by_callback: bool

    def __init__(self, callback: Callable[[Any], object] | None):
        self.callback = callback
        self.restart()

    def restart(self) -> None:
        """Reset the state at the start of another fit: not ended, and called just now."""
        self.ended_by_callback, self._n_read = False, 0
        self._last_call = time.monotonic()

    def ask(self, info: Callable[[], Any]) -> bool:
        """Call the callback with info(), show the share done; return whether the fit has ended."""
        if _here.report is not None:
            _here.report.show()
        if self.callback is not None and not self.ended_by_callback:
            self.ended_by_callback = is_true("callback", self.callback(info()))
        self._last_call, self._n_read = time.monotonic(), 0
        return self.ended_by_callback

    def ask_after_reading(self, n_numbers: float, info: Callable[[], Any]) -> bool:
        """Count n_numbers as read; call the callback once NUMBERS_BETWEEN_CALLS have been."""
        self._n_read += n_numbers
        return self.ask(info) if self._n_read > NUMBERS_BETWEEN_CALLS else self.ended_by_callback

    def is_due(self) -> bool:
        """Return whether SECONDS_BETWEEN_CALLS have passed since the last call or iteration."""
        return time.monotonic() - self._last_call >= SECONDS_BETWEEN_CALLS

    def end_iteration(self, distance: float = np.inf, target: float = 0.0) -> None:
        """Report that an iteration has ended at this distance from the optimum.

        The fit ends at the distance `target`.
        """
        if _here.report is not None:
            _here.report.iteration_ended(distance, target)
        self._last_call = time.monotonic()

    @contextmanager
    def asked_within(self, info: Callable[[], Any]) -> Iterator[None]:
        """Let `check_not_ended` call the callback with info() within this block; leave the block if
        that ends the fit, or where the time is over."""
        outer, _here.asking = _here.asking, (self, info)
        try:
            yield
        except Ended:
            pass
        finally:
            _here.asking = outer


def check_not_ended() -> None:
    """Call the current fit's callback, if it is due, and raise `Ended` if that ends the fit, or if
    the time of the present block is over.

    Long computations call this function every now and then. Outside of `FitCallback.asked_within`
    and `ends_at` nothing is called or raised.
    """
    if is_time_over():
        raise Ended
    if _here.asking is None:
        return
    fit_callback, info = asking = _here.asking
    if not fit_callback.is_due():
        return
    _here.asking = None  # info() may itself be a long computation
    try:
        ended = fit_callback.ask(info)
    finally:
        _here.asking = asking
    if ended:
        raise Ended


@contextmanager
def ends_at(deadline: float) -> Iterator[None]:
    """Leave this block once the deadline has passed, at the next `check_not_ended` in it."""
    if deadline == NEVER:
        yield
        return
    outer, _here.end = _here.end, min(_here.end, deadline)
    try:
        yield
    except Ended:
        pass
    finally:
        _here.end = outer


def is_time_over() -> bool:
    """Return whether the present block of `ends_at` is to be left."""
    return _here.end < NEVER and _deadline.now() >= _here.end


class ProgressReport:
    """The share of a call's work that is done: it is shown, and added to a callback's `FitInfo`.

    It is passed to the fit in place of the user's callback, and called with each `FitInfo`.

    share : float
        The share that is done, in [0, 1]; it never falls.
    span : tuple of (float, float, bool)
        The shares at which the current part begins and ends, and whether the part is open: of an
        unknown number of iterations.
    held_out : float or None
        The mean loss of held-out rows of the best model so far.
    ended : bool
        Whether the user's callback has ended the fit.
    """

    share: float
    held_out: float | None
    ended: bool
    span: tuple[float, float, bool]

    def __init__(
        self, callback: Callable[[Any], object] | None, show: ScreenLine | LogLines | _PartOf | None
    ):
        self._callback, self._show = callback, show
        self.share, self.held_out, self.ended = 0.0, None, False
        self._told = None  # the share that was last passed to the callback
        self.begin(0.0, 1.0, True)

    @property
    def is_shown(self) -> bool:
        """Whether there is a display."""
        return self._show is not None

    def begin(self, start: float, end: float, is_open: bool) -> None:
        """Begin a part of the work."""
        self.span, self._first = (start, end, is_open), None
        self.share = max(self.share, start)

    def iteration_ended(self, distance: float, target: float) -> None:
        """Increase the share by one iteration, which ended at this distance from the optimum.

        In an open part the share is as near to the part's end as the distance is to the target;
        other parts have ended.
        """
        start, end, is_open = self.span
        done = 1.0
        if is_open:
            self._first = distance if self._first is None else self._first
            done = nearness(self._first, distance, target)
        self.share = max(self.share, start + done * (end - start))
        self.show()

    def show(self, n_terms: int | None = None) -> None:
        """Draw the share anew, if there is a display."""
        if self._show is not None:
            self._show(self.share, self.held_out, n_terms)

    def __call__(self, info: Any) -> bool:
        """Call the user's callback with a `FitInfo` that has the share; return whether it ends."""
        info = replace(info, progress=self.share)
        if self.held_out is not None:
            info = replace(info, validation_loss=self.held_out)
        self._told = self.share
        self.show(info.n_nonzero)
        if self._callback is not None:
            # fits of the callback's own are no part of this work
            here, _here.report = _here.report, None
            try:
                with state_of_caller():
                    answer = self._callback(info)
            finally:
                _here.report = here
            self.ended = is_true("callback", answer)
        return self.ended

    def finish(self, info: Any) -> None:
        """Report a share of 1 to the callback and the display, unless they have it.

        If the callback has ended the fit, report nothing.
        """
        if self.ended:
            return
        if self._told != 1.0:
            self.share, self.held_out = 1.0, info.validation_loss
            self(info)
        if self._show is not None:
            self._show.finish(info.validation_loss, info.n_nonzero)


class _PartOf:
    """The display of a call within another: its share counts within the current outer part."""

    def __init__(self, outer):
        self._outer, (self._start, self._end, _) = outer, outer.span

    def __call__(self, share, held_out, n_terms):
        self._outer.share = max(self._outer.share, self._start + share * (self._end - self._start))
        self._outer.show(n_terms)

    def finish(self, held_out, n_terms):
        """Do nothing: the outer call goes on."""

    def close(self):
        """Do nothing: the line is the outer call's."""


def nearness(first: float, distance: float, target: float) -> float:
    """Return the share of the way from the first distance to the target that is done, on a log
    scale."""
    if not (np.isfinite(distance) and first > target > 0):
        return 0.0
    if first == np.inf:
        return 0.5
    done = np.log(first / max(distance, target)) / np.log(first / target)
    return float(np.clip(done, 0.0, 1.0))


@contextmanager
def reporting(
    name: str,
    callback: Callable[[Any], object] | None,
    verbose: bool | None,
    time_limit: float | None = None,
) -> Iterator[ProgressReport | None]:
    """Make the `ProgressReport` of the work within this block.

    It is None where there is no callback and nothing is shown.

    time_limit : the seconds that the call may take

    Of nested calls the outermost alone is shown on the screen; the share that an inner one has done
    is a share of its part.
    """
    check_callable("callback", callback)
    if not (verbose is None or isinstance(verbose, (bool, np.bool_))):
        raise TypeError(f"verbose must be True, False or None, got {verbose!r}")
    outer, is_inner = _here.report, _here.is_busy
    show: ScreenLine | LogLines | _PartOf | None = None
    if verbose or (verbose is None and not is_inner):
        screen = find_screen()
        if verbose or screen is not None:
            from .display import display

            show = display(name, screen, verbose, is_inner, time_limit)
    if show is None and outer is not None and outer.is_shown:
        show = _PartOf(outer)
    report = None if callback is None and show is None else ProgressReport(callback, show)
    _here.report, _here.is_busy = report, True  # a callback may itself fit
    try:
        yield report
    finally:
        _here.report, _here.is_busy = outer, is_inner
        if show is not None:
            show.close()


def find_screen() -> Literal["notebook", "terminal"] | None:
    """Return where a line can be redrawn, or None, as in a pipe, a file or a child process."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return None
    ipython = sys.modules.get("IPython")
    if hasattr(ipython, "get_ipython") and hasattr(ipython.get_ipython(), "kernel"):
        return "notebook"
    try:
        is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # stderr is None, something without isatty, or closed
        return None
    return "terminal" if is_terminal else None


def shows_progress(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function that has verbose and callback.

    Its calls are checked, run `as_ieee`, report progress, and have the deadline of a `time_limit`.

    The function gets the `ProgressReport` of the call as its callback. Where the user gives no
    callback it gets none, so that nothing is computed for a callback alone: what the display shows
    is known anyway.
    """
    parameters = tuple(signature(function).parameters)

    @wraps(function)
    def reported(*args: P.args, **keywords: P.kwargs) -> T:
        check_call(function, parameters, args, keywords)
        callback = keywords.get("callback")
        verbose, time_limit = keywords.pop("verbose", None), keywords.get("time_limit")
        with (
            limits_time(check_time_limit(time_limit)),
            reporting(function.__name__, callback, verbose, time_limit) as report,
        ):
            keywords["callback"] = None if callback is None else report
            try:
                fitted = function(*args, **keywords)
            except RuntimeError as error:
                # Python makes one of a StopIteration that leaves a generator
                if isinstance(error.__cause__, StopIteration):
                    raise error.__cause__ from None
                raise
            if report is not None:
                report.finish((fitted[-1] if isinstance(fitted, list) else fitted).info)
            return fitted

    return as_ieee(reported)


@contextmanager
def part(share: float, is_open: bool = False) -> Iterator[None]:
    """Count the work within this block as a part: a share of what remains of the current work.

    is_open : whether the part has an unknown number of iterations, and not just one
    """
    report = _here.report
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


def parts(
    items: Sequence[T], weights: ArrayLike | None = None, rest: float = 0.0, is_open: bool = False
) -> Iterator[T]:
    """Yield items, unless the fit is to end before (`check_not_ended`); each is a part of the
    current work, in proportion to its weight.

    weights : the weights of the items; None: all are equal
    rest : the weight of the work that comes after all items, of an unknown number of iterations
    is_open : whether each part has an unknown number of iterations, and not just one
    """
    weights = np.ones(len(items)) if weights is None else np.asarray(weights, float)
    left = np.cumsum(np.append(rest, weights[::-1]))[:0:-1]
    for item, share in zip(items, weights / left, strict=True):
        check_not_ended()
        with part(share, is_open):
            yield item
    if rest and _here.report is not None:
        start, end, _ = _here.report.span
        _here.report.begin(start, end, True)


def note_held_out_loss(loss: float) -> None:
    """Note the best model's mean loss of held-out rows, to be shown and told the callback."""
    if _here.report is not None:
        _here.report.held_out = loss


def is_ended_by_callback() -> bool:
    """Return whether the user's callback has ended the current call, or its last fit."""
    return _here.report is not None and _here.report.ended


def tell_model(info: Any) -> None:
    """Report that one of many fits is done, and with it the current part.

    info : the `FitInfo` of its model
    """
    if _here.report is not None:
        _here.report.iteration_ended(np.inf, 0.0)
        _here.report(info)
