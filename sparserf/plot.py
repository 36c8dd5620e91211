"""Pictures of models. They need matplotlib: `pip install sparserf[plot]`."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ._base.checks import check_integer, check_names
from ._base.floats import as_ieee
from .explain.effects import Effects
from .explain.evaluate import column_of, read_numbers
from .explain.importances import percent
from .model import SparseModel
from .model.outputs import effect_on, of_output
from .model.terms import column_clocks, column_levels, column_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._base.types import MatrixLike

__all__ = ["effects", "input_usage"]

# The most rows over which effects are computed, and the most rows that are drawn as ticks or points.
ROWS_OF_EFFECTS, MOST_TICKS = 5_000, 300
# The least share of the importances of a function that is drawn.
LEAST_SHARE = 0.005
# The lines above a picture that explain curves, and surfaces if there are any; and their characters for each panel in a line.
MEANINGS = (
    "%: the input's share of mean |Shapley value|, by all that it does, alone and with others",
    "two inputs: what they do together beyond their curves",
)
PER_PANEL = 42
# The most characters of a level or a name that are shown, and the most side by side on an axis or in a title.
LONGEST, SIDE_BY_SIDE = 24, 24


def __dir__() -> list[str]:
    """Return the names that users need."""
    return __all__


@as_ieee
def input_usage(model: SparseModel, *, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw the share of a model's terms that use each input, as in Figures 4 and 5 of the HARFE paper.

    Parameters
    ----------
    model : SparseModel
    names : sequence of str or None, default None
        The names of the inputs. None: those of the data frame that the model was fitted to, or none.
    ax : matplotlib Axes or None, default None
        Where to draw. None: in a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        matplotlib is not installed: `pip install sparserf[plot]`.

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


@as_ieee
def effects(
    model: SparseModel, X: MatrixLike, *, names: Iterable[str] | None = None, output: object = None, n_panels: int = 12,
    n_points: int = 40,
) -> Figure:  # fmt: skip
    """Draw what a model does with its inputs: a curve for each input, and a surface for each pair.

    Where every term is linear or of at most two inputs, these functions add up to f, and each surface has mean zero along both
    its sides. Of any other model they are an approximation: the sum of such functions that is nearest to f over the rows
    of X, by least squares. The curves are piecewise linear, and the pairs explain most of the residual of the curves.
    Where inputs depend on one another many sums come as near; the one is drawn whose curves are nearest to partial dependence,
    the mean of f for given values of the input.

    The title of a curve has the share of its input in the mean size of all Shapley values, the number that
    `SparseModel.importances` and `SparseModel.summary` have for the same X and output; curves are chosen and ordered by it. It
    counts all that the input does, alone and with others: a flat curve may have a large share, whose cause is then in surfaces
    or, together with two and more other inputs, in no panel. A surface is what two inputs do beyond their curves. It has no
    share of its own, as half of it is in the values of each of its inputs; by that, but after both of them, it is chosen among
    the n_panels that matter most. What would have less than 0.5 % is not drawn, except the first. R^2, above all panels, is
    how much of the variance of f they account for together.

    Parameters
    ----------
    model : SparseModel
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        The rows over which effects are computed, at most 5,000 of them; each input is drawn between its 1st and 99th
        percentile.
    names : sequence of str or None, default None
        The names of the columns. None: those of the data frame that the model was fitted to, or x0, x1, ...
    output : label of a class, int, or None, default None
        The output that is drawn, where a model has several: the label of a class, or its index where labels are text; or the
        index of a target. For two classes None is the second.
    n_panels : int, default 12
        The most functions to draw, at least 1.
    n_points : int, default 40
        The number of points of a curve and of each side of a surface, at least 2.

    Returns
    -------
    matplotlib Figure
        Axes are in original units; of a category they have the 12 most frequent levels. All curves have one scale, all surfaces
        one scale of colours. Ticks along the lower edge, and points, are up to 300 random rows of X. A notebook shows the
        figure where it is what a cell returns; in a script `plt.show()` does, and ``savefig`` writes it to a file.

    Raises
    ------
    ValueError, TypeError
        output is None where there are several, or is none of them; X has no rows; an argument is out of its range or of another
        kind.
    ImportError
        matplotlib is not installed: `pip install sparserf[plot]`.

    Notes
    -----
    R^2 of an approximation, and the sizes of its surfaces, are cross-fitted: computed on each half of the rows by a fit to the
    other half. The up to 64 inputs of the largest shares have curves, and pairs are sought among the first 14 that some term
    sees together. Of a category of more than 24 levels, in a pair 12, the most frequent have a value each, and all others share
    one. Time is that of `SparseModel.importances`, and O(n p^2 + p^3) for p values in all functions, at most 2,000 and mostly
    some hundreds.

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
    of_one, names = of_output(model, output), column_names(model) if names is None else check_names("names", names, d)
    n_panels, n_points = check_integer("n_panels", n_panels, 1), check_integer("n_points", n_points, 2)
    importances, X = of_one.importances(X), read_numbers(model, X, ROWS_OF_EFFECTS, np.random.default_rng(0))
    parts = Effects.from_model(of_one, X, importances.share, n_points, n_panels)
    drawn = parts.choose(importances, n_panels, LEAST_SHARE)
    levels = column_levels(model)
    ticks = _ticks(parts.grids, levels)
    n_columns = min(4, max(len(drawn), 1))
    n_lines = -(-max(len(drawn), 1) // n_columns)
    height = 2.7 + 0.08 * max((len(label) for part in drawn for label in ticks[part[0]] if _is_long(ticks[part[0]])), default=0)
    kind = "Parts of" if parts.is_whole else "A projection of"
    heading = f"{kind} the model; all panels together: R²\u00a0=\u00a0{parts.r2(drawn):.3f}"
    lines = (heading, *MEANINGS[: max(map(len, drawn), default=0)])
    heading = "\n".join(fill(line, PER_PANEL * n_columns) for line in lines)
    size = 3.3 * n_columns, height * n_lines + 0.15 * heading.count("\n")
    fig, axes = plt.subplots(n_lines, n_columns, figsize=size, squeeze=False, layout="constrained")
    fig.suptitle(heading, fontsize="medium")
    for ax in axes.flat[len(drawn) :]:
        ax.remove()
    _draw(fig, axes.flat[: len(drawn)], drawn, parts, X, names, levels, ticks, column_clocks(model), effect_on(model, output))
    for ax, part in zip(axes.flat, drawn, strict=False):
        title = [_short(names[j]) for j in part]
        between = " and " if sum(map(len, title)) <= SIDE_BY_SIDE else " and\n"
        share = f": {percent(importances.share[part[0]])}" if len(part) == 1 else ""
        ax.set_title(between.join(title) + share, fontsize="medium")
    return close_in_notebook(plt, fig)


def close_in_notebook(plt: Any, fig: Figure) -> Figure:
    """Return the figure, closed in pyplot where that draws into a notebook.

    A notebook shows what a cell returns, and then all figures that are open in pyplot: this one twice.
    """
    if "inline" in plt.get_backend().lower():
        plt.close(fig)
    return fig


def _pyplot():
    """Import matplotlib.pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("sparserf.plot needs matplotlib: pip install sparserf[plot]") from None
    return plt


def _short(text):
    """Return a level or a name, cut where it is long."""
    text = str(text)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _draw(fig, axes, drawn, parts, X, names, levels, ticks, clocks, effect):
    """Draw parts into axes, curves on one scale and surfaces on one scale of colours, with ticks and points for some rows."""
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
            _name(getattr(ax, f"{axis}axis"), names[j], levels[j], ticks[j], clocks.get(j))
    if mesh is not None:
        fig.colorbar(mesh, ax=list(axes), shrink=0.6, label=f"{effect}, of two inputs")


def _shown(x, grid, levels):
    """Return the positions of values on an axis; NaN, which is not drawn, for values beyond the grid and levels not on it."""
    if levels is None:
        return np.where((x >= grid[0]) & (x <= grid[-1]), x, np.nan)
    place = np.minimum(np.searchsorted(grid, x), len(grid) - 1)
    return np.where(grid[place] == x, place, np.nan)


def _name(axis, name, levels, ticks, clock):
    """Label an axis; the axis of a category also with its levels, and that of times with times."""
    if levels is None:
        axis.set_label_text(_short(name))
        if clock is not None:
            span = abs(float(np.subtract(*axis.get_view_interval())))
            axis.set_major_formatter(lambda days, _: clock.tick(days, span))
        if axis.axis_name == "x":
            _thin(axis)
        return
    some = "" if len(ticks) == len(levels) else f", {len(ticks)} of {len(levels)} levels"
    axis.set_label_text(fill(_short(name) + some, LONGEST + 6))
    axis.set_ticks(np.arange(len(ticks)), ticks)
    if axis.axis_name == "x" and _is_long(ticks):
        axis.set_tick_params(labelrotation=90)


def _thin(axis):
    """Put fewer numbers on an axis until they fit side by side; turn them upright where even two do not."""
    for n in (5, 4, 3, 2):
        axis.get_major_locator().set_params(nbins=n)
        low, high = axis.get_view_interval()
        at = axis.get_majorticklocs()
        if len(at) < 2 or not _is_long(axis.get_major_formatter().format_ticks(at), (high - low) / (at[1] - at[0])):
            return
    axis.set_tick_params(labelrotation=90)


def _ticks(grids, levels):
    """Return {input: the names of the levels on its axis}, an empty list for numbers."""
    return {j: [_short(levels[j][int(k)]) for k in grid if int(k) < len(levels[j])] if levels[j] is not None else []
            for j, grid in grids.items()}  # fmt: skip


def _is_long(ticks, steps=None):
    """Return whether labels are too wide for an axis, where each takes as much as the longest and a gap.

    steps : the length of the axis, in distances between labels; None: the number of labels
    """
    return (len(ticks) if steps is None else steps) * (max(map(len, ticks), default=0) + 1) > SIDE_BY_SIDE


def _check_model(model):
    """Check that model is a `SparseModel`."""
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
