"""The README's first models: what its Python prints, how others do on the same rows, a picture."""

import contextlib
import io
import re
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from experiments.fits import BATCH, WORKERS, clock
from experiments.others import PICTURES

import sparserf as srf

ROOT = Path(__file__).parents[2]
N_TERMS = (10, 20, 30, 50, 100, 200, 500)  # of the default in fewer


def models(_, file):
    """Run the README's Python, and fit others as they come to the same rows."""
    import catboost
    import lightgbm

    said, seconds, names = printed()
    known, new, y = names["known"], names["new"], names["y"]
    train, test = y[: len(known)], y[len(known) :]
    each = {
        "ten rules": names["rules"],
        "`sparse_rf(X, y)`": names["model"],
        "the same in 30 terms": names["small"],
    }
    others = {
        "LightGBM": lightgbm.LGBMRegressor(verbose=-1, n_jobs=WORKERS),
        "CatBoost": catboost.CatBoostRegressor(
            verbose=0, thread_count=WORKERS, allow_writing_files=False
        ),
    }
    for name, model in others.items():
        start = time.perf_counter()
        each[name] = model.fit(known, train)
        seconds.append(time.perf_counter() - start)
    each["a linear model"] = srf.drp(known, train, alpha=1e-6, scale=None)

    def error(model):
        return float(np.sqrt(np.mean((model.predict(new) - test) ** 2)))

    rows = new.iloc[np.resize(np.arange(len(new)), BATCH)]
    found = {
        name: {
            "error": error(model),
            "size": size(model),
            "batch_us": clock(model.predict, rows, 5),
        }
        for name, model in each.items()
    }
    timed = [name for name in each if name not in ("the same in 30 terms", "a linear model")]
    for name, passed in zip(timed, seconds, strict=True):
        found[name]["fit"] = passed
    found["ten rules"]["says"] = said
    smaller = [srf.prune(names["model"], known, max_terms=n) for n in N_TERMS]
    curve = [(size(model), error(model)) for model in [*smaller, names["model"]]]
    figure = picture_of(names["rules"], known, curve, found)
    figure.savefig(PICTURES / file, dpi=100)
    return {"each": found}


def printed():
    """Return what the first block of the README's Python prints, the seconds of each of its fits,
    and the names that it leaves."""
    text, said, seconds, names = (ROOT / "README.md").read_text(), [], [], {}

    def timed(*args, fit=srf.sparse_rf, **options):
        start = time.perf_counter()
        model = fit(*args, **options)
        seconds.append(time.perf_counter() - start)
        return model

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("tools").symlink_to(ROOT / "tools")
        for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            with (
                patch.object(srf, "sparse_rf", timed),
                contextlib.redirect_stdout(io.StringIO()) as out,
            ):
                exec(code, names)
            said.append(out.getvalue())
    return said[0], seconds, names


def size(model):
    """Return the numbers that predictions depend on: those of all terms; of trees the value of each
    leaf, the column and threshold of each split, of which CatBoost's trees have one a level."""
    if hasattr(model, "features"):
        return model.size
    if hasattr(model, "booster_"):
        leaves = [tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"]]
        return sum(n + 2 * (n - 1) for n in leaves)
    return sum(int(n) + 2 * int(n).bit_length() - 2 for n in model.get_tree_leaf_counts())


def picture_of(rules, rows, curve, found):
    """Return a figure of the rules, and of errors against sizes."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 4), layout="constrained", width_ratios=(1, 1.2)
    )
    srf.plot.rules(rules, rows, ax=left)
    right.plot(*zip(*curve, strict=True), "o-", ms=4, color="C0")
    places = {  # colour, label, shift from the point, how it is aligned
        "ten rules": ("C2", "ten rules", (9, 0), "left"),
        "`sparse_rf(X, y)`": (
            "C0",
            "sparse_rf(X, y), in all\nits terms and in fewer",
            (-6, -20),
            "right",
        ),
        "LightGBM": ("C1", "LightGBM", (0, 14), "center"),
        "CatBoost": ("C3", "CatBoost", (8, -16), "right"),
    }
    for name, (color, label, shift, aligned) in places.items():
        at = found[name]["size"], found[name]["error"]
        right.plot(*at, "o", ms=8, color=color)
        right.annotate(
            label, at, shift, textcoords="offset points", color=color, ha=aligned, va="center"
        )
    linear = found["a linear model"]["error"]
    right.axhline(linear, ls="--", color="0.5", lw=1)
    right.text(
        0.98,
        linear,
        "a linear model",
        transform=right.get_yaxis_transform(),
        color="0.4",
        ha="right",
        va="bottom",
    )
    right.set(xscale="log", xlabel="numbers stored", ylabel="error on new rows, dB")
    right.margins(0.1, 0.25)
    return figure
