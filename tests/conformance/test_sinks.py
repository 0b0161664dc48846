"""Every sink passes the suite of tbwriter.testing, and so do the wrappers that do nothing to it."""

import itertools
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from event_files import read_bytes

import tbwriter
from tbwriter.testing import FaultySink, SinkTests, SlowSink

_numbers = itertools.count()


def no_fault(call, number):
    return None


class _OnDisk(SinkTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.directory = tmp_path / "run"
        self.url = str(self.directory)

    def open(self, name, header):
        return tbwriter.open_sink(self.url, name=name, header=header)

    def stored(self, name):
        path = self.directory / name
        return path.read_bytes() if path.exists() else None


class TestAFileSinkAtAPath(_OnDisk):
    pass


class TestAFileSinkAtAPathObject(_OnDisk):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.directory = self.url = tmp_path / "deep" / "er" / "run"


class TestAFileSinkAtAFileUrl(_OnDisk):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.directory = tmp_path / "run"
        self.url = f"file://{self.directory}"


class TestAFileSinkAtARelativePath(_OnDisk):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        self.directory = tmp_path / "runs" / "first"
        self.url = "runs/first"


class TestAFileSinkAtAPathWithBlanksAndChinese(_OnDisk):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.directory = tmp_path / "训练 日志 #1 100%" / "rank 0"
        self.url = str(self.directory)


class TestAFileSinkOnASharedFileSystem(_OnDisk):
    def open(self, name, header):
        return tbwriter.sinks.FileSink(self.url, name=name, header=header, shared=True)


class _InMemory(SinkTests):
    @pytest.fixture(autouse=True)
    def place(self):
        self.folder = f"/conformance/{next(_numbers)}"
        self.url = f"memory:/{self.folder}"
        yield
        memory = fsspec.filesystem("memory")
        if memory.exists(self.folder):
            memory.rm(self.folder, recursive=True)

    def open(self, name, header):
        return tbwriter.open_sink(self.url, name=name, header=header)

    def stored(self, name):
        memory, path = fsspec.filesystem("memory"), f"{self.folder}/{name}"
        return memory.cat_file(path) if memory.exists(path) else None


class TestAMemorySink(_InMemory):
    pass


class TestAMemorySinkAtAUrlThatEndsInASlash(_InMemory):
    def open(self, name, header):
        return tbwriter.open_sink(self.url + "/", name=name, header=header)


class TestAFaultySinkWithoutFaultsAroundAFile(_OnDisk):
    def open(self, name, header):
        return FaultySink(super().open(name, header), no_fault, header=header)


class TestAFaultySinkWithoutFaultsAroundMemory(_InMemory):
    def open(self, name, header):
        return FaultySink(super().open(name, header), no_fault, header=header)


class TestASlowSinkAroundAFile(_OnDisk):
    def open(self, name, header):
        return SlowSink(super().open(name, header), 0.0)


class TestASlowSinkAroundMemory(_InMemory):
    def open(self, name, header):
        return SlowSink(super().open(name, header), 0.0)


class DictSink:
    """What another package may bring: a store that only tells what was flushed, and knows no handles."""

    max_durability = tbwriter.Durability.REMOTE
    visible_at = tbwriter.Durability.OS

    def __init__(self, store, folder, name, header):
        self._store = store
        self._folder = folder
        self._buffer = b""
        self._status = tbwriter.SinkStatus(path="", segment=-1)
        self.roll(name, header)

    @property
    def name(self):
        return self._status.path.rsplit("/", 1)[1]

    def append(self, records):
        self._buffer += records

    def roll(self, name, header):
        self.flush()
        path = f"{self._folder}/{name}"
        if path in self._store:
            raise FileExistsError(path)
        self._store[path] = b""
        self._buffer = header
        self._status = replace(self._status, path=path, segment=self._status.segment + 1)

    def roll_due(self):
        return False

    def flush(self, level=tbwriter.Durability.OS, timeout=None):
        if self._buffer:
            self._store[self._status.path] += self._buffer
            size = self._status.bytes_remote + len(self._buffer)
            self._status = replace(self._status, bytes_remote=size, puts=self._status.puts + 1)
            self._buffer = b""
        return self.max_durability

    def release(self):
        pass

    def status(self):
        return self._status

    def close(self, timeout=10.0):
        self.flush()
        return self._status


STORE = {}


def list_store(url, options):
    return [path.removeprefix(url + "/") for path in STORE if path.startswith(url + "/")]


tbwriter.register_sink(
    "conformance-dict", lambda url, name, header, options: DictSink(STORE, url, name, header), list_store
)


class TestASinkOfAnotherPackage(SinkTests):
    @pytest.fixture(autouse=True)
    def place(self):
        self.url = f"conformance-dict://{next(_numbers)}"
        yield
        STORE.clear()

    def open(self, name, header):
        return tbwriter.open_sink(self.url, name=name, header=header)

    def stored(self, name):
        return STORE.get(f"{self.url}/{name}")


def test_a_writer_stores_through_a_sink_of_another_package():
    with tbwriter.SummaryWriter("conformance-dict://job/1", rank=3) as writer:
        writer.add_scalar("loss", 0.5, 1)
        assert writer.sync()
    ((path, data),) = STORE.items()
    STORE.clear()
    assert path.startswith("conformance-dict://job/1/rank_3/events.out.tfevents.")
    events, status = read_bytes(data)
    assert status == "clean"
    assert [(value.tag, event.step, value.simple_value) for event in events for value in event.values] == [
        ("loss", 1, 0.5)
    ]


@pytest.mark.parametrize("scheme", ["", "file", "a/b", "1st", "x:", "x://"])
def test_a_scheme_that_urls_cannot_have_is_refused(scheme):
    with pytest.raises(ValueError, match="scheme must be letters, digits"):
        tbwriter.register_sink(scheme, None, None)


def test_a_url_that_no_sink_serves_is_refused_with_those_that_are():
    with pytest.raises(
        ValueError, match=r"no sink serves nowhere://; want a local path, or one of file://, .*memory://"
    ):
        tbwriter.open_sink("nowhere://run", name="events.out.tfevents.1.h.1.000000")


@pytest.mark.parametrize("place", ["/tmp/run", "file:///tmp/run", "memory://run"])
def test_storage_options_that_mean_nothing_are_refused_without_their_values(place):
    with pytest.raises(ValueError, match=r"storage_options \['key'\] mean nothing for '.*run'; leave them out"):
        tbwriter.open_sink(place, name="events.out.tfevents.1.h.1.000000", storage_options={"key": "secret"})


def test_a_faulty_sink_raises_what_it_is_told_before_anything_is_stored(tmp_path):
    sink = tbwriter.open_sink(tmp_path, name="tfevents.1", header=b"head")
    wrapped = FaultySink(sink, lambda call, number: OSError("full") if (call, number) == ("append", 2) else None)
    wrapped.append(b"one")
    with pytest.raises(OSError, match="full"):
        wrapped.append(b"two")
    wrapped.append(b"three")
    assert (tmp_path / "tfevents.1").read_bytes() == b"headonethree"
    assert wrapped.calls == {"append": 3}
    wrapped.close()


def test_a_faulty_sink_knows_what_a_crash_of_the_machine_leaves(tmp_path):
    sink = FaultySink(tbwriter.open_sink(tmp_path, name="tfevents.1", header=b"head"), no_fault, header=b"head")
    assert sink.survivors() == {}
    sink.append(b"one")
    sink.flush(tbwriter.Durability.SYNC)
    sink.append(b"two")
    sink.flush(tbwriter.Durability.OS)
    assert sink.survivors() == {"tfevents.1": b"headone"}
    sink.close()


def test_a_faulty_sink_that_remembers_nothing_passes_on_and_claims_nothing(tmp_path):
    inner = tbwriter.open_sink(tmp_path, name="tfevents.1", header=b"head")
    sink = FaultySink(inner, no_fault, header=b"head", remember=False)
    sink.append(b"one")
    sink.roll("tfevents.2", b"head")
    sink.close()
    assert (tmp_path / "tfevents.1").read_bytes() == b"headone"
    with pytest.raises(ValueError, match="survivors are not known with remember=False"):
        sink.survivors()


def test_a_fault_of_flush_shows_in_the_level_that_is_reached(tmp_path):
    sink = tbwriter.open_sink(tmp_path, name="tfevents.1", header=b"head")
    wrapped = FaultySink(sink, lambda call, number: OSError("full") if call == "flush" else None)
    assert wrapped.flush(tbwriter.Durability.SYNC) is tbwriter.Durability.BUFFER
    wrapped.close()


def test_a_slow_sink_adds_its_delay_to_append_roll_and_flush(tmp_path):
    delays = []
    sink = SlowSink(tbwriter.open_sink(tmp_path, name="tfevents.1", header=b"head"), 0.25, sleep=delays.append)
    sink.append(b"one")
    sink.roll("tfevents.2", b"head")
    sink.flush()
    sink.close()
    assert delays == [0.25, 0.25, 0.25]
    assert sorted(path.name for path in Path(tmp_path).iterdir()) == ["tfevents.1", "tfevents.2"]
