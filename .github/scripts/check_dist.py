"""What is in the wheels and source distributions given: contents, sizes, metadata, licence, and the
checksums of RECORD."""

import base64
import csv
import email
import hashlib
import re
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSION = re.search(r"^  version: '(.+)'", (ROOT / "meson.build").read_text(), re.M)[1]
LICENSE = (ROOT / "LICENSE").read_bytes()
SOURCES = (".pyx", ".pxd", ".c", ".h", ".in", "meson.build")


def check_metadata(text):
    metadata = email.message_from_bytes(text)
    expected = {
        "Name": "sparserf",
        "Version": VERSION,
        "License-Expression": "BSD-3-Clause",
        "License-File": "LICENSE",
    }
    assert {key: metadata[key] for key in expected} == expected, metadata.items()
    assert metadata["Requires-Python"] == ">=3.11"


def check_wheel(path):
    assert path.stat().st_size < 1e6, "larger than 1 MB"
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    info = f"sparserf-{VERSION}.dist-info"
    record = {
        name: checksum
        for name, checksum, _ in csv.reader(files[f"{info}/RECORD"].decode().splitlines())
    }
    assert record.pop(f"{info}/RECORD") == ""
    expected = {name: checksum(data) for name, data in files.items() if not name.endswith("RECORD")}
    assert record == expected, record.items() ^ expected.items()
    assert {name.split("/")[0] for name in files} == {"sparserf", info}
    assert not [name for name in files if name.endswith(SOURCES) or "test" in name]
    assert files[f"{info}/licenses/LICENSE"] == LICENSE
    check_metadata(files[f"{info}/METADATA"])


def checksum(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def check_sdist(path):
    assert path.stat().st_size <= 1e6, "larger than 1 MB"
    folder = f"sparserf-{VERSION}/"
    with tarfile.open(path) as sdist:
        files = {
            member.name.removeprefix(folder): sdist.extractfile(member).read()
            for member in sdist
            if member.isfile()
        }
    present = {name.split("/")[0] for name in files if not name.startswith(".")}
    assert present == {
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "docs",
        "meson.build",
        "meson.options",
        "pyproject.toml",
        "sparserf",
        "tests",
        "tools",
    }, present
    assert not [name for name in files if name.endswith((".png", ".so", ".pyc"))]
    assert files["LICENSE"] == LICENSE
    check_metadata(files["PKG-INFO"])


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument)
        (check_wheel if path.suffix == ".whl" else check_sdist)(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, as it should be")
