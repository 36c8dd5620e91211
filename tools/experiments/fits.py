"""Contenders: functions of the rows that return a model of sparserf, or `Fitted`; and what is told
of them."""

import inspect
import time
import warnings
from dataclasses import dataclass
from functools import partial

import baselines
import joblib
import numpy as np
from experiments.data import WORKERS, few, held_out, scaling, value
from scipy.sparse import csr_matrix, issparse
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import sparserf as srf

CLOCKED, BATCH = 10.0, 10_000


@dataclass
class Fitted:
    decision_function: callable  # the target, or the margin
    size: int | None = None  # of whatever the model is made of
    fit: object = None


def ours(
    data,
    call="sparse_rf",
    seed=0,
    said=None,
    n_alpha=None,
    loss=None,
    X=None,
    unscaled=False,
    **options,
):
    """A function of sparserf, or of the baselines; n_alpha is alpha times the rows. Numbers of
    terms are few in a quick run."""
    function = getattr(srf, call, None) or getattr(baselines, call)
    given = {
        "rng": seed,
        "workers": WORKERS,
        "loss": value(loss) if "." in (loss or "") else loss or data.loss,
    }
    unscaled = unscaled or call in ("drp", "drp_path")  # as the rivals see them
    options |= ({} if n_alpha is None else {"alpha": n_alpha / len(data.y)}) | (
        {"scale": None} if unscaled else {}
    )
    for key in {"features", "alpha", "n_nonzero_coefs"} & set(options):
        options[key] = value(options[key], data=data, said=said)
    for key, most in {"n_components": 400, "n_nonzero_coefs": 20}.items():
        options |= {key: few(options[key], most)} if key in options else {}
    given = {
        key: each for key, each in given.items() if key in inspect.signature(function).parameters
    }
    with warnings.catch_warnings(action="ignore", category=srf.ConvergenceWarning):
        return function(value(X, data=data) if X else data.X, data.y, **given | options)


def run(data, do):
    return value(do, data=data, WORKERS=WORKERS)


def limit(data, csr=True, most_inputs=np.inf, **most_rows):
    """Stop where X is CSR and may not be, or larger than a contender can bear with that loss."""
    if issparse(data.X) and not csr:
        raise NotImplementedError("does not take CSR")
    if data.X.shape[1] > most_inputs or data.X.shape[0] > most_rows.get(data.loss, np.inf):
        raise NotImplementedError("too slow")


def estimator(data, make, seed=0, phi=False, limits=None, size=None, margin=None, then="0"):
    """What an expression makes, fitted: to X, or to its sampler's features in our scale."""
    limit(data, **limits or {})
    names = {
        "n": len(data.y),
        "seed": seed,
        "WORKERS": WORKERS,
        "held_out": held_out,
        "gamma_of": gamma_of,
        "few": few,
    }
    names |= {"data": data, "scaler": MaxAbsScaler() if issparse(data.X) else StandardScaler()}
    fit = value(make if isinstance(make, str) else make[data.loss], **names)
    # whose memory is seen
    with warnings.catch_warnings(action="ignore"), joblib.parallel_config(backend="threading"):
        X = data.X
        if phi:
            X = data.sampler.transform(X)
            X *= np.sqrt(len(data.features))
        fit.fit(X, data.y)
        value(then, fit=fit)
    decide = getattr(fit, "decision_function", None) or fit.predict
    if margin and data.loss == "logistic":
        decide = lambda X: value(margin, fit=fit, X=X, WORKERS=WORKERS)  # noqa: E731
    return Fitted(decide, int(value(size, fit=fit)) if size else None, fit)


def gamma_of(X, seed, most=1000):
    """1 / the median squared distance between standardised rows, of a thousand at random."""
    some = scaling(X)(X)[np.random.default_rng(seed).permutation(X.shape[0])[:most]]
    return 1 / np.median(euclidean_distances(some, squared=True)[np.triu_indices(some.shape[0], 1)])


def lightgbm(
    data, seed, points=0, objective=None, refit=False, trees=1000, patience=30, held=None, **fixed
):
    """Defaults where there are no points; else the best of a random search, each stopped early on a
    tenth, or on `held`."""
    from lightgbm import Dataset, early_stopping, train

    y, rng = data.y > 0 if data.loss == "logistic" else data.y, np.random.default_rng(seed)
    X = csr_matrix(data.X) if issparse(data.X) else data.X  # not csr_array, as of its 4.7
    rows = getattr(X, "iloc", X)
    fitted, held = (
        held_out(len(y), seed) if held is None else (np.delete(np.arange(len(y)), held), held)
    )
    of_loss = {"squared": "regression", "logistic": "binary", "multinomial": "multiclass"}
    common = {"objective": objective or of_loss[data.loss], "verbose": -1}
    common |= {"num_threads": WORKERS, "seed": 0 if points else seed}
    common |= {key: value(each, data=data) for key, each in fixed.items()}
    tried = []
    for _ in range(few(points, 1)):
        how = {
            "learning_rate": np.exp(rng.uniform(np.log(0.01), np.log(0.2))),
            "num_leaves": rng.integers(8, 256),
            "min_data_in_leaf": rng.integers(3, 50),
            "feature_fraction": rng.uniform(0.5, 1),
            "bagging_fraction": rng.uniform(0.5, 1),
            "bagging_freq": 1,
            "lambda_l2": np.exp(rng.uniform(-7, 3)),
        } | common
        given = Dataset(rows[fitted], y[fitted], free_raw_data=False)
        test = Dataset(rows[held], y[held], reference=given)
        fit = train(how, given, trees, [test], callbacks=[early_stopping(patience, verbose=False)])
        tried.append((next(iter(fit.best_score["valid_0"].values())), fit, how))
    _, fit, how = min(tried, key=lambda one: one[0]) if tried else (0, None, common)
    if refit or not points:
        fit = train(how, Dataset(X, y), max(1, int(fit.best_iteration / 0.9)) if fit else 100)
    predict = partial(fit.predict, raw_score=data.loss == "logistic", num_threads=WORKERS)
    size = sum(tree["num_leaves"] for tree in fit.dump_model()["tree_info"])
    return Fitted((lambda X: predict(csr_matrix(X))) if issparse(X) else predict, size)


def bagged(data, seed, models, **how):
    """The mean of some of LightGBM, each stopped early on a part of the rows that is no other's."""
    parts = np.array_split(np.random.default_rng(seed).permutation(len(data.y)), models)
    each = [lightgbm(data, seed, 1, held=part, **how) for part in parts]
    return Fitted(
        lambda X: np.mean([one.decision_function(X) for one in each], axis=0),
        sum(one.size for one in each),
    )


def told(data, result, **measures):
    """Expressions of the data and the result."""
    return {key: value(each, data=data, model=result) for key, each in measures.items()}


def learned(data, result, loss=None, timed=True, **more):
    """The error on test rows (of the squared loss, over the variance of the target), size,
    microseconds of a prediction."""
    loss, model = loss or vars(data).get("measure", data.loss), hasattr(result, "support")
    decide = (
        partial(result.decision_function, workers=WORKERS) if model else result.decision_function
    )
    if model and loss not in ("squared", "logistic", "RMSE", "1-AUC"):
        decide = result.predict_proba if loss == "log-loss" else result.predict
    n, rows = len(data.y_test), getattr(data.X_test, "iloc", data.X_test)
    error = loss_of(
        loss, np.concatenate([decide(rows[i : i + BATCH]) for i in range(0, n, BATCH)]), data.y_test
    )
    found = {
        "error": error / (data.y.var() if loss == "squared" else 1),
        "rows": len(data.y),
        "inputs": data.X.shape[1],
    }
    if timed:
        found |= {
            "batch_us": clock(decide, rows[np.resize(np.arange(n), BATCH)], 5),
            "single_us": clock(decide, rows[:1], 100),
        }
    size = size_of(result)
    return found | ({} if size is None else {"size": size}) | told(data, result, **more)


def size_of(result):
    """The terms of a model of ours, the size of another."""
    return len(result.support) if hasattr(result, "support") else result.size


def loss_of(loss, z, y):
    """The mean of a loss on predictions: of `quantile 0.9` the pinball loss, of `huber` the
    absolute error."""
    name, _, level = loss.partition(" ")
    if name == "quantile":
        return float(np.mean(np.maximum(float(level) * (y - z), (1 - float(level)) * (z - y))))
    if name == "poisson":
        return float(np.mean(z - y + y * np.log(np.where(y > 0, y, 1) / z)))
    if name == "gamma":
        return float(np.mean(y / z - 1 - np.log(y / z)))
    if name == "RMSE":
        return float(np.sqrt(np.mean((z - y) ** 2)))
    if name == "1-AUC":
        return 1 - float(roc_auc_score(y, z))
    if name == "log-loss":
        return float(log_loss(y, z, labels=np.arange(z.shape[1])))
    return float(
        np.mean(
            {"squared": (z - y) ** 2, "huber": np.abs(z - y), "logistic": np.logaddexp(0, -y * z)}[
                name
            ]
        )
    )


def clock(predict, X, times):
    """Microseconds a row, the best of some, fewer where they take long."""
    each = []
    while len(each) < times and sum(each) < CLOCKED:
        start = time.perf_counter()
        predict(X)
        each.append(time.perf_counter() - start)
    return 1e6 * min(each) / X.shape[0]
