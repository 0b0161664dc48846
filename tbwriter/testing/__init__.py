"""For those who write sinks or test what writes through one.

`SinkTests` is the conformance suite that every sink must pass; `FaultySink` and `SlowSink` wrap a sink and make it
fail, forget or wait.
"""

from tbwriter.testing._conformance import SinkTests
from tbwriter.testing._wrappers import FaultySink, SlowSink

__all__ = ["FaultySink", "SinkTests", "SlowSink"]
