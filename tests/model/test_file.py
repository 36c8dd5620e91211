"""Files of models: files that stay, files that are damaged or hostile, and the memory that reading
takes."""

import contextlib
import dataclasses
import functools
import io
import json
import pickle
import re
import runpy
import struct
import tempfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf

from ..conftest import phi_oracle
from .models import FRAME, OF_FRAMES, D, N, X, check_same, fit, model, through_file


@pytest.mark.parametrize("name", ["model.npz", "mod el.bin", "ü.npz"])
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "path"])
def test_the_path_is_taken_as_it_is(name, kind, tmp_path):
    model("fourier").save(kind(tmp_path / name))
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert srf.load(kind(tmp_path / name)).info == model("fourier").info


def test_numpy_reads_the_file_without_pickle(tmp_path):
    model("mixed").save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert np.array_equal(file["coef"], model("mixed").coef)
        of_json = json.loads(model("mixed").to_json())["format"]
        assert json.loads(file["meta"].tobytes())["format"] == of_json


def test_model_of_an_early_stop_is_saved(tmp_path):
    with pytest.warns(srf.ConvergenceWarning):
        m = fit(alpha=1e-4, max_iter=1)
    check_same(m, through_file(m, tmp_path / "m"), X)


# Files that stay, and files of other formats

FILES = Path(__file__).parents[1] / "files"
STAY = [path.stem for path in sorted(FILES.glob("format_*.npz"))]


def test_there_are_files_of_every_format_so_far():
    newest = contents("mixed")[0]["format"]
    assert {int(name.split("_")[1]) for name in STAY} == set(range(1, newest + 1))


@pytest.mark.parametrize("name", STAY)
def test_a_file_that_stays_predicts_what_its_model_did(name, tmp_path):
    _, number, kind = name.split("_")
    rows = runpy.run_path(str(FILES / "make.py"))
    expected = json.loads((FILES / f"format_{number}.json").read_text())[kind]
    old = srf.load(FILES / f"{name}.npz")
    here = rows[{"frame": "FRAME", "times": "TIMES"}.get(kind, "X")]
    assert np.allclose(old.decision_function(here)[:5], expected, rtol=1e-12, atol=1e-12)
    assert old.info.progress == 1.0
    old.save(tmp_path / "again.npz")
    assert srf.load(tmp_path / "again.npz").info == old.info


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        ("7.1.0", "version 7.1.0, which wrote it"),
        (None, "a later version"),
        ("rm -rf; \n" * 9, "a later version"),
    ],
)
def test_a_file_of_a_later_format_says_which_version_is_needed(version, needed, tmp_path):
    meta, _ = contents("mixed")
    newest = meta["format"]
    meta |= {"format": newest + 1, "version": version}
    (tmp_path / "m").write_bytes(archive(members("mixed", meta=meta)))
    with pytest.raises(
        ValueError, match=rf"after {newest}: this is sparserf {srf.__version__}; install {needed}"
    ):
        srf.load(tmp_path / "m")


@pytest.mark.parametrize("number", [0, -1])
def test_there_is_no_format_before_the_first(number, tmp_path):
    (tmp_path / "m").write_bytes(
        archive(members("mixed", meta=contents("mixed")[0] | {"format": number}))
    )
    with pytest.raises(ValueError, match="has no format number: it is not a model"):
        srf.load(tmp_path / "m")


# Hostile files


def contents(kind):
    """Return (meta, arrays) of a saved model."""
    text, every = unpacked(kind)
    return json.loads(text), every


@functools.cache
def unpacked(kind):
    """Return (the bytes of meta, arrays) of a saved model."""
    with np.load(io.BytesIO(saved(kind)), allow_pickle=False) as loaded:
        every = {name: loaded[name] for name in loaded.files}
    return every.pop("meta").tobytes(), every


@functools.cache
def saved(kind):
    """Return the bytes of the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        model(kind).save(f"{folder}/m.npz")
        with open(f"{folder}/m.npz", "rb") as file:
            return file.read()


def named(kind, role):
    """Return the member that plays a role: "dense weights" are the weights of the first block
    without inputs, and so on."""
    if " " not in role:
        return role
    dense, part = role.split()
    every, i = contents(kind)[1], 0
    while (f"inputs_{i}" in every) == (dense == "dense"):
        i += 1
    return f"{part}_{i}"


def npy(array):
    """Return an array in the .npy format, pickled if need be."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=True)
    return file.getvalue()


def archive(members, compression=zipfile.ZIP_STORED):
    """Return a zip file of (name, bytes) pairs, with right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names warn
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def members(kind, meta=None, **changes):
    """Return the members of a saved model with some changed: to arrays, to bytes as they are, or to
    None, which leaves one out."""
    text, every = unpacked(kind)
    if meta is not None:
        text = (
            meta
            if isinstance(meta, bytes)
            else (meta if isinstance(meta, str) else json.dumps(meta)).encode()
        )
    every = {"meta": np.frombuffer(text, np.uint8), **every, **changes}
    return [
        (f"{name}.npy", data if isinstance(data, bytes) else npy(data))
        for name, data in every.items()
        if data is not None
    ]


def load(data, tmp_path):
    """Load a model from these bytes, in a file called hostile.npz."""
    (tmp_path / "hostile.npz").write_bytes(data)
    return srf.load(tmp_path / "hostile.npz")


def refused(data, tmp_path):
    """Check that loading raises a ValueError that names the file, and takes little memory."""
    with pytest.raises(ValueError, match=r"hostile\.npz"), little_memory(data):
        load(data, tmp_path)


@contextlib.contextmanager
def little_memory(data):
    """Check that at most twice the size of the file is allocated, and a constant that zipfile and
    json take."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2 * len(data) + 1_500_000, (peak, len(data))


def use(m):
    """Ask a model out of a broken file: any answer will do, or an error that names X."""
    if m.features.encoder is not None and m.features.encoder.table is not None:
        # other columns may be asked for
        with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"):
            m.predict(FRAME[[name for name in m.feature_names_in_ if name in FRAME]])
        return
    with np.errstate(all="ignore"):
        if m.n_features_in < 1000:
            for dtype in (np.float64, np.float32):
                Z = np.linspace(-3, 3, 40 * m.n_features_in).reshape(40, -1).astype(dtype)
                for layout in (np.asarray, sp.csr_array):
                    try:
                        m.predict(layout(Z))
                    except ValueError as error:  # numbers that overflow
                        assert str(error).startswith("X must be of moderate size")  # noqa: PT017
        repr(m)


def load_and_use(data, tmp_path):
    """Load these bytes and ask the model, or check that the error names the file."""
    try:
        with little_memory(data):
            m = load(data, tmp_path)
    except ValueError as error:
        assert "hostile.npz" in str(error)  # noqa: PT017
    else:
        use(m)


FUZZED = ["mixed", "three", "strings", "interleaved", "bumps", "limited", *OF_FRAMES]


@pytest.mark.parametrize("kind", FUZZED)
def test_the_unchanged_file_loads(kind, tmp_path):
    assert load(saved(kind), tmp_path).info == model(kind).info
    assert load(archive(members(kind)), tmp_path).info == model(kind).info


@pytest.mark.parametrize("kind", FUZZED)
def test_truncated_file(kind, tmp_path):
    data = saved(kind)
    for size in {
        *range(0, len(data), 37),
        *range(min(70, len(data))),
        *range(len(data) - 70, len(data)),
    }:
        with pytest.raises(ValueError, match=r"hostile\.npz"):
            load(data[:size], tmp_path)


@pytest.mark.parametrize("kind", FUZZED)
@pytest.mark.slow
def test_flipped_bytes(kind, tmp_path):
    rng, data = np.random.default_rng(0), saved(kind)
    # zipfile reads near "PK"
    headers = np.flatnonzero(np.frombuffer(data, np.uint8)[:-1] == ord("P"))
    for trial in range(400):
        broken = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            place = (
                rng.integers(len(data))
                if trial % 2
                else min(rng.choice(headers) + rng.integers(60), len(data) - 1)
            )
            broken[place] = rng.integers(256)
        load_and_use(bytes(broken), tmp_path)


@pytest.mark.parametrize("kind", FUZZED)
@pytest.mark.slow
def test_flipped_bytes_under_a_right_checksum(kind, tmp_path):
    rng, whole = np.random.default_rng(1), members(kind)
    for _ in range(400):
        broken, which = list(whole), rng.integers(len(whole))
        name, data = broken[which]
        data = bytearray(data)
        for _ in range(rng.integers(1, 3)):
            data[rng.integers(len(data) if rng.random() < 0.5 else 128)] = rng.integers(256)
        broken[which] = name, bytes(data)
        load_and_use(archive(broken), tmp_path)


@pytest.mark.slow
def test_cut_and_spliced(tmp_path):
    rng, data = np.random.default_rng(2), saved("mixed")
    for _ in range(200):
        i, j, k = np.sort(rng.integers(0, len(data), 3))
        load_and_use(data[:i] + data[j:], tmp_path)
        load_and_use(data[:j] + data[i:k] + data[j:], tmp_path)


@pytest.mark.parametrize("kind", [*FUZZED, "q-sparse", "products", "zero terms"])
@pytest.mark.slow
def test_other_numbers_in_the_metadata(kind, tmp_path):
    rng, text = np.random.default_rng(3), unpacked(kind)[0].decode()
    numbers = list(re.finditer(r"-?\d[\d.e+-]*|null|true|false", text))
    for _ in range(100):
        broken = text
        for k in sorted(rng.choice(len(numbers), rng.integers(1, 4), replace=False), reverse=True):
            broken = (
                broken[: numbers[k].start()] + str(rng.choice(NUMBERS)) + broken[numbers[k].end() :]
            )
        load_and_use(archive(members(kind, meta=broken)), tmp_path)


NUMBERS = [
    "0",
    "-1",
    "1",
    "3",
    "1000000",
    "2147483647",
    "4294967296",
    "9223372036854775807",
    "1" * 400,
    "1.5",
    "1e308",
    "-1e308",
    "5e-324",
    "1e400",
    "null",
    "true",
    "[]",
    '"x"',
]


def header(descr="'<f8'", order="False", shape="(2,)", version=(1, 0)):
    """Return the header of a member in the .npy format."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode("latin1")
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(text))
        + text
    )


HEADERS = {
    "object": npy(np.array([{}, 1], object)),
    "pickle": b"\x80\x04}q\x00.",
    "empty": b"",
    "magic only": b"\x93NUMPY",
    "version 9": header(version=(9, 0)) + bytes(16),
    "version 3": header(version=(3, 0)) + bytes(16),
    "shape 2**60": header(shape=f"({2**60},)") + bytes(16),
    "shape 2**60 squared": header(shape=f"({2**60}, {2**60})") + bytes(16),
    "shape overflows to the size": header(shape=f"({2**32}, {2**32}, 2)") + bytes(16),
    "shape 2**60 of nothing": header(shape=f"({2**60}, 0)"),
    "shape 2**70 of nothing": header(shape=f"({2**70}, 0)"),
    "shape negative": header(shape="(-2,)") + bytes(16),
    "shape negative twice": header(shape="(-1, -2)") + bytes(16),
    "shape float": header(shape="(2.0,)") + bytes(16),
    "shape bool": header(shape="(True, 2)") + bytes(16),
    "shape list": header(shape="[2]") + bytes(16),
    "shape long of python 2": header(shape="(2L,)") + bytes(16),
    "shape of 70 dimensions": header(shape="(" + "1, " * 70 + "2)") + bytes(16),
    "dtype object": header("'|O'") + bytes(16),
    "dtype void": header("'|V8'") + bytes(16),
    "dtype dates": header("'<M8[s]'") + bytes(16),
    "dtype structured": header("[('a', '<f8')]") + bytes(16),
    "dtype subarray": header("('<f8', (2,))", shape="(1,)") + bytes(16),
    "dtype of width 0": header("'<U0'", shape=f"({2**60},)"),
    "dtype of width 2**31": header("'<U2147483647'", shape="(1,)") + bytes(16),
    "dtype unknown": header("'<q9'") + bytes(16),
    "dtype number": header("3") + bytes(16),
    "dtype commas": header("'f8,f8,O'") + bytes(16),
    "dtype None": header("None") + bytes(16),
    "dtype deep": header("[" * 50 + "]" * 50) + bytes(16),
    "order none": header(order="None") + bytes(16),
    "unhashable": header("{[]: 1}") + bytes(16),
    "call": header("__import__('os').system('true')") + bytes(16),
    "operators": header(shape="(9**9**9,)") + bytes(16),
    "open bracket": b"\x93NUMPY\x01\x00\x08\x00{'a': ((" + bytes(16),
    "bad indent": b"\x93NUMPY\x01\x00\x0a\x00  1\n 2\n   " + bytes(16),
    "NUL": b"\x93NUMPY\x01\x00\x08\x00" + bytes(24),
    "not a dict": b"\x93NUMPY\x01\x00\x04\x00(1,)" + bytes(16),
    "deep": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000,
    "deep minus": b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"-" * 8999 + b"1",
    "long header": header(shape="(2," + " " * 60_000 + ")") + bytes(16),
    "longer than the member": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{",
    "one byte short": npy(np.zeros(2))[:-1],
    "one byte long": npy(np.zeros(2)) + b"\0",
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("role", ["coef", "sparse inputs", "meta"])
def test_hostile_member(name, role, tmp_path):
    name_and_data = f"{named('mixed', role)}.npy", HEADERS[name]
    refused(
        archive(
            [
                name_and_data if member[0] == name_and_data[0] else member
                for member in members("mixed")
            ]
        ),
        tmp_path,
    )


def many(data, k):
    """Return a model file with k more members."""
    return archive([*members("mixed"), *((f"x{i}.npy", data) for i in range(k))])


def rewritten(data, *changes):
    """Return the data with bytes replaced wherever they stand."""
    for old, new in changes:
        assert old in data
        data = data.replace(old, new)
    return data


def central(data, offset, format, value):
    """Return the data with a field of the last entry of the central directory changed."""
    at = data.rindex(b"PK\x01\x02") + offset
    return data[:at] + struct.pack(format, value) + data[at + struct.calcsize(format) :]


def zip64(data, **fields):
    """Return the data with a zip64 record of huge sizes and offset in the last entry of the central
    directory."""
    at = data.rindex(b"PK\x01\x02")
    (name,) = struct.unpack("<H", data[at + 28 : at + 30])
    record = struct.pack(
        "<HHQQQ", 1, 24, *(fields.get(f, 100) for f in ("size", "packed", "offset"))
    )
    entry = bytearray(data[at : at + 46 + name])
    entry[20:28] = b"\xff" * 8
    entry[30:32] = struct.pack("<H", len(record))
    entry[42:46] = b"\xff" * 4
    tail = bytearray(data[at + 46 + name :])
    end = tail.rindex(b"PK\x05\x06")
    (size,) = struct.unpack("<I", tail[end + 12 : end + 16])
    tail[end + 12 : end + 16] = struct.pack("<I", size + len(record))
    return data[:at] + bytes(entry) + record + bytes(tail)


ARCHIVES = {
    "empty file": lambda: b"",
    "empty archive": lambda: archive([]),
    "text": lambda: b"hello " * 100,
    "npy": lambda: npy(np.zeros(9)),
    "pickle": lambda: pickle.dumps(model("fourier")),
    "another program": lambda: archive(
        [("weights.npy", npy(np.zeros(9))), ("bias.npy", npy(np.zeros(1)))]
    ),
    "another format": lambda: archive([("word/document.xml", b"<x/>")]),
    "all compressed": lambda: archive(members("mixed"), zipfile.ZIP_DEFLATED),
    "bzip2": lambda: archive(members("mixed"), zipfile.ZIP_BZIP2),
    "lzma": lambda: archive(members("mixed"), zipfile.ZIP_LZMA),
    "bomb": lambda: archive(members("mixed", coef=np.zeros(10**7)), zipfile.ZIP_DEFLATED),
    "bomb called stored": lambda: central(
        archive([("coef.npy", npy(np.zeros(10**7)))], zipfile.ZIP_DEFLATED), 10, "<H", 0
    ),
    "size lies": lambda: central(saved("mixed"), 24, "<I", 2**31),
    "sizes lie": lambda: central(central(saved("mixed"), 24, "<I", 2**31), 20, "<I", 2**31),
    "offset lies": lambda: central(saved("mixed"), 42, "<I", 2**31),
    "offset of another": lambda: central(saved("mixed"), 42, "<I", 0),
    "crc lies": lambda: central(saved("mixed"), 16, "<I", 1),
    "encrypted": lambda: central(saved("mixed"), 8, "<H", 1),
    "method 99": lambda: central(saved("mixed"), 10, "<H", 99),
    "zip64 sizes": lambda: zip64(saved("mixed"), size=2**62, packed=2**62),
    "zip64 sizes 2**64": lambda: zip64(saved("mixed"), size=2**64 - 1, packed=2**64 - 1),
    "zip64 offset": lambda: zip64(saved("mixed"), offset=2**63 - 1),
    "zip64 offset 2**64": lambda: zip64(saved("mixed"), offset=2**64 - 1),
    "duplicate": lambda: archive([*members("mixed"), members("mixed")[1]]),
    "duplicate meta": lambda: archive([*members("mixed"), members("mixed")[0]]),
    "extra": lambda: archive(members("mixed", extra=np.zeros(3))),
    "extra block": lambda: archive(members("mixed", weights_99=np.zeros(3))),
    "extra not npy": lambda: archive([*members("mixed"), ("readme.txt", b"hi")]),
    "folder": lambda: archive([*members("mixed"), ("folder/", b"")]),
    "path up": lambda: archive([*members("mixed"), ("../x.npy", npy(1.0))]),
    "path absolute": lambda: archive([*members("mixed"), ("/tmp/x.npy", npy(1.0))]),
    "path inside": lambda: archive([*members("mixed"), ("a/b.npy", npy(1.0))]),
    "path of windows": lambda: archive([*members("mixed"), ("c:\\x.npy", npy(1.0))]),
    "name long": lambda: archive([*members("mixed"), ("x" * 60_000 + ".npy", npy(1.0))]),
    "name with newline": lambda: archive([*members("mixed"), ("x.npy\n", npy(1.0))]),
    "name in capitals": lambda: archive([*members("mixed"), ("COEF.npy", npy(1.0))]),
    "name in other digits": lambda: archive([*members("mixed"), ("weights_٣.npy", npy(1.0))]),
    "name with NUL": lambda: rewritten(saved("mixed"), (b"support.npy", b"sup\0ort.npy")),
    "many members": lambda: many(b"", 3000),
    "many small arrays": lambda: many(npy(1.0), 1000),
    "comment": lambda: saved("mixed")[:-2] + struct.pack("<H", 60_000) + b"PK\x05\x06" * 15_000,
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_hostile_archive(name, tmp_path):
    refused(ARCHIVES[name](), tmp_path)


ROLES = [
    "coef",
    "intercept",
    "support",
    "dense weights",
    "dense offset",
    "sparse weights",
    "sparse offset",
    "sparse inputs",
]


@pytest.mark.every_case
@pytest.mark.parametrize("role", ["meta", "objective", *ROLES])
def test_missing_member(role, tmp_path):
    refused(
        archive(
            [
                (name, data)
                for name, data in members("mixed")
                if name != f"{named('mixed', role)}.npy"
            ]
        ),
        tmp_path,
    )


def test_classes_where_there_are_none_and_none_where_there_are(tmp_path):
    refused(archive(members("three", classes=None)), tmp_path)
    refused(archive(members("fourier", classes=np.arange(2))), tmp_path)


@pytest.mark.parametrize("role", ROLES)
def test_arrays_of_another_dtype_or_shape(role, tmp_path):
    name = named("mixed", role)
    right = contents("mixed")[1][name]
    wrong = [
        np.zeros(right.shape, t)
        for t in ("f4", "f8", ">f8", "c16", "i4", ">i4", "i8", "u8", "U5", "S5", "?")
    ]
    wrong = [array for array in wrong if array.dtype != right.dtype]
    wrong += [right[None], right[..., None], right.ravel()[:0], np.zeros((2**20, 0), right.dtype)]
    if right.ndim:
        wrong += [right[:-1], np.concatenate([right, right]), right.reshape(-1)[0]]
    if right.ndim == 2:
        wrong += [
            right[:, :0],
            np.hstack([right, right]),
            np.asfortranarray(np.hstack([right, right])),
        ]
    for array in wrong:
        refused(archive(members("mixed", **{name: array})), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "role", ["coef", "intercept", "dense weights", "dense offset", "sparse weights", "objective"]
)
def test_numbers_that_are_not_finite(role, value, tmp_path):
    name = named("mixed", role)
    wrong = np.array(contents("mixed")[1][name])
    wrong.reshape(-1)[0] = value
    refused(archive(members("mixed", **{name: wrong})), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("value", [-1, D, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("kind", ["mixed", "q-sparse"])
def test_inputs_out_of_range(kind, value, tmp_path):
    name = named(kind, "sparse inputs")
    wrong = np.array(contents(kind)[1][name])
    wrong.reshape(-1)[-1] = value
    refused(archive(members(kind, **{name: wrong})), tmp_path)


ORDER = np.arange(30)[::-1].copy()  # an order of the 30 terms of "interleaved"
WRONG_ORDERS = {
    "repeats": np.append(ORDER[:-1], 1),
    "negative": ORDER - 1,
    "too large": ORDER + 1,
    "huge": ORDER * 2**58,
    "short": ORDER[1:],
    "long": np.append(ORDER, 30),
    "none": ORDER[:0],
    "2-d": ORDER.reshape(5, 6),
    "of rows": ORDER[None],
    "0-d": np.array(0),
    "int32": ORDER.astype(np.int32),
    "uint64": ORDER.astype(np.uint64),
    "float": ORDER.astype(float),
    "big endian": ORDER.astype(">i8"),
    "text": ORDER.astype(str),
    "bool": ORDER > 0,
    "nothing": np.zeros((2**20, 0), np.int64),
}


@pytest.mark.every_case
@pytest.mark.parametrize("wrong", WRONG_ORDERS)
def test_wrong_order(wrong, tmp_path):
    use(load(archive(members("interleaved", order=ORDER)), tmp_path))
    refused(archive(members("interleaved", order=WRONG_ORDERS[wrong])), tmp_path)
    refused(archive(members("fourier", order=WRONG_ORDERS[wrong])), tmp_path)


def product(kind):
    """Return (meta, arrays, index of the block of products) of a model."""
    meta, every = contents(kind)
    return (
        meta,
        every,
        next(i for i, block in enumerate(meta["blocks"]) if block["activation"] == "product"),
    )


GAMMAS = {
    "NaN",
    "Infinity",
    "1e999",
    "1e301",
    "0.0",
    "-0.0",
    "-1.0",
    "null",
    "1",
    "true",
    '"1.0"',
    '"knn"',
    "[1.0]",
    "{}",
}


@pytest.mark.parametrize("number", sorted(GAMMAS))
@pytest.mark.parametrize("kind", ["products", "interleaved"])
def test_wrong_gamma_of_products(kind, number, tmp_path):
    meta, _, i = product(kind)
    text = json.dumps(changed(meta, f"blocks.{i}.gamma", "HERE"))
    refused(archive(members(kind, meta=text.replace('"HERE"', number))), tmp_path)
    use(load(archive(members(kind, meta=text.replace('"HERE"', "1e-5"))), tmp_path))
    others = [j for j in range(len(meta["blocks"])) if j != i]
    for j in others:
        text = json.dumps(changed(contents(kind)[0], f"blocks.{j}.gamma", 1.0))
        refused(archive(members(kind, meta=text)), tmp_path)


@pytest.mark.parametrize("kind", ["products", "interleaved"])
def test_wrong_arrays_of_products(kind, tmp_path):
    _, every, i = product(kind)
    inputs, weights, offset = (every[f"{name}_{i}"] for name in ("inputs", "weights", "offset"))
    n, order = inputs.shape
    # D stands for the last input, 0 for the constant 1
    for value in (-1, D + 1, 2**31 - 1, -(2**31)):
        wrong = inputs.copy()
        wrong[-1, -1] = value
        refused(archive(members(kind, **{f"inputs_{i}": wrong})), tmp_path)
    use(load(archive(members(kind, **{f"inputs_{i}": np.full_like(inputs, D)})), tmp_path))
    dense = {f"inputs_{i}": None, f"weights_{i}": np.zeros((n, D))}
    for wrong in (
        {f"inputs_{i}": None},
        dense,
        {f"inputs_{i}": inputs[:, :0]},
        {f"offset_{i}": offset + 1.0},
        {f"offset_{i}": None},
        {f"inputs_{i}": inputs[:-1]},
        {f"inputs_{i}": inputs.astype(np.int64)},
    ):
        refused(archive(members(kind, **wrong)), tmp_path)
    shapes = [(n,), (1, n), (n, order), (n, D), (n, 0), (n - 1, 1), (n + 1, 1), (n, 1, 1)]
    for wrong in (
        *map(np.zeros, shapes),
        weights.astype(np.float32),
        weights * np.nan,
        weights + np.inf,
    ):
        refused(archive(members(kind, **{f"weights_{i}": wrong})), tmp_path)
    for size in (1.7e308, -1.7e308, 5e-324, 0.0):
        use(load(archive(members(kind, **{f"weights_{i}": np.full_like(weights, size)})), tmp_path))


@pytest.mark.parametrize("sparse", [False, True])
def test_wrong_arrays_of_bumps(sparse, tmp_path):
    meta, every = contents("bumps")
    i = next(i for i in range(len(meta["blocks"])) if (f"inputs_{i}" in every) == sparse)
    weights, centers, offset = (every[f"{name}_{i}"] for name in ("weights", "centers", "offset"))
    for wrong in (
        None,
        centers[:-1],
        centers[:, :-1],
        centers[0],
        centers.T,
        centers.astype(np.float32),
        centers * np.nan,
        centers + np.inf,
        np.hstack([centers, centers]),
    ):
        refused(archive(members("bumps", **{f"centers_{i}": wrong})), tmp_path)
    for changed_array in (
        {f"weights_{i}": weights[:, :-1]},
        {f"offset_{i}": offset + 1},
        {f"offset_{i}": offset[:-1]},
    ):
        refused(archive(members("bumps", **changed_array)), tmp_path)
    for name, value in (("activation", "cos"), ("gamma", 1.0), ("scale", 1)):
        refused(
            archive(
                members("bumps", meta=changed(contents("bumps")[0], f"blocks.{i}.{name}", value))
            ),
            tmp_path,
        )
    for size in (1.7e308, -1.7e308, 5e-324, 0.0):
        for name, like in (("weights", weights), ("centers", centers)):
            use(
                load(
                    archive(members("bumps", **{f"{name}_{i}": np.full_like(like, size)})), tmp_path
                )
            )


def test_bumps_of_an_input_twice(tmp_path):
    """Weights of 0 may have any inputs; others must have different ones."""
    meta, every = contents("bumps")
    i = next(i for i in range(len(meta["blocks"])) if f"inputs_{i}" in every)
    twice = np.full_like(every[f"inputs_{i}"], 1)
    refused(archive(members("bumps", **{f"inputs_{i}": twice})), tmp_path)
    weights = every[f"weights_{i}"] * [1, 0]
    m = load(archive(members("bumps", **{f"inputs_{i}": twice, f"weights_{i}": weights})), tmp_path)
    np.testing.assert_allclose(
        m.predict(X), phi_oracle(m.features, X) @ m.coef + m.intercept, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["linear", "fourier"])
def test_linear_functions_with_an_offset(kind, tmp_path):
    """No algorithm makes linear functions with an offset, but the format allows them."""
    meta, every = contents(kind)
    changed(meta, "blocks.0.activation", "identity")
    offset = np.random.default_rng(0).standard_normal(len(every["offset_0"]))
    m = load(archive(members(kind, meta=meta, offset_0=offset)), tmp_path)
    np.testing.assert_allclose(
        m.predict(X), phi_oracle(m.features, X) @ m.coef + m.intercept, rtol=1e-12, atol=1e-12
    )
    m.save(tmp_path / "again")
    check_same(m, srf.load(tmp_path / "again"), X)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "wrong",
    [
        np.arange(2),
        np.arange(4),
        np.arange(3)[None],
        np.array(3),
        np.zeros(3),
        np.array([0.0, 1.0, np.nan]),
        np.array([2, 1, 0]),
        np.array([0, 0, 1]),
        np.zeros(3, "c16"),
        np.zeros(3, "M8[s]"),
    ],
    ids=repr,
)
def test_wrong_classes(wrong, tmp_path):
    refused(archive(members("three", classes=wrong)), tmp_path)


@pytest.mark.parametrize("change", ["reversed", "negative", "repeated"])
def test_wrong_support(change, tmp_path):
    right = contents("fourier")[1]["support"]
    wrong = {
        "reversed": right[::-1],
        "negative": right - right.max() - 1,
        "repeated": np.zeros_like(right),
    }[change]
    refused(archive(members("fourier", support=np.ascontiguousarray(wrong))), tmp_path)


WRONG = [None, True, False, 0, -1, 1.5, 2**70, 10**400, "", "a", [], [1], [[]], {}, {"a": 1}]
FIELDS = {  # whether a value of the field is legal; None: no value of WRONG is
    "format": lambda v: v == 1,
    "version": lambda v: isinstance(v, str),
    "loss": lambda v: isinstance(v, str) and v,  # a loss that a user defines may have any name
    "loss_parameters": lambda v: v == {},
    "link": None,
    "n_features_in": None,
    "blocks": None,
    "info": None,
    "blocks.0": None,
    "blocks.0.activation": None,
    "blocks.0.scale": lambda v: type(v) is float,
    "blocks.0.gamma": lambda v: v is None,
    "info.n_iter": lambda v: type(v) is int,
    "info.n_drawn": lambda v: type(v) is int,
    "info.n_nonzero": lambda v: type(v) is int,
    "info.converged": lambda v: isinstance(v, bool),
    "info.dual_gap": lambda v: v is None or (type(v) in (int, float) and v < 2**1000),
    "info.progress": None,
    "info.cut": lambda v: v == {} or v == {"a": 1},
    "info.fidelity": lambda v: v is None or type(v) is float,
    "info.alpha": lambda v: v is None or (type(v) in (int, float) and v < 2**1000),
}


def changed(meta, field, value):
    """Return meta with a field, given by its path, changed."""
    *way, last = field.split(".")
    place = functools.reduce(lambda part, key: part[int(key) if key.isdigit() else key], way, meta)
    place[int(last) if last.isdigit() else last] = value
    return meta


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", ["mixed", "zero terms"])
def test_metadata_of_a_wrong_type(field, kind, tmp_path):
    if kind == "zero terms" and field.startswith("blocks."):
        pytest.skip("no blocks")
    legal = FIELDS[field] or (lambda v: (kind, field, v) == ("zero terms", "blocks", []))
    accepted = []
    for value in WRONG:
        if not legal(value):
            try:
                refused(
                    archive(members(kind, meta=changed(contents(kind)[0], field, value))), tmp_path
                )
            except pytest.fail.Exception:
                accepted.append(value)
    assert accepted == []


@pytest.mark.every_case
@pytest.mark.parametrize("field", [field for field in FIELDS if not field.endswith("0")])
def test_metadata_without_a_field(field, tmp_path):
    meta = contents("mixed")[0]
    *way, last = field.split(".")
    del functools.reduce(lambda part, key: part[int(key) if key.isdigit() else key], way, meta)[
        last
    ]
    refused(archive(members("mixed", meta=meta)), tmp_path)


@pytest.mark.parametrize("field", ["", "info", "blocks.0"])
def test_metadata_with_another_field(field, tmp_path):
    meta = contents("mixed")[0]
    functools.reduce(
        lambda part, key: part[int(key) if key.isdigit() else key],
        filter(None, field.split(".")),
        meta,
    )["x"] = 1
    load_and_use(archive(members("mixed", meta=meta)), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    "field", ["info.dual_gap", "info.alpha", "blocks.0.scale", "n_features_in"]
)
def test_json_numbers_that_are_not_finite(number, field, tmp_path):
    text = json.dumps(changed(contents("mixed")[0], field, "HERE")).replace('"HERE"', number)
    refused(archive(members("mixed", meta=text)), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[]",
        "null",
        "1",
        '"a"',
        "{}",
        '{"format": 1}',
        '{"format": 2}',
        "[" * 100_000,
        "[" * 500 + "]" * 500,
        '{"a":' * 100_000,
        b"\xff\xfe\x00",
        b"\x80abc",
        b"\0" * 1000,
        "9" * 10_000,
        '{"format": 1, "format": 2}',
        "\ufeff{}",
        '{"a": "\\ud800"}',
        '{"format": 1, "loss": "squared", "n_features_in": 4, "blocks": [], "info": {}}',
    ],
    ids=lambda text: f"{text[:20]!r}",
)
def test_metadata_that_is_no_metadata(text, tmp_path):
    refused(archive(members("mixed", meta=text)), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 10**5 + "1]",
        "{" + ",".join(f'"{i}":1' for i in range(3 * 10**4)) + "}",
        "[" + "1.5," * 10**5 + "1]",
    ],
    ids=["lists", "keys", "numbers"],
)
def test_metadata_that_swells_in_memory(text, tmp_path):
    """Only a little of such text is parsed; the rest is refused unparsed."""
    for padding in (0, 10**6, 10**7):
        refused(archive(members("mixed", meta=text, padding=np.zeros(padding, np.uint8))), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("d", [1, D - 1, D + 1, 1000, 2**31, 2**61, 2**62, 2**63])
def test_another_number_of_inputs(d, tmp_path):
    refused(archive(members("mixed", meta=contents("mixed")[0] | {"n_features_in": d})), tmp_path)


# kinds whose arrays do not tell the number of inputs
SPARSE_KINDS = ["q-sparse", "linear", "products alone", "zero terms"]


@pytest.mark.every_case
@pytest.mark.parametrize("kind", SPARSE_KINDS)
@pytest.mark.parametrize("d", [0, -1, 2**27 + 1, 2**31, 2**40, 2**62, 2**63, 10**30])
def test_inputs_by_the_billion(kind, d, tmp_path):
    refused(archive(members(kind, meta=contents(kind)[0] | {"n_features_in": d})), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_many_inputs(kind, tmp_path):
    """A model may see few of very many inputs; what it answers takes memory for those few alone."""
    d = 2**22
    m = load(archive(members(kind, meta=contents(kind)[0] | {"n_features_in": d})), tmp_path)
    with little_memory(b""):
        assert len(m.features.names()) == len(m.features)
        with pytest.raises(ValueError, match=f"X must have {d} columns, got {D}"):
            m.predict(X)
    wide = sp.csr_array(X)
    wide.resize(N, d)
    np.testing.assert_allclose(
        m.predict(wide), load(saved(kind), tmp_path).predict(X), rtol=1e-9, atol=1e-12
    )
    m.save(tmp_path / "again")
    assert srf.load(tmp_path / "again").n_features_in == d


@pytest.mark.slow
def test_more_inputs_than_load_believes_are_not_saved(tmp_path):
    features = srf.FeatureSet(model("q-sparse").features.blocks, 2**28)
    with pytest.raises(
        ValueError, match=r"n_features_in must be at most 134217728, .* got 268435456"
    ):
        dataclasses.replace(model("q-sparse"), features=features).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_large_file_takes_twice_its_size(tmp_path):
    features = srf.Fourier(gamma=1.0).draw(200, 5000, rng=0)
    dataclasses.replace(
        model("fourier"), coef=np.ones(200), support=np.arange(200), features=features
    ).save(tmp_path / "m.npz")
    data = (tmp_path / "m.npz").read_bytes()
    assert len(data) > 8e6
    with little_memory(data):
        assert load(data, tmp_path).n_features_in == 5000


@pytest.mark.parametrize("kind", OF_FRAMES)
def test_a_table_goes_through_a_file(kind, tmp_path):
    m, X = model(kind), OF_FRAMES[kind]["X"]
    back = through_file(m, tmp_path / "m")
    assert back.feature_names_in_ == m.feature_names_in_ == tuple(
        X
    ) and back.features.encoder.is_same(m.features.encoder)
    assert (
        np.array_equal(back.predict(X), m.predict(X))
        and back.features.names() == m.features.names()
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*holds words that are others in each row")
def test_a_hundred_thousand_levels(tmp_path):
    n = 100_000
    X = pd.DataFrame(
        {
            "id": [f"level {k}" for k in np.random.default_rng(0).permutation(n)],
            "x": np.linspace(0, 1, n),
        }
    )
    X["name of a column " * 50] = np.arange(n) % 2
    m = srf.drp(X, X["x"], alpha=0.1, rng=0)
    m.save(tmp_path / "m")
    back = srf.load(tmp_path / "m")
    assert back.feature_names_in_ == tuple(X) and len(back.features.encoder.table.levels[0]) == n
    assert np.array_equal(back.predict(X[:1000]), m.predict(X[:1000]))


TABLE_ARRAYS = ["table_kind", "table_size", "table_text", "table_end"]


@pytest.mark.every_case
@pytest.mark.parametrize("name", TABLE_ARRAYS)
@pytest.mark.parametrize("kind", OF_FRAMES)
def test_tables_that_are_not_whole(kind, name, tmp_path):
    array = unpacked(kind)[1][name]
    # Any bytes of text are legal, and so is any kind of a column without levels.
    changes = [
        None,
        array[:-1],
        np.append(array, array[-1:]),
        array[None],
        array.astype(np.float64),
        array.astype("U"),
    ]
    changes += [np.full_like(array, 255)] if name == "table_text" else [-1 - array, array[:0]]
    for change in changes:
        with pytest.raises(ValueError, match=r"hostile\.npz is not a whole model"):
            load(archive(members(kind, **{name: change})), tmp_path)


@pytest.mark.parametrize("kind", OF_FRAMES)
@pytest.mark.slow
def test_other_numbers_in_a_table(kind, tmp_path):
    rng = np.random.default_rng(4)
    for _ in range(200):
        name = str(rng.choice(TABLE_ARRAYS))
        broken = unpacked(kind)[1][name].copy()
        values = (
            [0, 1, 255]
            if broken.dtype == np.uint8
            else [0, -1, 1, 2, 3, 5, 100, 2**31, 2**62, -(2**63)]
        )
        broken[rng.integers(len(broken), size=rng.integers(1, 3))] = rng.choice(values)
        load_and_use(archive(members(kind, **{name: broken})), tmp_path)


@pytest.mark.parametrize("kind", ["limited", "limited counts"])
def test_limits_are_finite_and_ordered(kind, tmp_path):
    meta = contents(kind)[0]
    for field in ("lower", "upper"):
        for value in (*WRONG, 10.0 if field == "lower" else -10.0):
            if value is not None and (type(value) is not float or abs(value) == 10):
                refused(archive(members(kind, meta=meta | {field: value})), tmp_path)
        m = load(archive(members(kind, meta=meta | {field: None})), tmp_path)
        assert getattr(m, field) is None and {m.lower, m.upper} != {None}
    text = json.dumps(meta | {"lower": "HERE"}).replace('"HERE"', "-1e999")
    refused(archive(members(kind, meta=text)), tmp_path)
    for large in (-1e300, 1e300):  # beyond all logarithms
        use(
            load(
                archive(
                    members(kind, meta=meta | {"lower": min(large, 0.0), "upper": max(large, 0.0)})
                ),
                tmp_path,
            )
        )
    refused(archive(members("three", meta=contents("three")[0] | {"lower": 0.0})), tmp_path)


def test_ranges_are_finite_and_ordered(tmp_path):
    column, ends = (contents("limited")[1][name] for name in ("range_column", "range_ends"))
    assert len(column) == D and ends.shape == (D, 2)
    for wrong in (
        None,
        column[::-1].copy(),
        column - 1,
        column + 1,
        np.zeros_like(column),
        column[:-1],
        column.astype(float),
    ):
        refused(archive(members("limited", range_column=wrong)), tmp_path)
    for wrong in (
        None,
        ends[:, ::-1].copy(),
        ends[:-1],
        ends.T.copy(),
        ends.astype(np.float32),
        ends * np.nan,
        ends + np.inf,
    ):
        refused(archive(members("limited", range_ends=wrong)), tmp_path)
    refused(archive(members("limited", range_column=column[:0], range_ends=ends[:0])), tmp_path)
    some = load(
        archive(members("limited", range_column=column[1:3], range_ends=ends[1:3])), tmp_path
    )
    assert some.ranges == {1: tuple(ends[1]), 2: tuple(ends[2])}
    is_category = [j for j, name in enumerate(FRAME) if name == "city"]
    refused(
        archive(members("frame", range_column=np.array(is_category), range_ends=ends[:1])), tmp_path
    )


def test_values_that_columns_took_are_ascending_and_end_with_the_range(tmp_path):
    column, ends = (contents("limited")[1][name] for name in ("range_column", "range_ends"))
    middle = ends[1].mean()
    right = {
        "taken_column": np.array([1, 2]),
        "taken_size": np.array([3, 2]),
        "taken_value": np.array([ends[1, 0], middle, ends[1, 1], *ends[2]]),
    }
    assert len(column) == D
    m = load(archive(members("limited", **right)), tmp_path)
    assert {j: len(values) for j, values in m.ranges.taken.items()} == {1: 3, 2: 2}
    value = right["taken_value"]
    for name, wrong in (
        *((name, None) for name in right),
        ("taken_column", np.array([2, 1])),
        ("taken_column", np.array([1, D])),
        ("taken_column", np.array([1.0, 2.0])),
        ("taken_column", np.array([1])),
        ("taken_size", np.array([2, 3])),
        ("taken_size", np.array([5, 0])),
        ("taken_size", np.array([3, 2**62])),
        ("taken_size", np.array([3, 2, 1])),
        ("taken_value", value[[0, 0, 2, 3, 4]]),
        ("taken_value", value[[0, 2, 1, 3, 4]]),
        ("taken_value", value + 1),
        ("taken_value", value[:-1]),
        ("taken_value", value[:, None]),
        ("taken_value", value * np.nan),
        ("taken_value", value.astype(np.float32)),
    ):
        refused(archive(members("limited", **(right | {name: wrong}))), tmp_path)


@pytest.mark.parametrize("kind", ["linear", "q-sparse"])
def test_coefficients_that_must_be_nonnegative_are(kind, tmp_path):
    m = model(kind)
    features = srf.FeatureSet(
        [dataclasses.replace(block, nonnegative=True) for block in m.features.blocks], D
    )
    m = dataclasses.replace(m, features=features, coef=np.abs(m.coef))
    back = through_file(m, tmp_path / "m")
    check_same(m, back, X)
    assert (
        back.features.nonnegative.all()
        and srf.SparseModel.from_json(m.to_json()).features.nonnegative.all()
    )
    meta = contents(kind)[0]
    changed(meta, "blocks.0.nonnegative", True)
    use(load(archive(members(kind, meta=meta, coef=m.coef)), tmp_path))
    refused(archive(members(kind, meta=meta, coef=-m.coef)), tmp_path)
    for value in WRONG:
        if value is not True:
            refused(
                archive(
                    members(kind, meta=changed(meta, "blocks.0.nonnegative", value), coef=m.coef)
                ),
                tmp_path,
            )


@pytest.mark.parametrize("kind", ["products alone", "bumps"])
def test_no_other_features_are_nonnegative(kind, tmp_path):
    meta = changed(contents(kind)[0], "blocks.0.nonnegative", True)
    refused(archive(members(kind, meta=meta, coef=np.abs(contents(kind)[1]["coef"]))), tmp_path)


def test_blocks_that_do_not_match(tmp_path):
    meta = contents("mixed")[0]
    for blocks in (
        meta["blocks"][:-1],
        meta["blocks"] + meta["blocks"][:1],
        meta["blocks"][::-1] * 100,
    ):
        refused(archive(members("mixed", meta=meta | {"blocks": blocks})), tmp_path)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("fourier", "logistic"),
        ("logistic", "squared"),
        ("three", "squared"),
        ("fourier", "squared_hinge"),
    ],
)
def test_loss_that_does_not_match(kind, loss, tmp_path):
    refused(archive(members(kind, meta=contents(kind)[0] | {"loss": loss})), tmp_path)


def test_extreme_but_consistent_numbers_do_not_crash(tmp_path):
    for size in (1.7e308, -1.7e308, 5e-324, 1e200):
        for role in (
            "coef",
            "intercept",
            "dense weights",
            "dense offset",
            "sparse weights",
            "sparse offset",
        ):
            name = named("mixed", role)
            use(
                load(
                    archive(
                        members("mixed", **{name: np.full_like(contents("mixed")[1][name], size)})
                    ),
                    tmp_path,
                )
            )
        use(
            load(
                archive(
                    members("mixed", meta=changed(contents("mixed")[0], "blocks.0.scale", size))
                ),
                tmp_path,
            )
        )


@pytest.mark.parametrize("missing", ["nothing here", "nothing/here"])
def test_path_that_is_missing(missing, tmp_path):
    with pytest.raises(FileNotFoundError):
        srf.load(tmp_path / missing)


def test_path_that_is_no_file(tmp_path):
    with pytest.raises((OSError, ValueError)):
        srf.load(tmp_path)
    with pytest.raises((OSError, ValueError)):
        srf.load("nul\0byte")
    with pytest.raises((TypeError, ValueError)):
        srf.load(None)


def test_file_is_closed_after_an_error(tmp_path):
    refused(b"nothing", tmp_path)
    (tmp_path / "hostile.npz").unlink()  # ResourceWarning is an error here


def test_saving_where_one_cannot(tmp_path):
    with pytest.raises(OSError):  # noqa: PT011
        model("fourier").save(tmp_path / "no" / "such" / "folder")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(OSError):  # noqa: PT011
        model("fourier").save(tmp_path / "folder")
