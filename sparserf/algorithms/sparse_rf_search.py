"""The penalty from held-out rows: down a path of penalties until what is held out is predicted no better."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._checks import check_integer
from .._threads import single_threaded_blas
from ..features import LinearFunctions, inverse_deviations
from ..task import Task, in_units, keeping, keeping_fits, mean_of, mean_value, model_of, one_function
from .prune import pruned
from .sparse_rf_fit import N_COMPONENTS, fits_of, warn

# Rows that a search looks at, about, where there are more.
MOST_ROWS = 16_000
# Features of a dictionary that learns, by default, for each penalty that is tried.
A_PENALTY = 1_000
# Searches by default of up to FEW_ROWS rows, and of more: at least, and at most, where the best kind of model is in question.
FEW_ROWS, OF_FEW, OF_MORE = 5_000, (5, 5), (3, 5)

# Each penalty is FALL times the last, from HIGHEST times the least that leaves no term; at most MOST_ALPHAS of them.
HIGHEST, FALL, MOST_ALPHAS = 0.9, 0.72, 40
# Penalties without a gain of more than NEGLIGIBLE before the search ends; and terms at which it ends, and for each row.
PATIENCE, NEGLIGIBLE, MOST_TERMS, MOST_A_ROW = 4, 1e-4, 2000, 0.5
# Most steps in which the terms of a chosen penalty are fitted to all rows.
CHOSEN_ROUNDS = 50
# Share of the held-out loss, or of what it is below that without a term, that dropping terms may cost.
PRUNED = 0.01


@dataclass(frozen=True)
class Sample:
    """A task, in whose weights those of the rows held out are 0; their weights, 0 for the others; share: of all, how many
    rows are fitted; unit: of y, in which losses are compared."""

    task: Task
    held: np.ndarray
    share: float
    unit: float

    @classmethod
    def of(cls, task, groups, validation, rng):
        """The rows that have a weight, or about MOST_ROWS of them; of each group that share of `validation` held out."""
        rows, targets, weight = task.rows, task.targets, task.weight
        n = effective(weight)
        if np.count_nonzero(weight) > MOST_ROWS:
            weight = thinned(groups, weight, MOST_ROWS, rng)
        some = np.flatnonzero(weight)
        if len(some) < rows.n_rows or not rows.in_memory:
            rows, targets, weight, groups = rows.take(some), [y[some] for y in targets], weight[some], groups[some]
        fitted, held = hold_out(groups, weight, validation, rng)
        sampled = replace(task, rows=rows, targets=targets, weight=fitted)
        return cls(sampled, held, min(1.0, effective(fitted) / n), task.scale(task.targets[0]))


def effective(weight):
    """The number of rows of equal weight whose mean varies as much as the mean of these."""
    return weight.sum() ** 2 / (weight @ weight)


def each_group(groups, weight, rng):
    """The rows of each group that have a weight, shuffled."""
    for group in np.unique(groups):
        yield rng.permutation(np.flatnonzero((weight > 0) & (groups == group)))


def thinned(groups, weight, n, rng):
    """Weights of about n of the rows, 0 for the others; the same sums to expect. Of each group its share, at least two.

    A row is taken with a probability p in proportion to its weight, at most 1; its weight is then divided by p.
    """
    thin, total = np.zeros(len(weight)), weight.sum()
    for members in each_group(groups, weight, rng):
        of_these = weight[members]
        p = probabilities(of_these, max(2, round(n * float(of_these.sum() / total))))
        taken = np.diff(np.floor(np.cumsum(np.concatenate([[rng.random()], p])))) > 0
        thin[members[taken]] = of_these[taken] / p[taken]
    return thin


def probabilities(weight, n):
    """In proportion to the weights, at most 1, of sum n; all 1 where there are no more than n."""
    if len(weight) <= n:
        return np.ones(len(weight))
    p, certain = n * (weight / weight.sum()), np.zeros(len(weight), bool)
    while p.max() > 1:
        certain |= p > 1
        p = np.where(certain, 1.0, (n - np.count_nonzero(certain)) * (weight / weight[~certain].sum()))
    return p


def hold_out(groups, weight, share, rng):
    """(weights of the rows to fit, of those held out), 0 for the others; each of mean 1. The same share of each group.

    A row of weight k is held out whole or not at all, though k copies of it would be parted: those held out would be
    predicted from their twins. In the mean over many splits, the same weight is held out.
    """
    held = np.zeros(len(weight), bool)
    for members in each_group(groups, weight, rng):
        n = min(max(1, round(share * len(members))), len(members) - 1)
        held[members[: max(n, 0)]] = True
    if not held.any():
        raise ValueError(f"X must have rows to hold out, two of a class, got {len(weight)}; give alpha")
    return tuple(len(weight) * part / part.sum() for part in (weight * ~held, weight * held))


@dataclass(frozen=True)
class Choice:
    """A point of a path: the penalty, the loss of each row and of the held-out ones in the mean, both of y in the unit of the
    sample, the state of each fit.

    held: the weights of the rows held out; share: of all rows, how many were fitted.
    """

    alpha: float
    losses: np.ndarray
    loss: float
    states: list
    held: np.ndarray
    share: float

    @classmethod
    def of(cls, fits, alpha, sample):
        losses, states = sum(fit.losses(sample.unit) for fit in fits), [fit.state() for fit in fits]
        return cls(alpha, losses, float(np.mean(sample.held * losses)), states, sample.held, sample.share)

    def gain_over(self, other):
        """(by how much it predicts the held-out rows better, the standard error of that), in the same unit."""
        inside = self.held > 0
        gain, share = (other.losses - self.losses)[inside], self.held[inside] / self.held.sum()
        unit = np.abs(gain).max() or 1.0  # no square over- or underflows
        gain = gain / unit
        mean = share @ gain
        return unit * mean, unit * np.sqrt(share**2 @ (gain - mean) ** 2)


def choose(fits, descend, sample):
    """(what predicts the held-out rows of the sample best, features drawn, the mean loss of these without a term)."""
    alpha = max(fit.largest_gradient() for fit in fits) or 1.0
    nothing = best = Choice.of(fits, alpha, sample)
    most = min(MOST_TERMS, MOST_A_ROW * np.count_nonzero(sample.task.weight))
    alpha, n_drawn, waited = HIGHEST * alpha, 0, 0
    for _ in range(MOST_ALPHAS):
        for fit in fits:
            fit.restart(alpha, rested=True)
            descend(fit, fit.dictionary)
        n_drawn += max(fit.count_drawn() for fit in fits)
        here = Choice.of(fits, alpha, sample)
        waited = 0 if here.loss < best.loss * (1 - NEGLIGIBLE) else waited + 1
        best = min(best, here, key=lambda choice: choice.loss)
        if waited == PATIENCE or any(fit.ended_by_callback for fit in fits):
            break
        if len(np.unique(np.concatenate([fit.A.index for fit in fits]))) > most:
            break
        alpha *= FALL
    return best, n_drawn, nothing.loss


def search(kinds, descend, task, split, n_models, max_terms, tol):
    """The mean of n_models (at least, at most), each chosen with other rows held out, in the terms that it needs.

    kinds: functions of a task and the number of the search, which give the fits of a kind of model, simplest first. All
    models are of the first kind that none beats by more than chance. task: of all rows; split: draws the Sample of a search.
    """
    choices, without, n_drawn = [[] for _ in kinds], [], 0
    kept, n_searches, ended = list(range(len(kinds))), 0, False
    while not ended and n_searches < n_models[len(kept) > 1]:
        found, ended = search_once({kind: kinds[kind] for kind in kept}, descend, split(), n_searches)
        for kind, (choice, drawn, nothing) in found.items():
            choices[kind].append(choice)
            without.append(nothing)
            n_drawn += drawn
        n_searches += 1
        kept = in_question({kind: choices[kind] for kind in found})
    models, best = [], kept[0]
    for k, choice in enumerate(choices[best]):
        model, stops = fit_again(kinds[best](task, k), task, choice, tol, not ended)
        models.append(model)
        ended |= stops
    model, least = one_function(mean_of(models)), mean_value([choice.loss for choice in choices[best]])
    worth = min(least, max(0.0, mean_value(without) - least))
    unit = task.scale(task.targets[0])
    change = unit * np.sqrt(2 * PRUNED * worth / task.loss.smoothness)  # L(z + e) <= L(z) + L'(z) e + smoothness e^2 / 2
    with keeping(lambda: model):
        model = pruned(task.rows, model, task.weight, max_terms, change=change)
    info = replace(model.info, n_drawn=n_drawn, validation_loss=in_units(least, unit))
    return replace(model, info=info), ended


def search_once(kinds, descend, sample, k):
    """({kind: what `choose` found}, whether a callback ended it, perhaps before the last kind), of the search numbered k."""
    found = {}
    for kind, fits_of_it in kinds.items():
        fits = fits_of_it(sample.task, k)
        found[kind] = choose(fits, descend, sample)
        if any(fit.ended_by_callback for fit in fits):
            return found, True
    return found, False


def fit_again(fits, task, choice, tol, tells):
    """(the model of the chosen terms, fitted to all rows, whether a callback ended it).

    alpha was chosen for a share of the rows. Noise, and alpha with it, falls with the root of how many they are.
    """
    with keeping_fits(fits, task):
        for fit, state in zip(fits, choice.states, strict=True):
            fit.restart(choice.alpha * np.sqrt(choice.share))
            fit.adopt(state)
            fit.polish(max(tol, fit.near), CHOSEN_ROUNDS)
            fit.record(tells)
    return model_of(fits, task), any(fit.ended_by_callback for fit in fits)


def in_question(choices):
    """Of some kinds, the best and those simpler, which come before it, that are worse by at most a standard error.

    choices: of each kind the Choice of each search so far, as many as there are of all.
    """
    n = min(map(len, choices.values()))
    best = min(choices, key=lambda kind: mean_value([choice.loss for choice in choices[kind][:n]]))
    kept = []
    for kind in choices:
        pairs = zip(choices[best], choices[kind][:n], strict=False)
        gains = np.array([choice.gain_over(other) for choice, other in pairs])
        if kind == best or gains[:, 0].sum() <= np.hypot.reduce(gains[:, 1]):
            kept.append(kind)
        if kind == best:
            return kept


def chosen(setting, descend, share, n_models, max_terms):
    """`sparse_rf` with alpha=None; descend: how a fit goes through its dictionary."""
    task, options, settles = setting.task, setting.options, setting.exact
    max_terms = MOST_TERMS if max_terms is None else check_integer("max_terms", max_terms, 1)
    default = OF_FEW if task.rows.n_rows <= FEW_ROWS else OF_MORE
    n_models = default if n_models is None else (check_integer("n_models", n_models, 1),) * 2
    classes = task.targets if task.loss.is_classifier else ()
    groups = np.argmax([np.zeros(task.rows.n_rows), *classes], axis=0)  # a number a class

    def kind_of(dictionary, settles=False):
        return lambda task, search: fits_of(task, dictionary, options, settles, search)

    kinds = [kind_of(setting.dictionary(A_PENALTY if setting.learns else N_COMPONENTS), settles)]
    if setting.learns:
        units = np.ones(len(task.stage)) if task.stage else inverse_deviations(task.rows, task.weight)
        inputs = setting.dictionary_of_inputs(units)
        kinds = [kind_of(inputs, settles=True), kind_of(LinearFunctions(units)), *kinds]
    split = partial(Sample.of, task, groups, share, setting.rng)
    with single_threaded_blas(), task.rows:
        model, ended = search(kinds, descend, task, split, n_models, max_terms, options["tol"])
    if not ended:
        warn(model.info, options["tol"])
    return model
