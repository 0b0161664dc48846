"""Whatever array comes: it is refused at the call, by tag, or it is stored. Nothing fails later, in the worker."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tbwriter._summary import (
    Audio,
    BoxedImage,
    Embedding,
    Histogram,
    HistogramRaw,
    Images,
    PrCurve,
    PrCurveRaw,
    Tensor,
    Video,
    decode,
    event,
    mesh,
)

pytest.importorskip("PIL.Image")

TAG = "the/tag"

dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(),
    hnp.unsigned_integer_dtypes(),
    hnp.floating_dtypes(sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(sizes=(64, 128)),
    hnp.unicode_string_dtypes(max_len=3),
    hnp.datetime64_dtypes(),
)
# Sides of 1 to 4 are also what channels and coordinates are.
shapes = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)
objects = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.none(),
    st.text(max_size=2),
)
arrays = st.one_of(
    dtypes.flatmap(lambda dtype: hnp.arrays(dtype, shapes)),
    objects.flatmap(lambda one: hnp.arrays(object, shapes, elements=st.sampled_from([one, 1, 0.5]))),
)


few = settings(max_examples=50)  # what an example costs is mostly drawing arrays


def check(make):
    """Check that `make` raises an error that names the tag, or gives summaries that can be stored and read."""
    try:
        summaries = make()
    except (TypeError, ValueError) as exc:
        assert TAG in str(exc)  # noqa: PT017 (most arrays are refused)
        return
    for summary in summaries:
        assert summary.nbytes >= 0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = summary.values(True)
        for value in decode(event(values, 1, 1.5), {}).values:
            assert value.data is not None


@few
@given(arrays, st.sampled_from(["CHW", "HWC", "HW", "NCHW", "NHWC"]))
def test_images(array, dataformats):
    check(lambda: [Images.of(TAG, array, dataformats, copy=True)])


@few
@given(arrays, arrays)
def test_boxes(image, boxes):
    check(lambda: [BoxedImage.of(TAG, image, boxes, "CHW", labels=None, rescale=1, copy=True)])


@few
@given(arrays, st.sampled_from(["NTCHW", "THWC", "THW"]))
def test_videos(array, dataformats):
    check(lambda: [Video.of(TAG, array, dataformats, fps=4, copy=True)])


@few
@given(arrays)
def test_sounds(array):
    check(lambda: [Audio.of(TAG, array, sample_rate=8000, copy=True, told=set())])


@few
@given(arrays, arrays, st.none() | arrays)
def test_pr_curves(labels, predictions, weights):
    check(lambda: [PrCurve.of(TAG, labels, predictions, num_thresholds=5, weights=weights, copy=True, told=set())])


@few
@given(dtypes.flatmap(lambda dtype: st.tuples(*[hnp.arrays(dtype, (3, 2))] * 2)))
def test_pr_curves_of_one_shape(pair):
    check(lambda: [PrCurve.of(TAG, *pair, num_thresholds=5, weights=pair[1], copy=True, told=set())])


@few
@given(st.lists(arrays, min_size=6, max_size=6))
def test_raw_pr_curves(rows):
    check(lambda: [PrCurveRaw.of(TAG, rows)])


@few
@given(arrays, st.none() | arrays, st.none() | arrays)
def test_meshes(vertices, colors, faces):
    check(lambda: mesh(TAG, vertices, colors, faces, None, copy=True))


@few
@given(arrays)
def test_tensors(array):
    check(lambda: [Tensor.of(TAG, array, copy=True)])


@few
@given(arrays)
def test_histograms(array):
    check(lambda: [Histogram.of(TAG, array, bins="tensorflow", max_bins=None, copy=True, told=set())])


@few
@given(arrays, arrays, st.floats(), st.floats())
def test_raw_histograms(limits, counts, minimum, maximum):
    check(
        lambda: [
            HistogramRaw.of(TAG, minimum=minimum, maximum=maximum, unshown=(), limits=limits, counts=counts, told=set())
        ]
    )


@few
@given(
    hnp.arrays(np.float64, 3, unique=True).map(np.sort),
    hnp.arrays(np.int8, 3),
    st.floats(),
    st.floats(),
)
def test_raw_histograms_that_nearly_fit(limits, counts, minimum, maximum):
    check(
        lambda: [
            HistogramRaw.of(TAG, minimum=minimum, maximum=maximum, unshown=(), limits=limits, counts=counts, told=set())
        ]
    )


@few
@given(arrays, st.none() | arrays)
def test_embeddings(points, images):
    try:
        embedding = Embedding.of(TAG, 1, points, labels=None, header=None, images=images, copy=True)
    except (TypeError, ValueError) as exc:
        assert TAG in str(exc)  # noqa: PT017
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert all(data for _, data in embedding.files())
        assert embedding.config(b"")
