"""A FUSE file system over a directory that fails, stalls and counts as told: `python fault_fs.py SERVER MOUNT SUBTYPE`.

The directory SERVER stands for the file server: what is there is what other machines see. Each line of standard input
is a JSON object, answered by one line when it holds:

    {"fail": "write", "errno": 28, "times": 10, "after": 3, "short": 100}   after 3 good calls 10 fail; the first of
                                                                           them stores 100 bytes all the same
    {"hang": "write"}             its calls wait until {"release": true}
    {"delay_secs": 0.05}          of every call from now on
    {"no_links": true}            all files are said to have none
    {"write_back": true}          writes reach the server by a sync or a close, as of a client that caches
    {"close_only": true}          by a close alone: a sync does nothing, as of mounts of object stores
    {"no_growth": 1}              a file that was synced or closed takes no more: its writes fail with this number
    {"calls": true}               answered by [[operation, thread], ...] since the last such question
"""

import collections
import json
import os
import sys
import threading
import time

import mfusepy

_REQUEST_BYTES = 1 << 16
_REQUEST_SECS = 0.02


class FaultFS(mfusepy.Operations):
    use_ns = True

    def __init__(self, server):
        self._server = server
        self._faults = collections.defaultdict(
            collections.deque
        )  # operation -> None for a good call, or (errno, short)
        self._hanging = set()
        self._released = threading.Event()
        self._calls = []
        self._delay_secs = 0.0
        self._write_back = False
        self._close_only = False
        self._no_links = False
        self._no_growth = 0
        self._sealed = set()
        self._cached = collections.defaultdict(dict)  # path -> offset -> data not yet on the server

    def told(self, order):
        """Do what a line of standard input says; return the answer."""
        answer = True
        if "fail" in order:
            plan = self._faults[order["fail"]]
            plan.extend([None] * order.get("after", 0))
            plan.extend(
                (order["errno"], order.get("short", 0) if number == 0 else 0) for number in range(order.get("times", 1))
            )
        elif "hang" in order:
            self._hanging.add(order["hang"])
        elif "release" in order:
            self._hanging.clear()
            self._released.set()
        elif "delay_secs" in order:
            self._delay_secs = order["delay_secs"]
        elif "no_links" in order:
            self._no_links = order["no_links"]
        elif "no_growth" in order:
            self._no_growth = order["no_growth"]
        elif "write_back" in order:
            self._write_back = order["write_back"]
        elif "close_only" in order:
            self._write_back = self._close_only = order["close_only"]
        elif "calls" in order:
            answer, self._calls = self._calls, []
        return answer

    def _enter(self, operation):
        """Count a call; wait or fail as planned. Returns how many bytes a write stores before it fails."""
        self._calls.append((operation, mfusepy.fuse_get_context()[2]))
        if operation in self._hanging:
            self._released.wait()
        if self._delay_secs:
            time.sleep(self._delay_secs)
        plan = self._faults[operation]
        fault = plan.popleft() if plan else None
        if fault is None:
            return None
        number, short = fault
        if not short:
            raise OSError(number, os.strerror(number))
        plan.appendleft((number, 0))
        return short

    def _at(self, path):
        return os.path.join(self._server, path.lstrip("/"))

    def _store(self, path, handle):
        """Send what is cached, as clients do: what lies side by side in requests of 64 KiB, in an order of its own."""
        pieces = []
        for offset, data in sorted(self._cached.pop(path, {}).items()):
            if pieces and pieces[-1][0] + len(pieces[-1][1]) == offset:
                pieces[-1] = pieces[-1][0], pieces[-1][1] + data
            else:
                pieces.append((offset, data))
        requests = [
            (begin + at, data[at : at + _REQUEST_BYTES])
            for begin, data in reversed(pieces)
            for at in reversed(range(0, len(data), _REQUEST_BYTES))
        ]
        for number, (offset, data) in enumerate(requests):
            if number:
                time.sleep(_REQUEST_SECS)  # long enough for others to look at what is there
            os.pwrite(handle, data, offset)

    def _seal(self, path):
        if self._no_growth:
            self._sealed.add(path)

    def getattr(self, path, fh=None):
        self._enter("getattr")
        found = os.lstat(self._at(path)) if fh is None else os.fstat(fh)
        names = ("st_atime_ns", "st_ctime_ns", "st_mtime_ns")
        times = {name.removesuffix("_ns"): getattr(found, name) for name in names}
        kept = ("st_gid", "st_mode", "st_nlink", "st_size", "st_uid", "st_ino", "st_blocks")
        attributes = {**{name: getattr(found, name) for name in kept}, **times}
        ends = [offset + len(data) for offset, data in self._cached[path].items()]
        attributes["st_size"] = max([found.st_size, *ends])
        if self._no_links:
            attributes["st_nlink"] = 0
        return attributes

    def readdir(self, path, fh):
        self._enter("readdir")
        return [".", "..", *os.listdir(self._at(path))]

    def mkdir(self, path, mode):
        self._enter("mkdir")
        os.mkdir(self._at(path), mode)

    def create(self, path, mode, fi=None):
        self._enter("create")
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path, flags):
        self._enter("open")
        return os.open(self._at(path), flags & ~os.O_CREAT)

    def read(self, path, size, offset, fh):
        self._enter("read")
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        short = self._enter("write")
        if path in self._sealed:
            raise OSError(self._no_growth, os.strerror(self._no_growth))
        data = data[:short]
        if not self._write_back:
            return os.pwrite(fh, data, offset)
        self._cached[path][offset] = data
        return len(data)

    def truncate(self, path, length, fh=None):
        self._enter("truncate")
        if fh is None:
            os.truncate(self._at(path), length)
        else:
            self._store(path, fh)
            os.ftruncate(fh, length)

    def fsync(self, path, datasync, fh):
        self._enter("fsync")
        self._seal(path)
        if not self._close_only:
            self._store(path, fh)
            os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        self._enter("fsyncdir")

    def rename(self, old, new):
        self._enter("rename")
        os.rename(self._at(old), self._at(new))

    def unlink(self, path):
        self._enter("unlink")
        self._sealed.discard(path)
        os.unlink(self._at(path))

    def rmdir(self, path):
        self._enter("rmdir")
        os.rmdir(self._at(path))

    def flush(self, path, fh):
        # close(2) waits for this, and not for the release, which comes some time after it.
        self._enter("flush")
        self._seal(path)
        self._store(path, fh)

    def release(self, path, fh):
        self._enter("release")
        os.close(fh)

    def statfs(self, path):
        found = os.statvfs(self._server)
        return {name: getattr(found, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_namemax")}


def obey(file_system):
    for line in sys.stdin:
        sys.stdout.write(json.dumps(file_system.told(json.loads(line))) + "\n")
        sys.stdout.flush()


def main(server, mount, subtype):
    file_system = FaultFS(server)
    threading.Thread(target=obey, args=(file_system,), daemon=True).start()
    # Nothing is cached: each look goes to the server. A deleted file is gone there.
    mfusepy.FUSE(
        file_system, mount, foreground=True, attr_timeout=0, entry_timeout=0, negative_timeout=0, hard_remove=True,
        big_writes=True, direct_io=False, subtype=subtype,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
