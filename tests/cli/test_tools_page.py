"""docs/tools.md: every command prints what the page says, and every command has its section."""

import itertools
import re

import pytest
from tools_page import PAGE, results

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the installed package has no docs")


def test_every_command_prints_what_the_page_says(tmp_path):
    pytest.importorskip("matplotlib")
    for line, said, printed in results(tmp_path):
        assert printed.rstrip() == said.rstrip(), line


def test_every_command_has_a_section():
    from typer.main import get_command

    from tbwriter.cli._app import app

    sections = re.findall(r"^## `tbwriter (\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(sections) == sorted(get_command(app).commands)


def test_every_command_has_help_that_tells_its_exit_codes(tbwriter_command):
    from typer.main import get_command

    from tbwriter.cli._app import app

    for name in get_command(app).commands:
        answer = tbwriter_command(name, "--help")
        assert answer.code == 0
        words = " ".join(answer.out.split())
        assert re.search(r"Exit codes: [^.]*130 Ctrl-C\.", words)
        assert "'tbwriter'" not in words, "the extra in brackets was taken for markup"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_is_folded_for_the_terminal_and_not_as_the_source_is(tbwriter_command, monkeypatch, columns):
    """No line of a paragraph is broken where the first word of the next would have fitted."""
    from typer.main import get_command

    from tbwriter.cli._app import app

    monkeypatch.setenv("TERMINAL_WIDTH", str(columns))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", columns)
    for name in get_command(app).commands:
        text = tbwriter_command(name, "--help").out.split("\N{BOX DRAWINGS LIGHT ARC DOWN AND RIGHT}")[0]
        for paragraph in re.split(r"\n\s*\n", text):
            lines = [line.strip() for line in paragraph.strip().splitlines()]
            for line, following in itertools.pairwise(lines):
                assert len(line) + 1 + len(following.split()[0]) > columns - 2, (name, line)
