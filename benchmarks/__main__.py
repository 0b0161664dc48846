"""The command line: `python -m benchmarks`; README.md describes it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
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
from benchmarks._options import ALONE, DEFAULTS, FULL, OPTIONS, QUICK, file, folder, names
from benchmarks._run import FigureMaker, UnusableError, run
from benchmarks._setting import Setting
from benchmarks._writers import PEERS, TORCH, available

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
    "read": ("what reading event files back costs, beside TensorBoard's readers", read.FIGURES),
    "sinks": ("what each kind of storage makes of the same scalars", sinks.FIGURES),
    "ranks": ("many processes that write to one store, and the model of ten thousand", ranks.FIGURES),
    "soak": ("an hour at full rate on storage that fails", soak.FIGURES),
}
_SPOOL = "TBWRITER_SPOOL_DIR"
_RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (UnusableError, OSError) as exc:
        print(f"python -m benchmarks: {exc}", file=sys.stderr)
        return 3


def _main(arguments: list[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.full and options.command is not None:
        parser.error("--full measures every command; give --full or a command")
    if options.command == "report":
        return report.main(options.results, options.docs)
    command = options.command or "tour"
    if not options.full:
        strange = [option.name for option in OPTIONS if hasattr(options, option.field) and not option.of(command)]
        strange += ["against"] if hasattr(options, "against") and command in ALONE else []
        if strange:
            parser.error(f"{command} takes no --{strange[0]} here; see python -m benchmarks {command} --help")
    failed = 0
    for name in [name for name in _COMMANDS if name != "tour"] if options.full else [command]:
        status = _measure(name, options)
        if status == 130:
            return status
        failed = failed or status
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what logging costs on this machine; benchmarks/README.md says how.",
        epilog="The options above are those of the tour, and of --full; a command has its own.",
    )
    parser.add_argument("--full", action="store_true", help="every command, one after the other: about half an hour")
    _add_options(parser, "tour")
    commands = parser.add_subparsers(dest="command", help="without a command: a tour of three minutes")
    for command, (text, figures) in _COMMANDS.items():
        sub = commands.add_parser(command, help=text, description=f"Measure {text}.")
        sub.add_argument("--only", type=names(figures), metavar="NAME,...", help=f"of {', '.join(figures)}")
        sub.add_argument(
            "--output", type=file, metavar="FILE", help="JSON; default benchmarks/results/ when nothing is left out"
        )
        _add_options(sub, command)
    sub = commands.add_parser("report", help="make the tables and plots of docs/performance.md from results")
    sub.add_argument("--results", type=Path, default=_RESULTS, help="a directory of JSON")
    sub.add_argument("--docs", type=Path, default=_machine.ROOT / "docs" / "performance.md", help="has the markers")
    return parser


def _add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add what may stand before a command and behind it; what is not given is not in the namespace."""
    absent = argparse.SUPPRESS
    text = "whether it works, not how fast: seconds for each command"
    parser.add_argument("--quick", action="store_true", help=text, default=absent)
    text = "where event files go for the while; default the system's"
    parser.add_argument("--dir", type=folder, metavar="DIR", help=text, default=absent)
    if command not in ALONE:
        text = f"of {', '.join(PEERS)}"
        parser.add_argument("--against", type=names(PEERS), metavar="NAME,...", help=text, default=absent)
    default = _setting(command, Path(), [], argparse.Namespace())
    for option in OPTIONS:
        if option.of(command):
            option.add_to(parser, getattr(default, option.field))


def _setting(command: str, directory: Path, peers: list[str], options: argparse.Namespace) -> Setting:
    setting = replace(Setting(directory, peers, _progress.silent()), **DEFAULTS.get(command, {}))
    if getattr(options, "full", False):
        setting = replace(setting, **FULL.get(command, {}))
    if hasattr(options, "quick"):
        setting = replace(setting, **QUICK)
    given = [option.field for option in OPTIONS if option.of(command) and hasattr(options, option.field)]
    return replace(setting, **{field: getattr(options, field) for field in given})


def _measure(command: str, options: argparse.Namespace) -> int:
    """Run one command; return the exit status."""
    _, figures = _COMMANDS[command]
    only, output = getattr(options, "only", None), getattr(options, "output", None)
    quick = hasattr(options, "quick")
    wanted = {name: make for name, make in figures.items() if only is None or name in only}
    peers: list[str] = []
    left_out: dict[str, str] = {}
    if command not in ALONE:
        # torch takes seconds to import, in every process.
        usual = [peer for peer in PEERS if peer != TORCH] if quick else list(PEERS)
        peers, left_out = available(getattr(options, "against", usual))
    if output is None and not quick and only is None and command != "tour":
        output = _RESULTS / f"{command}.json"
    prefix, parent = "benchmark-", getattr(options, "dir", None)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as directory, _spool_in(directory):
        setting = _setting(command, Path(directory), peers, options)
        result, status = run(command, wanted, setting, left_out, output)
    print(report.render(result))
    if output is not None and result.figures:
        result.save(output)  # again, for where it failed before
        print(f"results: {output}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _spool_in(directory: str) -> Iterator[None]:
    """Have what waits for an object store lie in `directory`, not with the user's own runs; unless they say where."""
    if _SPOOL in os.environ:
        yield
        return
    os.environ[_SPOOL] = os.path.join(directory, "spool")
    try:
        yield
    finally:
        del os.environ[_SPOOL]


if __name__ == "__main__":
    sys.exit(main())
