"""The command, run in this process as a user would call it."""

import importlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("typer")
from calling import command


@pytest.fixture
def tbwriter_command():
    return command


@pytest.fixture
def as_nobody():
    """Have no rights but one's own, also where the tests run as root; returns a directory of one's own."""
    # What is imported later may lie where only root may look; a command that prints imports the rest.
    importlib.import_module("msbridge.convert")
    command("--help")
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    place.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
        os.seteuid(65534)
        yield place
        os.seteuid(0)
    else:
        yield place
    os.chmod(place / "run", 0o755)
    shutil.rmtree(place)
