"""Days, outages and many writers in a second: the shipping of the sink itself, with a clock that the test moves."""

import itertools
import random
from collections import Counter

import pytest
from test_object_sinks import OtherStore

from tbwriter.sinks import _thinning
from tbwriter.sinks._policy import Backoff, SegmentPolicy
from tbwriter.sinks._shipping import Shipping
from tbwriter.sinks._spool import MemorySpool
from tbwriter.sinks._store import Store
from tbwriter.sinks._thinning import Usage

HEADER = (8).to_bytes(8, "little") + b"....headerss...."[:16]
KB_RECORD = (1008).to_bytes(8, "little") + bytes(1016)
DAY, HOUR = 86_400, 3_600
_numbers = itertools.count()


class DownError(OSError):
    """The store is down."""


class Timed(OtherStore):
    """Notes when it was asked for what, and is down at times."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.clock, self.down, self.puts = None, (), []

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        now = self.clock()
        if any(begin <= now < end for begin, end in self.down):
            raise DownError("down")
        self.puts.append((now, path.rsplit("/", 1)[-1], len(value)))
        super().pipe_file(path, value)


class Run:
    """One writer's sink from when it opens; `advance` moves its clock."""

    def __init__(self, *, seed=0, down=(), policy=None, min_gap_secs=0.0):
        self.now = 0.0
        self.store = Store("storage-test", {})
        self.store.min_gap_secs = min_gap_secs
        self.fs = self.store._fs = Timed(skip_instance_cache=True)
        self.fs.clock, self.fs.down = (lambda: self.now), down
        self.url = f"storage-test://simulated{next(_numbers)}"
        self.number = 0
        self.spool = MemorySpool(name=self.name, header=HEADER)
        self.shipping = Shipping(
            self.store,
            self.url,
            self.spool,
            policy or SegmentPolicy(),
            name=self.name,
            root=None,
            usage=Usage(1 << 40),
            clock=lambda: self.now,
            rng=random.Random(seed),
        )
        self.due = 0.0
        self.written = [HEADER]
        self._work()

    @property
    def name(self):
        return f"{self.number:06d}"

    def append(self, record):
        """What an event file does before and in an append."""
        if self.spool.size > len(HEADER) and self.shipping.roll_due():
            self.number += 1
            self.shipping.rolled(self.name, self.spool.roll(self.name, HEADER))
            self.written.append(HEADER)
            self.due = self.now
        self.spool.append(record)
        self.written.append(record)
        if self.shipping.grown():
            self.due = self.now

    def flush(self):
        self.shipping.want(self.shipping.taken)
        self.due = self.now
        self._work()
        assert self.shipping.shipped == self.shipping.taken

    def advance(self, to):
        while self.due <= to:
            self.now = max(self.now, self.due)
            self._work()
        self.now = to

    def close(self):
        self.shipping.close()
        self.due = self.now
        while not self.shipping.ended.is_set():
            self.now = max(self.now, self.due)
            self._work()

    def _work(self):
        while self.due <= self.now:
            pause = self.shipping.step()
            if pause is None:
                self.due = float("inf")
            elif pause > 0:
                self.due = self.now + pause

    @property
    def puts(self):
        return self.fs.puts

    def stored(self):
        return b"".join(
            self.fs.cat_file(f"{self.url.split('://')[1]}/{number:06d}") for number in range(self.number + 1)
        )

    def times(self):
        return sum(size for *_, size in self.puts) / self.shipping.taken


@pytest.fixture(autouse=True)
def _forget_objects():
    yield
    OtherStore.store.clear()


def test_a_day_at_1_kb_a_second():
    run = Run()
    for second in range(DAY):
        run.advance(second)
        run.append(KB_RECORD)
    run.close()
    assert run.stored() == b"".join(run.written)
    assert run.times() <= 20
    assert len({name for _, name, _ in run.puts}) <= 60
    assert in_order(run.puts)


def test_a_new_run_shows_within_seconds_as_its_user_looks_at_it():
    for seed in range(50):
        run = Run(seed=seed)
        run.append(KB_RECORD)
        for tenth in range(75):
            run.advance(tenth / 10)
        assert run.stored() == b"".join(run.written)


@pytest.mark.parametrize(("count", "size", "times", "objects"), [(360, 28, 16, 32), (360, 280, 8, 360)])
def test_many_flushes(count, size, times, objects):
    run = Run()
    for flush in range(count):
        run.advance(10.0 * flush)
        for _ in range(size):
            run.append(KB_RECORD)
        run.flush()
    run.close()
    assert run.stored() == b"".join(run.written)
    assert run.times() <= times
    assert len({name for _, name, _ in run.puts}) <= objects


def test_an_outage_of_an_hour_loses_nothing_and_is_asked_rarely():
    run = Run(down=[(HOUR, 2 * HOUR)])
    for second in range(3 * HOUR):
        run.advance(second)
        run.append(KB_RECORD)
    run.close()
    assert run.stored() == b"".join(run.written)
    assert in_order(run.puts)
    # Pauses are 0 to 60 s, 30 in the mean.
    assert run.shipping.counts.retries < 200
    assert min(when for when, *_ in run.puts if when >= HOUR) < 2 * HOUR + 60


def test_a_slow_run_is_not_sent_again_and_again():
    run = Run()
    for minute in range(24 * 60):
        run.advance(60.0 * minute)
        run.append(KB_RECORD)
    run.close()
    assert run.stored() == b"".join(run.written)
    assert run.times() <= 25
    assert len({name for _, name, _ in run.puts}) <= 60


def test_an_idle_run_asks_for_nothing():
    run = Run()
    run.append(KB_RECORD)
    run.advance(DAY)
    assert len(run.puts) == 2


def test_writers_that_start_together_put_at_all_times_alike_and_64_of_them_never_together():
    """20 times 64 writers, for two minutes each."""
    secs = 120
    groups = []
    for group in range(20):
        puts = Counter()
        for seed in range(64):
            run = Run(seed=f"{group}.{seed}")
            while run.now < secs:
                run.append(KB_RECORD)
                run.advance(min(run.due, secs))
            # Not the one at the opening, which is when its user starts it.
            puts.update(int(when) for when, *_ in run.puts if 0 < when < secs)
        groups.append(puts)
    for puts in groups:
        assert max(puts.values()) <= 3 * puts.total() / secs
    together = sum(groups, Counter())
    # All 1280 are many enough to show a second that is likelier than others.
    assert max(together.values()) <= 1.35 * together.total() / secs


def test_sealed_segments_only():
    run = Run(policy=SegmentPolicy(max_bytes=100_000, max_puts=1, min_interval=300, max_interval=300))
    for second in range(1000):
        run.advance(second)
        run.append(KB_RECORD)
    run.close()
    assert run.stored() == b"".join(run.written)
    assert [count for _, count in Counter(name for _, name, _ in run.puts).items()] == [1] * (run.number + 1)


def test_no_object_is_put_twice_within_the_least_gap_of_its_store():
    run = Run(min_gap_secs=1.0)
    for _ in range(10):
        run.append(KB_RECORD)
        run.shipping.want(run.shipping.taken)
        run.due = run.now
        run.advance(run.now + 0.25)
    moments = {}
    for when, name, _ in run.puts:
        assert when - moments.get(name, -1.0) >= 1.0
        moments[name] = when


def test_pauses_after_errors_grow_to_a_minute_and_begin_again_after_a_success():
    backoff = Backoff(random.Random(1))
    pauses = [backoff.pause() for _ in range(400)]
    assert pauses[0] <= 0.2
    assert 55 < max(pauses) <= 60
    backoff.reset()
    assert backoff.pause() <= 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_bytes": 0}, "max_bytes and max_puts must be at least 1, got 0 and None"),
        ({"max_puts": 0}, "max_bytes and max_puts must be at least 1"),
        ({"min_interval": 0.0}, "want 0 < min_interval <= max_interval, got 0.0 and 300.0"),
        ({"max_interval": 5.0}, "want 0 < min_interval <= max_interval"),
        ({"jitter": 1.0}, "want age_fraction >= 0 and 0 <= jitter < 1"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SegmentPolicy(**settings)


@pytest.mark.parametrize("given", ["1G", "-1", "0", "1e9"])
def test_a_size_of_spools_that_is_none_is_told_and_the_training_goes_on(monkeypatch, caplog, given):
    monkeypatch.setenv("TBWRITER_SPOOL_BYTES", given)
    assert _thinning._disk_bytes() == 1 << 30
    assert f"TBWRITER_SPOOL_BYTES must be a number of bytes, as 1073741824, got {given!r}" in caplog.text


def test_the_size_of_spools_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("TBWRITER_SPOOL_BYTES", "123456")
    assert _thinning._disk_bytes() == 123456


def in_order(puts):
    """No put of a segment before the last one of the segment before it."""
    names = [name for _, name, _ in puts]
    return names == sorted(names)
