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


def data_parallel_truth():
    """Return each step's loss by rank, and the norm of the mean gradient, in float64."""
    x, y = (np.split(array.astype("f8"), 8) for array in arrays(8))
    weight, bias = np.ones((FEATURES, 1)), 0.0
    losses, norms = ([], []), []
    for step in range(4):
        grads = []
        for rank in range(2):
            error = x[2 * step + rank] @ weight + bias - y[2 * step + rank]
            losses[rank].append((error**2).mean())
            grads.append((2 / BATCH * x[2 * step + rank].T @ error, 2 * error.mean()))
        weight_grad, bias_grad = (sum(parts) / 2 for parts in zip(*grads, strict=True))
        norms.append(np.sqrt((weight_grad**2).sum() + bias_grad**2))
        weight, bias = weight - 0.1 * weight_grad, bias - 0.1 * bias_grad
    return losses, norms


@pytest.mark.slow
@pytest.mark.skipif(MSRUN is None, reason="msrun is not installed")
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_two_ranks_with_allreduce_write_a_directory_each(tmp_path, mode):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        MSRUN, "--worker_num=2", "--local_worker_num=2", f"--master_port={port}", "--join=True",
        f"--log_dir={tmp_path / 'logs'}", str(HERE / "two_ranks.py"), str(tmp_path), mode,
    ]  # fmt: skip
    path = os.pathsep.join([str(HERE), str(HERE.parent), str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
    )
    logs = "".join(log.read_text(errors="replace")[-3000:] for log in sorted((tmp_path / "logs").glob("*.log")))
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{logs}"
    losses, norms = data_parallel_truth()
    for rank in range(2):
        steps, values = curve(tmp_path / "all", "train/grad_norm", rank)
        assert steps == [1, 2, 3, 4]
        np.testing.assert_allclose(values, norms, rtol=1e-5)
        np.testing.assert_allclose(curve(tmp_path / "all", "train/loss", rank)[1], losses[rank], rtol=1e-5)
    assert [path.name for path in (tmp_path / "first").iterdir()] == ["rank_0"]
    assert [path.name for path in (tmp_path / "last").iterdir()] == ["rank_1"]
