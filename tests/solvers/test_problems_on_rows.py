"""Problems on a working set of features, and the Gram matrices and values kept of these features,
against plain NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from sparserf import Linear, sparse_rf
from sparserf.features import linear_functions
from sparserf.losses import LOSSES, Cox, Huber, Ordinal, Quantile
from sparserf.losses.classification import OneClassMultinomial
from sparserf.rows import HostVectors, as_rows
from sparserf.solvers import l1, multinomial, ridge
from sparserf.solvers.active import ActiveFeatures, Support, bordered
from sparserf.solvers.budget import Budget
from sparserf.solvers.l1 import CurvatureWeights, L1Problem, WorkingSet, prox_newton
from sparserf.solvers.multinomial import (
    Extrapolation,
    MultinomialProblem,
    nearest_median,
    shared_features,
)
from sparserf.solvers.problem import Iterate, Problem
from sparserf.solvers.ridge import RidgeProblem

from ..conftest import as_within_a_call, l1_oracle, n_examples

# Losses, dual points and intercepts of a problem

COX = Cox(times=(1.0, 2.0, 3.0, 5.0), hazards=(0.1, 0.5, 1.0, 3.0))
ORDINAL = Ordinal(thresholds=(-1.0, 0.5))
OWN = {**LOSSES, "huber": Huber(0.7), "quantile": Quantile(0.8, 0.3)}
OWN |= {"cox": COX, "ordinal": ORDINAL}
SINGLE = [name for name in OWN if name not in ("multinomial", "smoothed_hinge")]


def target(name, rng, n=60):
    """Draw a target in the range of the loss."""
    if name == "ordinal":
        return rng.integers(0, 3, n) * 1.0
    if OWN[name].is_classifier:
        return rng.choice([-1.0, 1.0], n)
    if name == "cox":
        return rng.integers(-4, 5, n) * 1.0
    return rng.gamma(1.0, size=n) if OWN[name].link == "log" else 3 * rng.standard_t(3, n)


def problem_of(name, rng, n=60, alpha=0.1, fit_intercept=True, kind=Problem):
    """Draw a problem of that loss with weights of mean 1."""
    s = rng.uniform(0.1, 2, n)
    return kind.from_arrays(
        HostVectors(n), OWN[name], target(name, rng, n), s / s.mean(), alpha, fit_intercept
    )


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("start", [-700.0, -3.0, 0.0, 40.0])
@as_within_a_call
def test_best_intercepts_minimize_the_mean_loss(name, start):
    rng = np.random.default_rng(3)
    problem, f = problem_of(name, rng), rng.normal(size=60)
    b = problem.best_intercept(f, start)
    best = minimize_scalar(
        lambda b: problem.mean_loss(f + b),
        bounds=(-30, 30),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert problem.mean_loss(f + b) <= best.fun + 1e-13
    assert abs(problem.dual_point(f + b).sum()) <= 1e-9
    assert problem_of(name, rng, fit_intercept=False).best_intercept(f, start) == 0.0


def test_the_intercept_of_a_single_label_is_finite(rng):
    """Where all labels are equal the loss has no minimum: the search ends where the loss is zero
    but for rounding."""
    problem = Problem.from_arrays(
        HostVectors(5), LOSSES["logistic"], np.ones(5), np.ones(5), 0.1, True
    )
    f = rng.normal(size=5)
    b = problem.best_intercept(f, 0.0)
    assert np.isfinite(b)
    assert problem.mean_loss(f + b) < 1e-15
    assert abs(b) <= abs(f).max() + 1 + 746


def test_a_newton_step_of_the_intercept_is_exact_for_the_squared_loss(rng):
    problem, f = problem_of("squared", rng), rng.normal(size=60)
    assert problem.newton_intercept(f, 123.0) == pytest.approx(
        np.average(problem.y - f, weights=problem.weight)
    )
    assert problem_of("squared", rng, fit_intercept=False).newton_intercept(f, 123.0) == 123.0


@pytest.mark.parametrize("name", SINGLE)
def test_sums_over_the_rows(name):
    rng = np.random.default_rng(5)
    problem, z = problem_of(name, rng), rng.normal(size=60)
    loss, y, s = problem.loss, problem.y, problem.weight
    assert problem.mean_loss(z) == pytest.approx((s * loss.value(z, y)).sum() / 60)
    np.testing.assert_allclose(problem.dual_point(z), s * loss.derivative(z, y) / 60)
    np.testing.assert_allclose(problem.curvature(z), s * loss.curvature(z, y) / 60)
    np.testing.assert_allclose(problem.derivative(z), loss.derivative(z, y))
    u = loss.derivative(z, y)
    conjugate = (s * loss.conjugate(0.4 * u, y)).sum() / 60
    assert problem.mean_conjugate(u, 0.4) == pytest.approx(conjugate)
    assert problem.mean_loss_and_conjugate(z, 0.4) == pytest.approx(
        problem.mean_loss(z) + conjugate
    )
    h = problem.curvature(z)
    x = np.array([2.0, -1.0])
    np.testing.assert_allclose(problem.intercept_response(h.sum(), x), -x / h.sum())
    np.testing.assert_array_equal(problem.intercept_response(0.0, x), [0, 0])
    np.testing.assert_array_equal(
        problem_of(name, rng, fit_intercept=False).intercept_response(h.sum(), x), [0, 0]
    )


def test_intercepts_of_several_outputs_each_minimize_their_loss(rng):
    y, f = rng.normal(size=(3, 20)), rng.normal(size=(3, 20))
    problem = Problem.from_arrays(HostVectors(20), LOSSES["squared"], y, np.ones(20), 0.1, True)
    np.testing.assert_allclose(problem.best_intercepts(f, np.zeros(3)), (y - f).mean(axis=1))
    np.testing.assert_array_equal(problem.margins(f, np.arange(3.0)), f + np.arange(3)[:, None])
    assert problem.mean_losses(f).shape == (3,)
    assert problem.mean_loss(f) == pytest.approx(((f - y) ** 2).sum() / 40)


def test_the_duality_gap_of_an_l1_problem_is_primal_less_dual(rng):
    """The dual value is -(1/n) sum s L*(c u) at slopes u and c = min(1, alpha / largest
    correlation)."""
    problem, z, w = (
        problem_of("squared", rng, kind=L1Problem),
        rng.normal(size=60),
        np.array([1.0, -0.5]),
    )
    u, y, s = z - problem.y, problem.y, problem.weight
    for largest, c in ((0.05, 1.0), (0.4, 0.25)):
        dual = -(s * ((c * u) ** 2 / 2 + c * u * y)).sum() / 60
        assert problem.dual_gap(z, w, largest) == pytest.approx(problem.objective(z, w) - dual)
    assert problem.objective(z, w) == pytest.approx(problem.mean_loss(z) + 0.15)
    exact = Problem.from_arrays(
        HostVectors(2), LOSSES["squared"], np.zeros(2), np.ones(2), 0.1, True
    )
    assert (
        L1Problem(*(getattr(exact, name) for name in exact.__dataclass_fields__)).dual_gap(
            np.zeros(2), 0 * w, 0.0
        )
        == 0
    )


# Multinomial problems


def multinomial_problem(vectors, targets, s, fit_intercept):
    """Return the problem of all classes."""
    return MultinomialProblem.from_arrays(
        vectors, LOSSES["multinomial"], np.stack(targets), s, 0.0, fit_intercept
    )


def signs_of(label, n_classes):
    """Return the target of each class: 1 where a row is of it, else -1."""
    return [np.where(label == k, 1.0, -1.0) for k in range(n_classes)]


def test_bounds_of_the_multinomial_loss_in_one_class():
    """The curvature of log(e^z + e^c) in z is at most 1/4, but where all classes move 1/2. Its dual
    growth has no bound."""
    loss = OneClassMultinomial()
    assert (loss.smoothness, loss.is_unimodal, loss.dual_growth) == (0.5, False, np.inf)


@settings(max_examples=n_examples(100))
@given(
    z=arrays(float, (3, 5), elements=st.floats(-30, 30)),
    label=arrays(int, 5, elements=st.integers(0, 2)),
    k=st.integers(0, 2),
)
def test_a_class_against_the_others_has_the_same_loss(z, label, k):
    loss, against, y = LOSSES["multinomial"], OneClassMultinomial(), np.stack(signs_of(label, 3))
    rivals = multinomial_problem(HostVectors(5), list(y), np.ones(5), True)
    targets = []
    rivals.in_turn(z, range(3), lambda k, y_k: targets.append(y_k) or z[k])
    y_k = targets[k]
    np.testing.assert_allclose(
        against.value(z[k], y_k), loss.value(z, y).sum(axis=0), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(against.derivative(z[k], y_k), loss.derivative(z, y)[k], atol=1e-12)
    np.testing.assert_allclose(against.curvature(z[k], y_k), loss.curvature(z, y)[k], atol=1e-12)
    u = against.derivative(z[k], y_k)
    np.testing.assert_allclose(
        against.value(z[k], y_k) + against.conjugate(u, y_k), u * z[k], atol=1e-8
    )


def test_a_turn_looks_at_no_more_rows_of_numbers_where_there_are_more_classes(monkeypatch):
    """The log-sum-exp of the other classes' margins is kept from turn to turn: a turn looks at two
    rows of numbers."""
    seen = []
    log_sum_exp = multinomial.log_sum_exp
    monkeypatch.setattr(multinomial, "log_sum_exp", lambda z: seen.append(len(z)) or log_sum_exp(z))
    z = 3 * np.random.default_rng(0).normal(size=(7, 20))
    z[2] += 1e3  # the other classes vanish beside this one
    rivals = multinomial_problem(HostVectors(20), signs_of(np.arange(20) % 7, 7), np.ones(20), True)
    moved = z.copy()

    def move(k, target):
        (_, others, _) = target
        np.testing.assert_allclose(others, log_sum_exp(np.delete(moved, k, axis=0)), rtol=1e-12)
        moved[k] -= 5
        return moved[k]

    rivals.in_turn(z, range(7), move)
    np.testing.assert_array_equal(moved, z - 5)
    assert max(seen) == 2 and len(seen) <= 3 * 7


def test_what_is_common_is_the_median_nearest_to_zero():
    w = np.array([[1.0, 1, -2, 5], [2, 2, -1, 0], [3, -1, 4, 7], [9, -3, 5, 8]])
    np.testing.assert_array_equal(nearest_median(w), [2, 0, 0, 5])


def test_classes_without_intercepts_have_zeros(rng):
    rivals = multinomial_problem(
        HostVectors(6), list(np.tile(2 * np.eye(3) - 1, 2)), np.ones(6), False
    )
    np.testing.assert_array_equal(
        rivals.best_intercepts(rng.normal(size=(3, 6)), np.ones(3)), [0, 0, 0]
    )


@pytest.mark.parametrize("scale", [0.1, 5.0, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_intercepts_of_all_classes_meet_their_shares_from_any_start(scale, seed):
    rng = np.random.default_rng(seed)
    label, f, s = (
        rng.integers(0, 3, 40),
        scale * rng.normal(size=(3, 40)),
        rng.uniform(0.5, 1.5, 40),
    )
    rivals = multinomial_problem(HostVectors(40), signs_of(label, 3), s / s.mean(), True)
    b = rivals.best_intercepts(f, scale * rng.normal(size=3))
    off = (
        rivals.weight * (softmax(f + b[:, None], axis=0) - (np.arange(3)[:, None] == label))
    ).sum(axis=1)
    assert abs(off).max() <= 1e-6 * 40
    assert abs(b.mean()) <= 1e-9 * (1 + abs(b).max())
    loss, slope, shares, curvature = rivals._expand_in_intercepts(f, b)
    p = softmax(f + b[:, None], axis=0)
    assert loss == pytest.approx(-(rivals.weight * np.log(p[label, np.arange(40)])).mean())
    np.testing.assert_allclose(slope, off / 40, atol=1e-12)
    np.testing.assert_allclose(shares, (rivals.weight * p).mean(axis=1))
    np.testing.assert_allclose(
        curvature, np.diag(shares) - (rivals.weight * p) @ p.T / 40, atol=1e-12
    )


def test_features_shared_by_all_classes():
    indices = [np.array([7, 2, 9, 4]), np.array([4, 7, 1]), np.array([0, 4, 7, 9])]
    every, places = shared_features(indices)
    np.testing.assert_array_equal(every, [4, 7])
    np.testing.assert_array_equal(
        [index[place] for index, place in zip(indices, places, strict=True)], [[4, 7]] * 3
    )


def test_extrapolation_finds_the_limit_of_linear_sweeps(rng):
    """After six sweeps w <- T w + c of four numbers, a combination of the last five iterates is the
    fixed point."""
    T, c = np.diag([0.9, 0.7, -0.5, 0.2]), rng.normal(size=4)
    w, extrapolation = rng.normal(size=4), Extrapolation()
    for k in range(6):
        combine, past = extrapolation.after_sweep([Iterate(w[:3], w[3], k, 0.0)])
        assert (not past) == (k < 5)
        w = T @ w + c
    (last,) = past
    assert combine(*np.ones(5)) == pytest.approx(1)
    assert [it.f for it in last] == [1, 2, 3, 4, 5]
    ws = [np.append(it.w, it.b) for it in last]
    np.testing.assert_allclose(combine(*ws), np.linalg.solve(np.eye(4) - T, c), rtol=1e-4)


def test_extrapolation_restarts_where_terms_have_gone_and_where_nothing_moves(rng):
    def found(extrapolation, *w):
        return [extrapolation.after_sweep([Iterate(each, 0.0, None, 0.0)])[1] for each in w]

    fewer = [rng.normal(size=3 - k // 4) for k in range(8)]
    assert found(Extrapolation(), *fewer) == [[]] * 8
    extrapolation, same = Extrapolation(), [np.ones(3)] * 6
    assert found(extrapolation, *same) == [[]] * 6
    # earlier iterates are forgotten
    assert found(extrapolation, *same[1:]) == [[]] * 5


# Features in use and their Gram matrices


def columns_of(rng, n=50, d=6, k=4, budget=None):
    """Return (X W', the linear functions W in use, X, the budget that they count)."""
    X, W, budget = rng.normal(size=(n, d)), rng.normal(size=(k, d)), budget or Budget(np.inf)
    A = ActiveFeatures(as_rows(X), budget)
    A.append(linear_functions(W), np.arange(k))
    return X @ W.T, A, X, budget


def test_a_gram_matrix_follows_weights_and_features(rng):
    """The Gram matrix and its cost are right after few and many changes of weights, new features
    and fewer features."""
    phi, A, X, budget = columns_of(rng)
    h = rng.uniform(0.5, 2, 50) * (rng.random(50) < 0.9)
    few, many = h.copy(), rng.uniform(0.5, 2, 50)
    few[:7] += 1

    def agrees(h):
        gram, sums = A.weighted_gram(h)
        np.testing.assert_allclose(gram, phi.T * h @ phi, atol=1e-11)
        np.testing.assert_allclose(sums, phi.T @ h, atol=1e-11)

    for weights, cost in (
        (h, 16 * np.count_nonzero(h) / 2),
        (h, 0),
        (h.copy(), 0),
        (few, 7 * 16 / 2),
        (many, 50 * 16 / 2),
    ):
        budget._spent = 0
        agrees(weights)
        assert budget._spent == cost
    W = rng.normal(size=(2, 6))
    A.append(linear_functions(W), np.array([7, 9]))
    phi = np.hstack([phi, X @ W.T])
    budget._spent = 0
    agrees(many)
    assert budget._spent == 50 * (36 - 16) / 2
    A.keep(np.array([0, 2, 5]))
    phi = phi[:, [0, 2, 5]]
    agrees(many)
    np.testing.assert_array_equal(A.index, [0, 2, 9])
    np.testing.assert_allclose(A.correlate(h), phi.T @ h)
    np.testing.assert_allclose(A.apply(np.array([1.0, 0.0, -2.0])), phi @ [1, 0, -2])
    np.testing.assert_allclose(A.apply(np.array([[1.0, 0, 0], [0, 0, 1]])), [phi[:, 0], phi[:, 2]])


def test_rough_gram_matrices_are_replaced_where_exact_ones_are_asked_for(rng):
    phi, A, _, budget = columns_of(rng, n=400, k=3)
    h = rng.random(400)
    A.weighted_gram(h, is_rough=True)
    budget._spent = 0
    A.weighted_gram(h, is_rough=True)
    assert budget._spent == 0
    np.testing.assert_allclose(A.weighted_gram(h)[0], phi.T * h @ phi, rtol=1e-12)
    assert budget._spent == 400 * 9 / 2


def test_values_of_features_of_many_inputs_are_kept(rng):
    """From 64 inputs on values are kept, while they are at most twice as many numbers as X."""
    phi, A, X, _ = columns_of(rng, n=30, d=64, k=3)
    np.testing.assert_allclose(A.correlate(np.ones(30)), phi.sum(axis=0))
    assert A._values.shape == (30, 3)
    A.keep(np.array([0, 2]))
    assert A._values.shape == (30, 2)
    W = rng.normal(size=(1, 64))
    A.append(linear_functions(W), np.array([5]))
    np.testing.assert_allclose(
        A.apply(np.array([1.0, 2, 3])), phi[:, [0, 2]] @ [1, 2] + 3 * (X @ W[0])
    )
    assert A._values.shape == (30, 3)
    g, answers = A.ask(np.ones(30), [lambda block, v: v.sum()])
    np.testing.assert_allclose(g, [*phi[:, [0, 2]].sum(axis=0), (X @ W[0]).sum()])
    assert answers == [30]
    for d, k in ((63, 3), (64, 129)):
        _, A, _, _ = columns_of(rng, n=5, d=d, k=k)
        A.correlate(np.ones(5))
        assert A._values.shape == (5, 0)
    _, A, _, _ = columns_of(rng, n=5, d=64, k=128)
    A.correlate(np.ones(5))
    assert A._values.shape == (5, 128)


@pytest.mark.parametrize("d", [6, 70])
def test_one_pass_evaluates_a_step(rng, d):
    phi, A, _, _ = columns_of(rng, d=d)
    problem, c, f = problem_of("logistic", rng, 50), rng.normal(size=4), rng.normal(size=50)
    c[1] = 0
    end, loss, g, answers = A.evaluate_step(problem, c, f, 0.3, [lambda block, v: v.sum()])
    z = f + phi @ c + 0.3
    np.testing.assert_allclose(end, f + phi @ c, atol=1e-12)
    assert loss == pytest.approx(problem.mean_loss(z))
    np.testing.assert_allclose(g, phi.T @ problem.dual_point(z), atol=1e-12)
    assert answers == [pytest.approx(problem.dual_point(z).sum())]


def test_the_kernel_matrix_follows_the_support(rng):
    X, r = rng.normal(size=(12, 30)), rng.uniform(0.5, 2, 30)
    everything = Linear().draw(None, 30)
    support = Support(as_rows(X), everything, r)
    for index in (np.arange(10), np.array([*range(1, 10), 29]), np.arange(15, 30), np.array([3])):
        support.replace(index)
        assert set(support.index) == set(index)
        np.testing.assert_allclose(
            support.kernel(), X[:, index] / r[index] ** 2 @ X[:, index].T, atol=1e-12
        )


def test_a_support_keeps_the_order_of_features_that_stay(rng):
    support = Support(as_rows(rng.normal(size=(3, 9))), Linear().draw(None, 9), np.ones(9))
    support.replace(np.array([7, 2, 5]))
    support.replace(np.array([8, 5, 1, 2]))
    np.testing.assert_array_equal(support.index, [2, 5, 1, 8])


def test_a_bordered_matrix():
    whole = np.arange(16.0).reshape(4, 4)
    whole = whole + whole.T
    np.testing.assert_array_equal(bordered(whole[:2, :2], whole[:, 2:]), whole)


# The l1 problem on a working set


def working_set(name, rng, alpha, n=80, k=6, fit_intercept=True):
    """Return X, an l1 problem on its rows, and a working set of all its columns at w = 0."""
    X = rng.normal(size=(n, k))
    rows = as_rows(X)
    problem = problem_of(name, rng, n, alpha, fit_intercept, L1Problem)
    A = WorkingSet(rows, problem, Budget(np.inf))
    A.add(Linear().draw(None, k), np.arange(k), np.zeros(k))
    A.learn([])
    return X, problem, A


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", SINGLE)
def test_l1_solutions_on_a_working_set_are_the_minimum(name, fit_intercept):
    X, problem, A = working_set(name, np.random.default_rng(8), 0.03, fit_intercept=fit_intercept)
    prox_newton(problem, A, 1e-11)

    def value_and_slopes(z):
        return problem.mean_loss(z), problem.dual_point(z)

    assert (
        A.objective(problem)
        <= l1_oracle(value_and_slopes, X, problem.alpha, fit_intercept=fit_intercept).fun + 1e-9
    )
    assert problem.dual_gap(A.z, A.w, A.largest_gradient) <= 1e-11
    np.testing.assert_allclose(A.f, X @ A.w, atol=1e-9)
    np.testing.assert_allclose(A.g, X.T @ problem.dual_point(A.z), atol=1e-9)
    assert A.objective(problem) == pytest.approx(problem.objective(X @ A.w + A.b, A.w))


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_the_units_of_features_do_not_matter_to_the_l1_problem(name):
    found = []
    for unit in (1.0, 2.0**-60):
        rng = np.random.default_rng(0)
        X, problem = (
            rng.normal(size=(80, 6)) * unit,
            problem_of(name, rng, 80, 0.03 * unit, True, L1Problem),
        )
        A = WorkingSet(as_rows(X), problem, Budget(np.inf))
        A.add(Linear().draw(None, 6), np.arange(6), np.zeros(6))
        A.learn([])
        prox_newton(problem, A, 1e-11)
        assert problem.dual_gap(A.z, A.w, A.largest_gradient) <= 1e-11
        found.append(A.w * unit)
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("seed", [8, 16, 60, 79, 88, 109, 61])
def test_the_l1_problem_is_solved_where_few_rows_are_curved(seed):
    """With fewer curved rows than terms the quadratic model has a minimum by its damping alone, and
    steps of any size."""
    rng, (n, k) = np.random.default_rng(seed), [(80, 6), (30, 10), (200, 40)][seed // 3 % 3]
    name = "huber" if seed == 61 else "quantile"
    _, problem, A = working_set(name, rng, [0.03, 0.003, 0.1][seed % 3], n, k, seed % 2 == 1)
    prox_newton(problem, A, 1e-9)
    assert problem.dual_gap(A.z, A.w, A.largest_gradient) <= 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_of_a_sharp_loss_to_few_rows_converges(seed):
    """At the start two of the sixty rows have curvature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 6))
    y = 3 * rng.standard_t(3, 60) + X[:, 0]
    model = sparse_rf(X, y, features=Linear(), loss=Quantile(0.8, 0.1), alpha=0.03, rng=0)
    assert model.info.converged
    assert len(model.features) > 0


@as_within_a_call
def test_no_step_is_made_where_no_coefficient_is_worth_its_penalty():
    """There nothing is violated; a gap that is left is rounding, and ends the search, too."""
    for seed in range(4):
        _, problem, A = working_set("logistic", np.random.default_rng(seed), 1.0)
        prox_newton(problem, A, 0.0)
        assert not A.w.any()


def test_terms_with_coefficient_zero_are_pruned(rng):
    X, problem, A = working_set("squared", rng, 0.4)
    A.move(problem, np.array([0.0, 1, 0, 2, 0, 0]), 0.0, X @ [0, 1, 0, 2, 0, 0])
    A.g = np.arange(6.0)
    A.prune(but=np.arange(6) == 4)
    np.testing.assert_array_equal(A.index, [1, 3, 4])
    np.testing.assert_array_equal(A.w, [1, 2, 0])
    np.testing.assert_array_equal(A.g, [1, 3, 4])
    A.prune()
    np.testing.assert_array_equal(A.w, [1, 2])
    assert A.largest_gradient == 3


def test_row_weights_are_those_of_a_sample_until_all_are_asked_for(rng, monkeypatch):
    monkeypatch.setattr(l1, "MANY_ROWS", 1000)
    problem = problem_of("logistic", rng, 5000, kind=L1Problem)
    weights, z = CurvatureWeights(problem), rng.normal(size=5000)
    h = weights.at(z, 10)
    full = problem.curvature(z)
    assert 50 <= np.count_nonzero(h) <= 110  # about eight a term
    assert h.sum() == pytest.approx(full.sum(), rel=0.6)
    assert weights.total == pytest.approx(h.sum())
    assert weights.at(z + 1, 10) is h  # the weights are kept until they are improved
    assert (weights.is_rough, weights.is_best) == (True, False)
    weights.improve(None, grow=True, settle=True)
    n = np.count_nonzero(weights.at(z, 10))
    assert 90 <= n <= 220
    assert weights.is_rough
    weights.improve(None, grow=False, settle=False)
    assert np.count_nonzero(weights.at(z, 10)) == n
    whole = CurvatureWeights(problem)
    np.testing.assert_array_equal(whole.at(z, 1000), full)
    assert not whole.is_best  # products are in single precision
    whole.improve(None, grow=True, settle=True)
    np.testing.assert_array_equal(whole.at(z, 1000), full)
    assert whole.is_best
    assert not whole.is_rough
    whole.at(z, 1000)
    assert not whole.is_best  # they are the weights of another z


@pytest.mark.parametrize(
    ("name", "n", "is_rough"),
    [("logistic", 5000, False), ("logistic", 5001, True), ("squared", 5001, False)],
)
def test_products_in_single_precision_are_of_many_rows(rng, name, n, is_rough):
    assert CurvatureWeights(problem_of(name, rng, n, kind=L1Problem)).is_rough == is_rough


def test_row_weights_cover_both_ends_of_a_step(rng):
    problem = problem_of("logistic", rng, 50, kind=L1Problem)
    weights, z, rejected = CurvatureWeights(problem), rng.normal(size=50), rng.normal(size=50)
    weights.at(z, 100)
    weights.improve(rejected, grow=True, settle=True)
    np.testing.assert_array_equal(
        weights.at(z, 100), np.maximum(problem.curvature(z), problem.curvature(rejected))
    )
    assert not weights.is_best
    counts = problem_of("poisson", rng, 50, kind=L1Problem)
    weights = CurvatureWeights(counts)
    weights.at(z, 100)
    weights.improve(z + 30, grow=True, settle=True)
    assert weights.at(z, 100).max() == pytest.approx(1e3 * counts.curvature(z).max())


@pytest.mark.parametrize(("name", "most"), [("squared_hinge", 2.0), ("poisson", 1.0)])
def test_row_weights_without_curvature_are_its_upper_bound(rng, name, most):
    problem = problem_of(name, rng, 20, kind=L1Problem)
    z = 1e3 * problem.y if name == "squared_hinge" else np.full(20, -1e4)
    np.testing.assert_allclose(CurvatureWeights(problem).at(z, 100), most * problem.weight / 20)


def test_rows_count_by_their_weight_where_some_have_no_curvature(rng):
    X, problem, A = working_set("squared_hinge", rng, 0.1)
    np.testing.assert_allclose(A.row_curvature(), 2 * problem.weight / 80)
    w = 9.0 * np.ones(6)
    A.move(problem, w, 0.0, X @ w)
    assert 0 < np.count_nonzero(problem.curvature(A.z)) < 80
    np.testing.assert_allclose(A.row_curvature(), problem.weight / 80)


# Ridge


class Phi(ActiveFeatures):
    """Features in use that have a kernel matrix."""

    scale = np.ones(20)

    def kernel(self):
        return self._rows.kernel(self.features, self.scale)


@pytest.mark.parametrize("n", [12, 90])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", SINGLE)
def test_ridge_solutions_are_stationary(name, n, fit_intercept):
    """With fewer rows than the 20 terms the dual problem is solved, with more rows the primal."""
    rng = np.random.default_rng(1)
    X, p = rng.normal(size=(n, 20)) / 4, rng.uniform(0.05, 0.2, 20)
    problem = problem_of(name, rng, n, 0.1, fit_intercept, RidgeProblem)
    phi = Phi(as_rows(X))
    phi.append(Linear().draw(None, 20), np.arange(20))
    phi.scale = problem.alpha / p
    start, change = rng.normal(size=20) / 10, rng.normal(size=20) / 10
    w = start + change
    for f, c in ((X @ w, None), (X @ start, change)):
        b = problem.best_intercept(f, 0.0)
        point = ridge.solve(problem, phi, p, w, b, f, c)
        v = problem.dual_point(X @ point.w + point.b)
        np.testing.assert_allclose(X.T @ v + p * point.w, 0, atol=3e-6)
        assert abs(v.sum()) <= 3e-6 or not fit_intercept
        np.testing.assert_allclose(point.f, X @ point.w, atol=1e-8)
        value = problem.mean_loss(X @ point.w + point.b) + 0.5 * (p * point.w**2).sum()
        assert point.objective == pytest.approx(value, rel=1e-9)
        assert fit_intercept or point.b == 0


@pytest.mark.parametrize("n", [12, 90])
@pytest.mark.parametrize("name", ["logistic", "poisson", "tweedie", "squared_hinge"])
def test_ridge_solutions_from_far_away(name, n):
    """Whole steps of Newton's method would go too far from there."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 20)) / 4
    problem = problem_of(name, rng, n, 1e-3, True, RidgeProblem)
    w = 15 * rng.normal(size=20)
    phi = Phi(as_rows(X))
    phi.append(Linear().draw(None, 20), np.arange(20))
    point = ridge.solve(problem, phi, 1e-3, w, problem.best_intercept(X @ w, 0.0), X @ w)
    v = problem.dual_point(X @ point.w + point.b)
    np.testing.assert_allclose(X.T @ v + 1e-3 * point.w, 0, atol=3e-6)


@pytest.mark.parametrize("name", ["squared", "logistic", "squared_hinge", "huber"])
def test_the_lower_bound_of_ridge_problems(name):
    """At the optimum on all three features the bound is tight; the bound for two features is below
    every pair's optimum."""
    rng = np.random.default_rng(2)
    X, r2 = rng.normal(size=(60, 3)), np.array([1.0, 2.0, 0.5])
    problem = problem_of(name, rng, 60, 0.1, True, RidgeProblem)
    phi = Phi(as_rows(X))
    phi.append(Linear().draw(None, 3), np.arange(3))
    best = ridge.solve(problem, phi, 0.1 * r2, np.zeros(3), 0.0, np.zeros(60))
    z = X @ best.w + best.b
    squares = (X.T @ problem.dual_point(z)) ** 2 / r2
    assert problem.lower_bound(z, squares, 3) <= best.objective + 1e-12
    assert problem.lower_bound(z, squares, 3) == pytest.approx(best.objective, rel=1e-4)
    assert problem.dual_value(problem.derivative(z), squares.sum()) == pytest.approx(
        best.objective, rel=1e-9
    )
    assert problem.lower_bound(z, squares, 2) >= problem.lower_bound(z, squares, 3)
    for pair in ([0, 1], [0, 2], [1, 2]):
        phi = Phi(as_rows(X[:, pair]))
        phi.append(Linear().draw(None, 2), np.arange(2))
        two = ridge.solve(problem, phi, 0.1 * r2[pair], np.zeros(2), 0.0, np.zeros(60))
        assert problem.lower_bound(z, squares, 2) <= two.objective + 1e-12
    # there a multiple of the dual point gives a better bound than the point itself
    far = 5 * rng.normal(size=60)
    squares = (X.T @ problem.dual_point(far)) ** 2 / r2
    bounds = [
        problem.dual_value(problem.derivative(far), squares.sum(), c)
        for c in [0, *np.geomspace(1e-4, 1, 3001)]
    ]
    assert problem.lower_bound(far, squares, 3) == pytest.approx(max(bounds), rel=1e-3, abs=1e-6)
