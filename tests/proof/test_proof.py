"""Bounds hold what they bound, proofs of monotonicity hold, refutations fall; lines lie above what
they are above."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sparserf as srf
from sparserf.columns.encoder import ColumnEncoder
from sparserf.columns.kinds import DAY, LEVEL, MISSING, NUMBER, WEEK, Encoding
from sparserf.columns.table import Table
from sparserf.expansion.box import read_box
from sparserf.explain.evaluate import decision_values
from sparserf.features import BumpBlock, LinearBlock, NeuronBlock, activations
from sparserf.proof.bounds import separable_parts

from ..conftest import n_examples

ACTIVATIONS = tuple(name for name, sigma in activations.ACTIVATIONS.items() if not sigma.is_linear)
LEVELS = ("a", "b", "c", "d")
INFO = srf.FitInfo(1, True, (0.0,), 0.0, 1, 1, 0.1)
seeds = st.integers(0, 10**6)
# seconds of a search; bounds hold at any time
LIMIT = 0.1 if n_examples(8) == 1 else 0.4


def model_of(features, rng, ranges=None, **limits):
    """Return a model of some features with random coefficients."""
    n = len(features)
    ranges = {j: (-2.0, 2.0) for j in range(features.n_features_in)} if ranges is None else ranges
    return srf.SparseModel(
        rng.normal(size=n),
        0.3,
        np.arange(n),
        features,
        "squared",
        None,
        INFO,
        ranges=ranges,
        **limits,
    )


def neurons(rng, n, d, order, activation, scale=1.0):
    """Return random neurons."""
    inputs = np.stack([np.sort(rng.choice(d, order, replace=False)) for _ in range(n)]).astype(
        np.int32
    )
    return NeuronBlock(
        activation, 0.7, rng.normal(0, scale, (n, order)), rng.normal(0, 2, n), inputs
    )


def random_encoder(rng):
    """Return an encoder of three columns, two of numbers and a category, with every kind of
    encoding."""
    knots = np.sort(rng.uniform(-3, 3, 6))
    rising, wild = np.sort(rng.normal(size=6)), rng.normal(size=6)
    of_levels = np.append(-1.0, np.arange(4.0)), rng.normal(size=5)
    encodings = [
        Encoding(0, NUMBER),
        Encoding(0, NUMBER),
        Encoding(0, NUMBER, 0, (knots, rising)),
        Encoding(0, MISSING),
        Encoding(1, NUMBER, 0, (knots, wild)),
        Encoding(2, LEVEL, 1),
        Encoding(2, LEVEL, 2),
        Encoding(2, NUMBER, 0, of_levels),
        Encoding(0, WEEK, 1.75),
        Encoding(0, DAY),
    ]
    encoder = ColumnEncoder.from_encodings(
        encodings, 3, Table(("p", "q", "city"), (None, None, LEVELS))
    )
    n = len(encodings)
    reach = np.where(encoder.turn > 0, np.inf, rng.uniform(0.4, 2, n))
    encoder = replace(
        encoder,
        center=rng.normal(size=n),
        unit=rng.uniform(0.3, 2, n),
        reach=reach,
        fill=rng.normal(size=n),
    )
    return encoder._with_knots({5: ([-1.0], [0.4])}) if rng.random() < 0.5 else encoder


def random_model(rng):
    """Return (a model with terms of every kind, a box of it)."""
    if rng.random() < 0.5:
        d, box = 3, {0: tuple(np.sort(rng.uniform(-2, 2, 2)))}
        encoder = None
    else:
        encoder, d = random_encoder(rng), 10
        cities = [LEVELS[k] for k in np.flatnonzero(rng.random(4) < 0.7)]
        box = {"p": tuple(np.sort(rng.uniform(-3, 3, 2))), "city": cities or "b"}
        if rng.random() < 0.2:
            box |= {"q": None, "city": ["a", None]}
    blocks = [neurons(rng, 4, d, int(rng.integers(1, 4)), kind) for kind in ACTIVATIONS]
    blocks.append(
        BumpBlock(
            0.8, rng.uniform(0, 2, (4, d)) * (rng.random((4, d)) < 0.5), rng.normal(size=(4, d))
        )
    )
    blocks.append(LinearBlock(0.5, rng.normal(size=(2, d))))
    blocks = [blocks[k] for k in rng.permutation(len(blocks))[: rng.integers(1, len(blocks) + 1)]]
    if rng.random() < 0.3:
        blocks += srf.Taylor(2, 0.1).draw(None, d).blocks
    features = srf.FeatureSet(blocks, d, encoder=encoder)
    n_columns = features.n_features_in
    limits = {"lower": -0.5, "upper": 1.5} if rng.random() < 0.3 else {}
    return model_of(features, rng, {j: (-2.0, 2.0) for j in range(n_columns)}, **limits), box


def rows_in(model, box, rng, n):
    """Return random rows of a box, many at its corners."""
    read = read_box(model, box)
    share = rng.random((n, len(read.low)))
    share = np.where(rng.random(share.shape) < 0.3, np.round(share), share)
    rows = read.low + share * (read.high - read.low)
    for j, codes in read.levels.items():
        rows[:, j] = rng.choice(codes, n)
    return rows


def values(model, rows):
    """Return f in rows of numbers, with the limits of the model."""
    f = decision_values(model, rows)[0]
    return f if model.lower is None else np.clip(f, model.lower, model.upper)


def as_rows(model, rows):
    """Return rows that a result gives as rows of numbers."""
    table = None if model.features.encoder is None else model.features.encoder.table
    if table is None:
        return np.array([list(row.values()) for row in rows], float)
    return np.array(
        [
            [
                np.nan if cell is None else float(levels.index(cell)) if levels else cell
                for cell, levels in zip(row.values(), table.levels, strict=True)
            ]
            for row in rows
        ],
        float,
    )


@settings(max_examples=n_examples(25), deadline=None)
@given(seeds)
def test_bounds_hold_the_values_of_random_models(seed):
    rng = np.random.default_rng(seed)
    model, box = random_model(rng)
    found = model.bounds(box, time_limit=LIMIT)
    f = values(model, rows_in(model, box, rng, 3_000))
    slack = 1e-12 * (1 + np.abs(f).max())
    assert found.least.lower - slack <= f.min() and f.max() <= found.largest.upper + slack
    assert found.least.lower <= found.least.upper and found.largest.lower <= found.largest.upper
    ends = values(model, as_rows(model, [found.at_least, found.at_largest]))
    near = 1e-6 * (1 + np.abs(f).max())  # the wild column is steep
    assert ends[0] <= found.least.upper + near and ends[1] >= found.largest.lower - near
    assert (found.largest.lower >= f.max() - 1e-3 * np.ptp(f) - slack) or not found.converged


@pytest.mark.slow
@settings(max_examples=n_examples(25), deadline=None)
@example(40343)  # a wave that turns more than once in the box, flat at its middle
@given(seeds)
def test_relaxations_lie_above_sums_on_boxes(seed):
    rng = np.random.default_rng(seed)
    model, box = random_model(rng)
    for part in separable_parts(model, read_box(model, box))[0]:
        ends = np.sort(np.stack([part.space.random(rng, 40), part.space.random(rng, 40)]), axis=0)
        low, high = (
            ends[0],
            np.where(
                rng.random((40, 1)) < 0.5,
                ends[1],
                ends[0] + rng.random() ** 4 * (ends[1] - ends[0]),
            ),
        )
        high = np.where(part.space.is_table, ends[1], high)
        shape = part.space.geometry(low, high)
        for total in (part.total, part.negative):
            relaxed = total.relax(shape.mid, shape.rad)
            for _ in range(30):
                share = rng.random(low.shape)
                share = np.where(rng.random(low.shape) < 0.3, np.round(share), share)
                Z = low + share * (high - low)
                Z = np.where(part.space.is_table, np.round(Z), Z)
                U = part.space.inputs(Z)
                s = (2 * share - 1)[:, part.space.axis]
                assert (
                    np.abs(U - shape.mid - shape.chord * s)[
                        :, ~part.space.is_table[part.space.axis]
                    ]
                    <= shape.spread[:, ~part.space.is_table[part.space.axis]] + 1e-9
                ).all()
                assert (np.abs(U - shape.mid) <= shape.rad + 1e-12).all()
                above = relaxed.top + (relaxed.slope * (U - shape.mid)).sum(axis=1)
                assert (above >= total.values(U) - 2 * total.rounding - 1e-12).all()
                slopes = total.gradients(U)
                assert (slopes >= relaxed.low - 1e-9).all() and (
                    slopes <= relaxed.high + 1e-9
                ).all()


@pytest.mark.parametrize(
    ("activation", "sign"), [("cos", 1), ("tanh", 1), ("relu", 1), ("relu", -1), ("sign", 1)]
)
def test_lines_lie_above_activations(activation, sign):
    rng = np.random.default_rng(0)
    m, r = rng.normal(0, 3, 20_000), 20 * rng.random(20_000) ** 3 + 1e-9
    m[::4] = 0.01 * m[::4] + np.pi * rng.integers(-2, 3, 5_000)  # near where cosines are flat
    if activation == "cos":
        line, function = (
            activations.cosine_line(np.sin(m), np.cos(m), np.sin(r), np.cos(r), r),
            np.cos,
        )
    else:
        sigma = activations.ACTIVATIONS[activation]
        line = (sigma.line if sign > 0 else sigma.line_of_negative)(m, r)

        def function(t):
            return sign * sigma.value(t)

    gap = np.full(len(m), np.inf)
    for s in np.linspace(-1, 1, 201):
        gap = np.minimum(gap, line.top + line.slope * s * r - function(m + s * r))
    assert gap.min() >= -1e-12
    if activation != "sign":  # lines touch what they are above, and are of second order
        assert (gap <= 0.03 + (r > np.pi)).all()
        assert (
            np.abs(line.top - function(m))[r < 0.1].max() <= 0.01
            if activation in ("cos", "tanh")
            else True
        )


@pytest.mark.slow
@settings(max_examples=n_examples(20), deadline=None)
# where lines find no pair, and halving finds one: that f does not rise is not that it is not
# monotone
@example(4696, None)
@given(seeds, st.sampled_from([None, 1, -1]))
def test_monotonicity_that_is_proved_holds_and_refutations_move_the_wrong_way(seed, sign):
    rng = np.random.default_rng(seed)
    model, box = random_model(rng)
    column = 0
    found = model.is_monotone(column, box, sign=sign, time_limit=LIMIT)
    read = read_box(model, box)
    rows = rows_in(model, box, rng, 3_000)
    other = rows.copy()
    other[:, column] = read.low[column] + rng.random(len(rows)) * (
        read.high[column] - read.low[column]
    )
    up = np.where(rows[:, column] <= other[:, column], 1, -1)
    rise = (values(model, other) - values(model, rows)) * up
    if found:
        assert (found.sign * rise >= -1e-9 * (1 + np.abs(rise).max())).all()
    assert (found.status == "refuted") == bool(found.pairs)
    for pair in found.pairs:
        two = as_rows(model, [pair.low, pair.high])
        others = np.delete(two, column, axis=1)
        assert two[0, column] < two[1, column] and np.array_equal(
            others[0], others[1], equal_nan=True
        )
        f = values(model, two)
        assert f.tolist() == [pair.f_low, pair.f_high] and f[0] != f[1]
        assert sign is None or sign * (f[1] - f[0]) < 0
    if found.status == "refuted" and sign is None:
        assert sorted(np.sign(pair.f_high - pair.f_low) for pair in found.pairs) == [-1, 1]


def test_monotone_by_construction_is_proved_at_once():
    rng = np.random.default_rng(0)
    blocks = []
    for kind in ("tanh", "relu", "sign"):
        block = neurons(rng, 30, 4, 3, kind)
        weights = np.where(block.inputs == 2, np.abs(block.weights), block.weights)
        blocks.append(replace(block, weights=weights))
    inputs = np.tile(np.array([[0, 1]], np.int32), (20, 1))
    blocks.append(NeuronBlock("cos", 1.0, rng.normal(size=(20, 2)), rng.normal(size=20), inputs))
    features = srf.FeatureSet(blocks, 4)
    model = replace(
        model_of(features, rng),
        coef=np.where(np.arange(110) < 90, rng.random(110), rng.normal(size=110)),
    )
    found = model.is_monotone(2)
    assert found and found.sign == 1 and found.n_boxes == 1
    assert model.is_monotone(2, sign=-1).status == "refuted"
    weights = blocks[1].weights.copy()  # one wrong sign, of a neuron that can be active
    weights[0, blocks[1].inputs[0] == 2] = -9.0
    weights[0, blocks[1].inputs[0] != 2] = 0.1
    assert 2 in blocks[1].inputs[0]
    offset = np.where(np.arange(30) == 0, 5.0, blocks[1].offset)
    wrong = [blocks[0], replace(blocks[1], weights=weights, offset=offset), *blocks[2:]]
    assert not replace(model, features=srf.FeatureSet(wrong, 4)).is_monotone(
        2, sign=1, time_limit=1.0
    )


@pytest.mark.slow
def test_converges_to_the_range_of_models_of_few_columns():
    rng = np.random.default_rng(1)
    for kind in ("cos", "tanh", "relu"):
        model = model_of(srf.FeatureSet([neurons(rng, 60, 2, 2, kind)], 2), rng)
        found = model.bounds(tol=1e-4, time_limit=20.0)
        grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 801)] * 2), axis=-1).reshape(-1, 2)
        f = model.predict(grid)
        assert found.converged
        assert found.largest.lower >= f.max() - 1e-4 * np.ptp(
            f
        ) and found.least.upper <= f.min() + 1e-4 * np.ptp(f)
        assert found.largest.upper - found.largest.lower <= 2e-4 * np.ptp(f) * 1.1


@pytest.mark.slow
def test_frames_categories_and_outputs():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(18, 90, 400), "city": rng.choice(list("abc"), 400)})
    y = np.sin(X.age / 20) + (X.city == "b")
    model = replace(
        srf.sparse_rf(X, y, features="gaussian", alpha=0.003, rng=0), ranges={0: (18.0, 90.0)}
    )
    few = {"time_limit": 0.1}  # bounds hold at any time
    found = model.bounds({"age": (30, 60)}, **few)
    f = model.predict(pd.DataFrame([found.at_least, found.at_largest]))
    assert np.allclose(f, [found.least.upper, found.largest.lower], atol=1e-6)
    assert 30 <= found.at_largest["age"] <= 60 and found.at_largest["city"] == "b"
    of_a, of_both = (model.bounds({"city": city}, **few) for city in ("a", ["a", "b"]))
    assert of_a.largest.upper < of_both.largest.upper
    assert "proved" in str(found) and str(found.largest) in str(found)
    classes = np.digitize(y, [0.3, 1.0])
    three = srf.sparse_rf(X, classes, features="gaussian", alpha=0.01, loss="logistic", rng=0)
    three = replace(three, ranges={0: (18.0, 90.0)})
    decisions = three.decision_function(X)
    for k in range(3):
        found = three.bounds(output=k, **few)
        assert (
            found.least.lower <= decisions[:, k].min()
            and decisions[:, k].max() <= found.largest.upper
        )
    with pytest.raises(ValueError, match="output must be given"):
        three.bounds()


def test_a_fixed_box_has_the_value_of_its_row():
    rng = np.random.default_rng(0)
    model = model_of(srf.FeatureSet([neurons(rng, 50, 3, 2, "cos")], 3), rng)
    found = model.bounds({0: 0.5, 1: 1.0, 2: -1.0})
    f = model.predict(np.array([[0.5, 1.0, -1.0]]))[0]
    assert found.converged and found.least.lower <= f <= found.largest.upper
    assert found.largest.upper - found.least.lower < 1e-9
    assert model.is_monotone(0, {0: 0.5})
    assert model_of(srf.FeatureSet([], 2), rng).bounds().largest.upper == pytest.approx(0.3)


@pytest.mark.slow
def test_time_limit_is_kept():
    import time

    rng = np.random.default_rng(0)
    model = model_of(srf.FeatureSet([neurons(rng, 1_000, 10, 3, "cos")], 10), rng)
    start = time.monotonic()
    found = model.bounds(time_limit=1.0)
    assert time.monotonic() - start < 2.0 and not found.converged
    assert found.largest.upper <= np.abs(model.coef).sum() + 0.3 + 1e-9


@pytest.mark.slow
def test_limits_that_are_reached_are_found_exactly():
    rng = np.random.default_rng(0)
    features = srf.FeatureSet([neurons(rng, 1_000, 10, 3, "cos")], 10)
    found = model_of(features, rng, lower=0.0, upper=0.1).bounds(time_limit=1.0)
    assert found.least == (0.0, 0.0) and found.largest == (0.1, 0.1) and found.converged


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e12, 1e100, 1e300])
def test_huge_boxes_have_true_bounds(size):
    rng = np.random.default_rng(0)
    for kind in ACTIVATIONS:
        model = model_of(srf.FeatureSet([neurons(rng, 20, 3, 2, kind)], 3), rng)
        box = {j: (-size, size) for j in range(3)}
        assert model.is_monotone(0, box, time_limit=0.2).status != "proved" or kind == "relu"
        found = model.bounds(box, time_limit=0.2)
        f = model.predict(rows_in(model, box, rng, 300))
        assert found.least.lower <= f.min() and f.max() <= found.largest.upper


BOXES = [
    ({"z": (0, 1)}, ValueError, "'z'"),
    ({9: (0, 1)}, ValueError, "got 9"),
    ({0.5: (0, 1)}, TypeError, "got 0.5"),
    ({"p": (1, 0)}, ValueError, "low <= high for 'p'"),
    ({"p": (0, np.inf)}, ValueError, "finite numbers of at most 1e.300 for 'p'"),
    ({"p": (0, 1e301)}, ValueError, "at most 1e\\+300 for 'p'"),
    ({"p": (0, np.nan)}, ValueError, "finite numbers of at most"),
    ({"p": np.nan}, ValueError, "finite numbers of at most 1e.300 for 'p'"),
    ({"p": (0, 1, 2)}, TypeError, "'p'"),
    ({"p": "wide"}, TypeError, "'p'"),
    ({"p": (0, 1), 0: (0, 1)}, ValueError, "'p' by its name and by its index"),
    ({"city": "z"}, ValueError, "'z'"),
    ({"city": []}, ValueError, "at least one level"),
    ({"city": [["x"]]}, TypeError, "a level or a list of levels for 'city'"),
    ({"city": np.array("x")}, TypeError, "a level or a list of levels for 'city'"),
    ({"p": np.array(1.0)}, TypeError, "a pair .low, high. for 'p'"),
    ({"p": (0, np.float32(np.inf))}, ValueError, "at most 1e.300 for 'p'"),
    ({"p": 10**400}, ValueError, "at most 1e.300 for 'p'"),
    ([(0, 1)], TypeError, "mapping"),
]


@pytest.mark.every_case
@pytest.mark.parametrize(("box", "error", "words"), BOXES)
def test_boxes_that_are_none(box, error, words):
    rng = np.random.default_rng(0)
    features = srf.FeatureSet(
        [LinearBlock(1.0, rng.normal(size=(2, 10)))], 10, encoder=random_encoder(rng)
    )
    with pytest.raises(error, match=words):
        model_of(features, rng).bounds(box)


def test_arguments_that_are_none():
    rng = np.random.default_rng(0)
    features = srf.FeatureSet(
        [LinearBlock(1.0, rng.normal(size=(2, 10)))], 10, encoder=random_encoder(rng)
    )
    model = model_of(features, rng)
    with pytest.raises(ValueError, match="range in training the model does not know: 'p', 'q'"):
        model_of(features, rng, ranges={}).bounds()
    for sign in (0, 2, True, "up"):
        with pytest.raises(ValueError, match="sign must be 1, -1 or None"):
            model.is_monotone("p", sign=sign)
    with pytest.raises(ValueError, match="'city', which is a category"):
        model.is_monotone("city")
    with pytest.raises(ValueError, match="column must name columns of X, which lacks them: 'z'"):
        model.is_monotone("z")
    with pytest.raises(ValueError, match="tol must be finite and >= 0"):
        model.bounds(tol=-1.0)
    with pytest.raises(ValueError, match="time_limit must be finite and > 0"):
        model.bounds(time_limit=0)
