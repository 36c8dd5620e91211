"""Files that are written whole or not at all: by `save`, `to_c`, `to_sql` and `to_onnx`."""

import io
import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import sparserf as srf
from sparserf._base.files import new_file

X = np.random.default_rng(0).normal(size=(40, 3))
WRITERS = ["save", "to_c", "to_sql", "to_onnx"]


@pytest.fixture(scope="module")
def model():
    return srf.harfe(X, X[:, 0], n_nonzero_coefs=3, alpha=1e-4, n_components=20, rng=0)


def write(model, how, path):
    if how == "to_onnx":
        pytest.importorskip("onnx")
    getattr(model, how)(path)


def contents(folder):
    """Return the bytes of each file of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("how", WRITERS)
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), MemoryError(), KeyboardInterrupt()]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_fails_leaves_what_was_there(model, how, error, is_there, monkeypatch, tmp_path):
    """A write that fails at its first byte or at its end leaves the folder as it was."""
    path = tmp_path / "model.npz"
    if is_there:
        path.write_bytes(b"earlier")
    before = contents(tmp_path)

    def fails(*_):
        raise error

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(type(error)):
                write(model, how, path)
        assert contents(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("how", WRITERS)
def test_a_process_that_is_killed_leaves_what_was_there(how, tmp_path):
    if how == "to_onnx":
        pytest.importorskip("onnx")
    path = tmp_path / "model.npz"
    path.write_bytes(b"earlier")
    code = f"""
import os, signal, numpy as np, sparserf as srf
model = srf.mfga(np.eye(3), [1.0, 2.0, 3.0], n_nonzero_coefs=1, rng=0)
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
model.{how}({str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"earlier"


@pytest.mark.parametrize("how", WRITERS)
def test_a_reader_never_sees_a_part(model, how, tmp_path):
    """While a file is written again and again, who reads it finds a whole one."""
    path = tmp_path / "model.npz"
    write(model, how, path)
    whole, seen, is_over = path.read_bytes(), set(), threading.Event()

    def read():
        while not is_over.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        write(model, how, path)
    is_over.set()
    reader.join()
    assert seen == {whole}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_permissions_stay(mode, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"earlier")
    path.chmod(mode)
    with new_file(path) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode and contents(tmp_path) == {"file": b"new"}


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    with new_file(tmp_path / "one") as file:
        file.write(b"new")
    (tmp_path / "other").write_bytes(b"new")
    assert (tmp_path / "one").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write all files")
def test_a_file_that_may_not_be_written_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"earlier")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="file"), new_file(path) as file:
        file.write(b"new")
    assert contents(tmp_path) == {"file": b"earlier"}


@pytest.mark.parametrize("is_there", [True, False])
def test_links_stay(is_there, tmp_path):
    """What a link points to is replaced, also at the end of several links, and where it is not
    there yet."""
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "file"
    if is_there:
        target.write_bytes(b"earlier")
    (tmp_path / "one").symlink_to("folder/file")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with new_file(tmp_path / "two") as file:
        file.write(b"new")
    assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()
    assert contents(tmp_path / "folder") == {"file": b"new"}


@pytest.mark.parametrize(
    "kind", [str, os.fsencode, lambda path: path], ids=["str", "bytes", "path"]
)
def test_long_and_relative_paths(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x" * 255, "ü ö.bin", "./file"):
        with new_file(kind(name)) as file:
            file.write(b"new")
    assert len(contents(tmp_path)) == 3 and set(contents(tmp_path).values()) == {b"new"}


def test_pipes_and_devices_are_written_as_they_are(tmp_path):
    with new_file(os.devnull) as file:
        file.write(b"new")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with new_file(tmp_path / "pipe") as file:
        file.write(b"new")
    reader.join()
    assert got == [b"new"] and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize(
    ("where", "error"), [("", IsADirectoryError), ("none/file", FileNotFoundError)]
)
def test_paths_of_no_file_are_errors(where, error, tmp_path):
    with pytest.raises(error), new_file(tmp_path / where):
        pass
    assert not contents(tmp_path)


def test_graphs_are_written_to_open_files_and_in_the_format_of_their_ending(model, tmp_path):
    onnx = pytest.importorskip("onnx")
    file = io.BytesIO()
    graph = model.to_onnx(file)
    assert file.getvalue() == graph.SerializeToString()
    for name in ("model.onnx", "model.json", "model.txtpb"):
        model.to_onnx(tmp_path / name)
        assert onnx.load(tmp_path / name) == graph
    assert (tmp_path / "model.json").read_text().startswith("{")
