"""The file of a model: written by `SparseModel.save`, read by `load`, which does not trust it."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import npz as _npz
from .._base.npz import floats, require
from ..columns.stage import ARRAYS as STAGE_ARRAYS
from ..columns.stage import ColumnStage
from ..features import BLOCK_ARRAYS, FeatureSet, block_from_arrays
from ..losses import LOSSES
from . import FitInfo, SparseModel
from .predictor import LINKS, MEANS
from .upgrades import upgraded

if TYPE_CHECKING:
    from os import PathLike

# Inputs that a file may claim beyond the numbers that it holds: `input_usage` makes an array of so many, a gigabyte.
MOST_INPUTS = 2**27
LONGEST_NAME = 100


def write(model: SparseModel, path: str | PathLike[str]) -> None:
    _npz.write(with_ending(path), *content(model))


def content(model: SparseModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(meta, arrays): all that the model is."""
    arrays = {"coef": model.coef, "intercept": np.asarray(model.intercept, np.float64), "support": model.support}
    if model.classes is not None:
        arrays["classes"] = model.classes
    blocks = []
    for i, block in enumerate(model.features.blocks):
        meta, values = block.to_arrays(i)
        blocks.append(meta)
        arrays |= values
    if model.features.order is not None:
        arrays["order"] = model.features.order.astype(np.int64)
    stage = model.features.stage
    if stage is not None:
        arrays |= stage.to_arrays()
    info = asdict(model.info)
    arrays["objective"] = np.array(info.pop("objective"), np.float64)
    _check_inputs(model.n_features_in, arrays)
    meta = {"loss": model.loss, "n_features_in": model.n_features_in, "blocks": blocks, "info": info}
    if model.loss_parameters or model.link != "identity":  # else the file is what it always was
        meta |= {"loss_parameters": model.loss_parameters, "link": model.link}
    return meta, arrays


def with_ending(path: str | PathLike[str]) -> str | PathLike[str]:
    """The path with ".npz" where it has no ending of its own."""
    path = os.fsdecode(path)
    return path if os.path.splitext(path)[1] else f"{path}.npz"


def load(path: str | PathLike[str]) -> SparseModel:
    """Read a model that `SparseModel.save` wrote, of this version or an earlier one; ".npz" may be left out of the path.

    The file is not trusted: no pickle, no code, no array larger than the file, no more than 2**27 inputs without numbers.

    Parameters
    ----------
    path : str or path
        Of a file that `SparseModel.save` wrote.

    Returns
    -------
    SparseModel
        With the same predictions, bit for bit.

    Raises
    ------
    ValueError
        Anything but a whole, consistent model file; one of a later format, with the version that wrote it.
    OSError
        There is no such file, or it may not be read.

    Examples
    --------
    >>> import numpy as np, sparserf as srf, tempfile, pathlib
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = srf.sparse_rf(X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> model.save(path)
    >>> bool((srf.load(path).predict(X) == model.predict(X)).all())
    True
    """
    path = path if os.path.isfile(path) else with_ending(path)
    return restored(path, *_npz.read(path))


def restored(where: object, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> SparseModel:
    """The model of what `content` gave, of a text or file that is not trusted; where: it was found."""
    try:
        return _model(*upgraded(meta, arrays))
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise ValueError(f"{where} is not a whole model: {type(error).__name__}: {error}") from None


def _model(meta, arrays):
    about = {"loss_parameters", "link"} & set(meta)
    require(set(meta) == {"format", "version", "loss", "n_features_in", "blocks", "info"} | about, "metadata")
    require(type(meta["blocks"]) is list and type(meta["info"]) is dict, "metadata")
    require(type(meta["version"]) is str and len(meta["version"]) < 40, "version")
    d = meta["n_features_in"]
    require(type(d) is int and d > 0, "n_features_in")
    _check_inputs(d, arrays)
    loss, parameters, link = meta["loss"], meta.get("loss_parameters", {}), meta.get("link", "identity")
    _check_loss(loss, parameters, link, arrays.get("classes"))
    stage = ColumnStage.from_arrays(arrays, d)
    n_inputs = d if stage is None else len(stage)
    blocks = [block_from_arrays(block, arrays, i, n_inputs) for i, block in enumerate(meta["blocks"])]
    features = FeatureSet(blocks, n_inputs, _order(arrays, sum(map(len, blocks))), stage)
    classes, coef, intercept = arrays.get("classes"), floats(arrays, "coef"), floats(arrays, "intercept")
    outputs = intercept.shape if classes is None else () if len(classes) == 2 else (len(classes),)
    require(len(outputs) < 2 and outputs != (0,), "intercept")
    if classes is not None:
        require(classes.ndim == 1 and len(classes) >= 2 and bool(np.all(classes[:-1] < classes[1:])), "classes")
    require(coef.shape == (*outputs, len(features)) and intercept.shape == outputs, "coef and intercept")
    support = arrays["support"]
    require(support.shape == (len(features),) and support.dtype == np.int64, "support")
    require(bool(np.all(np.diff(support) > 0)) and (len(support) == 0 or support[0] >= 0), "support")
    known = {"coef", "intercept", "support", "classes", "objective", "order", *STAGE_ARRAYS}
    require(set(arrays) <= known | {f"{name}_{i}" for name in BLOCK_ARRAYS for i in range(len(blocks))}, "members")
    return SparseModel(coef, intercept if outputs else float(intercept), support, features, loss, classes,
                       _info(meta["info"], floats(arrays, "objective")), parameters, link)  # fmt: skip


def _check_loss(name, parameters, link, classes):
    """One of the house, or the user's own, of which the file knows the name, the parameters and the link alone."""
    require(type(name) is str and 0 < len(name) <= LONGEST_NAME and type(parameters) is dict, "loss")
    require(all(value is None or type(value) in (int, float, str, bool) for value in parameters.values()), "loss_parameters")
    if name in LOSSES:
        known = type(LOSSES[name])(**parameters)
        require(link == known.link and (classes is not None) == known.is_classifier, "loss")
    require(link in (MEANS if classes is None else LINKS), "link")


def _check_inputs(d, arrays):
    if d > max(MOST_INPUTS, sum(np.size(array) for array in arrays.values())):
        raise ValueError(f"n_features_in must be at most {MOST_INPUTS}, or the numbers in the file, got {d}")


def _order(arrays, n):
    order = arrays.get("order")
    if order is not None:
        require(order.dtype == np.int64 and np.array_equal(np.sort(order), np.arange(n)), "order")
    return order


def _info(meta, objective):
    require(set(meta) == {field.name for field in fields(FitInfo)} - {"objective"}, "info")
    require(all(type(meta[n]) is int for n in ("n_iter", "n_drawn", "n_nonzero")), "info")
    require(objective.ndim == 1 and len(objective) > 0 and type(meta["converged"]) is bool, "info")
    require(all(type(meta[n]) in (int, float) and np.isfinite(float(meta[n])) for n in ("dual_gap", "alpha")), "info")
    require(all(meta[n] is None or type(meta[n]) is int for n in ("n_projections", "n_conjugate")), "info")
    require(all(meta[n] is None or type(meta[n]) is float for n in ("error_bound", "validation_loss")), "info")
    require(type(meta["progress"]) is float and 0 <= meta["progress"] <= 1, "info")
    return FitInfo(**meta, objective=tuple(objective.tolist()))
