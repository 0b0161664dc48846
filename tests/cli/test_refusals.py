"""What the commands that write refuse before they write anything, and what they tell of damage they met."""

import gzip
import os

import pytest
from damaged import GOOD, NAME, put, record, scalar, version

WRITING = {
    "repair": ["repair"],
    "rewind": ["rewind", "--step", "3"],
    "thin": ["thin", "--every", "2"],
}
ANYTHING = b"\x91\x17 any bytes that nobody framed, %d of them" * 200
FOREIGN = {  # what is no event file, and what is said of it
    "gzip": (gzip.compress(version() + b"".join(GOOD)), "gunzip it first"),
    "random": (ANYTHING, "is no event file"),
    "script": (b"import tbwriter\n\nprint('words')\n" * 10, "is no event file"),
    "other-records": (b"".join(record(b"\xff" * 20) for _ in range(3)), "is no event file"),
}
NOTHING = {  # what may have been, or become, an event file
    "empty": b"",
    "torn-in-first-header": version()[:7],
    "torn-in-first-record": version()[:-3],
    "zeros": bytes(4096),
}


def bytes_of(*paths):
    return {path: path.read_bytes() for path in paths}


@pytest.fixture(params=list(WRITING))
def writing(request):
    return WRITING[request.param]


# ---- files that are no event files


@pytest.mark.parametrize("kind", list(FOREIGN))
@pytest.mark.parametrize("to", ["--in-place", "-o"])
def test_what_is_no_event_file_is_left_as_it_is(tbwriter_command, tmp_path, writing, kind, to):
    data, words = FOREIGN[kind]
    path = tmp_path / "words.py"
    path.write_bytes(data)
    answer = tbwriter_command(*writing, path, *([to] if to == "--in-place" else [to, tmp_path / "out"]))
    assert answer.code == 2
    assert words in answer.err
    assert str(path) in answer.err
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == data


@pytest.mark.parametrize("kind", list(NOTHING))
@pytest.mark.parametrize("to", ["--in-place", "-o"])
def test_where_there_is_nothing_to_keep_that_is_said(tbwriter_command, tmp_path, writing, kind, to):
    path = tmp_path / NAME.format(second=1, pid=1)
    path.write_bytes(NOTHING[kind])
    os.utime(path, (0, 0))
    answer = tbwriter_command(*writing, path, *([to] if to == "--in-place" else [to, tmp_path / "out"]), "--json")
    assert answer.code == 1
    assert answer.err.count("nothing to keep") == 1
    (told,) = answer.json["damage"]
    assert (told["path"], answer.json["files"]) == (str(path), [])
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == NOTHING[kind]


def test_beside_good_files_one_that_is_none_is_left_alone(tbwriter_command, tmp_path, writing):
    run = put(tmp_path / "run", "good")
    other = run / (NAME.format(second=9, pid=9) + ".gz")
    other.write_bytes(FOREIGN["gzip"][0])
    answer = tbwriter_command(*writing, run, "-o", tmp_path / "out")
    assert answer.code == 1
    assert f"{other} is compressed" in answer.err
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_good_records_behind_what_looks_compressed_are_kept(tbwriter_command, tmp_path):
    path = tmp_path / NAME.format(second=1, pid=1)
    path.write_bytes(FOREIGN["gzip"][0][:2] + b"".join(GOOD))
    os.utime(path, (0, 0))
    assert tbwriter_command("repair", path, "--in-place").code == 0
    assert path.read_bytes() == b"".join(GOOD)


def test_merging_what_is_no_event_file_makes_none(tbwriter_command, tmp_path):
    path = tmp_path / "words.py"
    path.write_bytes(ANYTHING)
    assert tbwriter_command("merge", path, "-o", tmp_path / "out").code == 2
    assert list(tmp_path.iterdir()) == [path]


# ---- where the new files go


@pytest.mark.parametrize("below", [".", "out", "deep/out"])
def test_new_files_do_not_go_among_those_that_are_read(tbwriter_command, tmp_path, below):
    run = put(tmp_path / "run", "second-session")
    (tmp_path / "link").symlink_to(run)
    before = bytes_of(*run.iterdir())
    for command in (*WRITING.values(), ["merge"]):
        for place in (run, tmp_path / "link"):
            answer = tbwriter_command(*command, place, "-o", run / below)
            assert answer.code == 2
            assert "lies in what is read" in answer.err
    assert bytes_of(*run.iterdir()) == before


def test_a_file_is_not_merged_into_its_own_directory(tbwriter_command, tmp_path):
    (path,) = put(tmp_path / "run", "good").iterdir()
    assert tbwriter_command("merge", path, "-o", path.parent).code == 2
    assert list(path.parent.iterdir()) == [path]


def test_what_is_in_the_way_is_named_before_anything_is_written(tbwriter_command, tmp_path):
    for name in ("a", "b"):
        put(tmp_path / "runs" / name, "torn-tail")
    for number, command in enumerate([*WRITING.values(), ["merge"]]):
        out = tmp_path / str(number)
        assert tbwriter_command(*command, tmp_path / "runs" / "b", "-o", out / "b").code in {0, 1}
        (there,) = (out / "b").iterdir()
        before = bytes_of(there)
        answer = tbwriter_command(*command, tmp_path / "runs", "-o", out)
        assert answer.code == 3
        assert f"{there} exists already" in answer.err
        assert "another directory" in answer.err
        assert ".part" not in answer.err
        assert [path for path in out.rglob("*") if path.is_file()] == [there]
        assert bytes_of(there) == before


def test_a_file_where_the_directory_should_be_is_told(tbwriter_command, tmp_path, writing):
    (tmp_path / "out").write_text("words")
    answer = tbwriter_command(*writing, put(tmp_path / "run", "good"), "-o", tmp_path / "out")
    assert answer.code == 3
    assert f"{tmp_path / 'out'} is a file" in answer.err


# ---- rewind


@pytest.mark.parametrize("to", ["--in-place", "-o"])
def test_a_step_below_all_steps_drops_nothing(tbwriter_command, tmp_path, to):
    run = put(tmp_path / "run", "good")
    before = bytes_of(*run.iterdir())
    answer = tbwriter_command("rewind", run, "--step", -5, *([to] if to == "--in-place" else [to, tmp_path / "out"]))
    assert answer.code == 2
    assert "would leave nothing" in answer.err
    assert bytes_of(*run.iterdir()) == before
    assert not (tmp_path / "out").exists()


def test_a_negative_step_is_one_where_the_files_hold_such(tbwriter_command, tmp_path):
    (tmp_path / "run").mkdir()
    data = version() + b"".join(scalar(step, 1.0) for step in (-10, -5, 0))
    (tmp_path / "run" / NAME.format(second=1, pid=1)).write_bytes(data)
    (file,) = tbwriter_command("rewind", tmp_path / "run", "--step", -5, "-o", tmp_path / "out", "--json").json["files"]
    assert (file["records"], file["values_dropped"]) == (2, 2)


# ---- damage


TELLING = {**WRITING, "merge": ["merge"]}


@pytest.mark.parametrize("case", ["torn-tail", "bad-data", "zero-hole", "no-event"])
@pytest.mark.parametrize("name", ["rewind", "thin", "merge"])
def test_damage_that_is_left_out_is_told_once_for_each_file(tbwriter_command, tmp_path, name, case):
    run = put(tmp_path / "run", case)
    (path,) = run.iterdir()
    answer = tbwriter_command(*TELLING[name], run, "-o", tmp_path / "out", "--json")
    assert answer.code == 1
    assert answer.err.count(str(path)) == 2  # what is wrong, and the command that says more
    assert "tbwriter doctor" in answer.err
    (told,) = answer.json["damage"]
    (scanned,) = tbwriter_command("inspect", run, "--json").json["runs"][0]["files"]
    assert (told["damaged_places"], told["lost_bytes"]) == (scanned["damaged_places"], scanned["lost_bytes"])
    assert told["damaged_places"] or told["no_events"] == 1


def test_of_good_files_nothing_is_said(tbwriter_command, tmp_path):
    run = put(tmp_path / "run", "good")
    for number, command in enumerate(TELLING.values()):
        answer = tbwriter_command(*command, run, "-o", tmp_path / str(number))
        assert (answer.code, answer.err) == (0, "")


def test_a_record_that_is_still_being_written_is_no_damage(tbwriter_command, tmp_path):
    run = put(tmp_path / "run", "torn-tail")
    for path in run.iterdir():
        os.utime(path)
    answer = tbwriter_command("thin", run, "--every", 2, "-o", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
