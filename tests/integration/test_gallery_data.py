"""What both readers serve to every dashboard, asked over HTTP: the values that demo/gallery.py wrote."""

import io
import json
import wave

import numpy as np
import pytest
from PIL import Image

RUN = "digits"
PLUGIN = "/data/plugin"


@pytest.fixture
def board(shown_gallery):
    return shown_gallery


@pytest.fixture
def training(gallery):
    return gallery.training


def float32(values):
    return [float(np.float32(value)) for value in values]


def curve(values):
    return list(enumerate(float32(values)))


def decoded(data):
    with Image.open(io.BytesIO(data)) as image:
        return image.format, np.asarray(image.convert("RGB"))


# ---- Scalars, Time Series


def test_scalars_show_every_epoch(board, gallery, training):
    low, high = gallery.module.accuracy_bounds(training)
    assert board.curves(RUN) == {
        "train/loss": curve(training.loss),
        "val/accuracy": curve(training.val_accuracy),
        "val/accuracy_low": curve(low),
        "val/accuracy_high": curve(high),
    }
    times = [time for time, _, _ in board.get(f"{PLUGIN}/scalars/scalars", run=RUN, tag="train/loss")]
    assert times == [1_700_000_000.0 + 10 * epoch for epoch in range(20)]


def test_add_scalars_shows_a_run_for_each_key(board, training):
    assert board.curves(f"{RUN}/accuracy_train") == {"accuracy": curve(training.accuracy)}
    assert board.curves(f"{RUN}/accuracy_validation") == {"accuracy": curve(training.val_accuracy)}


def test_the_runs_are_those_written(board):
    trials = [f"trials/{number}" for number in range(1, 5)]
    assert sorted(board.runs()) == [RUN, f"{RUN}/accuracy_train", f"{RUN}/accuracy_validation", *trials]


def time_series(board, **request):
    answer = board.get(f"{PLUGIN}/timeseries/timeSeries", requests=json.dumps([request]))
    return answer[0]["runToSeries"]


def test_time_series_shows_scalars_histograms_and_images(board, training):
    tags = board.get(f"{PLUGIN}/timeseries/tags")
    assert sorted(tags["scalars"]["runTagInfo"][RUN]) == board.tags("scalars", RUN)
    assert tags["histograms"]["runTagInfo"] == {RUN: ["hidden/weights"]}
    assert sorted(tags["images"]["tagRunSampledInfo"]) == [
        f"images/{name}" for name in ("boxes", "confusion", "layer", "learning", "samples")
    ]
    assert tags["images"]["tagRunSampledInfo"]["images/samples"] == {RUN: {"maxSamplesPerStep": 8}}

    points = time_series(board, plugin="scalars", tag="train/loss")[RUN]
    assert [(point["step"], point["value"]) for point in points] == curve(training.loss)
    counts = time_series(board, plugin="histograms", tag="hidden/weights", run=RUN)[RUN]
    assert [sum(bin_["count"] for bin_ in step["bins"]) for step in counts] == [training.weights[0].size] * 20
    (shown,) = time_series(board, plugin="images", tag="images/samples", run=RUN, sample=7)[RUN]
    status, data = board.get_bytes(f"{PLUGIN}/timeseries/imageData", imageId=shown["imageId"])
    assert status == 200
    assert np.array_equal(decoded(data)[1][::8, ::8, 0], training.images[7])


# ---- Images


def image(board, tag, sample=0):
    """Return [(step, format, pixels)]."""
    return [(step, *decoded(data)) for step, data in board.images(RUN, tag, sample)]


def test_images_show_each_of_a_batch(board, training):
    assert board.get(f"{PLUGIN}/images/tags")[RUN]["images/samples"]["samples"] == 8
    for sample in range(8):
        ((step, kind, pixels),) = image(board, "images/samples", sample)
        assert (step, kind) == (0, "PNG")
        assert np.array_equal(pixels[::8, ::8, 0], training.images[sample])


def test_images_show_at_each_step(board, gallery, training):
    want = [
        (epoch, gallery.module.weight_pictures(training.weights[epoch])) for epoch in (0, len(training.weights) - 1)
    ]
    got = [(step, pixels[::6, ::6, 1]) for step, _, pixels in image(board, "images/layer")]
    assert [step for step, _ in got] == [step for step, _ in want]
    assert all(np.array_equal(shown, written) for (_, shown), (_, written) in zip(got, want, strict=True))


def test_boxes_show_on_their_picture(board, training):
    ((_, _, pixels),) = image(board, "images/boxes")
    assert pixels.shape == (64, 512, 3)
    assert tuple(pixels[63, 64]) == (255, 0, 0)  # a corner of the box around the second digit
    assert np.array_equal(pixels[::8, 16 * 8 :: 8, 2][:, :8], training.images[2])  # no box here


def test_figures_show_in_the_size_that_they_were_drawn_in(board, training):
    steps = image(board, "images/confusion")
    assert [(step, kind, pixels.shape) for step, kind, pixels in steps] == [
        (0, "PNG", (400, 500, 3)),
        (19, "PNG", (400, 500, 3)),
    ]
    assert not np.array_equal(steps[0][2], steps[1][2])


def test_a_video_shows_as_an_animated_gif(board, gallery, training):
    ((step, data),) = board.images(RUN, "images/learning")
    with Image.open(io.BytesIO(data)) as video:
        assert (step, video.format, video.size, video.n_frames) == (0, "GIF", (192, 192), 20)
        assert video.info["duration"] == 250  # ms: 4 frames a second
        video.seek(19)
        last = np.asarray(video.convert("L")).astype(int)[::6, ::6]
    # GIF has 256 colours: the frames are near what was written.
    assert np.abs(last - gallery.module.weight_pictures(training.weights[-1])).max() <= 8


# ---- Audio


@pytest.mark.parametrize(("tag", "channels"), [("tones/loss", 1), ("tones/accuracy", 2)])
def test_audio_plays_what_was_written(board, gallery, training, tag, channels):
    assert board.get(f"{PLUGIN}/audio/tags")[RUN][tag]["samples"] == 1
    (shown,) = board.get(f"{PLUGIN}/audio/audio", run=RUN, tag=tag, sample=0)
    assert (shown["step"], shown["contentType"]) == (0, "audio/wav")
    status, data = board.get_bytes(f"{PLUGIN}/audio/individualAudio?{shown['query']}")
    assert status == 200
    with wave.open(io.BytesIO(data)) as sound:
        assert (sound.getnchannels(), sound.getframerate(), sound.getsampwidth()) == (channels, 22_050, 2)
        frames = np.frombuffer(sound.readframes(sound.getnframes()), "<i2").reshape(-1, channels)
    curves = [training.loss / training.loss.max()] if channels == 1 else [training.accuracy, training.val_accuracy]
    want = np.stack([gallery.module.tone(one) for one in curves], axis=1)
    assert frames.shape == want.shape
    assert np.abs(frames / 32767 - want).max() < 1e-4


# ---- Text


def test_text_shows_markdown_and_tables(board, training):
    ((step, page),) = board.texts(RUN, "report/text_summary")
    right = (training.probabilities[-1].argmax(1) == training.labels).mean()
    assert step == 19
    assert "<h1>Handwritten digits</h1>" in page
    assert f"<strong>{right:.1%}</strong>" in page
    assert page.count("<tr>") == 11
    ((_, table),) = board.texts(RUN, "split/text_summary")
    assert [table.count(cell) for cell in ("<td><p>training</p></td>", "<td><p>1437</p></td>", "<tr>")] == [1, 1, 3]


# ---- Histograms, Distributions


def test_histograms_count_every_weight_between_its_extremes(board, training):
    shown = board.histograms(RUN, "hidden/weights")
    assert [step for step, _ in shown] == list(range(20))
    for (_, rows), weights in zip(shown, training.weights, strict=True):
        full = [row for row in rows if row[2]]
        assert sum(row[2] for row in rows) == weights.size
        assert (full[0][0], full[-1][1]) == pytest.approx((weights.min(), weights.max()))
        for left, right, count in full:
            inside = np.count_nonzero((weights >= left) & (weights < right))
            assert abs(inside - count) <= 0.01 * weights.size  # values on the edges


def test_distributions_show_the_percentiles(board, training):
    assert board.get(f"{PLUGIN}/distributions/tags")[RUN].keys() == {"hidden/weights"}
    shown = board.get(f"{PLUGIN}/distributions/distributions", run=RUN, tag="hidden/weights")
    assert [step for _, step, _ in shown] == list(range(20))
    for (_, _, points), weights in zip(shown, training.weights, strict=True):
        width = (weights.max() - weights.min()) / 64
        for basis_point, value in points[1:-1]:
            assert abs(value - np.percentile(weights, basis_point / 100)) < 2 * width


# ---- PR Curves


@pytest.mark.parametrize("digit", [1, 8])
def test_pr_curves_count_at_every_threshold(board, training, digit):
    shown = board.get(f"{PLUGIN}/pr_curves/pr_curves", run=RUN, tag=f"pr/digit {digit}")[RUN]
    assert [one["step"] for one in shown] == [0, 1, 2, 19]
    is_digit = training.labels == digit
    for one in shown:
        bucket = np.floor(training.probabilities[one["step"]][:, digit] * 100)
        thresholds = np.round(np.array(one["thresholds"]) * 100)
        said = bucket[:, None] >= thresholds  # (images, thresholds)
        assert one["true_positives"] == np.sum(said & is_digit[:, None], axis=0).tolist()
        assert one["false_positives"] == np.sum(said & ~is_digit[:, None], axis=0).tolist()
        assert one["recall"] == pytest.approx(np.array(one["true_positives"]) / is_digit.sum())
        assert one["precision"][0] == pytest.approx(is_digit.mean())  # threshold 0: every image counts as the digit


# ---- Mesh


def mesh(board, tag, content, kind):
    query = {"run": RUN, "tag": tag, "sample": 0, "step": 0, "content_type": content}
    status, data = board.get_bytes(f"{PLUGIN}/mesh/data", **query)
    assert status == 200
    return np.frombuffer(data, kind).reshape(-1, 3)


def test_a_mesh_shows_vertices_colors_and_faces(board, gallery, training):
    vertices, colors, faces = gallery.module.digit_surface(training)
    parts = board.get(f"{PLUGIN}/mesh/meshes", run=RUN, tag="mean 3", sample=0)
    # VERTEX = 1, FACE = 2, COLOR = 3, of shape (1, n, 3); bits 1, 2 and 3 say that all three are there.
    assert {part["content_type"]: part["data_shape"] for part in parts} == {1: [1, 64, 3], 2: [1, 98, 3], 3: [1, 64, 3]}
    assert {part["components"] for part in parts} == {14}
    assert np.array_equal(mesh(board, "mean 3", "VERTEX", "<f4"), vertices[0])
    assert np.array_equal(mesh(board, "mean 3", "COLOR", "u1"), colors[0])
    assert np.array_equal(mesh(board, "mean 3", "FACE", "<i4"), faces[0])


def test_a_point_cloud_shows_with_its_configuration(board, gallery, training):
    vertices, colors = gallery.module.point_cloud(training)
    parts = board.get(f"{PLUGIN}/mesh/meshes", run=RUN, tag="digits in space", sample=0)
    assert {part["content_type"] for part in parts} == {1, 3}
    assert {part["components"] for part in parts} == {10}
    assert json.loads(parts[0]["config"]) == gallery.module.POINTS
    assert np.array_equal(mesh(board, "digits in space", "VERTEX", "<f4"), vertices[0])
    assert np.array_equal(mesh(board, "digits in space", "COLOR", "u1"), colors[0])


# ---- HParams


def test_hparams_show_a_row_for_each_trial_and_every_column(board, gallery):
    experiment = board.get(f"{PLUGIN}/hparams/experiment", request="{}")
    columns = {column["name"]: column["type"] for column in experiment["hparamInfos"]}
    assert columns == {
        "rate": "DATA_TYPE_FLOAT64",
        "hidden": "DATA_TYPE_FLOAT64",
        "activation": "DATA_TYPE_STRING",
        "shuffle": "DATA_TYPE_BOOL",
    }
    assert [metric["name"]["tag"] for metric in experiment["metricInfos"]] == ["trial/accuracy"]

    asked = {"startIndex": 0, "sliceSize": 100, "colParams": [{"metric": {"tag": "trial/accuracy"}}]}
    states = ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING", "STATUS_UNKNOWN"]
    groups = board.get(f"{PLUGIN}/hparams/session_groups", request=json.dumps({**asked, "allowedStatuses": states}))[
        "sessionGroups"
    ]
    rows = {
        group["sessions"][0]["name"]: (
            group["hparams"],
            group["sessions"][0]["status"],
            group["metricValues"][0]["value"],
        )
        for group in groups
    }
    assert rows == {
        f"trials/{number}": (trial, "STATUS_SUCCESS", float(np.float32(accuracy)))
        for number, (trial, accuracy) in enumerate(zip(gallery.module.TRIALS, gallery.accuracies, strict=True), 1)
    }


# ---- Custom Scalars


def test_custom_scalars_show_the_layout_and_its_curves(board, gallery, training):
    categories = board.get(f"{PLUGIN}/custom_scalars/layout")["category"]
    charts = {category["title"]: category["chart"][0] for category in categories}
    assert charts == {
        "training": {"title": "loss and accuracy", "multiline": {"tag": ["train/loss", "val/accuracy$"]}},
        "validation": {
            "title": "accuracy, 95 % bounds",
            "margin": {
                "series": [{"value": "val/accuracy", "lower": "val/accuracy_low", "upper": "val/accuracy_high"}]
            },
        },
    }

    def matches(regex):
        answer = board.get(f"{PLUGIN}/custom_scalars/scalars", run=RUN, tag=regex)
        assert answer["regex_valid"]
        return {tag: [(step, value) for _, step, value in points] for tag, points in answer["tag_to_events"].items()}

    assert matches("val/accuracy$") == {"val/accuracy": curve(training.val_accuracy)}
    assert matches("train/loss") == {"train/loss": curve(training.loss)}


# ---- Graphs


def test_the_graph_shows_its_nodes_and_edges_without_the_weights(board):
    assert board.get(f"{PLUGIN}/graphs/info")[RUN]["run_graph"] is True
    status, body = board.get_bytes(f"{PLUGIN}/graphs/graph", run=RUN, conceptual="false")
    text = body.decode()
    assert status == 200
    assert text.count("node {") == 11
    assert 'input: "hidden/matmul"\n  input: "hidden/bias"' in text
    assert 'name: "hidden/weights"' in text
    assert len(body) < 4000  # the weights alone are 8 kB


# ---- Projector


def test_the_projector_shows_points_labels_and_pictures(board, training):
    assert board.get(f"{PLUGIN}/projector/runs") == [RUN]
    (embedding,) = board.get(f"{PLUGIN}/projector/info", run=RUN)["embeddings"]
    query = {"run": RUN, "name": embedding["tensorName"]}
    status, tensor = board.get_bytes(f"{PLUGIN}/projector/tensor", **query, num_rows=10_000)
    assert status == 200
    got = np.frombuffer(tensor, "<f4").reshape(len(training.labels), -1)
    assert got == pytest.approx(training.activations, rel=1e-5, abs=1e-6)

    _, metadata = board.get_bytes(f"{PLUGIN}/projector/metadata", **query, num_rows=10_000)
    guesses = training.probabilities[-1].argmax(1)
    rows = ["digit\tread as", *(f"{digit}\t{guess}" for digit, guess in zip(training.labels, guesses, strict=True))]
    assert metadata.decode().splitlines() == rows

    assert embedding["sprite"]["singleImageDim"] == [8, 8]
    _, sprite = board.get_bytes(f"{PLUGIN}/projector/sprite_image", **query)
    _, pixels = decoded(sprite)
    in_a_row = pixels.shape[1] // 8
    for number in (0, 1, len(training.images) - 1):
        row, column = divmod(number, in_a_row)
        field = pixels[8 * row : 8 * row + 8, 8 * column : 8 * column + 8, 0].astype(int)
        assert np.abs(field - training.images[number]).max() <= 1
