"""The column stage: what stands between the columns of X, in units of any size, and the features, which measure distances."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._arrays import from_host, namespace_of
from ._checks import is_sparse
from ._core.moments import shown
from ._npz import floats, require

# Rows, and numbers in them, that centres and units are read off, where there are more.
MOST_ROWS, MOST_NUMBERS = 2**14, 2**20
# For its unit a number counts as no farther from the median than so many times the median distance to it of those that differ
# from it. Of a normal distribution that is 6.7 standard deviations.
FAR = 10.0
# Share of the rows, and how many, whose numbers may be drawn in: where they are farther than that, too.
WILD, FEWEST_WILD = 1e-3, 1.5
# A column is constant whose deviation is less than this many times the rounding of its numbers.
ROUNDINGS = 16.0
# The arrays of a file.
ARRAYS = "stage_center", "stage_unit", "stage_reach", "stage_half_range"


@dataclass(frozen=True, eq=False)
class ColumnStage:
    """u_j = (x_j - center_j) / unit_j of each column; 0 where it is constant. Frozen: part of a model.

    Where r = reach_j < |u_j|, it is r (2 - r / |u_j|) with the sign of u_j: a few wild cells are no farther out than distances
    and linear functions can bear.

    center, unit : the weighted mean and standard deviation of the training rows, numbers far from the median counted as less
        far; unit is 0 for a constant column
    reach : in these units, where training rows end but for a thousandth, or are that far from the median
    half_range : half of what the training rows span within it, in these units
    """

    center: np.ndarray
    unit: np.ndarray
    reach: np.ndarray
    half_range: np.ndarray

    def __post_init__(self):
        for array in self._arrays:
            array.flags.writeable = False

    def __setstate__(self, state):  # unpickled arrays are writable
        self.__dict__.update(state)
        self.__post_init__()

    def __getstate__(self):  # without what can be made again
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    @classmethod
    def of(cls, rows, weight, rng):
        """As dense rows of positive weights tell, or a sample of them; all rows, where a column is constant in the sample."""
        X, of_sample = _sample(rows, weight, rng)
        columns = robust(X, of_sample)
        rare = (columns[1] == 0) & (len(X) < rows.n_rows)
        if rare.any():
            _add_rare(columns, rare, *rows.spreads(weight))
        return cls(*columns)

    def __len__(self):
        return len(self.unit)

    @property
    def _arrays(self):
        return self.center, self.unit, self.reach, self.half_range

    def is_same(self, other):
        """Whether another stage, or None, shows the same."""
        return other is self or (other is not None and all(map(np.array_equal, self._arrays, other._arrays)))

    @cached_property
    def _arithmetic(self):
        """(power, center, factor, reach), u = (power x - center) factor: a power of two first, so that nothing overflows."""
        exponent = np.where(self.unit > 0, np.clip(np.frexp(self.unit)[1], -1000, 1000), 0)
        power = np.ldexp(1.0, -exponent)
        factor = np.divide(1.0, self.unit * power, out=np.zeros(len(self)), where=self.unit > 0)
        return power, np.where(factor > 0, self.center * power, 0.0), factor, np.where(factor > 0, self.reach, 1.0)

    def show(self, X):
        """The rows of X in these units, in its dtype: a new array, in its namespace, on its device; dense, of CSR rows too."""
        if is_sparse(X):
            X = X.toarray()
        if isinstance(X, np.ndarray):
            out = np.empty(X.shape, X.dtype)
            shown(X, *self._arithmetic, out)
            return out
        xp, device = namespace_of(X)
        power, center, factor, reach = (from_host(part, xp, device) for part in self._arithmetic)
        with np.errstate(over="ignore"):
            u = (xp.astype(X, power.dtype) * power - center) * factor
        drawn_in = reach * (2 - reach / xp.maximum(xp.abs(u), reach))
        return xp.astype(xp.where(xp.abs(u) > reach, xp.sign(u) * drawn_in, u), X.dtype)

    def written(self):
        """The arrays of a file."""
        return dict(zip(ARRAYS, self._arrays, strict=True))

    @classmethod
    def read(cls, arrays, n_columns):
        """What `written` gave, of a file that is not trusted; None where it holds no stage."""
        if not any(name in arrays for name in ARRAYS):
            return None
        stage = cls(*(floats(arrays, name) for name in ARRAYS))
        require(all(array.shape == (n_columns,) for array in stage._arrays), "stage")
        require(bool((stage.unit >= 0).all() and ((stage.reach > 0) | (stage.unit == 0)).all()), "stage")
        return stage


class Staged:
    """A matrix that is made where it is sliced: the stage's view of these rows of X."""

    def __init__(self, X, stage):
        self._X, self._stage = X, stage
        self.shape, self.dtype = X.shape, X.dtype
        self.size = self.shape[0] * self.shape[1]

    def __getitem__(self, rows):
        return self._stage.show(self._X[rows])


def _sample(rows, weight, rng):
    """(some rows, their weights): all, or as many as a stage is read off."""
    n = min(MOST_ROWS, max(2, MOST_NUMBERS // rows.n_features_in))
    if rows.n_rows <= n:
        return rows.array(), weight
    index, weight = some_rows(weight, n, rng)
    return rows.array(index), weight.astype(np.float64)


def some_rows(weight, n, rng):
    """(the indices of at most n rows, how much each counts): all rows, or as many draws, as likely as their weights."""
    n = min(n, len(weight))
    if n == len(weight) or are_equal(weight):
        sample = np.sort(rng.choice(len(weight), n, replace=False))
        return sample, weight[sample]
    return np.unique(rng.choice(len(weight), n, p=weight / weight.sum()), return_counts=True)


def are_equal(weight):
    return weight.min() == weight.max()


def robust(X, weight):
    """(center, unit, reach, half range) of each column of an ndarray, as a `ColumnStage` has them: (4, n_columns)."""
    answers = np.zeros((4, X.shape[1]))
    size = max(1, 2**17 // max(1, len(X)))
    for start in range(0, X.shape[1], size):
        some = slice(start, start + size)
        answers[:, some] = _robust(X[:, some], weight)
    return answers


def _add_rare(columns, rare, deviation, half_range):
    """Columns of which a sample knows one number only: around that, in units of their deviation over all rows."""
    some = np.flatnonzero(rare & (deviation > 0))
    in_units = half_range[some] / deviation[some]
    columns[1:, some] = deviation[some], 2 * in_units, in_units


def _robust(X, weight):
    rounding = ROUNDINGS * np.finfo(X.dtype).eps
    X = np.array(X, np.float64, order="C")  # sums in another order have other bits
    down = np.where(np.frexp(np.abs(X).max(axis=0))[1] > 1000, 2.0**-30, 1.0)  # no difference overflows
    X *= down
    median = weighted_quantile(X, weight, 0.5)
    X -= median
    distance = np.abs(X)
    near = weighted_quantile(distance, weight, 0.5, first=(distance == 0).sum(axis=0))
    varies = near > 0
    unit = np.where(varies, near, 1.0)
    end = np.maximum(FAR * near, weighted_quantile(distance, weight, 1 - max(WILD, FEWEST_WILD / len(X)))) / unit
    with np.errstate(over="ignore"):
        X /= unit
    share, less = weight / weight.sum(), np.clip(X, -FAR, FAR)
    mean = share @ less
    deviation = np.sqrt(share @ (less - mean) ** 2)
    varies &= deviation > rounding * (np.abs(median) / unit + FAR)
    inside = np.clip(X, -end, end)
    per_deviation = np.divide(1.0, deviation, out=np.zeros_like(mean), where=varies)
    half_range = (inside.max(axis=0) - inside.min(axis=0)) / 2 * per_deviation
    return (median + near * mean) / down, near * deviation / down * varies, (end + np.abs(mean)) * per_deviation, half_range


def weighted_quantile(X, weight, share, first=0):
    """Of each column the least entry that this share of the weight lies at or below, without the `first` least entries."""
    if are_equal(weight):
        place = first + np.ceil((len(X) - first) * share * (1 - 1e-12)).astype(np.intp) - 1
        return np.take_along_axis(np.sort(X, axis=0), np.broadcast_to(np.maximum(place, 0), X.shape[1:])[None], axis=0)[0]
    order = np.argsort(X, axis=0, kind="stable")
    total = np.where(np.arange(len(X))[:, None] < first, 0.0, weight[order]).cumsum(axis=0)
    place = (total < total[-1] * share * (1 - 1e-12)).sum(axis=0)[None]
    return np.take_along_axis(X, np.take_along_axis(order, place, axis=0), axis=0)[0]
