"""From a table to numbers: frames and their cells, how columns are encoded, and targets."""
