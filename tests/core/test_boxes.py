"""The kernels of boxes, and the growth of trees on them, against plain NumPy.

bins      bin_columns against searchsorted, for any strides and missing cells; edges between
          neighbouring values
boxes     BinBoxes and NumberBoxes against their definitions, at every instruction set; thresholds
          of bins
sums      common, correlate, of bits and of bins, apply, spread and the sums in slices on threads
trees     draws of rows and histograms against loops; whole trees against a plain growth; the same
          boxes for rows in memory, any threads and chunks of rows; limits on columns that meet and
          on directions; sums over all rows in nodes
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserf._base.threads import Workers
from sparserf._core import boxes as core
from sparserf._core.boxes import HIGHEST, MISSING, BinBoxes, NumberBoxes
from sparserf._core.rows import LEVELS
from sparserf._core.trees import Tree, sums_in_nodes
from sparserf.features.growth import (
    Bins,
    BoxLimits,
    Forest,
    Order,
    Pass,
    TreeOptions,
    column_edges,
    rounding_unit,
    steps_of,
)

from ..conftest import SIZES, each_dtype, read_only
from . import box_sums

each_level = pytest.mark.parametrize("level", range(len(LEVELS)), ids=LEVELS)
each_size = pytest.mark.parametrize("n", [*SIZES, 1000])
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
}


def random_bins(rng, n, d=5):
    """Return random bins, some of them missing, of which columns have 1 to 255."""
    bins = rng.integers(0, np.array([1, 2, 9, 40, 255])[:d, None], (d, n))
    return np.where(rng.random((d, n)) < 0.1, MISSING, bins).astype(np.uint8)


def random_boxes(rng, n_boxes, d=5, n_conditions=4):
    """Return random boxes: bounded on no, one or both sides, empty, with missing cells or not."""
    boxes = np.zeros((n_boxes, n_conditions, 4), np.int32)
    for box in boxes:
        columns = rng.permutation(d)[:n_conditions]
        for condition, column in zip(box, columns, strict=False):
            low, high = (
                rng.choice([0, 1, 2, 20, 100, 254]),
                rng.choice([0, 1, 5, 30, 200, 253, HIGHEST, HIGHEST]),
            )
            condition[:] = (
                (column, low, high, rng.integers(2)) if rng.random() < 0.7 else (-1, 0, 0, 0)
            )
    return boxes


def is_inside(boxes, bins):
    """Return whether rows are in boxes, by the definition: bool (n_boxes, n_rows)."""
    inside = np.ones((len(boxes), bins.shape[1]), bool)
    for row, box in zip(inside, boxes, strict=True):
        for column, low, high, missing in box:
            if column >= 0:
                code = bins[column]
                row &= ((code >= low) & (code <= high)) | ((code == MISSING) & bool(missing))
    return inside


def as_bits(inside):
    """Return bools (n_boxes, n_rows) as bits."""
    padded = np.zeros((len(inside), 64 * box_sums.n_words(inside.shape[1])), np.uint8)
    padded[:, : inside.shape[1]] = inside
    packed = np.packbits(padded.reshape(-1, 8)[:, ::-1], axis=1).reshape(len(inside), -1)
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


# ---------------------------------------------------------------- bins


@each_level
@each_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
@each_size
def test_bins_are_numbers_of_edges_below(rng, n, layout, dtype, level):
    X = np.round(rng.standard_normal((n, 4)) * [1, 3, 50, 1000]).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    edges = [
        np.empty(0),
        *(np.unique(rng.integers(-k, k, k) + 0.5) for k in (3, 60)),
        np.sort(rng.standard_normal(254)),
    ]
    padded, first = Bins(edges)._padded
    out = np.zeros((4, n + 2), np.uint8)
    core.bin_columns(LAYOUTS[layout](X), padded, first, out[:, 1 : n + 1], level)
    for codes, x, e in zip(out[:, 1 : n + 1], X.T, edges, strict=True):
        np.testing.assert_array_equal(codes, np.where(np.isnan(x), MISSING, np.searchsorted(e, x)))
    assert (out[:, [0, -1]] == 0).all()


@pytest.mark.parametrize("n_bins", [1, 2, 7, 200, 255])
def test_edges_are_between_neighbouring_values(rng, n_bins):
    for x in (
        rng.standard_normal(1000),
        rng.integers(0, 5, 1000).astype(float),
        np.full(9, 2.0),
        np.array([np.nan, 1, np.nan]),
    ):
        edges, values = column_edges(x, n_bins), np.unique(x[~np.isnan(x)])
        assert len(edges) <= n_bins - 1 and (np.diff(edges) > 0).all()
        np.testing.assert_array_equal(
            np.unique(np.searchsorted(edges, values)), np.arange(len(edges) + 1)
        )
        place = np.searchsorted(values, edges, side="right")
        for edge, low, high in zip(edges, values[place - 1], values[place], strict=True):
            assert low <= edge < high
        if len(values) <= n_bins:
            assert len(edges) == len(values) - 1


def test_edges_of_values_next_to_each_other_and_huge():
    x = np.array([1.0, np.nextafter(1, 2), -1e308, 1e308, -1.7e308, 5e-324, 0.0])
    edges = column_edges(x, 255)
    np.testing.assert_array_equal(np.searchsorted(edges, np.sort(x)), np.arange(7))
    assert len(column_edges(np.array([np.nan]), 255)) == len(column_edges(np.empty(0), 255)) == 0


def test_values_within_a_gap_are_one_value(rng):
    values = np.array([-0.9, -0.2, 0.1, 0.6, 1.0])
    x = values[rng.integers(0, 5, 3000)] + rng.uniform(0, 1e-12, 3000)
    np.testing.assert_allclose(column_edges(x, 255, 1e-9), [-0.55, -0.05, 0.35, 0.8], atol=0.06)
    edges = column_edges(x, 3, 1e-9)
    assert len(edges) == 2 and np.abs(edges[:, None] - values).min() > 0.05
    assert len(column_edges(x, 255)) == 254


def test_bins_of_sparse_rows_are_those_of_dense_ones(rng):
    X = rng.integers(-300, 400, (3000, 6)) * (rng.random((3000, 6)) < 0.3) * 1.0
    X[:, 2] = 0
    dense, sparse = Bins.of_sample(X), Bins.of_sample(csr_array(X))
    for a, b in zip(dense.edges, sparse.edges, strict=True):
        np.testing.assert_array_equal(a, b)
    bins = dense.transform(X, Workers(1))
    np.testing.assert_array_equal(bins, sparse.transform(csr_array(X), Workers(2)))


# ---------------------------------------------------------------- boxes


@each_level
@each_size
def test_boxes_of_bins(rng, n, level):
    bins, boxes = random_bins(rng, n), random_boxes(rng, 40)
    wide = np.zeros((5, n + 7), np.uint8)
    wide[:, 3 : n + 3] = bins
    bits = np.full((40, box_sums.n_words(n) + 1), 7, np.uint64)
    BinBoxes(boxes, 5).evaluate(read_only(wide)[:, 3 : n + 3], bits[:, :-1], level)
    np.testing.assert_array_equal(bits[:, :-1], as_bits(is_inside(boxes, bins)))
    assert (bits[:, -1] == 7).all()


@each_level
@each_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
@each_size
def test_boxes_of_numbers(rng, n, layout, dtype, level):
    X = rng.integers(-3, 4, (n, 5)).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    column = rng.integers(-1, 5, (30, 3)).astype(np.int32)
    low, high = rng.choice([-np.inf, -np.inf, -2, -0.5, 1, np.inf], (2, 30, 3))
    missing = rng.integers(0, 2, (30, 3)).astype(np.uint8)
    bits = np.zeros((30, box_sums.n_words(n)), np.uint64)
    NumberBoxes(column, low, -high, missing).evaluate(LAYOUTS[layout](X), bits, level)
    x = X.T[column].astype(np.float64)  # (n_boxes, n_conditions, n_rows)
    met = (x > low[:, :, None]) & (x <= -high[:, :, None]) | (
        np.isnan(x) & (missing == 1)[:, :, None]
    )
    np.testing.assert_array_equal(bits, as_bits((met | (column < 0)[:, :, None]).all(axis=1)))


@each_dtype
def test_thresholds_of_bins_hold_the_same_rows(rng, dtype):
    X = np.round(rng.standard_normal((500, 5)) * [0, 1, 2, 30, 1000]).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    bins = Bins.of_sample(X)
    assert len(bins.edges[0]) == 0
    boxes, workers = random_boxes(rng, 60), Workers(2)
    expected = is_inside(boxes, bins.transform(X, workers))
    numbers = NumberBoxes(*bins.thresholds(boxes))
    np.testing.assert_array_equal(box_sums.evaluate(numbers, X, workers), as_bits(expected))


# ---------------------------------------------------------------- sums


@each_level
@each_size
def test_sums_over_rows_in_boxes(rng, n, level):
    inside = rng.random((13, n)) < rng.random((13, 1))
    bits, v, coef = as_bits(inside), rng.standard_normal((2, n)), rng.standard_normal((2, 13))
    products = np.ones((13, 5), np.int64)
    sums, f = np.ones((2, 13)), np.ones((2, n))
    core.common(read_only(bits), bits[4:9], products, level=level)
    core.correlate(bits, read_only(v), sums, level)
    core.apply(bits, read_only(coef), f, level)
    np.testing.assert_array_equal(products, 1 + inside.astype(int) @ inside[4:9].T)
    np.testing.assert_allclose(sums, 1 + v @ inside.T, atol=1e-12)
    np.testing.assert_allclose(f, 1 + coef @ inside, atol=1e-13)

    for dtype in (np.float32, np.float64):
        out = np.full((13, n + 1), 5, dtype)
        core.spread(bits, out[:, :n], level=level)
        np.testing.assert_array_equal(out[:, :n], inside)
        core.spread(bits, out[:, :n], v[0].copy(), level)
        np.testing.assert_array_equal(out[:, :n], (inside * v[0]).astype(dtype))
        assert (out[:, n] == 5).all()


@each_level
@pytest.mark.parametrize("n", [*SIZES, 127, 128, 129, 2000, 16_384, 16_385])
def test_rows_in_both_of_two_boxes(rng, n, level):
    inside = rng.random((270, n)) < rng.random((270, 1))
    wide = rng.integers(0, 2**64, (540, box_sums.n_words(n) + 3), np.uint64)
    wide[::2, 2:-1] = as_bits(inside)
    bits, expected = read_only(wide)[::2, 2:-1], inside.astype(float) @ inside.T
    for n_left in (0, 1, 2, 3, 4, 5, 7, 8, 9, 129, 270):
        for n_right in (n_left, 0, 1, 5, 127, 128, 129):
            out = np.full((2 * n_left, 3 * n_right), 2**40)
            core.common(bits[:n_left], bits[270 - n_right :], out[::2, ::3], level=level)
            np.testing.assert_array_equal(out[::2, ::3] - 2**40, expected[:n_left, 270 - n_right :])
            out[::2, ::3] = 2**40
            assert (out == 2**40).all()
        out = np.ones((n_left, n_left), np.int64)
        core.common(bits[:n_left], bits[:n_left], out, symmetric=True, level=level)
        np.testing.assert_array_equal(out, 1 + np.tril(expected[:n_left, :n_left]))


@each_level
@pytest.mark.parametrize("n", [*SIZES, 127, 128, 129, 511, 513, 16_385])
def test_sums_over_any_number_of_boxes(rng, n, level):
    share = rng.choice([0, 0.001, 0.1, 0.9], (260, 1))
    inside = (rng.random((260, n)) < share).astype(float)
    wide = rng.integers(0, 2**64, (520, box_sums.n_words(n) + 3), np.uint64)
    wide[::2, 2:-1] = as_bits(inside)
    v, coef = rng.standard_normal((3, n + 2)), rng.standard_normal((3, 262))
    for n_boxes in (0, 1, 2, 3, 4, 5, 7, 8, 9, 127, 128, 129, 260):
        bits = read_only(wide)[::2, 2:-1][:n_boxes]
        sums, f = np.ones((3, n_boxes + 1)), np.ones((3, n + 2))
        core.correlate(bits, read_only(v)[:, 1:-1], sums[:, 1:], level)
        core.apply(bits, read_only(coef)[:, 1 : n_boxes + 1], f[:, 1:-1], level)
        np.testing.assert_allclose(
            sums[:, 1:], 1 + v[:, 1:-1] @ inside[:n_boxes].T, rtol=1e-12, atol=1e-10
        )
        np.testing.assert_allclose(
            f[:, 1:-1], 1 + coef[:, 1 : n_boxes + 1] @ inside[:n_boxes], rtol=1e-12, atol=1e-12
        )
        assert (sums[:, 0] == 1).all() and (f[:, [0, -1]] == 1).all()


@each_level
def test_coefficients_are_added_in_the_order_of_boxes(rng, level):
    inside = rng.random((300, 777)) < rng.choice([0.001, 0.5], (300, 1))
    coef, f, expected = rng.standard_normal((1, 300)), np.zeros((1, 777)), np.zeros(777)
    core.apply(as_bits(inside), coef, f, level)
    for row, c in zip(inside, coef[0], strict=True):
        expected[row] += c
    np.testing.assert_array_equal(f[0], expected)


@each_level
def test_all_rows_are_counted(level):
    bits = np.full((9, 999), 2**64 - 1, np.uint64)
    out = np.zeros((9, 9), np.int64)
    core.common(bits, bits, out, level=level)
    assert (out == 64 * 999).all()


@pytest.mark.skipif(len(LEVELS) < 2, reason="this processor has one level")
def test_all_levels_give_the_same_bits(rng):
    bits = as_bits(rng.random((140, 17_777)) < rng.choice([0.01, 0.5], (140, 1)))
    v, answers = rng.standard_normal((3, 17_777)), []
    for level in range(len(LEVELS)):
        sums, f, values = np.zeros((3, 140)), np.zeros((3, 17_777)), np.zeros((140, 17_777))
        core.correlate(bits, v, sums, level)
        core.apply(bits, v[:, :140].copy(), f, level)
        core.spread(bits, values, v[0].copy(), level)
        answers.append(sums.tobytes() + f.tobytes() + values.tobytes())
    assert len(set(answers)) == 1


def test_sums_of_many_rows_are_the_same_bits_for_any_workers(rng):
    n = 40_000
    bins, boxes, v = random_bins(rng, n), random_boxes(rng, 30), rng.standard_normal((2, n))
    tests, inside = BinBoxes(boxes, 5), is_inside(boxes, bins)
    answers = []
    for workers in (Workers(1), Workers(2), Workers(3)):
        bits = box_sums.evaluate(tests, bins, workers)
        answers.append(
            (
                bits,
                box_sums.correlate(tests, bins, v, workers),
                box_sums.apply(tests, bins, v[:, :30], workers),
                box_sums.gram(bits, bits, n, workers),
                box_sums.gram(bits, bits, n, workers, v[0] ** 2),
                box_sums.gram(bits, bits[:7], n, workers, v[0] ** 2, np.float64),
            )
        )
    assert len({b"".join(a.tobytes() for a in answer) for answer in answers}) == 1
    bits, sums, f, gram, weighted, part = answers[0]
    np.testing.assert_array_equal(bits, as_bits(inside))
    np.testing.assert_allclose(sums, v @ inside.T, atol=1e-9)
    np.testing.assert_allclose(f, v[:, :30] @ inside, atol=1e-12)
    np.testing.assert_array_equal(gram, inside.astype(float) @ inside.T)
    np.testing.assert_allclose(weighted, (inside * v[0] ** 2) @ inside.T, rtol=1e-5)
    np.testing.assert_allclose(part, (inside * v[0] ** 2) @ inside[:7].T, rtol=1e-12)
    np.testing.assert_array_equal(sums, box_sums.correlate_bits(bits, v, Workers(2)))
    np.testing.assert_array_equal(f, box_sums.apply_bits(bits, v[:, :30], n, Workers(2)))


# ---------------------------------------------------------------- trees


def mixed(x):
    """Return the mixer of 32 bits that the hash of a row takes twice."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD & 0xFFFFFFFF
    x = (x ^ (x >> 15)) * 0x735A2D97 & 0xFFFFFFFF
    return x ^ (x >> 15)


def hashed(key, number):
    """Return the hash by which rows and columns are drawn, in integers of Python."""
    carry = (key >> 32) + (number >> 32) * 0x9E3779B9
    return mixed((mixed((number ^ key) & 0xFFFFFFFF) + carry) & 0xFFFFFFFF)


def is_drawn(seed, share, row):
    """Return whether a tree draws a row."""
    return hashed(seed, row) < round(share * 2**32)


def key_below(key, side):
    """Return the key by which a child draws columns."""
    return hashed(key, 2**32 - 1 - 2 * side) << 32 | hashed(key, 2**32 - 2 - 2 * side)


def drawn_columns(key, share, allowed):
    """Return which columns a node sees of those that are allowed."""
    order = sorted(np.flatnonzero(allowed).tolist(), key=lambda j: hashed(key, j))
    seen = np.zeros(len(allowed), bool)
    seen[order[: int(np.ceil(share * len(order)))]] = True
    return seen


@each_level
@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 1.0])
@pytest.mark.parametrize("first_row", [0, 5, 2**32 - 40, 2**40])
@each_size
def test_rows_are_drawn_by_their_numbers(n, first_row, share, level):
    seed = 0x123456789ABCDEF0
    words = np.zeros(box_sums.n_words(n), np.uint64)
    core.draw_rows(seed, share, first_row, n, words, level)
    expected = np.array([[is_drawn(seed, share, first_row + i) for i in range(n)]], bool).reshape(
        1, n
    )
    np.testing.assert_array_equal(words, as_bits(expected)[0])


def test_shares_of_drawn_rows_and_of_pairs_of_trees(rng):
    n, drawn = 200_000, []
    for seed in (0, 1, 2**32, *rng.integers(0, 2**63, 5).tolist()):
        words = np.zeros((1, box_sums.n_words(n)), np.uint64)
        core.draw_rows(seed, 0.3, 0, n, words[0])
        drawn.append(words)
    common = box_sums.gram(np.concatenate(drawn), np.concatenate(drawn), n, Workers(1)) / n
    off = ~np.eye(len(drawn), dtype=bool)
    assert abs(common[~off] - 0.3).max() < 5 * np.sqrt(0.21 / n) and abs(
        common[off] - 0.09
    ).max() < 5 * np.sqrt(0.09 / n)


def in_units(gradient, curvature):
    """Return the steps of rows, their units, and the gradient and curvature that they are."""
    units = np.array([rounding_unit(abs(x).sum()) for x in (gradient, curvature)])
    steps = steps_of(gradient, curvature, units)
    return steps, units, units[0] * (steps >> 32), units[1] * (steps & (2**32 - 1))


def random_pass(rng, n_bins, n_boxes=12, share=0.6):
    """Return a pass over random boxes of three trees, which see all columns but two."""
    d, tree = len(n_bins), np.sort(rng.integers(0, 3, n_boxes)).astype(np.int32)
    columns = np.array([np.sort(rng.permutation(d)[:-2]) for _ in range(3)], np.int32)
    first = np.concatenate(
        [np.zeros((3, 1), np.int64), np.cumsum(n_bins[columns] + 1, axis=1)], axis=1
    )
    size = first[tree, -1]
    seeds = rng.integers(0, 2**64, 3, np.uint64)
    return Pass(
        random_boxes(rng, n_boxes),
        tree,
        seeds,
        share,
        columns,
        first,
        np.cumsum(size) - size,
        int(size.sum()),
    )


def plain_histogram(asked, r, bins, gradient, curvature, n_bins, first_row=0):
    """Return the histogram of a node of a pass, column after column, and the number of its rows:
    sums of gradient and curvature, (n_sums, 2)."""
    tree = asked.tree[r]
    seed = int(asked.seeds[tree])
    drawn = np.array(
        [is_drawn(seed, asked.share, first_row + i) for i in range(bins.shape[1])], bool
    )
    rows = is_inside(asked.boxes[r : r + 1], bins)[0] & drawn & ((gradient != 0) | (curvature != 0))
    sums = []
    for column in asked.columns[tree]:
        slot = np.minimum(bins[column, rows], n_bins[column])
        sums += [np.bincount(slot, v[rows], n_bins[column] + 1) for v in (gradient, curvature)]
    return np.stack([np.concatenate(sums[::2]), np.concatenate(sums[1::2])], axis=1), rows.sum()


@each_size
@pytest.mark.parametrize("has_missing", [True, False])
def test_histograms(rng, n, has_missing):
    n_bins = np.array(2 * [1, 2, 9, 40, 255])
    bins = np.concatenate([random_bins(rng, n), random_bins(rng, n)])
    if not has_missing:
        bins = np.minimum(bins, n_bins[:, None] - 1).astype(np.uint8)
    gradient, curvature = rng.standard_normal(n), rng.random(n)
    gradient[::5] = curvature[::5] = 0
    steps, units, gradient, curvature = in_units(gradient, curvature)
    asked = random_pass(rng, n_bins)
    sums, counts = asked.answer(bins, steps, 0, Workers(2))
    for r, at in enumerate(asked.at):
        expected, count = plain_histogram(asked, r, bins, gradient, curvature, n_bins)
        own = sums[at : at + len(expected)]
        np.testing.assert_array_equal(np.stack([own >> 32, own & (2**32 - 1)], 1) * units, expected)
        assert counts[r] == count


def test_histograms_of_chunks_add_up_to_the_same_bits(rng):
    n, n_bins = 20_000, np.array([1, 2, 9, 40, 255])
    bins, steps = random_bins(rng, n), in_units(rng.standard_normal(n), np.ones(n))[0]
    asked, answers = random_pass(rng, n_bins), []
    for cuts, workers in (
        ([0, n], 1),
        ([0, n], 3),
        ([0, 1, 4097, 9000, n], 1),
        ([0, 64, 12_345, n], 2),
    ):
        total = [0, 0]
        for a, b in pairwise(cuts):
            part = asked.answer(bins[:, a:b], steps[a:b], a, Workers(workers))
            total = [x + y for x, y in zip(total, part, strict=True)]
        answers.append(total[0].tobytes() + total[1].tobytes())
    assert len(set(answers)) == 1


@pytest.mark.parametrize("n", [1, 7, 1000, 10**6])
def test_sums_of_steps_are_exact_and_near_those_of_numbers(rng, n):
    for gradient in (
        rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n),
        np.ones(n),
        -np.full(n, 2.0**900),
    ):
        curvature = rng.random(n)
        steps, units, g, c = in_units(gradient, curvature)
        for x, y, unit in ((gradient, g, units[0]), (curvature, c, units[1])):
            assert abs(x - y).max() <= unit / 2 <= abs(x).sum() * 2.0**-29
        total = int(steps.sum())
        assert units[0] * (total >> 32) == g.sum() and units[1] * (total & (2**32 - 1)) == c.sum()
        assert abs(steps >> 32).sum() < 2**31 and (steps & (2**32 - 1)).sum() < 2**31


@pytest.mark.parametrize("total", [0.0, 5e-324, 1e-310, 1.0, 2.0**40, 1e300])
def test_units_are_powers_of_two_that_rounding_of_the_total_does_not_change(total):
    unit = rounding_unit(total)
    assert unit > 0 and np.frexp(unit)[0] == 0.5
    assert unit == rounding_unit(total * (1 - 1e-9)) == rounding_unit(total * (1 + 1e-9))
    assert total / unit < 2**30


def plain_split(histogram, columns, first, count, ridge, min_samples, allowed):
    """Return (gain, column, bin, missing_left) of the best of all splits of a node."""
    total = histogram[first[0] : first[1]].sum(axis=0)
    best, least = (0.0, -1, -1, -1), min_samples * total[1] / max(count, 1)
    if count < 2 * min_samples or total[1] <= 0:
        return best

    def score(g, c):
        return g * g / (c + ridge)

    for j, column in enumerate(columns):
        sums = histogram[first[j] : first[j + 1]]
        has_missing = (sums[-1] != 0).any()
        for side in (0, 1) if has_missing else (-1,):
            for b in range(len(sums) - 1 - (side != 0)):
                g, c = sums[: b + 1].sum(axis=0) + (side == 1) * sums[-1]
                if not allowed[j] or c < least or total[1] - c < least:
                    continue
                gain = score(g, c) + score(total[0] - g, total[1] - c) - score(*total)
                if gain > best[0] * (1 + 1e-9) + 1e-9:
                    best = gain, column, b, side
    return best


def may_meet(conditions, j, trees, limits):
    """Return whether a box may be split on a column."""
    columns = {condition[0] for condition in conditions} | {j}
    fits = limits.groups is None or any(all(group[list(columns)]) for group in limits.groups)
    if limits.order is not None:
        most, of_column = limits.order
        fits &= len({of_column[column] for column in columns}) <= most
    return fits and len(columns) <= trees.max_conditions


def keeps_directions(conditions, monotone):
    """Return whether a box is bounded on one side, the same of all, of columns with a direction."""
    bounded = {
        sign * side
        for column, low, high, _ in conditions
        for side, is_bounded in ((1, low > 0), (-1, high < HIGHEST))
        if is_bounded and low <= high and (sign := 0 if monotone is None else monotone[column])
    }
    return len(bounded) < 2


def plain_growth(bins, gradient, curvature, n_bins, trees, rng, limits):
    """Return what a `Forest` grows on all columns, with each histogram made directly."""
    budget = rng.integers(2, trees.most_leaves + 1, trees.n_trees)
    seeds = rng.integers(0, 2**64, trees.n_trees, np.uint64)
    d, grown = len(n_bins), set()
    columns = np.arange(d, dtype=np.int32)
    first = np.concatenate([[0], np.cumsum(n_bins + 1)])
    for t in range(trees.n_trees):
        fresh, waiting, leaves = [((), key_below(int(seeds[t]), 0))], [], 1
        while leaves < budget[t]:
            for conditions, key in fresh:
                none = [(-1, 0, 0, 0)] * (trees.max_conditions - len(conditions))
                box = np.array([[*conditions, *none]], np.int32).reshape(1, -1, 4)
                one = np.zeros(1, np.int32), seeds[[t]], trees.row_share, columns[None], first[None]
                asked = Pass(box, *one, np.zeros(1, np.int64), int(first[-1]))
                histogram, count = plain_histogram(asked, 0, bins, gradient, curvature, n_bins)
                allowed = [may_meet(conditions, j, trees, limits) for j in range(d)]
                allowed = drawn_columns(key, trees.node_share, allowed)
                split = plain_split(
                    histogram, columns, first, count, trees.ridge, trees.min_samples, allowed
                )
                if split[0] > 0:
                    waiting.append((split, conditions, key))
            if not waiting:
                break
            waiting.sort(key=lambda each: -each[0][0])
            n, fresh = budget[t] - leaves, []
            for (_, column, b, side), conditions, key in waiting[:n]:
                others = [c for c in conditions if c[0] != column]
                low, high = next((c[1:3] for c in conditions if c[0] == column), (0, HIGHEST))
                if b == n_bins[column] - 1:
                    sides = (column, low, high, side == 1), (column, 1, 0, side == 0)
                else:
                    sides = (column, low, b, side == 1), (column, b + 1, high, side == 0)
                children = [tuple(sorted([*others, tuple(map(int, one))])) for one in sides]
                fresh += [
                    (child, key_below(key, k))
                    for k, child in enumerate(children)
                    if keeps_directions(child, limits.monotone)
                ]
                leaves += 1
            waiting = waiting[n:]
            grown |= {child for child, _ in fresh}
    return grown


def grow_by_passes(forest, bins, steps, units, cuts, workers):
    """Grow trees on chunks of rows."""

    def ask(asked):
        parts = [asked.answer(bins[:, a:b], steps[a:b], a, workers) for a, b in pairwise(cuts)]
        return sum(sums for sums, _ in parts), sum(counts for _, counts in parts)

    forest.grow_by_passes(ask, units, workers)


LIMITS = {
    "free": BoxLimits(),
    "groups": BoxLimits(np.array([[1, 0, 1, 1, 0], [0, 1, 0, 1, 1]], bool)),
    "monotone": BoxLimits(monotone=np.array([0, 1, 1, -1, 1])),
    "order": BoxLimits(order=Order(2, np.array([0, 1, 1, 2, 2]))),
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("node_share", [0.2, 0.7, 1.0])
@pytest.mark.parametrize("max_conditions", [1, 2, 4])
def test_trees_are_those_of_a_plain_growth(max_conditions, node_share, limits):
    rng = np.random.default_rng(int(10 + 100 * node_share) + max_conditions)
    n, n_bins = 300, np.array([1, 2, 9, 40, 255])
    bins, limits = random_bins(rng, n), LIMITS[limits]
    is_used = np.arange(n) % 9 > 0
    gradient = is_used * (rng.standard_normal(n) + (bins[2] > 4) * (bins[1] == 1))
    steps, units, gradient, curvature = in_units(gradient, is_used * rng.random(n))
    trees = TreeOptions(
        n_trees=3,
        most_leaves=9,
        node_share=node_share,
        max_conditions=max_conditions,
        min_samples=2.0,
    )
    draws = [np.random.default_rng(5) for _ in range(3)]
    expected = plain_growth(bins, gradient, curvature, n_bins, trees, draws[0], limits)
    one, other = (Forest(n_bins, trees, rng, limits) for rng in draws[1:])
    one.grow(read_only(bins), read_only(steps), read_only(units), Workers(2))
    grow_by_passes(other, bins, steps, units, [0, n], Workers(2))
    for boxes in (one.boxes(), other.boxes()):
        assert {tuple(tuple(c) for c in box if c[0] >= 0) for box in boxes.tolist()} == expected


def grow(rng_seed, bins, gradient, n_bins, workers=1, cuts=None, limits=None, **trees):
    """Return the boxes of trees on rows in memory, or on some chunks of them."""
    forest = Forest(n_bins, TreeOptions(**trees), np.random.default_rng(rng_seed), limits)
    steps, units = in_units(gradient, np.ones(len(gradient)))[:2]
    if cuts is None:
        forest.grow(bins, steps, units, Workers(workers))
    else:
        grow_by_passes(forest, bins, steps, units, cuts, Workers(workers))
    return forest.boxes()


@each_size
@pytest.mark.parametrize("d", [1, 5])
def test_rows_in_memory_grow_the_boxes_of_passes(rng, n, d):
    n_bins, bins = np.array([1, 2, 9, 40, 255])[5 - d :], random_bins(rng, n)[5 - d :]
    gradient = rng.standard_normal(n)
    wide = np.zeros((d, n + 5), np.uint8)
    wide[:, 2 : n + 2] = bins
    in_memory = grow(0, read_only(wide)[:, 2 : n + 2], gradient, n_bins, min_samples=1.0)
    np.testing.assert_array_equal(
        in_memory, grow(0, bins, gradient, n_bins, cuts=[0, n // 2, n], min_samples=1.0)
    )
    assert len(in_memory) > 0 or n < 7


@pytest.mark.slow
def test_wide_rows_whose_trees_keep_few_histograms_grow_the_boxes_of_passes(rng):
    n, d = 20_000, 1000
    bins = rng.integers(0, 255, (d, n), np.uint8)
    gradient = rng.standard_normal(n) + (bins[3] > 100) * (bins[700] < 50)
    how = {"n_bins": np.full(d, 255), "n_trees": 1, "most_leaves": 60, "node_share": 0.1}
    boxes = grow(2, bins, gradient, **how)
    assert len(boxes) > 20
    np.testing.assert_array_equal(boxes, grow(2, bins, gradient, cuts=[0, n], **how))


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_boxes_are_the_same_for_any_workers_and_chunks(rng, share):
    n, n_bins = 20_000, np.array([1, 2, 9, 40, 255])
    bins = random_bins(rng, n)
    gradient = rng.standard_normal(n) + (bins[3] > 20) * (bins[1] == 1)
    ways = (1,), (3,), (1, [0, n]), (3, [0, n]), (2, [0, 77, 13_000, n])
    boxes = [grow(3, bins, gradient, n_bins, *how, column_share=share) for how in ways]
    assert len(boxes[0]) > 50
    for other in boxes[1:]:
        np.testing.assert_array_equal(boxes[0], other)


@pytest.mark.parametrize("n", [0, 1, 9, 40, 2000, 10_000])
def test_trees_are_the_same_at_all_levels(rng, n):
    n_bins, bins = np.array([1, 2, 9, 40, 255]), random_bins(rng, n)
    steps, units = in_units(rng.integers(-8, 9, n) / 4, rng.integers(1, 5, n) / 4)[:2]
    grown = []
    for level in range(len(LEVELS)):
        boxes = np.empty((39, 3, 4), np.int32)
        tree = Tree(TreeOptions(), boxes, 7, np.arange(5, dtype=np.int32), n_bins, level=level)
        tree.grow(bins, steps, units)
        grown.append(boxes.tobytes())
        assert len(tree.asks()) == 0
    assert len(set(grown)) == 1


def test_boxes_keep_limits(rng):
    n, n_bins = 3000, np.array([40, 40, 40, 255, 255])
    bins = (rng.random((5, n)) * n_bins[:, None]).astype(np.uint8)
    bins[3, ::7] = MISSING
    gradient = rng.standard_normal(n) + bins[0] / 20 + bins[1] / 20
    gradient -= bins[3] / 99 * (bins[4] > 50)
    groups = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]], bool)
    limits = BoxLimits(groups, np.array([1, 1, 0, -1, 0]))
    boxes = grow(0, bins, gradient, n_bins, limits=limits, max_conditions=3)
    assert len(boxes) > 100
    sense, keeps = limits.sense(boxes)
    assert keeps.all() and (sense > 0).any() and (sense < 0).any()
    for box, sign in zip(boxes, sense, strict=True):
        conditions = [c for c in box if c[0] >= 0]
        columns = {c[0] for c in conditions}
        assert len(columns) == len(conditions) <= 3
        assert any(columns <= set(np.flatnonzero(group)) for group in groups)
        inside = is_inside(box[None], np.tile(np.arange(256, dtype=np.uint8), (5, 1)))
        assert inside.shape == (1, 256)
        for column, low, high, _ in conditions:
            if limits.monotone[column] and low <= high:
                assert (low == 0) or (high == HIGHEST)
                if low > 0 or high < HIGHEST:
                    assert sign == limits.monotone[column] * (1 if low > 0 else -1)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("n", [0, 1, 63, 1000, 9000])
def test_sums_in_nodes_are_those_in_their_boxes(rng, n, limits):
    n_bins, bins = np.array([1, 2, 9, 40, 255]), random_bins(rng, n)
    # of rows that grow no tree, missing cells where a split knows of none
    sees, gradient = np.arange(n) % 3 > 0, rng.standard_normal(n)
    bins[:3, sees] = np.minimum(bins[:3, sees], n_bins[:3, None] - 1)
    gradient += 1.0 * (bins[2] > 4) - (bins[1] == 1)
    steps, units = in_units(sees * gradient, sees * 1.0)[:2]
    forest = Forest(n_bins, TreeOptions(n_trees=5), np.random.default_rng(0), LIMITS[limits])
    forest.grow(bins, steps, units, Workers(1))
    nodes, boxes = forest.nodes(), forest.boxes()
    v = rng.integers(-9, 10, (3, n)) / 4
    wide = np.full((5, n + 7), MISSING, np.uint8)
    wide[:, 3 : n + 3] = bins
    sums = nodes.sums_in_boxes(read_only(wide)[:, 3 : n + 3], read_only(v), Workers(3))
    np.testing.assert_array_equal(sums, v @ is_inside(boxes, bins).T)
    v = rng.standard_normal((2, n))
    of_threads = [nodes.sums_in_boxes(bins, v, Workers(k)) for k in (1, 3)]
    assert of_threads[0].tobytes() == of_threads[1].tobytes()
    if n > 63:
        left = nodes.splits[nodes.splits[:, 3] == 1]  # of roots
        is_missing = (bins[left[:, 0]] == MISSING).any(axis=1)
        assert len(boxes) > 20 and ((left[:, 2] == -1) & is_missing).any()


def test_single_rows_columns_and_values_grow_nothing():
    for bins in (
        np.zeros((1, 1), np.uint8),
        np.zeros((3, 50), np.uint8),
        np.full((2, 50), MISSING, np.uint8),
        np.zeros((2, 0), np.uint8),
    ):
        n_bins, gradient = np.ones(len(bins), np.int64), np.ones(bins.shape[1])
        assert grow(0, bins, gradient, n_bins).shape == (0, 6, 4)
    assert len(grow(0, np.arange(50, dtype=np.uint8)[None], np.zeros(50), np.array([50]))) == 0


# ---------------------------------------------------------------- bad input


def test_arrays_that_kernels_refuse(rng):
    boxes, bins = random_boxes(rng, 3), random_bins(rng, 100)
    bits, v = np.zeros((3, 2), np.uint64), np.zeros((1, 100))
    steps, units = np.zeros(100, np.int64), np.ones(2)
    bad = boxes.copy()
    bad[1, 0] = 5, 0, 1, 0
    wide = boxes.copy()
    wide[2, 0] = 1, 0, 255, 0
    n_bins = np.array([1, 2, 9, 40, 255])
    asked, columns = random_pass(rng, n_bins), np.arange(5, dtype=np.int32)
    nodes = np.empty((3, 4, 4), np.int32)

    def of_nodes(*split, first=(0, 3), v=v, stop=1):
        splits = np.array([split, [-1] * 4, [-1] * 4], np.int32)
        sums_in_nodes(splits, np.array(first), bins, v, np.zeros((1, 3)), 0, stop)

    tree = Tree(TreeOptions(), nodes, 0, columns, n_bins)
    number = (
        np.zeros((1, 1), np.int32),
        np.zeros((1, 1)),
        np.ones((1, 1)),
        np.zeros((1, 1), np.uint8),
    )
    for message, call in (
        ("boxes must have columns below 5, got 5 in box 1", lambda: BinBoxes(bad, 5)),
        ("boxes must have bins in 0 to 254.*got .0, 255, 0. in box 2", lambda: BinBoxes(wide, 5)),
        ("boxes must have 4 numbers a condition, got 3", lambda: BinBoxes(boxes[:, :, :3], 5)),
        ("bins must have 5 columns, got 4", lambda: BinBoxes(boxes, 5).evaluate(bins[:4], bits)),
        (
            "bins must have a contiguous last axis",
            lambda: BinBoxes(boxes, 5).evaluate(bins[:, ::2], bits[:, :1]),
        ),
        (
            "bits must have 2 words for 100 rows, got 1",
            lambda: BinBoxes(boxes, 5).evaluate(bins, bits[:, :1]),
        ),
        ("bits must have 3 boxes, got 2", lambda: BinBoxes(boxes, 5).evaluate(bins, bits[:2])),
        ("out must have 3 boxes, got 2", lambda: core.correlate(bits, v, np.zeros((1, 2)))),
        (
            "v must have a contiguous last axis",
            lambda: core.correlate(bits, np.zeros((1, 200))[:, ::2], np.zeros((1, 3))),
        ),
        ("share must be between 0 and 1, got 2", lambda: core.draw_rows(0, 2.0, 0, 100, bits[0])),
        (
            "sums must have room for",
            lambda: asked._replace(n_sums=9).answer(bins, steps, 0, Workers(1)),
        ),
        (
            "tree must be of 3 trees, got 7",
            lambda: asked._replace(tree=asked.tree + np.int32(7)).answer(
                bins, steps, 0, Workers(1)
            ),
        ),
        (
            "steps must have 100 rows, got 9",
            lambda: asked.answer(bins, steps[:9], 0, Workers(1)),
        ),
        (
            "boxes must have an odd number of nodes",
            lambda: Tree(TreeOptions(), nodes[:2], 0, columns, n_bins),
        ),
        (
            "columns must be below 4, got 4",
            lambda: Tree(TreeOptions(), nodes, 0, columns, n_bins[:4]),
        ),
        (
            "n_bins must be between 1 and 255, got 256",
            lambda: Tree(TreeOptions(), nodes, 0, columns, n_bins + 1),
        ),
        (
            "monotone must have 5 columns, got 4",
            lambda: Tree(
                TreeOptions(), nodes, 0, columns, n_bins, BoxLimits(monotone=np.zeros(4)).typed
            ),
        ),
        (
            "groups must have 5 columns, got 2",
            lambda: Tree(
                TreeOptions(), nodes, 0, columns, n_bins, BoxLimits(np.ones((1, 2))).typed
            ),
        ),
        ("bins must have 5 columns, got 4", lambda: tree.grow(bins[:4], steps, units)),
        (
            "bins must have a contiguous last axis",
            lambda: tree.grow(bins[:, ::2], steps[:50], units),
        ),
        ("steps must have 100 rows, got 99", lambda: tree.grow(bins, steps[1:], units)),
        ("units must have 2 numbers, got 1", lambda: tree.grow(bins, steps, units[1:])),
        (
            "sums must have 312 sums, got 311",
            lambda: tree.answer(np.zeros(311, np.int64), np.zeros(1, np.int64), units),
        ),
        (
            "splits must have columns below 5, got 5",
            lambda: of_nodes(5, 1, 0, 1),
        ),
        (
            "splits must have children between 1 and 2 of node 0, got 2",
            lambda: of_nodes(1, 1, 0, 2),
        ),
        (
            "splits must have children between 1 and 2 of node 0, got 0",
            lambda: of_nodes(1, 1, 0, 0),
        ),
        (
            "first must ascend from 0 to 3, got 0 before 4",
            lambda: of_nodes(1, 1, 0, 1, first=(0, 4)),
        ),
        ("start and stop must be between 0 and 1", lambda: of_nodes(1, 1, 0, 1, stop=2)),
        ("v must have 100 rows, got 9", lambda: of_nodes(1, 1, 0, 1, v=v[:, :9])),
        (
            "X must have more than 0 columns, got 0",
            lambda: NumberBoxes(*number).evaluate(np.zeros((100, 0)), bits[:1]),
        ),
        (
            "low and high must be numbers, got NaN",
            lambda: NumberBoxes(number[0], number[1] * np.nan, *number[2:]),
        ),
        ("high must have the shape", lambda: NumberBoxes(*number[:2], np.ones((2, 1)), number[3])),
        (
            "X must have 2 columns, got 3",
            lambda: Bins([np.zeros(1)] * 2).transform(np.zeros((1, 3)), Workers(1)),
        ),
        (
            "first must leave",
            lambda: core.bin_columns(
                np.zeros((1, 1)), np.zeros(2), np.array([0, 2]), np.zeros((1, 1), np.uint8)
            ),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
