"""Words for types that many signatures share."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from ..algorithms.harfe_classes import ClassesFit as L0Classes
    from ..algorithms.harfe_fit import L0Fit
    from ..algorithms.sparse_rf.classes import ClassesFit as L1Classes
    from ..algorithms.sparse_rf.fit import L1Fit
    from ..features import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons, Taylor
    from ..losses import Loss
    from ..model import FitInfo
    from ..solvers.problem import Problem


class HasShape(Protocol):
    """A data frame, a sparse matrix, a dask collection, `Chunks`, or an array of another namespace than NumPy's."""

    @property
    def shape(self) -> Any: ...


class Dictionary(Protocol):
    """Batches of draws."""

    @property
    def n_batches(self) -> int: ...

    @property
    def starts(self) -> np.ndarray:
        """Index of the first draw of each batch, and the end."""
        ...


class Fit(Protocol):
    """Of one target, or of several together."""

    def info(self, certified: bool = True) -> "FitInfo": ...

    def solution(self) -> "Solution": ...


T = TypeVar("T")
P = ParamSpec("P")
OfKind = TypeVar("OfKind", bound="Problem")


# What users give.
MatrixLike: TypeAlias = ArrayLike | HasShape
Seed: TypeAlias = "int | np.integer | np.random.Generator | None"  # numpy.random is slow to import
Kernel: TypeAlias = Literal["gaussian", "laplacian", "cauchy", "matern12", "matern32", "matern52"]
Gamma: TypeAlias = float | Literal["knn"] | None
FeatureMap: TypeAlias = "Fourier | Linear | Perceptron | RandomNeurons | Taylor"
Features: TypeAlias = "Literal['auto', 'perceptron'] | Kernel | FeatureMap | Sequence[FeatureMap] | FeatureSet"
Activation: TypeAlias = Literal["sin", "cos", "tanh", "relu", "sign"]
ProjectionName: TypeAlias = Literal["gaussian", "sparse_sign", "srht"]
SelectingLoss: TypeAlias = Literal["squared", "huber", "quantile", "poisson", "gamma", "squared_hinge", "logistic"]
JointLoss: TypeAlias = Literal[SelectingLoss, "multinomial"]
SelectingLossLike: TypeAlias = "SelectingLoss | Loss"
LossLike: TypeAlias = "JointLoss | Loss"
LinearLossLike: TypeAlias = "JointLoss | Literal['smoothed_hinge'] | Loss"
Units: TypeAlias = Literal["auto", "robust"] | None
Missing: TypeAlias = Literal["learn", "raise"]
Categorical: TypeAlias = Sequence[str] | Sequence[int] | Sequence[bool] | np.ndarray | None
Values: TypeAlias = Sequence[Any] | np.ndarray
Measure: TypeAlias = Literal["squared_error", "absolute_error", "error", "log_loss", "loss"]
ImportanceMeasure: TypeAlias = Literal["shapley", "variance", "main", "total"]
Callback: TypeAlias = "Callable[[FitInfo], object] | None"

# An array of whichever namespace, where it lies; a vector with a number for each row, which only its home knows; a dense or CSR
# matrix in memory; and how a fit is to see columns: {"scale", "missing", "categorical"}.
Array: TypeAlias = Any
RowVector: TypeAlias = Any
DenseOrCSR: TypeAlias = Any
ColumnSetting: TypeAlias = dict[str, Any]

# A question to a block of rows at a dual point, and what takes its answer; (index, features, coefficients, intercept) of the
# terms of a fit; (features, index, coefficients, intercept), from which one to other rows begins; and a fit of one target, or
# of all classes together.
Question: TypeAlias = tuple[Callable[..., np.ndarray], Callable[..., object]]
Solution: TypeAlias = "tuple[np.ndarray, FeatureSet, np.ndarray, float | np.ndarray]"
State: TypeAlias = "tuple[FeatureSet, np.ndarray, np.ndarray, float]"
L0FitLike: TypeAlias = "L0Fit | L0Classes"
L1FitLike: TypeAlias = "L1Fit | L1Classes"
