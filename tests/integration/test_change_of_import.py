"""The same training through torch's writer, tensorboardX's and ours: both readers show the same of all three.

The scripts are what the tutorials of torch and the usual single-file trainers do with a SummaryWriter. What is meant to
differ (docs/migrating.md) is asked for in the form that does not.
"""

import importlib
import io
import re

import numpy as np
import pytest
from needs import need
from PIL import Image
from tensorboard_http import LOAD_FAST, TensorBoard

from tbwriter import SummaryWriter, read_events

pytestmark = pytest.mark.readers

PLUGIN = "/data/plugin"
WRITERS = {"torch": "torch.utils.tensorboard", "tensorboardX": "tensorboardX", "ours": "tbwriter"}
PEERS = ("torch", "tensorboardX")


def regression(torch, writer_of, directory):
    """A line is fitted, as in the recipe "How to use TensorBoard with PyTorch"."""
    torch.manual_seed(0)
    x = torch.arange(-5, 5, 0.1).view(-1, 1)
    y = -5 * x + 0.1 * torch.randn(x.size())
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = writer_of(directory)
    for epoch in range(10):
        loss = torch.nn.functional.mse_loss(model(x), y)
        writer.add_scalar("Loss/train", loss, epoch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for i in range(3):
        writer.add_scalars("run_14h", {"xsinx": i * np.sin(i / 5), "xcosx": i * np.cos(i / 5)}, i)
    writer.flush()
    writer.close()


def classifier(torch, writer_of, directory):
    """A classifier of pictures, as in "Visualizing Models, Data, and Training with TensorBoard"."""
    from matplotlib import pyplot

    torch.manual_seed(1)
    images, labels = torch.rand(32, 1, 28, 28), torch.randint(0, 10, (32,))
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(864, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    writer = writer_of(directory)
    writer.add_image("four_images", images[:4].permute(1, 2, 0, 3).reshape(1, 28, 112))
    writer.add_graph(model, images)
    writer.add_embedding(images.view(-1, 784), metadata=labels.tolist(), label_img=images)
    running_loss = 0.0
    for step in range(12):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if step % 4 == 3:
            writer.add_scalar("training loss", running_loss / 4, step)
            figure = pyplot.figure(figsize=(2, 2), dpi=50)
            pyplot.plot(model(images)[0].detach())
            writer.add_figure("predictions vs. actuals", figure, global_step=step)
            running_loss = 0.0
    probabilities = torch.softmax(model(images), dim=1)
    for digit in range(3):
        writer.add_pr_curve(str(digit), labels == digit, probabilities[:, digit], global_step=0)
    writer.close()


def agent(torch, writer_of, directory):
    """Reinforcement learning in one file: text of all parameters, many charts of 0-d values, histograms of layers."""
    torch.manual_seed(2)
    parameters = {"learning_rate": 2.5e-4, "num_steps": 128, "anneal_lr": True, "env_id": "CartPole-v1"}
    policy = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    writer = writer_of(directory)
    rows = "\n".join(f"|{key}|{value}|" for key, value in parameters.items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}")
    for global_step in range(0, 640, 128):
        returns = torch.randn(16, dtype=torch.float64)
        writer.add_scalar("charts/episodic_return", returns.mean(), global_step)
        writer.add_scalar("charts/learning_rate", 2.5e-4 * (1 - global_step / 640), global_step)
        writer.add_scalar("losses/explained_variance", np.float64("nan"), global_step)
        writer.add_scalar("losses/clipfrac", np.mean([0.0, 0.25]), global_step)
        for name, parameter in policy.named_parameters():
            writer.add_histogram(f"policy/{name}", parameter, global_step)
    writer.close()


SCRIPTS = {script.__name__: script for script in (regression, classifier, agent)}


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """Everything written: a directory for each script, and in it one for each writer."""
    need("torch", "tensorboardX", "matplotlib", "tensorboard", "tensorboard_data_server")
    import torch

    logdir = tmp_path_factory.mktemp("change-of-import")
    for name, script in SCRIPTS.items():
        for writer, module in WRITERS.items():
            made = importlib.import_module(module).SummaryWriter
            script(torch, lambda directory, made=made: made(str(directory)), logdir / name / writer)
    return logdir


@pytest.fixture(scope="module", params=list(LOAD_FAST))
def board(request, logdir):
    board = TensorBoard(request.param, logdir)
    try:
        # The last that each script writes.
        for writer in WRITERS:
            board.shows(lambda writer=writer: len(board.scalars(f"regression/{writer}", "Loss/train")), 10)
            board.shows(lambda writer=writer: "2" in tags(board, "pr_curves", f"classifier/{writer}"), True)
            last = "policy/2.bias"
            board.shows(lambda writer=writer, last=last: len(board.histograms(f"agent/{writer}", last)), 5)
        yield board
    finally:
        board.stop()


def tags(board, plugin, run):
    return sorted(board.get(f"{PLUGIN}/{plugin}/tags").get(run, ()))


def tag_of(peer, tag):
    """Return how a writer stores a tag."""
    return re.sub(r"[^-/\w.]", "_", tag) if peer == "tensorboardX" else tag


def with_sub_runs(board, run):
    """Return the curves of a run and of the runs below it: {run below: {tag: points}}."""
    return {
        name.removeprefix(run): board.curves(name) for name in board.runs() if name == run or name.startswith(run + "/")
    }


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_curves_show(board, script, peer):
    ours, theirs = with_sub_runs(board, f"{script}/ours"), with_sub_runs(board, f"{script}/{peer}")
    assert any(ours.values())
    if peer == "tensorboardX":
        # It gives each key of add_scalars a directory of its own below one for the tag.
        theirs = {name.replace("run_14h/", "run_14h_"): curves for name, curves in theirs.items()}
    ours = {name: {tag_of(peer, tag): points for tag, points in curves.items()} for name, curves in ours.items()}
    assert ours == theirs


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_tags_show_in_every_dashboard(board, script, peer):
    for plugin in ("histograms", "distributions", "images", "text", "pr_curves"):
        ours = [tag_of(peer, tag) for tag in tags(board, plugin, f"{script}/ours")]
        assert ours == tags(board, plugin, f"{script}/{peer}"), plugin


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_numbers_are_in_the_histograms(board, peer):
    for tag in tags(board, "histograms", "agent/ours"):
        ours, theirs = (board.histograms(f"agent/{writer}", tag) for writer in ("ours", peer))
        assert [(step, sum(row[2] for row in rows)) for step, rows in ours] == [
            (step, sum(row[2] for row in rows)) for step, rows in theirs
        ]
        query = {"path": f"{PLUGIN}/distributions/distributions", "tag": tag}
        ours, theirs = (board.get(**query, run=f"agent/{writer}") for writer in ("ours", peer))
        for (_, _, points), (_, _, other) in zip(ours, theirs, strict=True):
            width = points[-1][1] - points[0][1]
            assert abs(points[4][1] - other[4][1]) <= 0.1 * width  # the medians, each within its buckets


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_pictures_show(board, peer):
    for tag in tags(board, "images", "classifier/ours"):
        ours, theirs = board.images("classifier/ours", tag), board.images(f"classifier/{peer}", tag_of(peer, tag))
        assert ours
        assert [step for step, _ in ours] == [step for step, _ in theirs]
        for (_, one), (_, other) in zip(ours, theirs, strict=True):
            # The others cut 0.999 * 255 off to 254; ours is rounded.
            assert np.abs(pixels(one) - pixels(other)).max() <= 1, tag


def pixels(data):
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_pr_curves_show(board, peer):
    assert tags(board, "pr_curves", "classifier/ours") == ["0", "1", "2"]
    for tag in ("0", "1", "2"):
        (ours,), (theirs,) = (
            board.get(f"{PLUGIN}/pr_curves/pr_curves", run=f"classifier/{writer}", tag=tag)[f"classifier/{writer}"]
            for writer in ("ours", peer)
        )
        for counts in ("true_positives", "false_positives", "true_negatives", "false_negatives", "thresholds"):
            assert ours[counts] == theirs[counts], (tag, counts)
        assert ours["precision"] == pytest.approx(theirs["precision"], abs=1e-6)
        assert ours["recall"] == pytest.approx(theirs["recall"], abs=1e-6)


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_text_shows(board, peer):
    ((step, ours),), ((other_step, theirs),) = (
        board.texts(f"agent/{writer}", "hyperparameters/text_summary") for writer in ("ours", peer)
    )
    assert step == other_step
    assert ours in theirs  # which puts it into a table of one cell


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_graph_shows(board, peer):
    def nodes(writer):
        body = board.get_bytes(f"{PLUGIN}/graphs/graph", run=f"classifier/{writer}", conceptual="false")[1].decode()
        return sorted(line for line in body.splitlines() if line.startswith("  op: "))

    assert len(nodes("ours")) > 5
    assert nodes("ours") == nodes(peer)


@pytest.mark.parametrize("peer", PEERS)
def test_the_same_points_show_in_the_projector(board, peer):
    def asked(writer, what, **more):
        run = f"classifier/{writer}"
        (embedding,) = board.get(f"{PLUGIN}/projector/info", run=run)["embeddings"]
        query = {"run": run, "name": embedding["tensorName"], **more}
        return embedding["tensorName"], board.get_bytes(f"{PLUGIN}/projector/{what}", **query)

    assert asked("ours", "tensor", num_rows=100) == asked(peer, "tensor", num_rows=100)
    assert asked("ours", "metadata", num_rows=100) == asked(peer, "metadata", num_rows=100)
    ours, theirs = (pixels(asked(writer, "sprite_image")[1][1]) for writer in ("ours", peer))
    assert np.abs(ours - theirs).max() <= 1


# ---- what the suites of torch and tensorboardX ask of their writers


def test_what_torch_cannot_trace_raises_at_the_call(tmp_path):
    need("torch", "tensorboard")
    import torch

    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 5)

        def forward(self, x):
            return {"out": self.layer(x)}

    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
            writer.add_graph(Named(), torch.zeros(1, 3))
        writer.add_graph(Named(), torch.zeros(1, 3), use_strict_trace=False)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            writer.add_graph(torch.nn.Linear(3, 5), torch.zeros(1, 9))
    (graph,) = [event.graph_def for event in read_events(tmp_path) if event.graph_def]
    assert b"Linear[layer]" in graph


def test_labels_of_points_may_be_tensors_and_pairs_of_them(tmp_path):
    need("torch")
    import torch

    points, labels = torch.tensor([[1.0, 2.0, 3.0], [5.0, 4.0, 1.0], [3.0, 7.0, 7.0]]), torch.tensor([33.0, 44.0, 55.0])
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(points, metadata=labels, label_img=torch.zeros(3, 3, 5, 5), global_step=1)
        pairs = list(zip(labels, ["test", "test", "train"], strict=True))
        writer.add_embedding(points, metadata=pairs, metadata_header=["digit", "dataset"], global_step=2)
    assert (tmp_path / "00001/default/metadata.tsv").read_text() == "33.0\n44.0\n55.0\n"
    rows = "digit\tdataset\n33.0\ttest\n44.0\ttest\n55.0\ttrain\n"
    assert (tmp_path / "00002/default/metadata.tsv").read_text() == rows


def test_a_path_of_another_system_is_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter("C:\\Downloads\\run") as writer:
        writer.add_scalar("test", 1)
    assert [event.values[0].data for event in read_events("C:\\Downloads\\run") if event.values] == [1.0]
