"""How well models predict rows they have not seen: cross-validation, intervals, calibrated probabilities."""
