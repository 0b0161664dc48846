"""Where `tbwriter export` and `plot` put what they write: never over what is read, nor in the place of a pipe."""

import os
import stat
import subprocess
import sys
import threading

import pytest
from damaged import put

COMMANDS = {"export": "x.csv", "plot": "x.svg"}


@pytest.fixture(params=list(COMMANDS))
def saving(request):
    if request.param == "plot":
        pytest.importorskip("matplotlib")
    return request.param


def looks_right(data):
    return data.startswith((b"run,tag,step", b"<?xml", b"\x89PNG"))


def test_the_file_that_is_read_is_not_written(tbwriter_command, tmp_path, saving):
    (path,) = put(tmp_path / "run", "good").iterdir()
    names = [tmp_path / "link.svg", tmp_path / "hard.svg", path]
    names[0].symlink_to(path)
    os.link(path, names[1])
    before = path.read_bytes()
    for name in names:
        answer = tbwriter_command(saving, tmp_path / "run", "-o", name)
        assert answer.code == 2
        assert "one of the files that are read" in answer.err
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "run", *names[:2]])


def test_a_link_stays_and_what_it_leads_to_is_replaced(tbwriter_command, tmp_path, saving):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / COMMANDS[saving], tmp_path / "there" / "target"
    link.symlink_to(target)
    run = put(tmp_path / "run", "good")
    for _ in range(2):  # first the link leads nowhere
        assert tbwriter_command(saving, run, "-o", link).code == 0
        assert link.is_symlink()
        assert looks_right(target.read_bytes())
        target.chmod(0o640)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert list((tmp_path / "there").iterdir()) == [target]


@pytest.mark.parametrize("name", ["x.svg", "without-ending"])
def test_a_pipe_is_written_into(tbwriter_command, tmp_path, saving, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    came = []
    reader = threading.Thread(target=lambda: came.append(pipe.read_bytes()))
    reader.start()
    assert tbwriter_command(saving, put(tmp_path / "run", "good"), "-o", pipe).code == 0
    reader.join(timeout=60)
    assert looks_right(came[0])
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["run", name])


def test_a_device_stays_a_device(tbwriter_command, tmp_path, saving):
    device = tmp_path / "full.svg"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        device.open("wb").close()
    except OSError:
        pytest.skip("devices cannot be made here")
    answer = tbwriter_command(saving, put(tmp_path / "run", "good"), "-o", device)
    assert answer.code == 3
    assert "No space left" in answer.err
    assert stat.S_ISCHR(device.stat().st_mode)


def test_what_standard_output_is_gets_the_table_behind_what_is_there(tmp_path):
    """As /dev/stdout does, whose name leads to a file that a shell has open."""
    run, out = put(tmp_path / "run", "good"), tmp_path / "out"
    out.write_text("before\n")
    with out.open("ab") as stdout:
        command = [sys.executable, "-m", "tbwriter", "export", str(run), "-o", str(out)]
        subprocess.run(command, stdout=stdout, check=True)
    lines = out.read_text().splitlines()
    assert lines[:2] == ["before", "run,tag,step,wall_time,value"]
    assert len(lines) == 12


@pytest.mark.parametrize("name", ["", "new/"])
def test_a_directory_is_refused(tbwriter_command, tmp_path, saving, name):
    answer = tbwriter_command(saving, put(tmp_path / "run", "good"), "-o", f"{tmp_path}/{name}")
    assert answer.code == 2
    assert "is a directory" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["pic", "pic.jpg", "pic.part"])
def test_a_picture_of_another_kind_is_refused_in_words(tbwriter_command, tmp_path, name):
    pytest.importorskip("matplotlib")
    answer = tbwriter_command("plot", put(tmp_path / "run", "good"), "-o", tmp_path / name)
    assert answer.code == 2
    assert ".png, .svg or .pdf" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("kind", ["scalars", "histograms"])
@pytest.mark.parametrize("where", [[], ["-o", "x.csv"], ["-o", "x.csv", "--jobs", "2"]])
def test_an_export_tells_of_damage_that_is_left_out(tbwriter_command, tmp_path, monkeypatch, kind, where):
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "runs" / "a", "good")
    (path,) = put(tmp_path / "runs" / "b", "bad-data").iterdir()
    answer = tbwriter_command("export", "runs", "--kind", kind, *where)
    assert answer.code == 1
    assert len(answer.err.splitlines()) == 1
    assert f"{path}: 1 damaged place, " in answer.err
    text = (tmp_path / "x.csv").read_text() if where else answer.out
    assert len(text.splitlines()) == (20 if kind == "scalars" else 1)


def test_a_kind_that_does_not_exist_is_told_with_those_that_do(tbwriter_command, tmp_path):
    run = put(tmp_path / "run", "good")
    for command in (["export", "--kind", "image"], ["thin", "-o", tmp_path / "out", "--drop-kind", "image"]):
        answer = tbwriter_command(command[0], run, *command[1:])
        assert answer.code == 2
        assert "images" in answer.err
    assert not (tmp_path / "out").exists()


def test_a_kind_of_another_plugin_is_taken_where_the_files_hold_it(tbwriter_command, tmp_path):
    from damaged import NAME, floats, metadata, value, version

    (tmp_path / "run").mkdir()
    odd = value(1, "odd", floats(1.0) + metadata("of_somebody", 1))
    (tmp_path / "run" / NAME.format(second=1, pid=1)).write_bytes(version() + odd)
    answer = tbwriter_command("export", tmp_path / "run", "--kind", "of_somebody")
    assert (answer.code, len(answer.out.splitlines())) == (0, 2)
