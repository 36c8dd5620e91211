"""Threads that compute on blocks of rows, with results in order, and BLAS on one thread."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from .floats import as_ieee
from .progress import check_not_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .types import T


def check_workers(workers: int) -> int:
    """Return the number of threads: `workers` if positive, for -1 the cores of this process."""
    if isinstance(workers, bool) or not isinstance(workers, (int, Integral)):
        raise TypeError(f"workers must be an integer, got {workers!r}")
    workers = int(workers)
    if workers == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if workers < 1:
        raise ValueError(f"workers must be positive, or -1 for all cores, got {workers}")
    return workers


class Workers:
    """Threads with a `map` that keeps the order of its items.

    The threads live while the object is entered as a context, which may be nested; otherwise for
    one `map`.

    >>> with Workers(2) as workers:
    ...     list(workers.map(abs, [-2, -1]))
    [2, 1]
    """

    def __init__(self, n: int):
        self._n, self._pool, self._entered = n, None, 0

    def __enter__(self) -> Self:
        self._entered += 1
        if self._n > 1 and self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # slow to import

            self._pool = ThreadPoolExecutor(self._n)
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered -= 1
        if self._pool is not None and not self._entered:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def map(self, function: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
        """Yield function(item) in the order of the items; a few results are computed ahead.

        This order gives sums over blocks the same bits for any number of workers. Between items the
        user's callback may end the fit.
        """
        results = (
            map(function, items)
            if self._n == 1 or len(items) < 2
            else self._results_of_threads(function, items)
        )
        for result in results:
            check_not_ended()
            yield result

    def _results_of_threads(self, function, items):
        """Yield function(item) in order, from threads of the pool or of this call."""
        if self._pool is None:
            with Workers(self._n) as workers:
                yield from workers._results_of_threads(function, items)
            return
        pending = deque()
        for item in items:
            pending.append(self._pool.submit(as_ieee(function), item))
            if len(pending) > 2 * self._n:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class _SingleThreadedBlas:
    """A context in which BLAS has one thread; the last to exit restores the former numbers.

    A limit of threadpoolctl would belong to the Python thread that set it: of two overlapping
    calls, the one that ends last could not lift it.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries, self._before = None, ()

    @contextmanager
    def __call__(self):
        with self._lock:
            if self._inside == 0:
                if self._libraries is None:
                    self._libraries = _find_blas()
                self._before = [library.get_num_threads() for library in self._libraries]
                self._set_threads([1] * len(self._libraries))
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._set_threads(self._before)

    def _set_threads(self, numbers):
        """Set the number of threads of each library."""
        for library, number in zip(self._libraries, numbers, strict=True):
            # before threadpoolctl 3.8 there is nothing to free
            free = getattr(library, "clear_controlling_thread", lambda force: None)
            free(force=True)
            library.set_num_threads(number)
            free(force=True)


def _find_blas():
    """Return threadpoolctl's controllers of all BLAS libraries: a search of milliseconds."""
    import scipy.linalg  # noqa: F401  SciPy's BLAS is not NumPy's, and must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


single_threaded_blas = _SingleThreadedBlas()
