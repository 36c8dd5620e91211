"""Levels of instruction sets: which level runs, the bits that levels share, and that a higher level
is no slower."""

import os
import platform
import subprocess
import sys
import time
from hashlib import sha256
from itertools import pairwise, product

import numpy as np
import pytest

from sparserf._core.features import ACTIVATIONS, PANEL
from sparserf._core.rows import LEVELS, RowSlice
from sparserf.features import BumpBlock, NeuronBlock

from ..conftest import each_dtype

# Levels that fuse multiplication and addition. The baseline of x86-64 has no such instruction.
FUSED = [
    level
    for level, name in enumerate(LEVELS)
    if name != "baseline" or platform.machine() == "aarch64"
]


def python(code, **env):
    """Run code in a fresh interpreter with these environment variables."""
    env = {name: value for name, value in os.environ.items() if name != "SPARSERF_LEVEL"} | env
    return subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=600, env=env
    )


# Prints hashes of a tile of features and of normal equations at every level, and last at the
# default level.
BITS = """
import numpy as np
from sparserf._core.rows import LEVELS, RowSlice
from sparserf.features import NeuronBlock
rng = np.random.default_rng(0)
X, p, h = rng.standard_normal((64, 37)), rng.standard_normal((1, 37)), rng.standard_normal((1, 64))
block = NeuronBlock("cos", 1.0, rng.standard_normal((32, 37)), np.zeros(32))
panels = block.packed(np.dtype(float), 37)
for level in (*range(len(LEVELS)), -1):
    phi, f, out = np.empty((64, 32)), np.zeros((1, 64)), np.zeros((1, 37))
    rows = RowSlice(X, level=level)
    panels.transform(rows, phi)
    rows.normal(p, h, f, out)
    print(hash(phi.tobytes()), hash(f.tobytes() + out.tobytes()))
"""


@pytest.mark.parametrize("name", LEVELS)
def test_level_is_forced_in_all_kernels(name):
    done = python(BITS, SPARSERF_LEVEL=name, PYTHONHASHSEED="0")
    *each, default = done.stdout.splitlines()
    assert done.stderr == "" and default == each[LEVELS.index(name)]


def test_the_best_level_is_the_default():
    code = "from sparserf._core.rows import LEVEL; print(LEVEL)"
    for env in ({}, {"SPARSERF_LEVEL": ""}):
        assert python(code, **env).stdout == f"{len(LEVELS) - 1}\n"


def test_level_that_is_not_there():
    done = python("import sparserf", SPARSERF_LEVEL="x86-64-v9")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ValueError: SPARSERF_LEVEL must be one of {LEVELS} on this processor, got 'x86-64-v9'"
    )


def answers(level, dtype, activation, n_inputs, n_features, order):
    """Return the output of every kernel for one case."""
    rng = np.random.default_rng([n_inputs, n_features])
    n, width = 133, -(-n_features // PANEL) * PANEL

    def numbers(*shape):  # multiples of 2**-19, the same in every version of NumPy
        return rng.integers(-(2**20), 2**20, shape) / 2**19

    X, v, h = numbers(n, n_inputs).astype(dtype), numbers(2, n), numbers(2, n)
    weights, offset = numbers(n_features, order or n_inputs), numbers(n_features)
    coef, p = numbers(2, width), numbers(2, n_inputs)
    inputs = rng.integers(0, n_inputs, weights.shape).astype(np.int32) if order else None
    panels = NeuronBlock(activation, 0.7, weights, offset, inputs).packed(
        np.dtype(dtype), 10**9 if order else n_inputs
    )
    phi, sums, sine, squares = np.empty((n, n_features), dtype), *np.zeros((3, 2, width))
    f, g, out = np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, n_inputs))
    rows = RowSlice(X, level=level)
    panels.transform(rows, phi)
    panels.correlate(rows, v, sums, sine=sine if activation == "cos" else None)
    panels.correlate(rows, v, squares, True)
    panels.apply(rows, coef, f)
    rows.normal(p, h, g, out)
    z, products, product_squares = np.zeros((2, n)), *np.zeros((2, 2, n_inputs))
    rows.apply(p, z)
    rows.correlate(v, products)
    rows.correlate(v, product_squares, True)
    return phi, sums, sine, squares, f, g, out, z, products, product_squares


@pytest.mark.skipif(not FUSED, reason="this processor has no fused operations")
def test_fused_levels_give_the_same_bits_on_every_processor():
    """The digest is that of x86-64-v3, x86-64-v4 and aarch64, compiled by GCC 12 and by Clang
    14."""
    for level in FUSED:
        digest = sha256()
        for shape in ((1, 1), (7, 65), (8, 32), (21, 100), (150, 40)):
            for activation in (name for name in ACTIVATIONS if name not in ("product", "bump")):
                for dtype, order in product((np.float32, np.float64), (None, 3)):
                    for answer in answers(level, dtype, activation, *shape, order):
                        digest.update(answer.tobytes())
        assert digest.hexdigest()[:16] == "7fbfb46d96a1a032", LEVELS[level]


@each_dtype
@pytest.mark.parametrize("order", [None, 3])
def test_fused_levels_give_the_same_bits_of_bumps(dtype, order):
    rng = np.random.default_rng(0)
    X, (weights, centers) = (
        rng.standard_normal((133, 21)).astype(dtype),
        rng.standard_normal((2, 100, order or 21)),
    )
    inputs = np.argsort(rng.random((100, 21)), axis=1)[:, :3].astype(np.int32) if order else None
    panels = BumpBlock(0.7, weights, centers, inputs).packed(
        np.dtype(dtype), 10**9 if order else 21
    )
    each = np.empty((len(FUSED), 133, 100), dtype)
    for level, phi in zip(FUSED, each, strict=True):
        panels.transform(RowSlice(X, level=level), phi)
    assert (each == each[:1]).all()


def seconds_of_each(runs, repetitions=15):
    """Return the shortest time of each function; they are run in turns."""
    best = [np.inf] * len(runs)
    for _ in range(repetitions):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


@pytest.mark.skipif(len(LEVELS) < 2, reason="this processor has one level")
@each_dtype
@pytest.mark.parametrize("activation", ["cos", "tanh", "bump"])
def test_no_level_is_slower_than_the_one_below(dtype, activation):
    """Where a compiler drops an instruction set, the level is three times slower than the one
    below."""
    rng = np.random.default_rng(0)
    X, out, weights = (
        rng.standard_normal((64, 21)).astype(dtype),
        np.zeros((1, 128)),
        rng.standard_normal((128, 21)),
    )
    is_bump = activation == "bump"
    block = (
        BumpBlock(1.0, weights, weights)
        if is_bump
        else NeuronBlock(activation, 1.0, weights, np.zeros(128))
    )
    panels = block.packed(np.dtype(dtype), 21)
    each, v = (
        [RowSlice(X, level=level) for level in range(len(LEVELS))],
        rng.standard_normal((1, 64)),
    )
    runs = [lambda rows=rows: panels.correlate(rows, v, out) for rows in each]
    for _ in range(5):  # other processes may disturb all turns of a level, but hardly five times
        seconds = seconds_of_each(runs)
        if all(better <= 1.5 * below for below, better in pairwise(seconds)):
            return
    pytest.fail(f"seconds of {LEVELS}: {seconds}")
