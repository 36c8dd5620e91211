"""Sources of draws: which are looked at, what is asked of rows elsewhere, and their phases."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserf import FeatureSet, Fourier, Linear, Perceptron, RandomNeurons
from sparserf.algorithms.sparse_rf.draws import DrawsInMemory, LearningSource, RandomSource
from sparserf.rows import as_rows

from ..conftest import as_within_a_call, examples
from ..features.sets import dictionary_of, learning, seeds

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
ATOMS = Fourier(gamma=0.3).draw(30, 3, rng=0)


def noting(rows, looked):
    """Let rows note how many draws they are asked about."""
    ask = rows.ask

    def noted(v, questions):
        answers = ask(v, questions)
        looked.append(sum(map(len, answers)))
        return answers

    rows.ask = noted
    return rows


def test_draws_are_looked_at_where_they_may_violate():
    """Along a walk of v in small and large steps, an entry is the gradient, or bounds it where both
    are within alpha."""
    rng = np.random.default_rng(0)
    looked, maps = [], [Fourier(gamma=0.3), RandomNeurons("tanh"), RandomNeurons("relu")]
    rows = noting(as_rows(X), looked)
    dictionary = dictionary_of([*maps, Linear()], X, 90, 40)
    draws = RandomSource(rows, dictionary, 0).draw(tuple(range(dictionary.n_batches)), None)
    phi = np.hstack([dictionary.batch(k).transform(X) for k in range(dictionary.n_batches)])
    v = np.zeros(N)
    for step in (1, 1e-5, 0.1, 1e-6, 1e-6, 0.0, 1e-5):
        v = v + step * rng.standard_normal(N) / N
        g, exact = draws.gradient(v, 0.05), phi.T @ v
        close = np.isclose(g, exact, rtol=1e-12, atol=1e-14)
        assert np.all(close | ((np.abs(exact) <= np.abs(g)) & (np.abs(g) <= 0.05)))
    # of 7 passes over all draws; relu and Linear are looked at in each
    assert 2 * len(phi.T) < sum(looked) < 6 * len(phi.T)


@pytest.mark.slow
@examples(60)
@given(seeds, st.floats(-30, 30), st.sampled_from(["normal", "far", "heavy"]))
@as_within_a_call
def test_what_single_precision_may_change(seed, power, law):
    """A gradient in single precision differs by no more than the bound says; of inputs of a size
    that features can tell, the bound is small."""
    rng, kinds = np.random.default_rng(seed), ["sin", "cos", "tanh", "relu", "sign"]
    X = {
        "normal": lambda: rng.standard_normal((N, 3)),
        "far": lambda: rng.standard_normal((N, 3)) + np.array([0, 1e3, -1e5]),
        "heavy": lambda: rng.standard_cauchy((N, 3)) ** 3,
    }[law]()
    X *= 10.0**power
    v = rng.standard_normal(N) * rng.random(N) ** 8
    maps = [Fourier(gamma=0.1), Fourier("laplacian", gamma=0.1), Perceptron(1.0), Linear()]
    maps += [RandomNeurons(kind, order=order) for kind in kinds for order in (None, 2)]
    total, sizes = np.abs(v).sum(), np.abs(v) @ np.abs(X)
    told = 0
    for each in maps:
        features = each.draw(None if isinstance(each, Linear) else 20, 3, rng=0)
        bound = features.rounding_in_single(total, sizes)
        double = as_rows(X).correlate(features, v)
        single = as_rows(X.astype(np.float32)).correlate(features, v)
        is_bound = np.isfinite(bound)
        assert np.all(np.abs(double - single)[is_bound] <= bound[is_bound])
        told += np.count_nonzero(bound <= 1e-4 * total * np.sqrt(2))
    assert told >= 100 or law != "normal" or power > 0


def test_gradients_stay_known_in_another_precision():
    """Draws that turn to single precision, and back, at other dual points, look again at few, and
    entries are gradients or bounds within alpha."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((N, 3)), 50 * rng.standard_normal((3, 3))])
    looked, double = [], as_rows(X)
    single = noting(double.in_single(), looked)
    noting(double, looked)
    dictionary = dictionary_of([Fourier(gamma=0.3), RandomNeurons("tanh")], X, 90, 40)
    source = RandomSource(double, dictionary, 0)
    phi = np.hstack([dictionary.batch(k).transform(X) for k in range(dictionary.n_batches)])
    v = rng.standard_normal(len(X)) / len(X)
    assert not source.knows_all
    for rows in (double, single, double, double, single):
        source.set_precision(rows)
        v = v + 1e-7 * rng.standard_normal(len(X))
        g, exact = source.everything().gradient(v, 0.1), phi.T @ v
        close = np.isclose(g, exact, rtol=0, atol=1e-5 if rows is single else 1e-14)
        assert np.all(close | ((np.abs(exact) <= np.abs(g)) & (np.abs(g) <= 0.1)))
        assert source.knows_all
    n_above = np.count_nonzero(np.abs(exact) > 0.09)
    assert 5 < n_above < 60 and sum(looked) <= len(exact) + 4 * n_above


def test_what_few_draws_know_is_known_of_all():
    """The nearest draws are the largest in size, and what they learn at another dual point is not
    asked for again."""
    rng, looked = np.random.default_rng(0), []
    dictionary = dictionary_of([Fourier(gamma=0.3)], X, 90, 40)
    draws = RandomSource(noting(as_rows(X), looked), dictionary, 0).everything()
    phi = np.hstack([dictionary.batch(k).transform(X) for k in range(dictionary.n_batches)])
    v = rng.standard_normal(N) / N
    g = draws.gradient(v)
    few = draws.nearest(0.05, 10)
    assert set(few.index) == set(np.argsort(-np.abs(g))[:10])
    assert set(draws.nearest(0.05, 1000).index) == set(np.flatnonzero(np.abs(g) > 0.05))
    v = v + 0.1 * rng.standard_normal(N) / N
    few.gradient(v)
    draws.learn_from(few, v)
    looked.clear()
    np.testing.assert_allclose(draws.gradient(v), phi.T @ v, rtol=1e-12, atol=1e-14)
    assert looked == [90 - len(few.index)]


@pytest.mark.parametrize("n_batches", [1, 3])
def test_draws_travel_as_their_seed(n_batches):
    """A question to rows elsewhere holds a seed and places of draws, not weights; a fixed
    dictionary has no seed."""
    import cloudpickle

    X = np.random.default_rng(0).standard_normal((30, 200))
    wide = as_rows(X)
    v = wide.vectors.put(np.random.default_rng(1).standard_normal(30))
    drawn = dictionary_of([Fourier(gamma=0.1)], X, 500 * n_batches, 500)
    fixed = dictionary_of(drawn.batch(0), X, None, 500, rng=None)
    for dictionary in (drawn, fixed):
        draws = RandomSource(wide, dictionary, 0).draw(tuple(range(dictionary.n_batches)), None)
        draws.gradient(v)
        ask, _ = draws.question(0.0)
        sent = cloudpickle.dumps(ask)
        assert (len(sent) < 50_000) == (dictionary is drawn)  # 500 x 200 weights are 800,000 bytes
        (answer,) = wide.ask(v, [cloudpickle.loads(sent)])
        np.testing.assert_array_equal(answer, draws.gradient(v))


def test_a_question_about_no_draw_is_answered():
    """Where no draw can come to violate, the answer to the question is empty."""
    rows, v = as_rows(X), RNG.standard_normal(N)
    draws = DrawsInMemory(rows, ATOMS, np.arange(len(ATOMS)))
    for t in (1.0, 0.9):
        g = draws.gradient(t * v, 1e3)
    ask, take = draws.question(1e3)
    (answer,) = rows.ask(0.8 * v, [ask])
    take(v, answer)
    assert answer.shape == (0,) and np.all(np.abs(g) <= 1e3)


def test_proposed_cosines_have_the_best_phase(rng):
    X, v = rng.standard_normal((60, 3)), rng.standard_normal(60)
    rows, dictionary = as_rows(X), learning(X, 50, 25, 1)
    features = dictionary.proposer(0).batch(25, FeatureSet((), 3), np.zeros(0), np.zeros(0, int))[1]
    A = SimpleNamespace(features=FeatureSet((), 3), w=np.zeros(0), index=np.zeros(0, int), v=v)
    draws = LearningSource(rows, dictionary, 0).draw((0,), A)
    angles = np.linspace(0, 2 * np.pi, 721)
    every = np.abs(
        [rows.correlate(features.turned(np.full(25, angle)), v) for angle in angles]
    ).max(axis=0)
    g = np.abs(draws.gradient(v))
    assert (g >= every * (1 - 1e-12)).all() and (g <= every * (1 + 1e-4)).all()
    assert draws.index.tolist() == list(range(1 << 40, (1 << 40) + 25))


def test_a_batch_that_is_asked_for_twice_is_proposed_once(rng):
    """Gradients that are known belong to these proposals, even where the second step was not
    taken."""
    X, v = rng.standard_normal((60, 3)), rng.standard_normal(60)
    rows, dictionary = as_rows(X), learning(X, 50, 25, 1)
    A = SimpleNamespace(features=FeatureSet((), 3), w=np.zeros(0), index=np.zeros(0, int), v=v)
    source = LearningSource(rows, dictionary, 0)
    ((ask, take),) = source.ask_ahead(0, A, A.w)
    take(v, rows.ask(v, [ask])[0])
    source.ask_ahead(0, A, A.w)
    draws, entered = source.draw((0,), A), []
    draws.enter(
        SimpleNamespace(add=lambda features, index, g: entered.append((features, g))), np.arange(25)
    )
    ((features, g),) = entered
    np.testing.assert_allclose(rows.correlate(features, v), g, rtol=1e-10)
    assert draws.index[0] == 1 << 40
