"""The command line: `python -m benchmarks`; README.md describes it."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    _machine,
    _progress,
    callback,
    collect_freq,
    encode,
    histogram,
    ranks,
    read,
    report,
    sinks,
    soak,
    summaries,
    tour,
    write,
)
from benchmarks._options import ALONE, DEFAULTS, OPTIONS, QUICK, names
from benchmarks._run import FigureMaker, run
from benchmarks._setting import Setting
from benchmarks._writers import PEERS, TORCH, available
from tbwriter import SinkError

_COMMANDS: dict[str, tuple[str, Mapping[str, FigureMaker]]] = {
    "tour": ("a little of everything in three minutes; the same as no command", tour.FIGURES),
    "encode": ("from values to framed records, in memory", encode.FIGURES),
    "write": ("from the call to the file on a local disk, beside other writers", write.FIGURES),
    "collect_freq": ("what logging adds to a training loop, against collect_freq", collect_freq.FIGURES),
    "callback": (
        "what a callback adds to a step of Model.train, beside SummaryCollector",
        callback.FIGURES,
    ),
    "histogram": ("what a histogram costs and how near it comes, beside other writers", histogram.FIGURES),
    "summaries": ("what one call of each method costs the training loop, beside other writers", summaries.FIGURES),
    "read": ("what reading event files back costs, beside TensorBoard's reader", read.FIGURES),
    "sinks": ("what each kind of storage makes of the same scalars", sinks.FIGURES),
    "ranks": ("many processes that write to one store, and the model of ten thousand", ranks.FIGURES),
    "soak": ("minutes at full rate on storage that fails", soak.FIGURES),
}
_RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "report":
        return report.main(options.results, options.docs)
    if options.command is not None:
        return _measure(options)
    flags = ["--quick"] if options.quick else []
    for command in [name for name in _COMMANDS if name != "tour"] if options.full else ["tour"]:
        status = _measure(_parser().parse_args([command, *flags]))
        if status:
            return status
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every command, one after the other: about twenty minutes")
    parser.add_argument("--quick", action="store_true", help="with --full or alone: whether it works, not how fast")
    commands = parser.add_subparsers(dest="command", help="without a command: a tour of three minutes")
    for command, (text, figures) in _COMMANDS.items():
        sub = commands.add_parser(command, help=text, description=f"Measure {text}.")
        sub.add_argument("--quick", action="store_true", help="a few seconds: says whether it works, not how fast")
        sub.add_argument("--only", type=names(figures), metavar="NAME,...", help=f"of {', '.join(figures)}")
        sub.add_argument("--dir", type=Path, help="where event files go for the while; default the system's")
        sub.add_argument("--output", type=Path, help="JSON; default benchmarks/results/ when nothing is left out")
        if command not in ALONE:
            sub.add_argument("--against", type=names(PEERS), metavar="NAME,...", help=f"of {', '.join(PEERS)}")
        default = _setting(command, Path(), [])
        for option in OPTIONS:
            if option.commands is None or command in option.commands:
                option.add_to(sub, getattr(default, option.field))
    sub = commands.add_parser("report", help="make the tables and plots of docs/performance.md from results")
    sub.add_argument("--results", type=Path, default=_RESULTS, help="a directory of JSON")
    sub.add_argument("--docs", type=Path, default=_machine.ROOT / "docs" / "performance.md", help="has the markers")
    return parser


def _setting(command: str, directory: Path, peers: list[str], options: argparse.Namespace | None = None) -> Setting:
    setting = Setting(directory, peers, _progress.silent())
    setting = replace(setting, **DEFAULTS.get(command, {}))
    if options is not None:
        if options.quick:
            setting = replace(setting, **QUICK)
        given = {option.field: getattr(options, option.field, None) for option in OPTIONS}
        setting = replace(setting, **{field: value for field, value in given.items() if value is not None})
    return setting


def _measure(options: argparse.Namespace) -> int:
    """Run one command; return the exit status."""
    _, figures = _COMMANDS[options.command]
    wanted = {name: make for name, make in figures.items() if options.only is None or name in options.only}
    peers: list[str] = []
    left_out: dict[str, str] = {}
    if options.command not in ALONE:
        # torch takes seconds to import, in every process.
        usual = [peer for peer in PEERS if peer != TORCH] if options.quick else list(PEERS)
        peers, left_out = available(options.against or usual)
    output = options.output
    if output is None and not options.quick and options.only is None and options.command != "tour":
        output = _RESULTS / f"{options.command}.json"
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.dir) as directory:
        setting = _setting(options.command, Path(directory), peers, options)
        try:
            result = run(options.command, wanted, setting, left_out, output)
        except (SinkError, ImportError) as exc:
            if setting.logdir is None:
                raise
            print(f"python -m benchmarks: --logdir {setting.logdir}: {exc}", file=sys.stderr)
            return 3
    print(report.render(result))
    if output is not None and result.figures:
        print(f"results: {output}", file=sys.stderr)
    return 0 if result.complete else 130


if __name__ == "__main__":
    sys.exit(main())
