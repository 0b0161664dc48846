"""Sphinx builds the pages without a warning, and a browser shows them: no script error, nothing beyond the edge."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
import zlib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from needs import cannot_run

pytest.importorskip("sphinx")
pytest.importorskip("markdown_it")
pytest.importorskip("playwright")

from pages import ROOT
from playwright.sync_api import sync_playwright

import msbridge
import tbwriter

# Hangs end here; a build takes 10 s where nothing else runs.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
BUILD_SECS = 240
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
SIZES = {"desk": (1440, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the pages once."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-d", folder / "doctrees", "docs", folder / "html"],
        cwd=ROOT, env={**os.environ, "GLOG_v": "3", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=BUILD_SECS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def address(site):
    """Serve them, as a browser keeps scripts of files on a short leash."""

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, directory=str(site), **kwargs)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        cannot_run("Chromium is not installed")
    with sync_playwright() as api:
        # A sandbox needs rights that containers lack.
        browser = api.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_every_page_is_built(site):
    assert (
        sorted(path.stem for path in site.glob("*.html") if path.stem not in {"genindex", "py-modindex", "search"})
        == PAGES
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_browser_shows_every_page_whole(browser, address, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
    page.on(
        "response",
        lambda response: (
            errors.append(f"{page.url}: {response.url} {response.status}") if response.status >= 400 else None
        ),
    )
    for name in PAGES:
        page.goto(f"{address}/{name}.html")
        if page.evaluate("document.documentElement.scrollWidth") > width:
            errors.append(f"{page.url} is wider than the window")
        errors += page.evaluate("[...document.images].filter(i => !i.naturalWidth).map(i => `${i.src} is not drawn`)")
    context.close()
    assert not errors


def test_the_search_finds_a_method(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/search.html?q=add_scalar_series")
    page.locator("#search-results li a", has_text="add_scalar_series").first.wait_for(timeout=20_000)
    page.close()


def public_names():
    """Return {module.name} of every `__all__` of a module without an underscore, read and not imported."""
    found = set()
    for package in (tbwriter, msbridge):
        root = Path(package.__file__).parent
        for path in root.rglob("*.py"):
            parts = [package.__name__, *path.relative_to(root).with_suffix("").parts]
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if any(part.startswith("_") for part in parts):
                continue
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                    names = ast.literal_eval(node.value)
                    found |= {".".join([*parts, name]) for name in names if not name.startswith("__")}
    return found


def test_the_reference_has_every_public_name(site):
    # Sphinx's inventory, version 2: four lines of text, then compressed a line for each object, its name first.
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    documented = {line.split()[0] for line in inventory.splitlines()}
    public = public_names()
    assert {"tbwriter.sinks.FileSink", "msbridge.mindformers.install", "tbwriter.SummaryWriter"} <= public
    # What a package hands on from one of its modules is described where users get it.
    shown = {_object(name) for name in public & documented if not name.startswith("msbridge.mindformers")}
    missing = {
        name for name in public - documented if name.startswith("msbridge.mindformers") or _object(name) not in shown
    }
    assert not missing


def _object(name):
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    return found if isinstance(found, type) or callable(found) else id(found)
