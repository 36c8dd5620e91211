"""Test what decides how far members go, and whether they beat the constant."""

from types import SimpleNamespace

import numpy as np
import pytest

import sparserf as srf
from sparserf._base.threads import Workers
from sparserf.algorithms.default import paths
from sparserf.solvers.budget import Budget

PATIENT = {
    "drops_columns": False,
    "fall": 0.7,
    "errors": 0.5,
    "patience": (5, 2),
    "most_terms": lambda n: 2_000,
}


class Folds:
    """Folds of 100 rows, whose predictions are the margins of the first."""

    task, row = SimpleNamespace(weight=np.ones(100), targets=[None]), np.arange(100)

    def __init__(self, n):
        self._n = n

    def __len__(self):
        return self._n

    def predictions(self, margins):
        return margins[0]

    means = predictions


def path_of_losses(losses, best_other_loss):
    """Return the path of a member whose losses are given."""
    left = iter(losses)
    fit = SimpleNamespace(
        largest_alpha=lambda: 1.0,
        fit_at=lambda alpha, times: None,
        margins=lambda: next(left),
        objective=lambda: 1.0,
        state=lambda: None,
        report=lambda: None,
        n_terms=1,
        n=100,
        share=0.8,
        ended=False,
        n_drawn=0,
        n_shared=0,
    )

    member = SimpleNamespace(fold_fit=lambda folds, k: fit, **PATIENT, n_ways=1)
    loss = SimpleNamespace(of_each_fold=lambda loss: np.array([loss]), in_units_of_y=float)
    fits = paths.MemberFits(lambda: member, Folds(1), loss, Workers(1))
    return paths.follow(fits, Budget(np.inf), best_other_loss)


def test_a_member_far_behind_ends_where_its_falls_are_too_small():
    losses = 3.0 * 0.95 ** np.arange(80)
    assert len(path_of_losses(losses, 0.3).losses) == PATIENT["patience"][0] + 1
    assert len(path_of_losses(losses, 2.5).losses) == 80
    assert len(path_of_losses(3.0 * 0.7 ** np.arange(80), 0.3).losses) == 80


def test_a_member_ends_where_its_loss_falls_no_more():
    losses = np.concatenate([3.0 * 0.9 ** np.arange(10), np.full(30, 2.0)])
    path = path_of_losses(losses, np.inf)
    assert len(path.losses) == 10 + PATIENT["patience"][1]
    assert path.loss == losses[9]


# The loss that each of four folds adds at five penalties: the fourth is the best, the third is
# worse by .9 standard errors of the difference, the second by .5, the first by 25.
OF_FOLDS = np.array(
    [
        [1.6, 1.7, 1.8, 1.7],
        [1.3, 0.9, 1.3, 1.0],
        [1.3, 1.0, 1.2, 1.1],
        [1.0, 1.1, 1.2, 1.0],
        [1.1, 1.2, 1.3, 1.1],
    ]
)


@pytest.mark.parametrize(
    ("errors", "expected"), [(0.0, 3), (0.4, 3), (0.6, 1), (2.0, 1), (30.0, 0)]
)
def test_the_largest_penalty_within_so_many_standard_errors_is_taken(errors, expected):
    d = OF_FOLDS - OF_FOLDS[3]
    away = 2 * d.mean(axis=1)[:3] / d.std(axis=1, ddof=1)[:3]
    within = [*(away <= errors), True]
    assert np.flatnonzero(within)[0] == expected
    taken = paths.Taken(errors)
    for k, of_folds in enumerate(OF_FOLDS):
        taken.see(of_folds, k)
    assert taken.what == expected and taken.loss == OF_FOLDS[3].sum()


@pytest.mark.parametrize("losses", [[[2.0], [1.0], [1.5]], [[np.inf] * 3, [1.0] * 3, [1.5] * 3]])
def test_the_best_penalty_is_taken_where_nothing_tells_the_error(losses):
    """With one part held out, or beside a loss without a bound."""
    taken = paths.Taken(5.0)
    for k, of_folds in enumerate(losses):
        taken.see(np.array(of_folds), k)
    assert taken.what == 1


@pytest.mark.nightly
@pytest.mark.parametrize("n", [80, 120])
def test_noise_is_the_constant(n):
    others = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((n, 5)), rng.standard_normal(n)
        others += len(srf.sparse_rf(X, y, rng=seed, verbose=False).features) > 0
    assert others <= 2


@pytest.mark.nightly
def test_a_signal_in_few_rows_is_found():
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 5))
        y = 0.7 * X[:, 0] + rng.standard_normal(80)
        found += len(srf.sparse_rf(X, y, rng=seed, verbose=False).features) > 0
    assert found >= 8


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_waves_of_two_inputs_are_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(2600, 2))
    f = np.sin(30 * X[:, 0]) * np.cos(25 * X[:, 1])
    y = f[:600] + 0.05 * rng.standard_normal(600)
    p = srf.sparse_rf(X[:600], y, rng=seed, verbose=False).predict(X[600:])
    assert np.mean((p - f[600:]) ** 2) < 0.03 * f.var()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_smooth_targets_are_not_seen_in_ranks(seed):
    """In ranks a smooth function is rough: folds that see them leave them, and the error is a tenth
    of theirs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (2300, 2))
    f = np.sin(X[:, 0]) + np.cos(X[:, 1])
    model = srf.sparse_rf(X[:300], f[:300], rng=seed, verbose=False)
    assert np.mean((model.predict(X[300:]) - f[300:]) ** 2) < 3e-6 * f.var()


def way_begun(losses, objectives, n_ways=2):
    """Return the way to see the columns in which all folds begin again, None where they do not.

    losses : the loss held out at each penalty
    objectives : of each fold at each penalty, as shares of the constant's
    """
    n = len(objectives[0])

    class Member:
        fall, errors, patience, way = 0.7, 0.5, (5, 2), None

        def __init__(self):
            self.n_ways = n_ways

        def most_terms(self, n):
            return 2_000

        def fold_fit(self, folds, k):
            turns = iter([np.ones(n), *objectives])
            return SimpleNamespace(
                n=100,
                share=0.8,
                largest_alpha=lambda: 1.0,
                margins=lambda: None,
                objective=lambda: next(turns)[k],
                state=lambda: None,
                n_terms=1,
            )

        def in_way(self, way):
            self.way = way
            return self

    left = iter(losses)
    loss = SimpleNamespace(of_each_fold=lambda predictions: np.full(n, next(left) / n))
    member = Member()
    fits = paths.MemberFits(lambda: member, Folds(n), loss, Workers(1))
    for _ in losses:
        fits.judge(np.inf)
        fits.begin_again()
    assert (fits.loss == np.inf) == (member.way is not None)  # from the start
    return member.way


@pytest.mark.parametrize(
    ("objectives", "way"),
    [
        ([0.5, 0.7, 0.5, 0.6, 0.5], 0),
        ([0.7, 0.5, 0.6, 0.4, 0.8], 1),
        ([0.5, 0.7, 0.5, 0.54, 0.5], None),
        ([0.5], None),
    ],
)
def test_a_way_is_left_only_where_all_of_its_folds_are_worse(objectives, way):
    assert way_begun([1.0, 0.5, 0.5], [np.ones(len(objectives)), objectives, objectives]) == way


@pytest.mark.parametrize(
    ("losses", "objectives", "n_ways", "way"),
    [
        ([1.0, 0.5, 0.5], [(1, 1), (1, 0.5), (1, 0.5)], 2, 1),
        ([1.0, 0.5, 0.5], [(1, 1), (1, 0.5), (1, 1)], 2, None),  # not twice in a row
        ([1.0, 0.97, 0.97], [(1, 1), (1, 0.5), (1, 0.5)], 2, None),  # nothing is found
        ([1.0, 0.5, 0.5], [(1, 1), (1, 0.5), (1, 0.5)], 1, None),  # there is no other
    ],
)
def test_all_folds_begin_again_in_a_way_that_is_twice_the_better(losses, objectives, n_ways, way):
    assert way_begun(losses, objectives, n_ways) == way


@pytest.mark.slow
def test_less_effort_has_fewer_terms_on_a_path(monkeypatch):
    """Poor draws need more terms, which take longer than good ones."""
    shares, begin = [], paths.MemberFits.__init__

    def note(self, make, folds, loss, workers, share):
        shares.append(share)
        begin(self, make, folds, loss, workers, share)

    monkeypatch.setattr(paths.MemberFits, "__init__", note)
    X = np.random.default_rng(0).normal(size=(60, 2))
    for effort in (0.09, 1.0):
        srf.sparse_rf(X, X[:, 0], effort=effort, rng=0, verbose=False)
    assert shares == 3 * [pytest.approx(0.3)] + 3 * [1.0]
