"""What `import tbwriter` costs and brings along, and what the installed package promises."""

import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
import types
import typing
from pathlib import Path

import pytest

import tbwriter
import tbwriter.sinks
import tbwriter.testing


def run(code, **environment):
    """Run a program in a fresh interpreter that finds the same tbwriter; return what it printed, as JSON."""
    path = os.pathsep.join([str(Path(tbwriter.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-c", "import json, sys\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "GLOG_v": "3", **environment},
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


# ---- what an import loads


def test_an_import_loads_numpy_protobuf_crc32c_and_nothing_else():
    loaded = run(
        """
        before = {name.split(".")[0] for name in sys.modules}
        import tbwriter
        after = {name.split(".")[0] for name in sys.modules}
        print(json.dumps(sorted(after - before - set(sys.stdlib_module_names))))
        """
    )
    # Extensions of an old NumPy were made with Cython; a .pth file may have loaded google before.
    assert {name for name in loaded if "cython" not in name} - {"google"} == {"crc32c", "numpy", "tbwriter"}


FRAMEWORKS = {"jax", "mindspore", "tensorboard", "tensorboardX", "tensorflow", "torch"}
HEAVY = FRAMEWORKS | {"asyncio", "fsspec", "matplotlib", "PIL"}


def test_writing_to_a_disk_and_reading_back_loads_no_framework_no_backend_and_no_drawing(tmp_path):
    loaded = run(
        f"""
        import tbwriter
        with tbwriter.SummaryWriter({str(tmp_path)!r}) as writer:
            writer.add_scalar("loss", 0.5, 1)
            writer.add_histogram("w", [1.0], 1)
            writer.add_text("t", "words", 1)
        list(tbwriter.read_events({str(tmp_path)!r}))
        print(json.dumps(list(sys.modules)))
        """
    )
    assert HEAVY & set(loaded) == set()


def test_looking_for_masked_arrays_loads_none_of_numpy():
    """NumPy 2 loads them when they are asked for, which takes 15 ms: the training's, in its first `add_histogram`."""
    before, after = run(
        """
        import numpy, tbwriter
        before = "numpy.ma" in sys.modules
        with tbwriter.SummaryWriter("memory://masked") as writer:
            writer.add_histogram("w", numpy.ones(3), 1)
            writer.add_scalar("loss", [0.5], 1)
            writer.add_text("t", ["words"], 1)
        print(json.dumps([before, "numpy.ma" in sys.modules]))
        """
    )
    assert after == before


def test_an_import_loads_few_modules_beyond_its_dependencies():
    """Up to 36 of the standard library, NumPy and protobuf, when these are loaded already; and nothing for later."""
    loaded = run(
        """
        import numpy, crc32c
        import google.protobuf.descriptor_pool, google.protobuf.message, google.protobuf.internal.builder
        before = set(sys.modules)
        import tbwriter
        print(json.dumps([*set(sys.modules) - before]))
        """
    )
    # Of typing, Python 3.10 has two more that are no files.
    assert len([name for name in loaded if not name.startswith(("tbwriter", "typing."))]) <= 36
    for_later = (
        "tbwriter.cli",
        "tbwriter.testing",
        "tbwriter._repair",
        "tbwriter._scan",
        "tbwriter.sinks._store",
        "tbwriter.sinks._uploader",
    )
    assert not {name for name in loaded if name.startswith(for_later)}


def test_an_import_starts_no_thread_and_leaves_signals_alone():
    threads, same = run(
        """
        import signal, threading
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        import tbwriter
        same = before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        print(json.dumps([threading.active_count(), same]))
        """
    )
    assert (threads, same) == (1, True)


def test_an_import_configures_no_logging():
    handlers = run(
        """
        import logging
        import tbwriter
        print(json.dumps([len(logging.getLogger(name).handlers) for name in (None, "tbwriter")]))
        """
    )
    assert handlers == [0, 0]


# ---- beside other packages that bring the same messages

PEERS = ["tensorboard.compat.proto.event_pb2", "tensorboardX", "mindspore"]


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["as installed", "python"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_packages_with_the_same_messages_can_be_imported_before_and_after(tmp_path, place, implementation):
    """Two packages that register one message name end in an error, or with MindSpore in an abort of the process."""
    peers = [peer for peer in PEERS if importlib.util.find_spec(peer.split(".")[0])]
    if not peers:
        pytest.skip(f"none of {PEERS}")
    imports = ["tbwriter", *peers] if place == "first" else [*peers, "tbwriter"]
    points = run(
        f"""
        import importlib
        sys.modules["torch"] = None  # which tensorboardX loads where it can, for three seconds and no messages
        for name in {imports}:
            importlib.import_module(name)
        import tbwriter
        with tbwriter.SummaryWriter({str(tmp_path)!r}) as writer:
            writer.add_scalar("loss", 0.5, 1)
            writer.add_histogram("w", [1.0], 1)
        print(json.dumps([value.tag for event in tbwriter.read_events({str(tmp_path)!r}) for value in event.values]))
        """,
        **({"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"} if implementation == "python" else {}),
    )
    assert points == ["loss", "w"]


# ---- the package


@pytest.fixture
def distribution():
    try:
        return importlib.metadata.distribution("tbwriter")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tbwriter is not installed")


def test_the_version_is_that_of_the_distribution(distribution):
    assert tbwriter.__version__ == distribution.version


def test_the_package_says_that_it_is_typed():
    assert (Path(tbwriter.__file__).parent / "py.typed").exists()


def test_the_package_needs_four_others(distribution):
    needed = [line for line in distribution.requires if "extra ==" not in line]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in needed) == ["crc32c", "fsspec", "numpy", "protobuf"]
    assert not any("<" in line for line in needed)  # MindSpore and TensorBoard bring versions of their own


MODULES = [tbwriter, tbwriter.sinks, tbwriter.testing]
NAMES = [(module, name) for module in MODULES for name in module.__all__]


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module.__name__}.{name}" for module, name in NAMES])
def test_every_public_name_exists_and_is_described(module, name):
    value = getattr(module, name)
    if isinstance(value, types.GenericAlias) or typing.get_origin(value) is not None:
        return  # the name of a type tells what it is
    assert value.__doc__
    assert value.__doc__.strip()


def methods():
    for module, name in NAMES:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value) and value.__module__.startswith("tbwriter"):
            for member in dir(value):  # also what it has of its bases
                function = inspect.getattr_static(value, member)
                if isinstance(function, property) and not member.startswith("_"):
                    yield f"{module.__name__}.{name}.{member}", function.fget
                elif inspect.isfunction(function) and (not member.startswith("_") or member == "__init__"):
                    yield f"{module.__name__}.{name}.{member}", function


FUNCTIONS = dict(methods())


def test_the_public_functions_are_found():
    assert "tbwriter.SummaryWriter.add_scalar" in FUNCTIONS
    assert len(FUNCTIONS) > 80


def generated(function):
    """Say whether dataclasses, enum or typing made a function; they have no lines of ours."""
    return "tbwriter" not in function.__code__.co_filename


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if not generated(function)])
def test_every_public_function_is_described_and_annotated_without_messages_of_protobuf(name):
    function = FUNCTIONS[name]
    if not name.endswith("__init__"):
        assert function.__doc__
    annotations = dict(function.__annotations__)
    parameters = [parameter for parameter in inspect.signature(function).parameters if parameter != "self"]
    assert sorted(annotations) == sorted([*parameters, "return"])
    for annotation in map(str, annotations.values()):
        assert "pb." not in annotation
        assert "_pb2" not in annotation


@pytest.mark.parametrize("name", ["SummaryWriter", "EventFileWriter", "open_sink", "read_events", "verify"])
def test_arguments_beyond_those_of_torch_are_by_name_only(name):
    value = getattr(tbwriter, name)
    limit = {"SummaryWriter": 7, "EventFileWriter": 4}.get(name, 1)
    kinds = [parameter.kind for parameter in inspect.signature(value).parameters.values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == limit
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_errors_can_be_caught_by_one_base_and_by_their_builtin_kin():
    kin = {
        "WriterClosedError": RuntimeError,
        "SinkError": OSError,
        "QueueFullError": RuntimeError,
        "CorruptRecordError": ValueError,
        "TruncatedRecordError": tbwriter.CorruptRecordError,
        "RecordTooLargeError": OSError,
        "SegmentLostError": OSError,
    }
    for name, base in kin.items():
        assert issubclass(getattr(tbwriter, name), (tbwriter.TBWriterError)), name
        assert issubclass(getattr(tbwriter, name), base), name
