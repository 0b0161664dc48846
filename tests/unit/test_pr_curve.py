import logging

import duck
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbwriter._pb import plugins_pb2 as plugins
from tbwriter._summary import PrCurve, PrCurveRaw


def curve(labels, predictions, num_thresholds=5, weights=None, told=None, copy=True):
    told = set() if told is None else told
    return PrCurve.of("pr", labels, predictions, num_thresholds=num_thresholds, weights=weights, copy=copy, told=told)


def rows(summary):
    (value,) = summary.values(True)
    shape = [dim.size for dim in value.tensor.tensor_shape.dim]
    content = plugins.PrCurvePluginData.FromString(value.metadata.plugin_data.content)
    assert shape == [6, content.num_thresholds]
    return np.frombuffer(value.tensor.tensor_content, "<f4").reshape(shape)


def test_a_curve_counts_at_each_threshold():
    tp, fp, tn, fn, precision, recall = rows(curve([True, True, False, False], [0.9, 0.3, 0.6, 0.1])).tolist()
    # Thresholds 0, 0.25, 0.5, 0.75, 1; at or above one means positive.
    assert tp == [2, 2, 1, 1, 0]
    assert fp == [2, 1, 1, 0, 0]
    assert tn == [0, 1, 1, 2, 2]
    assert fn == [0, 0, 1, 1, 2]
    assert precision == pytest.approx([0.5, 2 / 3, 0.5, 1, 0])
    assert recall == [1, 1, 0.5, 0.5, 0]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=1, max_size=50), st.sampled_from([2, 5, 11, 41]))
def test_a_curve_counts_what_its_definition_says(pairs, number):
    # Predictions between the thresholds, so that no rounding decides.
    labels = np.array([label for label, _ in pairs])
    predictions = (np.array([place for _, place in pairs]) % (number - 1) + 0.5) / (number - 1)
    got = rows(curve(labels, predictions, number))
    for index, threshold in enumerate(np.linspace(0, 1, number)):
        above = predictions >= threshold
        tp, fp = (labels & above).sum(), (~labels & above).sum()
        tn, fn = (~labels & ~above).sum(), (labels & ~above).sum()
        precision, recall = tp / max(1e-7, tp + fp), tp / max(1e-7, tp + fn)
        np.testing.assert_allclose(got[:, index], [tp, fp, tn, fn, precision, recall], rtol=1e-6)


@pytest.mark.parametrize("number", [2, 127, 128, 1000])
def test_any_number_of_thresholds_is_stored(number):
    assert rows(curve([True], [0.5], number)).shape == (6, number)


def test_weights_weigh():
    assert rows(curve([1, 0], [0.5, 0.5], 2, weights=[2.0, 3.0]))[:2, 0].tolist() == [2, 3]
    assert rows(curve([1, 0], [0.5, 0.5], 2, weights=2))[:2, 0].tolist() == [2, 2]


def test_a_weight_that_is_no_number_leaves_its_prediction_out():
    assert rows(curve([1, 1, 0], [0.5, 0.5, 0.5], 2, weights=[np.nan, 2.0, np.inf]))[:2, 0].tolist() == [2, 0]


@pytest.mark.parametrize("wrap", [duck.Asnumpy, duck.ArrayForm, np.ndarray.tolist])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_predictions_may_be_anything_with_numbers(wrap, dtype):
    labels, predictions = np.array([[1, 0], [1, 0]]), np.array([[0.9, 0.6], [0.3, 0.1]], dtype)
    assert rows(curve(wrap(labels), wrap(predictions)))[0].tolist() == [2, 2, 1, 1, 0]


def test_what_is_no_number_is_left_out_and_what_is_beyond_is_clipped_and_both_said_once(caplog):
    told = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            got = rows(curve([1, 1, 0, 0], [np.nan, 1.5, -0.5, 0.5], told=told))
    assert got[:2].tolist() == [[1, 1, 1, 1, 1], [2, 1, 1, 0, 0]]
    assert [record.getMessage() for record in caplog.records] == [
        (
            "PR curve 'pr': of 4 predictions 1 are left out, being no numbers, and 2 lie beyond 0 to 1 and are "
            "taken as 0 or 1. Said once for this tag"
        )
    ]


@pytest.mark.parametrize("predictions", [[], [np.nan, np.nan]])
def test_no_predictions_make_no_curve_and_no_error(predictions):
    assert list(curve([1] * len(predictions), predictions).values(True)) == []


def test_a_copy_does_not_change_with_the_array():
    labels, predictions = np.array([1.0]), np.array([0.5])
    waiting = curve(labels, predictions)
    labels[:] = predictions[:] = 0
    assert rows(waiting)[0].tolist() == [1, 1, 1, 0, 0]
    assert np.shares_memory(curve(labels, predictions, copy=False).predictions, predictions)


def test_other_shapes_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'pr': labels and predictions must have one shape, got "):
        curve([1, 0], [0.5])
    with pytest.raises(ValueError, match=r"^tag 'pr': weights are .*, want a number or the shape of labels, \(2,\)$"):
        curve([1, 0], [0.5, 0.5], weights=[1, 2, 3])


@pytest.mark.parametrize("labels", [[-1], [2], [255]])
def test_labels_beyond_0_and_1_are_refused_by_tag(labels):
    with pytest.raises(ValueError, match=r"^tag 'pr': labels must be True or False, or from 0 to 1, got "):
        curve(labels, [0.5])


def test_a_label_that_is_no_number_leaves_its_prediction_out_and_hides_no_wrong_one():
    assert rows(curve([1, np.nan], [0.5, 0.5], 2))[:2, 0].tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"^tag 'pr': labels must be True or False"):
        curve([np.nan, 2], [0.5, 0.5])


@pytest.mark.parametrize("weights", [1e39, -1e39, [3e38, 3e38], [np.nan, 1e39], np.finfo(np.float64).max])
def test_weights_whose_counts_would_be_infinite_are_refused_by_tag(weights):
    with pytest.raises(ValueError, match=r"^tag 'pr': weights must sum up within float32, got "):
        curve([1, 1], [0.5, 0.5], weights=weights)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((1, ValueError), (0, ValueError), (10**13, ValueError), (10**5000, ValueError)),
        *((2.5, TypeError), (1e13, TypeError), (True, TypeError), (np.float64(5), TypeError), ("5", TypeError)),
    ],
    ids=["1", "0", "many", "huge", "half", "whole float", "bool", "float64", "text"],
)
def test_a_number_of_thresholds_that_is_none_is_refused_by_tag(number, kind):
    with pytest.raises(kind, match=r"^tag 'pr': num_thresholds must be "):
        curve([1], [0.5], number)


def test_a_raw_curve_is_stored_as_it_is_with_as_many_thresholds_as_it_has():
    six = np.arange(18.0).reshape(6, 3)
    assert rows(PrCurveRaw.of("pr", list(six))).tolist() == six.tolist()
    assert rows(PrCurveRaw.of("pr", [duck.Asnumpy(row) for row in six])).tolist() == six.tolist()


def test_raw_rows_of_different_lengths_are_refused_by_tag():
    with pytest.raises(ValueError, match=r"^tag 'pr': the six rows of a curve must be of one length from 2 on, got "):
        PrCurveRaw.of("pr", [[1, 2]] * 5 + [[1]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
@pytest.mark.parametrize(
    "name", ["true_positive_counts", "false_positive_counts", "true_negative_counts", "false_negative_counts"]
)
def test_raw_counts_that_are_no_numbers_are_refused_by_name(name, bad):
    six = [[1.0, 2.0] for _ in range(6)]
    names = ["true_positive_counts", "false_positive_counts", "true_negative_counts", "false_negative_counts"]
    six[names.index(name)] = [bad, 1.0]
    with pytest.raises(ValueError, match=rf"^tag 'pr': {name} must be finite and within float32, got "):
        PrCurveRaw.of("pr", six)


def test_raw_precision_and_recall_may_be_0_by_0_and_nothing_infinite():
    six = [[1.0, 2.0]] * 4 + [[1.0, np.nan], [np.nan, np.nan]]
    np.testing.assert_equal(rows(PrCurveRaw.of("pr", six)), six)
    with pytest.raises(ValueError, match=r"^tag 'pr': recall must be finite"):
        PrCurveRaw.of("pr", [*six[:5], [np.inf, 1.0]])
