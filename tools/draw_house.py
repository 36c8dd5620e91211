"""Draw the house, floor by floor, with the imports that the code has today: docs/pictures/architecture.png, or another file.

Stops with an error where a module imports upward. What the floors are is in house.toml.
"""

import ast
import sys
import tomllib
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1] / "sparserf"
HOUSE = tomllib.loads(Path(__file__).with_name("house.toml").read_text())


def room(path):
    """The top-level folder or file that a module belongs to."""
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return HOUSE["with"].get(name, name)


def imports(path):
    """The rooms that a module imports when it is loaded (imports inside functions are how a floor asks upward, lazily)."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            first = node.module.split(".")[0] if node.module else node.names[0].name
            target = path.parents[node.level - 1] / first
            yield room(target if target.exists() else target.with_suffix(".py"))


def main():
    floors = HOUSE["floors"]
    level = {name: i for i, floor in enumerate(floors) for name in floor}
    arrows = {(room(p), to) for p in ROOT.rglob("*.py") for to in imports(p)}
    arrows = {(a, b) for a, b in arrows if a != b and a in level and b in level}
    upward = [(a, b) for a, b in arrows if level[a] > level[b]]
    if upward:
        raise SystemExit(f"imports upward: {upward}")
    fig, ax = plt.subplots(figsize=(8.5, 7.5), layout="constrained")
    at = {}
    for i, floor in enumerate(floors):
        for j, name in enumerate(floor):
            at[name] = ((j + 0.5) / len(floor), -i)
            box = {"boxstyle": "round,pad=0.7", "fc": "#eef3fb", "ec": "#31517a"}
            ax.text(*at[name], HOUSE["says"][name], ha="center", va="center", fontsize=10, bbox=box, zorder=3)
    for a, b in sorted(arrows):
        style = {"arrowstyle": "->", "color": "#8899aa", "shrinkA": 30, "shrinkB": 34, "connectionstyle": "arc3,rad=0.08"}
        ax.annotate("", at[b], at[a], arrowprops=style, zorder=1)
    ax.set(xlim=(0, 1), ylim=(-len(floors) + 0.5, 0.5))
    ax.axis("off")
    fig.savefig(sys.argv[1] if sys.argv[1:] else ROOT.parent / "docs/pictures/architecture.png", dpi=120)


if __name__ == "__main__":
    main()
