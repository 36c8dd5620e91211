"""Pictures of models; needs matplotlib (the extra `plot`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._checks import check_integer, check_names
from .explain.effects import Effects, column_of
from .explain.outputs import effect_on, of_output
from .explain.terms import levels_of, names_of, numbers
from .model import SparseModel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._types import MatrixLike

# Rows that effects are looked at in, and that are drawn.
MOST_ROWS, MOST_TICKS = 5_000, 300
# The share of variance below which a part is not drawn.
LEAST_SHARE = 0.005
# Characters of a level or name that are shown, and of those of an axis, or of a pair, that stand side by side.
LONGEST, SIDE_BY_SIDE = 24, 24


def input_usage(model: SparseModel, *, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """How often each input occurs in the terms of a model: HARFE's Figures 4 and 5.

    Parameters
    ----------
    model : SparseModel
    names : sequence of str or None, default None
        Of the inputs.
    ax : matplotlib Axes or None, default None

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        matplotlib is not there: `pip install sparserf[plot]`.

    Examples
    --------
    >>> import matplotlib, numpy as np, sparserf as srf
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    >>> model = srf.harfe(X, X[:, 0] * X[:, 1], n_components=500, n_nonzero_coefs=10, order=2, rng=0)
    >>> srf.plot.input_usage(model, names=["a", "b", "c"]).get_ylabel()
    'share of terms that use it'
    """
    _check_model(model)
    names = model.feature_names_in_ if names is None else check_names("names", names, model.n_features_in)
    if ax is None:
        ax = _pyplot().subplots(layout="constrained")[1]
    usage = model.input_usage()
    ax.bar(np.arange(len(usage)), usage)
    ax.set(xlabel="input", ylabel="share of terms that use it", xlim=(-0.6, len(usage) - 0.4), ylim=(0, None))
    if names is not None:
        ax.set_xticks(np.arange(len(usage)), names, rotation=90)
    return ax


def effects(
    model: SparseModel, X: MatrixLike, *, names: Iterable[str] | None = None, output: object = None, n_panels: int = 12,
    n_points: int = 40,
) -> Figure:  # fmt: skip
    """A model in functions of one and two inputs: a curve an input, and a surface a pair, with the share of variance of each.

    Where all features see at most two inputs, or are linear, these functions add up to f, and each surface has mean zero along
    both its sides. Of any other model they are its projection: the sum of such functions that is nearest to f over the rows of
    X, the functions of an input piecewise linear, of pairs those that tell most of what is left; where inputs depend on one
    another, and many sums come as near, the one whose functions of an input are nearest to the mean of f for given values of
    that input (partial dependence).

    The parts that tell most come first. Above each stands its share: the covariance of this function with f, over the variance
    of f. Where f is a sum of functions of one input, that is the `share` of `SparseModel.summary`; elsewhere the summary gives
    to an input also its part of what it does together with others, which here has panels of its own, or none. Parts of a share
    below 0.5 %, or below zero, are not drawn, but the first. Above all stands how much of the variance of f the panels together
    account for (R^2), which is not the sum of shares to the last digit, since parts may depend on one another.

    Parameters
    ----------
    model : SparseModel
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Where the effects are looked at: each input between its 1st and 99th percentile. Of more than 5,000 rows these many.
    names : sequence of str or None, default None
        Of the columns; None: those of the data frame that the model was fitted to, or x0, x1, ...
    output : label of a class, int, or None, default None
        Of a model of several outputs the one that is drawn: the label of a class, or its index where labels are text; or the
        index of a target. Of two classes f speaks for the second, which is drawn where this is None.
    n_panels : int, default 12
        Most parts to draw, at least 1.
    n_points : int, default 40
        Points of a curve and of each side of a surface, at least 2.

    Returns
    -------
    matplotlib Figure
        In original units; of a category the 12 levels that most rows have, by their names. Curves share one scale, surfaces one
        of colours; ticks along the lower edge, and points, are up to 300 rows of X, by chance.

    Raises
    ------
    ValueError, TypeError
        output is None and there are several, or is none of them; X has no rows; an argument is out of its range or of another
        kind.
    ImportError
        matplotlib is not there: `pip install sparserf[plot]`.

    Notes
    -----
    The shares of a projection are of rows that it was not fitted to: it is fitted to each half of the rows, and looked at in
    the other. It sees the up to 64 inputs of the largest terms, and pairs among the first 14 that some term sees together. Of a
    category of more than 24 levels, in a pair 12, the most frequent have a value each, and all others together one. It takes
    O(n p^2 + p^3) for p numbers in the functions, at most 2,000 and mostly some hundreds.

    Examples
    --------
    >>> import matplotlib, numpy as np, sparserf as srf
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    >>> model = srf.sparse_rf(X, X[:, 0] * X[:, 1] + X[:, 2] ** 2, features="gaussian", alpha=0.01, rng=0)
    >>> figure = srf.plot.effects(model, X, n_panels=2)
    >>> sorted(ax.get_xlabel() for ax in figure.axes if ax.get_xlabel())
    ['x0', 'x2']
    """
    _check_model(model)
    plt, d = _pyplot(), model.n_features_in
    of_one, names = of_output(model, output), names_of(model) if names is None else check_names("names", names, d)
    n_panels, n_points = check_integer("n_panels", n_panels, 1), check_integer("n_points", n_points, 2)
    X = numbers(model, X, MOST_ROWS, np.random.default_rng(0))
    parts = Effects.of(of_one, X, n_points, n_panels)
    shares = parts.shares
    drawn = sorted(shares, key=lambda part: -shares[part])[:n_panels]
    drawn = [part for part in drawn if shares[part] >= LEAST_SHARE] or drawn[:1]
    columns = min(4, max(len(drawn), 1))
    height = -(-max(len(drawn), 1) // columns)
    levels = levels_of(model)
    ticks = _ticks(parts.grids, levels)
    each = 2.7 + 0.08 * max((len(label) for part in drawn for label in ticks[part[0]] if _is_long(ticks[part[0]])), default=0)
    fig, axes = plt.subplots(height, columns, figsize=(3.3 * columns, each * height), squeeze=False, layout="constrained")
    for ax in axes.flat[len(drawn) :]:
        ax.remove()
    _draw(fig, axes.flat[: len(drawn)], drawn, parts, X, names, levels, ticks, effect_on(model, output))
    for ax, part in zip(axes.flat, drawn, strict=False):
        title = [_short(names[j]) for j in part]
        between = " and " if sum(map(len, title)) <= SIDE_BY_SIDE else " and\n"
        ax.set_title(f"{between.join(title)}: {_percent(shares[part])}", fontsize="medium")
    kind = "Parts of" if parts.is_whole else "A projection of"
    fig.suptitle(f"{kind} the model: together {_percent(parts.told(drawn))} of its variance\n"
                 "beside each name: covariance with f, over the variance of f", fontsize="medium")  # fmt: skip
    return fig


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("sparserf.plot needs matplotlib: pip install sparserf[plot]") from None
    return plt


def _percent(share):
    return f"{100 * max(share, 0.0):.1f} %"


def _short(text):
    text = str(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _draw(fig, axes, drawn, parts, X, names, levels, ticks, effect):
    """The parts, curves on one scale and surfaces on one of colours, with the rows' ticks and points."""
    values, grids = parts.values, parts.grids
    largest = {k: max((np.abs(values[part]).max() for part in drawn if len(part) == k), default=1.0) or 1.0 for k in (1, 2)}
    some = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:MOST_TICKS])
    mesh = None
    for ax, part in zip(axes, drawn, strict=True):
        at = [grids[j] if levels[j] is None else np.arange(len(grids[j])) for j in part]
        x = [_shown(column_of(X, j)[some], grids[j], levels[j]) for j in part]
        if len(part) == 1:
            ax.plot(at[0], values[part], *["o"] * (levels[part[0]] is not None))
            ax.plot(x[0], np.full(len(x[0]), 0.0), "|", color="0.3", alpha=0.3, transform=ax.get_xaxis_transform())
            ax.axhline(0, color="0.85", zorder=0)
            ax.set(ylim=(-1.05 * largest[1], 1.05 * largest[1]), ylabel=effect)
        else:
            mesh = ax.pcolormesh(*at, values[part].T, cmap="RdBu_r", vmin=-largest[2], vmax=largest[2],
                                 shading="gouraud" if all(levels[j] is None for j in part) else "nearest")  # fmt: skip
            ax.plot(*x, ".", color="0.2", alpha=0.25, markersize=1.5)
        for axis, j, grid in zip("xy", part, at, strict=False):
            pad = 0.5 if levels[j] is not None else 0.0
            getattr(ax, f"set_{axis}lim")(grid[0] - pad, (grid[-1] if grid[-1] > grid[0] else grid[0] + (pad == 0)) + pad)
            _name(getattr(ax, f"{axis}axis"), names[j], levels[j], ticks[j])
    if mesh is not None:
        fig.colorbar(mesh, ax=list(axes), shrink=0.6, label=f"{effect}, of two inputs")


def _shown(x, grid, levels):
    """Where numbers lie on an axis; NaN, which is not drawn, beyond the grid or of a level that is not on it."""
    if levels is None:
        return np.where((x >= grid[0]) & (x <= grid[-1]), x, np.nan)
    place = np.minimum(np.searchsorted(grid, x), len(grid) - 1)
    return np.where(grid[place] == x, place, np.nan)


def _name(axis, name, levels, ticks):
    """The label of an axis, and of a category its levels."""
    if levels is None:
        axis.set_label_text(name)
        return
    axis.set_label_text(name if len(ticks) == len(levels) else f"{name}, {len(ticks)} of {len(levels)} levels")
    axis.set_ticks(np.arange(len(ticks)), ticks)
    if axis.axis_name == "x" and _is_long(ticks):
        axis.set_tick_params(labelrotation=90)


def _ticks(grids, levels):
    """The names of the levels that are shown, none of numbers."""
    return {j: [_short(levels[j][int(k)]) for k in grid if int(k) < len(levels[j])] if levels[j] is not None else []
            for j, grid in grids.items()}  # fmt: skip


def _is_long(ticks):
    return sum(map(len, ticks)) > SIDE_BY_SIDE


def _check_model(model):
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
