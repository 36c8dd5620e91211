"""What users change in a model: which terms they drop or keep, the signs of coefficients, and the
ends beyond which a column is flat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._base.checks import check_real, text_of
from .._base.screen import short_name
from ..columns.clocks import kind_of_times
from ..columns.places import find_columns
from ..expansion.terms import (
    column_clocks,
    column_levels,
    column_names,
    encoder_of,
    term_gains,
    terms_of,
)

if TYPE_CHECKING:
    from ..features import FeatureSet
    from ..model import SparseModel

# The place of a term, the name of a column, for all terms that see it, or a rule in words.
TermKey: TypeAlias = int | str
# What users write of terms: one key, or several.
Terms: TypeAlias = "TermKey | Iterable[TermKey] | None"
# The ends of a column beyond which the model is flat; None: that of the training rows.
Ends: TypeAlias = "tuple[Any, Any]"

# The largest end of a column.
LARGEST = 1e300
# The most columns of a term that an error names, and those that an edit tells one by one.
MOST_NAMED, MOST_TOLD = 3, 8


@dataclass(frozen=True, eq=False)
class Edit:
    """What is changed in a model, beside the coefficients that are fitted again.

    dropped, frozen : masks of the terms
    sign : the sign that the coefficient of each term is to have, 1 or -1; 0 for any
    ends : {column: (low, high)}, beyond which the model is to be constant
    """

    dropped: np.ndarray
    frozen: np.ndarray
    sign: np.ndarray
    ends: dict[int, tuple[float, float]]

    def sign_of_coef(self, model: SparseModel) -> np.ndarray:
        """Return the sign that each coefficient is to have: rules, and others, may have a factor
        below 0."""
        return np.where(term_gains(model.features) < 0, -1, 1) * self.sign

    def sentences(self, model: SparseModel) -> list[str]:
        """Return what is changed, in words."""
        sentences = []
        if n := np.count_nonzero(self.dropped):
            sentences.append(f"dropped {counted(n)}")
        if n := np.count_nonzero(self.frozen):
            sentences.append(f"kept {counted(n)} as {'it was' if n == 1 else 'they were'}")
        names, clocks = column_names(model), column_clocks(model)
        for j, ends in list(self.ends.items())[:MOST_TOLD]:
            clock = clocks.get(j)
            low, high = (f"{end:g}" if clock is None else str(clock.cell(end)) for end in ends)
            sentences.append(f"made constant in {short_name(names[j])} beyond [{low}, {high}]")
        if (n := len(self.ends) - MOST_TOLD) > 0:
            sentences.append(f"made constant in {n:,} more columns")
        for way, words in ((1, "at least 0"), (-1, "at most 0")):
            if n := np.count_nonzero(self.sign == way):
                sentences.append(f"kept the coefficient of {counted(n)} {words}")
        return sentences


def counted(n: int) -> str:
    """Return a number of terms in words."""
    return "1 term" if n == 1 else f"{n:,} terms"


def flattened(
    model: SparseModel, ends: dict[int, tuple[float, float]]
) -> tuple[FeatureSet, np.ndarray]:
    """Return the features of a model, constant in some columns beyond ends, and a mask of those
    that are then constant everywhere.

    Rules get other thresholds, all else the column encoder.
    """
    features = model.features
    if not ends:
        return features, np.zeros(len(features), bool)
    encoder, names = encoder_of(features), column_names(model)
    of_columns = np.tile([-np.inf, np.inf], (model.n_features_in, 1))
    of_columns[list(ends)] = list(ends.values())
    of_encodings = of_columns[encoder.column]
    is_flat = np.isfinite(of_encodings).all(axis=1)
    turns = is_flat & (encoder.turn > 0) & features.inputs_seen
    if turns.any():
        name = names[int(encoder.column[np.flatnonzero(turns)[0]])]
        raise ValueError(
            f"flatten must have columns that terms see as numbers alone, got {name!r}, of which "
            "they see the time of the day, the week or the year"
        )
    is_itself = encoder.is_itself & is_flat
    is_held = is_flat & (features.inputs_that_matter_beyond | ~is_itself)
    nowhere = [-np.inf, np.inf]
    own_ends = np.where(is_itself[:, None], of_encodings, nowhere)
    features, is_constant = features.flattened(own_ends, encoder.fill)
    held = encoder.flattened(np.where(is_held[:, None], of_encodings, nowhere))
    return features if held is encoder else features.encoded(held), is_constant


# ---------------------------------------------------------------- arguments


def read_edit(
    model: SparseModel,
    drop: Terms,
    freeze: Terms,
    sign: Mapping[TermKey, int] | None,
    flatten: Mapping[str | int, Ends] | None,
) -> Edit:
    """Return the edit that these arguments ask for."""
    terms = NamedTerms(model)
    dropped, frozen = terms.mask("drop", drop), terms.mask("freeze", freeze)
    edit = Edit(dropped, frozen, terms.signs(sign), read_ends(model, flatten))
    masks = {"drop": dropped, "freeze": frozen, "sign": edit.sign != 0}
    for (one, of_one), (other, of_other) in combinations(masks.items(), 2):
        if (of_one & of_other).any():
            k = int(np.flatnonzero(of_one & of_other)[0])
            raise ValueError(f"{one} and {other} must have no term in common, got {terms.title(k)}")
    return edit


class NamedTerms:
    """The terms of a model as users name them: by their places in `coef`, by the name of a column
    that they see, or, of rules, in words."""

    def __init__(self, model: SparseModel):
        self._model, self._n = model, len(model.features)
        self._names = column_names(model)

    @cached_property
    def _by_text(self):
        """{name of a column, or rule in words: the places of its terms}."""
        names, encoder = self._names, self._model.features.encoder
        of_columns, of_rules = {}, {}
        for term in terms_of(self._model.features):
            for j in term.columns.tolist():
                of_columns.setdefault(names[j], []).append(term.position)
            if words := term.condition(names, encoder):
                of_rules.setdefault(words, []).append(term.position)
        return of_rules | of_columns

    def mask(self, argument: str, keys: Terms) -> np.ndarray:
        """Return a mask of the terms that an argument names."""
        mask = np.zeros(self._n, bool)
        keys = [keys] if isinstance(keys, (str, Integral)) else () if keys is None else keys
        if not isinstance(keys, Iterable):
            raise TypeError(
                f"{argument} must be places of terms, names of columns or rules, got {keys!r}"
            )
        for key in keys:
            mask[self.places(argument, key)] = True
        return mask

    def signs(self, given: Mapping[TermKey, int] | None) -> np.ndarray:
        """Return the sign that is asked of each term; 0 where none is."""
        sign = np.zeros(self._n, int)
        if given is None:
            return sign
        if not isinstance(given, Mapping):
            raise TypeError(f"sign must be a mapping of terms to 1 or -1, got {given!r}")
        lowest = np.where(self._model.features.nonnegative, term_gains(self._model.features), 0)
        for key, way in given.items():
            if isinstance(way, (bool, np.bool_)) or way not in (1, -1):
                raise ValueError(f"sign must be 1 or -1 for {key!r}, got {way!r}")
            for k in self.places("sign", key):
                if sign[k] == -way or lowest[k] * way < 0:
                    other = "of a monotone model" if lowest[k] else "by another key"
                    raise ValueError(f"sign must not be {way} for {self.title(k)}, {-way} {other}")
                sign[k] = way
        return sign

    def places(self, argument: str, key: TermKey) -> list[int]:
        """Return the places of the terms that a key means."""
        if isinstance(key, str):
            if text_of(key) not in self._by_text:
                raise ValueError(
                    f"{argument} must name columns that terms see, or rules as summary writes "
                    f"them, got {key!r}"
                )
            return self._by_text[text_of(key)]
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, Integral):
            raise TypeError(
                f"{argument} must be places of terms, names of columns or rules, got {key!r}"
            )
        if not 0 <= key < self._n:
            raise ValueError(f"{argument} must have places of terms in [0, {self._n}), got {key}")
        return [int(key)]

    def title(self, k: int) -> str:
        """Return a term in words, with its place."""
        (term,) = terms_of(self._model.features.take([k]))
        return f"term {k}, {term.title(self._names, MOST_NAMED, self._model.features.encoder)}"


def read_ends(
    model: SparseModel, flatten: Mapping[str | int, Ends] | None
) -> dict[int, tuple[float, float]]:
    """Return {column: (low, high)} for the argument `flatten`."""
    if flatten is None:
        return {}
    if not isinstance(flatten, Mapping):
        raise TypeError(f"flatten must be a mapping of columns to (low, high), got {flatten!r}")
    names, levels, clocks = column_names(model), column_levels(model), column_clocks(model)
    seen, ends = model.features.columns_seen, {}
    found = find_columns("flatten", flatten, names, len(names))
    for j, pair in zip(found, flatten.values(), strict=True):
        what = f"flatten[{names[j]!r}]"
        if j in ends:
            raise ValueError(f"flatten must have each column once, got {names[j]!r} twice")
        if levels[j] is not None or not seen[j]:
            why = "which no term sees" if not seen[j] else "a category"
            raise ValueError(f"flatten must have columns of numbers, got {names[j]!r}, {why}")
        if not (isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2):
            raise TypeError(f"{what} must be a pair (low, high), got {pair!r}")
        known = model.ranges.known(j)
        if known is None and any(end is None for end in pair):
            raise ValueError(f"{what} must have two ends, since the model knows no range of it")
        own = zip(pair, known or pair, strict=True)
        low, high = (
            _number(what, given if given is not None else end, clocks.get(j)) for given, end in own
        )
        if low > high:
            raise ValueError(f"{what} must have low <= high, got {pair!r}")
        ends[j] = low, high
    return ends


def _number(what, end, clock):
    """Return an end of a column as a number; of a column of times it may be such a time."""
    if clock is not None and kind_of_times(type(end)):
        return clock.days(what, end)
    return check_real(what, end, -LARGEST)
