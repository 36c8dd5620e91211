"""The best point of a path, and the best mean of models, by their predictions of held-out rows."""

import numpy as np
import pytest

from sparserf.algorithms.sparse_rf.held_out import PathPoint, best_mean
from sparserf.algorithms.sparse_rf.search import _those_in_question


def path_point(margins, held):
    """Return a point of a path with these margins of held-out rows, whose targets are zero."""
    target = np.zeros(len(held))
    losses_at = lambda z: (z[0] - target) ** 2 / 2  # noqa: E731
    return PathPoint(
        margins**2 / 2, held, np.arange(len(held)), 1.0, 1.0, margins[None], losses_at, []
    )


def test_the_mean_of_members_that_predict_best():
    """Two of three members err independently, and one errs far more: the mean of the two predicts
    best."""
    rng, held = np.random.default_rng(0), np.ones(500)
    sizes = 1.0, 5.0, 1.0
    searches = [
        {(3, m): path_point(size * rng.standard_normal(500), held) for m, size in enumerate(sizes)}
        for _ in range(2)
    ]
    members, mixtures = best_mean(searches, 3)
    assert members == ((3, 0), (3, 2)) and len(mixtures) == 2
    mean = (searches[0][3, 0].margins + searches[0][3, 2].margins)[0] / 2
    assert mixtures[0].loss == pytest.approx(np.mean(mean**2) / 2)
    del searches[1][3, 2]
    assert best_mean(searches, 3)[0] == ((3, 0),)


def points_of(n_rows, **errors):
    """Return a round of searches, {(kind, number): point}, whose points err by these margins times
    independent normal numbers.

    Keywords such as k1_0 say the kind and the number of a candidate.
    """
    rng = np.random.default_rng(0)
    names = {tuple(map(int, name[1:].split("_"))): error for name, error in errors.items()}
    return {
        name: path_point(error * rng.standard_normal(n_rows), np.ones(n_rows))
        for name, error in names.items()
    }


def test_a_kind_may_take_simpler_candidates_into_its_mean():
    """At most two of a kind and three in all; the constant is alone."""
    points = points_of(2000, k0_0=1.0, k1_0=1.0, k2_0=5.0, k3_0=1.0, k3_1=1.0, k3_2=1.01)
    assert best_mean([points], 0)[0] == ((0, 0),)
    assert best_mean([points], 1)[0] == ((1, 0),)
    assert best_mean([points], 2)[0] == ((1, 0),)
    of_two_kinds, losses = best_mean([points], 3)
    assert (
        len(of_two_kinds) == 3
        and of_two_kinds[0] == (1, 0)
        and {kind for kind, _ in of_two_kinds[1:]} == {3}
    )
    assert losses[0].loss == pytest.approx(1 / 6, rel=0.1)


def test_a_kind_that_errs_elsewhere_stays_beside_a_simpler_one():
    """Inputs and learned features predict alike, and their mean better: both kinds go on where it
    is not decided, or the mean alone. A kind that adds nothing to a simpler one is dropped, and
    what was dropped does not come back."""
    kinds = points_of(1000, k0_0=3.0, k1_0=1.0, k2_0=9.0, k3_0=1.05)
    kept, losses = _those_in_question([kinds], list(kinds), 1.0)
    assert kept == {3: ((1, 0), (3, 0))} and losses[3][0].loss < losses[1][0].loss
    useless = kinds | points_of(1000, k3_0=9.0)
    assert _those_in_question([useless], list(useless), 1.0)[0] == {1: ((1, 0),)}
    few = points_of(12, k0_0=3.0, k1_0=1.0, k2_0=9.0, k3_0=1.3)
    assert set(_those_in_question([few], list(few), 1.0)[0]) == {1, 3}
    # In the second round the inputs are best alone, although their kind was not among those in
    # question.
    assert _those_in_question([kinds, {name: useless[name] for name in kept[3]}], kept[3], 1.0)[
        0
    ] == {1: ((1, 0),)}
