"""What the Sparse-RF paper compares with: the RF and Kernel columns of Tables 1 and 2, and Figure 1.

    python tools/tables/sparse_rf_rivals.py --data DIR [--part columns figure1] [cpu_act cod_rna ijcnn1]

Columns: random features with a ridge penalty and the kernel machine, n alpha = 1 as in the paper, with the gamma (or radius)
that docs/tables/sparse_rf.json chose for Sparse-RF; the features drawn, and the rows of the kernel machine (a random
subsample where there are more), are stated. Figure 1: the l1 objective on perceptrons, and the test error, against seconds,
for Sparse-RF of growing dictionaries and boosting of growing numbers of terms, each point a fit from nothing; dashed the
SVM with the perceptron kernel, alpha |w| + loss. Writes docs/tables/sparse_rf_rivals.{json,md} and pictures beside.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sparse_rf import KERNELS, errors, scaled, split

import sparserf as srf
from sparserf.baselines import boosting, kernel_ridge, kernel_svm, rks
from sparserf.rows import as_rows

DOCS = Path(__file__).parents[2] / "docs/tables"
# RF and Kernel of the paper: RMSE, or share of wrong labels.
PAPER = {
    "cpu_act": {"gaussian": (0.037, 0.038), "laplacian": (0.035, 0.034), "perceptron": (0.038, 0.026)},
    "cod_rna": {"gaussian": (0.036, 0.034), "laplacian": (0.031, 0.029), "perceptron": (0.036, 0.033)},
    "ijcnn1": {"gaussian": (0.011, 0.009), "laplacian": (0.008, 0.005), "perceptron": (0.013, 0.009)},
}
N_COMPONENTS = {"cpu_act": 10_000, "cod_rna": 2_000, "ijcnn1": 2_000}  # the paper: 10,000
KERNEL_ROWS = 10_000
FIGURE_N_ALPHA = {"cod_rna": 100.0, "ijcnn1": 100.0}
DRAWS, TERMS = (300, 1000, 3000, 10_000, 30_000), (1, 3, 10, 30, 100, 300)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PAPER)}")
    parser.add_argument("--data", default=os.environ.get("SPARSERF_DATA"))
    parser.add_argument("--part", nargs="*", default=["columns", "figure1"])
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("needs the folder of the data sets: --data DIR, or SPARSERF_DATA")
    warnings.simplefilter("ignore", srf.ConvergenceWarning)
    file = DOCS / "sparse_rf_rivals.json"
    results = json.loads(file.read_text()) if file.exists() else {"columns": {}, "figure1": {}}
    for name in args.names or PAPER:
        if "columns" in args.part:
            results["columns"][name] = {kernel: columns(name, kernel, args.data) for kernel in KERNELS}
        if "figure1" in args.part and name in FIGURE_N_ALPHA:
            results["figure1"][name] = figure1(name, args.data)
            draw(name, results["figure1"][name])
        file.write_text(json.dumps(results, indent=1) + "\n")
        (DOCS / "sparse_rf_rivals.md").write_text(report(results))


def width_of(name, kernel):
    return json.loads((DOCS / "sparse_rf.json").read_text())[f"{name} {kernel}"][0]["width"]


# --- Tables 1 and 2 ----------------------------------------------------------------------------------------------


def columns(name, kernel, folder):
    X, y, X_test, y_test = split(name, 0, folder)
    map_, loss = scaled(kernel, width_of(name, kernel), X), "squared" if name == "cpu_act" else "squared_hinge"
    result, start = {}, time.perf_counter()
    model = rks(X, y, features=map_, n_components=N_COMPONENTS[name], loss=loss, alpha=1 / len(y), rng=0, workers=-1)
    result["rf"] = {"error": errors([model], X_test, y_test)[0], "seconds": time.perf_counter() - start}
    some, start = np.random.default_rng(0).permutation(len(y))[:KERNEL_ROWS], time.perf_counter()
    model = kernel_fit(kernel, map_, X[some], y[some], 1 / len(some))
    result["kernel"] = {"error": errors([model], X_test, y_test)[0], "seconds": time.perf_counter() - start}
    result["kernel"] |= {"rows": len(some), "support": len(model.support)}
    print(name, kernel, result, flush=True)
    return result


def kernel_fit(kernel, map_, X, y, alpha):
    machine = kernel_svm if set(np.unique(y)) == {-1.0, 1.0} else kernel_ridge
    if kernel != "perceptron":
        return machine(X, y, kernel=kernel, gamma=map_.gamma, alpha=alpha, workers=-1)
    # With an intercept, the kernel 1 - c |x - z| / radius of another radius is a multiple of the default one.
    default = srf.Perceptron().resolve(as_rows(X), None)
    return machine(X, y, kernel=kernel, alpha=alpha * map_.radius / default.radius, workers=-1)


# --- Figure 1 ----------------------------------------------------------------------------------------------------


def figure1(name, folder):
    """{contender: [(seconds, objective, error), ...]}, and the SVM's level."""
    X, y, X_test, y_test = split(name, 0, folder)
    alpha, map_ = FIGURE_N_ALPHA[name] / len(y), scaled("perceptron", width_of(name, "perceptron"), X)

    def run(make, sizes, most=240.0):
        points = []
        for size in sizes:
            start = time.perf_counter()
            model = make(size)
            seconds = time.perf_counter() - start
            points.append((seconds, model.info.objective[-1], errors([model], X_test, y_test)[0], len(model.support)))
            print(name, size, points[-1], flush=True)
            if seconds > most:
                break
        return points

    options = {"alpha": alpha, "loss": "squared_hinge", "workers": -1}
    result = {
        "Sparse-RF": run(lambda D: srf.sparse_rf(X, y, features=map_, n_components=D, rng=0, **options), DRAWS),
        "boosting, exact offset": run(lambda T: boosting(X, y, n_terms=T, offset="exact", **options), TERMS),
        "boosting, surrogate": run(lambda T: boosting(X, y, n_terms=T, **options), TERMS[:4]),
    }
    some = np.random.default_rng(0).permutation(len(y))[:KERNEL_ROWS]
    model = kernel_fit("perceptron", map_, X[some], y[some], alpha)
    margin = np.maximum(0, 1 - y * model.decision_function(X, workers=-1))
    level = alpha * model.norm + np.mean(margin**2)
    return result | {"svm": (level, errors([model], X_test, y_test)[0], len(some))}


def draw(name, result):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for i, (ax, label) in enumerate(zip(axes, ("objective", "test error"), strict=True), 1):
        for contender, points in result.items():
            if contender != "svm":
                ax.plot([p[0] for p in points], [p[i] for p in points], "o-", ms=4, label=contender)
        ax.axhline(result["svm"][i - 1], color="k", ls="--", lw=1, label=f"SVM, {result['svm'][2]:,} rows")
        ax.set(xscale="log", xlabel="seconds", ylabel=label, title=name)
    axes[0].legend(frameon=False, fontsize=8)
    fig.savefig(DOCS / f"sparse_rf_figure1_{name}.png", dpi=120)
    plt.close(fig)


def report(results):
    about = __doc__.split("\n\n")[2].split(" Writes")[0].replace("\n", " ") + " Sparse-RF itself: [sparse_rf.md](sparse_rf.md)."
    lines = ["# Sparse-RF: RF and kernel columns of Tables 1 and 2, and Figure 1", "",
             f"`python tools/tables/sparse_rf_rivals.py --data DIR`. {about}", "",
             "| set | kernel | RF, the paper's | ours (features) | s | kernel, the paper's | ours (rows; support) | s |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, kernels in results["columns"].items():
        for kernel, result in kernels.items():
            rf, machine = result["rf"], result["kernel"]
            theirs = PAPER[name][kernel]
            sizes = f"{machine['rows']:,}; {machine['support']:,}"
            lines.append(
                f"| {name} | {kernel} | {theirs[0]:.3f} | {rf['error']:.4f} ({N_COMPONENTS[name]:,}) | {rf['seconds']:.1f} | "
                f"{theirs[1]:.3f} | {machine['error']:.4f} ({sizes}) | {machine['seconds']:.1f} |"
            )
    for name in results["figure1"]:
        lines += ["", f"![objective and error against seconds, {name}](sparse_rf_figure1_{name}.png)"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
