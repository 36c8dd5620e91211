"""Displays of progress: one line, drawn again and again, in a terminal or a notebook; lines of a log elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from contextlib import suppress

# Seconds until a line is shown that the user did not ask for, and between two drawings of it.
UNASKED, REDRAWN = 2.0, 0.2
# In a log: least seconds between two lines, and least share that is done between them unless they are FAR seconds apart.
NEAR, STEP, FAR = 1.0, 0.05, 30.0

_screen = threading.Lock()  # held by whoever draws: of fits on several threads one has the screen


def display(name: str, verbose: bool | None, is_inner: bool) -> Line | Lines | None:
    """Return a display of the progress of a call of this name; None where nothing is to be shown.

    verbose : as the user gave it; None shows a line only in a terminal or a notebook, and once the call has taken long
    is_inner : whether the call is part of another, which then has the screen
    """
    screen = _find_screen()
    if screen is None:
        return Lines(name) if verbose else None
    if is_inner or (verbose is None and screen is Terminal and _has_bars()):
        return None
    return Line(name, screen(), stays=bool(verbose))


def _find_screen():
    """Return `Cell` or `Terminal`; None in a pipe, in a file, and in a process that another one started to share its work."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return Cell
    try:
        is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # None, what somebody put in its place, or closed
        return None
    return Terminal if is_terminal else None


def _has_bars():
    """Whether the user's own bars of tqdm are on the screen, which a line would overwrite."""
    return len(getattr(getattr(sys.modules.get("tqdm"), "tqdm", None), "_instances", ())) > 0


class Clock:
    """The time since a call began, and the text of a line about it."""

    def __init__(self, name: str):
        self._name, self._start = name, time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self._start

    def text(self, share: float, held_out: float | None, n_terms: int | None) -> str:
        """Return the line: the share that is done, what else is known, the time, and an estimate of what is left of it."""
        gone = self.elapsed()
        words = [f"{self._name}: {100 * share:.0f} % done"]
        words += [] if held_out is None else [f"held-out loss {held_out:.4g}"]
        words += [] if n_terms is None else [f"{n_terms} terms"]
        words += [f"{gone:.1f} s", *([f"about {gone / share - gone:.0f} s left"] if 0 < share < 1 else [])]
        return ", ".join(words)


class Line:
    """One line on a screen, drawn again and again, which stays at the end or is cleared."""

    def __init__(self, name: str, screen: Terminal | Cell, stays: bool):
        self._clock, self._screen, self._stays = Clock(name), screen, stays
        self._next, self._draws = 0.0 if stays else UNASKED, False

    def __call__(self, share: float, held_out: float | None, n_terms: int | None) -> None:
        """Draw the line, unless it was drawn just now."""
        if self._clock.elapsed() >= self._next:
            self._draw(share, held_out, n_terms)
            self._next = self._clock.elapsed() + REDRAWN

    def _draw(self, share, held_out, n_terms):
        self._draws = self._draws or _screen.acquire(blocking=False)
        if self._draws:
            with suppress(OSError, ValueError):  # a terminal that is there no more ends no fit
                self._screen.draw(self._clock.text(share, held_out, n_terms), share)

    def finish(self, held_out: float | None, n_terms: int | None) -> None:
        """Draw the line of a call that is done, if it stays."""
        if self._stays:
            self._draw(1.0, held_out, n_terms)

    def close(self) -> None:
        """Leave the screen to others."""
        if self._draws:
            _screen.release()
            with suppress(OSError, ValueError):
                self._screen.end(self._stays)


class Terminal:
    """The last line of standard error."""

    _length: int = 0

    def draw(self, text: str, share: float) -> None:
        """Write the text over the last line."""
        text = text[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write("\r" + text.ljust(self._length) + "\r")  # what others write starts at the beginning of the line
        sys.stderr.flush()
        self._length = len(text)

    def end(self, stays: bool) -> None:
        """Leave the line, or clear it."""
        sys.stderr.write("\n" if stays else " " * self._length + "\r")
        sys.stderr.flush()


class Cell:
    """An output of a notebook's cell."""

    def __init__(self) -> None:
        self._handle = None  # IPython's, of the output once it is there

    def draw(self, text: str, share: float) -> None:
        """Show the text with a bar."""
        from .html import progress

        self._show({"text/plain": text, "text/html": progress(share, text)})

    def end(self, stays: bool) -> None:
        """Leave the output, or clear it."""
        if not stays:
            self._show({"text/plain": "", "text/html": ""})

    def _show(self, data):
        """Replace what the output shows, in the formats that the notebook may choose from."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


class Lines:
    """Lines of the logger "sparserf", or of standard error where no handler of that logger takes them."""

    def __init__(self, name: str):
        self._clock, self._at, self._share = Clock(name), 0.0, 0.0

    def __call__(self, share: float, held_out: float | None, n_terms: int | None) -> None:
        """Log a line, unless too little has happened since the last."""
        waited, done = self._clock.elapsed() - self._at, share - self._share
        if waited >= NEAR and (done >= STEP or waited >= FAR):
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
    """Whether some handler of this logger, or of those above it, writes lines of level INFO."""
    from logging import INFO, NullHandler

    is_taken, at = False, logger if logger.isEnabledFor(INFO) else None
    while at is not None:
        is_taken |= any(handler.level <= INFO and not isinstance(handler, NullHandler) for handler in at.handlers)
        at = at.parent if at.propagate else None
    return is_taken
