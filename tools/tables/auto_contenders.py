"""Who is compared in auto.py: functions (X, y, loss, seed) -> (predict, size); predict gives the target, or the margin."""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix, issparse

import sparserf as srf

WORKERS, POINTS, TREES, PATIENCE = 2, 20, 1000, 30
DRAWS, DRAW_BYTES, BAGS = 10_000, 4e9, 8
WIDTHS, RIDGES, COSTS = (0.1, 0.3, 1.0, 3.0), (1e-4, 1e-3, 1e-2, 1e-1, 1.0), (0.3, 3.0, 30.0)


@dataclass
class Contender:
    fit: callable
    needs: tuple = ()  # modules, imported before the clock starts
    takes_csr: bool = True
    most_inputs: float = np.inf
    most_rows: dict = field(default_factory=dict)  # for each loss

    def unfit(self, X, loss):
        """Why it does not run on these; empty where it does."""
        if issparse(X) and not self.takes_csr:
            return "does not take CSR"
        too_slow = X.shape[1] > self.most_inputs or X.shape[0] > self.most_rows.get(loss, np.inf)
        return "too slow" if too_slow else ""


def held_out(n, seed):
    """(fitted, held) of the row numbers: a tenth is held."""
    order = np.random.default_rng(seed).permutation(n)
    return order[n // 10 :], order[: n // 10]


def scaling(X):
    """What brings inputs to mean 0 and standard deviation 1 in X; of CSR, to a largest size of 1."""
    if issparse(X):
        top = abs(X).max(axis=0).toarray().ravel()
        shares = 1 / np.where(top > 0, top, 1)
        return lambda X: csr_array((X.data * shares[X.indices], X.indices, X.indptr), shape=X.shape)
    mean, sd = X.mean(axis=0), X.std(axis=0)
    sd[sd == 0] = 1
    return lambda X: (X - mean) / sd


def median_gamma(X, seed, most=1000):
    """1 / the median squared distance between rows, of a thousand at random."""
    from sklearn.metrics.pairwise import euclidean_distances

    some = X[np.random.default_rng(seed).permutation(X.shape[0])[:most]]
    return 1 / np.median(euclidean_distances(some, squared=True)[np.triu_indices(some.shape[0], 1)])


def auto(X, y, loss, seed, **options):
    model = srf.sparse_rf(X, y, loss=loss, rng=seed, workers=WORKERS, **options)
    return partial(model.decision_function, workers=WORKERS), len(model.support)


def gaussian(X, y, loss, seed):
    scale = scaling(X)
    model = srf.sparse_rf(scale(X), y, features="gaussian", alpha=None, loss=loss, rng=seed, workers=WORKERS)
    return lambda X: model.decision_function(scale(X), workers=WORKERS), len(model.support)


def rbf_l1(X, y, loss, seed):
    """10,000 features of RBFSampler, or what 4 GB of float64 hold; 20 alphas of the Lasso, 6 Cs of liblinear.

    gamma is 1 / the median squared distance. Only features that were chosen are computed for a prediction.
    """
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import LassoCV, LogisticRegressionCV

    scale, n = scaling(X), X.shape[0]
    Z = scale(X)
    sampler = RBFSampler(gamma=median_gamma(Z, seed), n_components=min(DRAWS, int(DRAW_BYTES / (8 * n))), random_state=seed)
    phi, splits = sampler.fit_transform(Z), [held_out(n, seed)]
    if loss == "squared":
        model = LassoCV(alphas=20, cv=splits).fit(phi, y)
    else:
        model = LogisticRegressionCV(
            Cs=np.geomspace(0.3, 100, 6), l1_ratios=(1.0,), solver="liblinear", cv=splits, scoring="neg_log_loss",
            use_legacy_attributes=False, random_state=seed,
        ).fit(phi, y)  # fmt: skip
    coef, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    support = np.flatnonzero(coef)
    sampler.random_weights_, sampler.random_offset_ = sampler.random_weights_[:, support], sampler.random_offset_[support]
    coef = coef[support]
    return lambda X: sampler.transform(scale(X)) @ coef + intercept, len(support)


def lightgbm(X, y, loss, seed, points):
    """Defaults where there are no points; else the best of a random search, each stopped early, on a tenth of the rows."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    Trees = LGBMRegressor if loss == "squared" else LGBMClassifier
    X = csr_matrix(X) if issparse(X) else X  # not csr_array, as of its 4.7
    rng, (fitted, held) = np.random.default_rng(seed), held_out(len(y), seed)
    best = None if points else Trees(verbose=-1, n_jobs=WORKERS).fit(X, y)
    for _ in range(points):
        trees = Trees(
            n_estimators=TREES, learning_rate=np.exp(rng.uniform(np.log(0.01), np.log(0.2))), num_leaves=rng.integers(8, 256),
            min_child_samples=rng.integers(3, 50), colsample_bytree=rng.uniform(0.5, 1), subsample=rng.uniform(0.5, 1),
            subsample_freq=1, reg_lambda=np.exp(rng.uniform(-7, 3)), verbose=-1, n_jobs=WORKERS, random_state=0,
        )  # fmt: skip
        trees.fit(X[fitted], y[fitted], eval_X=X[held], eval_y=y[held], callbacks=[early_stopping(PATIENCE, verbose=False)])
        value = next(iter(next(iter(trees.best_score_.values())).values()))
        if best is None or value < best[0]:
            best = value, trees
    trees = best if points == 0 else best[1]
    size = sum(tree["num_leaves"] for tree in trees.booster_.dump_model()["tree_info"])
    predict = partial(trees.booster_.predict, raw_score=True, num_threads=WORKERS)
    return (lambda X: predict(csr_matrix(X))) if issparse(X) else predict, size


def hist_gradient_boosting(X, y, loss, seed):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if loss == "squared":
        return HistGradientBoostingRegressor(random_state=seed).fit(X, y).predict, 0
    return HistGradientBoostingClassifier(random_state=seed).fit(X, y).decision_function, 0


def catboost(X, y, loss, seed):
    from catboost import CatBoostClassifier, CatBoostRegressor

    Trees = CatBoostRegressor if loss == "squared" else CatBoostClassifier
    trees = Trees(verbose=0, thread_count=WORKERS, random_seed=seed, allow_writing_files=False).fit(X, y)
    predict = partial(trees.predict, prediction_type="RawFormulaVal", thread_count=WORKERS)
    return predict, int(trees.get_tree_leaf_counts().sum())


def xrfm(X, y, loss, seed):
    """On standardised inputs, stopped early on a tenth of the rows; its margins are scaled there, as those of an SVC."""
    import torch
    from xrfm import xRFM

    scale, (fitted, held) = scaling(X), held_out(len(y), seed)
    Z = scale(X).astype(np.float32)
    target = y[:, None].astype(np.float32) if loss == "squared" else (y > 0).astype(np.int64)
    model = xRFM(device=torch.device("cpu"), n_threads=WORKERS, random_state=seed)
    model.fit(Z[fitted], target[fitted], Z[held], target[held])

    def decide(Z):
        values = model.predict(Z) if loss == "squared" else model.predict_proba(Z)[:, 1]
        return np.ravel(values).astype(np.float64)

    _, slope, shift = held_out_loss(decide(Z[held]), y[held], loss)
    return lambda X: slope * decide(scale(X).astype(np.float32)) + shift, len(fitted)


def ebm(X, y, loss, seed):
    """Each of 8 bags holds out its own tenth. In threads, so that their memory is seen."""
    import joblib
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    Additive = ExplainableBoostingRegressor if loss == "squared" else ExplainableBoostingClassifier
    with joblib.parallel_config(backend="threading"):
        model = Additive(outer_bags=BAGS, validation_size=0.1, n_jobs=WORKERS, random_state=seed).fit(X, y)
    predict = model.predict if loss == "squared" else model.decision_function
    return predict, int(sum(scores.size for scores in model.term_scores_))


def kernel(X, y, loss, seed):
    """The exact Gaussian kernel, the best of a grid: ridge regression; or an SVC, its margins scaled on the held-out rows."""
    scale = scaling(X)
    Z, (fitted, held) = scale(X), held_out(len(y), seed)
    machine, strengths = (kernel_ridge, RIDGES) if loss == "squared" else (kernel_svc, COSTS)
    best = (np.inf,)
    for gamma in median_gamma(Z, seed) * np.array(WIDTHS):
        for strength in strengths:
            decide, _ = machine(Z[fitted], y[fitted], gamma, strength)
            value, slope, shift = held_out_loss(decide(Z[held]), y[held], loss)
            if value < best[0]:
                best = value, slope, shift, gamma, strength
    _, slope, shift, gamma, strength = best
    decide, size = machine(Z, y, gamma, strength)
    return lambda X: slope * decide(scale(X)) + shift, size


def kernel_ridge(Z, y, gamma, alpha):
    from sklearn.kernel_ridge import KernelRidge

    model = KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(Z, y - y.mean())
    return lambda Z: model.predict(Z) + y.mean(), Z.shape[0]


def kernel_svc(Z, y, gamma, cost):
    from sklearn.svm import SVC

    model = SVC(gamma=gamma, C=cost, cache_size=500).fit(Z, y)
    return model.decision_function, int(model.n_support_.sum())


def held_out_loss(z, y, loss):
    """(loss, slope, shift): of a logistic loss the line through the margins that has the least, as in Platt."""
    if loss == "squared":
        return np.mean((z - y) ** 2), 1.0, 0.0
    count = np.sum(y > 0), np.sum(y < 0)
    target = np.where(y > 0, (count[0] + 1) / (count[0] + 2), 1 / (count[1] + 2))

    def value(line):
        u = line[0] * z + line[1]
        return np.mean(np.logaddexp(0, u) - target * u)

    slope, shift = minimize(value, [1.0, 0.0], method="Nelder-Mead").x
    return value((slope, shift)), slope, shift


CONTENDERS = {
    "auto": Contender(auto),
    "auto, 100 terms": Contender(partial(auto, max_terms=100)),
    "gaussian": Contender(gaussian, most_inputs=10_000),
    "RBFSampler + l1": Contender(
        rbf_l1, ("sklearn.kernel_approximation", "sklearn.linear_model", "sklearn.metrics.pairwise"),
        most_rows={"squared": 3000, "logistic": 3000},
    ),
    "LightGBM": Contender(partial(lightgbm, points=0), ("lightgbm",)),
    "LightGBM tuned": Contender(partial(lightgbm, points=POINTS), ("lightgbm",)),
    "HistGradientBoosting": Contender(hist_gradient_boosting, ("sklearn.ensemble",), takes_csr=False),
    "CatBoost": Contender(catboost, ("catboost",), takes_csr=False),
    "xRFM": Contender(xrfm, ("torch", "xrfm"), takes_csr=False, most_rows={"squared": 10_000, "logistic": 10_000}),
    "EBM": Contender(ebm, ("interpret.glassbox", "joblib"), takes_csr=False, most_inputs=300),
    "kernel": Contender(
        kernel, ("sklearn.kernel_ridge", "sklearn.svm", "sklearn.metrics.pairwise"),
        most_rows={"squared": 10_000, "logistic": 10_000},
    ),
}  # fmt: skip
