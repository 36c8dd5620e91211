"""Compiled kernels. They know arrays only: every check is made before they are called."""
