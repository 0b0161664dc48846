"""Samba's file server over a directory, as a child process on a port of its own, with files of its own alone."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from needs import cannot_run
from servers import free_port
from waiting import wait_until

USER, PASSWORD = "root", "correct-horse"  # smbd runs as this system's user
_START_SECS = 30
_CONFIG = """
[global]
server role = standalone server
workgroup = TESTS
smb ports = {port}
interfaces = 127.0.0.1
bind interfaces only = yes
disable netbios = yes
load printers = no
disable spoolss = yes
passdb backend = tdbsam:{home}/passdb.tdb
private dir = {home}
lock directory = {home}
state directory = {home}
cache directory = {home}
pid directory = {home}
ncalrpc dir = {home}/ncalrpc
log file = {home}/log
log level = 1
[share]
path = {root}
read only = no
"""


class Samba:
    def __init__(self, directory):
        if os.geteuid() != 0:
            cannot_run("smbd needs root to act for its users")
        self._smbd = shutil.which("smbd") or shutil.which("smbd", path="/usr/sbin") or cannot_run("needs samba")
        home = Path(directory) / "home"
        self.root = Path(directory) / "share"
        """What is on the server."""
        home.mkdir()
        self.root.mkdir()
        self.port = free_port()
        self._config = home / "smb.conf"
        self._config.write_text(_CONFIG.format(port=self.port, home=home, root=self.root))
        self._process = None
        subprocess.run(
            [shutil.which("smbpasswd"), "-c", str(self._config), "-s", "-a", USER],
            input=f"{PASSWORD}\n{PASSWORD}\n", text=True, check=True, capture_output=True,
        )  # fmt: skip
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [self._smbd, "--foreground", "--no-process-group", f"--configfile={self._config}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(self._answers, within=_START_SECS, what="smbd")

    def _answers(self):
        assert self._process.poll() is None, "smbd has ended"
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    @property
    def group(self):
        """The process group of the server and of its processes for connections."""
        return self._process.pid

    def stop(self):
        """End the server and every connection."""
        os.killpg(self.group, signal.SIGKILL)
        self._process.wait()
