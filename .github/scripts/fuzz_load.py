"""Model files with random damage, for some seconds: fuzz_load.py SECONDS [SEED].

Each is a model that predicts, or a ValueError; in neither case has reading it taken more than twice
its size and 1.5 MB. The damage is of bytes anywhere, or within a member under a right checksum.
tests/model/test_file.py has it too, with seeds that stay."""

import io
import random
import sys
import tempfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np

import sparserf as srf

FILES = sorted((Path(__file__).parents[2] / "tests" / "files").glob("*.npz"))


def damaged(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start, stop = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        length = min(stop - start, rng.choice([1, 4, 64]))
        data[start : start + length] = rng.choice(
            [rng.randbytes(length), b"", data[start : start + length] * 2]
        )
    return bytes(data)


def damaged_member(data, rng):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    members[name] = damaged(members[name], rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def load(path):
    """The model, or None where there is none; AssertionError if reading took too much."""
    tracemalloc.start()
    try:
        return srf.load(path)
    except ValueError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2 * path.stat().st_size + 1_500_000, (
            f"{peak} bytes for a file of {path.stat().st_size}"
        )


def use(model):
    if model is not None and model.n_features_in < 1000:
        try:
            model.predict(np.linspace(-3, 3, 8 * model.n_features_in).reshape(8, -1))
        except (ValueError, TypeError):  # a table with names, or numbers that overflow
            pass


if __name__ == "__main__":
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    rng, end, count, read = random.Random(seed), time.monotonic() + seconds, 0, 0
    print(f"seed {seed}", flush=True)
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        while time.monotonic() < end:
            damage = rng.choice([damaged, damaged_member])
            path.write_bytes(damage(rng.choice(FILES).read_bytes(), rng))
            try:
                model = load(path)
                use(model)
            except BaseException:
                print("the file, in hex:", path.read_bytes().hex())
                raise
            count, read = count + 1, read + (model is not None)
    print(f"{count} passed: damaged files, {read} of them models still")
