"""The methods by which a model explains itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.floats import methods_as_ieee
from ..expansion import Expansion

if TYPE_CHECKING:
    import numpy as np

    from .._base.types import MatrixLike, Seed
    from .importances import Importances
    from .summary import Summary


@methods_as_ieee
class ExplainMethods(Expansion):
    """The methods of a model that explain how it uses its inputs."""

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def summary(self, X: MatrixLike | None = None, *, n_terms: int = 10, rng: Seed = 0) -> Summary:
        """Summarize the model: what it is, how its fit went, how much its inputs matter, and its
        largest terms.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in), default None
            Rows over which `importances` measures the inputs. None: inputs are only named, since
            how much each of them matters depends on rows; terms have their sizes ``|coef|
            sup|phi|`` in either case.
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
        >>> model = srf.mfga(
        ...     X,
        ...     3 * X[:, 0] + X[:, 1] + 1,
        ...     features=srf.Linear(),
        ...     scale=None,
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> print(model.summary(n_terms=1))
        SparseModel: regression, loss 'squared'
        2 terms (2 identity), 5 numbers, of 2 of 3 inputs, intercept 1
        fit: converged to its tolerance, penalty alpha 1e-09
        <BLANKLINE>
        inputs that terms see; how much each matters depends on rows: summary(X)
          x0, x1
        <BLANKLINE>
        largest terms, with the inputs of most weight, by |coef| sup|phi|: how far each can move f,
        at inputs of one unit
                  3  x0
                ...  1 smaller term, 25.0 % of what all can add
        """
        from .summary import summary

        return summary(self, X, n_terms, rng)

    def importances(
        self,
        X: MatrixLike,
        background: MatrixLike | None = None,
        *,
        n_rows: int = 1000,
        n_permutations: int = 32,
        rng: Seed = 0,
        output: object = None,
    ) -> Importances:
        """Measure how much each input matters to the model, by its share of the mean size of all
        Shapley values.

        With phi_ij the Shapley value of input j in row i, in units of `decision_function`, the
        `value` of j is the mean of ``|phi_ij|`` over the rows; for several outputs the sum of these
        means, each in its output's own units. Its `share` is its value divided by the sum of the
        values of all inputs: no share is negative, and they add up to 1. `summary`, `plot.effects`
        and the `feature_importances_` of estimators show these shares, and order inputs by them.

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
            Prints as a table, the input of the largest share first. Its arrays `share` and `value`
            are of shape (n_features_in,), 0 for an input that the model does not use; `order` has
            the inputs by their shares.

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
        >>> model = srf.mfga(
        ...     X,
        ...     2 * X[:, 0] - X[:, 1],
        ...     features=srf.Linear(),
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> print(model.importances(X, X))
                       share   |Shapley|
        x0            68.1 %       1.027
        x1            31.9 %      0.4809
        """
        from .importances import importances

        return importances(self, X, background, n_rows, n_permutations, rng, output)

    def shapley(
        self,
        X: MatrixLike,
        background: MatrixLike | None = None,
        *,
        n_permutations: int = 32,
        rng: Seed = None,
    ) -> np.ndarray:
        """Compute Shapley values: how much each input of a row moves `decision_function` from its
        mean over background rows.

        The value of a set S of inputs is the mean over the background rows b of f(x_S, b_rest): the
        inputs in S are those of x, all others those of b. The Shapley value of an input is what it
        adds to the value of the inputs before it, on average over all orders of the inputs.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            Rows that represent the distribution of X. None: 200 random rows of X, or all where
            there are fewer.
        n_permutations : int, default 32
            The number of orders, at least 2, that are drawn for each term of more than ten inputs.
        rng : None, int or numpy.random.Generator, default None
            Seed of these orders, and of the rows of the background where that is None.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, n_outputs) for
        several outputs
            float64. The values of a row add up to f(x) minus the mean of f over the background, but
            for rounding. Here f is before `lower` and `upper`.

        Raises
        ------
        ValueError, TypeError
            X or background does not fit the model, background has no rows or is not given where X
            is one row, or n_permutations is below 2.

        Notes
        -----
        The values of f are the sums of the values of its terms; the value of a term is 0 for an
        input on which it does not depend. For terms of up to ten inputs, and linear terms, the
        values are exact for this background. For other terms random orders of the inputs are drawn,
        in pairs of one and its reverse; of a cosine, a bump, or a product of `Taylor`, only the
        part that comes from dependence among the background's inputs is sampled, since the part of
        independent inputs is an integral of a polynomial.

        The mean over background rows is not taken anew for each row: exp(i w'x) is a product over
        inputs, and so is a bump, so that one number for each set of inputs says all about the
        background; for steps its rows are sorted. Time for a term of q inputs, n rows and m
        background rows: O(2^q (n + m)) where q <= 10, else O(n_permutations q (n + m)); with "tanh"
        n m in place of n + m. Memory O(n d) and some tens of megabytes.

        References
        ----------
        S. M. Lundberg, S.-I. Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017.
        E. Strumbelj, I. Kononenko, Explaining Prediction Models and Individual Predictions with
        Feature Contributions, 2014.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = srf.sparse_rf(
        ...     X, np.sin(3 * X[:, 0]) * X[:, 1], features="gaussian", alpha=0.01, rng=0
        ... )
        >>> values = model.shapley(X[:2], X)
        >>> np.allclose(values.sum(axis=1), model.predict(X[:2]) - model.predict(X).mean())
        True
        """
        from .shapley import shapley

        return shapley(self, X, background, n_permutations, rng)
