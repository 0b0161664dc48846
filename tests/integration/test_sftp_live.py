"""TensorBoard follows a run on an SFTP server while it is written."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from needs import cannot_run
from tensorboard_http import TensorBoard

from tbwriter import SummaryWriter

sys.path.append(str(Path(__file__).resolve().parent.parent / "storage"))
USER, PASSWORD = "trainer", "correct-horse"


@pytest.mark.readers
@pytest.mark.slow
def test_every_point_shows_live_and_through_a_new_file(tmp_path, monkeypatch):
    for package in ("asyncssh", "paramiko", "tensorboard"):
        if importlib.util.find_spec(package) is None:
            cannot_run(f"{package} is not installed")
    from sftp_server import SftpServer

    (tmp_path / "server").mkdir()
    server = SftpServer(tmp_path / "server", USER, PASSWORD)
    options = {"username": USER, "password": PASSWORD, "look_for_keys": False, "allow_agent": False}
    monkeypatch.setenv("FSSPEC_SFTP", json.dumps(options))  # for TensorBoard; docs/storage.md says so
    url = f"sftp://127.0.0.1:{server.port}/logs"
    tensorboard = None
    try:
        with SummaryWriter(
            f"{url}/run", storage_options=options, spool_dir=tmp_path / "spool", max_file_size=10_000
        ) as writer:
            tensorboard = TensorBoard("python", url)
            for end in (10, 300, 600):
                for step in range({10: 0, 300: 10, 600: 300}[end], end):
                    writer.add_scalar("loss", float(step), step)
                assert writer.flush(timeout=30)
                tensorboard.shows_curves("run", {"loss": [(step, float(step)) for step in range(end)]})
        assert len(list((tmp_path / "server").rglob("*tfevents*"))) > 1
    finally:
        if tensorboard is not None:
            tensorboard.stop()
        server.end()
