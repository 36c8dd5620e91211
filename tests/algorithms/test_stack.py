"""The stack of sparse_rf without a penalty: how much each member counts, and when none does."""

import numpy as np
import pytest
from scipy.optimize import nnls

from sparserf.algorithms.arguments import RowSetting
from sparserf.algorithms.sparse_rf.folds import Folds, folds_of, strata_of
from sparserf.algorithms.sparse_rf.members import MemberPath
from sparserf.algorithms.sparse_rf.stack import (
    ERRORS_TIMES_ROWS,
    LEAST_WEIGHT,
    MOST_ERRORS_OF_GROUPS,
    MOST_WEIGHT,
    HeldOutLoss,
    Stack,
    effective,
    errors_to_beat_constant,
    stacked_weights,
)
from sparserf.algorithms.task import Task
from sparserf.losses import JOINTLY

N = 120
RNG = np.random.default_rng(0)
REAL = 5.0 + np.sin(np.arange(N)) + 0.3 * RNG.standard_normal(N)
WEIGHT = RNG.random(N) + 0.1
TARGETS = {
    "squared": REAL,
    "huber": REAL,
    "poisson": np.floor(REAL),
    "logistic": REAL > 5,
    "multinomial": np.digitize(REAL, [4.5, 5.5]),
    "two outputs": np.c_[REAL, 9 * np.cos(np.arange(N))],
}


def held_out_loss(name="squared", y=None, **rows):
    """Return the loss of the rows held out, all of them."""
    y = TARGETS[name] if y is None else y
    loss = {"two outputs": "squared"}.get(name, name)
    setting, X = RowSetting(loss, **rows), np.zeros((len(y), 1))
    task = Task.from_arrays(X, y, setting, losses=JOINTLY, several_outputs="apart")
    folds = folds_of(task, strata_of(task), None, 10**9, np.random.default_rng(0))
    return HeldOutLoss.of(folds.task, folds)


def path_of(predictions):
    return MemberPath(None, 1.0, 1.0, predictions, [], [], [1.0], 1.0)


def stack_of_losses(stacked, constant, **rows):
    """Return a stack of one member, with these losses of rows of weight 1."""
    loss = held_out_loss(y=np.arange(len(stacked), dtype=float), **rows)
    row, one = loss.folds.row, np.ones(1)
    return Stack(loss, [], one, one, np.asarray(stacked)[row], np.asarray(constant)[row])


# The loss


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("has_offset", [False, True])
def test_slopes_are_derivatives_of_the_mean(name, has_offset, rng):
    if has_offset and name == "multinomial":
        pytest.skip("offsets are not for several classes")
    offset = {"offset": rng.standard_normal(TARGETS[name].shape)} if has_offset else {}
    loss = held_out_loss(name, sample_weight=WEIGHT, **offset)
    margins = 0.3 * rng.standard_normal((len(loss.task.targets), N))
    direction, h = rng.standard_normal(margins.shape), 1e-5
    numeric = (loss.mean(margins + h * direction) - loss.mean(margins - h * direction)) / (2 * h)
    assert (loss.slopes(margins) * direction).sum() == pytest.approx(numeric, rel=1e-5)


def test_the_mean_loss_is_that_of_rows_by_weight(rng):
    loss, z = held_out_loss(sample_weight=WEIGHT), rng.standard_normal((1, N))
    (y,), unit = loss.task.targets, loss.task.unit(loss.task.targets[0])
    losses = (z[0] - y[loss.folds.row] / unit) ** 2 / 2
    assert loss.mean(z) == pytest.approx(loss.folds.weight @ losses)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_nothing_is_certain(name):
    """A row of any class is there beside the others: margins that grow for ever raise the loss."""
    loss = held_out_loss(name)
    right = np.stack([loss.task.target_of(y)[loss.folds.row] for y in loss.task.targets])
    at = [loss.mean(size * right) for size in (1.0, 3.0, 1e3)]
    assert at[1] < at[0] and at[1] < at[2]


# The weights


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_of_the_squared_loss_are_nonnegative_least_squares(weight, fit_intercept, rng):
    loss = held_out_loss(sample_weight=weight)
    t = loss.targets[0]
    M = np.stack([t + rng.standard_normal(N), t + rng.standard_normal(N) + 1, 0.5 * t, -t])
    M[2:] += 0.3 * rng.standard_normal((2, N))
    u, b = stacked_weights(loss, list(M[:, None]), fit_intercept)
    root = np.sqrt(loss.folds.weight)
    columns = np.vstack([M, np.ones(N), -np.ones(N)]) if fit_intercept else M
    best = nnls((columns * root).T, t * root)[0]
    assert best[3] == u[3] == 0 and (u[:3] > LEAST_WEIGHT).all()
    np.testing.assert_allclose(u, best[:4], atol=1e-4)
    np.testing.assert_allclose(b[0], best[4] - best[5] if fit_intercept else 0.0, atol=1e-4)


@pytest.mark.parametrize("name", TARGETS)
def test_no_other_weights_have_less_loss(name, rng):
    loss = held_out_loss(name, sample_weight=WEIGHT)
    K = len(loss.task.targets)
    M = np.stack([0.5 * loss.targets + rng.standard_normal((K, N)) for _ in range(3)])
    u, b = stacked_weights(loss, list(M), True)

    def at(u, b):
        return loss.mean(np.tensordot(u, M, 1) + b[:, None])

    least = at(u, b)
    for _ in range(50):
        near = np.clip(u + 0.05 * rng.standard_normal(3), 0, MOST_WEIGHT)
        assert at(near, b + 0.05 * rng.standard_normal(K)) > least - 1e-4


def test_a_member_that_counts_little_does_not_count(rng):
    loss = held_out_loss()
    t = loss.targets[0]
    M = [t + size * t.std() * rng.standard_normal(N) for size in (0.1, 9.0)]
    u, _ = stacked_weights(loss, [each[None] for each in M], True)
    assert u[0] > 0.9 and u[1] == 0


def test_weights_are_bounded_where_all_is_predicted_right():
    loss = held_out_loss("logistic")
    u, _ = stacked_weights(loss, [1e-3 * loss.targets], True)
    assert u == pytest.approx(MOST_WEIGHT)


# The constant


def test_without_a_better_member_all_weights_are_0(rng):
    loss = held_out_loss()
    noise = rng.standard_normal((1, N))
    good = loss.targets + 0.1 * loss.targets.std() * rng.standard_normal((1, N))
    nothing, some = (Stack.of(loss, [path_of(M)], True, 1.0) for M in (noise, good))
    assert nothing.used == [] and nothing.loss_of_choice == nothing.loss_of_constant
    ((path, u),) = some.used
    assert path.predictions is good and u == pytest.approx(1, abs=0.1)
    assert some.loss_of_choice == some.loss_of_stack < 0.1 * some.loss_of_constant
    variance = np.average((loss.targets - np.average(loss.targets)) ** 2) / 2
    assert some.loss_of_constant == pytest.approx(variance)


def test_the_gain_must_be_above_so_many_standard_errors(rng):
    gain = 0.3 + rng.standard_normal(60)
    stack = stack_of_losses(np.zeros(60), gain)
    errors = gain.mean() / (gain.std(ddof=1) / np.sqrt(60))
    assert stack.is_better_than_constant(0.999 * errors)
    assert not stack.is_better_than_constant(1.001 * errors)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_losses_of_any_size_can_be_compared(size, rng):
    gain = size * (0.5 + rng.standard_normal(60))
    assert stack_of_losses(np.zeros(60), gain).is_better_than_constant(1.0)
    assert not stack_of_losses(np.zeros(60), gain).is_better_than_constant(9.0)


def test_copies_in_groups_count_as_one_row(rng):
    gain = 0.3 + rng.standard_normal(60)
    errors = gain.mean() / (gain.std(ddof=1) / np.sqrt(60))
    copies = np.repeat(np.arange(60), 10)
    of_groups = stack_of_losses(np.zeros(600), gain[copies], groups=copies)
    assert of_groups.is_better_than_constant(0.999 * errors)
    assert not of_groups.is_better_than_constant(1.001 * errors)
    assert stack_of_losses(np.zeros(600), gain[copies]).is_better_than_constant(2 * errors)


def test_a_row_that_several_pairs_hold_out_counts_once(rng):
    gain = 0.3 + rng.standard_normal(40)
    errors = gain.mean() / (gain.std(ddof=1) / np.sqrt(40))
    held = np.arange(N) < 40
    for times in (1, 9):
        task = held_out_loss().task
        folds = Folds(task, [(~held, held)] * times)
        loss, one = HeldOutLoss.of(task, folds), np.ones(1)
        stack = Stack(loss, [], one, one, np.zeros(40 * times), np.tile(gain, times))
        assert stack.is_better_than_constant(0.999 * errors)
        assert not stack.is_better_than_constant(1.001 * errors)


def test_one_row_or_group_tells_nothing():
    loss, one = held_out_loss(groups=np.arange(N) // 60), np.ones(1)
    held = np.arange(N) < 60
    alone = HeldOutLoss.of(loss.task, Folds(loss.task, [(~held, held)]))
    stack = Stack(alone, [], one, one, np.zeros(60), np.ones(60))
    assert not stack.is_better_than_constant(0.0)


# How many standard errors


@pytest.mark.parametrize(
    ("rows", "informative"),
    [
        ({}, 600),
        ({"sample_weight": np.repeat([1.0, 1e-12], 300)}, 300),
        ({"loss": "logistic", "rare": 0.1}, 60),
        ({"loss": "poisson", "rare": 0.1}, 60),
    ],
    ids=["rows", "weights", "labels", "events"],
)
def test_the_fewer_rows_inform_the_more_errors_are_asked_for(rows, informative, rng):
    y, rare = rng.standard_normal(600), rows.get("rare")
    setting = RowSetting(**{name: value for name, value in rows.items() if name != "rare"})
    y = y if rare is None else np.arange(600) % round(1 / rare) == 0
    y = y.astype(float) if setting.loss == "poisson" else y
    task = Task.from_arrays(np.zeros((600, 1)), y, setting)
    errors = errors_to_beat_constant(task, strata_of(task))
    assert errors == pytest.approx(ERRORS_TIMES_ROWS / informative)


def test_groups_count_as_informative_rows(rng):
    """Many small groups count as so many rows; few large ones ask for one standard error; single
    rows change nothing."""
    X, y = rng.standard_normal((600, 2)), rng.standard_normal(600)
    errors = {}
    for n in (2, 60, 600):
        task = Task.from_arrays(X, y, RowSetting(groups=np.arange(600) % n))
        errors[n] = errors_to_beat_constant(task, strata_of(task))
    alone = ERRORS_TIMES_ROWS / 600
    assert errors[2] == MOST_ERRORS_OF_GROUPS
    assert errors[60] == pytest.approx(ERRORS_TIMES_ROWS / 60) and errors[600] == alone


def test_the_number_of_rows_of_equal_weight():
    assert effective(np.full(7, 3.0)) == pytest.approx(7)
    assert effective(np.r_[1e9, np.ones(100)]) == pytest.approx(1, abs=1e-5)
