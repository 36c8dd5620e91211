"""Times until events, the y of survival analysis, read from what users give: a structured array as
scikit-survival's, a data frame, or an array of two or three columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.checks import and_more, as_array, check_finite, check_length, is_real_type, real_rows
from .frames import is_frame, names_of_frame
from .targets import as_labels

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# What y must be, in errors.
FORMS = (
    "a structured array or a data frame of a time and a boolean event (or of columns named 'time' "
    "and 'event'), and perhaps a 'stratum', or an array of such columns"
)


class SurvivalTimes(NamedTuple):
    """Rows until an event, or until they are censored, (n_rows,) each.

    time : float64, at least 0
    event : whether the event was seen
    stratum : float64 or str labels; None: there is one
    """

    time: np.ndarray
    event: np.ndarray
    stratum: np.ndarray | None

    @property
    def array(self) -> np.ndarray:
        """The rows as a structured array, from which `read_times` reads the same."""
        columns = {"time": self.time, "event": self.event}
        if self.stratum is not None:
            columns["stratum"] = self.stratum
        array = np.empty(len(self.time), [(name, each.dtype) for name, each in columns.items()])
        for name, each in columns.items():
            array[name] = each
        return array


def has_fields(y: Any) -> bool:
    """Return whether y is a structured array, or a data frame of several columns."""
    return bool(getattr(getattr(y, "dtype", None), "names", None)) or (
        is_frame(y) and y.shape[1] > 1
    )


def read_times(y: ArrayLike, n_rows: int | None = None) -> SurvivalTimes:
    """Return y as times until events, checked.

    n_rows : how many rows there must be; None: any number
    """
    columns = _columns_of(y)
    n_rows = len(next(iter(columns.values()))) if n_rows is None else n_rows
    stratum = columns.pop("stratum", None)
    time, event = _time_and_event(columns)
    for each in (time, event, stratum):
        if each is not None:
            check_length("y", each, n_rows)
    time = real_rows("y", time, n_rows)
    if len(time) and time.min() < 0:
        raise ValueError(f"y must have times of at least 0, got {time.min()}")
    return SurvivalTimes(time, _as_events(event), None if stratum is None else _as_strata(stratum))


def _columns_of(y):
    """Return the columns of y by their names."""
    if isinstance(y, str):
        raise TypeError(f"y must be {FORMS}, got {y!r}")
    if is_frame(y):
        import narwhals as nw

        frame, names = nw.from_native(y, eager_only=True), names_of_frame(y)
        return {str(name): as_array("y", frame[:, k].to_numpy()) for k, name in enumerate(names)}
    y = as_array("y", y)
    if y.dtype.names:
        return {name: y[name] for name in y.dtype.names}
    if y.ndim != 2 or y.shape[1] not in (2, 3):
        raise ValueError(f"y must be {FORMS}, for loss='cox', got shape {y.shape} of {y.dtype}")
    return dict(zip(("time", "event", "stratum"), y.T, strict=False))


def _time_and_event(columns):
    """Return (the column of times, the column of events): the latter is boolean, or is called
    "event"."""
    if set(columns) == {"time", "event"}:
        return columns["time"], columns["event"]
    events = [name for name, column in columns.items() if column.dtype.kind == "b"]
    if len(columns) != 2 or len(events) != 1:
        about = ", ".join(f"{name!r} of {column.dtype}" for name, column in columns.items())
        raise ValueError(f"y must be {FORMS}, for loss='cox', got the columns {about}")
    (time,) = (column for name, column in columns.items() if name not in events)
    return time, columns[events[0]]


def _as_events(event):
    """Return events as booleans; numbers must be 0 or 1."""
    if event.dtype.kind == "O":
        wrong = [value for value in event if not is_real_type(type(value))]
        if wrong:
            raise TypeError(f"y must have events of booleans, or 0 and 1, got {wrong[0]!r}")
        event = event.astype(np.float64)
    if event.dtype.kind not in "fiub":
        raise TypeError(f"y must have events of booleans, or 0 and 1, got {event[0].item()!r}")
    if event.dtype.kind == "f":
        check_finite("y", event)
    wrong = np.flatnonzero((event != 0) & (event != 1))
    if len(wrong):
        raise ValueError(
            "y must have events of booleans, or 0 and 1, got "
            f"{event[wrong[0]].item()!r} in row {wrong[0]}{and_more(wrong)}"
        )
    return event != 0


def _as_strata(stratum):
    """Return strata as labels, numbers as float64."""
    labels = as_labels(stratum, "y")
    return labels.astype(np.float64) if labels.dtype.kind in "fiub" else labels.astype(str)
