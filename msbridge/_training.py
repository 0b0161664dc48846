"""One training: its clock, its tap, and the collection of a step."""

from collections.abc import Iterable, Mapping
from typing import Any

from msbridge._clock import Clock
from msbridge._device import Transfer
from msbridge._install import NoTapError, install, remove
from msbridge._outputs import parse_outputs
from msbridge._run import StepCounter
from msbridge._schedule import Schedule
from msbridge._stage import Stage
from msbridge._tape import Tape
from msbridge.collectors import Collector, Context, GradNorm, Value
from tbwriter import SummaryWriter

_MOST_SILENT = 3  # gradient accumulation calls the reducer every few steps only


class Training:
    """From `on_train_begin` to the end of that training. Owned by the training thread."""

    def __init__(
        self, params: Any, collectors: Iterable[Collector], steps: StepCounter, tokens_per_step: int | None
    ) -> None:
        self.clock = Clock(params)
        self._stage = Stage(collectors)
        self._steps = steps
        self._tokens_per_step = tokens_per_step
        self._network = params.train_network
        self._optimizer = params.get("optimizer") or getattr(self._network, "optimizer", None)
        self._collected = 0  # the last step that was collected
        self._tape: Tape | None = None
        self._no_tap = ""
        self._params: Any = None  # of the newest step
        self._silent = 0  # collections in a row without a call of the tap
        if any(collector.uses_tap for collector in collectors):
            sink_size = params.get("sink_size", 1) if params.get("dataset_sink_mode") else 1
            try:
                self._tape = Tape(install(self._network, self._optimizer, sink_size))
            except NoTapError as error:
                self._no_tap = str(error)

    def begin_steps(self, params: Any) -> int:
        """Begin with the first epoch. Gives the steps done before."""
        done = self._collected = self._steps.first_epoch(params)
        if self._tape is not None:
            self._tape.begin(done)
        return done

    def end_step(self, params: Any, schedule: Schedule) -> bool:
        """Note that a step, or a sink, ended. Tells whether to collect it; the first one always."""
        self._params = params
        step = self._steps.now(params)
        collected = self.clock.is_first or schedule.due(self._steps.last + 1, step)
        self.clock.step_end(step, step - self._steps.last, params)
        self._steps.last = step
        if not collected and self._tape is not None:
            self._tape.keep(step)
        return collected

    def drain(self, recorded: Mapping[str, Value], writer: SummaryWriter) -> None:
        """Write, at the training's end, what waits for a collection that will not come: one more copy."""
        waiting = self._tape is not None and self._steps.last > self._collected
        if self._params is not None and (waiting or recorded):
            self._stage = self._stage.only(GradNorm)
            self.collect(self._params, recorded, writer)

    def collect(self, params: Any, recorded: Mapping[str, Value], writer: SummaryWriter) -> None:
        """Ask the collectors, copy from the device once, and write."""
        step = self._steps.last
        steps, self._collected = step - self._collected, step
        seconds, samples = self.clock.take()
        transfer = Transfer()
        reading = None if self._tape is None else self._tape.stage(transfer, step)
        context = Context(
            step=step,
            steps=steps,
            epoch=int(params.cur_epoch_num),
            seconds=seconds,
            samples=samples,
            tokens_per_step=self._tokens_per_step,
            outputs=parse_outputs(params.get("net_outputs")),
            network=self._network,
            optimizer=self._optimizer,
            params=params,
            tap=reading,
            no_tap=self._no_tap,
        )
        answers = self._stage.ask(context, recorded, transfer)
        transfer.run()
        self._stage.write(answers, step, self.clock, writer)
        self.clock.forget()
        if reading is not None:
            self._silent = 0 if reading.ran else self._silent + 1
            if self._silent == _MOST_SILENT:
                self._give_up_tap()

    def stop(self) -> None:
        """Take the tap out."""
        if self._tape is not None:
            tape, self._tape = self._tape, None
            remove(self._network, tape.tap)

    def _give_up_tap(self) -> None:
        assert self._tape is not None
        self._no_tap = self._tape.tap.failure or f"{type(self._network).__name__} does not call its grad_reducer"
        self.stop()
