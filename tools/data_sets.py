"""The data sets of the experiments: make those that are in this repository, and say of the others
whether they are there.

    python tools/data_sets.py DIR

`data_sets.toml` says where each comes from; the page docs/data.md is made of it, and of what the
experiments ask for.
"""

import os
import sys
import tomllib
import zlib
from pathlib import Path

HERE = Path(__file__).parent
SETS = tomllib.loads((HERE / "data_sets.toml").read_text())
# Functions that load a set by its name, or by the name of its `source`.
OF_FOLDER = (
    "data.split",
    "others.raw",
    "bench.text",
    "beside.grouped",
    "beside.in_order",
    "data.folded",
    "beside.table",
)
OF_REPOSITORY = ("data.csv", "shapes.table")
SAID = {
    "repository": "in this repository",
    "scikit-learn": "in scikit-learn",
    "origin": "at its origin",
    "folder": "in TabArena",
}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        if (HERE / f"data/{name}.csv").exists() and not (folder / file_of(name)).exists():
            make(name, folder)
        print(f"{name:30} {state(name, folder)}")


def file_of(name):
    """The file of a set, in the folder of data."""
    of = SETS[name]["from"] == "folder"
    return f"{SETS[name]['folder']}/{name}.csv.gz" if of else f"{name}.npz"


def make(name, folder):
    """Write a table of tools/data as experiments read it."""
    import numpy as np

    table = np.loadtxt(HERE / f"data/{name}.csv", delimiter=",", skiprows=1)
    X, start = table[:, :-1].astype(np.float32), np.int64(SETS[name]["test_start"])
    np.savez_compressed(folder / file_of(name), X=X, y=table[:, -1], test_start=start)


def state(name, folder):
    """What there is of a set: a word, or how it differs from what the records are of."""
    said, path = SETS[name], folder / file_of(name)
    if said["from"] == "scikit-learn":
        return "is in scikit-learn"
    if not path.exists():
        return f"is not there: {said['origin']}; see docs/data.md"
    if said["from"] == "folder":
        return "is there"
    import numpy as np

    with np.load(path) as found:
        shape = found["X"].shape if "X" in found.files else tuple(map(int, found["shape"]))
        target = f"{zlib.crc32(found['y'].astype(np.float64).tobytes()):08x}"
    if shape != (said["rows"], said["columns"]):
        return f"is another: {shape[0]} x {shape[1]}, not {said['rows']} x {said['columns']}"
    return "is there" if target == said["crc"] else "is another: its target has other values"


def source_of(name, one):
    """The set that a set of an experiment is made of; None where that is a formula. What is read of
    tools/data has a `tools/data/` before its name, what is of a folder of tables that."""
    load, of = one["load"], one["load"].get("of")
    source = load.get("source", name)
    if "(" in source:
        return next((known for known in SETS if f":load_{known}'" in source), None)
    if "folder" in load:
        return f"{load['folder']}/{source}"
    if of in OF_REPOSITORY:
        return f"tools/data/{source}"
    of_paper = any(each["of"] == "papers.harfe" for each in one["contenders"].values())
    return source if of in OF_FOLDER or (of_paper and not load and "f" not in one) else None


def missing(name, one):
    """Why the rows of a set cannot be had; empty where they can."""
    source, folder = source_of(name, one), os.environ.get("SPARSERF_DATA")
    named = (source or "").rpartition("/")[2]
    if (
        not source
        or source.startswith("tools/data/")
        or SETS.get(named, {}).get("from") == ("scikit-learn")
    ):
        return ""
    if not folder:
        return f"needs {source}, and no folder of data is given by --data or SPARSERF_DATA"
    suffix = ".csv.gz" if "/" in source else ".npz"
    there = Path(folder, source + suffix).exists()
    return "" if there else f"{source} is not in the folder of data; docs/data.md says what it is"


def used(experiments):
    """{set: the names of the experiments that read it}, of {name: its sets}."""
    found = {}
    for experiment, there in experiments.items():
        for name, one in there.items():
            if source := source_of(name, one):
                found.setdefault(source.rpartition("/")[2], set()).add(experiment)
    return found


def lines(stored):
    """The table of the page; stored(name): the sets and the records of an experiment. Experiments
    that are of no page are left out."""
    files = sorted(HERE.glob("experiments/*.toml"))
    of_pages = [f.stem for f in files if tomllib.loads(f.read_text()).get("figures", True)]
    readers = used({name: stored(name)[0] for name in of_pages})
    yield "| set | rows × columns | target | where it is | origin | licence | read by |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, said in SETS.items():
        cells = [
            f"`{name}`",
            f"{said['rows']:,} × {said['columns']:,}",
            said["target"],
            SAID[said["from"]],
            said["origin"] + (f"; copy: {said['copy']}" if "copy" in said else ""),
            said["licence"],
            ", ".join(sorted(readers.get(name, ()))),
        ]
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
