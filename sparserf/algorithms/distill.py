"""Distill any function of rows, a large model say, into a sparse model.

`distill` is four steps: it makes more rows in the manner of X (`columns/made_rows.py`), asks the
teacher for the values of all of them, fits `sparse_rf` to these values, and compares model and
teacher on rows of X that were kept apart.

Probabilities of classes are fitted by their logarithms: a teacher has no noise, so that these can
be fitted as closely as values. (The log loss, with the probabilities as weights of labels, would
take the labels for noise, and stop early.)

C. Bucila, R. Caruana, A. Niculescu-Mizil, Model compression, KDD 2006.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.calls import checks_call, numbers_from
from .._base.checks import (
    and_more,
    as_array,
    check_callable,
    check_integer,
    check_real,
    check_rng,
    check_sample_weight,
    checked,
    is_sparse,
)
from .._base.copies import joined, number_rows
from .._base.deadline import check_time_limit, time_left
from .._base.floats import state_of_caller
from .._base.progress import part, parts, reporting
from .._base.random import draw_rows
from .._base.splits import check_groups, draw_groups
from .._base.threads import check_workers, single_threaded_blas
from .._base.warnings import CopiedRowsWarning, GroupedRowsWarning
from ..columns.frames import is_frame
from ..columns.made_rows import draw_sources, take_cells
from ..columns.table import Table
from ..columns.targets import as_labels
from ..losses import LOSSES, check_loss
from ..model import ConvergenceWarning
from .arguments import Arguments
from .fit_progress import power_of_two
from .sparse_rf import sparse_rf

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, Seed
    from ..columns.table import Categorical
    from ..losses import LossLike
    from ..model import Callback, SparseModel

# The teacher is asked for at most this number of rows at once.
BATCH = 10_000
# Probabilities may differ from 0 to 1, and their sums from 1, by rounding in single precision.
ROUNDING = 1e-4
# The losses that may be given by name.
FOR_VALUES = tuple(
    name for name, loss in LOSSES.items() if not (loss.is_classifier or loss.has_times)
)


@dataclass(frozen=True, kw_only=True, eq=False)
class DistillOptions(Arguments):
    """The arguments of `distill` that need neither the teacher nor X, checked."""

    max_terms: int = checked(check_integer, 1)
    n_made: int | None = checked(check_integer, 0, default=None)
    loss: Any = checked(lambda _, loss: check_loss(loss, FOR_VALUES))
    test_size: float = checked(check_real, 0, strict=True)
    categorical: Categorical
    max_order: int | None = checked(check_integer, 1, default=None)
    effort: float = checked(check_real, 0, strict=True)
    rng: Any = checked(lambda _, rng: check_rng(rng))
    workers: int
    callback: Callback = checked(check_callable, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.test_size >= 1:
            raise ValueError(f"test_size must be below 1, got {self.test_size}")

    def of_fit(self) -> dict[str, Any]:
        """Return the arguments of the fit, which `sparse_rf` has by the same names."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("n_made", "test_size")
        }


@checks_call
def distill(
    teacher: Callable[[Any], ArrayLike],
    X: MatrixLike,
    *,
    max_terms: int = 1_000,
    n_made: int | None = None,
    classes: ArrayLike | None = None,
    loss: LossLike = "squared",
    test_size: float = 0.1,
    categorical: Categorical = None,
    max_order: int | None = None,
    effort: float = 1.0,
    time_limit: float | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    rng: Seed = None,
    workers: int = 1,
    callback: Callback = None,
    verbose: bool | None = None,
) -> SparseModel:
    r"""Distill a teacher, any function from rows to values, into a sparse model, and tell how near
    that came to it.

    The teacher is what is too large or too slow to ship: a Gaussian process, boosted trees, a
    network, a mean of models. It is asked for the values of the rows of X and of more rows made in
    their manner, so that few rows are enough, without y.

    Parameters
    ----------
    teacher : function
        Most often ``other.predict``: from at most 10,000 rows as X has them to their values,
        (n_rows,) or (n_rows, n_outputs); where `classes` are given, to probabilities, as
        ``other.predict_proba``.
    X : data frame or dense array of shape (n_samples, n_features)
        Rows as the teacher will meet them, in memory. NaN and strings are passed on.
    max_terms : int, default 1,000
        The most terms of the model.
    n_made : int, optional
        The number of rows to make, each cell from a row of X or one of its thirty nearest. None: up
        to 12,000 with those of X.
    classes : array of shape (n_classes,), optional
        The labels of the classes, ascending: ``other.classes_``. None: the teacher returns values.
    loss : str or `sparserf.losses.Loss`, default "squared"
        For values, a loss of `sparse_rf` for real targets: "poisson" or "gamma", say, where ratios
        matter.
    test_size : float, default 0.1
        The share of the rows of X, in (0, 1), that is kept apart to compare model and teacher on.
    time_limit : float, optional
        Seconds that the call may take; the teacher is asked for all rows in any case.
    sample_weight : array of shape (n_samples,), optional
        Nonnegative weights. A made row has the mean of those that its cells are from.
    groups : array of shape (n_samples,), optional
        The group of each row; rows of a group are kept apart together.
    rng : None, int or numpy.random.Generator, default None
        Seed of the rows that are made and kept apart, and of the fit.
    categorical, max_order, effort, workers, callback, verbose
        As in `sparse_rf`.

    Returns
    -------
    SparseModel
        `info.fidelity` is the share of the teacher's variance that the model gives, on the rows
        kept apart:

        .. math:: 1 - \sum_i s_i |f(x_i) - t(x_i)|^2 / \sum_i s_i |t(x_i) - \bar t|^2

        for predictions, or probabilities, f of the model and t of the teacher. With `classes` it is
        a classifier.

    Raises
    ------
    ValueError, TypeError
        An argument is out of its range or of another type; the teacher returns something else than
        a finite number, or probabilities, for each row.

    Warns
    -----
    TimeLimitWarning
        As `sparse_rf`. There is no ConvergenceWarning, since `fidelity` tells how near the model
        came.

    See Also
    --------
    prune : A SparseModel in fewer of its terms.
    sparse_rf : The fit, to a target.

    Notes
    -----
    A model of fidelity r in place of its teacher has a mean squared error of at most
    :math:`(\sqrt{E} + \sqrt{(1 - r) V})^2`, where E is that of the teacher, and V the variance of
    the teacher's values, on the same rows. On rows to which the teacher itself was fitted the
    fidelity may be too low: give others, which need no y.

    Probabilities are fitted by their logarithms, as the page "Small models of large ones" says.
    Time: that of asking the teacher for all rows, and of `sparse_rf` for these. Memory: that of
    these.

    References
    ----------
    C. Bucila, R. Caruana, A. Niculescu-Mizil, Model compression, KDD 2006.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    >>> teacher = lambda X: np.sin(3 * X[:, 0]) * X[:, 1]  # or the predict of any model
    >>> model = srf.distill(teacher, X, max_terms=50, n_made=700, effort=0.2, rng=0)
    >>> len(model.features) <= 50, model.info.fidelity > 0.98
    (True, True)
    """
    if not callable(teacher):
        hint = (
            f"{type(teacher).__name__}.predict" if hasattr(teacher, "predict") else "model.predict"
        )
        raise TypeError(
            f"teacher must be a function from rows to values, such as {hint}, got {teacher!r}"
        )

    options = DistillOptions.of_call(locals())
    rng, deadline = options.rng, check_time_limit(time_limit)
    labels = None if classes is None else _check_classes(classes, options.loss)
    if options.loss.n_outputs > 1:
        raise ValueError(f"loss must have one output for each value, got {options.loss!r}")
    check_workers(workers)

    if is_sparse(X) or not (is_frame(X) or isinstance(X, (np.ndarray, Sequence))):
        raise TypeError(
            f"X must be a data frame or a dense array in memory, got {type(X).__name__}"
        )
    X = X if is_frame(X) else as_array("X", X)

    numbers, table = Table.learn(X, categorical)
    weight = check_sample_weight(sample_weight, len(numbers))
    groups = joined(number_rows(numbers), check_groups(groups, len(numbers)))
    fitted, apart = _keep_apart(np.flatnonzero(weight), groups, options.test_size, rng)

    with reporting("distill", None, verbose, time_limit) as report:
        # Make rows in the manner of the others, none of them one of the rows kept apart.
        n_made = options.n_made
        if n_made is None:
            n_made = max(0, 12_000 - len(fitted))  # with those of X
        is_category = np.array([levels is not None for levels in table.levels])
        with single_threaded_blas():
            made = fitted[draw_sources(numbers[fitted], is_category, weight[fitted], n_made, rng)]
        made = made[~_are_among(np.take_along_axis(numbers, made, axis=0), numbers[apart])]
        sources = np.concatenate([np.repeat(fitted[:, None], len(is_category), axis=1), made])
        rows, weights = take_cells(X, sources), weight[sources].mean(axis=1)

        # Ask the teacher; the rows kept apart come first, since they are few.
        with part(0.2):  # of the progress bar
            values = _ask(teacher, take_cells(X, apart), labels, apart)
            targets = _ask(teacher, rows, labels, fitted)
        if targets.shape[1:] != values.shape[1:]:
            raise ValueError(
                f"teacher must return as many values for each row, got {values.shape[1:]} and "
                f"{targets.shape[1:]}"
            )

        # Fit the model to its values; of equal rows, for which they are equal, none is held out
        # while another is fitted.
        copies = number_rows(np.take_along_axis(numbers, sources, axis=0))
        has_copies = 10 <= len(np.unique(copies)) < len(copies)
        left = None if time_limit is None else max(1e-3, time_left(deadline))
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            for what in (GroupedRowsWarning, CopiedRowsWarning):
                warnings.simplefilter("ignore", what)  # rows are made, not seen
            model = sparse_rf(
                rows,
                targets if labels is None else _log_odds(targets),
                **options.of_fit(),
                sample_weight=weights,
                groups=copies if has_copies else None,
                time_limit=left,
            )
        if labels is not None:
            is_binary = len(labels) == 2
            name, link = ("logistic", "identity") if is_binary else ("multinomial", "softmax")
            model = replace(model, loss=name, classes=labels, link=link)

        # Compare both on the rows kept apart.
        predict = model.predict if labels is None else model.predict_proba
        answers = predict(take_cells(X, apart), workers)
        fidelity = _explained(values, answers, weight[apart])
        model = replace(model, info=replace(model.info, fidelity=fidelity))
        if report is not None:
            report.finish(model.info)
    return model


def _check_classes(classes, loss):
    """Return the labels of the classes as an array."""
    if loss.name != "squared":
        raise ValueError(f"loss must be 'squared' for probabilities of classes, got {loss.name!r}")
    labels = as_labels(classes, "classes")
    if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        raise ValueError(
            f"classes must be labels in ascending order, at least two, got {classes!r}"
        )
    return labels


def _are_among(rows, others):
    """Return the mask of the rows that are equal to one of the others."""
    number = number_rows(np.concatenate([rows, others]))
    return np.isin(number[: len(rows)], number[len(rows) :])


def _keep_apart(there, groups, share, rng):
    """Return (the rows to fit, the rows kept apart), whole groups, of the indices of rows that
    count."""
    if len(there) < 3:
        raise ValueError(f"X must have at least 3 rows of positive weight, got {len(there)}")
    groups, is_apart = groups[there], np.zeros(len(there), bool)
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        what = (
            "different rows, or rows of different groups, of positive weight, so that some can "
            "be kept apart"
        )
        raise ValueError(f"X must have {what}, got {len(there)} that stay together")
    if n_groups == len(there):
        n = min(max(2, round(share * len(there))), len(there) - 1)
        is_apart[draw_rows(len(there), n, rng)] = True
    else:
        is_apart = draw_groups(groups, np.zeros(len(there)), share, rng)
    return there[~is_apart], there[is_apart]


def _ask(teacher, rows, labels, index):
    """Return the teacher's values of rows: (n_rows,) or (n_rows, n_outputs); the probabilities of
    all classes if there are any.

    index : the places in X of the first rows; others are made
    """
    n = len(rows)
    batches = [np.arange(start, min(start + BATCH, n)) for start in range(0, n, BATCH)]
    lots = []
    for batch in parts(batches):
        with state_of_caller():
            answer = teacher(take_cells(rows, batch))
        # a copy: the teacher may write there again
        lots.append(numbers_from("teacher", answer, len(batch), (1, 2)))
    for values in lots:
        if values.shape[1:] != lots[0].shape[1:]:
            raise ValueError(
                f"teacher must return as many values for each row, got {lots[0].shape[1:]} and "
                f"{values.shape[1:]}"
            )
    values = np.concatenate(lots)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    _check_each(np.isfinite(values), "a finite value", values, index)
    return values if labels is None else _check_probabilities(values, labels, index)


def _check_probabilities(p, labels, index):
    """Return the probabilities of all classes, (n_rows, n_classes), which sum to 1."""
    _check_each((p >= -ROUNDING) & (p <= 1 + ROUNDING), "probabilities", p, index)
    p = np.clip(np.column_stack([1 - p, p]) if p.ndim == 1 else p, 0.0, 1.0)
    if p.shape[1] != len(labels):
        raise ValueError(
            f"teacher must return the probabilities of {len(labels)} classes, got those of "
            f"{p.shape[1]}"
        )
    total = p.sum(axis=1)
    _check_each(np.abs(total - 1) <= len(labels) * ROUNDING, "probabilities of sum 1", p, index)
    return p / total[:, None]


def _log_odds(p):
    """Return the log-odds of two classes, (n_rows,); of more the logarithms, less their mean,
    (n_rows, n_classes)."""
    logs = np.log(np.maximum(p, 1e-3))  # smaller probabilities count as a thousandth
    return logs[:, 1] - logs[:, 0] if p.shape[1] == 2 else logs - logs.mean(axis=1)[:, None]


def _check_each(is_right, what, values, index):
    """Raise ValueError, which names the row, unless all values are right."""
    wrong = np.flatnonzero(~is_right.reshape(len(values), -1).all(axis=1))
    if len(wrong):
        row = int(wrong[0])
        where = f"row {index[row]} of X" if row < len(index) else "a made row"
        raise ValueError(
            f"teacher must return {what} for each row, got {values[row]} for {where}"
            f"{and_more(wrong)}"
        )


def _explained(values, answers, weight):
    """Return the share of the variance of the values that the answers explain; for constant values
    1 if they agree, else 0."""
    answers = np.asarray(answers, np.float64).reshape(len(values), -1)
    values = values.reshape(len(values), -1)
    share = weight / weight.sum()

    # in a unit in which no square over- or underflows
    unit = max(power_of_two(values), power_of_two(answers))
    values, answers = values / unit, answers / unit
    variance = float((share @ (values - share @ values) ** 2).sum())
    change = float((share @ (answers - values) ** 2).sum())
    return 1 - change / variance if variance > 0 else float(change == 0)
