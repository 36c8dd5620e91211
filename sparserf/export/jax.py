"""A model as Python source for JAX: a function that can be compiled, mapped and differentiated."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .._base.expressions import is_matrix
from .printer import Printer
from .written import heading

if TYPE_CHECKING:
    from .._base.expressions import Expression
    from .written import TermGroup, WrittenModel

HEAD = """
import jax.numpy as jnp

"""
# Functions that are written where they are called.
FUNCTIONS = {
    "_reached(": '''
def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    size = jnp.maximum(jnp.abs(u), reach)
    return jnp.where(jnp.abs(u) > reach, jnp.sign(u) * reach * (2 - reach / size), u)

''',
    "_positive(": "\ndef _positive(z):\n    return jnp.where(z >= 0, z, 0.0)\n\n",
    "_sign(": "\ndef _sign(z):\n    return jnp.where(z >= 0, 1.0, -1.0)\n\n",
}


def source(written: WrittenModel, digits: int | None) -> str:
    """Return source that defines `decision_function(x)`, of one row of numbers or of rows, in the
    dtype of JAX.

    Variables are x3, column 3, and u, the encodings; weights, offsets and coefficients of a group
    of terms stand before it.
    """
    printer, model = JaxPrinter(digits, written), written.model
    body = [f"x{j} = x[..., {j}]" for j in written.columns.tolist()]
    body += [
        "u = jnp.stack([",
        *(f"    {printer(each)}," for each in written.inputs),
        "], axis=-1)",
    ]
    printer.arrays.append(f"intercept = {printer.array(written.constant)}")
    body.append("f = intercept")
    if written.linear.any():
        printer.arrays.append(f"linear = {printer.array(written.linear.T)}")
        body.append("f = f + u @ linear")
    for k, group in enumerate(written.groups):
        body += printer.terms(group, k)
    if model.has_limits:
        ends = (
            "None" if end is None else printer.literal(end) for end in (model.lower, model.upper)
        )
        body.append(f"f = jnp.clip(f, {', '.join(ends)})")
    # A model of no terms has the same f for all rows.
    body.append("f = jnp.broadcast_to(f, (*x.shape[:-1], f.shape[-1]))")
    body.append("return f[..., 0]" if model.coef.ndim == 1 else "return f")
    functions = [text for name, text in FUNCTIONS.items() if any(name in line for line in body)]
    levels = {j: list(of) for j, of in written.levels.items()}
    note = [f"# x[..., {j}] is in {clock.unit}" for j, clock in written.clocks.items()]
    if levels:
        note.append(
            f"levels = {levels!r}  # in x a category is the place of its level, -1 for others"
        )
    lines = [
        f'"""{heading(written)}"""',
        HEAD + "".join(functions),
        *note,
        *printer.arrays,
        "",
        "",
        "def decision_function(x):",
    ]
    return "\n".join([*lines, *("    " + line for line in ["x = jnp.asarray(x)", *body])]) + "\n"


class JaxPrinter(Printer):
    """Writes expressions in JAX, of the numbers of columns: a category is the place of its level.

    arrays : the lines that define the arrays of terms
    """

    arrays: list[str]
    templates: ClassVar[dict[str, str]] = {
        "cos": "jnp.cos({})",
        "sin": "jnp.sin({})",
        "tanh": "jnp.tanh({})",
        "exp": "jnp.exp({})",
        "absolute": "jnp.abs({})",
        "positive": "_positive({})",
        "sign": "_sign({})",
    }

    smaller: ClassVar[str] = "jnp.minimum({}, {})"
    interpolated: ClassVar[str] = "jnp.interp({}, {}, {})"
    where: ClassVar[str] = "jnp.where({}, {}, {})"
    is_missing: ClassVar[str] = "jnp.isnan({})"

    def __init__(self, digits: int | None, written: WrittenModel):
        super().__init__(digits, written)
        self.arrays, self._group, self._may_miss = [], 0, False

    def array(self, values: np.ndarray) -> str:
        return f"jnp.array({self._listed(values)})"

    def _listed(self, values):
        if values.ndim == 0:
            return self.literal(values) if np.isfinite(values) else f"float({str(float(values))!r})"
        return "[" + ", ".join(map(self._listed, values)) + "]"

    # -- encodings

    def cell(self, e: Expression) -> str:
        """Return a cell; where it may be missing, a number in its place: no derivative is NaN."""
        x = super().cell(e)
        return f"jnp.where(jnp.isnan({x}), 0.0, {x})" if self._may_miss else x

    def impute(self, e: Expression) -> str:
        u, x = e.operands
        self._may_miss = True
        known = self(u)
        self._may_miss = False
        return self.where.format(self.is_missing.format(self(x)), self.literal(e.fill), known)

    def looked_up(self, e: Expression) -> str:
        numbers = self.array(np.array([e.other, *e.values.values()]))
        return f"jnp.interp({self(e.operands[0])}, jnp.arange(-1, {len(e.levels)}), {numbers})"

    # -- terms

    def terms(self, group: TermGroup, k: int) -> list[str]:
        """Return the lines that add the terms of group k to f, and define their arrays."""
        self._group = k
        self.arrays.append(f"coef{k} = {self.array(group.coef.T)}")
        return [f"phi = {self(group.block.expression)}", f"f = f + phi @ coef{k}"]

    def parameter(self, e: Expression) -> str:
        """Return the array of some numbers of the terms."""
        name = f"{e.name}{self._group}"
        self._define(f"{name} = {self.array(e.values)}")
        return name

    def _define(self, line):
        """Add the line of an array, once."""
        self.arrays += [] if line in self.arrays else [line]

    def seen(self, e: Expression) -> str:
        """Return the inputs of the terms."""
        inputs, u = f"inputs{self._group}", "u"
        if e.enveloped is not None:
            gamma, degree = e.enveloped
            envelope = (
                f"jnp.exp(-{self.literal(gamma / degree)} * jnp.sum(u * u, axis=-1, keepdims=True))"
            )
            u = (
                f"(jnp.concatenate([jnp.ones_like(u[..., :1]), {self.literal((2 * gamma) ** 0.5)} "
                f"* u], axis=-1) * {envelope})"
            )
        if e.inputs is None:
            return f"{u}[..., None, :]"
        self._define(f"{inputs} = jnp.array({e.inputs.tolist()})")
        return f"{u}[..., {inputs}]"

    def reduce(self, e: Expression) -> str:
        """Return the sum or product over the inputs of each term: a product with a matrix, where it
        is one."""
        (summand,) = e.operands
        if is_matrix(e):
            return f"u @ {self(summand.find('parameter'))}.T"
        return f"jnp.{'sum' if e.how == 'add' else 'prod'}({self(summand)}, axis=-1)"
