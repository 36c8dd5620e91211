"""The support of a hard-thresholded model: what a step does not change of it is not made again."""

import numpy as np

from ._columns import Columns

# Of the kernel matrix's columns, the share that may change before all of it is made again.
MOST_CHANGED = 0.4


class Support(Columns):
    """Features of a dictionary that is drawn whole, each with a scale r."""

    def __init__(self, rows, everything, r):
        super().__init__(rows)
        self._everything, self._r = everything, r
        self._kernel, self._kernel_of = None, self.index  # Phi diag(1 / r^2) Phi' of these indices

    def replace(self, index):
        """Become the features of these indices: first those that stay, in their order, then the new ones, ascending."""
        wanted = np.zeros(len(self._everything), bool)
        wanted[index] = True
        self.keep(np.flatnonzero(wanted[self.index]))
        wanted[self.index] = False
        new = np.flatnonzero(wanted)
        self.append(self._everything.take(new), new)

    def kernel(self):
        """Phi diag(1 / r^2) Phi', rows x rows."""
        new = np.setdiff1d(self.index, self._kernel_of)
        old = np.setdiff1d(self._kernel_of, self.index)
        if self._kernel is None or len(new) + len(old) > MOST_CHANGED * len(self):
            self._kernel = self._kernel_over(self.index)
        else:
            self._kernel = self._kernel + self._kernel_over(new) - self._kernel_over(old)
        self._kernel_of = self.index
        return self._kernel

    def _kernel_over(self, index):
        return self._rows.kernel(self._everything.take(index), 1 / self._r[index] ** 2)
