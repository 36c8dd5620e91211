"""Formulas: code in Python and SQL that predicts what the model predicts, and formulas to read."""

import sqlite3
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.features import BumpBlock
from sparserf.losses import PROBABILISTIC

from ..fitted_models import FITS, X, Y, frame


def run(model):
    """Return the names that the Python code of a model defines."""
    names = {}
    exec(model.formula("python"), names)
    return names


def select(model, data):
    """Return the result of the SQL code of a model over a table."""
    connection = sqlite3.connect(":memory:")
    functions = {"SQRT": np.sqrt, "EXP": np.exp, "COS": np.cos, "SIN": np.sin, "TANH": np.tanh}
    for name, function in functions.items():
        connection.create_function(
            name, 1, lambda x, f=function: None if x is None else float(f(x))
        )
    data.to_sql("data", connection, index=False)
    return pd.read_sql_query(model.formula("sql"), connection)


def assert_sql_predicts(model, data, rows):
    """Check that SQL gives the predictions and, beside labels, their probabilities."""
    of_table = select(model, data)
    if model.classes is None:
        expected = model.predict(rows)
        names = (
            ["prediction"]
            if expected.ndim == 1
            else [f"prediction_{k}" for k in range(expected.shape[1])]
        )
        assert list(of_table.columns) == names
        atol = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(of_table.to_numpy().squeeze(), expected, rtol=1e-9, atol=atol)
        return
    assert np.array_equal(of_table.pop("prediction").to_numpy(), model.predict(rows))
    p = model.predict_proba(rows)
    assert list(of_table.columns) == [f"probability_{label}" for label in model.classes.tolist()]
    np.testing.assert_allclose(of_table.to_numpy(), p, rtol=0, atol=1e-12)


def assert_same(model, f, rows):
    """Check that f is the decision function, to rounding."""
    expected = model.decision_function(rows)
    assert f.shape == expected.shape
    assert np.abs(f - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("name", FITS)
def test_code_computes_what_the_model_does(models, name):
    model = models[name]
    code = run(model)
    assert_same(model, code["decision_function"](X), X)
    assert_sql_predicts(model, pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]), X)
    if model.classes is None:
        np.testing.assert_allclose(code["predict"](X), model.predict(X), rtol=1e-9)
    else:
        np.testing.assert_array_equal(code["predict"](X), model.predict(X))
        np.testing.assert_allclose(
            code["predict_proba"](X), model.predict_proba(X), rtol=0, atol=1e-12
        )
    assert ("predict_proba" in code) == (model.loss in PROBABILISTIC)


@pytest.mark.slow
def test_code_of_a_data_frame(of_frame):
    """The code takes rows the model was not fitted to, unknown levels, and a dictionary of
    arrays."""
    model, data = of_frame
    later = frame(seed=1)[0]
    later.loc[:20, "many"] = 1000
    later.loc[10:30, "c o"] = "new"
    later["age"] *= 50
    code = run(model)["decision_function"]
    for rows in data, later:
        assert_same(model, code(rows), rows)
        assert_same(model, code({name: column.to_numpy() for name, column in rows.items()}), rows)
        assert_sql_predicts(model, rows, rows)


@pytest.mark.slow
def test_code_of_an_array_of_categories_and_of_counts():
    Z = np.array([[1.0, "a"], [2.0, "b"], [None, "a"], [4.0, None], [5.0, "b"]] * 40, object)
    y = np.tile([1.0, 2.0, 0.0, 4.0, 3.0], 40)
    how = {"alpha": 0.05, "n_components": 200, "loss": srf.losses.Squared(), "rng": 0}
    model = srf.sparse_rf(Z, y, categorical=[1], **how)
    assert_same(model, run(model)["decision_function"](Z), Z)
    counts = np.random.default_rng(1).poisson(1.0, (300, 6)).astype(float)
    y = np.minimum(counts[:, 0], 2) + (counts[:, 1] > 0)
    how = {"n_components": 400, "loss": srf.losses.Squared(), "rng": 0}
    with warnings.catch_warnings(action="ignore", category=srf.CopiedRowsWarning):
        model = srf.sparse_rf(csr_array(counts), y, **how)
    assert_same(model, run(model)["decision_function"](counts), counts)


def test_sql_of_a_table_with_a_key_is_not_slow_where_subqueries_are_flattened(of_frame):
    """Each step is computed once for a row, and not again in every term that sees it."""
    model, data = of_frame
    connection, calls = sqlite3.connect(":memory:"), []
    for name in ("SQRT", "EXP", "COS", "SIN", "TANH"):
        function = getattr(np, name.lower())
        connection.create_function(
            name, 1, lambda x, f=function, name=name: calls.append(name) or (x and float(f(x)))
        )
    connection.execute("ATTACH ':memory:' AS lab")
    keyed = data[:40].assign(key=np.arange(40)[::-1])
    keyed.to_sql("the rows", connection, index=False)
    connection.execute('CREATE TABLE lab."the rows" AS SELECT * FROM "the rows"')
    code = model.formula("sql", table="lab.the rows", keep=["key"])
    of_table = pd.read_sql_query(code, connection).sort_values("key", ascending=False)
    np.testing.assert_allclose(
        of_table["prediction"], model.predict(data[:40]), rtol=1e-9, atol=1e-9
    )
    assert calls.count("SQRT") <= 40 * code.count("SQRT(") and code.count("SQRT(") <= 12 * len(
        model.features.encoder
    )
    for how, error in (
        ({"table": ""}, "table must have names"),
        ({"keep": "key"}, "keep must be a sequence"),
    ):
        with pytest.raises((ValueError, TypeError), match=error):
            model.formula("sql", **how)
    with pytest.raises(ValueError, match="table and keep are for language='sql'"):
        model.formula("python", table="rows")


@pytest.mark.slow
def test_a_sum_of_many_is_not_deep():
    """A sum of 3000 terms is nested less than 10 deep: SQLite allows a depth of a thousand."""
    wide = np.random.default_rng(0).standard_normal((100, 3000))
    model = srf.drp(wide, wide[:, 0], alpha=0.1, scale=None, rng=0)
    code = model.formula("sql", digits=3)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE data ({', '.join(f'x{j}' for j in range(1500))})")
    depth = max(np.cumsum([(c == "(") - (c == ")") for c in code]))
    assert depth < 10 and max(len(part.split(" + ")) for part in code.split("(")) <= 70


def test_formulas_to_read(models, of_frame):
    text = models["auto"].formula(n_terms=2)
    left = len(models["auto"].features) - 2
    assert text.startswith("f = ") and f"({left} smaller terms, " in text
    assert "where" in models["auto"].formula()
    latex = of_frame[0].formula("latex")
    assert latex.startswith("\\begin{aligned}") and latex.endswith("\\end{aligned}")
    bare = latex.replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert all(
        row.count("&") == 1 for row in models["three classes"].formula("latex").split("\\\\")[1:-1]
    )
    assert "\\%" in latex and "age" in latex and models["linear"].formula("text").count("x") >= 4
    assert "f[2] = " in models["three classes"].formula() and "f_{\\text{2}} =" in models[
        "three classes"
    ].formula("latex")
    assert "predict gives b' where f > 0, else a" in models["two classes"].formula()
    assert "THEN 'b''' WHEN f0 <= 0 THEN 'a' END AS prediction" in models["two classes"].formula(
        "sql"
    )
    assert '"probability_2"' in models["multinomial"].formula("sql")
    assert "|u|^2 = z(x0)^2 + z(x1)^2" in models["products"].formula()
    assert models["no term"].formula("python", n_terms=3, digits=3).count("f +=") == 0
    one = run(models["auto"])  # the code of the largest terms predicts something else
    names = {}
    exec(models["auto"].formula("python", n_terms=5), names)
    assert np.ptp(one["predict"](X) - names["predict"](X)) > 0


def test_formulas_of_bumps():
    """The size of each distance from the center is written with its weight; an input of weight 0 is
    left out."""
    bump = BumpBlock(1.0, np.array([[2.0, 0.0, -0.5, 1.0]]), np.array([[0.25, 9.0, -1.0, 0.0]]))
    model = srf.mfga(
        X, Y, features=srf.FeatureSet([bump], 4), n_nonzero_coefs=1, alpha=1e-3, rng=0, scale=None
    )
    assert " exp(-2 |x0 - 0.25| - 0.5 |x2 + 1| - 1 |x3|)" in model.formula()
    latex = " \\operatorname{exp}(-2 |\\text{x0} - 0.25| - 0.5 |\\text{x2} + 1| - 1 |\\text{x3}|)"
    assert latex in model.formula("latex")


def test_what_formulas_leave_out_is_said(models):
    """A formula says which terms it leaves out: those of other outputs, and those too small for the
    printed digits. Code has all."""
    model = models["multinomial"]
    few = model.coef.copy()
    few[0, 1:], few[1, 0] = 1e-14, 0.0
    model = replace(model, coef=few)
    first, second, _ = model.formula(n_terms=None).split("f[")[1:]
    assert first.count("\n") == 3 and f"({few.shape[1] - 1} below the printed digits)" in first
    none = np.count_nonzero(few[1] == 0)
    assert (
        f"({none} below the printed digits)" in second
        and f"\\dots \\text{{({none} below" in model.formula("latex")
    )
    assert second.count("cos(") == few.shape[1] - none
    assert_same(model, run(model)["decision_function"](X), X)
    assert f"({few.shape[1] - 1} below the printed digits)" in model.formula()
    tight = model.formula(n_terms=None, digits=14)
    assert tight.split("f[")[1].count("e-14") == few.shape[1] - 1


@pytest.mark.slow
def test_views_are_defined(models, of_frame):
    """A formula defines each function of a column that it uses, or says where it is defined
    exactly."""
    for model in (models["auto"], of_frame[0]):
        text = model.formula(n_terms=None)
        assert ("soft(" in text) == ("soft(u, r) = " in text)
        assert ("quantiles" in text) == ('formula("python")' in text)
    frame, y = of_frame[1], np.arange(len(of_frame[1])) % 3 / 2
    of_means = srf.sparse_rf(frame, y, alpha=0.01, categorical=["many"], features="gaussian", rng=0)
    assert "(12 of " in of_means.formula(n_terms=None) and "(4 of " in of_means.formula()


def test_soft_views_are_as_the_formula_says(models):
    """The definitions that the formula prints, computed, give the encoded columns."""
    model = models["auto"]
    text = model.formula(n_terms=None, digits=17)

    def soft(u, r):
        return np.where(np.abs(u) <= r, u, np.sign(u) * r * (2 - r / np.maximum(np.abs(u), r)))

    encoder, n = model.features.encoder, 0
    shown = encoder.transform(X)
    for v, n_knots in enumerate(np.diff(encoder.first_knot)):
        label = f"z(x{encoder.column[v]})"
        said = [line for line in text.splitlines() if line.strip().startswith(label + " = ")]
        # two knots are the ends of the fitted rows
        if said and n_knots in (0, 2) and np.isfinite(encoder.reach[v]):
            names = {"soft": soft, f"x{encoder.column[v]}": X[:, encoder.column[v]]}
            u = eval(said[0].split(" = ")[1], names)
            # The reach is printed to three digits.
            np.testing.assert_allclose(u, shown[:, v], rtol=6e-3, err_msg=label)
            n += 1
    assert n


@pytest.mark.every_case
@pytest.mark.parametrize(
    "wrong",
    [{"language": "C"}, {"n_terms": -1}, {"digits": 0}, {"n_terms": 1.5}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_bad_arguments_are_named(models, wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        models["linear"].formula(**wrong)


@pytest.mark.parametrize(
    ("loss", "lower", "upper"),
    [("squared", -0.1, 0.4), ("squared", None, 0.1), ("poisson", 0.7, 1.3)],
)
def test_code_stays_within_the_limits(loss, lower, upper):
    y = np.exp(Y) if loss == "poisson" else Y
    model = srf.harfe(
        X,
        y,
        loss=loss,
        n_components=200,
        n_nonzero_coefs=20,
        alpha=1e-4,
        lower=lower,
        upper=upper,
        rng=0,
    )
    code, rows = run(model), np.concatenate([X, 3 * X])
    assert_same(model, code["decision_function"](rows), rows)
    data = pd.DataFrame(rows, columns=[f"x{j}" for j in range(4)])
    assert_sql_predicts(model, data, rows)
    for prediction in (code["predict"](rows), select(model, data)["prediction"].to_numpy()):
        assert prediction.max() <= upper and (lower is None or prediction.min() >= lower)
    few = model.formula("sql", digits=1, n_terms=1)  # the limits keep all digits
    assert f"> {model.upper!r}e0 THEN {model.upper!r}e0" in few
    assert ("predictions from 0.7 to 1.3" if lower == 0.7 else "predictions") in model.formula()


def numbers_of(model, rows, language):
    """Return the decision values that the source for SymPy or JAX computes, for rows of numbers."""
    names = {}
    exec(model.formula(language), names)
    if language == "jax":
        return np.asarray(names["decision_function"](rows))
    sympy = pytest.importorskip("sympy")
    columns = [j for j in range(rows.shape[1]) if f"x{j}" in names]
    expressions = names["f"] if isinstance(names["f"], list) else [names["f"]]
    f = sympy.lambdify([names[f"x{j}"] for j in columns], expressions, "numpy", cse=True)(
        *rows[:, columns].T
    )
    values = np.stack([np.broadcast_to(each, len(rows)) for each in f], axis=1)
    return values if isinstance(names["f"], list) else values[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["sympy", "jax"])
@pytest.mark.parametrize("name", FITS)
def test_code_for_sympy_and_jax(models, name, language):
    module, model = pytest.importorskip(language), models[name]
    if language == "jax":
        module.config.update("jax_enable_x64", True)
    elif len(model.features):  # SymPy takes seconds for a hundred terms
        model = srf.prune(model, X, max_terms=12)
    f = numbers_of(model, X[:50], language)
    expected = model.decision_function(X[:50])
    assert (
        f.shape == expected.shape and np.abs(f - expected).max() <= 1e-12 * np.abs(expected).max()
    )


def test_derivatives_by_jax(models):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    for name in ("auto", "bumps", "multinomial"):
        names = {}
        exec(models[name].formula("jax"), names)
        expected = np.asarray(jax.vmap(jax.jacrev(names["decision_function"]))(X[:50]))
        assert (
            np.abs(models[name].gradient(X[:50]) - expected).max() <= 1e-12 * np.abs(expected).max()
        )
