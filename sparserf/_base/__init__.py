"""Tools that no method is in: checks, arrays, randomness, threads, progress, files."""
