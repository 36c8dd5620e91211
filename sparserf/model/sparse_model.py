"""The model that every algorithm returns, f(x) = intercept + sum_j coef_j phi_j(x) over the selected features phi_j."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from .._base.arrays import check_no_overflow, namespace, outputs_like
from .._base.floats import methods_as_ieee
from .._base.warnings import warn
from ..features import FeatureSet
from ..losses import PROBABILISTIC
from .base import BaseModel, exponential_within, identity, probabilities, within
from .outputs import describe_limits
from .ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray
    from onnx import ModelProto

    from .._base.types import Array, MatrixLike, Seed
    from ..explain.importances import Importances
    from ..explain.summary import Summary
    from ..export.formula import Formula
    from ..proof.bounds import Bounds
    from ..proof.monotone import Monotonicity
    from ..rows import Block
    from ..sklearn import FittedClassifier, FittedRegressor
    from .box import BoxLike


class ConvergenceWarning(UserWarning):
    """The warning of a fit that stopped before it reached its tolerance; it names the gap, the tolerance and what to change.

    Examples
    --------
    >>> import warnings, numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", srf.ConvergenceWarning)
    ...     model = srf.harfe(X, np.sin(2 * X.ravel()), n_nonzero_coefs=5, rng=0)  # an error where it does not converge
    """


def warn_unconverged(message: str) -> None:
    """Issue a `ConvergenceWarning` that points at the line of the user's call."""
    warn(message, ConvergenceWarning)


@dataclass(frozen=True)
class FitInfo:
    """How a fit went: whether it converged, how far from the optimum it ended, and what it cost.

    Attributes
    ----------
    converged : bool
        Whether the tolerance was reached.
    dual_gap : float
        A bound on the distance of the objective to the optimum of the problem that was solved last. One-vs-rest: the sum.
    objective : tuple of float
        The objective after each iteration, never rising. One-vs-rest: the sum over the classes.
    n_iter : int
        The number of iterations of the algorithm (of `sparse_rf`: batches and, where exact, sweeps over all draws after them).
    n_drawn : int
        The number of features that the fit searched.
    n_nonzero : int
        The number of features in the model.
    alpha : float
        The penalty.
    validation_loss : float, or None where alpha was not chosen by the fit
        The mean loss of the held-out rows (logistic, multinomial: with one row more, of any class), before the last fit to all
        rows. While alpha is searched, the least so far.
    n_projections, n_conjugate : int, or None but for `drp`
        The number of projections of the sketch, and of steps of conjugate gradients in all.
    error_bound : float, or None but for `drp`
        A bound on ``||w - w*|| / ||w*||``, the largest over the outputs.
    fidelity : float, or None but for `distill`
        The share of the variance of the teacher's values that the model gives, on rows that it has not seen.
    progress : float
        The share of the work that is done, an estimate which never falls; 1 at the end.
    cut : dict of str to int
        What the fit ended early or left out for want of time or work, in the plural, and how many: {"searches": 3}, say. Empty
        where nothing was cut.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> info = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0).info
    >>> info.converged, info.n_drawn, info.alpha, bool(info.dual_gap <= 1e-4 * info.objective[-1])
    (True, 500, 0.01, True)
    """

    n_iter: int
    converged: bool
    objective: tuple[float, ...]
    dual_gap: float
    n_drawn: int
    n_nonzero: int
    alpha: float
    validation_loss: float | None = None
    n_projections: int | None = None
    n_conjugate: int | None = None
    error_bound: float | None = None
    progress: float = 1.0
    cut: dict[str, int] = field(default_factory=dict, hash=False)
    fidelity: float | None = None


# What a user may give as callback: a function that is called with the `FitInfo` of a fit so far, and ends the fit by returning
# something true.
Callback: TypeAlias = "Callable[[FitInfo], object] | None"


@methods_as_ieee
@dataclass(frozen=True, eq=False)
class SparseModel(BaseModel):
    """A sparse expansion f(x) = intercept + sum_j coef_j phi_j(x) in selected features phi_j.

    It is what all algorithms and `load` return; immutable, and can be pickled.

    Attributes
    ----------
    coef : ndarray of shape (n_terms,), or (n_outputs, n_terms) for several outputs or more than two classes
        The coefficients of the terms.
    intercept : float, or ndarray of shape (n_outputs,)
    features : FeatureSet
        The selected features alone: predicting costs O(n_terms) a row, whatever the size of the dictionary.
    support : int64 ndarray of shape (n_terms,)
        The index of each term in the dictionary that it was selected from, ascending.
    classes : None, or ndarray of shape (n_classes,)
        The sorted labels of a classifier.
    info : FitInfo
        How the fit went.
    n_features_in : int
        The number of columns of X.
    loss : str
        The name of the loss, one of `sparserf.losses` or of your own.
    loss_parameters : dict
        The parameters of the loss, {name: number}, including parameters that the fit chose.
    link : {"identity", "log", "softmax"}
        What `predict` returns: f, or e^f with "log". With "softmax" `predict_proba` returns the softmax of f.
    lower, upper : float or None
        The least and the largest f, of all outputs: decision values beyond, offset included, are set to them. None: no limit.
        With the link "log" they are the logarithms of the limits of predictions. Whatever explains a model by its terms, such
        as `shapley`, `importances`, `effects` and `summary`, is about f before it is limited.
    ranges : mapping of int to (float, float)
        The least and the largest number that training rows of positive weight have in each column of numbers that terms see,
        {index: (least, largest)}; an entry that CSR rows do not store is 0, and NaN is left out. Empty where no rows were seen.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    >>> model = srf.harfe(X, np.sin(3 * X[:, 0]) * X[:, 1], n_nonzero_coefs=40, rng=0)
    >>> f = model.intercept + model.features.transform(X) @ model.coef  # all that it is
    >>> bool(np.allclose(f, model.predict(X))), len(model.coef)
    (True, 40)
    """

    coef: NDArray[np.float64]
    intercept: float | NDArray[np.float64]
    support: NDArray[np.int64]
    features: FeatureSet
    loss: str
    classes: np.ndarray | None
    info: FitInfo
    loss_parameters: dict[str, bool | int | float | str | None] = field(default_factory=dict)
    link: Literal["identity", "log", "softmax"] = "identity"
    lower: float | None = None
    upper: float | None = None
    ranges: Ranges = field(default_factory=Ranges.of_nothing)

    def __repr__(self) -> str:
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        about = f"{kind}, {len(self.features)} terms, {self.n_features_in} inputs, loss={self.loss!r}"
        return f"SparseModel({', '.join(filter(None, [about, describe_limits(self)]))})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def to_give_away(self) -> SparseModel:
        """The model with the names and kinds of columns that no term uses, and nothing else about their cells in training.

        Files, pickles and exports are made of it. The model itself keeps the encodings of all columns: a fit may start from it.
        """
        features = self.features.seeing_only_what_they_use()
        seen = self.features.columns_seen
        return self if features is self.features else replace(self, features=features, ranges=self.ranges.of(seen))

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.to_give_away.__dict__)

    @property
    def n_features_in(self) -> int:
        return self.features.n_features_in

    @property
    def feature_names_in_(self) -> tuple[str, ...] | None:
        """The names of the columns of the data frame that the model was fitted to; None for an array."""
        return self.features.feature_names_in_

    def decision_function(self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None) -> np.ndarray:
        """Compute the decision values f(x), from which `predict` makes labels or regression values.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,), or (n_samples, n_outputs) for several real targets; or None, default None
            What is added to f, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_outputs) for several outputs or more than two classes
            Within `lower` and `upper`, offset included. float32 for float32 X, float64 for all else.
        """
        return self._map_decisions(X, workers, identity, offset)

    def predict_proba(self, X: MatrixLike, workers: int = 1, *, offset: ArrayLike | None = None) -> np.ndarray:
        """Compute the probability of each class, with the logistic or the multinomial loss only.

        For more than two classes it is the softmax of the decision values with loss="multinomial"; with loss="logistic" the
        one-vs-rest probabilities are scaled to sum to 1.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        offset : array of shape (n_samples,) or None, default None
            What is added to f, the log odds of the second of two classes, as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes`.

        Raises
        ------
        ValueError, TypeError
            The model has another loss: see `calibrated`. X does not fit the model, or offset not the rows.
        """
        if self.loss not in PROBABILISTIC:
            names = " or ".join(f"loss={name!r}" for name in PROBABILISTIC)
            raise ValueError(f"predict_proba needs a model fitted with {names}, this one has loss={self.loss!r}")
        return self._map_decisions(X, workers, partial(probabilities, self.link), offset)

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of f, (lower, upper); infinite where there is none."""
        return -np.inf if self.lower is None else self.lower, np.inf if self.upper is None else self.upper

    @property
    def limits_of_predictions(self) -> tuple[float, float]:
        """The limits of what `predict` returns, (lower, upper): those of f or, with the link "log", e to the power of them."""
        with np.errstate(over="ignore"):
            lower, upper = np.exp(self.limits) if self.link == "log" else self.limits
        return float(lower), float(upper)

    @property
    def has_limits(self) -> bool:
        """Whether f has a limit."""
        return self.lower is not None or self.upper is not None

    @property
    def _inverse_link(self) -> Callable[[Array], Array]:
        if self.link == "log" and self.has_limits:
            return partial(exponential_within, *self.limits_of_predictions)
        return super()._inverse_link

    def _map_decisions(self, X, workers, finish, offset):
        rows = self.features.rows_of(X, workers)
        limits = self.limits if self.has_limits else None
        decide = partial(_decide, self.features, self.coef, self.intercept, limits, rows.dtype, finish)
        return rows.to_namespace_of_X(rows.map(decide, *self._read_offset(offset, X, rows.n_rows), axis=0))

    def summary(self, X: MatrixLike | None = None, *, n_terms: int = 10, rng: Seed = 0) -> Summary:
        """Summarize the model: what it is, how its fit went, how much its inputs matter, and its largest terms.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in), or None, default None
            Rows over which `importances` measures the inputs. None: inputs are only named, since how much each of them matters
            depends on rows; terms have their sizes ``|coef| sup|phi|`` in either case.
        n_terms : int, default 10
            The number of the largest terms to show, at least 0.
        rng : None, int or numpy.random.Generator, default 0
            Seed, as in `importances`; without X not used.

        Returns
        -------
        Summary
            Prints as a table; its fields are the numbers.

        Raises
        ------
        ValueError, TypeError
            X does not fit the model, or n_terms is negative.

        Notes
        -----
        Time O(n_terms) without X, else that of `importances`.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
        >>> model = srf.mfga(X, 3 * X[:, 0] + X[:, 1] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.summary(n_terms=1))
        SparseModel: regression, loss 'squared'
        2 terms (2 identity) of 2 of 3 inputs, intercept 1
        fit: converged to its tolerance, penalty alpha 1e-09
        <BLANKLINE>
        inputs that terms see; how much each matters depends on rows: summary(X)
          x0, x1
        <BLANKLINE>
        largest terms, with the inputs of most weight, by |coef| sup|phi|: how far each can move f, at inputs of one unit
                  3  x0
        """
        from ..explain.summary import summary

        return summary(self, X, n_terms, rng)

    def importances(
        self, X: MatrixLike, background: MatrixLike | None = None, *, n_rows: int = 1000, n_permutations: int = 32,
        rng: Seed = 0, output: object = None,
    ) -> Importances:  # fmt: skip
        """Measure how much each input matters to the model, by its share of the mean size of all Shapley values.

        With phi_ij the Shapley value of input j in row i, in units of `decision_function`, the `value` of j is the mean of
        ``|phi_ij|`` over the rows; for several outputs the sum of these means, each in its output's own units. Its `share` is
        its value divided by the sum of the values of all inputs: no share is negative, and they add up to 1. `summary`,
        `plot.effects` and the `feature_importances_` of estimators show these shares, and order inputs by them.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            The background of the Shapley values, as in `shapley`.
        n_rows : int, default 1000
            The most rows of X that are used, at least 2, drawn by rng.
        n_permutations : int, default 32
            As in `shapley`.
        rng : None, int or numpy.random.Generator, default 0
            Seed of all that is random, the rows too. 0: the same at each call.
        output : label of a class, int, or None, default None
            The one output to measure, as in `plot.effects`. None: all outputs together.

        Returns
        -------
        Importances
            Prints as a table, the input of the largest share first. Its arrays `share` and `value` are of shape
            (n_features_in,), 0 for an input that the model does not use; `order` has the inputs by their shares.

        Raises
        ------
        ValueError, TypeError
            As in `shapley`; n_rows is below 2; the model has no such output.

        Notes
        -----
        Time as `shapley`.

        References
        ----------
        S. M. Lundberg, S.-I. Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = srf.mfga(X, 2 * X[:, 0] - X[:, 1], features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.importances(X, X))
                       share   |Shapley|
        x0            68.1 %       1.027
        x1            31.9 %      0.4809
        """
        from ..explain.importances import importances

        return importances(self, X, background, n_rows, n_permutations, rng, output)

    def shapley(
        self, X: MatrixLike, background: MatrixLike | None = None, *, n_permutations: int = 32, rng: Seed = None
    ) -> np.ndarray:
        """Compute Shapley values: how much each input of a row moves `decision_function` from its mean over background rows.

        The value of a set S of inputs is the mean over the background rows b of f(x_S, b_rest): the inputs in S are those of
        x, all others those of b. The Shapley value of an input is what it adds to the value of the inputs before it, on average
        over all orders of the inputs.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            Rows that represent the distribution of X. None: 200 random rows of X, or all where there are fewer.
        n_permutations : int, default 32
            The number of orders, at least 2, that are drawn for each term of more than ten inputs.
        rng : None, int or numpy.random.Generator, default None
            Seed of these orders, and of the rows of the background where that is None.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, n_outputs) for several outputs
            float64. The values of a row add up to f(x) minus the mean of f over the background, but for rounding. Here f is
            before `lower` and `upper`.

        Raises
        ------
        ValueError, TypeError
            X or background does not fit the model, background has no rows or is not given where X is one row, or n_permutations
            is below 2.

        Notes
        -----
        The values of f are the sums of the values of its terms; the value of a term is 0 for an input on which it does not
        depend. For terms of up to ten inputs, and linear terms, the values are exact for this background. For other terms
        random orders of the inputs are drawn, in pairs of one and its reverse; of a cosine, a bump, or a product of `Taylor`,
        only the part that comes from dependence among the background's inputs is sampled, since the part of independent
        inputs is an integral of a polynomial.

        The mean over background rows is not taken anew for each row: exp(i w'x) is a product over inputs, and so is a bump, so
        that one number for each set of inputs says all about the background; for steps its rows are sorted. Time for a term of
        q inputs, n rows and m background rows: O(2^q (n + m)) where q <= 10, else O(n_permutations q (n + m)); with "tanh" n m
        in place of n + m. Memory O(n d) and some tens of megabytes.

        References
        ----------
        S. M. Lundberg, S.-I. Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017. E. Strumbelj, I. Kononenko,
        Explaining Prediction Models and Individual Predictions with Feature Contributions, 2014.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = srf.sparse_rf(X, np.sin(3 * X[:, 0]) * X[:, 1], features="gaussian", alpha=0.01, rng=0)
        >>> values = model.shapley(X[:2], X)
        >>> np.allclose(values.sum(axis=1), model.predict(X[:2]) - model.predict(X).mean())
        True
        """
        from ..explain.shapley import shapley

        return shapley(self, X, background, n_permutations, rng)

    def bounds(
        self, box: BoxLike | None = None, *, tol: float = 1e-3, time_limit: float | None = 10.0, output: object = None
    ) -> Bounds:
        """Bound the least and the largest value of f over a box of rows: two intervals that are proved to hold them.

        Parameters
        ----------
        box : mapping or None, default None
            {name or index of a column: part}. The part of a column of numbers is (low, high), or a number; of dates, durations
            or times of day these, or numbers of days; of a category a level, or a list of levels; None is a missing cell, also
            in a list of levels. Columns that are left out have the range of the training rows, `ranges`, or all known levels.
        tol : float, default 1e-3
            How wide the two intervals may be, relative to the range of f over the box, at least 0.
        time_limit : float or None, default 10.0
            The seconds that the call may take, > 0. At the limit the intervals are wider, and as true. None: any time, until a
            million boxes are left.
        output : label of a class, int, or None, default None
            The output that is bounded, where a model has several, as in `plot.effects`.

        Returns
        -------
        Bounds
            With the intervals `least` and `largest`, and rows `at_least` and `at_largest` at which f is nearly so. f is the
            decision function: where the link is the log, predictions lie between e to the power of the bounds.

        Raises
        ------
        ValueError, TypeError
            box names a column or level that there is not, has an interval that is empty or not finite, or leaves out a column
            whose range is not known; tol or time_limit is out of its range; the model has several outputs and no `output`.

        Notes
        -----
        Branch and bound: on each of many boxes the terms lie below linear functions, whose largest value is known. The bounds
        hold for the real numbers that the parameters of the model define, with every rounding of the computation counted in a
        margin: some n_terms units in the last place of the sum of all ``|coef| sup|phi|``. At a step both values count, also
        where rows of floating-point numbers reach one of them only.

        Time grows with the number of columns that interact: exponentially where f is not monotone in them, and not at all in
        those in which it is.

        References
        ----------
        H. Zhang et al., Efficient Neural Network Robustness Certification with General Activation Functions, 2018. A. H. Land,
        A. G. Doig, An Automatic Method of Solving Discrete Programming Problems, 1960.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(X, 3 * X[:, 0] + X[:, 1] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.bounds({0: (0, 1), 1: (0, 1)}))
        bounds of f over the box, proved
          least in   [1, 1]
          largest in [5, 5]
          near the least:   x0 = 0, x1 = 0
          near the largest: x0 = 1, x1 = 1
          4 boxes
        """
        from ..proof.bounds import bounds

        return bounds(self, box, tol, time_limit, output)

    def is_monotone(
        self, column: str | int, box: BoxLike | None = None, *, sign: Literal[1, -1] | None = None,
        time_limit: float | None = 10.0, output: object = None,
    ) -> Monotonicity:  # fmt: skip
        """Tell whether f is monotone in a column of numbers over a box of rows: proved, refuted by two rows, or open.

        Parameters
        ----------
        column : str or int
            The name or the index of the column.
        box : mapping or None, default None
            As in `bounds`.
        sign : 1, -1 or None, default None
            Whether f is to rise or to fall with the column. None: the result says which of both holds, if one does.
        time_limit : float or None, default 10.0
            The seconds that the call may take, > 0; None: any time, until a million boxes are left.
        output : label of a class, int, or None, default None
            The output, where a model has several, as in `plot.effects`.

        Returns
        -------
        Monotonicity
            Its `status` is "proved", "refuted" or "open"; as a condition it is true where monotonicity is proved. f is monotone
            if it never moves against the sign; it may be constant.

        Raises
        ------
        ValueError, TypeError
            column is none of the model's, or a category; sign is another number; or as in `bounds`.

        Notes
        -----
        If every term that sees the column is monotone in it with the right sign, that is the proof, for all rows of the box.
        Otherwise the box is halved until the derivative has the sign on each part, and no step goes against it. A point where
        the derivative is 0, but not on either side, may stay open. Rounding is counted as in `bounds`. Limits of f are regarded
        in refutations, and not in proofs.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(X, 3 * X[:, 0] + X[:, 1] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> model.is_monotone(0, {0: (-1, 1), 1: (-1, 1)})
        proved: f rises with x0 over the box
        """
        from ..proof.monotone import is_monotone

        return is_monotone(self, column, box, sign, time_limit, output)

    def gradient(self, X: MatrixLike, workers: int = 1, *, output: object = None) -> np.ndarray:
        """Compute the derivatives of `decision_function` by each column, at the rows of X.

        They are those of f. With the log link the prediction e^f has the derivatives e^f df/dx, and a probability
        p = 1 / (1 + e^-f) has p (1 - p) df/dx.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        output : label of a class, int, or None, default None
            The one output to differentiate, as in `plot.effects`. None: all.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_outputs, n_features_in) for several outputs
            float32 for float32 X, float64 for all else; dense also where X is CSR; in the namespace or on the device of X.

        Raises
        ------
        ValueError, TypeError
            X does not fit the model, its features overflow, or the model has no such output.

        Notes
        -----
        Where f has a kink, the derivative is one-sided: at a knot of an encoding and at the center of a bump that on the right,
        at the kink of a relu that of the side on which it rises. Steps have derivative 0, also at the step. The derivative is
        0 where the cell is missing, by a category (a difference of levels is no derivative; `plot.effects` shows them), and
        where f is beyond `lower` or `upper`.

        Rows are taken some at a time, and no matrix of all rows by all terms is stored. Time: that of predicting the rows and
        of a product of n_samples n_terms n_features_in multiplications; bumps are compared with each of their inputs.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(X, 3 * X[:, 0] - X[:, 1], features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> model.gradient(X[:2]).round(6)
        array([[ 3., -1.],
               [ 3., -1.]])
        """
        from ..calculus.derivatives import gradient

        return gradient(self, X, workers, output)

    def hessian_diag(self, X: MatrixLike, workers: int = 1, *, output: object = None) -> np.ndarray:
        """Compute the second derivatives of `decision_function` by each column, d2f/dx_j^2, at the rows of X.

        Parameters
        ----------
        X, workers, output
            As in `gradient`.

        Returns
        -------
        ndarray
            Of the shape and dtype that `gradient` has.

        Raises
        ------
        ValueError, TypeError
            As in `gradient`.

        Notes
        -----
        Kinks and steps are treated as in `gradient`: no second derivative is infinite. Time as that of `gradient`, twice where
        encodings are curved.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=1e-3, n_components=500, rng=0)
        >>> bool(np.abs(model.hessian_diag(X) + 4 * np.sin(2 * X))[20:-20].max() < 0.3)
        True
        """
        from ..calculus.derivatives import hessian_diag

        return hessian_diag(self, X, workers, output)

    def integral(
        self, box: BoxLike | None = None, *, output: object = None
    ) -> tuple[float | np.ndarray, float | np.ndarray]:  # fmt: skip
        """Integrate `decision_function` over a box of rows.

        It is `mean` times the product of the lengths of all intervals that are no points; of categories, the mean of their
        levels is taken.

        Parameters
        ----------
        box, output
            As in `mean`.

        Returns
        -------
        value, error : float, or ndarray of shape (n_outputs,) for several outputs
            As in `mean`.

        Raises
        ------
        ValueError, TypeError
            As in `mean`.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.mfga(X, 2 * X.ravel() + 1, features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0)
        >>> value, error = model.integral({0: (0, 2)})
        >>> round(value, 6), bool(error < 1e-14)
        (6.0, True)
        """
        from ..calculus.integrals import integral

        return integral(self, box, output)

    def mean(
        self, box: BoxLike | None = None, *, output: object = None
    ) -> tuple[float | np.ndarray, float | np.ndarray]:  # fmt: skip
        """Compute the mean of `decision_function` over a box of rows, whose columns are independent and uniform.

        Columns that are given as numbers are fixed: the mean is then one over the other columns, given these.

        Parameters
        ----------
        box : mapping of names or indices of columns to parts, or None, default None
            A part is (low, high), a number, a level, a list of levels, which count equally, or None, a missing cell; of dates
            as in `bounds`. Columns that are left out have the range of the training rows, or all known levels.
        output : label of a class, int, or None, default None
            The one output, as in `plot.effects`. None: all.

        Returns
        -------
        value, error : float, or ndarray of shape (n_outputs,) for several outputs
            The mean, and how far it may be off. Closed forms: a bound of rounding. Sums over nodes: the difference between
            rules of n and of 2 n nodes, an estimate. Sobol' points: three standard errors.

        Raises
        ------
        ValueError, TypeError
            The box names a column that there is not or one twice, an interval is reversed or not finite, a level is unknown, a
            part has another type than its column; a column is left out whose range is not known; no such output.

        Notes
        -----
        Linear terms, cosines and bumps have closed forms where encodings are linear or linear between knots; where they are
        curved (beyond the reach of the training rows, or clipped), Gauss-Legendre nodes are used, as for products of `Taylor`.
        tanh, relu and steps of w'x are integrated over one column in closed form; relu and steps over all, where cancellation
        does not forbid it; over the others by nodes. Terms that would take more than two million nodes (of many inputs) are
        averaged over Sobol' points together, as is f of a model with `lower` or `upper`. Deterministic.

        References
        ----------
        I. M. Sobol', On the distribution of points in a cube and the approximate evaluation of integrals, 1967.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> model = srf.harfe(X, np.sin(3 * X[:, 0]) * X[:, 1], n_nonzero_coefs=40, rng=0)
        >>> value, error = model.mean({0: (0, 1), 1: 0.5})
        >>> bool(abs(value - 0.5 * (1 - np.cos(3)) / 3) < 0.02), bool(error < 1e-10)
        (True, True)
        """
        from ..calculus.integrals import mean

        return mean(self, box, output)

    def formula(
        self, language: Literal["text", "latex", "python", "sql", "sympy", "jax"] = "text", n_terms: int | None = None, *,
        digits: int | None = None, table: str | Sequence[str] = "data", keep: Sequence[str] = (),
    ) -> Formula:  # fmt: skip
        """Write the model out: to read, as text or LaTeX, or to run elsewhere, as Python, SQL, SymPy or JAX.

        Parameters
        ----------
        language : {"text", "latex", "python", "sql", "sympy", "jax"}, default "text"
            - "text", "latex" : a formula to read. Numbers are rounded, terms far below the printed digits of the largest are
              left out, and neither knots nor more than 12 levels are listed; the formula notes what is left out.
            - "python" : source that needs NumPy alone, with functions `decision_function`, `predict` and, with the logistic or
              multinomial loss, `predict_proba`. They take X as an array; where the model was fitted to a data frame, as a data
              frame or a dictionary of arrays; and compute in float64.
            - "sql" : a SELECT for SQLite from 3.35, DuckDB, and PostgreSQL from 12: standard SQL but for MATERIALIZED, and
              SQRT, EXP, COS, SIN and TANH where terms need them. Columns of an array are "x0", "x1", ...; a missing cell is
              NULL or NaN, an infinite number counts as missing, and a boolean is 0 or 1. It gives `prediction`, as `predict`
              does, for several targets `prediction_0`, ...; for a classifier the label and, beside it, "probability_LABEL" of
              each class as `predict_proba` gives it, or, with losses that have no probabilities, "decision_LABEL" as
              `decision_function` gives it, of two classes for the second. Numbers are in double precision.
            - "sympy" : source that defines `f`, a SymPy expression of decision values, or a list of one for each output, in
              symbols named like the columns; for rows without missing cells. SymPy takes minutes for encodings of many knots.
            - "jax" : source that defines `decision_function(x)`, of one row or of rows of numbers, for `jax.jit`, `jax.grad`
              and `jax.vmap`; in float32 unless JAX is set to 64 bits. In both, a category is the place of its level in
              `levels`, and -1 where the level is another.
        n_terms : int or None, default None
            The number of terms to write, at least 0, the largest by ``|coef| sup|phi|``; the formula says how many are left
            out. None: all.
        digits : int or None, default None
            Significant digits. None: 4 to read; to run, as many as read back to the same bits.
        table : str or sequence of str, default "data"
            The table that the SQL reads, "table" or "schema.table"; a sequence of its parts where one of them has a dot.
        keep : sequence of str, default ()
            Columns of that table that the SQL gives before the prediction, such as a key: tables have no order.

        Returns
        -------
        str
            Interpreters show it in its lines, notebooks as typeset mathematics or highlighted code.

        Raises
        ------
        ValueError, TypeError
            An argument is not as above; table or keep is given for another language than SQL, or is no identifier; keep names
            a column as another or as a result is named; the SQL reads two columns whose names differ in case alone, which most
            engines take as one, or names or levels that are empty or no text; it needs more than the 1,600 columns in a SELECT
            that engines allow, or the model has more than 750 classes.

        Notes
        -----
        Where phases overflow, `predict` has a rule, and code has none. Time O(entries of the weights).

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(X, 3 * X[:, 0] + X[:, 1] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.formula(digits=3))
        f = 1
          + 3 x0
          + 1 x1
        >>> model.formula("sql", table="lab.rows", keep=["id"]).endswith('AS prediction\\nFROM "lab"."rows" AS r')
        True
        """
        from ..export.formula import formula

        return formula(self, language, n_terms, digits, table, keep)

    def input_usage(self) -> np.ndarray:
        """Return the share of the selected features that use each input, shape (n_features_in,)."""
        return self.features.input_usage()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file; `load` reads it back to the same predictions, bit for bit.

        Parameters
        ----------
        path : str or path
            Where the file goes, an uncompressed .npz: an ending that the path lacks is added.

        Raises
        ------
        ValueError
            The model has more than 2**27 inputs, and more than the file would hold numbers: `load` would refuse it.
        """
        from .file import save

        save(self, path)

    def to_json(self) -> str:
        """Write the model as JSON text; `from_json` reads it back to the same predictions, bit for bit.

        Returns
        -------
        str
            The metadata of the file that `save` writes, and under "arrays" the dtype, shape and values of each array. A number
            takes some twenty characters, where the file has eight bytes.

        Raises
        ------
        ValueError
            The model has more inputs than `save` writes.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0)
        >>> again = srf.SparseModel.from_json(model.to_json())
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        from .file import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a model from text that `to_json` made. The text is not trusted: it is checked as `load` checks a file.

        Parameters
        ----------
        text : str

        Returns
        -------
        SparseModel

        Raises
        ------
        ValueError
            The text is not a whole, consistent model, or has an array of more than 16 bytes for each character of the text
            and a megabyte.
        TypeError
            text is not a string.

        Examples
        --------
        >>> import sparserf as srf
        >>> srf.SparseModel.from_json("{}")
        Traceback (most recent call last):
        ValueError: text is not a model: ValueError: text has no format number: it is not a model
        """
        from .file import from_json

        return from_json(text)

    def to_c(self, path: str | PathLike[str] | None = None, *, name: str = "predict") -> str:
        """Write the model as a file of C99 that needs the C library alone; see docs/export.md, and the example in `to_onnx`.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        name : str, default "predict"
            The name of the function that predicts a row; the names of the others begin with it.

        Returns
        -------
        str
            The text of the file, of O(n_terms n_features_in) numbers.

        Raises
        ------
        ValueError
            name is none in C, or is one that C or the file itself uses.
        """
        from ..export.c import to_c

        return to_c(self, path, name)

    def to_sql(
        self, path: str | PathLike[str] | None = None, *, table: str | Sequence[str] = "data", keep: Sequence[str] = ()
    ) -> str:
        """Write the model as a SELECT statement for SQLite, DuckDB and PostgreSQL; see `formula`, and docs/export.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        table : str or sequence of str, default "data"
            The table that it reads, "table" or "schema.table"; a sequence of its parts where one of them has a dot.
        keep : sequence of str, default ()
            Columns of that table that it gives before the prediction, such as a key: tables have no order.

        Returns
        -------
        str
            The text of the file, which is `formula("sql", table=table, keep=keep)`.

        Raises
        ------
        ValueError, TypeError
            As in `formula`.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> model = srf.mfga(np.eye(3), [1.0, 2.0, 3.0], n_nonzero_coefs=1, rng=0)
        >>> model.to_sql(table="lab.rows", keep=["id"]) == model.formula("sql", table="lab.rows", keep=["id"])
        True
        """
        from ..export.sql import to_sql

        return to_sql(self, path, table, keep)

    def to_onnx(
        self, path: str | PathLike[str] | None = None, *, dtype: Literal["float32", "float64"] = "float32"
    ) -> ModelProto:
        """Write the model as an ONNX graph, for any runtime of that format; see docs/export.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        dtype : {"float32", "float64"}, default "float32"
            The precision of inputs and outputs, and of cosines, sines, tanh and the exponentials of bumps; all else is in
            double precision.

        Returns
        -------
        onnx.ModelProto
            Of O(n_terms n_features_in) numbers.

        Raises
        ------
        ImportError
            The package onnx is not installed: `pip install sparserf[onnx]`.
        ValueError
            dtype is another; or a column has no name, or levels that an input cannot tell apart.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> model = srf.mfga(np.eye(3), [1.0, 2.0, 3.0], n_nonzero_coefs=1, rng=0)
        >>> [output.name for output in model.to_onnx().graph.output]
        ['variable']
        >>> "double price(const double *x);" in model.to_c(name="price")
        True
        """
        from ..export.onnx import to_onnx

        return to_onnx(self, path, dtype)

    def to_estimator(self) -> FittedRegressor | FittedClassifier:
        """Make a fitted scikit-learn estimator of this model, with `predict`, `score` and all that is built on them.

        Returns
        -------
        sparserf.sklearn.FittedRegressor or FittedClassifier
            Fitting it, or a clone of it, changes nothing.

        Raises
        ------
        ImportError
            scikit-learn is not installed.
        """
        from ..sklearn import to_estimator

        return to_estimator(self)


@np.errstate(over="ignore")  # values too large for the dtype of X become infinite
def _decide(
    features: FeatureSet, coef: np.ndarray, intercept: float | np.ndarray, limits: tuple[float, float] | None,
    dtype: np.dtype, finish: Callable[[Array], Array], block: Block, *offset: Array,
) -> Array:  # fmt: skip
    """Return finish(f) for a block of rows, where f = Phi coef + intercept has the dtype of X and a line for each row.

    offset : nothing, or the one offset that is added to f
    limits : the limits of f, offset included; None: none
    """
    f = check_no_overflow(block.apply(features, coef))
    f = f + outputs_like(intercept, f)
    for each in offset:
        f = f + each
    if isinstance(f, np.ndarray):
        f = f.T.astype(dtype, copy=False)
    else:
        xp = namespace(f)
        f = xp.astype(f if f.ndim == 1 else f.T, getattr(xp, dtype.name), copy=False)
    return finish(f if limits is None else within(*limits, f))
