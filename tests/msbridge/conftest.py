"""The two execution modes, one process: MindSpore's mode is global, so every test sets its own."""

import contextlib
import os

import pytest

os.environ.setdefault("GLOG_v", "3")  # MindSpore's errors only


@pytest.fixture(params=["graph", "pynative"])
def mode(request):
    """MindSpore in one mode, then in the other."""
    return enter(request.param)


@pytest.fixture
def graph():
    """MindSpore in graph mode, where both modes take the same way through the bridge."""
    return enter("graph")


def enter(name):
    """Set the mode of this process."""
    import mindspore as ms

    # MindSpore 2.10 with NumPy 2: the first touch of NumPy's C interface in a process fails, and only the first.
    with contextlib.suppress(SystemError):
        _ = ms.Tensor(1.0) * ms.Tensor(1.0)
    ms.set_context(mode=ms.GRAPH_MODE if name == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_seed(1)
    return name


@pytest.fixture
def said(caplog):
    """What the bridge logged from WARNING up, as it is when asked."""
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("msbridge") and r.levelno >= 30]


@pytest.fixture
def transfers(monkeypatch):
    """Return a function that wraps a callback in the list [before, callback, after], and a {step: copies} that fills.

    What is counted is every host read that passes MindSpore's Tensor between the two, so what MindSpore itself reads
    when it compiles, or a later callback reads, is not.
    """
    import mindspore as ms

    real, reads, copies = ms.Tensor.asnumpy, [0], {}

    def asnumpy(self):
        reads[0] += 1
        return real(self)

    monkeypatch.setattr(ms.Tensor, "asnumpy", asnumpy)

    class Before(ms.train.Callback):
        def on_train_step_begin(self, run_context):
            reads[0] = 0

        def on_train_step_end(self, run_context):
            reads[0] = 0

    class After(ms.train.Callback):
        def on_train_step_begin(self, run_context):
            copies[run_context.original_args().cur_step_num] = reads[0]

        def on_train_step_end(self, run_context):
            copies[run_context.original_args().cur_step_num] += reads[0]

    return lambda callback: ([Before(), callback, After()], copies)
