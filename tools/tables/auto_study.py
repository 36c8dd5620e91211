"""What each part of features="auto" is worth: fits with one constant or member changed.

    python tools/tables/auto_study.py --data DIR [--rows 3000] [--seeds 5] [--jobs 2] [--untouched] [--sets SET ...] [--again]
                                      [variants]

Ratios to the fit "as it is", of one search, on the same rows and seed; geometric means over sets and seeds. Seconds are the
processor's.

--rows caps the training rows. The defaults were chosen on these sets; --untouched takes those on which nothing was chosen.
Writes docs/tables/auto_study.{json,md,png}, or auto_study_untouched. What is in the .json with the same rows and seeds is not
run again, unless --again. A variant whose constant or member is no more stops the study before it begins.
"""

import argparse
import hashlib
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import matplotlib
import numpy as np
from auto import CHOSEN_ON, DOCS, SETS, load

import sparserf as srf

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Sets of words, where a linear model is chosen: no part of the dictionary is worth anything. The others, the slowest first.
WORDS = ("pcmac", "basehock", "reuters", "farm_ads")
STUDIED = tuple(name for name in reversed(SETS) if name not in WORDS)
AS_IT_IS, WHAT = "as it is", ("error", "terms", "seconds")
PROPOSALS, MIXTURE, SEARCH = "features.proposals", "features.mixture", "algorithms.sparse_rf_search"
DRAWS, SAMPLES, VIEWS = "algorithms.sparse_rf_sources", "algorithms.sparse_rf_samples", "views"


def to(value):
    return lambda old: value


def without(name):
    def change(moves):
        left = tuple(move for move in moves if move.__name__ != name)
        if len(left) == len(moves):
            raise AttributeError(f"no move {name}")
        return left

    return change


def one_unit(k):
    """Mixture.of whose inputs are all in units of their deviations (0) or ranges (1)."""

    def change(old):
        def of(cls, *given, **how):
            mixture = old.__func__(cls, *given, **how)
            return replace(mixture, units=mixture.units[[k, k]])

        return classmethod(of)

    return change


# What each changes: where it is in sparserf, and the new value from the old.
VARIANTS = {
    AS_IT_IS: {},
    "moves in reverse order: noise": {f"{PROPOSALS}.MOVES": lambda moves: moves[::-1]},  # other draws of the same distribution
    **{f"no {name}": {f"{PROPOSALS}.MOVES": without(name)} for name in ("jitter", "add", "swap", "mix", "rescale")},
    "no moves": {f"{PROPOSALS}.BASE": to(1.0)},
    "half from the base": {f"{PROPOSALS}.BASE": to(0.5)},
    "equal shares": {f"{PROPOSALS}.SURVIVORS": to(1e9), f"{PROPOSALS}.TRIES": to(1e9)},
    "bandwidths 1/10 to 10": {f"{MIXTURE}.NARROWEST": to(0.1), f"{MIXTURE}.WIDEST": to(10.0)},
    "bandwidths 1/2 to 2": {f"{MIXTURE}.NARROWEST": to(0.5), f"{MIXTURE}.WIDEST": to(2.0)},
    "batches of 250": {f"{PROPOSALS}.BATCH": to(250)},
    "batches of 1,000": {f"{PROPOSALS}.BATCH": to(1000)},
    "50 enter": {f"{DRAWS}.LEARNING": lambda schedule: replace(schedule, fewest_enter=50)},
    "1,000 enter": {f"{DRAWS}.LEARNING": lambda schedule: replace(schedule, fewest_enter=1000)},
    "no best phase": {f"{DRAWS}.best_phase": to(lambda C, S: np.zeros(len(C)))},
    "deviations only": {f"{MIXTURE}.Mixture.of": one_unit(0)},
    "ranges only": {f"{MIXTURE}.Mixture.of": one_unit(1)},
    "columns as they are alone": {f"{VIEWS}.MOST_CURVED": to(0)},
    "not pruned": {f"{SEARCH}.PRUNED": to(0.0)},
    "mean of 3": {},
    "mean of 3, not pruned": {f"{SEARCH}.PRUNED": to(0.0)},
    "mean of 3, 100 terms": {},
    "mean of 3, each of 1,000 rows": {f"{SAMPLES}.MOST_ROWS": to(1000)},
    "mean of 5": {},
    "100 terms": {},
    "penalties fall by .5": {f"{SEARCH}.FALL": to(0.5)},
    "penalties fall by .85": {f"{SEARCH}.FALL": to(0.85)},  # at 3,000 rows MOST_ALPHAS ends two paths, cpu_act and kin40k
}
# Arguments that are not the same for all.
OPTIONS = {
    "mean of 3": {"n_models": 3},
    "mean of 3, not pruned": {"n_models": 3},
    "mean of 3, 100 terms": {"n_models": 3, "max_terms": 100},
    "mean of 3, each of 1,000 rows": {"n_models": 3},
    "mean of 5": {"n_models": 5},
    "100 terms": {"max_terms": 100},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", help="; ".join(VARIANTS))
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"), required="SPARSERF_DATA" not in os.environ)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--untouched", action="store_true")
    parser.add_argument("--sets", nargs="+", choices=STUDIED)
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    half = [name for name in STUDIED if (name in CHOSEN_ON) != args.untouched]
    sets = args.sets or half
    if not set(sets) <= set(half):
        raise SystemExit(f"of {', '.join(sets)} some are not among {', '.join(half)}: with or without --untouched")
    if unknown := set(args.variants) - set(VARIANTS):
        raise SystemExit(f"no such variants: {sorted(unknown)}; there are: {'; '.join(VARIANTS)}")
    names = [name for name in VARIANTS if not args.variants or name in (AS_IT_IS, *args.variants)]
    for name in names:
        with changed(name):  # fails here, not after hours
            pass
    path, about = DOCS / f"auto_study{'_untouched' * args.untouched}.json", {"rows": args.rows, "seeds": args.seeds}
    results = json.loads(path.read_text()) if path.exists() else {}
    with ProcessPoolExecutor(args.jobs, initializer=warm_up) as pool:
        for name in names:
            stored = results.get(name, {})
            runs = stored["runs"] if stored.get("about") == about and not args.again else {}
            runs = runs | run_all(pool, args, name, [which for which in sets if which not in runs])
            results[name] = {"about": about, "runs": runs}
            path.write_text(json.dumps(results, indent=1) + "\n")
    done = {name: results[name]["runs"] for name in VARIANTS if results.get(name, {}).get("about") == about}
    report({name: runs for name, runs in done.items() if all(which in runs for which in sets)}, sets, about, path)


@contextmanager
def changed(name):
    """sparserf as this variant has it."""
    with ExitStack() as stack:
        for where, change in VARIANTS[name].items():
            path, attribute = f"sparserf.{where}".rsplit(".", 1)
            try:
                old = vars(owner := resolve_name(path))[attribute]
                setattr(owner, attribute, change(old))
            except (ImportError, AttributeError, KeyError) as error:
                raise AttributeError(f"variant {name!r} needs sparserf.{where}, as it was: {error!r}") from error
            stack.callback(setattr, owner, attribute, old)
        yield


def run_all(pool, args, name, sets):
    """{set: a result for each seed}, for these sets."""
    runs = {which: [None] * args.seeds for which in sets}
    tasks = {pool.submit(run, args.data, name, which, args.rows, k): (which, k) for which in sets for k in range(args.seeds)}
    for task in as_completed(tasks):
        which, seed = tasks[task]
        runs[which][seed] = task.result()
        print(f"{name} | {which}, seed {seed}:", runs[which][seed], flush=True)
    return runs


def warm_up():
    """What the first fit of a process imports is not its time."""
    srf.sparse_rf(np.arange(100.0)[:, None], np.arange(100) % 7, rng=0, n_models=1)


def run(folder, name, which, rows, seed):
    X, y, X_test, y_test, loss = load(Path(folder), which, rows, seed)
    with changed(name):
        start = time.process_time()
        model = srf.sparse_rf(X, y, loss=loss, rng=seed, **{"n_models": 1} | OPTIONS.get(name, {}))
        seconds = time.process_time() - start
    z = model.decision_function(X_test)
    error = np.mean((z - y_test) ** 2) / y.var() if loss == "squared" else np.mean(np.logaddexp(0, -y_test * z))
    files = sorted(p for p in Path(srf.__file__).parent.rglob("*") if p.suffix in (".py", ".so"))
    code = hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:8]
    return {"error": float(error), "terms": len(model.support), "seconds": seconds, "code": code}


def logs(runs, sets, what):
    """(seeds, sets); no terms count as one."""
    return np.log([[one[what] or 1 for one in runs[which]] for which in sets]).T


def report(results, sets, about, path):
    base, rows, notes = results[AS_IT_IS], {}, []
    for name, runs in results.items():
        each = {what: logs(runs, sets, what) - logs(base, sets, what) for what in WHAT}
        of_seed = each["error"].mean(axis=1)
        spread = of_seed.std(ddof=1) / np.sqrt(len(of_seed)) if len(of_seed) > 1 else np.nan
        rows[name] = *(float(np.exp(each[what].mean())) for what in WHAT), float(spread), np.exp(each["error"].mean(axis=0))
        if name != AS_IT_IS and not each["error"].any():
            notes.append(f"**{name} changed no error at all: is what it changes still in use?**")
        if {one["code"] for which in sets for one in [*runs[which], *base[which]]} != {base[sets[0]][0]["code"]}:
            notes.append(f"**{name} was not measured with the same code as {AS_IT_IS}: --again.**")
    head = ["variant", "error", "± over seeds", "terms", "seconds", *sets]
    option = " --untouched" if sets[0] not in CHOSEN_ON else ""
    lines = [f'# What each part of features="auto" is worth{", on the untouched sets" if option else ""}', "",
             f"`python tools/tables/auto_study.py --rows {about['rows']} --seeds {about['seeds']}{option}`: "
             + " ".join(__doc__.split("\n\n")[2].split()) + " ± is one standard error. Sets: ratios of the error.", "",
             f"| {' | '.join(head)} |", "|---" * len(head) + "|"]  # fmt: skip
    for name, (error, terms, seconds, spread, ratios) in rows.items():
        cells = [f"{error:.3f}", f"{error * spread:.3f}".replace("nan", ""), f"{terms:.2f}", f"{seconds:.2f}"]
        lines.append(f"| {' | '.join([name, *cells, *(f'{ratio:.3f}' for ratio in ratios)])} |")
    lines += ["", "As it is, geometric means over seeds:", "", f"| | {' | '.join(sets)} |", "|---" * (len(sets) + 1) + "|"]
    for what in WHAT:
        means = np.exp(logs(base, sets, what).mean(axis=0))
        lines.append(f"| {what} | {' | '.join(f'{mean:.0f}' if what == 'terms' else f'{mean:.3g}' for mean in means)} |")
    lines += ["", f"![Ratios of the error]({path.stem}.png)", *(f"\n{note}" for note in notes)]
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print(*notes, sep="\n")
    draw({name: row for name, row in rows.items() if name != AS_IT_IS}, sets, path)


def draw(rows, sets, path):
    """A row a variant: its error over that of "as it is", with a standard error; small, each set."""
    fig, ax = plt.subplots(figsize=(9, 0.3 * len(rows) + 1.6))
    for k, which in enumerate(sets):
        ax.plot([row[4][k] for row in rows.values()], range(len(rows)), ".", color=f"C{k}", alpha=0.7, label=which)
    for k, (error, _, _, spread, _) in enumerate(rows.values()):
        bars = None if np.isnan(spread) else [[error - error * np.exp(-spread)], [error * np.exp(spread) - error]]
        ax.errorbar(error, k, xerr=bars, fmt="D", color="black", markersize=5, capsize=3)
    ax.axvline(1.0, color="grey", linewidth=0.8)
    ax.set(xscale="log", xlabel='error over that of features="auto" as it is (left of 1: the variant is better)')
    for which in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
        which(matplotlib.ticker.FormatStrFormatter("%.3g"))
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    fig.tight_layout()
    fig.savefig(path.with_suffix(".png"), dpi=110)
    plt.close(fig)


if __name__ == "__main__":
    main()
