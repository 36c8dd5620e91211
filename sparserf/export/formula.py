"""A model as a formula: to be read, as text or LaTeX, or to be run.

Each language is a file of its name, with a function `source`.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, get_args

from .._base.checks import check_choice, check_integer
from .short_text import shortened
from .written import WrittenModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expansion import Expansion

Language: TypeAlias = Literal["text", "latex", "python", "sql", "javascript", "sympy", "jax"]


def formula(
    model: Expansion,
    language: Language,
    n_terms: int | Literal["auto"] | None,
    digits: int | None,
    table: str | Sequence[str] = "data",
    keep: Sequence[str] = (),
) -> Formula:
    """Write a model in one of the languages: see `SparseModel.formula`."""
    check_choice("language", language, get_args(Language))
    if isinstance(n_terms, str):
        check_choice("n_terms", n_terms, ("auto",))
    is_short = language == "text" and n_terms is not None
    n_terms = None if n_terms in (None, "auto") else check_integer("n_terms", n_terms, 0)
    digits = None if digits is None else check_integer("digits", digits, 1)
    if language != "sql" and (table != "data" or keep != ()):
        raise ValueError(f"table and keep are for language='sql', got language={language!r}")
    if is_short:
        text = shortened(WrittenModel.from_model(model), digits, n_terms)
    else:
        how = (table, keep) if language == "sql" else ()
        text = import_module(f".{language}", __package__).source(
            WrittenModel.from_model(model, n_terms), digits, *how
        )
    return Formula(text, language)


class Formula(str):
    """A string that interpreters show in its lines, and notebooks as typeset mathematics or
    highlighted code."""

    language: Language

    def __new__(cls, text: str, language: Language = "text") -> Self:
        self = super().__new__(cls, text)
        self.language = language
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str | None:
        return f"$$\n{self}\n$$" if self.language == "latex" else None

    def _repr_markdown_(self) -> str | None:
        """Return a block of code, fenced by more backticks than it has in a row."""
        if self.language in ("text", "latex"):
            return None
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", self)), default=0))
        code = self.language if self.language in ("sql", "javascript") else "python"
        return f"{fence}{code}\n{self.rstrip()}\n{fence}"
