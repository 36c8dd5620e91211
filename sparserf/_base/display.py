"""Displays of progress: a line that is redrawn in a terminal or a notebook, or lines of a log."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import suppress
from typing import Literal

# The seconds after which a call with verbose=None shows its line.
AUTO_DELAY = 2.0
# The seconds between two drawings of a line.
REDRAW_INTERVAL = 0.2

# Held by the line that is on the screen: of fits on several threads, one is shown.
_screen = threading.Lock()


def display(
    name: str,
    screen: Literal["notebook", "terminal"] | None,
    verbose: bool | None,
    is_inner: bool,
    time_limit: float | None = None,
) -> ScreenLine | LogLines | None:
    """Return a display of the progress of a call of this name; None where nothing is to be shown.

    Parameters
    ----------
    screen : "notebook", "terminal" or None
        Where a line can be drawn again and again. None: lines of a log are written, where verbose
        is True.
    verbose : bool or None
        As the user gave it. None shows a line once the call has taken long, on a screen alone.
    is_inner : bool
        Whether the call is part of another, which then owns the screen.
    time_limit : float or None
        The seconds that the call may take.
    """
    clock = ElapsedTime(name, time_limit)
    if screen is None:
        return LogLines(clock) if verbose else None
    if is_inner or (verbose is None and screen == "terminal" and _has_bars()):
        return None
    return ScreenLine(
        clock, NotebookOutput() if screen == "notebook" else Terminal(), stays=bool(verbose)
    )


def _has_bars():
    """Return whether progress bars of tqdm are on the screen: a line would overwrite them."""
    return len(getattr(getattr(sys.modules.get("tqdm"), "tqdm", None), "_instances", ())) > 0


class ElapsedTime:
    """The time since a call began, and the text of a line on how far it is.

    time_limit : the seconds that the call may take; None: any time
    """

    def __init__(self, name: str, time_limit: float | None = None):
        self._name, self._limit, self._start = name, time_limit, time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self._start

    def text(self, share: float, held_out: float | None, n_terms: int | None) -> str:
        """Return the line: the share done, held-out loss, terms, time, and time left."""
        gone = self.elapsed()
        words = [f"{self._name}: {100 * share:.0f} % done"]
        words += [] if held_out is None else [f"held-out loss {held_out:.4g}"]
        words += [] if n_terms is None else [f"{n_terms} terms"]
        return ", ".join([*words, f"{gone:.1f} s", *self._left(share, gone)])

    def _left(self, share, gone):
        """Return words on the time left: an estimate, or all that the limit allows, if less."""
        left = gone / share - gone if 0 < share < 1 else None
        if share < 1 and self._limit is not None and (left is None or gone + left > self._limit):
            return [f"at most {max(0.0, self._limit - gone):.0f} s left"]
        return [] if left is None else [f"about {left:.0f} s left"]


class ScreenLine:
    """A line on a screen that is drawn again and again; at the end it stays or is cleared."""

    def __init__(self, clock: ElapsedTime, screen: Terminal | NotebookOutput, stays: bool):
        self._clock, self._screen, self._stays = clock, screen, stays
        self._next, self._draws = 0.0 if stays else AUTO_DELAY, False

    def __call__(self, share: float, held_out: float | None, n_terms: int | None) -> None:
        """Draw the line, unless it was drawn just now."""
        if self._clock.elapsed() >= self._next:
            self._draw(share, held_out, n_terms)
            self._next = self._clock.elapsed() + REDRAW_INTERVAL

    def _draw(self, share, held_out, n_terms):
        """Draw the line now, if the screen is free or this line has it."""
        self._draws = self._draws or _screen.acquire(blocking=False)
        if self._draws:
            # a terminal that has been closed must not end the fit
            with suppress(OSError, ValueError):
                self._screen.draw(self._clock.text(share, held_out, n_terms), share)

    def finish(self, held_out: float | None, n_terms: int | None) -> None:
        """Draw the line of a call that is done, if it stays."""
        if self._stays:
            self._draw(1.0, held_out, n_terms)

    def close(self) -> None:
        """Give the screen back, where this line has it."""
        if self._draws:
            _screen.release()
            with suppress(OSError, ValueError):
                self._screen.end(self._stays)


class Terminal:
    """The last line of standard error, which is a terminal."""

    _length: int = 0

    def draw(self, text: str, share: float) -> None:
        """Write the text over the last line."""
        text = text[: shutil.get_terminal_size().columns - 1]
        # text that others write starts at the beginning of the line
        sys.stderr.write("\r" + text.ljust(self._length) + "\r")
        sys.stderr.flush()
        self._length = len(text)

    def end(self, stays: bool) -> None:
        """Leave the line, or clear it."""
        sys.stderr.write("\n" if stays else " " * self._length + "\r")
        sys.stderr.flush()


class NotebookOutput:
    """An output below a cell of a notebook."""

    def __init__(self) -> None:
        self._handle = None  # IPython's handle of the output, once there is one

    def draw(self, text: str, share: float) -> None:
        """Show the text with a bar."""
        from .html import progress

        self._show({"text/plain": text, "text/html": progress(share, text)})

    def end(self, stays: bool) -> None:
        """Leave the output, or clear it."""
        if not stays:
            self._show({"text/plain": "", "text/html": ""})

    def _show(self, data):
        """Show data, {MIME type: text}, in place of what the output has shown."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class LogLines:
    """Lines to the logger "sparserf", or to standard error if no handler of it accepts INFO."""

    def __init__(self, clock: ElapsedTime):
        self._clock, self._at, self._share = clock, 0.0, 0.0

    def __call__(self, share: float, held_out: float | None, n_terms: int | None) -> None:
        """Log a line, unless the last one was a moment ago or little has been done since."""
        shortest, longest, step = 1.0, 30.0, 0.05  # seconds, seconds, and a share of the work
        waited, done = self._clock.elapsed() - self._at, share - self._share
        if share < 1 and waited >= shortest and (done >= step or waited >= longest):
            self._at, self._share = self._clock.elapsed(), share
            self._log(self._clock.text(share, held_out, n_terms))

    def finish(self, held_out: float | None, n_terms: int | None) -> None:
        """Log the line of a call that is done."""
        self._log(self._clock.text(1.0, held_out, n_terms))

    def _log(self, line):
        """Log a line at level INFO, or write it to standard error."""
        import logging

        logger = logging.getLogger("sparserf")
        if _takes_info(logger):
            logger.info(line)
        elif sys.stderr is not None:
            with suppress(OSError, ValueError):
                print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing: a log needs no end."""


def _takes_info(logger):
    """Return whether a handler of this logger, or of one above it, writes lines of level INFO."""
    from logging import INFO, NullHandler

    at = logger if logger.isEnabledFor(INFO) else None
    while at is not None:
        if any(h.level <= INFO and not isinstance(h, NullHandler) for h in at.handlers):
            return True
        at = at.parent if at.propagate else None
    return False
