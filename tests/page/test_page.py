"""The page of a model: it holds what it says, names are text, and it asks nothing of others."""

import json
import re
from base64 import b64encode
from functools import partial
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf.columns.table import Table
from sparserf.explain.evaluate import read_numbers
from sparserf.page.columns import columns_of, made_rows
from sparserf.page.effects import EffectRows

from ..export.javascript import needs_node, rows_of, run
from ..fitted_models import FITS, TIMES, X, Y

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=http://x.example onerror=alert(1)>",
    "--><b>",
    "&lt;i&gt; $title ${data}",
    'a" onload="alert(1)',
    "__proto__",
]
FILES = Path(__file__).parents[1] / "files"
QUICK = {"time_limit": 0.1}


class Read(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    @property
    def scripts(self):
        """The data and the script."""
        return [text for text in self.texts["script"] if text.strip()]

    @property
    def content(self):
        return json.loads(self.scripts[0])


def hostile_frame(n=300):
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(n, len(HOSTILE))), columns=HOSTILE)
    data["of levels"] = np.array(HOSTILE, object)[rng.integers(0, len(HOSTILE), n)]
    y = data[HOSTILE].to_numpy() @ np.arange(1.0, 1 + len(HOSTILE))
    labels = np.where(y + data["of levels"].map(HOSTILE.index) > 0, HOSTILE[0], HOSTILE[1])
    return data, labels


@pytest.mark.parametrize("with_rows", [True, False])
def test_hostile_names_are_text_and_nothing_is_loaded(with_rows):
    data, labels = hostile_frame()
    rules = {"features": srf.Rules(), "alpha": 0.02, "n_components": 200, "rng": 0}
    model = srf.sparse_rf(data, labels, loss="logistic", **rules)
    given = {"X": data, "y": labels} if with_rows else {}
    plain = Read(srf.drp(X, Y, alpha=0.01, rng=0).to_html(**QUICK))
    text = model.to_html(**given, title=HOSTILE[0], **QUICK)
    page = Read(text)
    assert page.tags == plain.tags and page.texts["title"] == [HOSTILE[0]]
    sources = {"src", "href", "action", "data", "srcset", "poster", "background"}
    links = [value for _, name, value in page.attributes if name in sources]
    assert links and all(link.startswith("#") for link in links)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert len(page.scripts) == 2 and {column["name"] for column in page.content["columns"]} <= {
        *HOSTILE,
        "of levels",
    }
    assert "url(" not in page.texts["style"][0] and "@import" not in page.texts["style"][0]


def test_the_policy_allows_the_script_and_the_style_alone():
    page = Read(srf.drp(X, Y, alpha=0.01, rng=0).to_html(**QUICK))
    (policy,) = [v for tag, name, v in page.attributes if name == "content" and "default" in v]
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == parts["base-uri"] == parts["form-action"] == "'none'"
    for which, text in (("script", page.scripts[1]), ("style", page.texts["style"][0])):
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert parts[f"{which}-src"] == f"'sha256-{digest}'"
    assert set(parts) == {"default-src", "script-src", "style-src", "base-uri", "form-action"}


@pytest.mark.parametrize("name", FITS)
def test_models_of_every_kind_have_pages(models, name):
    model = models[name]
    y = {"counts": np.exp(Y), "hazards": TIMES, "two classes": np.where(Y > 0, "a", "b'")}.get(
        name, Y
    )
    y = np.digitize(Y, [-1, 1]) if name in ("multinomial", "three classes") else y
    y = np.digitize(Y, [-1, 0.5, 1]) if name == "ordered classes" else y
    for rows in ({}, {"X": X, "y": y}):
        content = Read(model.to_html(**rows, **QUICK)).content
        assert len(content["terms"]) == len(model.features)
        seen = np.flatnonzero(model.features.columns_seen).tolist()
        assert sorted(column["at"] for column in content["columns"]) == seen
        assert (content["errors"] is None) == (not rows)
        assert len(content["curves"]) == len(seen)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.npz")), ids=lambda path: path.stem)
def test_models_from_files_have_pages(path):
    model = srf.load(path)
    content = Read(model.to_html(**QUICK)).content
    seen = np.flatnonzero(model.features.columns_seen).tolist()
    assert sorted(column["at"] for column in content["columns"]) == seen


@pytest.mark.slow
def test_errors_are_those_of_the_rows(models):
    model = models["auto"]
    errors = Read(model.to_html(X=X, y=Y, **QUICK)).content["errors"]
    squared = np.square(model.predict(X) - Y)
    assert errors["rows"] == len(X)
    assert errors["measures"][0][1:] == pytest.approx([np.sqrt(squared.mean()), Y.std()], rel=1e-5)
    (question,) = errors["questions"]
    parts = np.array_split(np.argsort(model.predict(X), kind="stable"), 10)
    expected = [[len(k), model.predict(X)[k].mean(), Y[k].mean()] for k in parts]
    np.testing.assert_allclose([each[:3] for each in question["tenths"]], expected, rtol=1e-5)
    for column in question["columns"]:
        assert sum(group[1] for group in column["groups"]) == len(X)
    two = models["two classes"]
    labels = np.where(Y > 0, "a", "b'")
    errors = Read(two.to_html(X=X, y=labels, **QUICK)).content["errors"]
    p = two.predict_proba(X)
    loss = -np.log(np.where(labels == "a", p[:, 0], p[:, 1])).mean()
    wrong = np.mean(two.predict(X) != labels)
    np.testing.assert_allclose([each[1] for each in errors["measures"]], [wrong, loss], rtol=1e-5)


def test_curves_and_maps_are_means_of_the_model(models):
    model = models["auto"]
    rows = X[:100]
    effects, columns = EffectRows(model, rows), columns_of(model, X)
    curve = effects.curve(columns[0])
    for k, point in list(enumerate(curve["points"]))[::9]:
        moved = rows.copy()
        moved[:, 0] = point
        f = model.decision_function(moved) - model.decision_function(rows)
        np.testing.assert_allclose(curve["mean"][0][k], f.mean(), atol=1e-9)
    assert (curve["low"] <= curve["high"]).all() and not len(curve["missing"])
    one, two = effects.pairs(columns)[0]
    found = effects.map(columns[one], columns[two])
    value = found["value"][0]
    assert np.abs(value.mean(axis=0)).max() < 1e-9 and np.abs(value.mean(axis=1)).max() < 1e-9
    f = np.empty(value.shape)
    for i, a in enumerate(found["points"][0]):
        for j, b in enumerate(found["points"][1]):
            moved = X[:20].copy()
            moved[:, [columns[one].place, columns[two].place]] = a, b
            f[i, j] = model.decision_function(moved).mean()
    f = f - f.mean(axis=0) - f.mean(axis=1, keepdims=True) + f.mean()
    np.testing.assert_allclose(value, f, atol=1e-9)


def test_the_effect_of_a_missing_cell(of_frame):
    model, data = of_frame
    rows = read_numbers(model, data[:100])
    (column,) = [each for each in columns_of(model, rows) if each.name == "age"]
    assert column.share_missing == data["age"][:100].isna().mean() > 0
    f = model.decision_function(data[:100].assign(age=np.nan))
    expected = (f - model.decision_function(data[:100])).mean()
    assert EffectRows(model, rows).curve(column)["missing"] == pytest.approx([expected])


def test_columns_without_rows_are_what_the_model_remembers():
    """Without rows, medians and shares of levels are near those of the training rows."""
    rng = np.random.default_rng(0)
    n = 2000
    data = pd.DataFrame({"a": np.exp(rng.normal(size=n)), "b": rng.normal(5, 2, n)})
    data["level"] = rng.choice(["x", "y", "z"], n, p=[0.2, 0.7, 0.1])
    data["few"] = rng.integers(0, 4, n)
    y = np.log(data["a"]) + data["b"] + 2 * (data["level"] == "x") + data["few"]
    model = srf.sparse_rf(data, y, features="gaussian", alpha=0.01, n_components=500, rng=0)
    numbers = read_numbers(model, data)
    known = {c.name: c for c in columns_of(model, None)}
    seen = {c.name: c for c in columns_of(model, numbers)}
    assert set(known) == set(seen) == set(data)
    for name, spread in (("a", 2.0), ("b", 2.0)):
        assert abs(known[name].typical - seen[name].typical) < 0.5 * spread
        assert known[name].quantiles[[0, -1]].tolist() == list(data[name].agg(["min", "max"]))
    assert known["level"].typical == seen["level"].typical == 1.0
    np.testing.assert_allclose(known["level"].shares, [0.2, 0.7, 0.1], atol=0.05)
    assert known["few"].values.tolist() == [0, 1, 2, 3]
    made = made_rows(model, list(known.values()), 100)
    assert np.isfinite(made).all() and set(made[:, 3]) <= {0, 1, 2, 3}
    assert isinstance(model.features.encoder.table, Table)


def test_a_page_has_no_cells_of_rows():
    """Quantiles are ends and shares alone: no column of X stands in the page."""
    model = srf.sparse_rf(X, Y, alpha=0.03, n_components=100, rng=0)
    text = model.to_html(X=X, y=Y, **QUICK)
    there = sum(repr(float(cell)) in text for cell in X[5:205, 0])
    assert there <= 7  # marks of the quantiles


@pytest.mark.slow
def test_what_is_proved_holds(models):
    model = models["rules"]
    proved = dict(Read(model.to_html(time_limit=2.0)).content["proved"])
    least = float(proved["f is at least"].split()[1])
    largest = float(proved["f is at most"].split()[3])
    f = model.decision_function(X)
    assert least <= f.min() and f.max() <= largest
    steep = srf.sparse_rf(X, Y, monotone=[0, 0, 0, 1], alpha=0.03, n_components=300, rng=0)
    proved = dict(Read(steep.to_html(time_limit=5.0)).content["proved"])
    assert proved["where x3 rises"] == "f never falls: proved"


def test_arguments_are_checked(models, tmp_path):
    model = models["linear"]
    for how, error in (
        ({"y": Y}, "y must be None where X is"),
        ({"X": X, "y": Y[:5]}, "y"),
        ({"X": X[:, :2]}, "X"),
        ({"X": X[:1]}, "X must have at least two rows"),
        ({"title": 3}, "title must be a string"),
        ({"time_limit": 0}, "time_limit"),
    ):
        with pytest.raises((ValueError, TypeError), match=error):
            model.to_html(tmp_path / "page.html", **how)
    two = models["two classes"]
    for labels in (np.full(len(X), "c"), np.zeros(len(X)), np.full((len(X), 2), "a")):
        with pytest.raises((ValueError, TypeError), match="y must"):
            two.to_html(tmp_path / "page.html", X, labels, **QUICK)
    order = pd.DataFrame(X), pd.Series(Y, index=np.arange(len(Y))[::-1])
    with pytest.raises(ValueError, match="y must have its rows in the order of X"):
        model.to_html(tmp_path / "page.html", *order, **QUICK)
    assert not list(tmp_path.iterdir())
    text = model.to_html(tmp_path / "page.html", **QUICK)
    assert (tmp_path / "page.html").read_text("utf-8") == text


def luminance(colour):
    """Return the relative luminance of a colour #rrggbb, as WCAG defines it."""
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_letters_can_be_read_on_their_grounds():
    """By day and by night the contrast is at least 4.5 to 1, of WCAG's level AA."""
    style = files("sparserf.page").joinpath("page.css").read_text("utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in style.split("@media")[:2]]
    for scheme in schemes:
        assert {"text", "faint", "ground", "panel", "bar", "held"} <= set(scheme)
        pairs = [(ink, "ground") for ink in ("text", "faint", "bar", "down", "now")]
        pairs += [("text", "panel"), ("faint", "panel"), ("text", "held")]
        for ink, ground in pairs:
            light = sorted(luminance(scheme[name]) + 0.05 for name in (ink, ground))
            assert light[1] / light[0] >= 4.5, (ink, ground)


def test_titles(models):
    named = pd.Series(Y, name="<price>")
    assert "<title>A model of &lt;price&gt;</title>" in models["linear"].to_html(
        X=X, y=named, **QUICK
    )
    assert "<title>A model</title>" in models["linear"].to_html(**QUICK)


def scripts_of(text):
    """Return the script of a page up to what draws."""
    return Read(text).scripts[1].partition("// The page of a model.")[0]


@pytest.mark.slow
@needs_node
def test_intervals_have_pages():
    """The scale and the half width in the page give the interval of `predict`."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.uniform(-2, 2, 900), "b": rng.choice(["u", "v"], 900)})
    y = np.sin(data["a"]) + (0.1 + data["a"].abs()) * rng.normal(size=900)
    fit = partial(srf.sparse_rf, features="gaussian", alpha=0.01, n_components=200)
    bands = srf.intervals(fit, data, y, rng=0)
    assert bands.experts[0].scale is not None
    text = bands.to_html(X=data, y=y, **QUICK)
    band = Read(text).content["band"]
    code = scripts_of(text) + (
        "module.exports = {center: row => model.inverseLink(model.decisions(model.read(row))[0]),"
        "log: row => scale.decisions(scale.read(row))[0]};"
    )
    said = run(code.replace('"use strict";', ""), rows_of(data[:50]))
    lower, upper = bands.predict(data[:50])
    width = band["half"] * np.exp(np.clip(said["log"], *band["ends"]))
    np.testing.assert_allclose(np.array(said["center"]) - width, lower, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.array(said["center"]) + width, upper, rtol=1e-9, atol=1e-12)
    held = float(re.search(r"it holds ([0-9.]+) % of the rows", band["words"])[1]) / 100
    ends = bands.predict(data)
    assert held == pytest.approx(np.mean((ends[0] <= y) & (y <= ends[1])), abs=1e-3)
    several = srf.intervals(fit, data, y, method="cv+", cv=3, adaptive=False, rng=0)
    with pytest.raises(ValueError, match="intervals of one model"):
        several.to_html()


@pytest.mark.slow
def test_calibrated_models_and_estimators_have_pages(tmp_path):
    estimators = pytest.importorskip("sparserf.sklearn")
    labels = np.where(Y > 0, "yes", "no")
    model = srf.calibrated(
        srf.mfga(X[:200], labels[:200], loss="squared_hinge", n_nonzero_coefs=5, rng=0),
        X[200:],
        labels[200:],
    )
    assert Read(model.to_html(**QUICK)).content["kind"] == "probability"
    estimator = estimators.MFGAClassifier(n_nonzero_coefs=5, random_state=0).fit(X, labels)
    text = estimator.to_html(tmp_path / "page.html", X, labels, **QUICK)
    again = Read(estimator.model_.to_html(X=X, y=labels, **QUICK)).content
    again["proved"] = Read(text).content["proved"]  # for which the time differs
    assert Read(text).content == again
    assert "yes" in Read(model.to_estimator().to_html(**QUICK)).content["outputs"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
def test_pages_of_many_terms_are_small():
    rng = np.random.default_rng(0)
    n = 1500
    data = pd.DataFrame(rng.normal(size=(n, 60)), columns=[f"number {k}" for k in range(60)])
    for k in range(13):
        data[f"level {k}"] = rng.choice(list("abcdefgh"), n)
    y = np.sin(2 * data["number 0"]) * data["number 1"] + data["number 2"] + rng.normal(size=n)
    how = {"n_components": 2000, "n_nonzero_coefs": 300, "order": 6, "alpha": 1e-3}
    model = srf.harfe(data, y, **how, max_iter=3, rng=0)
    assert len(model.features) == 300
    assert len(model.to_html(X=data, y=y)) < 1e6
