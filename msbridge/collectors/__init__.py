"""What is drawn: one small class for each group of curves."""

from msbridge._tape import Series
from msbridge.collectors._base import (
    Collector,
    Context,
    History,
    NotGivenError,
    Training,
    Value,
    Write,
)
from msbridge.collectors._scalars import (
    Epoch,
    GradNorm,
    LearningRate,
    Loss,
    LossScale,
    Throughput,
    default_collectors,
)

__all__ = [
    "Collector",
    "Context",
    "Epoch",
    "GradNorm",
    "History",
    "LearningRate",
    "Loss",
    "LossScale",
    "NotGivenError",
    "Series",
    "Throughput",
    "Training",
    "Value",
    "Write",
    "default_collectors",
]
