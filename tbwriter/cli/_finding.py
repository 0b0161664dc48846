"""What `tbwriter doctor` finds."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from dataclasses import dataclass

from tbwriter import _naming
from tbwriter._tree import Found
from tbwriter.cli._common import duration, shell_word

ERROR = "error"
"""Something is lost to a reader."""
WARNING = "warning"
"""Something is shown wrongly, or soon will be."""
NOTE = "note"
"""Worth knowing; nothing is wrong. Notes alone end in exit code 0."""

# Whose writer is alive was changed so lately; by the clock of a server, which may be ahead of ours.
_FRESH_SECS = 60.0
# Objects of an old run are stored anew every 300 s, with a fifth of jitter; see `SegmentPolicy`.
_FRESH_OBJECT_SECS = 400.0
MERGED = ("merged", 0)
"""Host and process in the names of files that `tbwriter merge` wrote."""
# events.out.tfevents.<second>.<host>.<pid>.<number>: tbwriter, torch, TensorFlow 2. Hosts may hold dots.
_WRITER = re.compile(r"tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.(?P<number>\d+)")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
        code: a short name that stays the same, for programs.
        level: ERROR, WARNING or NOTE.
        where: the file, directory or run; with the place in it.
        what: what is there, in words.
        python: what TensorBoard's Python reader makes of it.
        data_server: what its data server makes of it; the default for local logdirs.
        fix: what to do, in words; what the command does, where there is one.
        command: a command line for a shell that does it as it stands; "" where none does.
    """

    code: str
    level: str
    where: str
    what: str
    python: str
    data_server: str
    fix: str
    command: str = ""


def both(consequence: str) -> dict[str, str]:
    """Return one consequence in both readers, as arguments of Finding."""
    return {"python": consequence, "data_server": consequence}


def writer_of(name: str) -> tuple[str, int] | None:
    """Return host and process of the writer of a file, where its name says so."""
    found = _WRITER.search(name)
    return (found["host"], int(found["pid"])) if found else None


def being_written(found: Found) -> str:
    """Say why a file seems to be still written; "" when it does not.

    No writer leaves a mark when it ends. A process of this machine that is named in the file's name is asked whether it
    has the file open; otherwise the time of the last change is all there is to go by.
    """
    writer = writer_of(found.name)
    if writer is not None and "://" not in found.path and writer[0] in _own_names():
        if not _is_running(writer[1]):
            return ""
        has_it_open = _has_open(writer[1], found.path)
        if has_it_open is not None:
            return f"its writer, process {writer[1]}, has it open" if has_it_open else ""
        return f"its writer, process {writer[1]}, is running"
    if writer == MERGED:  # stored whole
        return ""
    if found.changed is None:
        return ""
    ago = time.time() - found.changed
    fresh = _FRESH_OBJECT_SECS if "://" in found.path else _FRESH_SECS
    return f"it was changed {duration(max(ago, 0.0))} ago" if -_FRESH_SECS < ago < fresh else ""


def _own_names() -> set[str]:
    return {_naming.host_name(), socket.gethostname()}


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _has_open(pid: int, path: str) -> bool | None:
    """Say whether a process has a file open; None where it may not be asked (another user's, or no Linux)."""
    try:
        wanted = os.stat(path)
        with os.scandir(f"/proc/{pid}/fd") as handles:
            for handle in handles:
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.stat(handle.path), wanted):
                        return True
    except OSError:
        return None
    return False


def names(items: list[str], most: int = 4) -> str:
    """Return a list in words, cut where it is long."""
    shown = ", ".join(repr(item) if len(item) < 100 else repr(item[:97] + "...") for item in items[:most])
    return shown + (f" and {len(items) - most} more" if len(items) > most else "")


def into(folder: str, path: str, run: str) -> str:
    """Return the words that have a command put what it makes of the run at `path` below a new directory of this name.

    It lies in the working directory, unless that is among what is read.
    """
    logdir = logdir_of(path, run)
    if os.path.join(os.getcwd(), "").startswith(os.path.join(logdir, "")):
        folder = os.path.join(os.path.dirname(logdir), folder)
    return f"-o {shell_word(folder if run == '.' else os.path.join(folder, run))}"


def repair(path: str, run: str, options: str = "", more: str = "") -> dict[str, str]:
    """Return `command` and `fix`, as arguments of Finding, where mending the run at `path` helps; `more` it does."""
    fix = f"writes a mended copy{more}; with --in-place in place of -o, the files themselves are mended"
    return {"command": f"tbwriter repair {shell_word(path)}{options} {into('REPAIRED', path, run)}", "fix": fix}


def merge(path: str, run: str, fix: str) -> dict[str, str]:
    """Return `command` and `fix`, as arguments of Finding, where one clean file of the run at `path` helps."""
    return {"command": f"tbwriter merge {shell_word(path)} {into('MERGED', path, run)}", "fix": fix}


def logdir_of(path: str, run: str) -> str:
    """Return the log directory in which the run at `path` has its name."""
    return path if run == "." else path[: -len(run)].rstrip("/") or "/"


def let_read(path: str, reader: str, rights: str = "r") -> dict[str, str]:
    """Return `command` and `fix`, as arguments of Finding, where `reader` may not read what is at `path`."""
    command = "" if "://" in path else f"chmod u+{rights} {shell_word(path)}"
    return {"command": command, "fix": f"or run {reader} as a user who may read it"}


def move_away(path: str) -> dict[str, str]:
    """Return `command` and `fix`, as arguments of Finding, where a file should lie elsewhere."""
    if "://" in path:
        return {"fix": "move it to another place"}
    return {
        "command": f"mv {shell_word(path)} {shell_word(_hidden(path))}",
        "fix": "takes it out of TensorBoard's sight",
    }


def _hidden(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, name.replace("tfevents", "other"))
