"""Hyper-parameters of a run: what a session starts with, and how it ends."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._pb import tfevents_pb2 as pb
from tbwriter._summary import _event
from tbwriter._summary._parsing import parsed
from tbwriter._summary._values import as_number, items_of, text_of
from tbwriter._summary._words import check_tag, describe, dtype_name, shown

PLUGIN = "hparams"
EXPERIMENT_TAG = "_hparams_/experiment"
START_TAG = "_hparams_/session_start_info"
END_TAG = "_hparams_/session_end_info"

HParam = bool | float | str


@dataclass(frozen=True)
class HParams:
    """A tag that stands for hyper-parameters; all is in its metadata."""

    tag: str
    content: bytes

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return len(self.content)

    def values(self, first: bool) -> Sequence[pb.Summary.Value]:
        """Return the one Value, with its metadata each time: it holds nothing else."""
        del first
        # Without a tensor, readers drop a Value that has a data class.
        nothing = pb.TensorProto(dtype=pb.DT_FLOAT, tensor_shape=_event.shape(0))
        metadata = _event.metadata(PLUGIN, pb.DATA_CLASS_TENSOR, content=self.content)
        return [pb.Summary.Value(tag=self.tag, tensor=nothing, metadata=metadata)]


def check_hparams(hparams: Any) -> dict[str, HParam]:
    """Return hyper-parameters as TensorBoard knows them: bool, numbers and text.

    NumPy's and 0-d arrays are numbers; anything else is stored as its text, and so are NaN and infinite numbers, which
    TensorBoard leaves out. None is left out.

    Raises:
        TypeError: no mapping of names, or a value without a text.
    """
    if not isinstance(hparams, Mapping):
        raise TypeError(f"hparam_dict must be a mapping of name to value, got {describe(hparams)}")
    checked = {}
    for given, value in hparams.items():
        if value is not None:
            name = check_tag(given, "a name in hparam_dict")
            checked[name] = _check_value(f"hparam_dict[{shown(name)}]", value)
    return checked


def _check_value(what: str, value: Any) -> HParam:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (str, bytes)):  # NumPy's among them, which have a dtype too
        return text_of(value, what)
    name = getattr(value, "__name__", None) if callable(value) else None
    if isinstance(name, str):
        return text_of(name, what)
    if isinstance(value, numbers.Number) or dtype_name(value):
        try:
            number = as_number(value, what)
        except (TypeError, ValueError):
            # A complex number or a date; or an array, which is never printed.
            return text_of(value, what) if isinstance(value, (np.generic, numbers.Number)) else describe(value)
        if dtype_name(value).rpartition(".")[2] in ("bool", "bool_"):
            return bool(number)
        return number if math.isfinite(number) else str(number)
    return text_of(value, what)


def trial_start(hparams: Mapping[str, HParam], start_time: float) -> HParams:
    """Return the summary of a session that begins with `hparams` at `start_time`, in seconds since 1970."""
    info = plugins.SessionStartInfo(start_time_secs=start_time)
    for name, value in hparams.items():
        _set(info.hparams[name], value)
    return _summary(START_TAG, plugins.HParamsPluginData(session_start_info=info))


def trial_end(*, failed: bool, end_time: float) -> HParams:
    """Return the summary of a session that ended."""
    status = plugins.STATUS_FAILURE if failed else plugins.STATUS_SUCCESS
    info = plugins.SessionEndInfo(status=status, end_time_secs=end_time)
    return _summary(END_TAG, plugins.HParamsPluginData(session_end_info=info))


def experiment(hparams: Mapping[str, HParam], metrics: Sequence[str], domains: Any) -> HParams:
    """Return the summary that declares columns and the values that they can take.

    TensorBoard takes the columns of all runs from one such summary, whichever it meets first.

    Args:
        hparams: as checked.
        metrics: the tags of the metrics.
        domains: name -> list of values, of hyper-parameters in `hparams`.

    Raises:
        TypeError: no such mapping. ValueError: a name that `hparams` lacks, or values of another type.
    """
    if not isinstance(domains, Mapping):
        raise TypeError(f"hparam_domain_discrete must be a mapping of name to list, got {describe(domains)}")
    unknown = [name for name in domains if name not in hparams]
    if unknown:
        raise ValueError(f"hparam_domain_discrete names {describe(unknown)}, which hparam_dict lacks")
    infos = []
    for name, value in hparams.items():
        info = plugins.HParamInfo(name=name, type=_type(value))
        if name in domains:
            allowed = domains[name]
            where, want = f"hparam_domain_discrete[{shown(name)}]", f"a list of values like {describe(value)}"
            given = [] if isinstance(allowed, str) else items_of(allowed, where, want)
            checked = [_check_value(where, one) for one in given]
            if not checked or {_type(one) for one in checked} != {info.type}:
                raise ValueError(f"{where} must be {want}, got {describe(allowed)}")
            for one in checked:
                _set(info.domain_discrete.values.add(), one)
        infos.append(info)
    metric_infos = [plugins.MetricInfo(name=plugins.MetricName(tag=tag)) for tag in metrics]
    content = plugins.Experiment(hparam_infos=infos, metric_infos=metric_infos)
    return _summary(EXPERIMENT_TAG, plugins.HParamsPluginData(experiment=content))


def _summary(tag: str, data: plugins.HParamsPluginData) -> HParams:
    return HParams(tag, data.SerializeToString(deterministic=True))


def _type(value: HParam) -> plugins.DataType:
    if isinstance(value, bool):
        return plugins.DATA_TYPE_BOOL
    return plugins.DATA_TYPE_STRING if isinstance(value, str) else plugins.DATA_TYPE_FLOAT64


def _set(target: Any, value: HParam) -> None:
    if isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    else:
        target.number_value = value


def decode_hparams(content: bytes) -> dict[str, Any] | None:
    """Return what the metadata of a tag of hyper-parameters says, or None where it is damaged."""
    try:
        data = parsed(plugins.HParamsPluginData, content)
    except ValueError:
        return None
    kind = data.WhichOneof("data")
    if kind == "session_start_info":
        start = data.session_start_info
        return {
            "hparams": {name: _plain(value) for name, value in sorted(start.hparams.items())},
            "group_name": start.group_name,
            "start_time_secs": start.start_time_secs,
        }
    if kind == "session_end_info":
        end = data.session_end_info
        known = end.status in plugins.Status.values()
        status = plugins.Status.Name(end.status) if known else str(end.status)
        return {"status": status, "end_time_secs": end.end_time_secs}
    if kind == "experiment":
        return {
            "hparams": [info.name for info in data.experiment.hparam_infos],
            "metrics": [info.name.tag for info in data.experiment.metric_infos],
        }
    return None


def _plain(value: Any) -> HParam | None:
    kind = value.WhichOneof("kind")
    return getattr(value, kind) if kind in ("bool_value", "number_value", "string_value") else None
