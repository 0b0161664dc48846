"""The commands of docs/tools.md and what they print.

A block

    ```console
    $ tbwriter inspect runs
    ...
    ```

shows what the command prints where the page's first Python block has run. `python tests/cli/tools_page.py` writes that
into the page.
"""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tools.md"
HOME = "/home/you"

_FILE = re.compile(r"events\.out\.tfevents\.\d{10}\.[\w.-]+?\.\d+\.000000")
_AGE = re.compile(r"\d+(\.\d)? (s|min|h|d)(?= *$| ago)", re.MULTILINE)
_CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def commands(block):
    """Return [(command line, what the page says it prints)] of a console block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def prepared(folder):
    """Run the page's first Python block in `folder`."""
    code = _PYTHON.search(PAGE.read_text(encoding="utf-8"))[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True)
    for path in Path(folder).rglob("*tfevents*"):
        os.utime(path, (1.7e9, 1.7e9))  # written long ago


def printed(line, folder):
    """Run a command line in `folder`; return what it prints, without what differs from run to run."""
    from typer.testing import CliRunner

    from tbwriter.cli._app import app

    words = shlex.split(line, comments=True)
    assert words[0] == "tbwriter", line
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else _chdir(folder):
        result = CliRunner().invoke(app, words[1:])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    text = result.output.replace(os.path.realpath(folder), HOME).replace(str(folder), HOME)
    for path in Path(folder).rglob("*tfevents*"):
        os.utime(path, (1.7e9, 1.7e9))
    text = _FILE.sub("events.out.tfevents.1700000000.host.1.000000", text)
    return "\n".join(row.rstrip() for row in _AGE.sub("1.0 d", text).splitlines()).rstrip() + "\n" * bool(text.strip())


@contextlib.contextmanager
def _chdir(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def results(folder):
    """Return [(command line, what the page says, what was printed)] of all blocks, in their order."""
    prepared(folder)
    text = PAGE.read_text(encoding="utf-8")
    found = [pair for block in _CONSOLE.findall(text) for pair in commands(block)]
    return [(line, said, printed(line, folder)) for line, said in found]


def update():
    with tempfile.TemporaryDirectory() as folder:
        prepared(folder)

        def block(match):
            parts = [f"$ {line}\n{printed(line, folder)}" for line, _ in commands(match[1])]
            return "```console\n" + "\n".join(parts) + "```"

        PAGE.write_text(_CONSOLE.sub(block, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    update()
