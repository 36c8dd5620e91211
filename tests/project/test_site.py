"""The documentation as a whole: every link leads somewhere, every name is on a page, and the site
builds without a warning."""

import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import sparserf as srf
import sparserf.sklearn

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    not (DOCS / "tables").exists(), reason="a source distribution has no tables and pictures"
)
BUILT = ("gallery", "api/generated")  # folders that building the site creates
PAGES = [
    path
    for path in sorted(
        [
            ROOT / "README.md",
            ROOT / "tools/data/README.md",
            *ROOT.glob(".github/*.md"),
            *DOCS.glob("**/*.md"),
        ]
    )
    if not path.relative_to(ROOT)
    .as_posix()
    .startswith(("docs/_build", *(f"docs/{folder}" for folder in BUILT)))
]


def without_code(text):
    """Return the text of a page without its code."""
    return re.sub(
        r"`[^`\n]*`", "", re.sub(r"^(```|:::).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    )


def anchors_of(text):
    """Return the names that links to headings use, and the targets that are written out."""
    headings = re.findall(
        r"^#+ (.*)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    named = re.findall(r"^\((\w+)\)=$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    } | set(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    """As files, too, where the site is not built."""
    text = page.read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
        path, _, anchor = link.partition("#")
        if urlsplit(link).scheme:
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target.read_text()), link


def test_links_of_the_readme_are_those_of_the_project():
    """A package index resolves absolute links alone: once the project has an address, every link
    begins with it."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"].get("urls", {})
    for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text()):
        assert not urls or link.startswith(tuple(urls.values())), link


def test_every_public_name_is_in_the_api():
    text = (DOCS / "api" / "index.rst").read_text()
    listed = {
        (section, name)
        for section, body in re.findall(
            r"currentmodule:: (\S+)\n(.*?)(?=^\.\. currentmodule|\Z)",
            text,
            re.DOTALL | re.MULTILINE,
        )
        for name in re.findall(r"^   (\w+)$", body, re.MULTILINE)
    }
    modules = {"sparserf.losses", "sparserf.plot"}
    expected = {("sparserf", name) for name in srf.__all__ if f"sparserf.{name}" not in modules}
    for module in (srf.losses, sparserf.sklearn):
        expected |= {(module.__name__, name) for name in module.__all__}
    expected |= {("sparserf.plot", "effects"), ("sparserf.plot", "input_usage")}
    expected |= {("sparserf.plot", "rules")}
    assert listed == expected


class Page(HTMLParser):
    """The links of a page, and the places that links may lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places.add(attrs.get("id"))
        links = [attrs[key] for key in ("href", "src") if attrs.get(key)]
        self.links += links
        self.loads += links if tag in ("script", "link", "img") else []


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_all_its_links_lead_somewhere(tmp_path):
    pytest.importorskip("sphinx", reason="the group docs is not installed")
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-d",
        str(tmp_path / "trees"),
        str(DOCS),
        str(site),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {
        path.resolve(): Page(path) for path in site.glob("**/*.html") if "_static" not in path.parts
    }
    assert len(pages) > 90
    for name in ("index.html", "api/index.html"):  # the header says which version this is
        assert f">sparserf {srf.__version__}<" in (site / name).read_text(), name
    for path, page in pages.items():
        # from other hosts
        assert not [load for load in page.loads if urlsplit(load).netloc], path.name
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link in ("#", "#pst-search-dialog"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), f"{path.name}: {link}"
            assert (
                not parts.fragment
                or target.suffix != ".html"
                or unquote(parts.fragment) in pages[target].places
            ), link
