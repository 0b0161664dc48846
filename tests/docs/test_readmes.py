"""The files that a reader of the repository opens first: their links lead somewhere."""

import itertools
import re

import pytest

pytest.importorskip("markdown_it")

from pages import ROOT, tokens

OUTSIDE_DOCS = [
    path for path in ROOT.glob("**/*.md") if not {".venv", "docs", "build"} & set(path.relative_to(ROOT).parts)
]


def links(page):
    """Return the targets of all links and pictures."""
    inline = [child for token in tokens(page) for child in token.children or ()]
    return [
        child.attrs.get("href") or child.attrs.get("src") for child in inline if child.type in {"link_open", "image"}
    ]


def anchors(page):
    """Return the anchors of a page's headings, as they are made where repositories are shown."""
    text = [after.content for token, after in itertools.pairwise(tokens(page)) if token.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in text}


@pytest.mark.parametrize("page", OUTSIDE_DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_lead_somewhere(page):
    for link in links(page):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(path), f"{page.name}: {link}"


def test_the_tests_that_the_readme_names_exist():
    named = re.findall(r"`(test_\w+)` in \[[^]]*\]\((tests/[^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert named
    for test, path in named:
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{test} in {path}"


@pytest.mark.parametrize("page", ["what-survives.md", "storage.md"])
def test_the_tests_that_a_page_names_exist(page):
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / page).read_text(encoding="utf-8")))
    there = {
        name
        for path in (ROOT / "tests").glob("**/*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    } | {path.stem for path in (ROOT / "tests").glob("**/test_*.py")}
    assert named
    assert named <= there
