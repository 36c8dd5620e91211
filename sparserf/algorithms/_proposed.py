"""The l1 fit over dictionaries without end: draws that follow the working set, or the best of all linear functions."""

import numpy as np

from ..features import LearningDictionary, LinearFunctions, inputs_times, make_dictionary, make_learning_dictionary
from ._draws import KeptDraws
from ._l1_fit import L1Fit, SearchingFit


def learns(features):
    return isinstance(features, str) and features == "auto"


def dictionary_of(features, rows, weight, exact, n_components, batch_size, gamma, rng):
    """The dictionary of a `features` argument, "auto" among them."""
    how = {"n_components": n_components, "batch_size": batch_size, "gamma": gamma, "rng": rng}
    if not learns(features):
        return make_dictionary(features, rows, weight=weight, **how)
    if exact:
        raise ValueError("exact must be False where features is 'auto', whose draws cannot be made again; got True")
    return make_learning_dictionary(rows, weight, **how)


def fits_of(task, dictionary, options, settles=True, search=0):
    """The fit of each target, in that search of several; settles: to the tolerance."""
    if isinstance(dictionary, LearningDictionary):
        Fit, options = LearningFit, {"settles": settles, **options}
    elif isinstance(dictionary, LinearFunctions):
        Fit = LinearFit
    else:
        Fit = L1Fit if settles else SearchingFit
        return [Fit(task, y, dictionary, **options) for y in task.targets]
    first = search * len(task.targets)
    return [Fit(task, y, dictionary, target=k, **options) for k, y in enumerate(task.targets, first)]


class ProposedFit(L1Fit):
    """Over draws that are made as they are asked for, and not again."""

    def largest_gradient(self):
        """Of the draws of a batch."""
        return self._scale * float(np.abs(self.draw(0).gradient(self.dual_point())).max())


class LearningFit(ProposedFit):
    """A round for each batch, since better draws are worth more than the optimum over these; the last, where it settles, to
    the tolerance."""

    enter_a_term, fewest_enter, left_over = 1, 200, 0.1

    def __init__(self, task, y, dictionary, *, target, settles, **options):
        super().__init__(task, y, dictionary, **options)
        self._proposer, self._settles = dictionary.proposer(target), settles

    def draw(self, t):
        self._drawn[t], self._is_last = True, t == self.dictionary.n_batches - 1
        n = np.diff(self.dictionary.starts)[t]
        start, features = self._proposer.batch(n, self.A.features, self.A.w, self.A.index)
        draws = KeptDraws(self._rows, features, start + np.arange(n))
        draws.turn(self.dual_point())
        return draws

    def minimise_over(self, draws):
        self.improve_over(draws)
        if self._is_last and self._settles:
            super().minimise_over(draws)


class LinearFit(ProposedFit):
    """Over all linear functions. Those of several rounds and penalties add up to one; of them a few are as good as all."""

    left_over, near = 0.0, 0.1

    def __init__(self, task, y, dictionary, *, target, **options):
        super().__init__(task, y, dictionary, **options)
        d = task.rows.n_features_in
        self._inputs, self._first = inputs_times(np.ones(d)), d + (target << 20)

    def draw(self, t):
        self._drawn[t], new = True, self.A.index.max(initial=self._first - 1) + 1
        v = self.dual_point()
        function, g = self.dictionary.steepest(self._rows.correlate(self._inputs, v))
        return KeptDraws(self._rows, function, np.array([new]), v, np.array([g]))

    def minimise_over(self, draws):
        self.improve_over(draws)

    def polish(self, tol, max_rounds):
        """To a gap of tol over all linear functions, where it has any; of which one enters in a round: rounds cost little."""
        super().polish(tol, max_rounds)
        self._tol = tol
        if not len(self.A):
            return
        for _ in range(10 * max_rounds):
            if self.improve_over(self.draw(0)):
                break
            self.A.prune()
