"""Models of rules beside bagged boosted trees, by turns in one process, and beside others that one
can read."""

import time
import warnings

import numpy as np
from experiments.data import WORKERS, few

import sparserf as srf

FOLDS = 5


def loss_of(z, y, loss):
    """Half the mean square, or nats."""
    return float(
        np.mean((z - y) ** 2) / 2 if loss == "squared" else np.mean(np.logaddexp(0, -y * z))
    )


def lightgbms(data, fold):
    """The mean of LightGBMs, each stopped early on a fold; a function of rows."""
    import lightgbm

    logistic, each = data.loss == "logistic", []
    of = lightgbm.LGBMClassifier if logistic else lightgbm.LGBMRegressor
    for k in range(FOLDS):
        fit = of(n_estimators=few(2000, 50), learning_rate=0.05, n_jobs=1, verbose=-1)
        held = [(data.X[fold == k], data.y[fold == k])]
        stop = [lightgbm.early_stopping(50, verbose=False)]
        each.append(fit.fit(data.X[fold != k], data.y[fold != k], eval_set=held, callbacks=stop))
    return lambda X: np.mean([fit.predict(X, raw_score=logistic) for fit in each], axis=0)


def timed(do, *args, **options):
    """(its result, the seconds of the processor)."""
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        result = do(*args, **options)
    return result, time.process_time() - start


def beside(data, seed):
    """Of each, by turns in one process: error on the test rows, seconds of the processor, and the
    number of rules."""
    fold = np.random.default_rng(seed + 1).permutation(len(data.y)) % FOLDS
    call = {"features": srf.Rules(), "loss": data.loss, "rng": seed, "verbose": False}
    trees, cpu_of_trees = timed(lightgbms, data, fold)
    model, cpu = timed(srf.sparse_rf, data.X, data.y, **call)
    each = {
        "five LightGBMs": {"predict": trees, "cpu": cpu_of_trees},
        "sparse_rf": {"predict": model.decision_function, "cpu": cpu, "size": len(model.support)},
    }
    for one in each.values():
        loss = loss_of(one.pop("predict")(data.X_test), data.y_test, data.loss)
        one["error"] = 2 * loss / data.y_test.var() if data.loss == "squared" else loss
        one |= {"rows": len(data.y), "inputs": data.X.shape[1]}
    first = each["five LightGBMs"]
    return {"each": {who: one | over(one, first) for who, one in each.items()}}


def over(one, other):
    """The error and the cost of one over those of another."""
    return {"over": one["error"] / other["error"], "cpu_over": one["cpu"] / other["cpu"]}


def printed(data, seed, max_terms, **how):
    """The formula of a model of rules pruned to so many, and the errors on the test rows of the
    pruned model and of the whole."""
    call = {"loss": data.loss, "rng": seed, "verbose": False, "features": srf.Rules(**how)}
    model = srf.sparse_rf(data.X, data.y, **call)
    small = srf.prune(model, data.X, max_terms=max_terms)
    found = {"says": small.formula(), "size": len(model.support), "inputs": data.X.shape[1]}
    for key, one in {"error": model, "error_small": small}.items():
        found[key] = loss_of(one.decision_function(data.X_test), data.y_test, data.loss)
    return found | {"rows": len(data.y), "tested": len(data.y_test)}


def grow_once(data, n_rules, trees):
    """A fit with one batch of rules of some trees: bins, growth, and the choice among them."""
    rules = srf.Rules(n_trees=trees, max_leaves=30)
    how = {"n_components": n_rules, "alpha": 0.05 * float(np.std(data.y)), "verbose": False}
    with warnings.catch_warnings(action="ignore", category=srf.ConvergenceWarning):
        return srf.sparse_rf(data.X, data.y, features=rules, rng=0, workers=WORKERS, **how)


def boost(data, trees):
    """LightGBM with so many trees, of at most 30 leaves."""
    from lightgbm import Dataset, train

    how = {"num_leaves": 30, "num_threads": WORKERS, "verbose": -1, "objective": "regression"}
    return train(how, Dataset(data.X, data.y), trees)


def size_of(data, result):
    """The rules, or leaves, of a result."""
    if hasattr(result, "support"):
        return {"size": len(result.support)}
    return {"size": sum(tree["num_leaves"] for tree in result.dump_model()["tree_info"])}


def few_rules(data, seed, most):
    """The errors of models of at most so many rules, leaves, or terms: a model of rules pruned,
    FIGS, a tree, and learned cosines pruned."""
    from imodels import FIGSClassifier, FIGSRegressor
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    logistic, each = data.loss == "logistic", {}
    call = {"loss": data.loss, "rng": seed, "verbose": False}
    label = (data.y > 0).astype(int) if logistic else data.y
    models = {
        "rules": timed(srf.sparse_rf, data.X, data.y, features=srf.Rules(), **call)[0],
        "cosines": timed(srf.sparse_rf, data.X, data.y, **call)[0],
    }
    for n in most:
        for who, model in models.items():
            small, cpu = timed(srf.prune, model, data.X, max_terms=n)
            loss = loss_of(small.decision_function(data.X_test), data.y_test, data.loss)
            each[f"{who}, {n}"] = {"error": loss, "cpu": cpu, "size": len(small.support)}
        figs = (FIGSClassifier if logistic else FIGSRegressor)(max_rules=n)
        tree = (DecisionTreeClassifier if logistic else DecisionTreeRegressor)(
            max_leaf_nodes=n, random_state=seed
        )
        for who, fit in {"FIGS": figs, "tree": tree}.items():
            _, cpu = timed(fit.fit, data.X, label)
            z = scaled(fit, data) if logistic and who == "FIGS" else None
            z = margins(fit, data.X_test, logistic) if z is None else z
            each[f"{who}, {n}"] = {
                "error": loss_of(z, data.y_test, data.loss),
                "cpu": cpu,
                "size": n,
            }
    for who, one in each.items():
        one |= over(each[f"rules, {who.split(', ')[1]}"], one)
    return {"each": each}


def scaled(fit, data):
    """The margins of a classifier on the test rows, scaled on the training rows as in Platt: those
    of FIGS are no log odds."""
    from sklearn.linear_model import LogisticRegression

    line = LogisticRegression(C=1e6).fit(margins(fit, data.X, True)[:, None], data.y)
    return line.decision_function(margins(fit, data.X_test, True)[:, None])


def margins(fit, X, logistic):
    """Predictions, or log odds of the probabilities, these at least one in a thousand."""
    if not logistic:
        return np.ravel(fit.predict(X))
    p = np.clip(fit.predict_proba(X)[:, 1], 1e-3, 1 - 1e-3)
    return np.log(p / (1 - p))
