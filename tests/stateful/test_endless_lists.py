"""Lists that hold themselves, where a program has raised Python's limit: following them would end the process."""

import subprocess
import sys

import pytest

PROGRAM = """
import collections, sys
import numpy as np
from PIL import Image
from tbwriter import SummaryWriter
sys.setrecursionlimit(10**6)

class Tensor:
    def asnumpy(self): return np.float32(1)

def endless(first, make=list):
    found = make([first])
    for _ in range(2):
        found.append(found)
    return found

mapping = {"a": 1}
mapping["b"] = mapping
values = [endless(1.0), endless("a"), endless(Tensor()), endless(Tensor(), collections.deque), mapping,
          endless(Image.new("RGB", (2, 2)))]
zeros = np.zeros((3, 4, 4), np.uint8)
with SummaryWriter(sys.argv[1]) as writer:
    methods = [
        lambda value: writer.add_scalar("a", value, 1), lambda value: writer.add_scalar("a", 1.0, value),
        lambda value: writer.add_metrics({"b": value}, 1), lambda value: writer.add_histogram("c", value, 1),
        lambda value: writer.add_text("d", value, 1), lambda value: writer.add_image("e", value, 1),
        lambda value: writer.add_video("f", value, 1), lambda value: writer.add_tensor("g", value, 1),
        lambda value: writer.add_embedding(value), lambda value: writer.add_embedding(zeros[0], metadata=value),
        lambda value: writer.add_custom_scalars(value), lambda value: writer.add_figure("h", value, 1),
        lambda value: writer.add_image_with_boxes("i", zeros, np.zeros((3, 4)), labels=value),
        lambda value: writer.add_mesh("j", np.zeros((1, 3, 3)), config_dict=value),
    ]
    for method in methods:
        for value in values:
            try:
                method(value)
            except (TypeError, ValueError, ImportError):  # without matplotlib
                pass
    for value in values:
        writer.add_hparams({"a": value}, {})
    writer.add_scalar("end", 1.0, 1)
"""


@pytest.mark.parametrize("limit", [10**6, 1000])
def test_a_list_that_holds_itself_ends_no_process(tmp_path, limit):
    pytest.importorskip("PIL.Image")
    program = PROGRAM.replace("10**6", str(limit))
    found = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr[-2000:]) == (0, "")
