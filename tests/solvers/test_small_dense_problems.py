"""Small dense problems, each against plain NumPy: Cholesky factors, quadratics with an l1 penalty,
conjugate gradients."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserf.rows import as_rows
from sparserf.solvers.budget import Budget, work_of_pass
from sparserf.solvers.cholesky import (
    RIDGES,
    GrowingCholesky,
    factor_positive,
    inverse_positive,
    semidefinite_root,
    solve_positive,
)
from sparserf.solvers.krylov import ArrayVectors, DampedInverse, conjugate_gradients, norms
from sparserf.solvers.l1_quadratic import (
    L1Quadratic,
    OnSupport,
    interior_point,
    minimize,
    newton_step_on_support,
)
from sparserf.solvers.nonnegative import nonnegative_minimum
from sparserf.solvers.problem import backtrack

from ..conftest import examples

# The line search


@pytest.mark.parametrize(("below", "t"), [(1.0, 1.0), (0.99, 0.5), (0.5, 0.5), (0.13, 0.125)])
def test_backtrack_halves_until_it_is_lower(below, t):
    asked = []
    found = backtrack(
        lambda t: asked.append(t) or f"at {t}", lambda point, t: point == f"at {t}" and t <= below
    )
    assert found == (t, f"at {t}")
    assert asked == [0.5**k for k in range(len(asked))]


def test_backtrack_gives_up_at_the_shortest():
    asked = []
    assert backtrack(lambda t: asked.append(t) or t, lambda point, t: False, t=0.5) == (0.0, None)
    assert (asked[0], asked[-1]) == (0.5, 2.0**-33)


# Linear systems


def test_definite_systems_are_solved(rng):
    A, g = rng.normal(size=(9, 7)), rng.normal(size=(7, 2))
    H = A.T @ A
    for right in (g, g[:, 0]):
        np.testing.assert_allclose(solve_positive(H, right), np.linalg.solve(H, right), rtol=1e-9)


def test_semidefinite_matrices_get_a_ridge_in_proportion_to_their_diagonal(rng):
    """Eight columns of rank 4, in units from 1e-4 to 1e4, and a column of zeros."""
    A = np.hstack([rng.normal(size=(20, 4))] * 2 + [np.zeros((20, 1))]) * np.geomspace(1e-4, 1e4, 9)
    H, b = A.T @ A, rng.normal(size=20)
    d = solve_positive(H, A.T @ b)
    residual = b - A @ d
    assert np.linalg.norm(residual) <= np.linalg.norm(
        b - A @ np.linalg.lstsq(A, b, rcond=1e-12)[0]
    ) * (1 + 1e-6)
    L, lower = factor_positive(H)
    assert lower
    off = np.tril(L) @ np.tril(L).T - H
    size = np.sqrt(np.outer(*[H.diagonal() + 1e-30] * 2))
    assert (abs(off)[:8, :8] <= 1e-13 * size[:8, :8]).all()
    # a share of the largest entry
    assert off[8, 8] == pytest.approx(RIDGES[0] * H.diagonal().max(), rel=1)


def test_the_smallest_sufficient_ridge_is_taken():
    H = np.array([[1.0, 1 + 3e-9], [1 + 3e-9, 1.0]])
    L = np.tril(factor_positive(H)[0])
    assert (L @ L.T - H).diagonal() == pytest.approx([1e-8] * 2, rel=1e-3)


@pytest.mark.parametrize("H", [np.array([[1.0, 2], [2, 1]]), -np.eye(2)])
def test_indefinite_systems_have_no_solution(H):
    assert factor_positive(H) is None
    assert solve_positive(H, np.ones(len(H))) is None


@pytest.mark.parametrize("H", [1e-300, np.nan])
def test_solutions_that_overflow_are_none(H):
    assert solve_positive(np.full((1, 1), H), np.array([1e300])) is None


@examples(80)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_the_growing_factor_is_the_factor(seed, blocks):
    """The factor that grows solves to 1e-10; columns that depend on earlier ones are left out,
    and no others."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(80, sum(blocks)))
    copies = rng.random(A.shape[1]) < 0.3
    for j in np.flatnonzero(copies[1:]) + 1:  # a combination of the columns before it
        A[:, j] = A[:, :j] @ rng.normal(size=j)
    copies[:1] = False
    H, factor, kept, start = A.T @ A, GrowingCholesky(), np.zeros(0, int), 0
    for size in blocks:
        new = np.arange(start, start + size)
        added = factor.append(H[np.ix_(kept, new)], H[np.ix_(new, new)])
        kept, start = np.concatenate([kept, new[added]]), start + size
    np.testing.assert_array_equal(kept, np.flatnonzero(~copies))
    g = rng.normal(size=len(kept))
    exact = np.linalg.solve(H[np.ix_(kept, kept)], g) if len(kept) else g
    np.testing.assert_allclose(
        factor.solve(g), exact, rtol=1e-9, atol=1e-10 * np.abs(exact).max(initial=0)
    )


def test_cholesky_keeps_its_weakest_pivot(rng):
    A = rng.normal(size=(30, 5))
    A[:, 3] = A[:, 0] + 1e-3 * A[:, 3]
    H, factor = A.T @ A, GrowingCholesky()
    assert (len(factor), factor.weakest) == (0, 1.0)
    factor.append(H[:0, :3], H[:3, :3])
    np.testing.assert_array_equal(factor.append(H[:3, 3:], H[3:, 3:]), [True, True])
    pivots = np.linalg.cholesky(H).diagonal() ** 2 / H.diagonal()
    assert factor.weakest == pytest.approx(pivots.min(), rel=1e-6)
    assert len(factor) == 5
    many = rng.normal(size=(3, 5))
    np.testing.assert_allclose(factor.solve(many), np.linalg.solve(H, many.T).T, rtol=1e-6)


def test_cholesky_appends_dependent_columns_where_it_must():
    """A column that depends on those before gets its diagonal entry as its pivot."""
    H, factor = np.array([[4.0, 4, 2], [4, 4, 2], [2, 2, 9]]), GrowingCholesky()
    np.testing.assert_array_equal(factor.append(H[:0], H, all_of_them=True), [True] * 3)
    loose = np.array([[4.0, 0, 2], [0, 4, 0], [2, 0, 9]])
    loose[0, 1] = loose[1, 0] = 4  # the row of the factor is (2, 2, .), so that H[1, 1] becomes 8
    loose[1, 1], loose[1, 2], loose[2, 1] = 8, 2, 2
    np.testing.assert_allclose(
        factor.solve(np.array([1.0, 2, 3])), np.linalg.solve(loose, [1, 2, 3]), rtol=1e-12
    )
    assert list(GrowingCholesky().append(H[:0], H)) == [True, False, True]


def test_small_pivots_are_relative_to_the_diagonal():
    H, factor = np.full((2, 2), 0.01), GrowingCholesky()
    factor.append(H[:0], H, all_of_them=True)
    np.testing.assert_allclose(
        factor.solve(np.array([0.0, 0.02])),
        np.linalg.solve([[0.01, 0.01], [0.01, 0.02]], [0.0, 0.02]),
    )


# The work that a fit may take


def test_effort_is_counted():
    budget = Budget(100.0)
    budget.add(60)
    assert not budget.is_spent
    budget.add_factor(6)  # 72
    assert budget.is_spent


@pytest.mark.parametrize(("n", "share"), [(1000, 1.0), (9000, 0.5)])
def test_the_effort_of_an_l1_fit(n, share):
    """1.2e11 multiplications, 4e7 for each row beyond 5,000, and five passes of the dictionary at
    20 + 3 for each value."""
    rows = as_rows(np.zeros((n, 3)))
    assert work_of_pass(rows, 7) == n * 7 * 23
    most = share * (1.2e11 + 4e7 * max(0, n - 5000)) + 5 * n * 7 * 23
    budget = Budget.for_l1_fit(rows, 7, share)
    budget.add(most * (1 - 1e-9))
    assert not budget.is_spent
    budget.add(most * 1e-8)
    assert budget.is_spent


# A quadratic with an l1 penalty


def value(H, g, w, alpha, x):
    """Compute (x - w)'g + (x - w)'H (x - w) / 2 + alpha |x|_1."""
    return (x - w) @ (g + H @ (x - w) / 2) + alpha * np.abs(x).sum()


def least(H, g, w, alpha, nonnegative):
    """Minimize over x by trying all signs: for each, the stationary point if it has these signs."""
    best = np.zeros(len(w))
    for signs in itertools.product((-1, 0, 1), repeat=len(w)):
        A, x = np.flatnonzero(signs), np.zeros(len(w))
        s = np.array(signs, float)
        x[A] = np.linalg.solve(H[np.ix_(A, A)], (H @ w - g - alpha * s)[A]) if len(A) else []
        if (
            (x * s >= 0).all()
            and (x[nonnegative] >= 0).all()
            and value(H, g, w, alpha, x) < value(H, g, w, alpha, best)
        ):
            best = x
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "solve", [minimize, lambda model, tol: interior_point(model, tol, Budget(np.inf))]
)
@pytest.mark.parametrize("nonnegative", [[0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
def test_the_l1_minimum_is_that_over_all_signs(seed, solve, nonnegative):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 4)) @ np.diag([1, 1, 3, 0.1])
    H, g, w, alpha = A.T @ A, 3 * rng.normal(size=4), rng.normal(size=4) * (seed % 3), 0.7
    nonnegative = np.array(nonnegative, bool)
    w = np.where(nonnegative, abs(w), w)
    x, best = (
        solve(L1Quadratic(H, g, w, alpha, nonnegative), 1e-11),
        least(H, g, w, alpha, nonnegative),
    )
    np.testing.assert_allclose(x, best, atol=1e-8)
    assert (x[nonnegative] >= 0).all()


def test_the_interior_point_without_curvature_returns_its_start():
    w = np.array([1.0, -2.0])
    model = L1Quadratic(np.zeros((2, 2)), np.ones(2), w, 0.1)
    assert interior_point(model, 1e-9, Budget(np.inf)) is w


def test_the_interior_point_converges_for_nearly_equal_columns():
    """1e5 passes of coordinate descent would not come as near."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 1)) + 1e-4 * rng.normal(size=(100, 30))
    H, b = A.T @ A / 100, A @ np.linspace(-1, 1, 30) / 100 + 1e-5 * rng.normal(size=100)
    g, w, alpha, budget = -A.T @ b, np.zeros(30), 1e-8, Budget(np.inf)
    x = interior_point(L1Quadratic(H, g, w, alpha), 1e-12, budget)
    v = g + H @ x
    # the rest is rounding: the condition of H is 1e8
    assert abs(v).max() <= alpha + 1e-3 * abs(g).max()
    assert x @ v + alpha * abs(x).sum() <= 1e-6 * alpha * abs(x).sum()  # the duality gap
    assert 30**3 / 3 <= budget._spent <= 40 * 30**3 / 3  # one factorization for each step


def test_the_interior_point_ends_with_its_effort():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(20, 8))
    budget = Budget(2.5 * 8**3 / 3)
    model = L1Quadratic(A.T @ A, rng.normal(size=8), np.zeros(8), 0.01)
    interior_point(model, 1e-14, budget)
    assert budget._spent == pytest.approx(3 * 8**3 / 3)


@pytest.mark.parametrize("seed", range(8))
def test_a_newton_step_descends_and_is_the_minimum_where_no_sign_changes(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 6))
    H, g, alpha = A.T @ A, rng.normal(size=6), 0.3
    w = rng.normal(size=6) * (10.0 if seed % 2 else 0.1)
    w[seed % 6] = 0
    x, v = w.copy(), g.copy()
    newton_step_on_support(L1Quadratic(H, g, w, alpha), x, v)
    assert value(H, g, w, alpha, x) <= value(H, g, w, alpha, w)
    assert x[seed % 6] == 0
    S = np.flatnonzero(w)
    d = np.linalg.solve(H[np.ix_(S, S)], -(g[S] + alpha * np.sign(w[S])))
    if (np.sign(w[S] + d) == np.sign(w[S])).all():
        np.testing.assert_allclose(x[S], w[S] + d, rtol=1e-9)
    else:
        kept = np.where(np.sign(w[S] + d) == np.sign(w[S]), w[S] + d, 0.0)
        ends = [value(H[np.ix_(S, S)], g[S], w[S], alpha, end) for end in (kept, w[S] + d)]
        if min(ends) < value(H, g, w, alpha, w):
            assert value(H, g, w, alpha, x) == pytest.approx(min(ends), rel=1e-9)
        assert not np.array_equal(x, w)


@pytest.mark.parametrize(("nonnegative", "some"), [(False, 1), (True, 4)])
def test_a_newton_step_on_a_large_support_goes_on_where_it_was_cut(nonnegative, some, monkeypatch):
    """It ends no higher than the first cut, and for some nearly equal columns lower; more has
    become zero."""
    n_lower, mask = 0, np.full(60, nonnegative)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(80, 1)) + 0.05 * rng.normal(size=(80, 60))
        H, w, alpha, ends = A.T @ A, rng.normal(size=60), 30.0, []
        w = np.abs(w) if nonnegative else w
        g = -H @ rng.normal(size=60) - alpha * np.sign(w)
        for large in (61, 60):
            monkeypatch.setattr("sparserf.solvers.l1_quadratic.LARGE", large)
            x = w.copy()
            newton_step_on_support(L1Quadratic(H, g, w, alpha, mask), x, g.copy())
            ends.append(x)
            assert not nonnegative or (x >= 0).all()
        first, last = (value(H, g, w, alpha, x) for x in ends)
        assert last <= first < value(H, g, w, alpha, w)
        n_lower += last < first
        assert np.array_equal(*ends) or np.all((ends[0] != 0) | (ends[1] == 0))
    assert n_lower >= some


def test_the_minimum_where_more_and_more_is_zero(rng):
    """It is that on what is left of the support."""
    A = rng.normal(size=(30, 9))
    H, x, slopes = A.T @ A, rng.normal(size=9), rng.normal(size=9)
    support = OnSupport(H, slopes, x)
    minimum = x - np.linalg.solve(H, slopes)
    np.testing.assert_allclose(support.way_to_minimum(x), minimum - x, rtol=1e-9)
    at = x.copy()
    for zeros in ([4], [1, 4, 7]):
        at[zeros] = 0.0
        support.fix_zeros(at)
        S = np.setdiff1d(np.arange(9), zeros)
        expected = np.linalg.solve(H[np.ix_(S, S)], H[S] @ minimum)
        way = support.way_to_minimum(at)
        np.testing.assert_allclose((at + way)[S], expected, rtol=1e-9)
        np.testing.assert_allclose((at + way)[zeros], 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("alpha", [0.3, 1e-12])
def test_a_newton_step_makes_no_coefficient_negative_that_must_not_be(seed, alpha):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 6))
    H, g, w, nonnegative = (
        A.T @ A,
        10 * rng.normal(size=6),
        abs(rng.normal(size=6)),
        np.arange(6) % 2 == 0,
    )
    x = w.copy()
    newton_step_on_support(L1Quadratic(H, g, w, alpha, nonnegative), x, g.copy())
    assert (x[nonnegative] >= 0).all()
    assert value(H, g, w, alpha, x) < value(H, g, w, alpha, w)


@pytest.mark.parametrize("seed", range(10))
def test_the_nonnegative_minimum_is_that_over_all_supports(seed):
    rng = np.random.default_rng(seed)
    A, c, nonnegative = (
        rng.normal(size=(8, 5)),
        rng.normal(size=5),
        rng.random(5) < [0.5, 1.0][seed % 2],
    )
    G, best = A.T @ A, np.inf
    for used in itertools.product([False, True], repeat=5):
        S, w = np.flatnonzero(used), np.zeros(5)
        w[S] = np.linalg.solve(G[np.ix_(S, S)], c[S]) if len(S) else []
        if (w[nonnegative] >= 0).all():
            best = min(best, 0.5 * w @ G @ w - c @ w)
    w = nonnegative_minimum(G, c, nonnegative)
    assert (w[nonnegative] >= 0).all()
    assert 0.5 * w @ G @ w - c @ w == pytest.approx(best, abs=1e-11)


@examples(60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.sampled_from([0.3, 0.7, 1.0]),
    st.sampled_from([1.0, 1e-3]),
)
def test_the_nonnegative_minimum_is_optimal(seed, k, share, spread):
    """At collinear columns, too, where many exchanges are needed, until the rounding of G."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(k + 10, 1)) + spread * rng.normal(size=(k + 10, k))
    y, nonnegative = rng.normal(size=len(A)), rng.random(k) < share
    G, c = A.T @ A, A.T @ y
    w = nonnegative_minimum(G, c, nonnegative)
    slope, rounding = G @ w - c, 1e-8 * (abs(G) @ abs(w) + abs(c)).max()
    assert (w[nonnegative] >= 0).all()
    assert (slope[nonnegative & (w == 0)] >= -rounding).all()
    assert (abs(slope[~nonnegative | (w != 0)]) <= rounding).all()


# Conjugate gradients


@pytest.mark.parametrize("preconditioned", [False, True])
def test_conjugate_gradients_solve_all_systems_in_as_many_steps_as_unknowns(rng, preconditioned):
    A = rng.normal(size=(3, 9, 6))
    H = np.swapaxes(A, 1, 2) @ A
    b = rng.normal(size=(3, 6))
    diagonal = np.diagonal(H, axis1=1, axis2=2) if preconditioned else np.ones((3, 6))

    def enough(x, r, rho):
        np.testing.assert_allclose(r, b - (H @ x[..., None])[..., 0], atol=1e-9)
        np.testing.assert_allclose(rho, (r * r / diagonal).sum(axis=1), rtol=1e-9, atol=1e-12)
        return norms(r) < 1e-9

    x, n = conjugate_gradients(
        lambda p: (H @ p[..., None])[..., 0],
        lambda r: r / diagonal,
        b,
        0 * b,
        enough,
        50,
        ArrayVectors,
    )
    np.testing.assert_allclose(x, np.linalg.solve(H, b[..., None])[..., 0], rtol=1e-7)
    assert 6 <= n <= 8


def test_conjugate_gradients_of_several_systems_end_each_on_its_own():
    """One system starts at its solution, one ends after a step, and one has no curvature; the
    number of steps is limited."""
    scale = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [1.0, 9.0]])
    b = np.array([[0.0, 0.0], [4.0, 2.0], [1.0, 1.0], [1.0, 1.0]])

    def enough(x, r, rho):
        return rho < 1e-20

    x, n = conjugate_gradients(lambda p: scale * p, lambda r: r, b, 0 * b, enough, 10, ArrayVectors)
    np.testing.assert_allclose(x, [[0, 0], [2, 1], [0, 0], [1, 1 / 9]], atol=1e-12)
    assert n == 2
    x, n = conjugate_gradients(lambda p: scale * p, lambda r: r, b, 0 * b, enough, 1, ArrayVectors)
    np.testing.assert_allclose(x[3], [0.2, 0.2])
    assert n == 1


def test_norms_of_any_size(rng):
    a = rng.normal(size=(4, 5)) * np.array([[1e-200], [1.0], [1e200], [0.0]])
    np.testing.assert_allclose(
        norms(a), [*(abs(r).max() * np.linalg.norm(r / abs(r).max()) for r in a[:3]), 0], rtol=1e-14
    )


def test_the_inverse_with_a_ridge(rng):
    A = rng.normal(size=(4, 6))
    G = A.T @ A
    np.testing.assert_allclose(
        inverse_positive(G, 0.3), np.linalg.inv(G + 0.3 * np.eye(6)), rtol=1e-9, atol=1e-12
    )
    assert inverse_positive(-np.eye(2), 0.5) is None


@pytest.mark.parametrize("alpha", [1e-9, 0.01, 1.0, 1e3])
def test_a_sketch_is_damped_as_little_as_its_size_permits(rng, alpha):
    """At damping nu the effective dimension is at most half the columns; at nu / 2 it is above, or
    nu is below alpha."""
    B = rng.normal(size=(40, 8)) * np.geomspace(1, 0.01, 8)
    G, eigenvalues = B.T @ B, np.linalg.eigvalsh(B.T @ B)
    shrunk = DampedInverse(G, alpha)

    def dimension(nu):
        """Compute the effective dimension of G at damping nu."""
        return (eigenvalues / (eigenvalues + nu)).sum()

    assert shrunk.effective_dimension() == pytest.approx(dimension(shrunk.nu))
    assert 2 * dimension(shrunk.nu) <= 8
    assert shrunk.nu == alpha or (shrunk.nu >= 2 * alpha and 2 * dimension(shrunk.nu / 2) > 8)
    np.testing.assert_allclose(
        shrunk.inverse, np.linalg.inv(G + shrunk.nu * np.eye(8)), rtol=1e-7, atol=1e-12
    )
    assert DampedInverse(G, alpha, is_exact=True).nu == alpha
    assert DampedInverse(G, 0.0, is_exact=True).nu == pytest.approx(1e-14 * np.trace(G))


@pytest.mark.parametrize("rank", [0, 1, 3, 6])
def test_the_root_has_as_many_columns_as_the_rank(rng, rank):
    A = rng.normal(size=(6, rank))
    B = semidefinite_root(A @ A.T, 1e-15)
    assert B.shape == (6, max(rank, 1))
    np.testing.assert_allclose(B @ B.T, A @ A.T, atol=1e-10)
