"""np.seterr(all="raise"), with which users look for the origin of a NaN, and warnings as errors: no call raises so."""

import warnings

import numpy as np
import pytest
from event_files import values

HUGE, TINY = 1e300, 1e-310  # beyond float32, and beyond what float64 holds with all its digits
EXTREMES = {
    "scalar": lambda writer: writer.add_scalar("t", np.float64(HUGE), 1),
    "metrics": lambda writer: writer.add_metrics({"t": np.float64(HUGE), "u": TINY}, 1),
    "series": lambda writer: writer.add_scalar_series("t", [HUGE, TINY], [1, 2]),
    "long series": lambda writer: writer.add_scalar_series("t", np.full(1000, TINY), range(1000)),
    "histogram": lambda writer: writer.add_histogram("t", [HUGE, -HUGE, TINY], 1),
    "histogram of NumPy's bins": lambda writer: writer.add_histogram("t", [HUGE, -HUGE, TINY], 1, bins="auto"),
    "raw histogram": lambda writer: writer.add_histogram_raw("t", TINY, HUGE, 2, HUGE, HUGE, [TINY, HUGE], [1, 1], 1),
    "tensor": lambda writer: writer.add_tensor("t", np.array([HUGE, TINY]), 1),
    "huge image": lambda writer: writer.add_image("t", np.full((3, 4, 4), HUGE), 1),
    "tiny image": lambda writer: writer.add_image("t", np.full((3, 4, 4), TINY), 1),
    "NaN image": lambda writer: writer.add_image("t", np.full((3, 4, 4), np.nan, np.float32), 1),
    "video": lambda writer: writer.add_video("t", np.full((1, 2, 3, 8, 8), TINY), 1),
    "audio": lambda writer: writer.add_audio("t", np.array([HUGE, TINY, np.nan]), 1),
    "PR curve": lambda writer: writer.add_pr_curve("t", [0, 1, 0], [0.0, TINY, np.nan], 1),
    "mesh": lambda writer: writer.add_mesh("t", np.array([[[TINY, HUGE, 0.0]] * 3])),
    "boxes": lambda writer: writer.add_image_with_boxes("t", np.zeros((3, 8, 8)), [[HUGE, 1, 2, TINY]], 1),
    "hyper-parameters": lambda writer: writer.add_hparams({"a": np.float64(TINY)}, {"t": np.float64(HUGE)}),
}


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("kind", EXTREMES)
def test_extreme_numbers_are_stored_whatever_numpy_is_told_to_raise(tmp_path, writer_at, kind, asynchronous):
    writer = writer_at(tmp_path, asynchronous=asynchronous)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        EXTREMES[kind](writer)
        writer.close()
    assert writer.stats().dropped == 0
    assert any(tag.startswith("t") for tag, _, _ in values(tmp_path))
