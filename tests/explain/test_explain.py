"""What a model says: formulas that run, Shapley values, shares of inputs, JSON, and terms of few inputs."""

import json
import sqlite3
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import plot
from sparserf._base.npz import FORMAT
from sparserf.explain import effects, importances
from sparserf.explain import shapley as games
from sparserf.explain.additive import approximate
from sparserf.explain.evaluate import encode, read_numbers
from sparserf.export.written import WrittenModel
from sparserf.model.terms import terms_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4))
X[:, 3] += X[:, 0]
X[:5] *= 9  # beyond the reach of the rest
Y = np.sin(2 * X[:, 0]) * X[:, 1] + (X[:, 2] > 0) * X[:, 3]
FEW = {"n_components": 300, "rng": 0}
FITS = {
    "auto": lambda: srf.sparse_rf(X, Y, n_models=1, n_components=500, rng=0),
    "auto of an alpha": lambda: srf.sparse_rf(X, Y, alpha=0.03, **FEW),
    "gaussian": lambda: srf.sparse_rf(X, Y, features="gaussian", alpha=0.03, **FEW),
    "steps": lambda: srf.sparse_rf(X, Y, features="perceptron", alpha=0.03, **FEW),
    "tanh": lambda: srf.mfga(X, Y, features=srf.RandomNeurons("tanh", 2), n_nonzero_coefs=10, **FEW),
    "relu": lambda: srf.mfga(X, Y, features=srf.RandomNeurons("relu", 3), n_nonzero_coefs=10, **FEW),
    "sin": lambda: srf.harfe(X, Y, n_nonzero_coefs=10, **FEW),
    "products": lambda: srf.mfga(X, Y, n_nonzero_coefs=10, rng=0),
    "cubes": lambda: srf.mfga(X, Y, features=srf.Taylor(3, 0.1), n_nonzero_coefs=10, rng=0),
    "linear": lambda: srf.drp(X, Y, alpha=0.01, rng=0),
    "two classes": lambda: srf.sparse_rf(X, np.where(Y > 0, "a", "b'"), loss="logistic", alpha=0.03, **FEW),
    "multinomial": lambda: srf.sparse_rf(X, np.digitize(Y, [-1, 1]), loss="multinomial", alpha=0.03, **FEW),
    "three classes": lambda: srf.sparse_rf(X, np.digitize(Y, [-1, 1]), loss="logistic", alpha=0.03, **FEW),
    "counts": lambda: srf.sparse_rf(X, np.exp(Y), loss="poisson", alpha=0.03, **FEW),
    "no term": lambda: srf.sparse_rf(X, Y, alpha=100.0, **FEW),
}


@pytest.fixture(scope="module")
def models():
    return {name: fit() for name, fit in FITS.items()}


def frame(n=500, seed=0):
    """Numbers with gaps and heavy tails, few levels and many, booleans; names that code must quote."""
    rng = np.random.default_rng(seed)
    numbers = np.exp(rng.standard_normal((n, 3)))
    numbers[rng.random((n, 3)) < 0.1] = np.nan
    data = pd.DataFrame(numbers, columns=["age", "he'ight", 'w"{u}%s'])
    data["c o"] = rng.choice(["a", "b'", '{c}"'], n)
    data.loc[3:9, "c o"] = None
    data["many"] = rng.integers(0, 60, n)
    data["flag"] = rng.random(n) > 0.5
    y = 3 * np.sin(2 * np.nan_to_num(np.log(numbers[:, 0]), nan=1.0)) + (data["c o"] == "a") + 0.5 * (data["many"] > 30)
    return data, y.to_numpy(float)


@pytest.fixture(scope="module")
def of_frame():
    """A model that sees columns in ranks, as levels, as means of levels, and whether they are missing."""
    data, y = frame()
    model = srf.sparse_rf(data, y, n_models=1, categorical=["many"], n_components=1000, rng=0)
    stage = model.features.stage
    assert len(np.unique(stage.kind)) == 3 and len(stage.knots) > 200
    return model, data


def run(model):
    names = {}
    exec(model.formula("python"), names)
    return names


def select(model, data):
    connection = sqlite3.connect(":memory:")
    functions = {"SQRT": np.sqrt, "EXP": np.exp, "COS": np.cos, "SIN": np.sin, "TANH": np.tanh}
    for name, function in functions.items():
        connection.create_function(name, 1, lambda x, f=function: None if x is None else float(f(x)))
    data.to_sql("data", connection, index=False)
    return pd.read_sql_query(model.formula("sql"), connection)


def assert_sql_predicts(model, data, rows):
    """Beside labels their probabilities: of two classes that of the second."""
    of_table = select(model, data)
    if model.classes is None:
        expected = model.predict(rows)
        names = ["prediction"] if expected.ndim == 1 else [f"prediction_{k}" for k in range(expected.shape[1])]
        assert list(of_table.columns) == names
        atol = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(of_table.to_numpy().squeeze(), expected, rtol=1e-9, atol=atol)
        return
    assert np.array_equal(of_table.pop("prediction").to_numpy(), model.predict(rows))
    p = model.predict_proba(rows)
    labels = model.classes.tolist() if p.shape[1] > 2 else model.classes.tolist()[1:]
    assert list(of_table.columns) == [f"probability_{label}" for label in labels]
    np.testing.assert_allclose(of_table.to_numpy(), p[:, -len(labels) :], rtol=0, atol=1e-12)


def assert_same(model, f, rows):
    expected = model.decision_function(rows)
    assert f.shape == expected.shape
    assert np.abs(f - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("name", FITS)
def test_code_computes_what_the_model_does(models, name):
    model = models[name]
    assert name != "auto" or 1 in model.features.stage.kind  # it sees columns clipped
    code = run(model)
    assert_same(model, code["decision_function"](X), X)
    assert_sql_predicts(model, pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]), X)
    if model.classes is None:
        np.testing.assert_allclose(code["predict"](X), model.predict(X), rtol=1e-9)
    else:
        np.testing.assert_array_equal(code["predict"](X), model.predict(X))
        np.testing.assert_allclose(code["predict_proba"](X), model.predict_proba(X), rtol=0, atol=1e-12)
    assert ("predict_proba" in code) == (model.loss in ("logistic", "multinomial"))


@pytest.mark.slow
def test_code_of_a_data_frame(of_frame):
    """Of rows it was not fitted to, with levels that it does not know, and as a dictionary of arrays."""
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


def test_code_of_an_array_of_categories_and_of_counts():
    Z = np.array([[1.0, "a"], [2.0, "b"], [None, "a"], [4.0, None], [5.0, "b"]] * 40, object)
    y = np.tile([1.0, 2.0, 0.0, 4.0, 3.0], 40)
    model = srf.sparse_rf(Z, y, alpha=0.05, categorical=[1], n_components=200, rng=0)
    assert_same(model, run(model)["decision_function"](Z), Z)
    counts = np.random.default_rng(1).poisson(1.0, (300, 6)).astype(float)
    y = np.minimum(counts[:, 0], 2) + (counts[:, 1] > 0)
    model = srf.sparse_rf(csr_array(counts), y, n_models=1, n_components=400, rng=0)
    assert_same(model, run(model)["decision_function"](counts), counts)


def test_sql_of_a_table_with_a_key_is_not_slow_where_subqueries_are_flattened(of_frame):
    """Each step is made once; before, a view was computed again in every term that saw it."""
    model, data = of_frame
    connection, calls = sqlite3.connect(":memory:"), []
    for name in ("SQRT", "EXP", "COS", "SIN", "TANH"):
        function = getattr(np, name.lower())
        connection.create_function(name, 1, lambda x, f=function, name=name: calls.append(name) or (x and float(f(x))))
    connection.execute("ATTACH ':memory:' AS lab")
    keyed = data[:40].assign(key=np.arange(40)[::-1])
    keyed.to_sql("the rows", connection, index=False)
    connection.execute('CREATE TABLE lab."the rows" AS SELECT * FROM "the rows"')
    code = model.formula("sql", table="lab.the rows", keep=["key"])
    of_table = pd.read_sql_query(code, connection).sort_values("key", ascending=False)
    np.testing.assert_allclose(of_table["prediction"], model.predict(data[:40]), rtol=1e-9, atol=1e-9)
    assert calls.count("SQRT") <= 40 * code.count("SQRT(") and code.count("SQRT(") <= 12 * len(model.features.stage)
    for how, error in (({"table": ""}, "table must have names"), ({"keep": "key"}, "keep must be a sequence")):
        with pytest.raises((ValueError, TypeError), match=error):
            model.formula("sql", **how)
    with pytest.raises(ValueError, match="table and keep are for language='sql'"):
        model.formula("python", table="rows")


def test_a_sum_of_many_is_not_deep():
    """SQLite bears a depth of a thousand."""
    wide = np.random.default_rng(0).standard_normal((100, 3000))
    model = srf.drp(wide, wide[:, 0], alpha=0.1, rng=0)
    code = model.formula("sql", digits=3)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE data ({', '.join(f'x{j}' for j in range(1500))})")
    depth = max(np.cumsum([(c == "(") - (c == ")") for c in code]))
    assert depth < 10 and max(len(part.split(" + ")) for part in code.split("(")) <= 70


def test_formulas_to_read(models, of_frame):
    text = models["auto"].formula(n_terms=2)
    left = len(models["auto"].features) - 2
    assert text.startswith("f = ") and f"({left} smaller terms)" in text and "where" in text
    latex = of_frame[0].formula("latex")
    assert latex.startswith("\\begin{aligned}") and latex.endswith("\\end{aligned}")
    bare = latex.replace("\\{", "").replace("\\}", "")
    assert bare.count("{") == bare.count("}")
    assert all(row.count("&") == 1 for row in models["three classes"].formula("latex").split("\\\\")[1:-1])
    assert "\\%" in latex and "age" in latex and models["linear"].formula("text").count("x") >= 4
    assert "f[2] = " in models["three classes"].formula() and "f_{\\text{2}} =" in models["three classes"].formula("latex")
    assert "predict gives b' where f > 0, else a" in models["two classes"].formula()
    assert "THEN 'b\'\'' WHEN f0 <= 0 THEN 'a' END AS prediction" in models["two classes"].formula("sql")
    assert '"probability_2"' in models["multinomial"].formula("sql")
    assert "|u|^2 = z(x0)^2 + z(x1)^2" in models["products"].formula()
    assert models["no term"].formula("python", n_terms=3, digits=3).count("f +=") == 0
    one = run(models["auto"])  # the largest terms alone differ
    names = {}
    exec(models["auto"].formula("python", n_terms=5), names)
    assert np.ptp(one["predict"](X) - names["predict"](X)) > 0


def test_what_formulas_leave_out_is_said(models):
    """Terms that are there for other outputs, or so small that no digit of the others tells of them; never in code."""
    model = models["multinomial"]
    few = model.coef.copy()
    few[0, 1:], few[1, 0] = 1e-14, 0.0
    model = replace(model, coef=few)
    first, second, _ = model.formula().split("f[")[1:]
    assert first.count("\n") == 3 and f"({few.shape[1] - 1} below the printed digits)" in first
    none = np.count_nonzero(few[1] == 0)
    assert f"({none} below the printed digits)" in second and f"\\dots \\text{{({none} below" in model.formula("latex")
    assert second.count("cos(") == few.shape[1] - none
    assert_same(model, run(model)["decision_function"](X), X)
    tight = model.formula(digits=14)
    assert tight.split("f[")[1].count("e-14") == few.shape[1] - 1


def test_views_are_defined(models, of_frame):
    """Each function of a formula is, or where it is said to be exact."""
    for model in (models["auto"], of_frame[0]):
        text = model.formula()
        assert ("soft(" in text) == ("soft(u, r) = " in text) and ("squeeze(" in text) == ("squeeze(u) = " in text)
        assert ("quantiles" in text) == ('formula("python")' in text)
    assert "(12 of " in of_frame[0].formula()


def test_soft_and_squeezed_views_are_as_the_formula_says(models):
    """What the lines say, computed."""
    model = models["auto"]
    text = model.formula(digits=17)
    soft = lambda u, r: np.where(np.abs(u) <= r, u, np.sign(u) * r * (2 - r / np.maximum(np.abs(u), r)))  # noqa: E731
    names = {"soft": soft, "squeeze": lambda u: u / np.sqrt(1 + (u / 3) ** 2)}
    stage, n = model.features.stage, 0
    shown = encode(model, X)
    for v, view in WrittenModel.from_model(model).encodings.items():
        label = f"clip(x{view.column})" if view.squeezed else f"z(x{view.column})"
        if view.knots is None:
            said = next(line for line in text.splitlines() if line.strip().startswith(label + " = ")).split(" = ")[1]
            u = eval(said, names | {f"x{view.column}": X[:, view.column]})
            # the reach is printed to three digits
            np.testing.assert_allclose(u, shown[:, v], rtol=6e-3, err_msg=label)
            n += 1
    assert n and len(stage.kind)


@pytest.mark.parametrize(
    "wrong", [{"language": "C"}, {"n_terms": -1}, {"digits": 0}, {"n_terms": 1.5}], ids=lambda wrong: next(iter(wrong))
)
def test_formula_refuses(models, wrong):
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        models["linear"].formula(**wrong)


def brute(f, rows, background):
    """Shapley values by their definition: all orders, all background rows."""
    d, worth = rows.shape[1], {}

    def v(inputs):
        if inputs not in worth:
            mixed = np.repeat(background[None], len(rows), axis=0)
            mixed[:, :, list(inputs)] = rows[:, None, list(inputs)]
            worth[inputs] = f(mixed.reshape(-1, d)).reshape(len(rows), len(background), -1).mean(axis=1)
        return worth[inputs]

    orders = list(permutations(range(d)))
    total = np.zeros((len(rows), d, v(()).shape[1]))
    for order in orders:
        for k, j in enumerate(order):
            total[:, j] += v(tuple(sorted(order[: k + 1]))) - v(tuple(sorted(order[:k])))
    return (total / len(orders)).squeeze()


@pytest.mark.parametrize("most_exact", [10, 1])
@pytest.mark.parametrize("name", FITS)
def test_shapley_values(models, name, most_exact, monkeypatch):
    """Against their definition; where orders are sampled, near it, and adding up all the same."""
    monkeypatch.setattr(games, "MOST_EXACT", most_exact)
    model, rows, background = models[name], X[:12], X[50:80]
    values = model.shapley(rows, background, n_permutations=200, rng=0)
    expected = brute(model.decision_function, rows, background)
    size = np.abs(expected).max()
    assert values.shape == expected.shape and np.abs(values - expected).max() <= (1e-12 if most_exact == 10 else 0.06) * size
    f, mean = model.decision_function(rows), model.decision_function(background).mean(axis=0)
    assert np.abs(values.sum(axis=1) - (f - mean)).max() < 1e-12 * (np.abs(f).max() + 1)


def test_shapley_values_of_a_frame(of_frame):
    """An input is a column, whatever views there are of it; and the background may be chosen by the seed."""
    model, data = of_frame
    values = model.shapley(data[:20], data[100:150])
    f, mean = model.decision_function(data[:20]), model.decision_function(data[100:150]).mean()
    np.testing.assert_allclose(values.sum(axis=1), f - mean, atol=1e-10)
    same = data[100:101]
    assert np.abs(model.shapley(same, same)).max() < 1e-12
    first, again = (model.shapley(data, rng=3) for _ in range(2))
    assert first.tobytes() == again.tobytes() and np.isfinite(first).all()


def test_independent_inputs_are_exact(models):
    """Products of many inputs: where the background's inputs are independent, there is nothing left to sample."""
    grid = np.stack(np.meshgrid(*[[-1.0, 0.5]] * 4), axis=-1).reshape(-1, 4)
    term = next(term for term in terms_of(models["gaussian"].features) if len(term.columns) == 4)
    model = models["gaussian"]
    U, B = encode(model, X[:10]), encode(model, grid)
    exact = games.shares(4) @ games.exact_worth(term, U, B)
    np.testing.assert_allclose(games.independent_values(term, term.parts(U), term.parts(B).mean(axis=1)), exact, atol=1e-13)
    np.testing.assert_allclose(games.sampled_values(term, [np.arange(4)], U, B), exact, atol=1e-13)


def sampler(f, rows, background, n_permutations, rng):
    """The generic one: along an order, a background row becomes the row, input by input."""
    n, d = rows.shape
    total = np.zeros((n, d))
    for _ in range(n_permutations):
        mixed = background[rng.integers(0, len(background), n)].copy()
        order, last = rng.permutation(d), f(mixed)
        for j in order:
            mixed[:, j] = rows[:, j]
            last, before = f(mixed), last
            total[:, j] += last - before
    return total / n_permutations


def test_the_generic_sampler_comes_to_the_same(models):
    model = models["auto"]
    exact = model.shapley(X[:40], X[50:250])
    sampled = sampler(model.decision_function, X[:40], X[50:250], 600, np.random.default_rng(0))
    assert np.sqrt(np.mean((sampled - exact) ** 2)) < 0.1 * exact.std()


def test_importances_of_a_known_function():
    """y = 2 a - b + c d, all uniform: of variance 1/3 (4 + 1) + 1/9; the Shapley values of c and d are half of c d each."""
    Z = np.random.default_rng(0).uniform(-1, 1, (2000, 5))
    y, features = 2 * Z[:, 0] - Z[:, 1] + Z[:, 2] * Z[:, 3], srf.Taylor(2, 1e-3)
    model = srf.mfga(Z, y, features=features, n_nonzero_coefs=8, alpha=1e-12, rng=0)
    whole = 5 / 3 + 1 / 9
    known = {
        "shapley": ([1, 1 / 2, 1 / 8, 1 / 8, 0], 7 / 4, 0.03),
        "variance": ([4 / 3, 1 / 3, 1 / 18, 1 / 18, 0], whole, 0.05),
        "main": ([4 / 3, 1 / 3, 0, 0, 0], whole, 0.03),
        "total": ([4 / 3, 1 / 3, 1 / 9, 1 / 9, 0], whole, 0.03),
    }
    for measure, (value, of, error) in known.items():
        worth = model.importances(Z, Z, measure=measure)
        np.testing.assert_allclose(worth.share, np.divide(value, of), atol=error, err_msg=measure)
        np.testing.assert_allclose(worth.value, worth.share * of, rtol=0.1, atol=1e-3, err_msg=measure)
        assert worth.order[:2].tolist() == [0, 1] and str(worth).splitlines()[1].split()[0] == "x0"
        if measure in ("shapley", "variance"):
            assert abs(worth.share.sum() - 1) < 1e-12


def test_importances_of_all_kinds(models, of_frame):
    for name, model in models.items():
        for measure in importances.MEASURES:
            worth = model.importances(X, measure=measure, n_rows=100)
            assert np.isfinite([worth.share, worth.value]).all(), (name, measure)
            assert (worth.share >= 0).all() or measure == "variance"
            if measure in ("shapley", "variance"):
                assert abs(worth.share.sum() - (name != "no term")) < 1e-9, (name, measure)
    worth = of_frame[0].importances(of_frame[1])
    assert worth.names[3] == "c o" and worth.share[3] > 0.05


def test_importances_are_the_mean_sizes_of_shapley_values(models):
    """Of several outputs their sum, each in its own units."""
    for name in ("auto", "three classes"):
        worth = models[name].importances(X, X[:50])
        values = np.atleast_3d(models[name].shapley(X, X[:50]))
        np.testing.assert_allclose(worth.value, np.abs(values).mean(axis=0).sum(axis=1), rtol=1e-9)


def test_what_shapley_values_refuse(models):
    model = models["linear"]
    with pytest.raises(ValueError, match="background must have at least one row"):
        model.shapley(X, X[:0])
    with pytest.raises(ValueError, match="n_permutations"):
        model.shapley(X, n_permutations=1)
    with pytest.raises(ValueError, match="background must be given for a single row"):
        model.shapley(X[:1])
    with pytest.raises(ValueError, match="4 columns"):
        model.shapley(X, X[:, :3])
    with pytest.raises(ValueError, match="n_rows"):
        model.importances(X, n_rows=1)
    with pytest.raises(ValueError, match="measure must be one of 'shapley', 'variance'"):
        model.importances(X, measure="gain")
    assert model.shapley(X[:0], X).shape == (0, 4)


def test_summary(models, of_frame):
    model, data = of_frame
    page = model.summary(data, n_terms=2, rng=0)
    assert page.n_terms == len(model.features) and page.info is model.info and len(page.terms) == 2
    assert page.terms[0][2] >= page.terms[1][2] and "held-out" in str(page) and "c o" in str(page)
    assert [row.share for row in page.inputs] == sorted((row.share for row in page.inputs), reverse=True)
    printed = str(page).splitlines()[5 : 5 + len(page.inputs)]
    assert [row.name for row in page.inputs] == [line.split("  ")[0] for line in printed]
    for model in models.values():
        page = model.summary()
        assert page.importances is None and sum(page.kinds.values()) == page.n_terms
        assert ("inputs that terms see" in str(page)) == bool(page.inputs)
        assert all(np.isnan(row.share) for row in page.inputs)
        assert " inputs)" not in str(page) and all(name.count(",") <= 2 for name, _, _ in page.terms)
    assert "2 classes (a, b'; f > 0 means b')" in str(models["two classes"].summary())
    assert "of f[1]" in str(models["three classes"].summary()) and "of f[" not in str(models["two classes"].summary())
    with pytest.raises(ValueError, match="n_terms"):
        model.summary(n_terms=-1)


def test_the_largest_terms_of_several_kinds_have_their_own_names(rng):
    """As the formula has them, in whatever order their blocks are."""
    X = rng.standard_normal((300, 6))
    y = np.sign(X[:, 0]) + np.cos(3 * X[:, 1]) + 2 * np.sign(X[:, 2]) + np.cos(2 * X[:, 3] + 1)
    some = [srf.RandomNeurons("cos", order=1), srf.RandomNeurons("sign", order=1)]
    model = srf.mfga(X, y, features=some, n_components=300, n_nonzero_coefs=12, rng=0)
    assert len(model.features.blocks) == 2
    by_position = {term.position: term for term in terms_of(model.features)}
    for n_terms in (3, 7, 12):
        page = model.summary(n_terms=n_terms)
        largest = np.argsort(-np.abs(model.coef), kind="stable")[:n_terms]  # none of these exceeds 1
        expected = [f"{by_position[k].activation}(x{by_position[k].columns[0]})" for k in largest.tolist()]
        assert [name for name, _, _ in page.terms] == expected
        np.testing.assert_array_equal([coef[0] for _, coef, _ in page.terms], model.coef[largest])


def test_a_summary_of_a_constant_says_so(rng):
    X = rng.standard_normal((40, 3))
    model = srf.sparse_rf(X, np.full(40, 2.0), rng=0)
    assert len(model.coef) == 0 and "no term predicts held-out rows better than a constant" in str(model.summary(X))


def test_a_summary_of_many_outputs_and_inputs_is_short():
    """Of 19 classes and 30 inputs: where intercepts lie, which classes as far as a line goes, and the inputs that matter."""
    Z = np.random.default_rng(0).standard_normal((400, 30))
    labels = np.array([f"a class of number {k}" for k in range(19)])[np.digitize(Z.sum(axis=1), np.linspace(-9, 9, 18))]
    model = srf.drp(Z, labels, loss="logistic", alpha=0.1, rng=0)
    page = model.summary(Z, n_terms=0)
    lines = str(page).splitlines()
    low, high = np.argsort(model.intercept)[[0, -1]]
    said = [f"{model.intercept[k]:.4g} of f[{model.classes[k]}]" for k in (low, high)]
    assert lines[1].endswith(f", intercept from {said[0]} to {said[1]}")
    assert lines[0].startswith("SparseModel: 19 classes (a class of number 0, ") and max(map(len, lines)) < 160
    more = sum(row.share for row in page.inputs[20:])
    assert f"and 10 more, together {100 * more:.1f} %" in lines and len(page.inputs) == 30
    few = srf.drp(Z, np.stack([Z[:, 0], Z[:, 1] + 1], axis=1), alpha=0.1, rng=0)
    assert "intercept {:.4g} of f_0, {:.4g} of f_1\n".format(*few.intercept) in str(few.summary())


def test_the_error_of_held_out_rows_is_in_units_of_y(models):
    """For the squared loss, of which half the square is kept; of others their loss; nothing that is not known."""
    model = models["auto"]
    assert f"held-out rows {np.sqrt(2 * model.info.validation_loss):.4g} (units of y)" in str(model.summary())
    other = replace(model, loss="huber")
    assert f"loss of held-out rows {model.info.validation_loss:.4g}" in str(other.summary())
    for unknown in (None, np.nan):
        page = str(replace(model, info=replace(model.info, validation_loss=unknown)).summary())
        assert "held-out" not in page and "nan" not in page and "None" not in page


def test_a_share_of_nothing_has_no_sign():
    one = importances.Importances("variance", ("a", "b"), *[np.array([-1e-9, 1.0])] * 2)
    assert "-0.0 %" not in str(one) and "0.0 %" in str(one)


def assert_same_model(again, model):
    for mine, other in ((again.coef, model.coef), (np.asarray(again.intercept), np.asarray(model.intercept))):
        assert mine.tobytes() == other.tobytes() and mine.shape == other.shape
    assert again.support.tobytes() == model.support.tobytes() and again.info == model.info
    assert srf.features.are_same(again.features, model.features)
    assert (again.classes is None) == (model.classes is None) or again.classes.tolist() == model.classes.tolist()


def test_json_reads_back_to_the_same_bits(models, of_frame):
    for model in [*models.values(), of_frame[0]]:
        text = model.to_json()
        again = srf.SparseModel.from_json(text)
        assert_same_model(again, model)
        assert again.to_json() == text and not again.coef.flags.writeable
    assert again.decision_function(of_frame[1]).tobytes() == of_frame[0].decision_function(of_frame[1]).tobytes()


def listed(name, **changes):
    return lambda content: content["arrays"][name].update(changes)


HOSTILE = {
    "no arrays": lambda c: c.pop("arrays"),
    "a format from tomorrow": lambda c: c.update(format=FORMAT + 1),
    "an array too many": lambda c: c["arrays"].update(more=c["arrays"]["coef"]),
    "an array that lacks": lambda c: c["arrays"].pop("support"),
    "objects": listed("coef", dtype="|O8"),
    "a dtype that is none": listed("coef", dtype="<f3"),
    "a shape of another size": listed("coef", shape=[10**9]),
    "a negative shape": listed("coef", shape=[-1]),
    "text for numbers": listed("coef", values=["1"]),
    "lists for numbers": listed("coef", values=[[1.0]]),
    "booleans for numbers": listed("support", values=[True]),
    "a number too large": listed("support", values=[2**70], shape=[1]),
    "a number that rounds": listed("objective", values=[2**60 + 1], shape=[1]),
    "text that does not fit": listed("coef", dtype="<U1", values=["ab"], shape=[1]),
    "text wider than the text": listed("coef", dtype="<U900000000", values=["a"], shape=[1]),
    "an input that is not there": lambda c: c.update(n_features_in=1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_json_is_not_trusted(models, name):
    content = json.loads(models["gaussian"].to_json())
    HOSTILE[name](content)
    with pytest.raises(ValueError, match=r"^text "):
        srf.SparseModel.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"format": 1, "arrays": {"a": NaN}}', "[" * 10**5, '{"format": true}']
)
def test_text_that_is_no_model(text):
    with pytest.raises(ValueError, match="text"):
        srf.SparseModel.from_json(text)
    with pytest.raises(TypeError, match="text must be a string"):
        srf.SparseModel.from_json(text.encode())


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("alpha", [None, 0.03])
def test_terms_of_few_inputs(order, alpha):
    """Also after moves that join features; but for linear functions, which are sums over inputs."""
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    few = {} if alpha else {"n_models": 1}
    model = srf.sparse_rf(X[5:], y[5:], alpha=alpha, max_order=order, n_components=1000, rng=0, **few)
    orders = [len(term.columns) for term in terms_of(model.features) if term.activation != "identity"]
    assert max(orders) == order
    told = 1 - np.var(model.predict(X[5:]) - y[5:]) / y[5:].var()
    assert (told > 0.8) == (order == 2)
    groups = effects.groups_of(model)
    assert max(map(len, groups)) == order


def test_max_order_refuses():
    for order, how in ((0, {}), (1.5, {}), (2, {"features": "gaussian"})):
        with pytest.raises((ValueError, TypeError), match="max_order"):
            srf.sparse_rf(X, Y, max_order=order, alpha=0.1, **how)


def test_max_order_of_a_path():
    one, other = (
        srf.sparse_rf(X, Y, alpha=0.05, max_order=1, **FEW),
        srf.sparse_rf_path(X, Y, alphas=[0.05], max_order=1, **FEW)[0],
    )
    assert one.coef.tobytes() == other.coef.tobytes()
    assert max(len(term.columns) for term in terms_of(other.features)) == 1


def test_no_limit_of_the_order_is_the_same_as_one_of_all():
    one, other = (srf.sparse_rf(X, Y, alpha=0.05, max_order=order, **FEW) for order in (None, 4))
    assert one.coef.tobytes() == other.coef.tobytes()


def test_a_projection_finds_the_sum_that_is_there():
    """f = sin 3a + b c + noise of all four: the curve and the surface, and their shares."""
    Z = np.random.default_rng(0).uniform(-1, 1, (3000, 4))
    y = np.sin(3 * Z[:, 0]) + 2 * Z[:, 1] * Z[:, 2]
    model = srf.sparse_rf(Z, y, features="gaussian", alpha=1e-3, n_components=2000, rng=0)
    parts = approximate(model, read_numbers(model, Z), model.importances(Z).share, 3)
    assert parts.pairs[0] == (1, 2)
    x = np.linspace(-0.9, 0.9, 20)
    assert np.abs(parts.at((0,), x[:, None]) - np.sin(3 * x)).max() < 0.15
    points = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
    error = np.abs(parts.at((1, 2), points) - 2 * points.prod(axis=1))
    assert error.mean() < 0.1 and error.max() < 0.6
    for part, known in {(0,): np.sin(3 * Z[:, 0]), (1, 2): 2 * Z[:, 1] * Z[:, 2]}.items():
        assert np.abs(parts.at_rows[part] - known).mean() < 0.1
    assert 0.93 < parts.r2 < 1.01


def test_a_projection_is_not_taken_in_by_its_own_freedom():
    """A function of all inputs together, on few rows: what a sum tells of it is little, and it says so."""
    Z = np.random.default_rng(0).choice([-1.0, 1.0], (150, 6)) * np.random.default_rng(1).uniform(0.5, 1, (150, 6))
    y = Z.prod(axis=1)
    model = srf.sparse_rf(Z, y / y.std(), features="gaussian", gamma=3.0, alpha=1e-4, n_components=4000, rng=0)
    assert model.predict(Z).std() > 0.3
    assert approximate(model, Z, np.ones(6), 5).r2 < 0.3


@pytest.mark.slow
def test_effects_of_any_model(of_frame, models):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model, data = of_frame
    figure = plot.effects(model, data, n_panels=5)
    axes = [ax for ax in figure.axes if ax.get_xlabel()]
    assert len(axes) <= 5 and "projection" in figure.get_suptitle()
    assert {ax.get_xlabel().split(",")[0] for ax in axes} <= set(data.columns)
    levels = next(ax for ax in axes if ax.get_xlabel() == "c o")
    assert [label.get_text() for label in levels.get_xticklabels()] == ["a", "b'", '{c}"']
    for name in ("auto", "steps", "cubes", "linear", "two classes", "no term"):
        figure = plot.effects(models[name], X, n_panels=3, n_points=8)
        assert ("Parts" in figure.get_suptitle()) == (name in ("linear", "no term")), name
    plt.close("all")


def test_a_model_of_order_two_is_shown_whole():
    """A linear function of all inputs beside pairs, through a stage: the parts and a constant are the model."""
    features = srf.RandomNeurons("sin", 2).draw(40, 4, 0).concat(srf.Linear().draw(None, 4))
    for model in srf.mfga(X, Y, features=features, n_nonzero_coefs=20, rng=0), srf.drp(X, Y, alpha=0.01, rng=0):
        grids = {j: np.linspace(-0.9, 0.9, 7) for j in range(4)}
        parts = effects.parts_of(model, effects.groups_of(model), grids)
        points = RNG.integers(0, 7, (50, 4))
        f = model.predict(np.stack([grids[j][points[:, j]] for j in range(4)], axis=1))
        assert np.ptp(f - sum(values[tuple(points[:, j] for j in inputs)] for inputs, values in parts.items())) < 1e-10
        whole = effects.Effects.from_model(model, X, np.ones(4), 7, 12)
        assert whole.is_whole and abs(whole.r2(list(whole.values)) - 1) < 1e-12
