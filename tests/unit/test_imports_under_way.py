"""A thread that imports a module for the first time leaves it half made in sys.modules for a while."""

import sys
import types

import numpy as np
import pytest

from tbwriter import SummaryWriter
from tbwriter._summary._pixels import arrange

figure = pytest.importorskip("matplotlib.figure")

# In the first the writer's own thread and the training meet: NumPy imports its masked arrays late.
MODULES = ["numpy.ma", "PIL.Image", "matplotlib.pyplot", "torch", "multiprocessing.process"]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_is_only_begun_is_none_to_ask(tmp_path, monkeypatch, module):
    # Pillow draws pictures when they are stored, which is when the module is whole again.
    with SummaryWriter(tmp_path, flush_secs=3600) as writer, monkeypatch.context() as half_made:
        half_made.setitem(sys.modules, module, types.ModuleType(module))
        writer.add_histogram("h", np.arange(9.0), 1)
        writer.add_text("x", [["a", "b"]], 1)
        writer.add_image("i", np.zeros((1, 4, 4)), 1)
        writer.add_figure("f", figure.Figure(figsize=(1, 1)), 1)
        with pytest.raises(TypeError):
            writer.add_graph(object())
        assert arrange("a", np.zeros((2, 3)), "HW", "NHWC").shape == (1, 2, 3, 1)
        SummaryWriter(tmp_path / "another").close()
    assert (writer.stats().written, writer.stats().dropped) == (4, 0)
