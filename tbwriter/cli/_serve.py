"""`tbwriter serve`: start TensorBoard with the flags that suit the directory."""

from __future__ import annotations

import getpass
import importlib.util
import os
import socket
import subprocess
import sys
from typing import Annotated

import typer

from tbwriter import sinks
from tbwriter._scanned import RunScan
from tbwriter.cli import _common, _order, _readers, _scanning
from tbwriter.cli._environment import environment, logdir_of

_MOST_SAMPLES = {"scalars": 100_000, "histograms": 1000, "images": 200, "audio": 50, "text": 1000}


@_common.command
def serve(
    path: _common.Path,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 6006,
    host: Annotated[str, typer.Option(help="0.0.0.0 serves other machines too, without any password.")] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--print", help="Print the command line and end.")] = False,
    as_json: _common.Json = False,
    storage_options: _common.StorageOptions = None,
) -> None:
    """Start TensorBoard on PATH with the flags that suit what lies there, and say how to reach it over SSH.

    --samples_per_plugin so that all points are kept, --reload_multifile where several writers share a directory, the
    Python reader where the data server hides tags, and for a URL what its environment must hold. Ends with Ctrl-C. Exit
    codes: TensorBoard's own; 2 wrong usage; 3 nothing there, not readable, or TensorBoard is not installed.
    """
    options = _common.options_of(storage_options)
    place = _common.place(path)
    if sinks.is_file(place, options):  # of which TensorBoard shows nothing
        _common.say(f"{path} is a file; TensorBoard takes its directory")
        place = place.rpartition("/")[0] or "/"
    runs = _common.runs_below(place, options)
    scans = list(_scanning.scan_all(runs, options, what="looking"))
    flags, reasons = suitable_flags(scans)
    command = ["tensorboard", "--logdir", logdir_of(place), "--host", host, "--port", str(port), *flags]
    shown = environment(place, options, secrets=False)
    if as_json:
        _common.print_json({"command": command, "environment": shown, "reasons": reasons})
        return
    for reason in reasons:
        _common.say(reason)
    variables = [f"{name}={_common.shell_word(value)}" for name, value in shown.items()]
    line = " ".join([*variables, *map(_common.shell_word, command)])
    if show:
        print(line)  # noqa: T201 - the result
        return
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError("TensorBoard is not installed: pip install tensorboard")
    _common.say(line)
    if host in {"127.0.0.1", "localhost"} and port:
        _common.say(f"from another machine: ssh -N -L {port}:localhost:{port} {getpass.getuser()}@{socket.getfqdn()}")
    full = {**os.environ, **environment(place, options, secrets=True)}
    ended = subprocess.run([sys.executable, "-m", "tensorboard.main", *command[1:]], env=full, check=False)  # noqa: S603
    raise typer.Exit(ended.returncode)


def suitable_flags(scans: list[RunScan]) -> tuple[list[str], list[str]]:
    """Return the flags for TensorBoard, and why."""
    flags: list[str] = []
    reasons: list[str] = []
    most: dict[str, int] = {}
    for scan in scans:
        for found in scan.tags.values():
            most[found.plugin] = max(most.get(found.plugin, 0), found.points)
    samples = {
        plugin: min(points, _MOST_SAMPLES[plugin])
        for plugin, points in most.items()
        if plugin in _MOST_SAMPLES and points > _readers.KEPT_PYTHON[plugin]
    }
    if samples:
        # Live runs grow: room for as much again.
        words = ",".join(f"{plugin}={min(2 * points, _MOST_SAMPLES[plugin])}" for plugin, points in samples.items())
        flags += ["--samples_per_plugin", words]
        reasons.append(f"more points than TensorBoard keeps by itself: {words}")
    if any(_order.overlapping(scan) for scan in scans):
        flags += ["--reload_multifile", "true"]
        reasons.append("several writers share a directory: --reload_multifile")
    hidden = [tag for scan in scans for tag, found in scan.tags.items() if _readers.hidden_by_data_server(found)]
    if hidden:
        flags += ["--load_fast", "false"]
        reasons.append(
            f"the data server hides {_common.counted(len(hidden), 'tag')}, such as {hidden[0]!r}: --load_fast false"
        )
    return flags, reasons
