"""Draw the house, floor by floor, with the imports that the code has today: docs/pictures/architecture.png.

Stops with an error where a module imports upward.
"""

import ast
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1] / "sparserf"
FLOORS = [
    ["sums", "baselines", "sklearn", "plot", "export"], ["algorithms"], ["task"], ["views", "model", "newton"],
    ["explain", "solvers"], ["features"],
    ["rows", "losses"], ["table", "stage"], ["_core"],
]  # fmt: skip
SAYS = {
    "baselines": "baselines\nwhat the papers compare with",
    "sums": "sums\none pass, many fits",
    "sklearn": "sklearn\nestimators of scikit-learn",
    "plot": "plot\npictures of models",
    "algorithms": "algorithms\nwhat the papers say",
    "task": "task\nwhat is to be fitted, how far a fit has come,\nand the model that fits become",
    "model": "model\nSparseModel: predict, save, load",
    "export": "export\nmodels as ONNX graphs\nand as files of C",
    "explain": "explain\nShapley values, formulas, shares of variance",
    "newton": "newton\nlinear models of the inputs:\nsteps, bounds, sketches",
    "rows": "rows\nsum and map over blocks: memory,\ndevice, disk, dask",
    "stage": "stage, robust\nviews of the columns of X, in units",
    "table": "table\ndata frames and categories,\nas numbers",
    "views": "views, levels\nwhich views columns get,\nas the rows tell",
    "solvers": "solvers\nworking sets; l1 and ridge on\nsmall matrices; they never see X",
    "features": "features\nmaps to draw from, and FeatureSet",
    "losses": "losses\nvalue, derivative,\ncurvature, conjugate",
    "_core": "_core (Cython and C)\ntiles of cos(Xw + b) in cache · top-k · coordinate descent · hard thresholding",
}


# Files that are drawn as one with another.
WITH = {"robust": "stage", "levels": "views", "_cells": "table", "predictor": "model", "targets": "task", "model_file": "model",
        "model_json": "model", "_summed": "sums"}  # fmt: skip


def room(path):
    """The top-level folder or file that a module belongs to."""
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return WITH.get(name, name)


def imports(path):
    """The rooms that a module imports when it is loaded (imports inside functions are how a floor asks upward, lazily)."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parent
            for _ in range(node.level - 1):
                base = base.parent
            parts = (node.module or "").split(".") if node.module else [alias.name for alias in node.names]
            target = base.joinpath(parts[0])
            yield room(target if target.exists() else target.with_suffix(".py"))


def main():
    level = {name: i for i, floor in enumerate(FLOORS) for name in floor}
    arrows = {(room(p), to) for p in ROOT.rglob("*.py") for to in imports(p)}
    arrows = {(a, b) for a, b in arrows if a != b and a in level and b in level}
    upward = [(a, b) for a, b in arrows if level[a] > level[b]]
    if upward:
        raise SystemExit(f"imports upward: {upward}")
    fig, ax = plt.subplots(figsize=(8.5, 7.5), layout="constrained")
    at = {}
    for i, floor in enumerate(FLOORS):
        for j, name in enumerate(floor):
            at[name] = ((j + 0.5) / len(floor), -i)
            box = {"boxstyle": "round,pad=0.7", "fc": "#eef3fb", "ec": "#31517a"}
            ax.text(*at[name], SAYS[name], ha="center", va="center", fontsize=10, bbox=box, zorder=3)
    for a, b in sorted(arrows):
        style = {"arrowstyle": "->", "color": "#8899aa", "shrinkA": 30, "shrinkB": 34, "connectionstyle": "arc3,rad=0.08"}
        ax.annotate("", at[b], at[a], arrowprops=style, zorder=1)
    ax.set(xlim=(0, 1), ylim=(-len(FLOORS) + 0.5, 0.5))
    ax.axis("off")
    fig.savefig(ROOT.parent / "docs/pictures/architecture.png", dpi=120)


if __name__ == "__main__":
    main()
