"""Cross-validation over grids of parameters.

Where a function has a path (`sparse_rf_path` and so on), one run of it fits the models of all
values of its parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._base import html
from .._base.calls import checks_call, losses_from, model_from
from .._base.checks import check_choice, check_rng
from .._base.deadline import NEVER, check_time_limit, limit_of_next, time_left
from .._base.progress import parts, reporting, tell_model
from .._base.warnings import TimeLimitWarning, warn
from ..algorithms.registry import REGISTRY, Path
from ..columns.targets import places_of
from ..columns.times import read_times
from ..losses import PROBABILISTIC, loss_from_parameters
from ..model import SparseModel
from .folds import Dataset, HeldRows, draw_seeds
from .survival import brier_of_rows, discordance_of_rows

if TYPE_CHECKING:
    from .._base.splits import Split, Splits
    from .._base.types import MatrixLike, Seed

Values: TypeAlias = Sequence[Any] | np.ndarray
Measure: TypeAlias = Literal[
    "squared_error", "absolute_error", "error", "log_loss", "loss", "concordance", "brier"
]

# The most lines of the table that a notebook shows.
MOST_LINES_SHOWN = 30
# The least probability of which the log loss takes the logarithm.
LEAST_PROBABILITY = 1e-15
# The time of the last fit, to all rows, in units of the time of each fit before it.
OF_LAST = 2
# The path of each function that fits one model.
PATHS: dict[Callable[..., Any], Path] = {
    algorithm.fit: algorithm.path for algorithm in REGISTRY.values()
}


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The result of `cross_validate`: the best parameters, their model, and all settings.

    Attributes
    ----------
    best : dict
        The parameters that the rule chose.
    model : SparseModel
        The model of these parameters, fitted to all rows.
    table : dict of lists
        One line for each setting of the grid, which `pandas.DataFrame(table)` shows. The columns
        are the parameters, then "mean", the mean loss of held-out rows; "standard_error", the
        standard error of that mean, from the spread between folds; and "n_terms", the mean number
        of terms of the models of the folds.
    best_index : int
        The line of the best parameters in the table.
    losses : ndarray of shape (n_settings, n_folds)
        The mean loss of the held-out rows of each fold.
    fold : ndarray of shape (n_samples,)
        The first fold that each row was held out with; -1 where its weight is zero, or it was never
        held out.
    measure : str
        The name of the loss.
    models : tuple of SparseModel
        The model of the best parameters that was fitted without each fold, in the order of the
        folds; none for folds that there was no time for. `plot.effects(model, X,
        models=found.models)` draws by how much their effects differ.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (200, 3))
    >>> found = srf.cross_validate(
    ...     srf.drp, X, X[:, 0] - X[:, 1], {"alpha": [1.0, 0.01]}, cv=4, rng=0
    ... )
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
    models: tuple[SparseModel, ...] = ()

    def __repr__(self) -> str:
        lines = [[str(name) for name in self.table]]
        lines += [
            [_format_cell(cell) for cell in line] for line in zip(*self.table.values(), strict=True)
        ]
        sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(cell.rjust(size) for cell, size in zip(line, sizes, strict=True))
            for line in lines
        ]
        text[self.best_index + 1] += "  <- best"
        head = f"CrossValidation of {self.losses.shape[1]} folds, {self.measure}"
        return "\n".join([head, *text])

    def _repr_html_(self) -> str:
        means = np.array(self.table["mean"])
        known = np.isfinite(means)
        largest = means[known].max(initial=0.0)
        has_bars = largest > 0 and means[known].min() >= 0
        order = np.argsort(np.where(known, means, np.inf), kind="stable").tolist()
        shown = sorted({*order[:MOST_LINES_SHOWN], self.best_index})
        names = [name for name in self.table if name not in ("mean", "standard_error", "n_terms")]
        rows = [
            [
                *(html.text(_format_cell(self.table[name][k])) for name in names),
                html.bar(means[k] / largest) if has_bars and known[k] else "",
                f"{means[k]:.4g}",
                f"&plusmn; {self.table['standard_error'][k]:.2g}",
                _format_cell(self.table["n_terms"][k]),
            ]
            for k in shown
        ]
        head = [*map(html.text, names), "", "mean loss", "standard error", "terms"]
        more = len(means) - len(shown)
        about = f"of {self.losses.shape[1]} folds, {self.measure}; the best is bold"
        return html.page(
            html.title("CrossValidation", about),
            html.table(head, rows, n_left=len(names) + 1, best=shown.index(self.best_index)),
            html.note(f"and {more} more, of larger loss") if more else "",
        )


def _format_cell(cell):
    """Return the text of a cell of the table, floats with four digits."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


@checks_call
def cross_validate(
    function: Callable[..., SparseModel],
    X: MatrixLike,
    y: ArrayLike,
    grid: Mapping[str, Values] | Sequence[Mapping[str, Values]],
    *,
    cv: int | Splits = 5,
    rule: Literal["min", "1se"] = "min",
    measure: Literal["auto"] | Measure | Callable[..., ArrayLike] = "auto",
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    time_limit: float | None = None,
    rng: Seed = None,
    verbose: bool | None = None,
) -> CrossValidation:
    """Choose parameters from a grid by cross-validation, and fit a model with them to all rows.

    Parameters
    ----------
    function : function
        A function that fits, (X, y, rng=..., ...) -> model: `sparse_rf`, `harfe`, `mfga`, `drp`, a
        `functools.partial` of one of them, or any other.
    X : data frame, array or CSR matrix of shape (n_samples, n_features)
        Rows in memory.
    y : array of shape (n_samples,)
        The target, or labels. If it has few values, all folds have the same share of each. Times
        until events are a structured array or a data frame (see `losses.Cox`), and all folds have
        the same share of events.
    grid : dict of sequences, or a sequence of such dicts
        Parameters and the values to try. All combinations of the values of a dict are tried.
    cv : int, pairs or splitter, default 5
        Number of folds, at least 2, in which copies of a row stay together. Or pairs (rows to fit,
        rows to hold out) of masks or indices: a list, a generator, or a splitter of scikit-learn,
        such as `TimeSeriesSplit(5)`, whose `split(X, y, groups)` is called once; or a mask, or the
        indices, of the rows to hold out, as a single fold. Folds are the same for all parameters.
    rule : {"min", "1se"}, default "min"
        "min" takes the setting of the least mean loss. "1se" takes, of all settings within one
        standard error of that, the one of fewest terms, and of equally many the one of the largest
        alpha.
    measure : str or function, default "auto"
        The loss of a held-out row: "squared_error", "absolute_error", "error" (a wrong label counts
        1), "log_loss" (of `predict_proba`), "loss" (the one that the model was fitted with), or a
        function (model, X, y) that returns an array with the loss of each row. For times until
        events also "concordance", 1 - that of the rows of a fold, and "brier", the
        `integrated_brier_score` over the middle 80 % of the times of events. "auto" is
        "squared_error" for the squared loss, "log_loss" for classifiers with probabilities, "error"
        for the hinge losses, and "loss" for other losses.
    groups : array of shape (n_samples,) or None, default None
        The group of each row: numbers, strings or other labels. Rows of a group stay in one fold;
        pairs must not divide a group. A function that has an argument `groups`, such as
        `sparse_rf`, is given those of its rows.
    sample_weight : array of shape (n_samples,) or None, default None
        Nonnegative weights, for the fits and for the mean losses.
    offset : array of shape (n_samples,) or None, default None
        What is added to f in the loss of each row, in the fits and where rows are held out. If it
        is given, the function and a measure of your own get the offsets of their rows as `offset`.
    time_limit : float or None, default None
        Seconds that the whole call may take, > 0, for a function that has a `time_limit`, such as
        `sparse_rf`. Each fit has a share of the time that is left, and the last one, to all rows,
        twice as much. Settings that there is no time for have the loss NaN, and are counted in
        `model.info.cut`. Which these are depends on the machine. Values of "alpha" are then fitted
        one by one, and not as a path.
    rng : None, int or numpy.random.Generator, default None
        Seed of the folds and fits. All parameters are fitted to a fold with the same seed, unless
        the function has its own.
    verbose : bool or None, default None
        Whether to show progress, as in `sparse_rf`.

    Returns
    -------
    CrossValidation
        Its `best` are the parameters, its `model` the model, its `table` the losses of all
        settings.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or of another type, the grid is empty, a pair has a row
        in both parts or no row in one of them, or models have different losses with measure="auto";
        and whatever the function raises.

    Warns
    -----
    CopiedRowsWarning
        More than a tenth of the rows are copies of others, with which they stay in one part.
    ConvergenceWarning, TimeLimitWarning
        As the function. The second also where the `time_limit` was over before one setting was
        tried: `best` is the first.

    See Also
    --------
    sparse_rf : With alpha=None it chooses alpha itself, on rows that it holds out, in the time of a
        few fits.

    Notes
    -----
    Where the grid has the parameter of a path ("alpha" of `sparse_rf` and `drp`, "n_nonzero_coefs"
    of `harfe` and `mfga`), one call of `sparse_rf_path` and so on, for each fold and each
    combination of the other parameters, fits the models of all its values; of `harfe` and `mfga`
    where alpha is given, which they else choose for each model. The model of all rows
    comes from the same path, followed down to the best value, so that it is made as those that were
    compared. Nothing is learned from the rows of a fold before they are predicted: units of
    columns, levels of categories and random features come from the other folds.

    Time: cv fits for each combination, or path, and one more. Memory: a copy of the rows that are
    fitted, and all models of all folds.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone, Classification and Regression Trees,
    1984, Section 3.4.3, for the rule of one standard error.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (400, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    >>> fit = partial(srf.sparse_rf, features="gaussian", n_components=500)
    >>> found = srf.cross_validate(
    ...     fit, X, y, {"alpha": [0.1, 0.01, 0.001], "gamma": [0.1, 1.0]}, rng=0
    ... )
    >>> (
    ...     found.best["gamma"],
    ...     len(found.table["mean"]),
    ...     bool(min(found.table["mean"]) < 0.1 * y.var()),
    ... )
    (1.0, 6, True)
    """
    deadline = check_time_limit(time_limit)
    data, rng = Dataset.from_arguments(X, y, sample_weight, offset, groups), check_rng(rng)
    check_choice("rule", rule, ("min", "1se"))
    if not callable(measure):
        check_choice("measure", measure, ("auto", *MEASURES))
    splits = data.splits(cv, rng, groups)
    if rule == "1se" and len(splits) == 1:
        raise ValueError(
            "rule must be 'min' where cv is a single fold, which has no standard error, got '1se'"
        )
    last_seed, *fold_seeds = draw_seeds(rng, len(splits) + 1)
    grids = _check_grids(grid)
    if time_limit is not None:
        check_takes_time_limit(function)
        if any("time_limit" in each for each in grids):
            raise ValueError("time_limit must be None where the grid has a time_limit of each fit")
    runs = [
        run
        for each in grids
        for run in runs_of_grid(function, each, follows_paths=time_limit is None)
    ]
    shares = TimeShares(deadline, len(runs) * len(splits))
    loss_of_rows = RowLoss(measure)
    with reporting("cross_validate", None, verbose, time_limit) as report:
        work = [len(splits) * len(run.settings) for run in runs]
        of_runs = [
            _on_folds(run, data, splits, fold_seeds, shares, loss_of_rows)
            for run in parts(runs, work, rest=1)
        ]
        losses, terms, models = (
            list(chain.from_iterable(each)) for each in zip(*of_runs, strict=True)
        )
        losses, terms = np.array(losses), np.array(terms)
        settings = [setting for run in runs for setting in run.settings]
        fold_weights = np.array([np.bincount(held, data.weight)[1] for _, held in splits])
        n_left_out = int(np.count_nonzero(np.isnan(terms)))
        means, errors = mean_and_standard_error(losses, fold_weights / fold_weights.sum())
        best = choose_setting(rule, settings, means, errors, terms)
        run, k = [(run, k) for run in runs for k in range(len(run.settings))][best]
        model = run.up_to(k).fit(data, data.used, last_seed, shares.last())[-1]
        if n_left_out:
            cut = model.info.cut | {"settings": n_left_out}
            model = replace(model, info=replace(model.info, cut=cut))
        if n_left_out == len(losses):
            warn(
                "time_limit: not one setting was tried, and the first is taken; raise time_limit",
                TimeLimitWarning,
            )
        if report is not None:
            report.finish(model.info)
    names = dict.fromkeys(name for setting in settings for name in setting)
    table = {name: [setting.get(name) for setting in settings] for name in names}
    table |= {"mean": means.tolist(), "standard_error": errors.tolist(), "n_terms": terms.tolist()}
    return CrossValidation(
        table,
        losses,
        settings[best],
        best,
        model,
        _first_folds(splits),
        loss_of_rows.name,
        models[best],
    )


def _on_folds(run, data, splits, seeds, shares, loss_of_rows):
    """Fit a run without each of the folds; return, for each of its settings, the mean losses of the
    folds, the mean number of terms, and the models; NaN where there was no time."""
    losses, terms = np.full((2, len(run.settings), len(splits)), np.nan)
    of_folds = []
    for k, ((fitted, held), seed) in parts(list(enumerate(zip(splits, seeds, strict=True)))):
        if shares.are_spent:
            continue
        models, rows = run.fit(data, fitted, seed, shares.next()), data.held_rows(fitted, held)
        losses[:, k] = [np.average(loss_of_rows(one, rows), weights=rows.weight) for one in models]
        terms[:, k] = [len(model.features) for model in models]
        of_folds.append(models)
        tell_model(models[-1].info)
    models = [tuple(each[k] for each in of_folds) for k in range(len(run.settings))]
    return losses, terms.mean(axis=1), models


def _first_folds(splits: Sequence[Split]) -> np.ndarray:
    """Return the first fold that each row is held out with, or -1."""
    is_held = np.array([held for _, held in splits])
    return np.where(is_held.any(axis=0), is_held.argmax(axis=0), -1)


def _check_grids(grid):
    """Check the grid and return it as a list of dicts."""
    grids = [grid] if isinstance(grid, Mapping) else list(grid)
    for each in grids:
        for name, values in each.items():
            is_sized = hasattr(values, "__len__") and not isinstance(values, (str, bytes))
            if not is_sized or not len(values):
                raise ValueError(
                    f"grid must hold a sequence of values for each parameter, got {values!r} for "
                    f"{name!r}"
                )
    if not grids:
        raise ValueError("grid must have a dict of parameters, got none")
    return grids


def check_takes_time_limit(function: Callable[..., Any]) -> None:
    """Raise a ValueError if the function has no `time_limit`."""
    if "time_limit" not in inspect.signature(function).parameters:
        raise ValueError(f"time_limit must be None for a function that has none, got {function!r}")


class TimeShares:
    """The time limits of n fits, with equal shares of the time left, and of a last one.

    The last one has OF_LAST shares.
    """

    def __init__(self, deadline: float, n: int):
        self._deadline, self._n = deadline, n
        self._of_last = 0.0 if deadline == NEVER else OF_LAST / (n + OF_LAST) * time_left(deadline)

    @property
    def are_spent(self) -> bool:
        """Whether only the time of the last fit is left."""
        return self._deadline < NEVER and time_left(self._deadline) <= self._of_last

    def next(self) -> dict[str, float]:
        """Return the arguments that limit the next fit."""
        self._n -= 1
        return limit_of_next(self._deadline, self._n + 1 + OF_LAST)

    def last(self) -> dict[str, float]:
        """Return the arguments that limit the last fit."""
        return limit_of_next(self._deadline, 1)


def mean_and_standard_error(losses: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each setting's mean loss over folds of these shares, and its error, NaN for one."""
    means = losses @ share
    if len(share) == 1:
        return means, np.full(len(means), np.nan)
    return means, np.sqrt((losses - means[:, None]) ** 2 @ share / (len(share) - 1))


def choose_setting(
    rule: Literal["min", "1se"],
    settings: Sequence[Mapping[str, Any]],
    means: np.ndarray,
    errors: np.ndarray,
    terms: np.ndarray,
) -> int:
    """Return the index of the best setting by the rule, whose mean loss is finite if any is."""
    means = np.where(np.isfinite(means), means, np.inf)
    best = int(np.argmin(means))
    if rule == "min" or not np.isfinite(means[best]):
        return best
    near = np.flatnonzero(means <= means[best] + errors[best])
    alphas = [setting.get("alpha") or 0.0 for setting in settings]
    return int(min(near, key=lambda k: (terms[k], -alphas[k], means[k])))


# ------------------------------------------------------------
# fits of a grid


@dataclass(frozen=True)
class Run:
    """One fit, or one path of fits, to some rows.

    function : what fits, as the user gave it
    fixed : the parameters of the grid that are the same for the whole run
    values : the values of the parameter of the path, in its order; empty without a path
    path : the path that fits all values at once, or None
    """

    function: Callable[..., Any]
    fixed: dict[str, Any]
    values: tuple[Any, ...] = ()
    path: Path | None = None

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The parameters of each model."""
        if self.path is None:
            return [self.fixed]
        return [{**self.fixed, self.path.parameter: value} for value in self.values]

    def up_to(self, k: int) -> Run:
        """Return the run that ends with setting k."""
        return replace(self, values=self.values[: k + 1])

    def fit(
        self, data: Dataset, rows: np.ndarray, seed: int, limit: Mapping[str, float]
    ) -> list[SparseModel]:
        """Fit the model of each setting to these rows.

        limit : the arguments that limit the time of a fit, none or `time_limit`, where there is no
            path
        """
        path = self.path
        if path is None:
            model = data.fit(self.function, rows, seed, **self.fixed, **limit)
            return [model_from("function", model, SparseModel)]
        bound = _bound_arguments(self.function)
        others = {name: value for name, value in bound.items() if name != path.parameter}
        function = partial(path.function, *getattr(self.function, "args", ()), **others)
        if path.step is None:
            return data.fit(
                function, rows, seed, **self.fixed, **{path.argument: list(self.values)}
            )
        models = data.fit(function, rows, seed, **self.fixed, **{path.argument: self.values[-1]})
        step = self.fixed.get(path.step, bound.get(path.step, 1))
        return [models[min(value // step, len(models)) - 1] for value in self.values]


def _bound_arguments(function):
    """Return the keyword arguments that a `functools.partial` has bound, else none."""
    return function.keywords if isinstance(function, partial) else {}


def _unbound(function):
    """Return the function that a `functools.partial` calls, else the function."""
    return function.func if isinstance(function, partial) else function


def runs_of_grid(
    function: Callable[..., Any], grid: Mapping[str, Values], follows_paths: bool = True
) -> list[Run]:
    """Return the runs that fit all combinations of a grid, each with a whole path, if any.

    follows_paths : whether paths are followed, or each value has a run of its own
    """
    path = PATHS.get(_unbound(function)) if follows_paths else None
    values: tuple[Any, ...] = ()
    if path is not None and not _can_follow(path, function, grid):
        path = None
    if path is not None:
        values = tuple(sorted(set(grid[path.parameter]), reverse=path.from_largest))
    varied = [name for name in grid if path is None or name != path.parameter]
    return [
        Run(function, dict(zip(varied, combination, strict=True)), values, path)
        for combination in product(*(grid[n] for n in varied))
    ]


def _can_follow(path, function, grid):
    """Return whether one run of the path gives the models of all its values in the grid.

    It does if the path takes all other parameters, those that are not given are the same by
    default (a function may choose what its path does not), and the values are numbers and multiples
    of its step.
    """
    bound = _bound_arguments(function)
    names = {*grid, *bound} - {path.parameter}
    takes = inspect.signature(path.function).parameters
    if path.parameter not in grid or not names <= set(takes):
        return False
    single = inspect.signature(_unbound(function))
    if any(
        name in takes and takes[name].default != one.default
        for name, one in single.parameters.items()
        if name not in names and name not in (path.parameter, path.argument)
    ):
        return False
    values = grid[path.parameter]
    if any(isinstance(value, (bool, np.bool_)) for value in values):
        return False
    if not all(isinstance(value, (int, float, np.number)) for value in values):
        return False
    steps = [] if path.step is None else grid.get(path.step, [bound.get(path.step, 1)])
    if not all(isinstance(step, int) and step > 0 for step in steps):
        return False
    return all(value % step == 0 for step in steps for value in values)


# ------------------------------------------------------------
# loss of held-out rows


class RowLoss:
    """The loss of each held-out row, by the measure that the user asked for.

    name : the name of the measure; with "auto" it is that of the first model, and later models must
        have the same
    """

    name: str | None

    def __init__(self, measure: str | Callable[..., ArrayLike]):
        self._measure = measure
        self.name = None if measure == "auto" else getattr(measure, "__name__", str(measure))

    def __call__(self, model: SparseModel, rows: HeldRows) -> np.ndarray:
        """Return the loss of each row held out."""
        if callable(self._measure):
            losses = self._measure(model, rows.X, rows.y, **rows.offset)
            return losses_from("measure", losses, len(rows.y))
        name = default_measure(model) if self._measure == "auto" else self._measure
        self.name = self.name or name
        if name != self.name:
            raise ValueError(
                f"measure must be given where losses differ, got 'auto' for {self.name!r} and "
                f"{name!r}"
            )
        return MEASURES[name](model, rows)


def default_measure(model: SparseModel) -> Measure:
    """Return the measure that belongs to the loss of a model."""
    if model.classes is not None:
        return "log_loss" if model.loss in PROBABILISTIC else "error"
    return "squared_error" if model.loss == "squared" else "loss"


def log_loss(model: SparseModel, rows: HeldRows) -> np.ndarray:
    """Return minus the log probability of each row's label, finite for one the model never saw."""
    p, k = rows.ask(model.predict_proba), places_of(model.classes, rows.y)
    of_label = np.where(k >= 0, p[np.arange(len(k)), k], 0.0)
    return -np.log(np.maximum(of_label, LEAST_PROBABILITY))


def own_loss(model: SparseModel, rows: HeldRows) -> np.ndarray:
    """Return the loss with which the model was fitted, of each row, added up over the outputs that
    it has for one y."""
    if model.thresholds:
        return log_loss(model, rows)
    loss = loss_from_parameters(model.loss, model.loss_parameters)
    f = rows.ask(model.decision_function)
    y = loss.codes(*read_times(rows.y)) if loss.has_times else rows.y
    if loss.n_outputs == 1:
        return loss.value(f, y)
    return loss.value(np.sort(f, axis=1).T, np.tile(y, (loss.n_outputs, 1))).sum(axis=0)


def wrong_labels(model: SparseModel, rows: HeldRows) -> np.ndarray:
    """Return 1 for each row whose label is predicted wrong, else 0."""
    return (model.predict(rows.X, **rows.offset) != rows.y).astype(np.float64)


MEASURES: dict[str, Callable[[SparseModel, HeldRows], np.ndarray]] = {
    "squared_error": lambda model, rows: (rows.y - rows.ask(model.predict)) ** 2,
    "absolute_error": lambda model, rows: np.abs(rows.y - rows.ask(model.predict)),
    "error": wrong_labels,
    "log_loss": log_loss,
    "loss": own_loss,
    "concordance": discordance_of_rows,
    "brier": brier_of_rows,
}
