"""The store fails, the process is killed, or both: what was added is in the store in the end, once and in order."""

import gc
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from children import Child, environment, run_well
from event_files import read_bytes, steps
from servers import KEY, SECRET
from test_writer_on_s3 import make, spooled, write
from waiting import wait_until

import tbwriter
from tbwriter import SinkError
from tbwriter.sinks import _object

FAULTS = ("503", "reset", "hang")
WRITE = """
from tbwriter import SummaryWriter
import json
url, endpoint, spool = sys.argv[1:4]
def make(**settings):
    return SummaryWriter(url, storage_options={"endpoint_url": endpoint}, spool_dir=spool, flush_secs=0.05, **settings)
added = 0
def write(begin, end):
    global added
    added += end - begin
    for step in range(begin, end):
        writer.add_scalar("loss", float(step), step)
def wait_until_spooled():
    while writer.stats().written < added:
        time.sleep(0.01)
"""


def child(place, code, **options):
    return Child(WRITE + code, place.url, place.options["endpoint_url"], place.spool, **options)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kill_within_an_outage_and_a_restart_lose_and_repeat_nothing(behind_proxy, proxy, tmp_path, fault):
    code = """
writer = make()
write(0, 600)
assert writer.flush(30)
say("ready")
wait_for_parent()
for begin in range(600, 1200, 100):
    write(begin, begin + 100)
    writer.flush(0.2)
wait_until_spooled()
say("written")
wait_for_parent()
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = fault
        first.go_on()
        first.hears("written")
        first.send(signal.SIGKILL)
    proxy.fault = None
    run_well(
        WRITE + "writer = make(); write(1200, 1800); writer.close()",
        behind_proxy.url,
        behind_proxy.options["endpoint_url"],
        behind_proxy.spool,
    )
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(1800))
    assert behind_proxy.spooled() == []
    assert tbwriter.verify(behind_proxy.url, storage_options=behind_proxy.options).ok
    # Readers that have looked on saw nothing old arrive after something new.
    puts = [path for path, _ in proxy.puts()]
    assert puts == sorted(puts)


@pytest.mark.parametrize("fault", [*FAULTS, "403"])
def test_an_outage_in_mid_run_loses_nothing(behind_proxy, proxy, tmp_path, said, fault):
    with make(behind_proxy, flush_secs=0.05) as writer:
        for begin in range(0, 600, 10):
            if begin == 200:
                proxy.fault = fault
            if begin == 400:
                wait_until(lambda: any("the store fails" in line for line in said()) or fault == "hang", within=20)
                proxy.fault = None
            write(writer, begin, begin + 10)
            writer.flush(0.05)
        assert writer.flush(60)
        assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(600))
    assert behind_proxy.spooled() == []
    if fault != "hang":
        assert [line.split(": ")[1].split(" after")[0].split(",")[0] for line in said()] == [
            "the store fails",
            "the store works again",
        ]


@pytest.mark.parametrize("fault", ["early 403", "early 404"])
def test_a_store_that_refuses_in_mid_run_prints_nothing_but_our_lines(behind_proxy, proxy, fault):
    """Also where it answers before it has read what is sent, as the real one does."""
    code = """
import gc
writer = make()
say("ready")
wait_for_parent()
for step in range(3):
    writer.add_text("text", "x" * 2_000_000, step)
    writer.flush(0.3)
    gc.collect()
writer.close(0.3)
gc.collect()
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = fault
        first.go_on()
        ended = first.end()
    assert ended.returncode == 0
    told = [line.split(": ")[1].split(" ")[0] for line in ended.err.splitlines()]
    assert told == ["the", "closed"], ended.err


def test_a_store_that_is_down_at_construction_does_not_stop_the_training(behind_proxy, proxy, tmp_path, said):
    proxy.fault = "reset"
    with make(behind_proxy) as writer:
        write(writer, 0, 100)
        assert not writer.flush(0.5)
        wait_until(said, within=20)
        assert "the store fails, the data waits in" in said()[0]
        proxy.fault = None
        assert writer.flush(30)
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(100))


def test_a_store_that_hangs_at_construction_holds_it_up_for_less_than_ten_seconds(behind_proxy, proxy):
    proxy.fault = "hang"
    writer = []
    thread = threading.Thread(target=lambda: writer.append(make(behind_proxy)))
    thread.start()
    thread.join(30)  # its waits, and a busy machine
    assert not thread.is_alive()
    assert _object.LIST_SECS + _object._EXISTS_SECS + _object._FIRST_PUT_SECS < 10
    writer[0].close(0)


def test_while_a_flush_waits_for_a_store_that_hangs_later_entries_reach_the_spool(behind_proxy, proxy, tmp_path):
    code = """
writer = make(max_file_size=2000)
say("ready")
wait_for_parent()
write(0, 10)
flushing = threading.Thread(target=writer.flush, daemon=True)
flushing.start()
for begin in range(10, 500, 10):
    write(begin, begin + 10)
    writer.add_scalars("sub", {"a": float(begin), f"new{begin}": 1.0}, begin)
    added += 2
    wait_until_spooled()
assert flushing.is_alive()
say("written")
wait_for_parent()
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = "hang"
        first.go_on()
        first.hears("written")
        first.send(signal.SIGKILL)
    proxy.fault = None
    reports = tbwriter.ship(behind_proxy.spool, storage_options=behind_proxy.options)
    assert {report.error for report in reports} == {None}
    seen = behind_proxy.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(500))
    assert steps(seen / "sub_a", "sub") == list(range(10, 500, 10))
    assert len(list(seen.glob("sub_new*"))) == 49


def test_a_close_while_the_store_hangs_returns_in_time_says_what_is_left_and_ship_sends_it(
    behind_proxy, proxy, tmp_path, said
):
    writer = make(behind_proxy)
    write(writer, 0, 100)
    assert writer.flush(30)
    proxy.fault = "hang"
    write(writer, 100, 200)
    closing = threading.Thread(target=writer.close, args=(0.5,))
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    (line,) = [line for line in said() if "closed with" in line]
    (directory,) = behind_proxy.spool.glob("*/")
    assert str(directory) in line
    assert "tbwriter ship" in line
    assert not writer.flush()
    proxy.fault = None
    (report,) = tbwriter.ship(behind_proxy.spool, storage_options=behind_proxy.options)
    assert report.url == behind_proxy.url
    assert report.error is None
    assert report.files == 1
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(200))
    assert list(behind_proxy.spool.iterdir()) == []
    assert tbwriter.ship(behind_proxy.spool) == []


def test_the_next_writer_of_the_same_process_sends_what_a_close_left_first(behind_proxy, proxy, tmp_path):
    proxy.fault = "hang"
    writer = make(behind_proxy)
    write(writer, 0, 100)
    writer.close(0.2)
    proxy.fault = None
    with make(behind_proxy) as writer:
        write(writer, 100, 200)
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(200))
    puts = [path for path, _ in proxy.puts()]
    assert puts == sorted(puts)


def test_a_flush_without_a_timeout_gives_up_on_a_store_that_hangs_and_the_next_at_once(
    behind_proxy, proxy, monkeypatch
):
    from tbwriter import _async

    monkeypatch.setattr(_async, "_STALLED_SECS", 1.0)
    writer = make(behind_proxy)
    proxy.fault = "hang"
    write(writer, 0, 10)
    assert not writer.flush()
    monkeypatch.setattr(_async, "_STALLED_SECS", 1000.0)
    write(writer, 10, 20)
    assert not writer.flush()
    proxy.fault = None
    wait_until(lambda: writer.flush(5), within=30)
    writer.close()


def leave_half(place, proxy):
    """Write 20 steps, of which the store has the first ten and the spool of a closed writer the others."""
    writer = make(place)
    write(writer, 0, 10)
    assert writer.flush(30)
    proxy.fault = "503"
    write(writer, 10, 20)
    writer.close(0)
    proxy.fault = None


def test_what_was_left_for_another_url_of_the_bucket_is_sent_too(behind_proxy, proxy, tmp_path, monkeypatch):
    from tbwriter.sinks import _store, _strays

    monkeypatch.setattr(_strays, "_FIRST_SECS", 0.0)
    first_url = behind_proxy.url
    leave_half(behind_proxy, proxy)
    _store._stores.clear()  # as in a new process
    behind_proxy.url = first_url + "-again"
    with make(behind_proxy) as writer:
        write(writer, 0, 5)
        wait_until(lambda: len(list(behind_proxy.spool.glob("*/"))) == 1, within=30)
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(20))


def test_what_was_left_for_a_bucket_of_that_name_at_another_endpoint_stays_for_ship(
    behind_proxy, proxy, light_s3, tmp_path, said
):
    leave_half(behind_proxy, proxy)
    light_s3.url, light_s3.prefix = behind_proxy.url, behind_proxy.prefix
    with make(light_s3) as writer:
        write(writer, 20, 30)
        assert writer.flush(30)
    assert steps(light_s3.download(tmp_path / "other"), "loss") == list(range(20, 30))
    assert any("belongs to a store with another endpoint or account" in line for line in said())
    (report,) = tbwriter.ship(behind_proxy.spool)
    assert report.error is None
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(20))


def test_an_endpoint_of_the_environment_is_known_to_a_ship_without_it(behind_proxy, proxy, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", behind_proxy.options["endpoint_url"])
    behind_proxy.options = None
    writer = make(behind_proxy)
    proxy.fault = "503"
    write(writer, 0, 10)
    writer.close(0.1)
    proxy.fault = None
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    (report,) = tbwriter.ship(behind_proxy.spool, timeout=0)
    assert report.error is None
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(10))


@pytest.fixture
def secret_in_file(behind_proxy, tmp_path, monkeypatch):
    """Credentials are in boto's file alone; called with the secret that it then holds."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    behind_proxy.options = {"endpoint_url": behind_proxy.options["endpoint_url"]}
    text = f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {{}}\n"
    return lambda secret: (tmp_path / "credentials").write_text(text.format(secret))


def test_credentials_that_are_renewed_in_their_file_are_taken_in_mid_run(
    behind_proxy, proxy, tmp_path, caplog, secret_in_file
):
    secret_in_file("expired-secret")
    proxy.fault = "reset"
    with make(behind_proxy) as writer:
        proxy.fault = None
        write(writer, 0, 10)
        writer.flush(0.1)
        wait_until(lambda: "PermissionError" in (writer.stats().last_error or ""), within=30)
        secret_in_file(SECRET)
        wait_until(lambda: writer.flush(5), within=30)
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(10))
    gc.collect()  # of the driver that was given up
    assert {record.name.split(".")[0] for record in caplog.records} == {"tbwriter"}


@pytest.mark.usefixtures("patient")
def test_a_second_attempt_takes_credentials_that_were_mended_meanwhile(behind_proxy, secret_in_file):
    secret_in_file("a-wrong-secret")
    with pytest.raises(SinkError, match="PermissionError"):
        make(behind_proxy)
    with pytest.raises(PermissionError):
        tbwriter.verify(behind_proxy.url, storage_options=behind_proxy.options)
    secret_in_file(SECRET)
    with make(behind_proxy) as writer:
        write(writer, 0, 10)
    assert tbwriter.verify(behind_proxy.url, storage_options=behind_proxy.options).ok


def test_ship_leaves_what_belongs_to_a_living_writer(behind_proxy, proxy):
    with make(behind_proxy) as writer:
        proxy.fault = "503"
        write(writer, 0, 10)
        writer.flush(0.1)
        assert tbwriter.ship(behind_proxy.spool) == []
        proxy.fault = None


def test_ship_says_why_something_is_left(light_s3, tmp_path):
    writer = make(light_s3)
    writer.add_scalar("loss", 1.0, 1)
    (directory,) = light_s3.spool.glob("*/")
    about = (directory / "url.json").read_text()
    writer.close()
    directory.mkdir()
    (directory / "url.json").write_text(about.replace("s3://bucket/", "s3://no-such-bucket/"))
    (directory / "events.out.tfevents.1.x").write_bytes(b"x")
    (report,) = tbwriter.ship(directory)
    assert report.files == 0
    assert "bucket does not exist" in report.error
    assert (directory / "events.out.tfevents.1.x").exists()


def test_ship_needs_a_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no directory"):
        tbwriter.ship(tmp_path / "nothing")


def test_strict_is_told_of_the_spool_and_not_of_a_store_that_is_down(behind_proxy, proxy, monkeypatch):
    """What waits in the spool is safe: flush says that it has not arrived."""
    with make(behind_proxy, strict=True, flush_secs=0.02) as writer:
        proxy.fault = "503"
        write(writer, 0, 100)
        assert not writer.flush(0.5)
        wait_until(lambda: "Service Unavailable" in (writer.stats().last_error or ""), within=20)
        assert writer.stats().retries > 0
        write(writer, 100, 200)
        (directory,) = behind_proxy.spool.glob("*/")
        shutil.rmtree(directory)
        directory.touch()  # where it was nothing can be made any more
        write(writer, 200, 201)
        wait_until(lambda: "Service Unavailable" not in writer.stats().last_error, within=20)
        with pytest.raises(SinkError, match=r"^\[Errno \d+\] storage failed: .*; the data is kept and tried again"):
            write(writer, 201, 202)
        directory.unlink()
        proxy.fault = None
        wait_until(lambda: writer.stats().queued == 0, within=20)
    assert steps_in(behind_proxy)[-2:] == [200, 201]


def steps_in(place):
    return [
        event.step
        for _, data in sorted(place.objects().items())
        for event in read_bytes(data)[0]
        for value in event.values
        if value.tag == "loss"
    ]


def test_what_waits_in_an_outage_lies_in_files_that_fit_into_memory(behind_proxy, proxy):
    """Each is sent, and read for that, whole: a segment's size, and one record or chunk at most."""
    with make(behind_proxy) as writer:
        proxy.fault = "503"
        for step in range(30):
            writer.add_text("text", "x" * 1_000_000, step)
        write(writer, 0, 10)
        wait_until(lambda: writer.stats().queued == 0, within=30)
        sizes = [path.stat().st_size for path in behind_proxy.spool.rglob("*tfevents*")]
        assert sum(sizes) > 30_000_000
        assert max(sizes) < (4 << 20) + 1_100_000
        proxy.fault = None


# ---- ends of the process


ENDS = {
    "normal end": "",
    "exception": "raise RuntimeError('boom')",
    "sys.exit": "sys.exit(3)",
    "forgotten": "del writer",
    "end of a forked worker": """
import multiprocessing
def work():
    global writer
    url_of_child = url + "/child"
    writer = SummaryWriter(url_of_child, storage_options={"endpoint_url": endpoint}, spool_dir=spool)
    write(0, 5)
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join(30)
assert process.exitcode == 0
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_without_close_has_stored_everything(s3, tmp_path, end):
    # By name: Python's executors, which look names up, take no work at exit.
    endpoint = s3.options["endpoint_url"].replace("127.0.0.1", "localhost")
    with Child(WRITE + "writer = make()\nwrite(0, 5)\n" + ENDS[end], s3.url, endpoint, s3.spool) as program:
        program.end(60)
    seen = s3.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(5))
    if "forked" in end:
        assert steps(seen / "child", "loss") == list(range(5))
    assert s3.spooled() == []


def test_a_forked_child_neither_ships_nor_keeps_the_spool_of_a_killed_parent(behind_proxy, proxy, tmp_path):
    code = """
writer = make()
say("ready")
wait_for_parent()
write(0, 100)
wait_until_spooled()
pid = os.fork()
if pid == 0:
    writer.add_scalar("loss", -1.0, -1)
    assert not writer.flush(1)
    say("forked")
    wait_for_parent()
    os._exit(0)
os.waitpid(pid, 0)
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = "503"
        first.go_on()
        first.hears("forked")
        first.send(signal.SIGKILL)
        wait_until(first.has_ended, within=20)
        proxy.fault = None
        (report,) = tbwriter.ship(behind_proxy.spool, storage_options=behind_proxy.options)
        assert report.error is None
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(100))


def test_a_forked_child_that_ends_leaves_the_parent_its_connection(s3, tmp_path):
    code = """
writer = make()
for step in range(5):
    write(step, step + 1)
    assert writer.flush(10)
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
writer.close()
"""
    run_well(WRITE + code, s3.url, s3.options["endpoint_url"], s3.spool)
    assert steps(s3.download(tmp_path / "seen"), "loss") == [0, 1, 2, 3, 4]


def test_a_shipper_process_sends_what_a_killed_training_left(behind_proxy, proxy, tmp_path):
    code = """
writer = make(shipper="process")
say("ready")
wait_for_parent()
write(0, 300)
writer.add_scalars("sub", {"a": 1.0}, 1)
added += 1
wait_until_spooled()
say("written")
wait_for_parent()
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = "503"
        first.go_on()
        first.hears("written")
        first.send(signal.SIGKILL)
    proxy.fault = None
    wait_until(lambda: not list(behind_proxy.spool.iterdir()), within=60, what="the spool is empty")
    seen = behind_proxy.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(300))
    assert steps(seen / "sub_a", "sub") == [1]


def test_two_writers_of_one_url_ship_files_of_their_own(s3, tmp_path):
    with make(s3) as first, make(s3) as second:
        write(first, 0, 10)
        write(second, 10, 20)
        assert first.flush(30)
        assert second.flush(30)
        assert len(s3.names()) == 2
        assert sorted(steps(s3.download(tmp_path / "seen"), "loss")) == list(range(20))


def test_two_writers_that_begin_in_one_second_while_the_store_is_down_take_different_names(
    behind_proxy, proxy, monkeypatch
):
    from tbwriter import _settings

    proxy.fault = "reset"
    monkeypatch.setattr(_settings.time, "time", lambda: 1_800_000_000.0)
    with make(behind_proxy), make(behind_proxy):
        proxy.fault = None
    assert len(behind_proxy.names()) == 2


def test_a_spool_that_is_deleted_under_a_writer_is_said_and_not_claimed_as_stored(behind_proxy, proxy, tmp_path, said):
    writer = make(behind_proxy)
    proxy.fault = "503"
    write(writer, 0, 10)
    wait_until(lambda: spooled(behind_proxy).count(b"loss") == 10, within=20)
    for path in behind_proxy.spool.rglob("*tfevents*"):
        path.unlink()
    assert not writer.flush(3)
    assert any("lost from the spool" in line for line in said())
    proxy.fault = None  # not before: a put that had read the file would take it to the store
    write(writer, 10, 20)
    assert not writer.flush(0.5)
    writer.close()
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss")[-10:] == list(range(10, 20))


def test_a_spool_that_is_deleted_under_a_writer_is_made_again_and_keeps_what_a_kill_leaves(
    behind_proxy, proxy, tmp_path
):
    code = """
import shutil
writer = make()
write(0, 10)
assert writer.flush(30)
shutil.rmtree(spool)
write(10, 20)
assert writer.flush(30)
say("ready")
wait_for_parent()
write(20, 30)
wait_until_spooled()
say("written")
wait_for_parent()
"""
    with child(behind_proxy, code) as first:
        first.hears("ready")
        proxy.fault = "503"
        first.go_on()
        first.hears("written")
        assert tbwriter.ship(behind_proxy.spool) == []  # it lives
        first.send(signal.SIGKILL)
        wait_until(first.has_ended, within=20)
    proxy.fault = None
    (report,) = tbwriter.ship(behind_proxy.spool, storage_options=behind_proxy.options)
    assert report.error is None
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(30))


def test_a_close_tells_what_it_could_not_put_into_the_spool_and_nothing_of_what_is_not_there(s3, said):
    writer = make(s3)
    write(writer, 0, 10)
    assert writer.flush(30)
    (directory,) = s3.spool.glob("*/")
    shutil.rmtree(directory)
    directory.touch()
    write(writer, 10, 11)
    writer.close(0.2)
    assert [line.split(": ")[1] for line in said() if "closed with" in line] == ["closed with 1 values not stored"]


def test_a_writer_that_is_made_after_all_spools_were_deleted_counts_as_alive(behind_proxy, proxy, tmp_path, said):
    """And a sub-run: else somebody, or the writer itself, would send and delete what is in them."""
    with make(behind_proxy) as first:
        write(first, 0, 10)
        assert first.flush(30)
        shutil.rmtree(behind_proxy.spool)
        behind_proxy.url += "/second"
        with make(behind_proxy) as second:
            proxy.fault = "503"
            write(second, 0, 10)
            first.add_scalars("sub", {"key": 1.0}, 1)
            wait_until(
                lambda: spooled(behind_proxy).count(b"loss") == 10 and b"sub" in spooled(behind_proxy), within=20
            )
            assert tbwriter.ship(behind_proxy.spool, timeout=0) == []
            proxy.fault = None
            assert second.flush(30)
            assert first.flush(30)
    assert not [line for line in said() if "lost" in line or "earlier process" in line]
    seen = behind_proxy.download(tmp_path / "seen")
    assert steps(seen / "second", "loss") == list(range(10))
    assert steps(seen / "sub_key", "sub") == [1]


def test_names_that_the_systems_encoding_cannot_hold_come_through_the_spool(behind_proxy, proxy, tmp_path):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = r"""
assert sys.getfilesystemencoding() == "ascii"
url += "/\u8fd0\u884c"
writer = make(filename_suffix=".\u540e")
writer.add_embedding([[1.0, 2.0]], tag="\u8bcd")
assert writer.flush(30)
say("ready")
wait_for_parent()
writer.add_scalar("\u635f\u5931", 1.0, 1)
writer.add_scalars("\u635f\u5931", {"\u8bad\u7ec3": 1.0}, 1)
writer.add_embedding([[1.0, 2.0]], tag="\u8bcd", global_step=2)
writer.flush(0.5)
writer.close(0.1)
assert writer.stats().dropped == 0
"""
    with child(behind_proxy, code, env=ascii_only) as first:
        first.hears("ready")
        proxy.fault = "503"
        first.go_on()
        assert first.end().returncode == 0
    proxy.fault = None
    shipped = """
import tbwriter
print({report.error for report in tbwriter.ship(spool, storage_options={"endpoint_url": endpoint})})
"""
    out = run_well(WRITE + shipped, behind_proxy.url, behind_proxy.options["endpoint_url"], behind_proxy.spool,
                   env=ascii_only)  # fmt: skip
    assert out == "{None}\n"
    seen = behind_proxy.download(tmp_path / "seen") / "运行"
    assert steps(seen, "损失") == [1]
    assert steps(seen / "损失_训练", "损失") == [1]
    assert [name for name in behind_proxy.names() if "/词/" in name] == [
        "运行/00000/词/tensors.tsv",
        "运行/00002/词/tensors.tsv",
    ]
    assert behind_proxy.spooled() == []


NO_SHIPPER = {
    "no program may be started": """
def refuse(event, arguments):
    if event == "subprocess.Popen":
        raise PermissionError(1, "not here")
sys.addaudithook(refuse)
""",
    "no process may be made": """
import _posixsubprocess, subprocess
def fork_exec(*_):
    raise BlockingIOError(11, "Resource temporarily unavailable")
_posixsubprocess.fork_exec = subprocess._fork_exec = fork_exec
subprocess._USE_POSIX_SPAWN = subprocess._USE_VFORK = False
""",
    "Python does not know where it is": "sys.executable = None",
    "Python is gone": "sys.executable = '/no/such/python'",
    "it ends at once": "sys.executable = '/bin/false'",
}


@pytest.mark.parametrize("reason", NO_SHIPPER)
def test_where_no_shipper_process_can_be_had_the_training_goes_on_without_and_leaves_nothing(s3, tmp_path, reason):
    code = """
writer = make(shipper="process")
for step in range(5):
    write(step, step + 1)
    writer.add_scalars("sub", {f"key{step}": 1.0}, step)
    writer.flush(30)
writer.close()
"""
    with child(s3, NO_SHIPPER[reason] + code) as program:
        ended = program.end()
    assert ended.returncode == 0, ended.err
    assert "Traceback" not in ended.err
    # One that starts and ends may be noticed or not.
    assert ended.err.count("shipper='process' cannot be had") == 1 or reason == "it ends at once"
    seen = s3.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(5))
    assert len(list(seen.glob("sub_key*"))) == 5
    assert list(s3.spool.iterdir()) == []


def test_a_shipper_that_ends_at_once_leaves_python_nothing_to_complain_of():
    code = """
import sys
from tbwriter.sinks import _shipper
sys.executable = "/bin/false"
for number in range(3):
    _shipper.watch("/spool", {"larger than a pipe": "a" * 1_000_000})
"""
    ended = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert [line for line in ended.stderr.splitlines() if "cannot be had" not in line] == []


def test_options_that_no_other_process_can_have_are_no_error(light_s3, said, monkeypatch):
    from tbwriter.sinks import _shipper

    monkeypatch.setattr(_shipper, "_told", threading.Event())
    light_s3.options["client_kwargs"] = {"region_name": type("Local", (str,), {})("us-east-1")}
    with make(light_s3, shipper="process") as writer:
        write(writer, 0, 5)
        assert writer.flush(30)
    assert ["cannot be had" in line for line in said()] == [True]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_writers_made_in_and_sent_to_a_process_of_multiprocessing_have_stored_everything_at_its_end(
    light_s3, tmp_path, method
):
    (tmp_path / "job.py").write_text(
        "from tbwriter import SummaryWriter\n"
        "def log(sent, url, options):\n"
        "    global own\n"
        "    own = SummaryWriter(url + '/own', flush_secs=3600, **options)\n"
        "    for writer in (own, sent):\n"
        "        for step in range(5):\n"
        "            writer.add_scalar('child', float(step), step)\n"
    )
    code = f"""
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
import job
writer = make()
write(0, 3)
options = {{"storage_options": {{"endpoint_url": endpoint}}, "spool_dir": spool}}
process = multiprocessing.get_context("{method}").Process(target=job.log, args=(writer, url, options))
process.start()
process.join(50)
assert process.exitcode == 0, process.exitcode
write(3, 5)
writer.close()
"""
    paths = {"PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"}
    with child(light_s3, code, env=paths) as program:
        ended = program.end()
    assert (ended.returncode, "Traceback" in ended.err) == (0, False), ended.err
    seen = light_s3.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(5))
    assert steps(seen / "own", "child") == list(range(5))
    # A forked copy does nothing, and says so; one that was pickled writes a file of its own.
    assert steps(seen, "child") == ([] if method == "fork" else list(range(5)))
    assert light_s3.spooled() == []
