"""The methods by which a model proves what holds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from .._base.floats import methods_as_ieee
from ..expansion import Expansion

if TYPE_CHECKING:
    from ..expansion.box import BoxLike
    from .bounds import Bounds
    from .monotone import Monotonicity


@methods_as_ieee
class ProofMethods(Expansion):
    """The methods of a model that prove what holds of f over a box of rows."""

    def bounds(
        self,
        box: BoxLike | None = None,
        *,
        tol: float = 1e-3,
        time_limit: float | None = 10.0,
        output: object = None,
    ) -> Bounds:
        """Bound the least and the largest value of f over a box of rows: two intervals that are
        proved to hold them.

        Parameters
        ----------
        box : mapping or None, default None
            {name or index of a column: part}. The part of a column of numbers is (low, high), or a
            number; of dates, durations or times of day these, or numbers of days; of a category a
            level, or a list of levels; None is a missing cell, also in a list of levels. Columns
            that are left out have the range of the training rows, `ranges`, or all known levels.
            Booleans, and columns that took at most 32 different whole numbers in training, each in
            two rows or more on average, take no other values: (low, high) stands for those of them
            that lie in it. A single number is obeyed, whatever the column took. Of booleans a part
            may be True, False, or a list of them.
        tol : float, default 1e-3
            How wide the two intervals may be, relative to the range of f over the box, at least 0.
        time_limit : float or None, default 10.0
            The seconds that the call may take, > 0. At the limit the intervals are wider, and as
            true. None: any time, until a million boxes are left.
        output : label of a class, int, or None, default None
            The output that is bounded, where a model has several, as in `plot.effects`.

        Returns
        -------
        Bounds
            With the intervals `least` and `largest`, and rows `at_least` and `at_largest` at which
            f is nearly so. f is the decision function: where the link is the log, predictions lie
            between e to the power of the bounds.

        Raises
        ------
        ValueError, TypeError
            box names a column or level that there is not, has an interval that is empty or not
            finite, or that holds no value which its column takes, or leaves out a column whose
            range is not known; tol or time_limit is out of its range; the model has several outputs
            and no `output`.

        Notes
        -----
        Branch and bound: on each of many boxes the terms lie below linear functions, whose largest
        value is known. The bounds hold for the real numbers that the parameters of the model
        define, with every rounding of the computation counted in a margin: some n_terms units in
        the last place of the sum of all ``|coef| sup|phi|``. At a step both values count, also
        where rows of floating-point numbers reach one of them only.

        Time grows with the number of columns that interact: exponentially where f is not monotone
        in them, and not at all in those in which it is.

        References
        ----------
        H. Zhang et al., Efficient Neural Network Robustness Certification with General Activation
        Functions, 2018. A. H. Land,
        A. G. Doig, An Automatic Method of Solving Discrete Programming Problems, 1960.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(
        ...     X,
        ...     3 * X[:, 0] + X[:, 1] + 1,
        ...     features=srf.Linear(),
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> print(model.bounds({0: (0, 1), 1: (0, 1)}))
        bounds of f over the box, proved
          least in   [1, 1]
          largest in [5, 5]
          near the least:   x0 = 0, x1 = 0
          near the largest: x0 = 1, x1 = 1
          4 boxes
        """
        from .bounds import bounds

        return bounds(self, box, tol, time_limit, output)

    def is_monotone(
        self,
        column: str | int,
        box: BoxLike | None = None,
        *,
        sign: Literal[1, -1] | None = None,
        time_limit: float | None = 10.0,
        output: object = None,
    ) -> Monotonicity:
        """Tell whether f is monotone in a column of numbers over a box of rows: proved, refuted by
        two rows, or open.

        Parameters
        ----------
        column : str or int
            The name or the index of the column. Of columns whose names are numbers, a number is a
            name.
        box : mapping or None, default None
            As in `bounds`.
        sign : 1, -1 or None, default None
            Whether f is to rise or to fall with the column. None: the result says which of both
            holds, if one does.
        time_limit : float or None, default 10.0
            The seconds that the call may take, > 0; None: any time, until a million boxes are left.
        output : label of a class, int, or None, default None
            The output, where a model has several, as in `plot.effects`.

        Returns
        -------
        Monotonicity
            Its `status` is "proved", "refuted" or "open"; as a condition it is true where
            monotonicity is proved. f is monotone if it never moves against the sign; it may be
            constant.

        Raises
        ------
        ValueError, TypeError
            column is none of the model's, or a category; sign is another number; or as in `bounds`.

        Notes
        -----
        Along a column that takes few values, as in `bounds`, f is monotone if it is so from each
        value to the next: what it does between them is no matter. Both rows of a refutation have
        values that their columns take.

        If every term that sees the column is monotone in it with the right sign, that is the proof,
        for all rows of the box. Otherwise, for a column of few values, the difference of f at two
        of them is bounded as `bounds` does; for others the box is halved until the derivative has
        the sign on each part, and no step goes against it. A point where the derivative, or the
        difference, is 0, but not on either side, may stay open. Rounding is counted as in `bounds`.
        Limits of f are regarded in refutations, and not in proofs.

        Examples
        --------
        >>> import numpy as np, sparserf as srf
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> model = srf.mfga(
        ...     X,
        ...     3 * X[:, 0] + X[:, 1] + 1,
        ...     features=srf.Linear(),
        ...     n_nonzero_coefs=2,
        ...     alpha=1e-9,
        ...     rng=0,
        ... )
        >>> model.is_monotone(0, {0: (-1, 1), 1: (-1, 1)})
        proved: f rises with x0 over the box
        """
        from .monotone import is_monotone

        return is_monotone(self, column, box, sign, time_limit, output)
