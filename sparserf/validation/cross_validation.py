"""Cross-validation over grids of parameters, with a path of models for one fit where there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._base import html as html
from .._base.checks import check_choice, check_integer, check_rng
from .._base.door import door
from .._base.progress import parts, reporting
from ..algorithms import REGISTRY, Path
from ..model import SparseModel
from .folds import Data, seeds
from .measures import MEASURES, Scores

if TYPE_CHECKING:
    from .._base.types import MatrixLike, Measure, Seed, Values

# Settings that a notebook lists.
MOST_LISTED = 30
# The path of each function of one fit.
PATHS: dict[Callable[..., Any], Path] = {algorithm.fit: algorithm.path for algorithm in REGISTRY.values()}


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What `cross_validate` found.

    Attributes
    ----------
    table : dict of lists
        A line for each setting of the grid: the parameters, then "mean", the mean loss of held-out rows, "standard_error", of
        that mean from fold to fold, and "n_terms", in the mean over the folds. A data frame, if given to one.
    losses : ndarray of shape (n_settings, cv)
        The mean loss of each fold.
    best : dict
        The parameters that the rule takes.
    best_index : int
        Their line in the table.
    model : SparseModel
        Of these parameters and all rows.
    fold : ndarray of shape (n_samples,)
        Which fold each row was held out with; -1 where its weight is zero.
    measure : str
        What the losses are.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (200, 3))
    >>> found = srf.cross_validate(srf.drp, X, X[:, 0] - X[:, 1], {"alpha": [1.0, 0.01]}, cv=4, rng=0)
    >>> found.best, found.losses.shape, sorted(found.table)
    ({'alpha': 0.01}, (2, 4), ['alpha', 'mean', 'n_terms', 'standard_error'])
    """

    table: dict[str, list[Any]]
    losses: np.ndarray
    best: dict[str, Any]
    best_index: int
    model: SparseModel
    fold: np.ndarray
    measure: str

    def __repr__(self) -> str:
        lines = [[str(name) for name in self.table]]
        lines += [[_short(cell) for cell in line] for line in zip(*self.table.values(), strict=True)]
        sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.rjust(size) for cell, size in zip(line, sizes, strict=True)) for line in lines]
        text[self.best_index + 1] += "  <- best"
        return "\n".join([f"CrossValidation of {self.losses.shape[1]} folds, {self.measure}", *text])

    def _repr_html_(self) -> str:
        means = np.array(self.table["mean"])
        known = np.isfinite(means)
        largest = means[known].max(initial=0.0)
        has_bars = largest > 0 and means[known].min() >= 0
        shown = np.sort(np.argsort(np.where(known, means, np.inf), kind="stable")[:MOST_LISTED]).tolist()
        shown = sorted({*shown, self.best_index})
        names = [name for name in self.table if name not in ("mean", "standard_error", "n_terms")]
        rows = [[*(html.text(_short(self.table[name][k])) for name in names),
                 html.bar(means[k] / largest) if has_bars and known[k] else "",
                 f"{means[k]:.4g}", f"&plusmn; {self.table['standard_error'][k]:.2g}", _short(self.table["n_terms"][k])]
                for k in shown]  # fmt: skip
        head = [*map(html.text, names), "", "mean loss", "standard error", "terms"]
        more = len(means) - len(shown)
        return html.page(
            html.title("CrossValidation", f"of {self.losses.shape[1]} folds, {self.measure}; the best is bold"),
            html.table(head, rows, n_left=len(names) + 1, best=shown.index(self.best_index)),
            html.note(f"and {more} more, of larger loss") if more else "",
        )


def _short(cell):
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@door
def cross_validate(
    function: Callable[..., SparseModel], X: MatrixLike, y: ArrayLike,
    grid: Mapping[str, Values] | Sequence[Mapping[str, Values]], *, cv: int = 5, rule: Literal["min", "1se"] = "min",
    measure: Literal["auto"] | Measure | Callable[..., ArrayLike] = "auto", groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None, rng: Seed = None, verbose: bool | None = None,
) -> CrossValidation:  # fmt: skip
    """The parameters of a grid that predict held-out rows best, and the model of them and all rows.

    Parameters
    ----------
    function : function
        Fits, (X, y, rng=..., ...) -> model: `sparse_rf`, `harfe`, `mfga`, `drp`, a `functools.partial` of one, or any other.
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        In memory.
    y : array of shape (n_samples,)
        The target, or labels. Where it has few values, folds have the same share of each.
    grid : dict of sequences, or a sequence of such dicts
        Parameters and their values; all combinations of a dict are tried.
    cv : int, default 5
        Folds, at least 2; the same for all parameters.
    rule : {"min", "1se"}, default "min"
        "min": the least mean loss. "1se": of all within its standard error of that, the one of fewest terms, and of these of
        the largest alpha.
    measure : str or function, default "auto"
        "squared_error", "absolute_error", "error" (of labels), "log_loss" (of `predict_proba`), or a function (model, X, y) ->
        an array with the loss of each row. "auto": of the squared loss "squared_error", of the logistic loss "log_loss", of the
        hinge losses "error", of another loss itself.
    groups : array of shape (n_samples,) or None, default None
        Rows of a group are in one fold.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative; of fits and of the means of losses.
    rng : None, int or numpy.random.Generator, default None
        Seed of folds and fits. All parameters are fitted to a fold with the same seed, unless the function has its own.
    verbose : bool or None, default None
        Show how far it is, as `sparse_rf` does.

    Returns
    -------
    CrossValidation
        With `table`, `best` and `model`.

    Raises
    ------
    ValueError, TypeError
        An argument out of its range or of another kind; an empty grid, or models of several losses with measure="auto"; what
        the function raises.

    Warns
    -----
    ConvergenceWarning
        As the function.

    See Also
    --------
    sparse_rf : With alpha=None it chooses alpha itself, on rows of its own, at the price of a few fits.

    Notes
    -----
    Where the grid has the parameter of a path ("alpha" of `sparse_rf` and `drp`, "n_nonzero_coefs" of `harfe` and `mfga`), one
    call of `sparse_rf_path` and so on, for each fold and combination of the others, gives the models of all its values; and
    the model of all rows goes down that path to the best value, so that it is made as those that were compared. Nothing is
    learned from the rows of a fold before these are predicted: units of columns, levels and draws are of the other folds.

    Time: cv fits for each combination, or path, and one more. Memory: a copy of the rows that are fitted, and the models.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone, Classification and Regression Trees, 1984, Section 3.4.3, for the
    rule of one standard error.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    >>> fit = partial(srf.sparse_rf, features="gaussian", n_components=500)
    >>> found = srf.cross_validate(fit, X, y, {"alpha": [0.1, 0.01, 0.001], "gamma": [0.1, 1.0]}, rng=0)
    >>> found.best["gamma"], len(found.table["mean"]), bool(min(found.table["mean"]) < 0.1 * y.var())
    (1.0, 6, True)
    """
    data, rng, cv = Data(X, y, sample_weight, groups), check_rng(rng), check_integer("cv", cv, 2)
    check_choice("rule", rule, ("min", "1se"))
    if not callable(measure):
        check_choice("measure", measure, ("auto", *MEASURES))
    fold, (last_seed, *fold_seeds) = data.folds(cv, rng), seeds(rng, cv + 1)
    runs = [run for each in _grids(grid) for run in runs_of(function, each)]
    scores = Scores(measure)
    with reporting("cross_validate", None, verbose) as report:
        losses, terms = (np.concatenate(parts) for parts in zip(*(
            scores.of_run(run, data, fold, fold_seeds) for run in parts(runs, [cv * run.work for run in runs], rest=1)
        ), strict=True))  # fmt: skip
        settings = [setting for run in runs for setting in run.settings]
        weights = np.bincount(fold[data.there], None if data.weight is None else data.weight[data.there], cv)
        means, errors = means_of(losses, weights / weights.sum())
        best = chosen(rule, settings, means, errors, terms)
        run, k = [(run, k) for run in runs for k in range(len(run.settings))][best]
        model = run.up_to(k).models(data, data.there, last_seed)[-1]
        if report is not None:
            report.finish(model.info)
    names = dict.fromkeys(name for setting in settings for name in setting)
    table = {name: [setting.get(name) for setting in settings] for name in names}
    table |= {"mean": means.tolist(), "standard_error": errors.tolist(), "n_terms": terms.tolist()}
    return CrossValidation(table, losses, settings[best], best, model, fold, scores.name)


def _grids(grid):
    grids = [grid] if isinstance(grid, Mapping) else list(grid)
    for each in grids:
        for name, values in each.items():
            if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not len(values):
                raise ValueError(f"grid must hold a sequence of values for each parameter, got {values!r} for {name!r}")
    if not grids:
        raise ValueError("grid must have a dict of parameters, got none")
    return grids


@dataclass(frozen=True)
class Run:
    """One fit, or one path of fits: function(X, y, **fixed), and of a path the values of its parameter, in its order."""

    function: Callable[..., Any]
    fixed: dict[str, Any]
    values: tuple[Any, ...] = ()
    path: Path | None = None

    @property
    def settings(self) -> list[dict[str, Any]]:
        return [{**self.fixed, self.path.parameter: value} for value in self.values] if self.path else [self.fixed]

    @property
    def work(self) -> int:
        return max(1, len(self.values))

    def up_to(self, k: int) -> Run:
        return Run(self.function, self.fixed, self.values[: k + 1], self.path)

    def models(self, data: Data, some: np.ndarray, seed: int) -> list[SparseModel]:
        """Of each setting."""
        if self.path is None:
            return [data.fit(self.function, some, seed, **self.fixed)]
        path, name = self.path, self.path.argument
        function = _on(self.function, path.function, path.parameter)
        if path.step is None:
            return data.fit(function, some, seed, **self.fixed, **{name: list(self.values)})
        models = data.fit(function, some, seed, **self.fixed, **{name: self.values[-1]})
        step = self.fixed.get(path.step, _keywords(self.function).get(path.step, 1))
        return [models[min(value // step, len(models)) - 1] for value in self.values]


def _on(function, path, parameter):
    """The path's function with what the function's partial fixes, but for the parameter that the grid varies."""
    fixed = {name: value for name, value in _keywords(function).items() if name != parameter}
    return partial(path, *getattr(function, "args", ()), **fixed)


def _keywords(function):
    return function.keywords if isinstance(function, partial) else {}


def runs_of(function: Callable[..., Any], grid: Mapping[str, Values]) -> list[Run]:
    """The runs of all combinations of a grid, a path's values in one of them."""
    path = PATHS.get(function.func if isinstance(function, partial) else function)
    if path is not None and not _covers(path, function, grid):
        path = None
    varied = [name for name in grid if path is None or name != path.parameter]
    values = () if path is None else tuple(sorted(set(grid[path.parameter]), reverse=path.from_largest))
    return [Run(function, dict(zip(varied, some, strict=True)), values, path) for some in product(*(grid[n] for n in varied))]


def _covers(path, function, grid):
    """Whether a path gives the models of all values: it takes all that is fixed, and n_select divides the sizes of `mfga`."""
    names = {*grid, *_keywords(function)} - {path.parameter}
    if path.parameter not in grid or not names <= set(inspect.signature(path.function).parameters):
        return False
    values = grid[path.parameter]
    if any(isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)) for value in values):
        return False
    if path.step is None:
        return True
    steps = grid.get(path.step, [_keywords(function).get(path.step, 1)])
    return all(isinstance(s, int) and s > 0 and v % s == 0 for s in steps for v in values)


def means_of(losses: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(means over folds of these shares, their standard errors)."""
    means = losses @ share
    return means, np.sqrt((losses - means[:, None]) ** 2 @ share / (len(share) - 1))


def chosen(
    rule: Literal["min", "1se"], settings: Sequence[Mapping[str, Any]], means: np.ndarray, errors: np.ndarray, terms: np.ndarray
) -> int:
    """The index of the best setting. What is not finite is never."""
    means = np.where(np.isfinite(means), means, np.inf)
    best = int(np.argmin(means))
    if rule == "min" or not np.isfinite(means[best]):
        return best
    near = np.flatnonzero(means <= means[best] + errors[best])
    alphas = [setting.get("alpha") or 0.0 for setting in settings]
    return int(min(near, key=lambda k: (terms[k], -alphas[k], means[k])))
