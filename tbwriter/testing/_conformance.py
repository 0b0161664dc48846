"""The suite that every sink must pass.

import pytest
from tbwriter.testing import SinkTests

class TestMySink(SinkTests):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path):
        self.url = f"mine://{tmp_path}"

    def open(self, name, header):
        return tbwriter.open_sink(self.url, name=name, header=header)

    def stored(self, name):          # must not go through the sink
        return my_store.read(f"{self.url}/{name}")
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from tbwriter import _record
from tbwriter.sinks import Durability, Sink

FIRST = "events.out.tfevents.1700000000.host.1.000000"
SECOND = "events.out.tfevents.1700000000.host.1.000001"
HEADER = _record.frame(b"header")
A, B, C = (_record.frame(bytes([letter]) * size) for letter, size in ((65, 1), (66, 1000), (67, 70_000)))
_PATIENCE_SECS = 30.0


class SinkTests(ABC):
    """Inherit, and say how a sink is opened and how what it stored is read behind its back."""

    @abstractmethod
    def open(self, name: str, header: bytes) -> Sink:
        """Return a new sink on this test's place, with its first segment `name` begun by `header`."""

    @abstractmethod
    def stored(self, name: str) -> bytes | None:
        """Return the bytes of the segment `name` as another process sees them; None when there is none."""

    def _show(self, sink: Sink) -> None:
        """Bring everything to where other processes see it."""
        level = getattr(sink, "visible_at", Durability.OS)
        assert sink.flush(level, _PATIENCE_SECS) >= level, sink.status()

    def test_a_new_sink_shows_its_header_after_a_flush(self) -> None:
        """A reader that looks at once finds a whole first record."""
        sink = self.open(FIRST, HEADER)
        self._show(sink)
        assert self.stored(FIRST) == HEADER
        sink.close()

    def test_flushed_records_are_visible_in_order(self) -> None:
        """What was appended before a flush is there after it."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        sink.append(B + C)
        self._show(sink)
        assert self.stored(FIRST) == HEADER + A + B + C
        sink.append(B)
        self._show(sink)
        assert self.stored(FIRST) == HEADER + A + B + C + B
        sink.close()

    def test_close_stores_what_was_not_flushed(self) -> None:
        """Nothing is left behind in a buffer."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        sink.close()
        assert self.stored(FIRST) == HEADER + A

    def test_close_is_idempotent(self) -> None:
        """A second close changes nothing and raises nothing."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        first = sink.close()
        assert sink.close() == first
        assert self.stored(FIRST) == HEADER + A

    def test_flush_never_claims_more_than_the_sink_can(self) -> None:
        """The level that is returned was reached, and is at most the one asked for where a sink can tell them apart."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        for level in Durability:
            assert min(level, sink.max_durability) <= sink.flush(level) <= sink.max_durability
        sink.close()

    def test_roll_begins_a_new_segment_and_leaves_the_old_one_as_it_is(self) -> None:
        """A sealed segment never changes."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        sink.roll(SECOND, HEADER)
        sink.append(B)
        self._show(sink)
        assert sink.name == SECOND
        assert self.stored(FIRST) == HEADER + A
        assert self.stored(SECOND) == HEADER + B
        sink.close()

    def test_an_existing_segment_is_never_overwritten(self) -> None:
        """Two writers that choose one name do not meet in one file."""
        first = self.open(FIRST, HEADER)
        first.append(A)
        self._show(first)
        refused = False
        try:
            self.open(FIRST, HEADER)
        except FileExistsError:
            refused = True
        assert refused, f"opened {FIRST} a second time"
        assert self.stored(FIRST) == HEADER + A
        first.close()

    def test_roll_to_an_existing_name_raises_and_a_free_one_still_works(self) -> None:
        """The caller can go on with another name."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        failed = False
        try:
            sink.roll(FIRST, HEADER)
        except FileExistsError:
            failed = True
        assert failed, f"rolled to {FIRST}, which exists"
        sink.roll(SECOND, HEADER)
        sink.append(B)
        sink.close()
        assert self.stored(FIRST) == HEADER + A
        assert self.stored(SECOND) == HEADER + B

    def test_release_keeps_the_segment_writable(self) -> None:
        """Handles that were given back are taken again when needed."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        sink.release()
        sink.append(B)
        sink.release()
        self._show(sink)
        assert self.stored(FIRST) == HEADER + A + B
        sink.close()

    def test_status_counts_what_was_taken(self) -> None:
        """Counters grow with the records and name the segment."""
        sink = self.open(FIRST, HEADER)
        before = sink.status()
        sink.append(A)
        sink.flush(sink.max_durability)
        status = sink.status()
        assert before.segment == 0
        assert status.path.endswith(FIRST)
        assert status.last_error is None
        assert max(status.bytes_os, status.bytes_remote) == len(HEADER + A)
        sink.roll(SECOND, HEADER)
        assert sink.status().segment == 1
        assert sink.status().path.endswith(SECOND)
        sink.close()

    def test_a_flush_that_waits_for_nothing_returns_what_is_reached(self) -> None:
        """What a store acknowledges later shows in the counters."""
        sink = self.open(FIRST, HEADER)
        sink.append(A)
        level = getattr(sink, "visible_at", Durability.OS)
        assert sink.flush(level, 0.0) <= sink.max_durability
        self._show(sink)
        status = sink.status()
        assert max(status.bytes_os, status.bytes_remote) == len(HEADER + A)
        assert level < Durability.REMOTE or status.bytes_remote == status.bytes_os
        sink.close()
