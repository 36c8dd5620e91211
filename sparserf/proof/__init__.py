"""What is proved of a fitted model: bounds of f over a box, and whether f is monotone in a
column."""
