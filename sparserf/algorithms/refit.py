"""Refit an edited model: some terms are dropped, some stay as they are, columns are flattened,
coefficients get a sign, and the others are fitted again with the model's own loss.

With f the new model, g the one before, w_kj and v_kj their coefficients of output k, the minimum is
sought, over the terms that are neither dropped nor frozen, of

    (1/n) sum_i s_i [(1 - t) L(f_i, y_i) + t D(f_i, g_i)] + (lambda / 2) sum_kj h_kj (w_kj - v_kj)^2

where t is `trust`, D the Bregman divergence of the loss of the row,

    D(f, g) = L(f, y) - L(g, y) - L'(g, y) (f - g),

and h_kj = (1/n) sum_i s_i L'' phi_j(x_i)^2 where the fit begins. For the squared loss the target is
(1 - t) y + t g; for losses of exponential families, such as the logistic one, it is the mean of y
and of what the model predicts. The sum in brackets is L(f, y) - t L'(g, y) f, but for a constant:
only one gradient, that of the mean loss at the model before, is needed of it.

Newton steps are those of `default/fit_of_terms.py`, of classes that are fitted together those of
`refit_multinomial.py`. Terms that are frozen are added to the margins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from .._base.calls import checks_call
from .._base.checks import check_real, text_of
from .._base.screen import short_name
from .._base.threads import single_threaded_blas
from ..columns.clocks import what_of
from ..columns.places import find_columns
from ..expansion.fit_info import warn_unconverged
from ..expansion.terms import (
    column_clocks,
    column_levels,
    column_names,
    stage_of,
    term_gains,
    terms_of,
)
from ..losses import LOSSES, check_loss
from ..losses.base import Loss
from ..model import SparseModel
from .arguments import ColumnSetting, FitOptions, RowSetting
from .default.fit_of_terms import FitOfTerms, minimised
from .default.mean import with_best_intercept
from .refit_multinomial import FitOfClasses
from .task import Task, with_ties

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..features import FeatureSet

# The place of a term, the name of a column, for all terms that see it, or a rule in words.
TermKey: TypeAlias = int | str
# What users write of terms: one key, or several.
Terms: TypeAlias = "TermKey | Iterable[TermKey] | None"
# The ends of a column beyond which the model is flat; None: that of the training rows.
Ends: TypeAlias = "tuple[Any, Any]"

# The most passes over the rows, and the share of the objective by which it then falls no more.
PASSES, FALLS = 100, 1e-10
# The most numbers of the Hessians of all outputs: 0.8 GB, of which there are a few copies.
MOST_NUMBERS = 1e8
# lambda: beside the curvature of the mean loss, it counts so much what coefficients were before.
RIDGE = 0.01
# The largest end of a column.
LARGEST = 1e300
# The most columns of a term that an error names, and those that an edit tells one by one.
MOST_NAMED, MOST_TOLD = 3, 8


@checks_call
def refit(
    model: SparseModel,
    X: MatrixLike,
    y: ArrayLike,
    *,
    drop: Terms = None,
    freeze: Terms = None,
    flatten: Mapping[str | int, Ends] | None = None,
    sign: Mapping[TermKey, int] | None = None,
    trust: float = 0.75,
    loss: Loss | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    workers: int = 1,
) -> SparseModel:
    r"""Edit a model that you have looked at, and fit the rest of it again with the same loss.

    Terms are dropped or stay as they are, columns are made constant beyond some ends, and
    coefficients get a sign. With f the new model and g the one before, the coefficients of all
    other terms, and the intercept, minimise

    .. math:: \frac{1}{n} \sum_i s_i \bigl[(1 - t) L(f(x_i), y_i) + t D(f(x_i), g(x_i))\bigr]
        + \frac{0.01}{2} \sum_j h_j (w_j - v_j)^2

    over rows of weights s of mean 1. D is the divergence of the loss,
    :math:`D(f, g) = L(f, y) - L(g, y) - L'(g, y) (f - g)`: with the squared loss the target is
    (1 - t) y + t g, with the logistic loss that mean of labels and probabilities. v are the
    coefficients before, and :math:`h_j = \frac{1}{n} \sum_i s_i L'' \phi_j(x_i)^2` where the fit
    begins. (A coefficient before of another sign than `sign` counts as 0.)

    Parameters
    ----------
    model : SparseModel
        The model, which is not changed.
    X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        The rows of the fit, or others. They may be chunks, on a device or in Dask.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        The target, of the same outputs or classes.
    drop : int, str, or sequence of these, optional
        The terms that go. An integer is the place of a term in `coef`; a string is the name of a
        column, for all terms that see it, or a rule in words, as `summary`, `formula` and the page
        write it. Columns of an array are called x0, x1, ... Without any term left the model is a
        constant.
    freeze : int, str, or sequence of these, optional
        The terms whose coefficients stay as they are, bit for bit.
    flatten : mapping, optional
        {name or index of a column: (low, high)}. Below low and above high the model is constant in
        the column. None stands for the end of the training rows (`SparseModel.ranges`). Of a column
        of times these may be times.
    sign : mapping, optional
        {term, as in `drop`: 1 or -1}. What stands before the term in the formula is at least 0, or
        at most 0, for all outputs; terms that become 0 are left out.
    trust : float, default 0.75
        How much the predictions of the model count beside y, in [0, 1]: t above. 0: y alone; 1: the
        predictions alone, as `prune` does.
    loss : Loss, optional
        The loss of the model, where it is your own; else None.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights of the rows.
    offset : array of shape (n_samples,) or (n_samples, n_outputs), optional
        What is added to f in the loss, as in `sparse_rf`.
    workers : int, default 1
        Threads; -1 for all cores. The result has the same bits for any number.

    Returns
    -------
    SparseModel
        `info` is that of `model`, and its `edits` tell what was changed, and the mean loss of these
        rows before and after; validation_loss, fidelity and the bounds are None. Limits stay.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another type; a term or a column is not there, or no
        term sees it; a term is named by two of `drop`, `freeze` and `sign`; y has other classes or
        outputs than the model; the Hessian of all terms has more than 1e8 numbers.

    Warns
    -----
    ConvergenceWarning
        The objective has not come to rest in 100 passes over the rows.

    See Also
    --------
    prune : Chooses the terms that stay.
    sparse_rf : The fit; with `monotone` for a model that is monotone in a column.

    Notes
    -----
    The best coefficients for the rows of a fit are not the best for new rows. Fitted again to them
    with trust=0, and without an edit, the default's models of five tables had 1.04 to 2.5 times the
    error on new rows that they had before; with 0.75 0.99 to 1.02 times. Give less for other rows
    than those of the fit.

    Coefficients that must be at least 0, as in a monotone model, stay so. A flat end keeps monotone
    functions monotone, and makes a convex one no longer convex. A column whose time of the day, the
    week or the year is seen cannot be flattened.

    Each Newton step takes a pass over the rows, O(n a^2) for n rows and a terms, and O(a^3); a
    square needs three, other losses some ten, quantiles up to a hundred. Memory: O(a^2) for each
    output, O(k^2 a^2) for k classes that are fitted together.

    References
    ----------
    L. M. Bregman, The relaxation method of finding the common point of convex sets and its
    application to the solution of problems in convex programming, USSR Computational Mathematics
    and Mathematical Physics 7, 1967.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (1000, 2))
    >>> y = np.sign(X[:, 0]) + 0.5 * (X[:, 1] > 1) + 0.1 * rng.standard_normal(1000)
    >>> model = srf.sparse_rf(X, y, features=srf.Rules(), max_terms=5, rng=0, verbose=False)
    >>> edited = srf.refit(model, X, y, drop="x1", flatten={"x0": (-1, 1)})
    >>> edited.info.edits[1]
    'made constant in x0 beyond [-1, 1]'
    >>> bool(edited.predict([[5.0, 0.0]]) == edited.predict([[1.0, 2.0]]))
    True
    """
    check_model(model)
    if check_real("trust", trust, 0) > 1:
        raise ValueError(f"trust must be in [0, 1], got {trust}")
    terms = NamedTerms(model)
    edit = Edit(
        terms.mask("drop", drop),
        terms.mask("freeze", freeze),
        terms.signs(sign),
        read_ends(model, flatten),
    )
    _check_apart(edit, terms)
    options = FitOptions(
        features=model.features,
        columns=ColumnSetting(missing="learn"),
        rows=RowSetting(_loss_of(model, loss), sample_weight, None, offset, None, workers),
    )
    task = Task.from_options(X, y, options, losses=tuple(LOSSES), several_outputs="apart")
    _check_task(model, task, np.count_nonzero(~(edit.dropped | edit.frozen)))
    with single_threaded_blas(), task.raw:
        return refitted(model, task.centered(True), edit, trust)


@dataclass(frozen=True, eq=False)
class Edit:
    """What is changed in a model, beside the coefficients that are fitted again.

    dropped, frozen : masks of the terms
    sign : the sign that the coefficient of each term is to have, 1 or -1; 0 for any
    ends : {column: (low, high)}, beyond which the model is to be constant
    """

    dropped: np.ndarray
    frozen: np.ndarray
    sign: np.ndarray
    ends: dict[int, tuple[float, float]]

    def sign_of_coef(self, model: SparseModel) -> np.ndarray:
        """Return the sign that each coefficient is to have: rules, and others, may have a factor
        below 0."""
        return np.where(term_gains(model.features) < 0, -1, 1) * self.sign

    def sentences(self, model: SparseModel) -> list[str]:
        """Return what is changed, in words."""
        told = []
        if n := np.count_nonzero(self.dropped):
            told.append(f"dropped {_counted(n)}")
        if n := np.count_nonzero(self.frozen):
            told.append(f"kept {_counted(n)} as {'it was' if n == 1 else 'they were'}")
        names, clocks = column_names(model), column_clocks(model)
        for j, ends in list(self.ends.items())[:MOST_TOLD]:
            clock = clocks.get(j)
            low, high = (f"{end:g}" if clock is None else str(clock.cell(end)) for end in ends)
            told.append(f"made constant in {short_name(names[j])} beyond [{low}, {high}]")
        if (n := len(self.ends) - MOST_TOLD) > 0:
            told.append(f"made constant in {n:,} more columns")
        for way, words in ((1, "at least 0"), (-1, "at most 0")):
            if n := np.count_nonzero(self.sign == way):
                told.append(f"kept the coefficient of {_counted(n)} {words}")
        return told


def _counted(n):
    """Return a number of terms in words."""
    return "1 term" if n == 1 else f"{n:,} terms"


def refitted(model: SparseModel, task: Task, edit: Edit, trust: float) -> SparseModel:
    """Return the edited model, its other terms fitted again to the rows of a task."""
    features, is_constant = flattened(model, edit.ends)
    kept = np.flatnonzero(~(edit.dropped | is_constant))
    features = features.take(kept)
    sign = np.where(features.nonnegative, 1, edit.sign_of_coef(model)[kept])
    coef = model.coef[..., kept]
    coef = np.where((sign != 0) & (np.sign(coef) == -sign), 0.0, coef)
    edited = replace(model, coef=coef, features=features, support=model.support[kept])
    again = fitted_again(model, edited, task, sign, edit.frozen[kept], trust)

    used = np.atleast_2d(again.coef).any(axis=0) | edit.frozen[kept]
    features = features.take(np.flatnonzero(used))
    told = edit.sentences(model)
    for mask, words in ((is_constant & ~edit.dropped, "then constant"), (~used, "that became 0")):
        if mask.any():
            told.append(f"left out {_counted(np.count_nonzero(mask))} {words}")
    n_again = np.count_nonzero(used & ~edit.frozen[kept])
    told.append(
        f"fitted {_counted(n_again)} again to {task.raw.n_rows:,} rows, mean loss "
        f"{again.loss:.4g} (before: {again.loss_before:.4g})"
    )
    info = replace(
        model.info,
        n_nonzero=len(features),
        edits=(*model.info.edits, *told),
        **dict.fromkeys(("validation_loss", "fidelity", "dual_gap", "error_bound")),
    )
    return with_ties(
        replace(
            edited,
            coef=again.coef[..., used],
            intercept=again.intercept,
            support=edited.support[used],
            features=features,
            ranges=model.ranges.seen_by(features.columns_seen),
            info=info,
        )
    )


class Again(NamedTuple):
    """The coefficients and intercepts of a model that is fitted again, and the mean loss of the
    rows with it and with the model before, in units of y."""

    coef: np.ndarray
    intercept: float | np.ndarray
    loss: float
    loss_before: float


def fitted_again(
    model: SparseModel,
    edited: SparseModel,
    task: Task,
    sign: np.ndarray,
    is_frozen: np.ndarray,
    trust: float,
) -> Again:
    """Fit the terms of the edited model that are not frozen to the rows of a task.

    model : the model before it was edited
    sign : that of the coefficient of each term; 0 for any
    """
    edited = with_best_intercept(edited, task)
    features, terms = edited.features, edited.features.staged(None)
    free, frozen = np.flatnonzero(~is_frozen), np.flatnonzero(is_frozen)
    rows = task.raw.staged(features.stage, is_asked_often=True)
    Fit = FitOfClasses if task.is_joint else FitOfTerms
    fit = Fit(rows, terms.take(free), task, sign[free], dtype=None)
    (w, b), (w_before, b_before) = fit.in_units(edited), fit.in_units(model)
    f = task.raw.staged(model.features.stage).apply(model.features.staged(None), w_before)
    losses_before, *slopes = fit.slopes_at(f, b_before)

    found = []
    for k in [None] if task.is_joint or fit.is_square else range(len(w)):
        own = slice(None) if k is None else slice(k, k + 1)
        fixed = (rows.apply(terms.take(frozen), w[own][:, frozen]),) if len(frozen) else ()
        tilt = trust * slopes[0][own], trust * slopes[1][own]
        one = replace(fit, fixed=fixed, tilt=tilt, output=k)
        found.append(minimised(one, w[own][:, free], b[own], RIDGE, PASSES, FALLS))
    solution = zip(*(each.solution for each in found), strict=True)
    w, b = fit.in_units_of_y(*map(np.concatenate, solution))
    if not (np.isfinite(w).all() and np.isfinite(b).all()):
        raise ValueError(
            "y must be of moderate size, got values whose coefficients overflow: scale it"
        )
    if not all(each.has_converged for each in found):
        warn_unconverged(
            f"refit ended after {PASSES} passes over the rows, before the objective came to rest"
        )
    coef = edited.coef.copy()
    coef[..., free] = w.reshape(*coef.shape[:-1], len(free))
    loss = fit.total(np.concatenate([each.losses for each in found]))
    is_one = np.ndim(model.intercept) == 0
    return Again(coef, float(b[0]) if is_one else b, loss, fit.total(losses_before))


def flattened(
    model: SparseModel, ends: dict[int, tuple[float, float]]
) -> tuple[FeatureSet, np.ndarray]:
    """Return the features of a model, constant in some columns beyond ends, and a mask of those
    that are then constant everywhere.

    Rules get other thresholds, all else the column stage.
    """
    features = model.features
    if not ends:
        return features, np.zeros(len(features), bool)
    stage, names = stage_of(features), column_names(model)
    of_columns = np.tile([-np.inf, np.inf], (model.n_features_in, 1))
    of_columns[list(ends)] = list(ends.values())
    of_encodings = of_columns[stage.column]
    is_flat = np.isfinite(of_encodings).all(axis=1)
    turns = is_flat & (stage.turn > 0) & features.inputs_seen
    if turns.any():
        name = names[int(stage.column[np.flatnonzero(turns)[0]])]
        raise ValueError(
            f"flatten must have columns that terms see as numbers alone, got {name!r}, of which "
            "they see the time of the day, the week or the year"
        )
    is_itself = stage.is_itself & is_flat
    is_held = is_flat & (features.inputs_that_matter_beyond | ~is_itself)
    nowhere = [-np.inf, np.inf]
    features, is_constant = features.flattened(
        np.where(is_itself[:, None], of_encodings, nowhere), stage.fill
    )
    held = stage.flattened(np.where(is_held[:, None], of_encodings, nowhere))
    return features if held is stage else features.staged(held), is_constant


# ---------------------------------------------------------------- arguments


class NamedTerms:
    """The terms of a model as users name them: by their places in `coef`, by the name of a column
    that they see, or, of rules, in words."""

    def __init__(self, model: SparseModel):
        self._model, self._n = model, len(model.features)
        self._names = column_names(model)

    @cached_property
    def _by_text(self):
        """{name of a column, or rule in words: the places of its terms}."""
        names, stage = self._names, self._model.features.stage
        of_columns, of_rules = {}, {}
        for term in terms_of(self._model.features):
            for j in term.columns.tolist():
                of_columns.setdefault(names[j], []).append(term.position)
            if words := term.condition(names, stage):
                of_rules.setdefault(words, []).append(term.position)
        return of_rules | of_columns

    def mask(self, argument: str, keys: Terms) -> np.ndarray:
        """Return a mask of the terms that an argument names."""
        mask = np.zeros(self._n, bool)
        keys = [keys] if isinstance(keys, (str, Integral)) else () if keys is None else keys
        if not isinstance(keys, Iterable):
            raise TypeError(
                f"{argument} must be places of terms, names of columns or rules, got {keys!r}"
            )
        for key in keys:
            mask[self.places(argument, key)] = True
        return mask

    def signs(self, given: Mapping[TermKey, int] | None) -> np.ndarray:
        """Return the sign that is asked of each term; 0 where none is."""
        sign = np.zeros(self._n, int)
        if given is None:
            return sign
        if not isinstance(given, Mapping):
            raise TypeError(f"sign must be a mapping of terms to 1 or -1, got {given!r}")
        lowest = np.where(self._model.features.nonnegative, term_gains(self._model.features), 0)
        for key, way in given.items():
            if isinstance(way, (bool, np.bool_)) or way not in (1, -1):
                raise ValueError(f"sign must be 1 or -1 for {key!r}, got {way!r}")
            for k in self.places("sign", key):
                if sign[k] == -way or lowest[k] * way < 0:
                    other = "of a monotone model" if lowest[k] else "by another key"
                    raise ValueError(f"sign must not be {way} for {self.title(k)}, {-way} {other}")
                sign[k] = way
        return sign

    def places(self, argument: str, key: TermKey) -> list[int]:
        """Return the places of the terms that a key means."""
        if isinstance(key, str):
            if text_of(key) not in self._by_text:
                raise ValueError(
                    f"{argument} must name columns that terms see, or rules as summary writes "
                    f"them, got {key!r}"
                )
            return self._by_text[text_of(key)]
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, Integral):
            raise TypeError(
                f"{argument} must be places of terms, names of columns or rules, got {key!r}"
            )
        if not 0 <= key < self._n:
            raise ValueError(f"{argument} must have places of terms in [0, {self._n}), got {key}")
        return [int(key)]

    def title(self, k: int) -> str:
        """Return a term in words, with its place."""
        (term,) = terms_of(self._model.features.take([k]))
        return f"term {k}, {term.title(self._names, MOST_NAMED, self._model.features.stage)}"


def _check_apart(edit, terms):
    """Check that no term is named by two arguments."""
    masks = {"drop": edit.dropped, "freeze": edit.frozen, "sign": edit.sign != 0}
    for (one, of_one), (other, of_other) in combinations(masks.items(), 2):
        if (of_one & of_other).any():
            k = int(np.flatnonzero(of_one & of_other)[0])
            raise ValueError(f"{one} and {other} must have no term in common, got {terms.title(k)}")


def read_ends(
    model: SparseModel, flatten: Mapping[str | int, Ends] | None
) -> dict[int, tuple[float, float]]:
    """Return {column: (low, high)} for the argument `flatten`."""
    if flatten is None:
        return {}
    if not isinstance(flatten, Mapping):
        raise TypeError(f"flatten must be a mapping of columns to (low, high), got {flatten!r}")
    names, levels, clocks = column_names(model), column_levels(model), column_clocks(model)
    seen, ends = model.features.columns_seen, {}
    found = find_columns("flatten", flatten, names, len(names))
    for j, pair in zip(found, flatten.values(), strict=True):
        what = f"flatten[{names[j]!r}]"
        if j in ends:
            raise ValueError(f"flatten must have each column once, got {names[j]!r} twice")
        if levels[j] is not None or not seen[j]:
            why = "which no term sees" if not seen[j] else "a category"
            raise ValueError(f"flatten must have columns of numbers, got {names[j]!r}, {why}")
        if not (isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2):
            raise TypeError(f"{what} must be a pair (low, high), got {pair!r}")
        known = model.ranges.known(j)
        if known is None and any(end is None for end in pair):
            raise ValueError(f"{what} must have two ends, since the model knows no range of it")
        own = zip(pair, known or pair, strict=True)
        low, high = (
            _number(what, given if given is not None else end, clocks.get(j)) for given, end in own
        )
        if low > high:
            raise ValueError(f"{what} must have low <= high, got {pair!r}")
        ends[j] = low, high
    return ends


def _number(what, end, clock):
    """Return an end of a column as a number; of a column of times it may be such a time."""
    if clock is not None and what_of(type(end)):
        return clock.days(what, end)
    return check_real(what, end, -LARGEST)


def check_model(model: SparseModel) -> None:
    """Check that a model is one."""
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")


def _loss_of(model, loss):
    """Return the loss of a model; `loss` is that of the user where it is the user's own."""
    if model.loss in LOSSES:
        if loss is not None:
            raise ValueError(f"loss must be None for a model of {model.loss!r}, got {loss!r}")
        return type(LOSSES[model.loss])(**model.loss_parameters)
    if not isinstance(loss, Loss) or loss.name != model.loss:
        raise ValueError(
            f"loss must be the loss {model.loss!r} of the model, which is your own, got {loss!r}"
        )
    return check_loss(loss, ())


def _check_task(model, task, n_terms):
    """Check that a task has the columns, and the classes or outputs, of a model, and that there are
    not too many terms to be fitted."""
    K, d = np.size(model.intercept), task.raw.n_features_in
    if d != model.n_features_in:
        raise ValueError(f"X must have {model.n_features_in} columns, got {d}")
    if model.classes is not None and not np.array_equal(task.classes, model.classes):
        raise ValueError(
            f"y must hold the labels of the model, {model.classes.tolist()}, and no others, got "
            f"{task.classes.tolist()}"
        )
    if len(task.targets) != K:
        raise ValueError(f"y must have {K} outputs, as the model has, got {len(task.targets)}")
    most = int((MOST_NUMBERS / (K**2 if task.is_joint else K)) ** 0.5)
    if n_terms > most:
        raise ValueError(
            f"model must have at most {most:,} terms to be fitted again, got {n_terms:,}: prune it"
        )
