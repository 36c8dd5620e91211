"""All that a page shows, as data."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import __version__
from ..expansion.base import within
from ..expansion.outputs import (
    describe_limits,
    describe_task,
    function_names,
    held_out_error,
    quantile_levels,
    unit_of,
)
from ..expansion.terms import column_names, columns_of_encodings
from ..explain.evaluate import column_of, decision_values, read_sample, subsample, to_dense
from ..export.c import to_c
from ..export.formula import formula
from ..export.written import WrittenModel
from ..losses import PROBABILISTIC
from .columns import columns_of, made_rows
from .effects import LEAST, MOST_CURVES, MOST_MAPS, EffectRows
from .errors import MOST_COLUMNS, check_y, errors
from .proofs import proved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..expansion import Expansion
    from .columns import PageColumn

# The most rows that are looked at, and the most numbers of theirs.
MOST_ROWS = 10_000
MOST_NUMBERS = 5_000_000
# The most rows over which the worth of terms is a mean.
ROWS_OF_TERMS = 500
# The parts of the range of a column whose rows are counted.
STEPS = 24
# The digits of numbers that are drawn.
DIGITS = 6
# The most columns of a term that are named.
MOST_NAMED = 4
# The most characters of the source in a language that a page has.
LONGEST_SOURCE = 150_000


@dataclass(frozen=True, eq=False)
class Band:
    """An interval about a prediction, [prediction - half, prediction + half] within limits.

    half : half its width where the scale is 1
    scale : a model of the logarithm of the scale, between `low` and `high`; None: the scale is 1
    words : what the interval is
    """

    half: float
    limits: tuple[float, float]
    words: str
    scale: Expansion | None = None
    low: float = 0.0
    high: float = 0.0


def content(
    model: Expansion,
    X: MatrixLike | None,
    y: ArrayLike | None,
    title: str,
    time_limit: float | None,
    band: Band | None,
) -> dict[str, Any]:
    """Return all that the page shows, as JSON has it."""
    numbers, y = (None, None) if X is None else _drawn(model, X, y)
    columns = columns_of(model, numbers)
    rows = _rows_of_effects(model, columns, numbers)
    effects = EffectRows(model, rows)
    worth = effects.worth_of_columns()
    order = sorted(columns, key=lambda column: -worth[column.place].sum())
    if band is not None and band.scale is not None:
        own = {column.place for column in columns}
        order += [each for each in columns_of(band.scale, numbers) if each.place not in own]
    return {
        "title": title,
        "version": __version__,
        "what": _what(model, columns, numbers is not None, effects.n_rows, len(rows)),
        "hasRows": numbers is not None,
        "unit": unit_of(model),
        "outputs": _outputs(model),
        "kind": _kind(model),
        "encodings": columns_of_encodings(model.features).tolist(),
        "columns": [
            _column(each, worth, numbers if k < MOST_CURVES else None)
            for k, each in enumerate(order)
        ],
        "terms": _terms(model, effects, rows, numbers is not None),
        "curves": [
            _short({"column": k, **effects.curve(column)})
            for k, column in enumerate(order[:MOST_CURVES])
            if column in columns
        ],
        "maps": _maps(model, effects, order[:MOST_CURVES]),
        "errors": None if y is None else _errors(model, numbers, y, order[:MOST_COLUMNS]),
        "proved": proved(model, _outputs(model), order, time_limit),
        "band": None if band is None else _band(band),
        "sources": _sources(model),
    }


def _drawn(model, X, y):
    """Return (rows of X as numbers, the targets of these or None): all rows, or some drawn."""
    most = max(2, min(MOST_ROWS, MOST_NUMBERS // model.n_features_in))
    numbers, drawn, n_rows = read_sample(model, X, most, np.random.default_rng(0))
    if n_rows < 2:
        raise ValueError(f"X must have at least two rows, got {n_rows}")
    return numbers, None if y is None else check_y(model, y, n_rows)[drawn]


def _rows_of_effects(model, columns, numbers):
    """Return the rows over which effects and the worth of terms are means, dense: of X, or made."""
    if numbers is None:
        return made_rows(model, columns, ROWS_OF_TERMS)
    return to_dense(subsample(numbers, ROWS_OF_TERMS, np.random.default_rng(0)))


def _short(value):
    """Return nested values as JSON has them, numbers with few digits, None for those that are not
    finite."""
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return _short(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_short(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if isfinite(value) else None
    return value


def _exact(value):
    """Return a number with all digits, None for one that is not finite."""
    return float(value) if isfinite(value) else None


def _what(model, columns, has_rows, n_of_effects, n_of_terms):
    """Return the lines that say what the model is, [[name, words]], and over how many rows effects
    and the worth of terms are means."""
    lines = [
        ["task", describe_task(model)],
        ["loss", model.loss],
        ["terms", f"{len(model.features):,}, of {model.size:,} numbers"],
        ["columns used", f"{len(columns)} of {model.n_features_in}"],
    ]
    if error := held_out_error(model):
        lines.append([f"{error[0]} of held-out rows, told by the fit", f"{error[1]:.4g}"])
    if model.info.edits:
        lines.append(["edited since the fit", "; ".join(model.info.edits)])
    if limits := describe_limits(model):
        lines.append(["limits", limits])
    rows = "rows" if has_rows else "rows, made of what the model knows of each column by itself"
    lines.append(["effects are means over", f"{n_of_effects} {rows}"])
    lines.append(["shares and worth of terms are those over", f"{n_of_terms} {rows}"])
    return lines


def _kind(model):
    """Return how predictions are made of f: "value", "probability" or "label"."""
    if model.classes is None:
        return "value"
    return "probability" if model.loss in PROBABILISTIC else "label"


def _outputs(model):
    """Return the names of the outputs."""
    if model.classes is None:
        if levels := quantile_levels(model):
            return [f"quantile {level:g}" for level in levels]
        return ["the prediction"] if model.coef.ndim == 1 else function_names(model)
    if model.thresholds:
        return ["the class"]
    labels = [str(label) for label in model.classes.tolist()]
    return labels[-1:] if model.coef.ndim == 1 else labels


def _column(column: PageColumn, worth: np.ndarray, numbers: Any) -> dict[str, Any]:
    """Return what the page needs of a column."""
    levels = None
    if column.levels is not None:
        levels = [level if isinstance(level, str) else float(level) for level in column.levels]
    low, high = column.quantiles[[0, -1]].tolist()
    return {
        "at": column.place,
        "name": column.name,
        "levels": levels,
        "names": levels and [str(level) for level in column.levels],
        "clock": column.clock and column.clock.kind,
        "values": None if column.values is None else column.values.tolist(),
        "ends": [_exact(low), _exact(high if high > low else low + 1)],
        "marks": list(map(_exact, column.marks)) if levels is None else [],
        "typical": _exact(column.typical),
        "mayMiss": column.may_miss,
        "worth": _short(worth[column.place]),
        "steps": None if numbers is None or levels is not None else _steps(column, numbers),
        "shares": None if levels is None or numbers is None else _short(column.shares),
    }


def _steps(column, numbers):
    """Return how many rows there are in equal parts of the range, over the most."""
    x = column_of(numbers, column.place)
    low, high = column.drawn_ends
    if not high > low:
        return None
    count = np.histogram(x[~np.isnan(x)], np.linspace(low, high, STEPS + 1))[0]
    return _short(count / max(count.max(), 1))


def _terms(model, effects, rows, is_of_rows):
    """Return what the page says of each term, in the order of the exported ones."""
    written = WrittenModel.from_model(model)
    names, encoder = column_names(written.model), written.model.features.encoder
    worth, share = effects.of_terms(rows)
    terms = []
    for k, term in enumerate(written.terms):
        condition = term.condition(names, encoder)
        terms.append(
            {
                "words": condition or term.title(names, MOST_NAMED, encoder),
                "isRule": condition is not None,
                "isLinear": term.is_linear,
                "columns": term.columns.tolist(),
                "size": _short(written.sizes[:, k]),
                "worth": _short(worth[:, term.position]),
                "share": _short(float(share[term.position])) if condition and is_of_rows else None,
            }
        )
    return terms


def _maps(model, effects, order):
    """Return the maps of the pairs that matter most."""
    seen = model.features.columns_seen
    maps, columns = [], [each for each in order if seen[each.place]]
    place = {each.place: k for k, each in enumerate(order)}
    largest = 0.0
    for one, two in effects.pairs(columns)[: 2 * MOST_MAPS]:
        found = effects.map(columns[one], columns[two])
        size = float(np.abs(found["value"]).mean(axis=(1, 2)).max())
        largest = max(largest, size)
        at = [place[columns[k].place] for k in (one, two)]
        maps.append({"columns": at, "size": size, **found})
    maps = [each for each in maps if each["size"] > LEAST * largest]
    return _short(sorted(maps, key=lambda each: -each["size"])[:MOST_MAPS])


def _errors(model, numbers, y, columns):
    """Return the errors over rows, whose f is within the limits of the model."""
    f = decision_values(model, numbers)
    f = within(*model.limits, f) if model.has_limits else f
    f = f[0] if model.classes is None and model.coef.ndim == 1 else f
    return _short(errors(model, f, y, numbers, columns))


def _band(band):
    """Return what the page needs of an interval."""
    return {
        "half": float(band.half),
        "limits": [_exact(end) for end in band.limits],
        "words": band.words,
        "ends": None if band.scale is None else [float(band.low), float(band.high)],
    }


def _sources(model) -> Sequence[dict[str, str]]:
    """Return the model in some languages: {name, call, text}, or why there is no text."""
    calls = {
        "formula": ("model.formula()", lambda: formula(model, "text", "auto", None)),
        "SQL": ("model.to_sql()", lambda: formula(model, "sql", None, None)),
        "C": ("model.to_c()", lambda: to_c(model)),
        "Python": ('model.formula("python")', lambda: formula(model, "python", None, None)),
        "JavaScript": ('model.formula("javascript")', lambda: ""),
    }
    sources = []
    for name, (call, write) in calls.items():
        try:
            text, why = str(write()), ""
        except ValueError as error:  # what the language cannot say
            text, why = "", str(error)
        if len(text) > LONGEST_SOURCE:
            text, why = "", f"{len(text):,} characters: {call} writes them"
        sources.append({"name": name, "call": call, "text": text, "why": why})
    return sources
