"""JavaScript of a model: in Node.js it gives for a row what `predict` gives."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.losses import PROBABILISTIC

from ..fitted_models import FITS, X, Y, frame
from .javascript import needs_node, rows_of, run

pytestmark = needs_node
HOSTILE = [
    "__proto__",
    "constructor",
    "</script><script>throw 1</script>",
    "a'b\"c`d${e}\\",
    "line\nand\u2028another\r",
    "",
    "level(",
    "// <!-- */",
]


def assert_predicts(model, code, rows, cells):
    """Check the functions of the code of a model on rows, whose cells are those of X or objects."""
    answers = run(code, cells)
    f = model.decision_function(rows)
    np.testing.assert_allclose(
        answers.pop("decision_function"), f, rtol=0, atol=1e-12 * np.abs(f).max(initial=1e-9)
    )
    expected = model.predict(rows)
    if model.classes is None:
        np.testing.assert_allclose(answers.pop("predict"), expected, rtol=1e-12, atol=1e-12)
    else:
        assert answers.pop("predict") == expected.tolist()
    if model.loss in PROBABILISTIC:
        p = model.predict_proba(rows)
        np.testing.assert_allclose(answers.pop("predict_proba"), p, rtol=0, atol=1e-12)
    assert not answers


@pytest.mark.parametrize("name", FITS)
def test_code_computes_what_the_model_does(models, name):
    model, rows = models[name], np.concatenate([X[:60], 30 * X[:20]])
    assert_predicts(model, model.formula("javascript"), rows, rows.tolist())


@pytest.mark.slow
def test_rows_of_a_data_frame(of_frame):
    """Rows are objects; cells are missing, levels unknown, numbers far away."""
    model, data = of_frame
    later = frame(seed=1)[0]
    later["many"] = later["many"].astype(float)
    later.loc[:20, "many"] = 1000
    later.loc[10:30, "c o"] = "new"
    later.loc[:5, "many"] = np.nan
    later["age"] *= 50
    code = model.formula("javascript")
    for rows in data, later:
        assert_predicts(model, code, rows, rows_of(rows))


@pytest.mark.slow
def test_dates_durations_and_times_of_day():
    rng = np.random.default_rng(0)
    n = 600
    minutes = rng.integers(0, 3 * 365 * 24 * 60, n)
    at = pd.Timestamp("2021-03-01") + pd.to_timedelta(minutes, unit="min")
    at += pd.to_timedelta(rng.integers(0, 10**6, n), unit="us")
    data = pd.DataFrame({"at": at, "there": at.tz_localize("UTC").tz_convert("Asia/Tokyo")})
    data["lasted"] = pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")
    data["clock"] = [each.time() for each in at]
    data["born"] = at.floor("D")
    data.loc[:20, "at"] = pd.NaT
    y = (at.hour > 12) + at.month / 6 + np.log1p(data["lasted"].dt.days) + (at.day_of_week > 4)
    model = srf.sparse_rf(data, y, alpha=0.003, n_components=600, rng=0)
    assert model.features.columns_seen.all()
    cells = data.assign(
        there=data["there"].dt.tz_localize(None),
        lasted=data["lasted"].dt.total_seconds() / 86400,
    )
    code = model.formula("javascript")
    assert_predicts(model, code, data, rows_of(cells))
    days = cells["born"].to_numpy().astype("M8[D]").astype(float)
    assert_predicts(model, code, data, rows_of(cells.assign(born=days)))


@pytest.mark.parametrize("labels", [[True, False], [2**60, 3], [0.5, 1.5], ["</script>", "b'"]])
def test_labels_of_any_type(labels):
    y = np.array(labels)[(Y > 0).astype(int)]
    model = srf.mfga(X, y, loss="logistic", n_nonzero_coefs=5, alpha=1e-3, rng=0)
    code = model.formula("javascript")
    assert "</" not in code
    if labels[0] == 2**60:  # JSON has no such numbers
        assert f"[3, {2**60}n]" in code
    else:
        assert_predicts(model, code, X[:50], X[:50].tolist())


def hostile_frame(n=500):
    """Return a frame whose columns and levels have hostile names, and a target."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(n, len(HOSTILE))), columns=HOSTILE)
    data["of levels"] = np.array(HOSTILE, object)[rng.integers(0, len(HOSTILE), n)]
    y = np.tanh(data[HOSTILE]).to_numpy() @ np.arange(1.0, 1 + len(HOSTILE))
    return data, y + 3 * data["of levels"].map(HOSTILE.index)


@pytest.mark.parametrize("how", [{"features": srf.Rules()}, {}], ids=["rules", "auto"])
def test_hostile_names_and_levels(how):
    data, y = hostile_frame()
    model = srf.sparse_rf(data, y, alpha=0.02, n_components=500, rng=0, **how)
    assert model.features.columns_seen.all()
    code = model.formula("javascript")
    assert code.isascii() and "</" not in code
    assert_predicts(model, code, data, rows_of(data))


@pytest.mark.parametrize(
    "levels", [[0.1, 0.7, 2.5], [1, 2, 7], [2**60, 3, 2**61], [True, False], ["a", "b", "c"]]
)
def test_levels_of_any_type(levels):
    cells = np.array(levels, object)[np.arange(400) % len(levels)]
    data = np.array([cells, X[:, 0]], object).T
    y = (np.arange(400) % len(levels)) * X[:, 0]
    model = srf.sparse_rf(data, y, categorical=[0], alpha=0.01, n_components=200, rng=0)
    rows = data[:40].copy()
    rows[:5, 0], rows[5:9, 0] = None, "new" if isinstance(levels[0], str) else 99
    if levels[0] == 0.1:
        rows[9:15, 0] = float(np.float32(0.1))  # .1 in single precision is the level
    assert_predicts(model, model.formula("javascript"), rows, rows.tolist())


def test_a_sum_of_thousands_is_not_deep():
    """Browsers have no stack for a row of 8,000 summands of both signs."""
    rng = np.random.default_rng(0)
    neurons = srf.RandomNeurons("relu").draw(2, 3000, rng=0)
    how = {"n_nonzero_coefs": 2, "alpha": 1e-3, "scale": None, "rng": 0}
    train, rows = rng.normal(size=(20, 3000)), rng.normal(size=(3, 3000))
    model = srf.mfga(train, rng.normal(size=20), features=neurons, **how)
    code = model.formula("javascript")
    assert_predicts(model, code, rows, rows.tolist())
    (terms,) = re.findall(r"^const terms = \[(.*?)^\]", code, re.M | re.S)
    assert terms.count("u[") >= 3000
    assert max(len(re.findall(" [+-] ", part)) for part in re.split("[()]", terms)) <= 64


def test_counts_in_csr_rows():
    counts = np.random.default_rng(1).poisson(1.0, (300, 6)).astype(float)
    y = np.minimum(counts[:, 0], 2) + (counts[:, 1] > 0)
    from scipy.sparse import csr_array

    with warnings.catch_warnings(action="ignore", category=srf.CopiedRowsWarning):
        how = {"loss": srf.losses.Squared(), "n_components": 400, "alpha": 0.01, "rng": 0}
        model = srf.sparse_rf(csr_array(counts), y, **how)
    assert_predicts(model, model.formula("javascript"), counts, counts.tolist())


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_code_stays_within_the_limits(loss):
    y = np.exp(Y) if loss == "poisson" else Y
    ends = (0.7, 1.3) if loss == "poisson" else (-0.1, 0.4)
    model = srf.harfe(
        X,
        y,
        loss=loss,
        n_components=200,
        n_nonzero_coefs=20,
        alpha=1e-4,
        lower=ends[0],
        upper=ends[1],
        rng=0,
    )
    rows = np.concatenate([X, 3 * X])
    assert_predicts(model, model.formula("javascript"), rows, rows.tolist())
    predicted = run(model.formula("javascript"), rows.tolist())["predict"]
    assert ends[0] <= min(predicted) and max(predicted) <= ends[1]


def test_what_a_row_may_not_hold_is_said(of_frame):
    model, data = of_frame
    row = rows_of(data[-1:])[0]
    code = model.formula("javascript")
    wrong = {
        "must have the column age": {name: cell for name, cell in row.items() if name != "age"},
        "finite number, got old": row | {"age": "old"},
        "finite number, got [object Object]": row | {"age": {}},
        "a level must be a string, got 3": row | {"c o": 3},
        "a level must be a number, got x": row | {"many": "x"},
    }
    answers = run(code, list(wrong.values()))["predict"]
    for words, answer in zip(wrong, answers, strict=True):
        assert answer["error"].startswith("TypeError") and words in answer["error"]
    model = srf.sparse_rf(X, Y, missing="raise", alpha=0.03, n_components=50, rng=0)
    missing = run(model.formula("javascript"), [[None, 0, 0, 0], [0, 0, 0]])["predict"]
    assert missing[0]["error"] == "TypeError: x0 must not be missing"
    assert missing[1]["error"] == "TypeError: the row must have the column x3"


def test_levels_that_numbers_do_not_tell_apart_are_refused():
    cells = np.array([2**60, 2**60 + 1], object)[np.arange(400) % 2]
    data = np.array([cells, X[:, 0]], object).T
    model = srf.sparse_rf(
        data, np.arange(400) % 2 + X[:, 0], categorical=[0], alpha=0.01, n_components=100, rng=0
    )
    with pytest.raises(ValueError, match="levels that numbers of double precision tell apart"):
        model.formula("javascript")


def test_notebooks_show_it_as_javascript(models):
    code = models["linear"].formula("javascript")
    assert code.language == "javascript" and code._repr_markdown_().startswith("```javascript\n")
