"""What a train step returned: the loss alone, or MindSpore's tuple (loss, overflow, loss_scale, ...)."""

from typing import Any, NamedTuple

import numpy as np


class Outputs(NamedTuple):
    """The parts of a step's outputs by name; None where the step does not give them.

    Each is a device tensor or a number; `loss` may also be a list of micro-batch losses, and `global_norm` the error
    for which there is none.
    """

    loss: Any = None
    overflow: Any = None
    loss_scale: Any = None
    learning_rate: Any = None
    global_norm: Any = None


def parse_outputs(net_outputs: Any) -> Outputs:
    """Name the parts of `net_outputs`.

    A tuple is a step cell's (loss, overflow, loss_scale[, learning_rate[, global_norm, ...]]) when its second part is
    a flag. Any other tuple is a network with several outputs, of which the first is the loss, as MindSpore's own
    LossMonitor reads it. A list holds the losses of micro-batches.
    """
    if not isinstance(net_outputs, tuple):
        return Outputs(net_outputs)
    if isinstance(net_outputs, Outputs):
        return net_outputs
    if not net_outputs:
        return Outputs()
    if len(net_outputs) < 2 or not _is_flag(net_outputs[1]):
        return Outputs(loss=net_outputs[0])
    rest = [part if _is_number(part) else None for part in net_outputs[2:5]]
    return Outputs(net_outputs[0], net_outputs[1], *rest)


def _is_flag(part: Any) -> bool:
    if isinstance(part, bool | np.bool_):
        return True
    return str(getattr(part, "dtype", "")).lower() == "bool" and getattr(part, "size", 0) == 1


def _is_number(part: Any) -> bool:
    if isinstance(part, int | float | np.number):
        return True
    return hasattr(part, "dtype") and getattr(part, "size", 0) == 1
