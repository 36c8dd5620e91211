"""Rows that are read block by block: blocks of any size, what a fit holds in memory, and blocks
that cannot be read."""

import copy
import pickle
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from dask import delayed

import sparserf as srf
from sparserf.rows import as_rows

from ..conftest import peak_below
from .homes import LABELS, NAMED, SHORT, SPARSE, D, N, X, Y, in_chunks


@pytest.mark.parametrize("block_rows", [1, 7, 64, 1199, 1200, 5000])
def test_any_size_of_blocks(block_rows):
    rows, whole = as_rows(in_chunks(X, block_rows)), as_rows(X)
    features, rng = (
        srf.Fourier(gamma=0.3).draw(70, D, rng=0).concat(srf.Taylor(2, 0.1).draw(None, D)),
        np.random.default_rng(1),
    )
    v, h, c = rng.standard_normal((2, N)), rng.random(N), rng.standard_normal((2, len(features)))
    for ask in (
        lambda rows: rows.correlate(features, v),
        lambda rows: rows.correlate_squares(features, v[0]),
        lambda rows: rows.apply(features, c),
        lambda rows: rows.gram(features, features, h),
        lambda rows: rows.gram(features, np.array([3, 1]), h),
        lambda rows: rows.moments(features, features, h)[1],
        lambda rows: rows.transform(features),
        lambda rows: np.vstack(rows.spreads(h / h.mean())),
        lambda rows: rows.mean(h),
        lambda rows: rows.largest_square_distance(np.ones(D)),
        lambda rows: rows.take(np.array([5, 700, 6])).apply(features, c),
    ):
        np.testing.assert_allclose(ask(rows), ask(whole), atol=1e-10 * N)


@pytest.mark.parametrize("kind", ["memmap", "csr", "int"])
def test_models_predict_in_chunks(kind, tmp_path):
    np.save(tmp_path / "X.npy", np.round(X) if kind == "int" else X)
    dense = (
        np.load(tmp_path / "X.npy", mmap_mode="r")
        if kind != "int"
        else np.round(X).astype(np.int16)
    )
    source = SPARSE if kind == "csr" else dense
    model = srf.sparse_rf(X, Y, alpha=0.02, features="gaussian", n_components=200, rng=0)
    np.testing.assert_array_equal(
        model.predict(srf.Chunks(source, block_rows=100)), model.predict(source)
    )
    np.testing.assert_array_equal(
        model.features.transform(in_chunks(source)), model.features.transform(source)
    )
    small, of_memory = (
        srf.prune(model, in_chunks(source), max_terms=5),
        srf.prune(model, source, max_terms=5),
    )
    np.testing.assert_array_equal(small.support, of_memory.support)


def test_the_number_of_workers_changes_no_coefficient():
    models = [
        srf.sparse_rf(in_chunks(X), Y, alpha=0.01, workers=workers, **NAMED) for workers in (1, 3)
    ]
    np.testing.assert_array_equal(models[0].coef, models[1].coef)


def test_blocks_of_any_sizes():
    sizes = [100, 0, 1000, 1, 99]
    chunks = srf.Chunks(lambda start, stop: X[start:stop], X.shape, block_rows=sizes)
    assert chunks.edges == [0, 100, 1100, 1101, 1200]
    np.testing.assert_allclose(as_rows(chunks).mean(np.full(N, 1 / N)), X.mean(axis=0), atol=1e-14)
    with pytest.raises(ValueError, match="add up to the 1200 rows of X, got 1199"):
        srf.Chunks(X, block_rows=[100, 1099])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((lambda a, b: X[a:b],), ValueError, "shape must be given"),
        ((X[:, 0],), ValueError, "shape must be"),
        ((lambda a, b: X[a:b], (N, 0)), ValueError, "shape"),
        ((lambda a, b: X[a:b], (N, D, 1)), ValueError, "shape"),
        ((object(), (N, D)), TypeError, "source"),
    ],
)
def test_sources_that_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        srf.Chunks(*arguments)


def test_sizes_that_are_refused():
    with pytest.raises(ValueError, match="block_rows must be at least 1"):
        srf.Chunks(X, block_rows=0)
    model = srf.sparse_rf(X, Y, alpha=0.1, **NAMED)
    with pytest.raises(ValueError, match="6 columns, got 5"):
        model.predict(srf.Chunks(X[:, :5]))
    with pytest.raises(ValueError, match=r"y must have shape \(1200,\)"):
        srf.sparse_rf(srf.Chunks(X), Y[:-1], alpha=0.1, **NAMED)


def test_blocks_follow_the_chunks_of_the_source():
    class Stored:
        shape, chunks = (10**6, 2000), (1500, 2000)

        def __getitem__(self, some):
            raise AssertionError

    assert srf.Chunks(Stored()).edges[1] == 2**24 // 2000 // 1500 * 1500


@pytest.mark.slow
def test_no_more_than_some_blocks_are_in_memory(tmp_path):
    """X has 64 MB in blocks of 1 MB: a fit holds one block, the one read ahead, and what the answer
    for a block takes."""
    n, d = 2**16, 128
    big = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (n, d))
    big[:] = np.random.default_rng(0).standard_normal((n, d))
    big.flush()
    y = np.array(big[:, 0])
    source = srf.Chunks(np.load(tmp_path / "X.npy", mmap_mode="r"), block_rows=1024)
    with peak_below(20e6):
        model = srf.sparse_rf(source, y, features=srf.Linear(), scale=None, alpha=0.01)
    assert model.support.tolist() == [0]


def test_a_reader_may_use_its_memory_again():
    buffer = np.empty((250, D))

    def read(start, stop):
        buffer[: stop - start] = X[start:stop]
        return buffer[: stop - start]

    model = srf.sparse_rf(srf.Chunks(read, X.shape, block_rows=250), Y, alpha=0.02, **NAMED)
    np.testing.assert_array_equal(
        model.coef, srf.sparse_rf(in_chunks(X), Y, alpha=0.02, **NAMED).coef
    )


class Failing:
    """A reader of X that changes the block from row `first` on by `spoil` once it has been read
    `after` times."""

    rows = X

    def __init__(self, spoil, after, first=500):
        self.spoil, self.after, self.first = spoil, after, first

    def __call__(self, start, stop):
        rows = self.rows[start:stop]
        if start != self.first:
            return rows
        self.after -= 1
        return self.spoil(rows) if self.after < 0 else rows


def refuse(rows):
    """Fail to read rows."""
    raise OSError("disk on fire")


BROKEN = {
    "raises": (refuse, "OSError: disk on fire"),
    "shorter": (lambda rows: rows[:-1], "shape"),
    "narrower": (lambda rows: rows[:, :-1], "shape"),
    "NaN": (lambda rows: np.where(rows > 1, np.nan, rows), "finite"),
    "infinite": (lambda rows: np.where(rows > 1, np.inf, rows), "finite"),
    "strings": (lambda rows: rows.astype(str), "real numbers"),
    "float32": (lambda rows: rows.astype(np.float32), "float32"),
    "sparse": (sp.csr_array, "CSR"),
    "nothing": (lambda rows: None, "real numbers"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_block_is_named(what):
    spoil, words = BROKEN[what]
    chunks = srf.Chunks(Failing(spoil, 0), X.shape, block_rows=250)
    with pytest.raises(srf.BlockError, match=rf"X\[500:750\].*{words}") as caught:
        srf.sparse_rf(chunks, Y, alpha=0.01, missing="raise", **NAMED)
    assert (caught.value.start, caught.value.stop) == (500, 750)


CHANGES = {
    "NaN": lambda rows: np.where(rows > 1, np.nan, rows),
    "infinite": lambda rows: np.where(rows > 1, np.inf, rows),
    "one infinite cell": lambda rows: np.where(rows == rows.max(), -np.inf, rows),
    "other values": lambda rows: rows + 1.0,
    "one other cell": lambda rows: np.where(rows == rows.max(), np.nextafter(rows, 9), rows),
    "in another order": lambda rows: rows[::-1],
    "other columns": lambda rows: rows[:, ::-1],
    "rows of another block": lambda rows: X[: len(rows)],
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": sp.csr_array,
    "fewer rows": lambda rows: rows[:-1],
    "no rows": lambda rows: rows[:0],
    "more rows": lambda rows: np.vstack([rows, rows[:1]]),
    "fewer columns": lambda rows: rows[:, :-1],
    "nothing": lambda rows: None,
}
PASSES = {
    "sparse_rf": lambda Z: srf.sparse_rf(Z, Y, alpha=0.01, **NAMED),
    "harfe": lambda Z: srf.harfe(Z, Y, n_components=200, n_nonzero_coefs=5, alpha=1e-4, rng=0),
    "mfga": lambda Z: srf.mfga(Z, Y, n_nonzero_coefs=4, alpha=1e-3, n_components=200, rng=0),
    "drp": lambda Z: srf.drp(Z, LABELS > 0, alpha=1e-3, loss="logistic", rng=0),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("what", CHANGES)
def test_a_block_that_changes_between_passes_is_an_error(what, name):
    """Whatever the first passes have seen; also what is wrong in a later pass alone is found
    there."""
    for after in (1, 2, 3):
        with pytest.raises(srf.BlockError, match=r"^X\[500:750\]: "):
            PASSES[name](srf.Chunks(Failing(CHANGES[what], after), X.shape, block_rows=250))


def test_a_sparse_block_that_changes_is_an_error():
    """Its values, or where they are."""
    for spoil in (lambda rows: rows * 2.0, lambda rows: rows[:, ::-1]):
        chunks = srf.Chunks(
            Failing(lambda rows, spoil=spoil: sp.csr_array(spoil(rows.toarray())), 2),
            X.shape,
            block_rows=250,
        )
        chunks._source.rows = SPARSE
        with pytest.raises(srf.BlockError, match=r"X\[500:750\].*same rows"):
            srf.sparse_rf(chunks, Y, alpha=0.01, **NAMED)


@pytest.mark.parametrize("what", [what for what in CHANGES if what != "nothing"])
def test_a_partition_that_changes_between_passes_is_an_error(what):
    for after in (1, 3):
        reader = Failing(CHANGES[what], after)
        parts = [
            da.from_delayed(delayed(reader)(a, a + 250), (250, D), float)
            for a in (0, 250, 500, 750)
        ]
        with (
            dask.config.set(scheduler="synchronous"),
            pytest.raises(srf.BlockError, match=r"^X\[500:750\]: partition 2: "),
        ):
            srf.drp(da.concatenate(parts), LABELS[:1000] > 0, alpha=1e-3, loss="logistic", rng=0)


def test_rows_may_change_between_calls():
    """The same Chunks may be read again, once what they read was written anew."""
    source = X.copy()
    chunks = srf.Chunks(source, block_rows=250)
    model = srf.drp(chunks, Y, alpha=0.1, rng=0)
    source += 1.0
    np.testing.assert_array_equal(model.predict(chunks), model.predict(source))


@pytest.mark.slow
def test_missing_cells_are_learnt_as_of_an_array():
    """With missing="raise", and where columns are as they are, they are an error."""
    holes = np.where(np.random.default_rng(3).random(X.shape) < 0.1, np.nan, X)
    for name in PASSES:
        models = [PASSES[name](Z) for Z in (in_chunks(holes), holes)]
        np.testing.assert_allclose(
            *(model.decision_function(holes) for model in models),
            rtol=1e-6,
            atol=1e-6,
            err_msg=name,
        )
    for fit in (
        partial(srf.drp, y=Y, alpha=1e-3, scale=None, rng=0),
        partial(srf.mfga, y=Y, n_nonzero_coefs=4, alpha=1e-3, missing="raise", rng=0),
        partial(
            srf.mfga, y=Y, n_nonzero_coefs=4, alpha=1e-3, features=srf.Linear(), scale=None, rng=0
        ),
    ):
        with pytest.raises(srf.BlockError, match=r"X\[0:250\].*finite, got nan"):
            fit(in_chunks(holes))


@pytest.mark.parametrize("home", ["chunks", "dask"])
def test_a_block_in_which_all_is_missing(home):
    """Fits learn from it as from rows in memory; missing="raise" names the block."""
    holes = X.copy()
    holes[500:750] = np.nan
    Z = in_chunks(holes) if home == "chunks" else da.from_array(holes, chunks=(250, D))
    models = [srf.sparse_rf(of, Y, alpha=0.01, **NAMED) for of in (Z, holes)]
    assert len(models[0].support) == len(models[1].support) > 3
    np.testing.assert_allclose(
        np.asarray(models[0].predict(Z)), models[1].predict(holes), rtol=1e-6, atol=1e-6
    )
    with pytest.raises(srf.BlockError, match=r"X\[500:750\].*finite"):
        srf.sparse_rf(Z, Y, alpha=0.01, missing="raise", **NAMED)


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["sparse_rf", "harfe", "mfga", "mfga logistic", "drp"])
def test_the_error_of_a_broken_block_holds_the_model_so_far(name):
    fit = {
        "sparse_rf": lambda X: srf.sparse_rf(X, Y, alpha=0.005, exact=True, **NAMED),
        "harfe": lambda X: srf.harfe(X, Y, n_components=500, n_nonzero_coefs=60, alpha=1e-4, rng=0),
        "mfga": lambda X: srf.mfga(X, Y, n_nonzero_coefs=30, alpha=1e-3, rng=0),
        "mfga logistic": lambda X: srf.mfga(
            X, LABELS, n_nonzero_coefs=6, alpha=1e-3, loss="logistic", rng=0
        ),
        "drp": lambda X: srf.drp(X, LABELS, alpha=1e-3, loss="logistic", rng=0),
    }[name]
    with pytest.raises(srf.BlockError) as caught:
        fit(srf.Chunks(Failing(refuse, 20), X.shape, block_rows=250))
    model = caught.value.model
    assert len(model.features) > 0
    assert np.isfinite(model.predict(X)).all()
    assert model.classes is not None or np.mean((model.predict(X) - Y) ** 2) < np.var(Y)


EVERY = {
    "sparse_rf of classes": lambda X: srf.sparse_rf(
        X, LABELS, alpha=0.05, loss="logistic", **SHORT | {"features": "gaussian"}
    ),
    "sparse_rf chosen": lambda X: srf.sparse_rf(X, Y, features="gaussian", n_components=200, rng=0),
    "harfe of classes": lambda X: srf.harfe(
        X, LABELS, n_components=100, n_nonzero_coefs=5, alpha=1e-4, loss="logistic", rng=0
    ),
    "mfga": lambda X: srf.mfga(X, Y, n_nonzero_coefs=4, alpha=1e-3, rng=0),
    "mfga of classes": lambda X: srf.mfga(
        X, LABELS, n_nonzero_coefs=4, alpha=1e-3, loss="logistic", rng=0
    ),
    "mfga_path": lambda X: srf.mfga_path(X, Y > 0, n_nonzero_coefs=4, loss="squared_hinge", rng=0),
    "drp": lambda X: srf.drp(X, LABELS, alpha=1e-3, loss="logistic", rng=0),
    "drp, the paper's": lambda X: srf.drp(
        X, Y, alpha=0.1, n_projections=5, accelerate=False, n_iter=3, rng=0
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
@pytest.mark.parametrize("name", EVERY)
def test_reading_may_fail_at_any_time(name):
    """Whenever reading fails the error names the block; late in a fit it holds a model that
    predicts."""
    whole = Failing(lambda rows: rows, 0)
    EVERY[name](srf.Chunks(whole, X.shape, block_rows=250))
    n_readings = -whole.after
    for after in sorted(
        {*range(0, n_readings, max(1, n_readings // 12)), n_readings - 2, n_readings - 1} - {-1}
    ):
        with pytest.raises(srf.BlockError, match="disk on fire") as caught:
            EVERY[name](srf.Chunks(Failing(refuse, after), X.shape, block_rows=250))
        assert (caught.value.start, caught.value.stop) == (500, 750)
    model = caught.value.model
    assert np.isfinite(model.decision_function(X)).all()
    assert len(model.features) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_the_error_holds_a_model_before_all_classes_are_fitted():
    """Classes that were not fitted yet have their constants."""
    fit, whole = EVERY["sparse_rf of classes"], Failing(lambda rows: rows, 0)
    fit(srf.Chunks(whole, X.shape, block_rows=250))
    for share in (0.2, 0.4, 0.6, 0.8):
        with pytest.raises(srf.BlockError) as caught:
            fit(srf.Chunks(Failing(refuse, int(-whole.after * share)), X.shape, block_rows=250))
        model = caught.value.model
        assert len(model.info.objective) >= model.info.n_iter
        assert np.isfinite(model.decision_function(X)).all()


def test_block_errors_can_be_pickled_and_copied():

    error = srf.BlockError(1, 2, "broken")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (other.start, other.stop, other.model, str(other)) == (1, 2, None, "X[1:2]: broken")


def test_threads_are_those_of_the_fit():
    with as_rows(in_chunks(X), 2) as rows:
        pool = rows.workers._pool
        features = srf.Fourier(gamma=0.3).draw(1100, D, rng=0)
        rows.gram(features, features, np.ones(N))
        assert rows.workers._pool is pool is not None
    assert rows.workers._pool is None
