"""Pictures of models; needs matplotlib (the extra `plot`)."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ._base.checks import check_integer, check_names
from .explain.effects import Effects, column_of
from .explain.importances import percent
from .explain.outputs import effect_on, of_output
from .explain.terms import levels_of, names_of, numbers
from .model import SparseModel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._base.types import MatrixLike

__all__ = ["effects", "input_usage"]

# Rows that effects are looked at in, and that are drawn.
MOST_ROWS, MOST_TICKS = 5_000, 300
# The share below which a part is not drawn.
LEAST_SHARE = 0.005
# What is said above a picture with curves, and one with surfaces too; and characters in a line of it, by panels side by side.
MEANINGS = (
    "%: the input's share of mean |Shapley value|, by all that it does, alone and with others",
    "two inputs: what they do together beyond their curves",
)
PER_PANEL = 42
# Characters of a level or name that are shown, and of those of an axis, or of a pair, that stand side by side.
LONGEST, SIDE_BY_SIDE = 24, 24


def __dir__() -> list[str]:
    """What there is for users."""
    return __all__


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
    """A model in functions of one and two inputs: a curve an input, with its share as in the summary, and a surface a pair.

    Where all features see at most two inputs, or are linear, these functions add up to f, and each surface has mean zero along
    both its sides. Of any other model they are its projection: the sum of such functions that is nearest to f over the rows of
    X, the functions of an input piecewise linear, of pairs those that tell most of what is left; where inputs depend on one
    another, and many sums come as near, the one whose functions of an input are nearest to the mean of f for given values of
    that input (partial dependence).

    Beside the name of an input stands its share of the mean size of all Shapley values, by which curves are in order: the
    number that `SparseModel.summary` and `SparseModel.importances` have for the same X (and output). It is of all that the
    input does, alone and together with others, so that a flat curve may have a large share: what it does is then in surfaces,
    or, together with two and more others, in no panel. A surface is what two inputs do beyond their curves, and has no share of
    its own: half of it is in the values of each of its inputs, and by that, but behind these, it finds its place among the
    n_panels that matter most. What would have less than 0.5 % is not drawn, but the first. Above all stands how much of the
    variance of f the panels together account for, R^2.

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
        of colours; ticks along the lower edge, and points, are up to 300 rows of X, by chance. A notebook shows it where it is
        what a cell returns; in a script it is among those of `plt.show()`, and ``savefig`` writes it.

    Raises
    ------
    ValueError, TypeError
        output is None and there are several, or is none of them; X has no rows; an argument is out of its range or of another
        kind.
    ImportError
        matplotlib is not there: `pip install sparserf[plot]`.

    Notes
    -----
    R^2 of a projection, and the sizes of its surfaces, are of rows that it was not fitted to: it is fitted to each half of the
    rows, and looked at in the other. It sees the up to 64 inputs of the largest shares, and pairs among the first 14 that some
    term sees together. Of a category of more than 24 levels, in a pair 12, the most frequent have a value each, and all others
    together one. It takes the time of `SparseModel.importances`, and O(n p^2 + p^3) for p numbers in the functions, at most
    2,000 and mostly some hundreds.

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
    worth, X = of_one.importances(X), numbers(model, X, MOST_ROWS, np.random.default_rng(0))
    parts = Effects.of(of_one, X, worth.share, n_points, n_panels)
    drawn = parts.chosen(worth, n_panels, LEAST_SHARE)
    columns = min(4, max(len(drawn), 1))
    height = -(-max(len(drawn), 1) // columns)
    levels = levels_of(model)
    ticks = _ticks(parts.grids, levels)
    each = 2.7 + 0.08 * max((len(label) for part in drawn for label in ticks[part[0]] if _is_long(ticks[part[0]])), default=0)
    kind = "Parts of" if parts.is_whole else "A projection of"
    whole = f"{kind} the model; all panels together: R²\u00a0=\u00a0{parts.told(drawn):.3f}"
    said = "\n".join(fill(line, PER_PANEL * columns) for line in (whole, *MEANINGS[: max(map(len, drawn), default=0)]))
    size = 3.3 * columns, each * height + 0.15 * said.count("\n")
    fig, axes = plt.subplots(height, columns, figsize=size, squeeze=False, layout="constrained")
    fig.suptitle(said, fontsize="medium")
    for ax in axes.flat[len(drawn) :]:
        ax.remove()
    _draw(fig, axes.flat[: len(drawn)], drawn, parts, X, names, levels, ticks, effect_on(model, output))
    for ax, part in zip(axes.flat, drawn, strict=False):
        title = [_short(names[j]) for j in part]
        between = " and " if sum(map(len, title)) <= SIDE_BY_SIDE else " and\n"
        share = f": {percent(worth.share[part[0]])}" if len(part) == 1 else ""
        ax.set_title(between.join(title) + share, fontsize="medium")
    return shown_once(plt, fig)


def shown_once(plt: Any, fig: Figure) -> Figure:
    """The figure; out of pyplot's hands where it draws into a notebook: that shows what a cell returns, and then all that
    pyplot holds."""
    if "inline" in plt.get_backend().lower():
        plt.close(fig)
    return fig


def _pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("sparserf.plot needs matplotlib: pip install sparserf[plot]") from None
    return plt


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
        axis.set_label_text(_short(name))
        if axis.axis_name == "x":
            _thin(axis)
        return
    some = "" if len(ticks) == len(levels) else f", {len(ticks)} of {len(levels)} levels"
    axis.set_label_text(fill(_short(name) + some, LONGEST + 6))
    axis.set_ticks(np.arange(len(ticks)), ticks)
    if axis.axis_name == "x" and _is_long(ticks):
        axis.set_tick_params(labelrotation=90)


def _thin(axis):
    """Fewer numbers on an axis, until they stand side by side, or upright where no few do."""
    for n in (5, 4, 3, 2):
        axis.get_major_locator().set_params(nbins=n)
        low, high = axis.get_view_interval()
        at = axis.get_majorticklocs()
        if len(at) < 2 or not _is_long(axis.get_major_formatter().format_ticks(at), (high - low) / (at[1] - at[0])):
            return
    axis.set_tick_params(labelrotation=90)


def _ticks(grids, levels):
    """The names of the levels that are shown, none of numbers."""
    return {j: [_short(levels[j][int(k)]) for k in grid if int(k) < len(levels[j])] if levels[j] is not None else []
            for j, grid in grids.items()}  # fmt: skip


def _is_long(ticks, steps=None):
    """Whether so many steps, or one a label, as wide as the longest label and a gap, are wider than an axis."""
    return (len(ticks) if steps is None else steps) * (max(map(len, ticks), default=0) + 1) > SIDE_BY_SIDE


def _check_model(model):
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
