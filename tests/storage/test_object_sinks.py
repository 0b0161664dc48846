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
        return "/" + path.removeprefix("storage-test://").strip("/")


fsspec.register_implementation("storage-test", OtherStore, clobber=True)


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
    calls.pop().cancel()
    putting.join(20)
    asyncio.run_coroutine_threadsafe(rounds(), io_loop()).result(20)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


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

    class Down(OtherStore):
        protocol = "down-test"
        is_down = False

        def pipe_file(self, path, value, mode="overwrite", **kwargs):
            if self.is_down:
                raise ConnectionError("down")
            super().pipe_file(path, value)

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
