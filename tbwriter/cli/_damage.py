"""Damage that a command came across while it did something else: told once for each file, and in the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import typer

from tbwriter._scanned import RunScan
from tbwriter._tree import Found
from tbwriter.cli import _common
from tbwriter.cli._finding import being_written


@dataclass(frozen=True)
class FileDamage:
    """What is wrong with one event file.

    Attributes:
        found: the file.
        places: damaged places, of which a last record that is cut off is one.
        lost_bytes: bytes that belong to no good record.
        torn_bytes: those of them that are of a last record that is cut off.
        no_events: good records that hold no Event.
        left_alone: why nothing was made of the file; "" where something was.
    """

    found: Found
    places: int = 0
    lost_bytes: int = 0
    torn_bytes: int = 0
    no_events: int = 0
    left_alone: str = ""

    @property
    def words(self) -> str:
        """What is wrong, in words."""
        if self.left_alone:
            return f"{self.found.path} {self.left_alone}"
        parts = [f"{_common.counted(self.places, 'damaged place')}"] if self.places else []
        parts += [f"{_common.counted(self.no_events, 'record')} without an event"] if self.no_events else []
        lost = f", {_common.megabytes(self.lost_bytes)} lost" if self.places else ""
        doctor = f"`tbwriter doctor {_common.shell_word(self.found.path)}` says more"
        return f"{self.found.path}: {' and '.join(parts)}{lost}; {doctor}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "path": self.found.path,
            "damaged_places": self.places,
            "lost_bytes": self.lost_bytes,
            "no_events": self.no_events,
            "left_alone": self.left_alone,
        }


def in_scan(scan: RunScan) -> list[FileDamage]:
    """Return what is wrong with the files of a run.

    A record that is cut off at the end of a file that is still written is not wrong.
    """
    found = []
    for file in scan.files:
        torn = file.damage[-1].size if file.torn else 0
        live = bool(torn) and bool(being_written(file.found))
        places, lost = file.damaged - live, file.lost_bytes - (torn if live else 0)
        if places or file.no_events:
            found.append(FileDamage(file.found, places, lost, 0 if live else torn, file.no_events))
    return found


class Damage:
    """The damaged files that a command came across.

    Use: `see` what each run's scan says, `say` it when the work is done, `end` with the exit code.
    """

    def __init__(self) -> None:
        self._files: dict[str, FileDamage] = {}
        self._said: set[str] = set()

    def see(self, scan: RunScan) -> None:
        """Take in what is wrong with the files of a run; again where it is scanned again."""
        self.add(in_scan(scan))

    def add(self, damages: Iterable[FileDamage]) -> None:
        """Take in what is wrong with files."""
        self._files.update((damage.found.path, damage) for damage in damages)

    def say(self) -> None:
        """Say on stderr what is wrong with each file of which that was not said before."""
        for path, damage in self._files.items():
            if path not in self._said:
                self._said.add(path)
                _common.say(f"tbwriter: {damage.words}")

    def as_list(self) -> list[dict[str, Any]]:
        """Return all of it for JSON."""
        return [damage.as_dict() for damage in self._files.values()]

    def end(self) -> None:
        """Say what is left to say, and end the command with its exit code.

        Raises:
            typer.Exit: with 1 where files are damaged, otherwise with 0.
        """
        self.say()
        raise typer.Exit(_common.Exit.FOUND if self._files else _common.Exit.OK)
