"""The docstring of an estimator: what the function says of its parameters, under the names that scikit-learn has for them."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OWN = {
    "random_state": "random_state : None, int, RandomState or numpy.random.Generator, default None\n    Seed of the draws.",
    "n_jobs": "n_jobs : int or None, default None\n    Threads; -1 for all cores. The result does not depend on it.",
}
OF_REAL = '''loss : {"squared", "huber", "quantile", "poisson", "gamma"} or `sparserf.losses.Loss`, default "squared"
    Objects have parameters, such as `losses.Quantile(level=0.9)`; these are `loss__level` and so on in `set_params`.'''
OF_LABELS = '''loss : {{"logistic", "multinomial", {others}}} or `sparserf.losses.Loss`, default "logistic"
    The first two have `predict_proba`.'''
ATTRIBUTES = """
Attributes
----------
model_ : SparseModel
    What `sparserf.{function}` returned.
n_features_in_, feature_names_in_ : int, ndarray of str
    The columns of X; their names, where it was a data frame with names that are strings.
n_iter_ : int
    Iterations of the fit.
"""
CLASSES = "classes_ : ndarray of shape (n_classes,)\n    The labels, sorted.\n"


def documented(cls: type, function: Callable[..., Any], renamed: dict[str, str]) -> str:
    """The docstring of a class with sections before its examples: the parameters of its constructor, and its attributes."""
    entries, names = entries_of(function), set(inspect.signature(cls.__init__).parameters)
    others = re.findall('"[a-z_]*hinge"', entries["loss"])
    own = {**OWN, "loss": OF_LABELS.format(others=", ".join(others)) if hasattr(cls, "decision_function") else OF_REAL}
    told = []
    for name, entry in entries.items():
        name = renamed.get(name, name)
        if name in names:
            told.append(own.get(name, entry))
    sections = "\n".join(["Parameters\n----------", *told]) + "\n"
    sections += ATTRIBUTES.format(function=function.__name__) + (CLASSES if hasattr(cls, "decision_function") else "")
    before, examples = cls.__doc__.split("    Examples\n", 1)
    return before + textwrap.indent(sections, "    ") + "\n    Examples\n" + examples


def entries_of(function: Callable[..., Any]) -> dict[str, str]:
    """{name: its entry} of the section of parameters of a docstring; those that are told of together, with the first."""
    section = inspect.getdoc(function).split("Parameters\n----------\n", 1)[1].split("\n\n", 1)[0]
    starts = [line.start() for line in re.finditer(r"^\S", section, re.MULTILINE)]
    entries = [section[a:b].rstrip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return {re.match(r"\w+", entry).group(): entry for entry in entries}
