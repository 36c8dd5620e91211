"""The method by which a model makes a page of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.calls import checks_call
from .._base.floats import methods_as_ieee
from ..expansion import Expansion

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike


@methods_as_ieee
class PageMethods(Expansion):
    """The method of a model that makes a page of it."""

    @checks_call
    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
        time_limit: float | None = 2.0,
    ) -> str:
        """Write the model as one page for a browser, which needs nothing else; see docs/page.md.

        Parameters
        ----------
        path : str, path or None, default None
            Where the file goes. None: no file is written.
        X : data frame, array or CSR matrix of shape (n_samples, n_features_in), default None
            Rows, best ones that the model has not seen, for errors, of which at most 10,000 are
            looked at, for the worth of terms (500) and effects (100), drawn with a fixed seed.
            None: worth and effects are those over rows that are made of what the model knows of
            each column by itself.
        y : array of shape (n_samples,) or (n_samples, n_outputs), default None
            The targets or labels of X, for the errors.
        title : str or None, default None
            The title of the page. None: that of the task, with the name of y if it has one.
        time_limit : float or None, default 2.0
            The seconds that proofs may take, > 0; None: any time. What is not proved by then is
            said to be open.

        Returns
        -------
        str
            The text of the file. It has no rows of X; of the columns that terms use it has names,
            levels, ranges and quantiles.

        Raises
        ------
        ValueError, TypeError
            X does not fit the model, or y not X; y is given without X; levels of a category are
            numbers that JavaScript does not tell apart.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
        >>> y = np.sin(2 * X[:, 0]) * X[:, 1]
        >>> model = srf.sparse_rf(X[:300], y[:300], features="gaussian", alpha=0.01, rng=0)
        >>> text = model.to_html(X=X[300:], y=y[300:], title="A product")
        >>> text.startswith("<!DOCTYPE html>"), "<title>A product</title>" in text
        (True, True)
        """
        from .page import to_html

        return to_html(self, path, X, y, title, time_limit)
