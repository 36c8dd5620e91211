"""How a model uses its inputs: summaries, Shapley values, importances, and effects of one and of
two inputs."""
