"""The gradient tap: every step's global gradient norm and learning rates, kept on the device until they are asked for.

The tap is a Cell put around `grad_reducer` of a train cell, the one place where all gradients pass after they were
averaged over ranks and before the optimizer clips or uses them. It hands them on untouched and writes one row of
numbers to a ring Parameter, one row a step: half the sum of squares of all gradients, and the learning rates. The host
makes norms of them. A transfer copies the whole ring at once, and so brings every step since the last one. In PyNative
mode the noting is a compiled function, as the construct of MindSpore's optimizers is: with ten gradients it takes about
half the time of single operators.

Few operators, since each costs some ten microseconds on a CPU: a small gradient is one L2Loss. Its CPU kernel adds in
sequence in float32, 4 % off for 20 million elements, so larger gradients go through Square and ReduceSum.

The Parameters are hidden from `parameters_and_names()`: no checkpoint, optimizer or broadcast sees them.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

COUNT_MODULUS = 1 << 20  # a count is read as float32: stay far below 2**24; a multiple of any ring, a power of two
_FEW = 1 << 14  # up to so many elements, adding in sequence loses less than 1e-5
_numbers = itertools.count()  # Parameters of one graph need different names

half_square_sum = ops.MultitypeFuncGraph("msbridge_half_square_sum")


@half_square_sum.register("Tensor")  # type: ignore[untyped-decorator]
def _half_square_sum_dense(grad: Any) -> Any:
    grad = ops.Cast()(grad, ms.float32)
    if grad.size <= _FEW:
        return ops.L2Loss()(grad)
    return ops.Mul()(ops.ReduceSum()(ops.Square()(grad)), Tensor(0.5, ms.float32))


class GradTap(nn.Cell):  # type: ignore[misc]
    """Hand gradients on, and note half of their squared global L2 norm and the learning rates of the step.

    Owned by the training thread. `reducer` is the cell in whose place the tap stands; `schedules` are asked with
    `global_step` before the optimizer advances it, so their answer is the one of this very step. Gradients times
    `unscale` are the true ones.

    `normed` names gradients whose own norm goes into the row too, by their place. `kept` names gradients that are
    copied whole, every step, into a Parameter like the given one: for what cannot be counted without the gradient.
    """

    def __init__(
        self,
        reducer: nn.Cell,
        schedules: dict[str, nn.Cell],
        global_step: Any,
        unscale: float,
        size: int,
        *,
        normed: Mapping[str, int] | None = None,
        kept: Mapping[str, tuple[int, Any]] | None = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.reducer = reducer
        self.size = size
        self.unscale = unscale
        self.names = tuple(schedules)  # of the learning rates, in the order of the row
        self.normed = dict(normed or {})  # parameters with a norm of their own -> which gradient
        self.normed_places = tuple(self.normed.values())
        self.width = 1 + len(schedules) + len(self.normed)
        kept = kept or {}
        self.kept_places = tuple(place for place, _ in kept.values())
        name = f"msbridge_tap_{next(_numbers)}"
        ring = Tensor(np.zeros((size, self.width), np.float32))
        hidden = {
            "ring": Parameter(ring, f"{name}.ring", requires_grad=False),
            "calls": Parameter(Tensor(np.zeros(1, np.int32)), f"{name}.calls", requires_grad=False),
            "schedules": tuple(schedules.values()),
            "global_step": Tensor(np.zeros(1, np.int32)) if global_step is None else global_step,
            "run_note": ms.jit(self.note),
        }
        grads = [
            Parameter(Tensor(np.zeros(like.shape, np.float32), like.dtype), f"{name}.grad_{place}", requires_grad=False)
            for place, like in kept.values()
        ]
        hidden["kept"] = ParameterTuple(grads)
        hidden["kept_by_name"] = dict(zip(kept, grads, strict=True))
        for attribute, value in hidden.items():
            # Past Cell.__setattr__, which would enter Parameters and Cells in the train cell's own lists.
            object.__setattr__(self, attribute, value)
        self.one, self.slots = Tensor([1], ms.int32), Tensor([size], ms.int32)
        self.modulus = Tensor([COUNT_MODULUS], ms.int32)
        self.half_square_sums, self.add_n, self.stack = ops.HyperMap(), ops.AddN(), ops.Stack()
        self.add, self.mod, self.cast, self.reshape = ops.AssignAdd(), ops.FloorMod(), ops.Cast(), ops.Reshape()
        self.scatter, self.assign = ops.ScatterUpdate(), ops.Assign()
        self.failure = ""
        self.busy = False

    def restart(self, reducer: nn.Cell) -> None:
        """Begin a training: count calls from 0, in front of `reducer`."""
        self._cells["reducer"] = reducer
        # Not set_data: what is compiled already would not see the new buffer in PyNative mode.
        ops.assign(self.calls, Tensor(np.zeros(1, np.int32)))
        self.failure, self.busy = "", True

    def stop(self) -> None:
        """End a training: note nothing more from Python."""
        self.busy = False

    def count(self) -> Any:
        """Give the calls of this training modulo COUNT_MODULUS, as a float32 device tensor with one element."""
        return self.cast(self.mod(self.calls, self.modulus), ms.float32)

    def construct(self, *args: Any) -> Any:
        """Reduce and note, as a part of a compiled train cell."""
        grads = self.reducer(*args)
        self.note(*grads)
        return grads

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Reduce and note, called from Python. Noting never raises."""
        grads = self.reducer(*args, **kwargs)
        if self.busy and not self.failure:
            try:
                self.run_note(*grads)
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
        return grads

    def note(self, *grads: Any) -> Any:
        """Write the row of this step to the ring."""
        halves = self.half_square_sums(half_square_sum, grads)
        row: tuple[Any, ...] = (self.add_n(halves),)
        for schedule in self.schedules:
            row = (*row, self.reshape(self.cast(schedule(self.global_step), ms.float32), ()))
        for place in self.normed_places:
            row = (*row, halves[place])
        for index in range(len(self.kept_places)):
            self.assign(self.kept[index], grads[self.kept_places[index]])
        slot = self.mod(self.calls, self.slots)
        self.scatter(self.ring, slot, self.reshape(self.stack(row), (1, self.width)))
        # The count is never set back: from 2**31 on it goes on below 0, and FloorMod by powers of two does not mind.
        return self.add(self.calls, self.one)
