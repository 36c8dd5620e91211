"""Do the tests notice what is wrong? Change one place of solvers/ and losses/ at a time, and run
the tests of its line.

    python tests/covered_lines.py   # records which tests run which line
    python tests/mutants.py [-n N] [--seed K] [--seconds S] [--again] [PART OF A FILE'S NAME ...]

The tests are imported once. Each mutant runs in a process of its own, where its code replaces what
was imported: nothing is written to sparserf/. A mutant is caught if a test fails or takes a minute,
and survives if none does among those that run its line, those of the fewest lines first, for S
seconds. --again runs those that survived last time. Mutants listed in tests/mutants.toml compute
the same as the original.
"""

import argparse
import ast
import json
import multiprocessing
import os
import random
import re
import sys
import time
import tomllib
from collections import defaultdict
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import FunctionType, ModuleType

import coverage
import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
FOLDERS = "solvers", "losses"
RECORD = ROOT / "build" / "mutants.json"
LIMIT = 60  # seconds beyond those of the tests after which a mutant is taken to run for ever

A = ast
SWAPS = {
    A.Lt: [A.LtE, A.GtE],
    A.LtE: [A.Lt, A.Gt],
    A.Gt: [A.GtE, A.LtE],
    A.GtE: [A.Gt, A.Lt],
    A.Eq: [A.NotEq],
    A.NotEq: [A.Eq],
    A.Is: [A.IsNot],
    A.IsNot: [A.Is],
    A.In: [A.NotIn],
    A.NotIn: [A.In],
    A.Add: [A.Sub],
    A.Sub: [A.Add],
    A.Mult: [A.Div],
    A.Div: [A.Mult],
    A.FloorDiv: [A.Mult],
    A.Mod: [A.Mult],
    A.Pow: [A.Mult],
    A.BitAnd: [A.BitOr],
    A.BitOr: [A.BitAnd],
    A.RShift: [A.LShift],
    A.And: [A.Or],
    A.Or: [A.And],
}
PAIRS = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("argmin", "argmax"),
    ("zeros", "ones"),
    ("log1p", "log"),
    ("expm1", "exp"),
    ("zeros_like", "ones_like"),
    ("searchsorted", "digitize"),
]
NAMES = dict(PAIRS) | {b: a for a, b in PAIRS}


@dataclass
class Mutant:
    """A change of one place: its file and lines, and its statement before and after."""

    file: str
    lines: range
    before: str
    after: str

    def __str__(self):
        return f"{self.file}:{self.lines.start}  {self.before}  ->  {self.after}"


def replacements(node):
    """Yield what may stand in place of a node."""
    match node:
        case ast.Compare(ops=[op]):
            yield from (
                ast.Compare(node.left, [swap()], node.comparators) for swap in SWAPS[type(op)]
            )
        case ast.BinOp() if type(node.op) in SWAPS:
            yield from (ast.BinOp(node.left, swap(), node.right) for swap in SWAPS[type(node.op)])
        case ast.BoolOp():
            yield from (ast.BoolOp(swap(), node.values) for swap in SWAPS[type(node.op)])
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool(x)):
            yield ast.Constant(not x)
        case ast.Constant(value=int(x) | float(x)):
            yield from (
                ast.Constant(x + 1),
                ast.Constant(2 * x if isinstance(x, float) and x else x - 1),
            )
        case ast.If() | ast.IfExp() | ast.While():
            yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            yield ast.Call(
                ast.Attribute(node.func.value, NAMES[name], ast.Load()), node.args, node.keywords
            )
        case ast.Call(args=[a, b]) if not isinstance(a, ast.Starred) and not isinstance(
            b, ast.Starred
        ):
            yield ast.Call(node.func, [b, a], node.keywords)
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Break() | ast.Continue():
            yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.AugAssign() if type(node.op) in SWAPS:
            yield from (
                ast.AugAssign(node.target, SWAPS[type(node.op)][0](), node.value),
                ast.Pass(),
            )
        case ast.Expr() | ast.Raise() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def is_left_alone(node):
    """Return whether a node is never changed: text, imports, and what is for type checkers
    alone."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_text or is_for_types or isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))


def places(node, statement=None):
    """Yield (the list or dict that holds a node, its key there, its statement) of every node that
    may be changed."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        holder, keys = (
            (value, range(len(value))) if isinstance(value, list) else (vars(node), [name])
        )
        for key in keys:
            child = holder[key]
            if isinstance(child, ast.AST) and not is_left_alone(child):
                own = child if isinstance(child, ast.stmt) else statement
                yield holder, key, own
                if not isinstance(child, ast.Raise):
                    yield from places(child, own)


def header(statement):
    """Return the first line of a statement, without decorators."""
    return next(line for line in ast.unparse(statement).splitlines() if not line.startswith("@"))


def mutants(path):
    """Yield (mutant, the tree of the file, changed while the mutant is looked at)."""
    tree = ast.parse(path.read_text())
    for holder, key, statement in places(tree):
        node, before = holder[key], header(statement)
        for new in replacements(node):
            holder[key] = ast.copy_location(new, node)
            changed = new if node is statement else statement
            lines = range(
                node.lineno, (node.test if hasattr(node, "test") else node).end_lineno + 1
            )
            yield (
                Mutant(str(path.relative_to(ROOT / "sparserf")), lines, before, header(changed)),
                tree,
            )
            holder[key] = node


def drawn(n, seed, names):
    """Yield about n mutants, from each file in proportion to its places, and at least 3."""
    files = [
        path for folder in FOLDERS for path in sorted((ROOT / "sparserf" / folder).glob("*.py"))
    ]
    of = {path: [mutant for mutant, _ in mutants(path)] for path in files}
    total = sum(map(len, of.values()))
    for path, every in of.items():
        share = min(len(every), max(3, round(n * len(every) / total)))
        if not names or any(name in str(path) for name in names):
            yield from random.Random(f"{seed} {path.name}").sample(every, share)


def tests_of_lines():
    """Return {file: {line: the tests that run it}}, and how many lines each test runs."""
    data, by_line, size = coverage.CoverageData(str(ROOT / ".coverage")), {}, defaultdict(int)
    data.read()
    for folder in FOLDERS:
        for path in (ROOT / "sparserf" / folder).glob("*.py"):
            lines = {
                line: {c.removesuffix("|run") for c in contexts if c.endswith("|run")}
                for line, contexts in data.contexts_by_lineno(str(path)).items()
            }
            by_line[str(path.relative_to(ROOT / "sparserf"))] = lines
            for test in (test for tests in lines.values() for test in tests):
                size[test] += 1
    return by_line, size


def tests_of(mutant, by_line, size):
    """Return the tests that run the lines of a mutant. For what runs on import, such as a constant:
    those that run lines with its name, or any line of the file."""
    lines = by_line[mutant.file]
    found = set().union(*(lines.get(line, ()) for line in mutant.lines))
    if not found:
        text = (ROOT / "sparserf" / mutant.file).read_text().splitlines()
        name = re.search(r"\w+", mutant.before)[0]
        found = set().union(*(lines.get(k, ()) for k, line in enumerate(text, 1) if name in line))
    found = found or set().union(*lines.values())
    return sorted(found, key=lambda test: (size[test], test))


def put(old, new):
    """Replace the code, defaults and constants of an imported module or class by those of the new
    one."""
    for name, value in vars(new).items():
        was, value = (
            getattr(x, "fget", None) or getattr(x, "__func__", x)
            for x in (vars(old).get(name), value)
        )
        if was is value or name in (
            "__name__",
            "__doc__",
            "__module__",
            "__qualname__",
            "__spec__",
            "__dict__",
            "__file__",
        ):
            continue
        if isinstance(was, FunctionType) and was.__code__.co_freevars != value.__code__.co_freevars:
            setattr(old, name, vars(new)[name])
        elif isinstance(was, FunctionType):
            was.__code__, was.__defaults__, was.__kwdefaults__ = (
                value.__code__,
                value.__defaults__,
                value.__kwdefaults__,
            )
        elif isinstance(was, type) and was.__module__ == value.__module__:
            put(was, value)
        elif is_dataclass(was) or (
            isinstance(value, (bool, int, float, str, tuple)) and was != value
        ):
            for holder in (
                old,
                *(module for key, module in sys.modules.items() if key.startswith("sparserf.")),
            ):
                if vars(holder).get(name) is was:
                    setattr(holder, name, value)


def run(mutant, items, seconds, tell):
    """Run tests with a mutant in a forked process, tell the first test that fails, and end the
    process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    if mutant:
        module = next(
            m
            for m in sys.modules.values()
            if getattr(m, "__file__", None) == str(ROOT / "sparserf" / mutant.file)
        )
        code = next(
            compile(ast.fix_missing_locations(tree), module.__file__, "exec")
            for each, tree in mutants(Path(module.__file__))
            if each == mutant
        )
        fresh = ModuleType(module.__name__)
        fresh.__package__, fresh.__file__ = module.__package__, module.__file__
        try:
            exec(code, vars(fresh))
        except Exception:
            tell("import")
            os._exit(0)
        put(module, fresh)
    end = time.monotonic() + seconds
    for item, following in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            tell(item.nodeid)
        elif time.monotonic() < end:
            continue
        break
    os._exit(0)


def outcome(*args):
    """Return "survived", or what has caught the mutant."""
    fork = multiprocessing.get_context("fork")
    heard, tell = fork.Pipe(duplex=False)
    process = fork.Process(target=run, args=(*args, tell.send))
    process.start()
    process.join(args[-1] + LIMIT)
    if process.is_alive():
        process.kill()
        process.join()
        return "time"
    return heard.recv() if heard.poll() else "crash" if process.exitcode else "survived"


class Session:
    """A plugin of pytest that, once all tests are imported and collected, runs those of each
    mutant."""

    def __init__(self, args):
        self._args, self.told = args, "no mutant was looked at"

    def pytest_configure(self):
        from hypothesis import settings

        settings.register_profile("slow", deadline=None)
        settings.load_profile("slow")

    def pytest_runtestloop(self, session):
        args, (by_line, size) = self._args, tests_of_lines()
        self._items = {item.nodeid: item for item in session.items}
        same = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["same"]
        same = {(each["before"], each["after"]) for each in same}
        record, results = json.loads(RECORD.read_text()) if RECORD.exists() else {}, {}
        for mutant in drawn(args.n, args.seed, args.names):
            key, start = str(mutant), time.monotonic()
            known = record.get(key, "survived") if args.again else "survived"
            if (mutant.before, mutant.after) in same:
                results[key] = "the same"
            elif known in ("survived", "the same"):
                results[key] = self._found(mutant, tests_of(mutant, by_line, size))
            else:
                results[key] = known
            RECORD.parent.mkdir(exist_ok=True)
            RECORD.write_text(json.dumps(record | results, indent=1))
            print(f"{results[key]}  {key}  {time.monotonic() - start:.0f} s", flush=True)
        survived, same = (list(results.values()).count(what) for what in ("survived", "the same"))
        n, caught = len(results), len(results) - survived - same
        self.told = (
            f"{caught} of {n} mutants caught, {same} of the others compute the same: "
            f"{caught / (n - same):.1%}"
        )
        return True

    def _found(self, mutant, tests):
        """Return the outcome, leaving out tests that fail in this order without the mutant, too."""
        while True:
            items = [self._items[test] for test in tests if test in self._items]
            found = outcome(mutant, items, self._args.seconds)
            until = next((k for k, item in enumerate(items, 1) if item.nodeid == found), 0)
            without = outcome(None, items[:until], 10 * LIMIT) if until else "survived"
            if without == "survived":
                return found
            del self._items[without if without in self._items else found]


def main():
    """Run the tests of each mutant, and print how many were caught."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--again", action="store_true")
    options = [
        "--every-case",
        "-s",
        "-q",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        str(ROOT / "tests"),
    ]
    session = Session(parser.parse_args())
    status = pytest.main(options, [session])
    print(session.told)
    sys.exit(status)


if __name__ == "__main__":
    main()
