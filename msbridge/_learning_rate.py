"""Where an optimizer keeps its learning rate, whatever its kind."""

import copy
from typing import Any

from mindspore import Parameter, nn


def rates(optimizer: Any) -> dict[str, Any]:
    """Name every learning rate of `optimizer`: "" for the only one, "/group_0", "/group_1", ... for several.

    A rate is a Parameter (constant; a user may assign to it), a Cell to be asked with the optimizer's step count, or a
    number. Groups are counted in the order in which the optimizer holds their parameters; groups that share one
    learning rate share one name.
    """
    if getattr(optimizer, "relative_step", False):
        return {}  # AdaFactor makes its own from the step, and keeps a 0 in the place of the rate
    groups = getattr(optimizer, "param_groups", None)
    if groups:  # mindspore.experimental.optim and mint.optim
        found = [group["lr"] for group in groups]
    else:
        rate = getattr(optimizer, "learning_rate", None)
        if rate is None:
            return {}
        # In groups, nn.Optimizer keeps one entry per parameter; those of one group are the same object.
        found = list(rate) if getattr(optimizer, "is_group_lr", False) else [rate]
        found = list({id(rate): rate for rate in found}.values())
    if len(found) == 1:
        return {"": found[0]}
    return {f"/group_{index}": rate for index, rate in enumerate(found)}


def step_count(optimizer: Any) -> Any:
    """Give the Parameter that counts the optimizer's steps, or None."""
    return getattr(optimizer, "global_step", None)


def harmless(schedule: Any) -> Any:
    """Give a schedule that may be asked more often than the optimizer asks, without a trace in the training.

    MindSpore's own schedules are pure. A user's class may count its calls, so a copy of it is asked.
    """
    return schedule if type(schedule).__module__.startswith("mindspore.") else copy.deepcopy(schedule)


class Constant(nn.Cell):  # type: ignore[misc]
    """A learning rate Parameter in the shape of a schedule.

    The Parameter is hidden from MindSpore's book-keeping: it belongs to the optimizer, and its name must stay.
    """

    def __init__(self, rate: Parameter) -> None:
        super().__init__(auto_prefix=False)
        object.__setattr__(self, "rate", rate)

    def construct(self, _step: Any) -> Any:
        """Give the rate as it is now."""
        return self.rate
