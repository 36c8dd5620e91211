"""Flags, and columns that took few whole numbers, take no other values: in bounds, means and
integrals, proofs of monotonicity, counter-examples, files and plots."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf.expansion.box import read_box
from sparserf.explain.effects import grid_of, shares_of
from sparserf.features import NeuronBlock

from ..model.models import through_file

RNG = np.random.default_rng(0)
N = 240
FLAG, COUNT = RNG.random(N) < 0.4, RNG.integers(0, 4, N)
RATING, LINE = RNG.choice([1, 2, 3, 5], N), RNG.uniform(-1, 1, N)
FRAME = pd.DataFrame({"flag": FLAG, "count": COUNT, "rating": RATING, "line": LINE})
ARRAY = np.column_stack([FLAG, COUNT, RATING, LINE]).astype(float)
Y = np.where(FLAG, 0.9, -0.2) * (1 + (LINE > 0)) + 0.4 * COUNT * LINE + np.cos(3.0 * RATING)
VALUES = {0: [0.0, 1.0], 1: [0.0, 1.0, 2.0, 3.0], 2: [1.0, 2.0, 3.0, 5.0]}
GRID = np.array(list(itertools.product(*VALUES.values(), np.linspace(LINE.min(), LINE.max(), 201))))
HOLES = ARRAY.copy()
HOLES[::9, :3] = np.nan
FEW = {"features": "gaussian", "alpha": 0.01, "n_components": 300, "rng": 0}
FITS = {
    "frame": (FRAME, FEW),
    "array": (ARRAY, FEW),
    "float32": (ARRAY.astype(np.float32), FEW),
    "CSR": (sp.csr_array(ARRAY), FEW),
    "chunks": (srf.Chunks(ARRAY, block_rows=70), FEW),
    "missing": (HOLES, FEW),
    "rules": (FRAME, {"features": srf.Rules(), "alpha": 0.01, "n_components": 300, "rng": 0}),
    "neurons": (ARRAY, {**FEW, "features": srf.RandomNeurons("relu", order=2)}),
    "bumps": (ARRAY, {**FEW, "features": srf.Bumps()}),
    "monotone": (FRAME, {"alpha": 0.01, "n_components": 300, "monotone": {"count": 1}, "rng": 0}),
}


@pytest.fixture(scope="module")
def fitted():
    """Fits by their names, each made once."""
    made = {}

    def fit(name):
        if name not in made:
            X, how = FITS[name]
            made[name] = srf.sparse_rf(X, Y, **how)
        return made[name]

    return fit


def decisions(model, rows):
    """Return f in rows of numbers, of the kind that the model was fitted to."""
    rows = np.asarray(rows, float)
    frame = pd.DataFrame(rows, columns=list(FRAME)).astype({"flag": bool})
    return model.decision_function(frame if model.feature_names_in_ else rows)


@pytest.mark.parametrize("name", FITS)
def test_bounds_are_those_of_rows_that_there_can_be(fitted, name):
    model = fitted(name)
    assert {j: values.tolist() for j, values in model.ranges.taken.items()} == VALUES
    found, f = model.bounds(time_limit=2.0), decisions(model, GRID)
    near = 2e-2 * np.ptp(f)  # the grid has steps, as rules have
    slack = 1e-6  # of float32 ends
    assert f.max() - slack <= found.largest.upper <= f.max() + near or not found.converged
    assert f.min() - near <= found.least.lower <= f.min() + slack or not found.converged
    assert f.max() - near <= found.largest.lower and found.least.upper <= f.min() + near
    rows = np.array([list(row.values()) for row in (found.at_least, found.at_largest)], float)
    assert all(np.isin(rows[:, j], values).all() for j, values in VALUES.items())
    exact = decisions(model, rows)
    assert np.allclose(exact, [found.least.upper, found.largest.lower], atol=1e-6 + 2e-3 * near)
    if name == "frame":
        assert type(found.at_least["flag"]) is bool


@pytest.mark.parametrize("name", FITS)
def test_means_count_values_equally(fitted, name):
    model = fitted(name)
    for part, values in (((0, 1), [0, 1]), ((-3, 0.5), [0]), (True, [1]), ((1, 1), [1])):
        value, error = model.mean({0: part, 1: (1, 2.5), 2: 3, 3: 0.3})
        rows = [[flag, count, 3, 0.3] for flag in values for count in (1, 2)]
        assert abs(value - decisions(model, rows).mean()) <= error + 1e-6
    whole, error = model.mean()
    lines = [
        model.mean(dict(enumerate(row)) | {3: (LINE.min(), LINE.max())})
        for row in itertools.product(*VALUES.values())
    ]
    assert abs(whole - np.mean(lines, axis=0)[0]) <= error + np.max(lines, axis=0)[1] + 1e-6
    integral, _ = model.integral({3: (-0.5, 1.0)})
    assert integral == pytest.approx(1.5 * model.mean({3: (-0.5, 1.0)})[0], rel=1e-12)


@pytest.mark.parametrize("name", FITS)
def test_monotone_means_along_the_values(fitted, name):
    model, shape = fitted(name), (*(len(values) for values in VALUES.values()), -1)
    f = decisions(model, GRID).reshape(shape)
    for j in range(4):
        found = model.is_monotone(j, time_limit=0.5)
        steps = np.diff(f, axis=j)
        if found:
            assert (found.sign * steps >= -1e-9).all()
        assert found.status != "refuted" or (steps.min() < 0 < steps.max()) or j == 3
        rows = [list(row.values()) for pair in found.pairs for row in (pair.low, pair.high)]
        for k, values in VALUES.items():
            assert np.isin(np.array(rows, float).reshape(-1, 4)[:, k], values).all()
        for pair in found.pairs:
            two = decisions(model, [list(pair.low.values()), list(pair.high.values())])
            assert np.allclose(two, [pair.f_low, pair.f_high], atol=1e-6)
    if name == "monotone":
        assert model.is_monotone("count", sign=1)


def wave(taken):
    """Return f = cos(2 pi x0) + x0 + x1 x0, with values that column 0 took."""
    block = NeuronBlock("cos", 1.0, np.array([[2 * np.pi, 0.0]]), np.zeros(1))
    linear = srf.Linear().draw(None, 2)
    features = srf.FeatureSet([block, *linear.blocks], 2)
    fit = srf.mfga(ARRAY[:, 2:], Y, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-3, rng=0)
    coef = np.append(1.0, np.ones(len(linear)))
    ranges = srf.mfga(
        np.column_stack([np.resize(taken, 60), np.linspace(-1, 1, 60)]), np.linspace(0, 1, 60),
        features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-3, rng=0,
    ).ranges  # fmt: skip
    return replace(
        fit,
        features=features,
        coef=coef,
        intercept=0.0,
        support=np.arange(len(coef)),
        ranges=ranges,
    )


def test_what_f_does_between_the_values_is_no_matter():
    model = wave([0.0, 1.0, 2.0])
    assert model.is_monotone(0, sign=1) and model.is_monotone(0).sign == 1
    smooth = replace(model, ranges=dict(model.ranges))  # with ranges alone it is continuous
    assert smooth.is_monotone(0).status == "refuted"
    assert model.mean({1: 0.0})[0] == pytest.approx(2.0)  # not 1, which is the mean over [0, 2]
    assert smooth.mean({1: 0.0})[0] == pytest.approx(1.0)
    down = wave([0.0, 0.0, 1.0, 3.0])
    down = replace(down, coef=-down.coef)
    assert down.is_monotone(0).sign == -1 and down.is_monotone(0, sign=1).status == "refuted"


def test_wide_tables_of_flags_have_tight_bounds():
    """In the middle of a box lines may touch what they are above: levels are told apart anyway."""
    rng = np.random.default_rng(3)
    flags = rng.random((400, 10)) < 0.5
    line = rng.uniform(-1, 1, 400)
    y = flags @ rng.normal(size=10) + flags[:, 0] * np.sin(3 * line) + flags[:, 1] * flags[:, 2]
    model = srf.sparse_rf(np.column_stack([flags, line]), y, **FEW)
    found = model.bounds(time_limit=5.0)
    assert found.converged
    every = np.array(list(itertools.product([0.0, 1.0], repeat=10)))
    f = np.concatenate(
        [model.predict(np.column_stack([every, np.full(1024, x)])) for x in np.linspace(-1, 1, 41)]
    )
    slack = 0.02 * np.ptp(f)
    assert f.max() - slack <= found.largest.lower and found.largest.upper <= f.max() + slack
    assert f.min() - slack <= found.least.lower and found.least.upper <= f.min() + slack


def test_what_a_box_says_of_flags(fitted):
    model = fitted("frame")
    for part, values in (
        ([True, False], [0, 1]), ([False], [0]), ((True, False), [0, 1]), (np.array([True]), [1]),
        ({True}, [1]), ((0, 1), [0, 1]), ((0.5, 7), [1]), ([True, None], [1, np.nan]),
    ):  # fmt: skip
        assert np.array_equal(read_box(model, {"flag": part}).levels[0], values, equal_nan=True)
    for part, value in ((True, 1), (np.True_, 1), (0.5, 0.5), (0, 0)):
        box = read_box(model, {"flag": part})
        assert box.low[0] == box.high[0] == value and 0 not in box.levels
    f = fitted("array").decision_function(np.array([[0.5, 1, 2, 0.1]]))[0]
    assert fitted("array").mean({0: 0.5, 1: 1, 2: 2, 3: 0.1})[0] == pytest.approx(f, abs=1e-9)
    for part in ((0.2, 0.8), (2, 3)):
        with pytest.raises(ValueError, match="value that 'flag' took in training, one of 0, 1, or"):
            model.bounds({"flag": part})


@pytest.mark.slow
def test_which_columns_take_few_values():
    rng = np.random.default_rng(0)
    many, days = (
        rng.integers(0, 40, 600),
        pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 5, 600), unit="D"),
    )
    X = pd.DataFrame({
        "hour": rng.integers(0, 24, 600), "many": many, "tenths": rng.integers(0, 4, 600) / 10,
        "sign": rng.choice([-1.0, 1.0], 600), "large": rng.choice([0, 1_000_000], 600),
        "day": days, "code": rng.choice(["a", "b"], 600),
    })  # fmt: skip
    model = srf.sparse_rf(
        X,
        X.sign * (X.hour > 9) + X.many + X.tenths + (X.large > 0),
        effort=0.1,
        rng=0,
        verbose=False,
    )
    assert sorted(model.ranges.taken) == [0, 3, 4]
    few = np.column_stack([np.arange(12) % 12, np.arange(12) % 4])  # each of the first once
    assert sorted(srf.mfga(few.astype(float), few @ [1.0, 2.5], rng=0).ranges.taken) == [1]


def test_files_keep_the_values_of_columns_that_terms_use(fitted, tmp_path):
    model = fitted("frame")
    for other in (through_file(model, tmp_path / "m"), srf.SparseModel.from_json(model.to_json())):
        assert other.mean() == model.mean()
        assert str(other.is_monotone("flag")) == str(model.is_monotone("flag"))
        assert {j: v.tolist() for j, v in other.ranges.taken.items()} == VALUES


def test_effects_have_points_at_the_values():
    rare = np.append(np.zeros(500), [1.0])
    assert grid_of(rare, 40).tolist() == [0, 1]
    assert np.allclose(shares_of(rare, grid_of(rare, 40), False), [500 / 501, 1 / 501])
    assert grid_of(RATING.astype(float), 40).tolist() == [1, 2, 3, 5]
    between = shares_of(np.array([4.0, np.nan]), np.array([1.0, 2, 3, 5, np.nan]), False)
    assert between.tolist() == [0, 0, 0.25, 0.25, 0.5]
    assert len(grid_of(LINE, 40)) == 40 and len(grid_of(RATING.astype(float), 3)) == 3


def test_a_value_on_a_threshold_is_on_its_side():
    from sparserf.features.blocks.boxes import BoxBlock

    inputs = np.zeros((1, 1), np.int32)
    block = BoxBlock(1.0, inputs, np.full((1, 1), -np.inf), np.full((1, 1), 2.0), np.ones(1))
    model = replace(
        wave([1.0, 2.0, 3.0]), features=srf.FeatureSet([block], 2), coef=np.ones(1),
        support=np.arange(1),
    )  # fmt: skip
    for value, f in ((2, 1.0), (3, 0.0)):
        found = model.bounds({0: (value - 0.5, value)})
        assert found.least.lower == pytest.approx(f, abs=1e-9)
        assert found.largest.upper == pytest.approx(f, abs=1e-9)
    assert model.is_monotone(0).sign == -1
