"""A model as Python source for JAX: a function that can be compiled, mapped and differentiated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .expressions import angle_expression, float_literal, title
from .written import encoded_values, reach_of

if TYPE_CHECKING:
    from .written import WrittenModel

HELPERS = '''
import jax.numpy as jnp


def _reached(u, reach):
    """As it is up to the reach of the training rows, and beyond it less than twice that."""
    size = jnp.maximum(jnp.abs(u), reach)
    return jnp.where(jnp.abs(u) > reach, jnp.sign(u) * reach * (2 - reach / size), u)


def _squeezed(u):
    return u / jnp.sqrt(1 + (u / 3) ** 2)

'''
# The templates of activations.
CALLS = {"cos": "jnp.cos({})", "sin": "jnp.sin({})", "tanh": "jnp.tanh({})", "relu": "_relu({})", "sign": "_sign({})"}
# Functions that are written where they are called.
FUNCTIONS = {
    "relu": "def _relu(z):\n    return jnp.where(z >= 0, z, 0.0)\n\n",
    "sign": "def _sign(z):\n    return jnp.where(z >= 0, 1.0, -1.0)\n\n",
}


def jax_source(written: WrittenModel, digits: int | None) -> str:
    """Return source that defines `decision_function(x)`, of one row of numbers or of rows, in the dtype of JAX.

    Variables are x3, column 3, and u, the encodings; weights, offsets and coefficients of a group of terms stand before it.
    """
    number, model = partial(float_literal, digits), written.model
    array = lambda values: f"jnp.array({_listed(values, number)})"  # noqa: E731
    arrays, body = [], [f"x{j} = x[..., {j}]" for j in written.columns.tolist()]
    encodings = []
    for place, v in enumerate(written.made_encodings.tolist()):
        column = written.stage.column[place]
        lines = [f"x{column}"] if written.encodings is None else _encode(written, place, f"u{v}", number, array)
        body += [f"u{v} = {line}" for line in lines]
        encodings.append(f"u{v}")
    body.append(f"u = jnp.stack([{', '.join(encodings)}], axis=-1)")
    arrays.append(f"intercept = {array(written.constant)}")
    body.append("f = intercept")
    if written.linear.any():
        arrays.append(f"linear = {array(written.linear.T)}")
        body.append("f = f + u @ linear")
    for k, group in enumerate(written.groups):
        coef = group.coef
        if group.gamma is not None:
            coef = coef * group.weights[:, 0] ** group.inputs.shape[1]
            body.append(
                f"factors = jnp.concatenate([jnp.ones_like(u[..., :1]), {number((2 * group.gamma) ** 0.5)} * u], axis=-1)"
            )
            body.append(f"phi = jnp.exp(-{number(group.gamma)} * jnp.sum(u * u, axis=-1, keepdims=True))")
            for position, inputs in enumerate(group.inputs.T):
                arrays.append(f"inputs{k}_{position} = jnp.array({inputs.tolist()})")
                body.append(f"phi = phi * factors[..., inputs{k}_{position}]")
        else:
            seen = "u[..., None, :]" if group.inputs is None else f"u[..., inputs{k}]"
            arrays += [f"inputs{k} = jnp.array({group.inputs.tolist()})"] if group.inputs is not None else []
            arrays.append(f"weights{k} = {array(group.weights)}")
            if group.centers is not None:
                arrays.append(f"centers{k} = {array(group.centers)}")
                body.append(f"phi = jnp.exp(-jnp.sum(weights{k} * jnp.abs({seen} - centers{k}), axis=-1))")
            else:
                arrays.append(f"offset{k} = {array(group.offset)}")
                z = f"u @ weights{k}.T" if group.inputs is None else f"jnp.sum(weights{k} * {seen}, axis=-1)"
                body.append(f"phi = {CALLS[group.activation].format(f'{z} + offset{k}')}")
        arrays.append(f"coef{k} = {array(coef.T)}")
        body.append(f"f = f + phi @ coef{k}")
    if model.has_limits:
        ends = ("None" if end is None else number(end) for end in (model.lower, model.upper))
        body.append(f"f = jnp.clip(f, {', '.join(ends)})")
    # A model of no terms has the same f for all rows.
    body.append("f = jnp.broadcast_to(f, (*x.shape[:-1], f.shape[-1]))")
    body.append("return f[..., 0]" if model.coef.ndim == 1 else "return f")
    functions = [text for name, text in FUNCTIONS.items() if any(group.activation == name for group in written.groups)]
    levels = {j: list(of) for j, of in written.levels.items()}
    note = [f"# x[..., {j}] is in {clock.unit}" for j, clock in written.clocks.items()]
    note += [f"levels = {levels!r}  # in x a category is the place of its level, -1 for others"] if levels else []
    lines = [f'"""{title(written)}"""', HELPERS, *functions, *note, *arrays, "", "", "def decision_function(x):"]
    return "\n".join([*lines, *("    " + line for line in ["x = jnp.asarray(x)", *body])]) + "\n"


def _listed(values, number):
    """Return an array as nested lists of literals."""
    if values.ndim == 0:
        return number(values) if np.isfinite(values) else f"float({str(float(values))!r})"
    return "[" + ", ".join(_listed(each, number) for each in values) + "]"


def _encode(written, place, u, number, array):
    """Return the expressions that are assigned to u, one after the other, to make an encoding of a column."""
    stage, kind = written.stage, written.kinds[place]
    x = f"x{stage.column[place]}"
    if kind in ("level", "missing", "present"):
        level = int(stage.level[place])
        cells = {"level": [level, level - 1], "missing": [np.nan, 0.0], "present": [1.0, 0.0]}[kind]
        high, low = encoded_values(stage, place, cells)
        condition = {"level": f"({x} >= {level}) & ({x} < {level + 1})", "missing": f"jnp.isnan({x})", "present": f"{x} != 0"}
        return [f"jnp.where({condition[kind]}, {number(high)}, {number(low)})"]
    known = f"jnp.where(jnp.isnan({x}), 0.0, {x})" if stage.may_miss else x  # no derivative is NaN
    some = slice(stage.first_knot[place], stage.first_knot[place + 1])
    if some.stop > some.start:
        known = f"jnp.interp({known}, {array(stage.knots[some])}, {array(stage.scores[some])})"
    turn = float(stage.turn[place])
    known = f"jnp.cos({angle_expression(turn, float(stage.level[place]), known)})" if turn else known
    unit, reach = float(stage.unit[place]), reach_of(stage, place)
    lines = [f"({known} - {number(stage.center[place])}) / {number(unit)}" if unit else f"0.0 * {known}"]
    lines += [f"_reached({u}, {number(reach)})"] if reach is not None else []
    lines += [f"_squeezed({u})"] if kind == "clipped" else []
    fill = number(stage.fill[place])
    return lines + ([f"jnp.where(jnp.isnan({x}), {fill}, {u})"] if stage.may_miss else [])
