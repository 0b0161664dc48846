"""The methods behind dashboards of their own: PR curves, meshes, hyper-parameters and custom scalars."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tbwriter import _summary, sinks
from tbwriter._entries import Entry, Pending, SubRun
from tbwriter._logger import get_logger
from tbwriter._methods._scalars import ScalarMethods

_log = get_logger(__name__)


class ChartMethods(ScalarMethods):
    """PR curves, meshes, hyper-parameters, custom scalars."""

    def _tb_begin_anew(self) -> None:
        super()._tb_begin_anew()
        self._tb_layout = _summary.Layout()
        self._tb_trial: dict[str, dict[str, _summary.HParam]] = {}  # "" -> the hyper-parameters of the run itself
        self._tb_trial_metrics: set[str] = set()  # tags of the run itself that come from add_hparams
        self._tb_trial_curves: set[str] = set()  # tags that do not, and were told
        self._tb_trial_numbers = itertools.count(1)
        self._tb_failed = False  # whether the `with` block of the run was left by an exception

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add a precision-recall curve; the counting happens in the worker.

        Args:
            tag: as in `add_scalar`.
            labels: the truth, bool or from 0 to 1, of any shape.
            predictions: as many probabilities from 0 to 1. What is NaN, here or in the others, is left out, what lies
                beyond is taken as 0 or 1; both are said once a tag.
            global_step: as in `add_scalar`.
            num_thresholds: how many, equally spaced from 0 to 1; from 2 to 100,000.
            weights: a number, or one for each prediction; together within float32.
            walltime: as in `add_scalar`.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shapes, dtypes or numbers do not fit. WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        curve = _summary.PrCurve.of(
            tag,
            labels,
            predictions,
            num_thresholds=num_thresholds,
            weights=weights,
            copy=copy,
            told=self._tb_told,
        )
        self._tb_add(tag, curve, "PR curve", global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a precision-recall curve that was computed elsewhere.

        Args:
            tag: as in `add_scalar`.
            true_positive_counts: one for each threshold, the thresholds equally spaced from 0 to 1; so are the others.
                Finite as float32: TensorBoard fails for the whole tag otherwise.
            false_positive_counts: see there.
            true_negative_counts: see there.
            false_negative_counts: see there.
            precision: one for each threshold; NaN is 0/0.
            recall: see there.
            global_step: as in `add_scalar`.
            num_thresholds: for torch's sake; how many there are is what the arrays say.
            weights: for torch's sake; the counts hold them already.
            walltime: as in `add_scalar`.

        Raises:
            TypeError, ValueError: no such numbers, or of different lengths. WriterClosedError: after `close`.
        """
        del weights
        tag = _summary.check_tag(tag)
        _summary.as_thresholds(tag, num_thresholds)
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        self._tb_add(tag, _summary.PrCurveRaw.of(tag, rows), "PR curve", global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
        *,
        copy: bool = True,
    ) -> None:
        """Add a batch of meshes or point clouds.

        What a tag's first mesh is made of (colours, faces, config) stands for all of that tag: TensorBoard looks no
        further.

        Args:
            tag: as in `add_scalar`; stored as `<tag>_VERTEX`, `<tag>_COLOR` and `<tag>_FACE`.
            vertices: coordinates, of shape (batch, n, 3) or (n, 3).
            colors: RGB of the vertices, of their shape: integers from 0 to 255; floats from 0 to 1, or to 255 where
                one is above 1.
            faces: for each the indices of three vertices, of shape (batch, m, 3) or (m, 3): whole numbers.
            config_dict: camera, lights and material for the view, as TensorBoard's mesh plugin takes them. JSON has
                neither NaN nor infinity.
            global_step: as in `add_scalar`.
            walltime: as in `add_scalar`.
            copy: as in `add_histogram`.

        Raises:
            TypeError, ValueError: shapes or dtypes do not fit, or the config is no JSON.
            WriterClosedError: after `close`.
        """
        tag = _summary.check_tag(tag)
        parts = _summary.mesh(tag, vertices, colors, faces, config_dict, copy=copy)
        self._tb_add_all(tag, parts, "mesh part", global_step, walltime)

    # -- hyper-parameters

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        *,
        hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None,
        run_name: str | None = None,
        name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Add hyper-parameters and metrics: a row of the HParams dashboard.

        They go into the run's own directory, beside its curves, and the row ends as a success with `close`, or as a
        failure where an exception leaves the `with` block. A second call with other hyper-parameters is another
        row: TensorBoard has one a directory, so that it goes into a sub-run, and so does a call with a `run_name`.

        Args:
            hparam_dict: name -> value. Bools, numbers and text are stored as such, anything else as its text, lists,
                NaN and infinity among it; None is left out.
            metric_dict: tag -> value, as in `add_scalar`; scalars of this run. Of a tag that is a curve already the
                table shows the last point, and the value is left out, and said, unless `global_step` places it:
                at step 0 it would void the curve in TensorBoard.
            hparam_domain_discrete: name -> the values that it can take. TensorBoard then takes the columns of all runs
                from this call: the hyper-parameters and metrics that it does not name vanish from the table.
            run_name: the sub-run's directory; "." is the run's own.
            name: tensorboardX's word for `run_name`.
            global_step: of the metrics, as in `add_scalar`.

        Raises:
            TypeError, ValueError: no mappings, metrics that are no numbers, or a name that is no directory below.
            WriterClosedError: after `close`.
        """
        hparams = _summary.check_hparams(hparam_dict)
        metrics = self._tb_checked_metrics(metric_dict, "metric_dict")
        step = self._tb_step_of(global_step, "hparams")
        wall_time = self._tb_wall_time(None, "hparams")
        starts = [_summary.trial_start(hparams, wall_time)]
        if hparam_domain_discrete is not None and (
            not isinstance(hparam_domain_discrete, Mapping) or hparam_domain_discrete
        ):
            starts.insert(0, _summary.experiment(hparams, list(metrics), hparam_domain_discrete))
        sub_run = self._tb_sub_run(run_name, name)
        if sub_run is None and self._tb_trial.get("", hparams) == hparams:
            # What is refused must not count as the run's own trial.
            for tag in metrics:
                self._tb_check_kind(tag, "scalar")
            for start in starts:
                self._tb_check_kind(start.tag, "hyper-parameter")
        # One step, so that of two threads one is the first.
        own = hparams if sub_run is not None else self._tb_trial.setdefault("", hparams)
        if own != hparams:
            sub_run = f"hparams_{time.time():.0f}_{next(self._tb_trial_numbers)}"
        if sub_run is not None:
            ended = _summary.trial_end(failed=False, end_time=wall_time)
            entries: list[Entry] = [Pending(summary, step, wall_time) for summary in (*starts, ended)]
            entries += [(tag, number, step, wall_time) for tag, number in metrics.items()]
            self._tb_put_all(SubRun(sub_run, entry) for entry in entries)
            return
        if global_step is None and self._tb_default_step is None:
            metrics = self._tb_without_curves(metrics)
        self._tb_trial_metrics.update(metrics)
        try:
            if own is hparams:
                self._tb_add_all("hparams", starts, "hyper-parameter", step, None, bounded=False)
        finally:
            # Also when strict raises here what an earlier call came upon.
            self._tb_add_metrics(metrics, step, None)

    def _tb_without_curves(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Leave out metrics whose tags were used by other calls: they have points at steps."""
        kept = {
            tag: value for tag, value in metrics.items() if tag not in self._tb_kinds or tag in self._tb_trial_metrics
        }
        for tag in metrics.keys() - kept.keys() - self._tb_trial_curves:
            self._tb_trial_curves.add(tag)
            _log.warning(
                "add_hparams: tag %s is a curve of this run, and the table shows its last point: %r is left out. "
                "global_step= adds it to the curve. Said once for this tag",
                _summary.shown(tag),
                metrics[tag],
            )
        return kept

    def _tb_sub_run(self, run_name: str | None, name: str | None) -> str | None:
        """Return the sub-run that is asked for, None for the run itself."""
        given = {"run_name": run_name, "name": name}
        texts = [_summary.check_text(one, what) for what, one in given.items() if one is not None]
        if len([text for text in texts if text]) > 1:
            first, second = map(_summary.shown, texts)
            raise ValueError(f"run_name={first} and name={second} are two names of one argument; give one")
        asked = "".join(texts)
        if not asked:
            return None
        if os.path.isabs(asked) and sinks.normalise(asked) == self._tb_settings.url:
            return None  # a way to have torch write into the run's own directory
        parts = [part for part in asked.split("/") if part != "."]
        if any(part in ("", "..") or "\0" in part or "\\" in part for part in parts):
            where = sinks.without_user(self._tb_settings.url)
            raise ValueError(f"run_name must name a directory below {where!r}, got {_summary.shown(asked)}")
        return "/".join(parts) or None

    def _tb_end_trial(self) -> None:
        """Say how the run ended, if it has a row: behind all else, room in the queue or not."""
        if self._tb_trial and self._tb_worker is not None and not self._tb_closed:
            wall_time = self._tb_wall_time(None, "hparams")
            end = _summary.trial_end(failed=self._tb_failed, end_time=wall_time)
            self._tb_queue.entries.append(Pending(end, 0, wall_time))

    # -- custom scalars

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Lay charts of several scalars out on the Custom Scalars dashboard.

        Several calls add up; a chart of the same category and title is replaced.

        Args:
            layout: {category: {title: ["Multiline", tags]}}, or ["Margin", [value, lower, upper]], both words in any
                case. Tags of a multiline chart are regular expressions that match from the start of a tag.

        Raises:
            TypeError, ValueError: another form. WriterClosedError: after `close`.
        """
        self._tb_add_layout(_summary.check_layout(layout))

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Add one chart with a line for each tag; see `add_custom_scalars`."""
        self._tb_add_chart("Multiline", tags, category, title)

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Add one chart of a value between bounds, `tags` being value, lower and upper; see `add_custom_scalars`."""
        self._tb_add_chart("Margin", tags, category, title)

    def _tb_add_chart(self, kind: str, tags: Any, category: Any, title: Any) -> None:
        category, title = _summary.check_tag(category, "category"), _summary.check_tag(title, "title")
        self._tb_add_layout({category: {title: _summary.check_chart(title, kind, tags)}})

    def _tb_add_layout(self, layout: dict[str, dict[str, _summary.Chart]]) -> None:
        self._tb_layout.update(layout)
        # The layout itself and no copy: of several calls, from whatever threads, the last one that is stored has all.
        self._tb_add("layout", _summary.CustomScalars(self._tb_layout), "layout", None, None, bounded=False)
