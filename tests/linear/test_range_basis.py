"""A basis of the range of the rows as preconditioner: what it is, when it is drawn, and the passes
over X that it saves."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import sparserf as srf
from sparserf.linear import Inputs
from sparserf.linear.range_basis import RangeBasis
from sparserf.rows import as_rows

from ..rows import homes

# columns as they are, of low rank
drp, drp_path = partial(srf.drp, scale=None), partial(srf.drp_path, scale=None)
N, D, RANK = 500, 700, 30
RNG = np.random.default_rng(0)
LOW = (RNG.standard_normal((N, RANK)) * np.geomspace(30, 0.3, RANK)) @ RNG.standard_normal(
    (RANK, D)
) / np.sqrt(D) + 0.5
Y = (LOW - LOW.mean(axis=0)) @ RNG.standard_normal(D)
Y = Y / Y.std() + 0.1 * RNG.standard_normal(N)
LABELS = np.where(Y > 0, 1.0, -1.0)
ALPHA = 1e-4
HOMES = {
    **homes.HOMES,
    "memory": np.asarray,
    "dask": lambda X: da.from_array(X, chunks=((200, 0, 299, 1), X.shape[1])),
}
each_home = pytest.mark.parametrize("home", HOMES)


def reference(X, labels, alpha, weight=None):
    """Return the coefficients of scikit-learn's Newton's method; alpha is that of `drp`."""
    C = 1 / (len(labels) * alpha)
    weight = None if weight is None else weight / weight.mean()
    shifted = X - X.mean(axis=0)  # the intercept takes the means
    return (
        LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12)
        .fit(shifted, labels, weight)
        .coef_[0]
    )


def drawn(X, *n_each, seed=0):
    """Return a basis after these blocks, and its inputs."""
    rows = as_rows(X)
    inputs = Inputs.from_rows(rows, rows.vectors.put(np.ones(rows.n_rows)), True, [ALPHA])
    basis = RangeBasis(inputs, True, np.random.default_rng(seed))
    for n_more in n_each:
        basis.grow(n_more)
    return basis, inputs


@pytest.mark.parametrize(
    "spectrum", [np.geomspace(1, 1e-3, 300), np.arange(1, 301.0) ** -1, np.ones(300)]
)
def test_directions_are_orthonormal_and_combinations_of_the_rows(spectrum):
    X = RNG.standard_normal((400, 300)) * spectrum
    basis, inputs = drawn(X, 32, 32, 64)
    V = basis.V
    assert V.shape == (300, 128)
    assert np.abs(V.T @ V - np.eye(128)).max() < 1e-13
    w = basis.direction(np.eye(128))
    assert np.abs(w.w - V.T).max() < 1e-13
    assert np.abs(inputs.correlate(w.u) - w.w).max() < 1e-10
    Z = (X - X.mean(axis=0)) / inputs.unit
    left = [np.linalg.norm(Z - Z @ V[:, :r] @ V[:, :r].T) ** 2 for r in (0, 32, 64, 128)]
    assert np.all(np.abs(np.log(np.array(basis.tails) / left)) < np.log(1.6))


def test_directions_beyond_the_rank_are_left_out():
    basis, _ = drawn(LOW, 32, 32, 64)
    assert basis.V.shape[1] == RANK and basis.n_drawn == [0, 32, 64, 128]
    assert basis.tails[-1] < 1e-10 * basis.tails[0]


def test_all_rows_leave_nothing():
    basis, _ = drawn(RNG.standard_normal((50, 200)), 32, 18)
    assert basis.tails[-1] == 0 and basis.largest_left() == 0


@each_home
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_low_rank_takes_few_passes_wherever_the_rows_are(home, loss, monkeypatch):
    homes.OtherDevice.patch(monkeypatch)
    model = drp(HOMES[home](LOW), Y if loss == "squared" else LABELS, alpha=ALPHA, loss=loss, rng=0)
    plain = drp(
        LOW,
        Y if loss == "squared" else LABELS,
        alpha=ALPHA,
        loss=loss,
        n_projections=300,
        tol=1e-8,
        rng=0,
    )
    info = model.info
    assert info.converged and info.n_projections == RANK and info.n_passes <= 12
    assert info.n_passes < plain.info.n_passes
    assert np.linalg.norm(model.coef - plain.coef) <= (info.error_bound + 1e-8) * np.linalg.norm(
        plain.coef
    )


def test_from_disk_low_rank_reads_the_file_few_times(tmp_path):
    np.save(tmp_path / "X.npy", LOW.astype(np.float32))
    n_read = 0

    def read(start, stop):
        nonlocal n_read
        n_read += stop - start
        return np.load(tmp_path / "X.npy", mmap_mode="r")[start:stop]

    model = drp(
        srf.Chunks(read, LOW.shape, block_rows=90), LABELS, alpha=ALPHA, loss="logistic", rng=0
    )
    assert model.info.converged
    assert n_read / N <= 45 and n_read / N <= model.info.n_passes + 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "weight", [None, np.where(np.arange(N) % 5 == 0, 0.0, 1 + np.arange(N) % 3)]
)
def test_the_optimum_is_that_of_scikit_learn(dtype, weight):
    X = LOW.astype(dtype)
    model = drp(X, LABELS, alpha=ALPHA, loss="logistic", sample_weight=weight, tol=1e-6, rng=0)
    best = reference(X.astype(np.float64), LABELS, ALPHA, weight)
    assert model.info.converged and model.info.n_projections > 0
    assert np.linalg.norm(model.coef - best) <= 1e-5 * np.linalg.norm(best)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss", ["squared", "logistic", "squared_hinge", "smoothed_hinge", "huber", "poisson"]
)
def test_every_loss_and_several_outputs(loss):
    y = {
        "squared": Y,
        "huber": Y,
        "poisson": np.random.default_rng(1).poisson(np.exp(0.5 * Y)),
    }.get(loss, LABELS)
    if loss == "squared":
        y = np.column_stack([y, -y + LOW[:, 0]])
    if loss == "logistic":
        y = np.digitize(Y, [-0.5, 0.5])
    # of Poisson's, rounding allows little more
    how = {"alpha": ALPHA, "loss": loss, "tol": 1e-4, "rng": 0}
    model, sketched = (drp(LOW, y, n_projections=m, **how) for m in (None, 300))
    assert model.info.converged and sketched.info.converged and model.info.n_projections == RANK
    assert model.info.n_passes <= 20
    error = model.info.error_bound + sketched.info.error_bound
    assert np.linalg.norm(model.coef - sketched.coef) <= error * np.linalg.norm(sketched.coef)
    assert np.all(np.diff(model.info.objective) <= 0)


@pytest.mark.slow
def test_multinomial_shares_one_basis():
    y = np.digitize(Y, [-0.5, 0.5])
    how = {"alpha": 1e-3, "loss": "multinomial", "tol": 1e-6, "rng": 0}
    model, sketched = (drp(LOW, y, n_projections=m, **how) for m in (None, 300))
    assert model.info.converged and model.info.n_projections == RANK
    assert model.info.n_passes < sketched.info.n_passes
    assert np.linalg.norm(model.coef - sketched.coef) <= 2e-6 * np.linalg.norm(sketched.coef)


@pytest.mark.slow
def test_a_path_keeps_the_basis():
    alphas = [1e-2, 1e-3, 1e-4, 1e-5]
    models = drp_path(LOW, LABELS, alphas=alphas, loss="logistic", rng=0)
    assert all(model.info.converged for model in models)
    passes = [model.info.n_passes for model in models]
    assert passes[0] <= 12 and max(np.diff(passes)) <= 6
    for model, alpha in zip(models, alphas, strict=True):
        best = drp(
            LOW, LABELS, alpha=alpha, loss="logistic", n_projections=300, tol=1e-7, rng=1
        ).coef
        assert np.linalg.norm(model.coef - best) <= 1.01e-4 * np.linalg.norm(best)


@pytest.mark.slow
def test_the_basis_grows_along_a_path():
    """Each penalty draws what it needs: few directions while alpha is large, and those that it has
    are kept."""
    n = 600
    X = RNG.standard_normal((n, 800)) * np.geomspace(1, 1e-4, 800)
    y = np.where(X[:, 0] + 0.01 * RNG.standard_normal(n) > 0, 1, 0)
    models = drp_path(X, y, alphas=[1e-3, 1e-6, 1e-8], loss="logistic", rng=0)
    sizes = [model.info.n_projections for model in models]
    assert (
        all(model.info.converged for model in models)
        and sizes == sorted(sizes)
        and sizes[-1] > sizes[0]
    )


def test_flat_spectra_draw_no_basis_that_they_keep():
    X = RNG.standard_normal((500, 800))
    y = np.where(X[:, :20].sum(axis=1) > 0, 1, 0)
    for alpha in (10.0, 0.1):
        info = drp(X, y, alpha=alpha, loss="logistic", rng=0).info
        assert info.converged and info.n_projections == 0
        assert info.n_passes <= 5 + info.n_conjugate + 2 * info.n_iter


def test_any_number_of_workers_gives_the_same_bits():
    one, two = (
        drp(LOW, LABELS, alpha=ALPHA, loss="logistic", workers=workers, rng=0) for workers in (1, 2)
    )
    assert np.array_equal(one.coef, two.coef) and one.info == two.info


@pytest.mark.slow
def test_a_penalty_below_rounding_ends():
    X = 1e9 * LOW
    with pytest.warns(srf.ConvergenceWarning, match="with no bound on the error"):
        model = drp(X, Y, alpha=1e-8, rng=0)
    assert np.isfinite(model.coef).all()
    assert np.linalg.norm(model.predict(X) - Y) <= 1.05 * np.linalg.norm(Y - Y.mean())
