"""Where data waits for a store, on machines that lack one of the usual places."""

import tempfile
from typing import ClassVar

import fsspec
import pytest
from test_object_sinks import OtherStore

from tbwriter import SummaryWriter, read_events, ship, sinks


class Store(OtherStore):
    protocol = "places-test"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]


fsspec.register_implementation("places-test", Store, clobber=True)


@pytest.fixture
def no_home(monkeypatch):
    """As in a container whose user has no entry and which was given no HOME."""
    for name in ("HOME", "XDG_STATE_HOME", "TBWRITER_SPOOL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)


def test_without_a_home_directory_it_is_the_one_for_temporary_files(tmp_path, monkeypatch, no_home):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (place,) = sinks.spool_places()
    assert place.parent == tmp_path


def test_without_a_directory_for_temporary_files_it_is_below_the_home_directory(tmp_path, monkeypatch):
    def none():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.delenv("TBWRITER_SPOOL_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert sinks.spool_places() == [tmp_path / ".local" / "state" / "tbwriter" / "spool"]


def test_a_store_can_be_written_where_neither_is_known(monkeypatch, no_home):
    def none():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with SummaryWriter("places-test://run") as writer:
        writer.add_scalar("loss", 1.0, 1)
        assert writer.flush()
    assert [event.step for event in read_events("places-test://run") if event.values] == [1]


def test_a_tilde_where_no_home_is_known_is_refused_by_name(monkeypatch, no_home):
    with pytest.raises(ValueError, match="spool_dir begins with '~', and there is no such home directory"):
        ship("~/spool")
    monkeypatch.setenv("TBWRITER_SPOOL_DIR", "~/spool")
    with pytest.raises(ValueError, match="TBWRITER_SPOOL_DIR begins with '~', and there is no such home directory"):
        ship()
