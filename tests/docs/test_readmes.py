"""The files that a reader of the repository opens first: links lead somewhere, and both languages say the same."""

import itertools
import re

import pytest

pytest.importorskip("markdown_it")

from pages import ROOT, tokens

OUTSIDE_DOCS = [
    path
    for path in ROOT.glob("**/*.md")
    if not any(part in {"docs", "build"} or part.startswith(".") for part in path.relative_to(ROOT).parts)
]
READMES = ROOT / "README.md", ROOT / "README.zh-CN.md"
_COMMENT = re.compile(r"\s*#.*$", re.MULTILINE)


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
    named = re.findall(r"`(test_\w+)` in \[[^]]*\]\((tests/[^)]*)\)", READMES[0].read_text(encoding="utf-8"))
    assert named
    for test, path in named:
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{test} in {path}"


@pytest.mark.parametrize("page", ["what-survives.md", "storage.md"])
def test_the_tests_that_a_page_names_exist(page):
    named = set(re.findall(r"`((?:test_|Test)\w+)`", (ROOT / "docs" / page).read_text(encoding="utf-8")))
    there = {
        name
        for path in (ROOT / "tests").glob("**/*.py")
        for name in re.findall(r"(?:def (?=test_)|class (?=Test))(\w+)\(", path.read_text(encoding="utf-8"))
    } | {path.stem for path in (ROOT / "tests").glob("**/test_*.py")}
    assert named
    assert named <= there


def test_every_line_of_what_survives_what_names_its_test():
    text = (ROOT / "docs" / "what-survives.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| (?!event \|)", line)]
    assert len(lines) > 40
    assert [line for line in lines if not re.search(r"\| `(?:test_|Test)\w+`[^|]*\|$", line)] == []


def test_what_survives_what_tells_of_every_storage_the_kill_the_loss_the_outage_and_the_full_disk():
    text = (ROOT / "docs" / "what-survives.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        events = " ".join(line.split("|")[1] for line in part.splitlines() if line.startswith("| "))
        for event in ("`kill -9`", "machine is lost", "hangs", "full"):
            assert event in events, (part.splitlines()[0], event)


def shape(page):
    """Return what a translation keeps: code without its comments, headings, tables, lists, links, names in the text."""
    blocks, names = [], set()
    for token in tokens(page):
        if token.type == "fence":
            blocks.append((token.info, _COMMENT.sub("", token.content)))
        elif token.type in {"heading_open", "list_item_open", "tr_open", "th_open", "td_open"}:
            blocks.append(token.tag)
        names |= {child.content for child in token.children or () if child.type == "code_inline"}
    other_language = {path.name for path in READMES}
    return blocks, sorted(link for link in links(page) if link not in other_language), names


def test_both_readmes_have_the_same_code_tables_links_and_names():
    english, chinese = map(shape, READMES)
    assert chinese == english


def figures(page):
    """Return the numbers and capital names, such as CI, of each cell of the tables, as far as they stand in prose."""
    cells = []
    for token, after in itertools.pairwise(tokens(page)):
        if token.type in {"th_open", "td_open"}:
            text = " ".join(child.content for child in after.children or () if child.type == "text")
            cells.append(sorted(re.findall(r"\d+(?:\.\d+)*|(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])", text)))
    return cells


def test_both_readmes_have_the_same_figures_in_their_tables():
    english, chinese = map(figures, READMES)
    assert any(english)
    assert chinese == english
