"""Storage that tests hold, break and look into: a gate for SlowSink, faults for FaultySink, a disk."""

import errno
import itertools
import os
import threading
import time
from collections import deque

import crc32c

import tbwriter
from tbwriter.testing import FaultySink, SlowSink

# No step of a test takes this long; one that does has failed.
PATIENCE_SECS = 20
_schemes = itertools.count()


def record(body):
    """Frame `body` as TensorFlow's record_writer.h does."""
    length = len(body).to_bytes(8, "little")
    return length + _masked_crc(length) + body + _masked_crc(body)


def _masked_crc(data):
    crc = crc32c.crc32c(data)
    return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def error(number):
    """Return the OSError of an errno."""
    return OSError(number, os.strerror(number))


class Gate:
    """Holds every call of a SlowSink while it is shut."""

    def __init__(self):
        self._open = threading.Event()
        self._open.set()
        self.arrived = threading.Event()
        """Set when a call has come since the gate was shut."""

    def __call__(self, _):
        self.arrived.set()
        self._open.wait()

    def shut(self):
        self.arrived.clear()
        self._open.clear()

    def open(self):
        self._open.set()

    def wait_for_arrival(self):
        assert self.arrived.wait(PATIENCE_SECS), "the worker did not come to the storage"


class Faults:
    """Makes chosen calls of a FaultySink fail, as long as it is told to."""

    def __init__(self):
        self.error = None
        """What every call of `calls` raises; None for none."""
        self.calls = ("append",)
        self.times = []
        """When calls failed, on the monotonic clock."""

    def __call__(self, call, number):
        if self.error is None or call not in self.calls:
            return None
        self.times.append(time.monotonic())
        return self.error

    @property
    def attempts(self):
        """How many calls failed."""
        return len(self.times)


def through(directory, wrap):
    """Register a scheme that stores in `directory` through the sinks that `wrap(sink, header)` returns.

    Returns:
        the URL of the directory.
    """

    def place(url):
        return os.path.join(directory, url.split("://", 1)[1])

    def open_wrapped(url, name, header, options):
        assert not options
        return wrap(tbwriter.open_sink(place(url), name=name, header=header), header)

    def list_names(url, options):
        assert not options
        return os.listdir(place(url)) if os.path.isdir(place(url)) else []

    scheme = f"test-{next(_schemes)}"
    tbwriter.register_sink(scheme, open_wrapped, list_names)
    return f"{scheme}://run"


def slow(directory, gate):
    """As `through`, with every call held by `gate`."""
    return through(directory, lambda sink, header: SlowSink(sink, 0.0, sleep=gate))


def faulty(directory, fault):
    """As `through`, with calls that fail by `fault`."""
    return through(directory, lambda sink, header: FaultySink(sink, fault, header=header))


class Disk:
    """The system calls of file sinks: counted, and made to fail as planned."""

    NAMES = ("open", "pwrite", "ftruncate", "fdatasync", "fsync", "close", "lseek", "write", "posix_fallocate")

    def __init__(self, monkeypatch):
        self.calls = []
        """(name, arguments) of each call."""
        self._plans = {name: deque() for name in self.NAMES}
        self._real = {name: getattr(os, name) for name in self.NAMES}
        for name in self.NAMES:
            monkeypatch.setattr(os, name, self._call(name))

    def plan(self, name, *steps):
        """Have the next calls of `name` do `steps`: raise an OSError, write only so many bytes, or None: work."""
        self._plans[name].extend(steps)

    def count(self, name):
        return sum(called == name for called, _ in self.calls)

    def arguments(self, name):
        return [arguments for called, arguments in self.calls if called == name]

    def _call(self, name):
        real = self._real[name]

        def call(*arguments, **options):
            self.calls.append((name, arguments))
            step = self._plans[name].popleft() if self._plans[name] else None
            if isinstance(step, OSError):
                if name == "close":
                    real(*arguments)
                raise step
            if step is not None:
                fd, data, offset = arguments
                return real(fd, data[:step], offset)
            return real(*arguments, **options)

        return call


NO_SPACE = error(errno.ENOSPC)
IO_ERROR = error(errno.EIO)
STALE = error(errno.ESTALE)
