"""The page of a model: the file that has its data and its scripts.

The policy of the page allows the scripts and the style that it has, by their hashes, and nothing
from elsewhere.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from .._base.deadline import check_time_limit
from .._base.files import new_file
from ..export.formula import formula
from .content import content

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import ArrayLike

    from .._base.types import MatrixLike
    from ..expansion import Expansion
    from .content import Band

# The functions and arrays of the exported JavaScript that the page uses.
USED = (
    "columns",
    "read",
    "encode",
    "terms",
    "decisions",
    "inverseLink",
    "predictions",
    "classes",
    "classOf",
    "probabilities",
)


def to_html(
    model: Expansion,
    path: str | PathLike[str] | None,
    X: MatrixLike | None,
    y: ArrayLike | None,
    title: str | None,
    time_limit: float | None,
    band: Band | None = None,
) -> str:
    """Write the page of a model: see `SparseModel.to_html`; band : the interval about its
    predictions."""
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a string, got {title!r}")
    if X is None and y is not None:
        raise ValueError("y must be None where X is, got targets without rows")
    check_time_limit(time_limit)  # which begins when proofs do
    name = getattr(y, "name", None)
    title = title or (f"A model of {name}" if isinstance(name, str) else "A model")
    code = {"model": str(formula(model, "javascript", None, None))}
    if band is not None and band.scale is not None:
        code["scale"] = str(formula(band.scale, "javascript", None, None))
    text = _filled(title, content(model, X, y, title, time_limit, band), code)
    if path is not None:
        with new_file(path) as file:
            file.write(text.encode())
    return text


def _filled(title, data, code):
    """Return the page with its data, its scripts and the policy that allows these alone.

    code : {name of an object of the page: the source whose functions it has}
    """
    own = ", ".join(f"{name}: typeof {name} === 'undefined' ? null : {name}" for name in USED)
    models = "".join(
        f"const {name} = (() => {{\n// ----\n{source}// ----\nreturn {{ {own} }};\n}})();\n"
        for name, source in code.items()
    )
    style, script = _resource("page.css"), f'"use strict";\n{models}{_resource("page.js")}'
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(_resource("page.html")).substitute(
        title=escape(title),
        policy=escape(policy),
        style=style,
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        script=script,
    )


def _resource(name):
    """Return the text of a file beside this one."""
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text):
    """Return what a policy calls a script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
