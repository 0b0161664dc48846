"""The FUSE file system of fault_fs.py, in a process of its own."""

import ctypes.util
import errno
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from needs import cannot_run
from waiting import wait_until

_SERVER = Path(__file__).parent / "fault_fs.py"
_START_SECS = 20


class Mount:
    """A mounted file system, and the side door by which tests break and watch it."""

    def __init__(self, tmp_path, subtype):
        self.server = tmp_path / "server"
        """What other machines see."""
        self.path = tmp_path / "mount"
        """What this machine sees."""
        self.server.mkdir()
        self.path.mkdir()
        self._log = tmp_path / "fuse.log"
        with open(self._log, "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_SERVER), str(self.server), str(self.path), subtype],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def is_up(self):
        if self._process.poll() is not None:
            cannot_run(f"the FUSE file system does not start: {self._log.read_text()[-500:]}")
        return os.path.ismount(self.path)

    def tell(self, **order):
        """Give an order of fault_fs.py's and return the answer."""
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def fail(self, operation, name, **plan):
        self.tell(fail=operation, errno=getattr(errno, name), **plan)

    def calls(self):
        """Return [[operation, thread], ...] since the last call of this."""
        return self.tell(calls=True)

    def stop(self):
        if self._process.poll() is None:
            self._process.kill()  # whoever hangs in it gets an error
        self._process.communicate()
        subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)


@pytest.fixture
def mount(tmp_path, request):
    """A mount of the type fuse.fault, or of the sub-type that the test is parametrized with."""
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        cannot_run("a FUSE mount needs /dev/fuse and root")
    if importlib.util.find_spec("mfusepy") is None or ctypes.util.find_library("fuse") is None:
        cannot_run("needs mfusepy and libfuse2")
    mount = Mount(tmp_path, getattr(request, "param", "fault"))
    try:
        wait_until(mount.is_up, within=_START_SECS, what="a mounted file system")
        yield mount
    finally:
        mount.stop()
