"""Every test that docs/what-survives.md names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs/what-survives.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+|Test\w+)`", page))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 30
    assert named - set(re.findall(r"^\s*(?:def|class) (\w+)", tests, re.MULTILINE)) == set()
