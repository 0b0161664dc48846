import math

import numpy as np
import pytest

from tbwriter import SummaryWriter
from tbwriter._settings import Settings

DEFAULTS = {
    "url": "runs",
    "purge_step": None,
    "max_queue": None,
    "flush_secs": 1.0,
    "filename_suffix": "",
    "write_to_disk": True,
    "storage_options": None,
    "max_file_size": None,
    "max_file_age": None,
    "max_queue_bytes": 64 << 20,
    "on_full": "block",
    "block_secs": 5.0,
    "strict": False,
    "asynchronous": True,
    "coalesce": True,
    "spool_dir": None,
    "shipper": "thread",
}


def checked(**changes):
    return Settings.checked(**{**DEFAULTS, **changes})


# ---- what is refused, at construction and before anything is created


def refused(tmp_path, settings, error, message):
    directory = tmp_path / "run"
    with pytest.raises(error, match=message):
        SummaryWriter(directory, **settings)
    assert not directory.exists()


@pytest.mark.parametrize("name", ["max_queue", "max_file_size", "max_queue_bytes"])
@pytest.mark.parametrize("value", ["10", 1.5, 10.0, True, [10]])
def test_a_number_that_is_no_integer_is_refused_by_name(tmp_path, name, value):
    refused(tmp_path, {name: value}, TypeError, rf"^{name} must be an integer, got ")


@pytest.mark.parametrize("value", [-1, 0, 1, 239, 1919])
def test_a_queue_too_small_for_a_scalar_beside_a_large_entry_is_refused(tmp_path, value):
    message = rf"^max_queue_bytes must be at least 1920, got int {value}$"
    refused(tmp_path, {"max_queue_bytes": value}, ValueError, message)


@pytest.mark.parametrize("name", ["max_queue", "max_file_size"])
@pytest.mark.parametrize("value", [0, -1, np.int64(0)])
def test_a_number_below_1_is_refused_by_name(tmp_path, name, value):
    refused(tmp_path, {name: value}, ValueError, rf"^{name} must be at least 1, got int(64)? {value}$")


def test_a_queue_without_a_bound_in_bytes_is_refused(tmp_path):
    refused(tmp_path, {"max_queue_bytes": None}, TypeError, r"^max_queue_bytes must be an integer, got NoneType None$")


@pytest.mark.parametrize("name", ["flush_secs", "block_secs", "max_file_age"])
@pytest.mark.parametrize("value", ["1", True, [1.0], 1j])
def test_seconds_that_are_no_number_are_refused_by_name(tmp_path, name, value):
    refused(tmp_path, {name: value}, TypeError, rf"^{name} must be a number of seconds, got ")


def test_a_wait_without_end_for_a_full_queue_is_refused(tmp_path):
    refused(tmp_path, {"block_secs": None}, TypeError, r"^block_secs must be a number of seconds, got None")


def test_files_that_are_old_at_once_are_refused(tmp_path):
    refused(tmp_path, {"max_file_age": 0.5}, ValueError, r"^max_file_age must be at least 1 second, got 0.5$")


@pytest.mark.parametrize("name", ["flush_secs", "block_secs", "max_file_age"])
@pytest.mark.parametrize("value", [-1, -1e-9, math.nan, math.inf, -math.inf])
def test_seconds_that_are_negative_or_not_finite_are_refused_by_name(tmp_path, name, value):
    refused(tmp_path, {name: value}, ValueError, rf"^{name} must be finite and not negative, got ")


@pytest.mark.parametrize("suffix", [None, 7, b".v2"])
def test_a_suffix_that_is_no_str_is_refused(tmp_path, suffix):
    refused(tmp_path, {"filename_suffix": suffix}, TypeError, r"^filename_suffix must be a str, got ")


@pytest.mark.parametrize("suffix", ["/x", "a/b", "..\\x", "\0", ".profile-empty", "x.profile-empty"])
def test_a_suffix_that_makes_no_file_name_is_refused(tmp_path, suffix):
    # TensorBoard's Python reader skips names that end in .profile-empty.
    refused(
        tmp_path,
        {"filename_suffix": suffix},
        ValueError,
        r"^filename_suffix must hold no path separator and not end in \.profile-empty, got ",
    )


@pytest.mark.parametrize("on_full", ["wait", "", None, True, "BLOCK"])
def test_another_policy_for_a_full_queue_is_refused(tmp_path, on_full):
    refused(tmp_path, {"on_full": on_full}, ValueError, r"^on_full must be 'block', 'drop' or 'raise', got ")


@pytest.mark.parametrize("purge_step", ["7", 7.5, math.nan, [1, 2], 2**63])
def test_a_purge_step_that_is_no_step_is_refused(tmp_path, purge_step):
    refused(tmp_path, {"purge_step": purge_step}, (TypeError, ValueError), r"purge_step")


# ---- what is taken


def test_numpys_numbers_become_pythons():
    settings = checked(max_queue=np.int64(7), max_file_size=np.int32(9), flush_secs=np.float32(2), block_secs=3)
    assert type(settings.max_queue) is int
    assert type(settings.max_file_size) is int
    assert type(settings.flush_secs) is float
    assert type(settings.block_secs) is float
    assert (settings.max_queue, settings.max_file_size, settings.flush_secs, settings.block_secs) == (7, 9, 2.0, 3.0)


def test_flushing_all_the_time_is_flushing_every_10_ms():
    assert checked(flush_secs=0).flush_secs == 0.01
    assert checked(flush_secs=0.5).flush_secs == 0.5


def test_a_wait_of_0_seconds_is_taken():
    assert checked(block_secs=0).block_secs == 0.0


@pytest.mark.parametrize("suffix", ["", ".v2", "-rank0", "后缀"])
def test_a_suffix_is_any_part_of_a_file_name(suffix):
    assert checked(filename_suffix=suffix).filename_suffix == suffix


def test_the_queue_of_a_blocking_writer_holds_at_least_1000():
    # torch and tensorboardX take 10, and then wait for the disk at each call.
    assert checked(max_queue=10).max_entries == 1000
    assert checked(max_queue=5000).max_entries == 5000


@pytest.mark.parametrize("on_full", ["drop", "raise"])
def test_the_queue_of_a_writer_that_never_waits_is_as_asked(on_full):
    assert checked(max_queue=10, on_full=on_full).max_entries == 10


def test_the_default_queue_holds_250000():
    assert checked().max_entries == 250_000


def test_credentials_are_in_no_repr():
    assert "s3cr3t" not in repr(checked(storage_options={"secret": "s3cr3t"}))


def test_a_copy_of_a_writer_voids_nothing_that_the_original_wrote():
    original = checked(purge_step=500, flush_secs=2.0)
    assert original.for_copy().purge_step is None
    assert original.for_copy().flush_secs == 2.0


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        checked().strict = True
