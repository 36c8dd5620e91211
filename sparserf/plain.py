"""The algorithms of the four papers as printed, in plain NumPy, to be read.

The library computes the same numbers without the matrix of features. Nothing in it imports this
file: tests compare the two, and the page "The algorithms" shows both. In all four:

Phi : the matrix of features, phi_j(x_i) in row i of n and column j of N
z : the predictions Phi w, one for each row
L(z, y), L' : the loss, and its derivative in z
beta : a bound of the second derivative of L in z
alpha : the penalty beside the *mean* loss, which is the library's argument

There is no intercept, and all rows have the same weight, as in the papers. Each algorithm yields
its iterates, one for each turn of its loop: `*_, w = sparse_rf(...)` takes the last. `lasso` and
`ridge` are the problems that are solved within.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy import ndarray


class Loss(NamedTuple):
    """L' and beta of a loss; `derivative` and `smoothness` of those in `sparserf.losses`."""

    derivative: Callable[[ndarray, ndarray], ndarray]
    beta: float


squared = Loss(lambda z, y: z - y, 1.0)  # L(z, y) = (z - y)^2 / 2


# I. E.-H. Yen, T.-W. Lin, S.-D. Lin, P. Ravikumar, I. S. Dhillon, Sparse Random Features Algorithm
# as Coordinate Descent in Hilbert Space, NIPS 2014.


def sparse_rf(
    Phi: ndarray,
    y: ndarray,
    alpha: float,
    R: int,
    loss: Loss = squared,
) -> Iterator[ndarray]:
    """Run Algorithm 1 of Sparse Random Features; yield w after each batch.

    The columns of Phi are the draws from p(h), in their order, and alpha is
    the paper's lambda. A is the working set.
    """
    w, A = np.zeros(Phi.shape[1]), np.zeros(0, int)
    for h in np.split(np.arange(len(w)), range(R, len(w), R)):  # 1. sample R
        A = np.append(A, h)  # 2. add them to A
        w[A] = lasso(Phi[:, A], y, alpha, w[A], loss)  # 3. solve (9)
        A = A[w[A] != 0]  # 4. drop zeros
        yield w.copy()


def lasso(
    Phi: ndarray,
    y: ndarray,
    alpha: float,
    w: ndarray,
    loss: Loss,
) -> ndarray:
    """Minimise (9), (1/n) sum_i L(z_i, y_i) + alpha |w|_1, from w.

    With g the slope of the mean loss in w_h, a step eta in w_h changes the mean
    loss by at most g eta + gamma_h eta^2 / 2 (Lemma 1; exactly, for the squared
    loss). Coordinate descent minimises this plus the penalty, (14), over eta,
    for one h after the other, until no step is more than rounding.
    """
    w, z = w.copy(), Phi @ w
    gamma = loss.beta * np.mean(Phi**2, axis=0)
    largest = np.inf
    while largest > 1e-10 * alpha:
        largest = 0.0
        for h in range(len(w)):
            g = Phi[:, h] @ loss.derivative(z, y) / len(y)
            u = gamma[h] * w[h] - g
            eta = np.sign(u) * max(abs(u) - alpha, 0.0) / gamma[h] - w[h]
            w[h] += eta
            z += eta * Phi[:, h]
            largest = max(largest, gamma[h] * abs(eta))
    return w


# E. Saha, H. Schaeffer, G. Tran, HARFE: Hard-Ridge Random Feature Expansion, 2022.


def harfe(
    A: ndarray,
    y: ndarray,
    s: int,
    alpha: float,
    mu: float,
    tot_iter: int,
    eps: float = 0.0,
    positive: bool = False,
) -> Iterator[ndarray]:
    """Run Algorithm 1 of HARFE; yield c after each iteration.

    It looks for the c of at most s terms that minimises (6), |A c - y|^2 +
    m lambda |c|^2. A is Phi, m is n, and lambda is alpha: (6) is 2 m times the
    mean squared loss plus (alpha / 2) |c|^2.

    positive : whether to compare entries of c~ in place of their magnitudes,
        which keeps positive ones alone, as the authors' code does
    """
    m, N = A.shape
    c = np.zeros(N)
    for _ in range(tot_iter):
        # (8), in which y is to be read as [y; 0]
        c_tilde = (1 - m * mu * alpha) * c + mu * A.T @ (y - A @ c)
        size = c_tilde if positive else abs(c_tilde)
        S = np.flatnonzero(size >= np.sort(abs(c_tilde))[-s])
        A_S, c = A[:, S], np.zeros(N)
        ridge_of_S = A_S.T @ A_S + m * alpha * np.eye(len(S))
        c[S] = np.linalg.solve(ridge_of_S, A_S.T @ y)
        yield c
        # "while residual > eps or n < tot_iter", to be read as "and"
        if np.linalg.norm(A @ c - y) <= eps * np.linalg.norm(y):
            break


# S. Shahrampour, V. Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps
# from Multiple Kernels, NeurIPS 2018.


def mfga(
    Phi: ndarray,
    y: ndarray,
    M: int,
    alpha: float,
    loss: Loss = squared,
) -> Iterator[ndarray]:
    """Run Algorithm 1 of Multi Feature Greedy Approximation; yield theta after
    each round.

    The columns of Phi are the sqrt(nu_p) phi_{p,m} of all kernels p. The risk
    is the mean loss plus (alpha / 2) |theta|^2, which stands in the paper's
    experiments for the constraint |theta| <= C of (2). S is the support, I in
    the paper.
    """
    theta, S = np.zeros(Phi.shape[1]), []
    for _ in range(M):  # 1.
        slope = Phi.T @ loss.derivative(Phi @ theta, y) / len(y)
        J = np.argmax(abs(slope + alpha * theta))  # 2. the largest gradient
        S = [*S, J]  # 3. add it
        theta[S] = ridge(Phi[:, S], y, alpha, loss)  # 4. fit all again
        yield theta.copy()


def ridge(
    Phi: ndarray,
    y: ndarray,
    alpha: float,
    loss: Loss,
    f: ndarray | float = 0.0,
    c: ndarray | float = 0.0,
) -> ndarray:
    """Minimise (1/n) sum_i L(f_i + z_i, y_i) + (alpha / 2) |w + c|^2.

    H bounds the Hessian, so that a step w - H^-1 g, with g the gradient, never
    raises the objective; for the squared loss it is the Hessian, and the first
    step ends at the minimum. Steps become shorter until they are rounding. Only
    `drp` has f and c.
    """
    n, N = Phi.shape
    H = loss.beta * Phi.T @ Phi / n + alpha * np.eye(N)
    H_inverse, w, last = np.linalg.inv(H), np.zeros(N), np.inf
    while True:
        g = Phi.T @ loss.derivative(f + Phi @ w, y) / n + alpha * (w + c)
        step = H_inverse @ g
        if not g @ step < last:
            return w
        w, last = w - step, g @ step


# L. Zhang, M. Mahdavi, R. Jin, T. Yang, S. Zhu, Recovering the Optimal Solution by Dual Random
# Projection, COLT 2013.


def drp(
    X: ndarray,
    y: ndarray,
    alpha: float,
    R: ndarray,
    T: int = 1,
    loss: Loss = squared,
) -> Iterator[ndarray]:
    """Run Algorithm 2 of Dual Random Projection, which is Algorithm 1 where
    T = 1; yield w after each iteration.

    It looks for the w that minimises (1), from problems in m dimensions. X is n
    x d, the transpose of the paper's; R is d x m, of entries N(0, 1). The paper
    sums the losses: lambda is n alpha. L(z, y) is l(y z) there.
    """
    n, m = len(X), R.shape[1]
    X_hat = X @ R / np.sqrt(m)  # 2. project the rows
    w = np.zeros(X.shape[1])  # 3.
    for _ in range(T):  # 4.
        # 5. solve (13), the small problem around w
        z = ridge(X_hat, y, alpha, loss, X @ w, R.T @ w / np.sqrt(m))
        # 6. its dual variables, y_i [alpha_*]_i in the paper
        a = loss.derivative(X_hat @ z + X @ w, y)
        w = -X.T @ a / (n * alpha)  # 7. recover w from them
        yield w
