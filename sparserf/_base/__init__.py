"""What knows nothing of the field: checks of arguments, arrays and namespaces, threads, progress, warnings, files of arrays."""
