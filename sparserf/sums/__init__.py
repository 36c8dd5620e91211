"""One pass over the rows, many fits."""

from .sums import Sums as Sums
