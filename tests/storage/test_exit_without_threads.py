"""Python 3.12 and later start no thread at exit: what is left is stored by the threads that are there, or the caller.

The programs refuse new threads themselves, so that these tests mean the same on every version.
"""

import pytest
from children import Child, run_well
from event_files import steps
from test_store_faults import WRITE

# Handlers run in the reverse order of their registration: this one before tbwriter's.
NO_THREADS = """
import atexit
def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")
def no_threads():
    threading.Thread.start = refuse
"""


def test_what_is_left_at_exit_is_stored_over_a_new_connection_to_a_host_that_must_be_looked_up(
    behind_proxy, proxy, tmp_path
):
    code = """
atexit.register(no_threads)
writer = make()
write(0, 5)
assert writer.flush(30)
say("ready")
wait_for_parent()
write(5, 10)
for key in range(6):
    writer.add_scalars("sub", {f"key{key}": 1.0}, 1)
assert not writer.flush(0.3)
say("cut off")
wait_for_parent()
"""
    endpoint = proxy.url.replace("127.0.0.1", "localhost")
    with Child(WRITE + NO_THREADS + code, behind_proxy.url, endpoint, behind_proxy.spool) as program:
        program.hears()
        proxy.fault = "reset"
        program.go_on()
        program.hears("cut off")
        proxy.fault = None
        program.go_on()
        ended = program.end()
    assert ended.returncode == 0, ended.err
    assert "Traceback" not in ended.err
    seen = behind_proxy.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(10))
    assert len(list(seen.glob("sub_key*"))) == 6
    assert behind_proxy.spooled() == []


@pytest.mark.parametrize("flushes", [True, False])
def test_a_writer_that_is_made_in_a_handler_of_the_exit_stores_everything(s3, tmp_path, flushes):
    """The threads of the first writer have ended with it."""
    code = f"""
make().close()
def at_exit():
    global writer
    no_threads()
    writer = make()
    write(0, 300)
    writer.add_scalars("sub", {{"key": 1.0}}, 1)
    assert writer.flush(10) or not {flushes}
atexit.register(at_exit)
"""
    run_well(WRITE + NO_THREADS + code, s3.url, s3.options["endpoint_url"], s3.spool)
    seen = s3.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(300))
    assert steps(seen / "sub_key", "sub") == [1]
    assert s3.spooled() == []


def test_the_first_writer_on_a_store_cannot_be_made_there_and_says_so(s3):
    code = """
import s3fs
from tbwriter import sinks
sinks.normalise(url)
def at_exit():
    no_threads()
    try:
        make()
    except OSError as exc:
        say(str(exc))
atexit.register(at_exit)
"""
    said = run_well(WRITE + NO_THREADS + code, s3.url, s3.options["endpoint_url"], s3.spool)
    assert "no thread can be started for this store" in said


@pytest.mark.parametrize("threads", ["pass", "no_threads()"])
@pytest.mark.parametrize("made", ["pass", "writer = make()"])
def test_what_a_handler_of_the_exit_adds_after_the_writers_are_closed_is_stored(s3, tmp_path, threads, made):
    """To a writer that was open until then, or to one that it makes; on versions that start threads there, too.

    Nobody closes it any more, so that the last segment stays in the spool too; the next run repeats nothing of it.
    """
    code = f"""
writer = make()
write(0, 5)
def late():
    global writer
    {threads}
    {made}
    write(5, 20)
    writer.add_scalars("sub", {{"key": 1.0}}, 1)
import tbwriter._live
atexit.unregister(tbwriter._live._close_all)
atexit.register(late)
atexit.register(tbwriter._live._close_all)
"""
    run_well(WRITE + NO_THREADS + code, s3.url, s3.options["endpoint_url"], s3.spool)
    seen = s3.download(tmp_path / "seen")
    assert steps(seen, "loss") == list(range(20))
    assert steps(seen / "sub_key", "sub") == [1]
    run_well(WRITE + "writer = make(); writer.close()", s3.url, s3.options["endpoint_url"], s3.spool)
    assert steps(s3.download(tmp_path / "later"), "loss") == list(range(20))


def test_a_writer_on_a_path_that_is_made_in_a_handler_of_the_exit_stores_everything(tmp_path):
    code = """
def at_exit():
    no_threads()
    with SummaryWriter(logdir) as writer:
        for step in range(300):
            writer.add_scalar("loss", float(step), step)
        assert writer.flush()
    SummaryWriter(logdir).add_scalar("loss", 300.0, 300)
atexit.register(at_exit)
"""
    run_well(NO_THREADS + code, tmp_path / "run")
    assert steps(tmp_path / "run", "loss") == list(range(301))


def test_a_store_that_is_down_when_no_thread_can_be_started_gets_it_from_the_next_run(behind_proxy, proxy, tmp_path):
    code = """
make().close()
say("ready")
wait_for_parent()
def at_exit():
    global writer
    no_threads()
    writer = make()
    write(0, 5)
    writer.close(1)
atexit.register(at_exit)
"""
    with Child(
        WRITE + NO_THREADS + code, behind_proxy.url, behind_proxy.options["endpoint_url"], behind_proxy.spool
    ) as program:
        program.hears()
        proxy.fault = "503"
        program.go_on()
        ended = program.end()
    assert ended.returncode == 0, ended.err
    assert "not stored; they are in" in ended.err
    proxy.fault = None
    run_well(
        WRITE + "writer = make(); write(5, 10); writer.close()",
        behind_proxy.url,
        behind_proxy.options["endpoint_url"],
        behind_proxy.spool,
    )
    assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(10))
