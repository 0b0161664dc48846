"""What the commands share: arguments, exit codes, errors in one line, JSON, and progress on long work."""

from __future__ import annotations

import base64
import dataclasses
import enum
import errno
import functools
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ParamSpec, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from tbwriter import _tree, sinks
from tbwriter._tree import Directory
from tbwriter.cli import _ends
from tbwriter.cli._visible import accept_all, in_json, visible

P = ParamSpec("P")
T = TypeVar("T")


class Exit(enum.IntEnum):
    """Exit codes of all commands."""

    OK = 0
    """Done, and nothing is wrong."""
    FOUND = 1
    """Done, and something is wrong with the files: damage, findings."""
    USAGE = 2
    """An argument is wrong; nothing was done."""
    UNREADABLE = 3
    """Nothing is there, or it cannot be read or written."""
    INTERRUPTED = 130
    """Ctrl-C."""
    TERMINATED = 143
    """SIGTERM."""


EXIT_CODES = "Exit codes: 0 nothing wrong; 1 something is; 2 wrong usage; 3 nothing there or not readable; 130 Ctrl-C."

Path = Annotated[str, typer.Argument(metavar="PATH", help="An event file or a directory of runs: a path or a URL.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs. NaN and infinities are strings.")]
StorageOptions = Annotated[
    str | None,
    typer.Option("--storage-options", metavar="JSON", help="For the file system behind a URL, as a JSON object."),
]
TagPattern = Annotated[
    str | None, typer.Option("--tag", metavar="REGEX", help="Only tags in which this is found (re.search).")
]

_MOST_TOLD = 10
# Below this many bytes no one waits long enough to want a bar.
_LONG_BYTES = 64 << 20
# As JSON an element takes some hundred bytes of memory.
_MOST_ELEMENTS = 1 << 18


class _Console(Console):
    """A console whose reader may go: that is for `command` to judge, where Rich's own would end with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console() -> Console:
    """Return the console for results; where it is no terminal, no line is wrapped and no name cut."""
    out = _Console(highlight=False)
    return out if out.is_terminal else _Console(highlight=False, width=10_000)


def say(text: str) -> None:
    """Print a line for people to stderr, apart from the results."""
    lines = "\n".join(visible(line) for line in text.split("\n"))
    try:
        _Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(lines)
    except BrokenPipeError:  # nobody reads it, and the results are what counts
        _ends.silence(sys.stderr)


def command(function: Callable[P, T]) -> Callable[P, T]:
    """Turn what can go wrong with files into one line on stderr and an exit code."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        # The reader's warnings about damage are results, for people; everything else of logging stays quiet.
        logging.basicConfig(format="tbwriter: %(message)s", level=logging.WARNING, stream=sys.stderr)
        for stream in (sys.stdout, sys.stderr):
            accept_all(stream)
        verdict: typer.Exit | None = None
        try:
            with _ends.ended_by_sigterm():
                _refuse_empty(kwargs)
                try:
                    answer = function(*args, **kwargs)
                except typer.Exit as exc:
                    verdict = exc
                sys.stdout.flush()  # that a reader has gone is found out here, not when Python ends
                if verdict is not None:
                    raise verdict
                return answer
        except KeyboardInterrupt:
            say("interrupted")
            raise typer.Exit(Exit.INTERRUPTED) from None
        except (OSError, ValueError, TypeError, ImportError) as exc:
            if isinstance(exc, BrokenPipeError) and _ends.reader_has_gone():
                # It has seen enough, as in `tbwriter cat ... | head`.
                _ends.silence(sys.stdout)
                raise verdict or typer.Exit(Exit.OK) from None
            say(f"tbwriter: {in_words(exc)}")
            raise typer.Exit(Exit.UNREADABLE if isinstance(exc, (OSError, ImportError)) else Exit.USAGE) from exc

    return run


# How users know the arguments that are places.
_PLACES = {"path": "PATH", "paths": "PATH", "spool_dir": "PATH", "output": "--output"}


def _refuse_empty(arguments: Mapping[str, Any]) -> None:
    for name, what in _PLACES.items():
        given = arguments.get(name)
        if given is not None and "" in ([given] if isinstance(given, str) else given):
            raise ValueError(f"{what} is empty; want a path or a URL")


def in_words(exc: BaseException) -> str:
    """Return what is wrong in words."""
    if isinstance(exc, OSError) and exc.strerror and exc.filename:
        return f"{exc.strerror}: {exc.filename}"
    return str(exc) or type(exc).__name__


def options_of(text: str | None) -> dict[str, Any] | None:
    """Return the storage options in a JSON object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as exc:
        raise typer.BadParameter(f"--storage-options is no JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise typer.BadParameter(f"--storage-options must be a JSON object, got {text}")
    return found


def place(text: str, what: str = "PATH") -> str:
    """Return the normalised path or URL of an argument, which the user knows as `what`.

    Raises:
        ValueError: it is none that is served. ImportError: the driver of its store is missing.
    """
    found = sinks.normalise(text, what, reading=what == "PATH")
    sinks.patience(found)
    return found


def runs_below(
    path: str, storage_options: Mapping[str, Any] | None, unreadable: list[OSError] | None = None
) -> list[Directory]:
    """Return the directories below `path` that hold event files.

    Directories that cannot be listed are said on stderr, and why is added to `unreadable`.

    Raises:
        FileNotFoundError: there are none.
        OSError: there are none, and one cannot be listed.
    """
    where = place(path)
    found = list(_tree.walk(where, storage_options))
    runs = [directory for directory in found if directory.event_files]
    errors = [directory.error for directory in found if directory.error is not None]
    if errors and not runs:
        raise errors[0]
    for error in errors[:_MOST_TOLD]:
        say(f"tbwriter: {in_words(error)}; what is in it is left out")
    if len(errors) > _MOST_TOLD:
        say(f"tbwriter: {len(errors) - _MOST_TOLD} more directories cannot be listed")
    if unreadable is not None:
        unreadable += errors
    if not runs:
        raise FileNotFoundError(f"no event file at or below {where!r}; `tbwriter doctor {path}` says more")
    return runs


def size_of(runs: list[Directory]) -> int:
    """Return the bytes of all event files."""
    return sum(found.size for run in runs for found in run.event_files)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr while `total` bytes are gone through, if that takes long and someone looks.

    Yields:
        a function to call with the number of bytes that were gone through since.
    """
    console = Console(stderr=True)
    if total < _LONG_BYTES or not console.is_terminal:
        yield lambda _bytes: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def to_json(value: Any, *, full: bool = False) -> Any:
    """Return `value` as JSON can hold it: non-finite numbers as strings; bytes and huge arrays by size, or whole."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _WORDS.get(value, "NaN")
    if isinstance(value, (bytes, memoryview)):
        return {"base64": base64.b64encode(value).decode()} if full else {"bytes": len(value)}
    if isinstance(value, np.ndarray) and value.size > _MOST_ELEMENTS and not full:
        return {"shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, (np.ndarray, np.generic)):
        return to_json(value.tolist(), full=full)
    if isinstance(value, Mapping):
        return {str(key): to_json(item, full=full) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)) and not hasattr(value, "_asdict"):
        return [to_json(item, full=full) for item in value]
    if hasattr(value, "_asdict"):
        return to_json(value._asdict(), full=full)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: to_json(getattr(value, name), full=full) for name in names}
    return repr(value)


_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


def print_json(value: Any) -> None:
    """Print `value` as indented JSON."""
    print(in_json(json.dumps(to_json(value), indent=2, ensure_ascii=False)))  # noqa: T201 - the result itself


def print_line(value: Any, *, full: bool = False) -> None:
    """Print `value` as one line of JSON."""
    print(in_json(json.dumps(to_json(value, full=full), ensure_ascii=False)))  # noqa: T201 - the result itself


def megabytes(size: float) -> str:
    """Return a size in bytes in words."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Return a time span in words."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86400:.1f} d"


def shell_word(text: str) -> str:
    """Return `text` quoted for a shell, for the command lines that are suggested."""
    import shlex

    return shlex.quote(text)
