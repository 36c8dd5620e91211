"""What users do, from rows to predictions, explanations, exports and files: python [-OO] [-W error]
tests/end_to_end.py [raise]

It prints what each call gives, as a checksum, and `.ci/run` compares what it prints as usual with
what it prints without docstrings and assertions (-OO), where each warning is an error (-W error)
and NumPy is to raise whatever happens to a floating-point number (raise). What must hold is checked
by `check`, as -OO leaves out assertions.
"""

import hashlib
import sys
import tempfile
import warnings
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd

import sparserf as srf
from sparserf import sklearn as estimators

N = 150
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 3))
F = X[:, 0] + np.sin(2 * X[:, 1])
LABELS = np.where(F > 0, "p", "n")
TARGETS = {
    "squared": F,
    "huber": F,
    "quantile": F,
    "poisson": RNG.poisson(np.exp(F)).astype(float),
    "gamma": np.exp(F),
    "tweedie": np.exp(F),
    "logistic": LABELS,
    "squared_hinge": LABELS,
    "multinomial": np.digitize(F, [-0.7, 0.7]),
    "ordinal": np.digitize(F, [-0.7, 0.7]),
    "cox": np.column_stack([np.exp(-F), F < 1]),
}
FRAME = pd.DataFrame(X, columns=list("abc")).assign(k=["u", "v", None] * (N // 3))
FRAME.loc[3:9, "a"] = np.nan
FITS = {
    "default": partial(srf.sparse_rf, effort=0.02),
    "sparse_rf": partial(srf.sparse_rf, features="gaussian", alpha=0.01, n_components=100),
    "harfe": partial(srf.harfe, n_nonzero_coefs=8, n_components=100),
    "mfga": partial(srf.mfga, n_nonzero_coefs=5),
    "drp": partial(srf.drp, alpha=1e-3),
}
SQUARED = {
    "sparse_rf_path": partial(
        srf.sparse_rf_path, features="gaussian", n_alphas=2, n_components=50, rng=0
    ),
    "harfe_path": partial(srf.harfe_path, n_nonzero_coefs=[2, 4], n_components=50, rng=0),
    "mfga_path": partial(srf.mfga_path, n_nonzero_coefs=3, rng=0),
    "drp_path": partial(srf.drp_path, alphas=[0.1, 0.01], rng=0),
}


def check(holds, what):
    """End with a message unless this holds."""
    if not holds:
        sys.exit(f"end_to_end.py: {what} does not hold")


def tell(what, value):
    """Print a checksum of an array, or of what an object prints."""
    content = (
        value.tobytes()
        if isinstance(value, np.ndarray) and value.dtype != object
        else repr(value).encode()
    )
    print(what, hashlib.sha256(content).hexdigest()[:16])


def predictions(model, rows, workers=1):
    """Return the predictions, which must be finite, or labels."""
    values = model.predict(rows, workers)
    check(values.dtype.kind in "USO" or np.isfinite(values).all(), f"finite predictions of {model}")
    return values


def all_fits():
    homes = cycle((X, FRAME))  # eleven losses and five fits: each meets both
    for loss, y in TARGETS.items():
        for name, fit in FITS.items():
            rows = next(homes)
            model = fit(rows, y, loss=loss, rng=0, workers=2)
            tell(f"{name} {loss} {type(rows).__name__}", predictions(model, rows, 2))
    for name, fit in SQUARED.items():
        models = fit(X, F)
        tell(name, predictions(models[-1] if isinstance(models, list) else models, X))
    for size in 1e150, 1e-150:
        tell(f"y of {size}", predictions(FITS["default"](X, size * F, rng=0), X))
    tell("X of 1e-160", predictions(FITS["drp"](1e-160 * X, F), 1e-160 * X))
    for name, fit in FITS.items():
        tell(
            f"{name} of small counts",
            predictions(fit(X, 1e-250 * TARGETS["poisson"], loss="poisson", rng=0), X),
        )
    tell(
        "labels that are known",
        predictions(srf.sparse_rf(FRAME, LABELS, loss="logistic", effort=0.05, rng=0), FRAME),
    )
    model = FITS["default"](X, LABELS, loss="logistic", rng=0)
    check(np.mean(model.predict(X) == LABELS) > 0.8, "labels that are right")
    return model


def all_uses(model, folder):
    """What is asked of a model of labels."""
    tell("proba", model.predict_proba(X))
    tell("far", model.predict_proba(1e20 * X))
    for name in ("gradient", "hessian_diag", "shapley"):
        tell(name, getattr(model, name)(X[:20]))
    tell("summary", repr(model.summary(X)))
    tell("is_monotone", type(model.is_monotone(0, {}, time_limit=1)).__name__)
    tell("bounds", type(model.bounds({}, time_limit=1)).__name__)
    for language in ("text", "latex", "python", "sql"):
        tell(language, model.formula(language))
    tell("C", model.to_c())
    model.save(folder / "model.npz")
    check(
        (srf.load(folder / "model.npz").predict(X) == model.predict(X)).all(),
        "the same labels of a saved model",
    )
    tell("json", srf.SparseModel.from_json(model.to_json()).predict(X))
    tell("prune", srf.prune(model, X, max_terms=3).predict_proba(X))


def all_checks():
    fit, of_labels = partial(FITS["mfga"], loss="squared"), partial(FITS["mfga"], loss="logistic")
    tell("cross_validate", repr(srf.cross_validate(fit, X, F, {}, rng=0).table))
    tell("intervals", np.stack(srf.intervals(fit, X, F, coverage=0.8, rng=0).predict(X)))
    tell("calibrated", srf.calibrated(of_labels, X, LABELS, rng=0).predict_proba(X))
    model = srf.distill(lambda X: X[:, 0], X, n_made=100, effort=0.02, rng=0)
    tell("distill", predictions(model, X))
    check(model.info.fidelity > 0.9, "a model near its teacher")
    for name in ("SparseRF", "HARFE", "MFGA", "DRP"):
        regressor = getattr(estimators, f"{name}Regressor")(random_state=0)
        tell(f"{name}Regressor", regressor.fit(X, F).predict(X))
    try:
        srf.mfga(X, F, n_nonzero_coefs=-1)
    except ValueError as error:
        check("n_nonzero_coefs" in str(error), "an error that names the argument")
    else:
        check(False, "that a wrong argument is refused")


def main():
    warnings.filterwarnings("ignore", category=srf.ConvergenceWarning)
    if sys.argv[1:] == ["raise"]:
        np.seterr(all="raise")
    with tempfile.TemporaryDirectory() as folder:
        all_uses(all_fits(), Path(folder))
    all_checks()


if __name__ == "__main__":
    main()
