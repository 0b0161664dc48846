"""What `tbwriter repair`, `merge` and `convert` write, as both of TensorBoard's readers show it."""

import itertools

import pytest
from damaged import put
from damaged import record as framed

from msbridge._pb import mindspore_summary_pb2 as pb
from msbridge.convert import convert
from tbwriter import repair

PNG = bytes.fromhex(  # one white pixel
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8ffff3f0005fe02fe0def46b80000000049454e44ae426082"
)
_number = itertools.count()
ALL, CUT = range(10), range(5)
MENDED = {  # what the good records of a damaged run hold
    "torn-tail": CUT,
    "bad-data": [0, 1, 2, 3, 4, 6, 7, 8, 9],
    "zero-hole": ALL,
    "no-event": ALL,
    "double": ALL,
    "double-later": ALL,
    "no-metadata": ALL,
    "late-metadata": ALL,
    "plugin-version": ALL,
    "nan-time": ALL,
    "scalars-then-text": CUT,
}


@pytest.fixture(scope="module")
def mended(tensorboards, tmp_path_factory):
    """Put all repaired runs before a TensorBoard at once; return the name of their directory."""
    names = {}

    def of(tensorboard):
        if tensorboard.reader not in names:
            name = f"mended{next(_number)}"
            place = tmp_path_factory.mktemp(name)
            for case in MENDED:
                repair(put(place / "in" / case, case), place / "out" / case)
            (place / "out").rename(tensorboard.logdir / name)
            names[tensorboard.reader] = name
        return names[tensorboard.reader]

    return of


@pytest.mark.parametrize("case", list(MENDED))
def test_a_repaired_run_shows_every_good_point(tensorboard, mended, case):
    tensorboard.shows_curves(f"{mended(tensorboard)}/{case}", {"loss": [(step, float(step)) for step in MENDED[case]]})


def test_sessions_that_were_merged_show_each_step_once(tensorboard, tmp_path):
    typer_testing = pytest.importorskip("typer.testing")
    from tbwriter.cli._app import app

    name = f"merged{next(_number)}"
    for case in ("second-session", "first-mark-in-second", "names"):
        arguments = ["merge", str(put(tmp_path / case, case)), "-o", str(tmp_path / name / case)]
        assert typer_testing.CliRunner().invoke(app, arguments).exit_code == 0
    (tmp_path / name).rename(tensorboard.logdir / name)
    resumed = [(step, float(step)) for step in range(5)] + [(step, step + 100.0) for step in (5, 6, 7)]
    tensorboard.shows_curves(f"{name}/second-session", {"loss": resumed})
    tensorboard.shows_curves(f"{name}/first-mark-in-second", {"loss": resumed})
    tensorboard.shows_curves(f"{name}/names", {"loss": [(step, float(step)) for step in range(10)]})


def test_a_summary_of_mindspore_that_was_converted_shows(tensorboard, tmp_path):
    bucket = pb.Summary.Histogram.Bucket
    histogram = pb.Summary.Histogram(
        buckets=[bucket(left=0.0, width=1.0, count=2), bucket(left=1.0, width=1.0, count=3)], count=5, min=0.0, max=2.0
    )
    picture = pb.Summary.Image(height=1, width=1, colorspace=3, encoded_image=PNG)
    values = [
        pb.Summary.Value(tag="loss", scalar_value=0.5),
        pb.Summary.Value(tag="w", histogram=histogram),
        pb.Summary.Value(tag="input", image=picture),
    ]
    graph = pb.Graph(node=[pb.Node(name="1", op_type="MatMul", full_name="Default/dense/MatMul-op1")])
    lineage = pb.TrainLineage(hyper_parameters=pb.TrainLineage.HyperParameters(optimizer="Momentum", learning_rate=0.5))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "events.out.events.summary.1700000000.0.host_MS").write_bytes(
        framed(pb.MindSporeEvent(wall_time=1.7e9, graph_def=graph).SerializeToString())
        + framed(pb.MindSporeEvent(wall_time=1.7e9, step=3, summary=pb.Summary(value=values)).SerializeToString())
    )
    (tmp_path / "in" / "events.out.events.summary.1700000000.0.host_lineage").write_bytes(
        framed(pb.LineageEvent(wall_time=1.7e9, train_lineage=lineage).SerializeToString())
    )
    name = f"converted{next(_number)}"
    convert(tmp_path / "in", tmp_path / name)
    (tmp_path / name).rename(tensorboard.logdir / name)
    tensorboard.shows(lambda: tensorboard.scalars(name, "loss"), [(3, 0.5)])
    tensorboard.shows(lambda: [sum(n for *_, n in rows) for _, rows in tensorboard.histograms(name, "w")], [5.0])
    tensorboard.shows(lambda: tensorboard.images(name, "input"), [(3, PNG)])
    status, shown = tensorboard.get_bytes("/data/plugin/graphs/graph", run=name)
    assert status == 200
    assert b"Default/dense/MatMul-op1" in shown
