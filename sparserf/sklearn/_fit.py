"""Estimators that are made of an algorithm: constructor, `fit` and docstring come from the function
that fits one model."""

from __future__ import annotations

import re
import textwrap
from copy import deepcopy
from dataclasses import is_dataclass, replace
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._base.calls import unknown_keyword
from .._base.checks import as_array
from ..algorithms.registry import REGISTRY
from ..columns.targets import as_labels, levels_in_order
from ..explain.importances import ImportanceSample
from ..losses import LOSSES, Loss

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..model import SparseModel

# Arguments of the functions that scikit-learn has other names for, and those that go to `fit` and
# not to the constructor.
RENAMED = {"rng": "random_state", "workers": "n_jobs"}
ARGUMENTS_OF_FIT = "X", "y", "sample_weight", "offset", "groups"
ARGUMENTS_OF_CLASSIFIERS = ("class_weight",)  # which regressors do not have
ARGUMENTS_OF_REGRESSORS = "lower", "upper"


class FitMixin:
    """The constructor and `fit` of an estimator, made of an algorithm of the registry.

    `class Name(FitMixin, ..., algorithm="sparse_rf", **defaults)` makes an estimator whose
    parameters are those of the function `sparse_rf` and whose `fit` calls it. `defaults` gives
    parameters another default than the function's, or one that it lacks.
    """

    def __init_subclass__(cls, algorithm: str | None = None, **defaults: Any) -> None:
        super().__init_subclass__()
        if algorithm is not None:
            function = REGISTRY[algorithm].fit
            cls._function = staticmethod(function)
            cls.__init__ = make_constructor(function, cls, defaults)
            if cls.__doc__ is not None:  # python -OO leaves out docstrings
                cls.__doc__ = make_docstring(function, cls)

    _has_categories = property(lambda self: self.categorical is not None)
    _may_miss = property(lambda self: self.missing == "learn")
    _loss = property(lambda self: getattr(self.loss, "name", self.loss))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor by name; if deep, also those of a loss object,
        such as `loss__level`."""
        loss = (
            self.loss if deep and isinstance(self.loss, Loss) and is_dataclass(self.loss) else None
        )
        return super().get_params(deep) | {
            f"loss__{name}": value for name, value in getattr(loss, "parameters", {}).items()
        }

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Those of a loss object, such as `loss__level`, replace it by a new one,
        as losses are immutable."""
        of_loss = {name: value for name, value in params.items() if name.startswith("loss__")}
        super().set_params(**{name: value for name, value in params.items() if name not in of_loss})
        unknown = of_loss.keys() - self.get_params()
        if unknown:
            raise ValueError(
                f"loss must be an object with the parameter of {min(unknown)!r}, got {self.loss!r}"
            )
        if of_loss:
            own = {name.removeprefix("loss__"): value for name, value in of_loss.items()}
            self.loss = replace(self.loss, **own)
        return self

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit a model to rows and their targets.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            The rows.
        y : array of shape (n_samples,), or for a regressor (n_samples, n_outputs)
            Targets or labels; times until events with loss="cox", a structured array as of
            scikit-survival.
        sample_weight : array of shape (n_samples,) or None, default None
            Nonnegative weights.
        offset : array of shape (n_samples,) or None, default None
            What is added to f in the loss of each row, such as the log of the exposures. `predict`
            takes the offsets of other rows.
        groups : array of shape (n_samples,) or None, default None
            The group of each row, as in the function. Searches and pipelines pass it on where
            scikit-learn's metadata routing is enabled and `set_fit_request(groups=True)` asks for
            it.

        Returns
        -------
        self
        """
        _check_loss(self)
        if self._loss == "cox":  # the function checks such y
            X = self._check_X(X, reset=True)
        else:
            given_y = _check_y(y, self._y_is_numeric)
            X, y = self._check_X(X, given_y, reset=True)
            y = y if levels_in_order(given_y) is None else given_y  # no array has levels
        argument_of = {
            RENAMED.get(name, name): name for name in signature(self._function).parameters
        }
        arguments = {
            argument_of[name]: value for name, value in self.get_params(deep=False).items()
        }
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        arguments |= {"rng": seed, "workers": effective_n_jobs(self.n_jobs)}
        self.model_ = self._function(
            X, y, sample_weight=sample_weight, offset=offset, groups=groups, **arguments
        )
        # a copy, as X may be changed later
        self._sample, self._importances = deepcopy(ImportanceSample.from_rows(self.model_, X)), None
        if not self._y_is_numeric:
            self.classes_ = self.model_.classes
        return self

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of each input, (n_features_in_,): its share of the mean |Shapley value| over
        the rows of the fit.

        Shares are nonnegative and add up to 1, unless the model has no terms. They are those that
        `model_.summary` shows.

        They are computed when first asked for, in the time of `SparseModel.importances`. Until then
        the estimator, and its pickles, keep the up to 300 rows that this takes; `model_` holds no
        rows.
        """
        check_is_fitted(self)
        if self._importances is None:
            # the copy: if interrupted, start anew
            self._importances = deepcopy(self._sample).importances(self.model_).share
            self._sample = None
        return self._importances.copy()


def _check_loss(estimator):
    """Raise a ValueError if the loss is one of classifiers and the estimator a regressor, or the
    other way round."""
    loss = estimator.loss if isinstance(estimator.loss, Loss) else LOSSES.get(str(estimator.loss))
    if loss is not None and loss.is_classifier is estimator._y_is_numeric:
        name = type(estimator).__name__
        wanted = "real targets" if estimator._y_is_numeric else "labels"
        other = {"Regressor": "Classifier", "Classifier": "Regressor"}
        hint = "".join(
            f": see {name.replace(one, kind)}" for one, kind in other.items() if name.endswith(one)
        )
        raise ValueError(f"loss must be one for {wanted} in {name}, got {estimator.loss!r}{hint}")


def _check_y(y, is_numeric):
    """Return y; a single column becomes a vector, with scikit-learn's warning. Labels are checked
    to be labels."""
    if y is None:
        raise ValueError(
            "y must be given: this estimator requires y to be passed, but the target y is None"
        )
    y = y if hasattr(y, "shape") else as_array("y", y)
    if len(y.shape) == 2 and y.shape[1] == 1:
        column = column_or_1d(y, warn=True)
        # a column of a data frame keeps its index
        y = y.iloc[:, 0] if hasattr(y, "iloc") else column
    if not is_numeric:
        labels = as_array("y", y)
        check_classification_targets(labels if labels.dtype.kind == "c" else as_labels(labels))
    return y


def make_constructor(
    function: Callable[..., SparseModel], cls: type, defaults: dict[str, Any]
) -> Callable[..., None]:
    """Return an __init__ with the arguments of the function, by keyword alone."""
    of_others = ARGUMENTS_OF_CLASSIFIERS if cls._y_is_numeric else ARGUMENTS_OF_REGRESSORS
    left_out = *ARGUMENTS_OF_FIT, *of_others
    of_kind = {} if cls._y_is_numeric else {"loss": "logistic"}
    defaults = {"n_jobs": None, **of_kind, **defaults}
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name, parameter in signature(function).parameters.items():
        if name not in left_out:
            name = RENAMED.get(name, name)
            default = defaults.get(name, parameter.default)
            parameters.append(parameter.replace(name=name, default=default))
    own = signature(lambda: None).replace(parameters=parameters)

    def __init__(self, **given):
        for name in given:
            if name not in own.parameters:
                raise unknown_keyword(type(self).__name__, name, own.parameters)
        given = own.bind(self, **given)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if name != "self":
                setattr(self, name, value)

    __init__.__signature__, __init__.__qualname__ = own, f"{cls.__qualname__}.__init__"
    return __init__


# ------------------------------------------------------------
# docstrings

# What is said of parameters that scikit-learn has other words for.
SKLEARN_PARAMETERS = {
    "random_state": "random_state : int, RandomState or numpy.random.Generator, optional\n    Seed "
    "of the draws.",
    "n_jobs": "n_jobs : int, optional\n    Threads; -1 for all cores. The result does not depend "
    "on it.",
}
LOSS_OF_REGRESSORS = """loss : str or `sparserf.losses.Loss`, default "squared"
    "squared", "huber", "quantile", "poisson", "tweedie", "gamma" or "cox". The parameters of an
    object, such as `losses.Quantile(level=0.9)`, are `loss__level` and so on in `set_params`."""
LOSS_OF_CLASSIFIERS = (
    'loss : {{"logistic", "multinomial", "ordinal", {others}}} or `sparserf.losses.Loss`, default '
    '"logistic"\n    The first three have `predict_proba`; those of "ordinal" are in order.'
)
ATTRIBUTES = """
Attributes
----------
model_ : SparseModel
    The fitted model, which `sparserf.{function}` returned.
n_features_in_, feature_names_in_ : int, ndarray of str
    The number of columns of X; their names, if X was a data frame whose column names are strings.
n_iter_ : int
    Number of iterations of the fit.
"""
CLASSES = (
    "classes_ : ndarray of shape (n_classes,)\n    The labels of rows of positive weight, sorted.\n"
)


def make_docstring(function: Callable[..., Any], cls: type) -> str:
    """Return the docstring of an estimator, with sections for the parameters and attributes before
    its examples.

    What is said of the parameters comes from the docstring of the function, under the names that
    scikit-learn has for them.
    """
    is_classifier = hasattr(cls, "decision_function")
    entries, names = parameter_entries(function), set(signature(cls.__init__).parameters)
    others = re.findall('"[a-z_]*hinge"', entries["loss"])
    loss = LOSS_OF_REGRESSORS
    if is_classifier:
        loss = LOSS_OF_CLASSIFIERS.format(others=", ".join(others))
    own = {**SKLEARN_PARAMETERS, "loss": loss}
    parameters = []
    for head, entry in entries.items():
        named = [
            RENAMED.get(name, name) for name in head.split(", ") if RENAMED.get(name, name) in names
        ]
        shared = ", ".join(name for name in named if name not in own)
        if shared:
            parameters.append(shared + entry.removeprefix(head))
        parameters += [own[name] for name in named if name in own]
    sections = "\n".join(["Parameters\n----------", *parameters]) + "\n"
    sections += ATTRIBUTES.format(function=function.__name__) + (CLASSES if is_classifier else "")
    before, examples = cls.__doc__.split("    Examples\n", 1)
    return before + textwrap.indent(sections, "    ") + "\n    Examples\n" + examples


def parameter_entries(function: Callable[..., Any]) -> dict[str, str]:
    """Return the entries of the section of parameters of a docstring, by the parameters that each
    names: "lower, upper"."""
    section = getdoc(function).split("Parameters\n----------\n", 1)[1].split("\n\n", 1)[0]
    starts = [line.start() for line in re.finditer(r"^\S", section, re.MULTILINE)]
    entries = [section[a:b].rstrip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return {re.match(r"\w+(, \w+)*", entry).group(): entry for entry in entries}
