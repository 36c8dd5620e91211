"""The methods by which a model explains itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

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
            Rows over which `importances` measures the inputs, at most 300 of them, drawn by rng.
            None: inputs are only named, since how much each of them matters depends on rows; terms
            have their sizes ``|coef| sup|phi|`` in either case.
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
        Time O(n_terms) without X, else that of `importances`. For how many rows a rule holds is
        counted over at most 10,000 rows of X.

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
        n_rows: int = 300,
        n_background: int | None = 100,
        n_permutations: int = 4,
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
        n_rows : int, default 300
            The most rows of X that are used, at least 2, drawn by rng.
        n_background : int or None, default 100
        n_permutations : int, default 4
            As in `shapley`.
        rng : None, int or numpy.random.Generator, default 0
            Seed of all that is random, the rows too. 0: the same at each call.
        output : label of a class, int, or None, default None
            The one output to measure, as in `plot.effects`. None: all outputs together.

        Returns
        -------
        Importances
            Prints as a table, the input of the largest share first. Its arrays `share`, `value` and
            `share_error`, the standard error of the share, are of shape (n_features_in,), 0 for an
            input that the model does not use; `order` has the inputs by their shares.

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
        >>> print(model.importances(X, n_rows=500))
                       share   |Shapley|
        x0            68.1 %       1.029
        x1            31.9 %      0.4812
        means over 500 rows, against 100 background rows
        """
        from .importances import importances

        return importances(self, X, background, n_rows, n_background, n_permutations, rng, output)

    @overload
    def shapley(
        self,
        X: MatrixLike,
        background: MatrixLike | None = None,
        *,
        n_background: int | None = 100,
        n_permutations: int = 4,
        return_std: Literal[False] = False,
        rng: Seed = 0,
    ) -> np.ndarray: ...

    @overload
    def shapley(
        self,
        X: MatrixLike,
        background: MatrixLike | None = None,
        *,
        n_background: int | None = 100,
        n_permutations: int = 4,
        return_std: Literal[True],
        rng: Seed = 0,
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def shapley(
        self,
        X: MatrixLike,
        background: MatrixLike | None = None,
        *,
        n_background: int | None = 100,
        n_permutations: int = 4,
        return_std: bool = False,
        rng: Seed = 0,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Compute Shapley values: how much each input of a row moves `decision_function` from its
        mean over background rows.

        The value of a set S of inputs is the mean over the background rows b of f(x_S, b_rest): the
        inputs in S are those of x, all others those of b. The Shapley value of an input is what it
        adds to the value of the inputs before it, on average over all orders of the inputs.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            Rows that represent the distribution of X. None: X itself.
        n_background : int or None, default 100
            The most background rows that are used, drawn by rng. None: all.
        n_permutations : int, default 4
            The number of orders, at least 2, that are drawn for each term of many inputs.
        return_std : bool, default False
            Whether standard errors are returned, too.
        rng : None, int or numpy.random.Generator, default 0
            Seed of the background rows and of the orders. 0: the same at each call.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, n_outputs) for
        several outputs
            float64. The values of a row add up to f(x) minus the mean of f over the background rows
            that are used, but for rounding. Here f is before `lower` and `upper`.
        ndarray of the same shape, with return_std=True
            The standard errors of these values, for background rows drawn from many and random
            orders: the values of eight parts of the background, each with orders of its own, are
            compared.

        Raises
        ------
        ValueError, TypeError
            X or background does not fit the model, background has no rows or is not given where X
            is one row, n_permutations is below 2, or return_std is asked of one background row.

        Notes
        -----
        The values of f are the sums of the values of its terms; the value of a term is 0 for an
        input on which it does not depend. The values of linear terms, of products of up to eight
        inputs (rules, cosines, bumps, and `Taylor`) and of other neurons of up to five are exact
        for these background rows. Of other products they are exact where there are few rows: up to
        1,000 pairs of a row and a background row. For the rest random orders of the inputs are
        drawn, in pairs of one and its reverse. Of a product only what comes from dependence among
        the background's inputs is sampled, since the part of independent inputs is an integral of a
        polynomial; of "tanh", "relu" and "sign" all is, and each pair of orders has its own part of
        the background where rows are many: ask for more orders there, and for standard errors.

        The mean over background rows is not taken anew for each row: exp(i w'x) is a product over
        inputs, and so are bumps and rules, so that one number for each set of inputs says all about
        the background. Time for a product of q inputs, n rows and m background rows: O(2^q (n + m))
        where q <= 8, O(q^2 n m) where n m <= 1000, else O((n_permutations + q) q (n + m)); for
        another neuron O(2^q n m) where q <= 5, else O(q n m). Memory O(n d) and some megabytes.

        References
        ----------
        S. M. Lundberg, S.-I. Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017.
        E. Strumbelj, I. Kononenko, Explaining Prediction Models and Individual Predictions with
        Feature Contributions, 2014.
        G. Owen, Multilinear Extensions of Games, 1972.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = srf.sparse_rf(
        ...     X, np.sin(3 * X[:, 0]) * X[:, 1], features="gaussian", alpha=0.01, rng=0
        ... )
        >>> values = model.shapley(X[:2], X, n_background=None)
        >>> np.allclose(values.sum(axis=1), model.predict(X[:2]) - model.predict(X).mean())
        True
        """
        from .shapley import shapley

        return shapley(self, X, background, n_background, n_permutations, return_std, rng)
