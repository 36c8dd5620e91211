"""The multinomial loss beside one-vs-rest, of the same function: held-out log loss, errors, terms, and CPU seconds.

    python tools/tables/multinomial.py [function ...]

scikit-learn's digits and wine, and house_16h in five classes of the same size, of its target; a quarter held out, of the last
3,000 rows for training. Data: the folder SPARSERF_DATA.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

import sparserf as srf

DATA = Path(os.environ.get("SPARSERF_DATA", "data"))
COSINES = {"features": "gaussian", "n_components": 3000}
FUNCTIONS = {
    "mfga": lambda *data, **how: srf.mfga(*data, n_nonzero_coefs=60, n_select=10, **how),
    "drp": lambda *data, **how: srf.drp(*data, alpha=1e-3, **how),
    "harfe": lambda *data, **how: srf.harfe(*data, n_components=2000, order=3, n_nonzero_coefs=30, alpha=1e-3, **how),
    "sparse_rf alpha=.003": lambda *data, **how: srf.sparse_rf(*data, alpha=0.003, gamma=0.02, **COSINES, **how),
    "sparse_rf": lambda *data, **how: srf.sparse_rf(*data, n_models=1, **how),
}


def house():
    file = np.load(DATA / "house_16h.npz")
    some = np.random.default_rng(0).permutation(len(file["y"]))[:8000]
    y = file["y"][some]
    return file["X"][some].astype(np.float64), np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))


SETS = {"digits": lambda: load_digits(return_X_y=True), "wine": lambda: load_wine(return_X_y=True), "house_16h": house}


def main(names):
    warnings.simplefilter("ignore")
    print("| function | data | rows | loss | log loss | error | terms | CPU s |\n|---|---|---|---|---|---|---|---|")
    for function in names or FUNCTIONS:
        for name, load in SETS.items():
            X, X_test, y, y_test = train_test_split(*load(), test_size=0.25, random_state=0)
            X, y = X[:3000], y[:3000]
            if function == "drp":
                scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
                X, X_test = ((each - scale[0]) / scale[1] for each in (X, X_test))
            for loss in ("multinomial", "logistic"):
                print(line(function, name, loss, X, y, X_test, y_test), flush=True)


def line(function, name, loss, X, y, X_test, y_test):
    start = time.process_time()
    model = FUNCTIONS[function](X, y, loss=loss, rng=0)
    seconds, p = time.process_time() - start, model.predict_proba(X_test)
    log_loss = -np.log(np.maximum(p[np.arange(len(y_test)), y_test], 1e-15)).mean()
    error, terms = np.mean(model.predict(X_test) != y_test), len(model.support)
    return f"| {function} | {name} | {len(y)} | {loss} | {log_loss:.4f} | {error:.4f} | {terms} | {seconds:.1f} |"


if __name__ == "__main__":
    main(sys.argv[1:])
