"""MindSpore training curves in TensorBoard, through tbwriter.

    from msbridge import TensorBoardCallback
    model.train(3, dataset, callbacks=[TensorBoardCallback("runs/first")])

MindSpore is imported with the first name that needs it, not with this package.
"""

from typing import TYPE_CHECKING, Any

from tbwriter import __version__

if TYPE_CHECKING:
    from msbridge._run_dir import RunDir, run_dir
    from msbridge.actions import RaiseCollectFreq, ScaleLearningRate, StopTraining
    from msbridge.callback import TensorBoardCallback
    from msbridge.collectors import (
        Collector,
        Context,
        DeviceMemory,
        Epoch,
        EvalMetrics,
        GradHistogram,
        GradNorm,
        Graph,
        History,
        HostMemory,
        HyperParameters,
        InputImages,
        LearningRate,
        Loss,
        LossScale,
        MovingAverage,
        NotGivenError,
        OptimizerState,
        Series,
        SummaryOps,
        Throughput,
        Training,
        WeightHistogram,
        WeightNorm,
        Write,
        default_collectors,
    )
    from msbridge.custom_loop import monitor
    from msbridge.smoke import SmokeReport, smoke_check

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
    "RaiseCollectFreq",
    "RunDir",
    "ScaleLearningRate",
    "Series",
    "SmokeReport",
    "StopTraining",
    "SummaryOps",
    "TensorBoardCallback",
    "Throughput",
    "Training",
    "WeightHistogram",
    "WeightNorm",
    "Write",
    "__version__",
    "default_collectors",
    "monitor",
    "run_dir",
    "smoke_check",
]


_MODULES = {
    "RunDir": "msbridge._run_dir",
    "SmokeReport": "msbridge.smoke",
    "monitor": "msbridge.custom_loop",
    "run_dir": "msbridge._run_dir",
    "smoke_check": "msbridge.smoke",
    "RaiseCollectFreq": "msbridge.actions",
    "ScaleLearningRate": "msbridge.actions",
    "StopTraining": "msbridge.actions",
    "TensorBoardCallback": "msbridge.callback",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_MODULES.get(name, "msbridge.collectors"))
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
