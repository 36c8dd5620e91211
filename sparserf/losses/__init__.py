"""Loss functions L(z, y) of the predictor z and the target y, for `loss=`.

Your own loss is a class derived from `Loss`; `check` says whether it is right.

====================  ==========================================================  ======  =========
name, class           L(z, y)                                                     y       `predict`
====================  ==========================================================  ======  =========
squared               (z - y)^2 / 2                                               real    z
huber, `Huber`        the same up to \\|z - y\\| = delta, a line from there         real    z
quantile, `Quantile`  pinball loss of a level, smoothed                           real    z
poisson, `Poisson`    half the unit deviance at the mean e^z                      >= 0    e^z
tweedie, `Tweedie`    the same, of a power between those of Poisson and gamma     >= 0    e^z
gamma, `Gamma`        half the unit deviance at the mean e^z                      > 0     e^z
squared_hinge         max(0, 1 - y z)^2                                           labels  labels
smoothed_hinge        1/2 - y z, (1 - y z)^2 / 2, 0 (`drp` alone)                 labels  labels
logistic              log(1 + exp(-y z))                                          labels  labels
multinomial           -log(exp(z_y) / sum_k exp(z_k)), all classes together       labels  labels
ordinal, `Ordinal`    -log(sigmoid(a) - sigmoid(b)), thresholds less z            labels  labels
cox, `Cox`            Poisson loss of 0 or 1 events at the mean H e^z, H the      times,  z
                      cumulative baseline hazard, which is fitted, too            events
====================  ==========================================================  ======  =========

Examples
--------
>>> import numpy as np, sparserf as srf
>>> X = np.linspace(-3, 3, 400)[:, None]
>>> counts = np.random.default_rng(0).poisson(20 * np.exp(np.sin(2 * X.ravel())))
>>> model = srf.sparse_rf(
...     X,
...     counts,
...     loss="poisson",
...     features="gaussian",
...     gamma=1.0,
...     alpha=0.3,
...     n_components=500,
...     rng=0,
... )
>>> (
...     bool(model.predict(X).min() > 0),
...     bool(abs(np.log(model.predict(X) / 20) - np.sin(2 * X.ravel())).max() < 0.3),
... )
(True, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from .base import Loss
from .classification import Logistic, Multinomial, SmoothedHinge, SquaredHinge
from .ordinal import Ordinal
from .own import check
from .regression import Gamma, Huber, Poisson, Quantile, Squared, Tweedie
from .survival import Cox

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "Cox",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Multinomial",
    "Ordinal",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "check",
]

LOSSES = {
    loss.name: loss
    for loss in (
        *(Squared(), Huber(), Quantile(), Poisson(), Tweedie(), Gamma()),
        *(SquaredHinge(), SmoothedHinge(), Logistic(), Multinomial(), Ordinal(), Cox()),
    )
}

# The argument `loss` of methods that select features, which need a curvature; of methods that can
# also fit all classes together, or parameters of the loss together with f; and of `drp`.
SelectingLoss: TypeAlias = Literal[
    "squared", "huber", "quantile", "poisson", "tweedie", "gamma", "squared_hinge", "logistic"
]
JointLoss: TypeAlias = Literal[SelectingLoss, "multinomial", "ordinal", "cox"]
LossLike: TypeAlias = "JointLoss | Loss"
LinearLossLike: TypeAlias = "JointLoss | Literal['smoothed_hinge'] | Loss"

# The names of the losses of these methods.
SELECTING: tuple[str, ...] = get_args(SelectingLoss)
JOINTLY: tuple[str, ...] = get_args(JointLoss)
# The losses whose models have `predict_proba`.
PROBABILISTIC = ("logistic", "multinomial", "ordinal")


def check_loss(loss: Any, names: Collection[str]) -> Loss:
    """Return the loss that a user gives by name or as an object.

    The name of a loss of this package must be in `names`.
    """
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(
            f"loss must be an object, got the class {loss.__name__}: write {loss.__name__}()"
        )
    if isinstance(loss, str):
        name, loss = loss, LOSSES.get(loss)
    elif isinstance(loss, Loss):
        name = loss.name
        if name not in LOSSES:  # a loss of the user's own
            return loss
        if type(loss) is not type(LOSSES[name]):
            raise ValueError(f"loss must have a name of its own, got {name!r}")
    else:
        raise TypeError(f"loss must be a name or a sparserf.losses.Loss, got {type(loss).__name__}")
    if name not in names:
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, names))}, or a loss of your own, got "
            f"{name!r}"
        )
    return loss


def loss_from_parameters(name: str, parameters: Mapping[str, Any]) -> Loss:
    """Return the loss of a model from its name and parameters.

    Raise a ValueError for a loss of the user's own.
    """
    if name not in LOSSES:
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, LOSSES))}, got a model of {name!r}"
        )
    return type(LOSSES[name])(**parameters)
