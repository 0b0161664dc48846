"""Writing to Samba: a run grows there, an outage costs nothing, and what is wrong is said at once."""

import importlib.util
import itertools
import json
import logging
import os
import signal

import pytest
from children import run
from event_files import event_files, scalars, statuses, steps
from needs import cannot_run, need
from samba import PASSWORD, USER, Samba
from test_urls import check

import tbwriter
from tbwriter import SinkError, SummaryWriter
from tbwriter.testing import SinkTests

_numbers = itertools.count()
PATIENCE_SECS = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if importlib.util.find_spec("smbprotocol") is None:
        cannot_run("smbprotocol is not installed")
    for name in ("smbprotocol", "spnego"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = Samba(tmp_path_factory.mktemp("samba"))
    yield server
    server.stop()


class Place:
    """A new directory on the share."""

    def __init__(self, server, spool):
        name = f"run{next(_numbers)}"
        self.server = server
        self.path = server.root / name / "deep"
        self.url = f"smb://{USER}@127.0.0.1:{server.port}/share/{name}/deep"
        self.options = {"password": PASSWORD}
        self.spool = spool

    def writer(self, **options):
        return SummaryWriter(self.url, storage_options=self.options, spool_dir=self.spool, **options)


@pytest.fixture
def place(server, tmp_path):
    return Place(server, tmp_path / "spool")


class TestSmb(SinkTests):
    @pytest.fixture(autouse=True)
    def _place(self, place):
        self.place = place

    def open(self, name, header):
        return tbwriter.open_sink(
            self.place.url, name=name, header=header, storage_options=self.place.options, spool_dir=self.place.spool
        )

    def stored(self, name):
        path = self.place.path / name
        return path.read_bytes() if path.exists() else None


def test_every_flush_shows_everything_and_it_is_read_back(place):
    with place.writer(flush_secs=3600) as writer:
        for step in range(10):
            writer.add_scalar("a", float(step), step)
            writer.add_scalars("m", {"b": 1.0}, step)
            assert writer.flush(timeout=PATIENCE_SECS)
            assert steps(place.path, "a") == list(range(step + 1))
    assert len(event_files(place.path, recursive=True)) == 2
    assert set(statuses(place.path, recursive=True)) == {"clean"}
    events = tbwriter.read_events(place.url, storage_options=place.options)
    assert [event.step for event in events for value in event.values if value.tag == "a"] == list(range(10))
    assert tbwriter.verify(place.url, storage_options=place.options).ok


def test_an_outage_costs_nothing(place):
    with place.writer(flush_secs=0.05) as writer:
        for step in range(100):
            writer.add_scalar("a", float(step), step)
        assert writer.flush(timeout=PATIENCE_SECS)
        place.server.stop()
        for step in range(100, 200):
            writer.add_scalar("a", float(step), step)
        assert not writer.flush(timeout=0.3)
        place.server.start()
        assert writer.flush(timeout=PATIENCE_SECS)
        assert scalars(place.path, "a") == [(step, float(step)) for step in range(200)]
    assert len(event_files(place.path)) == 1


def test_a_server_that_is_down_at_construction_gets_everything_later(place):
    place.server.stop()
    try:
        writer = place.writer()
        writer.add_scalar("a", 1.0, 1)
        assert not writer.flush(timeout=0.2)
    finally:
        place.server.start()
    assert writer.flush(timeout=PATIENCE_SECS)
    assert scalars(place.path, "a") == [(1, 1.0)]
    writer.close()


def test_with_a_server_that_hangs_close_returns_and_the_next_run_sends_what_is_left(place, caplog):
    writer = place.writer(flush_secs=0.05)
    writer.add_scalar("a", 0.0, 0)
    assert writer.flush(timeout=PATIENCE_SECS)
    os.killpg(place.server.group, signal.SIGSTOP)
    writer.add_scalar("a", 1.0, 1)
    writer.close(timeout=0.5)
    assert any("bytes not stored; they are in " in record.getMessage() for record in caplog.records)
    place.server.stop()  # which ends the call that hangs
    place.server.start()
    with place.writer() as writer:
        writer.add_scalar("a", 2.0, 2)
        assert writer.flush(timeout=PATIENCE_SECS)
    assert steps(place.path, "a") == [0, 1, 2]


def test_a_program_that_ends_without_close_has_stored_everything_and_says_nothing(place):
    """The driver's own handler of the exit, which would end the session first, is not in the way."""
    code = f"""
writer = SummaryWriter({place.url!r}, storage_options={place.options!r}, spool_dir={str(place.spool)!r})
for step in range(100):
    writer.add_scalar("a", float(step), step)
"""
    ended = run(code)
    assert (ended.returncode, ended.err) == (0, "")
    assert steps(place.path, "a") == list(range(100))


def test_odd_names_are_read_back_by_their_url(place):
    check(f"{place.url}/a b/%20/a#b/损失-ü/&=+;,@!$'()~[x]{{y}}", place.options, place.spool, sub="sub#b%20")


@pytest.mark.usefixtures("patient")
def test_a_wrong_password_is_an_error_at_construction_that_does_not_show_it(place):
    place.url = place.url.replace("127.0.0.1", "localhost")  # the other one's session is known
    place.options["password"] = "wrong-horse"
    with pytest.raises(SinkError, match=r"smb://localhost:.*LogonFailure") as raised:
        place.writer()
    assert "wrong-horse" not in str(raised.value)


@pytest.mark.usefixtures("patient")
def test_a_share_that_is_not_there_is_an_error_at_construction(place):
    place.url = place.url.replace("/share/", "/no-such-share/")
    with pytest.raises(SinkError, match=r"smb://.*no-such-share.*the store refuses"):
        place.writer()


@pytest.mark.readers
@pytest.mark.slow
def test_tensorboard_follows_a_run_live_and_through_a_new_file(place):
    need("tensorboard")
    from tensorboard_http import TensorBoard

    options = {"username": USER, "password": PASSWORD}
    with place.writer(max_file_size=10_000) as writer:
        running = TensorBoard("python", place.url.rsplit("/", 1)[0], env={"FSSPEC_SMB": json.dumps(options)})
        try:
            for begin, end in itertools.pairwise((0, 10, 300, 600)):
                for step in range(begin, end):
                    writer.add_scalar("loss", float(step), step)
                assert writer.flush(timeout=PATIENCE_SECS)
                running.shows_curves("deep", {"loss": [(step, float(step)) for step in range(end)]})
        finally:
            running.stop()
    assert len(event_files(place.path)) > 1
