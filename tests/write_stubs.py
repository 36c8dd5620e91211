"""Write sparserf/sklearn/__init__.pyi: python tests/write_stubs.py ["-": to standard output]

Type checkers and editors see the estimators by this stub: their constructors are made from the
signatures of functions when they are imported. A test asks whether the stub is up to date.
"""

import inspect
import re
import sys
from pathlib import Path

from sparserf import sklearn

PACKAGE = Path(__file__).parents[1] / "sparserf"
PLACE = PACKAGE / "sklearn/__init__.pyi"
TYPES = {
    "random_state": "int | np.random.RandomState | np.random.Generator | None",
    "n_jobs": "int | None",
}
HEAD = '''"""Written by tests/write_stubs.py."""

from os import PathLike
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

{types}
class _Estimator(BaseEstimator):
    model_: SparseModel
    n_features_in_: int
    feature_names_in_: np.ndarray
    @property
    def n_iter_(self) -> int: ...
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self: ...
    def predict(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def score(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float: ...
    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
        time_limit: float | None = 2.0,
    ) -> str: ...

class _Regressor(RegressorMixin, _Estimator): ...

class _Classifier(ClassifierMixin, _Estimator):
    classes_: np.ndarray
    def decision_function(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def predict_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...
    def predict_log_proba(self, X: MatrixLike, offset: ArrayLike | None = None) -> np.ndarray: ...

class _FitMixin:
    @property
    def feature_importances_(self) -> np.ndarray: ...

class FittedRegressor(_Regressor):
    model: SparseModel
    n_jobs: int | None
    def __init__(self, model: SparseModel, *, n_jobs: int | None = None) -> None: ...

class FittedClassifier(_Classifier):
    model: SparseModel
    n_jobs: int | None
    def __init__(self, model: SparseModel, *, n_jobs: int | None = None) -> None: ...

def to_estimator(model: SparseModel) -> FittedRegressor | FittedClassifier: ...
'''


def stub() -> str:
    """Return the text of the file."""
    classes = "".join(
        written(getattr(sklearn, name)) for name in sklearn.__all__ if not name.startswith("Fitted")
    )
    return HEAD.format(types=imports_for({*re.findall(r"\w+", classes), "MatrixLike"})) + classes


def imports_for(names: set[str]) -> str:
    """Return import lines of the type aliases among these names, each from the module that defines
    it, and of `SparseModel`."""
    imports = {"model": "from ..model import SparseModel\n"}
    for path in sorted(PACKAGE.rglob("*.py")):
        used = sorted(names & set(re.findall(r"^(\w+): TypeAlias", path.read_text(), re.MULTILINE)))
        if used:
            module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(
                ".__init__"
            )
            lines = "".join(f"    {name},\n" for name in used)
            imports[module] = f"from ..{module} import (\n{lines})\n"
    return "".join(text for _, text in sorted(imports.items()))


def written(cls: type) -> str:
    """Return the text of a class: an attribute for each parameter, and the constructor."""
    types, given = {}, ["self", "*"]
    for name, parameter in inspect.signature(cls).parameters.items():
        types[name] = TYPES.get(name, str(parameter.annotation)).replace("'", '"')
        given.append(f"{name}: {types[name]}" + default(parameter).replace("'", '"'))
    base = "_Regressor" if issubclass(cls, sklearn.Regressor) else "_Classifier"
    attributes = "".join(f"    {name}: {kind}\n" for name, kind in types.items())
    head = f"\nclass {cls.__name__}(_FitMixin, {base}):\n{attributes}"
    lines = "".join(f"        {item},\n" for item in given)
    return f"{head}    def __init__(\n{lines}    ) -> None: ...\n"


def default(parameter: inspect.Parameter) -> str:
    """Return the text of a default value."""
    return "" if parameter.default is parameter.empty else f" = {parameter.default!r}"


if __name__ == "__main__":
    print(stub(), end="") if sys.argv[1:] == ["-"] else PLACE.write_text(stub())
