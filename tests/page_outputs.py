"""Write below the code of pages what it prints: python tests/page_outputs.py PAGE ...

A page is a file such as docs/groups.md. What code prints is the block without a language that
follows it, where there is one. Tests run the code and compare.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCKS = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n^```\n(?P<told>.*?)^```$)?", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# Other processors round differently, and a search may find other terms.
ALIKE, OF_NUMBERS = 0.75, 0.3


def run(text, name, after_each=lambda names: None):
    """Run the Python blocks of a page in order; return (told, printed) of each, and the names.

    `after_each` is called with the names after each block.
    """
    names, found = {"__name__": "__main__"}, []
    for block in BLOCKS.finditer(text):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block["code"], name, "exec"), names)
        found.append((block["told"], out.getvalue()))
        after_each(names)
    return found, names


def are_alike(told, printed):
    """Return whether most lines have the same words, and numbers that are near."""
    told, printed = told.splitlines(), printed.splitlines()
    pairs = [lines for lines in zip(told, printed, strict=False) if _are_alike(*lines)]
    return len(pairs) >= ALIKE * max(len(told), len(printed))


def _are_alike(told, printed):
    if NUMBER.sub("", told).split() != NUMBER.sub("", printed).split():
        return False
    numbers = [
        [float(number.replace(",", "")) for number in NUMBER.findall(line)]
        for line in (told, printed)
    ]
    return len(numbers[0]) == len(numbers[1]) and all(
        abs(a - b) <= OF_NUMBERS * max(abs(a), abs(b)) + 0.02 for a, b in zip(*numbers, strict=True)
    )


def main():
    for page in map(Path, sys.argv[1:]):
        text = page.read_text()
        before = Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "tools").symlink_to(ROOT / "tools")
            os.chdir(folder)
            found, _ = run(text, page.name)
            os.chdir(before)
        printed = iter([out for _, out in found])

        def written(block):
            out = next(printed)
            code = f"```python\n{block['code']}```"
            return code if block["told"] is None else f"{code}\n\n```\n{out}```"

        page.write_text(BLOCKS.sub(written, text))


if __name__ == "__main__":
    main()
