"""The methods of SummaryWriter beyond scalars, from the call to what is read back."""

import contextlib
import pickle
import threading
import warnings

import fsspec
import numpy as np
import pytest
from event_files import event_files, events, scalars
from google.protobuf import struct_pb2
from storage import NO_SPACE, PATIENCE_SECS, Faults, faulty
from waiting import wait_until

from tbwriter import SinkError, SummaryWriter, WriterClosedError, read_events

pytest.importorskip("PIL.Image")

RNG = np.random.default_rng(0)
GRAPH = b"\n\x10\n\x01a\x12\x0bPlaceholder"

# A call of every method, but for those that need other packages.
CALLS = {
    "add_scalar": ("s", 1.0),
    "add_metrics": ({"m": 1.0},),
    "add_scalar_series": ("series", [1.0], [1]),
    "add_scalars": ("main", {"a": 1.0}),
    "add_histogram": ("h", [1.0, 2.0]),
    "add_histogram_raw": ("raw", 0, 2, 3, 4, 5, [1, 2], [1, 2]),
    "add_tensor": ("tensor", np.arange(4)),
    "add_text": ("text", "words"),
    "add_image": ("image", RNG.random((3, 4, 5))),
    "add_images": ("images", RNG.random((2, 3, 4, 5))),
    "add_image_with_boxes": ("boxes", RNG.random((3, 40, 50)), [[1, 2, 30, 20]]),
    "add_video": ("video", RNG.random((1, 2, 3, 8, 8))),
    "add_audio": ("audio", np.zeros(10)),
    "add_pr_curve": ("pr", [1, 0], [0.9, 0.1]),
    "add_pr_curve_raw": ("pr_raw", *[[1, 2]] * 6),
    "add_mesh": ("mesh", RNG.random((1, 4, 3))),
    "add_hparams": ({"lr": 0.1}, {"accuracy": 0.5}),
    "add_custom_scalars": ({"c": {"t": ["Multiline", ["s"]]}},),
    "add_custom_scalars_multilinechart": (["s"],),
    "add_custom_scalars_marginchart": (["a", "b", "c"],),
    "add_graph": (GRAPH,),
    "add_embedding": (np.eye(3),),
}
# Where it is asked for by name: not in TensorBoard's form.
PLUGINS = {
    "add_scalar": "scalars",
    "add_metrics": "scalars",
    "add_scalar_series": "scalars",
    "add_histogram": "histograms",
    "add_histogram_raw": "histograms",
    "add_tensor": "tensor",
    "add_text": "text",
    "add_image": "images",
    "add_images": "images",
    "add_image_with_boxes": "images",
    "add_video": "images",
    "add_audio": "audio",
    "add_pr_curve": "pr_curves",
    "add_pr_curve_raw": "pr_curves",
    "add_mesh": "mesh",
    "add_custom_scalars": "custom_scalars",
    "add_custom_scalars_multilinechart": "custom_scalars",
    "add_custom_scalars_marginchart": "custom_scalars",
}


def call(writer, method):
    getattr(writer, method)(*CALLS[method])


def read(place):
    """Return {tag: [(step, data)]} of a run."""
    found = {}
    for event in read_events(place):
        for value in event.values:
            found.setdefault(value.tag, []).append((event.step, value.data))
    return found


@pytest.fixture
def place(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def writer(writer_at, place):
    return writer_at(place)


# ---- every method


def test_every_method_is_called_here():
    others = {"add_figure", "add_onnx_graph"}
    assert {name for name in dir(SummaryWriter) if name.startswith("add_")} == CALLS.keys() | others


@pytest.mark.parametrize("method", PLUGINS)
def test_what_is_added_is_read_back_as_of_its_plugin(method, writer, place):
    call(writer, method)
    assert writer.flush(PATIENCE_SECS)
    (value, *_) = [value for event in read_events(place) for value in event.values]
    assert value.plugin == PLUGINS[method]
    assert value.data is not None
    assert writer.stats().dropped == 0


@pytest.mark.parametrize("method", CALLS)
def test_after_close_each_method_raises(method, writer):
    writer.close()
    with pytest.raises(WriterClosedError):
        call(writer, method)


@pytest.mark.parametrize("method", CALLS)
def test_a_writer_that_does_not_write_takes_every_call_and_makes_no_file(method, writer_at, place):
    writer = writer_at(place, write_to_disk=False)
    call(writer, method)
    writer.close()
    assert not place.exists()


@pytest.mark.parametrize("method", CALLS)
def test_a_pickled_copy_takes_every_call(method, writer, place):
    copy = pickle.loads(pickle.dumps(writer))
    call(copy, method)
    copy.close()
    assert copy.stats().dropped == 0
    assert copy.stats().written >= 1


# ---- a step and a wall time for a block


def test_a_block_gives_its_step_and_wall_time_where_a_call_has_none(writer, place):
    writer.add_scalar("a", 1.0, 1)
    writer.add_metrics({"a": 1.0, "b": 2.0}, 1)
    with writer.use_metadata(global_step=7, walltime=1234.5) as same:
        assert same is writer
        writer.add_scalar("a", 2.0)
        writer.add_metrics({"a": 3.0, "b": 4.0})
        writer.add_metrics({"a": 5.0, "b": 6.0}, 8)
        writer.add_text("t", "words")
        writer.add_histogram("h", [1.0], 9)
        writer.add_scalar("a", 7.0, 10, 99.5)
        writer.file_writer.add_summary(b"")
    writer.add_scalar("a", 8.0, 11)
    assert writer.flush(PATIENCE_SECS)
    stored = [(event.step, event.wall_time) for event in events(place)[2:]]
    inside = [(7, 1234.5), (7, 1234.5), (8, 1234.5), (7, 1234.5), (9, 1234.5), (10, 99.5), (7, 1234.5)]
    assert [one for one in stored if one[1] < 1e9] == inside
    assert [step for step, wall_time in stored if wall_time > 1e9] == [1, 1, 11]


def test_blocks_may_stand_in_blocks(writer, place):
    with writer.use_metadata(global_step=1):
        with writer.use_metadata(walltime=1234.5):
            writer.add_scalar("a", 1.0)
        writer.add_scalar("a", 2.0)
    writer.add_scalar("a", 3.0)
    assert writer.flush(PATIENCE_SECS)
    found = [(event.step, event.wall_time == 1234.5) for event in events(place) if event.values]
    assert found == [(1, True), (1, False), (0, False)]


def test_a_block_ends_with_an_exception_too(writer, place):
    with pytest.raises(KeyError), writer.use_metadata(global_step=5):
        raise KeyError
    writer.add_scalar("a", 1.0)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(place, "a") == [(0, 1.0)]


def test_a_description_given_in_a_block_stays(writer, place):
    writer.add_scalar("a", 1.0, 1)
    writer.add_metrics({"a": 1.0}, 2)
    with writer.use_metadata(global_step=3):
        writer.add_scalar("a", 2.0, display_name="A")
    writer.add_scalar("a", 3.0, 4)
    writer.add_metrics({"a": 4.0}, 5)
    assert writer.flush(PATIENCE_SECS)
    tensors = [event.values[0].tensor is not None for event in events(place) if event.values]
    assert tensors[:4] == [False, False, True, True]


def test_a_block_of_nothing_is_refused(writer):
    with pytest.raises(ValueError, match=r"^use_metadata needs a global_step or a walltime$"), writer.use_metadata():
        pass


# ---- file_writer


def test_the_file_writer_takes_events_and_summaries_into_the_same_file(writer, place):
    from tbwriter._pb import tfevents_pb2 as pb

    summary = pb.Summary(value=[pb.Summary.Value(tag="theirs", simple_value=2.5)])
    writer.file_writer.add_summary(summary, 3, 1234.5)
    writer.file_writer.add_event(pb.Event(summary=summary), 4)
    writer.file_writer.event_writer.add_event(pb.Event(summary=summary, step=5))  # as code reaches into torch's
    assert writer.file_writer.flush(PATIENCE_SECS)
    assert scalars(place, "theirs") == [(3, 2.5), (4, 2.5), (5, 2.5)]
    assert len(event_files(place)) == 1


def test_the_file_writer_takes_graphs_as_torchs_converter_returns_them(writer, place):
    from tbwriter._pb import plugins_pb2 as plugins

    writer.file_writer.add_graph((plugins.GraphDef.FromString(GRAPH), object()), 1234.5)
    writer.file_writer.add_graph(GRAPH)
    writer.file_writer.add_onnx_graph(GRAPH, walltime=1235.5)
    assert writer.flush(PATIENCE_SECS)
    found = [event for event in read_events(place) if event.graph_def]
    assert [event.graph_def for event in found] == [GRAPH] * 3
    assert found[0].wall_time == 1234.5
    for wrong in (None, (), (object(), object())):
        with pytest.raises(TypeError, match=r"^graph_profile must be a GraphDef, or a pair with one, got "):
            writer.file_writer.add_graph(wrong)
    with pytest.raises(ValueError, match=r"^model must be a serialised GraphDef"):
        writer.file_writer.add_graph(b"\xff\xffgarbage")


@pytest.mark.parametrize(
    "add",
    [
        lambda file_writer, pb: file_writer.add_event(b"\xff\xff\xffgarbage"),
        lambda file_writer, pb: file_writer.add_summary(b"\xff\xffgarbage"),
        lambda file_writer, pb: file_writer.add_event(pb.Event(wall_time=float("nan"))),
    ],
    ids=["event", "summary", "wall time"],
)
def test_the_file_writer_refuses_what_would_end_a_reader(writer, place, add):
    from tbwriter._pb import tfevents_pb2 as pb

    with pytest.raises(ValueError, match=r"^(event|summary): "):
        add(writer.file_writer, pb)
    writer.add_scalar("a", 1.0, 1)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(place, "a") == [(1, 1.0)]


def test_all_writers_are_the_one(writer, place):
    assert list(writer.all_writers) == [str(place)]
    assert writer.all_writers[str(place)].get_logdir() == writer.file_writer.get_logdir() == str(place)


def test_closing_the_file_writer_closes_the_writer(writer):
    kept = writer.file_writer
    kept.close()
    assert writer.file_writer is None
    assert writer.all_writers is None
    with pytest.raises(WriterClosedError):
        kept.add_summary(b"")
    with pytest.raises(WriterClosedError):
        writer.add_scalar("a", 1.0)


# ---- hyper-parameters


def row(place):
    """Return the hyper-parameters and the status of a run."""
    found = read(place)
    ends = [data["status"] for _, data in found.get("_hparams_/session_end_info", ())]
    return found["_hparams_/session_start_info"][0][1]["hparams"], ends


def test_refused_hyper_parameters_leave_the_run_to_the_next(writer, place):
    writer.add_text("note", "words")
    with pytest.raises(ValueError, match="note/text_summary"):
        writer.add_hparams({"lr": 0.1}, {"note/text_summary": 1.0})
    writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
    writer.close()
    assert row(place) == ({"lr": 0.1}, ["STATUS_SUCCESS"])


def test_an_embedding_whose_name_is_too_long_is_left_out_alone(writer, place):
    for tag in ("good0", "e" * 260, "good1"):
        writer.add_embedding(np.eye(3), tag=tag)
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().dropped == 1
    assert {path.parent.name for path in place.rglob("tensors.tsv")} == {"good0", "good1"}


@pytest.mark.parametrize("hindrance", ["a file in the way", "a configuration that cannot be read"])
def test_many_embeddings_that_can_never_be_stored_are_told_in_one_line(writer, place, caplog, hindrance):
    if hindrance == "a file in the way":
        (place / "00000").write_bytes(b"")
    else:
        (place / "projector_config.pbtxt").write_text("}")
    for number in range(5):
        writer.add_embedding(np.eye(3), tag=f"e{number}")
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().dropped == 5
    (told,) = [record.getMessage() for record in caplog.records if "embedding" in record.getMessage()]
    assert str(place) in told
    assert "embedding 'e0' cannot be stored and is dropped: " in told


def test_a_run_name_that_is_no_text_is_refused(writer):
    with pytest.raises(ValueError, match="run_name"):
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, run_name="\ud800")


def test_hyper_parameters_go_into_the_run_itself_and_end_with_it(writer, place):
    writer.add_hparams({"lr": 0.1, "flash": True}, {"accuracy": 0.5}, global_step=9)
    assert writer.flush(PATIENCE_SECS)
    assert row(place) == ({"flash": True, "lr": 0.1}, [])
    writer.close()
    assert row(place) == ({"flash": True, "lr": 0.1}, ["STATUS_SUCCESS"])
    assert scalars(place, "accuracy") == [(9, 0.5)]
    assert "_hparams_/experiment" not in read(place)
    assert [path.name for path in place.iterdir() if path.is_dir()] == []


def test_a_writer_without_a_thread_ends_its_trial_too(writer_at, place):
    writer = writer_at(place, asynchronous=False)
    writer.add_hparams({"lr": 0.1}, {})
    writer.close()
    writer.close()
    assert row(place)[1] == ["STATUS_SUCCESS"]


def test_a_failure_that_strict_raises_costs_no_metric(writer_at, tmp_path):
    faults = Faults()
    writer = writer_at(faulty(tmp_path, faults), strict=True)
    faults.error = NO_SPACE
    writer.add_scalar("a", 1.0, 1)
    wait_until(lambda: writer.stats().retries, within=PATIENCE_SECS)
    with pytest.raises(SinkError):
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5})
    faults.error = None
    writer.close()
    assert row(tmp_path / "run") == ({"lr": 0.1}, ["STATUS_SUCCESS"])
    assert scalars(tmp_path / "run", "accuracy") == [(0, 0.5)]


def test_an_exception_makes_the_trial_a_failure(place):
    def train():
        with SummaryWriter(place) as writer:
            writer.add_hparams({"lr": 0.1}, {})
            raise KeyError

    with pytest.raises(KeyError):
        train()
    assert row(place)[1] == ["STATUS_FAILURE"]


def test_the_end_of_a_trial_is_stored_though_the_queue_is_full(writer_at, tmp_path):
    faults = Faults()
    writer = writer_at(faulty(tmp_path, faults), max_queue=2, on_full="drop")
    writer.add_hparams({"lr": 0.1}, {})
    assert writer.flush(PATIENCE_SECS)
    faults.error = NO_SPACE
    for step in range(20):
        writer.add_scalar("a", 1.0, step)
    assert writer.stats().dropped
    faults.error = None
    writer.close()
    assert row(tmp_path / "run")[1] == ["STATUS_SUCCESS"]


def test_the_same_hyper_parameters_again_add_to_their_metrics(writer, place):
    for step in (1, 2):
        writer.add_hparams({"lr": 0.1}, {"accuracy": step}, global_step=step)
    writer.close()
    assert scalars(place, "accuracy") == [(1, 1.0), (2, 2.0)]
    assert len(read(place)["_hparams_/session_start_info"]) == 1


def test_other_hyper_parameters_are_another_row_in_a_sub_run(writer, place):
    for lr in (0.1, 0.2, 0.3):
        writer.add_hparams({"lr": lr}, {"accuracy": 10 * lr})
    writer.close()
    subs = sorted(path for path in place.iterdir() if path.is_dir())
    rows = [row(path) for path in (place, *subs)]
    assert rows == [({"lr": lr}, ["STATUS_SUCCESS"]) for lr in (0.1, 0.2, 0.3)]
    assert [scalars(path, "accuracy") for path in subs] == [[(0, 2.0)], [(0, pytest.approx(3.0))]]


def test_other_hyper_parameters_at_the_same_time_are_rows_of_their_own(writer, place):
    with writer.use_metadata(walltime=1234.5):
        for lr in (0.1, 0.2, 0.3):
            writer.add_hparams({"lr": lr}, {})
    writer.close()
    subs = [path for path in place.iterdir() if path.is_dir()]
    assert sorted(row(path)[0]["lr"] for path in subs) == [0.2, 0.3]


def test_trials_of_many_threads_are_rows_of_their_own(writer, place):
    def try_out(lr):
        writer.add_hparams({"lr": lr}, {"accuracy": lr})
        writer.add_custom_scalars_multilinechart(["accuracy"], title=str(lr))

    threads = [threading.Thread(target=try_out, args=(float(lr),)) for lr in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    paths = [place, *(path for path in place.iterdir() if path.is_dir())]
    assert sorted(row(path)[0]["lr"] for path in paths) == [float(lr) for lr in range(8)]
    (*_, (_, layout)) = read(place)["custom_scalars__config__"]
    assert sorted(layout["default"]) == [str(float(lr)) for lr in range(8)]


@pytest.mark.parametrize("word", ["run_name", "name"])
def test_a_named_trial_is_a_sub_run(word, writer, place):
    writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, **{word: "trials/one"})
    writer.close()
    assert row(place / "trials" / "one") == ({"lr": 0.1}, ["STATUS_SUCCESS"])
    assert "_hparams_/session_start_info" not in read(place)


def test_the_runs_own_directory_has_names_too(writer, place):
    writer.add_hparams({"lr": 0.1}, {}, run_name=".")
    writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, run_name=str(place))
    writer.close()
    assert row(place) == ({"lr": 0.1}, ["STATUS_SUCCESS"])
    assert scalars(place, "accuracy") == [(0, 0.5)]


@pytest.mark.parametrize("name", ["..", "a/../..", "/elsewhere", "a//b", "a\\b"])
def test_a_name_that_leads_out_of_the_run_is_refused(name, writer):
    with pytest.raises(ValueError, match=r"^run_name must name a directory below .*, got "):
        writer.add_hparams({"lr": 0.1}, {}, run_name=name)


def test_two_names_at_once_are_refused(writer):
    with pytest.raises(ValueError, match=r"are two names of one argument; give one$"):
        writer.add_hparams({"lr": 0.1}, {}, run_name="a", name="b")


def test_a_metric_that_is_no_number_is_refused_before_anything_is_added(writer, place):
    with pytest.raises(TypeError, match=r"^tag 'accuracy': "):
        writer.add_hparams({"lr": 0.1}, {"accuracy": "good"})
    writer.close()
    assert read(place) == {}


def test_a_domain_makes_an_experiment(writer, place):
    writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, hparam_domain_discrete={"lr": [0.1, 0.2]})
    writer.close()
    assert read(place)["_hparams_/experiment"] == [(0, {"hparams": ["lr"], "metrics": ["accuracy"]})]


# ---- custom scalars


def test_layouts_add_up_and_the_last_one_stored_is_the_whole(writer, place):
    writer.add_custom_scalars({"c": {"one": ["Multiline", ["a"]], "two": ["Multiline", ["b"]]}})
    writer.add_custom_scalars_multilinechart(["x"], "d", "three")
    writer.add_custom_scalars_marginchart(["v", "lo", "hi"], "c", "two")
    writer.close()
    (*_, (_, layout)) = read(place)["custom_scalars__config__"]
    assert layout == {
        "c": {"one": ("Multiline", ("a",)), "two": ("Margin", ("v", "lo", "hi"))},
        "d": {"three": ("Multiline", ("x",))},
    }


def test_a_thousand_charts_one_by_one_are_stored_as_one_layout(writer, place):
    for number in range(1000):
        writer.add_custom_scalars_multilinechart([f"tag{number}"], title=f"chart {number}")
    assert writer.flush(PATIENCE_SECS)
    assert writer.stats().dropped == 0
    _, stored = read(place)["custom_scalars__config__"][-1]
    assert len(stored["default"]) == 1000
    assert sum(path.stat().st_size for path in place.iterdir()) < 5_000_000


# ---- tags of several parts, and of one kind


def test_a_mesh_without_colours_first_may_have_them_later(writer, place):
    points = RNG.random((1, 4, 3))
    writer.add_mesh("m", points, global_step=1)
    writer.add_mesh("m", points, np.zeros((1, 4, 3)), global_step=2)
    writer.close()
    plugins = {value.tag: value.plugin for event in read_events(place) for value in event.values}
    assert plugins == {"m_VERTEX": "mesh", "m_COLOR": "mesh"}


def test_images_and_videos_may_share_a_tag_and_sounds_may_not(writer):
    writer.add_image("t", RNG.random((3, 4, 5)))
    writer.add_video("t", RNG.random((1, 2, 3, 8, 8)))
    with pytest.raises(ValueError, match=r"^tag 't' holds images already and cannot hold sounds too; use another tag$"):
        writer.add_audio("t", [0.0])


# ---- graphs


def test_a_graph_may_be_bytes_or_a_message(writer, place):
    from tbwriter._pb import plugins_pb2 as plugins

    writer.add_graph(GRAPH)
    writer.add_graph(plugins.GraphDef.FromString(GRAPH))
    writer.close()
    assert [event.graph_def for event in read_events(place) if event.graph_def] == [GRAPH, GRAPH]


@pytest.mark.parametrize("model", [None, "graph.pb", object(), struct_pb2.Struct()])
def test_what_is_no_graph_is_refused(model, writer):
    with pytest.raises(TypeError, match=r"^model must be a GraphDef, serialised or not, or a torch module, got "):
        writer.add_graph(model)


def test_a_torch_module_is_traced(writer, place):
    pytest.importorskip("tensorboard")
    torch = pytest.importorskip("torch")
    writer.add_graph(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), torch.zeros(1, 3))
    writer.close()
    (graph,) = [event.graph_def for event in read_events(place) if event.graph_def]
    assert b"Linear" in graph


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("mode", [True, False])
def test_tracing_a_module_leaves_the_training_as_it_was(writer, mode, fails):
    """Torch's converter has a frozen batch norm train with the rest, and a model that samples draw other numbers."""
    pytest.importorskip("tensorboard")
    torch = pytest.importorskip("torch")

    class Sampling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()])

        def forward(self, x):
            if fails:
                raise OSError("of the model")
            for part in self.parts:
                x = part(x)
            return x + torch.randn_like(x)

    model = Sampling().train(mode)
    model.parts[1].train(not mode)
    before = [part.training for part in model.modules()], torch.get_rng_state(), model.parts[1].running_mean.clone()
    with contextlib.suppress(RuntimeError):
        writer.add_graph(model, torch.ones(2, 3))
    assert [part.training for part in model.modules()] == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert torch.equal(model.parts[1].running_mean, before[2])


def test_a_module_that_was_traced_already_may_be_given(writer, place):
    pytest.importorskip("tensorboard")
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's: tracing it again does nothing
        module = torch.jit.trace(torch.nn.Linear(3, 2), torch.zeros(1, 3))
        writer.add_graph(module, torch.zeros(1, 3))
    writer.close()
    assert len([event for event in read_events(place) if event.graph_def]) == 1


def test_an_onnx_model_may_be_a_path_or_a_message(writer, place, tmp_path):
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info("x", 1, [1])
    model = onnx.helper.make_model(
        onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "net", [value], [])
    )
    onnx.save(model, str(tmp_path / "net.onnx"))
    writer.add_onnx_graph(tmp_path / "net.onnx")
    writer.add_onnx_graph(onnx_model_file=model)
    writer.close()
    first, second = [event.graph_def for event in read_events(place) if event.graph_def]
    assert first == second
    assert b"Relu" in first


@pytest.mark.parametrize(
    ("arguments", "options"), [((), {}), (("a",), {"onnx_model_file": "b"}), ((3,), {}), ((b"",), {})]
)
def test_what_is_no_onnx_model_is_refused(arguments, options, writer):
    with pytest.raises(
        TypeError, match=r"^(add_onnx_graph takes prototxt, or |prototxt must be the path of an ONNX model)"
    ):
        writer.add_onnx_graph(*arguments, **options)


# ---- embeddings


def test_an_embedding_is_files_beside_the_event_file(writer, place):
    writer.add_embedding(np.eye(2), ["a", "b"], RNG.random((2, 3, 4, 4)), 5, "words/all")
    writer.add_embedding(np.eye(3))
    assert writer.flush(PATIENCE_SECS)
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())[:-2] == [
        "00000/default/tensors.tsv",
        "00005/words%2fall/metadata.tsv",
        "00005/words%2fall/sprite.png",
        "00005/words%2fall/tensors.tsv",
    ]
    config = (place / "projector_config.pbtxt").read_text()
    assert config.index('tensor_name: "words/all:00005"') < config.index('tensor_name: "default:00000"')
    assert writer.stats().written == 2


def test_a_second_session_keeps_the_embeddings_of_the_first(writer_at, place):
    for step in (1, 2):
        writer = writer_at(place)
        writer.add_embedding(np.eye(2), global_step=step)
        writer.close()
    assert (place / "projector_config.pbtxt").read_text().count("embeddings {") == 2


def test_embeddings_go_to_any_storage(writer_at):
    writer = writer_at("memory://embeddings")
    writer.add_embedding(np.eye(2))
    assert writer.flush(PATIENCE_SECS)
    fs = fsspec.filesystem("memory")
    assert fs.cat_file("/embeddings/00000/default/tensors.tsv") == b"1\t0\n0\t1\n"
    assert b"default:00000" in fs.cat_file("/embeddings/projector_config.pbtxt")


def test_an_embedding_that_cannot_be_stored_is_dropped_and_the_run_goes_on(writer, place):
    (place / "00000").write_text("in the way")
    writer.add_embedding(np.eye(2))
    writer.add_scalar("a", 1.0, 1)
    assert writer.flush(PATIENCE_SECS)
    assert scalars(place, "a") == [(1, 1.0)]
    assert writer.stats().dropped == 1


def test_a_configuration_that_cannot_be_read_is_not_overwritten(writer, place):
    (place / "projector_config.pbtxt").write_text("{{")
    writer.add_embedding(np.eye(2))
    assert writer.flush(PATIENCE_SECS)
    assert (place / "projector_config.pbtxt").read_text() == "{{"
    assert writer.stats().dropped == 1


# ---- bounds


def test_of_a_batch_no_more_than_max_outputs_are_stored(writer_at, place):
    writer = writer_at(place, max_outputs=2)
    writer.add_images("i", RNG.random((5, 3, 4, 4)))
    writer.close()
    assert [len(data) for _, data in read(place)["i"]] == [2]


def test_a_tag_takes_no_more_than_its_budget(writer_at, place, caplog):
    writer = writer_at(place, max_tag_bytes=5000)
    for step in range(10):
        writer.add_image("noise", RNG.integers(0, 256, (1, 40, 40), dtype=np.uint8), step)
        writer.add_image("other", np.zeros((1, 4, 4), np.uint8), step)
        writer.add_scalar("loss", 1.0, step)
    assert writer.flush(PATIENCE_SECS)
    found = read(place)
    assert [step for step, _ in found["noise"]] == [0, 1]
    assert len(found["other"]) == len(found["loss"]) == 10
    assert writer.stats().dropped == 8
    assert [record.getMessage() for record in caplog.records] == [
        "tag 'noise' cannot be encoded and is left out: max_tag_bytes=5000 are used up. Said once for this tag"
    ]


def test_a_summary_that_goes_to_a_second_file_is_charged_once(writer_at, place):
    writer = writer_at(place, max_tag_bytes=10_000, max_file_size=3000)
    for step in range(4):
        writer.add_image("noise", RNG.integers(0, 256, (1, 40, 40), dtype=np.uint8), step)
    assert writer.flush(PATIENCE_SECS)
    assert len(event_files(place)) == 4
    assert [step for step, _ in read(place)["noise"]] == [0, 1, 2, 3]


# ---- the counts that a histogram may add


def test_a_histogram_leaves_tags_of_other_kinds_alone(writer, place):
    writer.add_histogram("h/nan_count", [1.0], 1)
    writer.add_histogram("h", [1.0, np.nan, np.inf], 1)
    assert writer.flush(PATIENCE_SECS)
    added = [(value.tag, value.plugin) for event in events(place) for value in event.values]
    assert added == [("h/nan_count", "histograms"), ("h", "histograms")]


def test_the_tags_of_the_counts_hold_scalars_alone(writer):
    writer.add_histogram("h", [1.0], 1)
    writer.add_scalar("h/nan_count", 0.0, 1)
    with pytest.raises(ValueError, match="tag 'h/inf_count' holds scalars already"):
        writer.add_histogram("h/inf_count", [1.0], 1)


# ---- metrics that are curves


def test_a_metric_that_is_a_curve_leaves_it_whole_and_is_told(writer, place, caplog):
    for step in range(5):
        writer.add_scalar("val/acc", float(step), step)
    for value in (1.0, 2.0):
        writer.add_hparams({"lr": 0.1}, {"val/acc": 9.0, "best": value})
    assert writer.flush(PATIENCE_SECS)
    assert scalars(place, "val/acc") == [(step, float(step)) for step in range(5)]
    assert scalars(place, "best") == [(0, 1.0), (0, 2.0)]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("add_hparams: tag 'val/acc' is a curve of this run, and the table shows its last point: 9.0")


def test_a_metric_with_a_step_is_a_point_of_its_curve(writer, place, caplog):
    writer.add_scalar("val/acc", 0.5, 4)
    writer.add_hparams({"lr": 0.1}, {"val/acc": 0.75}, global_step=5)
    writer.add_hparams({"lr": 0.2}, {"val/acc": 0.25}, run_name="other")
    assert writer.flush(PATIENCE_SECS)
    assert scalars(place, "val/acc") == [(4, 0.5), (5, 0.75)]
    assert caplog.records == []
