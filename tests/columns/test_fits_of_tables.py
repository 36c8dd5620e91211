"""Fits of tables as they are: missing cells, categories, names, levels that no training row has,
plots and code."""

import pickle
import sqlite3

import array_api_strict as strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparserf as srf

from ..conftest import convergence_ignored, r2

# The shops of the tables below have levels of their own.
pytestmark = pytest.mark.filterwarnings("ignore::sparserf.GroupedRowsWarning")

N = 900
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
HOLES = np.where(RNG.random(X.shape) < [0.0, 0.3, 0.0], np.nan, X)
IS_MISSING = np.isnan(HOLES[:, 1])
# Whether a cell is missing matters to Y as much as its number.
Y = np.sin(X[:, 0]) + np.where(IS_MISSING, 1.5, 0.5 * X[:, 1]) + 0.05 * RNG.standard_normal(N)
CITY = np.array(["Aa", "Bb", "Cc"])[RNG.integers(0, 3, N)]
SHOP = RNG.integers(0, 150, N)
WORTH = RNG.standard_normal(150)
TABLE = pd.DataFrame(
    {
        "age": 40 + 10 * X[:, 0],
        "city": CITY,
        "shop": [f"s{k:03}" for k in SHOP],
        "is_open": X[:, 2] > 0,
    }
)
OF_TABLE = (
    np.sin(X[:, 0])
    + (CITY == "Bb")
    + WORTH[SHOP]
    + 0.3 * (X[:, 2] > 0)
    + 0.1 * RNG.standard_normal(N)
)

FITS = {
    "auto": lambda X, y, **how: srf.sparse_rf(X, y, rng=0, n_components=300, effort=0.2, **how),
    "gaussian": lambda X, y, **how: srf.sparse_rf(
        X, y, features="gaussian", gamma=0.1, alpha=1e-3, n_components=500, rng=0, **how
    ),
    "harfe": lambda X, y, **how: srf.harfe(
        X, y, n_components=1000, n_nonzero_coefs=60, alpha=1e-4, order=2, rng=0, **how
    ),
    "mfga": lambda X, y, **how: srf.mfga(X, y, n_nonzero_coefs=8, alpha=1e-3, rng=0, **how),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-4, rng=0, **how),
}
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def filled_with(model):
    """Return what missing cells of each number count as."""
    encoder = model.features.encoder
    names = encoder.names([f"x{j}" for j in range(model.n_features_in)])
    return encoder.fill[[name.startswith("x") and name[1:].isdigit() for name in names]]


# Missing cells


@each_fit
@pytest.mark.slow
def test_models_learn_from_missing_cells(fit):
    model = fit(HOLES, Y)
    assert r2(model, HOLES, Y) > 0.9
    with_centre = np.where(np.isnan(HOLES), 0.0, HOLES)
    assert (
        r2(fit(with_centre, Y), with_centre, Y) < r2(model, HOLES, Y) - 0.02 or fit is FITS["auto"]
    )


@pytest.mark.parametrize(
    "fit", [FITS[name] for name in ("auto", "gaussian", "harfe", "mfga")], ids=lambda fit: ""
)
def test_cells_missing_only_at_prediction_are_at_the_centre(fit):
    model, center = fit(50 + X, Y), np.array([50 + X.mean(axis=0)])
    encoder = model.features.encoder
    hole = center.copy()
    hole[0, 1] = np.nan
    plain = np.flatnonzero((encoder.column == 1) & (np.diff(encoder.first_knot) == 0))
    # of intervals, which see numbers as they are, the median; else the mean
    assert np.allclose(
        encoder.transform(hole)[0, plain], encoder.transform(center)[0, plain], atol=0.05
    )
    assert np.isfinite(model.predict(hole)).all()


@pytest.mark.slow
@pytest.mark.parametrize("home", ["chunks", "dask", "strict", "float32"])
def test_missing_in_every_home(home):
    Z = {
        "chunks": lambda: srf.Chunks(HOLES, block_rows=250),
        "dask": lambda: da.from_array(HOLES, chunks=(300, 3)),
        "strict": lambda: strict.asarray(HOLES),
        "float32": lambda: HOLES.astype(np.float32),
    }[home]()
    model, expected = FITS["gaussian"](Z, Y), FITS["gaussian"](HOLES, Y)
    answer = model.predict(Z)
    answer = np.asarray(answer.compute() if home == "dask" else answer)
    assert np.allclose(answer, expected.predict(HOLES), atol=2e-2 if home == "float32" else 1e-5)
    maps = srf.Fourier("gaussian", 0.1)
    # of rows outside memory that are seen as they are none may miss
    if home in ("chunks", "dask"):
        with pytest.raises(ValueError, match="must be finite"):
            srf.sparse_rf(Z, Y, features=maps, scale=None, alpha=0.01, n_components=50, rng=0)


def test_missing_cells_of_columns_that_are_not_scaled():
    model = srf.sparse_rf(
        100 + HOLES,
        Y,
        features=[srf.Linear(), srf.Fourier("gaussian", 0.1)],
        scale=None,
        alpha=1e-3,
        n_components=300,
        rng=0,
    )
    assert (
        model.features.encoder.is_raw
        and not model.features.encoder.is_identity
        and r2(model, 100 + HOLES, Y) > 0.8
    )
    fill = filled_with(model)
    assert np.allclose(fill, 100 + np.nanmean(HOLES, axis=0), atol=0.05)


@each_fit
@pytest.mark.parametrize("scale", ["robust", None])
@pytest.mark.parametrize("center", [0.0, 100.0])
@pytest.mark.slow
def test_columns_in_which_one_cell_is_missing(fit, scale, center, monkeypatch):
    """The rows off which encodings are read miss none: the cell is at the centre, also where
    columns are not scaled."""
    monkeypatch.setattr("sparserf.columns.encodings.MOST_ROWS", 100)
    rare = X - np.median(X, axis=0) + center
    rare[17, 1] = np.nan
    y = np.sin(X[:, 0]) + X[:, 1]
    # y is met exactly, so that the penalty that is chosen may be near zero
    with convergence_ignored():
        model = fit(
            rare,
            y,
            **({} if fit is FITS["drp"] else {"scale": scale}),
            sample_weight=np.arange(N) != 18,
        )
    encoder = model.features.encoder
    assert not any("missing" in name for name in encoder.names(list("abc")))
    assert not encoder.is_identity
    assert np.isfinite(model.predict(rare)).all() and r2(model, rare[18:], y[18:]) > 0.5


def test_a_column_without_any_number():
    Z = np.column_stack([X[:, 0], np.full(N, np.nan)])
    model = FITS["gaussian"](Z, Y)
    assert np.isfinite(model.predict(Z)).all() and np.isfinite(model.predict(X[:, :2])).all()


# Categories and names


@each_fit
def test_a_table(fit, tmp_path):
    model = fit(TABLE, OF_TABLE)
    assert r2(model, TABLE, OF_TABLE) > 0.6
    assert list(model.feature_names_in_) == list(TABLE.columns) and len(model.input_usage()) == 4
    there = model.predict(TABLE)
    assert np.array_equal(there, model.predict(TABLE[TABLE.columns[::-1]]))
    with pytest.raises(ValueError, match="'city'"):
        model.predict(TABLE.drop(columns="city"))
    assert np.array_equal(
        there, model.predict(TABLE.assign(more=1, dates=pd.Timestamp("2020-01-01")))
    )
    strange = TABLE.assign(city="Zz", shop="none")
    assert (
        np.isfinite(model.predict(strange)).all()
        and np.isfinite(model.predict(TABLE.assign(city=None))).all()
    )
    model.save(tmp_path / "model.npz")
    for other in (srf.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(there, other.predict(TABLE))
    assert np.allclose(model.features.transform(TABLE) @ model.coef + model.intercept, there)


@each_fit
@pytest.mark.slow
def test_levels_and_codes_are_the_same(fit):
    """A table of strings and an array of integers that are declared categorical give the same
    model."""
    codes = np.column_stack(
        [TABLE["age"], np.unique(CITY, return_inverse=True)[1], SHOP, TABLE["is_open"]]
    ).astype(float)
    one, two = fit(TABLE, OF_TABLE), fit(codes, OF_TABLE, categorical=[1, 2])
    assert np.array_equal(one.support, two.support) and np.allclose(
        one.predict(TABLE), two.predict(codes)
    )
    mask = fit(codes, OF_TABLE, categorical=[False, True, True, False])
    assert np.array_equal(mask.predict(codes), two.predict(codes)) and two.feature_names_in_ is None
    with pytest.raises(ValueError, match="categorical"):
        fit(codes, OF_TABLE, categorical=[7])


def test_names_of_terms():
    model = FITS["drp"](TABLE.drop(columns="shop"), OF_TABLE, scale=None)
    assert model.features.names() == ["age", "city=Aa", "city=Bb", "city=Cc", "is_open"]
    assert model.coef[2] > model.coef[1] + 0.8
    holes = pd.DataFrame(HOLES, columns=["a", "b", "c"])
    assert FITS["drp"](holes, Y).features.names() == ["a", "b", "b is missing", "c"]


def test_a_row_is_not_encoded_by_its_own_target():
    """Levels are encoded by means of the target over other folds: 150 levels of 6 rows each do not
    fit noise."""
    noise = np.random.default_rng(1).standard_normal(N)
    model = FITS["drp"](TABLE[["shop"]], noise)
    assert abs(r2(model, TABLE[["shop"]], noise)) < 0.15
    model = FITS["drp"](TABLE[["shop"]], WORTH[SHOP] + 0.1 * noise)
    other = pd.DataFrame({"shop": [f"s{k:03}" for k in range(150)]})
    seen = np.isin(np.arange(150), SHOP)
    assert np.corrcoef(model.predict(other)[seen], WORTH[seen])[0, 1] > 0.98


def test_means_of_levels_are_weighted():
    weight = np.random.default_rng(0).integers(1, 4, N)
    copies = np.repeat(np.arange(N), weight)
    target = WORTH[SHOP]
    one = srf.drp(TABLE[["shop"]], target, alpha=1e-4, sample_weight=weight, rng=0)
    two = srf.drp(TABLE[["shop"]].iloc[copies], target[copies], alpha=1e-4, rng=0)
    assert np.corrcoef(one.predict(TABLE[["shop"]]), two.predict(TABLE[["shop"]]))[0, 1] > 0.995


@each_fit
def test_rows_of_weight_zero_have_no_levels(fit):
    """Neither levels nor missing cells of rows of weight zero change a bit of the fit."""
    there = np.ones(N + 60, bool)
    there[5 * np.arange(60)] = False
    strange = {
        "age": [np.nan, 1e9, -1e9],
        "city": ["Ab", None, "Dd"],
        "shop": [None, "a", "t"],
        "is_open": [False, True, True],
    }
    places, table = (
        np.cumsum(there) - 1,
        pd.concat([TABLE, pd.DataFrame(strange).iloc[np.arange(60) % 3]]),
    )
    order = np.where(there, places, N + np.cumsum(~there) - 1)
    y = np.where(there, OF_TABLE[np.minimum(places, N - 1)], 7.0)
    one, two = fit(TABLE, OF_TABLE), fit(table.iloc[order], y, sample_weight=there.astype(float))
    assert (
        one.features.encoder.is_same(two.features.encoder)
        and one.coef.tobytes() == two.coef.tobytes()
    )
    assert np.array_equal(one.predict(table), two.predict(table))


@pytest.mark.slow
def test_classes_of_a_table():
    model = srf.sparse_rf(
        TABLE,
        np.where(OF_TABLE > 0.5, "high", "low"),
        loss="logistic",
        rng=0,
        n_components=300,
    )
    assert np.mean(model.predict(TABLE) == np.where(OF_TABLE > 0.5, "high", "low")) > 0.82


def test_features_of_a_table_are_a_dictionary():
    model = FITS["gaussian"](TABLE, OF_TABLE)
    again = srf.harfe(
        TABLE[TABLE.columns[::-1]],
        OF_TABLE,
        features=model.features,
        n_nonzero_coefs=20,
        alpha=1e-4,
        rng=0,
    )
    assert r2(again, TABLE, OF_TABLE) > 0.5
    with pytest.raises(ValueError, match="categorical must be None"):
        srf.harfe(
            TABLE,
            OF_TABLE,
            features=model.features,
            n_nonzero_coefs=20,
            alpha=1e-4,
            rng=0,
            categorical=["city"],
        )
    small = srf.prune(model, TABLE, max_terms=20)
    assert np.corrcoef(small.predict(TABLE), model.predict(TABLE))[0, 1] > 0.9
    sums = srf.Sums.of(TABLE, OF_TABLE, model.features)
    assert r2(sums.fit(srf.mfga, n_nonzero_coefs=20, alpha=1e-3), TABLE, OF_TABLE) > 0.5


@each_fit
@pytest.mark.parametrize("there", [X, HOLES], ids=["whole", "holes"])
def test_a_frame_of_numbers_is_an_array(fit, there):
    """Rows to predict may be anywhere, and their columns may have names or not."""
    frame = pd.DataFrame(there, columns=["a", "b", "c"])
    model, plain = fit(frame, Y), fit(there, Y)
    expected = plain.predict(there)
    assert np.array_equal(model.predict(frame), expected) and np.array_equal(
        model.predict(there), expected
    )
    assert np.array_equal(model.predict(frame[["c", "a", "b"]]), expected)
    others = [
        srf.Chunks(there, block_rows=250),
        da.from_array(there, chunks=(300, 3)),
        strict.asarray(there),
        there.tolist(),
    ]
    others += [sp.csr_array(there)] * (there is X)
    for other in others:
        assert np.allclose(np.asarray(model.predict(other)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["harfe", "drp"])
def test_plots_of_a_table(name):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    model = FITS[name](TABLE, OF_TABLE)
    assert srf.plot.effects(model, TABLE).axes[0].lines
    assert srf.plot.input_usage(model).get_xticklabels()[1].get_text() == "city"
    plt.close("all")


@pytest.mark.slow
def test_plots_of_a_category_without_levels():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    table = TABLE.assign(city=None)
    for model in (srf.drp(table, OF_TABLE, alpha=1e-3, rng=0), FITS["harfe"](table, OF_TABLE)):
        assert srf.plot.effects(model, table).axes and srf.plot.input_usage(model) is not None
    plt.close("all")


@pytest.mark.nightly
def test_skewed_columns():
    """Where inputs have long tails, members that do not mind them reduce the error of cosines."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((1500, 3))
    y, skewed = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2], np.sign(Z) * np.expm1(np.abs(Z)) ** 2
    how = {"n_components": 1500, "rng": 0}
    model = srf.sparse_rf(skewed[:1000], y[:1000], **how)
    plain = srf.sparse_rf(skewed[:1000], y[:1000], **how, alpha=0.003, scale="robust")
    assert 1 - r2(model, skewed[1000:], y[1000:]) < 0.2 * (1 - r2(plain, skewed[1000:], y[1000:]))


@pytest.mark.slow
def test_a_few_large_counts_do_not_ruin_a_fit(tmp_path):
    """Whether a word occurs decides the class, and how often it occurs has long tails."""
    rng = np.random.default_rng(3)
    there = rng.random((1200, 40)) < 0.15
    counts = sp.csr_array(there * np.exp(2.5 * rng.standard_exponential((1200, 40))).round())
    f = there @ rng.standard_normal(40)
    y = f + 0.3 * rng.standard_normal(1200) > np.median(f)
    model = srf.sparse_rf(counts[:800], y[:800], loss="logistic", rng=0, n_components=500)
    assert np.mean(model.predict(counts[800:]) == y[800:]) > 0.87
    model.save(tmp_path / "model.npz")
    assert np.array_equal(srf.load(tmp_path / "model.npz").predict(counts), model.predict(counts))
    chunks = srf.Chunks(lambda start, stop: counts[start:stop], counts.shape, block_rows=500)
    assert np.array_equal(model.predict(chunks), model.predict(counts))
    assert np.array_equal(model.predict(counts.toarray()), model.predict(counts))


# Cells without information: of a level that no training row has, or missing where no training row
# misses one

N_FITTED = 500


def decided_by_a_level(n_levels, seed, is_skewed=False):
    """Draw (frame, f): f is mostly a function of the level of one column, on which the effect of
    another depends too."""
    rng = np.random.default_rng(seed)
    effect, shares = (
        rng.standard_normal(n_levels),
        1 / np.arange(1, n_levels + 1) ** float(is_skewed),
    )
    level = rng.choice(n_levels, N_FITTED + 300, p=shares / shares.sum())
    a, b, kind = *rng.standard_normal((2, len(level))), [f"level {k}" for k in level]
    return pd.DataFrame({"a": a, "kind": kind, "b": b}), 2 * effect[level] + 0.3 * a + 0.5 * effect[
        level
    ] * b


@pytest.mark.parametrize(
    "fit", [pytest.param(FITS["auto"], marks=pytest.mark.slow), *list(FITS.values())[1:]], ids=FITS
)
def test_a_new_level_is_the_most_frequent_and_so_is_a_missing_cell(fit):
    """Also of two levels, of which one has no encoding."""
    for n_levels in (2, 10):
        X, y = decided_by_a_level(n_levels, 2, is_skewed=True)
        model, new = fit(X[:N_FITTED], y[:N_FITTED]), X[N_FITTED:]
        as_most = model.predict(new.assign(kind="level 0"))
        assert np.std(as_most) < 0.9 * np.std(model.predict(new))  # the column decides
        for cell in ("another", None):
            np.testing.assert_allclose(model.predict(new.assign(kind=cell)), as_most, atol=1e-9)


@pytest.mark.parametrize("name", ["harfe", "mfga"])
def test_a_new_level_beside_means_of_y_has_that_of_all_rows(name):
    """Of so many levels that not each has an encoding, it is none of those that have."""
    X, f = decided_by_a_level(40, 2)
    y = f + 0.3 * np.random.default_rng(0).standard_normal(len(f))
    model, new, y_new = FITS[name](X[:N_FITTED], y[:N_FITTED]), X[N_FITTED:], y[N_FITTED:]
    constant = np.mean((y_new - y[:N_FITTED].mean()) ** 2)
    assert np.mean((model.predict(new) - y_new) ** 2) < 0.65 * constant
    for cell in ("another", None):
        of_cell = model.predict(new.assign(kind=cell))
        assert np.mean((of_cell - y_new) ** 2) < 1.1 * constant


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "multinomial", "poisson"])
def test_new_levels_by_other_losses(loss):
    X, f = decided_by_a_level(12, 1, is_skewed=True)
    label = np.digitize(f, np.quantile(f, [0.5, 0.8][: 1 if loss == "logistic" else 2]))
    model = FITS["auto"](X[:N_FITTED], label[:N_FITTED], loss=loss)
    as_most = model.decision_function(X.assign(kind="level 0"))
    for cell in ("another", None):
        of_cell = model.decision_function(X.assign(kind=cell))
        np.testing.assert_allclose(of_cell, as_most, atol=1e-9)


@pytest.mark.slow
def test_categories_missing_in_training_are_as_the_model_has_learnt():
    """Missing numbers are at the centre of their column, but for rules."""
    X, f = decided_by_a_level(5, 0)
    X.loc[::7, "kind"] = None
    y = np.where(X["kind"].isna(), 9.0, f)
    model = srf.sparse_rf(X, y, features="gaussian", alpha=1e-3, n_components=300, rng=0)
    assert np.sqrt(np.mean((model.predict(X.assign(kind=None)) - 9) ** 2)) < 0.5 * np.std(y)
    assert not filled_with(model).any()


@pytest.mark.slow
def test_new_levels_are_in_the_file_and_in_a_fit_of_the_same_features(tmp_path):
    X, y = decided_by_a_level(10, 2)
    model = FITS["auto"](X, y)
    model.save(tmp_path / "model")
    new = X.assign(kind=["another", None] * (len(X) // 2))
    assert np.array_equal(srf.load(tmp_path / "model.npz").predict(new), model.predict(new))
    again = srf.mfga(X, y, features=model.features, n_nonzero_coefs=5, alpha=1e-3, rng=0)
    assert np.isfinite(again.predict(new)).all() and np.std(again.predict(new)) < np.std(y)


@pytest.mark.slow
def test_cells_without_information_are_the_same_in_code():
    X, y = decided_by_a_level(10, 2)
    model, new = (
        FITS["auto"](X, y),
        X.assign(kind=(["another", None, "level 1"] * len(X))[: len(X)]),
    )
    space = {}
    exec(model.formula("python"), space)
    assert np.allclose(space["predict"](new), model.predict(new), atol=1e-12)
    assert " of other words " in model.formula() and " where missing " in model.formula()
    database = sqlite3.connect(":memory:")
    new.to_sql("data", database, index=False)
    assert np.allclose(
        np.ravel(database.execute(model.formula("sql")).fetchall()), model.predict(new), atol=1e-12
    )
    database.close()
