"""The runner and the report writer of tools/ on an experiment made for the test, and the
experiments that are stored."""

import argparse
import gzip
import importlib
import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.spatial import cKDTree

import sparserf as srf

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
FILES = sorted((TOOLS / "experiments").glob("*.toml"))
FAKE = """
title = "Fake"
about = "Of nothing."
[groups.one]
title = "The first"
load = {of = "data.synthetic", f = "X[:, 0]", d = 2, test = 20}
describe = {of = "fits.told", error = "float(model)", rows = "len(data.y)"}
seeds = 2
contenders.ours = {of = "fits.run", do = "2.0"}
contenders."theirs, twice" = {of = "fits.run", do = "4.0"}
contenders.absent = {of = "fits.run", needs = ["no_such_library"], do = "0"}
contenders.broken = {of = "fits.run", do = "1 / 0"}
contenders.unfit = {of = "fits.estimator", make = "none", limits = {squared = 3}}
[[groups.one.tables]]
columns = {set = "{set}", paper = "{paper[0]}"}
cell = "{error:.1f} of {rows:.0f}"
[[groups.one.tables]]
kind = "standing"
by = ["group"]
[groups.one.sets]
a = {load = {n = 30}, paper = [7, 8]}
b = {load = {n = 40}, seeds = 1, paper = [9]}
"""
# Where records are made.
MADE = {"machine": "here", "threads": 1, "versions": "Python 3", "commit": "aaa"}


@pytest.fixture(scope="module")
def tools():
    """(run, report), the modules of tools/, removed from sys.modules after the tests."""
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("run"), importlib.import_module("report")
    sys.path.remove(str(TOOLS))
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] in ("run", "report", "data_sets", "experiments", "baselines")
    ]:
        del sys.modules[name]


def test_what_is_missing_is_run_and_recorded_and_a_page_written(tmp_path, tools, monkeypatch):
    """The runs take place in this process."""
    run, _ = tools
    file, calls = tmp_path / "fake.toml", []
    file.write_text(FAKE)

    def here(name, one, key, args):
        calls.append(key)
        try:
            first = run.Records(args.to, name).found.get((*key[:2], 0))
            return run.measure(one, *key, first)
        except ZeroDivisionError as error:
            return {"failed": str(error)}

    monkeypatch.setattr(run, "in_process", here)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", str(file), "--to", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"failed: .*fake\.toml a broken 0"):
        run.main()
    assert len(calls) == 12
    records = [
        json.loads(line) for line in (tmp_path / "tables/fake.jsonl").read_text().splitlines()
    ]
    assert {(r["set"], r["contender"]) for r in records} == {
        (s, c) for s in "ab" for c in ("ours", "theirs, twice", "unfit")
    }
    assert sum(r["set"] == "a" for r in records) == 6 and sum(r["set"] == "b" for r in records) == 3
    for record in records:
        assert {"machine", "versions", "threads", "commit"} <= set(record)
        assert record.get("skipped") == ("too slow" if record["contender"] == "unfit" else None)
        assert record["contender"] == "unfit" or record["seconds"] >= 0 <= record["mb"]
    page = (tmp_path / "tables/fake.md").read_text()
    assert page.startswith("# Fake\n\n`python tools/run.py --only")
    assert (
        "| set | paper | ours | theirs, twice |\n| --- | --- | --- | --- |\n| a | 7 | 2.0 of 30 | "
        "4.0 of 30 |\n" in page
    )
    assert "| b | 9 | 2.0 of 40 | 4.0 of 40 |\n" in page
    assert "| one | theirs, twice | 2 | 0.50 | 0.50 | 2 | 0.50 |" in page
    assert "threads, Python 3" in page and "commit" in page

    calls.clear()
    with pytest.raises(SystemExit, match="failed"):
        run.main()
    # what has a record already is not run again
    assert {key[1] for key in calls} == {"broken"}
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--report"])
    calls.clear()
    run.main()
    assert not calls and (tmp_path / "tables/fake.md").read_text() == page


@pytest.mark.slow
def test_a_contender_runs_in_a_process_of_its_own_and_is_stopped(tmp_path):
    file = tmp_path / "fake.toml"
    slow = """{slow = {of = "fits.run", do = "of('time:sleep')(9)"}}"""
    file.write_text(FAKE + f"c = {{load = {{n = 5}}, longest = 1, seeds = 1, contenders = {slow}}}")
    some = ["--sets", "b", "c", "--contenders", "ours", "slow"]
    command = [sys.executable, TOOLS / "run.py", "--only", file, "--to", tmp_path, *some]
    # modules of tools/ import each other
    env = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    ours, slow = map(json.loads, (tmp_path / "tables/fake.jsonl").read_text().splitlines())
    assert ours["error"] == 2.0 and ours["rows"] == 40
    assert slow["skipped"].startswith("not done in 1 s")


@pytest.mark.slow
def test_a_contender_runs_by_the_interpreter_that_it_names(tmp_path, tools):
    """The record has the commit of what that interpreter imports; without it, it is not run."""
    run, _ = tools
    file = tmp_path / "fake.toml"
    other = """{of = "fits.run", do = "{'python': of('sys:executable')}", describe = {}, """
    other += """interpreter = "that"}"""
    file.write_text(FAKE + f"c = {{load = {{n = 5}}, seeds = 1, contenders = {{other = {other}}}}}")
    experiment = run.read(str(file))
    args = argparse.Namespace(to=tmp_path, interpreters={}, threads=1)
    key = ("c", "other", 0)
    found = run.in_process(str(file), run.sets(experiment)["c"], key, args)
    assert found == {"absent": "needs --interpreters that=PYTHON"}
    args.interpreters = {"that": sys.executable}
    found = run.in_process(str(file), run.sets(experiment)["c"], key, args)
    commit = run.where((), Path(srf.__file__).parent)["commit"]
    assert found["python"] == sys.executable and found["commit"] == commit
    assert found["threads"] == 1 and found["took"] > 0


@pytest.fixture
def fake(tmp_path, tools, monkeypatch):
    """`run_it(*arguments)`, which runs the fake experiment in this process and returns what was
    made, of contenders that do not fail."""
    run, _ = tools
    file, calls = tmp_path / "fake.toml", []
    file.write_text("".join(line + "\n" for line in FAKE.split("\n") if "broken" not in line))

    def here(name, one, key, args):
        calls.append(key)
        return run.measure(one, *key, None) | {"took": 7.5}

    def run_it(*arguments):
        calls.clear()
        given = ["--only", str(file), "--to", str(tmp_path), *arguments]
        monkeypatch.setattr(sys, "argv", ["run.py", *given])
        run.main()
        return list(calls)

    monkeypatch.setattr(run, "in_process", here)
    return run_it


def test_all_makes_what_is_of_another_commit_machine_or_threads_and_goes_on(
    tmp_path, tools, fake, monkeypatch
):
    run, _ = tools
    at = {"commit": "aaa", "machine": "one", "threads": 2, "versions": "some"}
    monkeypatch.setattr(run, "where", lambda *_: dict(at))
    assert len(fake("--all")) == 9 and fake("--all") == []
    for change in ({"commit": "bbb"}, {"machine": "other"}):
        at |= change
        assert fake() == []  # it has a record
        # parts of no time make one record each, in order, until all are made
        parts = [fake("--all", "--hours", "0") for _ in range(10)]
        assert [len(part) for part in parts] == [1] * 9 + [0]
        assert len({part[0] for part in parts[:9]}) == 9
    assert len(fake("--all", "--threads", "1")) == 9
    path = tmp_path / "tables/fake.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(r["commit"], r["machine"]) for r in records} == {("bbb", "other")}
    # a seed that is not asked for any more
    path.write_text(path.read_text() + json.dumps(records[0] | {"seed": 9}) + "\n")
    assert fake("--all", "--sets", "b") == [] and len(path.read_text().splitlines()) == 10
    assert fake("--all") == [] and len(path.read_text().splitlines()) == 9
    at["commit"] = "bbb+"
    with pytest.raises(SystemExit, match="the library has changes"):
        fake("--all")


def test_jobs_without_seconds_run_side_by_side_and_seeds_wait_for_the_first(tools, monkeypatch):
    run, _ = tools
    monkeypatch.setattr(run, "n_cores", lambda: 3)
    assert [run.n_at_once(one) for one in ({}, {"timed": True}, {"timed": False})] == [1, 1, 3]
    together, done = threading.Barrier(3, timeout=10), []

    def here(name, one, key, args):
        if key[2] == 0:
            together.wait()  # for ever, if they did not run side by side
            done.append(key)
        else:
            assert len(done) == 3
        return {"of": key}

    monkeypatch.setattr(run, "in_process", here)
    jobs = [((name, "ours", seed), {}) for seed in (0, 1) for name in "abc"]
    found = list(run.done_side_by_side("fake", iter(jobs), None, 3))
    assert found == [(job, {"of": job[0]}) for job in jobs]


def test_the_plan_has_the_seconds_of_what_would_run(tmp_path, fake, capsys):
    assert fake("--plan") == []
    plan = capsys.readouterr().out
    assert "9 jobs" in plan and "9 of which have no known seconds" in plan
    assert "3 jobs  skipped: needs no_such_library" in plan
    fake("--contenders", "ours")
    capsys.readouterr()
    path = tmp_path / "tables/fake.jsonl"
    first, *rest = map(json.loads, path.read_text().splitlines())
    path.write_text("".join(json.dumps(one) + "\n" for one in rest))
    fake("--contenders", "ours", "--plan", "--hours", "0.001")
    plan = capsys.readouterr().out  # the other seed of that set took 7.5 s, more than 3.6
    assert "1 jobs" in plan and "8 s, 0.0 hours, 3 parts" in plan and "known" not in plan
    assert first["set"] == "a" and fake("--plan", "--contenders", "ours", "--sets", "b") == []
    assert "0 jobs" in capsys.readouterr().out


def test_seconds_are_expected_by_the_nearest_record(tools):
    run, _ = tools
    found = {
        ("a", "x", 0): {"took": 50.0, "seconds": 1.0},
        ("a", "x", 1): {"seconds": 10.0, "runs": 3},
        ("b", "y", 0): {"error": 1.0},
    }
    assert run.expected(("a", "x", 0), found) == 50
    assert run.expected(("a", "x", 1), found) == 30 + run.START
    assert run.expected(("a", "x", 2), found) == run.expected(("c", "x", 0), found)
    assert run.expected(("c", "x", 0), found) == (50 + 30 + run.START) / 2
    assert run.expected(("b", "y", 0), found) is None


def test_the_commit_of_a_record_is_the_last_that_changed_the_library(tmp_path, tools):
    """Commits of records and pages change nothing; what is not committed is seen."""
    run, _ = tools
    (library := tmp_path / "library").mkdir()

    def git(*words):
        who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
        said = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True)
        return said.stdout.strip()

    git("init", "-q")
    (tmp_path / "meson.build").write_text("project")
    (library / "one.py").write_text("1")
    git("add", "."), git("commit", "-qm", "the library")
    first = git("rev-parse", "--short", "HEAD")
    (tmp_path / "records").write_text("2")
    git("add", "."), git("commit", "-qm", "records")
    assert run.where((), library)["commit"] == first != git("rev-parse", "--short", "HEAD")
    (tmp_path / "records").write_text("3")
    assert run.where((), library)["commit"] == first
    (library / "one.py").write_text("2")
    assert run.where((), library)["commit"] == f"{first}+"


def test_a_page_of_several_commits_is_a_fault(tools, monkeypatch):
    _, report = tools
    table = {"of": ["one"], "columns": {"set": "{set}"}, "made": False}
    monkeypatch.setattr(report, "PAGES", {"words": [table]})
    sets, commits = {"a": {"contenders": {"x": {}}}}, ["aaa", "aaa"]

    def stored(_):
        found = records({("a", "x", k): 1.0 for k in range(len(commits))})
        return sets, [r | {"commit": c} for r, c in zip(found, commits, strict=True)]

    empty = "# Title\n\nWords.\n\n<!-- table: words -->\n<!-- end -->\n"
    (fault,) = report.faults({"page.md": empty}, stored, ["one"])
    assert fault == "page.md: run `python tools/run.py --report`"
    page = report.fill(empty, stored)
    assert report.fill(page, stored) == page and report.faults({"page.md": page}, stored, []) == []
    commits[1] = "bbb"
    for name, fault in zip(
        ("page.md", "tables/one.jsonl"),
        report.faults({"page.md": page}, stored, ["one"]),
        strict=True,
    ):
        assert fault.startswith(f"{name} has figures of several commits (aaa, bbb): make them at")


@pytest.mark.slow
def test_the_figures_of_each_page_are_of_one_commit(tools):
    run, report = tools
    if not (ROOT / "docs/tables").exists():
        pytest.skip("records are not in the source distribution")
    assert report.faults(run.texts(), run.stored, run.experiments()) == []


def test_the_data_sets_are_those_that_experiments_read(tools):
    run, _ = tools
    data_sets = importlib.import_module("data_sets")
    there = {name: run.stored(name)[0] for name in run.experiments()}
    assert data_sets.used(there).keys() == data_sets.SETS.keys()
    for name, said in data_sets.SETS.items():
        assert {"rows", "columns", "target", "origin", "licence"} <= said.keys(), name
        assert (said["from"] == "repository") == (TOOLS / f"data/{name}.csv").exists(), name


def test_sets_that_are_not_there_are_named_and_skipped(tools, monkeypatch, tmp_path):
    """No process is started for them, and a folder that has them all misses nothing."""
    run, _ = tools
    data_sets = importlib.import_module("data_sets")
    there = {name: run.stored(name)[0] for name in run.experiments()}
    asked = [(name, one) for sets in there.values() for name, one in sets.items()]
    monkeypatch.delenv("SPARSERF_DATA", raising=False)
    said = data_sets.missing("ccpp", there["auto"]["ccpp"])
    assert said == "needs ccpp, and no folder of data is given by --data or SPARSERF_DATA"
    assert not data_sets.missing("digits", there["multinomial"]["digits"])
    assert not data_sets.missing("ccpp", there["shapes"]["ccpp"])  # of tools/data
    monkeypatch.setenv("SPARSERF_DATA", str(tmp_path))
    said = data_sets.missing("diamonds", there["tabarena"]["diamonds"])
    assert said.startswith("tabarena/diamonds is not in the folder of data; docs/data.md says")
    (tmp_path / "tabarena").mkdir()
    for name in data_sets.SETS:
        (tmp_path / data_sets.file_of(name)).touch()
    assert not any(data_sets.missing(name, one) for name, one in asked)


def test_what_is_in_the_repository_is_made_as_experiments_read_it(
    tools, monkeypatch, tmp_path, capsys
):
    data_sets = importlib.import_module("data_sets")
    monkeypatch.setattr(sys, "argv", ["data_sets.py", str(tmp_path / "data")])
    data_sets.main()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines.keys() == data_sets.SETS.keys()
    made = {path.stem for path in (tmp_path / "data").iterdir()}
    assert {name for name, said in lines.items() if said == "is there"} == made >= {"airfoil"}
    assert lines["digits"] == "is in scikit-learn"
    assert lines["protein"].startswith("is not there: UCI Physicochemical")
    monkeypatch.setenv("SPARSERF_DATA", str(tmp_path / "data"))
    X, y, start = importlib.import_module("experiments.data").stored("airfoil")
    table = np.loadtxt(TOOLS / "data/airfoil.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(X, table[:, :-1], rtol=1e-6)
    assert (y == table[:, -1]).all() and start == data_sets.SETS["airfoil"]["test_start"]
    path = tmp_path / "data/airfoil.npz"
    np.savez(path, X=X, y=y + 1, test_start=start)
    assert data_sets.state("airfoil", path.parent) == "is another: its target has other values"
    np.savez(path, X=X[1:], y=y[1:], test_start=start)
    assert data_sets.state("airfoil", path.parent) == "is another: 1499 x 5, not 1500 x 5"


@pytest.mark.parametrize("said", [False, True])
def test_rows_in_groups_or_time_are_held_out_whole_or_later(said, tools):
    beside = importlib.import_module("experiments.beside")
    source = "(np.column_stack([np.arange(200.0) // 5, np.arange(200) % 5]), np.arange(200))"
    data = beside.grouped("made", 1, [0], source=source, rows=100, tell=said)
    assert not set(data.X[:, 0]) & set(data.X_test[:, 0]) and len(data.y_test) == 60
    assert (
        len(data.y) == 100 and np.unique(data.X[:, 0], return_counts=True)[1].tolist() == [5] * 20
    )
    assert (data.more == {}) == (not said)
    if said:
        assert len(np.unique(np.column_stack([data.more["groups"], data.X[:, 0]]), axis=0)) == 20
    later = beside.in_order("made", source=source, rows=70, tell=said)
    assert later.y.max() < later.y_test.min() and len(later.y) == 70 and len(later.y_test) == 60
    assert (np.diff(later.y) > 0).all() and set(later.more) == ({"validation"} if said else set())
    # in a run, too, where what an experiment says of a set is at hand by the name "said"
    load = {"of": "beside.people", "n": 20} | ({"tell": True} if said else {})
    people = tools[0].call(load, name="people", seed=0, said={"load": load})
    assert set(people.more) == ({"groups"} if said else set())
    assert not set(people.X[:, 0]) & set(people.X_test[:, 0]) and len(people.y) == 160


@pytest.mark.slow
def test_errors_beside_the_constant_are_told_for_each_kind_of_target(tools):
    """A constant has no excess; what a model says of its error is in the error's own unit."""
    beside = importlib.import_module("experiments.beside")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 2))
    for loss, y in {
        "squared": 5 * X[:, 0],
        "logistic": np.where(X[:, 0] > 0, "a", "b"),
        "multinomial": np.digitize(X[:, 0], [-0.5, 0.5]),
    }.items():
        data = argparse.Namespace(X=X[:60], y=y[:60], X_test=X[60:], y_test=y[60:], loss=loss)
        found = beside.measured(data, 0, effort=0.1)
        assert found["varies"] and found["terms"] and found["excess"] < 0 < found["error"]
        assert found["cpu"] > 0 and found["said"] > 0 and found["warned"] == []
        flat = argparse.Namespace(**vars(data) | {"X": 0 * X[:60]})
        found = beside.measured(flat, 0, effort=0.1)
        assert not found["varies"] and found["excess"] == pytest.approx(0, abs=1e-6), loss


def records(values):
    """Return records of these errors, keyed by contender, set and seed."""
    return [
        {"set": s, "contender": c, "seed": k, "error": e} | MADE for (s, c, k), e in values.items()
    ]


def test_ratios_are_geometric_means_over_seeds_in_common_and_sets(tools):
    _, report = tools
    of_a = {("a", "x", 0): 1.0, ("a", "x", 1): 4.0, ("a", "y", 0): 2.0, ("a", "y", 1): 2.0}
    found = records(of_a | {("b", "x", 0): 3.0, ("b", "y", 0): 1.0, ("b", "x", 1): 99.0})
    assert report.ratio(found, "a", "x", "y") == pytest.approx(math.sqrt(0.5 * 2))
    assert report.ratio(found, "b", "x", "y") == pytest.approx(3.0)
    assert math.isnan(report.ratio(found, "b", "x", "z"))
    found += records({("b", "w", 0): 9.0})
    sets = {"a": {"kind": "k"}, "b": {"kind": "l"}}
    head, _, *rows = report.standing({}, sets, found)
    assert head == "| beside | sets | median | geometric mean | ahead on | worst |"
    assert rows == ["| y | 2 | 2.00 | 1.73 | 0 | 3.00 |", "| w | 1 | 0.33 | 0.33 | 1 | 0.33 |"]
    costly = [r | {"mb": 5.0 if r["contender"] == "x" else 2.0} for r in found]
    head, _, *rows = report.standing({"by": ["kind"], "costs": {"MB": "mb"}}, sets, costly)
    assert head == "| sets of | beside | sets | median | geometric mean | ahead on | worst | MB |"
    assert (
        rows[0] == "| k | y | 1 | 1.00 | 1.00 | 0 | 1.00 | 2.5 |"
        and rows[-1].startswith("| l | w | 1 |")
        and len(rows) == 3
    )


def test_rows_of_a_table_are_chosen_and_sorted_by_expressions_and_know_the_best_rival(tools):
    _, report = tools
    errors = {
        ("a", "x", 0): 3.0,
        ("a", "y", 0): 2.0,
        ("a", "z", 0): 2.9,
        ("b", "x", 0): 1.0,
        ("b", "y", 0): 2.0,
    }
    # a seed of one contender alone
    found = records(errors | {("c", "x", 0): 9.0, ("c", "y", 0): 3.0, ("c", "x", 1): 1.0})
    table = {"where": "ratio > 1", "sort": "-ratio"}
    table["columns"] = {
        "set": "{set}",
        "rival": "{rival}, {rival_error:.1f}",
        "ours": "{ours:.1f}",
        "ratio": "{ratio:.1f}",
    }
    sets = {name: {"contenders": dict.fromkeys("xyz")} for name in "abc"}
    assert report.plain(table, sets, found)[2:] == [
        "| c | y, 3.0 | 9.0 | 3.0 |",
        "| a | y, 2.0 | 3.0 | 1.5 |",
    ]


def test_means_are_over_all_sets(tools):
    _, report = tools
    found = records({("a", "x", 0): 1.0, ("b", "x", 0): 4.0, ("a", "y", 0): 3.0})
    columns = {"": "{contender}", "sets": "{error_n}", "mean": "{error_geo:.1f}"}
    _, _, *rows = report.means({"columns": columns}, {}, found)
    assert rows == ["| x | 2 | 2.0 |", "| y | 1 | 3.0 |"]


def test_changes_are_beside_the_first_contender(tools):
    _, report = tools
    errors = {("a", "x", 0): 1.0, ("a", "x", 1): 2.0, ("b", "x", 0): 1.0, ("b", "x", 1): 1.0}
    of_y = {("a", "y", 0): 2.0, ("a", "y", 1): 4.0, ("b", "y", 0): 0.5, ("c", "y", 0): 9.0}
    found = [r | {"terms": 3 * r["error"]} for r in records(errors | of_y)]
    found.append({"set": "a", "contender": "slow", "seed": 0, "skipped": "too slow"})
    table = {"measures": {"error": "error", "of it": "terms", "none": "mb"}}
    mean, spread = 2 ** (1 / 3), math.log(2) * math.sqrt(8 / 27)
    assert report.changes(table, {name: {} for name in "abc"}, found) == [
        "|  | error | ± | worst set | of it | none |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| y | {mean:.3f} | {spread:.3f} | 2.00 | {mean:.3f} | nan |",
    ]


@pytest.mark.slow
def test_the_default_is_fitted_with_a_rule_changed_and_then_as_it_was(tools):
    ablation = importlib.import_module("experiments.ablation")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    y = np.sin(3 * X[:, 0]) + (X[:, 1] > 0)
    some, rest = {"X": X[:80], "y": y[:80]}, {"X_test": X[80:], "y_test": y[80:]}
    data = argparse.Namespace(**some, **rest, loss="squared")
    before = ablation.changed(data, 0)
    without = ablation.changed(data, 0, without=["cosines", "rules"])
    assert without["terms"] == 1 and without["error"] > 1.2 * before["error"]
    most = ablation.changed(data, 0, put={"search:PRUNED": "0 * 1.0"})
    assert most["terms"] > before["terms"]
    again = ablation.changed(data, 0)
    assert (again["terms"], again["error"]) == (before["terms"], before["error"])
    with pytest.raises(LookupError, match=r"changes default:NOTHING, which"):
        ablation.changed(data, 0, put={"default:NOTHING": 1})
    with pytest.raises(LookupError, match=r"leaves out .*'bumps'"):
        ablation.changed(data, 0, without=["bumps"])


def test_every_rule_that_the_ablation_changes_is_there(tools):
    run, _ = tools
    ablation = importlib.import_module("experiments.ablation")
    names = {
        name
        for one in run.sets(run.read("ablation")).values()
        for spec in one["contenders"].values()
        for name in spec.get("put", ())
    }
    assert len(names) > 10
    for name in names:
        ablation.place_of(name)


def test_pages_get_the_tables_that_they_ask_for(tools, monkeypatch):
    _, report = tools
    sets = {name: {"contenders": {"x": {}, "y": {}}} for name in ("a1", "b1")}
    said = [
        MADE | {"set": name, "contender": who, "seed": 0, "says": f"{name} of {who}  \n two\n"}
        for name in sets
        for who in "xy"
    ]
    some = {"of": ["one"], "sets": ["a*"], "contenders": ["y"]}
    columns = {"columns": {"set": "{set}"}, "cell": "{says}", "about": "About.", "made": False}
    pages = {"words": [some | {"kind": "quoted"}], "both": [some | columns, some | {"columns": {}}]}
    monkeypatch.setattr(report, "PAGES", pages)
    text = (
        "Before.\n\n<!-- table: words -->\nold\n<!-- end -->\nBetween.\n<!-- table: both "
        "-->\n<!-- end -->\nAfter."
    )
    filled = report.fill(text, lambda name: (sets, said) if name == "one" else None)
    command = "`python tools/run.py --only one`. Made on"
    assert filled.startswith(text[:30])
    assert f"<!-- table: words -->\n```\na1 of y\n two\n```\n\n{command}" in filled
    assert (
        "Between.\n<!-- table: both -->\nAbout.\n\n| set | y |\n| --- | --- |\n| a1 | a1 of y  "
        "<br> two |" in filled
    )
    assert filled.count("run.py") == 1 and report.fill(filled, lambda name: (sets, said)) == filled


def test_kinds_of_tables_are_counted_ahead_level_and_behind(tools, monkeypatch):
    """Of two experiments with sets of the same name; medians of costs are over the sets."""
    _, report = tools
    sets = {name: {"contenders": {"x": {}, "y": {}}} for name in "abc"}
    errors = {("a", "x", 0): 1.0, ("b", "x", 0): 1.01, ("c", "x", 0): 3.0}
    said = records(errors | {(name, "y", 0): 1.0 + (name == "a") for name in "abc"})
    for k, one in enumerate(said):
        one["seconds"], one["size"] = 2.0, 1000.0 * (1 + k % 3)
    table = {"of": ["one", "two"], "kind": "verdicts", "beside": ["y", "z"], "made": False}
    table["kinds"] = {"all": ["one: *"], "some": ["two: b"], "none": ["two: d"]}
    monkeypatch.setattr(report, "PAGES", {"kinds": [table]})
    rows = report.asked_for("kinds", lambda name: (sets, said)).splitlines()[2:]
    assert rows == [
        "| all | y | 1 | 1 | 1 | 1.15 | 3.00 | 2,000 | 2 | 2,000 | 2 |",
        "| some | y | 0 | 1 | 0 | 1.01 | 1.01 | 2,000 | 2 | 2,000 | 2 |",
    ]


@pytest.mark.parametrize("least", [0.01, 0.6])
def test_ratios_far_below_one_do_not_squeeze_the_others(least, tools):
    """They have a panel of their own, and are arrows at the edge against size and seconds."""
    _, report = tools
    said = records({("a", "x", 0): least, ("b", "x", 0): 1.2, ("a", "y", 0): 1, ("b", "y", 0): 1})
    said = [one | {"size": 3, "seconds": 5.0} for one in said]
    figure = report.dots({"xlabel": "ratio"}, ["a", "b"], said)
    assert len(figure.axes) == (2 if least < 0.5 else 1)
    assert figure.axes[-1].get_xlim()[0] > 0.4
    axes = {"beside": "y", "size": "terms", "seconds": "s", "ylabel": "ratio"}
    for ax in report.points(axes, ["a", "b"], said).axes:
        drawn = {line.get_marker() for line in ax.lines}
        assert ("v" in drawn) == (least < 0.5) and ax.get_ylim()[0] > 0.4


def test_summaries_over_seeds(tools):
    _, report = tools
    found = report.measures(records({("a", "x", 0): 1.0, ("a", "x", 1): 4.0}))
    expected = {"error": 2.5, "error_geo": 2.0, "error_sd": 1.5, "error_n": 2, "error_max": 4.0}
    assert {key: found[key] for key in expected} == expected
    stored = report.measures(
        [{"set": "a", "contender": "x", "seed": 0, "error": 3.0, "error_sd": 0.25, "of": 100}]
    )
    # from a record that already is a summary
    assert (stored["error"], stored["error_sd"]) == (3.0, 0.25)
    assert (
        report.cell(["{error:.1f} ({terms})", "{error:.2f} | {error_short}"], found) == "2.50 \\| 2"
    )
    assert report.cell("{nothing}", found) == ""
    large = {"set": "a", "contender": "x", "rows": 2**10, "inputs": 2**8}
    found = report.measures([large | {"seed": k, "mb": mb} for k, mb in enumerate((0.5, 1.5))])
    assert found["bytes_a_cell"] == 4.0 and "bytes_a_cell" not in stored


def test_cells_of_a_map_have_two_categories_and_near_ones_are_alike(tools):
    """Rows whose heights and distances are near are of one class more often than others; seeds
    differ."""
    forest = importlib.import_module("experiments.data").forest
    data, other = (forest(seed, 3000, 100) for seed in (0, 1))
    assert data.X.shape == (3000, 54) and data.X_test.shape == (100, 54)
    assert data.X.dtype == np.float32 and (data.X != other.X).any()
    for hot in (data.X[:, 10:14], data.X[:, 14:]):
        assert (hot.sum(axis=1) == 1).all() and (hot.sum(axis=0) > 0).all()
    share = np.bincount(data.y) / 3000
    assert len(share) == 7 and share.min() < 0.01 and share.max() > 0.4
    numbers = data.X[:, [0, 3, 5, 9]] / data.X[:, [0, 3, 5, 9]].std(axis=0)
    _, pairs = cKDTree(numbers).query(numbers, 2)
    is_alike = np.mean(data.y[pairs[:, 1]] == data.y)
    assert is_alike > (share**2).sum() + 0.1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of data that has three tables of six rows, with words and gaps, each in three folds,
    and published errors."""
    target = {
        "amount": [1.0, 2, 3, 4, 5, 6],
        "answer": ["yes", "no", "no", "yes", "yes", "no"],
        "letter": list("abcabc"),
    }
    kinds, place = (
        {"amount": "regression", "answer": "binary", "letter": "multiclass"},
        tmp_path / "some",
    )
    place.mkdir()
    for name, y in target.items():
        rows = zip(
            [0.5, "", 2, 3, 4, 5], ["x", "y", "", "x", "z", "y"], [1, 2, 1, 2, 1, 2], y, strict=True
        )
        text = "size,word,code,target\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
        (place / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    index = {
        name: {"target": "target", "kind": kind, "categorical": ["code"]}
        for name, kind in kinds.items()
    }
    (place / "index.json").write_text(json.dumps(index))
    np.savez(
        place / "folds.npz",
        **{f"{name}/{k}": np.array([2 * k, 2 * k + 1]) for name in kinds for k in range(3)},
    )
    published = (
        "dataset,method,metric_error,time_train_s\namount,A "
        "(x),2.0,30\namount,B,1.5,20\nanswer,A (x),0.5,10\n"
    )
    (place / "published.csv").write_text(published)
    monkeypatch.setenv("SPARSERF_DATA", str(tmp_path))
    return tmp_path


def test_sets_of_a_folder_are_those_of_its_index_and_of_the_records(folder, tools, monkeypatch):
    run, _ = tools
    experiment = {"groups": {"all": {"folder": "some", "contenders": {"x": {"seeds": 2}, "y": {}}}}}
    records = {("letter", "x", 0): {}, ("older", "x", 0): {}}
    sets = run.sets(experiment, records)
    assert (
        list(sets) == ["amount", "answer", "letter", "older"]
        and sets["older"]["contenders"] == sets["amount"]["contenders"]
    )
    args = argparse.Namespace(sets=["a*"], contenders=["*"], quick=False, seeds=None)
    keys = [key for key, _ in run.chosen(sets, args)]
    assert keys == [
        (name, who, k) for name in ("amount", "answer") for who, k in (("x", 0), ("y", 0), ("x", 1))
    ]
    args.seeds, args.contenders = 3, ["y"]
    assert [key for key, _ in run.chosen(sets, args)] == [
        (name, "y", k) for name in ("amount", "answer") for k in range(3)
    ]
    monkeypatch.delenv("SPARSERF_DATA")
    assert list(run.sets(experiment, records)) == ["letter", "older"] and run.sets(experiment) == {}


def test_rows_of_a_folder_are_raw_and_split_as_its_folds_say(folder, tools):
    pytest.importorskip("pandas")
    load = importlib.import_module("experiments.data").folded
    data = load("amount", 0, "some")
    assert data.y.tolist() == [3, 4, 5, 6] and data.y_test.tolist() == [1, 2]
    assert (data.loss, data.measure) == ("squared", "RMSE")
    assert data.X.columns.tolist() == ["size", "word", "code"] and data.X.isna().sum().sum() == 1
    assert [str(kind) for kind in data.X.dtypes] == ["float64", "category", "category"]
    assert (data.X.dtypes == data.X_test.dtypes).all()  # with the same levels
    assert (
        data.published["A (x)"] == {"error": 2.0, "seconds": 30}
        and data.published["best of all"] == data.published["B"]
    )
    later = load("answer", 4, "some")
    assert (
        later.y_test.tolist() == [-1, 1]
        and later.y.tolist() == [1, -1, 1, -1]
        and later.measure == "1-AUC"
    )
    assert later.published == {}  # they are those of the first fold
    assert (
        load("letter", 2, "some").y.tolist() == [0, 1, 2, 0]
        and load("letter", 2, "some").published == {}
    )
    with pytest.raises(
        FileNotFoundError, match=r"needs none/index\.json: .* --data or SPARSERF_DATA"
    ):
        load("amount", 0, "none")


def test_a_contender_may_say_itself_how_its_result_is_told(tools):
    run, _ = tools
    quotes = {"of": "fits.run", "do": "{'each': {'A': {'error': 1.0}}}", "describe": {}}
    one = {
        "load": {},
        "describe": {"of": "fits.told", "error": "1 / 0"},
        "repeat": 1,
        "contenders": {"quotes": quotes},
    }
    assert run.measure(one, "a", "quotes", 0, None)["each"] == {"A": {"error": 1.0}}


def test_errors_are_as_the_benchmark_defines_them(tools):
    loss_of = importlib.import_module("experiments.fits").loss_of
    assert loss_of("RMSE", np.array([1.0, 3.0]), np.array([0.0, 0.0])) == pytest.approx(
        math.sqrt(5)
    )
    assert loss_of(
        "1-AUC", np.array([0.1, 0.3, 0.2, 0.9]), np.array([-1, -1, 1, 1])
    ) == pytest.approx(0.25)
    assert loss_of("log-loss", np.array([[0.5, 0.25, 0.25]]), np.array([1])) == pytest.approx(
        math.log(4)
    )


def test_contenders_that_a_record_quotes_are_rivals_with_ranks(tools):
    _, report = tools
    quoted = {
        "A": {"error": 2.0, "seconds": 3.0},
        "B (x)": {"error": 0.5, "seconds": 9.0},
        "C": {"error": 0.1, "seconds": 1.0},
    }
    found = [
        r | {"seconds": 6.0}
        for r in records({("a", "x", 0): 1.0, ("a", "x", 1): 7.0, ("b", "x", 0): 3.0})
    ]
    found += [
        {"set": "a", "contender": "quotes", "seed": 0, "machine": "m", "cpu": 1.0, "each": quoted}
    ]
    found += [
        {
            "set": "b",
            "contender": "quotes",
            "seed": 0,
            "each": quoted | {"C": {"error": 6.0, "seconds": 1.0}},
        }
    ]
    sets = {
        name: {"contenders": {"x": {}, "quotes": {}}, "rivals": ["A", "B (x)"]} for name in "ab"
    }
    parts = report.ordered(sets, found)
    assert [r["contender"] for r in parts] == ["x", "x", "x", *quoted, *quoted]
    assert parts[3] == {
        "set": "a",
        "seed": 0,
        "machine": "m",
        "contender": "A",
        "error": 2.0,
        "seconds": 3.0,
    }
    columns = {
        "set": "{set}",
        "rank": "{rank} of {ranked}",
        "best": "{rival} {ratio:.1f}",
        "C": "{C[beside]:.2g}",
    }
    rows = report.plain({"columns": columns}, sets, parts)[2:]
    assert rows == ["| a | 2 of 3 | B (x) 2.0 | 10 |", "| b | 3 of 3 | B (x) 6.0 | 0.5 |"]
    rows = [line.strip("| ").split(" | ") for line in report.ranks({}, sets, parts)[2:]]
    assert rows == [
        ["B (x)", "1.0", "2", "3.46", "6.00"],
        ["A", "2.5", "0", "0.87", "1.50"],
        ["x", "2.5", "0", "1.00", "1.00"],
    ]
    rows = report.standing({"sort": "-mean", "costs": {"s": "seconds"}}, sets, parts)[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| B (x)", "| C", "| A"] and rows[1].endswith(
        "| 1 | 10.00 | 6 |"
    )
    assert report.ranks({}, sets, [])[2:] == []


def test_lines_are_of_lists(tools):
    _, report = tools
    one = {"set": "a", "contender": "x", "m": [10, 20], "bound": [5.0, None]}
    found = [one | {"seed": k, "error": [4.0, 1.0 + k]} for k in (0, 1)]
    figure = report.lines({"x": "m", "y": ["error"], "dashed": "bound"}, {"a": {}}, found)
    mean, dashed = figure.axes[0].lines
    assert (
        list(mean.get_xdata()) == [10, 20]
        and list(mean.get_ydata()) == [4.0, 1.5]
        and dashed.get_ydata()[0] == 5
    )
    plt.close(figure)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_experiments_name_functions_that_are_there_and_pages_are_of_their_records(
    path, tools, tmp_path, monkeypatch
):
    run, report = tools
    experiment, stored = run.read(path.stem), run.Records(ROOT / "docs", path.stem).found
    sets = run.sets(experiment, stored)
    for name, one in sets.items():
        assert one["contenders"], name
        for spec in [*one["contenders"].values(), *filter(None, (one["load"], one["describe"]))]:
            module, function = spec["of"].rsplit(".", 1)
            assert callable(getattr(importlib.import_module(f"experiments.{module}"), function))
    assert {key[0] for key in stored} <= set(sets)
    assert all(contender in sets[name]["contenders"] for name, contender, _ in stored)
    if stored and experiment.get("page", True):
        monkeypatch.setattr(
            report,
            "PICTURES",
            dict.fromkeys(report.PICTURES, lambda *_: plt.figure(figsize=(0.1, 0.1))),
        )
        report.write(experiment, sets, list(stored.values()), tmp_path)
        page = experiment.get("page", f"tables/{path.stem}.md")
        assert (tmp_path / page).read_text() == (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
)
def test_tables_of_pages_are_of_their_records(page, tools):
    run, report = tools
    if not (ROOT / "docs/tables").exists():
        pytest.skip("records are not in the source distribution")
    text = (ROOT / page).read_text()
    assert (
        text.count("<!-- table: ") == text.count("<!-- end -->") == len(report.MARK.findall(text))
    )
    assert report.fill(text, run.stored) == text


def test_every_table_that_is_declared_is_on_a_page_and_every_record_in_a_table(tools):
    run, report = tools
    asked = {name for page in run.PAGES for _, name, _ in report.MARK.findall(page.read_text())}
    assert asked == {*report.PAGES, "data_sets"}
    shown = {of for tables in report.PAGES.values() for table in tables for of in table["of"]}
    assert {path.stem for path in FILES if not run.read(path.stem).get("page", True)} <= shown


@pytest.mark.slow
@pytest.mark.parametrize("target", ["price", "kind", "colour"])
def test_a_table_with_words_and_gaps_is_fitted_without_a_line_of_code(target, tmp_path):
    """Targets are real, or labels of two or three words; rows without a target are left out, and
    each step is printed."""
    rng, path = np.random.default_rng(0), tmp_path / "mine.csv"
    kinds, colours, size = (
        rng.choice(["a<b", "b c"], 80),
        rng.choice(["red", "green", "blue"], 80),
        rng.uniform(1, 2, 80),
    )
    lines = [["size", "kind", "colour", "price"]]
    lines += [
        [f"{x:.3f}", kind, colour, f"{x + (kind == 'b c'):.3f}"]
        for x, kind, colour in zip(size, kinds, colours, strict=True)
    ]
    lines[3][0], lines[4][1], lines[5][2], lines[6][3] = "", "NA", "?", ""
    path.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8-sig")
    picture, model = tmp_path / "fit.png", tmp_path / "fit.npz"
    command = [
        sys.executable,
        str(TOOLS / "fit.py"),
        str(path),
        "--target",
        target,
        "--picture",
        str(picture),
        "--save",
        str(model),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loss = {"price": "squared", "kind": "logistic", "colour": "multinomial"}[target]
    words = 2 if target == "price" else 1
    assert (
        f"79 rows; 3 inputs, {words} of words; 3 missing cells; {target}: " in done.stdout
        and f"loss {loss}" in done.stdout
    )
    steps = [
        line.split(" s  ")[1].split()[0] for line in done.stdout.splitlines() if " s  " in line
    ]
    assert (
        steps == ["reads", "79", "fits", "fits", "fits", "draws", "writes"]
        and done.stdout.count("a linear model: ") == 1
    )
    assert picture.stat().st_size > 1000 and srf.load(model).loss == loss


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "none.csv"
    done = subprocess.run(
        [sys.executable, str(TOOLS / "fit.py"), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode
        and "none.csv cannot be read: " in done.stderr
        and "Traceback" not in done.stderr
    )


def test_a_row_of_too_few_cells_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b\n1,2\n3\n")
    done = subprocess.run(
        [sys.executable, str(TOOLS / "fit.py"), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode
        and "row 3 of " in done.stderr
        and "has 1 cells, the header has 2" in done.stderr
    )
