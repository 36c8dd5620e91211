"""Write docs/reliability.md: python tests/reliability.py [numbers of rows to run; without any, all
rows]"""

import json
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "docs" / "reliability.json", ROOT / "docs" / "reliability.md"
HEAD = """# Reliability in figures

What is tested, how many cases that is, and when it last ran. `python tests/reliability.py` runs
the commands and writes this page. Skipped cases are not counted.

| | what | must hold | passed | failed | seconds | last run |
|---|---|---|---|---|---|---|
"""


def outcome(command):
    """Run a command of the shell, and return how many cases passed, what failed, and the figures
    that it printed."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = re.sub(r"\bpytest\b", f"{sys.executable} -m pytest -q", command, count=1)
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    print(done.stdout)
    passed = sum(
        int(count) for count in re.findall(r"(\d+) (?:passed|of \d+ mutants caught)", done.stdout)
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.M)
    figures = re.findall(r"^figures of (.*)$", done.stdout, re.M)
    return passed, failed or ([command] if done.returncode or not passed else []), figures


def result(row):
    """Run the commands of a row, and return the record of what they said, with the commit and the
    machine."""
    start, (passed, failed, figures) = (
        time.perf_counter(),
        zip(*map(outcome, row["commands"]), strict=True),
    )
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    machine = (
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"NumPy {version('numpy')}"
    )
    return {
        "passed": sum(passed),
        "failed": [*chain(*failed)],
        "figures": [*chain(*figures)],
        "commit": commit,
        "seconds": round(time.perf_counter() - start),
        "day": time.strftime("%Y-%m-%d"),
        "machine": machine,
    }


def line(number, row, result):
    """Return the line of a row in the table."""
    if result is None:
        return f"| {number} | {row['what']} | {row['holds']} | | | | not yet |"
    return (
        f"| {number} | {row['what']} | {row['holds']} | {result['passed']:,} | "
        f"{len(result['failed'])} "
        f"| {result['seconds']:,} | {result['day']}, {result['commit']} |"
    )


def page(rows, results):
    """Return the text of the page."""
    lines = [line(number, row, results.get(row["name"])) for number, row in enumerate(rows, 1)]
    commands = [
        f"{n}. " + "; ".join(f"`{command}`" for command in row["commands"])
        for n, row in enumerate(rows, 1)
    ]
    figures = [
        f"- {figure}" for row in rows for figure in results.get(row["name"], {}).get("figures", [])
    ]
    machines = sorted({result["machine"] for result in results.values()})
    parts = [
        HEAD + "\n".join(lines),
        f"Run on {'; '.join(machines)}.",
        "The commands:",
        "\n".join(commands),
    ]
    return (
        "\n\n".join(parts + (["What tests record:", "\n".join(figures)] if figures else [])) + "\n"
    )


def main(numbers):
    """Run rows, store their records, and write the page after each."""
    rows = tomllib.loads((ROOT / "tests" / "reliability.toml").read_text())["row"]
    for number in numbers or range(1, len(rows) + 1):
        made = result(rows[number - 1])
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[rows[number - 1]["name"]] = made
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        PAGE.write_text(page(rows, results))


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
