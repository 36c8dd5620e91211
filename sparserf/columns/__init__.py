"""From a table to numbers: data frames (`frames`), names and levels (`table`), encodings of columns (`stage`), and targets.

`encodings` reads off the training rows how columns are encoded.
"""
