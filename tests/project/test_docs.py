"""What the documents promise: examples run, names exist, and the import is cheap."""

import ast
import doctest
import importlib
import inspect
import os
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparserf as srf
from sparserf import plain

from .. import page_outputs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "sparserf"
MODULES = [
    m.name for m in pkgutil.walk_packages(srf.__path__, "sparserf.") if "_core." not in m.name
]


SLOW_MODULES = {  # whose examples take more than half a second each
    "_base.warnings",
    "algorithms.distill",
    "algorithms.drp",
    "algorithms.points",
    "algorithms.refit",
    "algorithms.sparse_rf.functions",
    "losses.ordinal",
    "plot",
    "sklearn",
    "validation.calibration",
    "validation.conformal",
    "validation.cross_validation",
}


@pytest.mark.every_case
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name.partition(".")[2] in SLOW_MODULES))
        for name in MODULES
    ],
)
def test_docstring_examples_run(name):
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0


def test_the_architecture_names_what_is_there():
    """Every file that the page names is in the tree, and every other name in code is a word of the
    sources."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".pyx", ".h", ".c")]
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in files)))
    for name in re.findall(r"`([^`\n]+)`", (DOCS / "architecture.md").read_text()):
        if "/" in name or name.endswith((".py", ".pyx", ".h", ".c")):
            there = [(root / name).exists() for root in (ROOT, PACKAGE)] + [
                path.name == name for path in files
            ]
            assert any(there), name
        else:
            assert set(re.findall(r"[A-Za-z_]\w*", name.partition("(")[0])) <= words, name


def test_the_page_of_the_default_has_the_constants_of_the_code():
    """Each `module.NAME = value` of its table is so in the algorithms or the features."""
    rows = (DOCS / "default.md").read_text().partition("## The rules")[2].partition("\n## ")[0]
    told = re.findall(r"`(\w+)\.([\w.]+) = ([^`]+)`", rows)
    assert len(told) > 30
    for module, name, value in told:
        folders = ("algorithms.default", "algorithms.sparse_rf", "algorithms", "features")
        places = [f"sparserf.{folder}.{module}" for folder in folders]
        (there,) = [place for place in places if place in MODULES]
        thing = importlib.import_module(there)
        for part in name.split("."):
            assert hasattr(thing, part), f"{module}.{name} is gone"
            thing = getattr(thing, part)
        assert thing == ast.literal_eval(value), f"{module}.{name}"


PAGES = [path.stem for path in sorted(DOCS.glob("*.md")) if "```python\n" in path.read_text()]
LONG = {"groups", "rows", "validation"}  # pages that take several seconds


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A copy of a clone in a temporary folder, to work in as its user does."""
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    monkeypatch.chdir(tmp_path)


def run_python_of(page, after_each=lambda names: None):
    """Run the Python blocks of a page in order, compare what they print with what the page says,
    call `after_each` with the names after each block, and return the names."""
    found, names = page_outputs.run(page.read_text(), page.name, after_each)
    for told, printed in found:
        print(printed, end="")
        assert told is None or page_outputs.are_alike(told, printed), f"{told}\n{printed}"
    return names


def test_most_lines_of_what_is_printed_are_as_told():
    told = "a 100 b\nc 2.0\nd\ne 1,000 -3e-2\n"
    assert page_outputs.are_alike(told, told.replace("100", "80"))
    assert page_outputs.are_alike(told, told.replace("100", "200"))  # one line of four
    assert not page_outputs.are_alike(told, told.replace("100", "200").replace("2.0", "1.0"))
    assert not page_outputs.are_alike(told, told.replace("b", "x").replace("c", "x"))
    assert not page_outputs.are_alike(told, told * 2)


@pytest.mark.slow
@pytest.mark.usefixtures("clone")
def test_the_lines_of_the_readme_run_and_print_what_it_says(capsys):
    """Another processor rounds differently and may find other thresholds: most rules are the same.
    The errors are those of the table below the code."""
    page = ROOT / "README.md"
    names = run_python_of(page)
    text, printed = page.read_text(), capsys.readouterr().out
    told = re.search(r"^```\n(f = .*?)^```$", text, re.DOTALL | re.MULTILINE)[1].splitlines()
    *rules, of_rules, of_default, of_few = printed.splitlines()
    assert len(rules) == len(told) == 11 and len(set(rules) & set(told)) > 5
    errors = re.findall(r"^\| [^|]+ \| ([\d.]+) \| ([\d,]+) \|", text, re.MULTILINE)
    for line, (error, size) in zip((of_rules, of_default, of_few), errors, strict=False):
        terms, found = map(float, line.split())
        assert found == pytest.approx(float(error), rel=0.15)
        assert terms == pytest.approx(float(size.replace(",", "")), rel=0.25)
    assert len(srf.load("noise.npz").features) == 30 and names["query"].startswith("WITH")


@pytest.mark.every_case
@pytest.mark.slow
@pytest.mark.usefixtures("clone")
@pytest.mark.parametrize("page", [page for page in PAGES if page not in LONG])
def test_pages_run_as_they_stand(page):
    run_python_of(DOCS / f"{page}.md")


@pytest.mark.slow
@pytest.mark.usefixtures("clone")
def test_the_examples_of_where_rows_may_live_run():
    def fitted(names):
        assert np.mean((names["model"].predict(names["X"]) - names["y"]) ** 2) < 0.05 * np.var(
            names["y"]
        )

    run_python_of(DOCS / "rows.md", fitted)


@pytest.mark.slow
@pytest.mark.usefixtures("clone")
def test_the_examples_of_cross_validation_run():
    assert run_python_of(DOCS / "validation.md")["found"].losses.shape == (6, 5)


@pytest.mark.nightly
@pytest.mark.usefixtures("clone")
@pytest.mark.filterwarnings("ignore::sparserf.GroupedRowsWarning")
def test_the_page_of_groups_says_what_happens():
    pytest.importorskip("sklearn")
    seen = []
    names = run_python_of(DOCS / "groups.md", lambda names: seen.append(dict(names)))
    at_random, by_patient = (seen[0][name].table["mean"][0] for name in ("at_random", "by_patient"))
    others = seen[0]["of_others"]
    assert at_random < 0.1 * others and 0.5 * others < by_patient < 2 * others
    assert 0.6 * seen[1]["of_others"] < seen[1]["error"] < 1.6 * seen[1]["of_others"] < 1.8 * others
    lower, upper, y = (seen[2][name] for name in ("lower", "upper", "y_others"))
    assert np.mean((lower <= y) & (y <= upper)) > 0.8
    assert names["of_alone"] < others
    at_random, later, known = (
        names[name].table["mean"] for name in ("at_random", "of_later", "of_known")
    )
    assert at_random[0] < 0.5 * later[0] and min(known) < 0.7 * later[0]
    assert 2 * seen[5]["model"].info.validation_loss > 3 * at_random[0]
    rare = names["rare"].mean()
    assert 0.7 * rare < names["p"].mean() < 1.4 * rare < 2 * rare < names["q"].mean()


@pytest.mark.parametrize("page", ["../README", *PAGES])
def test_lines_of_code_fit_the_column_of_the_site(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.S | re.M)
    assert blocks
    for line in "".join(blocks).splitlines():
        assert len(line) <= 80, line


def test_the_page_of_the_algorithms_shows_all_functions_that_are_printed_plainly():
    """Each whole, as it stands in the file, in lines that fit the column of the site."""
    text = (DOCS / "methods.md").read_text()
    shown = re.findall(
        r"^```\{literalinclude\} (\S+)\n:language: python\n:pyobject: (\w+)\n```$", text, re.M
    )
    functions = {
        name: value
        for name, value in vars(plain).items()
        if inspect.isfunction(value) and inspect.getmodule(value) is plain and name[0] != "_"
    }
    assert {(DOCS / path).resolve() for path, _ in shown} == {PACKAGE / "plain.py"}
    assert [name for _, name in shown] == list(functions)  # in the order of the file
    for function in functions.values():
        assert max(map(len, inspect.getsource(function).splitlines())) <= 80, function


def test_questions_have_short_answers():
    """Twenty, each of at most five lines of text."""
    text = re.sub(r"^```.*?^```$", "", (DOCS / "faq.md").read_text(), flags=re.S | re.M)
    answers = re.split(r"^### .*\?$", re.sub(r"^## .*$", "", text, flags=re.M), flags=re.M)[1:]
    assert len(answers) == 20
    for answer in answers:
        assert 1 <= len(answer.split("\n\n")[1].strip().splitlines()) <= 5, answer
        assert not "".join(answer.split("\n\n")[2:]).strip(), answer  # code alone follows


def test_the_page_for_authors_is_short():
    assert len((DOCS / "authors.md").read_text().split()) <= 500


EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


OFFERED = re.compile(r":download:`\S+ <(.+?)>`")  # beside a download, the tables that it reads


@pytest.mark.every_case
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_pages_of_the_gallery_offer_the_tables_that_they_read(example):
    text = example.read_text()
    # this folder exists once the site is built
    tables = [Path(os.path.normpath(DOCS / "gallery" / path)) for path in OFFERED.findall(text)]
    assert all(table.exists() for table in tables)
    assert {table.name for table in tables} == set(re.findall(r'read_csv\("(.+?)"\)', text))


@pytest.mark.nightly
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_downloads_of_the_gallery_run(example, tmp_path, monkeypatch):
    """Each runs in an empty folder, with the tables beside it that its page offers. To build the
    site runs them, too."""
    pytest.importorskip("sklearn")
    plt = pytest.importorskip("matplotlib.pyplot")
    for path in OFFERED.findall(example.read_text()):
        shutil.copy(os.path.normpath(DOCS / "gallery" / path), tmp_path)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    plt.close("all")


def test_the_readme_is_one_page_with_two_commands_for_ci():
    text = (ROOT / "README.md").read_text()
    prose = re.sub(
        r"```.*?```|<!-- records -->.*?of records -->|^\|.*?$",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    assert len(prose.split()) < 500
    commands = re.findall(r"^python3 -m venv.*", text, re.MULTILINE)
    assert (
        len(commands) == 2
        and "tools/data/airfoil.csv" in commands[0]
        and commands[1].endswith("pytest -q -n auto")
    )


def test_every_public_name_has_a_docstring_with_an_example():
    for name in srf.__all__:
        thing = getattr(srf, name)
        assert thing.__doc__, name
        if name != "plot":  # a module: its functions have the examples
            assert ">>>" in thing.__doc__, name


def public_docstrings():
    """Return {name: docstring} of everything that has a page of its own on the site, and of the
    methods shown there."""
    homes = [srf, srf.losses, srf.plot, srf.sklearn]
    things = [
        getattr(home, name)
        for home in homes
        for name in getattr(home, "__all__", ("effects", "input_usage", "rules"))
    ]
    things += [
        member
        for thing in things
        if inspect.isclass(thing)
        for name, member in vars(thing).items()
        if name[0] != "_"
    ]
    return {str(thing): inspect.getdoc(thing) for thing in things if inspect.getdoc(thing)}


def test_no_bars_in_docstrings_are_read_as_a_substitution():
    """|x| outside of code and formulas is the name of a text to Sphinx, which then finds none."""
    docstrings = public_docstrings()
    assert len(docstrings) > 80
    for name, text in docstrings.items():
        text = text.partition("Examples\n--------")[0]
        prose = re.sub(
            r"``.*?``|:math:`.*?`|\.\. math::[^\n]*\n(?:(?:    [^\n]*)?\n)*",
            "",
            text,
            flags=re.DOTALL,
        )
        assert not re.search(r"(?<![\w|\\])\|[^\s|](?:[^|]*[^\s|\\])?\|", prose), name


def test_the_public_names():
    assert sorted(srf.__all__) == [
        "BlockError",
        "Bumps",
        "Chunks",
        "ConvergenceWarning",
        "CopiedRowsWarning",
        "CrossValidation",
        "FeatureSet",
        "FitInfo",
        "Fourier",
        "GroupedRowsWarning",
        "IndexWarning",
        "Intervals",
        "Linear",
        "Perceptron",
        "Points",
        "RandomNeurons",
        "Rules",
        "SparseModel",
        "Sums",
        "Taylor",
        "TimeLimitWarning",
        "calibrated",
        "concordance",
        "cross_validate",
        "distill",
        "drp",
        "drp_path",
        "harfe",
        "harfe_path",
        "integrated_brier_score",
        "intervals",
        "load",
        "losses",
        "mfga",
        "mfga_path",
        "plot",
        "points",
        "prune",
        "refit",
        "show_versions",
        "sparse_rf",
        "sparse_rf_path",
    ]


def loaded_by(code, tmp_path):
    """Return the modules that this code loads beyond those of NumPy."""
    code = (
        f"import sys, numpy; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) "
        "- before), sep=',')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    return set(done.stdout.strip().split(","))


def test_import_loads_numpy_and_little_else(tmp_path):
    loaded = loaded_by("import sparserf", tmp_path)
    others = {name.split(".")[0] for name in loaded}
    assert not others & {
        "scipy",
        "threadpoolctl",
        "sklearn",
        "matplotlib",
        "json",
        "zipfile",
        "concurrent",
    }, others
    assert not loaded & {"sparserf.plot", "numpy.random"}, loaded


def test_functions_load_no_part_of_scipy_before_they_are_called(tmp_path):
    code = "import sparserf as s; s.sparse_rf, s.harfe, s.mfga, s.drp, s.calibrated, s.intervals"
    loaded = loaded_by(code, tmp_path)
    assert not any(name.split(".")[0] == "scipy" for name in loaded), loaded


def test_a_loaded_model_predicts_from_an_array_with_numpy_alone(tmp_path):
    X = np.linspace(-3, 3, 200)[:, None]
    srf.harfe(X, np.sin(X[:, 0]), n_nonzero_coefs=5, rng=0).save(tmp_path / "model.npz")
    code = "import sparserf; sparserf.load('model.npz').predict(numpy.ones((3, 1)))"
    others = {name.split(".")[0] for name in loaded_by(code, tmp_path)}
    assert not others & {"scipy", "threadpoolctl", "narwhals", "pandas", "sklearn"}, others


@pytest.mark.slow
def test_every_module_is_imported_without_docstrings(tmp_path):
    """`python -OO` leaves out docstrings, from which those of the estimators are made, and
    assertions."""
    code = f"import importlib\nfor name in {MODULES}: importlib.import_module(name)"
    subprocess.run([sys.executable, "-OO", "-P", "-c", code], check=True, cwd=tmp_path)


@pytest.mark.slow
def test_what_is_imported_when_asked_for(tmp_path, monkeypatch):
    assert {"sparserf.losses", "sparserf.losses.own"} <= loaded_by(
        "from sparserf import losses", tmp_path
    )
    assert "sparserf.plot" in loaded_by("from sparserf import *", tmp_path)
    assert {"plot", "sklearn", "sparse_rf"} <= set(dir(srf)) and "stage" not in dir(srf)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "sklearn" not in dir(srf)  # help(sparserf) would import it
    with pytest.raises(AttributeError, match="no_such_name"):
        srf.no_such_name  # noqa: B018
