"""The types of the public API, as a user's mypy sees them."""

from pathlib import Path

import pytest

import tbwriter

pytest.importorskip("mypy")
from mypy import api

HERE = Path(__file__).parent

WRONG = """\
from tbwriter import EventFileWriter, SummaryWriter, open_sink, read_events
writer = SummaryWriter(7)
writer = SummaryWriter("run", on_full="wait")
writer = SummaryWriter("run", "", None, None, 1.0, "", True, "logdir")
writer.add_scalar(7, 1.0)
writer.add_scalar("loss")
writer.add_metrics([("a", 1.0)])
writer.add_text("t", "words", walltime="now")
writer.flush("now")
writer.stats().written = 5
writer.add_scaler("loss", 1.0)
open_sink("run")
for event in read_events("run"):
    event.step = 5
EventFileWriter()
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Run mypy --strict on a file, without the repository's settings; return its lines."""
    base = tmp_path_factory.mktemp("mypy")
    (base / "mypy.ini").write_text("[mypy]\n")

    def check(path):
        place = Path(tbwriter.__file__).parent.parent
        monkeypatch = pytest.MonkeyPatch()
        monkeypatch.chdir(base)  # a package in the working directory would be taken for the installed one
        if place.name != "site-packages":
            monkeypatch.setenv("MYPYPATH", str(place))
        try:
            out, err, _ = api.run(
                ["--strict", "--config-file", "mypy.ini", "--cache-dir", "cache", "--no-error-summary", str(path)]
            )
        finally:
            monkeypatch.undo()
        assert not err
        return out.splitlines()

    return check


@pytest.mark.slow
def test_a_program_that_uses_the_public_api_passes_mypy_strict(check):
    assert check(HERE / "api.py") == []


@pytest.mark.slow
def test_wrong_uses_of_the_public_api_are_found(check, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    found = {int(line.split(":")[1]) for line in check(path) if ": error:" in line}
    assert found == {*range(2, 13), 14, 15}
