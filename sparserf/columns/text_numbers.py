"""Columns of words that are dates, numbers with separators or units, or numbers except for a few
cells such as "?"."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# A number in any common way of writing: a sign, a currency before or after it, separators of
# thousands, a decimal comma, an exponent, a percent sign, parentheses for a negative number.
CURRENCY = r"(?:[$€£¥₹₽₩₺]|[A-Z]{2}\$|USD|EUR|GBP|CHF|JPY|INR|CNY|SEK|NOK|DKK|PLN|BRL|CAD|AUD)"
DIGITS = r"(?:\d{1,3}(?:[,.'’_ \u00a0\u202f\u2009]\d{3})+(?:[.,]\d*)?|\d+(?:[.,]\d*)?|[.,]\d+)"
IN_LAKHS = r"\d{1,3}(?:,\d{2})+,\d{3}(?:\.\d*)?"
NUMBER = re.compile(
    rf"\s*\(?\s*[+\-−]?\s*{CURRENCY}?\s*[+\-−]?\s*(?:{IN_LAKHS}|{DIGITS})(?:[eE][+\-]?\d+)?\s*(?:%|‰|{CURRENCY})?\s*\)?\s*"
)


def numbers_as_text(count: Mapping[str, int]) -> tuple[list[str], str] | None:
    """Return (the words that are no numbers, an example of a number) of a column of words that are
    nearly all numbers; None of any other.

    At least 9 of 10 cells must be numbers, 3 of them different. Codes, such as postcodes, do not
    count: digits with a leading zero, or all of one length above 1. Nor do columns of numbers alone
    with at most 20 different ones, which may be codes.

    count : the number of cells of each word; missing cells are left out
    """
    numbers = [word for word in count if NUMBER.fullmatch(word)]
    others = [word for word in count if not NUMBER.fullmatch(word)]
    n_numbers = sum(count[word] for word in numbers)
    if len(numbers) < 3 or n_numbers < 0.9 * sum(count.values()):
        return None
    bare = [word.strip() for word in numbers]
    has_leading_zero = any(len(word) > 1 and word[0] == "0" and word.isdigit() for word in bare)
    are_of_one_length = len({len(word) for word in bare}) == 1 < len(bare[0]) and all(
        word.isdigit() for word in bare
    )
    if has_leading_zero or are_of_one_length or (not others and len(numbers) <= 20):
        return None
    plain = re.compile(r"[+-]?\d*\.?\d+")
    return others, next((word for word in numbers if not plain.fullmatch(word)), numbers[0])


def is_date(word: str) -> bool:
    """Return whether a word is a date of ISO 8601 with its year, month and day, with or without a
    time of day."""
    if not re.match(r"\d{4}-\d\d-\d\d", word):
        return False
    try:
        datetime.fromisoformat(word)
    except ValueError:
        return False
    return True
