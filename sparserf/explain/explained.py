"""What a `SparseModel` tells of itself: the methods, each of which loads what it needs when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._base.types import MatrixLike, Seed
    from .formula import Formula
    from .importances import ImportanceMeasure, Importances
    from .summary import Summary


class Explained:
    """Methods of a model with coef, intercept, features, loss, classes and info."""

    def summary(self, X: MatrixLike | None = None, *, n_terms: int = 10, rng: Seed = 0) -> Summary:
        """What the model is, how well it is known to predict, and what its inputs and largest terms are worth.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in), or None, default None
            Rows over which inputs are measured, by `importances`. None: inputs are named alone, since how much each of them
            matters depends on rows; terms have their sizes ``|coef| sup|phi|`` in either case.
        n_terms : int, default 10
            Of the largest terms to show, at least 0.
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
        from .summary import summary

        return summary(self, X, n_terms, rng)

    def formula(
        self, language: Literal["text", "latex", "python", "sql"] = "text", n_terms: int | None = None, *,
        digits: int | None = None, table: str | Sequence[str] = "data", keep: Sequence[str] = (),
    ) -> Formula:  # fmt: skip
        """The model written out: to read, as text or LaTeX, or to run elsewhere, as Python or SQL.

        Parameters
        ----------
        language : {"text", "latex", "python", "sql"}, default "text"
            "python": source that needs NumPy alone. Its functions `decision_function`, `predict`, and with the logistic or
            multinomial loss `predict_proba`, take X as an array, or what has columns by their names, a data frame or a
            dictionary of arrays, where the model was fitted to a data frame; they compute in float64. "sql": a SELECT for
            SQLite from 3.35, DuckDB and PostgreSQL from 12, of standard SQL but for MATERIALIZED, and SQRT, EXP, COS, SIN and
            TANH as the terms need; of an array the columns are "x0", "x1", ...; a missing cell is NULL, a boolean 0 or 1. It
            gives `prediction`, as `predict` does, of several targets `prediction_0`, ...; of a classifier the label, and
            beside it "probability_LABEL" as `predict_proba` gives it, of two classes that of the second alone, or
            "decision_LABEL" of losses without probabilities. Both hold all of the model. "text" and "latex" round, leave out
            terms whose size is far below the printed digits of the largest, and do not list knots and all levels, and say what
            is left out.
        n_terms : int or None, default None
            The largest terms alone, by ``|coef| sup|phi|``, at least 0: what is left out is then said. None: all.
        digits : int or None, default None
            Significant digits. None: 4 to read, and as many as tell a float from all others to run.
        table : str or sequence of str, default "data"
            The table that the SQL reads, "table" or "schema.table"; as a sequence of its parts where one holds a dot.
        keep : sequence of str, default ()
            Columns of that table that the SQL gives before the prediction, such as a key: tables have no order.

        Returns
        -------
        str
            Which interpreters show in its lines, and notebooks as what it is: mathematics, or code in colours.

        Raises
        ------
        ValueError, TypeError
            language is another, n_terms negative, or digits below 1; table or keep of another language than SQL, or no
            identifiers; SQL of more columns than engines bear, 1,600 in a SELECT, or of more than 750 classes.

        Notes
        -----
        Where phases overflow, `predict` has a rule, and code has none. Time O(entries of the weights).

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(X, 3 * X[:, 0] + X[:, 1] + 1, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.formula("sql", digits=3, table="lab.rows", keep=["id"]))
        SELECT "id",
          1.0 + 3.0 * CAST("x0" AS DOUBLE PRECISION) + 1.0 * CAST("x1" AS DOUBLE PRECISION) AS prediction
        FROM "lab"."rows"
        """
        from .formula import formula

        return formula(self, language, n_terms, digits, table, keep)

    def to_json(self) -> str:
        """The model as JSON text, of the content of its file: `from_json` reads it back bit for bit.

        Returns
        -------
        str
            Metadata as in the file, and under "arrays" of each array its dtype, shape and values. Some twenty characters a
            number, where the file has eight bytes.

        Raises
        ------
        ValueError
            More inputs than `save` writes.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0)
        >>> again = srf.SparseModel.from_json(model.to_json())
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        from ..model.json_text import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The model of a text that `to_json` made, which is not trusted: it is checked as `load` checks a file.

        Parameters
        ----------
        text : str

        Returns
        -------
        SparseModel

        Raises
        ------
        ValueError
            Anything but a whole, consistent model; no array is made of more than 16 bytes a character of the text, and a
            megabyte.
        TypeError
            text is not a string.

        Examples
        --------
        >>> import sparserf as srf
        >>> srf.SparseModel.from_json("{}")
        Traceback (most recent call last):
        ValueError: text is not a model: ValueError: text has no format number: it is not a model
        """
        from ..model.json_text import from_json

        return from_json(text)

    def shapley(
        self, X: MatrixLike, background: MatrixLike | None = None, *, n_permutations: int = 32, rng: Seed = None
    ) -> np.ndarray:
        """Shapley values: how much each input of a row moves `decision_function` from its mean over background rows.

        A set S of inputs is worth the mean over the background rows b of f(x_S, b_rest), x's inputs in S and b's others. The
        value of an input is what it adds to the sets of others, in the mean over all orders in which inputs may come.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            Rows that stand for what is usual. None: 200 rows of X, by chance, or all where there are fewer.
        n_permutations : int, default 32
            Orders, at least 2, that are tried for each term of more than ten inputs.
        rng : None, int or numpy.random.Generator, default None
            Seed of these orders, and of the rows of the background where it is None.

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, n_outputs) of several outputs
            float64. The values of a row add up to f(x) less the mean of f over the background, but for rounding.

        Raises
        ------
        ValueError, TypeError
            X or background does not fit the model, background has no rows or is not given where X is one row, or n_permutations
            is below 2.

        Notes
        -----
        Values add up over terms, and in that of a term only its own inputs play. For terms of up to ten inputs, and linear
        ones of any number, the values are exact for this background. For terms of more, orders are drawn by chance, in pairs of
        one and its reverse; of a cosine, or a product of `Taylor`, then only the part that comes of dependence among the
        background's inputs is sampled, since that of independent inputs is known: an integral of a polynomial.

        The mean over background rows does not cost them again for each row: exp(i w'x) is a product over inputs, so one complex
        number a set tells all about them; steps count them in order. Time O(2^q (n + m)) a term of q <= 10 inputs, n rows and m
        of the background, O(n_permutations q (n + m)) for more; with "tanh" n m in place of n + m. Memory O(n d) and some tens
        of megabytes.

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
        from .shapley import shapley

        return shapley(self, X, background, n_permutations, rng)

    def importances(
        self, X: MatrixLike, background: MatrixLike | None = None, *, measure: ImportanceMeasure = "shapley",
        n_rows: int = 1000, n_permutations: int = 32, rng: Seed = 0, output: object = None,
    ) -> Importances:  # fmt: skip
        """What each input is worth to the model: its share of the mean size of all Shapley values, or another measure.

        With phi_ij the Shapley value of input j in row i, in units of `decision_function`, the `value` of j is the mean over
        the rows of ``|phi_ij|``, of several outputs the sum of these means, each in its output's own units. Its `share` is that
        over the sum of the values of all inputs: no share is negative, and they add up to 1. `summary`, `plot.effects` and the
        `feature_importances_` of estimators show these shares, and order inputs by them.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in)
        background : as X, or None, default None
            As in `shapley`, whose values are taken against it, and the distribution of the inputs for "main" and "total".
        measure : {"shapley", "variance", "main", "total"}, default "shapley"
            What value and share are; in each the values of several outputs are added up.

            - "shapley" : as above
            - "variance" : the covariance of an input's Shapley values with f, and its share of the variance of f: these add up
              to 1, and one is negative where they mostly go against f, as they may where inputs depend on one another
            - "main" : the variance of E[f | x_j], and its share of that of f, if inputs were independent, each distributed as
              in the background
            - "total" : what of the variance would be left, in that case, if all inputs but x_j were known, so that interactions
              count for each of their inputs
        n_rows : int, default 1000
            Rows of X that are looked at, at least 2, by chance where there are more; "main" and "total" look at those of the
            background.
        n_permutations : int, default 32
            As in `shapley`.
        rng : None, int or numpy.random.Generator, default 0
            Seed of all that is by chance, the rows too. 0: the same at each call.
        output : label of a class, int, or None, default None
            That alone, as in `plot.effects`. None: all outputs together.

        Returns
        -------
        Importances
            Prints as a table, the input of the largest share first: `order`. Its arrays `share` and `value` are of shape
            (n_features_in,), 0 for an input that the model does not use.

        Raises
        ------
        ValueError, TypeError
            As `shapley`; another measure; n_rows below 2; output is none of the model's.

        Notes
        -----
        "main" is exact for cosines, products and linear terms, by E prod_j z_j = prod_j E z_j, and for all terms that see one
        input; for others it is a mean over background rows whose columns are shuffled. "total", and the variance of f for
        independent inputs, are means over some 4,000 shuffled rows. Time as `shapley`; for "total" that of n_features_in
        predictions of these rows.

        References
        ----------
        S. M. Lundberg, S.-I. Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017. I. M. Sobol', Sensitivity
        Estimates for Nonlinear Mathematical Models, 1993. M. J. W. Jansen, Analysis of Variance Designs for Model Output, 1999.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
        >>> model = srf.mfga(X, 2 * X[:, 0] - X[:, 1], features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, rng=0)
        >>> print(model.importances(X, X))
                       share   |Shapley|
        x0            68.1 %       1.027
        x1            31.9 %      0.4809
        >>> print(model.importances(X, X, measure="total"))
                       total    variance
        x0            81.9 %       1.417
        x1            17.8 %      0.3076
        """
        from .importances import importances

        return importances(self, X, background, measure, n_rows, n_permutations, rng, output)
