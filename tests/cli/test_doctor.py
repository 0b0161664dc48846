"""What `tbwriter doctor` finds, in damaged runs and in good ones. tests/integration says whether it is true."""

import os
import shlex
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from damaged import BEGIN, CASES, GOOD, NAME, put, scalar, version

from tbwriter import SummaryWriter
from tbwriter._tree import Found
from tbwriter.cli._finding import being_written

FOUND = {
    "good": [],
    "torn-tail": ["torn-tail"],
    "torn-in-header": ["torn-tail"],
    "torn-and-more": ["bad-checksum"],
    "bad-data": ["bad-checksum"],
    "bad-length": ["bad-checksum"],
    "bad-data-then-file": ["bad-checksum"],
    "zero-hole": ["zero-hole"],
    "zero-tail": ["zero-hole"],
    "no-event": ["no-event"],
    "empty": ["empty-file"],
    "empty-then-good": ["note:empty-file"],
    "only-version": ["only-file-version"],
    "no-version": ["note:no-file-version"],
    "double": ["hidden-form"],
    "int64": ["hidden-form"],
    "rank-1": ["hidden-form"],
    "double-later": ["hidden-form"],
    "half": ["hidden-form"],
    "no-metadata": ["no-metadata"],
    "no-plugin": ["note:no-plugin"],
    "late-metadata": ["late-metadata"],
    "plugin-version": ["plugin-version"],
    "scalars-then-histograms": ["two-kinds"],
    "scalars-then-text": ["two-kinds"],
    "histograms-then-scalars": ["two-kinds"],
    "nan-time": ["bad-wall-time"],
    "infinite-time": ["bad-wall-time"],
    "clock-back": ["clock-jump"],
    "step-as-time": ["odd-wall-time"],
    "two-writers-one-tag": ["several-writers"],
    "two-writers": ["several-writers"],
    "names": ["names-sort-wrong"],
    "back": ["steps-back"],
    "back-no-version": ["steps-back", "note:no-file-version"],
    "second-session": ["steps-back"],
    "first-mark-in-second": ["steps-back"],
    "mark-that-voids-nothing": ["steps-back"],
    "mark-too-late": ["steps-back"],
    "marked": [],
    "two-trainings": ["restart-voids-most"],
    "begun-early": ["restart-voids-most"],
    "two-writers-marked": ["several-writers"],
    "copies": ["note:copies"],
    "copies-unmarked": ["copies"],
    "names-marked": ["names-sort-wrong"],
    "voided-samples": ["restart-voids-most"],
    "texts": ["note:more-points-than-shown"],
    "plain": ["not-an-event-file"],
    "gzip": ["not-an-event-file"],
    "nan-from": ["note:not-finite"],
    "mindspore-beside": ["note:mindspore-format"],
    "stale": ["stale-after-restart"],
    "repeated": ["note:repeated-steps"],
    "many": ["note:more-points-than-shown"],
    "mindspore-renamed": ["mindspore-renamed"],
    "name": ["name-without-tfevents"],
    "mindspore": ["mindspore-format"],
}


@pytest.fixture
def doctor(tbwriter_command):
    """Return the findings for a place: their codes, notes marked; checks that the exit code fits."""

    def doctor(place):
        answer = tbwriter_command("doctor", place, "--json")
        findings = answer.json["findings"]
        wrong = [finding for finding in findings if finding["level"] != "note"]
        unreadable = any(finding["code"] == "unreadable" for finding in findings)
        assert answer.code == (3 if unreadable else 1 if wrong else 0)
        assert answer.json["ok"] == (not wrong)
        return ["note:" * (finding["level"] == "note") + finding["code"] for finding in findings]

    return doctor


def test_every_fault_that_is_built_has_its_finding():
    assert set(FOUND) == set(CASES)


@pytest.mark.parametrize("case", list(CASES))
def test_a_fault_is_found_and_nothing_else(doctor, tmp_path, case):
    assert doctor(put(tmp_path / "run", case)) == FOUND[case]


@pytest.mark.parametrize("case", list(CASES))
def test_a_finding_says_what_where_consequence_and_what_to_do(tbwriter_command, tmp_path, case):
    place = put(tmp_path / "run", case)
    for finding in tbwriter_command("doctor", place, "--json").json["findings"]:
        assert all(isinstance(part, str) for part in finding.values())
        assert all(part for name, part in finding.items() if name != "command")
        assert str(place) in finding["where"]
    answer = tbwriter_command("doctor", place)
    for code in FOUND[case]:
        assert code.removeprefix("note:") in answer.out


def test_notes_can_be_left_out(tbwriter_command, tmp_path):
    assert tbwriter_command("doctor", put(tmp_path, "many"), "--no-notes", "--json").json["findings"] == []


# ---- the place


def test_a_place_that_is_not_there_has_its_neighbour_named(tbwriter_command, tmp_path):
    put(tmp_path / "runs" / "first", "good")
    answer = tbwriter_command("doctor", tmp_path / "rums", "--json")
    assert answer.code == 3
    (finding,) = answer.json["findings"]
    assert finding["code"] == "no-such-place"
    assert str(tmp_path / "runs") in finding["fix"]


def test_a_name_before_a_path_of_this_directory_is_told_too(tbwriter_command, tmp_path, monkeypatch):
    monkeypatch.chdir(put(tmp_path / "runs" / "a", "good").parent)
    (finding,) = tbwriter_command("doctor", "name:a", "--json").json["findings"]
    assert (finding["code"], finding["command"]) == ("wrong-logdir", "tensorboard --logdir_spec name:a")


@pytest.mark.parametrize("form", ["a:{0}/a", "{0}/a,{0}/b"])
def test_the_old_forms_of_logdir_are_told(tbwriter_command, tmp_path, form):
    put(tmp_path / "a", "good")
    put(tmp_path / "b", "good")
    answer = tbwriter_command("doctor", form.format(tmp_path), "--json")
    assert answer.code == 3
    (finding,) = answer.json["findings"]
    assert finding["code"] == "wrong-logdir"
    assert finding["command"] == f"tensorboard --logdir_spec {form.format(tmp_path)}"


def test_the_directory_beside_the_event_files_is_told(tbwriter_command, tmp_path):
    put(tmp_path / "job" / "logs", "good")
    (tmp_path / "job" / "checkpoints").mkdir()
    (finding,) = tbwriter_command("doctor", tmp_path / "job" / "checkpoints", "--json").json["findings"]
    assert finding["code"] == "wrong-level"
    assert str(tmp_path / "job" / "logs") in finding["fix"]


def test_a_file_is_no_log_directory(tbwriter_command, tmp_path):
    (path,) = put(tmp_path / "run", "good").iterdir()
    (finding,) = tbwriter_command("doctor", path, "--json").json["findings"]
    assert finding["code"] == "file-as-logdir"
    assert finding["command"] == f"tensorboard --logdir {tmp_path / 'run'}"


def test_another_kind_of_file_is_not_told_to_be_written_nor_to_be_repaired(tbwriter_command, tmp_path):
    (tmp_path / "plain.txt").write_bytes(b"some text\n")
    findings = tbwriter_command("doctor", tmp_path / "plain.txt", "--json").json["findings"]
    assert [finding["code"] for finding in findings] == ["file-as-logdir", "not-an-event-file"]
    assert not any("repair" in finding["command"] for finding in findings)


def test_only_near_places_are_told_and_few_of_them(tbwriter_command, tmp_path):
    empty = tmp_path / "a" / "b" / "c" / "empty"
    empty.mkdir(parents=True)
    for number in range(9):
        put(tmp_path / "a" / f"other{number}", "good")
    (finding,) = tbwriter_command("doctor", empty, "--json").json["findings"]
    assert finding["code"] == "no-event-file"
    (finding,) = tbwriter_command("doctor", empty.parent, "--json").json["findings"]
    assert finding["code"] == "wrong-level"
    assert finding["fix"].count("other") == 4
    assert finding["command"] == ""


def test_an_empty_place_is_told(doctor):
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        assert doctor(place) == ["no-event-file"]


def test_a_renamed_file_among_good_runs_is_told(tbwriter_command, tmp_path):
    put(tmp_path / "good", "good")
    put(tmp_path / "renamed", "name")
    (finding,) = tbwriter_command("doctor", tmp_path, "--json").json["findings"]
    assert finding["code"] == "name-without-tfevents"
    assert "renamed/events.out.1700000000.host" in finding["what"]


def test_two_writers_of_one_process_are_told_in_one_finding(doctor, tmp_path):
    with SummaryWriter(tmp_path) as one, SummaryWriter(tmp_path) as other:
        for step in range(20):
            one.add_scalar("loss", 1.0, step, BEGIN + step)
            other.add_scalar("loss", 2.0, step, BEGIN + step)
    assert doctor(tmp_path) == ["several-writers"]


def test_runs_at_any_depth_are_examined(tbwriter_command, tmp_path):
    put(tmp_path / "a" / "b" / "rank_0", "torn-tail")
    put(tmp_path / "a" / "b" / "rank_1", "good")
    (finding,) = tbwriter_command("doctor", tmp_path, "--json").json["findings"]
    assert "rank_0" in finding["where"]


def test_a_circle_of_links_ends(doctor, tmp_path):
    put(tmp_path / "run", "good")
    (tmp_path / "run" / "again").symlink_to(tmp_path)
    assert doctor(tmp_path) == []


def test_a_file_without_permission_is_told(doctor, as_nobody):
    run = put(as_nobody / "run", "good")
    next(run.iterdir()).chmod(0)
    assert doctor(run) == ["unreadable"]


def test_a_directory_without_permission_is_told(doctor, as_nobody):
    put(as_nobody / "run", "good").chmod(0)
    assert doctor(as_nobody) == ["unreadable"]
    assert doctor(as_nobody / "run") == ["unreadable"]


@pytest.mark.parametrize("command", ["inspect", "verify", "cat"])
@pytest.mark.parametrize("locked", ["run", "place", "file", "one of two"])
def test_what_may_not_be_read_is_not_told_to_be_absent(tbwriter_command, as_nobody, command, locked):
    run = put(as_nobody / "run", "good")
    if locked == "file":
        next(run.iterdir()).chmod(0)
    elif locked == "one of two":
        put(as_nobody / "other", "good")
        run.chmod(0)
    else:
        run.chmod(0)
    answer = tbwriter_command(command, run / "below" if locked == "place" else as_nobody)
    assert answer.code == 3
    assert "Permission denied" in answer.err + answer.out
    assert "no event file" not in answer.err
    assert ("loss" in answer.out or "good" in answer.out) == (locked == "one of two")


def test_what_may_be_read_beside_what_may_not_is_examined_all_the_same(doctor, as_nobody):
    put(as_nobody / "other", "torn-tail")
    next(put(as_nobody / "run", "good").iterdir()).chmod(0)
    assert sorted(doctor(as_nobody)) == ["torn-tail", "unreadable"]


def test_a_page_that_is_lost_anywhere_is_told_to_be_a_hole(doctor, tmp_path):
    """Pages begin and end within records."""
    (path,) = put(tmp_path, "many").iterdir()
    good = path.read_bytes()
    for first in range(4096, 4096 + 40):
        path.write_bytes(good[:first] + bytes(4096) + good[first + 4096 :])
        os.utime(path, (BEGIN, BEGIN))
        assert "zero-hole" in doctor(tmp_path), first


def test_an_end_behind_other_damage_is_not_said_to_be_shown_up_to(tbwriter_command, tmp_path):
    (path,) = put(tmp_path, "bad-length").iterdir()
    path.write_bytes(path.read_bytes()[:-3])
    os.utime(path, (BEGIN, BEGIN))
    _, end = tbwriter_command("doctor", tmp_path, "--json").json["findings"]
    assert end["code"] == "torn-tail"
    assert end["python"] == "nothing that is appended behind it is ever shown"
    assert "all" not in end["what"].split()


@pytest.mark.parametrize("tags", [("loss", "loss"), ("loss", "accuracy")])
def test_writers_at_one_time_are_told_however_short_that_was(doctor, tmp_path, tags):
    with SummaryWriter(tmp_path) as one, SummaryWriter(tmp_path) as other:
        for step in range(50):
            for writer, tag in zip((one, other), tags, strict=True):
                writer.add_scalar(tag, 1.0, step)
    assert doctor(tmp_path) == ["several-writers"]


def test_sessions_and_files_in_quick_succession_are_not_taken_for_writers_at_one_time(doctor, tmp_path):
    for first in (0, 100, 200):
        with SummaryWriter(tmp_path, purge_step=first, max_file_size=1000) as writer:
            for step in range(first, first + 100):
                writer.add_scalar("loss", 1.0, step)
    assert doctor(tmp_path) == []


def test_files_that_are_as_long_but_hold_other_values_are_no_copies(doctor, tmp_path):
    """To remove one of them would lose it."""
    for pid in (1, 2):
        data = version() + b"".join(scalar(step, float(pid * step)) for step in range(10))
        path = tmp_path / NAME.format(second=1_700_000_000 + pid, pid=pid)
        path.write_bytes(data)
        os.utime(path, (BEGIN, BEGIN))
    assert doctor(tmp_path) == ["several-writers"]


def test_damage_in_mindspores_own_files_is_told(tbwriter_command, tmp_path):
    (path,) = put(tmp_path, "mindspore").iterdir()
    good = path.read_bytes()
    path.write_bytes(good * 3 + good[:-1])
    os.utime(path, (BEGIN, BEGIN))
    _, damage = tbwriter_command("doctor", tmp_path, "--json").json["findings"]
    assert damage["code"] == "mindspore-damage"
    assert f"at byte {3 * len(good)}" in damage["where"]
    assert damage["what"].endswith("3 records are good")
    os.utime(path)  # then it may be that the rest is still to come
    assert len(tbwriter_command("doctor", tmp_path, "--json").json["findings"]) == 1


def test_mindspores_own_file_without_permission_is_told(doctor, as_nobody):
    next(put(as_nobody / "run", "mindspore").iterdir()).chmod(0)
    assert doctor(as_nobody) == ["mindspore-format", "unreadable"]


# ---- live runs


def test_a_live_run_is_told_to_be_one_and_not_disturbed(doctor, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 1.0, 1)
        assert writer.flush()
        before = [(path, path.read_bytes()) for path in tmp_path.iterdir()]
        assert doctor(tmp_path) == ["note:still-growing"]
        assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == before


def test_a_record_that_is_being_written_is_no_fault(doctor, tmp_path):
    name = NAME.format(second=1_700_000_000, pid=os.getpid()).replace("host", os.uname().nodename)
    with (tmp_path / name).open("wb", buffering=0) as file:
        file.write(version() + GOOD[0] + GOOD[1][:-5])
        assert set(doctor(tmp_path)) == {"note:still-growing", "note:torn-tail"}
    assert set(doctor(tmp_path)) == {"torn-tail"}


def test_a_live_run_that_has_flushed_nothing_is_told(doctor, tmp_path):
    with SummaryWriter(tmp_path):
        assert "note:only-file-version" in doctor(tmp_path)


@pytest.mark.parametrize(
    ("folder", "ago", "live"),
    [
        ("/elsewhere", 30, True),
        ("/elsewhere", 90, False),
        ("/elsewhere", -5, True),  # a server's clock that is ahead
        ("/elsewhere", -90, False),
        ("s3://bucket", 350, True),  # between two puts of an old run
        ("s3://bucket", 410, False),
    ],
)
def test_a_file_of_another_machines_writer_is_live_while_its_next_change_may_come(folder, ago, live):
    name = NAME.format(second=1, pid=1)
    found = Found(f"{folder}/{name}", name, 100, time.time() - ago)
    assert bool(being_written(found)) == live


def test_a_run_that_ended_is_not_told_to_grow(doctor, tmp_path):
    """Also where its process, this one, still runs; and where it ended a moment ago."""
    with SummaryWriter(tmp_path / "here") as writer:
        writer.add_scalar("loss", 1.0, 1)
    place = str(tmp_path / "child")
    code = f"import tbwriter; w = tbwriter.SummaryWriter({place!r}); w.add_scalar('loss', 1, 1); w.close()"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert doctor(tmp_path) == []


def test_a_file_of_another_machine_that_changed_just_now_may_grow(tbwriter_command, tmp_path):
    for case in ("good", "second-session"):
        place = put(tmp_path / case, case)
        for path in place.iterdir():
            os.utime(path)
        (finding,) = [f for f in tbwriter_command("doctor", place, "--json").json["findings"] if f["level"] == "note"]
        assert (finding["code"], finding["where"]) == ("still-growing", str(place))
        assert finding["what"].startswith("may still be written")


# ---- no false alarms


def wrong(codes):
    return [code for code in codes if not code.startswith("note:")]


def test_what_tbwriter_writes_has_no_fault(doctor, tmp_path):
    with SummaryWriter(tmp_path / "run", max_file_size=4000) as writer:
        for step in range(300):
            writer.add_metrics({"train/loss": 1 / (step + 1), "train/lr": 0.1}, step)
            writer.add_histogram("weights", np.arange(10.0), step)
            if step % 100 == 0:
                writer.add_text("note", "words", step)
                writer.add_scalar("val/loss", np.nan, step)
                writer.add_scalars("several", {"a": 1.0, "b": 2.0}, step)
    assert wrong(doctor(tmp_path)) == []


@pytest.mark.parametrize("purge_step", [None, 50])
def test_a_resumed_run_has_no_fault(doctor, tmp_path, purge_step):
    for first in (0, 50, 90):
        with SummaryWriter(tmp_path, purge_step=first if purge_step else None) as writer:
            for step in range(first, first + (60 if purge_step else 50 if first == 0 else 40)):
                writer.add_scalar("loss", 1.0, step)
    assert wrong(doctor(tmp_path)) == []


def test_what_tensorboardx_writes_has_no_fault(doctor, tmp_path):
    theirs = pytest.importorskip("tensorboardX")
    with theirs.SummaryWriter(str(tmp_path)) as writer:
        for step in range(20):
            writer.add_scalar("loss", 0.5, step)
        writer.add_histogram("w", np.arange(5.0), 1)
        writer.add_text("t", "words", 1)
        writer.add_image("i", np.zeros((3, 4, 4)), 1)
        writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.5}, name="trial")
    assert wrong(doctor(tmp_path)) == []


def test_what_torch_writes_has_no_fault_but_double_precision(doctor, tmp_path):
    torch = pytest.importorskip("torch.utils.tensorboard")
    with torch.SummaryWriter(str(tmp_path / "good")) as writer:
        for step in range(20):
            writer.add_scalar("loss", 0.5, step)
            writer.add_scalar("new", 0.5, step, new_style=True)
        writer.add_histogram("w", np.arange(5.0), 1)
        writer.add_text("t", "words", 1)
    with torch.SummaryWriter(str(tmp_path / "double")) as writer:
        writer.add_scalar("loss", 0.5, 1, new_style=True, double_precision=True)
    assert wrong(doctor(tmp_path / "good")) == []
    assert wrong(doctor(tmp_path / "double")) == ["hidden-form"]


@pytest.mark.parametrize("names", [("loss", "train/loss"), ("lr", "learning_rate")])
def test_two_tags_of_one_session_are_meant_to_be_two(doctor, tmp_path, names):
    for number in range(2):
        with SummaryWriter(tmp_path / f"run{number}") as writer:
            for step in range(3):
                writer.add_metrics(dict.fromkeys(names, 1.0), step)
    assert "note:spellings" not in doctor(tmp_path)


def test_a_metric_that_a_resumed_training_calls_otherwise_is_told(doctor, tmp_path):
    for tag, first in (("loss", 0), ("train_loss", 5)):
        with SummaryWriter(tmp_path, purge_step=first) as writer:
            for step in range(first, first + 8):
                writer.add_scalar(tag, 1.0, step)
    assert "note:spellings" in doctor(tmp_path)


def test_trials_whose_columns_an_experiment_of_another_hides_are_told(doctor, tbwriter_command, tmp_path):
    runs, thin = tmp_path / "runs", tmp_path / "thin"
    for name, hparams, domains in (("a", {"lr": 0.1}, {"lr": [0.1, 0.2]}), ("b", {"lr": 0.2, "batch": 32}, None)):
        with SummaryWriter(runs / name) as writer:
            writer.add_hparams(hparams, {"accuracy": 0.5}, hparam_domain_discrete=domains)
    (finding,) = tbwriter_command("doctor", runs, "--json").json["findings"]
    assert finding["code"] == "hparams-without-column"
    assert "'batch'" in finding["where"]
    assert "'lr'" not in finding["where"]
    command = shlex.split(finding["command"].replace("THINNED", str(thin)))
    assert tbwriter_command(*command[1:]).code == 0
    assert doctor(thin) == []


@pytest.mark.parametrize("one", [{"lr": 0.1}, {"lr": 0.1, "batch": 8}])
def test_trials_that_have_all_columns_are_left_alone(doctor, tmp_path, one):
    for name in "ab":
        with SummaryWriter(tmp_path / name) as writer:
            writer.add_hparams(one, {"accuracy": 0.5}, hparam_domain_discrete={"lr": [0.1]})
    assert doctor(tmp_path) == []


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("second-session", "without a mark"),
        ("first-mark-in-second", "the first mark of the run, which voids nothing"),
        ("mark-that-voids-nothing", "a mark that voids nothing"),
        ("mark-too-late", "a mark for step 8, which comes later"),
    ],
)
def test_a_step_back_says_what_the_mark_there_lacks(tbwriter_command, tmp_path, case, words):
    (finding,) = tbwriter_command("doctor", put(tmp_path, case), "--json").json["findings"]
    assert words in finding["what"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("loss", "train_loss", True),
        ("loss", "train/loss", True),
        ("Loss/train", "trainLoss", True),
        ("learning-rate", "lr", True),
        ("loss", "val/loss", False),
        ("train", "training", False),
    ],
)
def test_one_metric_under_several_spellings_is_told(doctor, tmp_path, one, other, same):
    for number, tag in enumerate([one, other]):
        with SummaryWriter(tmp_path / f"run{number}") as writer:
            writer.add_scalar(tag, 1.0, 1)
    assert ("note:spellings" in doctor(tmp_path)) == same
