"""Fifty steps, to see whether the curves one counts on will be there."""

import logging
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mindspore.train.callback import Callback

from msbridge._checks import checked_count, checked_tags
from msbridge.callback import TensorBoardCallback
from msbridge.collectors import Collector
from tbwriter import read_events

EXPECTED = ("train/loss", "train/learning_rate", "train/grad_norm", "train/step_time", "train/samples_per_sec")


@dataclass(frozen=True)
class SmokeReport:
    """What a short training drew.

    Attributes:
        steps: how many were trained.
        points: tag -> number of points, of scalars, histograms, images and whatever else.
        missing: expected tag -> why it is not there.
        suspicious: tag -> what is odd about its values.
        said: what the bridge logged.
    """

    steps: int
    points: dict[str, int]
    missing: dict[str, str]
    suspicious: dict[str, str]
    said: list[str]

    @property
    def ok(self) -> bool:
        """Whether every expected curve is there and has finite values."""
        return not self.missing and not self.suspicious

    def __str__(self) -> str:
        lines = [f"{self.steps} steps"]
        lines += [f"  {tag}: {count} points" for tag, count in sorted(self.points.items()) if tag not in self.missing]
        lines += [f"  {tag}: missing: {why}" for tag, why in self.missing.items()]
        lines += [f"  {tag}: {what}" for tag, what in self.suspicious.items()]
        return "\n".join(lines)


def smoke_check(
    model: Any,
    dataset: Any,
    steps: int = 50,
    *,
    expected: Sequence[str] = EXPECTED,
    collectors: Sequence[Collector] | None = None,
    tokens_per_step: int | None = None,
) -> SmokeReport:
    """Train a few steps and say which expected curves are missing, and why.

    The model is trained by it: make a new one for the training itself. Nothing is kept on the disk.

    Args:
        model: a mindspore.train.Model.
        dataset: as for `Model.train`.
        steps: how many.
        expected: tags that must be there.
        collectors: as TensorBoardCallback's.
        tokens_per_step: as TensorBoardCallback's.

    Raises:
        TypeError, ValueError: an argument is wrong; `steps` is below 2: rates and times need two.
    """
    steps, expected = (
        checked_count("smoke_check: steps", steps, least=2),
        checked_tags("smoke_check: expected", expected),
    )
    count = _Count(steps)
    with tempfile.TemporaryDirectory(prefix="smoke-check-") as directory, _Said() as said:
        curves = TensorBoardCallback(directory, 1, collectors=collectors, tokens_per_step=tokens_per_step)
        epochs = math.ceil(steps / dataset.get_dataset_size())
        model.train(epochs, dataset, callbacks=[curves, count], dataset_sink_mode=False)
        points: Counter[str] = Counter()
        wild: Counter[str] = Counter()
        for event in read_events(f"{directory}/rank_0"):
            points["graph"] += bool(event.graph_def)
            for value in event.values:
                if value.tag.startswith("_hparams_/"):
                    continue
                number = value.scalar()
                points[value.tag] += 1
                wild[value.tag] += number is not None and not math.isfinite(number)
    points = +points  # what is there at least once
    missing = {tag: _reason(tag, points, said.lines) for tag in expected if not _any_of(tag, points)}
    odd = {tag: f"{bad} of {points[tag]} values are not finite" for tag, bad in wild.items() if bad}
    return SmokeReport(count.done, dict(points), missing, odd, said.lines)


def _any_of(tag: str, found: Iterable[str]) -> bool:
    """Tell whether a curve is there; one for each group of parameters counts too."""
    return any(other == tag or other.startswith(f"{tag}/") for other in found)


def _reason(tag: str, drawn: Iterable[str], said: list[str]) -> str:
    family, name = tag.split("/", 1)[0], tag.rsplit("/", 1)[-1]
    if family not in {"train", "val"}:
        name = family  # what is behind it is a parameter's name, or one of several that come together
    words = (name, name.replace("_", " "), "".join(part.capitalize() for part in name.split("_")))
    mentions = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
    for other in sorted(drawn):
        if other.endswith(f"/{tag}"):
            return f"it is called {other}"
    for line in said:
        if mentions.search(line) or "switched off" in line:
            return line
    if family == "val":
        return "this check makes no evaluation"
    if name in ("loss_scale", "overflow"):
        return "the train step does not return it"
    if name == "tokens_per_sec":
        return "tokens_per_step is not given"
    if name == "samples_per_sec":
        return "the batch size cannot be told from the dataset"
    return "no collector draws it"


class _Count(Callback):  # type: ignore[misc]
    """Stop in time."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps
        self.done = 0

    def on_train_step_end(self, run_context: Any) -> None:
        self.done += 1
        if self.done >= self._steps:
            run_context.request_stop()


class _Said(logging.Handler):
    """What the bridge logs meanwhile, from WARNING on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self) -> "_Said":
        logging.getLogger("msbridge").addHandler(self)
        return self

    def __exit__(self, *_exc: object) -> None:
        logging.getLogger("msbridge").removeHandler(self)
