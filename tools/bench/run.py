"""Side by side with what a user would pick instead: seconds (best of some), peak memory, and the ratio, in one run.

    python tools/bench/run.py --data DIR                 # all cases; tables to docs/benchmarks.md, numbers to .json
    python tools/bench/run.py transform correlate        # some of them

Each contender runs in a process of its own, so that its peak memory is its own; "MB" is the peak beyond what the process
held with its data loaded. Run it alone on the machine. --data (or SPARSERF_DATA) is a folder of .npz data sets; cases
that need one which is not there are skipped.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cases_classification  # noqa: F401
import cases_drp  # noqa: F401
import cases_harfe  # noqa: F401
import cases_mfga  # noqa: F401
import cases_rows  # noqa: F401
import cases_sparse_rf  # noqa: F401
from case import CASES
from memory import peak_mb, reset_peak_mb

DOCS = Path(__file__).parents[2] / "docs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.data:
        os.environ["SPARSERF_DATA"] = args.data
    if args.one:
        print(json.dumps(measure(*args.one)))
        return
    results = json.loads((DOCS / "benchmarks.json").read_text()) if (DOCS / "benchmarks.json").exists() else {}
    for name in args.names or CASES:
        results[name] = run_case(name)
        (DOCS / "benchmarks.json").write_text(json.dumps(results, indent=1) + "\n")
        (DOCS / "benchmarks.md").write_text(report(results))


def run_case(name):
    """One subprocess a contender; the first is ours."""
    rows = []
    for contender in CASES[name].contenders:
        one = [sys.executable, __file__, "--one", name, contender]
        try:
            with tempfile.TemporaryDirectory() as scratch:  # whose files go, too, where the contender is stopped
                here = os.environ | {"TMPDIR": scratch}
                done = subprocess.run(one, capture_output=True, text=True, timeout=CASES[name].longest, env=here)
        except subprocess.TimeoutExpired:
            why = f"not done in {CASES[name].longest} s, data and repetitions included"
            rows.append({"contender": contender, "skipped": why})
            print(name, rows[-1], flush=True)
            continue
        if done.returncode:
            rows.append({"contender": contender, "skipped": done.stderr.strip().splitlines()[-1]})
        else:
            rows.append({"contender": contender, **json.loads(done.stdout.splitlines()[-1]), "commit": commit()})
        print(name, rows[-1], flush=True)
    return rows


def measure(name, contender):
    case = CASES[name]
    data = case.load()
    before = reset_peak_mb()
    seconds, spent = [], 0.0
    for _ in range(case.repeat):
        start = time.perf_counter()
        result = case.contenders[contender](data)
        seconds.append(time.perf_counter() - start)
        spent += seconds[-1]
        if spent > 60:
            break
    used = peak_mb() - before
    return {"seconds": min(seconds), "runs": len(seconds), "mb": used, **case.describe(data, result)}


def report(results):
    lines = ["# Benchmarks", "", f"`python tools/bench/run.py`, {machine()}; each case at the commit that it names.", ""]
    for name, rows in results.items():
        lines += [
            f"## {name}",
            "",
            f"{CASES[name].about} Commit {rows[0].get('commit', 'unknown')}.",
            "",
            "| | seconds | ratio | peak MB | |",
            "|---|---|---|---|---|",
        ]
        ours = rows[0].get("seconds")
        for row in rows:
            if "skipped" in row:
                lines.append(f"| {row['contender']} | skipped: {row['skipped']} | | | |")
                continue
            notes = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items() if k not in SHOWN)
            ratio = f"{row['seconds'] / ours:.1f}" if ours else ""
            lines.append(f"| {row['contender']} | {row['seconds']:.3g} | {ratio} | {row['mb']:.0f} | {notes} |")
        lines.append("")
    return "\n".join(lines)


SHOWN = ("contender", "seconds", "mb", "runs", "commit")


def commit():
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=DOCS)
    return git.stdout.strip() or "unknown"


def machine():
    import numpy
    import scipy
    import sklearn

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    return f"{cores} cores ({platform.machine()}), Python {platform.python_version()}, {versions}"


if __name__ == "__main__":
    main()
