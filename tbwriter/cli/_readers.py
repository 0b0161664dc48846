"""What TensorBoard's two readers show of a tag: the Python one, and the data server (the default for local logdirs).

Facts of TensorBoard 2.21, measured over its HTTP API; tests/integration/test_doctor_tells_the_truth.py measures them
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tbwriter._repair import SCALARS_OF_BOTH
from tbwriter._scan import FileScan, RunScan, TagScan
from tbwriter.cli import _order
from tbwriter.cli._common import counted

# Points that are kept of each tag, a random sample beyond; the dashboards ask for at most 51 histograms.
KEPT_PYTHON = {"scalars": 1000, "histograms": 51, "images": 10, "audio": 10, "text": 10, "pr_curves": 100, "mesh": 10}
KEPT_DATA_SERVER = {**KEPT_PYTHON, "text": 100, "mesh": 100}
# Of these a dashboard reads the first value's metadata, and no points.
_WITHOUT_POINTS = {"hparams", "custom_scalars"}
_WITHOUT_DASHBOARD = {"tensor"}  # of SummaryWriter.add_tensor


class Shown(NamedTuple):
    """How many points of a tag each reader shows, None for all; and why it shows none, or not all."""

    python: int | None
    python_why: str
    data_server: int | None
    data_server_why: str

    @property
    def words(self) -> tuple[str, str]:
        """What each reader shows, in words: the Python one, the data server."""
        return _words(self.python, self.python_why), _words(self.data_server, self.data_server_why)


def _words(points: int | None, why: str) -> str:
    if points is None:
        return f"not all: {why}" if why else "all"
    return f"nothing: {why}" if points == 0 else f"{points} of them" if not why else f"{points} of them: {why}"


def shown(run: RunScan, tag: str) -> Shown:
    """Return what each reader shows of a tag of a run."""
    scan = run.tags[tag]
    why = _hidden_in_both(scan)
    if why:
        return Shown(0, why, 0, why)
    hidden = hidden_by_data_server(scan)
    visible = scan.points - hidden
    lost = list(_lost(run, tag))
    form = why_hidden_by_data_server(scan) if hidden else ""
    return Shown(
        _sample(KEPT_PYTHON.get(scan.plugin), scan.points),
        _in_words(python for python, _ in lost),
        0 if not visible else _sample(KEPT_DATA_SERVER.get(scan.plugin), visible) or (visible if hidden else None),
        _in_words([form, *(data_server for _, data_server in lost)]),
    )


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

    How many points that are would take all steps to say, and memory for them.
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


def _sample(kept: int | None, points: int) -> int | None:
    return kept if kept is not None and points > kept else None
