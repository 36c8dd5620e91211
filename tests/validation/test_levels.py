"""`within`: intervals and sets hold the share that was asked for in each level of a column."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import sparserf as srf

N = 900
RNG = np.random.default_rng(0)
SITE = RNG.choice(["calm", "loud", "middle"], N, p=[0.5, 0.2, 0.3])
NOISE = np.select([SITE == "calm", SITE == "loud"], [0.1, 1.0], 0.4)
ROWS = RNG.uniform(-1, 1, (N, 2))
FRAME = pd.DataFrame(ROWS, columns=["a", "b"]).assign(site=SITE)
Y = ROWS[:, 0] + NOISE * RNG.standard_normal(N)
FIT = partial(srf.drp, alpha=1e-3)
OLD, NEW = slice(0, 600), slice(600, N)
MODEL = FIT(FRAME[:300], Y[:300], rng=0)
PLAIN = partial(srf.intervals, coverage=0.8, adaptive=False, rng=0)


def shares(held, sites):
    """Return the share of rows held in each site."""
    return [held[sites == site].mean() for site in ("calm", "loud", "middle")]


def is_held(bands, rows, y):
    """Return which targets are between the ends."""
    lower, upper = bands.predict(rows)
    assert (lower <= upper).all() and np.isfinite(lower).all() and np.isfinite(upper).all()
    return (lower <= y) & (y <= upper)


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["model", "split", "cv+"])
def test_the_share_is_held_in_each_level_where_it_is_not_without(method):
    """In the mean over draws, less two standard errors; marginal intervals hold too few of the loud
    rows and too many of the calm."""
    found = {None: [], "site": []}
    for seed in range(30 if method == "model" else 12):
        order = np.random.default_rng(seed).permutation(np.arange(300, N))
        old, new = np.split(order, [300])
        how = {} if method == "model" else {"method": method}
        for within, of_draws in found.items():
            bands = srf.intervals(
                MODEL if method == "model" else FIT,
                FRAME.iloc[old],
                Y[old],
                coverage=0.8,
                adaptive=False,
                within=within,
                rng=seed,
                **how,
            )
            of_draws.append(shares(is_held(bands, FRAME.iloc[new], Y[new]), SITE[new]))
    means = {within: np.mean(each, axis=0) for within, each in found.items()}
    errors = np.std(found["site"], axis=0) / np.sqrt(len(found["site"]))
    assert (means["site"] >= 0.8 - 2 * errors).all() and means["site"].max() < 0.9
    assert means[None][0] > 0.9 and means[None][1] < 0.6


@pytest.mark.slow
def test_classes_are_held_in_each_level():
    rng = np.random.default_rng(2)
    y = np.digitize(ROWS[:, 0], [-0.3, 0.3])
    y = np.where((SITE != "calm") & (rng.random(N) < 0.9), rng.integers(0, 3, N), y)
    model = FIT(FRAME[:300], y[:300], loss="multinomial", rng=0)
    found = {None: [], "site": []}
    for seed in range(30):
        old, new = np.split(np.random.default_rng(seed).permutation(np.arange(300, N)), [300])
        for within, of_draws in found.items():
            sets = srf.intervals(model, FRAME.iloc[old], y[old], coverage=0.8, within=within)
            inside = sets.predict_set(FRAME.iloc[new])[np.arange(300), y[new]]
            of_draws.append(shares(inside, SITE[new]))
    errors = np.std(found["site"], axis=0) / np.sqrt(30)
    assert (np.mean(found["site"], axis=0) >= 0.8 - 2 * errors).all()
    assert min(np.mean(found[None], axis=0)) < 0.75


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_rows_of_a_level_have_the_intervals_that_its_rows_alone_calibrate(method):
    """Those of a fitted model, and of the models of folds."""
    bands = PLAIN(FIT, FRAME[OLD], Y[OLD], method=method, within="site")
    lower, upper = bands.predict(FRAME[NEW])
    for site in np.unique(SITE):
        new = FRAME[NEW][SITE[NEW] == site]
        down, up = [], []
        k = bands.within.levels.labels.index(site)
        for expert, of_all in zip(bands.within.experts[k], bands.experts, strict=True):
            assert expert.model is of_all.model
            center = expert.model.predict(new)[:, None]
            down.append(center - expert.scores)
            up.append(center + expert.scores)
        down, up = np.sort(np.hstack(down), axis=1), np.sort(np.hstack(up), axis=1)
        n = down.shape[1]
        rank = int(np.ceil(0.8 * (n + 1) - 1e-9)) - 1
        assert np.allclose(lower[SITE[NEW] == site], down[:, n - 1 - rank], rtol=0, atol=1e-12)
        assert np.allclose(upper[SITE[NEW] == site], up[:, rank], rtol=0, atol=1e-12)
    if method == "split":
        assert bands.guarantees == dict.fromkeys(("calm", "loud", "middle"), 0.8)
    else:
        n = {site: np.count_nonzero(SITE[OLD] == site) for site in bands.guarantees}
        least = {site: 0.6 - 1.6 / (n[site] / 5 + 1) for site in n}
        assert bands.guarantees == pytest.approx(least)
        assert bands.guarantee == pytest.approx(min(least.values()))


COLUMNS = {
    "pandas": (FRAME, "site"),
    "index of a frame": (FRAME, 2),
    "category": (FRAME.astype({"site": "category"}), "site"),
    "polars": (pl.DataFrame({name: FRAME[name].to_list() for name in FRAME}), "site"),
    "bool": (FRAME.assign(site=SITE == "loud"), "site"),
    "numbers": (FRAME.assign(site=NOISE), "site"),
    "missing": (FRAME.assign(site=np.where(SITE == "loud", None, SITE)), "site"),
    "array": (np.column_stack([ROWS, NOISE]), 2),
    "array of nan": (np.column_stack([ROWS, np.where(SITE == "loud", np.nan, NOISE)]), 2),
    "float32": (np.column_stack([ROWS, NOISE]).astype(np.float32), 2),
    "csr": (sp.csr_array(np.column_stack([ROWS, NOISE * (SITE != "loud")])), 2),
    "list": (np.column_stack([ROWS, NOISE]).tolist(), 2),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("rows", "within"), COLUMNS.values(), ids=COLUMNS)
def test_kinds_of_columns(rows, within):
    """The loud rows have much wider intervals than the calm ones."""
    bands = PLAIN(FIT, rows[OLD], Y[OLD], within=within)
    lower, upper = bands.predict(rows[NEW])
    loud = SITE[NEW] == "loud"
    assert (upper - lower)[loud].min() > 1.5 * (upper - lower)[~loud].max()
    assert len(bands.guarantees) == (2 if within == "site" and rows is COLUMNS["bool"][0] else 3)
    assert set(bands.guarantees.values()) == {0.8}
    again = pickle.loads(pickle.dumps(bands)).predict(rows[NEW])
    assert np.array_equal(again, (lower, upper))


def test_columns_of_new_rows_are_found_by_name():
    bands = PLAIN(FIT, FRAME[OLD], Y[OLD], within="site")
    ends = bands.predict(FRAME[NEW])
    other = FRAME[NEW].assign(more=0.0)[["more", "site", "b", "a"]]
    assert np.array_equal(bands.predict(other), ends)
    assert np.array_equal(bands.predict(FRAME[NEW].to_numpy(object)), ends)
    with pytest.raises(ValueError, match="X lacks the columns 'site'"):
        bands.predict(FRAME[NEW][["a", "b"]])


def test_a_level_with_too_few_rows_and_a_new_one_have_the_threshold_of_all_rows():
    few = FRAME.assign(site=np.where(np.arange(N) % 100 == 0, "rare", SITE))
    with pytest.warns(UserWarning, match="too few rows, 'rare': each needs at least 4 rows"):
        bands = PLAIN(MODEL, few[300:600], Y[300:600], within="site")
    assert bands.guarantees == {"calm": 0.8, "loud": 0.8, "middle": 0.8, "rare": 0.0}
    assert "within 'site': 3 of 4 levels" in repr(bands) and "rare" in bands._repr_html_()
    of_all = PLAIN(MODEL, few[300:600], Y[300:600])
    for name in ("rare", "never seen"):
        rows = few[NEW].assign(site=name)
        assert np.array_equal(bands.predict(rows), of_all.predict(rows))
    rows = few[NEW]
    assert not np.allclose(bands.predict(rows)[0], of_all.predict(rows)[0])


def test_groups_count_once_in_each_level():
    """A level of many rows in three groups has too few."""
    groups = np.arange(N) // 6
    groups[SITE == "loud"] = N + np.arange(np.count_nonzero(SITE == "loud")) % 3
    with pytest.warns(UserWarning, match="'loud': each needs at least 4 rows, or groups"):
        bands = PLAIN(MODEL, FRAME, Y, within="site", groups=groups)
    assert bands.guarantees == {"calm": 0.8, "loud": 0.0, "middle": 0.8}


def test_rows_of_weight_zero_have_no_levels():
    weight = (SITE != "loud") * 1.0
    bands = PLAIN(FIT, FRAME[OLD], Y[OLD], within="site", sample_weight=weight[OLD])
    assert bands.guarantees == {"calm": 0.8, "middle": 0.8}


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_several_outputs_are_held_in_each_level(method):
    rng = np.random.default_rng(1)
    both, found = np.column_stack([Y, ROWS[:, 1] + 0.2 * rng.standard_normal(N)]), []
    for seed in range(6):
        old, new = np.split(np.random.default_rng(seed).permutation(N), [600])
        bands = srf.intervals(
            *(FIT, FRAME.iloc[old], both[old]),
            coverage=0.8,
            adaptive=False,
            within="site",
            method=method,
            rng=seed,
        )
        lower, upper = bands.predict(FRAME.iloc[new])
        assert lower.shape == upper.shape == (300, 2)
        held, width = (lower <= both[new]) & (both[new] <= upper), upper - lower
        found.append(shares(held[:, 0], SITE[new]) + shares(held[:, 1], SITE[new]))
        loud = SITE[new] == "loud"
        assert width[loud, 0].mean() > 1.5 * width[~loud, 0].mean()
        assert width[loud, 1].mean() < 1.5 * width[~loud, 1].mean()
    errors = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.mean(found, axis=0) > 0.8 - 3 * errors).all()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("within", "error", "says"),
    [
        ("town", ValueError, "within must name columns of X, which lacks them: 'town'"),
        (3, ValueError, r"within must have indices of columns in \[0, 3\), got 3"),
        (["site"], TypeError, "within must name columns of X or give their indices"),
        (True, TypeError, "within must name columns of X or give their indices"),
        ("a", ValueError, "within must be a column with most rows in levels that have at least 4"),
        ("day", TypeError, "within must be a column of categories, got 'day'"),
    ],
)
def test_columns_that_cannot_be_are_named(within, error, says):
    rows = FRAME[OLD]
    if within == "day":
        rows = rows.assign(day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(600), "D"))
    with pytest.raises(error, match=says):
        PLAIN(FIT, rows, Y[OLD], within=within)


def test_too_few_rows_are_found_before_a_fit():
    def fit(X, y, rng):
        raise AssertionError

    with pytest.raises(ValueError, match="within must be a column with most rows in levels"):
        srf.intervals(fit, FRAME[:60], Y[:60], within="site", coverage=0.98, calibration=0.9)
    with pytest.raises(ValueError, match=r"coverage must be at most n / \(n \+ 1\)"):
        srf.intervals(fit, FRAME[:20], Y[:20], within="site")


def test_pages_have_no_levels():
    bands = PLAIN(FIT, FRAME[OLD], Y[OLD], within="site")
    with pytest.raises(ValueError, match="to_html needs intervals of one number, without within"):
        bands.to_html()
