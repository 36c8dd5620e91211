"""The best point of a path, and the best mean of models, by their predictions of held-out rows."""

import numpy as np
import pytest

from sparserf.algorithms.sparse_rf.held_out import PathPoint, best_mean


def path_point(margins, held):
    """Return a point of a path with these margins of held-out rows, whose targets are zero."""
    target = np.zeros(len(held))
    losses_at = lambda z: (z[0] - target) ** 2 / 2  # noqa: E731
    return PathPoint(margins**2 / 2, held, np.arange(len(held)), 1.0, 1.0, margins[None], losses_at, [])


def test_the_mean_of_members_that_predict_best():
    """Two of three members err independently, and one errs far more: the mean of the two predicts best."""
    rng, held = np.random.default_rng(0), np.ones(500)
    sizes = 1.0, 5.0, 1.0
    searches = [{(3, m): path_point(size * rng.standard_normal(500), held) for m, size in enumerate(sizes)} for _ in range(2)]
    members, mixtures = best_mean(searches, 3)
    assert members == ((3, 0), (3, 2)) and len(mixtures) == 2
    mean = (searches[0][3, 0].margins + searches[0][3, 2].margins)[0] / 2
    assert mixtures[0].loss == pytest.approx(np.mean(mean**2) / 2)
    del searches[1][3, 2]
    assert best_mean(searches, 3)[0] == ((3, 0),)
