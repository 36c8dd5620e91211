"""Pages in Chromium: they open without a complaint, and say what the model says."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

import sparserf as srf

from ..fitted_models import X, Y, frame
from .browser import PROGRAM, open_browser
from .test_page import hostile_frame

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
]
# Moves the slider of a column, by its name, to a share of its way, and gives the cell.
MOVE = """
(async (name, share) => {
  const k = page.columns.findIndex(column => column.name === name);
  const slider = controls.get(k).line.querySelector("input[type=range]");
  slider.value = Number(slider.min) + share * (Number(slider.max) - Number(slider.min));
  slider.dispatchEvent(new Event("input"));
  await new Promise(done => setTimeout(done, 500));
  return Number(slider.value);
})
"""
# Controls without a name that a screen reader says.
NAMELESS = """
[...document.querySelectorAll("input, select, button, summary")].filter(each =>
  !each.getAttribute("aria-label") && !each.labels?.length && !each.textContent.trim()).length
"""


@pytest.fixture(scope="module")
def browser():
    with open_browser() as page:
        yield page


@pytest.fixture
def shown(browser, tmp_path):
    """Return a function that opens the page of a model; at the end nobody has complained."""
    browser.complaints.clear()

    def show(text, **how):
        (tmp_path / "page.html").write_text(text, "utf-8")
        browser.open(tmp_path / "page.html", **how)
        return browser

    yield show
    assert browser.complaints == []


def cells_of(page):
    """Return the cells of the row in the page, by the places of the columns."""
    cells = page.run("Object.entries(cellsOf(state.row)).map(([k, cell]) => [Number(k), cell])")
    return dict(cells)


def row_of(page, n):
    """Return the row in the page as an array."""
    cells = cells_of(page)
    return np.array([[np.nan if cells.get(j, 0) is None else cells.get(j, 0) for j in range(n)]])


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["auto", "rules", "linear", "bumps", "counts", "no term"])
def test_a_slider_gives_the_prediction(name, models, shown):
    model = models[name]
    page = shown(model.to_html(X=X, time_limit=0.1))
    for share in (0.3, 0.7):
        if len(model.features):
            page.run(f"{MOVE}('x1', {share})")
        said = page.run("Number(document.querySelector('.big').dataset.value)")
        assert said == pytest.approx(model.predict(row_of(page, 4))[0], rel=1e-12)
    row = row_of(page, 4)
    page.run("(state.base = [...typical], changed())")
    typical = np.array([[column or 0.0 for column in page.run("typical")]])
    if len(model.features) and len(typical[0]) == 4:
        order = page.run("page.columns.map(column => column.at)")
        background = np.zeros((1, 4))
        background[0, order] = typical
        total = page.run(
            "Object.fromEntries(contributions(model.read(cellsOf(state.row)), "
            "model.read(cellsOf(state.base)), 0).total)"
        )
        adds = np.array([total.get(str(j), 0.0) for j in range(4)])
        expected = model.shapley(row, background, rng=0)[0]
        np.testing.assert_allclose(adds, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["two classes", "multinomial", "three classes", "ordered classes"])
def test_probabilities_of_classes(name, models, shown):
    model = models[name]
    page = shown(model.to_html(time_limit=0.1))
    page.run(f"{MOVE}('x0', 0.8)")
    row = row_of(page, 4)
    p = page.run("[...document.querySelectorAll('#prediction .value')].map(e => e.textContent)")
    assert p == [f"{100 * share:.1f}\u00a0%" for share in model.predict_proba(row)[0]]
    big = page.run("document.querySelector('.big').textContent")
    assert big == str(model.predict(row)[0])
    if name not in ("two classes", "ordered classes"):
        page.run("(at('output').value = 2, at('output').dispatchEvent(new Event('change')))")
        assert page.run("state.output") == 2


def test_levels_missing_cells_and_the_link(of_frame, shown):
    """A link keeps a row with a missing cell, another level and a level whose name is to be
    quoted."""
    model, data = of_frame
    page = shown(model.to_html(X=data, time_limit=0.1))
    page.run(
        """(() => {
        const k = name => page.columns.findIndex(column => column.name === name);
        const put = (name, value) => { state.row[k(name)] = value; changed(k(name)); };
        put("age", null); put("c o", 2); put("many", -1);
    })()"""
    )
    page.run("new Promise(done => setTimeout(done, 500))")
    said = page.run("Number(document.querySelector('.big').dataset.value)")
    link = page.run("location.hash")
    row = data[:1].copy()
    names = page.run("page.columns.map(column => column.name)")
    cells = dict(zip(names, page.run("state.row"), strict=True))
    for name, cell in cells.items():
        if name == "c o":
            row[name] = '{c}"'
        else:
            row[name] = np.nan if cell is None else bool(cell) if name == "flag" else cell
    assert said == pytest.approx(model.predict(row)[0], rel=1e-12)
    page = shown(model.to_html(X=data, time_limit=0.1), hash=link)
    assert page.run("Number(document.querySelector('.big').dataset.value)") == said
    page = shown(model.to_html(X=data, time_limit=0.1), hash="#row=%7B%220%22%3A%22<b>%22%7D")
    assert page.run("state.row.join() === typical.join()")


def test_dates_are_written_and_read(shown):
    rng = np.random.default_rng(0)
    at = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 1000, 500), unit="D")
    data = pd.DataFrame({"at": at, "b": rng.normal(size=500)})
    y = np.asarray(at.month + data["b"], float)
    model = srf.sparse_rf(data, y, alpha=0.01, n_components=300, rng=0)
    page = shown(model.to_html(X=data, time_limit=0.1))
    page.run(
        """(() => {
        const k = page.columns.findIndex(column => column.name === "at");
        const field = controls.get(k).line.querySelector("input[type=text]");
        field.value = "2022-07-04";
        field.dispatchEvent(new Event("change"));
    })()"""
    )
    page.run("new Promise(done => setTimeout(done, 200))")
    cells = cells_of(page)
    row = pd.DataFrame({"at": [pd.Timestamp("2022-07-04")], "b": [cells[1]]})
    said = page.run("Number(document.querySelector('.big').dataset.value)")
    assert said == pytest.approx(model.predict(row)[0], rel=1e-12)


def test_hostile_names_do_nothing(shown):
    data, labels = hostile_frame()
    rules = {"features": srf.Rules(), "alpha": 0.02, "n_components": 200, "rng": 0}
    model = srf.sparse_rf(data, labels, loss="logistic", **rules)
    page = shown(model.to_html(X=data, y=labels, time_limit=0.1))
    assert page.run("document.images.length + document.scripts.length") == 2
    names = set(page.run("[...document.querySelectorAll('.cell .name')].map(e => e.textContent)"))
    assert names <= set(data.columns) and len(names) > 3


def test_it_is_narrow_prints_on_two_pages_and_has_names_for_all_controls(of_frame, shown):
    model, data = of_frame
    text = model.to_html(X=data, y=frame()[1], time_limit=0.5)
    page = shown(text, width=400)
    assert page.run("document.documentElement.scrollWidth") <= 400
    assert page.run(NAMELESS) == 0
    pdf = base64.b64decode(page.call("Page.printToPDF", printBackground=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page[^s]", pdf)) <= 2


def test_charts_are_read_by_keys_and_terms_are_sorted(models, shown):
    page = shown(models["auto"].to_html(X=X, y=Y, time_limit=0.1))
    said = page.run(
        """(() => {
        const chart = document.querySelector("#curves svg");
        const said = chart.nextElementSibling, told = [];
        for (const key of ["ArrowRight", "ArrowLeft"]) {
          chart.dispatchEvent(new KeyboardEvent("keydown", {key}));
          told.push(said.textContent);
        }
        return told;
    })()"""
    )
    assert len(set(said)) == 2 and all(re.search(r": [+−]", each) for each in said)
    for _ in range(2):
        page.run("document.querySelectorAll('#terms-table th button')[1].click()")
        sizes = page.run(
            "[...document.querySelectorAll('#terms-table tbody tr')].map(e => "
            "Number(e.cells[1].textContent.replaceAll(',', '')))"
        )
        is_up = page.run("document.querySelectorAll('#terms-table th')[1].ariaSort") == "ascending"
        assert sizes == sorted(sizes, reverse=not is_up) and len(set(sizes)) > 5


def test_the_interval_is_that_of_predict(shown):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2, 2, (600, 2))
    y = np.sin(rows[:, 0]) + (0.1 + np.abs(rows[:, 1])) * rng.normal(size=600)
    model = srf.sparse_rf(rows[:300], y[:300], alpha=0.01, n_components=200, rng=0)
    bands = srf.intervals(model, rows[300:], y[300:], rng=0)
    page = shown(bands.to_html(time_limit=0.1))
    page.run(f"{MOVE}('x0', 0.9)")
    said = page.run("[Number(at('band').dataset.low), Number(at('band').dataset.high)]")
    ends = np.ravel(bands.predict(row_of(page, 2)))
    np.testing.assert_allclose(said, ends, rtol=1e-9)
