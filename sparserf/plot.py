"""Pictures of models; needs matplotlib (the extra `plot`)."""

from itertools import product

import numpy as np

from ._checks import check_integer, check_names
from .features.feature_set import DefaultNames
from .model import SparseModel
from .rows import as_rows, rows_read, staged


def input_usage(model, *, names=None, ax=None):
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


def effects(model, X, *, names=None, n_panels=12, n_points=40):
    """The parts of a model whose features see at most two inputs each: a curve an input, and a surface a pair.

    f is a sum of functions of one and two inputs. Its surfaces are shown without the curves that are in them: each has
    mean zero along both its sides. The parts of largest standard deviation over their grid come first.

    Parameters
    ----------
    model : SparseModel
        Of one output, its features of order <= 2.
    X : array or CSR matrix of shape (n_samples, n_features)
        Where the effects are looked at: each input between its 1st and 99th percentile.
    names : sequence of str or None, default None
    n_panels : int, default 12
        Most parts to draw, at least 1.
    n_points : int, default 40
        Points of a curve and of each side of a surface, at least 2.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ValueError, TypeError
        A feature sees more than two inputs (one of `Taylor` all of them, by its envelope), the model has several
        outputs, or an argument is out of its range or of another kind.
    """
    import matplotlib.pyplot as plt

    _check_model(model)
    groups = _groups(model)
    d, stage = model.n_features_in, model.features.stage
    names = model.feature_names_in_ if names is None else names
    names = DefaultNames(d) if names is None else check_names("names", names, d)
    n_panels, n_points = check_integer("n_panels", n_panels, 1), check_integer("n_points", n_points, 2)
    X = rows_read(X, stage, n_features=d).array()
    levels = [None] * d if stage is None or stage.table is None else stage.table.levels
    grids = {j: _grid(_column(X, j), n_points, levels[j]) for j in sorted(set().union(*groups))}
    parts = sorted(_parts(model, groups, grids).items(), key=lambda part: -part[1].std())[:n_panels]
    columns = min(4, max(len(parts), 1))
    height = -(-max(len(parts), 1) // columns)
    fig, axes = plt.subplots(height, columns, figsize=(3.2 * columns, 2.6 * height), squeeze=False, layout="constrained")
    for ax in axes.flat[len(parts) :]:
        ax.axis("off")
    largest = {k: max((np.abs(v).max() for i, v in parts if len(i) == k), default=1.0) or 1.0 for k in (1, 2)}
    for ax, (inputs, values) in zip(axes.flat, parts, strict=False):
        _draw_part(fig, ax, [grids[j] for j in inputs], values, [names[j] for j in inputs], largest[len(inputs)])
        _name_levels(ax, [levels[j] for j in inputs])
    return fig


def _groups(model):
    """The terms by the inputs that they see: {(j,) or (j, k): positions}."""
    if model.coef.ndim > 1:
        raise ValueError(f"model must have one output, got {len(model.coef)}")
    column = np.arange(model.n_features_in) if model.features.stage is None else model.features.stage.column
    groups, position = {}, iter(model.features.to_blocks(np.arange(len(model.features))))
    for block in model.features.blocks:
        if block.envelope is not None and model.n_features_in > 2:
            raise ValueError(f"model must have features of at most 2 inputs, got one of {model.n_features_in}")
        for k in range(len(block)):
            inputs, term = np.unique(column[block.inputs_seen(k, len(column))]), next(position)
            if len(inputs) > 2:
                raise ValueError(f"model must have features of at most 2 inputs, got one of {len(inputs)}")
            if len(inputs):
                groups.setdefault(tuple(inputs.tolist()), []).append(term)
    return groups


def _parts(model, groups, grids):
    """{inputs: values on their grid}: the curves, and the surfaces without the curves that are in them."""
    parts = {(j,): np.zeros(len(grid)) for j, grid in grids.items()}
    for inputs, terms in groups.items():
        points = np.array(list(product(*(grids[j] for j in inputs))))
        rows = staged(as_rows(_at(model.n_features_in, inputs, points)), model.features.stage)
        values = rows.apply(model.features.take(terms), model.coef[terms])
        if len(inputs) == 1:
            parts[inputs] += values
            continue
        surface = values.reshape([len(grids[j]) for j in inputs])
        curves = surface.mean(axis=1), surface.mean(axis=0)
        for j, curve in zip(inputs, curves, strict=True):
            parts[(j,)] += curve
        parts[inputs] = surface - curves[0][:, None] - curves[1] + surface.mean()
    return {inputs: values - values.mean() for inputs, values in parts.items()}


@np.errstate(over="ignore", invalid="ignore")
def _grid(values, n_points, levels=None):
    """Points from the 1st percentile to the 99th of the numbers that are there; or the levels of a category."""
    if len(values) == 0:
        raise ValueError("X must have at least one row, got none")
    if levels is not None:
        return np.arange(max(len(levels), 1), dtype=np.float64)
    values = values[~np.isnan(values)] if np.isnan(values).any() and not np.isnan(values).all() else np.nan_to_num(values)
    grid = np.linspace(*np.percentile(values.astype(np.float64), [1, 99]), n_points)
    if not np.isfinite(grid).all():
        raise ValueError("X must be of moderate size, got values whose range overflows: scale its columns")
    return grid


def _column(X, j):
    return X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].toarray().ravel()


def _at(width, inputs, values):
    """CSR rows that are zero but for these inputs, which ascend."""
    from scipy.sparse import csr_array

    n, k = values.shape
    return csr_array((values.ravel(), np.tile(inputs, n), np.arange(n + 1) * k), shape=(n, width))


def _draw_part(fig, ax, grids, values, names, largest):
    if len(grids) == 1:
        ax.plot(grids[0], values)
        ax.set(xlabel=names[0], ylim=(-1.05 * largest, 1.05 * largest))
        return
    mesh = ax.pcolormesh(grids[0], grids[1], values.T, cmap="RdBu_r", vmin=-largest, vmax=largest, shading="gouraud")
    ax.set(xlabel=names[0], ylabel=names[1])
    fig.colorbar(mesh, ax=ax)


def _name_levels(ax, levels):
    for axis, of_column in zip((ax.xaxis, ax.yaxis), levels, strict=False):
        if of_column is not None:
            axis.set_ticks(np.arange(len(of_column)), [str(level) for level in of_column])


def _check_model(model):
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
