"""Columns of dates, durations and times of day: read alike from every library, and seen as days and
as angles."""

import ctypes
import datetime as dt
import pickle
import shutil
import subprocess
from functools import partial

import array_api_strict as strict
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sparserf as srf
from sparserf.columns.clocks import Clock, arcs, find_zone, moment_in
from sparserf.columns.table import Table
from sparserf.explain.evaluate import decision_values
from sparserf.proof.space import Curve

from .encoders import encoder_of

NAN = np.nan
DAY = 86_400
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda data: pl.DataFrame(data, strict=False),
    "pyarrow": pa.table,
}
each_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
DATES, DURATIONS, TIMES = Clock("dates"), Clock("durations"), Clock("times of day")
ROME, PARIS = (dt.timezone(dt.timedelta(hours=1)), "Europe/Paris")

CELLS = {
    "dates": (
        [dt.date(2020, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        [18262, NAN, -719162, 2932896],
        DATES,
    ),
    "datetimes": (
        [dt.datetime(1969, 12, 31, 18), None, dt.datetime(9999, 12, 31, 6)],
        [-0.25, NAN, 2932896.25],
        DATES,
    ),
    "durations": ([dt.timedelta(1, 43200), None, dt.timedelta(-2)], [1.5, NAN, -2], DURATIONS),
    "times": ([dt.time(6), None, dt.time(23, 59, 59, 999_999)], [0.25, NAN, 1 - 1e-6 / DAY], TIMES),
    "none": ([None, dt.datetime(2020, 1, 1)], [NAN, 18262], DATES),
}


@each_frame
@pytest.mark.parametrize("name", CELLS)
def test_cells_of_every_library(frame, name):
    cells, days, clock = CELLS[name]
    X, table = Table.learn(frame({"at": cells}))
    np.testing.assert_allclose(X[:, 0], days, rtol=0, atol=1e-15)
    assert (
        X.dtype == np.float64
        and table.levels == (None,)
        and table.clocks == {0: clock}
        and not table.is_numeric
    )
    for other in (
        *(make({"at": cells}) for make in FRAMES.values()),
        np.array(cells, object)[:, None],
    ):
        np.testing.assert_array_equal(table.read(other), X)
    again = Table.from_arrays(table.to_arrays())
    assert table == again == pickle.loads(pickle.dumps(table))


def arrow(values, kind):
    """Return a table of one column of a type of Arrow."""
    return pa.table({"at": pa.array(values, kind)})


HALF = dt.datetime(2020, 1, 1, 12)
MAKERS = {
    "pandas in seconds": (
        lambda: pd.DataFrame({"at": pd.Series([HALF], dtype="M8[s]")}),
        18262.5,
        DATES,
    ),
    "pandas in nanoseconds": (
        lambda: pd.DataFrame({"at": pd.Series([HALF], dtype="M8[ns]")}),
        18262.5,
        DATES,
    ),
    "pandas of Arrow": (
        lambda: pd.DataFrame({"at": pd.Series([HALF], dtype="timestamp[us][pyarrow]")}),
        18262.5,
        DATES,
    ),
    "days of Arrow": (
        lambda: pd.DataFrame({"at": pd.Series([HALF.date()], dtype="date32[pyarrow]")}),
        18262,
        DATES,
    ),
    "missing days of Arrow": (
        lambda: pd.DataFrame({"at": pd.Series([None], dtype="date32[pyarrow]")}),
        NAN,
        DATES,
    ),
    "missing times of Arrow": (
        lambda: pd.DataFrame({"at": pd.Series([None], dtype="time64[us][pyarrow]")}),
        NAN,
        TIMES,
    ),
    "objects": (
        lambda: pd.DataFrame({"at": pd.Series([pd.Timestamp(HALF)], dtype=object)}),
        18262.5,
        DATES,
    ),
    "numpy objects": (
        lambda: pd.DataFrame({"at": pd.Series([np.datetime64(HALF)], dtype=object)}),
        18262.5,
        DATES,
    ),
    "numpy durations": (
        lambda: pd.DataFrame({"at": pd.Series([np.timedelta64(36, "h")], dtype=object)}),
        1.5,
        DURATIONS,
    ),
    "months": (lambda: pd.DataFrame({"at": pd.PeriodIndex(["2020-01"], freq="M")}), 18262, DATES),
    "years far out": (
        lambda: pd.DataFrame({"at": pd.PeriodIndex(["9999"], freq="Y")}),
        2932532,
        DATES,
    ),
    "missing months": (lambda: pd.DataFrame({"at": pd.PeriodIndex(["NaT"], freq="M")}), NAN, DATES),
    "hours as objects": (
        lambda: pd.DataFrame({"at": pd.Series([pd.Period(HALF, "h")], dtype=object)}),
        18262.5,
        DATES,
    ),
    "date64": (lambda: arrow([HALF.date()], pa.date64()), 18262, DATES),
    "time32": (lambda: arrow([dt.time(12)], pa.time32("s")), 0.5, TIMES),
    "time64": (lambda: arrow([dt.time(12)], pa.time64("ns")), 0.5, TIMES),
    "duration": (lambda: arrow([dt.timedelta(hours=36)], pa.duration("ms")), 1.5, DURATIONS),
    "polars objects": (
        lambda: pl.DataFrame({"at": pl.Series([HALF], dtype=pl.Object)}),
        18262.5,
        DATES,
    ),
    "missing of polars": (
        lambda: pl.DataFrame({"at": pl.Series([None], dtype=pl.Datetime)}),
        NAN,
        DATES,
    ),
    "the longest of polars": (lambda: pl.DataFrame({"at": [dt.timedelta.max]}), 1e9, DURATIONS),
    "an offset": (
        lambda: pd.DataFrame({"at": pd.Series([HALF]).dt.tz_localize("UTC+02:00")}),
        18262.5,
        Clock("dates", "UTC+02:00"),
    ),
    "an offset as objects": (
        lambda: pd.DataFrame({"at": pd.Series([HALF.replace(tzinfo=ROME)], dtype=object)}),
        18262.5,
        Clock("dates", "UTC+01:00"),
    ),
    "a zone": (
        lambda: pl.DataFrame({"at": [HALF]}).with_columns(pl.col("at").dt.replace_time_zone(PARIS)),
        18262.5,
        Clock("dates", PARIS),
    ),
    "a zone of Arrow": (
        lambda: arrow([HALF], pa.timestamp("us", PARIS)),
        18262.5 + 1 / 24,
        Clock("dates", PARIS),
    ),
}


@pytest.mark.parametrize(("make", "days", "clock"), MAKERS.values(), ids=MAKERS)
def test_types_of_columns(make, days, clock):
    X, table = Table.learn(make())
    assert table.clocks == {0: clock}
    np.testing.assert_array_equal(X, [[days]])
    np.testing.assert_array_equal(table.read(make()), X)
    assert clock.zone is None or find_zone(clock.zone) is not None


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "25s", "ms", "us", "ns"])
def test_the_unit_of_an_array_changes_no_bit(unit):
    stamps = np.array(["1970-01-01", "NaT", "2020-03-05T17:12:34.567891"], "M8[us]").astype(
        f"M8[{unit}]"
    )
    X, table = Table.learn(stamps[:, None])
    np.testing.assert_array_equal(
        X, Table.learn(stamps.astype("M8[D]" if unit in "YMWD" else "M8[us]")[:, None])[0]
    )
    assert np.isnan(X[1, 0]) and table.clocks == {0: DATES}


@pytest.mark.parametrize("values", [["0001-01-01", "9999-12-31"], ["-20000-03-01", "200000-03-01"]])
def test_dates_far_out(values):
    stamps = np.array(values, "M8[s]")
    np.testing.assert_array_equal(
        Table.learn(stamps[:, None])[0][:, 0], stamps.astype("M8[D]").astype(int)
    )


def test_a_zone_is_read_by_its_clock_and_other_zones_are_converted():
    noon = pd.date_range("2021-01-01 12:00", "2021-12-31 12:00", freq="D", tz=PARIS)
    X, table = Table.learn(pd.DataFrame({"at": noon}))
    assert table.clocks == {0: Clock("dates", PARIS)}
    np.testing.assert_array_equal(X[:, 0] % 1, 0.5)  # in summer and winter
    utc = pd.DataFrame({"at": noon.tz_convert("UTC")})
    tokyo = pd.DataFrame(
        {"at": pd.Series(list(noon.tz_convert("Asia/Tokyo").to_pydatetime()), dtype=object)}
    )
    for other in (utc, tokyo, pl.from_pandas(utc), pa.Table.from_pandas(utc)):
        np.testing.assert_array_equal(table.read(other), X)


def utc(values=(HALF, HALF)):
    return [value.replace(tzinfo=dt.UTC) for value in values]


STRANGE = {
    "naive and aware": ([HALF, *utc()], ValueError, r"must have one time zone, got 'UTC', none"),
    "two zones": (
        [HALF.replace(tzinfo=ROME), *utc()],
        ValueError,
        r"must have one time zone, got 'UTC', 'UTC\+01:00'",
    ),
    "a date and an aware one": (
        [HALF.date(), *utc()],
        ValueError,
        r"must have one time zone, got 'UTC', none",
    ),
    "words": ([HALF, "today"], TypeError, r"holds dates and str"),
    "numbers": ([HALF, 1.5], TypeError, r"holds dates and float"),
    "durations": ([HALF, dt.timedelta(1)], TypeError, r"holds dates and durations"),
    "times": ([dt.time(1), dt.timedelta(1)], TypeError, r"holds durations and times of day"),
    "aware times": (
        [dt.time(1, tzinfo=dt.UTC)],
        ValueError,
        r"holds times of day with a time zone",
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("cells", "error", "message"), STRANGE.values(), ids=STRANGE)
def test_mixed_columns_are_refused(cells, error, message):
    for X, where in (
        (pd.DataFrame({"at": pd.Series(cells, dtype=object)}), r"X\['at'\]"),
        (np.array(cells, object)[:, None], r"X\[:, 0\]"),
    ):
        with pytest.raises(error, match=f"^{where} {message}"):
            srf.sparse_rf(X, np.arange(float(len(cells))), rng=0)


def test_what_has_no_length_or_is_a_category_is_refused():
    with pytest.raises(
        TypeError, match=r"^X\[:, 0\] holds durations in months or years, which have no length"
    ):
        Table.learn(np.array([[1]], "m8[Y]"))
    for X in (
        pd.DataFrame({"at": [HALF]}),
        pl.DataFrame({"at": [HALF]}),
        pd.DataFrame({"at": [HALF.date()]}),
    ):
        with pytest.raises(
            TypeError,
            match=r"^X\['at'\] holds categories that are dates: leave it out of categorical",
        ):
            Table.learn(X, ["at"])
    # its categories are levels
    assert Table.learn(pd.DataFrame({"at": pd.Categorical([HALF])}))[1].levels == ((str(HALF),),)


OTHERS = {
    "strings": (
        ["2020-01-01"],
        TypeError,
        "holds strings, and held dates without a time zone when",
    ),
    "numbers": ([18262.0], TypeError, "holds numbers, and held dates without"),
    "durations": ([dt.timedelta(1)], TypeError, "holds durations, and held dates"),
    "times": ([dt.time(1)], TypeError, "holds times of day, and held dates"),
    "aware": (
        utc([HALF]),
        ValueError,
        "holds dates in the time zone UTC, and held dates without a time zone",
    ),
}


@pytest.mark.every_case
@each_frame
@pytest.mark.parametrize(("cells", "error", "message"), OTHERS.values(), ids=OTHERS)
def test_what_was_dates_must_be_dates(frame, cells, error, message):
    table = Table.learn(pd.DataFrame({"at": [HALF]}))[1]
    with pytest.raises(error, match=rf"^X\['at'\] {message}"):
        table.read(frame({"at": cells}))
    if error is TypeError:
        was = Table.learn(frame({"at": cells}))[1]
        with pytest.raises(TypeError, match="holds dates without a time zone, and held"):
            was.read(frame({"at": [HALF]}))
    aware = Table.learn(pd.DataFrame({"at": utc()}))[1]
    with pytest.raises(
        ValueError, match="holds dates without a time zone, and held dates in the time zone UTC"
    ):
        aware.read(frame({"at": [HALF]}))


@pytest.mark.parametrize("clock", [DATES, Clock("dates", PARIS), DURATIONS, TIMES], ids=str)
def test_a_column_of_missing_cells_is_of_any_kind(clock):
    table = Table(("at",), (None,), {0: clock})
    for cells in (
        [None],
        [NAN],
        [pd.NaT],
        pd.Series([pd.NaT], dtype="M8[s]"),
        pd.Series([pd.NaT], dtype="m8[s]"),
    ):
        assert np.isnan(table.read(pd.DataFrame({"at": cells}))).all()
    assert np.isnan(
        Table(("at",), (("a", "b"),)).read(pd.DataFrame({"at": pd.Series([pd.NaT], dtype="M8[s]")}))
    ).all()


# Encodings

N = 600
RNG = np.random.default_rng(0)
HOURS = np.datetime64("2018-01-01", "h") + RNG.integers(0, 3 * 365 * 24, N)
DAYS = HOURS.astype("M8[us]").astype(np.int64) / (DAY * 1e6)


def kinds_of(stamps, weight=None):
    """Return the names of the encodings of a column of times."""
    X, table = Table.learn(np.asarray(stamps)[:, None])
    weight = np.ones(len(X)) if weight is None else weight
    encoder = encoder_of(X, weight, table=table)
    names = encoder.names(["at"])
    angles = [
        name.removeprefix("at (cosine of ").removesuffix(")") for name in names if "cosine" in name
    ]
    assert [name for name in names if "(sine" in name] == [
        f"at (sine of {angle})" for angle in angles
    ]
    return angles


def days(start, end, step=1):
    return np.arange(np.datetime64(start), np.datetime64(end), step)


COLUMNS = {
    "hours of years": (HOURS, ["year", "week", "day"]),
    "days of years": (HOURS.astype("M8[D]"), ["year", "week"]),
    "a whole year": (days("2021-01-01", "2022-01-01"), ["year", "week"]),
    "half a year": (days("2021-01-01", "2021-07-01"), ["week"]),
    "a week": (days("2021-01-01", "2021-01-08"), ["week"]),
    "five days": (days("2021-01-04", "2021-01-09"), []),
    "Mondays": (days("2020-01-06", "2022-01-06", 7), ["year"]),
    "Mondays at any hour": (
        days("2020-01-06", "2022-01-06", 7) + (np.arange(105) % 24).astype("m8[h]"),
        ["year", "day"],
    ),
    "New Year's Days": (np.arange("1990", "2021", dtype="M8[Y]"), ["week"]),
    "Christmases, nearly": (
        np.arange("1990", "2021", dtype="M8[Y]").astype("M8[D]") + 358,
        ["week"],
    ),
    "summers": (
        np.concatenate([days(f"{y}-06-01", f"{y}-08-01") for y in range(2010, 2020)]),
        ["year", "week"],
    ),
    "one working day": (np.datetime64("2021-01-04T08") + np.arange(10).astype("m8[h]"), []),
    "two days": (np.datetime64("2021-01-04T08") + np.arange(30).astype("m8[h]"), ["day"]),
    "one date": (days("2021-01-01", "2021-01-02").repeat(5), []),
    "no date": (np.full(5, "NaT", "M8[s]"), []),
    "durations": ((HOURS - HOURS[0]).astype("m8[s]"), []),
    "times": (np.array([dt.time(8), dt.time(12), dt.time(9)], object), ["day"]),
    "one time": (np.array([dt.time(8)] * 3, object), []),
}


@pytest.mark.parametrize(("stamps", "angles"), COLUMNS.values(), ids=COLUMNS)
def test_angles_as_far_as_they_vary(stamps, angles):
    assert kinds_of(stamps) == angles


def test_encodings_are_days_and_points_on_circles():
    X, table = Table.learn(HOURS[:, None])
    encoder = encoder_of(X, table=table)
    U = encoder.transform(X)
    unit = np.sqrt(0.5)
    for v, period in ((1, 365.2425), (3, 7), (5, 1)):
        angle = 2 * np.pi * DAYS / period
        np.testing.assert_allclose(U[:, v], np.cos(angle) / unit, atol=1e-9)
        np.testing.assert_allclose(U[:, v + 1], np.sin(angle) / unit, atol=1e-9)
    assert np.corrcoef(U[:, 0], DAYS)[0, 1] > 0.999999 and len(encoder) == 7
    np.testing.assert_allclose(np.asarray(encoder.transform(strict.asarray(X))), U, atol=1e-9)
    missing = encoder.transform(np.array([[NAN]]))
    np.testing.assert_array_equal(missing, encoder.fill[None])
    np.testing.assert_allclose(
        np.asarray(encoder.transform(strict.asarray([[NAN]]))), missing, atol=1e-12
    )
    raw = encoder_of(X, table=table, is_scaled=False)
    # days from their centre
    assert raw.is_raw and abs(raw.transform(X)[:, 0].mean()) < 40 and (raw.unit == 1).all()


def signal(stamps):
    """Return a season, a weekend and a time of day, for datetimes by the hour."""
    days = stamps.astype("M8[us]").astype(np.int64) / (DAY * 1e6)
    weekend = (np.floor(days) + 3) % 7 >= 5
    return np.sin(2 * np.pi * days / 365.2425) + weekend + 0.7 * np.cos(2 * np.pi * days)


Y = signal(HOURS) + 0.1 * RNG.normal(size=N)
TIMES_OF_DAY = [dt.time(int(h)) for h in 24 * (DAYS % 1) + 0.5]
FRAME = pd.DataFrame({"at": HOURS.astype("M8[s]"), "a": RNG.normal(size=N), "clock": TIMES_OF_DAY})
NUMBERS = FRAME.assign(at=DAYS, clock=DAYS % 1)
FITS = {
    "sparse_rf": partial(srf.sparse_rf, rng=0, effort=0.1, max_terms=60, verbose=False),
    "gaussian": partial(srf.sparse_rf, features="gaussian", alpha=0.003, n_components=400, rng=0),
    "bumps": partial(srf.sparse_rf, features=srf.Bumps(), alpha=0.01, scale="robust", rng=0),
    "raw": partial(srf.sparse_rf, features=srf.Linear(), alpha=0.001, rng=0),
    "harfe": partial(srf.harfe, n_components=300, n_nonzero_coefs=30, alpha=1e-4, rng=0),
    "mfga": partial(srf.mfga, n_nonzero_coefs=12, alpha=1e-3, rng=0),
    "drp": partial(srf.drp, alpha=1e-3, rng=0),
}
each_fit = pytest.mark.parametrize("name", FITS)


@pytest.fixture(scope="module")
def models():
    """Models of a table with dates and times of day, some of them missing."""
    table = FRAME.copy()
    table.loc[::17, "at"] = pd.NaT
    return table, {name: fit(table, Y) for name, fit in FITS.items()}


# which finds fewer terms in numbers
@pytest.mark.parametrize("name", [name for name in FITS if name != "mfga"])
def test_seasons_weeks_and_hours_are_learnt(name):
    tables = [table[["at", "a"]] for table in (FRAME, NUMBERS)]
    answers = [FITS[name](table[:400], Y[:400]).predict(table[400:]) for table in tables]
    error, other = (np.mean((p - Y[400:]) ** 2) / Y[400:].var() for p in answers)
    assert error < (0.12 if name in ("raw", "drp", "sparse_rf") else 0.45) and error < 0.5 * other


@each_fit
def test_every_library_and_the_file(models, name, tmp_path):
    table, fitted = models
    model = fitted[name]
    expected = model.predict(table)
    assert np.isfinite(expected).all()
    model.save(tmp_path / "m.npz")
    for other in (
        srf.load(tmp_path / "m.npz"),
        srf.SparseModel.from_json(model.to_json()),
        pickle.loads(pickle.dumps(model)),
    ):
        assert other.features.encoder.table == model.features.encoder.table
        for X in (
            table,
            pl.from_pandas(table),
            pa.Table.from_pandas(table),
            table[["clock", "at", "a"]],
        ):
            np.testing.assert_array_equal(other.predict(X), expected)


@pytest.mark.parametrize(
    "broken", [{"table_kind": [-6, -1, -4]}, {"table_size": [2, 0, 0]}, {"table_size": [0, 0, 1]}]
)
def test_broken_files_are_refused(models, broken, tmp_path):
    models[1]["mfga"].save(tmp_path / "m.npz")
    arrays = dict(np.load(tmp_path / "m.npz")) | {
        name: np.array(values) for name, values in broken.items()
    }
    np.savez(tmp_path / "broken.npz", **arrays)
    with pytest.raises(ValueError, match="is not a whole model"):
        srf.load(tmp_path / "broken.npz")


def test_arrays_of_dates():
    stamps = HOURS.astype("M8[s]")[:, None]
    objects = np.column_stack([HOURS.astype("M8[s]").astype(object), FRAME["a"]])
    for X in (stamps, objects):
        model = FITS["mfga"](X, Y)
        assert (
            model.features.encoder.table.clocks == {0: DATES}
            and np.var(model.predict(X) - Y) < 0.2 * Y.var()
        )
    assert np.array_equal(
        FITS["mfga"](stamps, Y).predict(stamps.astype("M8[ns]")),
        FITS["mfga"](stamps, Y).predict(stamps),
    )
    with pytest.raises(TypeError, match=r"^X\[:, 0\] holds numbers, and held dates"):
        FITS["mfga"](stamps, Y).predict(DAYS[:, None])


@pytest.mark.slow
def test_everything_that_takes_rows(models):
    """Estimators, folds, made rows, explanations and pictures."""
    pytest.importorskip("matplotlib").use("Agg")
    table, fitted = models
    model = fitted["mfga"]
    for X in (
        table,
        HOURS.astype("M8[s]")[:, None],
        np.column_stack([HOURS.astype("M8[s]").astype(object), FRAME["a"]]),
    ):
        estimator = srf.sklearn.MFGARegressor(n_nonzero_coefs=12, alpha=1e-3, random_state=0).fit(
            X, Y
        )
        assert (
            estimator.score(X, Y) > 0.8
            and estimator.model_.features.encoder.table.clocks[0] == DATES
        )
    found = srf.cross_validate(
        partial(srf.mfga, rng=0), table, Y, {"n_nonzero_coefs": [2, 8]}, rng=0
    )
    assert len(str(found)) > 10
    assert (
        srf.distill(
            model.predict, table, max_terms=30, rng=0, effort=0.01, verbose=False
        ).info.fidelity
        > 0.9
    )
    assert srf.prune(model, table, max_terms=4).predict(table).shape == (N,)
    assert {row.name for row in model.importances(table).rows} <= {"at", "a", "clock"}
    shap = model.shapley(table[:20])
    assert shap.shape == (20, 3) and len(model.input_usage()) == 3
    labels = [
        label.get_text()
        for ax in srf.plot.effects(model, table).axes
        for label in ax.get_xticklabels()
    ]
    assert any(label.startswith("20") and label.count("-") == 2 for label in labels) and any(
        ":" in label for label in labels
    )


@pytest.mark.slow
@pytest.mark.parametrize("constraint", ["monotone", "convex"])
def test_constraints_in_a_date(constraint):
    model = srf.sparse_rf(
        FRAME, Y + DAYS / 100, rng=0, effort=0.1, verbose=False, **{constraint: {"at": 1}}
    )
    names = model.features.encoder.names(["at", "a", "clock"])
    seen = {names[v] for v in np.flatnonzero(model.features.inputs_seen)}
    assert not any(name.startswith("at (") for name in seen)
    if constraint == "monotone":
        assert model.is_monotone("at", {"a": 0, "clock": dt.time(12)}, sign=1)


@pytest.mark.parametrize("name", ["gaussian", "bumps", "raw", "mfga"])
def test_calculus_and_proofs(models, name):
    table, fitted = models
    model, rng = fitted[name], np.random.default_rng(0)
    # bumps have kinks at training rows
    table = table.assign(at=table["at"] + pd.Timedelta(minutes=37), clock=dt.time(10, 17))
    X = model.features.encoder.table.read(table)
    gradient, there = model.gradient(table), ~np.isnan(X).any(axis=1)
    up, down = (X[there] + h * np.array([1e-5, 0, 0]) for h in (1, -1))
    slope = (decision_values(model, up)[0] - decision_values(model, down)[0]) / 2e-5  # per day
    assert np.quantile(np.abs(slope - gradient[there, 0]), 0.95) < 1e-5 * np.abs(gradient).max()
    low, high = pd.Timestamp("2019-03-01"), dt.datetime(2019, 3, 4)
    box = {"at": (low, high), "a": (-0.5, 0.5), "clock": (dt.time(6), dt.time(18))}
    rows = np.column_stack(
        [
            rng.uniform(17956, 17959, 40_000),
            rng.uniform(-0.5, 0.5, 40_000),
            rng.uniform(0.25, 0.75, 40_000),
        ]
    )
    f = decision_values(model, rows)[0]
    mean, error = model.mean(box)
    assert abs(mean - f.mean()) <= error + 6 * f.std() / 200
    bounds = model.bounds(box, time_limit=1.0)
    assert bounds.least.lower <= f.min() and f.max() <= bounds.largest.upper
    again = model.predict(pd.DataFrame([bounds.at_least, bounds.at_largest]))
    np.testing.assert_allclose(again, [bounds.least.upper, bounds.largest.lower], atol=1e-9)
    assert type(bounds.at_least["at"]) is dt.datetime and type(bounds.at_least["clock"]) is dt.time
    days = {**box, "at": (17956.0, 17959), "clock": (0.25, 0.75)}
    assert model.mean(days) == (mean, error)
    for wrong, kind in ((dt.timedelta(1), "durations"), (utc()[0], "in the time zone UTC")):
        with pytest.raises(
            ValueError, match=rf"^box\['at'\] must hold dates without a time zone, got .*{kind}"
        ):
            model.bounds({"at": (wrong, wrong)})


@pytest.mark.slow
@pytest.mark.parametrize("years", [20, 900])
def test_proofs_and_means_over_many_years(years, monkeypatch):
    """Angles turn thousands of times: the coordinate has a bounded number of cells, and the mean is
    over Sobol' points."""
    rng, most = np.random.default_rng(0), []
    stamps = np.datetime64("1100-01-01T00", "h") + rng.integers(0, 24 * 365 * years, N)
    table = pd.DataFrame({"at": stamps.astype("M8[s]")})
    model = FITS["gaussian"](table, signal(stamps))
    own = Curve._slopes
    monkeypatch.setattr(Curve, "_slopes", lambda self: (most.append(len(self.x)), own(self))[1])
    low, high = (Table.learn(table)[0][:, 0].min(), Table.learn(table)[0][:, 0].max())
    f = decision_values(model, rng.uniform(low, high, (200_000, 1)))[0]
    bounds = model.bounds(time_limit=0.5)
    assert bounds.least.lower <= f.min() and f.max() <= bounds.largest.upper and max(most) < 2**16
    mean, error = model.mean()
    assert abs(mean - f.mean()) <= error + 4 * f.std() / 200_000**0.5


# Exports


@each_fit
def test_python_code(models, name):
    table, fitted = models
    model, names = fitted[name], {}
    exec(model.formula("python"), names)
    arrays = {key: column.to_numpy() for key, column in table.items()}
    for X in (table, pl.from_pandas(table), pa.Table.from_pandas(table), arrays):
        np.testing.assert_allclose(
            names["decision_function"](X), model.decision_function(table), rtol=0, atol=1e-12
        )
    if any("at" in term for term in model.features.names()):
        with pytest.raises(TypeError, match="must not be strings or numbers"):
            names["predict"](NUMBERS)
        with pytest.raises(ValueError, match="the time zone must be None"):
            names["predict"](table.assign(at=table["at"].dt.tz_localize("UTC")))


def in_zones():
    """Return two tables of the same moments, by the clock in Paris and in UTC."""
    there = FRAME.assign(at=FRAME["at"].dt.tz_localize("UTC").dt.tz_convert(PARIS))
    return there, there.assign(at=there["at"].dt.tz_convert("UTC"))


def test_code_of_dates_with_a_zone():
    there, in_utc = in_zones()
    model, names = FITS["mfga"](there, Y), {}
    exec(model.formula("python"), names)
    for X in (there, in_utc, pl.from_pandas(there), pa.Table.from_pandas(in_utc)):
        np.testing.assert_allclose(names["predict"](X), model.predict(there), rtol=0, atol=1e-12)
    assert "days since 1970-01-01, by the clock in Europe/Paris" in model.to_c()
    assert "in days since 1970-01-01, by the clock in Europe/Paris" in model.formula()
    with pytest.raises(
        ValueError,
        match=r"no time zones in common: make .at., in Europe/Paris, local times without",
    ):
        model.formula("sql")
    since = FRAME[["at"]] - FRAME["at"].min()
    lengths = FITS["gaussian"](since, Y)
    with pytest.raises(ValueError, match=r"no durations in common: make .at. its number of days"):
        lengths.formula("sql")
    exec(lengths.formula("python"), names)
    np.testing.assert_allclose(names["predict"](since), lengths.predict(since), rtol=0, atol=1e-12)


def sqlite_of(table):
    """Return a function that asks SQLite, where dates are text; the functions of its own are
    NumPy's."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    for function in (np.sqrt, np.exp, np.cos, np.sin, np.tanh, np.floor):
        connection.create_function(
            function.__name__, 1, lambda x, f=function: None if x is None else float(f(x))
        )
    table.assign(clock=[str(cell) for cell in table["clock"]]).to_sql(
        "data", connection, index=False
    )
    return lambda query: np.array(connection.execute(query).fetchall())[:, 0]


def duckdb_of(table):
    """Return a function that asks DuckDB, where dates are dates."""
    connection = pytest.importorskip("duckdb").connect()
    connection.register("data", pa.Table.from_pandas(table))
    return lambda query: np.array(connection.execute(query).fetchall())[:, 0]


@each_fit
@pytest.mark.parametrize("engine", [sqlite_of, duckdb_of])
def test_sql(models, name, engine):
    table, fitted = models
    np.testing.assert_allclose(
        engine(table)(fitted[name].formula("sql")), fitted[name].predict(table), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("engine", [sqlite_of, duckdb_of])
def test_sql_of_days_of_all_centuries(engine):
    """Whole days, moments to a microsecond, and leap years; from the year 1 to 9999."""
    some = np.array(
        [
            "0001-01-01",
            "1600-02-29",
            "1899-12-31",
            "1900-02-28",
            "1900-03-01",
            "1969-12-31T23:59:59.999999",
            "2000-02-29",
            "2024-02-29T12",
            "2100-12-31",
            "9999-12-31T23:59:59",
        ],
        "M8[us]",
    )
    table = pd.DataFrame({"at": some.astype(object), "clock": dt.time(1)})
    model = srf.mfga(
        table[["at"]], np.arange(10.0), features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0
    )
    np.testing.assert_allclose(
        engine(table)(model.formula("sql")), model.predict(table[["at"]]), rtol=0, atol=1e-9
    )


@each_fit
@pytest.mark.slow
def test_c_onnx_and_symbols(models, name, tmp_path):
    table, fitted = models
    model, X = fitted[name], fitted[name].features.encoder.table.read(table)
    expected = model.predict(table)
    runtime = pytest.importorskip("onnxruntime")
    for dtype, bound in (("float32", 1e-5), ("float64", 1e-9)):
        session = runtime.InferenceSession(
            model.to_onnx(dtype=dtype).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        types = [each.type for each in session.get_inputs()]
        assert types == [
            "tensor(double)",
            "tensor(float)" if dtype == "float32" else "tensor(double)",
            "tensor(double)",
        ]
        feed = {
            each.name: X[:, [j]].astype(np.float32 if "float" in each.type else np.float64)
            for j, each in enumerate(session.get_inputs())
        }
        np.testing.assert_allclose(session.run(None, feed)[0].ravel(), expected, rtol=0, atol=bound)
    sympy, names = pytest.importorskip("sympy"), {}
    exec(model.formula("sympy"), names)
    columns = [j for j in range(3) if f"x{j}" in names]
    full = X[~np.isnan(X).any(axis=1)][:20]
    f = sympy.lambdify([names[f"x{j}"] for j in columns], names["f"], "numpy", cse=True)(
        *full[:, columns].T
    )
    np.testing.assert_allclose(
        f, model.predict(table[~np.isnan(X).any(axis=1)][:20]), rtol=0, atol=1e-8
    )
    compile(model.formula("jax"), "jax", "exec")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    model.to_c(tmp_path / "model.c")
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(
        [compiler, *flags, "-o", str(tmp_path / "model.so"), str(tmp_path / "model.c"), "-lm"],
        check=True,
    )
    rows, out = np.ascontiguousarray(X), np.empty(N)
    pointer = np.ctypeslib.ndpointer(np.float64)
    predict = ctypes.CDLL(str(tmp_path / "model.so")).predict_rows
    predict.argtypes = [pointer, ctypes.c_size_t, pointer]
    predict(rows, N, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_error_of_a_mean_of_many_pieces():
    """Where finer nodes are too many and coarser ones are not, their difference is no error."""
    relu = srf.RandomNeurons("relu", order=2)
    model = srf.sparse_rf(
        FRAME, Y, features=relu, alpha=0.01, n_components=300, scale="robust", rng=0
    )
    mean, error = model.mean(
        {"at": (dt.date(2019, 1, 1), dt.date(2019, 3, 1)), "a": (-0.5, 0.5), "clock": (0.2, 0.6)}
    )
    assert error < 0.01 * (1 + abs(mean))


def test_drawn_features_that_see_columns_as_they_are_refuse_words_and_dates():
    drawn = srf.Fourier(gamma=0.1).draw(30, 2, rng=0)
    for column in (FRAME["at"], ["u", "v"] * (N // 2)):
        X = FRAME[["a"]].assign(other=column)
        with pytest.raises(
            TypeError, match=r"^X must hold numbers alone where features is a FeatureSet"
        ):
            srf.harfe(X, Y, features=drawn, n_nonzero_coefs=5, alpha=1e-4, rng=0)


@pytest.mark.parametrize("turn", [2 * np.pi, 2 * np.pi / 7, 2 * np.pi / 365.2425])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_arcs_are_where_cosines_are_in_intervals(rng, turn, n):
    period = 2 * np.pi / turn
    for _ in range(50):
        asked = []
        for _ in range(n):
            low, high = np.sort(rng.uniform(-1.5, 1.5, 2))
            low, high = (-np.inf if low < -1 else low), (np.inf if high > 1 else high)
            asked.append((rng.choice([0.0, period / 4]), low, high))
        days = rng.uniform(0, period, 2000)
        expected = np.ones(len(days), bool)
        for level, low, high in asked:
            cosine = np.cos(turn * (days - level))
            expected &= (low < cosine) & (cosine <= high)
        parts = arcs(turn, asked)
        if parts is None:
            assert expected.all()
            continue
        inside = np.zeros(len(days), bool)
        for (start, stop), (_, last) in zip(parts, [(0, 0), *parts], strict=False):
            assert last <= start < stop
            inside |= ((days >= start) & (days < stop)) | (days < stop - period)
        np.testing.assert_array_equal(inside, expected)


def test_moments_of_periods_in_words():
    assert [moment_in("day", x) for x in (0.0, 0.5, 0.99999, 1.25)] == [
        "00:00",
        "12:00",
        "00:00",
        "06:00",
    ]
    assert [moment_in("week", x) for x in (0.0, 3.75, 6.999999, 8.5)] == [
        "Thu 00:00",
        "Sun 18:00",
        "Thu 00:00",
        "Fri 12:00",
    ]
    assert [moment_in("year", x) for x in (0.0, 31.2, 365.2425)] == ["Jan 1", "Feb 1", "Jan 1"]
