"""Pictures of models: what is drawn, not how it looks."""

import io
import re
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from scipy.sparse import csr_array

import sparserf as srf
from sparserf import plot

from .fitted_models import bumps

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 5))
Y = np.sin(3 * X[:, 0]) + 2 * X[:, 1] * X[:, 2]
EFFECT = "effect on the prediction"


@pytest.fixture(autouse=True)
def closed():
    """Close all figures after each test."""
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    """A model of terms of two inputs."""
    return srf.harfe(X, Y, order=2, n_components=2000, n_nonzero_coefs=60, alpha=1e-4, rng=0)


def test_input_usage(model):
    ax = plot.input_usage(model)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, model.input_usage())
    assert plot.input_usage(model, names=list("abcde"), ax=ax) is ax
    assert [label.get_text() for label in ax.get_xticklabels()] == list("abcde")


@pytest.mark.parametrize("backend", ["inline", "module://matplotlib_inline.backend_inline", "agg"])
def test_in_a_notebook_a_picture_is_shown_once(model, backend, monkeypatch):
    """A notebook shows what a cell returns, and then all figures that pyplot holds; in a script
    plt.show() shows the latter."""
    plt = matplotlib.pyplot
    plt.close("all")
    monkeypatch.setattr(plt, "get_backend", lambda: backend)
    figure = plot.effects(model, X, n_panels=1)
    assert plt.get_fignums() == ([figure.number] if backend == "agg" else [])
    figure.savefig(io.BytesIO())
    plt.close("all")


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_effects_show_what_is_there(model, kind):
    """The strongest parts are those of the target, for dense X and CSR."""
    fig = plot.effects(model, kind(X), names=list("abcde"), n_panels=4)
    axes = [ax for ax in fig.axes if ax.get_xlabel()]
    labels = [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes]
    assert (
        labels[0] == ("a", EFFECT)
        and {*labels[1:3]} == {("b", ""), ("c", "")}
        and labels[3] == ("b", "c")
    )
    curve = next(ax for ax in axes if ax.get_xlabel() == "a").lines[0]
    x, y = curve.get_data()
    assert np.abs(y - np.sin(3 * x)).max() < 0.25


def drawn(figure):
    """Return the values of each part that is drawn, by the names of its inputs, and the points of
    each input."""
    parts, points = {}, {}
    for ax in figure.axes:
        meshes = [each for each in ax.collections if isinstance(each, QuadMesh)]
        name = ax.get_xlabel()
        if name and meshes:
            parts[name, ax.get_ylabel()] = meshes[0].get_array().T
        elif name:
            points[name], parts[(name,)] = ax.lines[0].get_data()
    return parts, points


OF_TWO = srf.Taylor(2, 0.5).draw(None, 2).concat(srf.RandomNeurons("sin", 1).draw(40, 2, 0))
OF_TWO = OF_TWO.concat(srf.Linear().draw(None, 2))
# the bumps of two inputs alone
BUMPS = srf.FeatureSet(bumps(5).blocks[1:], 5).concat(srf.Linear().draw(None, 5))
SHOWN_WHOLE = {
    "cosines": lambda: srf.harfe(
        X[:, :3],
        X[:, 0] * X[:, 1] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 0]) * X[:, 2],
        order=2,
        n_components=500,
        n_nonzero_coefs=40,
        alpha=1e-4,
        rng=0,
    ),
    "linear": lambda: srf.drp(X, Y, alpha=0.01, rng=0),
    "bumps": lambda: srf.mfga(X, Y, features=BUMPS, n_nonzero_coefs=20, alpha=1e-3, rng=0),
    # a Taylor feature sees both inputs, by its envelope
    "products": lambda: srf.mfga(
        X[:, 1:3], Y, features=OF_TWO, n_nonzero_coefs=20, alpha=1e-3, rng=0
    ),
    "products, interleaved": lambda: srf.mfga(
        X[:, 1:3],
        Y,
        features=OF_TWO.take(np.random.default_rng(0).permutation(len(OF_TWO))),
        n_nonzero_coefs=20,
        alpha=1e-3,
        rng=0,
    ),
}


@pytest.mark.parametrize("name", SHOWN_WHOLE)
def test_parts_add_up_to_the_model(name):
    """Where no term has more than two inputs, f is the sum of the parts and a constant at any
    point: nothing is lost in taking the curves out of the surfaces."""
    model = SHOWN_WHOLE[name]()
    d = model.n_features_in
    names = list("abcde")[:d]
    figure = plot.effects(model, X[:, :d], names=names, n_panels=15, n_points=7)
    parts, points = drawn(figure)
    assert "Parts of the model; all panels together: R²\xa0=\xa01.000" in figure.get_suptitle()
    at = dict(zip(names, RNG.integers(0, 7, (d, 50)), strict=True))
    rows = [points[each][at[each]] if each in points else np.zeros(50) for each in names]
    f = model.predict(np.stack(rows, axis=1))
    total = sum(values[tuple(at[each] for each in part)] for part, values in parts.items())
    assert np.ptp(f) > 1 and np.ptp(f - total) < 1e-10


def test_what_cannot_be_drawn(model):
    with pytest.raises(ValueError, match="names"):
        plot.input_usage(model, names=["a"])
    with pytest.raises(TypeError, match="model"):
        plot.input_usage(3)


@pytest.fixture(scope="module")
def classes():
    """A model of three classes, each of which depends on inputs of its own."""
    labels = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + (X[:, 1] > 0), [-0.2, 0.9])]
    return srf.harfe(
        X, labels, loss="logistic", order=1, n_components=50, n_nonzero_coefs=6, alpha=1e-4, rng=0
    )


@pytest.mark.slow
def test_an_output_of_several(classes):
    with pytest.raises(ValueError, match=r"output must be given .*\['high', 'low', 'middle'\]"):
        plot.effects(classes, X)
    for wrong in ("none", 3, -1, 1.0):
        with pytest.raises(ValueError, match="output must be one of"):
            plot.effects(classes, X, output=wrong)
    curves = {}
    for output in ("low", 1, "high"):
        ax = plot.effects(classes, X, names=list("abcde"), output=output).axes[0]
        assert ax.get_ylabel().startswith("effect on the log odds of") and ax.get_xlabel() == "a"
        curves[output] = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(curves["low"], curves[1])
    assert curves["low"][0] > 0 > curves["low"][-1] and curves["high"][0] < 0 < curves["high"][-1]
    worth = classes.importances(X, output="low")
    assert abs(worth.share.sum() - 1) < 1e-9 and worth.order[0] == 0


@pytest.mark.slow
def test_two_classes_speak_for_the_second():
    model = srf.drp(X, np.where(X[:, 0] > 0, "b", "a"), loss="logistic", alpha=0.1, rng=0)
    for output, sign in ((None, 1), ("b", 1), ("a", -1)):
        ax = plot.effects(model, X, output=output).axes[0]
        assert ax.get_ylabel() == f"effect on the log odds of {'a' if sign < 0 else 'b'}"
        assert (
            sign * np.diff(ax.lines[0].get_ydata()).min() > 0
            or sign * np.diff(ax.lines[0].get_ydata()).max() > 0
        )


def test_targets_are_outputs_by_their_number():
    model = srf.mfga(
        X,
        np.stack([X[:, 0], X[:, 1]], axis=1),
        features=srf.Linear(),
        n_nonzero_coefs=2,
        alpha=1e-3,
        rng=0,
    )
    for k in range(2):
        figure = plot.effects(model, X, output=k)
        assert [ax.get_xlabel() for ax in figure.axes] == [f"x{k}"] and figure.axes[
            0
        ].get_ylabel() == f"effect on target {k}"
    with pytest.raises(ValueError, match="output must be one of 2 targets, 0 to 1, got 2"):
        plot.effects(model, X, output=2)


@pytest.mark.slow
def test_a_category_of_many_levels_costs_little():
    """The most frequent levels have a value each and the others share one; what is drawn is named,
    and no place is empty."""
    rng = np.random.default_rng(0)
    n, many = 500, 250
    code = np.minimum(rng.geometric(0.03, n), many) - 1
    code[:many] = np.arange(many)
    a, b = rng.uniform(-1, 1, (2, n))
    table = pd.DataFrame({"name": [f"level of number {k:03d}" for k in code], "a": a, "b": b})
    y = 2 * (code == 0) - (code == 1) + a + a * b
    model = srf.sparse_rf(table, y, alpha=0.02, n_components=300, rng=0)
    figure = plot.effects(model, table)
    ax = next(ax for ax in figure.axes if ax.get_xlabel().startswith("name"))
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert (
        len(labels) == 13 and labels[-1] == "238 others" and max(map(len, labels)) <= plot.LONGEST
    )
    assert ax.get_xticklabels()[0].get_rotation() == 90
    assert all(ax.get_xlabel() or ax.get_ylabel() for ax in figure.axes) and all(
        ax.axison for ax in figure.axes
    )


def test_curves_are_what_the_model_makes_of_an_input():
    """The target depends on one of several inputs that are nearly the same: many sums come as near,
    but the model sees one input."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((600, 1)) + 0.05 * rng.standard_normal((600, 3))
    model = srf.mfga(
        Z, 2 * Z[:, 0], features=srf.Linear(), scale=None, n_nonzero_coefs=1, alpha=1e-9, rng=0
    )
    seen = srf.RandomNeurons("sin", 3).draw(20, 3, 0)  # terms of all inputs, with hardly any effect
    both = replace(
        model,
        features=model.features.concat(seen.take([0])),
        coef=np.append(model.coef, 1e-3),
        support=np.arange(2),
    )
    figure = plot.effects(both, Z, names=list("abc"))
    parts, points = drawn(figure)
    j = int(model.support[0])
    name = "abc"[j]
    assert "A projection" in figure.get_suptitle() and list(parts) == [(name,)]
    slope = np.ptp(model.predict(Z)) / np.ptp(Z[:, j])
    np.testing.assert_allclose(
        parts[(name,)], slope * (points[name] - Z[:, j].mean()), atol=0.01 * slope
    )


def dependent(n=600):
    """Return numbers that nearly repeat one another, a category of many levels that goes along with
    them, and a target."""
    rng = np.random.default_rng(0)
    size = rng.standard_normal(n)
    width, length = size + 0.1 * rng.standard_normal((2, n))
    place = np.clip(np.round(4 * (size + 0.5 * rng.standard_normal(n)) + 15), 0, 29).astype(int)
    worth = rng.standard_normal(30)[place]
    color = rng.integers(0, 8, n)
    table = pd.DataFrame(
        {
            "size": size,
            "width": width,
            "length": length,
            "place": [f"place {k}" for k in place],
            "color": np.array(["I1", "IF", "SI1", "SI2", "VS1", "VS2", "VVS1", "VVS2"])[color],
            "chance": rng.standard_normal(n),
        }
    )
    return table, 3 * size - width + np.maximum(length, 0) + 2 * worth * (
        size > 0
    ) + 0.3 * color * np.exp(0.3 * size)


def shares_in(figure):
    """Return the printed share of each input in a picture of effects, in the order of its
    panels."""
    titles = [ax.get_title().split(": ") for ax in figure.axes if ": " in ax.get_title()]
    return dict(titles)


ESTIMATORS = {
    "cosines and steps": ("SparseRF", {"alpha": 0.02, "n_components": 300}),
    "of two inputs": ("SparseRF", {"alpha": 0.02, "n_components": 300, "max_order": 2}),
    "linear": ("DRP", {"alpha": 0.01}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("of", ["Regressor", "Classifier"])
def test_shares_of_inputs_are_the_same_everywhere(kind, of):
    """For inputs that depend on one another, summary, importances, picture and estimator show the
    same shares in the same order: the mean sizes of Shapley values, none below zero, that add up to
    one."""
    import sparserf.sklearn

    (table, y), (name, how) = dependent(), ESTIMATORS[kind]
    estimator = getattr(sparserf.sklearn, name + of)(**how, random_state=0)
    estimator.fit(table, y if of == "Regressor" else np.where(y > y.mean(), "dear", "cheap"))
    model = estimator.model_
    page, worth = model.summary(table), model.importances(table)
    shares = {row.name: row.share for row in page.inputs}
    assert list(shares.items()) == [
        (worth.names[j], worth.share[j]) for j in worth.order if worth.names[j] in shares
    ]
    assert len(shares) > 3 and all(
        worth.share[j] == 0 for j in worth.order if worth.names[j] not in shares
    )
    assert (
        list(shares.values()) == sorted(shares.values(), reverse=True) and min(shares.values()) >= 0
    )
    assert abs(sum(shares.values()) - 1) < 1e-12
    size = np.abs(model.shapley(table, rng=0)).mean(axis=0)
    every = model.importances(table, n_rows=len(table))
    np.testing.assert_allclose(every.share, size / size.sum(), rtol=1e-9)
    np.testing.assert_array_equal(estimator.feature_importances_, worth.share)
    printed = dict(re.findall(r"^(\w+) +(\d+\.\d %) ", str(page), re.MULTILINE))
    drawn = shares_in(plot.effects(model, table))
    assert list(drawn.items()) == [
        (name, printed[name]) for name in shares if shares[name] >= plot.LEAST_SHARE
    ]


def test_the_picture_of_an_output_has_the_shares_of_this_output(classes):
    for output in ("low", "high"):
        worth = classes.importances(X, output=output)
        drawn = shares_in(plot.effects(classes, X, output=output))
        assert drawn and drawn == {
            f"x{j}": f"{100 * worth.share[j]:.1f} %" for j in worth.order[: len(drawn)]
        }


def test_each_input_that_matters_has_a_curve_before_its_pairs(model):
    """It has a curve, a flat one, even if all that it does is together with another."""
    titles = [
        ax.get_title().split(": ")[0]
        for ax in plot.effects(model, X, names=list("abcde"), n_panels=4).axes
    ]
    assert titles[0] == "a" and {*titles[1:3]} == {"b", "c"} and titles[3] == "b and c"


@pytest.mark.slow
def test_labels_of_ticks_lie_beside_one_another():
    """This holds for levels and for numbers with many digits; a long name of a column is cut."""
    rng = np.random.default_rng(0)
    table, _ = dependent(300)
    table = table.assign(
        dollars=rng.uniform(250_000, 350_000, 300), rate=rng.uniform(0.0021, 0.0049, 300)
    )
    table = table.rename(columns={"chance": "a name that is longer than panels are wide"})
    y = (
        4 * (table["color"] == "IF")
        + table["dollars"] / 1e5
        + 1e3 * table["rate"]
        + (table["place"] > "place 2")
    )
    y += table["a name that is longer than panels are wide"]
    model = srf.sparse_rf(table, y, alpha=0.01, n_components=300, max_order=1, rng=0)
    figure = plot.effects(model, table)
    figure.canvas.draw()
    drawn = {ax.get_xlabel().split(",")[0]: ax for ax in figure.axes if ax.get_xlabel()}
    assert {"color", "dollars", "rate", "a name that is longer t…"} <= set(drawn)
    for ax in drawn.values():
        low, high = ax.get_xlim()
        boxes = [
            label.get_window_extent()
            for label in ax.get_xticklabels()
            if low <= label.get_position()[0] <= high
        ]
        assert len(boxes) > 1 and not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_names_of_the_module_are_those_for_users():
    assert dir(plot) == ["effects", "input_usage", "rules"]


def test_parts_that_tell_nothing_are_not_drawn(model):
    """The parts together never explain more than the whole."""
    figure = plot.effects(model, X)
    assert min(float(share.rstrip(" %")) for share in shares_in(figure).values()) >= 0.5
    assert 0.9 < float(re.search(r"R²\s=\s([\d.]+)", figure.get_suptitle())[1]) <= 1


def test_grey_steps_are_the_rows(model):
    """They are the histogram of all rows, in whatever order the rows come; points are spread over
    all rows."""
    order = np.argsort(X[:, 1])
    figure = plot.effects(model, X[order], names=list("abcde"))
    steps = panel(figure, "b").containers[-1].patches
    low, high = np.percentile(X[:, 1], [1, 99])
    count = np.histogram(X[:, 1], np.linspace(low, high, plot.N_STEPS + 1))[0]
    np.testing.assert_allclose(
        [step.get_height() for step in steps], plot.STEPS_HIGH * count / count.max()
    )
    x = next(ax for ax in figure.axes if ax.get_title() == "b and c").lines[0].get_xdata()
    assert len(x) == plot.MOST_POINTS and np.nanmax(x) > 0.9 and np.nanmin(x) < -0.9


def panel(figure, name):
    """Return the axes of the function of one input."""
    return next(
        ax for ax in figure.axes if ax.get_title().split(": ")[0] == name and ": " in ax.get_title()
    )


def levels_of(ax):
    """Return {level: (the height of its bar, where the bar begins, its alpha)} from left to
    right."""
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    return {
        tick: (bar.get_height(), bar.get_y(), bar.get_alpha())
        for tick, bar in zip(ticks, ax.containers[0], strict=True)
    }


HEIGHTS = {"small": -1.0, "large": 1.5, "middle": 0.2, "none": -0.3}


def of_words(n=600, order=None, gaps=False, numbers=False):
    """Return a table of a category and numbers, and a target in which levels have the effects
    HEIGHTS."""
    rng = np.random.default_rng(0)
    word = rng.choice(list(HEIGHTS), n, p=[0.5, 0.3, 0.195, 0.005])
    y = np.array([HEIGHTS[each] for each in word])
    word = pd.Series(word, dtype=object)
    if gaps:
        word[rng.random(n) < 0.1] = None
    if numbers:
        word = word.map({each: k for k, each in enumerate(HEIGHTS)})
    a = rng.normal(size=n)
    table = pd.DataFrame(
        {"word": word if order is None else pd.Categorical(word, order, ordered=True), "a": a}
    )
    if gaps:
        table.loc[rng.random(n) < 0.1, "a"] = np.nan
    return table, y + 0.5 * a


WAYS = {"whole": {"max_order": 1}, "of two inputs": {"max_order": 2}, "projection": {}}


def fit_words(table, y, way, rng=0):
    return srf.sparse_rf(
        table, y, alpha=0.01, n_components=200, categorical=["word"], rng=rng, **WAYS[way]
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "order", [None, ["none", "small", "middle", "large"], sorted(HEIGHTS), "numbers"], ids=str
)
def test_levels_are_bars_from_zero_the_largest_first_or_in_their_order(way, order):
    table, y = of_words(
        order=order if isinstance(order, list) else None, numbers=order == "numbers"
    )
    bars = levels_of(panel(plot.effects(fit_words(table, y, way), table), "word"))
    heights = [height for height, _, _ in bars.values()]
    if order is None:
        assert (
            np.diff(heights).max() <= 1e-12  # equal up to rounding
            and next(iter(bars)) == "large"
            and list(bars)[-1] == "small"
        )
    else:
        assert list(bars) == (list("0123") if order == "numbers" else order)
    assert all(begin == 0 for _, begin, _ in bars.values())
    share = table["word"].astype(str).value_counts(normalize=True)
    # zero is the mean over the rows
    assert abs(sum(share[level] * height for level, (height, _, _) in bars.items())) < 1e-8
    pale = [alpha for level, (_, _, alpha) in bars.items() if level in ("none", "3")]
    assert pale[0] < 0.5 and max(alpha for _, _, alpha in bars.values()) == 1


@pytest.mark.parametrize("way", WAYS)
def test_missing_and_unknown_levels_have_bars(way):
    table, y = of_words(gaps=True)
    model = fit_words(table, y, way)
    assert list(levels_of(panel(plot.effects(model, table), "word")))[-1] == "missing"
    a = panel(plot.effects(model, table), "a")
    assert [text.get_text() for text in a.texts] == ["missing"] and np.isfinite(
        a.lines[2].get_ydata()
    ).all()
    new = table.assign(word=table["word"].where(table.index % 7 > 0, "new"))
    bars = levels_of(panel(plot.effects(model, new), "word"))
    assert (
        list(bars)[-2:] == ["unknown", "missing"]
        and np.isfinite([height for height, _, _ in bars.values()]).all()
    )


def edges_of(ax):
    """Return the lower and upper edges of the band of a curve, or of the bars."""
    from matplotlib.collections import LineCollection

    (band,) = ax.collections
    if isinstance(band, LineCollection):
        return np.array(band.get_segments())[:, :, 1].T
    (path,) = band.get_paths()
    x = ax.lines[0].get_xdata()
    corners = path.vertices[:-1]
    return [[f(corners[np.isclose(corners[:, 0], at), 1]) for at in x] for f in (np.min, np.max)]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("labels", [False, True], ids=["regression", "classes"])
def test_bands_are_the_least_and_largest_of_the_models(way, labels):
    """Also where a model has other numbers for the levels, or has never seen one."""
    table, y = of_words()
    y, how = (np.where(y > 0, "p", "n"), {"loss": "logistic"}) if labels else (y, {})

    def fit(X, y, **others):
        return srf.sparse_rf(X, y, alpha=0.01, n_components=200, **WAYS[way], **how, **others)

    found = srf.cross_validate(fit, table, y, {}, cv=4, rng=0)
    without = (table["word"] != "middle").to_numpy()
    models = [*found.models, fit(table[without], y[without], rng=0)]
    figure = plot.effects(found.model, table, models=models)
    assert "5 models" in figure.get_suptitle() and len(found.models) == 4
    assert "models" not in plot.effects(found.model, table).get_suptitle()
    level = list(levels_of(panel(figure, "word")))
    curves, bars = [], []
    for model in models:
        alone = plot.effects(model, table)
        curves.append(panel(alone, "a").lines[0].get_ydata())
        heights = levels_of(panel(alone, "word"))
        bars.append([heights.get(each, heights.get("unknown", [np.nan]))[0] for each in level])
    for name, values in (("a", curves), ("word", bars)):
        np.testing.assert_allclose(
            edges_of(panel(figure, name)),
            [np.min(values, axis=0), np.max(values, axis=0)],
            atol=1e-9,
        )


def test_models_that_make_no_band(model):
    other = srf.drp(X[:, :3], Y, alpha=0.1, rng=0)
    labelled = srf.drp(X, np.where(Y > 0, "a", "b"), loss="logistic", alpha=0.1, rng=0)
    for wrong in ([], [other], [labelled], [model, other]):
        with pytest.raises(ValueError, match="models must have"):
            plot.effects(model, X, models=wrong)
    for wrong in (model, 3, [3], "ab"):
        with pytest.raises(TypeError, match="models must be a sequence of SparseModel"):
            plot.effects(model, X, models=wrong)


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, None], ids=["whole", "projection"])
def test_what_has_few_rows_is_faded(order):
    """Inputs are near a diagonal, and one has a gap: the corners of the surface vanish, and the
    curve is dotted in the gap."""
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 600)
    Z = np.stack([a, a + 0.05 * rng.normal(size=600)], axis=1)
    Z[:, 1] += np.sign(Z[:, 1])
    model = srf.harfe(
        Z, Z[:, 0] * Z[:, 1], order=order, n_components=500, n_nonzero_coefs=30, alpha=1e-4, rng=0
    )
    figure = plot.effects(model, Z, names=["a", "b"])
    solid = panel(figure, "b").lines[1].get_data()
    assert (
        np.isnan(solid[1][np.abs(solid[0]) < 0.3]).all()
        and not np.isnan(solid[1][np.abs(solid[0]) > 1.2]).any()
    )
    assert not np.isnan(panel(figure, "b").lines[0].get_ydata()).any()
    assert not np.isnan(panel(figure, "a").lines[1].get_ydata()).any()
    (mesh,) = next(ax for ax in figure.axes if ax.get_title() == "a and b").collections
    alpha = mesh.get_alpha()
    assert alpha[0, -1] == alpha[-1, 0] == 0 and alpha[0, 0] > 0.9 and alpha[-1, -1] > 0.9
    low, high = mesh.get_clim()
    assert low == -high and high <= np.abs(mesh.get_array()[alpha > 0]).max() + 1e-12
    figure.savefig(io.BytesIO())


@pytest.mark.slow
def test_a_row_of_curves_has_one_label_and_one_scale():
    Z = np.random.default_rng(0).uniform(-1, 1, (300, 12))
    model = srf.drp(Z, Z @ np.arange(1, 13), alpha=1e-3, rng=0)
    figure = plot.effects(model, Z)
    assert [ax.get_ylabel() for ax in figure.axes] == [EFFECT, "", "", ""] * 3
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    width, height = figure.get_size_inches()
    assert width <= 11.7 and height <= 8.3  # a page


@pytest.mark.slow
def test_names_of_many_inputs_do_not_overlap():
    Z = np.random.default_rng(0).uniform(-1, 1, (100, 85))
    ax = plot.input_usage(
        srf.drp(Z, Z[:, 0], alpha=0.1, rng=0),
        names=[f"a name of an input, number {k}" for k in range(85)],
    )
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (lambda: plot.effects(model, X), lambda: plot.input_usage(model)):
        with pytest.raises(ImportError, match=r"pip install sparserf\[plot\]"):
            draw()


def test_rules_are_bars_with_their_conditions(model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 80, 400), "bmi": rng.normal(25, 4, 400)})
    y = 3.0 * ((X.age > 40) & (X.bmi <= 25)) + 0.01 * rng.normal(size=400)
    of_rules = srf.sparse_rf(X, y, features=srf.Rules(), alpha=0.05, rng=0)
    ax = plot.rules(of_rules, X, n_rules=3)
    first = ax.get_yticklabels()[0].get_text()
    assert "age > 40" in first and "bmi <= 25" in first and "% of rows" in first
    widths = [bar.get_width() for bar in ax.patches]
    added = of_rules.coef * of_rules.features.transform(X).max(axis=0)
    assert np.isclose(abs(widths[0]), np.abs(added).max())
    assert len(widths) == min(3, len(added))
    with pytest.raises(ValueError, match="rules alone"):
        plot.rules(model)
    with pytest.raises(ValueError, match="n_rules"):
        plot.rules(of_rules, n_rules=0)
