"""The one list of the functions that fit models, with what callers need to know of each.

`REGISTRY` is read by `sums` (which functions can fit from sums over rows), by `validation` (which
path gives the models of a whole grid from one run) and by `sklearn` (what its estimators call). A
new algorithm is entered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import drp, harfe, mfga, sparse_rf

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Path:
    """The function that fits a path of models, and how its values are named and ordered.

    function : ``function(X, y, **options) -> list of SparseModel``, from one run
    parameter : the name that the function of one fit has for the parameter that varies
    argument : the name that `function` has for it
    from_largest : whether models are fitted from the largest value down
    step : the parameter by which the models of the path grow, if `function` takes the largest value
        alone; else None
    """

    function: Callable[..., Any]
    parameter: str
    argument: str
    from_largest: bool
    step: str | None = None


@dataclass(frozen=True)
class Algorithm:
    """A function that fits one model, and the path that fits many.

    fit : ``fit(X, y, **options) -> SparseModel``
    path : the path that belongs to it
    needs_rows : the arguments that, left at None, are chosen by the rows themselves, not by sums
        over them alone
    """

    fit: Callable[..., Any]
    path: Path
    needs_rows: tuple[str, ...] = ()

    @property
    def functions(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The function of one fit, and the function of a path."""
        return self.fit, self.path.function


REGISTRY: dict[str, Algorithm] = {
    "sparse_rf": Algorithm(
        sparse_rf.sparse_rf,
        Path(sparse_rf.sparse_rf_path, "alpha", "alphas", from_largest=True),
        needs_rows=("alpha",),
    ),
    "harfe": Algorithm(
        harfe.harfe,
        Path(harfe.harfe_path, "n_nonzero_coefs", "n_nonzero_coefs", from_largest=False),
        needs_rows=("n_nonzero_coefs", "alpha"),
    ),
    "mfga": Algorithm(
        mfga.mfga,
        Path(
            mfga.mfga_path,
            "n_nonzero_coefs",
            "n_nonzero_coefs",
            from_largest=False,
            step="n_select",
        ),
        needs_rows=("n_nonzero_coefs", "alpha"),
    ),
    "drp": Algorithm(
        drp.drp, Path(drp.drp_path, "alpha", "alphas", from_largest=True), needs_rows=("alpha",)
    ),
}
