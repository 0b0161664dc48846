"""Layouts of the custom scalars dashboard."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._parsing import parsed
from tbwriter._summary._values import items_of
from tbwriter._summary._words import check_tag, describe, shown

PLUGIN = "custom_scalars"
TAG = "custom_scalars__config__"

# torch draws every kind but "Margin" as lines, so that other spellings, such as "MultiLine", are in use.
_KINDS = {"multiline": "Multiline", "margin": "Margin"}


class Chart(NamedTuple):
    """A chart of several scalars."""

    kind: Literal["Multiline", "Margin"]
    tags: tuple[str, ...]
    """Regular expressions of a multiline chart's tags; of a margin chart value, lower and upper bound."""


Charts = Mapping[str, Mapping[str, Chart]]
"""Category -> title -> chart, in the order in which they show."""


def check_layout(layout: Any) -> dict[str, dict[str, Chart]]:
    """Return a layout as torch and tensorboardX write it: {category: {title: [kind, tags]}}; kinds in any case.

    Raises:
        TypeError: no such mapping. ValueError: another kind than Multiline and Margin, a margin chart without three
            tags, or a tag that is no regular expression.
    """
    wanted = "want {category: {title: ['Multiline' or 'Margin', [tags]]}}"
    if not isinstance(layout, Mapping):
        raise TypeError(f"layout is {describe(layout)}, {wanted}")
    checked: dict[str, dict[str, Chart]] = {}
    for category, charts in layout.items():
        category = check_tag(category, "layout: a category")  # noqa: PLW2901 (a str Enum is its text from here on)
        if not isinstance(charts, Mapping):
            raise TypeError(f"layout[{shown(category)}] is {describe(charts)}, {wanted}")
        for title, chart in charts.items():
            title = check_tag(title, "layout: a title")  # noqa: PLW2901
            if not isinstance(chart, (list, tuple)) or len(chart) != 2:
                raise TypeError(f"layout[{shown(category)}][{shown(title)}] is {describe(chart)}, {wanted}")
            given, tags = chart
            kind = _KINDS.get(str.lower(given)) if isinstance(given, str) else None
            if kind is None:
                raise ValueError(f"layout: chart {shown(title)}: want 'Multiline' or 'Margin', got {describe(given)}")
            checked.setdefault(category, {})[title] = check_chart(title, kind, tags)
    return checked


def check_chart(title: str, kind: str, tags: Any) -> Chart:
    """Return a chart of the kind "Multiline" or "Margin"; see `check_layout`."""
    where, want = f"chart {shown(title)}: tags", "a list of tags"
    given = [] if isinstance(tags, (str, bytes, bytearray, Mapping, set, frozenset)) else items_of(tags, where, want)
    if not given:
        raise TypeError(f"{where} must be {want}, got {describe(tags)}")
    names = tuple(check_tag(tag, f"chart {shown(title)}: each of tags") for tag in given)
    if kind == "Margin":
        if len(names) != 3:
            raise ValueError(
                f"chart {shown(title)}: a margin chart has three tags, value, lower and upper; got {len(names)}"
            )
        return Chart("Margin", names)
    for name in names:
        try:
            re.compile(name)
        except re.error as exc:  # noqa: PERF203 (each tag on its own)
            raise ValueError(
                f"chart {shown(title)}: tag {shown(name)} is no regular expression ({exc}), which the tags of a "
                f"multiline chart are; write re.escape(tag)"
            ) from exc
    return Chart("Multiline", names)


class Layout:
    """The charts that a writer was given so far; it grows in any thread and is encoded in the worker's."""

    def __init__(self, charts: Charts | None = None) -> None:
        self.charts: dict[str, dict[str, Chart]] = {}
        self.changes = 0
        self.encoded = 0
        """How many changes the layout had that was encoded last."""
        self.update(charts or {})

    def update(self, charts: Charts) -> None:
        """Add charts, or put them in the place of those of the same category and title."""
        for category, titles in charts.items():
            self.charts.setdefault(category, {}).update(titles)
        self.changes += 1

    def proto(self) -> plugins.Layout:
        """Return it as it is now."""
        return plugins.Layout(
            category=[
                plugins.Category(title=category, chart=[_chart(title, chart) for title, chart in list(charts.items())])
                for category, charts in list(self.charts.items())  # which another thread may just add to
            ]
        )


@dataclass
class CustomScalars:
    """A whole layout, as it is when it is stored; TensorBoard shows the last one of a run.

    Of many that wait the first one has all, and the others are nothing more.
    """

    layout: Layout
    encoded: int = field(default=0, init=False)
    """As the layout's, of this one: what found no room in a file is encoded again."""

    @property
    def tag(self) -> str:
        """The tag under which it is stored."""
        return TAG

    @property
    def nbytes(self) -> int:
        """Memory held beside the writer's own, in bytes."""
        return 0

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value, or none where it was encoded already as it is."""
        layout, changes = self.layout, self.layout.changes
        if layout.encoded == changes != self.encoded and not first:
            return []
        value = pb.Summary.Value(tag=TAG, tensor=_event.strings([layout.proto().SerializeToString()]))
        layout.encoded = self.encoded = changes
        if first:
            value.metadata.CopyFrom(_event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR))
        return [value]


def _chart(title: str, chart: Chart) -> plugins.Chart:
    if chart.kind == "Multiline":
        return plugins.Chart(title=title, multiline=plugins.MultilineChartContent(tag=chart.tags))
    value, lower, upper = chart.tags
    series = plugins.MarginChartContent.Series(value=value, lower=lower, upper=upper)
    return plugins.Chart(title=title, margin=plugins.MarginChartContent(series=[series]))


def decode_layout(data: bytes) -> dict[str, dict[str, Chart]] | None:
    """Return a stored layout in the form that `check_layout` takes, or None where it is damaged."""
    try:
        layout = parsed(plugins.Layout, data)
    except ValueError:
        return None
    return {category.title: {chart.title: _decoded(chart) for chart in category.chart} for category in layout.category}


def _decoded(chart: plugins.Chart) -> Chart:
    if chart.WhichOneof("content") == "margin":
        return Chart("Margin", tuple(tag for one in chart.margin.series for tag in (one.value, one.lower, one.upper)))
    return Chart("Multiline", tuple(chart.multiline.tag))
