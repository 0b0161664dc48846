"""What a scan keeps of a run, against the same counted the long way."""

import itertools
import subprocess
import sys
import textwrap
from collections import Counter

import numpy as np
import pytest
from damaged import GOOD, NAME, SIZE, record, scalar, start, version
from hypothesis import given
from hypothesis import strategies as st

from tbwriter import SummaryWriter, _left, _scan, _tree, read_events


def scan(place):
    (run,) = [directory for directory in _tree.walk(str(place)) if directory.event_files]
    return _scan.scan(run.path, run.run, run.event_files)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-3, 30), st.floats(width=32)), min_size=1, max_size=60))
def test_what_is_kept_of_a_tag_is_what_counting_gives(tmp_path_factory, rows):
    place = tmp_path_factory.mktemp("run")
    half = len(rows) // 2
    for number, part in enumerate([rows[:half], rows[half:]]):
        data = b"".join(scalar(step, value, tag, wall_time=100.0) for tag, step, value in part)
        (place / NAME.format(second=1_700_000_000 + number, pid=1)).write_bytes(version() + data)
    run = scan(place)
    for tag in {tag for tag, _, _ in rows}:
        steps = [step for name, step, _ in rows if name == tag]
        values = np.array([value for name, _, value in rows if name == tag])
        strides = np.diff(steps)
        found = run.tags[tag]
        finite = values[np.isfinite(values)]
        assert (found.points, found.first_step, found.last_step) == (len(steps), steps[0], steps[-1])
        assert (found.nans, found.infinities) == (np.isnan(values).sum(), np.isinf(values).sum())
        tail = list(
            itertools.takewhile(lambda pair: not np.isfinite(pair[1]), zip(steps[::-1], values[::-1], strict=True))
        )
        assert found.not_finite_from == (tail[-1][0] if tail else None)
        assert (found.repeated, found.backs) == ((strides == 0).sum(), (strides < 0).sum())
        assert found.strides == Counter(strides[strides > 0].tolist())
        assert (found.lowest, found.highest) == ((finite.min(), finite.max()) if len(finite) else (None, None))
        back = [(before, after) for before, after in itertools.pairwise(steps) if after < before]
        assert [place[:2] for place in found.back_examples] == back[: _scan.MOST_EXAMPLES]


MARKS = st.tuples(st.just("mark"), st.integers(-3, 30))
STEPS = st.tuples(st.sampled_from("ab"), st.integers(-3, 30))
SESSIONS = st.tuples(st.sampled_from("ab"), st.integers(-3, 30), st.integers(1, 5), st.integers(1, 12))


@given(st.lists(st.one_of(STEPS, STEPS, MARKS, SESSIONS), min_size=1, max_size=40), st.integers(1, 20))
def test_what_is_left_of_a_tag_is_what_each_readers_rule_leaves(tmp_path_factory, rows, together):
    """The rules of plugin_event_accumulator.py and of rustboard's reservoir.rs, point by point."""
    place = tmp_path_factory.mktemp("run")
    parts, marks = [version()], 0
    python, data_server, voided = {"a": [], "b": []}, {"a": [], "b": []}, Counter()
    for name, *numbers in rows:
        if name == "mark":
            (step,) = numbers
            parts.append(start(step, 100.0))
            marks += 1
            if marks > 1:
                for tag, steps in python.items():
                    voided[tag] += sum(old >= step for old in steps)
                    python[tag] = [old for old in steps if old < step]
            continue
        first, stride, count = (*numbers, 1, 1)[:3]
        for step in range(first, first + stride * count, stride):
            parts.append(scalar(step, 1.0, name, wall_time=100.0))
            python[name].append(step)
            data_server[name] = [old for old in data_server[name] if old < step] + [step]
    (place / NAME.format(second=1_700_000_000, pid=1)).write_bytes(b"".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_scan, "_GATHERED", together)
        run = scan(place)
    for tag, found in run.tags.items():
        assert (found.python.points, found.data_server.points) == (len(python[tag]), len(data_server[tag]))
        assert found.voided == voided[tag]
    assert sum(restart.voided for restart in run.restarts) == sum(voided.values())


def test_steps_without_any_order_take_no_memory(tmp_path, monkeypatch):
    """What is left is not told then, rather than wrong."""
    monkeypatch.setattr(_left.Room.__init__, "__defaults__", (10,))
    steps = np.random.default_rng(1).permutation(1000).tolist()
    (tmp_path / NAME.format(second=1, pid=1)).write_bytes(version() + b"".join(scalar(step, 1.0) for step in steps))
    found = scan(tmp_path).tags["loss"]
    assert (found.points, found.python) == (1000, None)


def test_gaps_are_where_usual_steps_are_missing(tmp_path):
    steps = [*range(0, 50, 10), *range(100, 200, 10), 230]
    (tmp_path / NAME.format(second=1, pid=1)).write_bytes(b"".join(scalar(step, 1.0) for step in steps))
    found = scan(tmp_path).tags["loss"]
    assert found.stride == 10
    assert found.gaps == [(40, 100), (190, 230)]


def test_bulk_looks_do_not_change_the_result(tmp_path, monkeypatch):
    with SummaryWriter(tmp_path) as writer:
        for step in range(1000):
            writer.add_metrics({"a": step * 0.5, "b": -step}, step * 3)
    whole = scan(tmp_path)
    monkeypatch.setattr(_scan, "_GATHERED", 7)
    again = scan(tmp_path)
    for found in (*again.tags.values(), *whole.tags.values()):
        found.gap_examples.clear()  # of equal distances, any may be kept
    assert again == whole
    assert whole.tags["a"].strides == {3: 999}
    assert (whole.tags["a"].lowest, whole.tags["a"].highest) == (0.0, 499.5)


def test_the_bytes_of_all_tags_add_up_to_the_events(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for step in range(10):
            writer.add_metrics({"a": 0.5, "a longer name": 0.5}, step)
            writer.add_histogram("w", np.arange(100.0), step)
    run = scan(tmp_path)
    (file,) = run.files
    assert sum(tag.bytes for tag in run.tags.values()) <= file.record_bytes
    assert run.tags["w"].bytes > run.tags["a longer name"].bytes > run.tags["a"].bytes


# ---- damage

PIECES = st.lists(
    st.one_of(
        st.integers(0, 9).map(lambda step: ("good", GOOD[step])),
        st.binary(min_size=1, max_size=40).map(lambda junk: ("junk", junk)),
        st.integers(1, 200).map(lambda size: ("junk", bytes(size))),
        st.tuples(st.integers(0, 9), st.integers(1, SIZE - 1)).map(lambda cut: ("junk", GOOD[cut[0]][: cut[1]])),
        st.binary(max_size=30).map(lambda data: ("no event", record(data))),
    ),
    max_size=30,
)


@given(PIECES)
def test_of_any_bytes_all_intact_records_are_counted(tmp_path_factory, pieces):
    place = tmp_path_factory.mktemp("run")
    data = b"".join(part for _, part in pieces)
    (place / NAME.format(second=1, pid=1)).write_bytes(data)
    run = scan(place)
    (file,) = run.files
    assert file.record_bytes + file.lost_bytes == len(data)
    good = sum(kind == "good" for kind, _ in pieces)
    values = sum(len(event.values) for event in read_events(place))
    # A cut piece can be completed by what follows it, so that there may be more.
    assert file.records >= good
    assert sum(tag.points for tag in run.tags.values()) == values >= good


@given(st.binary(max_size=400))
def test_of_any_bytes_nothing_is_raised(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("run")
    (place / NAME.format(second=1, pid=1)).write_bytes(data)
    (file,) = scan(place).files
    assert file.record_bytes + file.lost_bytes == len(data)


def test_tags_without_end_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_scan, "MOST_TAGS", 10)
    (tmp_path / NAME.format(second=1, pid=1)).write_bytes(b"".join(scalar(1, 1.0, f"t{n}") for n in range(25)))
    run = scan(tmp_path)
    assert (len(run.tags), run.more_tags) == (10, 15)


@pytest.mark.slow
@pytest.mark.timeout(300)  # two processes that read as much as they can
def test_memory_stays_bounded_on_a_large_damaged_file(tmp_path):
    """9 and 36 MB of scalars and damage take the same memory: so will 10 GB."""
    block = b"".join(scalar(step, 1.0, f"t{step % 50}") for step in range(20_000)) + bytes(500) + record(bytes(60_000))
    peaks = []
    for blocks in (10, 40):
        place = tmp_path / str(blocks)
        place.mkdir()
        with (place / NAME.format(second=1, pid=1)).open("wb") as file:
            for _ in range(blocks):
                file.write(block)
        program = f"""
            import pathlib
            from tbwriter import _scan, _tree
            run, = [d for d in _tree.walk({str(place)!r}) if d.event_files]
            found = _scan.scan(run.path, run.run, run.event_files).files[0]
            assert found.values == {blocks * 20_000}, found.values
            assert found.damaged == {blocks}, found.damaged
            # Not ru_maxrss, which counts what the parent held when it forked.
            status = pathlib.Path("/proc/self/status").read_text()
            print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
        """
        ended = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        peaks.append(int(ended.stdout))
        next(place.iterdir()).unlink()
    assert max(peaks) < 150, "of 300 MiB that are promised, whatever the size"
    assert peaks[1] - peaks[0] < 10
