"""The `tbwriter` command: look into event files, find what is wrong with them, mend them, move them, draw them."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; the entry point of the `tbwriter` script."""
    try:
        from tbwriter.cli._app import app
    except ModuleNotFoundError as exc:
        if exc.name not in {"typer", "rich"}:
            raise
        sys.exit(f"tbwriter: the command needs {exc.name}; install it with: pip install 'tbwriter[cli]'")
    app(prog_name="tbwriter")
