"""Pictures of models. They need matplotlib: `pip install sparserf[plot]`."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ._base.checks import check_integer, check_names
from ._base.floats import as_ieee
from ._base.screen import percent
from .columns.frames import Columns, is_frame, is_ordered
from .expansion.outputs import effect_on, of_output
from .expansion.terms import column_clocks, column_levels, column_names, terms_of
from .explain.effects import Effects
from .explain.evaluate import column_of, read_numbers
from .model import SparseModel, check_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._base.types import MatrixLike

__all__ = ["effects", "input_usage", "rules"]

# The most rows over which effects are computed.
MOST_ROWS = 2_000
# The most rows that are drawn as points.
MOST_POINTS = 300
# The least share of the importances of a function that is drawn.
LEAST_SHARE = 0.005
# The lines above a picture, which explain curves, bands if there are any, and surfaces.
OF_CURVES = (
    "%: the input's share of mean |Shapley value|, by all that it does, alone and with others; "
    "grey steps: how many rows; dotted or pale: few rows"
)
OF_BANDS = "bands: from the least to the largest of {} models"
OF_SURFACES = "two inputs: what they do together beyond their curves; points: rows; grey: few rows"
# The most characters of a level or a name; a longer one is cut.
LONGEST = 24
# The most characters side by side on an axis or in a title.
SIDE_BY_SIDE = 20
# Rows are few where they are less dense than this share of rows that are spread evenly.
SPARSE = 0.1
# Surfaces and bars are drawn in full from this density on.
DENSE = 0.3
# The height of the largest step of the rows, in heights of a panel.
STEPS_HIGH = 0.1
# The room for these steps below the curves, in heights of a panel.
BELOW = 0.14
# The number of steps of a curve's rows.
N_STEPS = 24
# The place of missing cells, in lengths of the axis.
MISSING_AT = 1.08
# The colour of effects.
EFFECT = "C0"
# The most characters of a rule in a line.
LONGEST_RULE = 60


def __dir__() -> list[str]:
    """Return the names that users need."""
    return __all__


@as_ieee
def input_usage(
    model: SparseModel, *, names: Iterable[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the share of terms that use each input, as in Figures 4 and 5 of the HARFE paper.

    Parameters
    ----------
    model : SparseModel
    names : sequence of str or None, default None
        The names of the inputs. None: those of the data frame that the model was fitted to, or
        none.
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
    >>> model = srf.harfe(
    ...     X, X[:, 0] * X[:, 1], n_components=500, n_nonzero_coefs=10, order=2, rng=0
    ... )
    >>> srf.plot.input_usage(model, names=["a", "b", "c"]).get_ylabel()
    'share of terms that use it'
    """
    check_model(model)
    if names is None:
        names = model.feature_names_in_
    else:
        names = check_names("names", names, model.n_features_in)
    usage = model.input_usage()
    if ax is None:
        width = min(max(6.4, 0.18 * len(usage)), 4 * 6.4) if names is not None else 6.4
        ax = _pyplot().subplots(figsize=(width, 4.8), layout="constrained")[1]
    ax.bar(np.arange(len(usage)), usage)
    ax.set(xlabel="input", ylabel="share of terms that use it")
    ax.set(xlim=(-0.6, len(usage) - 0.4), ylim=(0, None))
    if names is not None:
        every = -(-len(usage) // 140)  # more names would not fit
        shown = [_short(name) for name in names][::every]
        ax.set_xticks(np.arange(0, len(usage), every), shown, rotation=90)
    return ax


@as_ieee
def effects(
    model: SparseModel,
    X: MatrixLike,
    *,
    names: Iterable[str] | None = None,
    output: object = None,
    n_panels: int = 12,
    n_points: int = 40,
    models: Iterable[SparseModel] | None = None,
) -> Figure:
    """Draw the effects of inputs: a curve or bars for each, and a surface for each pair.

    Where every term is linear or of at most two inputs, these functions add up to f, and each
    surface has mean zero along both its sides. Of any other model they are an approximation: the
    sum of such functions that is nearest to f over the rows of X, by least squares. The curves are
    piecewise linear, and the pairs explain most of the residual of the curves. Where inputs depend
    on one another many sums come as near; the one is drawn whose curves are nearest to partial
    dependence, the mean of f for given values of the input.

    The title of a curve has the share of its input in the mean size of all Shapley values, the
    number that `SparseModel.importances` and `SparseModel.summary` have for the same X and output;
    curves are chosen and ordered by it. It counts all that the input does, alone and with others: a
    flat curve may have a large share, whose cause is then in surfaces or, together with two and
    more other inputs, in no panel. A surface is what two inputs do beyond their curves. It has no
    share of its own, as half of it is in the values of each of its inputs; by that, but after both
    of them, it is chosen among the n_panels that matter most. What would have less than 0.5 % is
    not drawn, except the first. R^2, above all panels, is how much of the variance of f they
    account for together.

    Parameters
    ----------
    model : SparseModel
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        The rows over which effects are computed, at most 2,000 of them; each input is drawn between
        its 1st and 99th percentile.
    names : sequence of str or None, default None
        The names of the columns. None: those of the data frame that the model was fitted to, or x0,
        x1, ...
    output : label of a class, int, or None, default None
        The output that is drawn, where a model has several: the label of a class, or its index
        where labels are text; or the index of a target. For two classes None is the second.
    n_panels : int, default 12
        The most functions to draw, at least 1.
    n_points : int, default 40
        The number of points of a curve and of each side of a surface, at least 2. A column of no
        more different whole numbers, such as a flag, has a point at each.
    models : iterable of SparseModel or None, default None
        Models of the same columns and outputs, fitted to other rows: the `models` of
        `cross_validate`, or `[expert.model for expert in found.experts]` of `intervals`. A band
        then goes from the least to the largest of their effects.

    Returns
    -------
    matplotlib Figure
        Axes are in original units, and all curves have one scale. A category has a bar for each of
        its 12 most frequent levels, from zero, which is the mean over the rows: the largest first,
        or in their order if they are numbers, or ordered in X. Then come the mean of all other
        levels, unknown levels and missing cells, where the rows have any; a curve has a point for
        missing cells. Grey steps along the lower edge say how many rows there are. A curve is
        dotted, a bar pale, and a surface vanishes in the grey of its ground, where there are few
        rows: less than a tenth of what there would be if they were spread evenly. Surfaces have one
        scale of colours, white at zero, up to their largest value where there are more rows; points
        are up to 300 random rows. A notebook shows the figure where it is what a cell returns; in a
        script `plt.show()` does, and ``savefig`` writes it to a file.

    Raises
    ------
    ValueError, TypeError
        output is None where there are several, or is none of them; X has no rows; models is empty
        or one of them has other columns or outputs; an argument is out of its range or of another
        kind.
    ImportError
        matplotlib is not installed: `pip install sparserf[plot]`.

    Notes
    -----
    R^2 of an approximation, and the sizes of its surfaces, are cross-fitted: computed on each half
    of the rows by a fit to the other half. The up to 32 inputs of the largest shares have curves,
    and pairs are sought among the first 14 that some term sees together. Of a category of more than
    24 levels, in a pair 12, the most frequent have a value each, and all others share one. A band
    shows by how much an effect varies with the rows of the fit. It is no confidence interval:
    models of all folds but one share most of their rows, and all may err alike. Time is that of
    `SparseModel.importances`, and for the model and each of models O(n p^2 + p^3) for n rows and p
    values in all functions, at most 1,200 and mostly some hundreds.

    Examples
    --------
    >>> import matplotlib, numpy as np, sparserf as srf
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    >>> model = srf.sparse_rf(
    ...     X, X[:, 0] * X[:, 1] + X[:, 2] ** 2, features="gaussian", alpha=0.01, rng=0
    ... )
    >>> figure = srf.plot.effects(model, X, n_panels=2)
    >>> sorted(ax.get_xlabel() for ax in figure.axes if ax.get_xlabel())
    ['x0', 'x2']
    """
    check_model(model)
    plt, d = _pyplot(), model.n_features_in
    of_one = of_output(model, output)
    shown_names = column_names(model) if names is None else check_names("names", names, d)
    n_panels = check_integer("n_panels", n_panels, 1)
    n_points = check_integer("n_points", n_points, 2)
    others = None if models is None else _check_models(models, model)
    importances, ordered = of_one.importances(X), _ordered_columns(model, X)

    def parts_of(one):
        rows = read_numbers(one, X, MOST_ROWS, np.random.default_rng(0))
        return Effects.from_model(
            of_output(one, output), rows, importances.share, n_points, n_panels, ordered
        )

    parts = parts_of(model)
    drawn = parts.choose(importances, n_panels, LEAST_SHARE)
    bands_of = [] if others is None else [parts_of(one) for one in others]
    panels = _Panels(parts, bands_of, shown_names, column_clocks(model))
    n_columns = min(4, max(len(drawn), 1))
    n_lines = -(-max(len(drawn), 1) // n_columns)
    heading = _heading(parts, drawn, 0 if others is None else len(others), 42 * n_columns)
    # In inches: panels, and the characters of labels that stand upright below those of a line.
    upright = [
        max((panels.longest(part) for part in drawn[k : k + n_columns]), default=0)
        for k in range(0, n_lines * n_columns, n_columns)
    ]
    height = sum(2.35 + 0.065 * n_characters for n_characters in upright)
    size = 2.8 * n_columns, height + 0.15 * (heading.count("\n") + 1)
    fig, axes = plt.subplots(n_lines, n_columns, figsize=size, squeeze=False, layout="constrained")
    fig.suptitle(heading, fontsize="medium")
    for ax in axes.flat[len(drawn) :]:
        ax.remove()
    panels.draw(fig, axes.flat[: len(drawn)], drawn, effect_on(model, output))
    for ax, part in zip(axes.flat, drawn, strict=False):
        title = [_short(shown_names[j]) for j in part]
        between = " and " if sum(map(len, title)) <= SIDE_BY_SIDE else " and\n"
        share = f": {percent(importances.share[part[0]])}" if len(part) == 1 else ""
        ax.set_title(between.join(title) + share, fontsize="medium")
    return close_in_notebook(plt, fig)


@as_ieee
def rules(
    model: SparseModel,
    X: MatrixLike | None = None,
    *,
    names: Iterable[str] | None = None,
    output: object = None,
    n_rules: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Draw a model of rules: a bar for each rule, as long as what it adds to f where it holds.

    Parameters
    ----------
    model : SparseModel
        A model all of whose terms are rules, as `sparse_rf` fits them with ``features=Rules()``.
    X : data frame, array or CSR matrix of shape (n_samples, n_features), optional
        Rows, of which each bar says for how many its rule holds.
    names : sequence of str or None, default None
        The names of the columns. None: those of the data frame that the model was fitted to, or x0,
        x1, ...
    output : label of a class, int, or None, default None
        The output that is drawn, as in `effects`.
    n_rules : int, default 30
        The most rules to draw, those of the longest bars, at least 1.
    ax : matplotlib Axes or None, default None
        Where to draw. None: in a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError, TypeError
        The model has a term that is no rule; output is None where there are several.
    ImportError
        matplotlib is not installed: `pip install sparserf[plot]`.

    Examples
    --------
    >>> import matplotlib, numpy as np, sparserf as srf
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = 2.0 * (X[:, 0] > 0.5) + 0.1 * X[:, 1]
    >>> model = srf.sparse_rf(X, y, features=srf.Rules(), alpha=0.2, rng=0)
    >>> ax = srf.plot.rules(model, X, names=["a", "b"])
    >>> ax.get_xlabel()
    'added to f'
    """
    check_model(model)
    n_rules = check_integer("n_rules", n_rules, 1)
    model = of_output(model, output)
    d = model.n_features_in
    names = column_names(model) if names is None else check_names("names", names, d)
    terms = list(terms_of(model.features))
    conditions = {term.position: term.condition(names, model.features.encoder) for term in terms}
    if None in conditions.values():
        raise ValueError("model must have rules alone, as sparse_rf(..., features=Rules()) has")
    added = np.zeros(len(terms))
    for term in terms:
        added[term.position] = np.ravel(model.coef)[term.position] * term.gain
    drawn = np.argsort(-np.abs(added), kind="stable")[:n_rules]
    labels = [fill(conditions[k] or "always", LONGEST_RULE) for k in drawn.tolist()]
    if X is not None:
        holds = (model.features.take(drawn).transform(X) != 0).mean(axis=0)
        labels = [
            f"{label} ({percent(share)} of rows)"
            for label, share in zip(labels, holds, strict=True)
        ]
    if ax is None:
        n_lines = sum(label.count("\n") + 1 for label in labels)
        size = (9.6, 1.2 + 0.24 * n_lines)
        ax = _pyplot().subplots(figsize=size, layout="constrained")[1]
    places = np.arange(len(drawn))
    ax.barh(places, added[drawn], color=np.where(added[drawn] > 0, "C0", "C1").tolist())
    ax.axvline(0.0, color="0.5", linewidth=0.8)
    ax.set_yticks(places, labels, fontsize="small")
    ax.invert_yaxis()
    more = f", the {len(drawn)} largest of {len(added)} rules" if len(drawn) < len(added) else ""
    ax.set(xlabel="added to f", title=f"f = {model.intercept:.4g} + the rules that hold{more}")
    return ax


def close_in_notebook(plt: Any, fig: Figure) -> Figure:
    """Return the figure, closed in pyplot where that draws into a notebook.

    A notebook shows what a cell returns, and then all figures that are open in pyplot: this one
    twice.
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


def _heading(parts, drawn, n_models, width):
    """Return the text above all panels, in lines of at most `width` characters."""
    kind = "Parts of" if parts.is_exact else "A projection of"
    most = max(map(len, drawn), default=0)
    lines = [f"{kind} the model; all panels together: R²\u00a0=\u00a0{parts.r2(drawn):.3f}"]
    lines += [OF_CURVES] * (most > 0) + [OF_BANDS.format(n_models)] * (n_models > 0)
    lines += [OF_SURFACES] * (most > 1)
    return "\n".join(fill(line, width) for line in lines)


def _check_models(models, model):
    """Return models as a list, after a check that they have the columns and outputs of model."""
    if isinstance(models, SparseModel) or not hasattr(models, "__iter__"):
        raise TypeError(f"models must be a sequence of SparseModel, got {type(models).__name__}")
    models = list(models)
    if not models:
        raise ValueError("models must have at least one model, got none")
    labels = lambda one: None if one.classes is None else one.classes.tolist()  # noqa: E731
    for k, one in enumerate(models):
        if not isinstance(one, SparseModel):
            raise TypeError(
                f"models must be a sequence of SparseModel, got {type(one).__name__} at {k}"
            )
        same = {
            "columns": (one.n_features_in, one.feature_names_in_)
            == (model.n_features_in, model.feature_names_in_),
            "classes": labels(one) == labels(model),
            "outputs": one.coef.shape[:-1] == model.coef.shape[:-1],
            "link and loss": (one.link, one.loss) == (model.link, model.loss),
        }
        for what, is_same in same.items():
            if not is_same:
                raise ValueError(f"models must have the {what} of model, got others at {k}")
    return models


def _ordered_columns(model, X):
    """Return the categories whose levels have an order of their own.

    Their levels are numbers, are ordered in the frame X, or are not sorted.
    """
    levels, names, frame = column_levels(model), model.feature_names_in_, {}
    if is_frame(X):
        columns = Columns(X)
        frame = {columns.names[k] if names else k: columns[k] for k in range(len(columns))}
    return {
        j
        for j, of_column in enumerate(levels)
        if of_column
        and (
            not isinstance(of_column[0], str)
            or list(of_column) != sorted(of_column)
            or (frame and is_ordered(frame[names[j] if names else j]))
        )
    }


class _Panels:
    """The panels of a picture of effects, and all that is drawn in them.

    others : the effects of other models in the same rows, which bands are made of
    clocks : {input: its `Clock`} for columns of times
    """

    def __init__(self, parts, others, names, clocks):
        self.parts, self.names, self.levels, self.clocks = parts, names, parts.levels, clocks
        inputs = [j for j in parts.grids if (j,) in parts.values]
        self.bars = {j: parts.bars(j) for j in inputs if self.levels[j] is not None}
        self.curves = {j: self._heights(j, parts.values[(j,)]) for j in inputs}
        every = {
            j: [self._heights(j, parts.curve_of(other, j)) for other in others] for j in inputs
        }
        self.bands = {
            j: (np.min(of_models, axis=0), np.max(of_models, axis=0))
            for j, of_models in every.items()
            if of_models
        }

    def _heights(self, j, curve):
        """Return the heights of the bars of a function of one input, or of its curve."""
        return curve if self.levels[j] is None else self.parts.at_bars(j, self.bars[j], curve)

    def longest(self, part):
        """Return the length of the longest label that stands upright below a panel, or 0."""
        ticks = self._ticks(part[0], len(part) == 1)
        return max(map(len, ticks)) if _is_long(ticks) else 0

    def _ticks(self, j, all_bars):
        """Return the names on the axis of a category: of all its bars, or of its levels alone."""
        bars = self.bars.get(j, [])
        return [_short(bar.label) for bar in bars][: None if all_bars else len(self.parts.shown[j])]

    def draw(self, fig, axes, drawn, effect):
        """Draw parts into axes, curves on one scale and surfaces on one scale of colours."""
        curves = [part[0] for part in drawn if len(part) == 1]
        lines = [values for j in curves for values in (self.curves[j], *self.bands.get(j, ()))]
        low = min(min((v.min() for v in lines), default=0.0), 0.0)
        high = max(max((v.max() for v in lines), default=0.0), 0.0)
        span = (high - low) or 1.0
        limits = low - (0.05 + BELOW) * span, high + 0.05 * span
        largest = max((self._largest(part) for part in drawn if len(part) == 2), default=1.0) or 1.0
        order = np.random.default_rng(0).permutation(self.parts.rows.shape[0])
        points = np.sort(order[:MOST_POINTS])
        mesh = None
        for ax, part in zip(axes, drawn, strict=True):
            if len(part) == 2:
                mesh = self._surface(ax, part, largest, points)
                continue
            ax.set_ylim(limits)
            (self._curve if self.levels[part[0]] is None else self._bars)(ax, part[0])
            ax.axhline(0, color="0.5", linewidth=0.8, zorder=1)
            if ax.get_subplotspec().is_first_col():
                ax.set_ylabel(effect if len(effect) < 30 else fill(effect, 30))
            else:
                ax.tick_params(labelleft=False)
        if mesh is not None:
            label = f"{effect}, of two inputs"
            fig.colorbar(
                mesh, ax=list(axes), shrink=0.6, aspect=30, pad=0.01, extend="both", label=label
            )

    def _largest(self, part):
        """Return the largest size of a surface where there are enough rows."""
        return np.abs(self.parts.values[part][self.parts.density(part) >= SPARSE]).max(initial=0.0)

    def _bars(self, ax, j):
        """Draw the bars of a category, from zero, with bands and the share of the rows of each."""
        at, height, parts = np.arange(len(self.bars[j])), self.curves[j], self.parts
        share = np.array([parts.shares[j][bar.points].sum() for bar in self.bars[j]])
        for bar, few in zip(
            ax.bar(at, height, 0.7, color=EFFECT, zorder=2), share * len(at), strict=True
        ):
            bar.set_alpha(0.25 + 0.75 * min(few / DENSE, 1.0))
        if j in self.bands:
            ax.vlines(at, *self.bands[j], color="0.15", linewidth=1.5, zorder=3)
        self._steps(ax, at, share, 0.9)
        ax.set_xlim(-0.6, len(at) - 0.4)
        _name_levels(ax.xaxis, _short(self.names[j]), self._ticks(j, True))

    def _curve(self, ax, j):
        """Draw the curve of numbers, dotted where rows are few, and a point for missing cells."""
        parts, shown = self.parts, self.parts.shown[j]
        x, y = parts.grids[j][shown], self.curves[j]
        length = np.ptp(x) or 1.0
        ax.plot(x, y[shown], ":", color=EFFECT, linewidth=1.2)
        dense = np.where(parts.density((j,)) >= SPARSE, y[shown], np.nan)
        ax.plot(x, dense, color=EFFECT, linewidth=1.8)
        if j in self.bands:
            ax.fill_between(
                x, *(edge[shown] for edge in self.bands[j]), color=EFFECT, alpha=0.25, linewidth=0
            )
        values, edges = column_of(parts.rows, j), np.linspace(x[0], x[0] + length, N_STEPS + 1)
        at, count = (edges[:-1] + edges[1:]) / 2, np.histogram(values[~np.isnan(values)], edges)[0]
        if len(y) > len(shown):
            at = np.append(at, x[0] + MISSING_AT * length)
            count = np.append(count, np.isnan(values).sum())
        self._steps(ax, at, count, edges[1] - edges[0])
        ax.set_xlim(x[0], x[0] + length)
        _name_numbers(ax.xaxis, self.names[j], self.clocks.get(j))
        if len(y) > len(shown):
            self._missing(ax, j, x[0] + MISSING_AT * length, length)

    def _missing(self, ax, j, at, length):
        """Draw a point for missing cells, to the right of the curve."""
        value, (low, high) = self.curves[j][-1], ax.get_ylim()
        ax.axvline(at - (MISSING_AT - 1) * length, color="0.85", linewidth=0.8, zorder=0)
        ax.plot([at], [value], "D", color=EFFECT, markersize=5)
        if j in self.bands:
            ax.vlines(at, *(edge[-1] for edge in self.bands[j]), color="0.15", linewidth=1.5)
        is_high = value > low + 0.6 * (high - low)
        y, side = (BELOW, "bottom") if is_high else (0.97, "top")
        how = {"fontsize": "x-small", "transform": ax.get_xaxis_transform()}
        ax.text(at, y, "missing", rotation=90, ha="center", va=side, **how)
        ax.set_xlim(right=at + (MISSING_AT - 1) * length)

    def _steps(self, ax, at, count, width):
        """Draw the numbers of rows as steps along the lower edge."""
        height = STEPS_HIGH * count / (max(count, default=0) or 1)
        ax.bar(at, height, width, color="0.8", zorder=0, transform=ax.get_xaxis_transform())

    def _surface(self, ax, part, largest, points):
        """Draw a surface, which vanishes where there are few rows, and the rows `points`."""
        parts, at, places = self.parts, [], []
        for j in part:
            x, grid = column_of(parts.rows, j)[points], parts.grids[j][parts.shown[j]]
            is_category = self.levels[j] is not None
            at.append(np.arange(len(grid)) if is_category else grid)
            inside = (x >= grid[0]) & (x <= grid[-1])
            places.append(_places(x, grid) if is_category else np.where(inside, x, np.nan))
        ax.set_facecolor("0.85")
        how = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, "rasterized": True}
        how |= {"shading": "nearest", "linewidth": 0}
        alpha = np.minimum(parts.density(part).T / DENSE, 1.0)
        mesh = ax.pcolormesh(*at, parts.values[part].T, alpha=alpha, **how)
        ax.plot(*places, ".", color="0.2", alpha=0.3, markersize=1.5)
        for axis, j, grid in zip("xy", part, at, strict=True):
            is_category = self.levels[j] is not None
            pad = 0.5 if is_category else 0.0
            high = grid[-1] if grid[-1] > grid[0] else grid[0] + (pad == 0)
            getattr(ax, f"set_{axis}lim")(grid[0] - pad, high + pad)
            side = getattr(ax, f"{axis}axis")
            if is_category:
                name, n_levels = _short(self.names[j]), len(self.levels[j])
                if len(grid) < n_levels:
                    name += f", {len(grid)} of {n_levels} levels"
                _name_levels(side, fill(name, LONGEST + 6), self._ticks(j, False))
            else:
                _name_numbers(side, self.names[j], self.clocks.get(j))
        return mesh


def _places(codes, grid):
    """Return the positions of codes in a grid, NaN, which is not drawn, for one beyond it."""
    place = {code: at for at, code in enumerate(grid.tolist())}
    return np.array([place.get(code, np.nan) for code in codes.tolist()])


def _name_levels(axis, name, ticks):
    """Label the axis of a category, and name its levels."""
    axis.set_label_text(name)
    axis.set_ticks(np.arange(len(ticks)), ticks)
    if axis.axis_name == "y":
        axis.set_tick_params(labelsize="small")
    elif _is_long(ticks):
        axis.set_tick_params(labelrotation=90, labelsize="small")


def _name_numbers(axis, name, clock):
    """Label the axis of a column of numbers, or of times, which are written as times."""
    axis.set_label_text(_short(name))
    if clock is not None:
        span = abs(float(np.subtract(*axis.get_view_interval())))
        axis.set_major_formatter(lambda days, _: clock.tick(days, span))
    if axis.axis_name == "x":
        _thin(axis)


def _thin(axis):
    """Thin out the numbers on an axis until they fit side by side, or turn them upright."""
    for n in (5, 4, 3, 2):
        axis.get_major_locator().set_params(nbins=n)
        low, high = axis.get_view_interval()
        at = axis.get_majorticklocs()
        ticks = axis.get_major_formatter().format_ticks(at)
        if len(at) < 2 or not _is_long(ticks, (high - low) / (at[1] - at[0])):
            return
    axis.set_tick_params(labelrotation=90)


def _is_long(ticks, steps=None):
    """Return whether labels are too wide for an axis, each as wide as the longest and a gap.

    steps : the length of the axis, in distances between labels; None: the number of labels
    """
    steps = len(ticks) if steps is None else steps
    return steps * (max(map(len, ticks), default=0) + 1) > SIDE_BY_SIDE
