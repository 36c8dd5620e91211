"""The stack of sparse_rf without a penalty: how much each member counts, and when none does."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from sparserf.algorithms.default.paths import MemberPath
from sparserf.algorithms.default.stack import TAKEN_OFF, Stack, stacked_weights
from sparserf.algorithms.held_out_loss import ERRORS, VERY_FEW, HeldOutLoss

from .tasks import folds, task_of

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
    found = folds(task_of(np.zeros((len(y), 1)), y, loss, **rows))
    return HeldOutLoss.of(found.task, found)


def path_of(predictions):
    return MemberPath(
        None, 1.0, predictions, predictions, [], [predictions] * 5, np.ones((1, 5)), 0, False, 0
    )


def stack_of_gains(gains, **rows):
    """Return a stack of one member that is better than the constant by these losses of rows."""
    loss, one = held_out_loss(y=np.arange(len(gains), dtype=float), **rows), np.ones(1)
    return Stack(loss, [], one, one, np.zeros(len(gains)), np.asarray(gains)[loss.folds.row])


def gains(rng, n, times):
    """Return n gains whose mean is so many times what it must be."""
    each = rng.standard_normal(n)
    errors = times * ERRORS * (1 + (VERY_FEW / n) ** 2)
    return each - each.mean() + errors * each.std(ddof=1) / np.sqrt(n)


ABOVE, BELOW = 1.001, 0.999


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
def test_weights_of_the_squared_loss_are_nonnegative_least_squares(weight, rng):
    loss = held_out_loss(sample_weight=weight)
    t = loss.targets[0]
    M = np.stack([t + rng.standard_normal(N), t + rng.standard_normal(N) + 1, 0.5 * t, -t])
    M[2:] += 0.3 * rng.standard_normal((2, N))
    u = stacked_weights(loss, list(M[:, None]), np.zeros((1, 1)))
    root = np.sqrt(loss.folds.weight)
    best = nnls((M * root).T, t * root)[0]
    assert best[3] == u[3] == 0 and (u[:3] > 0).all()
    np.testing.assert_allclose(u, best, atol=1e-4)


def test_weights_are_as_near_where_models_are_right_to_a_thousandth(rng):
    """The loss then is a millionth of the constant's."""
    loss = held_out_loss()
    t = loss.targets[0]
    M = np.stack([t + size * rng.standard_normal(N) for size in (1e-3, 3e-2, 3e-2)])
    u = stacked_weights(loss, list(M[:, None]), np.zeros((1, 1)))
    root = np.sqrt(loss.folds.weight)
    best = nnls((M * root).T, t * root)[0]
    least, found = (loss.mean((each @ M)[None]) for each in (best, u))
    assert found <= 1.001 * least < 2e-6 * loss.mean(np.zeros((1, N)))


@pytest.mark.parametrize("name", TARGETS)
def test_no_other_weights_have_less_loss(name, rng):
    loss = held_out_loss(name, sample_weight=WEIGHT)
    K = len(loss.task.targets)
    M = np.stack([0.5 * loss.targets + rng.standard_normal((K, N)) for _ in range(3)])
    u = stacked_weights(loss, list(M), np.zeros((K, 1)))

    def at(u):
        return loss.mean(np.tensordot(u, M, 1))

    least = at(u)
    for _ in range(50):
        near = np.maximum(u + 0.05 * rng.standard_normal(3), 0)
        assert at(near) > least - 1e-4


def test_weights_are_finite_where_all_is_predicted_right():
    """The probability of the other label is half of the weight of the row of an unknown label."""
    loss = held_out_loss("logistic")
    for size in (0.1, 1.0, 10.0):
        (u,) = stacked_weights(loss, [size * loss.targets], np.zeros((1, 1)))
        assert u * size == pytest.approx(np.log(2 / loss.doubt - 1), rel=0.02)


# The constant


def test_without_a_better_member_all_weights_are_0(rng):
    loss = held_out_loss()
    noise = rng.standard_normal((1, N))
    good = loss.targets + 0.1 * loss.targets.std() * rng.standard_normal((1, N))
    nothing, some = (Stack.of(loss, [path_of(M)], True) for M in (noise, good))
    assert nothing.used == []
    assert nothing.loss_of_other_rows() == pytest.approx(nothing.loss_of_constant, rel=0.05)
    ((path, u),) = some.used
    assert path.predictions is good and u == pytest.approx(1, abs=0.1)
    assert some.loss_of_stack < some.loss_of_other_rows() < 1.1 * some.loss_of_stack
    assert some.loss_of_stack < 0.1 * some.loss_of_constant
    variance = np.average((loss.targets - np.average(loss.targets)) ** 2) / 2
    assert some.loss_of_constant == pytest.approx(variance)


def test_the_gain_must_be_above_so_many_standard_errors(rng):
    assert stack_of_gains(gains(rng, 60, ABOVE)).is_better_than_constant()
    assert not stack_of_gains(gains(rng, 60, BELOW)).is_better_than_constant()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_losses_of_any_size_can_be_compared(size, rng):
    assert stack_of_gains(size * gains(rng, 60, ABOVE)).is_better_than_constant()
    assert not stack_of_gains(size * gains(rng, 60, BELOW)).is_better_than_constant()


def test_copies_in_groups_count_as_one_row(rng):
    copies = np.repeat(np.arange(60), 10)
    above, below = (gains(rng, 60, times)[copies] for times in (ABOVE, BELOW))
    assert stack_of_gains(above, groups=copies).is_better_than_constant()
    assert not stack_of_gains(below, groups=copies).is_better_than_constant()
    assert stack_of_gains(below).is_better_than_constant()


@pytest.mark.parametrize("times", [1, 9])
def test_a_row_that_several_pairs_hold_out_counts_once(times, rng):
    held, one = np.arange(N) < 40, np.ones(1)
    loss = HeldOutLoss.of(task := held_out_loss().task, folds(task, [(~held, held)] * times))
    for size in (ABOVE, BELOW):
        gained = np.tile(gains(rng, 40, size), times)
        stack = Stack(loss, [], one, one, 0 * gained, gained)
        assert stack.is_better_than_constant() == (size == ABOVE)


def test_one_row_or_group_tells_nothing():
    loss, one = held_out_loss(groups=np.arange(N) // 60), np.ones(1)
    held = np.arange(N) < 60
    alone = HeldOutLoss.of(loss.task, folds(loss.task, [(~held, held)]))
    assert not Stack(alone, [], one, one, np.zeros(60), np.ones(60)).is_better_than_constant()


def test_without_weights_it_is_the_constant(rng):
    loss, none = held_out_loss(), np.zeros(1)
    assert not Stack(loss, [], none, none, np.zeros(N), np.ones(N)).is_better_than_constant()


# The loss of other rows


def path_of_folds(loss, rng):
    """Return a path of a member of which every fold chooses other predictions."""
    shape = (len(loss.task.targets), N)
    t = loss.targets.reshape(shape)
    margins = [0.7 * t + 0.5 * t.std() * rng.standard_normal(shape) for _ in range(7)]
    means = np.mean(margins, axis=0)
    return MemberPath(None, 1.0, margins[0], means, [], margins[2:], np.ones((1, 1)), 0, False, 0)


def test_penalties_and_weights_are_chosen_by_other_folds(rng):
    loss = held_out_loss(groups=np.arange(N), sample_weight=WEIGHT)
    paths = [path_of_folds(loss, rng) for _ in range(2)]
    stack, t, expected = Stack.of(loss, paths, True), loss.targets[0], 0.0
    for k in range(5):
        others, here = (w := loss.folds.fold != k) * loss.folds.weight, ~w
        b = np.average(t, weights=others)
        M = np.stack([path.without[k][0] - b for path in paths])
        u = nnls((M * np.sqrt(others)).T, (t - b) * np.sqrt(others))[0]
        expected += loss.folds.weight[here] @ (b + u @ M - t)[here] ** 2 / 2
    assert stack.used and stack.loss_of_other_rows() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", TARGETS)
def test_the_distance_to_the_mean_of_the_folds_is_taken_off(name, rng):
    """Of rows one by one; where rows come in groups it is not."""
    apart = held_out_loss(name)
    grouped = replace(apart, folds=replace(apart.folds, are_of_rows=False))
    paths = [path_of_folds(apart, rng)]
    stack, whole = (Stack.of(loss, paths, True) for loss in (apart, grouped))
    assert stack.used
    b, u = stack.constant_margins, stack.weights
    own, mean = (b + u * (M - b) for M in (paths[0].predictions, paths[0].means))
    h = 1e-4 * (own - mean)
    steps = [apart.losses(mean + step) for step in (h, 0 * h, -h)]
    curved = apart.weight @ (steps[0] - 2 * steps[1] + steps[2]) / 1e-8 / 2
    told, not_less = stack.loss_of_other_rows(), whole.loss_of_other_rows()
    least = apart.mean(mean)
    assert told == pytest.approx(max(not_less - TAKEN_OFF * curved, least), rel=0.05)
    assert told < not_less


def test_noise_has_the_loss_of_the_constant(rng):
    loss = held_out_loss(y=rng.standard_normal(N))
    path = path_of(rng.standard_normal((1, N)))
    stack = Stack.of(loss, [path], True)
    assert not stack.used
    assert stack.loss_of_constant < stack.loss_of_other_rows() < 1.05 * stack.loss_of_constant
