"""From a table to numbers: how data frames become numbers, and columns of numbers and categories
the inputs of features.

`frames` reads the cells of data frames, and `table` keeps names and levels, by which cells become
numbers. `encodings` chooses encodings of the columns from the training rows, and `stage` applies
them. `targets` checks y and encodes its labels.
"""
