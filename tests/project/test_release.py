"""What is released: one version everywhere, workflows whose parts exist, and a small source
distribution."""

import io
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import sparserf as srf

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
VERSION = re.search(r"^  version: '(.+)'", (ROOT / "meson.build").read_text(), re.M)[1]
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SENT = {
    "LICENSE",
    "README.md",
    "docs",
    "meson.build",
    "meson.options",
    "pyproject.toml",
    "sparserf",
    "tests",
    "tools",
}
in_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")


def test_one_version():
    assert srf.__version__ == VERSION == version("sparserf")


def uncompiled(folder):
    """Return a folder with the first file of a newer, uncompiled package, as in the root of a
    clone."""
    (folder / "sparserf").mkdir(parents=True)
    newer = (
        (ROOT / "sparserf" / "__init__.py")
        .read_text()
        .replace("from . import losses\n", "from . import not_yet_there\n")
    )
    (folder / "sparserf" / "__init__.py").write_text(newer)
    return folder


def in_the_root_of(clone, code, *options, path=()):
    """Run `python -c` with this code in a folder, and return the finished process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    env["PYTHONPATH"] = os.pathsep.join([*map(str, path), *filter(None, [env.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *options, "-c", code], cwd=clone, env=env, capture_output=True, text=True
    )


WHERE = """
import sparserf, sparserf.expansion.terms
print(sparserf.__file__, sparserf.__spec__.origin, sparserf.expansion.terms.__file__, sep="\\n")"""
PICKLED = """
import pickle, sparserf
model = pickle.loads(pickle.dumps(sparserf.drp([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], alpha=0.1)))
print(type(model) is sparserf.SparseModel, sparserf.plot.effects.__module__, *sparserf.__all__)"""
BY_THREADS = """
import threading
found = []
def use():
    import sparserf
    found.append(sparserf.sparse_rf)
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(len(found))"""


@pytest.mark.slow
def test_in_the_root_of_a_clone_the_installed_package_is_imported(tmp_path):
    """The installed package is imported, whatever is imported first, pickled or asked for later,
    though sources lie in the folder and on the path."""
    clone, other = uncompiled(tmp_path / "clone"), uncompiled(tmp_path / "other")
    installed = Path(srf.__file__)
    for path in (), (other,):
        run = in_the_root_of(clone, WHERE, path=path)
        there = [*[str(installed)] * 2, str(installed.parent / "expansion/terms.py")]
        assert run.stdout.split("\n")[:3] == there, run.stderr
    assert in_the_root_of(clone, PICKLED).stdout.split() == ["True", "sparserf.plot", *srf.__all__]
    assert in_the_root_of(clone, BY_THREADS).stdout == "8\n"


@pytest.mark.slow
def test_sources_that_are_not_compiled_say_so(tmp_path):
    """Where no package is installed, importing the sources raises an error that says they are not
    compiled."""
    run = in_the_root_of(
        uncompiled(tmp_path),
        "import sys; sys.path[:] = [''] + sys.path[-3:]; import sparserf",
        "-SE",
    )
    assert re.search(
        r"ImportError: .*not compiled, and no sparserf is installed: `python -m pip install",
        run.stderr,
    )


@in_a_clone
def test_changelog_and_citation_are_of_this_version():
    assert (
        re.search(r"^## (\S+?),? ", (ROOT / "docs" / "changelog.md").read_text(), re.M)[1]
        == VERSION
    )
    citation = yaml.safe_load((GITHUB / "CITATION.cff").read_text())
    assert citation["version"] == VERSION
    assert len(citation["references"]) == 4


@in_a_clone
def test_the_recipe_of_conda_says_what_the_metadata_say():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    recipe = yaml.safe_load((ROOT / "tools" / "conda" / "recipe.yaml").read_text())
    assert recipe["context"] == {
        "version": VERSION,
        "python_min": project["project"]["requires-python"].removeprefix(">="),
    }
    told = {part: set(recipe["requirements"][part]) for part in ("host", "run")}
    needed = {
        "host": {*project["build-system"]["requires"], "python", "pip"},
        "run": {*project["project"]["dependencies"], "python >=${{ python_min }}"},
    }
    assert told == {
        part: {re.sub(r"(?<=\w)>=", " >=", each).lower() for each in names}
        for part, names in needed.items()
    }
    assert recipe["about"]["summary"] == project["project"]["description"]
    for test in recipe["tests"]:
        assert all((ROOT / name).exists() for name in test.get("files", {}).get("source", ()))


@in_a_clone
def test_the_site_elsewhere_is_built_as_here():
    """Read the Docs builds from the same group of packages, and fails by a warning, too."""
    told = yaml.safe_load((ROOT / ".readthedocs.yml").read_text())
    assert (ROOT / told["sphinx"]["configuration"]).exists()
    assert told["sphinx"]["fail_on_warning"]
    tests = (GITHUB / "workflows" / "tests.yml").read_text()
    assert "pip install . --group docs" in " ".join(told["build"]["jobs"]["install"])
    assert "pip install . --group docs" in tests


@in_a_clone
def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["nightly", "release", "speed", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow(path):
    """Rights are read-only, actions are pinned by commit, and scripts and variants exist."""
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(
        re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
        for step in steps
        if "uses" in step
    )
    runs = " ".join(step.get("run", "") for step in steps)
    for script in re.findall(r"\.(?:ci|github)/[\w./-]+", runs):
        assert (ROOT / script).exists(), script
    there_are = re.findall(r"^  ([\w-]+)\) ", (GITHUB / "scripts" / "variant.sh").read_text(), re.M)
    named = re.findall(r"variant\.sh ([\w-]+)", runs)
    assert variants(workflow) | set(named) <= set(there_are)


@in_a_clone
def test_variants_name_tests_that_there_are():
    named = re.findall(r"tests/\w[\w/]*\.py", (GITHUB / "scripts" / "variant.sh").read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


@in_a_clone
def test_pull_requests_are_compared_on_sets_that_there_are():
    command = (GITHUB / "scripts" / "beside.sh").read_text()
    [names] = re.findall(r"--sets ((?:'[^']+' )+)", command)
    told = tomllib.loads((ROOT / "tools" / "experiments" / "beside.toml").read_text())
    assert set(re.findall(r"'([^']+)'", names)) <= told["groups"]["classes"]["sets"].keys()


def variants(workflow):
    """Return the variants that the jobs of a workflow run."""
    matrices = [job["strategy"]["matrix"] for job in workflow["jobs"].values() if "strategy" in job]
    included = {row["variant"] for matrix in matrices for row in matrix.get("include", ())}
    return included.union(*(matrix.get("variant", ()) for matrix in matrices))


@pytest.mark.slow
@in_a_clone
def test_source_distribution():
    """The source distribution has the committed sources: meson builds it from the same archive."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar.gz", "HEAD"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = {member.name for member in tar if member.isfile()}
    assert len(archive) <= 1.7e6
    assert {name.split("/")[0] for name in names if not name.startswith(".")} == SENT
    assert not [name for name in names if name.endswith(".png")]
    assert {
        f"sparserf/{path.relative_to(ROOT / 'sparserf')}"
        for path in (ROOT / "sparserf").rglob("*.py*")
        if path.suffix in (".py", ".pyx", ".pxd")
    } <= names | uncommitted()


def uncommitted():
    """Return the source files that are not committed."""
    command = ["git", "ls-files", "--others", "--exclude-standard", "sparserf"]
    return set(
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    )


@in_a_clone
def test_classifiers_name_what_has_run():
    """Of systems Linux alone, as docs/building.md says; versions of Python go from the lowest to
    the last that cibuildwheel builds for, as a wheel of the stable ABI serves those between."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(project["classifiers"])
    page = " ".join((ROOT / "docs" / "building.md").read_text().split())
    assert "Nothing has run on Windows and macOS" in page
    assert {each for each in named if each.startswith("Operating System")} == {
        "Operating System :: POSIX :: Linux"
    }
    built = tomllib.loads((GITHUB / "cibuildwheel.toml").read_text())["tool"]["cibuildwheel"]
    minors = sorted(int(re.match(r"cp3(\d+)", each)[1]) for each in built["build"])
    lowest = int(project["requires-python"].removeprefix(">=3."))
    assert lowest == minors[0]
    assert {each for each in named if re.search(r":: 3\.\d+$", each)} == {
        f"Programming Language :: Python :: 3.{minor}" for minor in range(lowest, minors[-1] + 1)
    }


@in_a_clone
def test_reports_of_bugs_are_asked_for_the_versions():
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    [asked] = [part for part in form["body"] if part.get("id") == "versions"]
    assert "sparserf.show_versions()" in asked["attributes"]["description"]
    assert asked["validations"] == {"required": True}


@in_a_clone
def test_the_security_policy_names_tests_that_there_are():
    named = re.findall(r"`(test_\w+)`", (GITHUB / "SECURITY.md").read_text())
    assert len(named) >= 8
    tests = (ROOT / "tests" / "model" / "test_file.py").read_text()
    assert all(f"def {name}(" in tests for name in named)
