"""Sums of one pass over the rows: they add up, and any method can be fitted to them.

A fit to sums calls the method with a few rows that have the same means and second moments as all
the rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.calls import checks_call
from .._base.floats import as_ieee, methods_as_ieee
from ..algorithms.registry import REGISTRY
from ..expansion.ranges import Ranges
from ..features import FeatureSet, Linear, are_same, check_any_sign, default_batch_size
from ..model import SparseModel, check_model
from .moments import Moments, read_moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, T

# The functions that can be fitted to sums, each with its algorithm.
METHODS = {
    function: algorithm for algorithm in REGISTRY.values() for function in algorithm.functions
}
# Their arguments that concern the rows, which are summed up, or that draw or transform features,
# which are given. `Sums.fit` refuses both.
ARGUMENTS_OF_ROWS = "X", "y", "sample_weight", "offset", "groups"
ARGUMENTS_OF_FEATURES = (
    "features",
    "gamma",
    "n_components",
    "nu",
    "activation",
    "order",
    "best_phase",
    "rng",
)


@methods_as_ieee
class Sums:
    """Sums over rows of features and targets, from which many models can be fitted.

    They are all that the squared loss needs: fits with any penalty, by any of the functions, and
    the error of a model on these rows read the rows no more. Sums of different rows add up,
    wherever and whenever these were read; the sums of all rows less those of a fold are the sums of
    the training rows. Made by `Sums.of` and `Sums.of_folds`; they can be pickled.

    Attributes
    ----------
    features : FeatureSet
        The D features.
    weight : float
        The sum of the sample weights; the number of rows if there are none.
    mean : ndarray of shape (D + n_outputs,)
        Weighted mean of each feature, and after them of each target.
    covariance : ndarray of shape (D + n_outputs, D + n_outputs)
        Weighted covariance around these means, divided by `weight`.

    Notes
    -----
    Everything is float64, and means are subtracted before anything is multiplied, so that large
    means do not cancel. Still, these are sums of squares: of a target, or of a combination of
    features, nothing is known below about 1e-7 of its standard deviation. Where the residuals of a
    model are smaller, fit the rows themselves.

    Memory O(D^2), however many rows there are.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (3000, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(3000)
    >>> features = srf.Fourier(gamma=1.0).draw(300, 2, rng=0)
    >>> folds = srf.Sums.of_folds(X, y, features, np.arange(3000) % 5)  # the one pass
    >>> whole, sizes, errors = sum(folds), [10, 30, 100], np.zeros(3)
    >>> for fold in folds:
    ...     models = (whole - fold).fit(srf.harfe_path, n_nonzero_coefs=sizes, alpha=1e-4)
    ...     errors += [fold.mean_loss(model) for model in models]
    >>> model = whole.fit(srf.harfe, n_nonzero_coefs=sizes[np.argmin(errors)], alpha=1e-4)
    >>> len(model.features), bool(np.mean((model.predict(X) - y) ** 2) < 0.02 * y.var())
    (100, True)
    """

    features: FeatureSet
    weight: float
    mean: np.ndarray
    covariance: np.ndarray

    def __init__(self, features: FeatureSet, moments: Moments, one_output: bool):
        self.features, self._moments, self._one_output = features, moments, one_output
        self.weight, self.mean, self.covariance = moments.weight, moments.mean, moments.covariance
        if not all(
            np.isfinite(values).all() for values in (self.weight, self.mean, self.covariance)
        ):
            raise ValueError(
                "X, y and sample_weight must be of moderate size, got values whose sums overflow: "
                "scale them"
            )

    @classmethod
    @checks_call
    def of(
        cls,
        X: MatrixLike,
        y: ArrayLike,
        features: FeatureSet,
        *,
        sample_weight: ArrayLike | None = None,
        workers: int = 1,
    ) -> Self:
        """Sum up all rows of X in one pass.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features_in), Chunks, or dask collection
            Rows in memory, on a device, on disk or on a cluster, as all functions take them.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            The targets.
        features : FeatureSet
            The features, already drawn.
        sample_weight : array of shape (n_samples,) or None, default None
            Nonnegative weights.
            Unlike in the functions that fit, their size matters, relative to the rows of other
            sums.
        workers : int, default 1
            Threads; -1 for all cores. The result is the same, bit for bit, for any number.

        Returns
        -------
        Sums

        Raises
        ------
        ValueError, TypeError
            If an argument is out of its range or of another type: NaN or infinity, shapes that do
            not match, an empty FeatureSet, features that ask for coefficients of at least 0,
            weights that are all zero, values whose squares overflow.

        Notes
        -----
        One pass, in time O(n D (d + D)) for n rows of d inputs. Memory, beyond X: O(n + D^2), and
        blocks of some megabytes a worker. For float32 X the features are float32, and their
        products float64.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> today, tomorrow = (
        ...     srf.Sums.of(rows, rows[:, 0] - 2, srf.Linear().draw(None, 3))
        ...     for rows in (X[:150], X[150:])
        ... )
        >>> model = (today + tomorrow).fit(srf.mfga, n_nonzero_coefs=1, alpha=0.0)
        >>> (
        ...     model.support.tolist(),
        ...     [round(number, 9) for number in (*model.coef.tolist(), model.intercept)],
        ... )
        ([0], [1.0, -2.0])
        """
        return cls.of_folds(X, y, features, None, sample_weight=sample_weight, workers=workers)[0]

    @classmethod
    @checks_call
    def of_folds(
        cls,
        X: MatrixLike,
        y: ArrayLike,
        features: FeatureSet,
        folds: ArrayLike | None,
        *,
        sample_weight: ArrayLike | None = None,
        workers: int = 1,
    ) -> list[Self]:
        """Sum up the rows of each fold of X, in one pass over all rows.

        Parameters
        ----------
        X, y, features, sample_weight, workers
            As in `of`.
        folds : array of shape (n_samples,), of integers 0 to K - 1; or None
            The fold that each row is in. None: all rows are in one.

        Returns
        -------
        list of K Sums

        Raises
        ------
        ValueError, TypeError
            As `of`, and if a fold has no row of positive weight.

        Notes
        -----
        Time as `of`, but O(n D (K + d + D)); for an array on a device K times that. Memory K times
        that of `of`, and K numbers a row of a block.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> [
        ...     fold.weight
        ...     for fold in srf.Sums.of_folds(
        ...         X, X[:, 0], srf.Linear().draw(None, 3), np.arange(200) // 80
        ...     )
        ... ]
        [80.0, 80.0, 40.0]
        """
        if not isinstance(features, FeatureSet):
            raise TypeError(
                "features must be a FeatureSet, as a map's draw(...) returns it, got "
                f"{type(features).__name__}"
            )
        check_any_sign(features, "Sums")
        moments, one_output = read_moments(X, y, features, folds, sample_weight, workers)
        return [cls(features, of_fold, one_output) for of_fold in moments]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of pickles what can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "_mean_and_rows"}

    def __repr__(self) -> str:
        outputs = len(self.mean) - len(self.features)
        return (
            f"Sums({len(self.features)} features, {outputs} target{'s'[: outputs > 1]}, "
            f"weight={self.weight:g})"
        )

    def __add__(self, other: Sums | int) -> Sums:
        """Return the sums over the rows of both."""
        if isinstance(other, Sums):
            return self._combine(other, Moments.merge)
        # sum() starts from 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Sums) -> Sums:
        """Return the sums over the rows that are not in other, all of whose rows must be in these.

        Rounding is relative to all that was there: where only few of many rows are left, add these
        up instead.
        """
        return self._combine(other, Moments.subtract) if isinstance(other, Sums) else NotImplemented

    @as_ieee
    def _combine(self, other, combine):
        """Return combined sums, which must have the same features and as many targets."""
        if not are_same(self.features, other.features):
            raise ValueError(
                f"both sums must be of the same features, got {self.features!r} and "
                f"{other.features!r}"
            )
        if len(self.mean) != len(other.mean):
            outputs = (len(each.mean) - len(self.features) for each in (self, other))
            raise ValueError("both sums must have as many targets, got {} and {}".format(*outputs))
        return Sums(
            self.features,
            combine(self._moments, other._moments),
            self._one_output and other._one_output,
        )

    def fit(self, method: Callable[..., T], **options: Any) -> T:
        """Fit by a function of this library to the rows, from their sums.

        Parameters
        ----------
        method : function
            `sparse_rf`, `sparse_rf_path`, `harfe`, `harfe_path`, `mfga` or `mfga_path`, which
            choose among the features; `drp` or `drp_path`, which take them all.
        **options
            Arguments of the function, except those that are about the rows or that draw features:
            X, y, sample_weight, offset, groups, features, gamma, n_components, nu, activation,
            order, best_phase, and (except for `drp`) rng; for `drp` scale. The loss must be the
            squared loss. `sparse_rf` and `drp` need alpha, `harfe` and `mfga` need n_nonzero_coefs
            and alpha, and their paths n_nonzero_coefs, as their defaults look at the rows.

        Returns
        -------
        SparseModel, or list of SparseModel
            What the function returns for all rows with ``features=sums.features``, up to rounding,
            which the tolerance of the function allows for. `predict` takes rows of X. For `drp` it
            is what the function returns for the matrix of all features.

        Raises
        ------
        ValueError, TypeError
            As the function; for another function or loss, an argument that the sums cannot answer,
            or a missing one that they need.

        Warns
        -----
        ConvergenceWarning
            As the function.

        Notes
        -----
        The function is called with at most D + 1 + n_outputs rows that have the same means and
        second moments, so that whatever it says of the squared loss, and of the sizes of features,
        holds for the real rows. Making them takes D^3 / 3 multiplications, once; a fit then takes
        the time of the function for so few rows, and with max_iter=None its bound for so few.
        Memory O(D^2).
        """
        arguments = _arguments_for(method, options, self.features)
        mean, rows = self._mean_and_rows
        shift = np.zeros_like(mean) if _depends_on_means(method, options) else mean
        Phi, y = np.hsplit(rows + (mean - shift), [len(self.features)])
        models = method(np.ascontiguousarray(Phi), y[:, 0] if self._one_output else y, **arguments)
        if isinstance(models, list):
            return [self._restore(each, shift) for each in models]
        return self._restore(models, shift)

    @cached_property
    def _mean_and_rows(self):
        """The mean of features and targets, and a few rows around it with their covariance."""
        return self._moments.equivalent_rows()

    def _restore(self, model, shift):
        """Return a model of the features, made from a model of their values less a shift."""
        of_features, of_targets = np.split(shift, [len(self.features)])
        moved = of_targets - np.atleast_2d(model.coef) @ of_features[model.support]
        intercept = (
            model.intercept + moved
            if np.ndim(model.intercept)
            else model.intercept + float(moved[0])
        )
        return replace(
            model,
            features=self.features.take(model.support),
            intercept=intercept,
            ranges=Ranges.of_nothing(),
        )

    def mean_loss(self, model: SparseModel) -> float:
        """Return the mean squared loss of a model, (1 / weight) sum_i s_i (f(x_i) - y_i)^2 / 2.

        For several outputs it is added up over them; f is before limits of the model. On a fold
        that the model was not fitted to it is a validation loss. It is exact up to rounding of the
        squares of y and f.

        Parameters
        ----------
        model : SparseModel
            A regression in these features, from `fit`, or from a function with
            ``features=sums.features``.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            If it is not such a model.

        Notes
        -----
        Time and memory O(k^2 + k d) for k terms of d inputs.
        """
        check_model(model)
        D, support = len(self.features), model.support
        outputs = np.arange(D, len(self.mean))
        if model.loss != "squared" or np.size(model.intercept) != len(outputs):
            raise ValueError(
                f"model must be a regression with outputs: {len(outputs)}, got {model!r}"
            )
        if not are_same(self.features.take(support[support < D]), model.features):
            raise ValueError(f"model must be of the features of these sums, got {model.features!r}")
        columns = np.concatenate([support, outputs])
        # f - y = error (phi, y) + intercept
        error = np.hstack([np.atleast_2d(model.coef), -np.eye(len(outputs))])
        mean = error @ self.mean[columns] + model.intercept
        variance = (error @ self.covariance[np.ix_(columns, columns)] * error).sum()
        return float(mean @ mean + max(variance, 0.0)) / 2


def _arguments_for(method, options, features):
    """Check the options of a fit to sums, and return the arguments of the call, whose inputs are
    the values of features."""
    if method not in tuple(METHODS):  # also of what has no hash
        raise ValueError(
            f"method must be one of {', '.join(each.__name__ for each in METHODS)}, got {method!r}"
        )
    known, name = signature(method).parameters, method.__name__
    chooses = "features" in known
    refused = [*ARGUMENTS_OF_ROWS, *(ARGUMENTS_OF_FEATURES if chooses else ("scale",))]
    for given in options:
        if given in refused:
            raise ValueError(
                f"{given} must not be given: {name} is about the rows and features that were "
                "summed up"
            )
    if options.get("loss", "squared") != "squared":
        raise ValueError(f"loss must be 'squared', which alone has sums, got {options['loss']!r}")
    for required in METHODS[method].needs_rows:
        is_open = required in known and known[required].default is None
        if is_open and options.get(required) is None:
            raise ValueError(
                f"{required} must be given to {name}: by default it looks at the rows, which are "
                "summed up"
            )
    arguments = dict(options)
    if chooses:
        arguments["features"] = Linear().draw(None, len(features))
    else:
        arguments["scale"] = None
    if "batch_size" in known and options.get("batch_size") is None:
        arguments["batch_size"] = default_batch_size(features.n_features_in)
    return arguments


def _depends_on_means(method, options):
    """Return whether the means of the features change more than the intercept of a fit.

    Where they do not, the rows of the fit are taken around the means, which keeps more digits.
    """
    selects_by_size = method in REGISTRY["harfe"].functions and options.get("normalize", True)
    return selects_by_size or not options.get("fit_intercept", True)
