"""Rules with whole points beside risk scores made of thresholds."""

import contextlib
import io
import time

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

import sparserf as srf


def scores(data, seed, most, max_points):
    """Rules with whole points, and the model that has them, beside FasterRisk's thresholds."""
    import pandas as pd

    X, X_test = map(pd.DataFrame, (data.X, data.X_test))
    y, y_test = data.y > 0, data.y_test > 0

    def measured(fit):
        start = time.process_time()
        probability = fit()
        cpu = time.process_time() - start
        p = np.clip(probability(), 1e-15, 1 - 1e-15)
        return {"error": log_loss(y_test, p), "auc": roc_auc_score(y_test, p), "cpu": cpu}

    def rules():
        how = {"features": srf.Rules(), "loss": "logistic", "max_terms": most}
        return srf.sparse_rf(X, y, rng=seed, verbose=False, **how)

    def ours():
        model = srf.points(rules(), X, max_points=max_points).model
        return lambda: model.predict_proba(X_test)[:, 1]

    def real():
        model = rules()
        return lambda: model.predict_proba(X_test)[:, 1]

    def faster_risk():
        from fasterrisk.binarization_util import convert_continuous_df_to_binary_df
        from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

        both = pd.concat([X, X_test]).rename(columns=str)
        words = both.select_dtypes(exclude=["number", "bool"]).columns.tolist()
        both = pd.get_dummies(both, columns=words, dtype=float).astype(float).fillna(-1.0)
        with contextlib.redirect_stdout(io.StringIO()):
            Z = convert_continuous_df_to_binary_df(both, 20).to_numpy(float)
            ends = {"lb": -max_points, "ub": max_points}
            search = RiskScoreOptimizer(X=Z[: len(X)], y=np.where(y, 1.0, -1.0), k=most, **ends)
            search.optimize()
            multipliers, offsets, each = search.get_models()
        score = RiskScoreClassifier(multipliers[0], offsets[0], each[0])
        return lambda: score.predict_prob(Z[len(X) :])

    each = {"points": ours, "the model": real, "FasterRisk": faster_risk}
    return {"each": {name: measured(fit) for name, fit in each.items()}}
