"""Few readable rules: the boxes on a grid that plain orthogonal least squares takes for a model's
predictions, which another seed takes, too."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.algorithms.boxes_on_grid import MOST_BOXES, N_BINS, SAME_GAIN

from ..conftest import friedman

RNG = np.random.default_rng(0)
N = 500
X = np.round(RNG.normal(size=(N, 4)), 2)
Y = 3.0 * (X[:, 0] > 0.3) + 2.0 * ((X[:, 1] <= 0.5) & (X[:, 2] > -0.4)) + 0.1 * X[:, 3]


def fit(X=X, y=Y, seed=0, **others):
    call = {"features": srf.Rules(), "alpha": 0.01, "n_components": 1200, "rng": seed}
    return srf.sparse_rf(X, y, **call | others)


MODEL = fit()


def readable(model, X, max_terms=4, **others):
    return srf.prune(model, X, max_terms=max_terms, readable=True, **others)


def ends_of(model):
    """Return the ends of each rule: (input, low, high) of each input that it sees."""
    (block,) = model.features.blocks
    return [
        [(v, low, high) for v, low, high, is_used in zip(*each, strict=True) if is_used]
        for each in zip(block.inputs, block.low, block.high, block.is_used, strict=True)
    ]


def n_ends(model):
    return [
        int(np.isfinite([end for _, *ends in rule for end in ends]).sum())
        for rule in ends_of(model)
    ]


def texts_of(model):
    """Return what each rule asks."""
    lines = model.formula(n_terms=None).replace("\n      ", " ").splitlines()[1:]
    return sorted(line.split(" if ")[1] for line in lines)


def candidates(X, edges):
    """Yield the rows of all boxes, in the order in which they are preferred."""
    for j, own in enumerate(edges):
        yield from (X[:, j] <= t for t in own)
    for j, own in enumerate(edges):
        yield from ((low < X[:, j]) & (X[:, j] <= t) for low in own for t in own if low < t)
    for i in range(len(edges)):
        for j in range(i + 1, len(edges)):
            for one in (False, True):
                for other in (False, True):
                    for s in edges[i]:
                        for t in edges[j]:
                            yield ((X[:, i] > s) == one) & ((X[:, j] > t) == other)


@pytest.mark.parametrize("weighted", [False, True])
def test_plain_orthogonal_least_squares_takes_the_same(weighted):
    """By one `lstsq` for each candidate of each step, on columns of few values."""
    X = RNG.integers(0, 4, (80, 3)).astype(float)
    y = (X[:, 0] > 1) * X[:, 1] + (X[:, 2] > 2) + 0.1 * RNG.normal(size=80)
    h = RNG.uniform(0.5, 2, 80) if weighted else np.ones(80)
    h /= h.sum()
    model = fit(X, y, sample_weight=h)
    small = readable(model, X, 3, sample_weight=h)
    inside = np.array(list(candidates(X, [[0.5, 1.5, 2.5]] * 3)), float)
    root, f, taken = np.sqrt(h), model.predict(X), [np.ones(80)]

    def left(columns):
        A = root[:, None] * np.column_stack(columns)
        return ((A @ np.linalg.lstsq(A, root * f)[0] - root * f) ** 2).sum()

    for _ in range(3):
        gain = left(taken) - np.array([left([*taken, each]) for each in inside])
        taken.append(inside[np.argmax(gain >= (1 - SAME_GAIN) * gain.max())])
    chosen = small.features.transform(X) != 0
    assert np.array_equal(np.array(taken[1:]) != 0, chosen.T)
    np.testing.assert_allclose(((small.predict(X) - f) ** 2) @ h, left(taken), rtol=1e-9)


def test_rules_of_clear_steps_come_back():
    """By their text, over seeds and over samples of the rows."""
    whole = [fit(seed=seed) for seed in range(5)]
    few = [texts_of(readable(model, X)) for model in whole]
    assert all(each == few[0] for each in few)
    assert len(few[0]) == 4 and any("x0" in each for each in few[0])
    drawn = [texts_of(srf.prune(model, X, max_terms=4)) for model in whole]
    assert not all(each == drawn[0] for each in drawn)


@pytest.mark.nightly
def test_more_rules_come_back_and_err_no_more():
    """Of three tables of Friedman's function, over five seeds: the share of rules whose text
    another seed has, and the error over that of as many terms of the model."""
    same, ratio = {False: [], True: []}, []
    for k in range(3):
        rng, error = np.random.default_rng(k), {}
        (X, y), (T, t) = friedman(rng, 800), friedman(rng, 2000)
        models = [fit(X, y, seed, alpha=0.02, n_components=4000) for seed in range(5)]
        for on_grid in (False, True):
            small = [srf.prune(model, X, max_terms=10, readable=on_grid) for model in models]
            texts = [set(texts_of(each)) for each in small]
            same[on_grid] += [len(a & b) / 10 for a in texts for b in texts if a is not b]
            error[on_grid] = np.array([np.mean((each.predict(T) - t) ** 2) for each in small])
        ratio += (error[True] / error[False]).tolist()
    assert np.mean(same[True]) > np.mean(same[False]) + 0.15
    assert np.mean(ratio) + 2 * np.std(ratio, ddof=1) < 1.1


def test_a_rule_has_at_most_two_ends_between_rows():
    small = readable(fit(seed=1), X, 12)
    assert max(n_ends(small)) == 2 and min(n_ends(small)) >= 1
    for rule in ends_of(small):
        for v, *ends in rule:
            assert not np.isin(X[:, v], ends).any()
    one, other = (np.asarray(small.features.transform(each)) != 0 for each in (X, X.astype("f4")))
    assert np.array_equal(one, other)


def test_of_many_rows_ends_are_between_all():
    """Rules are searched on a sample, and no row has the number of a threshold."""
    many = np.concatenate([np.round(RNG.normal(size=(30_000, 4)), 3), X])
    small = readable(MODEL, many, 6)
    for rule in ends_of(small):
        for v, *ends in rule:
            assert not np.isin(many[:, v], ends).any()


@pytest.mark.parametrize("home", ["chunks", "dask", "device", "workers", "float32", "csr"])
def test_all_homes_of_rows_have_the_same_rules(home):
    Z = np.where(np.abs(X) > 0.6, X, 0.0) if home == "csr" else X
    model = fit(Z) if home == "csr" else MODEL
    of = {
        "chunks": lambda: srf.Chunks(Z, block_rows=70),
        "dask": lambda: da.from_array(Z, chunks=(110, 4)),
        "device": lambda: strict.asarray(Z),
        "workers": lambda: Z,
        "float32": lambda: Z.astype(np.float32),
        "csr": lambda: csr_array(Z),
    }
    one, other = readable(model, Z), readable(model, of[home](), workers=2)
    assert ends_of(one) == ends_of(other)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5)
    if home == "workers":
        assert one.coef.tobytes() == other.coef.tobytes()


def test_rows_without_weight_change_nothing():
    weight = RNG.integers(0, 2, N).astype(float)
    one, other = readable(MODEL, X, sample_weight=weight), readable(MODEL, X[weight > 0])
    assert ends_of(one) == ends_of(other)


def frame():
    rng = np.random.default_rng(1)
    hours = pd.to_timedelta(rng.integers(0, 2000, N), "h")
    table = pd.DataFrame(
        {
            "a": np.where(rng.random(N) < 0.2, np.nan, X[:, 0]),
            "word": pd.Categorical(rng.choice(list("abcde"), N)),
            "when": pd.Timestamp("2024-01-01") + hours,
            "flag": rng.random(N) < 0.5,
        }
    )
    y = np.where(table.a.isna(), 2.0, table.a > 0) + table.word.isin(["a", "c"]) + table.flag
    return table, y + (table.when.dt.hour >= 12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", "poisson"])
def test_tables_and_losses(loss):
    """Missing cells, words, dates, and classes: the rules say what the model does."""
    table, y = frame()
    y = {"squared": y, "poisson": y}.get(loss, np.digitize(y, [2, 3][: 1 + (loss != "logistic")]))
    model = fit(table, y, loss=loss)
    small = readable(model, table, 10)
    f, g = (np.atleast_2d(each.decision_function(table).T) for each in (model, small))
    assert np.var(f - g, axis=1).sum() < 0.3 * np.var(f, axis=1).sum()
    assert len(texts_of(readable(fit(table, frame()[1]), table, 10))) == 10
    assert max(n_ends(small)) <= 2


def test_columns_meet_that_may():
    model = fit(interactions=[[0], [1, 2], [3]])
    seen = [{v for v, *_ in rule} for rule in ends_of(readable(model, X, 12))]
    assert {1, 2} in seen and all(each <= {1, 2} or len(each) == 1 for each in seen)
    assert all(len(rule) == 1 for rule in ends_of(readable(MODEL, X, 12, max_order=1)))


def test_rules_that_must_rise_are_taken_from_the_model():
    small = readable(fit(monotone={0: 1}), X)
    assert small.is_monotone(0, sign=1)


def test_more_or_all_terms_are_parts_of_the_model():
    model = fit(alpha=1e-4)
    assert len(model.support) > MOST_BOXES + 1
    for max_terms in (None, MOST_BOXES + 1):
        small = readable(model, X, max_terms)
        rules = [set(map(str, rule)) for rule in ends_of(model)]
        assert all(any(set(map(str, rule)) <= own for own in rules) for rule in ends_of(small))


@pytest.mark.parametrize("rows", [X[:1], X[:2], np.zeros((30, 4))])
def test_rows_that_say_nothing(rows):
    small = readable(MODEL, rows)
    np.testing.assert_allclose(small.predict(rows), MODEL.predict(rows), atol=1e-9)


def test_a_tolerance_ends_the_search():
    f = MODEL.predict(X)
    small = readable(MODEL, X, 20, tol=0.2)
    assert len(small.support) < 20
    assert np.var(small.predict(X) - f) <= 0.2 * f.var()


def test_columns_of_few_values_have_all_ends():
    """A step between two of N_BINS values is found where it is."""
    x = RNG.integers(0, N_BINS, (N, 1)).astype(float)
    model = fit(x, 2.0 * (x[:, 0] > 36) + 0.1 * RNG.normal(size=N))
    assert texts_of(readable(model, x, 1))[0] in ("x0 <= 36.5", "x0 > 36.5")
