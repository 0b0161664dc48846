"""The storage that writers are compared on, each kind behind a URL that all writers understand.

A slow file system is a local directory each of whose operations takes some milliseconds longer, in the thread that
makes it. Every writer reaches it through its own interface for storage: tbwriter's `register_sink`, the file systems of
tensorboard (torch's writer too), the record writers of tensorboardX. What counts as an operation is what goes to the
operating system: an append or flush of a sink, an open-write-close of tensorboard, a write of tensorboardX's buffer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import _machine, _s3
from benchmarks._run import UnusableError
from benchmarks._setting import Setting
from benchmarks._writers import EVENT_FILE, TBWRITER, TENSORBOARDX, TORCH, Logger, open_writer
from tbwriter import SummaryWriter, sinks
from tbwriter.testing import SlowSink

NONE, MEMORY, LOCAL, FSYNC = "none", "memory", "local", "fsync"
SLOW5, SLOW50, NFS, S3 = "slow5", "slow50", "nfs", "s3"
NAMES = (NONE, MEMORY, LOCAL, FSYNC, SLOW5, SLOW50, NFS, S3)
LOGDIR = "logdir"
"""The user's own storage."""

_DELAYS = {SLOW5: 0.005, SLOW50: 0.050}
_SCHEME = "benchmark-"
_TRY_SECS, _CLOSE_SECS = 15.0, 1.0
_EVERY_WRITER = frozenset({TBWRITER, TENSORBOARDX, TORCH, EVENT_FILE})


@dataclass(frozen=True)
class Store:
    """A kind of storage that is there.

    Attributes:
        name: of `NAMES`, or `LOGDIR`.
        prefix: what comes before the path of a directory.
        writers: which of them can write to it.
        options: of tbwriter's SummaryWriter.
        local: directories lie on a local disk; else below `prefix`.
    """

    name: str
    prefix: str = ""
    writers: frozenset[str] = frozenset({TBWRITER})
    options: Mapping[str, Any] = field(default_factory=dict)
    local: bool = True

    def fresh(self, setting: Setting) -> str:
        """Return a new place in it, as a path or URL."""
        directory = setting.fresh()
        return self.prefix + (str(directory) if self.local else f"/{directory.parent.name}-{directory.name}")

    def open(self, writer: str, setting: Setting, **options: Any) -> Logger:
        """Open a writer on a new place; `options` are for tbwriter."""
        return open_writer(writer, self.fresh(setting), **({**self.options, **options} if writer == TBWRITER else {}))


ABOUT = (
    "Sinks: none checks and throws away, memory is memory://, fsync is a local disk that is synced at every operation, "
    "slow5 and slow50 one whose operations take 5 or 50 ms longer, nfs a mount that this machine has, s3 is moto's "
    "server in another process here."
)


@contextlib.contextmanager
def opened(setting: Setting) -> Iterator[tuple[dict[str, Store], list[str]]]:
    """Prepare the storage that `setting` asks for; yields it by name, and sentences on what is missing.

    Raises:
        UnusableError: the user's own storage cannot be written.
    """
    stores: dict[str, Store] = {}
    missing: list[str] = []
    with contextlib.ExitStack() as stack:
        for name in setting.sinks:
            if name == NONE:
                stores[name] = Store(name, options={"write_to_disk": False})
            elif name == MEMORY:
                stores[name] = Store(name, "memory://")
            elif name == LOCAL:
                stores[name] = Store(name, writers=_EVERY_WRITER)
            elif name == FSYNC:
                sinks.register_sink(_SCHEME + name, _open_synced, _list)
                stores[name] = Store(name, f"{_SCHEME}{name}://")
            elif name in _DELAYS:
                stores[name] = Store(name, f"{_SCHEME}{name}://", _register_slow(_SCHEME + name, _DELAYS[name]))
            elif name == NFS:
                mounted = _machine.nfs_directory()
                if mounted is None:
                    missing.append("nfs was left out: no mount that can be written.")
                else:
                    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-", dir=mounted))
                    stores[name] = Store(name, directory, _EVERY_WRITER, local=False)
            else:
                reason = _s3.missing()
                if reason:
                    missing.append(f"s3 was left out: {reason}.")
                else:
                    url, options = stack.enter_context(_s3.server())
                    stores[name] = Store(name, url, options={"storage_options": options}, local=False)
        if setting.logdir is not None:
            stores[LOGDIR] = Store(LOGDIR, setting.logdir, local=False)
            _try(stores[LOGDIR], setting)
        yield stores, missing


def _try(store: Store, setting: Setting) -> None:
    """Write a scalar to the user's own storage: one that takes nothing would be measured as a fast one."""
    try:
        writer = SummaryWriter(store.fresh(setting))
        try:
            writer.add_scalar("benchmark/try", 0.0, 0)
            stored = writer.flush(_TRY_SECS)
        finally:
            writer.close(_CLOSE_SECS)
    except Exception as exc:  # whatever a store's driver raises
        raise UnusableError(f"--logdir {store.prefix}: {exc}") from exc
    if not stored:
        raise UnusableError(f"--logdir {store.prefix}: does not take what is written; see the message above")


def _open_synced(url: str, name: str, header: bytes, options: Mapping[str, Any]) -> sinks.Sink:
    """Open a sink whose every operation begins by bringing all that was written before to the disk."""
    sink = sinks.open_sink(_path(url), name=name, header=header, storage_options=options)
    return SlowSink(sink, 0.0, sleep=lambda _: sink.flush(sinks.Durability.SYNC))


def _path(url: str) -> str:
    return url.split("://", 1)[1]


def _list(url: str, options: Mapping[str, Any]) -> list[str]:
    del options
    return sinks.list_names(_path(url))


def _register_slow(scheme: str, delay: float) -> frozenset[str]:
    """Register a slow file system with every writer that is installed; return their names."""

    def open_slow(url: str, name: str, header: bytes, options: Mapping[str, Any]) -> sinks.Sink:
        time.sleep(delay)
        return SlowSink(sinks.open_sink(_path(url), name=name, header=header, storage_options=options), delay)

    sinks.register_sink(scheme, open_slow, _list)
    writers = {TBWRITER}
    # With tensorflow installed, tensorboard writes through it and not through its own file systems.
    if importlib.util.find_spec("tensorboard") and not importlib.util.find_spec("tensorflow"):
        _register_tensorboard(scheme, delay)
        writers |= {TORCH, EVENT_FILE}
    if importlib.util.find_spec("tensorboardX"):
        _register_tensorboardx(scheme, delay)
        writers.add(TENSORBOARDX)
    return frozenset(writers)


def _register_tensorboard(scheme: str, delay: float) -> None:
    from tensorboard.compat.tensorflow_stub.io import gfile

    local = gfile.LocalFileSystem()

    class SlowFileSystem:
        def write(self, filename: bytes, content: bytes, binary: bool = False) -> None:
            time.sleep(delay)
            local.write(_path(filename.decode()), content, binary)

        def append(self, filename: bytes, content: bytes, binary: bool = False) -> None:
            time.sleep(delay)
            local.append(_path(filename.decode()), content, binary)

        def makedirs(self, path: str) -> None:
            local.makedirs(_path(path))

        def exists(self, path: str) -> bool:
            return bool(local.exists(_path(path)))

        def isdir(self, path: str) -> bool:
            return bool(local.isdir(_path(path)))

    gfile.register_filesystem(scheme, SlowFileSystem())


def _register_tensorboardx(scheme: str, delay: float) -> None:
    from tensorboardX.record_writer import register_writer_factory

    class SlowFile(io.FileIO):
        def write(self, data: Any) -> int:
            time.sleep(delay)
            return super().write(data)

    class Factory:
        def open(self, path: str) -> io.BufferedWriter:
            return io.BufferedWriter(SlowFile(_path(path), "wb"))

        def directory_check(self, path: str) -> None:
            Path(_path(path)).mkdir(parents=True, exist_ok=True)

    register_writer_factory(scheme, Factory())
