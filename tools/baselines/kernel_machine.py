"""The kernel machines that random features approximate: kernel ridge regression, and a support
vector machine with the squared hinge.

f is in the span of the kernel at the rows, f = sum_i a_i k(x_i, .) + b. Newton's method is on the
rows whose loss is curved: all of the squared loss, those inside the margin of the squared hinge
(O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19, 2007).
"""

from dataclasses import dataclass
from functools import partial
from math import lgamma, pi, sqrt

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics.pairwise import euclidean_distances, laplacian_kernel, rbf_kernel

import sparserf as srf
from sparserf.rows import as_rows

from .decisions import Decides, as_signs

# Rows that are predicted at a time.
ROWS = 1000
# Newton steps at most; it takes ten or so.
MOST_STEPS = 200


@dataclass
class KernelMachine(Decides):
    """f(x) = intercept + sum_i coef_i k(x, rows_i), of the training rows `support`."""

    kernel: callable
    rows: np.ndarray
    support: np.ndarray
    coef: np.ndarray
    intercept: float
    classes: np.ndarray | None

    def decision_function(self, X):
        parts = (X[start : start + ROWS] for start in range(0, X.shape[0], ROWS))
        return np.concatenate([self.kernel(part, self.rows) @ self.coef for part in parts]) + (
            self.intercept
        )


def kernel_machine(X, y, *, kernel, alpha, gamma=None, loss="squared", fit_intercept=True):
    r"""Fit kernel ridge regression, or for another loss than the squared one a support vector
    machine.

    .. math:: \min_{f, b} \frac1n \sum_i L(f(x_i) + b, y_i) + \frac\alpha2 \|f\|_K^2

    with L = (f - y)^2 / 2, or max(0, 1 - y f)^2.

    kernel : "gaussian", ``exp(-gamma |x - z|_2^2)``; "laplacian", ``exp(-gamma |x - z|_1)``;
        "perceptron", ``1 - c_d |x - z|_2 / radius`` as in `Perceptron`, with the radius read off
        X; or "gaussian+linear", the mean of the first and x'z

    The kernel matrix is in memory: time O(n^3), memory some 24 n^2 bytes.
    """
    classes, target = (None, y) if loss == "squared" else as_signs(y)
    if kernel == "perceptron":
        k = partial(perceptron_kernel, radius=srf.Perceptron().resolve(as_rows(X), None).radius)
    else:
        k = partial(KERNELS[kernel], gamma=gamma)
    a, b = minimised(k(X, X), target, alpha, classes is not None, fit_intercept)
    support = np.flatnonzero(a)
    return KernelMachine(k, X[support], support, a[support], b, classes)


def minimised(K, y, alpha, is_hinge, fit_intercept):
    """Return (a, b) at the minimum, by Newton steps that are halved until the objective falls."""
    n, a, b = len(y), np.zeros(len(y)), 0.0
    ridge = n * alpha / (2 if is_hinge else 1)

    def f_inside(f):
        return np.flatnonzero(y * f < 1) if is_hinge else np.arange(n)

    def objective(a, Ka, b):
        r = np.maximum(0, 1 - y * (Ka + b)) if is_hinge else (y - Ka - b) / sqrt(2)
        return np.mean(r * r) + alpha / 2 * (a @ Ka)

    Ka = np.zeros(n)
    inside, value = f_inside(Ka), objective(a, Ka, b)
    for _ in range(MOST_STEPS):
        end_a = np.zeros(n)
        end_a[inside], end_b = solved(K[np.ix_(inside, inside)], y[inside], ridge, fit_intercept)
        end_Ka, t, before = K[:, inside] @ end_a[inside], 1.0, value
        while t > 1e-10:
            there = [x + t * (e - x) for x, e in ((a, end_a), (Ka, end_Ka), (b, end_b))]
            value = objective(*there)
            if value < before:
                break
            t /= 2
        else:  # floating point allows no further descent
            break
        (a, Ka, b), was_inside = there, inside
        inside = f_inside(Ka + b)
        if t == 1 and np.array_equal(inside, was_inside):  # the quadratic is the objective here
            break
    return a, b


def solved(K, y, ridge, fit_intercept):
    """Return (a, b) with (K + ridge I) a + b = y and sum(a) = 0; b = 0 without an intercept."""
    K = K + ridge * np.eye(len(y))
    factor = cho_factor(K, overwrite_a=True, check_finite=False)
    a, of_one = cho_solve(factor, np.column_stack([y, np.ones(len(y))]), check_finite=False).T
    b = a.sum() / of_one.sum() if fit_intercept else 0.0
    return a - b * of_one, b


def perceptron_kernel(X, Z, radius):
    """Return 1 - c_d |x - z|_2 / radius for the rows of X and of Z."""
    d = X.shape[1]
    c_d = np.exp(lgamma(d / 2) - lgamma((d + 1) / 2)) / sqrt(pi)
    return 1 - c_d / radius * euclidean_distances(X, Z)


def gaussian_and_linear_kernel(X, Z, gamma):
    """Return the mean of the Gaussian kernel and of x'z."""
    return (rbf_kernel(X, Z, gamma) + X @ Z.T) / 2


# The kernels of a width gamma.
KERNELS = {
    "gaussian": rbf_kernel,
    "laplacian": laplacian_kernel,
    "gaussian+linear": gaussian_and_linear_kernel,
}
