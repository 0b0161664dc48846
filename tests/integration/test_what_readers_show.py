"""What both readers show of values, tags and descriptions of every kind."""

import io
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from tbwriter import SummaryWriter

INF = float("inf")
STATUSES = ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"]


class Asnumpy:
    """A framework's tensor that knows asnumpy() only."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def asnumpy(self):
        return self.array


NUMBERS = {
    "float": (0.1, 0.10000000149011612),
    "int": (7, 7.0),
    "bool": (True, 1.0),
    "zero": (0.0, 0.0),
    "negative": (-2.5, -2.5),
    "subnormal": (1e-40, 9.99994610111476e-41),
    "beyond-2**24": (2**24 + 1, 16777216.0),
    "float16": (np.float16(0.5), 0.5),
    "float32": (np.float32(0.1), 0.10000000149011612),
    "float64": (np.float64(0.1), 0.10000000149011612),
    "int64": (np.int64(-3), -3.0),
    "uint8": (np.uint8(200), 200.0),
    "bool_": (np.bool_(True), 1.0),
    "0-d array": (np.array(1.5), 1.5),
    "array of one": (np.array([[1.5]]), 1.5),
    "Decimal": (Decimal("0.5"), 0.5),
    "Fraction": (Fraction(1, 4), 0.25),
    "asnumpy": (Asnumpy(1.5), 1.5),
}


def test_a_number_of_any_kind_shows_as_its_float32(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for step in range(2):
            for tag, (value, _) in NUMBERS.items():
                writer.add_scalar(tag, value, step)
    tensorboard.shows_curves(run.name, {tag: [(0, shown), (1, shown)] for tag, (_, shown) in NUMBERS.items()})


def test_a_bfloat16_shows_as_its_float32(tensorboard, run):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    with SummaryWriter(run.path) as writer:
        writer.add_scalar("a", bfloat16(0.1), 1)
    tensorboard.shows_curves(run.name, {"a": [(1, 0.10009765625)]})


@pytest.mark.parametrize("way", ["add_scalar", "add_metrics", "add_scalar_series"])
def test_nan_and_infinities_show_and_end_nothing(tensorboard, run, way):
    values = [1.0, float("nan"), INF, -INF, 2.0]
    with SummaryWriter(run.path) as writer:
        if way == "add_scalar_series":
            writer.add_scalar_series("a", np.array(values), np.arange(5))
        for step, value in enumerate(values):
            if way == "add_scalar":
                writer.add_scalar("a", value, step)
            elif way == "add_metrics":
                writer.add_metrics({"a": value}, step)
    tensorboard.shows_curves(run.name, {"a": [(0, 1.0), (1, "nan"), (2, INF), (3, -INF), (4, 2.0)]})


TAGS = [
    "loss",
    "train/loss",
    "a/b/c/d/e",
    "two words",
    " outer blanks ",
    "损失/训练",
    "ﬁne e\u0301 é",  # a ligature, a combining accent and its composed form: no normalisation
    "🚀/🔥",
    "a&b=c?d#e%20",
    "[0](1){2}<3>",
    "quote \" and \\ and '",
    "..",
    "/",
    "tab\tand\nline",
    "x" * 3000,
]


def test_tags_show_byte_for_byte(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for number, tag in enumerate(TAGS):
            writer.add_scalar(tag, float(number), 1)
    tensorboard.shows_curves(run.name, {tag: [(1, float(number))] for number, tag in enumerate(TAGS)})


def test_tags_that_differ_in_normalisation_or_case_stay_apart(tensorboard, run):
    tags = {"\u00e9": 1.0, "e\u0301": 2.0, "Loss": 3.0, "loss": 4.0, "loss ": 5.0}
    with SummaryWriter(run.path) as writer:
        writer.add_metrics(tags, 1)
    tensorboard.shows_curves(run.name, {tag: [(1, value)] for tag, value in tags.items()})


def test_histogram_text_and_image_tags_show_byte_for_byte(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_histogram("层 1/权重 🔥", [1.0, 2.0], 1)
        writer.add_text("说明 🔥", "words", 1)
        writer.add_image("图 🔥", np.zeros((1, 2, 2), np.uint8), 1)
    tensorboard.shows(lambda: tensorboard.tags("histograms", run.name), ["层 1/权重 🔥"])
    tensorboard.shows(lambda: tensorboard.texts(run.name, "说明 🔥/text_summary"), [(1, "<p>words</p>")])
    tensorboard.shows(lambda: len(tensorboard.images(run.name, "图 🔥")), 1)


def test_a_display_name_and_a_description_show(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for step in range(3):
            writer.add_scalar("c", 0.5, step, display_name="The c", summary_description="what *c* is")
    tensorboard.shows_curves(run.name, {"c": [(0, 0.5), (1, 0.5), (2, 0.5)]})
    want = {"c": ("The c", "<p>what <em>c</em> is</p>")}
    tensorboard.shows(lambda: tensorboard.descriptions(run.name), want)


def test_new_style_and_double_precision_show_the_float32(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_scalar("c", 0.1, 1, new_style=True)
        writer.add_scalar("d", 0.1, 1, new_style=True, double_precision=True)
    tensorboard.shows_curves(run.name, {"c": [(1, 0.10000000149011612)], "d": [(1, 0.10000000149011612)]})


def test_steps_of_any_size_and_kind_show(tensorboard, run):
    steps = [0, 1, -5, 2**31, 2**53, np.int64(7), np.uint8(200), 7.0, np.array([3])]
    with SummaryWriter(run.path) as writer:
        for number, step in enumerate(steps):
            writer.add_scalar(f"tag{number}", 1.0, step)
    shown = [0, 1, -5, 2147483648, 9007199254740992, 7, 200, 7, 3]
    tensorboard.shows_curves(run.name, {f"tag{number}": [(step, 1.0)] for number, step in enumerate(shown)})


def test_a_step_that_is_not_given_shows_as_0(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_scalar("a", 1.0)
    tensorboard.shows_curves(run.name, {"a": [(0, 1.0)]})


def test_explicit_wall_times_show(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_scalar("a", 1.0, 1, walltime=1_700_000_000.25)
        writer.add_scalar_series("b", [1.0, 2.0], [1, 2], wall_times=[1_700_000_000.5, 1_700_000_001.5])
    ask = tensorboard.get
    query = {"path": "/data/plugin/scalars/scalars", "run": run.name}
    tensorboard.shows(lambda: ask(**query, tag="a"), [[1_700_000_000.25, 1, 1.0]])
    tensorboard.shows(lambda: ask(**query, tag="b"), [[1_700_000_000.5, 1, 1.0], [1_700_000_001.5, 2, 2.0]])


def test_an_array_without_anything_finite_ends_nothing(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_histogram("none", np.array([]), 1)
        writer.add_histogram("nan", np.full(5, np.nan), 1)
        writer.add_histogram("some", np.array([1.0, np.nan, 3.0, INF]), 1)
        writer.add_scalar("after", 1.0, 1)
    tensorboard.shows(lambda: tensorboard.scalars(run.name, "after"), [(1, 1.0)])
    tensorboard.shows(lambda: [sum(n for *_, n in rows) for _, rows in tensorboard.histograms(run.name, "some")], [2])


def test_pictures_of_points_need_not_be_square(tensorboard, run):
    pictures = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 32), np.uint8)
    with SummaryWriter(run.path) as writer:
        writer.add_embedding(np.arange(15.0).reshape(5, 3), label_img=pictures, tag="wide")
    ask, query = tensorboard.get, {"run": run.name, "name": "wide:00000"}
    tensorboard.shows(lambda: run.name in ask("/data/plugin/projector/runs"), True)
    (embedding,) = ask("/data/plugin/projector/info", run=run.name)["embeddings"]
    assert embedding["sprite"]["singleImageDim"] == [32, 16]  # width, height
    with Image.open(io.BytesIO(tensorboard.get_bytes("/data/plugin/projector/sprite_image", **query)[1])) as sprite:
        sheet = np.asarray(sprite.convert("RGB"))
    across = sheet.shape[1] // 32
    for number, picture in enumerate(pictures):
        row, column = divmod(number, across)
        shown = sheet[16 * row : 16 * row + 16, 32 * column : 32 * column + 32]
        assert np.array_equal(shown, picture.transpose(1, 2, 0))


def test_ten_trials_show_as_ten_rows_with_all_their_columns(tensorboard, run):
    rows = {}
    for number in range(10):
        hparams = {
            "ten/rate": 10.0**-number,
            "ten/nesterov": number % 2 == 0,
            "ten/optimizer": ("sgd", "adam")[number % 2],
        }
        if number in (3, 9):  # only some runs have it
            hparams["ten/momentum"] = 0.9
        with SummaryWriter(run.path / str(number)) as writer:
            writer.add_hparams(hparams, {"ten/accuracy": number / 16})
        rows[run.sub(str(number))] = hparams, "STATUS_SUCCESS", number / 16

    asked = {"colParams": [{"metric": {"tag": "ten/accuracy"}}], "sliceSize": 1000, "allowedStatuses": STATUSES}

    def shown():
        found = tensorboard.get("/data/plugin/hparams/session_groups", request=json.dumps(asked))["sessionGroups"]
        return {
            group["name"]: (group["hparams"], group["sessions"][0]["status"], group["metricValues"][0]["value"])
            for group in found
            if group["name"].startswith(run.name) and group["metricValues"]
        }

    tensorboard.shows(shown, rows)
    columns = tensorboard.get("/data/plugin/hparams/experiment", request="{}")["hparamInfos"]
    assert {column["name"] for column in columns} >= {"ten/rate", "ten/nesterov", "ten/optimizer", "ten/momentum"}


def test_values_that_are_no_numbers_end_no_dashboard(tensorboard, run):
    """What is accepted at the call must be no error of a reader's: it would hide the whole tag, or all runs."""
    with SummaryWriter(run.path) as writer:
        for step in range(2):
            counts = [[3.0, 2.0, 0.0]] * 4
            writer.add_pr_curve_raw("raw", *counts, [0.5, 0.5, np.nan], [np.nan] * 3, step)
            writer.add_pr_curve("pr", [1, np.nan, 0], [np.nan, 0.5, 0.5], step, 5, weights=[1.0, INF, 3e38])
            writer.add_mesh("mesh", [[0, 0, np.nan], [1, 0, INF], [0, 1, 0]], global_step=step)
            writer.add_metrics({"m/value": np.nan, "m/low": -INF, "m/high": INF}, step)
        writer.add_custom_scalars_marginchart(["m/value", "m/low", "m/high"], title=run.name)
        hparams = {"odd/nan": np.nan, "odd/inf": INF, "odd/list": [np.nan]}
        writer.add_hparams(hparams, {"odd/metric": np.nan, "odd/other": INF})
        writer.add_embedding([[np.nan, 1.0], [INF, 2.0]], tag="odd")
        writer.add_scalar("after", 1.0, 1)
    ask, sort = tensorboard.get, {"order": "ORDER_ASC"}
    tensorboard.shows(lambda: tensorboard.scalars(run.name, "after"), [(1, 1.0)])
    (first, _) = ask("/data/plugin/pr_curves/pr_curves", run=run.name, tag="raw")[run.name]
    assert (first["precision"], first["recall"]) == ([0.5, 0.5], ["NaN", "NaN"])
    assert len(ask("/data/plugin/pr_curves/pr_curves", run=run.name, tag="pr")[run.name]) == 2
    assert len(ask("/data/plugin/mesh/meshes", run=run.name, tag="mesh", sample=0)) == 2
    query = {"run": run.name, "tag": "mesh", "content_type": "VERTEX", "sample": 0, "step": 1}
    status, body = tensorboard.get_bytes("/data/plugin/mesh/data", **query)
    assert (status, np.isnan(np.frombuffer(body, "<f4")).sum()) == (200, 1)
    shown = ask("/data/plugin/custom_scalars/scalars", run=run.name, tag="m/.*")["tag_to_events"]
    assert [value for _, _, value in shown["m/low"]] == ["-Infinity", "-Infinity"]
    columns = [{"hparam": "odd/nan", **sort}, {"metric": {"tag": "odd/metric"}, **sort}]
    asked = {"colParams": columns, "sliceSize": 1000, "allowedStatuses": STATUSES}
    groups = ask("/data/plugin/hparams/session_groups", request=json.dumps(asked))["sessionGroups"]
    (group,) = [group for group in groups if group["name"] == run.name]
    assert group["hparams"] == {"odd/nan": "nan", "odd/inf": "inf", "odd/list": "[nan]"}
    metrics = {one["name"]["tag"]: one["value"] for one in group["metricValues"]}
    assert (metrics["odd/metric"], metrics["odd/other"]) == ("NaN", "Infinity")
    status, body = tensorboard.get_bytes("/data/plugin/projector/tensor", run=run.name, name="odd:00000")
    assert (status, np.isnan(np.frombuffer(body, "<f4")).sum()) == (200, 1)
