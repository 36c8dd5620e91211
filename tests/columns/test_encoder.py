"""ColumnEncoder, which scales columns for features: neither shifts, nor sizes, nor single huge
cells of columns change a fit."""

import pickle
import warnings
from dataclasses import replace

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf
from sparserf._core.moments import KINDS, Views
from sparserf.columns.encoder import ColumnEncoder
from sparserf.columns.encodings import robust_units, weighted_quantile
from sparserf.columns.kinds import NUMBER, Encoding

from ..conftest import SIZES, each_dtype, phi_oracle, r2
from .encoders import encoder_of

N, D = 1500, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.05 * RNG.standard_normal(N)

FITS = {
    "auto": lambda X, y=Y, **how: srf.sparse_rf(X, y, rng=0, n_components=300, effort=0.2, **how),
    "gaussian": lambda X, y=Y, **how: srf.sparse_rf(
        X, y, features="gaussian", gamma=0.1, alpha=0.003, n_components=2000, rng=0, **how
    ),
    "perceptron": lambda X, y=Y, **how: srf.sparse_rf(
        X, y, features="perceptron", alpha=0.003, n_components=2000, rng=0, **how
    ),
    "harfe": lambda X, y=Y, **how: srf.harfe(
        X, y, n_components=1000, n_nonzero_coefs=60, alpha=1e-4, order=2, rng=0, **how
    ),
    "mfga": lambda X, y=Y, **how: srf.mfga(
        X, y, n_nonzero_coefs=15, gamma="knn", alpha=1e-3, rng=0, **how
    ),
}
each_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


PERIODS = {"year": 365.2425, "week": 7, "day": 1}


def bits(model, X):
    """Return the bytes of a model and of its predictions."""
    return model.support.tobytes(), model.coef.tobytes(), model.predict(X).tobytes()


def view_oracle(X, kind, column, level, arithmetic, knots):
    """Compute one column of the output of an encoder, of any kind."""
    power, center, factor, reach, fill = arithmetic
    x = X[:, column].astype(float)
    if kind == "missing":
        r = np.isnan(x).astype(float)
    elif kind == "level":
        r = ((x >= level) & (x < level + 1)).astype(float)
    elif kind in PERIODS:
        r = np.cos(2 * np.pi * (x - level) / PERIODS[kind])
    else:
        r = np.interp(x, *knots) if knots.size else x
    u = (r * power - center) * factor
    u = np.where(
        np.abs(u) > reach, np.sign(u) * reach * (2 - reach / np.maximum(np.abs(u), reach)), u
    )
    return np.where(np.isnan(x) & (kind in ("number", *PERIODS)), fill, u)


@pytest.mark.parametrize("n", [*SIZES, 1000])
@each_dtype
def test_the_kernel_of_stages(n, dtype):
    rng = np.random.default_rng(n)
    wide = rng.standard_normal((2 * n, 14)).astype(dtype)
    wide[rng.random(wide.shape) < 0.1] = np.nan
    wide[:, ::3] = np.floor(wide[:, ::3])
    wide.flags.writeable = False
    kinds = [*KINDS, *KINDS, "number"]
    kind, m = np.array([KINDS.index(each) for each in kinds], np.int32), len(kinds)
    column, level = rng.integers(0, 7, m).astype(np.int32), rng.integers(-1, 2, m).astype(float)
    arithmetic = np.vstack([rng.random((3, m)), 0.5 + rng.random((1, m)), rng.random((1, m))])
    sizes = [0] * m
    sizes[len(KINDS)], sizes[-1] = 5, 64
    first = np.cumsum([0, *sizes]).astype(np.int32)
    knots = np.stack(
        [
            np.concatenate([np.sort(rng.standard_normal(size)) for size in sizes]),
            rng.standard_normal(first[-1]),
        ]
    )
    for X in (np.ascontiguousarray(wide[:n, :7]), np.asfortranarray(wide[:n, :7]), wide[::2, ::2]):
        out = np.empty((n, m), dtype)
        Views(column, kind, first, level, arithmetic, knots).show(X, out)
        for v in range(m):
            expected = view_oracle(
                X,
                kinds[v],
                column[v],
                level[v],
                arithmetic[:, v],
                knots[:, first[v] : first[v + 1]],
            )
            assert np.allclose(
                out[:, v], expected, *((1e-5, 1e-6) if dtype == np.float32 else (1e-12, 1e-13))
            )


def numbers_encoder(unit, reach):
    """Return an encoder of numbers with these units, centres of 0 and one bound."""
    n = len(unit)
    none = np.zeros(n)
    return ColumnEncoder(
        n,
        np.arange(n),
        np.zeros(n, np.int64),
        none,
        none.copy(),
        np.array(unit),
        np.full(n, reach),
        np.ones(n),
        none,
        np.zeros(n + 1, np.int64),
        np.zeros(0),
        np.zeros(0),
    )


@pytest.mark.parametrize("namespace", [np, strict])
def test_huge_numbers_stay_finite(namespace):
    encoder = numbers_encoder([1e-200, 1e-200, 1.0, 0.0], 3.0)
    shown = np.asarray(encoder.transform(namespace.asarray([[1.7e308, -1.7e308, 2.0, 1.7e308]])))
    assert np.allclose(shown, [[6.0, -6.0, 2.0, 0.0]])


@pytest.mark.parametrize("n", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_weighted_quantile_counts_copies(n, share):
    rng = np.random.default_rng(n)
    x, copies = rng.integers(0, 5, (n, 3)).astype(float), rng.integers(1, 4, n)
    expected = np.sort(np.repeat(x, copies, axis=0), axis=0)[int(np.ceil(copies.sum() * share)) - 1]
    assert np.array_equal(weighted_quantile(x, copies.astype(float), share), expected)
    alike, nearly = np.ones(n), 1 + 1e-14 * np.arange(n)
    for first in (0, (x == 0).sum(axis=0)):
        quantiles = [weighted_quantile(x, weight, share, first) for weight in (alike, nearly)]
        assert np.array_equal(*quantiles)
    positive = [np.sort(column[column > 0]) for column in x.T]
    kept = [
        column[int(np.ceil(len(column) * share)) - 1] if len(column) else 0.0 for column in positive
    ]
    assert np.array_equal(quantiles[0], kept)


def test_units_of_a_clean_column_are_its_mean_and_deviation():
    center, unit, reach, half_range = robust_units(X, np.ones(N))
    assert np.allclose(center, X.mean(axis=0)) and np.allclose(unit, X.std(axis=0))
    assert np.allclose(half_range * unit, np.ptp(X, axis=0) / 2)
    assert (reach > np.abs(X).max(axis=0)).all()


def test_weights_are_copies():
    copies = RNG.integers(1, 4, N)
    assert np.allclose(
        robust_units(X, copies.astype(float)),
        robust_units(np.repeat(X, copies, axis=0), np.ones(copies.sum())),
    )


@pytest.mark.parametrize("wild", [9999.0, -1e6, 1e300])
def test_a_huge_cell_moves_no_unit(wild):
    Z = X.copy()
    Z[7, 0] = wild
    one, two = robust_units(X, np.ones(N)), robust_units(Z, np.ones(N))
    assert np.allclose(one[:2], two[:2], atol=0.03) and np.allclose(
        two[2:, 0], [one[2, 0], (one[2, 0] + 3) / 2], rtol=0.3
    )


@pytest.mark.parametrize("share", [0.5, 0.1, 0.002])
def test_zeros_and_ones_have_their_deviation(share):
    x = (RNG.random((5000, 1)) < share).astype(float)
    assert np.allclose(robust_units(x, np.ones(5000))[1], x.std())


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -7.0, 1e-310, 1e300])
@pytest.mark.parametrize("n", [1, 2, 50])
def test_constant_columns_are_zero(value, n):
    encoder = encoder_of(np.full((n, 2), value))
    assert np.array_equal(encoder.unit, [0, 0]) and np.array_equal(
        encoder.transform(np.full((3, 2), 17.0)), np.zeros((3, 2))
    )


@pytest.mark.parametrize("power", [-1040, -900, -60, 1, 100, 1000])
def test_powers_of_two_change_no_bit(power):
    one, two = (
        encoder_of(X),
        encoder_of(
            np.ldexp(X, power) if power > -1000 else np.ldexp(np.ldexp(X, -1000), power + 1000)
        ),
    )
    scaled = np.ldexp(X, power)
    if power > -1000:  # below, numbers lose digits
        assert np.array_equal(one.transform(X), two.transform(scaled))
    else:
        assert np.allclose(one.transform(X), two.transform(scaled), atol=1e-3)


@each_fit
@pytest.mark.parametrize("power", [-30, 40])
@pytest.mark.slow
def test_sizes_of_columns_change_no_bit(fit, power):
    scaled = X * 2.0 ** np.array([power, 0, -power, 3])
    assert bits(fit(X), X) == bits(fit(scaled), scaled)


@each_fit
@pytest.mark.parametrize("shift", [1e3, 1e7, 3e7])
@pytest.mark.slow
def test_shifts_keep_the_fit(fit, shift):
    """Shifts are as large as float64 permits: at 3e7 its numbers are 4e-9 apart."""
    shifted = X + shift * np.array([1, -1, 0.5, 1])
    assert r2(fit(shifted), shifted, Y) > r2(fit(X), X, Y) - 0.01


@each_fit
@pytest.mark.parametrize("wild", [9999.0, -1e8])
@pytest.mark.slow
def test_a_huge_cell_keeps_the_fit(fit, wild):
    Z = X.copy()
    Z[7, 0] = wild
    model, there = fit(Z), np.arange(N) != 7
    assert np.isfinite(model.predict(Z)).all()
    error = np.mean((model.predict(X[there]) - Y[there]) ** 2) / Y.var()
    # the radius of perceptrons is that of the farthest row
    slack = 0.15 if fit is FITS["perceptron"] else 0.01
    assert error < 1 - r2(fit(X), X, Y) + slack


@each_fit
@pytest.mark.slow
def test_rows_of_weight_zero_move_nothing(fit):
    weight = np.ones(N)
    weight[7] = 0
    Z = X.copy()
    Z[7] = 1000.0
    assert bits(fit(X, sample_weight=weight), X) == bits(fit(Z, sample_weight=weight), X)


@each_fit
@pytest.mark.slow
def test_scale_none_leaves_columns_as_they_are(fit):
    """Whatever the features are; those of a FeatureSet, already drawn, are never scaled."""
    encoder = fit(X, scale=None).features.encoder  # of a fit without alpha that knows the ends
    assert encoder is None or ((encoder.unit == 1).all() and not encoder.center.any())
    maps = srf.Linear(), srf.Fourier(gamma=0.1)
    drawn = maps[0].draw(None, D).concat(maps[1].draw(50, D, rng=0))
    how = {"n_components": 50, "n_nonzero_coefs": 5, "alpha": 1e-4, "rng": 0}
    for features, scale in ((maps, None), (drawn, None), (drawn, "robust")):
        model = srf.harfe(X, Y, features=features, scale=scale, **how)
        assert model.features.encoder is None
    assert srf.harfe(X, Y, features=maps, **how).features.encoder is not None
    for scale in ("standard", "auto"):
        with pytest.raises(ValueError, match=f"scale must be 'robust', got '{scale}'"):
            fit(X, scale=scale)


@each_fit
@pytest.mark.slow
def test_a_stage_is_applied_once_or_slice_by_slice(fit, monkeypatch):
    """Terms are the same, or, where draws follow rounding, predictions. Rows in other homes are in
    rows/test_same_fit_anywhere.py."""
    expected = fit(X)
    monkeypatch.setattr("sparserf.rows.rows.DURING_A_FIT", 0)
    model = fit(X)
    if fit is FITS["auto"]:
        assert np.corrcoef(model.predict(X), expected.predict(X))[0, 1] > 0.999
        return
    assert np.array_equal(model.support, expected.support)
    assert np.allclose(
        model.coef, expected.coef, rtol=1e-6, atol=1e-8 * np.abs(expected.coef).max()
    )
    assert np.allclose(model.predict(X), expected.predict(X), atol=1e-6)


@each_fit
@pytest.mark.slow
def test_features_see_columns_as_they_are(fit):
    """The features of a model take X as the user has it, in transform, as a dictionary, in prune
    and in Sums."""
    shifted = 100 + 7 * X
    model = fit(shifted)
    phi = model.features.transform(shifted)
    assert np.allclose(phi, phi_oracle(model.features, shifted))
    assert np.allclose(phi @ model.coef + model.intercept, model.predict(shifted))
    again = srf.harfe(
        shifted,
        Y,
        features=model.features,
        n_nonzero_coefs=min(5, len(model.features)),
        alpha=1e-4,
        rng=0,
    )
    assert np.allclose(
        again.features.transform(shifted) @ again.coef + again.intercept, again.predict(shifted)
    )
    small = srf.prune(model, shifted, max_terms=5)
    assert np.corrcoef(small.predict(shifted), model.predict(shifted))[0, 1] > 0.5
    sums = srf.Sums.of(shifted, Y, model.features)
    summed = sums.fit(srf.mfga, n_nonzero_coefs=3, alpha=1e-3)
    assert np.allclose(
        summed.features.transform(shifted) @ summed.coef + summed.intercept, summed.predict(shifted)
    )


@each_fit
@pytest.mark.slow
def test_models_with_a_stage_are_saved_and_pickled(fit, tmp_path):
    model = fit(100 + 7 * X)
    model.save(tmp_path / "model.npz")
    for other in (srf.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(X), model.predict(X))
        assert len(other.features.concat(model.features)) == 2 * len(model.features)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "broken",
    [
        {"stage_unit": None},
        {"stage_unit": [1.0]},
        {"stage_unit": [-1.0] * D},
        {"stage_center": [np.nan] * D},
        {"stage_half_range": ["a"] * D},
        {"stage_kind": [1] * D},  # 1 and 4 were kinds that are gone
        {"stage_kind": [4] * D},
        {"stage_kind": [8] * D},
    ],
)
def test_broken_files_are_refused(broken, tmp_path):
    model = FITS["mfga"](X)
    model.save(tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz"))
    for name, value in broken.items():
        arrays.pop(name)
        if value is not None:
            arrays[name] = np.array(value)
    np.savez(tmp_path / "broken.npz", **arrays)
    with pytest.raises(ValueError, match="is not a whole model"):
        srf.load(tmp_path / "broken.npz")


def test_sets_in_other_units_do_not_mix():
    one, two = FITS["gaussian"](X).features, FITS["gaussian"](2 * X).features
    with pytest.raises(ValueError, match="both sets must see the columns of X in the same units"):
        one.concat(two)


def test_csr_has_no_encoder():
    model = FITS["gaussian"](sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)))
    assert model.features.encoder is None


@each_dtype
def test_entries_of_csr_rows_are_encoded_as_in_dense_rows(dtype):
    """Columns may have several encodings, constant beyond ends, or units of 0, in any order."""
    rng = np.random.default_rng(0)
    Z = (rng.standard_normal((90, 4)) * (rng.random((90, 4)) < 0.4)).astype(dtype)
    column, unit = [2, 0, 3, 0, 1], np.array([2.0, 1.0, 0.5, 1e-3, 0.0])
    encodings = [Encoding(j, NUMBER) for j in column]
    encoder = replace(ColumnEncoder.from_encodings(encodings, 4, may_miss=False), unit=unit)
    ends = np.tile([-np.inf, np.inf], (5, 1))
    ends[1:3] = [-0.5, 0.7]
    encoder = encoder.held(ends)
    shown, expected = encoder.transform(sp.csr_array(Z)), encoder.transform(Z)
    assert encoder.keeps_zeros and sp.issparse(shown) and shown.has_canonical_format
    assert shown.dtype == dtype and np.allclose(shown.toarray(), expected, rtol=1e-6)
    assert np.abs(expected[:, 1]).max() < 0.8 < np.abs(Z[:, 0]).max()


def test_a_sample_of_many_rows_gives_their_units():
    rng = np.random.default_rng(0)
    Z = 5 + 3 * rng.standard_normal((60_000, 2))
    weight = np.where(Z[:, 0] > 5, 2.0, 1.0)
    for w in (np.ones(60_000), weight):
        center, unit, *_ = robust_units(Z, w)
        encoder = encoder_of(Z, w)
        assert np.allclose(encoder.center, center, atol=0.1) and np.allclose(
            encoder.unit, unit, rtol=0.03
        )


def test_columns_that_are_constant_in_a_sample():
    """One row in 40,000 differs: where the sample lacks it, all rows are asked."""
    Z = np.zeros((40_000, 3))
    Z[7, 1], Z[:, 2] = 5.0, np.arange(40_000) % 7
    encoders = [encoder_of(Z, seed=seed) for seed in range(6)]
    units = np.array([encoder.unit for encoder in encoders])
    assert (units[:, 0] == 0).all() and (units[:, 1] > 0).all()
    not_seen = np.isclose(units[:, 1], Z[:, 1].std(), rtol=1e-12)
    assert 0 < not_seen.sum() < 6
    for encoder in encoders:
        assert (encoder.reach[1:] > encoder.half_range[1:]).all() and np.ptp(
            encoder.transform(Z)[:, 1]
        ) > 100


def test_staged_rows_answer_as_rows_in_those_units(monkeypatch):
    """All answers of rows, where the encoder is applied block by block."""
    encoder, Z = encoder_of(50 + 3 * X), 50 + 3 * X
    inputs = srf.Linear().draw(None, D)
    plain = inputs.rows_of(encoder.transform(Z))
    monkeypatch.setattr("sparserf.rows.rows.FEW", 0)
    shown, weight = inputs.encoded(encoder).rows_of(Z), np.ones(N)
    features = srf.Fourier(gamma=0.2).draw(40, D, rng=0)
    monomials = srf.Taylor(2, 0.1).draw(None, D)
    for some in (features, monomials, inputs, features.concat(inputs)):
        assert np.allclose(shown.correlate(some, Y), plain.correlate(some, Y))
        assert np.allclose(
            shown.correlate_squares(some, weight), plain.correlate_squares(some, weight)
        )
        assert np.allclose(shown.gram(some, some, weight), plain.gram(some, some, weight))
        assert np.allclose(
            shown.apply(some, np.ones(len(some))), plain.apply(some, np.ones(len(some)))
        )
        assert np.allclose(shown.transform(some), plain.transform(some))
    assert np.allclose(shown.correlate_pair(features, Y), plain.correlate_pair(features, Y))
    assert np.allclose(shown.spreads(weight), plain.spreads(weight)) and np.allclose(
        shown.mean(weight), plain.mean(weight)
    )
    assert shown.largest_square_distance(np.zeros(D)) == pytest.approx(
        plain.largest_square_distance(np.zeros(D))
    )
    assert np.array_equal(shown.array(), plain.array()) and np.array_equal(
        shown.take(np.arange(9)).array(), plain.array()[:9]
    )
    assert np.allclose(shown.kernel(features, np.ones(40)), plain.kernel(features, np.ones(40)))
    with shown:
        assert np.allclose(shown.correlate(monomials, Y), plain.correlate(monomials, Y))
        assert shown.n_passes > 0


@pytest.mark.slow
def test_float32_is_fitted_and_predicted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", srf.ConvergenceWarning)
        model = FITS["auto"]((X + 100).astype(np.float32))
    assert model.predict((X + 100).astype(np.float32)).dtype == np.float32
    assert r2(model, (X + 100).astype(np.float32), Y) > 0.97
