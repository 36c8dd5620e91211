"""The file of a model, and the same content as JSON text: `save` and `load`, `to_json` and
`from_json`.

The content of a file is (meta, arrays): metadata, which are numbers and short strings, and arrays
by name. The file is an uncompressed .npz of the arrays, with the metadata as JSON in one of them
(`_base/npz.py`). A file is not trusted: every member is checked before a model is made of it.

There is one format so far, the first. Once a version is released, a change of the content adds 1 to
`FORMAT` in `_base/npz.py`; files of the formats before it are then still to be read, and stay in
tests/files.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, fields
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from .._base import npz as _npz
from .._base.npz import FORMAT, check_format, floats, integers, no_constant, require
from ..columns.encoder import ARRAYS as ENCODER_ARRAYS
from ..columns.encoder import ColumnEncoder
from ..expansion import Expansion, FitInfo
from ..expansion.base import CLASSIFIER_LINKS
from ..expansion.ranges import Ranges
from ..expansion.terms import table_of
from ..features import FeatureSet, block_from_arrays
from ..losses import LOSSES
from ..losses.base import is_parameter
from ..losses.links import LINKS, AscendingLink, HazardLink
from ..losses.ordinal import Ordinal

if TYPE_CHECKING:
    from os import PathLike

# The fields of a model that are metadata as they are.
OF_MODEL = ("n_features_in", "loss", "loss_parameters", "link", "lower", "upper")
# The arrays of the values of columns that took few.
OF_VALUES = "taken_column", "taken_size", "taken_value"
# The most inputs that a file may claim without holding as many numbers: `input_usage` makes an
# array of MOST_INPUTS numbers, a gigabyte.
MOST_INPUTS = 2**27
# The most characters of the name of a loss, or of a thing that a fit has cut.
LONGEST_NAME = 100
# The most kinds of things that a fit may have cut.
MOST_CUT = 100
# The most letters of what a fit has chosen, and of an edit.
LONGEST_CHOSEN = 1_000
# The types of the fields of a `FitInfo`; where one may be left open it is None.
INFO_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("n_iter", "n_drawn", "n_nonzero"), (int,)),
    **dict.fromkeys(("n_projections", "n_conjugate", "n_passes"), (int, NoneType)),
    **dict.fromkeys(("dual_gap", "alpha"), (int, float, NoneType)),
    **dict.fromkeys(("error_bound", "validation_loss", "fidelity"), (float, NoneType)),
    **{"converged": (bool,), "progress": (float,), "cut": (dict,)},
    **{"chosen": (str, NoneType), "edits": (list, tuple)},
}
# The types of the entries of an array in JSON: {kind of its dtype: types}.
JSON_TYPES = {"f": (float, int), "i": (int,), "u": (int,), "b": (bool,), "U": (str,), "S": (str,)}
# An array that is read from JSON has at most MOST_A_CHARACTER bytes for each character of the text,
# and LEAST more.
MOST_A_CHARACTER, LEAST = 16, 2**20


def save(model: Expansion, path: str | PathLike[str]) -> None:
    """Write a model to a file: see `SparseModel.save`."""
    _npz.write(_with_ending(path), *_content(model))


def read(path: str | PathLike[str]) -> Expansion:
    """Read a model from a file that is not trusted: see `sparserf.load`."""
    path = path if os.path.isfile(path) else _with_ending(path)
    return _model_from_content(path, *_npz.read(path))


def to_json(model: Expansion) -> str:
    """Write a model as JSON text: see `SparseModel.to_json`."""
    import json  # slow to import

    from .._version import __version__

    meta, arrays = _content(model)
    meta = {"format": FORMAT, "version": __version__, **meta}
    meta["arrays"] = {name: _array_to_json(array) for name, array in arrays.items()}
    return json.dumps(meta, allow_nan=False)


def from_json(text: str) -> Expansion:
    """Read a model that `to_json` wrote: see `SparseModel.from_json`."""
    import json

    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    try:
        meta = json.loads(text, parse_constant=no_constant)
        check_format("text", meta)
        arrays = meta.pop("arrays", None)
        require(type(arrays) is dict, "arrays")
        arrays = {
            name: _array_from_json(name, array, MOST_A_CHARACTER * len(text) + LEAST)
            for name, array in arrays.items()
        }
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"text is not a model: {type(error).__name__}: {error}") from None
    return _model_from_content("text", meta, arrays)


def _with_ending(path):
    """Return the path, with ".npz" where it has no ending of its own."""
    path = os.fsdecode(path)
    return path if os.path.splitext(path)[1] else f"{path}.npz"


# -- from a model to metadata and arrays, and back


def _content(model):
    """Return the content (meta, arrays) of a model's file."""
    model = model.stripped
    arrays = {
        "coef": model.coef,
        "intercept": np.asarray(model.intercept, np.float64),
        "support": model.support,
    }
    if model.classes is not None:
        arrays["classes"] = model.classes
    for i, block in enumerate(model.features.blocks):
        arrays |= block.to_arrays(i)
    if model.features.order is not None:
        arrays["order"] = model.features.order.astype(np.int64)
    encoder = model.features.encoder
    if encoder is not None:
        arrays |= encoder.to_arrays()
    info = asdict(model.info)
    arrays["objective"] = np.array(info.pop("objective"), np.float64)
    if model.ranges:
        arrays |= {"range_column": model.ranges.column, "range_ends": model.ranges.ends}
        arrays |= _arrays_of_values(model.ranges.taken)
    _check_inputs(model.n_features_in, arrays)
    meta = {name: getattr(model, name) for name in OF_MODEL}
    blocks = [block.meta for block in model.features.blocks]
    return {**meta, "blocks": blocks, "info": info}, arrays


def _model_from_content(where, meta, arrays):
    """Return the model of a content, which is not trusted; where : the file or text, for an error
    message."""
    try:
        return _checked_model(meta, arrays)
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise ValueError(f"{where} is not a whole model: {type(error).__name__}: {error}") from None


def _checked_model(meta, arrays):
    """Check metadata and arrays, and return the model."""
    require(set(meta) == {"format", "version", *OF_MODEL, "blocks", "info"}, "metadata")
    require(type(meta["blocks"]) is list and type(meta["info"]) is dict, "metadata")
    require(type(meta["version"]) is str and len(meta["version"]) < 40, "version")
    d = meta["n_features_in"]
    require(type(d) is int and d > 0, "n_features_in")
    _check_inputs(d, arrays)
    loss, parameters, link = meta["loss"], _in_tuples(meta["loss_parameters"]), meta["link"]
    _check_loss(loss, parameters, link, arrays.get("classes"), floats(arrays, "intercept"))
    encoder = ColumnEncoder.from_arrays(arrays, d)
    n_inputs = d if encoder is None else len(encoder)
    blocks = [
        block_from_arrays(block, arrays, i, n_inputs) for i, block in enumerate(meta["blocks"])
    ]
    features = FeatureSet(blocks, n_inputs, _checked_order(arrays, sum(map(len, blocks))), encoder)
    classes = arrays.get("classes")
    coef, intercept = floats(arrays, "coef"), floats(arrays, "intercept")
    is_ordered = link == Ordinal.link
    outputs = intercept.shape
    if classes is not None:
        outputs = () if is_ordered or len(classes) == 2 else (len(classes),)
        _check_classes(classes, parameters["thresholds"] if is_ordered else None)
    require(len(outputs) < 2 and outputs != (0,), "intercept")
    require(
        coef.shape == (*outputs, len(features)) and intercept.shape == outputs, "coef and intercept"
    )
    require(bool((coef[..., features.nonnegative] >= 0).all()), "coef")
    lower, upper = meta["lower"], meta["upper"]
    _check_limits(lower, upper, classes)
    support = arrays["support"]
    require(support.shape == (len(features),) and support.dtype == np.int64, "support")
    require(
        bool(np.all(np.diff(support) > 0)) and (len(support) == 0 or support[0] >= 0), "support"
    )
    known = {"coef", "intercept", "support", "classes", "objective", "order"}
    known |= {"range_column", "range_ends", *OF_VALUES, *ENCODER_ARRAYS}
    of_blocks = {f"{name}_{i}" for i, block in enumerate(blocks) for name in block.stored}
    require(set(arrays) <= known | of_blocks, "members")
    return Expansion(
        coef,
        intercept if outputs else float(intercept),
        support,
        features,
        loss,
        classes,
        _checked_info(meta["info"], floats(arrays, "objective")),
        parameters,
        link,
        lower,
        upper,
        _checked_ranges(arrays, features),
    )


def _check_classes(classes, thresholds):
    """Check the labels of classes, and the thresholds of classes in order, else None."""
    require(classes.ndim == 1 and len(classes) >= 2, "classes")
    if thresholds is None:
        require(bool(np.all(classes[:-1] < classes[1:])), "classes")
    else:
        require(len(np.unique(classes)) == len(classes) == len(thresholds) + 1 > 2, "classes")


def _in_tuples(parameters):
    """Return parameters with the lists that JSON makes of tuples as these."""
    require(type(parameters) is dict, "loss_parameters")
    return {
        name: tuple(value) if type(value) is list else value for name, value in parameters.items()
    }


def _check_loss(name, parameters, link, classes, intercept):
    """Check the loss of a model: a loss of `sparserf.losses`, or the user's own, known by these
    arguments alone."""
    require(type(name) is str and 0 < len(name) <= LONGEST_NAME, "loss")
    require(all(map(is_parameter, parameters.values())), "loss_parameters")
    if name in LOSSES:
        known = type(LOSSES[name])(**parameters)
        require(not known.has_free_parameters, "loss_parameters")
        require(link == known.link and (classes is not None) == known.is_classifier, "loss")
        require(known.n_outputs in (1, np.size(intercept)), "loss")
    else:
        require(link not in (AscendingLink.name, HazardLink.name, Ordinal.link), "link")
    require(link in (LINKS if classes is None else CLASSIFIER_LINKS), "link")


def _check_limits(lower, upper, classes):
    """Check the limits of f; None where there is none."""
    given = [value for value in (lower, upper) if value is not None]
    require(all(type(value) is float and np.isfinite(value) for value in given), "limits")
    require(not given or classes is None, "limits")
    require(given == sorted(given), "limits")


def _checked_ranges(arrays, features):
    """Check and return the `Ranges`, of columns that are no categories."""
    if not any(name in arrays for name in ("range_column", "range_ends", *OF_VALUES)):
        return Ranges.of_nothing()
    column, ends = integers(arrays, "range_column"), floats(arrays, "range_ends")
    require(len(column) > 0 and ends.shape == (len(column), 2), "range_ends")
    require(bool((ends[:, 0] <= ends[:, 1]).all()), "range_ends")
    require(column[0] >= 0 and column[-1] < features.n_features_in, "range_column")
    require(bool((np.diff(column) > 0).all()), "range_column")
    table = table_of(features)
    require(table is None or all(table.levels[j] is None for j in column.tolist()), "range_column")
    ranges = Ranges(column, ends)
    return Ranges(column, ends, _checked_values(arrays, ranges))


def _arrays_of_values(taken):
    """Return the arrays of the values of columns that took few: the columns, how many values each
    has, and all values."""
    if not taken:
        return {}
    values = [taken[j] for j in sorted(taken)]
    arrays = np.array(sorted(taken), np.int64), np.array(list(map(len, values)), np.int64)
    return dict(zip(OF_VALUES, (*arrays, np.concatenate(values)), strict=True))


def _checked_values(arrays, ranges):
    """Check and return {column: its values}, from its least number to its largest."""
    if not any(name in arrays for name in OF_VALUES):
        return {}
    column, size = (integers(arrays, name) for name in OF_VALUES[:2])
    value = floats(arrays, OF_VALUES[2])
    require(len(column) > 0 and bool((np.diff(column) > 0).all()), "taken_column")
    require(
        size.shape == column.shape and bool(((size > 0) & (size <= len(value))).all()), "taken_size"
    )
    require(value.shape == (int(size.sum()),), "taken_value")
    parts = np.split(value, np.cumsum(size)[:-1])
    taken = dict(zip(column.tolist(), parts, strict=True))
    for j, values in taken.items():
        require(j in ranges and ranges[j] == (values[0], values[-1]), "taken_value")
        require(bool((np.diff(values) > 0).all()), "taken_value")
    return taken


def _check_inputs(d, arrays):
    """Check that a model does not claim more inputs than `input_usage` should make an array of."""
    if d > max(MOST_INPUTS, sum(np.size(array) for array in arrays.values())):
        raise ValueError(
            f"n_features_in must be at most {MOST_INPUTS}, or the numbers in the file, got {d}"
        )


def _checked_order(arrays, n):
    """Check and return the order of the n features; None: they are in the order of their blocks."""
    order = arrays.get("order")
    if order is not None:
        require(order.dtype == np.int64 and np.array_equal(np.sort(order), np.arange(n)), "order")
    return order


def _checked_info(meta, objective):
    """Check and return the `FitInfo`."""
    meta = {"chosen": None, "edits": (), **meta}  # which older files lack
    require(set(meta) == {field.name for field in fields(FitInfo)} - {"objective"}, "info")
    require(all(type(meta[name]) in types for name, types in INFO_TYPES.items()), "info")
    finite = (meta[name] for name in ("dual_gap", "alpha", "fidelity"))
    require(all(value is None or np.isfinite(float(value)) for value in finite), "info")
    require(objective.ndim == 1 and len(objective) > 0 and 0 <= meta["progress"] <= 1, "info")
    cut, chosen, edits = meta["cut"], meta["chosen"], meta.pop("edits")
    require(len(cut) <= MOST_CUT and all(len(name) <= LONGEST_NAME for name in cut), "info")
    require(all(type(n) is int and n > 0 for n in cut.values()), "info")
    words = [*edits, *([] if chosen is None else [chosen])]
    require(all(type(each) is str and len(each) <= LONGEST_CHOSEN for each in words), "info")
    return FitInfo(**meta, edits=tuple(edits), objective=tuple(objective.tolist()))


# -- from an array to JSON, and back


def _array_to_json(array):
    """Return an array as a dictionary for JSON. Python writes floats with the fewest digits that
    read back to the same bits."""
    array = np.asarray(array)
    values = array.ravel().tolist()
    values = [value.decode("latin-1") for value in values] if array.dtype.kind == "S" else values
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": values}


def _array_from_json(name, listed, most_bytes):
    """Return the array of a dictionary of `_array_to_json`, checked to have at most most_bytes
    bytes."""
    require(type(listed) is dict and set(listed) == {"dtype", "shape", "values"}, name)
    dtype, shape, values = listed["dtype"], listed["shape"], listed["values"]
    require(type(dtype) is str and re.fullmatch("[<>|][fiubUS][0-9]{1,9}", dtype) is not None, name)
    dtype = np.dtype(dtype)
    require(type(shape) is list and type(values) is list, name)
    require(all(type(n) is int and n >= 0 for n in shape), name)
    require(np.prod(shape, dtype=object) == len(values), name)
    require(len(values) * dtype.itemsize <= most_bytes, name)
    require(all(type(value) in JSON_TYPES[dtype.kind] for value in values), name)
    values = [value.encode("latin-1") for value in values] if dtype.kind == "S" else values
    array = np.array(values, dtype).reshape(shape)
    require(array.ravel().tolist() == values, name)  # nothing was cut off or rounded
    array.flags.writeable = False
    return array
