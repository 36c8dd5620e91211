"""Writes docs/reliability.md: python tests/reliability.py [the numbers of rows; none: all of them]."""

import json
import os
import platform
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs" / "reliability.json", ROOT / "docs" / "reliability.md"
HEAD = """# Reliability in figures

What is tested, how many cases that is, and when it last ran: written by `python tests/reliability.py`, which runs
each row's command, all cases and those of the night too. A case that was skipped, as the machine lacks what it needs,
is not counted.

| | what | must hold | passed | failed | seconds | last run |
|---|---|---|---|---|---|---|
"""


def counts(tests, seed, folder):
    """Runs pytest: (passed, failed)."""
    report = Path(folder) / "report.xml"
    marked = [] if "-m" in tests else ["-m", "nightly or not nightly"]
    env = os.environ | {"SPARSERF_SEED": str(seed)}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", *marked, *tests, f"--junitxml={report}"]
    if subprocess.run(command, cwd=ROOT, env=env).returncode > 1:
        sys.exit("pytest did not come to its end")
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    passed = [case for case in cases if len(case) == 0 or {part.tag for part in case} <= {"properties", "system-out"}]
    return len(passed), [f"{case.get('classname')}::{case.get('name')}" for case in failed]


def result(row):
    """A record of what a row's tests said, of the commit and the machine."""
    start, passed, failed = time.perf_counter(), 0, []
    with TemporaryDirectory() as folder:
        for seed in range(row["seeds"]) if "seeds" in row else [42]:
            more, wrong = counts(row["tests"], seed, folder)
            passed, failed = passed + more, failed + wrong
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, NumPy {version('numpy')}"
    return {"passed": passed, "failed": failed, "seconds": round(time.perf_counter() - start), "commit": commit,
            "day": time.strftime("%Y-%m-%d"), "machine": machine}  # fmt: skip


def line(number, row, result):
    if result is None:
        return f"| {number} | {row['what']} | {row['holds']} | | | | not yet |"
    return (f"| {number} | {row['what']} | {row['holds']} | {result['passed']:,} | {len(result['failed'])} "
            f"| {result['seconds']:,} | {result['day']}, {result['commit']} |")  # fmt: skip


def page(rows, results):
    lines = [line(number, row, results.get(row["what"])) for number, row in enumerate(rows, 1)]
    commands = [f"{n}. `pytest -m 'nightly or not nightly' {' '.join(row['tests'])}`" for n, row in enumerate(rows, 1)]
    machines = sorted({result["machine"] for result in results.values()})
    return HEAD + "\n".join(lines) + f"\n\nRun on {'; '.join(machines)}.\n\nThe commands:\n\n" + "\n".join(commands) + "\n"


def main(numbers):
    rows = tomllib.loads((ROOT / "tests" / "reliability.toml").read_text())["row"]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for number in numbers or range(1, len(rows) + 1):
        results[rows[number - 1]["what"]] = result(rows[number - 1])
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        PAGE.write_text(page(rows, results))


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
