"""A model as a SELECT, in SQL that SQLite, DuckDB and PostgreSQL read alike.

One step makes doubles of the inputs, one their views of these, one the terms, and so on. A step is MATERIALIZED: engines that
put a subquery's expressions where its columns are used would compute each view again in every term.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import PROBABILISTIC
from .code import exact, phi_of, says
from .outputs import sides
from .pieces import joined, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pieces import Pieces

FUNCTIONS = {"cos": "COS({})", "sin": "SIN({})", "tanh": "TANH({})", "relu": "(CASE WHEN {0} > 0 THEN {0} ELSE 0.0 END)",
             "sign": "(CASE WHEN {} >= 0 THEN 1.0 ELSE -1.0 END)", "identity": "({})"}  # fmt: skip
DOUBLE = "CAST({} AS DOUBLE PRECISION)"
# Entries of a sum that stand side by side; of more, sums of sums, since parsers bear so much depth (SQLite 1,000).
MOST_IN_A_ROW = 64
# Columns that a step makes, and that it has: PostgreSQL bears 1,664, SQLite 2,000.
MOST_MADE, MOST_COLUMNS = 750, 1600
# Outputs that one CASE compares with each other.
MOST_COMPARED = 8
# e^-x of larger x is written as 0: PostgreSQL refuses what is below its smallest double.
FAR = 500.0
# What is quoted, or the name of a column of a step.
WORDS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\b[a-z]\d+\b""")


def sql(pieces: Pieces, digits: int | None, table: str | Sequence[str], keep: Sequence[str]) -> str:
    """`SparseModel.formula` of the language "sql"."""
    number = partial(exact, digits)
    source = ".".join(_identifiers("table", table.split(".") if isinstance(table, str) else table))
    kept = _identifiers("keep", keep)
    steps = [("inputs", {f"k{i}": name for i, name in enumerate(kept)} | {f"x{j}": _input(pieces, j) for j in pieces.columns})]
    names = {j: f"x{j}" for j in pieces.columns}
    if pieces.views is not None:
        names = {v: f"u{v}" for v in pieces.views}
        steps.append(("views", {f"u{v}": _view(view, f"x{view.column}", number) for v, view in pieces.views.items()}))
    envelopes = {gamma: f"e{i}" for i, gamma in enumerate(pieces.gammas)}
    squares = [balanced([f"+ {names[v]} * {names[v]}" for v in seen.tolist()]) for seen in pieces.gammas.values()]
    steps.append(("squares", {f"s{i}": f"({square})" for i, square in enumerate(squares)}))
    steps.append(("envelopes", {e: _power(f"-{number(gamma)} * s{i}", f"s{i} > {number(FAR / gamma)}")
                                for i, (gamma, e) in enumerate(envelopes.items())}))  # fmt: skip
    steps.append(("terms", {f"t{k}": phi_of(term, names, envelopes, number, FUNCTIONS, balanced)
                            for k, term in enumerate(pieces.terms)}))  # fmt: skip
    sums = [_sum(b, c, number) for b, c in zip(pieces.intercept, pieces.coef, strict=True)]
    made, answers = _answers(pieces.model, len(sums))
    steps.append(("outputs", {f"f{k}": f for k, f in enumerate(sums)}))
    said = f"-- {says(pieces)}\n" if pieces.left_out else ""
    return said + query(steps + made, {name: f"k{i}" for i, name in enumerate(kept)} | answers, source)


def _identifiers(argument, names):
    if isinstance(names, (str, bytes)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{argument} must be a sequence of names, got {names!r}")
    if not all(name and "\0" not in name for name in names) or (argument == "table" and not names):
        raise ValueError(f"{argument} must have names of SQL, not empty and without NUL, got {names!r}")
    return [quoted(name) for name in names]


def _input(pieces, j):
    name = quoted(str(pieces.names[j]))
    return name if pieces.is_category(j) else DOUBLE.format(name)


def _sum(b, c, number):
    return balanced([signed(b, number(abs(b))), *(signed(a, f"{number(abs(a))} * t{k}") for k, a in enumerate(c) if a)])


def balanced(parts: Sequence[str]) -> str:
    """A sum whose depth is small."""
    if len(parts) <= MOST_IN_A_ROW:
        return joined(parts)
    size = max(MOST_IN_A_ROW, -(-len(parts) // MOST_IN_A_ROW))
    return balanced([f"+ ({balanced(parts[k : k + size])})" for k in range(0, len(parts), size)])


def query(steps: Sequence[tuple[str, dict[str, str]]], answers: dict[str, str], table: str) -> str:
    """The SELECT of answers, {alias: expression}, from steps, (name, {column: expression}): the first reads the table, and each
    other the one before. Columns that are used once are written where they are used, and no step is made for these alone."""
    (first, inputs), *steps = steps
    made = []
    for k, (name, columns) in enumerate(steps):
        later = [columns for _, columns in steps[k + 1 :]] + [answers]
        uses = Counter(word for each in later for word in _words(each))
        several = [column for column in columns if uses[column] > 1][:MOST_MADE]
        once = {column: columns[column] for column in columns if column not in several}
        *others, answers = [_with(each, once) for each in later]
        steps[k + 1 :] = [(name, each) for (name, _), each in zip(steps[k + 1 :], others, strict=True)]
        made += [(name, {column: columns[column] for column in several})] if several else []
    if not made:
        return _select(_with(answers, inputs), table)
    said, source, there = [], table, {}
    for k, (name, columns) in enumerate(made := [(first, inputs), *made]):
        later = {word for each in [columns for _, columns in made[k + 1 :]] + [answers] for word in _words(each)}
        columns = {column: column for column in there if column in later} | columns
        if len(columns) > MOST_COLUMNS:
            raise ValueError(
                f"SQL engines bear some {MOST_COLUMNS:,} columns in a SELECT, and the model needs {len(columns):,}: "
                "make one of fewer terms with sparserf.prune"
            )
        name += "_" * (f'"{name}"' == table.rpartition(".")[2].lower())
        said.append(f"{name} AS MATERIALIZED (\n{_select(columns, source)}\n)")
        source, there = name, columns
    return f"WITH {', '.join(said)}\n{_select(answers, source)}"


def _words(columns):
    return [word for expression in columns.values() for word in WORDS.findall(expression)]


def _with(columns, written):
    """{alias: expression} with what is written for some columns in their place."""
    swap = partial(WORDS.sub, lambda word: written.get(word[0], word[0]))
    return {alias: swap(expression) for alias, expression in columns.items()} if written else columns


def _select(columns, source):
    parts = [column if column == expression else f"{expression} AS {column}" for column, expression in columns.items()]
    return "SELECT " + ",\n  ".join(parts) + f"\nFROM {source}"


def _answers(model, n_outputs):
    """(steps from the outputs f0, f1, ... on, {alias: expression}): what `predict` gives, and `predict_proba`."""
    f = [f"f{k}" for k in range(n_outputs)]
    if model.classes is None:
        aliases = ["prediction"] if model.coef.ndim == 1 else [f"prediction_{k}" for k in range(n_outputs)]
        values = [_power(each, f"{each} < -{FAR}") for each in f] if model.link == "log" else f
        return [], dict(zip(aliases, values, strict=True))
    if n_outputs > MOST_MADE:
        raise ValueError(f"language 'sql' is for up to {MOST_MADE} classes, the model has {n_outputs}")
    if model.coef.ndim == 1:
        one, other = sides(model)
        label = f"CASE WHEN f0 > 0 THEN {literal(other)} WHEN f0 <= 0 THEN {literal(one)} END"
        answers, steps, classes = [_logistic("f0") if model.loss in PROBABILISTIC else "f0"], [], [other]
    else:
        steps, largest = _largest(f)
        classes = model.classes.tolist()
        cases = " ".join(f"WHEN {each} = {largest} THEN {literal(label)}" for each, label in zip(f, classes, strict=True))
        label, answers = f"CASE {cases} END", f
        if model.loss in PROBABILISTIC:
            shares, answers = _shares(f, largest, model.link == "softmax")
            steps += shares
    kind = "probability" if model.loss in PROBABILISTIC else "decision"
    aliases = [quoted(f"{kind}_{label}") for label in classes]
    return steps, {"prediction": label} | dict(zip(aliases, answers, strict=True))


def _power(exponent, is_far):
    return f"CASE WHEN {is_far} THEN 0.0 ELSE EXP({exponent}) END"


def _logistic(f):
    return f"CASE WHEN {f} > {FAR} THEN 1.0 WHEN {f} < -{FAR} THEN 0.0 ELSE 1.0 / (1.0 + EXP(-{f})) END"


def _largest(columns):
    """(steps, the column of the largest of some), few at a time."""
    steps, n = [], 0
    while len(columns) > 1:
        groups, made = [columns[k : k + MOST_COMPARED] for k in range(0, len(columns), MOST_COMPARED)], {}
        for group in groups:
            cases = [f"WHEN {' AND '.join(f'{a} >= {b}' for b in group[i + 1 :])} THEN {a}" for i, a in enumerate(group[:-1])]
            made[f"m{n}"] = f"CASE {' '.join(cases)} ELSE {group[-1]} END" if cases else group[0]
            n += 1
        columns = list(made)
        steps.append((f"largest_{len(steps)}", made))
    return steps, columns[0]


def _shares(f, largest, is_softmax):
    """(steps, expressions): of each output its e^f, or 1 / (1 + e^-f), of the sum of these."""
    parts = [_power(f"{each} - {largest}", f"{each} < {largest} - {FAR}") if is_softmax else _logistic(each) for each in f]
    p = {f"p{k}": part for k, part in enumerate(parts)}
    steps = [("parts", p), ("totals", {"q0": "(" + balanced([f"+ {each}" for each in p]) + ")"})]
    return steps, [f"CASE WHEN q0 > 0 THEN {each} / q0 ELSE {1 / len(f)} END" for each in p]


def _view(view, x, number):
    """Of a View an expression of its column x, a double."""
    if view.is_it is not None:
        kind, level = view.is_it
        if view.known is not None:
            return DOUBLE.format(_of_level(view, x, level, number))
        is_it = f"{x} IS NULL" if kind == "missing" else f"{x} <> 0" if kind == "present" else f"{x} = {literal(level)}"
        return DOUBLE.format(f"CASE WHEN {is_it} THEN {number(view.high)} ELSE {number(view.low)} END")
    fill = "NULL" if view.fill is None else number(view.fill)
    if view.table is not None:
        cases = " ".join(f"WHEN {x} = {literal(level)} THEN {number(value)}" for level, value in view.table[0].items())
        return DOUBLE.format(f"CASE WHEN {x} IS NULL THEN {number(view.fill or 0.0)} {cases} ELSE {number(view.table[1])} END")
    if not view.unit:
        shown = DOUBLE.format("0.0")
    elif view.knots is None:
        shown = _bent(view, f"(({x} - {number(view.center)}) / {number(view.unit)})", number)
    else:
        shown = _between(x, view, 0, len(view.knots[0]), number)
    is_known = view.fill is None and view.unit and view.knots is None
    return shown if is_known else f"CASE WHEN {x} IS NULL THEN {fill} ELSE {shown} END"


def _of_level(view, x, level, number):
    """Return a level where those that are not known have a value of their own."""
    others, other = view.known
    cases = f"WHEN {x} = {literal(level)} THEN {number(view.high)}"
    cases += f" WHEN {x} IN ({', '.join(map(literal, others))}) THEN {number(view.low)}" if others else ""
    return f"CASE WHEN {x} IS NULL THEN {number(view.fill)} {cases} ELSE {number(other)} END"


def _bent(view, u, number):
    """u within its reach, and squeezed."""
    last = "({0} / SQRT(1.0 + {0} * {0} / 9.0))" if view.squeezed else "{}"
    if view.reach is None:
        return last.format(u)
    reach, twice, square = number(view.reach), number(2 * view.reach), number(view.reach**2)
    above, below = (last.format(f"({sign}{twice} - {square} / {u})") for sign in ("", "-"))
    return f"CASE WHEN {u} > {reach} THEN {above} WHEN {u} < -{reach} THEN {below} ELSE {last.format(u)} END"


def _between(x, view, first, last, number):
    """Linear between the knots from first - 1 to last, constant beyond the ends of all: by bisection."""
    knots, u = view.knots[0], (view.knots[1] - view.center) / view.unit
    if first < last:
        middle = (first + last) // 2
        low, high = _between(x, view, first, middle, number), _between(x, view, middle + 1, last, number)
        return f"CASE WHEN {x} < {number(knots[middle])} THEN {low} ELSE {high} END"
    if first in (0, len(knots)):
        return _bent(view, number(u[0] if first == 0 else u[-1]), number)
    slope = (u[first] - u[first - 1]) / (knots[first] - knots[first - 1])
    return _bent(view, f"({number(u[first - 1])} + ({x} - {number(knots[first - 1])}) * {number(slope)})", number)


def quoted(name: str) -> str:
    """An identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A level of a category, or the label of a class."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"text in SQL must have no NUL, got {value!r}")
        return "'" + value.replace("'", "''") + "'"
    return repr(int(value) if isinstance(value, (bool, np.bool_)) else value)

