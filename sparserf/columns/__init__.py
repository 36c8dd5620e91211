"""From a data frame to numbers, and from its columns to the inputs of features.

`frames` reads the cells of data frames, and `table` keeps names and levels, by which cells become
numbers. `encodings` chooses encodings of the columns from the training rows, and `encoder` applies
them. `targets` checks y and encodes its labels.
"""
