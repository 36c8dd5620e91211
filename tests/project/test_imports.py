"""Neither modules nor folders import each other in a circle; imports within functions and for types
alone count, too."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sparserf"
FILES = {
    path.relative_to(PACKAGE.parent).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")
}
MODULES = {".".join(parts).removesuffix(".__init__") for parts in FILES}


def imported(parts, path):
    """Yield the modules of the package that a file imports; of a package those that it names, or
    else its `__init__.py`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            home = ".".join(
                [*(parts[: -node.level] if node.level else ()), *filter(None, [node.module])]
            )
            found = (f"{home}.{alias.name}" for alias in node.names)
            yield from (
                module if module in MODULES else home for module in found if home in MODULES
            )


@pytest.fixture(scope="module")
def imports():
    """All pairs of a module and one that it imports."""
    return {
        (".".join(parts).removesuffix(".__init__"), of)
        for parts, path in FILES.items()
        for of in imported(parts, path)
    }


def folder(module):
    """Return the folder of a module, or a module that is in none."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("place", [str, folder], ids=["modules", "folders"])
def test_nothing_imports_in_a_circle(imports, place):
    graph = TopologicalSorter()
    for by, of in {(place(by), place(of)) for by, of in imports}:
        if by != of:
            graph.add(by, of)
    try:
        graph.prepare()
    except CycleError as error:
        pytest.fail("imports in a circle: " + " -> ".join(reversed(error.args[1])))


def test_each_folder_of_the_architecture_imports_from_those_below_it(imports):
    table = (
        (PACKAGE.parent / "docs/architecture.md")
        .read_text()
        .partition("## The tree")[2]
        .partition("\n## ")[0]
    )
    floors = [
        name.removesuffix(".py")
        for name in re.findall(r"^\| `(\w+)(?:/|\.py)` \|", table, re.MULTILINE)
    ]
    rooms = {(folder(by), folder(of)) for by, of in imports}
    floor = {f"sparserf.{name}": i for i, name in enumerate(floors)}
    assert {room for pair in rooms for room in pair} <= {"sparserf", "sparserf._version", *floor}
    assert [
        pair
        for pair in rooms
        if pair[0] != pair[1] and "sparserf" not in pair and floor[pair[0]] > floor[pair[1]]
    ] == []


def test_imports_are_found(imports):
    assert ("sparserf.model.sparse_model", "sparserf.model.file") in imports  # from . import file
    assert ("sparserf.export.methods", "sparserf.export.c") in imports  # within a function
    assert ("sparserf.rows.core_block", "sparserf.rows.protocols") in imports  # for types alone
    assert ("sparserf", "sparserf.model") in imports
