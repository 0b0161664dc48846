"""The keys of MindSpore's SummaryCollector, as collectors of this package."""

from collections.abc import Mapping
from typing import Any

from msbridge._checks import checked_bool, checked_count
from msbridge.collectors import (
    Collector,
    EvalMetrics,
    Graph,
    HyperParameters,
    InputImages,
    Loss,
    SummaryOps,
    WeightHistogram,
    default_collectors,
)

_SWITCHES = ("collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage", "collect_input_data")
_REFUSED = {
    "collect_dataset_graph": "TensorBoard has no view of a dataset's graph",
    "collect_landscape": "it writes checkpoints at every step, and TensorBoard has no view of a loss landscape",
}


def collectors_of(
    specified: Mapping[str, Any] | None, keep_default_action: bool, custom_lineage_data: Mapping[str, Any] | None
) -> list[Collector]:
    """Give the collectors for `collect_specified_data`, `keep_default_action` and `custom_lineage_data`.

    With `keep_default_action` what is not named is as SummaryCollector has it by default, but for the data that are
    refused, and the default curves of this package are drawn besides; without it only what is named is collected.
    What the network's own summary operators give is collected always, as SummaryCollector does.

    Raises:
        TypeError, ValueError: a key or a value that SummaryCollector does not have, or that cannot be honoured.
    """
    if specified is not None and not isinstance(specified, Mapping):
        raise TypeError(f"collect_specified_data must be a dict, got {specified!r}")
    specified = dict(specified or {})
    for key, value in specified.items():
        _check(key, value)
    lineage = lineage_of(custom_lineage_data)

    def wanted(key: str) -> bool:
        return bool(specified.get(key, keep_default_action))

    found: list[Collector] = default_collectors() if keep_default_action else []
    left_out = tuple(
        kind for key, kind in (("collect_metric", Loss), ("collect_eval_lineage", EvalMetrics)) if not wanted(key)
    )
    found = [collector for collector in found if not isinstance(collector, left_out)]
    if not keep_default_action:
        found += [Loss()] if wanted("collect_metric") else []
        found += [EvalMetrics()] if wanted("collect_eval_lineage") else []
    found += [Graph()] if wanted("collect_graph") else []
    found += [InputImages()] if wanted("collect_input_data") else []
    found += lineage or ([HyperParameters()] if wanted("collect_train_lineage") else [])
    pattern = specified.get("histogram_regular")
    if pattern is not None or keep_default_action:
        found.append(WeightHistogram(pattern))
    return [*found, SummaryOps()]


def lineage_of(custom_lineage_data: Mapping[str, Any] | None) -> list[Collector]:
    """Give the collector of `custom_lineage_data`, if there are any.

    Raises:
        TypeError: SummaryCollector refuses them.
    """
    custom = _checked_lineage(custom_lineage_data)
    return [HyperParameters(custom)] if custom else []


def check_unused(export_options: Any, num_process: Any) -> None:
    """Check the keys that have no effect here.

    Raises:
        TypeError, ValueError: they are wrong, or ask for what is not there.
    """
    if export_options is not None:
        if not isinstance(export_options, Mapping):
            raise TypeError(f"export_options must be a dict, got {export_options!r}")
        raise ValueError(
            f"export_options={export_options!r} is not supported: tensors stand in the event files, "
            "tbwriter.read_events gives them back as arrays"
        )
    if num_process is not None:
        checked_count("num_process", num_process, least=1)


def _check(key: object, value: Any) -> None:
    if not isinstance(key, str):
        raise TypeError(f"collect_specified_data: a key must be a text, got {key!r}")
    if key in _REFUSED:
        if value:
            raise ValueError(f"collect_specified_data: {key} is not supported: {_REFUSED[key]}; leave it out")
    elif key in _SWITCHES:
        checked_bool(f"collect_specified_data: {key}", value)
    elif key == "histogram_regular":
        if value is not None and not isinstance(value, str):
            raise TypeError(f"collect_specified_data: histogram_regular must be a regular expression, got {value!r}")
    else:
        known = ", ".join((*_SWITCHES, "histogram_regular", *_REFUSED))
        raise ValueError(f"collect_specified_data has no key {key!r}, want some of {known}")


def _checked_lineage(custom: Mapping[str, Any] | None) -> dict[str, Any]:
    if custom is None:
        return {}
    if not isinstance(custom, Mapping):
        raise TypeError(f"custom_lineage_data must be a dict, got {custom!r}")
    for key, value in custom.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise TypeError(f"custom_lineage_data must map texts to texts or numbers, got {key!r}: {value!r}")
    return dict(custom)
