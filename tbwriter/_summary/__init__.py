"""Encode values as Events and decode them: pure functions of value, step and time. No clocks, files or threads."""

from tbwriter._summary._audio import Audio
from tbwriter._summary._boxes import BoxedImage
from tbwriter._summary._budget import Bounded, Budget
from tbwriter._summary._charts import Chart, CustomScalars, Layout, check_chart, check_layout
from tbwriter._summary._decode import Event, Value, decode
from tbwriter._summary._described import DescribedScalar
from tbwriter._summary._embedding import CONFIG_NAME, Embedding, embeddings_in
from tbwriter._summary._event import (
    Summary,
    check_event,
    check_summary,
    count_values,
    event,
    file_version,
    session_start,
    wrap,
)
from tbwriter._summary._figure import draw
from tbwriter._summary._graph import Graph
from tbwriter._summary._histogram import COUNT_NAMES, Histogram, HistogramRaw
from tbwriter._summary._hparams import HParam, check_hparams, experiment, trial_end, trial_start
from tbwriter._summary._image import Images
from tbwriter._summary._mesh import mesh
from tbwriter._summary._outline import Alike, Outliner, Row
from tbwriter._summary._pr_curve import PrCurve, PrCurveRaw, as_thresholds
from tbwriter._summary._raw import PLUGIN_OF_FORM, Metadata, RawEvent, RawValue
from tbwriter._summary._scalar import ScalarEncoder
from tbwriter._summary._series import Rows, as_series, rows
from tbwriter._summary._tensor import Tensor
from tbwriter._summary._text import Text
from tbwriter._summary._values import as_array, as_number, as_scalar, as_step, as_wall_time
from tbwriter._summary._video import Video
from tbwriter._summary._words import check_tag, check_text, describe, shown

__all__ = [
    "CONFIG_NAME",
    "COUNT_NAMES",
    "PLUGIN_OF_FORM",
    "Alike",
    "Audio",
    "Bounded",
    "BoxedImage",
    "Budget",
    "Chart",
    "CustomScalars",
    "DescribedScalar",
    "Embedding",
    "Event",
    "Graph",
    "HParam",
    "Histogram",
    "HistogramRaw",
    "Images",
    "Layout",
    "Metadata",
    "Outliner",
    "PrCurve",
    "PrCurveRaw",
    "RawEvent",
    "RawValue",
    "Row",
    "Rows",
    "ScalarEncoder",
    "Summary",
    "Tensor",
    "Text",
    "Value",
    "Video",
    "as_array",
    "as_number",
    "as_scalar",
    "as_series",
    "as_step",
    "as_thresholds",
    "as_wall_time",
    "check_chart",
    "check_event",
    "check_hparams",
    "check_layout",
    "check_summary",
    "check_tag",
    "check_text",
    "count_values",
    "decode",
    "describe",
    "draw",
    "embeddings_in",
    "event",
    "experiment",
    "file_version",
    "mesh",
    "rows",
    "session_start",
    "shown",
    "trial_end",
    "trial_start",
    "wrap",
]
