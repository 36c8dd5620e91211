"""SQL in the engines that run it: each gives what the model predicts, whatever the cells hold and
the columns are called."""

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.losses import PROBABILISTIC

from ..fitted_models import FEW, FITS, X, Y, frame
from .engines import ENGINES, open_engine

# Cells that engines treat apart; beyond 1e20 only where numbers are drawn in.
NASTY = [None, float("nan"), 0.0, -0.0, 1e-320, 5e-324, -1e-160, 1e-110, 1e20]
HUGE = [1e60, -1e154, 1e308, -1.7e308]
MODELS = FITS | {
    "hinge": lambda: srf.mfga(
        X, np.where(Y > 0, "p", "n"), loss="squared_hinge", n_nonzero_coefs=4, alpha=1e-3, rng=0
    ),
    "as they are": lambda: srf.mfga(
        X,
        Y,
        features=srf.RandomNeurons("tanh", 2),
        scale=None,
        n_nonzero_coefs=10,
        alpha=1e-3,
        **FEW,
    ),
    "tiny units": lambda: srf.sparse_rf(X * 1e-300, Y, features="gaussian", alpha=0.03, **FEW),
    "huge units": lambda: srf.sparse_rf(X * 1e290, Y, features="gaussian", alpha=0.03, **FEW),
    "limited": lambda: srf.harfe(
        X, np.exp(Y), loss="poisson", lower=0.7, upper=1.3, n_nonzero_coefs=10, alpha=1e-4, **FEW
    ),
    "two targets": lambda: srf.harfe(
        X, np.column_stack([Y, X[:, 0]]), n_nonzero_coefs=10, alpha=1e-4, **FEW
    ),
    "labels of numbers": lambda: srf.drp(
        X, np.where(Y > 0, 0.1, 2.5), alpha=0.01, loss="logistic", rng=0
    ),
    "labels of bools": lambda: srf.drp(X, Y > 0, alpha=0.01, loss="logistic", rng=0),
}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    yield from open_engine(request.param)


@pytest.fixture(scope="module")
def fitted():
    return {}


def nasty_rows(name):
    """Return rows of which each has a nasty cell, as objects."""
    unit = {"tiny units": 1e-300, "huge units": 1e290}.get(name, 1.0)
    grow = name in (
        "linear",
        "relu",
        "cubes",
        "products",
        "as they are",
        "tanh",
        "bumps",
        "limited",
        "two targets",
    )
    rows = list((unit * X[:12]).astype(object))
    for k, cell in enumerate(NASTY if grow or "labels" in name else NASTY + HUGE):
        rows.append((unit * X[20 + k]).astype(object))
        rows[-1][k % 4] = cell
    return np.array(rows, object)


def assert_same(engine, model, columns, rows, **about):
    """Check that an engine gives the predictions of the model for a table, and names and types its
    results well."""
    engine.create({"id": list(range(len(rows)))} | columns, **about)
    code = model.to_sql(keep=["id"])
    names, found = engine.select(code)
    found = [row[1:] for row in sorted(found)]
    numbers, labels = found, None
    if model.classes is not None:
        labels, numbers = [row[0] for row in found], [row[1:] for row in found]
        assert labels == model.predict(rows).tolist()
    is_proba = model.loss in PROBABILISTIC
    expected = (
        model.predict(rows)
        if labels is None
        else (model.predict_proba if is_proba else model.decision_function)(rows)
    )
    expected = np.asarray(expected, float).reshape(len(rows), -1)
    numbers = np.array(numbers, float).reshape(len(rows), -1)
    np.testing.assert_allclose(
        numbers, expected, rtol=1e-9, atol=1e-11 * max(1e-300, np.abs(expected).max())
    )
    if labels is not None:
        some = (
            model.classes.tolist()
            if is_proba or len(model.classes) > 2
            else model.classes.tolist()[1:]
        )
        assert names[2:] == [
            f"{'probability' if is_proba else 'decision'}_{label}" for label in some
        ]
    double = {"sqlite": "real", "duckdb": "DOUBLE", "postgresql": "float8"}[engine.name]
    assert set(engine.types(code)[1 if labels is None else 2 :]) == {double}


@pytest.mark.parametrize("name", MODELS)
def test_engines_predict_what_the_model_does(engine, fitted, name):
    if name not in fitted:
        fitted[name] = MODELS[name]()
    model = fitted[name]
    rows = nasty_rows(name)
    numbers = np.array([[np.nan if cell is None else cell for cell in row] for row in rows], float)
    if model.features.encoder is None or not model.features.encoder.may_miss:
        there = np.isfinite(numbers).all(axis=1)
        rows, numbers = rows[there], numbers[there]
    assert_same(engine, model, {f"x{j}": rows[:, j].tolist() for j in range(4)}, numbers)


@pytest.mark.slow
def test_tables_of_all_kinds_of_cells(engine):
    """Ranks, levels, means of levels, missing cells of each kind, names and levels that must be
    quoted, unknown levels."""
    data, y = frame()
    words = [
        "a",
        "b'",
        '{c}"',
        "",
        " ",
        "a ",
        "A",
        "ä",
        "a\\",
        "a\nb",
        "--",
        "select",
        "%s",
        "💡",
        "x0",
    ]
    data["w.o\nr'd"] = np.random.default_rng(1).choice(words, len(data))
    data["share"] = np.random.default_rng(2).choice([0.1, 1 / 3, 1e-3, 2.0], len(data))
    y = y + 2 * (data["w.o\nr'd"] == "A") - data["w.o\nr'd"].isin(["", "a\\"]) + data["share"]
    model = srf.sparse_rf(
        data, y, categorical=["many", "share"], n_components=200, max_terms=40, rng=0
    )
    rows = data[:60].reset_index(drop=True).astype({"many": float})
    rows["w.o\nr'd"] = [[*words, "new", "B'", None][k % 18] for k in range(60)]
    rows.loc[40:50, "many"] = np.nan
    rows.loc[20:25, "share"] = 0.7
    rows["flag"] = rows["flag"].astype(int)
    cells = {
        name: [
            None if cell is None or (cell != cell and name == "age") else cell
            for cell in column.tolist()
        ]
        for name, column in rows.items()
    }
    cells["c o"] = [cell if isinstance(cell, str) else None for cell in cells["c o"]]
    assert_same(engine, model, cells, rows)


@pytest.mark.slow
def test_a_thousand_terms_and_more(engine):
    """Neither the depth of expressions nor the number of columns is too large."""
    wide = np.random.default_rng(0).standard_normal((60, 8))
    features = srf.Fourier(gamma=0.1).draw(1000, 8, rng=0)
    model = srf.harfe(wide, wide[:, 0], features=features, n_nonzero_coefs=1000, alpha=1e-3, rng=0)
    assert len(model.features) == 1000
    assert_same(engine, model, {f"x{j}": wide[:5, j].tolist() for j in range(8)}, wide[:5])


def test_a_column_that_is_not_there_is_an_error(engine):
    """SQLite would read its name as a text, and that as 0."""
    model = srf.drp(X, Y, alpha=0.01, rng=0)
    engine.create({f"x{j}": X[:3, j].tolist() for j in range(3)})
    for code in (model.to_sql(), model.to_sql(keep=["none"])):
        with pytest.raises(engine.fails, match=r"x3|none"):
            engine.select(code)


def test_tables_of_a_schema_and_of_any_name(engine):
    model, columns = (
        srf.drp(X, Y, alpha=0.01, rng=0),
        {f"x{j}": X[:3, j].tolist() for j in range(4)},
    )
    engine.execute(
        "ATTACH ':memory:' AS lab" if engine.name != "postgresql" else "CREATE SCHEMA lab"
    )
    for table, name in (
        ("lab.rows", '"lab"."rows"'),
        (["a.b"], '"a.b"'),
        ("Inputs", '"Inputs"'),
        (['s"e;l'], '"s""e;l"'),
    ):
        engine.create(columns, table=name)
        found = np.array(engine.select(model.to_sql(table=table))[1], float)
        np.testing.assert_allclose(found[:, 0], model.predict(X[:3]), rtol=1e-12)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "keep",
    [
        ["prediction"],
        ["PREDICTION"],
        ["id", "ID"],
        ["id", "id"],
        ["probability_lo"],
        ["probability_HI"],
    ],
)
def test_columns_to_keep_have_names_of_their_own(keep):
    labels = np.where(Y > 0, "hi", "lo")
    model = srf.drp(X, labels, alpha=0.01, loss="logistic", rng=0)
    with pytest.raises(ValueError, match=f"keep must have names.*{keep[-1]}"):
        model.to_sql(keep=keep)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("names", "used"), [("aAb", "a"), ("aAb", "A"), ("äÄb", "ä"), ("abA", "aA")]
)
def test_columns_that_differ_in_case_alone_are_an_error_where_they_are_read(names, used):
    data = pd.DataFrame(X[:, :3], columns=list(names))
    model = srf.mfga(
        data,
        data[list(used)].sum(axis=1),
        features=srf.Linear(),
        n_nonzero_coefs=len(used),
        alpha=1e-9,
        rng=0,
    )
    with pytest.raises(ValueError, match=r"differ in case alone, got '.', '.'"):
        model.to_sql()
    of_b = srf.mfga(data, data["b"], features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0)
    assert '."b"' in of_b.to_sql() and '."a"' not in of_b.to_sql()


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_are_no_names_are_errors(name):
    data = pd.DataFrame({name: X[:, 0]})
    model = srf.mfga(data, X[:, 0], features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0)
    with pytest.raises(ValueError, match="must have a name"):
        model.to_sql()


@pytest.mark.parametrize("level", ["a\0b", "\ud800"])
def test_levels_that_are_no_text_are_errors(level):
    words = np.where(X[:, :1] > 0, level, "b").astype(object)
    model = srf.harfe(words, X[:, 0], n_nonzero_coefs=2, alpha=1e-4, categorical=[0], **FEW)
    with pytest.raises(ValueError, match="text in SQL must be valid"):
        model.to_sql()


def test_to_sql_writes_the_formula_to_a_file(tmp_path):
    model = srf.drp(X, Y, alpha=0.01, rng=0)
    text = model.to_sql(tmp_path / "model.sql", table=["a.b"], keep=["id"])
    assert text == model.formula("sql", table=["a.b"], keep=["id"])
    assert (tmp_path / "model.sql").read_text(encoding="utf-8") == text + "\n"
