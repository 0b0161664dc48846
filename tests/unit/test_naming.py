import re
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter._naming import MARKER_STEP, file_name, host_name, session_starts

NOW = 1700000000.7


def name_of(existing=(), *, now=NOW, host="node", pid=17, suffix="", previous=None):
    return file_name(existing, now=now, host=host, pid=pid, suffix=suffix, previous=previous)


# ---- the first file


def test_the_first_file_has_the_second_host_pid_and_number():
    assert name_of() == "events.out.tfevents.1700000000.node.17.000000"


def test_the_suffix_goes_last():
    assert name_of(suffix=".v2") == "events.out.tfevents.1700000000.node.17.000000.v2"


def test_a_clock_near_1970_gives_10_digits_too():
    assert name_of(now=5.0) == "events.out.tfevents.0000000005.node.17.000000"


def test_a_clock_before_1970_gives_a_name_of_the_pattern_too():
    assert name_of(now=-5.0) == "events.out.tfevents.0000000000.node.17.000000"


def test_after_the_last_second_there_is_still_a_new_name():
    """A stamp in milliseconds, cut to ten digits, is that late."""
    first = name_of(["events.out.tfevents.9999999999123.node"])
    assert first == "events.out.tfevents.9999999999.node.17.000000"
    assert name_of([first]) == "events.out.tfevents.9999999999.node.17.000001"


def test_other_files_of_the_directory_do_not_matter():
    assert name_of(["checkpoint.ckpt", "events.txt", "9999999999"]) == name_of()


# ---- after other files


@pytest.mark.parametrize(
    ("existing", "second"),
    [
        ("events.out.tfevents.1699999990.node.17.000000", 1700000000),
        ("events.out.tfevents.1700000000.node.17.000000", 1700000001),
        ("events.out.tfevents.1700000000.zzz.99999.0", 1700000001),
        ("events.out.tfevents.1700000000.aaa.1.0", 1700000001),
        ("events.out.tfevents.1700000100.node", 1700000101),  # tensorboardX's, or a clock ahead of ours
        ("events.out.tfevents.1700000100.node.12.9", 1700000101),
        ("events.out.tfevents.1700000100.node.12.9.v2", 1700000101),
        ("events.out.tfevents.1700000100.node.profile-empty", 1700000101),
    ],
)
def test_a_new_file_takes_a_second_after_the_newest(existing, second):
    name = name_of([existing])
    assert name == f"events.out.tfevents.{second}.node.17.000000"
    assert name > existing


def test_a_clock_that_went_back_does_not_matter():
    later = name_of(["events.out.tfevents.1700000000.node.17.000000"], now=1600000000.0)
    assert later == "events.out.tfevents.1700000001.node.17.000000"


def test_the_second_keeps_10_digits_to_the_end():
    name = name_of(["events.out.tfevents.9999999999.node.1.0"])
    assert re.fullmatch(r"events\.out\.tfevents\.\d{10}\.node\.17\.000000", name)


@pytest.mark.parametrize(
    "existing",
    [
        "events.out.tfevents.1700000000123.node",  # milliseconds
        "events.out.tfevents.1700000000123456.node",
        "events.out.tfevents.99.node",
        "events.out.tfevents.2.node.v2",
        "events.out.tfevents.0.node",
    ],
)
def test_a_new_file_sorts_after_one_with_a_second_of_other_digits(existing):
    assert name_of([existing]) > existing


@pytest.mark.parametrize("existing", ["run.tfevents", "tfevents.abc", "my.tfevents.x", "x-tfevents"])
def test_event_files_of_foreign_names_do_no_harm(existing):
    assert name_of([existing]) == "events.out.tfevents.1700000000.node.17.000000"


hosts = st.text("abcXYZ019.-", min_size=1, max_size=12)
suffixes = st.sampled_from(["", ".v2", ".9", "0", "-rank0", "zzz", "!"])
others = st.builds(
    lambda second, host, pid, number, suffix: f"events.out.tfevents.{second:010d}.{host}.{pid}.{number}{suffix}",
    st.integers(1_500_000_000, 1_800_000_000),
    hosts,
    st.integers(1, 2**22),
    st.sampled_from(["0", "9", "10", "000000", "000009", "999999"]),
    suffixes,
)


@given(st.lists(others, max_size=6), st.floats(1.5e9, 1.8e9), hosts, st.integers(1, 2**22), suffixes)
def test_a_new_file_sorts_after_every_event_file(existing, now, host, pid, suffix):
    name = name_of(existing, now=now, host=host, pid=pid, suffix=suffix)
    assert all(other < name for other in existing)
    assert "tfevents" in name


# ---- the next file of the same writer


def test_the_next_file_counts_up():
    previous = "events.out.tfevents.1700000000.node.17.000000"
    assert name_of([previous], previous=previous) == "events.out.tfevents.1700000000.node.17.000001"


@pytest.mark.parametrize(("number", "following"), [(9, 10), (99, 100), (999, 1000), (99_999, 100_000)])
def test_the_number_keeps_6_digits_so_that_10_sorts_after_9(number, following):
    previous = f"events.out.tfevents.1700000000.node.17.{number:06d}"
    name = name_of([previous], previous=previous)
    assert name == f"events.out.tfevents.1700000000.node.17.{following:06d}"
    assert name > previous


def test_the_next_file_keeps_the_suffix():
    previous = "events.out.tfevents.1700000000.node.17.000009.v2"
    name = name_of([previous], suffix=".v2", previous=previous)
    assert name == "events.out.tfevents.1700000000.node.17.000010.v2"


def test_a_suffix_of_digits_is_no_number():
    previous = "events.out.tfevents.1700000000.node.17.0000017"
    assert name_of([previous], suffix="7", previous=previous) == "events.out.tfevents.1700000000.node.17.0000027"


def test_after_the_last_number_comes_a_new_second():
    previous = "events.out.tfevents.1700000000.node.17.999999"
    assert name_of([previous], previous=previous) == "events.out.tfevents.1700000001.node.17.000000"


def test_the_next_file_sorts_after_what_another_writer_began_meanwhile():
    previous = "events.out.tfevents.1700000000.node.17.000000"
    other = "events.out.tfevents.1700000005.aaa.3.000000"
    assert name_of([previous, other], previous=previous) == "events.out.tfevents.1700000006.node.17.000000"


def test_the_next_file_counts_up_though_the_directory_was_emptied():
    previous = "events.out.tfevents.1700000000.node.17.000003"
    assert name_of([], previous=previous) == "events.out.tfevents.1700000000.node.17.000004"


@given(st.lists(others, max_size=4), st.floats(1.5e9, 1.8e9), hosts, suffixes, st.integers(1, 30))
def test_all_files_of_a_writer_sort_in_the_order_in_which_they_were_made(existing, now, host, suffix, count):
    names, previous = list(existing), None
    for _ in range(count):
        previous = name_of(names, now=now, host=host, suffix=suffix, previous=previous)
        assert all(other < previous for other in names)
        names.append(previous)


# ---- the host


@pytest.mark.parametrize(
    ("hostname", "host"),
    [
        ("node-17.example.org", "node-17.example.org"),
        ("Büro rechner", "B-ro-rechner"),
        ("机器", "--"),
        ("a/b:c_d", "a-b-c-d"),
        ("", "localhost"),
        ("x" * 200, "x" * 64),
    ],
)
def test_a_host_name_is_reduced_to_letters_digits_dots_and_hyphens(monkeypatch, hostname, host):
    monkeypatch.setattr(socket, "gethostname", lambda: hostname)
    assert host_name() == host


# ---- session marks


OTHER = ["events.out.tfevents.1700000000.node.17.000000"]


def test_the_first_session_starts_at_0():
    assert session_starts([], None) == [0]


def test_the_first_session_starts_at_its_purge_step():
    assert session_starts(["checkpoint.ckpt"], 500) == [500]


def test_a_later_session_without_a_purge_step_voids_nothing():
    assert session_starts(OTHER, None) == [2**63 - 1]
    assert MARKER_STEP == 2**63 - 1


@pytest.mark.parametrize("purge_step", [500, 0])
def test_a_later_session_voids_from_its_purge_step_on(purge_step):
    # The first START of a run voids nothing for TensorBoard's Python reader, so one that means nothing goes first.
    assert session_starts(OTHER, purge_step) == [2**63 - 1, purge_step]
