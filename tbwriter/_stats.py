"""What a writer says about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WriterStats:
    """Counters of a writer, read at one moment.

    Attributes:
        queued: values added and not stored yet. Each is in one of this, `written` and `dropped`.
        written: values stored; the writer's own `tbwriter/dropped` are counted like others.
        dropped: values given up: the queue or the spool was full, or they could not be encoded, or close ran out of
            time.
        retries: attempts to store that failed.
        bytes: what was stored, in bytes.
        last_error: the newest storage error in words, or None.
        flush_latency_secs: how long the last batch took from the queue to storage.
    """

    queued: int
    written: int
    dropped: int
    retries: int
    bytes: int
    last_error: str | None
    flush_latency_secs: float
