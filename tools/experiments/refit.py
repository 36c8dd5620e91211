"""What a model that is edited and fitted again predicts on new rows, by how much its own
predictions count beside y."""

import numpy as np
from sklearn.metrics import log_loss

import sparserf as srf

TRUSTS = (0.0, 0.5, 0.75, 1.0)


def refitted(data, seed, classes, most=None, share=0.0):
    """The error on the test rows over that of the model before, for each `trust`.

    classes : in how many classes of equal size the target is cut; 0: it stays a number
    most : the most terms that prune keeps; None: all stay
    share : the share of the terms that is dropped, those of the largest coefficients
    """
    y, y_test, how = data.y, data.y_test, {}
    if classes:
        ends = np.quantile(y, np.arange(1, classes) / classes)
        y, y_test = np.digitize(y, ends), np.digitize(y_test, ends)
        how = {"loss": "logistic" if classes == 2 else "multinomial"}

    def error(model):
        if not classes:
            return np.sqrt(np.mean((model.predict(data.X_test) - y_test) ** 2))
        return log_loss(y_test, np.clip(model.predict_proba(data.X_test), 1e-15, 1))

    model = srf.sparse_rf(data.X, y, rng=seed, verbose=False, **how)
    model = model if most is None else srf.prune(model, data.X, max_terms=most)
    size = np.abs(np.atleast_2d(model.coef)).sum(axis=0)
    drop, before = np.argsort(-size)[: int(share * len(size))], error(model)
    edited = {f"trust {t:g}": srf.refit(model, data.X, y, drop=drop, trust=t) for t in TRUSTS}
    each = {name: {"over": float(error(one) / before)} for name, one in edited.items()}
    return {"each": each, "terms": len(size)}
