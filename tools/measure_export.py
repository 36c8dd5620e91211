"""Times and errors of exported models, the tables of docs/export.md: `python tools/measure_export.py`.

Needs a compiler, onnx and onnxruntime. The least of several repetitions in processor time, one thread.
"""

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime

import sparserf as srf

N, D, TERMS = 4000, 10, 200
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = np.sin(X).sum(axis=1) + X[:, 0] * X[:, 1]
OPTIONS = "-O2", "-O3", "-O3 -march=native"
MAPS = {
    "cosines": srf.Fourier(gamma=0.05),
    "sines of 3 inputs each": srf.RandomNeurons("sin", order=3),
    "relu": srf.RandomNeurons("relu"),
    "signs": srf.Perceptron(radius=5.0),
    "tanh": srf.RandomNeurons("tanh"),
    "monomials to degree 3": srf.Taylor(3, gamma=0.05),
}


def fits():
    """(name, model) of each row of the tables."""
    for name, of in MAPS.items():
        features = of.draw(TERMS, D, rng=0)
        features = features.take(np.arange(min(TERMS, len(features))))
        yield name, srf.harfe(X, Y, features=features, n_nonzero_coefs=len(features), alpha=1e-6, rng=0, scale=None)
    robust = srf.harfe(X, Y, features=MAPS["cosines"], n_components=300, n_nonzero_coefs=TERMS, rng=0, scale="robust")
    yield "cosines of columns in units", robust
    yield "the default of sparse_rf", srf.sparse_rf(X, Y, n_models=1, rng=0)


def least(function, repetitions):
    """Seconds of the fastest of so many calls."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def in_c(model, option, folder):
    """(nanoseconds a row, the largest error relative to the largest prediction)."""
    number = len(list(folder.glob("*.so")))
    source, library = folder / "model.c", folder / f"model{number}.so"
    model.to_c(source)
    subprocess.run(["cc", *option.split(), "-fPIC", "-shared", source, "-o", library, "-lm"], check=True)
    function, out = ctypes.CDLL(str(library)).predict_rows, np.empty(N)
    seconds = least(lambda: function(pointer(X), ctypes.c_size_t(N), pointer(out)), 50)
    expected = model.predict(X)
    return seconds / N * 1e9, np.abs(out - expected).max() / np.abs(expected).max()


def in_onnx(model, dtype):
    """(nanoseconds a row in a batch, microseconds of one row, the error)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    exported = model.to_onnx(dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    rows = X.astype(dtype)
    batch = least(lambda: session.run(None, {"X": rows}), 30) / N * 1e9
    single = least(lambda: [session.run(None, {"X": rows[:1]}) for _ in range(100)], 10) * 1e4
    expected = model.predict(rows.astype(np.float64))
    return batch, single, np.abs(session.run(None, {"X": rows})[0][:, 0] - expected).max() / np.abs(expected).max()


def in_python(model):
    """(nanoseconds a row in a batch, microseconds of one row)."""
    batch = least(lambda: model.predict(X), 30) / N * 1e9
    return batch, least(lambda: [model.predict(X[:1]) for _ in range(100)], 10) * 1e4


def main():
    models = list(fits())
    with tempfile.TemporaryDirectory() as folder:
        print("| terms | number |", *(f"`{option}` |" for option in OPTIONS), "predict |", "error |")
        print("|---" * (len(OPTIONS) + 4) + "|")
        for name, model in models:
            measured = [in_c(model, option, Path(folder)) for option in OPTIONS]
            times = " | ".join(f"{nanoseconds:.0f}" for nanoseconds, _ in measured)
            worst = max(error for _, error in measured)
            print(f"| {name} | {len(model.features)} | {times} | {in_python(model)[0]:.0f} | {worst:.0e} |")
    print("\n| terms | float32, of many rows each | one row | error | float64, of many each | one row | error | predict, one |")
    print("|---" * 8 + "|")
    for name, model in models:
        cells = [f"{b:.0f} ns | {s:.0f} us | {e:.0e}" for b, s, e in (in_onnx(model, each) for each in ("float32", "float64"))]
        print(f"| {name} | {' | '.join(cells)} | {in_python(model)[1]:.0f} us |")


if __name__ == "__main__":
    main()
