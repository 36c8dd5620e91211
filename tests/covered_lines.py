"""Which lines of sparserf/ the tests run, but for those of Cython: python tests/covered_lines.py

Some cases of each test, and all cases of those in tests/solvers and tests/losses. `tests/mutants.py` needs what it records.
"""

import subprocess
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[1]
PARTS = ["tests/losses", "tests/solvers"]


def main():
    record = ["--cov", "--cov-context=test", "--cov-report="]
    for more in ([], ["--whole", "--cov-append", *PARTS]):
        subprocess.run([sys.executable, "-m", "pytest", "-q", *record, *more], cwd=ROOT)
    found = coverage.Coverage(data_file=str(ROOT / ".coverage"), config_file=str(ROOT / "pyproject.toml"))
    found.load()
    share = found.report(show_missing=True, skip_covered=True)
    print(f"{share:.1f} % of the lines of sparserf/ run")


if __name__ == "__main__":
    main()
