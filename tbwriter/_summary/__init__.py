"""Encode values as Events and decode them: pure functions of value, step and time. No clocks, files or threads."""

from tbwriter._summary._decode import Event, Value, decode
from tbwriter._summary._described import DescribedScalar
from tbwriter._summary._event import Summary, event, file_version, session_start, wrap
from tbwriter._summary._histogram import Histogram
from tbwriter._summary._image import Images
from tbwriter._summary._outline import Outliner, Row
from tbwriter._summary._raw import PLUGIN_OF_FORM, Metadata, RawEvent, RawValue
from tbwriter._summary._scalar import ScalarEncoder
from tbwriter._summary._series import Rows, as_series, rows
from tbwriter._summary._text import Text
from tbwriter._summary._values import (
    as_array,
    as_number,
    as_scalar,
    as_step,
    as_wall_time,
    check_tag,
    describe,
)

__all__ = [
    "PLUGIN_OF_FORM",
    "DescribedScalar",
    "Event",
    "Histogram",
    "Images",
    "Metadata",
    "Outliner",
    "RawEvent",
    "RawValue",
    "Row",
    "Rows",
    "ScalarEncoder",
    "Summary",
    "Text",
    "Value",
    "as_array",
    "as_number",
    "as_scalar",
    "as_series",
    "as_step",
    "as_wall_time",
    "check_tag",
    "decode",
    "describe",
    "event",
    "file_version",
    "rows",
    "session_start",
    "wrap",
]
