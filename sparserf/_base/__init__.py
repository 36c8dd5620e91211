"""The base, which knows nothing of models: checks of arguments and calls, arrays and namespaces, samples, threads, progress."""
