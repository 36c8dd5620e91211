"""The cases of `mfga`."""

import warnings
from functools import partial

import numpy as np
from case import CASES, WORKERS, Case, data_set
from scipy.sparse import csr_array

import sparserf as srf
from sparserf.baselines import eerf, lkrf
from sparserf.rows import as_rows

# --- against orthogonal matching pursuit on columns that are built -----------------------------------------------

N, D, GAMMA, TERMS = 46_371, 90, 1 / 200, 400


def year_sized():
    """As many rows and inputs as the paper's Year set, and a target of degree 1 and 2 with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    f = X @ (rng.standard_normal(D) / np.arange(1, D + 1)) + X[:, 0] * X[:, 1] - X[:, 2] ** 2 / 2 + np.sin(2 * X[:, 3])
    return X, f + 0.5 * rng.standard_normal(N)


def ours(data, n_select, workers=WORKERS):
    features = srf.Taylor(2, GAMMA), srf.Linear()
    model = srf.mfga(*data, n_nonzero_coefs=TERMS, features=features, alpha=0, normalize=True, n_select=n_select,
                     workers=workers)  # fmt: skip
    return model.support, model.predict(data[0], workers)


def columns(X):
    """All monomials of degree 0, 1 and 2 under the envelope, and the inputs: unit columns around their means."""
    i, j = np.triu_indices(D)
    scaled, envelope = np.sqrt(2 * GAMMA) * X, np.exp(-GAMMA * (X**2).sum(axis=1))[:, None]
    phi = np.empty((N, 1 + D + len(i) + D))
    phi[:, :1] = envelope
    phi[:, 1 : D + 1] = envelope * scaled
    phi[:, D + 1 : -D] = envelope * scaled[:, i] * scaled[:, j] / np.sqrt(1 + (i == j))
    phi[:, -D:] = X
    phi -= phi.mean(axis=0)
    phi /= np.sqrt((phi**2).sum(axis=0))
    return phi


def omp(data, precompute):
    from sklearn.linear_model import OrthogonalMatchingPursuit

    X, y = data
    phi = columns(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = OrthogonalMatchingPursuit(n_nonzero_coefs=TERMS, precompute=precompute).fit(phi, y)
    return np.flatnonzero(fit.coef_), fit.predict(phi)


def describe_year(data, result):
    support, prediction = result
    return {"terms": len(support), "mse_over_variance": np.mean((prediction - data[1]) ** 2) / data[1].var()}


CASES["mfga"] = Case(
    f"{N:,} × {D}, degree 2 and linear (4,276 candidates), {TERMS} atoms, no ridge, atoms of unit norm: the same problem for "
    "all. Building the columns is counted.",
    year_sized,
    {
        "mfga, n_select=1": partial(ours, n_select=1),
        "mfga, n_select=40": partial(ours, n_select=40),
        "columns + OMP, precompute=True": partial(omp, precompute=True),
        "columns + OMP, precompute=False": partial(omp, precompute=False),
    },
    describe_year,
)


# --- CSR against dense -------------------------------------------------------------------------------------------


def adult():
    X, y, n = data_set("adult")
    return csr_array(X[:n]), y[:n]


def ours_adult(data, convert, degree):
    X, y = data
    features = srf.Taylor(degree, 1 / 28), srf.Linear()
    return srf.mfga(convert(X), y, n_nonzero_coefs=100, features=features, loss="logistic", alpha=1e-4, workers=WORKERS)


for degree, candidates in ((1, "247"), (2, "7,873")):
    CASES[f"mfga-adult-{degree}"] = Case(
        f"adult, 32,561 × 123 of ones and zeros (11 % ones), logistic loss, 100 atoms of {candidates}, from CSR and from the "
        "same in dense form.",
        adult,
        {
            "CSR": partial(ours_adult, convert=lambda X: X, degree=degree),
            "dense": partial(ours_adult, convert=lambda X: X.toarray(), degree=degree),
        },
        lambda data, model: {"terms": len(model.support), "objective": model.info.objective[-1]},
    )


# --- against the data-dependent random features ------------------------------------------------------------------


def standardised_adult():
    X, y, n = data_set("adult")
    sd = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(sd > 0, sd, 1)
    gamma = srf.Fourier("gaussian", "knn").resolve(as_rows(X[:n]), np.random.default_rng(0)).gamma
    return X[:n], y[:n], gamma, X[n:], y[n:]


def ours_table_2b(data, n_select):
    X, y, gamma, *_ = data
    return srf.mfga(X, y, n_nonzero_coefs=100, features=(srf.Taylor(1, gamma), srf.Linear()), loss="logistic",
                    alpha=1 / len(y), n_select=n_select, workers=WORKERS)  # fmt: skip


def theirs_table_2b(data, function, **options):
    X, y, gamma, *_ = data
    return function(X, y, n_nonzero_coefs=100, n_components=2000, features=srf.Fourier("gaussian", gamma), loss="logistic",
                    alpha=1 / len(y), rng=0, workers=WORKERS, **options)  # fmt: skip


CASES["mfga-table-2b"] = Case(
    "adult, standardised, M = 100, logistic loss, n alpha = 1, gamma given: preparation and training together. 247 candidates "
    "for mfga, 2,000 for the others.",
    standardised_adult,
    {
        "mfga, one round": partial(ours_table_2b, n_select=100),
        "mfga, 34 a round": partial(ours_table_2b, n_select=34),
        "mfga, 10 a round": partial(ours_table_2b, n_select=10),
        "eerf": partial(theirs_table_2b, function=eerf),
        "lkrf": partial(theirs_table_2b, function=lkrf, selection="sample"),
    },
    lambda data, model: {"terms": len(model.support), "test_error": np.mean(model.predict(data[3]) != data[4])},
)
