"""The penalty from held-out rows: down a path of penalties until what is held out is predicted no better."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._checks import check_flag, check_integer, check_rng
from .._threads import single_threaded_blas
from ..features import LinearFunctions, inputs_times, inverse_deviations, linear_functions
from ..model import SparseModel
from ._l1_fit import N_COMPONENTS, options_of, warn
from ._proposed import dictionary_of, fits_of, learns
from ._sample import Sample
from .prune import pruned
from .task import Task, keeping, keeping_fits, model_of, power_of_two

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
class Choice:
    """A point of a path: the penalty, the loss of each row, of the held-out ones in the mean, the state of each fit.

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
        losses, states = sum(fit.losses() for fit in fits), [fit.state() for fit in fits]
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
    """(what predicts the held-out rows of the sample best, features drawn, their loss without a term)."""
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
    model, least = one_function(mean_of(models)), _mean([choice.loss for choice in choices[best]])
    worth = min(least, max(0.0, _mean(without) - least))
    cost = 2 * PRUNED * worth / task.loss.smoothness  # L(z + e) <= L(z) + L'(z) e + smoothness e^2 / 2
    with keeping(lambda: model):
        model = pruned(task.rows, model, task.weight, max_terms, cost=cost)
    return replace(model, info=replace(model.info, n_drawn=n_drawn, validation_loss=least)), ended


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
    best = min(choices, key=lambda kind: _mean([choice.loss for choice in choices[kind][:n]]))
    kept = []
    for kind in choices:
        pairs = zip(choices[best], choices[kind][:n], strict=False)
        gains = np.array([choice.gain_over(other) for choice, other in pairs])
        if kind == best or gains[:, 0].sum() <= np.hypot.reduce(gains[:, 1]):
            kept.append(kind)
        if kind == best:
            return kept


def one_function(model):
    """The model with its linear functions of all inputs added up, one for each output."""
    if [block.is_matrix for block in model.features.blocks] != [True]:
        return model
    (block,) = model.features.blocks
    coef = np.atleast_2d(model.features.to_blocks(model.coef)) * block.scale
    unit = power_of_two(coef)
    weights = coef / unit @ block.weights
    features = linear_functions(weights)
    return replace(
        model, coef=unit * np.eye(len(coef)).reshape(*model.coef.shape[:-1], -1), features=features,
        support=np.arange(len(coef)) + model.n_features_in, info=replace(model.info, n_nonzero=len(coef)),
    )  # fmt: skip


def mean_of(models):
    """The model whose prediction is the mean of theirs."""
    if len(models) == 1:
        return models[0]
    every = np.concatenate([model.support for model in models])
    support, first, place = np.unique(every, return_index=True, return_inverse=True)
    coef = np.zeros((*models[0].coef.shape[:-1], len(support)))
    features, start = models[0].features, 0
    for k, model in enumerate(models):
        coef[..., place[start : start + len(model.support)]] += model.coef / len(models)
        features, start = model.features if k == 0 else features.concat(model.features), start + len(model.support)
    b = sum(model.intercept / len(models) for model in models)
    info = _mean_info([model.info for model in models], len(support))
    return SparseModel(coef, b, support, features.take(first), models[0].loss, models[0].classes, info)


def _mean(values):
    """Whose sum may overflow."""
    return float(sum(value / len(values) for value in values))


def _mean_info(infos, n_terms):
    """Means of what the searches ended with; the rest at its worst."""
    return replace(
        infos[0],
        n_iter=max(info.n_iter for info in infos),
        converged=all(info.converged for info in infos),
        objective=(_mean([info.objective[-1] for info in infos]),),
        dual_gap=_mean([info.dual_gap for info in infos]),
        n_nonzero=n_terms,
        alpha=float(np.exp(_mean([np.log(info.alpha) for info in infos]))),
    )


def chosen(X, y, share, n_models, max_terms, descend, features, gamma, loss, n_components, batch_size, exact, fit_intercept,
            sample_weight, tol, max_iter, rng, workers, callback):  # fmt: skip
    """`sparse_rf` with alpha=None."""
    max_terms = MOST_TERMS if max_terms is None else check_integer("max_terms", max_terms, 1)
    task = Task.of(X, y, loss, sample_weight, workers)
    rows, weight = task.rows, task.weight
    default = OF_FEW if rows.n_rows <= FEW_ROWS else OF_MORE
    n_models = default if n_models is None else (check_integer("n_models", n_models, 1),) * 2
    options, exact, rng = options_of(fit_intercept, tol, max_iter, callback), check_flag("exact", exact), check_rng(rng)
    groups = np.argmax([np.zeros(rows.n_rows), *(task.targets if task.loss.is_classifier else ())], axis=0)  # a number a class
    if n_components is None:
        n_components = A_PENALTY if learns(features) else N_COMPONENTS

    def kind_of(dictionary, settles=False):
        return lambda task, search: fits_of(task, dictionary, options, settles, search)

    kinds = [kind_of(dictionary_of(features, rows, weight, exact, n_components, batch_size, gamma, rng), settles=exact)]
    if learns(features):
        units = inverse_deviations(rows, weight)
        inputs = dictionary_of(inputs_times(units), rows, weight, exact, n_components, len(units), None, rng)
        kinds = [kind_of(inputs, settles=True), kind_of(LinearFunctions(units)), *kinds]
    split = partial(Sample.of, task, groups, share, rng)
    with single_threaded_blas(), rows:
        model, ended = search(kinds, descend, task, split, n_models, max_terms, tol)
    if not ended:
        warn(model.info, options["tol"])
    return model
