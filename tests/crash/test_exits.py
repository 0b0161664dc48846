"""How a process really ends, without close()."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from children import START_SECS, Child, environment, run, run_well
from event_files import event_files, read_file, scalars, statuses
from waiting import wait_until

FLUSH_SECS = 0.2
# What a busy machine may add to flush_secs.
SLACK_SECS = 10.0
ALL = [(step, float(step)) for step in range(300)]
WRITE = f"""
writer = SummaryWriter(logdir, flush_secs={FLUSH_SECS})
for step in range(300):
    writer.add_scalar("loss", float(step), step)
"""
# Nothing is written by the timer: what is on disk came there by the exit.
WRITE_LATE = WRITE.replace(str(FLUSH_SECS), "3600")


def assert_everything_is_there(logdir):
    assert scalars(logdir, "loss") == ALL
    assert statuses(logdir) == ["clean"]


@pytest.mark.parametrize(
    ("ending", "returncode"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise RuntimeError('boom')", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("raise SystemExit('told')", 1),
        ("del writer", 0),
        ("writer.close()", 0),
        ("writer.close(); writer.close()", 0),
        ("threading.Thread(target=writer.add_scalar, args=('other', 1.0, 1)).start()", 0),
    ],
)
def test_an_end_in_which_python_still_runs_leaves_everything(tmp_path, ending, returncode):
    ended = run(WRITE_LATE + ending, tmp_path)
    assert ended.returncode == returncode, ended.err
    assert_everything_is_there(tmp_path)


def test_ctrl_c_leaves_everything(tmp_path):
    with Child(WRITE_LATE + "say('ready'); threading.Event().wait()", tmp_path) as child:
        child.hears("ready")
        child.send(signal.SIGINT)
        assert child.end().returncode == -signal.SIGINT
    assert_everything_is_there(tmp_path)


# Enough to be at work for a good while after the signal.
WRITE_MUCH = """
writer = SummaryWriter(logdir, flush_secs=3600)
for step in range(50_000):
    writer.add_scalar("loss", 1.0, step)
"""
INTERRUPT = """
from waiting import wait_until
from tbwriter import _live
def interrupt():
    wait_until(lambda: {at}, within=60, every=0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
"""


@pytest.mark.parametrize(
    ("ending", "at", "returncode"),
    [
        ("writer.close()", "writer._tb_closed", -signal.SIGINT),
        ("writer.flush(); threading.Event().wait()", "writer._tb_worker._requests", -signal.SIGINT),
        ("pass", "_live.exit_began()", 0),
        ("raise RuntimeError('boom')", "_live.exit_began()", 1),
    ],
    ids=["close", "flush", "the exit", "the exit of an exception"],
)
def test_ctrl_c_while_the_writer_is_closed_leaves_everything(tmp_path, ending, at, returncode):
    ended = run(WRITE_MUCH + INTERRUPT.format(at=at) + ending, tmp_path)
    assert ended.returncode == returncode, ended.err
    assert len(scalars(tmp_path, "loss")) == 50_000
    assert statuses(tmp_path) == ["clean"]


def test_a_writer_that_nobody_holds_any_more_leaves_everything(tmp_path):
    code = """
    def job():
        writer = SummaryWriter(logdir, flush_secs=3600)
        for step in range(300):
            writer.add_scalar("loss", float(step), step)
    import gc
    job()
    gc.collect()
    """
    run_well(code, tmp_path)
    assert_everything_is_there(tmp_path)


def test_a_writer_in_a_reference_cycle_leaves_everything(tmp_path):
    code = "loop = [writer]; loop.append(loop); del writer, loop"
    run_well(WRITE_LATE + code, tmp_path)
    assert_everything_is_there(tmp_path)


def test_an_end_within_another_thread_leaves_everything(tmp_path):
    code = """
    def job():
        writer = SummaryWriter(logdir, flush_secs=3600)
        for step in range(300):
            writer.add_scalar("loss", float(step), step)
    thread = threading.Thread(target=job)
    thread.start()
    """
    run_well(code, tmp_path)
    assert_everything_is_there(tmp_path)


def test_an_exception_within_the_with_block_leaves_everything(tmp_path):
    code = """
    with SummaryWriter(logdir, flush_secs=3600) as writer:
        for step in range(300):
            writer.add_scalar("loss", float(step), step)
        raise RuntimeError("boom")
    """
    assert "RuntimeError: boom" in run(code, tmp_path).err
    assert_everything_is_there(tmp_path)


@pytest.mark.parametrize("ending", ["SIGTERM", "os._exit", "SIGKILL"])
def test_an_end_in_which_no_python_runs_leaves_what_is_older_than_flush_secs(tmp_path, ending):
    code = WRITE + "say('ready'); wait_for_parent(); os._exit(0)"
    with Child(code, tmp_path) as child:
        child.hears("ready")
        # No flush was called and the program does nothing: the timer alone brings it to disk.
        wait_until(lambda: len(scalars(tmp_path, "loss")) == 300, within=FLUSH_SECS + SLACK_SECS)
        if ending == "os._exit":
            child.go_on()
        else:
            child.send(getattr(signal, ending))
        child.end()
    assert_everything_is_there(tmp_path)


def test_the_handler_of_sigterm_is_left_alone(tmp_path):
    out = run_well(
        """
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        with SummaryWriter(logdir) as writer:
            writer.add_scalar("a", 1.0, 1)
            say(str(before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))))
        """,
        tmp_path,
    )
    assert out == "True\n"


@pytest.mark.parametrize("chained", ["", "signal.signal(signal.SIGTERM, lambda *_: (say('chained'), os._exit(7)))"])
def test_a_sigterm_that_is_to_flush_leaves_everything_and_does_what_it_did_before(tmp_path, chained):
    code = f"""
    {chained}
    tbwriter.flush_on_sigterm()
    tbwriter.flush_on_sigterm()
    say('ready')
    threading.Event().wait()
    """
    with Child("import tbwriter\n" + WRITE_LATE + textwrap.dedent(code), tmp_path) as child:
        child.hears("ready")
        child.send(signal.SIGTERM)
        ended = child.end()
    assert ended.returncode == (7 if chained else -signal.SIGTERM)
    assert ended.out == ("chained\n" if chained else "")
    assert_everything_is_there(tmp_path)


def test_a_sigterm_that_is_ignored_still_flushes(tmp_path):
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tbwriter.flush_on_sigterm()
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(0)
    """
    run_well("import tbwriter\n" + WRITE_LATE + textwrap.dedent(code), tmp_path)
    assert_everything_is_there(tmp_path)


def test_a_sigterm_to_a_forked_child_flushes_nothing_and_says_nothing(tmp_path):
    """As torch ends its data loader's workers."""
    code = """
    tbwriter.flush_on_sigterm()
    there, tell = os.pipe()  # CPython forgets a signal that comes to a child before fork() has returned there
    child = os.fork()
    if child == 0:
        os.write(tell, b"!")
        threading.Event().wait()
    os.read(there, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    say(str(os.WTERMSIG(status) == signal.SIGTERM))
    """
    ended = run("import tbwriter\n" + WRITE_LATE + textwrap.dedent(code), tmp_path)
    assert (ended.returncode, ended.out, ended.err) == (0, "True\n", "")
    assert_everything_is_there(tmp_path)


def test_ctrl_c_within_adds_leaves_the_writer_usable(tmp_path):
    """Interrupted adds may be lost or kept; those that returned are there once, in order."""
    code = """
    writer = SummaryWriter(logdir, max_queue=100)
    step, returned, hits, adding = 0, [], 0, False
    def interrupt(*args):
        if adding:
            raise KeyboardInterrupt
    signal.signal(signal.SIGINT, interrupt)
    def press():
        while hits < 50:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(0.005)
    threading.Thread(target=press).start()
    while hits < 50:
        try:
            adding = True
            while True:
                step += 1
                writer.add_scalar("loss", float(step), step)
                returned.append(step)
        except KeyboardInterrupt:
            adding = False
            hits += 1
    for step in range(step + 1, step + 101):
        writer.add_scalar("loss", float(step), step)
        returned.append(step)
    writer.close()
    from event_files import steps
    got = steps(logdir, "loss")
    say(repr([sorted(got) == got, len(got) == len(set(got)), len(set(returned) - set(got))]))
    """
    assert run_well(code, tmp_path) == "[True, True, 0]\n"


def test_the_first_record_is_there_as_soon_as_the_writer_is(tmp_path):
    with Child("writer = SummaryWriter(logdir); say('ready'); wait_for_parent()", tmp_path) as child:
        child.hears("ready")
        (path,) = event_files(tmp_path)
        events, status = read_file(path)
    assert (events[0].file_version, status) == ("brain.Event:2", "clean")


@pytest.mark.slow
def test_a_process_ends_promptly_when_storage_hangs(tmp_path):
    """close() has a deadline of 10 s at exit; 20 s more are for the machine."""
    code = """
    import logging
    logging.basicConfig(format="%(message)s")
    def hang(*args):
        threading.Event().wait()
    writer = SummaryWriter(logdir, flush_secs=0.1)
    for name in ("write", "writev", "pwrite", "pwritev"):
        setattr(os, name, hang)
    writer.add_scalar("loss", 1.0, 1)
    """
    ended = run(code, tmp_path, within=30)
    assert ended.returncode == 0, ended.err
    assert "1 values not stored" in ended.err


def test_exit_with_twenty_open_writers_leaves_everything_of_each(tmp_path):
    code = """
    writers = [SummaryWriter(os.path.join(logdir, str(number)), flush_secs=3600) for number in range(20)]
    for step in range(300):
        for writer in writers:
            writer.add_scalar("loss", float(step), step)
    """
    run_well(code, tmp_path)
    for number in range(20):
        assert_everything_is_there(tmp_path / str(number))


def test_an_exit_handler_of_the_user_may_still_add(tmp_path):
    """The handler registered last runs first, and this one is registered after the import."""
    code = "import atexit; atexit.register(lambda: writer.add_scalar('last', 1.0, 1))"
    run_well(WRITE_LATE + code, tmp_path)
    assert scalars(tmp_path, "last") == [(1, 1.0)]
    assert scalars(tmp_path, "loss") == ALL


# The handler that is registered first runs last: after ours, which closes the writers.
OLDER_THAN_TBWRITER = """
import atexit, sys
atexit.register(lambda: last_words())
"""


def run_plain(code, logdir):
    """Run a program that decides itself when tbwriter is imported."""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(logdir)],
        env=environment(), capture_output=True, text=True, timeout=START_SECS, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_an_exit_handler_that_is_older_than_tbwriter_may_still_add_to_an_open_writer(tmp_path):
    code = """
from tbwriter import SummaryWriter
writer = SummaryWriter(sys.argv[1], purge_step=3)
writer.add_scalar("loss", 3.0, 3)
def last_words():
    for step in range(4, 50):
        writer.add_scalar("loss", float(step), step)
    writer.add_histogram("weights", [1.0, 2.0], 50)
    writer.add_scalars("acc", {"a": 2.0}, 50)
    print(writer.flush())
    writer.close()
    try:
        writer.add_scalar("loss", 51.0, 51)
    except RuntimeError as exc:
        print(exc)
"""
    flushed, refused = run_plain(OLDER_THAN_TBWRITER + code, tmp_path).splitlines()
    assert flushed == "True"
    assert refused.startswith("the writer is closed")
    assert scalars(tmp_path, "loss") == [(step, float(step)) for step in range(3, 50)]
    assert scalars(tmp_path / "acc_a", "acc") == [(50, 2.0)]
    assert set(statuses(tmp_path)) == {"clean"}


def test_an_exit_handler_that_is_older_than_tbwriter_may_still_add_events(tmp_path):
    code = """
from tbwriter import EventFileWriter
from tbwriter._summary import Text, event
writer = EventFileWriter(sys.argv[1])
def add(step):
    text = Text.of("t", "x", suffix="")
    writer.add_event(event(text.values(True), step, 1.0))
add(1)
def last_words():
    add(2)
    writer.close()
"""
    run_plain(OLDER_THAN_TBWRITER + code, tmp_path)
    assert [event.step for path in event_files(tmp_path) for event in read_file(path)[0] if event.values] == [1, 2]


def test_threads_that_an_old_exit_handler_sets_going_lose_nothing(tmp_path):
    code = """
import threading
from tbwriter import SummaryWriter
writer = SummaryWriter(sys.argv[1])
writer.add_scalar("loss", 0.0, 0)
gate = threading.Event()
def add(number):
    gate.wait()
    for step in range(50):
        writer.add_scalar(f"loss{number}", float(step), step)
threads = [threading.Thread(target=add, args=(number,), daemon=True) for number in range(8)]
for thread in threads:
    thread.start()
def last_words():
    gate.set()
    for thread in threads:
        thread.join()
"""
    run_plain(OLDER_THAN_TBWRITER + code, tmp_path)
    for number in range(8):
        assert scalars(tmp_path, f"loss{number}") == [(step, float(step)) for step in range(50)]


ADDS_FOR_EVER = """
import threading, time
def add():
    step = 0
    while True:
        writer.add_scalar("other", 1.0, step)
        step += 1
        time.sleep(0.001)
"""


def test_what_an_old_exit_handler_adds_is_stored_beside_a_daemon_thread_that_opens_the_file(tmp_path):
    """The interpreter ends as soon as the handler is done, and the thread with it, whatever it has not handed on."""
    code = """
from tbwriter import SummaryWriter
writer = SummaryWriter(sys.argv[1])
threading.Thread(target=add, daemon=True).start()
def last_words():
    for step in range(50):
        writer.add_scalar("loss", float(step), step)
    writer.add_histogram("weights", [1.0, 2.0], 50)
"""
    run_plain(OLDER_THAN_TBWRITER + ADDS_FOR_EVER + code, tmp_path)
    assert scalars(tmp_path, "loss") == [(step, float(step)) for step in range(50)]
    assert len([event for path in event_files(tmp_path) for event in read_file(path)[0] if event.step == 50]) == 1


def test_a_del_at_the_very_end_waits_for_no_thread_that_stands_still(tmp_path):
    """Which may hold our locks: here while it writes. What cannot be added is refused as by a closed writer."""
    code = """
    import types
    class Logger:
        def __del__(self, write=os.write):
            try:
                self.writer.add_scalar("last", 1.0, 1)
            except RuntimeError as exc:
                write(1, str(exc).encode())
            self.writer.flush()
            self.writer.close()
    held = sys.modules["held"] = types.ModuleType("held")
    held.logger = Logger()
    writer = held.logger.writer = SummaryWriter(logdir)
    real = os.pwrite
    def pwrite(*arguments):
        time.sleep(0.5)
        return real(*arguments)
    threading.Thread(target=add, daemon=True).start()
    writer.add_scalar("loss", 1.0, 1)
    writer.flush()
    os.pwrite = pwrite
    """
    said = run_well(ADDS_FOR_EVER + textwrap.dedent(code), tmp_path)
    assert said.startswith("the writer is closed")


# In a cycle the collector closes the writer before it calls the `__del__`; a global dies after all exit handlers.
@pytest.mark.parametrize("end", ["logger.itself = logger; del logger; gc.collect()", "logger.itself = logger", "pass"])
@pytest.mark.parametrize("closes", ["self.writer.close()", "pass"])
def test_the_del_of_what_holds_a_writer_may_still_add(tmp_path, end, closes):
    code = f"""
    import gc
    class Logger:
        def __init__(self):
            self.writer = SummaryWriter(logdir, flush_secs=3600)
        def __del__(self):
            self.writer.add_scalar("last", 1.0, 1)
            self.writer.add_metrics({{"a": 1.0, "b": 2.0}}, 1)
            {closes}
    logger = Logger()
    for step in range(300):
        logger.writer.add_scalar("loss", float(step), step)
    {end}
    """
    ended = run(code, tmp_path)
    assert (ended.returncode, ended.err) == (0, "")
    assert scalars(tmp_path, "last") == [(1, 1.0)]
    assert scalars(tmp_path, "b") == [(1, 2.0)]
    assert scalars(tmp_path, "loss") == ALL
    assert set(statuses(tmp_path)) == {"clean"}


def test_output_of_a_child_process_never_lands_in_the_event_file(tmp_path):
    code = """
    import subprocess
    writer = SummaryWriter(logdir)
    writer.add_scalar("loss", 1.0, 1)
    writer.flush()
    held = subprocess.run([sys.executable, "-c",
        "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{n}')])"], capture_output=True, text=True, close_fds=False).stdout
    say(str("tfevents" in held))
    """
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc")
    assert run_well(code, tmp_path) == "False\n"


@pytest.mark.skipif(os.name == "nt", reason="closes descriptors as a shell does")
def test_what_libraries_print_in_a_process_without_standard_output_never_lands_in_the_event_file(tmp_path):
    """The first files that it opens would be its standard input, output and error, as of a daemon."""
    code = """
import os, sys
from tbwriter import SummaryWriter
def print_as_libraries_do():
    for descriptor in (0, 1, 2):
        try:
            os.write(descriptor, b"W0000 a line of some library\\n")
        except OSError:
            pass
writer = SummaryWriter(sys.argv[1], max_file_size=2000)
for step in range(100):
    writer.add_scalar("loss", float(step), step)
    writer.add_scalars("acc", {"a": float(step)}, step)
    if step % 10 == 0:
        writer.add_embedding([[1.0, 2.0], [3.0, 4.0]], metadata=["a", "b"], global_step=step)
        writer.flush()
        print_as_libraries_do()
writer.close()
"""
    program = tmp_path / "program.py"
    program.write_text(code.replace("\\\\n", "\\n"))
    run_dir = tmp_path / "run"
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$1" "$2" <&- >&- 2>&-', sys.executable, str(program), str(run_dir)],
        env=environment(), timeout=START_SECS, check=False,
    )  # fmt: skip
    assert ended.returncode == 0
    points = [(step, float(step)) for step in range(100)]
    assert scalars(run_dir, "loss") == points
    assert scalars(run_dir / "acc_a", "acc") == points
    assert set(statuses(run_dir)) == {"clean"}
    assert not [path for path in run_dir.rglob("*") if path.is_file() and b"some library" in path.read_bytes()]


def test_a_writer_made_in_an_exit_handler_that_is_older_than_tbwriter_stores_what_it_gets(tmp_path):
    """Exit handlers run from the newest to the oldest: ours, which closes the writers, has run by then."""
    code = """
import atexit, sys
def last_words():
    from tbwriter import SummaryWriter
    writer = SummaryWriter(sys.argv[1])
    writer.add_scalar("loss", 1.0, 1)
    writer.add_scalars("acc", {"a": 2.0}, 1)
atexit.register(last_words)
import tbwriter
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment(), capture_output=True, text=True, timeout=START_SECS, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert scalars(tmp_path, "loss") == [(1, 1.0)]
    assert scalars(tmp_path / "acc_a", "acc") == [(1, 2.0)]


def test_a_handler_that_ends_a_process_without_a_thread_loses_nothing(tmp_path):
    """SIGTERM in the midst of a write."""
    code = """
writer = SummaryWriter(logdir, asynchronous=False)
def end(*_):
    writer.add_scalar("loss", 300.0, 300)
    writer.close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
real, writes = os.pwrite, []
def pwrite(*arguments):
    writes.append(1)
    if len(writes) == 300:
        signal.raise_signal(signal.SIGTERM)
    return real(*arguments)
os.pwrite = pwrite
for step in range(1000):
    writer.add_scalar("loss", float(step), step)
"""
    assert run_well(code, tmp_path) == ""
    assert scalars(tmp_path, "loss") == [*ALL, (300, 300.0)]
    assert statuses(tmp_path) == ["clean"]
