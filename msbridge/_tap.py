"""The gradient tap: every step's global gradient norm, kept on the device until it is asked for.

The tap is a Cell put around `grad_reducer` of a train cell, the one place where all gradients pass after they were
averaged over ranks and before the optimizer clips or uses them. It hands them on untouched, writes their norm to a
ring Parameter, one slot a step, and gives the newest values apart. A collection copies both at once, `collect_freq`
steps at a time. In PyNative mode the noting is a compiled function, as the construct of MindSpore's optimizers is:
measured with ten gradients, a fifth of the time of single operators.

The sum of squares is Square and ReduceSum: L2Loss would be one operator, but its CPU kernel adds in sequence, 4 % off
for 20 million elements.

The Parameters are hidden from `parameters_and_names()`: no checkpoint, optimizer or broadcast sees them.
"""

import itertools
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

COUNT_MODULUS = 1 << 20  # calls are counted in float32 beside the norm: stay far below 2**24; a multiple of any ring
_numbers = itertools.count()  # Parameters of one graph need different names

_square_sum = ops.MultitypeFuncGraph("msbridge_square_sum")


@_square_sum.register("Tensor")  # type: ignore[untyped-decorator]
def _square_sum_dense(grad: Any) -> Any:
    return ops.ReduceSum()(ops.Square()(ops.Cast()(grad, ms.float32)))


class GradTap(nn.Cell):  # type: ignore[misc]
    """Hand gradients on, and keep their global L2 norm times `unscale` and the learning rates of the step.

    Owned by the training thread. `reducer` is the cell in whose place the tap stands; `schedules` are asked with
    `global_step` before the optimizer advances it, so their answer is the one of this very step.
    """

    def __init__(
        self, reducer: nn.Cell, schedules: dict[str, nn.Cell], global_step: Any, unscale: float, size: int
    ) -> None:
        super().__init__(auto_prefix=False)
        self.reducer = reducer
        self.size = size
        self.names = tuple(schedules)  # of the learning rates, in the order of the row
        name = f"msbridge_tap_{next(_numbers)}"
        hidden = {
            "ring": Parameter(Tensor(np.zeros(size, np.float32)), f"{name}.ring", requires_grad=False),
            "row": Parameter(Tensor(np.zeros(2 + len(schedules), np.float32)), f"{name}.row", requires_grad=False),
            "calls": Parameter(Tensor(np.zeros(1, np.int32)), f"{name}.calls", requires_grad=False),
            "schedules": tuple(schedules.values()),
            "global_step": Tensor(np.zeros(1, np.int32)) if global_step is None else global_step,
            "run_note": ms.jit(self.note),
        }
        for attribute, value in hidden.items():
            # Past Cell.__setattr__, which would enter Parameters and Cells in the train cell's own lists.
            object.__setattr__(self, attribute, value)
        self.unscale = Tensor(unscale, ms.float32)
        self.one, self.slots = Tensor([1], ms.int32), Tensor([size], ms.int32)
        self.modulus = Tensor([COUNT_MODULUS], ms.int32)
        self.square_sums, self.add_n, self.sqrt, self.mul = ops.HyperMap(), ops.AddN(), ops.Sqrt(), ops.Mul()
        self.add, self.mod, self.cast, self.reshape = ops.Add(), ops.FloorMod(), ops.Cast(), ops.Reshape()
        self.stack, self.assign, self.scatter = ops.Stack(), ops.Assign(), ops.ScatterUpdate()
        self.newest: Any = None  # PyNative mode: what the row holds in a graph, as device scalars
        self.failure = ""
        self.busy = False

    def restart(self, reducer: nn.Cell) -> None:
        """Begin a training: count calls from 0, in front of `reducer`."""
        self._cells["reducer"] = reducer
        # Not set_data: what is compiled already would not see the new buffer in PyNative mode.
        ops.assign(self.calls, Tensor(np.zeros(1, np.int32)))
        self.newest, self.failure, self.busy = None, "", True

    def stop(self) -> None:
        """End a training: note nothing more from Python."""
        self.newest, self.busy = None, False

    def construct(self, *args: Any) -> Any:
        """Reduce and note, as a part of a compiled train cell."""
        grads = self.reducer(*args)
        self.assign(self.row, self.stack(self.note(*grads)))
        return grads

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce and note, called from Python. Noting never raises."""
        grads = self.reducer(*args, **kwargs)
        if self.busy and not self.failure:
            try:
                self.newest = self.run_note(*grads)
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
        return grads

    def note(self, *grads: Any) -> Any:
        """Write the norm to the ring; give norm, count of calls and learning rates as float32 scalars."""
        norm = self.mul(self.sqrt(self.add_n(self.square_sums(_square_sum, grads))), self.unscale)
        count = self.mod(self.add(self.calls, self.one), self.modulus)
        values: tuple[Any, ...] = (norm, self.reshape(self.cast(count, ms.float32), ()))
        for schedule in self.schedules:
            values = (*values, self.reshape(self.cast(schedule(self.global_step), ms.float32), ()))
        self.scatter(self.ring, self.mod(self.calls, self.slots), self.reshape(norm, (1,)))
        self.assign(self.calls, count)
        return values
