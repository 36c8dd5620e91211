"""One search of the default, seen from within: what rows that were held out say at each penalty,
and what becomes of the terms."""

from unittest.mock import patch

import numpy as np
from experiments.fits import ours
from experiments.others import PICTURES

from sparserf.algorithms.default import search as default
from sparserf.algorithms.default.stack import Stack

NAMES = {"linear": "linear functions", "cosines": "cosines that learn", "rules": "rules"}


def drawn(data, file, **options):
    """Draw a search in docs/pictures; return what there is of each member."""
    search = watched(data, **options)
    figure = picture_of(search)
    figure.savefig(PICTURES / file, dpi=90)
    curves = ("alpha", "losses", "of_folds")
    numbers = {
        NAMES[name]: {key: number for key, number in of.items() if key not in curves}
        for name, of in search["members"].items()
    }
    return {"each": numbers}


def watched(data, **options):
    """Return what a call does: losses are over those of the constant, out of fold."""
    stacks, models, of, drop_terms = [], [], Stack.of, default.drop_terms

    def stacked(*args):
        stacks.append(of(*args))
        return stacks[-1]

    def smaller(model, *args):
        models.append(model)
        return drop_terms(model, *args)

    with patch.object(Stack, "of", stacked), patch.object(default, "drop_terms", smaller):
        model = ours(data, **options)
    (stack,), found = stacks, {}
    folds, constant = stack.loss.folds, stack.loss_of_constant
    share = np.bincount(folds.fold, folds.weight)
    before, after = (kinds_of_terms(one) for one in (models[0], model))
    for path, u in zip(stack.paths, stack.weights, strict=True):
        found[path.member.name] = {
            "weight": float(u),
            "penalties": len(path.losses),
            "best": path.place + 1,
            "error": path.losses[path.place] / constant,
            "alpha": path.member.fall ** np.arange(len(path.losses)),
            "losses": path.losses / constant,
            "of_folds": (path.of_folds / share).T / constant,
            "terms": float(np.mean([len(each.state[1]) for each in path.found])),
            "before": before[path.member.name],
            "after": after[path.member.name],
        }
    return {"members": found, "stack": stack.loss_of_stack / constant, "folds": len(folds)}


def kinds_of_terms(model):
    """Return the number of terms of each member in a model."""
    counts = dict.fromkeys(NAMES, 0)
    for block in model.features.blocks:
        name = "rules" if type(block).__name__ == "BoxBlock" else "cosines"
        counts["linear" if block.is_matrix else name] += len(block)
    return counts


def picture_of(search):
    """Return a figure of what `watched` returns."""
    import matplotlib.pyplot as plt

    members = search["members"]
    figure = plt.figure(figsize=(13, 4), layout="constrained")
    grid = figure.add_gridspec(2, len(members) + 1, width_ratios=[3] * len(members) + [2.4])
    first = None
    for k, (name, of) in enumerate(members.items()):
        ax = first = figure.add_subplot(grid[:, k], sharey=first)
        for losses in of["of_folds"]:
            ax.plot(of["alpha"], losses, color=f"C{k}", lw=0.8, alpha=0.5)
        ax.plot(of["alpha"], of["losses"], color=f"C{k}", lw=2)
        ax.plot(of["alpha"][of["best"] - 1], of["error"], "o", color=f"C{k}", ms=8)
        ax.axhline(search["stack"], color="k", ls="--", lw=1)
        ax.set(xscale="log", yscale="log", xlabel="penalty, as a share of the first")
        title = f"{NAMES[name]}: {of['terms']:.0f} terms a fold" if k else NAMES[name]
        ax.set_title(title, fontsize="medium")
        ax.invert_xaxis()
        ax.label_outer()
    figure.axes[0].set_ylabel("loss out of fold / that of the constant")
    colours, names = [f"C{k}" for k in range(len(members))], [*members]
    ax = figure.add_subplot(grid[0, -1])
    ax.barh(names, [of["weight"] for of in members.values()], color=colours)
    ax.set_title("weights in the stack")
    ax.invert_yaxis()
    ax, start = figure.add_subplot(grid[1, -1]), np.zeros(2)
    for k, of in enumerate(members.values()):
        here = np.array([of["before"], of["after"]])
        ax.barh(["before", "after"], here, left=start, color=colours[k])
        start += here
    ax.set_title(f"{start[0]:,.0f} terms, then {start[1]:,.0f}")
    ax.invert_yaxis()
    return figure
