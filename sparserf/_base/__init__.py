"""Tools that are independent of methods: checks of arguments and calls, arrays, randomness,
threads, progress, files."""
