"""Sums of one pass over the rows, from which many models can be fitted."""

from .sums import Sums as Sums
