"""Where event files go, with which permissions and names."""

import json
import os
import re
import stat
import sys

import pytest
from children import run, run_well
from event_files import event_files, scalars, statuses, steps

from tbwriter import SummaryWriter

posix_only = pytest.mark.skipif(os.name == "nt", reason="no permission bits")


@posix_only
@pytest.mark.parametrize(("umask", "file_mode", "directory_mode"), [(0o002, 0o664, 0o775), (0o077, 0o600, 0o700)])
def test_the_umask_decides_who_may_read_and_write(tmp_path, umask, file_mode, directory_mode):
    code = f"""
    os.umask({umask})
    with SummaryWriter(os.path.join(logdir, "new", "run"), max_file_size=5000) as writer:
        for step in range(500):
            writer.add_scalar("a", 1.0, step)
        writer.add_scalars("acc", {{"x": 1.0}}, 1)
    """
    run_well(code, tmp_path)
    new = tmp_path / "new"
    directories = [new, new / "run", new / "run" / "acc_x"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in directories] == [directory_mode] * 3
    files = event_files(new, recursive=True)
    assert len(files) > 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {file_mode}


def test_a_relative_path_is_fixed_at_construction(tmp_path):
    code = """
    writer = SummaryWriter("run", max_file_size=5000)
    os.chdir("elsewhere")
    for step in range(500):
        writer.add_scalar("a", 1.0, step)
    writer.add_scalars("acc", {"x": 1.0}, 1)
    writer.close()
    say(writer.log_dir)
    """
    (tmp_path / "elsewhere").mkdir()
    assert run_well(code, cwd=tmp_path) == f"{tmp_path / 'run'}\n"
    assert os.listdir(tmp_path / "elsewhere") == []
    assert steps(tmp_path / "run", "a") == list(range(500))
    assert scalars(tmp_path / "run" / "acc_x", "acc") == [(1, 1.0)]


def test_a_relative_path_of_a_pickled_copy_is_the_same_place(tmp_path):
    code = """
    import pickle
    data = pickle.dumps(SummaryWriter("run"))
    os.chdir("elsewhere")
    with pickle.loads(data) as writer:
        writer.add_scalar("a", 1.0, 1)
    """
    (tmp_path / "elsewhere").mkdir()
    run_well(code, cwd=tmp_path)
    assert scalars(tmp_path / "run") == [(1, 1.0)]


@pytest.mark.parametrize("place", ["~/runs/x", "~/runs/x/"])
def test_a_tilde_is_the_home_directory(tmp_path, place):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "cwd").mkdir()
    code = "with SummaryWriter(sys.argv[1]) as writer: writer.add_scalar('a', 1.0, 1)"
    run_well(code, place, cwd=tmp_path / "cwd", env={"HOME": str(home), "USERPROFILE": str(home)})
    assert scalars(home / "runs" / "x") == [(1, 1.0)]
    assert os.listdir(tmp_path / "cwd") == []


@pytest.mark.parametrize("place", ["~/runs", "~", "~nobody-of-this-name/runs"])
@pytest.mark.parametrize("argument", ["log_dir", "spool_dir"])
def test_a_tilde_without_a_home_directory_is_refused_and_makes_no_directory(tmp_path, place, argument):
    """As in a container whose user has a number only."""
    code = """
    import pwd
    def nobody(_):
        raise KeyError
    pwd.getpwuid = nobody
    os.environ.pop("HOME", None)
    SummaryWriter(**{"log_dir": logdir, sys.argv[2]: sys.argv[3]})
    """
    (tmp_path / "cwd").mkdir()
    ended = run(code, tmp_path / "run", argument, place, cwd=tmp_path / "cwd")
    name = place.partition("/")[0]
    assert f"ValueError: {argument} begins with {name!r}, and there is no such home directory" in ended.err
    assert [*tmp_path.iterdir()] == [tmp_path / "cwd"]
    assert os.listdir(tmp_path / "cwd") == []


def test_a_tilde_in_a_name_is_a_letter_like_any_other(tmp_path):
    code = "SummaryWriter('./~run').add_scalar('a', 1.0, 1); SummaryWriter('a/~').add_scalar('a', 1.0, 1)"
    run_well(code, cwd=tmp_path)
    assert scalars(tmp_path / "~run") == scalars(tmp_path / "a" / "~") == [(1, 1.0)]


def test_no_permission_is_an_error_at_construction(tmp_path):
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    code = """
    with SummaryWriter(os.path.join(logdir, "as_root")) as writer:
        writer.add_scalar("a", 1.0, 1)  # whatever is imported late is imported now
    locked = os.path.join(logdir, "locked")
    os.mkdir(locked, 0o755)
    os.chmod(logdir, 0o755)
    os.setuid(65534)
    SummaryWriter(os.path.join(locked, "run"))
    """
    ended = run(code, tmp_path)
    assert ended.returncode == 1
    last = ended.err.strip().splitlines()[-1]
    assert "SinkError" in last
    assert "Permission denied" in last
    assert str(tmp_path / "locked" / "run") in last


def test_names_follow_the_pattern_and_sort_in_the_order_of_creation(tmp_path):
    names = []
    for _ in range(12):
        with SummaryWriter(tmp_path, filename_suffix=".v2") as writer:
            writer.add_scalar("a", 1.0, 1)
        (new,) = {path.name for path in event_files(tmp_path)} - set(names)
        names.append(new)
    assert names == sorted(names)
    pattern = rf"events\.out\.tfevents\.\d{{10}}\.[A-Za-z0-9.-]+\.{os.getpid()}\.\d{{6}}\.v2"
    assert all(re.fullmatch(pattern, name) for name in names)


def test_rotated_names_sort_in_the_order_of_creation(tmp_path):
    with SummaryWriter(tmp_path, max_file_size=500) as writer:
        for step in range(300):
            writer.add_scalar("a", 1.0, step)
            writer.flush()
    assert steps(tmp_path, "a") == list(range(300))
    assert len(event_files(tmp_path)) > 20
    assert max(path.stat().st_size for path in event_files(tmp_path)) <= 500


@pytest.mark.parametrize("suffix", ["", ".suffix"])
def test_a_file_from_the_future_still_sorts_before_a_new_one(tmp_path, suffix):
    """Clocks of machines differ."""
    (tmp_path / f"events.out.tfevents.3000000000.zz.99999.999999{suffix}").write_bytes(b"")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("a", 1.0, 1)
    assert event_files(tmp_path)[-1].name.startswith("events.out.tfevents.3000000001.")


def test_two_writers_of_one_second_and_directory_write_two_files(tmp_path):
    with SummaryWriter(tmp_path) as first, SummaryWriter(tmp_path) as second:
        first.add_scalar("first", 1.0, 1)
        second.add_scalar("second", 2.0, 2)
        first.flush()
        first.add_scalar("first", 1.0, 3)
    assert scalars(tmp_path, "first") == [(1, 1.0), (3, 1.0)]
    assert scalars(tmp_path, "second") == [(2, 2.0)]
    assert statuses(tmp_path) == ["clean", "clean"]


def test_many_processes_that_start_at_once_in_one_directory_each_get_a_file(tmp_path):
    """All names are alike but for the process id, and a fork shares even the moment."""
    code = """
    pids = []
    for rank in range(12):
        pid = os.fork()
        if pid == 0:
            with SummaryWriter(logdir) as writer:
                writer.add_scalar(f"rank{rank}", float(rank), 1)
            os._exit(0)
        pids.append(pid)
    say(str({os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids}))
    """
    if sys.platform == "win32":
        pytest.skip("no fork")
    assert run_well(code, tmp_path) == "{0}\n"
    assert len(event_files(tmp_path)) == 12
    assert sorted(scalars(tmp_path)) == [(1, float(rank)) for rank in range(12)]


def test_many_threads_that_open_writers_in_one_directory_each_get_a_file(tmp_path):
    code = """
    import json
    barrier = threading.Barrier(8)
    def work(number):
        barrier.wait()
        with SummaryWriter(logdir) as writer:
            writer.add_scalar(f"rank{number}", float(number), 1)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    say(json.dumps(len(os.listdir(logdir))))
    """
    assert json.loads(run_well(code, tmp_path)) == 8
    assert sorted(scalars(tmp_path)) == [(1, float(number)) for number in range(8)]


@pytest.mark.parametrize("name", ["two words", "ünï-损失-🔥", "a:b", "[x]{y}", "100%", "-dash", "a?b#c"])
def test_a_directory_of_any_name_works(tmp_path, name):
    with SummaryWriter(tmp_path / name) as writer:
        writer.add_scalar("a", 1.0, 1)
    assert os.listdir(tmp_path) == [name]
    assert scalars(tmp_path / name) == [(1, 1.0)]


def test_names_that_the_systems_encoding_cannot_hold_are_those_of_utf_8(tmp_path):
    """As Python decides under LC_ALL=C, of a cron job or a small container, with its UTF-8 mode off."""
    code = r"""
    assert sys.getfilesystemencoding() == "ascii"
    writer = SummaryWriter(os.path.join(logdir, "\u635f\u5931"), filename_suffix=".\u540e", max_file_size=200)
    for step in range(10):
        writer.add_scalar("\u635f\u5931", float(step), step)
        writer.add_scalars("\u635f\u5931", {"\u8bad\u7ec3": float(step)}, step)
        writer.flush()
    writer.add_embedding([[1.0, 2.0]], tag="\u8bcd")
    writer.close()
    from tbwriter import read_events
    say(str([writer.stats().dropped, sum(len(event.values) for event in read_events(writer.log_dir))]))
    """
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run_well(code, tmp_path, env=ascii_only) == "[0, 10]\n"
    run_path = tmp_path / "损失"
    assert [path.name for path in tmp_path.iterdir()] == ["损失"]
    assert steps(run_path, "损失") == list(range(10))
    assert steps(run_path / "损失_训练", "损失") == list(range(10))
    assert {path.suffix for path in event_files(run_path, recursive=True)} == {".后"}
    assert len(event_files(run_path)) > 3
    (tensors,) = (path for path in run_path.rglob("tensors.tsv"))
    assert str(tensors.relative_to(run_path)) in (run_path / "projector_config.pbtxt").read_text(encoding="utf-8")
