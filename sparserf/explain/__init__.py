"""What a model does with its inputs: summaries, Shapley values, shares of variance, and effects of one and two inputs."""
