"""Which Python lines of sparserf/ the tests run: python tests/covered_lines.py

It runs some cases of each test, and all cases of those in tests/solvers and tests/losses, and
records which test runs which line: `tests/mutants.py` needs that record.
"""

import subprocess
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[1]
PARTS = ["tests/losses", "tests/solvers"]


def main():
    """Run the tests under coverage, and print the lines that no test runs."""
    record = ["--cov", "--cov-context=test", "--cov-report="]
    for more in ([], ["--every-case", "--cov-append", *PARTS]):
        subprocess.run([sys.executable, "-m", "pytest", "-q", *record, *more], cwd=ROOT)
    found = coverage.Coverage(
        data_file=str(ROOT / ".coverage"), config_file=str(ROOT / "pyproject.toml")
    )
    found.load()
    share = found.report(show_missing=True, skip_covered=True)
    print(f"{share:.1f} % of the lines of sparserf/ run")


if __name__ == "__main__":
    main()
