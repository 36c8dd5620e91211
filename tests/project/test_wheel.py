"""What is installed: one small abi3 extension set that links nothing but the C library, and no
sources or tests."""

import shutil
import subprocess
import sysconfig
from importlib.metadata import files
from pathlib import Path

import pytest

INSTALLED = [Path(file.locate()) for file in files("sparserf") if "__pycache__" not in str(file)]
EXTENSIONS = [path for path in INSTALLED if path.suffix in (".so", ".pyd")]


def test_no_sources_and_no_tests():
    assert not {path.suffix for path in INSTALLED} & {".pyx", ".pxd", ".c", ".h", ".build"}
    assert not any("test" in path.name for path in INSTALLED)


def test_it_is_small():
    """Every kernel for three instruction sets takes at most 1.5 MB, the Python sources 2 MB: no
    more may come in."""
    assert sum(path.stat().st_size for path in EXTENSIONS) < 1.8e6
    assert sum(path.stat().st_size for path in INSTALLED) < 4.2e6


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="interpreters without the GIL have none",
)
def test_stable_abi():
    assert len(EXTENSIONS) >= 5
    assert all(".abi3." in path.name or path.suffix == ".pyd" for path in EXTENSIONS)


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not there")
def test_links_the_c_library_only():
    for path in EXTENSIONS:
        lines = subprocess.run(
            ["readelf", "-d", path], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        needed = {line.split("[")[1].split(".so")[0] for line in lines if "NEEDED" in line}
        assert needed <= {"libc", "libm", "ld-linux-x86-64"}, path
