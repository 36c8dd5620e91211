"""Fixtures and helpers of all tests: losses and features written plainly, data, bits of models, and
which tests run by default."""

import os
import signal
import sys
import tracemalloc
import warnings
from contextlib import contextmanager, nullcontext
from numbers import Integral
from zlib import crc32

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from sparserf import plain
from sparserf._base import checks
from sparserf._core.rows import RowSlice
from sparserf.features import BumpBlock, NeuronBlock

EXAMPLES = {"one of": 8}  # of hypothesis: pytest_configure says which
SIZES = (0, 1, 2, 3, 7, 31, 32, 33, 64, 65)
# the error state in which internal functions are called
as_within_a_call = np.errstate(all="ignore")
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def pytest_addoption(parser):
    parser.addoption(
        "--whole",
        action="store_true",
        help="slow tests too, a case of each; of others each value of each parameter",
    )
    parser.addoption("--every-case", action="store_true", help="slow tests too, and all cases")
    parser.addoption(
        "--seeds",
        type=int,
        help="tests that draw alone: some case of each for each seed below this number",
    )
    parser.addoption(
        "--shift-seeds",
        type=int,
        default=0,
        help="add this number to each seed that tests give to the library as rng, to find tests "
        "that hold for one seed alone",
    )


def pytest_configure(config):
    if everything_is_asked_for(config):
        EXAMPLES["one of"] = 1
    elif config.option.whole:
        EXAMPLES["one of"] = 4
    if config.option.shift_seeds:
        shift_seeds(config.option.shift_seeds)
    if getattr(config.option, "numprocesses", None):
        # read by the processes of xdist: threads of BLAS of one would wait for those of another
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def shift_seeds(shift):
    """Have the library add the shift to each seed that it is given; generators stay as they are."""
    real = checks.check_rng

    def check_rng(rng):
        is_seed = isinstance(rng, Integral) and rng >= 0
        return real(rng + shift if is_seed else rng)

    for name, module in list(sys.modules.items()):
        if name.startswith("sparserf") and vars(module).get("check_rng") is real:
            module.check_rng = check_rng


def everything_is_asked_for(config):
    """Return whether all cases of the tests that are named are to run."""
    by_name = config.option.keyword or any("::" in name for name in config.args)
    return config.option.every_case or by_name or config.option.markexpr != "not nightly"


def is_slow(marks):
    """Return whether a test, or a case of it, is not run by default."""
    return any(mark.name in ("slow", "nightly") for mark in marks)


def values_of(case):
    """Return the values of the parameters of a case. Those given together count each by itself: of
    pairs of a fit and a loss, the fit and the loss."""
    told = (str, int, float, bool, type(None))  # others are told apart by their place in the list
    return {
        (name, type(value), value if isinstance(value, told) else case.indices[name])
        for name, value in case.params.items()
    }


def covering(cases, chosen):
    """Return what is chosen and cases beside it, so that each value of each parameter occurs. Each
    case that is added has the most values that did not occur yet; of several such, any, or the
    first of one parameter would come with all of another."""
    values = [values_of(case) for case in cases]
    left = set(range(len(cases))) - chosen
    seen = set().union(*(values[k] for k in chosen))

    def worth(k):
        return len(values[k] - seen), crc32(b"%d" % k)

    while left and worth(k := max(left, key=worth))[0]:
        left.remove(k)
        seen |= values[k]
    return set(range(len(cases))) - left


@pytest.hookimpl(trylast=True)  # after all parameters are known
def pytest_generate_tests(metafunc):
    """Make of each test the cases that are to run, and no others: to make all and to drop most of
    them takes longer than to run the rest. With --seeds, a test that draws by `rng` has a case for
    each seed."""
    option, cases = metafunc.config.option, metafunc._calls  # pytest has no public name for them
    if option.seeds and "rng" in metafunc.fixturenames:
        metafunc.parametrize("rng", range(option.seeds), indirect=True)
        cases = metafunc._calls
    if everything_is_asked_for(metafunc.config) or not cases:
        return
    if not option.whole:
        cases[1:] = [case for case in cases[1:] if not is_slow(case.marks)]
        if len(cases) > 1 and is_slow(cases[0].marks):
            del cases[0]
    marks = {mark.name for mark in metafunc.definition.iter_markers()}
    if "every_case" in marks:
        return
    n = len(cases)
    if option.seeds:
        chosen = {round(k) for k in np.linspace(0, n - 1, min(option.seeds, n))}
    else:  # one, which differs from test to test, so that all kinds of models occur somewhere
        chosen = {crc32(metafunc.function.__name__.encode()) % n}
    if option.whole and "slow" not in marks:
        chosen = covering(cases, chosen)
    cases[:] = [cases[k] for k in sorted(chosen)]


def pytest_collection_modifyitems(config, items):
    """Keep no slow tests, unless the whole, or some by name, is asked for; with --seeds, those that
    draw alone."""
    if everything_is_asked_for(config) or config.option.whole:
        return
    seeds = config.option.seeds
    kept, dropped = [], []
    for item in items:
        runs = not is_slow(item.iter_markers()) and (not seeds or "rng" in item.fixturenames)
        (kept if runs else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run each file in one process, in its order: tests of a file draw from one generator."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def pytest_terminal_summary(terminalreporter):
    """Print what tests recorded, each figure on a line of its own."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(
                f"figures of {report.nodeid.split('::')[1]}: {value} {name}"
            )


# The losses L(z, y) and their derivatives in z, written plainly.
VALUE = {
    "squared": lambda z, y: (z - y) ** 2 / 2,
    "squared_hinge": lambda z, y: np.maximum(0, 1 - y * z) ** 2,
    "logistic": lambda z, y: np.logaddexp(0, -y * z),
}
SLOPE = {
    "squared": lambda z, y: z - y,
    "squared_hinge": lambda z, y: -2 * y * np.maximum(0, 1 - y * z),
    "logistic": lambda z, y: -y * expit(-y * z),
}
# The convex conjugates L*(u, y), and the largest second derivatives of the losses in z.
CONJUGATE = {
    "squared": lambda u, y: u**2 / 2 + u * y,
    "squared_hinge": lambda u, y: u**2 / 4 + u * y,
    "logistic": lambda u, y: entropy(np.clip(-u * y, 0, 1)),
}
BETA = {"squared": 1.0, "squared_hinge": 2.0, "logistic": 0.25}
PLAIN = {name: plain.Loss(SLOPE[name], BETA[name]) for name in BETA}
LOSSES = tuple(VALUE)
KERNELS = ("gaussian", "laplacian", "cauchy", "matern12", "matern32", "matern52")
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_intercept = pytest.mark.parametrize("fit_intercept", [False, True])
ignore_convergence = pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")


# `sparserf.plain` has no intercept: the coefficient of a column so large that the penalty on it is
# rounding stands for it.
LARGE = 1e4


def with_intercept(phi):
    """Return the columns of phi and a column of LARGE."""
    return np.column_stack([phi, np.full(len(phi), LARGE)])


def entropy(p):
    """Return the negative entropy of a coin that lands heads with probability p."""
    return xlogy(p, p) + xlogy(1 - p, 1 - p)


def stage_oracle(encoder, v, x):
    """Return view v of the numbers of its column, none of them missing."""
    knots = slice(*encoder.first_knot[v : v + 2])
    r = np.interp(x, encoder.knots[knots], encoder.scores[knots]) if knots.stop > knots.start else x
    u = (r - encoder.center[v]) / encoder.unit[v] if encoder.unit[v] > 0 else np.zeros_like(x)
    r = encoder.reach[v]
    return np.where(np.abs(u) > r, np.sign(u) * r * (2 - r / np.maximum(np.abs(u), r)), u)


def activate(activation, x, level):
    """Compute the activation as a kernel does, by one feature of weight 1 and offset 0."""
    panels = NeuronBlock(activation, 1.0, np.ones((1, 1)), np.zeros(1)).packed(x.dtype, 1)
    out = np.empty((len(x), 1), x.dtype)
    panels.transform(RowSlice(x[:, None], level=level), out)
    return out[:, 0]


def phi_oracle(features, X):
    """Return the feature matrix, written plainly in float64, which every kernel must agree with."""
    activation = {
        "cos": np.cos,
        "sin": np.sin,
        "tanh": np.tanh,
        "relu": lambda z: np.maximum(z, 0.0),
        "sign": lambda z: np.where(z >= 0, 1.0, -1.0),
        "identity": lambda z: z,
    }
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)
    if features.encoder is not None:
        encoder = features.encoder
        X = np.stack(
            [stage_oracle(encoder, v, X[:, encoder.column[v]]) for v in range(len(encoder))], axis=1
        )
    columns = [np.empty((len(X), 0))]
    for block in features.blocks:
        if block.activation == "product":
            scaled = np.hstack([np.ones((len(X), 1)), np.sqrt(2 * block.gamma) * X])
            monomials = (block.weights * scaled[:, block.inputs]).prod(axis=2)
            columns.append(
                block.scale * np.exp(-block.gamma * (X**2).sum(axis=1, keepdims=True)) * monomials
            )
            continue
        if block.activation == "bump":
            x = X[:, None] if block.inputs is None else X[:, block.inputs]
            columns.append(
                block.scale * np.exp(-np.abs(block.weights * (x - block.centers)).sum(axis=2))
            )
            continue
        if block.inputs is None:
            z = X @ block.weights.T
        else:
            z = np.einsum("ijk,jk->ij", X[:, block.inputs], block.weights)
        columns.append(block.scale * activation[block.activation](z + block.offset))
    return features.from_blocks(np.hstack(columns))


def bumps(d, n=12, seed=0):
    """Return two blocks of bumps of d >= 3 inputs: with dense weights, some of them zero, and with
    sparse ones."""
    rng = np.random.default_rng(seed)
    weights, centers = rng.standard_normal((2, n, d))
    inputs = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (n, 1)), axis=1)[:, :2]
    dense = BumpBlock(0.7, weights * (rng.random((n, d)) < 0.7), centers)
    return dense, BumpBlock(-1.5, weights[:, :2].copy(), centers[:, :2].copy(), inputs)


def friedman(rng, n=400, d=12):
    """Return rows of d inputs and the target of Friedman's first function, to which five inputs
    matter."""
    X = rng.random((n, d))
    f = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )
    return X, f + rng.standard_normal(n)


def read_only(array):
    """Return a copy of an array that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


def r2(model, X, y):
    """Return the share of the variance of y that the model explains."""
    return 1 - np.mean((model.predict(X) - y) ** 2) / np.var(y)


def l1_oracle(value_and_slopes, phi, alpha, b=0.0, fit_intercept=True, nonnegative=None):
    """Minimize L(phi w + b) + alpha |w|_1 by L-BFGS-B, from w = 0 and b, over the positive and
    negative parts of w.

    value_and_slopes : function of the margins z that returns L(z) and its derivative in each margin
    nonnegative : a mask of the entries of w that have no negative part
    """
    k = phi.shape[1]

    def value_and_gradient(x):
        value, v = value_and_slopes(phi @ (x[:k] - x[k : 2 * k]) + x[-1] * fit_intercept)
        g = phi.T @ v
        return value + alpha * x[:-1].sum(), np.concatenate(
            [g + alpha, alpha - g, [v.sum() * fit_intercept]]
        )

    no_negative = np.zeros(k, bool) if nonnegative is None else nonnegative
    bounds = [(0, None)] * k + [(0, 0 if no else None) for no in no_negative] + [(None, None)]
    start = np.concatenate([np.zeros(2 * k), [b]])
    options = {"maxiter": 20000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    return minimize(
        value_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )


@contextmanager
def peak_memory():
    """Trace what is allocated inside; afterwards the one entry of the list that this yields is its
    peak in bytes."""
    peak = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@contextmanager
def peak_below(n_bytes):
    """Check that everything inside allocates less than n_bytes at a time."""
    with peak_memory() as peak:
        yield
    assert peak[0] < n_bytes


def signs(y, loss):
    """Return the target y, or for a classifier the sign of y minus its median."""
    return y if loss == "squared" else np.sign(y - np.median(y))


def bits(model):
    """Return the bytes of all coefficients, intercepts and places in the dictionary."""
    return tuple(
        np.asarray(part).tobytes() for part in (model.coef, model.intercept, model.support)
    )


def n_examples(n):
    """Return how many examples of hypothesis a test has: n, with --whole a quarter of them, or an
    eighth."""
    return -(-n // EXAMPLES["one of"])


def examples(n):
    """Return settings of hypothesis: the same examples in every run, n of them, a quarter or an
    eighth, without a limit of time."""
    from hypothesis import settings

    return settings(max_examples=n_examples(n), derandomize=True, deadline=None, database=None)


@contextmanager
def convergence_ignored():
    """Ignore warnings that a fit has not converged; every other warning stays an error."""
    from sparserf import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


HAS_TIMERS = hasattr(signal, "setitimer")


@contextmanager
def after(seconds, error):
    """Raise the error after so many seconds of work, in the middle of whatever runs. Time of other
    programs does not count."""

    def handler(*_):
        raise error

    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture
def rng(request):
    """A generator with a fixed seed, or with each seed of --seeds."""
    return np.random.default_rng(getattr(request, "param", 42))


@pytest.fixture
def set_clock(monkeypatch):
    """Return a function that replaces the clock that all deadlines read."""
    return lambda now: monkeypatch.setattr("sparserf._base.deadline.now", now)


@pytest.fixture
def cut_rows(monkeypatch):
    """Return a function that has rows in memory cut into slices of so many numbers, so that there
    are slices of few rows to share among threads."""
    return lambda n: monkeypatch.setattr("sparserf.rows.core_block.SLICE_ELEMENTS", n)


@pytest.fixture
def search_rows(monkeypatch):
    """Return a function that lets searches look at about so many rows."""
    most = "sparserf.algorithms.default.search.MOST_SEARCH_ROWS"
    return lambda n: monkeypatch.setattr(most, n)


@pytest.fixture(scope="session")
def models():
    """The models of tests/fitted_models.py that were fitted to numbers, by name, each fitted when a
    test first asks for it."""
    from .fitted_models import Models

    return Models()


@pytest.fixture(scope="session")
def of_frame():
    """The model of tests/fitted_models.py that was fitted to a data frame, and the frame."""
    from .fitted_models import model_of_frame

    return model_of_frame()


@pytest.fixture
def watchdog():
    """Fail a test whose fit does not end within a minute of work, and go on with the others."""
    with after(60, TimeoutError("no end after a minute of work")) if HAS_TIMERS else nullcontext():
        yield


@pytest.fixture(autouse=True)
def callbacks_after_iterations_alone():
    """Call callbacks after iterations alone, on slow machines, too; a test of calls in between sets
    the time itself."""
    # the fixture is not for tests that run in several threads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparserf._base.progress.SECONDS_BETWEEN_CALLS", np.inf)
        yield
