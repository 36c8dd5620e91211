"""The protocols of the Sparse-RF, HARFE and MFGA papers. `said` is what the experiment's file says
of a set."""

import json
import time
from pathlib import Path
from types import SimpleNamespace as Data

import numpy as np
from experiments.data import WORKERS, few, stored, value
from experiments.fits import ours

import sparserf as srf
from sparserf.rows import as_rows

TABLES = Path(__file__).parents[2] / "docs/tables"


def wrong(model, X, y):
    """The root mean square error, or the share of wrong labels."""
    z = model.predict(X, workers=WORKERS)
    return float(np.sqrt(np.mean((z - y) ** 2)) if model.classes is None else np.mean(z != y))


def scaled(kernel, width, X):
    """The map with `width` times its default gamma or radius."""
    of = srf.Perceptron() if kernel == "perceptron" else srf.Fourier(kernel)
    default = of.resolve(as_rows(X), np.random.default_rng(0))
    if kernel == "perceptron":
        return srf.Perceptron(radius=default.radius * width, center=default.center)
    return srf.Fourier(kernel, gamma=width * default.gamma)


def sparse_rf(data, seed, first, said, kernel, widths):
    """A path over alpha, chosen with the width (on seed 0) by a fifth of at most 20,000 training
    rows."""
    # which leaves more terms
    n, n_alpha = len(data.y), np.geomspace(*said["n_alpha"]) * (2 if kernel == "perceptron" else 1)

    def path(width, X, y, X_test, y_test, seed):
        start, how = (
            time.process_time(),
            {
                "features": scaled(kernel, width, X),
                "scale": None,
                "loss": data.loss,
                "tol": 1e-3,
            },
        )
        models = srf.sparse_rf_path(X, y, alphas=n_alpha / n, rng=seed, workers=WORKERS, **how)
        return (
            time.process_time() - start,
            models,
            [wrong(model, X_test, y_test) for model in models],
        )

    def held_out(width, seed, most):
        order = np.random.default_rng([seed, 1]).permutation(n)[:most]
        held, fitted = np.split(order, [len(order) // 5])
        return path(width, data.X[fitted], data.y[fitted], data.X[held], data.y[held], seed)[-1]

    width = (
        first["width"] if first else min(widths, key=lambda width: min(held_out(width, 0, 10_000)))
    )
    chosen = int(np.argmin(held_out(width, seed, 20_000)))
    seconds, models, errors = path(width, data.X, data.y, data.X_test, data.y_test, seed)
    terms = [len(model.features) for model in models]
    found = {
        "width": width,
        "chosen": chosen,
        "terms": terms,
        "errors": errors,
        "path_seconds": seconds,
    }
    reach = next(
        (
            size
            for size, error in zip(terms, errors, strict=True)
            if error <= said["paper"][kernel][0]
        ),
        None,
    )
    return found | {"error": errors[chosen], "size": terms[chosen], "reach": reach}


def width_of(name, kernel):
    """What was chosen for Sparse-RF."""
    records = map(json.loads, (TABLES / "sparse_rf.jsonl").read_text().splitlines())
    return next(r["width"] for r in records if (r["set"], r["contender"]) == (name, kernel))


def rival(data, name, said, kernel, machine):
    """Ridge on random features, or the kernel machine, n alpha = 1."""
    features = scaled(kernel, width_of(name, kernel), data.X)
    if machine:
        model, data = kernel_machine(kernel, features, data, 1, said["kernel_rows"])
    else:
        model = ours(data, "rks", n_alpha=1, features=features, n_components=said["n_components"])
    rows = len(data.y) if machine else said["n_components"]
    return {
        "error": wrong(model, data.X_test, data.y_test),
        "rows": rows,
        "size": len(model.support),
    }


def kernel_machine(kernel, features, data, n_alpha, rows):
    """(model, the rows it has seen); a perceptron kernel of another radius is, with an intercept, a
    multiple of the default."""
    some = np.random.default_rng(0).permutation(len(data.y))[:rows]
    data = Data(**vars(data) | {"X": data.X[some], "y": data.y[some]})
    options = {} if kernel == "perceptron" else {"gamma": features.gamma}
    n_alpha *= (
        features.radius / srf.Perceptron().resolve(as_rows(data.X), None).radius
        if kernel == "perceptron"
        else 1
    )
    return ours(data, "kernel_machine", kernel=kernel, n_alpha=n_alpha, **options), data


def mfga(data, seed, first, said, make, rows=10**9, figure=True):
    """The best n alpha on test rows, as in the paper, and the error against M; and settings by a
    fifth of the training rows."""
    gamma = srf.Fourier("gaussian", "knn").resolve(as_rows(data.X), np.random.default_rng(0)).gamma
    n_alphas, widths = (
        (10.0 ** np.arange(-5, 6, 2)).tolist()[: few(6, 2)],
        (0.25, 1.0, 4.0)[: few(3, 1)],
    )
    most = min(said["M"], srf.Taylor(said["degree"]).count(data.X.shape[1]) + data.X.shape[1])
    M = [min(most, max(1, int(share * said["M"]))) for share in (0.1, 0.2, 0.4, 0.7, 1.0)]

    def fit(X, y, n_alpha, M=most, width=1.0, fit_intercept=False):
        some = (
            np.random.default_rng(seed).permutation(len(y))[:rows] if rows < len(y) else slice(None)
        )
        how = {
            "loss": data.loss,
            "alpha": n_alpha / len(y[some]),
            "fit_intercept": fit_intercept,
            "workers": WORKERS,
        }
        start = time.process_time()
        model = value(
            make, X=X[some], y=y[some], M=M, gamma=width * gamma, how=how, rng=seed, said=said
        )
        return model, time.process_time() - start

    def error(model, X, y):
        return 100 * (wrong(model, X, y) ** (1 if data.loss == "logistic" else 2))

    def validated(settings):
        held, rest = np.split(np.random.default_rng(0).permutation(len(data.y)), [len(data.y) // 5])
        return error(fit(data.X[rest], data.y[rest], **settings)[0], data.X[held], data.y[held])

    grid = [
        {"width": width, "n_alpha": n_alpha, "fit_intercept": True}
        for width in widths
        for n_alpha in n_alphas
    ]
    settings = first["settings"] if first else min(grid, key=validated)
    tried = [fit(data.X, data.y, n_alpha) for n_alpha in n_alphas]
    worth = [error(model, data.X_test, data.y_test) for model, _ in tried]
    best = int(np.argmin(worth))
    curve = (
        [error(fit(data.X, data.y, n_alphas[best], m)[0], data.X_test, data.y_test) for m in M]
        if figure
        else worth[best]
    )
    found = {
        "paper": worth[best],
        "paper_seconds": tried[best][1],
        "n_alpha": n_alphas[best],
        "figure": curve,
        "M": M,
    }
    model, seconds = fit(data.X, data.y, **settings)
    found |= {
        "validated": error(model, data.X_test, data.y_test),
        "validated_seconds": seconds,
        "settings": settings,
    }
    return found | {"chosen": f"× {settings['width']:g}, {settings['n_alpha']:g}"}


def harfe_rows(name, said, seed):
    """(X, y, X_test, {what: its targets}) of a formula, clean and noisy; or of a stored set, at
    first in the stored order."""
    rng, n = np.random.default_rng(seed), said["rows"]
    if "f" in said:
        X = rng.uniform(*said["range"], (sum(n), said["d"]))
        clean = value(said["f"], X=X)
        y = clean + said["noise"] * rng.standard_normal(len(X)) if said["noise"] else clean
        return X[: n[0]], y[: n[0]], X[n[0] :], {"clean": clean[n[0] :], "noisy": y[n[0] :]}
    X, y, _ = stored(name)
    order = np.arange(len(y)) if seed == 0 else rng.permutation(len(y))
    train, test = order[: n[0]], order[n[0] : sum(n)]
    if name == "galaxy":
        y = y / y.std()
    else:
        sd = X[train].std(axis=0, ddof=1)
        X, y = (
            (X - X[train].mean(axis=0)) / np.where(sd > 1e-8, sd, 1),
            (y - y[train].mean()) / y[train].std(ddof=1),
        )
    X = np.hstack([X, rng.standard_normal((len(y), said["noise"]))])
    return X[train], y[train], X[test], {"noisy": y[test]}


def harfe(_, name, said, best=None, centre=False, **options):
    """The error's mean (or what is said), its deviation and that of the first of many samples or
    splits."""
    found, sizes, repeats = {}, [], few(said["repeats"], 2)
    chosen = choose(name, said, centre, **best) if best else None
    for seed in range(repeats):
        X, y, X_test, targets = harfe_rows(name, said, seed)
        X, X_test = (2 * X - 1, 2 * X_test - 1) if centre else (X, X_test)
        settings = (
            {"n_nonzero_coefs": min(int(chosen[1] * len(y)), said["N"]), "tol": 0} | chosen[0]
            if best
            else options
        )
        N = min(said["N"], 10_000) if best else said["N"]
        settings |= {"n_components": N, "unscaled": True}
        model = ours(Data(X=X, y=y, loss="squared"), "harfe", seed, said, **settings)
        sizes.append(len(model.features))
        for what, truth in targets.items():
            found.setdefault(what, []).append(
                value(said["error"], z=model.predict(X_test), y=truth)
            )
    result = {"terms": float(np.mean(sizes)), "of": repeats} | (
        {"chosen": chosen[2]} if best else {}
    )
    for what, errors in found.items():
        some = errors[said.get("skip", 0) :]
        result |= {
            what: float(getattr(np, said.get("mean", "mean"))(some)),
            f"{what}_sd": float(np.std(some)),
        }
        result[f"{what}_first"] = float(errors[0])
    return result


def choose(name, said, centre, orders, magnitude, positive, samples, sizes=8):
    """(options, s / rows, their text) of least error on held-out quarters, the mean over
    samples."""
    X, y, *_ = harfe_rows(name, said, 0)
    if "f" in said:
        some = [harfe_rows(name, said, seed)[:2] for seed in range(few(samples, 1))]
    else:
        order = [
            np.random.default_rng([i, 2]).permutation(len(y))[:500]
            for i in range(max(1, 512 // len(y)))
        ]
        some = [(X[rows], y[rows]) for rows in order]
    laws, N, n = (
        (("normal", 1.0), ("normal", 0.3), ("uniform", 1.0)),
        min(said["N"], few(10_000, 200)),
        len(some[0][1]),
    )
    maps = [
        srf.RandomNeurons("sin", q, *law)
        for q in value(orders, said=said)
        if q <= X.shape[1]
        for law in laws[: few(3, 1)]
    ]
    alphas = [("magnitude", a) for a in magnitude] + [("positive", a) for a in positive]
    grid = [
        {"features": m, "selection": k, "alpha": a} for m in maps for k, a in alphas[: few(99, 2)]
    ]
    n -= n // 4  # rows to fit
    sizes, errors = np.geomspace(8, min(2 * n, N // 2), sizes).astype(int), []
    for settings in grid:
        errors.append(np.zeros(len(sizes)))
        for seed, (X, y) in enumerate(some):
            held, X = (
                np.random.default_rng([seed, 1]).permutation(len(y)) < len(y) // 4,
                2 * X - 1 if centre else X,
            )
            how = {
                "n_nonzero_coefs": sizes,
                "n_components": N,
                "scale": None,
                "tol": 0,
                "rng": seed,
                "workers": WORKERS,
            } | settings
            models = srf.harfe_path(X[~held], y[~held], **how)
            errors[-1] += [np.mean((model.predict(X[held]) - y[held]) ** 2) for model in models]
    best, size = np.unravel_index(np.argmin(errors), (len(grid), len(sizes)))
    of, share = grid[best]["features"], sizes[size] / n
    law = (
        f"order {of.order}, {of.weights} {of.scale:g}, alpha {grid[best]['alpha']:g}, "
        f"{grid[best]['selection']}"
    )
    return grid[best], share, f"s = {share:.2g} m, {law}"
