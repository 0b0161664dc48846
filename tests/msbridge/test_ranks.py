"""Which process writes where."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ms = pytest.importorskip("mindspore")

from small import BATCH, FEATURES, arrays, curve, model, train  # noqa: E402

from msbridge import TensorBoardCallback  # noqa: E402
from msbridge._run import Rank, find_rank, writes  # noqa: E402

pytestmark = pytest.mark.mindspore

HERE = Path(__file__).parent
MSRUN = shutil.which("msrun", path=str(Path(sys.executable).parent))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("RANK_ID", "RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)


def test_a_single_process_is_rank_0(graph, tmp_path):
    assert find_rank() == Rank(0, 1)
    train(model(), 1, TensorBoardCallback(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["rank_0"]


def test_the_launcher_tells_the_rank_before_communication_is_initialised(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK_ID", "3")
    monkeypatch.setenv("RANK_SIZE", "8")
    assert find_rank() == Rank(3, 8)
    train(model(), 1, TensorBoardCallback(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["rank_3"]


@pytest.mark.parametrize(
    ("ranks", "writing"),
    [
        ("all", [0, 1, 2, 3]),
        ("first", [0]),
        ("last", [3]),
        ([1, 2], [1, 2]),
        ({0, 9}, [0]),
        (lambda rank: rank % 2 == 0, [0, 2]),
    ],
)
def test_ranks_chooses_who_writes(ranks, writing):
    assert [rank for rank in range(4) if writes(Rank(rank, 4), ranks)] == writing


@pytest.mark.parametrize("ranks", [[3], lambda rank: False])
def test_ranks_that_leave_out_every_rank_are_told_once(graph, tmp_path, caplog, ranks):
    callback = TensorBoardCallback(tmp_path, ranks=ranks)
    for _ in range(2):
        train(model(), 1, callback)
    assert list(tmp_path.iterdir()) == []
    told = [record.getMessage() for record in caplog.records if record.name == "msbridge.callback"]
    assert told == [f"nothing is written: ranks={ranks!r} leaves out all 1 ranks"]


def data_parallel_truth(ranks=2, steps=4):
    """Return each step's loss by rank, and the norm of the mean gradient, in float64."""
    x, y = (np.split(array.astype("f8"), ranks * steps) for array in arrays(ranks * steps))
    weight, bias = np.ones((FEATURES, 1)), 0.0
    losses, norms = [[] for _ in range(ranks)], []
    for step in range(steps):
        grads = []
        for rank in range(ranks):
            batch = ranks * step + rank
            error = x[batch] @ weight + bias - y[batch]
            losses[rank].append((error**2).mean())
            grads.append((2 / BATCH * x[batch].T @ error, 2 * error.mean()))
        weight_grad, bias_grad = (sum(parts) / ranks for parts in zip(*grads, strict=True))
        norms.append(np.sqrt((weight_grad**2).sum() + bias_grad**2))
        weight, bias = weight - 0.1 * weight_grad, bias - 0.1 * bias_grad
    return losses, norms


def launch(program, workers, directory, mode):
    """Run one of the programs beside this file on several processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        MSRUN, f"--worker_num={workers}", f"--local_worker_num={workers}", f"--master_port={port}", "--join=True",
        f"--log_dir={directory / 'logs'}", str(HERE / program), str(directory), mode,
    ]  # fmt: skip
    path = os.pathsep.join([str(HERE), str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, env=environment, cwd=directory, capture_output=True, text=True, timeout=110, check=False
    )
    logs = "".join(log.read_text(errors="replace")[-3000:] for log in sorted((directory / "logs").glob("*.log")))
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{logs}"


@pytest.mark.slow
@pytest.mark.skipif(MSRUN is None, reason="msrun is not installed")
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_two_ranks_with_allreduce_write_a_directory_each(tmp_path, mode):
    launch("two_ranks.py", 2, tmp_path, mode)
    losses, norms = data_parallel_truth()
    for rank in range(2):
        steps, values = curve(tmp_path / "all", "train/grad_norm", rank)
        assert steps == [1, 2, 3, 4]
        np.testing.assert_allclose(values, norms, rtol=1e-5)
        np.testing.assert_allclose(curve(tmp_path / "all", "train/loss", rank)[1], losses[rank], rtol=1e-5)
    assert [path.name for path in (tmp_path / "first").iterdir()] == ["rank_0"]
    assert [path.name for path in (tmp_path / "last").iterdir()] == ["rank_1"]


@pytest.mark.slow
@pytest.mark.skipif(MSRUN is None, reason="msrun is not installed")
@pytest.mark.parametrize(("workers", "mode"), [(2, "pynative"), (4, "graph")])
def test_curves_of_all_ranks_become_one_and_a_rank_that_fails_stops_nobody(tmp_path, workers, mode):
    launch("ranks_reduce.py", workers, tmp_path, mode)
    # Two trainings of five steps, three of them collected; in the second one rank 0 could not write.
    assert [path.read_text() for path in tmp_path.glob("done_*")] == ["6"] * workers
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["rank_0"]
    losses = np.array(data_parallel_truth(workers, 5)[0])[:, [0, 1, 3]]
    for reduction in ("mean", "min", "max"):
        steps, found = curve(tmp_path / "run", f"train/loss/{reduction}")
        assert steps == [1, 2, 4]
        np.testing.assert_allclose(found, getattr(losses, reduction)(0), rtol=1e-5)
    assert curve(tmp_path / "run", "train/loss/argmax_rank")[1].tolist() == losses.argmax(0).tolist()
    # Of step 1 there is no step time. The last rank has no value of its own after step 1.
    assert curve(tmp_path / "run", "train/step_time/argmax_rank")[0] == [2, 4]
    assert curve(tmp_path / "run", "own/max")[1].tolist() == [
        10 * (workers - 1) + 1, 10 * (workers - 2) + 2, 10 * (workers - 2) + 4
    ]  # fmt: skip
    assert curve(tmp_path / "run", "train/loss")[0] == [1, 2, 3, 4, 5]


def test_a_single_process_is_reduced_to_itself(graph, tmp_path):
    train(model(), 3, TensorBoardCallback(tmp_path, 1, reduce=["mean", "argmax"]))
    assert curve(tmp_path, "train/loss/mean")[0] == [1, 2, 3]
    np.testing.assert_allclose(curve(tmp_path, "train/loss/mean")[1], curve(tmp_path, "train/loss")[1], rtol=1e-6)
    assert curve(tmp_path, "train/loss/argmax_rank")[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("reduce", ["mean", ["median"], 3])
def test_reductions_that_are_none_are_refused(tmp_path, reduce):
    with pytest.raises((TypeError, ValueError), match="reduce must be"):
        TensorBoardCallback(tmp_path, reduce=reduce)
