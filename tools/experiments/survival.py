"""Times until events, beside libraries for survival analysis."""

import time
import warnings

import numpy as np
from experiments.data import Data, few

import sparserf as srf

# The quantiles of the times of events at which Brier scores are taken.
MIDDLE = np.linspace(0.1, 0.9, 50)


def rows(name, seed, share=0.7):
    """A table of lifelines or scikit-survival as a frame, and its times; a share of the shuffled
    rows to fit, the others to test."""
    import pandas as pd
    from sksurv import datasets

    if name == "rossi":
        from lifelines.datasets import load_rossi

        X = load_rossi()
        time, event = X.pop("week"), X.pop("arrest") == 1
    else:
        X, y = getattr(datasets, f"load_{name}")()
        X = X.drop(columns="chapter", errors="ignore")  # the cause of death, of flchain
        event, time = (y[field] for field in y.dtype.names)
    y = np.empty(len(X), [("event", bool), ("time", float)])
    y["event"], y["time"] = event, time
    order = np.random.default_rng(seed).permutation(len(X))
    n = int(share * len(X))
    train, test = order[: few(n)], order[n:]
    codes = pd.get_dummies(X, drop_first=True, dtype=float).astype(float)
    codes = codes.fillna(codes.iloc[train].median()).to_numpy()
    Z, Z_test = codes[train], codes[test]
    X, X_test = (X.iloc[part].reset_index(drop=True) for part in (train, test))
    return Data(
        X=X, y=y[train], X_test=X_test, y_test=y[test], Z=Z, Z_test=Z_test, loss="cox", seed=seed
    )


def ours(data, function="sparse_rf", **options):
    """(f and the survival of the test rows, terms) of a function of this package."""

    def fit():
        fitting = getattr(srf, function)
        if options.get("features") == "rules":
            options["features"] = srf.Rules()
        return fitting(data.X, data.y, loss="cox", rng=data.seed, verbose=False, **options)

    def say(model, times):
        f = np.asarray(model.predict(data.X_test))
        return f, model.survival(data.X_test, times), len(model.features)

    return measured(data, fit, say)


def forest(data, kind, **options):
    """The same of an ensemble of scikit-survival."""
    from sksurv import ensemble

    def fit():
        return getattr(ensemble, kind)(random_state=data.seed, **options).fit(data.Z, data.y)

    def say(model, times):
        found = model.predict_survival_function(data.Z_test)
        # constant beyond the last time of training
        S = np.array([each(np.clip(times, *each.domain)) for each in found])
        return model.predict(data.Z_test), S, None

    return measured(data, fit, say)


def lifelines(data, **options):
    """The same of Cox's linear model by lifelines, with Efron's ties."""
    import lifelines
    import pandas as pd

    def fit():
        frame = pd.DataFrame(data.Z).rename(columns=str).assign(time=data.y["time"])
        frame = frame.assign(event=data.y["event"])
        return lifelines.CoxPHFitter(**options).fit(frame, "time", "event")

    def say(model, times):
        frame = pd.DataFrame(data.Z_test).rename(columns=str)
        S = model.predict_survival_function(frame, times=times).to_numpy().T
        return model.predict_log_partial_hazard(frame).to_numpy(), S, data.Z.shape[1]

    return measured(data, fit, say)


def boosted(data, **options):
    """The same of XGBoost's trees, with Breslow's estimator of the baseline hazard."""
    import xgboost
    from sksurv.linear_model.coxph import BreslowEstimator

    options = {"objective": "survival:cox", "nthread": 1, "seed": data.seed, **options}
    n_rounds = options.pop("n_rounds")

    def f_of(model, Z):
        return model.predict(xgboost.DMatrix(Z), output_margin=True).astype(float)

    def fit():
        y = np.where(data.y["event"], data.y["time"], -data.y["time"])
        model = xgboost.train(options, xgboost.DMatrix(data.Z, y), n_rounds)
        baseline = BreslowEstimator().fit(f_of(model, data.Z), data.y["event"], data.y["time"])
        return model, baseline

    def say(both, times):
        model, baseline = both
        f = f_of(model, data.Z_test)
        found = baseline.get_survival_function(f)
        return f, np.array([each(np.clip(times, *each.domain)) for each in found]), None

    return measured(data, fit, say)


def measured(data, fit, say):
    """The concordance and the integrated Brier score of test rows, the terms, and the seconds of
    the fit."""
    with warnings.catch_warnings(action="ignore"):
        start = time.perf_counter()
        model = fit()
        seconds = time.perf_counter() - start
        times = np.unique(np.quantile(data.y["time"][data.y["event"]], MIDDLE))
        f, S, terms = say(model, times)
    brier = srf.integrated_brier_score(data.y_test, S, times, y_train=data.y)
    C = srf.concordance(data.y_test, f)
    return {"error": 1 - C, "concordance": C, "brier": brier, "terms": terms, "seconds": seconds}
