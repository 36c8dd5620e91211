"""Progress as it is shown: a bar of tqdm in terminals and notebooks, lines of a log elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import FitInfo

# Of the log: seconds between two lines at least, and the share that is done between them unless they are FAR seconds apart.
NEAR, STEP, FAR = 1.0, 0.05, 30.0


def display(name: str) -> Bar | Lines:
    """A function of a FitInfo, which shows it, with close()."""
    tqdm = _tqdm()
    return Lines(name) if tqdm is None else Bar(name, tqdm)


def _tqdm():
    """tqdm's class for the terminal or notebook that there is; None where there is none of either."""
    in_notebook = _in_notebook()
    if not (in_notebook or (sys.stderr is not None and sys.stderr.isatty())):
        return None
    try:
        if in_notebook:
            from tqdm.auto import tqdm
        else:
            from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


def _in_notebook():
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def said_of(info: FitInfo) -> list[str]:
    loss = [] if info.validation_loss is None else [f"held-out loss {info.validation_loss:.4g}"]
    return [*loss, f"{info.n_nonzero} terms"]


class Bar:
    def __init__(self, name: str, tqdm: Any):
        form = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left{postfix}"
        self._bar = tqdm(total=1.0, desc=name, bar_format=form, smoothing=0, leave=True)

    def __call__(self, info: FitInfo) -> None:
        self._bar.set_postfix_str(", ".join(said_of(info)), refresh=False)
        self._bar.n = info.progress
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class Lines:
    """Of the logger "sparserf"; to standard error where nobody has set up logging."""

    def __init__(self, name: str):
        self._name, self._logger = name, logging.getLogger("sparserf")
        self._start = time.monotonic()
        self._at, self._share = self._start, 0.0

    def __call__(self, info: FitInfo) -> None:
        now = time.monotonic()
        waited, done = now - self._at, info.progress - self._share
        if info.progress < 1 and (waited < NEAR or (done < STEP and waited < FAR)):
            return
        self._at, self._share = now, info.progress
        done = f"{self._name}: {100 * info.progress:.0f} % done"
        self._say(", ".join([done, *said_of(info), self._times(now, info.progress)]))

    def _times(self, now, share):
        elapsed = now - self._start
        left = f", about {elapsed / share - elapsed:.0f} s left" if 0 < share < 1 else ""
        return f"{elapsed:.1f} s{left}"

    def _say(self, line):
        if self._logger.hasHandlers():
            self._logger.info(line)
        elif sys.stderr is not None:
            print(line, file=sys.stderr)

    def close(self) -> None:
        """There is nothing to close."""
