"""Encode values as Events: pure functions of value, step and time. No clocks, files or threads."""

from tbwriter._summary._described import DescribedScalar
from tbwriter._summary._event import Summary, event, file_version, session_start
from tbwriter._summary._histogram import Histogram
from tbwriter._summary._image import Images
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
    "DescribedScalar",
    "Histogram",
    "Images",
    "Rows",
    "ScalarEncoder",
    "Summary",
    "Text",
    "as_array",
    "as_number",
    "as_scalar",
    "as_series",
    "as_step",
    "as_wall_time",
    "check_tag",
    "describe",
    "event",
    "file_version",
    "rows",
    "session_start",
]
