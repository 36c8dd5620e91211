"""The penalty from held-out rows: down a path of penalties until what is held out is predicted no better."""

import numpy as np

# Each penalty is FALL times the last, from HIGHEST times the least that leaves no term; at most MOST_ALPHAS of them.
HIGHEST, FALL, MOST_ALPHAS = 0.9, 0.72, 40
# Penalties without a gain of more than NEGLIGIBLE before the search ends; and terms at which it ends, if no limit is given.
PATIENCE, NEGLIGIBLE = 4, 1e-4
MOST_TERMS = 2000


def hold_out(groups, weight, share, rng):
    """(weights of the rows to fit, of those held out), 0 for the others; each of mean 1. The same share of each group."""
    held = np.zeros(len(weight), bool)
    for group in np.unique(groups):
        members = np.flatnonzero((weight > 0) & (groups == group))
        n = min(max(1, round(share * len(members))), len(members) - 1)
        held[rng.permutation(members)[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(f"X must have rows to hold out, two of a class, got {len(weight)}; give alpha")
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))


def choose(fits, minimise, held, max_terms):
    """(alpha, the state of each fit there, features drawn) that predicts the held-out rows best, in at most max_terms."""
    alpha = max(fit.largest_gradient() for fit in fits) or 1.0
    least, best = sum(fit.loss_on(held) for fit in fits), (alpha, [fit.state() for fit in fits])
    alpha, n_drawn, waited = HIGHEST * alpha, 0, 0
    for _ in range(MOST_ALPHAS):
        for fit in fits:
            fit.restart(alpha)
            minimise(fit)
        n_drawn += max(fit.count_drawn() for fit in fits)
        loss, states = sum(fit.loss_on(held) for fit in fits), [fit.state() for fit in fits]
        if len(np.unique(np.concatenate([fit.A.index for fit in fits]))) > max_terms:
            break
        waited = 0 if loss < least * (1 - NEGLIGIBLE) else waited + 1
        if loss < least:
            least, best = loss, (alpha, states)
        if waited == PATIENCE or any(fit.ended_by_callback for fit in fits):
            break
        alpha *= FALL
    return *best, n_drawn
