"""Ridge regression on random features: on all that are drawn, or on those that a score or a kernel
alignment chooses."""

import numpy as np

import sparserf as srf
from sparserf.rows import as_rows

from .decisions import as_signs


def rks(
    X,
    y,
    *,
    features,
    n_components,
    alpha,
    loss="squared",
    fit_intercept=True,
    rng=None,
    workers=1,
):
    r"""Fit random kitchen sinks: ridge regression on all features that are drawn.

    .. math:: \min_{\theta, b}
              \frac1n \sum_i L(b + \frac1{\sqrt D} \sum_j \theta_j \phi_j(x_i), y_i)
              + \frac\alpha2 \|\theta\|^2

    With the squared loss and for many features D it nears the kernel machine of the same alpha.

    X, y : the rows
    features : a map of known width, such as ``srf.Fourier("gaussian", gamma)``
    n_components : D
    loss, fit_intercept, workers : as of `harfe`

    A. Rahimi, B. Recht, Weighted Sums of Random Kitchen Sinks, NIPS 2008; here the norm of theta is
    penalised where they bound its largest coefficient.
    """
    how = {"loss": loss, "fit_intercept": fit_intercept, "workers": workers}
    return ridge(X, y, features.draw(n_components, X.shape[1], rng), alpha, **how)


def eerf(
    X,
    y,
    *,
    n_nonzero_coefs,
    features,
    n_components,
    alpha,
    loss="squared",
    fit_intercept=True,
    rng=None,
    workers=1,
):
    """Fit energy-based random features: the problem of `rks` on the D = n_nonzero_coefs of
    n_components features that correlate most with the target.

    S. Shahrampour, A. Beirami, V. Tarokh, On Data-Dependent Random Features for Improved
    Generalization in Supervised Learning, AAAI 2018.
    """
    how = {"loss": loss, "fit_intercept": fit_intercept, "workers": workers}
    drawn = features.draw(n_components, X.shape[1], rng)
    chosen = np.argsort(-scores(X, y, drawn, **how), kind="stable")[:n_nonzero_coefs]
    return ridge(X, y, drawn.take(np.sort(chosen)), alpha, **how)


def lkrf(
    X,
    y,
    *,
    n_nonzero_coefs,
    features,
    n_components,
    alpha,
    rho=None,
    loss="squared",
    fit_intercept=True,
    rng=None,
    workers=1,
):
    r"""Learn a kernel with random features: the problem of `rks` on D = n_nonzero_coefs draws from
    the weights q that a kernel alignment gives the n_components features:

    .. math:: \max_q \sum_j q_j \left(\sum_i y_i \phi_j(x_i)\right)^2
              \quad\text{subject to}\quad q \ge 0, \ \sum_j q_j = 1, \ \|q - 1/N\|^2 \le \rho / N

    rho is 0.005 N where it is None, as in the authors' example. A feature that is drawn twice
    counts as two; where no more than D have a weight, each is taken once. So does the authors'
    code.

    A. Sinha, J. Duchi, Learning Kernels with Random Features, NIPS 2016; S. Shahrampour, V.
    Tarokh, Learning Bounds for Greedy Approximation with Explicit Feature Maps, NIPS 2018.
    """
    how = {"loss": loss, "fit_intercept": fit_intercept, "workers": workers}
    rng = np.random.default_rng(rng)
    drawn = features.draw(n_components, X.shape[1], rng)
    score = scores(X, y, drawn, **how)
    q = aligned((score / score.max()) ** 2, 0.005 * len(score) if rho is None else rho)
    chosen = np.flatnonzero(q)
    if len(chosen) > n_nonzero_coefs:
        chosen = np.sort(rng.choice(len(q), n_nonzero_coefs, p=q / q.sum()))
    return ridge(X, y, drawn.take(chosen), alpha, **how)


def ridge(X, y, features, alpha, **how):
    """Return the model of the ridge problem on all of the features: HARFE's where every feature is
    a term."""
    D = len(features)
    return srf.harfe(
        X,
        y,
        features=features,
        n_nonzero_coefs=D,
        alpha=alpha * D,  # theta_j is sqrt(D) times the coefficient
        scale=None,
        normalize=False,
        start="zero",
        max_iter=1,
        **how,
    )


def scores(X, y, features, loss, fit_intercept, workers):
    """Return |(1/n) sum_i y_i phi_j(x_i)| of each feature, y centred where there is an intercept,
    or the signs of labels."""
    if loss != "squared":
        y = as_signs(y)[1]
    elif fit_intercept:
        y = y - y.mean()
    return np.abs(as_rows(X, workers).correlate(features, y / len(y)))


def aligned(v, rho):
    """Return the q in the simplex with ||q - 1/N||^2 <= rho / N that maximises q'v, for v in [0, 1]
    (Sinha & Duchi 2016).

    For a multiplier l of the ball q is the projection of 1/N + v/l onto the simplex; its distance
    to 1/N falls with l, which is found by bisection.
    """
    uniform, squared_radius = 1 / len(v), rho / len(v)

    def inside(multiplier):
        return (
            np.sum((nearest_in_simplex(uniform + v / multiplier) - uniform) ** 2) <= squared_radius
        )

    # inside: projections bring points together
    high = max(np.sqrt(np.sum((v - v.mean()) ** 2) / squared_radius), 1e-12)
    low = high
    # below that, q is on the largest v alone, to the precision of floats
    while low > 1e-12 and inside(low):
        high, low = low, low / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if inside(middle) else (middle, high)
    return nearest_in_simplex(uniform + v / high)


def nearest_in_simplex(x):
    """Return the point nearest to x with entries >= 0 that sum to 1: max(0, x - shift)."""
    x = x - x.max()  # the same projection, exact where it matters
    down = np.sort(x)[::-1]
    shift = (np.cumsum(down) - 1) / np.arange(1, len(x) + 1)
    return np.maximum(x - shift[np.flatnonzero(down > shift)[-1]], 0.0)
