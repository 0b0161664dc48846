"""An S3 server on this machine, in a process of its own: moto's."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from tbwriter import sinks

_BUCKET = "benchmark"
_START_SECS = 30.0


def missing() -> str:
    """Return what is missing to measure on S3; "" when nothing is."""
    absent = [package for package in ("boto3", "moto", "s3fs") if importlib.util.find_spec(package) is None]
    if absent:
        return f"{' and '.join(absent)} not installed"
    try:
        sinks.normalise(f"s3://{_BUCKET}")
    except ValueError:
        return "this version of tbwriter has no sink for s3://"
    return ""


@contextlib.contextmanager
def server() -> Iterator[tuple[str, dict[str, Any]]]:
    """Run a server with an empty bucket; yields the bucket's URL and the storage options that lead to it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    options: dict[str, Any] = {"key": "benchmark", "secret": "benchmark", "endpoint_url": endpoint}
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    # In a session of its own: a terminal's Ctrl-C would end it before the writers have stored what they have.
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(process, port)
        _client(options).create_bucket(Bucket=_BUCKET)
        yield f"s3://{_BUCKET}", options
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _START_SECS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise RuntimeError(f"moto's server did not answer within {_START_SECS:g} s")


def _client(options: dict[str, Any]) -> Any:
    import boto3

    return boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
    )
