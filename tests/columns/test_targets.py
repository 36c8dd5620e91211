"""Targets: labels of any kind, one output or several, rows paired by index, and errors that say
what to do."""

from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sparserf as srf
from sparserf.algorithms.default.outputs import deviation, in_their_units
from sparserf.losses import Squared

from ..conftest import as_within_a_call

RNG = np.random.default_rng(0)
N = 200
X = RNG.uniform(-2, 2, (N, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * RNG.standard_normal(N)
SIGNS = np.where(Y > 0, "up", "down")
KERNEL = {"features": "gaussian", "gamma": 0.5, "n_components": 200, "rng": 0}
FITS = {
    "sparse_rf": lambda y, **k: srf.sparse_rf(X, y, alpha=0.01, **KERNEL, **k),
    "sparse_rf chosen": lambda y, **k: srf.sparse_rf(X, y, effort=0.1, n_components=60, rng=0, **k),
    "harfe": lambda y, **k: srf.harfe(
        X, y, n_components=200, n_nonzero_coefs=10, alpha=1e-4, rng=0, **k
    ),
    "mfga": lambda y, **k: srf.mfga(X, y, n_nonzero_coefs=5, alpha=1e-3, rng=0, **k),
    "drp": lambda y, **k: srf.drp(X, y, alpha=0.01, rng=0, **k),
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] * (name == "sparse_rf chosen")) for name in FITS
    ]
)
def fit(request):
    """Fit by each of the methods."""
    return FITS[request.param]


def same(model, other):
    """Return whether two models have the same bits."""
    return model.coef.tobytes() == other.coef.tobytes() and np.array_equal(
        model.support, other.support
    )


# Labels


LABELS_OF_LIBRARIES = {
    "list": SIGNS.tolist(),
    "object": SIGNS.astype(object),
    "variable": SIGNS.astype(np.dtypes.StringDType()),
    "pandas": pd.Series(SIGNS),
    "pandas category": pd.Series(SIGNS, dtype="category"),
    "Categorical": pd.Categorical(SIGNS),
    "polars": pl.Series(SIGNS),
    "polars Categorical": pl.Series(SIGNS).cast(pl.Categorical),
    "polars Enum": pl.Series(SIGNS.tolist(), dtype=pl.Enum(["up", "down"])),
    "arrow": pa.chunked_array([SIGNS.tolist()]),
    "arrow array": pa.array(SIGNS.tolist()),
    "arrow dictionary": pa.array(SIGNS.tolist()).dictionary_encode(),
}


@pytest.mark.slow
def test_labels_of_any_library():
    plain = FITS["mfga"](SIGNS, loss="logistic")
    for name, y in LABELS_OF_LIBRARIES.items():
        model = FITS["mfga"](y, loss="logistic")
        assert same(model, plain), name
        assert model.classes.tolist() == ["down", "up"]
        with pytest.raises(TypeError, match=r"labels: loss='logistic'"):
            FITS["mfga"](y)


@pytest.mark.parametrize(
    "y", [Y > 0, (Y > 0).astype(int), (Y > 0).astype(float), (Y > 0).astype(object)]
)
def test_bools_and_numbers_are_labels_for_the_loss_of_a_classifier(fit, y):
    model = fit(y, loss="logistic")
    assert model.classes.tolist() == [0, 1]
    assert same(model, fit(SIGNS, loss="logistic"))
    assert model.predict(X).dtype == model.classes.dtype


def test_categories_of_integers_are_labels():
    y = pd.Series(1 + (Y > 0)).astype("category")
    assert FITS["mfga"](y, loss="logistic").classes.tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"labels: loss='logistic'"):
        FITS["mfga"](y)


@pytest.mark.every_case
@pytest.mark.parametrize("y", [SIGNS, SIGNS.tolist(), [1.5, "a"] * (N // 2), SIGNS[:, None]])
@pytest.mark.filterwarnings("ignore:y has shape")
def test_strings_are_no_target_of_a_regression(fit, y):
    with pytest.raises(
        TypeError, match=r"y must hold .* of a regression, got '.*'\. For labels: loss='logistic'"
    ):
        fit(y)


ABSENT = {
    "None": None,
    "NaN": np.nan,
    "float32": np.float32("nan"),
    "Decimal": Decimal("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
}
WORDS, COUNTS = SIGNS.tolist(), (Y > 0).astype(int).tolist()
HOLDERS = {
    "list": list,
    "tuple": tuple,
    "object": lambda y: np.array(y, object),
    "pandas": pd.Series,
    "column": lambda y: pd.DataFrame({"y": y}),
}
OF_LIBRARIES = {
    "pandas category": pd.Series([*WORDS[:3], None, *WORDS[4:]], dtype="category"),
    "pandas string": pd.Series([*WORDS[:3], None, *WORDS[4:]], dtype="string"),
    "pandas Int64": pd.Series([*COUNTS[:3], None, *COUNTS[4:]], dtype="Int64"),
    "pandas boolean": pd.Series(
        [*map(bool, COUNTS[:3]), None, *map(bool, COUNTS[4:])], dtype="boolean"
    ),
    "variable": np.array([*WORDS[:3], np.nan, *WORDS[4:]], np.dtypes.StringDType(na_object=np.nan)),
    "polars": pl.Series([*WORDS[:3], None, *WORDS[4:]]),
    "polars Categorical": pl.Series([*WORDS[:3], None, *WORDS[4:]]).cast(pl.Categorical),
    "polars Int64": pl.Series([*COUNTS[:3], None, *COUNTS[4:]]),
    "arrow": pa.array([*WORDS[:3], None, *WORDS[4:]]),
    "arrow chunks": pa.chunked_array([[*WORDS[:3], None, *WORDS[4:]]]),
    "arrow dictionary": pa.array([*WORDS[:3], None, *WORDS[4:]]).dictionary_encode(),
    "masked": np.ma.masked_array(SIGNS, np.arange(N) == 3),
}
LOGISTIC = partial(srf.drp, loss="logistic")
CLASSIFY = partial(LOGISTIC, alpha=0.01)
READERS = {
    "fit": lambda y: CLASSIFY(X, y),
    "class_weight": lambda y: CLASSIFY(X, y, class_weight="balanced"),
    "cross_validate": lambda y: srf.cross_validate(
        LOGISTIC, X, y, {"alpha": [0.1, 0.01]}, cv=3, rng=0
    ),
    "calibrated": lambda y: srf.calibrated(CLASSIFY, X, y, rng=0),
    "estimator": lambda y: pytest.importorskip("sparserf.sklearn").DRPClassifier().fit(X, y),
}


@pytest.mark.every_case
@pytest.mark.filterwarnings("ignore:y has shape", "ignore:A column-vector y")
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("absent", ABSENT)
def test_a_missing_label_is_an_error_for_all_that_read_labels(read, absent):
    """NumPy makes the string "nan" of NaN in a list of strings, and other errors come from
    comparing None with a string."""
    for y in (WORDS, COUNTS):
        for hold in HOLDERS.values():
            with pytest.raises(
                ValueError, match=r"y must (not have missing labels|be finite), got"
            ):
                READERS[read](hold([*y[:3], ABSENT[absent], *y[4:]]))


@pytest.mark.every_case
@pytest.mark.parametrize("read", READERS)
def test_a_missing_label_of_any_library_is_an_error(read):
    for name, y in OF_LIBRARIES.items():
        with pytest.raises(ValueError, match=r"y must (not have m|be finite)") as error:
            READERS[read](y)
        assert "3" in str(error.value) or "masked" in name


@pytest.mark.every_case
@pytest.mark.parametrize("read", READERS)
def test_labels_of_two_kinds_are_an_error_in_lists_too(read):
    for y in ([*WORDS[:-1], 1], (*WORDS[:-1], 1), [*WORDS[:-1], True]):
        with pytest.raises(TypeError, match="y must hold labels of one kind"):
            READERS[read](y)


DECIMALS = [Decimal(repr(round(value, 6))) for value in Y.tolist()]
HELD = {
    "list": DECIMALS,
    "pandas": pd.Series(DECIMALS),
    "arrow": pa.array(DECIMALS, pa.decimal128(20, 6)),
    "polars": pl.Series(DECIMALS),
    "fractions": list(map(Fraction, DECIMALS)),
}


@pytest.mark.parametrize("held", HELD)
def test_decimals_are_numbers_wherever_rows_have_one(fit, held):
    expected = fit(np.array(DECIMALS, float))
    assert same(fit(HELD[held]), expected)
    offset = srf.drp(X, Y, alpha=0.01, offset=HELD[held])
    assert same(offset, srf.drp(X, Y, alpha=0.01, offset=np.array(DECIMALS, float)))


def test_weights_labels_and_groups_may_be_decimals():
    weight = [abs(value) for value in DECIMALS]
    assert same(
        CLASSIFY(X, WORDS, sample_weight=weight),
        CLASSIFY(X, WORDS, sample_weight=np.array(weight, float)),
    )
    labels = [Decimal(one) / 2 for one in COUNTS]
    assert CLASSIFY(X, labels).classes.tolist() == [0.0, 0.5]
    chosen = [
        srf.cross_validate(srf.drp, X, Y, {"alpha": [0.1, 0.01]}, cv=3, rng=0, groups=groups).model
        for groups in ([Decimal(k) for k in range(N // 2)] * 2, np.arange(N // 2).tolist() * 2)
    ]
    assert same(*chosen)


@pytest.mark.parametrize("missing", [None, np.nan, "NA"])
def test_missing_labels(missing):
    y = SIGNS.astype(object)
    y[3] = pd.NA if missing == "NA" else missing
    with pytest.raises(
        ValueError, match=r"y must not have missing labels, got .* at \[3\]: leave such rows out"
    ):
        FITS["mfga"](y, loss="logistic")


def test_targets_that_are_no_labels():
    for y in (Y, np.arange(N)):
        with pytest.raises(ValueError, match="is it a target for loss='squared'"):
            FITS["mfga"](y, loss="logistic")
    halves = np.arange(15) // 2 / 2  # but few of them
    few = srf.mfga(
        X[:15], halves, loss="logistic", features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3
    )
    assert len(few.classes) == 8
    with pytest.raises(ValueError, match=r"shape .*: fit a model to each column"):
        FITS["mfga"](np.stack([Y > 0, Y < 0], axis=1), loss="logistic")
    with pytest.raises(ValueError, match="got only 1"):
        FITS["mfga"](np.ones(N, int), loss="logistic")


# Targets that look like labels

ALARMS = {
    "bools": Y > 0,
    "0 and 1": (Y > 0).astype(int),
    "-1 and 1": np.sign(Y),
    "1 and 2": 1 + (Y > 0),
    "far": 255.0 * (Y > 0),
    "of several": np.stack([Y, Y > 0], axis=1),
    "object": (Y > 0).astype(object),
    "-1, 0 and 1": np.round(np.clip(Y, -1, 1)),
    "0, 1 and 2": np.arange(N) % 3,
    "a rare class": np.repeat([1, 2, 3], [N - 40, 35, 5]),
    "four of floats": np.arange(N) % 4 + 1.0,
    "digits": np.arange(N) % 10,
}
SILENT = {
    "real": Y,
    "counts": np.round(np.abs(3 * Y)),
    "eleven": np.arange(N) % 11.0,
    "three from 3": np.arange(N) % 3 + 3.0,
    "three with a gap": np.array([0.0, 1.0, 3.0])[np.arange(N) % 3],
    "counts of five": np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], [N - 40, 20, 10, 6, 4]),
    "ratings": np.repeat([1.0, 2.0, 3.0, 4.0, 5.0], [4, 6, 10, 20, N - 40]),
    "constant": np.ones(N),
    "two that are not whole": np.where(Y > 0, 0.5, 1.0),
    "few rows": (Y > 0).astype(float)[:8],
}


@pytest.mark.parametrize("y", ALARMS)
def test_few_whole_numbers_look_like_labels(y):
    with pytest.warns(
        UserWarning,
        match=r"y is .* alone, .*\. For labels: loss='logistic', .*loss='multinomial'",
    ) as caught:
        model = FITS["mfga"](ALARMS[y])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert model.classes is None


@pytest.mark.parametrize("y", ALARMS)
def test_the_loss_itself_says_that_they_are_numbers(y):
    model = srf.drp(X, ALARMS[y], alpha=0.1, loss=srf.losses.Squared())
    assert model.classes is None and model.loss == "squared"


def test_each_function_warns_of_labels(fit):
    with pytest.warns(UserWarning, match="y is 0 or 1 alone"):
        fit(Y > 0)


@pytest.mark.parametrize("y", SILENT)
def test_targets_that_do_not_look_like_labels(y):
    y = SILENT[y]
    srf.mfga(X[: len(y)], y, features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-3)


def test_rows_of_weight_zero_do_not_count():
    y = np.where(np.arange(N) % 2, Y, Y > 0)
    FITS["mfga"](y)
    with pytest.warns(UserWarning, match="y is 0 or 1 alone"):
        FITS["mfga"](y, sample_weight=1.0 - np.arange(N) % 2)


# Shapes of y


def test_a_column_is_a_vector(fit):
    with pytest.warns(
        UserWarning, match=r"y has shape \(200, 1\), one column, and is taken as a vector"
    ) as caught:
        model = fit(Y[:, None])
    assert len(caught) == 1 and caught[0].filename == __file__
    assert same(model, fit(Y)) and model.predict(X).shape == (N,)
    with pytest.warns(UserWarning, match="one column"):
        assert same(fit(SIGNS[:, None], loss="logistic"), fit(SIGNS, loss="logistic"))


def test_a_frame_of_targets():
    both = np.stack([Y, X[:, 2]], axis=1)
    assert same(FITS["mfga"](pd.DataFrame(both, columns=["a", "b"])), FITS["mfga"](both))


# Several outputs

SEVERAL = np.stack([Y, 10 - 1000 * Y, np.cos(2 * X[:, 2])], axis=1)


def explained(model, several=SEVERAL):
    """Return the share of the variance of each output that the model explains."""
    return 1 - ((model.predict(X) - several) ** 2).mean(axis=0) / several.var(axis=0)


def test_several_outputs_share_a_support(fit, tmp_path):
    model = fit(SEVERAL)
    n_terms = len(model.features)
    assert model.predict(X).shape == model.decision_function(X).shape == (N, 3)
    assert (
        model.coef.shape == (3, n_terms)
        and model.support.shape == (n_terms,)
        and model.intercept.shape == (3,)
    )
    assert (np.diff(model.support) > 0).all()
    assert model.info.n_nonzero == n_terms and model.info.converged
    model.save(tmp_path / "several.npz")
    assert np.array_equal(srf.load(tmp_path / "several.npz").predict(X), model.predict(X))
    assert same(model, fit(SEVERAL, workers=2))


@pytest.mark.parametrize("name", ["sparse_rf", "harfe"])
def test_each_output_has_the_coefficients_of_its_own_fit(name):
    """With one dictionary and penalty, the support is the union of the supports of fits to each
    output."""
    model, alone = FITS[name](SEVERAL), [FITS[name](y) for y in SEVERAL.T]
    assert np.array_equal(
        model.support, np.unique(np.concatenate([each.support for each in alone]))
    )
    for coef, intercept, each in zip(model.coef, model.intercept, alone, strict=True):
        there = np.searchsorted(model.support, each.support)
        assert np.array_equal(coef[there], each.coef) and np.count_nonzero(
            coef
        ) == np.count_nonzero(each.coef)
        assert intercept == each.intercept
    assert model.info.objective[-1] == pytest.approx(sum(each.info.objective[-1] for each in alone))
    assert model.info.dual_gap == pytest.approx(sum(each.info.dual_gap for each in alone))


@pytest.mark.slow
def test_where_alpha_is_chosen_the_units_of_outputs_do_not_matter():
    fit = FITS["sparse_rf chosen"]
    assert (explained(fit(SEVERAL)) > 0.85).all()
    units = np.array([2.0**20, 2.0**-20, 1.0])
    plain, scaled = fit(SEVERAL), fit(SEVERAL * units)
    assert np.array_equal(plain.support, scaled.support)
    np.testing.assert_allclose(scaled.coef, plain.coef * units[:, None], rtol=1e-12)
    np.testing.assert_allclose(scaled.intercept, plain.intercept * units, rtol=1e-12)
    np.testing.assert_allclose(scaled.info.validation_loss, plain.info.validation_loss, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
# for drp, which bounds no relative error of w = 0
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_a_constant_output(fit, fit_intercept):
    several = np.stack([Y, np.full(N, 3e6), np.zeros(N)], axis=1)
    model = fit(several, fit_intercept=fit_intercept)
    assert np.isfinite(model.coef).all()
    assert (model.predict(X)[:, 2] == 0).all()
    if fit_intercept:
        np.testing.assert_allclose(model.predict(X)[:, 1], 3e6, rtol=1e-12)
        assert explained(model, several[:, :1])[0] > 0.1


def test_terms_of_one_output_have_zeros_for_the_other():
    y = np.stack([np.sin(2 * X[:, 0]), np.zeros(N)], axis=1)
    model = FITS["sparse_rf"](y)
    assert np.count_nonzero(model.coef[0]) == len(model.features) and not model.coef[1].any()


def test_paths_of_several_outputs():
    models = srf.sparse_rf_path(X, SEVERAL, n_alphas=3, **KERNEL)
    assert [model.coef.shape[0] for model in models] == [3] * 3 and len(models[0].features) <= len(
        models[-1].features
    )
    models = srf.harfe_path(X, SEVERAL, n_nonzero_coefs=[3, 6], n_components=200, rng=0)
    assert [np.count_nonzero(model.coef, axis=1).tolist() for model in models] == [[3] * 3, [6] * 3]


@pytest.mark.parametrize(
    ("method", "how"),
    [(srf.sparse_rf, {"alpha": 0.01}), (srf.harfe, {"n_nonzero_coefs": 5, "alpha": 1e-4})],
)
def test_sums_of_several_outputs(method, how):
    features = srf.Fourier(gamma=0.5).draw(100, 3, rng=0)
    sums = srf.Sums.of(X, SEVERAL[:, [0, 2]], features)
    model, plain = sums.fit(method, **how), method(X, SEVERAL[:, [0, 2]], features=features, **how)
    tight = 1e-3 if method is srf.sparse_rf else 1e-6
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=30 * tight)


def test_weights_of_several_outputs(fit):
    """Targets of rows of weight zero do not matter."""
    weight = np.ones(N)
    weight[::4] = 0
    far = SEVERAL.copy()
    far[::4] = 1e9
    assert same(fit(SEVERAL, sample_weight=weight), fit(far, sample_weight=weight))


# Files and messages


def test_names_of_files_without_their_ending(tmp_path):
    model = FITS["mfga"](Y)
    model.save(tmp_path / "a")
    model.save(str(tmp_path / "b.bin"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.bin"]
    for name in ("a", "a.npz", "b.bin"):
        assert same(srf.load(tmp_path / name), model), name
    (tmp_path / "a").mkdir()  # a folder of that name is not taken for the file
    assert same(srf.load(tmp_path / "a"), model)
    (tmp_path / "a.npz").rename(tmp_path / "old")  # earlier versions wrote such names
    assert same(srf.load(tmp_path / "old"), model)
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        srf.load(tmp_path / "none")


MESSAGES = {
    "features": (
        "'auto', 'gaussian', .*'perceptron', got 'rbf'",
        lambda: srf.sparse_rf(X, Y, features="rbf"),
    ),
    "few rows": (
        "got 1: give more, or give what is to be chosen on them",
        lambda: srf.sparse_rf(X[:1], Y[:1]),
    ),
    "strings": ("categorical=, or X as a data frame", lambda: srf.sparse_rf(X.astype(str), Y)),
    "a row": (r"X\.reshape\(1, -1\) for a single row", lambda: FITS["mfga"](Y).predict(X[0])),
    "missing y": ("leave out rows", lambda: FITS["mfga"](np.where(Y > 0, Y, np.nan))),
    "sizes": (r"such as \[10, 30, 100\], got 5", lambda: srf.harfe_path(X, Y, n_nonzero_coefs=5)),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", MESSAGES)
def test_messages_say_what_to_do(name):
    match, call = MESSAGES[name]
    with pytest.raises((TypeError, ValueError), match=match):
        call()


def test_the_unit_of_a_target_is_its_standard_deviation():
    assert deviation(np.array([1.0, 2, 5, 99]), np.array([2.0, 1, 1, 0])) == pytest.approx(
        np.std([1, 1, 2, 5])
    )
    assert deviation(1e200 * np.array([1.0, 3]), np.ones(2)) == pytest.approx(1e200)
    # a constant has its size for a unit
    assert deviation(np.full(3, 0.1), np.ones(3)) == pytest.approx(0.1)
    assert deviation(np.zeros(3), np.ones(3)) == 1.0


@as_within_a_call
def test_models_of_targets_in_other_units():
    model, units = (
        srf.mfga(X, SEVERAL, n_nonzero_coefs=3, alpha=1e-3, rng=0),
        np.array([2.0, 3.0, 0.5]),
    )
    assert in_their_units(model, None, None) is model
    other = in_their_units(model, units, Squared())
    np.testing.assert_allclose(other.predict(X), model.predict(X) * units, rtol=1e-12)
    huge = np.full(3, 1e200), Squared()
    with pytest.raises(ValueError, match="y must be of moderate size"):
        in_their_units(in_their_units(model, *huge), *huge)


def test_candidates_of_mfga_by_default():
    """They are 1, x, x x' and x again, and sines; in robust units of the columns and of ranks."""
    how = {"n_nonzero_coefs": 3, "alpha": 1e-3, "rng": 0}
    assert srf.mfga(X, Y, scale=None, **how).info.n_drawn == 10 + 3 + 2000
    assert srf.mfga(X, Y, **how).info.n_drawn == 28 + 6 + 2000
    assert srf.mfga(X, Y, scale=None, gamma=0.1, **how).info.n_drawn == 10 + 3


def test_the_name_of_a_target_is_no_target():
    with pytest.raises(
        TypeError, match=r"y must be an array.*got 'price': of a frame, X\.pop\('price'\)"
    ):
        srf.sparse_rf(np.zeros((3, 1)), "price")


# Rows of pandas and their indexes

INDEXED = pd.DataFrame(
    np.random.default_rng(3).standard_normal((40, 2)), columns=["a", "b"], index=np.arange(40) + 100
)
OF_INDEXED = pd.Series(np.arange(40.0), index=INDEXED.index)
PAIRING = {
    "sparse_rf": partial(srf.sparse_rf, features="gaussian", alpha=0.1, n_components=20, rng=0),
    "sparse_rf_path": partial(
        srf.sparse_rf_path, features="gaussian", alphas=[1.0], n_components=20, rng=0
    ),
    "harfe": partial(srf.harfe, n_components=20, n_nonzero_coefs=2, alpha=1e-4, rng=0),
    "mfga": partial(srf.mfga, n_nonzero_coefs=2, alpha=1e-3, rng=0),
    "drp": partial(srf.drp, alpha=0.1, rng=0),
    "cross_validate": lambda X, y, **how: srf.cross_validate(
        srf.drp, X, y, {"alpha": [1.0]}, cv=2, rng=0, **how
    ),
    "intervals": lambda X, y, **how: srf.intervals(
        partial(srf.drp, alpha=1.0), X, y, coverage=0.5, rng=0, **how
    ),
}
each_pairing = pytest.mark.parametrize("fit", PAIRING.values(), ids=PAIRING)


@pytest.mark.every_case
@each_pairing
def test_rows_in_another_order_are_an_error(fit):
    for y in (OF_INDEXED[::-1], OF_INDEXED.sample(frac=1.0, random_state=0)):
        with pytest.raises(
            ValueError,
            match=r"y must .* in the order of X: .* \(row 0 is 100 in X and .* y.loc\[X.index\]",
        ):
            fit(INDEXED, y)
    with pytest.raises(ValueError, match="sample_weight must have its rows in the order of X"):
        fit(INDEXED, OF_INDEXED, sample_weight=OF_INDEXED[::-1])
    fit(INDEXED, OF_INDEXED[::-1].loc[INDEXED.index])


@each_pairing
def test_different_indexes_are_warned_of(fit):
    """There is one warning, and it points at the line that called."""
    with pytest.warns(
        srf.IndexWarning, match=r"X and y have different indexes \(row 0 is 100 in X and 107 in y\)"
    ) as told:
        fit(INDEXED, OF_INDEXED.set_axis(OF_INDEXED.index + 7))
    assert len(told) == 1 and told[0].filename == __file__


def test_indexes_that_are_not_compared():
    fit = PAIRING["drp"]
    expected = fit(INDEXED, OF_INDEXED).coef
    for X, y in (
        (INDEXED, OF_INDEXED.reset_index(drop=True)),
        (INDEXED.reset_index(drop=True), OF_INDEXED),
        (INDEXED, OF_INDEXED.to_numpy()),
        (INDEXED.to_numpy(), OF_INDEXED[::1].to_numpy()),
        (INDEXED.set_axis(INDEXED.index.astype(object)), OF_INDEXED),
        (pl.DataFrame(INDEXED), pl.Series(OF_INDEXED.to_numpy())),
        (INDEXED, OF_INDEXED.to_frame().set_axis(["y"], axis=1).iloc[:, 0]),
    ):
        assert np.allclose(fit(X, y).coef, expected)
    odd = [np.nan, *map(str, range(38)), (1, 2)]
    assert np.allclose(fit(INDEXED.set_axis(odd), OF_INDEXED.set_axis(odd)).coef, expected)
    with pytest.raises(ValueError, match="in the order of X"):
        fit(
            INDEXED.reset_index(drop=True).sample(frac=1.0, random_state=0),
            OF_INDEXED.reset_index(drop=True),
        )


def test_indexes_with_missing_labels():
    labels = pd.Index([pd.NA, *range(39)], dtype=object)
    X, y = INDEXED.set_axis(labels), OF_INDEXED.set_axis(labels)
    assert np.allclose(PAIRING["drp"](X, y).coef, PAIRING["drp"](INDEXED, OF_INDEXED).coef)
    with pytest.raises(
        ValueError, match=r"in the order of X: .* \(row 0 is <NA> in X and 38 in y\)"
    ):
        PAIRING["drp"](X, y[::-1])


def test_groups_and_estimators_pair_rows_too():
    backwards = OF_INDEXED[::-1]
    with pytest.raises(ValueError, match="groups must have its rows in the order of X"):
        srf.cross_validate(srf.drp, INDEXED, OF_INDEXED, {"alpha": [1.0]}, groups=backwards)
    with pytest.raises(ValueError, match="sample_weight must have its rows in the order of y"):
        srf.drp(INDEXED.to_numpy(), OF_INDEXED, alpha=1.0, sample_weight=backwards)
    srfs = pytest.importorskip("sparserf.sklearn")
    with pytest.raises(ValueError, match="y must have its rows in the order of X"):
        srfs.DRPRegressor().fit(INDEXED, backwards)
    with (
        pytest.raises(ValueError, match="in the order of X"),
        pytest.warns(UserWarning, match="column-vector"),
    ):
        srfs.DRPRegressor().fit(INDEXED, backwards.to_frame())


@pytest.mark.parametrize("scale", ["robust", None])
def test_a_model_of_an_array_and_frames(scale):
    """A model of an array reads frames by place, whatever their library and types, and a model of a
    frame reads arrays so."""
    A = INDEXED.to_numpy()
    of_array = srf.mfga(A, OF_INDEXED.to_numpy(), n_nonzero_coefs=2, alpha=1e-3, scale=scale, rng=0)
    of_frame = srf.mfga(INDEXED, OF_INDEXED, n_nonzero_coefs=2, alpha=1e-3, scale=scale, rng=0)
    expected = of_array.predict(A)
    renamed = INDEXED.set_axis(["b", "a"], axis=1)
    for X in (
        INDEXED,
        INDEXED.astype("Float64"),
        INDEXED.astype(object),
        pl.DataFrame(INDEXED),
        renamed,
    ):
        # the order in memory changes rounding
        np.testing.assert_allclose(of_array.predict(X), expected, rtol=1e-13)
    np.testing.assert_allclose(
        of_frame.predict(A), of_frame.predict(INDEXED[["b", "a"]]), rtol=1e-13
    )
    with pytest.raises(ValueError, match="X must have 2 columns, got 1"):
        of_array.predict(INDEXED[["a"]])
    with pytest.raises(ValueError, match="X must have 2 columns, got 3"):
        of_frame.predict(np.zeros((3, 3)))
    with pytest.raises(
        TypeError, match=r"X\['b'\] holds strings, and held numbers when the model was fitted"
    ):
        of_array.predict(INDEXED.assign(b="word"))
