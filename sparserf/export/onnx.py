"""A model as an ONNX graph, which computes the predictions of rows, and the probabilities or
decision values of classes.

The graph computes in double precision, but for cosines, sines, tanh and the exponentials of bumps,
whose precision the user chooses.
"""

from __future__ import annotations

import os
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._base.checks import check_choice
from .._base.expressions import is_matrix, made, parameter, reduce_inputs, sin, variable
from .._base.files import new_file
from .._base.warnings import warn
from ..columns.frames import label, listing, numbers_of
from ..columns.kinds import arithmetic
from ..columns.table import in_float32
from ..expansion.decisions import rounded_inwards
from ..expansion.terms import columns_of_encodings, table_of
from ..features import is_for_single
from ..losses import PROBABILISTIC
from ..losses.links import LINKS
from ..losses.ordinal import probability_weights
from .written import WrittenModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from .._base.expressions import Expression
    from ..expansion import Expansion

try:
    import onnx
except ImportError as error:
    raise ImportError("to_onnx needs the package onnx: pip install 'sparserf[onnx]'") from error

# The version of the operators: the first in which graphs can compare strings.
OPSET = 19
# The version of the format that goes with it.
IR_VERSION = 9
# float32 is too coarse for a column if its neighbouring numbers there are farther apart than the
# share MOST_LOST of its range, or MOST_LOST_OF_WHOLE for whole numbers, which may be codes.
MOST_LOST, MOST_LOST_OF_WHOLE = 1e-2, 1e-6
# float32 holds all whole numbers up to here.
WHOLE = 2**24
# The operators of the functions that are computed in the precision that the user chooses; others
# are exact or cheap.
ROUNDED = {"sin": "Sin", "tanh": "Tanh", "exp": "Exp"}
# Constants of at least so many doubles are written without their zeros, if these are most.
FEWEST_SPARSE = 1000
# At most one number in so many of these constants is not 0.
SPARSE_BELOW = 3


def to_onnx(
    model: Expansion,
    path: str | PathLike[str] | None = None,
    dtype: Literal["float32", "float64"] = "float32",
) -> onnx.ModelProto:
    """Write a model as an ONNX graph: see `SparseModel.to_onnx`."""
    dtype = np.dtype(check_choice("dtype", dtype, ("float32", "float64")))
    written = WrittenModel.from_model(model)
    model, table = written.model, _table_of_inputs(written.model)
    graph = Graph(["X"] if table is None else _input_names(table))
    if table is None:
        x = _read_matrix(graph, written, dtype)
    else:
        x = _read_columns(graph, written, table, dtype)
    u = EncodingNodes(graph, written.columns, x)(written.inputs)
    f = graph("Add", graph("MatMul", u, written.linear.T), written.constant)
    for group in written.groups:
        phi = TermNodes(graph, u, dtype)(group.block.expression)
        f = graph("Add", f, graph("MatMul", phi, group.coef.T))
    _add_outputs(graph, model, f, len(written.intercept), dtype)
    exported = graph.model(repr(model))
    if path is not None:
        ending = "" if hasattr(path, "write") else os.path.splitext(path)[1]
        form = onnx.serialization.registry.get_format_from_file_extension(ending)
        with new_file(path) as file:
            onnx.save(exported, file, form)
    return exported


def _table_of_inputs(model):
    """Return the `Table` of a graph with an input for each column; None if one matrix X holds all
    columns."""
    table = table_of(model.features)
    if table is None or table.names is not None or table.clocks:
        return table
    return table if any(map(_are_strings, table.levels)) else None


def _are_strings(levels):
    """Return whether the levels of a column, None for numbers, are strings."""
    return levels is not None and (levels == () or isinstance(levels[0], str))


# -- which columns float32 does not hold


def _beyond_single(written):
    """Return the columns, of those that are read, whose cells mean something else in float32.

    They have neighbours that it does not tell apart: at a threshold, among knots or levels, or all
    over the range of the training rows.
    """
    model, encoder = written.model, written.features.encoder
    beyond = {j for j, ends in model.ranges.items() if _loses(*ends)}
    for block in written.features.blocks:
        inputs, thresholds = block.thresholds
        is_long = [not is_for_single(t) for t in thresholds.tolist()]
        beyond |= set(columns_of_encodings(written.features)[inputs[is_long]].tolist())
    for v in [] if encoder is None else written.used_encodings.tolist():
        encoding, levels = encoder.encoding(v), encoder.levels_of(v)
        is_of_numbers = levels is None and encoding.knots is not None
        if is_of_numbers and not _are_apart(encoding.knots[0]):
            beyond.add(encoding.column)
        if levels and not isinstance(levels[0], str) and _are_lost(levels):
            beyond.add(encoding.column)
    return sorted(beyond & set(written.columns.tolist()))


@np.errstate(over="ignore")
def _loses(low, high):
    """Return whether numbers of a range lose much in float32."""
    most, is_whole = max(-low, high), low == np.rint(low) and high == np.rint(high)
    if low == high or (is_whole and most <= WHOLE):
        return False
    share = MOST_LOST_OF_WHOLE if is_whole else MOST_LOST
    return not np.spacing(np.float32(most)) <= share * (high - low)


@np.errstate(over="ignore")
def _are_apart(numbers):
    """Return whether numbers, ascending, are different in float32."""
    return bool((np.diff(numbers.astype(np.float32)) > 0).all())


def _are_lost(levels):
    """Return whether levels that are numbers are the same in float32 as another whole number."""
    numbers = np.sort(np.array(levels, np.float64))
    return bool(((np.abs(numbers) > WHOLE) & (numbers == np.rint(numbers))).any())


# -- reading the columns as numbers in double precision: categories as codes, NaN for missing cells


def _input_names(table):
    """Return the names of the inputs: the names of the columns, or x0, x1, ..."""
    names = (
        [f"x{j}" for j in range(len(table.levels))] if table.names is None else list(table.names)
    )
    if "" in names:
        raise ValueError("a column must have a name to be an input of an ONNX graph, got X['']")
    return names


def _read_matrix(graph, written, dtype):
    """Add the one input X, and return the columns that are read."""
    n, columns, table = written.model.n_features_in, written.columns, table_of(written.features)
    beyond = _beyond_single(written) if dtype == np.float32 else []
    if beyond:
        warn(
            f"X has columns of which float32 does not tell all numbers apart, {listing(beyond)}: "
            "rows may become others; give dtype='float64'",
            UserWarning,
        )
    graph.input("X", dtype, n)
    x = graph.cast(_gathered(graph, "X", columns, n), np.float64)
    if table is None or table.is_numeric:
        return x
    cells = [(j, graph("Gather", x, [k], axis=1)) for k, j in enumerate(columns)]
    return graph("Concat", *(_coded(graph, cell, table, j, dtype) for j, cell in cells), axis=1)


def _read_columns(graph, written, table, dtype):
    """Add an input for each column of a table, even if it is not read, and return the columns that
    are read.

    Times are numbers of days, in double precision: in float32 a day of today has five hundred
    parts. So are columns that float32 does not hold.
    """
    names, doubles = _input_names(table), {*table.clocks, *_beyond_single(written)}
    dtypes = [np.dtype(np.float64) if j in doubles else dtype for j in range(len(names))]
    for name, levels, own in zip(names, table.levels, dtypes, strict=True):
        graph.input(name, np.object_ if _are_strings(levels) else own, 1)
    cells = (_coded(graph, names[j], table, j, dtypes[j]) for j in written.columns.tolist())
    return graph("Concat", *cells, axis=1)


def _coded(graph, cell, table, j, dtype):
    """Return the cells of column j as numbers, (n_rows, 1) in double precision."""
    levels, where = table.levels[j], label(table.names, int(j))
    if levels is None:
        return graph.cast(cell, np.float64)
    if _are_strings(levels):
        code = _code(graph, cell, _text_levels(where, levels))
        if "" in levels:
            return code
        return graph("Where", graph("Equal", cell, np.array("", object)), np.nan, code)
    x = graph.cast(cell, np.float64)
    # cells of float32 are compared so anyway
    singles = in_float32(levels) if dtype == np.float64 else {}
    near = np.array([singles.get(level, np.nan) for level in levels])
    return graph(
        "Where", graph("IsNaN", x), x, _code(graph, x, _number_levels(where, levels, dtype), near)
    )


def _code(graph, cell, levels, near=None):
    """Return k where the cell is level k, and -1 where it is no level; computed in float32, which
    is exact to 2**24.

    near : what the cell may be when it is rounded to float32, NaN for levels that it must equal;
        None: for all levels
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
        raise ValueError(
            f"{where} has a level that is no text in UTF-8, which ONNX demands: {error}"
        ) from None
    return np.array(levels, object)


# a level beyond the range of the dtype becomes infinite, which no finite cell equals
@np.errstate(over="ignore")
def _number_levels(where, levels, dtype):
    """Return levels that are numbers, rounded to the dtype; raise ValueError if two become
    equal."""
    rounded = numbers_of(where, list(levels)).astype(dtype).astype(np.float64)
    if len(np.unique(rounded)) < len(levels):
        raise ValueError(
            f"{where} has levels that {dtype} does not tell apart: export it with another dtype, "
            "or as strings"
        )
    return rounded


def _gathered(graph, x, columns, n):
    """Return some of the n columns of x; x itself if they are all columns in order."""
    if np.array_equal(columns, np.arange(n)):
        return x
    return graph("Gather", x, np.asarray(columns, np.int64), axis=1)


class EncodingNodes:
    """Writes encodings as nodes: those that are made by the same operation at once, side by side.

    columns, x : the columns that are read, and their matrix
    """

    def __init__(self, graph: Graph, columns: np.ndarray, x: str):
        self._graph, self._columns, self._x = graph, columns.tolist(), x

    def __call__(self, expressions: Sequence[Expression]) -> str:
        """Return the matrix of some encodings, (n_rows, n)."""
        alike: dict[Any, list[int]] = {}
        for k, e in enumerate(expressions):
            alike.setdefault(_key(e, k), []).append(k)
        parts = [self._made([expressions[k] for k in places]) for places in alike.values()]
        made = parts[0] if len(parts) == 1 else self._graph("Concat", *parts, axis=1)
        place = np.argsort(np.concatenate(list(alike.values())))
        return _gathered(self._graph, made, place, len(expressions))

    def _made(self, es):
        """Return encodings that are made at once: by an operation of cells, or by others, alone."""
        if hasattr(self, es[0].operation):
            return getattr(self, es[0].operation)(es)
        return FunctionNodes(self._graph, self)(es[0])

    def _operands(self, es, k=0):
        return self([e.operands[k] for e in es])

    def cell(self, es: Sequence[Expression]) -> str:
        place = [self._columns.index(e.column) for e in es]
        return _gathered(self._graph, self._x, place, len(self._columns))

    def between(self, es: Sequence[Expression]) -> str:
        """Return what is linear between knots.

        That is the first score plus, for each pair of neighbouring knots, the share of the way
        between them that x has passed times the difference of their scores.
        """
        (e,), graph = es, self._graph
        knots, scores = e.knots, e.scores
        if len(knots) == 1:
            knots, scores = knots[[0, 0]] + [0, 1], scores[[0, 0]]
        share = graph("Div", graph("Sub", self._operands(es), knots[:-1]), np.diff(knots))
        share = graph("Clip", share, 0.0, 1.0)
        return graph("Add", graph("MatMul", share, np.diff(scores)[:, None]), scores[0])

    def angle(self, es: Sequence[Expression]) -> str:
        """Return the cosine of the angle of days: the sine of a quarter of a turn more, less all
        whole turns."""
        graph, level, turn = self._graph, _each(es, "level"), _each(es, "turn")
        turns = graph("Mul", graph("Sub", self._operands(es), level), turn / (2 * np.pi))
        turns = graph("Add", turns, 0.25)
        return graph("Sin", graph("Mul", graph("Sub", turns, graph("Floor", turns)), 2 * np.pi))

    def units(self, es: Sequence[Expression]) -> str:
        power, center, factor = arithmetic(_each(es, "center"), _each(es, "unit"))
        r, graph = self._operands(es), self._graph
        if center.any() or np.isinf(power * factor).any():
            return graph("Mul", graph("Sub", graph("Mul", r, power), center), factor)
        return r if (power * factor == 1).all() else graph("Mul", r, power * factor)

    def saturate(self, es: Sequence[Expression]) -> str:
        graph, u, reach = self._graph, self._operands(es), _each(es, "reach")
        size = graph("Abs", u)
        end = graph(
            "Mul",
            graph("Sign", u),
            graph("Mul", reach, graph("Sub", 2.0, graph("Div", reach, size))),
        )
        return graph("Where", graph("Greater", size, reach), end, u)

    def impute(self, es: Sequence[Expression]) -> str:
        is_missing = self._graph("IsNaN", self._operands(es, 1))
        return self._graph("Where", is_missing, _each(es, "fill"), self._operands(es))

    def flag(self, es: Sequence[Expression]) -> str:
        """Return indicators that ask the same."""
        x, high, low = self._operands(es), _each(es, "high"), _each(es, "low")
        return self._graph("Where", self._graph("IsNaN", x), high, low)

    def table(self, es: Sequence[Expression]) -> str:
        """Return the number of each level: of one table, or of tables that have one number each and
        one for the rest."""
        graph, x = self._graph, self._operands(es)
        rest, other, fill = (_each(es, name) for name in ("rest", "other", "fill"))
        if not _has_rest(es[0]):
            place = graph("Add", graph("Where", graph("IsNaN", x), 0.0, x), 1.0)
            place = graph.cast(place, np.int64)
            known = graph("Gather", np.array([es[0].other, *es[0].values.values()]), place)
            return graph("Where", graph("IsNaN", x), fill, known)
        level, value = (
            np.array(each, np.float64)
            for each in zip(*(next(iter(e.values.items())) for e in es), strict=True)
        )
        is_it = graph("And", graph("LessOrEqual", level, x), graph("Less", x, level + 1))
        known = (
            rest if (rest == other).all() else graph("Where", graph("Less", x, 0.0), other, rest)
        )
        known = graph("Where", is_it, value, known)
        return known if (rest == fill).all() else graph("Where", graph("IsNaN", x), fill, known)


def _key(e, k):
    """Return what is equal for encodings that are made at once: those of knots and of whole tables
    are made one by one."""
    is_alone = e.operation == "between" or (e.operation == "table" and not _has_rest(e))
    is_alone = is_alone or not hasattr(EncodingNodes, e.operation)
    return e.operation, k if is_alone else None


def _has_rest(table):
    """Return whether a table has one number for a level, and one for the rest."""
    return len(table.values) == 1 < len(table.levels)


def _each(expressions, name):
    """Return a number of each expression."""
    return np.array([getattr(e, name) for e in expressions], np.float64)


# -- computing f from the encodings, (n_rows, n_outputs), and the outputs of the graph


class TermNodes:
    """Writes the terms of a group as nodes: functions in the precision that the user chose, and all
    else in double precision.

    u : the matrix of the inputs
    """

    def __init__(self, graph: Graph, u: str, dtype: np.dtype):
        self._graph, self._u, self._dtype = graph, u, dtype
        self._k, self._rows = 0, ""

    def __call__(self, e: Expression) -> str | np.ndarray:
        """Return an expression: the name of a matrix, or an array of numbers."""
        if e.operation in ROUNDED:
            z, operator = self(e.operands[0]), ROUNDED[e.operation]
            if self._dtype == np.float64:
                return self._graph(operator, z)
            z = self._graph(operator, self._graph.cast(z, self._dtype))
            return self._graph.cast(z, np.float64)
        return getattr(self, e.operation)(e)

    def number(self, e: Expression) -> float:
        return e.value

    def variable(self, e: Expression) -> str:
        return e.name

    def raised(self, e: Expression) -> str:
        z = power = self(e.operands[0])
        for _ in range(e.power - 1):
            power = self._graph("Mul", power, z)
        return power

    def at_most(self, e: Expression) -> str:
        z = self(e.operands[0])
        return self._graph("Where", self._graph("Greater", z, e.most), e.most, z)

    def parameter(self, e: Expression) -> np.ndarray:
        """Return a number of each term, or of its input k; in a sum over inputs rows are the second
        axis."""
        if e.values.ndim == 1:
            return e.values
        return e.values[:, min(self._k, e.values.shape[1] - 1), None]

    def seen(self, e: Expression) -> str:
        """Return input k of each term, one line for each term."""
        inputs = np.array([self._k]) if e.inputs is None else e.inputs[:, self._k].astype(np.int64)
        return self._graph("Gather", self._rows, inputs, axis=0)

    def add(self, e: Expression) -> str:
        return reduce(partial(self._graph, "Add"), map(self, e.operands))

    def multiply(self, e: Expression) -> str:
        return reduce(partial(self._graph, "Mul"), map(self, e.operands[::-1]))

    def negative(self, e: Expression) -> str | np.ndarray:
        """Return a negative: of numbers, or of a sum over inputs times numbers, by the negatives of
        these."""
        (of,) = e.operands
        if of.operation == "parameter":
            return -self(of)
        if of.operation == "reduce" and of.how == "add" and of.operands[0].operation == "multiply":
            first, *others = of.operands[0].operands
            if first.operation == "parameter":
                negative = parameter(first.name, -first.values)
                return self(reduce_inputs("add", made("multiply", negative, *others)))
        return self._graph("Neg", self(of))

    def absolute(self, e: Expression) -> str:
        return self._graph("Abs", self(e.operands[0]))

    def cos(self, e: Expression) -> str:
        """Return a cosine as the sine of a quarter turn more: not all runtimes have cosines in
        double precision."""
        *others, last = e.operands[0].operands if e.operands[0].operation == "add" else e.operands
        if last.operation == "parameter":
            later = parameter(last.name, last.values + np.pi / 2)
        else:
            later = last + np.pi / 2
        return self(sin(made("add", *others, later)))

    def sign(self, e: Expression) -> str:
        is_up = self._graph("GreaterOrEqual", self(e.operands[0]), 0.0)
        return self._graph("Where", is_up, 1.0, -1.0)

    def positive(self, e: Expression) -> str:
        return self._graph("Relu", self(e.operands[0]))

    def reduce(self, e: Expression) -> str:
        """Return the sum or product over the inputs of each term, one after the other: few are then
        in memory at a time."""
        graph, (summand,) = self._graph, e.operands
        seen, weights = summand.find("seen"), summand.find("parameter")
        if is_matrix(e):
            return graph("MatMul", self._u, weights.values.T)
        # of whole rows runtimes gather many times as fast
        self._rows = graph("Transpose", self._factors(seen.enveloped))
        operator, total = {"add": "Add", "multiply": "Mul"}[e.how], None
        for self._k in range((weights.values if seen.inputs is None else seen.inputs).shape[1]):
            part = self(summand)
            total = part if total is None else graph(operator, total, part)
        return graph("Transpose", total)

    def _factors(self, enveloped):
        """Return the inputs; of (gamma, degree) factors e and e (2 gamma)^1/2 u_v, with e =
        exp(-gamma |u|^2 / degree)."""
        graph, u = self._graph, self._u
        if enveloped is None:
            return u
        gamma, degree = enveloped
        square = graph("Mul", graph("Mul", u, gamma / degree), u)
        square = graph("ReduceSum", square, np.array([1]), keepdims=1)
        envelope = graph("Exp", graph("Neg", square))
        factors = graph("Mul", u, graph("Mul", envelope, np.sqrt(2 * gamma)))
        return graph("Concat", envelope, factors, axis=1)


class FunctionNodes(TermNodes):
    """Writes a function of encodings as nodes, in double precision."""

    def __init__(self, graph: Graph, encodings: EncodingNodes):
        super().__init__(graph, "", np.dtype(np.float64))
        self._encodings = encodings

    def __call__(self, e: Expression) -> str | np.ndarray:
        is_encoding = hasattr(self._encodings, e.operation)
        return self._encodings([e]) if is_encoding else super().__call__(e)


def _add_outputs(graph, model, f, n_outputs, dtype):
    """Add the outputs of the graph: "variable", or "label" with "probabilities" or "scores"."""
    if model.classes is None:
        link = LINKS[model.link]
        if link.is_ascending and n_outputs > 1:
            f = graph.ascending(f, n_outputs)
        prediction = link.prediction(variable(f), dtype.name)
        mean = graph.cast(TermNodes(graph, f, np.dtype(np.float64))(prediction), dtype)
        graph.output("variable", _within(graph, model, mean, dtype), dtype, n_outputs)
        return
    predicted, cuts = model.cut_classes
    if n_outputs == 1:
        is_above = graph.cast(graph("Greater", f, np.array([cuts])), np.int64)
        index = graph("ReduceSum", is_above, np.array([1]), keepdims=0)
    else:
        index = graph("ArgMax", f, axis=1, keepdims=0)
    classes, predicted = _labels(model.classes), _labels(predicted)
    graph.output("label", graph("Gather", predicted, index), classes.dtype)
    if model.loss in PROBABILISTIC:
        if model.thresholds:
            p = _cumulative(graph, f, model.thresholds)
        else:
            p = _probabilities(graph, f, n_outputs, model.link)
        graph.output("probabilities", graph.cast(p, dtype), dtype, len(classes))
    else:
        graph.output("scores", graph.cast(f, dtype), dtype, n_outputs)


def _within(graph, model, mean, dtype):
    """Return predictions within the limits of the model, rounded inwards to the dtype; NaN stays
    NaN."""
    low, high = rounded_inwards(*model.limits_of_predictions, dtype.type)
    if model.lower is not None:
        mean = graph("Where", graph("Less", mean, dtype.type(low)), dtype.type(low), mean)
    if model.upper is not None:
        mean = graph("Where", graph("Greater", mean, dtype.type(high)), dtype.type(high), mean)
    return mean


def _labels(classes):
    """Return the labels of classes in a dtype of tensors: strings, booleans, integers or floats of
    64 bits."""
    types = {"U": object, "S": object, "i": np.int64, "u": np.int64, "f": np.float64, "b": bool}
    return classes if classes.dtype == np.uint64 else classes.astype(types[classes.dtype.kind])


def _cumulative(graph, f, thresholds):
    """Return the probabilities of the classes between thresholds."""
    lower, upper = np.array([[-np.inf, *thresholds], [*thresholds, np.inf]])[:, None]
    up_to, above = (graph("Sigmoid", graph("Sub", *pair)) for pair in ((upper, f), (f, lower)))
    return graph("Mul", graph("Mul", up_to, above), np.array([probability_weights(thresholds)]))


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
    """An ONNX graph that grows node by node: `graph("Add", x, 1.0)` adds a node and returns the
    name of its result.

    The names of results and constants begin with "_"; `new_name` keeps them different from the
    names of inputs and outputs.
    """

    def __init__(self, taken: Iterable[str]):
        """Begin a graph without nodes; taken : the names of its inputs, which nothing else may
        have."""
        self._nodes, self._constants, self._inputs, self._outputs = [], [], [], []
        self._taken = set(taken)
        self._names: dict[Any, str] = {}  # of constants, which are written once

    def __call__(self, operator: str, *operands: Any, **attributes: Any) -> str:
        """Add a node and return the name of its result; operands are names, or arrays, which become
        constants."""
        result = self.new_name(f"_{operator}_{len(self._nodes)}")
        names = [
            operand if isinstance(operand, str) else self._constant(operand) for operand in operands
        ]
        self._nodes.append(onnx.helper.make_node(operator, names, [result], **attributes))
        return result

    def new_name(self, name: str) -> str:
        """Return the name, followed by as many "_" as it takes to be new."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _constant(self, values):
        """Return the name of a constant, which is added at its first use."""
        values = np.asarray(values)
        content = str(values.tolist()) if values.dtype == object else values.tobytes()
        key = values.dtype, values.shape, content
        if key not in self._names:
            self._names[key] = self._added(values)
        return self._names[key]

    def _added(self, values):
        """Add a constant and return its name; one of doubles that are mostly 0 as these, put in
        their places.

        Runtimes do so once, where they load a graph.
        """
        is_large = values.dtype == np.float64 and FEWEST_SPARSE <= values.size < 2**31
        places = np.flatnonzero(values) if is_large else ()
        if is_large and len(places) * SPARSE_BELOW <= values.size:
            size = np.array([values.size], np.int64)
            zeros = self("ConstantOfShape", size, value=onnx.numpy_helper.from_array(np.zeros(1)))
            at = self.cast(self._constant(places[:, None].astype(np.int32)), np.int64)
            flat = self("ScatterND", zeros, at, values.ravel()[places])
            return self("Reshape", flat, np.array(values.shape, np.int64))
        name = self.new_name(f"_constant_{len(self._constants)}")
        values = np.ascontiguousarray(values).reshape(values.shape)  # scalars stay so
        self._constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def ascending(self, value: str, n_columns: int) -> str:
        """Return a matrix of so many columns with each row in ascending order."""
        n, k = len(self._nodes), self._constant(np.array([n_columns]))
        results = [self.new_name(f"_TopK_{n}"), self.new_name(f"_places_{n}")]
        made = onnx.helper.make_node("TopK", [value, k], results, axis=1, largest=0)
        self._nodes.append(made)
        return results[0]

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value, converted to a dtype."""
        return self("Cast", value, to=_type(dtype))

    def input(self, name: str, dtype: Any, n_columns: int) -> None:
        """Add an input of shape (n_rows, n_columns)."""
        self._inputs.append(_value_info(name, dtype, n_columns))

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        """Add an output, a value of shape (n_rows, *shape)."""
        name = self.new_name(name)
        self._nodes.append(onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(_value_info(name, dtype, *shape))

    def model(self, about: str) -> onnx.ModelProto:
        """Return the graph as a model, checked."""
        graph = onnx.helper.make_graph(
            self._nodes, "sparserf", self._inputs, self._outputs, self._constants, about
        )
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(
            graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="sparserf"
        )
        onnx.checker.check_model(model)
        return model


def _value_info(name, dtype, *shape):
    """Return what ONNX says of an input or output of shape (n_rows, *shape)."""
    return onnx.helper.make_tensor_value_info(name, _type(dtype), ["n_rows", *shape])


def _type(dtype):
    """Return the number that ONNX has for a dtype."""
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
