"""Encodings of columns: as they are, clipped, in ranks and by level, and of the entries of CSR
rows."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._core.moments import KINDS
from sparserf.algorithms.arguments import ColumnSetting, FitOptions
from sparserf.algorithms.task import Task
from sparserf.columns.encodings import fit_sparse_stage, fit_stage, target_encode
from sparserf.columns.table import Table
from sparserf.rows import as_rows

from ..conftest import phi_oracle

RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 3))
HOLES = np.where(RNG.random(X.shape) < [0.0, 0.3, 0.0], np.nan, X)
CLIPPED = KINDS.index("clipped")
COLUMNS = ColumnSetting("auto", "learn")


def encodings_of(X, **how):
    """Read encodings off X: return the stage, and for each way of encoding its columns."""
    return fit_stage(as_rows(X, may_miss=True), np.ones(len(X)), np.random.default_rng(0), **how)


def test_three_encodings_of_each_number():
    """Numbers are encoded as they are, clipped and in ranks; columns of two values once."""
    Z = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] > 0, HOLES[:, 1]])
    stage, curves = encodings_of(Z, is_curved=True)
    assert [KINDS[k] for k in stage.kind[curves[1]]] == ["clipped", "number", "clipped", "missing"]
    assert curves[0][1] == curves[1][1] == curves[2][1] and curves[0][3] == curves[2][3]
    u = stage.transform(Z)
    plain, clipped, ranks = (u[:, curve] for curve in curves)
    assert np.allclose(clipped[:, 0], plain[:, 0] / np.sqrt(1 + plain[:, 0] ** 2 / 9))
    there = ~np.isnan(Z[:, 2])
    order = np.argsort(np.argsort(Z[:, 0]))
    assert (
        np.corrcoef(ranks[:, 0], X[:, 0])[0, 1] > 0.99
        and (np.diff(ranks[np.argsort(order), 0]) >= 0).all()
    )
    for curve in (plain, clipped, ranks):
        assert (curve[~there, 2] == 0).all() and np.isfinite(curve).all()
    assert len(encodings_of(Z)[0]) == 4 and len(encodings_of(Z)[1]) == 1


def test_equal_numbers_have_one_rank():
    Z = np.where(RNG.random((5000, 1)) < 0.6, 0.0, RNG.random((5000, 1)))
    stage, curves = encodings_of(Z, is_curved=True)
    ranks = stage.transform(Z)[:, curves[2][0]]
    assert (
        np.unique(ranks[Z[:, 0] == 0]).size == 1
        and ranks[Z[:, 0] == 0][0] < ranks[Z[:, 0] > 0].min() + 0.1
    )


@pytest.mark.parametrize("namespace", ["numpy", "strict"])
def test_features_of_encodings(namespace):
    Z = np.column_stack([np.exp(0.5 * X[:, 0]), X[:, 1], X[:, 2] > 0])
    stage, curves = encodings_of(Z, is_curved=True)
    every = srf.Fourier(gamma=0.2).draw(30, len(curves[1]), rng=0)
    features = every.seeing(curves[1], len(stage)).staged(stage)
    assert features.n_features_in == 3 and features.n_inputs == len(stage)
    expected = every.transform(stage.take(curves[1]).transform(Z))
    there = strict.asarray(Z) if namespace == "strict" else Z
    assert np.allclose(np.asarray(features.transform(there)), expected) and np.allclose(
        phi_oracle(features, Z), expected
    )
    assert np.array_equal(features.input_usage(), np.ones(3))


@np.errstate(all="raise")
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_encodings_of_huge_cells_do_not_overflow(size):
    """One huge cell or five are encoded as finite numbers; clipped, they are at the bound of 3
    units."""
    for n_wild in (1, 5):
        wild = HOLES[:60].copy()
        wild[:n_wild] = size
        stage = encodings_of(wild, is_curved=True)[0]
        shown = stage.transform(wild)
        assert np.isfinite(shown).all() and np.allclose(
            np.abs(shown[0, stage.kind == CLIPPED]), 3, atol=1
        )
        assert np.allclose(np.asarray(stage.transform(strict.asarray(wild))), shown)
        assert (stage.half_range[stage.kind == KINDS.index("clipped")] <= 3).all()


@np.errstate(all="raise")
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_encodings_of_huge_entries_do_not_overflow(size):
    counts = np.where(RNG.random((60, 3)) < 0.3, RNG.integers(1, 9, (60, 3)), 0.0) * 1e-3
    counts[0] = size
    options = FitOptions(features="auto", columns=COLUMNS, rng=RNG)
    task = Task.from_options(sp.csr_array(counts), X[:60, 0], options, has_several_encodings=True)
    shown = task.stage.transform(sp.csr_array(counts)).toarray()
    expected = task.stage.transform(counts)
    assert np.allclose(
        shown[:, task.stage.kind == CLIPPED], expected[:, task.stage.kind == CLIPPED]
    )
    assert np.allclose(shown[0, task.stage.kind == CLIPPED], 3)


# Encodings of the entries of CSR rows


COUNTS = np.random.default_rng(0).poisson(0.3, (700, 12)) * np.random.default_rng(1).integers(
    1.0, 9.0, (700, 12)
)
COUNTS = sp.csr_array(COUNTS.astype(float))


def counts_stage():
    """Read encodings off the entries of COUNTS."""
    return fit_sparse_stage(as_rows(COUNTS), np.ones(700), np.random.default_rng(0))


def test_encodings_of_counts():
    stage, curves = counts_stage()
    assert stage.keeps_zeros and stage.take(curves[0]).is_identity
    shown, dense = stage.transform(COUNTS), COUNTS.toarray()
    assert sp.issparse(shown) and shown.has_canonical_format
    unit = [np.sort(column[column > 0])[(np.count_nonzero(column) - 1) // 2] for column in dense.T]
    clipped = dense / unit / np.sqrt(1 + (dense / unit / 3) ** 2)
    assert np.allclose(shown.toarray(), np.hstack([dense, clipped, dense > 0]))
    assert np.allclose(stage.transform(dense.astype(float)), shown.toarray())
    assert np.allclose(
        np.asarray(stage.transform(strict.asarray(dense.astype(float)))), shown.toarray()
    )
    mixed = np.array([25, 3, 14])
    assert np.allclose(stage.take(mixed).transform(COUNTS).toarray(), shown.toarray()[:, mixed])


def test_equal_entries_have_one_encoding():
    alike = COUNTS.copy()
    alike.data[:] = 2.0
    assert fit_sparse_stage(as_rows(alike), np.ones(700), np.random.default_rng(0)) == (None, ())
    assert fit_sparse_stage(
        as_rows(sp.csr_array((5, 3))), np.ones(5), np.random.default_rng(0)
    ) == (None, ())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("zeros", ["none", "of one column"])
def test_columns_without_zeros_are_not_encoded_by_where_their_zeros_are(seed, zeros):
    """Columns in which no entry is zero have no encoding by presence: features of a constant have
    no variance."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (400, 3))
    if zeros == "of one column":
        X[rng.random(400) < 0.3, 1] = 0.0
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    model = srf.sparse_rf(sp.csr_array(X[:300]), y[:300], rng=0)
    assert np.isfinite(model.coef).all()
    assert np.mean((model.predict(sp.csr_array(X[300:])) - y[300:]) ** 2) < 0.1 * y.var()


# Levels


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e-3])
def test_levels_of_one_row_each_have_equal_means(rng, offset):
    """No other row has such a level, so that all are encoded by the mean of y, with no difference
    by rounding."""
    y = offset + rng.standard_normal(60) * abs(offset or 1)
    X, table = Table.learn(np.array([[f"level {k}"] for k in range(60)], object), [0])
    _, means = target_encode(X, table, [y], np.ones(60), rng)
    assert np.ptp(means[0][1]) == 0
    assert means[0][1][0] == pytest.approx(y.mean())


@pytest.mark.parametrize("n_groups", [1, 2, 3, 40])
def test_a_mean_of_a_level_comes_from_other_groups(rng, n_groups):
    """Rows of a level that only their own group has are encoded by the mean of y; those of common
    levels are not."""
    groups = np.repeat(np.arange(n_groups), 240 // n_groups)
    is_own = np.arange(len(groups)) % 2 > 0
    levels = [
        f"own {g} {k % 40}" if own else f"common {k % 30}"
        for k, (g, own) in enumerate(zip(groups, is_own, strict=True))
    ]
    y = rng.standard_normal(len(groups))
    X, table = Table.learn(np.array(levels, object)[:, None], [0])
    encoded, means = target_encode(X, table, [y], np.ones(len(y)), rng, groups)
    decoded = np.interp(encoded[:, 0], *means[0])
    assert decoded[is_own] == pytest.approx(y.mean())
    assert n_groups == 1 or np.ptp(decoded[~is_own]) > 0
