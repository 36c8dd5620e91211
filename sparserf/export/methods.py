"""The methods by which a model writes itself for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .._base.files import new_file
from .._base.floats import methods_as_ieee
from ..expansion import Expansion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from onnx import ModelProto

    from .estimators import FittedClassifier, FittedRegressor
    from .formula import Formula


@methods_as_ieee
class ExportMethods(Expansion):
    """The methods of a model that write it for other programs."""

    def formula(
        self,
        language: Literal["text", "latex", "python", "sql", "javascript", "sympy", "jax"] = "text",
        n_terms: int | Literal["auto"] | None = "auto",
        *,
        digits: int | None = None,
        table: str | Sequence[str] = "data",
        keep: Sequence[str] = (),
    ) -> Formula:
        """Write the model out: to read, as text or LaTeX, or to run elsewhere, as Python, SQL,
        JavaScript, SymPy or JAX.

        Parameters
        ----------
        language : {"text", "latex", "python", "sql", "javascript", "sympy", "jax"}, default "text"
            - "text", "latex" : a formula to read. Numbers are rounded, terms far below the printed
              digits of the largest are left out, and neither knots nor more than 12 levels are
              listed; the formula notes what is left out. Text has lines of at most 100 characters,
              but for longer names, and a linear function that is longer than a line is a table.
            - "python" : source that needs NumPy alone, with functions `decision_function`,
              `predict` and, with the logistic or multinomial loss, `predict_proba`. They take X as
              an array; where the model was fitted to a data frame, as a data frame or a dictionary
              of arrays; and compute in float64.
            - "sql" : a SELECT for SQLite from 3.35, DuckDB, and PostgreSQL from 12: standard SQL
              but for MATERIALIZED, and SQRT, EXP, COS, SIN and TANH where terms need them. Columns
              of an array are "x0", "x1", ...; a missing cell is NULL or NaN, an infinite number
              counts as missing, and a boolean is 0 or 1. It gives `prediction`, as `predict` does,
              for several targets `prediction_0`, ...; for a classifier the label and, beside it,
              "probability_LABEL" of each class as `predict_proba` gives it, or, with losses that
              have no probabilities, "decision_LABEL" as `decision_function` gives it, of two
              classes for the second. Numbers are in double precision.
            - "javascript" : source that needs nothing else, for Node.js, which `require` reads, and
              browsers, with the same functions as "python", of one row: an object {name: cell} or
              an array of all cells. A missing cell is null or NaN; a date or time of day is a
              number of days or text such as "2024-03-01T12:30", a duration a number of days. What a
              row may not hold raises a TypeError.
            - "sympy" : source that defines `f`, a SymPy expression of decision values, or a list of
              one for each output, in symbols named like the columns; for rows without missing
              cells. SymPy takes minutes for encodings of many knots.
            - "jax" : source that defines `decision_function(x)`, of one row or of rows of numbers,
              for `jax.jit`, `jax.grad` and `jax.vmap`; in float32 unless JAX is set to 64 bits. In
              both, a category is the place of its level in `levels`, and -1 where the level is
              another.
        n_terms : int, "auto" or None, default "auto"
            The number of terms to write, at least 0, the largest by ``|coef| sup|phi|``, in text of
            each output; the formula says how many are left out, and what they are of the sum of
            these sizes. "auto": all, but of text as many as fit a screen: at most 4,000 characters
            in 50 lines. None: all. In text with a number or "auto", of a long sum the largest parts
            are written, and names of more than 40 characters are cut; the parts left out are
            counted with their share of the sum's variation: of the squares of weights times spreads
            of the columns, as far as the model knows these, and as if columns were independent.
        digits : int or None, default None
            Significant digits. None: 4 to read; to run, as many as read back to the same bits.
        table : str or sequence of str, default "data"
            The table that the SQL reads, "table" or "schema.table"; a sequence of its parts where
            one of them has a dot.
        keep : sequence of str, default ()
            Columns of that table that the SQL gives before the prediction, such as a key: tables
            have no order.

        Returns
        -------
        str
            Interpreters show it in its lines, notebooks as typeset mathematics or highlighted code.

        Raises
        ------
        ValueError, TypeError
            An argument is not as above; table or keep is given for another language than SQL, or is
            no identifier; keep names a column as another or as a result is named; the SQL reads two
            columns whose names differ in case alone, which most engines take as one, or names or
            levels that are empty or no text; it needs more than the 1,600 columns in a SELECT that
            engines allow, or the model has more than 750 classes.

        Notes
        -----
        Where phases overflow, `predict` has a rule, and code has none. Time O(entries of the
        weights).

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(
        ...     X,
        ...     3 * X[:, 0] + X[:, 1] + 1,
        ...     features=srf.Linear(),
        ...     scale=None,
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> print(model.formula(digits=3))
        f = 1
          + 3 x0
          + 1 x1
        >>> model.formula("sql", table="lab.rows", keep=["id"]).endswith(
        ...     'AS prediction\\nFROM "lab"."rows" AS r'
        ... )
        True
        """
        from .formula import formula

        return formula(self, language, n_terms, digits, table, keep)

    def to_c(self, path: str | PathLike[str] | None = None, *, name: str = "predict") -> str:
        """Write the model as a file of C99 that needs the C library alone; see docs/export.md, and
        the example in `to_onnx`.

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
        from .c import to_c

        return to_c(self, path, name)

    def to_sql(
        self,
        path: str | PathLike[str] | None = None,
        *,
        table: str | Sequence[str] = "data",
        keep: Sequence[str] = (),
    ) -> str:
        """Write the model as a SELECT statement for SQLite, DuckDB and PostgreSQL; see `formula`,
        and docs/export.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        table : str or sequence of str, default "data"
            The table that it reads, "table" or "schema.table"; a sequence of its parts where one of
            them has a dot.
        keep : sequence of str, default ()
            Columns of that table that it gives before the prediction, such as a key: tables have no
            order.

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
        >>> model.to_sql(table="lab.rows", keep=["id"]) == model.formula(
        ...     "sql", table="lab.rows", keep=["id"]
        ... )
        True
        """
        query = self.formula("sql", table=table, keep=keep)
        if path is not None:
            with new_file(path) as file:
                file.write(f"{query}\n".encode())
        return query

    def to_onnx(
        self,
        path: str | PathLike[str] | None = None,
        *,
        dtype: Literal["float32", "float64"] = "float32",
    ) -> ModelProto:
        """Write the model as an ONNX graph, for any runtime of that format; see docs/export.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        dtype : {"float32", "float64"}, default "float32"
            The precision of inputs and outputs, and of cosines, sines, tanh and the exponentials of
            bumps; all else is in double precision. Inputs of columns that float32 does not hold,
            such as whole numbers beyond 2**24 or dates, are float64; where columns are in one
            matrix there is a warning.

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
        from .onnx import to_onnx

        return to_onnx(self, path, dtype)

    def to_estimator(self) -> FittedRegressor | FittedClassifier:
        """Make a fitted scikit-learn estimator of this model, with `predict`, `score` and all that
        is built on them.

        Returns
        -------
        sparserf.sklearn.FittedRegressor or FittedClassifier
            Fitting it, or a clone of it, changes nothing.

        Raises
        ------
        ImportError
            scikit-learn is not installed.
        """
        from .estimators import to_estimator

        return to_estimator(self)
