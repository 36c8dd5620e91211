"""The documentation, built by `python -m sphinx -W docs docs/_build`."""

import os
import shutil
import sys
import tomllib
from inspect import isroutine
from pathlib import Path

import pandas
from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sklearn.datasets import load_breast_cancer
from sphinx.errors import ConfigError

import sparserf

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

project = "sparserf"
author = "the sparserf developers"
version = release = sparserf.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "examples"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

highlight_language = "text"  # of blocks that name none
default_role = "py:obj"  # `name` in a docstring is a link where there is such a name
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say more
autosummary_generate = True


def directives_of(cls):
    """Return {member: directive} of all that a class and its bases document: what all bases share,
    each base, and the class."""
    shared, members = reversed(cls.__bases__[0].__mro__[1:]), {}
    for base in (*shared, *cls.__bases__, cls):
        for name, value in vars(base).items():
            if (
                not name.startswith("_")
                and value.__doc__
                and (isinstance(value, property) or isroutine(value))
            ):
                members[name] = "autoproperty" if isinstance(value, property) else "automethod"
    return members


autosummary_context = {  # what a page of a class shows beside its docstring; all of SparseModel
    "all_of_a_model": directives_of(sparserf.SparseModel),
    "shown": {
        "FeatureSet": "n_features_in, feature_names_in_, names, input_usage, take, concat, "
        "transform",
        "Intervals": "predict, predict_set, guarantees, to_html",
        "KernelModel": "predict, decision_function",
        "Loss": "value, derivative, curvature, conjugate",
        "Sums": "of, of_folds, fit, mean_loss",
        **dict.fromkeys(
            ["Bumps", "Fourier", "Linear", "Perceptron", "RandomNeurons", "Taylor"], "draw"
        ),
    },
}
numpydoc_show_class_members = False  # each page lists its members itself
numpydoc_xref_param_type = False

HERE = Path(__file__).parent
# beside the examples, as readers have them beside what they download
for table in ("airfoil.csv", "ccpp.csv"):
    shutil.copy(HERE.parent / "tools" / "data" / table, HERE / "examples")

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_",),
    "abort_on_example_error": True,
}

# the address is in one place; while the project has none, the header leaves its link out
urls = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"].get("urls", {})

html_theme = "pydata_sphinx_theme"
html_title = "sparserf"
html_static_path = ["_static"]
html_css_files = ["sparserf.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"sparserf {version}"},
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code-branch"}
        for name, url in urls.items()
        if name == "Repository"
    ],
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "quickstart": []}
project_copyright = f"{author}, BSD 3-Clause licence"


def mathml(node, **how):
    # no bar of a norm longer than the other
    return tex2mathml(node.astext(), **how).replace("<mo>‖", '<mo stretchy="false">‖')


def inline_formula(translator, node):
    translator.body.append(mathml(node))
    raise SkipNode


def formula(translator, node):
    translator.body.append(f'<div class="formula">{mathml(node, as_block=True)}</div>')
    raise SkipNode


def check_commits(app):
    """Stop where a page has figures of several commits, or others than its records."""
    sys.path.insert(0, str(HERE.parent / "tools"))
    import report
    import run

    if faults := report.faults(run.texts(), run.stored, run.experiments()):
        raise ConfigError("\n".join(faults))


def tables_of_live_pages():
    """Yield (name, title, X, y, loss) of the models whose pages stand in the site."""
    X = pandas.read_csv(HERE.parent / "tools" / "data" / "airfoil.csv")
    yield "airfoil", "The noise of airfoils", X, X.pop("sound_pressure_level"), "squared"
    tumours = load_breast_cancer(as_frame=True)
    labels = tumours.target_names[tumours.target]
    yield "tumours", "Tumours of the breast", tumours.data, labels, "logistic"


def make_live_pages(app, error):
    """Write the pages of two models beside docs/page.md, which links to them."""
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "live"
    folder.mkdir(exist_ok=True)
    for name, title, X, y, loss in tables_of_live_pages():
        n = 2 * len(X) // 3
        model = sparserf.sparse_rf(X[:n], y[:n], loss=loss, max_terms=100, rng=0)
        model.to_html(folder / f"{name}.html", X[n:], y[n:], title=title)


def setup(app):
    app.connect("build-finished", make_live_pages)
    if (HERE / "tables").exists():  # a source distribution has no records
        app.connect("builder-inited", check_commits)
    # read by browsers, no script to be loaded
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))


html_math_renderer = "mathml"
