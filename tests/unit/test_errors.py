"""Errors cross processes: a pool hands a worker's error to its parent by pickling it."""

import pickle

import pytest

from tbwriter import (
    CorruptRecordError,
    RecordTooLargeError,
    SegmentLostError,
    SinkError,
    TruncatedRecordError,
    WriterClosedError,
)


@pytest.mark.parametrize(
    "error",
    [
        WriterClosedError(),
        CorruptRecordError("damaged", 17),
        TruncatedRecordError("cut off", 17),
        SegmentLostError("deleted", 5),
        RecordTooLargeError("too large", 5),
        SinkError(28, "no space"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_pickled_error_is_the_same(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
