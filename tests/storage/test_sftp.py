"""Writing to an SFTP server: files grow there, nothing is sent twice, and an outage costs nothing."""

import importlib.util
import itertools
import logging
import signal
import subprocess
import sys
import textwrap

import pytest
from event_files import event_files, read_file, scalars, statuses, steps
from needs import cannot_run
from test_urls import check, keeps_on
from waiting import wait_until

import tbwriter
from tbwriter import SinkError, SummaryWriter
from tbwriter.sinks import ship
from tbwriter.testing import SinkTests

_numbers = itertools.count()
USER, PASSWORD = "trainer", "correct-horse"
PATIENCE_SECS = 30
NEVER_SECS = 3600


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    for package in ("asyncssh", "paramiko"):
        if importlib.util.find_spec(package) is None:
            cannot_run(f"{package} is not installed")
    from sftp_server import SftpServer

    server = SftpServer(tmp_path_factory.mktemp("sftp"), USER, PASSWORD)
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
    yield server
    server.end()


class Place:
    """A new directory on the server."""

    def __init__(self, server, spool):
        name = f"run{next(_numbers)}"
        self.server = server
        self.path = server.root / name / "deep"
        self.url = f"sftp://{USER}@127.0.0.1:{server.port}/{name}/deep"
        self.options = {"password": PASSWORD, "look_for_keys": False, "allow_agent": False}
        self.spool = spool
        server.calls.clear()

    def writer(self, **options):
        return SummaryWriter(self.url, storage_options=self.options, spool_dir=self.spool, **options)

    def nobody_ships(self):
        """Whether no spool has an owner."""
        return not list(self.spool.glob("*/owner"))

    def sent(self):
        return sum(size for call, size in self.server.calls if call == "write")


@pytest.fixture
def place(server, tmp_path):
    yield Place(server, tmp_path / "spool")
    server.hangs = server.refuses_growth = False


class TestSftp(SinkTests):
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


def test_a_new_run_is_there_at_once_and_every_flush_shows_everything(place):
    with place.writer(flush_secs=NEVER_SECS) as writer:
        (path,) = event_files(place.path)
        assert statuses(place.path) == ["clean"]
        for step in range(20):
            writer.add_scalar("a", float(step), step)
            assert writer.flush(timeout=PATIENCE_SECS)
            assert steps(place.path, "a") == list(range(step + 1))
    assert event_files(place.path) == [path]


def test_nothing_is_sent_twice(place):
    with place.writer(flush_secs=NEVER_SECS) as writer:
        for step in range(30):
            writer.add_text("t", "x" * 3000, step)
            assert writer.flush(timeout=PATIENCE_SECS)
    (path,) = event_files(place.path)
    assert place.sent() == path.stat().st_size > 90_000


def test_ranks_and_sub_runs_share_the_connection(place):
    before = len(place.server._connections)
    writers = [place.writer(rank=rank) for rank in range(3)]
    for writer in writers:
        writer.add_scalars("m", {"a": 1.0, "b": 2.0}, 1)
        assert writer.flush(timeout=PATIENCE_SECS)
    assert len(place.server._connections) <= before + 1
    for writer in writers:
        writer.close()
    assert {path.parent.name for path in event_files(place.path, recursive=True)} >= {"rank_0", "m_a", "m_b"}


def test_a_second_run_begins_its_own_file_after_the_first(place):
    for step in (1, 2):
        with place.writer() as writer:
            writer.add_scalar("a", float(step), step)
    assert steps(place.path, "a") == [1, 2]
    assert statuses(place.path) == ["clean", "clean"]


def test_an_outage_costs_nothing_and_is_told_once_at_each_end(place, caplog):
    with place.writer(flush_secs=0.05) as writer:
        for step in range(100):
            writer.add_scalar("a", float(step), step)
        assert writer.flush(timeout=PATIENCE_SECS)
        place.server.stop()
        for step in range(100, 200):
            writer.add_scalar("a", float(step), step)
        assert not writer.flush(timeout=0.3)
        wait_until(lambda: "the store fails" in caplog.text, within=PATIENCE_SECS)
        place.server.start()
        assert writer.flush(timeout=PATIENCE_SECS)
        assert scalars(place.path, "a") == [(step, float(step)) for step in range(200)]
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len([line for line in told if "the store fails" in line]) == 1
    assert len([line for line in told if "works again" in line]) == 1
    assert not any(PASSWORD in line or f"{USER}@" in line for line in told)
    assert len(event_files(place.path)) == 1


def test_connections_that_break_again_and_again_repeat_nothing_and_tear_nothing(place):
    with place.writer(flush_secs=0.02) as writer:
        for step in range(300):
            writer.add_text("t", f"{step:04d} " + "x" * 2000, step)
            if step % 50 == 25:
                place.server.stop()
                place.server.start()
        assert writer.flush(timeout=PATIENCE_SECS)
    assert set(statuses(place.path)) == {"clean"}
    assert [event.step for path in event_files(place.path) for event in events_of(path)] == list(range(300))


def events_of(path):
    return [event for event in read_file(path)[0] if event.values]


def test_a_server_that_refuses_to_let_files_grow_gets_them_whole(place, caplog):
    place.server.refuses_growth = True
    place.url = place.url.replace("127.0.0.1", "localhost")  # a store of its own: this one remembers
    with place.writer(flush_secs=NEVER_SECS) as writer:
        for step in range(10):
            writer.add_scalar("a", float(step), step)
            assert writer.flush(timeout=PATIENCE_SECS)
            assert steps(place.path, "a") == list(range(step + 1))
    assert statuses(place.path) == ["clean"]
    assert len([one for one in caplog.records if "does not let files grow" in one.getMessage()]) == 1


def test_with_a_server_that_hangs_close_returns_in_time_and_says_what_is_left_and_where(place, caplog):
    writer = place.writer(flush_secs=0.05)
    writer.add_scalar("a", 0.0, 0)
    assert writer.flush(timeout=PATIENCE_SECS)
    place.server.hangs = True
    for step in range(1, 100):
        writer.add_scalar("a", float(step), step)
    writer.close(timeout=1)
    (told,) = [record.getMessage() for record in caplog.records if "closed with" in record.getMessage()]
    assert "bytes not stored; they are in " in told
    assert str(place.spool) in told
    place.server.hangs = False
    wait_until(place.nobody_ships, within=PATIENCE_SECS, what="the end of the call that hung")
    with place.writer() as writer:  # the next run sends it, before anything of its own
        writer.add_scalar("a", 100.0, 100)
        assert writer.flush(timeout=PATIENCE_SECS)
    assert sorted(set(steps(place.path, "a"))) == list(range(101))
    assert statuses(place.path) == ["clean", "clean"]


def killed_in_an_outage(place, **options):
    """Kill a training that wrote 200 points while the server was there and 200 while it was away."""
    code = f"""
        import sys
        from tbwriter import SummaryWriter
        options = {{"storage_options": {place.options!r}, "spool_dir": {str(place.spool)!r}, **{options!r}}}
        writer = SummaryWriter({place.url!r}, flush_secs=0.05, **options)
        for step in range(200):
            writer.add_scalar("a", float(step), step)
        writer.flush()
        print("flushed", flush=True)
        sys.stdin.readline()
        for step in range(200, 400):
            writer.add_scalar("a", float(step), step)
        writer.flush(timeout=1)  # it is in the spool
        print("spooled", flush=True)
        sys.stdin.readline()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "flushed\n"
        place.server.stop()
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "spooled\n"
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert steps(place.path, "a") == list(range(200))
    finally:
        child.kill()
        child.communicate()
        place.server.start()


def test_after_kill_9_in_an_outage_the_next_run_sends_what_was_left(place):
    killed_in_an_outage(place)
    with place.writer() as writer:
        writer.add_scalar("a", 400.0, 400)
        assert writer.flush(timeout=PATIENCE_SECS)
    assert steps(place.path, "a") == list(range(401))


def test_after_kill_9_in_an_outage_ship_sends_what_was_left(place):
    killed_in_an_outage(place)
    (shipped,) = ship(place.spool, storage_options=place.options)
    assert (shipped.files, shipped.error) == (1, None)
    assert scalars(place.path, "a") == [(step, float(step)) for step in range(400)]
    assert statuses(place.path) == ["clean"]


def test_a_shipper_process_sends_what_a_training_killed_in_an_outage_left(place):
    killed_in_an_outage(place, shipper="process")
    wait_until(lambda: not [*place.spool.iterdir()], within=60, what="the spool is empty")
    assert steps(place.path, "a") == list(range(400))


def test_a_sub_run_of_any_name_leaves_the_run_alone_here_too(place):
    keeps_on(place.url, place.options, place.spool)


def test_odd_names_are_read_back_by_their_url(place):
    check(f"{place.url}/a b/%20/a#b/损失-ü/&=+;,@!$'()~[x]{{y}}", place.options, place.spool)


@pytest.mark.usefixtures("patient")
def test_a_wrong_password_is_an_error_at_construction_that_does_not_show_it(place):
    place.options["password"] = "wrong-horse"
    with pytest.raises(SinkError, match=r"sftp://.*127\.0\.0\.1:.*AuthenticationException") as raised:
        place.writer()
    assert "wrong-horse" not in str(raised.value)


def test_what_is_on_the_server_is_read_back(place):
    with place.writer() as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush(timeout=PATIENCE_SECS)
    events = tbwriter.read_events(place.url, storage_options=place.options)
    assert [(event.step, value.scalar()) for event in events for value in event.values] == [(1, 1.0)]


def test_what_is_open_for_reading_outlives_a_put_that_fails(place):
    with place.writer() as writer:
        writer.add_histogram("a", [1.0, 2.0], 1)
        assert writer.flush(timeout=PATIENCE_SECS)
        (path,) = event_files(place.path)
        with tbwriter.sinks.open_file(f"{place.url}/{path.name}", place.options) as file:
            begin = file.read(10)
            in_the_way = place.path / "m_x"
            in_the_way.touch()
            writer.add_scalars("m", {"x": 1.0}, 1)
            wait_until(lambda: writer.stats().last_error is not None, within=PATIENCE_SECS)
            assert begin + file.read() == path.read_bytes()
        in_the_way.unlink()


def test_who_only_reads_goes_on_after_the_server_was_away(place):
    from tbwriter.sinks import _store

    with place.writer() as writer:
        writer.add_scalar("a", 1.0, 1)
    _store._stores.clear()  # as in a process that never wrote
    (path,) = event_files(place.path)
    url = f"{place.url}/{path.name}"
    with tbwriter.sinks.open_file(url, place.options) as file:
        file.read(10)
        place.server.stop()
        try:
            with pytest.raises(OSError, match="sftp://"):
                file.read()
            with pytest.raises(OSError, match="sftp://"):
                tbwriter.sinks.list_names(place.url, place.options)
        finally:
            place.server.start()
    assert tbwriter.sinks.list_names(place.url, place.options) == [path.name]
    with tbwriter.sinks.open_file(url, place.options) as file:
        assert file.read() == path.read_bytes()


@pytest.mark.usefixtures("patient")
def test_a_password_in_the_url_works_and_is_shown_nowhere(place, caplog):
    options = {"storage_options": {"look_for_keys": False, "allow_agent": False}, "spool_dir": place.spool}
    url = place.url.replace("@", ":{}@")
    with SummaryWriter(url.format(PASSWORD), **options) as writer:
        writer.add_scalar("a", 1.0, 1)
        assert writer.flush(timeout=PATIENCE_SECS)
        writer.add_scalars("m", {"x" * 300: 1.0}, 1)  # a name that the server's disk does not take
        assert not writer.flush(timeout=1)
        shown = [repr(writer), repr(writer.stats()), repr(writer.__getstate__())]
        writer.close(timeout=0.5)
    with pytest.raises(SinkError) as raised:
        SummaryWriter(url.format("wrong-horse"), **options)
    shown += [str(raised.value), repr(raised.value), *(record.getMessage() for record in caplog.records)]
    shown += [path.read_text() for path in place.spool.rglob("url.json")]
    assert scalars(place.path, "a") == [(1, 1.0)]
    assert not [text for text in shown if "horse" in text]


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


def test_adding_never_waits_for_a_server_that_hangs(place):
    """None of the calls to the server is in the way of the loop: the queue is empty while the server hangs."""
    with place.writer(flush_secs=0.02) as writer:
        place.server.hangs = True
        for step in range(1000):
            writer.add_scalar("a", float(step), step)
        wait_until(lambda: writer.stats().queued == 0, within=PATIENCE_SECS, what="everything in the spool")
        place.server.hangs = False
    assert steps(place.path, "a") == list(range(1000))
