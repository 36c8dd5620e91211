"""A seed decides every bit, for any number of workers and callers; threads end with the call;
callbacks are called."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  brings its own BLAS
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController, threadpool_limits

import sparserf as srf
from sparserf.algorithms.sparse_rf.descent import TO_TOLERANCE

from .conftest import bits, ignore_convergence
from .features.sets import dictionary_of

N, D = 2000, 4
FEATURES = srf.Fourier(gamma=0.5)
BLAS = ThreadpoolController().select(user_api="blas")
TARGETS = {
    "squared": 0,
    "squared_hinge": 2,
    "logistic": 2,
    "squared_hinge of 3": 3,
    "logistic of 3": 3,
}


@cache
def data(kind, dtype=np.float64):
    """Return rows, dense or CSR, and a real target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, D))
    X = np.where(rng.random((N, D)) < 0.3, 0.0, X).astype(dtype)
    return (sp.csr_array(X) if kind == "csr" else X), np.sin(2 * X[:, 0]) * X[
        :, 1
    ] + 0.1 * rng.standard_normal(N)


def fit(
    target="squared", kind="dense", dtype=np.float64, alpha=0.01, rng=0, features=FEATURES, **k
):
    """Fit by sparse_rf to a target of TARGETS."""
    X, y = data(kind, dtype)
    if TARGETS[target]:
        y = np.digitize(y, [0.0] if TARGETS[target] == 2 else [-0.4, 0.4])
    k = {"n_components": 400, "batch_size": 200, "scale": None, **k}
    return srf.sparse_rf(X, y, alpha=alpha, loss=target.split()[0], rng=rng, features=features, **k)


def all_bits(model):
    """Return the bytes of a model, those of its features included, and its `FitInfo`."""
    blocks = [(b.activation, b.scale, *b.arrays.values()) for b in model.features.blocks]
    return (
        bits(model),
        [np.asarray(part).tobytes() for block in blocks for part in block],
        model.info,
    )


def blas_threads():
    """Return the number of threads of each BLAS library."""
    return {info["filepath"]: info["num_threads"] for info in BLAS.info()}


@pytest.fixture(autouse=True)
def _many_small_blocks(cut_rows):
    """Split the rows into about ten blocks for every question, so that threads have something to
    get wrong."""
    cut_rows(2**15)


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    """Check after each test that no thread and no limit of BLAS is left."""
    threads, blas = set(threading.enumerate()), blas_threads()
    yield
    after = blas_threads()
    if after != blas:
        threadpool_limits(blas)  # restored for the next test
    assert set(threading.enumerate()) == threads
    assert after == blas


# The same bits


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("kind", "dtype", "exact"),
    [
        ("dense", np.float64, False),
        ("dense", np.float64, True),
        ("dense", np.float32, False),
        ("csr", np.float64, False),
        ("csr", np.float32, True),
    ],
)
def test_workers_do_not_matter(target, kind, dtype, exact):
    k = {"n_components": 200, "batch_size": 100, "tol": 0.01, "alpha": 0.02, "exact": exact}
    one = fit(target, kind, dtype, **k, workers=1)
    assert len(one.features) > 2
    f = one.decision_function(data(kind, dtype)[0])
    for workers in (2, 3, 8):
        many = fit(target, kind, dtype, **k, workers=workers)
        assert all_bits(many) == all_bits(one)
        assert (
            many.decision_function(data(kind, dtype)[0], workers=workers).tobytes() == f.tobytes()
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    [
        "gaussian",
        "perceptron",
        srf.Fourier("laplacian", gamma=0.5),
        srf.RandomNeurons("relu", order=2),
        (FEATURES, srf.Linear(), srf.RandomNeurons("tanh")),
        srf.Taylor(3),
        (srf.Taylor(2, 0.5), FEATURES, srf.Linear()),
        (srf.Bumps(40), srf.Linear()),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_workers_do_not_matter_to_other_features(features, kind):
    assert all_bits(fit(kind=kind, features=features, workers=3)) == all_bits(
        fit(kind=kind, features=features)
    )


MAPS = srf.Taylor(2, gamma=0.1), srf.Linear()
WAVES = srf.Fourier(gamma=0.3).draw(200, D, rng=1)
OTHERS = {
    "harfe": partial(
        srf.harfe, n_components=1000, n_nonzero_coefs=100, alpha=1e-4, order=2, max_iter=2, rng=0
    ),
    "harfe, more terms than rows": lambda X, y, **how: srf.harfe(
        X[:150], y[:150], features=WAVES, n_nonzero_coefs=180, max_iter=2, alpha=0.1, **how
    ),
    "mfga": partial(srf.mfga, features=MAPS, n_nonzero_coefs=12, alpha=1e-3),
    "mfga, several a round": partial(
        srf.mfga, features=MAPS, n_nonzero_coefs=12, alpha=1e-3, n_select=5
    ),
    "mfga logistic": partial(
        srf.mfga, features=MAPS, n_nonzero_coefs=8, alpha=1e-3, loss="logistic"
    ),
    "mfga, maps": partial(
        srf.mfga,
        features=(*MAPS, FEATURES),
        n_components=300,
        n_nonzero_coefs=12,
        alpha=1e-3,
        rng=0,
    ),
    "mfga as it comes": partial(srf.mfga, n_nonzero_coefs=8, alpha=1e-3, rng=0),
    "drp": partial(srf.drp, alpha=1e-3, rng=0),
    "drp logistic": partial(srf.drp, alpha=1e-3, loss="logistic", rng=0),
    "drp of the paper": partial(
        srf.drp, alpha=0.1, accelerate=False, n_projections=300, n_iter=10, rng=0
    ),
    "monotone": lambda X, y, **how: srf.sparse_rf(
        X, y, alpha=0.01, n_components=400, monotone=[1, 0, 0, 0], rng=0, **how
    ),
    "rules": partial(srf.sparse_rf, features=srf.Rules(), alpha=0.01, n_components=200, rng=0),
}
OF_LABELS = "mfga logistic", "drp logistic"


@ignore_convergence
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_workers_do_not_matter_to_other_functions(name, kind, cut_rows):
    cut_rows(2**9)
    X, y = data(kind)
    X, y = X[:400], y[:400]
    y = y > 0 if name in OF_LABELS else y
    one, *others = (OTHERS[name](X, y, workers=workers) for workers in (1, 2, 3))
    for other in others:
        assert bits(other) == bits(one)
        assert vars(other).get("info") == vars(one).get("info")
    f = one.decision_function(X)
    assert one.decision_function(X, workers=3).tobytes() == f.tobytes()


LAYOUTS = {
    "fortran": np.asfortranarray,
    "backwards": lambda X: X[::-1].copy()[::-1],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
# Where features are the inputs themselves, BLAS reads X as it lies in memory, so that only some
# layouts give the same bits.
OF_FEATURES = {
    "gaussian": lambda X, y: srf.sparse_rf(
        X, y, features="gaussian", alpha=0.01, n_components=400, rng=0, workers=2
    ),
    "taylor": lambda X, y: srf.sparse_rf(
        X, y, features=srf.Taylor(2, 0.5), alpha=0.01, rng=0, workers=2
    ),
    "harfe": lambda X, y: srf.harfe(
        X, y, order=2, n_components=200, n_nonzero_coefs=20, alpha=1e-4, rng=0
    ),
}
OF_INPUTS = {
    "linear": lambda X, y: srf.sparse_rf(
        X, y, features=(srf.Linear(), FEATURES), alpha=0.01, n_components=100, rng=0
    ),
    "auto": lambda X, y: srf.sparse_rf(X[:120], y[:120], rng=0),
    "mfga": lambda X, y: srf.mfga(X, y, n_nonzero_coefs=8, alpha=1e-3, rng=0),
    "drp": lambda X, y: srf.drp(X, np.sign(y), alpha=1e-3, loss="logistic", rng=0),
}


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        *((layout, name) for layout in LAYOUTS for name in OF_FEATURES),
        *((layout, name) for layout in list(LAYOUTS)[1:] for name in OF_INPUTS),
    ],
)
def test_layout_does_not_matter(layout, name):
    (X, y), fit = data("dense"), (OF_FEATURES | OF_INPUTS)[name]
    one, other = fit(X, y), fit(LAYOUTS[layout](X), y)
    assert (one.coef.tobytes(), one.support.tobytes()) == (
        other.coef.tobytes(),
        other.support.tobytes(),
    )
    assert (
        one.decision_function(X).tobytes() == other.decision_function(LAYOUTS[layout](X)).tobytes()
    )


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ["sparse_rf", "harfe"])
def test_taylor_and_random_features_are_the_set_drawn_by_hand(solver, kind, dtype):
    """Maps beside each other have the bits of the set drawn by hand, for any workers, and halve the
    error on an interaction."""
    (X, _), maps = data(kind, dtype), (srf.Taylor(2, 0.2), FEATURES)
    dense = data("dense")[0]
    y = 3 * np.exp(-0.2 * (dense**2).sum(axis=1)) * dense[:, 0] * dense[:, 1] + np.sin(
        2 * dense[:, 2]
    )
    drawn = dictionary_of(maps, X, 60, 60).batch(0)
    by_hand = srf.Taylor(2, 0.2).draw(None, D).concat(drawn.take(np.arange(15, 75)))
    k = {"scale": None, "rng": 0} | (
        {"alpha": 0.002, "batch_size": 1000}
        if solver == "sparse_rf"
        else {"n_nonzero_coefs": 40, "alpha": 1e-6}
    )
    models = [
        getattr(srf, solver)(X[:1500], y[:1500], features=maps, n_components=60, workers=w, **k)
        for w in (1, 3)
    ]
    models += [getattr(srf, solver)(X[:1500], y[:1500], features=by_hand, **k)]
    assert all_bits(models[0]) == all_bits(models[1]) == all_bits(models[2])
    assert {block.activation for block in models[0].features.blocks} == {"product", "cos"}
    models += [
        getattr(srf, solver)(X[:1500], y[:1500], features=drawn.take(np.arange(15, 75)), **k)
    ]
    with_products, without = (
        np.mean((models[i].predict(X[1500:]) - y[1500:]) ** 2) / y.var() for i in (0, -1)
    )
    assert with_products < 0.1 < 2 * with_products < without


def test_path_of_many_workers():
    X, y = data("dense")
    k = {
        "features": "gaussian",
        "n_alphas": 3,
        "alpha_min_ratio": 0.02,
        "n_components": 300,
        "rng": 0,
    }
    one, three = srf.sparse_rf_path(X, y, **k), srf.sparse_rf_path(X, y, workers=3, **k)
    assert [all_bits(model) for model in one] == [all_bits(model) for model in three]


@pytest.mark.parametrize("target", ["squared", "logistic"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_of_blas_do_not_matter(target, threads):
    plain = all_bits(fit(target))
    with threadpool_limits(threads, user_api="blas"):
        before = blas_threads()
        assert all_bits(fit(target, workers=2)) == plain
        assert blas_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "features",
    [srf.Fourier(gamma=0.5), "perceptron", (srf.Fourier(), srf.RandomNeurons(order=2))],
    ids=str,
)
def test_seeds(features):
    def short(rng):
        return all_bits(fit(features=features, rng=rng, n_components=100))

    plain = short(7)
    assert short(7) == short(np.int32(7)) == plain
    assert short(np.random.default_rng(7)) == short(np.random.default_rng(7)) == plain
    assert short(8) != plain
    assert short(None) != short(None)
    used = np.random.default_rng(7)
    assert short(used) == plain
    assert short(used) != plain


def test_batches_do_not_share_features():
    draws = fit(alpha=1e-3, exact=True, n_components=200, batch_size=50).features
    weights = np.concatenate([block.weights for block in draws.blocks])
    assert len(np.unique(weights, axis=0)) == len(weights)


def test_global_seed_is_neither_read_nor_moved():
    state = np.random.get_state()[1].tobytes()  # noqa: NPY002
    first = all_bits(fit())
    assert np.random.get_state()[1].tobytes() == state  # noqa: NPY002
    np.random.seed(123)  # noqa: NPY002
    assert all_bits(fit()) == first


# Threads


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.slow
def test_calls_at_once(workers):
    jobs = ["squared", "logistic", "squared_hinge", "logistic of 3"] * 3
    plain = {target: all_bits(fit(target)) for target in set(jobs)}
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda target: all_bits(fit(target, workers=workers)), jobs)) == [
            plain[target] for target in jobs
        ]


def test_one_model_asked_by_many():
    model, X = fit("logistic of 3"), data("dense")[0]
    for Z in (X, X.astype(np.float32)):
        plain = fit("logistic of 3").decision_function(Z)
        with ThreadPoolExecutor(8) as pool:  # the weights are packed at the first question
            for f in pool.map(lambda _, Z=Z: model.decision_function(Z, workers=2), range(16)):
                assert f.tobytes() == plain.tobytes()


@pytest.mark.parametrize("workers", [2, 8])
def test_threads_live_for_the_call_only(workers):
    before, during = threading.active_count(), []
    model = fit(workers=workers, callback=lambda info: during.append(threading.active_count()))
    assert 1 <= max(during) - before <= workers
    model.predict(data("dense")[0], workers=workers)
    assert threading.active_count() == before


def test_blas_is_limited_inside_and_free_after():
    before, during = blas_threads(), []
    fit(callback=lambda info: during.append(set(blas_threads().values())))
    assert during == [{1}] * len(during)
    assert blas_threads() == before


FORK = """
import os, signal, sys, threading, warnings
import numpy as np, sparserf as srf
from sparserf.rows import core_block
core_block.SLICE_ELEMENTS = 2**15
warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads warns
X = np.random.default_rng(0).uniform(-2, 2, (2000, 5))
y = np.sin(2 * X[:, 0]) * X[:, 1]

def fit(callback=None):
    k = dict(features="gaussian", gamma=0.5, n_components=300, rng=0, workers=2)
    model = srf.sparse_rf(X, y, alpha=0.01, callback=callback, **k)
    return model.coef.tobytes(), model.predict(X, workers=2).tobytes()

def forked(do):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if do() == first else 1)
    return os.waitpid(child, 0)[1]

first = fit()
{how}
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(
    "how",
    [
        "assert forked(fit) == 0; assert fit() == first",
        "assert forked(lambda: [first, forked(fit)][0] if forked(fit) == 0 else None) == 0",
        "status = []; fit(lambda info: status.append(forked(fit)) or False); assert set(status) == "
        "{{0}}",
        # The child lacks the thread that fits in the parent.
        "go, on = threading.Event(), threading.Event()\\n"
        "t = threading.Thread(target=fit, args=[lambda info: go.set() or on.wait(20) and False])\\n"
        "t.start(); go.wait(20); status = forked(fit); on.set(); t.join(); assert status == 0; "
        "assert fit() == first",
    ],
    ids=["after", "twice", "inside", "beside"],
)
def test_fork(how):
    code = FORK.format(how=how.replace("\\n", "\n").replace("{{", "{").replace("}}", "}"))
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_same_bits_in_another_process():
    code = (
        "import numpy as np, sparserf as srf, hashlib\n"
        "X = np.random.default_rng(0).uniform(-2, 2, (4000, 5)); y = X[:, 0] * X[:, 1] > 0\n"
        "k = {'loss': 'logistic', 'features': 'gaussian', 'gamma': 0.5, 'n_components': 400, "
        "'rng': 0}\n"
        "m = srf.sparse_rf(X, y, alpha=0.01, **k)\n"
        "print(hashlib.sha256(m.coef.tobytes() + m.support.tobytes()).hexdigest())"
    )
    runs = [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "2", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "3"},
    ]
    k = {"capture_output": True, "text": True, "timeout": 60, "check": True}
    outputs = [
        subprocess.run([sys.executable, "-P", "-c", code], env=os.environ | env, **k).stdout
        for env in runs
    ]
    assert outputs[0] == outputs[1] != ""


# Callbacks


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt, SystemExit, RuntimeError, StopIteration, GeneratorExit, MemoryError],
)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_error_in_the_callback_comes_out(error, workers, exact):
    """It leaves no threads and no limit of BLAS behind (the fixture looks), and a library that
    works."""

    def callback(info):
        if info.n_iter == 2:
            raise error("from the callback")

    with pytest.raises(error, match="from the callback"):
        fit(workers=workers, exact=exact, callback=callback)


def test_limit_of_blas_is_lifted_by_the_call_that_ends_last():
    """The first call ends first, and its thread lives on: threadpoolctl may take that thread for
    the owner of the limit."""
    before, order = blas_threads(), [threading.Event() for _ in range(4)]
    a_inside, b_inside, a_done, let_a_die = order

    def first():
        fit(callback=lambda info: a_inside.set() or (b_inside.wait(20) and False))
        a_done.set()
        let_a_die.wait(20)

    def second():
        a_inside.wait(20)
        fit(callback=lambda info: b_inside.set() or (a_done.wait(20) and False))

    threads = [threading.Thread(target=target) for target in (first, second)]
    for thread in threads:
        thread.start()
    threads[1].join()
    after = blas_threads()
    let_a_die.set()
    threads[0].join()
    assert after == before


def test_blas_is_limited_inside_beside_a_limit_of_the_user_in_another_thread():
    during = []
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        pool.submit(fit, callback=lambda info: during.append(set(blas_threads().values()))).result()
        assert set(blas_threads().values()) == {2}
    assert during == [{1}] * len(during)


def test_same_bits_beside_a_limit_of_the_user_in_another_thread():
    """If the limit to one thread failed, the order of BLAS's sums would show in the last digits."""
    k = {"alpha": 5e-4, "n_components": 600, "batch_size": 600}
    plain = all_bits(fit(**k))
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"), ThreadPoolExecutor(1) as pool:
            assert all_bits(pool.submit(fit, **k).result()) == plain


def test_error_of_one_call_does_not_free_blas_for_another():
    inside, on = threading.Event(), threading.Event()
    seen = []

    def slow(info):
        inside.set()
        on.wait(20)
        seen.append(set(blas_threads().values()))

    def fails(info):
        raise RuntimeError("out")

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(fit, callback=slow)
        assert inside.wait(20)
        with pytest.raises(RuntimeError, match="out"):
            fit(workers=2, callback=fails)
        on.set()
        assert all_bits(other.result()) == all_bits(fit())
    assert seen == [{1}] * len(seen)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("exact", [False, True])
def test_callback_hears_every_iteration(target, exact):
    heard = []
    model = fit(target, exact=exact, callback=heard.append)
    assert all(type(info) is srf.FitInfo for info in heard)
    starts = [i for i, info in enumerate(heard) if info.n_iter == 1]
    assert len(starts) == (3 if TARGETS[target] == 3 else 1)
    for start, end in zip(starts, [*starts[1:], len(heard)], strict=True):
        assert [info.n_iter for info in heard[start:end]] == list(range(1, end - start + 1))
        for one, next_ in zip(heard[start:end], heard[start + 1 : end], strict=False):
            assert next_.objective[:-1] == one.objective
            assert next_.n_drawn >= one.n_drawn
    assert end - start >= 2
    if len(starts) == 1:
        assert heard[-1].objective == model.info.objective
    assert all_bits(model) == all_bits(fit(target, exact=exact))


@pytest.mark.parametrize("stop", [True, np.True_, 1])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_callback_that_returns_true_stops(stop, at, exact):
    """The fit ends there, as if there were no more draws, but that batches before the last are
    solved to `early_tol` alone."""
    heard = []
    callback = lambda info: heard.append(info) or (stop if len(heard) == at else None)  # noqa: E731
    model = fit(n_components=400, batch_size=50, exact=exact, callback=callback)
    assert [(info.n_iter, info.n_drawn) for info in heard] == [
        (k, 50 * k) for k in range(1, at + 1)
    ]
    assert (
        model.info.n_iter == at
        and model.info.n_drawn == 50 * at
        and model.info.objective == heard[-1].objective
    )
    assert np.all(model.support < 50 * at)
    assert model.info.converged == (model.info.dual_gap <= 1e-4 * model.info.objective[-1])
    if not exact:
        least = fit(features=draws(50 * at), batch_size=50).info.objective[-1]
        assert 0.999 * least <= model.info.objective[-1] <= least / (1 - TO_TOLERANCE.early_tol)


def draws(n):
    """Return the first n features of the dictionary as a dictionary of their own."""
    X, _ = data("dense")
    dictionary = dictionary_of(srf.Fourier(gamma=0.5), X, 400, 50)
    features = dictionary.batch(0)
    for k in range(1, n // 50):
        features = features.concat(dictionary.batch(k))
    return features


@pytest.mark.parametrize("go_on", [None, False, 0, ""])
def test_callback_that_returns_something_else_does_not_stop(go_on):
    assert all_bits(fit(callback=lambda info: go_on)) == all_bits(fit())


def test_stopped_before_the_optimum_is_not_converged():
    """exact=True promises the optimum over all draws, which one iteration does not reach."""
    model = fit(exact=True, n_components=400, batch_size=50, alpha=1e-3, callback=lambda info: True)
    assert model.info.n_iter == 1
    assert not model.info.converged


def test_stop_of_one_class_or_penalty_is_not_the_stop_of_the_next():
    X, y = data("dense")
    k = {"features": "gaussian", "n_components": 200, "batch_size": 50, "rng": 0}
    models = srf.sparse_rf_path(X, y, n_alphas=3, callback=lambda info: info.n_iter == 2, **k)
    assert [model.info.n_iter for model in models] == [2, 2, 2]


def test_callback_may_fit():
    inner = []
    outer = fit(
        workers=2,
        callback=lambda info: inner.append(all_bits(fit("logistic", workers=2))) and False,
    )
    assert all_bits(outer) == all_bits(fit())
    assert inner == [all_bits(fit("logistic"))] * len(inner)
