"""The default call with one of its rules changed, to see what the rule buys."""

import importlib
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

import numpy as np
from experiments.beside import measured
from experiments.data import value

from sparserf.algorithms.default.stack import stacked_weights

DEFAULT = "sparserf.algorithms.default."


def changed(data, seed, put=None, without=(), **options):
    """Return costs and errors of the call, measured as `beside.measured` does, with changes.

    put : {"MODULE:NAME": value}, what stands in place of a constant, a function or a class; a text
        is an expression
    without : the names of members that are left out
    """
    with ExitStack() as changes:
        for name, new in (put or {}).items():
            owner, attribute = place_of(name)
            changes.enter_context(patch.object(owner, attribute, value(new)))
        if without:
            owner, attribute = place_of("search:members_of")
            every = partial(members_without, getattr(owner, attribute), without)
            changes.enter_context(patch.object(owner, attribute, every))
        return measured(data, seed, warm_up=[data.loss], **options)


def place_of(name):
    """Return (module or class, attribute) of a name such as "members:Linear.fall", of a module of
    the default or else of the library; raise an error that says which name is gone."""
    module, _, path = name.partition(":")
    *classes, attribute = path.split(".")
    for folder in (DEFAULT, "sparserf."):
        try:
            owner = importlib.import_module(folder + module)
        except ModuleNotFoundError:
            continue
        for each in classes:
            owner = getattr(owner, each, None)
        if hasattr(owner, attribute):
            return owner, attribute
    raise LookupError(f"ablation.toml changes {name}, which the library does not have")


def members_without(members_of, names, *args):
    """Yield the members but those of these names, as `members_of` makes them."""
    left = []
    for make, share in members_of(*args):
        member = make.func.__self__.name
        if member in names:
            left.append(member)
        else:
            yield make, share
    if set(left) != set(names):
        raise LookupError(f"ablation.toml leaves out {names}, the default has only {left} of them")


# What stands in place of functions


def one_way(nth, members):
    """Return `Cosines.of_folds` with one of the ways to see the columns in all folds."""
    original = members.Cosines.of_folds.__func__

    def of_folds(cls, *args):
        member = original(cls, *args)
        return member.in_way(nth % member.n_ways)

    return classmethod(of_folds)


def best_alone(loss, predictions, constant, start=None):
    """Return weights, as `stacked_weights` does, of the best member alone."""
    best = int(np.argmin([loss.mean(each) for each in predictions]))
    return np.eye(len(predictions))[best] * stacked_weights(loss, [predictions[best]], constant)[0]
