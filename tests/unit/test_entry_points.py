"""Packages that bring a sink are found by their entry points."""

import sys

import pytest

import tbwriter
from tbwriter import sinks

PLUGIN = """
import tbwriter
from tbwriter.sinks import MemorySink
def open_there(url, name, header, options):
    return MemorySink("memory://" + url.split("://")[1], name=name, header=header)
def list_there(url, options):
    return []
there = (open_there, list_there)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package in the import path that names a scheme."""
    (tmp_path / "sink_of_a_package.py").write_text(PLUGIN)
    about = tmp_path / "sink_of_a_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sink-of-a-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[tbwriter.sinks]\nentry-point-test = sink_of_a_package:there\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sinks._backends.pop("entry-point-test", None)
    sys.modules.pop("sink_of_a_package", None)


@pytest.mark.usefixtures("installed")
def test_the_scheme_of_an_installed_package_is_served():
    with tbwriter.SummaryWriter("entry-point-test://found/run") as writer:
        writer.add_scalar("loss", 0.5, 1)
    values = [value for event in tbwriter.read_events("memory://found/run") for value in event.values]
    assert [value.tag for value in values] == ["loss"]


def test_without_the_package_it_is_refused():
    with pytest.raises(ValueError, match="no sink serves entry-point-test://"):
        tbwriter.SummaryWriter("entry-point-test://found/run")
