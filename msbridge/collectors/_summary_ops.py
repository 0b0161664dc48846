"""What MindSpore's summary operators inside the network give."""

from collections.abc import Mapping
from typing import Any

from mindspore.train.summary import summary_record

from msbridge._histogram import count
from msbridge._outputs import Outputs
from msbridge.collectors._base import Collector, Context, Value, Write
from msbridge.collectors._inputs import fetch_images, layout_of


class SummaryOps(Collector):
    """`<name>` of `ops.ScalarSummary`, `HistogramSummary`, `ImageSummary` and `TensorSummary` in the network.

    The newest values at each collected step. MindSpore keeps them for whoever asks first, so a SummaryCollector or
    SummaryRecord in the same training takes them away. Tensors are stored as such; TensorBoard does not show them.
    """

    def begin(self, _training: Any) -> None:
        """Forget what an earlier training left."""
        _newest()

    def note(self, _step: int, _outputs: Outputs) -> None:
        """Keep the newest values alone: in PyNative mode MindSpore would keep all of them."""
        summary_record._record_summary_tensor_data()

    def collect(self, context: Context) -> Mapping[str, Value]:
        """Give the newest values."""
        return {name: self._value(context, kind, tensor) for (name, kind), tensor in _newest().items()}

    def _value(self, context: Context, kind: str, tensor: Any) -> Value:
        if kind == "Scalar":
            return tensor
        if kind == "Histogram":
            counted = count(tensor, context.transfer)
            return lambda: Write(counted().write)
        if kind == "Image" and tensor.ndim == 4 and (layout := layout_of(tensor.shape)):
            return fetch_images(context, tensor, layout)
        read = context.fetch(tensor)
        return lambda: Write(lambda writer, tag, step, wall: writer.add_tensor(tag, read(), step, wall))


def _newest() -> dict[tuple[str, str], Any]:
    """Take {(name, kind): tensor} out of MindSpore's cache, where a name is "name[:Kind]"."""
    summary_record._record_summary_tensor_data()
    found = {}
    for name, tensor in summary_record._get_summary_tensor_data().items():
        tag, _, kind = name.partition("[:")
        found[tag, kind.rstrip("]")] = tensor
    return found
