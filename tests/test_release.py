"""What is released: one version everywhere, workflows that name what there is, and a source distribution that is small."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import sparserf as srf

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
VERSION = re.search(r"^  version: '(.+)'", (ROOT / "meson.build").read_text(), re.M)[1]
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
SENT = {"LICENSE", "README.md", "docs", "meson.build", "meson.options", "pyproject.toml", "sparserf", "tests", "tools"}
in_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")


def test_one_version():
    assert srf.__version__ == VERSION == version("sparserf")


def test_sources_that_are_not_compiled_say_so(tmp_path):
    """As where Python is started in the root of a clone."""
    (tmp_path / "sparserf").mkdir()
    shutil.copy(ROOT / "sparserf" / "__init__.py", tmp_path / "sparserf")
    command = "import sys; sys.path.insert(0, ''); import sparserf"
    run = subprocess.run([sys.executable, "-S", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"ImportError: .*not compiled.*another folder", run.stderr)


@in_a_clone
def test_changelog_and_citation_are_of_this_version():
    assert re.search(r"^## (\S+?),? ", (ROOT / "docs" / "changelog.md").read_text(), re.M)[1] == VERSION
    citation = yaml.safe_load((GITHUB / "CITATION.cff").read_text())
    assert citation["version"] == VERSION
    assert len(citation["references"]) == 4


@in_a_clone
def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["nightly", "release", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow(path):
    """Rights are none but to read, actions are pinned by commit, and scripts and variants are there."""
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    for script in re.findall(r"\.(?:ci|github)/[\w./-]+", " ".join(step.get("run", "") for step in steps)):
        assert (ROOT / script).exists(), script
    there_are = re.findall(r"^  ([\w-]+)\) ", (GITHUB / "scripts" / "variant.sh").read_text(), re.M)
    assert variants(workflow) <= set(there_are)


def variants(workflow):
    matrices = [job["strategy"]["matrix"] for job in workflow["jobs"].values() if "strategy" in job]
    included = {row["variant"] for matrix in matrices for row in matrix.get("include", ())}
    return included.union(*(matrix.get("variant", ()) for matrix in matrices))


@in_a_clone
def test_source_distribution():
    """Of what is committed: meson makes it of the same archive."""
    archive = subprocess.run(["git", "archive", "--format=tar.gz", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        names = {member.name for member in tar if member.isfile()}
    assert len(archive) <= 1e6
    assert {name.split("/")[0] for name in names if not name.startswith(".")} == SENT
    assert not [name for name in names if name.endswith(".png")]
    assert {f"sparserf/{path.relative_to(ROOT / 'sparserf')}" for path in (ROOT / "sparserf").rglob("*.py*")
            if path.suffix in (".py", ".pyx", ".pxd")} <= names | uncommitted()  # fmt: skip


def uncommitted():
    command = ["git", "ls-files", "--others", "--exclude-standard", "sparserf"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


@in_a_clone
def test_the_security_policy_names_tests_that_there_are():
    named = re.findall(r"`(test_\w+)`", (GITHUB / "SECURITY.md").read_text())
    assert len(named) >= 8
    tests = (ROOT / "tests" / "test_model.py").read_text()
    assert all(f"def {name}(" in tests for name in named)
