"""What a report of a bug must say of the place where it happened."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import numpy as np

from .._core.rows import LEVEL, LEVELS
from .threads import check_workers

FRAMES = "pandas", "polars", "pyarrow"  # read where they are installed; no requirement names them
SETTINGS = "SPARSERF_LEVEL", "OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"


def show_versions() -> None:
    """Print what a report of a bug needs: system, Python, processor, threads, BLAS and packages.

    Of the processor, these are the instruction sets that NumPy finds and the levels of the
    compiled kernels. Packages are the requirements, those of the extras, and the libraries of data
    frames. Environment variables are named where they are set. No path is printed.

    Examples
    --------
    >>> import sparserf as srf
    >>> srf.show_versions()  # doctest: +ELLIPSIS
    System
      Python: 3...
    Processor
      ...
    Threads and BLAS
      ...
    Packages
      sparserf: ...
      numpy: ...
    """
    parts = {
        "System": _system,
        "Processor": _processor,
        "Threads and BLAS": _threads,
        "Packages": _packages,
    }
    for title, part in parts.items():
        print(title)
        for name, value in part():
            print(f"  {name}: {value}")


def _system() -> list[tuple[str, Any]]:
    """Return (name, value) of the interpreter and the operating system."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()  # older interpreters always have it
    return [
        ("Python", " ".join(sys.version.split())),
        ("implementation", f"{platform.python_implementation()}, GIL {'on' if gil else 'off'}"),
        ("system", platform.platform()),
    ]


def _processor() -> list[tuple[str, Any]]:
    """Return (name, value) of the processor, as NumPy and the kernels see it."""
    # what is empty is left out
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    found = [name for key in ("baseline", "found") for name in simd.get(key, ())]
    return [
        ("machine", platform.machine()),
        ("instruction sets", ", ".join(found)),
        ("levels of the kernels", ", ".join(LEVELS)),
        ("level in use", LEVELS[LEVEL]),
    ]


def _threads() -> list[tuple[str, Any]]:
    """Return (name, value) of the cores, of each library that starts threads, and of variables that
    are set."""
    import scipy.linalg  # noqa: F401  SciPy's BLAS is not NumPy's, and must be loaded to be found
    from threadpoolctl import threadpool_info

    cores = f"{check_workers(-1)} of {os.cpu_count()}"
    libraries = [
        (
            f"{library['internal_api']} of {Path(library['filepath']).name}",
            ", ".join(
                f"{key.replace('_', ' ')} {library[key]}"
                for key in ("version", "architecture", "threading_layer", "num_threads")
                if library.get(key)
            ),
        )
        for library in threadpool_info()
    ]
    settings = [(name, os.environ[name]) for name in SETTINGS if name in os.environ]
    return [("cores of this process", cores), *libraries, *settings]


def _packages() -> list[tuple[str, Any]]:
    """Return (name, version) of the package, of what it requires, by an extra too, and of data
    frames."""
    required = [re.split(r"[^\w.-]", one)[0] for one in requires("sparserf") or ()]
    return [(name, _version(name)) for name in dict.fromkeys(["sparserf", *required, *FRAMES])]


def _version(name: str) -> str:
    """Return the version of a package that may be installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
