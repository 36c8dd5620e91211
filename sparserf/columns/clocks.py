"""Dates, durations and times of day as numbers of days, and the `Clock` of a column of them.

A date is the number of days since 1970-01-01, a fraction where it has a time; a duration is its
days, a time of day the days since midnight. A date with a time zone is read as the clock on the
wall there shows it, so that noon is noon in summer and winter. A period of pandas is read as its
start.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Final, Literal, NamedTuple

import numpy as np

# The number of each of NumPy's units in a day.
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400} | {
    f"{p}s": 86400 * 1000**k for k, p in enumerate("mun", 1)
}
# The kinds of columns of times, as errors and files name them.
DATES: Final = "dates"
DURATIONS: Final = "durations"
TIMES: Final = "times of day"
KINDS_OF_CLOCKS: Final = (DATES, DURATIONS, TIMES)
EPOCH = dt.datetime(1970, 1, 1)
WEEKDAYS = "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"
MONTHS = "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"


class Clock(NamedTuple):
    """The meaning of the numbers of days in a column of times.

    kind : "dates", "durations" or "times of day"
    zone : the time zone of dates that have one, else None
    """

    kind: Literal["dates", "durations", "times of day"]
    zone: str | None = None

    def __str__(self) -> str:
        if self.zone:
            return f"{self.kind} in the time zone {self.zone}"
        return f"{self.kind} without a time zone" if self.kind == DATES else self.kind

    @property
    def unit(self) -> str:
        """The meaning of a number, in words."""
        if self.kind == DATES:
            return "days since 1970-01-01" + (f", by the clock in {self.zone}" if self.zone else "")
        return "days" if self.kind == DURATIONS else "days since midnight"

    def cell(self, days: float) -> Any:
        """Return the datetime, timedelta or time of a number, to a microsecond.

        Where there is none, return the number.
        """
        try:
            since = dt.timedelta(days=days)
            if self.kind == DURATIONS:
                return since
            if self.kind == TIMES:
                return (EPOCH + since % dt.timedelta(1)).time()
            at = EPOCH + since
        except OverflowError:
            return float(days)
        zone = self.zone and find_zone(self.zone)
        return at.replace(tzinfo=zone) if zone else at

    @staticmethod
    def to_a_microsecond(days: float) -> float:
        """Return a number of days, rounded to a microsecond as `cell` rounds it."""
        whole, rest = divmod(round(days * PER_DAY["us"]), PER_DAY["us"])
        return whole + rest / PER_DAY["us"]

    def tick(self, days: float, span: float) -> str:
        """Return the label of a number on an axis of `span` days: a date, a time, or days."""
        cell = self.cell(days)
        if self.kind == DURATIONS or isinstance(cell, float):
            return f"{days:g} d"
        return f"{cell:%H:%M}" if self.kind == TIMES or span < 2 else cell.date().isoformat()

    def days(self, where: str, cell: Any) -> float:
        """Return the number of a date, duration or time of day.

        Raise a ValueError if the column holds others.
        """
        moments = times_of_cells(where, [cell], self.zone)
        if moments.clock != self:
            raise ValueError(f"{where} must hold {self}, got {moments.clock}: {cell!r}")
        return float(moments.days[0])


class Times(NamedTuple):
    """The cells of a column of times.

    days : ndarray of float64, NaN where missing
    clock : what the numbers are
    """

    days: np.ndarray
    clock: Clock


def moment_in(period: str, days: float) -> str:
    """Return in words the moment of a "day", a "week" or a "year", given in days after its start.

    Weeks start as 1970 did, on a Thursday. Years have no February 29, and moments of them are days.
    """
    at = EPOCH + dt.timedelta(minutes=round(days * 24 * 60))
    if period == "year":
        return f"{MONTHS[at.month - 1]} {at.day}"
    weekday = f"{WEEKDAYS[at.weekday()]} " if period == "week" else ""
    return f"{weekday}{at:%H:%M}"


def arcs(turn: float, asked: list[tuple[float, float, float]]) -> list[tuple[float, float]] | None:
    """Return the parts (start, end) of a period in which cosines of an angle lie in intervals, in
    days since the start of the period; None where they do in all of it.

    A part that goes on into the next period ends after the end of this one.

    turn : the angle by which the cosines turn in a day
    asked : (days since the start of the period at which the angle is 0, low, high) of each cosine
    """
    period, ends = 2 * np.pi / turn, [0.0]
    for level, low, high in asked:
        for end in (low, high):
            if abs(end) < 1:
                away = np.arccos(end) / turn
                ends += [(level - away) % period, (level + away) % period]
    ends = np.unique(ends)
    starts, stops = ends, np.append(ends[1:], period)
    middle, holds = (starts + stops) / 2, np.ones(len(ends), bool)
    for level, low, high in asked:
        cosine = np.cos(turn * (middle - level))
        holds &= (low < cosine) & (cosine <= high)
    if holds.all():
        return None
    parts: list[tuple[float, float]] = []
    for start, stop in zip(starts[holds].tolist(), stops[holds].tolist(), strict=True):
        if parts and parts[-1][1] == start:
            parts[-1] = parts[-1][0], stop
        else:
            parts.append((start, stop))
    if len(parts) > 1 and parts[0][0] == 0 and parts[-1][1] == period:
        parts = [*parts[1:-1], (parts[-1][0], period + parts[0][1])]
    return parts


def kind_of_times(kind: type) -> str | None:
    """Return 'dates', 'durations' or 'times of day' for a type of cells, None for other types."""
    if issubclass(kind, (dt.date, np.datetime64)) or (
        kind.__name__ == "Period" and hasattr(kind, "asfreq")
    ):
        return DATES
    if issubclass(kind, (dt.timedelta, np.timedelta64)):
        return DURATIONS
    return TIMES if issubclass(kind, dt.time) else None


def times_of_stamps(where: str, stamps: np.ndarray, zone: str | None = None) -> Times:
    """Return the moments of an array of the dtype datetime64 or timedelta64.

    The same moment in another unit is the same number, bit for bit.
    """
    code = stamps.dtype.kind
    clock = Clock(DATES, zone) if code == "M" else Clock(DURATIONS)
    unit, _ = np.datetime_data(stamps.dtype)
    missing = np.isnat(stamps)
    if unit == "generic":
        return Times(np.full(len(stamps), np.nan), clock)
    if code == "m" and unit in "YM" and not missing.all():
        raise TypeError(
            f"{where} holds durations in months or years, which have no length: make them days"
        )
    coarse, fine = unit in ("Y", "M", "W"), unit in ("ps", "fs", "as")
    unit = "D" if coarse else "ns" if fine else unit
    whole, rest = np.divmod(stamps.astype(f"{code}8[{unit}]").view(np.int64), PER_DAY[unit])
    return Times(np.where(missing, np.nan, whole + rest / PER_DAY[unit]), clock)


def times_of_cells(where: str, cells: list[Any], zone: str | None = None) -> Times:
    """Return the moments of a list of dates, durations or times of day, None if missing.

    zone : the time zone in which dates with one are read; None: their own, which must be one
    """
    present = [cell for cell in cells if cell is not None]
    kinds = {kind_of_times(type(cell)) for cell in present}
    if len(kinds) != 1 or None in kinds:
        held, *others = sorted(kinds - {None})
        no_times = (type(cell).__name__ for cell in present if not kind_of_times(type(cell)))
        other = next(no_times, None) or others[0]
        raise TypeError(f"{where} holds {held} and {other}: leave it out, or make it one of them")
    kind = kinds.pop()
    zones = {_zone_of(cell) for cell in present} - ({None} if kind == DURATIONS else set())
    if kind == TIMES and zones - {None}:
        raise ValueError(
            f"{where} holds times of day with a time zone: make them times without one"
        )
    if len(zones) > 1:
        named = ", ".join(sorted("none" if each is None else repr(each) for each in zones))
        raise ValueError(f"{where} must have one time zone, got {named}: bring all dates to one")
    own = zones.pop() if zones else None
    if own is not None and zone not in (None, own):
        there = find_zone(zone)
        if there is None:
            raise ValueError(
                f"{where} has the time zone {own!r}, and had {zone!r} when the model was fitted: "
                "convert it"
            )
        cells, own = [None if cell is None else cell.astimezone(there) for cell in cells], zone
    stamps = np.array([_stamp(cell) for cell in cells], f"{'M' if kind == DATES else 'm'}8[us]")
    return Times(times_of_stamps(where, stamps, own).days, Clock(kind, own))


def times_of_series(where: str, series: Any, zone: str | None = None) -> Times | None:
    """Return the moments of a Series of narwhals, or None if its dtype is none of times.

    zone : as in `times_of_cells`
    """
    import narwhals as nw

    dtype = series.dtype
    if dtype == nw.Datetime:
        own = dtype.time_zone
        if own is not None:
            if zone not in (None, own):
                try:
                    series, own = series.dt.convert_time_zone(zone), zone
                except Exception as error:  # the library of the frame does not know the zone
                    was = f"and had {zone!r} when the model was fitted: convert it"
                    raise ValueError(f"{where} has the time zone {own!r}, {was}") from error
            series = series.dt.replace_time_zone(None)
        return times_of_stamps(where, _stamps_of_series(series), own)
    if dtype == nw.Duration:
        return times_of_stamps(where, _stamps_of_series(series))
    if dtype in (nw.Date, nw.Time):
        cells = series.to_numpy()
        if cells.dtype.kind == "M":
            return times_of_stamps(where, cells)
        listed = [
            cell if kind_of_times(type(cell)) and cell == cell else None for cell in cells.tolist()
        ]
        if all(cell is None for cell in listed):
            return Times(np.full(len(listed), np.nan), Clock(DATES if dtype == nw.Date else TIMES))
        return times_of_cells(where, listed)
    native = series.to_native()
    if type(getattr(native, "dtype", None)).__name__ == "PeriodDtype":
        # a missing period is the least integer, as NumPy's NaT is
        ordinal = native.array.asfreq("us", "start").asi8
        return times_of_stamps(where, ordinal.view("M8[us]"))
    if str(getattr(native, "type", "")).startswith("date64"):
        return times_of_stamps(where, series.to_numpy())
    return None


def find_zone(name: str) -> dt.tzinfo | None:
    """Return a time zone by its name or by its distance from UTC, such as +02:00, or None."""
    from zoneinfo import ZoneInfo

    fixed = re.fullmatch(r"(?:UTC)?([+-])(\d\d):(\d\d)", name)
    if fixed:
        away = dt.timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return dt.timezone(-away if fixed[1] == "-" else away)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def _stamps_of_series(series):
    """Return a Series of datetimes without a zone, or of durations, as an array of NumPy."""
    stamps = series.to_numpy()
    if stamps.dtype.kind in "mM":
        return stamps
    return stamps.astype("M8[us]" if "Datetime" in str(series.dtype) else "m8[us]")


def _zone_of(cell):
    """Return the name of the time zone of a cell, None where it has none."""
    zone = getattr(cell, "tzinfo", None)
    if zone is None:
        return None
    return getattr(zone, "key", None) or getattr(zone, "zone", None) or str(zone)


def _stamp(cell):
    """Return a cell as NumPy reads it: a date by the clock of its zone, a time of day as the time
    since midnight."""
    if isinstance(cell, dt.time):
        return dt.timedelta(
            hours=cell.hour, minutes=cell.minute, seconds=cell.second, microseconds=cell.microsecond
        )
    if isinstance(cell, dt.datetime):
        return cell.replace(tzinfo=None)
    return (
        np.datetime64(cell.asfreq("us", "start").ordinal, "us") if hasattr(cell, "asfreq") else cell
    )
