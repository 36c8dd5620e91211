"""What knows nothing of models: checks of arguments and calls, arrays and namespaces, randomness, threads, progress, files."""
