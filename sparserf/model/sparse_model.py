"""The model that every algorithm returns, f(x) = intercept + sum_j coef_j phi_j(x) over the
selected features phi_j.

Its fields and what it predicts are in `expansion/expansion.py`; its other methods in the
`methods.py` of `explain/`, `proof/`, `calculus/`, `export/` and `page/`, and its file in `file.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from .._base.floats import as_ieee, methods_as_ieee
from .._base.screen import folded, glued
from ..calculus.methods import CalculusMethods
from ..expansion.outputs import describe_limits
from ..explain.methods import ExplainMethods
from ..export.methods import ExportMethods
from ..page.methods import PageMethods
from ..proof.methods import ProofMethods
from . import file

if TYPE_CHECKING:
    from os import PathLike


@methods_as_ieee
@dataclass(frozen=True, eq=False, repr=False)
class SparseModel(ExplainMethods, ProofMethods, CalculusMethods, ExportMethods, PageMethods):
    """A sparse expansion f(x) = intercept + sum_j coef_j phi_j(x) in selected features phi_j.

    It is what all algorithms and `load` return; immutable, and can be pickled.

    Attributes
    ----------
    coef : ndarray of shape (n_terms,) or (n_outputs, n_terms)
        The coefficients; the second shape for several outputs, or more than two classes without an
        order.
    intercept : float, or ndarray of shape (n_outputs,)
    features : FeatureSet
        The selected features alone: predicting costs O(n_terms) a row, whatever the size of the
        dictionary.
    support : int64 ndarray of shape (n_terms,)
        The index of each term in the dictionary that it was selected from, ascending.
    classes : None, or ndarray of shape (n_classes,)
        The labels of a classifier, sorted, or with loss="ordinal" in their order.
    info : FitInfo
        How the fit went.
    n_features_in : int
        The number of columns of X.
    loss : str
        The name of the loss, one of `sparserf.losses` or of your own.
    loss_parameters : dict
        The parameters of the loss, {name: number}, including parameters that the fit chose.
    link : {"identity", "ascending", "log", "log_hazard", "softmax", "cumulative"}
        What `predict` returns: f, with "log_hazard" that of a hazard ratio, or e^f with "log"; with
        "ascending", for several quantiles, the f of each row in ascending order. With "softmax"
        `predict_proba` returns the softmax of f, with "cumulative" the probabilities of the classes
        between `thresholds`.
    thresholds : tuple of float
        The thresholds of classes in order, also in `loss_parameters`; else empty.
    lower, upper : float or None
        The least and the largest f, of all outputs: decision values beyond, offset included, are
        set to them. None: no limit. With the link "log" they are the logarithms of the limits of
        predictions. Whatever explains a model by its terms, such as `shapley`, `importances`,
        `effects` and `summary`, is about f before it is limited.
    size : int
        How many numbers predictions are computed from: those in the file that depend on the data,
        but for zeros. They are the coefficients and intercepts; the weights, thresholds and columns
        of terms; and what defines the encodings that terms see, such as centres, units and
        quantiles. Names and levels are not counted, nor how the fit went and the `ranges`. A leaf
        of a tree has three: a column, a threshold and a value.
    ranges : mapping of int to (float, float)
        The least and the largest number that training rows of positive weight have in each column
        of numbers that terms see, {index: (least, largest)}; an entry that CSR rows do not store is
        0, and NaN is left out. Empty where no rows were seen. Its `taken` has all values of the
        columns that took few whole numbers, {index: array}.

    Examples
    --------
    >>> import numpy as np, sparserf as srf
    >>> X = np.random.default_rng(0).uniform(-2, 2, (500, 2))
    >>> model = srf.harfe(X, np.sin(3 * X[:, 0]) * X[:, 1], n_nonzero_coefs=40, rng=0)
    >>> f = model.intercept + model.features.transform(X) @ model.coef  # all that it is
    >>> bool(np.allclose(f, model.predict(X))), len(model.coef)
    (True, 40)
    """

    def __repr__(self) -> str:
        kind = "regression" if self.classes is None else f"{len(self.classes)} classes"
        about = (
            f"{kind}, {len(self.features)} terms, {self.size} numbers, "
            f"{self.n_features_in} inputs, loss={self.loss!r}"
        )
        limits = glued(describe_limits(self))
        start = "SparseModel("
        return folded(f"{start}{', '.join(filter(None, [about, limits]))})", hanging=len(start))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file; `load` reads it back to the same predictions, bit for bit.

        Parameters
        ----------
        path : str or path
            Where the file goes, an uncompressed .npz: an ending that the path lacks is added.

        Raises
        ------
        ValueError
            The model has more than 2**27 inputs, and more than the file would hold numbers: `load`
            would refuse it.
        """
        file.save(self, path)

    def to_json(self) -> str:
        """Write the model as JSON text; `from_json` reads it back to the same predictions, bit for
        bit.

        Returns
        -------
        str
            The metadata of the file that `save` writes, and under "arrays" the dtype, shape and
            values of each array. A number takes some twenty characters, where the file has eight
            bytes.

        Raises
        ------
        ValueError
            The model has more inputs than `save` writes.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.linspace(-3, 3, 200)[:, None]
        >>> model = srf.sparse_rf(
        ...     X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0
        ... )
        >>> again = srf.SparseModel.from_json(model.to_json())
        >>> bool((again.predict(X) == model.predict(X)).all())
        True
        """
        return file.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a model from text that `to_json` made. The text is not trusted: it is checked as
        `load` checks a file.

        Parameters
        ----------
        text : str

        Returns
        -------
        SparseModel

        Raises
        ------
        ValueError
            The text is not a whole, consistent model, or has an array of more than 16 bytes for
            each character of the text and a megabyte.
        TypeError
            text is not a string.

        Examples
        --------
        >>> import sparserf as srf
        >>> srf.SparseModel.from_json("{}")
        Traceback (most recent call last):
        ValueError: text is not a model: ValueError: text has no format number: it is not a model
        """
        return cls(**vars(file.from_json(text)))


def check_model(model: object) -> None:
    """Raise a TypeError if model is no `SparseModel`."""
    if not isinstance(model, SparseModel):
        raise TypeError(f"model must be a SparseModel, got {type(model).__name__}")


@as_ieee
def load(path: str | PathLike[str]) -> SparseModel:
    """Read a model that `SparseModel.save` wrote, in this version or an earlier one; ".npz" may be
    left out of the path.

    The file is not trusted: it is read without pickle, runs no code, and makes no array larger than
    the file, but for weights that are mostly 0, of 32 numbers for each in the file and half a
    megabyte; nor a model of more than 2**27 inputs that it has no numbers for.

    Parameters
    ----------
    path : str or path
        The path of a file that `SparseModel.save` wrote.

    Returns
    -------
    SparseModel
        A model with the same predictions, bit for bit.

    Raises
    ------
    ValueError
        The file is not a whole, consistent model, or is of a later format: the message has the
        version that wrote it.
    OSError
        There is no such file, or it may not be read.

    Examples
    --------
    >>> import numpy as np, sparserf as srf, tempfile, pathlib
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = srf.sparse_rf(
    ...     X, np.sin(2 * X.ravel()), features="gaussian", alpha=0.01, n_components=500, rng=0
    ... )
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.npz"
    >>> model.save(path)
    >>> bool((srf.load(path).predict(X) == model.predict(X)).all())
    True
    """
    return SparseModel(**vars(file.read(path)))
