"""What TensorBoard's two readers show of a tag: the Python one, and the data server (the default for local logdirs).

Facts of TensorBoard 2.21, measured over its HTTP API; tests/integration/test_doctor_tells_the_truth.py measures them
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tbwriter._left import Left
from tbwriter._repair import SCALARS_OF_BOTH
from tbwriter._scanned import FileScan, RunScan, TagScan
from tbwriter.cli import _order
from tbwriter.cli._common import counted

# Points that are kept of each tag, a random sample beyond; the dashboards ask for at most 51 histograms.
KEPT_PYTHON = {"scalars": 1000, "histograms": 51, "images": 10, "audio": 10, "text": 10, "pr_curves": 100, "mesh": 10}
KEPT_DATA_SERVER = {**KEPT_PYTHON, "text": 100, "mesh": 100}
# Of these a dashboard reads the first value's metadata, and no points.
_WITHOUT_POINTS = {"hparams", "custom_scalars"}
_WITHOUT_DASHBOARD = {"tensor"}  # of SummaryWriter.add_tensor


class Share(NamedTuple):
    """What one reader shows of a tag: how many points, None for a number that is not known or for all; and why.

    A number may be the most that it can be, where a reader drew a sample before a restart voided some of it.
    """

    points: int | None
    why: str
    at_most: bool = False

    @property
    def words(self) -> str:
        """The same in words."""
        if self.points is None:
            return f"not all: {self.why}" if self.why else "all"
        why = f": {self.why}" if self.why else ""
        return f"nothing{why}" if self.points == 0 else f"{'at most ' * self.at_most}{self.points} of them{why}"


class Shown(NamedTuple):
    """What each reader shows of a tag."""

    python: Share
    data_server: Share

    @property
    def words(self) -> tuple[str, str]:
        """The same in words: the Python one, the data server."""
        return self.python.words, self.data_server.words


def shown(run: RunScan, tag: str) -> Shown:
    """Return what each reader shows of a tag of a run."""
    scan = run.tags[tag]
    why = _hidden_in_both(scan)
    if why:
        return Shown(Share(0, why), Share(0, why))
    hidden = hidden_by_data_server(scan)
    visible = scan.points - hidden
    lost, voided = list(_lost(run, tag)), list(_voided(run, scan))
    python = _share(
        scan,
        _in_words(python for python, _ in lost),
        _in_words(python for python, _ in voided),
        scan.python,
        KEPT_PYTHON.get(scan.plugin),
    )
    if not hidden:
        data_server = _share(
            scan,
            _in_words(data_server for _, data_server in lost),
            _in_words(data_server for _, data_server in voided),
            scan.data_server,
            KEPT_DATA_SERVER.get(scan.plugin),
        )
    else:
        form = why_hidden_by_data_server(scan)
        more = [data_server for _, data_server in (*lost, *voided)]
        shows = min(visible, KEPT_DATA_SERVER.get(scan.plugin, visible))
        data_server = Share(None if visible and any(more) else shows, _in_words([form, *more]))
    return Shown(python, data_server)


def _share(scan: TagScan, lost: str, voided: str, left: Left | None, kept: int | None) -> Share:
    """Return what a reader shows that has `left` of the points, and keeps a sample of `kept`."""
    why = _in_words([lost, voided])
    if lost or (voided and left is None):
        return Share(None, why)
    points, most = (left.points, left.most) if voided and left is not None else (scan.points, scan.points)
    shows = points if kept is None else min(points, kept)
    at_most = voided != "" and shows > 0 and kept is not None and most > kept
    return Share(None, "") if shows == scan.points and not at_most else Share(shows, why, at_most)


def _in_words(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, reasons)))


def hidden_by_data_server(scan: TagScan) -> int:
    """Return how many points of a tag that Python shows the data server does not, for the form they are stored in."""
    if scan.late_metadata:
        return scan.points
    if scan.plugin != "scalars":
        return 0
    return sum(count for form, count in scan.forms.items() if form not in SCALARS_OF_BOTH)


def why_hidden_by_data_server(scan: TagScan) -> str:
    """Return the reason in words."""
    if scan.late_metadata:
        return "the first value has no metadata"
    forms = [form for form in scan.forms if form not in SCALARS_OF_BOTH]
    return "scalars stored as " + " and ".join(f"{form.split()[0]} of rank {form.split()[-1]}" for form in forms)


def repeats(scan: TagScan) -> bool:
    """Say whether the data server leaves values of a tag out since a later one has their step."""
    return bool(scan.repeated) and scan.plugin not in _WITHOUT_POINTS


def _lost(run: RunScan, tag: str) -> Iterator[tuple[str, str]]:
    """Yield for the Python reader and the data server what keeps them from points of the files, "" for nothing.

    How many points that are is not known.
    """
    scan = run.tags[tag]
    before = 0
    for file in run.files:
        if tag in file.tags:
            yield _lost_in_file(file, scan, before)
        before += file.values
    if scan.plugin in _WITHOUT_POINTS:
        return
    if scan.other_plugins:
        yield "values of two kinds", "values of two kinds"


def _voided(run: RunScan, scan: TagScan) -> Iterator[tuple[str, str]]:
    """Yield for both readers, as `_lost`, why later points or marks void earlier ones: how many is known."""
    if scan.plugin in _WITHOUT_POINTS:
        return
    if scan.voided:
        yield "a restart voids points", ""
    if repeats(scan):
        yield "", f"{counted(scan.repeated, 'earlier value')} of a step that comes again"
    for back in scan.back_examples:
        again = "steps go back, and the points at and after them go"
        yield "" if _order.keeps_what_goes_back(run, run.files[back.file]) else again, again


def _lost_in_file(file: FileScan, scan: TagScan, before: int) -> tuple[str, str]:
    """Return what damage in a file costs, of which `before` values of the run stand in earlier files."""
    behind = "nothing behind the damage in a file"
    inside = [
        damage for damage in file.damage if damage.offset + damage.size < file.found.size and not damage.torn_tail
    ]
    if inside and scan.last_where >= inside[0].values_before >= before:
        return behind, "damaged values as if they were good" if inside[0].framed else behind
    if file.no_events:
        return "a record that is no Event ends the reading", "a record that is no Event ends the reading"
    return "", "wall times that are no numbers" if file.bad_times else ""


def _hidden_in_both(scan: TagScan) -> str:
    if not scan.plugin and not scan.late_metadata:
        return "no value says which plugin shows it"
    if scan.plugin in _WITHOUT_DASHBOARD:
        return f"no dashboard shows plugin {scan.plugin!r}"
    if scan.metadata is not None and scan.metadata.version:
        return f"plugin data of version {scan.metadata.version}, want 0"
    return ""
