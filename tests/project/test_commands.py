"""Every command that a page gives runs word for word in a fresh clone and environment, or is listed
here with the reason why not."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / ".github").glob("*.md")),
]
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone")

RUN_ELSEWHERE = {  # blocks that are not run here, and what runs them
    "README.md: python3 -m venv .venv && echo": ".ci/run, at every push: it reads both lines out "
    "of the page",
    "building.md: .github/scripts/variant.sh boundscheck": "nightly.yml, and a row of "
    "tests/reliability.toml",
}
PROGRAMS = (
    "pip",
    "python",
    "python3",
    "pytest",
    "ruff",
    "pre-commit",
    ".venv/bin/pytest",
    ".github/scripts/",
    "tools/",
)
# commands within sentences that need the reader's arguments, or that other tests and workflows run
IN_TEXT = {
    "python tools/run.py": "test_commands_at_tables_name_experiments, and test_experiments.py",
    "python tests/": "development.md, reliability.md: rows of tests/reliability.toml",
    "pytest -": "the rows of reliability.md are run by tests/reliability.py",
    ".github/scripts/": "rows of tests/reliability.toml",
    ".venv/bin/pytest -q -n auto --whole": ".ci/run",
    "python -m pip install": "test_extras_and_groups_that_are_named_are_there",
    "pre-commit run --all-files": "tests.yml, the job lint",
    "tools/aarch64.sh DIR": "needs Debian's cross compiler and qemu",
}


def name_of(page):
    """Return the name by which a page is known here."""
    return page.name if page.parent.name != ".github" else f".github/{page.name}"


def blocks():
    """Return (page, text to be typed) of every block for a shell."""
    return [
        (name_of(p), text)
        for p in PAGES
        for text in re.findall(r"^```sh\n(.*?)\n```", p.read_text(), re.S | re.M)
    ]


def is_elsewhere(page, text):
    """Return whether a block is listed as run elsewhere."""
    return any(f"{page}: {text}".startswith(start) for start in RUN_ELSEWHERE)


HERE = {}  # the blocks of each page, in order
for page, text in blocks():
    if not is_elsewhere(page, text):
        HERE.setdefault(page, []).append(text)


def test_blocks_that_no_test_runs_are_there_and_few():
    assert all(
        any(f"{page}: {text}".startswith(start) for page, text in blocks())
        for start in RUN_ELSEWHERE
    )
    assert len(RUN_ELSEWHERE) < 4


def test_every_block_names_its_language():
    """Every block names its language, so that none for a shell is overlooked; output of a program
    has none."""
    for page in PAGES:
        # what is included says so in an option
        text = re.sub(
            r"^```\{literalinclude\} (\S+)\n:language: ", r"```", page.read_text(), flags=re.M
        )
        fences = re.findall(r"^```(.*)$", text, re.M)
        assert set(fences[::2]) <= {"sh", "python", "", "{toctree}"} and set(fences[1::2]) <= {
            ""
        }, page.name


def test_a_block_without_a_language_holds_no_command():
    for page in PAGES:
        text = re.sub(r"^```\w+\n.*?^```", "", page.read_text(), flags=re.S | re.M)
        for block in re.findall(r"^```\n(.*?)^```", text, re.S | re.M):
            assert not block.startswith(PROGRAMS), f"{page.name}: {block}"


def test_commands_within_sentences_are_run_somewhere():
    """Code in a sentence that begins with a program's name and has arguments is a command; each is
    run somewhere."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
        for code in re.findall(r"`([^`]+)`", text):
            if code.startswith(PROGRAMS) and " " in code:
                code = " ".join(code.split())
                assert code.startswith(tuple(IN_TEXT)), f"{page.name}: {code}"


def test_commands_at_tables_name_experiments():
    named = {
        name
        for page in PAGES
        for name in re.findall(r"tools/run\.py --only (\w+)", page.read_text())
    }
    assert len(named) > 10
    assert all((ROOT / "tools" / "experiments" / f"{name}.toml").exists() for name in named), named


def test_extras_and_groups_that_are_named_are_there():
    """Pages, docstrings and errors name every extra, and none that is not there; quickstart has a
    table of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras, pages = (
        project["project"]["optional-dependencies"].keys(),
        "\n".join(page.read_text() for page in PAGES),
    )
    code = "\n".join(
        path.read_text()
        for folder in ("sparserf", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
    )
    named = {
        each.strip()
        for some in re.findall(r"(?:'\.|sparserf)\[([a-z, -]+)\]", pages + code)
        for each in some.split(",")
    }
    table = re.search(
        r"^\| extra \|.*\n\|[-|]+\n((?:\|.*\n)+)",
        (ROOT / "docs" / "quickstart.md").read_text(),
        re.M,
    )[1]
    assert named == set(re.findall(r"^\| `([\w-]+)` ", table, re.M)) == extras
    assert set(re.findall(r"--group (\w+)", pages)) <= set(project["dependency-groups"])
    # no package index has it yet
    assert "install sparserf" not in pages and "install 'sparserf" not in pages


# pages that ask for the commands of another page first
BEFORE = dict.fromkeys(("contributing.md", "data.md"), HERE["building.md"])


@pytest.mark.nightly
@pytest.mark.parametrize("page", HERE)
def test_commands_run_in_a_fresh_clone(page, tmp_path):
    """The commands of a page run in one shell, where `python` is that of a new environment; then
    the README's Python runs.

    The page's own `pytest` is told to run one test: the suite runs elsewhere.
    """
    clone, python = tmp_path / "clone", tmp_path / "venv" / "bin"
    subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
    subprocess.run([sys.executable, "-m", "venv", python.parent], check=True)
    rows = "".join(f"{k},{k % 7},{2 * k + k % 7}\n" for k in range(80))
    (clone / "mine.csv").write_text("area,floor,price\n" + rows)
    env = {
        key: value
        for key, value in os.environ.items()
        if key not in ("PYTHONPATH", "PYTHONSAFEPATH", "VIRTUAL_ENV")
    }
    env |= {"PATH": f"{python}{os.pathsep}{env['PATH']}", "PYTEST_ADDOPTS": "-k one_version"}
    commands = [*BEFORE.get(page, ()), *HERE[page]]
    if page == "README.md":
        code = re.search(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)[1]
        commands.append(f"python - <<'END'\n{code}END")
    run = subprocess.run(
        ["bash", "-ec", "\n".join(commands)], cwd=clone, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
