"""Run experiments, and write their records, tables and pictures: every figure of README and docs
that is measured.

    python tools/run.py --all --data DIR                        # every figure, of one commit
    python tools/run.py --all --data DIR --plan                 # the seconds that this takes
    python tools/run.py --all --data DIR --hours 2              # a part of it; then the next one
    python tools/run.py --data DIR                              # what has no record
    python tools/run.py --data DIR --only auto mixed            # some experiments
    python tools/run.py --only benchmarks --sets 'correlate*'   # some of their sets
    python tools/run.py --report                                # pages and pictures, from records
    python tools/run.py --quick                                 # does everything run? Few rows

--all makes what has no record of this commit, on this machine, with as many threads, and drops the
records of what no experiment asks for any more. It may be stopped at any time, and goes on where it
was. The commit is the last one that changed the library, which must have no other changes: to
commit records between two parts changes nothing. Experiments with `figures = false` are of no page,
and run only where they are named.

--interpreters old=PYTHON new=PYTHON have other installations of sparserf, for contenders that name
one of them. --contenders names some contenders of the sets. --quick runs few rows and one seed, and
writes to a temporary folder.

An experiment is `experiments/NAME.toml`: groups of sets, each with how rows are loaded, contenders,
and what is told of a result. Each contender runs on each set and seed in a process of its own,
whose peak memory is its own: "mb" is the peak beyond what the process held with its rows and
modules loaded. Its record, a line of docs/tables/NAME.jsonl, says where it was made, and in
"took" the seconds of the whole process. What has a record is not run again, unless --again. Run it
alone on the machine. Of an experiment with `timed = false`, whose jobs have one thread and whose
tables no seconds but those of the processor, as many run side by side as there are cores. --data
(or SPARSERF_DATA) is a folder of .npz data sets, and of folders of tables (docs/data.md); what
needs one that is not there, or a library that is not, is skipped.
"""

import argparse
import contextlib
import importlib
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import data_sets

DOCS, FOLDER = Path(__file__).parents[1] / "docs", Path(__file__).parent / "experiments"
LIBRARY = DOCS.parent / "sparserf"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
DEFAULTS = {
    "seeds": 1,
    "repeat": 1,
    "longest": 1800,
    "threads": 2,
    "load": {},
    "describe": {},
    "tables": [],
    "pictures": [],
}
# Seconds of a process beside those of its fit, for records from before "took": jobs of a tenth of a
# second took 2.2 to 5.5 on a machine that was busy.
START = 2.0


def main():
    args = arguments()
    if args.one:
        name, which, contender, seed = args.one
        found = Records(args.to, name).found
        record = measure(
            sets(read(name), found)[which],
            which,
            contender,
            int(seed),
            found.get((which, contender, 0)),
        )
        print(json.dumps(record, default=lambda number: number.item()))
        return
    names = args.only or [name for name in experiments() if read(name).get("figures", True)]
    if args.plan:
        print(plan(names, args))
        return
    if args.all and args.now["commit"].endswith("+"):
        raise SystemExit("the library has changes: commit them, as records name a commit")
    import report  # with matplotlib, which processes of contenders are spared

    failed, time_left = [], TimeLeft(args.hours)
    for name in names:
        experiment, records = read(name), Records(args.to, name)
        failed += [] if args.report else run(experiment, records, args, time_left)
        if records.found and experiment.get("page", True):
            report.write(
                experiment, sets(experiment, records.found), list(records.found.values()), args.to
            )
    for page in PAGES if args.to == DOCS else ():
        page.write_text(report.fill(page.read_text(), stored))
    if time_left.is_over:
        print(f"{args.hours:g} hours are over; the same command goes on")
    if failed:
        raise SystemExit("failed: " + "; ".join(failed))


def experiments():
    """Return the names of all experiments."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def texts():
    """Return {name: text} of README and of all pages of docs that have figures."""
    pages = [*PAGES, *sorted(DOCS.glob("tables/*.md"))]
    return {page.relative_to(DOCS.parent).as_posix(): page.read_text() for page in pages}


def stored(name):
    found = Records(DOCS, name).found
    return sets(read(name), found), list(found.values())


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="experiments")
    parser.add_argument(
        "--all", action="store_true", help="make all that is not of this commit and machine"
    )
    parser.add_argument("--plan", action="store_true", help="say what would run, and its seconds")
    parser.add_argument(
        "--hours", type=float, default=float("inf"), help="begin nothing that would end later"
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        metavar="SET",
        default=["*"],
        help="some of the sets, or patterns of their names",
    )
    parser.add_argument(
        "--contenders",
        nargs="+",
        metavar="WHO",
        default=["*"],
        help="some of the contenders, or patterns",
    )
    parser.add_argument("--data", help="the folder of the data sets (default: SPARSERF_DATA)")
    parser.add_argument("--seeds", type=int, help="so many (default: what the experiment says)")
    parser.add_argument(
        "--threads", type=int, help="of contenders (default: what the experiment says)"
    )
    parser.add_argument(
        "--interpreters",
        nargs="+",
        metavar="NAME=PYTHON",
        default=[],
        help="of contenders that name one",
    )
    parser.add_argument("--again", action="store_true", help="run what has a record, too")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--to", type=Path, help="the folder that is written to (default: docs)")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.interpreters = dict(one.split("=", 1) for one in args.interpreters)
    args.to = args.to or (Path(tempfile.mkdtemp(prefix="quick-")) if args.quick else DOCS)
    if args.data:
        os.environ["SPARSERF_DATA"] = str(Path(args.data).resolve())
    args.now = where(()) if args.all else None
    if args.quick:
        os.environ["SPARSERF_QUICK"], args.seeds = "1", 1
        print(f"to {args.to}")
    return args


def read(name):
    """The experiment of a name or of a file; what it does not say is as in the one that it is
    `like`."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.exists():
        raise SystemExit(
            f"no experiment {name}; there are "
            f"{', '.join(sorted(p.stem for p in FOLDER.glob('*.toml')))}"
        )
    said = tomllib.loads(path.read_text())
    base = read(said["like"]) if "like" in said else {"groups": {}}
    groups = {
        group: base["groups"].get(group, {}) | of
        for group, of in said.get("groups", base["groups"]).items()
    }
    return base | said | {"name": name, "groups": groups}


def sets(experiment, recorded=()):
    """{name: set}, each with what its group and the experiment say of all; `recorded` are keys of
    records."""
    common = DEFAULTS | {key: value for key, value in experiment.items() if key in DEFAULTS}
    found = {}
    for group, of in experiment["groups"].items():
        shared = (
            common | {"contenders": {}} | {key: value for key, value in of.items() if key != "sets"}
        )
        for name, one in (of["sets"] if "sets" in of else listed(of["folder"], recorded)).items():
            both = {key: shared[key] | one.get(key, {}) for key in ("load", "describe")}
            found[name] = shared | one | both | {"group": group}
    return found


def listed(folder, recorded):
    """Sets that an experiment does not name: those of the index of a folder of tables, and those
    that have a record."""
    index = Path(os.environ.get("SPARSERF_DATA", ""), folder, "index.json")
    there = (
        json.loads(index.read_text()) if "SPARSERF_DATA" in os.environ and index.exists() else {}
    )
    return {name: {} for name in sorted({*there, *(key[0] for key in recorded)})}


class Records:
    """The records of an experiment, one a set, contender and seed."""

    def __init__(self, folder, name):
        self.path = folder / f"tables/{Path(name).stem}.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.found = {
            (one["set"], one["contender"], one["seed"]): one for one in map(json.loads, lines)
        }

    def add(self, key, record):
        named = dict(zip(("set", "contender", "seed"), key, strict=True))
        self.found[key] = named | record | named
        self.write()

    def keep(self, keys):
        """Drop the records of other keys."""
        others = set(self.found) - set(keys)
        for key in others:
            del self.found[key]
        if others:
            self.write()

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(
            "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in self.found.values())
        )
        part.replace(self.path)


class TimeLeft:
    """The hours that a run has; the first record may take more."""

    def __init__(self, hours):
        self.end, self.begun, self.is_over = time.monotonic() + 3600 * hours, False, False

    def has(self, seconds):
        """Return whether a job of so many seconds may begin; once not, then never."""
        self.is_over |= self.begun and time.monotonic() + seconds > self.end
        return not self.is_over


def run(experiment, records, args, time_left):
    """Make the records that are missing; the names of those that failed."""
    name, failed = experiment["name"], []
    if args.all and args.sets == args.contenders == ["*"] and args.seeds is None:
        records.keep(key for key, _ in chosen(sets(experiment, records.found), args))
    there = sets(experiment, records.found)
    if not there:
        print(name, "skipped: its tables are not in the folder of data; see docs/data.md")
    jobs = missing_jobs(name, there, records, args, time_left)
    for (key, _), found in done_side_by_side(name, jobs, args, n_at_once(experiment)):
        print(name, *key, f"skipped: {found['absent']}" if "absent" in found else found, flush=True)
        if "failed" in found:
            failed.append(" ".join(map(str, (name, *key))))
        elif "absent" not in found:
            records.add(key, found)
            time_left.begun = True
    return failed


def missing_jobs(name, there, records, args, time_left):
    """Yield what has no record, (set, contender, seed) and the set, while there is time; print what
    is skipped."""
    told = set()
    for key, one in chosen(there, args):
        if is_made(records.found.get(key), one, args):
            continue
        if missing := lacking(key, one):
            if missing not in told:
                print(name, *key[:2], f"skipped: {missing}", flush=True)
            told.add(missing)
            continue
        if not time_left.has(expected(key, records.found) or START):
            break
        yield key, one


def done_side_by_side(name, jobs, args, n):
    """Yield each job and what is found, n at a time; seeds wait for those before, as they read the
    record of 0."""
    running = deque()

    def first():
        job, found = running.popleft()
        return job, found.result()

    with ThreadPoolExecutor(n) as threads:
        for key, one in jobs:
            while running and running[-1][0][0][2] != key[2]:
                yield first()
            running.append(((key, one), threads.submit(in_process, name, one, key, args)))
            while len(running) == n:
                yield first()
        while running:
            yield first()


def n_at_once(experiment):
    """Return how many jobs run side by side: one, or where no seconds of the clock are told as many
    as there are cores."""
    return 1 if experiment.get("timed", True) else n_cores()


def n_cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def lacking(key, one):
    """Return what a job needs that is not there, a set or libraries; an empty text for nothing."""
    spec = one["contenders"][key[1]]
    packages = {} if "interpreter" in spec else {m.partition(".")[0] for m in spec.get("needs", ())}
    absent = [package for package in sorted(packages) if find_spec(package) is None]
    return f"needs {', '.join(absent)}" if absent else data_sets.missing(key[0], one)


def is_made(record, one, args):
    """Return whether there is a record: where all are made at one commit, of it."""
    if args.again or record is None:
        return False
    now = {"threads": args.threads or one["threads"]} if args.all else {}
    now |= {name: args.now[name] for name in ("commit", "machine")} if args.all else {}
    return all(record.get(name) == value for name, value in now.items())


def expected(key, found):
    """Return the seconds of a whole job by the record of it, of another seed, or else of the same
    contender on other sets; None where there is none."""

    def seconds(record):
        fit = record.get("seconds")
        return record.get("took") or (None if fit is None else START + fit * record.get("runs", 1))

    same = [record for other, record in found.items() if other[:2] == key[:2]]
    alike = [record for other, record in found.items() if other[1] == key[1]]
    for some in ([found[key]] if key in found else [], same, alike):
        if known := [s for s in map(seconds, some) if s is not None]:
            return median(known)
    return None


def plan(names, args):
    """Return what would be run, as lines: of each experiment the jobs, their expected seconds, and
    the sets that are not there."""
    lines, total, unknown = [], 0.0, 0
    for name in names:
        experiment, found = read(name), Records(args.to, name).found
        jobs = [
            (key, one)
            for key, one in chosen(sets(experiment, found), args)
            if not is_made(found.get(key), one, args)
        ]
        lacks = {key: lacking(key, one) for key, one in jobs}
        each = [expected(key, found) for key, _ in jobs if not lacks[key]]
        known = [seconds for seconds in each if seconds is not None]
        seconds = sum(known) / n_at_once(experiment)
        line = f"{seconds:8,.0f} s  {len(each):4} jobs  {name}"
        if len(known) < len(each):
            line += f", {len(each) - len(known)} of which have no known seconds"
        absent = dict.fromkeys(filter(None, lacks.values()))
        lines += [
            line,
            *(
                f"{'':14}{sum(lacks[key] == why for key in lacks):4} jobs  skipped: {why}"
                for why in absent
            ),
        ]
        total, unknown = total + seconds, unknown + len(each) - len(known)
    parts = f", {-(-total // (3600 * args.hours)):.0f} parts" if args.hours < float("inf") else ""
    beside = f", and {unknown} jobs of unknown seconds" if unknown else ""
    return "\n".join([*lines, f"{total:8,.0f} s, {total / 3600:.1f} hours{parts}{beside}"])


def chosen(there, args):
    """(set, contender, seed) and the set, of what is asked for, contenders by turns; in a quick run
    of one set of each group."""
    groups = set()
    for name, one in there.items():
        is_new, quick = one["group"] not in groups, args.quick and args.sets == ["*"]
        if any(fnmatch(name, pattern) for pattern in args.sets) and (is_new or not quick):
            groups.add(one["group"])
            seeds = {
                who: spec.get("seeds", one["seeds"]) if args.seeds is None else args.seeds
                for who, spec in one["contenders"].items()
                if any(fnmatch(who, pattern) for pattern in args.contenders)
            }
            for k in range(max(seeds.values(), default=0)):
                yield from (((name, who, k), one) for who, n in seeds.items() if k < n)


def in_process(name, one, key, args):
    """Its record; or why there is none, which is `skipped` where that is a result, `absent` where
    something is to be had."""
    spec = one["contenders"][key[1]]
    named = spec.get("interpreter")
    if named and named not in args.interpreters:
        return {"absent": f"needs --interpreters {named}=PYTHON"}
    python = args.interpreters.get(named, sys.executable)
    command = [python, __file__, "--to", args.to, "--one", name, *map(str, key)]
    threads = str(args.threads or one["threads"])
    of_run = {"SPARSERF_WORKERS": threads, "OMP_NUM_THREADS": threads, "JAX_PLATFORMS": "cpu"}
    start = time.perf_counter()
    # whose files go, too, where the contender is stopped
    with tempfile.TemporaryDirectory() as scratch:
        try:
            env = os.environ | of_run | {"TMPDIR": scratch} | spec.get("env", {})
            if named:  # an editable installation builds itself by programs that are beside it
                env["PATH"] = os.pathsep.join([str(Path(python).parent), env.get("PATH", "")])
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=one["longest"], env=env
            )
        except subprocess.TimeoutExpired:
            said = {"skipped": f"not done in {one['longest']} s, data and repetitions included"}
            took = {"took": float(one["longest"])}
            return said | where(()) | {"threads": int(threads)} | took
    if done.returncode == 0:
        took = {"took": round(time.perf_counter() - start, 1)}
        return json.loads(done.stdout.splitlines()[-1]) | took
    print(done.stderr, file=sys.stderr)
    return {"failed": (done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1]}


def measure(one, name, contender, seed, first):
    """In a process of its own: costs, and what is told of the result. `first` is the record of seed
    0, with what it chose."""
    spec = one["contenders"][contender]
    context = {"name": name, "seed": seed, "first": first, "said": one, "spec": spec}
    try:
        for module in (*spec.get("needs", ()), f"experiments.{spec['of'].rsplit('.', 1)[0]}"):
            importlib.import_module(module)
        data = call(one["load"], **context) if one["load"] else None
        result, costs = timed(
            lambda: call(spec, data, **context),
            1 if "SPARSERF_QUICK" in os.environ else one["repeat"],
        )
    except ImportError as error:
        return {"absent": f"not installed: {error.name or error}"}
    except FileNotFoundError as error:
        return {"absent": str(error)}
    except NotImplementedError as error:  # a contender that does not take such rows
        return {"skipped": str(error)} | where(())
    describe = spec.get("describe", one["describe"])
    told = call(describe, data, result, **context) if describe else result
    folder = Path(sys.modules["sparserf"].__file__).parent if "interpreter" in spec else LIBRARY
    return costs | told | where(spec.get("needs", ()), folder)


def call(spec, /, *args, **context):
    """The function `of` a module of experiments/ with its options, and what it asks for of the
    context."""
    module, name = spec["of"].rsplit(".", 1)
    function = getattr(importlib.import_module(f"experiments.{module}"), name)
    options = {
        key: value
        for key, value in spec.items()
        if key not in ("of", "needs", "env", "seeds", "describe", "interpreter")
    }
    asked = inspect.signature(function).parameters
    return function(
        *args, **{key: value for key, value in context.items() if key in asked} | options
    )


def timed(function, repeat):
    """(its result, the least seconds of the clock and of the processor over the repetitions, the
    peak of memory beyond now)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew, on Linux
    before, runs = peak_mb(), []
    while len(runs) < repeat and sum(wall for wall, _ in runs) < 60:
        start = time.perf_counter(), time.process_time()
        result = function()
        runs.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = map(min, zip(*runs, strict=True))
    mb = max(peak_mb() - before, 0.0)
    return result, {"seconds": wall, "cpu": cpu, "runs": len(runs), "mb": mb}


def peak_mb():
    """Where the system does not say, nan."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else ["VmHWM: nan"]
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def where(needs, library=LIBRARY):
    """Where a record is made; the commit, the last that changed the library, with a + where there
    are changes since."""

    def git(*words):
        return subprocess.run(
            ["git", *words], capture_output=True, text=True, cwd=library
        ).stdout.strip()

    versions, threads = (
        [f"Python {platform.python_version()}"],
        int(os.environ.get("SPARSERF_WORKERS", 2)),
    )
    for package in dict.fromkeys(
        ("numpy", "scipy", *(one.split(".")[0].replace("sklearn", "scikit-learn") for one in needs))
    ):
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    of = "--", ".", "../meson.build"
    commit = git("log", "-1", "--format=%h", *of) or "unknown"
    commit += "+" * bool(git("status", "--porcelain", *of))
    said = {
        "machine": f"{n_cores()} cores ({processor()})",
        "versions": ", ".join(versions),
        "threads": threads,
    }
    return said | {"commit": commit}


if __name__ == "__main__":
    main()
