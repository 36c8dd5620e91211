"""How well models tell times until events: concordance, and the Brier score of survival."""

from __future__ import annotations

import numpy as np


def pairs_of_rows(
    time: np.ndarray, event: np.ndarray, f: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row the weight of the rows that are known to have a later event, and the part
    of it of rows with a smaller f; equal f count half. Both are 0 for censored rows.

    Later are rows of a later time, and those censored at the same time. In the order of time these
    are all rows from some place on. They are a union of blocks of 1, 2, 4, ... rows that begin at
    multiples of their lengths; in each the rows are in the order of f. Time O(n log^2 n).
    """
    n, order = len(time), np.lexsort([~event, time])
    _, rank = np.unique(f, return_inverse=True)
    n_ranks, rank_of_place, weight_of_place = rank.max(initial=0) + 1, rank[order], weight[order]
    rows = np.flatnonzero(event)
    # a censored row comes after the events of its time
    keys = np.unique(time, return_inverse=True)[1] * 2 + ~event
    begin = np.searchsorted(keys[order], keys[rows], side="right")
    total = np.append(np.cumsum(weight_of_place[::-1])[::-1], 0.0)
    later, smaller = np.zeros(n), np.zeros(n)
    later[rows] = total[begin]
    for level in range(n.bit_length()):
        key = (np.arange(n) >> level) * n_ranks + rank_of_place
        by_key = np.argsort(key, kind="stable")
        sorted_keys = key[by_key]
        sums = np.concatenate([[0.0], np.cumsum(weight_of_place[by_key])])
        at = np.flatnonzero(begin & 1)  # the rows whose union has the block that starts at `begin`
        first = begin[at] * n_ranks
        start, low, high = (
            sums[np.searchsorted(sorted_keys, each, side=side)]
            for each, side in (
                (first, "left"),
                (first + rank[rows[at]], "left"),
                (first + rank[rows[at]], "right"),
            )
        )
        smaller[rows[at]] += (low + high) / 2 - start
        begin = (begin + 1) >> 1
    return later, smaller


def censoring(time: np.ndarray, event: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (the times of censoring, ascending; the probability to be censored after each), by
    Kaplan and Meier's estimator. At the same time events come before censoring."""
    times, n_censored = np.unique(time[~event], return_counts=True)
    n_left = len(time) - np.searchsorted(np.sort(time), times)  # at this time or later
    events = np.sort(time[event])
    n_events = np.diff(
        [np.searchsorted(events, times, side=side) for side in ("left", "right")], axis=0
    )
    return times, np.cumprod(1 - n_censored / (n_left - n_events[0]))


def brier_scores(
    time: np.ndarray,
    event: np.ndarray,
    survival: np.ndarray,
    times: np.ndarray,
    of_censoring: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return the squared error of each row's survival at some times, (n_rows, n_times), weighted by
    1 / the probability not to be censored before what is known of it.

    of_censoring : as `censoring` returns it
    """
    places, left = of_censoring
    left = np.append(1.0, left)
    until = left[np.searchsorted(places, time, side="left")]  # before censoring at this time
    at = left[np.searchsorted(places, times, side="right")]
    is_after = time[:, None] > times
    is_known = ~is_after & event[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(is_after, (1 - survival) ** 2 / at, 0.0)
        return np.where(is_known, survival**2 / until[:, None], scores)


def mean_over_times(scores: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the means of scores, (n_rows, n_times), over the interval of the times, between which
    they are taken as linear."""
    if len(times) == 1:
        return scores[:, 0]
    return np.trapezoid(scores, times, axis=1) / (times[-1] - times[0])
