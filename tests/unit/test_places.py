"""Any text as a place: it is one and stays the same when it is given again, or it is refused by its argument's name."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbwriter import sinks

SCHEMES = st.sampled_from(
    ["s3", "S3", "gs", "az", "abfss", "sftp", "smb", "webhdfs", "hdfs", "memory", "file", "ftp", "x"]
)
PIECES = st.sampled_from(
    ["/", "//", ":", "::", "://", "@", "?", "#", "%20", "..", ".", "~", "[", "]", "\\", "\0", "\n", " "]
)
TEXT = st.lists(
    st.one_of(PIECES, st.text(max_size=5), st.sampled_from(["host", "localhost", "a:1", "\ud800"])), max_size=8
)


@pytest.fixture(autouse=True, scope="module")
def without_schemes_of_other_tests():
    """A refusal names every scheme there is, and other tests of this process have registered hundreds."""
    before = dict(sinks._backends)
    sinks._backends.clear()
    sinks._backends["memory"] = before["memory"]
    yield
    sinks._backends.update(before)


def told(text):
    """Return the place of a text, and the words in which it is refused; one of them is None."""
    try:
        return sinks.normalise(text), None
    except ValueError as exc:
        return None, str(exc)


@settings(max_examples=1000)
@given(scheme=st.one_of(st.just(""), SCHEMES.map("{}:".format), SCHEMES.map("{}://".format)), rest=TEXT)
def test_any_text_is_a_place_that_stays_the_same_or_is_refused_by_name(scheme, rest):
    place, refusal = told(scheme + "".join(rest))
    if place is None:
        assert refusal.startswith("log_dir ")
        assert len(refusal) < 1000
        return
    assert sinks.normalise(place) == place
    assert os.path.isabs(place) or "://" in place
    # What is written below it is below it for whoever reads it.
    assert sinks.normalise(f"{place.rstrip('/')}/a//b/") == sinks.join(place, "a", "b")


@given(user=st.text(), password=st.text())
def test_a_password_is_in_no_refusal(user, password):
    for url in ("sftp://{}@/run", "sftp://{}@host:x/run", "smb://{}@host", "x://{}@host/run", "memory://{}@\n/run"):
        _, refusal = told(url.format(f"{user}:{password}correct-horse"))
        assert "correct-horse" not in (refusal or "")


class Foreign:
    """A path or URL object of another library."""

    def __init__(self, text, **attributes):
        self.text = text
        vars(self).update(attributes)

    def __str__(self):
        return self.text


class Cached(Foreign):
    """As of cloudpathlib: its path is that of a copy on this machine."""

    def __fspath__(self):
        pytest.fail("this downloads, and what is written there is never uploaded")


@pytest.mark.parametrize(
    "place",
    [
        Cached("memory://run"),
        Foreign("memory://run", protocol="memory"),  # universal_pathlib
        Foreign("memory://run", protocol="memory", storage_options={}),
        Foreign("memory://run", scheme="memory"),  # yarl, pydantic
    ],
)
def test_an_object_that_stands_for_a_url_is_that_url(place):
    assert sinks.normalise(place) == "memory://run"


def test_an_object_with_credentials_of_its_own_is_refused():
    place = Foreign("memory://run", protocol="memory", storage_options={"key": "secret"})
    with pytest.raises(ValueError, match=r"Foreign with storage_options of its own.*pass str\(\) of it") as refused:
        sinks.normalise(place, "log_dir")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("place", [Foreign("memory://run"), Foreign("/run", scheme="file"), 3, None])
def test_an_object_that_stands_for_nothing_is_refused(place):
    with pytest.raises(TypeError, match="log_dir must be a path or a URL, got"):
        sinks.normalise(place, "log_dir")
