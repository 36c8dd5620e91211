"""What a page says is proved: bounds of f over the ranges of training, and monotone columns."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING

import numpy as np

from .._base.deadline import check_time_limit, limit_of_next, time_left
from ..losses.links import LINKS
from ..proof.bounds import bounds
from ..proof.monotone import is_monotone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expansion import Expansion
    from .columns import PageColumn

# The most outputs that are bounded, and the most columns that are asked for monotonicity.
MOST_BOUNDED = 3
MOST_MONOTONE = 12
# The digits of bounds, which are rounded outwards.
DIGITS = 6


def proved(
    model: Expansion, names: Sequence[str], columns: Sequence[PageColumn], time_limit: float | None
) -> list[list[str]]:
    """Return what is proved over the training box: [[what, words]] of bounds, of which each output
    has a part of half the time, and of monotone columns, as many as the time allows.

    names : those of the outputs
    """
    deadline, several = check_time_limit(time_limit), model.coef.ndim > 1
    outputs = _labels(model)[:MOST_BOUNDED] if several else [None]
    seconds = limit_of_next(deadline, 2 * len(outputs)).get("time_limit")
    found = []
    try:
        for name, output in zip(names, outputs, strict=False):
            bounded = bounds(model, None, 1e-3, seconds, output)
            of = f"f of {name}" if several or model.classes is not None else "f"
            found.append([f"{of} is at least", _ends(bounded.least)])
            found.append([f"{of} is at most", _ends(bounded.largest)])
            link = LINKS.get(model.link)
            if model.classes is None and not link.is_identity:
                low, high = link.inverse(np.array([bounded.least.lower, bounded.largest.upper]))
                found.append(["predictions lie", _ends((float(low), float(high)))])
    except ValueError as error:  # of columns whose range is not known
        return [["not shown", str(error)]]
    if several:
        return found
    numbers = [c for c in columns if c.levels is None and model.features.columns_seen[c.place]]
    return found + _monotone(model, numbers[:MOST_MONOTONE], deadline)


def _monotone(model, columns, deadline):
    """Return what is proved of f along each column of numbers, until the time is over."""
    found, has_names = [], model.feature_names_in_ is not None
    for k, column in enumerate(columns):
        if time_left(deadline) <= 0:
            return [*found, [f"where {len(columns) - k} more columns rise", "no time was left"]]
        seconds = limit_of_next(deadline, len(columns) - k).get("time_limit")
        answer = is_monotone(
            model, column.name if has_names else column.place, None, None, seconds, None
        )
        words = {1: "never falls", -1: "never rises", None: "may rise and fall"}[answer.sign]
        answers = {
            "proved": f"f {words}: proved",
            "refuted": "f rises and falls: two pairs of rows show it",
            "open": "open: nothing was shown in the time",
        }
        found.append([f"where {column.name} rises", answers[answer.status]])
    return found


def _labels(model):
    """Return the outputs as `of_output` takes them."""
    return list(range(len(model.coef))) if model.classes is None else model.classes.tolist()


def _ends(interval):
    """Return an interval in words, with its ends rounded outwards."""
    ends = zip(interval, (ROUND_FLOOR, ROUND_CEILING), strict=True)
    low, high = (float(Context(DIGITS, way).create_decimal_from_float(end)) for end, way in ends)
    return f"between {low:.{DIGITS}g} and {high:.{DIGITS}g}"
