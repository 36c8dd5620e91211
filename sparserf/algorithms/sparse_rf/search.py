"""The penalty from held-out rows: down a path of penalties until what is held out is predicted no better."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.checks import check_integer, check_real
from ..._base.progress import part, parts, predicts_held_out
from ..._base.threads import single_threaded_blas
from ...columns.fallback import with_fallbacks
from ...features import LinearFunctions, Steps
from ...model import warn_unconverged
from ...rows import staged
from ...solvers.effort import A_ROW, FEW_ROWS, LOSS, UNBOUNDED, Effort
from ...solvers.problem import Problem
from ...solvers.rivals import Rivals
from ..prune import pruned
from ..task import in_units, model_of, partial_fits_on_error, partial_model_on_error
from .classes import fits_of
from .descent import warn
from .fit import N_COMPONENTS
from .kinds import Choice, Member, best_mean, gain, in_question
from .mean import mean_of, mean_value, one_function
from .outputs import in_their_units, with_equal_outputs
from .samples import FEW_OUTPUTS, Budget, Sample, errors_of_chance, of_few_outputs
from .sources import units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..._base.types import Dictionary, L1FitLike
    from ...columns.stage import ColumnStage
    from ...model import SparseModel
    from ...rows.home import Rows
    from ..task import Task
    from .sources import Setting

# Features of a dictionary that learns, by default, for each penalty that is tried; of how many outputs each has less of them,
# and to which share.
A_PENALTY, FEW_CLASSES, FEWEST_DRAWS = 1_000, 50, 0.25
# Each penalty is FALL times the last, from HIGHEST times the least that leaves no term; at most MOST_ALPHAS of them.
HIGHEST, FALL, MOST_ALPHAS = 0.9, 0.72, 40
# Penalties without a gain of more than NEGLIGIBLE before the search ends; and terms for each row at which it ends.
PATIENCE, NEGLIGIBLE, MOST_A_ROW = 2, 1e-4, 0.5
# Nor do gains of less than that share of the loss without a term count: a target without noise could be met ever better.
NOTHING_LEFT = 1e-6
# Or a penalty that is worse than the best by so many standard errors of the difference.
ERRORS = 2.0
# Most steps in which the terms of a chosen penalty are fitted to all rows.
CHOSEN_ROUNDS = 50
# Work that is expected: of a penalty, from the 18th on less and less likely to be reached; of a member, one of cosines being 1;
# of a round after the first, of whose members few are left; of the fits to all rows, beside a search; of pruning, beside these.
WORK_OF_ALPHAS = 0.8 ** np.maximum(0.0, np.arange(MOST_ALPHAS) - 17)
LITTLE, MUCH, FEWER, FITTING_AGAIN, PRUNING = 0.15, 1.7, 0.4, 0.15, 0.4
# Work of the fits to all rows, beside that of the searches; of the searches' the part in which few of many outputs choose, and
# of what is left then that of a round; of what is left of a round that of any member, at least, and so many times what is
# expected of it: most take less.
FITTING, BY_FEW, A_ROUND, LEAST_SHARE, SLACK = 0.2, 0.25, 0.6, 0.2, 2.0
# Where a round of all outputs would take more than these shares of it, as few tell, all are searched in the kind that is best
# for few, or by the best member of it alone.
EASY, HARD = 0.3, 0.7
MANY_OUTPUTS = 2 * FEW_OUTPUTS
# Share of the held-out loss, or of what it is below that without a term, that dropping terms may cost.
PRUNED = 0.003


def choose(
    fits: Sequence[L1FitLike], descend: Callable[[L1FitLike, Dictionary], None], sample: Sample, most_terms: int,
    effort: Effort = UNBOUNDED,
) -> tuple[Choice, int, float]:  # fmt: skip
    """(what predicts the held-out rows of the sample best, features drawn, the mean loss of these without a term)."""
    alpha = max(fit.largest_gradient() for fit in fits) or 1.0
    nothing = best = Choice.of(fits, alpha, sample)
    if most_terms == 0:
        return nothing, 0, nothing.loss
    most = sample.of_outputs * min(most_terms, MOST_A_ROW * np.count_nonzero(sample.task.weight))
    for fit in fits:
        fit.spend(effort)
    alpha, n_drawn, waited = HIGHEST * alpha, 0, 0
    for _ in parts(range(MOST_ALPHAS), WORK_OF_ALPHAS):
        for fit in parts(fits):
            fit.restart(alpha, rested=True)
            descend(fit, fit.dictionary)
            if effort.is_spent:  # what has not had its turn is as the last penalty left it
                break
        n_drawn += max(fit.count_drawn() for fit in fits)
        here = Choice.of(fits, alpha, sample)
        effort.add(LOSS / 10 * here.margins.size)
        counts = max(NEGLIGIBLE * best.loss, NOTHING_LEFT * nothing.loss)
        waited = 0 if here.loss < best.loss - counts else waited + 1
        best = min(best, here, key=lambda choice: choice.loss)
        predicts_held_out(in_units(best.loss, sample.unit, sample.task.loss.degree))
        if waited == PATIENCE or is_beaten(here, best) or any(fit.ended_by_callback for fit in fits):
            break
        if len(np.unique(np.concatenate([fit.A.index for fit in fits]))) > most:
            break
        if effort.is_spent:
            effort.note_cut("paths of penalties")
            break
        alpha *= FALL
    return best, n_drawn, nothing.loss


def is_beaten(here: Choice, best: Choice) -> bool:
    """Whether the best point of a path predicts better than this one by more than chance."""
    more, error = gain([best], [here])
    return more > ERRORS * error


def search(
    kinds: Sequence[Sequence[Member]], descend: Callable[[L1FitLike, Dictionary], None], task: Task,
    split: Callable[[], Sample], budget: Budget, effort: Effort, max_terms: int, errors: float, tol: float, fit_intercept: bool,
) -> tuple[SparseModel, bool]:  # fmt: skip
    """The mean of models of some rounds of searches, each with other rows held out, in the terms that it needs.

    kinds: lists of members, simplest first. All models are of the first kind that none beats by more than chance, of those of
    its members whose mean predicts best. task: of all rows; split: draws the Sample of a round; effort: of the searches, a
    part of that of the call; errors: as of `in_question`.

    Of many outputs, too many to search all kinds for all of them, the best for a few are taken. Each round may take a share of
    the work that is left, and where the last took more than that there is none after it.
    """
    found, without, n_drawn, spent = [[] for _ in kinds], [], 0, 0.0
    kept, n_rounds, ended = {kind: range(len(members)) for kind, members in enumerate(kinds)}, 0, False
    share, spent = A_ROUND, 0.0
    if len(task.targets) > MANY_OUTPUTS and len(kinds) > 2:
        with part(BY_FEW):
            choices, n_drawn, _, ended = search_once(
                cheaper(kinds), descend, of_few_outputs(split()), 0, budget.terms, effort.part(BY_FEW)
            )
        round_of_all = effort.spent * len(task.targets) / FEW_OUTPUTS
        if ended:
            kept = {0: (0,)}
        elif round_of_all > EASY * effort.left:
            kept, share = best_of_few(choices, round_of_all > HARD * effort.left), 1.0
    while not found[next(iter(kept))] or (not ended and n_rounds < budget.n_rounds(kept)):
        if spent > effort.left:
            effort.note_cut("rounds of searches", budget.n_rounds(kept) - n_rounds)
            break
        n_left, before = budget.n_rounds(kept) - n_rounds, effort.spent
        members = {(kind, m): kinds[kind][m] for kind, of_kind in kept.items() for m in of_kind}
        with part(share_of_round(kinds, kept, n_left)):
            choices, drawn, nothing, stops = search_once(
                members, descend, split(), n_rounds * sum(map(len, kinds[1:])), budget.terms,
                effort.part(share if n_left > 1 else 1.0),
            )  # fmt: skip
        ended, spent = ended or stops, effort.spent - before
        without += nothing
        n_drawn += drawn
        n_rounds += 1
        for kind in {kind: None for kind, _ in choices}:
            found[kind].append({m: choice for (of, m), choice in choices.items() if of == kind})
        best = {kind: best_mean(found[kind]) for kind in kept if found[kind]}
        kept = {kind: best[kind][0] for kind in in_question({kind: mixtures for kind, (_, mixtures) in best.items()}, errors)}
    kind, some = next(iter(kept.items()))
    with part(1 - PRUNING):
        members_of, chosen_of = [kinds[kind][m] for m in some], [[of[m] for m in some] for of in found[kind]]
        if members_of[0].is_constant:  # all of them are the same
            chosen_of = chosen_of[:1]
        model, ended = together(members_of, chosen_of, task, tol, ended, effort.within)
    mixtures = best[kind][1]
    least = mean_value([mixture.loss for mixture in mixtures])
    worth = min(least, max(0.0, mean_value(without) - least))
    unit = task.scale(task.targets[0])
    with partial_model_on_error(lambda: model):
        rows = staged(task.raw, model.features.stage, True)
        weight, curvature = curving(task, rows, model, unit)
        change = unit * np.sqrt(2 * PRUNED * worth / curvature)  # L(z + e) <= L(z) + L'(z) e + curvature e^2 / 2
        model = pruned(rows, model, weight, max_terms, change=change, looked_at=budget.looked_at)
        model = with_best_intercept(model, task, rows) if fit_intercept else model
    info = replace(model.info, n_drawn=n_drawn, validation_loss=in_units(least, unit, task.loss.degree))
    return replace(model, info=info), ended


def with_best_intercept(model: SparseModel, task: Task, rows: Rows) -> SparseModel:
    """Return the model with the intercept that is best for the training rows, as each model was before the mean and pruning.

    That of the squared loss still is. With a link the mean of models predicts less than the models in the mean.
    """
    if task.loss.is_quadratic:
        return model
    f = rows.vectors.put(rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef)).astype(np.float64))
    if task.is_joint:
        joint = Rivals.of_targets(rows.vectors, task.targets, task.weight, True)
        return replace(model, intercept=joint.best_intercepts(f, model.intercept))
    best = []
    for k, (y, b) in enumerate(zip(task.targets, np.atleast_1d(model.intercept) - task.centers, strict=True)):
        scale, f_k = task.scale(y), f if np.ndim(model.intercept) == 0 else rows.vectors.output(f, k)
        problem = Problem.of(rows.vectors, task.loss_of(y), y / scale, task.weight, 0.0, True)
        best.append(scale * problem.best_intercept(rows.vectors.scaled(f_k, 1 / scale), float(b) / scale) + task.centers[k])
    return replace(model, intercept=np.reshape(best, np.shape(model.intercept)) if np.ndim(model.intercept) else float(best[0]))


def curving(task: Task, rows: Rows, model: SparseModel, unit: float) -> tuple[np.ndarray, float]:
    """(weights of the rows, c) with which the loss rises by c/2 times the mean square of a change of f, at most or nearly.

    Of a loss of any curvature, that at the model's f; of one that has corners but for its smoothing, its mean over the rows.
    """
    loss = task.loss_of(task.targets[0])
    if not (np.isinf(loss.smoothness) or loss.is_smoothed):
        of_several = 2 if task.is_joint else 1  # the largest eigenvalue of the softmax's Hessian is 1/2
        return task.weight, of_several * loss.smoothness
    f = rows.vectors.fetch(rows.apply(model.features.staged(None), model.coef)) + (model.intercept - task.centers[0])
    h = task.weight * loss.curvature(f / unit, task.targets[0] / unit)
    mean = float(h.mean())
    if not 0 < mean < np.inf:
        return task.weight, min(loss.smoothness, 1.0)
    return task.weight if loss.is_smoothed else h / mean, mean


def search_once(
    members: Mapping[Any, Member], descend: Callable[[L1FitLike, Dictionary], None], sample: Sample, first: int,
    most_terms: int, effort: Effort,
) -> tuple[dict[Any, Choice], int, list[float], bool]:  # fmt: skip
    """({member: its Choice}, features drawn, losses without a term, whether a callback ended it, perhaps before the last
    member), of the searches numbered from `first` on."""
    choices, n_drawn, without = {}, 0, []
    work = [member.work for member in members.values()]
    of_constant = next(iter(members.values())).is_constant  # it draws nothing, and has the number of the next
    for k, (name, member) in parts(list(enumerate(members.items(), first - of_constant)), work):
        fits = member.fits(sample.task.with_views(member.views), max(k, first))
        share = min(1.0, max(LEAST_SHARE, SLACK * member.work / sum(work[len(choices) :])))
        most = 0 if member.is_constant else most_terms
        choices[name], drawn, nothing = choose(fits, descend, sample, most, effort.part(share))
        n_drawn += drawn
        without.append(nothing)
        if any(fit.ended_by_callback for fit in fits):
            return choices, n_drawn, without, True
    return choices, n_drawn, without, False


def cheaper(kinds: Sequence[Sequence[Member]]) -> dict[tuple[int, int], Member]:
    """{(kind, its number there): each member} but those that cost more than the others, of which fewer draws would tell."""
    members = {(kind, m): member for kind, of_kind in enumerate(kinds) for m, member in enumerate(of_kind)}
    return {name: member for name, member in members.items() if member.work <= 1}


def best_of_few(choices: Mapping[tuple[int, int], Choice], is_alone: bool) -> dict[int, tuple[int, ...]]:
    """{kind: its members} of the choice that predicts best; or that member alone."""
    kind, m = min(choices, key=lambda name: choices[name].loss)
    return {kind: (m,) if is_alone else tuple(m for of, m in choices if of == kind)}


def share_of_round(kinds: Sequence[Sequence[Member]], kept: Mapping[int, Sequence[int]], n_left: int) -> float:
    """Of the work that is left, with so many rounds to come. After the first there are fewer members."""
    this = sum(kinds[kind][m].work for kind, some in kept.items() for m in some)
    is_first = all(len(some) == len(kinds[kind]) for kind, some in kept.items())
    others = (this * FEWER if is_first else this) * (n_left - 1)
    return this / ((this + others) * (1 + FITTING_AGAIN))


def together(
    members: Sequence[Member], found: Sequence[Sequence[Choice]], task: Task, tol: float, ended: bool, effort: Effort
) -> tuple[SparseModel, bool]:
    """(the mean of what members found in each search, fitted to all rows; whether a callback ended it)."""
    views = None if members[0].views is None else np.unique(np.concatenate([member.views for member in members]))
    models, n = [], len(members) * len(found)
    for m, member in parts(list(enumerate(members))):
        of_member = task.with_views(member.views)
        for k, choices in parts(list(enumerate(found))):
            fits, of_model = member.fits(of_member, k), effort.part(1 / (n - len(models)))
            model, stops = fit_again(fits, of_member, choices[m], tol, not ended, of_model)
            models.append(model if views is None else seeing(model, member.views, views, task.stage))
            ended |= stops
    return one_function(mean_of(models)), ended


def seeing(model: SparseModel, of_model: np.ndarray, views: np.ndarray, stage: ColumnStage) -> SparseModel:
    """A model of some views of a stage as one of more of them."""
    features, stage = model.features.seeing(np.searchsorted(views, of_model), len(views)), stage.take(views)
    return replace(model, features=features.staged(None if stage.is_identity and stage.table is None else stage))


def fit_again(
    fits: Sequence[L1FitLike], task: Task, choice: Choice, tol: float, tells: bool, effort: Effort
) -> tuple[SparseModel, bool]:
    """(the model of the chosen terms, fitted to all rows, whether a callback ended it).

    alpha was chosen for a share of the rows. Noise, and alpha with it, falls with the root of how many they are.
    """
    with partial_fits_on_error(fits, task):
        for fit, state in zip(fits, choice.states, strict=True):
            fit.spend(effort)
            fit.restart(choice.alpha * np.sqrt(choice.share))
            fit.adopt(state)
            fit.polish(max(tol, fit.near), CHOSEN_ROUNDS)
            fit.record(tells)
    if effort.is_spent:
        effort.note_cut("fits to all rows")
    return model_of(fits, task), any(fit.ended_by_callback for fit in fits)


def chosen(
    setting: Setting, descend: Callable[[L1FitLike, Dictionary], None], share: float, n_models: int | None,
    max_terms: int | None, effort: float,
) -> SparseModel:  # fmt: skip
    """`sparse_rf` with alpha=None; descend: how a fit goes through its dictionary."""
    setting, units = with_equal_outputs(setting)
    task, options = setting.task, setting.options
    budget = Budget.of(check_real("effort", effort, 0, strict=True), task.raw.n_rows, n_models)
    max_terms = budget.terms if max_terms is None else check_integer("max_terms", max_terms, 1)
    classes = task.targets if task.loss.is_classifier else ()
    groups = np.argmax([np.zeros(task.rows.n_rows), *classes], axis=0)  # a number a class
    if task.loss.link == "log":
        groups = (task.targets[0] > 0).astype(groups.dtype)  # rows without an event, and with
    split = partial(Sample.of, task, groups, share, budget.rows, setting.rng)
    with single_threaded_blas(), task.rows:
        kinds = kinds_of(setting)  # which checks n_components
        about, work = (errors_of_chance(task, groups), options["tol"], options["fit_intercept"]), work_of(setting, budget)
        model, ended = search(kinds, descend, task, split, budget, work, max_terms, *about)
    if not ended:
        if work.within.cuts:
            warn_of_cuts(work.within.cuts, effort, len(task.targets))
            model = replace(model, info=replace(model.info, converged=False))
        else:
            warn(model.info, options["tol"])
    return in_their_units(with_fallbacks(model, task), units)


def work_of(setting: Setting, budget: Budget) -> Effort:
    """Return the effort of the searches, within that of the call; with max_iter, the user's limit, without a bound."""
    rows, n_components = setting.task.rows, setting.how["n_components"]
    if setting.options["max_iter"] is not None:
        return Effort(np.inf, Effort(np.inf))
    searches = budget.work(rows, n_components or (A_PENALTY if setting.learns else N_COMPONENTS))
    fits = FITTING * searches + A_ROW * max(0, rows.n_rows - FEW_ROWS)
    return Effort(searches, Effort(searches + fits))


def warn_of_cuts(cuts: Mapping[str, int], effort: float, n_outputs: int) -> None:
    """Once for a call: what its bound has ended."""
    what = ", ".join(f"{n} {name}" for name, n in cuts.items())
    several = ", or fit fewer classes or outputs at a time" if n_outputs > 1 else ""
    warn_unconverged(
        f"effort={effort:.3g}: the work of the call was spent before all was done: ended early or left out were {what}; "
        f"the model is the best that was found; raise effort{several}"
    )


def constant(member: Member) -> Member:
    """Return the member whose fits stay without a term."""
    return replace(member, work=0.01, is_constant=True)


def kinds_of(setting: Setting) -> list[list[Member]]:
    """The kinds of models: a constant; of a dictionary that is given one; else inputs, linear functions, and one that learns.

    Where X is CSR linear functions come first: of many inputs each mostly tells a little, and in the end they are one term.
    There steps of words are left out, which predicted no better.
    """

    def member(views, dictionary_of, settles=False, work=1.0):
        dictionary = dictionary_of(setting.task.with_views(views))
        return Member(views, lambda task, search: fits_of(task, dictionary, setting.options, settles, search), work)

    if not setting.learns:
        dictionary = member(None, partial(setting.dictionary, N_COMPONENTS), setting.exact)
        return [[constant(dictionary)], [dictionary]]
    n_draws = round(A_PENALTY * min(1.0, max(FEWEST_DRAWS, FEW_CLASSES / len(setting.task.targets))))
    curves, is_sparse = setting.task.encodings or (None,), setting.task.raw.is_sparse
    linear = curves if is_sparse else curves[:1]
    inputs = [member(views, setting.dictionary_of_inputs, True, LITTLE) for views in linear]
    functions = [member(views, lambda task: LinearFunctions(units_of(task)), False, LITTLE) for views in linear]
    learned = [member(views, partial(setting.dictionary, n_draws)) for views in curves]
    if is_sparse:
        return [[constant(inputs[0])], functions, inputs, learned]
    steps = member(curves[0], partial(setting.dictionary, n_draws, base=Steps), False, MUCH)
    return [[constant(inputs[0])], inputs, functions, [*learned, steps]]
