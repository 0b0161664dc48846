"""Good arguments for every method of SummaryWriter, by name."""

import numpy as np
import pytest

TAG = "the/tag"
RNG = np.random.default_rng(0)
COUNTS = ("true_positive_counts", "false_positive_counts", "true_negative_counts", "false_negative_counts")


GOOD = {
    "add_scalar": {"tag": TAG, "scalar_value": 1.0},
    "add_metrics": {"metrics": {TAG: 1.0}},
    "add_scalar_series": {"tag": TAG, "values": [1.0, 2.0], "steps": [1, 2], "wall_times": [1.0, 2.0]},
    "add_scalars": {"main_tag": TAG, "tag_scalar_dict": {"a": 1.0}},
    "add_histogram": {"tag": TAG, "values": [1.0, 2.0]},
    "add_histogram_raw": {
        "tag": TAG,
        "min": 0,
        "max": 2,
        "num": 3,
        "sum": 4,
        "sum_squares": 5,
        "bucket_limits": [1, 2],
        "bucket_counts": [1, 2],
    },
    "add_tensor": {"tag": TAG, "tensor": np.arange(4)},
    "add_text": {"tag": TAG, "text_string": "words"},
    "add_image": {"tag": TAG, "img_tensor": RNG.random((3, 4, 5))},
    "add_images": {"tag": TAG, "img_tensor": RNG.random((2, 3, 4, 5))},
    "add_image_with_boxes": {"tag": TAG, "img_tensor": RNG.random((3, 9, 9)), "box_tensor": [[1, 2, 5, 6]] * 2},
    "add_figure": {"tag": TAG},
    "add_video": {"tag": TAG, "vid_tensor": RNG.random((1, 2, 3, 8, 8))},
    "add_audio": {"tag": TAG, "snd_tensor": np.zeros(10)},
    "add_pr_curve": {"tag": TAG, "labels": [1, 0], "predictions": [0.9, 0.1]},
    "add_pr_curve_raw": {"tag": TAG, **{name: [1, 2] for name in (*COUNTS, "precision", "recall")}},
    "add_mesh": {"tag": TAG, "vertices": RNG.random((4, 3)), "colors": RNG.random((4, 3)), "faces": [[0, 1, 2]]},
    "add_hparams": {"hparam_dict": {"rate": 0.1}, "metric_dict": {TAG: 0.5}},
    "add_custom_scalars": {"layout": {"c": {"t": ["Multiline", ["s"]]}}},
    "add_custom_scalars_multilinechart": {"tags": ["s"]},
    "add_custom_scalars_marginchart": {"tags": ["a", "b", "c"]},
    "add_graph": {"model": b"\n\x10\n\x01a\x12\x0bPlaceholder"},
    "add_onnx_graph": {},
    "add_embedding": {"mat": np.eye(2), "metadata": ["a", "b"], "label_img": RNG.random((2, 3, 4, 4)), "tag": TAG},
}
_NEEDS = {"add_figure": "matplotlib", "add_onnx_graph": "onnx"}


def arguments(method):
    """Return good arguments for a method, none for `add_onnx_graph`; skip the test where its package is missing."""
    if method in _NEEDS:
        pytest.importorskip(_NEEDS[method])
    if method == "add_figure":
        from matplotlib.figure import Figure

        return {**GOOD[method], "figure": Figure(figsize=(0.1, 0.1))}
    return GOOD[method]
