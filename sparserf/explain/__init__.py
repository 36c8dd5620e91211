"""What a model says: summaries, formulas, Shapley values, and shares of variance."""
