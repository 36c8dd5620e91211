"""What the documents promise: examples that run, names that exist, an import that is cheap."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparserf as srf

MODULES = [m.name for m in pkgutil.walk_packages(srf.__path__, "sparserf.") if "_core." not in m.name]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.slow
def test_the_examples_of_where_rows_may_live_run(tmp_path, monkeypatch):
    """In the order of the page, each after the others."""
    page = Path(__file__).parents[1] / "docs" / "rows.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(code, page.name, "exec"), names)
        model = names["model"]
        assert np.mean((model.predict(names["X"]) - names["y"]) ** 2) < 0.05 * np.var(names["y"])


def test_every_public_name_has_a_docstring_with_an_example():
    for name in srf.__all__:
        thing = getattr(srf, name)
        assert thing.__doc__, name
        if name not in (
            "BlockError",
            "ConvergenceWarning",
            "CrossValidation",
            "FitInfo",
            "Intervals",
            "SparseModel",
            "baselines",
            "plot",
        ):  # made by the functions, shown there
            assert ">>>" in thing.__doc__, name


def test_the_public_names():
    assert sorted(srf.__all__) == [
        "BlockError", "Chunks", "ConvergenceWarning", "CrossValidation", "FeatureSet", "FitInfo", "Fourier", "Intervals",
        "Linear", "Perceptron", "RandomNeurons", "SparseModel", "Sums", "Taylor", "baselines", "calibrated", "cross_validate",
        "drp", "drp_path", "harfe", "harfe_path", "intervals", "load", "losses", "mfga", "mfga_path", "plot", "prune",
        "sparse_rf", "sparse_rf_path",
    ]  # fmt: skip


def test_the_names_of_the_baselines():
    names = ["KernelModel", "boosting", "eerf", "kernel_ridge", "kernel_svm", "lkrf", "random_projection", "rks", "srfe"]
    assert sorted(srf.baselines.__all__) == names
    for name in names[1:]:  # KernelModel is made by two of them
        assert ">>>" in getattr(srf.baselines, name).__doc__, name


def loaded_by(code, tmp_path):
    """The modules that this code loads after numpy."""
    code = f"import sys, numpy; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before), sep=',')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    return set(done.stdout.strip().split(","))


def test_import_loads_numpy_and_little_else(tmp_path):
    loaded = loaded_by("import sparserf", tmp_path)
    others = {name.split(".")[0] for name in loaded}
    assert not others & {"scipy", "threadpoolctl", "sklearn", "matplotlib", "json", "zipfile", "concurrent"}, others
    assert not loaded & {"sparserf.baselines", "sparserf.plot", "numpy.random"}, loaded


def test_what_is_imported_when_asked_for(tmp_path):
    assert {"sparserf.baselines", "sparserf.baselines.srfe"} <= loaded_by("from sparserf import baselines", tmp_path)
    assert "sparserf.plot" in loaded_by("from sparserf import *", tmp_path)
    assert {"baselines", "plot", "sparse_rf"} <= set(dir(srf))
    with pytest.raises(AttributeError, match="no_such_name"):
        srf.no_such_name  # noqa: B018
