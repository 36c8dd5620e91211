"""HTML that notebooks show: tables with bars, in the letters and on the ground of the page around them, bright or dark.

Each element has its own style, since notebooks keep no sheets of it; there are no scripts and no files from elsewhere. Text of
users, as names of columns and classes, goes through `text`.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BAR, TRACK, RULE = "#4c8fd6", "rgba(128,128,128,.2)", "1px solid rgba(128,128,128,.4)"  # seen on white and on black
CELL = "padding:.15em 1em .15em 0;border:0;background:none;white-space:nowrap;vertical-align:middle;"
MOST_LETTERS = 60  # of a name
LONGEST_BAR = 9  # in the width of a letter


def text(words: object) -> str:
    """Any words, that mean nothing in HTML; cut where they are long, all of them where the mouse rests."""
    words = str(words)
    if len(words) <= MOST_LETTERS:
        return escape(words)
    return f'<span title="{escape(words)}">{escape(words[: MOST_LETTERS - 1])}…</span>'


def bar(share: float, start: float = 0.0) -> str:
    """A bar of this share, in [0, 1], of the longest; of a range: from its start, both in parts fainter."""
    return "".join(
        f'<span style="display:inline-block;width:{LONGEST_BAR * size:.2f}em;height:.7em;background:{BAR};{look}"></span>'
        for size, look in ((start, "opacity:.4;"), (share - start, ""))
        if size > 0
    )


def progress(share: float, words: str) -> str:
    """A bar on a track, and words."""
    track = f"position:absolute;width:{LONGEST_BAR}em;height:100%;background:{TRACK};border-radius:2px;"
    whole = f"display:inline-block;position:relative;width:{LONGEST_BAR}em;height:.7em;margin-right:.8em;"
    filled = f"position:absolute;width:{100 * share:.1f}%;height:100%;background:{BAR};border-radius:2px;"
    return page(f'<span style="{whole}"><span style="{track}"></span><span style="{filled}"></span></span>{escape(words)}')


def title(name: str, words: str) -> str:
    return f'<div style="margin-bottom:.2em;"><b>{escape(name)}</b>&ensp;{escape(words)}</div>'


def line(words: str) -> str:
    return f"<div>{escape(words)}</div>"


def note(words: str) -> str:
    """A line that explains, or says what is left out."""
    return f'<div style="opacity:.7;font-size:.9em;">{escape(words)}</div>'


def gap() -> str:
    return '<div style="height:.8em;"></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], n_left: int = 1, best: int | None = None) -> str:
    """A table of cells of HTML.

    n_left : how many columns stand at the left: words and bars; the others, of numbers, at the right
    best : the row that is marked
    """

    def row(cells, tag, look):
        sides = ["left" if k < n_left else "right" for k in range(len(cells))]
        styled = zip(cells, sides, strict=True)
        cells = (f'<{tag} style="{CELL}text-align:{side};{look}">{cell}</{tag}>' for cell, side in styled)
        return f'<tr style="background:none;">{"".join(cells)}</tr>'

    body = "".join(row(cells, "td", "font-weight:600;" if k == best else "") for k, cells in enumerate(rows))
    head = row(head, "th", f"font-weight:400;opacity:.7;border-bottom:{RULE};")
    look = "border-collapse:collapse;border:0;margin:.5em 0;font-size:inherit;font-variant-numeric:tabular-nums;"
    return f'<table style="{look}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def page(*parts: str) -> str:
    """What a notebook is given, and takes no dollars in it for mathematics."""
    look = "line-height:1.5;overflow-x:auto;padding:.2em 0;"
    return f'<div class="tex2jax_ignore mathjax_ignore" style="{look}">{"".join(parts)}</div>'
