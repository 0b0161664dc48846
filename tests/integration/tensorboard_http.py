"""Run the real `tensorboard` program and ask it over HTTP what it shows, with either of its readers."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

from waiting import wait_until

LOAD_FAST = {"data-server": "true", "python": "false"}
"""The reader's name here, and the value of --load_fast that chooses it."""

# Without sampling, so that a test can count points.
_SAMPLES = "scalars=1000000,histograms=1000000,images=1000000,text=1000000"
# Importing TensorBoard takes 3 s on an idle core.
_START_SECS = 90
# A reload each second, and the machine may be busy.
_SHOWN_SECS = 60
_LOOK_EVERY_SECS = 0.1


class TensorBoard:
    """A running TensorBoard; each directory below `logdir`, a path or a URL, is a run, and `url` is its page."""

    def __init__(self, reader, logdir, env=None):
        self.reader = reader
        self.logdir = logdir if "://" in str(logdir) else Path(logdir)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir)),
                *("--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"),
                f"--load_fast={LOAD_FAST[reader]}",
                f"--samples_per_plugin={_SAMPLES}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # the data server is its child and must end with it
        )
        try:
            self._port = int(wait_until(self._announced_port, within=_START_SECS, what=self._told))
            self.url = f"http://127.0.0.1:{self._port}"
            provider = self.get("/data/environment")["debug"]["data_provider"]
            want = "GrpcDataProvider" if reader == "data-server" else "MultiplexerDataProvider"
            assert provider.startswith(want), provider
        except BaseException:
            self.stop()
            raise

    def _told(self):
        self._output.seek(0)
        return f"TensorBoard ({self.reader}): {self._output.read().decode(errors='replace')}"

    def _announced_port(self):
        assert self._process.poll() is None, self._told()
        found = re.search(r"TensorBoard \S+ at http://127\.0\.0\.1:(\d+)/", self._told())
        return found and found[1]

    def stop(self):
        """End the program and its data server."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()

    # ---- questions

    def get(self, path, **query):
        """Return the JSON of an answer, or None where the answer is 404: unknown run or tag."""
        status, body = self.get_bytes(path, **query)
        if status == 404:
            return None
        assert status == 200, (path, query, status, body[:500])
        return json.loads(body)

    def get_bytes(self, path, **query):
        """Return status and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def reloaded(self):
        """Say whether the log directory was looked at, for one that cannot be."""
        told = self._told()
        return bool(self.runs()) or "is not a directory" in told or "is not a prefix" in told

    def runs(self):
        """Return the names of all runs."""
        return self.get("/data/runs")

    def tags(self, plugin, run):
        """Return the tags of one run that a plugin shows, sorted."""
        return sorted(self.get(f"/data/plugin/{plugin}/tags").get(run, ()))

    def descriptions(self, run):
        """Return {tag: (display name, description as HTML)} of the scalars of one run."""
        told = self.get("/data/plugin/scalars/tags").get(run, {})
        return {tag: (names["displayName"], names["description"]) for tag, names in told.items()}

    def scalars(self, run, tag):
        """Return [(step, value)]; NaN as the text "nan", which equals itself."""
        points = self.get("/data/plugin/scalars/scalars", run=run, tag=tag) or []
        return [(step, "nan" if value == "NaN" else float(value)) for _, step, value in points]

    def curves(self, run):
        """Return {tag: [(step, value)]} of one run."""
        return {tag: self.scalars(run, tag) for tag in self.tags("scalars", run)}

    def histograms(self, run, tag):
        """Return [(step, [[left, right, count], ...])]."""
        shown = self.get("/data/plugin/histograms/histograms", run=run, tag=tag) or []
        return [(step, buckets) for _, step, buckets in shown]

    def texts(self, run, tag):
        """Return [(step, HTML)]."""
        shown = self.get("/data/plugin/text/text", run=run, tag=tag) or []
        return [(one["step"], one["text"]) for one in shown]

    def images(self, run, tag, sample=0):
        """Return [(step, encoded image)]."""
        shown = self.get("/data/plugin/images/images", run=run, tag=tag, sample=sample) or []
        route = "/data/plugin/images/individualImage"
        return [(one["step"], self.get_bytes(f"{route}?{one['query']}")[1]) for one in shown]

    # ---- waiting

    def shows(self, question, want, within=_SHOWN_SECS):
        """Wait until `question()` answers `want`.

        Raises:
            AssertionError: it does not; the message has the last answer.
        """
        got = []

        def answered():
            got[:] = [question()]
            return got[0] == want

        def difference():
            return f"TensorBoard ({self.reader}) shows {_short(got[0])}, want {_short(want)}"

        wait_until(answered, within=within, what=difference, every=_LOOK_EVERY_SECS)

    def shows_curves(self, run, want):
        """Wait until the scalars of `run` are exactly `want`, {tag: [(step, value)]}."""
        self.shows(lambda: self.curves(run), want)


def _short(answer):
    text = repr(answer)
    if isinstance(answer, dict):
        text = f"{ {key: len(value) for key, value in answer.items()} } {text}"
    return text if len(text) < 1500 else f"{text[:750]} ... {text[-750:]}"
