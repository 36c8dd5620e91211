"""A report of a bug says what is installed and in use, and no path."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sparserf as srf
from sparserf._core.rows import LEVEL, LEVELS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def told(capsys):
    """Return a function that returns what is printed, {name: value}."""

    def tell():
        srf.show_versions()
        lines = capsys.readouterr().out.splitlines()
        return dict(line[2:].split(": ", 1) for line in lines if line.startswith("  "))

    return tell


def test_every_requirement_is_told(told):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    of_all = [*project["dependencies"], *(each for extra in extras for each in extra)]
    names = {re.match(r"[\w-]+", each)[0] for each in of_all}
    assert names | {"sparserf", "pandas"} <= told().keys()
    assert told()["sparserf"] == srf.__version__ and told()["numpy"] == np.__version__


def test_what_is_not_installed_is_told(told, monkeypatch):
    def without_onnx(name):
        if name == "onnx":
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr("sparserf._base.versions.version", without_onnx)
    assert told()["onnx"] == "not installed" and told()["scipy"] == version("scipy")


def test_what_is_in_use_is_told(told, monkeypatch):
    monkeypatch.setenv("SPARSERF_LEVEL", LEVELS[0])  # read at import: too late to be in use
    with threadpool_limits(1):
        one = told()
    assert one["level in use"] == LEVELS[LEVEL] and one["SPARSERF_LEVEL"] == LEVELS[0]
    for library in threadpool_info():
        if library["user_api"] == "blas":
            name = f"{library['internal_api']} of {Path(library['filepath']).name}"
            assert one[name].endswith("num threads 1")


def test_no_path_is_told(told):
    assert not [value for item in told().items() for value in item if "/" in value or "\\" in value]
