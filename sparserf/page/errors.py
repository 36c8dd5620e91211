"""What rows with their targets say of a model: errors, tenths of the prediction, groups of a
column."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..columns.targets import as_labels, check_target, label_indices
from ..columns.times import read_times
from ..expansion.base import labels_of_decisions, predictions, probabilities
from ..expansion.outputs import quantile_levels
from ..explain.evaluate import column_of
from ..losses import PROBABILISTIC
from ..losses.links import HazardLink
from ..losses.measures import pairs_of_rows
from ..losses.regression import pinball_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from .._base.types import DenseOrCSR
    from ..expansion import Expansion
    from .columns import PageColumn

# The parts of the rows by their prediction.
TENTHS = 10
# The most columns by whose cells errors are shown, and the most groups of a column.
MOST_COLUMNS = 30
MOST_GROUPS = 12
# The parts of the rows by the numbers of a column.
PARTS = 5
# The fewest rows of a group that is shown: of fewer, an error says little, and too much of a row.
FEWEST = 10


class Question(NamedTuple):
    """What is observed and what is predicted in each row, of one output or class.

    name : of what the numbers are
    observed, predicted : ndarray of shape (n_rows,)
    is_share : whether `observed` is 0 or 1, and `predicted` a probability
    """

    name: str
    observed: np.ndarray
    predicted: np.ndarray
    is_share: bool

    def error(self, rows: np.ndarray | slice = slice(None)) -> float:
        """Return the root mean squared error in some rows; of probabilities it is the root of the
        Brier score."""
        return float(np.sqrt(np.square(self.observed[rows] - self.predicted[rows]).mean()))


def check_y(model: Expansion, y: ArrayLike, n_rows: int) -> np.ndarray:
    """Return y as targets, (n_rows,) or (n_rows, n_outputs), as times or as labels."""
    if model.classes is None:
        if quantile_levels(model):
            return check_target(y, n_rows)
        if model.link == HazardLink.name:
            return read_times(y, n_rows).array
        target = check_target(y, n_rows, model.coef.ndim > 1).T
        if target.shape[1:] != np.shape(model.intercept):
            raise ValueError(
                f"y must have {np.size(model.intercept)} outputs, got shape {target.shape}"
            )
        return target
    labels = as_labels(y)
    if labels.shape != (n_rows,):
        raise ValueError(f"y must have shape ({n_rows},), got {labels.shape}")
    label_indices(model.classes, labels)  # checks that the model knows them
    return labels


def errors(
    model: Expansion, f: np.ndarray, y: np.ndarray, X: DenseOrCSR, columns: Sequence[PageColumn]
) -> dict[str, Any]:
    """Return the errors of decision values f, (n_outputs, n_rows), as a page shows them."""
    measures, questions = (
        _of_regression(model, f, y) if model.classes is None else _of_labels(model, f, y)
    )
    groups = [(column, _groups(column, column_of(X, column.place))) for column in columns]
    return {
        "rows": len(y),
        "measures": measures,
        "questions": [
            {
                "name": each.name,
                "isShare": each.is_share,
                "tenths": _tenths(each),
                "columns": [
                    {"at": column.place, "groups": _large_groups(each, of_column)}
                    for column, of_column in groups
                ],
            }
            for each in questions
        ],
    }


def _of_regression(model, f, y):
    """Return (measures, questions) of a regression."""
    if model.link == HazardLink.name:
        later, smaller = pairs_of_rows(y["time"], y["event"], np.ravel(f), np.ones(len(y)))
        return [["concordance", float(smaller.sum() / max(later.sum(), 1.0)), 0.5]], []
    if quantile_levels(model):
        return _of_quantiles(model, f, y), []
    predicted, observed = np.atleast_2d(predictions(model.link, f)), np.atleast_2d(y.T)
    n = len(observed)
    names = ["the prediction"] if n == 1 else [f"output {k}" for k in range(n)]
    questions = [Question(*each, False) for each in zip(names, observed, predicted, strict=True)]
    measures = []
    for each in questions:
        of = "" if len(questions) == 1 else f" of {each.name}"
        constant = float(np.std(each.observed))
        measures.append([f"root mean squared error{of}", each.error(), constant])
        answers = each.predicted, np.median(each.observed)
        absolute = (np.abs(each.observed - answer).mean() for answer in answers)
        measures.append([f"mean absolute error{of}", *map(float, absolute)])
    return measures, questions


def _of_quantiles(model, f, y):
    """Return the measures of a model of several quantiles."""
    measures = []
    for level, predicted in zip(
        quantile_levels(model), predictions(model.link, f.T).T, strict=True
    ):
        constant = np.quantile(y, level, method="inverted_cdf")
        losses = [float(pinball_loss(level, q, y).mean()) for q in (predicted, constant)]
        shares = [float((y <= q).mean()) for q in (predicted, constant)]
        measures.append([f"mean pinball loss of quantile {level:g}", *losses])
        measures.append([f"share of rows up to quantile {level:g}", *shares])
    return measures


def _of_labels(model, f, y):
    """Return (measures, questions) of a classifier."""
    classes, f = model.classes, f[0] if model.coef.ndim == 1 else f.T
    right = labels_of_decisions(*model.cut_classes, f) == y
    frequent = max(float((y == label).mean()) for label in classes)
    measures = [["share of wrong labels", float(1 - right.mean()), 1 - frequent]]
    if model.loss not in PROBABILISTIC:
        return measures, []
    p = probabilities(model.link, model.thresholds, f)
    is_class = y[:, None] == classes
    share = is_class.mean(axis=0)
    tiny = np.finfo(float).tiny
    of_label = np.log(np.maximum(np.where(is_class, p, 1.0), tiny)).sum(axis=1)
    constant = -float((share[share > 0] * np.log(share[share > 0])).sum())
    measures.append(["mean log loss", -float(of_label.mean()), constant])
    places = [1] if len(classes) == 2 else range(len(classes))
    return measures, [
        Question(f"the probability of {classes[k]}", is_class[:, k].astype(float), p[:, k], True)
        for k in places
    ]


def _tenths(each):
    """Return the rows in tenths, or fewer parts, by their prediction: [[rows, mean prediction, mean
    observation, error]]."""
    order = np.argsort(each.predicted, kind="stable")
    n_parts = max(1, min(TENTHS, len(order) // FEWEST))
    return [_numbers_of(each, part) for part in np.array_split(order, n_parts)]


def _numbers_of(each, rows):
    means = (float(numbers[rows].mean()) for numbers in (each.predicted, each.observed))
    return [len(rows), *means, each.error(rows)]


def _large_groups(each, groups):
    """Return the groups of a column that have rows enough: [[label or ends, rows, ...]]."""
    return [[label, *_numbers_of(each, rows)] for label, rows in groups if len(rows) >= FEWEST]


def _groups(column, x):
    """Return the groups of rows by the cells of a column, [(label, rows)]: the most frequent
    levels, the values where these are few, or parts of the range; and missing cells."""
    missing = np.flatnonzero(np.isnan(x))
    if column.levels is not None:
        frequent = np.argsort(-column.shares, kind="stable")[:MOST_GROUPS]
        names = [(k, str(column.levels[k])) for k in np.sort(frequent) if k < len(column.levels)]
        groups = [(name, np.flatnonzero(x == k)) for k, name in names]
    elif column.values is not None and len(column.values) <= MOST_GROUPS:
        groups = [(float(value), np.flatnonzero(x == value)) for value in column.values]
    else:
        ends = np.unique(column.at(np.linspace(0, 1, PARTS + 1)))
        place = np.searchsorted(ends[1:-1], x, side="right")
        place[missing] = -1
        groups = [
            ([low, high], np.flatnonzero(place == k))
            for k, (low, high) in enumerate(pairwise(ends.tolist()))
        ]
    return [*groups, *[("missing", missing)] * bool(len(missing))]
