"""The algorithms, and `REGISTRY`, the one list of the functions that fit models, with what other rooms need to know of each.

`REGISTRY` is read by `sums` (which functions can fit from sums over rows), by `validation` (which path gives the models of a
whole grid from one run) and by `sklearn` (what its estimators call). A new algorithm is entered here, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import drp, harfe, mfga, sparse_rf

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Algorithm:
    """A function that fits a model, the function that fits a path of models, and how the two belong together.

    Attributes
    ----------
    fit : function
        ``fit(X, y, **options) -> SparseModel``.
    path : function
        ``path(X, y, **options) -> list of SparseModel``, from one run.
    parameter : str
        The argument of `fit` whose values a path goes through.
    path_parameter : str
        The argument of `path` that takes these values.
    is_descending : bool
        Whether a path goes from the largest value down; else from the smallest up.
    path_step : str or None
        None where `path_parameter` takes a sequence of values. Else it takes the last value alone, and the path goes there in
        steps of the size of this argument.
    needs_rows : tuple of str
        The arguments whose default value depends on the rows themselves, not on sums over them alone.
    """

    fit: Callable[..., Any]
    path: Callable[..., Any]
    parameter: str
    path_parameter: str
    is_descending: bool
    path_step: str | None = None
    needs_rows: tuple[str, ...] = ()

    @property
    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return self.fit, self.path


REGISTRY: dict[str, Algorithm] = {
    "sparse_rf": Algorithm(sparse_rf.sparse_rf, sparse_rf.sparse_rf_path, "alpha", "alphas", True, needs_rows=("alpha",)),
    "harfe": Algorithm(
        harfe.harfe, harfe.harfe_path, "n_nonzero_coefs", "n_nonzero_coefs", False, needs_rows=("n_nonzero_coefs",)
    ),
    "mfga": Algorithm(mfga.mfga, mfga.mfga_path, "n_nonzero_coefs", "n_nonzero_coefs", False, path_step="n_select"),
    "drp": Algorithm(drp.drp, drp.drp_path, "alpha", "alphas", True),
}
