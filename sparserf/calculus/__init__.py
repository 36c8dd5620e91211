"""The calculus of a model: derivatives, and integrals over boxes. `SparseModel` has each of these
functions as a method."""
