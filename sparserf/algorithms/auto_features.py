"""Features that `harfe` and `mfga` take from a fit of `sparse_rf`, where features="auto"."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from .sparse_rf import sparse_rf

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from .arguments import FitOptions

Options = TypeVar("Options", bound="FitOptions")


def with_found_features(X: MatrixLike, y: ArrayLike, options: Options) -> Options:
    """Return the options with the terms that `sparse_rf` finds as features, which know their
    columns."""
    columns, rows = {**vars(options.columns), "extrapolate": None}, vars(options.rows)
    found = sparse_rf(X, y, **columns, **rows, fit_intercept=options.fit_intercept, rng=options.rng)
    if len(found.features) == 0:
        raise ValueError(
            "features='auto' has found no term that predicts y better than a constant: give other "
            "features"
        )
    return replace(
        options, features=found.features, columns=replace(options.columns, categorical=None)
    )
