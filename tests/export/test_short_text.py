"""Formulas, summaries and what else prints fit a screen."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf._base.screen import WIDTH, folded, one_line, short_name, short_names
from sparserf.export.short_text import MOST_CHARACTERS, MOST_LINES
from sparserf.features import LinearBlock, NeuronBlock

from ..fitted_models import FITS, RNG, X, Y

HARFE = {"n_nonzero_coefs": 12, "n_components": 200, "rng": 0}


def wide(n=300):
    """Return a data frame of 73 columns, of words and numbers with gaps, and a target."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(n, 40)), columns=[f"number {j}" for j in range(40)])
    data[rng.random((n, 40)) < 0.03] = np.nan
    for j in range(33):
        data[f"words of column {j}"] = rng.choice(["one", "two words", "three, or more"], n)
    y = data.iloc[:, :20].fillna(0).sum(axis=1) + (data.iloc[:, 40:60] == "one").sum(axis=1)
    return data, y.to_numpy() + rng.normal(size=n)


def hostile(n=300):
    """Return a data frame whose names and levels are long, alike or of several lines, with dates
    and gaps, and a target."""
    rng = np.random.default_rng(1)
    column = "How satisfied are you, on a scale, with {} that we offer, taken all together?"
    levels = [f"a level of many words, number {k}, which ends as all others do" for k in range(30)]
    data = pd.DataFrame(
        {
            column.format("the prices"): rng.normal(size=n),
            column.format("the times"): np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "line\nof\n" + "x" * 300: rng.normal(size=n),
            "level": rng.choice(levels, n),
            "ends\n\tof lines": rng.choice(["a\nb\nc" * 30, "d", "{e}, 'f'"], n),
            "time": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    numbers = data.iloc[:, :3].fillna(0).to_numpy()
    y = numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + data["level"].isin(levels[:9])
    return data, y.to_numpy(float) + np.cos(data["time"].dt.day_of_year.to_numpy() / 58)


def labels(y, n_classes):
    """Return long labels of classes, by the quantiles of y."""
    edges = np.quantile(y, np.arange(1, n_classes) / n_classes)
    return np.array([f"class {'of a long name ' * 9}{k}" for k in range(n_classes)])[
        np.digitize(y, edges)
    ]


CASES = {
    "wide": lambda: (srf.sparse_rf(*wide(), effort=0.1, rng=0), wide()[0]),
    "wide rules": lambda: (
        srf.sparse_rf(*wide(), features=srf.Rules(max_conditions=8), alpha=0.01, rng=0),
        wide()[0],
    ),
    "wide readable": lambda: (
        srf.prune(
            srf.sparse_rf(*wide(), effort=0.1, rng=0), wide()[0], max_terms=8, readable=True
        ),
        wide()[0],
    ),
    "hostile": lambda: (srf.sparse_rf(*hostile(), effort=0.1, rng=0), hostile()[0]),
    "hostile rules": lambda: (
        srf.sparse_rf(*hostile(), features=srf.Rules(), alpha=0.01, rng=0),
        hostile()[0],
    ),
    "hostile two classes": lambda: (
        srf.sparse_rf(
            hostile()[0], labels(hostile()[1], 2), loss="logistic", alpha=0.03, n_components=200
        ),
        hostile()[0],
    ),
    "many classes": lambda: (srf.drp(X, labels(Y, 30), loss="logistic", alpha=0.1, rng=0), X),
    "many outputs": lambda: (
        srf.harfe(X, np.stack([Y * k for k in range(25)], axis=1), alpha=1e-3, **HARFE),
        X,
    ),
    "many columns": lambda: (
        srf.drp(RNG.normal(size=(60, 3000)), np.arange(60.0), alpha=0.1, scale=None, rng=0),
        np.zeros((2, 3000)),
    ),
    "dense weights": lambda: (
        srf.mfga(
            np.tile(X, 20), Y, features=srf.RandomNeurons("tanh"), n_nonzero_coefs=40, alpha=1e-3,
            n_components=200, rng=0,
        ),
        np.tile(X, 20),
    ),
    "taylor": lambda: (
        srf.mfga(np.tile(X, 2), Y, features=srf.Taylor(4), n_nonzero_coefs=9, alpha=1e-2, rng=0),
        np.tile(X, 2),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    """The models of `CASES` with their rows, each fitted when it is first asked for."""

    class Cases(dict):
        def __missing__(self, name):
            self[name] = CASES[name]()
            return self[name]

    return Cases()


def widest(text):
    return max(map(len, text.split("\n")))


def assert_on_a_screen(model, rows):
    """Check all that a model prints."""
    for digits in (None, 17):
        text = model.formula(digits=digits)
        assert len(text) <= MOST_CHARACTERS and text.count("\n") < MOST_LINES
        assert widest(text) <= WIDTH == 100
    assert widest(model.formula(n_terms=7)) <= WIDTH
    for page in (model.summary(), model.summary(rows, n_terms=3)):
        assert widest(str(page)) <= WIDTH and str(page).count("\n") < 90
    assert widest(repr(model)) <= WIDTH and widest(repr(model.info)) <= WIDTH


@pytest.mark.parametrize("name", FITS)
def test_all_kinds_of_models_fit_a_screen(models, name):
    assert_on_a_screen(models[name], X[:50])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_models_of_many_columns_and_long_names_fit_a_screen(cases, name):
    model, rows = cases[name]
    assert_on_a_screen(model, rows[:20])


def test_a_formula_says_how_many_terms_it_leaves_out_and_what_they_are_worth(models):
    """Of each output the largest terms are written, and the others counted, with their share of all
    sizes."""
    model = models["multinomial"]
    sizes = np.abs(model.coef) * model.features.largest_value
    for n_terms in (0, 1, 3):
        outputs = model.formula(n_terms=n_terms).split("\nwhere")[0].split("f[")[1:]
        assert len(outputs) == len(sizes)
        for text, size in zip(outputs, sizes, strict=True):
            largest = np.sort(size)[::-1]
            share = 100 * largest[n_terms:].sum() / largest.sum()
            n_left = len(size) - n_terms
            assert f"... ({n_left} smaller terms, {share:.1f} % of what all can add)" in text
            written = [float(value) for value in re.findall(r"[+-] ([\d.e-]+) cos", text)]
            np.testing.assert_allclose(written, largest[:n_terms], rtol=1e-3)
    text = models["auto"].formula()
    assert 5 <= len(re.findall(r"\n  [+-] \d", text)) <= 30 and "smaller terms" in text


def test_a_model_that_fits_a_screen_is_written_whole(models):
    assert "..." not in models["linear"].formula() + models["sin"].formula()
    assert models["linear"].formula() == models["linear"].formula(n_terms=None)


def linear(encoder, ranges, weights):
    """Return the model of one linear function of all columns."""
    features = srf.FeatureSet([LinearBlock(1.0, weights[None])], len(weights), None, encoder)
    info = srf.FitInfo(1, True, (0.0,), 0.0, 1, 1, 0.1)
    one = np.ones(1), 2.5, np.zeros(1, int)
    return srf.SparseModel(*one, features, "squared", None, info, ranges=ranges)


@pytest.mark.parametrize("is_scaled", [True, False])
def test_a_long_linear_function_is_a_table_of_what_its_columns_add(rng, is_scaled):
    """The numbers of the table are those of the function, its shares those of its variance where
    columns are independent; and the parts that are left out are counted with theirs."""
    Z = rng.uniform(-1, 1, (20_000, 60)) * np.arange(1, 61)
    weights = rng.permutation(np.linspace(-1, 1, 60)) / (1 if is_scaled else np.arange(1, 61))
    fitted = srf.drp(Z, Z[:, 0], alpha=0.1, scale="robust", rng=0)
    encoder = fitted.features.encoder if is_scaled else None
    model = linear(encoder, fitted.ranges, weights)
    u = Z if encoder is None else encoder.transform(Z)
    text = model.formula(n_terms=None, digits=12)
    row = r"^    ([+-]) ([\d.e-]+) +(?:z\()?x(\d+)\)? +([\d.]+) %$"
    rows = re.findall(row, text, re.MULTILINE)
    assert len(rows) == 60
    f = 2.5 + sum(float(sign + number) * u[:, int(j)] for sign, number, j, _ in rows)
    np.testing.assert_allclose(f, model.predict(Z), rtol=1e-9, atol=1e-9)
    shares = np.array([float(share) for *_, share in rows])
    variances = np.array([np.var(weights[int(j)] * u[:, int(j)]) for *_, j, _ in rows])
    np.testing.assert_allclose(shares, 100 * variances / variances.sum(), rtol=0.05, atol=0.06)
    assert shares.tolist() == sorted(shares, reverse=True)

    short = model.formula()
    few = re.findall(r"^    [+-] .* ([\d.]+) %$", short, re.MULTILINE)
    n_left, share = re.search(r"\((\d+) smaller parts\) +([\d.]+) %", short).groups()
    assert 5 <= len(few) == 60 - int(n_left)
    assert abs(sum(map(float, few)) + float(share) - 100) < 0.06 * (len(few) + 1)
    assert "as of independent columns" in short


def test_constant_columns_and_offsets_of_a_long_sum():
    """Columns that do not vary are the last parts of a sum; its constant stays."""
    ranges = {j: (0.0, float(j >= 50)) for j in range(60)}
    model = linear(None, ranges, np.ones(60))
    block = NeuronBlock("identity", 1.0, np.ones((1, 60)), np.array([0.25]))
    for features in (model.features, srf.FeatureSet([block], 60)):
        text = replace(model, features=features).formula()
        shown = re.findall(r"^    \+ 1 +x(\d+) +10.0 %$", text, re.MULTILINE)
        assert shown == [str(j) for j in range(50, 60)]
        assert re.search(r"\(36 smaller parts\) +0.0 %", text)
        assert ("    + 0.25\n" in text) == (features is not model.features)


def test_a_function_of_many_inputs_is_written_with_the_largest(rng):
    """Of a long sum within a function the largest parts are written, the constant too."""
    weights = np.linspace(0.01, 1, 60)[None]
    features = srf.FeatureSet([NeuronBlock("cos", 1.0, weights, np.array([0.25]))], 60)
    model = replace(linear(None, {}, weights[0]), features=features)
    (shown,) = re.findall(r"cos\((.*)\)$", " ".join(model.formula().split("where")[0].split()))
    parts = re.findall(r"([\d.]+) x(\d+)", shown)
    n_left, share = re.search(
        r"\((\d+) smaller, ([\d.]+) % of the variation\) \+ 0.25$", shown
    ).groups()
    assert [int(j) for _, j in parts] == list(range(59, 59 - len(parts), -1)) and len(parts) >= 3
    assert int(n_left) == 60 - len(parts)
    left = np.square(weights[0, : int(n_left)]).sum() / np.square(weights).sum()
    assert abs(float(share) - 100 * left) < 0.06
    assert model.formula(n_terms=None).count(" x") == 60


def test_names_are_cut_but_told_apart():
    """A formula that is short tells long names and levels that are alike apart; the whole one has
    them as they are."""
    assert short_name("a" * 40) == "a" * 40 and len(short_name("a" * 41)) == 40
    assert one_line("a\nb\tc\u2028") == "a\\nb\\tc\\u2028"
    names = {3: "b" * 30 + "1" + "c" * 30, 5: "b" * 30 + "2" + "c" * 30, 6: "d"}
    short = short_names(names)
    assert len(set(short.values())) == 3 and short[3].endswith("(3)") and short[6] == "d"


@pytest.mark.slow
def test_the_whole_formula_has_the_names_as_they_are(cases):
    model, rows = cases["hostile"]
    whole = model.formula(n_terms=None)
    flat = " ".join(whole.split())
    for name in rows.columns[:2]:
        assert name in flat and name not in " ".join(model.formula().split())


def test_lines_fold_at_spaces():
    words = "  + " + " ".join(["word"] * 100)
    lines = folded(words).split("\n")
    assert max(map(len, lines)) <= WIDTH and all(line.startswith("      ") for line in lines[1:])
    assert " ".join(folded(words).split()) == " ".join(words.split())
    short = folded("x" * 1000, 3).split("\n")
    assert len(short) == 3 and max(map(len, short)) <= WIDTH and short[-1].endswith("...")
    assert folded("x" * 1000) == "x" * 1000


@pytest.mark.every_case
@pytest.mark.parametrize("n_terms", ["all", -1, 1.5, True])
def test_a_bad_number_of_terms_is_named(models, n_terms):
    with pytest.raises((ValueError, TypeError), match="n_terms"):
        models["linear"].formula(n_terms=n_terms)
