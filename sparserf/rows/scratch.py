"""Memory that is written over and over."""

import threading
from functools import cached_property

import numpy as np


class Scratch:
    """Arrays of each thread, overwritten at the next call: fresh memory can cost as much as what is done in it."""

    @cached_property
    def _here(self):
        return threading.local()

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype, name: str = "left") -> np.ndarray:
        size, arrays = shape[0] * shape[1] * dtype.itemsize, self._here.__dict__
        memory = arrays.get(name)
        if memory is None or len(memory) < size:
            memory = arrays[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)
