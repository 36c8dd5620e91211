"""Do the tests notice what is wrong? Changes one place of solvers/ and losses/ at a time, and runs the tests of its line.

    python -m pytest --cov --cov-context=test --cov-report=   # which tests run which line
    python tests/mutants.py [-n N] [--seed K] [--seconds S] [--again: what survived last time] [PART OF A FILE'S NAME ...]

A mutant is compiled in place of its file in a process of its own: nothing is written to sparserf/. It is caught where a test
fails, or takes a minute; and has survived where none does among those that run its line, fewest lines first, for S seconds.
Those of tests/mutants.toml compute the same.
"""

import argparse
import ast
import importlib.machinery
import json
import multiprocessing
import os
import random
import re
import sys
import time
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = "solvers", "losses"
RECORD = ROOT / "build" / "mutants.json"
MOST = 400  # tests of a mutant
LIMIT = 60  # seconds more than those of the tests, from which on a mutant is taken to run for ever
PRELOADED = "numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "hypothesis", "sklearn"

A = ast
SWAPS = {A.Lt: [A.LtE, A.GtE], A.LtE: [A.Lt, A.Gt], A.Gt: [A.GtE, A.LtE], A.GtE: [A.Gt, A.Lt], A.Eq: [A.NotEq], A.NotEq: [A.Eq],
         A.Is: [A.IsNot], A.IsNot: [A.Is], A.In: [A.NotIn], A.NotIn: [A.In], A.Add: [A.Sub], A.Sub: [A.Add], A.Mult: [A.Div],
         A.Div: [A.Mult], A.FloorDiv: [A.Mult], A.Mod: [A.Mult], A.Pow: [A.Mult], A.BitAnd: [A.BitOr], A.BitOr: [A.BitAnd],
         A.RShift: [A.LShift], A.And: [A.Or], A.Or: [A.And]}  # fmt: skip
PAIRS = [("min", "max"), ("minimum", "maximum"), ("any", "all"), ("argmin", "argmax"), ("zeros", "ones"), ("log1p", "log"),
         ("expm1", "exp"), ("zeros_like", "ones_like"), ("searchsorted", "digitize")]  # fmt: skip
NAMES = dict(PAIRS) | {b: a for a, b in PAIRS}


@dataclass
class Mutant:
    file: str
    lines: range
    before: str
    after: str

    def __str__(self):
        return f"{self.file}:{self.lines.start}  {self.before}  ->  {self.after}"


def replacements(node):
    """What may stand in place of a node."""
    match node:
        case ast.Compare(ops=[op]):
            yield from (ast.Compare(node.left, [swap()], node.comparators) for swap in SWAPS[type(op)])
        case ast.BinOp() if type(node.op) in SWAPS:
            yield from (ast.BinOp(node.left, swap(), node.right) for swap in SWAPS[type(node.op)])
        case ast.BoolOp():
            yield from (ast.BoolOp(swap(), node.values) for swap in SWAPS[type(node.op)])
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool(x)):
            yield ast.Constant(not x)
        case ast.Constant(value=int(x) | float(x)):
            yield from (ast.Constant(x + 1), ast.Constant(2 * x if isinstance(x, float) and x else x - 1))
        case ast.If() | ast.IfExp() | ast.While():
            yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            yield ast.Call(ast.Attribute(node.func.value, NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.Call(args=[a, b]) if not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred):
            yield ast.Call(node.func, [b, a], node.keywords)
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Break() | ast.Continue():
            yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.AugAssign() if type(node.op) in SWAPS:
            yield from (ast.AugAssign(node.target, SWAPS[type(node.op)][0](), node.value), ast.Pass())
        case ast.Expr() | ast.Raise() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()


def is_left_alone(node):
    """Types, names that are imported, text."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_text or is_for_types or isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))


def places(node, statement=None):
    """(the list that a node is in, its place there, its statement) of all that may be changed."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        holder, keys = (value, range(len(value))) if isinstance(value, list) else (vars(node), [name])
        for key in keys:
            child = holder[key]
            if isinstance(child, ast.AST) and not is_left_alone(child):
                own = child if isinstance(child, ast.stmt) else statement
                yield holder, key, own
                if not isinstance(child, ast.Raise):
                    yield from places(child, own)


def header(statement):
    return next(line for line in ast.unparse(statement).splitlines() if not line.startswith("@"))


def mutants(path):
    """(mutant, the tree as it is while that is looked at) of a file."""
    tree = ast.parse(path.read_text())
    for holder, key, statement in places(tree):
        node, before = holder[key], header(statement)
        for new in replacements(node):
            holder[key] = ast.copy_location(new, node)
            changed = new if node is statement else statement
            lines = range(node.lineno, (node.test if hasattr(node, "test") else node).end_lineno + 1)
            yield Mutant(str(path.relative_to(ROOT / "sparserf")), lines, before, header(changed)), tree
            holder[key] = node


def drawn(n, seed, names):
    """About n mutants, of each file as many as it has places, and 3 at least."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / "sparserf" / folder).glob("*.py"))]
    of = {path: [mutant for mutant, _ in mutants(path)] for path in files}
    total = sum(map(len, of.values()))
    for path, every in of.items():
        share = min(len(every), max(3, round(n * len(every) / total)))
        if not names or any(name in str(path) for name in names):
            yield from random.Random(f"{seed} {path.name}").sample(every, share)


def tests_of_lines():
    """{file: {line: tests that run it}}, and of each test the lines that it runs."""
    data, by_line, size = coverage.CoverageData(str(ROOT / ".coverage")), {}, defaultdict(int)
    data.read()
    for folder in FOLDERS:
        for path in (ROOT / "sparserf" / folder).glob("*.py"):
            lines = {line: {c.removesuffix("|run") for c in contexts if c.endswith("|run")}
                     for line, contexts in data.contexts_by_lineno(str(path)).items()}  # fmt: skip
            by_line[str(path.relative_to(ROOT / "sparserf"))] = lines
            for test in (test for tests in lines.values() for test in tests):
                size[test] += 1
    return by_line, size


def tests_of(mutant, by_line, size):
    """Those that run its lines; of what runs on import, a constant, those that run lines with its name, or any of the file."""
    lines = by_line[mutant.file]
    found = set().union(*(lines.get(line, ()) for line in mutant.lines))
    if not found:
        text = (ROOT / "sparserf" / mutant.file).read_text().splitlines()
        name = re.match(r"\w+", mutant.before)[0]
        found = set().union(*(lines.get(k, ()) for k, line in enumerate(text, 1) if name in line))
    found = found or set().union(*lines.values())
    return sorted(found, key=lambda test: (size[test], test))[:MOST]


class Watch:
    """A plugin: tells the first test that fails, and ends the run when its seconds are over."""

    def __init__(self, seconds, tell):
        self._seconds, self._tell = seconds, tell

    def pytest_collection_finish(self):
        self._end = time.monotonic() + self._seconds

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._tell(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid, location):
        if time.monotonic() > self._end:
            pytest.exit("enough", returncode=0)


def run(file, code, tests, seconds, tell):
    """In a process of its own: the tests, with other code for a file of sparserf."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    loader, path = importlib.machinery.SourceFileLoader, str(ROOT / "sparserf" / file)
    get_code = loader.get_code
    loader.get_code = lambda self, name: code if self.path == path and code else get_code(self, name)
    try:
        importlib.import_module("sparserf")
    except BaseException:
        tell("import sparserf")
        os._exit(1)
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:cov", *tests], [Watch(seconds, tell)]))


def outcome(file, code, tests, seconds):
    """"survived", or what has caught it."""
    fork = multiprocessing.get_context("fork")
    heard, tell = fork.Pipe(duplex=False)
    process = fork.Process(target=run, args=(file, code, tests, seconds, tell.send))
    process.start()
    process.join(seconds + LIMIT)
    if process.is_alive():
        process.kill()
        return "time"
    if process.exitcode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit("tests have other names than when their lines were recorded: record them again")
    return heard.recv() if heard.poll() else "survived" if process.exitcode == 0 else f"status {process.exitcode}"


def code_of(mutant):
    for each, tree in mutants(ROOT / "sparserf" / mutant.file):
        if each == mutant:
            return compile(ast.fix_missing_locations(tree), mutant.file, "exec")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    for name in PRELOADED:
        importlib.import_module(name)
    same = {(each["before"], each["after"]) for each in tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["same"]}
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    (by_line, size), results = tests_of_lines(), {}
    for mutant in drawn(args.n, args.seed, args.names):
        key = str(mutant)
        if (mutant.before, mutant.after) in same:
            results[key] = "the same"
        elif args.again and record.get(key, "survived") != "survived":
            results[key] = record[key]
        else:
            start = time.monotonic()
            results[key] = outcome(mutant.file, code_of(mutant), tests_of(mutant, by_line, size), args.seconds)
            print(f"{results[key]}  {key}  {time.monotonic() - start:.0f} s", flush=True)
        RECORD.write_text(json.dumps(record | results, indent=1))
    by = sorted({result for result in results.values() if "::" in result})
    if outcome("", None, by, 600) != "survived":
        sys.exit("a test that has caught a mutant fails without one")
    survived, same = (sum(result == what for result in results.values()) for what in ("survived", "the same"))
    caught, n = len(results) - survived - same, len(results)
    print(f"{caught} of {n} mutants caught, {same} of the others compute the same: {caught / (n - same):.1%}")


if __name__ == "__main__":
    main()
