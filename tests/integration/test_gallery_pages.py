"""A real browser opens each dashboard of the gallery: its cards are drawn, with no script error and no internet.

`make gallery` runs this with the environment variable PICTURES, the directory where what the browser shows is left.
"""

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from needs import cannot_run
from PIL import Image
from waiting import wait_until

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.readers, pytest.mark.slow]

SHOWN_SECS = 60
FIRST_GROUP = "tf-category-paginated-view:first-of-type"
SIZE = {"width": 1600, "height": 900}
TRIALS = [f"trials/{number}" for number in range(1, 5)]


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        cannot_run("Chromium is not installed")
    # A sandbox needs rights that containers lack; without a GPU, WebGL is drawn by SwiftShader.
    options = ["--no-sandbox", "--enable-unsafe-swiftshader"]
    playwright.expect.set_options(timeout=SHOWN_SECS * 1000)
    with playwright.sync_playwright() as api:
        browser = api.chromium.launch(executable_path=chromium, args=options)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport=SIZE, timezone_id="UTC", locale="en-GB", reduced_motion="reduce")
    yield context.new_page()
    context.close()


def count(where, css, number):
    """Wait until so many elements are there; shadow trees are looked through."""
    playwright.expect(where.locator(css)).to_have_count(number)


def text(where, css, want):
    """Wait until the first of the elements contains a text."""
    playwright.expect(where.locator(css).first).to_contain_text(want)


def titles(page, *want, tags=None):
    """Wait until the first group of cards has these titles, in this order; `tags` is a regex that chooses them."""
    if tags is not None:
        page.locator("tf-tag-filterer input").fill(tags)
    playwright.expect(page.locator(f"{FIRST_GROUP} .heading-label.name")).to_have_text(list(want))


def drawn(page, css):
    """Wait until each of the elements shows more than an even ground with a few lines."""
    playwright.expect(page.locator(css).first).to_be_visible()
    for element in page.locator(css).all():
        element.scroll_into_view_if_needed()
        wait_until(
            lambda element=element: colors(page, element) > 16, within=SHOWN_SECS, what=f"{css} drawn", every=0.2
        )


def colors(page, element):
    with Image.open(io.BytesIO(page.screenshot(clip=element.bounding_box()))) as image:
        return len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0))


def time_series(page):
    page.get_by_role("button", name="Settings").click()  # closes the panel
    page.locator("input[placeholder^='Filter tags']").fill("^accuracy$|weights|boxes|layer")
    page.keyboard.press("Escape")  # closes the suggestions
    for card, title in (("scalar-card", "accuracy"), ("histogram-card", "hidden/weights"), ("image-card", "boxes")):
        text(page, card, title)
    drawn(page, "scalar-card >> nth=0 >> line-chart")


def scalars(page):
    all_ = "accuracy", "train/loss", "trial/accuracy", "val/accuracy", "val/accuracy_high", "val/accuracy_low"
    titles(page, *all_, tags="loss|accuracy")
    drawn(page, f"{FIRST_GROUP} vz-line-chart2")


def images(page):
    titles(
        page, *(f"images/{name}" for name in ("boxes", "confusion", "layer", "learning", *["samples"] * 8)), tags="."
    )


def audio(page):
    titles(page, "tones/accuracy", "tones/loss", tags=".")
    for player in page.locator("audio").all():
        wait_until(
            lambda player=player: player.evaluate("one => one.duration") == 2, within=SHOWN_SECS, what="a sound of 2 s"
        )


def texts(page):
    titles(page, "report/text_summary", "split/text_summary", tags=".")
    text(page, "tf-text-loader h1", "Handwritten digits")


def histograms(page):
    count(page, "vz-histogram-timeseries g.histogram", 20)


def distributions(page):
    drawn(page, "vz-distribution-chart")


def pr_curves(page):
    titles(page, "pr/digit 1", "pr/digit 8", tags=".")
    drawn(page, f"{FIRST_GROUP} vz-line-chart2")


def mesh(page):
    count(page, f"{FIRST_GROUP} tf-mesh-loader", 2)
    drawn(page, f"{FIRST_GROUP} canvas")


def hparams(page):
    cells = page.locator("tf-hparams-table-view vaadin-grid-cell-content:visible")
    for trial in TRIALS:
        playwright.expect(cells.filter(has_text=trial)).to_have_count(1)


def custom_scalars(page):
    titles(page, "loss and accuracy")
    drawn(page, "tf-custom-scalar-multi-line-chart-card vz-line-chart2")
    drawn(page, "tf-custom-scalar-margin-chart-card vz-line-chart2")


def graphs(page):
    scene = page.locator("tf-graph-scene")
    for node in ("hidden", "output"):
        scene.locator(f'g.node[data-name="{node}"] .nodecolortarget').first.dispatch_event("dblclick")  # unfolds it
        text(scene, f'g.node[data-name="{node}/matmul"]', "matmul")
    page.get_by_text("Fit to screen").click()


def projector(page):
    frame = page.frame_locator("iframe").frame_locator("iframe")
    text(frame, "body", "Points: 360")
    page.mouse.click(345, 850)  # ends the rotation, beside all points


DASHBOARDS = {
    "timeseries": time_series,
    "scalars": scalars,
    "images": images,
    "audio": audio,
    "text": texts,
    "histograms": histograms,
    "distributions": distributions,
    "pr_curves": pr_curves,
    "mesh": mesh,
    "hparams": hparams,
    "custom_scalars": custom_scalars,
    "graphs": graphs,
    "projector": projector,
}


@pytest.mark.parametrize("gallery", [None], ids=["one-file"], indirect=True)
@pytest.mark.parametrize("shown_gallery", ["data-server"], indirect=True)
@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_a_browser_draws_the_dashboard(shown_gallery, page, dashboard):
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    ours = (shown_gallery.url, "data:", "blob:")
    page.on("request", lambda asked: None if asked.url.startswith(ours) else faults.append(asked.url))
    page.goto(f"{shown_gallery.url}/#{dashboard}")
    try:
        DASHBOARDS[dashboard](page)
    finally:
        if directory := os.environ.get("PICTURES"):
            take_picture(page, Path(directory) / f"{dashboard}.png")
    assert faults == []


def take_picture(page, path):
    """Save what the page shows once it moves no more (a GIF always does), without the path of the directory."""
    page.locator("#data-location").evaluate_all("all => all.forEach(one => one.remove())")
    page.evaluate("window.scrollTo(0, 0)")
    before = b""
    for _ in range(20):
        shown = page.screenshot()
        if shown == before:
            break
        before = shown
        page.wait_for_timeout(200)
    with Image.open(io.BytesIO(shown)) as image:
        image.convert("RGB").quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)
