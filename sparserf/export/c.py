"""A model as a file of C99, which needs the C library alone and computes as `predict` does in double precision."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from ..losses import PROBABILISTIC
from . import c_maths as maths
from . import c_text as text
from .parts import Parts, kinds

if TYPE_CHECKING:
    from os import PathLike

    from ..model import SparseModel

# Terms side by side in a group: compilers turn loops of so many into vectors, those of 16 into single steps first.
LANES = 32
# Characters and numbers on a line.
WIDTH, NUMBERS = 112, 5
# A space where no line ends.
TIED = "\0"
RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long main register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
) | set(re.findall(r"\w+", re.sub(r"/\*.*?\*/|\$\{\w+\}", "", "".join(text.ALL + maths.ALL), flags=re.DOTALL)))


def to_c(model: SparseModel, path: str | PathLike[str] | None = None, name: str = "predict") -> str:
    """See `SparseModel.to_c`."""
    _check_name(name)
    parts = Parts.of(model)
    declared, defined = _functions(model, name)
    activations = {terms.activation for terms in parts.terms}
    sizes = {"n_columns": model.n_features_in, "n_inputs": len(parts.stage), "n_outputs": len(parts.intercept), "lanes": LANES}
    blocks = [
        _about(model, parts, name),
        _filled(text.HEAD, **sizes),
        declared,
        _stage(parts),
        maths.WAVES if activations & {"cos", "sin"} else "",
        maths.TANHS if "tanh" in activations else "",
        *(_terms(terms, b) for b, terms in enumerate(parts.terms)),
        _values(parts),
        defined,
    ]
    source = "".join(blocks)
    if path is not None:
        Path(path).write_text(source, encoding="utf-8")
    return source


def _check_name(name):
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise ValueError(f"name must be the name of a function in C, letters, digits and _, got {name!r}")
    if {name, name.rstrip("0123456789")} & RESERVED:
        raise ValueError(f"name must not be a word of C or of the file itself, got {name!r}")


def _filled(template, **values):
    return Template(template).substitute(values)


def _about(model, parts, name):
    """The comment at the top: what the file computes of what."""
    nan = "NAN is a missing number, and infinite ones are" if parts.stage.may_miss else "NAN and infinite ones are"
    then = "f is NAN" if model.classes is None else "the class is -1, and decision values and probabilities are NAN"
    lines = [
        f"{name}: {model!r}, written by sparserf. C99; link with -lm.",
        f"A row x is the {model.n_features_in} columns of X in their order, as doubles.",
        f"{nan} refused in the columns that f depends on: {then}.",
        *_columns(model),
    ]
    wrapped = [piece for line in lines for piece in wrap(line, WIDTH, break_long_words=False, subsequent_indent="  ")]
    return "/* " + "\n * ".join(wrapped).replace(TIED, " ") + "\n */\n"


def _columns(model):
    """Of each column that has a name or is a category a line."""
    table = model.features.stage and model.features.stage.table
    if table is None:
        return
    for j, levels in enumerate(table.levels):
        name = "" if table.names is None else f" {_commented(table.names[j])}"
        if levels is not None:
            listed = ", ".join(f"{k} {_commented(level)}".replace(" ", TIED) for k, level in enumerate(levels))
            yield f"x[{j}]{name}, the number of its level; -1 for any other, NAN where missing: {listed}"
        elif name:
            yield f"x[{j}]{name}"


def _commented(level):
    """A level or a name where a comment may hold it."""
    if not isinstance(level, str):
        return str(level)
    escaped = "".join(c if c.isprintable() and c not in '"\\' else f"\\x{ord(c):02x}" for c in level)
    return '"' + escaped.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?") + '"'


def _functions(model, name):
    """What other files may call: (the declarations, the functions)."""
    if model.classes is None:
        texts = (text.OF_VALUE, text.ONE_VALUE) if np.size(model.intercept) == 1 else (text.OF_VALUES, text.SOME_VALUES)
        what, mean = ("e to the f", "exp") if model.link == "log" else ("f", "")
        return [_filled(each, name=name, what=what, mean=mean) for each in texts]
    ctype, labels = _labels(model.classes)
    declared = _filled(text.OF_CLASSES, name=name, n=len(labels), ctype=ctype, labels=_listed(labels))
    defined = _filled(text.CLASSES, name=name)
    if model.loss in PROBABILISTIC:
        is_softmax = model.link == "softmax" and np.size(model.intercept) > 1
        declared += _filled(text.OF_PROBABILITIES, name=name)
        defined += _filled(text.SOFTMAX if is_softmax else text.PROBABILITIES, name=name)
    return declared, defined


def _labels(classes):
    """(type in C, the classes as they are written there)."""
    kind = classes.dtype.kind
    if kind in "US":
        return "const char *const", [_literal(c) for c in classes.tolist()]
    if kind == "f":
        return "const double", [_number(float(c)) for c in classes]
    return ("const unsigned long long", [f"{c}ull" for c in classes]) if kind == "u" else ("const long long", _whole(classes))


def _whole(classes):
    """-2**63 is no literal."""
    return [f"{c}ll" if c > -(2**63) else f"{c + 1}ll - 1" for c in map(int, classes)]


def _literal(label):
    """A string, or bytes."""
    label = label.encode("utf-8", "surrogatepass") if isinstance(label, str) else label
    return '"' + "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\?' else f"\\{c:03o}" for c in label) + '"'


def _stage(parts):
    """What a row shows."""
    stage = parts.stage
    if parts.is_raw:
        if np.array_equal(stage.column, np.arange(len(stage))):
            return _filled(text.SEE_RAW, column="j")
        return _array("int", "columns", stage.column) + _filled(text.SEE_RAW, column="columns[j]")
    power, center, factor, reach = stage.arithmetic
    numbers = np.stack([stage.level, power, center, factor, reach, stage.fill], axis=1).tolist()
    kind, first, size = (name.upper() for name in kinds(stage)), stage.first_knot, np.diff(stage.first_knot)
    views = [
        "{" + ", ".join([str(int(j)), k, *map(_number, each), str(int(start)), str(int(n))]) + "}"
        for j, k, each, start, n in zip(stage.column, kind, numbers, first, size, strict=False)
    ]
    knots, scores = (values if len(values) else np.zeros(1) for values in (stage.knots, stage.scores))
    arrays = _array("double", "knots", knots) + _array("double", "scores", scores)
    table = "static const view views[N_INPUTS] = {\n    " + ",\n    ".join(views) + "};\n"
    refused = ("", "isinf(value)") if stage.may_miss else (" or NAN", "!isfinite(value)")
    return text.VIEWS + arrays + table + _filled(text.SEEN, or_nan=refused[0], refused=refused[1])


def _terms(terms, b):
    """The tables and the function of terms of one kind."""
    n_groups = -(-len(terms) // LANES)
    tables = {"weights": terms.weights, "inputs": terms.inputs, "coef": terms.coef.T}
    if terms.gamma is None:
        tables["offset"] = terms.offset
    arrays = "".join(
        _array("int" if what == "inputs" else "double", f"{what}_{b}", _in_lanes(values, n_groups))
        for what, values in tables.items()
        if values is not None
    )
    about = f"\n/* {len(terms)} terms, {LANES} side by side. */\n"
    if terms.gamma is not None:
        shared = {"gamma": _number(terms.gamma), "root": _number(float(np.sqrt(2 * terms.gamma)))}
        return about + arrays + _filled(text.PRODUCTS, b=b, n_groups=n_groups, order=terms.inputs.shape[1], **shared)
    order, of_term = ("N_INPUTS", "i") if terms.inputs is None else (terms.inputs.shape[1], f"inputs_{b}[g][i][k]")
    activation = maths.ACTIVATIONS[terms.activation]
    filled = _filled(text.NEURONS, b=b, n_groups=n_groups, order=order, input=of_term, activation=activation)
    return about + arrays + filled


def _in_lanes(values, n_groups):
    """(n_terms, m) or (n_terms,) as (n_groups, m, LANES) or (n_groups, LANES), zeros behind the last term."""
    padded = np.zeros((n_groups * LANES, *values.shape[1:]), values.dtype)
    padded[: len(values)] = values
    return np.moveaxis(padded.reshape(n_groups, LANES, *values.shape[1:]), 1, -1)


def _values(parts):
    calls = [f"    add_terms_{b}(u, sum);" for b in range(len(parts.terms))]
    linear = ""
    if parts.linear.any():
        linear = "\n" + _array("double", "linear", parts.linear) + text.LINEAR
        calls.append("    add_linear(u, sum);")
    return linear + "\n" + _array("double", "intercept", parts.intercept) + _filled(text.VALUES, calls="\n".join(calls))


def _array(ctype, name, values):
    sizes = "".join(f"[{n}]" for n in values.shape)
    write = str if ctype == "int" else _number
    return f"static const {ctype} {name}{sizes} = {_nested(values.tolist(), write)};\n"


def _nested(values, write):
    if isinstance(values[0], list):
        return "{" + ",\n    ".join(_nested(each, write) for each in values) + "}"
    return _listed([write(each) for each in values])


def _listed(words):
    lines = [", ".join(words[i : i + NUMBERS]) for i in range(0, len(words), NUMBERS)]
    return "{" + ",\n     ".join(lines) + "}"


def _number(value):
    """The shortest that reads as the same double."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return "0" if value == 0 else repr(value)
