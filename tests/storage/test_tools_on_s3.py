"""The `tbwriter` command on runs in an object store, and `tbwriter ship`."""

import json
import os

import pytest
from event_files import steps
from needs import need

from tbwriter import SummaryWriter, read_events, sinks


def command(*arguments):
    need("typer")
    from typer.testing import CliRunner

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


READING = {  # a way to call each command that reads a place
    "inspect": [], "doctor": [], "verify": [], "cat": [], "export": [], "tail": ["--once"], "serve": ["--print"],
    "repair": ["-o", "OUT"], "rewind": ["-o", "OUT", "--step", "3"], "merge": ["-o", "OUT"],
    "thin": ["-o", "OUT", "--every", "2"], "plot": ["-o", "OUT.svg"], "convert": ["-o", "OUT"],
}  # fmt: skip


@pytest.mark.parametrize("fault", ["403", "503", "reset"])
def test_a_store_that_fails_ends_every_command_with_3_and_a_line(behind_proxy, proxy, tmp_path, fault):
    """The drivers' own errors are no OSError, and must not be taken for damage, which ends with 1."""
    proxy.fault = fault
    options = ["--storage-options", json.dumps(behind_proxy.options)]
    for name, words in READING.items():
        out = tmp_path / name
        answer = command(name, behind_proxy.url, *(word.replace("OUT", str(out)) for word in words), *options)
        assert answer.exception is None or isinstance(answer.exception, SystemExit), (name, answer.exception)
        assert answer.exit_code == 3, name
        (line,) = answer.stderr.splitlines()
        assert line.startswith("tbwriter: "), name


@pytest.mark.parametrize("fault", ["503", "reset"])
def test_a_store_that_takes_nothing_ends_with_3(behind_proxy, proxy, tmp_path, fault):
    need("matplotlib")
    with SummaryWriter(tmp_path / "run") as writer:
        write(writer, 0, 10)
    proxy.fault = fault
    options = ["--storage-options", json.dumps(behind_proxy.options)]
    for words in (["repair", "-o", behind_proxy.url], ["plot", "-o", f"{behind_proxy.url}/x.png"]):
        answer = command(words[0], tmp_path / "run", *words[1:], *options)
        assert (answer.exit_code, answer.stderr.count("\n")) == (3, 1), answer.exception


@pytest.mark.parametrize("fault", ["503", "reset"])
def test_a_store_that_fails_while_a_file_is_read_is_an_error_of_storage(behind_proxy, proxy, fault):
    with make(behind_proxy) as writer:
        write(writer, 0, 100)
    (name,) = sinks.list_names(behind_proxy.url, behind_proxy.options)
    with sinks.open_file(f"{behind_proxy.url}/{name}", behind_proxy.options) as file:
        proxy.fault = fault
        with pytest.raises(OSError):  # noqa: PT011 - in the words of the store
            file.read(100)


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
