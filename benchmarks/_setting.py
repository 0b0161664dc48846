"""What a run was asked to measure and how much of it; shared by all figures."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks._progress import Progress


@dataclass(frozen=True)
class Setting:
    """The size of a run.

    Attributes:
        directory: where event files go; emptied by whoever made it.
        peers: which writers are measured beside tbwriter, of `_writers.PEERS`.
        progress: told what is being measured.
        scalars: how many scalars one sample adds.
        rounds: how many samples each writer gives to a figure.
        step_ms: how long a step of the loops takes without logging.
        block_steps: how many steps of a loop one sample takes.
        blocks: how many samples each writer gives to a loop.
        memory_scalars: how many scalars the memory is watched over.
        freqs: the values of collect_freq.
        step_scalars: how many scalars a collected step logs.
        sinks: on which storage, of `_stores.NAMES`.
        logdir: a path or URL of the user's own storage, measured as well.
        most_ranks: the largest number of processes that write at once.
        minutes: how long the soak lasts.
        quick: everything short, children for tbwriter alone: says whether it works, not how fast it is.
    """

    directory: Path
    peers: list[str]
    progress: Progress
    scalars: int = 100_000
    rounds: int = 3
    step_ms: float = 5.0
    block_steps: int = 200
    blocks: int = 8
    memory_scalars: int = 10_000_000
    freqs: Sequence[int] = (1, 10, 50)
    step_scalars: int = 10
    sinks: Sequence[str] = ("none", "memory", "local", "fsync", "slow5", "slow50", "nfs", "s3")
    logdir: str | None = None
    most_ranks: int = 64
    minutes: float = 2.0
    quick: bool = False

    def fresh(self) -> Path:
        """Return a new, empty directory."""
        return Path(tempfile.mkdtemp(dir=self.directory))
