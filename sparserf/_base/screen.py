"""Text that fits a screen: names that are cut, and lines that are folded."""

from __future__ import annotations

from collections import Counter
from textwrap import TextWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The most characters of a line.
WIDTH = 100
# The most characters of the name of a column or level; of a longer one the beginning and the end
# are shown, in which names of one table differ.
LONGEST_NAME, END = 40, 18
DOTS = "..."
# Stands for a space at which no line is folded.
GLUE = "\x1f"


def one_line(text: object) -> str:
    """Return text in which what cannot be printed, such as the end of a line, is escaped."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def short_name(name: object) -> str:
    """Return a name on one line, without its middle where it is long."""
    name = one_line(name)
    if len(name) <= LONGEST_NAME:
        return name
    return name[: LONGEST_NAME - END - len(DOTS)] + DOTS + name[-END:]


def short_names(names: Mapping[int, object]) -> dict[int, str]:
    """Return {place: `short_name`}; names that would be alike are told apart by their places."""
    short = {k: short_name(name) for k, name in names.items()}
    count = Counter(short.values())
    return {k: f"{name} ({k})" if count[name] > 1 else name for k, name in short.items()}


def glued(text: str) -> str:
    """Return words that stay in one line where text is `folded`, unless they are long."""
    return text.replace(" ", GLUE) if len(text) <= LONGEST_NAME + END else text


def percent(share: float) -> str:
    """Return a share as per cent."""
    return f"{100 * share:.1f} %"


def folded(text: str, most_lines: int | None = None, hanging: int | None = None) -> str:
    """Return text whose lines have at most WIDTH characters, folded at spaces.

    most_lines : of a line that would be folded to more, the rest is left out; long words are cut.
        None: nothing is left out, and longer words stay whole
    hanging : how far the following lines of a folded one are indented; None: 4 more than it is
    """
    lines = (_folded(line, most_lines, hanging) for line in text.split("\n"))
    return "\n".join(lines).replace(GLUE, " ")


def _folded(line, most_lines, hanging):
    """Return one line, folded."""
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(line) - len(line.lstrip(" ")))
    wrapper = TextWrapper(
        WIDTH,
        indent,
        f"{indent}    " if hanging is None else " " * hanging,
        expand_tabs=False,
        replace_whitespace=False,
        break_on_hyphens=False,
        break_long_words=most_lines is not None,
        max_lines=most_lines,
        placeholder=f" {DOTS}",
    )
    return wrapper.fill(line[len(indent) :])
