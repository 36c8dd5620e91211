"""HTML and Markdown in notebooks: names are shown as text, whatever they hold, in the colours of
the page."""

import copy
import pickle
import re
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import sparserf as srf
from sparserf._base import html as _html
from sparserf.validation import cross_validation as validation

RNG = np.random.default_rng(0)
NAMES = ["<b>a</b>", "a & $b$", 'a "quoted" name_with\\ ~^ `` {braces} % #' + " and more" * 9]
X = pd.DataFrame(RNG.uniform(-1, 1, (200, 3)), columns=NAMES)
Y = 3 * X[NAMES[0]] + X[NAMES[1]] + 0.3 * X[NAMES[2]]
LABELS = np.array(["<i>low", "mid", "high & $c$"])[np.digitize(Y, [-1, 1])]
LINEAR = {"features": srf.Linear(), "n_nonzero_coefs": 3, "rng": 0}


class Seen(HTMLParser):
    """Tags, attributes and words of a piece of HTML; every tag must be closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words, self._open = set(), [], [], []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._open.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def shown():
    """Return objects that notebooks show, each with the words that must stand in its HTML."""
    model, classes = srf.mfga(X, Y, **LINEAR), srf.mfga(X, LABELS, loss="multinomial", **LINEAR)
    fit = partial(srf.mfga, features=srf.Linear())
    found = srf.cross_validate(
        fit, X, Y, {"n_nonzero_coefs": [1, 2], "normalize": [True, False]}, cv=3, rng=0
    )
    noisy = Y + RNG.normal(size=200)
    return {
        "model": (model, NAMES[:2]),
        "classes": (classes, [*NAMES[:2], "<i>low"]),
        "summary": (model.summary(), NAMES[:2]),
        "summary of rows": (model.summary(X, rng=0), NAMES[:2]),
        "of classes": (classes.summary(X, rng=0), [*NAMES[:2], "high & $c$"]),
        "importances": (model.importances(X, rng=0), NAMES[:2]),
        "validation": (found, ["n_nonzero_coefs", "normalize", "mean loss", "standard error"]),
        "split": (
            srf.intervals(partial(fit, n_nonzero_coefs=2), X, noisy, rng=0),
            ["0.9", "model 1"],
        ),
        "cv+": (
            srf.intervals(partial(fit, n_nonzero_coefs=2), X, noisy, method="cv+", cv=3, rng=0),
            ["0.9", "model 3"],
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    [
        "model",
        "classes",
        "summary",
        "summary of rows",
        "of classes",
        "importances",
        "validation",
        "split",
        "cv+",
    ],
)
def test_names_are_text_and_letters_have_the_colour_of_the_page(what, shown):
    one, names = shown[what]
    html = one._repr_html_()
    seen = Seen(html)
    assert seen.tags <= {"div", "span", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for name, _ in seen.attributes} <= {
        "style",
        "class",
        "title",
    } and "url(" not in html
    words = " ".join(seen.words)
    assert all(name in words for name in names), words
    styles = ";".join(value for name, value in seen.attributes if name == "style").split(";")
    # letters are those of the page
    assert not [style for style in styles if style.startswith("color:")]
    grounds = {style.split(":")[1] for style in styles if style.startswith("background:")}
    assert grounds <= {"none", _html.BAR} and html.startswith(
        '<div class="tex2jax_ignore mathjax_ignore"'
    )


@pytest.mark.slow
def test_bars_are_in_proportion(shown):
    model, _ = shown["summary of rows"]
    sizes = [
        float(size)
        for size in re.findall(r"inline-block;width:([0-9.]+)em", model.importances._repr_html_())
    ]
    share = np.sort(model.importances.share)[::-1]
    np.testing.assert_allclose(sizes, _html.LONGEST_BAR * share / share[0], atol=0.006)
    assert "width:50.0%" in _html.progress(0.5, "half")


def test_a_long_name_is_cut_and_can_be_read(shown):
    seen = Seen(shown["importances"][0]._repr_html_())
    cut = next(word for word in seen.words if word.endswith("…"))
    assert len(cut) == _html.MOST_LETTERS and ("title", NAMES[2]) in seen.attributes


def test_many_settings_and_losses_that_are_no_numbers(monkeypatch, shown):
    found, _ = shown["validation"]
    html = found._repr_html_()
    assert html.count("<tr") == 5 and html.count("font-weight:600") == 6  # the cells of the best
    monkeypatch.setattr(validation, "MOST_LINES_SHOWN", 1)
    short = found._repr_html_()
    assert short.count("<tr") == 2 and "and 3 more" in short and "font-weight:600" in short
    for means in ([np.nan] * 4, [-1.0, 2.0, 3.0, np.inf], [0.0] * 4):
        other = copy.copy(found)
        object.__setattr__(other, "table", {**found.table, "mean": means})
        Seen(other._repr_html_())


def test_models_without_terms_are_shown():
    constant = srf.mfga(np.eye(4), np.ones(4), n_nonzero_coefs=1, alpha=1e-3, rng=0)
    empty = srf.sparse_rf(np.eye(4), [1.0, 1.0, 1.0, 1.0], features="gaussian", alpha=1.0, rng=0)
    for model in (constant, empty):
        Seen(model._repr_html_())
        Seen(model.summary(np.eye(4), rng=0)._repr_html_())


@pytest.mark.parametrize("language", ["text", "latex", "python", "sql"])
def test_a_formula_is_a_string_that_is_shown_in_its_lines(language, shown):
    model, _ = shown["model"]
    text = model.formula(language)
    assert (
        isinstance(text, str)
        and repr(text) == str(text) == "".join(text)
        and type(str(text)) is str
    )
    assert (text._repr_latex_() is not None) is (language == "latex")
    assert (text._repr_markdown_() is not None) is (language in ("python", "sql"))
    for again in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):
        assert again == text and again.language == language


def test_code_with_backticks_is_one_block(shown):
    first, *lines, last = shown["model"][0].formula("python")._repr_markdown_().split("\n")
    assert (
        first == "```python" and last == "```" and not any(line.startswith("```") for line in lines)
    )
    block = (
        srf.mfga(X.set_axis(["```", "b", "c"], axis=1), Y, **LINEAR)
        .formula("sql")
        ._repr_markdown_()
    )
    assert block.startswith("````sql\n") and block.endswith("\n````")


def test_names_in_latex_have_no_escapes_in_text(shown):
    """MathJax would show the backslash of an escape within \\text."""
    latex = shown["model"][0].formula("latex")
    inside = re.findall(r"\\text\{([^{}]*)\}", latex)
    assert "".join(inside).count("\\") == 0 and r"name}\_\text{with}\backslash{}" in latex
    assert r"\text{a }\&\text{ }\$\text{b}\$" in latex
