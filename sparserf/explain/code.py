"""A model as source of Python on NumPy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..losses import PROBABILISTIC
from .pieces import joined, powers, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .pieces import Pieces
    from .terms import Term

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
        phi = phi_of(term, names, envelopes, number, PYTHON)
        c = [number(value) for value in c]
        body.append(f"f += np.multiply.outer({phi}, [{', '.join(c)}])" if several else f"f += {c[0]} * {phi}")
    lines = [f'"""{says(pieces)}"""', "", "import numpy as np", HELPERS, "", "def decision_function(X):"]
    lines += [*("    " + line for line in body), "    return f", "", "", "def predict(X):", *_labels(pieces.model)]
    source = "\n".join(lines) + "\n"
    if pieces.model.loss not in PROBABILISTIC:
        return source
    return source + (SOFTMAX if several and pieces.model.link == "softmax" else PROBABILITIES)


def says(pieces: Pieces) -> str:
    """What the code is of."""
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
        if view.known is not None:
            others, other = view.known
            values = f"dict.fromkeys({others!r}, {low}) | {{{level!r}: {high}}}"
            return [f"_cells({x}, {values}, {number(other)}, {number(view.fill)})"]
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

def phi_of(
    term: Term, names: dict[int, str], envelopes: dict[float, str], number: Callable[[float], str], functions: dict[str, str],
    summed: Callable[[Sequence[str]], str] = joined,
) -> str:  # fmt: skip
    """A term less its gain, of the names of views and envelopes; functions: how a language writes activations; summed: sums."""
    if term.gamma is not None:
        factors = [names[v] for v, p in powers(term) for _ in range(p)]
        return " * ".join([envelopes[term.gamma], *factors])
    parts = [signed(w, f"{number(abs(w))} * {names[v]}") for v, w in zip(term.views.tolist(), term.weights, strict=True)]
    if term.offset or not parts:
        parts.append(signed(term.offset, number(abs(term.offset))))
    if term.activation == "identity" and len(parts) == 1 and term.weights[0] == 1:
        return names[int(term.views[0])]
    return functions[term.activation].format(summed(parts))
