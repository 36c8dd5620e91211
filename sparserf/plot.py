"""Pictures of models; needs matplotlib (the extra `plot`)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ._checks import check_integer, check_names
from .explain.projection import projected
from .explain.terms import decision, dense, names_of, numbers, terms_of, views
from .model import SparseModel
from .rows import as_rows, staged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._types import MatrixLike

# Rows that effects are looked at in, and that are drawn.
MOST_ROWS, MOST_TICKS = 5_000, 300
LARGEST = 1e100  # beyond which pictures overflow


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
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    usage = model.input_usage()
    ax.bar(np.arange(len(usage)), usage)
    ax.set(xlabel="input", ylabel="share of terms that use it", xlim=(-0.6, len(usage) - 0.4), ylim=(0, None))
    if names is not None:
        ax.set_xticks(np.arange(len(usage)), names, rotation=90)
    return ax


def effects(
    model: SparseModel, X: MatrixLike, *, names: Iterable[str] | None = None, n_panels: int = 12, n_points: int = 40
) -> Figure:
    """A model in functions of one and two inputs: a curve an input, and a surface a pair, with the share of variance of each.

    Where all features see at most two inputs, or are linear, these functions add up to f, and each surface has mean zero along
    both its sides. Of any other model they are its projection: the sum of such functions that is nearest to f over the rows
    of X, the functions of an input piecewise linear, of pairs those that tell most of what is left. The parts that tell most
    come first; above each stands the share of the variance of f that it tells, its covariance with f, and above all their sum.

    Parameters
    ----------
    model : SparseModel
        Of one output.
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Where the effects are looked at: each input between its 1st and 99th percentile. Of more than 5,000 rows these many.
    names : sequence of str or None, default None
        Of the columns; None: those of the data frame that the model was fitted to, or x0, x1, ...
    n_panels : int, default 12
        Most parts to draw, at least 1.
    n_points : int, default 40
        Points of a curve and of each side of a surface, at least 2.

    Returns
    -------
    matplotlib Figure
        In original units, levels by their names. Curves share one scale, surfaces one of colours; ticks along the lower edge,
        and points, are rows of X.

    Raises
    ------
    ValueError, TypeError
        The model has several outputs, X no rows, or an argument is out of its range or of another kind.

    Notes
    -----
    The shares of a projection are of rows that it was not fitted to: it is fitted to each half of the rows, and looked at in
    the other. It sees the up to 64 inputs of the largest terms, and pairs among the first 14 that some term sees together; it
    takes O(n p^2 + p^3) for p numbers in the functions, some hundreds.

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
    import matplotlib.pyplot as plt

    _check_model(model)
    if model.coef.ndim > 1:
        raise ValueError(f"model must have one output, got {len(model.coef)}")
    d, stage = model.n_features_in, model.features.stage
    names = names_of(model) if names is None else check_names("names", names, d)
    n_panels, n_points = check_integer("n_panels", n_panels, 1), check_integer("n_points", n_points, 2)
    X = numbers(model, X, MOST_ROWS, np.random.default_rng(0))
    levels = [None] * d if stage is None or stage.table is None else stage.table.levels
    groups = _groups(model)
    seen = sorted(set().union(*(term.columns.tolist() for term in terms_of(model.features))))
    grids = {j: _grid(_column(X, j), n_points, levels[j]) for j in seen}
    parts, shares = _projected(model, X, grids, n_panels) if groups is None else _whole(model, X, groups, grids)
    drawn = sorted(parts, key=lambda part: -abs(shares[part]))[:n_panels]
    columns = min(4, max(len(drawn), 1))
    height = -(-max(len(drawn), 1) // columns)
    fig, axes = plt.subplots(height, columns, figsize=(3.3 * columns, 2.7 * height), squeeze=False, layout="constrained")
    for ax in axes.flat[len(drawn) :]:
        ax.axis("off")
    _draw(fig, axes, {part: parts[part] for part in drawn}, grids, X, names, levels)
    for ax, part in zip(axes.flat, drawn, strict=False):
        ax.set_title(_percent(shares[part]), fontsize="medium")
    kind = "a projection of" if groups is None else "parts of"
    told = sum(shares[part] for part in drawn)
    fig.suptitle(f"{kind} the model: {_percent(told)} of its variance", fontsize="medium")
    return fig


def _groups(model):
    """The terms by the inputs that they see, linear ones with each of theirs: {(j,) or (j, k): positions}; None where one sees
    more than two."""
    groups = {}
    for term in terms_of(model.features):
        inputs = term.columns.tolist()
        if term.activation == "identity":
            for j in inputs:
                groups.setdefault((j,), []).append(term.position)
        elif len(inputs) > 2:
            return None
        elif inputs:
            groups.setdefault(tuple(inputs), []).append(term.position)
    return groups


def _parts(model, groups, grids):
    """{inputs: values on their grid}: the curves, and the surfaces without the curves that are in them."""
    parts = {(j,): np.zeros(len(grid)) for j, grid in grids.items()}
    every = {term.position: term for term in terms_of(model.features)}
    for inputs, positions in groups.items():
        points = np.array(list(product(*(grids[j] for j in inputs))))
        values = _values(model, [every[k] for k in positions], _at(model.n_features_in, inputs, points), inputs)
        if len(inputs) == 1:
            parts[inputs] += values
            continue
        surface = values.reshape([len(grids[j]) for j in inputs])
        curves = surface.mean(axis=1), surface.mean(axis=0)
        for j, curve in zip(inputs, curves, strict=True):
            parts[(j,)] += curve
        parts[inputs] = surface - curves[0][:, None] - curves[1] + surface.mean()
    return {inputs: values - values.mean() for inputs, values in parts.items()}


def _values(model, terms, X, inputs):
    """What terms add up to at rows of numbers; of linear ones the part of their inputs."""
    linear = [term for term in terms if term.activation == "identity" and len(inputs) == 1]
    others = [term.position for term in terms if term not in linear]
    rows = staged(as_rows(X, may_miss=True), model.features.stage)
    total = rows.apply(model.features.take(others), model.coef[others])
    U = views(model, X) if linear else None
    for term in linear:
        total = total + model.coef[term.position] * term.gain * term.parts(U)[term.columns.tolist().index(inputs[0])]
    return total


def _whole(model, X, groups, grids):
    """(the parts that add up to the model, the share of variance of each)."""
    f = decision(model, X)[0]
    return _parts(model, groups, grids), {part: _share(v, f) for part, v in _at_rows(model, X, groups, grids).items()}


def _at_rows(model, X, groups, grids):
    """The parts at the rows of X: those of two inputs without the curves that are in them, which lie between their points."""
    every, parts = {term.position: term for term in terms_of(model.features)}, {(j,): 0.0 for j in grids}
    for inputs, positions in groups.items():
        terms = [every[k] for k in positions]
        parts[inputs] = parts.get(inputs, 0.0) + _values(model, terms, X, inputs)
        if len(inputs) == 2:
            points = np.array(list(product(*(grids[j] for j in inputs))))
            surface = _values(model, terms, _at(model.n_features_in, inputs, points), inputs)
            for k, j in enumerate(inputs):
                curve = surface.reshape([len(grids[i]) for i in inputs]).mean(axis=1 - k)
                told = np.interp(np.nan_to_num(_column(X, j)), grids[j], curve)
                parts[(j,)], parts[inputs] = parts[(j,)] + told, parts[inputs] - told
    return parts


def _projected(model, X, grids, n_pairs):
    """(the parts of a projection, the share of variance that each tells)."""
    projection = projected(model, dense(X), n_pairs)
    at = {part: np.array(list(product(*(grids[j] for j in part)))) for part in projection.values}
    parts = {part: projection.at(part, points).reshape([len(grids[j]) for j in part]) for part, points in at.items()}
    return parts, projection.shares


def _percent(share):
    return f"{100 * share:.1f} %"


def _share(part, f):
    f = f - f.mean()
    return float(f @ (part - np.mean(part)) / ((f @ f) or 1.0))


@np.errstate(over="ignore", invalid="ignore")
def _grid(values, n_points, levels=None):
    """Points from the 1st percentile to the 99th of the numbers that are there; or the levels of a category."""
    if len(values) == 0:
        raise ValueError("X must have at least one row, got none")
    if levels is not None:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    values = values[~np.isnan(values)] if np.isnan(values).any() and not np.isnan(values).all() else np.nan_to_num(values)
    grid = np.linspace(*np.percentile(values.astype(np.float64), [1, 99]), n_points)
    if not np.abs(grid).max() < LARGEST:
        raise ValueError(f"X must be below {LARGEST:g} to be drawn, got a column that is not: scale it")
    return grid


def _column(X, j):
    return X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].toarray().ravel()


def _within(x, grid):
    """NaN, which is not drawn, in place of what lies beyond the grid."""
    return np.where((x >= grid[0]) & (x <= grid[-1]), x, np.nan)


def _at(width, inputs, values):
    """CSR rows that are zero but for these inputs, which ascend."""
    from scipy.sparse import csr_array

    n, k = values.shape
    return csr_array((values.ravel(), np.tile(inputs, n), np.arange(n + 1) * k), shape=(n, width))


def _draw(fig, axes, parts, grids, X, names, levels):
    """The parts, curves on one scale and surfaces on one of colours, with the rows' ticks and points."""
    largest = {k: max((np.abs(v).max() for i, v in parts.items() if len(i) == k), default=1.0) or 1.0 for k in (1, 2)}
    mesh = None
    for ax, (inputs, values) in zip(axes.flat, parts.items(), strict=False):
        x = [_within(_column(X, j)[:MOST_TICKS], grids[j]) for j in inputs]
        if len(inputs) == 1:
            is_category = levels[inputs[0]] is not None
            ax.plot(grids[inputs[0]], values, *["o"] * is_category)
            ax.plot(x[0], np.full(len(x[0]), 0.0), "|", color="0.3", alpha=0.3, transform=ax.get_xaxis_transform())
            ax.axhline(0, color="0.85", zorder=0)
            ax.set(ylim=(-1.05 * largest[1], 1.05 * largest[1]))
        else:
            mesh = ax.pcolormesh(*(grids[j] for j in inputs), values.T, cmap="RdBu_r", vmin=-largest[2], vmax=largest[2],
                                 shading="gouraud" if all(levels[j] is None for j in inputs) else "nearest")  # fmt: skip
            ax.plot(*x, ".", color="0.2", alpha=0.25, markersize=1.5)
            ax.set_ylabel(names[inputs[1]])
        ax.set_xlabel(names[inputs[0]])
        for axis, j in zip("xy", inputs, strict=False):
            grid, pad = grids[j], 0.5 if levels[j] is not None else 0.0
            getattr(ax, f"set_{axis}lim")(grid[0] - pad, (grid[-1] if grid[-1] > grid[0] else grid[0] + (pad == 0)) + pad)
        _name_levels(ax, [levels[j] for j in inputs])
    if mesh is not None:
        fig.colorbar(mesh, ax=list(axes.flat), shrink=0.6, label="of two inputs")


def _name_levels(ax, levels):
    for axis, of_column in zip((ax.xaxis, ax.yaxis), levels, strict=False):
        if of_column is not None:
            axis.set_ticks(np.arange(len(of_column)), [str(level) for level in of_column])


def _check_model(model):
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
