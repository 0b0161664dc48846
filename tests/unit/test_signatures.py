"""The methods of torch 2.13's and tensorboardX 2.6.5's SummaryWriter: names, positional order and defaults."""

import inspect

import pytest

from tbwriter import SummaryWriter

REQUIRED = inspect.Parameter.empty

# Where the two differ in what comes behind, only what they share; the rest is by name.
SHARED = {
    "add_scalar": {"tag": REQUIRED, "scalar_value": REQUIRED, "global_step": None, "walltime": None},
    "add_scalars": {"main_tag": REQUIRED, "tag_scalar_dict": REQUIRED, "global_step": None, "walltime": None},
    "add_histogram": {
        "tag": REQUIRED,
        "values": REQUIRED,
        "global_step": None,
        "bins": "tensorflow",
        "walltime": None,
        "max_bins": None,
    },
    "add_histogram_raw": {
        "tag": REQUIRED,
        "min": REQUIRED,
        "max": REQUIRED,
        "num": REQUIRED,
        "sum": REQUIRED,
        "sum_squares": REQUIRED,
        "bucket_limits": REQUIRED,
        "bucket_counts": REQUIRED,
        "global_step": None,
        "walltime": None,
    },
    "add_tensor": {"tag": REQUIRED, "tensor": REQUIRED, "global_step": None, "walltime": None},
    "add_text": {"tag": REQUIRED, "text_string": REQUIRED, "global_step": None, "walltime": None},
    "add_image": {
        "tag": REQUIRED,
        "img_tensor": REQUIRED,
        "global_step": None,
        "walltime": None,
        "dataformats": "CHW",
    },
    "add_images": {
        "tag": REQUIRED,
        "img_tensor": REQUIRED,
        "global_step": None,
        "walltime": None,
        "dataformats": "NCHW",
    },
    "add_image_with_boxes": {
        "tag": REQUIRED,
        "img_tensor": REQUIRED,
        "box_tensor": REQUIRED,
        "global_step": None,
        "walltime": None,
    },
    "add_figure": {"tag": REQUIRED, "figure": REQUIRED, "global_step": None, "close": True, "walltime": None},
    "add_video": {"tag": REQUIRED, "vid_tensor": REQUIRED, "global_step": None, "fps": 4, "walltime": None},
    "add_audio": {
        "tag": REQUIRED,
        "snd_tensor": REQUIRED,
        "global_step": None,
        "sample_rate": 44100,
        "walltime": None,
    },
    "add_pr_curve": {
        "tag": REQUIRED,
        "labels": REQUIRED,
        "predictions": REQUIRED,
        "global_step": None,
        "num_thresholds": 127,
        "weights": None,
        "walltime": None,
    },
    "add_pr_curve_raw": {
        "tag": REQUIRED,
        "true_positive_counts": REQUIRED,
        "false_positive_counts": REQUIRED,
        "true_negative_counts": REQUIRED,
        "false_negative_counts": REQUIRED,
        "precision": REQUIRED,
        "recall": REQUIRED,
        "global_step": None,
        "num_thresholds": 127,
        "weights": None,
        "walltime": None,
    },
    "add_mesh": {
        "tag": REQUIRED,
        "vertices": REQUIRED,
        "colors": None,
        "faces": None,
        "config_dict": None,
        "global_step": None,
        "walltime": None,
    },
    "add_hparams": {"hparam_dict": REQUIRED, "metric_dict": REQUIRED},
    "add_embedding": {
        "mat": REQUIRED,
        "metadata": None,
        "label_img": None,
        "global_step": None,
        "tag": "default",
        "metadata_header": None,
    },
    "add_graph": {"model": REQUIRED, "input_to_model": None, "verbose": False, "use_strict_trace": True},
    "add_onnx_graph": {"prototxt": None},
    "add_custom_scalars": {"layout": REQUIRED},
    "add_custom_scalars_multilinechart": {"tags": REQUIRED, "category": "default", "title": "untitled"},
    "add_custom_scalars_marginchart": {"tags": REQUIRED, "category": "default", "title": "untitled"},
    "use_metadata": {},
}
# Torch's order; texts in the places of its switches are tensorboardX's: see test_writer.py.
BEHIND = {
    "add_scalar": {"new_style": False, "double_precision": False, "display_name": "", "summary_description": ""},
}
# By name: what one of the two has, or has in another place.
BY_NAME = {
    "add_image_with_boxes": {"rescale": 1, "dataformats": "CHW", "labels": None},
    "add_video": {"dataformats": "NTCHW"},
    "add_hparams": {"hparam_domain_discrete": None, "run_name": None, "name": None, "global_step": None},
    "add_onnx_graph": {"onnx_model_file": None},
    "use_metadata": {"global_step": None, "walltime": None},
}


def defaults(method, *kinds):
    parameters = inspect.signature(getattr(SummaryWriter, method)).parameters.values()
    return {one.name: one.default for one in parameters if one.kind in kinds and one.name != "self"}


@pytest.mark.parametrize("method", SHARED)
def test_what_both_take_by_position_is_taken_by_position(method):
    got = defaults(method, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert list(got.items()) == list((SHARED[method] | BEHIND.get(method, {})).items())


@pytest.mark.parametrize("method", BY_NAME)
def test_what_one_of_them_takes_is_taken_by_name(method):
    assert defaults(method, inspect.Parameter.KEYWORD_ONLY).items() >= BY_NAME[method].items()


@pytest.mark.parametrize("package", ["torch.utils.tensorboard", "tensorboardX"])
def test_the_tables_are_what_an_installed_package_has(package):
    theirs = pytest.importorskip(package).SummaryWriter
    for method, arguments in SHARED.items():
        if not hasattr(theirs, method):
            continue  # one of the two has it
        parameters = inspect.signature(getattr(theirs, method)).parameters
        names = [name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD and name != "self"]
        shared = [name for name in arguments if name != "prototxt"]
        assert names[: len(shared)] == shared, method
        assert set(names) <= {*arguments, *BEHIND.get(method, ()), *BY_NAME.get(method, ())}, method


def test_the_rest_of_their_names_is_there():
    methods = (
        "close",
        "flush",
        "get_logdir",
        "file_writer",
        "_get_file_writer",
        "all_writers",
        "__enter__",
        "__exit__",
    )
    attributes = ("log_dir", "logdir", "purge_step", "max_queue", "flush_secs", "filename_suffix")
    for name in (*methods, *attributes):
        assert hasattr(SummaryWriter("unused", write_to_disk=False), name), name
