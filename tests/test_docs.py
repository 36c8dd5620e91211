"""What the documents promise: examples that run, names that exist, an import that is cheap."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparserf as srf

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = [m.name for m in pkgutil.walk_packages(srf.__path__, "sparserf.") if "_core." not in m.name]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def run_python_of(page, names):
    """The examples of a page, each after the others, as they stand."""
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(code, page.name, "exec"), names)
    return names


def test_the_lines_of_the_readme_run(tmp_path, monkeypatch, capsys):
    """As they stand, and say what their comments promise."""
    (tmp_path / "data").symlink_to(ROOT / "tools" / "data")
    monkeypatch.chdir(tmp_path)
    names = run_python_of(ROOT / "README.md", {})
    assert 1.3 < float(capsys.readouterr().out.split()[0]) < 1.7
    X, y = names["table"].to_numpy(), names["y"].to_numpy()
    assert len(srf.load("noise.npz").features) == 30
    assert 1.9 < np.std(y[1000:] - names["small"].predict(names["table"][1000:])) < 2.5
    assert 4.6 < np.std(y[1000:] - srf.drp(X[:1000], y[:1000], alpha=1e-9).predict(X[1000:])) < 4.8


def test_the_readme_is_one_page_with_two_commands_for_ci():
    text = (ROOT / "README.md").read_text()
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(prose.split()) < 450
    commands = re.findall(r"^python3 -m venv.*", text, re.MULTILINE)
    assert len(commands) == 2 and "tools/data/ccpp.csv" in commands[0] and commands[1].endswith("pytest -q -n auto")


@pytest.mark.slow
def test_the_examples_of_where_rows_may_live_run(tmp_path, monkeypatch):
    """In the order of the page, each after the others."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / "rows.md").read_text(), re.DOTALL):
        exec(compile(code, "rows.md", "exec"), names)
        model = names["model"]
        assert np.mean((model.predict(names["X"]) - names["y"]) ** 2) < 0.05 * np.var(names["y"])


@pytest.mark.parametrize("page", ["quickstart", "choosing", "methods"])
def test_pages_that_run_as_they_stand(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python_of(DOCS / f"{page}.md", {})


@pytest.mark.parametrize("page", ["index", "losses", "uncertainty", "validation", "learning"])
def test_pages_whose_data_are_yours(page, tmp_path, monkeypatch):
    """What they leave to the reader, X, y and the like, is made here."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(120)
    table = {"age": rng.uniform(20, 60, 120), "income": np.where(X[:, 1] > 0.5, np.nan, X[:, 1]), "city": ["Rome", "Oslo"] * 60}
    names = {"srf": srf, "X": X, "y": y, "X_new": X[:5], "X_unseen": X, "y_unseen": y, "exposure": rng.uniform(1, 2, 120)}
    names |= {"counts": rng.poisson(2, 120), "model": srf.drp(X, y, alpha=0.01), "frame": pd.DataFrame(table)}
    run_python_of(DOCS / f"{page}.md", names)


def test_the_page_of_the_estimators_prints_what_it_says(capsys):
    page = DOCS / "estimators.md"
    run_python_of(page, {})
    told = re.findall(r"^```python\n.*?^```\n\n^```\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert capsys.readouterr().out == "".join(told) != ""


def test_every_public_name_has_a_docstring_with_an_example():
    for name in srf.__all__:
        thing = getattr(srf, name)
        assert thing.__doc__, name
        if name not in ("baselines", "plot"):  # modules, whose functions have
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
    for name in names:
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


def test_what_is_imported_when_asked_for(tmp_path, monkeypatch):
    assert {"sparserf.baselines", "sparserf.baselines.srfe"} <= loaded_by("from sparserf import baselines", tmp_path)
    assert "sparserf.plot" in loaded_by("from sparserf import *", tmp_path)
    assert {"baselines", "plot", "sklearn", "sparse_rf"} <= set(dir(srf)) and "stage" not in dir(srf)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "sklearn" not in dir(srf)  # help(sparserf) imports all that is listed
    with pytest.raises(AttributeError, match="no_such_name"):
        srf.no_such_name  # noqa: B018
