"""Whatever is written to a URL is listed and read back by the same URL, and by the tools, on every kind of storage."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_object_sinks import OtherStore, driver
from waiting import wait_until

import tbwriter
from tbwriter import SinkError, SummaryWriter, _tree
from tbwriter.sinks import _store, without_user

_numbers = itertools.count()
# What URLs, shells and drivers read as something else.
ODD = ["a b", "%", "%20", "100%25", "#", "a#b", "?", "a?b", "a#1?generation=2", "&=+:;,@!$'()~", "[x]{y}"]
ODD += ["損失-ü-🔥", "*", "^`|", "a::b", '"<>', "-", "...", ".a", "tfevents"]
SIGNS = st.sampled_from(" %#?&=+:;,@!$'()~[]{}*^`|\"<>._-")
CHARACTERS = st.one_of(SIGNS, st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
NAMES = st.text(CHARACTERS, min_size=1, max_size=12).filter(lambda name: name not in {".", ".."} and "\\" not in name)


def check(url, options, spool, sub="sub#a?b%20"):
    """Write twice, with a sub-run, and read it all back."""
    for step in (1, 2):
        with SummaryWriter(url, storage_options=options, spool_dir=spool) as writer:
            writer.add_scalar("loss", float(step), step)
            writer.add_scalars(sub, {"key": float(step)}, step)
            assert writer.flush(30), writer.stats().last_error
            place = writer.log_dir
    events = list(tbwriter.read_events(url, storage_options=options))
    assert [event.step for event in events for value in event.values if value.tag == "loss"] == [1, 2]
    report = tbwriter.verify(url, storage_options=options)
    assert (report.ok, len(report.files)) == (True, 2)
    runs = {found.run: len(found.event_files) for found in _tree.walk(place, options) if found.event_files}
    assert runs == {".": 2, f"{sub}_key": 2}
    (first, _) = report.files
    assert tbwriter.verify(first.path, storage_options=options).files == (first,)


def check_all(base, options, spool, size=4):
    """Every odd name, in paths of `size` of them: each operation of a real store takes its time."""
    for begin in range(0, len(ODD), size):
        check("/".join([base, *ODD[begin : begin + size]]), options, spool)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(NAMES, min_size=1, max_size=3))
def test_any_name_in_memory(tmp_path, parts):
    check(f"memory://any{next(_numbers)}/{'/'.join(parts)}", None, tmp_path)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(NAMES.filter(lambda name: len(name.encode()) < 200), min_size=1, max_size=3))
def test_any_name_in_a_directory(tmp_path, parts):
    check(f"{tmp_path}/any{next(_numbers)}/{'/'.join(parts)}", None, None)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(NAMES, min_size=1, max_size=2), slashes=st.integers(1, 3))
def test_any_name_in_s3(light_s3, parts, slashes):
    url = ("/" * slashes).join([f"{light_s3.url}.{next(_numbers)}", *parts]) + "/" * (slashes - 1)
    check(url, light_s3.options, light_s3.spool)


def test_a_url_that_drivers_cut_short_is_refused(light_s3):
    """That of S3 leaves out what follows, and all that was written would be one object."""
    with pytest.raises(SinkError, match=r"log_dir '.*/a\?versionId=1': .* takes this URL for another one"):
        SummaryWriter(f"{light_s3.url}/a?versionId=1", storage_options=light_s3.options, spool_dir=light_s3.spool)
    with SummaryWriter(light_s3.url, storage_options=light_s3.options, spool_dir=light_s3.spool) as writer:
        writer.add_scalars("a?versionId=1", {"key": 1.0}, 1)
        writer.add_scalar("loss", 1.0, 1)
        assert writer.flush(30)
        assert (writer.stats().written, writer.stats().dropped) == (1, 1)


# What no user's URL may have, and a tag may.
HOSTILE = ["a?b", "a\nb", "a?b#c", "..", "a\x7f", "a?versionId=1", "x" * 300]


def keeps_on(url, options, spool):
    """Whatever becomes of a sub-run of such a name, the run goes on."""
    with SummaryWriter(url, storage_options=options, spool_dir=spool, flush_secs=0.05) as writer:
        for step, name in enumerate(HOSTILE):
            writer.add_scalars(name, {"key": 1.0}, step)
            writer.add_scalar("loss", 1.0, step)
            writer.flush(0.2)
        wait_until(lambda: writer.stats().written >= len(HOSTILE), within=30)
        writer.add_scalar("loss", 1.0, len(HOSTILE))
        wait_until(lambda: writer.stats().written > len(HOSTILE), within=30)
    events = list(tbwriter.read_events(url, storage_options=options))
    assert [event.step for event in events if event.values] == list(range(len(HOSTILE) + 1))
    # And every tool that finds it reads it by the path that it found.
    found = [file.path for run in _tree.walk(url, options) for file in run.event_files]
    assert len(found) > 3
    assert all(tbwriter.verify(path, storage_options=options).ok for path in found)


def test_a_sub_run_of_any_name_leaves_the_run_alone(light_s3):
    keeps_on(light_s3.url, light_s3.options, light_s3.spool)


def test_a_sub_run_of_any_name_leaves_the_run_alone_in_memory(tmp_path):
    keeps_on(f"memory://hostile{next(_numbers)}", None, None)


def test_odd_names_in_real_s3(s3):
    check_all(s3.url, s3.options, s3.spool)


def test_odd_names_in_google(fakegcs, tmp_path):
    driver("gcsfs")
    check_all(f"gs://bucket/odd{next(_numbers)}", {"endpoint_url": fakegcs.url, "token": "anon"}, tmp_path, 11)


def test_odd_names_in_azure(azurite, tmp_path):
    driver("adlfs")
    check_all(f"az://bucket/odd{next(_numbers)}", {"connection_string": azurite.connection}, tmp_path)


def test_odd_names_in_another_store(tmp_path):
    check_all(f"storage-test://odd{next(_numbers)}", None, tmp_path)
    OtherStore.store.clear()


def test_what_a_url_says_of_its_server_goes_to_the_driver():
    store = _store.store_for("webhdfs://me@name-node:9870/runs/a b", None)
    assert store.options == {"host": "name-node", "port": 9870, "user": "me"}
    assert store.path("webhdfs://me@name-node:9870/runs/a b") == "/runs/a b"
    assert _store.store_for("webhdfs://other:9870/runs", None) is not store


def test_azures_long_urls_name_container_and_account():
    driver("adlfs")
    url = "abfss://container@account.dfs.core.windows.net/runs/a"
    store = _store.store_for(url, {"anon": True})
    assert store.options["account_name"] == "account"
    assert store.path(url) == "container/runs/a"
    assert without_user(url) == url  # as the spool keeps it for a later run
