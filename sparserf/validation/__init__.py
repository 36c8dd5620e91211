"""Validation on unseen rows: cross-validation, intervals, calibrated probabilities."""

from .calibration import calibrated as calibrated
from .conformal import Intervals as Intervals
from .conformal import intervals as intervals
from .cross_validation import CrossValidation as CrossValidation
from .cross_validation import cross_validate as cross_validate
