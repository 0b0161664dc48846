"""MindFormers: `TensorBoardMonitor` for `callbacks:` in YAML, and tbwriter behind the `tensorboard:` section.

    import msbridge.mindformers

    msbridge.mindformers.install()  # before the trainer starts

Importing this module registers `TensorBoardMonitor`. With `run_mindformer.py`, put both lines into a file of the
directory that `--register_path` names.
"""

import os
from collections.abc import Mapping
from typing import Any

from mindformers.core.callback import callback as callbacks
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister
from mindformers.tools.utils import get_output_root_path
from mindformers.utils import tensorboard

import tbwriter
from msbridge.callback import TensorBoardCallback
from tbwriter._logger import get_logger

__all__ = ["TensorBoardMonitor", "Writer", "install"]

_log = get_logger(__name__)


class Writer(tbwriter.SummaryWriter):
    """What `get_tensorboard_writer()` gives after `install`. A value that cannot be drawn is said once and left out.

    MFLossMonitor hands on None where the step returns no gradient norm, and a text where there is no loss scale; with
    MindFormers' own writer either ends the training.
    """

    def __init__(self, log_dir: str, max_queue: int | None = None) -> None:
        self._unfit: set[str] = set()
        try:
            super().__init__(log_dir, max_queue=max_queue)
        except tbwriter.SinkError as error:
            _log.warning("nothing is written, the training goes on: %s", error)
            super().__init__(log_dir, max_queue=max_queue, write_to_disk=False)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None, *args: Any, **kwargs: Any) -> None:
        """Add a scalar, as SummaryWriter does; leave out what is none."""
        try:
            super().add_scalar(tag, scalar_value, global_step, *args, **kwargs)
        except (TypeError, ValueError) as error:
            self._say(tag, error)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Any, *args: Any, **kwargs: Any) -> None:
        """Add scalars, as SummaryWriter does; leave out what are none."""
        try:
            super().add_scalars(main_tag, tag_scalar_dict, *args, **kwargs)
        except (TypeError, ValueError) as error:
            self._say(main_tag, error)

    def _say(self, tag: str, error: Exception) -> None:
        if tag not in self._unfit:
            self._unfit.add(tag)
            _log.warning("not drawn: %s", error)


def install() -> None:
    """Let MindFormers write through tbwriter, to any path or URL in `tensorboard_dir`.

    The writer is made when MindFormers reads its `tensorboard:` section, with `tensorboard_dir` and
    `tensorboard_queue_size`; the section's `log_..._to_tensorboard` switches work as before. MFLossMonitor and
    TrainingStateMonitor need no change. After a resume TrainingStateMonitor counts on from the resumed step, as
    MFLossMonitor does; by itself it begins at 0. Calling it twice changes nothing.
    """
    tensorboard.SummaryWriter = Writer
    output = callbacks.TrainingStateMonitor._output
    if output.__module__ == __name__:
        return

    def counting_on(self: Any, tag: str, data: Any, global_step: int, formats: Any) -> None:
        output(self, tag, data, global_step + (self.initial_step or 0), formats)

    callbacks.TrainingStateMonitor._output = counting_on


@MindFormerRegister.register(MindFormerModuleType.CALLBACK)
class TensorBoardMonitor(TensorBoardCallback):
    """TensorBoardCallback under `callbacks:`, with the keys of SummaryMonitor.

        callbacks:
          - type: TensorBoardMonitor
            collect_freq: 10

    Args:
        summary_dir: a directory or URL; None: `tensorboard` in MindFormers' output directory.
        collect_freq, collect_specified_data, keep_default_action, custom_lineage_data: as in TensorBoardCallback.
        collect_tensor_freq, max_file_size, export_options: likewise.
        ranks: which ranks write, as there.
        tokens_per_step: tokens this process trains in a step.
        initial_step: the steps trained before, where `initial_epoch` does not tell.

    Raises:
        TypeError, ValueError: an argument is wrong.
    """

    def __init__(
        self,
        summary_dir: str | os.PathLike[str] | None = None,
        collect_freq: int = 10,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, Any] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: Any = None,
        ranks: Any = "all",
        tokens_per_step: int | None = None,
        initial_step: int | None = None,
    ) -> None:
        super().__init__(
            os.path.join(get_output_root_path(), "tensorboard") if summary_dir is None else summary_dir,
            collect_freq,
            collect_specified_data=collect_specified_data,
            keep_default_action=keep_default_action,
            custom_lineage_data=custom_lineage_data,
            collect_tensor_freq=collect_tensor_freq,
            max_file_size=max_file_size,
            export_options=export_options,
            ranks=ranks,
            tokens_per_step=tokens_per_step,
            initial_step=initial_step,
        )
