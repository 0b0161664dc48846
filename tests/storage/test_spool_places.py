"""Where data waits for a store, on machines that lack one of the usual places."""

import io
import json
import os
import pickle
import stat
import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from needs import cannot_run
from test_object_sinks import OtherStore
from waiting import wait_until

from tbwriter import SummaryWriter, read_events, ship, sinks
from tbwriter.sinks import _object, _shipper, _store, _strays


class Store(OtherStore):
    protocol = "places-test"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]
    refused: ClassVar = ""
    """It takes nothing with this in its path."""
    taken: ClassVar = []
    """Paths, in order."""

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if Store.refused and Store.refused in path:
            raise ConnectionError("down")
        super().pipe_file(path, value)
        Store.taken.append(path)


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


@pytest.fixture
def left_behind(tmp_path, monkeypatch):
    """Returns the spool with what four runs at one URL left; its directories are named as after a clock set back."""
    monkeypatch.setattr(_object, "_FIRST_PUT_SECS", 0.1)
    monkeypatch.setattr(Store, "refused", "run")
    monkeypatch.setattr(Store, "taken", [])
    for step in range(4):
        with SummaryWriter("places-test://order/run", spool_dir=tmp_path) as writer:
            writer.add_scalar("loss", 1.0, step)
            writer.close(0)
    for number, path in enumerate(sorted(tmp_path.glob("*/events*"), key=lambda path: path.name, reverse=True)):
        key, *_ = path.parent.name.split(".")
        path.parent.rename(tmp_path / f"{key}.{number}.1.0")
    _store._stores.clear()  # as in a new process
    Store.refused = ""
    return tmp_path


def test_what_several_runs_at_one_url_left_is_sent_in_the_order_of_its_files(left_behind):
    assert [one.error for one in ship(left_behind)] == [None] * 4
    assert len(Store.taken) == 4
    assert Store.taken == sorted(Store.taken)


def test_what_a_new_run_finds_at_its_url_is_sent_in_the_order_of_its_files(left_behind):
    with SummaryWriter("places-test://order/run", spool_dir=left_behind) as writer:
        assert writer.flush()
    assert len(set(Store.taken)) == 5
    assert Store.taken == sorted(Store.taken)


def test_ship_sends_nothing_of_a_url_after_what_it_could_not_send(left_behind):
    names = sorted(path.name for path in left_behind.glob("*/events*"))
    Store.refused = names[1]
    sent, failed, *waiting = ship(left_behind, timeout=0)
    assert (sent.error, failed.error) == (None, "ConnectionError: down")
    assert [one.error for one in waiting] == [f"waits for what is left in {failed.directory}"] * 2
    assert [path.rsplit("/", 1)[1] for path in Store.taken] == names[:1]
    Store.refused = ""
    ship(left_behind)
    assert [path.rsplit("/", 1)[1] for path in Store.taken] == names


def test_a_run_elsewhere_sends_nothing_of_a_url_after_what_it_could_not_send(left_behind, monkeypatch):
    monkeypatch.setattr(_strays, "_FIRST_SECS", 0.0)
    names = sorted(path.name for path in left_behind.glob("*/events*"))
    Store.refused = names[1]
    with SummaryWriter("places-test://order/elsewhere", spool_dir=left_behind) as writer:
        jobs = _store.store_for(writer.log_dir, None).uploader._due
        wait_until(lambda: not any(isinstance(job, _strays.Strays) for job in list(jobs)), within=30)
    assert [path.rsplit("/", 1)[1] for path in Store.taken if "elsewhere" not in path] == names[:1]


def test_a_shipper_process_is_not_held_up_by_a_store_that_is_down(tmp_path, monkeypatch):
    monkeypatch.setattr(_object, "_FIRST_PUT_SECS", 0.1)
    monkeypatch.setattr(Store, "refused", "/")
    monkeypatch.setattr(Store, "taken", [])
    for name in ("down", "up"):
        SummaryWriter(f"places-test://{name}/run", spool_dir=tmp_path).close(0)
    _store._stores.clear()
    Store.refused = "down"
    told = b"".join(pickle.dumps((str(path), {})) for path in sorted(tmp_path.glob("*/"), key=_url_of))
    shipper = threading.Thread(target=_shipper.main, args=[io.BytesIO(told)])
    shipper.start()
    wait_until(lambda: len(Store.taken) == 1, within=30)
    Store.refused = ""
    shipper.join(30)
    assert [path.split("/")[1] for path in Store.taken] == ["up", "down"]


def _url_of(spool):
    return json.loads((spool / "url.json").read_text())["url"]


@pytest.fixture
def of_all_users():
    """A spool that belongs to root and in which anybody may write, as /tmp: only root can make it."""
    if os.name == "nt" or os.geteuid() != 0:
        cannot_run("another user's directory takes root")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        spool = Path(directory, "spool")
        spool.mkdir()
        spool.chmod(0o777 | stat.S_ISVTX)
        yield spool


def test_what_another_user_left_in_a_spool_of_all_users_is_nobody_elses_business(of_all_users, monkeypatch):
    monkeypatch.setattr(_object, "_FIRST_PUT_SECS", 0.1)
    monkeypatch.setattr(_strays, "_FIRST_SECS", 0.0)
    monkeypatch.setattr(Store, "refused", "run")
    SummaryWriter("places-test://users/run", spool_dir=of_all_users).close(0)
    _store._stores.clear()
    Store.refused = ""
    os.seteuid(65534)
    try:
        with SummaryWriter("places-test://users/run", spool_dir=of_all_users) as writer:
            writer.add_scalar("loss", 1.0, 1)
            assert writer.flush()
        assert ship(of_all_users) == []
    finally:
        os.seteuid(0)
    assert [one.error for one in ship(of_all_users)] == [None]


def test_a_spool_that_the_environment_names_may_belong_to_another_user(of_all_users, monkeypatch):
    """As the volume of a container, which is root's and lets a group write."""
    os.chown(of_all_users, 65534, 65534)
    monkeypatch.setenv("TBWRITER_SPOOL_DIR", str(of_all_users))
    with SummaryWriter("places-test://volume/run"):
        assert len(list(of_all_users.glob("*/events*"))) == 1
