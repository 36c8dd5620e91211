"""Compiled kernels. They take arrays alone; callers check the arguments."""
