"""Values as frameworks hand them over, without the frameworks: what they have, what they lack, what kills."""

import numpy as np
import pytest


def _deadly(what):
    def call(*args, **kwargs):
        pytest.fail(f"{what} reads a bfloat16 tensor on the host: MindSpore 2.10 with NumPy 2 dies of that (SIGSEGV)")

    return call


class Asnumpy:
    """A MindSpore tensor, as far as a writer uses it; counts how often it is copied to the host."""

    def __init__(self, value, dtype=None):
        self._host = np.asarray(value, dtype)
        self.shape, self.dtype = self._host.shape, self._host.dtype
        self.reads = 0

    def asnumpy(self):
        self.reads += 1
        return self._host


class Bfloat16:
    """A MindSpore tensor in bfloat16: it must be cast on the device before anything reads it on the host."""

    dtype = "BFloat16"

    def __init__(self, value):
        self._value = np.asarray(value, np.float32)
        self.shape = self._value.shape
        self.casts = 0

    def float(self):
        self.casts += 1
        return Asnumpy(self._value)

    def __len__(self):
        return self.shape[0]

    __eq__ = __ne__ = __bool__ = __repr__ = __str__ = _deadly("comparing or printing")
    __hash__ = object.__hash__
    asnumpy = _deadly("asnumpy()")
    item = _deadly("item()")
    __float__ = _deadly("float()")
    __int__ = _deadly("int()")
    __array__ = _deadly("__array__()")


class Scalar(Bfloat16):
    """The same with one element, for which `len` fails as it does for MindSpore's."""

    def __len__(self):
        raise TypeError("len() of a 0-d tensor")


class RequiresGrad:
    """A torch parameter on an accelerator: `detach`, `cpu` and `numpy`, in that order and no other."""

    def __init__(self, value, dtype=np.float32):
        self._host = np.asarray(value, dtype)
        self.shape, self.dtype = self._host.shape, f"torch.{self._host.dtype}"

    def __array__(self, *args, **kwargs):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def numpy(self):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self):
        return _OnDevice(self._host)


class _OnDevice:
    def __init__(self, host):
        self._host = host

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def cpu(self):
        return _OnHost(self._host)


class _OnHost:
    def __init__(self, host):
        self._host = host

    def numpy(self):
        return self._host


class ArrayForm:
    """A JAX array or a pandas series: `__array__`."""

    def __init__(self, value, dtype=None):
        self._host = np.asarray(value, dtype)

    def __array__(self, dtype=None, copy=None):
        return self._host if dtype is None else self._host.astype(dtype)

    def __float__(self):
        return float(self._host)


class Table(ArrayForm):
    """A DataFrame of pandas: an array of its rows, but what goes through it meets its columns' names."""

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return iter("abcdefgh"[: self._host.shape[1]])


class Indexed:
    """Python's oldest sequence: a length, and items by their numbers."""

    def __init__(self, items):
        self._items = items

    def __len__(self):
        return len(self._items)

    def __getitem__(self, index):
        return self._items[index]


class Sparse:
    """A COOTensor of MindSpore, or of JAX, where the method is called `todense`."""

    def __init__(self, value, method="to_dense"):
        setattr(self, method, lambda: Asnumpy(value))
        self.shape, self.dtype = np.shape(value), "Float32"


class NumpyForm:
    """A TensorFlow tensor, as far as a writer uses it: `numpy()`."""

    def __init__(self, value):
        self._value = value

    def numpy(self):
        return np.asarray(self._value)


class ItemOnly:
    """Something that can do no more than `item()`."""

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value


class FloatOnly:
    """Something that can do no more than `float()`."""

    def __init__(self, value):
        self._value = value

    def __float__(self):
        return self._value


class IndexOnly:
    """Python's own mark of an integer: `__index__`."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value


class Broken:
    """A tensor whose memory is gone."""

    def __init__(self, error):
        self._error = error

    def asnumpy(self):
        raise self._error


class BrokenArray:
    """An `__array__` that raises."""

    def __init__(self, error):
        self._error = error

    def __array__(self, *args, **kwargs):
        raise self._error
