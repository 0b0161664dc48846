"""One training: its clock, its tap, and when what it collected goes to the host."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import mindspore as ms

from msbridge._clock import Clock
from msbridge._device import Transfer, touch_numpy
from msbridge._install import NoTapError, SinkLosses, install, remove, sink_losses
from msbridge._outputs import Outputs, parse_outputs
from msbridge._reduce import Reducer
from msbridge._run import StepCounter
from msbridge._schedule import Schedule, Several
from msbridge._stage import Collection, Stage
from msbridge._tape import Series, Tape
from msbridge.collectors._base import Collected, Collector, Context, History, Value
from msbridge.collectors._base import Training as Begin
from tbwriter import SummaryWriter

# Gradient accumulation calls the reducer every few steps only: so many silent transfers and steps are too many.
_MOST_SILENT, _MOST_SILENT_STEPS = 3, 64
_TRANSFER_SHARE = 0.002  # of the time, for transfers
_new_tuple = tuple.__new__


class WatchedTraining:
    """From `on_train_begin` to the end of that training. Owned by the training thread.

    A collection notes device tensors; a transfer copies what one or several collections noted. It is made at the first
    collection, then at a collection `transfer_secs` after the last transfer or, when none comes, one
    `transfer_secs` later; these are the first of the two given, up to the second where a transfer would take more than
    0.2 % of the time. So there is at most one transfer for each collection, and none at other steps unless
    collections fail to come as they did.
    """

    def __init__(
        self,
        params: Any,
        collectors: Iterable[Collector],
        steps: StepCounter,
        tokens_per_step: int | None,
        transfer_secs: tuple[float, float],
        observe: Callable[[Mapping[str, Series]], None] | None = None,
        heavy_schedule: Schedule | None = None,
        reducer: Reducer | None = None,
    ) -> None:
        if ms.get_context("mode") == ms.PYNATIVE_MODE:
            touch_numpy()
        self.clock = Clock(params)
        collectors = list(collectors)
        self._stage = Stage(collectors, observe, heavy_schedule)
        self._steps = steps
        self._tokens_per_step = tokens_per_step
        self._least_secs, self._most_secs = transfer_secs
        self._transfer_secs = self._least_secs
        self._reducer = reducer
        self._is_silent = False
        self._network = params.train_network
        self._optimizer = params.get("optimizer") or getattr(self._network, "optimizer", None)
        self._collected = 0  # the last step at which the callback's own schedule was due
        self._recorded: tuple[int, frozenset[str]] = (
            0,
            frozenset(),
        )  # the last step with recorded values, and their tags
        self._begun: int | None = None  # the steps done before
        self._brought = 0  # the last step of which everything is written
        self._last_transfer = 0.0  # monotonic
        self._transfer = Transfer()
        self._waiting: list[Collection] = []
        self._log: list[Collected] = []
        self._tape: Tape | None = None
        self._no_tap = ""
        self._silent = 0  # transfers in a row without a call of the tap
        self._silent_since = 0
        self._stage.begin(Begin(self._network, self._optimizer, params))
        sink_size = self._sink_size = params.get("sink_size", 1) if params.get("dataset_sink_mode") else 1
        self._sink: SinkLosses | None = None
        if sink_size > 1 and any(collector.uses_losses for collector in collectors):
            self._sink = sink_losses(self._network, sink_size)
        self._losses = None if self._sink is None else Tape(self._sink.tap)
        if any(collector.uses_tap for collector in collectors):
            try:
                patterns = [
                    [found for collector in collectors if (found := getattr(collector, kind)) is not None]
                    for kind in ("normed", "kept")
                ]
                self._tape = Tape(install(self._network, self._optimizer, sink_size, *patterns))
            except NoTapError as error:
                self._no_tap = params.get("no_tap") or str(error)

    def begin_steps(self, params: Any) -> int:
        """Begin with the first epoch; later epochs change nothing. Gives the steps done before."""
        if self._begun is not None:
            return self._begun
        done = self._begun = self._collected = self._brought = self._silent_since = self._steps.first_epoch(params)
        for tape in (self._tape, self._losses):
            if tape is not None:
                tape.begin(done)
        return done

    @property
    def in_sink(self) -> bool:
        """Whether a graph around the train cell is to be reached."""
        return self._sink is not None

    def begin_step(self, params: Any) -> None:
        """Let a graph around the train cell, if it is there now, note its losses."""
        if self._sink is not None:
            self._sink.step_begin(params.train_network)

    def end_step(
        self,
        params: Any,
        schedule: Schedule | Several,
        take_recorded: Callable[[], Mapping[str, Value]],
        writer: SummaryWriter,
    ) -> None:
        """Note that a step, or a sink, ended; collect it where it is due, the first one always."""
        is_first = self.clock.is_first
        step = self._steps.now(params)
        last, self._steps.last = self._steps.last, step
        if step == last and not is_first:
            return  # a callback that stands in the list twice
        self.clock.step_end(step, step - last, params)
        outputs = parse_outputs(params.get("net_outputs"))
        self._stage.note(step, outputs)
        if self._tape is not None:
            self._tape.keep(step, step - last)
        if self._losses is not None:
            self._losses.keep(step, step - last)
        due = self._stage.due(0 if is_first else last + 1, step)
        if is_first or schedule.due(last + 1, step):
            self._collect(params, outputs, [*self._stage.on_schedule(), *due], take_recorded(), on_schedule=True)
        elif due:
            self._collect(params, outputs, due, take_recorded(), on_schedule=False)
        elif (self._waiting or self._log) and time.perf_counter() - self._last_transfer > 2 * self._transfer_secs:
            self.deliver(writer)
            return
        else:
            return
        irregular = self._tape is not None and not self._tape.regular
        if is_first or irregular or time.perf_counter() - self._last_transfer >= self._transfer_secs:
            self.deliver(writer)

    def take_part(self, params: Any, schedule: Schedule | Several) -> None:
        """End a step on a rank that draws nothing, but whose values others want."""
        step = self._steps.now(params)
        last, self._steps.last = self._steps.last, step
        is_first = self.clock.is_first
        self.clock.step_end(step, step - last, params)
        if is_first or schedule.due(last + 1, step):
            outputs = parse_outputs(params.get("net_outputs"))
            self._collect(params, outputs, self._stage.on_schedule(), {}, on_schedule=True)

    def finish(self, recorded: Mapping[str, Value], params: Any, writer: SummaryWriter) -> None:
        """Write, at the training's end, what waits for a transfer that will not come: one more copy."""
        if self.clock.is_first:
            return
        step, drawn = self._recorded
        if step == self._steps.last:  # a callback behind this one recorded once more: a step has one value
            recorded = {tag: value for tag, value in recorded.items() if tag not in drawn}
        if recorded:
            self._collect(params, parse_outputs(params.get("net_outputs")), [], recorded, on_schedule=False)
        for tape in (self._tape, self._losses):
            if tape is not None:
                tape.end(self._sink_size)  # the error of a callback before this one, or Ctrl-C, may break off a step
        if self._waiting or self._steps.last > self._brought:
            self.deliver(writer)

    def _collect(
        self,
        params: Any,
        outputs: Outputs,
        collectors: Sequence[Collector],
        recorded: Mapping[str, Value],
        *,
        on_schedule: bool,
    ) -> None:
        """Ask collectors; what they give stays on the device."""
        step = self._steps.last
        steps, seconds, samples, epoch = step - self._collected, None, None, int(params["cur_epoch_num"])
        if on_schedule:
            self._collected = step
            seconds, samples = self.clock.take()
            if not self._is_silent:
                # Without the constructor of the class, which takes twice as long.
                self._log.append(_new_tuple(Collected, (step, steps, epoch, seconds, samples)))
            if not collectors and not recorded and self._reducer is None:
                return
        if recorded:
            self._recorded = (step, frozenset(recorded))
        context = Context(
            step=step,
            steps=steps,
            epoch=epoch,
            seconds=seconds,
            samples=samples,
            tokens_per_step=self._tokens_per_step,
            outputs=outputs,
            network=self._network,
            optimizer=self._optimizer,
            params=params,
            transfer=self._transfer,
            tap=None if self._tape is None else self._tape.tap,
            no_tap=self._no_tap,
        )
        collection = self._stage.ask(
            collectors, context, recorded, self.clock.last_wall_time(), self._reducer if on_schedule else None
        )
        if self._is_silent:
            self._transfer = Transfer()
            self.clock.forget()
            return
        self._waiting.append(collection)
        self._transfer.seal()

    def deliver(self, writer: SummaryWriter) -> None:
        """Make the transfer, and write what it brings; nothing where nothing is new."""
        if self._steps.last == self._brought and not self._waiting:
            return
        began = time.perf_counter()
        waiting, self._waiting = self._waiting, []
        transfer, self._transfer = self._transfer, Transfer()
        step = self._brought = self._steps.last
        reading = None if self._tape is None else self._tape.stage(transfer, step)
        losses = None if self._losses is None else self._losses.stage(transfer, step)
        log, self._log = self._log, []
        series = self._stage.series(History(step, transfer, reading, self._no_tap, losses, log, self._tokens_per_step))
        transfer.run()
        self._stage.write(waiting, series, self.clock, writer)
        self.clock.forget()
        before, self._last_transfer = self._last_transfer, time.perf_counter()
        if before:  # the first one compiles operators
            secs = (self._last_transfer - began) / _TRANSFER_SHARE
            self._transfer_secs = min(max(self._least_secs, secs), self._most_secs)
        if reading is not None:
            if reading.ran:
                self._silent, self._silent_since = 0, step
            else:
                self._silent += 1
            silent = self._silent >= _MOST_SILENT and step - self._silent_since >= _MOST_SILENT_STEPS
            if silent or reading.failure:
                self._give_up_tap()

    def silence(self) -> None:
        """Draw nothing from here on. Where ranks reduce together this one still takes part."""
        self._is_silent = True
        self._stage = self._stage.light()
        self._transfer, self._waiting, self._log = Transfer(), [], []
        self.stop()

    @property
    def takes_part(self) -> bool:
        """Whether other ranks wait for this one."""
        return self._reducer is not None

    def stop(self) -> None:
        """Take the taps out."""
        self._remove_tap()
        if self._sink is not None:
            sink, self._sink, self._losses = self._sink, None, None
            sink.remove()

    def _remove_tap(self) -> None:
        if self._tape is not None:
            tape, self._tape = self._tape, None
            remove(self._network, tape.tap)

    def _give_up_tap(self) -> None:
        assert self._tape is not None
        self._no_tap = self._tape.tap.failure or f"{type(self._network).__name__} does not call its grad_reducer"
        self._remove_tap()
