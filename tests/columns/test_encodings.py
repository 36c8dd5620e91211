"""Tables as they are: what is missing, categories, names, and several views of a column."""

import pickle
import sqlite3
import subprocess
import sys

import array_api_strict as strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._core.moments import KINDS
from sparserf.algorithms.sparse_rf.held_out import PathPoint, best_mean
from sparserf.algorithms.task import ColumnSetting, Task
from sparserf.columns.encodings import fit_sparse_stage, fit_stage, target_encode
from sparserf.columns.table import Table
from sparserf.rows import as_rows

from ..conftest import phi_oracle

N = 900
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
HOLES = np.where(RNG.random(X.shape) < [0.0, 0.3, 0.0], np.nan, X)
IS_MISSING = np.isnan(HOLES[:, 1])
# Whether it is missing tells as much as what it is.
Y = np.sin(X[:, 0]) + np.where(IS_MISSING, 1.5, 0.5 * X[:, 1]) + 0.05 * RNG.standard_normal(N)
CITY = np.array(["Aa", "Bb", "Cc"])[RNG.integers(0, 3, N)]
SHOP = RNG.integers(0, 150, N)
WORTH = RNG.standard_normal(150)
TABLE = pd.DataFrame({"age": 40 + 10 * X[:, 0], "city": CITY, "shop": [f"s{k:03}" for k in SHOP], "is_open": X[:, 2] > 0})
OF_TABLE = np.sin(X[:, 0]) + (CITY == "Bb") + WORTH[SHOP] + 0.3 * (X[:, 2] > 0) + 0.1 * RNG.standard_normal(N)

FITS = {
    "auto": lambda X, y, **how: srf.sparse_rf(X, y, rng=0, n_models=1, n_components=300, **how),
    "gaussian": lambda X, y, **how: srf.sparse_rf(
        X, y, features="gaussian", gamma=0.1, alpha=1e-3, n_components=500, rng=0, **how
    ),
    "harfe": lambda X, y, **how: srf.harfe(X, y, n_components=1000, n_nonzero_coefs=60, order=2, rng=0, **how),
    "mfga": lambda X, y, **how: srf.mfga(X, y, n_nonzero_coefs=8, rng=0, **how),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-4, rng=0, **how),
}
CLIPPED = KINDS.index("clipped")
HOW = ColumnSetting("auto", "learn")
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def r2(model, X, y):
    return 1 - np.mean((model.predict(X) - y) ** 2) / np.var(y)


def stage_and_curves(X, **how):
    return fit_stage(as_rows(X, may_miss=True), np.ones(len(X)), np.random.default_rng(0), **how)


# What is missing.


@each_fit
@pytest.mark.slow
def test_what_is_missing_tells(fit):
    model = fit(HOLES, Y)
    assert r2(model, HOLES, Y) > 0.9
    with_centre = np.where(np.isnan(HOLES), 0.0, HOLES)
    assert r2(fit(with_centre, Y), with_centre, Y) < r2(model, HOLES, Y) - 0.02 or fit is FITS["auto"]


@each_fit
def test_missing_raise(fit):
    with pytest.raises(ValueError, match="X must be finite, got nan at"):
        fit(HOLES, Y, missing="raise")
    model = fit(X, Y, missing="raise")
    with pytest.raises(ValueError, match="X must be finite, got nan at"):
        model.predict(HOLES)
    with pytest.raises(ValueError, match="missing must be one of 'learn', 'raise', got 'drop'"):
        fit(X, Y, missing="drop")
    with pytest.raises(ValueError, match="X must be finite, got inf at"):
        fit(np.where(IS_MISSING[:, None], np.inf, X), Y)
    with pytest.raises(ValueError, match="y must be finite"):
        fit(X, np.where(IS_MISSING, np.nan, Y))


@pytest.mark.parametrize("fit", [FITS[name] for name in ("auto", "gaussian", "harfe", "mfga")], ids=lambda fit: "")
def test_what_is_missing_only_at_prediction_is_the_centre(fit):
    model, center = fit(50 + X, Y), np.array([50 + X.mean(axis=0)])
    stage = model.features.stage
    hole = center.copy()
    hole[0, 1] = np.nan
    plain = np.flatnonzero((stage.column == 1) & (np.diff(stage.first_knot) == 0))
    assert np.allclose(stage.transform(hole)[0, plain], stage.transform(center)[0, plain], atol=1e-6)
    assert np.isfinite(model.predict(hole)).all()


@each_fit
def test_csr_has_none(fit):
    with pytest.raises(ValueError, match="X must be finite"):
        fit(sp.csr_array(HOLES), Y)


@pytest.mark.parametrize("home", ["chunks", "dask", "strict", "float32"])
def test_missing_in_every_home(home):
    Z = {"chunks": lambda: srf.Chunks(HOLES, block_rows=250), "dask": lambda: da.from_array(HOLES, chunks=(300, 3)),
         "strict": lambda: strict.asarray(HOLES), "float32": lambda: HOLES.astype(np.float32)}[home]()  # fmt: skip
    model, expected = FITS["gaussian"](Z, Y), FITS["gaussian"](HOLES, Y)
    answer = model.predict(Z)
    answer = np.asarray(answer.compute() if home == "dask" else answer)
    assert np.allclose(answer, expected.predict(HOLES), atol=2e-2 if home == "float32" else 1e-5)
    maps = srf.Fourier("gaussian", 0.1)
    if home in ("chunks", "dask"):  # as they are, what is elsewhere is not looked through
        with pytest.raises(ValueError, match="must be finite"):
            srf.sparse_rf(Z, Y, features=maps, alpha=0.01, n_components=50, rng=0)


def test_missing_in_columns_as_they_are():
    model = srf.sparse_rf(
        100 + HOLES, Y, features=[srf.Linear(), srf.Fourier("gaussian", 0.1)], alpha=1e-3, n_components=300, rng=0
    )
    assert model.features.stage.is_raw and not model.features.stage.is_identity and r2(model, 100 + HOLES, Y) > 0.8
    fill = model.features.stage.fill[model.features.stage.kind == KINDS.index("number")]
    assert np.allclose(fill, 100 + np.nanmean(HOLES, axis=0), atol=0.05)


@each_fit
@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("center", [0.0, 100.0])
@pytest.mark.slow
def test_what_hardly_ever_misses(fit, scale, center, monkeypatch):
    """In none of the rows that columns are read off: it is at the centre, also where that is 0 and columns are as they are."""
    monkeypatch.setattr("sparserf.columns.encodings.MOST_ROWS", 100)
    rare = X - np.median(X, axis=0) + center
    rare[17, 1] = np.nan
    y = np.sin(X[:, 0]) + X[:, 1]
    model = fit(rare, y, **({} if fit is FITS["drp"] else {"scale": scale}), sample_weight=np.arange(N) != 18)
    stage = model.features.stage
    assert not (stage.kind == KINDS.index("missing")).any() and not stage.is_identity
    assert np.isfinite(model.predict(rare)).all() and r2(model, rare[18:], y[18:]) > 0.5


def test_all_missing():
    Z = np.column_stack([X[:, 0], np.full(N, np.nan)])
    model = FITS["gaussian"](Z, Y)
    assert np.isfinite(model.predict(Z)).all() and np.isfinite(model.predict(X[:, :2])).all()


# Categories and names.


@each_fit
def test_a_table(fit, tmp_path):
    model = fit(TABLE, OF_TABLE)
    assert r2(model, TABLE, OF_TABLE) > 0.6
    assert list(model.feature_names_in_) == list(TABLE.columns) and len(model.input_usage()) == 4
    there = model.predict(TABLE)
    assert np.array_equal(there, model.predict(TABLE[TABLE.columns[::-1]]))
    with pytest.raises(ValueError, match="'city'"):
        model.predict(TABLE.drop(columns="city"))
    with pytest.raises(ValueError, match="'more'"):
        model.predict(TABLE.assign(more=1))
    strange = TABLE.assign(city="Zz", shop="none")
    assert np.isfinite(model.predict(strange)).all() and np.isfinite(model.predict(TABLE.assign(city=None))).all()
    model.save(tmp_path / "model.npz")
    for other in (srf.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(there, other.predict(TABLE))
    assert np.allclose(model.features.transform(TABLE) @ model.coef + model.intercept, there)


@each_fit
@pytest.mark.slow
def test_levels_and_codes_are_the_same(fit):
    """A table of strings, or an array of numbers that are called categories."""
    codes = np.column_stack([TABLE["age"], np.unique(CITY, return_inverse=True)[1], SHOP, TABLE["is_open"]]).astype(float)
    one, two = fit(TABLE, OF_TABLE), fit(codes, OF_TABLE, categorical=[1, 2])
    assert np.array_equal(one.support, two.support) and np.allclose(one.predict(TABLE), two.predict(codes))
    mask = fit(codes, OF_TABLE, categorical=[False, True, True, False])
    assert np.array_equal(mask.predict(codes), two.predict(codes)) and two.feature_names_in_ is None
    with pytest.raises(ValueError, match="categorical"):
        fit(codes, OF_TABLE, categorical=[7])


def test_names_of_terms():
    model = FITS["drp"](TABLE.drop(columns="shop"), OF_TABLE)
    assert model.features.names() == ["age", "city=Aa", "city=Bb", "city=Cc", "is_open"]
    assert model.coef[2] > model.coef[1] + 0.8
    holes = pd.DataFrame(HOLES, columns=["a", "b", "c"])
    assert FITS["drp"](holes, Y).features.names() == ["a", "b", "b is missing", "c"]


def test_a_row_does_not_know_its_own_target():
    """150 levels of 6 rows each say nothing of a target that is noise: their means over other folds do not fit it."""
    noise = np.random.default_rng(1).standard_normal(N)
    model = FITS["drp"](TABLE[["shop"]], noise)
    assert abs(r2(model, TABLE[["shop"]], noise)) < 0.15
    model = FITS["drp"](TABLE[["shop"]], WORTH[SHOP] + 0.1 * noise)
    other = pd.DataFrame({"shop": [f"s{k:03}" for k in range(150)]})
    seen = np.isin(np.arange(150), SHOP)
    assert np.corrcoef(model.predict(other)[seen], WORTH[seen])[0, 1] > 0.98


def test_means_of_levels_are_by_weight():
    weight = np.random.default_rng(0).integers(1, 4, N)
    copies = np.repeat(np.arange(N), weight)
    target = WORTH[SHOP]
    one = srf.drp(TABLE[["shop"]], target, alpha=1e-4, sample_weight=weight, rng=0)
    two = srf.drp(TABLE[["shop"]].iloc[copies], target[copies], alpha=1e-4, rng=0)
    assert np.corrcoef(one.predict(TABLE[["shop"]]), two.predict(TABLE[["shop"]]))[0, 1] > 0.995


@each_fit
def test_rows_of_weight_zero_have_no_levels(fit):
    """Nor is anything missing in them: not a bit is other than without these rows."""
    there = np.ones(N + 60, bool)
    there[5 * np.arange(60)] = False
    strange = {"age": [np.nan, 1e9, -1e9], "city": ["Ab", None, "Dd"], "shop": [None, "a", "t"], "is_open": [False, True, True]}
    places, table = np.cumsum(there) - 1, pd.concat([TABLE, pd.DataFrame(strange).iloc[np.arange(60) % 3]])
    order = np.where(there, places, N + np.cumsum(~there) - 1)
    y = np.where(there, OF_TABLE[np.minimum(places, N - 1)], 7.0)
    one, two = fit(TABLE, OF_TABLE), fit(table.iloc[order], y, sample_weight=there.astype(float))
    assert one.features.stage.is_same(two.features.stage) and one.coef.tobytes() == two.coef.tobytes()
    assert np.array_equal(one.predict(table), two.predict(table))


@np.errstate(all="raise")
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_nothing_overflows_in_views_of_wild_cells(size):
    """Of many that are far out, too, which are as far out in units, and not in what is clipped."""
    for n_wild in (1, 5):
        wild = HOLES[:60].copy()
        wild[:n_wild] = size
        stage = stage_and_curves(wild, is_curved=True)[0]
        shown = stage.transform(wild)
        assert np.isfinite(shown).all() and np.allclose(np.abs(shown[0, stage.kind == CLIPPED]), 3, atol=1)
        assert np.allclose(np.asarray(stage.transform(strict.asarray(wild))), shown)
        assert (stage.half_range[stage.kind == KINDS.index("clipped")] <= 3).all()


@np.errstate(all="raise")
@pytest.mark.parametrize("size", [1e200, 1.7e308])
def test_nothing_overflows_in_views_of_wild_entries(size):
    counts = np.where(RNG.random((60, 3)) < 0.3, RNG.integers(1, 9, (60, 3)), 0.0) * 1e-3
    counts[0] = size
    task = Task.from_arguments(sp.csr_array(counts), Y[:60], features="auto", loss="squared", sample_weight=None, workers=1,
                               rng=RNG, columns=HOW, is_curved=True)  # fmt: skip
    shown = task.stage.transform(sp.csr_array(counts)).toarray()
    expected = task.stage.transform(counts)
    assert np.allclose(shown[:, task.stage.kind == CLIPPED], expected[:, task.stage.kind == CLIPPED])
    assert np.allclose(shown[0, task.stage.kind == CLIPPED], 3)


def test_classes_of_a_table():
    model = srf.sparse_rf(TABLE, np.where(OF_TABLE > 0.5, "high", "low"), loss="logistic", rng=0, n_models=1, n_components=300)
    assert np.mean(model.predict(TABLE) == np.where(OF_TABLE > 0.5, "high", "low")) > 0.85


def test_features_of_a_table_are_a_dictionary():
    model = FITS["gaussian"](TABLE, OF_TABLE)
    again = srf.harfe(TABLE[TABLE.columns[::-1]], OF_TABLE, features=model.features, n_nonzero_coefs=20, rng=0)
    assert r2(again, TABLE, OF_TABLE) > 0.5
    with pytest.raises(ValueError, match="categorical must be None"):
        srf.harfe(TABLE, OF_TABLE, features=model.features, n_nonzero_coefs=20, rng=0, categorical=["city"])
    small = srf.prune(model, TABLE, max_terms=20)
    assert np.corrcoef(small.predict(TABLE), model.predict(TABLE))[0, 1] > 0.9
    sums = srf.Sums.of(TABLE, OF_TABLE, model.features)
    assert r2(sums.fit(srf.mfga, n_nonzero_coefs=20), TABLE, OF_TABLE) > 0.5


@each_fit
@pytest.mark.parametrize("there", [X, HOLES], ids=["whole", "holes"])
def test_a_frame_of_numbers_is_an_array(fit, there):
    """Wherever rows to predict are, and whether their columns have names or not."""
    frame = pd.DataFrame(there, columns=["a", "b", "c"])
    model, plain = fit(frame, Y), fit(there, Y)
    expected = plain.predict(there)
    assert np.array_equal(model.predict(frame), expected) and np.array_equal(model.predict(there), expected)
    assert np.array_equal(model.predict(frame[["c", "a", "b"]]), expected)
    others = [srf.Chunks(there, block_rows=250), da.from_array(there, chunks=(300, 3)), strict.asarray(there), there.tolist()]
    others += [sp.csr_array(there)] * (there is X)
    for other in others:
        assert np.allclose(np.asarray(model.predict(other)), expected, rtol=1e-9, atol=1e-9)


def test_dates_and_objects_are_named():
    dates = TABLE.assign(since=pd.Timestamp("2026-01-01"))
    with pytest.raises(TypeError, match="since"):
        FITS["mfga"](dates, OF_TABLE)


def test_imports():
    """No library of data frames comes with the package."""
    code = "import sys, sparserf; assert not {'pandas', 'polars', 'pyarrow', 'narwhals', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


@pytest.mark.parametrize("name", ["auto", "gaussian"])
def test_plots_of_a_table(name):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    features = srf.Fourier("gaussian", 0.1)
    model = srf.harfe(TABLE, OF_TABLE, order=2, n_components=300, n_nonzero_coefs=20, rng=0) if name == "auto" else None
    model = model or srf.drp(TABLE, OF_TABLE, alpha=1e-3, rng=0)
    assert (
        srf.plot.effects(model, TABLE).axes[0].lines and srf.plot.input_usage(model).get_xticklabels()[1].get_text() == "city"
    )
    assert features.gamma == 0.1
    plt.close("all")


def test_plots_of_a_category_without_levels():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    table = TABLE.assign(city=None)
    for model in (srf.drp(table, OF_TABLE, alpha=1e-3, rng=0), FITS["harfe"](table, OF_TABLE)):
        assert srf.plot.effects(model, table).axes and srf.plot.input_usage(model) is not None
    plt.close("all")


# Views of a column.


def test_curves():
    """As they are, clipped, and in ranks; what has two values has one view."""
    Z = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] > 0, HOLES[:, 1]])
    stage, curves = stage_and_curves(Z, is_curved=True)
    assert [KINDS[k] for k in stage.kind[curves[1]]] == ["clipped", "number", "clipped", "missing"]
    assert curves[0][1] == curves[1][1] == curves[2][1] and curves[0][3] == curves[2][3]
    u = stage.transform(Z)
    plain, clipped, ranks = (u[:, curve] for curve in curves)
    assert np.allclose(clipped[:, 0], plain[:, 0] / np.sqrt(1 + plain[:, 0] ** 2 / 9))
    there = ~np.isnan(Z[:, 2])
    order = np.argsort(np.argsort(Z[:, 0]))
    assert np.corrcoef(ranks[:, 0], X[:, 0])[0, 1] > 0.99 and (np.diff(ranks[np.argsort(order), 0]) >= 0).all()
    for curve in (plain, clipped, ranks):
        assert (curve[~there, 2] == 0).all() and np.isfinite(curve).all()
    assert len(stage_and_curves(Z)[0]) == 4 and len(stage_and_curves(Z)[1]) == 1


def test_views_of_ranks_know_ties():
    Z = np.where(RNG.random((5000, 1)) < 0.6, 0.0, RNG.random((5000, 1)))
    stage, curves = stage_and_curves(Z, is_curved=True)
    ranks = stage.transform(Z)[:, curves[2][0]]
    assert np.unique(ranks[Z[:, 0] == 0]).size == 1 and ranks[Z[:, 0] == 0][0] < ranks[Z[:, 0] > 0].min() + 0.1


@pytest.mark.parametrize("namespace", ["numpy", "strict"])
def test_features_of_views(namespace):
    Z = np.column_stack([np.exp(0.5 * X[:, 0]), X[:, 1], X[:, 2] > 0])
    stage, curves = stage_and_curves(Z, is_curved=True)
    every = srf.Fourier(gamma=0.2).draw(30, len(curves[1]), rng=0)
    features = every.seeing(curves[1], len(stage)).staged(stage)
    assert features.n_features_in == 3 and features.n_inputs == len(stage)
    expected = every.transform(stage.take(curves[1]).transform(Z))
    there = strict.asarray(Z) if namespace == "strict" else Z
    assert np.allclose(np.asarray(features.transform(there)), expected) and np.allclose(phi_oracle(features, Z), expected)
    assert np.array_equal(features.input_usage(), np.ones(3))


def choice(margins, held):
    target = np.zeros(len(held))
    losses_at = lambda z: (z[0] - target) ** 2 / 2  # noqa: E731
    return PathPoint(margins**2 / 2, held, np.arange(len(held)), 1.0, 1.0, margins[None], losses_at, [])


def test_the_mean_of_members_that_predict_best():
    """Of three, two that err independently, and one that errs far more."""
    rng, held = np.random.default_rng(0), np.ones(500)
    searches = [{m: choice(size * rng.standard_normal(500), held) for m, size in enumerate((1.0, 5.0, 1.0))} for _ in range(2)]
    members, mixtures = best_mean(searches)
    assert members == (0, 2) and len(mixtures) == 2
    mean = (searches[0][0].margins + searches[0][2].margins)[0] / 2
    assert mixtures[0].loss == pytest.approx(np.mean(mean**2) / 2)
    del searches[1][2]
    assert best_mean(searches)[0] == (0,)


@pytest.mark.slow
def test_skewed_columns_are_seen_in_another_view():
    """A target of ranks, and inputs with long tails: in views of their own the error is a fraction."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((1500, 3))
    y, skewed = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2], np.sign(Z) * np.expm1(np.abs(Z)) ** 2
    how = {"n_models": 1, "n_components": 3000, "rng": 0}
    model = srf.sparse_rf(skewed[:1000], y[:1000], **how)
    plain = srf.sparse_rf(srf.Chunks(skewed[:1000]), y[:1000], **how, scale=None)
    assert model.features.stage.kind.any() or len(model.features.stage.knots)
    assert 1 - r2(model, skewed[1000:], y[1000:]) < 0.7 * (1 - r2(plain, skewed[1000:], y[1000:]))


# Views of the entries of CSR rows.


COUNTS = np.random.default_rng(0).poisson(0.3, (700, 12)) * np.random.default_rng(1).integers(1.0, 9.0, (700, 12))
COUNTS = sp.csr_array(COUNTS.astype(float))


def counts_stage():
    return fit_sparse_stage(as_rows(COUNTS), np.ones(700), np.random.default_rng(0))


def test_views_of_counts():
    stage, curves = counts_stage()
    assert stage.keeps_zeros and stage.take(curves[0]).is_identity
    shown, dense = stage.transform(COUNTS), COUNTS.toarray()
    assert sp.issparse(shown) and shown.has_canonical_format
    unit = [np.sort(column[column > 0])[(np.count_nonzero(column) - 1) // 2] for column in dense.T]
    clipped = dense / unit / np.sqrt(1 + (dense / unit / 3) ** 2)
    assert np.allclose(shown.toarray(), np.hstack([dense, clipped, dense > 0]))
    assert np.allclose(stage.transform(dense.astype(float)), shown.toarray())
    assert np.allclose(np.asarray(stage.transform(strict.asarray(dense.astype(float)))), shown.toarray())
    mixed = np.array([25, 3, 14])
    assert np.allclose(stage.take(mixed).transform(COUNTS).toarray(), shown.toarray()[:, mixed])


def test_entries_that_are_alike_have_one_view():
    alike = COUNTS.copy()
    alike.data[:] = 2.0
    assert fit_sparse_stage(as_rows(alike), np.ones(700), np.random.default_rng(0)) == (None, ())
    assert fit_sparse_stage(as_rows(sp.csr_array((5, 3))), np.ones(5), np.random.default_rng(0)) == (None, ())


def test_a_few_large_counts_do_not_ruin_a_fit(tmp_path):
    """Whether a word occurs tells the class; how often has long tails."""
    rng = np.random.default_rng(3)
    there = rng.random((1200, 40)) < 0.15
    counts = sp.csr_array(there * np.exp(2.5 * rng.standard_exponential((1200, 40))).round())
    f = there @ rng.standard_normal(40)
    y = f + 0.3 * rng.standard_normal(1200) > np.median(f)
    model = srf.sparse_rf(counts[:800], y[:800], loss="logistic", rng=0, n_models=2, n_components=500)
    assert np.mean(model.predict(counts[800:]) == y[800:]) > 0.9 and model.features.stage is not None
    model.save(tmp_path / "model.npz")
    assert np.array_equal(srf.load(tmp_path / "model.npz").predict(counts), model.predict(counts))
    chunks = srf.Chunks(lambda start, stop: counts[start:stop], counts.shape, block_rows=500)
    assert np.array_equal(model.predict(chunks), model.predict(counts))
    assert np.array_equal(model.predict(counts.toarray()), model.predict(counts))


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e-3])
def test_levels_of_one_row_each_have_means_that_are_all_alike(rng, offset):
    """The other rows tell nothing of them: what their means differ by is rounding, and no unit of a view."""
    y = offset + rng.standard_normal(60) * abs(offset or 1)
    X, table = Table.learn(np.array([[f"level {k}"] for k in range(60)], object), [0])
    _, means = target_encode(X, table, [y], np.ones(60), rng)
    assert np.ptp(means[0][1]) == 0
    assert means[0][1][0] == pytest.approx(y.mean())


# Cells that say nothing: of a level that no training row has, or missing where none was in training.

N_FITTED = 500


def decided_by_a_level(n_levels, seed, is_skewed=False):
    """(frame, f): mostly a function of the level of one column, which also turns that of a number."""
    rng = np.random.default_rng(seed)
    effect, shares = rng.standard_normal(n_levels), 1 / np.arange(1, n_levels + 1) ** float(is_skewed)
    level = rng.choice(n_levels, N_FITTED + 300, p=shares / shares.sum())
    a, b, kind = *rng.standard_normal((2, len(level))), [f"level {k}" for k in level]
    return pd.DataFrame({"a": a, "kind": kind, "b": b}), 2 * effect[level] + 0.3 * a + 0.5 * effect[level] * b


def beside_a_constant(fit, X, y, loss, column, cells):
    """Of each of these cells, in all rows of that column that were not fitted, the mean loss over that of the best constant."""
    fitted, others, of_others = X[:N_FITTED], X[N_FITTED:], y[N_FITTED:]
    model = fit(fitted, y[:N_FITTED])
    constant = min(np.mean(loss(np.full(300, middle(y[:N_FITTED])), of_others)) for middle in (np.mean, np.median))
    assert np.mean(loss(model.predict(others), of_others)) < 0.6 * constant  # the column decides
    return [np.mean(loss(model.predict(others.assign(**{column: cell})), of_others)) / constant for cell in cells]


def square(z, y):
    return (z - y) ** 2


@pytest.mark.parametrize("is_skewed", [False, True])
@pytest.mark.parametrize("n_levels", [2, 5, 10, 40])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_what_says_nothing_is_no_worse_than_the_mean(fit, n_levels, is_skewed):
    X, f = decided_by_a_level(n_levels, 2 + 10 * (n_levels == 2), is_skewed)
    y = f + 0.3 * np.random.default_rng(0).standard_normal(len(f))
    worst = max(beside_a_constant(fit, X, y, square, "kind", ["another", None]))
    assert worst < (1.1 if n_levels == 2 else 1.05) ** 2  # between two levels there are few points


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", ["poisson", "gamma", "huber", "quantile"])
def test_what_says_nothing_with_other_losses(loss, seed):
    X, f = decided_by_a_level(12, seed)
    rng = np.random.default_rng(seed)
    mean, real = np.exp(0.5 * f), f + 0.3 * rng.standard_normal(len(f))
    y = {"poisson": rng.poisson(5 * mean), "gamma": mean * rng.gamma(9.0, 1 / 9, len(f))}.get(loss, real)
    of_rows = {
        "poisson": lambda z, y: z - y * np.log(np.maximum(z, 1e-9)) + np.where(y > 0, y * np.log(np.maximum(y, 1)) - y, 0.0),
        "gamma": lambda z, y: y / z - np.log(y / z) - 1,
        "huber": lambda z, y: np.abs(z - y),
        "quantile": lambda z, y: np.abs(z - y),
    }[loss]
    fit = lambda X, y: FITS["auto"](X, y, loss=loss)  # noqa: E731
    assert max(beside_a_constant(fit, X, y, of_rows, "kind", ["another", None])) < 1.1


@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_what_says_nothing_of_classes(loss):
    X, f = decided_by_a_level(12, 1)
    label = np.digitize(f + np.random.default_rng(0).logistic(0, 0.5, len(f)), np.quantile(f, [0.5, 0.8]))
    model = FITS["auto"](X[:N_FITTED], label[:N_FITTED], loss=loss)
    shares = np.bincount(label[:N_FITTED]) / N_FITTED
    rows, y = X[N_FITTED:], label[N_FITTED:]
    for cell in ("another", None):
        p = model.predict_proba(rows.assign(kind=cell))[np.arange(len(y)), y]
        assert -np.log(p).mean() < 1.05 * -np.log(shares[y]).mean()


def test_numbers_that_miss_in_new_rows_alone_are_no_worse_than_the_mean():
    """At the centre of a curve, far from its mean."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((N_FITTED + 300, 2)), columns=["a", "b"])
    y = X["a"].to_numpy() ** 2 + 0.1 * X["b"].to_numpy()
    for name in ("auto", "gaussian", "mfga"):
        assert max(beside_a_constant(FITS[name], X, y, square, "a", [np.nan])) < 1.05**2


def test_what_says_nothing_costs_a_model_nothing_that_does_not_need_it():
    """A number is at the centre of its column, and what was missing in training is what the model has learnt of it."""
    X, f = decided_by_a_level(5, 0)
    X.loc[::7, "kind"] = None
    y = np.where(X["kind"].isna(), 9.0, f)
    model = FITS["auto"](X, y)
    assert np.sqrt(np.mean((model.predict(X.assign(kind=None)) - 9) ** 2)) < 0.5 * np.std(y)
    assert not model.features.stage.fill[model.features.stage.kind == KINDS.index("number")].any()


def test_fallbacks_are_in_the_file_and_in_a_fit_of_the_same_features(tmp_path):
    X, y = decided_by_a_level(10, 2)
    model = FITS["auto"](X, y)
    model.save(tmp_path / "model")
    new = X.assign(kind=["another", None] * (len(X) // 2))
    assert np.array_equal(srf.load(tmp_path / "model.npz").predict(new), model.predict(new))
    again = srf.mfga(X, y, features=model.features, n_nonzero_coefs=5, rng=0)
    assert np.isfinite(again.predict(new)).all() and np.std(again.predict(new)) < np.std(y)


def test_what_says_nothing_is_the_same_in_code():
    X, y = decided_by_a_level(10, 2)
    model, new = FITS["auto"](X, y), X.assign(kind=(["another", None, "level 1"] * len(X))[: len(X)])
    space = {}
    exec(model.formula("python"), space)
    assert np.allclose(space["predict"](new), model.predict(new), atol=1e-12)
    assert " of other words " in model.formula() and " where missing " in model.formula()
    database = sqlite3.connect(":memory:")
    new.to_sql("data", database, index=False)
    assert np.allclose(np.ravel(database.execute(model.formula("sql")).fetchall()), model.predict(new), atol=1e-12)
    database.close()
