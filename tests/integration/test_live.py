"""Both readers of TensorBoard follow a run while it is written and show every point of every tag."""

import io

import numpy as np
from event_files import event_files
from PIL import Image

from tbwriter import SummaryWriter

# Every value is a multiple of 0.25 below 2**22, which float32 holds exactly.


def curve(steps, factor=1.0):
    return [(step, step * factor) for step in steps]


def test_every_scalar_of_every_tag_shows_after_each_flush(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for end in (1, 50, 300, 1000):
            begin = {1: 0, 50: 1, 300: 50, 1000: 300}[end]
            for step in range(begin, end):
                writer.add_scalar("train/loss", step * 0.5, step)
                writer.add_scalar("train/lr", step * 0.25, step)
                writer.add_metrics({"val/loss": step * 2.0, "val/top1": step * 4.0}, step)
            steps = np.arange(begin, end)
            writer.add_scalar_series("series", steps * 8.0, steps)
            writer.flush()
            tensorboard.shows_curves(
                run.name,
                {
                    "train/loss": curve(range(end), 0.5),
                    "train/lr": curve(range(end), 0.25),
                    "val/loss": curve(range(end), 2.0),
                    "val/top1": curve(range(end), 4.0),
                    "series": curve(range(end), 8.0),
                },
            )


def test_scalars_show_without_any_flush(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for step in range(20):
            writer.add_scalar("loss", float(step), step)
        tensorboard.shows_curves(run.name, {"loss": curve(range(20))})


def test_a_tag_that_comes_late_shows_from_its_first_point(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_scalar("early", 1.0, 0)
        writer.flush()
        tensorboard.shows_curves(run.name, {"early": [(0, 1.0)]})
        writer.add_scalar("late", 2.0, 1)
        writer.flush()
        tensorboard.shows_curves(run.name, {"early": [(0, 1.0)], "late": [(1, 2.0)]})


def test_a_series_far_longer_than_one_write_shows_whole(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for begin, end in ((0, 8_000), (8_000, 10_000)):  # a write is at most 256 KiB, 7,000 points
            steps = np.arange(begin, end)
            writer.add_scalar_series("loss", steps * 1.0, steps)
            writer.flush()
            tensorboard.shows_curves(run.name, {"loss": curve(range(end))})


def test_histograms_show_while_the_file_grows(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for end in (1, 5, 30):
            begin = {1: 0, 5: 1, 30: 5}[end]
            for step in range(begin, end):
                writer.add_histogram("weights", np.arange(step + 1.0), step)
            writer.flush()
            tensorboard.shows(lambda: counted(tensorboard, run), [(step, step + 1) for step in range(end)])


def counted(tensorboard, run):
    return [(step, sum(n for *_, n in rows)) for step, rows in tensorboard.histograms(run.name, "weights")]


def test_a_histogram_shows_from_the_smallest_to_the_largest_value(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_histogram("weights", np.array([-2.0, 0.5, 0.5, 6.0]), 3)
    tensorboard.shows(lambda: bounds(tensorboard, run), (3, -2.0, 6.0, 4))


def bounds(tensorboard, run):
    for step, rows in tensorboard.histograms(run.name, "weights"):
        full = [row for row in rows if row[2]]
        return step, full[0][0], full[-1][1], sum(row[2] for row in full)
    return None


def test_texts_show_while_the_file_grows(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for end in (1, 4, 20):
            begin = {1: 0, 4: 1, 20: 4}[end]
            for step in range(begin, end):
                writer.add_text("notes", f"step **{step}** 损失", step)
            writer.flush()
            tensorboard.shows(
                lambda: tensorboard.texts(run.name, "notes/text_summary"),
                [(step, f"<p>step <strong>{step}</strong> 损失</p>") for step in range(end)],
            )


def test_images_show_while_the_file_grows(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for end in (1, 3):
            begin = {1: 0, 3: 1}[end]
            for step in range(begin, end):
                writer.add_image("sample", np.full((3, 2, 4), 40 * step, np.uint8), step)
            writer.flush()
            tensorboard.shows(
                lambda: pixels(tensorboard, run, "sample"),
                [(step, (4, 2), (40 * step, 40 * step, 40 * step)) for step in range(end)],
            )


def pixels(tensorboard, run, tag, sample=0):
    out = []
    for step, data in tensorboard.images(run.name, tag, sample):
        with Image.open(io.BytesIO(data)) as image:
            out.append((step, image.size, image.convert("RGB").getpixel((0, 0))))
    return out


def test_images_of_a_batch_show_as_one_picture(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        writer.add_images("batch", np.zeros((4, 3, 8, 8), np.uint8), 7)
    tensorboard.shows(lambda: len(tensorboard.images(run.name, "batch")), 1)


def test_rotation_loses_no_point(tensorboard, run):
    with SummaryWriter(run.path, max_file_size=10_000) as writer:
        for end in (200, 600, 2000):
            for step in range({200: 0, 600: 200, 2000: 600}[end], end):
                writer.add_scalar("loss", float(step), step)
                writer.add_scalar("lr", step * 0.25, step)
            writer.flush()
            tensorboard.shows_curves(run.name, {"loss": curve(range(end)), "lr": curve(range(end), 0.25)})
    assert len(event_files(run.path)) > 3


def test_rotation_loses_no_histogram_and_no_text(tensorboard, run):
    with SummaryWriter(run.path, max_file_size=4_000) as writer:
        for step in range(40):
            writer.add_histogram("weights", np.arange(step + 1.0), step)
            writer.add_text("notes", f"step {step}", step)
            if step % 10 == 9:
                writer.flush()
                tensorboard.shows(lambda: counted(tensorboard, run), [(n, n + 1) for n in range(step + 1)])
        want = [(step, f"<p>step {step}</p>") for step in range(40)]
        tensorboard.shows(lambda: tensorboard.texts(run.name, "notes/text_summary"), want)
    assert len(event_files(run.path)) > 3


def test_a_rotated_file_shows_on_its_own(tensorboard, run, tmp_path):
    with SummaryWriter(tmp_path / "whole", max_file_size=4_000) as writer:
        for step in range(40):
            writer.add_histogram("weights", np.arange(step + 1.0), step)
    last = event_files(tmp_path / "whole")[-1]
    (run.path / last.name).write_bytes(last.read_bytes())
    tensorboard.shows(lambda: bool(counted(tensorboard, run)) and counted(tensorboard, run)[-1], (39, 40))


def test_ranks_show_side_by_side_each_in_its_directory(tensorboard, run):
    writers = [SummaryWriter(run.path, rank=rank) for rank in range(4)]
    for end in (10, 100):
        for step in range({10: 0, 100: 10}[end], end):
            for rank, writer in enumerate(writers):
                writer.add_scalar("loss", float(rank), step)
        for writer in writers:
            writer.flush()
        for rank in range(4):
            want = {"loss": [(step, float(rank)) for step in range(end)]}
            tensorboard.shows_curves(run.sub(f"rank_{rank}"), want)
    for writer in writers:
        writer.close()


def test_twenty_keys_of_add_scalars_show_as_twenty_runs_with_one_tag(tensorboard, run):
    with SummaryWriter(run.path) as writer:
        for end in (3, 12):
            for step in range({3: 0, 12: 3}[end], end):
                writer.add_scalars("acc", {f"task{key:02d}": float(key) for key in range(20)}, step)
            writer.flush()
            for key in range(20):
                want = {"acc": [(step, float(key)) for step in range(end)]}
                tensorboard.shows_curves(run.sub(f"acc_task{key:02d}"), want)
