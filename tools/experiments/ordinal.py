"""Ordered classes beside classes without an order, and beside linear models of ordered classes."""

import time

import numpy as np

import sparserf as srf


def fitted(data, seed, call="sparse_rf", loss="ordinal", **options):
    """A function of the package."""
    fit = getattr(srf, call)
    return measured(data, lambda: fit(data.X, data.y, loss=loss, rng=seed, **options))


def mord(data, alpha=1.0):
    """The all-threshold model of mord, the cumulative logit with a ridge penalty."""
    from mord import LogisticAT

    X, X_test = numbers(data)
    place = np.searchsorted(np.unique(data.y), data.y)
    return measured(data, lambda: LogisticAT(alpha=alpha).fit(X, place), X_test)


def statsmodels(data):
    """The cumulative logit of statsmodels, without a penalty."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, X_test = numbers(data)

    def fit():
        place = np.searchsorted(np.unique(data.y), data.y)
        model = OrderedModel(place, X, distr="logit").fit(method="bfgs", maxiter=500, disp=False)
        model.predict_proba = model.predict
        return model

    return measured(data, fit, X_test)


def numbers(data):
    """Inputs as numbers of mean 0 and deviation 1, a column for each level but the first."""
    import pandas as pd

    hot = pd.get_dummies(pd.concat([data.X, data.X_test]), drop_first=True).to_numpy(float)
    train = hot[: len(data.X)]
    hot = ((hot - train.mean(axis=0)) / train.std(axis=0))[:, train.std(axis=0) > 0]
    return hot[: len(data.X)], hot[len(data.X) :]


def measured(data, fit, X_test=None):
    """The log loss, the ranked probability score and the share of wrong classes of test rows, and
    the seconds of the processor."""
    start = time.process_time()
    model = fit()
    cpu = time.process_time() - start
    p = np.asarray(model.predict_proba(data.X_test if X_test is None else X_test))
    classes = np.unique(data.y)
    place = np.searchsorted(classes, data.y_test).clip(max=len(classes) - 1)
    of_class = np.where(classes[place] == data.y_test, p[np.arange(len(p)), place], 0.0)
    up_to = np.arange(len(classes)) >= place[:, None]
    return {
        "error": float(-np.log(np.maximum(of_class, 1e-6)).mean()),
        "rps": float(np.square(np.cumsum(p, axis=1) - up_to).sum(axis=1).mean()),
        "wrong": float(np.mean(p.argmax(axis=1) != place)),
        "terms": len(model.features) if hasattr(model, "features") else None,
        "cpu": cpu,
    }
