"""A model as an ONNX graph, which computes the predictions of rows, and the probabilities or decision values of classes.

The graph computes in double precision, but for cosines, sines, tanh and the exponentials of bumps, whose precision the user
chooses.
"""

from __future__ import annotations

import os
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.checks import check_choice
from .._base.files import new_file
from ..columns.frames import label, numbers_of
from ..columns.kinds import CLIP
from ..columns.table import in_float32
from ..losses import PROBABILISTIC
from ..model.base import rounded_inwards
from .written import WrittenModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from ..model import SparseModel

try:
    import onnx
except ImportError as error:
    raise ImportError("to_onnx needs the package onnx: pip install 'sparserf[onnx]'") from error

# The versions of the operators and of the format: the first in which graphs can compare strings.
OPSET, IR_VERSION = 19, 9
# The operators of the activations that are computed in the precision that the user chooses; others are exact or cheap. A cosine
# is written as a sine of a quarter turn more, since not all runtimes have cosines in double precision.
ROUNDED = {"cos": "Sin", "sin": "Sin", "tanh": "Tanh", "bump": "Exp"}


# Constants of at least FEWEST_SPARSE doubles, of which at most one in SPARSE_BELOW is not 0, are written as these alone.
FEWEST_SPARSE, SPARSE_BELOW = 1000, 3


def to_onnx(
    model: SparseModel, path: str | PathLike[str] | None = None, dtype: Literal["float32", "float64"] = "float32"
) -> onnx.ModelProto:
    """Write a model as an ONNX graph: see `SparseModel.to_onnx`."""
    dtype = np.dtype(check_choice("dtype", dtype, ("float32", "float64")))
    written = WrittenModel.from_model(model)
    model, table = written.model, _table_of_inputs(written.model)
    graph = Graph(["X"] if table is None else _input_names(table))
    x = _read_matrix(graph, written, dtype) if table is None else _read_columns(graph, written, table, dtype)
    u = _encodings(graph, written, x)
    f = graph("Add", graph("MatMul", u, written.linear.T), written.constant)
    for group in written.groups:
        f = graph("Add", f, _sum(graph, group, u, dtype))
    _add_outputs(graph, model, f, len(written.intercept), dtype)
    exported = graph.model(repr(model))
    if path is not None:
        ending = "" if hasattr(path, "write") else os.path.splitext(path)[1]
        with new_file(path) as file:
            onnx.save(exported, file, onnx.serialization.registry.get_format_from_file_extension(ending))
    return exported


def _table_of_inputs(model):
    """Return the `Table` of a graph with an input for each column; None if one matrix X holds all columns."""
    table = model.features.stage and model.features.stage.table
    if table is None or (table.names is None and not (table.clocks or any(map(_are_strings, table.levels)))):
        return None
    return table


def _are_strings(levels):
    """Return whether the levels of a column, None for numbers, are strings."""
    return levels is not None and (levels == () or isinstance(levels[0], str))


# -- reading the columns as numbers in double precision: categories as codes, NaN for missing cells


def _input_names(table):
    """Return the names of the inputs: the names of the columns, or x0, x1, ..."""
    names = [f"x{j}" for j in range(len(table.levels))] if table.names is None else list(table.names)
    if "" in names:
        raise ValueError("a column must have a name to be an input of an ONNX graph, got X['']")
    return names


def _read_matrix(graph, written, dtype):
    """Add the one input X, and return the columns that are read."""
    model, columns = written.model, written.columns
    n, table = model.n_features_in, model.features.stage and model.features.stage.table
    graph.input("X", dtype, n)
    x = graph.cast(_gathered(graph, "X", columns, n), np.float64)
    if table is None or table.is_numeric:
        return x
    cells = [(j, graph("Gather", x, [k], axis=1)) for k, j in enumerate(columns)]
    return graph("Concat", *(_coded(graph, cell, table, j, dtype) for j, cell in cells), axis=1)


def _read_columns(graph, written, table, dtype):
    """Add an input for each column of a table, even if it is not read, and return the columns that are read.

    Times are numbers of days, in double precision: in float32 a day of today has five hundred parts.
    """
    names = _input_names(table)
    for j, (name, levels) in enumerate(zip(names, table.levels, strict=True)):
        graph.input(name, np.object_ if _are_strings(levels) else np.float64 if j in table.clocks else dtype, 1)
    return graph("Concat", *(_coded(graph, names[j], table, j, dtype) for j in written.columns), axis=1)


def _coded(graph, cell, table, j, dtype):
    """Return the cells of column j as numbers, (n_rows, 1) in double precision."""
    levels, where = table.levels[j], label(table.names, int(j))
    if levels is None:
        return graph.cast(cell, np.float64)
    if _are_strings(levels):
        code = _code(graph, cell, _text_levels(where, levels))
        return code if "" in levels else graph("Where", graph("Equal", cell, np.array("", object)), np.nan, code)
    x = graph.cast(cell, np.float64)
    singles = in_float32(levels) if dtype == np.float64 else {}  # cells of float32 are compared so anyway
    near = np.array([singles.get(level, np.nan) for level in levels])
    return graph("Where", graph("IsNaN", x), x, _code(graph, x, _number_levels(where, levels, dtype), near))


def _code(graph, cell, levels, near=None):
    """Return k where the cell is level k, and -1 where it is no level; computed in float32, which is exact to 2**24.

    near : what the cell may be when it is rounded to float32, NaN for levels that it must equal; None: for all levels
    """
    is_level = graph("Equal", cell, levels[None])
    if near is not None and not np.isnan(near).all():
        single = graph.cast(graph.cast(cell, np.float32), np.float64)
        is_level = graph("Or", is_level, graph("Equal", single, near[None]))
    is_level = graph.cast(is_level, np.float32)
    place = graph("MatMul", is_level, np.arange(1, len(levels) + 1, dtype=np.float32)[:, None])
    return graph("Sub", graph.cast(place, np.float64), 1.0)


def _text_levels(where, levels):
    """Return levels that are strings as an array; raise ValueError if one is no UTF-8."""
    try:
        "".join(levels).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} has a level that is no text in UTF-8, which ONNX demands: {error}") from None
    return np.array(levels, object)


@np.errstate(over="ignore")  # a level beyond the range of the dtype becomes infinite, which no finite cell equals
def _number_levels(where, levels, dtype):
    """Return levels that are numbers, rounded to the dtype; raise ValueError if two become equal."""
    rounded = numbers_of(where, list(levels)).astype(dtype).astype(np.float64)
    if len(np.unique(rounded)) < len(levels):
        raise ValueError(f"{where} has levels that {dtype} does not tell apart: export it with another dtype, or as strings")
    return rounded


def _gathered(graph, x, columns, n):
    """Return some of the n columns of x; x itself if they are all columns in order."""
    return x if np.array_equal(columns, np.arange(n)) else graph("Gather", x, np.asarray(columns, np.int64), axis=1)


# -- encoding the columns, by the formulas of `ColumnStage`


def _encodings(graph, written, x):
    """Return the encodings u of the columns x, (n_rows, n_inputs)."""
    r, stage = _before_units(graph, written, x), written.stage
    if written.has_raw_inputs:
        return r
    power, center, factor, reach = stage.arithmetic
    u = graph("Mul", graph("Sub", graph("Mul", r, power), center), factor)
    if not stage.is_raw:
        size = graph("Abs", u)
        end = graph("Mul", graph("Sign", u), graph("Mul", reach, graph("Sub", 2.0, graph("Div", reach, size))))
        u = graph("Where", graph("Greater", size, reach), end, u)
    is_clipped = written.kinds == "clipped"
    if is_clipped.any():
        part = graph("Div", graph("Clip", u, -1e100, 1e100), CLIP)
        length = graph("Sqrt", graph("Add", graph("Mul", part, part), 1.0))
        u = graph("Where", is_clipped, graph("Div", u, length), u)
    return graph("Where", graph("IsNaN", r), stage.fill, u) if stage.may_miss else u


def _before_units(graph, written, x):
    """Return the raw value r of each encoding: the number, its score, or 1 or 0 for whether a condition holds."""
    stage, kind, n = written.stage, written.kinds, len(written.columns)
    place, has_knots = np.searchsorted(written.columns, stage.column), np.diff(stage.first_knot) > 0
    kind = np.where(np.isin(kind, ["number", "clipped"]) & ~has_knots, "as it is", kind)
    order, parts = [], []
    for of_kind, answer in ANSWERS.items():
        encodings = np.flatnonzero(kind == of_kind)
        if len(encodings):
            order.append(encodings)
            parts.append(answer(graph, stage, encodings, _gathered(graph, x, place[encodings], n)))
    for v in np.flatnonzero(has_knots & np.isin(kind, ["number", "clipped"])):
        order.append([v])
        parts.append(_score(graph, stage, v, graph("Gather", x, place[[v]], axis=1)))
    r = parts[0] if len(parts) == 1 else graph("Concat", *parts, axis=1)
    return _gathered(graph, r, np.argsort(np.concatenate(order)), len(stage))


def _is_level(graph, stage, encodings, x):
    """Return 1 where x, one column for each encoding, is the level of the encoding, else 0."""
    level = stage.level[encodings]
    return graph.cast(graph("And", graph("LessOrEqual", level, x), graph("Less", x, level + 1)), np.float64)


def _angle(graph, stage, encodings, x):
    """Return the cosine of the angle of days x in a period: the sine of a quarter of a turn more, less all whole turns."""
    turns = graph("Mul", graph("Sub", x, stage.level[encodings]), stage.turn[encodings] / (2 * np.pi))
    turns = graph("Add", turns, 0.25)
    return graph("Sin", graph("Mul", graph("Sub", turns, graph("Floor", turns)), 2 * np.pi))


# {kind: function that returns the raw values r of encodings without knots}.
ANSWERS: dict[str, Callable[..., str]] = {
    "as it is": lambda graph, stage, encodings, x: x,
    "level": _is_level,
    **dict.fromkeys(("year", "week", "day"), _angle),
    "missing": lambda graph, stage, encodings, x: graph.cast(graph("IsNaN", x), np.float64),
    "present": lambda graph, stage, encodings, x: graph.cast(graph("Not", graph("Equal", x, 0.0)), np.float64),
}


def _score(graph, stage, v, x):
    """Return the raw value r of encoding v, which has knots: the score of a level, or of a number, linear between knots.

    The score of a number is the first score plus, for each pair of neighbouring knots, the share of the way between them that x
    has passed times the difference of their scores.
    """
    some = slice(*stage.first_knot[v : v + 2])
    knots, scores = stage.knots[some], stage.scores[some]
    levels = None if stage.table is None else stage.table.levels[stage.column[v]]
    if levels is not None and np.array_equal(knots, np.arange(-1, len(levels))):  # x is the number of a level, or NaN
        place = graph.cast(graph("Add", graph("Where", graph("IsNaN", x), 0.0, x), 1.0), np.int64)
        return graph("Where", graph("IsNaN", x), x, graph("Gather", scores, place))
    if len(knots) == 1:
        knots, scores = knots[[0, 0]] + [0, 1], scores[[0, 0]]
    share = graph("Clip", graph("Div", graph("Sub", x, knots[:-1]), np.diff(knots)), 0.0, 1.0)
    return graph("Add", graph("MatMul", share, np.diff(scores)[:, None]), scores[0])


# -- computing f from the encodings, (n_rows, n_outputs), and the outputs of the graph


def _sum(graph, group, u, dtype):
    """Return the sum of the terms of a group times their coefficients."""
    phi = _products(graph, group, u) if group.gamma is not None else _activated(graph, group, _phases(graph, group, u), dtype)
    return graph("MatMul", phi, group.coef.T)


def _phases(graph, group, u):
    """Return w'u + offset of each term, plus a quarter turn for cosines; of bumps the exponent."""
    if group.centers is not None:
        inputs = np.arange(group.weights.shape[1])[None] if group.inputs is None else group.inputs
        return _over_inputs(graph, "Add", inputs, -group.weights, u, group.centers)
    offset = group.offset + (np.pi / 2 if group.activation == "cos" else 0.0)
    if group.inputs is None:
        return graph("Add", graph("MatMul", u, group.weights.T), offset)
    return graph("Add", _over_inputs(graph, "Add", group.inputs, group.weights, u), offset)


def _over_inputs(graph, operator, inputs, weights, u, centers=None):
    """Return the sum or product, by the operator, of the inputs of each term times their weights.

    centers : the numbers from which inputs are measured, |u - center| in place of u; None: inputs as they are
    """

    rows = graph("Transpose", u)  # of whole rows runtimes gather many times as fast

    def weighted(k):
        x = graph("Gather", rows, inputs[:, k].astype(np.int64), axis=0)
        x = x if centers is None else graph("Abs", graph("Sub", x, centers[:, k, None]))
        return graph("Mul", x, weights[:, k, None])

    factors = (weighted(k) for k in range(weights.shape[1]))  # one after the other, so that few are in memory at a time
    return graph("Transpose", reduce(lambda one, other: graph(operator, one, other), factors))


def _activated(graph, group, z, dtype):
    """Return activation(z), with the functions of `ROUNDED` in the dtype that the user chose."""
    if group.activation == "relu":
        return graph("Relu", z)
    if group.activation == "sign":
        return graph("Where", graph("GreaterOrEqual", z, 0.0), 1.0, -1.0)
    return graph.cast(graph(ROUNDED[group.activation], graph.cast(z, dtype)), np.float64)


def _products(graph, group, u):
    """Return each term as a product of factors e and e (2 gamma)^1/2 u_v, with e = exp(-gamma |u|^2 / degree)."""
    order, n = group.inputs.shape[1], group.inputs.shape[0]
    square = graph("ReduceSum", graph("Mul", graph("Mul", u, group.gamma / order), u), np.array([1]), keepdims=1)
    envelope = graph("Exp", graph("Neg", square))
    factors = graph("Concat", envelope, graph("Mul", u, graph("Mul", envelope, np.sqrt(2 * group.gamma))), axis=1)
    return _over_inputs(graph, "Mul", group.inputs, np.broadcast_to(group.weights, (n, order)), factors)


def _add_outputs(graph, model, f, n_outputs, dtype):
    """Add the outputs of the graph: "variable", or "label" with "probabilities" or "scores"."""
    if model.classes is None:
        mean = graph.cast(graph("Exp", f) if model.link == "log" else f, dtype)
        graph.output("variable", _within(graph, model, mean, dtype), dtype, n_outputs)
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


def _within(graph, model, mean, dtype):
    """Return predictions within the limits of the model, rounded inwards to the dtype; NaN stays NaN."""
    low, high = rounded_inwards(*model.limits_of_predictions, dtype.type)
    if model.lower is not None:
        mean = graph("Where", graph("Less", mean, dtype.type(low)), dtype.type(low), mean)
    if model.upper is not None:
        mean = graph("Where", graph("Greater", mean, dtype.type(high)), dtype.type(high), mean)
    return mean


def _labels(classes):
    """Return the labels of classes in a dtype of tensors: strings, booleans, integers or floats of 64 bits."""
    types = {"U": object, "S": object, "i": np.int64, "u": np.int64, "f": np.float64, "b": bool}
    return classes if classes.dtype == np.uint64 else classes.astype(types[classes.dtype.kind])


def _probabilities(graph, f, n_outputs, link):
    """Return the probabilities of the classes."""
    if link == "softmax" and n_outputs > 1:
        return graph("Softmax", f, axis=1)
    p = graph("Sigmoid", f)
    if n_outputs == 1:
        return graph("Concat", graph("Sub", 1.0, p), p, axis=1)
    total = graph("ReduceSum", p, np.array([1]), keepdims=1)
    return graph("Where", graph("Greater", total, 0.0), graph("Div", p, total), 1 / n_outputs)


class Graph:
    """An ONNX graph that grows node by node: `graph("Add", x, 1.0)` adds a node and returns the name of its result.

    The names of results and constants begin with "_"; `new_name` keeps them different from the names of inputs and outputs.
    """

    def __init__(self, taken: Iterable[str]):
        """Begin a graph without nodes; taken : the names of its inputs, which nothing else may have."""
        self._nodes, self._constants, self._inputs, self._outputs, self._taken = [], [], [], [], set(taken)

    def __call__(self, operator: str, *operands: Any, **attributes: Any) -> str:
        """Add a node and return the name of its result; operands are names, or arrays, which become constants."""
        result = self.new_name(f"_{operator}_{len(self._nodes)}")
        names = [operand if isinstance(operand, str) else self._constant(operand) for operand in operands]
        self._nodes.append(onnx.helper.make_node(operator, names, [result], **attributes))
        return result

    def new_name(self, name: str) -> str:
        """Return the name, followed by as many "_" as it takes to be new."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _constant(self, values):
        """Add a constant and return its name; one of doubles that are mostly 0 as these, put in their places.

        Runtimes do so once, where they load a graph.
        """
        values = np.asarray(values)
        places = np.flatnonzero(values) if values.dtype == np.float64 and values.size >= FEWEST_SPARSE else None
        if places is not None and len(places) * SPARSE_BELOW <= values.size < 2**31:
            size = np.array([values.size], np.int64)
            zeros = self("ConstantOfShape", size, value=onnx.numpy_helper.from_array(np.zeros(1)))
            at = self.cast(self._constant(places[:, None].astype(np.int32)), np.int64)
            return self("Reshape", self("ScatterND", zeros, at, values.ravel()[places]), np.array(values.shape, np.int64))
        name = self.new_name(f"_constant_{len(self._constants)}")
        self._constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values).reshape(np.shape(values)), name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value, converted to a dtype."""
        return self("Cast", value, to=_type(dtype))

    def input(self, name: str, dtype: Any, n_columns: int) -> None:
        """Add an input of shape (n_rows, n_columns)."""
        self._inputs.append(onnx.helper.make_tensor_value_info(name, _type(dtype), ["n_rows", n_columns]))

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        """Add an output, a value of shape (n_rows, *shape)."""
        name = self.new_name(name)
        self._nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(onnx.helper.make_tensor_value_info(name, _type(dtype), ["n_rows", *shape]))

    def model(self, about: str) -> onnx.ModelProto:
        """Return the graph as a model, checked."""
        graph = onnx.helper.make_graph(self._nodes, "sparserf", self._inputs, self._outputs, self._constants, about)
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="sparserf")
        onnx.checker.check_model(model)
        return model


def _type(dtype):
    """Return the number that ONNX has for a dtype."""
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
