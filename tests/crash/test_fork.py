"""A writer and the processes that are forked or spawned from its own."""

import json
import subprocess
import sys

import pytest
from children import START_SECS, environment, run_well
from event_files import SESSION_START, event_files, read_file, scalars, statuses, steps, values

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")

# What the child logs goes to a list, and what it found out to a pipe.
FORK = """
import json, logging, warnings
class Kept(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
said = []
logging.getLogger().addHandler(Kept(logging.WARNING))
writer = SummaryWriter(logdir)
writer.add_scalar("parent", 1.0, 1)
def forked(work):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.write(writing, json.dumps(work()).encode())
        os.close(writing)
        sys.exit(0)
    os.close(writing)
    with open(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    return told, os.waitstatus_to_exitcode(status)
"""
EVERYTHING = """
def work():
    import numpy as np
    said.clear()
    for step in range(50):
        writer.add_scalar("child", float(step), step)
        writer.add_metrics({"child": 1.0}, step)
    writer.add_scalar_series("child", np.arange(5.0), np.arange(5))
    writer.add_scalars("child", {"a": 1.0}, 1)
    writer.add_histogram("hist", [1.0], 1)
    writer.add_text("text", "words", 1)
    flushed = writer.flush()
    writer.close()
    writer.close()
    return [said, flushed]
"""


def test_a_forked_child_is_inert_says_so_once_and_leaves_the_parent_alone(tmp_path):
    code = """
    told, status = forked(work)
    writer.add_scalar("parent", 2.0, 2)
    writer.close()
    say(told); say(str(status))
    """
    out = run_well(FORK + EVERYTHING + undented(code), tmp_path).splitlines()
    said, flushed = json.loads(out[0])
    assert len(said) == 1
    assert "does nothing in its forked child" in said[0]
    assert flushed is False
    assert out[1] == "0"
    assert [(tag, step) for tag, step, _ in values(tmp_path)] == [("parent", 1), ("parent", 2)]
    assert statuses(tmp_path, recursive=True) == ["clean"]


def undented(code):
    return "\n".join(line.removeprefix("    ") for line in code.splitlines())


def test_what_waits_in_the_queue_at_a_fork_is_stored_once(tmp_path):
    code = """
    for step in range(2, 5001):
        writer.add_scalar("parent", float(step), step)
    told, status = forked(lambda: None)
    writer.close()
    """
    run_well(FORK + undented(code), tmp_path)
    assert steps(tmp_path, "parent") == list(range(1, 5001))


def test_adding_alone_makes_a_forked_child_say_so_once(tmp_path):
    code = """
    def work():
        for step in range(50):
            writer.add_scalar("parent", float(step), step)
        return said
    told, status = forked(work)
    say(told)
    """
    said = json.loads(run_well(FORK + undented(code), tmp_path))
    assert ["does nothing in its forked child" in line for line in said] == [True]


def test_a_forked_child_never_waits_for_room_in_the_queue(tmp_path):
    code = """
    writer = SummaryWriter(logdir, max_queue=1000, block_secs=600)
    writer.add_scalar("parent", 1.0, 1)
    def work():
        signal.alarm(30)
        for step in range(5000):
            writer.add_scalar("parent", 2.0, step)
            writer.add_metrics({"parent": 2.0}, step)
    told, status = forked(work)
    writer.close()
    say(str(status))
    """
    assert run_well(FORK + undented(code), tmp_path) == "0\n"
    assert {value for _, value in scalars(tmp_path)} == {1.0}


@pytest.mark.slow
def test_a_child_forked_while_threads_add_never_hangs(tmp_path):
    """Whatever lock a thread of the parent's holds at that moment, the child does not wait for it."""
    code = """
    sys.setswitchinterval(1e-5)
    stop = threading.Event()
    def add(tag):
        step = 0
        while not stop.is_set():
            writer.add_metrics({tag: 1.0}, step)
            step += 1
            if step % 10 == 0:
                writer.flush()
        last[tag] = step
    def work():
        signal.alarm(20)
        writer.add_scalar("a", 2.0, 1)
        writer.add_metrics({"a": 2.0}, 1)
        writer.flush()
        writer.stats()
        writer.close()
    last = {}
    threads = [threading.Thread(target=add, args=(tag,)) for tag in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    ends = [forked(work)[1] for _ in range(10)]
    stop.set()
    for thread in threads:
        thread.join()
    writer.close()
    say(json.dumps([ends, last]))
    """
    ends, last = json.loads(run_well(FORK + undented(code), tmp_path))
    assert ends == [0] * 10
    for tag, end in last.items():
        assert scalars(tmp_path, tag) == [(step, 1.0) for step in range(end)]


def test_a_writer_made_in_a_forked_child_works(tmp_path):
    code = """
    def work():
        with SummaryWriter(os.path.join(logdir, "child")) as own:
            for step in range(100):
                own.add_scalar("child", float(step), step)
        return said
    told, status = forked(work)
    writer.close()
    say(told); say(str(status))
    """
    assert run_well(FORK + undented(code), tmp_path).splitlines() == ["[]", "0"]
    assert steps(tmp_path / "child", "child") == list(range(100))
    assert steps(tmp_path, "parent") == [1]


def test_a_writer_made_in_a_forked_child_is_closed_at_its_exit(tmp_path):
    code = """
    def work():
        global own
        own = SummaryWriter(os.path.join(logdir, "child"), flush_secs=3600)
        own.add_scalar("child", 1.0, 1)
    told, status = forked(work)
    """
    run_well(FORK + undented(code), tmp_path)
    assert steps(tmp_path / "child", "child") == [1]


def test_processes_of_multiprocessing_by_fork_are_inert(tmp_path):
    code = """
    import multiprocessing
    context = multiprocessing.get_context("fork")
    def work(number):
        for step in range(50):
            writer.add_scalar("child", float(step), step)
        writer.flush()
        return number
    with context.Pool(2) as pool:
        say(str(pool.map(work, range(4))))
    process = context.Process(target=work, args=(1,))
    process.start()
    process.join(20)
    say(str(process.exitcode))
    writer.add_scalar("parent", 2.0, 2)
    writer.close()
    """
    out = run_well(FORK + undented(code), tmp_path)
    assert out.splitlines() == ["[0, 1, 2, 3]", "0"]
    assert scalars(tmp_path) == [(1, 1.0), (2, 2.0)]
    assert statuses(tmp_path) == ["clean"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_writer_made_in_a_process_of_multiprocessing_is_closed_at_its_end(tmp_path, method):
    """Processes of multiprocessing end by os._exit, which runs no exit handlers, where they were forked."""
    (tmp_path / "job.py").write_text(
        "from tbwriter import SummaryWriter\n"
        "def log(logdir):\n"
        "    global writer\n"
        "    writer = SummaryWriter(logdir, flush_secs=3600)\n"
        "    writer.add_scalar('child', 1.0, 1)\n"
    )
    code = f"""
    import multiprocessing
    sys.path.insert(0, logdir)
    import job
    process = multiprocessing.get_context("{method}").Process(target=job.log, args=(logdir,))
    process.start()
    process.join(30)
    say(str(process.exitcode))
    """
    assert run_well(code, tmp_path, env={"PYTHONPATH": with_path(tmp_path)}) == "0\n"
    assert steps(tmp_path, "child") == [1]


def with_path(path):
    return f"{path}:{environment()['PYTHONPATH']}"


def test_a_writer_sent_to_a_spawned_process_opens_a_file_of_its_own(tmp_path):
    code = """
    import multiprocessing
    writer = SummaryWriter(logdir)
    writer.add_scalar("parent", 1.0, 1)
    process = multiprocessing.get_context("spawn").Process(target=writer.add_scalar, args=("child", 2.0, 2))
    process.start()
    process.join(30)
    say(str(process.exitcode))
    writer.add_scalar("parent", 3.0, 3)
    writer.close()
    """
    assert run_well(code, tmp_path) == "0\n"
    assert scalars(tmp_path, "parent") == [(1, 1.0), (3, 3.0)]
    assert scalars(tmp_path, "child") == [(2, 2.0)]
    assert statuses(tmp_path) == ["clean", "clean"]


def test_a_pickled_copy_that_nothing_is_added_to_opens_no_file_and_no_thread(tmp_path):
    code = """
    import pickle
    writer = SummaryWriter(logdir)
    copied = pickle.loads(pickle.dumps(writer))
    say(str([len(os.listdir(logdir)), threading.active_count()]))
    copied.flush()
    copied.close()
    writer.close()
    """
    assert run_well(code, tmp_path) == "[1, 2]\n"
    assert len(event_files(tmp_path)) == 1


def test_a_pickled_copy_of_a_resumed_writer_voids_nothing(tmp_path):
    code = """
    import pickle
    writer = SummaryWriter(logdir, purge_step=5)
    copied = pickle.loads(pickle.dumps(writer))
    copied.add_scalar("copied", 1.0, 1)
    copied.close()
    writer.close()
    """
    run_well(code, tmp_path)
    starts = [
        [event.step for event in read_file(path)[0] if event.session == SESSION_START] for path in event_files(tmp_path)
    ]
    assert starts == [[5], [2**63 - 1]]  # the last step there is voids nothing


# Scripts make their writer at the top, which each worker of a loader runs again.
TOP_LEVEL = """
import multiprocessing, sys
from tbwriter import EventFileWriter, SummaryWriter
if sys.argv[4] == "summaries":
    writer = SummaryWriter(sys.argv[1], purge_step=0)
    add = writer.add_scalar
else:
    from tbwriter._pb.tfevents_pb2 import Event, Summary
    writer = EventFileWriter(sys.argv[1])
    def add(tag, number, step):
        writer.add_event(Event(summary=Summary(value=[Summary.Value(tag=tag, simple_value=number)])), step)
def work(number):
    if sys.argv[2] == "adds":
        add("worker", float(number), number)
        writer.close()
    return number
if __name__ == "__main__":
    add("parent", 1.0, 1)
    with multiprocessing.get_context(sys.argv[3]).Pool(1) as pool:
        assert pool.map(work, [7]) == [7]
        pool.close()
        pool.join()
    add("parent", 2.0, 2)
    writer.close()
"""


def run_script(tmp_path, *arguments):
    script = tmp_path / "train.py"
    script.write_text(TOP_LEVEL)
    command = [sys.executable, str(script), str(tmp_path / "run"), *arguments]
    done = subprocess.run(command, env=environment(), timeout=START_SECS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("writer", ["summaries", "events"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_that_runs_the_script_again_makes_no_file_of_its_own(tmp_path, method, writer):
    """For that file, the newest, TensorBoard's Python reader would leave the script's for good."""
    run_script(tmp_path, "adds nothing", method, writer)
    assert len(event_files(tmp_path / "run")) == 1
    assert scalars(tmp_path / "run", "parent") == [(1, 1.0), (2, 2.0)]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_a_worker_adds_to_the_writer_of_the_script_is_stored_and_voids_nothing(tmp_path, method):
    run_script(tmp_path, "adds", method, "summaries")
    assert scalars(tmp_path / "run", "worker") == [(7, 7.0)]
    assert scalars(tmp_path / "run", "parent") == [(1, 1.0), (2, 2.0)]
    starts = [
        [event.step for event in read_file(path)[0] if event.session == SESSION_START]
        for path in event_files(tmp_path / "run")
    ]
    assert starts == [[0], [2**63 - 1]]


def test_events_that_a_worker_adds_to_the_writer_of_the_script_are_stored(tmp_path):
    run_script(tmp_path, "adds", "spawn", "events")
    assert scalars(tmp_path / "run", "worker") == [(7, 7.0)]
    assert scalars(tmp_path / "run", "parent") == [(1, 1.0), (2, 2.0)]
    assert len(event_files(tmp_path / "run")) == 2
