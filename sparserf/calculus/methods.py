"""The methods by which a model differentiates and integrates itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.floats import methods_as_ieee
from ..expansion import Expansion

if TYPE_CHECKING:
    import numpy as np

    from .._base.types import MatrixLike
    from ..expansion.box import BoxLike


@methods_as_ieee
class CalculusMethods(Expansion):
    """The methods of a model that differentiate and integrate f."""

    def gradient(self, X: MatrixLike, workers: int = 1, *, output: object = None) -> np.ndarray:
        """Compute the derivatives of `decision_function` by each column, at the rows of X.

        They are those of f. With the log link the prediction e^f has the derivatives e^f df/dx, and
        a probability p = 1 / (1 + e^-f) has p (1 - p) df/dx.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        workers : int, default 1
            Threads; -1 for all cores. The result does not depend on it.
        output : label of a class, int, or None, default None
            The one output to differentiate, as in `plot.effects`. None: all.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_outputs, n_features_in) for
        several outputs
            float32 for float32 X, float64 for all else; dense also where X is CSR; in the namespace
            or on the device of X.

        Raises
        ------
        ValueError, TypeError
            X does not fit the model, its features overflow, or the model has no such output.

        Notes
        -----
        Where f has a kink, the derivative is one-sided: at a knot of an encoding and at the center
        of a bump that on the right, at the kink of a relu that of the side on which it rises. Steps
        have derivative 0, also at the step. The derivative is 0 where the cell is missing, by a
        category (a difference of levels is no derivative; `plot.effects` shows them), and where f
        is beyond `lower` or `upper`. By a column of numbers that takes few values, such as a flag,
        it is that of f between them.

        Rows are taken some at a time, and no matrix of all rows by all terms is stored. Time: that
        of predicting the rows and of a product of n_samples n_terms n_features_in multiplications;
        bumps are compared with each of their inputs.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(
        ...     X,
        ...     3 * X[:, 0] - X[:, 1],
        ...     features=srf.Linear(),
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> model.gradient(X[:2]).round(6)
        array([[ 3., -1.],
               [ 3., -1.]])
        """
        from .derivatives import gradient

        return gradient(self, X, workers, output)

    def hessian_diag(self, X: MatrixLike, workers: int = 1, *, output: object = None) -> np.ndarray:
        """Compute the second derivatives of `decision_function` by each column, d2f/dx_j^2, at the
        rows of X.

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
        Kinks and steps are treated as in `gradient`: no second derivative is infinite. Time as that
        of `gradient`, twice where encodings are curved.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.sparse_rf(
        ...     X, np.sin(2 * X.ravel()), features="gaussian", alpha=1e-3, n_components=500, rng=0
        ... )
        >>> bool(np.abs(model.hessian_diag(X) + 4 * np.sin(2 * X))[20:-20].max() < 0.3)
        True
        """
        from .derivatives import hessian_diag

        return hessian_diag(self, X, workers, output)

    def integral(
        self, box: BoxLike | None = None, *, output: object = None
    ) -> tuple[float | np.ndarray, float | np.ndarray]:
        """Integrate `decision_function` over a box of rows.

        It is `mean` times the product of the lengths of all intervals of columns of numbers,
        whether terms see them or not; an interval that is a point has the factor 1. Of categories,
        and of columns that take few values, the mean over their levels or values in the box is
        taken, and their factor is 1, too.

        Parameters
        ----------
        box, output
            As in `mean`. Columns that are left out count with their range in training. A model that
            has been to a file does not know that of columns which no term sees: the box must name
            them.

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
        >>> model = srf.mfga(
        ...     X, 2 * X.ravel() + 1, features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0
        ... )
        >>> value, error = model.integral({0: (0, 2)})
        >>> round(value, 6), bool(error < 1e-14)
        (6.0, True)

        A column of zeros and ones has no length: the mean of f at both, 2 and 4, over the interval
        of the other column, times 2.

        >>> X = np.column_stack([X, np.arange(200) % 2])
        >>> model = srf.mfga(
        ...     X, X @ [1, 2] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0
        ... )
        >>> round(model.integral({0: (0, 2), 1: (0, 1)})[0], 6)
        6.0
        """
        from .integrals import integral

        return integral(self, box, output)

    def mean(
        self, box: BoxLike | None = None, *, output: object = None
    ) -> tuple[float | np.ndarray, float | np.ndarray]:
        """Compute the mean of `decision_function` over a box of rows, whose columns are independent
        and uniform.

        Columns that are given as numbers are fixed: the mean is then one over the other columns,
        given these.

        Parameters
        ----------
        box : mapping of names or indices of columns to parts, or None, default None
            A part is (low, high), a number, a level, a list of levels, which count equally, or
            None, a missing cell; of dates as in `bounds`. Of booleans, and of columns that took few
            whole numbers in training, (low, high) stands for the values taken that lie in it, which
            count equally; see `bounds`. Columns that are left out have the range of the training
            rows, all values that they took if these are few, or all known levels.
        output : label of a class, int, or None, default None
            The one output, as in `plot.effects`. None: all.

        Returns
        -------
        value, error : float, or ndarray of shape (n_outputs,) for several outputs The mean, and how
            far it may be off. Closed forms: a bound of rounding. Sums over nodes: the difference
            between rules of n and of 2 n nodes, an estimate. Sobol' points: three standard errors.

        Raises
        ------
        ValueError, TypeError
            The box names a column that there is not or one twice, an interval is reversed or not
            finite, or holds none of the few values of its column, a level is unknown, a part has
            another type than its column; a column is left out whose range is not known; no such
            output.

        Notes
        -----
        Linear terms, cosines and bumps have closed forms where encodings are linear or linear
        between knots; where they are curved (beyond the reach of the training rows, or an angle),
        Gauss-Legendre nodes are used, as for products of `Taylor`. tanh, relu and steps of w'x are
        integrated over one column in closed form; relu and steps over all, where cancellation does
        not forbid it; over the others by nodes. Terms that would take more than two million nodes
        (of many inputs) are averaged over Sobol' points together, as is f of a model with `lower`
        or `upper`. Deterministic.

        References
        ----------
        I. M. Sobol', On the distribution of points in a cube and the approximate evaluation of
        integrals, 1967.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> model = srf.harfe(X, np.sin(3 * X[:, 0]) * X[:, 1], n_nonzero_coefs=40, rng=0)
        >>> value, error = model.mean({0: (0, 1), 1: 0.5})
        >>> bool(abs(value - 0.5 * (1 - np.cos(3)) / 3) < 0.02), bool(error < 1e-10)
        (True, True)
        """
        from .integrals import mean

        return mean(self, box, output)
