"""Arrays of PyTorch, JAX, CuPy and others: copied to the host, and results back to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.checks import are_finite

if TYPE_CHECKING:
    from .types import Array


def is_foreign(X: object) -> bool:
    """Return whether X is an array of PyTorch, JAX, CuPy or the like, exchanged by DLPack."""
    return not isinstance(X, np.ndarray) and hasattr(X, "__dlpack_device__")


def namespace_of(X: Array) -> tuple[Any, Any]:
    """Return (the namespace of an array that is not NumPy's, its device)."""
    try:
        from array_api_compat import array_namespace, device
    except ImportError:
        raise ImportError(
            f"X is an array of {type(X).__module__}: install sparserf[array-api]"
        ) from None
    return array_namespace(X), device(X)


def is_on_host(X: Array) -> bool:
    """Return whether the numbers of an array are in the memory of this process."""
    return _device_of(X)[0] == 1


def _device_of(X):
    """Return DLPack's (kind, number) of the device of X.

    It is (1, 0), the host's memory, for dtypes that DLPack lacks.
    """
    try:
        return X.__dlpack_device__()
    except TypeError:
        return 1, 0


def to_host(X: Array) -> np.ndarray:
    """Return the numbers of X as an ndarray, not copied if they are in this process's memory."""
    if isinstance(X, np.ndarray):
        return X
    try:
        if not is_on_host(X):
            return _from_accelerator(X)
        try:
            return np.from_dlpack(X) if not hasattr(X, "__array__") else np.asarray(X)
        except (TypeError, ValueError, RuntimeError):
            return np.from_dlpack(X)
    except (BufferError, TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"an array of {type(X).__module__} could not be read: {error}") from None


def _from_accelerator(X):
    """Copy an array from an accelerator into an ndarray."""
    from array_api_compat import is_jax_array, to_device

    return np.asarray(X if is_jax_array(X) else to_device(X, "cpu"))


def from_host(values: np.ndarray, xp: Any, device: Any, dtype: Any = None) -> Array:
    """Return an ndarray as an array of the namespace xp, on a device."""
    # PyTorch shares no memory that it may not write to
    values = np.require(values, requirements=["C", "W"])
    if dtype is None:
        return xp.asarray(values, device=device)
    return xp.astype(xp.asarray(values, device=device), dtype)


def check_same_device(name: str, values: Any, X: Any) -> None:
    """Check that an array is on the device of X; an array of NumPy may come with any X."""
    if not is_foreign(values):
        return
    here, there = (_device_of(array) if is_foreign(array) else (1, 0) for array in (X, values))
    if here != there:
        of_x, of_values = (
            namespace_of(array)[1] if is_foreign(array) else "cpu" for array in (X, values)
        )
        raise ValueError(f"{name} must be on the device of X, {of_x}, got one on {of_values}")


def namespace(x: Array) -> Any:
    """Return the namespace whose functions compute on an array, of NumPy or another."""
    return np if isinstance(x, (np.ndarray, np.generic)) else namespace_of(x)[0]


def as_like(values: np.ndarray, x: Array) -> Array:
    """Convert an ndarray to the namespace and device of x."""
    return values if isinstance(x, np.ndarray) else from_host(values, *namespace_of(x))


def outputs_like(t: float | np.ndarray, x: Array) -> Array:
    """Return a number for each output as a column, (n_outputs, 1), in the namespace of x.

    A single number is returned as a float.
    """
    # the commonest case first: predicting a single row takes little longer than a few such tests
    if type(t) is float:
        return t
    return float(t) if np.ndim(t) == 0 else as_like(t, x)[:, None]


def check_no_overflow(sums: Array) -> Array:
    """Return the sums of features; raise ValueError if they overflowed."""
    if not (
        are_finite(sums)
        if isinstance(sums, np.ndarray)
        else namespace(sums).all(namespace(sums).isfinite(sums))
    ):
        raise ValueError(
            "X must be of moderate size, got values whose features overflow: scale its columns"
        )
    return sums
