"""Draw which rooms of the package import which: docs/pictures/architecture.png, or another file.

A room is a folder or a file of sparserf/. It stands one floor above the highest room that it
imports, or at the top if no room imports it. Stops with an error where rooms import each other in a
circle, so that no floors exist. An arrow that others imply (a to c, where there are a to b and b to
c) is not drawn. What is said of each room is in house.toml.
"""

import ast
import itertools
import sys
import tomllib
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyArrowPatch

ROOT = Path(__file__).parents[1] / "sparserf"
SAYS = tomllib.loads(Path(__file__).with_name("house.toml").read_text())["says"]
# of arrows, from straight to a half circle
BENDS = [0.0, *(sign * bend / 10 for bend in range(1, 11) for sign in (1, -1))]
ROUNDS = 3  # in which each floor in turn gets its best order
# rooms of a floor of which all orders are tried; more stand in the order of what they import
MOST_ORDERED = 4


def room(path):
    """Return the folder or file of sparserf/ that a module belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """Yield the rooms that a module imports: when it is loaded, within functions, and for types
    alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1]
            for name in (
                [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            ):
                if (folder / name).is_dir() or (folder / f"{name}.py").exists():
                    yield room(folder / name)


def imports_of_rooms():
    """Return, for each room, the rooms that it imports."""
    imports = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.parent != ROOT or not path.name.startswith("_"):
            imports.setdefault(room(path), set()).update(imported(path))
    return {name: sorted((others & imports.keys()) - {name}) for name, others in imports.items()}


def floors_of(imports):
    """Return the lists of rooms on each floor, from the bottom up."""
    level = {}

    def climb(name, above):
        if name in above:
            raise SystemExit(
                "rooms import in a circle: " + " -> ".join([*above[above.index(name) :], name])
            )
        if name not in level:
            level[name] = max(
                (climb(other, [*above, name]) + 1 for other in imports[name]), default=0
            )
        return level[name]

    top = max(climb(name, []) for name in imports)
    for name in imports:
        if not any(name in others for others in imports.values()):
            level[name] = top
    return [sorted(name for name in imports if level[name] == floor) for floor in range(top + 1)]


def direct(imports):
    """Return the pairs (a, b) where a imports b, without those that other imports of a imply."""

    def below(name):
        return set(imports[name]).union(*(below(other) for other in imports[name]))

    return [
        (a, b)
        for a, others in imports.items()
        for b in others
        if not any(b in below(other) for other in others)
    ]


def curve(start, end, bend):
    """Return points of the arc that matplotlib's connection style arc3 draws."""
    middle = (start + end) / 2 + bend * np.array([1, -1]) * (end - start)[::-1]
    t = np.linspace(0, 1, 60)[:, None]
    return (1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end


def best_bend(a, b, at, size):
    """Return the smallest bend by which an arrow from a to b passes all other rooms, and how many
    it meets with it."""
    others = [name for name in at if name not in (a, b)]
    least = (np.inf, 0.0)
    for bend in BENDS:
        points = curve(at[a], at[b], bend)
        met = sum(
            (np.abs(points - at[name]) < size[name] / 2 + 6).all(axis=1).any() for name in others
        )
        least = min(least, (met, bend), key=lambda found: found[0])
        if not met:
            break
    return least


def arrange(floors, arrows, size, width, height):
    """Return where each room stands: on its floor, in an order in which arrows are short and meet
    few rooms."""

    def places(orders):
        at = {}
        for k, order in enumerate(orders):
            gap = (width - sum(size[name][0] for name in order)) / (len(order) + 1)
            left = np.cumsum([gap + (size[order[i - 1]][0] if i else 0) for i in range(len(order))])
            y = height * (k + 0.5) / len(orders)
            at |= {
                name: np.array([x + size[name][0] / 2, y])
                for name, x in zip(order, left, strict=True)
            }
        return at

    def cost(orders):
        at = places(orders)
        found = [best_bend(a, b, at, size) for a, b in arrows]
        length = sum(abs(at[a][0] - at[b][0]) for a, b in arrows)
        return (
            1e4 * sum(met for met, _ in found) + 300 * sum(abs(bend) for _, bend in found) + length
        )

    orders = [list(floor) for floor in floors]
    for _ in range(ROUNDS):
        for k, order in enumerate(orders):
            if len(order) > MOST_ORDERED:
                at = places(orders)
                orders[k] = sorted(  # at the left what imports nothing
                    order,
                    key=lambda name: np.mean([at[b][0] for a, b in arrows if a == name] or [0.0]),
                )
            elif len(order) > 1:
                tried = [list(one) for one in itertools.permutations(order)]
                orders[k] = min(
                    tried, key=lambda one, k=k: cost([*orders[:k], one, *orders[k + 1 :]])
                )
    return places(orders)


def main():
    imports = imports_of_rooms()
    floors, arrows = floors_of(imports), direct(imports)
    fig = plt.figure(figsize=(10.5, 0.3 + 0.95 * len(floors)), dpi=120)
    width, height = fig.get_size_inches() * fig.dpi
    box = {"boxstyle": "round,pad=0.6", "fc": "#eef3fb", "ec": "#31517a"}
    texts = {}
    for name in imports:
        label = "\n".join([name, SAYS[name]]) if name in SAYS else name
        texts[name] = fig.text(
            0.5,
            0.5,
            label,
            ha="center",
            va="center",
            fontsize=8.5,
            linespacing=1.3,
            bbox=box,
            zorder=3,
        )
    fig.canvas.draw()
    size = {
        name: np.array(text.get_bbox_patch().get_window_extent().size)
        for name, text in texts.items()
    }
    at = arrange(floors, arrows, size, width, height)
    for name, text in texts.items():
        text.set_position(at[name] / [width, height])
    fig.canvas.draw()
    for a, b in arrows:
        bend = best_bend(a, b, at, size)[1]
        arrow = FancyArrowPatch(
            at[a] / [width, height],
            at[b] / [width, height],
            transform=fig.transFigure,
            zorder=1,
            color="#8899aa",
            arrowstyle="->",
            mutation_scale=10,
            connectionstyle=f"arc3,rad={bend}",
            patchA=texts[a].get_bbox_patch(),
            patchB=texts[b].get_bbox_patch(),
            shrinkA=0,
            shrinkB=1,
        )
        fig.add_artist(arrow)
    fig.savefig(sys.argv[1] if sys.argv[1:] else ROOT.parent / "docs/pictures/architecture.png")


if __name__ == "__main__":
    main()
