"""HTML for notebooks: tables with bars, in the font and colours of the page, bright or dark.

Each element has its own style, since notebooks keep no style sheets; there are no scripts and no
files from elsewhere. Text of users, such as names of columns and classes, goes through `text`,
which escapes it.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The colour of bars, which is seen on white and on black.
BAR = "#4c8fd6"
# The length of the longest bar, in em.
LONGEST_BAR = 9
# The most letters of a name; a longer one is shown whole where the mouse rests on it.
MOST_LETTERS = 60


def text(words: object) -> str:
    """Return words escaped for HTML, cut where they are long."""
    words = str(words)
    if len(words) <= MOST_LETTERS:
        return escape(words)
    return f'<span title="{escape(words)}">{escape(words[: MOST_LETTERS - 1])}…</span>'


def bar(share: float, start: float = 0.0) -> str:
    """Return a bar of this share, in [0, 1], of the longest length; up to `start` it is fainter."""
    return "".join(
        f'<span style="display:inline-block;width:{LONGEST_BAR * size:.2f}em;height:.7em;'
        f'background:{BAR};{look}"></span>'
        for size, look in ((start, "opacity:.4;"), (share - start, ""))
        if size > 0
    )


def progress(share: float, words: str) -> str:
    """Return a progress bar with words beside it."""
    track = (
        f"position:absolute;width:{LONGEST_BAR}em;height:100%;"
        "background:rgba(128,128,128,.2);border-radius:2px;"
    )
    whole = (
        f"display:inline-block;position:relative;width:{LONGEST_BAR}em;height:.7em;"
        "margin-right:.8em;"
    )
    filled = (
        f"position:absolute;width:{100 * share:.1f}%;height:100%;background:{BAR};"
        "border-radius:2px;"
    )
    return page(
        f'<span style="{whole}"><span style="{track}"></span><span '
        f'style="{filled}"></span></span>{escape(words)}'
    )


def title(name: str, words: str) -> str:
    """Return a line with a name in bold and words beside it."""
    return f'<div style="margin-bottom:.2em;"><b>{escape(name)}</b>&ensp;{escape(words)}</div>'


def line(words: str) -> str:
    """Return a line of plain words."""
    return f"<div>{escape(words)}</div>"


def note(words: str) -> str:
    """Return a fainter line, for an explanation or a remark on omissions."""
    return f'<div style="opacity:.7;font-size:.9em;">{escape(words)}</div>'


def gap() -> str:
    """Return an empty line."""
    return '<div style="height:.8em;"></div>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1, best: int | None = None
) -> str:
    """Return a table of cells of HTML.

    n_left : the number of left-aligned columns, of words and bars; the others, of numbers, are
        right-aligned
    best : the row that is in bold
    """
    of_cells = (
        "padding:.15em 1em .15em 0;border:0;background:none;white-space:nowrap;"
        "vertical-align:middle;"
    )

    def row(cells, tag, look):
        """Return a row of cells of one tag and style."""
        sides = ["left" if k < n_left else "right" for k in range(len(cells))]
        styled = zip(cells, sides, strict=True)
        cells = (
            f'<{tag} style="{of_cells}text-align:{side};{look}">{cell}</{tag}>'
            for cell, side in styled
        )
        return f'<tr style="background:none;">{"".join(cells)}</tr>'

    body = "".join(
        row(cells, "td", "font-weight:600;" if k == best else "") for k, cells in enumerate(rows)
    )
    rule = "1px solid rgba(128,128,128,.4)"
    head = row(head, "th", f"font-weight:400;opacity:.7;border-bottom:{rule};")
    look = (
        "border-collapse:collapse;border:0;margin:.5em 0;font-size:inherit;"
        "font-variant-numeric:tabular-nums;"
    )
    return f'<table style="{look}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def page(*parts: str) -> str:
    """Return the parts as one element, in which notebooks take no dollar signs for mathematics."""
    look = "line-height:1.5;overflow-x:auto;padding:.2em 0;"
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{look}">{"".join(parts)}</div>'
