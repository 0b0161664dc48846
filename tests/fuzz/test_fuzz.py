"""Inputs that reached new code, or broke something once, hold what must hold for any bytes; run.py looks for more."""

import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("google.protobuf")
import sys

sys.path.append(str(Path(__file__).parent))

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from targets import SEPARATOR, TARGETS, be_quiet

CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 200_000


@pytest.fixture(autouse=True, scope="module")
def quiet():
    speak_again = be_quiet()
    yield
    speak_again()


def inputs(target):
    return sorted((CORPUS / target).iterdir())


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_of_the_corpus_is_taken(target):
    assert inputs(target)
    for path in inputs(target):
        TARGETS[target](path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_takes_much_memory(target):
    data = max((path.read_bytes() for path in inputs(target)), key=len)
    TARGETS[target](data)  # what is loaded and remembered once
    tracemalloc.start()
    TARGETS[target](data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
@given(data=st.data())
def test_mixtures_of_inputs_are_taken(target, data):
    """Parts of several inputs, cut anywhere and with bytes changed."""
    known = st.sampled_from(inputs(target)).map(Path.read_bytes)
    pieces = data.draw(st.lists(st.one_of(known, st.just(SEPARATOR), st.binary(max_size=20)), max_size=6))
    mixed = bytearray(b"".join(pieces))
    for _ in range(data.draw(st.integers(0, 4))):
        if mixed:
            mixed[data.draw(st.integers(0, len(mixed) - 1))] = data.draw(st.integers(0, 255))
    TARGETS[target](bytes(mixed[: data.draw(st.integers(0, 4096))]))


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < MOST_BYTES
