"""Sparse Random Features (Yen et al. 2014)."""

from .functions import sparse_rf as sparse_rf
from .functions import sparse_rf_path as sparse_rf_path
