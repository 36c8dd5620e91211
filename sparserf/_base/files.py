"""Files that are written whole or not at all: the old one stays until the new one is complete."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike


@contextmanager
def new_file(path: str | bytes | PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield a binary file that replaces the one at `path` when the block ends without an error.

    It is written beside that file, in its folder, and has its permissions; of a link it replaces
    what the link points to. Where the block fails, it is removed. A path of something that is no
    regular file, such as a pipe or a device, is opened as it is. In place of a path there may be an
    open file, which is yielded.
    """
    if hasattr(path, "write"):
        yield path
        return
    path = os.path.realpath(os.fsdecode(path))
    there = _stat(path)
    if there is not None and not stat.S_ISREG(there.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    if there is not None:
        # an error where the file may not be written, though its folder may
        os.close(os.open(path, os.O_WRONLY))
    temporary = os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            if there is not None:
                with suppress(OSError):  # only root may give files away
                    os.chown(temporary, there.st_uid, there.st_gid)
                os.chmod(temporary, stat.S_IMODE(there.st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def _stat(path):
    """Return what the system knows of a path; None where nothing is there."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
