"""The command line: `python -m benchmarks encode | write | report`."""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import _machine, _progress, encode, report, write
from benchmarks._results import SCHEMA, Figure, Result
from benchmarks._setting import Setting
from benchmarks._writers import PEERS, TORCH, available

_COMMANDS: dict[str, tuple[str, dict[str, Callable[[Setting], list[Figure]]]]] = {
    "encode": ("from values to framed records, in memory", encode.FIGURES),
    "write": ("from the call to the file on a local disk, beside other writers", write.FIGURES),
}
_RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "report":
        return report.main(options.results, options.docs)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=options.dir) as directory:
        return _measure(options, Path(directory))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command, (text, figures) in _COMMANDS.items():
        sub = commands.add_parser(command, help=text, description=f"Measure {text}.")
        defaults = Setting(Path(), [], _progress.silent())
        sub.add_argument("--quick", action="store_true", help="a few seconds: says whether it works, not how fast")
        sub.add_argument("--only", type=_names(figures), metavar="NAME,...", help=f"of {', '.join(figures)}")
        sub.add_argument("--rounds", type=_positive, default=None if command == "write" else 7, help="default 3 or 7")
        sub.add_argument("--scalars", type=_positive, help=f"in one sample; default {defaults.scalars}")
        if command == "write":
            sub.add_argument("--against", type=_names(PEERS), metavar="NAME,...", help=f"of {', '.join(PEERS)}")
            sub.add_argument("--step-ms", type=float, help=f"of the loops; default {defaults.step_ms:g}")
            sub.add_argument("--blocks", type=_positive, help=f"of each loop and writer; default {defaults.blocks}")
            sub.add_argument("--memory-scalars", type=_positive, help=f"default {defaults.memory_scalars}")
        sub.add_argument("--dir", type=Path, help="where event files go for the while; default the system's")
        sub.add_argument("--output", type=Path, help="JSON; default benchmarks/results/ when nothing is left out")
    sub = commands.add_parser("report", help="make the tables of docs/performance.md from results")
    sub.add_argument("--results", type=Path, default=_RESULTS, help="a directory of JSON")
    sub.add_argument("--docs", type=Path, default=_machine.ROOT / "docs" / "performance.md", help="has the markers")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _names(known: object) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]  # type: ignore[operator]
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return names

    return parse


def _setting(options: argparse.Namespace, directory: Path, peers: list[str]) -> Setting:
    setting = Setting(directory, peers, _progress.silent())
    if options.quick:
        setting = replace(setting, scalars=5000, rounds=2, block_steps=20, blocks=2, memory_scalars=200_000, quick=True)
    given = ("scalars", "rounds", "step_ms", "blocks", "memory_scalars")
    values = {name: getattr(options, name, None) for name in given}
    if options.quick and options.command == "encode":
        values["rounds"] = 2
    return replace(setting, **{name: value for name, value in values.items() if value is not None})


def _measure(options: argparse.Namespace, directory: Path) -> int:
    figures = _COMMANDS[options.command][1]
    wanted = [name for name in figures if options.only is None or name in options.only]
    peers: list[str] = []
    left_out: dict[str, str] = {}
    if options.command == "write":
        # torch takes seconds to import, in every process.
        usual = [peer for peer in PEERS if peer != TORCH] if options.quick else list(PEERS)
        peers, left_out = available(options.against or usual)
    setting = _setting(options, directory, peers)
    output = options.output
    if output is None and not options.quick and options.only is None:
        output = _RESULTS / f"{options.command}.json"

    load = _machine.load()
    result = Result(
        schema=SCHEMA,
        command=options.command,
        begun=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        complete=False,
        options={name: str(getattr(setting, name)) for name in _RECORDED},
        commit=_machine.commit(),
        machine=_machine.machine(directory, load),
        versions=_machine.versions(),
        left_out=left_out,
        figures=[],
    )
    try:
        with _progress.showing(len(wanted)) as progress:
            for name in wanted:
                progress.begin(name)
                found = figures[name](replace(setting, progress=progress))
                # Saved after each figure: an interrupted run leaves what it has.
                result = replace(
                    result,
                    figures=result.figures + found,
                    machine=_machine.machine(directory, load),
                    complete=name == wanted[-1],
                )
                if output is not None:
                    result.save(output)
    except KeyboardInterrupt:
        print("interrupted; what was measured until then:", file=sys.stderr)
    print(report.render(result))
    if output is not None:
        print(f"results: {output}", file=sys.stderr)
    return 0 if result.complete else 130


_RECORDED = ("scalars", "rounds", "step_ms", "block_steps", "blocks", "memory_scalars", "quick")

if __name__ == "__main__":
    sys.exit(main())
