"""A store of any kind that takes connections and then answers nothing: calls have an end, and so has the process."""

import itertools
import json
import os
import signal
import socket
import threading

import pytest
from children import Child
from event_files import steps
from needs import need
from proxy import Proxy
from samba import PASSWORD, USER, Samba
from servers import KEY, SECRET
from test_object_sinks import driver
from waiting import wait_until

import tbwriter
from tbwriter import SummaryWriter

_numbers = itertools.count()
PATIENCE_SECS = 30


class Relay:
    """Hands bytes on to a server; `freeze` leaves what is connected without an answer for good, new ones get theirs."""

    def __init__(self, port):
        self._backend = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._frozen = threading.Event()  # of the connections since the last freeze
        self._sockets = [self._listening]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._backend))
            self._sockets += [client, server]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(*pair, self._frozen), daemon=True).start()

    @staticmethod
    def _copy(source, target, frozen):
        try:
            while data := source.recv(1 << 16):
                if not frozen.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def freeze(self):
        frozen, self._frozen = self._frozen, threading.Event()
        frozen.set()

    def stop(self):
        for one in self._sockets:
            one.close()


@pytest.fixture(scope="module")
def samba(tmp_path_factory):
    driver("smbprotocol")
    server = Samba(tmp_path_factory.mktemp("samba"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def sftp(tmp_path_factory):
    for package in ("asyncssh", "paramiko"):
        driver(package)
    from sftp_server import SftpServer

    server = SftpServer(tmp_path_factory.mktemp("sftp"), "trainer", "horse")
    yield server
    server.end()


class Hanging:
    """`url` and `options` of a place whose server hangs when it is told to."""

    def __init__(self, url, options, hang, resume):
        self.url, self.options, self.hang, self.resume = url, options, hang, resume


def _of_http(port, url, options):
    proxy = Proxy(port)
    place = Hanging(
        url, options(proxy.url), lambda: setattr(proxy, "fault", "hang"), lambda: setattr(proxy, "fault", None)
    )
    return place, proxy.stop


def _s3(request, name):
    need("s3fs")
    port = request.getfixturevalue("seaweedfs").port
    return _of_http(port, f"s3://bucket/{name}", lambda url: {"endpoint_url": url, "key": KEY, "secret": SECRET})


def _google(request, name):
    driver("gcsfs")
    port = request.getfixturevalue("fakegcs").port
    return _of_http(port, f"gs://bucket/{name}", lambda url: {"endpoint_url": url, "token": "anon"})


def _azure(request, name):
    driver("adlfs")
    azurite = request.getfixturevalue("azurite")
    text = azurite.connection.replace(f"127.0.0.1:{azurite.port}", "{}")
    return _of_http(
        azurite.port, f"az://bucket/{name}", lambda url: {"connection_string": text.format(url.split("//")[1])}
    )


def _sftp(request, name):
    server = request.getfixturevalue("sftp")
    options = {"password": "horse", "look_for_keys": False, "allow_agent": False}
    url = f"sftp://trainer@127.0.0.1:{server.port}/{name}"
    hang = lambda: setattr(server, "hangs", True)  # noqa: E731
    return Hanging(url, options, hang, lambda: setattr(server, "hangs", False)), lambda: None


def _smb(request, name):
    server = request.getfixturevalue("samba")
    url = f"smb://{USER}@127.0.0.1:{server.port}/share/{name}"

    def send(number):
        os.killpg(server.group, number)

    place = Hanging(url, {"password": PASSWORD}, lambda: send(signal.SIGSTOP), lambda: send(signal.SIGCONT))
    return place, lambda: None


@pytest.fixture(params=[_s3, _google, _azure, _sftp, _smb], ids=lambda kind: kind.__name__.strip("_"))
def place(request):
    place, stop = request.param(request, f"hanging{next(_numbers)}")
    yield place
    place.resume()
    stop()


@pytest.mark.parametrize("end", ["writer.close(0.5)", ""])
def test_a_process_ends_while_its_store_hangs_and_ship_sends_what_it_left(place, tmp_path, end):
    """Also where nobody closes: then the exit waits for it, here one second."""
    code = f"""
import json
from tbwriter import _live
_live.EXIT_SECS = 1.0
writer = SummaryWriter(sys.argv[1], storage_options=json.loads(sys.argv[2]), spool_dir=sys.argv[3], flush_secs=0.05)
writer.add_scalar("loss", 0.0, 0)
assert writer.flush({PATIENCE_SECS})
say("flushed")
wait_for_parent()
for step in range(1, 100):
    writer.add_scalar("loss", float(step), step)
{end}
"""
    with Child(code, place.url, json.dumps(place.options), tmp_path / "spool") as child:
        child.hears("flushed")
        place.hang()
        child.go_on()
        ended = child.end()
    assert ended.returncode == 0
    assert "bytes not stored; they are in" in ended.err
    assert "Traceback" not in ended.err
    place.resume()
    (report,) = tbwriter.ship(tmp_path / "spool", storage_options=place.options)
    assert report.error is None
    events = tbwriter.read_events(place.url, storage_options=place.options)
    assert [event.step for event in events if event.values] == list(range(100))


@pytest.mark.parametrize("kind", ["sftp", "smb"])
def test_a_connection_that_is_lost_without_a_word_is_given_up_and_made_anew(kind, request, tmp_path, monkeypatch):
    """As a firewall loses it: neither side is told."""
    from tbwriter.sinks import _appending

    monkeypatch.setattr(_appending, "CALL_SECS", 1.0)
    server = request.getfixturevalue({"sftp": "sftp", "smb": "samba"}[kind])
    place, _ = {"sftp": _sftp, "smb": _smb}[kind](request, f"lost{next(_numbers)}")
    relay = Relay(server.port)
    url = place.url.replace(f":{server.port}/", f":{relay.port}/")
    with SummaryWriter(url, storage_options=place.options, spool_dir=tmp_path, flush_secs=0.05) as writer:
        for step in range(3):
            writer.add_scalar("loss", float(step), step)
            assert writer.flush(PATIENCE_SECS)
            relay.freeze()
    relay.stop()
    assert steps(server.root / url.rsplit("/", 1)[1], "loss") == [0, 1, 2]


def test_a_call_of_webhdfs_has_an_end(monkeypatch):
    from tbwriter.sinks import _store

    monkeypatch.setattr(_store, "READ_SECS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"webhdfs://127.0.0.1:{server.getsockname()[1]}/run"
        with pytest.raises(OSError, match="Read timed out"):
            _store.store_for(url, None).put(f"{url}/a", b"x")


def test_of_calls_that_never_end_only_a_few_are_left_behind(monkeypatch):
    from test_object_sinks import OtherStore

    from tbwriter.sinks import _store

    ends = threading.Event()
    begun = []

    class Stuck(OtherStore):
        def pipe_file(self, *args, **kwargs):
            begun.append(args)
            ends.wait()

    monkeypatch.setattr(_store, "CALL_SECS", 0.05)
    store = _store.Store("storage-test", {})
    store._fs = Stuck(skip_instance_cache=True)
    for _ in range(20):
        with pytest.raises(TimeoutError):
            store.put("storage-test://run/a", b"x")
    ends.set()
    assert len(begun) == store.most_calls
    wait_until(lambda: store._calls.acquire(blocking=False), within=PATIENCE_SECS)
