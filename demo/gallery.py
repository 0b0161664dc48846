"""Fill every TensorBoard dashboard from one small training: what `docs/gallery.md` shows.

python demo/gallery.py [--logdir DIR]: a network of scikit-learn learns to read 1797 handwritten digits of 8 x 8 pixels,
which scikit-learn brings along; each function below fills one dashboard with what the training gave.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import confusion_matrix
from sklearn.neural_network import MLPClassifier
from tensorboard.compat.proto.graph_pb2 import GraphDef

from tbwriter import SummaryWriter

EPOCHS, VALIDATION, SEED = 20, 360, 1
CLASSES = np.arange(10)
BEGAN = 1_700_000_000.0  # wall time of epoch 0; an epoch takes 10 s
SAMPLE_RATE = 22_050
POINTS = {"material": {"cls": "PointsMaterial", "size": 0.1}}  # three.js, for the cloud of points
TRIALS = (
    {"rate": 0.001, "hidden": 16, "activation": "relu", "shuffle": True},
    {"rate": 0.001, "hidden": 32, "activation": "tanh", "shuffle": False},
    {"rate": 0.01, "hidden": 16, "activation": "tanh", "shuffle": True},
    {"rate": 0.01, "hidden": 32, "activation": "relu", "shuffle": False},
)


@dataclass(frozen=True)
class Training:
    """What a training gave, an element per epoch.

    Attributes:
        loss: of the training images.
        accuracy: of the training images.
        val_accuracy: of the validation images.
        weights: of the hidden layer, float64 of shape (epochs, 64, hidden units).
        probabilities: of the validation images and classes, float64 of shape (epochs, images, 10).
        labels: of the validation images, of shape (images,).
        images: the validation images, uint8 of shape (images, 8, 8).
        activations: of the hidden layer at the end, float64 of shape (images, hidden units).
    """

    loss: np.ndarray
    accuracy: np.ndarray
    val_accuracy: np.ndarray
    weights: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray
    images: np.ndarray
    activations: np.ndarray


def train(
    *, rate: float = 0.005, hidden: int = 32, activation: str = "relu", shuffle: bool = True, epochs: int = EPOCHS
) -> Training:
    """Train a network with one hidden layer."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.images))
    images = digits.images[order]
    pixels, labels = images.reshape(-1, 64) / 16, digits.target[order]
    new, known = slice(VALIDATION), slice(VALIDATION, None)
    network = MLPClassifier(
        (hidden,), activation=activation, learning_rate_init=rate, shuffle=shuffle, random_state=SEED
    )
    found: dict[str, list[Any]] = {"loss": [], "accuracy": [], "val_accuracy": [], "weights": [], "probabilities": []}
    for _ in range(epochs):
        network.partial_fit(pixels[known], labels[known], classes=CLASSES)
        found["loss"].append(network.loss_)
        found["accuracy"].append(network.score(pixels[known], labels[known]))
        found["val_accuracy"].append(network.score(pixels[new], labels[new]))
        found["weights"].append(network.coefs_[0].copy())
        found["probabilities"].append(network.predict_proba(pixels[new]))
    return Training(
        **{name: np.array(values) for name, values in found.items()},
        labels=labels[new],
        images=np.round(images[new] * 255 / 16).astype(np.uint8),
        activations=np.maximum(pixels[new] @ network.coefs_[0] + network.intercepts_[0], 0),
    )


def at(epoch: int) -> dict[str, Any]:
    """Give step and wall time of an epoch."""
    return {"global_step": epoch, "walltime": BEGAN + 10.0 * epoch}


def accuracy_bounds(training: Training) -> tuple[np.ndarray, np.ndarray]:
    """Give the bounds that hold the true accuracy in 95 of 100 cases, from as many images as there are."""
    margin = 1.96 * np.sqrt(training.val_accuracy * (1 - training.val_accuracy) / len(training.labels))
    return training.val_accuracy - margin, np.minimum(training.val_accuracy + margin, 1.0)


def scalars(writer: SummaryWriter, training: Training) -> None:
    """Scalars and Time Series: one curve a tag, and two curves in one chart."""
    low, high = accuracy_bounds(training)
    for epoch in range(len(training.loss)):
        writer.add_scalar("train/loss", training.loss[epoch], **at(epoch))
        writer.add_scalar("val/accuracy", training.val_accuracy[epoch], **at(epoch))
        writer.add_scalar("val/accuracy_low", low[epoch], **at(epoch))
        writer.add_scalar("val/accuracy_high", high[epoch], **at(epoch))
        both = {"train": training.accuracy[epoch], "validation": training.val_accuracy[epoch]}
        writer.add_scalars("accuracy", both, **at(epoch))


def histograms(writer: SummaryWriter, training: Training) -> None:
    """Histograms and Distributions: all weights of a layer, each epoch."""
    for epoch, weights in enumerate(training.weights):
        writer.add_histogram("hidden/weights", weights, **at(epoch))


def enlarged(pictures: np.ndarray, factor: int = 8) -> np.ndarray:
    """Repeat each pixel of (..., height, width)."""
    return np.repeat(np.repeat(pictures, factor, -2), factor, -1)


def weight_pictures(weights: np.ndarray) -> np.ndarray:
    """Draw the weights (64, units) of the first 16 units as one uint8 picture of 4 x 4 fields of 8 x 8."""
    fields = weights[:, :16].T.reshape(4, 4, 8, 8).transpose(0, 2, 1, 3).reshape(32, 32)
    return np.round(np.clip(fields + 0.5, 0, 1) * 255).astype(np.uint8)


def confusion(training: Training, epoch: int) -> Figure:
    """Draw which digit is taken for which."""
    table = confusion_matrix(training.labels, training.probabilities[epoch].argmax(1), labels=CLASSES)
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(title=f"epoch {epoch}", xlabel="read as", ylabel="is", xticks=CLASSES, yticks=CLASSES)
    figure.colorbar(axes.imshow(table, cmap="Blues"))
    for (row, column), count in np.ndenumerate(table):
        if count:
            color = "white" if count > table.max() / 2 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color, fontsize=8)
    return figure


def images(writer: SummaryWriter, training: Training) -> None:
    """Images: a batch, one picture, one with boxes, a figure, and a video."""
    writer.add_images("images/samples", enlarged(training.images[:8, None]), **at(0))
    for epoch in (0, len(training.weights) - 1):
        picture = enlarged(weight_pictures(training.weights[epoch]), 6)
        writer.add_image("images/layer", picture, dataformats="HW", **at(epoch))
        writer.add_figure("images/confusion", confusion(training, epoch), **at(epoch))
    row = np.concatenate([*enlarged(training.images[:8])], axis=1)
    boxes = np.array([[64.0 * number, 0.0, 64.0 * number + 63, 63.0] for number in (1, 4)])
    writer.add_image_with_boxes(
        "images/boxes",
        np.stack([row] * 3),
        boxes,
        labels=[f"a {training.labels[number]}" for number in (1, 4)],
        **at(0),
    )
    frames = enlarged(np.stack([weight_pictures(weights) for weights in training.weights]), 6)
    writer.add_video("images/learning", frames[None, :, None], fps=4, **at(0))


def tone(curve: np.ndarray, secs: float = 2.0) -> np.ndarray:
    """Make a curve audible: a sine whose pitch follows it, float32 of shape (secs * SAMPLE_RATE,)."""
    pitch = np.interp(np.linspace(0, 1, int(secs * SAMPLE_RATE)), np.linspace(0, 1, len(curve)), 220 + 440 * curve)
    return (0.5 * np.sin(2 * np.pi * np.cumsum(pitch) / SAMPLE_RATE)).astype(np.float32)


def audio(writer: SummaryWriter, training: Training) -> None:
    """Audio: the falling loss as a tone, and training and validation on two channels."""
    writer.add_audio("tones/loss", tone(training.loss / training.loss.max()), sample_rate=SAMPLE_RATE, **at(0))
    channels = np.stack([tone(training.accuracy), tone(training.val_accuracy)], axis=1)
    writer.add_audio("tones/accuracy", channels, sample_rate=SAMPLE_RATE, **at(0))


def report(training: Training) -> str:
    """Describe the result in Markdown."""
    right = training.probabilities[-1].argmax(1) == training.labels
    rows = "\n".join(
        f"| {digit} | {np.sum(training.labels == digit)} | {right[training.labels == digit].mean():.1%} |"
        for digit in CLASSES
    )
    return f"""# Handwritten digits

**{right.mean():.1%}** of {len(right)} digits that the network had not seen are read right.

| digit | images | read right |
|---|---|---|
{rows}
"""


def text(writer: SummaryWriter, training: Training) -> None:
    """Text: Markdown, and a table from a list of rows."""
    writer.add_text("report", report(training), **at(len(training.loss) - 1))
    writer.add_text("split", [["part", "images"], ["training", "1437"], ["validation", "360"]], **at(0))


def pr_curves(writer: SummaryWriter, training: Training) -> None:
    """PR Curves: how precise the network is at each recall, for two of the digits."""
    for epoch in (0, 1, 2, len(training.loss) - 1):
        for digit in (1, 8):
            is_digit, probability = training.labels == digit, training.probabilities[epoch][:, digit]
            writer.add_pr_curve(f"pr/digit {digit}", is_digit, probability, num_thresholds=101, **at(epoch))


def digit_surface(training: Training, digit: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make a landscape of the mean picture of a digit: vertices, colours and faces, each of shape (1, n, 3)."""
    height = training.images[training.labels == digit].mean(0) / 255
    row, column = np.mgrid[:8, :8]
    vertices = np.stack([column - 3.5, 3.5 - row, 3 * height], -1).reshape(1, 64, 3).astype(np.float32)
    colors = (mpl.colormaps["viridis"](height.ravel())[:, :3] * 255).astype(np.uint8)[None]
    corner = (8 * row + column)[:7, :7].ravel()
    lower = np.stack([corner, corner + 8, corner + 1], 1)
    upper = np.stack([corner + 1, corner + 8, corner + 9], 1)
    return vertices, colors, np.concatenate([lower, upper])[None].astype(np.int32)


def point_cloud(training: Training) -> tuple[np.ndarray, np.ndarray]:
    """Make a cloud of all validation images, a colour a digit: vertices and colours, each of shape (1, images, 3)."""
    flat = training.images.reshape(len(training.images), -1) / 255.0
    places = PCA(3, random_state=SEED).fit_transform(flat)
    colors = (mpl.colormaps["tab10"](training.labels)[:, :3] * 255).astype(np.uint8)
    return places[None].astype(np.float32), colors[None]


def meshes(writer: SummaryWriter, training: Training) -> None:
    """Mesh: a surface with faces, and a cloud of points."""
    vertices, colors, faces = digit_surface(training)
    writer.add_mesh("mean 3", vertices, colors=colors, faces=faces, **at(0))
    vertices, colors = point_cloud(training)
    writer.add_mesh("digits in space", vertices, colors=colors, config_dict=POINTS, **at(0))


def custom_scalars(writer: SummaryWriter, training: Training) -> None:
    """Custom Scalars: several tags in one chart, and a curve between its bounds."""
    del training
    writer.add_custom_scalars(
        {
            "training": {"loss and accuracy": ["Multiline", ["train/loss", "val/accuracy$"]]},
            "validation": {
                "accuracy, 95 % bounds": ["Margin", ["val/accuracy", "val/accuracy_low", "val/accuracy_high"]]
            },
        }
    )


def network_graph(training: Training) -> GraphDef:
    """Describe the network as TensorFlow's nodes, the hidden layer's weights included."""
    graph = GraphDef()

    def node(name: str, op: str, *inputs: str) -> Any:
        return graph.node.add(name=name, op=op, input=inputs)

    node("images", "Placeholder")
    weights = node("hidden/weights", "Const").attr["value"].tensor
    weights.dtype = 1  # DT_FLOAT
    weights.tensor_shape.dim.add(size=64)
    weights.tensor_shape.dim.add(size=training.weights.shape[2])
    weights.tensor_content = training.weights[-1].astype("<f4").tobytes()
    node("hidden/matmul", "MatMul", "images", "hidden/weights")
    node("hidden/bias", "Const")
    node("hidden/add", "BiasAdd", "hidden/matmul", "hidden/bias")
    node("hidden/relu", "Relu", "hidden/add")
    node("output/weights", "Const")
    node("output/matmul", "MatMul", "hidden/relu", "output/weights")
    node("output/bias", "Const")
    node("output/add", "BiasAdd", "output/matmul", "output/bias")
    node("output/softmax", "Softmax", "output/add")
    return graph


def graph(writer: SummaryWriter, training: Training) -> None:
    """Graphs: a serialised GraphDef; a torch module with an example of its input would do as well."""
    writer.add_graph(network_graph(training).SerializeToString())


def projector(writer: SummaryWriter, training: Training) -> None:
    """Projector: what the hidden layer makes of each image, with its label and picture."""
    read_as = training.probabilities[-1].argmax(1)
    writer.add_embedding(
        training.activations.astype(np.float32),
        metadata=[[str(digit), str(guess)] for digit, guess in zip(training.labels, read_as, strict=True)],
        metadata_header=["digit", "read as"],
        label_img=training.images[:, None] / 255.0,
        global_step=len(training.loss) - 1,
        tag="hidden",
    )


def hparams(logdir: Path, **options: Any) -> list[float]:
    """HParams: a run for each trial; its hyper-parameters and its result stand in the run itself."""
    found = []
    for number, trial in enumerate(TRIALS, 1):
        accuracy = float(train(**trial, epochs=5).val_accuracy[-1])
        found.append(accuracy)
        with SummaryWriter(logdir / "trials" / str(number), **options) as writer:
            writer.add_hparams(trial, {"trial/accuracy": accuracy})
    return found


DASHBOARDS = (
    scalars, histograms, images, audio, text, pr_curves, meshes, custom_scalars, graph, projector,
)  # fmt: skip


def write(logdir: Path, **options: Any) -> tuple[Training, list[float]]:
    """Train, and write the run `digits` and the trials below `logdir`.

    Args:
        logdir: a directory.
        options: of SummaryWriter.

    Returns:
        The training, and the accuracy of each trial.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few epochs do not converge
        training = train()
        with SummaryWriter(logdir / "digits", **options) as writer:
            for fill in DASHBOARDS:
                fill(writer, training)
        return training, hparams(logdir, **options)


def main() -> None:
    """Write and say what to do next."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logdir", type=Path, default=Path("runs/gallery"), help="default: %(default)s")
    logdir = parser.parse_args().logdir
    write(logdir)
    print(f"tensorboard --logdir {logdir}")  # noqa: T201


if __name__ == "__main__":
    main()
