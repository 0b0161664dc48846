"""The callback that goes into `Model.train`, `Model.fit` or `Model.eval`.

Over 300 lines: one class, whose docstring is the reference that users read.
"""

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from mindspore.train.callback import Callback

from msbridge._checks import checked_bool, checked_count, checked_tags
from msbridge._device import checked_scalar
from msbridge._reduce import REDUCED_TAGS, Reducer, Reduction, check_reduce
from msbridge._run import Ranks, StepCounter, check_directory, check_ranks, find_rank, first_writing, writes
from msbridge._schedule import CollectFreq, Schedule, Several
from msbridge._stage import Stage
from msbridge._summary_collector import check_unused, collectors_of, lineage_of
from msbridge._tape import Series
from msbridge._training import WatchedTraining
from msbridge._unseen import Unseen
from msbridge.actions import Bound, TrainingAction
from msbridge.collectors import Collector, HyperParameters, MovingAverage, Value, default_collectors
from tbwriter import SinkError, SummaryWriter
from tbwriter._logger import get_logger
from tbwriter.sinks import normalise
from tbwriter.watch import Missing, Rule, Watch

_CLOSE_SECS = 10.0
_NEVER = (1 << 63) - 1
_TRANSFER_SECS = 0.5
_MOST_TRANSFER_SECS = 4.0  # without `flush_secs`, where the machine is so busy that transfers take long

_taken: set[str] = set()  # directories, with ranks, into which a callback of this process writes now

_log = get_logger(__name__)

Hook = TypeVar("Hook", bound=Callable[..., Any])


def _guarded(hook: Hook) -> Hook:
    """Keep a hook's errors out of the training loop: say the first one and switch the callback off."""

    @functools.wraps(hook)
    def guarded(self: "TensorBoardCallback", run_context: Any) -> Any:
        if self._off:
            return None
        try:
            return hook(self, run_context)
        except Exception as error:
            if isinstance(error, SinkError) and self._strict:
                raise
            self._switch_off(f"{hook.__name__} failed: {type(error).__name__}: {error}")
            return None

    return guarded  # type: ignore[return-value]


class TensorBoardCallback(Callback):  # type: ignore[misc]
    """Write the curves of a training into `summary_dir/rank_N`.

    By default: `train/loss`, `train/learning_rate` and `train/grad_norm` of every step, `train/loss_scale` and
    `train/overflow` where the step returns them, `train/step_time`, `train/samples_per_sec`, `train/tokens_per_sec`
    with `tokens_per_step`, `train/epoch`, and `val/<metric>` after an evaluation. Steps count from 1 and go on over
    epochs, over several trainings with one callback, and after a resume.

    The training is never changed: weights are bit for bit those without the callback. No exception reaches the loop,
    but SinkError with `strict`. Collections leave their values on the device; those that come within half of
    `flush_secs` share one copy to the host. Other steps cost none.

    In data-sink mode MindSpore calls once a sink. `collect_freq` still counts steps: a sink is collected when a step
    inside it is due. Loss, gradient norm and learning rate are those of every step.

    The directory is `rank_0` for a single process too, so that a run that goes on with more devices keeps its place.

    Args:
        summary_dir: a path, `~`, `os.PathLike`, or a URL such as `s3://bucket/run`. Not used with `writer`.
        collect_freq: every n steps (`step % n == 0`), a schedule such as `{0: 1, 1000: 50}`, or a callable that is
            given the step and answers yes, no or a frequency. The first step is always collected.
        collectors: what to collect, instead of `default_collectors()`.
        collect_tensor_freq: as `collect_freq`, for histograms and images that have no frequency of their own.
        collect_specified_data, keep_default_action, custom_lineage_data: as SummaryCollector has them: collectors
            for what it collects (docs/mindspore.md). Instead of `collectors`.
        export_options, num_process: SummaryCollector's too: the first is refused, the second has no effect, as there.
        ranks: which ranks write: "all", "first", "last", some ranks, or a callable that is given the rank.
        reduce: what to make of `reduce_tags` over all ranks, of "mean", "min", "max" and "argmax" (the rank of the
            largest): `train/loss/mean`, `train/step_time/argmax_rank` and so on, written by the first rank that writes.
            One AllGather at each collection of `collect_freq`, none at other steps. The schedule must be the same on
            all ranks, `set_collect_freq` called on all of them at the same step.
        reduce_tags: of which scalars; also of `record`. A rank without one is left out.
        alerts: rules of `tbwriter.watch`, on every step's value of every scalar that is drawn here; they are logged,
            written as text `alerts/<tag>`, and handed to their actions, such as StopTraining.
        tokens_per_step: tokens this process trains in a step.
        writer: where to write instead. It is flushed when a training ends and stays open.
        initial_step: the steps trained before, where `initial_epoch` of `Model.train` does not tell.
        purge_step: voids what an earlier session wrote from there on. A training that resumes, by `initial_epoch` or
            `initial_step`, needs none: it voids what lies beyond its start.
        flush_secs: the longest time from a collection until its values are visible to other processes. None is 1.5 s,
            and longer where SummaryWriter's own is, or where a transfer takes more than 0.2 % of that: 5 s at most.
        max_file_size, max_file_age, filename_suffix, storage_options, max_queue_bytes, on_full, block_secs, strict: as
            SummaryWriter has them.

    Raises:
        TypeError, ValueError: an argument is wrong. NotADirectoryError: `summary_dir` is a file, or below one.
    """

    _off: bool = False
    _opened: bool = False  # this callback has written here before
    _ended: bool = False  # on_train_end has come
    _inner_depth: int = 0  # of a training inside the watched one, while that runs

    def __init__(
        self,
        summary_dir: str | os.PathLike[str] | None,
        collect_freq: CollectFreq = 10,
        *,
        collectors: Sequence[Collector] | None = None,
        collect_tensor_freq: CollectFreq | None = None,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, Any] | None = None,
        export_options: Any = None,
        num_process: int | None = None,
        ranks: Ranks = "all",
        reduce: Sequence[Reduction] = (),
        reduce_tags: Sequence[str] = REDUCED_TAGS,
        alerts: Sequence[Rule] = (),
        tokens_per_step: int | None = None,
        writer: SummaryWriter | None = None,
        initial_step: int | None = None,
        purge_step: int | None = None,
        flush_secs: float | None = None,
        max_file_size: int | None = None,
        max_file_age: float | None = None,
        filename_suffix: str = "",
        storage_options: Mapping[str, Any] | None = None,
        max_queue_bytes: int = 64 << 20,
        on_full: Literal["block", "drop", "raise"] = "block",
        block_secs: float = 5.0,
        strict: bool = False,
    ) -> None:
        super().__init__()
        _check_place(summary_dir, writer)
        checked_bool("keep_default_action", keep_default_action)
        checked_bool("strict", strict)
        check_unused(export_options, num_process)
        if collect_specified_data is not None or not keep_default_action:
            if collectors is not None:
                raise ValueError("collectors and collect_specified_data choose the same thing; give one of them")
            collectors = collectors_of(collect_specified_data, keep_default_action, custom_lineage_data)
        elif custom_lineage_data is not None:
            collectors = [*_checked(collectors, None), *lineage_of(custom_lineage_data)]
        self._collectors = _checked(collectors, getattr(summary_dir, "parameters", None))
        for name, number in (("tokens_per_step", tokens_per_step), ("initial_step", initial_step)):
            if number is not None:
                checked_count(name, number, least=0)
        self.schedule: Schedule | Several = Schedule(collect_freq)
        self._chosen = self.schedule
        self._raised: dict[object, Schedule] = {}  # by the actions that collect more for a while
        self._heavy_schedule = (
            None if collect_tensor_freq is None else Schedule(collect_tensor_freq, "collect_tensor_freq")
        )
        self._ranks = check_ranks(ranks)
        self._reduce = check_reduce(reduce)
        self._reduce_tags = checked_tags("reduce_tags", reduce_tags)
        self._watch = Watch(_rules(alerts))
        self._unseen = Unseen(_awaited(self._watch.rules, self._collectors, self._reduce, self._reduce_tags))
        self._evaluation = Stage(self._collectors, self._observe if self._watch.rules or self._unseen else None)
        self._actions = [then for rule in self._watch.rules for then in rule.then if isinstance(then, TrainingAction)]
        self._writes = False  # whether this rank does
        self._is_alone_said = False
        self._is_silence_said = False
        self._tokens_per_step = tokens_per_step
        self._given_writer = writer
        self._make_writer: functools.partial[SummaryWriter] | None = None
        self._strict = strict or writer is not None  # a writer that is not strict raises no SinkError
        self._purge_step = purge_step
        # Half of it for the transfer, half for the writer. What is no number is left to the writer to refuse.
        half_flush_secs = flush_secs / 2 if isinstance(flush_secs, int | float) else flush_secs
        if writer is None:
            assert summary_dir is not None
            directory = normalise(summary_dir, "summary_dir")  # now: the training may change directory
            check_directory(directory)
            self._make_writer = functools.partial(
                SummaryWriter, directory, flush_secs=half_flush_secs, filename_suffix=filename_suffix,
                storage_options=storage_options, max_file_size=max_file_size, max_file_age=max_file_age,
                max_queue_bytes=max_queue_bytes, on_full=on_full, block_secs=block_secs, strict=strict,
            )  # fmt: skip
            # Wrong options must raise here, where the user stands, not at the first epoch.
            self._make_writer(purge_step=purge_step, write_to_disk=False).close()
        self._writer: SummaryWriter | None = None
        self._place = ""  # where it writes
        self._transfer_secs = (
            (_TRANSFER_SECS, _MOST_TRANSFER_SECS) if half_flush_secs is None else (half_flush_secs, half_flush_secs)
        )
        self._params: Any = None  # MindSpore's, of the newest step
        self._depth = 0  # of `with`: Model.fit enters once more for each validation
        self._steps = StepCounter(initial_step)
        self._recorded: dict[str, Value] = {}
        self._training: WatchedTraining | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Let a callback be copied or pickled before and after a training.

        Raises:
            TypeError: a training runs.
        """
        if self._training is not None or self._writer is not None:
            raise TypeError(f"a {type(self).__name__} cannot be copied while its training runs")
        return self.__dict__

    def set_collect_freq(self, collect_freq: CollectFreq) -> None:
        """Change what is collected, from the next step on; the same kinds of value as the constructor's.

        Raises:
            TypeError, ValueError: it is wrong.
        """
        self._chosen = Schedule(collect_freq)
        self._choose_schedule()

    def raise_collect_freq(self, who: object, collect_freq: CollectFreq | None) -> None:
        """Collect these steps besides, until `who` says None. For RaiseCollectFreq."""
        self._raised.pop(who, None)
        if collect_freq is not None:
            self._raised[who] = Schedule(collect_freq)
        self._choose_schedule()

    def _choose_schedule(self) -> None:
        self.schedule = Several([self._chosen, *self._raised.values()]) if self._raised else self._chosen

    def record(self, values: Mapping[str, Value]) -> None:
        """Add {tag: number or device tensor with one element} to the next collection and its one copy.

        Call it from the training thread. A tensor is taken as it is now. Of several values for one tag the last one
        counts.

        Raises:
            TypeError, ValueError: a value is no number, or a tag no text.
        """
        for tag, value in values.items():
            if not isinstance(tag, str) or not tag:
                raise TypeError(f"record: a tag must be a text that is not empty, got {tag!r}")
            self._recorded[tag] = checked_scalar(value, f"record: tag {tag!r}")

    def __enter__(self) -> "TensorBoardCallback":
        self._depth += 1
        return self

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        if self._depth < self._inner_depth:
            self._inner_depth = 0
        if self._depth == 0:
            self._finish(failing=exc[0] is not None)

    @_guarded
    def on_train_begin(self, run_context: Any) -> None:
        """Put the tap in, before the graph is compiled."""
        params = run_context.original_args()
        if self._training is not None:
            if self._params is params:
                return  # this callback stands in the list twice
            if self._depth and not self._ended:
                self._inner_depth = self._depth
                _log.warning("a training inside the watched one is not drawn: it needs a callback of its own")
                return
            self._finish(failing=True)
        self._ended = False
        if self._is_writing_rank() or self._reduce:
            self._params = params
            self._steps.begin(params)
            self._training = WatchedTraining(
                params, self._collectors, self._steps, self._tokens_per_step, self._transfer_secs,
                heavy_schedule=self._heavy_schedule, reducer=self._make_reducer(),
                observe=self._observe if self._watch.rules or self._unseen else None,
            )  # fmt: skip
            optimizer = params.get("optimizer") or getattr(params.train_network, "optimizer", None)
            for action in self._actions:
                action.bound = Bound(run_context, optimizer, self, self._rank.size)
            if not self._writes:
                self._training.silence()

    @_guarded
    def on_train_epoch_begin(self, run_context: Any) -> None:
        """Open the event file at the first epoch, when the first step's number is known."""
        if self._training is not None:
            params = run_context.original_args()
            self._training.begin_steps(params)
            if self._writes and self._writer is None:
                self._begin_steps(self._training, params)

    @_guarded
    def on_train_step_begin(self, run_context: Any) -> None:
        """Reach the graph of data-sink mode before it is compiled; nothing otherwise."""
        if self._training is not None and self._training.in_sink:
            self._training.begin_step(run_context.original_args())

    def on_train_step_end(self, run_context: Any) -> None:
        """Collect the step, or only note that it ended."""
        if self._writes and not self._off:
            self._end_step(run_context)
        elif self._training is not None and self._training.takes_part:
            try:
                self._training.take_part(run_context.original_args(), self.schedule)
            except Exception as error:
                if not self._is_alone_said:
                    _log.warning("this rank takes no part in `reduce`: %s: %s", type(error).__name__, error)
                self._is_alone_said = True

    @_guarded
    def _end_step(self, run_context: Any) -> None:
        if self._training is not None and not self._inner_depth:
            params = self._params = run_context.original_args()
            writer = self._begin_steps(self._training, params) if self._writer is None else self._writer
            self._training.end_step(params, self.schedule, self._take_recorded, writer)
            for action in self._actions:
                action.after_step(self._steps.last)

    @_guarded
    def on_train_end(self, run_context: Any) -> None:
        """End here only where nobody uses the callback as a context manager, as Model does."""
        self._ended = not self._inner_depth
        for action in self._actions:
            if action.bound is not None and self._ended:
                action.bound.is_over = True
        if self._depth == 0:
            self._finish(failing=False)

    @_guarded
    def on_eval_begin(self, run_context: Any) -> None:
        """Stop the clock: validation is no training time."""
        if self._training is not None:
            if self._writer is not None:
                self._training.deliver(self._writer)
            self._training.clock.pause()

    @_guarded
    def on_eval_end(self, run_context: Any) -> None:
        """Write the metrics as `val/<metric>` at the step the training has got to, and show them to the rules."""
        if not self._writes if self._training is not None else not self._is_writing_rank():
            return
        params = run_context.original_args()
        evaluated = params.get("metrics") or {}, params.get("eval_results") or {}
        if self._writer is None:
            # An evaluation on its own voids nothing of what a training wrote.
            self._writer = self._watch.writer = self._open(purge_step=_NEVER)
        self._evaluation.evaluate(self._steps.last, *evaluated, self._writer)
        if self._training is not None:
            self._training.clock.resume()
        elif self._depth == 0:
            self._finish(failing=False)

    def _is_writing_rank(self) -> bool:
        self._rank = find_rank()
        self._writes = writes(self._rank, self._ranks)
        if not (self._writes or self._is_silence_said):
            self._is_silence_said = True
            rank, ranks = self._rank, self._ranks
            if first_writing(rank.size, ranks) is None:
                _log.warning("nothing is written: ranks=%r leaves out all %d ranks", ranks, rank.size)
            else:
                _log.info("rank %d of %d writes nothing: ranks=%r", rank.rank, rank.size, ranks)
        return self._writes

    def _make_reducer(self) -> Reducer | None:
        if not self._reduce:
            return None
        draws = first_writing(self._rank.size, self._ranks) == self._rank.rank
        return Reducer(self._reduce, self._reduce_tags, self._rank, draws=draws)

    @property
    def reduces(self) -> bool:
        """Whether ranks reduce together, and so need one schedule."""
        return bool(self._reduce)

    def _observe(self, found: Mapping[str, Series]) -> None:
        for action in self._actions:
            if action.bound is not None:
                action.bound.step = self._steps.last
        if self._unseen:
            self._unseen.see(found)
        self._watch.observe_many({tag: (s.steps.tolist(), s.values.tolist()) for tag, s in found.items()})

    def _take_recorded(self) -> Mapping[str, Value]:
        recorded, self._recorded = self._recorded, {}
        return recorded

    def _begin_steps(self, training: WatchedTraining, params: Any) -> SummaryWriter:
        done = training.begin_steps(params)
        writer = self._open(purge_step=done + 1 if done or self._opened else None)
        self._writer = self._watch.writer = writer
        return writer

    def _open(self, purge_step: int | None) -> SummaryWriter:
        self._opened = True
        if self._make_writer is None:
            assert self._given_writer is not None
            return self._given_writer
        self._claim(os.path.join(self._make_writer.args[0], str(self._rank.rank)))
        if self._purge_step is not None:
            purge_step, self._purge_step = self._purge_step, None  # it was meant for the first session
        return self._make_writer(purge_step=purge_step, rank=self._rank.rank)

    def _claim(self, place: str) -> None:
        if place in _taken:
            raise ValueError(f"another callback writes there: give {type(self).__name__} a summary_dir of its own")
        _taken.add(place)
        self._place = place

    def _finish(self, *, failing: bool) -> None:
        """Take the tap out; close the file, or flush the user's. While the training fails, never raise over it."""
        training, self._training = self._training, None
        writer, self._writer = self._writer, None
        try:
            if training is not None:
                recorded = self._take_recorded()
                if writer is not None and not self._off and self._params is not None:
                    training.finish(recorded, self._params, writer)
        except Exception as error:
            _log.warning("the last steps are not drawn: %s: %s", type(error).__name__, error)
        if training is not None and writer is not None and not failing:
            self._unseen.tell()
        self._params = None  # it holds the network and the dataset
        for action in self._actions:
            action.bound = None
        try:
            if training is not None:
                training.stop()
            if writer is None:
                return
            if writer is self._given_writer:
                writer.flush(_CLOSE_SECS)
            else:
                _taken.discard(self._place)
                writer.close(_CLOSE_SECS)
        except Exception as error:
            if isinstance(error, SinkError) and self._strict and not failing:
                raise
            _log.warning("the end of the event file failed: %s: %s", type(error).__name__, error)

    def _switch_off(self, why: str) -> None:
        self._off = True
        _log.warning("the TensorBoard callback is switched off, the training goes on: %s", why)
        try:
            if self._training is not None:
                self._training.silence()
        except Exception as error:
            _log.warning("the gradient tap stays in: %s: %s", type(error).__name__, error)


def _check_place(summary_dir: object, writer: object) -> None:
    if writer is None and not isinstance(summary_dir, str | os.PathLike):
        raise TypeError(
            f"summary_dir must be a directory (a path or a URL) when no writer is given, got {summary_dir!r}"
        )
    if writer is not None and not isinstance(writer, SummaryWriter):
        raise TypeError(f"writer must be a tbwriter.SummaryWriter, got {writer!r}")


def _checked(collectors: Sequence[Collector] | None, parameters: Mapping[str, Any] | None) -> list[Collector]:
    """Give the collectors, and one for what `run_dir` named the directory after."""
    if collectors is not None and not isinstance(collectors, Iterable):
        raise TypeError(f"collectors must be a list of Collector objects, got {collectors!r}")
    found = default_collectors() if collectors is None else list(collectors)
    for collector in found:
        if not isinstance(collector, Collector):
            raise TypeError(f"collectors must be Collector objects, got {collector!r}")
    if parameters and not any(isinstance(collector, HyperParameters) for collector in found):
        found.append(HyperParameters(parameters))
    return found


def _rules(alerts: Sequence[Rule]) -> Sequence[Rule]:
    if not isinstance(alerts, Iterable):
        raise TypeError(f"alerts must be a list of rules of tbwriter.watch, got {alerts!r}")
    return alerts


def _awaited(
    rules: Sequence[Rule], collectors: Sequence[Collector], reduce: Sequence[Reduction], reduce_tags: Sequence[str]
) -> list[tuple[str, str]]:
    """Give who waits for which tag; of the reduced ones only those that were asked for by name."""
    found = [(type(rule).__name__, rule.tag) for rule in rules if not isinstance(rule, Missing)]
    found += [(collector.name, collector.tag) for collector in collectors if isinstance(collector, MovingAverage)]
    return found + [("reduce", f"{tag}/{reduce[0]}*") for tag in reduce_tags if reduce and tag not in REDUCED_TAGS]
