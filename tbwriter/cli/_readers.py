"""What TensorBoard's two readers show of a tag: the Python one, and the data server (the default for local logdirs).

Facts of TensorBoard 2.21, measured over its HTTP API; tests/integration/test_doctor.py measures them again.
"""

from __future__ import annotations

from typing import NamedTuple

from tbwriter._repair import SCALARS_OF_BOTH
from tbwriter._scan import TagScan

# Points that are kept of each tag, a random sample beyond; the dashboards ask for at most 51 histograms.
KEPT_PYTHON = {"scalars": 1000, "histograms": 51, "images": 10, "audio": 10, "text": 10, "pr_curves": 100, "mesh": 10}
KEPT_DATA_SERVER = {**KEPT_PYTHON, "text": 100, "mesh": 100}


class Shown(NamedTuple):
    """How many points of a tag each reader shows, None for all; and why it shows none."""

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
        return "all"
    return f"nothing: {why}" if points == 0 else f"{points} of them" if not why else f"{points}: {why}"


def shown(scan: TagScan) -> Shown:
    """Return what each reader shows of a tag."""
    why = _hidden_in_both(scan)
    if why:
        return Shown(0, why, 0, why)
    hidden = hidden_by_data_server(scan)
    visible = scan.points - hidden
    return Shown(
        _sample(KEPT_PYTHON.get(scan.plugin), scan.points),
        "",
        0 if not visible else _sample(KEPT_DATA_SERVER.get(scan.plugin), visible) or (visible if hidden else None),
        why_hidden_by_data_server(scan) if hidden else "",
    )


def hidden_by_data_server(scan: TagScan) -> int:
    """Return how many points of a tag that Python shows the data server does not."""
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


def _hidden_in_both(scan: TagScan) -> str:
    if not scan.plugin and not scan.late_metadata:
        return "no value says which plugin shows it"
    if scan.metadata is not None and scan.metadata.version:
        return f"plugin data of version {scan.metadata.version}, want 0"
    return ""


def _sample(kept: int | None, points: int) -> int | None:
    return kept if kept is not None and points > kept else None
