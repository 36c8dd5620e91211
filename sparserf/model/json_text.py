"""A model as JSON text: what its file holds, in numbers that read back to the same bits."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from .._base.npz import FORMAT, check_format, no_constant, require
from .file import content, restored

if TYPE_CHECKING:
    from . import SparseModel

# The type of each number of an array, by the letter of its dtype; of text, the bytes of an array for each character of the JSON
# at most, beside LEAST.
KINDS: dict[str, tuple[type, ...]] = {"f": (float, int), "i": (int,), "u": (int,), "b": (bool,), "U": (str,), "S": (str,)}
MOST_A_CHARACTER, LEAST = 16, 2**20


def to_json(model: SparseModel) -> str:
    from .. import __version__

    meta, arrays = content(model)
    meta = {"format": FORMAT, "version": __version__, **meta}
    return json.dumps(meta | {"arrays": {n: _listed(a) for n, a in arrays.items()}}, allow_nan=False)


def from_json(text: str) -> SparseModel:
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    try:
        meta = json.loads(text, parse_constant=no_constant)
        check_format("text", meta)
        arrays = meta.pop("arrays", None)
        require(type(arrays) is dict, "arrays")
        arrays = {name: _array(name, array, MOST_A_CHARACTER * len(text) + LEAST) for name, array in arrays.items()}
    except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"text is not a model: {type(error).__name__}: {error}") from None
    return restored("text", meta, arrays)


def _listed(array):
    """An array as JSON has it: Python writes of a float the fewest digits that tell it from all others."""
    array = np.asarray(array)
    values = array.ravel().tolist()
    values = [value.decode("latin-1") for value in values] if array.dtype.kind == "S" else values
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": values}


def _array(name, listed, most_bytes):
    require(type(listed) is dict and set(listed) == {"dtype", "shape", "values"}, name)
    dtype, shape, values = listed["dtype"], listed["shape"], listed["values"]
    require(type(dtype) is str and re.fullmatch("[<>|][fiubUS][0-9]{1,9}", dtype) is not None, name)
    dtype = np.dtype(dtype)
    require(type(shape) is list and all(type(n) is int and n >= 0 for n in shape) and type(values) is list, name)
    require(np.prod(shape, dtype=object) == len(values) and len(values) * dtype.itemsize <= most_bytes, name)
    require(all(type(value) in KINDS[dtype.kind] for value in values), name)
    values = [value.encode("latin-1") for value in values] if dtype.kind == "S" else values
    array = np.array(values, dtype).reshape(shape)
    require(array.ravel().tolist() == values, name)  # nothing was cut off or rounded
    array.flags.writeable = False
    return array
