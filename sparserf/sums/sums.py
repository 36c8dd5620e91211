"""Sums: what one pass over the rows leaves of them for the squared loss; they add up, and every fit starts from them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._base.calls import checks_call
from ..features import FeatureSet, are_same
from ..model import SparseModel
from .moments import Moments, read
from .summed import arguments, depends_on_means

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike, T


class Sums:
    """First and second moments of given features and targets over rows, made in one pass.

    They are all that the squared loss asks of the rows: fits with any penalty, by any of the functions, and the error of a
    model on these rows, need no second look. Sums of different rows add up, wherever and whenever these were seen; taken away
    from the whole, those of a fold leave the rows to train on. Made by `Sums.of` and `Sums.of_folds`; they can be pickled.

    Attributes
    ----------
    features : FeatureSet
        The D features.
    weight : float
        The sum of the sample weights; without any, the number of rows.
    mean : ndarray of shape (D + n_outputs,)
        Weighted mean of each feature, and after them of each target.
    covariance : ndarray of shape (D + n_outputs, D + n_outputs)
        Weighted, around these means; divided by `weight`.

    Notes
    -----
    All in float64, around the means before anything is multiplied: large means do not cancel. Still, squares are summed: of a
    target, or of a combination of features, nothing is known below about 1e-7 of its standard deviation. Where a model
    leaves less than that, fit the rows themselves.

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
    ...     models = (whole - fold).fit(srf.harfe_path, n_nonzero_coefs=sizes)
    ...     errors += [fold.mean_loss(model) for model in models]
    >>> model = whole.fit(srf.harfe, n_nonzero_coefs=sizes[np.argmin(errors)])
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
        if not all(np.isfinite(values).all() for values in (self.weight, self.mean, self.covariance)):
            raise ValueError("X, y and sample_weight must be of moderate size, got values whose sums overflow: scale them")

    @classmethod
    @checks_call
    def of(
        cls, X: MatrixLike, y: ArrayLike, features: FeatureSet, *, sample_weight: ArrayLike | None = None, workers: int = 1
    ) -> Self:
        """Sums over all rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features_in), Chunks, or dask collection
            Rows anywhere, as all functions take them.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
        features : FeatureSet
            The dictionary.
        sample_weight : array of shape (n_samples,) or None, default None
            Nonnegative. Other than in the functions their size matters, beside the rows of other sums.
        workers : int, default 1
            Threads; -1 for all cores. The result is the same, bit for bit, for any number.

        Returns
        -------
        Sums

        Raises
        ------
        ValueError, TypeError
            An argument out of its range or of another kind: NaN or infinity, shapes that do not match, an empty FeatureSet,
            weights that are all zero, values whose squares overflow.

        Notes
        -----
        One pass, in time O(n D (d + D)) for n rows of d inputs. Memory, beyond X: O(n + D^2), and blocks of some megabytes a
        worker. Of float32 X the features are float32, and their products float64.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> today, tomorrow = (srf.Sums.of(rows, rows[:, 0] - 2, srf.Linear().draw(None, 3)) for rows in (X[:150], X[150:]))
        >>> model = (today + tomorrow).fit(srf.mfga, n_nonzero_coefs=1, alpha=0.0)
        >>> model.support.tolist(), [round(number, 9) for number in (*model.coef.tolist(), model.intercept)]
        ([0], [1.0, -2.0])
        """
        return cls.of_folds(X, y, features, None, sample_weight=sample_weight, workers=workers)[0]

    @classmethod
    @checks_call
    def of_folds(
        cls, X: MatrixLike, y: ArrayLike, features: FeatureSet, folds: ArrayLike | None, *,
        sample_weight: ArrayLike | None = None, workers: int = 1,
    ) -> list[Self]:  # fmt: skip
        """Sums over each of some parts of the rows of X, in one pass over all.

        Parameters
        ----------
        X, y, features, sample_weight, workers
            As in `of`.
        folds : array of shape (n_samples,), of integers 0 to K - 1; or None
            The part that each row is in. None: all in one.

        Returns
        -------
        list of K Sums

        Raises
        ------
        ValueError, TypeError
            As `of`; a fold without a row of positive weight.

        Notes
        -----
        Time as `of`, but O(n D (K + d + D)); of an array on a device K times that. Memory K times that of `of`, and K numbers a
        row of a block.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> [fold.weight for fold in srf.Sums.of_folds(X, X[:, 0], srf.Linear().draw(None, 3), np.arange(200) // 80)]
        [80.0, 80.0, 40.0]
        """
        if not isinstance(features, FeatureSet):
            raise TypeError(f"features must be a FeatureSet, as a map's draw(...) returns it, got {type(features).__name__}")
        parts, one_output = read(X, y, features, folds, sample_weight, workers)
        return [cls(features, part, one_output) for part in parts]

    def __getstate__(self) -> dict[str, Any]:  # without what can be made again
        return {name: value for name, value in self.__dict__.items() if name != "_mean_and_rows"}

    def __repr__(self) -> str:
        outputs = len(self.mean) - len(self.features)
        return f"Sums({len(self.features)} features, {outputs} target{'s'[: outputs > 1]}, weight={self.weight:g})"

    def __add__(self, other: Sums | int) -> Sums:
        """Of all the rows of both."""
        if isinstance(other, Sums):
            return self._with(other, Moments.merged)
        return self if isinstance(other, int) and other == 0 else NotImplemented  # 0 is where sum() starts

    __radd__ = __add__

    def __sub__(self, other: Sums) -> Sums:
        """Of the rows that are not in other, whose rows are all in these.

        Rounding is relative to all that was there: where few rows of many are left, rather add these up.
        """
        return self._with(other, Moments.without) if isinstance(other, Sums) else NotImplemented

    def _with(self, other, combined):
        if not are_same(self.features, other.features):
            raise ValueError(f"both sums must be of the same features, got {self.features!r} and {other.features!r}")
        if len(self.mean) != len(other.mean):
            outputs = (len(each.mean) - len(self.features) for each in (self, other))
            raise ValueError("both sums must have as many targets, got {} and {}".format(*outputs))
        return Sums(self.features, combined(self._moments, other._moments), self._one_output and other._one_output)

    def fit(self, method: Callable[..., T], **options: Any) -> T:
        """What a function of this library returns for the rows, from their sums.

        Parameters
        ----------
        method : function
            `sparse_rf`, `sparse_rf_path`, `harfe`, `harfe_path`, `mfga`, `mfga_path`, which choose among the features; `drp`
            or `drp_path`, which take them all.
        **options
            Its arguments, but those that are about the rows or draw features: X, y, sample_weight, features, gamma,
            n_components, nu, activation, order, best_phase, and, but for `drp`, rng. The loss is the squared one. `sparse_rf`
            needs alpha, and `harfe` and `harfe_path` n_nonzero_coefs, whose defaults look at the rows.

        Returns
        -------
        SparseModel, or list of SparseModel
            As the function on all rows with ``features=sums.features``, up to rounding, which the tolerance of the
            function allows for; `predict` takes rows as they were before. Of `drp`, as on the matrix of all features.

        Raises
        ------
        ValueError, TypeError
            As the function; another function or loss; an argument that the sums cannot answer, or one that they need.

        Warns
        -----
        ConvergenceWarning
            As the function.

        Notes
        -----
        The function is called with at most D + 1 + n_outputs rows that have these means and second moments, so that all it says
        of the squared loss, and of the sizes of features, is said of the real rows. D^3 / 3 multiplications make them, once;
        then it takes the time of the function with so few rows, which max_iter=None bounds as for these. Memory O(D^2).
        """
        given = arguments(method, options, self.features)
        mean, rows = self._mean_and_rows
        shift = np.zeros_like(mean) if depends_on_means(method, options) else mean
        Phi, y = np.hsplit(rows + (mean - shift), [len(self.features)])
        models = method(np.ascontiguousarray(Phi), y[:, 0] if self._one_output else y, **given)
        return [self._moved(model, shift) for model in models] if isinstance(models, list) else self._moved(models, shift)

    @cached_property
    def _mean_and_rows(self):
        return self._moments.rows()

    def _moved(self, model, shift):
        """A model of columns less a shift, of the features that they are."""
        of_features, of_targets = np.split(shift, [len(self.features)])
        moved = of_targets - np.atleast_2d(model.coef) @ of_features[model.support]
        intercept = model.intercept + moved if np.ndim(model.intercept) else model.intercept + float(moved[0])
        return replace(model, features=self.features.take(model.support), intercept=intercept)

    def mean_loss(self, model: SparseModel) -> float:
        """The mean loss of a model on these rows: (1 / weight) sum_i s_i (f(x_i) - y_i)^2 / 2, added up over the outputs.

        Of a fold that a model was not fitted to it is what a validation says. Up to rounding of the squares of y and f.

        Parameters
        ----------
        model : SparseModel
            A regression in these features, from `fit`, or from a function with ``features=sums.features``.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            Not such a model.

        Notes
        -----
        Time and memory O(k^2 + k d) for k terms of d inputs.
        """
        if not isinstance(model, SparseModel):
            raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")
        D, support = len(self.features), model.support
        outputs = np.arange(D, len(self.mean))
        if model.loss != "squared" or np.size(model.intercept) != len(outputs):
            raise ValueError(f"model must be a regression with outputs: {len(outputs)}, got {model!r}")
        if not are_same(self.features.take(support[support < D]), model.features):
            raise ValueError(f"model must be of the features of these sums, got {model.features!r}")
        columns = np.concatenate([support, outputs])
        error = np.hstack([np.atleast_2d(model.coef), -np.eye(len(outputs))])  # f - y = error (phi, y) + b
        mean = error @ self.mean[columns] + model.intercept
        variance = (error @ self.covariance[np.ix_(columns, columns)] * error).sum()
        return float(mean @ mean + max(variance, 0.0)) / 2
