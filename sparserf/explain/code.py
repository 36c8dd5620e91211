"""A model as code that runs elsewhere: Python on NumPy, and SQL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..losses import PROBABILISTIC
from .outputs import sides
from .pieces import joined, powers, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pieces import Pieces

HELPERS = '''

def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    size = np.maximum(np.abs(u), reach)
    return np.where(size > reach, np.sign(u) * reach * (2 - reach / size), u)


def _squeezed(u):
    u = np.clip(u, -1e100, 1e100)
    return u / np.sqrt(1 + (u / 3) ** 2)


def _sign(z):
    return np.where(z >= 0, 1.0, -1.0)


def _cells(cells, values, other, missing):
    """What each cell of a category stands for."""
    def value(cell):
        is_missing = cell is None or (not isinstance(cell, str) and str(cell) in ("nan", "NaT", "<NA>"))
        return missing if is_missing else values.get(cell, other)
    return np.array([value(cell) for cell in cells], float)
'''
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
SOFTMAX = '''

def predict_proba(X):
    """Of each class."""
    f = decision_function(X)
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
'''
# Entries of a sum that stand side by side in SQL; of more, sums of sums, since parsers bear so much depth.
MOST_IN_A_ROW = 64
LAST = "\0"  # no name holds it


def exact(digits: int | None, value: float) -> str:
    """A float literal."""
    text = repr(float(value)) if digits is None else f"{value:.{digits}g}"
    return text if any(c in text for c in ".e") else text + ".0"


def python(pieces: Pieces, digits: int | None) -> str:
    """Source of a module."""
    number = partial(exact, digits)
    names = {v: f"u{v}" for v in pieces.views} if pieces.views is not None else {j: f"x{j}" for j in pieces.columns}
    body = [_column(pieces, j) for j in pieces.columns]
    for v, view in (pieces.views or {}).items():
        lines = _view_lines(view, f"x{view.column}", f"u{v}", number, pieces.is_category(view.column))
        body += [f"u{v} = {line}" for line in lines]
    envelopes = {gamma: f"envelope{i}" for i, gamma in enumerate(pieces.gammas)}
    for gamma, seen in pieces.gammas.items():
        body.append(f"{envelopes[gamma]} = np.exp(-{number(gamma)} * ({' + '.join(f'{names[v]}**2' for v in seen.tolist())}))")
    b, n = [number(value) for value in pieces.intercept], f"len(x{pieces.columns[0]})"
    several = pieces.model.coef.ndim > 1
    body.append(f"f = np.full(({n}, {len(b)}), [{', '.join(b)}])" if several else f"f = np.full({n}, {b[0]})")
    for term, c in zip(pieces.terms, pieces.coef.T, strict=True):
        phi = _phi(term, names, envelopes, number, PYTHON)
        c = [number(value) for value in c]
        body.append(f"f += np.multiply.outer({phi}, [{', '.join(c)}])" if several else f"f += {c[0]} * {phi}")
    lines = [f'"""{_says(pieces)}"""', "", "import numpy as np", HELPERS, "", "def decision_function(X):"]
    lines += [*("    " + line for line in body), "    return f", "", "", "def predict(X):", *_labels(pieces.model)]
    source = "\n".join(lines) + "\n"
    if pieces.model.loss not in PROBABILISTIC:
        return source
    return source + (SOFTMAX if several and pieces.model.link == "softmax" else PROBABILITIES)


def _says(pieces):
    left = f", without its {pieces.left_out} smallest terms" if pieces.left_out else ""
    return f"{pieces.model!r}{left}, as code."


def _column(pieces, j):
    cell = f"X[{str(pieces.names[j])!r}]" if pieces.model.feature_names_in_ is not None else f"np.asarray(X)[:, {j}]"
    return f"x{j} = np.asarray({cell}, dtype=object)" if pieces.is_category(j) else f"x{j} = np.asarray({cell}, dtype=float)"


def _view_lines(view, x, u, number, is_category):
    """Expressions for a view in NumPy, each of what the one before made."""
    if view.is_it is not None:
        kind, level = view.is_it
        high, low = number(view.high), number(view.low)
        if kind == "level":
            return [f"_cells({x}, {{{level!r}: {high}}}, {low}, {low})"]
        if is_category:
            return [f"_cells({x}, {{}}, {low}, {high})"]
        is_it = {"missing": f"np.isnan({x})", "present": f"{x} != 0"}[kind]
        return [f"np.where({is_it}, {high}, {low})"]
    if view.table is not None:
        values = ", ".join(f"{level!r}: {number(value)}" for level, value in view.table[0].items())
        return [f"_cells({x}, {{{values}}}, {number(view.table[1])}, {number(view.fill or 0.0)})"]
    r = x
    if view.knots is not None:
        r = f"np.interp({x}, {[float(k) for k in view.knots[0]]}, {[float(s) for s in view.knots[1]]})"
    lines = [f"({r} - {number(view.center)}) / {number(view.unit)}" if view.unit else f"0.0 * {x}"]
    lines += [f"_reached({u}, {number(view.reach)})"] if view.reach is not None else []
    lines += [f"_squeezed({u})"] if view.squeezed else []
    return lines + ([f"np.where(np.isnan({x}), {number(view.fill)}, {u})"] if view.fill is not None else [])


def _labels(model):
    if model.classes is None:
        return [f"    return {MEANS[model.link].format('decision_function(X)')}"]
    of_row = "np.argmax(f, axis=1)" if model.coef.ndim > 1 else "(f > 0).astype(int)"
    return ["    f = decision_function(X)", f"    return np.array({model.classes.tolist()!r})[{of_row}]"]


MEANS = {"identity": "{}", "log": "np.exp({})"}
PYTHON = {"cos": "np.cos({})", "sin": "np.sin({})", "tanh": "np.tanh({})", "relu": "np.maximum({}, 0.0)", "sign": "_sign({})",
          "identity": "({})"}  # fmt: skip
SQL = {"cos": "COS({})", "sin": "SIN({})", "tanh": "TANH({})", "relu": "(CASE WHEN {0} > 0 THEN {0} ELSE 0.0 END)",
       "sign": "(CASE WHEN {} >= 0 THEN 1.0 ELSE -1.0 END)", "identity": "({})"}  # fmt: skip


def _phi(term, names, envelopes, number, language):
    """A term less its gain."""
    if term.gamma is not None:
        factors = [names[v] for v, p in powers(term) for _ in range(p)]
        return " * ".join([envelopes[term.gamma], *factors])
    parts = [signed(w, f"{number(abs(w))} * {names[v]}") for v, w in zip(term.views.tolist(), term.weights, strict=True)]
    if term.offset or not parts:
        parts.append(signed(term.offset, number(abs(term.offset))))
    if term.activation == "identity" and len(parts) == 1 and term.weights[0] == 1:
        return names[int(term.views[0])]
    return language[term.activation].format(balanced(parts) if language is SQL else joined(parts))


def balanced(parts: Sequence[str]) -> str:
    """A sum whose depth is small."""
    if len(parts) <= MOST_IN_A_ROW:
        return joined(parts)
    size = max(MOST_IN_A_ROW, -(-len(parts) // MOST_IN_A_ROW))
    return balanced([f"+ ({balanced(parts[k : k + size])})" for k in range(0, len(parts), size)])


def sql(pieces: Pieces, digits: int | None) -> str:
    """A SELECT, from SELECTs that make the views step by step."""
    number = partial(exact, digits)
    quoted = {j: '"' + str(pieces.names[j]).replace('"', '""') + '"' for j in pieces.columns}
    names, steps = (quoted, []) if pieces.views is None else _view_steps(pieces.views, quoted, number)
    envelopes = {gamma: f"envelope{i}" for i, gamma in enumerate(pieces.gammas)}
    squares = {gamma: balanced([f"+ {names[v]} * {names[v]}" for v in seen.tolist()]) for gamma, seen in pieces.gammas.items()}
    steps.append([f"EXP(-{number(gamma)} * ({square})) AS {envelopes[gamma]}" for gamma, square in squares.items()])
    source = "data"
    for step in steps:
        source = "(\nSELECT *,\n  " + ",\n  ".join(step) + f"\nFROM {source}) AS step" if step else source
    said = f"-- {_says(pieces)}\n" if pieces.left_out else ""
    said += _classes_said(pieces.model)
    phis = [_phi(term, names, envelopes, number, SQL) for term in pieces.terms]
    outputs = [_output(b, c, phis, number) for b, c in zip(pieces.intercept, pieces.coef, strict=True)]
    outputs = [f"EXP({output})" for output in outputs] if pieces.model.link == "log" else outputs
    aliases = ["prediction"] if pieces.model.coef.ndim == 1 else [f"prediction_{k}" for k in range(len(outputs))]
    return said + "SELECT " + ",\n  ".join(map("{} AS {}".format, outputs, aliases)) + f"\nFROM {source}"


def _classes_said(model):
    """Which class a prediction speaks for, as a comment."""
    if model.classes is None:
        return ""
    if model.coef.ndim > 1:
        labels = ", ".join(f"prediction_{k}: {label!r}" for k, label in enumerate(model.classes.tolist()))
        return f"-- {labels}; the largest tells the class\n"
    one, other = sides(model)
    return f"-- prediction > 0: {other!r}, else {one!r}\n"


def _output(b, c, phis, number):
    terms = [signed(a, f"{number(abs(a))} * {phi}") for a, phi in zip(c, phis, strict=True)]
    return balanced([signed(b, number(abs(b))), *terms])


def _view_steps(views, quoted, number):
    """({view: its name in the end}, the steps that make views): in units, in reach, squeezed, filled."""
    steps, names = [[] for _ in range(4)], {}
    for v, view in views.items():
        lines = _view_sql(view, quoted[view.column], number)
        for k, line in lines.items():
            names[v] = f"u{v}" + "rsf"[:k]
            steps[k].append(f"{line.replace(LAST, _last(v, lines, k))} AS {names[v]}")
    return names, steps


def _last(v, lines, k):
    """The name of what the step before step k made of a view."""
    before = [i for i in lines if i < k]
    return f"u{v}" + "rsf"[: before[-1]] if before else ""


def _view_sql(view, x, number):
    """{step: expression of LAST, what the last one made}."""
    if view.is_it is not None:
        kind, level = view.is_it
        is_it = {"level": f"{x} = {_literal(level)}", "missing": f"{x} IS NULL", "present": f"{x} <> 0"}[kind]
        return {0: f"CASE WHEN {is_it} THEN {number(view.high)} ELSE {number(view.low)} END"}
    if view.table is not None:
        cases = " ".join(f"WHEN {x} = {_literal(level)} THEN {number(value)}" for level, value in view.table[0].items())
        return {0: f"CASE WHEN {x} IS NULL THEN {number(view.fill or 0.0)} {cases} ELSE {number(view.table[1])} END"}
    r = x if view.knots is None else _between(x, *view.knots, number)
    lines = {0: f"({r} - {number(view.center)}) / {number(view.unit)}" if view.unit else f"0.0 * {x}"}
    if view.reach is not None:
        twice, square = number(2 * view.reach), number(view.reach**2)
        lines[1] = (f"CASE WHEN {LAST} > {number(view.reach)} THEN {twice} - {square} / {LAST} "
                    f"WHEN {LAST} < -{number(view.reach)} THEN -{twice} - {square} / {LAST} ELSE {LAST} END")  # fmt: skip
    if view.squeezed:
        lines[2] = f"{LAST} / SQRT(1.0 + {LAST} * {LAST} / 9.0)"
    if view.fill is not None:
        lines[3] = f"COALESCE({LAST}, {number(view.fill)})"
    return lines


def _between(x, knots, scores, number):
    """Linear between knots, constant beyond the ends."""
    cases = [f"WHEN {x} <= {number(knots[0])} THEN {number(scores[0])}"]
    for k in range(1, len(knots)):
        slope = number((scores[k] - scores[k - 1]) / (knots[k] - knots[k - 1]))
        low, high, score = number(knots[k - 1]), number(knots[k]), number(scores[k - 1])
        cases.append(f"WHEN {x} < {high} THEN {score} + ({x} - {low}) * {slope}")
    return f"CASE WHEN {x} IS NULL THEN NULL {' '.join(cases)} ELSE {number(scores[-1])} END"


def _literal(level):
    if isinstance(level, str):
        return "'" + level.replace("'", "''") + "'"
    return repr(level) if not isinstance(level, (bool, np.bool_)) else str(int(level))
