"""The Markdown of the README and of docs/: its code, its output, its links.

A page runs from top to bottom as one program, in a process and a folder of its own. Beside ```python blocks:

    ```output                  what the block above prints; "..." stands for anything
    <!-- python ... -->        code that runs at this place and is not shown: what a reader has and the test lacks
    <!-- not run: reason -->   the block below is not run

`python tests/docs/pages.py PAGE...` runs pages and writes what they print into their output blocks.
"""

import argparse
import doctest
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
RUN_SECS = 240

_HIDDEN = re.compile(r"<!-- python\n(.*?)-->\s*", re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run:(.*?)-->\s*", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_CHECKER = doctest.OutputChecker()

# Runs blocks, given as [[line, code], ...] on standard input; prints what each printed, in JSON.
_RUNNER = """
import contextlib, io, json, sys
page, names, printed = sys.argv[1], {"__name__": "__main__"}, []
for line, code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\\n" * line + code, page, "exec"), names)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


@dataclass
class Block:
    """A Python block of a page.

    Attributes:
        line: of the page on which its code begins, from 0.
        code: what it runs.
        output: the text of the output block below it, or None.
        output_lines: the first line of that text and the line behind its last, from 0.
    """

    line: int
    code: str
    output: str | None = None
    output_lines: tuple[int, int] = (0, 0)


def tokens(page):
    """Return the tokens of a page's Markdown."""
    return _MARKDOWN.parse(page.read_text(encoding="utf-8"))


def blocks(page):
    """Return the Python blocks of a page that run.

    Raises:
        ValueError: a block is left out without a reason, or an output has no block above it.
    """
    found, skip = [], False
    for token in tokens(page):
        if token.type == "html_block":
            hidden, reason = _HIDDEN.fullmatch(token.content), _NOT_RUN.fullmatch(token.content)
            if hidden:
                found.append(Block(token.map[0] + 1, hidden[1]))
            if reason:
                if not reason[1].strip():
                    raise ValueError(f"{page}:{token.map[0] + 1}: 'not run' needs a reason")
                skip = True
        elif token.type == "fence" and token.info == "python":
            if not skip:
                found.append(Block(token.map[0] + 1, token.content))
            skip = False
        elif token.type == "fence" and token.info == "output":
            if not found or found[-1].output is not None:
                raise ValueError(f"{page}:{token.map[0] + 1}: an output without a Python block above it")
            found[-1].output = token.content
            found[-1].output_lines = (token.map[0] + 1, token.map[1] - 1)
    return found


def run(page, folder):
    """Run a page in `folder`; return [(block, what it printed)].

    Raises:
        AssertionError: a block failed; the message has its traceback, with lines of the page.
    """
    todo = blocks(page)
    environment = {**os.environ, "GLOG_v": "3", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER, str(page)],
        input=json.dumps([[block.line, block.code] for block in todo]),
        cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_SECS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(zip(todo, json.loads(done.stdout.splitlines()[-1]), strict=True))


def same(want, got):
    """Say whether an output block shows what was printed."""
    return _CHECKER.check_output(want, got, doctest.ELLIPSIS)


def update(page):
    """Write what a page prints into its output blocks, where it differs."""
    with tempfile.TemporaryDirectory() as folder:
        results = run(page, folder)
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    for block, printed in reversed(results):
        if block.output is not None and not same(block.output, printed):
            lines[slice(*block.output_lines)] = [printed]
    page.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="+", type=Path)
    for path in parser.parse_args().page:
        update(path.resolve())
