"""The `tbwriter` command on runs in an object store, and `tbwriter ship`."""

import json
import os

import pytest
from event_files import steps

from tbwriter import SummaryWriter, read_events

pytest.importorskip("typer")
from typer.testing import CliRunner


def command(*arguments):
    from tbwriter.cli._app import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def make(place, **options):
    return SummaryWriter(place.url, storage_options=place.options, spool_dir=place.spool, **options)


def write(writer, begin, end):
    for step in range(begin, end):
        writer.add_scalar("loss", float(step), step)


def test_tools_read_and_write_an_object_store(light_s3, tmp_path):
    with make(light_s3) as writer:
        write(writer, 0, 100)
    options = ["--storage-options", json.dumps(light_s3.options)]
    inspected = json.loads(command("inspect", light_s3.url, "--json", *options).stdout)
    assert [(tag["tag"], tag["points"]) for tag in inspected["runs"][0]["tags"]] == [("loss", 100)]
    assert command("doctor", light_s3.url, *options).exit_code == 0
    assert command("verify", light_s3.url, *options).exit_code == 0
    assert command("rewind", light_s3.url, "--step", 50, "-o", f"{light_s3.url}-rewound", *options).exit_code == 0
    found = read_events(f"{light_s3.url}-rewound", storage_options=light_s3.options)
    assert [event.step for event in found if event.values] == list(range(50))
    assert command("export", light_s3.url, "-o", tmp_path / "x.csv", *options).exit_code == 0
    assert (tmp_path / "x.csv").read_text().count("\n") == 101


def test_ship_sends_what_a_close_left_and_says_so(behind_proxy, proxy, tmp_path):
    writer = make(behind_proxy)
    write(writer, 0, 50)
    assert writer.flush(30)
    proxy.fault = "hang"
    write(writer, 50, 100)
    writer.close(0.5)
    options = ["--storage-options", json.dumps(behind_proxy.options), "--json"]
    proxy.fault = None
    answer = command("ship", behind_proxy.spool, *options)
    assert answer.exit_code == 0
    (spool,) = json.loads(answer.stdout)["spools"]
    assert (spool["url"], spool["error"]) == (behind_proxy.url, None)
    assert spool["directory"].startswith(str(behind_proxy.spool))
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(100))
    again = command("ship", behind_proxy.spool)
    assert (again.exit_code, "no spool holds anything" in again.stdout) == (0, True)


def test_ship_of_a_place_that_is_not_there_ends_with_3(tmp_path):
    assert command("ship", tmp_path / "nothing").exit_code == 3


def test_ship_says_where_it_looked(tmp_path, monkeypatch):
    monkeypatch.delenv("TBWRITER_SPOOL_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "state" / "tbwriter" / "spool").mkdir(parents=True)
    answer = command("ship")
    assert answer.exit_code == 0
    assert f"{tmp_path / 'state' / 'tbwriter' / 'spool'}, {tmp_path / 'temporary'}" in answer.stdout
    assert answer.stdout.count("(not there)") == 1
    assert json.loads(command("ship", "--json").stdout)["looked_at"] == [
        f"{tmp_path}/state/tbwriter/spool", f"{tmp_path}/temporary/tbwriter-{os.getuid()}",
    ]  # fmt: skip


def test_ship_names_each_spool(behind_proxy, proxy):
    writers = [make(behind_proxy), make(behind_proxy)]
    for writer in writers:
        write(writer, 0, 5)
        assert writer.flush(30)
    proxy.fault = "hang"
    for writer in writers:
        write(writer, 5, 10)
        writer.close(0.5)
    proxy.fault = None
    spools = [str(path) for path in behind_proxy.spool.iterdir() if path.is_dir()]
    assert len(spools) == 2
    answer = command("ship", behind_proxy.spool, "--storage-options", json.dumps(behind_proxy.options))
    assert answer.exit_code == 0
    assert all(spool in answer.stdout for spool in spools)
