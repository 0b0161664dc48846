"""Files beside the event files: `sinks.put_file`."""

import os

import fsspec
import pytest

from tbwriter import sinks


def test_a_side_file_is_whole_and_replaces_the_one_before(tmp_path):
    sinks.put_file(str(tmp_path / "run"), "00001/default/tensors.tsv", b"1\t2\n")
    sinks.put_file(str(tmp_path / "run"), "00001/default/tensors.tsv", b"3\t4\n")
    assert (tmp_path / "run/00001/default/tensors.tsv").read_bytes() == b"3\t4\n"
    assert os.listdir(tmp_path / "run/00001/default") == ["tensors.tsv"]


def test_a_side_file_that_cannot_be_stored_raises_and_leaves_no_part(tmp_path):
    (tmp_path / "config.pbtxt").mkdir()
    with pytest.raises(OSError, match=r"config\.pbtxt"):
        sinks.put_file(str(tmp_path), "config.pbtxt", b"x")
    assert os.listdir(tmp_path) == ["config.pbtxt"]


def test_a_side_file_in_memory():
    sinks.put_file("memory://side", "a/b.txt", b"x")
    memory = fsspec.filesystem("memory")
    assert memory.cat_file("/side/a/b.txt") == b"x"
    memory.rm("/side", recursive=True)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../x", "/x", "a//x", "a\\x", "a\0"])
def test_a_name_that_leads_out_of_the_directory_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"^name must be a path below the directory, got "):
        sinks.put_file(str(tmp_path / "run"), name, b"x")
    assert not (tmp_path / "run").exists()
