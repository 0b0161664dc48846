"""The gradient tap: every step's global gradient norm and learning rates, kept on the device until they are asked for.

The tap is a Cell put around `grad_reducer` of a train cell, the one place where all gradients pass after they were
averaged over ranks and before the optimizer clips or uses them. It hands them on untouched and writes one row of
numbers to a ring Parameter, one row a step: half the sum of squares of all gradients, and the learning rates. The host
makes norms of them. A transfer copies the whole ring at once, and so brings every step since the last one. The ring is
one vector, and which rows are new is told by a number in each: so no operator outside of the graph has to make it ready
for the copy, each of which takes some hundred microseconds.

In PyNative mode the noting is a compiled function, as the construct of MindSpore's optimizers is: with ten gradients it
takes about half the time of single operators.

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

_MOST_CALLS = 1 << 20  # where a count is set back to 0: float32 tells it up to 2**24
_MOST_PLACES = 1 << 30  # int32
_FEW = 1 << 14  # up to so many elements, adding in sequence loses less than 1e-5
_numbers = itertools.count()  # Parameters of one graph need different names

half_square_sum = ops.MultitypeFuncGraph("msbridge_half_square_sum")


@half_square_sum.register("Tensor")  # type: ignore[untyped-decorator]
def _half_square_sum_dense(grad: Any) -> Any:
    grad = ops.Cast()(grad, ms.float32)
    if grad.size <= _FEW:
        return ops.L2Loss()(grad)
    return ops.Mul()(ops.ReduceSum()(ops.Square()(grad)), Tensor(0.5, ms.float32))


class Ring(nn.Cell):  # type: ignore[misc]
    """Rows of numbers on the device, one for each call of a cell, the oldest overwritten first.

    Owned by the training thread. The Parameters are hidden: see the module.

    Args:
        size: rows.
        width: numbers in a row. The ring is a vector of rows one longer, for the number of the call, from 1.
    """

    names: tuple[str, ...] = ()
    """What the numbers after the first are."""
    normed: Mapping[str, int] = {}
    unscale = 1.0
    failure = ""

    def __init__(self, size: int, width: int) -> None:
        super().__init__(auto_prefix=False)
        self.size, self.row_size = size, width + 1
        self.most_calls = min(_MOST_CALLS, _MOST_PLACES // self.row_size)
        """At so many calls, `rewind` is due."""
        label = f"msbridge_tap_{next(_numbers)}"
        self.starts = {
            "ring": np.zeros(size * self.row_size, np.float32),
            "calls": np.zeros((), np.float32),
            "places": np.arange(self.row_size, dtype=np.int32),  # of the next row in the ring
        }
        for name, start in self.starts.items():
            self.hide(name, Parameter(Tensor(start), f"{label}.{name}", requires_grad=False))
        self.label = label
        self.one, self.stride = Tensor(1.0, ms.float32), Tensor([self.row_size] * self.row_size, ms.int32)
        self.end = Tensor([size * self.row_size], ms.int32)
        self.add, self.mod, self.cast, self.reshape = ops.AssignAdd(), ops.FloorMod(), ops.Cast(), ops.Reshape()
        self.scatter, self.stack = ops.ScatterUpdate(), ops.Stack()

    def hide(self, attribute: str, value: Any) -> None:
        """Set an attribute past Cell.__setattr__, which would enter Parameters and Cells in the train cell's lists."""
        object.__setattr__(self, attribute, value)

    def rewind(self) -> None:
        """Forget all rows, and count from 0."""
        # Not set_data: what is compiled already would not see the new buffer in PyNative mode.
        for name, start in self.starts.items():
            ops.assign(getattr(self, name), Tensor(start))

    def write(self, row: tuple[Any, ...]) -> Any:
        """Write float32 scalars as the next row."""
        number = self.add(self.calls, self.one)
        self.scatter(self.ring, self.mod(self.places, self.end), self.stack((*row, number)))
        return self.add(self.places, self.stride)


class LossTap(Ring):
    """Stand in the place of a train cell that is called many times a graph, and note the loss of every call."""

    def __init__(self, network: nn.Cell, size: int) -> None:
        super().__init__(size, 1)
        self.network, self.mean = network, ops.ReduceMean()

    def construct(self, *inputs: Any) -> Any:
        """Train, note, and hand on what the train cell gives."""
        outputs = self.network(*inputs)
        loss = outputs
        if isinstance(outputs, tuple):
            loss = outputs[0]
        if isinstance(loss, Tensor):  # told when the graph is compiled; what is none must not end that
            self.write((self.mean(self.cast(loss, ms.float32)),))
        return outputs


class GradTap(Ring):
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
        super().__init__(size, 1 + len(schedules) + len(normed or {}))
        self.reducer = reducer
        self.unscale = unscale
        self.names = tuple(schedules)  # of the learning rates, in the order of the row
        self.normed = dict(normed or {})  # parameters with a norm of their own -> which gradient
        self.normed_places = tuple(self.normed.values())
        kept = kept or {}
        self.kept_places = tuple(place for place, _ in kept.values())
        grads = [
            Parameter(
                Tensor(np.zeros(like.shape, np.float32), like.dtype), f"{self.label}.grad_{place}", requires_grad=False
            )
            for place, like in kept.values()
        ]
        self.hide("kept", ParameterTuple(grads))
        self.hide("kept_by_name", dict(zip(kept, grads, strict=True)))
        self.hide("schedules", tuple(schedules.values()))
        self.hide("global_step", Tensor(np.zeros(1, np.int32)) if global_step is None else global_step)
        self.half_square_sums, self.add_n, self.assign = ops.HyperMap(), ops.AddN(), ops.Assign()
        self.hide("run_note", ms.jit(self.note))
        self.failure = ""
        self.busy = False

    def restart(self, reducer: nn.Cell) -> None:
        """Begin a training: count calls from 0, in front of `reducer`."""
        self._cells["reducer"] = reducer
        self.rewind()
        self.failure, self.busy = "", True

    def stop(self) -> None:
        """End a training: note nothing more from Python."""
        self.busy = False

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
        return self.write(row)
