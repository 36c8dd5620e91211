"""Reading and writing the arrays of a model. A file is never trusted: nothing runs, nothing is allocated beyond its size."""

import json
import os
import re
import zipfile

import numpy as np

FORMAT = 1
MEMBER = re.compile(r"[a-z0-9_]{1,40}\.npy")


def write(path, meta, arrays):
    """An uncompressed .npz of the arrays, with meta as JSON bytes."""
    text = json.dumps({"format": FORMAT, **meta}, allow_nan=False).encode()
    with open(path, "wb") as file:
        np.savez(file, meta=np.frombuffer(text, np.uint8), **arrays)


def read(path):
    """(meta, arrays); ValueError for anything that `write` would not have written."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            arrays = _members(archive, os.fstat(file.fileno()).st_size)
        meta = json.loads(arrays.pop("meta").tobytes())
    except OSError as error:
        if error.filename is not None:  # there is no such file, or it may not be read
            raise
        raise ValueError(f"{path} is not a model file: {error}") from None
    except (ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is not a model file: {type(error).__name__}: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{path} has no format number {FORMAT}; it may come from another version of sparserf")
    return meta, arrays


def _members(archive, file_size):
    members = archive.infolist()
    names = [member.filename for member in members]
    if len(set(names)) != len(names) or not all(MEMBER.fullmatch(name) for name in names):
        raise ValueError(f"unexpected members {names[:5]}")
    if any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members):
        raise ValueError("compressed members")
    if sum(member.file_size for member in members) > file_size:  # overlapping members, or sizes that lie
        raise ValueError("members larger than the file")
    return {member.filename[:-4]: _array(archive, member) for member in members}


def _array(archive, member):
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = read_header(file, max_header_size=10_000)
        if dtype.kind not in "fiubUS" or dtype.itemsize == 0 or (fortran and len(shape) > 1):
            raise ValueError(f"{member.filename} has dtype {dtype}")
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size != member.file_size - file.tell() or any(length < 0 for length in shape):
            raise ValueError(f"{member.filename} says shape {shape}, which is not its size")
        return np.frombuffer(file.read(), dtype).reshape(shape)
