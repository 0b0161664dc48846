"""The real TensorBoard reads a store while it is written, started as docs/storage.md says, and shows every step."""

import itertools
import json
import os
import signal

import pytest
from children import run_well
from needs import need
from tensorboard_http import TensorBoard
from test_store_faults import WRITE, child
from test_writer_on_s3 import make, write

from tbwriter import SummaryWriter

pytestmark = [pytest.mark.readers, pytest.mark.slow]
_numbers = itertools.count()


def curve(end):
    return {"loss": [(step, float(step)) for step in range(end)]}


@pytest.fixture(scope="module")
def tensorboard(seaweedfs):
    """TensorBoard with its S3 reader, which is boto3."""
    need("tensorboard")
    need("s3fs")
    running = TensorBoard("python", "s3://bucket/board", env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{seaweedfs.port}"})
    yield running
    running.stop()


@pytest.fixture
def run(behind_proxy):
    """A place below TensorBoard's log directory; the writers reach it through `proxy`."""
    name = f"run{next(_numbers)}"
    behind_proxy.url = f"s3://bucket/board/{name}"
    behind_proxy.prefix = f"board/{name}"
    behind_proxy.run = name
    return behind_proxy


def test_every_step_shows_after_each_flush_through_many_segments(tensorboard, run):
    with make(run) as writer:
        for begin in range(0, 480, 20):
            write(writer, begin, begin + 20)
            assert writer.flush()
            if begin % 80 == 0:
                tensorboard.shows_curves(run.run, curve(begin + 20))
        tensorboard.shows_curves(run.run, curve(480))
    assert len(run.names()) > 5


def test_every_step_shows_through_rotation_by_size_and_restarts(tensorboard, run):
    for begin in range(0, 900, 300):
        with make(run, max_file_size=2000) as writer:
            write(writer, begin, begin + 300)
        tensorboard.shows_curves(run.run, curve(begin + 300))


def test_every_step_shows_after_an_outage_of_the_writers_way_to_the_store(tensorboard, run, proxy):
    with make(run) as writer:
        write(writer, 0, 100)
        assert writer.flush()
        tensorboard.shows_curves(run.run, curve(100))
        proxy.fault = "reset"
        write(writer, 100, 200)
        assert not writer.flush(0.5)
        proxy.fault = None
        assert writer.flush(60)
        tensorboard.shows_curves(run.run, curve(200))


def test_every_step_shows_after_a_kill_in_an_outage_and_a_restart(tensorboard, run, proxy):
    code = """
writer = make()
write(0, 100)
assert writer.flush(30)
say("ready")
wait_for_parent()
write(100, 200)
wait_until_spooled()
say("written")
wait_for_parent()
"""
    with child(run, code) as first:
        first.hears("ready")
        tensorboard.shows_curves(run.run, curve(100))
        proxy.fault = "503"
        first.go_on()
        first.hears("written")
        first.send(signal.SIGKILL)
    proxy.fault = None
    restart = WRITE + "writer = make(); write(200, 300); writer.close()"
    run_well(restart, run.url, run.options["endpoint_url"], run.spool)
    tensorboard.shows_curves(run.run, curve(300))


def test_sub_runs_show(tensorboard, run):
    with make(run) as writer:
        for step in range(20):
            writer.add_scalars("loss", {"train": float(step), "val": float(step)}, step)
        assert writer.flush(30)
        for name in ("train", "val"):
            tensorboard.shows_curves(f"{run.run}/loss_{name}", curve(20))


# ---- the other readers of docs/storage.md


def follows(tensorboard, url, options, spool):
    name = f"run{next(_numbers)}"
    with SummaryWriter(f"{url}/{name}", storage_options=options, spool_dir=spool) as writer:
        for begin in range(0, 120, 40):
            write(writer, begin, begin + 40)
            assert writer.flush(60)
            tensorboard.shows_curves(name, curve(begin + 40))


def test_s3_without_boto3_is_followed_with_the_cache_of_listings_off(seaweedfs, tmp_path):
    need("tensorboard")
    need("s3fs")
    hidden = tmp_path / "without"
    hidden.mkdir()
    (hidden / "boto3.py").write_text("raise ImportError('hidden by a test')")
    options = {"endpoint_url": f"http://127.0.0.1:{seaweedfs.port}"}
    environment = {
        "FSSPEC_S3": json.dumps({"use_listings_cache": False, **options}),
        "PYTHONPATH": f"{hidden}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    with SummaryWriter("s3://bucket/fsspec/first", storage_options=options, spool_dir=tmp_path / "spool"):
        pass
    running = TensorBoard("python", "s3://bucket/fsspec", env=environment)
    try:
        follows(running, "s3://bucket/fsspec", options, tmp_path / "spool")
    finally:
        running.stop()


AWS_CONFIG = """
[default]
request_checksum_calculation = when_required
response_checksum_validation = when_required
s3 =
  addressing_style = virtual
"""


def test_the_lines_for_boto3_make_the_requests_that_compatible_stores_take(tmp_path):
    (tmp_path / "config").write_text(AWS_CONFIG)
    code = """
    import sys
    import boto3
    class Seen(Exception):
        pass
    def see(request, **_):
        print(request.url, "aws-chunked" in str(request.headers.get("Content-Encoding")))
        raise Seen
    client = boto3.client("s3")
    client.meta.events.register("before-send.s3", see)
    for call, more in ((client.get_object, {}), (client.put_object, {"Body": b"x"})):
        try:
            call(Bucket="bucket", Key="run/file", **more)
        except Seen:
            pass
    """
    environment = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ENDPOINT_URL": "https://obs.cn-north-4.myhuaweicloud.com",
    }
    url = "https://bucket.obs.cn-north-4.myhuaweicloud.com/run/file"
    assert run_well(code, env=environment).splitlines() == [f"{url} False"] * 2


def test_google_storage_is_followed_by_the_python_reader(fakegcs, tmp_path):
    need("tensorboard")
    options = {"endpoint_url": fakegcs.url, "token": "anon"}
    with SummaryWriter("gs://bucket/board/first", storage_options=options, spool_dir=tmp_path / "spool"):
        pass
    environment = {"FSSPEC_GS": json.dumps({"use_listings_cache": False, **options})}
    running = TensorBoard("python", "gs://bucket/board", env=environment)
    try:
        follows(running, "gs://bucket/board", options, tmp_path / "spool")
    finally:
        running.stop()


def test_azure_storage_is_followed_with_the_cache_of_listings_off(azurite, tmp_path):
    need("tensorboard")
    options = {"connection_string": azurite.connection}
    with SummaryWriter("az://bucket/board/first", storage_options=options, spool_dir=tmp_path / "spool"):
        pass
    environment = {"FSSPEC_AZ": json.dumps({"use_listings_cache": False, **options})}
    running = TensorBoard("python", "az://bucket/board", env=environment)
    try:
        follows(running, "az://bucket/board", options, tmp_path / "spool")
    finally:
        running.stop()
