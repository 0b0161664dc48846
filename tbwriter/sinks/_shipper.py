"""A process that outlives the training and ships what it leaves: `shipper="process"`.

    python -m tbwriter.sinks._shipper    (started by `watch`, never by hand)

It reads spool directories from its standard input, does nothing until that ends, which is when the training ends
however it ends, and then ships what is still in them. Useless where the container dies with its main process.
"""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO, Any

from tbwriter import _clock as time
from tbwriter._logger import get_logger
from tbwriter.sinks._credentials import hide

# What a dead store may take to come back.
_PATIENCE_SECS = 3600.0

_log = get_logger(__name__)
_told = threading.Event()
_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None


def watch(directory: str, options: Mapping[str, Any]) -> None:
    """Have `directory` shipped when this process has ended; the shipper is started with the first one.

    Where that cannot be, which is said once, the threads of this process ship alone.
    """
    try:
        _watch(directory, options)
    except Exception as exc:  # no program may be started here, or options hold what cannot be sent to one
        if not _told.is_set():
            _told.set()
            _log.warning(
                "shipper='process' cannot be had (%s: %s): what a kill leaves in %s waits for the next run, or for "
                "`tbwriter ship`",
                type(exc).__name__,
                hide(" ".join(str(exc).split()), options),
                directory,
            )


def _watch(directory: str, options: Mapping[str, Any]) -> None:
    global _process  # noqa: PLW0603 (one per process)
    # Through the pipe, since options may hold credentials, which no file and no command line may.
    message = pickle.dumps((directory, dict(options)))
    with _lock:
        if _process is not None and _process.poll() is not None:
            _close_pipe(_process)
            _process = None
        if _process is None:
            _process = subprocess.Popen(
                [sys.executable, "-m", "tbwriter.sinks._shipper"],
                stdin=subprocess.PIPE,
                bufsize=0,  # Python 3.13 prints an error for what a buffer cannot write at its end
                # Whoever waits for the end of the training's output must not wait for this process.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the training's process group is not for it
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        assert _process.stdin is not None
        rest = memoryview(message)
        while rest:
            rest = rest[_process.stdin.write(rest) :]


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def _forget() -> None:
    """In a forked child: a copy of the pipe would hide the end of the parent."""
    global _process, _lock  # noqa: PLW0603 (the parent's)
    _lock = threading.Lock()
    if _process is not None:
        _close_pipe(_process)
        _process.returncode = 0  # not ours to wait for
    _process = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def main(told: IO[bytes]) -> None:
    """Wait for the end of `told`, then ship every directory that it named."""
    from pathlib import Path

    from tbwriter.sinks._policy import Backoff
    from tbwriter.sinks._ship import send_all
    from tbwriter.sinks._spool_dirs import take

    waiting: dict[str, Mapping[str, Any]] = {}
    while True:
        try:
            directory, options = pickle.load(told)  # noqa: S301 (from the process that started this one)
        except EOFError:
            break
        waiting[directory] = options
    deadline = time.monotonic() + _PATIENCE_SECS
    backoff = Backoff(random.Random())
    while waiting and time.monotonic() < deadline:
        found = ((leftover, options) for path, options in waiting.items() for leftover in take(Path(path)))
        # One attempt each: a store that is down must not hold up what belongs to others.
        if any(one.files for one in send_all(found, time.monotonic())):
            backoff.reset()
        waiting = {path: options for path, options in waiting.items() if Path(path, "url.json").exists()}
        if waiting:
            time.sleep(backoff.pause())


if __name__ == "__main__":
    main(sys.stdin.buffer)
