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
from msbridge.collectors._derived import MovingAverage
from msbridge.collectors._evaluation import EvalMetrics
from msbridge.collectors._inputs import InputImages
from msbridge.collectors._memory import DeviceMemory, HostMemory
from msbridge.collectors._run_data import Graph, HyperParameters
from msbridge.collectors._scalars import (
    Epoch,
    GradNorm,
    LearningRate,
    Loss,
    LossScale,
    Throughput,
    default_collectors,
)
from msbridge.collectors._summary_ops import SummaryOps
from msbridge.collectors._weights import GradHistogram, OptimizerState, WeightHistogram, WeightNorm

__all__ = [
    "Collector",
    "Context",
    "DeviceMemory",
    "Epoch",
    "EvalMetrics",
    "GradHistogram",
    "GradNorm",
    "Graph",
    "History",
    "HostMemory",
    "HyperParameters",
    "InputImages",
    "LearningRate",
    "Loss",
    "LossScale",
    "MovingAverage",
    "NotGivenError",
    "OptimizerState",
    "Series",
    "SummaryOps",
    "Throughput",
    "Training",
    "Value",
    "WeightHistogram",
    "WeightNorm",
    "Write",
    "default_collectors",
]
