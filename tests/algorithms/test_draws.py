"""Sources of draws: which are looked at, what is asked of rows elsewhere, and their phases."""

from types import SimpleNamespace

import numpy as np
import pytest

from sparserf import FeatureSet, Fourier, Linear, RandomNeurons
from sparserf.algorithms.sparse_rf.draws import DrawsInMemory, LearningSource, RandomSource
from sparserf.rows import as_rows

from ..features.sets import dictionary_of, learning

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3))
ATOMS = Fourier(gamma=0.3).draw(30, 3, rng=0)


def test_draws_are_looked_at_where_they_may_violate():
    """Along a walk of v in small and large steps, an entry is the gradient, or bounds it where both
    are within alpha."""
    rng = np.random.default_rng(0)
    rows, maps = as_rows(X), [Fourier(gamma=0.3), RandomNeurons("tanh"), RandomNeurons("relu")]
    dictionary = dictionary_of([*maps, Linear()], X, 90, 40)
    draws = RandomSource(rows, dictionary, 0).draw(tuple(range(dictionary.n_batches)), None)
    phi = np.hstack([dictionary.batch(k).transform(X) for k in range(dictionary.n_batches)])
    looked = []
    learn, draws._learn = draws._learn, lambda some, g: looked.append(len(some)) or learn(some, g)
    v = np.zeros(N)
    for step in (1, 1e-5, 0.1, 1e-6, 1e-6, 0.0, 1e-5):
        v = v + step * rng.standard_normal(N) / N
        g, exact = draws.gradient(v, 0.05), phi.T @ v
        close = np.isclose(g, exact, rtol=1e-12, atol=1e-14)
        assert np.all(close | ((np.abs(exact) <= np.abs(g)) & (np.abs(g) <= 0.05)))
    # of 7 passes over all draws; relu and Linear are looked at in each
    assert 2 * len(phi.T) < sum(looked) < 6 * len(phi.T)


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
