"""Values that nobody means, for every argument of every method: they are refused in words, or stored."""

import numpy as np


class Raising:
    """An object of which every use raises."""

    def _raise(self, *args, **kwargs):
        raise RuntimeError("no")

    __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = __bool__ = _raise
    __array__ = __eq__ = __ne__ = __lt__ = __format__ = _raise
    __hash__ = object.__hash__
    shape = dtype = property(_raise)


class RaisingArray:
    """A tensor whose memory is gone."""

    shape, dtype = (2,), "float32"

    def asnumpy(self):
        raise RuntimeError("gone")


class RaisingText(str):
    """Text that cannot be shown."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


def _deep():
    value = []
    for _ in range(50_000):
        value = [value]
    return value


def _cyclic():
    value = []
    value.append(value)
    return value


HOSTILE = {
    "none": None,
    "int": 5,
    "zero": 0,
    "negative": -1,
    "float": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "huge float": 1e300,
    "tiny float": 1e-300,
    "huge int": 10**5000,
    "int64": 2**63,
    "bool": True,
    "complex": 1j,
    "text": "text",
    "empty text": "",
    "surrogate": "\ud800",
    "nul": "a\0b",
    "text of raising str": RaisingText("x"),
    "bytes": b"bytes",
    "bytearray": bytearray(b"bytes"),
    "object": object(),
    "class": dict,
    "function": len,
    "raising": Raising(),
    "raising in a list": [Raising()],
    "raising in a dict": {"a": Raising()},
    "raising tensor": RaisingArray(),
    "raising tensors": [RaisingArray(), RaisingArray()],
    "empty list": [],
    "empty dict": {},
    "dict": {"a": 5},
    "dict of int": {5: 5},
    "dict of lists": {"a": [1, 2]},
    "dict of dicts": {"a": {"b": 5}},
    "set": {1, 2},
    "generator": (number for number in range(3)),
    "list of None": [None, None],
    "list of text": ["a", "b"],
    "list of complex": [1j, 2j],
    "list of objects": [object()],
    "ragged": [[1.0], [1.0, 2.0]],
    "deep": _deep(),
    "cyclic": _cyclic(),
    "array of rank 0": np.array(5),
    "text array of rank 0": np.array("text"),
    "empty array": np.zeros(0),
    "array of objects": np.array([object()]),
    "array of text": np.array(["a", "b"]),
    "array of times": np.zeros(2, "M8[s]"),
    "array of complex": np.zeros(2, complex),
    "array of structs": np.zeros(2, [("a", "f4")]),
    "masked array": np.ma.array([1, 2], mask=[0, 1]),
    "masked": np.ma.masked,
    "rank 6": np.zeros((1,) * 6),
    "time": np.datetime64("2026-01-01"),
}
