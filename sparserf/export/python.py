"""A model as Python source that needs NumPy alone."""

from __future__ import annotations

from datetime import timezone
from typing import TYPE_CHECKING, ClassVar

from .._base.expressions import variable
from ..columns.clocks import find_zone
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from ..losses.ordinal import probability_weights
from .printer import Printer
from .written import heading

if TYPE_CHECKING:
    from .._base.expressions import Expression
    from .written import WrittenModel

# The functions of all sources.
HELPERS = '''

def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    size = np.maximum(np.abs(u), reach)
    return np.where(size > reach, np.sign(u) * reach * (2 - reach / size), u)


def _sign(z):
    return np.where(z >= 0, 1.0, -1.0)


def _cells(cells, values, other, missing, in_float32={}):
    """Return the value of each cell of a category; in_float32: by numbers rounded to float32."""
    def value(cell):
        is_text = isinstance(cell, str)
        is_missing = cell is None or (not is_text and str(cell) in ("nan", "NaT", "<NA>"))
        if is_missing or cell in values or not in_float32 or is_text:
            return missing if is_missing else values.get(cell, other)
        with np.errstate(over="ignore"):
            return in_float32.get(float(np.float32(cell)), other)
    return np.array([value(cell) for cell in cells], float)
'''
# The function that reads columns of times, and those with a time zone.
DAYS = '''
import datetime as _datetime
import zoneinfo as _zoneinfo


def _days(cells, zone=None):
    """Return days: dates since 1970-01-01, by the clock in the zone; times since midnight."""
    def stamp(cell):
        if cell is None or cell != cell or str(cell) in ("NaT", "<NA>"):
            return None
        if isinstance(cell, _datetime.time):
            return _datetime.timedelta(
                hours=cell.hour, minutes=cell.minute, seconds=cell.second,
                microseconds=cell.microsecond,
            )
        if hasattr(cell, "asfreq"):  # a period: its start
            return np.datetime64(cell.asfreq("us", "start").ordinal, "us")
        if isinstance(cell, _datetime.datetime):
            if (cell.tzinfo is None) != (zone is None):
                raise ValueError(f"the time zone must be {zone}, got {cell!r}")
            return (cell if zone is None else cell.astimezone(zone)).replace(tzinfo=None)
        return cell
    cells = cells.to_pylist() if hasattr(cells, "to_pylist") else list(cells)
    stamps = [stamp(cell) for cell in cells]
    is_length = any(isinstance(each, (_datetime.timedelta, np.timedelta64)) for each in stamps)
    if any(isinstance(each, (str, int, float)) for each in stamps):
        raise TypeError("dates, durations and times must not be strings or numbers")
    stamps = np.array(stamps, "m8[us]" if is_length else "M8[us]")
    whole, rest = np.divmod(stamps.astype(np.int64), 86_400_000_000)
    return np.where(np.isnat(stamps), np.nan, whole + rest / 86_400_000_000)
'''
# The functions of classifiers with probabilities: of classes one by one, in order, and together.
PROBABILITIES = '''

def predict_proba(X):
    """Of each class."""
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(-decision_function(X)))
    if p.ndim == 1:
        return np.stack([1 - p, p], axis=1)
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1 / p.shape[1])
'''
CUMULATIVE = '''

def predict_proba(X):
    """Of each class."""
    thresholds = {thresholds}
    f = decision_function(X)[:, None]
    with np.errstate(over="ignore"):
        up_to = 1 / (1 + np.exp(f - [*thresholds, np.inf]))
        above = 1 / (1 + np.exp([-np.inf, *thresholds] - f))
    return up_to * above * {weights}
'''
SOFTMAX = '''

def predict_proba(X):
    """Of each class."""
    f = decision_function(X)
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
'''


def source(written: WrittenModel, digits: int | None) -> str:
    """Return the source of a module with `decision_function`, `predict` and, where there are any,
    `predict_proba`.

    Variables are x3, column 3 of X, u5, encoding 5, envelope0, and f.
    """
    printer = PythonPrinter(digits, written)
    number = printer.literal
    body = [_read(written, j) for j in written.columns.tolist()]
    body += [f"u{v} = {printer(encoding)}" for v, encoding in (written.encodings or {}).items()]
    body += printer.envelopes("np.exp")
    has_several = written.model.coef.ndim > 1
    b, n = ", ".join(map(number, written.intercept)), f"len(x{written.columns[0]})"
    shape, b = (f"({n}, {len(written.intercept)})", f"[{b}]") if has_several else (n, b)
    body.append(f"f = np.full({shape}, {b})")
    for term, c in zip(written.terms, written.factors.T, strict=True):
        phi, coef = printer.in_brackets(term.expression), ", ".join(map(number, c))
        body.append(
            f"f += np.multiply.outer({phi}, [{coef}])" if has_several else f"f += {coef} * {phi}"
        )
    helpers = HELPERS + DAYS * bool(written.clocks)
    lines = [
        f'"""{heading(written)}"""',
        "",
        "import numpy as np",
        helpers,
        "",
        "def decision_function(X):",
    ]
    body.append(f"return {_within(written.model)}")
    lines += [
        *("    " + line for line in body),
        "",
        "",
        "def predict(X):",
        *_predict(written.model, printer),
    ]
    return "\n".join(lines) + "\n" + _predict_proba(written.model)


def _read(written, j):
    """Return the line that reads column j of X."""
    has_names = written.model.feature_names_in_ is not None
    cell = f"X[{str(written.names[j])!r}]" if has_names else f"np.asarray(X)[:, {j}]"
    if j in written.clocks:
        zone = written.clocks[j].zone
        return f"x{j} = _days({cell})" if zone is None else f"x{j} = _days({cell}, {_zone(zone)})"
    return f"x{j} = np.asarray({cell}, dtype={'object' if written.is_category(j) else 'float'})"


def _zone(name):
    """Return the expression of a time zone."""
    zone = find_zone(name)
    if zone is None:
        raise ValueError(f"language 'python' needs a time zone that Python knows, got {name!r}")
    if isinstance(zone, timezone):
        seconds = zone.utcoffset(None).total_seconds()
        return f"_datetime.timezone(_datetime.timedelta(seconds={seconds!r}))"
    return f"_zoneinfo.ZoneInfo({name!r})"


class PythonPrinter(Printer):
    """Writes expressions in NumPy."""

    templates: ClassVar[dict[str, str]] = {
        "cos": "np.cos({})",
        "sin": "np.sin({})",
        "tanh": "np.tanh({})",
        "exp": "np.exp({})",
        "absolute": "np.abs({})",
        "positive": "np.maximum({}, 0.0)",
        "sign": "_sign({})",
    }

    smaller: ClassVar[str] = "np.minimum({}, {})"
    interpolated: ClassVar[str] = "np.interp({}, {}, {})"
    where: ClassVar[str] = "np.where({}, {}, {})"
    is_missing: ClassVar[str] = "np.isnan({})"

    def flag(self, e: Expression) -> str:
        if not self.written.is_category(e.operands[0].column):
            return super().flag(e)
        return f"_cells({self(e.operands[0])}, {{}}, {self.literal(e.low)}, {self.literal(e.high)})"

    def table(self, e: Expression) -> str:
        value = {level: e.values.get(k, e.rest) for k, level in enumerate(e.levels)}
        listed = {e.levels[k]: number for k, number in e.values.items()}
        others = [level for level in e.levels if level not in listed]
        numbers = ", ".join(f"{level!r}: {self.literal(each)}" for level, each in listed.items())
        numbers = f"{{{numbers}}}"
        if others and e.rest != e.other:
            numbers = f"dict.fromkeys({others!r}, {self.literal(e.rest)}) | {numbers}"
        else:
            value = listed
        near = ", ".join(
            f"{each!r}: {self.literal(value[k])}" for k, each in e.in_float32.items() if k in value
        )
        cells = f"{self(e.operands[0])}, {numbers}, {self.literal(e.other)}, {self.literal(e.fill)}"
        return f"_cells({cells}, {{{near}}})" if near else f"_cells({cells})"


def _within(model):
    """Return the expression of f within the limits of the model."""
    if not model.has_limits:
        return "f"
    return f"np.clip(f, {model.lower!r}, {model.upper!r})"


def _predict(model, printer):
    """Return the lines of the function `predict`."""
    if model.classes is None:
        link = LINKS[model.link]
        if link.is_ascending and model.coef.ndim > 1:
            return ["    return np.sort(decision_function(X), axis=1)"]
        if link.is_identity:
            return ["    return decision_function(X)"]
        prediction = printer(link.prediction(variable("f")))
        return ["    f = decision_function(X)", f"    return {prediction}"]
    classes, cuts = model.cut_classes
    if model.coef.ndim > 1:
        index = "np.argmax(f, axis=1)"
    elif model.thresholds:
        index = f"np.searchsorted({list(cuts)!r}, f)"
    else:
        index = "(f > 0).astype(int)"
    return ["    f = decision_function(X)", f"    return np.array({classes.tolist()!r})[{index}]"]


def _predict_proba(model):
    """Return the function `predict_proba`; of a model without probabilities nothing."""
    if model.loss not in PROBABILISTIC:
        return ""
    if model.thresholds:
        weights = probability_weights(model.thresholds)
        return CUMULATIVE.format(thresholds=list(model.thresholds), weights=weights)
    return SOFTMAX if model.coef.ndim > 1 and model.link == "softmax" else PROBABILITIES
