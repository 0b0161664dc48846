"""SummaryWriter on a real S3 server: what is flushed is there, what it costs, and what is said when it is wrong."""

import logging
import re

import numpy as np
import pytest
from event_files import read_bytes, scalars, statuses, steps, values
from servers import KEY, SECRET
from waiting import wait_until

import tbwriter
from tbwriter import SinkError, SummaryWriter, sinks


def make(place, **settings):
    return SummaryWriter(place.url, storage_options=place.options, spool_dir=place.spool, **settings)


def write(writer, begin, end, tag="loss"):
    for step in range(begin, end):
        writer.add_scalar(tag, float(step), step)


# ---- flush, close, restart


def test_each_flush_is_in_the_store_when_it_returns(s3, tmp_path):
    with make(s3) as writer:
        for begin in range(0, 500, 50):
            write(writer, begin, begin + 50)
            assert writer.flush()
            assert steps(s3.download(tmp_path / "seen"), "loss") == list(range(begin + 50))
            assert set(statuses(tmp_path / "seen")) == {"clean"}
    assert s3.spooled() == []


def test_every_kind_of_storage_call_reads_back_what_a_writer_wrote(s3):
    with make(s3, max_file_size=2000) as writer:
        for step in range(0, 300, 100):
            write(writer, step, step + 100)
            writer.add_histogram("weights", np.arange(step + 10.0), step)
            assert writer.sync()
    report = tbwriter.verify(s3.url, storage_options=s3.options)
    assert report.ok
    assert [file.path for file in report.files] == [f"{s3.url}/{name}" for name in s3.names()]
    events = list(tbwriter.read_events(s3.url, storage_options=s3.options))
    assert [event.step for event in events for value in event.values if value.tag == "loss"] == list(range(300))
    (first, *_) = report.files
    assert tbwriter.verify(first.path, storage_options=s3.options).files == (first,)


def test_a_restart_sorts_after_what_is_there_also_when_the_clock_went_back(s3, tmp_path, monkeypatch):
    from tbwriter import _settings

    for begin, now in ((0, 1_800_000_000.0), (10, 1_700_000_000.0), (20, 1_600_000_000.0)):
        with monkeypatch.context() as clock:
            clock.setattr(_settings.time, "time", lambda now=now: now)
            writer = make(s3)
        write(writer, begin, begin + 10)
        writer.close()
    assert steps(s3.download(tmp_path / "seen"), "loss") == list(range(30))


def test_sub_runs_of_a_restart_sort_after_what_is_there_also_when_the_clock_jumps(s3, tmp_path, monkeypatch):
    """Their directories are not listed, since the training would wait; and they begin at any time of a session."""
    from tbwriter import _settings

    for begin, opened, added in ((0, 1.80e9, 1.85e9), (10, 1.70e9, 1.60e9), (20, 1.75e9, 1.79e9)):
        with monkeypatch.context() as clock:
            clock.setattr(_settings.time, "time", lambda now=opened: now)
            writer = make(s3)
            clock.setattr(_settings.time, "time", lambda now=added: now)
            for step in range(begin, begin + 10):
                writer.add_scalars("loss", {"train": float(step)}, step)
            writer.close()
    assert steps(s3.download(tmp_path / "seen") / "loss_train", "loss") == list(range(30))


def test_sub_runs_and_ranks_have_directories_of_their_own_and_few_threads(s3, tmp_path):
    import threading

    before = threading.active_count()
    with make(s3, rank=3) as writer:
        for step in range(20):
            writer.add_scalars("loss", {f"key{number}": float(step) for number in range(40)}, step)
        assert writer.flush(30)
        # The worker, four that upload, and the drivers' loop.
        assert threading.active_count() - before <= 6
        seen = s3.download(tmp_path / "seen")
        for number in range(40):
            assert steps(seen / "rank_3" / f"loss_key{number}", "loss") == list(range(20))
    assert s3.spooled() == []


def test_data_comes_into_the_store_without_any_flush(s3, tmp_path):
    with make(s3) as writer:
        write(writer, 0, 3)
        wait_until(lambda: steps(s3.download(tmp_path / "seen"), "loss") == [0, 1, 2], within=20)


def test_a_run_shows_before_anything_is_added(s3):
    with make(s3):
        (data,) = s3.objects().values()
    events, status = read_bytes(data)
    assert status == "clean"
    assert events[0].file_version == "brain.Event:2"


def test_a_flush_of_a_writer_without_a_thread_is_in_the_store(s3, tmp_path):
    with make(s3, asynchronous=False) as writer:
        write(writer, 0, 5)
        assert writer.flush()
        assert steps(s3.download(tmp_path / "seen"), "loss") == [0, 1, 2, 3, 4]


def test_an_event_file_writer_flushes_into_the_store(s3):
    with tbwriter.EventFileWriter(s3.url, storage_options=s3.options, spool_dir=s3.spool) as writer:
        writer.add_event(b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f")
        assert writer.flush()
        (data,) = s3.objects().values()
    assert [event.wall_time for event in read_bytes(data)[0]][-1] == 1.0


def test_a_writer_on_a_quirky_store_reads_and_writes(quirky_s3, tmp_path):
    with make(quirky_s3) as writer:
        for begin in range(0, 300, 30):
            write(writer, begin, begin + 30)
            assert writer.flush()
    assert steps(quirky_s3.download(tmp_path / "seen"), "loss") == list(range(300))
    assert tbwriter.verify(quirky_s3.url, storage_options=quirky_s3.options).ok


def test_obs_urls_go_through_the_s3_driver(s3, tmp_path):
    url = s3.url.replace("s3://", "obs://")
    with SummaryWriter(url, storage_options=s3.options, spool_dir=s3.spool) as writer:
        write(writer, 0, 3)
        assert writer.flush()
        assert steps(s3.download(tmp_path / "seen"), "loss") == [0, 1, 2]


def test_obs_urls_need_an_endpoint(tmp_path):
    with pytest.raises(ValueError, match=r"^obs:// needs the endpoint of its region: storage_options="):
        SummaryWriter("obs://bucket/run", spool_dir=tmp_path)


# ---- the numbers of requests and bytes


def flushes(place, proxy, count, size):
    """Write `count` flushes of `size` bytes; return what was sent, requests, objects and the data's size."""
    tag = "t" * (size // 10 - 37)  # ten records of a tag, a float and a step
    with make(place, flush_secs=600, coalesce=False) as writer:
        for flush in range(count):
            for number in range(10):
                writer.add_scalar(tag, float(number), flush * 10 + number)
            assert writer.flush()
    data = place.objects()
    total = sum(map(len, data.values()))
    assert count * size * 0.95 < total < count * size * 1.05
    assert steps_of(data, tag) == list(range(count * 10))
    return proxy.sent() / total, proxy.count(), len(data)


def steps_of(objects, tag):
    return [
        event.step
        for data in objects.values()
        for event in read_bytes(data)[0]
        for value in event.values
        if value.tag == tag
    ]


def test_40_flushes_of_20_kb(behind_proxy, proxy):
    times, requests, objects = flushes(behind_proxy, proxy, 40, 20_000)
    assert times <= 4
    assert requests <= 60
    assert objects <= 10


@pytest.mark.slow
def test_360_flushes_of_28_kb(behind_proxy, proxy):
    times, _, objects = flushes(behind_proxy, proxy, 360, 28_000)
    assert times <= 16
    assert objects <= 32


def test_no_segment_is_put_before_the_one_before_it_is_complete_and_none_after(behind_proxy, proxy):
    with make(behind_proxy, max_file_size=3000) as writer:
        for begin in range(0, 600, 20):
            write(writer, begin, begin + 20)
            if begin % 40:
                assert writer.flush()
    puts = [path.rsplit("/", 1)[1] for path, _ in proxy.puts()]
    assert len(set(puts)) > 5
    assert puts == sorted(puts)
    final = {path.rsplit("/", 1)[1]: size for path, size in proxy.puts()}
    assert {name: len(data) for name, data in behind_proxy.objects().items()} == final


# ---- what is wrong is said at once


@pytest.mark.usefixtures("patient")
def test_a_wrong_bucket_is_an_error_at_construction(light_s3):
    s3 = light_s3  # the other server creates buckets
    with pytest.raises(SinkError, match=r"s3://no-such-bucket/run.*FileNotFoundError: .*bucket") as failed:
        SummaryWriter("s3://no-such-bucket/run", storage_options=s3.options, spool_dir=s3.spool)
    assert failed.value.errno is not None
    assert s3.spooled() == []


@pytest.mark.usefixtures("patient")
def test_a_bucket_of_a_name_that_none_has_is_an_error_at_construction(s3):
    with pytest.raises(SinkError, match=r"s3://No_Bucket/run.*not valid"):
        SummaryWriter("s3://No_Bucket/run", storage_options=s3.options, spool_dir=s3.spool)


@pytest.mark.usefixtures("patient")
def test_a_password_that_stands_before_a_bucket_is_shown_nowhere(light_s3, said):
    with pytest.raises(SinkError, match=r"s3://bucket/run.*Invalid bucket name") as failed:
        SummaryWriter("s3://key:hunter2@bucket/run", storage_options=light_s3.options, spool_dir=light_s3.spool)
    assert not [text for text in (str(failed.value), repr(failed.value.__cause__), *said()) if "hunter2" in text]


@pytest.mark.usefixtures("patient")
def test_a_wrong_key_is_an_error_at_construction_that_does_not_hold_it(s3, said):
    wrong = {**s3.options, "secret": "not-the-secret-at-all"}
    with pytest.raises(SinkError, match=r"s3://bucket/.*PermissionError") as failed:
        SummaryWriter(s3.url, storage_options=wrong, spool_dir=s3.spool)
    error, shown = failed.value, []
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__
    assert not [text for text in (*shown, *said()) if "not-the-secret" in text or KEY in text]


@pytest.mark.usefixtures("patient")
def test_an_option_that_the_driver_does_not_know_is_an_error_at_construction_without_its_value(s3):
    with pytest.raises(SinkError, match="unexpected keyword argument 'nonsense'") as failed:
        SummaryWriter(s3.url, storage_options={"nonsense": SECRET}, spool_dir=s3.spool)
    assert SECRET not in str(failed.value)


def test_a_missing_driver_is_an_import_error_with_the_line_for_pip(tmp_path):
    with pytest.raises(ImportError, match=r"^oss:// needs ossfs: pip install ossfs"):
        SummaryWriter("oss://bucket/run", spool_dir=tmp_path)


def test_a_spool_that_was_asked_for_and_cannot_be_made_is_an_error(s3, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match=r"spool_dir '.*/file/below' cannot be used"):
        SummaryWriter(s3.url, storage_options=s3.options, spool_dir=tmp_path / "file" / "below")


def test_credentials_are_in_no_file_of_the_spool_no_repr_and_no_log(behind_proxy, proxy, said, caplog):
    caplog.set_level(logging.DEBUG, logger="tbwriter")
    writer = make(behind_proxy)
    proxy.fault = "503"
    write(writer, 0, 100)
    assert not writer.flush(1)
    kept = [path.read_bytes() for path in behind_proxy.spool.rglob("*") if path.is_file()]
    assert len(kept) >= 3
    writer.close(0.5)
    wait_until(lambda: "closed with" in caplog.text, within=20)  # of a thread that comes late
    texts = [*said(), repr(writer), str(writer.stats()), repr(writer.__getstate__())]
    for secret in (KEY, SECRET):
        assert not [data for data in kept if secret.encode() in data]
        assert not [text for text in texts if secret in text]
    assert re.search(r"closed with \d+ bytes not stored; they are in ", "\n".join(texts))


# ---- side files


def test_side_files_of_a_writer_go_through_its_spool_and_its_flush_waits_for_them(behind_proxy, proxy):
    with make(behind_proxy) as writer:
        proxy.fault = "503"
        sinks.put_file(behind_proxy.url, "00001/default/tensors.tsv", b"1\t2\n", behind_proxy.options)
        assert not writer.flush(0.5)
        proxy.fault = None
        assert writer.flush(20)
        assert behind_proxy.objects()["00001/default/tensors.tsv"] == b"1\t2\n"


def test_embeddings_are_in_the_store_when_flush_returns_and_later_sessions_keep_them(s3):
    for step in (1, 2):
        with make(s3) as writer:
            writer.add_embedding(np.eye(3), metadata=["a", "b", "c"], global_step=step, tag="points")
            assert writer.flush(30)
            found = s3.objects()
            assert found[f"0000{step}/points/tensors.tsv"].count(b"\n") == 3
            assert found["projector_config.pbtxt"].count(b"tensor_path") == step


def test_an_embedding_does_not_hold_up_scalars_while_the_store_hangs(behind_proxy, proxy, tmp_path):
    with make(behind_proxy, flush_secs=0.05) as writer:
        proxy.fault = "hang"
        writer.add_embedding(np.eye(3), global_step=1)
        write(writer, 0, 100)
        wait_until(lambda: b"loss" in spooled(behind_proxy), within=20)
        proxy.fault = None
        wait_until(lambda: writer.flush(5), within=60)
        assert behind_proxy.objects()["00001/default/tensors.tsv"].count(b"\n") == 3
        assert steps(behind_proxy.download(tmp_path / "seen"), "loss") == list(range(100))


def spooled(place):
    return b"".join(path.read_bytes() for path in place.spool.rglob("*tfevents*"))


def test_a_side_file_without_a_writer_is_put_at_once(s3):
    sinks.put_file(s3.url, "projector_config.pbtxt", b"x", s3.options)
    assert s3.objects() == {"projector_config.pbtxt": b"x"}


def test_a_side_file_of_a_wrong_bucket_is_an_error(light_s3):
    with pytest.raises(OSError, match=r"cannot be stored: FileNotFoundError: .*: 's3://no-such-bucket/a\.txt'"):
        sinks.put_file("s3://no-such-bucket", "a.txt", b"x", light_s3.options)


# ---- values that the spool could not keep


def test_scalars_are_thinned_and_arrays_left_out_when_the_spool_is_nearly_full(
    behind_proxy, proxy, tmp_path, monkeypatch
):
    from tbwriter.sinks import _thinning

    writer = make(behind_proxy)
    proxy.fault = "503"
    monkeypatch.setattr(_thinning.disk, "limit", 40_000)
    for begin in range(0, 5000, 50):
        for step in range(begin, begin + 50):
            writer.add_metrics({"loss": float(step), "rate": 0.1, "norm": 1.0}, step)
        writer.add_image("image", np.random.default_rng(begin).integers(0, 255, (3, 40, 40), np.uint8), begin)
        writer.add_scalars("sub", {"key": 1.0}, begin)
        writer.flush(0.0)
    wait_until(lambda: writer.stats().queued == 0, within=20)
    monkeypatch.setattr(_thinning.disk, "limit", 1 << 30)
    assert sum(path.stat().st_size for path in behind_proxy.spool.rglob("*tfevents*")) < 40_000
    proxy.fault = None
    write(writer, 5000, 5010)
    assert writer.flush(30)
    write(writer, 5010, 5020)
    writer.close()
    seen = behind_proxy.download(tmp_path / "seen")
    kept = steps(seen, "loss")
    assert kept == sorted(set(kept))
    assert kept[-20:] == list(range(5000, 5020))
    assert len([step for step in kept if 2500 <= step < 5000]) >= 10
    # Each value is counted once: stored, the writer's own curve of what is missing too, or dropped.
    stored = len(values(seen)) + len(values(seen / "sub_key"))
    own = len(scalars(seen, "tbwriter/dropped"))
    assert own > 0
    stats = writer.stats()
    assert (stats.queued, stats.written) == (0, stored)
    assert stats.written - own + stats.dropped == 3 * 5000 + 100 + 100 + 20
    assert stats.dropped > 12_000
