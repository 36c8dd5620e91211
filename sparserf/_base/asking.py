"""What lets a callback end long work: the work asks now and then, and whoever began it on this thread answers."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Seconds between two answers.
EVERY = 0.3

_here = threading.local()


class Ended(Exception):
    """The answer was to end; caught by the fit that gave it."""


class Answering:
    """While entered, `ask` on this thread calls answer() where it was not called for EVERY seconds; true raises Ended."""

    def __init__(self, answer: Callable[[], object]):
        self._answer, self._last = answer, time.monotonic()

    def __enter__(self) -> None:
        self._outer, _here.answering = getattr(_here, "answering", None), self

    def __exit__(self, *error: object) -> None:
        _here.answering = self._outer

    def has_told(self) -> None:
        """The next question is answered EVERY seconds from now on."""
        self._last = time.monotonic()

    def ask(self) -> None:
        if time.monotonic() - self._last < EVERY:
            return
        _here.answering = None  # an answer may itself do such work
        try:
            ended = self._answer()
        finally:
            _here.answering = self
            self.has_told()
        if ended:
            raise Ended


def ask() -> None:
    """Called between the parts of work that may be long."""
    answering = getattr(_here, "answering", None)
    if answering is not None:
        answering.ask()
