"""What MindSpore's summary operators inside the network give."""

from collections.abc import Mapping
from typing import Any

from mindspore.ops.operations import debug_ops
from mindspore.train.summary import summary_record

from msbridge._device import checked_scalar, first_line, is_tensor
from msbridge._histogram import count
from msbridge._outputs import Outputs
from msbridge.collectors._base import Collector, Context, Value, Write
from msbridge.collectors._inputs import fetch_images, layout_of
from tbwriter._logger import get_logger

_log = get_logger(__name__)


class SummaryOps(Collector):
    """`<name>` of `ops.ScalarSummary`, `HistogramSummary`, `ImageSummary` and `TensorSummary` in the network.

    The newest values at each collected step. MindSpore keeps them for whoever asks first, so a SummaryCollector or
    SummaryRecord in the same training takes them away. Tensors are stored as such; TensorBoard does not show them.
    Where operators of several kinds have one name, the tags end in `/scalar`, `/histogram`, `/image`, `/tensor`. A
    value that cannot be drawn is told of once and left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._newest: dict[str, dict[str, Any]] = {}  # name -> kind -> value, of PyNative mode
        self._left_out: set[str] = set()

    def begin(self, _training: Any) -> None:
        """Forget what an earlier training left."""
        self._drain()
        self._newest = {}
        summary_record._get_summary_tensor_data()

    def note(self, _step: int, _outputs: Outputs) -> None:
        """Keep the newest values alone: in PyNative mode MindSpore would keep all of them."""
        if debug_ops.SUMMARY_TENSOR_CACHE:
            self._drain()

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the newest values."""
        newest, self._newest = self._newest, {}
        for full_name, tensor in summary_record._get_summary_tensor_data().items():
            name, _, kind = full_name.partition("[:")  # "name[:Kind]"
            newest.setdefault(name, {})[kind.rstrip("]")] = tensor
        found = {}
        for name, values in newest.items():
            for kind, value in values.items():
                tag = name if len(values) == 1 else f"{name}/{kind.lower()}"
                try:
                    found[tag] = self._value(context, kind, value)
                except Exception as error:
                    self._leave_out(tag, error)
        return found

    def _drain(self) -> None:
        # Not by MindSpore's own function: it reads every value on the host, and one that it refuses takes the others
        # along.
        entries, debug_ops.SUMMARY_TENSOR_CACHE = debug_ops.SUMMARY_TENSOR_CACHE, []
        for operator, name, value in entries:
            self._newest.setdefault(str(name), {})[operator.removesuffix("Summary")] = value

    def _leave_out(self, name: str, error: Exception) -> None:
        if name not in self._left_out:
            self._left_out.add(name)
            _log.warning("the summary operator %r is left out: %s", name, first_line(error))

    def _value(self, context: Context, kind: str, tensor: Any) -> Value:
        if not is_tensor(tensor):
            raise TypeError(f"want a tensor, got {type(tensor).__name__}")
        if kind == "Scalar":
            return checked_scalar(tensor, "value")
        if kind == "Histogram":
            counted = count(tensor, context.transfer)
            return lambda: Write(counted().write)
        if kind == "Image" and tensor.ndim == 4 and (layout := layout_of(tensor.shape)):
            return fetch_images(context, tensor, layout)
        read = context.fetch(tensor)
        return lambda: Write(lambda writer, tag, step, wall: writer.add_tensor(tag, read(), step, wall))
