"""Each consequence that `tbwriter doctor` names, held against what the real TensorBoard shows, with both readers.

A consequence is a sentence; CLAIMS says for each what must then be seen. All runs are put before TensorBoard at once.
"""

import google.protobuf.message
import pytest
from damaged import CASES, put
from tensorboard_http import LOAD_FAST, TensorBoard
from waiting import wait_until

from tbwriter import SummaryWriter

pytest.importorskip("typer")

STEPS = list(range(10))
# One record that is no Event ends all reloading of the Python reader: it has a test of its own.
ALONE = "no-event"


class Seen:
    """What one reader shows of one case."""

    def __init__(self, tensorboard, run, case):
        self.case = case
        self.listed = run in tensorboard.runs()
        self._tensorboard, self._run = tensorboard, run

    def curve(self, tag="loss"):
        """[(step, value)], or None where the answer is an error or the tag is not shown."""
        if not self.listed or tag not in self._tensorboard.tags("scalars", self._run):
            return None
        try:
            return self._tensorboard.scalars(self._run, tag)
        except (AssertionError, ValueError):  # an error of the server, or words among the numbers
            return None

    def texts(self, tag="loss"):
        return self._tensorboard.texts(self._run, tag) if self.listed else []

    @property
    def pictures(self):
        return sorted(self._tensorboard.tags("images", self._run)) if self.listed else []

    def __repr__(self):
        return f"{self.case}: listed {self.listed}, shown {self.shown_anywhere()}, loss {self.curve()}"

    @property
    def steps(self):
        curve = self.curve()
        return None if curve is None else [step for step, _ in curve]

    def shown_anywhere(self):
        plugins = ("scalars", "histograms", "text")
        return [plugin for plugin in plugins if self.listed and self._tensorboard.tags(plugin, self._run)]


def good(seen):
    return seen.curve() == [(step, float(step)) for step in STEPS]


def cut(seen):
    return seen.curve() == [(step, float(step)) for step in range(5)]


def dropped(seen):
    """Of steps that came twice, the new ones alone; nothing after them."""
    return seen.curve() == [(step, float(step)) for step in range(5)] + [(step, step + 100.0) for step in (5, 6, 7)]


def both(seen):
    return seen.curve() == [(step, float(step)) for step in STEPS] + [(step, step + 100.0) for step in (5, 6, 7)]


def new(steps):
    """The values of a session that began again, and no others."""
    return lambda seen: seen.curve() == [(step, step + 100.0) for step in steps]


def twenty_texts(seen):
    return len(seen.texts()) == 20


BEHIND = "shows nothing of this file behind the first of them"
CLAIMS = {
    BEHIND: cut,
    BEHIND + "; other files of the run are read": lambda seen: seen.steps == [0, 1, 2, 3, 4, 7, 8, 9],
    "shows the damaged values as if they were good, and nothing behind one that cannot be parsed": (
        lambda seen: seen.steps == STEPS and seen.curve()[5][1] != 5.0
    ),
    "may show a wrong value for the first of them; shows nothing of this file behind it": lambda seen: (
        seen.steps == [0, 1, 2, 3, 4, 5]
    ),
    "shows all before it; nothing that is appended behind it is ever shown": cut,
    "lists the run without curves": lambda seen: seen.listed and not seen.shown_anywhere(),
    "does not list the run": lambda seen: not seen.listed,
    "goes on to the next": good,
    "reads the others": good,
    "shows nothing of them": lambda seen: seen.listed and not seen.shown_anywhere(),
    "shows them": lambda seen: seen.steps == STEPS,
    "leaves these values out": cut,
    "answers with an error, or mixes the values of both": lambda seen: (
        (seen.curve() is None and "scalars" in seen.shown_anywhere()) or seen.case == "histograms-then-scalars"
    ),
    "shows the scalars alone": cut,
    "shows the histograms alone": lambda seen: seen.shown_anywhere() == ["histograms"],
    "shows nothing of this file behind a NaN; leaves events out whose time is infinite": lambda seen: (
        cut(seen) if seen.case == "nan-time" else seen.steps == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    ),
    "shows it by step; by wall time or relative time the curve runs back": good,
    "shows it by step; by wall time the curve lies far away": good,
    "draws one curve that runs through the points of all files, one after the other": (
        lambda seen: seen.steps == [*STEPS, 0, 1, 2, 3, 4]
    ),
    "shows the last file's points alone from its first step on; the others' are dropped": (
        lambda seen: seen.curve() == [(step, step + 100.0) for step in range(5)]
    ),
    "reads all when it starts; while it follows the run, it never goes back to the earlier file": (
        lambda seen: good(seen) and seen.curve("val") == [(step, step + 100.0) for step in range(5)]
    ),
    "shows all": lambda seen: good(seen) and seen.curve("val") == [(step, step + 100.0) for step in range(5)],
    "reads them in this order: the curve jumps back; one that follows the run never reads the second": (
        lambda seen: seen.steps == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    ),
    "drops the points of the first at and after the steps of the second": lambda seen: seen.steps == [0, 1, 2, 3, 4],
    "shows the last file's points alone from step 0 on: its mark voids the others'": new(range(5)),
    "reads them in this order, and leaves out of the first what the mark in the second voids": cut,
    "leaves out the points that the mark of its start voids": new(range(3)),
    "shows the points once: the mark in the second voids those of the first": good,
    "shows these points as NaN or infinite; no line can be drawn through them": lambda seen: (
        seen.curve() == [(step, float(step)) for step in range(5)] + [(step, "nan") for step in range(5, 10)]
    ),
    "shows the event files alone": good,
    "shows nothing of it": lambda seen: not seen.shown_anywhere(),
    "shows all of them": twenty_texts,
    "keeps a random 10 of them, and the last": twenty_texts,  # sampling is off here
    "draws a line that runs back: the old points stay beside the new ones": both,
    "drops the old points at and after the step, tag by tag": dropped,
    "drops the old points from step 8 on; those before stay beside the new ones": (
        lambda seen: seen.steps == [0, 1, 2, 3, 4, 5, 6, 7, 5, 6, 7]
    ),
    "drops points of a tag at and after the step, when its steps go back": good,  # "back-no-version" has it go back
    "shows it as any other": lambda seen: good(seen) or dropped(seen),
    "dropped their points from step 5 on": cut,
    "still shows the points from step 5 on, of a past that did not happen": good,
    "draws all of them, one above the other": lambda seen: seen.steps == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9],
    "shows the last value of a step alone": lambda seen: seen.steps == STEPS,
    "shows nothing: it goes by the name": lambda seen: not seen.listed,
    "shows nothing of them: their names lack 'tfevents', and the records are others": lambda seen: not seen.listed,
    "shows nothing of it but pictures: its numbers stand in a field of another kind": (
        lambda seen: not seen.shown_anywhere() and seen.pictures == ["later", "picture"]
    ),
    "shows nothing of it from the first number on, which ends its reading": (
        lambda seen: not seen.shown_anywhere() and seen.pictures == ["picture"]
    ),
    "keeps a random 1000 of them, and the last": lambda seen: len(seen.steps) > 1000,
}
LEFT = "drops the old points at and after the step, tag by tag"
THROUGH = "draws one curve that runs through the points of all files, one after the other"


def early(seen):
    return seen.curve() == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 103.0), (4, 104.0), (5, 105.0)]


EXPLAINED = {
    "back-no-version": {"drops points of a tag at and after the step, when its steps go back": dropped},
    "two-trainings": {LEFT: new(range(3))},
    "voided-samples": {LEFT: new(range(3))},
    "begun-early": {LEFT: early, "leaves out the points that the mark of its start voids": early},
    "copies": {"shows the last value of a step alone": good},
    "copies-unmarked": {THROUGH: lambda seen: seen.steps == STEPS * 2, "shows the last value of a step alone": good},
}


def diagnose(place):
    from tbwriter.cli._doctor import diagnose

    return list(diagnose(str(place), None))


@pytest.fixture(scope="module")
def placed(tensorboards):
    """Return a function that has one TensorBoard show all cases, and gives it back."""
    done = set()

    def of(tensorboard):
        if tensorboard.reader not in done:
            staging = tensorboard.logdir.parent / f"staging-{tensorboard.reader}"
            for case in set(CASES) - {ALONE}:
                put(staging / "doctor" / case, case)
            staging.joinpath("doctor").rename(tensorboard.logdir / "doctor")
            done.add(tensorboard.reader)
        return tensorboard

    return of


@pytest.mark.parametrize("case", [case for case in CASES if case != ALONE])
def test_a_consequence_is_what_the_reader_shows(tensorboard, placed, case):
    placed(tensorboard)
    run = f"doctor/{case}"
    place = tensorboard.logdir / run
    findings = diagnose(place)
    for finding in findings:
        claim = finding.python if tensorboard.reader == "python" else finding.data_server
        holds = EXPLAINED.get(case, {}).get(claim) or CLAIMS[claim]
        last = []

        def seen(holds=holds, last=last):
            last[:] = [Seen(tensorboard, run, case)]
            return holds(last[0])

        wait_until(seen, within=60, every=0.2, what=lambda claim=claim, last=last: f"{claim!r} of {last}")
    if not findings and case == "good":
        tensorboard.shows(lambda: good(Seen(tensorboard, run, case)), True)
    if case == "marked":
        tensorboard.shows(lambda: dropped(Seen(tensorboard, run, case)), True)


# Sampling is off in these TensorBoards; and values of two kinds, and of no kind, are no curve.
NO_CURVE = {
    "many",
    "scalars-then-histograms",
    "scalars-then-text",
    "histograms-then-scalars",
    "no-plugin",
    "mindspore",
    "name",
    "nan-from",
    "texts",
}


@pytest.mark.parametrize("case", [case for case in CASES if case not in {ALONE, *NO_CURVE}])
def test_inspect_says_all_where_the_reader_shows_all_and_nowhere_else(tensorboard, placed, case):
    """Of the good records' points: a damaged value that is shown is none of them."""
    from tbwriter import _scan, _tree
    from tbwriter.cli import _readers

    placed(tensorboard)
    run = f"doctor/{case}"
    (directory,) = _tree.walk(str(tensorboard.logdir / run))
    scan = _scan.scan(directory.path, directory.run, directory.event_files)
    if "loss" not in scan.tags:
        return
    words = _readers.shown(scan, "loss").words[tensorboard.reader == "data-server"]
    points = scan.tags["loss"].points
    last = []

    def as_said():
        last[:] = [Seen(tensorboard, run, case)]
        curve = last[0].curve() or []
        good = len([step for step, number in curve if number in {step, step + 100.0} or case == "half"])
        if words == "all":
            return good == points == len(curve)
        if words.startswith("nothing"):
            return not curve
        if words[0].isdigit():
            return int(words.split()[0]) == len(curve)
        return len(curve) > 0 and (good < points or good < len(curve))

    wait_until(as_said, within=60, every=0.2, what=lambda: f"{words!r} of {points} points: {last}")


@pytest.mark.readers
@pytest.mark.parametrize("reader", LOAD_FAST)
def test_a_file_as_log_directory_shows_no_run_where_its_directory_does(reader, tmp_path):
    from typer.testing import CliRunner

    from tbwriter.cli._app import app

    (path,) = put(tmp_path / "run", "good").iterdir()
    (finding,) = diagnose(path)
    assert finding.python == finding.data_server == "does not list the run"
    served = CliRunner().invoke(app, ["serve", str(path), "--print"]).stdout.split()
    for logdir, want in ((path, []), (served[served.index("--logdir") + 1], ["."])):
        tensorboard = TensorBoard(reader, logdir)
        try:
            tensorboard.shows(tensorboard.reloaded, True)
            tensorboard.shows(tensorboard.runs, want)
        finally:
            tensorboard.stop()


@pytest.mark.readers
def test_a_record_that_is_no_event_ends_the_python_readers_reloading(tmp_path):
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_multiplexer")
    (finding,) = diagnose(put(tmp_path / "run", ALONE))
    assert finding.python == "fails at the first of them and ends reloading: nothing new of any run is shown any more"
    reader = multiplexer.EventMultiplexer().AddRunsFromDirectory(str(tmp_path))
    # TensorBoard's reloading thread calls this and catches nothing.
    with pytest.raises(google.protobuf.message.DecodeError):
        reader.Reload()


def test_every_sentence_of_the_cases_is_held_against_a_reader(tmp_path):
    said = set()
    for case in CASES:
        for finding in diagnose(put(tmp_path / case, case)):
            said |= {finding.python, finding.data_server}
    said.remove("fails at the first of them and ends reloading: nothing new of any run is shown any more")
    assert said == set(CLAIMS)


@pytest.mark.readers
@pytest.mark.parametrize("reader", LOAD_FAST)
def test_a_hyper_parameter_that_an_experiment_lacks_has_no_column_until_its_record_is_left_out(reader, tmp_path):
    """In a TensorBoard of its own, as it makes one table of all runs of a directory."""
    from typer.testing import CliRunner

    from tbwriter.cli._app import app

    place, thin = tmp_path / "runs", tmp_path / "thin"
    for name, hparams, domains in (("a", {"lr": 0.1}, {"lr": [0.1, 0.2]}), ("b", {"lr": 0.2, "batch": 32}, None)):
        with SummaryWriter(place / name) as writer:
            writer.add_hparams(hparams, {"accuracy": 0.5}, hparam_domain_discrete=domains)
    (finding,) = diagnose(place)
    assert finding.code == "hparams-without-column"
    command = ["thin", str(place), "-o", str(thin), "--drop-tag", "^_hparams_/experiment$"]
    assert CliRunner().invoke(app, command).exit_code == 0
    for logdir, want in ((place, ["lr"]), (thin, ["batch", "lr"])):
        tensorboard = TensorBoard(reader, logdir)
        try:
            tensorboard.shows(lambda on=tensorboard: len(on.tags("scalars", "b")), 1)
            tensorboard.shows(lambda on=tensorboard: len(on.tags("scalars", "a")), 1)
            columns = tensorboard.get("/data/plugin/hparams/experiment", request="{}")["hparamInfos"]
            assert sorted(column["name"] for column in columns) == want
        finally:
            tensorboard.stop()
