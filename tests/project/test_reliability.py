"""What takes minutes or many fits to see: the accuracy of functions, equal answers, interrupts,
soak and load."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import sparserf as srf
from sparserf._core.rows import LEVELS

from ..conftest import activate

pytestmark = pytest.mark.nightly
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (400, 5))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.1 * RNG.standard_normal(400)
LABELS = np.where(np.median(Y) < Y, "up", "down")

FITS = {
    "sparse_rf": lambda X, y, **how: srf.sparse_rf(
        X, y, features="gaussian", alpha=0.01, n_components=400, **how
    ),
    "auto": lambda X, y, **how: srf.sparse_rf(X, y, n_components=400, **how),
    "harfe": lambda X, y, **how: srf.harfe(
        X, y, n_components=400, n_nonzero_coefs=20, alpha=1e-4, **how
    ),
    "mfga": lambda X, y, **how: srf.mfga(X, y, n_nonzero_coefs=15, alpha=1e-3, **how),
    "drp": lambda X, y, **how: srf.drp(X, y, alpha=1e-3, n_projections=3, **how),
}


def ulps(got, right, floor):
    """Return the distance to the right value, which has more digits, in units of its last place, or
    of the last place of the floor."""
    return np.abs((got - right) / np.spacing(np.maximum(np.abs(right), floor).astype(got.dtype)))


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60, reason="long double has no more digits than double here"
)
@pytest.mark.parametrize(("dtype", "floor"), [(np.float64, 1e-6), (np.float32, 2.0**-20)])
@pytest.mark.parametrize("activation", ["cos", "sin", "tanh"])
def test_functions_are_accurate_at_very_many_points(activation, dtype, floor, record_property):
    """There are 10^8 points up to 1e6 in size, half of them uniform and half uniform in their
    logarithm; tanh needs no floor.

    tanh is e / (e + 2) with e = 2^k expm1(r) + (2^k - 1). Let u be half a unit in the last place of
    1; expm1(r) is off by about 1.5 u of itself. The worst case is k = 1, r = -ln(2)/2: e = 0.41 is
    off by (1.5 * 0.59 + 0.41) u / 0.41 = 3.1 u, its sum and the quotient add a u each, and the
    value, 0.17, is off by 2 / 2.41 * 3.1 u + 2 u = 4.6 u, 3.2 of its units. Just below powers of
    two, where u is nearly a unit, e is off by less than 2 u, and the value by less than 4 u.
    """
    rng, n, worst = np.random.default_rng(1), 10**6, [0.0] * len(LEVELS)
    most = 4 if activation == "tanh" and dtype is np.float64 else 3
    floor = 0 if activation == "tanh" else floor
    for part in range(100):
        size = rng.uniform(0, 1e6, n) if part % 2 else 10 ** rng.uniform(-8, 6, n)
        x = (rng.choice([-1, 1], n) * size).astype(dtype)
        right = getattr(np, activation)(
            x.astype(np.longdouble if dtype is np.float64 else np.float64)
        )
        for level in range(len(LEVELS)):
            worst[level] = max(
                worst[level], float(ulps(activate(activation, x, level), right, floor).max())
            )
    units = ", ".join(f"{units:.2f} at {level}" for level, units in zip(LEVELS, worst, strict=True))
    record_property("units in the last place", units)
    assert max(worst) <= most, units


# For 20 seeds of each function: the bytes of its model, and its predictions.
ANSWERS = """
import hashlib, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from tests.project.test_reliability import FITS, LABELS, X, Y
for name, fit in FITS.items():
    for seed in range(20):
        if seed % 2 and name != "auto":
            model = fit(X, LABELS, loss="logistic", rng=seed)
        else:
            model = fit(X, Y, rng=seed)
        f = model.decision_function(X) if model.loss == "logistic" else model.predict(X)
        bits = hashlib.sha256(model.coef.tobytes() + f.tobytes()).hexdigest()
        print(name, seed, bits, len(model.features), f.sum())
"""


def test_levels_give_the_same_models():
    """Levels with fused operations agree to the last bit; the baseline comes close, where rounding
    leads to the same terms."""
    tables = {}
    for level in LEVELS:
        env = os.environ | {"SPARSERF_LEVEL": level, "OPENBLAS_CORETYPE": "Haswell"}
        done = subprocess.run(
            [sys.executable, "-c", ANSWERS], capture_output=True, text=True, env=env, check=True
        )
        tables[level] = [line.split() for line in done.stdout.splitlines()]
    fused = [table for level, table in tables.items() if level != "baseline"]
    assert len(fused[0]) == 20 * len(FITS) and all(table == fused[0] for table in fused)
    if "baseline" in tables:
        sums = np.array(
            [[float(line[4]) for line in table] for table in (fused[0], tables["baseline"])]
        )
        same = np.isclose(*sums, rtol=1e-4, atol=1e-3 * len(X))
        assert np.mean(same) > 0.9, [
            line[:2] for line, is_same in zip(fused[0], same, strict=True) if not is_same
        ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", FITS)
def test_workers_do_not_matter(name, seed):
    first, *others = (FITS[name](X, Y, rng=seed, workers=workers) for workers in (1, 2, 3, 8))
    for other in others:
        assert (
            other.coef.tobytes() == first.coef.tobytes()
            and other.support.tobytes() == first.support.tobytes()
        )
        assert other.predict(X).tobytes() == first.predict(X).tobytes()


# Interrupts


BIG = np.tile(X, (100, 1)), np.tile(Y, 100)
WIDE = RNG.standard_normal((4_000, 2_000))
LONG = {
    "sparse_rf": lambda: srf.sparse_rf(
        *BIG, features="gaussian", alpha=1e-5, n_components=20_000, rng=0, workers=2
    ),
    "auto": lambda: srf.sparse_rf(*BIG, rng=0, workers=2),
    "harfe": lambda: srf.harfe(
        *BIG, n_components=5_000, n_nonzero_coefs=500, alpha=1e-4, rng=0, workers=2
    ),
    "mfga": lambda: srf.mfga(
        *BIG, n_nonzero_coefs=2_000, alpha=1e-3, features="gaussian", rng=0, workers=2
    ),
    "drp": lambda: srf.drp(WIDE, BIG[1][:4_000], alpha=1e-9, rng=0, workers=2),
    "cross_validate": lambda: srf.cross_validate(
        srf.sparse_rf, *BIG, {"alpha": [1e-3, 1e-4]}, rng=0
    ),
}


@contextmanager
def interrupted_after(seconds):
    """Send Ctrl-C after so many seconds, as the terminal does, and yield the list of when it was
    sent.

    The handler of SIGINT is set, since processes of a parallel run of tests ignore the signal
    otherwise.
    """
    sent, over = [], threading.Event()

    def send():
        if not over.wait(seconds):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    thread, before = (
        threading.Thread(target=send),
        signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("moment", [0.01, 0.1, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_an_interrupt_stops_any_function_at_any_moment(name, moment):
    """It stops within a second, and leaves no thread; a fit that had ended before the interrupt
    says nothing."""
    threads = threading.active_count()
    with interrupted_after(moment) as sent:
        try:
            LONG[name]()
        except KeyboardInterrupt:
            assert time.perf_counter() - sent[0] < 1
        else:
            assert not sent
            pytest.skip(f"it ended within {moment} s")
    assert threading.active_count() == threads


# Soak and load


def resident():
    """Return the resident memory of the process in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def given_back():
    """Return the resident memory after the C library, where it can, has given back what is free."""
    gc.collect()
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return resident()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
@pytest.mark.parametrize("name", FITS)
def test_a_thousand_fits_leave_nothing_behind(name, record_property):
    """After the first tenth, less than 1 MB that Python and NumPy allocate lives on, and the
    resident memory of the process grows by less than 5 MB: without a leak it varies by 3 MB."""
    n_fits = 200 if name == "auto" else 1_000
    for k in range(n_fits):
        if k == n_fits // 10:
            before = given_back()
            tracemalloc.start()
        FITS[name](X[:100], Y[:100], rng=k % 10)
    gc.collect()
    living = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    more = given_back() - before
    record_property("bytes that live on", living)
    record_property("bytes more of the process", more)
    assert living < 1e6
    assert more < 5e6


def test_many_threads_predict_while_others_fit():
    """A million predictions of one row from 32 threads have the same bits as alone; so have
    fits."""
    model = FITS["auto"](X, Y, rng=0)
    right = model.predict(X)
    fitted, over = FITS["sparse_rf"](X, Y, rng=0), threading.Event()

    def predict(thread):
        return all(
            model.predict(X[i : i + 1])[0] == right[i]
            for i in np.random.default_rng(thread).integers(0, len(X), 31_250)
        )

    def fit():
        same = True
        while not over.is_set():
            same &= (
                FITS["sparse_rf"](X, Y, rng=0, workers=2).coef.tobytes() == fitted.coef.tobytes()
            )
        return same

    with warnings.catch_warnings(), ThreadPoolExecutor(34) as pool:
        warnings.simplefilter("error")
        fits = [pool.submit(fit) for _ in range(2)]
        predictions = list(pool.map(predict, range(32)))
        over.set()
    assert all(predictions) and all(future.result() for future in fits)
