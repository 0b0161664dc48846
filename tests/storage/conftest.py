"""Stores, each started once a session, and places in them."""

import itertools
import logging
import os
import sys
from pathlib import Path

import pytest
from needs import need
from proxy import Proxy
from servers import KEY, SECRET, Azurite, FakeGcs, Moto, RcloneS3, SeaweedFS, client

from tbwriter import sinks
from tbwriter.sinks import _object, _store

for helpers in ("crash", "integration"):  # children.py and tensorboard_http.py
    sys.path.append(str(Path(__file__).parents[1] / helpers))
_numbers = itertools.count()
_ANSWER_SECS = 60.0


@pytest.fixture(autouse=True, scope="session")
def _environment(tmp_path_factory):
    """No configuration of the machine's; credentials from the environment, as users give them."""
    changes = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "TBWRITER_SPOOL_DIR": str(tmp_path_factory.mktemp("spool")),
    }
    before = {name: os.environ.get(name) for name in (*changes, "AWS_ENDPOINT_URL", "S3_ENDPOINT")}
    os.environ.update(changes)
    for name in ("AWS_ENDPOINT_URL", "S3_ENDPOINT"):
        os.environ.pop(name, None)
    yield
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


@pytest.fixture
def patient(monkeypatch):
    """Opening a store waits for its answer as long as a slow machine takes; else it goes on as if it were down."""
    for name in ("LIST_SECS", "_EXISTS_SECS", "_FIRST_PUT_SECS"):
        monkeypatch.setattr(_object, name, _ANSWER_SECS)
    monkeypatch.setattr(_store, "DRIVER_SECS", _ANSWER_SECS)
    monkeypatch.setattr(sinks, "_OPEN_SECS", _ANSWER_SECS)


def _session_store(kind):
    @pytest.fixture(scope="session", name=kind.__name__.lower())
    def store(tmp_path_factory):
        server = kind(tmp_path_factory.mktemp(kind.__name__))
        yield server
        server.stop()

    return store


seaweedfs = _session_store(SeaweedFS)
rclones3 = _session_store(RcloneS3)
fakegcs = _session_store(FakeGcs)
azurite = _session_store(Azurite)


@pytest.fixture(scope="session")
def moto():
    server = Moto()
    yield server
    server.stop()


class Place:
    """A new directory in a store of S3's kind: `url` and `options` for a writer, the rest looks behind its back."""

    def __init__(self, port, endpoint, spool):
        self.prefix = f"run{next(_numbers)}"
        self.url = f"s3://bucket/{self.prefix}"
        self.options = {"endpoint_url": endpoint, "key": KEY, "secret": SECRET}
        self.spool = spool
        self.client = client(port)

    def objects(self):
        """Return {name below the directory: bytes}, sorted."""
        listed = self.client.list_objects_v2(Bucket="bucket", Prefix=f"{self.prefix}/").get("Contents", ())
        return {one["Key"][len(self.prefix) + 1 :]: self.read(one["Key"]) for one in listed}

    def read(self, key):
        return self.client.get_object(Bucket="bucket", Key=key)["Body"].read()

    def names(self):
        return sorted(self.objects())

    def spooled(self):
        """Return the event files in the spool."""
        return sorted(path.name for path in self.spool.rglob("*tfevents*"))

    def download(self, directory):
        """Copy all objects into a directory and return it."""
        for name, data in self.objects().items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return directory


@pytest.fixture
def s3(seaweedfs, tmp_path):
    """A place in the real S3 server."""
    need("s3fs")
    return Place(seaweedfs.port, f"http://127.0.0.1:{seaweedfs.port}", tmp_path / "spool")


@pytest.fixture
def light_s3(moto, tmp_path):
    """A place in moto."""
    need("s3fs")
    return Place(moto.port, f"http://127.0.0.1:{moto.port}", tmp_path / "spool")


@pytest.fixture
def quirky_s3(rclones3, tmp_path):
    """A place in rclone's."""
    need("s3fs")
    return Place(rclones3.port, f"http://127.0.0.1:{rclones3.port}", tmp_path / "spool")


@pytest.fixture
def proxy(seaweedfs):
    """A proxy in front of the real S3 server."""
    proxy = Proxy(seaweedfs.port)
    yield proxy
    proxy.fault = None
    proxy.stop()


@pytest.fixture
def behind_proxy(proxy, seaweedfs, tmp_path):
    """A place in the real S3 server, which writers reach through `proxy`."""
    need("s3fs")
    return Place(seaweedfs.port, proxy.url, tmp_path / "spool")


@pytest.fixture
def said(caplog):
    """Return what tbwriter has logged so far, as a list of lines."""
    caplog.set_level(logging.INFO, logger="tbwriter")
    return lambda: [record.getMessage() for record in caplog.records if record.name.startswith("tbwriter")]
