"""features="auto" beside boosted trees, additive models and kernels, on every set of 1,000 rows and more, dense or CSR.

    python tools/tables/auto.py --data DIR [--rows 5000] [--seeds 1] [--only WHO,WHO] [--to auto] [names]

All get the same training rows, and choose on a tenth of them: the same tenth, but of sparse_rf and EBM, which draw their own.
--rows caps the training rows. "Chosen on" marks the sets on which the defaults of "auto" were chosen; the others were first run
when they stood. A cell is empty where a contender does not take CSR, is too slow for the size, or is not installed. Each runs
in a process of its own; MB is the peak of its fit beyond what the process held before, with its modules and data loaded.

Of names and --only, what the json has of other sets and contenders stays. Writes docs/tables/auto.{json,md,png}, or of the name
that --to gives.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from auto_contenders import CONTENDERS, POINTS, WORKERS
from scipy.sparse import csr_array

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from memory import peak_mb, reset_peak_mb

DOCS = Path(__file__).parents[2] / "docs" / "tables"
CHOSEN_ON = (
    "airfoil", "ccpp", "cpu_act", "kin40k", "protein", "cod_rna", "adult", "ijcnn1", "mnist_parity", "pcmac", "basehock",
    "house_16h", "kegg", "news", "reuters",
)  # fmt: skip
SETS = (*CHOSEN_ON, "galaxy", "telemonitor", "music", "farm_ads")
MOST_TEST, BATCH = 20_000, 10_000
# Seconds that a contender may take, and those that the clock of predictions may.
LONGEST, CLOCKED = 1800, 10.0
COSTS = ("seconds", "mb", "batch_us", "single_us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SETS)}")
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", help=f"WHO,WHO of {', '.join(map(repr, CONTENDERS))}")
    parser.add_argument("--to", default="auto")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("needs the data sets: give their folder by --data or SPARSERF_DATA")
    if args.one:
        print(json.dumps(measure(Path(args.data), args.names[0], args.rows, int(args.one[1]), args.one[0])))
        return
    who, path = chosen(args.only), DOCS / f"{args.to}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in args.names or SETS:
        old = results.get(name, []) if args.only else []
        results[name] = [run(args, name, seed, who, old[seed] if seed < len(old) else {}) for seed in range(args.seeds)]
        results[name] += old[args.seeds :]
        path.write_text(json.dumps(results, indent=1) + "\n")
        report({name: results[name] for name in SETS if name in results}, args.to)


def chosen(only):
    """The contenders of a list: the commas within their names have a space behind."""
    who = re.split(",(?! )", only) if only else list(CONTENDERS)
    if unknown := [w for w in who if w not in CONTENDERS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(CONTENDERS)}")
    return who


def load(folder, name, rows, seed):
    """(X, y, X_test, y_test, loss): the official split, each side shuffled; or four fifths of the shuffled rows."""
    z, rng = np.load(folder / f"{name}.npz"), np.random.default_rng(seed)
    X, y, split = stored(z), z["y"], int(z["test_start"])
    order = np.concatenate([rng.permutation(split), split + rng.permutation(len(y) - split)]) if split > 0 else None
    order, split = (rng.permutation(len(y)), int(0.8 * len(y))) if order is None else (order, split)
    train, test = order[: min(split, rows)], order[split : split + MOST_TEST]
    loss = "logistic" if len(np.unique(y)) == 2 else "squared"
    return X[train], y[train], X[test], y[test], loss


def stored(z):
    if "X" in z.files:
        return z["X"].astype(np.float64)
    parts = z["data"].astype(np.float64), z["indices"].astype(np.int32), z["indptr"].astype(np.int32)
    return csr_array(parts, shape=tuple(z["shape"]))


def run(args, name, seed, who, found):
    """What was found before, with the contenders that are run; each in a process, which prints its numbers."""
    X, _, _, _, loss = load(Path(args.data), name, args.rows, seed)
    if found and found["shape"] != list(X.shape):
        raise SystemExit(f"{name}: the others ran on {found['shape']}, these would on {list(X.shape)}; leave out --only")
    found |= {"shape": list(X.shape), "loss": loss}
    for one in who:
        reason = CONTENDERS[one].unfit(X, loss)
        found[one] = {"skipped": reason} if reason else in_process(args, name, seed, one)
        print(name, one, found[one], flush=True)
    return found


def in_process(args, name, seed, one):
    command = [sys.executable, __file__, name, "--data", args.data, "--rows", str(args.rows), "--one", one, str(seed)]
    threads = {"OMP_NUM_THREADS": str(WORKERS)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, env=os.environ | threads)
    except subprocess.TimeoutExpired:
        return {"skipped": f"too slow: not done in {LONGEST} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    said = (done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1]
    if said.startswith(("ImportError", "ModuleNotFoundError")):
        return {"skipped": f"not installed: {said}"}
    print(done.stderr, file=sys.stderr)
    return {"failed": said}


def measure(folder, name, rows, seed, one):
    """In a process of its own. The modules are there before the clock starts."""
    for module in CONTENDERS[one].needs:
        importlib.import_module(module)
    X, y, X_test, y_test, loss = load(folder, name, rows, seed)
    before, start = reset_peak_mb(), time.perf_counter()
    predict, size = CONTENDERS[one].fit(X, y, loss, seed)
    seconds, used = time.perf_counter() - start, peak_mb() - before
    z = np.concatenate([predict(X_test[i : i + BATCH]) for i in range(0, X_test.shape[0], BATCH)])
    error = np.mean((z - y_test) ** 2) / y.var() if loss == "squared" else np.mean(np.logaddexp(0, -y_test * z))
    batch = clock(predict, X_test[np.resize(np.arange(X_test.shape[0]), BATCH)], 5)
    costs = dict(zip(COSTS, (seconds, used, batch, clock(predict, X_test[:1], 100)), strict=True))
    return {"error": float(error), "size": size} | costs


def clock(predict, X, times):
    """Microseconds a row, the best of some, fewer where they take long."""
    each = []
    while len(each) < times and sum(each) < CLOCKED:
        start = time.perf_counter()
        predict(X)
        each.append(time.perf_counter() - start)
    return 1e6 * min(each) / X.shape[0]


def ran(runs, *who):
    """The seeds on which all of these ran."""
    return [one for one in runs if all("error" in one.get(w, {}) for w in who)]


def mean(runs, who, what):
    """The geometric mean over the seeds; nan where there is none."""
    values = [one[who][what] for one in ran(runs, who) if what in one[who]]
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-300))))) if values else np.nan


def ratio(results, names, other):
    """(error of auto over that of the other, geometric mean over sets and seeds in common; how many sets)."""
    common = [runs for runs in (ran(results[name], "auto", other) for name in names) if runs]
    logs = [np.log(mean(runs, "auto", "error") / mean(runs, other, "error")) for runs in common]
    return (float(np.exp(np.mean(logs))) if logs else np.nan), len(logs)


def report(results, to):
    who = [w for w in CONTENDERS if any(ran(runs, w) for runs in results.values())]
    others = [w for w in who if w != "auto"]
    rows = max(runs[0]["shape"][0] for runs in results.values())
    command = f"python tools/tables/auto.py --rows {rows}" + (f" --to {to}" if to != "auto" else "")
    about = f"`{command}`: " + " ".join(__doc__.split("\n\n")[2].split())
    units = (
        "MSE / variance of the target, or log loss, on the test rows; in brackets terms (1: a linear function of all inputs), "
        "leaves of all trees, bins of all parts of EBM, or rows in the kernel's sum. Geometric means over the seeds, "
        "which split, hold out and draw."
    )
    costs = (
        f"Seconds of the whole fit, its choices included ({POINTS} points for LightGBM tuned), on {WORKERS} threads / its peak "
        f"MB / microseconds a row in a batch of {BATCH:,} / microseconds of a single row."
    )
    lines = ['# features="auto" beside boosted trees, additive models and kernels', "", about, "", units, ""]
    lines += table(
        ["", "rows × inputs", *who], [[*label(n, runs), *(sized(runs, w) for w in who)] for n, runs in results.items()]
    )
    lines += ["", costs, ""]
    lines += table(["", *who], [[label(n, runs)[0], *(cost(runs, w) for w in who)] for n, runs in results.items()])
    lines += ["", "Geometric means of the error of auto over that of the others, and over how many sets:", ""]
    lines += [*table(["sets", *others], ratios(results, others)), "", *sums(results), "", f"![Errors]({to}.png)"]
    (DOCS / f"{to}.md").write_text("\n".join(lines) + "\n")
    draw(results, others, to)


def table(head, rows):
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def label(name, runs):
    shape = " × ".join(f"{n:,}" for n in runs[0]["shape"])
    seeds = f" ({len(runs)} seeds)" if len(runs) > 1 else ""
    return name + (" (chosen on)" if name in CHOSEN_ON else "") + seeds, shape


def sized(runs, who):
    if not ran(runs, who):
        return ""
    size = np.mean([one[who]["size"] for one in ran(runs, who)])  # 0: not known
    return f"{mean(runs, who, 'error'):.3g}" + (f" ({size:.0f})" if size else "")


def cost(runs, who):
    values = [mean(runs, who, what) for what in COSTS]
    return "" if np.isnan(values).all() else " / ".join("" if np.isnan(v) else brief(v) for v in values)


def brief(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def groups(results):
    """(what, names) of the sets chosen on and of the untouched ones."""
    for what, inside in (("chosen on", True), ("untouched", False)):
        yield what, [name for name in results if (name in CHOSEN_ON) == inside]


def ratios(results, others):
    rows = []
    for what, names in groups(results):
        for loss in ("squared", "logistic"):
            same = [name for name in names if results[name][0]["loss"] == loss]
            means = [ratio(results, same, other) for other in others]
            rows += [[f"{loss}, {what}: {len(same)}", *(f"{m:.2f} ({n})" if n else "" for m, n in means)]] if same else []
    return rows


def sums(results):
    """A line each on the terms and on how often auto is the better one."""
    for what, names in (("all", list(results)), *groups(results)):
        shares = [ratio(results, [name], "LightGBM tuned") for name in names]
        better, both = sum(share < 1 for share, n in shares if n), sum(n for _, n in shares)
        terms = [np.mean([one["auto"]["size"] for one in ran(results[n], "auto")]) for n in names if ran(results[n], "auto")]
        if terms:
            yield (
                f"- {what}: {np.median(terms):.0f} terms of auto in the median; its error is below that of LightGBM tuned on "
                + (f"{better} of {both} sets, at worst {max(s for s, n in shares if n):.2f} times it." if both else "none.")
            )


def draw(results, others, to):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(9, 0.35 * len(results) + 1.6), layout="constrained")
    for k, other in enumerate(others):
        shares = [ratio(results, [name], other)[0] for name in results]
        ax.plot(shares, range(len(results)), "osD^v<>P"[k], label=f"/ {other}", alpha=0.8)
    ax.axvline(1.0, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel='error of features="auto" over that of the others (left of 1: auto is better)')
    ax.set_yticks(range(len(results)), [name + (" *" if name in CHOSEN_ON else "") for name in results])
    fig.legend(*ax.get_legend_handles_labels(), fontsize=8, loc="outside right")
    fig.savefig(DOCS / f"{to}.png", dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    main()
