"""The sink of object stores passes the suite of every sink, on each store that can be started here."""

import asyncio
import contextlib
import gc
import importlib
import importlib.util
import itertools
import threading
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from needs import cannot_run
from proxy import Proxy
from waiting import wait_until

import tbwriter
from tbwriter import sinks
from tbwriter.sinks import _object, _store, _thinning
from tbwriter.sinks._io_loop import io_loop
from tbwriter.testing import SinkTests

_numbers = itertools.count()


class _InS3(SinkTests):
    def open(self, name, header):
        return tbwriter.open_sink(
            self.place.url,
            name=name,
            header=header,
            storage_options=self.place.options,
            spool_dir=self.place.spool,
        )

    def stored(self, name):
        return self.place.objects().get(name)


class TestSeaweedFS(_InS3):
    @pytest.fixture(autouse=True)
    def _place(self, s3):
        self.place = s3


class TestMoto(_InS3):
    @pytest.fixture(autouse=True)
    def _place(self, light_s3):
        self.place = light_s3


class TestRclone(_InS3):
    @pytest.fixture(autouse=True)
    def _place(self, quirky_s3):
        self.place = quirky_s3


def driver(name):
    if importlib.util.find_spec(name) is None:
        cannot_run(f"{name} is not installed")
    return importlib.import_module(name)


class _OfFsspec(SinkTests):
    """`self.fs` looks behind the sink's back; `self.url` and `self.options` are the writer's."""

    def open(self, name, header):
        return tbwriter.open_sink(
            self.url, name=name, header=header, storage_options=self.options, spool_dir=self.spool
        )

    def stored(self, name):
        path = f"{self.url.split('://')[1]}/{name}"
        return self.fs.cat_file(path) if self.fs.exists(path) else None


class TestGoogle(_OfFsspec):
    @pytest.fixture(autouse=True)
    def _place(self, fakegcs, tmp_path):
        gcsfs = driver("gcsfs")
        self.url = f"gs://bucket/run{next(_numbers)}"
        self.options = {"endpoint_url": fakegcs.url, "token": "anon"}
        self.fs = gcsfs.GCSFileSystem(**self.options, use_listings_cache=False, skip_instance_cache=True)
        self.spool = tmp_path / "spool"


def test_googles_driver_prints_nothing_of_its_own_and_a_store_that_is_away_is_not_an_empty_place(tmp_path, caplog):
    driver("gcsfs")
    token = {"type": "authorized_user", "client_id": "me", "client_secret": "a-secret-value", "refresh_token": "mine"}
    token["token_uri"] = "http://127.0.0.1:9/token"  # where nothing answers
    options = {"endpoint_url": "http://127.0.0.1:9", "token": token}
    with pytest.raises(OSError, match="TransportError"):
        tbwriter.verify("gs://bucket/run", storage_options=options)
    writer = tbwriter.SummaryWriter("gs://bucket/run", storage_options=options, spool_dir=tmp_path)
    writer.close(0.1)
    assert "TransportError" in caplog.text
    assert {record.name.split(".")[0] for record in caplog.records} == {"tbwriter"}


@pytest.mark.usefixtures("patient")
def test_a_key_of_azures_that_is_none_is_an_error_at_construction(azurite, tmp_path):
    driver("adlfs")
    options = {"connection_string": azurite.connection.replace("==;Blob", "*;Blob")}
    with pytest.raises(tbwriter.SinkError, match=r"az://bucket/run.*AzureSigningError"):
        tbwriter.SummaryWriter("az://bucket/run", storage_options=options, spool_dir=tmp_path)


def test_azures_driver_leaves_it_to_us_to_try_again_and_to_tell(azurite, tmp_path, caplog):
    """By itself it pauses for 15 s after each error, in which nothing is told and no flush returns True."""
    driver("adlfs")
    proxy = Proxy(azurite.port)
    options = {"connection_string": azurite.connection.replace(f":{azurite.port}/", f":{proxy.port}/")}
    url = f"az://bucket/run{next(_numbers)}"
    with tbwriter.SummaryWriter(url, storage_options=options, spool_dir=tmp_path, flush_secs=0.05) as writer:
        assert writer.flush(30)
        proxy.fault = "503"
        writer.add_scalar("loss", 1.0, 1)
        assert not writer.flush(0.1)
        wait_until(lambda: "HttpResponseError" in (writer.stats().last_error or ""), within=10)
        proxy.fault = None
        assert writer.flush(30)
    proxy.stop()
    assert {record.name.split(".")[0] for record in caplog.records} == {"tbwriter"}


class TestAzure(_OfFsspec):
    @pytest.fixture(autouse=True)
    def _place(self, azurite, tmp_path):
        adlfs = driver("adlfs")
        self.url = f"az://bucket/run{next(_numbers)}"
        self.options = {"connection_string": azurite.connection}
        self.fs = adlfs.AzureBlobFileSystem(**self.options, use_listings_cache=False, skip_instance_cache=True)
        self.spool = tmp_path / "spool"


class OtherStore(MemoryFileSystem):
    """A store that fsspec knows and we do not: pipe_file is all that it needs."""

    protocol = "storage-test"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix(f"{cls.protocol}://").strip("/")


fsspec.register_implementation("storage-test", OtherStore, clobber=True)


class DownStore(OtherStore):
    """One that takes nothing while it `is_down`."""

    is_down = False

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if self.is_down:
            raise ConnectionError("down")
        super().pipe_file(path, value)


def test_a_driver_that_is_not_ready_in_time_is_told_at_construction(monkeypatch, tmp_path):
    ready = threading.Event()

    class Searching(OtherStore):
        protocol = "searching-test"

        def __init__(self, **options):
            ready.wait()  # as one that asks the network for credentials, where there is none
            super().__init__(**options)

    fsspec.register_implementation("searching-test", Searching, clobber=True)
    monkeypatch.setattr(_store, "DRIVER_SECS", 0.1)
    try:
        with pytest.raises(tbwriter.SinkError, match=r"searching-test://run.* is not ready after 0.1 s: it may look"):
            tbwriter.SummaryWriter("searching-test://run", spool_dir=tmp_path)
    finally:
        ready.set()


def test_a_driver_that_is_slow_and_a_store_that_hangs_hold_up_a_construction_no_longer_than_both_may(
    monkeypatch, tmp_path
):
    """What may be waited for is one account: here nothing but its end cuts a wait short."""
    answers = threading.Event()

    class Hanging(OtherStore):
        protocol = "hanging-test"

        def __init__(self, **options):
            threading.Event().wait(0.2)
            super().__init__(**options)

        def ls(self, *args, **kwargs):
            answers.wait()

        exists = pipe_file = ls

    fsspec.register_implementation("hanging-test", Hanging, clobber=True)
    monkeypatch.setattr(sinks, "_OPEN_SECS", 1.0)
    for name in ("LIST_SECS", "_EXISTS_SECS", "_FIRST_PUT_SECS", "_DOWN_SECS"):
        monkeypatch.setattr(_object, name, 10_000.0)
    try:
        writer = tbwriter.SummaryWriter("hanging-test://run", spool_dir=tmp_path)
        writer.close(0.1)
    finally:
        answers.set()


def test_a_driver_that_cannot_begin_tells_why_and_not_what_it_was_given(tmp_path):
    """As that of Google's, which asks a server about its token."""

    class Leaking(OtherStore):
        protocol = "leaking-test"

        def __init__(self, **options):
            raise ConnectionError("cannot reach x: url: /tokeninfo?t=a%2Ftoken%3Dof%3Dmine")

    fsspec.register_implementation("leaking-test", Leaking, clobber=True)
    options = {"token": "a/token=of=mine"}
    for call in (
        lambda: tbwriter.SummaryWriter("leaking-test://run", storage_options=options, spool_dir=tmp_path),
        lambda: tbwriter.verify("leaking-test://run", storage_options=options),
    ):
        with pytest.raises(OSError, match=r"cannot begin: ConnectionError: cannot reach x: url: /tokeninfo\?t=\*\*\*$"):
            call()


def test_ship_reports_a_driver_that_cannot_begin_and_sends_what_belongs_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(_object, "_FIRST_PUT_SECS", 0.1)

    class Away(DownStore):
        protocol = "away-at-first-test"
        is_down = True

    class Broken(Away):
        protocol = "broken-test"

    for kind in (Broken, Away):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)
        tbwriter.SummaryWriter(f"{kind.protocol}://run", spool_dir=tmp_path).close(0.1)
    Away.is_down = False
    _store._stores.clear()  # as in a new process
    Broken.__init__ = lambda *_, **__: (_ for _ in ()).throw(ConnectionError("no way to the credentials"))
    # Both are of one second, or of two.
    broken, sent = sorted(tbwriter.ship(tmp_path, timeout=0), key=lambda one: one.url, reverse=True)
    assert (
        broken.error == "[Errno 5] broken-test://: its driver cannot begin: ConnectionError: no way to the credentials"
    )
    assert (sent.error, sent.files) == (None, 1)


class OddError(Exception):
    """What a driver raises that is no OSError, as those of S3 and Azure do."""


@pytest.mark.parametrize("broken", ["isdir", "ls", "info", "a look", "open", "read", "put_file"])
def test_whatever_a_driver_raises_is_an_os_error_with_the_url_and_no_secret(broken, tmp_path):
    def fail(*_, **__):
        raise OddError("refused\nfor a-secret-value")

    class Odd(OtherStore):
        protocol = "odd-test"

    (tmp_path / "a").write_bytes(b"x")
    options = {"secret": "a-secret-value"}
    fsspec.register_implementation("odd-test", Odd, clobber=True)
    url = f"odd-test://run{next(_numbers)}"
    store = _store.store_for(url, options)
    fs = store._fs
    fs.pipe_file(store.path(f"{url}/a"), b"12345")
    calls = {
        "isdir": lambda: sinks.is_directory(url, options),
        "ls": lambda: (sinks.list_names(url, options), sinks.remote_entries(url, options)),
        "info": lambda: sinks.remote_info(f"{url}/a", options),
        "a look": lambda: sinks.is_file(url, options),
        "open": lambda: sinks.open_file(f"{url}/a", options),
        "put_file": lambda: sinks.upload(str(tmp_path / "a"), f"{url}/b", options),
    }
    if broken == "read":
        with sinks.open_file(f"{url}/a", options) as file:
            assert file.read(2) == b"12"
            file._file.read = fail
            with pytest.raises(OSError, match="OddError: refused for ") as failed:
                file.read(2)
    else:
        setattr(fs, {"a look": "info"}.get(broken, broken), fail)
        with pytest.raises(OSError, match="OddError: refused for ") as failed:
            calls[broken]()
    assert "a-secret-value" not in f"{failed.value} {failed.value!r}"
    assert failed.value.filename.startswith(url)


def test_a_store_that_fails_now_and_then_is_told_of_once_a_minute(monkeypatch, said):
    now = [1000.0]
    monkeypatch.setattr(_store, "time", SimpleNamespace(monotonic=lambda: now[0]))
    store = _store.Store("storage-test", {})
    for _ in range(600):
        now[0] += 1
        store.failed(OSError("503"), "storage-test://run", "the spool")
        assert store.is_down
        store.worked("storage-test://run")
        assert not store.is_down
    assert len(said()) == 2 * 10
    for _ in range(600):  # and one that stays away once
        now[0] += 1
        store.failed(OSError("503"), "storage-test://run", "the spool")
    assert len(said()) == 2 * 10 + 1
    store.worked("storage-test://run")
    assert said()[-1] == "storage-test://run: the store works again after 599.0 s"


@pytest.mark.parametrize(("took", "left"), [(0.0, 9.5), (2.0, 7.5), (3.0, 6.5), (60.0, 6.5)])
def test_the_import_of_a_driver_is_part_of_the_time_that_opening_takes_unless_it_takes_all_of_it(
    monkeypatch, took, left
):
    now = [1000.0]

    def load(scheme):
        now[0] += took

    monkeypatch.setattr(_store, "load", load)
    monkeypatch.setattr(sinks, "time", SimpleNamespace(monotonic=lambda: now[0]))
    assert sinks.patience("s3://bucket/run") - now[0] == left


async def rounds():
    """Return when the loop is through with what had begun."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_refusal_that_comes_as_the_put_is_given_up_is_printed_by_nobody(caplog):
    begun, calls = threading.Event(), []

    class Refusing(OtherStore):
        async def _pipe_file(self, path, data):
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError as exc:
                raise PermissionError("no") from exc

    store = _store.Store("storage-test", {})
    store._fs, store.can_cancel = Refusing(skip_instance_cache=True), True

    def put():
        with contextlib.suppress(CancelledError):
            store.put("storage-test://run/a", b"x", calls.append)

    putting = threading.Thread(target=put)
    putting.start()
    assert begun.wait(20)
    wait_until(lambda: calls, within=20)  # the loop may be at it before the thread has been given the call
    calls.pop().cancel()
    putting.join(20)
    asyncio.run_coroutine_threadsafe(rounds(), io_loop()).result(20)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_what_a_driver_leaves_behind_in_an_outage_is_not_in_the_log(caplog):
    """As aiohttp does, which writes a request in a task of its own that nobody waits for."""

    async def request():
        async def write():
            raise ConnectionResetError("Cannot write to closing transport")

        writing = asyncio.get_running_loop().create_task(write())
        while not writing.done():
            await asyncio.sleep(0)

    asyncio.run_coroutine_threadsafe(request(), io_loop()).result(20)
    gc.collect()
    assert [record.getMessage() for record in caplog.records] == []


class TestAnyOtherProtocol(_OfFsspec):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path):
        self.url = f"storage-test://run{next(_numbers)}"
        self.options = {}
        self.fs = OtherStore()
        self.spool = tmp_path / "spool"


class TestWithoutADisk(_OfFsspec):
    """No directory can be written: records wait in memory."""

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("TBWRITER_SPOOL_DIR", str(tmp_path / "file" / "below"))
        self.url = f"storage-test://memory{next(_numbers)}"
        self.options = {}
        self.fs = OtherStore()
        self.spool = None


def test_side_files_that_a_closed_writer_leaves_take_no_room_from_the_next(tmp_path):
    """What lies in the spool of a writer that is gone is not this process's any more."""

    class Down(DownStore):
        protocol = "down-test"

    fsspec.register_implementation("down-test", Down, clobber=True)
    before = _thinning.disk.free()
    writer = tbwriter.SummaryWriter("down-test://run", spool_dir=tmp_path)
    writer.add_scalar("a", 1.0, 1)
    assert writer.flush()
    Down.is_down = True
    writer.add_embedding([[1.0, 2.0]], tag="e")
    writer.flush(0.2)
    assert _thinning.disk.free() < before
    writer.close(0.2)
    assert _thinning.disk.free() == before
