"""A model as an ONNX graph: of each row what `predict` says of it, and the probabilities or the decision values of classes."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._base.checks import check_choice
from ..columns.frames import label, numbers_of
from ..columns.stage import CLIP
from ..losses import PROBABILISTIC
from .graph import Graph, write
from .parts import Parts, kinds

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from onnx import ModelProto

    from ..model import SparseModel

# Activations whose values are computed in the precision that is asked for; the others are exact, or cheap. A cosine is the sine
# of a quarter more: not all runtimes have cosines in double precision.
ROUNDED = {"cos": "Sin", "sin": "Sin", "tanh": "Tanh"}


def to_onnx(
    model: SparseModel, path: str | PathLike[str] | None = None, dtype: Literal["float32", "float64"] = "float32"
) -> ModelProto:
    """See `SparseModel.to_onnx`."""
    dtype = np.dtype(check_choice("dtype", dtype, ("float32", "float64")))
    parts, table = Parts.of(model), _table(model)
    graph = Graph(["X"] if table is None else _names(table))
    x = _of_matrix(graph, model, parts, dtype) if table is None else _of_columns(graph, parts, table, dtype)
    u = _views(graph, parts, x)
    f = reduce(lambda f, terms: graph("Add", f, _sum(graph, terms, u, dtype)), parts.terms, _linear(graph, parts, u))
    _answers(graph, model, f, len(parts.intercept), dtype)
    exported = graph.model(repr(model))
    if path is not None:
        write(exported, path)
    return exported


def _table(model):
    """The `Table` by which each column is an input of its own; None where one matrix holds all columns."""
    table = model.features.stage and model.features.stage.table
    if table is None or (table.names is None and not any(map(_are_strings, table.levels))):
        return None
    return table


def _are_strings(levels):
    return levels is not None and (levels == () or isinstance(levels[0], str))


# What the columns hold: of those that are read a number each, as the library has it, NaN where missing.


def _names(table):
    """Of the inputs: those of the columns, or x0, x1, ..."""
    names = [f"x{j}" for j in range(len(table.levels))] if table.names is None else list(table.names)
    if "" in names:
        raise ValueError("a column must have a name to be an input of an ONNX graph, got X['']")
    return names


def _of_matrix(graph, model, parts, dtype):
    """Of one input, X."""
    n, table = model.n_features_in, model.features.stage and model.features.stage.table
    graph.input("X", dtype, n)
    x = graph.cast(_taken(graph, "X", parts.columns, n), np.float64)
    if table is None or table.is_numeric:
        return x
    cells = [(j, graph("Gather", x, [k], axis=1)) for k, j in enumerate(parts.columns)]
    return graph("Concat", *(_coded(graph, cell, table, j, dtype) for j, cell in cells), axis=1)


def _of_columns(graph, parts, table, dtype):
    """Of an input for each column, whether it is read or not."""
    names = _names(table)
    for name, levels in zip(names, table.levels, strict=True):
        graph.input(name, np.object_ if _are_strings(levels) else dtype, 1)
    return graph("Concat", *(_coded(graph, names[j], table, j, dtype) for j in parts.columns), axis=1)


def _coded(graph, cell, table, j, dtype):
    """The cells of column j as numbers, (n_rows, 1) in double precision."""
    levels, where = table.levels[j], label(table.names, int(j))
    if levels is None:
        return graph.cast(cell, np.float64)
    if _are_strings(levels):
        code = _place(graph, cell, _written(where, levels))
        return code if "" in levels else graph("Where", graph("Equal", cell, np.array("", object)), np.nan, code)
    x = graph.cast(cell, np.float64)
    return graph("Where", graph("IsNaN", x), x, _place(graph, x, _rounded(where, levels, dtype)))


def _place(graph, cell, levels):
    """k where the cell is level k, -1 where it is none of them; counted in float32, which is exact to 2**24."""
    is_level = graph.cast(graph("Equal", cell, levels[None]), np.float32)
    place = graph("MatMul", is_level, np.arange(1, len(levels) + 1, dtype=np.float32)[:, None])
    return graph("Sub", graph.cast(place, np.float64), 1.0)


def _written(where, levels):
    try:
        "".join(levels).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} has a level that is no text in UTF-8, which ONNX demands: {error}") from None
    return np.array(levels, object)


@np.errstate(over="ignore")  # infinite: a level that no number is
def _rounded(where, levels, dtype):
    rounded = numbers_of(where, list(levels)).astype(dtype).astype(np.float64)
    if len(np.unique(rounded)) < len(levels):
        raise ValueError(f"{where} has levels that {dtype} does not tell apart: export it with another dtype, or as strings")
    return rounded


def _taken(graph, x, columns, n):
    """Some of the n columns of x."""
    return x if np.array_equal(columns, np.arange(n)) else graph("Gather", x, np.asarray(columns, np.int64), axis=1)


# What the views show of these, in the formulas of `ColumnStage`.


def _views(graph, parts, x):
    """u, (n_rows, n_inputs)."""
    r, stage = _seen(graph, parts, x), parts.stage
    if parts.is_raw:
        return r
    power, center, factor, reach = stage.arithmetic
    u = graph("Mul", graph("Sub", graph("Mul", r, power), center), factor)
    if not stage.is_raw:
        size = graph("Abs", u)
        end = graph("Mul", graph("Sign", u), graph("Mul", reach, graph("Sub", 2.0, graph("Div", reach, size))))
        u = graph("Where", graph("Greater", size, reach), end, u)
    is_clipped = kinds(stage) == "clipped"
    if is_clipped.any():
        part = graph("Div", graph("Clip", u, -1e100, 1e100), CLIP)
        length = graph("Sqrt", graph("Add", graph("Mul", part, part), 1.0))
        u = graph("Where", is_clipped, graph("Div", u, length), u)
    return graph("Where", graph("IsNaN", r), stage.fill, u) if stage.may_miss else u


def _seen(graph, parts, x):
    """r of each view: the number, its score, or whether it is what the view asks."""
    stage, n = parts.stage, len(parts.columns)
    place, kind, has_knots = np.searchsorted(parts.columns, stage.column), kinds(stage), np.diff(stage.first_knot) > 0
    kind = np.where(np.isin(kind, ["number", "clipped"]) & ~has_knots, "as it is", kind)
    order, seen = [], []
    for of_kind, ask in ASKED.items():
        views = np.flatnonzero(kind == of_kind)
        if len(views):
            order.append(views)
            seen.append(ask(graph, stage, views, _taken(graph, x, place[views], n)))
    for v in np.flatnonzero(has_knots & np.isin(kind, ["number", "clipped"])):
        order.append([v])
        seen.append(_score(graph, stage, v, graph("Gather", x, place[[v]], axis=1)))
    r = seen[0] if len(seen) == 1 else graph("Concat", *seen, axis=1)
    return _taken(graph, r, np.argsort(np.concatenate(order)), len(stage))


def _is_level(graph, stage, views, x):
    level = stage.level[views]
    return graph.cast(graph("And", graph("LessOrEqual", level, x), graph("Less", x, level + 1)), np.float64)


ASKED: dict[str, Callable[..., str]] = {
    "as it is": lambda graph, stage, views, x: x,
    "level": _is_level,
    "missing": lambda graph, stage, views, x: graph.cast(graph("IsNaN", x), np.float64),
    "present": lambda graph, stage, views, x: graph.cast(graph("Not", graph("Equal", x, 0.0)), np.float64),
}


def _score(graph, stage, v, x):
    """Of a level its score. Between knots: the first score, and of each rise to the next the share that x has passed."""
    some = slice(*stage.first_knot[v : v + 2])
    knots, scores = stage.knots[some], stage.scores[some]
    levels = None if stage.table is None else stage.table.levels[stage.column[v]]
    if levels is not None and np.array_equal(knots, np.arange(-1, len(levels))):  # as x is, where it is not NaN
        place = graph.cast(graph("Add", graph("Where", graph("IsNaN", x), 0.0, x), 1.0), np.int64)
        return graph("Where", graph("IsNaN", x), x, graph("Gather", scores, place))
    if len(knots) == 1:
        knots, scores = knots[[0, 0]] + [0, 1], scores[[0, 0]]
    share = graph("Clip", graph("Div", graph("Sub", x, knots[:-1]), np.diff(knots)), 0.0, 1.0)
    return graph("Add", graph("MatMul", share, np.diff(scores)[:, None]), scores[0])


# f of the views, (n_rows, n_outputs), and what is said of it.


def _linear(graph, parts, u):
    return graph("Add", graph("MatMul", u, parts.linear.T), parts.intercept)


def _sum(graph, terms, u, dtype):
    phi = _products(graph, terms, u) if terms.gamma is not None else _activated(graph, terms, _phases(graph, terms, u), dtype)
    return graph("MatMul", phi, terms.coef.T)


def _phases(graph, terms, u):
    offset = terms.offset + (np.pi / 2 if terms.activation == "cos" else 0.0)
    if terms.inputs is None:
        return graph("Add", graph("MatMul", u, terms.weights.T), offset)
    return graph("Add", _over_inputs(graph, "Add", terms.inputs, terms.weights, u), offset)


def _over_inputs(graph, operator, inputs, weights, u):
    """Sum or product, of each term, of its inputs times their weights."""
    each = zip(inputs.T.astype(np.int64), weights.T, strict=True)
    factors = (graph("Mul", graph("Gather", u, some, axis=1), weight) for some, weight in each)
    return reduce(lambda one, other: graph(operator, one, other), factors)


def _activated(graph, terms, z, dtype):
    if terms.activation == "relu":
        return graph("Relu", z)
    if terms.activation == "sign":
        return graph("Where", graph("GreaterOrEqual", z, 0.0), 1.0, -1.0)
    return graph.cast(graph(ROUNDED[terms.activation], graph.cast(z, dtype)), np.float64)


def _products(graph, terms, u):
    """Of the factors e and e (2 gamma)^1/2 u, e = exp(-gamma |u|^2 / order)."""
    order, n = terms.inputs.shape[1], terms.inputs.shape[0]
    square = graph("ReduceSum", graph("Mul", graph("Mul", u, terms.gamma / order), u), np.array([1]), keepdims=1)
    envelope = graph("Exp", graph("Neg", square))
    factors = graph("Concat", envelope, graph("Mul", u, graph("Mul", envelope, np.sqrt(2 * terms.gamma))), axis=1)
    return _over_inputs(graph, "Mul", terms.inputs, np.broadcast_to(terms.weights, (n, order)), factors)


def _answers(graph, model, f, n_outputs, dtype):
    """The outputs of the graph."""
    if model.classes is None:
        mean = graph("Exp", f) if model.link == "log" else f
        graph.output("variable", graph.cast(mean, dtype), dtype, n_outputs)
        return
    if n_outputs == 1:
        index = graph("Squeeze", graph.cast(graph("Greater", f, 0.0), np.int64), np.array([1]))
    else:
        index = graph("ArgMax", f, axis=1, keepdims=0)
    classes = _labels(model.classes)
    graph.output("label", graph("Gather", classes, index), classes.dtype)
    if model.loss in PROBABILISTIC:
        p = _probabilities(graph, f, n_outputs, model.link)
        graph.output("probabilities", graph.cast(p, dtype), dtype, len(classes))
    else:
        graph.output("scores", graph.cast(f, dtype), dtype, n_outputs)


def _labels(classes):
    """As tensors have them: strings, integers and floats of 64 bits, booleans."""
    types = {"U": object, "S": object, "i": np.int64, "u": np.int64, "f": np.float64, "b": bool}
    return classes if classes.dtype == np.uint64 else classes.astype(types[classes.dtype.kind])


def _probabilities(graph, f, n_outputs, link):
    if link == "softmax" and n_outputs > 1:
        return graph("Softmax", f, axis=1)
    p = graph("Sigmoid", f)
    if n_outputs == 1:
        return graph("Concat", graph("Sub", 1.0, p), p, axis=1)
    total = graph("ReduceSum", p, np.array([1]), keepdims=1)
    return graph("Where", graph("Greater", total, 0.0), graph("Div", p, total), 1 / n_outputs)
