"""The gradient tap: every step's global gradient norm, kept on the device until it is asked for.

The tap is a Cell put around `grad_reducer` of a train cell, the one place where all gradients pass after they were
averaged over ranks and before the optimizer clips or uses them. It hands them on untouched. In a compiled graph it
writes the norm to a ring Parameter, one slot a step, and the newest values to a row; in PyNative mode it keeps the
device scalars themselves. A collection reads either with one copy, `collect_freq` steps at a time.

Its Parameters are hidden from `parameters_and_names()`: no checkpoint, optimizer or broadcast sees them.
"""

import itertools
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

from msbridge._device import pack, to_float32, to_scalar

COUNT_MODULUS = 1 << 20  # calls are counted in float32 beside the norm: stay far below 2**24; a multiple of any ring
_numbers = itertools.count()  # Parameters of one graph need different names

_square_sum = ops.MultitypeFuncGraph("msbridge_square_sum")


@_square_sum.register("Tensor")  # type: ignore[untyped-decorator]
def _square_sum_dense(grad: Any) -> Any:
    return ops.ReduceSum()(ops.Square()(ops.Cast()(grad, ms.float32)))


@_square_sum.register("RowTensor")  # type: ignore[untyped-decorator]
def _square_sum_rows(_grad: Any) -> Any:
    # Rows may repeat; merging them is the optimizer's work. Not a number is honest, a sum over repeats is not.
    return Tensor(np.nan, ms.float32)


@_square_sum.register("MapTensor")  # type: ignore[untyped-decorator]
def _square_sum_map(_grad: Any) -> Any:
    return Tensor(np.nan, ms.float32)


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
        name = f"msbridge_tap_{next(_numbers)}"
        hidden = {
            "ring": Parameter(Tensor(np.zeros(size, np.float32)), f"{name}.ring", requires_grad=False),
            "row": Parameter(Tensor(np.zeros(2 + len(schedules), np.float32)), f"{name}.row", requires_grad=False),
            "calls": Parameter(Tensor(np.zeros(1, np.int32)), f"{name}.calls", requires_grad=False),
            "schedules": tuple(schedules.values()),
            "global_step": Tensor(np.zeros(1, np.int32)) if global_step is None else global_step,
        }
        for attribute, value in hidden.items():
            # Past Cell.__setattr__, which would enter Parameters and Cells in the train cell's own lists.
            object.__setattr__(self, attribute, value)
        self.unscale = Tensor(unscale, ms.float32)
        self.one, self.slots = Tensor([1], ms.int32), Tensor([size], ms.int32)
        self.modulus = Tensor([COUNT_MODULUS], ms.int32)
        self.square_sums, self.add_n, self.sqrt, self.mul = ops.HyperMap(), ops.AddN(), ops.Sqrt(), ops.Mul()
        self.add, self.mod, self.cast, self.reshape = ops.Add(), ops.FloorMod(), ops.Cast(), ops.Reshape()
        self.concat, self.assign, self.scatter = ops.Concat(), ops.Assign(), ops.ScatterUpdate()
        self.square = ops.Square()
        self.host_unscale = unscale
        self.names = tuple(schedules)  # of the learning rates, in the order of the row
        self.squares: list[Any] = []  # PyNative mode: device scalars, one a step since the last collection
        self.rates: Any = None  # PyNative mode: of the newest step, where wanted
        self.wants_rates = False
        self.failure = ""
        self.busy = False

    def restart(self, reducer: nn.Cell) -> None:
        """Begin a training: count calls from 0, in front of `reducer`."""
        self._cells["reducer"] = reducer
        self.calls.set_data(Tensor(np.zeros(1, np.int32)))
        self.stop()
        self.failure, self.busy = "", True

    def stop(self) -> None:
        """End a training: note nothing more from Python."""
        self.squares, self.rates, self.wants_rates, self.busy = [], None, False, False

    def construct(self, *args: Any) -> Any:
        """Run inside a compiled graph: reduce, then note norm, count and learning rates."""
        grads = self.reducer(*args)
        norm = self.mul(self.sqrt(self.add_n(self.square_sums(_square_sum, grads))), self.unscale)
        norm = self.reshape(norm, (1,))
        slot = self.mod(self.calls, self.slots)
        count = self.mod(self.add(self.calls, self.one), self.modulus)
        row: tuple[Any, ...] = (norm, self.cast(count, ms.float32))
        for schedule in self.schedules:
            row = (*row, self.reshape(self.cast(schedule(self.global_step), ms.float32), (1,)))
        self.scatter(self.ring, slot, norm)
        self.assign(self.row, self.concat(row))
        self.assign(self.calls, count)
        return grads

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run from Python, in PyNative mode: the same with operators that work with every NumPy, and never raise."""
        grads = self.reducer(*args, **kwargs)
        if self.busy and not self.failure:
            try:
                self.note(grads)
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
        return grads

    def note(self, grads: Any) -> None:
        """Keep the square sum of `grads` and, when the step is to be collected, the learning rates."""
        sums = [mint.sum(self.square(to_float32(grad))) for grad in grads]
        self.squares.append(self.add_n(sums) if len(sums) > 1 else sums[0])
        if self.wants_rates and self.schedules:
            # A copy: other callbacks may assign to the learning rate before this one reads it.
            self.rates = pack([to_scalar(_ask(schedule, self.global_step)) for schedule in self.schedules])


def _ask(schedule: nn.Cell, global_step: Any) -> Any:
    try:
        return schedule(global_step)
    except SystemError:
        # MindSpore 2.10 with NumPy 2: the first touch of NumPy's C interface in a process fails, the second works.
        return schedule(global_step)
