"""Archives .npz of plain arrays and JSON metadata, in which `model/file.py` saves models.

A file is not trusted: reading it runs no code, and no array takes more memory than the file has
bytes. The metadata begin with the number of the format of model files, `FORMAT`: it is here since
it is checked before the rest of the metadata is read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .files import new_file

if TYPE_CHECKING:
    from os import PathLike

FORMAT = 1  # the format number of model files
# The header of an array in an .npz file, as NumPy writes it.
HEADER = (
    rb"\{'descr': '([<>|][fiubUS][0-9]{1,9})', 'fortran_order': (?:False|True), 'shape': "
    rb"\(([0-9, ]{0,200})\), \} *\n"
)


def write(path: str | PathLike[str], meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write an uncompressed .npz of the arrays, with meta as an array of JSON bytes."""
    import json

    from .._version import __version__

    text = json.dumps({"format": FORMAT, "version": __version__, **meta}, allow_nan=False).encode()
    with new_file(path) as file:
        np.savez(
            file,
            meta=np.frombuffer(text, np.uint8),
            **{k: np.asarray(a, order="C") for k, a in arrays.items()},
        )


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return (meta, arrays) of a file; raise ValueError for any other file."""
    import json  # slow to import, as is zipfile
    import zipfile

    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            size = os.fstat(file.fileno()).st_size
            arrays = _members(archive, size)
        # parsed JSON, before it can be checked, takes some twenty times the memory of its text
        if arrays["meta"].nbytes > 2**16 + size // 32:
            raise ValueError(f"{arrays['meta'].nbytes} bytes of metadata")
        meta = json.loads(arrays.pop("meta").tobytes(), parse_constant=no_constant)
    except OSError as error:
        if error.filename is not None:  # there is no such file, or it may not be read
            raise
        raise ValueError(f"{path} is not a model file: {error}") from None
    except (
        ValueError,
        TypeError,
        KeyError,
        RuntimeError,
        EOFError,
        zipfile.BadZipFile,
        RecursionError,
        MemoryError,
    ) as error:
        raise ValueError(f"{path} is not a model file: {type(error).__name__}: {error}") from None
    check_format(path, meta)
    return meta, arrays


def check_format(where: object, meta: dict[str, Any]) -> None:
    """Check that the metadata are of a model, in a format that this version reads.

    where : the file, for an error
    """
    if not isinstance(meta, dict) or type(meta.get("format")) is not int or meta["format"] < 1:
        raise ValueError(f"{where} has no format number: it is not a model")
    if meta["format"] > FORMAT:
        from .._version import __version__

        version, plain = meta.get("version"), r"[0-9]+(\.[0-9a-z+]{1,20}){1,4}"
        is_known = isinstance(version, str) and len(version) < 40 and re.fullmatch(plain, version)
        which = (
            f"version {version}, which wrote it, or a later one" if is_known else "a later version"
        )
        raise ValueError(
            f"{where} has a format after {FORMAT}: this is sparserf {__version__}; install {which}"
        )


def require(condition: object, what: str) -> None:
    """Raise a ValueError about the array `what` of a file, unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} is missing or inconsistent")


def floats(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return the array of that name, which must be finite float64."""
    array = arrays[name]
    require(array.dtype == np.float64 and bool(np.isfinite(array).all()), name)
    return array


def integers(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return the array of that name, which must be one-dimensional int64."""
    array = arrays[name]
    require(array.dtype == np.int64 and array.ndim == 1, name)
    return array


def no_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and infinity in JSON: the `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} in the metadata")


def _members(archive, file_size):
    """Return the arrays of an archive, {name: array}."""
    members = archive.infolist()
    names, plain = [member.filename for member in members], r"[a-z0-9_]{1,40}\.npy"
    if len(set(names)) != len(names) or not all(re.fullmatch(plain, name) for name in names):
        raise ValueError(f"unexpected members {names[:5]}")
    stored = 0  # zipfile.ZIP_STORED
    if any(m.compress_type != stored or m.file_size != m.compress_size for m in members):
        raise ValueError("compressed members")
    # overlapping members, or sizes that lie
    if sum(member.file_size for member in members) > file_size:
        raise ValueError("members larger than the file")
    return {member.filename[:-4]: _array(archive, member) for member in members}


def _array(archive, member):
    """Return the array of a member of an archive.

    Raise a ValueError unless its header is plain and gives its size.
    """
    with archive.open(member) as file:
        start = file.read(10)
        if start[:8] != b"\x93NUMPY\x01\x00" or len(start) < 10:
            raise ValueError(f"{member.filename} is not an array")
        # NumPy's own reader evaluates it
        header = re.fullmatch(HEADER, file.read(int.from_bytes(start[8:], "little")))
        if header is None:
            raise ValueError(f"{member.filename} is not an array of numbers or strings")
        dtype = np.dtype(header[1].decode())
        shape = tuple(int(length) for length in header[2].split(b",") if length.strip())
        size = dtype.itemsize
        for length in shape:
            size *= length
        if dtype.itemsize == 0 or size != member.file_size - file.tell():
            raise ValueError(f"{member.filename} says shape {shape}, which is not its size")
        return np.frombuffer(file.read(), dtype).reshape(shape)
